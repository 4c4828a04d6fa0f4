/* adapter.c: low-rank adapters in memory, and as GGUF files as llama.cpp has them. */
#include "llm/adapter.h"
#include "llm/gguf_write.h"
#include <math.h>
#include <stdio.h>

static const char kind[] = "adapter";

hd_status hdl_adapter_find(void *adapter_at) {
    void *handle;
    memcpy(&handle, adapter_at, sizeof handle);
    const hd_adapter *adapter = hd_handle_find(handle, kind);
    if (!adapter) return hd_handle_refuse(handle, kind);
    memcpy(adapter_at, &adapter, sizeof adapter);
    return hdl_context_lives(adapter->context);
}

const hd_adapter_pair *hdl_adapter_pair_of(const hd_adapter *adapter, hdl_span weight) {
    for (size_t i = 0; i < adapter->count; i++)
        if (hdl_same(hdl_text(adapter->pairs[i].weight), weight)) return &adapter->pairs[i];
    return NULL;
}

float hdl_adapter_scale(const hd_adapter *adapter, const hd_adapter_pair *pair, float strength) {
    return adapter->alpha != 0 ? strength * adapter->alpha / (float)pair->rank : strength;
}

/* ---- making ---- */

static uint64_t a_bytes(const hd_adapter_pair *p) { return (uint64_t)p->rank * p->columns * sizeof(float); }
static uint64_t b_bytes(const hd_adapter_pair *p) { return (uint64_t)p->rank * p->rows * sizeof(float); }
static void free_floats(const hd_allocator *allocator, const float *floats, uint64_t bytes) {
    hdl_free(allocator, (void *)(uintptr_t)floats, bytes);
}

static hd_status no_memory(hd_error *error) {
    return hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an adapter");
}

/* An adapter with room for pairs. */
static hd_status begin(hd_context *context, hdl_span architecture, float alpha, size_t most, hd_adapter **out,
                       hd_error *error) {
    const hd_allocator allocator = hd_context_allocator(context);
    char quoted[HDL_QUOTE];
    if (!isfinite(alpha)) return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "an adapter's alpha is no number");
    if (most == 0) return hdl_fail(error, HD_STATUS_ZERO_SIZE, "an adapter of no weights");
    if (most > HDL_MOST_PAIRS)
        return hdl_fail(error, HD_STATUS_LIMIT, "an adapter of more than %d weights", (int)HDL_MOST_PAIRS);
    if (architecture.count >= sizeof (*out)->architecture)
        return hdl_fail(error, HD_STATUS_LIMIT, "the architecture %s has a name that is too long",
                        hdl_quote(architecture, quoted));
    hd_adapter *adapter = hdl_alloc(&allocator, sizeof *adapter);
    if (!adapter) return no_memory(error);
    *adapter = (hd_adapter){ .context = context, .allocator = allocator, .alpha = alpha };
    memcpy(adapter->architecture, architecture.bytes, (size_t)architecture.count);
    adapter->pairs = hdl_alloc(&allocator, most * sizeof *adapter->pairs);
    adapter->names = hdl_alloc(&allocator, most * sizeof *adapter->names);
    adapter->count = most;
    *out = adapter;
    return adapter->pairs && adapter->names ? HD_OK : no_memory(error);
}

static void end(hd_adapter *adapter) {
    const hd_allocator allocator = adapter->allocator;
    for (size_t i = 0; i < adapter->count && adapter->pairs; i++) {
        free_floats(&allocator, adapter->pairs[i].a, a_bytes(&adapter->pairs[i]));
        free_floats(&allocator, adapter->pairs[i].b, b_bytes(&adapter->pairs[i]));
    }
    hdl_free(&allocator, adapter->pairs, adapter->count * sizeof *adapter->pairs);
    hdl_free(&allocator, adapter->names, adapter->count * sizeof *adapter->names);
    hdl_free(&allocator, adapter, sizeof *adapter);
}

