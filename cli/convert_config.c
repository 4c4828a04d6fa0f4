/* convert_config.c: config.json as keys of a GGUF file. What would change the answers and has no key is refused by
 * name. */
#include "cli/convert.h"
#include <math.h>
#include <string.h>

static const char *key_of(const cli_conversion *c, const char *rest, char out[96]) {
    snprintf(out, 96, "%s.%s", c->family->name, rest);
    return out;
}
void cli_convert_u32(cli_conversion *c, const char *rest, uint32_t value) {
    hd_model_writer_u32(c->writer, key_of(c, rest, (char[96]){ 0 }), value);
}
void cli_convert_f32(cli_conversion *c, const char *rest, double value) {
    hd_model_writer_f32(c->writer, key_of(c, rest, (char[96]){ 0 }), (float)value);
}
void cli_convert_bool(cli_conversion *c, const char *rest, bool value) {
    hd_model_writer_bool(c->writer, key_of(c, rest, (char[96]){ 0 }), value);
}
void cli_convert_text(cli_conversion *c, const char *rest, const char *text) {
    hd_model_writer_text(c->writer, key_of(c, rest, (char[96]){ 0 }), text, strlen(text));
}

/* ---- one form of all files ---- */

/* Other names of what most files call by the second one. */
static const struct { const char *other, *name; } names[] = {
    { "n_embd", "hidden_size" },              { "n_layer", "num_hidden_layers" },
    { "n_head", "num_attention_heads" },      { "num_kv_heads", "num_key_value_heads" },
    { "n_head_kv", "num_key_value_heads" },   { "n_inner", "intermediate_size" },
    { "ffn_hidden_size", "intermediate_size" }, { "n_positions", "max_position_embeddings" },
    { "n_ctx", "max_position_embeddings" },   { "layer_norm_epsilon", "layer_norm_eps" },
    { "norm_epsilon", "layer_norm_eps" },     { "hidden_activation", "hidden_act" },
    { "activation_function", "hidden_act" },  { "activation", "hidden_act" },
    { "rotary_pct", "partial_rotary_factor" }, { "rotary_emb_base", "rope_theta" },
    { "rotary_emb_fraction", "partial_rotary_factor" },
    { "num_experts", "num_local_experts" },   { "experts_per_token", "num_experts_per_tok" },
    { "n_routed_experts", "num_local_experts" },
    { "shared_intermediate_size", "shared_expert_intermediate_size" },
};

/* What keys have to say where a family says nothing of them, as in cli_family.wanted. */
static const char common[] = CLI_JSON({
    "hidden_act": [null, "silu", "swish"], "partial_rotary_factor": [null, 1], "num_local_experts": [null, 0],
    "attn_logit_softcapping": [null, 0], "final_logit_softcapping": [null, 0], "use_sliding_window": [null, false],
    "quantization_config": null, "alibi": [null, false], "qk_layernorm": [null, false], "use_qk_norm": [null, false],
    "clip_qkv": null, "use_bidirectional_attention": [null, false], "add_cross_attention": [null, false]
});

static json_t *parse(const char *text) { return text ? json_loads(text, 0, NULL) : json_object(); }

static bool is_null(const json_t *value) { return !value || json_is_null(value); }

static int unify(cli_conversion *c) {
    json_t *root = c->config.root, *text = json_object_get(root, "text_config"), *defaults = parse(c->family->defaults);
    bool good = defaults != NULL;
    if (json_is_object(text)) good = json_object_update(root, text) == 0 && good; /* of models that see, too */
    for (size_t i = 0; i < CLI_COUNT(names) && good; i++) {
        json_t *other = json_object_get(root, names[i].other);
        if (is_null(other) || !is_null(json_object_get(root, names[i].name))) continue;
        good = json_object_set(root, names[i].name, other) == 0;
    }
    json_t *part = json_object_get(json_object_get(root, "rope_parameters"), "partial_rotary_factor");
    if (good && !is_null(part)) good = json_object_set(root, "partial_rotary_factor", part) == 0;
    good = good && json_object_update_missing(root, defaults) == 0;
    json_decref(defaults);
    return good ? CLI_OK : cli_fail(c->command, "no memory is left");
}

static bool is_same(const json_t *value, const json_t *wanted) {
    if (is_null(value)) return json_is_null(wanted);
    if (json_is_number(value) && json_is_number(wanted))
        return fabs(json_number_value(value) - json_number_value(wanted)) < 1e-9;
    return json_equal(value, wanted);
}

