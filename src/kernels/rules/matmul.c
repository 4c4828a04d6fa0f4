/* matmul.c: chooses how a matrix product, as matmul_shape.c brings it into form, is made: the first kernel of a short
 * list that fits device, types and sizes, and of its options the cheapest one or what was measured. Pure. */
#include "cmds/library.h"
#include "kernels/cpu/matmul_native.h"
#include "kernels/rules/matmul.h"

enum { STREAM_BINDINGS = BINDINGS + 1 };
/* For matrix units: rows from which weights are worth making f16 ahead, rows and columns from which A is; least ones
 * of the device's library. */
enum { MATRIX_HALF_ROWS = 257, AHEAD_ROWS = 32, AHEAD_COLUMNS = 1024, LIBRARY_LEAST_SIDE = 16 };

#define NEVER UINT64_MAX

/* ---- what all kernels share ---- */

/* Operands of bf16 that are not to be rounded to f16, which would lose the small ones. */
static bool stays_bf16(const product *p) {
    return p->type == HD_F32 && p->a.tensor->dtype == HD_BF16 && p->b.tensor->dtype == HD_BF16;
}
static bool has_bf16_units(const hdi_caps *caps) {
    const hdi_variant units = { HDI_MODULE_MATMUL_MATRIX_BF16, false, UINT64_C(1) << HD_BF16 };
    return caps->matrix_bf16 && !hdi_variant_is_wrong(caps, units);
}
/* Weights of whole codes whose blocks lie along K: exact mode has a product in 8 bits for them (abi.h). */
static bool has_runs(const product *p) {
    return hdi_dtype_has_whole_codes(p->b.tensor->dtype) && (p->request->attrs->ints[0] & HD_TRANSPOSE_B) != 0 &&
           hdcpu_may_round(p->chosen != NULL, p->k);
}
/* Is the module, over weights like these, known to be wrong on the device? */
static bool is_wrong(const product *p, hdi_module_id module) {
    return hdi_variant_is_wrong(p->request->caps,
                                (hdi_variant){ module, is_exact(p), UINT64_C(1) << p->b.tensor->dtype });
}
static uint64_t most_invocations(const hdi_caps *caps) { return HDI_MIN(caps->max_workgroup, caps->max_workgroup_x); }
static uint64_t tiles_of(const product *p, uint64_t tile_m, uint64_t tile_n) {
    return hdi_divide_up(p->m, tile_m) * hdi_divide_up(p->n, tile_n) * p->batch;
}
static uint32_t sums_of(const product *p, const config *c) {
    return c->tile_m * (c->tile_n * (p->request->pair ? 2 : 1) + (p->request->a_norm.present ? 1 : 0));
}

/* No smaller one of the kernel's options is there. */
static bool is_last(const hdi_kernel_option *o) {
    const hdi_kernel_option *next = hdi_kernel_option_next(o->module, o);
    return !next || next->native != o->native;
}

/* Below, each kernel says whether it fits a product with an option whose numbers are in the config already, and what
 * that costs by the kernel's rules: they take the cheapest option that fits, none at the cost NEVER. */

/* ---- few rows ---- */

static bool subgroup_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    if (is_exact(p) || p->m > FEW_ROWS || !caps->subgroup_arithmetic || caps->subgroup < 4) return false;
    if (caps->max_bindings < STREAM_BINDINGS || !hdi_product_merges(p)) return false;
    if (!p->a.along_k || !p->b.along_k || !p->a.wide || !p->b.wide || p->k % 8 != 0) return false;
    c->tile_m = (uint32_t)p->m;
    c->because = "few rows of A: weights are streamed once, summed by subgroups";
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= sums_of(p, c) * c->workgroup;
}

/* Two columns for each reading of A; of one row four where they are light beside A and a norm's weight. */
static uint64_t subgroup_cost(const product *p, const hdi_kernel_option *o) {
    const bool light = hdi_dtype_is_quantised(p->b.tensor->dtype) || (p->request->a_norm.present && !p->request->pair);
    const uint32_t columns = p->m == 1 && light ? 4 : 2;
    return o->workgroup == (p->k >= 1024 ? 128 : 64) && o->tile_n == columns ? 0 : NEVER;
}

/* The types that matvec_dot reads 16 bytes at a time. */
static bool is_wide_for_dot(hd_dtype b) {
    return b == HD_Q4_0 || b == HD_Q8_0 || b == HD_Q4_K || b == HD_Q6_K || b == HD_TQ2_0;
}

/* Each octet of runs is a lane's, as many columns at a time as the lanes and a part of shared memory have room for:
 * larger passes overlap less (on an H100 642 tokens of Qwen3-4B a second for 658). */
static bool dealt_fits(const product *p, config *c) {
    enum { MOST_SHARED = 48 << 10 };
    const hdi_caps *caps = p->request->caps;
    const uint64_t products = p->request->pair ? 2 : 1, octets = p->k / HDI_MM_OCTET;
    if (!hdi_product_dealt(p) || most_invocations(caps) < c->workgroup) return false;
    c->tile_n = hdi_product_dealt_columns(p);
    c->part_m = (uint32_t)p->k;
    c->part_n = (uint32_t)HDI_MIN(c->workgroup / (products * octets), c->tile_n);
    while (c->part_n > 0 && hdi_product_dealt_bytes(p, c->part_n) > HDI_MIN(caps->shared_bytes, MOST_SHARED))
        c->part_n--;
    c->staged = true;
    return c->part_n > 0;
}

