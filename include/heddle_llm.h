/* heddle_llm.h: language models from GGUF files, on any device that heddle.h reaches. Built on heddle.h only.
 *
 * STEP BY STEP
 *   1. hd_model_open       a GGUF file: its facts, its vocabulary, its weights mapped; nothing is computed yet
 *   2. hd_model_fit        what it will take, in exact bytes, before anything is loaded
 *   3. hd_session_create   weights on the device, memory for the context: ready to answer
 *   4. hd_generate         a prompt in, text out piece by piece
 *   5. hd_session_destroy, hd_model_close
 * For the vectors of texts in place of 2 to 5: hd_embedder_create, hd_embedder_run, hd_embedder_destroy.
 *
 * Or by hand in place of 4: hd_model_tokenize, hd_session_feed, then again and again hd_session_best or
 * hd_session_logits, and hd_session_feed with the token that was chosen.
 *
 * A COMPLETE PROGRAM is examples/05_llm.c.
 *
 * Ownership, errors, threads and structs are as in heddle.h. Failures wait on the context that the model was opened with. A
 * model may be used from many threads; a session runs for one thread at a time. */
#ifndef HEDDLE_LLM_H
#define HEDDLE_LLM_H

#include <heddle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------------- 1. models */

typedef struct hd_model   hd_model;   /* a GGUF file, opened */
typedef struct hd_session hd_session; /* a model on its devices, with the memory of its sequences */

/** Wishes for opening a model. */
typedef struct hd_model_desc {
    int check_weights; /* 1: all weights are read once; rows that hold NaN or infinity, or are all zero, are named: in the log, or
                          as a failure where the context is strict (which checks in any case). Such rows are what a broken
                          conversion leaves */
    int tokenizer_only; /* 1: nothing of the file is read but its tokenizer, which is all that it needs to have: for text and tokens,
                           and as hd_model_writer_tokenizer's */
} hd_model_desc;

/** Opens a GGUF file (version 2 or 3; the first part of a split one): its header is read and checked, its weights are mapped.
 *  Architectures: llama, qwen3, gemma3, phi3, bert, ...: all of docs/models.md. @param desc NULL for defaults. @param
 *  out_model yours; hd_model_close. Statuses: NULL_POINTER, IO, PARSE, LIMIT, UNSUPPORTED (an architecture, a
 *  tensor type or a tokenizer; or a tensor or key that may change the answers and is not known: docs/models.md; named),
 *  UNSUPPORTED_VERSION, NAME_NOT_FOUND, SHAPE, TYPE (a key or tensor, named), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_open(hd_context *context, const char *path, const hd_model_desc *desc, hd_model **out_model);
/** Closes the model; what its sessions need of it stays until they end, but no call with them works any more. NULL is fine. */
HD_API void hd_model_close(hd_model *model);

/** What of a text's tokens becomes its vector. The numbers are those of GGUF's pooling_type. */
typedef enum hd_pooling {
    HD_POOLING_FILE = 0, /* as the file says */
    HD_POOLING_MEAN = 1, /* the mean of what the last layer gives for each */
    HD_POOLING_CLS = 2,  /* what it gives for the first one */
    HD_POOLING_LAST = 3  /* for the last one */
} hd_pooling;

/** Facts of a model. */
typedef struct hd_model_info {
    char     name[96];          /* as the file says it, or "" */
    char     type[24];          /* "model"; of files that are none: "adapter", "mmproj", ... */
    char     architecture[24];  /* "llama", "qwen2", ... */
    char     weight_types[96];  /* "q4_0 253, f32 145": types and how many tensors have each, the most bytes first */
    char     tokenizer[24];     /* "gpt2", "llama", "t5", "bert"; "none": it has no vocabulary */
    uint64_t file_bytes, weight_bytes;
    uint64_t parameters;        /* elements of all weights */
    uint32_t layers, hidden, heads, kv_heads, head_size, feed_forward, vocabulary;
    uint32_t context;           /* tokens that it was made for, or that its attention sees, where these are fewer */
    bool     has_chat_template;
    bool     embeds_only;       /* it answers with a vector (7. embeddings), and has no sessions */
    hd_pooling pooling;         /* that the file names; HD_POOLING_FILE: none that is known */
} hd_model_info;
/** Reads a model's facts. Statuses: NULL_POINTER. */
HD_API hd_status hd_model_get_info(const hd_model *model, hd_model_info *out_info);

/** What a GGUF file says of itself, whether heddle can run it or not: 0 and "none" for what it does not say. Statuses:
 *  NULL_POINTER, and those of hd_model_open for a file that is no GGUF file or a damaged one. */
HD_API hd_status hd_model_describe(hd_context *context, const char *path, hd_model_info *out_info);

/** One tensor that went into a quantised model. */
typedef struct hd_quantized_tensor {
    char     name[68], from[16], to[16]; /* types by name: "f16", "q4_k" */
    uint64_t elements, from_bytes, to_bytes;
    int      weighted;                   /* 1: by what the importance file says of it */
    double   error;                      /* root of the sum of squares of what elements are off, over that of the values; 0: the same */
} hd_quantized_tensor;

/** What a file says of itself: general.name, general.description, general.license, ... */
typedef struct hd_model_saying {
    const char *key;  /* general.NAME, of what nothing is computed by */
    const char *text; /* of general.languages and general.tags a list with commas between: "en,de" */
} hd_model_saying;
/** Wishes for quantising. */
typedef struct hd_quantize_desc {
    const char        *type;       /* needed: "q4_k_m", "q8_0", "iq4_xs", "f16", ...: llama.cpp's names in small letters */
    const char *const *keep;       /* parts of names: tensors that have one of them keep their type */
    size_t             keep_count;
    void             (*report)(void *user, const hd_quantized_tensor *tensor); /* told about each tensor when it is done, or NULL */
    void              *report_user;
    const char        *importance; /* an importance file, of hd_model_importance or llama.cpp's llama-imatrix as GGUF; NULL: all columns
                                      count alike */
    const hd_model_saying *sayings; /* in place of what the file says under these keys */
    size_t             saying_count;
} hd_quantize_desc;
/** Writes a GGUF file with the weights of another one in another type: without an importance file the same bytes as llama.cpp's
 *  llama-quantize. With one, errors of a matrix that it tells of count by what their columns are multiplied with; other tensors
 *  are written as without. Tensors that the type is not for keep theirs. Weights are read in pieces; `out_path` is written whole or
 *  not at all. Statuses: NULL_POINTER, NAME_NOT_FOUND (the type), INVALID_ARGUMENT (a key that sayings do not have), NAME_TAKEN (one that
 *  stands there twice), UNSUPPORTED (weights that are not f32, f16, bf16, q8_0 or a ternary type of bitnet.cpp, unless they become f32,
 *  f16 or bf16; tl2 that is to be kept; no importance file), PARSE (NaN or infinity among them; codes that stand for nothing; in an
 *  importance file negative numbers too), SHAPE and TYPE (of tensors of the importance file), IO, OUT_OF_HOST_MEMORY, those of
 *  hd_model_open for a file that is no GGUF file. */
HD_API hd_status hd_model_quantize(hd_context *context, const char *path, const char *out_path, const hd_quantize_desc *desc);

/** A GGUF file that is being written. The first failure stays and is told by hd_model_writer_write; what follows it does nothing.
 *  A NULL writer takes nothing. */
