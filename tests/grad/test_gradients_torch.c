/* test_gradients_torch.c: gradients against PyTorch's (torch.txt, by tools/fixtures/gradients_fixture.py): operations where
 * there are ties, corners and odd shapes, and blocks as of gpt2 and llama. Every case runs on the CPU in both modes; the
 * blocks also on the other devices that are here, in exact mode, with what is kept and with all computed again: the bits
 * have to be the CPU's. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 32, MOST_TEXT = 1 << 16, MOST_LINE = 1 << 20 };

typedef struct tensor {
    char     name[16];
    hd_value value, gradient;
    uint64_t count;
    float   *data, *expected; /* expected NULL: none */
} tensor;

static struct {
    char     name[96], program[MOST_TEXT];
    tensor   tensors[MOST_TENSORS];
    uint32_t count;
} c;

static float *numbers(const char *text, uint64_t *out_count) {
    float *made = NULL;
    uint64_t count = 0;
    for (char *end; ; text = end) {
        const float number = strtof(text, &end);
        if (end == text) break;
        made = realloc(made, (count + 1) * sizeof *made);
        assert_non_null(made);
        made[count++] = number;
    }
    *out_count = count;
    return made;
}

static tensor *named(const char *name) {
    for (uint32_t i = 0; i < c.count; i++) if (!strcmp(c.tensors[i].name, name)) return &c.tensors[i];
    assert_true(c.count < MOST_TENSORS);
    snprintf(c.tensors[c.count].name, sizeof c.tensors[0].name, "%s", name);
    return &c.tensors[c.count++];
}

/* Reads the next case; false at the file's end. */
static bool next(FILE *file, char *line) {
    for (uint32_t i = 0; i < c.count; i++) {
        free(c.tensors[i].data);
        free(c.tensors[i].expected);
    }
    memset(&c, 0, sizeof c);
    while (fgets(line, MOST_LINE, file)) {
        char name[16] = "";
        uint64_t count;
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "end")) return true;
        if (!strncmp(line, "case ", 5)) snprintf(c.name, sizeof c.name, "%s", line + 5);
        else if (!strncmp(line, "| ", 2)) snprintf(c.program + strlen(c.program), sizeof c.program - strlen(c.program), "%s\n", line + 2);
        else if (sscanf(line, "in %15s", name) == 1) named(name)->data = numbers(line + 4 + strlen(name), &named(name)->count);
        else if (sscanf(line, "grad %15s", name) == 1) named(name)->expected = numbers(line + 6 + strlen(name), &count);
    }
    return false;
}

/* The program with its gradients as outputs. @param again: all is computed again. */
static hd_program *build(hd_context *context, bool again) {
    hd_program *p = NULL;
    hd_value wanted[MOST_TENSORS], gradients[MOST_TENSORS];
    char with_end[MOST_TEXT + 64];
    snprintf(with_end, sizeof with_end, "heddle 1\n%soutput end \"end\"\n", c.program);
    if (hd_program_parse(context, with_end, strlen(with_end), &p)) fail_msg("%s: %s", c.name, hd_context_error(context));
    hd_value end = 0;
    for (size_t k = 0; k < hd_program_port_count(p); k++) {
        const hd_port port = hd_program_port(p, k);
        for (uint32_t i = 0; i < c.count; i++) if (!strcmp(port.name, c.tensors[i].name)) wanted[i] = c.tensors[i].value = port.value;
        if (!strcmp(port.name, "end")) end = port.value;
    }
    const hd_value loss = hd_sum(p, end, HD_ALL_AXES);
    if (hd_gradients(p, loss, wanted, c.count, &(hd_gradients_desc){ .recompute = again }, gradients)) fail_msg("%s: %s", c.name, hd_context_error(context));
    for (uint32_t i = 0; i < c.count; i++) {
        char name[24];
        snprintf(name, sizeof name, "d_%s", c.tensors[i].name);
        c.tensors[i].gradient = gradients[i];
        if (gradients[i]) hd_output(p, name, gradients[i]);
    }
    return p;
}

