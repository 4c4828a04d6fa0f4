/* centred.c: attention of encoders in a window with the token itself in its middle. It is made of other operations, all
 * scores of a text at once: such texts are short. */
#include "llm/arch/arch.h"
#include <math.h>

/* What hides a score: less than any score by so much that nothing is left of it in a softmax. */
#define FAR 1e30f

/* 0 up to `last`, and far below 0 beyond it: of whole numbers in f32. */
static hd_value hidden_beyond(hd_program *p, hd_value x, float last) {
    return hd_clip(p, hd_scale(p, x, -FAR, FAR * (last + 0.5f)), -3e38f, 0);
}

/* What is added to the scores [B,Hkv,G,T,T] of a query and a key: [B,1,1,T,T]. */
static hd_value sight(const hdl_graph *g) {
    hd_program *p = g->program;
    const int64_t texts = g->size.sequences, length = g->size.tokens;
    const hd_value place = hd_cast(p, g->positions, HD_F32), past = hd_cast(p, g->past, HD_F32);
    const hd_value query = hd_reshape(p, place, HD_SHAPE(texts, 1, 1, length, 1));
    const hd_value key = hd_reshape(p, place, HD_SHAPE(texts, 1, 1, 1, length));
    const hd_value padding = hd_reshape(p, past, HD_SHAPE(texts, 1, 1, 1, 1)); /* 0 or less: so many keys are none */
    const hd_value apart = hd_abs(p, hd_sub(p, query, key));
    return hd_add(p, hidden_beyond(p, apart, (float)(g->model->figures.window / 2)),
                  hidden_beyond(p, hd_sub(p, key, padding), (float)(length - 1)));
}

/* [rows,heads,D] with the heads of a group apart: [B,Hkv,heads/Hkv,T,D]. */
static hd_value by_head(const hdl_graph *g, hd_value x, uint32_t heads) {
    static const uint32_t axes[] = { 0, 2, 3, 1, 4 };
    const hdl_figures *f = &g->model->figures;
    const hd_shape shape =
        HD_SHAPE(g->size.sequences, g->size.tokens, f->kv_heads, heads / f->kv_heads, f->head_size);
    return hd_permute(g->program, hd_reshape(g->program, x, shape), axes, 5);
}

bool hdl_sees_centred(const hdl_graph *g) {
    const hdl_figures *f = &g->model->figures;
    return f->window_centred && f->window && g->size.tokens > f->window / 2 + 1;
}

hd_value hdl_attend_centred(const hdl_graph *g, hd_value q, hd_value k, hd_value v) {
    static const uint32_t back[] = { 0, 3, 1, 2, 4 };
    const hdl_figures *f = &g->model->figures;
    hd_program *p = g->program;
    const float scale = f->attention_scale != 0 ? f->attention_scale : 1 / sqrtf((float)f->head_size);
    hd_value scores = hd_matmul_with(p, by_head(g, q, f->heads), by_head(g, k, f->kv_heads), HD_TRANSPOSE_B);
    scores = hd_add(p, hd_scale(p, scores, scale, 0), sight(g));
    return hd_permute(p, hd_matmul(p, hd_softmax(p, scores, -1), by_head(g, v, f->kv_heads)), back, 5);
}
