/* test_choose.c: placements are chosen well: never slower than all on one device, and for small programs of chance the
 * least of all possible ones, or nearly; values that cross are paid once; states stay together; devices that compute at the
 * same time share tasks. The devices are invented; what they take comes from the planner's own steps. */
#include "plan/choose.h"
#include "work_cases.h"
#include <math.h>

enum { MOST = 24, SIDE = 32, MOST_TEST_DEVICES = 3 };

static const hdi_caps cpu = {
    .name = "processor", .native_kernels = 1, .memory_bytes = 1u << 30, .host_bytes = 1u << 30,
        .max_allocation_bytes = 1u << 30,
    .max_binding_bytes = 1u << 30, .binding_align = 64, .max_bindings = 16, .max_push_bytes = HDI_MAX_PUSH_WORDS * 4,
    .max_workgroup = UINT32_MAX, .max_workgroup_x = UINT32_MAX, .max_groups_x = UINT32_MAX, .max_groups_y = UINT32_MAX,
    .max_groups_z = UINT32_MAX, .f16_storage = 1, .u8_storage = 1, .unified_memory = 1, .host_visible = 1,
        .dispatch_base = 1,
    .compute_units = 2, .threads = 2, .simd_bytes = 64,
};
static const char *const ids[MOST_TEST_DEVICES] = { "first", "second", "third" };

static uint32_t chance;
static uint32_t below(uint32_t n) {
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(chance >> 8) * n) >> 24);
}

typedef struct setting {
    hd_program     *program;
    uint32_t        devices;
    hdi_caps        caps[MOST_TEST_DEVICES];
    hdi_figures      tuning[MOST_TEST_DEVICES];
    bool            software[MOST_TEST_DEVICES]; /* all of them: one processor, so nothing is done at the same time */
    bool            resident[MOST];
    hdi_choose_wish wish;
    hdi_timing      timing;
    hdi_placement   places;
} setting;

static void begin(setting *s) {
    memset(s, 0, sizeof *s);
    s->program = hdi_program_new(&hdi_default_allocator, NULL);
    s->devices = 2;
    s->caps[0] = cpu;
    s->caps[1] = s->caps[2] = gpu;
    for (int d = 0; d < MOST_TEST_DEVICES; d++) s->software[d] = true;
}

/* What was not said takes `fixed` ns and something for its bytes; the first device is in the host's memory. */
static void finish(setting *s, bool fusion) {
    for (uint32_t d = 0; d < s->devices; d++)
        for (int f = 1; f < HDI_KIND_COUNT; f++)
            for (int w = 0; w < HDI_WIDTH_COUNT; w++)
                if (s->tuning[d].ops[f][w].samples == 0)
                    s->tuning[d].ops[f][w] = (hdi_figure){ .fixed_ns = d ? 100 : 1000, .ns_per_byte = 0.001,
                        .samples = 1 };
    assert_int_equal(hdi_program_check(s->program, NULL), HD_OK);
    assert_true(s->program->node_count <= MOST);
    s->wish = (hdi_choose_wish){ .plan = { .program = s->program, .caps = s->caps, .ids = ids,
        .options = { .math = HD_MATH_EXACT, .no_fusion = !fusion } },
                                 .device_count = s->devices, .figures = s->tuning, .software = s->software,
                                     .resident = s->resident };
}

static hdi_device_choice make(const setting *s) {
    hdi_device_choice choice;
    hd_error error = { 0 };
    if (hdi_choose(&s->wish, &choice, &error)) fail_msg("%s", error.text);
    return choice;
}

/* Before hdi_timing_of is asked. */
static void look_at_all(setting *s) {
    assert_int_equal(hdi_timing_make(&s->wish, s->program, &s->timing, NULL), HD_OK);
    assert_int_equal(hdi_placement_new(s->program, s->devices, &s->places, NULL), HD_OK);
}

/* The time of a placement of all nodes, one number a node. */
static hdi_placement_time time_of(const setting *s, const uint8_t *places) {
    for (uint32_t i = 0; i < s->program->node_count; i++) s->places.of[i].device = places[i];
    return hdi_timing_of(&s->timing, &s->places);
}

