/* thoughts.c: see thoughts.h. */
#include "cli/thoughts.h"
#include <string.h>

enum { ANYWHERE, FIRST, INSIDE };
static const struct mark {
    const char *text;
    int         where;  /* it is a mark */
    bool        inside; /* what follows is a thought */
} marks[] = {
    { "<think>", FIRST, true },
    { "</think>", INSIDE, false },
    { "<|channel|>analysis<|message|>", ANYWHERE, true },
    { "<|channel|>commentary<|message|>", ANYWHERE, true },
    { "<|channel|>final<|message|>", ANYWHERE, false },
    { "<|end|>", INSIDE, true },
    { "<|start|>assistant", INSIDE, true },
};
enum { MARKS = sizeof marks / sizeof marks[0] };

static bool is_mark_here(const thoughts *t, const struct mark *mark) {
    return mark->where == ANYWHERE || (mark->where == INSIDE ? t->inside : !t->inside && !t->said);
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static void give(thoughts *t, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes && !t->inside; i++) t->said = t->said || !is_space(text[i]);
    if (bytes) t->part(t->user, t->inside, text, bytes);
}

/* The mark that the held bytes are, or NULL; *out_begun tells whether they may become one. */
static const struct mark *find(const thoughts *t, bool *out_begun) {
    *out_begun = false;
    for (size_t i = 0; i < MARKS; i++) {
        const size_t length = strlen(marks[i].text);
        if (!is_mark_here(t, &marks[i]) || t->held_bytes > length || memcmp(marks[i].text, t->held, t->held_bytes) != 0)
            continue;
        if (t->held_bytes == length) return &marks[i];
        *out_begun = true;
    }
    return NULL;
}

/* A byte behind those that are held: a mark is whole, goes on, or was none; then its first byte is text, and what
 * follows may begin another one. */
static void add_byte(thoughts *t, char byte) {
    t->held[t->held_bytes++] = byte;
    while (t->held_bytes > 0) {
        bool begun;
        const struct mark *mark = find(t, &begun);
        if (!mark && begun) return;
        const size_t gone = mark ? t->held_bytes : 1;
        if (mark) t->inside = mark->inside;
        else give(t, t->held, 1);
        t->held_bytes -= gone;
        memmove(t->held, t->held + gone, t->held_bytes);
    }
}

void thoughts_begin(thoughts *t, bool inside, thoughts_part_fn part, void *user) {
    *t = (thoughts){ .part = part, .user = user, .inside = inside };
}

void thoughts_add(thoughts *t, const char *text, size_t bytes) {
    while (bytes > 0) {
        const char *begin = t->held_bytes ? text : memchr(text, '<', bytes);
        const size_t plain = begin ? (size_t)(begin - text) : bytes;
        give(t, text, plain);
        if (plain < bytes) add_byte(t, text[plain]);
        text += plain + (plain < bytes);
        bytes -= plain + (plain < bytes);
    }
}

void thoughts_end(thoughts *t) {
    give(t, t->held, t->held_bytes);
    t->held_bytes = 0;
}

bool thoughts_open(const char *text, size_t bytes) {
    static const char begins[] = "<think>";
    while (bytes > 0 && is_space(text[bytes - 1])) bytes--;
    return bytes >= sizeof begins - 1 && memcmp(text + bytes - (sizeof begins - 1), begins, sizeof begins - 1) == 0;
}