static int check_wanted(cli_conversion *c) {
    json_t *all = parse(common), *own = parse(c->family->wanted), *wanted;
    int code = all && own && json_object_update(all, own) == 0 ? CLI_OK : cli_fail(c->command, "no memory is left");
    const char *key;
    json_object_foreach(all, key, wanted) {
        const json_t *value = json_object_get(c->config.root, key);
        bool same = json_is_array(wanted) ? json_array_size(wanted) == 0 : is_same(value, wanted);
        if (strcmp(key, "quantization_config") == 0)
            same = same || cli_convert_is(value, "quant_method", "fp8") ||
                   cli_convert_is(value, "quant_method", "compressed-tensors");
        for (size_t i = 0; i < json_array_size(wanted); i++) same = same || is_same(value, json_array_get(wanted, i));
        if (code || same) continue;
        code = cli_config_bad(&c->config, key, strcmp(key, "quantization_config") == 0
                                                   ? "is not known here: take the folder of the plain weights"
                                                   : "says what is not computed in such a model");
    }
    json_decref(all);
    json_decref(own);
    return code;
}

enum { WHOLE_AXIS = 1 << 20 }; /* a block that no matrix is longer than */

/* How large the blocks are that have a factor: two numbers. */
static bool read_blocks(cli_conversion *c, const json_t *size) {
    const json_int_t rows = json_integer_value(json_array_get(size, 0)),
                     columns = json_integer_value(json_array_get(size, 1));
    c->block_rows = (uint32_t)rows;
    c->block_columns = (uint32_t)columns;
    return json_array_size(size) == 2 && rows > 0 && rows <= WHOLE_AXIS && columns > 0 && columns <= WHOLE_AXIS;
}

/* Numbers in 8 bits as transformers writes them: with a factor for each block. */
static int read_eights(cli_conversion *c, const json_t *config) {
    const bool e5m2 = cli_convert_is(config, "fmt", "e5m2");
    if (!e5m2 && !is_null(json_object_get(config, "fmt")) && !cli_convert_is(config, "fmt", "e4m3"))
        return cli_config_bad(&c->config, "quantization_config", "has another fmt than e4m3 and e5m2");
    if (!read_blocks(c, json_object_get(config, "weight_block_size")))
        return cli_config_bad(&c->config, "quantization_config", "has no weight_block_size of two numbers");
    c->eights = e5m2 ? "F8_E5M2" : "F8_E4M3";
    c->factors = "_scale_inv";
    return CLI_OK;
}

/* What a group of layers of compressed-tensors has: with a factor for each row, for all, or for each block. */
static bool read_group(cli_conversion *c, const json_t *weights) {
    const bool of_rows = cli_convert_is(weights, "strategy", "channel"),
               of_all = cli_convert_is(weights, "strategy", "tensor"),
               of_blocks = cli_convert_is(weights, "strategy", "block");
    if (!cli_convert_is(weights, "type", "float") || json_integer_value(json_object_get(weights, "num_bits")) != 8)
        return false;
    c->block_rows = of_rows ? 1 : WHOLE_AXIS;
    c->block_columns = WHOLE_AXIS;
    return of_rows || of_all || (of_blocks && read_blocks(c, json_object_get(weights, "block_structure")));
}

/* Numbers in 8 bits as compressed-tensors writes them. Its groups have to agree. */
static int read_compressed(cli_conversion *c, const json_t *config) {
    json_t *groups = json_object_get(config, "config_groups"), *group;
    const char *name;
    bool good = json_object_size(groups) > 0;
    json_object_foreach(groups, name, group) {
        const uint32_t rows = c->block_rows, columns = c->block_columns;
        good = good && read_group(c, json_object_get(group, "weights")) &&
               (!rows || (rows == c->block_rows && columns == c->block_columns));
    }
    c->eights = "F8_E4M3";
    c->factors = "_scale";
    return good ? CLI_OK : cli_config_bad(&c->config, "quantization_config",
                                          "is not of floats in 8 bits with a factor for each channel, tensor or block");
}

