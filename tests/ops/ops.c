/* ops.c: runs groups of cases on every device and judges what comes back (ops.h). Outputs are bound inside one larger
 * buffer, apart from each other, with a pattern between them that must still be there afterwards. The program of a
 * context is made from the printed text of the first one's, so printing and parsing are used on the way. */
#include "front/front.h"
#include "ops_data.h"
#include "results.h"
#include "validation.h"
#include "kernels/kernel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_DEVICES 8
#define GUARD_BYTES 256u /* also what offsets of bindings are multiples of */
#define PATTERN     0xA5
#define MAX_REPORTS 12

typedef struct place {
    char        name[48]; /* "cpu x8" */
    hd_context *context;
    hd_device  *device;
    ops_results results;
} place;

typedef struct input { char name[16]; void *bytes; uint64_t size; uint64_t offset; } input;
typedef struct output { char name[16]; hd_value value; hdi_op op; uint64_t size; uint64_t offset; } output;

static struct suite {
    const char *family;
    place    places[MAX_DEVICES];
    uint32_t place_count;
    /* the group under way */
    char        name[64];
    unsigned    flags;
    uint32_t    part; /* of a group that was split, from 1 on */
    uint32_t    group_cases; /* in it, also those that do not run */
    hd_program *program;
    input      *inputs;  uint32_t input_count, input_capacity;
    output     *outputs; uint32_t output_count, output_capacity;
    bool           *needed;  /* by node: an output depends on it */
    void          **bits;    /* by node: the reference's bytes */
    oracle_tensor  *exactly; /* by node: float64 */
    /* results */
    uint32_t every; /* n-th case runs */
    bool     options; /* each group also runs with other options of its kernels: all of them, */
    bool     in_turn; /* or one, the next one each time */
    bool     update; /* case_table.inc is to say what cases there are */
    uint32_t forced;  /* plans of which an option was forced */
    uint32_t cases[HDI_OP_COUNT], case_count, run_count;
    uint64_t comparisons, beyond_bound, different_bits, broken_guards, failures;
    double   worst[ORACLE_MODES];
    char     worst_at[ORACLE_MODES][96];
    uint32_t reports;
    const char *results_path;
} suite;

/* ---- saying what is wrong ---- */

static void report(const char *format, ...) HDI_PRINTF(1, 2);
static void report(const char *format, ...) {
    va_list args;
    suite.failures++;
    if (suite.reports++ >= MAX_REPORTS) return;
    va_start(args, format);
    fprintf(stderr, "  %s: ", suite.name[0] ? suite.name : suite.family);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}
static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s: %s%s\n", suite.family, suite.name, what,
            suite.place_count ? hd_context_error(suite.places[0].context) : "");
    exit(1);
}
/* "add f16 [2,3] [3]" of a value. */
static const char *label_of(hd_value value, char *out, size_t room) {
    const hdi_node *node = hdi_program_node(suite.program, value);
    size_t at = (size_t)snprintf(out, room, "%s %s", hdi_op_get(node->op).name, hd_dtype_name(node->dtype));
    for (uint32_t i = 0; i < node->operand_count && i < 4 && at < room; i++) {
        const hdi_node *operand = hdi_program_node(suite.program, node->operands[i]);
        char shape[HDI_SHAPE_TEXT];
        if (operand)
            at += (size_t)snprintf(out + at, room - at, " %s%s",
                                   operand->dtype != node->dtype ? hd_dtype_name(operand->dtype) : "",
                                   hdi_shape_text(operand->shape, shape));
    }
    return out;
}

/* ---- groups ---- */

static uint64_t node_bytes(const hdi_node *node) { return hd_tensor_bytes(node->dtype, node->shape); }

void ops_begin(const char *name, unsigned flags) {
    snprintf(suite.name, sizeof suite.name, "%s", name);
    suite.flags = flags;
    suite.part = 1;
    suite.input_count = suite.output_count = suite.group_cases = 0;
    suite.program = hd_program_create(suite.places[0].context);
    must(HDI_FIND(suite.program), "no program");
    ops_seed(name);
}
hd_program *ops_program(void) { return suite.program; }

