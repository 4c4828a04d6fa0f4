/* test_placed_inputs.c: inputs that lie on another device than the one that reads them cross in every run, just before they
 * are needed, into memory that earlier ones no longer need; bits stay as they are on one device. */
#include <heddle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LAYERS = 7, ROWS = 8, WIDE = 64, WEIGHT = WIDE * WIDE * 4, BIAS = WIDE * 4 };

static hd_context *context;
static hd_device *device, *beside;

static void check(hd_status status) {
    if (status) fail_msg("%s", hd_context_error(context));
}

static int open_context(void **state) {
    (void)state;
    return hd_context_create(&(hd_context_desc){ .cache_dir = "", .cpu_threads = 2 }, &context) ? -1 : 0;
}

static int close_all(void **state) {
    (void)state;
    const uint64_t live = hd_context_live_objects(context);
    hd_context_destroy(context);
    return live == 0 ? 0 : -1;
}

/* Runs `body` with the CPU beside itself, and beside lavapipe where it is. */
static void on_devices(void (*body)(void)) {
    static const char *const ids[] = { "cpu", "vulkan" };
    for (int i = 0; i < 2; i++) {
        if (hd_device_open(context, &(hd_device_desc){ .id = ids[i] }, &device)) {
            hd_context_error(context);
            continue;
        }
        check(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &beside));
        body();
        hd_device_close(beside);
        hd_device_close(device);
    }
}

static void name_of(char kind, int layer, char out[8]) { snprintf(out, 8, "%c%d", kind, layer); }

/* Layers of a product and a bias; `out_route` has the inputs of each lie on device 1. The first layer's bias is read by the
 * last one too. */
static hd_program *layers(char out_route[512]) {
    hd_program *p = hd_program_create(context);
    hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(ROWS, WIDE)), first_bias = 0;
    size_t used = 0;
    for (int i = 0; i < LAYERS; i++) {
        char name[8];
        name_of('w', i, name);
        const hd_value w = hd_input(p, name, HD_F32, HD_SHAPE(WIDE, WIDE));
        name_of('b', i, name);
        const hd_value b = hd_input(p, name, HD_F32, HD_SHAPE(WIDE));
        if (i == 0) first_bias = b;
        x = hd_tanh(p, hd_add(p, hd_matmul(p, x, w), b));
        used += (size_t)snprintf(out_route + used, 512 - used, "%sinput:v%u-v%u=1", i ? "," : "", (unsigned)w, (unsigned)x);
    }
    hd_output(p, "y", hd_add(p, x, first_bias));
    return p;
}

static void fill(float *data, int count, int seed) {
    for (int i = 0; i < count; i++) data[i] = (float)((i * 37 + seed * 101) % 113 - 56) * 0.01f;
}

static void write_layer(hd_plan *plan, int layer, int seed) {
    static float data[WIDE * WIDE];
    char name[8];
    name_of('w', layer, name);
    fill(data, WIDE * WIDE, seed + layer);
    check(hd_plan_write(plan, name, data, WEIGHT));
    name_of('b', layer, name);
    check(hd_plan_write(plan, name, data, BIAS));
}

static void write_x(hd_plan *plan, int seed) {
    float x[ROWS * WIDE];
    fill(x, ROWS * WIDE, seed);
    check(hd_plan_write(plan, "x", x, sizeof x));
}

static hd_plan *plan_by(const hd_program *p, const char *route) {
    hd_plan *plan = NULL;
    const hd_plan_desc desc = { .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = route };
    check(hd_plan_create(device, p, &desc, &plan));
    return plan;
}

/* ---- bits ---- */

