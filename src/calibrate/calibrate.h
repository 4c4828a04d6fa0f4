/* calibrate.h: finds out what is not known of a device by running on it: known answers, kernels against each other,
 * times. What comes of it goes into the device's facts, on disk too. */
#ifndef HDI_CALIBRATE_H
#define HDI_CALIBRATE_H

#include "facts/facts.h"
#include "plan/choose.h"
#include "run/run.h"

/* ---- find.c: all that can be known of a device ---- */
/* What is known before anything was found out. */
void hdi_calibrate_assume(const hdi_host *host, const hdi_found *found, hdi_facts *out_facts);
/* That of an opened device, and what its file says (hd_device.facts). */
hd_status hdi_calibrate_open(hd_device *device, hd_error *error);
void hdi_calibrate_close(hd_device *device);
/* Finds out, or forgets, as hd_device_calibrate. */
hd_status hdi_calibrate(hd_device *device, const hd_calibrate_desc *desc, hd_error *error);
/* The facts that are known, as far as there is room; NULL: none. Returns their number. */
size_t hdi_calibrate_known(hd_device *device, hd_fact *out_facts, size_t room);
/* ---- verify.c: which kernel variants are right ---- */
/* Names the kernels and known answers of this build, for the facts of a device; 0: verdicts on it are not kept. */
uint64_t hdi_verdicts_key(const hdi_caps *caps);
/* A plan for devices whose kernels are known to be right: variants that were never judged are judged first, where the
 * context asks for it. `caps` are those of the wish, and become what is known of the devices now. */
hd_status hdi_calibrate_plan(hd_device *const *devices, uint32_t count, const hdi_plan_wish *wish, hdi_caps *caps,
                             hdi_plan **out_plan, hd_error *error);
/* The same for a device alone. */
hd_status hdi_calibrate_schedule(hd_device *device, const hd_program *program, const hdi_plan_options *options,
                                 hdi_schedule **out_schedule, hd_error *error);
/* Judges what was never judged of a plan that is there. `out_wrong`: a kernel of it is wrong on its device. */
hd_status hdi_calibrate_judge(hd_device *const *devices, const hdi_plan *plan, bool *out_wrong, hd_error *error);
/* Judges all of them. */
hd_status hdi_calibrate_verdicts(hd_device *device, hd_fact_fn report, void *user, hd_error *error);
/* ---- samples.c: figures from measurements. Statuses: NULL_POINTER, INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, IO ---- */
hd_status hdi_calibrate_figures(hd_device *device, const hd_sample *samples, size_t count, hd_error *error);
/* ---- rank.c: the time of a fixed piece of work ---- */
/* Orders the devices that were found by what was measured of them in earlier processes, too. */
void hdi_calibrate_order(hdi_registry *registry);
hd_status hdi_calibrate_rank(hd_device *device, uint64_t *out_ns, hd_error *error);
/* Work to be timed by a clock, within a budget. */
typedef struct hdi_timed {
    hd_status (*run)(void *job, hd_error *error);
    void     *job;
    uint64_t  budget_ns;
    uint64_t (*now)(void);
} hdi_timed;
/* The best of three runs behind one that prepares; of fewer where the next one would end behind the budget. */
hd_status hdi_best_of(const hdi_timed *work, uint64_t *out_ns, hd_error *error);
/* ---- choices.c: which option of a kernel is the fastest ---- */
/* For the class of desc->programs. */
hd_status hdi_calibrate_choices(hd_device *device, const hd_calibrate_desc *desc, hd_kernel_choice *out_choice,
    hd_error *error);
/* Is the option faster, by times of the rules' own and of it, measured in turn in so many rounds: by more than 3 %, and
 * in three rounds of four? `out_gain`: how many times as long the rules' own took. */
bool hdi_choice_pays(const uint64_t *standard_ns, const uint64_t *option_ns, uint32_t rounds, double *out_gain);
/* ---- known_answers.c: small programs, run on a device and in plain C ---- */
typedef struct hdi_judgement {
    uint32_t answers; /* that were compared; 0: no plan for the device has this variant */
    double   worst;   /* largest error as a share of its bound; above 1: wrong */
} hdi_judgement;
/* As callers are told of it. */
hd_verdict hdi_verdict_of(hdi_variant variant, const hdi_judgement *judgement);
/* Compares the answers for a variant's forms, on a device with these facts; out[form] of each. The statuses are those
 * of a device that cannot answer; a kernel that it does not take counts as wrong. */
hd_status hdi_known_answers(hd_device *device, const hdi_caps *caps, hdi_variant variant, hdi_judgement out[64],
    hd_error *error);
/* Compiles side by side what the answers for these variants need, so that judging finds it in memory. */
hd_status hdi_known_kernels(hd_device *device, const hdi_caps *caps, const hdi_variant *variants, uint32_t count,
    hd_error *error);
/* Are f32 sums and products rounded, and subnormals kept, as exact mode needs? */
hd_status hdi_known_arithmetic(hd_device *device, const hdi_caps *caps, hdi_judgement *out, hd_error *error);
/* Loads all kernels that can be loaded, compiled side by side: one that fails is left out, and marked in `wanted`. */
hd_status hdi_known_load(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count, hd_error *error);
/* Ordinary numbers for an input, the same ones for the same seed. Its name may tell their range: "x -1 1". */
void hdi_known_input(const hdi_node *node, uint64_t seed, void *out_bytes);
/* The largest error of `given` as a share of its bound, which is a few units of the type and `share` of the largest
 * element. */
double hdi_known_error(const hdi_reference_tensor *right, const void *given, float share);
/* Changes with the answers: verdicts of others are not taken over. */
uint64_t hdi_known_answers_hash(void);
#endif
