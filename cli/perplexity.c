/* perplexity.c: `heddle perplexity`: how well a model foretells a text, as llama.cpp measures it: the text in chunks of
 * --context tokens, each read alone from BOS on, the tokens of its second half foretold one by one. */
#include "cli/llm.h"
#include <math.h>

enum { TOGETHER = 8 };

typedef struct sums {
    double   loss, square; /* of -log of the probability of the token that came, and of its square */
    uint64_t count;
} sums;

/* Adds the token that came after these scores. */
static bool add_token(sums *s, const float *scores, uint32_t vocabulary, int32_t token) {
    double largest = (double)scores[0], sum = 0;
    for (uint32_t i = 1; i < vocabulary; i++)
        if ((double)scores[i] > largest) largest = (double)scores[i];
    for (uint32_t i = 0; i < vocabulary; i++) sum += exp((double)scores[i] - largest);
    const double loss = log(sum) - ((double)scores[token] - largest);
    s->loss += loss;
    s->square += loss * loss;
    s->count++;
    return isfinite(loss);
}

static double error_of(const sums *s) {
    const double n = (double)s->count, mean = s->loss / n, spread = s->square / n - mean * mean;
    return s->count > 1 && spread > 0 ? sqrt(spread / (n - 1)) * exp(mean) : 0;
}

/* `count` chunks side by side, a sequence each. */
static int take_chunks(cli_llm *llm, const int32_t *tokens, uint32_t count, uint32_t size, sums *s) {
    const uint32_t first = size / 2;
    hd_step steps[TOGETHER];
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        status = hd_session_rewind(llm->session, i, 0);
        if (!status) status = hd_session_feed(llm->session, i, tokens + (size_t)i * size, first);
    }
    for (uint32_t at = first; at + 1 < size && !status; at++) {
        for (uint32_t i = 0; i < count; i++)
            steps[i] = (hd_step){ .sequence = i, .token = tokens[(size_t)i * size + at] };
        status = hd_session_step(llm->session, steps, count);
        for (uint32_t i = 0; i < count && !status; i++) {
            const float *scores;
            const int32_t token = tokens[(size_t)i * size + at + 1];
            status = hd_session_logits(llm->session, i, &scores);
            if (!status && !add_token(s, scores, llm->info.vocabulary, token))
                return cli_fail(llm->cli.command, "the model's scores are no numbers");
        }
    }
    return status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}

static int print(const cli_args *args, const cli_llm *llm, const sums *s, uint64_t tokens, uint64_t chunks) {
    const double value = exp(s->loss / (double)s->count);
    bool ok = true;
    if (!cli_get(args, "--json")) {
        cli_print("perplexity %.4f +- %.4f, over %llu of %llu tokens in %llu chunks of %u\n", value, error_of(s),
                  (unsigned long long)s->count, (unsigned long long)tokens, (unsigned long long)chunks,
                  (unsigned)llm->desc.context);
        return CLI_OK;
    }
    json_t *root = json_object();
    cli_put(root, "perplexity", json_real(value), &ok);
    cli_put(root, "error", json_real(error_of(s)), &ok);
    cli_put(root, "tokens", json_integer((json_int_t)tokens), &ok);
    cli_put(root, "foretold", json_integer((json_int_t)s->count), &ok);
    cli_put(root, "chunks", json_integer((json_int_t)chunks), &ok);
    cli_put(root, "context", json_integer((json_int_t)llm->desc.context), &ok);
    return cli_print_json(args->command, root, ok);
}

static int measure(const cli_args *args, cli_llm *llm, const int32_t *tokens, size_t count, uint64_t chunks) {
    const uint32_t size = llm->desc.context;
    sums s = { 0 };
    llm->desc.sequences = chunks < TOGETHER ? (uint32_t)chunks : TOGETHER;
    int code = cli_llm_load(llm);
    for (uint64_t at = 0; at < chunks && !code; at += TOGETHER) {
        const uint32_t together = chunks - at < TOGETHER ? (uint32_t)(chunks - at) : TOGETHER;
        code = take_chunks(llm, tokens + at * size, together, size, &s);
        if (!code) cli_progress("heddle: chunk %llu of %llu, perplexity %.4f", (unsigned long long)(at + together),
                                (unsigned long long)chunks, exp(s.loss / (double)s.count));
    }
    cli_progress_end();
    return code ? code : print(args, llm, &s, count, chunks);
}

static int run(const cli_args *args) { return cli_llm_run_chunks(args, measure); }

static const cli_option options[] = {
    CLI_OPTION_CHUNKS,
    CLI_SESSION_OPTIONS,
    CLI_OPTION_JSON,
};

const cli_command cli_perplexity = {
    "perplexity", "tells how well a model foretells a text", "perplexity MODEL.gguf TEXT.txt [options]",
    "MODEL.gguf TEXT.txt",
    options, CLI_COUNT(options),
    "--context is the length of a chunk here; default: 512. The second half of each chunk is foretold, as llama.cpp "
    "does it.\n",
    "  heddle perplexity model.gguf text.txt --context 256\n", run,
};
