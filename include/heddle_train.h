/* heddle_train.h: training, on any device that heddle.h reaches, to the same bits on all of them in exact mode. Built on heddle.h
 * only; a library of its own, libheddle_train.
 *
 * STEP BY STEP, for a program of your own
 *   1. hd_state            weights, and what the optimizer keeps of them, live on the device from step to step
 *   2. hd_gradients        the loss' gradients, as more operations of the same program (heddle.h)
 *   3. hd_clip_norm        all gradients together, held to a norm
 *   4. hd_adamw, hd_sgd, hd_muon   the step: operations that assign the states
 *   5. hd_plan_create      once; each hd_plan_run is then a step: one submission, nothing recorded
 * Or for a GPT: hd_trainer_create, hd_trainer_step again and again, hd_trainer_save.
 *
 * Ownership, errors, threads and structs are as in heddle.h. Failures wait on the context. Nothing here calls a mathematical
 * function of the C library: rates and corrections are made of + - * / and square roots in double, which IEEE 754 makes the
 * same on every host. */
#ifndef HEDDLE_TRAIN_H
#define HEDDLE_TRAIN_H

#include <heddle_llm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------- 1. random numbers */

/** Numbers 0 <= u < 1, f32 of any shape: the upper 24 bits of hd_random's words, times 2^-24. @param key, stream as hd_random's. */
HD_API hd_value hd_random_uniform(hd_program *p, hd_value key, uint32_t stream, hd_shape shape);
/** Numbers of a normal distribution of mean 0 and deviation 1, f32: sqrt(-2 ln(1 - u)) * cos(2 pi w) of two uniform numbers each (Box
 *  and Muller), so at most 5.8 in size. The same bits on every device in exact mode. */
HD_API hd_value hd_random_normal(hd_program *p, hd_value key, uint32_t stream, hd_shape shape);
/** x (f32), each element set to 0 with the probability `rate`, else divided by 1 - rate. @param rate 0 to below 1; 0: x itself. */
HD_API hd_value hd_dropout(hd_program *p, hd_value x, hd_value key, uint32_t stream, float rate);

/* --------------------------------------------------------------------------------------------------- 2. schedules */

/** How the learning rate goes down after warming up. */
typedef enum hd_decay { HD_DECAY_NONE = 0, HD_DECAY_LINEAR, HD_DECAY_COSINE } hd_decay;
/** The learning rate of each step. */
typedef struct hd_schedule {
    double   rate;   /* the highest */
    double   least;  /* at the end of the decay, and from there on */
    uint64_t warmup; /* steps in which it rises: step s (from 0) has rate * (s + 1) / warmup */
    uint64_t steps;  /* at which the decay ends; it begins at `warmup` */
    hd_decay decay;
} hd_schedule;
/** The rate of step `step`, from 0. Equal on every host: the cosine is a polynomial. Any thread. */
HD_API double hd_schedule_rate(const hd_schedule *schedule, uint64_t step);

/* -------------------------------------------------------------------------------------------------- 3. optimizers */

/* WEIGHTS OF 16 BITS. Where the state of the weights is bf16, all is computed in f32 and the new weights are rounded: by `words`, i32 [n]
 * of hd_random, at random (hd_round_random), so that steps of less than half a unit are not lost; or, where words is 0, to the nearest.
 *
 * WHY FLAT STATES. Weights, moments and gradients that are treated alike lie in one flat f32 tensor each, and the program reads a
 * weight as a slice of it (a view: nothing is copied). A step is then a few dispatches for all of them, whatever their number,
 * and what the optimizer keeps is written, read and saved as one piece. */

/** A norm over all gradients, and what follows from it; made by hd_clip_norm. */
typedef struct hd_clipping {
    hd_value norm;   /* f32 [1]: the square root of the sum of all squares */
    hd_value factor; /* f32 [1]: by which gradients are multiplied */
    hd_value fine;   /* u8 [1]: 1 where the norm is finite; else the step changes nothing */
} hd_clipping;
/** The norm of `count` flat f32 gradients [n], added up in their order (each as hd_dot adds), on the device: no host waits for it. The
 *  factor is min(1, most / (norm + 1e-6)). @param most 0: gradients are not clipped, and a step whose norm is not finite is
 *  skipped all the same. */
