/* calibrate.h: finds out what is not known of a device by running on it: known answers, kernels against each other, times. */
#ifndef HDI_CALIBRATE_H
#define HDI_CALIBRATE_H

#include "device/device.h"
#include "facts/facts.h"
#include "plan/choose.h"

/* ---- verify.c: which kernel variants are right on a device, judged once and kept beside the compiled kernels ---- */
hd_status hdi_verdicts_open(hd_device *device, hd_error *error);
void hdi_verdicts_close(hd_device *device);
/* The device's facts, with what is known to be wrong and what was chosen. */
void hdi_verdicts_caps(hd_device *device, hdi_caps *out_caps);
/* Judges the variants of a plan that were never judged, where the context asks for it. `*out_again`: the plan holds one that
 * is wrong, or a product that the device's library refuses; that is a fact now, and another plan will be made. */
hd_status hdi_verdicts_judge(hd_device *device, const hdi_plan *plan, bool *out_again, hd_error *error);
/* A plan for the device alone whose kernels are known to be right. */
hd_status hdi_verdicts_plan(hd_device *device, const hd_program *program, const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error);
/* ---- samples.c: what a device takes for its work, measured or assumed, kept beside the compiled kernels ---- */
hd_status hdi_tuned_open(hd_device *device, hd_error *error);
void hdi_tuned_close(hd_device *device);
/* What is known now. */
void hdi_tuned_get(hd_device *device, hdi_tuning *out_tuning);
/* Which options of kernels were chosen (NULL: not asked); returns a hash of them. */
uint64_t hdi_tuned_choices(hd_device *device, hdi_choices *out_choices);
/* A choice for a class, kept from now on (NULL: none). Statuses: LIMIT, IO. */
hd_status hdi_tuned_choose(hd_device *device, hdi_class of, const hdi_choice *choice, hd_error *error);
/* ---- known_answers.c: small programs, run on a device and in plain C ---- */
typedef struct hdi_judgement {
    uint32_t answers; /* that were compared; 0: no plan for the device has this variant */
    double   worst;   /* largest error as a share of its bound; above 1: wrong */
} hdi_judgement;
/* Compares the answers for a variant's forms, on a device with these facts; out[form] of each. The statuses are those of a
 * device that cannot answer; a kernel that it does not take counts as wrong. */
hd_status hdi_known_answers(hd_device *device, const hdi_caps *caps, hdi_variant variant, hdi_judgement out[64], hd_error *error);
/* Compiles side by side what the answers for these variants need, so that judging finds it in memory. */
hd_status hdi_known_kernels(hd_device *device, const hdi_caps *caps, const hdi_variant *variants, uint32_t count, hd_error *error);
/* Are f32 sums and products rounded, and subnormals kept, as exact mode needs? */
hd_status hdi_known_arithmetic(hd_device *device, const hdi_caps *caps, hdi_judgement *out, hd_error *error);
/* Loads all kernels that can be loaded, compiled side by side: one that fails is left out, and marked in `wanted`. */
hd_status hdi_known_load(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count, hd_error *error);
/* Ordinary numbers for an input, the same ones for the same seed. Its name may tell their range: "x -1 1". */
void hdi_known_input(const hdi_node *node, uint64_t seed, void *out_bytes);
/* The largest error of `given` as a share of its bound, which is a few units of the type and `share` of the largest element. */
double hdi_known_error(const hdi_reference_tensor *right, const void *given, float share);
/* Changes with the answers: verdicts of others are not taken over. */
uint64_t hdi_known_answers_hash(void);
/* ---- choices.c: which option of a kernel is the fastest on a device ---- */
/* Is the option faster, by times of the rules' own and of it, measured in turn in so many rounds: by more than 3 %, and in three
 * rounds of four? `out_gain`: how many times as long the rules' own took. */
bool hdi_choice_pays(const uint64_t *standard_ns, const uint64_t *option_ns, uint32_t rounds, double *out_gain);
#endif
