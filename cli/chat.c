/* chat.c: `heddle chat`: a conversation. Each turn the whole of it is rendered by the model's chat template, and of its
 * tokens only those are fed that the session does not hold already. */
#define _POSIX_C_SOURCE 200809L
#include "cli/llm.h"
#include "cli/line_edit.h"
#include "cli/sight.h"
#include "cli/talk.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct chat {
    cli_llm      llm;
    cli_answer   answer;         /* its tokens are those that the session holds, `held` of them */
    size_t       held;
    hd_chat_form form;
    char        *tools;          /* of a file, or NULL */
    hd_grammar  *asked, *after;  /* calls: of answers to the user, and to results; NULL: not held to anything */
    talk         talk;           /* message 0 is the system's, and counts only where it has a text */
    bool         over;           /* no line comes any more */
    cli_sight    sight;          /* of all images; those that no message has are shown with the next one */
    size_t       held_first;     /* the number of the first image of what was told last */
    size_t       forgotten;      /* with `shift`: the first ones behind [0], which the model is told no more */
    bool         shift;
    bool         interactive;    /* somebody sits at the keyboard */
    line_edit   *editor;
} chat;

/* ---- messages ---- */

static int no_memory(const chat *c) { return cli_fail(c->llm.cli.command, "no memory is left"); }

static void drop_messages(chat *c, size_t count) {
    talk_cut(&c->talk, count);
    if (count <= 1) c->forgotten = 0;
}

static bool has_system(const talk *t) { return t->messages[0].content[0] != 0; }

static int set_system(chat *c, const char *text) {
    const hd_message message = { .role = "system", .content = text };
    const bool done = c->talk.count ? message_say(&c->talk.messages[0], text) : talk_add(&c->talk, &message);
    return done ? CLI_OK : no_memory(c);
}

/* Images of messages begin .. end-1. */
static size_t images_of(const chat *c, size_t begin, size_t end) {
    size_t count = 0;
    for (size_t i = begin; i < end; i++) count += c->talk.messages[i].images;
    return count;
}

/* ---- a turn ---- */

/* With --shift: the oldest message that the model is told, and its answer, are told no more. False: it is the last. */
static bool forget_oldest(chat *c) {
    size_t next = 2 + c->forgotten;
    while (next < c->talk.count && strcmp(c->talk.messages[next].role, "user") != 0) next++;
    if (!c->shift || next >= c->talk.count) return false;
    c->forgotten = next - 1;
    return true;
}

/* Gathers what the model is told, as much as its context holds; with --shift a quarter of that stays for the answer. */
static int gather(chat *c, hd_message *told, size_t *out_told, size_t *out_tokens) {
    const uint32_t context = c->llm.desc.context, most = c->shift ? context - context / 4 : context;
    const size_t before = c->forgotten;
    do {
        *out_told = 0;
        for (size_t i = has_system(&c->talk) ? 0 : 1; i < c->talk.count; i++)
            if (i == 0 || i > c->forgotten) told[(*out_told)++] = c->talk.messages[i];
        if (hd_model_chat_tokens(c->llm.model, &c->form, told, *out_told, NULL, out_tokens))
            return cli_session_fail(&c->llm.cli, NULL);
        *out_tokens = cli_sight_length(&c->sight, *out_tokens, images_of(c, 1 + c->forgotten, c->talk.count));
    } while (*out_tokens > most && forget_oldest(c));
    if (*out_tokens > context)
        return cli_fail(c->llm.cli.command,
                        "the conversation would be %zu tokens long, and the context holds %u; shorten the message, "
                        "begin anew with /clear, or give --context or --shift",
                        *out_tokens, (unsigned)context);
    if (c->forgotten > before)
        cli_note("heddle: the context is full: the first %zu messages are forgotten\n", c->forgotten);
    return CLI_OK;
}

/* How many of the tokens the session holds already, of these images. */
static size_t count_same(const chat *c, const int32_t *tokens, size_t count, size_t first_image) {
    size_t same = 0;
    const bool others = first_image != c->held_first;
    /* the last one is fed to learn what comes next */
    while (same < c->held && same + 1 < count && tokens[same] == c->answer.tokens[same] &&
           !(others && tokens[same] < 0)) same++;
    return same;
}

