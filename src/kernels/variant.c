/* variant.c: what a kernel's code paths hang on, as far as they are judged apart; of a library's product, its shape.
 * Pure: all is in the kernel's constants. */
#include "cmds/library.h"
#include "kernels/kernel.h"
#include "kernels/steps.h"
#include <stdio.h>

_Static_assert((int)HDI_MODULE_COUNT <= HDI_CAPS_MODULES, "caps have room for every module");
_Static_assert(HDI_FORM_COUNT <= 64 && HDI_ROW_CROSS_ENTROPY_GRADIENT * 8 + 7 < 64 && (int)HD_DTYPE_COUNT <= 64,
               "a form is a bit of 64");

enum { OPERATION = 8 }; /* forms of reductions and rows: operation * 8 + type */

static bool has_operations(uint32_t module) {
    return module == HDI_MODULE_REDUCE || module == HDI_MODULE_SOFTMAX || module == HDI_MODULE_NORM ||
           module == HDI_MODULE_SCATTER || module == HDI_MODULE_NORM_GRADIENT || module == HDI_MODULE_NORM_SUMS;
}

hdi_variant hdi_variant_of(const hdi_kernel *kernel) {
    const uint32_t *spec = kernel->spec;
    hdi_variant variant = { .module = kernel->module, .exact = spec[HDI_SPEC_EXACT] != 0 };
    switch (kernel->module) {
    case HDI_MODULE_ELEMENTWISE:
        for (uint32_t i = 0; i < spec[HDI_SPEC_CHAIN] && i < HDI_CHAIN_STEPS; i++)
            variant.forms |= UINT64_C(1) << (spec[HDI_SPEC_STEP + i] & 63u);
        break;
    case HDI_MODULE_REDUCE: case HDI_MODULE_SOFTMAX: case HDI_MODULE_NORM: case HDI_MODULE_SCATTER:
    case HDI_MODULE_NORM_GRADIENT: case HDI_MODULE_NORM_SUMS:
        variant.forms = UINT64_C(1) << ((spec[HDI_ROW_OP] * OPERATION + spec[HDI_ROW_TYPE]) & 63u);
        break;
    case HDI_MODULE_GATHER: case HDI_MODULE_WRITE_ROWS: case HDI_MODULE_ROPE: case HDI_MODULE_CUMSUM:
    case HDI_MODULE_TOP_K: case HDI_MODULE_TRANSPOSE: case HDI_MODULE_ROPE_SUBGROUP:
        variant.forms = UINT64_C(1) << (spec[HDI_SPEC_FAMILY] & 63u);
        break;
    case HDI_MODULE_RANDOM: case HDI_MODULE_HASH: variant.forms = UINT64_C(1) << HDI_TYPE_I32; break;
    case HDI_MODULE_SPLIT_FLOATS: variant.forms = UINT64_C(1) << HDI_TYPE_F32; break;
    default: variant.forms = UINT64_C(1) << (spec[HDI_SPEC_FAMILY + 1] & 63u); /* of B, of keys and values */
    }
    return variant;
}

static uint32_t first_form(hdi_variant variant) {
    uint32_t form = 0;
    while (form < 63 && !(variant.forms >> form & 1)) form++;
    return form;
}

hd_dtype hdi_variant_type(hdi_variant variant) {
    const uint32_t form = first_form(variant);
    if (variant.module == HDI_MODULE_ELEMENTWISE) return HD_DTYPE_NONE;
    return (hd_dtype)(has_operations(variant.module) ? form % OPERATION : form);
}

/* The operation whose step has the code; NULL: there is none. */
static const char *name_of_code(uint32_t code) {
    static const hdi_attrs none;
    for (uint32_t op = 1; op < HDI_OP_COUNT; op++) {
        hdi_step step;
        float attrs[2];
        uint32_t attr_count;
        if (hdi_op_step((hdi_op)op, &none, &step, attrs, &attr_count) && step.code == code)
            return hdi_op_get((hdi_op)op).name;
    }
    return NULL;
}
/* A form is the code of a step, or more than one by HDI_FORM_I32. */
static const char *step_name(uint32_t form) {
    const bool casts = form >= HDI_FORM_F32_TO_I32 && form <= HDI_FORM_I32_TO_U8;
    const char *name = name_of_code(casts ? HDI_STEP_CAST : form);
    if (!name) name = name_of_code(form % HDI_FORM_I32);
    return name ? name : "?";
}

static const char *form_name(hdi_variant variant) {
    static const char *const reductions[] = { "sum", "mean", "max", "min", "argmax", "dot", "prod" };
    static const char *const scatters[] = { "add", "mul", "max", "min" };
    static const char *const rows[] = { "softmax", "log_softmax", "cross_entropy", "rms_norm", "layer_norm",
                                        "cross_entropy_gradient" };
    const uint32_t form = first_form(variant);
    if (variant.module == HDI_MODULE_ELEMENTWISE) return step_name(form);
    if (!has_operations(variant.module)) return "";
    const char *const *names = variant.module == HDI_MODULE_REDUCE    ? reductions
                               : variant.module == HDI_MODULE_SCATTER ? scatters
                                                                      : rows;
    const size_t count = variant.module == HDI_MODULE_REDUCE ? HDI_COUNT(reductions) :
                         variant.module == HDI_MODULE_SCATTER ? HDI_COUNT(scatters) : HDI_COUNT(rows);
    return form / OPERATION < count ? names[form / OPERATION] : "?";
}

char *hdi_variant_text(hdi_variant variant, char *out) {
    const hdi_module *module = hdi_module_get(variant.module);
    const uint32_t form = first_form(variant);
    const bool step = variant.module == HDI_MODULE_ELEMENTWISE;
    const bool whole = form >= HDI_FORM_I32 && form != HDI_STEP_GELU_TANH_GRADIENT &&
                       form != HDI_STEP_ROUND_RANDOM;
    const char *name = form_name(variant), *kind = whole ? "integers" : "floats";
    const char *type = step ? kind : hd_dtype_name(hdi_variant_type(variant));
    snprintf(out, HDI_VARIANT_TEXT, "%s %s%s%s, %s", module ? module->name : "?", name, name[0] ? " " : "", type,
             variant.exact ? "exact" : "fast");
    return out;
}

/* ---- products of the device's library ---- */

static uint64_t shape_number(const uint64_t sizes[4]) {
    const uint64_t number = hdi_hash(HDI_HASH_START, sizes, 4 * sizeof *sizes);
    return number ? number : 1;
}

uint64_t hdi_product_shape(const hdi_kernel *kernel) {
    const uint32_t *spec = kernel->spec;
    return shape_number(
        (const uint64_t[4]){ spec[HDI_PRODUCT_M], spec[HDI_PRODUCT_N], spec[HDI_PRODUCT_K], spec[HDI_PRODUCT_BATCH] });
}

bool hdi_product_is_refused(const hdi_caps *caps, const uint64_t sizes[4]) {
    const uint64_t shape = shape_number(sizes);
    for (uint32_t i = 0; i < HDI_CAPS_REFUSED; i++)
        if (caps->refused[i] == shape) return true;
    return false;
}