HD_API hd_clipping hd_clip_norm(hd_program *p, const hd_value *gradients, uint32_t count, float most);

/** Parameters of AdamW. Zero means the default. */
typedef struct hd_adamw_desc {
    double beta1, beta2; /* 0.9, 0.999 */
    double eps;          /* 1e-8; added to sqrt(v) / sqrt(1 - beta2^t), as PyTorch does */
} hd_adamw_desc;
/** What an optimizer's step takes from the host, as an input f32 [HD_RATES] of the program. */
enum { HD_RATES = 3 };
/** Fills in the rates of step `step` (from 0) of AdamW: 1 - rate * decay, (1 - beta1^t) / rate, 1 / sqrt(1 - beta2^t), with t =
 *  step + 1. The powers are made by multiplication. @param decay weight decay, apart from the gradient; 0 for biases and norms.
 *  @param desc NULL for defaults. */
HD_API void hd_adamw_rates(const hd_adamw_desc *desc, double rate, double decay, uint64_t step, float out_rates[HD_RATES]);
/** A step of AdamW (Loshchilov and Hutter, 2019) over flat f32 states [n]:
 *    m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  w = w (1 - rate decay) - rate (m / c1) / (sqrt(v / c2) + eps)
 *  with g the gradient times clip->factor and c = 1 - beta^t. m and v are held to multiples of 2^-100: moments of weights that
 *  rest fade to a few hundred of these at most, and never become subnormal, on any device. Where clip->fine is 0 nothing changes.
 *  @param states weights, m, v. @param rates f32 [HD_RATES], from hd_adamw_rates. @param words as below. @return the weights' new value. */
HD_API hd_value hd_adamw(hd_program *p, const hd_value states[3], hd_value gradient, const hd_clipping *clip, hd_value rates,
                         const hd_adamw_desc *desc, hd_value words);
/** The same of hd_sgd: 1 - rate * decay, rate, 0. */
HD_API void hd_sgd_rates(double rate, double decay, float out_rates[HD_RATES]);
/** A step of gradient descent with momentum over flat f32 states [n]: m = momentum m + g, w = w (1 - rate decay) - rate m.
 *  @param states weights, m. @param rates f32 [HD_RATES], from hd_sgd_rates. @param words as below. @return the weights' new value. */
HD_API hd_value hd_sgd(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates, float momentum,
                       hd_value words);

/** A matrix in flat states, or several side by side. */
typedef struct hd_muon_matrix {
    uint64_t first;         /* its first element */
    uint32_t rows, columns;
    uint32_t side_by_side;  /* so many matrices of equal width lie next to each other, such as those of queries, keys and values; 0: 1 */
    int      inputs_first;  /* 1: a row for each input, y = x W; 0: a row for each output, y = W x */
} hd_muon_matrix;
/** What Muon needs to know. */
typedef struct hd_muon_desc {
    double   momentum;               /* 0: 0.95 */
    uint32_t layers;                 /* the states are as many pieces of equal length, each with matrices at the same places; 0: 1 */
    uint32_t count;                  /* matrices of a layer, at most 64, */
    const hd_muon_matrix *matrices;  /* ascending; between them are elements that stay 0 */
} hd_muon_desc;
/** A step of Muon (Jordan, 2024) over matrices in flat f32 states [n]: m = momentum m + (1 - momentum) g, and by Nesterov
 *  u = momentum m + (1 - momentum) g; each matrix of u, divided by its Frobenius norm + 1e-7, goes through five steps of Newton and
 *  Schulz, x = 3.4445 x + (-4.7750 s + 2.0315 s s) x with s = x x^T (of a tall matrix x^T x, from the right), which bring its singular
 *  values near 1; w = w (1 - rate decay) - rate sqrt(max(1, outputs / inputs)) x. All of it in f32; g, clip and what m is held to are
 *  as in hd_adamw. For hidden layers: embeddings, heads, biases and norms are AdamW's.
 *  @param states weights, m. @param rates f32 [HD_RATES], from hd_sgd_rates. @param words as above. @return the weights' new value; 0 where
 *  matrices overlap or lie outside, and the failure sticks to the program. */
HD_API hd_value hd_muon(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates,
                        const hd_muon_desc *desc, hd_value words);

