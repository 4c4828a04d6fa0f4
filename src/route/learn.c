/* learn.c: figures are right on the average of a quiet machine; runs tell what they are worth now. Factors move half of the
 * way with each measured run, in proportion to what a family had of it, and go back to 1 with time, ever more slowly while
 * they turn out to be right. */
#include "route/route.h"
#include <math.h>

#define HALF_LIFE_NS 20e9 /* of a factor's logarithm, at first; each try that finds the device as slow as before doubles it */
#define MOST_LIFE_NS 80e9
#define CLEAR        0.1  /* of a logarithm: more than noise */
#define SHARE        0.5  /* of the way to what was measured */
#define MOST         64.0 /* times slower, or faster, than predicted */
enum { FIRST_RUNS = 2, ONE_IN = 256 };

static double bound(double factor) { return HDI_MIN(HDI_MAX(factor, 1 / MOST), MOST); }

double hdi_learned_factor(const hdi_learned *learned, hdi_op_kind family, uint64_t now_ns) {
    const double factor = learned->of[family].factor;
    if (!(factor > 0)) return 1;
    const double age = now_ns > learned->of[family].at_ns ? (double)(now_ns - learned->of[family].at_ns) : 0;
    return exp(log(bound(factor)) * exp2(-age / HDI_MAX(learned->of[family].half_life_ns, HALF_LIFE_NS)));
}

void hdi_learn(hdi_learned *learned, const double predicted_ns[HDI_KIND_COUNT], double measured_ns, uint64_t now_ns) {
    double now[HDI_KIND_COUNT], all = 0;
    for (int i = 0; i < HDI_KIND_COUNT; i++) {
        now[i] = predicted_ns[i] * hdi_learned_factor(learned, (hdi_op_kind)i, now_ns);
        all += now[i];
    }
    if (!(all > 0) || !isfinite(all) || !(measured_ns > 0) || !isfinite(measured_ns)) return;
    const double off = log(bound(measured_ns / all));
    for (int i = 0; i < HDI_KIND_COUNT; i++) {
        if (!(now[i] > 0)) continue;
        const double before = log(hdi_learned_factor(learned, (hdi_op_kind)i, now_ns)), kept = learned->of[i].factor > 0 ? log(learned->of[i].factor) : 0;
        const bool again = fabs(kept) > 1.25 * fabs(before) && off * kept > 0; /* it was given up, tried, and is as it was */
        const double after = before + off * (again ? 1 : SHARE) * now[i] / all;
        if (again) learned->of[i].half_life_ns = HDI_MIN(2 * HDI_MAX(learned->of[i].half_life_ns, HALF_LIFE_NS), MOST_LIFE_NS);
        else if (fabs(after) < CLEAR) learned->of[i].half_life_ns = HALF_LIFE_NS;
        learned->of[i].factor = bound(exp(after));
        learned->of[i].at_ns = now_ns;
    }
}

bool hdi_learn_due(uint64_t run) { return run < FIRST_RUNS || run % ONE_IN == 0; }
