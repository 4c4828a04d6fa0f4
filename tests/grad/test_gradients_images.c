/* test_gradients_images.c: convolution, pooling and resizing beside PyTorch's (images.txt, by tools/fixtures/images_fixture.py):
 * the results and the gradients of all inputs, on the CPU in both modes; and the same gradients against central differences. */
#include "differences.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINE = 1 << 17, MOST_INPUTS = 3, MOST_NUMBERS = 16, MOST_ELEMENTS = 2048 };

typedef struct tensor {
    hd_shape shape;
    uint64_t count;
    float    data[MOST_ELEMENTS];
} tensor;

static struct {
    char     name[32];
    long     numbers[MOST_NUMBERS];
    tensor   inputs[MOST_INPUTS], gradients[MOST_INPUTS], out, weight;
    uint32_t count; /* of inputs */
} c;
static const char *const input_names[] = { "x", "w", "bias" };

static char *read_shape(char *text, hd_shape *out) {
    out->rank = 0;
    do out->dims[out->rank++] = strtol(text, &text, 10); while (*text++ == ',');
    return text;
}
static void read_numbers(char *text, tensor *to) {
    char *end;
    for (to->count = 0; ; text = end) {
        const float number = strtof(text, &end);
        if (end == text) return;
        assert_true(to->count < MOST_ELEMENTS);
        to->data[to->count++] = number;
    }
}

/* Reads the next case; false at the file's end. */
static bool next(FILE *file) {
    static char line[MOST_LINE];
    memset(&c, 0, sizeof c);
    while (fgets(line, sizeof line, file)) {
        char word[16] = "";
        int at = 0;
        if (!strncmp(line, "end", 3)) return true;
        if (sscanf(line, "case %31s%n", c.name, &at) == 1) {
            char *text = line + at;
            for (int i = 0; i < MOST_NUMBERS; i++) c.numbers[i] = strtol(text, &text, 10);
        } else if (sscanf(line, "in %15s %n", word, &at) == 1) {
            tensor *t = &c.inputs[c.count++];
            read_numbers(read_shape(line + at, &t->shape), t);
        } else if (!strncmp(line, "out ", 4)) read_numbers(read_shape(line + 4, &c.out.shape), &c.out);
        else if (!strncmp(line, "weight ", 7)) read_numbers(line + 7, &c.weight);
        else if (sscanf(line, "grad %15s %n", word, &at) == 1)
            for (int i = 0; i < MOST_INPUTS; i++) if (!strcmp(word, input_names[i])) read_numbers(line + at, &c.gradients[i]);
    }
    return false;
}

static void pair(uint32_t to[2], const long *from) { to[0] = (uint32_t)from[0], to[1] = (uint32_t)from[1]; }

/* What the case is about, of values. */
static hd_value call(hd_program *p, const hd_value inputs[MOST_INPUTS]) {
    const long *n = c.numbers;
    if (!strncmp(c.name, "conv", 4)) {
        hd_conv_desc d = { .groups = (uint32_t)n[10] };
        pair(d.stride, n), pair(d.dilation, n + 2), pair(d.pad_before, n + 4), pair(d.pad_after, n + 6), pair(d.output_pad, n + 8);
        return (strcmp(c.name, "conv") ? hd_conv_transpose : hd_conv)(p, inputs[0], inputs[1], inputs[2], &d);
    }
    if (!strcmp(c.name, "resize")) return hd_resize(p, inputs[0], (const int64_t[]){ n[2], n[3], n[4] }, (uint32_t)n[0], (hd_resize_mode)n[1]);
    hd_pool_desc d = { .ceil_mode = (int)n[10], .count_pad = (int)n[11] };
    pair(d.size, n), pair(d.stride, n + 2), pair(d.dilation, n + 4), pair(d.pad_before, n + 6), pair(d.pad_after, n + 8);
    return (strcmp(c.name, "max_pool") ? hd_mean_pool : hd_max_pool)(p, inputs[0], &d);
}

static void compare(const char *what, hd_plan *plan, const char *name, const tensor *expected) {
    static float got[MOST_ELEMENTS];
    float most = 0;
    assert_int_equal(hd_plan_read(plan, name, got, expected->count * sizeof *got), HD_OK);
    for (uint64_t i = 0; i < expected->count; i++) most = fmaxf(most, fabsf(expected->data[i]));
    for (uint64_t i = 0; i < expected->count; i++)
        if (!(fabsf(got[i] - expected->data[i]) <= 2e-6f * most))
            fail_msg("%s of case %s: element %d is %.9g, PyTorch has %.9g", what, c.name, (int)i, (double)got[i], (double)expected->data[i]);
}

