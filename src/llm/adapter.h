/* adapter.h: a low-rank adapter in memory, and its names. */
#ifndef HDL_ADAPTER_H
#define HDL_ADAPTER_H

#include "llm/model.h"

enum { HDL_MOST_RANK = 1 << 16, HDL_MOST_PAIRS = 1 << 14 };

struct hd_adapter {
    hd_context      *context;
    void            *handle;       /* that the caller has */
    hd_allocator     allocator;
    char             architecture[64];
    float            alpha;
    hd_adapter_pair *pairs;
    hdl_names       *names;        /* of the weights */
    size_t           count;
};

/* Puts the adapter in the place of its handle, of which `adapter_at` is the address. */
hd_status hdl_adapter_find(void *adapter_at);
/* The pair for a weight, or NULL. */
const hd_adapter_pair *hdl_adapter_pair_of(const hd_adapter *adapter, hdl_span weight);
/* What B A is multiplied by. */
float hdl_adapter_scale(const hd_adapter *adapter, const hd_adapter_pair *pair, float strength);
/* Every pair has a weight of the model's that rows are multiplied with, and its shape. */
hd_status hdl_adapter_check(const hd_model *model, const hd_adapter *adapter, hd_error *error);
/* Puts adapters in the place of their handles, into an array that the caller frees (of `count` pointers), and checks
 * their strengths. */
hd_status hdl_adapters_take(hd_context *context, const hd_adapter *const *adapters, const float *strengths,
                            size_t count, const hd_adapter ***out_adapters);

#endif