/* Of quantised weights those in 8 bits are taken, and MXFP4 and bitnet's by families that are trained with them. */
static int check_quantised(cli_conversion *c) {
    const bool ternary = c->family->traits & CLI_BITNET;
    const json_t *config = json_object_get(c->config.root, "quantization_config");
    if (is_null(config) || (!ternary && cli_convert_is(config, "quant_method", "mxfp4"))) return CLI_OK;
    if (!ternary && cli_convert_is(config, "quant_method", "fp8")) return read_eights(c, config);
    if (!ternary && cli_convert_is(config, "quant_method", "compressed-tensors")) return read_compressed(c, config);
    const bool online = cli_convert_is(config, "quantization_mode", "online");
    if (ternary && cli_convert_is(config, "quant_method", "bitnet")) {
        if (!cli_convert_is(config, "linear_class", "autobitlinear") ||
            json_is_true(json_object_get(config, "use_rms_norm")))
            return cli_config_bad(&c->config, "quantization_config",
                                  "is not of autobitlinear, or has norms of its own");
        c->rounds = online;
        return CLI_OK;
    }
    return cli_config_bad(&c->config, "quantization_config", "is not known here: take the folder of the plain weights");
}

/* ---- keys ---- */

static int put_figures(cli_conversion *c) {
    int code = CLI_OK;
    json_t *none = json_integer(0);
    for (const cli_figure *f = c->family->figures; f && f->from && !code; f++) {
        const json_t *value = json_object_get(c->config.root, f->from);
        uint32_t whole = 0;
        double real = 0;
        if (f->kind == CLI_SWITCH && !is_null(value) && !json_is_boolean(value))
            code = cli_config_bad(&c->config, f->from, "is neither true nor false");
        else if (f->kind == CLI_REAL_OR_NONE && is_null(value)) cli_convert_f32(c, f->to, 0);
        else if (is_null(value) || (f->kind == CLI_WHOLE_OR_NONE && is_same(value, none))) {
            if (f->kind == CLI_WHOLE) code = cli_config_bad(&c->config, f->from, "is missing");
        } else if (f->kind == CLI_SWITCH) cli_convert_bool(c, f->to, json_is_true(value));
        else if (f->kind == CLI_WHOLE || f->kind == CLI_WHOLE_OR_NONE) {
            code = cli_config_whole(&c->config, f->from, 1u << 22, 0, &whole);
            if (!code) cli_convert_u32(c, f->to, whole);
        } else {
            code = cli_config_real(&c->config, c->config.root, f->from, 0, &real);
            if (!code) cli_convert_f32(c, f->to, real);
        }
    }
    json_decref(none);
    return code;
}

/* Windows: of layers as the family has them; a list of layers has to say the same. */
static int put_window(cli_conversion *c) {
    const uint32_t period = c->family->windows;
    const json_t *layers = json_object_get(c->config.root, "layer_types");
    uint32_t window = 0, with_window = 0;
    if (!is_null(layers) && (!json_is_array(layers) || json_array_size(layers) != c->layers))
        return cli_config_bad(&c->config, "layer_types", "does not tell of each layer");
    for (uint32_t i = 0; i < json_array_size(layers); i++) {
        const char *type = json_string_value(json_array_get(layers, i));
        const bool slides = type && strcmp(type, "sliding_attention") == 0;
        if (!slides && (!type || strcmp(type, "full_attention") != 0))
            return cli_config_bad(&c->config, "layer_types", "has one that is not computed");
        if (slides && (period == 0 || (period > 1 && i % period == period - 1)))
            return cli_config_bad(&c->config, "layer_types", "has windows where such a model has none");
        if (!slides && period > 1 && i % period != period - 1)
            return cli_config_bad(&c->config, "layer_types", "has no windows where such a model has some");
        with_window += slides;
    }
    if (period == 1 && with_window != 0 && with_window != c->layers)
        return cli_config_bad(&c->config, "layer_types", "has windows in some layers, which is not computed");
    if (period == 0 || is_null(json_object_get(c->config.root, "sliding_window"))) return CLI_OK;
    if (period == 1 && json_is_array(layers) && with_window == 0) return CLI_OK;
    const int code = cli_config_whole(&c->config, "sliding_window", 1u << 28, 0, &window);
    if (!code && (period > 1 || window < c->context)) cli_convert_u32(c, "attention.sliding_window", window);
    return code;
}