/* -------------------------------------------------------------------------------------------------- 4. safetensors */

/** A tensor in a safetensors file. */
typedef struct hd_safetensor {
    const char *name;
    const char *type;    /* as the file says it: "F32", "BF16", "I64", ... */
    hd_dtype    dtype;   /* HD_DTYPE_NONE for a type that heddle does not compute with */
    hd_shape    shape;
    const void *data;    /* dense, little-endian */
    uint64_t    bytes;
} hd_safetensor;
/** A safetensors file, opened. */
typedef struct hd_safetensors hd_safetensors;

/** Opens a safetensors file: its header (at most 100 MB of JSON) is read and checked, its tensors are mapped. Anybody's file may be
 *  given: sizes and offsets are compared before they are used, and the tensors must fill the file's bytes without a gap or an
 *  overlap, as the format demands. @param out_file yours; hd_safetensors_close. Statuses: NULL_POINTER, IO, PARSE (no such file,
 *  named), LIMIT (the header), UNSUPPORTED (more than HD_MAX_RANK axes, a length of 0, an unknown type), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_safetensors_open(hd_context *context, const char *path, hd_safetensors **out_file);
/** Ends the file and all that it gave out. NULL is fine. */
HD_API void hd_safetensors_close(hd_safetensors *file);
/** Number of tensors. */
HD_API size_t hd_safetensors_count(const hd_safetensors *file);
/** The tensor at `index`, in the order of their bytes; NULL where there is none. */
HD_API const hd_safetensor *hd_safetensors_get(const hd_safetensors *file, size_t index);
/** The tensor called `name`, or NULL. */
HD_API const hd_safetensor *hd_safetensors_find(const hd_safetensors *file, const char *name);
/** A text of the file's __metadata__, or NULL. */
HD_API const char *hd_safetensors_metadata(const hd_safetensors *file, const char *key);
/** Writes tensors as a new file, which holds all of them or is not there. Of each tensor name, dtype, shape and data are read.
 *  @param metadata pairs of key and text, ended by NULL; NULL: none. Statuses: NULL_POINTER, TYPE (a quantised type, or none), NAME_TAKEN,
 *  IO, LIMIT, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_safetensors_write(hd_context *context, const char *path, const hd_safetensor *tensors, size_t count,
                                      const char *const *metadata);

/* ------------------------------------------------------------------------------------------------ 5. training a GPT */

/** What a model that learns from scratch is like. */
typedef enum hd_family {
    HD_FAMILY_GPT2 = 0, /* learned positions, layer norm before attention and before the feed-forward layer, gelu (tanh), a head that
                           shares the embedding's weights */
    HD_FAMILY_LLAMA,    /* rotary positions, RMS norms, gates (silu), no biases, fewer heads of keys and values where wanted */
    HD_FAMILY_QWEN3     /* Llama with a norm of each head of queries and keys */
} hd_family;
/** A model that learns from scratch. */
typedef struct hd_gpt {
    uint32_t  layers, width, heads; /* of GPT-2: width is a multiple of heads */
    uint32_t  context;              /* the most tokens of a sequence */
    uint32_t  vocabulary;
    hd_family family;
    /* of llama and qwen3 */
    uint32_t  kv_heads;             /* heads is a multiple of them; 0: heads */
    uint32_t  head_size;            /* an even number; 0: width / heads */
    uint32_t  feed_forward;
    uint32_t  tied;                 /* 1: the head shares the embedding's weights */
    double    epsilon, rope_theta;  /* 0: 1e-6, 10000 */
} hd_gpt;

/** Tokens to train on: numbers of 1, 2 or 4 bytes each, little-endian; a text's bytes are such numbers. Borrowed. */
typedef struct hd_token_data {
    const void *tokens;
    uint32_t    token_bytes;
    uint64_t    count;
} hd_token_data;
/** Fills in a step's batch: `batch` sequences of `length` tokens from random places, and for each token the one that comes next. It is
 *  a function of seed and step, so a run's place in its data is one number. False, and nothing is filled in, where there are not more
 *  tokens than `length`, or their size is none of those. @param out_tokens, out_targets [batch, length]. Any thread. */
HD_API bool hd_draw_batch(const hd_token_data *data, uint64_t seed, uint64_t step, uint32_t batch, uint32_t length,
                          int32_t *out_tokens, int32_t *out_targets);
