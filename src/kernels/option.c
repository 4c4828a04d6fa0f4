/* option.c: the table of options, and which of them a request takes. Pure. */
#include "kernels/cpu/matmul_native.h"
#include "kernels/kernel.h"
#include <stdio.h>

/* ---- the table ---- */

/* An id is never used again for something else; files that hold ids say of which table they are (its digest). Of a
 * module's rows that are equally good by its rules, these take the first. */
#define OPTION(number, code, ...) { .id = (number), .module = HDI_MODULE_##code, __VA_ARGS__ }
#define DOT(id, s, c, k) OPTION(id, MATVEC_DOT, .subgroups = (s), .tile_n = (c), .keys = (k))
#define DOTS(id, s) \
    DOT(id, s, 1, 1), DOT(id + 1, s, 1, 2), DOT(id + 2, s, 1, 3), DOT(id + 3, s, 1, 5), DOT(id + 4, s, 1, 8), \
    DOT(id + 5, s, 2, 1), DOT(id + 6, s, 2, 2), DOT(id + 7, s, 2, 3), DOT(id + 8, s, 2, 5), DOT(id + 9, s, 4, 1)
#define DEALT(id, s) OPTION(id, MATVEC_DOT, .subgroups = (s), .tile_m = 1)
#define UNITS(id, s, c) OPTION(id, MATVEC_MATRIX, .subgroups = (s), .tile_n = (c))
#define SUBGROUP(id, w, c) OPTION(id, MATVEC_SUBGROUP, .workgroup = (w), .tile_n = (c))
#define PARTS(id, m, n, pm, pn, r, b, k) \
    OPTION(id, MATMUL_MATRIX, .tile_m = (m), .tile_n = (n), .part_m = (pm), .part_n = (pn), .rate = (r), \
           .beside = (b), .parts = (k), .by_rules = (k) == 3 || (k) > 4)
#define MATRIX(id, m, n, pm, pn, r, b) \
    PARTS(id, m, n, pm, pn, r, b, 1), PARTS(id + 1, m, n, pm, pn, r, b, 2), PARTS(id + 2, m, n, pm, pn, r, b, 3), \
    PARTS(id + 3, m, n, pm, pn, r, b, 4)
#define SMALL(id, m, n, pm, pn, r, b) \
    MATRIX(id, m, n, pm, pn, r, b), PARTS(id + 4, m, n, pm, pn, r, b, 6), PARTS(id + 5, m, n, pm, pn, r, b, 8)
#define TENSOR(id, m, n) OPTION(id, MATMUL_TENSOR, .tile_m = (m), .tile_n = (n), .workgroup = 256)
#define VECTOR(id, w, c) OPTION(id, MATVEC, .workgroup = (w), .tile_n = (c))
#define NATIVE_VECTOR(id, c, rule) OPTION(id, MATVEC, .native = 1, .by_rules = (rule), .workgroup = 1, .tile_n = (c))
#define AMX(id, c) OPTION(id, MATMUL_AMX, .native = 1, .tile_n = (c))
#define INT8(id, c) OPTION(id, MATMUL_INT8, .native = 1, .tile_n = (c))
#define TILE(id, t, p, w) \
    OPTION(id, MATMUL_TILED, .tile_m = (t), .tile_n = (t), .part_m = (p), .part_n = (p), .workgroup = (w))
#define NATIVE_TILE(id, m, n, r) OPTION(id, MATMUL_TILED, .native = 1, .by_rules = (r), .tile_m = (m), .tile_n = (n))
#define CODES(id, m, n, pm, pn, w) \
    OPTION(id, MATMUL_CODES_DOT, .tile_m = (m), .tile_n = (n), .part_m = (pm), .part_n = (pn), .workgroup = (w)), \
    OPTION(id + 1, MATMUL_CODES, .tile_m = (m), .tile_n = (n), .part_m = (pm), .part_n = (pn), .workgroup = (w))
#define CODES_MATRIX(id, m, n, pm, pn) \
    OPTION(id, MATMUL_CODES_MATRIX, .tile_m = (m), .tile_n = (n), .part_m = (pm), .part_n = (pn))
