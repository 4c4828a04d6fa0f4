/* answer.c: a prompt's continuation as the options ask for it, printed as it comes, and the report about it. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_LIMIT = 1 << 20 };

/* ---- options ---- */

/* Another one each time, short enough to be typed again. */
static bool random_seed(uint64_t *out) {
    uint64_t mixed = cli_now_ns() ^ (uint64_t)system_process() << 32;
    for (int i = 0; i < 3; i++) mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    *out = mixed % 1000000000;
    return true;
}

int cli_answer_read(const cli_args *args, uint64_t fallback, cli_answer *a) {
    uint64_t seed, top_k, window, most;
    double temperature, top_p, min_p, repeat, frequency, presence;
    *a = (cli_answer){ 0 };
    const char *word = cli_get(args, "--seed");
    a->random_seed = word && strcmp(word, "random") == 0;
    if (!(a->random_seed ? random_seed(&seed) : cli_get_number(args, "--seed", 0, INT64_MAX, 0, &seed)) ||
        !cli_get_fraction(args, "--temp", 0, 100, 0.8, &temperature) ||
        !cli_get_number(args, "--top-k", 0, 1u << 20, 40, &top_k) ||
        !cli_get_fraction(args, "--top-p", 0, 1, 0.95, &top_p) ||
        !cli_get_fraction(args, "--min-p", 0, 1, 0.05, &min_p) ||
        !cli_get_fraction(args, "--repeat-penalty", 0.01, 100, 1, &repeat) ||
        !cli_get_fraction(args, "--frequency-penalty", -100, 100, 0, &frequency) ||
        !cli_get_fraction(args, "--presence-penalty", -100, 100, 0, &presence) ||
        !cli_get_number(args, "--repeat-last-n", 1, 1u << 20, 64, &window) ||
        !cli_get_number(args, "-n", 0, 1u << 24, fallback, &most))
        return CLI_USAGE;
    a->desc.sampling = (hd_sampling){ .seed = seed,
                                      .temperature = (float)temperature,
                                      .top_k = (uint32_t)top_k,
                                      .top_p = (float)top_p,
                                      .min_p = (float)min_p,
                                      .repeat_penalty = (float)repeat,
                                      .frequency_penalty = (float)frequency,
                                      .presence_penalty = (float)presence,
                                      .penalty_window = (uint32_t)window };
    a->desc.max_tokens = (uint32_t)most;
    a->stops = calloc(args->given_count + 1, sizeof *a->stops);
    if (!a->stops) return cli_fail(args->command, "no memory is left");
    const char *stop;
    for (size_t at = 0; (stop = cli_next(args, "--stop", &at));) a->stops[a->desc.stop_count++] = stop;
    a->desc.stop_texts = a->stops;
    const char *grammar = cli_get(args, "--grammar"), *schema = cli_get(args, "--json-schema");
    if (grammar && schema) return cli_usage(args->command, "takes one of --grammar and --json-schema");
    a->form = grammar ? grammar : schema;
    a->form_kind = grammar ? HD_GRAMMAR_GBNF : HD_GRAMMAR_JSON_SCHEMA;
    return CLI_OK;
}

/* ---- what needs the model ---- */

/* A grammar has ::= in it, and a schema is an object: other words name a file. */
static int read_form(cli_llm *llm, cli_answer *a) {
    const char *form = a->form;
    const bool is_text =
        a->form_kind == HD_GRAMMAR_GBNF ? strstr(form, "::=") != NULL : form[strspn(form, " \t\r\n")] == '{';
    size_t bytes = strlen(form);
    char *file = is_text ? NULL : cli_read_text(llm->cli.command, form, FORM_LIMIT, &bytes);
    if (!is_text && !file) return CLI_FAILED;
    const hd_status status =
        hd_grammar_create(llm->model, a->form_kind, is_text ? form : file, bytes, &a->desc.grammar);
    free(file);
    return status ? cli_session_fail(&llm->cli, is_text ? NULL : form) : CLI_OK;
}

