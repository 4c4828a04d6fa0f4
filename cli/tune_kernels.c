/* tune_kernels.c: `heddle tune`, its first half: programs of one kind of kernel in the types and sizes of language
 * models, from which the library finds the fastest of the kernel's options on each device (hd_device_calibrate). */
#include "cli/tune.h"
#include <stdlib.h>
#include <string.h>

enum { FEW_ROWS = 8, SHAPES = 2, MOST_COPIES = 64, COPIES = 8, COLUMNS = 5, HEADS = 32, KEY_HEADS = 8, HEAD = 128,
       PAGE = 256, NAME = 24 };
#define LARGE_WEIGHTS (1 << 22)            /* elements of a matrix from which on the queries' is no larger */
#define SPREAD_BYTES  (160u << 20)         /* of inputs in a program: more than caches keep from run to run */
#define SPREAD_HOST   (8u << 20)           /* the same on a processor, where they take their time */
#define QUICK_NS      UINT64_C(40000000)   /* programs that are predicted to take longer are left out */
#define LONG_NS       UINT64_C(400000000)

/* ---- programs ---- */

/* Rows, and two sizes: columns and depth of weights, heads' keys, or the length of a row. */
typedef struct shape { int64_t rows, n, k; } shape;

static hd_value input(hd_program *p, const char *name, size_t copy, const char *range, hd_dtype type, hd_shape of) {
    char text[2 * NAME];
    snprintf(text, sizeof text, "%s%zu %s", name, copy, range);
    return hd_input(p, text, type, of);
}

static void output(hd_program *p, const char *name, size_t copy, hd_value value) {
    char text[2 * NAME];
    snprintf(text, sizeof text, "%s%zu", name, copy);
    hd_output(p, text, value);
}

static hd_value build_product(hd_program *p, size_t copy, hd_dtype type, shape s) {
    const hd_value x = input(p, "x", copy, "-1 1", HD_F32, HD_SHAPE(s.rows, s.k));
    return hd_matmul_with(p, x, input(p, "w", copy, "-1 1", type, HD_SHAPE(s.n, s.k)), HD_TRANSPOSE_B);
}
/* The beginning of a feed-forward layer: normalised rows times two matrices. */
static hd_value build_merged(hd_program *p, size_t copy, hd_dtype type, shape s) {
    const hd_value x = input(p, "x", copy, "-1 1", HD_F32, HD_SHAPE(s.rows, s.k));
    const hd_value weight = input(p, "g", copy, "0.5 1.5", HD_F32, HD_SHAPE(s.k));
    const hd_value rows = hd_rms_norm(p, x, weight, 1e-6f);
    const hd_value gate =
        hd_matmul_with(p, rows, input(p, "v", copy, "-0.05 0.05", type, HD_SHAPE(s.n, s.k)), HD_TRANSPOSE_B);
    const hd_value up =
        hd_matmul_with(p, rows, input(p, "w", copy, "-0.05 0.05", type, HD_SHAPE(s.n, s.k)), HD_TRANSPOSE_B);
    return hd_mul(p, hd_silu(p, gate), up);
}
/* The beginning of an attention layer: three products of the same rows, which run side by side, where the one by the
 * queries' matrix is the larger one in small models. What is the fastest alone can be the slower one in such
 * company. */
static hd_value build_beside(hd_program *p, size_t copy, hd_dtype type, shape s, bool normed) {
    const int64_t queries = s.n * s.k < LARGE_WEIGHTS ? HEADS / KEY_HEADS * s.n : s.n;
    hd_value x = input(p, "x", copy, "-1 1", HD_F32, HD_SHAPE(s.rows, s.k));
    if (normed) x = hd_rms_norm(p, x, input(p, "g", copy, "0.5 1.5", HD_F32, HD_SHAPE(s.k)), 1e-6f);
    const hd_value key = hd_matmul_with(p, x, input(p, "v", copy, "-1 1", type, HD_SHAPE(s.n, s.k)), HD_TRANSPOSE_B);
    const hd_value value = hd_matmul_with(p, x, input(p, "w", copy, "-1 1", type, HD_SHAPE(s.n, s.k)), HD_TRANSPOSE_B);
    const hd_value query =
        hd_matmul_with(p, x, input(p, "q", copy, "-1 1", type, HD_SHAPE(queries, s.k)), HD_TRANSPOSE_B);
    output(p, "key", copy, key);
    output(p, "value", copy, value);
    return query;
}
static hd_value build_products(hd_program *p, size_t copy, hd_dtype type, shape s) {
    return build_beside(p, copy, type, s, false);
}
static hd_value build_normed_products(hd_program *p, size_t copy, hd_dtype type, shape s) {
    return build_beside(p, copy, type, s, true);
}

