/* rope.c: lowers rotary embedding. The angle that a pair turns a position is made here as a 64-bit fraction of a turn,
 * with the same bits on every host: pow and exp of C libraries differ, so theta^(-2i/dims) is computed in pairs of
 * doubles (about 100 bits) from + - * / alone, which IEEE 754 defines to the bit. Needs doubles that are evaluated as
 * doubles and never contracted, as this project is built. */
#include "kernels/rules/rope.h"

/* An unevaluated sum of two doubles, |low| at most half a unit of high's last place. */
typedef struct pair { double high, low; } pair;

static pair two_sum(double a, double b) {
    const double sum = a + b, back = sum - a;
    return (pair){ sum, (a - (sum - back)) + (b - back) };
}
static pair two_product(double a, double b) {
    const double product = a * b, a_cut = a * 134217729.0, b_cut = b * 134217729.0; /* 2^27 + 1: halves of 26 bits */
    const double a_high = a_cut - (a_cut - a), b_high = b_cut - (b_cut - b), a_low = a - a_high, b_low = b - b_high;
    return (pair){ product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low };
}
static pair add(pair a, pair b) {
    const pair sum = two_sum(a.high, b.high);
    return two_sum(sum.high, sum.low + (a.low + b.low));
}
static pair multiply(pair a, pair b) {
    const pair product = two_product(a.high, b.high);
    return two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
static pair scaled(pair a, double b) { return multiply(a, (pair){ b, 0 }); }
static pair divide(pair a, pair b) {
    const double first = a.high / b.high;
    const pair rest = add(a, scaled(b, -first));
    const double second = rest.high / b.high;
    const pair last = add(rest, scaled(b, -second));
    return add(two_sum(first, second), (pair){ last.high / b.high, 0 });
}

static const pair ln2 = { 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56 };
static const pair turns_a_radian = { 0x1.45f306dc9c883p-3, -0x1.6b01ec5417056p-57 }; /* 1 / (2 pi) */

/* ln(x) of a positive normal float: x = m * 2^e with m about 1, and ln(m) = 2 atanh((m - 1) / (m + 1)). */
static pair logarithm(float x) {
    double m = (double)x;
    double e = 0;
    while (m > 1.5) { m *= 0.5; e += 1; }
    while (m < 0.75) { m *= 2; e -= 1; }
    const pair z = divide(two_sum(m, -1), two_sum(m, 1)), zz = multiply(z, z);
    pair sum = { 0, 0 };
    for (int k = 47; k >= 1; k -= 2) sum = add(multiply(sum, zz), divide((pair){ 1, 0 }, (pair){ k, 0 }));
    return add(scaled(ln2, e), scaled(multiply(sum, z), 2));
}
/* e^x for |x| below 700: 2^k e^r, and Taylor's series of e^r. */
static pair exponential(pair x) {
    const int32_t k = (int32_t)(x.high / ln2.high + (x.high < 0 ? -0.5 : 0.5));
    const pair r = add(x, scaled(ln2, -(double)k));
    pair sum = { 1, 0 };
    for (int i = 28; i >= 1; i--) sum = add((pair){ 1, 0 }, divide(multiply(sum, r), (pair){ i, 0 }));
    double power = 1;
    for (int32_t i = 0; i < k; i++) power *= 2;
    for (int32_t i = 0; i > k; i--) power *= 0.5;
    return (pair){ sum.high * power, sum.low * power };
}
/* x modulo 1 times 2^64, rounded; x in [0, 2^31]. */
static uint64_t fraction(pair x) {
    const uint64_t whole = (uint64_t)x.high;
    const double rest = (x.high - (double)whole) * 0x1p32; /* exact, as are the next two */
    const uint64_t top = (uint64_t)rest;
    const double tail = (rest - (double)top) * 0x1p32 + x.low * 0x1p64;
    return (top << 32) + (uint64_t)(int64_t)(tail + (tail < 0 ? -0.5 : 0.5));
}

bool hdi_rope_frequencies(float theta, float frequency_scale, const float *factors, uint32_t dims,
                          uint32_t *out_words) {
    const float base = theta == 0.0f ? 10000.0f : theta, scale = frequency_scale == 0.0f ? 1.0f : frequency_scale;
    if (!(base >= 0x1p-126f && base < 0x1p127f)) return false;
    const pair ln_base = logarithm(base);
    for (uint32_t i = 0; i < dims / 2; i++) {
        const double factor = factors != NULL ? (double)factors[i] : 1.0;
        const double sign = ((double)scale < 0) != (factor < 0) ? -1 : 1;
        const double size = (double)scale < 0 ? -(double)scale : (double)scale, divisor = factor < 0 ? -factor : factor;
        if (!(divisor > 0)) return false;
        const pair power = exponential(divide(scaled(ln_base, -2.0 * i), (pair){ dims, 0 }));
        const pair turns = divide(scaled(multiply(power, turns_a_radian), size), (pair){ divisor, 0 });
        if (!(turns.high >= 0 && turns.high <= 0x1p31)) return false;
        const uint64_t turn = sign < 0 ? 0 - fraction(turns) : fraction(turns);
        out_words[2 * i] = (uint32_t)(turn >> 32);
        out_words[2 * i + 1] = (uint32_t)turn;
    }
    return true;
}

/* The table of frequencies as a constant of the plan. */
static hd_status frequency_table(const hdi_attrs *attrs, uint32_t dims, hdi_lowering *lowering, hdi_tensor *out_table,
                                 hd_error *error) {
    const size_t bytes = (size_t)dims * 4;
    uint32_t *words = hdi_alloc(lowering->allocator, bytes);
    if (words == NULL) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the table of frequencies");
    hd_status status = HD_OK;
    if (!hdi_rope_frequencies(attrs->floats[0], attrs->floats[1],
                              attrs->factor_count >= dims / 2 ? attrs->factors : NULL, dims, words))
        status = hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "rope's theta, scale or factors give no finite frequency");
    const uint32_t storage = status == HD_OK ? lowering->constant(lowering->user, words, bytes) : HDI_NO_INDEX;
    hdi_free(lowering->allocator, words, bytes);
    if (status != HD_OK) return status;
    if (storage == HDI_NO_INDEX)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the table of frequencies");
    *out_table = hdi_tensor_dense(storage, HD_I32, HD_SHAPE(dims));
    return HD_OK;
}

