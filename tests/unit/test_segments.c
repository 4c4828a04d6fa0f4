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

static const char *const names[] = { "A", "B", "C" };

/* What a program is cut into by a route over so many devices, of which the first one runs own kernels; as text, or why there is none. */
static char *cut_among(uint32_t devices, const char *program_text, const char *route) {
    static char out[8192];
    hd_program *program = parse(&hdi_default_allocator, program_text);
    hd_error error = { 0 };
    hdi_placement placement = { 0 };
    hdi_split split = { 0 };
    hdi_segments segments;
    hdi_text text = { .allocator = &hdi_default_allocator };
    hd_status status = hdi_placement_parse(program, route, names, devices, &placement, &error);
    if (!status) status = hdi_placement_settle(program, (const bool[3]){ true, false, false }, &placement, &error);
    if (!status) status = hdi_split_make(program, &placement, &split, &error);
    const hd_program *whole = split.program ? split.program : program;
    if (!status) status = hdi_segments_cut(whole, split.program ? &split.placement : &placement, &segments, &error);
    if (status) snprintf(out, sizeof out, "%s: %s\n", hd_status_name(status), error.text);
    else {
        hdi_segments_print(whole, &segments, names, &text);
        snprintf(out, sizeof out, "%s", text.bytes);
        for (uint32_t s = 0; s < segments.count; s++) assert_int_equal(hdi_program_check(segments.items[s].program, &error), HD_OK);
        hdi_segments_free(&segments);
    }
    hdi_text_free(&text);
    hdi_split_free(&split);
    hdi_placement_free(&placement);
    hdi_program_free(program);
    return out;
}

static char *cut_text(const char *program_text, const char *route) { return cut_among(2, program_text, route); }

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
    assert_string_equal(cut_text(chain, "rest=0"), "segment 0 on A: v3 matmul, v4 relu, v6 matmul, v7 relu, v8 matmul\n");
    assert_string_equal(cut_text(chain, "matmul=1"),
                        "segment 0 on B: v3 matmul\nsegment 1 on A: v4 relu\n  takes v3 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v6 matmul\n  takes v4 f32[4,6] of segment 1: 96 bytes cross\nsegment 3 on A: v7 relu\n"
                        "  takes v6 f32[4,6] of segment 2: 96 bytes cross\nsegment 4 on B: v8 matmul\n  takes v7 f32[4,6] of segment 3: 96 bytes cross\n");
    assert_string_equal(cut_text(chain, "v4-v6=1,relu=0,rest=1"),
                        "segment 0 on B: v3 matmul, v4 relu, v6 matmul\nsegment 1 on A: v7 relu\n  takes v6 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v8 matmul\n  takes v7 f32[4,6] of segment 1: 96 bytes cross\n");
    /* Two branches are one segment each, whatever the order of their operations. */
    assert_string_equal(cut_text(branches, "v3=1,v5=1"),
                        "segment 0 on B: v3 log, v5 abs\nsegment 1 on A: v2 exp, v4 neg, v6 add\n  takes v5 f32[8] of segment 0: 32 bytes cross\n");
    /* A value that comes back lies there already; one that two segments of a device read crosses once. */
    assert_string_equal(cut_text(branches, "v4-v5=1"),
                        "segment 0 on A: v2 exp, v3 log\nsegment 1 on B: v4 neg, v5 abs\n  takes v2 f32[8] of segment 0: 32 bytes cross\n"
                        "  takes v3 f32[8] of segment 0: 32 bytes cross\nsegment 2 on A: v6 add\n  takes v4 f32[8] of segment 1: 32 bytes cross\n"
                        "  takes v5 f32[8] of segment 1: 32 bytes cross\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\nv2 = exp v1\nv3 = neg v2\nv4 = add v2 v3\nv5 = abs v4\nv6 = add v5 v3\noutput v6 \"y\"\n", "v3=1,v5=1"),
                        "segment 0 on A: v2 exp\nsegment 1 on B: v3 neg\n  takes v2 f32[8] of segment 0: 32 bytes cross\nsegment 2 on A: v4 add\n"
                        "  takes v2 f32[8] of segment 0: there already\n  takes v3 f32[8] of segment 1: 32 bytes cross\nsegment 3 on B: v5 abs\n"
                        "  takes v4 f32[8] of segment 2: 32 bytes cross\nsegment 4 on A: v6 add\n  takes v5 f32[8] of segment 3: 32 bytes cross\n"
                        "  takes v3 f32[8] of segment 1: there already\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\nv2 = exp v1\nv3 = neg v1\noutput v1 \"same\"\noutput v3 \"y\"\n", "exp=1"), "segment 0 on A: v3 neg\n");
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[8] \"x\"\noutput v1 \"y\"\n", "rest=1"), "segment 0 on A: no operations\n");
}

