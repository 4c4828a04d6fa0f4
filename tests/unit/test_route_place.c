/* test_route_place.c: placements are optimal: no other of all possible ones takes less time, for small programs of chance;
 * values that cross are paid once; states stay together; devices that compute at the same time share tasks. */
#include "program_cases.h"
#include "route/route.h"
#include <math.h>

enum { MOST = 24, SIDE = 32 };

static uint32_t chance;
static uint32_t below(uint32_t n) {
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(chance >> 8) * n) >> 24);
}

typedef struct setting {
    hd_program *program;
    hdi_work    work[MOST];
    hdi_figures tuning[2];
    uint8_t     can[MOST];
    bool        resident[MOST];
    hdi_routing routing;
} setting;

static void begin(setting *s) {
    memset(s, 0, sizeof *s);
    s->program = hdi_program_new(&hdi_default_allocator, NULL);
}

/* Everything takes `fixed` ns and something for its bytes on either device; device 1 is behind links. */
static void finish(setting *s, bool fusion) {
    for (int d = 0; d < 2; d++) {
        s->routing.tuning[d] = &s->tuning[d];
        for (int f = 1; f < HDI_FAMILY_COUNT; f++)
            for (int w = 0; w < HDI_WIDTH_COUNT; w++)
                if (s->tuning[d].ops[f][w].samples == 0) s->tuning[d].ops[f][w] = (hdi_figure){ .fixed_ns = d ? 100 : 1000, .ns_per_byte = 0.001, .samples = 1 };
    }
    assert_int_equal(hdi_program_check(s->program, NULL), HD_OK);
    assert_true(s->program->node_count <= MOST);
    assert_int_equal(hdi_work_of(s->program, fusion, s->work, NULL), HD_OK);
    s->routing.program = s->program;
    s->routing.work = s->work;
    s->routing.host[0] = true;
}

static hdi_route make(const setting *s) {
    hdi_route route;
    hd_error error = { 0 };
    if (hdi_route_make(&s->routing, &route, &error)) fail_msg("%s", error.text);
    return route;
}
static void end(setting *s) { hdi_program_free(s->program); }

/* ---- optimal ---- */

static hd_value random_node(setting *s, const hd_value *values, uint32_t count) {
    const hd_value a = values[below(count)], b = values[below(count)];
    switch (below(6)) {
    case 0: return hd_add(s->program, a, b);
    case 1: return hd_matmul(s->program, a, b);
    case 2: return hd_softmax(s->program, a, -1);
    case 3: return hd_exp(s->program, a);
    case 4: return hd_reshape(s->program, a, HD_SHAPE(SIDE, SIDE));
    default: return hd_mul(s->program, a, b);
    }
}

static void random_setting(setting *s) {
    hd_value values[MOST];
    uint32_t count = 0;
    begin(s);
    const uint32_t inputs = 1 + below(3), nodes = 1 + below(9);
    for (uint32_t i = 0; i < inputs; i++) values[count++] = hd_input(s->program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(SIDE, SIDE));
    if (below(3) == 0) {
        const hd_value position = hd_input(s->program, "p", HD_I32, HD_SHAPE(1)), old = hd_state(s->program, "s", HD_F32, HD_SHAPE(SIDE, SIDE));
        const hd_value rows = values[below(count)];
        values[count++] = hd_write_rows(s->program, old, rows, position);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        values[count] = random_node(s, values, count);
        count++;
    }
    for (uint32_t i = 0; i < 1 + below(3); i++) hd_output(s->program, (char[2]){ (char)('x' + i), 0 }, values[count - 1 - below(HDI_MIN(count, 4))]);
    for (int d = 0; d < 2; d++) {
        for (int f = 1; f < HDI_FAMILY_COUNT; f++)
            for (int w = 0; w < HDI_WIDTH_COUNT; w++) s->tuning[d].ops[f][w] = (hdi_figure){ .fixed_ns = below(4000), .ns_per_byte = below(100) * 0.01, .ns_per_flop = below(100) * 0.001, .samples = 1 };
        s->tuning[d].upload = (hdi_figure){ .fixed_ns = below(3000), .ns_per_byte = below(100) * 0.01, .samples = 1 };
        s->tuning[d].download = (hdi_figure){ .fixed_ns = below(3000), .ns_per_byte = below(100) * 0.01, .samples = 1 };
    }
    finish(s, below(2));
    s->routing.host[0] = below(2);
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        s->can[i] = (uint8_t)(below(12) == 0 ? 1 + below(2) : 3);
        s->resident[i] = below(4) == 0;
    }
    s->routing.can = s->can;
    s->routing.resident = s->resident;
}

