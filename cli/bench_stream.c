/* bench_stream.c: `heddle bench stream`: batches through one plan, their inputs up and their outputs down, one after
 * the other and several under way (hd_stream). From ordinary memory, or pinned: in buffers that the host and the device
 * both see. */
#include "cli/measure.h"
#include "cli/trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 2048, MOST_DEPTH = 8, MOST_WAYS = 1 + 2 * MOST_DEPTH, COLUMNS = 6, SWEEP_COLUMNS = 5 };
#define DEFAULT_BYTES (UINT64_C(32) << 20)

/* By the plan's own calls, or through a stream of a depth, from ordinary memory or from what the device sees too. */
typedef enum way_memory { PLAN, HOST, PINNED } way_memory;
typedef struct way {
    way_memory memory;
    uint32_t   depth;
} way;

/* One device. */
typedef struct place {
    const measure_device *on;
    hd_plan   *plan;
    hd_buffer *in[MOST_DEPTH], *out[MOST_DEPTH];
} place;

/* One way on it. */
typedef struct passage {
    place     *place;
    hd_stream *stream;           /* NULL: hd_plan_write, hd_plan_run and hd_plan_read */
    bool       is_pinned;
    uint32_t   depth, batches;
    uint64_t   bytes;
    float     *in[MOST_DEPTH], *out[MOST_DEPTH]; /* what the host sees of the sets */
    hd_ticket *tickets[MOST_DEPTH];
    uint64_t   digest;           /* of the outputs of all batches, as checked */
} passage;

typedef struct bench {
    const char   *op, *trace_path;
    uint64_t      bytes, depth, batches;
    bool          sweeps;
    way           ways[MOST_WAYS]; /* the plan's; then of each memory depth 1 and the last, or all up to it */
    size_t        way_count, depths; /* depths of a memory */
    float        *in[MOST_DEPTH], *out[MOST_DEPTH]; /* ordinary memory */
    place         places[MEASURE_MOST_DEVICES];
    passage      *passages; /* by device and way */
    measure_case *cases;    /* likewise */
    char        (*texts)[80];
    trace         trace;
} bench;

/* ---- batches ---- */

static hd_status submit(passage *p, uint32_t set) {
    const bool pinned = p->is_pinned;
    const hd_stream_input in = { .name = "x", .data = pinned ? NULL : p->in[set],
                                 .buffer = pinned ? p->place->in[set] : NULL, .bytes = p->bytes };
    const hd_stream_output out = { .name = "y", .data = pinned ? NULL : p->out[set],
                                   .buffer = pinned ? p->place->out[set] : NULL, .bytes = p->bytes };
    return hd_stream_submit(p->stream, &in, 1, &out, 1, &p->tickets[set]);
}

/* Waits for the batch in the set, if there is one. */
static hd_status await(passage *p, uint32_t set) {
    const hd_status status = p->tickets[set] ? hd_ticket_wait(p->tickets[set], 0) : HD_OK;
    hd_ticket_destroy(p->tickets[set]);
    p->tickets[set] = NULL;
    return status;
}

static hd_status run_plan(passage *p) {
    hd_status status = hd_plan_write(p->place->plan, "x", p->in[0], p->bytes);
    if (!status) status = hd_plan_run(p->place->plan, NULL);
    return status ? status : hd_plan_read(p->place->plan, "y", p->out[0], p->bytes);
}

/* One sample: all batches, the last one's outputs there. */
static hd_status sample(void *user) {
    passage *p = user;
    hd_status status = HD_OK;
    for (uint32_t batch = 0; batch < p->batches && !status && !measure_is_ended(); batch++) {
        const uint32_t set = batch % p->depth;
        if (!p->stream) status = run_plan(p);
        else if (!(status = await(p, set))) status = submit(p, set);
    }
    for (uint32_t set = 0; set < p->depth; set++) {
        const hd_status ended = await(p, set);
        if (!status) status = ended;
    }
    return status;
}

/* Each batch begins with its own numbers. */
static void mark(float *in, uint32_t batch) {
    for (uint32_t i = 0; i < WIDTH; i++) in[i] = (float)((batch * 31 + i) % 64);
}

