// strands.glsl: lines of codes in the strands' order, as `codes` makes them for matmul_codes_matrix (HDI_CODES_ROWS_IN_STRANDS and
// HDI_CODES_COLUMNS in abi.h): steps along K, whose number is a multiple of HDI_MM_STEPS, and facts of each line and step as
// planes of floats.
#ifndef STRANDS_GLSL
#define STRANDS_GLSL
#include "runs.glsl"

// HDI_SCALED_BY_HALVES, in two constants: spirv-opt puts one before what it is made of.
const bool HAS_BOOK = HDI_HAS_BOOK(B_TYPE);
const bool BY_HALVES = B_TYPE == HDI_TYPE_Q6_K || B_TYPE == HDI_TYPE_Q2_K || B_TYPE == HDI_TYPE_Q3_K || HAS_BOOK;
const bool HAS_MIN = HDI_HAS_MIN(B_TYPE);
// Facts of rows: a run's scale; the sums of its codes and of its halves' codes.
const uint SCALE = 0u, SUM = 1u, LOW_SUM = 2u, HIGH_SUM = 3u, ALL_ROW_FACTS = 4u;
// Facts of columns: what all codes of a run are scaled with, and the same of its mins; where its halves have scales of their
// own, those too. A scale times d, and a min times less, are exact, so that a run with one of each needs no more than two.
const uint D = 0u, LESS = 1u, LOW = 2u, LOW_MIN = 3u, HIGH = 4u, HIGH_MIN = 5u;
const uint ROW_FACTS = HAS_MIN ? BY_HALVES ? 4u : 2u : 1u, COLUMN_FACTS = BY_HALVES ? HAS_MIN ? 6u : 5u : HAS_MIN ? 2u : 1u; // that are read

uint steps_of(uint runs) { return (runs + HDI_MM_STEPS - 1u) / HDI_MM_STEPS * HDI_MM_STEPS; }
// The run that is added at a step; steps past the last run are zeros.
uint run_of(uint step, uint runs) {
    if (step >= runs) return step;
    uint each = runs / HDI_MM_STRANDS, longer = runs % HDI_MM_STRANDS; // so many strands have a run more
    bool in_longer = step < longer * (each + 1u);
    uint at = in_longer ? step : step - longer, strand = at / (in_longer ? each + 1u : each);
    return strand + HDI_MM_STRANDS * (at - strand * (in_longer ? each + 1u : each));
}
uint fact_word(uint lines, uint steps, uint fact, uint line, uint step) { return lines * steps * 8u + (fact * lines + line) * steps + step; }
#endif
