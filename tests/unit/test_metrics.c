/* test_metrics.c: what lies on a device, what it still has, and what a context counts: each figure against what was done. */
#include "device/device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the table of memories ---- */

/* 10^6 random steps beside a plain array. */
static void holdings_hold_what_is_there(void **state) {
    (void)state;
    enum { PLACES = 700, STEPS = 1000000 };
    static bool there[PLACES];
    static char memories[PLACES * 64];
    hdi_holdings holdings = { 0 };
    uint32_t chance = 7, count = 0;
    for (int step = 0; step < STEPS; step++) {
        chance = chance * 1664525u + 1013904223u;
        const uint32_t at = (chance >> 8) % PLACES;
        const hdi_memory *memory = (const void *)&memories[at * 64];
        const hdi_alloc_desc desc = { .bytes = at + 1, .label = "m", .kind = HD_MEMORY_STATE };
        if (there[at]) hdi_holdings_remove(&holdings, memory);
        else assert_true(hdi_holdings_add(&holdings, &hdi_default_allocator, memory, &desc, false));
        there[at] = !there[at];
        count = there[at] ? count + 1 : count - 1;
        assert_int_equal(holdings.count, count);
    }
    hdi_holdings_remove(&holdings, (const void *)&memories[1]); /* never added: nothing happens */
    uint64_t wanted = 0, found = 0;
    for (uint32_t at = 0; at < PLACES; at++) wanted += there[at] ? at + 1 : 0;
    for (uint32_t i = 0; i < holdings.capacity; i++) found += holdings.of[i].memory ? holdings.of[i].info.bytes : 0;
    assert_int_equal(found, wanted);
    for (uint32_t at = 0; at < PLACES; at++) hdi_holdings_remove(&holdings, (const void *)&memories[at * 64]);
    assert_int_equal(holdings.count, 0);
    hdi_holdings_free(&holdings, &hdi_default_allocator);
}

/* ---- devices ---- */

static hd_context *context;
static hd_device *device;

static bool open_on(const char *backend) {
    const hd_context_desc desc = { .backend = backend, .cache_dir = "", .verify = -1 };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (!hd_device_open(context, &(hd_device_desc){ .id = backend }, &device)) return true;
    hd_context_destroy(context);
    print_message("%s is not here\n", backend);
    return false;
}

static hd_memory_info infos[64];

static size_t list_memory(uint64_t out_kinds[HD_MEMORY_KINDS]) {
    size_t count = 64;
    assert_int_equal(hd_device_memory(device, infos, &count), HD_OK);
    memset(out_kinds, 0, HD_MEMORY_KINDS * sizeof *out_kinds);
    for (size_t i = 0; i < count; i++) {
        out_kinds[infos[i].kind] += infos[i].bytes;
        if (i > 0) assert_true(infos[i].bytes <= infos[i - 1].bytes);
    }
    hd_device_stats stats;
    hd_device_get_stats(device, &stats);
    uint64_t all = 0;
    for (int kind = 0; kind < HD_MEMORY_KINDS; kind++) all += out_kinds[kind];
    assert_int_equal(all - out_kinds[HD_MEMORY_STAGING], stats.device_bytes);
    return count;
}