/* What kernels of few rows in 8 bits ask for. */
static bool reads_few_runs(const product *p) {
    const hdi_caps *caps = p->request->caps;
    const hdi_tensor *b = p->b.tensor;
    if (p->m > FEW_ROWS || !has_runs(p) || caps->max_bindings < STREAM_BINDINGS) return false;
    if (!caps->integer_dot || !caps->subgroup_arithmetic || !caps->subgroup_shuffle) return false;
    if (!p->a.along_k || !p->b.along_k || !p->a.wide || !hdi_product_merges(p)) return false;
    if (is_exact(p) && p->request->a_norm.present) return false; /* its sum of squares has an order of its own */
    return hd_tensor_bytes(b->dtype, b->shape) % 16 == 0; /* its last bytes are read 16 at a time too */
}

static bool dot_fits(const product *p, config *c) {
    enum { MOST_DEPTH = 16384, STRANDS = HDI_MM_STRANDS * HDI_MM_RUN, BYTES_A_RUN = 40, LEAST_SUBGROUP = 4 };
    const hdi_caps *caps = p->request->caps;
    /* whole rounds of all strands, and whole subgroups of halves of runs, whose squares are summed together */
    const uint64_t round = HDI_MAX(STRANDS, caps->subgroup * HDI_MM_RUN / 2);
    if (!reads_few_runs(p) || !caps->subgroup_control || caps->subgroup < LEAST_SUBGROUP) return false;
    c->tile_m = (uint32_t)p->m;
    c->part_m = (uint32_t)HDI_MIN(MOST_DEPTH / p->m / round * round, hdi_divide_up(p->k, round) * round);
    c->part_n = c->option->tile_n;
    c->subgroup = (uint32_t)caps->subgroup;
    c->workgroup = c->option->subgroups * c->subgroup;
    c->tile_n = c->workgroup / HDI_MM_STRANDS * c->part_n;
    c->ahead = c->option->keys;
    c->because = "few rows of A in 8 bits: quantised weights are streamed once, by integer dot products";
    if (c->option->tile_m) return dealt_fits(p, c);
    const uint64_t strands = 4 * c->tile_m * c->tile_n * (p->request->pair ? 2 : 1) * (HDI_MM_STRANDS + 1);
    const uint64_t sums = strands + (p->request->a_norm.present ? 4 * c->tile_m * (c->workgroup + 1) : 8);
    /* a run's codes, and where A is normed its squares: a float for each half of a run, or each lane */
    while (c->part_m > round && caps->shared_bytes < c->part_m / HDI_MM_RUN * (BYTES_A_RUN + 8) * c->tile_m + sums)
        c->part_m -= (uint32_t)round;
    return c->workgroup % (2 * HDI_MM_STRANDS) == 0 && most_invocations(caps) >= c->workgroup &&
           caps->shared_bytes >= c->part_m / HDI_MM_RUN * (BYTES_A_RUN + 8) * c->tile_m + sums;
}

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* Lanes for all octets of a tile and all halves of A's runs, up to 8 subgroups. */
static uint64_t dealt_cost(const product *p, const hdi_kernel_option *o) {
    const uint64_t octets = (p->request->pair ? 2 : 1) * hdi_product_dealt_columns(p) * p->k / HDI_MM_OCTET,
                   lanes = HDI_MIN(HDI_MAX(octets, 2 * p->k / HDI_MM_RUN), HDI_DEALT_LANES);
    return distance(o->subgroups, hdi_divide_up(lanes, HDI_MAX(p->request->caps->subgroup, 1)));
}

/* Workgroups of 8 subgroups; larger ones where a row has more halves of runs than those round at once, smaller ones
 * where they would leave most units idle; more columns of a lane where there would be many for each unit, or where rows
 * share a weight's unpacking. Several runs of one column are read ahead: all of them, if they are few. Of more columns
 * one: as many workgroups run at once as there are registers for. Measured on an H200 through Vulkan. */
static uint64_t dot_cost(const product *p, const hdi_kernel_option *o) {
    enum { USUAL = 8, SMALL = 4, LARGE = 16, MANY = 8, FEW_RUNS = 5 * HDI_MM_STRANDS };
    const hdi_caps *caps = p->request->caps;
    const hd_dtype b = p->b.tensor->dtype;
    const uint64_t units = HDI_MAX(caps->compute_units, 1), slots = HDI_MAX(USUAL * caps->subgroup / HDI_MM_STRANDS, 1);
    const uint64_t groups = hdi_divide_up(p->n, slots) * p->batch, products = p->request->pair ? 2 : 1;
    if (!is_exact(p) && !is_wide_for_dot(b)) return NEVER; /* where measured */
    if (o->tile_m) return dealt_cost(p, o);
    if (hdi_product_dealt(p)) return NEVER;
    const uint64_t columns = p->m > 2 || groups * products > MANY * units ? 2 : 1, runs = p->k / HDI_MM_RUN;
    const bool long_row = columns == 1 && 2 * runs > USUAL * caps->subgroup, large_runs = b == HD_Q8_0 || b == HD_Q6_K;
    const uint64_t subgroups = 4 * groups < units ? SMALL : long_row ? LARGE : USUAL;
    const uint64_t ahead = columns * products > 1 ? 1 : p->m > 1 || large_runs ? 2 : runs > FEW_RUNS ? 3 : 5;
    return 8 * distance(o->subgroups, subgroups) + 8 * distance(o->tile_n, columns) + distance(o->keys, ahead);
}

