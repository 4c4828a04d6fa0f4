/* trial.c: prediction names candidates, measurement chooses. A candidate is tried for a few rounds where it is predicted to take
 * not much longer than the one at home takes; the fastest stays. Later another one is tried again, ever more seldom, where it was once
 * about as fast as the one at home is now: so a load on a device moves work away from it, and the end of the load brings it back. */
#include "route/route.h"
#include <math.h>
#include <stdlib.h>

#define NEAR          3.0  /* times what the one at home takes: predicted beyond it, none is tried, */
#define CLOSE         1.25 /* and measured beyond it, none is tried again */
#define CLEAR         0.95 /* of that time: one that takes more is about as fast */
#define OTHER         1.5  /* times as long, or as short, as it was: something has changed */
#define LOADED        3.0  /* and more than noise makes it, */
#define BURST_NS      5e7  /* which comes in bursts of about this length */
#define MOST_WAIT_NS  64e9 /* after so long without a look, what was measured says little */
#define FAR           2.0  /* times what the one at home takes: a try is over with the first rounds that count */
#define PAYS          2.0  /* times what a move took: the first rounds behind it are longer */
#define BOTH          1.03 /* times their time rounds on both devices count: one that is left free takes no power, and others find it idle */
#define SHARE         64   /* trying takes one part in this of all time, */
#define FIRST_ROUNDS  64   /* and beyond that the first tries as long as this many rounds, and so long later ones: what is found early pays longest */
#define TRY_NS        1e7
/* A try ends after MANY rounds or TRY_NS, or after FEW where those tell the two apart: a place that was just come to warms up. As long
 * is what is measured at home before it and behind it: all rounds may become shorter or longer meanwhile. Before the next one so many
 * rounds go by, and twice as many each time once it is known to be in vain. */
enum { SETTLED = 3, FIRST_FEW = 2, FEW = 5, MANY = 29, FIRST_TRIES = 2, ENOUGH_TRIES = 8, FIRST_WAIT = 256, MOST_WAIT = 1 << 20, SOONER = 64 };
/* A plan rests where so much time goes by between two of its rounds, and so many times what is usual. What else ran then changes what its
 * rounds take, by a third and more, the first ones most: where it runs long enough for a try between rests, a row of rounds is measured by
 * itself. */
#define REST_NS 2e6
enum { REST_TIMES = 8, LONG_ROW = 5 * (SETTLED + MANY) };
/* Rows so many times longer, or shorter, tell that a plan now has the machine to itself where it took turns with others, or the reverse. */
enum { ROW_TIMES = 8 };
/* What a place takes is a mean over so many rounds, of which none counts as more than so many times the usual, behind so many that warm up. */
enum { MEAN_OF = 64, MOST_TIMES = 8, WARMING = 13 };
#define SHORT_NS 2e5 /* of rounds below it one in so many is timed: looking at the clock is a part of what they take; */
enum { WATCHED = 4, SHORT_MEAN_OF = 32 }; /* and the mean is over fewer of these, which lie further apart */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of the latest rounds, so many at most. */
static double median_of(const hdi_candidate *c, uint64_t most) {
    double sorted[HDI_TRIAL_KEPT];
    const uint64_t count = HDI_MIN(c->count, most);
    if (count == 0) return 0;
    for (uint64_t i = 0; i < count; i++) sorted[i] = c->ns[(c->count - 1 - i) % HDI_TRIAL_KEPT];
    qsort(sorted, count, sizeof *sorted, by_size);
    return sorted[(count - 1) / 2];
}

double hdi_candidate_ns(const hdi_candidate *c) { return c->count > MANY ? c->mean_ns : median_of(c, HDI_TRIAL_KEPT); }

/* What they take just now: where most of the latest ones are far above the mean, it has not caught up yet. */
static double level_ns(const hdi_candidate *c) {
    const double ns = hdi_candidate_ns(c), latest = median_of(c, FEW);
    return latest > OTHER * ns ? latest : ns;
}

