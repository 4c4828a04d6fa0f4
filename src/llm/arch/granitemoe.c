/* granitemoe.c: Granite with experts, and with one that all tokens use where the file has it. */
#include "llm/arch/arch.h"

static const hdl_tensor_row with_experts[] = {
    HDL_TENSORS_NORMS,   HDL_TENSORS_QKV(true), HDL_TENSORS_OUT,
    HDL_TENSORS_EXPERTS, HDL_TENSORS_SHARED,    HDL_TENSORS_OUTSIDE,
};

const hdl_arch hdl_arch_granitemoe = { NULL,  HD_ROPE_NEIGHBOURS, hd_silu, hdl_granite_read, false,
                                       false, with_experts,       true };
