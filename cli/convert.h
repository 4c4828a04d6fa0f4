/* convert.h: what `heddle convert` is made of: a folder as Hugging Face's transformers keep a model, and its parts as
 * keys and tensors of a GGUF file. Each part says on stderr what is in the way, and returns an exit code. */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "cli/config.h"
#include <heddle_llm.h>
#include <heddle_train.h>

enum { CLI_CONVERT_SHARDS = 512, CLI_CONVERT_LAYERS = 1024 };

/* A family of models: its class in config.json, its name in GGUF, and whether the rows of queries and keys are put in
 * another order, since GGUF's family turns neighbours where transformers turn halves. */
typedef struct cli_family {
    const char *class_name, *name;
    bool        turns_neighbours;
} cli_family;

/* A tensor of the file to be: rows of `data`, in another order where heads is above 0. */
typedef struct cli_converted {
    const void *data;
    hd_dtype    from, to;
    uint64_t    row;      /* elements */
    uint64_t    heads, head_rows;
} cli_converted;

typedef struct cli_conversion {
    cli_session       *session;
    const cli_command *command;
    const char        *folder;
    cli_config         config;
    char               config_path[4096];
    json_t            *tokenizer, *tokenizer_config; /* the last one may be NULL */
    const cli_family  *family;
    uint32_t           layers, heads, kv_heads, head_size, hidden, vocabulary;
    bool               tied;
    hd_safetensors    *shards[CLI_CONVERT_SHARDS];
    size_t             shard_count;
    hd_model_writer   *writer;
    cli_converted        *tensors;
    size_t             tensor_count;
    float              divisors[512]; /* Llama 3's, of the angles: a tensor that no shard has */
} cli_conversion;

/* A file of the folder as JSON; NULL where it is not there, or after a message where it is no JSON: *code tells. */
json_t *cli_convert_json(const cli_conversion *c, const char *name, bool needed, int *code);
/* convert_config.c: the family, and keys of the architecture. */
int cli_convert_config(cli_conversion *c);
/* The keys of rotary embedding, once there is room for tensors: one of them may be made here. */
int cli_convert_rope(cli_conversion *c);
/* convert_tokenizer.c: keys of the vocabulary. */
int cli_convert_tokenizer(cli_conversion *c);
/* convert_tensors.c: opens the shards and puts every tensor. */
int cli_convert_tensors(cli_conversion *c);
/* All of it: reads the folder and writes the file. */
int cli_convert_folder(cli_session *session, const char *folder, const char *out_path, uint64_t *out_tensors);

#endif