/** Fills in batch `number` of the data in its order, cut into sequences of `length` tokens, for hd_trainer_loss: so the batches from 0 on
 *  have every token but the first as a target, once. Behind the data's end tokens are 0 and targets -1. False, and nothing is
 *  filled in, where the batch lies behind the end, or a token's size is none of those. Any thread. */
HD_API bool hd_cut_batch(const hd_token_data *data, uint64_t number, uint32_t batch, uint32_t length, int32_t *out_tokens,
                         int32_t *out_targets);

/** Which adapters learn beside a model that stays as it is: y = W x + alpha / rank * B (A x), of some of its weights W (LoRA). */
typedef struct hd_lora_desc {
    uint32_t rank;
    float    alpha;
    char     targets[192]; /* names of weights without "blk.N." and ".weight", with commas between: "attn_q,attn_v"; "": all products of
                              attention and of feed-forward layers that are no experts */
} hd_lora_desc;

/** Which optimizer takes a step. */
typedef enum hd_optimizer {
    HD_OPTIMIZER_ADAMW = 0,
    HD_OPTIMIZER_MUON,      /* of the matrices of a GPT's layers, and AdamW of all else */
    HD_OPTIMIZER_SGD        /* gradient descent with momentum, of everything */
} hd_optimizer;

/** What matrix products read. Their sums are f32, and so is all else: weights (but see hd_trainer_desc.narrow), gradients of these, what
 *  the optimizer keeps, residual sums, norms, softmax and losses. */
typedef enum hd_precision {
    HD_PRECISION_F32 = 0,
    HD_PRECISION_BF16       /* mixed precision: activations, weights and gradients that meet in a product are rounded to bf16 first, a
                               weight once a step, and what lies between two products of a GPT's layer is bf16; on devices with
                               matrix units for bf16 several times as fast. In fast mode, and there, attention may round what it
                               multiplies (hd_attention_desc.bf16) */
} hd_precision;

/** Everything that a run of training is made from: equal ones give equal weights, to the bit in exact mode on every device. */
typedef struct hd_trainer_desc {
    hd_model     *base;        /* NULL: a GPT learns, from scratch. Else adapters of this model do, whose weights may be of any type and
                                  stay as they are; `model` is filled in from it. It outlives its trainer */
    hd_lora_desc  lora;        /* with a base */
    hd_gpt        model;
    uint32_t      batch;       /* sequences of a step */
    uint32_t      micro_batch; /* sequences at once, of which the batch is a multiple; exact bits do not hang on it. 0: batch */
    uint32_t      length;      /* tokens of a sequence; 0: the model's context, with a base at most 512 */
    uint64_t      seed;        /* of the first weights and of dropout */
    hd_schedule   schedule;
    hd_adamw_desc adamw;
    hd_optimizer  optimizer;
    double        muon_rate;   /* with Muon: its highest rate, 0: 0.02; it rises and goes down as the schedule's, which is AdamW's */
    double        muon_momentum; /* 0: 0.95 */
    double        sgd_momentum; /* of HD_OPTIMIZER_SGD, from 0 to below 1; 0: none */
    double        weight_decay; /* of matrices and embeddings, not of biases and norms */
    float         clip;        /* the most that the gradients' norm may be; 0: any */
    float         dropout;     /* of what the embedding gives, of what attention and the feed-forward layer add, of the latter's inner
                                  values; not of attention's weights, which one operation makes and uses. With a base of what goes into
                                  each A. 0: none */
    uint32_t      ternary;     /* 1: a model that learns whole computes with its layers' matrices rounded to -1, 0 and 1 times the mean of
                                  their sizes, as BitNet b1.58's; gradients go to the weights as if they were not rounded. Rows are whole
                                  blocks of HD_TQ2_0, as which they are exported */
    hd_math       math;
    hd_precision  precision;   /* with a base its quantised weights stay as they are, and products round them */
    uint32_t      narrow;      /* 1: matrices and embeddings of a model that learns whole lie in bf16, and each step rounds them at random
                                  (hd_round_random), by seed, step and element: 2 bytes a weight where f32 has 4, and copies in bf16
                                  for products are not needed. Goes with HD_PRECISION_BF16; vectors and what the optimizer keeps stay
                                  f32 */
    uint32_t      recompute;   /* 1: of a step's forward part only what goes from layer to layer is kept, and a layer is computed again when
                                  its gradients are: much less memory, for about a third more time. In exact mode the bits are the same */
    uint32_t      packed;      /* 1, with a base: a sequence holds several samples, which do not see each other (hd_trainer_starts) */
    uint64_t      data;        /* tells what it is trained on, such as a hash; only kept in checkpoints. 0: nothing is told */
    const hd_model *tokenizer; /* that gave the tokens; only kept in checkpoints, as tokenizer.gguf; read when one is saved. NULL: none */
} hd_trainer_desc;
/** A model in training, with its optimizer's state, on one device. One thread at a time. */
typedef struct hd_trainer hd_trainer;

