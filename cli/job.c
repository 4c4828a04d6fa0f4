/* job.c: carries a program out: its files are checked first, then the device is opened, and everything that goes up,
 * runs and comes back passes here once. What was measured is printed by report.c. */
#include "cli/receipt.h"
#include "cli/trace.h"
#include <stdlib.h>
#include <string.h>

int cli_job_begin(cli_session *session, const cli_args *args, hd_program *program, cli_job *out_job) {
    *out_job = (cli_job){ .session = session, .program = program, .json = cli_get(args, "--json") != NULL,
                          .timings = cli_get(args, "--timings") != NULL,
                          .held = cli_get(args, "--held") != NULL,
                          .trace_path = cli_get(args, "--trace") };
    if (!cli_get_number(args, "--repeat", 1, 1000000, 1, &out_job->repeat)) return CLI_USAGE;
    out_job->port_count = hd_program_port_count(program);
    out_job->ports = calloc(out_job->port_count + 1, sizeof *out_job->ports);
    out_job->run_ns = calloc((size_t)out_job->repeat, sizeof *out_job->run_ns);
    if (!out_job->ports || !out_job->run_ns) return cli_fail(session->command, "no memory is left");
    for (size_t i = 0; i < out_job->port_count; i++) out_job->ports[i].port = hd_program_port(program, i);
    return CLI_OK;
}

void cli_job_end(cli_job *job) {
    for (size_t i = 0; job->ports && i < job->port_count; i++) npy_free(&job->ports[i].array);
    free(job->ports);
    free(job->run_ns);
    hd_plan_destroy(job->plan);
    hd_program_destroy(job->program);
    *job = (cli_job){ 0 };
}

/* ---- types in files ---- */

typedef struct file_type {
    char     kind;
    uint32_t item_bytes;
} file_type;

/* What a tensor is in a file: .npy has no bf16 and no blocks, so these are raw 16-bit words and raw bytes. */
static file_type file_type_of(hd_dtype dtype) {
    switch (dtype) {
    case HD_F32: return (file_type){ 'f', 4 };
    case HD_F16: return (file_type){ 'f', 2 };
    case HD_I32: return (file_type){ 'i', 4 };
    case HD_I64: return (file_type){ 'i', 8 };
    case HD_U32: return (file_type){ 'u', 4 };
    case HD_I8: return (file_type){ 'i', 1 };
    case HD_BF16: return (file_type){ 'u', 2 };
    case HD_U8:
    default: return (file_type){ 'u', 1 };
    }
}

static bool is_quantised(hd_dtype dtype) { return hd_dtype_bytes(dtype, 1) == 0; }
static bool is_raw(hd_dtype dtype) { return dtype == HD_BF16 || is_quantised(dtype); }

static bool same_shape(hd_shape a, hd_shape b) {
    return a.rank == b.rank && memcmp(a.dims, b.dims, a.rank * sizeof a.dims[0]) == 0;
}

int cli_job_check(const cli_job *job, const cli_port *port) {
    const cli_command *command = job->session->command;
    const hd_port *wanted = &port->port;
    const npy_array *array = &port->array;
    const file_type type = file_type_of(wanted->dtype);
    const uint64_t bytes = hd_tensor_bytes(wanted->dtype, wanted->shape);
    cli_cell tensor, shape;
    cli_tensor(wanted->dtype, wanted->shape, tensor);
    cli_tensor(HD_DTYPE_NONE, array->shape, shape);
    const char *lengths = strchr(shape, '[');
    bool same_type = array->kind == type.kind && array->item_bytes == type.item_bytes;
    if (wanted->dtype == HD_U8 && array->kind == 'b') same_type = true;
    if (is_raw(wanted->dtype) && array->kind == 'u' && array->item_bytes <= 2) {
        if (array->bytes == bytes) return CLI_OK;
        return cli_fail(command, "input \"%s\" is %s, %llu bytes, and %s holds %llu; give its raw bytes", wanted->name,
                        tensor, (unsigned long long)bytes,
                        port->load_path, (unsigned long long)array->bytes);
    }
    if (!same_type) {
        char mend[48] = "give its raw bytes, .view('u1')";
        if (!is_raw(wanted->dtype))
            snprintf(mend, sizeof mend, "convert it with .astype('%s%c%u')", type.item_bytes > 1 ? "<" : "", type.kind,
                     (unsigned)type.item_bytes);
        return cli_fail(command, "input \"%s\" is %s, and %s holds %c%u%s; %s", wanted->name, tensor, port->load_path,
                        array->kind, (unsigned)array->item_bytes, lengths, mend);
    }
    if (!same_shape(array->shape, wanted->shape))
        return cli_fail(command, "input \"%s\" is %s, and %s has the shape %s; reshape it, or change the program",
                        wanted->name, tensor, port->load_path, lengths);
    return CLI_OK;
}

