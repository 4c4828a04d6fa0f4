/* share.c: operations shared by rows. What that takes is the time of the program in which they are one operation a
 * device. The parts of least time are searched for, the same ones for all, so that what lies behind one another stays
 * on its device. */
#include "plan/choose.h"
#include <math.h>

/* of a program in which parts are searched for: each look splits it anew; parts of all */
enum { MOST_NODES = 256, ALL = 100 };

hd_status hdi_choose_time(const hdi_choose_wish *wish, const hdi_placement *placement, hdi_placement_time *out_time,
                          hd_error *error) {
    hdi_split split;
    hdi_timing timing = { 0 };
    hd_status status = hdi_split_make(wish->plan.program, placement, &split, error);
    if (!status) status = hdi_timing_make(wish, split.program ? split.program : wish->plan.program, &timing, error);
    if (!status) *out_time = hdi_timing_of(&timing, split.program ? &split.placement : placement);
    /* nothing is placed where it is not computed */
    for (uint32_t i = 0; !status && i < timing.program->node_count; i++) {
        const uint32_t device = (split.program ? &split.placement : placement)->of[i].device;
        if (timing.alive[i] && hdi_timing_cost(&timing, i, device)->cannot) out_time->total_ns = HUGE_VAL;
    }
    hdi_timing_end(&timing);
    hdi_split_free(&split);
    return status;
}

typedef struct sharing {
    const hdi_timing    *t;
    const hdi_placement *base;
    const bool          *wanted;
    hdi_placement       *best;
    hdi_placement_time  *time; /* of the best one */
    uint32_t             parts[HDI_MOST_DEVICES]; /* of it */
    hd_error            *error;
} sharing;

/* All that is wanted and can be shared, by these parts; `out_any`: that is a kernel at least. */
static hd_status place(const sharing *s, const uint32_t *parts, hdi_placement *out, bool *out_any) {
    hdi_share share = { .axis = HDI_SHARE_ROWS };
    uint32_t number;
    memcpy(share.parts, parts, sizeof share.parts);
    *out_any = false;
    hd_status status = hdi_placement_copy(s->base, out, s->error);
    if (!status) status = hdi_placement_share(out, &share, &number, s->error);
    for (uint32_t i = 0; i < s->t->program->node_count && !status; i++) {
        const bool source = hdi_op_is_source(s->t->program->nodes[i].op);
        if (source || !s->wanted[i] || !s->t->alive[i] || hdi_share_why_not(s->t->program, i + 1, HDI_SHARE_ROWS))
            continue;
        out->of[i].share = number;
        *out_any = *out_any || hdi_timing_cost(s->t, i, 0)->ns > 0;
    }
    return status;
}

static hd_status look(sharing *s, const uint32_t *parts, bool *out_better) {
    hdi_placement placement = { 0 };
    hdi_placement_time time = { .total_ns = HUGE_VAL };
    bool any = false;
    hd_status status = place(s, parts, &placement, &any);
    if (!status && any) status = hdi_choose_time(s->t->wish, &placement, &time, s->error);
    *out_better = !status && time.total_ns < s->time->total_ns;
    if (*out_better) {
        hdi_placement_free(s->best);
        *s->best = placement;
        *s->time = time;
        memcpy(s->parts, parts, sizeof s->parts);
    } else hdi_placement_free(&placement);
    return status;
}

/* Moves parts from one device to another as long as that helps. */
static hd_status shift(sharing *s, uint32_t from, uint32_t to, uint32_t step, bool *out_better) {
    hd_status status = HD_OK;
    for (bool better = true; better && !status;) {
        uint32_t parts[HDI_MOST_DEVICES];
        memcpy(parts, s->parts, sizeof parts);
        better = parts[from] > step;
        if (!better) break;
        parts[from] -= step;
        parts[to] += step;
        status = look(s, parts, &better);
        *out_better = *out_better || better;
    }
    return status;
}

/* Parts as fast as devices are alone: the share of what each would get done in the same time. */
static void begin_with(const sharing *s, uint32_t devices, uint32_t *parts) {
    double rate[HDI_MOST_DEVICES], all = 0;
    uint32_t left = ALL;
    for (uint32_t d = 0; d < devices; d++) {
        double ns = 1;
        for (uint32_t i = 0; i < s->t->program->node_count; i++)
            ns += s->wanted[i] ? hdi_timing_cost(s->t, i, d)->ns : 0;
        rate[d] = 1 / ns;
        all += rate[d];
    }
    for (uint32_t d = devices; d-- > 0;) {
        parts[d] = d == 0 ? left : HDI_MIN((uint32_t)(ALL * rate[d] / all + 0.5), left);
        left -= parts[d];
    }
}

hd_status hdi_choose_rows(const hdi_timing *timing, const hdi_placement *base, const bool *wanted,
                          hdi_placement *out_placement, hdi_placement_time *out_time, hd_error *error) {
    static const uint32_t steps[] = { 10, 5, 2, 1 };
    const uint32_t devices = base->device_count;
    sharing s = { timing, base, wanted, out_placement, out_time, { 0 }, error };
    uint32_t processors = 0, parts[HDI_MOST_DEVICES] = { 0 };
    bool better;
    *out_time = (hdi_placement_time){ .total_ns = HUGE_VAL };
    for (uint32_t d = 0; d < devices; d++) processors |= timing->wish->software[d] ? 1u : 2u << d;
    if ((processors & (processors - 1)) == 0 || timing->program->node_count > MOST_NODES)
        return HD_OK; /* one after the other nothing is gained */
    begin_with(&s, devices, parts);
    hd_status status = look(&s, parts, &better);
    if (status || !better) return status;
    for (size_t i = 0; i < HDI_COUNT(steps) && !status; i++)
        for (better = true; better && !status;) {
            better = false;
            for (uint32_t from = 0; from < devices; from++)
                for (uint32_t to = 0; to < devices && !status; to++)
                    if (from != to) status = shift(&s, from, to, steps[i], &better);
            if (devices == 2) break; /* both ways were gone to their ends */
        }
    return status;
}