/* "12=-5" or "word=-inf" */
static int read_bias(cli_llm *llm, const char *word, hd_bias *out) {
    const char *sign = strrchr(word, '=');
    char *end = NULL;
    uint64_t id = 0;
    size_t count = 2;
    int32_t tokens[2];
    if (!sign || sign == word || sign[1] == 0)
        return cli_usage(llm->cli.command, "--bias is a token and a number, such as 42=-5, not \"%s\"", word);
    out->bias = strtof(sign + 1, &end);
    if (*end || out->bias != out->bias)
        return cli_usage(llm->cli.command, "--bias \"%s\" does not end with a number", word);
    char *name = strdup(word);
    if (!name) return cli_fail(llm->cli.command, "no memory is left");
    name[sign - word] = 0;
    const bool is_id = cli_number(name, INT32_MAX, &id);
    const hd_status status =
        is_id ? HD_OK : hd_model_tokenize(llm->model, name, strlen(name), HD_TOKENIZE_PARSE_SPECIAL, tokens, &count);
    free(name);
    if (status) cli_session_forget(&llm->cli);
    if (!is_id && (status || count != 1))
        return cli_fail(llm->cli.command, "--bias: \"%.*s\" is not one token; name it by its id", (int)(sign - word),
                        word);
    out->token = is_id ? (int32_t)id : tokens[0];
    if ((uint32_t)out->token < llm->info.vocabulary) return CLI_OK;
    return cli_fail(llm->cli.command, "--bias: there is no token %d; this model has 0 to %u", (int)out->token,
                    (unsigned)llm->info.vocabulary - 1);
}

int cli_answer_prepare(const cli_args *args, cli_llm *llm, cli_answer *a) {
    const char *word;
    int code = CLI_OK;
    /* the token that finds the context full is told too */
    a->token_room = (size_t)llm->desc.context + 2 + (a->desc.shift ? a->desc.max_tokens : 0);
    a->tokens = calloc(a->token_room, sizeof *a->tokens);
    a->biases = calloc(args->given_count + 1, sizeof *a->biases);
    if (!a->tokens || !a->biases) return cli_fail(args->command, "no memory is left");
    for (size_t at = 0; !code && (word = cli_next(args, "--bias", &at));)
        code = read_bias(llm, word, &a->biases[a->desc.bias_count++]);
    a->desc.biases = a->biases;
    return !code && a->form ? read_form(llm, a) : code;
}

void cli_answer_free(cli_answer *a) {
    hd_grammar_destroy(a->desc.grammar);
    hd_chat_reader_destroy(a->reader);
    free(a->stops);
    free(a->biases);
    free(a->tokens);
    free(a->text);
    *a = (cli_answer){ 0 };
}

/* ---- running ---- */

/* At a terminal thoughts are dim, and an empty line stands between them and what is said. */
static void print_text(cli_answer *a, bool is_thought, const char *text, size_t bytes) {
    const bool ends = a->shows_thoughts && a->thought && !is_thought;
    for (; a->called && bytes > 0 && isspace((unsigned char)*text); bytes--) text++;
    for (; ends && bytes > 0 && *text == '\n'; bytes--) text++;
    if (bytes == 0) return;
    if (a->shows_thoughts && is_thought != a->thought) cli_print_dim(is_thought);
    if (ends) cli_print_text("\n\n", a->ends_line ? 1 : 2);
    a->thought = is_thought;
    a->called = false;
    a->ends_line = text[bytes - 1] == '\n';
    cli_print_text(text, bytes);
}

