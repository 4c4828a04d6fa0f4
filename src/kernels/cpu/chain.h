/* chain.h: element-wise chains on rows of elements, for the CPU forms of elementwise and of kernels with an epilogue.
 * A row holds elements' bits as the computing type's, a word each, like the registers of the GPU form: floats as f32
 * bits, i32 as it is, u8 as 0..255. */
#ifndef HDCPU_CHAIN_H
#define HDCPU_CHAIN_H

#include "kernels/kernel.h"

#define HDCPU_ROW 512u /* most elements of a row */
#define HDCPU_CHAIN_SCRATCH_BYTES (HDI_CHAIN_STEPS * HDCPU_ROW * 4u)

#define HDCPU_ELEMENTWISE_SCRATCH_BYTES ((HDI_CHAIN_INPUTS + 1u) * HDCPU_ROW * 4u + HDCPU_CHAIN_SCRATCH_BYTES)

#ifdef HDCPU_LEVEL
#define hdcpu_chain_run HDCPU_JOIN(hdcpu_chain_run_l, HDCPU_LEVEL)
#define hdcpu_row_load  HDCPU_JOIN(hdcpu_row_load_l, HDCPU_LEVEL)
#define hdcpu_row_store HDCPU_JOIN(hdcpu_row_store_l, HDCPU_LEVEL)
#define hdcpu_row_round HDCPU_JOIN(hdcpu_row_round_l, HDCPU_LEVEL)

/* Runs the chain in `spec` over `count` <= HDCPU_ROW elements. `sources[i]` is the row of source i, NULL where the
 * chain has none; `attributes` are the chain's words in the push constants; `result` may be one of the sources.
 * `scratch` has HDCPU_CHAIN_SCRATCH_BYTES. spec[HDI_SPEC_EXACT] as everywhere. */
void hdcpu_chain_run(const uint32_t *spec, const uint32_t *attributes, const uint32_t *const sources[HDI_CHAIN_INPUTS],
                     uint32_t *result, size_t count, uint32_t *scratch);
/* Reads `count` elements from element `first` on, `stride` apart, into a row; writes a row likewise. */
void hdcpu_row_load(uint32_t type, const void *data, uint32_t first, uint32_t stride, size_t count, uint32_t *row);
void hdcpu_row_store(uint32_t type, const uint32_t *row, size_t count, void *data, uint32_t first, uint32_t stride);
/* Rounds a row to a type, as storing and loading it would. */
void hdcpu_row_round(uint32_t type, uint32_t *row, size_t count);
#endif
#endif
