/* tokenizer_inside.h: what the tokenizer's files share: the vocabulary as it lies in memory, its two look-up tables,
 * and the state of one text on its way to ids. */
#ifndef HDL_TOKENIZER_INSIDE_H
#define HDL_TOKENIZER_INSIDE_H

#include "llm/tokenizer.h"
#include "llm/tokenizer_words.h"

/* ---- look-up tables (tokenizer_lookup.c): open addressing, sized once, never more than half full ---- */

/* From the texts of tokens to their ids. */
typedef struct hdl_text_table {
    struct hdl_text_slot { uint32_t mark, id_plus_1; } *slots;
    uint32_t bits;         /* 2^bits slots */
    uint16_t longest[256]; /* bytes of the longest text that begins with this byte; 0: none does */
} hdl_text_table;

/* From two neighbouring tokens to the token that they merge to and the merge's rank. */
typedef struct hdl_pair_slot {
    int32_t  left, right;
    uint32_t rank, id_plus_1;
} hdl_pair_slot;
typedef struct hdl_pair_table {
    hdl_pair_slot *slots;
    uint32_t       bits;
} hdl_pair_table;

/* What came of adding: a table refuses what is there already, and names chosen to collide. */
typedef enum hdl_added { HDL_ADDED, HDL_ADDED_TWICE, HDL_ADDED_CROWDED } hdl_added;

struct hdl_tokenizer {
    hd_allocator   allocator;
    hdl_vocab_kind kind;
    hdl_word_rule  words;            /* BYTES */
    bool           cuts_at_spaces;   /* SentencePiece: no piece goes on after a space that follows something else */
    bool           add_bos, add_eos, add_space_prefix;
    bool           lowercase, strip_accents; /* WORDPIECE */
    int32_t        bos, eos, unknown;
    float          unknown_score;    /* UNIGRAM: of a character that no piece holds */
    size_t         token_count;
    uint8_t       *pool;             /* the bytes that the tokens stand for, one token after the other */
    size_t         pool_bytes;
    uint32_t      *starts;           /* token_count + 1 places in the pool */
    uint8_t       *types;
    float         *scores;           /* PIECES and UNIGRAM */
    int32_t        byte_ids[256];    /* the token of a single byte, or HDL_NO_TOKEN */
    hdl_text_table texts;            /* normal tokens */
    hdl_text_table sought;           /* control, user and unknown tokens: looked for before anything else */
    hdl_pair_table pairs;            /* BYTES */
};

static inline hdl_span hdl_pool_text(const hdl_tokenizer *t, int32_t id) {
    return (hdl_span){ t->pool + t->starts[id], t->starts[id + 1] - t->starts[id] };
}

bool hdl_text_table_make(const hd_allocator *allocator, size_t count, hdl_text_table *out_table);
void hdl_text_table_free(const hd_allocator *allocator, hdl_text_table *table);
hdl_added hdl_text_table_add(const hdl_tokenizer *t, hdl_text_table *table, int32_t id, int32_t *out_earlier);
/* The id of the text whose hash is known, or HDL_NO_TOKEN. */
int32_t hdl_text_table_probe(const hdl_tokenizer *t, const hdl_text_table *table, uint64_t hash, const uint8_t *text,
                             size_t bytes);
int32_t hdl_text_table_find(const hdl_tokenizer *t, const hdl_text_table *table, const uint8_t *text, size_t bytes);

bool hdl_pair_table_make(const hd_allocator *allocator, size_t count, hdl_pair_table *out_table);
void hdl_pair_table_free(const hd_allocator *allocator, hdl_pair_table *table);
hdl_added hdl_pair_table_add(hdl_pair_table *table, int32_t left, int32_t right, uint32_t rank, int32_t id,
                             uint32_t *out_earlier);
/* The pair's slot, or NULL where these two do not merge. */
const hdl_pair_slot *hdl_pair_table_find(const hdl_pair_table *table, int32_t left, int32_t right);

/* ---- one text on its way to ids: all of these return false for out of memory ---- */

typedef struct hdl_tokenizing {
    const hdl_tokenizer *t;
    const hd_allocator  *allocator;
    hdl_id_list         *list;
    bool                 after_unknown; /* what no token holds stands for one unknown token, however long it is */
    uint8_t             *text;          /* SentencePiece: the text as its pieces spell it */
    size_t               text_capacity;
    uint8_t             *unguarded;     /* a part of the text without guards */
    size_t               unguarded_capacity;
    struct hdl_symbol   *symbols;
    size_t               symbol_capacity;
    struct hdl_merge    *merges;
    size_t               merge_capacity, merge_count;
    struct hdl_step     *steps;
    size_t               step_capacity;
} hdl_tokenizing;

bool hdl_emit(hdl_tokenizing *run, int32_t id);
bool hdl_emit_unknown(hdl_tokenizing *run, const uint8_t *text, size_t bytes);
/* BPE of either kind within one word (tokenizer_merge.c). */
bool hdl_merge_word(hdl_tokenizing *run, const uint8_t *text, size_t bytes);
void hdl_merge_free(hdl_tokenizing *run);
/* The likeliest pieces of a text (tokenizer_unigram.c). */
bool hdl_unigram(hdl_tokenizing *run, const uint8_t *text, size_t bytes);
void hdl_unigram_free(hdl_tokenizing *run);
/* The pieces of a text's words (tokenizer_wordpiece.c). */
bool hdl_wordpiece(hdl_tokenizing *run, const uint8_t *text, size_t bytes);

#endif
