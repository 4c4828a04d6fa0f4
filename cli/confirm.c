/* confirm.c: `heddle confirm`: does again what a receipt tells of, here, and says whether the same came out, or where
 * not. */
#include "cli/receipt.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 256 };

/* Commands that a receipt may be of. */
static const cli_command *const commands[] = { &cli_run, &cli_generate };

/* ---- the receipt ---- */

/* Its list of this name; NULL after a message. */
static json_t *list_of(const cli_args *args, json_t *root, const char *name) {
    json_t *list = json_object_get(root, name);
    if (json_is_array(list)) return list;
    cli_fail(args->command, "%s is no receipt: it has no list \"%s\"", args->operand, name);
    return NULL;
}

static json_t *read_receipt(const cli_args *args, const char *path) {
    json_error_t error;
    json_t *root = cli_json_load(path, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        cli_fail(args->command, "%s cannot be read as JSON: %s, line %d", path, error.text, error.line);
        return NULL;
    }
    if (json_integer_value(json_object_get(root, "receipt")) == 1 && list_of(args, root, "inputs") &&
        list_of(args, root, "outputs") && list_of(args, root, "arguments") && list_of(args, root, "devices"))
        return root;
    if (json_integer_value(json_object_get(root, "receipt")) != 1)
        cli_fail(args->command, "%s is no receipt of a kind that is known here", path);
    json_decref(root);
    return NULL;
}

/* ---- doing it again ---- */

/* The words of the receipt, and those of this machine. A receipt names no device and no file to write. */
static int words_of(const cli_args *args, json_t *root, const char *path, char **words, int *out_count) {
    json_t *list = json_object_get(root, "arguments"), *word;
    const char *device = cli_get(args, "--device");
    size_t i;
    int count = 0;
    if (json_array_size(list) > MOST_WORDS - 4)
        return cli_fail(args->command, "%s has too many arguments", args->operand);
    json_array_foreach(list, i, word) {
        const char *text = json_string_value(word), *equals = text ? strchr(text, '=') : NULL;
        char name[64] = "";
        if (text) snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : (long)strlen(text)), text);
        if (!text || (text[0] == '-' && !cli_receipt_takes(name)))
            return cli_fail(args->command, "%s: a receipt's arguments do not hold %s", args->operand,
                            text ? name : "such a value");
        words[count++] = (char *)(uintptr_t)text; /* it is only read */
    }
    static char receipt[] = "--receipt", on[] = "--device";
    words[count++] = receipt;
    words[count++] = (char *)(uintptr_t)path;
    if (device) {
        words[count++] = on;
        words[count++] = (char *)(uintptr_t)device;
    }
    *out_count = count;
    return CLI_OK;
}

/* Runs the command without its standard output; its receipt goes to `path`. */
static int run_again(const cli_args *args, json_t *root, const char *path) {
    const char *name = json_string_value(json_object_get(root, "command"));
    const cli_command *command = NULL;
    char *words[MOST_WORDS];
    cli_args again;
    int count = 0;
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (name && strcmp(commands[i]->name, name) == 0) command = commands[i];
    if (!command)
        return cli_fail(args->command, "%s is of no command that can be confirmed: run or generate", args->operand);
    int code = words_of(args, root, path, words, &count);
    if (code) return code;
    const int kept = system_silence();
    if (kept < 0) return cli_fail(args->command, "standard output cannot be silenced");
    code = cli_args_read(command, count, words, &again);
    if (!code) code = command->run(&again);
    cli_args_free(&again);
    system_speak(kept);
    return code;
}

/* ---- comparing ---- */

static const char *text_of(json_t *entry, const char *key) {
    const char *text = json_string_value(json_object_get(entry, key));
    return text ? text : "";
}

static json_t *find(json_t *list, const char *name) {
    json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
        if (strcmp(text_of(entry, "name"), name) == 0) return entry;
    return NULL;
}

static bool is_equal(json_t *a, json_t *b) {
    return strcmp(text_of(a, "sha256"), text_of(b, "sha256")) == 0 && *text_of(a, "sha256");
}

