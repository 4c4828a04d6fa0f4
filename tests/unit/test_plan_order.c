/* The order of steps: each stands one level behind the last one that it waits for, as looking at all pairs finds, and what finding
 * it takes grows with the number of steps and not with its square. */
#include "plan/schedule.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static hdi_schedule *plan_of(const hdi_text *text, bool in_order) {
    const hdi_caps caps = { .memory_bytes = UINT64_C(1) << 34,
                            .max_allocation_bytes = UINT64_C(1) << 32,
                            .max_binding_bytes = UINT64_C(1) << 30,
                            .binding_align = 16,
                            .max_bindings = 8,
                            .max_push_bytes = 128,
                            .max_workgroup = 1024,
                            .max_workgroup_x = 1024,
                            .max_groups_x = 65535,
                            .max_groups_y = 65535,
                            .max_groups_z = 65535 };
    hdi_schedule *schedule = NULL;
    hd_error error = { 0 };
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    assert_false(text->failed);
    if (hdi_program_parse(program, text->bytes, text->count, NULL, NULL, &error) ||
        hdi_schedule_make(&hdi_default_allocator, program, &caps, &(hdi_plan_options){ .math = HD_MATH_EXACT, .in_order = in_order },
                          &schedule, &error))
        fail_msg("%s", error.text);
    hdi_program_free(program);
    return schedule;
}

/* Sums, softmaxes and slices, each of values by chance that came before it, and joined ones, which nothing reads. */
static hdi_schedule *by_chance(uint32_t seed, int count, bool in_order) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    int usable[64] = { 1 }, usable_count = 1;
    hdi_text_add(&text, "heddle 1\nv1 = input f32[8,4] \"x\"\nv2 = input f32[16,4] \"z\"\n");
    for (int v = 3; v < count; v++) {
        int of[3];
        for (int i = 0; i < 3; i++) of[i] = usable[((seed = seed * 1664525u + 1013904223u) >> 8) % (uint32_t)usable_count];
        if (v % 4 == 0) hdi_text_add(&text, "v%d = softmax v%d axis=1\n", v, of[0]);
        else if (v % 4 == 1) hdi_text_add(&text, "v%d = slice v2 begin=[%d,0] end=[%d,4]\n", v, v % 8, v % 8 + 8);
        else if (v % 4 == 2) hdi_text_add(&text, "v%d = concat v%d v%d v%d axis=0\n", v, of[0], of[1], of[2]);
        else hdi_text_add(&text, "v%d = add v%d v%d\n", v, of[1], of[2]);
        if (v % 4 != 2) usable[usable_count++] = v;
        if (v % 4 == 2 || v % 5 == 0) hdi_text_add(&text, "output v%d \"y%d\"\n", v, v);
    }
    hdi_schedule *schedule = plan_of(&text, in_order);
    hdi_text_free(&text);
    return schedule;
}

static bool waits(const hdi_schedule *schedule, const hdi_schedule_step *step, const hdi_schedule_step *earlier) {
    for (uint32_t u = 0; u < step->use_count; u++)
        for (uint32_t e = 0; e < earlier->use_count; e++) {
            uint64_t at = step->uses[u].offset, before = earlier->uses[e].offset;
            if (hdi_schedule_root(schedule, step->uses[u].storage, &at) !=
                hdi_schedule_root(schedule, earlier->uses[e].storage, &before))
                continue;
            const bool overlap = at < before + earlier->uses[e].bytes && before < at + step->uses[u].bytes;
            if (overlap && ((step->uses[u].access | earlier->uses[e].access) & HDI_WRITE)) return true;
        }
    return false;
}

static void a_step_waits_for_what_it_needs(void **state) {
    (void)state;
    uint32_t behind = 0;
    for (uint32_t seed = 1; seed <= 80; seed++) {
        const bool in_order = seed > 40;
        hdi_schedule *schedule = by_chance(seed, 60, in_order);
        for (uint32_t s = 0; s < schedule->step_count; s++) {
            uint32_t level = 0;
            for (uint32_t e = 0; e < s; e++)
                if (waits(schedule, &schedule->steps[s], &schedule->steps[e])) level = HDI_MAX(level, schedule->steps[e].level + 1);
            if (in_order && s > 0) level = HDI_MAX(level, schedule->steps[s - 1].level); /* at once with the one in front, or later */
            if (schedule->tight) assert_true(schedule->steps[s].level >= level);
            else assert_int_equal(schedule->steps[s].level, level);
            behind += level > 0;
        }
        hdi_schedule_free(schedule);
    }
    assert_true(behind > 400);
}

static double seconds_of_slices(int count) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\nv1 = input f32[%d,2] \"x\"\n", count + 1);
    for (int i = 0; i < count; i++)
        hdi_text_add(&text, "v%d = slice v1 begin=[%d,0] end=[%d,2]\noutput v%d \"y%d\"\n", i + 2, i, i + 1, i + 2, i);
    const clock_t began = clock();
    hdi_schedule *schedule = plan_of(&text, false);
    const double spent = (double)(clock() - began) / CLOCKS_PER_SEC;
    assert_true(schedule->step_count >= (uint32_t)count);
    hdi_schedule_free(schedule);
    hdi_text_free(&text);
    return spent;
}

static void time_grows_with_the_steps(void **state) {
    (void)state;
    seconds_of_slices(1000);
    const double few = seconds_of_slices(5000), many = seconds_of_slices(20000);
    if (many > 9 * few) fail_msg("four times the steps took %.1f times as long: %.2f s", many / few, many);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_step_waits_for_what_it_needs), cmocka_unit_test(time_grows_with_the_steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
