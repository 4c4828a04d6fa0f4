/* The order of steps, and where intermediates lie: each step stands one level behind the last one that it waits for, and each
 * intermediate at the lowest address that those before it leave free, as looking at all pairs finds. What planning takes grows with
 * the number of steps and not with its square. */
#include "spent.h"
#include "unit/schedules.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hdi_schedule *plan_of(const hdi_text *text, bool in_order, uint64_t most_bytes) {
    hdi_caps caps = invented_caps();
    caps.max_allocation_bytes = most_bytes;
    caps.shared_bytes = 32768;
    assert_false(text->failed);
    return schedule_of_text(text->bytes, text->count, &caps, &(hdi_plan_options){ .math = HD_MATH_EXACT, .in_order = in_order });
}

/* Sums, softmaxes and slices, each of values by chance that came before it, and joined ones, which nothing reads. */
enum { MOST = 1600 };
static hdi_schedule *by_chance(uint32_t seed, int count, bool in_order, uint64_t most_bytes) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    int usable[MOST] = { 1 }, usable_count = 1;
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
    hdi_schedule *schedule = plan_of(&text, in_order, most_bytes);
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

/* What inputs alone make, in memory of its own, waits for the level before its first use. */
static uint32_t put_off(const hdi_schedule *schedule, uint32_t s, uint32_t level) {
    const hdi_schedule_step *step = &schedule->steps[s];
    uint32_t first = UINT32_MAX;
    for (uint32_t u = 0; u < step->use_count; u++) {
        const hdi_storage_kind kind = schedule->storages[hdi_schedule_root(schedule, step->uses[u].storage, NULL)].kind;
        if (kind != (step->uses[u].access == HDI_READ ? HDI_STORAGE_INPUT : HDI_STORAGE_SCRATCH)) return level;
    }
    for (uint32_t later = s + 1; later < schedule->step_count; later++)
        if (waits(schedule, &schedule->steps[later], step)) first = HDI_MIN(first, schedule->steps[later].level);
    return first == UINT32_MAX ? level : HDI_MAX(level, first - 1);
}

static void a_step_waits_for_what_it_needs(void **state) {
    (void)state;
    uint32_t behind = 0, later = 0;
    for (uint32_t seed = 1; seed <= 80; seed++) {
        const bool in_order = seed > 40;
        hdi_schedule *schedule = by_chance(seed, 60, in_order, UINT64_C(1) << 32);
        for (uint32_t s = 0; s < schedule->step_count; s++) {
            uint32_t level = 0;
            for (uint32_t e = 0; e < s; e++)
                if (waits(schedule, &schedule->steps[s], &schedule->steps[e])) level = HDI_MAX(level, schedule->steps[e].level + 1);
            if (in_order && s > 0) level = HDI_MAX(level, schedule->steps[s - 1].level); /* at once with the one in front, or later */
            const uint32_t wanted = in_order ? level : put_off(schedule, s, level);
            if (schedule->tight) assert_true(schedule->steps[s].level >= level);
            else assert_int_equal(schedule->steps[s].level, wanted);
            later += wanted > level;
            behind += level > 0;
        }
        hdi_schedule_free(schedule);
    }
    assert_true(behind > 400 && later > 0);
}

/* Twelve layers of which each reads what becomes of a matrix of its own: two of these lie there at once, not all. */
static void what_inputs_make_is_made_late(void **state) {
    (void)state;
    enum { LAYERS = 12, BYTES = 64 * 64 * 4 };
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\nx0 = input f32[64,64] \"x\"\n");
    for (int i = 0; i < LAYERS; i++)
        hdi_text_add(&text, "w%d = input f32[64,64] \"w%d\"\ns%d = softmax w%d axis=1\nx%d = matmul x%d s%d\n", i, i, i, i, i + 1, i, i);
    hdi_text_add(&text, "output x%d \"y\"\n", LAYERS);
    hdi_schedule *schedule = plan_of(&text, false, UINT64_C(1) << 32);
    assert_int_equal(schedule->level_count, LAYERS + 1);
    for (uint32_t s = 0, layer = 0; s < schedule->step_count; s++)
        if (strstr(schedule->steps[s].label, "softmax")) assert_int_equal(schedule->steps[s].level, layer++);
    assert_true(schedule->memory.scratch_bytes <= 4 * BYTES);
    hdi_schedule_free(schedule);
    hdi_text_free(&text);
}

static double seconds_of_slices(int count) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\nv1 = input f32[%d,2] \"x\"\n", count + 1);
    for (int i = 0; i < count; i++)
        hdi_text_add(&text, "v%d = slice v1 begin=[%d,0] end=[%d,2]\noutput v%d \"y%d\"\n", i + 2, i, i + 1, i + 2, i);
    const double began = spent_seconds();
    hdi_schedule *schedule = plan_of(&text, false, UINT64_C(1) << 32);
    const double spent = spent_seconds() - began;
    assert_true(schedule->step_count >= (uint32_t)count);
    hdi_schedule_free(schedule);
    hdi_text_free(&text);
    return spent;
}

/* Intermediates of all sizes, rows that are overwritten while older ones are still read, and norms that are read once more at the
 * very end. */