/* By matrix units: a workgroup's columns are the share of a unit of the device, so that A is rounded there once. Where
 * dispatches begin early: on an H100 8 sequences were 1.5 times as fast so as by strands, through Vulkan half. */
static bool few_matrix_fits(const product *p, config *c) {
    enum { LEAST_ROWS = 4, FEW_COLUMNS = 16, SUBGROUP = 32, ROUND = HDI_MM_STRANDS * HDI_MM_RUN };
    const hdi_caps *caps = p->request->caps;
    const uint64_t share = (hdi_divide_up(p->n, HDI_MAX(caps->compute_units, 1)) + 1) / 2 * 2;
    if (p->m < LEAST_ROWS || p->k <= ROUND || p->chosen || !reads_few_runs(p) || !hdi_product_has_octets(p) ||
        !caps->early_start || !caps->matrix_s8_narrow || !caps->memory_model || caps->subgroup != SUBGROUP)
        return false;
    c->subgroup = SUBGROUP;
    c->workgroup = c->option->subgroups * SUBGROUP;
    c->tile_m = (uint32_t)p->m;
    c->tile_n = share < FEW_COLUMNS ? 2 * FEW_COLUMNS : (uint32_t)share; /* so few share the device with others */
    c->part_m = (uint32_t)(hdi_divide_up(p->k, ROUND) * ROUND);
    const uint64_t passes = hdi_divide_up(c->tile_n, c->option->tile_n);
    c->part_n = (uint32_t)hdi_divide_up(c->tile_n, 2 * passes) * 2;
    c->because = "few rows of A in 8 bits: quantised weights are streamed once, by matrix units of whole numbers";
    return most_invocations(caps) >= c->workgroup && hdi_product_few_unit_bytes(p, c->part_n) <= caps->shared_bytes;
}

/* As many columns of both products as lanes unpack at a time. */
static uint64_t few_matrix_cost(const product *p, const hdi_kernel_option *o) {
    return distance(o->subgroups, 16) + distance(o->tile_n, p->request->pair ? 32 : 64);
}

static const char *vector_because(const product *p) {
    return is_exact(p) ? "few rows of A: blocks along K side by side, added in order"
                       : "few rows of A: each weight is read once for all of them";
}

static bool vector_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    c->tile_m = (uint32_t)p->m;
    c->because = vector_because(p);
    const uint64_t sums = 4 * c->tile_m * (c->workgroup + c->tile_n);
    const hd_dtype b = p->b.tensor->dtype;
    const uint64_t b_chunks = b == HD_F32 ? 9 : 5, a_chunks = 9; /* of 16 bytes, of a block in shared memory */
    const uint64_t blocks = 16 * (c->workgroup * b_chunks + c->tile_m * (c->workgroup / c->tile_n) * a_chunks);
    c->staged = p->a.along_k && p->b.along_k && p->a.wide && p->b.wide && !hdi_dtype_is_quantised(b) &&
                caps->shared_bytes >= sums + blocks;
    return p->m <= FEW_ROWS && most_invocations(caps) >= c->workgroup && caps->shared_bytes >= sums;
}

static uint64_t vector_cost(const product *p, const hdi_kernel_option *o) {
    return o->workgroup == (p->b.along_k ? 64 : 128) && o->tile_n == (p->b.along_k ? 4 : 32) ? 0 : NEVER;
}

/* Do the columns of B lie along K, in whole blocks? */
static bool has_columns(const product *p) {
    return p->b.depth == 1 && p->b.line % hdi_dtype(p->b.tensor->dtype).block_elements == 0;
}

static bool native_vector_fits(const product *p, config *c) {
    if (p->m > FEW_ROWS) return false;
    c->tile_m = (uint32_t)HDI_MIN(p->most, FEW_ROWS);
    const uint64_t exact =
        HDI_MAX(hdcpu_exact_scratch_bytes(c->tile_m, c->tile_n), hdcpu_exact_vector_bytes(c->tile_n, p->k));
    const uint64_t bytes = is_exact(p) ? exact : hdcpu_vector_scratch_bytes(c->tile_n, p->k);
    c->scratch_bytes = (uint32_t)bytes;
    c->because = vector_because(p);
    return bytes <= UINT32_MAX && (is_exact(p) || has_columns(p));
}

static uint64_t native_vector_cost(const product *p, const hdi_kernel_option *o) {
    const uint64_t each = hdi_divide_up(p->n * p->batch, 8 * HDI_MAX(p->request->caps->threads, 1));
    return o->tile_n == HDI_MIN(HDI_MAX((each + 31) / 32 * 32, 32), 256) ? 0 : NEVER;
}

/* ---- matrix units ---- */

/* What else takes time, as the work that the largest tile does meanwhile (measured on an H200): a workgroup's beginning
 * and end like so much of K, one more launch like so many products, and an element of a sum's operands like so many. */
enum { LEAST_PART = 256, START_DEPTH = 128, LAUNCH_WORK = 1200000, SUM_WORK = 2 };

/* May all of B be made f16 ahead of the product? */
static bool halves_fit(const product *p) {
    const hdi_caps *caps = p->request->caps;
    const uint64_t bytes = 2 * hd_shape_elements(p->b.tensor->shape),
                   most = HDI_MIN(caps->max_binding_bytes, caps->memory_bytes / 64);
    return hdi_tensor_is_gapless(p->b.tensor) && bytes <= most && !is_wrong(p, HDI_MODULE_HALVES);
}