typedef struct hd_model_writer hd_model_writer;
/** Begins a file. @param out_writer yours; hd_model_writer_destroy. Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_writer_create(hd_context *context, hd_model_writer **out_writer);
/** Ends the writer. NULL is fine. */
HD_API void hd_model_writer_destroy(hd_model_writer *writer);
/** Keys, each of a name of its own: a u32, an f32, a bool, a text of `bytes` bytes. */
HD_API void hd_model_writer_u32(hd_model_writer *writer, const char *key, uint32_t value);
HD_API void hd_model_writer_f32(hd_model_writer *writer, const char *key, float value);
HD_API void hd_model_writer_bool(hd_model_writer *writer, const char *key, bool value);
HD_API void hd_model_writer_text(hd_model_writer *writer, const char *key, const char *text, size_t bytes);
/** Lists of texts, each with an ending zero, of i32 and of f32. */
HD_API void hd_model_writer_texts(hd_model_writer *writer, const char *key, const char *const *texts, size_t count);
HD_API void hd_model_writer_i32s(hd_model_writer *writer, const char *key, const int32_t *values, size_t count);
HD_API void hd_model_writer_f32s(hd_model_writer *writer, const char *key, const float *values, size_t count);
/** All keys of a model's tokenizer: its vocabulary, its rules, its chat template. */
HD_API void hd_model_writer_tokenizer(hd_model_writer *writer, const hd_model *model);
/** Gives bytes from .. from + bytes - 1 of a tensor's data. False ends the writing. */
typedef bool (*hd_tensor_fill)(void *user, uint64_t from, uint64_t bytes, void *out);
/** A tensor, of any float or quantised type. @param fill asked for its data piece by piece, in order, while the file is written;
 *  NULL: the writer is for a sketch only. */
HD_API void hd_model_writer_tensor(hd_model_writer *writer, const char *name, hd_dtype dtype, hd_shape shape,
                                   hd_tensor_fill fill, void *user);
/** Writes the file, whole or not at all. Statuses: NULL_POINTER, INVALID_ARGUMENT, NAME_TAKEN, SHAPE (of what was put), LIMIT, IO,
 *  OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_writer_write(hd_model_writer *writer, const char *path);
/** The model that the file would be, without its weights, which nobody is asked for: what it computes can be put into a program with
 *  weights of the caller's (hd_model_build); what would read its own is refused. @param desc as hd_model_open's. @param out_model yours;
 *  hd_model_close. Statuses: NULL_POINTER, as hd_model_writer_write's of what was put, those of hd_model_open. */
HD_API hd_status hd_model_writer_sketch(hd_model_writer *writer, const hd_model_desc *desc, hd_model **out_model);

/* ------------------------------------------------------------------------------------------------------- 2. text */

/** Flags of hd_model_tokenize. */
typedef enum hd_tokenize_flags {
    HD_TOKENIZE_PLAIN = 0,
    HD_TOKENIZE_ADD_SPECIAL = 1,  /* the tokens that the model wants before and after a text */
    HD_TOKENIZE_PARSE_SPECIAL = 2 /* control tokens in the text count; leave it out for text from strangers */
} hd_tokenize_flags;

/** Learns a byte-level vocabulary from a text: tokens 0 to 255 are the bytes, and then, within words as GPT-2's tokenizer cuts them, the
 *  pair of neighbours that stands in the text most often becomes a token, again and again, while it stands there twice or more. Of pairs
 *  that are as frequent that one comes first whose left token was made first, then whose right one was; bytes come in the order of the
 *  letters that GPT-2 writes them as. Tokens that are left over in the end are unused. @param vocabulary 256 to 2^20 tokens.
 *  @param end_text what stands behind each document in the text, such as "<|endoftext|>": the last token, a control token, which ends
 *  what a model writes; nothing is learned across it. At most 256 bytes. NULL: there is none.
 *  @param out_model yours; hd_model_close: a model of which there is only the tokenizer. Statuses: NULL_POINTER, LIMIT (more than
 *  256 MiB of text, or 32 MiB of words, each counted once), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_tokenizer_learn(hd_context *context, const char *text, size_t bytes, uint32_t vocabulary,
                                    const char *end_text, hd_model **out_model);
/** Text (any bytes) to token ids. @param out_tokens NULL to ask the number only. @param count in: room in out_tokens; out:
 *  number of tokens. Statuses: NULL_POINTER, LIMIT (more tokens than room; the first ones are filled in), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_tokenize(const hd_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *out_tokens,
                                   size_t *count);
/** The bytes that a token stands for, which may be part of a character; valid as long as the model. @param out_bytes their
 *  number. @return NULL for an id that is none. */
HD_API const char *hd_model_token_text(const hd_model *model, int32_t token, size_t *out_bytes);
/** Whether the token ends an answer: the model's end of text, of turn or of message. */
HD_API bool hd_model_token_ends(const hd_model *model, int32_t token);

/** A call of a tool: what an assistant asks for before it goes on. Whoever runs the model runs the tool, or does not. */
typedef struct hd_tool_call {
    const char *id;        /* NULL: none was named */
    const char *name;
    const char *arguments; /* JSON: an object */
} hd_tool_call;
/** One message of a conversation. */
typedef struct hd_message {
    const char *role;    /* "system", "user" or "assistant"; "tool": what came of a call */
    const char *content; /* an assistant's: the answer as it came, without its calls; where that was several messages (hd_text_fn), the
                            last one counts */
    const hd_tool_call *calls; /* an assistant's, `call_count` of them, at most 1,024. In a template those without an id get one */
    size_t      call_count;
    const char *call_id; /* of "tool": the call that this came of; NULL: of the assistant's last calls the first one that nothing came
                            of yet. The template is told its name, too */
    uint32_t    images;  /* so many in front of what is said, at most 64: each is one token -1 of hd_model_chat_tokens, where the caller
                            feeds it (hd_session_feed_image), with the tokens around it that the model begins and ends images with */
} hd_message;
/** Whether a model that thinks before it answers is to do so: what its template knows as enable_thinking. Templates without such
 *  a switch are as they are. */
typedef enum hd_thinking { HD_THINKING_DEFAULT = 0, HD_THINKING_ON, HD_THINKING_OFF } hd_thinking;
/** How a conversation becomes a text. All zero: by the model's own template, as it is by default. */
typedef struct hd_chat_form {
    const char *template_name; /* NULL: the file's own template (UNSUPPORTED, with its place, where it uses what heddle does not know,
                                  and where it makes no text at all); else a built-in one: "chatml", "llama2", "llama3", "mistral",
                                  "gemma", "qwen", "phi3", "bitnet". One that asks for the date gets today's, in UTC */
    hd_thinking thinking;
    const char *tools;         /* what the model may call: JSON, a list of functions as OpenAI's API has it, {"type": "function",
                                  "function": {"name", "description", "parameters": a JSON Schema}}; at most 1 MiB. NULL: nothing */
} hd_chat_form;
/** A conversation as the text that the model was trained to continue. @param form NULL: all zero. The text is to be looked at;
 *  hd_model_chat_tokens gives what is to be fed. @param out_text at most `room` bytes with the ending zero. @param out_needed bytes in
 *  full, may be NULL. Statuses: NULL_POINTER, NAME_NOT_FOUND, UNSUPPORTED (also tools or calls, by a template that knows of none; images,
 *  and a model that does not see, or a template that leaves them out), PARSE
 *  (also tools or arguments that are no JSON), INVALID_ARGUMENT (tools that are no functions, calls without a name; messages that
 *  the template refuses), LIMIT (cut, or above a limit). */
