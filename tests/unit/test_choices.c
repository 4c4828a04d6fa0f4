/* test_choices.c: options of kernels: the table of choices and its text, plans with every option for invented devices, the rule by
 * which an option is kept, and what the library keeps of it. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "front/front.h"

static hdi_choices known_choices(const hd_device *device) {
    hdi_caps caps;
    hdi_store_caps(device->facts, &caps);
    return caps.choices;
}

static hdi_choice choice_of(hdi_class of, uint32_t option) {
    return (hdi_choice){ .of = of, .option = option, .gain = 1.5f };
}

/* The id of the module's option that is shown so; 0: there is none. */
static uint32_t id_of(hdi_module_id module, const char *text) {
    char own[HDI_KERNEL_OPTION_TEXT];
    for (const hdi_kernel_option *o = NULL; (o = hdi_kernel_option_next(module, o));)
        if (strcmp(hdi_kernel_option_text(o, own), text) == 0) return o->id;
    return 0;
}

static void put(hdi_caps *caps, hdi_class of, uint32_t option) {
    const hdi_choice choice = choice_of(of, option);
    caps->choices.table = hdi_kernel_options_digest();
    assert_true(hdi_choices_put(&caps->choices, &choice));
}

/* ---- the table ---- */

static void classes_hold_what_is_alike(void **state) {
    (void)state;
    char text[HDI_CLASS_TEXT];
    const hdi_class one = hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, 1, 2048 * 2048);
    assert_true(hdi_class_equal(one, hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, 1, 4096 * 2560)));
    assert_false(hdi_class_equal(one, hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, 1, 4096 * 4096)));
    assert_false(hdi_class_equal(one, hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, 2, 2048 * 2048)));
    assert_false(hdi_class_equal(one, hdi_class_of(HDI_CLASS_MATVEC, HD_Q8_0, 1, 2048 * 2048)));
    assert_false(hdi_class_equal(one, hdi_class_of(HDI_CLASS_MERGED, HD_Q4_0, 1, 2048 * 2048)));
    assert_string_equal(hdi_class_text(one, text), "matvec q4_0, rows 1, size 2^22-2^24");
    assert_string_equal(hdi_class_text(hdi_class_of(HDI_CLASS_MATMUL, HD_F16, 300, 1 << 20), text),
                        "matmul f16, rows 257-512, size 2^20-2^22");
    assert_string_equal(hdi_class_text(hdi_class_of(HDI_CLASS_NORM, HD_F32, 20, 4096), text), "norm f32, rows 17-64, size 2^12-2^14");
    assert_string_equal(hdi_class_text(hdi_class_of(HDI_CLASS_NORM, HD_F32, 64, 4096), text), "norm f32, rows 17-64, size 2^12-2^14");
    assert_string_equal(hdi_class_text(hdi_class_of(HDI_CLASS_NORM, HD_F32, 2, 1), text), "norm f32, rows 2, size 2^0-2^2");
    (void)hdi_class_of(HDI_CLASS_NORM, HD_F32, UINT64_MAX, UINT64_MAX);
    (void)hdi_class_text((hdi_class){ 255, 255, 255, 255 }, text);
}

static void the_table_is_bounded(void **state) {
    (void)state;
    static hdi_choices table;
    const hdi_class of = hdi_class_of(HDI_CLASS_NORM, HD_F32, 1, 1);
    assert_int_equal(hdi_choices_find(&table, of), 0);
    for (uint32_t i = 0; i < HDI_CHOICES; i++) {
        const hdi_class class = { HDI_CLASS_NORM, HD_F32, (uint8_t)(i % 64), (uint8_t)(i / 64) };
        const hdi_choice choice = choice_of(class, 1);
        assert_true(hdi_choices_put(&table, &choice));
    }
    hdi_choice choice = choice_of((hdi_class){ HDI_CLASS_NORM, HD_F16, 0, 0 }, 2);
    assert_false(hdi_choices_put(&table, &choice));
    choice.of.type = HD_F32;
    assert_true(hdi_choices_put(&table, &choice)); /* in the place of the earlier one */
    assert_int_equal(table.count, HDI_CHOICES);
    assert_int_equal(hdi_choices_find(&table, of), 2);
    hdi_choices_remove(&table, of);
    hdi_choices_remove(&table, of);
    assert_int_equal(hdi_choices_find(&table, of), 0);
    assert_int_equal(table.count, HDI_CHOICES - 1);
    choice.of = (hdi_class){ HDI_CLASS_MATMUL, HDI_CLASS_ANY, HDI_CLASS_ANY, HDI_CLASS_ANY };
    assert_true(hdi_choices_put(&table, &choice));
    assert_int_equal(hdi_choices_find(&table, hdi_class_of(HDI_CLASS_MATMUL, HD_Q6_K, 77, 12345)), 2);
}