static void as_torch(void **state) {
    (void)state;
    FILE *file = fopen(HEDDLE_TESTS_DIR "/grad/images.txt", "r");
    hd_context *context;
    hd_device *cpu;
    uint32_t cases = 0;
    assert_non_null(file);
    assert_int_equal(hd_context_create(NULL, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu), HD_OK);
    while (next(file)) {
        hd_program *p = hd_program_create(context);
        hd_value inputs[MOST_INPUTS] = { 0 }, gradients[MOST_INPUTS];
        static const char *const names[] = { "dx", "dw", "dbias" };
        for (uint32_t i = 0; i < c.count; i++) inputs[i] = hd_input(p, input_names[i], HD_F32, c.inputs[i].shape);
        const hd_value y = call(p, inputs), weight = hd_input(p, "weight", HD_F32, c.out.shape);
        const hd_value loss = hd_sum(p, hd_mul(p, y, weight), HD_ALL_AXES);
        hd_output(p, "y", y);
        /* in turn with all kept, computed again, and sums over rows in chunks */
        const hd_gradients_desc desc = { .recompute = cases % 3 == 1, .chunk_rows = cases % 3 == 2 ? 3 : 0 };
        if (hd_gradients(p, loss, inputs, c.count, &desc, gradients)) fail_msg("case %s: %s", c.name, hd_context_error(context));
        for (uint32_t i = 0; i < c.count; i++) hd_output(p, names[i], gradients[i]);
        for (int mode = HD_MATH_FAST; mode <= HD_MATH_EXACT; mode++) {
            hd_plan *plan;
            if (hd_plan_create(cpu, p, &(hd_plan_desc){ .math = (hd_math)mode }, &plan)) fail_msg("case %s: %s", c.name, hd_context_error(context));
            for (uint32_t i = 0; i < c.count; i++) assert_int_equal(hd_plan_write(plan, input_names[i], c.inputs[i].data, c.inputs[i].count * 4), HD_OK);
            assert_int_equal(hd_plan_write(plan, "weight", c.weight.data, c.weight.count * 4), HD_OK);
            if (hd_plan_run(plan, NULL)) fail_msg("case %s: %s", c.name, hd_context_error(context));
            compare("the result", plan, "y", &c.out);
            for (uint32_t i = 0; i < c.count; i++) compare(names[i], plan, names[i], &c.gradients[i]);
            hd_plan_destroy(plan);
        }
        hd_program_destroy(p);
        cases++;
    }
    printf("%u cases\n", cases);
    assert_true(cases >= 40);
    fclose(file);
    hd_context_destroy(context);
}

static void by_differences(void **state) {
    (void)state;
    FILE *file = fopen(HEDDLE_TESTS_DIR "/grad/images.txt", "r");
    assert_non_null(file);
    while (next(file))
        for (int round = 0; round < 3; round++) {
            hd_value inputs[MOST_INPUTS] = { 0 };
            begin(c.name);
            for (uint32_t i = 0; i < c.count; i++) inputs[i] = round == 2 ? typed(HD_F16, c.inputs[i].shape, FILL_UNIT) : floats(c.inputs[i].shape, FILL_UNIT);
            judge(call(program(), inputs));
        }
    fclose(file);
    for (uint32_t rank = 1; rank < HD_MAX_RANK; rank++)
        for (uint32_t axis = 0; axis < rank; axis++)
            for (int round = 0; round < 4; round++) {
                hd_shape shape = { rank + 1, { 2, 3, 2, 3, 2 } };
                const int64_t size = 1 + chance(4), stride = 1 + chance(3), dilation = 1 + chance(3), count = 1 + chance(4);
                shape.dims[axis] = count;
                shape.dims[rank] = size;
                begin("windows_sum");
                const int64_t length = (count - 1) * stride + (size - 1) * dilation + 1 + chance(3);
                judge(hd_windows_sum(program(), floats(shape, FILL_UNIT), (int)axis, length, stride, dilation));
                shape.rank = rank;
                shape.dims[axis] = length;
                begin("windows");
                judge(hd_windows(program(), floats(shape, FILL_UNIT), (int)axis, size, stride, dilation));
            }
    printf("%u cases by differences\n", judged);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_torch), cmocka_unit_test(by_differences) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
