/* matmul.c: turns a matrix product, as matmul_shape.c brings it into form, into one launch: chooses the first kernel of a
 * short list that fits device, types and sizes, and fills in its constants and words. Pure; relies on abi.h for what each
 * word means. */
#include "cmds/library.h"
#include "kernels/cpu/matmul_native.h"
#include "kernels/rules/matmul.h"
#include "kernels/rows.h"
#include <stdio.h>

enum { FEW_ROWS = 8, BINDINGS = 3 + SOURCES, STREAM_BINDINGS = BINDINGS + 1 };

/* ---- choice ---- */

typedef struct choice {
    hdi_module_id module;
    uint32_t tile_m, tile_n, part_m, part_n, workgroup, subgroup, scratch_bytes;
    bool     merges;
    bool     packs;     /* A is read as bf16 tiles */
    uint32_t parts;     /* of K, each with sums of its own; 0: not divided */
    bool     halves[2]; /* operands that a launch of their own makes f16 first */
    const char *because;
    uint32_t nth;                     /* of the options */
    char     option[HDI_OPTION_NAME]; /* where nth is not 0 */
} choice;

static bool is_exact(const product *p) { return p->request->math == HD_MATH_EXACT; }
/* Is the module, over weights like these, known to be wrong on the device? */
static bool is_wrong(const product *p, hdi_module_id module) {
    return hdi_variant_is_wrong(p->request->caps, (hdi_variant){ module, is_exact(p), UINT64_C(1) << p->b.tensor->dtype });
}
static uint64_t most_invocations(const hdi_caps *caps) { return HDI_MIN(caps->max_workgroup, caps->max_workgroup_x); }
static uint64_t tiles_of(const product *p, uint64_t tile_m, uint64_t tile_n) {
    return hdi_divide_up(p->m, tile_m) * hdi_divide_up(p->n, tile_n) * p->batch;
}

/* Is the norm one that a kernel can make while it reads A: of whole lines of f32? */
static bool norm_fits(const product *p) {
    const hdi_norm *norm = &p->request->a_norm;
    if (!norm->present) return true;
    if (p->a.tensor->dtype != HD_F32 || p->a.depth != 1 || (p->request->attrs->ints[0] & HD_TRANSPOSE_A)) return false;
    return !norm->weighted || (norm->weight.dtype == HD_F32 && hdi_tensor_is_dense(&norm->weight) && norm->weight.first == 0);
}

/* Does the second B lie as the first one does? */
static bool pair_fits(const product *p) {
    const hdi_tensor *first = p->b.tensor, *second = &p->request->inputs[2];
    return !p->request->pair || (first->dtype == second->dtype && first->first == second->first &&
                                 hdi_shape_equal(first->shape, second->shape) &&
                                 memcmp(first->strides, second->strides, first->shape.rank * sizeof first->strides[0]) == 0);
}

static uint32_t sums_of(const product *p, const choice *c) {
    return c->tile_m * (c->tile_n * (p->request->pair ? 2 : 1) + (p->request->a_norm.present ? 1 : 0));
}

/* Each kernel's rules, below, choose constants by themselves, or take those of its alternative `nth`, from 1 on, in the place
 * of what they would choose. */

static bool choose_vector_subgroup(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const struct { uint32_t workgroup, columns; } others[] = { { 64, 2 }, { 64, 4 }, { 128, 2 }, { 128, 4 }, { 256, 2 }, { 256, 4 } };
    if (nth > HDI_COUNT(others)) return false;
    if (is_exact(p) || p->m > FEW_ROWS || !caps->subgroup_arithmetic || caps->subgroup < 4 || caps->max_bindings < STREAM_BINDINGS) return false;
    if (!p->a.along_k || !p->b.along_k || !p->a.wide || !p->b.wide || p->k % 8 != 0 || !norm_fits(p) || !pair_fits(p)) return false;
    c->tile_m = (uint32_t)p->m;
    c->tile_n = p->m == 1 && hdi_dtype_is_quantised(p->b.tensor->dtype) ? 4 : 2;
    c->workgroup = p->k >= 1024 ? 128 : 64;
    if (nth) c->workgroup = others[nth - 1].workgroup, c->tile_n = others[nth - 1].columns;
    c->because = "few rows of A: weights are streamed once, summed by subgroups";
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= sums_of(p, c) * c->workgroup;
}

static bool choose_vector_dot(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const struct { uint32_t subgroups, columns; } others[] = { { 4, 2 }, { 4, 4 }, { 8, 2 }, { 8, 4 }, { 16, 2 }, { 16, 4 } };
    enum { LONG_K = 8192, MOST_DEPTH = 16384, UNIT = 256, BYTES_A_RUN = 24, RUN = 16 };
    const hdi_tensor *b = p->b.tensor;
    const bool known = b->dtype == HD_Q4_0 || b->dtype == HD_Q8_0 || b->dtype == HD_Q4_K || b->dtype == HD_Q6_K || b->dtype == HD_TQ2_0;
    if (nth > HDI_COUNT(others) || is_exact(p) || p->m > FEW_ROWS || !known || !caps->integer_dot || !caps->subgroup_arithmetic || !caps->subgroup_control) return false;
    if (!p->a.along_k || !p->b.along_k || !p->a.wide || !norm_fits(p) || !pair_fits(p) || caps->max_bindings < STREAM_BINDINGS) return false;
    if (hd_tensor_bytes(b->dtype, b->shape) % 16 != 0) return false; /* its last bytes are read 16 at a time too */
    c->tile_m = (uint32_t)p->m;
    c->part_m = (uint32_t)HDI_MIN(MOST_DEPTH / p->m / UNIT * UNIT, hdi_divide_up(p->k, UNIT) * UNIT);
    /* Measured on an H200: more of a workgroup's time goes into rounding A where K is long, so more subgroups share it; two
     * columns a subgroup leave registers for enough subgroups, and enough workgroups for all units. */
    const bool is_long = p->k >= LONG_K;
    const uint32_t subgroups = nth ? others[nth - 1].subgroups : is_long ? 16 : 8;
    c->part_n = nth ? others[nth - 1].columns : p->m == 1 || is_long ? 2 : 4;
    c->tile_n = subgroups * c->part_n;
    c->subgroup = (uint32_t)caps->subgroup;
    c->workgroup = subgroups * c->subgroup;
    c->because = "few rows of A in 8 bits: quantised weights are streamed once, by integer dot products";
    const uint32_t sums = sums_of(p, c) + subgroups * c->tile_m;
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= c->part_m / RUN * BYTES_A_RUN * c->tile_m + 4 * sums;
}

