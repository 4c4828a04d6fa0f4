/* sample.c: the sampler. A token stands as one 64-bit key: above its logit's bits, ordered as the numbers are, below
 * its id turned round. So keys are unique, and "likelier" with all ties settled is "larger". Which tokens stay is told
 * by one key, the cut; a radix walk over the keys finds it in time proportional to the vocabulary. */
#include "llm/sample.h"
#include <math.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct hdl_sampler {
    hd_allocator allocator;
    hd_sampling sampling;
    size_t    vocab;
    uint64_t  draws;
    uint64_t *keys;       /* of the tokens that are left, in the order of their ids */
    uint64_t *weights;    /* theirs */
    uint32_t *said;       /* how often each token was said lately; NULL: no penalties */
    int32_t  *lately;     /* a ring of penalty_window ids */
    uint64_t  said_count; /* so many were put into the ring */
    size_t    said_tokens; /* so many different ones are in it */
    uint64_t  digits[DIGITS];
};

/* ---- numbers ---- */

static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t hdl_random(uint64_t seed, uint64_t index) {
    return scramble(scramble(seed) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static const double inverse_factorials[] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
};

uint64_t hdl_chance(double x) {
    if (!(x > -30)) return 0;
    if (x >= 0) return HDL_CHANCE_ONE;
    /* x = n ln 2 + r with |r| <= 0.35; ln 2 in two parts, the first so short that n times it is exact. */
    const int n = (int)(x * 1.4426950408889634 - 0.5);
    const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double sum = 0;
    for (int i = 13; i >= 0; i--) sum = sum * r + inverse_factorials[i]; /* what is left out is below 2^-57 */
    const uint64_t bits = (uint64_t)(n + 42 + 1023) << 52; /* 2^(n + 42) */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return (uint64_t)(sum * scale);
}

static uint64_t key_of(float logit, size_t id) {
    uint32_t bits;
    const float canonical = logit + 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &canonical, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (0xffffffffu - (uint32_t)id);
}

static float logit_of(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    float logit;
    bits = bits >> 31 ? bits & 0x7fffffffu : ~bits;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

static int32_t id_of(uint64_t key) { return (int32_t)(0xffffffffu - (uint32_t)key); }

/* The upper 64 bits of a * b: a fraction a / 2^64 of b. */
static uint64_t fraction_of(uint64_t a, uint64_t b) {
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

/* ---- making and ending ---- */

static hd_status check(const hd_sampling *s, size_t vocab, hd_error *error) {
    const struct { const char *name; float value, low, high; } fields[] = {
        { "temperature", s->temperature, 0, 1e6f },
        { "top_p", s->top_p, 0, 1 },
        { "min_p", s->min_p, 0, 1 },
        { "repeat_penalty", s->repeat_penalty, 1e-6f, 1e6f },
        { "frequency_penalty", s->frequency_penalty, -1e6f, 1e6f },
        { "presence_penalty", s->presence_penalty, -1e6f, 1e6f },
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!(fields[i].value == 0 || (fields[i].value >= fields[i].low && fields[i].value <= fields[i].high)))
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "sampling: %s is %g; it must be 0 or between %g and %g",
                            fields[i].name, (double)fields[i].value, (double)fields[i].low, (double)fields[i].high);
    if (!vocab) return hdl_fail(error, HD_STATUS_ZERO_SIZE, "sampling: the vocabulary has no tokens");
    if (vocab > HDL_MAX_SAMPLED)
        return hdl_fail(error, HD_STATUS_LIMIT, "sampling: a vocabulary of %zu tokens; the limit is %u", vocab,
                        HDL_MAX_SAMPLED);
    if (s->penalty_window > HDL_MAX_PENALTY_WINDOW)
        return hdl_fail(error, HD_STATUS_LIMIT, "sampling: penalty_window is %u; the limit is %u", s->penalty_window,
                        HDL_MAX_PENALTY_WINDOW);
    return HD_OK;
}

hd_status hdl_sampler_create(const hd_allocator *allocator, const hd_sampling *sampling, size_t vocab,
                             hdl_sampler **out_sampler, hd_error *error) {
    if (!out_sampler) return hdl_fail(error, HD_STATUS_NULL_POINTER, "sampling: no place for the sampler");
    *out_sampler = NULL;
    hd_sampling wishes = { 0 };
    if (sampling) wishes = *sampling;
    const hd_status status = check(&wishes, vocab, error);
    if (status) return status;
    if (wishes.repeat_penalty == 0) wishes.repeat_penalty = 1;
    if (wishes.top_p == 0) wishes.top_p = 1;
    if (wishes.penalty_window == 0) wishes.penalty_window = 64;

    if (!allocator) allocator = &hdl_default_allocator;
    hdl_sampler *sampler = hdl_alloc(allocator, sizeof *sampler);
    bool made = sampler != NULL;
    if (made) {
        sampler->allocator = *allocator;
        sampler->sampling = wishes;
        sampler->vocab = vocab;
        sampler->keys = hdl_alloc(allocator, vocab * sizeof *sampler->keys);
        sampler->weights = hdl_alloc(allocator, vocab * sizeof *sampler->weights);
        made = sampler->keys && sampler->weights;
    }
    if (made && (wishes.repeat_penalty != 1 || wishes.frequency_penalty != 0 || wishes.presence_penalty != 0)) {
        sampler->said = hdl_alloc(allocator, vocab * sizeof *sampler->said);
        sampler->lately = hdl_alloc(allocator, wishes.penalty_window * sizeof *sampler->lately);
        made = sampler->said && sampler->lately;
    }
    if (!made) {
        hdl_sampler_destroy(sampler);
        return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "sampling: no memory for a vocabulary of %zu tokens",
                        vocab);
    }
    *out_sampler = sampler;
    return HD_OK;
}

void hdl_sampler_destroy(hdl_sampler *sampler) {
    if (!sampler) return;
    const hd_allocator allocator = sampler->allocator;
    hdl_free(&allocator, sampler->keys, sampler->vocab * sizeof *sampler->keys);
    hdl_free(&allocator, sampler->weights, sampler->vocab * sizeof *sampler->weights);
    hdl_free(&allocator, sampler->said, sampler->vocab * sizeof *sampler->said);
    hdl_free(&allocator, sampler->lately, sampler->sampling.penalty_window * sizeof *sampler->lately);
    hdl_free(&allocator, sampler, sizeof *sampler);
}

void hdl_sampler_accept(hdl_sampler *sampler, int32_t id) {
    if (!sampler->said || id < 0 || (size_t)id >= sampler->vocab) return;
    const uint32_t window = sampler->sampling.penalty_window;
    int32_t *place = &sampler->lately[sampler->said_count % window];
    if (sampler->said_count >= window) sampler->said_tokens -= --sampler->said[*place] == 0;
    *place = id;
    sampler->said_tokens += sampler->said[id]++ == 0;
    sampler->said_count++;
}

uint32_t hdl_sampler_window(const hdl_sampler *sampler) { return sampler->said ? sampler->sampling.penalty_window : 0; }

/* ---- the chain ---- */

static float penalised(const hd_sampling *s, float logit, uint32_t said) {
    if (!said) return logit;
    const float repeated = logit > 0 ? logit / s->repeat_penalty : logit * s->repeat_penalty;
    const float counted = repeated - (float)said * s->frequency_penalty;
    return counted - s->presence_penalty;
}

/* A token's key, after penalties. */
static hd_status key_for(const hdl_sampler *s, size_t id, float logit, uint64_t *out_key, hd_error *error) {
    if (logit != logit)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "sampling: the logit of token %zu is not a number", id);
    *out_key = key_of(s->said ? penalised(&s->sampling, logit, s->said[id]) : logit, id);
    return HD_OK;
}