/* Has the sum of the parts a chain to hold it, and is each part worth its sums? */
static bool parts_fit(const product *p, uint32_t parts) {
    hdi_chain chain;
    hdi_tensor out;
    const uint64_t steps = hdi_divide_up(p->k, HDI_MM_DEPTH), of_part = hdi_divide_up(steps, parts);
    return parts == 1 || (!p->chosen && p->k / parts >= LEAST_PART && (parts - 1) * of_part < steps &&
                          p->batch * p->m * p->n * parts <= UINT32_MAX && hdi_product_chain(p, parts, 0, &chain, &out));
}

/* A subgroup of 32 for each part of the tile; false where the device has others. */
static bool takes_units(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    c->subgroup = 32;
    c->workgroup = 32 * (c->tile_m / c->part_m) * (c->tile_n / c->part_n);
    return caps->memory_model && (caps->subgroup == 32 || caps->subgroup_control);
}

/* Two tiles are read before they are used where that takes few registers: small ones, of operands that lie there as
 * they are multiplied. On an H200 through Vulkan 32 to 64 rows were 8 to 10 % faster so, large tiles 9 % slower. */
static uint32_t tiles_ahead(const product *p, const config *c) {
    const hd_dtype a = p->a.tensor->dtype, b = p->b.tensor->dtype;
    return a == b && hd_dtype_bytes(a, 1) == 2 && c->tile_m * c->tile_n <= 64 * 64 ? 2 : 1;
}

static bool matrix_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    const hdi_tensor *b = p->b.tensor;
    if (is_exact(p) || !caps->matrix_f16 || !caps->f16_arithmetic || !takes_units(p, c)) return false;
    /* f16 would miss their bound (docs/ops.md) */
    if (b->dtype == HD_F32 || (stays_bf16(p) && !has_bf16_units(caps))) return false;
    if (p->m <= 1 || p->k < 16 || most_invocations(caps) < 256) return false;
    /* Lines of a tile are HDI_MM_DEPTH halves and 8 more apart. */
    if ((uint64_t)(c->tile_m + c->tile_n) * 2 * (HDI_MM_DEPTH + 8) > caps->shared_bytes || !parts_fit(p, c->parts))
        return false;
    c->ahead = tiles_ahead(p, c);
    c->because = "many rows of A beside narrow weights: matrix units, sums in f32";
    /* What many tiles would convert is worth a launch that does so once; few tiles share the columns of an expert. */
    const bool many = p->chosen ? p->pairs >= MATRIX_HALF_ROWS : p->m >= AHEAD_ROWS && p->n >= AHEAD_COLUMNS;
    c->halves[1] = !p->chosen && hdi_dtype_is_quantised(b->dtype) && p->m >= MATRIX_HALF_ROWS && halves_fit(p);
    c->bf16 = p->type == HD_F32 && p->a.tensor->dtype == HD_BF16 && (c->halves[1] || b->dtype == HD_BF16) &&
              has_bf16_units(caps);
    c->halves[0] = !c->bf16 && p->a.tensor->dtype != HD_F16 && many;
    return true;
}

/* A unit of the device takes its workgroups side by side: the first is as long as its tile is large and its part deep,
 * each further one adds a share of that, less where small ones wait most of their time. Behind them the sum of the
 * parts. */
static uint64_t matrix_cost(const product *p, const hdi_kernel_option *o) {
    const uint64_t units = HDI_MAX(p->request->caps->compute_units, 1), sums = p->batch * p->m * p->n;
    const uint64_t area = (uint64_t)o->tile_m * o->tile_n;
    const uint64_t groups = hdi_divide_up(tiles_of(p, o->tile_m, o->tile_n) * o->parts, units);
    if (p->m <= FEW_ROWS) return NEVER;
    return (100 + (groups - 1) * o->beside) * area * (hdi_divide_up(p->k, o->parts) + START_DEPTH) / o->rate +
           (o->parts > 1 ? LAUNCH_WORK + SUM_WORK * sums * (o->parts + 1u) : 0);
}

/* ---- matrix units of a whole workgroup ---- */

/* Both operands as halves, as for matrix units; nothing is fused. */
static bool tensor_fits(const product *p, config *c) {
    enum { LEAST_SIDE = 64, UNIT = 8 };
    const hdi_caps *caps = p->request->caps;
    const hd_dtype a = p->a.tensor->dtype, b = p->b.tensor->dtype;
    if (is_exact(p) || !caps->matrix_workgroup || !caps->f16_storage || !caps->f16_arithmetic || !caps->memory_model)
        return false;
    if (most_invocations(caps) < c->workgroup || p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE)
        return false;
    if (p->type == HD_BF16 || p->request->chain || p->chosen) return false;
    c->halves[0] = a != HD_F16;
    c->halves[1] = hdi_dtype_is_quantised(b);
    const bool a_fits = c->halves[0] ? p->k % UNIT == 0 && !(p->request->attrs->ints[0] & HD_TRANSPOSE_A) : p->a.wide;
    const bool b_fits = c->halves[1] ? halves_fit(p) : b == HD_F16 && p->b.wide;
    c->because = "many rows of A beside halves: matrix units of a whole workgroup, tiles straight from memory";
    return a_fits && b_fits;
}

/* The largest tile that leaves no unit idle, else the smallest. */
static uint64_t tensor_cost(const product *p, const hdi_kernel_option *o) {
    return is_last(o) || tiles_of(p, o->tile_m, o->tile_n) >= p->request->caps->compute_units ? 0 : NEVER;
}

/* ---- the device's own library ---- */

