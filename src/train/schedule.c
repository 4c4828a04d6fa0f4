/* schedule.c: what the host works out for a step: the learning rate, and an optimizer's rates that follow from it. Only
 * + - * / and square roots in double, each rounded once by IEEE 754, so that every host gets the same bits; the C
 * library's functions differ. */
#include <heddle_train.h>
#include <math.h>

#define PI 3.14159265358979311600

/* cos(x) and sin(x) for 0 <= x <= pi/4, by their series: the first term left out is below 2^-60. */
static double cosine(double x) {
    double sum = 0;
    for (int n = 16; n > 0; n -= 2) sum = (1 - sum) * (x * x) / (n * (n - 1));
    return 1 - sum;
}
static double sine(double x) {
    double sum = 0;
    for (int n = 17; n > 1; n -= 2) sum = (1 - sum) * (x * x) / (n * (n - 1));
    return x * (1 - sum);
}
/* cos(pi * t) for 0 <= t <= 1. */
static double cosine_of_half_turns(double t) {
    if (t > 0.5) return -cosine_of_half_turns(1 - t);
    return t <= 0.25 ? cosine(PI * t) : sine(PI * (0.5 - t));
}

double hd_schedule_rate(const hd_schedule *schedule, uint64_t step) {
    if (!schedule) return 0;
    if (step < schedule->warmup) return schedule->rate * (double)(step + 1) / (double)schedule->warmup;
    if (schedule->decay == HD_DECAY_NONE) return schedule->rate;
    const uint64_t past = step - schedule->warmup;
    if (schedule->steps <= schedule->warmup || past >= schedule->steps - schedule->warmup) return schedule->least;
    const double t = (double)past / (double)(schedule->steps - schedule->warmup),
                 span = schedule->rate - schedule->least;
    const double share = schedule->decay == HD_DECAY_LINEAR ? 1 - t : 0.5 * (1 + cosine_of_half_turns(t));
    return schedule->least + span * share;
}

static double power(double base, uint64_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

void hd_adamw_rates(const hd_adamw_desc *desc, double rate, double decay, uint64_t step, float out_rates[HD_RATES]) {
    const double beta1 = desc && desc->beta1 > 0 ? desc->beta1 : 0.9,
                 beta2 = desc && desc->beta2 > 0 ? desc->beta2 : 0.999;
    out_rates[0] = (float)(1 - rate * decay);
    out_rates[1] = (float)((1 - power(beta1, step + 1)) / rate); /* infinite for a rate of 0: nothing is taken off */
    out_rates[2] = (float)(1 / sqrt(1 - power(beta2, step + 1)));
}

void hd_sgd_rates(double rate, double decay, float out_rates[HD_RATES]) {
    out_rates[0] = (float)(1 - rate * decay);
    out_rates[1] = (float)rate;
    out_rates[2] = 0;
}
