/* device.c: the one device, and how the stand-in speaks of mistakes. */
#include "names.h"
#include "standin.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic standin_status lost;

static void say(const char *format, va_list args) {
    char words[400];
    vsnprintf(words, sizeof words, format, args);
    fprintf(stderr, "stand-in: %s\n", words);
}

_Noreturn void standin_abort(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    abort();
}

standin_status standin_refuse(standin_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return status;
}

standin_status standin_lose(standin_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    lost = status;
    return status;
}

standin_status standin_lost(void) { return lost; }

uint64_t standin_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

unsigned standin_architecture(void) { return STANDIN_PICK((unsigned)standin_environment("HEDDLE_STANDIN_ARCH", 90), 110); }
