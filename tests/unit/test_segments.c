/* test_segments.c: places from texts, what becomes of them, and programs cut by them: which operations are together, what
 * crosses, and that nothing that was in the program is missing. No device is needed. */
#include "program/segments.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "program_cases.h"

static hd_program *parse(const hd_allocator *allocator, const char *text) {
    hd_program *program = hdi_program_new(allocator, NULL);
    hd_error error = { 0 };
    assert_non_null(program);
    if (hdi_program_parse(program, text, strlen(text), test_find_kernel, NULL, &error)) fail_msg("%s", error.text);
    return program;
}

/* The cut of a program by a route, as text; or why there is none. */
static char *cut_text(const char *program_text, const char *route) {
    static char out[4096];
    hd_program *program = parse(&hdi_default_allocator, program_text);
    uint8_t *places = calloc(program->node_count, 1);
    hd_error error = { 0 };
    hdi_segments segments;
    hdi_text text = { .allocator = &hdi_default_allocator };
    hd_status status = hdi_places_parse(program, route, places, &error);
    if (!status) status = hdi_places_settle(program, (const bool[2]){ true, false }, places, &error);
    if (!status) status = hdi_segments_cut(program, places, &segments, &error);
    if (status) snprintf(out, sizeof out, "%s: %s\n", hd_status_name(status), error.text);
    else {
        hdi_segments_print(program, &segments, (const char *const[2]){ "A", "B" }, &text);
        snprintf(out, sizeof out, "%s", text.bytes);
        for (uint32_t s = 0; s < segments.count; s++) assert_int_equal(hdi_program_check(segments.items[s].program, &error), HD_OK);
        hdi_segments_free(&segments);
    }
    hdi_text_free(&text);
    hdi_program_free(program);
    free(places);
    return out;
}

static const char chain[] =
    "heddle 1\nv1 = input f32[4,8] \"x\"\nv2 = input f32[8,6] \"w\"\nv3 = matmul v1 v2\nv4 = relu v3\nv5 = input f32[6,6] \"v4\"\n"
    "v6 = matmul v4 v5\nv7 = relu v6\nv8 = matmul v7 v5\noutput v8 \"y\"\noutput v4 \"v3\"\n";
static const char branches[] =
    "heddle 1\nv1 = input f32[8] \"x\"\nv2 = exp v1\nv3 = log v1\nv4 = neg v2\nv5 = abs v3\nv6 = add v4 v5\noutput v6 \"y\"\n";
static const char cache[] =
    "heddle 1\nv1 = input f32[2,3,4] \"x\"\nv2 = input i32[1] \"past\"\nv3 = state f32[9,3,4] \"k\"\nv4 = state f32[9,3,4] \"v\"\nv5 = scale v3 factor=1 bias=0\n"
    "v6 = neg v1\nv7 = write_rows v3 v6 v2\nv8 = write_rows v4 v1 v2\nv9 = attention v1 v7 v8 v2 scale=1\nv10 = relu v9\noutput v10 \"y\"\noutput v5 \"old\"\n"
    "v11 = state f32[4] \"unused\"\n";