static bool reads(const char *line, hdi_choices *table) { return hdi_choices_read(line, strlen(line), table); }

static void text_is_read_strictly(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", "choice", "choice matvec", "choice matvec q4_0", "choice matvec q4_0 rows 0 size 11 option 7",
        "choice matvec q4_0 rows 0 size 11 option 7 gain", "choice matvec q4_0 rows 0 size 11 option 7 gain 1.1 x",
        "matvec q4_0 rows 0 size 11 option 7 gain 1.1", "choice matwec q4_0 rows 0 size 11 option 7 gain 1.1",
        "choice matvec q9 rows 0 size 11 option 7 gain 1.1", "choice matvec none rows 0 size 11 option 7 gain 1.1",
        "choice matvec q4_0 rows -1 size 11 option 7 gain 1.1", "choice matvec q4_0 rows 64 size 11 option 7 gain 1.1",
        "choice matvec q4_0 rows 255 size 11 option 7 gain 1.1", "choice matvec q4_0 rows 0 size 1x option 7 gain 1.1",
        "choice matvec q4_0 rows size 11 option 7 gain 1.1", "choice matvec q4_0 size 11 rows 0 option 7 gain 1.1",
        "choice matvec q4_0 rows 0 size 11 option A gain 1.1", "choice matvec q4_0 rows 0 size 11 option 7%s gain 1.1",
        "choice matvec q4_0 rows 0 size 11 option dot_s4_c4 gain 1.1", "choice matvec q4_0 rows 0 size 11 option 0 gain 1.1",
        "choice matvec q4_0 rows 0 size 11 option 65536 gain 1.1", "choice matvec q4_0 rows 0 size 11 option 18446744073709551623 gain 1.1",
        "choice matvec q4_0 rows 0 size 11 option a gain 1.1", "choice matvec q4_0 rows 0 size 11 option 7 gain 0.9",
        "choice matvec q4_0 rows 0 size 11 option 7 gain nan", "choice matvec q4_0 rows 0 size 11 option 7 gain inf",
        "choice matvec q4_0 rows 0 size 11 option 7 gain 1e9", "choice matvec q4_0 rows 0 size 11 option 7 gain -2",
        "options", "options 0", "options 1g", "options 4294967296", "options 1 2", "options A",
    };
    static hdi_choices table, again;
    for (size_t i = 0; i < HDI_COUNT(bad); i++) {
        if (reads(bad[i], &table)) fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(table.count, 0);
    }
    assert_true(reads("choice matvec q4_0 rows 0 size 11 option 102 gain 1.25", &table));
    assert_true(reads("  choice norm  f32 rows 6 size 5  option 521 gain 1 ", &table));
    assert_true(reads("choice norm f32 rows 6 size 5 option 65535 gain 2", &table)); /* means nothing, harms nothing */
    assert_true(reads("options 1598724097", &table) && table.table == 1598724097 &&
                !reads("options 1598724097", &table));
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_choices_print(&table, &text);
    assert_string_equal(text.bytes, "options 1598724097\nchoice matvec q4_0 rows 0 size 11 option 102 gain 1.25\n"
                                    "choice norm f32 rows 6 size 5 option 65535 gain 2\n");
    hdi_caps caps;
    assert_int_equal(hdi_caps_parse(text.bytes, text.count, &caps, NULL), HD_OK);
    assert_int_equal(caps.choices.table, table.table);
    assert_int_equal(caps.choices.count, table.count);
    assert_memory_equal(caps.choices.items, table.items, table.count * sizeof *table.items);
    hd_error error = { 0 };
    assert_int_equal(hdi_caps_parse("choice matvec", 13, &caps, &error), HD_STATUS_PARSE);
    assert_non_null(strstr(error.text, "line 1: not a choice"));
    for (uint32_t of = 0; of < 3; of++) { /* a table that is this one, another one, or not named */
        hdi_facts tuning = { .machine = "m", .device = "d", .driver = "v", .caps.choices.table = 77 };
        text.count = 0;
        hdi_text_add(&text, "heddle facts 1\nmachine m\ndevice d\ndriver v\n%s\nchoice\n"
                            "choice matvec q4_0 rows 0 size 11 option A gain 2\n"
                     "choice reduce f32 rows 6 size 5 option 501 gain 2\nsubmit fixed_ns 3 samples 1\n",
                     of == 0 ? "options 77" : of == 1 ? "options 78" : "");
        assert_int_equal(hdi_facts_parse(text.bytes, text.count, &tuning), of == 0 ? 2 : 3);
        assert_int_equal(tuning.caps.choices.count, of == 0);
        assert_int_equal(tuning.caps.choices.table, 77);
        assert_int_equal(tuning.figures.submit.samples, 1);
        if (of > 0) continue;
        assert_int_equal(tuning.caps.choices.items[0].option, 501);
        text.count = 0;
        hdi_facts_print(&tuning, &text);
        assert_non_null(strstr(text.bytes, "\noptions 77\nchoice reduce f32 rows 6 size 5 option 501 gain 2\n"));
    }
    for (uint32_t i = 0; i < HDI_CHOICES; i++) { /* the largest file is read again whole */
        char line[128];
        snprintf(line, sizeof line, "choice elementwise tq2_0 rows %u size %u option 65535 gain 1.2345678", i % 64,
                 i / 64);
        assert_true(reads(line, &again));
    }
    hdi_facts tuning = { .machine = "m", .device = "d", .driver = "v", .caps.choices = again };
    text.count = 0;
    hdi_facts_print(&tuning, &text);
    assert_true(text.count + 8192 < HDI_FACTS_BYTES);
    hdi_text_free(&text);
}

