/* known_answers.c: small programs, run on a device and in plain C (hdi_reference), and compared element by element: bit
 * by bit in exact mode, within a bound in fast mode. A plan is steered to the kernel that is judged by telling the
 * planner that all others of its kind are wrong. Inputs are the same in every run. */
#include "calibrate/calibrate.h"
#include "kernels/exact.h"
#include "run/run.h"
#include <math.h>
#include <stdio.h>

#define K(module) (UINT64_C(1) << HDI_MODULE_##module)
#define T(type)   (1u << HD_##type)
#define FLOATS    (T(F32) | T(F16) | T(BF16))
#define IF_QUANTISED(code, elements, bytes, scale, less) | ((elements) > 1 ? 1u << (code) : 0)
#define QUANTISED (0 HDI_BLOCK_LIST(IF_QUANTISED))
#define WEIGHTS   (FLOATS | QUANTISED)

typedef enum data { REAL, WHOLE, SPECIAL, TINY } data; /* SPECIAL: infinities and NaN too; TINY: subnormals */

typedef struct answer {
    uint64_t    kernels;
    uint32_t    types;
    data        data;
    float       share;
    uint32_t    units;
    const char *text;
} answer;

static const answer answers[] = {
#define ANSWER(kernels, types, data, share, units, text) { kernels, types, data, share, units, text },
#include "calibrate/known_answers.inc"
};

/* Sums and products at and below the smallest normal numbers, and halves that round to even. */
static const answer arithmetic = { K(ELEMENTWISE), T(F32), TINY, 0, 0,
    "v1 = input $[3,67] \"a\"\nv2 = input $[67] \"b\"\nv3 = mul v1 v2\nv4 = add v3 v1\nv5 = scale v4 factor=0.3 "
    "bias=1e-42\n"
    "v6 = sub v5 v2\noutput v3 \"m\"\noutput v4 \"s\"\noutput v6 \"y\"\n" };

uint64_t hdi_known_answers_hash(void) {
    uint64_t hash = hdi_hash(HDI_HASH_START, hd_version(), strlen(hd_version()));
    for (size_t i = 0; i < HDI_COUNT(answers); i++) hash = hdi_hash(hash, answers[i].text, strlen(answers[i].text));
    return hash;
}

/* ---- inputs ---- */

typedef struct generator {
    uint64_t state;
    data     data;
    double   low, high;
    bool     sized;  /* each 67 are of a size of their own */
    bool     marked; /* WHOLE: each 16 hold +-127, so that 8 bits and one scale hold them all */
} generator;

static uint32_t random_below(generator *g, uint32_t below) {
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    return (uint32_t)((g->state >> 32) * below >> 32);
}
static double between(generator *g, double low, double high) {
    return low + (high - low) * random_below(g, 0xffffffu) / 0xfffffe;
}

static double number(generator *g, uint64_t index) {
    static const float specials[] =
        { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0x1.fffffep127f, -0x1p-126f, 65504.0f, 0x1p-14f, 88.0f };
    if (g->data == SPECIAL && random_below(g, 8) == 0)
        return (double)specials[random_below(g, (uint32_t)HDI_COUNT(specials))];
    if (g->data == TINY)
        return ldexp(between(g, -1, 1),
            random_below(g, 4) ? -(int)(120 + random_below(g, 28)) : -(int)random_below(g, 24));
    const double size = g->sized ? ldexp(1 + 0.37 * (double)(index / 67 % 3), (int)(index / 67 % 9) - 6) : 1;
    if (g->data != WHOLE) return between(g, g->low, g->high) * size;
    if (index % 16 == 7 && g->marked) return index % 32 == 7 ? 127 : -127;
    return floor(between(g, g->low, g->high) + 0.5);
}

static void store_f16(double value, uint8_t *out) {
    const uint16_t bits = (uint16_t)exact_f32_to_f16((float)value);
    memcpy(out, &bits, sizeof bits);
}