static void cuts_are_as_written(void **state) {
    (void)state;
    assert_string_equal(cut_text(chain, "rest=device"), "segment 0 on A: v3 matmul, v4 relu, v6 matmul, v7 relu, v8 matmul\n");
    assert_string_equal(cut_text(chain, "matmul=beside"),
                        "segment 0 on B: v3 matmul\nsegment 1 on A: v4 relu\n  takes v3 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v6 matmul\n  takes v4 f32[4,6] of segment 1: 96 bytes cross\nsegment 3 on A: v7 relu\n"
                        "  takes v6 f32[4,6] of segment 2: 96 bytes cross\nsegment 4 on B: v8 matmul\n  takes v7 f32[4,6] of segment 3: 96 bytes cross\n");
    assert_string_equal(cut_text(chain, "v4-v6=beside,relu=device,rest=beside"),
                        "segment 0 on B: v3 matmul, v4 relu, v6 matmul\nsegment 1 on A: v7 relu\n  takes v6 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v8 matmul\n  takes v7 f32[4,6] of segment 1: 96 bytes cross\n");
    /* Two branches are one segment each, whatever the order of their operations. */
    assert_string_equal(cut_text(branches, "v3=beside,v5=beside"),
                        "segment 0 on B: v3 log, v5 abs\nsegment 1 on A: v2 exp, v4 neg, v6 add\n  takes v5 f32[8] of segment 0: 32 bytes cross\n");
    /* A value that comes back lies there already; one that two segments of a device read crosses once. */
    assert_string_equal(cut_text(branches, "v4-v5=beside"),
                        "segment 0 on A: v2 exp, v3 log\nsegment 1 on B: v4 neg, v5 abs\n  takes v2 f32[8] of segment 0: 32 bytes cross\n"
                        "  takes v3 f32[8] of segment 0: 32 bytes cross\nsegment 2 on A: v6 add\n  takes v4 f32[8] of segment 1: 32 bytes cross\n"
                        "  takes v5 f32[8] of segment 1: 32 bytes cross\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\nv2 = exp v1\nv3 = neg v2\nv4 = add v2 v3\nv5 = abs v4\nv6 = add v5 v3\noutput v6 \"y\"\n", "v3=beside,v5=beside"),
                        "segment 0 on A: v2 exp\nsegment 1 on B: v3 neg\n  takes v2 f32[8] of segment 0: 32 bytes cross\nsegment 2 on A: v4 add\n"
                        "  takes v2 f32[8] of segment 0: there already\n  takes v3 f32[8] of segment 1: 32 bytes cross\nsegment 3 on B: v5 abs\n"
                        "  takes v4 f32[8] of segment 2: 32 bytes cross\nsegment 4 on A: v6 add\n  takes v5 f32[8] of segment 3: 32 bytes cross\n"
                        "  takes v3 f32[8] of segment 1: there already\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\nv2 = exp v1\nv3 = neg v1\noutput v1 \"same\"\noutput v3 \"y\"\n", "exp=beside"), "segment 0 on A: v3 neg\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\noutput v1 \"y\"\n", "rest=beside"), "segment 0 on A: no operations\n");
}

static void states_stay_on_one_device(void **state) {
    (void)state;
    /* Attention reads both states, so all that touches either goes with it; the old rows are read before they are overwritten. */
    assert_string_equal(cut_text(cache, "attention=beside"),
                        "segment 0 on A: v6 neg\nsegment 1 on B: v5 scale, v7 write_rows, v8 write_rows, v9 attention\n  takes v6 f32[2,3,4] of segment 0: 96 bytes cross\n"
                        "segment 2 on A: v10 relu\n  takes v9 f32[2,3,4] of segment 1: 96 bytes cross\n");
    /* By number where none is asked for: 4 operations touch the states. */
    assert_string_equal(cut_text(cache, "relu=device,rest=beside"),
                        "segment 0 on B: v5 scale, v6 neg, v7 write_rows, v8 write_rows, v9 attention\nsegment 1 on A: v10 relu\n  takes v9 f32[2,3,4] of segment 0: 96 bytes cross\n");
    assert_string_equal(cut_text(cache, "attention=beside,scale=device"),
                        "unsupported: route: state \"k\": v5 is placed on the device and v9 beside it; all that touches a state is on one device\n");
    /* Rows are not overwritten before a later segment has read the old ones. */
    assert_string_equal(cut_text("heddle 1\nv1 = state f32[4,2] \"s\"\nv2 = input i32[1] \"p\"\nv3 = input f32[4,2] \"x\"\nv4 = neg v3\nv5 = abs v4\nv6 = add v1 v5\n"
                                 "v7 = write_rows v1 v3 v2\noutput v6 \"y\"\n", "abs=beside"),
                        "segment 0 on A: v4 neg\nsegment 1 on B: v5 abs\n  takes v4 f32[4,2] of segment 0: 32 bytes cross\n"
                        "segment 2 on A: v6 add, v7 write_rows\n  takes v5 f32[4,2] of segment 1: 32 bytes cross\n");
    /* Written twice, with a way around over the other device. */
    assert_string_equal(cut_text("heddle 1\nv1 = state f32[4,2] \"s\"\nv2 = input i32[1] \"p\"\nv3 = input f32[1,2] \"x\"\nv4 = write_rows v1 v3 v2\nv5 = neg v4\nv6 = abs v5\n"
                                 "v7 = slice v6 begin=[0,0] end=[1,2]\nv8 = write_rows v4 v7 v2\nv9 = neg v8\noutput v9 \"y\"\noutput v8 \"all\"\n", "abs=beside"),
                        "segment 0 on A: v4 write_rows, v5 neg\nsegment 1 on B: v6 abs\n  takes v5 f32[4,2] of segment 0: 32 bytes cross\n"
                        "segment 2 on A: v7 slice, v8 write_rows, v9 neg\n  takes v6 f32[4,2] of segment 1: 32 bytes cross\n");
}

