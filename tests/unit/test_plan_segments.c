/* test_plan_segments.c: plans for several devices from facts alone: the same bytes each time; what crosses, which memory
 * segments share
 * and what each device needs; pieces of ports; and that nothing is lost in programs by chance. No device is opened. */
#include "chance_programs.h"
#include "plan/plan.h"
#include "work_cases.h"

enum { DEVICES = 4 };
static const char *const ids[DEVICES] = { "d0", "d1", "d2", "d3" };
static hdi_caps caps[DEVICES];

static hd_status make_with(const hd_program *p, uint32_t devices, const char *route, hdi_plan_options options,
    hdi_plan **out, hd_error *error) {
    hdi_placement placement = { 0 };
    for (int d = 0; d < DEVICES; d++) caps[d] = gpu;
    *out = NULL;
    hd_status status = hdi_placement_parse(p, route, ids, devices, &placement, error);
    const hdi_plan_wish wish = { p, &placement, caps, ids, options };
    if (!status) status = hdi_plan_make(p->allocator, &wish, out, error);
    hdi_placement_free(&placement);
    return status;
}

static hdi_plan *make(const hd_program *p, uint32_t devices, const char *route) {
    hdi_plan *plan;
    hd_error error = { 0 };
    if (make_with(p, devices, route, (hdi_plan_options){ .math = HD_MATH_EXACT }, &plan, &error))
        fail_msg("%s: %s", route, error.text);
    return plan;
}

/* ---- what holds for every plan ---- */

static void check_slots(const hdi_plan *plan) {
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const hdi_plan_segment *segment = &plan->segments[s];
        assert_true(segment->device < plan->device_count);
        for (uint32_t i = 0; i < segment->schedule->slot_count; i++) {
            const hdi_plan_slot *slot = &segment->slots[i];
            if (!segment->schedule->slots[i].name) continue;
            assert_true(slot->home_segment <= s); /* its own, or an earlier one of the device */
            const hdi_plan_segment *home = &plan->segments[slot->home_segment];
            assert_int_equal(home->device, segment->device);
            assert_true(slot->home_slot < home->schedule->slot_count);
            assert_string_equal(home->schedule->slots[slot->home_slot].name, segment->schedule->slots[i].name);
            if (slot->home_segment < s) assert_true(home->slots[slot->home_slot].shared);
            assert_true(slot->inside == (slot->port == 0) && slot->port <= plan->port_count);
            if (slot->port)
                assert_true(slot->port_at + segment->schedule->slots[i].tensor_bytes <= plan->ports[slot->port - 1].bytes);
        }
    }
}

static void check_crossings(const hdi_plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t c = 0; c < plan->crossing_count; c++) {
        const hdi_crossing *x = &plan->crossings[c];
        assert_true(x->from < x->to && x->to < plan->segment_count);
        assert_true(plan->segments[x->from].device != plan->segments[x->to].device);
        assert_string_equal(plan->segments[x->from].schedule->slots[x->from_slot].name,
            plan->segments[x->to].schedule->slots[x->to_slot].name);
        if (c) assert_true(plan->crossings[c - 1].to <= x->to);
        bytes += x->bytes;
    }
    assert_int_equal(bytes, plan->crossing_bytes);
}

static void check_memory(const hdi_plan *plan) {
    uint64_t total = 0;
    for (uint32_t d = 0; d < plan->device_count; d++) total += plan->on[d].total_bytes;
    assert_int_equal(total, plan->memory.total_bytes);
}

static void check_whole(const hdi_plan *plan) {
    check_slots(plan);
    check_crossings(plan);
    check_memory(plan);
}

/* The plan again prints the same bytes. */
static void check_pure(const hd_program *p, uint32_t devices, const char *route) {
    hdi_text text[2] = { { .allocator = &hdi_default_allocator }, { .allocator = &hdi_default_allocator } };
    for (int k = 0; k < 2; k++) {
        hdi_plan *plan = make(p, devices, route);
        hdi_plan_print(plan, &text[k]);
        hdi_plan_free(plan);
    }
    assert_string_equal(text[0].bytes, text[1].bytes);
    for (int k = 0; k < 2; k++) hdi_text_free(&text[k]);
}

/* ---- by chance ---- */

/* Each living operation is in one segment. */
static void check_segments(const hd_program *p, const char *route) {
    static bool alive[256];
    uint32_t seen[256] = { 0 };
    hdi_placement placement = { 0 };
    hdi_segments segments;
    assert_true(p->node_count <= 256);
    assert_int_equal(hdi_placement_parse(p, route, ids, 3, &placement, NULL), HD_OK);
    assert_int_equal(hdi_placement_settle(p, (const bool[3]){ true, true, true }, &placement, NULL), HD_OK);
    hdi_program_find_alive(p, alive);
    if (placement.share_count == 0) {
        assert_int_equal(hdi_segments_cut(p, &placement, &segments, NULL), HD_OK);
        for (uint32_t s = 0; s < segments.count; s++)
            for (uint32_t i = 0; i < segments.items[s].program->node_count; i++)
                if (!hdi_op_is_source(segments.items[s].program->nodes[i].op))
                    seen[segments.items[s].program->nodes[i].whole - 1]++;
        for (uint32_t i = 0; i < p->node_count; i++) assert_int_equal(seen[i], alive[i] &&
            !hdi_op_is_source(p->nodes[i].op));
        hdi_segments_free(&segments);
    }
    hdi_placement_free(&placement);
}

