/* choices.h: which of several right ways of computing (options; kernel.h) was measured to be the fastest on a device,
 * for each kind and size of work. They are facts about the device, beside its others: where there is none, the rules of
 * the kernels room decide. Options are ids of rows of that room's table, which mean nothing beside another table. */
#ifndef HDI_CHOICES_H
#define HDI_CHOICES_H

#include "base/base.h"

/* X(KIND, "name", what its rows and its size are): kernels among whose options there is a choice. */
#define HDI_CLASS_LIST(X) \
    X(MATVEC,      "matvec",      "rows of A, at most 8; elements of B") \
    X(MERGED,      "merged",      "the same with a norm or a second product in one kernel") \
    X(MATMUL,      "matmul",      "rows of A; elements of B") \
    X(ATTENTION,   "attention",   "queries; elements of all keys") \
    X(ELEMENTWISE, "elementwise", "1; elements") \
    X(REDUCE,      "reduce",      "rows; elements of a row") \
    X(SOFTMAX,     "softmax",     "rows; elements of a row") \
    X(NORM,        "norm",        "rows; elements of a row")
typedef enum hdi_class_kind {
#define HDI_CLASS_ENUM(code, name, text) HDI_CLASS_##code,
    HDI_CLASS_LIST(HDI_CLASS_ENUM)
#undef HDI_CLASS_ENUM
    HDI_CLASS_KINDS
} hdi_class_kind;

/* Requests of one kind, type and size: for all of them one option is chosen. */
typedef struct hdi_class {
    uint8_t kind;   /* hdi_class_kind */
    uint8_t type;   /* hd_dtype of the weights, the keys or the first operand */
    /* up to 2^rows and more than half of that; from 16 rows on, where they are no rows of a product, a quarter */
    uint8_t rows;
    uint8_t size;   /* at least 4^size and less than four times that */
} hdi_class;
#define HDI_CLASS_ANY 255 /* in place of a choice's type, rows or size: it is for all of them */
hdi_class hdi_class_of(hdi_class_kind kind, hd_dtype type, uint64_t rows, uint64_t size);
bool hdi_class_equal(hdi_class a, hdi_class b);
/* "matvec q4_0, rows 5-8, size 2^22-2^24"; returns `out`. */
#define HDI_CLASS_TEXT 128
char *hdi_class_text(hdi_class class, char out[HDI_CLASS_TEXT]);

#define HDI_CHOICES 256
/* The option measured to be the fastest for a class. */
typedef struct hdi_choice {
    hdi_class of;
    uint32_t  option; /* id of a row */
    float     gain;   /* the rules' own option took so many times as long when it was measured; above 1 */
} hdi_choice;
/* All choices of a device. */
typedef struct hdi_choices {
    uint32_t   table; /* digest of the table that the options are rows of; 0: not known */
    uint32_t   count;
    hdi_choice items[HDI_CHOICES];
} hdi_choices;

/* The option that is chosen for the class, or 0. */
uint32_t hdi_choices_find(const hdi_choices *choices, hdi_class of);
/* Puts the choice in the place of an earlier one of its class. False: there is no room. */
bool hdi_choices_put(hdi_choices *choices, const hdi_choice *choice);
/* Takes a choice of the class out, if there is one. */
void hdi_choices_remove(hdi_choices *choices, hdi_class of);

/* "options 1598724097" where the table is known, and for each choice "choice matvec q4_0 rows 3 size 11 option 103
 * gain 1.12" on a line of its own. */
void hdi_choices_print(const hdi_choices *choices, hdi_text *out_text);
/* Reads such a line. False, nothing is changed: it is not well formed, there is no room, the table is known already. */
bool hdi_choices_read(const char *line, size_t bytes, hdi_choices *choices);
#endif
