/* sight.c: the figures of a file that sees: those of llama.cpp's converters, with the architecture "clip", as Gemma 3
 * has them. Every figure is held to a range in which nothing overflows. */
#include "llm/arch/arch.h"
#include <math.h>

enum { MOST_SIDE = 1 << 11, MOST_PATCHES = 1 << 14 }; /* Gemma 3 has 896 and 4,096 */

static hd_status read_kind(hd_model *model, hd_error *error) {
    char quoted[HDL_QUOTE];
    hdl_span name;
    model->arch = &hdl_arch_siglip;
    model->arch_name = "clip";
    hd_status status = hdl_gguf_need(model->gguf, "general.architecture", error);
    if (!status) status = hdl_gguf_get_text(model->gguf, "general.architecture", hdl_text(""), &name, error);
    if (status || hdl_same(name, hdl_text("clip"))) return status;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                    "general.architecture is %s, and a file that sees has clip; give the mmproj file of the model",
                    hdl_quote(name, quoted));
}

/* One kind of projector is known. It is named for all that a file holds, or for images. */
static void read_projector(hdl_keys *k) {
    char quoted[HDL_QUOTE];
    hdl_span type = hdl_key_text(k, "projector_type", "");
    if (type.count == 0) type = hdl_key_text(k, "vision.projector_type", "");
    if (!k->status && !hdl_same(type, hdl_text("gemma3")))
        k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                             "clip.projector_type is %s; heddle sees with that of gemma3 only",
                             hdl_quote(type, quoted));
}

/* Keys that can be run with one value only. */
static void read_only(hdl_keys *k) {
    static const struct { const char *name; bool fallback, wanted; } only[] = {
        { "has_vision_encoder", true, true }, { "has_audio_encoder", false, false },
        { "has_text_encoder", false, false }, { "has_llava_projector", false, false },
        { "use_gelu", false, true }, { "use_silu", false, false },
    };
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (hdl_key_bool(k, only[i].name, only[i].fallback) != only[i].wanted && !k->status)
            k->status = hdl_fail(k->error, HD_STATUS_UNSUPPORTED,
                                 "clip.%s is %s, with which heddle cannot see; convert the model anew", only[i].name,
                                 only[i].wanted ? "false" : "true");
}

/* Three numbers, of red, green and blue. */
static void read_colours(hdl_keys *k, const char *rest, float low, float out[3]) {
    hdl_gguf_value value;
    hdl_key_need(k, rest);
    const hdl_key_name name = hdl_key_ask(k, rest);
    if (!k->status) k->status = hdl_gguf_get_array(k->model->gguf, name.text, HDL_GGUF_F32, 3, 3, &value, k->error);
    for (uint32_t i = 0; i < 3 && !k->status; i++) {
        out[i] = (float)hdl_gguf_float(&value, i);
        if (!(out[i] >= low && out[i] <= 1e6f))
            k->status = hdl_fail(k->error, HD_STATUS_LIMIT, "%s holds %g, which is not from %g to 1e6", name.text,
                                 (double)out[i], (double)low);
    }
}

/* Older files call what goes up ffn_down, and the other way round. */
static void read_age(hdl_keys *k) {
    const hdl_figures *f = &k->model->figures;
    hdl_gguf_tensor down;
    if (k->status || !hdl_gguf_find_tensor(k->model->gguf, "v.blk.0.ffn_down.weight", &down)) return;
    const bool goes_up = down.shape.rank == 2 && down.shape.dims[0] == f->feed_forward && f->feed_forward != f->hidden;
    if (goes_up) k->model->arch = &hdl_arch_siglip_old;
}

static void read_sizes(hdl_keys *k) {
    hdl_figures *f = &k->model->figures;
    hdl_sight *s = &f->sight;
    hdl_key_need(k, "vision.image_size");
    s->image = hdl_key_u32(k, "vision.image_size", 1, MOST_SIDE, 1);
    hdl_key_need(k, "vision.patch_size");
    s->patch = hdl_key_u32(k, "vision.patch_size", 1, MOST_SIDE, 1);
    s->merged = hdl_key_u32(k, "vision.projector.scale_factor", 1, MOST_SIDE, 4);
    hdl_key_need(k, "vision.projection_dim");
    s->projected = hdl_key_u32(k, "vision.projection_dim", 1, 1u << 20, 1);
    if (k->status) return;
    const uint32_t side = s->image / s->patch;
    if (s->image % s->patch || side % s->merged || side * side > MOST_PATCHES)
        k->status = hdl_fail(k->error, HD_STATUS_SHAPE,
                             "images of %u pixels are not cut into squares of %u, of which %u in both directions make "
                             "a row, at most %d squares in all", s->image, s->patch, s->merged, MOST_PATCHES);
    f->context = side * side;
}

hd_status hdl_sight_read(hd_model *model, hd_error *error) {
    hdl_figures *f = &model->figures;
    hdl_keys keys = { .model = model, .error = error, .status = read_kind(model, error) }, *k = &keys;
    read_projector(k);
    read_only(k);
    read_sizes(k);
    read_colours(k, "vision.image_mean", -1e6f, f->sight.mean);
    read_colours(k, "vision.image_std", 1e-6f, f->sight.deviation);
    hdl_key_need(k, "vision.block_count");
    f->layers = hdl_key_u32(k, "vision.block_count", 1, 1024, 0);
    hdl_key_need(k, "vision.embedding_length");
    f->hidden = hdl_key_u32(k, "vision.embedding_length", 1, 1u << 20, 0);
    hdl_key_need(k, "vision.feed_forward_length");
    f->feed_forward = hdl_key_u32(k, "vision.feed_forward_length", 1, 1u << 22, 0);
    hdl_key_need(k, "vision.attention.head_count");
    f->heads = f->kv_heads = hdl_key_u32(k, "vision.attention.head_count", 1, 65536, 1);
    hdl_key_need(k, "vision.attention.layer_norm_epsilon");
    f->epsilon = hdl_key_f32(k, "vision.attention.layer_norm_epsilon", 0, 1, 0);
    if (!k->status && f->hidden % f->heads)
        k->status = hdl_fail(error, HD_STATUS_SHAPE, "%u elements are not divided among %u heads", f->hidden, f->heads);
    f->head_size = f->hidden / f->heads;
    read_age(k);
    f->embedding_scale = f->residual_scale = f->logit_scale = 1;
    f->activation = model->arch->activation;
    hdl_keys_check(k);
    return k->status;
}