static void states_stay_on_one_device(void **state) {
    (void)state;
    /* Attention reads both states, so all that touches either goes with it; the old rows are read before they are overwritten. */
    assert_string_equal(cut_text(cache, "attention=1"),
                        "segment 0 on A: v6 neg\nsegment 1 on B: v5 scale, v7 write_rows, v8 write_rows, v9 attention\n  takes v6 f32[2,3,4] of segment 0: 96 bytes cross\n"
                        "segment 2 on A: v10 relu\n  takes v9 f32[2,3,4] of segment 1: 96 bytes cross\n");
    /* By number where none is asked for: 4 operations touch the states. */
    assert_string_equal(cut_text(cache, "relu=0,rest=1"),
                        "segment 0 on B: v5 scale, v6 neg, v7 write_rows, v8 write_rows, v9 attention\nsegment 1 on A: v10 relu\n  takes v9 f32[2,3,4] of segment 0: 96 bytes cross\n");
    assert_string_equal(cut_text(cache, "attention=1,scale=0"),
                        "unsupported: route: state \"k\": v5 is placed on device 0 and v9 on device 1; all that touches a state is on one device\n");
    /* Rows are not overwritten before a later segment has read the old ones. */
    assert_string_equal(cut_text("heddle 1\nv1 = state f32[4,2] \"s\"\nv2 = input i32[1] \"p\"\nv3 = input f32[4,2] \"x\"\nv4 = neg v3\nv5 = abs v4\nv6 = add v1 v5\n"
                                 "v7 = write_rows v1 v3 v2\noutput v6 \"y\"\n", "abs=1"),
                        "segment 0 on A: v4 neg\nsegment 1 on B: v5 abs\n  takes v4 f32[4,2] of segment 0: 32 bytes cross\n"
                        "segment 2 on A: v6 add, v7 write_rows\n  takes v5 f32[4,2] of segment 1: 32 bytes cross\n");
    assert_string_equal(cut_text("heddle 1\nv1 = state f32[4,2] \"s\"\nv2 = input f32[4,2] \"x\"\nv3 = neg v2\nv4 = abs v3\n"
                                 "v5 = add v1 v4\nv6 = assign v1 v2\noutput v5 \"y\"\n", "abs=1"),
                        "segment 0 on A: v3 neg\nsegment 1 on B: v4 abs\n  takes v3 f32[4,2] of segment 0: 32 bytes cross\n"
                        "segment 2 on A: v5 add, v6 assign\n  takes v4 f32[4,2] of segment 1: 32 bytes cross\n");
    /* Written twice, with a way around over the other device. */
    assert_string_equal(cut_text("heddle 1\nv1 = state f32[4,2] \"s\"\nv2 = input i32[1] \"p\"\nv3 = input f32[1,2] \"x\"\nv4 = write_rows v1 v3 v2\nv5 = neg v4\nv6 = abs v5\n"
                                 "v7 = slice v6 begin=[0,0] end=[1,2]\nv8 = write_rows v4 v7 v2\nv9 = neg v8\noutput v9 \"y\"\noutput v8 \"all\"\n", "abs=1"),
                        "segment 0 on A: v4 write_rows, v5 neg\nsegment 1 on B: v6 abs\n  takes v5 f32[4,2] of segment 0: 32 bytes cross\n"
                        "segment 2 on A: v7 slice, v8 write_rows, v9 neg\n  takes v6 f32[4,2] of segment 1: 32 bytes cross\n");
}