/* In the upper 4 bits of four words, as iq1_m has it. */
static void store_spread(double value, uint8_t *out) {
    const uint32_t bits = exact_f32_to_f16((float)value);
    for (uint32_t i = 0; i < 4; i++) out[2 * i + 1] = (uint8_t)((out[2 * i + 1] & 15u) | (bits >> 4 * i & 15u) << 4);
}

/* Scales and mins of parts, 6 bits each, as q4_k and q5_k pack them. */
static void pack_pairs(const uint8_t *scales, const uint8_t *mins, uint8_t *out) {
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = (uint8_t)(scales[i] | scales[i + 4] >> 4 << 6);
        out[i + 4] = (uint8_t)(mins[i] | mins[i + 4] >> 4 << 6);
        out[i + 8] = (uint8_t)((scales[i + 4] & 15u) | (unsigned)mins[i + 4] << 4);
    }
}

/* Scales of parts that are powers of two, and mins that are 0 or as large, so that an element has as few bits as its
 * code. */
static void pack_parts(generator *g, hd_dtype dtype, uint8_t *block) {
    uint8_t scales[16], mins[16];
    for (uint32_t i = 0; i < 16; i++) {
        scales[i] = (uint8_t)(1u << random_below(g, dtype == HD_Q2_K ? 4 : 6));
        mins[i] = random_below(g, 2) ? scales[i] : 0;
    }
    switch (dtype) {
    case HD_Q4_K: case HD_Q5_K: pack_pairs(scales, mins, block + 4); break;
    case HD_Q2_K:
        for (uint32_t i = 0; i < 16; i++) block[i] = (uint8_t)(scales[i] | mins[i] << 4);
        break;
    case HD_Q6_K:
        for (uint32_t i = 0; i < 16; i++) block[192 + i] = (uint8_t)(mins[i] ? 256 - 2 * scales[i] : scales[i]);
        break;
    case HD_Q3_K: /* 6 bits, less 32 */
        memset(block + 96, 0, 12);
        for (uint32_t i = 0; i < 16; i++) {
            const uint8_t code = (uint8_t)(mins[i] ? 32 - scales[i] : scales[i] == 32 ? 33 : 32 + scales[i]);
            block[96 + i % 8] |= (uint8_t)((code & 15u) << (i < 8 ? 0 : 4));
            block[104 + i % 4] |= (uint8_t)(code >> 4 << 2 * (i / 4));
        }
        break;
    case HD_IQ4_XS: /* likewise */
        memset(block + 2, 0, 6);
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t code = mins[i] ? 32u - scales[i] : scales[i] == 32 ? 33 : 32u + scales[i];
            block[4 + i / 2] |= (uint8_t)((code & 15u) << 4 * (i % 2));
            block[2 + i / 4] |= (uint8_t)(code >> 4 << 2 * (i % 4));
        }
        break;
    /* of these the scales are odd numbers: all are one */
    case HD_IQ2_XXS: case HD_IQ3_XXS:
        for (uint32_t i = 0; i < 8; i++) block[(dtype == HD_IQ2_XXS ? 9 + 8 * i : 69 + 4 * i)] &= 15u;
        break;
    case HD_IQ2_XS: memset(block + 66, 0, 8); break;
    case HD_IQ2_S:  memset(block + 74, 0, 8); break;
    case HD_IQ3_S:  memset(block + 106, 0, 4); break;
    case HD_IQ1_S:
        for (uint32_t i = 0; i < 8; i++) block[35 + 2 * i] &= 0x8Fu;
        break;
    case HD_IQ1_M: memset(block + 48, 0, 8); break;
    default: break;
    }
}