/* Puts the tokens of the conversation into the answer; *out_same is how many of them the session holds already. */
static int tokenize(chat *c, size_t *out_same) {
    size_t all = 0, told_count = 0, count = 0;
    hd_message *told = calloc(c->talk.count, sizeof *told);
    int code = told ? gather(c, told, &told_count, &all) : no_memory(c);
    int32_t *tokens = calloc(2 * (all + 1), sizeof *tokens);
    if (!code && !tokens) code = no_memory(c);
    count = all;
    if (!code && hd_model_chat_tokens(c->llm.model, &c->form, told, told_count, tokens, &count))
        code = cli_session_fail(&c->llm.cli, NULL);
    if (!code) {
        const size_t first = images_of(c, 1, 1 + c->forgotten);
        int32_t *spread = tokens + all + 1;
        cli_sight_spread(&c->sight, tokens, count, spread);
        *out_same = count_same(c, spread, all, first);
        memcpy(c->answer.tokens, spread, all * sizeof *spread);
        c->answer.prompt_count = all;
        c->held_first = first;
    }
    free(tokens);
    free(told);
    return code;
}

static int answer(chat *c) {
    size_t same = 0;
    int code = tokenize(c, &same);
    if (code) return code;
    system_interrupts_catch(true);
    code = cli_sight_feed(&c->llm, &c->sight, c->held_first, c->answer.tokens, c->answer.prompt_count, &same);
    if (!code) code = cli_answer_run(&c->llm, &c->answer, same);
    c->held = hd_session_position(c->llm.session, 0);
    if (!c->answer.called) cli_print("\n");
    fflush(stdout);
    return code;
}

/* After an answer: what there is to tell. */
static int end_turn(chat *c) {
    if (c->answer.made.stop == HD_STOP_CONTEXT)
        cli_note("heddle: the context of %u tokens is full; /clear begins a new conversation, --context gives more "
                 "room\n", (unsigned)c->llm.desc.context);
    if (c->interactive) cli_note("\n");
    return CLI_OK;
}

static char *next_line(chat *c, const char *prompt);

/* The next line is what came of a call. */
static int take_result(chat *c, const char *name) {
    char prompt[64];
    snprintf(prompt, sizeof prompt, "%.40s> ", name);
    char *line = next_line(c, prompt);
    if (!line) {
        cli_note("heddle: the input ended where the result of %s should stand\n", name);
        c->over = true;
        return CLI_OK;
    }
    const bool added = talk_add(&c->talk, &(hd_message){ .role = "tool", .content = line });
    free(line);
    return added ? CLI_OK : no_memory(c);
}

/* Answers until one calls nothing, with what came of the calls in between. Where one fails or Ctrl-C comes before its
 * first word, the conversation has `before` messages again. */
static int answer_calls(chat *c, size_t before) {
    bool said = true;
    size_t calls = 1;
    int code = CLI_OK;
    hd_grammar *calling = c->asked; /* what must be called is called once */
    while (!code && said && calls > 0 && !c->over) {
        if (calling) c->answer.desc.grammar = calling;
        code = answer(c);
        calling = c->after ? c->after : calling;
        said = !code && (c->answer.text_bytes || c->answer.made.stop != HD_STOP_CALLER);
        if (said && !talk_add(&c->talk, hd_chat_reader_message(c->answer.reader))) code = no_memory(c);
        const size_t asked = c->talk.count - 1;
        calls = said && !code ? c->talk.messages[asked].call_count : 0;
        for (size_t i = 0; i < calls && !code && !c->over; i++)
            code = take_result(c, c->talk.messages[asked].calls[i].name);
    }
    if (code || !said || c->over) drop_messages(c, before);
    return code ? code : end_turn(c);
}

/* The user's message and its answer. */
static int turn(chat *c, const char *line) {
    const size_t before = c->talk.count;
    const hd_message message = { .role = "user", .content = line,
                                 .images = (uint32_t)(c->sight.count - images_of(c, 0, before)) };
    if (!talk_add(&c->talk, &message)) return no_memory(c);
    return answer_calls(c, before);
}

/* Another answer to the last message, with the next seed; where it does not come, the one before stays. */
static int regenerate(chat *c) {
    const size_t before = c->talk.count - 1;
    if (before < 2 || strcmp(c->talk.messages[before].role, "assistant") != 0) {
        cli_note("heddle: there is no answer to be given anew\n");
        return CLI_OK;
    }
    hd_message last = talk_take_last(&c->talk);
    c->answer.desc.sampling.seed++;
    const int code = answer_calls(c, before);
    if (c->talk.count > before) message_free(&last);
    else talk_put_back(&c->talk, last);
    return code;
}

/* ---- conversations as files ---- */