static void digest(passage *p, uint32_t set) {
    uint64_t word, hash = p->digest;
    for (uint64_t at = 0; at + sizeof word <= p->bytes; at += sizeof word) {
        memcpy(&word, (const char *)p->out[set] + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    p->digest = hash;
}

/* Batches that differ, and a digest of all their outputs in order. */
static hd_status check(passage *p) {
    const uint32_t batches = 2 * MOST_DEPTH + 1;
    hd_status status = HD_OK;
    p->digest = UINT64_C(0xcbf29ce484222325);
    for (uint32_t batch = 0; batch < batches + p->depth && !status && !measure_is_ended(); batch++) {
        const uint32_t set = batch % p->depth;
        const bool held = p->tickets[set] != NULL;
        status = await(p, set);
        if (!status && held) digest(p, set);
        if (status || batch >= batches) continue;
        mark(p->in[set], batch);
        status = p->stream ? submit(p, set) : run_plan(p);
        if (!status && !p->stream) digest(p, set);
    }
    return status;
}

/* ---- making ---- */

/* y of x [rows, WIDTH]: x itself, x + b, or x times w. */
static hd_status make_plan(const measure *m, const bench *b, place *p) {
    hd_program *program = hd_program_create(m->session->context);
    if (!program) return HD_STATUS_OUT_OF_HOST_MEMORY;
    const bool multiplies = strcmp(b->op, "matmul") == 0, adds = strcmp(b->op, "vecadd") == 0;
    const hd_shape rows = HD_SHAPE((int64_t)(b->bytes / (4 * WIDTH)), WIDTH), square = HD_SHAPE(WIDTH, WIDTH);
    const hd_value x = hd_input(program, "x", HD_F32, rows);
    const hd_value w = multiplies || adds ? hd_input(program, "w", HD_F32, multiplies ? square : HD_SHAPE(WIDTH)) : 0;
    hd_output(program, "y", multiplies ? hd_matmul(program, x, w) : adds ? hd_add(program, x, w) : hd_copy(program, x));
    hd_status status = hd_plan_create(p->on->device, program, &(hd_plan_desc){ .alone = 1 }, &p->plan);
    hd_program_destroy(program);
    if (status || !w) return status;
    const size_t count = multiplies ? (size_t)WIDTH * WIDTH : WIDTH;
    float *values = malloc(count * sizeof *values);
    if (!values) return HD_STATUS_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) values[i] = (float)(i * 7 % 13) - 6.0f;
    status = hd_plan_write(p->plan, "w", values, count * sizeof *values);
    free(values);
    return status;
}

static hd_status make_place(const measure *m, const bench *b, place *p) {
    hd_status status = make_plan(m, b, p);
    for (uint32_t i = 0; i < b->depth && !status; i++) {
        void *seen;
        status =
            hd_buffer_create(p->on->device, &(hd_buffer_desc){ .bytes = b->bytes, .use = HD_BUFFER_UPLOAD }, &p->in[i]);
        if (!status)
            status = hd_buffer_create(p->on->device, &(hd_buffer_desc){ .bytes = b->bytes, .use = HD_BUFFER_READBACK },
                                      &p->out[i]);
        if (!status) status = hd_buffer_map(p->in[i], &seen);
        if (!status) memcpy(seen, b->in[i], b->bytes);
    }
    return status;
}

static hd_status make_passage(const bench *b, place *at, way w, passage *p) {
    *p = (passage){ .place = at, .is_pinned = w.memory == PINNED, .depth = w.depth, .batches = (uint32_t)b->batches,
                    .bytes = b->bytes };
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < p->depth && !status; i++) {
        void *in = b->in[i], *out = b->out[i];
        if (p->is_pinned) status = hd_buffer_map(at->in[i], &in);
        if (p->is_pinned && !status) status = hd_buffer_map(at->out[i], &out);
        p->in[i] = in;
        p->out[i] = out;
    }
    if (!status && w.memory != PLAN)
        status = hd_stream_create(at->plan, &(hd_stream_desc){ .depth = p->depth }, &p->stream);
    return status;
}