HD_API hd_status hd_model_render_chat(const hd_model *model, const hd_chat_form *form, const hd_message *messages, size_t count,
                                      char *out_text, size_t room, size_t *out_needed);
/** The same as token ids. What a message says cannot become a control token, whatever it spells, nor what stands in tools and calls; what
 *  an assistant says is taken as the model's own words. @param out_tokens NULL to ask the number only. @param count in: room in
 *  out_tokens; out: number of tokens. Statuses as hd_model_render_chat; LIMIT: more tokens than room. */
HD_API hd_status hd_model_chat_tokens(const hd_model *model, const hd_chat_form *form, const hd_message *messages, size_t message_count,
                                      int32_t *out_tokens, size_t *count);
/** A conversation that is over, as token ids, and which of them an assistant said, the end of each turn with it: what is learned from
 *  it. A conversation with no message in front of its first answer needs a template that can begin so. @param out_tokens, out_said NULL to
 *  ask the number only; out_said 1 or 0 of each token. Statuses as hd_model_chat_tokens. */
HD_API hd_status hd_model_chat_said(const hd_model *model, const hd_chat_form *form, const hd_message *messages, size_t message_count,
                                    int32_t *out_tokens, uint8_t *out_said, size_t *count);

/* AN ANSWER'S PARTS. Models write what they think, what they say and what they call into one text, with marks around it that families
 * of models have of their own. A reader tells them apart as the text comes. */
typedef enum hd_part_kind {
    HD_PART_TEXT = 0, /* what is said */
    HD_PART_THOUGHT,  /* what is thought before it */
    HD_PART_MARK,     /* a mark around thoughts */
    HD_PART_CALL      /* a call of a tool */
} hd_part_kind;
/** A part of an answer: valid during the call. */
typedef struct hd_part {
    hd_part_kind        kind;
    const char         *text;  /* `bytes` of it, without an ending zero; "" of a call */
    size_t              bytes;
    const hd_tool_call *call;  /* of HD_PART_CALL: its arguments are one line of JSON */
} hd_part;
/** Told each part. Texts come in pieces of any size. It must not end its reader. */
typedef void (*hd_part_fn)(void *user, const hd_part *part);

/** Reads answers, one after the other. Used by one thread at a time. */
typedef struct hd_chat_reader hd_chat_reader;
/** Makes a reader for answers to conversations in this form: where that has tools, calls are read as the template's family writes them
 *  (docs/tools.md). @param form NULL: all zero; not needed after the call. @param on_part NULL: nobody is told. @param out_reader yours;
 *  hd_chat_reader_destroy. It keeps the model's memory until then. Statuses: NULL_POINTER, UNSUPPORTED (tools, and a template that knows
 *  none or has another form of calls), those of hd_model_render_chat for the template and the tools. */
HD_API hd_status hd_chat_reader_create(hd_model *model, const hd_chat_form *form, hd_part_fn on_part, void *user,
                                       hd_chat_reader **out_reader);
/** Begins an answer. @param prompt the tokens that it continues, of which the last ones tell whether it begins as a thought; may be NULL
 *  with a count of 0. Statuses: NULL_POINTER. */
HD_API hd_status hd_chat_reader_begin(hd_chat_reader *reader, const int32_t *prompt, size_t count);
/** The next piece of the answer, as hd_text_fn gets it. A call is told when it is whole. What begins as one and is none, or is longer than
 *  1 MiB, is text. Statuses: NULL_POINTER, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_chat_reader_push(hd_chat_reader *reader, const char *text, size_t bytes);
/** The answer is over: what was held comes. Statuses as hd_chat_reader_push. */
HD_API hd_status hd_chat_reader_end(hd_chat_reader *reader);
/** The answer that is over as an assistant's message, its calls apart: what the conversation goes on with. Valid until the reader is used
 *  again. NULL: no reader. */
HD_API const hd_message *hd_chat_reader_message(hd_chat_reader *reader);
/** Ends the reader. NULL is fine. */
HD_API void hd_chat_reader_destroy(hd_chat_reader *reader);

/* --------------------------------------------------------------------------------------------------- 3. sessions */

/** Told how far loading is: `done` of `total` bytes of weights. Called on the thread that makes the session. */
typedef void (*hd_progress_fn)(void *user, uint64_t done, uint64_t total);

/** What guesses the tokens of an answer that hd_generate then computes together. A guess is judged as its token would be alone, by the
 *  same bits: what is said does not change by it, only how fast. */
typedef enum hd_draft {
    HD_DRAFT_NONE = 0,
    HD_DRAFT_LOOKUP /* what came after the last tokens where they stood before, in the prompt or the answer: for texts that repeat much of
                       what was read. Up to 7 guesses a step; a number of them that costs more time than it saves rests */
} hd_draft;

#define HD_MAX_PIECES 8
/** Wishes for a session. */
typedef struct hd_session_desc {
    hd_device     *device;       /* NULL: the best one, opened for the session and closed with it */
    uint32_t       context;      /* tokens a sequence can hold; 0: what the model was made for, at most 4,096 */
    uint32_t       sequences;    /* conversations side by side; 0: 1 */
    uint64_t       cache_tokens; /* tokens that all sequences together can hold, in pages of 256 that they take and give back;
                                    0: as many as they could, sequences * context. More is not taken */
    uint32_t       chunk;        /* most prompt tokens in one submission; more than 2,048: 2,048; 0: 512, or 2,048 on a discrete GPU where
                                    all of the session takes no more than half of its memory with that */
    hd_math        math;         /* HD_MATH_EXACT: the same tokens on every device */
    uint64_t       memory_bytes; /* most memory to take on the device; 0: what it has. What does not fit is left to the CPU */
    int            device_layers;/* n > 0: the last n layers on the device, the others on the CPU; -1: none; 0: as many as fit */
    int            stream;       /* 1: layers that do not fit, or all but the last device_layers, travel to the device one by one, the next
                                    one while this one computes, in place of being left to the CPU */
    int            cpu_experts;  /* of a mixture: n > 0: experts of the first n layers lie and compute on the CPU, attention and cache of
                                    these layers on the device; -1: of none; 0: where device_layers is 0 and nothing travels, of as few
                                    as let the rest fit, before whole layers are left to the CPU */
    hd_progress_fn progress;     /* NULL: nobody is told */
    void          *progress_user;
    hd_draft       draft;        /* guesses for hd_generate; their plans' memory is a part of hd_fit */
    hd_dtype       cache_type;   /* of the cache's keys and values: HD_F32, HD_F16, or, where the model's heads have a multiple of 32
                                    elements, HD_Q8_0 or HD_Q4_0, which round each token's as hd_quantize does, and take 0.53 and 0.28
                                    of f16's memory; HD_DTYPE_NONE: HD_F16 */
    uint32_t       image_rows;   /* of an image, as hd_vision_info tells; 0: the session takes none */
    uint32_t       pieces[HD_MAX_PIECES]; /* rows of the runs that prompts go in, the most first: multiples of 8, at most chunk, or 2,048
                                    where that is 0; 0 behind the last one. All 0: chunk, a half of it, ..., 8. Each size has a plan,
                                    which hd_fit counts. A prompt runs in pieces of the first size. What is left is padded to the smallest
                                    one that holds it, or goes on in a piece of the next smaller one, by which rows, and
                                    hd_piece_run_rows for each run, are fewer. hd_piece_sizes finds sizes by the lengths of prompts that
                                    came */
} hd_session_desc;