static void forget_level(hdi_trial *t) { t->level_ns[0] = t->level_ns[1] = 0; }

/* The candidate is at home from now on, and the others are measured by it. */
static void move_home(hdi_trial *t, uint32_t to) {
    t->of[t->home].ratio = 1;
    const double ratio = t->of[to].ratio;
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) {
        t->of[i].ratio /= ratio;
        t->of[i].odd /= ratio;
    }
    t->home = to;
    t->owed_ns = 0;
    forget_level(t);
}

/* What a try and the rounds at home before it took depends on what else the machine does then: one try may say the opposite of the next
 * one. Their mean tells. One that is far off waits for the next one: where that is as far off, the two speak of something new, and those
 * before them no longer count; where rounds at home have changed as well, it is new at once. */
static void weigh(hdi_candidate *c, double ratio, bool changed) {
    const bool odd = c->tries > 0 && (ratio > OTHER * c->ratio || OTHER * ratio < c->ratio);
    const bool again = odd && c->odd > 0 && (c->odd < c->ratio) == (ratio < c->ratio);
    if (odd && !again && !changed) {
        c->odd = ratio;
        return;
    }
    const uint32_t before = odd ? 1 : c->tries;
    if (odd) c->ratio = again ? c->odd : ratio;
    c->ratio = before > 0 ? c->ratio * pow(ratio / c->ratio, 1.0 / (before + 1)) : ratio;
    c->tries = HDI_MIN(before + 1, ENOUGH_TRIES);
    c->odd = 0;
}

static bool is_open(const hdi_trial *t) { return t->trying || t->try_ns > 0; }

/* How many rounds follow each other without a rest, of late. */
static uint64_t row_of(const hdi_trial *t) { return HDI_MAX(t->row, t->last_row); }

/* The candidate was tried while the plan had the machine to itself, and now it takes turns, or the reverse: caches and clocks are others.
 * Before its first rest nothing is known: a row that goes on says little of its length. */
static bool ran_otherwise(const hdi_trial *t, const hdi_candidate *c) {
    const uint64_t row = row_of(t);
    return t->last_row > 0 && c->row > 0 && (c->row > ROW_TIMES * row || ROW_TIMES * c->row < row);
}

static void leave_try(hdi_trial *t) {
    t->trying = false;
    t->try_ns = 0;
}

/* Rounds at home have become so many times longer, or shorter, since the candidate was tried last. */
static bool are_longer(const hdi_candidate *c, double home_ns, double times) { return c->against_ns > 0 && home_ns > times * c->against_ns; }
static bool are_shorter(const hdi_candidate *c, double home_ns, double times) { return times * home_ns < c->against_ns; }

static double moving_ns(const hdi_candidate *c) { return HDI_MAX(c->move_ns, c->moved_ns); }

/* Do tries say that it is faster? One alone may be an accident. */
static bool is_proven(const hdi_candidate *c) { return c->ratio < 1 && (c->tries >= FIRST_TRIES || (c->tries > 0 && CLOSE * c->ratio < 1)); }

/* The fastest of these. */
static uint32_t best_known(const hdi_trial *t) {
    uint32_t best = t->home;
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++)
        if (i != t->home && t->of[i].possible && is_proven(&t->of[i]) && (best == t->home || t->of[i].ratio < t->of[best].ratio)) best = i;
    return best;
}

/* A plan goes to a faster place once its rounds at home have taken as much longer as going there does: where the two differ much that is
 * soon, and where they are about as fast it seldom moves to and fro. */
static void settle(hdi_trial *t, double ns) {
    const uint32_t best = best_known(t);
    const hdi_candidate *c = &t->of[best];
    if (best == t->home || c->best_ns > CLOSE * hdi_candidate_ns(&t->of[t->home])) { /* slower than here, whatever a disturbed plan has found */
        t->owed_ns = 0;
        return;
    }
    t->owed_ns += ns * (1 - c->ratio);
    if (t->owed_ns < PAYS * moving_ns(c)) return;
    move_home(t, best);
    t->of[best].count = 0; /* it goes there before it tries another place */
}