/* Makes one case, runs it for the first time, and checks its outputs. */
static int make_case(measure *m, bench *b, size_t index, place *at, way w) {
    passage *p = &b->passages[index];
    table_row row = measure_row(m, at->on);
    const uint64_t began = cli_now_ns();
    hd_status status = make_passage(b, at, w, p);
    if (!status) status = sample(p);
    row.first_ns = (double)(cli_now_ns() - began);
    if (!status) status = check(p);
    snprintf(b->texts[index], sizeof b->texts[index], "bytes=%llu memory=%s depth=%u", (unsigned long long)b->bytes,
             w.memory == PLAN ? "plan" : p->is_pinned ? "pinned" : "host", p->depth);
    row.op = b->op;
    row.type = "f32";
    row.size = b->texts[index];
    row.elements = (double)b->batches * (double)b->bytes / 4;
    row.bytes = 2 * (double)b->batches * (double)b->bytes;
    row.flops = strcmp(b->op, "matmul") == 0   ? row.elements * 2 * WIDTH
                : strcmp(b->op, "vecadd") == 0 ? row.elements
                                               : 0;
    row.counted = "transfers";
    row.submissions = (double)b->batches;
    b->cases[index] =
        (measure_case){ .device = at->on, .row = row, .sample = sample, .user = p, .failed = status != HD_OK };
    return status ? measure_fail(m, &row) : CLI_OK;
}

/* Every way must give the outputs of the first one. */
static int compare(const measure *m, const bench *b, size_t first) {
    for (size_t w = 1; w < b->way_count && !measure_is_ended(); w++)
        if (!b->cases[first].failed && !b->cases[first + w].failed &&
            b->passages[first + w].digest != b->passages[first].digest)
            return cli_fail(m->command, "%s: %s: the outputs are not those of runs one after the other",
                            b->passages[first].place->on->info.id, b->texts[first + w]);
    return CLI_OK;
}

static int make_cases(measure *m, bench *b) {
    int code = CLI_OK;
    const double sets = (double)b->depth * (double)b->bytes;
    if (measure_fits(m, "the batches", 2 * sets, 4 * sets)) return CLI_FAILED;
    b->passages = calloc(m->device_count * b->way_count, sizeof *b->passages);
    b->cases = calloc(m->device_count * b->way_count, sizeof *b->cases);
    b->texts = calloc(m->device_count * b->way_count, sizeof *b->texts);
    bool room = b->passages && b->cases && b->texts;
    for (uint32_t i = 0; i < b->depth && room; i++)
        room = (b->in[i] = malloc(b->bytes)) && (b->out[i] = malloc(b->bytes));
    if (!room) return cli_fail(m->command, "no memory is left; give a smaller --bytes");
    for (uint32_t i = 0; i < b->depth; i++)
        for (uint64_t k = 0; k < b->bytes / 4; k++) b->in[i][k] = (float)(k % 61);
    for (size_t device = 0; device < m->device_count; device++) {
        place *p = &b->places[device];
        p->on = &m->devices[device];
        const bool ended = measure_is_ended(), made = !ended && !make_place(m, b, p);
        if (!made && !ended) code = cli_session_fail(m->session, p->on->info.id);
        for (size_t w = 0; w < b->way_count; w++) {
            const size_t index = device * b->way_count + w;
            cli_progress("heddle bench stream: preparing %zu of %zu", index + 1, m->device_count * b->way_count);
            if (!made || measure_is_ended())
                b->cases[index] = (measure_case){ .row = table_row_empty(), .failed = true };
            else if (make_case(m, b, index, p, b->ways[w])) code = CLI_FAILED;
        }
        if (compare(m, b, device * b->way_count)) code = CLI_FAILED;
    }
    return code;
}

static void free_all(const measure *m, bench *b) {
    trace_free(&b->trace);
    if (b->cases) measure_cases_free(b->cases, m->device_count * b->way_count);
    for (size_t i = 0; i < m->device_count * b->way_count && b->passages; i++) hd_stream_destroy(b->passages[i].stream);
    for (size_t device = 0; device < m->device_count; device++) {
        hd_plan_destroy(b->places[device].plan);
        for (size_t i = 0; i < MOST_DEPTH; i++) {
            hd_buffer_destroy(b->places[device].in[i]);
            hd_buffer_destroy(b->places[device].out[i]);
        }
    }
    for (size_t i = 0; i < MOST_DEPTH; i++) {
        free(b->in[i]);
        free(b->out[i]);
    }
    free(b->passages);
    free(b->texts);
}