/* ---- matrix units ---- */

/* Tiles of matmul_matrix and how much of the largest ones' rate each reaches, in percent. Their chunks of 8 halves are a
 * multiple of their invocations. */
static const struct { uint32_t tile_m, tile_n, part_m, part_n, rate; } matrix_tiles[] = {
    { 128, 160, 32, 80, 100 },
    { 128, 128, 64, 32, 100 },
    { 128, 80, 32, 80, 70 },
    { 64, 128, 32, 32, 70 },
    { 64, 64, 32, 32, 55 },
    { 32, 64, 16, 32, 35 },
};
/* What else takes time, as the work that the largest tile does meanwhile (measured on an H200): a workgroup's beginning and
 * end like so much of K, one more launch like so many products, and an element of a sum's operands like so many. */
enum { MOST_PARTS = 4, LEAST_PART = 512, START_DEPTH = 640, LAUNCH_WORK = 3600000, SUM_WORK = 2 };

/* The sum of the parts of K, from `partial` [batch, parts, M, N] on (one part: the product itself), and the product's chain
 * behind it: one element-wise launch over [batch, M, N]. False where a chain cannot hold them. */
static bool chain_of_parts(const product *p, uint32_t parts, uint32_t partial, hdi_chain *out_chain, hdi_tensor *out) {
    const hdi_chain *behind = p->request->chain;
    const hd_shape shape = HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n);
    const uint32_t adds = parts - 1, inputs = parts + p->source_count, steps = adds + (behind ? behind->step_count : 0);
    if (inputs > HDI_CHAIN_INPUTS || steps > HDI_CHAIN_STEPS) return false;
    *out_chain = (hdi_chain){ .step_count = steps, .input_count = inputs };
    *out = hdi_tensor_dense(p->request->out.storage, p->request->out.dtype, shape);
    for (uint32_t i = 0; i < parts; i++) {
        out_chain->inputs[i] = hdi_tensor_dense(partial, parts > 1 ? HD_F32 : p->type, shape);
        out_chain->inputs[i].strides[0] *= parts;
        out_chain->inputs[i].first = i * p->m * p->n;
    }
    for (uint32_t i = 0; i < p->source_count; i++) {
        const source *s = &p->sources[i];
        out_chain->inputs[parts + i] = (hdi_tensor){ s->tensor->storage, s->tensor->dtype, shape, { (int64_t)s->batch, (int64_t)s->m, (int64_t)s->n }, s->tensor->first };
    }
    for (uint32_t i = 0; i < adds; i++)
        out_chain->steps[i] = (hdi_step){ HDI_STEP_ADD, (uint8_t)(i ? HDI_CHAIN_INPUTS + i - 1 : 0), (uint8_t)(i + 1), HDI_SOURCE_NONE,
                                          i + 1 == adds ? p->type : HD_F32, 0 };
    for (uint32_t i = adds; i < steps; i++) {
        hdi_step *step = &out_chain->steps[i];
        *step = behind->steps[i - adds];
        uint8_t *sources[] = { &step->a, &step->b, &step->c };
        for (uint32_t k = 0; k < HDI_COUNT(sources); k++) {
            if (*sources[k] == HDI_SOURCE_NONE) continue;
            if (*sources[k] == 0) *sources[k] = adds ? (uint8_t)(HDI_CHAIN_INPUTS + adds - 1) : 0; /* the product itself */
            else *sources[k] = (uint8_t)(*sources[k] + adds); /* later inputs and later steps alike */
        }
    }
    if (behind) memcpy(out_chain->attrs, behind->attrs, sizeof behind->attrs);
    out_chain->attr_count = behind ? behind->attr_count : 0;
    return hdi_chain_fits(out_chain, out, p->request->caps);
}

/* Lines of a tile are HDI_MM_DEPTH halves and 8 more apart. */
static uint64_t matrix_shared_bytes(uint32_t tile) {
    return (uint64_t)(matrix_tiles[tile].tile_m + matrix_tiles[tile].tile_n) * 2 * (HDI_MM_DEPTH + 8);
}

static bool matrix_tile_fits(const product *p, const hdi_caps *caps, uint32_t tile, uint32_t parts) {
    hdi_chain chain;
    hdi_tensor out;
    if (matrix_shared_bytes(tile) > caps->shared_bytes) return false;
    return parts == 1 || (p->k / parts >= LEAST_PART && p->batch * p->m * p->n * parts <= UINT32_MAX && chain_of_parts(p, parts, 0, &chain, &out));
}

static void take_matrix_tile(uint32_t tile, uint32_t parts, choice *c) {
    c->tile_m = matrix_tiles[tile].tile_m;
    c->tile_n = matrix_tiles[tile].tile_n;
    c->part_m = matrix_tiles[tile].part_m;
    c->part_n = matrix_tiles[tile].part_n;
    c->parts = parts;
    c->workgroup = 32 * (c->tile_m / c->part_m) * (c->tile_n / c->part_n);
}

/* The tile and the parts of K that are done first: rounds of workgroups over the device's units, each as long as its tile
 * is large and its part deep, and the sum of the parts behind them. */
static void choose_matrix_tile(const product *p, const hdi_caps *caps, choice *c) {
    const uint64_t units = HDI_MAX(caps->compute_units, 1), sums = p->batch * p->m * p->n;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < HDI_COUNT(matrix_tiles); i++)
        for (uint32_t parts = 1; parts <= MOST_PARTS && matrix_tile_fits(p, caps, i, parts); parts++) {
            const uint64_t area = (uint64_t)matrix_tiles[i].tile_m * matrix_tiles[i].tile_n;
            const uint64_t rounds = hdi_divide_up(tiles_of(p, matrix_tiles[i].tile_m, matrix_tiles[i].tile_n) * parts, units);
            const uint64_t time = rounds * area * (hdi_divide_up(p->k, parts) + START_DEPTH) * 100 / matrix_tiles[i].rate +
                                  (parts > 1 ? LAUNCH_WORK + SUM_WORK * sums * (parts + 1) : 0);
            if (time >= least) continue;
            least = time;
            take_matrix_tile(i, parts, c);
        }
}