static void fill_block(generator *g, hd_dtype dtype, uint8_t *block) {
    static const struct { uint8_t scale, less; } places[HD_DTYPE_COUNT] = {
#define PLACES(code, elements, bytes, scale, less) [code] = { scale, less },
        HDI_BLOCK_LIST(PLACES) };
#undef PLACES
    const bool whole = g->data == WHOLE;
    for (uint32_t i = 0; i < hdi_dtype(dtype).block_bytes; i++) block[i] = (uint8_t)random_below(g, 256);
    if (whole) pack_parts(g, dtype, block);
    const double scale = whole ? ldexp(random_below(g, 2) ? 1 : -1, (int)random_below(g, 3) - 1)
        : between(g, -0.0625, 0.0625);
    const bool parts = hdi_dtype(dtype).block_elements == 256;
    /* 128: one */
    if (dtype == HD_IQ1_M) store_spread(scale, block + 48);
    else if (dtype == HD_MXFP4) block[0] = (uint8_t)(whole ? 127 + random_below(g, 3) : 120 + random_below(g, 4));
    else store_f16(scale, block + places[dtype].scale);
    if (places[dtype].less != HDI_NO_HALF)
        store_f16(!whole ? between(g, -0.0625, 0.0625) : parts ? scale : scale * random_below(g, 4),
            block + places[dtype].less);
}

static void fill(generator *g, hd_dtype dtype, uint64_t elements, uint8_t *out) {
    const hdi_dtype_facts facts = hdi_dtype(dtype);
    for (uint64_t i = 0; i < elements / facts.block_elements; i++) {
        uint8_t *at = out + i * facts.block_bytes;
        if (facts.block_elements > 1) { fill_block(g, dtype, at); continue; }
        if (dtype == HD_I32 || dtype == HD_U8) {
            const int32_t whole = (int32_t)g->low + (int32_t)random_below(g, (uint32_t)(g->high - g->low) + 1);
            memcpy(at, &whole, facts.block_bytes);
            continue;
        }
        const float value = (float)number(g, i);
        const uint16_t narrow = (uint16_t)(dtype == HD_F16 ? exact_f32_to_f16(value) : exact_f32_to_bf16(value));
        if (dtype == HD_F32) memcpy(at, &value, sizeof value);
        else memcpy(at, &narrow, sizeof narrow);
    }
}

/* ---- one program ---- */

typedef struct run {
    const hd_program     *program;
    hdi_arena             arena;
    hdi_reference_tensor *values; /* of each node: inputs, then the reference's results */
    hdi_core             *core;
    data                  data;
} run;

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for known answers");
}

static void fill_input(run *r, const hdi_node *node, uint64_t seed, uint8_t *out) {
    const bool integer = node->dtype == HD_I32 || node->dtype == HD_U8, whole = r->data == WHOLE;
    generator g = { (seed + 1) * UINT64_C(0x9E3779B97F4A7C15), r->data, whole ? -127 : -4, whole ? 127 : 4,
        node->name[0] == 'n', node->name[0] == 'a' };
    if (integer) { g.low = node->dtype == HD_U8 ? 0 : -100; g.high = node->dtype == HD_U8 ? 255 : 100; }
    const char *range = strchr(node->name, ' ');
    float low, high;
    if (range && hdi_float_read(range + 1, strcspn(range + 1, " "), &low) && (range = strchr(range + 1, ' ')) != NULL &&
        hdi_float_read(range + 1, strlen(range + 1), &high)) { g.low = (double)low; g.high = (double)high; }
    fill(&g, node->dtype, hd_shape_elements(node->shape), out);
}

void hdi_known_input(const hdi_node *node, uint64_t seed, void *out) {
    run ordinary = { .data = REAL };
    fill_input(&ordinary, node, seed, out);
}

/* Every value in plain C. */
static hd_status compute(run *r, hd_error *error) {
    r->values = hdi_arena_alloc(&r->arena, r->program->node_count * sizeof *r->values);
    if (!r->values) return no_memory(error);
    for (uint32_t i = 0; i < r->program->node_count; i++) {
        const hdi_node *node = &r->program->nodes[i];
        hdi_reference_tensor *value = &r->values[i], operands[HDI_MAX_OPERANDS] = { 0 };
        *value = (hdi_reference_tensor){ node->dtype, node->shape,
            hdi_arena_alloc(&r->arena, (size_t)hd_tensor_bytes(node->dtype, node->shape) + 4) };
        if (!value->data) return no_memory(error);
        for (uint32_t o = 0; o < node->operand_count; o++)
            if (node->operands[o]) operands[o] = r->values[node->operands[o] - 1];
        if (node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE) fill_input(r, node, i, value->data);
        else {
            const hd_status status = hdi_reference(node, operands, value, error);
            if (status) return status;
        }
    }
    return HD_OK;
}