static uint32_t magnitude_of(const hdi_attrs *attrs) {
    return hdi_rows_float_bits(attrs->floats[2] == 0.0f ? 1.0f : attrs->floats[2]);
}

bool hdi_rope_is_whole(const hdi_attrs *attrs, uint32_t D) {
    enum { LEAST = 16 };
    return D >= LEAST && (D & (D - 1)) == 0 && (attrs->ints[0] == 0 || attrs->ints[0] == D);
}

bool hdi_rope_turns_fit(const hdi_caps *caps, uint64_t positions, uint32_t dims) {
    const uint64_t elements = positions * (dims / 2);
    return !caps->native_kernels && elements <= UINT32_MAX / 8 &&
           (!caps->max_binding_bytes || 8 * elements <= caps->max_binding_bytes);
}

hd_status hdi_rope_turns(const hdi_request *request, const hdi_attrs *attrs, const hdi_tensor *positions, uint32_t dims,
                         hdi_lowering *lowering, hdi_tensor *out_turns, hd_error *error) {
    const uint32_t T = (uint32_t)hd_shape_elements(positions->shape), pairs = dims / 2;
    const uint64_t elements = (uint64_t)T * pairs;
    hdi_tensor frequencies;
    hd_status status = frequency_table(attrs, dims, lowering, &frequencies, error);
    if (status == HD_OK) status = hdi_rows_temporary(lowering, HD_F32, HD_SHAPE(T, pairs, 2), out_turns, error);
    if (status != HD_OK) return status;
    const uint32_t workgroup = HDI_MIN(64, hdi_rows_workgroup(request->caps));
    const hdi_rows_launch launch = {
        .module = HDI_MODULE_ROPE, .workgroup = workgroup,
        .inputs = { positions, positions, &frequencies, positions, positions, positions }, .input_count = 6,
        .out = out_turns, .spec = { HD_I32, 0, 0, 0, 0, HDI_ROPE_TURNS_MADE }, .spec_count = 6,
        .push = { 0, T, 0, 0, dims, magnitude_of(attrs) }, .push_count = 10,
        .groups = hdi_divide_up(elements, workgroup), .flops = 60 * elements,
        .because = "sines and cosines of all positions, once" };
    return hdi_rows_add(request, &launch, lowering, error);
}

/* Invocations that hold a head in fours, where subgroups can; else 0. */
static uint32_t fours_of(const hdi_request *request, const hdi_tensor *x, const hdi_tensor *weight) {
    const hdi_caps *caps = request->caps;
    const uint32_t D = hdi_rows_dim(x, x->shape.rank - 1), subgroup = (uint32_t)caps->subgroup;
    const hd_dtype to = request->out.dtype;
    if (caps->native_kernels || !caps->subgroup_shuffle || (subgroup & (subgroup - 1)) ||
        subgroup > hdi_rows_workgroup(caps))
        return 0;
    if (!hdi_rope_is_whole(request->attrs, D) || D / 4 > subgroup || x->dtype != HD_F32 || weight->dtype != HD_F32)
        return 0;
    if (hdi_variant_is_wrong(caps, (hdi_variant){ HDI_MODULE_ROPE_SUBGROUP, request->math == HD_MATH_EXACT,
                                                  UINT64_C(1) << HD_F32 }))
        return 0;
    if (hdi_dtype_is_quantised(to) && D % (2 * HDI_WRITE_BLOCK)) return 0;
    return D / 4;
}

/* On a GPU a subgroup has one head or several, or a workgroup has one; on a CPU a group has a token, whose sines and
 * cosines serve all of its heads. */
