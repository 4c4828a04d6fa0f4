/* hash.c: the hash of a program's structure, over everything that its text form shows, number by number from the lowest
 * byte, so that it is the same on every machine. */
#include "program/attrs.h"

static uint64_t add_number(uint64_t hash, uint64_t number) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> (8 * i));
    return hdi_hash(hash, bytes, sizeof bytes);
}

static uint64_t add_text(uint64_t hash, const char *text) { return hdi_hash(hash, text, strlen(text) + 1); }

static uint64_t add_float(uint64_t hash, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return add_number(hash, value != value ? 0x7fc00000u : bits); /* texts know one NaN only */
}

static uint64_t add_shape(uint64_t hash, hd_shape shape) {
    hash = add_number(hash, shape.rank);
    for (uint32_t i = 0; i < shape.rank; i++) hash = add_number(hash, (uint64_t)shape.dims[i]);
    return hash;
}

static uint64_t add_custom(uint64_t hash, const hdi_custom *custom) {
    hash = add_number(hash, custom->kernel_hash);
    hash = add_number(hash, custom->push_bytes);
    for (uint32_t i = 0; i < custom->push_bytes / 4; i++) hash = add_number(hash, custom->push_words[i]);
    for (uint32_t i = 0; i < 3; i++) hash = add_number(hash, custom->groups[i]);
    for (uint32_t i = 0; i < custom->binding_count; i++) {
        hash = add_number(hash, custom->bindings[i].operand);
        hash = add_number(hash, custom->bindings[i].offset);
        hash = add_number(hash, custom->bindings[i].bytes);
    }
    return hash;
}

static uint64_t add_attr(uint64_t hash, const hdi_node *node, const hdi_attr *attr) {
    const hdi_attrs *a = &node->attrs;
    switch (attr->kind) {
    case HDI_ATTR_FLOAT: return add_float(hash, a->floats[attr->at]);
    case HDI_ATTR_INT:
    case HDI_ATTR_PAIRING: return add_number(hash, (uint64_t)a->ints[attr->at]);
    case HDI_ATTR_FLAG:
        return attr->silent && !hdi_attr_flag(a, attr) ? hash : add_number(hash, hdi_attr_flag(a, attr));
    case HDI_ATTR_LIST:
        for (uint32_t i = 0; i < a->list_count; i++) hash = add_number(hash, (uint64_t)a->ints[attr->at + i]);
        return hash;
    case HDI_ATTR_FACTORS:
        hash = add_number(hash, a->factor_count);
        for (uint32_t i = 0; i < a->factor_count; i++) hash = add_float(hash, a->factors[i]);
        return hash;
    case HDI_ATTR_KERNEL: return add_custom(hash, a->custom);
    case HDI_ATTR_DTYPE: case HDI_ATTR_SHAPE: case HDI_ATTR_NAME: /* every node's, and every port's, are added anyway */
    case HDI_ATTR_PUSH: case HDI_ATTR_GROUPS: case HDI_ATTR_BINDINGS: return hash; /* added with the kernel */
    }
    return hash;
}

uint64_t hdi_program_hash(const hd_program *program) {
    uint64_t hash = HDI_HASH_START;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const hdi_node *node = &program->nodes[i];
        hash = add_text(hash, hdi_op_get(node->op).name);
        hash = add_number(hash, (uint64_t)node->dtype);
        hash = add_shape(hash, node->shape);
        hash = add_number(hash, node->operand_count);
        for (uint32_t k = 0; k < node->operand_count; k++) hash = add_number(hash, node->operands[k]);
        const hdi_attr *attrs[HDI_MAX_ATTRS];
        uint32_t attr_count = hdi_op_attrs(node->op, attrs);
        for (uint32_t k = 0; k < attr_count; k++) hash = add_attr(hash, node, attrs[k]);
    }
    for (uint32_t i = 0; i < program->port_count; i++) {
        const hd_port *port = &program->ports[i];
        hash = add_number(hash, (uint64_t)port->kind);
        hash = add_number(hash, port->value);
        hash = add_text(hash, port->name);
    }
    return hash;
}
