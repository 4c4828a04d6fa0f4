/* repeat.c: what is made once. A step that does what one before it did, from bytes that nobody wrote since, is left
 * out: products of the same rows share them as whole numbers. */
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
        const bool same = u == written || (x->storage == y->storage && x->offset == y->offset);
        if (x->bytes != y->bytes || !same) return false;
    }
    return true;
}

/* Does `step` write what `other` uses? */
static bool disturbs(const hdi_schedule *schedule, const hdi_schedule_step *step, const hdi_schedule_step *other) {
    for (uint32_t u = 0; u < step->use_count; u++)
        for (uint32_t v = 0; (step->uses[u].access & HDI_WRITE) && v < other->use_count; v++)
            if (hdi_schedule_root(schedule, step->uses[u].storage, NULL) ==
                hdi_schedule_root(schedule, other->uses[v].storage, NULL))
                return true;
    return false;
}

uint32_t hdi_steps_leave_repeated(hdi_schedule *schedule) {
    enum { REACH = 16 }; /* products of the same rows are neighbours */
    const uint32_t count = schedule->step_count - 1;
    const hdi_schedule_step *last = &schedule->steps[count];
    const uint32_t written = only_written(last);
    if (last->kind != HDI_CMD_DISPATCH || written == HDI_NO_INDEX) return HDI_NO_INDEX;
    for (uint32_t at = count; at > 0 && count - at < REACH; at--) {
        const hdi_schedule_step *step = &schedule->steps[at - 1];
        if (are_equal(step, last, written)) {
            for (uint32_t after = at; after < count; after++)
                if (disturbs(schedule, &schedule->steps[after], step)) return HDI_NO_INDEX;
            schedule->step_count--;
            return step->uses[written].storage;
        }
    }
    return HDI_NO_INDEX;
}
