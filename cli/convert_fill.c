/* convert_fill.c: the bytes of a converted tensor, piece by piece: rows from where the folder has them. */
#include "cli/convert.h"
#include <math.h>
#include <string.h>

/* Where a row of the new tensor lies in the old one, both of one expert. */
static uint64_t row_of(const cli_converted *t, uint64_t row) {
    if (t->order == CLI_BY_STEPS) return t->first + t->step * row;
    if (t->order == CLI_BY_TURNS) { /* within a head GGUF has the two halves in turn */
        const uint64_t head = row / t->size, i = row % t->size;
        return head * t->size + i % 2 * (t->size / 2) + i / 2;
    }
    const uint64_t group = (t->queries + 2) * t->size, queries = t->queries * t->size, keys = t->groups * t->size;
    if (row < t->groups * queries) return row / queries * group + row % queries;
    row -= t->groups * queries;
    return row % keys / t->size * group + queries + row / keys * t->size + row % t->size;
}

static const uint8_t *matrix_of(const cli_converted *t, uint64_t expert) {
    if (!t->data) return t->each[expert];
    const uint64_t apart = t->apart ? t->apart : t->old_rows * t->columns;
    return (const uint8_t *)t->data + expert * apart * hd_dtype_bytes(t->from, 1);
}

static bool copy(const cli_converted *t, const uint8_t *from, uint64_t count, uint8_t *to) {
    const uint64_t size = hd_dtype_bytes(t->to, 1);
    if (t->from == t->to) memcpy(to, from, count * size);
    else if (hd_dequantize(t->from, from, count, (float *)(void *)to)) return false; /* to f32 */
    if (t->plus != 0)
        for (uint64_t i = 0; i < count; i++) ((float *)(void *)to)[i] += t->plus;
    return true;
}

static bool fill_floats(const cli_converted *t, uint64_t from, uint64_t bytes, uint8_t *to) {
    const uint64_t size = hd_dtype_bytes(t->to, 1), old_size = hd_dtype_bytes(t->from, 1), end = (from + bytes) / size;
    for (uint64_t at = from / size; at < end;) {
        const uint64_t row = at / t->columns, column = at % t->columns;
        const uint64_t old_row = row_of(t, row % t->rows);
        const uint64_t left = t->transposed ? 1 : t->columns - column, count = left < end - at ? left : end - at;
        const uint64_t place = t->transposed ? column * t->old_rows + old_row : old_row * t->columns + column;
        if (!copy(t, matrix_of(t, row / t->rows) + place * old_size, count, to)) return false;
        to += count * size;
        at += count;
    }
    return true;
}

/* The number of 8 bits: with 5 of exponent it is the upper half of an f16; else a sign, 4 bits of exponent, 3 of
 * fraction, no infinity. False: NaN. */
static bool read_eight(const cli_converted *t, uint8_t bits, float *out) {
    const uint16_t half = (uint16_t)(bits << 8);
    if (t->e5m2) return !hd_dequantize(HD_F16, &half, 1, out) && isfinite(*out);
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
    *out = bits & 0x80 ? -size : size;
    return (bits & 0x7F) != 0x7F;
}

/* Numbers in 8 bits times the factors of their blocks. False: there is one that is none. */
static bool fill_eights(const cli_converted *t, uint64_t from, uint64_t bytes, uint8_t *to) {
    const uint64_t size = hd_dtype_bytes(t->to, 1), end = (from + bytes) / size;
    const uint64_t across = (t->columns + t->block_columns - 1) / t->block_columns;
    for (uint64_t at = from / size; at < end; at++, to += size) {
        const uint64_t row = at / t->columns, column = at % t->columns, expert = row / t->rows;
        const uint64_t old_row = row_of(t, row % t->rows), old = old_row * t->columns + column;
        const hd_safetensor *factors = t->each ? t->each_factors[expert] : t->factors;
        const uint64_t block = old_row / t->block_rows * across + column / t->block_columns;
        float value, factor;
        if (!read_eight(t, matrix_of(t, expert)[old], &value) ||
            hd_dequantize(factors->dtype, (const uint8_t *)factors->data + block * hd_dtype_bytes(factors->dtype, 1), 1,
                          &factor) || !isfinite(value *= factor) || hd_quantize(t->to, &value, 1, to))
            return false;
    }
    return true;
}

/* Blocks of 32 numbers: a scale and 16 bytes. The folder's bytes have two neighbours each, GGUF's the numbers i and
 * i + 16. */
static bool fill_blocks(const cli_converted *t, uint64_t from, uint64_t bytes, uint8_t *to) {
    enum { BLOCK = 17, HALF = 16 };
    const uint64_t across = t->columns / 32, end = from + bytes;
    for (uint64_t at = from; at < end;) {
        const uint64_t block = at / BLOCK, row = block / across;
        const uint64_t old_row = row / t->rows * t->old_rows + row_of(t, row % t->rows),
                       old = old_row * across + block % across;
        const uint8_t *codes = (const uint8_t *)t->data + old * HALF;
        const uint64_t begin = at % BLOCK, room = BLOCK - begin < end - at ? BLOCK - begin : end - at;
        uint8_t made[BLOCK] = { t->scales[old] };
        for (unsigned i = 0; i < HALF; i++) {
            const unsigned shift = i % 2 * 4;
            made[1 + i] = (uint8_t)((codes[i / 2] >> shift & 15) | (codes[HALF / 2 + i / 2] >> shift & 15) << 4);
        }
        memcpy(to, made + begin, room);
        to += room;
        at += room;
    }
    return true;
}

/* Ternary weights as f16. False: there is a number that none has. */
static bool fill_ternary(const cli_converted *t, uint64_t from, uint64_t bytes, uint8_t *to) {
    static const uint16_t numbers[] = { 0xBC00, 0, 0x3C00 };
    const uint64_t end = (from + bytes) / 2, old_size = hd_dtype_bytes(t->from, 1);
    for (uint64_t at = from / 2; at < end; at++, to += 2) {
        const uint64_t row = at / t->columns, column = at % t->columns;
        int number;
        float value;
        if (t->packed) {
            const uint8_t byte = ((const uint8_t *)t->data)[row % t->old_rows * t->columns + column];
            number = (byte >> row / t->old_rows * 2 & 3) - 1;
        } else if (hd_dequantize(t->from, (const uint8_t *)t->data + at * old_size, 1, &value)) return false;
        else number = value > t->mean / 2 ? 1 : value < -t->mean / 2 ? -1 : 0;
        if (number > 1) return false;
        memcpy(to, &numbers[number + 1], 2);
    }
    return true;
}

bool cli_convert_fill(void *user, uint64_t from, uint64_t bytes, void *out) {
    const cli_converted *t = user;
    if (t->block_rows) return fill_eights(t, from, bytes, out);
    if (t->packed || t->mean > 0) return fill_ternary(t, from, bytes, out);
    return t->to == HD_MXFP4 ? fill_blocks(t, from, bytes, out) : fill_floats(t, from, bytes, out);
}