static double counted_ns(uint32_t candidate, double ns) { return candidate == HDI_CANDIDATE_SHARED ? BOTH * ns : ns; }

/* Rounds took `ns` at a candidate that was tried and `home_ns` at home: who is at home now? */
static void judge(hdi_trial *t, uint32_t tried, double ns, double home_ns) {
    hdi_candidate *c = &t->of[tried], *home = &t->of[t->home];
    if (ran_otherwise(t, c)) { /* more tries than these say nothing of now, nor does how many were in vain */
        c->tries = HDI_MIN(c->tries, FIRST_TRIES);
        c->wait = FIRST_WAIT;
    }
    c->row = row_of(t);
    weigh(c, counted_ns(tried, ns) / counted_ns(t->home, home_ns), are_longer(c, home_ns, LOADED) || are_shorter(c, home_ns, LOADED));
    const bool in_vain = c->tries > FIRST_TRIES && c->ratio >= CLEAR && (c->tries == ENOUGH_TRIES || CLEAR * c->ratio >= 1);
    c->wait = in_vain ? HDI_MIN(2 * c->wait, MOST_WAIT) : FIRST_WAIT;
    if (home->tries == 0) home->tries = 1;
    home->wait = HDI_MAX(home->wait, c->ratio < 1 ? c->wait : FIRST_WAIT);
    home->at_round = c->at_round;
    c->against_ns = home_ns;
    home->against_ns = ns;
    leave_try(t);
    if (t->at == t->home) settle(t, (double)home->count * home->mean_ns);
    else if (is_proven(c)) move_home(t, tried);
}

/* The least that it ever took; and a try that is far off ends here. Of a place that is known to be close it goes on: if those that begin
 * slowly ended, and the others did not, the place would count as slower than it is. */
static void look_at(hdi_trial *t) {
    hdi_candidate *c = &t->of[t->at];
    const hdi_candidate *home = &t->of[t->home];
    const double ns = median_of(c, HDI_TRIAL_KEPT);
    const bool is_close = c->tries >= FIRST_TRIES && c->ratio < CLOSE;
    if (!(c->best_ns > 0) || ns < c->best_ns) c->best_ns = ns;
    if (t->trying && !is_close && (ns > CLOSE * level_ns(home) || median_of(home, FEW) > CLOSE * ns)) judge(t, t->at, c->mean_ns, level_ns(home));
}

/* Has a try just begun that need not go on? */
static bool is_far(const hdi_trial *t) {
    const hdi_candidate *c = &t->of[t->at];
    return t->trying && c->count == FIRST_FEW && HDI_MIN(c->ns[0], c->ns[1]) > FAR * level_ns(&t->of[t->home]);
}

static bool is_long_enough(const hdi_trial *t) {
    const uint64_t count = t->of[t->at].count;
    return count >= MANY || (count >= FEW && t->spent_ns - t->came_ns >= TRY_NS);
}

/* A try, or what is measured at home behind it, was long enough. Means stand beside means: some rounds are long, and a median does not
 * see them. */
static void end_part(hdi_trial *t) {
    const double ns = t->of[t->at].mean_ns;
    if (!t->trying) {
        judge(t, t->tried, t->try_ns, t->before_ns > 0 ? (t->before_ns + ns) / 2 : ns);
        return;
    }
    t->trying = false;
    t->tried = t->at;
    t->try_ns = ns;
    t->before_ns = t->of[t->home].count > WARMING ? level_ns(&t->of[t->home]) : 0;
}

/* What rounds at home take is looked at from time to time: do they take about as long as the last two times? Where they do not, a burst of
 * noise has begun or ended, or a load, and a try would be set beside a mean of both. */
