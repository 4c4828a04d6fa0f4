/* convert_rope.c: rotary embedding as keys of a GGUF file, and the divisors of its angles as tensors. */
#include "cli/convert.h"
#include <math.h>
#include <string.h>

/* A tensor of the divisors in c->divisors[set]. */
static int put_divisors(cli_conversion *c, unsigned set, const char *name) {
    cli_converted *t = &c->tensors[c->tensor_count++]; /* cli_convert_tensors has made room for two */
    *t = (cli_converted){ .data = c->divisors[set], .from = HD_F32, .to = HD_F32, .axes = 1, .rows = c->turning / 2,
                          .columns = 1, .old_rows = c->turning / 2, .step = 1 };
    snprintf(t->name, sizeof t->name, "%s", name);
    return CLI_OK;
}

/* The context that the angles were trained on: outside of the scaling, or in it. */
static int read_original(cli_conversion *c, const json_t *scaling, double *out) {
    static const char key[] = "original_max_position_embeddings";
    const json_t *root = c->config.root;
    const json_t *from = json_is_number(json_object_get(root, key)) ? root : scaling;
    return cli_config_real(&c->config, from, key, c->context, out);
}

/* Llama 3's divisors. */
static int llama3(cli_conversion *c, const json_t *scaling, double base) {
    double factor, low, high, original;
    int code = cli_config_real(&c->config, scaling, "factor", 0, &factor);
    if (!code) code = cli_config_real(&c->config, scaling, "low_freq_factor", 1, &low);
    if (!code) code = cli_config_real(&c->config, scaling, "high_freq_factor", 4, &high);
    if (!code) code = read_original(c, scaling, &original);
    if (code) return code;
    if (!(high > low)) return cli_config_bad(&c->config, "high_freq_factor", "is not above low_freq_factor");
    for (uint32_t i = 0; i < c->turning / 2; i++) {
        const double wave = 2 * acos(-1.0) * pow(base, 2.0 * i / c->turning),
                     smooth = (original / wave - low) / (high - low);
        c->divisors[0][i] = (float)(wave < original / high  ? 1
                                    : wave > original / low ? factor
                                                            : 1 / ((1 - smooth) / factor + smooth));
    }
    return put_divisors(c, 0, "rope_freqs.weight");
}

/* Phi-3's divisors: up to the context that it was trained on, and beyond. */
static int longrope(cli_conversion *c, const json_t *scaling) {
    static const char *const lists[] = { "short_factor", "long_factor" };
    static const char *const names[] = { "rope_factors_short.weight", "rope_factors_long.weight" };
    double original, factor, magnitude;
    int code = read_original(c, scaling, &original);
    if (!code) code = cli_config_real(&c->config, scaling, "factor", c->context / original, &factor);
    if (code) return code;
    const double grown = factor <= 1 || original <= 1 ? 1 : sqrt(1 + log(factor) / log(original));
    code = cli_config_real(&c->config, scaling, "attention_factor", grown, &magnitude);
    for (unsigned set = 0; set < 2 && !code; set++) {
        const json_t *list = json_object_get(scaling, lists[set]);
        if (json_array_size(list) != c->turning / 2)
            code = cli_config_bad(&c->config, lists[set], "has not one number for each pair");
        for (uint32_t i = 0; i < c->turning / 2 && !code; i++) {
            c->divisors[set][i] = (float)json_number_value(json_array_get(list, i));
            if (!(c->divisors[set][i] > 0))
                code = cli_config_bad(&c->config, lists[set], "has what is no number above 0");
        }
        if (!code) code = put_divisors(c, set, names[set]);
    }
    if (code) return code;
    cli_convert_u32(c, "rope.scaling.original_context_length", (uint32_t)(original < 4e9 ? original : 0));
    cli_convert_f32(c, "rope.scaling.attn_factor", magnitude);
    return CLI_OK;
}

/* One value of these is computed. */
static int check_yarn(cli_conversion *c, const json_t *scaling, double factor) {
    const json_t *whole = json_object_get(scaling, "truncate");
    const bool between = c->family->traits & CLI_YARN_BETWEEN;
    double fast, slow, magnitude;
    const double by_scores = json_number_value(json_object_get(scaling, "mscale_all_dim")),
                 turned = json_number_value(json_object_get(scaling, "mscale"));
    const bool latent = (c->family->traits & CLI_LATENT) && by_scores > 0 && fabs(by_scores - turned) <= 0;
    const double grown = factor <= 1 || latent ? 1 : 0.1 * log(factor) + 1;
    int code = cli_config_real(&c->config, scaling, "beta_fast", 32, &fast);
    if (!code) code = cli_config_real(&c->config, scaling, "beta_slow", 1, &slow);
    if (!code) code = cli_config_real(&c->config, scaling, "attention_factor", grown, &magnitude);
    if (code) return code;
    if (fabs(fast - 32) > 0 || fabs(slow - 1) > 0 || fabs(magnitude - grown) > 1e-6 ||
        (!latent && (by_scores > 0 || turned > 0)))
        return cli_config_bad(&c->config, "rope_scaling", "has other figures of yarn than the usual ones");
    if (between != json_is_false(whole))
        return cli_config_bad(&c->config, "truncate", between ? "is not false" : "is false, and not computed");
    if (latent) cli_convert_f32(c, "rope.scaling.yarn_log_multiplier", 0.1 * by_scores);
    return CLI_OK;
}

int cli_convert_rope(cli_conversion *c) {
    double base, factor, original;
    const char *type;
    const json_t *scaling;
    if (c->family->traits & CLI_STILL) return CLI_OK;
    int code = cli_config_rope(&c->config, &base, &type, &scaling);
    if (code) return code;
    if (c->turning / 2 > CLI_COUNT(c->divisors[0]) || c->turning < 2)
        return cli_config_bad(&c->config, "head_dim", "is too large, or too small to turn");
    cli_convert_f32(c, "rope.freq_base", base);
    cli_convert_u32(c, "rope.dimension_count", c->turning);
    if (!type) return CLI_OK;
    if (strcmp(type, "llama3") == 0) return llama3(c, scaling, base);
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) return longrope(c, scaling);
    const bool yarn = strcmp(type, "yarn") == 0;
    if (!yarn && strcmp(type, "linear") != 0)
        return cli_config_bad(&c->config, "rope_scaling", "is of a type that heddle does not convert");
    code = cli_config_real(&c->config, scaling, "factor", 0, &factor);
    if (code) return code;
    cli_convert_text(c, "rope.scaling.type", type);
    cli_convert_f32(c, "rope.scaling.factor", factor);
    if (!yarn) return CLI_OK;
    code = check_yarn(c, scaling, factor);
    if (!code) code = read_original(c, scaling, &original);
    if (!code) cli_convert_u32(c, "rope.scaling.original_context_length", (uint32_t)(original < 4e9 ? original : 0));
    return code;
}
