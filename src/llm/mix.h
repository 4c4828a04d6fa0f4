/* mix.h: which type each tensor of a model gets when it is quantised: what files are called by ("q4_k_m") and
 * llama.cpp's rules for them, which give some tensors more bits. */
#ifndef HDL_MIX_H
#define HDL_MIX_H

#include "llm/gguf.h"

typedef struct hdl_mix_row {
    const char   *name;
    uint32_t      file_type; /* general.file_type */
    hdl_gguf_type base;      /* of most tensors */
} hdl_mix_row;
/* The row called `name`, or NULL. hdl_mix_names: all of them, for an error line. */
const hdl_mix_row *hdl_mix_find(const char *name);
const char *hdl_mix_names(void);

/* A model on its way through the rules: tensors come layer by layer. */
typedef struct hdl_mix {
    const hdl_mix_row *row;
    uint32_t layers, experts, group; /* group: heads for each head of keys and values */
    bool     has_importance;
    bool     falcon, is_70b, tied;   /* tied: the embedding is the output too */
    uint32_t values, downs;          /* tensors of values in all, */
    uint32_t values_seen, downs_seen; /* and how many of them came */
} hdl_mix;
/* What the rules need to know of a model. Statuses: those of the getters in gguf.h. */
hd_status hdl_mix_begin(const hdl_gguf *gguf, const hdl_mix_row *row, bool has_importance, hdl_mix *out_mix,
                        hd_error *error);
/* The type of the next tensor; its own where it is not to be changed. */
uint32_t hdl_mix_type(hdl_mix *mix, const hdl_gguf_tensor *tensor);

#endif
