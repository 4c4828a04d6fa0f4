/* test_int8_tiles.c: every instruction set's tiles of 8-bit integers against float64, and exact mode's to the bit, with codes and activations at random and at
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

/* ---- exact mode: the bits of abi.h's order, worked out number by number ---- */

enum { EXACT_BLOCKS = 7 };
typedef struct exact_problem {
    uint8_t    rows[MOST_ROWS * EXACT_BLOCKS * HDCPU_INT8_ROW_BLOCK(1)], codes[EXACT_BLOCKS * MOST_COLUMNS * 2 * INT8_BLOCK];
    int8_facts facts[EXACT_BLOCKS * MOST_COLUMNS];
    int        x[MOST_ROWS][EXACT_BLOCKS][INT8_BLOCK], weights[MOST_COLUMNS][EXACT_BLOCKS][INT8_BLOCK];
    int        whole[MOST_COLUMNS][EXACT_BLOCKS][2], mins[MOST_COLUMNS][EXACT_BLOCKS][2];
    float      scales[MOST_ROWS][EXACT_BLOCKS], sums[MOST_COLUMNS * STRIDE];
} exact_problem;

static uint32_t in_a_word(int low, int high) { return ((uint32_t)low & 0xFFFFu) | (uint32_t)high << 16; }

static void make_exact(exact_problem *p, const int8_tiles *set, uint32_t type, const int8_tile *tile, bool ends) {
    const int8_form *form = &tile->form;
    const bool halves = form->bits == 8 && set->halves;
    for (uint32_t c = 0; c < set->columns; c++)
        for (uint32_t b = 0; b < EXACT_BLOCKS; b++) {
            uint8_t *codes = p->codes + (b * set->columns + c) * (halves ? 2u : 1u) * INT8_BLOCK;
            int *whole = p->whole[c][b], *mins = p->mins[c][b];
            for (uint32_t i = 0; i < INT8_BLOCK; i++) {
                const uint32_t code = ends ? below(2) * largest_code(type, form) : below(largest_code(type, form) + 1);
                codes[i] = (uint8_t)(halves ? code & 15 : code);
                if (halves) codes[INT8_BLOCK + i] = (uint8_t)(code >> 4);
                p->weights[c][b][i] = (form->bits == 8 && set->is_signed ? (int8_t)code : (int)code) - (int)form->offset;
            }
            for (uint32_t h = 0; h < 2; h++) {
                whole[h] = h > 0 && form->runs == 1 ? whole[0] : form->has_less ? (int)below(64) : form->runs == 2 ? (int)below(256) - 128 : 1;
                mins[h] = h > 0 && form->runs == 1 ? mins[0] : form->has_less ? (int)below(64) : 0;
            }
            const int offset = -(int)form->offset;
            p->facts[b * set->columns + c] = (int8_facts){
                (float)below(1000) / 1024, (float)below(1000) / 512, { in_a_word(whole[0], whole[0]), in_a_word(whole[1], whole[1]) },
                in_a_word(offset * whole[0], offset * whole[1]), in_a_word(mins[0], mins[1]) };
        }
    for (uint32_t r = 0; r < tile->vectors * set->lanes; r++)
        for (uint32_t b = 0; b < EXACT_BLOCKS; b++) {
            const uint32_t lanes = set->lanes, lane = r % lanes;
            uint8_t *out = p->rows + r / lanes * tile->vector_bytes + b * INT8_PACKED_BLOCK(lanes, 1);
            int sums[2] = { 0 };
            for (uint32_t i = 0; i < INT8_BLOCK; i++) {
                p->x[r][b][i] = ends ? (r % 2 || below(2) ? 127 : -127) : (int)below(255) - 127;
                out[i / 4 * 4 * lanes + 4 * lane + i % 4] = (uint8_t)p->x[r][b][i];
                sums[i / 16] += p->x[r][b][i];
            }
            const uint32_t word = in_a_word(sums[0], sums[1]);
            p->scales[r][b] = (float)below(1000) / 999;
            memcpy(out + INT8_BLOCK * lanes + 4 * lane, &p->scales[r][b], 4);
            memcpy(out + INT8_BLOCK * lanes + 4 * lanes + 4 * lane, &word, 4);
        }
}

static float exact_run(const exact_problem *p, uint32_t columns, uint32_t c, uint32_t r, uint32_t b, bool has_min) {
    int32_t weights = 0, mins = 0;
    for (uint32_t i = 0; i < INT8_BLOCK; i++) {
        weights += p->whole[c][b][i / 16] * p->weights[c][b][i] * p->x[r][b][i];
        mins += p->mins[c][b][i / 16] * p->x[r][b][i];
    }
    const int8_facts *facts = &p->facts[b * columns + c];
    const float value = facts->d * (float)weights;
    return p->scales[r][b] * (has_min ? value - facts->less * (float)mins : value);
}

/* Strands of `blocks`, and of one more. */
static void check_exact(exact_problem *p, const int8_tiles *set, uint32_t type, uint32_t vectors, uint32_t blocks, bool first, bool ends) {
    const uint32_t strands = blocks ? EXACT_BLOCKS / (blocks + 1) : 8, longer = blocks ? 1 : EXACT_BLOCKS;
    const int8_tile tile = { .form = int8_form_of(type, set), .blocks = blocks, .vectors = vectors, .first = first, .rows = p->rows,
                             .vector_bytes = EXACT_BLOCKS * INT8_PACKED_BLOCK(set->lanes, 1), .codes = p->codes, .facts = p->facts,
                             .strands = strands, .longer = longer, .sums = p->sums, .sums_stride = STRIDE };
    make_exact(p, set, type, &tile, ends);
    for (uint32_t i = 0; i < MOST_COLUMNS * STRIDE; i++) p->sums[i] = 3;
    set->sum_exact(&tile);
    for (uint32_t c = 0; c < set->columns; c++)
        for (uint32_t r = 0; r < STRIDE; r++) {
            float sum = first && r < vectors * set->lanes ? 0 : 3;
            for (uint32_t strand = 0, b = 0; strand < strands && r < vectors * set->lanes; strand++) {
                float own = 0;
                for (uint32_t end = b + blocks + (strand < longer); b < end; b++)
                    own = own + exact_run(p, set->columns, c, r, b, tile.form.has_less);
                sum = sum + own;
            }
            if (memcmp(&sum, &p->sums[c * STRIDE + r], 4) != 0)
                fail_msg("%s, exact, type %u, %u vectors, %u blocks: column %u times row %u is %.9g, not %.9g", set->name, type, vectors,
                         blocks, c, r, (double)p->sums[c * STRIDE + r], (double)sum);
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
    exact_problem *exact = malloc(sizeof *exact);
    assert_non_null(p);
    assert_non_null(exact);
    for (uint32_t level = 0; level <= hdcpu_level(); level++)
        for (uint32_t i = 0; levels[level](i); i++) {
            const int8_tiles *set = levels[level](i);
            print_message("%s\n", set->name);
            for (uint32_t type = HDI_TYPE_Q4_0; type <= HDI_TYPE_TQ1_0; type++)
                for (uint32_t way = 0; way < 16; way++) {
                    check_tile(p, set, type, way & 1 ? set->vectors : 1, way & 2 ? MOST_BLOCKS : 1, way & 4, way & 8);
                    check_exact(exact, set, type, way & 1 ? set->vectors : 1, way & 2 ? 2 : 0, way & 4, way & 8);
                }
        }
    free(p);
    free(exact);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_set) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