#define NATIVE_CODES(id, n) OPTION(id, MATMUL_CODES, .native = 1, .tile_m = HDCPU_CODES_ROWS, .tile_n = (n))
#define PARTED(id, g, k) OPTION(id, ATTENTION_SUBGROUP, .groups = (g), .keys = (k))
#define QUERIES(id, rows) OPTION(id, ATTENTION, .tile_m = (rows))
#define WIDTH(id, code, w) OPTION(id, code, .workgroup = (w))
#define NATIVE_WIDTH(id, code, w) OPTION(id, code, .native = 1, .workgroup = (w))

static const hdi_kernel_option table[] = {
    /* subgroups of a workgroup; with each, columns of a lane and runs that it reads at once */
    DOTS(601, 4), DOTS(611, 8), DOTS(621, 16),
    /* likewise, where the runs of the columns are dealt out to the lanes */
    DEALT(635, 4), DEALT(636, 5), DEALT(637, 6), DEALT(638, 8),
    /* subgroups of a workgroup, columns of a pass */
    UNITS(641, 16, 64), UNITS(642, 16, 32), UNITS(643, 16, 16), UNITS(644, 8, 64), UNITS(645, 8, 32), UNITS(646, 8, 16),
    /* width and columns of a workgroup */
    SUBGROUP(111, 64, 2), SUBGROUP(112, 64, 4), SUBGROUP(113, 128, 2), SUBGROUP(114, 128, 4), SUBGROUP(115, 256, 2),
    SUBGROUP(116, 256, 4),
    OPTION(120, MATMUL_LIBRARY, .native = 0),
    /* tile of a workgroup, of a subgroup; how much of the largest ones' rate one alone reaches, and what another one
     * beside it adds, in percent (of an H200 through Vulkan, 16 to 256 rows). Each with 1 to 4 parts of K, small ones
     * with 6 and 8 too. The chunks of 8 halves of a tile are a multiple of its invocations. */
    MATRIX(131, 128, 160, 32, 80, 100, 100), MATRIX(135, 128, 128, 64, 32, 100, 100),
    MATRIX(139, 128, 80, 32, 80, 70, 100), MATRIX(143, 64, 128, 32, 32, 65, 80), SMALL(651, 64, 64, 32, 32, 48, 55),
    SMALL(661, 32, 64, 16, 32, 28, 42), SMALL(671, 32, 32, 16, 16, 17, 28), SMALL(681, 16, 64, 16, 16, 13, 20),
    /* tile of a workgroup */
    TENSOR(161, 128, 256), TENSOR(162, 128, 128), TENSOR(163, 64, 64),
    /* width and columns of a workgroup */
    VECTOR(171, 64, 2), VECTOR(172, 64, 4), VECTOR(173, 64, 8), VECTOR(174, 128, 4), VECTOR(175, 128, 8),
    VECTOR(176, 128, 32), VECTOR(177, 256, 8), VECTOR(178, 256, 32), VECTOR(179, 256, 64),
    /* columns at once; 1: only the rules take it */
    NATIVE_VECTOR(181, 32, 0), NATIVE_VECTOR(182, 64, 0), NATIVE_VECTOR(183, 96, 1), NATIVE_VECTOR(184, 128, 0),
    NATIVE_VECTOR(185, 160, 1), NATIVE_VECTOR(186, 192, 1), NATIVE_VECTOR(187, 224, 1), NATIVE_VECTOR(188, 256, 0),
    AMX(191, 256), AMX(192, 128), AMX(193, 64), AMX(194, 32),
    INT8(195, 192), INT8(196, 96), INT8(197, 48), INT8(198, 24),
    /* tile of a workgroup, of an invocation; width of the workgroup */
    TILE(201, 128, 8, 256), TILE(202, 64, 4, 256), TILE(203, 32, 4, 64), TILE(204, 16, 2, 64),
    /* tile of a workgroup, from large to small; 1: only the rules take it */
    NATIVE_TILE(211, 192, 512, 0), NATIVE_TILE(212, 192, 256, 0), NATIVE_TILE(213, 96, 512, 0),
    NATIVE_TILE(214, 96, 256, 0), NATIVE_TILE(215, 96, 128, 1), NATIVE_TILE(216, 48, 256, 0),
    NATIVE_TILE(217, 48, 128, 0), NATIVE_TILE(218, 48, 64, 1), NATIVE_TILE(219, 24, 128, 0),
    NATIVE_TILE(220, 24, 64, 0),
    /* tile of a workgroup, of an invocation; width of the workgroup */
    CODES(231, 128, 64, 8, 4, 256), CODES(233, 64, 64, 4, 4, 256), CODES(235, 32, 32, 2, 4, 128),
        CODES(237, 16, 16, 2, 2, 64),
    CODES(239, 8, 32, 2, 2, 64),
    /* tile of a workgroup, of a subgroup */
    CODES_MATRIX(252, 64, 64, 32, 32), CODES_MATRIX(253, 32, 64, 16, 32),
    NATIVE_CODES(241, 256), NATIVE_CODES(242, 128), NATIVE_CODES(243, 64), NATIVE_CODES(244, 32),
    OPTION(301, ATTENTION_MATRIX, .native = 0),
    OPTION(302, ATTENTION_TILED, .native = 0),
    /* query rows of a workgroup */
    OPTION(303, ATTENTION_TENSOR, .tile_m = 128), OPTION(304, ATTENTION_TENSOR, .tile_m = 64),
    /* workgroups for a unit of the device, keys that an invocation reads at once */
    PARTED(311, 1, 1), PARTED(312, 1, 2), PARTED(313, 2, 1), PARTED(314, 2, 2), PARTED(315, 4, 1), PARTED(316, 4, 2),
    PARTED(317, 8, 2),
    /* query rows of a workgroup */
    QUERIES(321, 1), QUERIES(322, 2), QUERIES(323, 4), QUERIES(324, 8), QUERIES(325, 16), QUERIES(326, 32),
    /* width of a workgroup */
    WIDTH(401, ELEMENTWISE, 64), WIDTH(402, ELEMENTWISE, 128), WIDTH(403, ELEMENTWISE, 256),
    WIDTH(404, ELEMENTWISE, 512), NATIVE_WIDTH(411, ELEMENTWISE, 1024), NATIVE_WIDTH(412, ELEMENTWISE, 4096),
    NATIVE_WIDTH(413, ELEMENTWISE, 16384),
    WIDTH(500, REDUCE, 32), WIDTH(501, REDUCE, 64), WIDTH(502, REDUCE, 128), WIDTH(503, REDUCE, 256),
    WIDTH(510, SOFTMAX, 32), WIDTH(511, SOFTMAX, 64), WIDTH(512, SOFTMAX, 128), WIDTH(513, SOFTMAX, 256),
    WIDTH(520, NORM, 32), WIDTH(521, NORM, 64), WIDTH(522, NORM, 128), WIDTH(523, NORM, 256),
};

