/* differences.c: see differences.h. */
#include "differences.h"
#include "ops/oracle.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_INPUTS = 12, MOST_NODES = 4096 };
#define STEP 1e-5
#define BOUND 4e-7 /* constants of rules are f32: 6e-8 each */

uint32_t judged;
bool judged_ops[HDI_OP_COUNT];

static struct {
    const char *name;
    hd_context *context;
    hd_program *program;
    uint32_t    input_count;
    hd_value    inputs[MOST_INPUTS];
    double     *data[MOST_INPUTS], *direction[MOST_INPUTS];
    bool        wanted[MOST_INPUTS];
    uint64_t    seed;
} c;

static uint64_t random_bits(void) {
    c.seed ^= c.seed >> 12;
    c.seed ^= c.seed << 25;
    c.seed ^= c.seed >> 27;
    return c.seed * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}
uint32_t chance(uint32_t below) { return (uint32_t)(random_bits() % below); }
static double between(double low, double high) { return low + (high - low) * (double)(random_bits() & 0xffffffffu) / 0x1p32; }

static void stop(const char *what) {
    fprintf(stderr, "case %u, %s: %s\n", judged + 1, c.name, what);
    exit(1);
}
static double *room(uint64_t count) {
    double *made = calloc(count + 1, sizeof *made);
    if (!made) stop("no memory");
    return made;
}

void begin(const char *name) {
    if (!c.context && hd_context_create(NULL, &c.context)) stop("no context");
    c.name = name;
    c.program = hd_program_create(c.context);
    if (!HDI_FIND(c.program)) stop("no program");
    c.input_count = 0;
    c.seed = hdi_hash(HDI_HASH_START, name, strlen(name)) + 2 * judged + 1;
    if (!c.program) stop("no program");
}
hd_program *program(void) { return c.program; }

static hd_value value(hdi_op op, hd_dtype dtype, hd_shape shape, double low, double high, bool wanted) {
    const uint64_t count = hd_shape_elements(shape);
    char name[16];
    snprintf(name, sizeof name, "x%u", c.input_count);
    const hd_value made = op == HDI_OP_STATE ? hd_state(c.program, name, dtype, shape) : hd_input(c.program, name, dtype, shape);
    if (c.input_count == MOST_INPUTS || !made) stop("an input");
    double *data = room(count);
    for (uint64_t i = 0; i < count; i++) data[i] = hdi_dtype_is_float(dtype) ? between(low, high) : floor(between(low, high));
    c.wanted[c.input_count] = wanted;
    c.data[c.input_count] = data;
    c.inputs[c.input_count++] = made;
    return made;
}
static hd_value filled(hdi_op op, hd_dtype dtype, hd_shape shape, fill with, bool wanted) {
    const hd_value made = with == FILL_POSITIVE ? value(op, dtype, shape, 0.5, 2, wanted) : value(op, dtype, shape, -1, 1, wanted);
    double *data = c.data[c.input_count - 1];
    for (uint64_t i = 0; i < hd_shape_elements(shape) && with == FILL_ZEROS; i++) if (chance(3) == 0) data[i] = 0;
    return made;
}
hd_value floats(hd_shape shape, fill with) { return filled(HDI_OP_INPUT, HD_F32, shape, with, true); }
hd_value typed(hd_dtype dtype, hd_shape shape, fill with) { return filled(HDI_OP_INPUT, dtype, shape, with, true); }
hd_value fixed(hd_shape shape, fill with) { return filled(HDI_OP_INPUT, HD_F32, shape, with, false); }
hd_value state(hd_shape shape, fill with) { return filled(HDI_OP_STATE, HD_F32, shape, with, true); }
hd_value whole(hd_shape shape, int64_t low, int64_t high) {
    return value(HDI_OP_INPUT, HD_I32, shape, (double)low, (double)high + 1, true);
}
hd_value bits(hd_shape shape) { return value(HDI_OP_INPUT, HD_U8, shape, 0, 2, true); }
hd_value weights(hd_dtype dtype, hd_shape shape) { /* what they hold is of no account here: any whole numbers */
    return value(HDI_OP_INPUT, dtype, shape, -3, 4, true);
}
hd_value numbers(hd_shape shape, const int64_t *values) {
    const hd_value made = whole(shape, 0, 0);
    for (uint64_t i = 0; i < hd_shape_elements(shape); i++) c.data[c.input_count - 1][i] = (double)values[i];
    return made;
}