static void memory_is_told_by_label_and_kind(void **state) {
    (void)state;
    static const char *const backends[] = { "cpu", "vulkan" };
    static float data[1 << 18];
    for (size_t b = 0; b < 2; b++) {
        uint64_t kinds[HD_MEMORY_KINDS];
        hd_buffer *buffer;
        hd_plan *plan;
        hd_plan_memory memory;
        if (!open_on(backends[b])) continue;
        assert_int_equal(list_memory(kinds), 0);
        assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = 4 << 20, .label = "weights" }, &buffer), HD_OK);
        hd_program *p = hd_program_create(context);
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(512, 512)), s = hd_state(p, "s", HD_F32, HD_SHAPE(512, 512));
        const hd_value y = hd_matmul(p, hd_softmax(p, hd_matmul(p, x, x), 1), x);
        hd_output(p, "y", y);
        hd_assign(p, s, y);
        assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
        assert_int_equal(hd_plan_write(plan, "x", data, sizeof data), HD_OK);
        assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
        assert_int_equal(hd_plan_get_memory(plan, &memory), HD_OK);
        assert_true(list_memory(kinds) >= 4);
        assert_string_equal(infos[0].label, "weights");
        assert_int_equal(infos[0].kind, HD_MEMORY_BUFFER);
        assert_true(infos[0].in_place); /* lavapipe and the host share one memory */
        assert_int_equal(kinds[HD_MEMORY_BUFFER], 4 << 20);
        assert_int_equal(kinds[HD_MEMORY_INPUT], memory.input_bytes);
        assert_int_equal(kinds[HD_MEMORY_STATE], memory.state_bytes);
        assert_int_equal(kinds[HD_MEMORY_OUTPUT], memory.output_bytes);
        assert_int_equal(kinds[HD_MEMORY_SCRATCH], memory.scratch_bytes);
        assert_int_equal(kinds[HD_MEMORY_CONSTANT], memory.constant_bytes);
        size_t room = 1;
        assert_int_equal(hd_device_memory(device, infos + 1, &room), HD_STATUS_LIMIT); /* the largest */
        assert_string_equal(infos[1].label, "weights");
        assert_true(room >= 4);
        hd_plan_destroy(plan);
        hd_program_destroy(p);
        hd_buffer_destroy(buffer);
        list_memory(kinds);
        assert_int_equal(kinds[HD_MEMORY_BUFFER], 0);
        hd_context_destroy(context);
    }
    assert_string_equal(hd_memory_kind_name(HD_MEMORY_STAGING), "staging");
    assert_string_equal(hd_memory_kind_name((hd_memory_kind)99), "unknown");
}

enum { GIB = 1 << 30, PIECE = 16 << 20 };

/* What is taken of all heaps, and what may still be; false where the driver does not tell. */
static bool look_at_heaps(uint64_t *out_used, uint64_t *out_left) {
    hd_heap heaps[HD_MAX_HEAPS];
    size_t count = 0;
    *out_used = *out_left = 0;
    const hd_status status = hd_device_heaps(device, NULL, &count);
    assert_true(status == HD_OK || status == HD_STATUS_UNSUPPORTED);
    if (status) return false;
    assert_true(count > 0 && count <= HD_MAX_HEAPS);
    assert_int_equal(hd_device_heaps(device, heaps, &(size_t){ 0 }), HD_STATUS_LIMIT);
    assert_int_equal(hd_device_heaps(device, heaps, &count), HD_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(heaps[i].size_bytes > 0 && heaps[i].used_bytes <= heaps[i].size_bytes);
        *out_used += heaps[i].used_bytes;
        if (heaps[i].budget_bytes > heaps[i].used_bytes) *out_left += heaps[i].budget_bytes - heaps[i].used_bytes;
    }
    return true;
}

/* 1 GiB comes and goes: what is told follows within 5 %. */
static void heaps_follow_allocations(void **state) {
    (void)state;
    static const char *const backends[] = { "cpu", "vulkan", "cuda", "hip" };
    static char bytes[PIECE];
    const uint64_t wanted = GIB, off = wanted / 20;
    memset(bytes, 1, sizeof bytes);
    for (size_t b = 0; b < 4; b++) {
        uint64_t before, held, after, left;
        hd_buffer *buffer;
        if (!open_on(backends[b])) continue;
        if (!look_at_heaps(&before, &left) || left < wanted + wanted / 2)
            print_message("%s does not tell, or has no GiB left\n", backends[b]);
        else {
            assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = wanted }, &buffer), HD_OK);
            for (uint64_t at = 0; at < wanted; at += PIECE) assert_int_equal(hd_buffer_write(buffer, at, bytes, PIECE), HD_OK);
            assert_true(look_at_heaps(&held, &left));
            hd_buffer_destroy(buffer);
            assert_int_equal(hd_device_wait(device, 0), HD_OK); /* which ends what the writes kept */
            assert_true(look_at_heaps(&after, &left));
            print_message("%s: %.1f MiB more, then %.1f MiB less\n", backends[b], ((double)held - (double)before) / 0x1p20,
                          ((double)held - (double)after) / 0x1p20);
            assert_true(held >= before + wanted - off && held <= before + wanted + off);
            assert_true(held >= after + wanted - off && held <= after + wanted + off);
        }
        hd_context_destroy(context);
    }
}