/** How a step went. */
typedef struct hd_train_report {
    uint64_t step;  /* from 0 */
    float    loss;  /* mean over the batch's targets, before the step */
    float    norm;  /* of all gradients, before clipping; not finite: the step changed nothing */
    double   rate;
} hd_train_report;

/** Makes a model with weights drawn from the seed: a normal distribution of deviation 0.02, of what is added to the residual stream
 *  0.02 / sqrt(2 layers); biases 0, norms 1. Or adapters: A between -1 and 1 times 1 / sqrt(in), B 0. Plans are made here, once.
 *  @param out_trainer yours; hd_trainer_destroy, before its device. Statuses: NULL_POINTER, INVALID_ARGUMENT (a field, named),
 *  NAME_NOT_FOUND (a target), those of hd_plan_create and hd_buffer_create. */
HD_API hd_status hd_trainer_create(hd_context *context, hd_device *device, const hd_trainer_desc *desc, hd_trainer **out_trainer);
/** The memory that training takes on the device, without taking it: hd_plan_estimate of a step, whose states are the weights and what
 *  the optimizer keeps, and of drawing the first weights, whose plan the device keeps until it needs that memory.
 *  Statuses: as hd_trainer_create. */
HD_API hd_status hd_trainer_fit(hd_context *context, hd_device *device, const hd_trainer_desc *desc, hd_plan_memory *out_memory);
/** Ends it. NULL is fine. */
HD_API void hd_trainer_destroy(hd_trainer *trainer);
/** What it was made from, with defaults filled in. Lives as long as the trainer. */
HD_API const hd_trainer_desc *hd_trainer_get_desc(const hd_trainer *trainer);
/** Steps that were begun. */
HD_API uint64_t hd_trainer_steps(const hd_trainer *trainer);
/** Number of weights, as they are counted: each element of each tensor once. */
HD_API uint64_t hd_trainer_parameters(const hd_trainer *trainer);
/** Begins a step and tells of the one before, so that the device never waits for the host.
 *  @param tokens, targets [batch, length], each in 0..vocabulary - 1; the target is the token that comes next, with a base also -1: none
 *  that is learned, as behind the end of a short sequence.
 *  @param out_report filled in where *out_told becomes true: not at the first step. Statuses: NULL_POINTER, INVALID_ARGUMENT (a token,
 *  named), those of hd_stream_submit. */
HD_API hd_status hd_trainer_step(hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, hd_train_report *out_report,
                                 bool *out_told);
/** Tells where the samples of packed sequences begin, for the steps and losses that follow; copied. Before that each sequence is one.
 *  @param starts [batch, length]: for each token the place in its sequence where its sample begins, at most its own. Of hd_trainer_loss
 *  the first micro_batch rows count. Statuses: NULL_POINTER, WRONG_STATE (hd_trainer_desc.packed is 0), INVALID_ARGUMENT (a place). */
HD_API hd_status hd_trainer_starts(hd_trainer *trainer, const int32_t *starts);
/** Waits for the last step and tells of it, where that was not done yet. Statuses: as hd_ticket_wait. */
HD_API hd_status hd_trainer_finish(hd_trainer *trainer, hd_train_report *out_report, bool *out_told);
/** The mean loss of the targets of [micro_batch, length] tokens, without training on them; a target of -1 is none. 0 where there is no
 *  target. */