/* Room for pair number `at`, whose figures are checked. */
static hd_status add(hd_adapter *adapter, size_t at, hdl_span weight, hd_adapter_pair figures, float **out_a,
                     float **out_b, hd_error *error) {
    char quoted[HDL_QUOTE];
    hd_adapter_pair *pair = &adapter->pairs[at];
    if (weight.count + strlen(HDL_LORA_A) >= sizeof *adapter->names || weight.count == 0)
        return hdl_fail(error, HD_STATUS_LIMIT, "the name of weight %s is too long", hdl_quote(weight, quoted));
    if (figures.rank < 1 || figures.rank > HDL_MOST_RANK || figures.rows < 1 || figures.columns < 1)
        return hdl_fail(error, HD_STATUS_LIMIT, "%s: an adapter of rank %u for %u x %u weights",
                        hdl_quote(weight, quoted), figures.rank, figures.rows, figures.columns);
    memcpy(adapter->names[at], weight.bytes, (size_t)weight.count);
    *out_a = hdl_alloc(&adapter->allocator, a_bytes(&figures));
    *out_b = hdl_alloc(&adapter->allocator, b_bytes(&figures));
    *pair = (hd_adapter_pair){ adapter->names[at], figures.rank, figures.rows, figures.columns, *out_a, *out_b };
    return *out_a && *out_b ? HD_OK : no_memory(error);
}

/* Gives the adapter out, or ends what there is of it. */
static hd_status finish(hd_context *context, hd_adapter *adapter, hd_status status, const hd_error *error,
                        hd_adapter **out) {
    if (status) hd_context_put_error(context, error);
    else status = hd_handle_new(context, kind, adapter, &adapter->handle);
    if (status && adapter) end(adapter);
    else if (!status) *out = adapter->handle;
    return status;
}

hd_status hd_adapter_create(hd_context *context, const char *architecture, float alpha, const hd_adapter_pair *pairs,
                            size_t count, hd_adapter **out_adapter) {
    hd_error error = { 0 };
    hd_adapter *adapter = NULL;
    if (out_adapter) *out_adapter = NULL;
    if (!context || !architecture || !out_adapter || (count > 0 && !pairs)) return HD_STATUS_NULL_POINTER;
    hd_status status = begin(context, hdl_text(architecture), alpha, count, &adapter, &error);
    for (size_t i = 0; i < count && !status; i++) {
        float *a, *b;
        if (!pairs[i].weight || !pairs[i].a || !pairs[i].b)
            status = hdl_fail(&error, HD_STATUS_NULL_POINTER, "pair %zu lacks a part", i);
        for (size_t k = 0; k < i && !status; k++)
            if (strcmp(pairs[k].weight, pairs[i].weight) == 0)
                status = hdl_fail(&error, HD_STATUS_NAME_TAKEN, "two pairs for %.64s", pairs[i].weight);
        if (!status) status = add(adapter, i, hdl_text(pairs[i].weight), pairs[i], &a, &b, &error);
        if (!status) memcpy(a, pairs[i].a, a_bytes(&pairs[i]));
        if (!status) memcpy(b, pairs[i].b, b_bytes(&pairs[i]));
    }
    return finish(context, adapter, status, &error, out_adapter);
}

void hd_adapter_destroy(hd_adapter *adapter) {
    void *handle = adapter;
    hd_adapter *found = hd_handle_find(handle, kind);
    if (found && hd_handle_end(handle)) end(found);
}

size_t hd_adapter_count(const hd_adapter *adapter) { return hdl_adapter_find(&adapter) ? 0 : adapter->count; }
const hd_adapter_pair *hd_adapter_get(const hd_adapter *adapter, size_t index) {
    return !hdl_adapter_find(&adapter) && index < adapter->count ? &adapter->pairs[index] : NULL;
}
float hd_adapter_alpha(const hd_adapter *adapter) { return hdl_adapter_find(&adapter) ? 0 : adapter->alpha; }
const char *hd_adapter_architecture(const hd_adapter *adapter) {
    return hdl_adapter_find(&adapter) ? "" : adapter->architecture;
}

/* ---- reading ---- */