static hd_value declare(hd_dtype dtype, hd_shape shape, const void *bytes, ops_fill fill, bool is_state) {
    must(hdi_grow(&hdi_default_allocator, &suite.inputs, &suite.input_capacity, suite.input_count + 1, sizeof *suite.inputs), "no memory");
    input *in = &suite.inputs[suite.input_count++];
    snprintf(in->name, sizeof in->name, "%s%u", is_state ? "s" : "i", suite.input_count);
    in->size = hd_tensor_bytes(dtype, shape);
    in->bytes = malloc(in->size + 1);
    must(in->bytes != NULL && in->size > 0, "no such tensor");
    if (bytes) memcpy(in->bytes, bytes, in->size);
    else ops_fill_bytes(dtype, shape, fill, in->bytes);
    return is_state ? hd_state(suite.program, in->name, dtype, shape) : hd_input(suite.program, in->name, dtype, shape);
}
hd_value ops_input(hd_dtype dtype, hd_shape shape, ops_fill fill) { return declare(dtype, shape, NULL, fill, false); }
hd_value ops_given(hd_dtype dtype, hd_shape shape, const void *bytes) { return declare(dtype, shape, bytes, OPS_UNIT, false); }
hd_value ops_state(hd_dtype dtype, hd_shape shape, ops_fill fill) { return declare(dtype, shape, NULL, fill, true); }
hd_value ops_indices(hd_shape shape, int32_t low, int32_t high) {
    const hd_value value = ops_input(HD_I32, shape, OPS_UNIT);
    int32_t *indices = suite.inputs[suite.input_count - 1].bytes;
    for (uint64_t i = 0; i < hd_shape_elements(shape); i++) indices[i] = low + (int32_t)ops_random((uint32_t)(high - low) + 1);
    return value;
}

void ops_case_of(hdi_op op, hd_value value) {
    const hdi_node *node = hdi_program_node(suite.program, value);
    must(node != NULL || hd_program_check(suite.program) == HD_OK, "the operation was refused: ");
    must(node != NULL, "no such value");
    suite.cases[op]++;
    suite.group_cases++;
    if (suite.case_count++ % suite.every) return;
    suite.run_count++;
    must(hdi_grow(&hdi_default_allocator, &suite.outputs, &suite.output_capacity, suite.output_count + 1,
                  sizeof *suite.outputs),
         "no memory");
    output *out = &suite.outputs[suite.output_count++];
    snprintf(out->name, sizeof out->name, "o%u", suite.output_count);
    *out = (output){ .value = value, .op = op, .size = node_bytes(node) };
    snprintf(out->name, sizeof out->name, "o%u", suite.output_count);
    hd_output(suite.program, out->name, value);
}
void ops_case(hd_value value) {
    const hdi_node *node = hdi_program_node(suite.program, value);
    ops_case_of(node ? node->op : HDI_OP_NONE, value);
}
void ops_split(uint32_t cases) {
    if (suite.group_cases < cases) return;
    const uint32_t part = suite.part + 1;
    char name[sizeof suite.name];
    snprintf(name, sizeof name, "%.*s, part %u", (int)HDI_MIN(strcspn(suite.name, ","), 40u), suite.name, part);
    ops_end();
    ops_begin(name, suite.flags);
    suite.part = part;
}

/* ---- what is right ---- */

/* Cases that do not run leave nodes that nothing needs. */
static void find_needed(void) {
    const hd_program *program = suite.program;
    for (uint32_t i = 0; i < suite.output_count; i++) suite.needed[suite.outputs[i].value - 1] = true;
    for (uint32_t i = program->node_count; i-- > 0;)
        for (uint32_t k = 0; suite.needed[i] && k < program->nodes[i].operand_count; k++)
            if (program->nodes[i].operands[k]) suite.needed[program->nodes[i].operands[k] - 1] = true;
}

static void compute_node(uint32_t index) {
    const hdi_node *node = &suite.program->nodes[index];
    hdi_reference_tensor operands[HDI_MAX_OPERANDS] = { 0 };
    const oracle_tensor *exact_operands[HDI_MAX_OPERANDS] = { NULL };
    hdi_reference_tensor out = { node->dtype, node->shape, malloc(node_bytes(node) + 8) };
    hd_error error = { 0 };
    must(out.data != NULL, "no memory");
    suite.bits[index] = out.data;
    suite.exactly[index] = oracle_new(node->dtype, node->shape);
    if (node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE) {
        for (uint32_t i = 0; i < suite.input_count; i++)
            if (strcmp(suite.inputs[i].name, node->name) == 0) memcpy(out.data, suite.inputs[i].bytes, suite.inputs[i].size);
        oracle_unpack(out.data, &suite.exactly[index]);
        return;
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        if (node->operands[i] == 0) continue;
        const uint32_t at = node->operands[i] - 1;
        operands[i] = (hdi_reference_tensor){ suite.program->nodes[at].dtype, suite.program->nodes[at].shape, suite.bits[at] };
        exact_operands[i] = &suite.exactly[at];
    }
    if (hdi_reference(node, operands, &out, &error) != HD_OK) report("reference: %s", error.text);
    oracle_node(node, exact_operands, &suite.exactly[index]);
}