static void own_kernels_go_where_they_run(void **state) {
    (void)state;
    static const char text[] = "heddle 1\nv1 = input f32[4,6] \"x\"\nv2 = neg v1\nv3 = dispatch v1 v2 kernel=0123456789abcdef dtype=f32 shape=[4,6] push=00000007deadbeef groups=[4,2,1]\n"
                               "v4 = neg v3\noutput v4 \"y\"\n";
    assert_string_equal(cut_text(text, "rest=1"),
                        "segment 0 on B: v2 neg\nsegment 1 on A: v3 dispatch\n  takes v2 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on B: v4 neg\n  takes v3 f32[4,6] of segment 1: 96 bytes cross\n");
    assert_string_equal(cut_text(text, "dispatch=1"), "segment 0 on A: v2 neg\nsegment 1 on B: v3 dispatch\n  takes v2 f32[4,6] of segment 0: 96 bytes cross\n"
                                                      "segment 2 on A: v4 neg\n  takes v3 f32[4,6] of segment 1: 96 bytes cross\n");
}

static void shared_rows_are_two_operations(void **state) {
    (void)state;
    /* A chain by the same rows is two chains; the inputs come in pieces, so that nothing crosses. */
    assert_string_equal(cut_text(chain, "rest=rows:50:50"),
                        "segment 0 on A: v3 rows 0-1 matmul, v4 rows 0-1 relu, v6 rows 0-1 matmul, v7 rows 0-1 relu, v8 rows 0-1 matmul\n"
                        "segment 1 on B: v3 rows 2-3 matmul, v4 rows 2-3 relu, v6 rows 2-3 matmul, v7 rows 2-3 relu, v8 rows 2-3 matmul\n");
    /* What is read whole is joined where it is read, and only the rows that a device needs cross to it. */
    assert_string_equal(cut_text(chain, "v3=rows:25:75,v7=rows:75:25"),
                        "segment 0 on B: v3 rows 1-3 matmul\n"
                        "segment 1 on A: v3 rows 0-0 matmul, v3 concat, v4 relu, v6 matmul, v6 rows 0-2 slice, v7 rows 0-2 relu, v6 rows 3-3 slice\n"
                        "  takes v3 rows 1-3 f32[3,6] of segment 0: 72 bytes cross\n"
                        "segment 2 on B: v7 rows 3-3 relu\n  takes v6 rows 3-3 f32[1,6] of segment 1: 24 bytes cross\n"
                        "segment 3 on A: v7 concat, v8 matmul\n  takes v7 rows 0-2 f32[3,6] of segment 1: there already\n"
                        "  takes v7 rows 3-3 f32[1,6] of segment 2: 24 bytes cross\n");
    /* Different rows: joined, and cut anew, on each device. An input that is also read whole is cut there. */
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[4] \"x\"\nv2 = exp v1\nv3 = neg v2\nv4 = sum v1 axis=0\noutput v3 \"y\"\noutput v4 \"z\"\n", "exp=rows:25:75,neg=rows:75:25"),
                        "segment 0 on A: v1 rows 0-0 slice, v2 rows 0-0 exp, v4 sum\nsegment 1 on B: v1 rows 1-3 slice, v2 rows 1-3 exp, v2 concat, v2 rows 3-3 slice, v3 rows 3-3 neg\n"
                        "  takes v2 rows 0-0 f32[1] of segment 0: 4 bytes cross\nsegment 2 on A: v2 concat, v2 rows 0-2 slice, v3 rows 0-2 neg\n"
                        "  takes v2 rows 0-0 f32[1] of segment 0: there already\n  takes v2 rows 1-3 f32[3] of segment 1: 12 bytes cross\n");
    /* What cannot be shared stays on the device; one value that was asked for is refused. */
    assert_string_equal(cut_text(cache, "rest=rows:50:50"),
                        "segment 0 on B: v1 rows 1-1 slice, v6 rows 1-1 neg\n"
                        "segment 1 on A: v5 scale, v1 rows 0-0 slice, v6 rows 0-0 neg, v6 concat, v7 write_rows, v8 write_rows, v9 attention, v9 rows 0-0 slice, v10 rows 0-0 relu, "
                        "v9 rows 1-1 slice\n  takes v6 rows 1-1 f32[1,3,4] of segment 0: 48 bytes cross\n"
                        "segment 2 on B: v10 rows 1-1 relu\n  takes v9 rows 1-1 f32[1,3,4] of segment 1: 48 bytes cross\n");
    /* What nothing needs is nowhere, and the inputs that it reads are whole. */
    assert_string_equal(cut_text("heddle 1\nv1 = input f32[4] \"x\"\nv2 = exp v1\nv3 = input f32[4] \"w\"\nv4 = neg v3\noutput v4 \"y\"\n", "rest=rows:50:50"),
                        "segment 0 on A: v4 rows 0-1 neg\nsegment 1 on B: v4 rows 2-3 neg\n");
    assert_string_equal(cut_text(cache, "v5=rows:50:50"), "unsupported: route: v5 scale cannot be shared by rows: it touches a state\n");
}