static hd_status write_inputs(run *r, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < r->program->node_count && !status; i++) {
        const hdi_node *node = &r->program->nodes[i];
        uint32_t slot;
        if (!node->name || !hdi_core_find(r->core, node->name, HDI_KIND(INPUT) | HDI_KIND(STATE), &slot)) continue;
        status = hdi_core_memory(r->core, slot, error);
        if (!status)
            status = hdi_device_write(r->core->device, r->core->slots[slot].memory, 0, r->values[i].data,
                r->core->schedule->slots[slot].tensor_bytes, &r->core->last_ticket, error);
        r->core->slots[slot].written = true;
    }
    return status;
}

/* ---- comparing ---- */

static double value_at(const hdi_reference_tensor *tensor, const uint8_t *bytes, uint64_t index) {
    uint16_t narrow = 0;
    float wide = 0;
    int32_t whole = 0;
    switch (tensor->dtype) {
    case HD_F32: memcpy(&wide, bytes + 4 * index, 4); return (double)wide;
    case HD_F16: memcpy(&narrow, bytes + 2 * index, 2); return (double)exact_f16_to_f32(narrow);
    case HD_BF16: memcpy(&narrow, bytes + 2 * index, 2); return (double)exact_bf16_to_f32(narrow);
    case HD_I32: memcpy(&whole, bytes + 4 * index, 4); return whole;
    default: return bytes[index];
    }
}

static bool is_finite(double x) { return x - x == 0; }

/* The largest error as a share of its bound. */
static double worst_error(const hdi_reference_tensor *right, const uint8_t *given, bool exact, float share) {
    const uint64_t count = hd_shape_elements(right->shape);
    const hd_dtype type = right->dtype;
    const double unit = type == HD_F32 ? 0x1p-22 : type == HD_F16 ? 0x1p-9 : type == HD_BF16 ? 0x1p-6 : 0;
    if (exact || unit == 0)
        return memcmp(right->data, given, hd_tensor_bytes(right->dtype, right->shape)) == 0 ? 0 : INFINITY;
    double largest = 0, worst = 0;
    for (uint64_t i = 0; i < count; i++) {
        const double x = fabs(value_at(right, right->data, i));
        if (is_finite(x)) largest = HDI_MAX(largest, x);
    }
    for (uint64_t i = 0; i < count; i++) {
        const double x = value_at(right, right->data, i), y = value_at(right, given, i);
        if (x == y || (x != x && y != y)) continue;
        const double bound = unit * fabs(x) + (double)share * largest, error = fabs(x - y);
        worst = HDI_MAX(worst, is_finite(error) && bound > 0 ? error / bound : (double)INFINITY);
    }
    return worst;
}

double hdi_known_error(const hdi_reference_tensor *right, const void *given, float share) {
    return worst_error(right, given, false, share);
}

/* Runs the plan, which then is the core's, and compares all outputs. */
static hd_status judge_schedule(run *r, hd_device *device, hdi_schedule *schedule, float share, double *out_worst,
    hd_error *error) {
    const bool exact = schedule->options.math == HD_MATH_EXACT;
    uint64_t records;
    hd_status status = hdi_core_make(device, schedule, &r->core, error);
    if (!status) status = write_inputs(r, error);
    if (!status) status = hdi_core_submit(r->core, &(hdi_core_run){ .timestamps = false }, &records, error);
    if (!status) status = hdi_device_wait(device, r->core->last_ticket, 0, error);
    for (uint32_t i = 0; i < r->program->output_count && !status; i++) {
        const hdi_output *output = &r->program->outputs[i];
        const hdi_reference_tensor *right = &r->values[output->value - 1];
        const uint64_t bytes = hd_tensor_bytes(right->dtype, right->shape);
        uint8_t *given = hdi_arena_alloc(&r->arena, (size_t)bytes);
        uint32_t slot;
        if (!given) return no_memory(error);
        if (!hdi_core_find(r->core, output->name, HDI_KIND(OUTPUT) | HDI_KIND(STATE), &slot))
            return hdi_fail(error, HD_STATUS_INTERNAL, "a known answer has no output");
        status = hdi_device_read(device, r->core->slots[slot].memory, 0, given, bytes, r->core->last_ticket, error);
        if (!status) *out_worst = HDI_MAX(*out_worst, worst_error(right, given, exact, share));
    }
    return status;
}

