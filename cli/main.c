/* main.c: picks the command. Also keeps a promise for all of them: output that could not be written is an error. */
#include "cli/cli.h"
#include <errno.h>
#include <string.h>

static const cli_command *const commands[] = {
    &cli_generate, &cli_chat, &cli_see, &cli_info, &cli_tokenize, &cli_fit, &cli_train, &cli_finetune, &cli_merge,
    &cli_convert, &cli_quantize, &cli_importance, &cli_perplexity, &cli_embed, &cli_bench_threshold, &cli_bench_ops,
    &cli_bench_transfer, &cli_bench_batch, &cli_bench_stream, &cli_bench_route, &cli_bench_llm, &cli_bench_report,
    &cli_bench_compare,
    &cli_devices, &cli_doctor, &cli_verify, &cli_stress, &cli_tune, &cli_run, &cli_explain, &cli_exec, &cli_confirm,
};

/* Whether the command's name is two words of which this is the first one. */
static bool is_of_family(const cli_command *command, const char *word) {
    const size_t length = strlen(word);
    return strncmp(command->name, word, length) == 0 && command->name[length] == ' ';
}

static void overview(void) {
    char head[128];
    snprintf(head, sizeof head, "heddle %s: machine-learning compute on any GPU and on the CPU", hd_version());
    cli_print_folded(head, 0);
    cli_print("\nusage: heddle COMMAND [options], or heddle --version\n\ncommands:\n");
    for (size_t i = 0; i < CLI_COUNT(commands); i++) cli_print_item(commands[i]->name, 15, commands[i]->summary);
    cli_print_item("help", 15, "this, or `heddle help COMMAND`");
    cli_print("\nenvironment:\n");
    for (size_t i = 0; i < cli_environment_count; i++)
        cli_print_item(cli_environment[i].name, 18, cli_environment[i].help);
    cli_print("\nexit codes: 0 done, 1 failed, 2 the command line is wrong\n\n"
           "examples:\n  heddle generate -p \"In the beginning\"\n  heddle chat model.gguf\n");
}

/* The command that the first word names, or the first two ("bench llm"); *out_words is how many words that took. */
static const cli_command *find(int count, char **words, int *out_words) {
    for (size_t i = 0; i < CLI_COUNT(commands); i++) {
        const char *name = commands[i]->name, *space = strchr(name, ' ');
        const size_t first = space ? (size_t)(space - name) : strlen(name);
        if (strlen(words[0]) != first || memcmp(words[0], name, first) != 0) continue;
        if (space && (count < 2 || strcmp(words[1], space + 1) != 0)) continue;
        *out_words = space ? 2 : 1;
        return commands[i];
    }
    return NULL;
}

/* The commands of two words whose first one this is; returns their number. */
static size_t find_family(const char *word, const cli_command *out_family[CLI_COUNT(commands)]) {
    size_t count = 0;
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (is_of_family(commands[i], word)) out_family[count++] = commands[i];
    return count;
}

/* A word, or two, that are no command: what comes near, or what there is of a family. */
static int unknown(int count, char **words) {
    const char *names[CLI_COUNT(commands) + 1] = { "help" };
    const cli_command *family[CLI_COUNT(commands)];
    const size_t of_family = find_family(words[0], family);
    char both[64], list[256] = ""; /* "bnech llm" is near to a name, "bnech" is not */
    snprintf(both, sizeof both, "%s%s%s", words[0], count > 1 ? " " : "", count > 1 ? words[1] : "");
    for (size_t i = 0; i < CLI_COUNT(commands); i++) names[i + 1] = commands[i]->name;
    const char *near = of_family ? NULL : cli_nearest(words[0], names, CLI_COUNT(names));
    if (!near && count > 1) near = cli_nearest(both, names, CLI_COUNT(names));
    if (near) return cli_usage(NULL, "no command \"%s\"; did you mean %s?", of_family ? both : words[0], near);
    for (size_t i = 0; i < of_family; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "", family[i]->name);
    if (of_family)
        return cli_usage(NULL,
                         count > 1 ? "no command \"%s\"; there are %s" : "%s is not the whole command; there are %s",
                         both, list);
    return cli_usage(NULL, "no command \"%s\"", words[0]);
}

static int help(int count, char **words) {
    const cli_command *family[CLI_COUNT(commands)];
    int used = 0;
    const cli_command *command = count > 0 ? find(count, words, &used) : NULL;
    const size_t of_family = count > 0 && !command ? find_family(words[0], family) : 0;
    if (count > 0 && !command && (count > 1 ? of_family > 0 : of_family == 0)) return unknown(count, words);
    if (count > used + (of_family > 0)) return cli_usage(NULL, "help takes one command");
    for (size_t i = 0; i < of_family; i++) cli_print_item(family[i]->name, 15, family[i]->summary);
    if (command) cli_help(command);
    else if (!of_family) overview();
    return CLI_OK;
}

static int run_command(int count, char **words) {
    const char *name = count > 0 ? words[0] : NULL;
    if (!name) return cli_usage(NULL, "no command is given");
    if (strcmp(name, "--version") == 0) {
        cli_print("heddle %s\n", hd_version());
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(count - 1, words + 1);
    int used = 0;
    const cli_command *command = find(count, words, &used);
    if (!command && count == 2 && strcmp(words[1], "--help") == 0) return help(1, words);
    if (!command) return unknown(count, words);
    cli_args args;
    int code = cli_args_read(command, count - used, words + used, &args);
    if (code == CLI_OK) code = command->run(&args);
    cli_args_free(&args);
    return code < 0 ? CLI_OK : code;
}

int main(int count, char **words) {
    words = system_begin(&count, words);
    if (!words) return cli_fail(NULL, "no memory is left");
    int code = run_command(count > 0 ? count - 1 : 0, words + 1);
    if (fflush(stdout) != 0 || ferror(stdout))
        code = cli_fail(NULL, "standard output cannot be written: %s; look where it goes", strerror(errno));
    return code;
}