static bool shows_state(const setting *s, hd_value v) { return s->program->nodes[v - 1].op == HDI_OP_STATE || s->program->nodes[v - 1].op == HDI_OP_WRITE_ROWS; }

static bool is_allowed(const setting *s, const uint8_t *places) {
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const hdi_node *node = &s->program->nodes[i];
        if (node->op == HDI_OP_INPUT || !s->work[i].alive) continue;
        if (!(s->can[i] >> places[i] & 1)) return false;
        const uint32_t kernel = s->work[i].kernel - 1;
        if (places[i] != places[kernel] && s->can[i] == s->can[kernel]) return false;
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (shows_state(s, node->operands[k]) && places[node->operands[k] - 1] != places[i]) return false;
    }
    return true;
}

/* The least time of all placements, HUGE_VAL where none is allowed. */
static double least_of_all(const setting *s) {
    uint32_t which[MOST], n = 0;
    uint8_t places[MOST] = { 0 };
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < s->program->node_count; i++)
        if (s->program->nodes[i].op != HDI_OP_INPUT) which[n++] = i;
    for (uint32_t bits = 0; bits < 1u << n; bits++) {
        hdi_route_time time;
        for (uint32_t i = 0; i < n; i++) places[which[i]] = bits >> i & 1;
        if (!is_allowed(s, places)) continue;
        assert_int_equal(hdi_route_time_of(&s->routing, places, &time, NULL), HD_OK);
        least = fmin(least, time.total_ns);
    }
    return least;
}

static void nothing_is_faster(void **state) {
    (void)state;
    uint32_t split = 0, refused = 0;
    for (uint32_t seed = 1; seed <= 600; seed++) {
        setting s;
        hdi_route route, again;
        chance = seed * 2654435761u;
        random_setting(&s);
        const double least = least_of_all(&s);
        const hd_status status = hdi_route_make(&s.routing, &route, NULL);
        if ((least == HUGE_VAL) != (status == HD_STATUS_UNSUPPORTED)) fail_msg("program %u: status %d, least %g", seed, status, least);
        refused += status != HD_OK;
        if (!status) {
            if (!is_allowed(&s, route.places)) fail_msg("program %u: a placement that is not allowed", seed);
            if (route.chosen.total_ns > least * 1.0001 + 1) fail_msg("program %u: %g ns, and %g ns are possible", seed, route.chosen.total_ns, least);
            split += route.chosen.segments > 1;
            again = make(&s);
            assert_memory_equal(again.places, route.places, s.program->node_count);
            hdi_route_free(s.program, &again);
            hdi_route_free(s.program, &route);
        }
        end(&s);
    }
    if (split < 50 || refused == 0) fail_msg("%u split, %u refused", split, refused); /* the programs are of all sorts */
}

/* With submissions the whole time counts: never slower than all on one device. */
static void never_slower_than_alone(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        setting s;
        hdi_route route;
        chance = seed * 40503u;
        random_setting(&s);
        s.tuning[0].submit.fixed_ns = below(3000);
        s.tuning[1].submit.fixed_ns = below(9000);
        if (hdi_route_make(&s.routing, &route, NULL)) {
            end(&s);
            continue;
        }
        for (int d = 0; d < 2; d++) assert_true(!route.possible[d] || route.chosen.total_ns <= route.alone[d].total_ns);
        hdi_route_time time;
        assert_int_equal(hdi_route_time_of(&s.routing, route.places, &time, NULL), HD_OK);
        assert_true(time.total_ns == route.chosen.total_ns && time.segments == route.chosen.segments);
        hdi_route_free(s.program, &route);
        end(&s);
    }
}

