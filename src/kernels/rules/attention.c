/* attention.c: lowers attention. Query rows that share a key head share a workgroup, as many as pays off. In exact mode
 * that does not change a bit of the result; fast mode also cuts the keys into parts, so that few queries over many keys
 * fill a device. There up to 8 queries of a sequence take what one alone takes: the kernel, its option, the rows of a
 * workgroup and the parts, so that each has the bits that it has alone (ops/test_ops_alone). */
#include "kernels/cpu/attention_native.h"
#include "kernels/rules/attention.h"
#include "kernels/rules/rope.h"
#include <math.h>

#define MOST_ROWS 8u
#define FEW_QUERIES 8u
#define MOST_NATIVE_ROWS 32u /* of a processor, whose caches hold them all */

/* One request with its operands dense. */
typedef struct attention {
    const hdi_request *request;
    const hdi_tensor  *operands;         /* all of them; by name: */
    const hdi_tensor  *q, *k, *v, *past, *pages, *sinks, *mask; /* the last four: q where absent; pages: or starts */
    bool     has_past, causal;
    uint32_t B, T, S, Hq, Hkv, D;
    uint32_t N, page;                    /* of a pool of pages: how many, and the PAGE constant; else 0 */
    uint64_t row_count, pairs;           /* query rows of a key head; key heads of all sequences */
    uint64_t own_rows;                   /* those that decide: of few queries one's, else row_count */
    uint32_t form, window;               /* abi.h */
    uint64_t keys;                       /* that the rows of a key head see at most; few: that FEW_QUERIES would */
    float    scale, cap;
    uint32_t mask_steps[4];              /* push words: 0 along what the mask repeats */
    const hdi_kernel_option *option;     /* that is taken */
    bool     measured;                   /* the option was chosen by what was measured */
} attention;

/* Is a kernel in fast mode, over keys like these, known to be wrong on the device? */
static bool is_wrong(const attention *a, hdi_module_id module) {
    return hdi_variant_is_wrong(a->request->caps, (hdi_variant){ module, false, UINT64_C(1) << a->k->dtype });
}

static uint32_t round_up(uint32_t n, uint32_t step) { return (n + step - 1) / step * step; }

/* What the launches of all kernels share: workgroups of so many query rows, of so many elements each. */
static hdi_rows_launch common_launch(const attention *a, uint32_t rows, uint32_t width) {
    return (hdi_rows_launch){
        .module = a->option->module, .option = a->measured ? a->option->id : 0,
        .inputs = { a->q, a->k, a->v, a->past, a->pages, a->sinks }, .input_count = 6, .out = &a->request->out,
        .spec = { (uint32_t)a->q->dtype, (uint32_t)a->k->dtype, a->causal, a->has_past, rows, width, a->page, a->form },
        .spec_count = 8,
        .push = { a->B, a->T, a->S, a->Hq, a->Hkv, a->D, hdi_rows_float_bits(a->scale), a->N, a->window,
                  hdi_rows_float_bits(a->cap), hdi_rows_float_bits(a->cap > 0 ? 1.0f / a->cap : 0) }, .push_count = 11,
        .groups = a->pairs * hdi_divide_up(a->row_count, rows), .flops = 4 * a->row_count * a->pairs * a->keys * a->D };
}

/* Are heads whole vectors of 16 bytes that begin at multiples of that? Blocks are read word by word. */
static bool is_wide(const hdi_tensor *tensor, uint32_t D) {
    if (hdi_dtype_is_quantised(tensor->dtype)) return true;
    const uint64_t bytes = hd_dtype_bytes(tensor->dtype, 1);
    return D * bytes % 16 == 0 && tensor->first * bytes % 16 == 0;
}

/* Are rows of keys and values even numbers of blocks? */
static bool has_even_blocks(const attention *a) {
    return hdi_dtype_is_quantised(a->k->dtype) && (uint64_t)a->Hkv * a->D / HDI_WRITE_BLOCK % 2 == 0;
}

/* ---- the kernel that every device has, and the only one in exact mode ---- */

/* Shared memory of attention.comp, with so many tiles of keys at once. */
static uint64_t plain_shared_bytes(uint32_t rows, uint32_t width, uint32_t tiles) {
    const uint64_t blocks = width / HDI_MM_BLOCK, a_tile = HDI_ATTENTION_TILE * (blocks + 1) + 3,
                   a_row = blocks * (2 * HDI_MM_BLOCK + 4) + tiles * (a_tile + (tiles > 1 ? width : 0)) + 6;
    return 4 * (rows * a_row + 256);
}

