/* candidates.c: the placements that a plan of route "auto" may have, the best first: what was chosen by the facts, set
 * beside what runs of earlier plans took. */
#include "facts/runs.h"
#include "plan/choose.h"
#include <math.h>

hd_status hdi_inputs_mark(const hd_program *program, const char *const *names, uint32_t count, bool *inout_marks,
                          hd_error *error) {
    for (uint32_t i = 0; i < count; i++) {
        const char *name = names ? names[i] : NULL;
        bool found = false;
        for (uint32_t k = 0; k < program->node_count && name; k++)
            if (program->nodes[k].op == HDI_OP_INPUT && strcmp(program->nodes[k].name, name) == 0)
                found = inout_marks[k] = true;
        if (!found)
            return hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "resident: no input is called \"%s\"", name ? name : "");
    }
    return HD_OK;
}

/* Once each; not those that cannot be. */
static hd_status add(hdi_candidates *all, const hdi_placement *placement, const hdi_placement_time *time,
                     hd_error *error) {
    const uint64_t key = hdi_placement_hash(all->key, placement);
    bool there = time->total_ns == HUGE_VAL || all->count == HDI_COUNT(all->of);
    for (uint32_t i = 0; i < all->count; i++) there = there || all->of[i].key == key;
    if (there) return HD_OK;
    const double known_ns = hdi_runs_known(all->runs, key),
                 run_ns = known_ns > 0 ? known_ns : time->total_ns - time->ports_ns;
    hdi_candidate *one = &all->of[all->count++];
    *one = (hdi_candidate){ .key = key, .run_ns = run_ns, .total_ns = run_ns + time->ports_ns };
    return hdi_placement_copy(placement, &one->placement, error);
}

hd_status hdi_candidates_find(const hd_program *program, uint32_t device_count, hdi_device_choice *choice,
                              hdi_candidates *all, hd_error *error) {
    hdi_placement alone = { 0 };
    hd_status status = add(all, &choice->best, &choice->time, error);
    if (!status) status = add(all, &choice->mixed, &choice->mixed_time, error);
    if (!status) status = hdi_placement_new(program, device_count, &alone, error);
    for (uint32_t d = 0; d < device_count && !status; d++) {
        for (uint32_t i = 0; i < program->node_count; i++) alone.of[i] = (hdi_place){ .device = d };
        status = add(all, &alone, &choice->alone[d], error);
    }
    hdi_placement_free(&alone);
    for (uint32_t i = 1; i < all->count && !status; i++)
        if (all->of[i].total_ns < all->of[0].total_ns) {
            const hdi_candidate first = all->of[0];
            all->of[0] = all->of[i];
            all->of[i] = first;
        }
    if (!status && hdi_placement_hash(0, &all->of[0].placement) != hdi_placement_hash(0, &choice->best))
        hdi_text_add(&choice->text, "runs of earlier plans say otherwise: the placement below takes %.1f us\n",
                     all->of[0].total_ns / 1000);
    return status;
}

void hdi_candidates_free(hdi_candidates *all) {
    for (uint32_t i = 0; i < all->count; i++) hdi_placement_free(&all->of[i].placement);
    all->count = 0;
}
