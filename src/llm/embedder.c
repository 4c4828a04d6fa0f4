/* embedder.c: texts as vectors. Texts of like length run side by side, padded to a common one; padding stands behind
 * all that is seen, so that no text's vector hangs on it, nor on the other texts. */
#include "llm/arch/arch.h"
#include "llm/store.h"
#include <math.h>

/* Rows of a run, where no text is longer; the least that a text is padded to; plans that are kept. */
enum { MOST_ROWS = 1024, LEAST_LENGTH = 16, PLANS = 8 };

/* A plan for `texts` of at most `length` tokens each. */
typedef struct sized {
    uint32_t texts, length;
    uint64_t used;          /* the run that needed it last; 0: there is no plan */
    hd_plan *plan;
} sized;

struct hd_embedder {
    hd_model  *model;
    void      *handle;      /* that the caller has */
    hd_device *device, *own_device; /* the second one opened for the embedder, or NULL */
    hd_pooling pooling;
    bool       raw;
    hd_math    math;
    hdl_store  store;
    hdl_pages  none;        /* there is no cache */
    sized      plans[PLANS];
    uint64_t   runs;
    void      *room;        /* of one run: */
    size_t     room_bytes;
    int32_t   *tokens, *positions, *past, *rows;
    float     *shares, *vectors;
};
static const char kind[] = "embedder";

#define FAIL(embedder, ...) hdl_model_fail((embedder)->model, __VA_ARGS__)

/* ---- making and ending ---- */

static hd_status take_wishes(hd_embedder *e, const hd_embedder_desc *desc) {
    const hd_model *model = e->model;
    e->raw = desc->raw != 0;
    e->math = desc->math;
    e->pooling = desc->pooling ? desc->pooling : hdl_pooling_of(model);
    if (desc->device && hd_device_context(desc->device) != model->context)
        return FAIL(e, HD_STATUS_INVALID_ARGUMENT,
                    "the embedder's device was closed, or is of another context than the model");
    if ((unsigned)desc->pooling > HD_POOLING_LAST)
        return FAIL(e, HD_STATUS_INVALID_ARGUMENT, "%u is no pooling", (unsigned)desc->pooling);
    if (e->pooling == HD_POOLING_FILE)
        return FAIL(e, HD_STATUS_UNSUPPORTED,
                    "%s.pooling_type is %u: the file does not say what becomes of a text; ask for mean, cls or last",
                    model->arch_name, model->figures.pooling);
    const hd_status status = desc->device ? HD_OK : hd_device_open(model->context, NULL, &e->own_device);
    e->device = desc->device ? desc->device : e->own_device;
    return status;
}

hd_status hd_embedder_create(hd_model *model, const hd_embedder_desc *desc, hd_embedder **out_embedder) {
    static const hd_embedder_desc defaults = { 0 };
    if (out_embedder) *out_embedder = NULL;
    hd_status status = hdl_model_find(&model);
    if (status || !out_embedder) return status ? status : HD_STATUS_NULL_POINTER;
    if (hdl_need_whole(model)) return HD_STATUS_UNSUPPORTED;
    hd_embedder *e = hdl_alloc(&model->allocator, sizeof *e);
    if (!e) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an embedder");
    hdl_loading loading = { 0 };
    e->model = hdl_model_hold(model);
    status = take_wishes(e, desc ? desc : &defaults);
    const hdl_layers all = { 0, model->figures.layers };
    e->store = (hdl_store){ .model = model, .device = e->device, .pages = &e->none,
                            .part = { all, all, .embeds = true, .vectors = true } };
    if (!status) status = hdl_twins_find(model, e->device);
    if (!status) status = hdl_store_load(&e->store, &loading);
    if (!status) status = hd_handle_new(model->context, kind, e, &e->handle);
    if (status) hd_embedder_destroy(e);
    else *out_embedder = e->handle;
    return status;
}

void hd_embedder_destroy(hd_embedder *embedder) {
    hd_embedder *e = hd_handle_find(embedder, kind);
    if (!e || (e->handle && !hd_handle_end(e->handle))) return;
    const hd_allocator allocator = e->model->allocator;
    for (uint32_t i = 0; i < PLANS; i++) hd_plan_destroy(e->plans[i].plan);
    hdl_store_end(&e->store);
    hd_device_close(e->own_device);
    hdl_free(&allocator, e->room, e->room_bytes);
    hdl_model_release(e->model);
    hdl_free(&allocator, e, sizeof *e);
}

/* ---- plans ---- */

/* One vector a text, [texts,H], of [texts * length,H]. */
static hd_value pooled(const hd_embedder *e, const hdl_graph *g, hd_value x) {
    const int64_t texts = g->size.sequences, length = g->size.tokens, hidden = e->model->figures.hidden;
    hd_program *p = g->program;
    if (e->pooling != HD_POOLING_MEAN)
        return hdl_hidden(g, hd_gather(p, x, hd_input(p, "rows", HD_I32, HD_SHAPE(texts))));
    x = hd_reshape(p, hdl_hidden(g, x), HD_SHAPE(texts, length, hidden));
    const hd_value shares = hd_input(p, "shares", HD_F32, HD_SHAPE(texts, 1, length));
    return hd_reshape(p, hd_matmul(p, shares, x), HD_SHAPE(texts, hidden));
}