/** The memory of a session, in bytes, known before anything is loaded. */
typedef struct hd_fit {
    uint32_t device_layers, cpu_layers, streamed_layers;
    uint32_t cpu_experts; /* so many of the device_layers have their experts on the CPU */
    uint64_t device_weight_bytes, device_cache_bytes, device_scratch_bytes, device_bytes; /* the last is the sum */
    uint64_t device_half_bytes; /* of the weights' bytes: copies in f16 of quantised weights, by which prompts are read faster. They are
                                   made where all of it takes no more than half of the memory, and given up where it is not there */
    uint64_t device_shared_bytes; /* of the weights' bytes: those that lie on the device already for other sessions and embedders, and are
                                     not taken again */
    uint64_t cpu_weight_bytes, cpu_cache_bytes, cpu_scratch_bytes, cpu_bytes;
    uint32_t chunk; /* most prompt tokens in one submission */
    uint64_t device_memory_bytes; /* what the device has, or memory_bytes where that is less */
    bool     fits;
} hd_fit;
/** Tells what hd_session_create would take, and takes nothing but the device. Statuses: NULL_POINTER, INVALID_ARGUMENT, UNSUPPORTED
 *  (a context above what the model's attention sees, a cache_type that its heads have no whole blocks of), those of hd_device_open
 *  and hd_plan_estimate. */
HD_API hd_status hd_model_fit(hd_model *model, const hd_session_desc *desc, hd_fit *out_fit);
/** Tells how many bytes of the model's weights would not be taken again on a device where the other model's lie. A page of each
 *  weight is read, and all of those that begin alike. Statuses: NULL_POINTER, UNSUPPORTED (of a file only the tokenizer was read),
 *  IO (a file shrank), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_shared_bytes(hd_model *model, hd_model *other, uint64_t *out_bytes);

/** What prompts take in a session, by the sizes of its pieces alone. */
typedef struct hd_piece_usage {
    uint32_t sizes[HD_MAX_PIECES]; /* of the pieces, as the session would have them */
    uint64_t tokens, rows; /* of the prompts, and computed for them: the difference is padding */
    uint64_t runs, plans;  /* runs, and plans made for them: the other runs find theirs. One token alone runs as a decode step, whose
                              plan is there */
} hd_piece_usage;
/** So many rows take as long as what each run takes beside its rows, reading the weights above all: what sessions on the device go by,
 *  16 on a CPU and 128 on a GPU (measured: 5 to 50 on CPUs, the most where matrix units make rows cheap, and 200 to 300 on the largest
 *  GPUs, fewer on small ones). @return 0: NULL, or no device. */
HD_API uint32_t hd_piece_run_rows(const hd_device *device);
/** Counts what prompts take. Pure, as hd_piece_sizes is; any thread. @param desc its chunk (0 is 512), its pieces and its context count;
 *  NULL: all 0. @param lengths how many tokens each prompt has, fed at once: 1 to 2^24. @param run_rows of the device
 *  (hd_piece_run_rows), at most 65,536. Statuses: NULL_POINTER, ZERO_SIZE, INVALID_ARGUMENT. */
HD_API hd_status hd_piece_use(const hd_session_desc *desc, const uint32_t *lengths, size_t count, uint32_t run_rows,
                              hd_piece_usage *out_usage);
/** Finds the sizes of pieces that are best for prompts of such lengths, those of a log: by which rows, and `run_rows` for each run, are
 *  the fewest in sum; of equal choices one of fewer sizes. The first size is the chunk. The search takes up to 0.2 s for a chunk of 512
 *  and 3 s for one of 2,048, and is exact where it ends within 2^24 steps; a log that needs more gets the best that was found in them.
 *  @param desc its chunk (0 is 512) and its context count; NULL: all 0. @param run_rows as hd_piece_use has it. @param most sizes that
 *  there may be, 1 to HD_MAX_PIECES. @param out_sizes for hd_session_desc.pieces. Statuses as hd_piece_use. */
HD_API hd_status hd_piece_sizes(const hd_session_desc *desc, const uint32_t *lengths, size_t count, uint32_t run_rows, uint32_t most,
                                uint32_t out_sizes[HD_MAX_PIECES]);

/** Puts the model onto its devices. On the CPU weights are used where the file is mapped. Elsewhere equal weights lie once: those of
 *  one model, and of all models with sessions or embedders on the same opened device (desc->device). They are told by their bytes,
 *  where length, type and first bytes are equal; the memory is given back with the last one that uses it. Sessions that are made at
 *  the same moment may not find each other's. While a model is open nobody may write into its file. @param desc NULL for defaults. @param
 *  out_session yours; hd_session_destroy. Statuses: NULL_POINTER, INVALID_ARGUMENT, UNSUPPORTED (as hd_model_fit; a model that
 *  answers with vectors), OVER_BUDGET (it does not fit; beside a GPU, not on the CPU either), OUT_OF_DEVICE_MEMORY, IO (the file
 *  shrank), those of hd_device_open and hd_plan_create. */
HD_API hd_status hd_session_create(hd_model *model, const hd_session_desc *desc, hd_session **out_session);
/** Ends the session and frees its memory. NULL is fine. */
HD_API void hd_session_destroy(hd_session *session);

/** Appends tokens to a sequence (0 .. sequences-1) and computes what comes after the last of them. Statuses: NULL_POINTER,
 *  ZERO_SIZE, INVALID_ARGUMENT (no such sequence or token), LIMIT (the sequence or the cache is full; nothing was appended), DEVICE_LOST,
 *  TIMEOUT. */
HD_API hd_status hd_session_feed(hd_session *session, uint32_t sequence, const int32_t *tokens, size_t count);
/** Appends an image to a sequence: its rows stand in place of so many tokens, which see each other and what stands before them. It belongs
 *  between the tokens that a model begins and ends images with (hd_model_chat_tokens). What is read anew must hold no image: the calls
 *  below that read tokens anew refuse it there, and change nothing. @param rows f32 [image_rows,hidden], as hd_vision_encode gives them.
 *  Statuses: NULL_POINTER, WRONG_STATE (a session whose image_rows were 0), those of hd_session_feed. */
HD_API hd_status hd_session_feed_image(hd_session *session, uint32_t sequence, const float *rows);
/** A token for a sequence. */
typedef struct hd_step {
    uint32_t sequence;
    int32_t  token;
} hd_step;
/** Appends `count` tokens to their sequences: in one submission the next token of some and pieces of prompts of others, whose
 *  tokens stand in their order. Only so many rows are computed, up to the next size (2, 4, 8, ...). In exact mode each sequence
 *  gets the very bits that it would get alone. Tokens of one sequence alone run as hd_session_feed runs them. At most 512
 *  tokens, and no more than the larger of the first piece and hd_session_desc.sequences. Statuses as hd_session_feed; LIMIT also for
 *  too many tokens. */
HD_API hd_status hd_session_step(hd_session *session, const hd_step *steps, size_t count);
/** The most likely next token, chosen on the device. Statuses: NULL_POINTER, WRONG_STATE (nothing was fed), INVALID_ARGUMENT (a
 *  score is NaN, as broken weights make them). */