static int save(const chat *c, const char *path) {
    if (c->sight.count) return cli_fail(c->llm.cli.command, "a conversation with images cannot be saved");
    const size_t first = has_system(&c->talk) ? 0 : 1;
    bool ok = true;
    json_t *root = talk_json(&c->talk, first, &ok);
    ok = ok && cli_json_save(root, path, JSON_INDENT(2));
    json_decref(root);
    if (!ok) return cli_fail(c->llm.cli.command, "%s cannot be written; check the path", path);
    cli_note("heddle: %zu messages are in %s\n", c->talk.count - first, path);
    return CLI_OK;
}

/* Takes the messages of a file in place of those that are there: all, or none. */
static int load(chat *c, const char *path) {
    json_error_t where;
    json_t *root = cli_json_load(path, 0, &where);
    const json_t *list = json_object_get(root, "messages");
    const char *first = json_string_value(json_object_get(json_array_get(list, 0), "role"));
    talk fresh = { 0 };
    /* a conversation without a message of the system's has an empty one */
    bool ok = root && ((first && strcmp(first, "system") == 0) ||
                       talk_add(&fresh, &(hd_message){ .role = "system", .content = "" }));
    ok = ok && talk_read(&fresh, root);
    if (ok) {
        const talk old = c->talk;
        c->talk = fresh;
        c->forgotten = 0;
        cli_sight_cut(&c->sight, 0);
        fresh = old;
        cli_note("heddle: %zu messages are taken from %s\n", json_array_size(list), path);
    }
    talk_free(&fresh);
    json_decref(root);
    return ok ? CLI_OK
              : cli_fail(c->llm.cli.command, "%s is no conversation that /save wrote, or cannot be read", path);
}

/* ---- what begins with a slash ---- */

/* Sees an image that is shown with the next message. */
static int show(chat *c, const char *path) {
    cli_cell seen;
    if (!c->sight.mmproj)
        return cli_fail(c->llm.cli.command, "/image needs what the model sees with: begin with --mmproj FILE");
    const int code = cli_sight_see(&c->llm, &c->sight, &path, 1);
    if (!code)
        cli_note("heddle: an image of %u tokens, seen in %s, goes with the next message\n",
                 (unsigned)c->sight.info.rows, cli_time(c->sight.seen_ns, seen));
    return code;
}

static void help(void) {
    cli_note("/clear        begins a new conversation\n"
                    "/regenerate   gives the last answer anew, with another seed\n"
                    "/system TEXT  sets what the model is told first; without TEXT: nothing\n"
                    "/image FILE   shows an image with the next message\n"
                    "/save FILE    writes the conversation, as JSON; /load FILE goes on with one\n"
                    "/stats        how fast the last answer came, and from where\n"
                    "/exit         ends, as Ctrl-D does; Ctrl-C stops an answer\n");
}

static void stats(const chat *c) {
    cli_note("heddle: context %zu of %u tokens\n", c->held, (unsigned)c->llm.desc.context);
    cli_answer_report(&c->llm, &c->answer);
}

/* False: the conversation is over. */
static bool command(chat *c, const char *line, int *code) {
    enum { HELP, CLEAR, SYSTEM, STATS, EXIT, REGENERATE, SAVE, LOAD, IMAGE };
    static const struct {
        const char *name;
        bool        takes_text, needs_text;
    } known[] = {
        [HELP] = { "/help", false, false },    [CLEAR] = { "/clear", false, false },
        [SYSTEM] = { "/system", true, false }, [STATS] = { "/stats", false, false },
        [EXIT] = { "/exit", false, false },    [REGENERATE] = { "/regenerate", false, false },
        [SAVE] = { "/save", true, true },      [LOAD] = { "/load", true, true },
        [IMAGE] = { "/image", true, true },
    };
    const size_t length = strcspn(line, " \t");
    const char *rest = line + length + strspn(line + length, " \t");
    size_t which = 0;
    while (which < CLI_COUNT(known) &&
           (strlen(known[which].name) != length || memcmp(known[which].name, line, length) != 0))
        which++;
    if (which == CLI_COUNT(known))
        cli_note("heddle: no command \"%.*s\"; see /help\n", (int)(length < 40 ? length : 40), line);
    else if (*rest && !known[which].takes_text) cli_note("heddle: %s takes no text; see /help\n", known[which].name);
    else if (!*rest && known[which].needs_text) cli_note("heddle: %s needs the name of a file\n", known[which].name);
    else if (which == HELP) help();
    else if (which == CLEAR) {
        drop_messages(c, 1);
        cli_sight_cut(&c->sight, 0);
        cli_note("heddle: a new conversation begins\n");
    }
    else if (which == SYSTEM) *code = set_system(c, rest);
    else if (which == STATS) stats(c);
    else if (which == REGENERATE) *code = regenerate(c);
    else if (which == SAVE) *code = save(c, rest);
    else if (which == LOAD) *code = load(c, rest);
    else if (which == IMAGE) *code = show(c, rest);
    return which != EXIT || *rest;
}

