/* quantise_parts.h: what blocks in parts are written from, and the searches that find it: shared by the writers without
 * weights, which give the bytes of GGUF's own tools, and with them (quantise_weighted.c). */
#ifndef HDI_KERNELS_QUANTISE_PARTS_H
#define HDI_KERNELS_QUANTISE_PARTS_H

#include "kernels/reference/quantise.h"

/* A block: value i of part p is d * scales[p] * number(codes[i]) - less * lesses[p]. Codes count from 0 on. */
typedef struct quantise_block {
    float   d, less;        /* as f16 holds them */
    int     scales[16], lesses[16];
    uint8_t codes[256];
} quantise_block;
void quantise_put_q2_k(const quantise_block *b, uint8_t *out);
void quantise_put_q3_k(const quantise_block *b, uint8_t *out);
void quantise_put_q4_k(const quantise_block *b, uint8_t *out);
void quantise_put_q5_k(const quantise_block *b, uint8_t *out);
void quantise_put_q6_k(const quantise_block *b, uint8_t *out);
void quantise_put_q4_0(const quantise_block *b, uint8_t *out);
void quantise_put_q4_1(const quantise_block *b, uint8_t *out);
void quantise_put_q5_0(const quantise_block *b, uint8_t *out);
void quantise_put_q5_1(const quantise_block *b, uint8_t *out);
void quantise_put_iq4_nl(const quantise_block *b, uint8_t *out);
void quantise_put_iq4_xs(const quantise_block *b, uint8_t *out);

/* A scale of n values for codes -most .. most - 1; the codes are given by `most` larger. */
float quantise_signed_scale(const float *x, const float *weights, int n, int most, uint8_t *out_codes);
/* A scale of 32 values for the numbers of iq4. */
float quantise_numbers_scale(const float *x, const float *weights);
/* The code of iq4 whose number is nearest, and its number. */
int quantise_nearest_number(float x);
extern const int8_t quantise_iq4_numbers[16];

/* How a scale and a min of n values for codes 0 .. most are sought. by_size: of the error, else its square. */
typedef struct quantise_search { int n, most, steps; float first, step; bool by_size; } quantise_search;
/* Gives the scale; *out_less is what is subtracted, never below 0. */
float quantise_scale_and_less(const quantise_search *s, const float *x, const float *weights, float *out_less,
                              uint8_t *out_codes);

#endif
