/* config.c: reads config.json. */
#include "cli/config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1 << 20 };

int cli_config_read(const cli_command *command, const char *path, cli_config *out) {
    size_t bytes;
    json_error_t why;
    *out = (cli_config){ .command = command, .path = path };
    char *text = cli_read_text(command, path, LIMIT, &bytes);
    if (!text) return CLI_FAILED;
    out->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (json_is_object(out->root)) return CLI_OK;
    return cli_fail(command, "%s is no JSON object: %s", path, out->root ? "" : why.text);
}

int cli_config_bad(const cli_config *config, const char *key, const char *why) {
    return cli_fail(config->command, "%.300s: %s %s", config->path, key, why);
}

int cli_config_whole(const cli_config *config, const char *key, uint32_t most, uint64_t fallback, uint32_t *out) {
    const json_t *value = json_object_get(config->root, key);
    const bool missing = !value || json_is_null(value);
    if (!missing && !json_is_integer(value)) return cli_config_bad(config, key, "is no whole number");
    const json_int_t number = missing ? (json_int_t)fallback : json_integer_value(value);
    if (missing && fallback > most) return cli_config_bad(config, key, "is missing");
    if (number < 1 || number > (json_int_t)most) return cli_config_bad(config, key, "is out of range");
    *out = (uint32_t)number;
    return CLI_OK;
}

int cli_config_real(const cli_config *config, const json_t *from, const char *key, double fallback, double *out) {
    const json_t *value = json_object_get(from, key);
    *out = json_is_number(value) ? json_number_value(value) : fallback;
    if ((value && !json_is_null(value) && !json_is_number(value)) || !isfinite(*out))
        return cli_config_bad(config, key, "is no number");
    return *out > 0 && *out < 1e30 ? CLI_OK : cli_config_bad(config, key, "is missing or out of range");
}

int cli_config_rope(const cli_config *config, double *out_base, const char **out_type, const json_t **out_scaling) {
    const json_t *parameters = json_object_get(config->root, "rope_parameters"),
                 *scaling = json_object_get(config->root, "rope_scaling");
    if (json_is_object(parameters)) scaling = parameters;
    const json_t *from = json_object_get(scaling, "rope_theta") ? scaling : config->root;
    const json_t *newer = json_object_get(scaling, "rope_type"), *older = json_object_get(scaling, "type"),
                 *said = newer ? newer : older;
    const char *type = json_string_value(said);
    if (scaling && !json_is_null(scaling) && !json_is_object(scaling))
        return cli_config_bad(config, "rope_scaling", "is no object");
    if (said && !type) return cli_config_bad(config, "rope_scaling", "has a type that is no text");
    *out_type = type && strcmp(type, "default") != 0 ? type : NULL;
    *out_scaling = scaling;
    if (!type && json_is_object(scaling) && scaling != parameters)
        return cli_config_bad(config, "rope_scaling", "has no type");
    return cli_config_real(config, from, "rope_theta", 10000, out_base);
}