/* One that the library can be told of: lines without gaps along one axis, beginning where it may rely on. */
static bool is_plain(const side *s, uint64_t lines, uint64_t depths) {
    const bool apart = s->along_k ? s->depth == 1 && s->line >= depths : s->line == 1 && s->depth >= lines;
    return apart && (s->wide || s->tensor->dtype == HD_F32) &&
           hd_dtype_bytes(s->tensor->dtype, s->first) % HDI_PRODUCT_ALIGN == 0;
}

/* Are operands of f32 worth being split into bf16? On an H200 six products of bf16 took 0.36 of the time of one of f32,
 * and splitting as long as its bytes: together less from sides of a few hundred on. */
static bool is_worth_splitting(const product *p) {
    enum { LEAST_SIDE = 384 /* half the harmonic mean of M and N */, LEAST_WORK = 1 << 28 };
    return p->type == HD_F32 && p->m * p->n >= LEAST_SIDE * (p->m + p->n) && p->m * p->n * p->k >= LEAST_WORK;
}

/* Both operands of one float type, or floats beside weights that are made f16 first, as for matrix units; of bf16 they
 * keep its range. */
static bool library_fits(const product *p, config *c) {
    enum { LEAST_SIDE = LIBRARY_LEAST_SIDE, LEAST_WORK = 1 << 21, UNIT = 8 };
    const hdi_caps *caps = p->request->caps;
    const hd_dtype a = p->a.tensor->dtype, b = p->b.tensor->dtype;
    hdi_chain chain;
    hdi_tensor out;
    if (is_exact(p) || p->chosen || !caps->product_library) return false;
    if (p->m < LEAST_SIDE || p->n < LEAST_SIDE || p->k < LEAST_SIDE) return false;
    if (p->batch * p->m * p->n * p->k < LEAST_WORK || p->batch * p->m * p->n > INT32_MAX) return false;
    if (p->lengths[0] > 1 || p->lengths[1] > 1) return false;
    c->halves[1] = hdi_dtype_is_quantised(b);
    c->halves[0] = a != b && a == HD_F32;
    if (a != b && a == HD_BF16 && !c->halves[1]) return false;
    if (a != b && b != HD_F16 && !(c->halves[1] && halves_fit(p))) return false;
    if (!c->halves[0] && !is_plain(&p->a, p->m, p->k)) return false;
    if (!c->halves[1] && !is_plain(&p->b, p->n, p->k)) return false;
    /* of narrow types it takes whole vectors */
    if (b != HD_F32 && (p->n % UNIT != 0 || p->k % UNIT != 0)) return false;
    if (hdi_product_is_refused(caps, (const uint64_t[4]){ p->m, p->n, p->k, p->batch })) return false;
    c->split = is_worth_splitting(p) ? hdi_product_split_depth(p) : 0;
    c->because = "many rows of A: the device's own library of matrix products";
    return !p->request->chain || hdi_product_chain(p, 1, 0, &chain, &out);
}

/* ---- tiles ---- */

/* The exact product in 8 bits, of any number of rows. */
static bool codes_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    const bool dot = c->option->module == HDI_MODULE_MATMUL_CODES_DOT;
    if (!is_exact(p) || (dot && !caps->integer_dot) || hdi_product_rows(p) > UINT32_MAX / p->k) return false;
    c->packs = HDI_MODULE_CODES;
    c->because = dot ? "rows of A in 8 bits, tiles by integer dot products" : "rows of A in 8 bits, tiles";
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= 40 * c->tile_m + 48 * c->tile_n;
}

static bool native_codes_fits(const product *p, config *c) {
    c->scratch_bytes = (uint32_t)(HDCPU_MATMUL_TILE_FLOATS(c->tile_m, c->tile_n) * sizeof(float));
    c->packs = HDI_MODULE_CODES;
    c->because = "few rows of A in 8 bits, columns unpacked for all of them";
    return is_exact(p) && hdi_product_rows(p) <= UINT32_MAX / p->k;
}

static bool amx_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    const hdi_variant packs = { HDI_MODULE_PACK_BF16, false, UINT64_C(1) << p->a.tensor->dtype };
    if (is_exact(p) || !caps->matrix_bf16 || hdi_variant_is_wrong(caps, packs) || p->b.tensor->dtype == HD_F32)
        return false;
    if (!hdcpu_may_round(p->chosen != NULL, p->k)) return false;
    if (p->m <= FEW_ROWS || p->k < 32 || p->k > UINT32_MAX - HDCPU_AMX_DEPTH || !has_columns(p)) return false;
    c->tile_m = (uint32_t)HDI_MIN(p->most, HDCPU_AMX_TILE_M);
    c->scratch_bytes = (uint32_t)hdcpu_amx_scratch_bytes(c->tile_m, c->tile_n);
    c->packs = HDI_MODULE_PACK_BF16;
    c->because = "narrow weights on a processor with bf16 tiles: rows packed once, columns on the way";
    return true;
}

/* Work for all threads, a few times over: so for the tiles that follow. */
static bool fills_threads(const product *p, uint64_t tile_m, uint64_t tile_n) {
    return tiles_of(p, tile_m, tile_n) >= 4 * HDI_MAX(p->request->caps->threads, 1);
}

static uint64_t amx_cost(const product *p, const hdi_kernel_option *o) {
    return is_last(o) || fills_threads(p, HDI_MIN(p->m, HDCPU_AMX_TILE_M), o->tile_n) ? 0 : NEVER;
}

