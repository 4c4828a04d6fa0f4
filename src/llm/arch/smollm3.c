/* smollm3.c: SmolLM 3: Llama of whose layers every fourth does not turn. */
#include "llm/arch/arch.h"

static const hdl_tensor_row tensors[] = {
    HDL_TENSORS_NORMS, HDL_TENSORS_QKV(true), HDL_TENSORS_OUT, HDL_TENSORS_GATED, HDL_TENSORS_OUTSIDE,
};

static void read(hdl_keys *k) { k->model->figures.still_period = 4; }

const hdl_arch hdl_arch_smollm3 = { tensors, HD_ROPE_NEIGHBOURS, hd_silu, read, false, false, NULL, false };
