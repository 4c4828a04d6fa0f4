/* chance_programs.h: what the tests of several devices share: programs by chance, places for their operations by chance, and two
 * runs with all results. */
#ifndef CHANCE_PROGRAMS_H
#define CHANCE_PROGRAMS_H

#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static hd_context *context;

static inline void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

static uint32_t seed = 1;
static inline uint32_t chance(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

enum { R = 6, C = 10, MOST = 64 };

/* A program of matrices [R,C] whose operations read earlier ones by chance. */
static inline hd_program *any_program(void) {
    hd_program *p = hd_program_create(context);
    hd_value made[MOST], half = 0;
    uint32_t count = 0;
    made[count++] = hd_input(p, "x", HD_F32, HD_SHAPE(R, C));
    made[count++] = hd_input(p, "v7", HD_F32, HD_SHAPE(R, C)); /* as a crossing would like to be called */
    hd_value w = hd_input(p, "w", HD_F32, HD_SHAPE(C, C)), row = hd_input(p, "row", HD_F32, HD_SHAPE(C)),
        at = hd_input(p, "at", HD_I32, HD_SHAPE(1));
    hd_value rows = hd_state(p, "rows", HD_F32, HD_SHAPE(2 * R, C));
    const uint32_t length = 6 + chance(14);
    for (uint32_t i = 0; i < length; i++) {
        hd_value a = made[chance(count)], b = made[chance(count)], v = 0;
        switch (chance(13)) {
        case 0: v = hd_add(p, a, b); break;
        case 1: v = hd_tanh(p, hd_mul(p, a, row)); break;
        case 2: v = hd_matmul(p, a, w); break;
        case 3: v = hd_softmax(p, a, -1); break;
        case 4: v = hd_reshape(p, hd_transpose(p, hd_transpose(p, a)), HD_SHAPE(R, C)); break;
        case 5: v = hd_where(p, hd_less(p, a, b), a, b); break; /* u8 may cross */
        case 6: v = hd_mul(p, a, hd_cast(p, hd_argmax(p, b, -1), HD_F32)); break; /* i32 */
        case 7: half = hd_cast(p, a, HD_F16), v = hd_cast(p, hd_neg(p, half), HD_F32); break;
        case 8:
            rows = hd_write_rows(p, rows, a, at);
            v = hd_slice(p, rows, (int64_t[]){ 1, 0 }, (int64_t[]){ 1 + R, C }, 2);
            break;
        case 9: v = hd_add(p, a, hd_neg(p, hd_mean(p, b, -1))); break;
        case 11: /* reads the old rows, later than others are written that need less */
            v = hd_slice(p, hd_sub(p, hd_concat(p, (hd_value[]){ a, b }, 2, 0), rows), (int64_t[]){ 3, 0 },
                (int64_t[]){ 3 + R, C }, 2);
            break;
        case 10: v = hd_rms_norm(p, a, row, 1e-5f); break;
        default: v = hd_clip(p, hd_scale(p, a, 0.5f, 1), -2, 2); break;
        }
        made[count++] = v;
    }
    hd_output(p, "y", made[count - 1]);
    hd_output(p, "mid", made[count / 2 + 1]);
    hd_output(p, "v9", rows); /* the state as an output */
    check(hd_program_check(p));
    return p;
}

/* A part for each device. */
static inline size_t any_parts(uint32_t devices, char *out, size_t room) {
    size_t at = 0;
    for (uint32_t d = 0; d < devices; d++) at += (size_t)snprintf(out + at, room - at, ":%u", 1 + chance(99));
    return at;
}

/* A place for each operation by chance, in half of the routes often a share of its rows, or of its columns where there are
 * more than two devices; for those that touch states only now and then, and for one device. */
static inline void any_route(const hd_program *p, uint32_t devices, char *out, size_t room) {
    static char text[1 << 16];
    size_t at = 0;
    hd_program_print(p, text, sizeof text, NULL);
    const uint32_t bias = 1 + chance(4), state_side = chance(3), shared = chance(2);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        char word[32];
        unsigned value;
        if (sscanf(line, "v%u = %31s", &value, word) != 2 || strcmp(word, "input") == 0 || strcmp(word, "state") == 0)
            continue;
        if (strcmp(word, "slice") == 0 || strcmp(word, "sub") == 0) continue; /* of the state */
        if (strcmp(word, "write_rows") == 0) {
            if (state_side < 2) at += (size_t)snprintf(out + at, room - at, "v%u=%u,", value, state_side);
        } else if (shared && chance(2)) { /* of two values, so that one that cannot be shared is no failure */
            const bool two = line[strcspn(line, "\n") + 1] == 'v';
            const char *axis = two && devices > 2 && chance(3) == 0 ? "columns" : "rows";
            at += (size_t)snprintf(out + at, room - at, "v%u-v%u=%s", value, value + two, axis);
            at += any_parts(devices, out + at, room - at);
            at += (size_t)snprintf(out + at, room - at, ",");
        } else
            at += (size_t)snprintf(out + at, room - at, "v%u=%u,", value,
                chance(5) < bias ? devices == 2 ? 1 : 1 + chance(devices - 1) : 0);
    }
    snprintf(out + at, room - at, "rest=%u", chance(devices));
}

typedef struct results {
    float y[2][R * C], mid[2][R * C], rows[2][2 * R * C], state[2 * R * C];
} results;

static inline void run_twice(hd_plan *plan, results *out) {
    float x[R * C], other[R * C], w[C * C], row[C];
    for (int i = 0; i < C * C; i++) w[i] = (float)((i * 7) % 11 - 5) / 8;
    for (int i = 0; i < C; i++) row[i] = 1 - (float)i / 16;
    check(hd_plan_write(plan, "w", w, sizeof w));
    check(hd_plan_write(plan, "row", row, sizeof row));
    for (int run = 0; run < 2; run++) {
        const int32_t at = 2 + run;
        for (int i = 0; i < R * C; i++) x[i] = (float)((i * 5 + run * 3) % 17 - 8) / 4,
            other[i] = (float)((i * 3 + run) % 13 - 6) / 3;
        check(hd_plan_write(plan, "x", x, sizeof x));
        check(hd_plan_write(plan, "v7", other, sizeof other));
        check(hd_plan_write(plan, "at", &at, sizeof at));
        check(hd_plan_run(plan, NULL));
        check(hd_plan_read(plan, "y", out->y[run], sizeof out->y[run]));
        check(hd_plan_read(plan, "mid", out->mid[run], sizeof out->mid[run]));
        check(hd_plan_read(plan, "v9", out->rows[run], sizeof out->rows[run]));
    }
    check(hd_plan_read(plan, "rows", out->state, sizeof out->state));
}
#endif
