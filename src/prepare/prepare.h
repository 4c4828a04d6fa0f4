/* prepare.h: a plan made ready to run. The facts of its devices are gathered, the plan room decides by them, what was
 * never judged on its device is judged, and what came of it is loaded. Between those who find facts (calibrate), who
 * decide by them (plan) and who run what was decided (run), none of which knows the others' work. */
#ifndef HDI_PREPARE_H
#define HDI_PREPARE_H

#include "calibrate/calibrate.h"

/* Statuses of the wishes themselves. */
hd_status hdi_prepare_check(const hd_plan *plan, hd_error *error);
/* Where the program's operations go, and what the plan runs for that: plan->loaded and its alternatives. Where the
 * device lacks kernels, the CPU comes beside it, as the second device of a route. `out_made` (NULL: nobody asks): the
 * plan is only made, to be looked at, and nothing loaded. After a failure a plan that ran before goes on. */
hd_status hdi_prepare_make(hd_plan *plan, const hd_program *program, hdi_plan **out_made, hd_error *error);
/* The same once more for plan->program and plan->route, on the devices that the plan has now; what ran before is
 * ended. */
hd_status hdi_prepare_again(hd_plan *plan, hd_error *error);
/* What the program takes on the device alone (hdi_timing_alone). */
hd_status hdi_prepare_predict(hd_device *device, const hd_program *program, hdi_placement_time *out_time,
                              hd_error *error);
/* A plan that was saved, made again. */
hd_status hdi_prepare_load(hd_plan *plan, const hd_program *program, const hdi_saved_plan *saved, hd_error *error);
#endif