/* Does a tensor fill the memory between its first and its last element, each once? */
static bool is_gapless(const hdi_tensor *tensor) {
    uint64_t span = 1;
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++) span += (uint64_t)(tensor->shape.dims[axis] - 1) * (uint64_t)tensor->strides[axis];
    return span == hd_shape_elements(tensor->shape);
}

/* May all of B be made f16 ahead of the product? */
static bool halves_fit(const product *p, const hdi_caps *caps) {
    const uint64_t bytes = 2 * hd_shape_elements(p->b.tensor->shape), most = HDI_MIN(caps->max_binding_bytes, caps->memory_bytes / 64);
    return is_gapless(p->b.tensor) && bytes <= most && !is_wrong(p, HDI_MODULE_HALVES);
}

static bool choose_matrix(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const uint32_t others[] = { 1, 2, 4 }; /* parts of K, for each tile */
    const uint32_t tile = nth ? (nth - 1) / (uint32_t)HDI_COUNT(others) : 0, parts = nth ? others[(nth - 1) % HDI_COUNT(others)] : 0;
    const hdi_tensor *b = p->b.tensor;
    if (is_exact(p) || !caps->matrix_f16 || !caps->f16_arithmetic || !caps->memory_model) return false;
    if (caps->subgroup != 32 && !caps->subgroup_control) return false;
    if (b->dtype == HD_F32) return false; /* f16 would miss the bound of f32 (docs/ops.md) */
    if (p->m <= (nth ? 1 : FEW_ROWS) || p->k < 16 || most_invocations(caps) < 256) return false;
    if (nth && (tile >= HDI_COUNT(matrix_tiles) || !matrix_tile_fits(p, caps, tile, parts))) return false;
    c->subgroup = 32;
    c->because = "many rows of A beside narrow weights: matrix units, sums in f32";
    /* What many tiles would convert is worth a launch that does so once. */
    c->halves[0] = p->a.tensor->dtype != HD_F16 && p->m >= 256 && p->n >= 1024;
    c->halves[1] = hdi_dtype_is_quantised(b->dtype) && p->m > 256 && halves_fit(p, caps);
    if (nth) take_matrix_tile(tile, parts, c);
    else choose_matrix_tile(p, caps, c);
    return c->parts != 0;
}

/* ---- matrix units of a whole workgroup ---- */

/* Both operands as halves, as for matrix units; nothing is fused. The largest tile that leaves no unit idle, else the smallest. */
static bool choose_tensor(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    enum { WORKGROUP = 256, LEAST_SIDE = 64, UNIT = 8 };
    static const struct { uint32_t tile_m, tile_n; } tiles[] = { { 128, 256 }, { 128, 128 }, { 64, 64 } };
    const hd_dtype a = p->a.tensor->dtype, b = p->b.tensor->dtype;
    uint32_t tile = nth ? nth - 1 : 0;
    if (is_exact(p) || !caps->matrix_workgroup || !caps->f16_storage || !caps->f16_arithmetic || !caps->memory_model || most_invocations(caps) < WORKGROUP) return false;
    if (p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE || p->type == HD_BF16 || p->request->chain || tile >= HDI_COUNT(tiles)) return false;
    c->halves[0] = a != HD_F16;
    c->halves[1] = hdi_dtype_is_quantised(b);
    const bool a_fits = c->halves[0] ? p->k % UNIT == 0 && !(p->request->attrs->ints[0] & HD_TRANSPOSE_A) : p->a.wide;
    const bool b_fits = c->halves[1] ? halves_fit(p, caps) : b == HD_F16 && p->b.wide;
    if (!a_fits || !b_fits) return false;
    while (!nth && tile + 1 < HDI_COUNT(tiles) && tiles_of(p, tiles[tile].tile_m, tiles[tile].tile_n) < caps->compute_units) tile++;
    c->tile_m = tiles[tile].tile_m;
    c->tile_n = tiles[tile].tile_n;
    c->workgroup = WORKGROUP;
    c->because = "many rows of A beside halves: matrix units of a whole workgroup, tiles straight from memory";
    return true;
}

/* ---- the device's own library ---- */

/* One that the library can be told of: lines without gaps along one axis, beginning where it may rely on. */
static bool is_plain(const side *s, uint64_t lines, uint64_t depths) {
    const bool apart = s->along_k ? s->depth == 1 && s->line >= depths : s->line == 1 && s->depth >= lines;
    return apart && (s->wide || s->tensor->dtype == HD_F32) && hd_dtype_bytes(s->tensor->dtype, s->first) % HDI_PRODUCT_ALIGN == 0;
}

/* Both operands of one float type, or floats beside weights that are made f16 first, as for matrix units. */
static bool choose_library(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    enum { LEAST_SIDE = 16, LEAST_WORK = 1 << 21, UNIT = 8 };
    const hd_dtype a = p->a.tensor->dtype, b = p->b.tensor->dtype;
    hdi_chain chain;
    hdi_tensor out;
    if (nth || is_exact(p) || !caps->product_library || p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE || p->batch * p->m * p->n * p->k < LEAST_WORK) return false;
    if (p->lengths[0] > 1 || p->lengths[1] > 1 || p->batch * p->m * p->n > INT32_MAX) return false;
    c->halves[0] = a != b && a != HD_F16;
    c->halves[1] = hdi_dtype_is_quantised(b);
    if (a != b && a != HD_F16 && a != HD_F32) return false;
    if (a != b && b != HD_F16 && !(c->halves[1] && halves_fit(p, caps))) return false;
    if (!c->halves[0] && !is_plain(&p->a, p->m, p->k)) return false;
    if (!c->halves[1] && !is_plain(&p->b, p->n, p->k)) return false;
    if (b != HD_F32 && (p->n % UNIT != 0 || p->k % UNIT != 0)) return false; /* of narrow types it takes whole vectors */
    if (hdi_product_is_refused(caps, (const uint64_t[4]){ p->m, p->n, p->k, p->batch })) return false;
    c->because = "many rows of A: the device's own library of matrix products";
    return !p->request->chain || chain_of_parts(p, 1, 0, &chain, &out);
}

/* ---- vector and tiled forms ---- */