static void end(setting *s) {
    hdi_timing_end(&s->timing);
    hdi_placement_free(&s->places);
    hdi_program_free(s->program);
}

/* ---- against all placements ---- */

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

/* No kernel of this device computes products, or softmaxes: known answers showed them to be wrong. */
static void cannot(hdi_caps *caps, bool products) {
    static const int kernels[] = { HDI_MODULE_MATMUL_TILED, HDI_MODULE_MATVEC, HDI_MODULE_MATVEC_SUBGROUP,
        HDI_MODULE_MATMUL_AMX, HDI_MODULE_MATMUL_INT8 };
    if (!products) caps->wrong[HDI_MODULE_SOFTMAX][1] = UINT64_MAX;
    for (size_t i = 0; i < HDI_COUNT(kernels) && products; i++) caps->wrong[kernels[i]][1] = UINT64_MAX;
}

static void random_program(setting *s, uint32_t most_nodes) {
    hd_value values[MOST];
    uint32_t count = 0;
    const uint32_t inputs = 1 + below(3), nodes = 1 + below(most_nodes);
    for (uint32_t i = 0; i < inputs; i++) values[count++] = hd_input(s->program, (char[2]){ (char)('a' + i), 0 },
        HD_F32, HD_SHAPE(SIDE, SIDE));
    if (below(3) == 0) {
        const hd_value position = hd_input(s->program, "p", HD_I32, HD_SHAPE(1)), old = hd_state(s->program, "s",
            HD_F32, HD_SHAPE(SIDE, SIDE));
        const hd_value rows = values[below(count)];
        values[count++] = hd_write_rows(s->program, old, rows, position);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        values[count] = random_node(s, values, count);
        count++;
    }
    for (uint32_t i = 0; i < 1 + below(3); i++) hd_output(s->program, (char[2]){ (char)('x' + i), 0 },
        values[count - 1 - below(HDI_MIN(count, 4))]);
}

static void random_setting(setting *s, uint32_t devices, uint32_t most_nodes) {
    begin(s);
    s->devices = devices;
    random_program(s, most_nodes);
    for (uint32_t d = 0; d < devices; d++) {
        for (int f = 1; f < HDI_KIND_COUNT; f++)
            for (int w = 0; w < HDI_WIDTH_COUNT; w++)
                s->tuning[d].ops[f][w] = (hdi_figure){ .fixed_ns = below(4000), .ns_per_byte = below(100) * 0.01,
                    .ns_per_flop = below(100) * 0.001, .samples = 1 };
        s->tuning[d].upload = (hdi_figure){ .fixed_ns = below(3000), .ns_per_byte = below(100) * 0.01, .samples = 1 };
        s->tuning[d].download = (hdi_figure){ .fixed_ns = below(3000), .ns_per_byte = below(100) * 0.01, .samples = 1 };
    }
    finish(s, below(2));
    if (below(2)) s->caps[0] = gpu;
    for (uint32_t d = 0; d < devices; d++)
        for (int products = 0; products < 2; products++)
            if (below(12) == 0) cannot(&s->caps[d], products);
    for (uint32_t i = 0; i < s->program->node_count; i++) s->resident[i] = below(4) == 0;
}

static bool shows_state(const setting *s, hd_value v) { return hdi_op_shows_state(s->program->nodes[v - 1].op); }

static bool is_allowed(const setting *s, const uint8_t *places) {
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        const hdi_node *node = &s->program->nodes[i];
        if (node->op == HDI_OP_INPUT || !s->timing.alive[i]) continue;
        if (hdi_timing_cost(&s->timing, i, places[i])->cannot) return false;
        for (uint32_t d = 0; d < s->devices; d++) { /* what any device computes as one stays together */
            const hd_value kernel = hdi_timing_cost(&s->timing, i, d)->kernel;
            if (kernel && places[i] != places[kernel - 1]) return false;
        }
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (node->operands[k] && shows_state(s, node->operands[k]) && places[node->operands[k] - 1] != places[i])
                return false;
    }
    return true;
}

