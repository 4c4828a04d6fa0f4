/* test_shared_rows.c: operations whose rows two devices compute: the bits are those of one device, whatever the share, and what
 * travels are the pieces. The CPU stands beside itself, and beside lavapipe and PoCL where they are. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static hd_context *context;
static hd_device *device, *beside;

static int open_context(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context) ? -1 : 0;
}

static int close_context(void **state) {
    (void)state;
    hd_context_destroy(context);
    return 0;
}

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

/* The test is skipped where one of them is not here. */
static void open_devices(const char *first, const char *second) {
    const char *const ids[2] = { first, second };
    hd_device **const devices[2] = { &device, &beside };
    for (int d = 0; d < 2; d++) {
        if (hd_device_open(context, &(hd_device_desc){ .id = ids[d] }, devices[d]) == HD_OK) continue;
        print_message("no %s here\n", ids[d]);
        hd_context_error(context);
        skip();
    }
}

static hd_plan *plan_on(const hd_program *p, const char *route) {
    hd_plan *plan = NULL;
    check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = route }, &plan));
    return plan;
}

/* An f16 chain, an i32 pick, products beside weights of four bits, a table, all of N rows: most of what can be shared, with operands
 * that broadcast, and outputs on the way. */
static const char by_rows[] =
    "heddle 1\nv1 = input f32[N,32] \"x\"\nv2 = input q4_0[24,32] \"w\"\nv3 = input f32[24] \"b\"\nv4 = input f32[N,1] \"c\"\nv5 = input i32[N] \"i\"\nv6 = input f16[9,24] \"t\"\n"
    "v7 = matmul v1 v2 transpose_b\nv8 = add v7 v3\nv9 = gelu v8\nv10 = softmax v9 axis=-1\nv11 = mul v10 v4\nv12 = rms_norm v11 v3 eps=0.00001\nv13 = gather v6 v5\n"
    "v14 = cast v12 dtype=f16\nv15 = add v14 v13\nv16 = less v13 v14\nv17 = where v16 v15 v13\nv18 = reshape v17 shape=[N,2,12]\nv19 = permute v18 axes=[0,2,1]\n"
    "v20 = argmax v19 axis=1\nv21 = top_k v12 k=5\nv22 = take_along v12 v21\nv23 = mean v22 axis=1\nv24 = concat v23 v4 axis=1\nv25 = slice v12 begin=[0,3] end=[N,9]\n"
    "v26 = pad v25 before=[0,1] after=[0,1] value=2\nv27 = input f32[24,8] \"u\"\nv28 = matmul v12 v27\nv29 = add v28 v26\nv30 = argmax v29 axis=1\nv31 = reshape v30 shape=[N]\n"
    "v32 = cross_entropy v29 v31\nv33 = sum v29 axis=0\nv34 = permute v29 axes=[1,0]\n"
    "output v9 \"mid\"\noutput v24 \"pair\"\noutput v19 \"turned\"\noutput v16 \"less\"\noutput v29 \"y\"\noutput v20 \"picks\"\noutput v32 \"loss\"\noutput v33 \"sum\"\noutput v34 \"across\"\n";

/* With a number in N's place. */
static hd_program *program_by_rows(uint32_t n) {
    char text[sizeof by_rows + 256];
    size_t at = 0;
    hd_program *p = NULL;
    for (const char *from = by_rows; *from;) {
        if (*from == 'N') at += (size_t)snprintf(text + at, sizeof text - at, "%u", n), from++;
        else text[at++] = *from++;
    }
    check(hd_program_parse(context, text, at, &p));
    return p;
}

/* Numbers from -2 to 2, and indices from -1 to 9, of which two are outside; the same ones for ports of a type and shape. */
static void fill(hd_port port, char *bytes, size_t count) {
    uint32_t at = 12345;
    for (size_t i = 0; i < count; i += 2) {
        at = at * 1664525u + 1013904223u;
        const uint16_t half = (uint16_t)(0x3000 + (at >> 8) % 0x1000 + (at >> 31 << 15)); /* 0.125 to 2, or less than none */
        memcpy(bytes + i, &half, 2);
    }
    for (size_t i = 0; i + 4 <= count && port.dtype != HD_F16 && port.dtype != HD_Q4_0; i += 4) {
        at = at * 1664525u + 1013904223u;
        const float number = (float)((at >> 8) % 4001) / 1000 - 2;
        const int32_t index = (int32_t)((at >> 8) % 11) - 1;
        if (port.dtype == HD_I32) memcpy(bytes + i, &index, 4);
        else memcpy(bytes + i, &number, 4);
    }
}

