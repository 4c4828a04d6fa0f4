/* test_int8_tiles.c: every instruction set's tiles of 8-bit integers against float64, with codes and activations at random and at
 * their ends, where sums of 16 bits come closest to their own. */
#define HDCPU_LEVEL 0
#include "kernels/cpu/int8_tiles.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST_ROWS = 32, MOST_COLUMNS = 6, MOST_BLOCKS = 8, STRIDE = MOST_ROWS };

static uint32_t seed = 1;
static uint32_t below(uint32_t count) { return (seed = seed * 1664525u + 1013904223u) / 256 % count; }

static uint32_t largest_code(uint32_t type, const int8_form *form) {
    if (type == HDI_TYPE_Q3_K) return 7;
    if (type == HDI_TYPE_Q2_K) return 3;
    return form->offset == 1 ? 2 : (1u << form->bits) - 1;
}

/* A tile in the layout of int8_tiles.h, the sums that it should come to, and the sizes of their terms. */
typedef struct problem {
    uint8_t rows[MOST_ROWS * MOST_BLOCKS * HDCPU_INT8_ROW_BLOCK(2)], codes[MOST_BLOCKS * MOST_COLUMNS * 2 * INT8_BLOCK];
    float scales[MOST_BLOCKS * 2 * MOST_COLUMNS], less[MOST_BLOCKS * 2 * MOST_COLUMNS], sums[MOST_COLUMNS * STRIDE];
    int weights[MOST_COLUMNS][MOST_BLOCKS][INT8_BLOCK]; /* without their offset */
    double wanted[MOST_COLUMNS][MOST_ROWS], terms[MOST_COLUMNS][MOST_ROWS];
} problem;

static void make_column(problem *p, const int8_tiles *set, const int8_tile *tile, uint32_t type, uint32_t c, bool ends) {
    const int8_form *form = &tile->form;
    const bool halves = form->bits == 8 && set->halves;
    for (uint32_t b = 0; b < tile->blocks; b++) {
        uint8_t *codes = p->codes + (b * set->columns + c) * (halves ? 2u : 1u) * INT8_BLOCK;
        for (uint32_t i = 0; i < INT8_BLOCK; i++) {
            const uint32_t largest = largest_code(type, form), code = ends ? largest : below(largest + 1);
            codes[i] = (uint8_t)(halves ? code & 15 : code);
            if (halves) codes[INT8_BLOCK + i] = (uint8_t)(code >> 4);
            p->weights[c][b][i] = (form->bits == 8 && set->is_signed ? (int8_t)code : (int)code) - (int)form->offset;
        }
        for (uint32_t run = 0; run < form->runs; run++) {
            p->scales[(b * form->runs + run) * set->columns + c] = (float)below(1000) / 1000;
            p->less[(b * form->runs + run) * set->columns + c] = form->has_less ? (float)below(1000) / 100 : 0;
        }
    }
}

static void make_row_block(problem *p, const int8_tiles *set, const int8_tile *tile, uint32_t r, uint32_t b, bool ends) {
    const uint32_t lanes = set->lanes, runs = tile->form.runs, lane = r % lanes;
    uint8_t *out = p->rows + r / lanes * tile->vector_bytes + b * INT8_PACKED_BLOCK(lanes, runs);
    const float scale = (float)(below(1000) + 1) / 1000;
    int codes[INT8_BLOCK], sums[2] = { 0 };
    for (uint32_t i = 0; i < INT8_BLOCK; i++) {
        codes[i] = ends ? (r % 2 || below(2) ? 127 : -127) : (int)below(255) - 127;
        out[i / 4 * 4 * lanes + 4 * lane + i % 4] = (uint8_t)codes[i];
        sums[i * runs / INT8_BLOCK] += codes[i];
    }
    out += INT8_BLOCK * lanes + 4 * lane;
    memcpy(out, &scale, sizeof scale);
    for (uint32_t run = 0; run < runs; run++) {
        const float scaled = scale * (float)sums[run];
        const int32_t begin = -(int32_t)tile->form.offset * sums[run];
        memcpy(out + (run + 1) * 4 * lanes, tile->form.has_less ? (const void *)&scaled : &begin, 4);
    }
    for (uint32_t c = 0; c < set->columns; c++)
        for (uint32_t i = 0; i < INT8_BLOCK; i++) {
            const uint32_t of_run = (b * runs + i * runs / INT8_BLOCK) * set->columns + c;
            const double x = (double)codes[i] * (double)scale, scaled = (double)p->scales[of_run] * p->weights[c][b][i];
            p->wanted[c][r] += x * (scaled - (double)p->less[of_run]);
            p->terms[c][r] += fabs(x * scaled) + fabs(x * (double)p->less[of_run]);
        }
}

