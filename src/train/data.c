/* data.c: which tokens a step is made from. */
#include "train/support.h"

static int32_t token_at(const hd_token_data *data, uint64_t i) {
    const uint8_t *at = (const uint8_t *)data->tokens + i * data->token_bytes;
    uint32_t token = 0;
    for (uint32_t b = data->token_bytes; b-- > 0;) token = token << 8 | at[b];
    return (int32_t)token;
}

static bool has_tokens(const hd_token_data *data) {
    return data && data->tokens && (data->token_bytes == 1 || data->token_bytes == 2 || data->token_bytes == 4);
}

bool hd_draw_batch(const hd_token_data *data, uint64_t seed, uint64_t step, uint32_t batch, uint32_t length,
                   int32_t *out_tokens, int32_t *out_targets) {
    /* hd_random's streams of a step's key are dropout's; this counter's third word is never theirs */
    enum { STREAM = 1 };
    if (!has_tokens(data) || !out_tokens || !out_targets || data->count <= length) return false;
    for (uint32_t i = 0; i < batch; i++) {
        uint32_t words[4];
        hdt_random((const uint32_t[]){ i, STREAM, (uint32_t)step, ~(uint32_t)(step >> 32) }, seed, words);
        const uint64_t first = ((uint64_t)words[1] << 32 | words[0]) % (data->count - length);
        for (uint32_t t = 0; t < length; t++) {
            out_tokens[(uint64_t)i * length + t] = token_at(data, first + t);
            out_targets[(uint64_t)i * length + t] = token_at(data, first + t + 1);
        }
    }
    return true;
}

bool hd_cut_batch(const hd_token_data *data, uint64_t number, uint32_t batch, uint32_t length, int32_t *out_tokens,
                  int32_t *out_targets) {
    const uint64_t places = (uint64_t)batch * length;
    if (!has_tokens(data) || !out_tokens || !out_targets || places == 0 || data->count < 2) return false;
    if (number > (data->count - 2) / places) return false;
    for (uint64_t i = 0; i < places; i++) {
        const uint64_t at = number * places + i;
        out_tokens[i] = at < data->count ? token_at(data, at) : 0;
        out_targets[i] = at + 1 < data->count ? token_at(data, at + 1) : -1;
    }
    return true;
}
