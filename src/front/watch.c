/* watch.c: plans whose runs say where NaN come from: they are made from the watched program (program/watch.c), and what
 * its outputs tell is looked at after each run. */
#include "front/front.h"
#include <stdlib.h>

hd_status hdi_watch_begin(hd_plan *plan, const hd_program *program, hd_program **out_watched, hd_error *error) {
    hd_status status = hdi_program_copy(plan->context, program, out_watched);
    if (status) return hdi_fail(error, status, "the program could not be copied to look for NaN");
    hdi_program_watch(*out_watched, plan->context->find_nan > 1);
    plan->watched = (*out_watched)->node_count;
    return hdi_program_check(*out_watched, error);
}

/* "[1,7]": the place of an element. */
static void place_text(hd_shape shape, int32_t element, char out[HDI_SHAPE_TEXT]) {
    hd_shape at = { .rank = shape.rank };
    uint64_t rest = (uint64_t)element;
    for (uint32_t axis = shape.rank; axis-- > 0; rest /= (uint64_t)shape.dims[axis])
        at.dims[axis] = (int64_t)(rest % (uint64_t)shape.dims[axis]);
    hdi_shape_text(at, out);
}

static const char *name_of(const hd_program *program, hd_value value) {
    const hdi_node *node = hdi_program_node(program, value);
    const char *name = node->name;
    for (uint32_t i = 0; i < program->output_count && !name; i++)
        if (program->outputs[i].value == value) name = program->outputs[i].name;
    return name;
}

static hd_status tell(const hd_program *program, hd_value value, hdi_watched told, hd_error *error) {
    const hdi_node *node = hdi_program_node(program, value);
    const char *op = hdi_op_get(node->op).name, *name = name_of(program, value);
    char shape[HDI_SHAPE_TEXT], place[HDI_SHAPE_TEXT];
    place_text(node->shape, told.first, place);
    const hd_status status = hdi_fail(error, HD_STATUS_NOT_FINITE,
        "v%u, %s %s%s%s%s%s, is the first to hold a NaN or an infinity that its operands do not: %d NaN and %d "
        "infinities of %llu "
        "elements, the first at %s; look at what it is made of", value, op, hd_dtype_name(node->dtype),
        hdi_shape_text(node->shape, shape), name ? " \"" : "", name ? name : "", name ? "\"" : "", told.nan,
        told.not_finite - told.nan, (unsigned long long)hd_shape_elements(node->shape), place);
    if (error && error->status == status) snprintf(error->op, sizeof error->op, "%s", op);
    return status;
}

/* What was told for each value; `*out_any`: of some that it is not finite. */
static hd_status read_all(hd_plan *plan, hdi_watched *told, bool *out_any, hd_error *error) {
    hdi_loaded *from = plan->outputs ? plan->outputs : plan->loaded;
    hd_status status = HD_OK;
    *out_any = false;
    for (uint32_t p = 0; p < from->plan->port_count && !status; p++) {
        const hdi_loaded_port *port = &from->ports[p];
        if (port->kind != HD_PORT_OUTPUT || strncmp(port->name, HDI_WATCH_NAME, strlen(HDI_WATCH_NAME)) != 0) continue;
        const unsigned long value = strtoul(port->name + strlen(HDI_WATCH_NAME), NULL, 10);
        /* an output of the caller's own */
        if (value == 0 || value > plan->watched || port->bytes != sizeof *told) continue;
        status = hdi_port_read(from, port, &told[value - 1], error);
        *out_any |= told[value - 1].not_finite > 0;
    }
    return status;
}

hd_status hdi_watch_look(hd_plan *plan, hd_error *error) {
    const hd_allocator *allocator = &plan->context->allocator;
    hdi_watched *told = hdi_alloc(allocator, plan->watched * sizeof *told);
    hd_program *program = NULL;
    bool any = false;
    hd_status status = told ? read_all(plan, told, &any, error)
                            : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to look for NaN");
    if (!status && any)
        status = hdi_program_read(plan->context, plan->program_text.bytes, plan->program_text.count, &program);
    const hd_value first = program && !status ? hdi_watch_first(program, told, plan->context->find_nan > 1) : 0;
    if (first) status = tell(program, first, told[first - 1], error);
    hd_program_destroy(program);
    hdi_free(allocator, told, plan->watched * sizeof *told);
    return status;
}
