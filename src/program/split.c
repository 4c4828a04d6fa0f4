/* split.c: operations that several devices compute together. Each becomes one of its kind on every device that has a
 * part; what reads them by the same pieces is next to them, so that a chain of such operations is a chain on each. */
#include "program/segments.h"

/* ---- what can be divided ---- */

static const hdi_node *operand_of(const hd_program *program, const hdi_node *node, uint32_t k) {
    return hdi_program_node(program, node->operands[k]);
}

static bool is_by_element(const hdi_node *node) {
    const hdi_op_kind kind = hdi_op_kind_of(node->op);
    return kind == HDI_KIND_ELEMENTWISE || kind == HDI_KIND_FUNCTION;
}

enum { WHOLE = -1 };

/* Along which axis operand `k` of a node is divided where the node is; WHOLE: each device needs all of it. */
static int operand_axis(const hd_program *program, const hdi_node *node, hdi_share_axis axis, uint32_t k) {
    const hdi_node *x = operand_of(program, node, k);
    if (!x) return WHOLE;
    if (axis == HDI_SHARE_ROWS) return hdi_op_row_operands(program, node) >> k & 1 ? 0 : WHOLE;
    const int last = (int)x->shape.rank - 1;
    if (node->op != HDI_OP_MATMUL) /* element by element */
        return last >= 0 && x->shape.dims[last] == node->shape.dims[node->shape.rank - 1] ? last : WHOLE;
    const bool turned = (node->attrs.ints[0] & (k == 0 ? HD_TRANSPOSE_A : HD_TRANSPOSE_B)) != 0;
    if (axis == HDI_SHARE_COLUMNS) return k == 0 ? WHOLE : last - (turned ? 1 : 0);
    return k == 0 ? last - (turned ? 1 : 0) : last - (turned ? 0 : 1);
}

/* The axis of the result that devices divide. */
static uint32_t result_axis(const hdi_node *node, hdi_share_axis axis) {
    return axis == HDI_SHARE_ROWS ? 0 : node->shape.rank - 1;
}

/* What is divided among devices: rows, columns, or the terms of each sum. */
static uint64_t length_of(const hd_program *program, const hdi_node *node, hdi_share_axis axis) {
    if (axis != HDI_SHARE_TERMS) return (uint64_t)node->shape.dims[result_axis(node, axis)];
    return (uint64_t)operand_of(program, node, 0)->shape.dims[operand_axis(program, node, axis, 0)];
}

/* Quantised values are divided by rows of an input only: it then comes in pieces, and nothing is cut on a device. */
static bool comes_in_pieces(const hd_program *program, hd_value value) {
    uint32_t readers = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        for (uint32_t k = 0; k < program->nodes[i].operand_count; k++)
            readers += program->nodes[i].operands[k] == value;
    return readers == 1 && program->nodes[value - 1].op == HDI_OP_INPUT && !program->nodes[value - 1].is_output;
}

const char *hdi_share_why_not(const hd_program *program, hd_value value, hdi_share_axis axis) {
    const hdi_node *node = &program->nodes[value - 1];
    if (node->shape.rank == 0 || (axis == HDI_SHARE_ROWS && node->shape.dims[0] < 2))
        return "it has fewer than two rows";
    if (axis == HDI_SHARE_ROWS && hdi_op_row_operands(program, node) == 0)
        return "its rows are not computed each by itself";
    if (axis == HDI_SHARE_COLUMNS && node->op != HDI_OP_MATMUL && !is_by_element(node))
        return "its columns are not computed each by itself";
    if (axis == HDI_SHARE_TERMS && node->op != HDI_OP_MATMUL) return "it is no sum of products";
    if (axis != HDI_SHARE_ROWS && node->op == HDI_OP_MATMUL && operand_of(program, node, 1)->shape.rank != 2)
        return "its second operand is a batch";
    if (length_of(program, node, axis) < 2) return "there is one of them";
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const hdi_node *x = operand_of(program, node, k);
        const int cut = operand_axis(program, node, axis, k);
        if (x && hdi_op_shows_state(x->op)) return "it touches a state";
        if (x && cut != WHOLE && hdi_dtype_is_quantised(x->dtype) &&
            (cut != 0 || axis == HDI_SHARE_ROWS || !comes_in_pieces(program, node->operands[k])))
            return "what would be cut is quantised";
    }
    return NULL;
}

