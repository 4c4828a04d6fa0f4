/* args.c: reads a command line by the command's table of options, and prints help from the same table, so that no
 * option can be read but not explained. "--name value" and "--name=value" are taken, "-n 3" and "-n3". */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

#define HELP_OPTION "--help"

/* ---- names ---- */

enum { LONGEST_NAME = 40 };

/* The number of letters to put in, take out, replace or swap with the next one. */
static size_t distance(const char *a, const char *b) {
    size_t a_length = strlen(a), b_length = strlen(b), rows[3][LONGEST_NAME + 1];
    if (a_length > LONGEST_NAME || b_length > LONGEST_NAME) return LONGEST_NAME;
    for (size_t k = 0; k <= b_length; k++) rows[0][k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            size_t best = above[k - 1] + (a[i - 1] != b[k - 1]);
            if (above[k] + 1 < best) best = above[k] + 1;
            if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && two_above[k - 2] + 1 < best)
                best = two_above[k - 2] + 1;
            row[k] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *cli_nearest(const char *text, const char *const *names, size_t count) {
    const char *best = NULL, *begun = NULL;
    /* so many mistakes, or more: another word */
    size_t length = strlen(text), least = length < 3 ? 1 : length < 5 ? 2 : 3, begun_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (length >= 2 && strncmp(names[i], text, length) == 0) {
            begun = names[i];
            begun_count++;
        }
        size_t there = distance(text, names[i]);
        if (there < least) {
            least = there;
            best = names[i];
        }
    }
    return best || begun_count != 1 ? best : begun;
}

/* ---- reading ---- */

static const cli_option *find(const cli_command *command, const char *name, size_t length) {
    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length && memcmp(command->options[i].name, name, length) == 0)
            return &command->options[i];
    return NULL;
}

static int unknown_option(const cli_command *command, const char *word) {
    const char *names[64] = { HELP_OPTION }, *near = NULL;
    char name[LONGEST_NAME + 1];
    size_t count = 1, length = strcspn(word, "=");
    for (; count <= command->option_count && count < CLI_COUNT(names); count++)
        names[count] = command->options[count - 1].name;
    if (length < sizeof name) {
        memcpy(name, word, length);
        name[length] = 0;
        near = cli_nearest(name, names, count);
    }
    return near ? cli_usage(command, "no option %s; did you mean %s?", word, near)
                : cli_usage(command, "no option %s", word);
}