static void sample_level(hdi_trial *t, uint64_t now_ns) {
    if (is_open(t) || t->at != t->home || (double)(now_ns - t->sampled_ns) < BURST_NS) return;
    t->level_ns[1] = t->level_ns[0];
    t->level_ns[0] = level_ns(&t->of[t->home]);
    t->sampled_ns = now_ns;
}

static bool is_steady(const hdi_trial *t) {
    const double now = level_ns(&t->of[t->home]);
    for (int i = 0; i < 2; i++)
        if (t->level_ns[i] > 0 && (now > CLOSE * t->level_ns[i] || CLOSE * now < t->level_ns[i])) return false;
    return true;
}

static bool has_rested(hdi_trial *t, double ns, uint64_t now_ns) {
    const double passed_ns = (double)t->passed * HDI_MAX(ns, hdi_candidate_ns(&t->of[t->at])); /* about: where this one is long, those were too */
    const double gap = t->noted_ns > 0 ? HDI_MAX((double)(now_ns - t->noted_ns) - ns - passed_ns, 0) : 0;
    const bool rested = gap > REST_NS + passed_ns && gap > REST_TIMES * t->gap_ns;
    t->gap_ns += (HDI_MIN(gap, REST_TIMES * t->gap_ns + REST_NS) - t->gap_ns) / MEAN_OF;
    t->noted_ns = now_ns;
    t->passed = 0;
    return rested;
}

/* The plan has just come where it is, or its rounds are measured as if it had: these do not count, besides the first ones. */
static void arrive(hdi_trial *t, uint64_t cold) {
    t->of[t->at].count = t->since = 0;
    t->cold = cold;
    t->came_ns = t->spent_ns;
}

static void count_round(hdi_trial *t, double ns) {
    t->spent_ns += ns;
    t->since++;
    t->rounds++;
    t->row++;
    if (t->at == t->home && !is_open(t)) settle(t, ns);
}

/* What a round takes longer than usual because of a try: away from home, and the first ones back there. */
static double lost_ns(const hdi_trial *t, double ns) {
    const hdi_candidate *home = &t->of[t->home];
    if (t->at != t->home) return HDI_MAX(ns - hdi_candidate_ns(home), 0);
    return home->last_ns > 0 && t->cold == 0 && t->since <= SETTLED ? HDI_MAX(ns - home->last_ns, 0) : 0;
}

static void charge(hdi_trial *t, double ns) { *(t->is_first ? &t->first_ns : &t->tried_ns) += ns; }

bool hdi_trial_note(hdi_trial *t, double ns, bool counts, uint64_t now_ns) {
    hdi_candidate *c = &t->of[t->at];
    const bool was_open = is_open(t);
    if (has_rested(t, ns, now_ns)) {
        if (t->row >= LONG_ROW) {
            leave_try(t);
            arrive(t, MANY);
        }
        t->last_row = t->row;
        t->row = 0;
    }
    count_round(t, ns);
    charge(t, lost_ns(t, ns));
    if (!counts || t->since <= SETTLED + t->cold || !(ns > 0)) return false;
    c->ns[c->count++ % HDI_TRIAL_KEPT] = ns;
    c->at_ns = now_ns;
    /* The first rounds' median, and from then on a mean: where others take turns on a device some rounds are long and most are not. */
    if (c->count <= WARMING) c->mean_ns = median_of(c, HDI_TRIAL_KEPT);
    else c->mean_ns += (HDI_MIN(ns, MOST_TIMES * c->mean_ns) - c->mean_ns) / (double)HDI_MIN(c->count - WARMING, c->mean_ns < SHORT_NS ? SHORT_MEAN_OF : MEAN_OF);
    if (c->count >= FEW) sample_level(t, now_ns);
    if (c->count == FEW || c->count % HDI_TRIAL_KEPT == 0 || is_far(t)) look_at(t);
    if ((t->trying || (t->try_ns > 0 && t->at == t->home)) && is_long_enough(t)) end_part(t);
    return was_open && !is_open(t);
}

