/* bench_transfer.c: `heddle bench transfer`: bytes between the host and a device, each way. Unpinned, they come from
 * and go to ordinary memory, by hd_buffer_write and hd_buffer_read. Pinned, they lie in memory that the host and the
 * device both see, and the device copies them: a plan of one copy. */
#include "cli/measure.h"
#include <math.h>
#include <stdlib.h>

#define LEAST_BYTES (UINT64_C(1) << 10)
#define MOST_BYTES  (UINT64_C(512) << 20)
enum { WAYS = 4, MOST_SIZES = 64, COLUMNS = 1 + WAYS };

typedef enum direction { UP, UP_PINNED, DOWN, DOWN_PINNED } direction;
static const char *const way_names[WAYS] = { "upload", "upload-pinned", "download", "download-pinned" };

/* Memory of one device, for all sizes. */
typedef struct place {
    const measure_device *on;
    hd_buffer *storage, *upload, *readback;
} place;

/* One size, one way. */
typedef struct transfer {
    place   *place;
    void    *host;
    uint64_t bytes;
    hd_plan *plan; /* pinned ways */
} transfer;

typedef struct transfers {
    uint64_t      sizes[MOST_SIZES];
    size_t        size_count, case_count;
    place         places[MEASURE_MOST_DEVICES];
    void         *host;
    measure_case *cases;    /* by device, size and way */
    transfer     *all;
    char        (*texts)[64];
} transfers;

/* ---- samples ---- */

/* A write returns when the data may be reused; the transfer is done when the device is. */
static hd_status write_plain(void *user) {
    const transfer *t = user;
    const hd_status status = hd_buffer_write(t->place->storage, 0, t->host, t->bytes);
    return status ? status : hd_device_wait(t->place->on->device, 0);
}

static hd_status read_plain(void *user) {
    const transfer *t = user;
    return hd_buffer_read(t->place->storage, 0, t->host, t->bytes);
}

static hd_status copy_pinned(void *user) { return hd_plan_run(((const transfer *)user)->plan, NULL); }

/* ---- making ---- */

static hd_status make_place(place *p, uint64_t bytes) {
    const hd_buffer_desc descs[] = { { .bytes = bytes, .use = HD_BUFFER_STORAGE },
                                     { .bytes = bytes, .use = HD_BUFFER_UPLOAD },
                                     { .bytes = bytes, .use = HD_BUFFER_READBACK } };
    hd_buffer **const buffers[] = { &p->storage, &p->upload, &p->readback };
    hd_status status = HD_OK;
    for (size_t i = 0; i < CLI_COUNT(descs) && !status; i++)
        status = hd_buffer_create(p->on->device, &descs[i], buffers[i]);
    return status;
}

static void end_place(place *p) {
    hd_buffer_destroy(p->storage);
    hd_buffer_destroy(p->upload);
    hd_buffer_destroy(p->readback);
}

static hd_status make_plan(const measure *m, transfer *t, direction way) {
    hd_program *program = hd_program_create(m->session->context);
    if (!program) return HD_STATUS_OUT_OF_HOST_MEMORY;
    hd_output(program, "y", hd_copy(program, hd_input(program, "x", HD_F32, HD_SHAPE((int64_t)(t->bytes / 4)))));
    hd_status status = hd_plan_create(t->place->on->device, program, &(hd_plan_desc){ .alone = 1 }, &t->plan);
    hd_program_destroy(program);
    if (!status) status = hd_plan_bind(t->plan, "x", way == UP_PINNED ? t->place->upload : t->place->storage, 0);
    if (!status) status = hd_plan_bind(t->plan, "y", way == UP_PINNED ? t->place->storage : t->place->readback, 0);
    return status;
}

/* Makes one case, and runs it for the first time. */
static int make_case(measure *m, transfers *all, size_t index, place *p, uint64_t bytes, direction way) {
    static hd_status (*const samples[WAYS])(void *user) = { write_plain, copy_pinned, read_plain, copy_pinned };
    transfer *t = &all->all[index];
    *t = (transfer){ .place = p, .host = all->host, .bytes = bytes };
    table_row row = measure_row(m, p->on);
    snprintf(all->texts[index], sizeof all->texts[index], "bytes=%llu", (unsigned long long)bytes);
    row.op = way_names[way];
    row.type = "f32";
    row.size = all->texts[index];
    row.elements = row.bytes = (double)bytes;
    row.flops = 0;
    row.counted = "transfers";
    row.submissions = 1;
    const uint64_t began = cli_now_ns();
    hd_status status = way == UP_PINNED || way == DOWN_PINNED ? make_plan(m, t, way) : HD_OK;
    if (!status) status = samples[way](t);
    row.first_ns = (double)(cli_now_ns() - began);
    all->cases[index] =
        (measure_case){ .device = p->on, .row = row, .sample = samples[way], .user = t, .failed = status != HD_OK };
    return status ? measure_fail(m, &row) : CLI_OK;
}

