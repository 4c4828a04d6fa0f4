/* stress.c: `heddle stress`: work whose result is known, again and again, for as long as it is asked for: what a device
 * gets wrong once in a while, what it loses, and how its speed and its memory change. The work is exact: its bits were
 * computed on the CPU. */
#include "cli/stress.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILURES = 10 }; /* in a row: the device will not come back */
#define SECOND UINT64_C(1000000000)

/* ---- the work ---- */

/* A product, a norm, a softmax, and a product with weights of 8 bits, over [n,n]. */
static hd_program *program_of(hd_context *context, int64_t n) {
    hd_program *p = hd_program_create(context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(n, n)), w = hd_input(p, "w", HD_F32, HD_SHAPE(n, n));
    const hd_value q = hd_input(p, "q", HD_Q8_0, HD_SHAPE(n, n));
    const hd_value h = hd_rms_norm(p, hd_matmul(p, x, w), 0, 1e-5f);
    hd_output(p, "y", hd_matmul_with(p, hd_add(p, hd_softmax(p, h, 1), hd_silu(p, h)), q, HD_TRANSPOSE_B));
    return p;
}

static hd_status make_plan(hd_context *context, hd_device *device, const stress *s, hd_plan **out_plan) {
    hd_program *p = program_of(context, (int64_t)s->size);
    hd_status status = hd_plan_create(device, p, &(hd_plan_desc){ .math = HD_MATH_EXACT, .alone = 1 }, out_plan);
    if (!status) status = hd_plan_write(*out_plan, "w", s->w, s->tensor_bytes);
    if (!status) status = hd_plan_write(*out_plan, "q", s->q, s->quantised_bytes);
    hd_program_destroy(p);
    return status;
}

static hd_status run_plan(hd_plan *plan, const stress *s, uint32_t input, float *out_y) {
    hd_status status = hd_plan_write(plan, "x", s->x + input * s->elements, s->tensor_bytes);
    if (!status) status = hd_plan_run(plan, NULL);
    return status ? status : hd_plan_read(plan, "y", out_y, s->tensor_bytes);
}

/* What the CPU says of each input, in a context of its own: back ends that are left out, and faults, are the device's
 * matter. */
static int compute_answers(stress *s) {
    hd_context *context = NULL;
    hd_device *cpu = NULL;
    hd_plan *plan = NULL;
    hd_status status =
        hd_context_create(&(hd_context_desc){ .backend = "cpu", .device = "cpu", .faults = "" }, &context);
    if (!status) status = hd_device_open(context, NULL, &cpu);
    if (!status) status = make_plan(context, cpu, s, &plan);
    for (uint32_t i = 0; i < STRESS_INPUTS && !status; i++) status = run_plan(plan, s, i, s->answers + i * s->elements);
    const char *why = context ? hd_context_error(context) : hd_status_text(status);
    const int code = status ? cli_fail(s->session.command, "the answers, on the CPU: %s", why) : CLI_OK;
    hd_context_destroy(context);
    return code;
}

/* Numbers from -1 to 1. */
static void fill(float *out, uint64_t count, uint32_t *chance) {
    for (uint64_t i = 0; i < count; i++) {
        *chance = *chance * 1664525u + 1013904223u;
        out[i] = (float)(*chance >> 8) / 8388608.0f - 1;
    }
}

static bool make_data(stress *s) {
    uint32_t chance = 1;
    s->elements = s->size * s->size;
    s->tensor_bytes = s->elements * sizeof(float);
    s->quantised_bytes = hd_tensor_bytes(HD_Q8_0, HD_SHAPE((int64_t)s->size, (int64_t)s->size));
    s->x = malloc(STRESS_INPUTS * s->tensor_bytes);
    s->answers = malloc(STRESS_INPUTS * s->tensor_bytes);
    s->w = malloc(s->tensor_bytes);
    s->y = malloc(s->tensor_bytes);
    s->q = malloc(s->quantised_bytes);
    s->pattern = malloc(STRESS_BLOCK);
    s->read = malloc(STRESS_BLOCK);
    if (!s->x || !s->answers || !s->w || !s->y || !s->q || !s->pattern || !s->read) return false;
    fill(s->x, STRESS_INPUTS * s->elements, &chance);
    fill(s->w, s->elements, &chance);
    if (hd_quantize(HD_Q8_0, s->w, s->elements, s->q)) return false;
    fill(s->w, s->elements, &chance);
    return true;
}