static bool choose_vector(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const uint32_t native[] = { 32, 64, 128, 256 };
    static const struct { uint32_t workgroup, columns; } others[] = { { 64, 2 }, { 64, 4 }, { 64, 8 }, { 128, 4 }, { 128, 8 }, { 128, 32 }, { 256, 8 }, { 256, 32 }, { 256, 64 } };
    if (p->m > FEW_ROWS || nth > (caps->native_kernels ? HDI_COUNT(native) : HDI_COUNT(others))) return false;
    c->tile_m = (uint32_t)p->m;
    c->because = is_exact(p) ? "few rows of A: blocks along K side by side, added in order"
                             : "few rows of A: each weight is read once for all of them";
    if (caps->native_kernels) {
        const uint64_t each = hdi_divide_up(p->n * p->batch, 8 * HDI_MAX(caps->threads, 1));
        c->tile_n = nth ? native[nth - 1] : (uint32_t)HDI_MIN(HDI_MAX((each + 31) / 32 * 32, 32), 256);
        const uint64_t bytes = is_exact(p) ? hdcpu_exact_scratch_bytes(c->tile_m, c->tile_n) : hdcpu_vector_scratch_bytes(c->tile_n, p->k);
        c->scratch_bytes = (uint32_t)bytes;
        const bool columns = p->b.depth == 1 && p->b.line % hdi_dtype(p->b.tensor->dtype).block_elements == 0;
        return bytes <= UINT32_MAX && (is_exact(p) || columns);
    }
    c->tile_n = nth ? others[nth - 1].columns : p->b.along_k ? 4 : 32;
    c->workgroup = nth ? others[nth - 1].workgroup : p->b.along_k ? 64 : 128;
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= 4 * c->tile_m * (c->workgroup + c->tile_n);
}

static bool choose_amx(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    const bool columns = p->b.depth == 1 && p->b.line % hdi_dtype(p->b.tensor->dtype).block_elements == 0;
    const hdi_variant packs = { HDI_MODULE_PACK_BF16, false, UINT64_C(1) << p->a.tensor->dtype };
    if (is_exact(p) || !caps->matrix_bf16 || hdi_variant_is_wrong(caps, packs) || p->m <= FEW_ROWS || p->k < 32 || p->k > UINT32_MAX - HDCPU_AMX_DEPTH ||
        p->b.tensor->dtype == HD_F32 || !columns) return false;
    c->tile_m = (uint32_t)HDI_MIN(p->m, HDCPU_AMX_TILE_M);
    c->tile_n = nth ? HDCPU_AMX_TILE_N >> (nth - 1) : HDCPU_AMX_TILE_N;
    if (c->tile_n < 32) return false;
    while (!nth && c->tile_n > 32 && tiles_of(p, c->tile_m, c->tile_n) < 4 * HDI_MAX(caps->threads, 1)) c->tile_n /= 2;
    c->scratch_bytes = (uint32_t)hdcpu_amx_scratch_bytes(c->tile_m, c->tile_n);
    c->packs = true;
    c->because = "narrow weights on a processor with bf16 tiles: rows packed once, columns on the way";
    return true;
}

static bool choose_native_tile(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const struct { uint32_t tile_m, tile_n; } others[] = { { 192, 512 }, { 192, 256 }, { 96, 512 }, { 96, 256 }, { 48, 256 }, { 48, 128 }, { 24, 128 }, { 24, 64 } };
    const uint64_t wanted = 4 * HDI_MAX(caps->threads, 1);
    if (nth > HDI_COUNT(others)) return false;
    c->tile_m = nth ? others[nth - 1].tile_m : 192;
    c->tile_n = nth ? others[nth - 1].tile_n : 512;
    while (!nth && tiles_of(p, c->tile_m, c->tile_n) < wanted && (c->tile_m > 24 || c->tile_n > 64)) {
        if (c->tile_n > 64 && (c->tile_m == 24 || c->tile_n >= 2 * c->tile_m)) c->tile_n /= 2;
        else c->tile_m /= 2;
    }
    const uint64_t bytes = is_exact(p) ? hdcpu_exact_scratch_bytes(c->tile_m, c->tile_n) : hdcpu_fast_scratch_bytes(c->tile_m, c->tile_n, p->k);
    c->scratch_bytes = (uint32_t)bytes;
    c->because = is_exact(p) ? "tiles summed in the order that every device shares" : "tiles packed for the vector units";
    return bytes <= UINT32_MAX;
}

static bool choose_tile(const product *p, const hdi_caps *caps, uint32_t nth, choice *c) {
    static const struct { uint32_t tile, part, workgroup; const char *because; } tiles[] = {
        { 128, 8, 256, "large: tiles of 128 x 128" },
        { 64, 4, 256, "tiles of 64 x 64" },
        { 32, 4, 64, "tiles of 32 x 32: more would leave the device idle, or do not fit" },
        { 16, 2, 64, "small: tiles of 16 x 16" },
    };
    if (caps->native_kernels) return choose_native_tile(p, caps, nth, c);
    if (nth > HDI_COUNT(tiles)) return false;
    for (uint32_t i = 0; i < HDI_COUNT(tiles); i++) {
        const uint32_t tile = tiles[i].tile;
        const bool last = i + 1 == HDI_COUNT(tiles);
        if (most_invocations(caps) < tiles[i].workgroup || caps->shared_bytes < 2 * 16 * 4 * (tile + 4)) continue;
        if (nth && p->m <= FEW_ROWS && tile > 32) return false;
        if (nth ? i + 1 != nth : !last && (tiles_of(p, tile, tile) < 2 * caps->compute_units || 2 * HDI_MIN(p->m, p->n) <= tile)) continue;
        c->tile_m = c->tile_n = tile;
        c->part_m = c->part_n = tiles[i].part;
        c->workgroup = tiles[i].workgroup;
        c->because = tiles[i].because;
        return true;
    }
    return false;
}