/* Which operations can, of a result with two rows. */
static void rows_depend_on_each_other_or_not(void **state) {
    (void)state;
    static const char *const depends = "its rows are not computed each by itself";
    static const struct { const char *lines, *why_not; } cases[] = {
        { "v2 = input f32[8] \"b\"\nv3 = add v1 v2\n", NULL }, { "v2 = input f32[2,1] \"b\"\nv3 = add v2 v1\n", NULL },
        { "v2 = slice v1 begin=[0,0] end=[1,8]\nv3 = neg v2\n", "it has fewer than two rows" }, { "v2 = sum v1 axis=1\n", NULL }, { "v2 = sum v1 axis=0\n", "it has fewer than two rows" },
        { "v2 = softmax v1 axis=0\n", depends }, { "v2 = softmax v1 axis=1\n", NULL }, { "v2 = rms_norm v1 eps=0\n", NULL }, { "v2 = reshape v1 shape=[16]\nv3 = rms_norm v2 eps=0\n", depends },
        { "v2 = reshape v1 shape=[2,2,4]\n", NULL }, { "v2 = reshape v1 shape=[4,4]\n", depends }, { "v2 = permute v1 axes=[1,0]\n", depends },
        { "v2 = reshape v1 shape=[2,2,4]\nv3 = permute v2 axes=[0,2,1]\n", NULL }, { "v2 = slice v1 begin=[0,1] end=[2,5]\n", NULL },
        { "v2 = pad v1 before=[0,1] after=[0,2] value=0\n", NULL }, { "v2 = pad v1 before=[0,1] after=[1,2] value=0\n", depends },
        { "v2 = concat v1 v1 axis=0\n", depends }, { "v2 = concat v1 v1 axis=1\n", NULL }, { "v2 = top_k v1 k=3\n", NULL }, { "v2 = dot v1 v1 axis=1\n", NULL },
        { "v2 = matmul v1 v1 transpose_b\n", NULL }, { "v2 = matmul v1 v1 transpose_a\n", depends }, { "v2 = input q4_0[6,32] \"w\"\nv3 = input f32[2,32] \"a\"\nv4 = matmul v3 v2 transpose_b\n", NULL },
        { "v2 = input f32[2,4,8] \"a\"\nv3 = input f32[2,8,4] \"b\"\nv4 = matmul v2 v3\n", NULL }, { "v2 = input f32[2,8,4] \"b\"\nv3 = matmul v1 v2\n", NULL },
        { "v2 = input q4_0[2,4,32] \"b\"\nv3 = input f32[3,32] \"a\"\nv4 = matmul v3 v2 transpose_b\n", "what would be cut is quantised" },
        { "v2 = input i32[2] \"i\"\nv3 = gather v1 v2\n", NULL }, { "v2 = input i32[2,3] \"i\"\nv3 = take_along v1 v2\n", NULL }, { "v2 = input i32[2] \"i\"\nv3 = cross_entropy v1 v2\n", NULL },
        { "v2 = input i32[2] \"i\"\nv3 = scatter_add v1 v2 v1\n", depends }, { "v2 = input i32[2] \"i\"\nv3 = input f32[2,1,8] \"q\"\nv4 = rope v3 v2\n", NULL },
        { "v2 = state f32[2,8] \"s\"\nv3 = add v1 v2\n", "it touches a state" }, { "v2 = cast v1 dtype=f16\n", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "heddle 1\nv1 = input f32[2,8] \"x\"\n%s", cases[i].lines);
        hd_program *program = parse(&hdi_default_allocator, text);
        const char *why_not = hdi_share_why_not(program, program->node_count, HDI_SHARE_ROWS);
        if (!why_not != !cases[i].why_not || (why_not && strcmp(why_not, cases[i].why_not) != 0)) fail_msg("%s: %s", cases[i].lines, why_not ? why_not : "can be shared");
        hdi_program_free(program);
    }
}

