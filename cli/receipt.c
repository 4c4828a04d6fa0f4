/* receipt.c: writing receipts. Hashes are SHA-256, so that sha256sum can check the files. */
#include "cli/receipt.h"
#include <errno.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 64 }; /* of an output, each with a hash of its own: to tell where two differ */

bool cli_receipt_takes(const char *option) {
    static const char *const none[] = { "--receipt", "--device", "--out",     "--trace",   "--save",
                                        "--json",    "--quiet",  "--timings", "--metrics", "--prompt-cache" };
    for (size_t i = 0; i < CLI_COUNT(none); i++)
        if (strcmp(option, none[i]) == 0) return false;
    return true;
}

/* ---- hashes ---- */

static json_t *hex_of(struct sha256_ctx *hash, size_t bytes) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[2 * SHA256_DIGEST_SIZE + 1];
    sha256_digest(hash, bytes, digest);
    for (size_t i = 0; i < bytes; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return json_string(text);
}

static json_t *hash_of(const void *bytes, size_t count, size_t digest_bytes) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, count, bytes);
    return hex_of(&hash, digest_bytes);
}

/* {"name": ..., "bytes": ..., "sha256": ...} in the list. */
static json_t *add(cli_receipt *r, json_t *list, const char *name, uint64_t bytes, json_t *hash) {
    json_t *entry = json_object();
    cli_put(entry, "name", cli_json_text(name), &r->ok);
    cli_put(entry, "bytes", json_integer((json_int_t)bytes), &r->ok);
    cli_put(entry, "sha256", hash, &r->ok);
    if (json_array_append_new(list, entry)) r->ok = false;
    return entry;
}

bool cli_receipt_file(cli_receipt *r, const char *name, const char *path) {
    enum { PIECE = 1 << 20 };
    if (!r->root) return true;
    FILE *file = system_open(path, "rb");
    uint8_t *piece = malloc(PIECE);
    struct sha256_ctx hash;
    uint64_t bytes = 0;
    size_t got = 0;
    sha256_init(&hash);
    while (file && piece && (got = fread(piece, 1, PIECE, file)) > 0) {
        sha256_update(&hash, got, piece);
        bytes += got;
    }
    const bool read = file && piece && !ferror(file);
    if (file) fclose(file);
    free(piece);
    if (!read) cli_fail(r->command, "--receipt: %s cannot be read: %s", path, strerror(errno));
    else
        cli_put(add(r, r->inputs, name, bytes, hex_of(&hash, SHA256_DIGEST_SIZE)), "file", cli_json_text(path), &r->ok);
    return read;
}

void cli_receipt_input(cli_receipt *r, const char *name, const void *bytes, size_t count) {
    if (r->root) add(r, r->inputs, name, count, hash_of(bytes, count, SHA256_DIGEST_SIZE));
}

/* The first bytes of each part's hash; the part's bytes are a multiple of 8. */
static json_t *parts_of(cli_receipt *r, const uint8_t *bytes, size_t count) {
    const size_t step = ((count + PARTS - 1) / PARTS + 7) & ~(size_t)7;
    json_t *parts = json_array();
    for (size_t at = 0; at < count; at += step)
        if (json_array_append_new(parts, hash_of(bytes + at, count - at < step ? count - at : step, 4))) r->ok = false;
    return parts;
}

void cli_receipt_output(cli_receipt *r, const char *name, const void *bytes, size_t count) {
    if (!r->root) return;
    json_t *entry = add(r, r->outputs, name, count, hash_of(bytes, count, SHA256_DIGEST_SIZE));
    cli_put(entry, "parts", parts_of(r, bytes, count), &r->ok);
}

void cli_receipt_numbers(cli_receipt *r, const char *name, const int32_t *numbers, size_t count) {
    const size_t bytes = count * sizeof *numbers;
    if (!r->root) return;
    json_t *entry = add(r, r->outputs, name, bytes, hash_of(numbers, bytes, SHA256_DIGEST_SIZE)), *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, json_integer(numbers[i]))) r->ok = false;
    cli_put(entry, "numbers", list, &r->ok);
}

