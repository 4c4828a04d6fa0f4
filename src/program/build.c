/* build.c: a program and its growth. Every node and every name goes in through here, checked first; the first failure
 * sticks, and from then on nothing more is added. The file knows operations only by their facts; the public calls that
 * name them are in builders.c. */
#include "program/attrs.h"
#include <stdatomic.h>
#include <stdio.h>

#define MAX_NODES (1u << 20)
#define MAX_NAME_BYTES 255
#define MAX_FIXED_OPERANDS 5

hd_program *hdi_program_new(const hd_allocator *allocator, hd_context *context) {
    hd_program *program = hdi_alloc(allocator, sizeof *program);
    if (!program) return NULL;
    program->context = context;
    program->allocator = allocator;
    program->arena.allocator = allocator;
    program->names.allocator = allocator;
    return program;
}

void hdi_program_free(hd_program *program) {
    if (!program) return;
    const hd_allocator *allocator = program->allocator;
    hdi_free(allocator, program->nodes, program->node_capacity * sizeof *program->nodes);
    hdi_free(allocator, program->outputs, program->output_capacity * sizeof *program->outputs);
    hdi_free(allocator, program->ports, program->port_capacity * sizeof *program->ports);
    hdi_names_free(&program->names);
    hdi_arena_free(&program->arena);
    hdi_free(allocator, program, sizeof *program);
}

const hdi_node *hdi_program_node(const hd_program *program, hd_value value) {
    return program && value > 0 && value <= program->node_count ? &program->nodes[value - 1] : NULL;
}

/* ---- names ---- */

/* Bytes of the UTF-8 character at `s`, or 0 where there is none: cut short, too long a form, a surrogate, past the end
 * of Unicode, or a control character. */
static size_t character_bytes(const unsigned char *s) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F;
    size_t bytes = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    uint32_t code = s[0] & (0x7Fu >> bytes);
    static const uint32_t least[] = { 0, 0, 0xA0, 0x800, 0x10000 };
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0; /* the ending zero too */
        code = code << 6 | (s[i] & 0x3F);
    }
    return code >= least[bytes] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF) ? bytes : 0;
}

static hd_status check_name(const hd_program *program, const char *op, const char *name, hd_error *error) {
    if (!name) return hdi_fail(error, HD_STATUS_NULL_POINTER, "%s: the name is NULL", op);
    size_t bytes = 0;
    while (bytes <= MAX_NAME_BYTES && name[bytes]) {
        size_t step = name[bytes] == '"' ? 0 : character_bytes((const unsigned char *)name + bytes);
        if (step == 0)
            return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT,
                            "%s: byte %zu of the name is a quote, a control character or no UTF-8", op, bytes + 1);
        bytes += step;
    }
    if (bytes == 0) return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%s: the name is empty", op);
    if (bytes > MAX_NAME_BYTES)
        return hdi_fail(error, HD_STATUS_LIMIT, "%s: the name has more than %d bytes", op, MAX_NAME_BYTES);
    if (hdi_names_find(&program->names, name, bytes) && !program->split)
        return hdi_fail(error, HD_STATUS_NAME_TAKEN, "%s: the name \"%s\" is taken", op, name);
    return HD_OK;
}

static bool add_port(hd_program *program, hd_port port) {
    if (!hdi_grow(program->allocator, &program->ports, &program->port_capacity, program->port_count + 1, sizeof port))
        return false;
    const size_t bytes = strlen(port.name);
    if (!hdi_names_find(&program->names, port.name, bytes) &&
        !hdi_names_add(&program->names, port.name, bytes, program->port_count + 1)) return false;
    program->ports[program->port_count++] = port;
    return true;
}

/* ---- nodes ---- */

/* Why a state's value is of no more use: the operation that wrote the state. */
static const char *writer_of(const hd_program *program, hd_value state) {
    for (uint32_t i = state; i < program->node_count; i++)
        if (hdi_op_writes_state(program->nodes[i].op) && program->nodes[i].operands[0] == state)
            return hdi_op_get(program->nodes[i].op).name;
    return "?";
}