/* The least time of all placements without shares, HUGE_VAL where none is allowed. */
static double least_of_all(setting *s) {
    uint32_t which[MOST], n = 0;
    uint64_t all = 1;
    uint8_t places[MOST] = { 0 };
    double least = HUGE_VAL;
    look_at_all(s);
    for (uint32_t i = 0; i < s->program->node_count; i++) {
        if (s->program->nodes[i].op == HDI_OP_INPUT || !s->timing.alive[i]) continue;
        which[n++] = i;
        all *= s->devices;
    }
    for (uint64_t number = 0; number < all; number++) {
        uint64_t rest = number;
        for (uint32_t i = 0; i < n; i++, rest /= s->devices) places[which[i]] = (uint8_t)(rest % s->devices);
        if (is_allowed(s, places)) least = fmin(least, time_of(s, places).total_ns);
    }
    return least;
}

/* Programs by chance, and how near the choice was to the least of all. */
typedef struct tally {
    uint32_t tried, split, refused, least, near;
} tally;

static void try_one(setting *s, uint32_t seed, tally *all) {
    uint8_t places[MOST];
    hdi_device_choice choice, again;
    const double least = least_of_all(s);
    const hd_status status = hdi_choose(&s->wish, &choice, NULL);
    if (status ? status != HD_STATUS_UNSUPPORTED || least < HUGE_VAL : least == HUGE_VAL)
        fail_msg("program %u: status %d, least %g", seed, status, least);
    all->tried++;
    all->refused += status != HD_OK;
    if (!status) {
        bool shared = false;
        hdi_placement_time time;
        for (uint32_t i = 0; i < s->program->node_count; i++) {
            places[i] = (uint8_t)choice.best.of[i].device;
            shared = shared || choice.best.of[i].share;
        }
        if (!shared && !is_allowed(s, places)) fail_msg("program %u: a placement that is not allowed", seed);
        for (uint32_t d = 0; d < s->devices; d++)
            if (choice.time.total_ns > choice.alone[d].total_ns) fail_msg("program %u: all on %u takes less", seed, d);
        all->least += choice.time.total_ns <= least * 1.0001 + 1;
        all->near += choice.time.total_ns <= least * 1.1 + 1;
        all->split += choice.time.segments > 1;
        assert_int_equal(hdi_choose_time(&s->wish, &choice.best, &time, NULL), HD_OK);
        assert_true(time.total_ns == choice.time.total_ns && time.segments == choice.time.segments);
        again = make(s);
        assert_true(hdi_placement_hash(1, &again.best) == hdi_placement_hash(1, &choice.best));
        assert_string_equal(again.text.bytes, choice.text.bytes);
        hdi_device_choice_free(&again);
    }
    hdi_device_choice_free(&choice);
}

/* `submits`: each submission takes its time; `overlap`: devices compute at the same time. */
static tally try_all(uint32_t devices, uint32_t programs, uint32_t most_nodes, bool submits, bool overlap) {
    static setting s;
    tally all = { 0 };
    for (uint32_t seed = 1; seed <= programs; seed++) {
        chance = seed * 2654435761u;
        random_setting(&s, devices, most_nodes);
        for (uint32_t d = 0; d < devices && submits; d++) s.tuning[d].submit.fixed_ns = below(d ? 9000 : 3000);
        for (uint32_t d = 0; d < devices && overlap; d++) s.software[d] = false;
        try_one(&s, seed, &all);
        end(&s);
    }
    print_message("%u devices%s%s: %u programs, %u split, %u refused, %u least of all, %u within 10 %%\n", devices,
        submits ? ", submissions" : "",
                  overlap ? ", overlap" : "", all.tried, all.split, all.refused, all.least, all.near);
    return all;
}

/* One device computes at a time, but a value may cross meanwhile, which the cut does not know. */
static void nothing_is_faster(void **state) {
    (void)state;
    const tally all = try_all(2, 600, 9, false, false);
    const uint32_t chosen = all.tried - all.refused;
    if (all.near < chosen || 100 * all.least < 98 * chosen) fail_msg("of %u: %u near, %u least", chosen, all.near,
        all.least);
    if (all.split < 50 || all.refused == 0) fail_msg("%u split, %u refused", all.split,
        all.refused); /* the programs are of all sorts */
}

