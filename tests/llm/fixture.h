/* fixture.h: the tiny models of tests/llm/models with a field changed: read, written anew and kept in memory. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "hostile.h"
#include <heddle_llm.h>

/* A whole file in memory. */
typedef struct fixture {
    uint8_t *bytes;
    uint64_t count, room;
} fixture;
/* tests/llm/models/NAME.gguf, or the path where the name has a '/'. */
fixture fixture_read(const char *name);
void fixture_free(fixture *f);

/* One change. */
typedef enum edit_kind {
    EDIT_NONE,
    EDIT_DROP_KEY,
    EDIT_U32,         /* key = number */
    EDIT_I64,         /* key = number, as i64 */
    EDIT_F32,         /* key = number */
    EDIT_BOOL,        /* key = number */
    EDIT_TEXT,        /* key = text, or `count` letters where there is no text */
    EDIT_U32S,        /* key = `count` times number, the last one plus one where `uneven` */
    EDIT_F32S,        /* the same of f32 */
    EDIT_I8S,         /* the same of i8 */
    EDIT_TEXTS,       /* key = `count` texts: text and a number, the text alone where `uneven` */
    EDIT_DROP_TENSOR,
    EDIT_TENSOR,      /* a tensor of `type` and `shape`, each f32 of it the number (where `uneven` 1, 2, ... 7 times it), other
                         types zero */
    EDIT_SET_F32,     /* an f32 tensor's element number `count` becomes the number */
    EDIT_SET_F16      /* the f16 at byte `count` of a tensor's data becomes the number's low bits */
} edit_kind;
typedef struct edit {
    edit_kind   kind;
    const char *name;
    double      number;
    uint64_t    count;
    bool        uneven;
    const char *text;
    uint32_t    type;
    hd_shape    shape;
} edit;
/* The fixture with changes, of which there are at most 16; what is not there yet is added. */
fixture fixture_edited(const char *name, const edit *edits, uint32_t edit_count);
/* The same of a file in memory, which it frees. */
fixture fixture_changed(fixture whole, const edit *edits, uint32_t edit_count);

#endif