static double seconds_of_layers(int count) {
    hdi_text text = { .allocator = &hdi_default_allocator };
    hdi_text_add(&text, "heddle 1\nv1 = input f32[4,8] \"x\"\nv2 = input f32[8] \"weight\"\nv3 = input f32[8,8] \"matrix\"\n"
                        "v4 = input i32[1] \"at\"\nv5 = state f32[8,8] \"rows\"\nv6 = input i32[4] \"positions\"\n");
    int x = 1, rows = 5, v = 7, *norms = malloc((size_t)count * sizeof *norms);
    assert_non_null(norms);
    for (int i = 0; i < count; i++, v += 10) {
        norms[i] = v;
        hdi_text_add(&text, "v%d = rms_norm v%d v2 eps=1e-05\nv%d = matmul v%d v3\n", v, x, v + 1, v);
        hdi_text_add(&text, "v%d = write_rows v%d v%d v4\nv%d = slice v%d begin=[2,0] end=[6,8]\n", v + 2, rows, v + 1, v + 3, v + 2);
        hdi_text_add(&text, "v%d = pad v%d before=[0,0] after=[%d,0] value=0\n", v + 4, v + 3, 1 + i % 7);
        hdi_text_add(&text, "v%d = softmax v%d axis=1\nv%d = slice v%d begin=[0,0] end=[4,8]\n", v + 5, v + 4, v + 6, v + 5);
        hdi_text_add(&text, "v%d = reshape v%d shape=[4,2,4]\nv%d = rope v%d v6 theta=%d\nv%d = reshape v%d shape=[4,8]\n", v + 7,
                     v + 6, v + 8, v + 7, 10 + i, v + 9, v + 8);
        x = v + 9, rows = v + 2;
    }
    for (int i = count; i-- > 0; x = v++) hdi_text_add(&text, "v%d = add v%d v%d\n", v, x, norms[i]);
    hdi_text_add(&text, "output v%d \"y\"\n", x);
    const double began = spent_seconds();
    hdi_schedule *schedule = plan_of(&text, true, UINT64_C(1) << 32);
    const double spent = spent_seconds() - began;
    assert_true(schedule->step_count >= 5 * (uint32_t)count);
    hdi_schedule_free(schedule);
    hdi_text_free(&text);
    free(norms);
    return spent;
}

static void time_grows_with_the_steps(void **state) {
    (void)state;
    assert_grows_with_size(seconds_of_slices, 5000);
    assert_grows_with_size(seconds_of_layers, 1000);
}

/* ---- where intermediates lie ---- */

/* Is `a` placed before `b`? */
static bool comes_before(const hdi_storage *a, const hdi_storage *b) {
    if (a->bytes != b->bytes) return a->bytes > b->bytes;
    return a->first_level != b->first_level ? a->first_level < b->first_level : a < b;
}

/* Would `bytes` at an offset of a slab be in the way of what is placed before `one` and lives at the same time? */
static bool meets(const hdi_schedule *schedule, const hdi_storage *one, uint32_t slot, uint64_t offset, uint64_t bytes) {
    for (uint32_t i = 0; i < schedule->storage_count; i++) {
        const hdi_storage *other = &schedule->storages[i];
        if (other->kind != HDI_STORAGE_SCRATCH || other->parent != HDI_NO_INDEX || other->slot != slot) continue;
        if (!comes_before(other, one) || other->first_level > one->last_level || one->first_level > other->last_level) continue;
        if (offset < other->offset + (other->bytes + 255) / 256 * 256 && other->offset < offset + bytes) return true;
    }
    return false;
}

static void an_intermediate_lies_at_the_lowest_free_address(void **state) {
    (void)state;
    uint32_t higher = 0, later_slabs = 0;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        const uint64_t most = seed % 2 ? 1024 : UINT64_C(1) << 32;
        hdi_schedule *schedule = by_chance(seed, seed == 20 ? MOST : 60 + 10 * (int)seed, seed > 10, most);
        uint32_t first = 0;
        while (first < schedule->slot_count && schedule->slots[first].kind != HDI_STORAGE_SCRATCH) first++;
        for (uint32_t i = 0; i < schedule->storage_count; i++) {
            const hdi_storage *one = &schedule->storages[i];
            const uint64_t bytes = (one->bytes + 255) / 256 * 256;
            if (one->kind != HDI_STORAGE_SCRATCH || one->parent != HDI_NO_INDEX || one->first_level > one->last_level) continue;
            assert_true(one->slot >= first && one->offset % 256 == 0 && one->offset + bytes <= most);
            assert_true(one->offset + bytes <= schedule->slots[one->slot].bytes);
            assert_false(meets(schedule, one, one->slot, one->offset, bytes));
            for (uint32_t slot = first; slot <= one->slot; slot++)
                for (uint64_t at = 0; at + bytes <= (slot == one->slot ? one->offset + bytes - 256 : most); at += 256)
                    if (!meets(schedule, one, slot, at, bytes)) fail_msg("seed %u: storage %u fits lower", seed, i);
            higher += one->offset > 0;
            later_slabs += one->slot > first;
        }
        hdi_schedule_free(schedule);
    }
    assert_true(higher > 200 && later_slabs > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_step_waits_for_what_it_needs), cmocka_unit_test(what_inputs_make_is_made_late),
                                        cmocka_unit_test(an_intermediate_lies_at_the_lowest_free_address),
                                        cmocka_unit_test(time_grows_with_the_steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
