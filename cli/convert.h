/* convert.h: what `heddle convert` is made of: a folder as Hugging Face's transformers keep a model, and its parts as
 * keys and tensors of a GGUF file. A family is a row of convert_families.c; the other files know none. Each part says
 * on stderr what is in the way, and returns an exit code. */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "cli/config.h"
#include <heddle_llm.h>
#include <heddle_train.h>

enum { CLI_CONVERT_SHARDS = 512, CLI_CONVERT_LAYERS = 1024, CLI_CONVERT_EXPERTS = 1024, CLI_CONVERT_NAME = 80 };

/* ---- families ---- */

/* JSON as a text. */
#define CLI_JSON(...) #__VA_ARGS__

/* How a tensor lies in the folder, seen from GGUF's. */
typedef enum cli_form {
    CLI_QUERIES     = 1,        /* rows of queries, or of keys, which some families turn by neighbours */
    CLI_KEYS        = 1 << 1,
    CLI_GROUPED     = 1 << 2,   /* of each group of heads its queries, its key and its value; not all queries first */
    CLI_FIRST_HALF  = 1 << 3,   /* a half of the rows, or every second one */
    CLI_SECOND_HALF = 1 << 4,
    CLI_EVEN        = 1 << 5,
    CLI_ODD         = 1 << 6,
    CLI_TRANSPOSED  = 1 << 7,   /* a matrix of columns */
    CLI_EACH        = 1 << 8,   /* the first axis is that of the experts */
    CLI_ONE_ROW     = 1 << 9,   /* a matrix of one row, which is a vector */
    CLI_BLOCKS      = 1 << 10,  /* of MXFP4, of each expert; a tensor beside it has the scales */
    CLI_AS_F32      = 1 << 11,  /* f32 in GGUF, as norms and biases are, since llama.cpp reads nothing else there */
    CLI_TERNARY     = 1 << 12,  /* in folders of bitnet -1, 0 and 1, packed, or what becomes such; a factor is beside */
    CLI_HEAD_KEYS   = 1 << 13,  /* of each head the first rows, as columns (latent_keys); the rest */
    CLI_HEAD_VALUES = 1 << 14,
} cli_form;

/* A part of a layer: its name behind the layer's number, and GGUF's behind "blk.N.", both without ".weight" and
 * ".bias"; where GGUF's has a dot, both are whole names. '*' stands for the number of an expert, of whom GGUF's tensor
 * holds all. No name in GGUF: it is left out. One that is cut has a row for each piece. */
typedef struct cli_part {
    const char *from, *to;
    unsigned    form;
} cli_part;

/* What GGUF has a key for and not all families have. */
typedef enum cli_figure_kind {
    CLI_WHOLE,
    CLI_WHOLE_OR_NONE, /* left out where it is 0 or null */
    CLI_REAL,
    CLI_REAL_OR_NONE, /* 0 where it is null */
    CLI_SWITCH,
} cli_figure_kind;
typedef struct cli_figure {
    const char     *from, *to;  /* in config.json; behind "<architecture>." */
    cli_figure_kind kind;
} cli_figure;

typedef enum cli_trait {
    CLI_NEIGHBOURS    = 1,      /* neighbours turn where transformers turn halves: rows change places */
    CLI_LAYER_NORM    = 1 << 1,
    CLI_NORMS_PLUS_1  = 1 << 2, /* norms multiply by 1 + weight, and GGUF's hold the sum */
    CLI_STILL         = 1 << 3, /* nothing turns */
    CLI_ENCODES       = 1 << 4, /* it answers with vectors */
    CLI_YARN_BETWEEN  = 1 << 5, /* the bounds of its YaRN are no whole pairs */
    CLI_BITNET        = 1 << 6, /* folders of quant_method bitnet are taken, and none of mxfp4 */
    CLI_LATENT        = 1 << 7, /* keys and values of all heads are made of one short vector */
} cli_trait;

/* A family of models. */
typedef struct cli_conversion cli_conversion;
typedef struct cli_family {
    const char       *class_name, *name;  /* in config.json; in GGUF */
    const char       *layers;             /* what stands before a layer's number */
    const cli_part   *parts;              /* these lists end with a row of zeros */
    const cli_figure *figures;            /* NULL: none */
    unsigned          traits;
    /* How many layers have a window, where the folder has one: 0: none, 1: all, n: of so many all but the last. */
    uint32_t          windows;
    const char       *defaults;           /* JSON: what the class takes where config.json says nothing; NULL: nothing */
    /* JSON: what keys have to say, a list for one of several; an empty one: anything. Where a key is not there, common
     * rules hold (convert_config.c). */
    const char       *wanted;
    int (*adapt)(cli_conversion *c);      /* changes config.json to what the rows above say; NULL: nothing */
    const char       *left_out[4];        /* beginnings of names of tensors that belong to other parts of a model */
} cli_family;

/* convert_families.c: the family whose class has this name; NULL: none. */
const cli_family *cli_convert_family(const char *class_name);
/* "Cohere, Falcon, ...": the classes, without what they end with. */
void cli_convert_families(char *out, size_t room);

/* ---- conversion ---- */