/* Runs it; out_results[i] receives tensor i's gradient. */
static void run(hd_context *context, hd_device *device, hd_math math, bool again, float *out_results[MOST_TENSORS]) {
    hd_program *p = build(context, again);
    hd_plan *plan = NULL;
    if (hd_plan_create(device, p, &(hd_plan_desc){ .math = math }, &plan)) fail_msg("%s: %s", c.name, hd_context_error(context));
    for (uint32_t i = 0; i < c.count; i++) {
        const tensor *t = &c.tensors[i];
        hd_dtype dtype;
        hd_shape shape;
        assert_int_equal(hd_value_describe(p, t->value, &dtype, &shape), HD_OK);
        unsigned char *bytes = malloc(t->count * 4);
        assert_non_null(bytes);
        assert_int_equal(t->count, hd_shape_elements(shape));
        for (uint64_t k = 0; k < t->count; k++) {
            if (dtype == HD_F32) memcpy(bytes + 4 * k, &t->data[k], 4);
            else if (dtype == HD_I32) memcpy(bytes + 4 * k, &(int32_t){ (int32_t)t->data[k] }, 4);
            else bytes[k] = (unsigned char)t->data[k];
        }
        if (hd_plan_write(plan, t->name, bytes, hd_tensor_bytes(dtype, shape))) fail_msg("%s: %s", c.name, hd_context_error(context));
        free(bytes);
    }
    if (hd_plan_run(plan, NULL)) fail_msg("%s: %s", c.name, hd_context_error(context));
    for (uint32_t i = 0; i < c.count; i++) {
        char name[24];
        snprintf(name, sizeof name, "d_%s", c.tensors[i].name);
        out_results[i] = c.tensors[i].gradient ? malloc(c.tensors[i].count * 4) : NULL;
        if (out_results[i] && hd_plan_read(plan, name, out_results[i], c.tensors[i].count * 4)) fail_msg("%s: %s", c.name, hd_context_error(context));
    }
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}
static void release(float *results[MOST_TENSORS]) { for (uint32_t i = 0; i < c.count; i++) free(results[i]); }

static void compare(float *const results[MOST_TENSORS], float bound) {
    for (uint32_t i = 0; i < c.count; i++) {
        const tensor *t = &c.tensors[i];
        float most = 0;
        if (!strcmp(t->name, "weight")) continue;
        if (!results[i] != !t->expected) fail_msg("%s: there is %s gradient of %s", c.name, results[i] ? "a" : "no", t->name);
        for (uint64_t k = 0; t->expected && k < t->count; k++) if (isfinite(t->expected[k])) most = fmaxf(most, fabsf(t->expected[k]));
        for (uint64_t k = 0; t->expected && k < t->count; k++) {
            const float ours = results[i][k], theirs = t->expected[k];
            const bool same = isfinite(theirs) ? fabsf(ours - theirs) <= bound * most + 1e-30f : isnan(theirs) ? isnan(ours) : ours == theirs;
            if (!same) fail_msg("%s: the gradient of %s at %llu is %.9g, PyTorch has %.9g", c.name, t->name, (unsigned long long)k, (double)ours, (double)theirs);
        }
    }
}

static void equal_bits(float *const a[MOST_TENSORS], float *const b[MOST_TENSORS], const char *what) {
    for (uint32_t i = 0; i < c.count; i++)
        if (a[i] && memcmp(a[i], b[i], c.tensors[i].count * 4)) fail_msg("%s: the gradient of %s has other bits %s", c.name, c.tensors[i].name, what);
}

static void on_devices(float *const cpu_results[MOST_TENSORS]) {
    static const char *const names[] = { "vulkan", "opencl" };
    for (size_t d = 0; d < 2; d++) {
        hd_context *context;
        hd_device *device;
        float *results[MOST_TENSORS];
        assert_int_equal(hd_context_create(&(hd_context_desc){ .wait_ns = UINT64_C(600000000000) }, &context), HD_OK);
        if (hd_device_open(context, &(hd_device_desc){ .id = names[d] }, &device) == HD_OK) {
            run(context, device, HD_MATH_EXACT, d == 0, results);
            equal_bits(results, cpu_results, d == 0 ? "on vulkan, computed again," : "on opencl");
            release(results);
        } else {
            printf("%s is not here\n", names[d]);
        }
        hd_context_destroy(context);
    }
}

static void as_torch(void **state) {
    (void)state;
    FILE *file = fopen(HEDDLE_TESTS_DIR "/grad/torch.txt", "r");
    char *line = malloc(MOST_LINE);
    hd_context *context;
    hd_device *cpu;
    uint32_t cases = 0;
    assert_true(file && line);
    assert_int_equal(hd_context_create(NULL, &context), HD_OK);
    assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu), HD_OK);
    while (next(file, line)) {
        float *kept[MOST_TENSORS], *again[MOST_TENSORS], *fast[MOST_TENSORS];
        const bool is_block = !strncmp(c.name, "a block", 7);
        run(context, cpu, HD_MATH_EXACT, false, kept);
        compare(kept, is_block ? 1e-4f : 1e-5f);
        run(context, cpu, HD_MATH_EXACT, true, again);
        equal_bits(again, kept, "when computed again");
        run(context, cpu, HD_MATH_FAST, false, fast);
        compare(fast, is_block ? 1e-4f : 1e-5f);
        if (is_block) on_devices(kept);
        release(kept);
        release(again);
        release(fast);
        cases++;
    }
    assert_true(cases >= 38);
    printf("%u cases\n", cases);
    hd_context_destroy(context);
    free(line);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_torch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
