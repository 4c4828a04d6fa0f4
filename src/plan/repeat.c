/* repeat.c: what is made once. A step that does what one before it did, from bytes that stay what they are, is left
 * out: products of the same rows share them as whole numbers, ropes of all layers their angles. Only what a task makes
 * ready for its last step is looked for, among the latest of that kind. */
#include "plan/task.h"

/* Which use of a step is written, where it is one that is not read; else none. */
static uint32_t only_written(const hdi_schedule_step *step) {
    uint32_t written = HDI_NO_INDEX;
    for (uint32_t u = 0; u < step->use_count; u++) {
        if ((step->uses[u].access & HDI_WRITE) == 0) continue;
        if (written != HDI_NO_INDEX || step->uses[u].access != HDI_WRITE) return HDI_NO_INDEX;
        written = u;
    }
    return written;
}

static bool are_equal(const hdi_schedule_step *a, const hdi_schedule_step *b, uint32_t written) {
    if (a->kind != b->kind || a->use_count != b->use_count || only_written(a) != written ||
        !hdi_kernels_equal(&a->kernel, &b->kernel) || memcmp(a->push, b->push, a->kernel.push_bytes) != 0 ||
        memcmp(a->groups, b->groups, sizeof a->groups) != 0)
        return false;
    for (uint32_t u = 0; u < a->use_count; u++) {
        const hdi_use *x = &a->uses[u], *y = &b->uses[u];
        const bool same = x->offset == y->offset && x->bytes == y->bytes;
        if (!same || (u != written && x->storage != y->storage)) return false;
    }
    return true;
}

/* What it reads was written before, once: no state, whose rows change. */
static bool reads_what_stays(const hdi_schedule *schedule, const hdi_schedule_step *step) {
    for (uint32_t u = 0; u < step->use_count; u++) {
        const uint32_t root = hdi_schedule_root(schedule, step->uses[u].storage, NULL);
        if (schedule->storages[root].kind == HDI_STORAGE_STATE) return false;
    }
    return true;
}

uint32_t hdi_steps_leave_repeated(hdi_schedule *schedule) {
    const uint32_t at = schedule->step_count - 1;
    const hdi_schedule_step *last = &schedule->steps[at];
    const uint32_t written = only_written(last);
    if (last->kind != HDI_CMD_DISPATCH || written == HDI_NO_INDEX || !reads_what_stays(schedule, last))
        return HDI_NO_INDEX;
    for (uint32_t i = 0; i < HDI_MIN(schedule->ahead_count, HDI_COUNT(schedule->ahead)); i++) {
        const hdi_schedule_step *step = &schedule->steps[schedule->ahead[i]];
        if (!are_equal(step, last, written)) continue;
        schedule->step_count--;
        return step->uses[written].storage;
    }
    schedule->ahead[schedule->ahead_count++ % HDI_COUNT(schedule->ahead)] = at;
    return HDI_NO_INDEX;
}
