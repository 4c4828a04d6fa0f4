/* graph.c: a run of layers as a program: its inputs, what the model's family makes of them, and its outputs. */
#include "llm/arch/arch.h"
#include <stdio.h>

/* The scores of the tokens to come after the rows that are asked for, and the best of them. */
static void give_logits(hdl_graph *g, hd_value x) {
    hd_program *p = g->program;
    const hdl_size size = g->size;
    if (size.results != size.sequences * size.tokens)
        x = hd_gather(p, x, hd_input(p, "last", HD_I32, HD_SHAPE(size.results)));
    const hd_value logits = g->model->arch->logits(g, x);
    hd_output(p, "logits", logits);
    hd_output(p, "best", hd_reshape(p, hd_argmax(p, logits, -1), HD_SHAPE(size.results)));
    hd_output(p, "peak", hd_reshape(p, hd_max(p, logits, -1), HD_SHAPE(size.results)));
    if (!size.candidates) return;
    const hd_value candidates = hd_top_k(p, logits, size.candidates);
    hd_output(p, "candidates", candidates);
    hd_output(p, "scores", hd_take_along(p, logits, candidates));
}

hd_status hdl_graph_build(const hd_model *model, hdl_part part, hdl_size size, hdl_placed *out) {
    const int64_t rows = (int64_t)size.sequences * size.tokens, table = size.bucket / HDL_PAGE_TOKENS;
    hd_program *p = hd_program_create(model->context);
    *out = (hdl_placed){ .program = p };
    if (!p) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    hdl_graph g = { .model = model, .program = p, .size = size, .nameless = part.nameless };
    hd_value x = part.embeds ? hd_input(p, "tokens", HD_I32, HD_SHAPE(rows))
                             : hd_input(p, "hidden", HD_F32, HD_SHAPE(rows, model->figures.hidden));
    g.positions = hd_input(p, "positions", HD_I32, HD_SHAPE(rows));
    g.past = hd_input(p, "past", HD_I32, HD_SHAPE(size.sequences));
    g.pages = hd_input(p, "pages", HD_I32, size.sequences == 1 ? HD_SHAPE(table) : HD_SHAPE(size.sequences, table));
    if (part.embeds) x = model->arch->embed(&g, x);
    for (uint32_t i = 0; i < part.layer_count; i++) {
        g.layer = part.first_layer + i;
        x = model->arch->layer(&g, x);
        if (i + 1 == part.cpu_layers) snprintf(out->route, sizeof out->route, "v1-v%lu=1,rest=0", (unsigned long)x);
    }
    if (part.heads) give_logits(&g, x);
    else hd_output(p, "next", x);
    const hd_status status = hd_program_check(p);
    if (status) hd_program_destroy(p);
    return status;
}

hd_plan_desc hdl_placed_wish(const hdl_placed *placed, hd_device *const *cpu, hd_math math) {
    hd_plan_desc desc = { .math = math };
    if (!placed->route[0]) return desc;
    desc.beside = cpu;
    desc.beside_count = 1;
    desc.route = placed->route;
    return desc;
}