/* Inputs "tokens" and "positions" i32 [rows]; where tokens see later ones, "past" i32 [texts]: how many a text has more
 * than `length`, a number below 0 or 0; "shares" f32 [texts,1,length] of each row in the mean, or "rows" i32 [texts],
 * those that stand for their text. Output "vectors" f32 [texts,H]. */
static void build(const hd_embedder *e, hd_program *p, uint32_t texts, uint32_t length) {
    const int64_t rows = (int64_t)texts * length;
    hdl_graph g = { .model = e->model, .program = p,
                    .size = { .sequences = texts, .tokens = length, .context = length } };
    const hd_value tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(rows));
    g.positions = hd_input(p, "positions", HD_I32, HD_SHAPE(rows));
    if (!e->model->figures.causal) g.past = hd_input(p, "past", HD_I32, HD_SHAPE(texts));
    hd_value x = hdl_embed(&g, tokens);
    for (g.layer = 0; g.layer < e->model->figures.layers; g.layer++) x = hdl_layer(&g, x);
    hd_output(p, "vectors", pooled(e, &g, x));
}

static hd_status make_plan(hd_embedder *e, uint32_t texts, uint32_t length, hd_plan **out_plan) {
    hd_program *p = hd_program_create(e->model->context);
    if (!p) return FAIL(e, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    build(e, p, texts, length);
    hd_status status = hd_program_check(p);
    if (!status) status = hd_plan_create(e->device, p, &(hd_plan_desc){ .math = e->math, .alone = 1 }, out_plan);
    hd_program_destroy(p);
    if (status) return status;
    status = hdl_store_bind(&e->store, *out_plan, false, true);
    if (status) hd_plan_destroy(*out_plan);
    return status;
}

/* The plan of that size; a new one takes the place of the one that was not needed for the longest time. */
static hd_status find_plan(hd_embedder *e, uint32_t texts, uint32_t length, hd_plan **out_plan) {
    sized *oldest = &e->plans[0];
    e->runs++;
    for (uint32_t i = 0; i < PLANS; i++) {
        sized *s = &e->plans[i];
        if (s->used < oldest->used) oldest = s;
        if (!s->used || s->texts != texts || s->length != length) continue;
        s->used = e->runs;
        *out_plan = s->plan;
        return HD_OK;
    }
    hd_plan_destroy(oldest->plan);
    *oldest = (sized){ 0 };
    const hd_status status = make_plan(e, texts, length, out_plan);
    if (!status) *oldest = (sized){ texts, length, e->runs, *out_plan };
    return status;
}

/* ---- running ---- */

/* What texts of `count` tokens are padded to. */
static uint32_t length_of(const hd_embedder *e, size_t count) {
    const uint32_t context = e->model->figures.context;
    uint32_t length = LEAST_LENGTH;
    while (length < count) length *= 2;
    return length < context ? length : context;
}

/* How many texts of a length run together, of so many that wait: a power of two. */
static uint32_t together(uint32_t length, size_t waiting) {
    uint32_t texts = 1;
    while (texts < waiting && 2 * texts * length <= MOST_ROWS) texts *= 2;
    return texts;
}

/* Room for a run of texts of that length. */
static hd_status make_room(hd_embedder *e, uint32_t length) {
    const size_t rows = length > MOST_ROWS ? length : MOST_ROWS, texts = MOST_ROWS / LEAST_LENGTH;
    const size_t words = 3 * rows + 2 * texts + texts * e->model->figures.hidden;
    const hd_allocator *allocator = &e->model->allocator;
    if (e->room_bytes >= words * 4) return HD_OK;
    hdl_free(allocator, e->room, e->room_bytes);
    e->room_bytes = 0;
    e->room = hdl_alloc(allocator, words * 4);
    if (!e->room) return FAIL(e, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for texts of %u tokens", length);
    e->room_bytes = words * 4;
    e->tokens = e->room;
    e->positions = e->tokens + rows;
    e->past = e->positions + rows;
    e->rows = e->past + texts;
    e->shares = (float *)(void *)(e->rows + texts);
    e->vectors = e->shares + rows;
    return HD_OK;
}

/* Text number `at` of a run; one without tokens only fills it up. */
static void put_text(hd_embedder *e, uint32_t at, uint32_t length, hd_embedder_text text) {
    const uint32_t first = at * length, count = text.count ? (uint32_t)text.count : 1;
    for (uint32_t i = 0; i < length; i++) {
        e->tokens[first + i] = i < text.count ? text.tokens[i] : 0;
        e->positions[first + i] = (int32_t)i;
        e->shares[first + i] = i < count ? 1.0f / (float)count : 0;
    }
    e->past[at] = (int32_t)count - (int32_t)length;
    e->rows[at] = (int32_t)(first + (e->pooling == HD_POOLING_LAST ? count - 1 : 0));
}

/* Divides a vector by its length, in double precision and in order, so that all hosts give the same bits. */
static hd_status finish(const hd_embedder *e, float *vector) {
    double sum = 0;
    for (uint32_t i = 0; i < e->model->figures.hidden; i++) sum += (double)vector[i] * (double)vector[i];
    if (!isfinite(sum))
        return FAIL(e, HD_STATUS_INVALID_ARGUMENT,
                    "a vector holds what is not a number: look at the model's weights (hd_model_desc.check_weights)");
    if (e->raw || sum <= 0) return HD_OK;
    const double factor = 1 / sqrt(sum);
    for (uint32_t i = 0; i < e->model->figures.hidden; i++) vector[i] = (float)((double)vector[i] * factor);
    return HD_OK;
}

static hd_status write_inputs(const hd_embedder *e, hd_plan *plan, uint32_t texts, uint32_t length) {
    const bool is_mean = e->pooling == HD_POOLING_MEAN;
    const uint64_t each = texts * sizeof(int32_t), all = each * length; /* i32 and f32 have one size */
    hd_status status = hd_plan_write(plan, "tokens", e->tokens, all);
    if (!status) status = hd_plan_write(plan, "positions", e->positions, all);
    if (!status && !e->model->figures.causal) status = hd_plan_write(plan, "past", e->past, each);
    if (status) return status;
    return is_mean ? hd_plan_write(plan, "shares", e->shares, all) : hd_plan_write(plan, "rows", e->rows, each);
}

/* Runs the texts of these numbers, which are padded to one length. */
static hd_status run_texts(hd_embedder *e, const hd_embedder_text *texts, const size_t *numbers, uint32_t count,
                           uint32_t length, float *out_vectors) {
    const uint32_t hidden = e->model->figures.hidden, padded = together(length, count);
    hd_plan *plan = NULL;
    hd_status status = make_room(e, length);
    if (!status) status = find_plan(e, padded, length, &plan);
    if (status) return status;
    for (uint32_t i = 0; i < padded; i++)
        put_text(e, i, length, i < count ? texts[numbers[i]] : (hd_embedder_text){ 0 });
    status = write_inputs(e, plan, padded, length);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "vectors", e->vectors, (uint64_t)padded * hidden * sizeof *e->vectors);
    for (uint32_t i = 0; i < count && !status; i++) {
        float *const out = out_vectors + numbers[i] * hidden;
        memcpy(out, e->vectors + (size_t)i * hidden, hidden * sizeof *out);
        status = finish(e, out);
    }
    return status;
}

static hd_status check_text(const hd_embedder *e, const hd_embedder_text *text, size_t number) {
    const hdl_figures *f = &e->model->figures;
    if (!text->tokens && text->count) return HD_STATUS_NULL_POINTER;
    if (text->count == 0) return FAIL(e, HD_STATUS_ZERO_SIZE, "text %zu has no tokens", number);
    if (text->count > f->context)
        return FAIL(e, HD_STATUS_LIMIT, "text %zu has %zu tokens, and the model was made for %u; cut it, or divide it",
                    number, text->count, f->context);
    for (size_t i = 0; i < text->count; i++)
        if (text->tokens[i] < 0 || (uint32_t)text->tokens[i] >= f->vocabulary)
            return FAIL(e, HD_STATUS_INVALID_ARGUMENT, "token %d in text %zu, of a vocabulary of %u", text->tokens[i],
                        number, f->vocabulary);
    return HD_OK;
}

/* All texts that are padded to `length`, as many at once as there may be. */
static hd_status run_length(hd_embedder *e, const hd_embedder_text *texts, size_t count, uint32_t length,
                            float *out_vectors) {
    size_t numbers[MOST_ROWS / LEAST_LENGTH];
    const uint32_t most = together(length, count);
    uint32_t found = 0;
    hd_status status = HD_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (length_of(e, texts[i].count) != length) continue;
        numbers[found++] = i;
        if (found < most) continue;
        status = run_texts(e, texts, numbers, found, length, out_vectors);
        found = 0;
    }
    return status || !found ? status : run_texts(e, texts, numbers, found, length, out_vectors);
}

hd_status hd_embedder_run(hd_embedder *embedder, const hd_embedder_text *texts, size_t count, float *out_vectors) {
    hd_embedder *e = hd_handle_find(embedder, kind);
    if (!e) return hd_handle_refuse(embedder, kind);
    hd_status status = hdl_context_lives(e->model->context);
    if (status || !texts || !out_vectors) return status ? status : HD_STATUS_NULL_POINTER;
    if (!hd_device_context(e->device))
        return FAIL(e, HD_STATUS_STALE_HANDLE, "an embedder is used whose device was closed");
    if (count == 0) return FAIL(e, HD_STATUS_ZERO_SIZE, "no texts to embed");
    size_t longest = 0;
    for (size_t i = 0; i < count && !status; i++) {
        status = check_text(e, &texts[i], i);
        if (texts[i].count > longest) longest = texts[i].count;
    }
    for (size_t reach = 1, length; reach <= longest && !status; reach = length + 1) {
        length = length_of(e, reach);
        status = run_length(e, texts, count, (uint32_t)length, out_vectors);
    }
    return status;
}