/* Buffers of one size come and go for other uses by turns: each is fit for its own, and begins with zeros. */
static void memory_serves_its_own_use(void **state) {
    (void)state;
    static const hd_buffer_use uses[] = { HD_BUFFER_STORAGE, HD_BUFFER_UPLOAD, HD_BUFFER_READBACK };
    static const char *const backends[] = { "cpu", "vulkan", "opencl" };
    uint32_t there[64], zeros[64] = { 0 };
    for (uint32_t i = 0; i < 3000; i++) {
        if (i % 1000 == 0 && !open_on(backends[i / 1000])) { i += 999; continue; }
        hd_buffer *buffer;
        void *mapped = NULL;
        const hd_buffer_use use = uses[(i ^ i >> 2) % 3];
        assert_int_equal(hd_buffer_create(device, &(hd_buffer_desc){ .bytes = sizeof there, .use = use }, &buffer), HD_OK);
        assert_int_equal(hd_buffer_read(buffer, 0, there, sizeof there), HD_OK);
        assert_memory_equal(there, zeros, sizeof there); /* nothing of the one before */
        if (use != HD_BUFFER_STORAGE) assert_int_equal(hd_buffer_map(buffer, &mapped), HD_OK);
        memset(there, (int)i | 1, sizeof there);
        assert_int_equal(hd_buffer_write(buffer, 0, there, sizeof there), HD_OK);
        if (mapped) assert_memory_equal(mapped, there, sizeof there);
        hd_buffer_destroy(buffer);
        if (i % 1000 == 999) hd_context_destroy(context);
    }
}

/* ---- metrics ---- */

static char text[1 << 16];

static uint64_t value_of(const char *line) {
    size_t needed;
    assert_int_equal(hd_context_metrics(context, text, sizeof text, &needed), HD_OK);
    assert_int_equal(needed, strlen(text) + 1);
    for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, line, strlen(line)) == 0) return strtoull(at + strlen(line), NULL, 10);
    fail_msg("no line begins with \"%s\"", line);
    return 0;
}

/* Every line is a comment of a metric or a sample of the one that the last comments named. */
static void check_form(void) {
    char named[128] = "";
    for (char *at = text, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        assert_non_null(end);
        *end = 0;
        if (sscanf(at, "# HELP %127s", named) == 1) continue;
        if (strncmp(at, "# TYPE ", 7) == 0) {
            assert_memory_equal(at + 7, named, strlen(named));
            assert_true(strstr(at, " counter") || strstr(at, " gauge"));
            continue;
        }
        assert_memory_equal(at, named, strlen(named));
        const char *value = strrchr(at, ' ');
        assert_non_null(value);
        assert_int_equal(strspn(value + 1, "0123456789"), strlen(value + 1));
    }
}

static void metrics_tell_what_was_done(void **state) {
    (void)state;
    if (!open_on("cpu")) return;
    hd_program *p = hd_program_create(context);
    hd_plan *plan;
    hd_output(p, "y", hd_neg(p, hd_input(p, "x", HD_F32, HD_SHAPE(8))));
    assert_int_equal(value_of("heddle_plans "), 0);
    assert_int_equal(hd_plan_create(device, p, NULL, &plan), HD_OK);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    assert_int_equal(hd_plan_write(plan, "x", (float[8]){ 0 }, 32), HD_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(hd_plan_run(plan, NULL), HD_OK);
    assert_int_equal(value_of("heddle_plans "), 1);
    assert_int_equal(value_of("heddle_objects "), 3);
    assert_int_equal(value_of("heddle_failures_total "), 1);
    assert_int_equal(value_of("heddle_failovers_total "), 0);
    assert_int_equal(value_of("heddle_device_runs_total{device=\"cpu\"} "), 3);
    assert_int_equal(value_of("heddle_device_upload_bytes_total{device=\"cpu\"} "), 32);
    assert_int_equal(value_of("heddle_device_lost{device=\"cpu\"} "), 0);
    assert_true(value_of("heddle_device_heap_used_bytes{device=\"cpu\",heap=\"0\"} ") < value_of("heddle_device_heap_budget_bytes{device=\"cpu\",heap=\"0\"} "));
    assert_true(value_of("heddle_device_held_bytes{device=\"cpu\",kind=\"input\"} ") >= 32);
    size_t needed = 0;
    char small[40];
    assert_int_equal(hd_context_metrics(context, small, sizeof small, &needed), HD_STATUS_LIMIT);
    assert_true(needed > 1000);
    assert_int_equal(hd_context_metrics(context, NULL, 0, &needed), HD_OK);
    value_of("heddle_info{");
    check_form();
    hd_plan_destroy(plan);
    hd_program_destroy(p);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(holdings_hold_what_is_there), cmocka_unit_test(memory_is_told_by_label_and_kind),
                                        cmocka_unit_test(heaps_follow_allocations), cmocka_unit_test(memory_serves_its_own_use), cmocka_unit_test(metrics_tell_what_was_done) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