static void assert_near_ns(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-6 * wanted)) fail_msg("%g ns instead of %g", got, wanted);
}

/* ---- what is paid ---- */

/* A value with two readers on the other device crosses once. */
static void a_crossing_is_paid_once(void **state) {
    (void)state;
    setting s;
    hdi_route_time time;
    begin(&s);
    const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(SIDE, SIDE)), a = hd_softmax(s.program, x, -1);
    const hd_value b = hd_softmax(s.program, a, -1), c = hd_softmax(s.program, a, -1);
    hd_output(s.program, "b", b);
    hd_output(s.program, "c", hd_matmul(s.program, c, b));
    finish(&s, true);
    s.tuning[1].upload.fixed_ns = 7;
    s.tuning[1].download.fixed_ns = 300;
    s.tuning[1].submit.fixed_ns = 10000;
    s.tuning[0].submit.fixed_ns = 20;
    uint8_t places[MOST] = { [1] = 0, [2] = 1, [3] = 1, [4] = 1 };
    assert_int_equal(hdi_route_time_of(&s.routing, places, &time, NULL), HD_OK);
    assert_true(time.transfers_ns == 7 + 300 + 300 && time.segments == 2 && time.submits_ns[0] == 20 && time.submits_ns[1] == 10000);
    places[4] = 0; /* b comes down for the caller and for its reader, c for its reader */
    assert_int_equal(hdi_route_time_of(&s.routing, places, &time, NULL), HD_OK);
    assert_true(time.transfers_ns == 7 + 300 + 300 + 300 && time.segments == 3 && time.submits_ns[0] == 40);
    memset(places, 1, sizeof places); /* the input goes up instead */
    assert_int_equal(hdi_route_time_of(&s.routing, places, &time, NULL), HD_OK);
    assert_true(time.transfers_ns == 7 + 300 + 300 && time.segments == 1 && time.submits_ns[0] == 0);
    s.resident[0] = true;
    s.routing.resident = s.resident;
    assert_int_equal(hdi_route_time_of(&s.routing, places, &time, NULL), HD_OK);
    assert_true(time.transfers_ns == 600);
    end(&s);
}

static void weights_do_not_travel(void **state) {
    (void)state;
    setting s;
    begin(&s);
    const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(1, 256)), w = hd_input(s.program, "w", HD_Q4_0, HD_SHAPE(256, 256));
    hd_output(s.program, "y", hd_matmul_with(s.program, x, w, HD_TRANSPOSE_B));
    finish(&s, true);
    s.tuning[1].upload.ns_per_byte = 0.5; /* x takes 512 ns, w would take far more */
    hdi_route route = make(&s);
    assert_true(route.places[2] == 0 || route.chosen.transfers_ns == 512);
    assert_int_equal(route.places[2], 1);
    hdi_route_free(s.program, &route);
    end(&s);
}

/* Devices that compute at the same time share tasks that do not wait for each other. */
static void devices_that_overlap_share(void **state) {
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        setting s;
        uint32_t on[2] = { 0, 0 };
        begin(&s);
        for (int i = 0; i < 4; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(SIDE, SIDE));
            hd_output(s.program, (char[2]){ (char)('w' + i), 0 }, hd_matmul(s.program, hd_softmax(s.program, x, -1), x));
        }
        for (int d = 0; d < 2; d++)
            for (int f = 1; f < HDI_FAMILY_COUNT; f++) s.tuning[d].ops[f][0] = (hdi_figure){ .fixed_ns = 1000 + 50 * d, .samples = 1 };
        finish(&s, true);
        s.routing.overlap = overlap;
        hdi_route route = make(&s);
        for (uint32_t i = 0; i < s.program->node_count; i++)
            if (s.program->nodes[i].op == HDI_OP_MATMUL) on[route.places[i]]++;
        if (overlap) assert_true(on[0] == 2 && on[1] == 2 && route.chosen.total_ns == 4200);
        else assert_true(on[0] == 4 && route.chosen.total_ns == 8000);
        hdi_route_free(s.program, &route);
        end(&s);
    }
}

/* ---- sharing ---- */