/* Reads the option in words[*at], and its value in the next word where it needs one. */
static int read_option(const cli_command *command, int count, char **words, int *at, cli_args *args) {
    const char *word = words[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find(command, word, length), *letter = find(command, word, 2);
    const bool joined = !option && letter && letter->value; /* "-n3" */
    if (joined) option = letter;
    if (!option) return unknown_option(command, word);
    const char *value = "";
    if (joined) value = word + 2;
    else if (option->value && equals) value = equals + 1;
    else if (option->value && *at + 1 < count) value = words[++*at];
    else if (option->value)
        return cli_usage(command, "%s needs a value: %s %s", option->name, option->name, option->value);
    else if (equals) return cli_usage(command, "%s takes no value", option->name);
    args->given[args->given_count++] = (cli_given){ option, value };
    return CLI_OK;
}

/* How many operands a command takes, by what its table says of them. */
static size_t most_operands(const char *operand) {
    const size_t length = operand ? strlen(operand) : 0;
    if (length == 0) return 0;
    if (length > 4 && strcmp(operand + length - 4, " ...") == 0) return SIZE_MAX;
    size_t words = 1;
    for (const char *at = operand; *at; at++) words += *at == ' ';
    return words;
}

static int take_operand(const cli_command *command, const char *word, cli_args *args) {
    const size_t most = most_operands(command->operand);
    if (most == 0) return cli_usage(command, "takes no \"%s\"", word);
    if (args->operand_count == most)
        return most == 1 ? cli_usage(command, "takes one %s, and \"%s\" is a second", command->operand, word)
                         : cli_usage(command, "takes %s, and \"%s\" is one too many", command->operand, word);
    if (args->operand_count == 0) args->operand = word;
    args->operands[args->operand_count++] = word;
    return CLI_OK;
}

static int check_operands(const cli_command *command, const cli_args *args) {
    const size_t most = most_operands(command->operand), least = most == SIZE_MAX ? 1 : most;
    if (most == 0 || command->operand[0] == '[' || args->operand_count >= least) return CLI_OK;
    return cli_usage(command, "needs %s", command->operand);
}

int cli_args_read(const cli_command *command, int count, char **words, cli_args *out_args) {
    *out_args = (cli_args){ .command = command };
    out_args->given = calloc((size_t)count + 1, sizeof *out_args->given);
    out_args->operands = calloc((size_t)count + 1, sizeof *out_args->operands);
    if (!out_args->given || !out_args->operands) return cli_fail(command, "no memory is left");
    bool options = true;
    for (int at = 0; at < count; at++) {
        const char *word = words[at];
        if (options && strcmp(word, "--") == 0) options = false;
        else if (options && (strcmp(word, HELP_OPTION) == 0 || strcmp(word, "-h") == 0)) {
            cli_help(command);
            return -1;
        } else if (options && word[0] == '-' && word[1]) {
            int code = read_option(command, count, words, &at, out_args);
            if (code) return code;
        } else {
            int code = take_operand(command, word, out_args);
            if (code) return code;
        }
    }
    return check_operands(command, out_args);
}

void cli_args_free(cli_args *args) {
    free(args->given);
    free(args->operands);
    *args = (cli_args){ 0 };
}

const char *cli_next(const cli_args *args, const char *name, size_t *at) {
    while (*at < args->given_count) {
        const cli_given *given = &args->given[(*at)++];
        if (strcmp(given->option->name, name) == 0) return given->value;
    }
    return NULL;
}

const char *cli_get(const cli_args *args, const char *name) {
    const char *last = NULL, *value;
    for (size_t at = 0; (value = cli_next(args, name, &at));) last = value;
    return last;
}

bool cli_number(const char *text, uint64_t high, uint64_t *out) {
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text, *known = hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t length = strlen(digits);
    if (length == 0 || length > (hex ? 16u : 19u) || strspn(digits, known) != length) return false;
    *out = strtoull(digits, NULL, hex ? 16 : 10);
    return *out <= high;
}

bool cli_next_item(const char *list, size_t *at, char *out, size_t room) {
    while (list[*at] == ',') ++*at;
    const size_t length = strcspn(list + *at, ",");
    snprintf(out, room, "%.*s", (int)(length < room ? length : room), list + *at);
    *at += length;
    return length > 0;
}

bool cli_get_number(const cli_args *args, const char *name, uint64_t low, uint64_t high, uint64_t fallback,
                    uint64_t *out) {
    const char *text = cli_get(args, name);
    *out = fallback;
    if (!text || (cli_number(text, high, out) && *out >= low)) return true;
    cli_usage(args->command, "%s is a whole number of %llu to %llu, not \"%s\"", name, (unsigned long long)low,
              (unsigned long long)high, text);
    return false;
}

bool cli_get_fraction(const cli_args *args, const char *name, double low, double high, double fallback, double *out) {
    const char *text = cli_get(args, name);
    char *end = NULL;
    *out = fallback;
    if (!text) return true;
    *out = strtod(text, &end);
    if (end != text && *end == 0 && *out >= low && *out <= high) return true;
    cli_usage(args->command, "%s is a number of %g to %g, not \"%s\"", name, low, high, text);
    return false;
}

bool cli_get_bytes(const cli_args *args, const char *name, uint64_t *out) {
    static const char letters[] = "kmgt";
    const char *text = cli_get(args, name), *letter = NULL;
    char *end = NULL;
    *out = 0;
    if (!text) return true;
    const double number = strtod(text, &end);
    if (end != text && *end) letter = strchr(letters, *end | 32);
    const double bytes = number * (letter ? (double)(UINT64_C(1) << (10 * (letter - letters + 1))) : 1);
    if (end != text && (*end == 0 || (letter && end[1] == 0)) && bytes >= 1 && bytes < 9e18) {
        *out = (uint64_t)bytes;
        return true;
    }
    cli_usage(args->command, "%s is a number of bytes such as 512M or 3.5G, not \"%s\"", name, text);
    return false;
}

bool cli_get_math(const cli_args *args, hd_math *out) {
    const char *text = cli_get(args, "--math");
    *out = !text ? HD_MATH_DEFAULT : strcmp(text, "fast") == 0 ? HD_MATH_FAST : HD_MATH_EXACT;
    if (!text || *out == HD_MATH_FAST || strcmp(text, "exact") == 0) return true;
    cli_usage(args->command, "--math is exact or fast, not \"%s\"", text);
    return false;
}

/* ---- help ---- */

static void print_option(const cli_option *option, size_t width) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
    cli_print_item(left, width, option->help);
}

void cli_help(const cli_command *command) {
    char head[512];
    size_t width = 0;
    snprintf(head, sizeof head, "heddle %s: %s\nusage: heddle %s\n", command->name, command->summary,
             command->usage);
    cli_print_lines(head);
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        size_t length = strlen(option->name) + (option->value ? 1 + strlen(option->value) : 0);
        if (length > width) width = length;
    }
    for (size_t i = 0; i < command->option_count; i++) print_option(&command->options[i], width);
    if (command->notes) cli_print("\n");
    if (command->notes) cli_print_lines(command->notes);
    cli_print("example:\n%s", command->example);
}