static void shares_leave_rows_to_all(void **state) {
    (void)state;
    for (uint64_t rows = 2; rows < 5000; rows += rows < 300 ? 1 : 37)
        for (uint32_t percent = 1; percent < 100; percent++) {
            const hdi_share two = { HDI_SHARE_ROWS, { percent, 100 - percent } };
            const uint64_t unit = rows >= 1024 ? 64 : rows >= 256 ? 16 : 1;
            uint64_t begin[4];
            hdi_share_bounds(&two, 2, rows, begin);
            if (begin[1] == 0 || begin[1] >= rows || begin[1] % unit != 0 || begin[0] != 0 || begin[2] != rows)
                fail_msg("%u%% of %llu rows are %llu", percent, (unsigned long long)rows, (unsigned long long)begin[1]);
            assert_true(2 * llabs((long long)(100 * begin[1]) - (long long)(rows * percent)) <= (long long)(400 * unit));
            const hdi_share three = { HDI_SHARE_ROWS, { percent, 0, 100 - percent, 7 } };
            uint64_t four[5];
            hdi_share_bounds(&three, 4, rows, four);
            assert_true(four[0] == 0 && four[1] == four[2] && four[4] == rows); /* device 1 has no part */
            for (uint32_t d = 0; d < 4; d++) assert_true(four[d] <= four[d + 1] && (rows < 300 || three.parts[d] == 0 || four[d] < four[d + 1]));
        }
    uint64_t begin[3];
    hdi_share_bounds(&(hdi_share){ HDI_SHARE_ROWS, { 1, 1 } }, 2, UINT64_C(1) << 40, begin);
    assert_int_equal(begin[1], UINT64_C(1) << 39);
    hdi_share_bounds(&(hdi_share){ HDI_SHARE_ROWS, { 3, 1 } }, 2, 512, begin);
    assert_int_equal(begin[1], 384);
}

