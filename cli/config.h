/* config.h: a config.json of Hugging Face's transformers: its numbers, held to ranges. Each says on stderr what is in
 * the way, and returns an exit code. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "cli/cli.h"

typedef struct cli_config {
    const cli_command *command;
    const char        *path;
    json_t            *root;
} cli_config;

/* Reads the file, which holds a JSON object; json_decref(out->root) ends it. */
int cli_config_read(const cli_command *command, const char *path, cli_config *out);
/* Fails with a line about a key. */
int cli_config_bad(const cli_config *config, const char *key, const char *why);
/* A whole number from 1 on; `fallback` where the key is missing or null, which is wrong where it is above `most`. */
int cli_config_whole(const cli_config *config, const char *key, uint32_t most, uint64_t fallback, uint32_t *out);
/* A number above 0 of `from`, an object in it. */
int cli_config_real(const cli_config *config, const json_t *from, const char *key, double fallback, double *out);
/* The base of the angles, their type, NULL where they are plain, and the object that tells of it: newer files have
 * rope_parameters, older ones rope_theta and rope_scaling. */
int cli_config_rope(const cli_config *config, double *out_base, const char **out_type, const json_t **out_scaling);

#endif