/* Which of the variant's forms the plan's kernels have. */
static uint64_t held(const hdi_schedule *schedule, hdi_variant variant) {
    uint64_t forms = 0;
    for (uint32_t i = 0; i < schedule->cmds.kernel_count; i++) {
        const hdi_variant found = hdi_variant_of(&schedule->cmds.kernels[i]);
        if (found.module == variant.module && found.exact == variant.exact) forms |= found.forms & variant.forms;
    }
    return forms;
}

/* Did the device fail to answer, rather than the kernel to be right? */
static bool is_of_device(hd_status status) {
    return status == HD_STATUS_OUT_OF_HOST_MEMORY || status == HD_STATUS_OUT_OF_DEVICE_MEMORY ||
        status == HD_STATUS_TIMEOUT || status == HD_STATUS_DEVICE_LOST;
}

/* An answer planned for a device, with at least one of the forms that are judged. */
typedef struct trial {
    const answer     *from;
    const hd_program *program;
    hdi_schedule         *schedule;  /* the visitor's */
    hdi_variant       variant; /* its forms: those that the plan holds */
} trial;
typedef hd_status (*visitor)(void *user, const trial *tried, hd_error *error);
typedef struct visiting {
    hd_device *device;
    visitor    visit;
    void      *user;
} visiting;

/* Plans the text for the caps; where the plan holds the variant, visits it. */
static hd_status visit_text(const visiting *v, const hdi_caps *caps, const answer *from, const char *text,
    hdi_variant variant, hd_error *error) {
    hd_device *device = v->device;
    const hd_allocator *allocator = device->host->allocator;
    const hdi_plan_options options = { .math = variant.exact ? HD_MATH_EXACT : HD_MATH_FAST };
    hd_error inside = { 0 };
    hdi_schedule *schedule = NULL;
    hd_program *program = hdi_program_new(allocator, device->context);
    if (!program) return no_memory(error);
    hd_status status = hdi_program_parse(program, text, strlen(text), NULL, NULL, &inside);
    if (!status) status = hdi_schedule_make(allocator, program, caps, &options, &schedule, &inside);
    if (!status && (variant.forms = held(schedule, variant)) != 0)
        status = v->visit(v->user, &(trial){ from, program, schedule, variant }, &inside);
    else hdi_schedule_free(schedule);
    hdi_program_free(program);
    if (!is_of_device(status)) return HD_OK; /* no plan of this kind for the device, or no result */
    if (error) *error = inside;
    return status;
}

/* The answer's text with a type in place of each $. */
static bool text_of(const answer *from, hd_dtype type, hdi_text *out) {
    out->count = 0;
    hdi_text_add(out, "heddle 1\n");
    for (const char *at = from->text; *at;) {
        const int length = (int)strcspn(at, "$");
        hdi_text_add(out, "%.*s%s", length, at, at[length] ? hd_dtype_name(type) : "");
        at += length + (at[length] != 0);
    }
    return !out->failed;
}

