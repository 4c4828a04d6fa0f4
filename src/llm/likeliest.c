/* likeliest.c: the largest of a row of logits, and what they are as log-probabilities: x - log(sum of exp). */
#include "llm/likeliest.h"
#include <math.h>

void hdl_likeliest_find(hdl_likeliest *l, const float *logits, uint32_t count, uint32_t wanted, int32_t token) {
    double sum = 0;
    float *largest = l->log_probabilities;
    if (wanted > count) wanted = count;
    l->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (l->count == wanted && (!wanted || !(logits[i] > largest[wanted - 1]))) continue;
        uint32_t at = l->count < wanted ? l->count++ : wanted - 1;
        for (; at > 0 && logits[i] > largest[at - 1]; at--) {
            largest[at] = largest[at - 1];
            l->tokens[at] = l->tokens[at - 1];
        }
        largest[at] = logits[i];
        l->tokens[at] = (int32_t)i;
    }
    const float best = l->count ? largest[0] : 0;
    for (uint32_t i = 0; i < count; i++) sum += exp((double)(logits[i] - best));
    const double all = (double)best + log(sum);
    for (uint32_t i = 0; i < l->count; i++) largest[i] = (float)((double)largest[i] - all);
    l->log_probability = (float)((double)logits[token] - all);
}