HD_API hd_status hd_trainer_loss(hd_trainer *trainer, const int32_t *tokens, const int32_t *targets, float *out_loss);
/** Draws the token that follows `count` tokens, of which the last `length` are seen: the largest of score / temperature plus noise of
 *  Gumbel's distribution, so that each comes with its probability. @param temperature 0: the most probable one.
 *  @param draw tells draws apart. Statuses: NULL_POINTER, ZERO_SIZE, those of hd_plan_run. */
HD_API hd_status hd_trainer_next(hd_trainer *trainer, const int32_t *tokens, size_t count, float temperature, uint64_t draw,
                                 int32_t *out_token);
/** The weights that did best. */
typedef struct hd_train_best {
    uint64_t steps; /* after which they were kept; 0: none are */
    float    loss;
} hd_train_best;
/** Keeps a copy of the weights on the host, in place of the one that was kept before: those that did best on a held-out text, say. A
 *  checkpoint has it too, as best.safetensors. Statuses: NULL_POINTER, INVALID_ARGUMENT (no step was begun, or the loss is not
 *  finite), those of hd_buffer_read, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_trainer_keep(hd_trainer *trainer, float loss);
/** What is kept. */
HD_API hd_train_best hd_trainer_best(const hd_trainer *trainer);
/** Puts the weights that are kept in the place of the present ones, to be exported or measured; the optimizer's state stays that of the
 *  present ones. Statuses: NULL_POINTER, WRONG_STATE (none are kept), those of hd_buffer_write. */
HD_API hd_status hd_trainer_use_best(hd_trainer *trainer);
/** A hash of all weights and of all that the optimizer keeps (FNV-1a of their bytes): runs that are equal to the bit have equal ones. */
HD_API hd_status hd_trainer_hash(hd_trainer *trainer, uint64_t *out_hash);

/* CHECKPOINTS are folders: weights.safetensors under the names of Hugging Face's GPT2LMHeadModel, LlamaForCausalLM or Qwen3ForCausalLM,
 * config.json for it (of adapters under the names that they have in GGUF files, and none), optimizer.safetensors (NAME.exp_avg and
 * NAME.exp_avg_sq, of Muon and gradient descent NAME.momentum_buffer), best.safetensors where weights are kept (hd_trainer_keep),
 * trainer.json, which is the desc and the step, and tokenizer.gguf where there is one, for hd_model_desc.tokenizer_only. A folder is
 * written under another name, down to the disk, and then renamed: it is there whole or not at all. A run that goes on from one gives the
 * bits of a run that never stopped, on another device too. */

/** Writes a checkpoint after the steps that were begun. Statuses: NAME_TAKEN (the folder is there), IO, those of hd_buffer_read. */
HD_API hd_status hd_trainer_save(hd_trainer *trainer, const char *folder);
/** What a checkpoint was made from, for hd_trainer_create, and its step. Where lora.rank is not 0 adapters were trained, and the base is
 *  to be filled in. Statuses: IO, PARSE, LIMIT. */
HD_API hd_status hd_trainer_read(hd_context *context, const char *folder, hd_trainer_desc *out_desc, uint64_t *out_step);
/** Takes weights, optimizer state and step from a checkpoint of a model of the same shape. After a failure the trainer is of no more
 *  use than to be destroyed. Statuses: IO, PARSE, NAME_NOT_FOUND, SHAPE, TYPE (a tensor, named). */
HD_API hd_status hd_trainer_load(hd_trainer *trainer, const char *folder);

/** The adapters of a model in training, after the steps that were begun. @param out_adapter yours; hd_adapter_destroy. Statuses:
 *  NULL_POINTER, WRONG_STATE (a GPT learns), those of hd_buffer_read, OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_trainer_adapter(hd_trainer *trainer, hd_adapter **out_adapter);

/** What an exported model is to say of itself. */
typedef struct hd_export_desc {
    const char     *name;      /* general.name; NULL: none */
    const hd_model *tokenizer; /* whose vocabulary its tokens are, all of which the trained model knows; NULL: those below, or none */
    int             bytes;     /* 1: its tokens 0 to 255 are the bytes of a text */
} hd_export_desc;
/** Writes the model as a GGUF file of f32 weights, ternary ones as tq2_0, whole or not at all, after the steps that were begun:
 *  hd_model_open takes it, hd_model_quantize makes it smaller. @param desc NULL: a model without a tokenizer. Statuses: NULL_POINTER,
 *  INVALID_ARGUMENT (a tokenizer of another number of tokens), WRONG_STATE (adapters learn: hd_trainer_adapter), IO, OUT_OF_HOST_MEMORY,
 *  those of hd_plan_create and hd_buffer_read. */
