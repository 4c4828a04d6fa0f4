/* elementwise.c: the CPU form of elementwise.comp: the same bindings and words. A workgroup's elements are taken row by
 * row: sources are read into rows, or used in place where they are dense and of 32 bits, the chain runs over the rows,
 * and the result goes where it belongs. */
#include "kernels/cpu/chain.h"

#define OUTPUT 4u

static bool is_dense(const hdi_cpu_call *call, uint32_t operand) { return call->spec[HDI_EW_DENSE] >> operand & 1u; }

/* Where an operand's words begin; those after the last operand are the chain's attributes. */
static const uint32_t *words_of(const hdi_cpu_call *call, uint32_t operand) {
    const uint32_t rank = call->spec[HDI_EW_RANK];
    const uint32_t *words = call->push + rank;
    for (uint32_t i = 0; i < operand; i++)
        if ((i < call->spec[HDI_EW_INPUTS] || i == OUTPUT) && !is_dense(call, i)) words += 1 + rank;
    return words;
}

/* Elements that lie along the last axis. */
typedef struct run {
    uint32_t element, stride; /* the first one, and the way to the next */
    uint32_t index, count;    /* in the row */
} run;
/* The next run of an operand among `count` elements from index `at` on; begin with a zeroed run. */
static bool next_run(const hdi_cpu_call *call, const uint32_t *words, uint32_t at, uint32_t count, run *io_run) {
    const uint32_t rank = call->spec[HDI_EW_RANK];
    const uint32_t done = io_run->index + io_run->count;
    if (done == count) return false;
    uint32_t rest = at + done, along = count - done;
    io_run->index = done;
    io_run->element = words[0];
    io_run->stride = words[rank];
    for (uint32_t axis = rank - 1; axis > 0; axis--) {
        const uint32_t length = call->push[axis], outer = rest / length, inside = rest - outer * length;
        if (axis == rank - 1) along = HDI_MIN(along, length - inside);
        io_run->element += inside * words[1 + axis];
        rest = outer;
    }
    io_run->element += rest * words[1];
    io_run->count = along;
    return true;
}

/* The row of an input's elements from index `at` on: the tensor itself where it can be. */
static const uint32_t *read_row(const hdi_cpu_call *call, uint32_t input, uint32_t at, uint32_t count, uint32_t *row) {
    const uint32_t type = call->spec[HDI_SPEC_CHAIN_TYPE + input];
    const void *data = call->bindings[input];
    if (is_dense(call, input)) {
        if (type == HDI_TYPE_F32 || type == HDI_TYPE_I32) return (const uint32_t *)data + at;
        hdcpu_row_load(type, data, at, 1, count, row);
        return row;
    }
    run r = { 0, 0, 0, 0 };
    for (const uint32_t *words = words_of(call, input); next_run(call, words, at, count, &r);)
        hdcpu_row_load(type, data, r.element, r.stride, r.count, row + r.index);
    return row;
}

/* Is the chain nothing but a copy of words, from elsewhere into their order? */
static bool moves_words(const hdi_cpu_call *call) {
    const uint32_t *spec = call->spec;
    return spec[HDI_SPEC_CHAIN] == 1 && (spec[HDI_SPEC_STEP] & 0xFFu) == HDI_STEP_COPY && !is_dense(call, 0) &&
           spec[HDI_SPEC_CHAIN_TYPE] == spec[HDI_SPEC_OUT_TYPE];
}

HDCPU_KERNEL(elementwise) {
    uint32_t *rows = call->scratch, *out_row = rows + HDI_CHAIN_INPUTS * HDCPU_ROW, *chain_rows = out_row + HDCPU_ROW;
    const uint32_t per_group = call->spec[HDI_SPEC_WORKGROUP] * HDI_EW_NEIGHBOURS;
    const uint64_t first = ((uint64_t)group_y * HDI_GRID_WIDTH + group_x) * per_group;
    const uint32_t out_type = call->spec[HDI_SPEC_OUT_TYPE];
    const bool in_place = is_dense(call, OUTPUT) && (out_type == HDI_TYPE_F32 || out_type == HDI_TYPE_I32);
    const bool moves = in_place && moves_words(call);
    const uint64_t end = HDI_MIN((uint64_t)call->push[0], first + per_group);
    const uint32_t *out_words = words_of(call, OUTPUT), *attributes = words_of(call, OUTPUT + 1);
    (void)group_z;
    for (uint64_t block = first; block < end; block += HDCPU_ROW) {
        const uint32_t at = (uint32_t)block, count = (uint32_t)HDI_MIN(end - block, HDCPU_ROW);
        const uint32_t *sources[HDI_CHAIN_INPUTS] = { NULL, NULL, NULL, NULL };
        if (moves) {
            read_row(call, 0, at, count, (uint32_t *)call->bindings[OUTPUT] + at);
            continue;
        }
        for (uint32_t i = 0; i < call->spec[HDI_EW_INPUTS]; i++)
            sources[i] = read_row(call, i, at, count, rows + i * HDCPU_ROW);
        uint32_t *out = in_place ? (uint32_t *)call->bindings[OUTPUT] + at : out_row;
        hdcpu_chain_run(call->spec, attributes, sources, out, count, chain_rows);
        if (in_place) continue;
        if (is_dense(call, OUTPUT)) {
            hdcpu_row_store(out_type, out, count, call->bindings[OUTPUT], at, 1);
            continue;
        }
        for (run r = { 0, 0, 0, 0 }; next_run(call, out_words, at, count, &r);)
            hdcpu_row_store(out_type, out + r.index, r.count, call->bindings[OUTPUT], r.element, r.stride);
    }
}