/* The first place in which two lists differ; their length where none is. */
static size_t first_difference(json_t *a, json_t *b) {
    size_t i = 0;
    while (i < json_array_size(a) && i < json_array_size(b) && json_equal(json_array_get(a, i), json_array_get(b, i)))
        i++;
    return i;
}

static void tell_difference(json_t *was, json_t *is) {
    const char *name = text_of(was, "name");
    json_t *numbers = json_object_get(was, "numbers"), *parts = json_object_get(was, "parts");
    const size_t at = first_difference(numbers ? numbers : parts, json_object_get(is, numbers ? "numbers" : "parts"));
    const json_int_t bytes = json_integer_value(json_object_get(was, "bytes"));
    if (numbers) cli_print("%s: differs from number %zu of %zu on\n", name, at + 1, json_array_size(numbers));
    else if (at < json_array_size(parts))
        cli_print("%s: differs, first in part %zu of %zu of its %lld bytes\n", name, at + 1, json_array_size(parts),
                  (long long)bytes);
    else cli_print("%s: differs\n", name);
}

/* All that went in is the same? Says what is not. */
static int check_inputs(const cli_args *args, json_t *was, json_t *is) {
    json_t *entry, *before = json_object_get(was, "inputs"), *now = json_object_get(is, "inputs");
    size_t i;
    json_array_foreach(before, i, entry) {
        json_t *other = find(now, text_of(entry, "name"));
        if (other && is_equal(entry, other)) continue;
        return cli_fail(args->command, "input \"%s\"%s%s is not what the receipt was made from; its sha256 was %s",
                        text_of(entry, "name"), *text_of(entry, "file") ? ", " : "", text_of(entry, "file"),
                        text_of(entry, "sha256"));
    }
    return CLI_OK;
}

static int check_outputs(json_t *was, json_t *is) {
    json_t *entry, *before = json_object_get(was, "outputs"), *now = json_object_get(is, "outputs");
    size_t i, equal = 0;
    json_array_foreach(before, i, entry) {
        json_t *other = find(now, text_of(entry, "name"));
        if (other && is_equal(entry, other)) equal++;
        else tell_difference(entry, other);
    }
    const bool same = equal == json_array_size(before) && equal > 0;
    const char *there = text_of(json_array_get(json_object_get(was, "devices"), 0), "name"),
               *here = text_of(json_array_get(json_object_get(is, "devices"), 0), "name");
    cli_print("%s: %zu of %zu outputs are those of the receipt, to the byte; made on %s, done again on %s\n",
              same ? "equal" : "not equal", equal, json_array_size(before), there, here);
    if (!same && strcmp(text_of(was, "math"), "exact") != 0)
        cli_print(
            "the receipt is of fast arithmetic, whose bits differ between devices; with --math exact they do not\n");
    return same ? CLI_OK : CLI_FAILED;
}

static int confirm(const cli_args *args) {
    char path[1024];
    json_t *was = read_receipt(args, args->operand), *is = NULL;
    if (!was) return CLI_FAILED;
    const bool made = system_temporary(path, sizeof path);
    int code = made ? run_again(args, was, path) : cli_fail(args->command, "no temporary file can be made");
    if (!code && !(is = read_receipt(args, path))) code = CLI_FAILED;
    if (!code) code = check_inputs(args, was, is);
    if (!code) code = check_outputs(was, is);
    if (made) system_remove(path);
    json_decref(was);
    json_decref(is);
    return code;
}

static const cli_option options[] = { CLI_OPTION_DEVICE };

const cli_command cli_confirm = {
    "confirm", "does again what a receipt tells of, and says whether it came out the same",
    "confirm RECEIPT.json [--device ID]",
    "RECEIPT.json", options, CLI_COUNT(options),
    "Receipts are written by `heddle run --receipt` and `heddle generate --receipt`. Files are looked for\n"
    "under the names that the receipt has. Exit code: 0 equal, 1 not equal or not possible.\n",
    "  heddle run ffn.hd --in x=x.npy --math exact --receipt r.json\n  heddle confirm r.json --device cpu\n", confirm
};