/* The device's facts, with every other kernel that would do the variant's work out of the way. */
static hdi_caps steered(const hdi_caps *caps, hdi_variant variant, uint32_t units) {
    enum { KINDS = 3 };
    static const uint64_t products = K(MATVEC) | K(MATVEC_SUBGROUP) | K(MATVEC_DOT) | K(MATVEC_MATRIX) |
        K(MATMUL_TILED) | K(MATMUL_MATRIX) | K(MATMUL_TENSOR) | K(MATMUL_AMX) | K(MATMUL_INT8) | K(MATMUL_CODES) |
        K(MATMUL_CODES_DOT) | K(MATMUL_CODES_MATRIX), attentions = K(ATTENTION) | K(ATTENTION_SUBGROUP) |
                        K(ATTENTION_MATRIX) | K(ATTENTION_TILED) | K(ATTENTION_TENSOR);
    const uint64_t judged[KINDS] = { products, attentions, K(ROPE) },
                   others[KINDS] = { products, attentions, K(ROPE_SUBGROUP) }; /* needs the first for its angles */
    hdi_caps steered = *caps;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (uint32_t i = 0; i < HDI_MODULE_COUNT && (judged[kind] >> variant.module & 1); i++)
            if (i != variant.module && (others[kind] >> i & 1)) steered.wrong[i][0] = steered.wrong[i][1] = UINT64_MAX;
    steered.wrong[variant.module][variant.exact] &= ~variant.forms;
    steered.inexact = 0;
    if (units) steered.compute_units = units;
    return steered;
}

/* The variant's forms that answers of the type judge. */
static uint64_t forms_of(hdi_variant variant, uint32_t type) {
    uint64_t forms = 0;
    for (uint32_t form = 0; form < 64; form++) {
        const hd_dtype of_form = hdi_variant_type((hdi_variant){ variant.module, variant.exact, UINT64_C(1) << form });
        const bool fits = of_form == HD_DTYPE_NONE || type == (uint32_t)of_form ||
                          variant.module == HDI_MODULE_PACK_BF16 || variant.module == HDI_MODULE_CODES ||
                          variant.module == HDI_MODULE_REDUCE;
        if (fits) forms |= variant.forms & UINT64_C(1) << form;
    }
    return forms;
}

/* Visits every answer that has forms of the variant on a device with these facts. */
static hd_status visit_answers(const visiting *v, const hdi_caps *caps, hdi_variant variant, hd_error *error) {
    hdi_text text = { .allocator = v->device->host->allocator };
    hd_status status = HD_OK;
    uint64_t forms[HD_DTYPE_COUNT];
    for (uint32_t t = 0; t < HD_DTYPE_COUNT; t++) forms[t] = forms_of(variant, t);
    for (size_t i = 0; i < HDI_COUNT(answers) && !status; i++) {
        const answer *from = &answers[i];
        if (!(from->kernels >> variant.module & 1)) continue;
        const hdi_caps facts = steered(caps, variant, from->units);
        for (uint32_t t = HD_F32; t < HD_I8 && !status; t++) {
            const hdi_variant fitting = { variant.module, variant.exact, forms[t] };
            if (!(from->types >> t & 1) || !forms[t]) continue;
            if (!text_of(from, (hd_dtype)t, &text)) status = no_memory(error);
            else status = visit_text(v, &facts, from, text.bytes, fitting, error);
        }
    }
    hdi_text_free(&text);
    return status;
}

/* ---- judging ---- */

typedef struct judging {
    hd_device     *device;
    hdi_judgement *forms; /* 64 */
} judging;

static hd_status judge(void *user, const trial *tried, hd_error *error) {
    const judging *j = user;
    const bool exact = tried->variant.exact;
    const answer *from = tried->from;
    const bool special = exact && from->kernels == K(ELEMENTWISE) && from->data == REAL;
    const data wanted = special ? SPECIAL : exact && from->data == WHOLE ? REAL : from->data;
    run r = { .program = tried->program, .arena = { .allocator = j->device->host->allocator }, .data = wanted };
    double worst = 0;
    hd_status status = compute(&r, error);
    if (status) hdi_schedule_free(tried->schedule);
    else status = judge_schedule(&r, j->device, tried->schedule, from->share, &worst, error);
    hdi_core_end(r.core);
    hdi_arena_free(&r.arena);
    if (status && !is_of_device(status)) worst = INFINITY;
    for (uint32_t form = 0; form < 64; form++)
        if (tried->variant.forms >> form & 1) {
            j->forms[form].answers++;
            j->forms[form].worst = HDI_MAX(j->forms[form].worst, worst);
        }
    return status;
}