/* Writes all inputs, runs and reads all outputs; their bytes one after the other. */
static size_t run_ports(const hd_program *p, hd_plan *plan, char *out) {
    static char data[1 << 20];
    size_t at = 0;
    for (size_t i = 0; i < hd_program_port_count(p); i++) {
        const hd_port port = hd_program_port(p, i);
        if (port.kind != HD_PORT_INPUT) continue;
        const size_t bytes = (size_t)hd_tensor_bytes(port.dtype, port.shape);
        fill(port, data, bytes);
        check(hd_plan_write(plan, port.name, data, bytes));
    }
    check(hd_plan_run(plan, NULL));
    for (size_t i = 0; i < hd_program_port_count(p); i++) {
        const hd_port port = hd_program_port(p, i);
        if (port.kind != HD_PORT_OUTPUT) continue;
        const size_t bytes = (size_t)hd_tensor_bytes(port.dtype, port.shape);
        check(hd_plan_read(plan, port.name, out + at, bytes));
        at += bytes;
    }
    return at;
}

static void shared_rows_give_the_same_bits(const uint32_t *rows, uint32_t count) {
    static char whole[1 << 20], shared[1 << 20];
    static const char *const routes[] = { "rest=rows:50:50", "rest=rows:1:99", "rest=rows:99:1", "matmul=rows:37:63,rest=1", "rest=rows:62:38,v10=1", "v7-v12=rows:20:80,v13-v19=rows:70:30,rest=1", "softmax=rows:50:50,rms_norm=rows:50:50" };
    for (uint32_t k = 0; k < count; k++) {
        hd_program *p = program_by_rows(rows[k]);
        hd_plan *plan = NULL;
        check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT }, &plan));
        const size_t bytes = run_ports(p, plan, whole);
        hd_plan_destroy(plan);
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
            hd_plan_stats stats;
            plan = plan_on(p, routes[i]);
            check(hd_plan_get_stats(plan, &stats));
            assert_true(stats.segments > 1);
            memset(shared, 0xA5, bytes);
            for (int run = 0; run < 2; run++) assert_int_equal(run_ports(p, plan, shared), bytes);
            if (memcmp(whole, shared, bytes) != 0) fail_msg("%u rows by route \"%s\" give other bits", rows[k], routes[i]);
            hd_plan_destroy(plan);
        }
        hd_program_destroy(p);
    }
}

static void rows_are_shared(void **state) {
    (void)state;
    open_devices("cpu", "cpu");
    shared_rows_give_the_same_bits((const uint32_t[]){ 2, 3, 5, 8, 9, 17, 64, 301, 1029 }, 9);
}

static void rows_are_shared_with_vulkan(void **state) {
    (void)state;
    open_devices("vulkan", "cpu");
    shared_rows_give_the_same_bits((const uint32_t[]){ 3, 9, 301 }, 3);
}

static void rows_are_shared_with_opencl(void **state) {
    (void)state;
    open_devices("opencl", "cpu");
    shared_rows_give_the_same_bits((const uint32_t[]){ 17 }, 1);
}

/* Pieces are counted once, ports that nothing shares are on one device, and no byte travels that did not before. */
static void pieces_are_what_travels(void **state) {
    (void)state;
    open_devices("cpu", "cpu");
    hd_program *p = hd_program_create(context);
    enum { N = 4096 };
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(N)), y = hd_input(p, "y", HD_F32, HD_SHAPE(N)), z = hd_input(p, "z", HD_F32, HD_SHAPE(N));
    hd_output(p, "sum", hd_add(p, x, y));
    hd_output(p, "neg", hd_neg(p, z));
    static float data[N], out[N];
    for (int i = 0; i < N; i++) data[i] = (float)i;
    hd_plan *plan = plan_on(p, "add=rows:25:75,neg=1");
    hd_plan_memory memory, estimate;
    check(hd_plan_get_memory(plan, &memory));
    check(hd_plan_estimate(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = "add=rows:25:75,neg=1" }, &estimate));
    assert_memory_equal(&memory, &estimate, sizeof memory);
    assert_int_equal(memory.input_bytes, 3 * sizeof data);
    assert_int_equal(memory.output_bytes, 2 * sizeof data);
    hd_device_stats before[2], after[2];
    hd_plan_stats stats;
    hd_device_get_stats(device, &before[0]);
    hd_device_get_stats(beside, &before[1]);
    check(hd_plan_write(plan, "x", data, sizeof data));
    check(hd_plan_write(plan, "y", data, sizeof data));
    assert_int_equal(hd_plan_write(plan, "x", data, sizeof data / 4), HD_STATUS_SHAPE); /* a piece is not the port */
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    check(hd_plan_write(plan, "z", data, sizeof data));
    check(hd_plan_run(plan, NULL));
    check(hd_plan_read(plan, "sum", out, sizeof out));
    for (int i = 0; i < N; i++) assert_true(out[i] == 2 * data[i]);
    check(hd_plan_read(plan, "neg", out, sizeof out));
    check(hd_plan_get_stats(plan, &stats));
    assert_int_equal(stats.crossing_bytes, 0);
    hd_device_get_stats(device, &after[0]);
    hd_device_get_stats(beside, &after[1]);
    assert_int_equal(after[0].upload_bytes - before[0].upload_bytes, 2 * sizeof data / 4);
    assert_int_equal(after[1].upload_bytes - before[1].upload_bytes, sizeof data + 2 * (sizeof data - sizeof data / 4));
    assert_int_equal(after[0].download_bytes - before[0].download_bytes, sizeof data / 4);
    hd_buffer *buffer = NULL;
    check(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = sizeof data }, &buffer));
    assert_int_equal(hd_plan_bind(plan, "x", buffer, 0), HD_STATUS_UNSUPPORTED);
    assert_int_equal(hd_plan_bind(plan, "sum", buffer, 0), HD_STATUS_UNSUPPORTED);
    hd_context_error(context);
    hd_buffer_destroy(buffer);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

