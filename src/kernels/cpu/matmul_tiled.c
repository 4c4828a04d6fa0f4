/* matmul_tiled.c: a tile of C = chain(A x B) for each group. Exact mode sums in the order of abi.h; fast mode is the
 * blocked product of sgemm.h, run as one task: the device's own workers share out the tiles. Scratch is the
 * worker's. */
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/sgemm.h"

/* A tile of the product, as sgemm's call-backs see it. */
typedef struct tile {
    const hdcpu_product *product;
    uint32_t m0, n0;
} tile;

static void load_a(void *user, int64_t m, int64_t k, int64_t count, float *out) {
    const tile *t = user;
    const hdcpu_product *p = t->product;
    hdcpu_gather(p->a_type, p->a, hdcpu_a_at(p, t->m0 + (uint32_t)m) + (uint64_t)k * p->a_col, p->a_col,
                 (uint32_t)count, out);
}

static void load_b(void *user, int64_t n, int64_t k, int64_t count, float *out) {
    const tile *t = user;
    const hdcpu_product *p = t->product;
    const uint64_t line = p->b_first + (t->n0 + (uint64_t)n) * p->b_col + (uint64_t)k * p->b_row;
    if (p->b_row == 1) {
        hdcpu_load_floats(p->b_type, p->b, line, (uint64_t)count, out);
    } else {
        for (int64_t i = 0; i < count; i++) out[i] = hdcpu_load_any(p->b_type, p->b, line + (uint64_t)i * p->b_row);
    }
}

static void finish(void *user, float *row, int64_t m, int64_t n, int64_t count) {
    const tile *t = user;
    hdcpu_store_sums(t->product, t->m0 + (uint32_t)m, t->n0 + (uint32_t)n, (uint32_t)count, row);
}

static void fast_tile(const hdcpu_product *p, uint32_t m0, uint32_t m_count, uint32_t n0, uint32_t n_count,
                      float *scratch) {
    tile t = { p, m0, n0 };
    const uint32_t a_bytes = hdcpu_block_bytes(p->a_type), b_bytes = hdcpu_block_bytes(p->b_type);
    const bool packed = hdcpu_block_elements(p->b_type) > 1;
    hdcpu_sgemm job = {
        .m = m_count, .n = n_count, .k = p->k,
        .a = { (const uint8_t *)p->a + (p->a_first + m0 * p->a_row) * a_bytes, (hd_dtype)p->a_type, (int64_t)p->a_row,
               (int64_t)p->a_col },
        .c = scratch, .c_row_stride = n_count,
        .load_a = p->rows ? load_a : NULL, .load_b = packed ? load_b : NULL, .load_user = &t,
        .finish = finish, .finish_user = &t,
        .blocking = hdcpu_sgemm_plan(NULL, m_count, n_count, p->k, 1),
    };
    if (!packed)
        job.b = (hdcpu_matrix){ (const uint8_t *)p->b + (p->b_first + n0 * p->b_col) * b_bytes, (hd_dtype)p->b_type,
                                (int64_t)p->b_row, (int64_t)p->b_col };
    scratch += HDCPU_MATMUL_TILE_FLOATS(m_count, n_count);
    for (uint32_t task = 0; task < job.blocking.task_count; task++) hdcpu_sgemm_task(&job, task, scratch);
}

HDCPU_KERNEL(matmul_tiled) {
    const hdcpu_product p = hdcpu_product_of(call, group_z);
    const uint32_t m0 = group_y * call->spec[HDI_MM_TILE_M], n0 = group_x * call->spec[HDI_MM_TILE_N];
    if (m0 >= p.m || n0 >= p.n) return;
    const uint32_t m_count = HDI_MIN(p.m - m0, call->spec[HDI_MM_TILE_M]),
                   n_count = HDI_MIN(p.n - n0, call->spec[HDI_MM_TILE_N]);
    (call->spec[HDI_SPEC_EXACT] ? hdcpu_exact_tile : fast_tile)(&p, m0, m_count, n0, n_count, call->scratch);
}