hd_status hdi_known_answers(hd_device *device, const hdi_caps *caps, hdi_variant variant, hdi_judgement out[64],
    hd_error *error) {
    judging j = { device, out };
    memset(out, 0, 64 * sizeof *out);
    return visit_answers(&(visiting){ device, judge, &j }, caps, variant, error);
}

hd_status hdi_known_arithmetic(hd_device *device, const hdi_caps *caps, hdi_judgement *out, hd_error *error) {
    const hdi_variant variant = { HDI_MODULE_ELEMENTWISE, true, UINT64_MAX };
    const hdi_caps facts = steered(caps, variant, 0);
    hdi_judgement forms[64] = { 0 };
    judging j = { device, forms };
    hdi_text text = { .allocator = device->host->allocator };
    const hd_status status = text_of(&arithmetic, HD_F32, &text)
        ? visit_text(&(visiting){ device, judge, &j }, &facts, &arithmetic, text.bytes, variant, error)
        : no_memory(error);
    hdi_text_free(&text);
    *out = (hdi_judgement){ 0 };
    for (uint32_t form = 0; form < 64; form++)
        if (forms[form].answers > 0) *out = forms[form]; /* one answer: they are all the same */
    return status;
}

/* ---- compiling ahead ---- */

typedef struct gathering {
    const hd_allocator *allocator;
    hdi_schedule **schedules;
    uint32_t   count, capacity, kernel_count;
} gathering;

static hd_status gather(void *user, const trial *tried, hd_error *error) {
    gathering *g = user;
    if (!hdi_grow(g->allocator, &g->schedules, &g->capacity, (size_t)g->count + 1, sizeof *g->schedules)) {
        hdi_schedule_free(tried->schedule);
        return no_memory(error);
    }
    g->schedules[g->count++] = tried->schedule;
    g->kernel_count += tried->schedule->cmds.kernel_count;
    return HD_OK;
}

hd_status hdi_known_load(hd_device *device, hdi_wanted_kernel *wanted, uint32_t count, hd_error *error) {
    for (;;) {
        hd_error inside = { 0 };
        uint32_t left = 0;
        const hd_status status = hdi_device_kernels(device, wanted, count, &inside);
        for (uint32_t i = 0; i < count; i++)
            if (!wanted[i].failed) wanted[left++] = wanted[i];
        if (status && (is_of_device(status) || left == count)) {
            if (error) *error = inside;
            return status;
        }
        if (!status) return HD_OK;
        count = left;
    }
}

hd_status hdi_known_kernels(hd_device *device, const hdi_caps *caps, const hdi_variant *variants,
    uint32_t variant_count, hd_error *error) {
    gathering g = { .allocator = device->host->allocator };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < variant_count && !status; i++)
        status = visit_answers(&(visiting){ device, gather, &g }, caps, variants[i], error);
    hdi_wanted_kernel *wanted = hdi_alloc(g.allocator, g.kernel_count * sizeof *wanted);
    if (!status && !wanted) status = no_memory(error);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g.count && !status; i++)
        for (uint32_t k = 0; k < g.schedules[i]->cmds.kernel_count; k++) {
            const hdi_kernel *kernel = &g.schedules[i]->cmds.kernels[k];
            wanted[count++] = (hdi_wanted_kernel){ .module = hdi_module_get(kernel->module), .kernel = kernel };
        }
    if (!status) status = hdi_known_load(device, wanted, count, error);
    for (uint32_t i = 0; i < g.count; i++) hdi_schedule_free(g.schedules[i]);
    hdi_free(g.allocator, g.schedules, g.capacity * sizeof *g.schedules);
    hdi_free(g.allocator, wanted, g.kernel_count * sizeof *wanted);
    return status;
}
