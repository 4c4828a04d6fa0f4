/* text.c: text that grows while it is built, and floats printed so that they read back the same. */
#include "base/base.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void hdi_text_add(hdi_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0 || text->failed ||
        !hdi_grow(text->allocator, &text->bytes, &text->capacity, text->count + (size_t)wanted + 1, 1)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->bytes + text->count, (size_t)wanted + 1, format, args);
    va_end(args);
    text->count += (size_t)wanted;
}

void hdi_text_free(hdi_text *text) {
    hdi_free(text->allocator, text->bytes, text->capacity);
    text->bytes = NULL;
    text->count = 0;
    text->capacity = 0;
}

hd_status hdi_text_out(const hdi_text *text, char *out_text, size_t room, size_t *out_needed) {
    if (out_needed) *out_needed = text->count + 1;
    if (text->failed) return HD_STATUS_OUT_OF_HOST_MEMORY;
    if (out_text && room > 0) {
        size_t copied = HDI_MIN(text->count, room - 1);
        if (copied > 0) memcpy(out_text, text->bytes, copied);
        out_text[copied] = 0;
    }
    return out_text && room <= text->count ? HD_STATUS_LIMIT : HD_OK;
}

void hdi_float_text(float value, char *out) {
    if (isnan(value)) {
        snprintf(out, 32, "nan");
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(out, 32, "%.*g", digits, (double)value);
        if (strtof(out, NULL) == value) return;
    }
}
