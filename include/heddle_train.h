/* heddle_train.h: training, on any device that heddle.h reaches, to the same bits on all of them in exact mode. Built on heddle.h
 * only; a library of its own, libheddle_train.
 *
 * STEP BY STEP, for a program of your own
 *   1. hd_state            weights, and what the optimizer keeps of them, live on the device from step to step
 *   2. hd_gradients        the loss' gradients, as more operations of the same program (heddle.h)
 *   3. hd_clip_norm        all gradients together, held to a norm
 *   4. hd_adamw, hd_sgd    the step: operations that assign the states
 *   5. hd_plan_create      once; each hd_plan_run is then a step: one submission, nothing recorded
 *
 * Ownership, errors, threads and structs are as in heddle.h. Failures wait on the context. Nothing here calls a mathematical
 * function of the C library: rates and corrections are made of + - * / and square roots in double, which IEEE 754 makes the
 * same on every host. */
#ifndef HEDDLE_TRAIN_H
#define HEDDLE_TRAIN_H

#include <heddle.h>

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

/* WHY FLAT STATES. Weights, moments and gradients that are treated alike lie in one flat f32 tensor each, and the program reads a
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
 *  @param states weights, m, v. @param rates f32 [HD_RATES], from hd_adamw_rates. @return the weights' new value. */
HD_API hd_value hd_adamw(hd_program *p, const hd_value states[3], hd_value gradient, const hd_clipping *clip, hd_value rates,
                         const hd_adamw_desc *desc);
/** The same of hd_sgd: 1 - rate * decay, rate, 0. */
HD_API void hd_sgd_rates(double rate, double decay, float out_rates[HD_RATES]);
/** A step of gradient descent with momentum over flat f32 states [n]: m = momentum m + g, w = w (1 - rate decay) - rate m.
 *  @param states weights, m. @param rates f32 [HD_RATES], from hd_sgd_rates. @return the weights' new value. */
HD_API hd_value hd_sgd(hd_program *p, const hd_value states[2], hd_value gradient, const hd_clipping *clip, hd_value rates, float momentum);

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

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* HEDDLE_TRAIN_H */
