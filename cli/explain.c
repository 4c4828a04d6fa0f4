/* explain.c: `heddle explain`: program, plan, commands and device, each choice with its because; also for a device that
 * is not here, from the facts that `heddle devices --caps` printed where it is. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_LIMIT = 16 << 20, CAPS_LIMIT = 1 << 20 };

typedef struct question {
    cli_session  *session;
    hd_program   *program;
    hd_plan      *plan; /* on a device that is here, or */
    const char   *caps; /* the facts of another one */
    hd_plan_desc  desc;
} question;

static hd_status ask(const question *q, char *out, size_t room, size_t *needed) {
    if (q->plan) return hd_plan_explain(q->plan, out, room, needed);
    return hd_explain(q->session->context, q->program, q->caps, &q->desc, out, room, needed);
}

static int answer(const question *q) {
    size_t needed = 0;
    char none[1];
    hd_status status = ask(q, none, sizeof none, &needed);
    if (status && status != HD_STATUS_LIMIT) return cli_session_fail(q->session, NULL);
    cli_session_forget(q->session); /* that it was cut was the question */
    char *text = malloc(needed + 1);
    if (!text) return cli_fail(q->session->command, "no memory is left");
    status = ask(q, text, needed + 1, &needed);
    if (!status) cli_print("%s", text);
    free(text);
    return status ? cli_session_fail(q->session, NULL) : CLI_OK;
}

static int explain_program(cli_session *session, const cli_args *args, hd_math math) {
    const char *caps_path = cli_get(args, "--caps");
    size_t bytes, caps_bytes;
    question q = { .session = session, .desc = { .math = math } };
    char *caps = NULL, *text = cli_read_text(session->command, args->operand, PROGRAM_LIMIT, &bytes);
    if (!text) return CLI_FAILED;
    hd_status status = hd_program_parse(session->context, text, bytes, &q.program);
    free(text);
    int code = status ? cli_session_fail(session, args->operand) : CLI_OK;
    if (!code && caps_path) {
        q.caps = caps = cli_read_text(session->command, caps_path, CAPS_LIMIT, &caps_bytes);
        if (!caps) code = CLI_FAILED;
    } else if (!code) {
        code = cli_route(session, args, &q.desc);
        if (!code && hd_plan_create(session->device, q.program, &q.desc, &q.plan))
            code = cli_session_fail(session, NULL);
    }
    if (!code && cli_get(args, "--save")) code = cli_plan_save(session, q.plan, cli_get(args, "--save"));
    if (!code) code = answer(&q);
    hd_plan_destroy(q.plan);
    hd_program_destroy(q.program);
    free(caps);
    return code;
}

static int explain(const cli_args *args) {
    cli_session session;
    hd_math math;
    if (cli_get(args, "--caps") && cli_get(args, "--device"))
        return cli_usage(args->command, "--caps and --device exclude each other; give one of them");
    if (cli_get(args, "--caps") && cli_get(args, "--save"))
        return cli_usage(args->command, "--caps and --save exclude each other; a plan is saved where its device is");
    if (cli_get(args, "--caps") && cli_get(args, "--route"))
        return cli_usage(args->command, "--caps and --route exclude each other; a described device is alone");
    if (!cli_get_math(args, &math)) return CLI_USAGE;
    int code = cli_session_open(args->command, &session);
    if (!code) code = explain_program(&session, args, math);
    cli_session_close(&session);
    return code;
}

static const cli_option options[] = {
    CLI_OPTION_DEVICE,
    { "--caps", "FILE", "plan for the device whose facts FILE holds; it need not be here" },
    CLI_OPTION_MATH,
    CLI_OPTION_ROUTE,
    { "--save", "FILE", "write the plan, too, for `heddle run FILE`" },
};

const cli_command cli_explain = {
    "explain", "says how a program would run, and why so", "explain FILE.hd [--device ID | --caps FILE] [options]",
    "FILE.hd", options, CLI_COUNT(options),
    "Facts of a device come from `heddle devices --caps ID` on the machine that has it.\n",
    "  heddle devices --caps 0 > phone.caps\n  heddle explain ffn.hd --caps phone.caps\n", explain
};