/* Tasks of different lengths, a submission that a single short one would not pay for: the least of all placements is found, and the
 * one for both devices is told also where all on one is faster. */
static void tasks_are_dealt_out(void **state) {
    (void)state;
    for (int slow = 1; slow <= 16; slow *= 4) {
        setting s;
        begin(&s);
        for (int i = 0; i < 6; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(1 + i % 3, SIDE));
            hd_output(s.program, (char[2]){ (char)('u' + i), 0 }, hd_softmax(s.program, x, -1));
        }
        for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_FAMILY_SOFTMAX][0] = (hdi_figure){ .fixed_ns = 1000, .ns_per_byte = d ? 0.5 * slow : 1, .samples = 1 };
        s.tuning[0].submit.fixed_ns = s.tuning[1].submit.fixed_ns = 1500;
        finish(&s, true);
        s.routing.overlap = true;
        hdi_route route = make(&s);
        assert_near_ns(route.chosen.total_ns, least_of_all(&s));
        assert_true(route.shared.total_ns < HUGE_VAL && route.shared.total_ns >= route.chosen.total_ns && route.shared.segments == 2);
        hdi_route_free(s.program, &route);
        end(&s);
    }
}

/* A chain of small steps suits the one, a large product the other: they run beside each other. */
static void a_chain_runs_beside_a_product(void **state) {
    (void)state;
    setting s;
    begin(&s);
    hd_value h = hd_input(s.program, "h", HD_F32, HD_SHAPE(1, SIDE));
    for (int i = 0; i < 8; i++) h = hd_softmax(s.program, h, -1);
    hd_output(s.program, "u", h);
    const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(256, 256));
    hd_output(s.program, "y", hd_matmul(s.program, x, x));
    for (int d = 0; d < 2; d++) {
        s.tuning[d].ops[HDI_FAMILY_SOFTMAX][0] = (hdi_figure){ .fixed_ns = d ? 500 : 3000, .samples = 1 };
        s.tuning[d].ops[HDI_FAMILY_MATMUL][0] = (hdi_figure){ .fixed_ns = d ? 200000 : 10000, .samples = 1 };
    }
    finish(&s, true);
    s.routing.overlap = true;
    hdi_route route = make(&s);
    assert_true(route.chosen.segments == 2 && route.chosen.total_ns == route.shared.total_ns);
    for (uint32_t i = 0; i < s.program->node_count; i++)
        if (s.program->nodes[i].op != HDI_OP_INPUT) assert_int_equal(route.places[i], s.program->nodes[i].op == HDI_OP_SOFTMAX);
    hdi_route_free(s.program, &route);
    end(&s);
}

typedef struct sharing {
    hdi_route_time time, alone; /* as placed, and on the faster one */
    uint32_t percent;           /* of the rows on device 0; 0: they are not shared */
} sharing;

/* One softmax of 1024 rows, so many ns for each of its bytes on either device, and for its input's and output's on the way to device 1. */
static sharing share_softmax(double ns0, double ns1, double link_ns, bool overlap) {
    setting s;
    hdi_route_time again;
    begin(&s);
    hd_output(s.program, "y", hd_softmax(s.program, hd_input(s.program, "x", HD_F32, HD_SHAPE(1024, 16)), -1));
    for (int w = 0; w < HDI_WIDTH_COUNT; w++)
        for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_FAMILY_SOFTMAX][w] = (hdi_figure){ .fixed_ns = 100, .ns_per_byte = d ? ns1 : ns0, .samples = 1 };
    s.tuning[1].upload = s.tuning[1].download = (hdi_figure){ .ns_per_byte = link_ns, .samples = 1 };
    finish(&s, true);
    s.routing.overlap = overlap;
    hdi_route route = make(&s);
    const sharing found = { route.chosen, route.alone[route.alone[1].total_ns < route.alone[0].total_ns], route.places[1] & HDI_PLACE_SHARED ? route.places[1] & ~HDI_PLACE_SHARED : 0 };
    assert_int_equal(hdi_route_time_of(&s.routing, route.places, &again, NULL), HD_OK);
    assert_true(again.total_ns == route.chosen.total_ns);
    hdi_route_free(s.program, &route);
    end(&s);
    return found;
}