/* ---- route "auto" ---- */

static void forget(hd_device *of) { check(hd_device_calibrate(of, &(hd_calibrate_desc){ .forget = 1 })); }

/* Invented measurements of products: `ns_per_flop`, and 5 us for a submission. */
static void invent(hd_device *of, double ns_per_flop) {
    hd_sample samples[4];
    for (int i = 0; i < 4; i++) {
        hd_program *p = hd_program_create(context);
        const int64_t n = 32 << i;
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(n, n));
        hd_output(p, "y", hd_matmul(p, x, x));
        samples[i] = (hd_sample){ .program = p, .ns = 5000 + (uint64_t)(2.0 * (double)(n * n * n) * ns_per_flop) };
    }
    forget(of);
    check(hd_device_calibrate(of, &(hd_calibrate_desc){ .kinds = HD_FACT_FIGURE, .samples = samples, .sample_count = 4 }));
    for (int i = 0; i < 4; i++) hd_program_destroy((hd_program *)samples[i].program);
}

enum { N = 192 };

/* y = scale a w, and a state that each run writes a row of. */
static hd_program *product_and_state(float scale) {
    hd_program *p = hd_program_create(context);
    const hd_value a = hd_input(p, "a", HD_F32, HD_SHAPE(N, N)), w = hd_input(p, "w", HD_F32, HD_SHAPE(N, N));
    const hd_value row = hd_input(p, "row", HD_F32, HD_SHAPE(1, N)), at = hd_input(p, "at", HD_I32, HD_SHAPE(1));
    hd_output(p, "y", hd_scale(p, hd_matmul(p, a, w), scale, 0));
    hd_output(p, "kept", hd_write_rows(p, hd_state(p, "state", HD_F32, HD_SHAPE(N, N)), row, at));
    return p;
}

/* Runs of a plan on one device and of one that chooses give the same bits; `a` and `w` are written once. */
static hd_plan_stats run_both(const hd_program *p, int32_t runs, char *text, size_t room) {
    static float data[N * N], out[2][2][N * N];
    static const char *const resident[] = { "a", "w" };
    hd_plan *plans[2] = { plan_on(p, NULL), NULL };
    hd_plan_stats stats;
    check(hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = "auto", .resident = resident, .resident_count = 2 }, &plans[1]));
    check(hd_plan_explain(plans[1], text, room, NULL)); /* as predicted */
    for (int i = 0; i < N * N; i++) data[i] = (float)((i * 7) % 31 - 15) / 16;
    for (int k = 0; k < 2; k++) check(hd_plan_write(plans[k], "a", data, sizeof data));
    for (int k = 0; k < 2; k++) check(hd_plan_write(plans[k], "w", data, sizeof data));
    for (int32_t run = 0; run < runs; run++) {
        const int32_t at = run % N;
        for (int k = 0; k < 2; k++) {
            check(hd_plan_write(plans[k], "row", data + run, N * sizeof *data));
            check(hd_plan_write(plans[k], "at", &at, sizeof at));
            check(hd_plan_run(plans[k], NULL));
            check(hd_plan_read(plans[k], "y", out[k][0], sizeof out[k][0]));
            check(hd_plan_read(plans[k], "kept", out[k][1], sizeof out[k][1]));
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
    }
    check(hd_plan_get_stats(plans[1], &stats));
    for (int k = 0; k < 2; k++) hd_plan_destroy(plans[k]);
    return stats;
}

static void auto_shares_rows_where_that_pays(void **state) {
    (void)state;
    static char text[1 << 16];
    open_devices("cpu", "cpu");
    hd_program *p = product_and_state(2);
    invent(device, 10);
    invent(beside, 10);
    hd_plan_stats stats = run_both(p, 5, text, sizeof text);
    if (!strstr(text, " rows 0-95 matmul (matmul word): on cpu:") || !strstr(text, "because devices compute rows at the same time")) fail_msg("%s", text);
    assert_true(stats.segments == 2);
    assert_true((double)stats.predicted_ns < 0.6 * (double)stats.predicted_alone_ns);
    hd_program_destroy(p);
    p = product_and_state(3);
    invent(beside, 1000); /* beside a device that is much slower nothing is gained */
    run_both(p, 5, text, sizeof text);
    if (strstr(text, " rows ")) fail_msg("%s", text);
    hd_program_destroy(p);
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_shared), TEST(rows_are_shared_with_vulkan), TEST(rows_are_shared_with_opencl), TEST(pieces_are_what_travels), TEST(auto_shares_rows_where_that_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
