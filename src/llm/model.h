/* model.h: a GGUF file as a model: its figures, its vocabulary, its weights by role. Read-only once opened. */
#ifndef HDL_MODEL_H
#define HDL_MODEL_H

#include "llm/gguf.h"
#include "llm/tokenizer.h"
#include <heddle_llm.h>

/* What the file's architecture decides that no key says. */
typedef struct hdl_arch {
    const char     *name;        /* general.architecture, and the prefix of its keys */
    hd_rope_pairing pairing;
    bool            qkv_bias;    /* must be there; elsewhere biases are taken where the file has them */
    bool            head_norm;   /* rms_norm of each query and key head */
    bool            sub_norm;    /* rms_norm before the output and down products */
    bool            relu_squared;/* in place of silu */
} hdl_arch;

/* Figures of a model. */
typedef struct hdl_figures {
    uint32_t layers, hidden, heads, kv_heads, head_size, feed_forward, vocabulary, context;
    float    epsilon;
    float    rope_theta, rope_scale, rope_magnitude; /* as in hd_rope_desc */
    uint32_t rope_dims;
    float   *rope_factors;       /* rope_dims / 2 divisors, or NULL */
} hdl_figures;

/* Weights of a layer, by role; then those outside of the layers. */
typedef enum hdl_role {
    HDL_ATTN_NORM, HDL_Q, HDL_K, HDL_V, HDL_Q_BIAS, HDL_K_BIAS, HDL_V_BIAS, HDL_Q_NORM, HDL_K_NORM, HDL_ATTN_SUB_NORM,
    HDL_OUT, HDL_OUT_BIAS, HDL_FFN_NORM, HDL_GATE, HDL_UP, HDL_FFN_SUB_NORM, HDL_DOWN, HDL_LAYER_ROLES,
    HDL_EMBEDDING = HDL_LAYER_ROLES, HDL_FINAL_NORM, HDL_LOGITS, HDL_ROLES
} hdl_role;

/* A weight as programs use it. */
typedef struct hdl_weight {
    bool            present;
    hdl_gguf_tensor tensor;
    hd_dtype        dtype;   /* on the device: the file's, but i2s.h's for Microsoft's i2_s */
    hd_shape        shape;
    float           scale;   /* the product's result is multiplied by it; 1 for none */
} hdl_weight;

struct hd_model {
    hd_context    *context;
    hd_allocator   allocator;
    hdl_gguf      *gguf;
    const hdl_arch *arch;
    hdl_figures    figures;
    hdl_weight    *weights;      /* [layers][HDL_LAYER_ROLES], then the others */
    uint32_t       weight_count;
    hdl_tokenizer *tokenizer;
    hdl_span       chat_template; /* of no bytes where there is none */
    int32_t        ends[16];      /* tokens that end an answer */
    uint32_t       end_count;
};

/* hd_model_open out of `files`; NULL: the system's. */
hd_status hdl_model_open(hd_context *context, const char *path, const hd_model_desc *desc, const hdl_files *files, hd_model **out_model);

/* The weight of a role; `layer` is for those of a layer. */
const hdl_weight *hdl_weight_of(const hd_model *model, uint32_t layer, hdl_role role);
/* What the weight is called in the file, and as an input of a program; of a layer that goes by no number: without it. */
enum { HDL_WEIGHT_NAME = 64 };
#define HDL_NO_LAYER UINT32_MAX
void hdl_weight_name(uint32_t layer, hdl_role role, char out[HDL_WEIGHT_NAME]);
/* Bytes that the weight takes on a device. */
uint64_t hdl_weight_bytes(const hdl_weight *weight);

/* ---- figures.c ---- */
/* Reads architecture and figures. Statuses: those of the getters, UNSUPPORTED. */
hd_status hdl_figures_read(hd_model *model, hd_error *error);
/* Finds and checks every weight. */
hd_status hdl_weights_find(hd_model *model, hd_error *error);
/* Keeps a failure of the model's room on its context; returns `status`. */
hd_status hdl_model_fail(const hd_model *model, hd_status status, const char *format, ...) HDL_PRINTF(3, 4);
/* HD_OK, or UNSUPPORTED kept on the context: the file has no vocabulary. */
hd_status hdl_need_tokenizer(const hd_model *model);
/* ---- vocabulary.c ---- */
/* Makes the tokenizer, and finds the tokens that end an answer. */
hd_status hdl_vocabulary_read(hd_model *model, hd_error *error);

#endif