const hdi_kernel_option *hdi_kernel_option_get(uint32_t id) {
    for (uint32_t i = 0; i < HDI_COUNT(table); i++)
        if (table[i].id == id) return &table[i];
    return NULL;
}

const hdi_kernel_option *hdi_kernel_option_next(hdi_module_id module, const hdi_kernel_option *after) {
    for (const hdi_kernel_option *o = after ? after + 1 : table; o < table + HDI_COUNT(table); o++)
        if (o->module == module) return o;
    return NULL;
}

uint32_t hdi_kernel_options_digest(void) { return (uint32_t)hdi_hash(HDI_HASH_START, table, sizeof table); }

static void add_number(char *out, const char *before, uint32_t number) {
    const size_t used = strlen(out);
    if (number > 0) snprintf(out + used, HDI_KERNEL_OPTION_TEXT - used, "%s%u", used > 0 ? before : before + 1, number);
}

char *hdi_kernel_option_text(const hdi_kernel_option *o, char out[HDI_KERNEL_OPTION_TEXT]) {
    static const char *const names[HDI_MODULE_COUNT] = {
        [HDI_MODULE_MATVEC_DOT] = "dot", [HDI_MODULE_MATVEC_MATRIX] = "dot_matrix",
        [HDI_MODULE_MATVEC_SUBGROUP] = "subgroup", [HDI_MODULE_MATVEC] = "vector",
        [HDI_MODULE_MATMUL_LIBRARY] = "library", [HDI_MODULE_MATMUL_MATRIX] = "matrix",
        [HDI_MODULE_MATMUL_TENSOR] = "tensor", [HDI_MODULE_MATMUL_CODES] = "codes",
        [HDI_MODULE_MATMUL_CODES_DOT] = "codes_dot",
        [HDI_MODULE_MATMUL_CODES_MATRIX] = "codes_matrix", [HDI_MODULE_MATMUL_AMX] = "amx",
        [HDI_MODULE_MATMUL_INT8] = "int8",
        [HDI_MODULE_MATMUL_TILED] = "tiled", [HDI_MODULE_ATTENTION_MATRIX] = "matrix",
        [HDI_MODULE_ATTENTION_SUBGROUP] = "parts", [HDI_MODULE_ATTENTION] = "rows",
        [HDI_MODULE_ATTENTION_TILED] = "tiles",
        [HDI_MODULE_ATTENTION_TENSOR] = "tensor" };
    snprintf(out, HDI_KERNEL_OPTION_TEXT, "%s", names[o->module] ? names[o->module] : "");
    add_number(out, "_s", o->subgroups);
    if (o->tile_m == 0) add_number(out, "_w", o->workgroup);
    add_number(out, "_", o->tile_m);
    add_number(out, o->tile_m > 0 ? "x" : "_c", o->tile_n);
    add_number(out, "_g", o->groups);
    add_number(out, "_k", o->parts);
    add_number(out, "_k", o->keys);
    return out;
}