/* Each weight meets as many rows as a vector has lanes. */
static bool int8_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    if (!caps->integer_dot || !hdi_dtype_is_quantised(p->b.tensor->dtype) || is_wrong(p, HDI_MODULE_PACK_INT8))
        return false;
    if (is_exact(p) ? !has_runs(p) : !hdcpu_may_round(p->chosen != NULL, p->k)) return false;
    if (p->m <= FEW_ROWS || p->m > UINT32_MAX - HDCPU_INT8_LINES || !has_columns(p)) return false;
    c->tile_m = (uint32_t)HDI_MIN(p->most, HDCPU_INT8_TILE_M);
    const uint64_t bytes =
        is_exact(p) ? hdcpu_int8_exact_bytes(c->tile_m, c->tile_n, p->k) : hdcpu_int8_tile_bytes(c->tile_m, c->tile_n);
    c->scratch_bytes = (uint32_t)bytes;
    c->packs = HDI_MODULE_PACK_INT8;
    c->because = "quantised weights as integers: rows rounded to 8 bits once, columns unpacked on the way";
    return bytes <= UINT32_MAX;
}

static uint64_t int8_cost(const product *p, const hdi_kernel_option *o) {
    return is_last(o) || fills_threads(p, HDI_MIN(p->m, HDCPU_INT8_TILE_M), o->tile_n) ? 0 : NEVER;
}

static bool native_tile_fits(const product *p, config *c) {
    const uint64_t bytes = is_exact(p) ? hdcpu_exact_scratch_bytes(c->tile_m, c->tile_n)
                                       : hdcpu_fast_scratch_bytes(c->tile_m, c->tile_n, p->k);
    c->scratch_bytes = (uint32_t)bytes;
    c->because =
        is_exact(p) ? "tiles summed in the order that every device shares" : "tiles packed for the vector units";
    return bytes <= UINT32_MAX;
}

/* Very wide tiles are only for those who measure. */
static uint64_t native_tile_cost(const product *p, const hdi_kernel_option *o) {
    return o->tile_n <= 3 * o->tile_m && (is_last(o) || fills_threads(p, o->tile_m, o->tile_n)) ? 0 : NEVER;
}

static uint64_t native_codes_cost(const product *p, const hdi_kernel_option *o) {
    return is_last(o) || fills_threads(p, o->tile_m, o->tile_n) ? 0 : NEVER;
}

static bool tiles_fill(const product *p, uint64_t tile_m, uint64_t tile_n) {
    return tiles_of(p, tile_m, tile_n) >= 2 * p->request->caps->compute_units;
}

/* In fast mode K is divided where tiles alone would leave units idle. */
static bool tile_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    c->parts = !is_exact(p) && p->m > FEW_ROWS && !tiles_fill(p, c->tile_m, c->tile_n) ? HDI_CHAIN_INPUTS : 1;
    while (!parts_fit(p, c->parts)) c->parts--;
    c->because = c->tile_n == 128 ? "large: tiles of 128 x 128" : c->tile_n == 64 ? "tiles of 64 x 64"
               : c->tile_n == 32 ? "tiles of 32 x 32: more would leave the device idle, or do not fit"
                                 : "small: tiles of 16 x 16";
    return most_invocations(caps) >= c->workgroup && caps->shared_bytes >= 2 * 16 * 4 * (c->tile_n + 4) &&
           (p->m > FEW_ROWS || c->tile_n <= 16); /* few rows fill no larger one */
}

static uint64_t tile_cost(const product *p, const hdi_kernel_option *o) {
    const bool too_large = 2 * p->m <= o->tile_m || 2 * p->n <= o->tile_n;
    return is_last(o) || (tiles_fill(p, o->tile_m, o->tile_n) && !too_large) ? 0 : NEVER;
}

/* The exact product in 8 bits on matrix units of whole numbers. */
static bool codes_matrix_fits(const product *p, config *c) {
    const hdi_caps *caps = p->request->caps;
    if (!is_exact(p) || !caps->matrix_s8 || !takes_units(p, c) || (p->batch > 1 && !p->chosen)) return false;
    const uint64_t columns = hdi_product_codes_bytes(p, HDI_CODES_COLUMNS),
                   rows = hdi_product_codes_bytes(p, HDI_CODES_ROWS_IN_STRANDS);
    if (HDI_MAX(rows, columns) > HDI_MIN(caps->max_binding_bytes, caps->memory_bytes / 32)) return false;
    c->packs = HDI_MODULE_CODES;
    c->in_strands = true;
    c->because = "rows of A in 8 bits, tiles by matrix units of whole numbers";
    return most_invocations(caps) >= c->workgroup &&
           caps->shared_bytes >= hdi_product_unit_bytes(p, c->tile_m, c->tile_n);
}

static uint64_t codes_matrix_cost(const product *p, const hdi_kernel_option *o) {
    enum { WORTH_ROWS = 48 }; /* fewer do not repay columns that become codes first */
    return p->m >= WORTH_ROWS ? tile_cost(p, o) : NEVER;
}

/* ---- options ---- */

/* The first one that fits is taken. A native device has C kernels of some; some make a norm and a pair; and some are
 * those of the exact product in 8 bits, which takes no other. */