hd_status hdi_lower_rope(const hdi_request *request, hdi_lowering *lowering, hd_error *error) {
    const hdi_attrs *attrs = request->attrs;
    const bool has_weight = hdi_rows_has(request, 2), to_rows = hdi_rows_has(request, 3),
        paged = hdi_rows_has(request, 4), native = request->caps->native_kernels;
    hdi_tensor operands[5], angles; /* sines and cosines of all positions, or frequencies */
    for (uint32_t i = 0; i < 5; i++) {
        operands[i] = operands[0];
        if (i >= 2 && !hdi_rows_has(request, i)) continue;
        const hd_status status = hdi_rows_dense(request, &request->inputs[i], lowering, &operands[i], error);
        if (status != HD_OK) return status;
    }
    const hdi_tensor *x = &operands[0];
    const uint32_t rank = x->shape.rank, T = hdi_rows_dim(x, rank - 3), H = hdi_rows_dim(x, rank - 2),
                   D = hdi_rows_dim(x, rank - 1);
    const uint32_t dims = attrs->ints[0] == 0 ? D & ~1u : (uint32_t)attrs->ints[0];
    const uint64_t elements = hd_shape_elements(x->shape), tokens = elements / H / D;
    if (dims < 2 || dims > D || dims % 2 != 0)
        return hdi_fail(error, HD_STATUS_SHAPE, "rope turns %u of %u elements", dims, D);
    const bool given = hdi_rope_turns_fit(request->caps, hd_shape_elements(operands[1].shape), dims);
    hd_status status = given ? hdi_rope_turns(request, attrs, &operands[1], dims, lowering, &angles, error)
                             : frequency_table(attrs, dims, lowering, &angles, error);
    if (status != HD_OK) return status;
    const hdi_tensor *turns = given ? &angles : &operands[1];
    const uint64_t sequences = to_rows ? hd_shape_elements(operands[3].shape) : 1;
    const uint32_t page = paged ? hdi_rows_page(&request->out) : 0;
    const uint64_t rows = paged ? hd_shape_elements(operands[4].shape) / sequences << page :
                          to_rows ? hd_shape_elements(request->out.shape) / sequences / H / D : 0;
    const uint32_t fours = given ? fours_of(request, x, &operands[2]) : 0;
    /* Where no kernel also makes rows of blocks, heads lie in between. */
    const bool apart = to_rows && hdi_dtype_is_quantised(request->out.dtype) && !fours;
    hdi_tensor heads = request->out;
    if (apart) status = hdi_rows_temporary(lowering, HD_F32, x->shape, &heads, error);
    if (status != HD_OK) return status;
    uint32_t workgroup = hdi_rows_workgroup(request->caps);
    while (!native && workgroup > 32 && workgroup >= D) workgroup /= 2;
    hdi_rows_launch launch = {
        .module = HDI_MODULE_ROPE, .workgroup = workgroup,
        .inputs = { x, turns, &angles, &operands[2], &operands[3], &operands[4] }, .input_count = 6,
        .shared = 1u << 3, .out = &heads,
        .out_access = to_rows && !apart ? HDI_READ | HDI_WRITE : HDI_WRITE,
        .spec = { (uint32_t)x->dtype, attrs->ints[1] == HD_ROPE_NEIGHBOURS, request->norm ? 1u + has_weight : 0u,
                  to_rows && !apart, page, given ? HDI_ROPE_TURNS_GIVEN : HDI_ROPE_TURNS_OWN }, .spec_count = 6,
        .push = { (uint32_t)tokens, T, H, D, dims, magnitude_of(attrs),
                  hdi_rows_float_bits(request->norm ? request->norm->floats[0] : 0),
                  (uint32_t)(tokens / sequences), (uint32_t)rows, paged ? hdi_rows_dim(&request->out, 0) : 0 },
                  .push_count = 10,
        .groups = native ? tokens : tokens * H, .flops = (request->norm ? 10 : 6) * elements,
        .scratch_bytes = 4 * (dims + 2 * D), .because = native ? "a group for each token, whose angles serve all heads"
        : "a workgroup for each head of each token" };
    if (fours) {
        enum { HEADS = 4 };
        launch.module = HDI_MODULE_ROPE_SUBGROUP;
        launch.subgroup = request->caps->subgroup_control ? (uint32_t)request->caps->subgroup : 0;
        launch.workgroup = HDI_MIN(HDI_MAX(HEADS * fours, (uint32_t)request->caps->subgroup),
                                   hdi_rows_workgroup(request->caps));
        launch.spec[launch.spec_count++] = D;
        launch.groups = hdi_divide_up(tokens * H, launch.workgroup / fours);
        launch.because = "subgroups hold whole heads";
    }
    status = hdi_rows_add(request, &launch, lowering, error);
    if (status || !apart) return status;
    const hdi_rows_place place = { .B = sequences, .T = tokens / sequences, .S = rows, .n = (uint64_t)H * D,
                                   .N = paged ? hdi_rows_dim(&request->out, 0) : 0 };
    return hdi_rows_write(request, &heads, &operands[3], paged ? &operands[4] : NULL, &place, lowering, error);
}