static void rows_are_shared_where_that_pays(void **state) {
    (void)state;
    sharing s = share_softmax(1, 1, 0, true);
    assert_int_equal(s.percent, 50);
    assert_true(s.time.total_ns < 0.51 * s.alone.total_ns);
    s = share_softmax(1, 3, 0, true); /* both end at the same time */
    assert_in_range(s.percent, 74, 76);
    assert_true(fabs(s.time.nodes_ns[0] - s.time.nodes_ns[1]) < 0.07 * s.alone.total_ns);
    s = share_softmax(1, 12, 0, true); /* it would save 8% */
    assert_true(s.percent == 0 && s.time.total_ns == s.alone.total_ns);
    s = share_softmax(1, 1, 0, false); /* one after the other */
    assert_int_equal(s.percent, 0);
    s = share_softmax(1, 0.1, 1, true); /* what the second one saves its link takes */
    assert_int_equal(s.percent, 0);
    s = share_softmax(0.0001, 0.0001, 0, true); /* two kernels take as long as one */
    assert_int_equal(s.percent, 0);
}

/* Of many equal tasks none is shared, and of a large one with small ones only that. */
static void large_tasks_are_shared(void **state) {
    (void)state;
    for (uint32_t small = 1; small <= 7; small += 2) {
        setting s;
        begin(&s);
        for (uint32_t i = 0; i <= small; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(small == 7 || i > 0 ? 64 : 1024, 16));
            hd_output(s.program, (char[2]){ (char)('p' + i), 0 }, hd_softmax(s.program, x, -1));
        }
        for (int w = 0; w < HDI_WIDTH_COUNT; w++)
            for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_FAMILY_SOFTMAX][w] = (hdi_figure){ .ns_per_byte = d ? 1.5 : 1, .samples = 1 };
        finish(&s, true);
        s.routing.overlap = true;
        hdi_route route = make(&s);
        for (uint32_t i = 0; i < s.program->node_count; i++)
            if (s.program->nodes[i].op == HDI_OP_SOFTMAX) assert_int_equal((route.places[i] & HDI_PLACE_SHARED) != 0, small != 7 && i == 1);
        hdi_route_free(s.program, &route);
        end(&s);
    }
}

static void without_memory(void **state) {
    (void)state;
    for (size_t fail_at = 1; fail_at < 4000; fail_at++) {
        test_memory memory;
        setting s;
        hdi_route route;
        memset(&s, 0, sizeof s);
        s.program = hdi_program_new(&test_memory_start(&memory, 0)->allocator, NULL);
        const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(SIDE, SIDE));
        hd_output(s.program, "y", hd_add(s.program, hd_softmax(s.program, x, -1), x));
        for (int w = 0; w < HDI_WIDTH_COUNT; w++)
            for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_FAMILY_SOFTMAX][w] = (hdi_figure){ .ns_per_byte = 10, .samples = 1 };
        finish(&s, true);
        s.routing.overlap = true; /* so that rows are looked at */
        memory.fail_at = memory.calls + fail_at;
        const size_t before = memory.bytes_alive;
        const hd_status status = hdi_route_make(&s.routing, &route, NULL);
        if (!status) {
            assert_true(route.places[1] & HDI_PLACE_SHARED);
            hdi_route_free(s.program, &route);
        }
        assert_int_equal(memory.bytes_alive, before);
        memory.fail_at = 0;
        end(&s);
        if (!status) return;
        assert_int_equal(status, HD_STATUS_OUT_OF_HOST_MEMORY);
    }
    fail_msg("it never had memory enough");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_faster), cmocka_unit_test(never_slower_than_alone), cmocka_unit_test(a_crossing_is_paid_once), cmocka_unit_test(weights_do_not_travel),
        cmocka_unit_test(devices_that_overlap_share), cmocka_unit_test(tasks_are_dealt_out), cmocka_unit_test(a_chain_runs_beside_a_product), cmocka_unit_test(rows_are_shared_where_that_pays), cmocka_unit_test(large_tasks_are_shared),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