static void own_kernels_go_where_they_run(void **state) {
    (void)state;
    static const char text[] = "heddle 1\nv1 = input f32[4,6] \"x\"\nv2 = neg v1\nv3 = dispatch v1 v2 kernel=0123456789abcdef dtype=f32 shape=[4,6] push=00000007deadbeef groups=[4,2,1]\n"
                               "v4 = neg v3\noutput v4 \"y\"\n";
    assert_string_equal(cut_text(text, "rest=beside"),
                        "segment 0 on B: v2 neg\nsegment 1 on A: v3 dispatch\n  takes v2 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v4 neg\n  takes v3 f32[4,6] of segment 1: 96 bytes cross\n");
    assert_string_equal(cut_text(text, "dispatch=beside"), "unsupported: route: v3 is a kernel of your own, and the second device does not run SPIR-V; place it on the other one\n");
}

/* Names of crossings give way to the caller's; sources that nothing reads are still there. */
static void names_do_not_collide(void **state) {
    (void)state;
    hd_program *program = parse(&hdi_default_allocator, chain);
    uint8_t places[8] = { 0, 0, 0, 1, 0, 0, 0, 0 };
    hdi_segments segments;
    hd_error error = { 0 };
    assert_int_equal(hdi_segments_cut(program, places, &segments, &error), HD_OK);
    assert_int_equal(segments.count, 3);
    assert_string_equal(segments.items[1].program->nodes[0].name, "v3.1"); /* an output is called "v3" */
    assert_true(hdi_segments_is_crossing(program, &segments.items[1].program->nodes[0]));
    assert_int_equal(segments.items[1].program->output_count, 2);
    assert_string_equal(segments.items[1].program->outputs[0].name, "v3");
    assert_string_equal(segments.items[1].program->outputs[1].name, "v4.1"); /* an input is called "v4" */
    hdi_segments_free(&segments);
    hdi_program_free(program);
    program = parse(&hdi_default_allocator, cache);
    memset(places, 0, sizeof places);
    uint8_t more[11] = { [5] = 1 };
    assert_int_equal(hdi_segments_cut(program, more, &segments, &error), HD_OK);
    uint32_t states = 0;
    for (uint32_t s = 0; s < segments.count; s++)
        for (uint32_t i = 0; i < segments.items[s].program->node_count; i++) {
            const hdi_node *node = &segments.items[s].program->nodes[i];
            states += node->op == HDI_OP_STATE && strcmp(node->name, "unused") == 0;
        }
    assert_int_equal(states, 1);
    hdi_segments_free(&segments);
    hdi_program_free(program);
}