static hd_status check_operands(const hd_program *program, hdi_op op, const hd_value *operands, uint32_t count,
                                hd_error *error) {
    hdi_op_facts facts = hdi_op_get(op);
    if (!facts.name) return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%d is no operation", (int)op);
    if (error->status == HD_OK) snprintf(error->op, sizeof error->op, "%s", facts.name);
    if (count > facts.most_operands)
        return hdi_fail(error, HD_STATUS_LIMIT, "%s: %u operands, at most %u", facts.name, count, facts.most_operands);
    if (count < facts.least_operands)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "%s: %u operands, at least %u", facts.name, count,
                        facts.least_operands);
    if (count > 0 && !operands) return hdi_fail(error, HD_STATUS_NULL_POINTER, "%s: the operands are NULL", facts.name);
    for (uint32_t i = 0; i < count; i++) {
        const hdi_node *node = hdi_program_node(program, operands[i]);
        if (operands[i] == 0 && hdi_op_may_lack(op, i)) continue;
        if (!node)
            return hdi_fail(error, HD_STATUS_UNKNOWN_VALUE, "%s: operand %u is value %u, the program has 1 to %u",
                            facts.name, i + 1, operands[i], program->node_count);
        if (node->overwritten)
            return hdi_fail(error, HD_STATUS_WRONG_STATE,
                            "%s: operand %u is value %u, which %s has overwritten: use the "
                            "result of %s", facts.name, i + 1, operands[i], writer_of(program, operands[i]),
                            writer_of(program, operands[i]));
    }
    if (program->node_count == MAX_NODES)
        return hdi_fail(error, HD_STATUS_LIMIT, "%s: a program has at most %u operations", facts.name, MAX_NODES);
    return HD_OK;
}

/* Copies what the node borrows into the arena. */
static bool own(hd_program *program, hdi_node *node) {
    size_t factor_bytes = node->attrs.factor_count * sizeof(float);
    size_t room = HDI_MAX(node->operand_count, (uint32_t)MAX_FIXED_OPERANDS);
    hd_value *operands = hdi_arena_alloc(&program->arena, room * sizeof *operands);
    if (!operands) return false;
    if (node->operand_count > 0) memcpy(operands, node->operands, node->operand_count * sizeof *operands);
    node->operands = operands;
    if (node->name && !(node->name = hdi_arena_text(&program->arena, node->name, strlen(node->name)))) return false;
    if (factor_bytes > 0) {
        float *factors = hdi_arena_alloc(&program->arena, factor_bytes);
        if (!factors) return false;
        memcpy(factors, node->attrs.factors, factor_bytes);
        node->attrs.factors = factors;
    }
    if (node->attrs.custom) {
        hdi_custom *custom = hdi_arena_alloc(&program->arena, sizeof *custom);
        if (!custom) return false;
        *custom = *node->attrs.custom;
        node->attrs.custom = custom;
    }
    return true;
}

hd_value hdi_program_try(hd_program *program, const hdi_node *from, hd_error *error) {
    const hdi_op op = from->op;
    const bool named = hdi_op_is_source(op);
    hdi_node node = { .op = op, .dtype = from->dtype, .shape = from->shape, .attrs = from->attrs,
                      .operand_count = from->operand_count, .operands = from->operands };
    if (named) node.name = from->name;
    if (check_operands(program, op, node.operands, node.operand_count, error)) return 0;
    while (node.operand_count > 0 && node.operands[node.operand_count - 1] == 0) node.operand_count--;
    if (named && check_name(program, hdi_op_get(op).name, node.name, error)) return 0;
    if (hdi_program_infer(program, &node, error)) return 0;
    if (!own(program, &node) || !hdi_grow(program->allocator, &program->nodes, &program->node_capacity,
                                          program->node_count + 1, sizeof node)) goto no_memory;
    hd_value value = program->node_count + 1;
    hd_port_kind kind = op == HDI_OP_INPUT ? HD_PORT_INPUT : HD_PORT_STATE;
    if (named && !add_port(program, (hd_port){ kind, node.name, value, node.dtype, node.shape })) goto no_memory;
    program->nodes[program->node_count++] = node;
    if (hdi_op_writes_state(op)) program->nodes[node.operands[0] - 1].overwritten = true;
    if (op == HDI_OP_DISPATCH) program->foreign_kernels = true;
    return value;
no_memory:
    hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "%s: no memory for another operation", hdi_op_get(op).name);
    return 0;
}

hd_value hdi_program_add(hd_program *program, const hdi_node *node) {
    if (!program || program->error.status != HD_OK) return 0;
    hd_error error = { 0 };
    hd_value value = hdi_program_try(program, node, &error);
    if (value == 0) hdi_program_fail(program, &error);
    return value;
}

void hdi_program_fail(hd_program *program, const hd_error *error) {
    if (program->error.status != HD_OK) return;
    program->error = *error;
    snprintf(program->error.text, sizeof program->error.text, "operation %u: %.340s", program->node_count + 1,
             error->text);
}

/* ---- outputs and ports ---- */