/* The first that fits is taken. A native device has C forms of some; some make a norm and a pair. */
static const struct {
    hdi_module_id module;
    bool native, merges;
    bool (*choose)(const product *p, const hdi_caps *caps, uint32_t nth, choice *out_choice);
    const char *name;
} rows[] = {
    { HDI_MODULE_MATVEC_DOT,      false, true,  choose_vector_dot, "dot" },
    { HDI_MODULE_MATVEC_SUBGROUP, false, true,  choose_vector_subgroup, "subgroup" },
    { HDI_MODULE_MATMUL_LIBRARY,  false, false, choose_library, "library" },
    { HDI_MODULE_MATMUL_MATRIX,   false, false, choose_matrix, "matrix" },
    { HDI_MODULE_MATMUL_TENSOR,   false, false, choose_tensor, "tensor" }, /* slower on an H200: where measured to be faster */
    { HDI_MODULE_MATVEC,          true,  false, choose_vector, "vector" },
    { HDI_MODULE_MATMUL_AMX,      true,  false, choose_amx, "amx" },
    { HDI_MODULE_MATMUL_TILED,    true,  false, choose_tile, "tiled" },
};
enum { ROWS = HDI_COUNT(rows), ALTERNATIVES = 19 }; /* of a row, what its rules choose among them */

/* Workgroups along N, M, and the batch with its parts of K. */
static void grid_of(const product *p, const choice *c, uint64_t out_groups[3]) {
    out_groups[0] = hdi_divide_up(p->n, c->tile_n);
    out_groups[1] = hdi_divide_up(p->m, c->tile_m);
    out_groups[2] = p->batch * HDI_MAX(c->parts, 1);
}
static bool grid_fits(const product *p, const choice *c) {
    const hdi_caps *caps = p->request->caps;
    uint64_t groups[3];
    grid_of(p, c, groups);
    return caps->native_kernels || (groups[0] <= caps->max_groups_x && groups[1] <= caps->max_groups_y && groups[2] <= caps->max_groups_z);
}

/* What row `row` makes of the product, with its alternative `nth`. */
static bool choose_row(const product *p, uint32_t row, uint32_t nth, choice *out_choice) {
    const hdi_caps *caps = p->request->caps;
    const bool merged = p->request->a_norm.present || p->request->pair;
    if ((caps->native_kernels && !rows[row].native) || (merged && !rows[row].merges)) return false;
    if (row + 1 < ROWS && is_wrong(p, rows[row].module)) return false; /* the last one's turn is for hdi_kernels_lower */
    *out_choice = (choice){ .module = rows[row].module, .merges = rows[row].merges };
    return rows[row].choose(p, caps, nth, out_choice);
}

/* Option 0 is what the first row that fits makes of the product by its rules; then come all rows with all alternatives. */
static bool choose_option(const product *p, uint32_t option, choice *out_choice) {
    if (option > 0)
        return choose_row(p, (option - 1) / ALTERNATIVES, (option - 1) % ALTERNATIVES, out_choice) &&
            (out_choice->module == HDI_MODULE_MATMUL_LIBRARY || grid_fits(p, out_choice));
    for (uint32_t row = 0; row < ROWS; row++)
        if (choose_row(p, row, 0, out_choice)) return true;
    return false;
}

static bool name_option(const void *user, uint32_t option, char out[HDI_OPTION_NAME]) {
    const product *p = user;
    choice c;
    if (!choose_option(p, option, &c)) return false;
    uint32_t row = 0;
    while (row + 1 < ROWS && rows[row].module != c.module) row++;
    const char *name = rows[row].name;
    switch (c.module) {
    case HDI_MODULE_MATVEC_DOT: snprintf(out, HDI_OPTION_NAME, "%s_s%u_c%u", name, c.tile_n / c.part_n, c.part_n); break;
    case HDI_MODULE_MATMUL_LIBRARY: snprintf(out, HDI_OPTION_NAME, "%s", name); break;
    case HDI_MODULE_MATMUL_MATRIX: snprintf(out, HDI_OPTION_NAME, "%s_%ux%u_k%u", name, c.tile_m, c.tile_n, c.parts); break;
    case HDI_MODULE_MATMUL_AMX: snprintf(out, HDI_OPTION_NAME, "%s_c%u", name, c.tile_n); break;
    case HDI_MODULE_MATMUL_TENSOR: case HDI_MODULE_MATMUL_TILED: snprintf(out, HDI_OPTION_NAME, "%s_%ux%u", name, c.tile_m, c.tile_n); break;
    default: snprintf(out, HDI_OPTION_NAME, "%s_w%u_c%u", name, HDI_MAX(c.workgroup, 1), c.tile_n);
    }
    return true;
}

static bool take_option(const product *p, uint32_t option, choice *out_choice) {
    if (!choose_option(p, option, out_choice)) return option > 0 && take_option(p, 0, out_choice);
    out_choice->nth = option;
    if (option > 0) out_choice->because = hdi_because_measured, name_option(p, option, out_choice->option);
    return true;
}

/* Choices are among the options of the products that models are made of: rows of f32 and weights whose columns lie along K. */
static bool choose(const product *p, hdi_menus *menus, choice *out_choice) {
    if (p->a.tensor->dtype != HD_F32 || !p->a.along_k || !p->b.along_k || p->batch != 1) return take_option(p, 0, out_choice);
    const bool merged = p->request->a_norm.present || p->request->pair;
    const hdi_class_family family = merged ? HDI_CLASS_MERGED : p->m <= FEW_ROWS ? HDI_CLASS_MATVEC : HDI_CLASS_MATMUL;
    const hdi_class class = hdi_class_of(family, p->b.tensor->dtype, p->m, p->n * p->k);
    return take_option(p, hdi_option_choose(p->request, menus, class, 1 + ROWS * ALTERNATIVES, name_option, p), out_choice);
}

/* ---- launch ---- */