static void free_data(stress *s) {
    void *const all[] = { s->x, s->answers, s->w, s->y, s->q, s->pattern, s->read };
    for (size_t i = 0; i < CLI_COUNT(all); i++) free(all[i]);
}

/* ---- the device ---- */

static void end_device(stress *s) {
    for (uint32_t i = 0; i < s->block_count; i++) hd_buffer_destroy(s->blocks[i]);
    memset(s->blocks, 0, sizeof s->blocks);
    hd_plan_destroy(s->plan);
    hd_device_close(s->session.device);
    s->session.device = NULL;
    s->plan = NULL;
}

/* Bytes that differ from block to block and from time to time. */
static void fill_pattern(stress *s, uint32_t block) {
    uint64_t word = (uint64_t)block << 32 | s->ages[block];
    for (uint64_t i = 0; i < STRESS_BLOCK / sizeof word; i++) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        s->pattern[i] = word;
    }
}

static hd_status write_block(stress *s, uint32_t block) {
    s->ages[block]++;
    fill_pattern(s, block);
    return hd_buffer_write(s->blocks[block], 0, s->pattern, STRESS_BLOCK);
}

static hd_status begin_device(stress *s, const char *id) {
    hd_status status = s->session.device ? HD_OK
                       : hd_device_open(s->session.context, &(hd_device_desc){ .id = id }, &s->session.device);
    if (!status) status = make_plan(s->session.context, s->session.device, s, &s->plan);
    for (uint32_t i = 0; i < s->block_count && !status; i++) {
        status = hd_buffer_create(s->session.device, &(hd_buffer_desc){ .bytes = STRESS_BLOCK, .label = "pattern" },
                                  &s->blocks[i]);
        if (!status) status = write_block(s, i);
    }
    return status;
}

/* ---- rounds ---- */

/* One run of the work, and one block of the memory. */
static hd_status do_round(stress *s) {
    const uint32_t input = (uint32_t)(s->now.runs % STRESS_INPUTS);
    hd_status status = run_plan(s->plan, s, input, s->y);
    if (status) return status;
    s->now.runs++;
    s->now.wrong += memcmp(s->y, s->answers + input * s->elements, s->tensor_bytes) != 0;
    if (s->block_count == 0) return HD_OK;
    const uint32_t block = (uint32_t)(s->now.runs % s->block_count);
    status = hd_buffer_read(s->blocks[block], 0, s->read, STRESS_BLOCK);
    if (status) return status;
    fill_pattern(s, block);
    s->now.blocks++;
    s->now.wrong_blocks += memcmp(s->read, s->pattern, STRESS_BLOCK) != 0;
    return write_block(s, block);
}

static void tell_failure(stress *s, const char *when, uint64_t runs) {
    s->session.held[0] = 0; /* the log's words for the same */
    cli_note("heddle stress: %s %llu runs: %s\n", when, (unsigned long long)runs, hd_context_error(s->session.context));
}

/* After a failure: what was lost is opened anew. False: there is no sense in going on. */
static bool go_on(stress *s, hd_status status, uint32_t failed_in_a_row) {
    char id[48];
    snprintf(id, sizeof id, "%s", s->id);
    tell_failure(s, "after", s->now.runs);
    s->now.losses += status == HD_STATUS_DEVICE_LOST;
    s->now.errors += status != HD_STATUS_DEVICE_LOST;
    if (failed_in_a_row >= MOST_FAILURES) return false;
    if (status != HD_STATUS_DEVICE_LOST) return true;
    end_device(s);
    status = begin_device(s, id);
    if (status) tell_failure(s, "it does not open again after", s->now.runs);
    return status == HD_OK;
}

static void look(stress *s, stress_part *part, uint64_t now_ns) {
    hd_device_stats stats = { 0 };
    const machine_reading reading = machine_read(&s->sensor);
    hd_device_get_stats(s->session.device, &stats);
    *part = s->now;
    part->at_ns = now_ns - s->began_ns;
    part->device_bytes = stats.device_bytes;
    part->clock_mhz = reading.clock_mhz;
    part->temperature_c = reading.temperature_c;
}