/* Query rows of a workgroup, by the rules. A GPU is filled first: sharing begins once every unit has work. */
static uint64_t plain_rows(const attention *a) {
    const hdi_caps *caps = a->request->caps;
    const uint32_t width = round_up(a->D, HDI_MM_BLOCK);
    if (caps->native_kernels) return HDI_MIN(a->row_count, MOST_NATIVE_ROWS);
    uint32_t rows = 1;
    while (2 * rows <= MOST_ROWS && rows < a->own_rows &&
           a->own_rows * a->pairs >= 8 * rows * hdi_attention_units(caps) &&
           plain_shared_bytes(2 * rows, width, 1) <= hdi_attention_room(caps)) rows *= 2;
    return rows;
}

/* Tiles of keys that a workgroup works at at once: several where there are so few workgroups that each waits for memory
 * by itself. */
static uint32_t plain_tiles(const attention *a, uint32_t rows, uint32_t width) {
    enum { MOST_TILES = 8 };
    const hdi_caps *caps = a->request->caps;
    if (caps->native_kernels || rows > 1 || a->row_count * a->pairs > 2 * hdi_attention_units(caps)) return 1;
    uint32_t tiles = (uint32_t)HDI_MIN(hdi_divide_up(a->keys, HDI_ATTENTION_TILE), MOST_TILES);
    while (tiles > 1 && plain_shared_bytes(rows, width, tiles) > hdi_attention_room(caps)) tiles--;
    return tiles;
}

static bool plain_fits(const attention *a, uint32_t rows) {
    const hdi_caps *caps = a->request->caps;
    if (rows > (caps->native_kernels ? MOST_NATIVE_ROWS : MOST_ROWS) || (rows > 1 && rows / 2 >= a->own_rows))
        return false;
    const uint32_t width = round_up(a->D, HDI_MM_BLOCK);
    return caps->native_kernels || plain_shared_bytes(rows, width, 1) <= hdi_attention_room(caps);
}

/* Many query rows over f16 on a processor with tiles of bf16. Where a measured option wants fewer, it has them. */
static bool takes_native_tiles(const attention *a) {
    enum { MOST_D = 256 };
    const hdi_caps *caps = a->request->caps;
    return a->request->math == HD_MATH_FAST && caps->native_kernels && caps->matrix_bf16 && !a->measured &&
           a->k->dtype == HD_F16 && a->own_rows >= HDCPU_ATTENTION_PAIR && a->D % 32 == 0 && a->D <= MOST_D &&
           !(a->form & (HDI_ATTENTION_CAPPED | HDI_ATTENTION_MASKED));
}

static hd_status lower_plain(const attention *a, hdi_lowering *lowering, hd_error *error) {
    const uint32_t width = round_up(a->D, HDI_MM_BLOCK), most = a->option->tile_m;
    const bool native = a->request->caps->native_kernels != 0;
    const bool tiles = takes_native_tiles(a);
    const uint32_t room = tiles ? HDCPU_ATTENTION_ROWS : most;
    const uint32_t rows = native || a->measured ? (uint32_t)HDI_MIN(room, a->row_count) : most;
    if (!native && plain_shared_bytes(rows, width, 1) > hdi_attention_room(a->request->caps))
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "attention over heads of %u needs %llu bytes of shared memory",
                        a->D, (unsigned long long)plain_shared_bytes(rows, width, 1));
    hdi_rows_launch launch = common_launch(a, rows, width);
    const uint32_t at_once = plain_tiles(a, rows, width);
    launch.workgroup = hdi_rows_workgroup_of(a->request->caps, at_once > 1 ? 512 : 128);
    launch.spec[launch.spec_count++] = at_once;
    if (!native && a->k->dtype == HD_F16 && is_wide(a->k, a->D) && is_wide(a->v, a->D))
        launch.spec[HDI_ATTENTION_FORM - HDI_ATTENTION_TYPE] |= HDI_ATTENTION_WIDE_K;
    launch.scratch_bytes = 4 * ((2 * rows + 3 * HDI_ATTENTION_TILE) * width + rows * HDI_ATTENTION_TILE + 5 * rows);
    launch.inputs[6] = a->mask;
    launch.input_count = 7;
    memcpy(launch.push + 11, a->mask_steps, sizeof a->mask_steps);
    launch.push_count = 15;
    if (tiles) launch.spec[HDI_ATTENTION_FORM - HDI_ATTENTION_TYPE] |= HDCPU_ATTENTION_TILES;
    if (tiles) launch.scratch_bytes += 4 * (uint32_t)hdcpu_attention_tiles_words(rows, a->D);
    launch.because = tiles      ? "many queries over an f16 cache on a processor with bf16 tiles"
                     : rows > 1 ? "one pass over the keys, read once for several query rows"
                                : "one pass over the keys for each query row";
    return hdi_rows_add(a->request, &launch, lowering, error);
}