void hdi_share_bounds(const hdi_share *share, uint32_t device_count, uint64_t length, uint64_t *out_begin) {
    const uint64_t unit = length >= 1024 ? 64 : length >= 256 ? 16 : 1;
    uint64_t all = 0, before = 0, last = 0, to_come = 0;
    for (uint32_t d = 0; d < device_count; d++) {
        all += share->parts[d];
        to_come += share->parts[d] > 0;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        out_begin[d] = last;
        if (share->parts[d] == 0) continue;
        before += share->parts[d];
        to_come--;
        const uint64_t nearest = (length / all * before + length % all * before / all + unit / 2) / unit * unit;
        const uint64_t least_left = to_come ? (to_come - 1) * unit + 1 : 0; /* for the devices behind this one */
        const uint64_t most = length > least_left ? (length - least_left) / unit * unit : 0;
        last = to_come ? HDI_MAX(HDI_MIN(HDI_MAX(nearest, last + unit), most), last) : length;
    }
    out_begin[device_count] = length;
}

hd_status hdi_placement_in_turn(const hd_program *program, uint32_t pieces, hdi_placement *out, hd_error *error) {
    uint64_t most_bytes = 0, rows = 0;
    uint32_t share = 0;
    hd_status status = hdi_placement_new(program, pieces, out, error);
    for (hd_value v = 1; v <= program->node_count && !status; v++) {
        const hdi_node *node = &program->nodes[v - 1];
        const uint64_t bytes = hd_tensor_bytes(node->dtype, node->shape);
        if (bytes <= most_bytes || hdi_share_why_not(program, v, HDI_SHARE_ROWS)) continue;
        most_bytes = bytes;
        rows = (uint64_t)node->shape.dims[0];
    }
    if (!status && rows < pieces) return hdi_fail(error, HD_STATUS_UNSUPPORTED, "no rows to be computed in turn");
    hdi_share equal = { .axis = HDI_SHARE_ROWS };
    for (uint32_t d = 0; d < pieces; d++) equal.parts[d] = 1;
    if (!status) status = hdi_placement_share(out, &equal, &share, error);
    for (hd_value v = 1; v <= program->node_count && !status; v++) {
        const hdi_node *node = &program->nodes[v - 1];
        if (node->shape.rank > 0 && (uint64_t)node->shape.dims[0] == rows &&
            !hdi_share_why_not(program, v, HDI_SHARE_ROWS))
            out->of[v - 1].share = share;
    }
    out->in_turn = true;
    return status;
}

/* ---- splitting ---- */

/* What a value became. Arrays have a place for each device. */
typedef struct split_value {
    bool      alive;    /* an output or a written state needs it */
    bool      read;     /* of an input: by what is alive */
    bool      sums;     /* its pieces are sums that are to be added */
    uint32_t  share;    /* of a value in pieces: by which share; else 0 */
    uint32_t  axis;     /* along which its pieces lie, */
    uint64_t  length;   /* and what was divided */
    hd_value  whole;    /* of a value in one piece */
    hd_value *pieces;
    hd_value *joined;   /* where something needs it whole */
    uint32_t  cut_share, cut_axis; /* cut for readers by pieces, */
    hd_value *cut;      /* for each device */
} split_value;

typedef struct splitting {
    const hd_program    *program;
    const hdi_placement *placement;
    split_value *values; /* by id */
    hd_value    *ids;    /* that their arrays are made of */
    hdi_split   *out;
} splitting;

static const hdi_share *share_of(const splitting *s, uint32_t share) { return &s->placement->shares[share - 1]; }

static void find_alive(splitting *s) {
    for (uint32_t i = 0; i < s->program->output_count; i++) s->values[s->program->outputs[i].value].alive = true;
    for (hd_value v = s->program->node_count; v > 0; v--) {
        const hdi_node *node = &s->program->nodes[v - 1];
        s->values[v].alive |= hdi_op_writes_state(node->op);
        for (uint32_t k = 0; k < node->operand_count && s->values[v].alive; k++)
            s->values[node->operands[k]].alive = true;
    }
}

/* Inputs that all readers take by the same pieces of the first axis come in pieces. */
static void find_pieces(splitting *s) {
    for (hd_value v = 1; v <= s->program->node_count; v++) {
        const hdi_node *node = &s->program->nodes[v - 1];
        const uint32_t share = node->op == HDI_OP_INPUT ? 0 : s->placement->of[v - 1].share;
        for (uint32_t k = 0; k < node->operand_count && s->values[v].alive; k++) {
            const hdi_node *x = operand_of(s->program, node, k);
            split_value *value = &s->values[node->operands[k]];
            if (!x || x->op != HDI_OP_INPUT) continue;
            const bool pieces =
                share && !x->is_output && operand_axis(s->program, node, share_of(s, share)->axis, k) == 0;
            const uint32_t wanted = pieces ? share : 0;
            value->share = value->read && value->share != wanted ? 0 : wanted;
            value->read = true;
            value->length = x->shape.rank ? (uint64_t)x->shape.dims[0] : 0;
        }
    }
}

