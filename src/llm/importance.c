/* importance.c: what comes into the matrices of a model's layers over a text, as an importance file: llama.cpp's
 * importance matrix in GGUF. The sums of squares are outputs of the model's own program, so any device collects. */
#include "llm/gguf_write.h"
#include "llm/importance.h"
#include "llm/model.h"
#include <math.h>
#include <stdio.h>

/* What comes into one matrix or more: rows of `columns` numbers, of which each of `experts` (1: there are none) takes
 * those that chose it. */
typedef struct flow {
    hd_value x, chosen;
    uint64_t columns, experts;
    double  *sums;          /* [experts,columns], then [experts] counts of rows */
    float   *read;          /* the same of one chunk */
} flow;

typedef struct matrix {
    char   name[HDL_WEIGHT_NAME];
    size_t flow;
} matrix;

typedef struct work {
    hd_model    *model;
    const hd_importance_desc *desc;
    hd_allocator allocator;
    flow        *flows;
    size_t       flow_count, flow_room;
    matrix      *matrices;
    size_t       matrix_count, matrix_room;
    hd_value     each_expert;   /* row i of [experts,experts] is 1 at i, else 0; 0 where no flow has experts */
    uint64_t     chunks;
    bool         no_memory;
} work;

static uint64_t flow_count(const flow *f) { return f->experts * (f->columns + 1); }

/* ---- the program ---- */

/* How often each expert was chosen by each row of x: [T,experts] or, where x has a row for each choice,
 * [T * used,experts]. */
static hd_value choices(work *w, hd_program *p, const flow *f, uint32_t x_rank) {
    hd_shape shape;
    hd_dtype dtype;
    const int64_t experts = (int64_t)f->experts;
    hd_value_describe(p, f->chosen, &dtype, &shape);
    if (!w->each_expert) w->each_expert = hd_input(p, "each_expert", HD_F32, HD_SHAPE(experts, experts));
    const hd_value each = hd_gather(p, w->each_expert, f->chosen);
    if (x_rank == 3) return hd_reshape(p, each, HD_SHAPE(shape.dims[0] * shape.dims[1], experts));
    return hd_reshape(p, hd_sum(p, each, 1), HD_SHAPE(shape.dims[0], experts));
}

/* Outputs "sums.N" f32 [columns], or [experts,columns] and "counts.N" [experts]. */
static void put_sums(work *w, hd_program *p, const flow *f, size_t number) {
    char name[32];
    hd_shape shape;
    hd_dtype dtype;
    hd_value_describe(p, f->x, &dtype, &shape);
    hd_value squares = hd_mul(p, f->x, f->x);
    if (f->chosen) {
        const hd_value chosen = choices(w, p, f, shape.rank);
        if (shape.rank == 3)
            squares = hd_reshape(p, squares, HD_SHAPE(shape.dims[0] * shape.dims[1], shape.dims[2]));
        snprintf(name, sizeof name, "counts.%zu", number);
        hd_output(p, name, hd_reshape(p, hd_sum(p, chosen, 0), HD_SHAPE((int64_t)f->experts)));
        squares = hd_matmul_with(p, chosen, squares, HD_TRANSPOSE_A);
    } else {
        squares = hd_sum(p, squares, 0);
    }
    snprintf(name, sizeof name, "sums.%zu", number);
    hd_output(p, name, squares);
}

/* The flow of these values, a new one where there is none yet; SIZE_MAX without memory. */
static size_t find_flow(work *w, hd_program *p, hd_value x, hd_value chosen) {
    hd_shape shape = { 0 };
    hd_dtype dtype;
    for (size_t i = 0; i < w->flow_count; i++)
        if (w->flows[i].x == x && w->flows[i].chosen == chosen) return i;
    if (hd_value_describe(p, x, &dtype, &shape) || shape.rank < 2) return SIZE_MAX;
    if (!hdl_grow(&w->allocator, &w->flows, &w->flow_room, w->flow_count + 1, sizeof *w->flows)) return SIZE_MAX;
    flow *f = &w->flows[w->flow_count];
    *f = (flow){ .x = x, .chosen = chosen, .columns = (uint64_t)shape.dims[shape.rank - 1],
                 .experts = chosen ? w->model->figures.experts : 1 };
    f->sums = hdl_alloc(&w->allocator, flow_count(f) * sizeof *f->sums);
    f->read = hdl_alloc(&w->allocator, flow_count(f) * sizeof *f->read);
    put_sums(w, p, f, w->flow_count++);
    return f->sums && f->read ? w->flow_count - 1 : SIZE_MAX;
}