/* ---- the conversation ---- */

#define IN_A_ROW_NS UINT64_C(1500000000)

/* The next line; NULL at the end. Ctrl-C clears what is being typed; twice in a row, with no time to type between,
 * it ends. */
static char *next_line(chat *c, const char *prompt) {
    for (uint64_t before = 0, now;; before = now) {
        system_interrupts_catch(false);
        char *line = line_edit_read(c->editor, prompt);
        if (line || system_interrupts_count() == 0) {
            if (!line && c->interactive) cli_note("\n");
            return line;
        }
        clearerr(stdin);
        now = cli_now_ns();
        const bool again = before && now - before < IN_A_ROW_NS;
        cli_note(again ? "\n" : "\nheddle: Ctrl-C again ends, and so does Ctrl-D\n");
        if (again) return NULL;
    }
}

/* At the keyboard a failed turn is told, and the next one may go well; from a file it ends all. */
static int converse(chat *c) {
    int code = CLI_OK;
    char *line;
    while (!c->over && (line = next_line(c, "> "))) {
        char *start = line;
        while (isspace((unsigned char)*start)) start++;
        if (*start == '/') c->over = !command(c, start, &code) || c->over;
        else if (*start) code = turn(c, start);
        free(line);
        if (ferror(stdout) || (code && !c->interactive)) return code;
        code = CLI_OK;
    }
    return code;
}

/* With --free-calls the calls of a template whose form of them is not known are text. */
static hd_chat_form form_of_answers(chat *c) {
    hd_chat_form form = c->form;
    hd_chat_reader *probe = NULL;
    if (!form.tools || hd_chat_reader_create(c->llm.model, &form, NULL, NULL, &probe) != HD_STATUS_UNSUPPORTED) {
        hd_chat_reader_destroy(probe);
        return form;
    }
    cli_session_forget(&c->llm.cli);
    form.tools = NULL;
    return form;
}

/* What calls are held to, unless the whole answer has a form of its own. */
static int make_forms(const cli_args *args, chat *c, const char *file) {
    const char *choice = cli_get(args, "--tool-choice");
    const bool is_free = cli_get(args, "--free-calls") != NULL, any = !choice || strcmp(choice, "auto") == 0;
    if (choice && (is_free || c->answer.form || !c->form.tools))
        return cli_usage(args->command, "--tool-choice %s",
                         !c->form.tools ? "needs --tools"
                         : is_free      ? "and --free-calls exclude each other"
                                        : "goes with neither --grammar nor --json-schema");
    if (!c->form.tools || is_free || c->answer.form) return CLI_OK;
    hd_status status = hd_grammar_create_for_tools(c->llm.model, &c->form, choice, &c->asked);
    if (!status && !any && strcmp(choice, "none") != 0)
        status = hd_grammar_create_for_tools(c->llm.model, &c->form, NULL, &c->after);
    if (status != HD_STATUS_UNSUPPORTED && status != HD_STATUS_LIMIT)
        return status ? cli_session_fail(&c->llm.cli, file) : CLI_OK;
    char what[1024]; /* a schema that is too much; calls that are not held to it need none of it */
    snprintf(what, sizeof what, "%s%s%s", file ? file : "", file ? ": " : "", hd_context_error(c->llm.cli.context));
    cli_session_forget(&c->llm.cli);
    return cli_fail(args->command, "%s; or give --free-calls", what);
}

/* A list stands for itself, other words name a file. */
static int read_tools(const cli_args *args, chat *c) {
    enum { LIMIT = 1 << 20 };
    const char *word = cli_get(args, "--tools");
    size_t bytes;
    if (word && word[strspn(word, " \t\r\n")] != '[') {
        c->tools = cli_read_text(args->command, word, LIMIT, &bytes);
        if (!c->tools) return CLI_FAILED;
        if (strlen(c->tools) != bytes) return cli_fail(args->command, "%s is no text", word);
    }
    c->form.tools = c->tools ? c->tools : word;
    const char *file = c->tools ? word : NULL;
    const hd_chat_form form = cli_get(args, "--free-calls") ? form_of_answers(c) : c->form;
    const int code = cli_answer_take_apart(&c->llm, &c->answer, &form, file);
    return code ? code : make_forms(args, c, file);
}

