/* tokenizer.h: text to a model's token ids and back. A tokenizer is made once from a plain description of the
 * vocabulary (a model file's metadata, borrowed for the call), is read-only from then on and may be used from many
 * threads. Failures name the description's field as GGUF does. */
#ifndef HDL_TOKENIZER_H
#define HDL_TOKENIZER_H

#include "llm/support.h"

typedef struct hdl_tokenizer hdl_tokenizer;

/* How text becomes tokens. */
typedef enum hdl_vocab_kind {
    HDL_VOCAB_NONE = 0,
    HDL_VOCAB_BYTES,  /* byte-level BPE: merges by rank within the words of a pattern ("gpt2" in GGUF) */
    HDL_VOCAB_PIECES, /* SentencePiece BPE: the pair whose piece has the best score merges first ("llama") */
    HDL_VOCAB_UNIGRAM, /* SentencePiece unigram: the pieces whose scores have the largest sum ("t5") */
    HDL_VOCAB_WORDPIECE /* BERT's: words, spelled with the longest pieces from left to right ("bert") */
} hdl_vocab_kind;

/* What a token is; GGUF's numbers. */
typedef enum hdl_token_type {
    HDL_TOKEN_NORMAL = 1,
    HDL_TOKEN_UNKNOWN,  /* stands for what the vocabulary does not hold */
    HDL_TOKEN_CONTROL,  /* found in a text only with HDL_PARSE_SPECIAL, and shown only on request */
    HDL_TOKEN_USER,     /* always found in a text, before anything else */
    HDL_TOKEN_UNUSED,   /* never found in a text */
    HDL_TOKEN_BYTE      /* "<0x0A>": one byte of a character that no piece holds */
} hdl_token_type;

#define HDL_NO_TOKEN (-1)
/* Limits, each refused with HD_STATUS_LIMIT: a vocabulary, its merges, a token, a token that is looked for in the text
 * at every place (a control or user token, a unigram's piece), all tokens together, and one text. */
#define HDL_MAX_TOKENS (1u << 20)
#define HDL_MAX_MERGES (1u << 20)
#define HDL_MAX_TOKEN_BYTES ((64u << 10) - 1)
#define HDL_MAX_SOUGHT_BYTES 256u
#define HDL_MAX_VOCAB_BYTES (256u << 20)
#define HDL_MAX_TEXT_BYTES (256u << 20)

/* A vocabulary. Every list is borrowed for the call. */
typedef struct hdl_vocab_desc {
    hdl_vocab_kind   kind;
    const char      *pre;         /* BYTES: the pattern's name in GGUF, such as "gpt-2", "llama-bpe", "qwen2" */
    /* as GGUF writes them: BYTES through GPT-2's map of bytes, the others with U+2581 for a space; of WORDPIECE it
       stands before a piece that begins a word */
    const hdl_span  *tokens;
    size_t           token_count;
    const float     *scores;      /* PIECES and UNIGRAM: one for each token */
    size_t           score_count;
    const int32_t   *types;       /* one for each token, or none: all are HDL_TOKEN_NORMAL */
    size_t           type_count;
    const hdl_span  *merges;      /* BYTES: "left right", best first */
    size_t           merge_count;
    int64_t          bos, eos, unknown; /* ids, or HDL_NO_TOKEN */
    bool             add_bos, add_eos;  /* with HDL_ADD_SPECIAL */
    bool             add_space_prefix;  /* PIECES and UNIGRAM: a space goes before the text and after a control token */
    bool             lowercase, strip_accents; /* WORDPIECE: its pieces have small letters only, and no accents */
} hdl_vocab_desc;

/* Makes a tokenizer. `allocator` NULL: malloc and free. Statuses: NULL_POINTER, PARSE (a field that cannot be), LIMIT,
 * UNSUPPORTED (the pattern's name), OUT_OF_HOST_MEMORY. */
hd_status hdl_tokenizer_create(const hd_allocator *allocator, const hdl_vocab_desc *desc, hdl_tokenizer **out_tokenizer,
                               hd_error *error);
void hdl_tokenizer_destroy(hdl_tokenizer *tokenizer);

/* ---- text to ids ---- */

/* A growing list of ids. With an allocator or zeroed it is valid and empty. */
typedef struct hdl_id_list {
    hd_allocator allocator; /* zero: malloc and free */
    int32_t     *ids;
    size_t       count, capacity;
} hdl_id_list;
void hdl_id_list_free(hdl_id_list *list);
/* Copies the ids to `out_ids`, which has room for *inout_count of them; NULL: only counts. *inout_count becomes their
 * number; where it is more than the room: LIMIT, and the first ones are there. */
hd_status hdl_id_list_copy(const hdl_id_list *list, int32_t *out_ids, size_t *inout_count, hd_error *error);

enum {
    HDL_ADD_SPECIAL = 1,  /* BOS before and EOS after, as the description says */
    HDL_PARSE_SPECIAL = 2, /* control tokens in the text count; leave it out for text from strangers */
    HDL_GUARDED = 4       /* guards are left out of the text, after they kept control tokens from being found */
};
/* A character that stands in no text (U+FDD0, which Unicode gives to programs for such use). Put into what looks like a
 * control token, it keeps strangers' words apart from the control tokens that a chat template sets around them. */
#define HDL_GUARD "\xEF\xB7\x90"
/* The text with a guard in each control token that it spells, and without guards of its own. *out_bytes bytes; free
 * with hdl_free(allocator, ..., *out_bytes). Statuses: LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_guard_text(const hdl_tokenizer *tokenizer, const hd_allocator *allocator, hdl_span text,
                         uint8_t **out_text, uint64_t *out_bytes, hd_error *error);
/* Adds the text's ids to the list; on failure the list is as before. Any bytes are taken. BYTES vocabularies give back
 * the very bytes; the others read a byte that is not UTF-8 as U+FFFD, and WORDPIECE drops that and control characters.
 * Statuses: NULL_POINTER, LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdl_tokenize(const hdl_tokenizer *tokenizer, const void *text, size_t bytes, unsigned flags,
                       hdl_id_list *list, hd_error *error);

/* ---- ids to text ---- */

/* The bytes that the token stands for (a control token: its own text), valid as long as the tokenizer; none for a wrong
 * id. */
hdl_span hdl_token_text(const hdl_tokenizer *tokenizer, int32_t id);
/* The token's type; 0 for a wrong id. */
hdl_token_type hdl_token_type_of(const hdl_tokenizer *tokenizer, int32_t id);
/* The control or user token, else the normal one, that stands for exactly these bytes, or HDL_NO_TOKEN. */
int32_t hdl_token_find(const hdl_tokenizer *tokenizer, const void *bytes, size_t count);
int32_t hdl_token_bos(const hdl_tokenizer *tokenizer);
int32_t hdl_token_eos(const hdl_tokenizer *tokenizer);

#endif