static int run_rounds(stress *s) {
    uint64_t next_ns = 0;
    uint32_t failed_in_a_row = 0;
    int code = CLI_OK;
    s->began_ns = cli_now_ns();
    for (uint64_t now_ns = s->began_ns; !code; now_ns = cli_now_ns()) {
        const uint64_t gone_ns = now_ns - s->began_ns;
        const bool ended = gone_ns >= s->most_ns || system_interrupts_count();
        const uint64_t each_ns = s->most_ns / STRESS_PARTS;
        while (s->part_count < STRESS_PARTS && gone_ns >= each_ns * (s->part_count + 1))
            look(s, &s->parts[s->part_count++], now_ns);
        if (gone_ns >= next_ns || ended) {
            cli_progress("heddle stress: %.0f of %.0f s, %llu runs, %llu wrong", (double)gone_ns / 1e9,
                         (double)s->most_ns / 1e9, (unsigned long long)s->now.runs,
                         (unsigned long long)(s->now.wrong + s->now.wrong_blocks));
            next_ns = gone_ns + SECOND;
            if (s->metrics_path) code = cli_metrics_save(&s->session, s->metrics_path);
        }
        if (ended) break;
        const hd_status status = do_round(s);
        failed_in_a_row = status ? failed_in_a_row + 1 : 0;
        if (status && !go_on(s, status, failed_in_a_row)) break;
    }
    cli_progress_end();
    look(s, &s->last, cli_now_ns());
    return code;
}

/* ---- the command ---- */

static int begin(const cli_args *args, stress *s) {
    double seconds;
    uint64_t memory;
    if (!cli_get_fraction(args, "--seconds", 0.1, 1e7, 60, &seconds) ||
        !cli_get_number(args, "--size", 32, 8192, 512, &s->size) || !cli_get_bytes(args, "--memory", &memory))
        return CLI_USAGE;
    if (s->size % 32) return cli_usage(args->command, "--size is a multiple of 32");
    if (!cli_get(args, "--memory")) memory = UINT64_C(64) << 20;
    if (memory / STRESS_BLOCK > STRESS_BLOCKS)
        return cli_usage(args->command, "--memory is at most %u GiB", (unsigned)(STRESS_BLOCKS * STRESS_BLOCK >> 30));
    s->block_count = (uint32_t)(memory / STRESS_BLOCK);
    s->most_ns = (uint64_t)(seconds * 1e9);
    s->metrics_path = cli_get(args, "--metrics");
    int code = cli_session_open(args->command, &s->session);
    if (!code) code = cli_session_device(&s->session, cli_get(args, "--device"));
    if (code) return code;
    const hd_device_info info = *hd_device_get_info(s->session.device);
    snprintf(s->id, sizeof s->id, "%s", info.id);
    snprintf(s->name, sizeof s->name, "%s", info.name);
    machine_open(&s->machine, NULL);
    s->sensor = machine_sensor_of(&s->machine, &info);
    if (!make_data(s)) return cli_fail(args->command, "no memory is left; choose a smaller --size");
    cli_progress("heddle stress: the answers are computed");
    code = compute_answers(s);
    return code ? code : begin_device(s, s->id) ? cli_session_fail(&s->session, NULL) : CLI_OK;
}

static int run_stress(const cli_args *args) {
    stress *s = calloc(1, sizeof *s);
    if (!s) return cli_fail(args->command, "no memory is left");
    int code = begin(args, s);
    system_interrupts_catch(true);
    if (!code) code = run_rounds(s);
    cli_progress_end();
    if (!code) code = stress_report(s, cli_get(args, "--json") != NULL);
    end_device(s);
    free_data(s);
    machine_close(&s->machine);
    cli_session_close(&s->session);
    free(s);
    return code;
}

static const cli_option options[] = {
    CLI_OPTION_DEVICE,
    { "--seconds", "S", "how long; default: 60" },
    { "--size", "N", "the work is over matrices of N times N, a multiple of 32; default: 512" },
    { "--memory", "BYTES", "memory of the device that is filled with patterns and read again; default: 64M" },
    CLI_OPTION_METRICS,
    CLI_OPTION_JSON,
};

const cli_command cli_stress = {
    "stress", "runs work with known results for a time, and tells of errors, losses and drift",
    "stress [--device ID] [--seconds S] [options]", NULL, options, CLI_COUNT(options),
    "Every run is compared bit by bit with the CPU's. A device that is lost is opened anew. --metrics is\n"
    "written every second. Ctrl-C ends it with the report.\n"
    "The exit code is 1 where something was wrong, failed or was lost, or where memory was left behind.\n",
    "  heddle stress --device vulkan --seconds 3600\n", run_stress,
};
