/* mix.c: the rules of llama.cpp's llama-quantize, with an importance file and without one, so that tensors get the same
 * types. */
#include "llm/mix.h"
#include <stdio.h>

typedef enum mix_id {
    NONE, Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M,
    IQ3_S, IQ3_XXS, IQ2_M, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_M, IQ1_S /* those from IQ2_M on have few bits */
} mix_id;

/* Names, numbers of general.file_type, base types. */
static const struct { hdl_mix_row row; mix_id id; } rows[] = {
    { { "f32", 0, HDL_GGUF_TYPE_F32 }, NONE },         { { "f16", 1, HDL_GGUF_TYPE_F16 }, NONE },
    { { "bf16", 32, HDL_GGUF_TYPE_BF16 }, NONE },      { { "q8_0", 7, HDL_GGUF_TYPE_Q8_0 }, NONE },
    { { "q4_0", 2, HDL_GGUF_TYPE_Q4_0 }, NONE },       { { "q4_1", 3, HDL_GGUF_TYPE_Q4_1 }, NONE },
    { { "q5_0", 8, HDL_GGUF_TYPE_Q5_0 }, NONE },       { { "q5_1", 9, HDL_GGUF_TYPE_Q5_1 }, NONE },
    { { "q2_k", 10, HDL_GGUF_TYPE_Q2_K }, Q2_K },      { { "q3_k_s", 11, HDL_GGUF_TYPE_Q3_K }, Q3_K_S },
    { { "q3_k_m", 12, HDL_GGUF_TYPE_Q3_K }, Q3_K_M },  { { "q3_k_l", 13, HDL_GGUF_TYPE_Q3_K }, Q3_K_L },
    { { "q4_k_s", 14, HDL_GGUF_TYPE_Q4_K }, Q4_K_S },  { { "q4_k_m", 15, HDL_GGUF_TYPE_Q4_K }, Q4_K_M },
    { { "q5_k_s", 16, HDL_GGUF_TYPE_Q5_K }, Q5_K_S },  { { "q5_k_m", 17, HDL_GGUF_TYPE_Q5_K }, Q5_K_M },
    { { "q6_k", 18, HDL_GGUF_TYPE_Q6_K }, NONE },      { { "iq4_nl", 25, HDL_GGUF_TYPE_IQ4_NL }, NONE },
    { { "iq4_xs", 30, HDL_GGUF_TYPE_IQ4_XS }, NONE },  { { "tq1_0", 36, HDL_GGUF_TYPE_TQ1_0 }, NONE },
    { { "tq2_0", 37, HDL_GGUF_TYPE_TQ2_0 }, NONE },    { { "mxfp4_moe", 38, HDL_GGUF_TYPE_MXFP4 }, NONE },
    { { "iq3_s", 26, HDL_GGUF_TYPE_IQ3_S }, IQ3_S },   { { "iq3_xxs", 23, HDL_GGUF_TYPE_IQ3_XXS }, IQ3_XXS },
    { { "iq2_m", 29, HDL_GGUF_TYPE_IQ2_S }, IQ2_M },   { { "iq2_s", 28, HDL_GGUF_TYPE_IQ2_XS }, IQ2_S },
    { { "iq2_xs", 20, HDL_GGUF_TYPE_IQ2_XS }, IQ2_XS }, { { "iq2_xxs", 19, HDL_GGUF_TYPE_IQ2_XXS }, IQ2_XXS },
    { { "iq1_m", 31, HDL_GGUF_TYPE_IQ1_M }, IQ1_M },   { { "iq1_s", 24, HDL_GGUF_TYPE_IQ1_S }, IQ1_S },
};
enum { ROWS = sizeof rows / sizeof *rows };

const hdl_mix_row *hdl_mix_find(const char *name) {
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].row.name, name) == 0) return &rows[i].row;
    return NULL;
}

const char *hdl_mix_names(void) {
    return "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k_s, q3_k_m, q3_k_l, q4_k_s, q4_k_m, q5_k_s, "
           "q5_k_m, q6_k, "
           "iq4_nl, iq4_xs, iq3_s, iq3_xxs, iq2_m, iq2_s, iq2_xs, iq2_xxs, iq1_m, iq1_s, tq1_0, tq2_0 and mxfp4_moe";
}

static bool holds(hdl_span name, const char *part) {
    const size_t count = strlen(part);
    for (uint64_t i = 0; i + count <= name.count; i++)
        if (memcmp(name.bytes + i, part, count) == 0) return true;
    return false;
}
static bool is_values(hdl_span name) {
    return holds(name, "attn_v.weight") || holds(name, "attn_qkv.weight") || holds(name, "attn_kv_b.weight");
}

