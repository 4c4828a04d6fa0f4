/* emit.c: steps and places become commands: a mark for each step, one barrier between levels. Work whose estimated time
 * is above the slice is cut: a long dispatch inside, along the axes of its grid, and a row of short ones between
 * them, so that no single hand-over to the device takes long enough to wake a watchdog. */
#include "plan/schedule.h"

/* Cautious rates for devices that do not state theirs. */
enum { DEFAULT_GFLOPS = 200, DEFAULT_GBYTES_S = 20, DISPATCH_US = 5 };

/* Estimated microseconds of a step. */
static uint64_t estimate_us(const hdi_schedule *schedule, const hdi_schedule_step *step) {
    uint64_t gflops = schedule->caps.gflops ? schedule->caps.gflops : DEFAULT_GFLOPS;
    uint64_t gbytes = schedule->caps.gbytes_s ? schedule->caps.gbytes_s : DEFAULT_GBYTES_S;
    return DISPATCH_US + HDI_MAX(step->flops / (gflops * 1000), step->bytes / (gbytes * 1000));
}

static hdi_range range_of(const hdi_schedule *schedule, const hdi_use *use) {
    uint64_t offset = use->offset;
    const hdi_storage *storage = &schedule->storages[hdi_schedule_root(schedule, use->storage, &offset)];
    return (hdi_range){ storage->slot, storage->offset + offset, use->bytes };
}

/* Groups of a piece along each axis, so that there are at least as many pieces and none has more than its share: the
 * axis with the most groups is cut first, and the next one where that is not enough. */
static void cut_grid(const uint32_t groups[3], uint64_t pieces, uint32_t out_piece[3]) {
    bool done[3] = { false };
    for (int turn = 0; turn < 3; turn++) {
        int axis = -1;
        for (int i = 0; i < 3; i++)
            if (!done[i] && (axis < 0 || groups[i] > groups[axis])) axis = i;
        out_piece[axis] = groups[axis] / (uint32_t)HDI_MIN(pieces, groups[axis]);
        pieces = hdi_divide_up(pieces, hdi_divide_up(groups[axis], out_piece[axis]));
        done[axis] = true;
    }
}

/* From one piece to the next, the first axis fastest; false: there is none. */
static bool next_piece(const uint32_t groups[3], const uint32_t piece[3], uint32_t first[3]) {
    for (int axis = 0; axis < 3; axis++) {
        if (groups[axis] - first[axis] > piece[axis]) {
            first[axis] += piece[axis];
            return true;
        }
        first[axis] = 0;
    }
    return false;
}

static hd_status emit_dispatch(hdi_schedule *schedule, const hdi_schedule_step *step) {
    hdi_binding bindings[HDI_MAX_BINDINGS];
    for (uint32_t u = 0; u < step->use_count; u++)
        bindings[u] = (hdi_binding){ range_of(schedule, &step->uses[u]), step->uses[u].access };
    uint32_t kernel, piece[3], first[3] = { 0, 0, 0 };
    hd_status status = hdi_cmds_kernel(&schedule->cmds, &step->kernel, &kernel);
    uint64_t pieces = 1 + estimate_us(schedule, step) / schedule->options.slice_us;
    const bool whole = step->kernel.module >= HDI_USER_MODULE; /* it may ask how many groups there are */
    if ((!schedule->caps.dispatch_base && !schedule->caps.native_kernels) || whole) pieces = 1;
    cut_grid(step->groups, pieces, piece);
    for (bool more = true, begins = true; more && !status; begins = false) {
        uint32_t groups[3];
        for (int i = 0; i < 3; i++) groups[i] = HDI_MIN(piece[i], step->groups[i] - first[i]);
        if (!begins) {
            status = hdi_cmds_barrier(&schedule->cmds, true);
            schedule->slices++;
        }
        if (!status)
            status = hdi_cmds_dispatch(&schedule->cmds, kernel, bindings, step->use_count, step->push, first, groups);
        more = next_piece(step->groups, piece, first);
    }
    return status;
}

static hd_status emit_step(hdi_schedule *schedule, const hdi_schedule_step *step) {
    hd_status status = hdi_cmds_mark(&schedule->cmds, step->label);
    if (status) return status;
    if (step->kind == HDI_CMD_COPY)
        return hdi_cmds_copy(&schedule->cmds, range_of(schedule, &step->uses[0]), range_of(schedule, &step->uses[1]));
    if (step->kind == HDI_CMD_FILL)
        return hdi_cmds_fill(&schedule->cmds, range_of(schedule, &step->uses[0]), step->fill);
    return emit_dispatch(schedule, step);
}

hd_status hdi_schedule_emit(hdi_schedule *schedule, hd_error *error) {
    uint64_t since_cut_us = 0;
    hd_status status = HD_OK;
    for (uint32_t s = 0; s < schedule->step_count && !status; s++) {
        uint64_t us = estimate_us(schedule, &schedule->steps[s]);
        bool cut = s > 0 && since_cut_us + us > schedule->options.slice_us;
        if (cut || (s > 0 && schedule->steps[s].level != schedule->steps[s - 1].level))
            status = hdi_cmds_barrier(&schedule->cmds, cut);
        if (cut) since_cut_us = 0;
        since_cut_us = us > schedule->options.slice_us ? schedule->options.slice_us : since_cut_us + us;
        if (!status) status = emit_step(schedule, &schedule->steps[s]);
    }
    return status ? hdi_fail(error, status, "no memory for the commands of %u steps", schedule->step_count) : HD_OK;
}
