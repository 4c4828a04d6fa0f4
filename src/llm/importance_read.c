/* importance_read.c: importance files as anybody may have made them. */
#include "llm/importance.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

hd_status hdl_importance_open(const char *path, const hd_allocator *allocator, hdl_gguf **out_file, hd_error *error) {
    hdl_span type;
    char quoted[HDL_QUOTE];
    hd_status status = hdl_gguf_open(path, &(hdl_gguf_desc){ .allocator = allocator }, out_file, error);
    if (!status) status = hdl_gguf_get_text(*out_file, "general.type", hdl_text("model"), &type, error);
    if (!status && !hdl_same(type, hdl_text(HDL_IMPORTANCE_TYPE)))
        status = hdl_fail(error, HD_STATUS_UNSUPPORTED, "general.type is %s: the file is no importance file",
                          hdl_quote(type, quoted));
    return status;
}

/* A tensor beside a matrix: f32, and of so many elements. */
static hd_status find(const hdl_gguf *file, const hdl_gguf_tensor *matrix, const char *kind, uint64_t elements,
                      hdl_gguf_tensor *out, hd_error *error) {
    char name[2 * HDL_GGUF_MAX_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s%s", (int)matrix->name.count, (const char *)matrix->name.bytes, kind);
    if (!hdl_gguf_find_tensor(file, name, out))
        return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "the importance file has no %s", name);
    const uint64_t count = hd_shape_elements(out->shape);
    if (out->type != HDL_GGUF_TYPE_F32)
        return hdl_fail(error, HD_STATUS_TYPE, "%s of the importance file is %s, not f32", name,
                        hdl_gguf_type_info(out->type).name);
    if (count != elements)
        return hdl_fail(error, HD_STATUS_SHAPE,
                        "%s of the importance file has %llu elements, and the matrix takes %llu", name,
                        (unsigned long long)count, (unsigned long long)elements);
    return HD_OK;
}

/* Its elements, none of them NaN, infinite or negative. */
static hd_status read(hdl_gguf *file, const hdl_gguf_tensor *tensor, float *out, hd_error *error) {
    char quoted[HDL_QUOTE];
    const uint64_t count = hd_shape_elements(tensor->shape);
    const hd_status status = hdl_gguf_read(file, tensor, 0, count * sizeof *out, out, error);
    for (uint64_t i = 0; i < count && !status; i++)
        if (!(isfinite(out[i]) && out[i] >= 0))
            return hdl_fail(error, HD_STATUS_PARSE,
                            "%s of the importance file holds NaN, infinity or a negative number",
                            hdl_quote(tensor->name, quoted));
    return status;
}

bool hdl_importance_has(const hdl_gguf *file, const hdl_gguf_tensor *matrix) {
    hdl_gguf_tensor sums;
    char name[2 * HDL_GGUF_MAX_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s" HDL_IMPORTANCE_SUMS, (int)matrix->name.count, (const char *)matrix->name.bytes);
    return hdl_gguf_find_tensor(file, name, &sums);
}

hd_status hdl_importance_read(hdl_gguf *file, const hdl_gguf_tensor *matrix, float *out_means, float *out_counts,
                              hd_error *error) {
    const uint64_t experts = hdl_importance_experts(matrix),
                   columns = (uint64_t)matrix->shape.dims[matrix->shape.rank - 1];
    hdl_gguf_tensor sums, counts;
    hd_status status = find(file, matrix, HDL_IMPORTANCE_SUMS, experts * columns, &sums, error);
    if (!status) status = find(file, matrix, HDL_IMPORTANCE_COUNTS, experts, &counts, error);
    if (!status) status = read(file, &sums, out_means, error);
    if (!status) status = read(file, &counts, out_counts, error);
    for (uint64_t i = 0; i < experts * columns && !status; i++) {
        const float count = out_counts[i / columns];
        out_means[i] = count > 0 ? (float)((double)out_means[i] / (double)count) : 1;
        if (!isfinite(out_means[i])) out_means[i] = FLT_MAX;
    }
    return status;
}