/* Where submissions take their time, or devices overlap, the search is no proof. */
static void nearly_nothing_is_faster(void **state) {
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        const tally all = try_all(2, 300, 9, true, overlap);
        const uint32_t chosen = all.tried - all.refused;
        if (100 * all.near < 99 * chosen || 10 * all.least < 9 * chosen) fail_msg("of %u: %u near, %u least", chosen,
            all.near, all.least);
    }
}

static void nearly_nothing_is_faster_on_three(void **state) {
    (void)state;
    for (int submits = 0; submits < 2; submits++) {
        const tally all = try_all(3, 300, 5, submits, submits);
        const uint32_t chosen = all.tried - all.refused;
        if (100 * all.near < 99 * chosen || 10 * all.least < 8 * chosen) fail_msg("of %u: %u near, %u least", chosen,
            all.near, all.least);
    }
}

static void assert_near_ns(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-6 * wanted)) fail_msg("%g ns instead of %g", got, wanted);
}

/* ---- what is paid ---- */

/* A value with two readers on the other device crosses once. */
static void a_crossing_is_paid_once(void **state) {
    (void)state;
    static setting s;
    hdi_placement_time time;
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
    look_at_all(&s);
    uint8_t places[MOST] = { [1] = 0, [2] = 1, [3] = 1, [4] = 1 };
    time = time_of(&s, places);
    assert_true(time.transfers_ns == 7 + 300 + 300 && time.segments == 2 && time.submits_ns[0] == 20 &&
        time.submits_ns[1] == 10000);
    places[4] = 0; /* b comes down for the caller and for its reader, c for its reader */
    time = time_of(&s, places);
    assert_true(time.transfers_ns == 7 + 300 + 300 + 300 && time.segments == 3 && time.submits_ns[0] == 40);
    memset(places, 1, sizeof places); /* the input goes up instead */
    time = time_of(&s, places);
    assert_true(time.transfers_ns == 7 + 300 + 300 && time.segments == 1 && time.submits_ns[0] == 0);
    s.resident[0] = true;
    hdi_timing_end(&s.timing);
    hdi_placement_free(&s.places);
    look_at_all(&s);
    time = time_of(&s, places);
    assert_true(time.transfers_ns == 600);
    end(&s);
}

static void weights_do_not_travel(void **state) {
    (void)state;
    static setting s;
    begin(&s);
    const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(1, 256)), w = hd_input(s.program, "w", HD_Q4_0,
        HD_SHAPE(256, 256));
    hd_output(s.program, "y", hd_matmul_with(s.program, x, w, HD_TRANSPOSE_B));
    finish(&s, true);
    s.tuning[1].upload.ns_per_byte = 0.5; /* x takes 512 ns, w would take far more */
    hdi_device_choice choice = make(&s);
    assert_true(choice.best.of[2].device == 0 || choice.time.transfers_ns == 512);
    assert_int_equal(choice.best.of[2].device, 1);
    hdi_device_choice_free(&choice);
    end(&s);
}

/* Devices that compute at the same time share tasks that do not wait for each other. */
static void devices_that_overlap_share(void **state) {
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        static setting s;
        uint32_t on[2] = { 0, 0 };
        begin(&s);
        for (int i = 0; i < 4; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(SIDE, SIDE));
            hd_output(s.program, (char[2]){ (char)('w' + i), 0 }, hd_matmul(s.program, hd_softmax(s.program, x, -1),
                x));
        }
        for (int d = 0; d < 2; d++)
            for (int f = 1; f < HDI_KIND_COUNT; f++) s.tuning[d].ops[f][0] = (hdi_figure){ .fixed_ns = 1000 + 50 * d,
                .samples = 1 };
        finish(&s, true);
        s.software[0] = s.software[1] = !overlap;
        hdi_device_choice choice = make(&s);
        for (uint32_t i = 0; i < s.program->node_count; i++)
            if (s.program->nodes[i].op == HDI_OP_MATMUL) on[choice.best.of[i].device]++;
        if (overlap) assert_true(on[0] == 2 && on[1] == 2 && choice.time.total_ns == 4200);
        else assert_true(on[0] == 4 && choice.time.total_ns == 8000);
        hdi_device_choice_free(&choice);
        end(&s);
    }
}