HD_API hd_status hd_session_best(hd_session *session, uint32_t sequence, int32_t *out_token);
/** Scores of all tokens to come next, `vocabulary` floats, valid until the session is used again. Statuses as hd_session_best. */
HD_API hd_status hd_session_logits(hd_session *session, uint32_t sequence, const float **out_logits);
/** Number of tokens in a sequence. */
HD_API uint32_t hd_session_position(const hd_session *session, uint32_t sequence);
/** Forgets all tokens of a sequence from `position` on; 0 begins anew. What comes next is known only after the next feed.
 *  Pages of the cache that it then holds no token in are free for all sequences. Within a page that it shares with another sequence
 *  (hd_session_share) what stays of that page, at most 255 tokens, is read anew. Statuses: NULL_POINTER, INVALID_ARGUMENT, UNSUPPORTED
 *  (an image would be cut, or read anew); those of hd_session_feed where tokens are read, after which it holds what stands before that
 *  page. */
HD_API hd_status hd_session_rewind(hd_session *session, uint32_t sequence, uint32_t position);
/** Has a sequence that holds nothing begin with the first `count` tokens of another one, such as what all conversations are told first.
 *  Full pages of 256 tokens lie once for both, whatever either does later; what is left of `count` is read anew. It is then, to the bit
 *  where feeding is, as if it had been fed them; where 256 divides `count`, what comes next is known only after the next feed.
 *  Statuses: NULL_POINTER, INVALID_ARGUMENT (no such sequence, one that holds tokens, more tokens than the other has), UNSUPPORTED, and
 *  those of hd_session_feed, after which it holds nothing. */
HD_API hd_status hd_session_share(hd_session *session, uint32_t from, uint32_t count, uint32_t sequence);
/** Forgets `drop` tokens of a sequence behind its first `keep`, and reads what stands behind them anew, at its new place: the
 *  sequence is then as if the others had never been said, to the bit where feeding is. For conversations that are longer than
 *  the context; it takes as long as a prompt of the tokens behind. Statuses: INVALID_ARGUMENT where no token stands behind
 *  them, UNSUPPORTED, OUT_OF_HOST_MEMORY, and those of hd_session_feed, after which the sequence holds its first `keep` tokens. */
HD_API hd_status hd_session_shift(hd_session *session, uint32_t sequence, uint32_t keep, uint32_t drop);

/** The tokens that a sequence holds; -1: a row of an image. @param out_tokens NULL to ask the number only. @param count in: room in
 *  out_tokens; out: number of tokens. Statuses: NULL_POINTER, INVALID_ARGUMENT, LIMIT (more tokens than room; the first ones are filled
 *  in). */
HD_API hd_status hd_session_tokens(const hd_session *session, uint32_t sequence, int32_t *out_tokens, size_t *count);
/** Writes what a sequence holds, its tokens and their cache, to a file: whole, or not at all. The file does not hang on the device, nor on
 *  where layers are. Statuses: NULL_POINTER, INVALID_ARGUMENT, ZERO_SIZE (it holds nothing), WRONG_STATE (it ends with an image; feed
 *  a token), IO, OUT_OF_HOST_MEMORY, TIMEOUT,
 *  DEVICE_LOST. */
HD_API hd_status hd_session_save(hd_session *session, uint32_t sequence, const char *path);
/** Has the sequence hold what such a file says, in place of what it held; what comes next is known then. In exact mode it goes on with
 *  the bits that it would have had. Where the file is refused, the sequence is as before; after another failure it may be empty.
 *  Statuses: NULL_POINTER, INVALID_ARGUMENT (no such sequence), IO, PARSE (no such file, or a damaged one), UNSUPPORTED (another
 *  model, other exactness, another type of the cache, or another definition of its bits),
 *  UNSUPPORTED_VERSION, LIMIT (more than the sequence or the cache has room for), OUT_OF_HOST_MEMORY, and those of hd_session_feed. */
HD_API hd_status hd_session_load(hd_session *session, uint32_t sequence, const char *path);

/** Counters of a session. */
typedef struct hd_session_stats {
    uint64_t prompt_tokens, prompt_ns; /* fed to one sequence, more than one at a time */
    uint64_t decode_tokens, decode_ns; /* fed one at a time, or to several sequences at once */
    uint64_t load_ns;                  /* making the session */
    uint64_t submissions;              /* handed to the device for all of these tokens */
    uint64_t plans;                    /* made so far: one for each size */
    uint64_t recorded;                 /* runs for which commands had to be recorded; the others were replays */
    uint32_t decode_levels, decode_dispatches; /* of one token: dependent steps, and dispatches */
    uint64_t draft_steps;              /* in which guesses were computed (hd_draft) */
    uint64_t drafted_tokens, accepted_tokens; /* guesses, and those that were said; decode_tokens has these too */
} hd_session_stats;
/** Reads the counters. Statuses: NULL_POINTER. */
HD_API hd_status hd_session_get_stats(const hd_session *session, hd_session_stats *out_stats);
/** What the session took, as hd_model_fit tells it before. Statuses: NULL_POINTER. */
HD_API hd_status hd_session_get_fit(const hd_session *session, hd_fit *out_fit);
/** The device that the session was made on. */
HD_API hd_device *hd_session_device(const hd_session *session);

/* ------------------------------------------------------------------------------------------- 4. answers in a form */

/** A form that an answer must have, for the vocabulary of one model, and how far one answer is in it. Used by one thread at a
 *  time, for one answer at a time. */
typedef struct hd_grammar hd_grammar;

/** How a form is written. */
typedef enum hd_grammar_kind {
    HD_GRAMMAR_GBNF = 0,   /* rules as llama.cpp reads them; the answer is what the rule "root" says */
    HD_GRAMMAR_JSON_SCHEMA /* the answer is JSON that the schema takes; what of JSON Schema is known: docs/forms.md */
} hd_grammar_kind;

/** Makes a form of its text (UTF-8). Every answer in it can be finished: a token is allowed only where the rest can be written
 *  with the model's tokens, and the end only where the form is complete. @param out_grammar yours; hd_grammar_destroy. It keeps the
 *  model's memory until then. Statuses: NULL_POINTER, PARSE (with line and column), NAME_NOT_FOUND (a rule), UNSUPPORTED (a model
 *  without a vocabulary, a rule that begins with itself, a part of JSON Schema that is not known, a form that no answer has; named),
 *  LIMIT, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_grammar_create(hd_model *model, hd_grammar_kind kind, const char *text, size_t bytes, hd_grammar **out_grammar);
/** Ends the grammar. NULL is fine. */
HD_API void hd_grammar_destroy(hd_grammar *grammar);
/** Makes a form of answers that may call tools: what is thought and said is free, and from where a call begins to where it ends nothing
 *  can come but a call of one of the form's tools, written as the template's family writes calls (docs/tools.md), with arguments that the
 *  tool's schema takes (docs/forms.md). @param form with tools; not needed after the call. @param choice NULL or "auto": calls may come;
 *  "none": none comes; "required": at least one comes, and nothing but thoughts before it; a tool's name: the same, of this tool only.
 *  @param out_grammar as of hd_grammar_create. Statuses: those of hd_chat_reader_create; NAME_NOT_FOUND (the choice is no tool); those of
 *  hd_grammar_create for the schemas, with the tool's name in front; UNSUPPORTED: a name that this form of calls cannot write. */