/* ---- the keys in parts, for devices whose invocations can read each other ---- */

/* How a workgroup of attention_subgroup.comp is made up. */
typedef struct parted {
    uint32_t rows, width, key_lanes, keys, workgroup, parts, part_keys;
    bool     wide;
} parted;

#define OWN_ELEMENTS  32u /* of all query rows, that an invocation holds in registers */
#define KEYS_AT_ONCE  2u  /* that an invocation reads at once, while it works on as many */
#define SHARED_FIXED  1040u /* bytes of shared memory whatever the shapes */
#define SUBGROUPS     8u  /* of a workgroup */
#define GROUPS_A_UNIT 2u  /* of the device, where there are so many keys */
/* Measured on an H100, a layer of Qwen3-4B in its plan: keys times rows that one workgroup takes sooner than several
 * take parts and merge them, and of longer caches how many parts there may be, up to so many keys in each. */
#define KEYS_ALONE    512u
#define MERGED_PARTS  16u
#define PART_KEYS     256u
#define SOFTWARE_KEYS 64u /* fewer are not worth the longer compilation on a GPU that is none */

/* Shared memory of attention_keys.glsl. */
static uint64_t parted_shared_bytes(const parted *p, uint32_t subgroup) {
    return SHARED_FIXED + p->workgroup / subgroup * (4 * (uint64_t)p->width + 8) * p->rows;
}

static bool make_parted(const attention *a, const hdi_kernel_option *option, parted *out) {
    const hdi_caps *caps = a->request->caps;
    const uint32_t subgroup = (uint32_t)caps->subgroup, chunks = (a->D + 7) / 8;
    if (a->request->math == HD_MATH_EXACT || caps->native_kernels || !caps->subgroup_shuffle || caps->max_bindings < 9)
        return false;
    if (a->form & (HDI_ATTENTION_MASKED | HDI_ATTENTION_STARTS)) return false;
    if (subgroup < 4 || (subgroup & (subgroup - 1)) != 0 || subgroup > hdi_rows_workgroup(caps)) return false;
    parted p = { .width = 8 * chunks, /* which a wide read takes whole */
                 .wide = a->D % 8 == 0 && is_wide(a->q, a->D) && is_wide(a->k, a->D) && is_wide(a->v, a->D) };
    const uint32_t most_rows = OWN_ELEMENTS / 8 / ((chunks + subgroup - 1) / subgroup);
    p.rows = (uint32_t)HDI_MIN(a->own_rows, HDI_MIN(MOST_ROWS, HDI_MAX(most_rows, 1)));
    const bool alone = a->S <= KEYS_ALONE && 2 * a->pairs * a->own_rows <= hdi_attention_units(caps);
    if (alone) p.rows = HDI_MIN(p.rows, KEYS_ALONE / a->S);
    /* in a window parts begin where a workgroup's first query sees keys: few queries are in workgroups of their own */
    while (a->window && a->T <= FEW_QUERIES && a->own_rows % p.rows) p.rows--;
    p.key_lanes = 1;
    while (p.key_lanes < subgroup && (chunks + p.key_lanes - 1) / p.key_lanes * 8 * p.rows > OWN_ELEMENTS)
        p.key_lanes *= 2;
    p.workgroup = HDI_MIN(SUBGROUPS * subgroup, hdi_rows_workgroup(caps));
    while (p.workgroup > subgroup && parted_shared_bytes(&p, subgroup) > hdi_attention_room(caps)) p.workgroup /= 2;
    if (parted_shared_bytes(&p, subgroup) > hdi_attention_room(caps)) return false;
    p.keys = option->keys;
    /* keys under way in a workgroup: a part has whole rounds */
    const uint32_t round = p.workgroup / p.key_lanes * p.keys;
    const uint64_t units = a->pairs * hdi_divide_up(a->own_rows, p.rows);
    const uint64_t wanted = option->groups * hdi_attention_units(caps) / units;
    const uint64_t keys = HDI_MIN(a->S, a->window == 0 ? a->S : a->keys + round); /* parts begin with a whole round */
    const uint64_t shares = alone ? 1 : HDI_MAX(HDI_MIN(wanted, HDI_ATTENTION_PARTS), 1);
    const uint64_t least = HDI_MIN(keys / MERGED_PARTS, PART_KEYS);
    p.part_keys = round_up((uint32_t)HDI_MAX(hdi_divide_up(keys, shares), least), round);
    p.parts = (uint32_t)hdi_divide_up(keys, p.part_keys);
    *out = p;
    return true;
}