/* ---- the table of options ---- */

static void options_have_ids_of_their_own(void **state) {
    (void)state;
    uint32_t count = 0;
    for (uint32_t module = 0; module < HDI_MODULE_COUNT; module++)
        for (const hdi_kernel_option *o = NULL; (o = hdi_kernel_option_next(module, o)); count++) {
            char shown[HDI_KERNEL_OPTION_TEXT], other[HDI_KERNEL_OPTION_TEXT];
            assert_true(o->id > 0 && hdi_kernel_option_get(o->id) == o);
            assert_true(strlen(hdi_kernel_option_text(o, shown)) + 1 < sizeof shown);
            for (const hdi_kernel_option *next = o; (next = hdi_kernel_option_next(module, next));)
                if (next->native == o->native) assert_string_not_equal(shown, hdi_kernel_option_text(next, other));
        }
    assert_true(count > 100 && hdi_kernel_options_digest() != 0);
    assert_null(hdi_kernel_option_get(0));
    assert_null(hdi_kernel_option_get(UINT32_MAX));
}

/* ---- plans ---- */

static const char program_text[] =
    "heddle 1\nx = input f32[1,2048] \"x\"\nw = input q4_0[2048,2048] \"w\"\nh = input f16[2048,2048] \"h\"\n"
    "m = input f32[64,2048] \"m\"\ng = input f32[2048] \"g\"\n"
    "q = input f32[1,8,64] \"q\"\nk = input f16[512,2,64] \"k\"\nv = input f16[512,2,64] \"v\"\n"
    "a = matmul x w transpose_b\nb = matmul m h transpose_b\nc = matmul m w transpose_b\nn = rms_norm x g eps=1e-05\n"
    "d = matmul n w transpose_b\ns = softmax m axis=1\n"
    "r = sum m axis=1\ne = exp m\nt = attention q k v\noutput a \"oa\"\noutput b \"ob\"\noutput c \"oc\"\n"
    "output d \"od\"\noutput s \"os\"\noutput r \"or\"\noutput e \"oe\"\noutput t \"ot\"\n";