hd_status hdi_program_try_output(hd_program *program, const char *name, hd_value value, hd_error *error) {
    hdi_node *node = hdi_program_node(program, value) ? &program->nodes[value - 1] : NULL;
    snprintf(error->op, sizeof error->op, "output");
    hd_status status = check_name(program, "output", name, error);
    if (status) return status;
    if (!node)
        return hdi_fail(error, HD_STATUS_UNKNOWN_VALUE, "output: \"%s\" is value %u, the program has 1 to %u", name,
                        value, program->node_count);
    if (node->overwritten)
        return hdi_fail(error, HD_STATUS_WRONG_STATE, "output: \"%s\" is value %u, which %s has overwritten", name,
                        value, writer_of(program, value));
    if (hdi_dtype_is_quantised(node->dtype))
        return hdi_fail(error, HD_STATUS_TYPE, "output: \"%s\" is %s: cast it to f32", name,
                        hd_dtype_name(node->dtype));
    if (program->output_count == MAX_NODES)
        return hdi_fail(error, HD_STATUS_LIMIT, "output: a program has at most %u outputs", MAX_NODES);
    hd_port port = { HD_PORT_OUTPUT, hdi_arena_text(&program->arena, name, strlen(name)), value, node->dtype,
                     node->shape };
    if (!port.name || !hdi_grow(program->allocator, &program->outputs, &program->output_capacity,
                                program->output_count + 1, sizeof *program->outputs) || !add_port(program, port))
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "output: no memory for another name");
    program->outputs[program->output_count++] = (hdi_output){ port.name, value };
    node->is_output = true;
    return HD_OK;
}

bool hdi_program_add_output(hd_program *program, const char *name, hd_value value) {
    if (!program || program->error.status != HD_OK) return false;
    hd_error error = { 0 };
    if (hdi_program_try_output(program, name, value, &error) == HD_OK) return true;
    hdi_program_fail(program, &error);
    return false;
}

/* ---- as callers see it ---- */

uint32_t hdi_program_new_tag(void) {
    static atomic_uint given;
    return 1 + atomic_fetch_add(&given, 1) % ((1u << (32 - HDI_ID_BITS)) - 1);
}

bool hdi_program_see(hd_program **program_at, uint32_t *out_tag) {
    const bool inside = ((uintptr_t)*program_at & 1) == 0;
    if (!HDI_FIND(*program_at)) return false;
    *out_tag = inside ? 0 : (*program_at)->tag;
    return true;
}

/* Operands as ids; fails at a value of another program. */
static hd_status read_operands(uint32_t tag, const hdi_node *node, hd_value *out_ids, hd_error *error) {
    for (uint32_t i = 0; node->operands && i < HDI_MIN(node->operand_count, (uint32_t)HDI_MAX_OPERANDS); i++) {
        out_ids[i] = hdi_value_id(tag, node->operands[i]);
        if (out_ids[i] != UINT32_MAX) continue;
        const char *name = hdi_op_get(node->op).name;
        snprintf(error->op, sizeof error->op, "%s", name);
        return hdi_fail(error, HD_STATUS_UNKNOWN_VALUE, "%s: operand %u is a value of another program, or none", name,
                        i + 1);
    }
    return HD_OK;
}

hd_value hdi_program_put(hd_program *program, const hdi_node *from) {
    hd_value ids[HDI_MAX_OPERANDS] = { 0 };
    hd_error error = { 0 };
    hdi_node node = *from;
    uint32_t tag;
    if (!hdi_program_see(&program, &tag)) return HDI_REFUSE(program), 0;
    if (tag && node.operands) node.operands = ids;
    if (tag && read_operands(tag, from, ids, &error)) return hdi_program_fail(program, &error), 0;
    return hdi_value_shown(tag, hdi_program_add(program, &node));
}

void hd_output(hd_program *program, const char *name, hd_value value) {
    uint32_t tag;
    if (hdi_program_see(&program, &tag)) hdi_program_add_output(program, name, hdi_value_id(tag, value));
    else HDI_REFUSE(program);
}

size_t hd_program_port_count(const hd_program *program) { return HDI_FIND(program) ? program->port_count : 0; }

hd_port hd_program_port(const hd_program *handle, size_t index) {
    hd_program *program = (hd_program *)(uintptr_t)handle; /* only read */
    uint32_t tag;
    if (!hdi_program_see(&program, &tag) || index >= program->port_count) return (hd_port){ 0 };
    hd_port port = program->ports[index];
    port.value = hdi_value_shown(tag, port.value);
    return port;
}

hd_status hd_value_describe(const hd_program *handle, hd_value value, hd_dtype *out_dtype, hd_shape *out_shape) {
    hd_program *program = (hd_program *)(uintptr_t)handle; /* only read */
    uint32_t tag;
    if (!hdi_program_see(&program, &tag)) return HDI_REFUSE(program);
    const hdi_node *node = hdi_program_node(program, hdi_value_id(tag, value));
    if (!node) return HD_STATUS_UNKNOWN_VALUE;
    if (out_dtype) *out_dtype = node->dtype;
    if (out_shape) *out_shape = node->shape;
    return HD_OK;
}