/* Adds a node that stands for a piece of a value, as `origin` says, on a device. */
static hd_value add(splitting *s, const hdi_node *as, const hd_value *operands, const hdi_attrs *attrs,
                    hdi_origin origin, uint32_t device) {
    hd_program *to = s->out->program;
    hdi_placement *placement = &s->out->placement;
    hdi_node made = { .op = as->op, .dtype = as->dtype, .shape = as->shape, .name = as->name };
    if (!as->name) made.attrs = *attrs, made.operands = operands, made.operand_count = as->operand_count;
    const hd_value value = hdi_program_add(to, &made);
    if (!value) return 0;
    to->nodes[value - 1].origin = origin;
    if (hdi_grow(s->program->allocator, &placement->of, &placement->node_count, value, sizeof *placement->of))
        placement->of[value - 1] = (hdi_place){ .device = device };
    else hdi_fail(&to->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to split a program");
    return value;
}

/* A piece of a value along an axis. */
typedef struct piece {
    uint32_t axis;
    uint64_t begin, end;
} piece;

static piece piece_of(const splitting *s, uint32_t share, uint32_t axis, uint64_t length, uint32_t device) {
    uint64_t begin[HDI_MOST_DEVICES + 1];
    hdi_share_bounds(share_of(s, share), s->placement->device_count, length, begin);
    return (piece){ axis, begin[device], begin[device + 1] };
}

static hdi_origin origin_of(hd_value v, piece p) { return (hdi_origin){ v, p.axis, p.begin, p.end }; }

/* Joins the pieces one after the other, or adds the sums of terms: in the order of the devices. */
static hd_value join_pieces(splitting *s, hd_value v, uint32_t device) {
    const hdi_node *node = &s->program->nodes[v - 1];
    const split_value *value = &s->values[v];
    hdi_node join = { .op = value->sums ? HDI_OP_ADD : HDI_OP_CONCAT, .dtype = node->dtype, .shape = node->shape };
    hd_value there[HDI_MOST_DEVICES];
    for (uint32_t d = 0; d < s->placement->device_count; d++)
        if (value->pieces[d]) there[join.operand_count++] = value->pieces[d];
    const uint32_t count = join.operand_count;
    if (count == 1) return there[0];
    if (!value->sums)
        return add(s, &join, there, &(hdi_attrs){ .ints = { value->axis } }, (hdi_origin){ .value = v }, device);
    join.operand_count = 2;
    for (uint32_t i = 1; i < count; i++)
        there[0] = add(s, &join, (const hd_value[]){ there[0], there[i] }, &(hdi_attrs){ 0 },
                       (hdi_origin){ .value = v }, device);
    return there[0];
}

/* The value as one, on the device where it is read. */
static hd_value whole_on(splitting *s, hd_value v, uint32_t device) {
    split_value *value = &s->values[v];
    if (v == 0 || value->share == 0) return value->whole;
    if (!value->joined[device]) value->joined[device] = join_pieces(s, v, device);
    return value->joined[device];
}

/* The piece of a value that a device needs: cut where the value is made, so that no more than it crosses. */
static hd_value piece_on(splitting *s, hd_value v, uint32_t share, piece p, uint32_t device) {
    split_value *value = &s->values[v];
    const hdi_node *node = &s->program->nodes[v - 1];
    const bool fits =
        value->share && !value->sums && value->axis == p.axis && value->length == (uint64_t)node->shape.dims[p.axis];
    if (fits &&
        memcmp(share_of(s, value->share)->parts, share_of(s, share)->parts, sizeof share_of(s, share)->parts) == 0)
        return value->pieces[device];
    if (value->cut_share != share || value->cut_axis != p.axis)
        memset(value->cut, 0, s->placement->device_count * sizeof *value->cut);
    value->cut_share = share;
    value->cut_axis = p.axis;
    if (value->cut[device]) return value->cut[device];
    const bool stays = node->op != HDI_OP_INPUT && value->share == 0;
    const hd_value from = whole_on(s, v, device);
    hdi_attrs bounds = { .list_count = node->shape.rank };
    hdi_node slice = { .op = HDI_OP_SLICE, .operand_count = 1, .dtype = node->dtype, .shape = node->shape };
    memcpy(bounds.ints + HD_MAX_RANK, node->shape.dims, sizeof node->shape.dims);
    bounds.ints[p.axis] = (int64_t)p.begin;
    bounds.ints[HD_MAX_RANK + p.axis] = (int64_t)p.end;
    slice.shape.dims[p.axis] = (int64_t)(p.end - p.begin);
    value->cut[device] =
        add(s, &slice, &from, &bounds, origin_of(v, p), stays ? s->placement->of[v - 1].device : device);
    return value->cut[device];
}

/* A device's piece of an operation, or of an input in pieces. */
static hd_value make_piece(splitting *s, hd_value v, uint32_t device) {
    const hdi_node *node = &s->program->nodes[v - 1];
    const split_value *value = &s->values[v];
    const hdi_share_axis axis = share_of(s, value->share)->axis;
    const piece own = piece_of(s, value->share, value->axis, value->length, device);
    if (own.begin == own.end) return 0;
    hdi_node made = *node;
    hdi_attrs attrs = node->attrs;
    hd_value operands[HDI_MAX_OPERANDS];
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const int cut = operand_axis(s->program, node, axis, k);
        operands[k] = cut == WHOLE ? whole_on(s, node->operands[k], device)
                                   : piece_on(s, node->operands[k], value->share,
                                              (piece){ (uint32_t)cut, own.begin, own.end }, device);
    }
    if (!value->sums) made.shape.dims[value->axis] = (int64_t)(own.end - own.begin);
    if (node->op == HDI_OP_SLICE) attrs.ints[HD_MAX_RANK] = (int64_t)(own.end - own.begin);
    return add(s, &made, operands, &attrs, value->sums ? (hdi_origin){ .value = v } : origin_of(v, own), device);
}

