/* rewrite.c: three things of CUDA C++ that no prelude can give a C++ compiler (rewrite.h). */
#define _POSIX_C_SOURCE 200809L
#include "rewrite.h"
#include "standin.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* White space, and the ends of lines within a macro. */
static const char *skip_space(const char *at) {
    while (isspace((unsigned char)*at) || (*at == '\\' && at[1] == '\n')) at++;
    return at;
}
static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}
/* From '(' to behind its ')'. */
static const char *skip_group(const char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"') { at = skip_string(at); continue; }
        if (*at == '(') depth++;
        if (*at == ')' && --depth == 0) return at + 1;
        at++;
    }
    return at;
}

/* asm [volatile] ("..." : "=r"(a) : "r"(b) : "memory") becomes standin_ptx("...", a, b). `at` stands behind "asm"; returns
 * what follows the statement, or NULL where it is none. */
static const char *put_asm(FILE *out, const char *at) {
    at = skip_space(at);
    if (strncmp(at, "volatile", 8) == 0) at = skip_space(at + 8);
    if (*at != '(') return NULL;
    fputs("standin_ptx(", out);
    int section = 0;
    for (at++; *at && *at != ')';) {
        const char *next = at + 1;
        if (*at == ':') section++;
        if (*at == '"') next = skip_string(at);
        if (section == 0) fwrite(at, 1, (size_t)(next - at), out);
        const char *group = skip_space(next);
        if (*at == '"' && *group == '(' && (section == 1 || section == 2)) {
            next = skip_group(group);
            fputs(", ", out);
            fwrite(group, 1, (size_t)(next - group), out);
        }
        at = next;
    }
    fputc(')', out);
    return *at ? at + 1 : at;
}

/* "extern __shared__ type name[];" of memory that a launch gives becomes an array of all that there is. `at` stands behind "extern";
 * returns where its "]" stands, or NULL where it is none. */
static const char *put_room(FILE *out, const char *at) {
    at = skip_space(at);
    if (strncmp(at, "__shared__", 10) != 0) return NULL;
    const char *end = strchr(at, ']');
    if (!end) return NULL;
    fwrite(at, 1, (size_t)(end - at), out);
    fprintf(out, "%d", STANDIN_SHARED_AT_LAUNCH);
    return end;
}

/* The function that "__global__" at `at` begins: its name, and the bounds of its launches. */
static void put_kernel(FILE *out, const char *at) {
    static const char bounds_word[] = "__launch_bounds__";
    const char *bounds = "0", *bounds_end = bounds + 1;
    for (at = skip_space(at + strlen("__global__")); *at;) {
        const char *end = at;
        while (is_word(*end)) end++;
        const char *after = skip_space(end);
        if (end == at) { at = skip_space(at + 1); continue; }
        if (*after != '(') { at = after; continue; }
        if ((size_t)(end - at) != strlen(bounds_word) || strncmp(at, bounds_word, strlen(bounds_word)) != 0) {
            fprintf(out, "\nSTANDIN_KERNEL(%.*s, %.*s)\n", (int)(end - at), at, (int)(bounds_end - bounds), bounds);
            return;
        }
        bounds = after;
        bounds_end = skip_group(after);
        at = skip_space(bounds_end);
    }
}

char *standin_rewrite(const char *text) {
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    if (!out) return NULL;
    for (const char *at = text; *at;) {
        const char *end = at + 1;
        if (*at == '"') end = skip_string(at);
        while (is_word(*at) && is_word(*end)) end++;
        const char *behind = end - at == 3 && strncmp(at, "asm", 3) == 0      ? put_asm(out, end)
                             : end - at == 6 && strncmp(at, "extern", 6) == 0 ? put_room(out, end)
                                                                              : NULL;
        if (!behind) fwrite(at, 1, (size_t)(end - at), out);
        at = behind ? behind : end;
    }
    for (const char *at = text; (at = strstr(at, "__global__")); at += strlen("__global__")) put_kernel(out, at);
    if (fclose(out)) return NULL;
    return result;
}