/* {"name": ..., "arguments": ...} on a line of its own. */
static void print_call(cli_answer *a, const hd_tool_call *call) {
    json_t *value = cli_json_text(call->name);
    char *name = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (a->shows_thoughts && a->thought) cli_print_dim(false);
    if (!a->ends_line) cli_print_text("\n", 1);
    cli_print_text("{\"name\": ", 9);
    cli_print_text(name ? name : "\"\"", name ? strlen(name) : 2);
    cli_print_text(", \"arguments\": ", 15);
    cli_print_text(call->arguments, strlen(call->arguments));
    cli_print_text("}\n", 2);
    a->thought = false;
    a->called = a->ends_line = true;
    free(name);
    json_decref(value);
}

static void print_part(void *user, const hd_part *part) {
    cli_answer *a = user;
    if (part->kind == HD_PART_CALL) print_call(a, part->call);
    else if (part->kind != HD_PART_MARK) print_text(a, part->kind == HD_PART_THOUGHT, part->text, part->bytes);
    else if (!a->shows_thoughts) print_text(a, a->thought, part->text, part->bytes);
}

int cli_answer_take_apart(cli_llm *llm, cli_answer *a, const hd_chat_form *form, const char *file) {
    if (hd_chat_reader_create(llm->model, form, print_part, a, &a->reader)) return cli_session_fail(&llm->cli, file);
    return CLI_OK;
}

static bool take(void *user, const char *text, size_t bytes) {
    cli_answer *a = user;
    if (a->text_bytes + bytes + 1 > a->text_room) {
        const size_t room = 2 * (a->text_room + bytes + 1);
        char *grown = realloc(a->text, room);
        if (!grown) return false;
        a->text = grown;
        a->text_room = room;
    }
    memcpy(a->text + a->text_bytes, text, bytes);
    a->text_bytes += bytes;
    a->text[a->text_bytes] = 0;
    if (a->reader && hd_chat_reader_push(a->reader, text, bytes)) return false;
    if (!a->reader && !a->silent) cli_print_text(text, bytes);
    return system_interrupts_count() == 0 && !ferror(stdout);
}

int cli_answer_run(cli_llm *llm, cli_answer *a, size_t held) {
    enum { PIECE = 512 }; /* between pieces Ctrl-C is heard */
    hd_generate_desc desc = a->desc;
    const uint32_t room = (uint32_t)(a->token_room - a->prompt_count);
    hd_status status = hd_session_rewind(llm->session, 0, (uint32_t)held);
    size_t at = held;
    uint64_t piece_ns = 0;
    a->made = (hd_generated){ 0 };
    a->thought = a->called = false;
    a->ends_line = true;
    if (a->reader && hd_chat_reader_begin(a->reader, a->tokens, a->prompt_count))
        return cli_session_fail(&llm->cli, NULL);
    a->fed = a->prompt_count - held;
    a->text_bytes = 0;
    if (!take(a, "", 0) && system_interrupts_count() == 0 && !ferror(stdout))
        return cli_fail(llm->cli.command, "no memory is left");
    for (; !status && a->prompt_count - at > PIECE && system_interrupts_count() == 0; at += PIECE) {
        const uint64_t began = cli_now_ns();
        status = hd_session_feed(llm->session, 0, a->tokens + at, PIECE);
        piece_ns += cli_now_ns() - began;
    }
    desc.tokens = a->tokens + at;
    desc.token_count = a->prompt_count - at;
    if (desc.max_tokens == 0 || desc.max_tokens > room) desc.max_tokens = room;
    desc.keep = (uint32_t)(a->prompt_count < llm->desc.context / 2 ? a->prompt_count : llm->desc.context / 2);
    desc.on_text = take;
    desc.user = a;
    if (system_interrupts_count()) a->made.stop = HD_STOP_CALLER;
    else if (!status) status = hd_generate(llm->session, &desc, a->tokens + a->prompt_count, &a->made);
    if (a->reader && hd_chat_reader_end(a->reader) && !status) status = HD_STATUS_OUT_OF_HOST_MEMORY;
    if (a->shows_thoughts && a->thought) cli_print_dim(false); /* it thought to the end */
    a->made.prompt_ns += piece_ns;
    return status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}

/* ---- the report ---- */