static bool ends_with(hdl_span name, const char *ending) {
    const size_t count = strlen(ending);
    return name.count > count && memcmp(name.bytes + name.count - count, ending, count) == 0;
}

static hd_status check_keys(const hdl_gguf *gguf, hd_error *error) {
    static const char *const known[] = { "adapter.type", "adapter.lora.alpha", "adapter.lora.task_name" };
    hdl_span type, low_rank;
    char quoted[HDL_QUOTE];
    hd_status status = hdl_gguf_get_text(gguf, "general.type", hdl_text("model"), &type, error);
    if (!status && !hdl_same(type, hdl_text("adapter")))
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "general.type is %s: the file is no adapter",
                          hdl_quote(type, quoted));
    if (!status) status = hdl_gguf_get_text(gguf, "adapter.type", hdl_text("none"), &low_rank, error);
    if (!status && !hdl_same(low_rank, hdl_text("lora")))
        status =
            hdl_fail(error, HD_STATUS_UNSUPPORTED, "adapter.type is %s; heddle runs lora", hdl_quote(low_rank, quoted));
    for (uint32_t i = 0; i < hdl_gguf_get_info(gguf).key_count && !status; i++) {
        const hdl_span name = hdl_gguf_key(gguf, i).name;
        bool fine = name.count < 8 || memcmp(name.bytes, "adapter.", 8) != 0;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) fine = fine || hdl_same(name, hdl_text(known[k]));
        if (!fine)
            status = hdl_fail(error, HD_STATUS_UNSUPPORTED,
                              "key %s may change what the adapter does, and heddle does not know it",
                              hdl_quote(name, quoted));
    }
    return status;
}

/* Elements of a tensor as f32. */
static hd_status read_floats(hdl_gguf *gguf, const hdl_gguf_tensor *tensor, float *out, hd_error *error) {
    hdl_span data;
    char quoted[HDL_QUOTE];
    const uint64_t count = hd_shape_elements(tensor->shape);
    hd_status status = hdl_gguf_data(gguf, tensor, &data, error);
    if (status) return status;
    if (hd_dequantize(hdl_gguf_dtype(tensor->type), data.bytes, count, out))
        return hdl_fail(error, HD_STATUS_TYPE, "%s is of type %s", hdl_quote(tensor->name, quoted),
                        hdl_gguf_type_info(tensor->type).name);
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(out[i]))
            return hdl_fail(error, HD_STATUS_PARSE, "%s holds NaN or infinity", hdl_quote(tensor->name, quoted));
    return HD_OK;
}

static hd_status read_pair(hd_adapter *adapter, size_t at, hdl_gguf *gguf, const hdl_gguf_tensor *down,
                           hd_error *error) {
    char name[HDL_GGUF_MAX_NAME_BYTES + 1], quoted[HDL_QUOTE];
    const hdl_span weight = { down->name.bytes, down->name.count - strlen(HDL_LORA_A) };
    hdl_gguf_tensor up;
    float *a, *b;
    snprintf(name, sizeof name, "%.*s" HDL_LORA_B, (int)weight.count, (const char *)weight.bytes);
    if (!hdl_gguf_find_tensor(gguf, name, &up))
        return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "%s is there, and its other half is not",
                        hdl_quote(down->name, quoted));
    const int64_t most = UINT32_MAX;
    if (down->shape.rank != 2 || up.shape.rank != 2 || up.shape.dims[1] != down->shape.dims[0] ||
        up.shape.dims[0] > most || down->shape.dims[1] > most || down->shape.dims[0] > HDL_MOST_RANK)
        return hdl_fail(error, HD_STATUS_SHAPE, "%s: the shapes of its halves do not fit together",
                        hdl_quote(weight, quoted));
    const hd_adapter_pair figures = { .rank = (uint32_t)down->shape.dims[0], .rows = (uint32_t)up.shape.dims[0],
                                      .columns = (uint32_t)down->shape.dims[1] };
    hd_status status = add(adapter, at, weight, figures, &a, &b, error);
    if (!status) status = read_floats(gguf, down, a, error);
    return status ? status : read_floats(gguf, &up, b, error);
}