static void split_value_of(splitting *s, hd_value v) {
    const hdi_node *node = &s->program->nodes[v - 1];
    split_value *value = &s->values[v];
    const bool input = node->op == HDI_OP_INPUT;
    if (!input) value->share = s->placement->of[v - 1].share;
    if (value->share && !input) {
        const hdi_share_axis axis = share_of(s, value->share)->axis;
        value->sums = axis == HDI_SHARE_TERMS;
        value->axis = result_axis(node, axis);
        value->length = length_of(s->program, node, axis);
    }
    for (uint32_t device = 0; device < s->placement->device_count && value->share; device++)
        value->pieces[device] = make_piece(s, v, device);
    if (value->share) return;
    const uint32_t device = input ? 0 : s->placement->of[v - 1].device;
    hd_value operands[HDI_MAX_OPERANDS];
    for (uint32_t k = 0; k < node->operand_count; k++) operands[k] = whole_on(s, node->operands[k], device);
    value->whole = add(s, node, operands, &node->attrs, (hdi_origin){ .value = v }, device);
}

/* Pieces of rows are read where they are; what is in other pieces is joined on the first device that has one. */
static void add_output(splitting *s, const hdi_output *output) {
    const split_value *value = &s->values[output->value];
    uint32_t first = 0;
    if (value->share == 0) {
        hdi_program_add_output(s->out->program, output->name, value->whole);
        return;
    }
    while (value->pieces[first] == 0) first++;
    const bool rows = !value->sums && value->axis == 0 && !s->placement->in_turn;
    if (!rows) hdi_program_add_output(s->out->program, output->name, whole_on(s, output->value, first));
    for (uint32_t device = first; device < s->placement->device_count && rows; device++)
        if (value->pieces[device]) hdi_program_add_output(s->out->program, output->name, value->pieces[device]);
}

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to split a program");
}

hd_status hdi_split_make(const hd_program *program, const hdi_placement *placement, hdi_split *out_split,
                         hd_error *error) {
    const size_t count = (size_t)program->node_count + 1, devices = placement->device_count;
    bool shared = false;
    for (uint32_t i = 0; i < program->node_count; i++)
        shared |= program->nodes[i].op != HDI_OP_INPUT && placement->of[i].share;
    *out_split = (hdi_split){ 0 };
    if (!shared) return HD_OK;
    out_split->program = hdi_program_new(program->allocator, program->context);
    out_split->placement = (hdi_placement){ .allocator = program->allocator, .device_count = placement->device_count };
    splitting s = { program, placement, hdi_alloc(program->allocator, count * sizeof *s.values),
                    hdi_alloc(program->allocator, 3 * count * devices * sizeof *s.ids), out_split };
    hd_status status = out_split->program && s.values && s.ids ? HD_OK : no_memory(error);
    if (!status) {
        hd_program *made = out_split->program;
        made->split = true;
        for (size_t v = 0; v < count; v++) {
            s.values[v].pieces = s.ids + 3 * v * devices;
            s.values[v].joined = s.values[v].pieces + devices;
            s.values[v].cut = s.values[v].joined + devices;
        }
        find_alive(&s);
        if (!placement->in_turn) find_pieces(&s);
        for (hd_value v = 1; v < count && !made->error.status; v++) split_value_of(&s, v);
        for (uint32_t i = 0; i < program->output_count && !made->error.status; i++)
            add_output(&s, &program->outputs[i]);
        status = made->error.status;
        if (status && error) *error = made->error;
    }
    hdi_free(program->allocator, s.values, count * sizeof *s.values);
    hdi_free(program->allocator, s.ids, 3 * count * devices * sizeof *s.ids);
    return status;
}

void hdi_split_free(hdi_split *split) {
    hdi_placement_free(&split->placement);
    hdi_program_free(split->program);
    *split = (hdi_split){ 0 };
}