/* A software device compiles for long: it needs reasons to. */
static bool parted_pays(const attention *a, const parted *p) {
    return !a->request->caps->software || (p->parts > 1 && a->keys >= SOFTWARE_KEYS);
}

/* Keys and values over which matrix units work, if f32 and bf16 may be made f16 for that. */
static bool rounds_keys(const hdi_request *request) {
    const hdi_caps *caps = request->caps;
    const hd_dtype given = request->inputs[1].dtype;
    return request->math != HD_MATH_EXACT && request->attrs->ints[2] != 0 && (given == HD_F32 || given == HD_BF16) &&
           !hdi_rows_has(request, 4) && caps->matrix_f16 && caps->f16_arithmetic && !caps->native_kernels;
}

/* One query a sequence: may its heads be turned here, and become rows of the cache? Not where sequences share pages:
 * one may see what another one writes. */
static bool may_turn(const attention *a, const parted *p) {
    const hdi_caps *caps = a->request->caps;
    if (a->T != 1 || (a->B > 1 && a->N > 0) || !a->has_past || !p->wide) return false;
    if (caps->max_bindings < HDI_TURN_INPUTS + 1 || caps->binding_align % 16) return false;
    /* queries, and the token's key and value */
    const uint64_t own = (4 * (uint64_t)p->rows + 8) * p->width;
    if (parted_shared_bytes(p, (uint32_t)caps->subgroup) + own > hdi_attention_room(caps)) return false;
    if (!hdi_rope_is_whole(a->request->turn, a->D) || rounds_keys(a->request) || a->q->dtype != HD_F32) return false;
    if (a->v->dtype != a->k->dtype || hdi_dtype_is_quantised(a->k->dtype)) return false;
    for (uint32_t i = HDI_TURN_QUERY_WEIGHT; i < HDI_TURN_INPUTS; i++)
        if (hdi_rows_has(a->request, i) && a->request->inputs[i].dtype != HD_F32) return false;
    return hdi_rope_turns_fit(caps, hd_shape_elements(a->request->inputs[HDI_TURN_POSITIONS].shape), a->D) &&
           !is_wrong(a, HDI_MODULE_ATTENTION_HEADS) &&
           !hdi_variant_is_wrong(caps, (hdi_variant){ HDI_MODULE_ROPE, false, UINT64_C(1) << HD_I32 });
}

static hd_status add_turning(const attention *a, hdi_rows_launch *launch, hdi_tensor *turns, hdi_lowering *lowering,
                             hd_error *error) {
    const hdi_tensor *positions = &a->operands[HDI_TURN_POSITIONS];
    const hdi_attrs *norm = a->request->norm, *turn = a->request->turn;
    launch->module = HDI_MODULE_ATTENTION_HEADS;
    launch->inputs[8] = turns;
    for (uint32_t i = HDI_TURN_QUERY_WEIGHT; i < HDI_TURN_INPUTS; i++) launch->inputs[i] = &a->operands[i];
    launch->input_count = HDI_TURN_INPUTS;
    launch->written |= 3u << 1; /* keys and values */
    launch->spec[launch->spec_count++] = turn->ints[1] == HD_ROPE_NEIGHBOURS;
    launch->spec[launch->spec_count++] = norm ? 1u + hdi_rows_has(a->request, HDI_TURN_KEY_WEIGHT) : 0u;
    launch->push[launch->push_count++] = (uint32_t)hd_shape_elements(positions->shape);
    launch->push[launch->push_count++] = hdi_rows_float_bits(norm ? norm->floats[0] : 0);
    launch->because = "one query a sequence: turned, written to the cache and met with all keys in one kernel";
    return hdi_rope_turns(a->request, turn, positions, a->D, lowering, turns, error);
}

