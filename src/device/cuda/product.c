/* product.c: matrix products by cuBLASLt, a kernel like the others but for its code: what cmds/library.h asks for
 * becomes descriptions and an algorithm when it is loaded, and one call on the stream when it runs, which a capture
 * records. The library counts along columns, so what it is asked for is the product turned round: C' = B' x A'. */
#include "device/cuda/cu.h"

/* The library's own numbers. */
enum { REAL_F32 = 0, REAL_F16 = 2, REAL_BF16 = 14, COMPUTE_F32 = 68, TRANSPOSED = 1 };
enum { DESC_TRANSPOSE_A = 3, DESC_TRANSPOSE_B = 4, DESC_BEHIND = 7, DESC_ROW = 8, BEHIND_ADDS_ROW = 4 };
enum { LAYOUT_BATCH = 5, LAYOUT_BATCH_OFFSET = 6, SEARCH_WORKSPACE = 1, SEARCH_SUMS = 3,
       SEARCH_ALIGN_A = 5, SEARCH_ALIGN_D = 8, SUMS_IN_F32 = 1 | 2 /* parts of K are added in place, or as f32 */ };

struct hdcu_product {
    hdcu_blas_desc   desc;
    hdcu_blas_layout first, second, result; /* B', A' and C' */
    hdcu_blas_algo   algo;
    uint64_t         first_bytes, second_bytes; /* where they begin */
    bool             adds, adds_row;
};

/* One matrix: `rows` along its lines, `columns` of them. */
typedef struct matrix {
    int      type;
    uint64_t rows, columns;
    int64_t  line, batch_offset;
} matrix;

static int type_of(uint32_t dtype) { return dtype == HD_F16 ? REAL_F16 : dtype == HD_BF16 ? REAL_BF16 : REAL_F32; }

static bool make_layout(hdcu_api *api, const matrix *m, int32_t batch, hdcu_blas_layout *out) {
    if (!HDCU_CALL(api, BlasLayoutCreate, out, m->type, m->rows, m->columns, m->line)) {
        *out = NULL;
        return false;
    }
    return HDCU_CALL(api, BlasLayoutSet, *out, LAYOUT_BATCH, &batch, sizeof batch) &&
           HDCU_CALL(api, BlasLayoutSet, *out, LAYOUT_BATCH_OFFSET, &m->batch_offset, sizeof m->batch_offset);
}

/* A row of C is a column of C', as the library's bias is. Its type is that of C'. */
static bool set_row(hdcu_api *api, const hdcu_product *p, uint64_t address) {
    const uint32_t behind = BEHIND_ADDS_ROW;
    return HDCU_CALL(api, BlasDescSet, p->desc, DESC_BEHIND, &behind, sizeof behind) &&
           HDCU_CALL(api, BlasDescSet, p->desc, DESC_ROW, &address, sizeof address);
}

static bool describe(hdcu_api *api, const uint32_t *spec, hdcu_product *p) {
    const uint64_t m = spec[HDI_PRODUCT_M], n = spec[HDI_PRODUCT_N], k = spec[HDI_PRODUCT_K];
    const bool a_along = spec[HDI_PRODUCT_A_ALONG_K], b_along = spec[HDI_PRODUCT_B_ALONG_K];
    const int32_t batch = (int32_t)spec[HDI_PRODUCT_BATCH], transposed = TRANSPOSED;
    const matrix a = { type_of(spec[HDI_PRODUCT_A_TYPE]), a_along ? k : m, a_along ? m : k, spec[HDI_PRODUCT_A_LINE],
                       spec[HDI_PRODUCT_A_BATCH] };
    const matrix b = { type_of(spec[HDI_PRODUCT_B_TYPE]), b_along ? k : n, b_along ? n : k, spec[HDI_PRODUCT_B_LINE],
                       spec[HDI_PRODUCT_B_BATCH] };
    const matrix c = { type_of(spec[HDI_PRODUCT_OUT_TYPE]), n, m, (int64_t)n, (int64_t)(m * n) };
    if (!HDCU_CALL(api, BlasDescCreate, &p->desc, COMPUTE_F32, REAL_F32)) {
        p->desc = NULL;
        return false;
    }
    if (b_along && !HDCU_CALL(api, BlasDescSet, p->desc, DESC_TRANSPOSE_A, &transposed, sizeof transposed))
        return false;
    if (!a_along && !HDCU_CALL(api, BlasDescSet, p->desc, DESC_TRANSPOSE_B, &transposed, sizeof transposed))
        return false;
    if (p->adds_row && !set_row(api, p, HDI_PRODUCT_ALIGN)) return false; /* anywhere: how it is aligned is looked at */
    return make_layout(api, &b, batch, &p->first) && make_layout(api, &a, batch, &p->second) &&
           make_layout(api, &c, batch, &p->result);
}