static int make_cases(measure *m, transfers *all) {
    int code = CLI_OK;
    const uint64_t most = all->sizes[all->size_count - 1];
    if (measure_fits(m, "the largest size", (double)most, 3 * (double)most)) return CLI_FAILED;
    all->case_count = m->device_count * all->size_count * WAYS;
    all->cases = calloc(all->case_count, sizeof *all->cases);
    all->all = calloc(all->case_count, sizeof *all->all);
    all->texts = calloc(all->case_count, sizeof *all->texts);
    if (all->cases && all->all && all->texts) all->host = malloc(most);
    if (!all->host) return cli_fail(m->command, "no memory is left; give a smaller --max");
    /* ordinary as f32 */
    for (uint64_t i = 0; i < most; i++) ((unsigned char *)all->host)[i] = (unsigned char)(i * 37 >> 4 & 0x3F);
    for (size_t device = 0; device < m->device_count; device++) {
        place *p = &all->places[device];
        const size_t first = device * all->size_count * WAYS;
        p->on = &m->devices[device];
        for (size_t i = 0; i < all->size_count * WAYS; i++)
            all->cases[first + i] = (measure_case){ .row = table_row_empty(), .failed = true };
        if (!measure_is_ended() && make_place(p, most)) {
            code = cli_session_fail(m->session, p->on->info.id);
            continue;
        }
        for (size_t i = 0; i < all->size_count * WAYS && !measure_is_ended(); i++) {
            cli_progress("heddle bench transfer: preparing %zu of %zu", first + i + 1, all->case_count);
            const int made = make_case(m, all, first + i, p, all->sizes[i / WAYS], (direction)(i % WAYS));
            if (made) code = made;
        }
    }
    return code;
}

static void free_all(transfers *all) {
    measure_cases_free(all->cases, all->case_count);
    for (size_t i = 0; i < all->case_count && all->all; i++) hd_plan_destroy(all->all[i].plan);
    for (size_t i = 0; i < CLI_COUNT(all->places); i++) end_place(&all->places[i]);
    free(all->all);
    free(all->texts);
    free(all->host);
}

/* ---- what is printed ---- */

static int print_device(const measure *m, const transfers *all, size_t device) {
    static const char *const heads[COLUMNS] = { "SIZE", "UP", "UP, PINNED", "DOWN", "DOWN, PINNED" };
    cli_cell (*cells)[COLUMNS] = calloc(all->size_count + 1, sizeof *cells), median, rate;
    if (!cells) return cli_fail(m->command, "no memory is left");
    cli_heads(cells[0], heads, COLUMNS);
    for (size_t size = 0; size < all->size_count; size++) {
        cli_bytes(all->sizes[size], cells[size + 1][0]);
        for (size_t way = 0; way < WAYS; way++) {
            const table_row *row = &all->cases[(device * all->size_count + size) * WAYS + way].row;
            if (isnan(row->median_ns)) snprintf(cells[size + 1][1 + way], CLI_CELL, "-");
            else
                snprintf(cells[size + 1][1 + way], CLI_CELL, "%.20s %5.8s", cli_time((uint64_t)row->median_ns, median),
                         measure_rate(row->bytes / row->median_ns, rate));
        }
    }
    cli_print("%s: %s; median, and GB/s\n", measure_device_name(m, &m->devices[device]), m->devices[device].info.name);
    cli_table(cells[0], all->size_count + 1, COLUMNS, (1u << COLUMNS) - 1);
    cli_print("\n");
    free(cells);
    return CLI_OK;
}

static int measure_all(measure *m, transfers *all) {
    const int made = make_cases(m, all);
    if (!all->host) return made; /* no memory */
    const int measured = measure_run(m, all->cases, all->case_count);
    int written = CLI_OK;
    for (size_t i = 0; i < all->case_count && !written; i++)
        if (!isnan(all->cases[i].row.median_ns)) written = measure_write(m, &all->cases[i].row);
    for (size_t device = 0; device < m->device_count && !m->json && !written; device++)
        written = print_device(m, all, device);
    return measured ? measured : written ? written : made;
}

static int run(const cli_args *args) {
    transfers all = { 0 };
    measure m;
    uint64_t least = LEAST_BYTES, most = MOST_BYTES;
    if ((cli_get(args, "--min") && !cli_get_bytes(args, "--min", &least)) ||
        (cli_get(args, "--max") && !cli_get_bytes(args, "--max", &most)))
        return CLI_USAGE;
    for (uint64_t bytes = 4; bytes <= most && bytes <= UINT64_C(1) << 36; bytes *= 2)
        if (bytes >= least) all.sizes[all.size_count++] = bytes;
    if (all.size_count == 0)
        return cli_usage(args->command, "--min and --max leave no size: sizes are powers of two, from 4 bytes");
    int code = measure_begin(args, "transfer", &m);
    if (!code) code = measure_open(args, &m);
    if (!code) code = measure_all(&m, &all);
    free_all(&all);
    return measure_end(&m, code);
}

static const cli_option options[] = {
    { "--min", "BYTES", "the least size; default: 1K" },
    { "--max", "BYTES", "the largest size; default: 512M" },
    MEASURE_OPTIONS,
};

const cli_command cli_bench_transfer = {
    "bench transfer", "measures transfers between host and devices, pinned and not",
    "bench transfer [--min BYTES] [--max BYTES] [options]", NULL, options, CLI_COUNT(options),
    "Pinned memory is seen by the host and the device alike; the device copies it.\n",
    "  heddle bench transfer --max 64M --csv here.csv\n", run,
};