/* ---- what is printed ---- */

static void print_way(const bench *b, size_t one, size_t many, const char *name, cli_cell *cells) {
    const table_row *first = &b->cases[one].row, *second = &b->cases[many].row;
    cli_cell rate;
    snprintf(cells[0], CLI_CELL, "%s", name);
    snprintf(cells[1], CLI_CELL, "-");
    if (!isnan(first->median_ns)) cli_time((uint64_t)(first->median_ns / (double)b->batches), cells[1]);
    for (size_t i = 2; i < COLUMNS; i++) snprintf(cells[i], CLI_CELL, "-");
    if (one == many || isnan(first->median_ns) || isnan(second->median_ns)) return;
    cli_time((uint64_t)(second->median_ns / (double)b->batches), cells[2]);
    snprintf(cells[3], CLI_CELL, "%.2fx", first->median_ns / second->median_ns);
    measure_rate(second->bytes / second->median_ns, rate);
    snprintf(cells[4], CLI_CELL, "%.20s", rate);
    snprintf(cells[5], CLI_CELL, "%.0f%%", 100 * (second->p90_ns - second->min_ns) / second->median_ns);
}

/* A row for each depth: the time of a batch, and what it gains over depth 1. */
static void print_depths(const bench *b, size_t first) {
    cli_cell cells[1 + MOST_DEPTH][SWEEP_COLUMNS];
    static const char *const heads[SWEEP_COLUMNS] = { "DEPTH", "HOST", "GAIN", "PINNED", "GAIN" };
    cli_heads(cells[0], heads, SWEEP_COLUMNS);
    for (size_t d = 0; d < b->depths; d++) {
        cli_cell *row = cells[1 + d];
        snprintf(row[0], CLI_CELL, "%u", b->ways[1 + d].depth);
        for (size_t memory = 0; memory < 2; memory++) {
            const measure_case *cases = &b->cases[first + 1 + memory * b->depths];
            const table_row *one = &cases[0].row, *deep = &cases[d].row;
            snprintf(row[1 + 2 * memory], CLI_CELL, "-");
            snprintf(row[2 + 2 * memory], CLI_CELL, "-");
            if (isnan(one->median_ns) || isnan(deep->median_ns)) continue;
            cli_time((uint64_t)(deep->median_ns / (double)b->batches), row[1 + 2 * memory]);
            snprintf(row[2 + 2 * memory], CLI_CELL, "%.2fx", one->median_ns / deep->median_ns);
        }
    }
    cli_table(cells[0], 1 + b->depths, SWEEP_COLUMNS, (1u << SWEEP_COLUMNS) - 1);
    cli_print("\n");
}

static void print_device(const measure *m, const bench *b, size_t device) {
    cli_cell cells[4][COLUMNS], bytes;
    static const char *const heads[COLUMNS] = { "MEMORY", "ONE", "OVERLAPPED", "GAIN", "GB/S", "SPREAD" };
    const size_t first = device * b->way_count;
    cli_heads(cells[0], heads, COLUMNS);
    print_way(b, first, first, "plan", cells[1]);
    print_way(b, first + 1, first + b->depths, "host", cells[2]);
    print_way(b, first + 1 + b->depths, first + 2 * b->depths, "pinned", cells[3]);
    cli_print("%s: %s; a batch of %s, depth %llu, %s\n", measure_device_name(m, &m->devices[device]), b->op,
           cli_bytes(b->bytes, bytes), (unsigned long long)b->depth,
           m->devices[device].info.queues > 1 ? "3 queues" : "1 queue");
    cli_table(cells[0], 4, COLUMNS, (1u << COLUMNS) - 2);
    cli_print("\n");
    if (b->sweeps) print_depths(b, first);
}

