/* split.c: operations whose rows both devices compute. Each becomes two of its kind on rows [0,r) and [r,n); what reads them by
 * the same rows is next to them, so that a chain of such operations is two chains. */
#include "program/segments.h"

/* ---- what can be split ---- */

static const hdi_node *operand_of(const hd_program *program, const hdi_node *node, uint32_t k) { return hdi_program_node(program, node->operands[k]); }

const char *hdi_rows_why_not(const hd_program *program, hd_value value) {
    const hdi_node *node = &program->nodes[value - 1];
    if (node->shape.rank == 0 || node->shape.dims[0] < 2) return "it has fewer than two rows";
    const uint64_t rows = hdi_op_row_operands(program, node);
    if (rows == 0) return "its rows are not computed each by itself";
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const hdi_node *x = operand_of(program, node, k);
        if (x && hdi_op_shows_state(x->op)) return "it touches a state";
        if (x && (rows >> k & 1) && hdi_dtype_is_quantised(x->dtype)) return "the rows of what it reads are quantised";
    }
    return NULL;
}

uint64_t hdi_rows_of_share(uint64_t rows, uint8_t place) {
    const uint64_t unit = rows >= 1024 ? 64 : rows >= 256 ? 16 : 1, percent = place & ~HDI_PLACE_SHARED;
    const uint64_t nearest = (rows / 100 * percent + rows % 100 * percent / 100 + unit / 2) / unit * unit;
    return HDI_MIN(HDI_MAX(nearest, unit), (rows - 1) / unit * unit);
}

/* ---- splitting ---- */

/* What a value became. */
typedef struct split_value {
    bool     alive;     /* an output or a written state needs it */
    bool     read;      /* of an input: by what is alive */
    uint64_t at;        /* the row of the second piece, of a value in pieces; else 0 */
    hd_value whole;     /* of a value in one piece */
    hd_value pieces[2]; /* by device */
    hd_value joined[2]; /* on each device, where something needs it whole */
    uint64_t cut_at;    /* a value cut for readers by rows: at this row, */
    hd_value cut[2];    /* for each device */
} split_value;

typedef struct splitting {
    const hd_program *program;
    const uint8_t    *places;
    split_value      *values; /* by id */
    hdi_split        *out;
} splitting;

/* The row at which a value is split, 0 where it is not. */
static uint64_t split_at(const splitting *s, hd_value v) {
    const uint8_t place = s->places[v - 1];
    return place & HDI_PLACE_SHARED ? hdi_rows_of_share((uint64_t)s->program->nodes[v - 1].shape.dims[0], place) : 0;
}

static void find_alive(splitting *s) {
    for (uint32_t i = 0; i < s->program->output_count; i++) s->values[s->program->outputs[i].value].alive = true;
    for (hd_value v = s->program->node_count; v > 0; v--) {
        const hdi_node *node = &s->program->nodes[v - 1];
        s->values[v].alive |= hdi_op_writes_state(node->op);
        for (uint32_t k = 0; k < node->operand_count && s->values[v].alive; k++) s->values[node->operands[k]].alive = true;
    }
}

/* Inputs that all readers take by the same rows come in pieces. */
static void find_pieces(splitting *s) {
    for (hd_value v = 1; v <= s->program->node_count; v++) {
        const hdi_node *node = &s->program->nodes[v - 1];
        const uint64_t at = node->op == HDI_OP_INPUT ? 0 : split_at(s, v), rows = at ? hdi_op_row_operands(s->program, node) : 0;
        for (uint32_t k = 0; k < node->operand_count && s->values[v].alive; k++) {
            const hdi_node *x = operand_of(s->program, node, k);
            split_value *value = &s->values[node->operands[k]];
            if (!x || x->op != HDI_OP_INPUT) continue;
            const uint64_t wanted = rows >> k & 1 && !x->is_output ? at : 0;
            value->at = value->read && value->at != wanted ? 0 : wanted;
            value->read = true;
        }
    }
}