/* Chains over three devices: rows, and columns of one product that are the terms of the next. */
static void more_devices_and_other_axes(void **state) {
    (void)state;
    assert_string_equal(cut_among(3, chain, "v3=1,v4=2,rest=0"),
                        "segment 0 on B: v3 matmul\nsegment 1 on C: v4 relu\n  takes v3 f32[4,6] of segment 0: 96 bytes cross\n"
                        "segment 2 on A: v6 matmul, v7 relu, v8 matmul\n  takes v4 f32[4,6] of segment 1: 96 bytes cross\n");
    assert_string_equal(cut_among(3, branches, "v2=A,v3=B,v4=C,v5=B,v6=C"),
                        "segment 0 on A: v2 exp\nsegment 1 on B: v3 log, v5 abs\nsegment 2 on C: v4 neg, v6 add\n  takes v2 f32[8] of segment 0: 32 bytes cross\n"
                        "  takes v5 f32[8] of segment 1: 32 bytes cross\n");
    assert_string_equal(cut_among(3, chain, "v3-v4=rows:1:2:1,rest=0"),
                        "segment 0 on B: v3 rows 1-2 matmul, v4 rows 1-2 relu\nsegment 1 on C: v3 rows 3-3 matmul, v4 rows 3-3 relu\n"
                        "segment 2 on A: v3 rows 0-0 matmul, v4 rows 0-0 relu, v4 concat, v6 matmul, v7 relu, v8 matmul\n"
                        "  takes v4 rows 1-2 f32[2,6] of segment 0: 48 bytes cross\n  takes v4 rows 3-3 f32[1,6] of segment 1: 24 bytes cross\n");
    /* v3's columns are what v6 sums: nothing crosses but the sums. The output v4 is joined. */
    static const char two_products[] = "heddle 1\nv1 = input f32[4,8] \"x\"\nv2 = input f32[8,6] \"w\"\nv3 = matmul v1 v2\nv4 = relu v3\nv5 = input f32[6,5] \"u\"\n"
                                       "v6 = matmul v4 v5\noutput v6 \"y\"\n";
    assert_string_equal(cut_among(2, two_products, "v3-v4=columns:1:1,v6=terms:1:1"),
                        "segment 0 on B: v2 columns 3-5 slice, v3 columns 3-5 matmul, v4 columns 3-5 relu, v6 matmul\n"
                        "segment 1 on A: v2 columns 0-2 slice, v3 columns 0-2 matmul, v4 columns 0-2 relu, v6 matmul, v6 add\n"
                        "  takes v6 f32[4,5] of segment 0: 80 bytes cross\n");
    assert_string_equal(cut_among(2, "heddle 1\nv1 = input f32[4,8] \"x\"\nv2 = input q4_0[6,32] \"w\"\nv3 = input f32[4,32] \"a\"\nv4 = matmul v3 v2 transpose_b\noutput v4 \"y\"\n", "v4=columns:1:1"),
                        "segment 0 on B: v4 columns 3-5 matmul\nsegment 1 on A: v4 columns 0-2 matmul, v4 concat\n  takes v4 columns 3-5 f32[4,3] of segment 0: 48 bytes cross\n");
    assert_string_equal(cut_among(2, chain, "v4=terms:1:1"), "unsupported: route: v4 relu cannot be shared by terms: it is no sum of products\n");
    assert_string_equal(cut_among(2, cache, "attention=columns:1:1,v9=columns:1:1"), cut_among(2, cache, "v9=0")); /* not alone in its item */
}

/* Names of crossings give way to the caller's; sources that nothing reads are still there. */
static void names_do_not_collide(void **state) {
    (void)state;
    hd_program *program = parse(&hdi_default_allocator, chain);
    hdi_placement placement;
    hdi_segments segments;
    hd_error error = { 0 };
    assert_int_equal(hdi_placement_new(program, 2, &placement, &error), HD_OK);
    placement.of[3].device = 1;
    assert_int_equal(hdi_segments_cut(program, &placement, &segments, &error), HD_OK);
    hdi_placement_free(&placement);
    assert_int_equal(segments.count, 3);
    assert_string_equal(segments.items[1].program->nodes[0].name, "v3.1"); /* an output is called "v3" */
    assert_true(hdi_segments_is_crossing(program, &segments.items[1].program->nodes[0]));
    assert_int_equal(segments.items[1].program->output_count, 2);
    assert_string_equal(segments.items[1].program->outputs[0].name, "v3");
    assert_string_equal(segments.items[1].program->outputs[1].name, "v4.1"); /* an input is called "v4" */
    hdi_segments_free(&segments);
    hdi_program_free(program);
    program = parse(&hdi_default_allocator, cache);
    assert_int_equal(hdi_placement_new(program, 2, &placement, &error), HD_OK);
    placement.of[5].device = 1;
    assert_int_equal(hdi_segments_cut(program, &placement, &segments, &error), HD_OK);
    hdi_placement_free(&placement);
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
        { "", "parse: route: byte 1: an item is" }, { "matmul", "parse: route: byte 7: an item is" }, { "matmul=gpu", "parse: route: byte 8: here stands a device" },
        { "matmul=1,", "parse: route: byte 10: an item is" }, { ",matmul=1", "parse: route: byte 1: an item is" }, { "matmull=1", "parse: route: byte 1: here stands an operation" },
        { "=1", "parse: route: byte 1: here stands an operation" }, { "input=1", "parse: route: byte 1: here stands an operation" },
        { "rest=0,v0=1", "parse: route: byte 8: the program's values are v1 to v8" }, { "v9=1", "parse: route: byte 1: the program's values" },
        { "v8-v3=1", "parse: route: byte 1: the program's values" }, { "v3-=1", "parse: route: byte 1: a value is v12" }, { "v3-v=1", "parse: route: byte 1: a value is v12" },
        { "v3-v4-v5=1", "parse: route: byte 1: a value is v12" }, { "v99999999999999999999=1", "parse: " }, { "v3 =1", "parse: route: byte 1: a value is v12" },
        { "v1=1", "parse: route: byte 1: v1 is an input" }, { "matmul=1=0", "parse: route: byte 8: here stands" }, { "matmul=2", "parse: " }, { "matmul=", "parse: " },
        { "matmul=rows:0:0", "parse: route: byte 8: here stands" }, { "matmul=rows:100", "parse: " }, { "matmul=rows:1:1:1", "parse: " }, { "matmul=rows:1:-1", "parse: " }, { "matmul=%", "parse: " }, { "matmul=6 %", "parse: " }, { "matmul=-6%", "parse: " },
        { "v1=rows:60:40", "parse: route: byte 1: v1 is an input" }, { "matmul=60", "parse: " },
        { "\x01=\xff", "parse: route: byte 3: here stands" }, { "Matmul=1", "parse: " },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *said = cut_text(chain, bad[i].route);
        if (strncmp(said, bad[i].wanted, strlen(bad[i].wanted)) != 0) fail_msg("\"%s\" gives \"%s\", not \"%s\"", bad[i].route, said, bad[i].wanted);
    }
    char *many = calloc(1, 1 << 16);
    for (int i = 0; i < 1025; i++) strcat(many, i ? ",exp=0" : "exp=0");
    assert_int_equal(strncmp(cut_text(chain, many), "limit: ", 7), 0);
    free(many);
}