/* Words and limits that no kernel of the family can do without. */
static hd_status check(const product *p, hd_error *error) {
    const hdi_request *request = p->request;
    const hdi_chain *chain = request->chain;
    const uint64_t c_elements = p->batch * p->m * p->n;
    const uint32_t words = HDI_MM_PUSH_CHAIN + 4 * p->source_count + (chain ? chain->attr_count : 0);
    if (request->out.first != 0) return hdi_fail(error, HD_STATUS_INTERNAL, "a matrix product writes from element 0 on");
    if (words > HDI_MAX_PUSH_WORDS || 4 * words > request->caps->max_push_bytes)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "the product and its chain need %u push words", words);
    if (!request->caps->native_kernels && request->caps->max_bindings < BINDINGS)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a matrix product needs %d bindings", BINDINGS);
    if (c_elements > UINT32_MAX || p->k > UINT32_MAX - 64)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a matrix product of %llu elements", (unsigned long long)c_elements);
    for (int i = 0; i < 2; i++) {
        const side *s = i ? &p->b : &p->a;
        uint64_t last = s->first;
        for (uint32_t axis = 0; axis < s->tensor->shape.rank; axis++)
            if (s->tensor->strides[axis] < 0 || !hdi_add_u64(last, (uint64_t)(s->tensor->shape.dims[axis] - 1) * (uint64_t)s->tensor->strides[axis], &last))
                last = UINT64_MAX;
        if (last > UINT32_MAX)
            return hdi_fail(error, HD_STATUS_UNSUPPORTED, "operand %d of a matrix product reaches beyond element 2^32, or back", i);
        if (s->first % hdi_dtype(s->tensor->dtype).block_elements != 0)
            return hdi_fail(error, HD_STATUS_INTERNAL, "operand %d begins inside of a block", i);
    }
    return HD_OK;
}

static uint64_t side_bytes(const product *p, const side *s, uint64_t lines) {
    uint64_t elements = lines * p->k;
    for (int i = 0; i < BATCH_AXES; i++)
        if (s->batch[i] != 0) elements *= p->lengths[i];
    const hdi_dtype_facts facts = hdi_dtype(s->tensor->dtype);
    return elements / facts.block_elements * facts.block_bytes;
}

static uint32_t fill_words(const product *p, hdi_launch *launch) {
    uint32_t *push = launch->push, words = HDI_MM_PUSH_CHAIN;
    push[HDI_MM_PUSH_M] = (uint32_t)p->m;
    push[HDI_MM_PUSH_N] = (uint32_t)p->n;
    push[HDI_MM_PUSH_K] = (uint32_t)p->k;
    push[HDI_MM_PUSH_A_ROW] = (uint32_t)p->a.line;
    push[HDI_MM_PUSH_A_COL] = (uint32_t)p->a.depth;
    push[HDI_MM_PUSH_B_ROW] = (uint32_t)p->b.depth;
    push[HDI_MM_PUSH_B_COL] = (uint32_t)p->b.line;
    push[HDI_MM_PUSH_A_FIRST] = (uint32_t)p->a.first;
    push[HDI_MM_PUSH_B_FIRST] = (uint32_t)p->b.first;
    push[HDI_MM_PUSH_BATCH] = (uint32_t)p->lengths[1];
    push[HDI_MM_PUSH_BATCH + 1] = (uint32_t)p->lengths[2];
    for (int i = 0; i < BATCH_AXES; i++) {
        push[HDI_MM_PUSH_A_BATCH + i] = (uint32_t)p->a.batch[i];
        push[HDI_MM_PUSH_B_BATCH + i] = (uint32_t)p->b.batch[i];
    }
    for (uint32_t i = 0; i < p->source_count; i++) {
        push[words++] = (uint32_t)p->sources[i].tensor->first;
        push[words++] = (uint32_t)p->sources[i].batch;
        push[words++] = (uint32_t)p->sources[i].m;
        push[words++] = (uint32_t)p->sources[i].n;
    }
    return words;
}

/* Constants and binding of the norm and the pair. */
static void add_merged(const product *p, hdi_launch *launch) {
    const hdi_norm *norm = &p->request->a_norm;
    hdi_kernel *kernel = &launch->kernel;
    kernel->spec_count = HDI_MM_PAIR + 1;
    kernel->spec[HDI_MM_NORM] = !norm->present ? HDI_MM_NORM_NONE : norm->weighted ? HDI_MM_NORM_WEIGHTED : HDI_MM_NORM_PLAIN;
    memcpy(&kernel->spec[HDI_MM_NORM_EPS], &norm->eps, sizeof norm->eps);
    kernel->spec[HDI_MM_PAIR] = p->request->pair;
    hdi_launch_bind(launch, norm->weighted ? &norm->weight : p->a.tensor, HDI_READ);
}