/* Of models that answer with vectors: how, as sentence-transformers keep it. */
static int put_pooling(cli_conversion *c) {
    static const struct { const char *key; uint32_t number; } kinds[] = {
        { "pooling_mode_mean_tokens", 1 }, { "pooling_mode_cls_token", 2 }, { "pooling_mode_lasttoken", 3 },
    };
    int code = CLI_OK;
    json_t *pooling = cli_convert_json(c, "1_Pooling/config.json", false, &code);
    for (size_t i = 0; i < CLI_COUNT(kinds) && !code; i++)
        if (json_is_true(json_object_get(pooling, kinds[i].key))) {
            cli_convert_u32(c, "pooling_type", kinds[i].number);
            break;
        }
    json_decref(pooling);
    if (!code && (c->family->traits & CLI_ENCODES)) cli_convert_bool(c, "attention.causal", false);
    return code;
}

static int find_family(cli_conversion *c) {
    const char *name = json_string_value(json_array_get(json_object_get(c->config.root, "architectures"), 0));
    char known[1000];
    c->family = name ? cli_convert_family(name) : NULL;
    if (c->family) return CLI_OK;
    cli_convert_families(known, sizeof known);
    return cli_fail(c->command, "%.200s/config.json: architectures is %.60s; these are converted: %s", c->folder,
                    name ? name : "missing", known);
}

/* Sizes that the tensors and the vocabulary are held to. */
static int read_sizes(cli_conversion *c) {
    const cli_config *config = &c->config;
    const uint64_t none = UINT64_MAX >> 1;
    double part;
    int code = cli_config_whole(config, "hidden_size", 1u << 20, none, &c->hidden);
    if (!code) code = cli_config_whole(config, "num_hidden_layers", CLI_CONVERT_LAYERS, none, &c->layers);
    if (!code) code = cli_config_whole(config, "num_attention_heads", 1u << 12, none, &c->heads);
    if (!code) code = cli_config_whole(config, "num_key_value_heads", 1u << 12, c->heads, &c->kv_heads);
    if (!code) code = cli_config_whole(config, "head_dim", 1u << 12, c->hidden / c->heads, &c->head_size);
    if (!code) code = cli_config_whole(config, "vocab_size", 1u << 20, none, &c->vocabulary);
    if (!code) code = cli_config_whole(config, "max_position_embeddings", 1u << 28, 4096, &c->context);
    if (!code) code = cli_config_real(config, config->root, "partial_rotary_factor", 1, &part);
    if (!code && part > 1) code = cli_config_bad(config, "partial_rotary_factor", "is above 1");
    if (!code && json_number_value(json_object_get(config->root, "num_local_experts")) > 0)
        code = cli_config_whole(config, "num_local_experts", CLI_CONVERT_EXPERTS, 1, &c->experts);
    if (code) return code;
    c->turning = (uint32_t)(c->head_size * part);
    c->value_size = c->head_size;
    c->tied = json_is_true(json_object_get(config->root, "tie_word_embeddings"));
    return CLI_OK;
}

int cli_convert_config(cli_conversion *c) {
    uint32_t forward;
    double eps;
    int code = find_family(c);
    if (!code) code = unify(c);
    if (!code) code = check_wanted(c);
    if (!code) code = check_quantised(c);
    if (!code) code = read_sizes(c);
    if (!code && c->family->adapt) code = c->family->adapt(c);
    if (code) return code;
    const bool layer_norm = c->family->traits & CLI_LAYER_NORM;
    const char *norm = layer_norm ? "layer_norm_eps" : "rms_norm_eps";
    const uint64_t usual = layer_norm ? 4 * (uint64_t)c->hidden : UINT64_MAX >> 1;
    code = cli_config_whole(&c->config, "intermediate_size", 1u << 22, usual, &forward);
    if (!code) code = cli_config_real(&c->config, c->config.root, norm, layer_norm ? 1e-5 : 1e-6, &eps);
    if (code) return code;
    hd_model_writer_text(c->writer, "general.architecture", c->family->name, strlen(c->family->name));
    hd_model_writer_text(c->writer, "general.type", "model", 5);
    cli_convert_u32(c, "block_count", c->layers);
    cli_convert_u32(c, "context_length", c->context);
    cli_convert_u32(c, "embedding_length", c->hidden);
    cli_convert_u32(c, "feed_forward_length", forward);
    cli_convert_u32(c, "attention.head_count", c->heads);
    cli_convert_u32(c, "attention.head_count_kv", c->kv_heads);
    cli_convert_u32(c, "attention.key_length", c->head_size);
    cli_convert_u32(c, "attention.value_length", c->value_size);
    cli_convert_f32(c, layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", eps);
    cli_convert_u32(c, "vocab_size", c->vocabulary);
    code = put_figures(c);
    if (!code) code = put_window(c);
    return code ? code : put_pooling(c);
}