/* Adds a node that stands for a value's rows from origin.begin on. */
static hd_value add(splitting *s, const hdi_node *as, const hd_value *operands, const hdi_attrs *attrs, hd_shape shape, hdi_origin origin, uint8_t place) {
    hd_program *to = s->out->program;
    hdi_node made = { .op = as->op, .dtype = as->dtype, .shape = shape, .name = as->name };
    if (!as->name) made.attrs = *attrs, made.operands = operands, made.operand_count = as->operand_count;
    const hd_value value = hdi_program_add(to, &made);
    if (!value) return 0;
    to->nodes[value - 1].origin = origin;
    if (hdi_grow(s->program->allocator, &s->out->places, &s->out->place_capacity, value, sizeof *s->out->places)) s->out->places[value - 1] = place;
    else hdi_fail(&to->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to split a program");
    return value;
}

/* Which rows of a value that is split at `at` a device has. */
static hdi_origin rows_on(const splitting *s, hd_value v, uint64_t at, uint32_t device) {
    return device ? (hdi_origin){ v, at, (uint64_t)s->program->nodes[v - 1].shape.dims[0] } : (hdi_origin){ v, 0, at };
}

static hd_shape shape_of(const splitting *s, hdi_origin origin) {
    hd_shape shape = s->program->nodes[origin.value - 1].shape;
    shape.dims[0] = (int64_t)(origin.end - origin.begin);
    return shape;
}

/* The value as one, on the device where it is read. */
static hd_value whole_on(splitting *s, hd_value v, uint32_t device) {
    split_value *value = &s->values[v];
    if (v == 0 || value->at == 0) return value->whole;
    const hdi_node join = { .op = HDI_OP_CONCAT, .operand_count = 2, .dtype = s->program->nodes[v - 1].dtype };
    if (!value->joined[device]) value->joined[device] = add(s, &join, value->pieces, &(hdi_attrs){ 0 }, s->program->nodes[v - 1].shape, (hdi_origin){ .value = v }, (uint8_t)device);
    return value->joined[device];
}

/* The rows of a value that a device needs of it: they are cut where the value is made, so that no more than they crosses. */
static hd_value piece_on(splitting *s, hd_value v, uint64_t at, uint32_t device) {
    split_value *value = &s->values[v];
    if (value->at == at) return value->pieces[device];
    if (value->cut_at != at) value->cut[0] = value->cut[1] = 0;
    value->cut_at = at;
    if (value->cut[device]) return value->cut[device];
    const hdi_node *node = &s->program->nodes[v - 1];
    const bool stays = node->op != HDI_OP_INPUT && value->at == 0;
    const hdi_origin origin = rows_on(s, v, at, device);
    const hd_value from = whole_on(s, v, device);
    hdi_attrs bounds = { .list_count = node->shape.rank };
    memcpy(bounds.ints + HD_MAX_RANK, node->shape.dims, sizeof node->shape.dims);
    bounds.ints[0] = (int64_t)origin.begin;
    bounds.ints[HD_MAX_RANK] = (int64_t)origin.end;
    value->cut[device] = add(s, &(hdi_node){ .op = HDI_OP_SLICE, .operand_count = 1, .dtype = node->dtype }, &from, &bounds, shape_of(s, origin), origin,
                             stays ? s->places[v - 1] : (uint8_t)device);
    return value->cut[device];
}

/* One half of an operation, or of an input in pieces. */
static hd_value half(splitting *s, hd_value v, uint64_t at, uint32_t device) {
    const hdi_node *node = &s->program->nodes[v - 1];
    const uint64_t rows = hdi_op_row_operands(s->program, node);
    const hdi_origin origin = rows_on(s, v, at, device);
    hdi_attrs attrs = node->attrs;
    hd_value operands[HDI_MAX_OPERANDS];
    for (uint32_t k = 0; k < node->operand_count; k++)
        operands[k] = rows >> k & 1 ? piece_on(s, node->operands[k], at, device) : whole_on(s, node->operands[k], device);
    if (node->op == HDI_OP_SLICE) attrs.ints[HD_MAX_RANK] = (int64_t)(origin.end - origin.begin);
    return add(s, node, operands, &attrs, shape_of(s, origin), origin, (uint8_t)device);
}

static void split_value_of(splitting *s, hd_value v) {
    const hdi_node *node = &s->program->nodes[v - 1];
    split_value *value = &s->values[v];
    const bool input = node->op == HDI_OP_INPUT;
    if (!input) value->at = split_at(s, v);
    for (uint32_t device = 0; device < 2 && value->at; device++) value->pieces[device] = half(s, v, value->at, device);
    if (value->at) return;
    const uint8_t place = input ? 0 : s->places[v - 1];
    hd_value operands[HDI_MAX_OPERANDS];
    for (uint32_t k = 0; k < node->operand_count; k++) operands[k] = whole_on(s, node->operands[k], place);
    value->whole = add(s, node, operands, &node->attrs, node->shape, (hdi_origin){ .value = v }, place);
}

static void add_outputs(splitting *s) {
    for (uint32_t i = 0; i < s->program->output_count; i++) {
        const hdi_output *output = &s->program->outputs[i];
        const split_value *value = &s->values[output->value];
        if (value->at == 0) hdi_program_add_output(s->out->program, output->name, value->whole);
        for (uint32_t device = 0; device < 2 && value->at; device++) hdi_program_add_output(s->out->program, output->name, value->pieces[device]);
    }
}

static hd_status no_memory(hd_error *error) { return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to split a program"); }

hd_status hdi_split_make(const hd_program *program, const uint8_t *places, hdi_split *out_split, hd_error *error) {
    const size_t count = program->node_count;
    bool shared = false;
    for (size_t i = 0; i < count; i++) shared |= program->nodes[i].op != HDI_OP_INPUT && places[i] & HDI_PLACE_SHARED;
    *out_split = (hdi_split){ 0 };
    if (!shared) return HD_OK;
    out_split->program = hdi_program_new(program->allocator, program->context);
    splitting s = { program, places, hdi_alloc(program->allocator, (count + 1) * sizeof *s.values), out_split };
    hd_status status = out_split->program && s.values ? HD_OK : no_memory(error);
    if (!status) {
        out_split->program->split = true;
        find_alive(&s);
        find_pieces(&s);
        for (hd_value v = 1; v <= count && !out_split->program->error.status; v++) split_value_of(&s, v);
        add_outputs(&s);
        status = out_split->program->error.status;
        if (status && error) *error = out_split->program->error;
    }
    hdi_free(program->allocator, s.values, (count + 1) * sizeof *s.values);
    return status;
}

void hdi_split_free(hdi_split *split) {
    if (split->program) hdi_free(split->program->allocator, split->places, split->place_capacity * sizeof *split->places);
    hdi_program_free(split->program);
    *split = (hdi_split){ 0 };
}
