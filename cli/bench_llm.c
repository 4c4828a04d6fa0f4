/* bench_llm.c: `heddle bench llm`: tokens a second for a prompt and for an answer. "pp N" feeds N tokens at once to a
 * sequence, "tg N" feeds N tokens one after the other, to each of some sequences in one step; tokens are arbitrary,
 * since their values do not change the time. */
#include "cli/llm.h"
#include "cli/measure.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000, CHUNK = 512, MOST_SEQUENCES = 256, MOST_ITEMS = 16,
       MOST_TESTS = MOST_ITEMS * (MOST_ITEMS + 1) };

typedef struct test {
    const char *name;     /* "pp" or "tg" */
    uint64_t    tokens, depth, sequences;
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

/* A token for each of the sequences, as often as the test says. */
static hd_status answer_all(hd_session *session, const test *t, const int32_t *tokens) {
    hd_step steps[MOST_SEQUENCES];
    hd_status status = HD_OK;
    for (uint64_t i = 0; i < t->tokens && !status && !measure_is_ended(); i++) {
        for (uint32_t s = 0; s < t->sequences; s++) steps[s] = (hd_step){ s, tokens[i] };
        status = hd_session_step(session, steps, t->sequences);
    }
    return status;
}

/* One round; the sequences are empty before but for `depth` tokens. */
static hd_status round_of(cli_llm *llm, const test *t, const int32_t *tokens, uint64_t *out_ns) {
    hd_session *session = llm->session;
    hd_status status = HD_OK;
    for (uint32_t s = 0; s < llm->desc.sequences && !status; s++) {
        status = hd_session_rewind(session, s, 0);
        if (!status && t->depth && s < t->sequences) status = hd_session_feed(session, s, tokens, t->depth);
    }
    const uint64_t began = cli_now_ns();
    /* a prompt goes in such chunks anyhow; between two Ctrl-C is heard */
    const uint64_t step = t->name[0] == 'p' ? CHUNK : 1;
    if (!status && t->sequences > 1) status = answer_all(session, t, tokens);
    else
        for (uint64_t i = 0; i < t->tokens && !status && !measure_is_ended(); i += step)
            status = hd_session_feed(session, 0, &tokens[i], t->tokens - i < step ? t->tokens - i : step);
    *out_ns = cli_now_ns() - began;
    return status;
}

/* ---- the rows ---- */

static int write_row(const measure *m, const cli_llm *llm, const measure_device *on, test *t) {
    char size[64];
    table_row row = measure_row(m, on);
    const int at = snprintf(size, sizeof size, "tokens=%llu depth=%llu", (unsigned long long)t->tokens,
                            (unsigned long long)t->depth);
    if (t->sequences > 1)
        snprintf(size + at, sizeof size - (size_t)at, " sequences=%llu", (unsigned long long)t->sequences);
    row.op = t->name[0] == 'p' ? "prompt" : "answer";
    row.type = llm->info.weight_types;
    row.size = size;
    row.elements = (double)(t->tokens * t->sequences);
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
    if (t->depth) at += snprintf(name + at, sizeof name - (size_t)at, "@%llu", (unsigned long long)t->depth);
    if (t->sequences > 1) snprintf(name + at, sizeof name - (size_t)at, " x%llu", (unsigned long long)t->sequences);
    const uint64_t tokens = t->tokens * t->sequences;
    cli_print("%-20s %-14s %10.2f %10.2f %10.2f\n", "", name, cli_per_second(tokens, middle),
              cli_per_second(tokens, t->samples[t->count - 1]), cli_per_second(tokens, t->samples[0]));
}

static int report(measure *m, const cli_llm *llm, const measure_device *on, test *tests, size_t count) {
    int code = CLI_OK;
    if (!m->json)
        cli_print("%-20s %-14s %10s %10s %10s  tokens/s\n", llm->info.weight_types, "test", "median", "least", "most");
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
    size_t order[MOST_TESTS];
    for (uint64_t round = 0; round <= rounds; round++) { /* the first one makes plans and compiles kernels */
        statistics_shuffle(order, count, &m->seed);
        for (size_t i = 0; i < count && !measure_is_ended(); i++) {
            test *t = &tests[order[i]];
            uint64_t ns;
            if (round == 0) cli_progress("heddle bench llm: %s, once before it counts", t->name);
            else
                cli_progress("heddle bench llm: %s, round %llu of %llu", t->name, (unsigned long long)round,
                             (unsigned long long)rounds);
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
    for (size_t i = 0; i < count; i++) {
        if (tests[i].tokens + tests[i].depth > most) most = tests[i].tokens + tests[i].depth;
        if (tests[i].sequences > llm->desc.sequences) llm->desc.sequences = (uint32_t)tests[i].sequences;
    }
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

/* A list of at most MOST_ITEMS whole numbers. */
static bool read_list(const cli_args *args, const char *name, uint64_t low, uint64_t high, uint64_t fallback,
                      uint64_t *out, size_t *out_count) {
    const char *list = cli_get(args, name);
    cli_cell item;
    size_t count = 0;
    out[0] = fallback;
    *out_count = 1;
    if (!list) return true;
    for (size_t at = 0; cli_next_item(list, &at, item, sizeof item); count++)
        if (count == MOST_ITEMS || !cli_number(item, high, &out[count]) || out[count] < low) {
            cli_usage(args->command,
                      "%s is up to %d whole numbers of %llu to %llu with commas between them, not \"%s\"", name,
                      MOST_ITEMS, (unsigned long long)low, (unsigned long long)high, list);
            return false;
        }
    if (count) *out_count = count;
    return true;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    measure m;
    uint64_t prompt, answer, rounds, depths[MOST_ITEMS], sequences[MOST_ITEMS];
    size_t depth_count, sequence_count, count = 0;
    if (!cli_get_number(args, "-p", 0, 1u << 20, 512, &prompt) ||
        !cli_get_number(args, "-n", 0, 1u << 20, 128, &answer) ||
        !cli_get_number(args, "-r", 1, MOST_ROUNDS, 5, &rounds) ||
        !read_list(args, "-d", 0, 1u << 20, 0, depths, &depth_count) ||
        !read_list(args, "--sequences", 1, MOST_SEQUENCES, 1, sequences, &sequence_count)) return CLI_USAGE;
    if (prompt + answer == 0) return cli_usage(args->command, "-p and -n are both 0: nothing to measure");
    test *tests = calloc(MOST_TESTS, sizeof *tests);
    if (!tests) return cli_fail(args->command, "no memory is left");
    for (size_t i = 0; i < depth_count; i++) {
        if (prompt) tests[count++] = (test){ .name = "pp", .tokens = prompt, .depth = depths[i], .sequences = 1 };
        for (size_t k = 0; k < sequence_count && answer; k++)
            tests[count++] = (test){ .name = "tg", .tokens = answer, .depth = depths[i], .sequences = sequences[k] };
    }
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
    { "-d", "N,N,...", "tokens that each sequence holds before; default: 0" },
    { "--sequences", "N,N,...", "sequences that are answered side by side; default: 1" },
    { "-r", "N", "rounds, after one that warms up; default: 5" },
    CLI_SESSION_OPTIONS,
    MEASURE_ROW_OPTIONS,
};

const cli_command cli_bench_llm = {
    "bench llm", "measures a model: tokens a second for a prompt and an answer",
    "bench llm [MODEL.gguf] [-p N] [-n N] [options]", "[MODEL.gguf]", options, CLI_COUNT(options),
    "pp and tg mean what llama-bench means by them; tg128@4096 x8: of 8 sequences that hold 4096 tokens each, all "
    "together.\n",
    "  heddle bench llm model.gguf -p 512 -n 128 --sequences 1,8,64\n", run,
};
