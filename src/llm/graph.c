/* graph.c: a run of a model as a program: its inputs, what the model's family makes of them, its outputs, its route. */
#include "llm/arch/arch.h"
#include <stdio.h>

/* The scores of the tokens to come after the rows that are asked for, and the best of them. */
static void give_logits(hdl_graph *g, hd_value x) {
    hd_program *p = g->program;
    const hdl_size size = g->size;
    if (size.results != size.sequences * size.tokens)
        x = hd_gather(p, x, hd_input(p, "last", HD_I32, HD_SHAPE(size.results)));
    const hd_value logits = hdl_logits(g, x);
    hd_output(p, "logits", logits);
    hd_output(p, "best", hd_reshape(p, hd_argmax(p, logits, -1), HD_SHAPE(size.results)));
    hd_output(p, "peak", hd_reshape(p, hd_max(p, logits, -1), HD_SHAPE(size.results)));
    if (!size.candidates) return;
    const hd_value candidates = hd_top_k(p, logits, size.candidates);
    hd_output(p, "candidates", candidates);
    hd_output(p, "scores", hd_take_along(p, logits, candidates));
}

/* Adds where values of a layer are. */
static void route_layer(hdl_placed *placed, const char *what, hd_value first, hd_value last) {
    const size_t used = strlen(placed->route);
    snprintf(placed->route + used, placed->route_bytes - used, "%s%sv%lu-v%lu=1", used ? "," : "", what,
             (unsigned long)first, (unsigned long)last);
}

static void build(const hd_model *model, hdl_split split, hdl_size size, hdl_placed *placed) {
    const int64_t rows = (int64_t)size.sequences * size.tokens, table = size.bucket / HDL_PAGE_TOKENS;
    hd_program *p = placed->program;
    hdl_graph g = { .model = model, .program = p, .size = size };
    hd_value x = size.is_image ? 0 : hd_input(p, "tokens", HD_I32, HD_SHAPE(rows));
    g.positions = hd_input(p, "positions", HD_I32, HD_SHAPE(rows));
    g.past = hd_input(p, "past", HD_I32, HD_SHAPE(size.sequences));
    g.pages = hd_input(p, "pages", HD_I32, size.sequences == 1 ? HD_SHAPE(table) : HD_SHAPE(size.sequences, table));
    /* the last input in front of the first layer: the route names what is behind it */
    x = size.is_image ? hd_input(p, "image", HD_F32, HD_SHAPE(rows, model->figures.hidden)) : hdl_embed(&g, x);
    for (g.layer = 0; g.layer < model->figures.layers; g.layer++) {
        const hd_value before = x;
        g.first_expert = 0;
        x = hdl_layer(&g, x);
        if (g.layer < split.streamed_layers) route_layer(placed, "input:", before + 1, x);
        if (g.layer + 1 == split.cpu_layers) route_layer(placed, "", 1, x);
        if (g.layer >= split.cpu_layers && g.layer < split.cpu_layers + split.cpu_experts)
            if (g.first_expert) route_layer(placed, "", g.first_expert, g.last_expert);
    }
    give_logits(&g, x);
}

hd_status hdl_graph_build(const hd_model *model, hdl_split split, hdl_size size, hdl_placed *out) {
    enum { ITEM = 48 }; /* "input:v4294967295-v4294967295=1," */
    *out = (hdl_placed){ .program = hd_program_create(model->context),
                         .route_bytes = ITEM * ((size_t)split.streamed_layers + split.cpu_experts + 1) };
    out->route = hdl_alloc(&model->allocator, out->route_bytes);
    hd_status status = HD_OK;
    if (!out->program || !out->route)
        status = hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    else build(model, split, size, out);
    if (!status) status = hd_program_check(out->program);
    if (status) hdl_placed_end(model, out);
    return status;
}

void hdl_placed_end(const hd_model *model, hdl_placed *placed) {
    hd_program_destroy(placed->program);
    hdl_free(&model->allocator, placed->route, placed->route_bytes);
}

hd_plan_desc hdl_placed_wish(const hdl_placed *placed, hd_device *const *cpu, hd_math math) {
    if (!placed->route[0]) return (hd_plan_desc){ .math = math, .alone = 1 }; /* weights and cache are there */
    return (hd_plan_desc){ .math = math, .beside = cpu, .beside_count = 1, .route = placed->route };
}