/* As a model of language asks for it: keys and values in pages of a pool, of which an answer's token has filled more
 * than half, and a prompt's tokens begin to fill the rest. */
static hd_value build_attention(hd_program *p, size_t copy, hd_dtype type, shape s) {
    const hd_shape pool = HD_SHAPE(s.n / PAGE, PAGE, KEY_HEADS, HEAD);
    const int64_t room = s.n - s.rows, filled = s.rows <= FEW_ROWS ? 3 * s.n / 4 : s.n / 4,
                  stands = filled < room ? filled : room;
    char past[NAME], pages[NAME];
    snprintf(past, sizeof past, "%d %d", (int)stands, (int)stands);
    snprintf(pages, sizeof pages, "0 %d", (int)(s.n / PAGE - 1));
    const hd_value q = input(p, "q", copy, "-1 1", HD_F32, HD_SHAPE(s.rows, HEADS, HEAD)),
                   k = input(p, "k", copy, "-1 1", type, pool);
    const hd_attention_desc desc = { .pages = input(p, "t", copy, pages, HD_I32, HD_SHAPE(s.n / PAGE)) };
    return hd_attention(p, q, k, input(p, "v", copy, "-1 1", type, pool),
                        input(p, "p", copy, past, HD_I32, HD_SHAPE(1)), &desc);
}
static hd_value build_elementwise(hd_program *p, size_t copy, hd_dtype type, shape s) {
    const hd_shape all = HD_SHAPE(s.rows, s.n);
    return hd_add(p, input(p, "x", copy, "-1 1", type, all), input(p, "y", copy, "-1 1", type, all));
}
static hd_value build_reduce(hd_program *p, size_t copy, hd_dtype type, shape s) {
    return hd_sum(p, input(p, "x", copy, "0 1", type, HD_SHAPE(s.rows, s.n)), -1);
}
static hd_value build_softmax(hd_program *p, size_t copy, hd_dtype type, shape s) {
    return hd_softmax(p, input(p, "x", copy, "-4 4", type, HD_SHAPE(s.rows, s.n)), -1);
}
static hd_value build_norm(hd_program *p, size_t copy, hd_dtype type, shape s) {
    const hd_value x = input(p, "x", copy, "-4 4", type, HD_SHAPE(s.rows, s.n));
    return hd_rms_norm(p, x, input(p, "g", copy, "0.5 1.5", type, HD_SHAPE(s.n)), 1e-6f);
}

/* ---- what is measured ---- */

/* Adds one piece of work to the program; its result. */
typedef hd_value (*build_fn)(hd_program *p, size_t copy, hd_dtype type, shape s);

/* Kernels of one kind in all these types, rows and sizes; the two shapes of a size are of one class, and few rows of
 * the second one are measured in company, where there is some. --quick takes the quick ones, and the first shape of the
 * second size. */
typedef struct group {
    const char *kernel;
    build_fn    build, beside;
    hd_dtype    types[6], quick_types[2];
    int64_t     rows[7], quick_rows[2];
    struct { int64_t n, k; } sizes[3][SHAPES];
} group;

#define WEIGHTS { HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_Q6_K, HD_F16, HD_F32 }
#define WEIGHT_SIZES { { { 1024, 1024 }, { 1024, 2560 } }, { { 2048, 2048 }, { 4096, 2560 } }, \
                       { { 4096, 4096 }, { 2560, 9728 } } }