/* All tokens' keys. */
static hd_status take_row(hdl_sampler *s, const float *logits, hd_error *error) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < s->vocab && !status; i++) status = key_for(s, i, logits[i], &s->keys[i], error);
    return status;
}

/* Those of some, in the order of their ids too. */
static hd_status take_some(hdl_sampler *s, const int32_t *ids, const float *logits, size_t count, hd_error *error) {
    for (size_t i = 0; i < count; i++) {
        uint64_t key = 0;
        if (ids[i] < 0 || (size_t)ids[i] >= s->vocab)
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "sampling: token %d of a vocabulary of %zu", ids[i],
                            s->vocab);
        const hd_status status = key_for(s, (size_t)ids[i], logits[i], &key, error);
        if (status) return status;
        size_t at = i;
        for (; at > 0 && id_of(s->keys[at - 1]) > ids[i]; at--) s->keys[at] = s->keys[at - 1];
        s->keys[at] = key;
    }
    return HD_OK;
}

/* The largest of the first `count` keys. */
static hd_status find_best(const hdl_sampler *s, size_t count, uint64_t *out_best, hd_error *error) {
    uint64_t best = 0;
    for (size_t i = 0; i < count; i++)
        if (s->keys[i] > best) best = s->keys[i];
    if (best >> 32 == key_of(-INFINITY, 0) >> 32)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "sampling: the logits of all tokens are -infinity");
    *out_best = best;
    return HD_OK;
}

/* Weighs the first `count` keys; the total. */
static uint64_t weigh(hdl_sampler *s, size_t count, float best, float temperature) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const float logit = logit_of(s->keys[i]);
        /* Equal ones first: infinity less infinity is no number. */
        s->weights[i] =
            logit == best ? HDL_CHANCE_ONE : hdl_chance(((double)logit - (double)best) / (double)temperature);
        total += s->weights[i];
    }
    return total;
}

/* The smallest of the largest keys that together have `wanted`: so many keys, or such weight. One digit of the cut
 * after the other is settled, from the highest; `wanted` is at least 1 and at most what all have. */