/* ---- judging ---- */

/* The error of one element in units of its bound; infinite where it is no number but should be. */
static double judged(hd_dtype dtype, double got, double want, double bound) {
    if (isinf(bound) || got == want || (!isfinite(want) && (suite.flags & OPS_UNJUDGED))) return 0;
    if (isnan(want)) return isnan(got) ? 0 : (double)INFINITY;
    if (isinf(got))
        return !isnan(got) && signbit(got) == signbit(want) && fabs(want) + bound >= oracle_overflow(dtype)
                   ? 0
                   : (double)INFINITY;
    if (isinf(want) || isnan(got)) return INFINITY;
    return bound == 0 ? (double)INFINITY : fabs(got - want) / bound;
}

static void judge(const char *where, hd_value value, const void *got, int mode) {
    const hdi_node *node = &suite.program->nodes[value - 1];
    const oracle_tensor *right = &suite.exactly[value - 1];
    const uint64_t count = hd_shape_elements(node->shape), size = hdi_dtype(node->dtype).block_bytes;
    double largest = 0, worst = 0;
    uint64_t worst_at = 0, beyond = 0;
    char label[160];
    for (uint64_t i = 0; i < count; i++) largest = fmax(largest, isfinite(right->value[i]) ? fabs(right->value[i]) : 0);
    for (uint64_t i = 0; i < count; i++) {
        double bound = right->error[mode][i];
        if (isinf(bound) && (suite.flags & OPS_UNJUDGED)) bound = largest / (node->dtype == HD_BF16 ? 8 : 64);
        const double ratio = judged(node->dtype, oracle_load(node->dtype, (const uint8_t *)got + i * size), right->value[i], bound);
        beyond += ratio > 1;
        if (ratio <= worst) continue;
        worst = ratio;
        worst_at = i;
    }
    suite.comparisons += count;
    suite.beyond_bound += beyond;
    label_of(value, label, sizeof label);
    if (worst > suite.worst[mode]) {
        suite.worst[mode] = worst;
        snprintf(suite.worst_at[mode], sizeof suite.worst_at[mode], "%.95s", label);
    }
    if (beyond)
        report("%s %s: %s: %llu of %llu elements beyond the bound, the worst at %llu: %.9g, not %.9g +- %.3g", where,
               mode == ORACLE_FAST ? "fast" : "exact", label, (unsigned long long)beyond, (unsigned long long)count,
               (unsigned long long)worst_at, oracle_load(node->dtype, (const uint8_t *)got + worst_at * size),
               right->value[worst_at], right->error[mode][worst_at]);
}

static void judge_bits(const char *where, hd_value value, const void *got) {
    const hdi_node *node = &suite.program->nodes[value - 1];
    const uint64_t count = hd_shape_elements(node->shape), size = hdi_dtype(node->dtype).block_bytes;
    const uint8_t *want = suite.bits[value - 1];
    uint64_t different = 0, first = 0;
    char label[160];
    if (memcmp(got, want, count * size) == 0) return;
    for (uint64_t i = count; i-- > 0;)
        if (memcmp((const uint8_t *)got + i * size, want + i * size, size) != 0) different++, first = i;
    suite.different_bits += different;
    report("%s: %s: %llu of %llu elements have other bits than the reference, the first at %llu: %.9g, not %.9g", where,
           label_of(value, label, sizeof label), (unsigned long long)different, (unsigned long long)count, (unsigned long long)first,
           oracle_load(node->dtype, (const uint8_t *)got + first * size), oracle_load(node->dtype, want + first * size));
}

/* ---- running ---- */

static bool fine(const place *p, hd_status status, const char *what) {
    if (status == HD_OK) return true;
    report("%s: %s: %s", p->name, what, hd_context_error(p->context));
    return false;
}