#define ROW_SIZES { { { 512, 1 }, { 768, 1 } }, { { 2048, 1 }, { 2560, 1 } }, { { 4096, 1 }, { 12288, 1 } } }
static const group groups[] = {
    { "matvec", build_product, build_products, WEIGHTS, { HD_Q4_0, HD_F16 }, { 1, 2, 4, 8 }, { 1, 8 }, WEIGHT_SIZES },
    { "merged", build_merged, build_normed_products, { HD_Q4_0, HD_Q8_0, HD_Q4_K, HD_F16 }, { HD_Q4_0 }, { 1, 8 },
      { 1 }, WEIGHT_SIZES },
    { "matmul", build_product, NULL, WEIGHTS, { HD_Q4_0, HD_F16 }, { 16, 64, 128, 256, 512 }, { 64 }, WEIGHT_SIZES },
    { "attention", build_attention, NULL, { HD_F16, HD_F32 }, { HD_F16 }, { 1, 8, 64, 512 }, { 1 },
      { { { 512, 1 }, { 768, 1 } }, { { 1024, 1 }, { 2048, 1 } }, { { 4096, 1 }, { 6144, 1 } } } },
    { "elementwise", build_elementwise, NULL, { HD_F32, HD_F16 }, { HD_F32 }, { 1 }, { 1 },
      { { { 4096, 1 }, { 12288, 1 } }, { { 1 << 18, 1 }, { 655360, 1 } }, { { 1 << 22, 1 }, { 10485760, 1 } } } },
    { "reduce", build_reduce, NULL, { HD_F32 }, { HD_F32 }, { 1, 16, 64, 1024 }, { 64 }, ROW_SIZES },
    { "softmax", build_softmax, NULL, { HD_F32 }, { HD_F32 }, { 1, 16, 64, 1024 }, { 64 }, ROW_SIZES },
    { "norm", build_norm, NULL, { HD_F32 }, { HD_F32 }, { 1, 16, 64, 1024 }, { 64 }, ROW_SIZES },
};

static bool is_asked(const char *list, const char *name) {
    char item[NAME];
    size_t at = 0;
    while (list && cli_next_item(list, &at, item, sizeof item))
        if (strcmp(item, name) == 0 || strcmp(item, "all") == 0) return true;
    return !list;
}

static int check_names(const measure *m, const char *list) {
    char item[NAME];
    size_t at = 0;
    while (list && cli_next_item(list, &at, item, sizeof item)) {
        bool known = strcmp(item, "all") == 0;
        for (size_t i = 0; i < CLI_COUNT(groups); i++) known = known || strcmp(groups[i].kernel, item) == 0;
        if (!known) return cli_usage(m->command, "no kernels are called %s", item);
    }
    return CLI_OK;
}

static uint64_t input_bytes(const hd_program *program) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < hd_program_port_count(program); i++) {
        const hd_port port = hd_program_port(program, i);
        if (port.kind == HD_PORT_INPUT) bytes += hd_tensor_bytes(port.dtype, port.shape);
    }
    return bytes;
}

/* Operations side by side, until their inputs are more than caches hold: in a layer each finds its own where the layers
 * before have left it, in the device's memory. Of many rows, which read theirs again and again, there are few. NULL
 * where the device would take too long. */
static hd_program *make_program(measure *m, const measure_device *device, build_fn build, hd_dtype type, shape s,
                                uint64_t most_ns) {
    const bool host = device->info.kind == HD_DEVICE_CPU || device->info.kind == HD_DEVICE_SOFTWARE;
    const uint64_t spread = host ? SPREAD_HOST : SPREAD_BYTES;
    const size_t most = s.rows > FEW_ROWS ? COPIES : MOST_COPIES;
    hd_program *program = hd_program_create(m->session->context);
    uint64_t ns = 0;
    for (size_t i = 0;
         i < most && program && (i == 0 || (input_bytes(program) < spread && !(host && s.rows > FEW_ROWS))); i++) {
        output(program, "out", i, build(program, i, type, s));
    }
    if (program && !hd_device_predict(device->device, program, &ns, NULL) && ns <= most_ns) return program;
    hd_program_destroy(program);
    cli_session_forget(m->session);
    return NULL;
}

/* ---- measuring ---- */

/* What was found on a device. */
typedef struct findings {
    measure *m;
    const measure_device *device;
    bool quick;
    hd_kernel_choice *items;
    size_t count;
} findings;

static int keep(findings *f, const hd_kernel_choice *choice) {
    hd_kernel_choice *more = realloc(f->items, (f->count + 1) * sizeof *more);
    if (!more) return cli_fail(f->m->command, "no memory is left");
    f->items = more;
    more[f->count++] = *choice;
    return CLI_OK;
}

/* Is it about this class, rather than about the device or the library? */
static bool is_passed_over(hd_status status) {
    return status == HD_STATUS_UNSUPPORTED || status == HD_STATUS_OUT_OF_DEVICE_MEMORY ||
           status == HD_STATUS_INVALID_ARGUMENT || status == HD_STATUS_MODULE;
}

static void take_choice(void *user, const hd_fact *fact) { *(hd_kernel_choice *)user = fact->choice; }