/* Watched are one sample of depth 1 and one of the other: pinned, as nothing else is in the way. */
static int watch(measure *m, bench *b) {
    hd_status status = HD_OK;
    for (size_t device = 0; device < m->device_count && !status; device++) {
        const size_t first = device * b->way_count + 1 + b->depths, last = first + b->depths - 1;
        if (b->cases[last].failed) continue;
        status = trace_watch(&b->trace, m->devices[device].device);
        if (!status) status = sample(&b->passages[first]);
        if (!status) status = sample(&b->passages[last]);
    }
    return status ? cli_session_fail(m->session, "trace") : trace_write(&b->trace, m->command, b->trace_path);
}

static int measure_all(measure *m, bench *b) {
    const int made = make_cases(m, b);
    if (!b->in[0]) return made;
    const int measured = measure_run(m, b->cases, m->device_count * b->way_count);
    int written = CLI_OK;
    for (size_t i = 0; i < m->device_count * b->way_count && !written; i++)
        if (!isnan(b->cases[i].row.median_ns)) written = measure_write(m, &b->cases[i].row);
    for (size_t device = 0; device < m->device_count && !m->json; device++) print_device(m, b, device);
    const int watched = b->trace_path && !measured ? watch(m, b) : CLI_OK;
    return measured ? measured : written ? written : made ? made : watched;
}

static void list_ways(bench *b) {
    b->ways[b->way_count++] = (way){ PLAN, 1 };
    for (int memory = HOST; memory <= PINNED; memory++)
        for (uint32_t depth = 1; depth <= b->depth; depth++)
            if (b->sweeps || depth == 1 || depth == b->depth)
                b->ways[b->way_count++] = (way){ (way_memory)memory, depth };
    b->depths = (b->way_count - 1) / 2;
}

static int run(const cli_args *args) {
    static const char *const ops[] = { "copy", "vecadd", "matmul" };
    bench b = { .op = ops[0], .trace_path = cli_get(args, "--trace"), .bytes = DEFAULT_BYTES };
    measure m = { 0 };
    const char *op = cli_get(args, "--op");
    if (cli_get(args, "--bytes") && !cli_get_bytes(args, "--bytes", &b.bytes)) return CLI_USAGE;
    if (!cli_get_number(args, "--depth", 1, MOST_DEPTH, 3, &b.depth) ||
        !cli_get_number(args, "--batches", 1, 10000, 16, &b.batches))
        return CLI_USAGE;
    b.bytes -= b.bytes % (4 * WIDTH);
    if (b.bytes == 0 || b.bytes > UINT64_C(1) << 32)
        return cli_usage(args->command, "--bytes is 8K to 4G: batches are whole rows of %d f32", WIDTH);
    for (size_t i = 0; i < CLI_COUNT(ops) && op; i++)
        if (strcmp(op, ops[i]) == 0) b.op = ops[i], op = NULL;
    if (op) return cli_usage(args->command, "--op is copy, vecadd or matmul, not \"%s\"", op);
    b.sweeps = cli_get(args, "--sweep") != NULL;
    list_ways(&b);
    int code = measure_begin(args, "stream", &m);
    if (!code) code = measure_open(args, &m);
    if (!code) code = measure_all(&m, &b);
    free_all(&m, &b);
    return measure_end(&m, code);
}

static const cli_option options[] = {
    { "--depth", "N", "batches under way at once, 1 to 8; default: 3" },
    { "--sweep", NULL, "every depth up to that one, in a table" },
    { "--bytes", "BYTES", "of one batch, each way; default: 32M" },
    { "--batches", "N", "in one sample; default: 16" },
    { "--op", "NAME", "copy, vecadd (a resident row is added) or matmul (by a resident 2048 x 2048); default: copy" },
    CLI_OPTION_TRACE,
    MEASURE_OPTIONS,
};

const cli_command cli_bench_stream = {
    "bench stream", "measures batches one after the other and overlapped",
    "bench stream [--depth N] [--sweep] [--bytes BYTES] [--op NAME] [options]", NULL, options, CLI_COUNT(options),
    "Times are of one batch: its input up, its run, its output down. plan: by hd_plan_write, run and\n"
    "read; host and pinned: by a stream, from ordinary memory and from buffers that the host sees.\n",
    "  heddle bench stream --devices vulkan --trace stream.json\n", run,
};