/* Every value up to `last`, at the inputs moved by `step` along the direction. */
static void compute(hd_value last, double step, oracle_tensor *tensors) {
    for (hd_value v = 1; v <= last; v++) {
        const hdi_node *node = hdi_program_node(c.program, v);
        const oracle_tensor *operands[HDI_MAX_OPERANDS] = { NULL };
        tensors[v] = oracle_new(node->dtype, node->shape);
        for (uint32_t i = 0; i < node->operand_count; i++) operands[i] = node->operands[i] ? &tensors[node->operands[i]] : NULL;
        if (!hdi_op_is_source(node->op)) oracle_node(node, operands, &tensors[v]);
        for (uint32_t k = 0; k < c.input_count; k++)
            for (uint64_t i = 0; c.inputs[k] == v && i < hd_shape_elements(node->shape); i++)
                tensors[v].value[i] = c.data[k][i] + step * c.direction[k][i];
    }
}
static void release(hd_value last, oracle_tensor *tensors) { for (hd_value v = 1; v <= last; v++) oracle_free(&tensors[v]); }

static void turn(void) {
    for (uint32_t k = 0; k < c.input_count; k++) {
        const hdi_node *node = hdi_program_node(c.program, c.inputs[k]);
        const bool moves = c.wanted[k] && hdi_dtype_is_float(node->dtype);
        for (uint64_t i = 0; i < hd_shape_elements(node->shape); i++) c.direction[k][i] = moves ? between(-1, 1) : 0;
        /* A product or a pick among equals has no derivative along every direction: what is 0 stays. */
        for (uint64_t i = 0; i < hd_shape_elements(node->shape); i++) c.direction[k][i] *= c.data[k][i] != 0;
    }
}

static void compare(hd_value loss, const hd_value *gradients) {
    static oracle_tensor at[MOST_NODES], above[MOST_NODES], below[MOST_NODES];
    const hd_value last = c.program->node_count;
    if (last >= MOST_NODES) stop("too many operations");
    compute(last, 0, at);
    for (int round = 0; round < 3; round++) {
        turn();
        compute(loss, STEP, above);
        compute(loss, -STEP, below);
        const double expected = (above[loss].value[0] - below[loss].value[0]) / (2 * STEP);
        double sum = 0, size = 0;
        for (uint32_t k = 0; k < c.input_count; k++)
            for (uint64_t i = 0; gradients[k] && i < hd_shape_elements(at[c.inputs[k]].shape); i++) {
                const double term = at[gradients[k]].value[i] * c.direction[k][i];
                sum += term;
                size += fabs(term);
            }
        char text[160];
        snprintf(text, sizeof text, "differences give %.12g, the gradients %.12g, of terms of %.3g", expected, sum, size);
        if (!(fabs(sum - expected) <= BOUND * size + 2e-9 * (1 + fabs(at[loss].value[0])))) stop(text);
        release(loss, above);
        release(loss, below);
    }
    release(last, at);
}

void judge(hd_value y) {
    hd_program *p = c.program;
    hd_value gradients[MOST_INPUTS] = { 0 }, wanted[MOST_INPUTS];
    const hdi_node *node = hdi_program_node(p, y);
    if (!node) stop(p->error.text);
    const hd_value share = fixed(node->shape, FILL_UNIT);
    const hd_value loss = hd_sum(p, hd_mul(p, hd_cast(p, y, HD_F32), share), HD_ALL_AXES);
    for (uint32_t k = 0; k < c.input_count; k++) {
        wanted[k] = c.inputs[k];
        c.direction[k] = room(hd_shape_elements(hdi_program_node(p, c.inputs[k])->shape));
    }
    if (hd_gradients(p, loss, wanted, c.input_count, NULL, gradients)) stop(p->error.text);
    for (uint32_t k = 0; k < c.input_count; k++) {
        const hdi_node *x = hdi_program_node(p, wanted[k]), *g = hdi_program_node(p, gradients[k]);
        if (g && (!hdi_dtype_is_float(x->dtype) || g->dtype != x->dtype || !hdi_shape_equal(g->shape, x->shape)))
            stop("a gradient is not of its value's type and shape");
    }
    memset(judged_ops, 0, sizeof judged_ops);
    for (uint32_t i = 0; i < p->node_count; i++) judged_ops[p->nodes[i].op] = true;
    oracle_in_float64 = true;
    compare(loss, gradients);
    for (uint32_t k = 0; k < c.input_count; k++) {
        free(c.data[k]);
        free(c.direction[k]);
    }
    hd_program_destroy(p);
    judged++;
}