static void compare_runs(hd_plan *placed, hd_plan *alone) {
    float got[ROWS * WIDE], wanted[ROWS * WIDE];
    for (int run = 0; run < 4; run++) {
        write_x(placed, run);
        write_x(alone, run);
        if (run == 2)
            for (int i = 1; i < LAYERS; i += 2) { /* weights may change between runs */
                write_layer(placed, i, 50);
                write_layer(alone, i, 50);
            }
        hd_ticket *tickets[2];
        for (int i = 0; i < 2; i++) check(hd_plan_submit(placed, &tickets[i])); /* the second one waits for memory of the first */
        for (int i = 0; i < 2; i++) check(hd_ticket_wait(tickets[i], 0));
        for (int i = 0; i < 2; i++) hd_ticket_destroy(tickets[i]);
        check(hd_plan_run(alone, NULL));
        check(hd_plan_read(placed, "y", got, sizeof got));
        check(hd_plan_read(alone, "y", wanted, sizeof wanted));
        assert_memory_equal(got, wanted, sizeof got);
    }
}

static void give_bits(void) {
    char route[512];
    hd_program *p = layers(route);
    hd_plan *placed = plan_by(p, route), *alone = plan_by(p, NULL);
    for (int i = 0; i < LAYERS; i++) {
        write_layer(placed, i, 3);
        write_layer(alone, i, 3);
    }
    compare_runs(placed, alone);
    hd_plan_stats stats;
    check(hd_plan_get_stats(placed, &stats));
    assert_int_equal(stats.segments, LAYERS + 1); /* one for each layer, and one that holds the inputs */
    assert_int_equal(stats.crossing_bytes, LAYERS * (WEIGHT + BIAS));
    hd_plan_destroy(placed);
    placed = plan_by(p, route); /* that which is taken from the cache knows of no inputs */
    assert_int_equal(hd_plan_run(placed, NULL), HD_STATUS_WRONG_STATE);
    hd_context_error(context);
    hd_plan_destroy(placed);
    hd_plan_destroy(alone);
    hd_program_destroy(p);
}

static void bits_are_those_of_one_device(void **state) {
    (void)state;
    on_devices(give_bits);
}

/* ---- memory ---- */

/* Two layers' weights are on the device at a time, and intermediates of one. */
static void take_memory(void) {
    char route[512];
    hd_plan_memory each[2], alone;
    hd_device_stats before, after;
    float y[ROWS * WIDE];
    hd_program *p = layers(route);
    const hd_plan_desc desc = { .math = HD_MATH_EXACT, .beside = &beside, .beside_count = 1, .route = route };
    check(hd_plan_estimate(device, p, NULL, &alone));
    check(hd_plan_estimate_each(device, p, &desc, each));
    assert_true(alone.input_bytes >= LAYERS * (WEIGHT + BIAS));
    assert_true(each[1].input_bytes >= LAYERS * (WEIGHT + BIAS));
    assert_true(each[0].input_bytes >= 2 * WEIGHT + sizeof y && each[0].input_bytes <= 2 * WEIGHT + 4096 + sizeof y);
    assert_true(each[0].scratch_bytes <= 4 * sizeof y);
    check(hd_device_get_stats(device, &before));
    hd_plan *plan = plan_by(p, route);
    for (int i = 0; i < LAYERS; i++) write_layer(plan, i, 0);
    write_x(plan, 0);
    check(hd_plan_run(plan, NULL));
    check(hd_device_get_stats(device, &after));
    if (strcmp(hd_device_get_info(device)->id, "cpu") != 0) /* its transfers' ring is counted too, where there is one */
        assert_true(after.device_bytes - before.device_bytes >= each[0].total_bytes);
    else assert_int_equal(after.device_bytes - before.device_bytes, each[0].total_bytes);
    hd_plan_destroy(plan);
    hd_program_destroy(p);
}

static void two_layers_lie_on_the_device(void **state) {
    (void)state;
    on_devices(take_memory);
}

/* ---- memory of the caller's ---- */

static hd_buffer *buffer_on(hd_device *on, uint64_t bytes) {
    hd_buffer *buffer = NULL;
    check(hd_buffer_create(on, &(hd_buffer_desc){ .bytes = bytes }, &buffer));
    return buffer;
}

