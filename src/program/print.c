/* print.c: a program's canonical text. Values are v1, v2, ... in order; an output stands right before the input or
 * state declared after it, else at the end, so that the ports come back in their order. All attributes are written but
 * unset flags and empty lists, which have no other meaning. */
#include "program/attrs.h"

static void print_shape(hdi_text *out, hd_shape shape) {
    char text[HDI_SHAPE_TEXT];
    hdi_text_add(out, "%s", hdi_shape_text(shape, text));
}

static void print_float(hdi_text *out, const char *before, float value) {
    char text[32];
    hdi_float_text(value, text);
    hdi_text_add(out, "%s%s", before, text);
}

static void print_factors(hdi_text *out, const char *name, const hdi_attrs *attrs) {
    for (uint32_t i = 0; i < attrs->factor_count; i++) {
        if (i == 0) hdi_text_add(out, " %s=", name);
        print_float(out, i ? "," : "[", attrs->factors[i]);
    }
    if (attrs->factor_count > 0) hdi_text_add(out, "]");
}

static void print_push(hdi_text *out, const hdi_custom *custom) {
    if (custom->push_bytes > 0) hdi_text_add(out, " push=");
    for (uint32_t i = 0; i < custom->push_bytes / 4; i++)
        hdi_text_add(out, "%08lx", (unsigned long)custom->push_words[i]);
}

/* Of each binding its operand, counted from 1, offset and bytes. */
static void print_bindings(hdi_text *out, const hdi_custom *custom) {
    for (uint32_t i = 0; i < custom->binding_count; i++) {
        const hdi_custom_binding *binding = &custom->bindings[i];
        hdi_text_add(out, "%s%u,%llu,%llu", i ? "," : " bindings=[", binding->operand,
                     (unsigned long long)binding->offset, (unsigned long long)binding->bytes);
    }
    if (custom->binding_count) hdi_text_add(out, "]");
}

static void print_attr(hdi_text *out, const hdi_node *node, const hdi_attr *attr) {
    const hdi_attrs *a = &node->attrs;
    hd_shape list = { a->list_count, { 0 } };
    if (attr->silent && attr->kind == HDI_ATTR_INT && a->ints[attr->at] == 0) return;
    if (attr->silent && attr->kind == HDI_ATTR_FLOAT && a->floats[attr->at] == attr->unset) return;
    switch (attr->kind) {
    case HDI_ATTR_FLOAT:
        hdi_text_add(out, " %s", attr->name);
        print_float(out, "=", a->floats[attr->at]);
        break;
    case HDI_ATTR_INT: hdi_text_add(out, " %s=%lld", attr->name, (long long)a->ints[attr->at]); break;
    case HDI_ATTR_LIST:
        memcpy(list.dims, a->ints + attr->at, sizeof list.dims);
        hdi_text_add(out, " %s=", attr->name);
        print_shape(out, list);
        break;
    case HDI_ATTR_FLAG:
        if (hdi_attr_flag(a, attr)) hdi_text_add(out, " %s", attr->name);
        break;
    case HDI_ATTR_PAIRING: hdi_text_add(out, " %s=%s", attr->name, a->ints[attr->at] ? "neighbours" : "halves"); break;
    case HDI_ATTR_FACTORS: print_factors(out, attr->name, a); break;
    case HDI_ATTR_DTYPE: hdi_text_add(out, " %s=%s", attr->name, hd_dtype_name(node->dtype)); break;
    case HDI_ATTR_SHAPE:
        hdi_text_add(out, " %s=", attr->name);
        print_shape(out, node->shape);
        break;
    case HDI_ATTR_NAME: break; /* print_node writes it */
    case HDI_ATTR_KERNEL:
        hdi_text_add(out, " %s=%016llx", attr->name, (unsigned long long)a->custom->kernel_hash);
        break;
    case HDI_ATTR_PUSH: print_push(out, a->custom); break;
    case HDI_ATTR_BINDINGS: print_bindings(out, a->custom); break;
    case HDI_ATTR_GROUPS:
        hdi_text_add(out, " %s=[%lu,%lu,%lu]", attr->name, (unsigned long)a->custom->groups[0],
                     (unsigned long)a->custom->groups[1], (unsigned long)a->custom->groups[2]);
        break;
    }
}

static void print_node(hdi_text *out, const hdi_node *node, uint32_t value) {
    hdi_text_add(out, "v%lu = %s", (unsigned long)value, hdi_op_get(node->op).name);
    if (node->name) { /* an input or state: type, shape and name need no words */
        hdi_text_add(out, " %s", hd_dtype_name(node->dtype));
        print_shape(out, node->shape);
        hdi_text_add(out, " \"%s\"\n", node->name);
        return;
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        if (node->operands[i]) hdi_text_add(out, " v%lu", (unsigned long)node->operands[i]);
        else hdi_text_add(out, " -");
    }
    const hdi_attr *attrs[HDI_MAX_ATTRS];
    uint32_t attr_count = hdi_op_attrs(node->op, attrs);
    for (uint32_t i = 0; i < attr_count; i++) print_attr(out, node, attrs[i]);
    hdi_text_add(out, "\n");
}

/* Prints the outputs from `port` on up to the next input or state; returns that one's place. */
static uint32_t print_outputs(hdi_text *out, const hd_program *program, uint32_t port) {
    for (; port < program->port_count && program->ports[port].kind == HD_PORT_OUTPUT; port++)
        hdi_text_add(out, "output v%lu \"%s\"\n", (unsigned long)program->ports[port].value, program->ports[port].name);
    return port;
}

void hdi_program_print(const hd_program *program, hdi_text *out_text) {
    uint32_t port = 0;
    hdi_text_add(out_text, "heddle 1\n");
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->nodes[i].name) port = print_outputs(out_text, program, port) + 1;
        print_node(out_text, &program->nodes[i], i + 1);
    }
    print_outputs(out_text, program, port);
}

void hdi_origin_print(const hd_program *program, hd_value value, hdi_text *out_text) {
    const hdi_origin origin = program->nodes[value - 1].origin;
    hdi_text_add(out_text, "v%lu", (unsigned long)(origin.value ? origin.value : value));
    if (origin.end)
        hdi_text_add(out_text, " %s %llu-%llu", origin.axis ? "columns" : "rows", (unsigned long long)origin.begin,
                     (unsigned long long)origin.end - 1);
}