hd_status hdl_mix_begin(const hdl_gguf *gguf, const hdl_mix_row *row, bool has_importance, hdl_mix *out_mix,
                        hd_error *error) {
    char key[96];
    char architecture[64] = "";
    hdl_span text;
    uint32_t heads = 1, kv_heads = 1;
    *out_mix = (hdl_mix){ .row = row, .has_importance = has_importance, .tied = true };
    hd_status status = hdl_gguf_get_text(gguf, "general.architecture", hdl_text("none"), &text, error);
    if (status) return status;
    snprintf(architecture, sizeof architecture, "%.*s", (int)(text.count < 63 ? text.count : 63),
             (const char *)text.bytes);
#define KEY(rest) (snprintf(key, sizeof key, "%s.%s", architecture, rest), key)
    status = hdl_gguf_get_u32(gguf, KEY("block_count"), 0, 1u << 16, 0, &out_mix->layers, error);
    if (!status) status = hdl_gguf_get_u32(gguf, KEY("expert_count"), 0, 1u << 16, 0, &out_mix->experts, error);
    if (status) return status;
    hdl_gguf_value value;
    if (hdl_gguf_find(gguf, KEY("attention.head_count"), &value) && value.count > 0)
        heads = (uint32_t)hdl_gguf_integer(&value, 0);
    kv_heads = heads;
    if (hdl_gguf_find(gguf, KEY("attention.head_count_kv"), &value) && value.count > 0)
        kv_heads = (uint32_t)hdl_gguf_integer(&value, 0);
#undef KEY
    out_mix->group = kv_heads > 0 ? heads / kv_heads : 0;
    out_mix->falcon = strcmp(architecture, "falcon") == 0;
    const bool llama = strcmp(architecture, "llama") == 0 && heads != kv_heads,
               qwen2 = strcmp(architecture, "qwen2") == 0;
    out_mix->is_70b = out_mix->layers == 80 && (llama || qwen2);
    out_mix->downs = out_mix->layers;
    for (uint32_t i = 0; i < hdl_gguf_get_info(gguf).tensor_count; i++) {
        const hdl_span name = hdl_gguf_tensor_at(gguf, i).name;
        out_mix->values += is_values(name);
        if (hdl_same(name, hdl_text("output.weight"))) out_mix->tied = false;
    }
    return HD_OK;
}

/* Tensors that stay as they are: small, or read where an error costs much. */
static bool is_kept(const hdl_gguf_tensor *tensor) {
    static const char *const parts[] = {
        "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
        "ssm_conv1d",
        "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first.weight",
        "time_mix_w0.weight",
        "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight",
        "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight",
        "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight", "attn_rel_b.weight",
        ".position_embd",
        "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger", "a.rvq.codebook",
        "mm.a.code_embd",
        "position_embd.weight", "token_types.weight",
    };
    const hdl_span name = tensor->name;
    uint32_t long_axes = 0; /* trailing axes of one element are none */
    for (uint32_t i = 0; i < tensor->shape.rank; i++)
        if (tensor->shape.dims[i] > 1 && long_axes == 0) long_axes = tensor->shape.rank - i;
    if (long_axes < 2 || name.count < 6 || memcmp(name.bytes + name.count - 6, "weight", 6) != 0) return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (holds(name, parts[i])) return true;
    return false;
}