static hd_status lower_parted(const attention *a, const parted *p, hdi_lowering *lowering, hd_error *error) {
    const hdi_caps *caps = a->request->caps;
    const uint64_t units = a->pairs * hdi_divide_up(a->row_count, p->rows);
    hdi_tensor partial = *a->q, arrivals = *a->q;
    if (p->parts > 1) {
        const uint64_t floats = units * p->parts * p->rows * (p->width + 4);
        const hd_status status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE((int64_t)floats), &partial, error);
        const uint32_t storage = status == HD_OK ? lowering->zeros(lowering->user, 4 * units) : HDI_NO_INDEX;
        if (status != HD_OK) return status;
        if (storage == HDI_NO_INDEX)
            return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the counts of arrivals");
        arrivals = hdi_tensor_dense(storage, HD_I32, HD_SHAPE((int64_t)units));
    }
    hdi_rows_launch launch = common_launch(a, p->rows, p->width);
    launch.workgroup = p->workgroup;
    launch.subgroup = caps->subgroup_control ? (uint32_t)caps->subgroup : 0;
    launch.inputs[6] = &partial;
    launch.inputs[7] = &arrivals;
    launch.input_count = 8;
    launch.written = p->parts > 1 ? 3u << 6 : 0;
    launch.spec[8] = (uint32_t)caps->subgroup;
    launch.spec[9] = p->key_lanes;
    launch.spec[10] = p->wide;
    launch.spec[11] = p->keys;
    launch.spec_count = 12;
    launch.push[11] = p->parts;
    launch.push[12] = p->part_keys;
    launch.push_count = 13;
    launch.groups *= p->parts;
    launch.because = p->parts > 1 ? "few queries: parts of the keys side by side, merged by the last to arrive"
                                  : "keys side by side, read once for several query rows";
    hdi_tensor turns;
    const hd_status status = a->request->turn ? add_turning(a, &launch, &turns, lowering, error) : HD_OK;
    return status ? status : hdi_rows_add(a->request, &launch, lowering, error);
}

/* ---- many queries, on matrix units ---- */

#define MATRIX_MOST_D 256u

/* Shared memory of attention_matrix.comp. */
static uint64_t matrix_shared_bytes(uint32_t width) {
    return 64 * (2 * (uint64_t)width + 16) + 4 * 16 * (9 + 5) * 16 + 1024;
}

bool hdi_attention_has_subgroups(const hdi_caps *caps) {
    return caps->memory_model && caps->subgroup_shuffle && caps->subgroup_arithmetic &&
           (caps->subgroup == 32 || caps->subgroup_control) && hdi_rows_workgroup(caps) >= 128;
}

static bool takes_matrix(const attention *a) {
    const hdi_caps *caps = a->request->caps;
    const uint64_t units = a->pairs * hdi_divide_up(a->own_rows, HDI_ATTENTION_MATRIX_ROWS);
    if (a->request->math == HD_MATH_EXACT || (a->form & HDI_ATTENTION_MASKED)) return false;
    if (!caps->matrix_f16 || !caps->f16_arithmetic) return false;
    if ((a->k->dtype != HD_F16 && !has_even_blocks(a)) || a->D > MATRIX_MOST_D) return false;
    if (!hdi_attention_has_subgroups(caps)) return false;
    if (a->own_rows < HDI_ATTENTION_MATRIX_ROWS || 4 * units < hdi_attention_units(caps)) return false;
    return matrix_shared_bytes(round_up(a->D, 16)) <= hdi_attention_room(caps);
}

/* Either kernel: a subgroup of 32 for 16 query rows. */
static hd_status lower_units(const attention *a, uint32_t rows, const char *because, hdi_lowering *lowering,
                             hd_error *error) {
    hdi_rows_launch launch = common_launch(a, rows, round_up(a->D, 16));
    launch.workgroup = 2 * rows;
    launch.subgroup = launch.spec[8] = 32;
    launch.spec[10] = is_wide(a->k, a->D) && is_wide(a->v, a->D);
    launch.spec_count = 11;
    launch.because = because;
    return hdi_rows_add(a->request, &launch, lowering, error);
}

