/* halves.c: copies in f16 of quantised weights that lie on a device. Its products of many rows would make them f16 each
 * time; with room for that they are made once, by the device itself. */
#include "llm/store.h"

uint64_t hdl_part_half_bytes(const hd_model *model, hdl_part part) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < model->weight_count; i++)
        if (hdl_part_needs(model, part, i) && hdl_twin_of(model, part, i) == i)
            bytes += hdl_aligned(hdl_weight_half_bytes(&model->weights[i]));
    return bytes;
}

/* Rows of a weight that are made f16 at a time: f32 lies between, and an ended plan keeps its memory for a while. Whole
 * pieces begin where something may be bound. */
static int64_t rows_at_once(const hdl_weight *w) {
    const int64_t rows = w->shape.dims[0], most = (INT64_C(1) << 22) / w->shape.dims[1];
    int64_t piece = most / HDL_ALIGN * HDL_ALIGN;
    while (piece > 0 && rows % piece != 0) piece -= HDL_ALIGN;
    return piece > 0 && rows > most ? piece : rows;
}

/* A plan that makes f16 of a piece of weights of one type and shape. */
static hd_status make_plan(const hdl_store *store, const hdl_weight *w, hd_plan **out_plan) {
    hd_program *p = hd_program_create(store->model->context);
    if (!p) return hdl_model_fail(store->model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    const hd_value weight = hd_input(p, "weight", w->dtype, HD_SHAPE(rows_at_once(w), w->shape.dims[1]));
    hd_output(p, "halves", hd_cast(p, hd_cast(p, weight, HD_F32), HD_F16));
    hd_status status = hd_program_check(p);
    if (!status) status = hd_plan_create(store->device, p, &(hd_plan_desc){ .alone = 1 }, out_plan);
    hd_program_destroy(p);
    return status;
}

static hd_status convert(const hdl_weight *w, const hdl_place *from, const hdl_place *to, hd_plan *plan) {
    const int64_t rows = rows_at_once(w);
    const hd_shape piece = HD_SHAPE(rows, w->shape.dims[1]);
    const uint64_t bytes = hd_tensor_bytes(w->dtype, piece), half_bytes = hd_tensor_bytes(HD_F16, piece);
    hd_status status = HD_OK;
    for (uint64_t i = 0; (int64_t)i < w->shape.dims[0] / rows && !status; i++) {
        status = hd_plan_bind(plan, "weight", from->buffer, from->offset + i * bytes);
        if (!status) status = hd_plan_bind(plan, "halves", to->buffer, to->offset + i * half_bytes);
        if (!status) status = hd_plan_run(plan, NULL);
    }
    return status;
}

/* Of the copy of weight `index` that has to be made; 0: there is none. */
static uint64_t bytes_of(const hdl_store *store, uint32_t index) {
    const hd_model *model = store->model;
    if (!hdl_part_needs(model, store->part, index) || hdl_twin_of(model, store->part, index) != index) return 0;
    return store->halves[index].buffer ? 0 : hdl_aligned(hdl_weight_half_bytes(&model->weights[index]));
}

/* A copy is known by the place of what it is a copy of. */
static hdl_sought copy_of(hd_device *device, const hdl_place *place) {
    return (hdl_sought){ .device = device, .origin = { (uintptr_t)place->buffer, place->offset } };
}

static hdl_slabs slabs_of(const hdl_store *store) {
    return (hdl_slabs){ .label = "weights in f16", .places = store->halves, .bytes_of = bytes_of };
}

hd_status hdl_store_find_halves(hdl_store *store) {
    const hd_model *model = store->model;
    store->halves = hdl_alloc(&model->allocator, model->weight_count * sizeof *store->halves);
    if (!store->halves) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the list of weights");
    hdl_slabs slabs = slabs_of(store);
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < model->weight_count && !status; i++) {
        const hdl_sought as = copy_of(store->device, &store->places[i]);
        if (store->places[i].buffer && bytes_of(store, i)) status = hdl_store_find(store, &slabs, i, &as);
    }
    return status;
}

/* Makes those that are not there. */
static hd_status make(hdl_store *store) {
    const hd_model *model = store->model;
    const hdl_weight *made_for = NULL; /* weights of one kind follow each other in the list of a layer, or nearly */
    const uint32_t found = store->content_count;
    hdl_slabs slabs = slabs_of(store);
    hd_plan *plan = NULL;
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < model->weight_count && !status; i++) {
        const hdl_weight *w = &model->weights[i];
        const hdl_sought as = copy_of(store->device, &store->places[i]);
        if (hdl_part_needs(model, store->part, i)) store->halves[i] = store->halves[hdl_twin_of(model, store->part, i)];
        if (!bytes_of(store, i)) continue;
        status = hdl_store_take(store, &slabs, i, &as);
        if (!status && (!plan || w->dtype != made_for->dtype || w->shape.dims[0] != made_for->shape.dims[0] ||
                        w->shape.dims[1] != made_for->shape.dims[1])) {
            hd_plan_destroy(plan);
            plan = NULL;
            status = make_plan(store, w, &plan);
            made_for = w;
        }
        if (!status) status = convert(w, &store->places[i], &store->halves[i], plan);
    }
    hd_plan_destroy(plan);
    if (!status) hdl_store_show(store, found);
    return status;
}

hd_status hdl_store_make_halves(hdl_store *store) {
    const hd_model *model = store->model;
    const uint32_t before = store->content_count;
    const uint64_t shared = store->shared_bytes;
    hd_status status = hdl_store_find_halves(store);
    if (!status) status = make(store);
    if (!status) return HD_OK;
    store->shared_bytes = shared;
    while (store->content_count > before) hdl_content_release(store->contents[--store->content_count]);
    hdl_free(&model->allocator, store->halves, model->weight_count * sizeof *store->halves);
    store->halves = NULL;
    return status == HD_STATUS_OUT_OF_DEVICE_MEMORY ? HD_OK : status;
}
