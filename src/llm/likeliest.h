/* likeliest.h: log-probabilities of tokens, for those who ask about an answer. No token is chosen by them. */
#ifndef HDL_LIKELIEST_H
#define HDL_LIKELIEST_H

#include <heddle_llm.h>

typedef struct hdl_likeliest {
    uint32_t count;
    int32_t  tokens[HD_MAX_LIKELIEST];
    float    log_probabilities[HD_MAX_LIKELIEST];
    float    log_probability;  /* of the token that was asked about */
} hdl_likeliest;

/* The `wanted` largest of `count` logits, at most HD_MAX_LIKELIEST, the smaller id first of equal ones. */
void hdl_likeliest_find(hdl_likeliest *likeliest, const float *logits, uint32_t count, uint32_t wanted, int32_t token);

#endif
