/* sample.h: from a row of logits to the next token. The chain is the usual one of the field: penalties over the last
 * tokens, top-k, top-p, min-p, temperature, a draw. Same seed, same logits: the same token on every machine, because
 * weights are whole numbers (2^42 times the chance relative to the likeliest token, rounded down) made by an own exp of
 * + - * / in double alone, whole numbers are summed in any order with the same result, and the n-th draw depends on
 * the seed and n only. So a token that is 2^42 times less likely than the likeliest one is never drawn. */
#ifndef HDL_SAMPLE_H
#define HDL_SAMPLE_H

#include "llm/support.h"
#include <heddle_llm.h>

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_SAMPLED (1u << 20)
#define HDL_MAX_PENALTY_WINDOW (1u << 20)

typedef struct hdl_sampler hdl_sampler;

/* Makes a sampler for rows of `vocab` logits and all its room; no later call allocates. `allocator` NULL: malloc and
 * free; `sampling` NULL: all zero. Statuses: NULL_POINTER, ZERO_SIZE, LIMIT, INVALID_ARGUMENT (a field outside of its
 * range, by name), OUT_OF_HOST_MEMORY. */
hd_status hdl_sampler_create(const hd_allocator *allocator, const hd_sampling *sampling, size_t vocab,
                             hdl_sampler **out_sampler, hd_error *error);
void hdl_sampler_destroy(hdl_sampler *sampler);

/* The next token, and one more draw done. The logits are left as they are. Statuses: INVALID_ARGUMENT: a logit is NaN
 * (the text says which), or all are -infinity; the sampler is then as before. */
hd_status hdl_sampler_draw(hdl_sampler *sampler, const float *logits, int32_t *out_id, hd_error *error);
/* The same among the tokens whose bits are set: bit i % 32 of word i / 32. ZERO_SIZE: there are none. */
hd_status hdl_sampler_draw_among(hdl_sampler *sampler, const float *logits, const uint32_t *bits, int32_t *out_id,
                                 hd_error *error);
/* True where the `count` largest logits decide the next draw. That takes a top_k or temperature 0, and penalties that
 * only lower scores: each token said lately may then fall back and make room for one token behind it. */
bool hdl_sampler_needs_only(const hdl_sampler *sampler, size_t count);
/* hdl_sampler_draw from the largest logits alone, in the order of hd_top_k. Where hdl_sampler_needs_only is true, token
 * and status are those of the whole row. INVALID_ARGUMENT also for ids that are none. */
hd_status hdl_sampler_draw_from(hdl_sampler *sampler, const int32_t *ids, const float *logits, size_t count,
                                int32_t *out_id, hd_error *error);
/* Tells that the token was said, by the model or in the prompt: penalties go by it. Ids outside of the vocabulary are
 * passed over. */
void hdl_sampler_accept(hdl_sampler *sampler, int32_t id);
/* So many last tokens count: those before them need not be told. 0 without penalties. */
uint32_t hdl_sampler_window(const hdl_sampler *sampler);

/* ---- the parts, which tests look at ---- */

/* Draw number `index` of `seed`: output `index` of SplitMix64 (Steele, Lea and Flood, 2014) begun at a scrambled
 * seed. */
uint64_t hdl_random(uint64_t seed, uint64_t index);
#define HDL_CHANCE_ONE (UINT64_C(1) << 42)
/* 2^42 exp(x) for x <= 0, rounded down; within 2^-41 of it relative to 1. 0 below -30, and for NaN. */
uint64_t hdl_chance(double x);

#endif