static void nothing_is_lost(void **state) {
    (void)state;
    check(hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context));
    for (uint32_t k = 0; k < 200; k++) {
        char route[8192];
        hd_program *p = any_program();
        assert_true(HDI_FIND(p));
        any_route(p, 3, route, sizeof route);
        hdi_plan *plan = make(p, 3, route);
        check_whole(plan);
        check_segments(p, route);
        if (k % 10 == 0) check_pure(p, 3, route);
        hdi_plan_free(plan);
        hd_program_destroy(p);
    }
    hd_context_destroy(context);
}

/* ---- by hand ---- */

static const char chain[] = "x = input f32[96,64] \"x\"\nw = input f32[64,128] \"w\"\nm = matmul x w\ns = softmax m "
                            "axis=1\nt = tanh s\noutput t \"y\"\n";

static void one_to_four_devices(void **state) {
    (void)state;
    static const struct { uint32_t devices; const char *route; uint32_t segments, crossings; } cases[] = {
        { 1, "rest=0", 1, 0 }, { 2, "rest=1", 1, 0 }, { 2, "softmax=1", 3, 2 },
            { 3, "matmul=0,softmax=1,tanh=2", 3, 2 },
        { 4, "matmul=3,softmax=2,tanh=1", 3, 2 }, { 3, "rest=rows:1:1:1", 3, 0 }, { 4, "rest=rows:1:1:1:1", 4, 0 },
    };
    hd_program *p = parse(chain);
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        hdi_plan *plan = make(p, cases[i].devices, cases[i].route);
        check_whole(plan);
        if (plan->segment_count != cases[i].segments || plan->crossing_count != cases[i].crossings)
            fail_msg("%s: %u segments, %u crossings", cases[i].route, plan->segment_count, plan->crossing_count);
        check_pure(p, cases[i].devices, cases[i].route);
        hdi_plan_free(plan);
    }
    hdi_program_free(p);
}

/* Each device has its rows of x and of y, one behind the other, and all of w. */
static void ports_have_pieces(void **state) {
    (void)state;
    hd_program *p = parse(chain);
    hdi_plan *plan = make(p, 3, "rest=rows:1:1:1");
    uint64_t at[2] = { 0, 0 };
    uint32_t whole = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].schedule->slot_count; i++) {
            const hdi_plan_slot *slot = &plan->segments[s].slots[i];
            const hdi_schedule_slot *of = &plan->segments[s].schedule->slots[i];
            if (!slot->port) continue;
            const char name = plan->ports[slot->port - 1].name[0];
            if (name == 'w') {
                whole++;
                assert_true(slot->port_at == 0 && of->tensor_bytes == plan->ports[slot->port - 1].bytes);
                continue;
            }
            assert_int_equal(slot->port_at, at[name == 'y']);
            at[name == 'y'] += of->tensor_bytes;
        }
    assert_true(at[0] == 96 * 64 * 4 && at[1] == 96 * 128 * 4 && whole == 3);
    hdi_plan_free(plan);
    hdi_program_free(p);
}

static void exact_mode_refuses_terms(void **state) {
    (void)state;
    hd_program *p = parse(chain);
    hd_error error = { 0 };
    hdi_plan *plan;
    assert_int_equal(make_with(p, 2, "matmul=terms:1:1", (hdi_plan_options){ .math = HD_MATH_EXACT }, &plan, &error),
        HD_STATUS_UNSUPPORTED);
    assert_true(plan == NULL && strstr(error.text, "v3: sums of terms") != NULL);
    assert_int_equal(make_with(p, 2, "matmul=terms:1:1", (hdi_plan_options){ .math = HD_MATH_FAST }, &plan, NULL),
        HD_OK);
    check_whole(plan);
    hdi_plan_free(plan);
    plan = make(p, 2, "matmul=columns:1:1");
    check_whole(plan);
    hdi_plan_free(plan);
    hdi_program_free(p);
}

/* It holds on each device by itself. */
static void a_budget_is_each_devices(void **state) {
    (void)state;
    hd_program *p = parse(chain);
    hdi_plan_options options = { .math = HD_MATH_EXACT };
    hd_error error = { 0 };
    hdi_plan *plan = make(p, 2, "softmax=1");
    const uint64_t most = HDI_MAX(plan->on[0].total_bytes, plan->on[1].total_bytes);
    assert_true(plan->memory.total_bytes > most);
    hdi_plan_free(plan);
    options.budget_bytes = most;
    assert_int_equal(make_with(p, 2, "softmax=1", options, &plan, NULL), HD_OK);
    hdi_plan_free(plan);
    options.budget_bytes = most - 1;
    assert_int_equal(make_with(p, 2, "softmax=1", options, &plan, &error), HD_STATUS_OVER_BUDGET);
    hdi_program_free(p);
}

static void without_memory(void **state) {
    (void)state;
    for (size_t fail_at = 1; fail_at < 4000; fail_at++) {
        test_memory memory;
        hdi_plan *plan;
        hd_program *p = hdi_program_new(&test_memory_start(&memory, 0)->allocator, NULL);
        const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(96, 16));
        hd_output(p, "y", hd_tanh(p, hd_softmax(p, hd_matmul(p, x, hd_transpose(p, x)), -1)));
        const size_t before = memory.bytes_alive;
        memory.fail_at = memory.calls + fail_at;
        const hd_status status = make_with(p, 3, "softmax=rows:1:2:1,tanh=1",
            (hdi_plan_options){ .math = HD_MATH_EXACT }, &plan, NULL);
        if (!status) hdi_plan_free(plan);
        memory.fail_at = 0;
        assert_int_equal(memory.bytes_alive, before);
        hdi_program_free(p);
        if (!status) return;
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
    }
    fail_msg("it never had memory enough");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost), cmocka_unit_test(one_to_four_devices), cmocka_unit_test(ports_have_pieces),
        cmocka_unit_test(exact_mode_refuses_terms), cmocka_unit_test(a_budget_is_each_devices),
            cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