HD_API hd_status hd_trainer_export(hd_trainer *trainer, const char *path, const hd_export_desc *desc);

/* ------------------------------------------------------------------------------------ 6. samples, and adapters of PEFT */

/** Conversations and texts as tokens, to train adapters on. */
typedef struct hd_samples hd_samples;
/** Wishes for samples. */
typedef struct hd_samples_desc {
    const char *template_name; /* of a conversation, as hd_model_chat_tokens's; NULL: the model's own */
    uint32_t    length;        /* tokens that a sequence has room for, 0: 512; what a sample has behind them is left out */
    int         packed;        /* 1: a row holds samples of the file one behind the other, as many as fit whole, and hd_samples_starts
                                  tells where each begins; 0: each has a row of its own */
} hd_samples_desc;
/** What was read. */
typedef struct hd_samples_info {
    uint64_t samples, rows;   /* rows: in which they lie; as many as samples where they are not packed */
    uint64_t tokens, targets; /* of the samples; tokens that are learned */
    uint64_t cut, empty;      /* samples that were too long; lines that had no target within their length, and are left out */
    uint64_t hash;            /* of all tokens and targets, never 0 */
} hd_samples_info;
/** Reads a JSONL file, each line of which is a JSON object: {"messages": [{"role": ..., "content": ...}, ...]} of which what assistants
 *  say is learned; {"prompt": ..., "completion": ...}, a conversation of one question and its answer; or {"text": ...}, of which all
 *  is learned. Anybody's file may be given. @param desc NULL for defaults. @param out_samples yours; hd_samples_destroy.
 *  Statuses: NULL_POINTER, IO, PARSE (a line, by its number), LIMIT (a line of more than 1 MiB), ZERO_SIZE (no sample), those of
 *  hd_model_chat_said. */
HD_API hd_status hd_samples_read(hd_context *context, const hd_model *model, const char *path, const hd_samples_desc *desc,
                                 hd_samples **out_samples);
/** Ends them. NULL is fine. */
HD_API void hd_samples_destroy(hd_samples *samples);
/** What there is. Zeros of NULL. */
HD_API hd_samples_info hd_samples_get_info(const hd_samples *samples);
/** Fills in a step's batch of rows, behind whose samples are no targets: all rows in another order each time they are through, which
 *  is a function of seed and step. @param out_tokens, out_targets [batch, length], as hd_trainer_step takes them. Any thread. */
HD_API void hd_samples_draw(const hd_samples *samples, uint64_t seed, uint64_t step, uint32_t batch, int32_t *out_tokens,
                            int32_t *out_targets);
/** Fills in where the samples of the rows of hd_samples_draw begin, as hd_trainer_starts takes it: for each token the place in its row
 *  where its sample does; behind the samples a token's own. @param out_starts [batch, length]. Any thread. */
HD_API void hd_samples_starts(const hd_samples *samples, uint64_t seed, uint64_t step, uint32_t batch, int32_t *out_starts);

/** Reads an adapter as Hugging Face's PEFT keeps it: a folder with adapter_config.json and adapter_model.safetensors. @param model that it
 *  is for, whose weights it names as transformers do. @param out_adapter yours; hd_adapter_destroy. Statuses: NULL_POINTER, IO,
 *  PARSE, LIMIT, UNSUPPORTED (a kind of adapter, or a setting, that heddle does not compute; a weight that it does not know, named), SHAPE,
 *  NAME_NOT_FOUND (the other half of a pair), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_peft_read(hd_context *context, const hd_model *model, const char *folder, hd_adapter **out_adapter);
/** Writes such a folder, which may be there; each file is there whole or not at all. Statuses: NULL_POINTER, IO, UNSUPPORTED (a weight that
 *  has no name in transformers; pairs of several ranks), OUT_OF_HOST_MEMORY. */
HD_API hd_status hd_peft_write(hd_context *context, const hd_model *model, const hd_adapter *adapter, const char *folder);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* HEDDLE_TRAIN_H */