/* Inputs lie in one buffer each, and arrive in one of two, by turns. */
static void bind_both(void) {
    char route[512];
    float data[WIDE * WIDE];
    hd_program *p = layers(route);
    hd_plan *placed = plan_by(p, route), *alone = plan_by(p, NULL);
    hd_buffer *slots[2] = { buffer_on(device, WEIGHT), buffer_on(device, WEIGHT) }, *lies[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        char name[8];
        name_of('w', i, name);
        write_layer(placed, i, 3);
        write_layer(alone, i, 3);
        lies[i] = buffer_on(beside, WEIGHT);
        fill(data, WIDE * WIDE, 3 + i);
        check(hd_buffer_write(lies[i], 0, data, WEIGHT));
        check(hd_plan_bind(placed, name, lies[i], 0));
        if (i != 2) check(hd_plan_bind(placed, name, slots[i & 1], 0)); /* one has memory of the plan's own */
        if (i == 2) assert_int_equal(hd_plan_bind(placed, name, slots[0], 256), HD_STATUS_LIMIT);
    }
    hd_context_error(context);
    for (int run = 0; run < 3; run++) {
        float got[ROWS * WIDE], wanted[ROWS * WIDE];
        write_x(placed, run);
        write_x(alone, run);
        check(hd_plan_run(placed, NULL));
        check(hd_plan_run(alone, NULL));
        check(hd_plan_read(placed, "y", got, sizeof got));
        check(hd_plan_read(alone, "y", wanted, sizeof wanted));
        assert_memory_equal(got, wanted, sizeof got);
    }
    hd_plan_destroy(placed);
    hd_plan_destroy(alone);
    for (int i = 0; i < LAYERS; i++) hd_buffer_destroy(lies[i]);
    for (int i = 0; i < 2; i++) hd_buffer_destroy(slots[i]);
    hd_program_destroy(p);
}

static void both_places_can_be_bound(void **state) {
    (void)state;
    on_devices(bind_both);
}

/* ---- misuse ---- */

static void refuse(void) {
    static const struct { const char *route; hd_status status; } cases[] = {
        { "input:v2=rows:1:1", HD_STATUS_PARSE }, { "input:matmul=1", HD_STATUS_PARSE }, { "input:=1", HD_STATUS_PARSE },
        { "input:v9-v2=1", HD_STATUS_PARSE },     { "input:v2-v900=1", HD_STATUS_PARSE }, { "input:v2=2", HD_STATUS_PARSE },
        { "v2=1", HD_STATUS_PARSE },              { "input:rest=1", HD_STATUS_PARSE },
        { "input:v2=1,tanh=rows:1:1", HD_STATUS_UNSUPPORTED },
    };
    char route[512];
    hd_plan *plan = NULL;
    hd_program *p = layers(route);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hd_plan_desc desc = { .beside = &beside, .beside_count = 1, .route = cases[i].route };
        if (hd_plan_create(device, p, &desc, &plan) != cases[i].status) fail_msg("%s: %s", cases[i].route, hd_context_error(context));
        hd_context_error(context);
    }
    /* Where all is on one device nothing crosses; an operation beside its inputs reads them where they lie. */
    static const char *const routes[] = { "input:v2-v30=0", "input:v2-v30=1,rest=1", "matmul=1,input:v2-v30=1", "input:v1-v30=1" };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        float got[ROWS * WIDE], wanted[ROWS * WIDE];
        hd_plan *alone = plan_by(p, NULL);
        plan = plan_by(p, routes[i]);
        for (int k = 0; k < LAYERS; k++) {
            write_layer(plan, k, 1);
            write_layer(alone, k, 1);
        }
        write_x(plan, 1);
        write_x(alone, 1);
        check(hd_plan_run(plan, NULL));
        check(hd_plan_run(alone, NULL));
        check(hd_plan_read(plan, "y", got, sizeof got));
        check(hd_plan_read(alone, "y", wanted, sizeof wanted));
        assert_memory_equal(got, wanted, sizeof got);
        hd_plan_destroy(plan);
        hd_plan_destroy(alone);
    }
    hd_program_destroy(p);
}

static void routes_are_checked(void **state) {
    (void)state;
    on_devices(refuse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_device), cmocka_unit_test(two_layers_lie_on_the_device),
        cmocka_unit_test(both_places_can_be_bound), cmocka_unit_test(routes_are_checked),
    };
    return cmocka_run_group_tests(tests, open_context, close_all);
}