/* ---- the choice among them ---- */

/* The options of a class, made where it is new; NULL where there is no room. */
static hdi_class_options *options_of(hdi_offer *offer, hdi_class of) {
    for (uint32_t i = 0; i < offer->count; i++)
        if (hdi_class_equal(offer->items[i].of, of)) return &offer->items[i];
    if (offer->count == HDI_COUNT(offer->items)) return NULL;
    hdi_class_options *class = &offer->items[offer->count++];
    *class = (hdi_class_options){ .of = of };
    return class;
}

static void add(hdi_class_options *class, const hdi_kernel_option *option) {
    for (uint32_t i = 0; i < class->count; i++)
        if (class->options[i] == option) return;
    if (class->count < HDI_COUNT(class->options)) class->options[class->count++] = option;
}

const hdi_kernel_option *hdi_kernel_option_choose(const hdi_request *request, hdi_class of,
                                                  const hdi_kernel_option *own, hdi_kernel_option_fits fits,
                                                  const void *user, hdi_offer *offer) {
    const hdi_choices *choices = &request->caps->choices;
    if (request->math == HD_MATH_EXACT) return own;
    const uint32_t id = hdi_choices_find(choices, of);
    const bool known = id && choices->table == hdi_kernel_options_digest();
    const hdi_kernel_option *chosen = known ? hdi_kernel_option_get(id) : NULL;
    hdi_class_options *class = offer && own ? options_of(offer, of) : NULL;
    if (class) add(class, own);
    for (uint32_t i = 0; class && i < HDI_COUNT(table); i++)
        if (fits(user, &table[i])) add(class, &table[i]);
    return chosen && chosen != own && fits(user, chosen) ? chosen : own;
}

typedef struct widths {
    uint32_t module, native, most;
} widths;

static bool width_fits(const void *user, const hdi_kernel_option *option) {
    const widths *w = user;
    return option->module == w->module && option->native == w->native && option->workgroup <= w->most;
}

const hdi_kernel_option *hdi_kernel_width_choose(const hdi_request *request, hdi_class of, hdi_module_id module,
                                                 uint32_t usual, uint32_t most, hdi_offer *offer) {
    const widths w = { module, request->caps->native_kernels != 0, most };
    const hdi_kernel_option *own = NULL;
    while ((own = hdi_kernel_option_next(module, own)) && (own->workgroup != usual || own->native != w.native)) {}
    const hdi_kernel_option *option = hdi_kernel_option_choose(request, of, own, width_fits, &w, offer);
    return option == own ? NULL : option;
}
