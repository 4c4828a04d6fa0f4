/* bench_llm.c: `heddle bench llm`: tokens a second for a prompt and for an answer. "pp N" feeds N tokens at once to a
 * sequence, "tg N" feeds N tokens one after the other, to each of some sequences in one step; tokens are arbitrary,
 * since their values do not change the time. With --draft "rw N" goes on behind a text that was read twice, without
 * guesses and with them in turn: how many of these come true is a matter of model and text. */
#include "cli/llm.h"
#include "cli/measure.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000, MOST_SEQUENCES = 256, MOST_ITEMS = 16,
       MOST_TESTS = 2 * MOST_ITEMS * MOST_ITEMS };

typedef struct test {
    const char *name;     /* "pp", "tg" or "rw" */
    uint64_t    tokens, depth, sequences;
    const int32_t *prompt; /* of rw: `depth` tokens */
    bool        drafts;    /* of rw */
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

static bool goes_on(void *user, const hd_said_token *said) {
    (void)user;
    (void)said;
    return !measure_is_ended();
}

/* The likeliest tokens behind the prompt, as hd_generate makes them in a session with guesses and as anybody could. */
static hd_status rewrite(hd_session *session, const test *t) {
    hd_status status = HD_OK;
    if (t->drafts)
        return hd_generate(
            session, &(hd_generate_desc){ .max_tokens = (uint32_t)t->tokens, .ignore_end = 1, .on_token = goes_on },
            NULL, NULL);
    for (uint64_t i = 0; i < t->tokens && !status && !measure_is_ended(); i++) {
        int32_t token;
        status = hd_session_best(session, 0, &token);
        if (!status) status = hd_session_feed(session, 0, &token, 1);
    }
    return status;
}

/* One round; the sequences are empty before but for `depth` tokens. */
static hd_status round_of(cli_llm *llm, const test *t, const int32_t *tokens, uint64_t *out_ns) {
    hd_session *session = llm->session;
    hd_fit fit;
    hd_status status = hd_session_get_fit(session, &fit);
    for (uint32_t s = 0; s < llm->desc.sequences && !status; s++) status = hd_session_rewind(session, s, 0);
    for (uint32_t s = 0; s < t->sequences && t->depth && !status; s++)
        status = hd_session_feed(session, s, t->prompt ? t->prompt : tokens, t->depth);
    const uint64_t began = cli_now_ns();
    /* a prompt goes in such chunks anyhow; between two Ctrl-C is heard */
    const uint64_t step = t->name[0] == 'p' ? fit.chunk : 1;
    if (!status && t->prompt) status = rewrite(session, t);
    else if (!status && t->sequences > 1) status = answer_all(session, t, tokens);
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
    if (t->prompt) snprintf(size + at, sizeof size - (size_t)at, " draft=%s", t->drafts ? "lookup" : "none");
    row.op = t->prompt ? "rewrite" : t->name[0] == 'p' ? "prompt" : "answer";
    row.type = llm->info.weight_types;
    row.size = size;
    row.elements = (double)(t->tokens * t->sequences);
    row.counted = "transfers"; /* tokens go in, scores come out */
    if (!t->drafts) row.submissions = t->name[0] == 'p' ? 1 : (double)t->tokens;
    measure_tell(t->samples, t->count, t->first_ns, &row);
    machine_tell(&t->before, &t->after, &row);
    return measure_write(m, &row);
}

static void print_test(const test *t) { /* its samples are sorted */
    cli_cell name;
    const uint64_t middle = t->samples[(t->count - 1) / 2] / 2 + t->samples[t->count / 2] / 2;
    int at = snprintf(name, sizeof name, "%s%llu", t->name, (unsigned long long)t->tokens);
    if (t->depth && !t->prompt)
        at += snprintf(name + at, sizeof name - (size_t)at, "@%llu", (unsigned long long)t->depth);
    if (t->sequences > 1) snprintf(name + at, sizeof name - (size_t)at, " x%llu", (unsigned long long)t->sequences);
    if (t->prompt) snprintf(name + at, sizeof name - (size_t)at, "%s", t->drafts ? " lookup" : "");
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
    hd_session_stats stats;
    if (code || m->json || !llm->desc.draft || hd_session_get_stats(llm->session, &stats)) return code;
    cli_print("%-20s %.2f tokens came of a step with guesses: %llu of %llu guesses were said\n", "",
              stats.draft_steps ? 1 + (double)stats.accepted_tokens / (double)stats.draft_steps : 0,
              (unsigned long long)stats.accepted_tokens, (unsigned long long)stats.drafted_tokens);
    return code;
}

/* ---- the rounds ---- */

static int run_rounds(measure *m, cli_llm *llm, const measure_device *on, const int32_t *tokens, test *tests,
                      size_t count, uint64_t rounds) {
    size_t order[MOST_TESTS + 2];
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
    enum { PAGE = 256 }; /* of a cache's tokens */
    uint64_t most = 1, together = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t held = tests[i].tokens + tests[i].depth, all = tests[i].sequences * (held / PAGE + 1) * PAGE;
        if (held > most) most = held;
        if (all > together) together = all;
        if (tests[i].sequences > llm->desc.sequences) llm->desc.sequences = (uint32_t)tests[i].sequences;
    }
    int32_t *tokens = calloc(most, sizeof *tokens);
    if (!tokens) return cli_fail(args->command, "no memory is left");
    fill(tokens, most, llm->info.vocabulary);
    if (!cli_get(args, "--context") || llm->desc.context < most) llm->desc.context = (uint32_t)most;
    /* long prompts of one sequence beside short answers of many do not need room for long ones of all */
    if (together < (uint64_t)llm->desc.sequences * llm->desc.context) llm->desc.cache_tokens = together;
    int code = cli_llm_load(llm);
    if (!code) {
        cli_llm_note_elsewhere(llm);
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

/* The text of -f, or arbitrary tokens, twice: the prompt of rw. */
static int read_prompt(const cli_args *args, cli_llm *llm, int32_t **out_tokens, size_t *out_count) {
    enum { ARBITRARY = 64, MOST_BYTES = 1 << 20 };
    const char *file = cli_get(args, "-f");
    size_t bytes = 0, count = ARBITRARY;
    int32_t *once = NULL;
    char *text = file ? cli_read_text(args->command, file, MOST_BYTES, &bytes) : NULL;
    if (file && !text) return CLI_FAILED;
    int code = text ? cli_llm_take_tokens(llm, text, bytes, HD_TOKENIZE_PLAIN, &once, &count) : CLI_OK;
    free(text);
    int32_t *twice = code ? NULL : calloc(2 * count + 1, sizeof *twice);
    if (!code && !twice) code = cli_fail(args->command, "no memory is left");
    else if (!code && count == 0) code = cli_usage(args->command, "-f names a text of no tokens");
    for (size_t i = 0; once && twice && i < count; i++) twice[i] = once[i];
    if (!once && twice) fill(twice, count, llm->info.vocabulary);
    for (size_t i = 0; twice && i < count; i++) twice[count + i] = twice[i];
    free(once);
    *out_tokens = twice;
    *out_count = 2 * count;
    return code;
}

static int run(const cli_args *args) {
    int32_t *text = NULL;
    size_t text_count = 0;
    cli_llm llm = { 0 };
    measure m;
    uint64_t answer, rounds, prompts[MOST_ITEMS], depths[MOST_ITEMS], sequences[MOST_ITEMS];
    size_t prompt_count, depth_count, sequence_count, count = 0;
    if (!read_list(args, "-p", 0, 1u << 20, 512, prompts, &prompt_count) ||
        !cli_get_number(args, "-n", 0, 1u << 20, 128, &answer) ||
        !cli_get_number(args, "-r", 1, MOST_ROUNDS, 5, &rounds) ||
        !read_list(args, "-d", 0, 1u << 20, 0, depths, &depth_count) ||
        !read_list(args, "--sequences", 1, MOST_SEQUENCES, 1, sequences, &sequence_count)) return CLI_USAGE;
    if (prompts[prompt_count - 1] + answer == 0)
        return cli_usage(args->command, "-p and -n are both 0: nothing to measure");
    if (cli_get(args, "-f") && !(cli_get(args, "--draft") && answer))
        return cli_usage(args->command, "-f is the text of --draft, which -n is to go on with");
    test *tests = calloc(MOST_TESTS + 2, sizeof *tests);
    if (!tests) return cli_fail(args->command, "no memory is left");
    for (size_t i = 0; i < depth_count; i++) {
        for (size_t k = 0; k < prompt_count; k++)
            if (prompts[k])
                tests[count++] = (test){ .name = "pp", .tokens = prompts[k], .depth = depths[i], .sequences = 1 };
        for (size_t k = 0; k < sequence_count && answer; k++)
            tests[count++] = (test){ .name = "tg", .tokens = answer, .depth = depths[i], .sequences = sequences[k] };
    }
    int code = measure_begin(args, "llm", &m);
    if (!code) code = cli_llm_open(args, &llm);
    if (!code) code = cli_llm_prepare(args, &llm);
    if (!code && llm.desc.draft && answer) code = read_prompt(args, &llm, &text, &text_count);
    for (int drafts = 0; !code && text && drafts < 2; drafts++)
        tests[count++] = (test){ .name = "rw", .tokens = answer, .depth = text_count, .sequences = 1, .prompt = text,
                                 .drafts = drafts != 0 };
    if (!code) {
        measure_use(&m, &llm.cli);
        code = bench(args, &m, &llm, tests, count, rounds);
    }
    cli_llm_close(&llm);
    code = measure_end(&m, code);
    free(text);
    free(tests);
    return code;
}

static const cli_option options[] = {
    { "-p", "N,N,...", "tokens of the prompt; 0: no such test; default: 512" },
    { "-n", "N", "tokens of the answer; 0: no such test; default: 128" },
    { "-d", "N,N,...", "tokens that each sequence holds before; default: 0" },
    { "--sequences", "N,N,...", "sequences that are answered side by side; default: 1" },
    { "-r", "N", "rounds, after one that warms up; default: 5" },
    CLI_OPTION_DRAFT,
    { "-f", "FILE", "with --draft: the text that is read twice; default: arbitrary tokens" },
    CLI_SESSION_OPTIONS,
    MEASURE_ROW_OPTIONS,
};

const cli_command cli_bench_llm = {
    "bench llm", "measures a model: tokens a second for a prompt and an answer",
    "bench llm [MODEL.gguf] [-p N,...] [-n N] [options]", "[MODEL.gguf]", options, CLI_COUNT(options),
    "pp and tg mean what llama-bench means by them; tg128@4096 x8: of 8 sequences that hold 4096 tokens each, all "
    "together.\nrw128: 128 tokens behind a text that was read twice, without and with --draft.\n",
    "  heddle bench llm model.gguf -p 512 -n 128 --sequences 1,8,64\n", run,
};