/* The algorithm that the library thinks the best of those that keep their sums in f32. `*out_found`: it knows one. */
static bool choose(hdcu_api *api, hdcu_blas library, uint64_t workspace_bytes, hdcu_product *p, bool *out_found) {
    const uint32_t sums = SUMS_IN_F32, align = HDI_PRODUCT_ALIGN;
    const size_t most = (size_t)workspace_bytes;
    hdcu_blas_search search = NULL;
    hdcu_blas_found found = { .state = 0 };
    int count = 0;
    if (!HDCU_CALL(api, BlasSearchCreate, &search)) return false;
    bool fine = HDCU_CALL(api, BlasSearchSet, search, SEARCH_WORKSPACE, &most, sizeof most) &&
                HDCU_CALL(api, BlasSearchSet, search, SEARCH_SUMS, &sums, sizeof sums);
    for (int attribute = SEARCH_ALIGN_A; attribute <= SEARCH_ALIGN_D && fine; attribute++)
        fine = HDCU_CALL(api, BlasSearchSet, search, attribute, &align, sizeof align);
    fine = fine && HDCU_CALL(api, BlasFind, library, p->desc, p->first, p->second, p->result, p->result, search, 1,
                             &found, &count);
    const hdcu_function function = hdcu_last.function;
    const int result = hdcu_last.result;
    api->BlasSearchDestroy(search);
    hdcu_last.function = function;
    hdcu_last.result = result;
    *out_found = count == 1 && found.state == HDCU_SUCCESS && found.workspace_bytes <= most;
    p->algo = found.algo;
    return fine;
}

/* Opens the library for the first product. Called with the lock held. */
static hd_status open_library(hdi_backend_device *device, const hdi_module *module, hd_error *error) {
    hdcu_api *api = &device->api;
    if (!api->BlasCreate && (!api->multiplies || !hdcu_load_products(api)))
        return hdi_fail_native(error, HD_STATUS_RUNTIME_NOT_FOUND, device->found.info.backend, 0,
                               "kernel %s: the library of matrix products cannot be opened: %s", module->name,
                               api->products[0] ? api->products : "there is none");
    if (device->blas || HDCU_CALL(api, BlasCreate, &device->blas)) return HD_OK;
    device->blas = NULL;
    return hdcu_fail(api, error, "opening the library of matrix products");
}

hd_status hdcu_product_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                            hdcu_product **out_product, hd_error *error) {
    hdcu_api *api = &device->api;
    const uint32_t *spec = kernel->spec;
    bool found = false;
    hdcu_product *p = *out_product = hdi_alloc(device->host->allocator, sizeof *p);
    if (!p)
        return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, device->found.info.backend, 0,
                               "no memory for kernel %s", module->name);
    p->first_bytes = hd_dtype_bytes((hd_dtype)spec[HDI_PRODUCT_B_TYPE], spec[HDI_PRODUCT_B_FIRST]);
    p->second_bytes = hd_dtype_bytes((hd_dtype)spec[HDI_PRODUCT_A_TYPE], spec[HDI_PRODUCT_A_FIRST]);
    p->adds = spec[HDI_PRODUCT_ADDS] & HDI_PRODUCT_ADDS_MATRIX;
    p->adds_row = spec[HDI_PRODUCT_ADDS] & HDI_PRODUCT_ADDS_ROW;
    hdi_mutex_lock(&device->inflight.kernels_lock);
    const hd_status opened = open_library(device, module, error);
    hdi_mutex_unlock(&device->inflight.kernels_lock);
    if (opened) return opened;
    if (!describe(api, spec, p) || !choose(api, device->blas, spec[HDI_PRODUCT_WORKSPACE], p, &found))
        return hdcu_fail(api, error, "kernel %s", module->name);
    if (!found)
        return hdi_fail_native(error, HD_STATUS_PIPELINE_CREATION, device->found.info.backend, 0,
                               "kernel %s: the library knows no way for a product of %u x %u x %u", module->name,
                               spec[HDI_PRODUCT_M], spec[HDI_PRODUCT_N], spec[HDI_PRODUCT_K]);
    return HD_OK;
}

void hdcu_product_end(hdi_backend_device *device, hdcu_product *p) {
    if (!p) return;
    HDCU_END(device, BlasLayoutDestroy, p->first);
    HDCU_END(device, BlasLayoutDestroy, p->second);
    HDCU_END(device, BlasLayoutDestroy, p->result);
    HDCU_END(device, BlasDescDestroy, p->desc);
    hdi_free(device->host->allocator, p, sizeof *p);
}

bool hdcu_product_run(hdi_backend_device *device, const hdcu_product *p,
                      const uint64_t addresses[HDI_PRODUCT_BINDINGS], uint64_t workspace_bytes) {
    const float one = 1, addends = p->adds;
    const uint64_t addend = addresses[p->adds ? 4 : 2];
    if (p->adds_row && !set_row(&device->api, p, addresses[5])) return false;
    return HDCU_CALL(&device->api, BlasMultiply, device->blas, p->desc, &one, addresses[1] + p->first_bytes, p->first,
                     addresses[0] + p->second_bytes, p->second, &addends, addend, p->result, addresses[2], p->result,
                     &p->algo, addresses[3], (size_t)workspace_bytes, device->streams[HDI_QUEUE_COMPUTE]);
}
