/* follow.c: a caller who keeps one plan for hours may want it to follow the load of its devices. The plan then has
 * several finished alternatives, and this rule chooses between runs; all of it is on this screen.
 *   - It stays where it is, at home, while that is known to be fastest.
 *   - Where RUNS runs in a row took SLOWER times as long as another alternative is known to take, it goes to that one.
 *   - Every LOOK_NS it looks at each other alternative for RUNS runs, and stays there if the fastest of these took less
 *   than 1 / SLOWER of home's. The fastest counts: the first ones find cold caches.
 *   - Looking takes at most one part in SHARE of all time, however slow an alternative is: a slow one is looked at less
 *   often. */
#include "run/run.h"

enum { RUNS = 8, SHARE = 64 };
#define SLOWER  1.2                  /* clearly slower: runs differ by less from one to the next */
#define LOOK_NS UINT64_C(4000000000) /* a load that ended is noticed after a look or two */
#define WEIGHT  0.25                 /* of the latest run in what runs take: RUNS of them count for 90 % */

/* The alternative that is known to be fastest. */
static uint32_t fastest(const hdi_follow *f) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < f->count; i++)
        if (f->run_ns[i] < f->run_ns[best]) best = i;
    return best;
}

/* The next look at an alternative, where one takes so long. */
static void plan_look(hdi_follow *f, uint32_t alternative, double look_ns, uint64_t now_ns) {
    const double rest_ns = HDI_MIN(look_ns * SHARE * (f->count - 1), 1e18);
    f->due_ns[alternative] = now_ns + HDI_MAX(LOOK_NS, (uint64_t)rest_ns);
}

static void go_home(hdi_follow *f, uint32_t home, uint64_t now_ns) {
    if (home != f->home) plan_look(f, f->home, 0, now_ns);
    f->at = f->home = home;
    f->slower = 0;
}

static void look_on(hdi_follow *f, double took, uint64_t now_ns) {
    const uint32_t there = f->at;
    f->look_took_ns += took;
    if (f->least_ns == 0 || took < f->least_ns) f->least_ns = took;
    if (--f->looking > 0 &&
        (f->look_took_ns <= (double)LOOK_NS / SHARE / (f->count - 1) || took <= SLOWER * f->run_ns[f->home]))
        return;
    f->looking = 0;
    f->run_ns[there] = f->least_ns;
    plan_look(f, there, f->look_took_ns, now_ns);
    go_home(f, f->least_ns * SLOWER < f->run_ns[f->home] ? there : f->home, now_ns);
}

uint32_t hdi_follow_next(hdi_follow *f, uint64_t took_ns, uint64_t now_ns) {
    const double took = (double)took_ns;
    if (f->looking > 0) {
        look_on(f, took, now_ns);
        return f->at;
    }
    f->run_ns[f->at] = f->runs[f->at] == 0 ? took : f->run_ns[f->at] + (took - f->run_ns[f->at]) * WEIGHT;
    f->runs[f->at]++;
    if (f->count < 2) return f->at;
    const uint32_t best = fastest(f);
    f->slower = took > SLOWER * f->run_ns[best] && best != f->at ? f->slower + 1 : 0;
    if (f->slower >= RUNS) go_home(f, best, now_ns);
    uint32_t next = f->home;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->due_ns[i] == 0) plan_look(f, i, f->run_ns[i], now_ns);
        if (i != f->home && f->due_ns[i] <= now_ns && (next == f->home || f->due_ns[i] < f->due_ns[next])) next = i;
    }
    if (next == f->home) return f->at;
    f->at = next;
    f->looking = RUNS;
    f->look_took_ns = f->least_ns = 0;
    return f->at;
}