bool hdi_trial_watches(const hdi_trial *t) {
    const hdi_candidate *c = &t->of[t->at];
    if (t->trying || c->count <= MANY || c->mean_ns >= SHORT_NS) return true;
    return t->rounds % WATCHED == 0 || c->ns[(c->count - 1) % HDI_TRIAL_KEPT] > CLOSE * c->mean_ns; /* something may have changed */
}

void hdi_trial_pass(hdi_trial *t) {
    t->passed++;
    count_round(t, hdi_candidate_ns(&t->of[t->at]));
}

void hdi_trial_moved(hdi_trial *t, uint32_t to, double ns, uint64_t now_ns) {
    hdi_candidate *c = &t->of[to];
    if (to != t->home) t->is_first = c->tries < FIRST_TRIES;
    if (to == t->home || c->tries > 0) c->moved_ns = c->moved_ns > 0 ? HDI_MIN(c->moved_ns, ns) : ns;
    t->spent_ns += ns;
    charge(t, ns);
    t->of[t->at].last_ns = hdi_candidate_ns(&t->of[t->at]);
    t->at = to;
    arrive(t, 0);
    t->trying = to != t->home;
    if (t->trying) {
        c->at_round = t->rounds;
        c->at_ns = now_ns;
    }
    t->noted_ns = 0; /* moving is no rest */
}

void hdi_trial_failed(hdi_trial *t, uint32_t candidate, uint64_t now_ns) {
    hdi_candidate *c = &t->of[candidate];
    c->best_ns = HUGE_VAL;
    c->tries = FIRST_TRIES;
    c->wait = MOST_WAIT;
    c->at_ns = now_ns;
    if (candidate == t->home) {
        t->of[t->at].ratio = 1; /* the plan stays where it was tried */
        leave_try(t);
        move_home(t, t->at);
    }
    c->ratio = FAR;
}

void hdi_trial_inherit(hdi_trial *t) {
    leave_try(t);
    move_home(t, best_known(t));
    t->at = t->home;
    t->of[t->home].last_ns = t->spent_ns = t->tried_ns = 0;
    t->row = t->last_row = t->noted_ns = 0;
    arrive(t, t->of[t->home].tries > 0 ? MANY : 0); /* what is known of a plan that ran is not for the first rounds of a new one to judge */
}

void hdi_trial_adopt(hdi_trial *t, const hdi_trial *from) {
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) {
        hdi_candidate *to = &t->of[i];
        const hdi_candidate *c = &from->of[i];
        to->tries = c->tries;
        to->wait = c->wait;
        to->ratio = c->ratio;
        to->odd = c->odd;
        to->off = c->off;
        to->row = c->row;
        to->against_ns = c->against_ns;
        if (c->moved_ns > 0) to->moved_ns = c->moved_ns;
        if (c->best_ns > 0) to->best_ns = to->best_ns > 0 ? HDI_MIN(to->best_ns, c->best_ns) : c->best_ns;
        to->at_ns = HDI_MAX(to->at_ns, c->at_ns);
    }
    t->first_ns = HDI_MAX(t->first_ns, from->first_ns);
    if (from->home == t->home || !t->of[from->home].possible) return;
    const uint32_t own = t->home;
    t->of[from->home].ratio = 1;
    t->home = from->home;
    if (t->of[own].tries > 0) {
        move_home(t, own); /* it goes when that pays */
        return;
    }
    leave_try(t); /* nobody has set the plan's home beside other places */
    forget_level(t);
    if (t->at != t->home) t->of[t->home].count = 0;
}