HD_API hd_status hd_grammar_create_for_tools(hd_model *model, const hd_chat_form *form, const char *choice, hd_grammar **out_grammar);
/** Begins a new answer. Statuses: NULL_POINTER. */
HD_API hd_status hd_grammar_restart(hd_grammar *grammar);
/** Begins a new answer to a prompt, of which the last tokens tell whether it begins as a thought: what calls in there is none (but with
 *  gpt-oss). hd_generate does so itself. @param prompt may be NULL with a count of 0. Statuses: NULL_POINTER, those of
 *  hd_grammar_accept. */
HD_API hd_status hd_grammar_begin(hd_grammar *grammar, const int32_t *prompt, size_t count);
/** Which tokens may come next: bit i % 32 of word i / 32 for token i; the model's ends only where the answer is complete. @param
 *  out_bits room for (vocabulary + 31) / 32 words. @param words that room. Statuses: NULL_POINTER, LIMIT (less room; or a grammar in
 *  which too much is possible at once), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_grammar_allowed(hd_grammar *grammar, uint32_t *out_bits, size_t words);
/** The answer goes on by a token. An end of the model, where it is allowed, changes nothing. Statuses: NULL_POINTER,
 *  INVALID_ARGUMENT (it is not allowed; nothing has changed), LIMIT, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_grammar_accept(hd_grammar *grammar, int32_t token);
/** Whether the answer is complete: it may end here. */
HD_API bool hd_grammar_complete(const hd_grammar *grammar);

/* ------------------------------------------------------------------------------------------------- 5. generation */

/** How the next token is drawn. All zero: always the most likely one, and of equal ones that with the smallest id. The order is
 *  the field's usual one: penalties, top_k, top_p, min_p, temperature, a draw. */
typedef struct hd_sampling {
    uint64_t seed;              /* same seed, same scores: the same tokens, on every machine */
    float    temperature;       /* above 1 flattens, below 1 sharpens; 0: the most likely token, nothing is drawn */
    uint32_t top_k;             /* only the k most likely; 0: all */
    float    top_p;             /* only the most likely that together have this chance, at least one; 0 or 1: all */
    float    min_p;             /* only those with this share of the most likely one's chance; 0: all */
    float    repeat_penalty;    /* scores above 0 of tokens said lately are divided by it, others multiplied by it; 0 or 1: off */
    float    frequency_penalty; /* taken off a score for each time the token was said lately; 0: off */
    float    presence_penalty;  /* taken off a score once when the token was said lately; 0: off */
    uint32_t penalty_window;    /* "lately": among so many last tokens of the sequence, in earlier turns, the prompt and the
                                   answer; 0: 64 */
} hd_sampling;

/** Why an answer ended. */
typedef enum hd_stop {
    HD_STOP_NONE = 0,
    HD_STOP_END,     /* the model ended it, or its form allows nothing more */
    HD_STOP_LENGTH,  /* max_tokens */
    HD_STOP_CONTEXT, /* the sequence or the cache is full */
    HD_STOP_TEXT,    /* one of the stop texts */
    HD_STOP_CALLER   /* on_text or on_token said so */
} hd_stop;

/** Receives the answer piece by piece: whole characters of UTF-8, without an ending zero. Returning false ends it. An answer of
 *  gpt-oss may be several messages, and their marks are part of it: "<|channel|>analysis<|message|>...<|end|><|start|>assistant
 *  <|channel|>final<|message|>...". So are marks of calls, "[TOOL_CALLS]" or "<|python_tag|>": hd_chat_reader knows both. Other control
 *  tokens are not shown. */
typedef bool (*hd_text_fn)(void *user, const char *text, size_t bytes);

/** Something that is added to a token's score. */
typedef struct hd_bias {
    int32_t token;
    float   bias;  /* -INFINITY: the token never comes */
} hd_bias;
/** May change the scores of the token to come, `count` of them, before anything else is done with them but what biases add. */
typedef void (*hd_scores_fn)(void *user, float *scores, uint32_t count);

/** A token of an answer. */
typedef struct hd_said_token {
    int32_t        token;
    float          log_probability;    /* by the model's own scores, natural logarithm; 0 where `likeliest` is 0 */
    uint32_t       likeliest;          /* as the wishes say, at most the vocabulary */
    const int32_t *likeliest_tokens;   /* so many, the likeliest first; valid during the call */
    const float   *likeliest_log_probabilities;
} hd_said_token;
/** Told each token of an answer before its text is; not the one that ends it. Returning false ends the answer. */
typedef bool (*hd_token_fn)(void *user, const hd_said_token *said);
#define HD_MAX_LIKELIEST 128u

/** Wishes for an answer. */
typedef struct hd_generate_desc {
    uint32_t       sequence;
    const int32_t *tokens;        /* the prompt, appended to what the sequence holds */
    size_t         token_count;
    uint32_t       max_tokens;    /* 0: until the sequence or the cache is full */
    hd_sampling    sampling;
    hd_grammar    *grammar;       /* the answer has this form, from its beginning on; NULL: any. What max_tokens or the context
                                     cuts off is not complete: hd_grammar_complete tells */
    const char *const *stop_texts;/* the answer ends before one of these; "" is none */
    size_t         stop_count;
    int            ignore_end;    /* 1: the model's own end does not end it */
    int            shift;         /* 1: in a full context the answer goes on. The first `keep` tokens stay, and the older half of the
                                     others is forgotten (hd_session_shift); HD_STOP_CONTEXT where that makes no room */
    uint32_t       keep;
    const hd_bias *biases;        /* `bias_count` of them */
    size_t         bias_count;
    hd_scores_fn   on_scores;     /* NULL: nobody changes them */
    uint32_t       likeliest;     /* on_token is told the log-probabilities of its token and of so many likeliest ones, at most
                                     HD_MAX_LIKELIEST; 0: none */
    hd_token_fn    on_token;      /* NULL: nobody is told */
    hd_text_fn     on_text;       /* NULL: nobody is told */
    void          *user;          /* of the three */
} hd_generate_desc;

/** What came of it. */
typedef struct hd_generated {
    hd_stop  stop;
    uint32_t token_count;  /* of the answer, its ending token not counted */
    uint64_t prompt_ns, answer_ns;
} hd_generated;
/** Continues a prompt. The answer's tokens, but for an ending one, become part of the sequence (those after a stop text too).
 *  @param out_tokens NULL, or room for max_tokens ids. @param out_result may be NULL. Statuses: NULL_POINTER, ZERO_SIZE (no prompt
 *  and nothing fed before), those of hd_session_feed and of hd_grammar_accept; INVALID_ARGUMENT for sampling figures or biases
 *  that make no sense and for a grammar of another model; LIMIT for too many likeliest tokens or stop texts. */
HD_API hd_status hd_generate(hd_session *session, const hd_generate_desc *desc, int32_t *out_tokens, hd_generated *out_result);

/* ------------------------------------------------------------------------------------------------------ 5. adapters */

/* A LOW-RANK ADAPTER (LoRA; Hu and others, 2021) adds to products with weights W [out,in] of a model: y = W x + scale * B (A x), with A
 * [rank,in] and B [out,rank], where rank is small. scale is alpha / rank, or 1 where alpha is 0. heddle_train.h trains them, and reads and
 * writes those of Hugging Face's PEFT. */
typedef struct hd_adapter hd_adapter;
/** What an adapter has for one weight. */
typedef struct hd_adapter_pair {
    const char  *weight;        /* its name in the model's file: "blk.0.attn_q.weight" */
    uint32_t     rank;
    uint32_t     rows, columns; /* of the weight: out and in */
    const float *a, *b;         /* [rank,columns] and [rows,rank] */
} hd_adapter_pair;

