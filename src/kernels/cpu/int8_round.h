/* int8_round.h: activations as integers of 8 bits. */
#ifndef HDCPU_INT8_ROUND_H
#define HDCPU_INT8_ROUND_H

#include <stdint.h>
#include <string.h>

/* Rounds 32 values to -127..127 times the scale that it returns. A NaN or an infinity makes it one. */
static inline float int8_round(const float *x, int8_t *codes) {
    int32_t largest = 0;
    for (int i = 0; i < 32; i++) {
        int32_t size;
        memcpy(&size, &x[i], sizeof size);
        size &= 0x7FFFFFFF;
        largest = size > largest ? size : largest;
    }
    float most;
    memcpy(&most, &largest, sizeof most);
    const float inverse = most > 0x1p-100f ? 127.0f / most : 0.0f;
    for (int i = 0; i < 32; i++) {
        const float moved = x[i] * inverse + 0x1.8p23f; /* rounds to a whole number, in the lowest bits */
        int32_t bits;
        memcpy(&bits, &moved, sizeof bits);
        codes[i] = (int8_t)(bits & 0xFF);
    }
    return most > 0x1p-100f || most != most ? most / 127.0f : 0.0f;
}
#endif