static void take_product(void *user, hd_program *p, const char *weight, hd_value x, hd_value chosen) {
    work *w = user;
    const size_t number = x ? find_flow(w, p, x, chosen) : SIZE_MAX;
    if (number == SIZE_MAX || !hdl_grow(&w->allocator, &w->matrices, &w->matrix_room, w->matrix_count + 1,
                                        sizeof *w->matrices)) {
        w->no_memory = true;
        return;
    }
    matrix *m = &w->matrices[w->matrix_count++];
    snprintf(m->name, sizeof m->name, "%s", weight);
    m->flow = number;
}

static hd_status make_plan(work *w, hd_plan **out_plan) {
    const int64_t rows = w->desc->chunk;
    hd_value scores;
    hd_program *p = hd_program_create(w->model->context);
    if (!p) return hdl_model_fail(w->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    const hd_model_graph_desc desc = {
        .sequences = 1, .length = w->desc->chunk, .tokens = hd_input(p, "tokens", HD_I32, HD_SHAPE(rows)),
        .positions = hd_input(p, "positions", HD_I32, HD_SHAPE(rows)), .on_product = take_product, .user = w
    };
    hd_status status = hd_model_build(w->model, p, &desc, NULL, &scores);
    if (!status) status = hd_program_check(p);
    if (!status && w->no_memory)
        status = hdl_model_fail(w->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for sums over a model's inputs");
    if (!status)
        status = hd_plan_create(w->desc->device, p, &(hd_plan_desc){ .math = w->desc->math, .alone = 1 }, out_plan);
    hd_program_destroy(p);
    return status;
}

/* ---- collecting ---- */

/* What does not change from chunk to chunk. */
static hd_status write_constants(work *w, hd_plan *plan) {
    const uint64_t rows = w->desc->chunk, experts = w->model->figures.experts;
    int32_t *positions = hdl_alloc(&w->allocator, rows * sizeof *positions);
    hd_status status = positions ? HD_OK : HD_STATUS_OUT_OF_HOST_MEMORY;
    for (uint64_t i = 0; i < rows && !status; i++) positions[i] = (int32_t)i;
    if (!status) status = hd_plan_write(plan, "positions", positions, rows * sizeof *positions);
    hdl_free(&w->allocator, positions, rows * sizeof *positions);
    if (status || !w->each_expert) return status;
    float *table = hdl_alloc(&w->allocator, experts * experts * sizeof *table);
    if (!table) return HD_STATUS_OUT_OF_HOST_MEMORY;
    for (uint64_t i = 0; i < experts; i++) table[i * experts + i] = 1;
    status = hd_plan_write(plan, "each_expert", table, experts * experts * sizeof *table);
    hdl_free(&w->allocator, table, experts * experts * sizeof *table);
    return status;
}

/* Adds what a chunk gave. */
static hd_status add(work *w, hd_plan *plan) {
    char name[32];
    for (size_t i = 0; i < w->flow_count; i++) {
        flow *f = &w->flows[i];
        const uint64_t sums = f->experts * f->columns, count = flow_count(f);
        snprintf(name, sizeof name, "sums.%zu", i);
        hd_status status = hd_plan_read(plan, name, f->read, sums * sizeof *f->read);
        snprintf(name, sizeof name, "counts.%zu", i);
        if (!status && f->chosen)
            status = hd_plan_read(plan, name, f->read + sums, f->experts * sizeof *f->read);
        if (status) return status;
        if (!f->chosen) f->read[sums] = (float)w->desc->chunk;
        for (uint64_t k = 0; k < count; k++) {
            if (!isfinite(f->read[k]))
                return hdl_model_fail(w->model, HD_STATUS_PARSE, "what the model's layers give are no numbers");
            f->sums[k] += (double)f->read[k];
        }
    }
    return HD_OK;
}

static hd_status collect(work *w) {
    const hd_importance_desc *desc = w->desc;
    hd_weights *weights = NULL;
    hd_plan *plan = NULL;
    hd_status status = make_plan(w, &plan);
    if (!status) status = hd_weights_load(w->model, desc->device, &weights);
    if (!status) status = hd_weights_bind(weights, plan);
    if (!status) status = write_constants(w, plan);
    for (uint64_t at = 0; at < w->chunks && !status; at++) {
        status = hd_plan_write(plan, "tokens", desc->tokens + at * desc->chunk, desc->chunk * sizeof *desc->tokens);
        if (!status) status = hd_plan_run(plan, NULL);
        if (!status) status = add(w, plan);
        if (!status && desc->progress) desc->progress(desc->progress_user, at + 1, w->chunks);
    }
    hd_plan_destroy(plan);
    hd_weights_destroy(weights);
    return status;
}

/* ---- the file ---- */

/* All sums as f32, in the room of a chunk's. */
static void round_sums(const flow *f) {
    for (uint64_t i = 0; i < flow_count(f); i++) f->read[i] = (float)f->sums[i];
}

static hd_status write(work *w, const char *path) {
    hd_error error = { 0 };
    char name[HDL_WEIGHT_NAME + sizeof HDL_IMPORTANCE_SUMS];
    hdl_gguf_writer *writer = hdl_gguf_writer_create(&w->allocator, 0);
    if (!writer) return hdl_model_fail(w->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an importance file");
    const hdl_span text = hdl_text(w->desc->text ? w->desc->text : "");
    hdl_gguf_put_text(writer, "general.type", hdl_text(HDL_IMPORTANCE_TYPE));
    hdl_gguf_put_texts(writer, "imatrix.datasets", &text, 1);
    hdl_gguf_put_u32(writer, "imatrix.chunk_count", (uint32_t)w->chunks);
    hdl_gguf_put_u32(writer, "imatrix.chunk_size", w->desc->chunk);
    for (size_t i = 0; i < w->flow_count; i++) round_sums(&w->flows[i]);
    for (size_t i = 0; i < w->matrix_count; i++) {
        const matrix *m = &w->matrices[i];
        const flow *f = &w->flows[m->flow];
        const int64_t experts = (int64_t)f->experts, columns = (int64_t)f->columns;
        snprintf(name, sizeof name, "%s" HDL_IMPORTANCE_SUMS, m->name);
        hdl_gguf_put_tensor(writer, hdl_text(name), HDL_GGUF_TYPE_F32, HD_SHAPE(experts, columns), f->read);
        snprintf(name, sizeof name, "%s" HDL_IMPORTANCE_COUNTS, m->name);
        hdl_gguf_put_tensor(writer, hdl_text(name), HDL_GGUF_TYPE_F32, HD_SHAPE(experts, 1),
                            f->read + experts * columns);
    }
    const hd_status status = hdl_gguf_write_file(writer, path, &error);
    hdl_gguf_writer_destroy(writer);
    return status ? hd_context_put_error(w->model->context, &error) : HD_OK;
}

/* ---- the call ---- */

static hd_status check(const hd_model *model, const hd_importance_desc *desc) {
    if (!desc->device || !desc->tokens) return HD_STATUS_NULL_POINTER;
    if (hd_device_context(desc->device) != model->context)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "the device was closed, or is of another context than the model");
    if (desc->chunk == 0 || desc->count < desc->chunk)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "%zu tokens are no whole chunk of %u", desc->count,
                              desc->chunk);
    for (size_t i = 0; i < desc->count; i++)
        if (desc->tokens[i] < 0 || (uint32_t)desc->tokens[i] >= model->figures.vocabulary)
            return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT, "token %d of a vocabulary of %u", desc->tokens[i],
                                  model->figures.vocabulary);
    return HD_OK;
}

hd_status hd_model_importance(hd_model *model, const char *out_path, const hd_importance_desc *desc) {
    hd_status status = hdl_model_find(&model);
    if (status || !out_path || !desc) return status ? status : HD_STATUS_NULL_POINTER;
    status = check(model, desc);
    if (status) return status;
    work w = { .model = model, .desc = desc, .allocator = model->allocator, .chunks = desc->count / desc->chunk };
    if (w.chunks > UINT32_MAX) w.chunks = UINT32_MAX;
    status = collect(&w);
    if (!status) status = write(&w, out_path);
    for (size_t i = 0; i < w.flow_count; i++) {
        hdl_free(&w.allocator, w.flows[i].sums, flow_count(&w.flows[i]) * sizeof *w.flows[i].sums);
        hdl_free(&w.allocator, w.flows[i].read, flow_count(&w.flows[i]) * sizeof *w.flows[i].read);
    }
    hdl_free(&w.allocator, w.flows, w.flow_room * sizeof *w.flows);
    hdl_free(&w.allocator, w.matrices, w.matrix_room * sizeof *w.matrices);
    return status;
}