/** Makes an adapter of pairs, which are copied. @param architecture of the models that it is for ("llama"). @param out_adapter yours;
 *  hd_adapter_destroy. Statuses: NULL_POINTER, ZERO_SIZE, LIMIT (a rank, a name), INVALID_ARGUMENT (alpha), NAME_TAKEN,
 *  OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_adapter_create(hd_context *context, const char *architecture, float alpha, const hd_adapter_pair *pairs, size_t count,
                                   hd_adapter **out_adapter);
/** Reads a GGUF file of general.type "adapter" as llama.cpp has them: NAME.lora_a and NAME.lora_b of any float or quantised type, and
 *  adapter.lora.alpha. @param out_adapter yours; hd_adapter_destroy. Statuses: NULL_POINTER, IO, PARSE, LIMIT, TYPE, UNSUPPORTED
 *  (no adapter, or one of another kind; a key that would change what it computes), NAME_NOT_FOUND (the other half of a pair), SHAPE,
 *  OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_adapter_read(hd_context *context, const char *path, hd_adapter **out_adapter);
/** Writes such a file, in f32, whole or not at all. Statuses: NULL_POINTER, IO, LIMIT, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_adapter_write(const hd_adapter *adapter, const char *path);
/** Ends the adapter. Models that it was put onto keep what they need of it. NULL is fine. */
HD_API void hd_adapter_destroy(hd_adapter *adapter);
/** Number of pairs, and one of them, which lives as long as the adapter; NULL: there is none. */
HD_API size_t hd_adapter_count(const hd_adapter *adapter);
HD_API const hd_adapter_pair *hd_adapter_get(const hd_adapter *adapter, size_t index);
/** The adapter's alpha and the architecture that it is for. 0 and "" of NULL. */
HD_API float hd_adapter_alpha(const hd_adapter *adapter);
HD_API const char *hd_adapter_architecture(const hd_adapter *adapter);

/** Puts adapters onto a model, once and before its first session: sessions compute with them, in the weights' own place, on every
 *  device. @param strengths what each adapter's scale is multiplied by; NULL: 1. Statuses: NULL_POINTER, WRONG_STATE (a session or an
 *  adapter is there), UNSUPPORTED (an adapter of another architecture, or of a weight that is none of a layer's products), SHAPE,
 *  INVALID_ARGUMENT (a strength), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_model_adapt(hd_model *model, const hd_adapter *const *adapters, const float *strengths, size_t count);

/** Wishes for merging. */
typedef struct hd_merge_desc {
    const hd_adapter *const *adapters;
    const float *strengths;    /* as hd_model_adapt's */
    size_t       count;
    const char  *type;         /* of weights that change, "f16", "f32", "q8_0", ...; NULL: their own, which rounds them once more */
} hd_merge_desc;
/** Writes a model whose weights are W + scale * B A, whole or not at all; weights without an adapter stay as they are. Statuses as
 *  hd_model_adapt; NAME_NOT_FOUND (a type, or a weight that the model does not have), IO. */
HD_API hd_status hd_model_merge(hd_context *context, const char *path, const char *out_path, const hd_merge_desc *desc);

/* ---------------------------------------------------------------------------- 6. a model as a part of your programs */

/** A weight of a model. */
typedef struct hd_model_weight {
    char     name[64];  /* in its file, and as an input of a program */
    hd_dtype dtype;
    hd_shape shape;
    int      product;   /* 1: rows of a layer are multiplied with it, so that it can be adapted */
} hd_model_weight;
/** Weight number `index`, from 0 on; false: there are not so many. */
HD_API bool hd_model_get_weight(const hd_model *model, size_t index, hd_model_weight *out_weight);

/** How a model is put into a program. */
typedef struct hd_model_graph_desc {
    uint32_t sequences, length; /* tokens of each sequence, which sees its own earlier ones; there is no cache */
    hd_value tokens, positions; /* i32 [sequences * length]; positions 0, 1, 2, ... in each sequence */
    hd_value starts;            /* i32 [sequences * length]: the place in its sequence where what a token belongs to begins: it sees none
                                   before; positions are then counted from there. Not of encoders. 0: each sees the whole sequence */
    /** Called for each product of a layer, y f32 [rows,out] of x [rows,in] and the weight; returns what goes on in place of y. NULL: y. */
    hd_value (*adapt)(void *user, hd_program *p, const char *weight, hd_value x, hd_value y);
    /** Gives the value of a weight, of its type and shape, in place of an input, each time that it is used. NULL: all are inputs. */
    hd_value (*weight)(void *user, hd_program *p, const char *name);
    /** Told of each product of a layer, the choice of experts among them: x f32 [rows,in]; where `chosen` i32 [rows,used] is not 0,
     *  the weight has experts, and x is [rows,in], or [rows,used,in]. NULL: nobody is told. */
    void   (*on_product)(void *user, hd_program *p, const char *weight, hd_value x, hd_value chosen);
    /** Multiplies x f32 [rows,in] with a weight [out,in], that of the scores among them, in place of hd_matmul_with and HD_TRANSPOSE_B;
     *  returns f32 [rows,out]. Products with experts stay what they are. NULL: all do. */
    hd_value (*multiply)(void *user, hd_program *p, hd_value x, hd_value weight);
    /** Called with what goes into each product of a layer, x f32 [rows,in], under the weight's name, and with what the embedding gives,
     *  under "token_embd.weight"; returns what goes on in place of x. NULL: x. */
    hd_value (*enter)(void *user, hd_program *p, const char *weight, hd_value x);
    void    *user;     /* of all of them */
    int      headless; /* 1: out_scores is what the head's matrix would be multiplied with, f32 [sequences * length, hidden] */
    int      bf16;     /* 1: attention may round what it multiplies, as hd_attention_desc.bf16 says */
    uint32_t score_rows; /* rows of each of out_scores, so that not all scores need be there at once; 0: all */
    /** Called for each of out_scores as soon as it is built, with x [score_rows,hidden], what the last layer gave for its rows: what is
     *  added to the program here, such as gradients, comes before the scores of the next rows. NULL: nobody is told. */
    void   (*on_scores)(void *user, hd_program *p, hd_value x, hd_value scores);
} hd_model_graph_desc;
/** Adds to a program what the model computes. Its weights become inputs under their names, once: later calls for the same program share
 *  them; hd_weights_bind gives them their memory. Gradients go through it (hd_gradients), through quantised weights too.
 *  @param out_layers NULL, or room for 1 + the number of layers: what goes into the first one, then what each gives, [rows,hidden].
 *  @param out_scores f32 [sequences * length, vocabulary]; with score_rows room for as many values as there are such pieces,
 *  [score_rows,vocabulary] each. Statuses: NULL_POINTER, INVALID_ARGUMENT (score_rows that do not divide the rows among them), LIMIT
 *  (longer than the model's context), UNSUPPORTED (starts in an encoder), the program's own. */
HD_API hd_status hd_model_build(const hd_model *model, hd_program *p, const hd_model_graph_desc *desc, hd_value *out_layers,
                                hd_value *out_scores);

/** The weights of a model on a device, for plans of programs that it is a part of. On the CPU they are used where the file is mapped. */
typedef struct hd_weights hd_weights;
/** Loads them. @param out_weights yours; hd_weights_destroy, after the plans. The model may be closed before. Statuses: NULL_POINTER, IO,
 *  those of hd_buffer_create. */
