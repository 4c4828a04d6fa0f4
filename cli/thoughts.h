/* thoughts.h: what a model thinks, apart from what it says. Models write both into one text, with marks around them:
 * <think> and </think>, or the channels of gpt-oss. The text comes in pieces, which may end within a mark. */
#ifndef CLI_THOUGHTS_H
#define CLI_THOUGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* Receives the text without the marks. */
typedef void (*thoughts_part_fn)(void *user, bool is_thought, const char *text, size_t bytes);

typedef struct thoughts {
    thoughts_part_fn part;
    void  *user;
    bool   inside;     /* of a thought */
    bool   said;       /* something but space: <think> begins a thought no more */
    char   held[64];   /* it may be the beginning of a mark */
    size_t held_bytes;
} thoughts;

/* `inside`: the prompt ends with the mark that begins a thought. */
void thoughts_begin(thoughts *t, bool inside, thoughts_part_fn part, void *user);
void thoughts_add(thoughts *t, const char *text, size_t bytes);
void thoughts_end(thoughts *t); /* what was held comes too */
/* Whether a text ends within a thought that it began. */
bool thoughts_open(const char *text, size_t bytes);

#endif