static bool is_state(const input *in) { return in->name[0] == 's'; }
/* Room for a tensor and at least GUARD_BYTES - 3 of the pattern behind it. */
static uint64_t take_room(uint64_t *bytes, uint64_t size) {
    const uint64_t offset = *bytes;
    *bytes += (size + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    return offset;
}

/* Binds what kernels write, all outputs and states, inside one buffer filled with the pattern. */
static hd_buffer *bind_guarded(const place *p, hd_plan *plan, uint64_t *out_bytes) {
    uint64_t bytes = GUARD_BYTES;
    for (uint32_t i = 0; i < suite.output_count; i++) suite.outputs[i].offset = take_room(&bytes, suite.outputs[i].size);
    for (uint32_t i = 0; i < suite.input_count; i++)
        if (is_state(&suite.inputs[i])) suite.inputs[i].offset = take_room(&bytes, suite.inputs[i].size);
    uint8_t *pattern = malloc(bytes);
    hd_buffer *buffer = NULL;
    must(pattern != NULL, "no memory");
    memset(pattern, PATTERN, bytes);
    *out_bytes = bytes;
    bool done = fine(p, hd_buffer_create(p->device, &(hd_buffer_desc){ .bytes = bytes }, &buffer), "buffer") &&
                fine(p, hd_buffer_write(buffer, 0, pattern, bytes), "pattern");
    for (uint32_t i = 0; i < suite.output_count && done; i++)
        done = fine(p, hd_plan_bind(plan, suite.outputs[i].name, buffer, suite.outputs[i].offset), "bind");
    for (uint32_t i = 0; i < suite.input_count && done; i++)
        if (is_state(&suite.inputs[i])) done = fine(p, hd_plan_bind(plan, suite.inputs[i].name, buffer, suite.inputs[i].offset), "bind");
    free(pattern);
    if (done) return buffer;
    hd_buffer_destroy(buffer);
    return NULL;
}
/* Counts what is no pattern any more from *at to `offset`; a device may write a tensor's last word whole. */
static uint64_t broken_until(const uint8_t *all, uint64_t *at, uint64_t offset, uint64_t size) {
    uint64_t broken = 0;
    for (; *at < offset; ++*at) broken += all[*at] != PATTERN;
    *at = offset + (size + 3) / 4 * 4;
    return broken;
}
static void check_guards(const char *where, const uint8_t *all, uint64_t bytes) {
    uint64_t at = 0, broken = 0;
    for (uint32_t i = 0; i < suite.output_count; i++) broken += broken_until(all, &at, suite.outputs[i].offset, suite.outputs[i].size);
    for (uint32_t i = 0; i < suite.input_count; i++)
        if (is_state(&suite.inputs[i])) broken += broken_until(all, &at, suite.inputs[i].offset, suite.inputs[i].size);
    broken += broken_until(all, &at, bytes, 0);
    suite.broken_guards += broken;
    if (broken) report("%s: %llu bytes around outputs and states were overwritten", where, (unsigned long long)broken);
}

static bool write_inputs(const place *p, hd_plan *plan, bool states_only) {
    bool done = true;
    for (uint32_t i = 0; i < suite.input_count && done; i++)
        if (!states_only || is_state(&suite.inputs[i]))
            done = fine(p, hd_plan_write(plan, suite.inputs[i].name, suite.inputs[i].bytes, suite.inputs[i].size), "write");
    return done;
}

/* Counts a case: right where nothing was reported since there were `before` failures. */
static void count_case(place *p, const output *out, uint64_t before) {
    const hd_dtype type = ops_result_type(suite.program, hdi_program_node(suite.program, out->value));
    ops_result_add(&p->results, out->op, type, suite.failures == before ? OPS_RIGHT : OPS_WRONG);
}
static void count_refused(place *p) {
    for (uint32_t i = 0; i < suite.output_count; i++) {
        const output *out = &suite.outputs[i];
        ops_result_add(&p->results, out->op, ops_result_type(suite.program, hdi_program_node(suite.program, out->value)), OPS_REFUSED);
    }
}

/* Exact runs bind what they write and run twice, the second time as a replay; fast ones read by name. */
static void run_plan(place *p, const hd_program *program, int mode, bool unfused) {
    const hd_plan_desc desc = { .math = mode == ORACLE_EXACT ? HD_MATH_EXACT : HD_MATH_FAST, .no_fusion = unfused, .alone = 1 };
    hd_plan *plan = NULL;
    hd_buffer *buffer = NULL;
    uint64_t bytes = 0;
    uint8_t *all = NULL;
    if (!fine(p, hd_plan_create(p->device, program, &desc, &plan), "plan")) {
        count_refused(p);
        return;
    }
    bool done = mode == ORACLE_FAST || (buffer = bind_guarded(p, plan, &bytes)) != NULL;
    done = done && write_inputs(p, plan, false);
    if (done) done = fine(p, hd_plan_run(plan, NULL), "run");
    if (mode == ORACLE_EXACT && done) {
        all = malloc(bytes);
        must(all != NULL, "no memory");
        done = write_inputs(p, plan, true) && fine(p, hd_plan_run(plan, NULL), "replay") &&
               fine(p, hd_buffer_read(buffer, 0, all, bytes), "read");
        if (done) check_guards(p->name, all, bytes);
        for (uint32_t i = 0; i < suite.output_count && done; i++) {
            const uint64_t before = suite.failures;
            judge_bits(p->name, suite.outputs[i].value, all + suite.outputs[i].offset);
            count_case(p, &suite.outputs[i], before);
            suite.comparisons += suite.outputs[i].size;
        }
    }
    for (uint32_t i = 0; i < suite.output_count && done && mode == ORACLE_FAST; i++) {
        const uint64_t before = suite.failures;
        void *got = malloc(suite.outputs[i].size);
        must(got != NULL, "no memory");
        if (fine(p, hd_plan_read(plan, suite.outputs[i].name, got, suite.outputs[i].size), "read"))
            judge(p->name, suite.outputs[i].value, got, mode);
        count_case(p, &suite.outputs[i], before);
        free(got);
    }
    if (!done) count_refused(p);
    free(all);
    hd_plan_destroy(plan);
    hd_buffer_destroy(buffer);
}

/* Makes option `nth` of every class of kernels in the program the one to be chosen; the most options of one. Classes
 * with fewer begin again. */
static uint32_t force_options(const place *p, const hd_program *program, uint32_t nth) {
    hdi_offer *offer = calloc(1, sizeof *offer);
    hdi_caps caps;
    hdi_schedule *plan = NULL;
    uint32_t most = 0;
    hd_device *device = p->device;
    must(HDI_FIND(device) && HDI_FIND(program), "no device, or no program");
    must(offer != NULL, "no memory");
    hdi_store_caps(device->facts, &caps);
    for (uint32_t i = 0; i < caps.choices.count; i++)
        must(hdi_store_choose(device->facts, caps.choices.items[i].of, NULL, NULL) == HD_OK,
             "a choice cannot be removed");
    hdi_store_caps(device->facts, &caps);
    must(hdi_schedule_make(&hdi_default_allocator, program, &caps,
                           &(hdi_plan_options){ .math = HD_MATH_FAST, .offer = offer }, &plan, NULL) == HD_OK,
         "no plan");
    hdi_schedule_free(plan);
    for (uint32_t i = 0; i < offer->count; i++) {
        const hdi_class_options *class = &offer->items[i];
        most = HDI_MAX(most, class->count);
        if (nth == 0) continue;
        const hdi_choice choice = { .of = class->of, .option = class->options[nth % class->count]->id, .gain = 1 };
        must(hdi_store_choose(device->facts, class->of, &choice, NULL) == HD_OK, "an option cannot be chosen");
    }
    free(offer);
    return most;
}

/* The fast plan once more for each option that its kernels have beside the first, or for one of them. */
static void run_options(place *p, const hd_program *program) {
    const uint32_t most = force_options(p, program, 0);
    for (uint32_t i = 1; i < (suite.in_turn ? HDI_MIN(most, 2) : most); i++) {
        const uint32_t nth = suite.in_turn ? 1 + suite.forced % (most - 1) : i;
        const uint64_t before = suite.failures;
        force_options(p, program, nth);
        run_plan(p, program, ORACLE_FAST, false);
        suite.forced++;
        if (suite.failures != before) report("%s: with option %u of each kernel", p->name, nth);
    }
    force_options(p, program, 0);
}

static void run_everywhere(void) {
    size_t needed = 0;
    hd_program_print(suite.program, NULL, 0, &needed);
    char *text = malloc(needed + 1);
    must(text != NULL && needed > 0 && hd_program_print(suite.program, text, needed + 1, &needed) == HD_OK,
         "the program cannot be printed: ");
    for (uint32_t i = 0; i < suite.place_count; i++) {
        place *p = &suite.places[i];
        hd_program *program = NULL;
        if (!fine(p, hd_program_parse(p->context, text, strlen(text), &program), "parse")) continue;
        if (!suite.options) run_plan(p, program, ORACLE_EXACT, false);
        if (suite.flags & OPS_UNFUSED) run_plan(p, program, ORACLE_EXACT, true);
        if (!(suite.flags & OPS_EXACT_ONLY)) run_plan(p, program, ORACLE_FAST, false);
        if (!(suite.flags & OPS_EXACT_ONLY) && suite.options) run_options(p, program);
        hd_program_destroy(program);
    }
    free(text);
}

static void judge_group(void) {
    must(hd_program_check(suite.program) == HD_OK, "bad program: ");
    const uint32_t nodes = suite.program->node_count;
    suite.needed = calloc(nodes, sizeof *suite.needed);
    suite.bits = calloc(nodes, sizeof *suite.bits);
    suite.exactly = calloc(nodes, sizeof *suite.exactly);
    must(suite.needed != NULL && suite.bits != NULL && suite.exactly != NULL, "no memory");
    find_needed();
    for (uint32_t i = 0; i < nodes; i++)
        if (suite.needed[i]) compute_node(i);
    for (uint32_t i = 0; i < suite.output_count; i++)
        judge("reference", suite.outputs[i].value, suite.bits[suite.outputs[i].value - 1], ORACLE_EXACT);
    run_everywhere();
    for (uint32_t i = 0; i < nodes; i++) {
        free(suite.bits[i]);
        oracle_free(&suite.exactly[i]);
    }
    free(suite.needed);
    free(suite.bits);
    free(suite.exactly);
}
void ops_end(void) {
    if (suite.output_count > 0) judge_group(); /* ops_split may have left nothing to do */
    for (uint32_t i = 0; i < suite.input_count; i++) free(suite.inputs[i].bytes);
    hd_program_destroy(suite.program);
    suite.program = NULL;
    suite.name[0] = 0;
}

/* ---- the whole ---- */

/* Opens "cpu:8" (a number of threads) or any other id. False where there is no such device. */
static bool open_place(const char *wanted) {
    place *p = &suite.places[suite.place_count];
    hd_context_desc desc = { .cache_dir = "", .strict = -1 };
    const bool is_cpu = strncmp(wanted, "cpu", 3) == 0;
    if (is_cpu) desc.cpu_threads = wanted[3] == ':' ? (uint32_t)atoi(wanted + 4) : 0;
    if (hd_context_create(&desc, &p->context) != HD_OK) return false;
    if (hd_device_open(p->context, &(hd_device_desc){ .id = is_cpu ? "cpu" : wanted }, &p->device) != HD_OK) {
        hd_context_destroy(p->context);
        return false;
    }
    if (is_cpu) snprintf(p->name, sizeof p->name, "cpu x%u", desc.cpu_threads);
    else snprintf(p->name, sizeof p->name, "%.47s", hd_device_get_info(p->device)->name);
    suite.place_count++;
    return true;
}

/* The cases are as many as case_table.inc says. */
static void check_counts(void) {
    for (uint32_t op = 1; op < HDI_OP_COUNT; op++) {
        uint32_t stated = 0;
        for (uint32_t i = 0; i < ops_count_rows; i++)
            if (ops_counts[i].op == (hdi_op)op && strcmp(ops_counts[i].family, suite.family) == 0) stated += ops_counts[i].cases;
        if (stated != suite.cases[op])
            report("%u cases of %s; case_table.inc says %u: run this test with --update", suite.cases[op],
                   hdi_op_get((hdi_op)op).name, stated);
    }
}

/* Puts this family's rows into case_table.inc, in the place of those it has. */
static void update_counts(void) {
    static const char path[] = HEDDLE_TESTS_DIR "/ops/case_table.inc";
    static const char *const codes[HDI_OP_COUNT] = { "NONE",
#define HDI_OP(code, ...) #code,
#include "program/op_table.inc"
#undef HDI_OP
    };
    static char lines[512][96];
    char own[64];
    uint32_t count = 0, first = 0;
    FILE *file = fopen(path, "r");
    snprintf(own, sizeof own, "CASES(\"%s\",", suite.family);
    while (file && count < HDI_COUNT(lines) && fgets(lines[count], sizeof lines[count], file))
        if (strncmp(lines[count], own, strlen(own)) != 0) count++;
        else if (first == 0) first = count;
    if (file) fclose(file);
    must(file && (file = fopen(path, "w")), "case_table.inc cannot be opened");
    for (uint32_t i = 0; i <= count; i++) {
        for (uint32_t op = 1; i == (first ? first : count) && op < HDI_OP_COUNT; op++)
            if (suite.cases[op]) fprintf(file, "%s %s, %u)\n", own, codes[op], suite.cases[op]);
        if (i < count) fputs(lines[i], file);
    }
    fclose(file);
}

/* The devices that the arguments name, or the usual ones as far as they are here. */
static void open_places(int argc, char **argv) {
    static const char *const usual[] = { "cpu:1", "cpu:2", "cpu:8", "vulkan" }, *const usual_short[] = { "cpu:2", "vulkan", "opencl" };
    bool is_short = false;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--short") == 0) is_short = true;
        else if (strcmp(argv[at], "--update") == 0) suite.update = true;
        else if (strcmp(argv[at], "--options") == 0) suite.options = true;
        else if (strcmp(argv[at], "--options-in-turn") == 0) suite.options = suite.in_turn = true;
        else if (strcmp(argv[at], "--results") == 0 && at + 1 < argc) suite.results_path = argv[++at];
        else must(false, "arguments are [--short] [--update] [--options | --options-in-turn] [--results FILE] [DEVICE ...]");
    }
    const bool named = at < argc;
    const char *const *list = is_short ? usual_short : usual;
    const int count = named ? argc - at : is_short ? (int)HDI_COUNT(usual_short) : (int)HDI_COUNT(usual);
    suite.every = 1;
    for (uint32_t i = 0; is_short && i < ops_share_rows; i++)
        if (strcmp(ops_shares[i].family, suite.family) == 0) suite.every = ops_shares[i].every;
    for (int i = 0; i < count && suite.place_count < MAX_DEVICES; i++) {
        const char *wanted = named ? argv[at + i] : list[i];
        if (!open_place(wanted) && (named || strncmp(wanted, "cpu", 3) == 0)) report("%s cannot be opened", wanted);
    }
    must(suite.place_count > 0, "no device");
}