static const struct {
    hdi_module_id module;
    bool native, merges;
    bool     (*fits)(const product *p, config *c);
    uint64_t (*cost)(const product *p, const hdi_kernel_option *option); /* NULL: there is one option */
} kernels[] = {
    { HDI_MODULE_MATVEC_MATRIX,   false, true,  few_matrix_fits, few_matrix_cost },
    { HDI_MODULE_MATVEC_DOT,      false, true,  dot_fits, dot_cost },
    { HDI_MODULE_MATVEC_SUBGROUP, false, true,  subgroup_fits, subgroup_cost },
    { HDI_MODULE_MATMUL_LIBRARY,  false, false, library_fits, NULL },
    { HDI_MODULE_MATMUL_MATRIX,   false, false, matrix_fits, matrix_cost },
    { HDI_MODULE_MATMUL_TENSOR,   false, false, tensor_fits, tensor_cost }, /* slower on an H200: where measured */
    { HDI_MODULE_MATMUL_CODES_MATRIX, false, false, codes_matrix_fits, codes_matrix_cost },
    { HDI_MODULE_MATMUL_CODES_DOT, false, false, codes_fits, tile_cost },
    { HDI_MODULE_MATMUL_CODES,    false, false, codes_fits, tile_cost },
    { HDI_MODULE_MATVEC,          false, false, vector_fits, vector_cost },
    { HDI_MODULE_MATVEC,          true,  false, native_vector_fits, native_vector_cost },
    { HDI_MODULE_MATMUL_AMX,      true,  false, amx_fits, amx_cost },
    { HDI_MODULE_MATMUL_INT8,     true,  false, int8_fits, int8_cost },
    { HDI_MODULE_MATMUL_CODES,    true,  false, native_codes_fits, native_codes_cost },
    { HDI_MODULE_MATMUL_TILED,    false, false, tile_fits, tile_cost },
    { HDI_MODULE_MATMUL_TILED,    true,  false, native_tile_fits, native_tile_cost },
};

bool hdi_product_grid(const product *p, const config *c, uint64_t out_groups[3]) {
    const hdi_caps *caps = p->request->caps;
    out_groups[0] = hdi_divide_up(p->n, c->tile_n);
    out_groups[1] = hdi_divide_up(p->m, c->tile_m);
    out_groups[2] = p->batch * HDI_MAX(c->parts, 1);
    if (caps->native_kernels || c->option->module == HDI_MODULE_MATMUL_LIBRARY) return true;
    return out_groups[0] <= caps->max_groups_x && out_groups[1] <= caps->max_groups_y &&
           out_groups[2] <= caps->max_groups_z;
}

/* Kernels of few rows in 8 bits. */
static bool has_few_rows(uint32_t module) {
    return module == HDI_MODULE_MATVEC_DOT || module == HDI_MODULE_MATVEC_MATRIX;
}

/* Is it there for the device and the request, and not known to be wrong? The last one is judged by
 * hdi_kernels_lower. */
static bool is_open(const product *p, uint32_t kernel) {
    const hdi_module_id module = kernels[kernel].module;
    const bool merged = p->request->a_norm.present || p->request->pair;
    const bool last = module == HDI_MODULE_MATMUL_TILED || module == HDI_MODULE_MATMUL_CODES;
    const bool codes = module == HDI_MODULE_MATMUL_CODES || module == HDI_MODULE_MATMUL_CODES_DOT ||
                       module == HDI_MODULE_MATMUL_CODES_MATRIX;
    const bool runs = is_exact(p) && has_runs(p),
               both = has_few_rows(module) || module == HDI_MODULE_MATMUL_INT8;
    if (runs ? !codes && !both : codes) return false;
    if (p->request->out_coded && module != HDI_MODULE_MATVEC_DOT) return false;
    if (p->request->a_coded && !has_few_rows(module)) return false;
    return kernels[kernel].native == (p->request->caps->native_kernels != 0) && (!merged || kernels[kernel].merges) &&
           (last || !is_wrong(p, module));
}

/* Do the columns of a workgroup leave in 8 bits, if they are to? Sixteen lanes round a run together. */
static bool codes_fit(const product *p, const config *c) {
    enum { LANES = 16 };
    return !p->request->out_coded ||
           (c->tile_n % HDI_MM_RUN == 0 && p->n % HDI_MM_RUN == 0 && p->request->caps->subgroup >= LANES);
}

/* What a kernel makes of the product with an option. */
static bool configure(const product *p, uint32_t kernel, const hdi_kernel_option *o, config *out) {
    *out = (config){ .option = o, .merges = kernels[kernel].merges, .tile_m = o->tile_m, .tile_n = o->tile_n,
                     .part_m = o->part_m, .part_n = o->part_n, .workgroup = o->workgroup, .parts = o->parts,
                     .packs = HDI_MODULE_COUNT };
    return o->native == kernels[kernel].native && kernels[kernel].fits(p, out) && codes_fit(p, out);
}

/* What a kernel makes of the product by its rules. */
static bool apply_rules(const product *p, uint32_t kernel, config *out) {
    uint64_t least = NEVER;
    if (!is_open(p, kernel)) return false;
    for (const hdi_kernel_option *o = NULL; (o = hdi_kernel_option_next(kernels[kernel].module, o));) {
        config c;
        const uint64_t cost = kernels[kernel].cost ? kernels[kernel].cost(p, o) : 0;
        if (cost >= least || !configure(p, kernel, o, &c)) continue;
        least = cost;
        *out = c;
    }
    return least < NEVER;
}

static bool apply_all_rules(const product *p, config *out) {
    for (uint32_t i = 0; i < HDI_COUNT(kernels); i++)
        if (apply_rules(p, i, out)) return true;
    return false;
}