/* A as bf16 tiles, in a temporary of its own. */
static hd_status launch_packing(const product *p, hdi_lowering *lowering, hdi_tensor *out_packed, hd_error *error) {
    const uint64_t bytes = p->batch * hdcpu_amx_packed_bytes((uint32_t)p->m, (uint32_t)p->k);
    hd_status status = hdi_rows_temporary(lowering, HD_BF16, HD_SHAPE((int64_t)(bytes / 2)), out_packed, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    hdi_kernel *kernel = &launch->kernel;
    *kernel = (hdi_kernel){ .module = HDI_MODULE_PACK_BF16, .spec_count = HDI_MM_LAYOUT + 1 };
    kernel->spec[HDI_SPEC_WORKGROUP] = 1;
    kernel->spec[HDI_SPEC_OUT_TYPE] = HDI_TYPE_BF16;
    kernel->spec[HDI_MM_A_TYPE] = kernel->spec[HDI_MM_B_TYPE] = (uint32_t)p->a.tensor->dtype;
    fill_words(p, launch);
    kernel->push_bytes = 4 * HDI_MM_PUSH_CHAIN;
    hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    hdi_launch_bind(launch, out_packed, HDI_WRITE);
    launch->groups[0] = hdcpu_amx_rows((uint32_t)p->m) / 16;
    launch->groups[1] = 1;
    launch->groups[2] = (uint32_t)p->batch;
    launch->bytes = side_bytes(p, &p->a, p->m) + bytes;
    launch->because = "rows of A as bf16 tiles";
    return HD_OK;
}

static hd_status launch_product(const product *p, const choice *c, const hdi_tensor *a, hdi_lowering *lowering, hd_error *error) {
    uint64_t groups[3];
    grid_of(p, c, groups);
    if (!grid_fits(p, c))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "a grid of %llu x %llu x %llu workgroups", (unsigned long long)groups[0],
                        (unsigned long long)groups[1], (unsigned long long)groups[2]);
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    hdi_kernel *kernel = &launch->kernel;
    *kernel = (hdi_kernel){ .module = c->module, .spec_count = HDI_MM_LAYOUT + 1, .subgroup = c->subgroup, .scratch_bytes = c->scratch_bytes };
    kernel->spec[HDI_SPEC_WORKGROUP] = HDI_MAX(c->workgroup, 1);
    kernel->spec[HDI_SPEC_EXACT] = is_exact(p);
    kernel->spec[HDI_SPEC_CHAIN_TYPE] = (uint32_t)p->type;
    kernel->spec[HDI_SPEC_OUT_TYPE] = (uint32_t)p->request->out.dtype;
    kernel->spec[HDI_MM_A_TYPE] = (uint32_t)p->a.tensor->dtype;
    kernel->spec[HDI_MM_B_TYPE] = (uint32_t)p->b.tensor->dtype;
    kernel->spec[HDI_MM_TILE_M] = c->tile_m;
    kernel->spec[HDI_MM_TILE_N] = c->tile_n;
    kernel->spec[HDI_MM_PART_M] = HDI_MAX(c->part_m, 2);
    kernel->spec[HDI_MM_PART_N] = HDI_MAX(c->part_n, 2);
    kernel->spec[HDI_MM_LAYOUT] = (p->a.along_k ? HDI_MM_A_ALONG_K : 0) | (p->b.along_k ? HDI_MM_B_ALONG_K : 0) |
                                  (p->a.wide ? HDI_MM_A_WIDE : 0) | (p->b.wide ? HDI_MM_B_WIDE : 0) |
                                  (p->batch == 1 ? HDI_MM_ONE_BATCH : 0);
    if (p->k % HDI_MM_DEPTH == 0 && (c->module == HDI_MODULE_MATMUL_MATRIX || c->module == HDI_MODULE_MATMUL_TENSOR)) kernel->spec[HDI_MM_LAYOUT] |= HDI_MM_WHOLE;
    if (c->module == HDI_MODULE_MATMUL_MATRIX) {
        kernel->spec_count = HDI_MM_PARTS + 1;
        kernel->spec[HDI_MM_PARTS] = HDI_MAX(c->parts, 1);
    }
    uint32_t words = fill_words(p, launch);
    if (p->request->chain) words += hdi_launch_chain(launch, p->request->chain, launch->push + words);
    kernel->push_bytes = 4 * words;
    hdi_launch_bind(launch, a, HDI_READ);
    hdi_launch_bind(launch, p->b.tensor, HDI_READ);
    hdi_launch_bind(launch, &p->request->out, HDI_READ | HDI_WRITE); /* words of narrow types are shared: read and written */
    const uint64_t products = p->request->pair ? 2 : 1;
    launch->bytes = side_bytes(p, &p->a, p->m) + products * side_bytes(p, &p->b, p->n) + hd_tensor_bytes(p->request->out.dtype, p->request->out.shape);
    for (uint32_t i = 0; i < SOURCES; i++) {
        const hdi_tensor *read = i < p->source_count ? p->sources[i].tensor : a;
        hdi_launch_bind(launch, i == 0 && p->request->pair ? &p->request->inputs[2] : read, HDI_READ);
    }
    if (c->merges) add_merged(p, launch);
    for (int i = 0; i < 3; i++) launch->groups[i] = (uint32_t)groups[i];
    launch->flops = 2 * products * p->batch * p->m * p->n * p->k;
    launch->because = c->because;
    memcpy(launch->option, c->option, sizeof launch->option);
    return HD_OK;
}

bool hdi_matmul_fits(const hdi_request *request) {
    product p;
    choice c;
    return hdi_product_read(request, &p, NULL) == HD_OK && check(&p, NULL) == HD_OK && choose(&p, NULL, &c);
}

/* What `partial` holds of the product, as chain_of_parts has it, and the chain behind it. */
static hd_status launch_chain(const product *p, uint32_t parts, const hdi_tensor *partial, hdi_lowering *lowering, hd_error *error) {
    hdi_chain chain;
    hdi_tensor out;
    if (!chain_of_parts(p, parts, partial->storage, &chain, &out)) return hdi_fail(error, HD_STATUS_INTERNAL, "what follows a product does not fit a chain");
    const hdi_request request = { .op = HDI_OP_COPY, .attrs = p->request->attrs, .out = out, .chain = &chain, .caps = p->request->caps, .math = p->request->math };
    return hdi_lower_elementwise(&request, lowering, error);
}

/* The product in parts of K, then their sum. */
static hd_status launch_parts(const product *p, const choice *c, hdi_lowering *lowering, hd_error *error) {
    hdi_request request = *p->request;
    product bare = *p;
    hdi_tensor partial;
    hd_status status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)p->batch, c->parts, (int64_t)p->m, (int64_t)p->n), &partial, error);
    if (status) return status;
    request.out = partial;
    request.chain = NULL;
    bare.request = &request;
    bare.source_count = 0;
    bare.type = HD_F32;
    status = launch_product(&bare, c, bare.a.tensor, lowering, error);
    return status ? status : launch_chain(p, c->parts, &partial, lowering, error);
}