static const char *ended_by(hd_stop stop) {
    switch (stop) {
    case HD_STOP_END: return "the model";
    case HD_STOP_LENGTH: return "-n";
    case HD_STOP_CONTEXT: return "the context, which is full";
    case HD_STOP_TEXT: return "a stop text";
    case HD_STOP_CALLER: return "Ctrl-C";
    case HD_STOP_NONE: break;
    }
    return "a failure";
}

/* Why layers or their experts are not on the device. */
static const char *why_not_there(const hd_session_desc *desc) {
    if (desc->device_layers) return "as --gpu-layers asks";
    if (desc->cpu_experts > 0) return "as --cpu-experts asks";
    return desc->memory_bytes ? "the device's share, --memory, is full" : "the device's memory is full";
}

/* "5 of 8 layers and experts of 3", either of them, for what is not 0. */
static const char *left_to_cpu(const cli_llm *llm, const hd_fit *fit, cli_cell out) {
    const unsigned all = llm->info.layers, whole = fit->cpu_layers, experts = fit->cpu_experts;
    if (!experts) snprintf(out, sizeof(cli_cell), "%u of %u layers", whole, all);
    else if (!whole) snprintf(out, sizeof(cli_cell), "experts of %u of %u layers", experts, all);
    else snprintf(out, sizeof(cli_cell), "%u of %u layers and experts of %u", whole, all, experts);
    return out;
}

void cli_llm_note_elsewhere(const cli_llm *llm) {
    hd_fit fit;
    cli_cell bytes, layers;
    if (hd_device_get_info(llm->desc.device)->kind == HD_DEVICE_CPU) return;
    hd_session_get_fit(llm->session, &fit);
    if (fit.streamed_layers)
        cli_note("heddle: stream  %u of %u layers travel to the device for every token: %s\n",
                 (unsigned)fit.streamed_layers, (unsigned)llm->info.layers, why_not_there(&llm->desc));
    if (fit.cpu_layers || fit.cpu_experts)
        cli_note("heddle: CPU     %s, %s: %s\n", left_to_cpu(llm, &fit, layers), cli_bytes(fit.cpu_bytes, bytes),
                 why_not_there(&llm->desc));
}

void cli_answer_report(const cli_llm *llm, const cli_answer *a) {
    const hd_device_info *device = hd_device_get_info(llm->desc.device);
    const bool on_cpu = device->kind == HD_DEVICE_CPU;
    hd_session_stats stats;
    hd_fit fit;
    cli_cell bytes, load, layers;
    hd_session_get_stats(llm->session, &stats);
    hd_session_get_fit(llm->session, &fit);
    cli_note("heddle: prompt  %zu tokens, %.1f tokens/s\n", a->fed, cli_per_second(a->fed, a->made.prompt_ns));
    cli_note("heddle: answer  %u tokens, %.1f tokens/s, ended by %s\n", (unsigned)a->made.token_count,
            cli_per_second(a->made.token_count, a->made.answer_ns), ended_by(a->made.stop));
    if (llm->desc.draft)
        cli_note("heddle: draft   %llu of %llu guesses were said, in %llu steps\n",
                 (unsigned long long)stats.accepted_tokens, (unsigned long long)stats.drafted_tokens,
                 (unsigned long long)stats.draft_steps);
    if (a->random_seed) cli_note("heddle: seed    %llu\n", (unsigned long long)a->desc.sampling.seed);
    const unsigned there = on_cpu ? fit.cpu_layers : fit.device_layers;
    if (there < llm->info.layers) snprintf(layers, sizeof layers, "%u of %u", there, (unsigned)llm->info.layers);
    else snprintf(layers, sizeof layers, "%u", there);
    cli_note("heddle: device  %s: %s layers, %s, loaded in %s\n", device->name, layers,
            cli_bytes(on_cpu ? fit.cpu_bytes : fit.device_bytes, bytes), cli_time(stats.load_ns, load));
    cli_llm_note_elsewhere(llm);
}
