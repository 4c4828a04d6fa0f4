/* pattern.h: the regular expressions that byte-level vocabularies cut text by, in the part of their language that those
 * use: characters and classes ([...], \p{Lu}, \s, \S), ? * + {n} {m,n} behind one, alternatives, (?:...) and (?:...)?,
 * (?=...), * (?!...), $ at the end of the part,
 and (?<!...) of one class. As in Perl the first alternative that leads to a match
 * counts, and the longest run that does. A byte that is not UTF-8 is a character, U+FFFD. Patterns are the library's
 * own, never a file's. */
#ifndef HDL_PATTERN_H
#define HDL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HDL_PATTERN_NODES = 96, HDL_PATTERN_SETS = 24, HDL_PATTERN_RANGES = 128 };

/* A set of characters. */
typedef struct hdl_char_set {
    uint64_t ascii[2];
    uint16_t classes;          /* a bit for each class of unicode_classes.inc */
    uint16_t first, count;     /* ranges */
    bool     negated;          /* of what is not ASCII */
} hdl_char_set;

typedef struct hdl_pattern_node {
    uint8_t  kind, set;
    uint16_t least, most;      /* characters of the set */
    uint16_t to;               /* a node */
} hdl_pattern_node;

typedef struct hdl_pattern {
    hdl_pattern_node nodes[HDL_PATTERN_NODES];
    hdl_char_set     sets[HDL_PATTERN_SETS];
    struct { uint32_t low, high; } ranges[HDL_PATTERN_RANGES];
    uint32_t node_count, set_count, range_count;
} hdl_pattern;

/* False where the text is not of the language above, or has more parts than there is room for. */
bool hdl_pattern_compile(const char *text, hdl_pattern *out_pattern);

#define HDL_NO_MATCH SIZE_MAX
/* The end of the match that begins at `at` within the part [begin, end) of the text, or HDL_NO_MATCH. */
size_t hdl_pattern_match(const hdl_pattern *pattern, const uint8_t *text, size_t begin, size_t end, size_t at);

#endif