/* ---- sharing ---- */

/* Tasks of different lengths, a submission that a single short one would not pay for: the least of all placements is found, and the
 * one for both devices is told also where all on one is faster. */
static void tasks_are_dealt_out(void **state) {
    (void)state;
    for (int slow = 1; slow <= 16; slow *= 4) {
        static setting s;
        begin(&s);
        for (int i = 0; i < 6; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(1 + i % 3, SIDE));
            hd_output(s.program, (char[2]){ (char)('u' + i), 0 }, hd_softmax(s.program, x, -1));
        }
        for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_KIND_SOFTMAX][0] = (hdi_figure){ .fixed_ns = 1000,
            .ns_per_byte = d ? 0.5 * slow : 1, .samples = 1 };
        s.tuning[0].submit.fixed_ns = s.tuning[1].submit.fixed_ns = 1500;
        finish(&s, true);
        s.software[0] = s.software[1] = false;
        hdi_device_choice choice = make(&s);
        assert_near_ns(choice.time.total_ns, least_of_all(&s));
        assert_true(choice.mixed_time.total_ns < HUGE_VAL && choice.mixed_time.total_ns >= choice.time.total_ns &&
            choice.mixed_time.segments == 2);
        hdi_device_choice_free(&choice);
        end(&s);
    }
}

/* A chain of small steps suits the one, a large product the other: they run beside each other. */
static void a_chain_runs_beside_a_product(void **state) {
    (void)state;
    static setting s;
    begin(&s);
    hd_value h = hd_input(s.program, "h", HD_F32, HD_SHAPE(1, SIDE));
    for (int i = 0; i < 8; i++) h = hd_softmax(s.program, h, -1);
    hd_output(s.program, "u", h);
    const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(256, 256));
    hd_output(s.program, "y", hd_matmul(s.program, x, x));
    for (int d = 0; d < 2; d++) {
        s.tuning[d].ops[HDI_KIND_SOFTMAX][0] = (hdi_figure){ .fixed_ns = d ? 500 : 3000, .samples = 1 };
        s.tuning[d].ops[HDI_KIND_MATMUL][0] = (hdi_figure){ .fixed_ns = d ? 200000 : 10000, .samples = 1 };
    }
    finish(&s, true);
    s.software[0] = s.software[1] = false;
    hdi_device_choice choice = make(&s);
    assert_true(choice.time.segments == 2 && choice.time.total_ns == choice.mixed_time.total_ns);
    for (uint32_t i = 0; i < s.program->node_count; i++)
        if (s.program->nodes[i].op != HDI_OP_INPUT) assert_int_equal(choice.best.of[i].device,
            s.program->nodes[i].op == HDI_OP_SOFTMAX);
    hdi_device_choice_free(&choice);
    end(&s);
}

typedef struct sharing {
    hdi_placement_time time; /* as placed */
    double   alone_ns;       /* on the faster one */
    uint32_t percent;        /* of the rows on device 0; 0: they are not shared */
} sharing;

/* One softmax of 1024 rows, so many ns for each of its bytes on either device, and for its input's and output's on the way
 * to device 1. */
static sharing share_softmax(double ns0, double ns1, double link_ns, bool overlap) {
    static setting s;
    hdi_placement_time again;
    begin(&s);
    hd_output(s.program, "y", hd_softmax(s.program, hd_input(s.program, "x", HD_F32, HD_SHAPE(1024, 16)), -1));
    for (int w = 0; w < HDI_WIDTH_COUNT; w++)
        for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_KIND_SOFTMAX][w] = (hdi_figure){ .fixed_ns = 100,
            .ns_per_byte = d ? ns1 : ns0, .samples = 1 };
    s.tuning[1].upload = s.tuning[1].download = (hdi_figure){ .ns_per_byte = link_ns, .samples = 1 };
    finish(&s, true);
    s.software[0] = s.software[1] = !overlap;
    hdi_device_choice choice = make(&s);
    sharing found = { choice.time, fmin(choice.alone[0].total_ns, choice.alone[1].total_ns), 0 };
    if (choice.best.of[1].share) {
        const uint32_t *parts = choice.best.shares[choice.best.of[1].share - 1].parts;
        found.percent = 100 * parts[0] / (parts[0] + parts[1]);
    }
    assert_int_equal(hdi_choose_time(&s.wish, &choice.best, &again, NULL), HD_OK);
    assert_true(again.total_ns == choice.time.total_ns);
    hdi_device_choice_free(&choice);
    end(&s);
    return found;
}