/* Of n layers the first and the last eighth, and each third between. */
static bool gets_more(uint32_t i, uint32_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

static hdl_gguf_type of_values(hdl_mix *m, mix_id id, hdl_gguf_type type) {
    const uint32_t i = m->values_seen++;
    const bool shared = m->group >= 4, iq4 = type == HDL_GGUF_TYPE_IQ4_NL || type == HDL_GGUF_TYPE_IQ4_XS;
    if (id == Q2_K) type = shared ? HDL_GGUF_TYPE_Q4_K : HDL_GGUF_TYPE_Q3_K;
    else if (id == Q3_K_M) type = i < 2 ? HDL_GGUF_TYPE_Q5_K : HDL_GGUF_TYPE_Q4_K;
    else if (id == Q3_K_L || (iq4 && shared)) type = HDL_GGUF_TYPE_Q5_K;
    else if ((id == Q4_K_M || id == Q5_K_M) && gets_more(i, m->values)) type = HDL_GGUF_TYPE_Q6_K;
    else if (id == Q4_K_S && i < 4) type = HDL_GGUF_TYPE_Q5_K;
    else if ((id == IQ3_XXS || id == IQ3_S) && shared) type = HDL_GGUF_TYPE_Q4_K;
    else if (id == IQ3_XXS && !m->has_importance) type = HDL_GGUF_TYPE_IQ3_S;
    if (m->is_70b && (type == HDL_GGUF_TYPE_Q3_K || type == HDL_GGUF_TYPE_Q4_K)) type = HDL_GGUF_TYPE_Q5_K;
    return m->experts == 8 ? HDL_GGUF_TYPE_Q8_0 : type;
}

static hdl_gguf_type of_down(hdl_mix *m, mix_id id, hdl_span name, hdl_gguf_type type) {
    uint32_t i = m->downs_seen++;
    const uint32_t n = m->downs;
    const bool iq4 = type == HDL_GGUF_TYPE_IQ4_NL || type == HDL_GGUF_TYPE_IQ4_XS;
    char text[HDL_GGUF_MAX_NAME_BYTES + 1];
    snprintf(text, sizeof text, "%.*s", (int)name.count, (const char *)name.bytes);
    if (m->experts > 1 && sscanf(text, "blk.%u.", &i) != 1) return type;
    if (id == Q2_K) return HDL_GGUF_TYPE_Q3_K;
    if (id == IQ3_XXS && !m->has_importance) return i < n / 8 ? HDL_GGUF_TYPE_Q4_K : HDL_GGUF_TYPE_Q3_K;
    if (id == Q3_K_M)
        return i < n / 16 ? HDL_GGUF_TYPE_Q5_K : !m->falcon || gets_more(i, n) ? HDL_GGUF_TYPE_Q4_K : type;
    if (id == Q3_K_L) return m->falcon ? HDL_GGUF_TYPE_Q4_K : HDL_GGUF_TYPE_Q5_K;
    if (id == Q4_K_M && m->falcon) return i < n / 16 ? HDL_GGUF_TYPE_Q6_K : gets_more(i, n) ? HDL_GGUF_TYPE_Q5_K : type;
    if ((id == Q4_K_M || id == Q5_K_M) && gets_more(i, n)) return HDL_GGUF_TYPE_Q6_K;
    if (i >= n / 8) return type;
    if ((iq4 && !m->has_importance) || (id == Q4_K_S && !m->falcon)) return HDL_GGUF_TYPE_Q5_K;
    if (m->has_importance && type == HDL_GGUF_TYPE_Q4_0) return HDL_GGUF_TYPE_Q4_1;
    if (m->has_importance && type == HDL_GGUF_TYPE_Q5_0) return HDL_GGUF_TYPE_Q5_1;
    return type;
}

static hdl_gguf_type of_attention_output(const hdl_mix *m, mix_id id, hdl_gguf_type type) {
    const bool iq4 = type == HDL_GGUF_TYPE_IQ4_NL || type == HDL_GGUF_TYPE_IQ4_XS;
    if (m->falcon) return id == Q3_K_L ? HDL_GGUF_TYPE_Q4_K : type;
    if (m->experts == 8)
        return id == Q2_K || id == Q3_K_S || id == Q3_K_M || id == Q4_K_S || id == Q4_K_M || iq4 ||
                       id == IQ3_XXS || id == IQ3_S
                   ? HDL_GGUF_TYPE_Q5_K : type;
    if (id == IQ3_XXS) return HDL_GGUF_TYPE_IQ3_S;
    return id == Q2_K ? HDL_GGUF_TYPE_Q3_K : id == Q3_K_M ? HDL_GGUF_TYPE_Q4_K : id == Q3_K_L ? HDL_GGUF_TYPE_Q5_K
           : type;
}

/* In a mix with few bits. */
static hdl_gguf_type of_few(hdl_mix *m, mix_id id, hdl_span name, hdl_gguf_type type) {
    const hdl_gguf_type more = id == IQ2_S || id == IQ2_M ? HDL_GGUF_TYPE_IQ3_S : HDL_GGUF_TYPE_Q2_K;
    if (is_values(name)) {
        m->values_seen++;
        return m->group >= 4 || m->experts >= 4 ? HDL_GGUF_TYPE_Q4_K : more;
    }
    if (m->experts == 8 && holds(name, "attn_k.weight")) return HDL_GGUF_TYPE_Q4_K;
    if (holds(name, "ffn_down")) return m->downs_seen++ < m->downs / 8 ? more : type;
    if (!holds(name, "attn_output.weight")) return type;
    if (m->experts == 8) return HDL_GGUF_TYPE_Q5_K;
    if (id == IQ1_S || id == IQ1_M) return HDL_GGUF_TYPE_IQ2_XXS;
    return id == IQ2_S || id == IQ2_M ? HDL_GGUF_TYPE_IQ3_S : type;
}

/* A type whose blocks fit rows of so many elements. */
static hdl_gguf_type that_fits(hdl_gguf_type type, uint64_t row) {
    if (row % hdl_gguf_type_info(type).block_elements == 0) return type;
    hdl_gguf_type other = HDL_GGUF_TYPE_F16;
    switch (type) {
    case HDL_GGUF_TYPE_IQ4_XS: case HDL_GGUF_TYPE_IQ3_S: case HDL_GGUF_TYPE_IQ3_XXS: case HDL_GGUF_TYPE_IQ2_S:
    case HDL_GGUF_TYPE_IQ2_XS: case HDL_GGUF_TYPE_IQ2_XXS: case HDL_GGUF_TYPE_IQ1_M: case HDL_GGUF_TYPE_IQ1_S:
        other = HDL_GGUF_TYPE_IQ4_NL; break;
    case HDL_GGUF_TYPE_Q2_K:
    case HDL_GGUF_TYPE_Q3_K: case HDL_GGUF_TYPE_TQ1_0: case HDL_GGUF_TYPE_TQ2_0: other = HDL_GGUF_TYPE_Q4_0; break;
    case HDL_GGUF_TYPE_Q4_K: other = HDL_GGUF_TYPE_Q5_0; break;
    case HDL_GGUF_TYPE_Q5_K: other = HDL_GGUF_TYPE_Q5_1; break;
    case HDL_GGUF_TYPE_Q6_K: other = HDL_GGUF_TYPE_Q8_0; break;
    default: break;
    }
    return row % hdl_gguf_type_info(other).block_elements == 0 ? other : HDL_GGUF_TYPE_F16;
}

uint32_t hdl_mix_type(hdl_mix *m, const hdl_gguf_tensor *tensor) {
    const hdl_span name = tensor->name;
    const uint64_t row = (uint64_t)tensor->shape.dims[tensor->shape.rank - 1];
    hdl_gguf_type type = m->row->base;
    mix_id id = NONE;
    for (size_t i = 0; i < ROWS; i++)
        if (&rows[i].row == m->row) id = rows[i].id;
    if (is_kept(tensor)) return tensor->type;
    if (hdl_gguf_type_info(type).block_elements == 1) return type;
    const bool embedding = hdl_same(name, hdl_text("token_embd.weight"));
    if (hdl_same(name, hdl_text("output.weight")) || (m->tied && embedding)) {
        const bool eight =
            type == HDL_GGUF_TYPE_MXFP4 || m->falcon || row % hdl_gguf_type_info(type).block_elements != 0;
        type = eight || type == HDL_GGUF_TYPE_Q8_0 ? HDL_GGUF_TYPE_Q8_0
               : id >= IQ3_XXS                     ? HDL_GGUF_TYPE_Q5_K
                                                   : HDL_GGUF_TYPE_Q6_K;
    } else if (type == HDL_GGUF_TYPE_MXFP4) {
        type = tensor->shape.rank > 2 ? HDL_GGUF_TYPE_MXFP4 : HDL_GGUF_TYPE_Q8_0;
    } else if (embedding) {
        if (type == HDL_GGUF_TYPE_TQ1_0 || type == HDL_GGUF_TYPE_TQ2_0) type = HDL_GGUF_TYPE_Q4_K;
        else if (id == IQ3_XXS || id == IQ2_S || id == IQ2_M) type = HDL_GGUF_TYPE_IQ3_S;
        else if (id >= IQ2_XS) type = HDL_GGUF_TYPE_Q2_K;
    } else if (id >= IQ2_M) {
        type = of_few(m, id, name, type);
    } else if (is_values(name)) {
        type = of_values(m, id, type);
    } else if (holds(name, "attn_k.weight")) {
        if (m->experts == 8) type = HDL_GGUF_TYPE_Q8_0;
        else if (id == IQ3_XXS) type = HDL_GGUF_TYPE_IQ2_S;
    } else if (holds(name, "attn_q.weight")) {
        if (id == IQ3_XXS) type = HDL_GGUF_TYPE_IQ2_S;
    } else if (holds(name, "ffn_down")) {
        type = of_down(m, id, name, type);
    } else if (holds(name, "attn_output.weight")) {
        type = of_attention_output(m, id, type);
    }
    return that_fits(type, row);
}