HD_API hd_status hd_weights_load(hd_model *model, hd_device *device, hd_weights **out_weights);
/** Gives all weights' inputs of a plan their memory. Statuses: as hd_plan_bind. */
HD_API hd_status hd_weights_bind(hd_weights *weights, hd_plan *plan);
/** Ends them. NULL is fine. */
HD_API void hd_weights_destroy(hd_weights *weights);

/** Wishes for an importance file. */
typedef struct hd_importance_desc {
    hd_device     *device;         /* needed */
    const int32_t *tokens;         /* of a text: whole chunks, each read alone; what is left over is not used */
    size_t         count;
    uint32_t       chunk;          /* tokens of a chunk, at most the model's context */
    const char    *text;           /* what the text is called, for the file; NULL: "" */
    hd_math        math;
    hd_progress_fn progress;       /* told of chunks; NULL: nobody is told */
    void          *progress_user;
} hd_importance_desc;
/** Runs a text through a model and writes an importance file, whole or not at all: for each matrix of its layers and each of that
 *  matrix's columns the sum of squares of what came in, and how many rows came (of experts: those that chose each). It is llama.cpp's
 *  importance matrix as GGUF, for hd_model_quantize. All weights must fit on the device. Statuses: NULL_POINTER, INVALID_ARGUMENT (no
 *  whole chunk, no such token), LIMIT (a chunk longer than the model's context), UNSUPPORTED (an encoder), PARSE (the model gives no
 *  numbers), IO, those of hd_plan_create, hd_weights_load and hd_plan_run. */
HD_API hd_status hd_model_importance(hd_model *model, const char *out_path, const hd_importance_desc *desc);

/* ------------------------------------------------------------------------------------------------- 7. embeddings */

/* A VECTOR OF A TEXT, so that texts of like meaning have like vectors: what the last layer gives, behind the model's last norm, pooled
 * over the text's tokens. Encoders (bert, nomic-bert) are made for that, and any other model can be asked too: such as qwen3-embedding,
 * whose last token stands for the text. Tokens of a text see those of that text alone. */

/** A model on a device, ready to turn texts into vectors. Used by one thread at a time. */
typedef struct hd_embedder hd_embedder;

/** Wishes for an embedder. */
typedef struct hd_embedder_desc {
    hd_device *device;  /* NULL: the best one, opened for the embedder and closed with it */
    hd_pooling pooling; /* HD_POOLING_FILE: UNSUPPORTED where the file names none */
    int        raw;     /* 1: vectors as they come; 0: divided by their length, so that a dot product is the cosine */
    hd_math    math;    /* HD_MATH_EXACT: the same bits on every device, and whatever other texts there are */
} hd_embedder_desc;

/** Puts a model's weights onto a device. @param desc NULL for defaults. @param out_embedder yours; hd_embedder_destroy. The model may
 *  be closed before. Statuses: NULL_POINTER, INVALID_ARGUMENT, UNSUPPORTED (no pooling), IO (the file shrank), those of hd_device_open
 *  and hd_buffer_create. */
HD_API hd_status hd_embedder_create(hd_model *model, const hd_embedder_desc *desc, hd_embedder **out_embedder);

/** A text, as hd_model_tokenize gives it with HD_TOKENIZE_ADD_SPECIAL. */
typedef struct hd_embedder_text {
    const int32_t *tokens;
    size_t         count;  /* at least 1, at most the model's context */
} hd_embedder_text;

/** The vectors of texts. Those of like length run together, up to 1,024 tokens in one submission. @param out_vectors [count,hidden]
 *  (hd_model_info). Statuses: NULL_POINTER, ZERO_SIZE (no text, or one without tokens), INVALID_ARGUMENT (no such token; or a vector
 *  that is not a number, as broken weights make it), LIMIT (a text longer than the model's context: nothing is cut off), those of
 *  hd_plan_create and hd_plan_run. What is in out_vectors is of use only after HD_OK. */
HD_API hd_status hd_embedder_run(hd_embedder *embedder, const hd_embedder_text *texts, size_t count, float *out_vectors);
/** Ends the embedder. NULL is fine. */
HD_API void hd_embedder_destroy(hd_embedder *embedder);

/* ----------------------------------------------------------------------------------------------------- 8. images */

/* AN IMAGE IN A PROMPT. A model that sees comes as two files: the model, and what it sees with (Gemma 3's, which llama.cpp calls its
 * mmproj file). That one makes rows of an image, and the model takes them in place of tokens (hd_session_feed_image). */

/** What a model sees with, on a device. Used by one thread at a time. */
typedef struct hd_vision hd_vision;
/** Wishes for it. */
typedef struct hd_vision_desc {
    hd_device *device; /* NULL: the best one, opened for it and closed with it */
    hd_math    math;   /* HD_MATH_EXACT: the same rows on every device */
} hd_vision_desc;
/** Opens a GGUF file of the architecture "clip" whose projector is gemma3's, and puts its weights onto a device. @param desc NULL for
 *  defaults. @param out_vision yours; hd_vision_close. Statuses: NULL_POINTER, IO, PARSE, UNSUPPORTED (another kind of file or of
 *  projector; a tensor or key that is not known; named), NAME_NOT_FOUND, SHAPE, LIMIT, TYPE (a key or tensor, named), INVALID_ARGUMENT,
 *  OUT_OF_HOST_MEMORY, those of hd_device_open, hd_buffer_create and hd_plan_create. */
HD_API hd_status hd_vision_open(hd_context *context, const char *path, const hd_vision_desc *desc, hd_vision **out_vision);
/** Ends it. NULL is fine. */
HD_API void hd_vision_close(hd_vision *vision);

/** Facts of it. */
typedef struct hd_vision_info {
    uint32_t side;         /* pixels in each direction that images are resized to */
    uint32_t rows, hidden; /* of an image: so many rows, as long as `hidden` of the model that they are for (hd_model_info) */
    uint64_t weight_bytes;
} hd_vision_info;
/** Reads the facts. Statuses: NULL_POINTER. */
HD_API hd_status hd_vision_get_info(const hd_vision *vision, hd_vision_info *out_info);

/** An image: 8 bits each of red, green and blue, row by row from the top, [height][width][3]. */
typedef struct hd_image {
    uint32_t       width, height; /* at most 16,384 */
    const uint8_t *pixels;
} hd_image;
/** Reads an image: PNG (by libpng16, opened at run time), JPEG (by libturbojpeg, likewise) or PPM (P6, 8 bits a colour); of at most 64
 *  MiB and 2^26 pixels. How opaque pixels are and which way up a camera was held are left out. @param out_image yours; hd_image_free.
 *  Statuses: NULL_POINTER, IO, UNSUPPORTED (another kind of file; or the library is not there, named), PARSE, LIMIT,
 *  OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_image_read(hd_context *context, const char *path, hd_image *out_image);
/** Frees the pixels of an image that was read, before its context ends. NULL is fine. */
HD_API void hd_image_free(hd_context *context, hd_image *image);
/** The rows of an image, which is resized to a square first, as the model was trained: each pixel a mean of those that it covers.
 *  @param out_rows [rows,hidden] (hd_vision_info). Statuses: NULL_POINTER, ZERO_SIZE, LIMIT (of the image), INVALID_ARGUMENT (a row that
 *  is not a number, as broken weights make it), OUT_OF_HOST_MEMORY, those of hd_plan_run. */
HD_API hd_status hd_vision_encode(hd_vision *vision, const hd_image *image, float *out_rows);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_LLM_H */
