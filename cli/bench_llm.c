/* bench_llm.c: `heddle bench llm`: tokens a second for a prompt and for an answer. "pp N" feeds N tokens at once to an empty
 * sequence, "tg N" feeds N tokens one after the other; tokens are arbitrary, since their values do not change the time. */
#include "cli/llm.h"
#include "cli/measure.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000, CHUNK = 512 };

typedef struct test {
    const char *name;     /* "pp" or "tg" */
    uint64_t    tokens, depth;
    uint64_t    first_ns, samples[MOST_ROUNDS];
    size_t      count;
    machine_reading before, after;
} test;

static void fill(int32_t *tokens, size_t count, uint32_t vocabulary) {
    uint32_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens[i] = (int32_t)((seed >> 8) % vocabulary);
    }
}

/* One round; the sequence is empty before but for `depth` tokens. */
static hd_status round_of(cli_llm *llm, const test *t, const int32_t *tokens, uint64_t *out_ns) {
    hd_session *session = llm->session;
    hd_status status = hd_session_rewind(session, 0, 0);
    if (!status && t->depth) status = hd_session_feed(session, 0, tokens, t->depth);
    const uint64_t began = cli_now_ns();
    const uint64_t step = t->name[0] == 'p' ? CHUNK : 1; /* a prompt goes in such chunks anyhow; between two Ctrl-C is heard */
    for (uint64_t i = 0; i < t->tokens && !status && !measure_is_ended(); i += step)
        status = hd_session_feed(session, 0, &tokens[i], t->tokens - i < step ? t->tokens - i : step);
    *out_ns = cli_now_ns() - began;
    return status;
}

/* ---- the rows ---- */

static int write_row(const measure *m, const cli_llm *llm, const measure_device *on, test *t) {
    char size[64];
    table_row row = measure_row(m, on);
    snprintf(size, sizeof size, "tokens=%llu depth=%llu", (unsigned long long)t->tokens, (unsigned long long)t->depth);
    row.op = t->name[0] == 'p' ? "prompt" : "answer";
    row.type = llm->info.weight_types;
    row.size = size;
    row.elements = (double)t->tokens;
    row.counted = "transfers"; /* tokens go in, scores come out */
    row.submissions = t->name[0] == 'p' ? 1 : (double)t->tokens;
    measure_tell(t->samples, t->count, t->first_ns, &row);
    machine_tell(&t->before, &t->after, &row);
    return measure_write(m, &row);
}

static void print_test(const test *t) { /* its samples are sorted */
    cli_cell name;
    const uint64_t middle = t->samples[(t->count - 1) / 2] / 2 + t->samples[t->count / 2] / 2;
    int at = snprintf(name, sizeof name, "%s%llu", t->name, (unsigned long long)t->tokens);
    if (t->depth) snprintf(name + at, sizeof name - (size_t)at, "@%llu", (unsigned long long)t->depth);
    cli_print("%-24s %-10s %10.2f %10.2f %10.2f\n", "", name, cli_per_second(t->tokens, middle),
           cli_per_second(t->tokens, t->samples[t->count - 1]),
           cli_per_second(t->tokens, t->samples[0]));
}

static int report(measure *m, const cli_llm *llm, const measure_device *on, test *tests, size_t count) {
    int code = CLI_OK;
    if (!m->json) cli_print("%-24s %-10s %10s %10s %10s  tokens/s\n", llm->info.weight_types, "test", "median", "least", "most");
    for (size_t i = 0; i < count && !code; i++) {
        if (tests[i].count == 0) continue; /* ended early */
        code = write_row(m, llm, on, &tests[i]);
        if (!m->json) print_test(&tests[i]);
    }
    return code;
}

/* ---- the rounds ---- */

