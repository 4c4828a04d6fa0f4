/* test_placements.c: the demo model's program on the CPU, Vulkan and OpenCL at once: wherever its operations are, exact mode
 * gives the logits of the CPU alone, bit by bit, for a prompt and the token after it. */
#include "llm/graph.h"
#include "unit/saved.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PROMPT = 5, PLACES = 4 };

static hd_context *context;
static hd_device *devices[3];
static hd_model *model;

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

static int open_all(void **state) {
    (void)state;
    const char *const ids[] = { "cpu", "vulkan", "opencl" };
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context)) return -1;
    for (int i = 0; i < 3; i++)
        if (hd_device_open(context, &(hd_device_desc){ .id = ids[i] }, &devices[i])) hd_context_error(context);
    if (hd_model_open(context, HEDDLE_TESTS_DIR "/../models/demo.gguf", NULL, &model) || hdl_model_find(&model)) return -1;
    return devices[0] ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    hd_model_close(model);
    hd_context_destroy(context);
    return 0;
}

/* ---- one size ---- */

static void write_weights(hd_plan *plan) {
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        char name[HDL_WEIGHT_NAME];
        hdl_span data;
        hd_error error = { 0 };
        if (!w->present) continue;
        hdl_weight_name(i / model->layer_weights, w->row, name);
        assert_int_equal(hdl_gguf_data(model->gguf, &w->tensor, &data, &error), HD_OK);
        check(hd_plan_write(plan, name, data.bytes, data.count));
    }
}

/* The logits of the last of `tokens`, behind no other ones. */
static void run(hd_plan *plan, uint32_t tokens, float *out_logits) {
    int32_t ids[PROMPT], positions[PROMPT];
    const int32_t past = 0, last = (int32_t)tokens - 1, page = 0;
    for (uint32_t i = 0; i < tokens; i++) {
        ids[i] = (int32_t)(17 * i + 40);
        positions[i] = (int32_t)i;
    }
    write_weights(plan);
    check(hd_plan_write(plan, "tokens", ids, tokens * sizeof *ids));
    check(hd_plan_write(plan, "positions", positions, tokens * sizeof *positions));
    check(hd_plan_write(plan, "past", &past, sizeof past));
    check(hd_plan_write(plan, "pages", &page, sizeof page));
    if (tokens > 1) check(hd_plan_write(plan, "last", &last, sizeof last));
    check(hd_plan_run(plan, NULL));
    check(hd_plan_read(plan, "logits", out_logits, model->figures.vocabulary * sizeof *out_logits));
}

static uint32_t seed = 22;
static uint32_t chance(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* A device for each kind of operation, and in every second route another one for the first half of the values. What touches a
 * cache stays together. */
static void any_route(uint32_t k, char *out, size_t room) {
    static const char *const kinds[] = { "matmul", "rms_norm", "add", "mul", "silu", "rope", "gather", "permute", "scale" };
    size_t at = 0;
    if (k % 2) at += (size_t)snprintf(out, room, "write_rows=%u,attention=%u,", k % 3, k % 3);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        at += (size_t)snprintf(out + at, room - at, "%s=%u,", kinds[i], chance(3));
    snprintf(out + at, room - at, "rest=%u", chance(3));
}

static void places_do_not_change_bits(uint32_t tokens) {
    const hdl_size size = { .sequences = 1, .tokens = tokens, .bucket = HDL_PAGE_TOKENS, .pages = 1, .results = 1,
                           .cache_type = HD_F16 };
    const size_t bytes = model->figures.vocabulary * sizeof(float);
    float *alone = malloc(bytes), *placed = malloc(bytes);
    hdl_placed graph;
    hd_plan *plan = NULL;
    assert_true(alone && placed);
    check(hdl_graph_build(model, (hdl_split){ 0 }, size, &graph));
    check(hd_plan_create(devices[0], graph.program, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
    run(plan, tokens, alone);
    hd_plan_destroy(plan);
    for (uint32_t k = 0; k < PLACES; k++) {
        char route[512];
        hd_plan_stats stats;
        any_route(k, route, sizeof route);
        check(hd_plan_create(devices[0], graph.program, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = devices + 1,
                                                                         .beside_count = 2, .route = route }, &plan));
        run(plan, tokens, placed);
        if (memcmp(alone, placed, bytes) != 0) fail_msg("route \"%s\" gives other bits", route);
        hd_plan *again = saved_and_loaded(context, plan, devices, 3);
        run(again, tokens, placed);
        if (memcmp(alone, placed, bytes) != 0) fail_msg("route \"%s\", saved and read back, gives other bits", route);
        hd_plan_destroy(again);
        check(hd_plan_get_stats(plan, &stats));
        print_message("%u tokens, %s: %u segments, %llu bytes crossing\n", tokens, route, stats.segments,
                      (unsigned long long)stats.crossing_bytes);
        assert_true(stats.segments > model->figures.layers);
        hd_plan_destroy(plan);
    }
    hdl_placed_end(model, &graph);
    free(alone);
    free(placed);
}

static void wherever_operations_are(void **state) {
    (void)state;
    if (!devices[1] || !devices[2]) {
        print_message("no vulkan or no opencl here\n");
        skip();
    }
    places_do_not_change_bits(PROMPT);
    places_do_not_change_bits(1);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(wherever_operations_are) };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