/* A tensor of the file to be, and where its elements lie. */
typedef enum cli_order { CLI_BY_STEPS, CLI_BY_TURNS, CLI_BY_GROUPS } cli_order;
typedef struct cli_converted {
    char           name[CLI_CONVERT_NAME];
    const void    *data;        /* all of it; NULL: each[] has that of each expert */
    const void   **each;        /* as many as there are experts; some NULL while not all were found */
    const uint8_t *scales;      /* of MXFP4 */
    /* Of numbers in 8 bits: the factors of their blocks, [rows / block, columns / block], or each expert's */
    const hd_safetensor *factors, **each_factors;
    uint64_t       block_rows, block_columns;
    bool           e5m2;        /* these have 5 bits of exponent, not 4 */
    hd_dtype       from, to;
    uint32_t       axes;        /* beside that of the experts: 1 or 2 */
    uint64_t       experts;     /* 0: no axis of them */
    uint64_t       rows, columns, old_rows; /* of one expert; old_rows: in the folder */
    uint64_t       apart;       /* elements from one expert to the next in the folder; 0: old_rows * columns */
    cli_order      order;
    uint64_t       first, step; /* BY_STEPS: old row = first + step * row */
    uint64_t       size;        /* BY_TURNS and BY_GROUPS: rows of a head */
    uint64_t       groups, queries; /* BY_GROUPS: how many, and heads of queries in each */
    bool           transposed;
    float          plus;        /* added to each element */
    bool           packed;      /* four ternary rows in each of bytes: rows 0, 1, ... first, in the lowest bits */
    float          mean;        /* of ternary ones that are floats: what they are rounded in units of; 0: no such */
} cli_converted;

struct cli_conversion {
    cli_session       *session;
    const cli_command *command;
    const char        *folder;
    cli_config         config;
    char               config_path[4096];
    json_t            *tokenizer, *tokenizer_config; /* the last one may be NULL */
    const cli_family  *family;
    uint32_t           layers, heads, kv_heads, head_size, turning, hidden, vocabulary, context, experts;
    uint32_t           value_size;  /* of a head */
    uint32_t           latent_keys; /* of a head's key, what does not turn, where it is made of a short vector */
    /* Of matrices of numbers in 8 bits: their type, what their factors' names have behind theirs, and for how many rows
     * and columns a factor is. NULL: the folder has no such. */
    const char        *eights, *factors;
    uint32_t           block_rows, block_columns;
    bool               tied, rounds; /* rounds: to ternary weights, as a model of bitnet does when it computes */
    hd_safetensors    *shards[CLI_CONVERT_SHARDS];
    size_t             shard_count;
    hd_model_writer   *writer;
    cli_converted     *tensors;
    size_t             tensor_count, tensor_room;
    const void       **stacks;  /* the each[] of all of them, then the each_factors[] */
    size_t             stack_room, stack_count;
    float              divisors[2][512]; /* of the angles: tensors that no shard has */
};

/* A file of the folder as JSON; NULL where it is not there, or after a message where it is no JSON: *code tells. */
json_t *cli_convert_json(const cli_conversion *c, const char *name, bool needed, int *code);
/* convert_config.c: the family, and keys of the architecture. */
int cli_convert_config(cli_conversion *c);
/* Keys behind "<architecture>.". */
void cli_convert_u32(cli_conversion *c, const char *rest, uint32_t value);
void cli_convert_f32(cli_conversion *c, const char *rest, double value);
void cli_convert_bool(cli_conversion *c, const char *rest, bool value);
void cli_convert_text(cli_conversion *c, const char *rest, const char *text);
/* convert_rope.c: keys of rotary embedding, and tensors of its divisors, once there is room for tensors. */
int cli_convert_rope(cli_conversion *c);
/* convert_tokenizer.c: keys of the vocabulary. */
int cli_convert_tokenizer(cli_conversion *c);
/* Says what is wrong with tokenizer.json. */
/* Whether an object has this text under a key. */
bool cli_convert_is(const json_t *of, const char *key, const char *wanted);
int cli_convert_bad_tokenizer(const cli_conversion *c, const char *what);

/* The tokens by id while their keys are made. */
typedef enum cli_token { CLI_NORMAL = 1, CLI_UNKNOWN, CLI_CONTROL, CLI_USER, CLI_UNUSED, CLI_BYTE } cli_token;
typedef struct cli_vocabulary {
    const char **texts;
    char       (*pads)[32];     /* texts of rows of the embedding that no token has */
    int32_t     *types;         /* cli_token */
    float       *scores;
    size_t       count;
} cli_vocabulary;
/* convert_vocabulary.c: all tokens. */
int cli_convert_vocabulary(const cli_conversion *c, cli_vocabulary *out);
void cli_convert_vocabulary_free(cli_vocabulary *v);
/* The id of a text; -1: no token has it. */
int64_t cli_convert_find(const cli_vocabulary *v, const char *text);
/* convert_pre.c: GGUF's name of the pattern by which pre_tokenizer cuts text into words; NULL: it has none. */
const char *cli_convert_pattern(const json_t *tokenizer);
/* Whether a byte-level BPE takes its text as it comes, or at most composed. */
bool cli_convert_is_plain(const json_t *normalizer);
/* convert_pieces.c: the scores of a BPE with byte fallback, whose merges they are; what is never made is unused. */
int cli_convert_scores(const cli_conversion *c, cli_vocabulary *v);
/* Whether text is written as SentencePiece writes it, and a space put before it. */
bool cli_convert_spaces(const json_t *tokenizer, bool *out_prefix);
/* convert_tensors.c: opens the shards and puts every tensor. */
int cli_convert_tensors(cli_conversion *c);
/* convert_fill.c: an hd_tensor_fill of a cli_converted. */
bool cli_convert_fill(void *user, uint64_t from, uint64_t bytes, void *out);
/* All of it: reads the folder and writes the file, which then opens as a model. */
int cli_convert_folder(cli_session *session, const char *folder, const char *out_path, uint64_t *out_tensors);

#endif
