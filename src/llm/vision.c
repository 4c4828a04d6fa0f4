/* vision.c: what a model sees with: an image as the rows that the model takes in place of tokens. One plan, since all
 * images have one size. */
#include "llm/arch/arch.h"
#include "llm/image.h"
#include "llm/store.h"
#include <math.h>

struct hd_vision {
    hd_model  *model;
    void      *handle;      /* that the caller has */
    hd_device *device, *own_device; /* the second one opened for it, or NULL */
    hdl_store  store;
    hdl_pages  none;        /* there is no cache */
    hd_plan   *plan;
    float     *patches;     /* of one image */
    uint8_t   *resized;
};
static const char kind[] = "vision";

#define FAIL(vision, ...) hdl_model_fail((vision)->model, __VA_ARGS__)

static uint64_t pixels_of(const hd_model *model) {
    return (uint64_t)model->figures.sight.image * model->figures.sight.image;
}
static uint32_t rows_of(const hd_model *model) {
    return model->figures.context / model->figures.sight.merged / model->figures.sight.merged;
}

/* ---- making and ending ---- */

/* Input "patches" f32 [patches,3*P*P], output "rows" f32 [rows,projected]. */
static hd_status make_plan(hd_vision *v, hd_math math) {
    const hd_model *model = v->model;
    const int64_t patches = model->figures.context, side = model->figures.sight.patch;
    hd_program *p = hd_program_create(model->context);
    if (!p) return FAIL(v, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a program");
    hdl_graph g = { .model = model, .program = p, .size = { .sequences = 1, .tokens = model->figures.context } };
    hd_value x = hdl_patches(&g, hd_input(p, "patches", HD_F32, HD_SHAPE(patches, 3 * side * side)));
    for (g.layer = 0; g.layer < model->figures.layers; g.layer++) x = hdl_layer(&g, x);
    hd_output(p, "rows", hdl_project(&g, x));
    hd_status status = hd_program_check(p);
    if (!status) status = hd_plan_create(v->device, p, &(hd_plan_desc){ .math = math, .alone = 1 }, &v->plan);
    hd_program_destroy(p);
    return status ? status : hdl_store_bind(&v->store, v->plan, false, true);
}

static hd_status prepare(hd_vision *v, const hd_vision_desc *desc) {
    hd_model *model = v->model;
    hdl_loading loading = { 0 };
    if (desc->device && hd_device_context(desc->device) != model->context)
        return FAIL(v, HD_STATUS_INVALID_ARGUMENT, "the device was closed, or is of another context");
    hd_status status = desc->device ? HD_OK : hd_device_open(model->context, NULL, &v->own_device);
    if (status) return status;
    v->device = desc->device ? desc->device : v->own_device;
    v->store = (hdl_store){ .model = model, .device = v->device, .pages = &v->none,
                            .part = { .layers = { 0, model->figures.layers }, .embeds = true, .heads = true } };
    v->patches = hdl_alloc(&model->allocator, 3 * pixels_of(model) * sizeof *v->patches);
    v->resized = hdl_alloc(&model->allocator, 3 * pixels_of(model));
    if (!v->patches || !v->resized) return FAIL(v, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an image");
    status = hdl_twins_find(model, v->device);
    if (!status) status = hdl_store_load(&v->store, &loading);
    return status ? status : make_plan(v, desc->math);
}

hd_status hd_vision_open(hd_context *context, const char *path, const hd_vision_desc *desc, hd_vision **out_vision) {
    static const hd_vision_desc defaults = { 0 };
    hd_model *model;
    if (!out_vision) return HD_STATUS_NULL_POINTER;
    *out_vision = NULL;
    hd_status status = hdl_model_open_seeing(context, path, &model);
    if (status) return status;
    hd_vision *v = hdl_alloc(&model->allocator, sizeof *v);
    if (!v) {
        status = hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for what sees");
        hdl_model_release(model);
        return status;
    }
    v->model = model;
    status = prepare(v, desc ? desc : &defaults);
    if (!status) status = hd_handle_new(context, kind, v, &v->handle);
    if (status) hd_vision_close(v);
    else *out_vision = v->handle;
    return status;
}

void hd_vision_close(hd_vision *vision) {
    hd_vision *v = hd_handle_find(vision, kind);
    if (!v || (v->handle && !hd_handle_end(v->handle))) return;
    const hd_allocator allocator = v->model->allocator;
    hd_plan_destroy(v->plan);
    hdl_store_end(&v->store);
    hd_device_close(v->own_device);
    hdl_free(&allocator, v->patches, 3 * pixels_of(v->model) * sizeof *v->patches);
    hdl_free(&allocator, v->resized, 3 * pixels_of(v->model));
    hdl_model_release(v->model);
    hdl_free(&allocator, v, sizeof *v);
}

static hd_status find(void *vision_at) {
    void *handle;
    memcpy(&handle, vision_at, sizeof handle);
    const hd_vision *v = hd_handle_find(handle, kind);
    if (!v) return hd_handle_refuse(handle, kind);
    memcpy(vision_at, &v, sizeof v);
    const hd_status status = hdl_context_lives(v->model->context);
    if (status || hd_device_context(v->device)) return status;
    return FAIL(v, HD_STATUS_STALE_HANDLE, "what sees is used, and its device was closed");
}

hd_status hd_vision_get_info(const hd_vision *vision, hd_vision_info *out_info) {
    const hd_status status = find(&vision);
    if (status || !out_info) return status ? status : HD_STATUS_NULL_POINTER;
    const hd_model *model = vision->model;
    *out_info = (hd_vision_info){ .side = model->figures.sight.image, .rows = rows_of(model),
                                  .hidden = model->figures.sight.projected };
    for (uint32_t i = 0; i < model->weight_count; i++) out_info->weight_bytes += model->weights[i].tensor.bytes;
    return HD_OK;
}

/* ---- seeing ---- */

/* The colours of each patch: [patches][red, green, blue][P][P]. */
static void cut(const hd_vision *v) {
    const hdl_sight *s = &v->model->figures.sight;
    const uint32_t side = s->image / s->patch;
    float *out = v->patches;
    for (uint32_t at = 0; at < side * side; at++)
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = at / side * s->patch, i = 0; i < s->patch; i++)
                for (uint32_t x = at % side * s->patch, k = 0; k < s->patch; k++) {
                    const uint8_t colour = v->resized[((uint64_t)(y + i) * s->image + x + k) * 3 + c];
                    *out++ = ((float)colour / 255 - s->mean[c]) / s->deviation[c];
                }
}

hd_status hd_vision_encode(hd_vision *vision, const hd_image *image, float *out_rows) {
    hd_vision *v = vision;
    hd_status status = find(&v);
    if (status || !image || !image->pixels || !out_rows) return status ? status : HD_STATUS_NULL_POINTER;
    const hd_model *model = v->model;
    const uint64_t count = (uint64_t)rows_of(model) * model->figures.sight.projected;
    hd_error error = { 0 };
    if (hdl_image_resize(&model->allocator, image, model->figures.sight.image, v->resized, &error))
        return hd_context_put_error(model->context, &error);
    cut(v);
    status = hd_plan_write(v->plan, "patches", v->patches, 3 * pixels_of(model) * sizeof *v->patches);
    if (!status) status = hd_plan_run(v->plan, NULL);
    if (!status) status = hd_plan_read(v->plan, "rows", out_rows, count * sizeof *out_rows);
    for (uint64_t i = 0; i < count && !status; i++)
        if (!isfinite(out_rows[i]))
            status = FAIL(v, HD_STATUS_INVALID_ARGUMENT,
                          "a row of the image holds what is not a number: look at the weights of what sees");
    return status;
}