/* ---- many queries, on matrix units that reduce rows ---- */

/* Shared memory of attention_tensor.comp. */
static uint64_t tensor_shared_bytes(uint32_t width, uint32_t rows) {
    return 2 * HDI_ATTENTION_TENSOR_KEYS * (2 * (uint64_t)width + 16) + rows * 80;
}

static bool takes_tensor(const attention *a, uint32_t rows) {
    const hdi_caps *caps = a->request->caps;
    if (!takes_matrix(a) || !caps->matrix_reduces || a->D > HDI_ATTENTION_TENSOR_MOST_D) return false;
    if (hdi_rows_workgroup(caps) < 2 * rows || a->own_rows < rows) return false;
    return tensor_shared_bytes(round_up(a->D, 16), rows) <= hdi_attention_room(caps);
}

/* Large workgroups read the keys less often, and one of them keeps a unit as busy as two small ones: they are taken
 * where they fill three quarters of the units. */
static uint32_t tensor_rows(const attention *a) {
    const uint64_t groups = a->pairs * hdi_divide_up(a->own_rows, 128);
    const bool fill = 4 * groups >= 3 * hdi_attention_units(a->request->caps);
    return fill && takes_tensor(a, 128) ? 128 : 64;
}

/* ---- many queries over f32, by tiles ---- */

static bool takes_tiled(const attention *a) {
    const hdi_caps *caps = a->request->caps;
    if (a->request->math == HD_MATH_EXACT || caps->native_kernels || !hdi_attention_tiles_fit(caps)) return false;
    if (a->q->dtype != HD_F32 || a->k->dtype != HD_F32 || a->D > HDI_ATTENTION_TILED_MOST_D) return false;
    if (a->has_past || a->N > 0 || (a->form & ~HDI_ATTENTION_STARTS) != 0) return false;
    return a->own_rows >= 32 && 2 * a->pairs * hdi_divide_up(a->own_rows, 64) >= hdi_attention_units(caps);
}

static hd_status lower_tiled(const attention *a, hdi_lowering *lowering, hd_error *error) {
    const hdi_attention_sizes s = hdi_attention_sizes_of(a->request, a->row_count, a->pairs, a->D, false);
    const bool wide = is_wide(a->q, a->D) && is_wide(a->k, a->D) && is_wide(a->v, a->D);
    const hdi_rows_launch launch = {
        .module = a->option->module, .option = a->measured ? a->option->id : 0,
        .workgroup = HDI_ATTENTION_TILES_INVOCATIONS, .out = &a->request->out,
        .inputs = { a->q, a->k, a->v, a->q, a->pages }, .input_count = 5,
        .spec = { HD_F32, HD_F32, a->causal, a->Hq / a->Hkv, s.own, s.other, s.slice, wide, a->form != 0 },
        .spec_count = 9,
        .push = { a->B, a->T, a->S, a->Hkv, a->D, hdi_rows_float_bits(a->scale) }, .push_count = 6,
        .groups = a->pairs * hdi_divide_up(a->row_count, s.own),
        .flops = 4 * a->row_count * a->pairs * a->keys * a->D, .because = "many queries over f32",
    };
    return hdi_rows_add(a->request, &launch, lowering, error);
}

/* ---- options ---- */

static bool option_fits(const void *user, const hdi_kernel_option *option) {
    const attention *a = user;
    parted p;
    switch (option->module) {
    case HDI_MODULE_ATTENTION_MATRIX: return takes_matrix(a) && !is_wrong(a, option->module);
    case HDI_MODULE_ATTENTION_TENSOR: return takes_tensor(a, option->tile_m) && !is_wrong(a, option->module);
    case HDI_MODULE_ATTENTION_TILED: return takes_tiled(a) && !is_wrong(a, option->module);
    case HDI_MODULE_ATTENTION_SUBGROUP: return make_parted(a, option, &p) && !is_wrong(a, option->module);
    case HDI_MODULE_ATTENTION: return plain_fits(a, option->tile_m);
    default: return false;
    }
}

