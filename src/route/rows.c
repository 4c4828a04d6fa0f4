/* rows.c: operations shared by rows. What that takes is the time of the program in which they are two operations each; the share of
 * least time is searched for, the same one for all, so that what lies behind one another stays on its device. */
#include "route/route.h"
#include <math.h>

enum { MOST_NODES = 256 }; /* of a program in which a share is searched for: each look splits it anew */

static hd_status no_memory(hd_error *error) { return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to share operations by rows"); }

/* ---- a routing over the split program ---- */

hd_status hdi_route_split(const hdi_routing *routing, const uint8_t *places, hdi_split_routing *out, hd_error *error) {
    *out = (hdi_split_routing){ .routing = *routing, .places = places };
    hd_status status = hdi_split_make(routing->program, places, &out->split, error);
    const hd_program *program = out->split.program;
    if (status || !program) return status;
    const uint32_t count = program->node_count;
    out->work = hdi_alloc(program->allocator, count * sizeof *out->work);
    out->can = hdi_alloc(program->allocator, count);
    out->resident = hdi_alloc(program->allocator, count * sizeof *out->resident);
    if (!out->work || !out->can || !out->resident) return no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = program->nodes[i].origin.value - 1;
        out->can[i] = routing->can ? routing->can[from] : 3;
        out->resident[i] = routing->resident && routing->resident[from];
    }
    out->places = out->split.places;
    out->routing.program = program;
    out->routing.work = out->work;
    out->routing.can = out->can;
    out->routing.resident = out->resident;
    return hdi_work_of(program, routing->fusion, out->work, error);
}

void hdi_route_split_end(hdi_split_routing *split) {
    const hd_program *program = split->split.program;
    if (program) {
        hdi_free(program->allocator, split->work, program->node_count * sizeof *split->work);
        hdi_free(program->allocator, split->can, program->node_count);
        hdi_free(program->allocator, split->resident, program->node_count * sizeof *split->resident);
    }
    hdi_split_free(&split->split);
}

/* ---- the best share ---- */

typedef struct sharing {
    const hdi_routing *r;
    const uint8_t *base, *wanted;
    uint8_t  *places;  /* with the share looked at */
    uint32_t  percent; /* the best share, */
    hdi_route_time time; /* and its time */
} sharing;

/* All that is wanted and can be shared, by this share; false: that is no kernel. */
static bool place(const sharing *s, uint32_t percent) {
    const hd_program *program = s->r->program;
    bool any = false;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const bool shared = s->wanted[i] && s->r->work[i].alive && (!s->r->can || s->r->can[i] == 3) && !hdi_rows_why_not(program, i + 1);
        s->places[i] = shared ? HDI_PLACE_SHARE(percent) : s->base[i];
        any = any || (shared && s->r->work[i].launch);
    }
    return any;
}

static hd_status look_at(sharing *s, uint32_t percent, hd_error *error) {
    hdi_route_time time;
    if (percent == 0 || percent >= 100 || !place(s, percent)) return HD_OK;
    const hd_status status = hdi_route_time_of(s->r, s->places, &time, error);
    if (status || time.total_ns >= s->time.total_ns) return status;
    s->time = time;
    s->percent = percent;
    return HD_OK;
}

hd_status hdi_route_rows(const hdi_routing *routing, const uint8_t *places, const uint8_t *wanted, uint8_t *out_places, hdi_route_time *out_time, hd_error *error) {
    static const uint32_t steps[] = { 5, 2, 1 };
    sharing s = { .r = routing, .base = places, .wanted = wanted, .places = out_places, .time = { .total_ns = HUGE_VAL } };
    hd_status status = HD_OK;
    *out_time = s.time;
    if (!routing->overlap || routing->program->node_count > MOST_NODES || !place(&s, 50)) return HD_OK; /* one after the other nothing is gained */
    for (uint32_t percent = 10; percent < 100 && !status; percent += 10) status = look_at(&s, percent, error);
    for (uint32_t i = 0; i < HDI_COUNT(steps) && !status; i++) {
        const uint32_t middle = s.percent;
        status = look_at(&s, middle - steps[i], error);
        if (!status) status = look_at(&s, middle + steps[i], error);
    }
    if (!status && s.percent > 0) place(&s, s.percent);
    *out_time = s.time;
    return status;
}