/* ---- running ---- */

static int write_ports(cli_job *job) {
    for (size_t i = 0; i < job->port_count; i++) {
        cli_port *port = &job->ports[i];
        if (!port->array.data) continue;
        if (hd_plan_write(job->plan, port->port.name, port->array.data, port->array.bytes))
            return cli_session_fail(job->session, port->port.name);
        npy_free(&port->array);
    }
    return CLI_OK;
}

/* Reads the outputs, and the states that are to be saved, into their ports. */
static int read_ports(cli_job *job) {
    for (size_t i = 0; i < job->port_count; i++) {
        cli_port *port = &job->ports[i];
        if (port->port.kind != HD_PORT_OUTPUT && !port->save_path) continue;
        const file_type type = file_type_of(port->port.dtype);
        npy_array *array = &port->array;
        *array = (npy_array){ .kind = type.kind, .item_bytes = type.item_bytes, .shape = port->port.shape };
        array->bytes = hd_tensor_bytes(port->port.dtype, port->port.shape);
        if (is_quantised(port->port.dtype)) array->shape = HD_SHAPE((int64_t)array->bytes);
        array->data = malloc((size_t)array->bytes);
        if (!array->data)
            return cli_fail(job->session->command, "no memory for output \"%s\" of %llu bytes", port->port.name,
                            (unsigned long long)array->bytes);
        if (hd_plan_read(job->plan, port->port.name, array->data, array->bytes))
            return cli_session_fail(job->session, port->port.name);
    }
    return CLI_OK;
}

static int save_ports(const cli_job *job) {
    char why[NPY_WHY];
    for (size_t i = 0; i < job->port_count; i++) {
        const cli_port *port = &job->ports[i];
        if (port->save_path && !npy_save(port->save_path, &port->array, why))
            return cli_fail(job->session->command, "%s %s; choose another path", port->save_path, why);
    }
    return CLI_OK;
}

/* Writes, runs and reads, on devices that are open. */
static int run_plan(cli_job *job) {
    int code = write_ports(job);
    for (uint64_t run = 0; run < job->repeat && !code; run++) {
        const uint64_t begin = cli_now_ns();
        if (hd_plan_run(job->plan, NULL)) code = cli_session_fail(job->session, NULL);
        job->run_ns[run] = cli_now_ns() - begin;
        if (run == 0) cli_session_stats(job->session, &job->first);
    }
    return code ? code : read_ports(job);
}

hd_timing *cli_job_timings(const cli_job *job, const char *option, size_t *out_count, int *out_code) {
    *out_count = 0;
    *out_code = CLI_OK;
    if (hd_plan_timings(job->plan, NULL, out_count)) {
        *out_code = cli_session_fail(job->session, option);
        return NULL;
    }
    hd_timing *timings = calloc(*out_count + 1, sizeof *timings);
    if (timings && !hd_plan_timings(job->plan, timings, out_count)) return timings;
    *out_code = timings ? cli_session_fail(job->session, option) : cli_fail(job->session->command, "no memory is left");
    free(timings);
    return NULL;
}