static void too_many_segments_are_refused(void **state) {
    (void)state;
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    hd_value x = hd_input(program, "x", HD_F32, HD_SHAPE(4));
    hdi_placement placement;
    hdi_segments segments;
    hd_error error = { 0 };
    for (uint32_t i = 0; i < 1100; i++) x = i % 2 ? hd_neg(program, x) : hd_abs(program, x);
    hd_output(program, "y", x);
    assert_int_equal(hdi_placement_new(program, 2, &placement, &error), HD_OK);
    for (uint32_t i = 0; i < 1100; i++) placement.of[i + 1].device = i % 2;
    assert_int_equal(hdi_segments_cut(program, &placement, &segments, &error), HD_STATUS_LIMIT);
    hdi_placement_free(&placement);
    assert_int_equal(segments.count, 0);
    hdi_program_free(program);
}

/* Each allocation fails once: nothing is left. */
static void no_memory_is_survived(void **state) {
    (void)state;
    for (size_t n = 1; n < 10000; n++) {
        test_memory memory;
        hd_program *program = parse(&test_memory_start(&memory, 0)->allocator, cache);
        hdi_placement placement;
        hdi_split split = { 0 };
        hdi_segments segments;
        hd_error error = { 0 };
        assert_int_equal(hdi_placement_parse(program, "attention=1,neg=rows:50:50,relu=rows:50:50", names, 2, &placement, &error), HD_OK);
        memory.calls = 0;
        memory.fail_at = n;
        hd_status status = hdi_placement_settle(program, (const bool[2]){ true, true }, &placement, &error);
        if (!status) status = hdi_split_make(program, &placement, &split, &error);
        if (!status) status = hdi_segments_cut(split.program, &split.placement, &segments, &error);
        if (!status) hdi_segments_free(&segments);
        hdi_split_free(&split);
        hdi_placement_free(&placement);
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
        cmocka_unit_test(names_do_not_collide), cmocka_unit_test(shared_rows_are_two_operations),
        cmocka_unit_test(rows_depend_on_each_other_or_not), cmocka_unit_test(shares_leave_rows_to_all), cmocka_unit_test(more_devices_and_other_axes), cmocka_unit_test(hostile_routes_are_refused), cmocka_unit_test(too_many_segments_are_refused),
        cmocka_unit_test(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