static void read_caps(const char *name, hdi_caps *out) {
    char path[512], text[8192];
    snprintf(path, sizeof path, HEDDLE_TESTS_DIR "/golden/caps/%s.txt", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_int_equal(hdi_caps_parse(text, bytes, out, NULL), HD_OK);
}

static hd_program *read_program(const char *text) {
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    if (hdi_program_parse(program, text, strlen(text), NULL, NULL, &error)) fail_msg("%s", error.text);
    return program;
}

/* The plan as text; yours. */
static char *plan_text(const hd_program *program, const hdi_caps *caps, hd_math math, hdi_offer *offer) {
    hd_error error = { 0 };
    hdi_schedule *schedule = NULL;
    hdi_text text = { .allocator = &hdi_default_allocator };
    if (hdi_schedule_make(&hdi_default_allocator, program, caps, &(hdi_plan_options){ .math = math, .offer = offer }, &schedule,
                      &error))
        fail_msg("%s", error.text);
    hdi_schedule_print(schedule, &text);
    hdi_cmds_print(&schedule->cmds, hdi_schedule_module_name, NULL, &text);
    hdi_schedule_free(schedule);
    char *out = strdup(text.bytes);
    hdi_text_free(&text);
    return out;
}

static void assert_same_plan(const hd_program *program, const hdi_caps *caps, hd_math math, const char *wanted) {
    char *text = plan_text(program, caps, math, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

/* Every option of every kernel on this device can be planned, says so, and changes nothing in exact mode. */
static void try_device(const char *device, uint32_t *out_options) {
    static hdi_offer offer;
    hdi_caps caps;
    hd_program *program = read_program(program_text);
    read_caps(device, &caps);
    char *exact = plan_text(program, &caps, HD_MATH_EXACT, NULL), *usual = plan_text(program, &caps, HD_MATH_FAST, NULL);
    offer.count = 0;
    char *asked = plan_text(program, &caps, HD_MATH_FAST, &offer);
    assert_string_equal(asked, usual); /* asking changes nothing */
    free(asked);
    for (uint32_t i = 0; i < offer.count; i++)
        for (uint32_t k = 0; k < offer.items[i].count; k++) {
            char shown[HDI_KERNEL_OPTION_TEXT], says[64];
            caps.choices.count = 0;
            put(&caps, offer.items[i].of, offer.items[i].options[k]->id);
            char *text = plan_text(program, &caps, HD_MATH_FAST, NULL);
            snprintf(says, sizeof says, " as %s, ", hdi_kernel_option_text(offer.items[i].options[k], shown));
            if (k == 0) assert_string_equal(text, usual);
            else if (!strstr(text, says) || !strstr(text, "because it was measured to be the fastest here"))
                fail_msg("%s: no \"%s\" in\n%s", device, says, text);
            assert_same_plan(program, &caps, HD_MATH_FAST, text);
            assert_same_plan(program, &caps, HD_MATH_EXACT, exact);
            free(text);
            (*out_options)++;
            caps.choices.table++; /* an id of another table is passed over, */
            assert_same_plan(program, &caps, HD_MATH_FAST, usual);
            put(&caps, offer.items[i].of, UINT16_MAX); /* and so is one that does not exist */
            assert_same_plan(program, &caps, HD_MATH_FAST, usual);
        }
    free(exact);
    free(usual);
    hdi_program_free(program);
}

static void plans_take_every_option(void **state) {
    (void)state;
    static const char *const devices[] = { "big-gpu", "phone", "lanes-16", "no-f16", "bindings-128m" };
    for (size_t i = 0; i < HDI_COUNT(devices); i++) {
        uint32_t options = 0;
        try_device(devices[i], &options);
        print_message("%s: %u options\n", devices[i], options);
        assert_true(options > 10);
    }
}

/* What is known to be wrong is not taken, whoever chose it; one that does not fit the sizes leaves the rules' own. */
static void choices_never_fail_a_plan(void **state) {
    (void)state;
    hdi_caps caps;
    hd_program *program = read_program("heddle 1\nx = input f32[1,2048] \"x\"\nw = input q4_0[2048,2048] \"w\"\n"
                                       "a = matmul x w transpose_b\noutput a \"o\"\n");
    const hdi_class of = hdi_class_of(HDI_CLASS_MATVEC, HD_Q4_0, 1, 2048 * 2048);
    read_caps("big-gpu", &caps);
    char *usual = plan_text(program, &caps, HD_MATH_FAST, NULL);
    put(&caps, of, id_of(HDI_MODULE_MATMUL_MATRIX, "matrix_128x128_k1")); /* of more rows */
    assert_same_plan(program, &caps, HD_MATH_FAST, usual);
    put(&caps, of, id_of(HDI_MODULE_MATVEC_SUBGROUP, "subgroup_w256_c2"));
    char *chosen = plan_text(program, &caps, HD_MATH_FAST, NULL);
    assert_non_null(strstr(chosen, "matvec_subgroup as subgroup_w256_c2,"));
    caps.wrong[HDI_MODULE_MATVEC_SUBGROUP][0] = UINT64_MAX;
    assert_same_plan(program, &caps, HD_MATH_FAST, usual);
    caps.max_groups_x = 600; /* too few for two columns each */
    put(&caps, of, id_of(HDI_MODULE_MATVEC, "vector_w64_c2"));
    assert_same_plan(program, &caps, HD_MATH_FAST, usual);
    free(usual);
    free(chosen);
    hdi_program_free(program);
}

/* An option that asks for more memory than the budget allows gives way to the usual one. */
static void choices_keep_to_the_budget(void **state) {
    (void)state;
    hdi_caps caps;
    hdi_schedule *schedule;
    hd_error error = { 0 };
    hd_program *program = read_program("heddle 1\nx = input f32[64,1024] \"x\"\nw = input f16[16384,1024] \"w\"\n"
                                       "a = matmul x w transpose_b\noutput a \"o\"\n");
    const hdi_class of = hdi_class_of(HDI_CLASS_MATMUL, HD_F16, 64, 16384 * 1024);
    const uint32_t ids[] = { id_of(HDI_MODULE_MATMUL_MATRIX, "matrix_128x128_k1"),
                             id_of(HDI_MODULE_MATMUL_MATRIX, "matrix_128x128_k4") };
    hdi_plan_options options = { .math = HD_MATH_FAST };
    uint64_t bytes[2];
    read_caps("big-gpu", &caps);
    for (int i = 0; i < 2; i++) {
        put(&caps, of, ids[i]);
        assert_int_equal(hdi_schedule_make(&hdi_default_allocator, program, &caps, &options, &schedule, &error), HD_OK);
        bytes[i] = schedule->memory.total_bytes;
        assert_int_equal(schedule->steps[i == 0 ? schedule->step_count - 1 : schedule->step_count - 2].option, ids[i]);
        hdi_schedule_free(schedule);
    }
    assert_true(bytes[1] > bytes[0]);
    caps.choices.count = 0;
    assert_int_equal(hdi_schedule_make(&hdi_default_allocator, program, &caps, &options, &schedule, &error), HD_OK);
    options.budget_bytes = schedule->memory.total_bytes;
    hdi_schedule_free(schedule);
    assert_true(options.budget_bytes < bytes[1]);
    put(&caps, of, ids[1]);
    assert_int_equal(hdi_schedule_make(&hdi_default_allocator, program, &caps, &options, &schedule, &error), HD_OK);
    for (uint32_t i = 0; i < schedule->step_count; i++) assert_int_equal(schedule->steps[i].option, 0);
    hdi_schedule_free(schedule);
    options.budget_bytes = 1000;
    assert_int_equal(hdi_schedule_make(&hdi_default_allocator, program, &caps, &options, &schedule, &error), HD_STATUS_OVER_BUDGET);
    assert_non_null(strstr(error.text, "its budget is 1000"));
    hdi_program_free(program);
}

/* What is measured runs one after the other, but for what begins with the same rows: as the products of a layer do. */
static void company_runs_side_by_side(void **state) {
    (void)state;
    static const uint32_t measured[] = { 0, 0, 1, 2, 2 }, usual[] = { 0, 0, 0, 0, 0 };
    hdi_caps caps;
    hd_error error = { 0 };
    hd_program *program = read_program("heddle 1\nx = input f32[1,512] \"x\"\ny = input f32[1,512] \"y\"\n"
                                       "w = input f16[512,512] \"w\"\nv = input f16[512,512] \"v\"\n"
                                       "a = matmul x w transpose_b\nb = matmul x v transpose_b\n"
                                       "c = matmul y w transpose_b\nd = matmul x v transpose_b\ne = matmul x w transpose_b\n"
                                       "output a \"oa\"\noutput b \"ob\"\noutput c \"oc\"\noutput d \"od\"\noutput e \"oe\"\n");
    read_caps("big-gpu", &caps);
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        hdi_schedule *schedule = NULL;
        assert_int_equal(hdi_schedule_make(&hdi_default_allocator, program, &caps,
                                       &(hdi_plan_options){ .math = HD_MATH_FAST, .one_by_one = one_by_one },
                                       &schedule, &error), HD_OK);
        assert_int_equal(schedule->step_count, 5);
        for (uint32_t s = 0; s < 5; s++) assert_int_equal(schedule->steps[s].level, (one_by_one ? measured : usual)[s]);
        hdi_schedule_free(schedule);
    }
    hdi_program_free(program);
}

/* ---- the rule ---- */

static uint64_t state_of_noise = 1;
static double noise(double share) { /* even, from 1 - share to 1 + share */
    state_of_noise = state_of_noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 1 + share * (2 * (double)(state_of_noise >> 11) / 9007199254740992.0 - 1);
}

/* In how many of 1,000 contests, of 7 rounds and then 21, an option that truly takes `ratio` times as long is kept. */
static unsigned kept(double ratio, double share, double outliers) {
    unsigned count = 0;
    for (int trial = 0; trial < 1000; trial++) {
        bool pays = true;
        for (uint32_t rounds = 7; rounds <= 21 && pays; rounds += 14) {
            uint64_t standard[21], option[21];
            double gain;
            for (uint32_t i = 0; i < rounds; i++) {
                standard[i] = (uint64_t)(1e6 * noise(share) * (noise(1) < 2 * outliers ? 3 : 1));
                option[i] = (uint64_t)(1e6 * ratio * noise(share) * (noise(1) < 2 * outliers ? 3 : 1));
            }
            pays = hdi_choice_pays(standard, option, rounds, &gain);
        }
        count += pays;
    }
    return count;
}

static void slower_options_are_never_kept(void **state) {
    (void)state;
    double gain;
    const uint64_t usual[] = { 100, 100, 100, 100, 100, 100, 100 }, same[] = { 100, 101, 99, 100, 100, 99, 101 },
        little[] = { 98, 98, 98, 98, 98, 98, 98 },
                   faster[] = { 90, 91, 89, 300, 90, 92, 90 }, often[] = { 50, 50, 50, 50, 120, 120, 120 }, zero[7] = { 0 };
    assert_false(hdi_choice_pays(usual, usual, 7, &gain));
    assert_false(hdi_choice_pays(usual, same, 7, &gain));
    assert_false(hdi_choice_pays(usual, little, 7, &gain)); /* faster, by less than 3 % */
    assert_true(hdi_choice_pays(usual, faster, 7, &gain));  /* one disturbed round */
    assert_true(gain > 1.1 && gain < 1.12);
    assert_false(hdi_choice_pays(usual, often, 7, &gain)); /* much faster in most rounds, and slower in too many */
    assert_false(hdi_choice_pays(faster, usual, 7, &gain));
    assert_false(hdi_choice_pays(usual, faster, 0, &gain));
    assert_true(hdi_choice_pays(usual, zero, 7, &gain) && gain > 1);
    assert_false(hdi_choice_pays(zero, zero, 7, &gain));
    for (int calm = 0; calm < 2; calm++) { /* noise of 5 % and of 15 %, with outliers */
        const double share = calm ? 0.05 : 0.15, outliers = calm ? 0 : 0.1;
        assert_int_equal(kept(1.03, share, outliers), 0);
        assert_int_equal(kept(1.1, share, outliers), 0);
        const unsigned equal = kept(1, share, outliers), better = kept(0.8, share, outliers);
        print_message("noise %g: of 1000 options equal to the usual one %u are kept, of 1000 that take 0.8 of its time %u\n",
                      share, equal, better);
        assert_true(equal < 20 && better > (calm ? 990 : 500));
    }
}

/* ---- keeping ---- */

static const char adding[] = "heddle 1\nx = input f32[4096] \"x -1 1\"\ny = input f32[4096] \"y\"\nz = add x y\noutput z \"z\"\n";

static void take(void *user, const hd_fact *fact) {
    if (user) *(hd_kernel_choice *)user = fact->choice;
}
static hd_status choose(hd_device *device, const hd_program *const *programs, size_t count, uint32_t rounds, hd_kernel_choice *out) {
    return hd_device_calibrate(device, &(hd_calibrate_desc){ .kinds = HD_FACT_CHOICE,
                                                             .programs = programs,
                                                             .program_count = count,
                                                             .rounds = rounds,
                                                             .report = take,
                                                             .user = out });
}

static void choices_are_kept_and_told(void **state) {
    (void)state;
    char folder[] = "/tmp/heddle-choices-XXXXXX", command[64];
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    hd_kernel_choice told;
    hd_device_stats before, after;
    assert_non_null(mkdtemp(folder));
    for (int round = 0; round < 2; round++) {
        const hd_program *two[2] = { NULL, NULL };
        hd_program *program, *other;
        assert_int_equal(hd_context_create(&(hd_context_desc){ .cache_dir = folder, .cpu_threads = 1 }, &context), HD_OK);
        assert_int_equal(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
        assert_int_equal(hd_program_parse(context, adding, strlen(adding), &program), HD_OK);
        const char *text = "heddle 1\nx = input f32[64,2048] \"x\"\nw = input q4_0[512,2048] \"w\"\n"
                           "z = matmul x w transpose_b\noutput z \"z\"\n";
        assert_int_equal(hd_program_parse(context, text, strlen(text), &other), HD_OK);
        const hdi_class of = hdi_class_of(HDI_CLASS_ELEMENTWISE, HD_F32, 1, 4096);
        hd_device *inside = device;
        assert_true(HDI_FIND(inside));
        hdi_choices choices = known_choices(inside);
        assert_int_equal(choices.count, round); /* what the first one kept */
        assert_int_equal(hd_plan_create(device, program, NULL, &plan), HD_OK);
        hd_plan_destroy(plan);
        hd_device_get_stats(device, &before);
        const hdi_choice choice = choice_of(of, id_of(HDI_MODULE_ELEMENTWISE, round ? "w1024" : "w16384"));
        assert_int_equal(hdi_store_choose(inside->facts, of, &choice, NULL), HD_OK);
        assert_int_equal(hd_plan_create(device, program, NULL, &plan), HD_OK);
        char *explained = calloc(1, 65536);
        assert_int_equal(hd_plan_explain(plan, explained, 65536, NULL), HD_OK);
        assert_non_null(strstr(explained, round ? "elementwise as w1024, " : "elementwise as w16384, "));
        free(explained);
        hd_plan_destroy(plan);
        hd_device_get_stats(device, &after);
        assert_int_equal(after.plan_hits, before.plan_hits); /* the ended plan held another choice */
        assert_int_equal(choose(NULL, two, 1, 1, NULL), HD_STATUS_NULL_POINTER);
        assert_int_equal(choose(device, two, 1, 1, NULL), HD_STATUS_NULL_POINTER);
        two[0] = program;
        two[1] = other;
        assert_int_equal(choose(device, two, 0, 1, NULL), HD_STATUS_INVALID_ARGUMENT);
        assert_int_equal(choose(device, two, 5, 1, NULL), HD_STATUS_INVALID_ARGUMENT);
        (void)hd_context_error(context);
        assert_int_equal(choose(device, two, 2, 1, NULL), HD_STATUS_INVALID_ARGUMENT); /* of two classes */
        assert_non_null(strstr(hd_context_error(context), "several classes"));
        assert_int_equal(choose(device, two, 1, 1, NULL), HD_OK);
        assert_int_equal(choose(device, two + 1, 1, 2, &told), HD_OK);
        assert_true(told.options >= 6 && told.gain >= 1 && strncmp(told.work, "matmul q4_0, rows 33-64,", 24) == 0);
        assert_true((strcmp(told.standard, told.chosen) == 0) == (told.gain == 1));
        choices = known_choices(inside);
        for (uint32_t i = 0; i < choices.count; i++)
            assert_int_equal(hdi_store_choose(inside->facts, choices.items[i].of, NULL, NULL), HD_OK);
        if (round == 0) assert_int_equal(hdi_store_choose(inside->facts, of, &choice, NULL), HD_OK);
        if (round == 1) {
            assert_int_equal(hd_device_calibrate(device, &(hd_calibrate_desc){ .forget = 1 }), HD_OK);
            choices = known_choices(inside);
            assert_int_equal(choices.count, 0);
        }
        hd_program_destroy(program);
        hd_program_destroy(other);
        hd_context_destroy(context);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_hold_what_is_alike), cmocka_unit_test(the_table_is_bounded), cmocka_unit_test(text_is_read_strictly),
        cmocka_unit_test(options_have_ids_of_their_own),
        cmocka_unit_test(plans_take_every_option), cmocka_unit_test(choices_never_fail_a_plan),
        cmocka_unit_test(choices_keep_to_the_budget), cmocka_unit_test(company_runs_side_by_side),
        cmocka_unit_test(slower_options_are_never_kept),
        cmocka_unit_test(choices_are_kept_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
