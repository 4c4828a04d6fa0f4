/* bench_llm.c: `heddle bench llm`: tokens a second for a prompt and for an answer. "pp N" feeds N tokens at once to an empty
 * sequence, "tg N" feeds N tokens one after the other; tokens are arbitrary, since their values do not change the time. */
#include "cli/llm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000 };

typedef struct measure {
    const char *name;     /* "pp" or "tg" */
    uint64_t    tokens, depth;
    double      rates[MOST_ROUNDS];
} measure;

static void fill(int32_t *tokens, size_t count, uint32_t vocabulary) {
    uint32_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens[i] = (int32_t)((seed >> 8) % vocabulary);
    }
}

/* One round; the sequence is empty before but for `depth` tokens. */
static hd_status round_of(cli_llm *llm, const measure *m, const int32_t *tokens, double *out_rate) {
    hd_session *session = llm->session;
    hd_status status = hd_session_rewind(session, 0, 0);
    if (!status && m->depth) status = hd_session_feed(session, 0, tokens, m->depth);
    const uint64_t began = cli_now_ns();
    if (m->name[0] == 'p') {
        if (!status) status = hd_session_feed(session, 0, tokens, m->tokens);
    } else {
        for (uint64_t i = 0; i < m->tokens && !status; i++) status = hd_session_feed(session, 0, &tokens[i], 1);
    }
    *out_rate = cli_per_second(m->tokens, cli_now_ns() - began);
    return status;
}

static int compare(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }

static int print(const cli_llm *llm, measure *measures, size_t count, uint64_t rounds, bool json) {
    bool ok = true;
    json_t *list = json_array();
    if (!json) printf("%-24s %-10s %10s %10s %10s  tokens/s\n", llm->info.weight_types, "test", "median", "least", "most");
    for (size_t i = 0; i < count; i++) {
        measure *m = &measures[i];
        qsort(m->rates, rounds, sizeof *m->rates, compare);
        const double median = (m->rates[rounds / 2] + m->rates[(rounds - 1) / 2]) / 2;
        char name[48];
        if (m->depth) snprintf(name, sizeof name, "%s%llu@%llu", m->name, (unsigned long long)m->tokens, (unsigned long long)m->depth);
        else snprintf(name, sizeof name, "%s%llu", m->name, (unsigned long long)m->tokens);
        if (!json) {
            printf("%-24s %-10s %10.2f %10.2f %10.2f\n", "", name, median, m->rates[0], m->rates[rounds - 1]);
            continue;
        }
        json_t *row = json_object();
        cli_put(row, "test", json_string(name), &ok);
        cli_put(row, "tokens_per_second", json_real(median), &ok);
        cli_put(row, "least", json_real(m->rates[0]), &ok);
        cli_put(row, "most", json_real(m->rates[rounds - 1]), &ok);
        cli_put(row, "rounds", json_integer((json_int_t)rounds), &ok);
        cli_put(row, "device", json_string(hd_device_get_info(hd_session_device(llm->session))->name), &ok);
        if (json_array_append_new(list, row)) ok = false;
    }
    if (json) return cli_print_json(llm->cli.command, list, ok);
    json_decref(list);
    return CLI_OK;
}

static int bench(const cli_args *args, cli_llm *llm, measure *measures, size_t count, uint64_t rounds) {
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        if (measures[i].tokens + measures[i].depth > most) most = measures[i].tokens + measures[i].depth;
    int32_t *tokens = calloc(most, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    fill(tokens, most, llm->info.vocabulary);
    if (!cli_get(args, "--context") || llm->desc.context < most) llm->desc.context = (uint32_t)most;
    int code = cli_llm_load(llm);
    for (uint64_t round = 0; round <= rounds && !code; round++) /* the first one warms up: plans are made, kernels compiled */
        for (size_t i = 0; i < count && !code; i++) {
            double rate;
            if (round_of(llm, &measures[i], tokens, &rate)) code = cli_session_fail(&llm->cli, NULL);
            else if (round > 0) measures[i].rates[round - 1] = rate;
        }
    free(tokens);
    return code ? code : print(llm, measures, count, rounds, cli_get(args, "--json") != NULL);
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    uint64_t prompt, answer, rounds, depth;
    if (!cli_get_number(args, "-p", 0, 1u << 20, 512, &prompt) || !cli_get_number(args, "-n", 0, 1u << 20, 128, &answer) ||
        !cli_get_number(args, "-d", 0, 1u << 20, 0, &depth) || !cli_get_number(args, "-r", 1, MOST_ROUNDS, 5, &rounds)) return CLI_USAGE;
    if (prompt + answer == 0) return cli_usage(args->command, "-p and -n are both 0: nothing to measure");
    measure *measures = calloc(2, sizeof *measures);
    size_t count = 0;
    if (!measures) return cli_fail(args->command, "no memory is left");
    if (prompt) measures[count++] = (measure){ .name = "pp", .tokens = prompt, .depth = depth };
    if (answer) measures[count++] = (measure){ .name = "tg", .tokens = answer, .depth = depth };
    int code = cli_llm_open(args, &llm);
    if (!code) code = cli_llm_prepare(args, &llm);
    if (!code) code = bench(args, &llm, measures, count, rounds);
    cli_llm_close(&llm);
    free(measures);
    return code;
}

static const cli_option options[] = {
    { "-p", "N", "tokens of the prompt; 0: no such test; default: 512" },
    { "-n", "N", "tokens of the answer; 0: no such test; default: 128" },
    { "-d", "N", "tokens that the sequence holds before; default: 0" },
    { "-r", "N", "rounds, after one that warms up; default: 5" },
    CLI_SESSION_OPTIONS,
    CLI_OPTION_JSON,
};

const cli_command cli_bench_llm = {
    "bench llm", "measures a model: tokens a second for a prompt and an answer", "bench llm [MODEL.gguf] [-p N] [-n N] [options]", "[MODEL.gguf]", options, CLI_COUNT(options),
    "pp and tg mean what llama-bench means by them.\n", "  heddle bench llm model.gguf -p 512 -n 128\n", run,
};