/* What the rules choose. */
static const hdi_kernel_option *own_option(const attention *a) {
    const uint32_t keys = a->request->caps->software ? 1 : KEYS_AT_ONCE;
    const uint32_t most_rows = tensor_rows(a);
    const hdi_kernel_option *option = NULL;
    parted p;
    do option = hdi_kernel_option_next(HDI_MODULE_ATTENTION_TENSOR, option);
    while (option->tile_m != most_rows);
    if (option_fits(a, option)) return option;
    option = hdi_kernel_option_next(HDI_MODULE_ATTENTION_MATRIX, NULL);
    if (option_fits(a, option)) return option;
    option = hdi_kernel_option_next(HDI_MODULE_ATTENTION_TILED, NULL);
    if (!a->request->caps->software && option_fits(a, option)) return option;
    option = NULL;
    do option = hdi_kernel_option_next(HDI_MODULE_ATTENTION_SUBGROUP, option);
    while (option->groups != GROUPS_A_UNIT || option->keys != keys);
    if (make_parted(a, option, &p) && parted_pays(a, &p) && !is_wrong(a, HDI_MODULE_ATTENTION_SUBGROUP)) return option;
    option = NULL;
    do option = hdi_kernel_option_next(HDI_MODULE_ATTENTION, option);
    while (option->tile_m < plain_rows(a));
    return option;
}

/* The mask broadcasts to [B,Hq,T,S]; false: it does not. */
static bool take_mask(const hdi_tensor *mask, attention *a) {
    const uint32_t lengths[4] = { a->B, a->Hq, a->T, a->S };
    uint64_t step = 1;
    for (uint32_t i = 0; i < 4; i++) { /* from the last axis */
        const uint64_t here = i < mask->shape.rank ? (uint64_t)mask->shape.dims[mask->shape.rank - 1 - i] : 1;
        if (here != 1 && here != lengths[3 - i]) return false;
        a->mask_steps[3 - i] = here == 1 ? 0 : (uint32_t)step;
        step *= here;
    }
    return mask->shape.rank <= 4 && step <= INT32_MAX;
}

enum { PAGES = 4, SINKS, MASK, STARTS };