void cli_receipt_option(cli_receipt *r, const char *name, const char *value) {
    if (!r->root) return;
    for (size_t i = json_array_size(r->arguments); i-- > 0;) {
        const char *word = json_string_value(json_array_get(r->arguments, i));
        if (!word || strcmp(word, name) != 0 || i + 1 >= json_array_size(r->arguments)) continue;
        json_array_remove(r->arguments, i + 1);
        json_array_remove(r->arguments, i);
    }
    if (value && (json_array_append_new(r->arguments, json_string(name)) ||
                  json_array_append_new(r->arguments, cli_json_text(value))))
        r->ok = false;
}

/* ---- who did it ---- */

void cli_receipt_device(cli_receipt *r, const hd_device *device) {
    if (!r->root) return;
    const hd_device_info *info = hd_device_get_info(device);
    json_t *entry = json_object();
    cli_put(entry, "id", cli_json_text(info->id), &r->ok);
    cli_put(entry, "name", cli_json_text(info->name), &r->ok);
    cli_put(entry, "driver", cli_json_text(info->driver), &r->ok);
    if (json_array_append_new(r->devices, entry)) r->ok = false;
}

void cli_receipt_kernel(cli_receipt *r, const hd_timing *timing) {
    char hash[17];
    size_t i;
    json_t *there;
    if (!r->root) return;
    json_t *entry = json_object();
    cli_put(entry, "name", cli_json_text(timing->kernel), &r->ok);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)timing->module);
    if (timing->module) cli_put(entry, "module", json_string(hash), &r->ok);
    json_array_foreach(r->kernels, i, there)
        if (json_equal(there, entry)) {
            json_decref(entry);
            return;
        }
    if (json_array_append_new(r->kernels, entry)) r->ok = false;
}

/* ---- begin and end ---- */

static json_t *command_of(const cli_args *args, bool *ok) {
    json_t *words = json_array();
#define WORD(text) (*ok = json_array_append_new(words, cli_json_text(text)) == 0 && *ok)
    for (size_t i = 0; i < args->operand_count; i++) WORD(args->operands[i]);
    for (size_t i = 0; i < args->given_count; i++) {
        if (!cli_receipt_takes(args->given[i].option->name)) continue;
        WORD(args->given[i].option->name);
        if (args->given[i].option->value) WORD(args->given[i].value);
    }
#undef WORD
    return words;
}

void cli_receipt_begin(const cli_args *args, hd_math math, cli_receipt *r) {
    *r = (cli_receipt){ .command = args->command, .path = cli_get(args, "--receipt"), .ok = true };
    if (!r->path) return;
    r->root = json_object();
    cli_put(r->root, "receipt", json_integer(1), &r->ok);
    cli_put(r->root, "heddle", cli_json_text(hd_version()), &r->ok);
    cli_put(r->root, "command", cli_json_text(args->command->name), &r->ok);
    cli_put(r->root, "arguments", r->arguments = command_of(args, &r->ok), &r->ok);
    cli_put(r->root, "math", json_string(math == HD_MATH_EXACT ? "exact" : "fast"), &r->ok);
    cli_put(r->root, "devices", r->devices = json_array(), &r->ok);
    cli_put(r->root, "kernels", r->kernels = json_array(), &r->ok);
    cli_put(r->root, "inputs", r->inputs = json_array(), &r->ok);
    cli_put(r->root, "outputs", r->outputs = json_array(), &r->ok);
}

void cli_receipt_drop(cli_receipt *r) {
    json_decref(r->root);
    *r = (cli_receipt){ 0 };
}

int cli_receipt_end(cli_receipt *r) {
    int code = CLI_OK;
    if (!r->root) return code;
    if (json_array_size(r->kernels) == 0) json_object_del(r->root, "kernels");
    if (!r->ok) code = cli_fail(r->command, "no memory is left");
    else if (!cli_json_save(r->root, r->path, JSON_INDENT(2)))
        code = cli_fail(r->command, "--receipt: %s cannot be written", r->path);
    cli_receipt_drop(r);
    return code;
}