static hd_status read_all(hd_context *context, hdl_gguf *gguf, hd_adapter **out, hd_error *error) {
    const uint32_t tensors = hdl_gguf_get_info(gguf).tensor_count;
    size_t count = 0;
    hdl_span architecture;
    char quoted[HDL_QUOTE];
    float alpha;
    hd_status status = check_keys(gguf, error);
    if (!status) status = hdl_gguf_get_text(gguf, "general.architecture", hdl_text(""), &architecture, error);
    if (!status) status = hdl_gguf_get_f32(gguf, "adapter.lora.alpha", -1e30f, 1e30f, 0, &alpha, error);
    for (uint32_t i = 0; i < tensors && !status; i++) {
        const hdl_span name = hdl_gguf_tensor_at(gguf, i).name;
        count += ends_with(name, HDL_LORA_A);
        if (!ends_with(name, HDL_LORA_A) && !ends_with(name, HDL_LORA_B))
            status =
                hdl_fail(error, HD_STATUS_UNSUPPORTED, "tensor %s is none that a lora has", hdl_quote(name, quoted));
    }
    if (!status && 2 * count != tensors)
        status = hdl_fail(error, HD_STATUS_NAME_NOT_FOUND,
                          "%zu tensors of %u end with " HDL_LORA_A ": halves are missing", count, tensors);
    if (!status) status = begin(context, architecture, alpha, count, out, error);
    size_t at = 0;
    for (uint32_t i = 0; i < tensors && !status; i++) {
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(gguf, i);
        if (ends_with(tensor.name, HDL_LORA_A)) status = read_pair(*out, at++, gguf, &tensor, error);
    }
    return status;
}

hd_status hd_adapter_read(hd_context *context, const char *path, hd_adapter **out_adapter) {
    hd_error error = { 0 };
    hd_adapter *adapter = NULL;
    hdl_gguf *gguf = NULL;
    if (out_adapter) *out_adapter = NULL;
    if (!context || !path || !out_adapter) return HD_STATUS_NULL_POINTER;
    const hd_allocator allocator = hd_context_allocator(context);
    hd_status status = hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = &allocator }, &gguf, &error);
    if (!status) status = read_all(context, gguf, &adapter, &error);
    hdl_gguf_close(gguf);
    return finish(context, adapter, status, &error, out_adapter);
}

/* ---- writing ---- */

hd_status hd_adapter_write(const hd_adapter *adapter, const char *path) {
    hd_error error = { 0 };
    hd_status status = hdl_adapter_find(&adapter);
    if (status || !path) return status ? status : HD_STATUS_NULL_POINTER;
    hdl_gguf_writer *writer = hdl_gguf_writer_create(&adapter->allocator, 0);
    if (!writer) {
        no_memory(&error);
        return hd_context_put_error(adapter->context, &error);
    }
    hdl_gguf_put_text(writer, "general.architecture", hdl_text(adapter->architecture));
    hdl_gguf_put_text(writer, "general.type", hdl_text("adapter"));
    hdl_gguf_put_text(writer, "adapter.type", hdl_text("lora"));
    hdl_gguf_put_f32(writer, "adapter.lora.alpha", adapter->alpha);
    for (size_t i = 0; i < 2 * adapter->count; i++) {
        const hd_adapter_pair *pair = &adapter->pairs[i / 2];
        char name[HDL_GGUF_MAX_NAME_BYTES + 1];
        snprintf(name, sizeof name, "%s%s", pair->weight, i % 2 ? HDL_LORA_B : HDL_LORA_A);
        const hd_shape shape = i % 2 ? HD_SHAPE(pair->rows, pair->rank) : HD_SHAPE(pair->rank, pair->columns);
        hdl_gguf_put_tensor(writer, hdl_text(name), HDL_GGUF_TYPE_F32, shape, i % 2 ? pair->b : pair->a);
    }
    status = hdl_gguf_write_file(writer, path, &error);
    hdl_gguf_writer_destroy(writer);
    return status ? hd_context_put_error(adapter->context, &error) : HD_OK;
}
