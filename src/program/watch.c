/* watch.c: a program -> program step that finds where a NaN or an infinity comes from: for each value of floats an
 * output of i32 [3] is added, so that it runs wherever the program does, and costs nothing where it was not asked
 * for. */
#include "program/program.h"
#include <math.h>

/* From `good` (u8, 1 where an element is fine): how many are not, and the first of them, i32 [1] each. */
typedef struct found { hd_value count, first; } found;
static found look(hd_program *p, hd_value good, hd_shape row) {
    const hd_value zero = hd_less(p, good, good);
    const hd_value bad = hd_reshape(p, hd_cast(p, hd_equal(p, good, zero), HD_I32), row);
    return (found){ hd_sum(p, bad, 0), hd_argmax(p, bad, 0) };
}

static void watch(hd_program *p, hd_value value, bool infinities) {
    const hdi_node *node = hdi_program_node(p, value);
    const hd_dtype dtype = node->dtype;
    const hd_shape row = { 1, { (int64_t)hd_shape_elements(node->shape) } };
    char name[HDI_WATCH_ROOM];
    const hd_value nought = hd_cast(p, hd_less(p, value, value), dtype);
    const found nan = look(p, hd_equal(p, value, value), row);
    const found all = look(p, hd_less(p, hd_abs(p, value), hd_scale(p, nought, 1, INFINITY)), row);
    const hd_value told[] = { nan.count, all.count, infinities ? all.first : nan.first };
    snprintf(name, sizeof name, HDI_WATCH_NAME "%u", (unsigned)value);
    hdi_program_add_output(p, name, hd_concat(p, told, HDI_COUNT(told), 0));
}

/* Its elements are those of its operand, read as they are. */
static bool passes_on(const hdi_node *node) { return hdi_op_is_view(node->op) && node->op != HDI_OP_PART; }

void hdi_program_watch(hd_program *program, bool infinities) {
    const uint32_t count = program->node_count;
    for (hd_value value = 1; value <= count && !program->error.status; value++) {
        const hdi_node *node = hdi_program_node(program, value);
        if (hdi_dtype_is_float(node->dtype) && !node->overwritten && !passes_on(node))
            watch(program, value, infinities);
    }
}

/* What was told of a value; nothing of one that is not watched. */
static hdi_watched of(const hd_program *program, const hdi_watched *told, hd_value value) {
    const hdi_node *node = hdi_program_node(program, value);
    while (node && passes_on(node)) node = hdi_program_node(program, value = node->operands[0]);
    return node ? told[value - 1] : (hdi_watched){ 0 };
}

/* The first value that holds a NaN that no operand holds, or an infinity where these count; 0: none does. An infinity
 * of an input is the caller's wish. */
static hd_value find_first(const hd_program *program, const hdi_watched *told, bool infinities) {
    for (hd_value value = 1; value <= program->node_count; value++) {
        const hdi_node *node = &program->nodes[value - 1];
        hdi_watched before = { 0 };
        for (uint32_t i = 0; i < node->operand_count; i++) {
            const hdi_watched one = of(program, told, node->operands[i]);
            before.nan += one.nan;
            before.not_finite += one.not_finite;
        }
        const hdi_watched here = told[value - 1];
        if (here.nan > 0 && before.nan == 0) return value;
        if (infinities && here.not_finite > 0 && before.not_finite == 0 && !hdi_op_is_source(node->op)) return value;
    }
    return 0;
}

/* "[1,7]": the place of an element. */
static char *place_text(hd_shape shape, int32_t element, char out[HDI_SHAPE_TEXT]) {
    hd_shape at = { .rank = shape.rank };
    uint64_t rest = (uint64_t)element;
    for (uint32_t axis = shape.rank; axis-- > 0; rest /= (uint64_t)shape.dims[axis])
        at.dims[axis] = (int64_t)(rest % (uint64_t)shape.dims[axis]);
    return hdi_shape_text(at, out);
}

static const char *name_of(const hd_program *program, hd_value value) {
    const char *name = hdi_program_node(program, value)->name;
    for (uint32_t i = 0; i < program->output_count && !name; i++)
        if (program->outputs[i].value == value) name = program->outputs[i].name;
    return name;
}

hd_status hdi_watch_tell(const hd_program *program, const hdi_watched *told, bool infinities, hd_error *error) {
    const hd_value value = find_first(program, told, infinities);
    if (!value) return HD_OK;
    const hdi_node *node = hdi_program_node(program, value);
    const hdi_watched *here = &told[value - 1];
    const char *op = hdi_op_get(node->op).name, *name = name_of(program, value);
    char shape[HDI_SHAPE_TEXT], place[HDI_SHAPE_TEXT];
    snprintf(error->op, sizeof error->op, "%s", op);
    return hdi_fail(error, HD_STATUS_NOT_FINITE,
        "v%u, %s %s%s%s%s%s, is the first to hold a NaN or an infinity that its operands do not: %d NaN and %d "
        "infinities of %llu elements, the first at %s; look at what it is made of", value, op,
        hd_dtype_name(node->dtype), hdi_shape_text(node->shape, shape), name ? " \"" : "", name ? name : "",
        name ? "\"" : "", here->nan, here->not_finite - here->nan,
        (unsigned long long)hd_shape_elements(node->shape), place_text(node->shape, here->first, place));
}