/* One class. What the device cannot compute, or has no memory for, is passed over. */
static int measure_class(findings *f, const group *g, hd_dtype type, int64_t rows, size_t size) {
    hd_program *programs[SHAPES];
    size_t count = 0;
    hd_kernel_choice choice = { .options = 0 };
    for (size_t i = 0; i < SHAPES; i++) {
        const size_t nth = f->quick ? 0 : i;
        const bool company = i > 0 && g->beside && rows <= FEW_ROWS;
        if (f->quick && i > 0 && !company) break;
        const shape s = { rows, g->sizes[size][nth].n, g->sizes[size][nth].k };
        programs[count] = make_program(f->m, f->device, company ? g->beside : g->build, type, s,
                                       f->quick ? QUICK_NS : LONG_NS);
        if (programs[count]) count++;
    }
    const hd_calibrate_desc desc = { .kinds = HD_FACT_CHOICE, .programs = (const hd_program *const *)programs,
                                     .program_count = count,
                                     .rounds = (uint32_t)f->m->samples, .report = take_choice, .user = &choice };
    const hd_status status = count ? hd_device_calibrate(f->device->device, &desc) : HD_OK;
    for (size_t i = 0; i < count; i++) hd_program_destroy(programs[i]);
    if (is_passed_over(status)) {
        cli_session_forget(f->m->session);
        return CLI_OK;
    }
    if (status) return cli_session_fail(f->m->session, g->kernel);
    return choice.options > 1 ? keep(f, &choice) : CLI_OK;
}

static int measure_group(findings *f, const group *g) {
    const hd_dtype *types = f->quick ? g->quick_types : g->types;
    const int64_t *rows = f->quick ? g->quick_rows : g->rows;
    const size_t type_room = f->quick ? CLI_COUNT(g->quick_types) : CLI_COUNT(g->types);
    const size_t row_room = f->quick ? CLI_COUNT(g->quick_rows) : CLI_COUNT(g->rows);
    int code = CLI_OK;
    for (size_t t = 0; t < type_room && types[t] != HD_DTYPE_NONE; t++)
        for (size_t r = 0; r < row_room && rows[r] > 0; r++)
            for (size_t i = f->quick; i < (f->quick ? 2 : CLI_COUNT(g->sizes)) && !code && !measure_is_ended(); i++)
                code = measure_class(f, g, types[t], rows[r], i);
    return code;
}

static void print_findings(const findings *f, bool list) {
    cli_cell (*cells)[COLUMNS] = calloc(f->count + 1, sizeof *cells);
    static const char *const heads[COLUMNS] = { "KERNELS", "OPTIONS", "USUAL", "CHOSEN", "GAIN" };
    size_t rows = 1, faster = 0;
    if (cells) cli_heads(cells[0], heads, COLUMNS);
    for (size_t i = 0; i < f->count && cells; i++) {
        const hd_kernel_choice *choice = &f->items[i];
        const bool changed = strcmp(choice->standard, choice->chosen) != 0;
        faster += changed;
        if (!changed && !list) continue;
        snprintf(cells[rows][0], CLI_CELL, "%s", choice->work);
        snprintf(cells[rows][1], CLI_CELL, "%u", (unsigned)choice->options);
        snprintf(cells[rows][2], CLI_CELL, "%s", choice->standard);
        snprintf(cells[rows][3], CLI_CELL, "%s", choice->chosen);
        snprintf(cells[rows++][4], CLI_CELL, "%.2fx", choice->gain);
    }
    cli_print("%s: %zu classes of kernels, in %zu of them another one is the fastest\n",
           measure_device_name(f->m, f->device), f->count, faster);
    if (cells && rows > 1) cli_table(cells[0], rows, COLUMNS, 0x12u);
    free(cells);
}

int tune_kernels(measure *m, const char *kernels, bool quick, bool list) {
    int code = check_names(m, kernels);
    for (size_t d = 0; d < m->device_count && !code; d++) {
        findings f = { .m = m, .device = &m->devices[d], .quick = quick };
        for (size_t g = 0; g < CLI_COUNT(groups) && !code; g++) {
            const bool has_none = f.device->info.kind == HD_DEVICE_CPU && groups[g].build == build_merged;
            if (!is_asked(kernels, groups[g].kernel) || has_none || measure_is_ended()) continue;
            cli_progress("heddle tune: kernels of %s on %s", groups[g].kernel, f.device->info.name);
            code = measure_group(&f, &groups[g]);
        }
        if (!code) print_findings(&f, list);
        free(f.items);
    }
    return !code && measure_is_ended() ? measure_end_early(m) : code;
}