int ops_main(const char *family, const ops_test *tests, uint32_t count, int argc, char **argv) {
    const uint64_t start = hdi_now_ns();
    suite.family = family;
    open_places(argc, argv);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t failures = suite.failures;
        suite.reports = 0;
        tests[i].run();
        if (suite.failures != failures)
            fprintf(stderr, "%s: %s: %llu failures\n", family, tests[i].name,
                    (unsigned long long)(suite.failures - failures));
    }
    suite.reports = 0;
    if (suite.update) update_counts();
    else check_counts();
    printf("%s: %u of %u cases on", family, suite.run_count, suite.case_count);
    for (uint32_t i = 0; i < suite.place_count; i++) printf("%s %s", i ? "," : "", suite.places[i].name);
    if (suite.options) printf("; %u plans with other options", suite.forced);
    printf("; %llu comparisons; worst error/bound fast %.3f (%s), exact %.3f (%s); %llu beyond; %llu differing; %llu guard bytes; %.1f s\n",
           (unsigned long long)suite.comparisons, suite.worst[ORACLE_FAST], suite.worst_at[ORACLE_FAST], suite.worst[ORACLE_EXACT],
           suite.worst_at[ORACLE_EXACT], (unsigned long long)suite.beyond_bound, (unsigned long long)suite.different_bits,
           (unsigned long long)suite.broken_guards, (double)(hdi_now_ns() - start) / 1e9);
    for (uint32_t i = 0; i < suite.place_count; i++) {
        const place *p = &suite.places[i];
        if (suite.results_path && !ops_results_write(suite.results_path, hd_device_get_info(p->device), &p->results))
            report("%s cannot be written", suite.results_path);
        hd_context_destroy(p->context);
    }
    if (validation_messages() > 0) report("%llu messages of the validation layers", (unsigned long long)validation_messages());
    hdi_free(&hdi_default_allocator, suite.inputs, suite.input_capacity * sizeof *suite.inputs);
    hdi_free(&hdi_default_allocator, suite.outputs, suite.output_capacity * sizeof *suite.outputs);
    return suite.failures != 0;
}