/* One call of the device's library, with memory for it to work in, and the chain behind it. */
static hd_status launch_library(const product *p, const choice *c, hdi_lowering *lowering, hd_error *error) {
    enum { WORKSPACE_BYTES = 32 << 20 }; /* what the makers of cuBLASLt advise for their newest devices */
    hdi_tensor out = p->request->out, workspace;
    hd_status status = hdi_rows_temporary(lowering, HD_U8, HD_SHAPE(WORKSPACE_BYTES), &workspace, error);
    if (!status && p->request->chain) status = hdi_rows_temporary(lowering, p->type, HD_SHAPE((int64_t)p->batch, (int64_t)p->m, (int64_t)p->n), &out, error);
    if (status) return status;
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    launch->kernel = (hdi_kernel){ .module = c->module, .spec_count = HDI_PRODUCT_CONSTANTS };
    uint32_t *spec = launch->kernel.spec;
    spec[HDI_PRODUCT_OUT_TYPE] = (uint32_t)out.dtype;
    spec[HDI_PRODUCT_A_TYPE] = (uint32_t)p->a.tensor->dtype;
    spec[HDI_PRODUCT_B_TYPE] = (uint32_t)p->b.tensor->dtype;
    spec[HDI_PRODUCT_M] = (uint32_t)p->m;
    spec[HDI_PRODUCT_N] = (uint32_t)p->n;
    spec[HDI_PRODUCT_K] = (uint32_t)p->k;
    spec[HDI_PRODUCT_A_ALONG_K] = p->a.along_k;
    spec[HDI_PRODUCT_B_ALONG_K] = p->b.along_k;
    spec[HDI_PRODUCT_A_LINE] = (uint32_t)(p->a.along_k ? p->a.line : p->a.depth);
    spec[HDI_PRODUCT_B_LINE] = (uint32_t)(p->b.along_k ? p->b.line : p->b.depth);
    spec[HDI_PRODUCT_A_FIRST] = (uint32_t)p->a.first;
    spec[HDI_PRODUCT_B_FIRST] = (uint32_t)p->b.first;
    spec[HDI_PRODUCT_BATCH] = (uint32_t)p->batch;
    spec[HDI_PRODUCT_A_BATCH] = (uint32_t)p->a.batch[BATCH_AXES - 1];
    spec[HDI_PRODUCT_B_BATCH] = (uint32_t)p->b.batch[BATCH_AXES - 1];
    spec[HDI_PRODUCT_WORKSPACE] = WORKSPACE_BYTES;
    hdi_launch_bind(launch, p->a.tensor, HDI_READ);
    hdi_launch_bind(launch, p->b.tensor, HDI_READ);
    hdi_launch_bind(launch, &out, HDI_WRITE);
    hdi_launch_bind(launch, &workspace, HDI_READ | HDI_WRITE);
    for (int i = 0; i < 3; i++) launch->groups[i] = 1;
    launch->flops = 2 * p->batch * p->m * p->n * p->k;
    launch->bytes = side_bytes(p, &p->a, p->m) + side_bytes(p, &p->b, p->n) + hd_tensor_bytes(out.dtype, out.shape);
    launch->because = c->because;
    memcpy(launch->option, c->option, sizeof launch->option);
    return p->request->chain ? launch_chain(p, 1, &out, lowering, error) : HD_OK;
}

/* A float tensor as f16, dense; finite numbers that f16 does not hold become its largest. */
static hd_status floats_as_halves(const hdi_request *request, const hdi_tensor *from, hdi_lowering *lowering, hdi_tensor *out_halves, hd_error *error) {
    const float most = 65504;
    const hdi_chain chain = { .steps = { { HDI_STEP_CLIP, 0, HDI_SOURCE_NONE, HDI_SOURCE_NONE, HD_F16, 0 } }, .step_count = 1,
                              .inputs = { *from }, .input_count = 1, .attrs = { -most, most }, .attr_count = 2 };
    const hd_status status = hdi_rows_temporary(lowering, HD_F16, from->shape, out_halves, error);
    if (status) return status;
    const hdi_request clip = { .op = HDI_OP_COPY, .attrs = request->attrs, .out = *out_halves, .chain = &chain, .caps = request->caps, .math = request->math };
    return hdi_lower_elementwise(&clip, lowering, error);
}

/* A quantised tensor without gaps as f16, in the order in which it lies. */
static hd_status codes_as_halves(const hdi_tensor *from, hdi_lowering *lowering, hdi_tensor *out_halves, hd_error *error) {
    enum { WORKGROUP = 128, EACH = 8 };
    const uint64_t elements = hd_shape_elements(from->shape);
    hd_status status = hdi_rows_temporary(lowering, HD_F16, from->shape, out_halves, error);
    if (status) return status;
    memcpy(out_halves->strides, from->strides, sizeof from->strides);
    hdi_launch *launch = hdi_lowering_add(lowering);
    if (!launch) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a launch");
    launch->kernel = (hdi_kernel){ .module = HDI_MODULE_HALVES, .spec_count = HDI_MM_B_TYPE + 1, .push_bytes = 8 };
    launch->kernel.spec[HDI_SPEC_WORKGROUP] = WORKGROUP;
    launch->kernel.spec[HDI_MM_B_TYPE] = (uint32_t)from->dtype;
    launch->push[HDI_HALVES_PUSH_COUNT] = (uint32_t)elements;
    launch->push[HDI_HALVES_PUSH_FIRST] = (uint32_t)from->first;
    hdi_launch_bind(launch, from, HDI_READ);
    hdi_launch_bind(launch, from, HDI_READ);
    hdi_launch_bind(launch, out_halves, HDI_WRITE);
    hdi_launch_grid(launch, hdi_divide_up(elements, WORKGROUP * EACH));
    launch->flops = 2 * elements;
    launch->bytes = hd_tensor_bytes(from->dtype, from->shape) + 2 * elements;
    launch->because = "quantised weights that many tiles read: f16 once";
    return HD_OK;
}

/* `option`: the one to take, or NULL: choose. */
static hd_status lower_product(const hdi_request *request, hd_dtype type, const uint32_t *option, hdi_lowering *lowering, hd_error *error) {
    product p;
    choice c;
    hd_status status = hdi_product_read(request, &p, error);
    if (!status) status = check(&p, error);
    if (status) return status;
    p.type = type;
    if (option ? !take_option(&p, *option, &c) : !choose(&p, lowering->menus, &c))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "no matrix product fits a device with %llu bytes of shared memory and workgroups of %llu",
                        (unsigned long long)request->caps->shared_bytes, (unsigned long long)most_invocations(request->caps));
    if (c.packs) {
        hdi_tensor packed;
        status = launch_packing(&p, lowering, &packed, error);
        return status ? status : launch_product(&p, &c, &packed, lowering, error);
    }
    if (!c.halves[0] && !c.halves[1] && c.module == HDI_MODULE_MATMUL_LIBRARY) return launch_library(&p, &c, lowering, error);
    if (!c.halves[0] && !c.halves[1]) return c.parts > 1 ? launch_parts(&p, &c, lowering, error) : launch_product(&p, &c, p.a.tensor, lowering, error);
    hdi_tensor inputs[] = { request->inputs[0], request->inputs[1] };
    hdi_request prepared = *request;
    prepared.inputs = inputs;
    if (c.halves[0]) status = floats_as_halves(request, &request->inputs[0], lowering, &inputs[0], error);
    if (c.halves[1] && !status) status = codes_as_halves(&request->inputs[1], lowering, &inputs[1], error);
    return status ? status : lower_product(&prepared, type, &c.nth, lowering, error); /* both are f16 now */
}

hd_status hdi_lower_matmul(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    return lower_product(request, request->inputs[0].dtype, NULL, lowering, error);
}