static void check_tile(problem *p, const int8_tiles *set, uint32_t type, uint32_t vectors, uint32_t blocks, bool first, bool ends) {
    const int8_form form = int8_form_of(type, set);
    const int8_tile tile = { .form = form, .blocks = blocks, .vectors = vectors, .first = first, .rows = p->rows,
                             .vector_bytes = (uint64_t)blocks * INT8_PACKED_BLOCK(set->lanes, form.runs), .codes = p->codes,
                             .scales = p->scales, .less = p->less, .sums = p->sums, .sums_stride = STRIDE };
    const uint32_t rows = vectors * set->lanes;
    assert_true(rows <= MOST_ROWS && set->columns <= MOST_COLUMNS);
    for (uint32_t c = 0; c < set->columns; c++) {
        make_column(p, set, &tile, type, c, ends);
        for (uint32_t r = 0; r < STRIDE; r++) {
            p->sums[c * STRIDE + r] = 3;
            p->wanted[c][r] = p->terms[c][r] = first ? 0 : 3;
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t b = 0; b < blocks; b++) make_row_block(p, set, &tile, r, b, ends);
    set->sum(&tile);
    for (uint32_t c = 0; c < set->columns; c++) {
        for (uint32_t r = 0; r < rows; r++)
            if (!(fabs((double)p->sums[c * STRIDE + r] - p->wanted[c][r]) <= 1e-6 * p->terms[c][r]))
                fail_msg("%s, type %u, %u vectors, %u blocks: column %u times row %u is %.9g, not %.9g", set->name, type, vectors,
                         blocks, c, r, (double)p->sums[c * STRIDE + r], p->wanted[c][r]);
        for (uint32_t r = rows; r < STRIDE; r++) assert_true(p->sums[c * STRIDE + r] == 3);
    }
}

const int8_tiles *hdcpu_int8_tiles_at_l1(uint32_t index);
const int8_tiles *hdcpu_int8_tiles_at_l2(uint32_t index);
const int8_tiles *hdcpu_int8_tiles_at_l3(uint32_t index);

static void every_set(void **state) {
    (void)state;
    const int8_tiles *(*const levels[])(uint32_t) = { hdcpu_int8_tiles_at_l0,
#if defined(__x86_64__)
        hdcpu_int8_tiles_at_l1, hdcpu_int8_tiles_at_l2, hdcpu_int8_tiles_at_l3
#endif
    };
    problem *p = malloc(sizeof *p);
    assert_non_null(p);
    for (uint32_t level = 0; level <= hdcpu_level(); level++)
        for (uint32_t i = 0; levels[level](i); i++) {
            const int8_tiles *set = levels[level](i);
            print_message("%s\n", set->name);
            for (uint32_t type = HDI_TYPE_Q4_0; type <= HDI_TYPE_TQ1_0; type++)
                for (uint32_t way = 0; way < 16; way++)
                    check_tile(p, set, type, way & 1 ? set->vectors : 1, way & 2 ? MOST_BLOCKS : 1, way & 4, way & 8);
        }
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_set) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