static int begin(const cli_args *args, chat *c) {
    char history[4096];
    const char *system = cli_get(args, "--system");
    const hd_message probe = { .role = "user", .content = "Hello" };
    size_t count = 0;
    int code = cli_llm_open(args, &c->llm);
    if (code) return code;
    if (!c->form.template_name && !c->llm.info.has_chat_template)
        return cli_fail(args->command,
                        "%s has no chat template, so it may be no chat model; name one with --template, or see "
                        "`heddle generate`", args->operand);
    /* A template that cannot be used, and tools that cannot, are told before anything is loaded. */
    if ((code = read_tools(args, c))) return code;
    if (hd_model_chat_tokens(c->llm.model, &c->form, &probe, 1, NULL, &count))
        return cli_session_fail(&c->llm.cli, NULL);
    code = set_system(c, system ? system : "");
    if (!code) code = cli_llm_prepare(args, &c->llm);
    if (!code && cli_get(args, "--mmproj")) code = cli_sight_open(&c->llm, cli_get(args, "--mmproj"), &c->sight);
    if (!code) code = cli_answer_prepare(args, &c->llm, &c->answer);
    if (!code) code = cli_llm_load(&c->llm);
    if (code) return code;
    c->interactive = system_is_terminal(SYSTEM_INPUT);
    c->answer.shows_thoughts = system_is_terminal(SYSTEM_OUTPUT);
    c->editor = line_edit_open(line_edit_history_path("chat_history", history, sizeof history) ? history : NULL);
    if (!c->editor) return cli_fail(args->command, "no memory is left");
    if (c->interactive) cli_tell("heddle: /help lists what can be typed besides messages; Ctrl-D ends\n\n");
    return CLI_OK;
}

static int run(const cli_args *args) {
    if (!args->operand)
        return cli_usage(
            args->command,
            "needs a chat model: heddle chat MODEL.gguf (the one that comes with heddle only continues texts)");
    const char *thinking = cli_get(args, "--thinking");
    chat c = { .form = { .template_name = cli_get(args, "--template") }, .shift = cli_get(args, "--shift") != NULL };
    if (thinking && strcmp(thinking, "on") != 0 && strcmp(thinking, "off") != 0)
        return cli_usage(args->command, "--thinking is on or off, not \"%s\"", thinking);
    if (thinking) c.form.thinking = strcmp(thinking, "on") == 0 ? HD_THINKING_ON : HD_THINKING_OFF;
    int code = cli_answer_read(args, 0, &c.answer);
    if (!code) code = begin(args, &c);
    if (!code) code = converse(&c);
    line_edit_close(c.editor);
    if (c.asked) c.answer.desc.grammar = NULL;
    hd_grammar_destroy(c.asked);
    hd_grammar_destroy(c.after);
    cli_answer_free(&c.answer);
    cli_llm_close(&c.llm);
    cli_sight_cut(&c.sight, 0);
    talk_free(&c.talk);
    free(c.tools);
    return code;
}

static const cli_option options[] = {
    { "--system", "TEXT", "what the model is told first" },
    { "--template", "NAME", "chatml, llama2, llama3, mistral, gemma, qwen, phi3 or bitnet; default: the model's own" },
    { "--thinking", "WHEN", "on or off, for models that can be asked to think first; default: as the template has it" },
    { "--tools", "FILE", "what the model may call: a JSON list of functions as OpenAI's API has it, or a file of one" },
    { "--tool-choice", "WHICH", "auto, none, required, or the name of the tool that is called first; default: auto" },
    { "--free-calls", NULL, "calls are not held to the tools' schemas, and may have a form that heddle does not know" },
    { "-n", "N", "most tokens of an answer; 0, the default: as many as the context holds" },
    { "--shift", NULL, "in a full context forget the oldest messages" },
    { "--mmproj", "FILE", "what the model sees with: /image FILE then shows an image with the next message" },
    CLI_SAMPLING_OPTIONS,
    CLI_OPTION_DRAFT,
    CLI_SESSION_OPTIONS,
};

const cli_command cli_chat = {
    "chat", "a conversation with a chat model", "chat MODEL.gguf [--system TEXT] [options]", "[MODEL.gguf]", options,
    CLI_COUNT(options),
    "/help lists what can be typed beside messages; Ctrl-C stops an answer, Ctrl-D ends. Without a terminal each line "
    "of\ninput is a message. With --tools a call is printed as a line of JSON; the next line, one for each, is what "
    "came of it.\n",
    "  heddle chat model.gguf --system \"Answer in one sentence.\"\n", run,
};