static int run_rounds(measure *m, cli_llm *llm, const measure_device *on, const int32_t *tokens, test *tests,
                      size_t count, uint64_t rounds) {
    size_t order[2];
    for (uint64_t round = 0; round <= rounds; round++) { /* the first one makes plans and compiles kernels */
        statistics_shuffle(order, count, &m->seed);
        for (size_t i = 0; i < count && !measure_is_ended(); i++) {
            test *t = &tests[order[i]];
            uint64_t ns;
            if (round == 0) cli_progress("heddle bench llm: %s, once before it counts", t->name);
            else cli_progress("heddle bench llm: %s, round %llu of %llu", t->name, (unsigned long long)round, (unsigned long long)rounds);
            if (round_of(llm, t, tokens, &ns)) return cli_session_fail(&llm->cli, NULL);
            if (measure_is_ended()) break; /* that one is not whole */
            if (round == 0) t->first_ns = ns;
            else t->samples[t->count++] = ns;
            *(round == 0 ? &t->before : &t->after) = machine_read(&on->sensor);
        }
    }
    cli_progress_end();
    return measure_is_ended() ? measure_end_early(m) : CLI_OK;
}

static int bench(const cli_args *args, measure *m, cli_llm *llm, test *tests, size_t count, uint64_t rounds) {
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        if (tests[i].tokens + tests[i].depth > most) most = tests[i].tokens + tests[i].depth;
    int32_t *tokens = calloc(most, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    fill(tokens, most, llm->info.vocabulary);
    if (!cli_get(args, "--context") || llm->desc.context < most) llm->desc.context = (uint32_t)most;
    int code = cli_llm_load(llm);
    if (!code) {
        const hd_device_info *info = hd_device_get_info(hd_session_device(llm->session));
        const measure_device on = { hd_session_device(llm->session), *info, machine_sensor_of(&m->machine, info) };
        const int reached = run_rounds(m, llm, &on, tokens, tests, count, rounds);
        code = report(m, llm, &on, tests, count);
        if (reached) code = reached;
    }
    free(tokens);
    return code;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    measure m;
    uint64_t prompt, answer, rounds, depth;
    if (!cli_get_number(args, "-p", 0, 1u << 20, 512, &prompt) || !cli_get_number(args, "-n", 0, 1u << 20, 128, &answer) ||
        !cli_get_number(args, "-d", 0, 1u << 20, 0, &depth) || !cli_get_number(args, "-r", 1, MOST_ROUNDS, 5, &rounds)) return CLI_USAGE;
    if (prompt + answer == 0) return cli_usage(args->command, "-p and -n are both 0: nothing to measure");
    test *tests = calloc(2, sizeof *tests);
    size_t count = 0;
    if (!tests) return cli_fail(args->command, "no memory is left");
    if (prompt) tests[count++] = (test){ .name = "pp", .tokens = prompt, .depth = depth };
    if (answer) tests[count++] = (test){ .name = "tg", .tokens = answer, .depth = depth };
    int code = measure_begin(args, "llm", &m);
    if (!code) code = cli_llm_open(args, &llm);
    if (!code) code = cli_llm_prepare(args, &llm);
    if (!code) {
        measure_use(&m, &llm.cli);
        code = bench(args, &m, &llm, tests, count, rounds);
    }
    cli_llm_close(&llm);
    code = measure_end(&m, code);
    free(tests);
    return code;
}

static const cli_option options[] = {
    { "-p", "N", "tokens of the prompt; 0: no such test; default: 512" },
    { "-n", "N", "tokens of the answer; 0: no such test; default: 128" },
    { "-d", "N", "tokens that the sequence holds before; default: 0" },
    { "-r", "N", "rounds, after one that warms up; default: 5" },
    CLI_SESSION_OPTIONS,
    MEASURE_ROW_OPTIONS,
};

const cli_command cli_bench_llm = {
    "bench llm", "measures a model: tokens a second for a prompt and an answer",
    "bench llm [MODEL.gguf] [-p N] [-n N] [options]", "[MODEL.gguf]", options, CLI_COUNT(options),
    "pp and tg mean what llama-bench means by them.\n", "  heddle bench llm model.gguf -p 512 -n 128\n", run,
};