static uint64_t find_cut(hdl_sampler *s, size_t count, uint64_t wanted, bool weighed) {
    uint64_t cut = 0;
    for (int shift = 64; shift > 0;) {
        const int bits = shift < DIGIT_BITS ? shift : DIGIT_BITS, above = shift;
        shift -= bits;
        memset(s->digits, 0, sizeof s->digits);
        for (size_t i = 0; i < count; i++)
            if (above == 64 || s->keys[i] >> above == cut >> above)
                s->digits[s->keys[i] >> shift & (((uint64_t)1 << bits) - 1)] += weighed ? s->weights[i] : 1;
        uint64_t digit = ((uint64_t)1 << bits) - 1;
        while (s->digits[digit] < wanted) wanted -= s->digits[digit--];
        cut |= digit << shift;
        if (!weighed && s->digits[digit] == wanted) break; /* all that begin so stay */
    }
    return cut;
}

/* Leaves the keys from `cut` up that weigh at least `lightest`; how many these are. */
static size_t keep(hdl_sampler *s, size_t count, uint64_t cut, bool weighed, uint64_t lightest) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (s->keys[i] < cut || (weighed && s->weights[i] < lightest)) continue;
        s->keys[left] = s->keys[i];
        s->weights[left++] = s->weights[i];
    }
    return left;
}

/* A draw from the first `count` keys. */
static hd_status draw(hdl_sampler *s, size_t count, int32_t *out_id, hd_error *error) {
    const hd_sampling *wish = &s->sampling;
    uint64_t best = 0;
    const hd_status status = find_best(s, count, &best, error);
    if (status) return status;
    const uint64_t random = hdl_random(wish->seed, s->draws++);
    *out_id = id_of(best);
    if (wish->temperature == 0) return HD_OK;

    if (wish->top_k && wish->top_k < count) count = keep(s, count, find_cut(s, count, wish->top_k, false), false, 0);
    if (wish->top_p < 1 || wish->min_p > 0) {
        const uint64_t total = weigh(s, count, logit_of(best), 1);
        uint64_t cut = 0;
        if (wish->top_p < 1) {
            uint64_t wanted = (uint64_t)((double)wish->top_p * (double)total);
            if (wanted < 1) wanted = 1;
            cut = find_cut(s, count, wanted < total ? wanted : total, true);
        }
        count = keep(s, count, cut, true, (uint64_t)((double)wish->min_p * (double)HDL_CHANCE_ONE));
    }
    uint64_t left = fraction_of(random, weigh(s, count, logit_of(best), wish->temperature));
    size_t i = 0;
    while (left >= s->weights[i]) left -= s->weights[i++];
    *out_id = id_of(s->keys[i]);
    return HD_OK;
}

hd_status hdl_sampler_draw(hdl_sampler *s, const float *logits, int32_t *out_id, hd_error *error) {
    if (!s || !logits || !out_id)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "sampling: no sampler, logits or place for the token");
    const hd_status status = take_row(s, logits, error);
    return status ? status : draw(s, s->vocab, out_id, error);
}

hd_status hdl_sampler_draw_among(hdl_sampler *s, const float *logits, const uint32_t *bits, int32_t *out_id,
                                 hd_error *error) {
    if (!s || !logits || !bits || !out_id)
        return hdl_fail(error, HD_STATUS_NULL_POINTER,
                        "sampling: no sampler, logits, choice of tokens or place for the token");
    size_t count = 0;
    for (size_t i = 0; i < s->vocab; i++) {
        if (!(bits[i / 32] >> i % 32 & 1)) continue;
        const hd_status status = key_for(s, i, logits[i], &s->keys[count++], error);
        if (status) return status;
    }
    if (!count) return hdl_fail(error, HD_STATUS_ZERO_SIZE, "sampling: no token is allowed");
    return draw(s, count, out_id, error);
}

bool hdl_sampler_needs_only(const hdl_sampler *s, size_t count) {
    const hd_sampling *wish = &s->sampling;
    const uint64_t left = wish->temperature == 0 ? 1 : wish->top_k;
    const bool only_lowers = wish->repeat_penalty >= 1 && wish->frequency_penalty >= 0 && wish->presence_penalty >= 0;
    return count >= s->vocab || (left && only_lowers && left + s->said_tokens <= count);
}

hd_status hdl_sampler_draw_from(hdl_sampler *s, const int32_t *ids, const float *logits, size_t count, int32_t *out_id,
                                hd_error *error) {
    if (!s || !ids || !logits || !out_id)
        return hdl_fail(error, HD_STATUS_NULL_POINTER, "sampling: no sampler, candidates or place for the token");
    if (!count || count > s->vocab)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "sampling: %zu candidates of a vocabulary of %zu", count,
                        s->vocab);
    const hd_status status = take_some(s, ids, logits, count, error);
    return status ? status : draw(s, count, out_id, error);
}
