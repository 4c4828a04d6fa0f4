/* follow.c: a caller who keeps one plan for hours may want it to follow the load of its devices. The plan then has several
 * finished alternatives, and this rule chooses between runs; all of it is on this screen.
 *   - It stays where it is, at home, while that is known to be fastest.
 *   - Where RUNS runs in a row took SLOWER times as long as another alternative is known to take, it goes to that one.
 *   - Every LOOK_NS it looks at the next alternative for RUNS runs, and stays there if the fastest of these took less than
 *     1 / SLOWER of home's. The fastest counts: the first ones find cold caches.
 *   - Looking takes at most one part in SHARE of all time, however slow an alternative is. */
#include "run/run.h"

enum { RUNS = 8, SHARE = 64 };
#define SLOWER  1.2                  /* clearly slower: runs differ by less from one to the next */
#define LOOK_NS UINT64_C(4000000000) /* a load that ended is noticed within two looks */
#define WEIGHT  0.25                 /* of the latest run in what runs take: RUNS of them count for 90 % */

/* The alternative that is known to be fastest. */
static uint32_t fastest(const hdi_follow *f) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < f->count; i++)
        if (f->run_ns[i] < f->run_ns[best]) best = i;
    return best;
}

static void end_look(hdi_follow *f, uint64_t now_ns) {
    const uint32_t there = f->at;
    f->run_ns[there] = f->least_ns[there];
    f->looked_ns = now_ns;
    if (f->run_ns[there] * SLOWER < f->run_ns[f->home]) f->home = there;
    f->at = f->home;
    f->slower = 0;
}

uint32_t hdi_follow_next(hdi_follow *f, uint64_t took_ns, uint64_t now_ns) {
    const double took = (double)took_ns;
    if (f->looking > 0) {
        f->look_took_ns += took_ns;
        if (f->least_ns[f->at] == 0 || took < f->least_ns[f->at]) f->least_ns[f->at] = took;
        if (--f->looking == 0 || (f->look_took_ns > LOOK_NS / SHARE && took > SLOWER * f->run_ns[f->home])) {
            f->looking = 0;
            end_look(f, now_ns);
        }
        return f->at;
    }
    f->run_ns[f->at] = f->runs[f->at] == 0 ? took : f->run_ns[f->at] + (took - f->run_ns[f->at]) * WEIGHT;
    f->runs[f->at]++;
    if (f->count < 2) return f->at;
    if (f->looked_ns == 0) f->looked_ns = now_ns;
    const uint32_t best = fastest(f);
    f->slower = took > SLOWER * f->run_ns[best] && best != f->at ? f->slower + 1 : 0;
    if (f->slower >= RUNS) {
        f->at = f->home = best;
        f->slower = 0;
        return best;
    }
    const uint64_t rest_ns = HDI_MAX(LOOK_NS, SHARE * f->look_took_ns);
    if (now_ns - f->looked_ns < rest_ns) return f->at;
    f->next = (f->next + 1) % f->count;
    if (f->next == f->home) f->next = (f->next + 1) % f->count;
    f->at = f->next;
    f->looking = RUNS;
    f->look_took_ns = 0;
    f->least_ns[f->at] = 0;
    return f->at;
}