/* With --timings the trace has the last run's operations, too. */
static int write_trace(const cli_job *job, trace *watched) {
    size_t count;
    int code = CLI_OK;
    hd_timing *timings = job->timings ? cli_job_timings(job, "--timings", &count, &code) : NULL;
    if (timings) trace_add_operations(watched, timings, count);
    if (!code) code = trace_write(watched, job->session->command, job->trace_path);
    free(timings);
    return code;
}

static int run_watched(cli_job *job) {
    trace watched = { 0 };
    hd_status status = job->trace_path ? trace_watch(&watched, job->session->device) : HD_OK;
    for (size_t i = 0; i < CLI_MOST_BESIDE && !status && job->trace_path && job->session->beside[i]; i++)
        status = trace_watch(&watched, job->session->beside[i]);
    int code = status ? cli_session_fail(job->session, "--trace") : run_plan(job);
    if (!code && job->trace_path) code = write_trace(job, &watched);
    trace_free(&watched);
    return code;
}

static int make_plan(cli_job *job, const cli_args *args, hd_math math, bool timestamps) {
    hd_plan_desc desc = { .math = math, .timestamps = job->timings || timestamps };
    int code = job->saved ? cli_plan_devices(job->session, job->saved, &desc) : cli_route(job->session, args, &desc);
    if (code) return code;
    const uint64_t begin = cli_now_ns();
    const hd_status status = job->saved
                                 ? hd_plan_load(job->session->device, job->saved, strlen(job->saved), &desc, &job->plan)
                                 : hd_plan_create(job->session->device, job->program, &desc, &job->plan);
    job->plan_ns = cli_now_ns() - begin;
    return status ? cli_session_fail(job->session, NULL) : CLI_OK;
}

/* ---- receipts ---- */

static bool tell_inputs(const cli_job *job, const cli_args *args, cli_receipt *receipt) {
    bool told = cli_receipt_file(receipt, "program", args->operand);
    for (size_t i = 0; i < job->port_count && told; i++)
        if (job->ports[i].load_path) told = cli_receipt_file(receipt, job->ports[i].port.name, job->ports[i].load_path);
    return told;
}

static int tell_outputs(cli_job *job, cli_receipt *receipt) {
    size_t count;
    int code;
    if (!receipt->root) return CLI_OK;
    hd_timing *timings = cli_job_timings(job, "--receipt", &count, &code);
    if (!timings) return code;
    for (size_t i = 0; i < count; i++) cli_receipt_kernel(receipt, &timings[i]);
    free(timings);
    cli_receipt_device(receipt, job->session->device);
    for (size_t i = 0; i < CLI_MOST_BESIDE && job->session->beside[i]; i++)
        cli_receipt_device(receipt, job->session->beside[i]);
    for (size_t i = 0; i < job->port_count; i++)
        if (job->ports[i].port.kind == HD_PORT_OUTPUT)
            cli_receipt_output(receipt, job->ports[i].port.name, job->ports[i].array.data,
                               (size_t)job->ports[i].array.bytes);
    return cli_receipt_end(receipt);
}

int cli_job_run(cli_job *job, const cli_args *args, hd_math math) {
    cli_receipt receipt;
    cli_receipt_begin(args, job->saved && strstr(job->saved, "\nmath exact\n") ? HD_MATH_EXACT : math, &receipt);
    int code = tell_inputs(job, args, &receipt) ? CLI_OK : CLI_FAILED;
    if (!code) code = make_plan(job, args, math, receipt.root != NULL);
    if (!code) code = run_watched(job);
    if (!code) code = tell_outputs(job, &receipt);
    cli_receipt_drop(&receipt);
    if (!code) code = save_ports(job);
    if (!code && cli_get(args, "--metrics")) code = cli_metrics_save(job->session, cli_get(args, "--metrics"));
    return code ? code : cli_job_report(job);
}