static void hostile_routes_are_refused(void **state) {
    (void)state;
    static const struct { const char *route, *wanted; } bad[] = {
        { "", "parse: route: byte 1: an item is" }, { "matmul", "parse: route: byte 7: an item is" }, { "matmul=gpu", "parse: route: byte 8: here stands \"device\" or" },
        { "matmul=beside,", "parse: route: byte 15: an item is" }, { ",matmul=beside", "parse: route: byte 1: an item is" }, { "matmull=beside", "parse: route: byte 1: here stands an operation" },
        { "=beside", "parse: route: byte 1: here stands an operation" }, { "input=beside", "parse: route: byte 1: here stands an operation" },
        { "rest=device,v0=beside", "parse: route: byte 13: the program's values are v1 to v8" }, { "v9=beside", "parse: route: byte 1: the program's values" },
        { "v8-v3=beside", "parse: route: byte 1: the program's values" }, { "v3-=beside", "parse: route: byte 1: a value is v12" }, { "v3-v=beside", "parse: route: byte 1: a value is v12" },
        { "v3-v4-v5=beside", "parse: route: byte 1: a value is v12" }, { "v99999999999999999999=beside", "parse: " }, { "v3 =beside", "parse: route: byte 1: a value is v12" },
        { "v1=beside", "parse: route: byte 1: v1 is an input" }, { "matmul=beside=device", "parse: route: byte 8: here stands" }, { "matmul=besid", "parse: " }, { "matmul=", "parse: " },
        { "\x01=\xff", "parse: route: byte 3: here stands" }, { "Matmul=beside", "parse: " },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *said = cut_text(chain, bad[i].route);
        if (strncmp(said, bad[i].wanted, strlen(bad[i].wanted)) != 0) fail_msg("\"%s\" gives \"%s\", not \"%s\"", bad[i].route, said, bad[i].wanted);
    }
    char *many = calloc(1, 1 << 16);
    for (int i = 0; i < 1025; i++) strcat(many, i ? ",exp=device" : "exp=device");
    assert_int_equal(strncmp(cut_text(chain, many), "limit: ", 7), 0);
    free(many);
}

static void too_many_segments_are_refused(void **state) {
    (void)state;
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(4));
    static uint8_t places[2000];
    hdi_segments segments;
    hd_error error = { 0 };
    for (uint32_t i = 0; i < 1100; i++) {
        x = i % 2 ? hd_neg(program, x) : hd_abs(program, x);
        places[x - 1] = i % 2;
    }
    hd_output(program, "y", x);
    assert_int_equal(hdi_segments_cut(program, places, &segments, &error), HD_STATUS_LIMIT);
    assert_int_equal(segments.count, 0);
    hdi_program_free(program);
}

/* Each allocation fails once: nothing is left. */
static void no_memory_is_survived(void **state) {
    (void)state;
    for (size_t n = 1; n < 10000; n++) {
        test_memory memory;
        hd_program *program = parse(&test_memory_start(&memory, 0)->allocator, cache);
        uint8_t places[11];
        hdi_segments segments;
        hd_error error = { 0 };
        assert_int_equal(hdi_places_parse(program, "attention=beside", places, &error), HD_OK);
        memory.calls = 0;
        memory.fail_at = n;
        hd_status status = hdi_places_settle(program, (const bool[2]){ true, true }, places, &error);
        if (!status) status = hdi_segments_cut(program, places, &segments, &error);
        if (!status) hdi_segments_free(&segments);
        hdi_program_free(program);
        assert_int_equal(memory.bytes_alive, 0);
        if (!status) {
            assert_true(n > 20);
            return;
        }
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
    }
    fail();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_are_as_written), cmocka_unit_test(states_stay_on_one_device), cmocka_unit_test(own_kernels_go_where_they_run),
        cmocka_unit_test(names_do_not_collide), cmocka_unit_test(hostile_routes_are_refused), cmocka_unit_test(too_many_segments_are_refused),
        cmocka_unit_test(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