static bool apply_option(const product *p, const hdi_kernel_option *o, config *out) {
    config own;
    uint64_t groups[3];
    uint32_t i = 0;
    while (i < HDI_COUNT(kernels) && (kernels[i].module != o->module || kernels[i].native != o->native)) i++;
    if (i == HDI_COUNT(kernels) || !is_open(p, i) || !configure(p, i, o, out)) return false;
    if (!hdi_product_grid(p, out, groups)) return false;
    return !o->by_rules || (apply_rules(p, i, &own) && own.option == o);
}

static bool option_fits(const void *user, const hdi_kernel_option *o) {
    config c;
    return apply_option(user, o, &c);
}

bool hdi_product_choose(const product *p, const hdi_kernel_option *option, config *out) {
    if (!option || !apply_option(p, option, out)) return apply_all_rules(p, out);
    out->measured = true;
    return true;
}

/* In fast mode up to FEW_ROWS rows are summed as one alone is, so that each has the bits that it has alone
 * (ops/test_ops_alone). Of these kernels only matvec_subgroup's order hangs on its options: on its workgroup. */
static bool sums_alike(const hdi_kernel_option *x, const hdi_kernel_option *y) {
    const uint32_t one = x->module == HDI_MODULE_MATVEC_MATRIX ? HDI_MODULE_MATVEC_DOT : x->module, /* one order */
                   other = y->module == HDI_MODULE_MATVEC_MATRIX ? HDI_MODULE_MATVEC_DOT : y->module;
    return one == other && (one != HDI_MODULE_MATVEC_SUBGROUP || x->workgroup == y->workgroup);
}

static const hdi_kernel_option *measured_option(const product *p, hdi_offer *offer);

/* The option that one row takes; NULL where nothing is to be like it. */
static const hdi_kernel_option *option_alone(const product *p) {
    product one = *p;
    config c;
    one.m = one.most = 1;
    if (p->m == 1 || p->m > FEW_ROWS || is_exact(p)) return NULL;
    return hdi_product_choose(&one, measured_option(&one, NULL), &c) ? c.option : NULL;
}

typedef struct few_rows {
    const product *p;
    const hdi_kernel_option *alone;
} few_rows;

static bool few_fit(const void *user, const hdi_kernel_option *o) {
    const few_rows *few = user;
    return (!few->alone || sums_alike(o, few->alone)) && option_fits(few->p, o);
}

/* The option that is chosen by what was measured, or that few rows take to be alike, or NULL. Such choices are for
 * products as in models: rows of f32 and weights whose columns lie along K. */
static const hdi_kernel_option *measured_option(const product *p, hdi_offer *offer) {
    if (p->a.tensor->dtype != HD_F32 && !p->request->a_rounded) return NULL;
    if (!p->a.along_k || !p->b.along_k || p->batch != 1) return NULL;
    const bool merged = p->request->a_norm.present || p->request->pair;
    const hdi_class_kind kind = merged ? HDI_CLASS_MERGED : p->m <= FEW_ROWS ? HDI_CLASS_MATVEC : HDI_CLASS_MATMUL;
    const hdi_class class = hdi_class_of(kind, p->b.tensor->dtype, p->m, p->n * p->k);
    config c;
    const hdi_kernel_option *own = apply_all_rules(p, &c) ? c.option : NULL;
    const few_rows few = { p, option_alone(p) };
    const bool alike = !own || !few.alone || sums_alike(own, few.alone);
    const hdi_kernel_option *usual = alike ? own : few.alone;
    const hdi_kernel_option *option = hdi_kernel_option_choose(p->request, class, usual, few_fit, &few, offer);
    return option == own ? NULL : option;
}

bool hdi_product_fits(const product *p) {
    config c;
    return apply_all_rules(p, &c);
}

bool hdi_matmul_fits(const hdi_request *request) {
    product p;
    return hdi_product_read(request, &p, NULL) == HD_OK && hdi_product_fits(&p);
}

/* Matrix units are as fast with weights in f16 as with q4_0 up to 32 rows on an H200, and 6 to 25 % faster above. */
uint32_t hdi_matmul_half_rows(const hdi_caps *caps) {
    enum { UNIT_ROWS = 33 };
    return caps->product_library ? LIBRARY_LEAST_SIDE : caps->matrix_f16 && caps->f16_arithmetic ? UNIT_ROWS : 0;
}

bool hdi_matmul_rounds(const hdi_request *request) {
    product p;
    config c;
    return hdi_product_read(request, &p, NULL) == HD_OK && hdi_product_choose(&p, measured_option(&p, NULL), &c) &&
           c.halves[0];
}

bool hdi_matmul_takes_codes(const hdi_request *request) {
    hdi_request plain = *request;
    product p, coded;
    config usual, c;
    plain.a_coded = plain.out_coded = false;
    if (hdi_product_columns_at_once(request) || hdi_product_read(&plain, &p, NULL)) return false;
    coded = p;
    coded.request = request;
    if (p.batch > 1 || p.a.first != 0 || !hdi_tensor_is_dense(p.a.tensor)) return false;
    return hdi_product_choose(&p, measured_option(&p, NULL), &usual) && has_few_rows(usual.option->module) &&
           hdi_product_choose(&coded, measured_option(&coded, NULL), &c) && c.option == usual.option;
}

hd_status hdi_lower_matmul(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    product p;
    const uint64_t columns = hdi_product_columns_at_once(request);
    if (columns) return hdi_product_lower_slices(request, columns, lowering, error);
    const hd_status status = hdi_product_read(request, &p, error);
    return status ? status : hdi_product_lower(&p, measured_option(&p, lowering->offer), lowering, error);
}