/* What is asked for, with its operands as `operands`, and the option that is taken. */
static hd_status describe(const hdi_request *request, const hdi_tensor *operands, hdi_offer *offer, attention *out,
                          hd_error *error) {
    const bool has_past = hdi_rows_has(request, 3), paged = hdi_rows_has(request, 4);
    const hdi_tensor *q = &operands[0], *k = &operands[1], *pages = &operands[PAGES];
    const uint32_t page = paged ? hdi_rows_page(k) : 0, batch_axis = q->shape.rank - 3;
    const uint32_t kv_axis = paged ? 1 : batch_axis, B = batch_axis == 0 ? 1 : hdi_rows_dim(q, 0),
                   T = hdi_rows_dim(q, batch_axis), Hq = hdi_rows_dim(q, batch_axis + 1),
                   D = hdi_rows_dim(q, batch_axis + 2), Hkv = hdi_rows_dim(k, kv_axis + 1),
                   S = paged ? hdi_rows_dim(pages, pages->shape.rank - 1) << page : hdi_rows_dim(k, kv_axis);
    if (D > HDI_ATTENTION_MOST_D)
        return hdi_fail(error, HD_STATUS_LIMIT, "attention over heads of %u elements; at most %u", D,
                        HDI_ATTENTION_MOST_D);
    if (Hkv == 0 || Hq % Hkv != 0 || T > INT32_MAX / 2 || S > INT32_MAX / 2)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention of %u heads over %u", Hq, Hkv);
    if (hdi_rows_has(request, 5) && hd_shape_elements(operands[5].shape) < Hq)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention's sinks are not [%u]", Hq);
    if (has_past && hd_shape_elements(operands[3].shape) < B)
        return hdi_fail(error, HD_STATUS_SHAPE, "attention's past is not [%u]", B);
    if (hdi_rows_has(request, STARTS) && (paged || hd_shape_elements(operands[STARTS].shape) < (uint64_t)B * T))
        return hdi_fail(error, HD_STATUS_SHAPE, "attention's starts are not [%u,%u], or there are pages", B, T);
    const uint64_t window = (uint64_t)request->attrs->ints[1];
    const float cap = request->attrs->floats[1];
    const bool windowed = window > 0 && window < (uint64_t)S + T;
    attention a = { .request = request, .operands = operands, .q = q, .k = k, .v = &operands[2], .past = &operands[3],
                    .pages = hdi_rows_has(request, STARTS) ? &operands[STARTS] : pages,
                    .sinks = &operands[SINKS], .mask = &operands[MASK], .has_past = has_past,
                    .causal = request->attrs->ints[0] == 0, .B = B, .T = T, .S = S, .Hq = Hq, .Hkv = Hkv, .D = D,
                    .N = paged ? hdi_rows_dim(k, 0) : 0, .page = page,
                    .row_count = (uint64_t)T * (Hq / Hkv), .pairs = (uint64_t)B * Hkv,
                    .form = (cap > 0 ? HDI_ATTENTION_CAPPED : 0) | (windowed ? HDI_ATTENTION_WINDOWED : 0) |
                            (hdi_rows_has(request, SINKS) ? HDI_ATTENTION_SINKS : 0) |
                            (hdi_rows_has(request, MASK) ? HDI_ATTENTION_MASKED : 0) |
                            (hdi_rows_has(request, STARTS) ? HDI_ATTENTION_STARTS : 0),
                    .window = windowed ? (uint32_t)window : 0, .cap = cap,
                    .keys = windowed ? HDI_MIN(S, window + HDI_MAX(T, FEW_QUERIES) - 1) : S,
                    .scale = request->attrs->floats[0] == 0.0f ? (float)(1.0 / sqrt((double)D))
                    : request->attrs->floats[0] };
    if (hdi_rows_has(request, MASK) && !take_mask(&operands[MASK], &a))
        return hdi_fail(error, HD_STATUS_LIMIT, "attention's mask has more than 2^31 - 1 elements");
    a.own_rows = T <= FEW_QUERIES ? Hq / Hkv : a.row_count;
    const hdi_kernel_option *own = own_option(&a);
    const hdi_class class =
        hdi_class_of(HDI_CLASS_ATTENTION, k->dtype, T <= FEW_QUERIES ? 1 : T, a.pairs * a.keys * D);
    a.option = hdi_kernel_option_choose(request, class, own, option_fits, &a, offer);
    a.measured = a.option != own;
    *out = a;
    return HD_OK;
}

bool hdi_attention_turns(const hdi_request *request) {
    attention a;
    parted p;
    return describe(request, request->inputs, NULL, &a, NULL) == HD_OK &&
           a.option->module == HDI_MODULE_ATTENTION_SUBGROUP && make_parted(&a, a.option, &p) && may_turn(&a, &p);
}

hd_status hdi_lower_attention(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    hdi_tensor operands[HDI_TURN_INPUTS];
    for (uint32_t i = 0; i < HDI_TURN_INPUTS; i++) {
        operands[i] = operands[0];
        if (i >= 3 && !hdi_rows_has(request, i)) continue;
        const hdi_tensor *given = &request->inputs[i];
        const bool rounds = (i == 1 || i == 2) && rounds_keys(request);
        const hd_status status =
            hdi_rows_in(request, given, rounds ? HD_F16 : given->dtype, lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    attention a;
    const hd_status status = describe(request, operands, lowering->offer, &a, error);
    if (status != HD_OK) return status;
    parted p;
    const bool in_parts = a.option->module == HDI_MODULE_ATTENTION_SUBGROUP && make_parted(&a, a.option, &p);
    if (request->turn && !(in_parts && may_turn(&a, &p)))
        return hdi_fail(error, HD_STATUS_INTERNAL, "no kernel turns the heads of this attention");
    if (a.option->module == HDI_MODULE_ATTENTION_MATRIX)
        return lower_units(&a, HDI_ATTENTION_MATRIX_ROWS,
                           "many queries on a device with matrix units", lowering, error);
    if (a.option->module == HDI_MODULE_ATTENTION_TENSOR)
        return lower_units(&a, a.option->tile_m,
                           "many queries on a device whose matrix units reduce rows", lowering, error);
    if (a.option->module == HDI_MODULE_ATTENTION_TILED) return lower_tiled(&a, lowering, error);
    if (in_parts) return lower_parted(&a, &p, lowering, error);
    return lower_plain(&a, lowering, error);
}
