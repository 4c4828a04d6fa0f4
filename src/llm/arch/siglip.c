/* siglip.c: SigLIP, what Gemma 3 sees with: an encoder of patches of an image. Its layers are decoder.c's: layer norms,
 * biases, learned positions, no gates. What they give for patches that lie together becomes one row. */
#include "llm/arch/arch.h"

/* A weight of a layer, under decoder.c's name and the file's, and its bias. */
#define PART(stem, seeing, rows, columns)                                                                              \
    { stem ".weight", HDL_LEN_##rows, HDL_LEN_##columns, false, HDL_LAYER, HDL_LEN_NONE, seeing ".weight" }, \
    { stem ".bias", HDL_LEN_##rows, HDL_LEN_NONE, false, HDL_LAYER, HDL_LEN_NONE, seeing ".bias" }

/* A tensor outside of the layers. */
#define OUTSIDE(name, rows, columns, where, seeing)                                                                    \
    { name, HDL_LEN_##rows, HDL_LEN_##columns, false, HDL_##where, HDL_LEN_NONE, seeing }

/* What the file calls the products of its feed-forward differs. */
#define TENSORS(up, down)                                                                                              \
    PART("attn_norm", "ln1", HIDDEN, NONE), PART("ffn_norm", "ln2", HIDDEN, NONE), \
    PART("attn_q", "attn_q", QUERIES, HIDDEN), PART("attn_k", "attn_k", KEYS, HIDDEN), \
    PART("attn_v", "attn_v", KEYS, HIDDEN), PART("attn_output", "attn_out", HIDDEN, QUERIES), \
    PART("ffn_up", up, FORWARD, HIDDEN), PART("ffn_down", down, HIDDEN, FORWARD), \
    OUTSIDE("patch_embd.weight", HIDDEN, PATCH, EMBED, "v.patch_embd.weight"), \
    OUTSIDE("patch_embd.bias", HIDDEN, NONE, EMBED, "v.patch_embd.bias"), \
    OUTSIDE("position_embd.weight", CONTEXT, HIDDEN, EMBED, "v.position_embd.weight"), \
    OUTSIDE("output_norm.weight", HIDDEN, NONE, HEAD, "v.post_ln.weight"), \
    OUTSIDE("output_norm.bias", HIDDEN, NONE, HEAD, "v.post_ln.bias"), \
    OUTSIDE("soft_emb_norm.weight", HIDDEN, NONE, HEAD, "mm.soft_emb_norm.weight"), \
    OUTSIDE("projection", HIDDEN, PROJECTED, HEAD, "mm.input_projection.weight"), { 0 }

static const hdl_tensor_row tensors[] = { TENSORS("ffn_up", "ffn_down") };
static const hdl_tensor_row old_tensors[] = { TENSORS("ffn_down", "ffn_up") };

const hdl_arch hdl_arch_siglip = { tensors, HD_ROPE_HALVES, hd_gelu_tanh, NULL, true, true, NULL, false };
const hdl_arch hdl_arch_siglip_old = { old_tensors, HD_ROPE_HALVES, hd_gelu_tanh, NULL, true, true, NULL, false };

/* A weight that need not be f32, which is added. */
static hd_value added(const hdl_graph *g, const char *name) {
    const hd_value x = hdl_input(g, name);
    return hdl_weight_of(g->model, 0, name)->dtype == HD_F32 ? x : hd_cast(g->program, x, HD_F32);
}

hd_value hdl_patches(const hdl_graph *g, hd_value colours) {
    return hd_add(g->program, hdl_linear(g, colours, "patch_embd"), added(g, "position_embd.weight"));
}

hd_value hdl_project(const hdl_graph *g, hd_value x) {
    const hdl_figures *f = &g->model->figures;
    const int64_t merged = f->sight.merged, side = f->sight.image / f->sight.patch / merged, hidden = f->hidden;
    hd_program *p = g->program;
    x = hd_reshape(p, hdl_hidden(g, x), HD_SHAPE(side, merged, side, merged, hidden));
    x = hd_reshape(p, hd_mean(p, hd_mean(p, x, 3), 1), HD_SHAPE(side * side, hidden));
    x = hd_rms_norm(p, x, added(g, "soft_emb_norm.weight"), f->epsilon);
    x = hd_matmul(p, x, hdl_input(g, "projection")); /* it lies the other way round than all others */
    const float scale = hdl_weight_of(g->model, 0, "projection")->scale;
    return scale == 1 ? x : hd_scale(p, x, scale, 0);
}