static void rows_are_shared_where_that_pays(void **state) {
    (void)state;
    sharing s = share_softmax(1, 1, 0, true);
    assert_int_equal(s.percent, 50);
    assert_true(s.time.total_ns < 0.51 * s.alone_ns);
    s = share_softmax(1, 3, 0, true); /* both end at the same time */
    assert_in_range(s.percent, 74, 76);
    assert_true(fabs(s.time.nodes_ns[0] - s.time.nodes_ns[1]) < 0.07 * s.alone_ns);
    s = share_softmax(1, 12, 0, true); /* it would save 8% */
    assert_true(s.percent == 0 && s.time.total_ns == s.alone_ns);
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
        static setting s;
        begin(&s);
        for (uint32_t i = 0; i <= small; i++) {
            const hd_value x = hd_input(s.program, (char[2]){ (char)('a' + i), 0 }, HD_F32, HD_SHAPE(small == 7 ||
                i > 0 ? 64 : 1024, 16));
            hd_output(s.program, (char[2]){ (char)('p' + i), 0 }, hd_softmax(s.program, x, -1));
        }
        for (int w = 0; w < HDI_WIDTH_COUNT; w++)
            for (int d = 0; d < 2; d++)
                s.tuning[d].ops[HDI_KIND_SOFTMAX][w] = (hdi_figure){ .ns_per_byte = d ? 1.5 : 1, .samples = 1 };
        finish(&s, true);
        s.software[0] = s.software[1] = false;
        hdi_device_choice choice = make(&s);
        for (uint32_t i = 0; i < s.program->node_count; i++)
            if (s.program->nodes[i].op == HDI_OP_SOFTMAX) assert_int_equal(choice.best.of[i].share != 0, small != 7 &&
                i == 1);
        hdi_device_choice_free(&choice);
        end(&s);
    }
}

static void without_memory(void **state) {
    (void)state;
    for (size_t fail_at = 1; fail_at < 4000; fail_at++) {
        test_memory memory;
        static setting s;
        hdi_device_choice choice;
        begin(&s);
        hdi_program_free(s.program);
        s.program = hdi_program_new(&test_memory_start(&memory, 0)->allocator, NULL);
        const hd_value x = hd_input(s.program, "x", HD_F32, HD_SHAPE(SIDE, SIDE));
        hd_output(s.program, "y", hd_add(s.program, hd_softmax(s.program, x, -1), x));
        for (int w = 0; w < HDI_WIDTH_COUNT; w++)
            for (int d = 0; d < 2; d++) s.tuning[d].ops[HDI_KIND_SOFTMAX][w] = (hdi_figure){ .ns_per_byte = 10,
                .samples = 1 };
        finish(&s, true);
        s.software[0] = s.software[1] = false; /* so that rows are looked at */
        memory.fail_at = memory.calls + fail_at;
        const size_t before = memory.bytes_alive;
        const hd_status status = hdi_choose(&s.wish, &choice, NULL);
        if (!status) assert_true(choice.best.of[1].share != 0);
        hdi_device_choice_free(&choice);
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
        cmocka_unit_test(nothing_is_faster), cmocka_unit_test(nearly_nothing_is_faster),
        cmocka_unit_test(nearly_nothing_is_faster_on_three), cmocka_unit_test(a_crossing_is_paid_once),
        cmocka_unit_test(weights_do_not_travel), cmocka_unit_test(devices_that_overlap_share),
            cmocka_unit_test(tasks_are_dealt_out),
        cmocka_unit_test(a_chain_runs_beside_a_product), cmocka_unit_test(rows_are_shared_where_that_pays),
        cmocka_unit_test(large_tasks_are_shared), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