void hdi_trial_replaced(hdi_trial *t, uint32_t candidate, double predicted_ns) {
    const hdi_candidate *c = &t->of[candidate];
    const bool known = c->best_ns > 0 && c->best_ns < HUGE_VAL;
    t->of[candidate] = (hdi_candidate){ .possible = true, .moved_ns = c->moved_ns, .off = known ? HDI_MAX(c->best_ns / predicted_ns, 1) : c->off };
    if (t->tried == candidate) t->try_ns = 0;
}

/* Since it was looked at last, by this plan or another one of the same program. */
static double unseen_ns(const hdi_candidate *c, uint64_t now_ns) { return (double)now_ns - (double)c->at_ns; }

/* What it may take, as far as is known: after a long time, what it was measured to take says little. */
static double hope_ns(const hdi_candidate *c, uint64_t now_ns) {
    if (!(c->best_ns > 0)) return c->predicted_ns * HDI_MAX(c->off, 1);
    return unseen_ns(c, now_ns) > MOST_WAIT_NS ? HDI_MIN(c->best_ns, c->predicted_ns) : c->best_ns;
}

/* So many rounds go by from one try to the next. Where the candidate took less, when the plan left it, than rounds at home take now, home may
 * have become slower; or it is noise, the more likely the more tries were in vain. */
static uint32_t wait_of(const hdi_trial *t, const hdi_candidate *c, double home_ns, uint64_t now_ns) {
    if (ran_otherwise(t, c) || unseen_ns(c, now_ns) >= MOST_WAIT_NS) return FIRST_WAIT;
    return c->last_ns > 0 && c->last_ns < CLEAR * home_ns ? HDI_MAX(c->wait / SOONER, FIRST_WAIT) : c->wait;
}

static bool is_worth_trying(const hdi_trial *t, const hdi_candidate *c, double home_ns, uint64_t now_ns) {
    if (!c->possible || (c->tries > 0 && t->at == t->home && !is_long_enough(t))) return false;
    if (c->at_ns > 0 && unseen_ns(c, now_ns) < (SETTLED + MANY) * home_ns) return false; /* another plan tries it just now */
    const double hope = hope_ns(c, now_ns), rounds = SETTLED + (hope > CLOSE * home_ns ? FEW : HDI_MAX(FEW, HDI_MIN(MANY, TRY_NS / hope)));
    const bool first = c->tries < FIRST_TRIES;
    const bool once = (c->odd > 0 && c->odd < 1) || are_shorter(c, home_ns, OTHER); /* whatever those before did cost: it was by far the fastest, or a load is over */
    const double cost = rounds * HDI_MAX(hope - home_ns, 0) + moving_ns(c) + moving_ns(&t->of[t->home]);
    if (cost + (first ? t->first_ns : t->tried_ns) > t->spent_ns / SHARE + FIRST_ROUNDS * home_ns && !once) return false;
    if (first) return hope <= (c->tries > 0 ? CLOSE : c->off > 0 ? CLEAR : NEAR) * home_ns;
    if (hope >= CLOSE * home_ns) return false;
    const uint64_t stayed = t->rounds - c->at_round; /* a plan that seldom runs tries no more of its rounds than one that always does */
    return once || are_longer(c, home_ns, OTHER) || stayed >= wait_of(t, c, home_ns, now_ns);
}

uint32_t hdi_trial_next(const hdi_trial *t, uint64_t now_ns) {
    if (t->trying) return t->at;
    if (t->try_ns > 0 || t->of[t->home].count < FEW) return t->home;
    const double home_ns = hdi_candidate_ns(&t->of[t->home]);
    uint32_t next = t->home;
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < HDI_CANDIDATES; i++) {
        if (i == t->home || i == t->at || !is_worth_trying(t, &t->of[i], home_ns, now_ns) || hope_ns(&t->of[i], now_ns) >= least) continue;
        least = hope_ns(&t->of[i], now_ns);
        next = i;
    }
    const hdi_candidate *c = &t->of[next];
    return next != t->home && t->at == t->home && !is_steady(t) && !are_shorter(c, home_ns, LOADED) ? t->home : next;
}
