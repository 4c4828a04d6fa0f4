/* run.c: `heddle run`: a program's text, .npy files in, .npy files out. */
#include "cli/receipt.h"
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_LIMIT = 16 << 20 };

static bool takes(const hd_port *port, bool in) {
    return port->kind == HD_PORT_STATE || port->kind == (in ? HD_PORT_INPUT : HD_PORT_OUTPUT);
}

/* No port is meant by `text`: says which there are. */
static int unknown_port(const cli_job *job, const char *option, const char *text, bool in) {
    const cli_command *command = job->session->command;
    const char *names[64], *near = NULL;
    char name[64], list[512] = "";
    size_t count = 0, at = 0, length = strcspn(text, "=");
    if (!strchr(text, '=')) return cli_usage(command, "%s %s lacks its file: %s NAME=FILE.npy", option, text, option);
    for (size_t i = 0; i < job->port_count && count < CLI_COUNT(names); i++) {
        const hd_port *port = &job->ports[i].port;
        if (!takes(port, in)) continue;
        names[count++] = port->name;
        if (at < sizeof list) at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", port->name);
    }
    if (length < sizeof name) {
        memcpy(name, text, length);
        name[length] = 0;
        near = cli_nearest(name, names, count);
    }
    return cli_fail(command, "the program has no %s \"%.*s\"; %s%s%sit has: %s", in ? "input" : "output", (int)length,
                    text, near ? "did you mean " : "",
                    near ? near : "", near ? "? " : "", list[0] ? list : "none");
}

/* Gives the values of --in or --out, NAME=FILE, to their ports. A name may hold "=" itself, so the ports decide. */
static int assign(cli_job *job, const cli_args *args, const char *option, bool in) {
    const char *text;
    for (size_t at = 0; (text = cli_next(args, option, &at));) {
        cli_port *found = NULL;
        size_t longest = 0;
        for (size_t i = 0; i < job->port_count; i++) {
            size_t length = strlen(job->ports[i].port.name);
            if (!takes(&job->ports[i].port, in) || length < longest ||
                strncmp(text, job->ports[i].port.name, length) != 0 || text[length] != '=')
                continue;
            found = &job->ports[i];
            longest = length;
        }
        if (!found) return unknown_port(job, option, text, in);
        const char **path = in ? &found->load_path : &found->save_path;
        if (*path) return cli_usage(job->session->command, "%s names \"%s\" twice", option, found->port.name);
        if (text[longest + 1] == 0)
            return cli_usage(job->session->command, "%s %s lacks its file: %s NAME=FILE.npy", option, text, option);
        *path = text + longest + 1;
    }
    return CLI_OK;
}

/* Every input has a file. What was given is read before, so that a file that is not there is told of first. */
static int check_inputs(const cli_job *job) {
    for (size_t i = 0; i < job->port_count; i++) {
        const hd_port *port = &job->ports[i].port;
        cli_cell tensor;
        if (port->kind == HD_PORT_INPUT && !job->ports[i].load_path)
            return cli_fail(job->session->command, "input \"%s\" is missing: %s, %llu bytes; add --in %s=FILE.npy",
                            port->name, cli_tensor(port->dtype, port->shape, tensor),
                            (unsigned long long)hd_tensor_bytes(port->dtype, port->shape), port->name);
    }
    return CLI_OK;
}

static int load_inputs(cli_job *job) {
    char why[NPY_WHY];
    for (size_t i = 0; i < job->port_count; i++) {
        cli_port *port = &job->ports[i];
        if (!port->load_path) continue;
        if (!npy_load(port->load_path, &port->array, why))
            return cli_fail(job->session->command, "input \"%s\": %s %s", port->port.name, port->load_path, why);
        int code = cli_job_check(job, port);
        if (code) return code;
    }
    return CLI_OK;
}

static int run_program(cli_session *session, const cli_args *args, hd_math math) {
    size_t bytes;
    hd_program *program = NULL;
    cli_job job = { 0 };
    char *text = cli_read_text(session->command, args->operand, PROGRAM_LIMIT, &bytes);
    if (!text) return CLI_FAILED;
    const char *saved = cli_plan_program(text), *source = saved ? saved : text;
    int code =
        saved && (cli_get(args, "--device") || cli_get(args, "--route") || cli_get(args, "--math"))
            ? cli_usage(session->command, "a saved plan has its own devices, route and arithmetic; leave --device, "
                                          "--route and --math out")
            : CLI_OK;
    if (!code && hd_program_parse(session->context, source, bytes - (size_t)(source - text), &program))
        code = cli_session_fail(session, args->operand);
    if (!code) code = cli_job_begin(session, args, program, &job);
    job.saved = saved ? text : NULL;
    if (!code) code = assign(&job, args, "--in", true);
    if (!code) code = assign(&job, args, "--out", false);
    if (!code) code = load_inputs(&job);
    if (!code) code = check_inputs(&job);
    if (!code) code = cli_job_run(&job, args, math);
    cli_job_end(&job);
    free(text);
    return code;
}

static int run(const cli_args *args) {
    cli_session session;
    hd_math math;
    uint64_t repeat;
    if (!cli_get_math(args, &math) || !cli_get_number(args, "--repeat", 1, 1000000, 1, &repeat)) return CLI_USAGE;
    int code = cli_session_open(args->command, &session);
    if (!code) code = run_program(&session, args, math);
    cli_session_close(&session);
    return code;
}

static const cli_option options[] = {
    { "--in", "NAME=FILE.npy", "an input's values, or a state's first ones; once for each" },
    { "--out", "NAME=FILE.npy", "save an output or a state; others are shown only" },
    CLI_OPTION_MATH,
    CLI_OPTION_ROUTE,
    CLI_OPTION_RECEIPT,
    CLI_JOB_OPTIONS,
};

const cli_command cli_run = {
    "run", "runs a program on .npy files, as one submission", "run FILE.hd --in NAME=FILE.npy ... [options]", "FILE.hd",
    options, CLI_COUNT(options),
    "Types in files: f32 is <f4, f16 is <f2, i64, i32 and i8 are <i8, <i4 and |i1, u32 and u8 are <u4 and |u1 or\n"
    "|b1, in the program's shape. bf16 and the quantised types, which .npy does not have, are their raw\n"
    "bytes: |u1 or <u2 of the right size, in any shape. Big-endian files are refused, Fortran order is turned.\n"
    "FILE.hd may be a plan that `heddle explain --save` wrote: it runs on its devices as it was planned.\n",
    "  heddle run ffn.hd --in x=x.npy --in w=w.npy --out y=y.npy --repeat 10\n", run
};
