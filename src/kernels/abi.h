/* abi.h: how the planner talks to kernels: specialisation constants, push-constant words, step codes. One text for C
 * and GLSL (only #define lines), so both sides agree by construction. Every buffer is seen as 32-bit words on a GPU. */
#ifndef HDI_KERNELS_ABI_H
#define HDI_KERNELS_ABI_H

/* ---- data types, as in heddle.h ---- */
#define HDI_TYPE_NONE  0
#define HDI_TYPE_F32   1
#define HDI_TYPE_F16   2
#define HDI_TYPE_BF16  3
#define HDI_TYPE_I32   4
#define HDI_TYPE_U8    5
#define HDI_TYPE_Q4_0  6
#define HDI_TYPE_Q8_0  7
#define HDI_TYPE_Q4_K  8
#define HDI_TYPE_Q6_K  9
#define HDI_TYPE_TQ2_0 10
#define HDI_TYPE_Q4_1  11
#define HDI_TYPE_Q5_0  12
#define HDI_TYPE_Q5_1  13
#define HDI_TYPE_Q2_K  14
#define HDI_TYPE_Q3_K  15
#define HDI_TYPE_Q5_K  16
#define HDI_TYPE_TQ1_0 17
#define HDI_TYPE_IQ4_NL 18
#define HDI_TYPE_IQ4_XS 19
#define HDI_TYPE_MXFP4 20
#define HDI_TYPE_IQ2_XXS 21
#define HDI_TYPE_IQ2_XS 22
#define HDI_TYPE_IQ2_S 23
#define HDI_TYPE_IQ3_XXS 24
#define HDI_TYPE_IQ3_S 25
#define HDI_TYPE_IQ1_S 26
#define HDI_TYPE_IQ1_M 27

/* Blocks of every type: X(type, elements a block, bytes a block, the bytes at which the f16 of its scale lies, and the f16 of
 * its less). More than one element: a quantised type. The value of a quantised element is scale * code - less. Code is a
 * small whole number: what is stored, less an offset, or in iq4_nl, iq4_xs and mxfp4 one of HDI_CODES_...; scale (the
 * block's d, times a part's scale where there are parts) and less (likewise; -m in q4_1 and q5_1) are products of an f16 and
 * a small whole number, over 4 or 8 in types with a code book. So they and scale * code are exact in f32, in any order;
 * mxfp4's scale is a power of two. Only the subtraction of less rounds, in types that have one: once, and to the same bits
 * where a device multiplies and subtracts in one step. */
#define HDI_NO_HALF 255
#define HDI_BLOCK_LIST(X) \
    X(HDI_TYPE_F32,      1,   4, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_F16,      1,   2, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_BF16,     1,   2, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_I32,      1,   4, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_U8,       1,   1, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_Q4_0,    32,  18, 0, HDI_NO_HALF) \
    X(HDI_TYPE_Q8_0,    32,  34, 0, HDI_NO_HALF) \
    X(HDI_TYPE_Q4_K,   256, 144, 0, 2) \
    X(HDI_TYPE_Q6_K,   256, 210, 208, HDI_NO_HALF) \
    X(HDI_TYPE_TQ2_0,  256,  66, 64, HDI_NO_HALF) \
    X(HDI_TYPE_Q4_1,    32,  20, 0, 2) \
    X(HDI_TYPE_Q5_0,    32,  22, 0, HDI_NO_HALF) \
    X(HDI_TYPE_Q5_1,    32,  24, 0, 2) \
    X(HDI_TYPE_Q2_K,   256,  84, 80, 82) \
    X(HDI_TYPE_Q3_K,   256, 110, 108, HDI_NO_HALF) \
    X(HDI_TYPE_Q5_K,   256, 176, 0, 2) \
    X(HDI_TYPE_TQ1_0,  256,  54, 52, HDI_NO_HALF) \
    X(HDI_TYPE_IQ4_NL,  32,  18, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ4_XS, 256, 136, 0, HDI_NO_HALF) \
    X(HDI_TYPE_MXFP4,   32,  17, HDI_NO_HALF, HDI_NO_HALF) \
    X(HDI_TYPE_IQ2_XXS, 256, 66, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ2_XS,  256, 74, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ2_S,  256,  82, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ3_XXS, 256, 98, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ3_S,  256, 110, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ1_S,  256,  50, 0, HDI_NO_HALF) \
    X(HDI_TYPE_IQ1_M,  256,  56, HDI_NO_HALF, HDI_NO_HALF)

/* What the codes 0..15 stand for: X(of 0, of 1, ...). mxfp4's are twice the numbers of the format E2M1, whose scale is half. */
#define HDI_CODES_IQ4(X)   X(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
#define HDI_CODES_MXFP4(X) X(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

/* Code books, which GGUF calls grids. In iq1_s to iq3_s a code stands for 8 neighbours, of iq3 for 4: an entry of the type's book
 * has the level of each, and signs lie beside the codes. The levels are the numbers 8, 25, 43 in iq2; 4, 12, .. 52, 62 in
 * iq3_xxs; 1, 3, .. 15 in iq3_s; and -8, 0, 8 in iq1, one more or less as a bit of the part says. A value is the number times its
 * part's whole scale, which is odd, times d / 8, in iq3_xxs d / 4, in iq3_s d. iq1_m's d is an f16 in the upper 4 bits of four words.
 * An entry is 16 bits: the levels from the lowest bits on, in 2 bits of each, of iq3 in 4. All books are one table, and this is
 * where each begins in it. Kernels of a GPU that unpack weights are bound to it. */
#define HDI_HAS_BOOK(type) ((type) >= HDI_TYPE_IQ2_XXS && (type) <= HDI_TYPE_IQ1_M)
#define HDI_BOOK_IQ2_XXS 0
#define HDI_BOOK_IQ2_XS  256
#define HDI_BOOK_IQ2_S   768
#define HDI_BOOK_IQ3_XXS 1792
#define HDI_BOOK_IQ3_S   2048
#define HDI_BOOK_IQ1     2560
#define HDI_BOOK_ENTRIES 4608

/* Has each half of a run of 32 a whole scale of its own? (In some with a code book both are the same one.) */
#define HDI_SCALED_BY_HALVES(type) \
    ((type) == HDI_TYPE_Q2_K || (type) == HDI_TYPE_Q3_K || (type) == HDI_TYPE_Q6_K || HDI_HAS_BOOK(type))

/* Has a value of the type something taken off? */
#define HDI_HAS_MIN(type) \
    ((type) == HDI_TYPE_Q4_1 || (type) == HDI_TYPE_Q5_1 || (type) == HDI_TYPE_Q2_K || (type) == HDI_TYPE_Q4_K || (type) == HDI_TYPE_Q5_K)

/* ---- grids ----
 * A one-dimensional grid of G groups is launched as (min(G, WIDTH), ceil(G / WIDTH), 1); group number = y * WIDTH + x,
 * and a group past the end returns. No kernel reads the grid's size: a launch may be cut into pieces. */
#define HDI_GRID_WIDTH 32768u

/* ---- specialisation constants that every kernel shares ---- */
#define HDI_SPEC_WORKGROUP  0  /* invocations of a workgroup (local_size_x_id) */
#define HDI_SPEC_EXACT      1  /* 1: exact arithmetic */
#define HDI_SPEC_CHAIN      2  /* number of steps of the element-wise chain, 0..8 */
#define HDI_SPEC_STEP       3  /* 3..10: the steps, packed as below */
#define HDI_SPEC_CHAIN_TYPE 11 /* 11..14: types of the chain's sources 0..3 (0: the value produced, or input 0) */
#define HDI_SPEC_OUT_TYPE   15 /* type of the output */
#define HDI_SPEC_HALVES     1751384065 /* as in cmds.h */
#define HDI_SPEC_EARLY      1751384066 /* likewise */
#define HDI_SPEC_FAMILY     16 /* 16..31: each family's own, below */

/* ---- element-wise chains ----
 * A chain is at most 8 steps. Sources 0..3 are the chain's inputs, 4 + i is the result of step i, 15 is none. The last
 * step's result is the output. Each step's result is rounded to its type at once, so a chain gives the bits that
 * separate operations would. A step is packed into one word:
 *   bits 0-7 form (steps.h: the code and the kind of its operands), 8-11 source a, 12-15 source b, 16-19 source c,
 *   20-23 result type, 24-28 first attribute word, 29 one of the costly steps, of which a chain has at most one
 * Attribute words are floats, for clip over i32 integers, numbered from the chain's first attribute word.
 * Exact formulas are those of steps.inc; relu, leaky_relu and elu go by the sign bit. What is computed stores NaN as the
 * one NaN (exact_canonical); copy, neg, abs, sign, round, floor, relu, clip, maximum, minimum and where leave a NaN as
 * it is. */
#define HDI_CHAIN_STEPS  8
#define HDI_CHAIN_INPUTS 4
#define HDI_SOURCE_NONE  15
#define HDI_STEP_COPY      0
#define HDI_STEP_ADD       1
#define HDI_STEP_SUB       2
#define HDI_STEP_MUL       3
#define HDI_STEP_DIV       4
#define HDI_STEP_LESS      5
#define HDI_STEP_EQUAL     6
#define HDI_STEP_SCALE     7  /* attributes: factor, bias */
#define HDI_STEP_NEG       8
#define HDI_STEP_ABS       9
#define HDI_STEP_SQRT      10
#define HDI_STEP_EXP       11
#define HDI_STEP_LOG       12
#define HDI_STEP_SIN       13
#define HDI_STEP_COS       14
#define HDI_STEP_RELU      15
#define HDI_STEP_LEAKY_RELU 16 /* attribute: slope */
#define HDI_STEP_ELU       17  /* attribute: alpha */
#define HDI_STEP_SIGMOID   18
#define HDI_STEP_TANH      19
#define HDI_STEP_SILU      20
#define HDI_STEP_GELU      21
#define HDI_STEP_GELU_TANH 22
#define HDI_STEP_CLIP      23  /* attributes: low, high */
#define HDI_STEP_WHERE     24  /* a: condition, b, c */
#define HDI_STEP_CAST      25
#define HDI_STEP_ERF       26
#define HDI_STEP_ROUND     27
#define HDI_STEP_FLOOR     28
#define HDI_STEP_SIGN      29
#define HDI_STEP_MAXIMUM   30
#define HDI_STEP_MINIMUM   31
/* From here on over i32 and u8 alone: the code is the form (steps.h), one that no other step has. */
#define HDI_STEP_BIT_AND    48
#define HDI_STEP_BIT_OR     49
#define HDI_STEP_BIT_XOR    50
#define HDI_STEP_SHIFT_LEFT 51
#define HDI_STEP_SHIFT_RIGHT_LOGICAL    52
#define HDI_STEP_SHIFT_RIGHT_ARITHMETIC 53
/* And over floats alone. */
#define HDI_STEP_GELU_TANH_GRADIENT 54 /* a: x, b: dy */
#define HDI_STEP_ROUND_RANDOM 56 /* a: f32, b: a random word; of type bf16 */

/* ---- elementwise: out[i] = chain(inputs[i]) over strided inputs; also copy, permute, slice, concat, pad ----
 * Bindings: inputs 0..3 (input 0 again where one is absent), the output. An invocation makes FOURS groups of
 * NEIGHBOURS elements, the first ones of all invocations of a workgroup side by side, then the second ones; natively FOURS is 1. */
#define HDI_EW_INPUTS 16 /* number of inputs, 1..4 */
#define HDI_EW_RANK   17 /* axes that are left after merging, 1..6 */
#define HDI_EW_DENSE  18 /* bit i: input i is read at the output's own index; bit 4: the output is dense from element 0 */
#define HDI_EW_WIDE   19 /* bits likewise, of those that are not dense: four elements lie side by side, from a multiple of four on */
#define HDI_EW_PARTS  20 /* above 1: input 0 is the sum of so many tensors of f32, added one after the other */
#define HDI_EW_FOURS  21 /* 1 or 2 */
/* Push words: [0] elements of the output's index space; [1..RANK-1] lengths of axes 1..RANK-1; with parts the elements
 * from one of them to the next; then, for each input that is not dense: its first element and RANK strides; for an
 * output that is not dense likewise; then the chain's attributes. Where all are dense RANK is 1. */
#define HDI_EW_NEIGHBOURS 4

/* ---- transpose: a copy whose input lies along one axis, of R elements, and whose output lies along another, of C. Bindings:
 * input, output. A workgroup turns a tile of TILE x TILE elements, on a GPU of HDI_TR_WORDS words a row: there R, C, strides and
 * first elements are of whole words. Elements are moved as they are. ---- */
#define HDI_TR_TYPE  16
#define HDI_TR_TILE  17
#define HDI_TR_WORDS 32u
#define HDI_TR_OUTER 4 /* axes besides the two, at most */
/* Push words: */
#define HDI_TR_PUSH_R          0
#define HDI_TR_PUSH_C          1
#define HDI_TR_PUSH_IN_STRIDE  2 /* elements between the input's lines, along C */
#define HDI_TR_PUSH_OUT_STRIDE 3 /* between the output's, along R */
#define HDI_TR_PUSH_IN_FIRST   4
#define HDI_TR_PUSH_OUT_FIRST  5
#define HDI_TR_PUSH_LENGTHS    6  /* of the outer axes */
#define HDI_TR_PUSH_IN_OUTER   10 /* the input's strides along them */
#define HDI_TR_PUSH_OUT_OUTER  14 /* the output's */
#define HDI_TR_PUSH_WORDS      18
/* Groups: outer axes, the first one slowest, tiles along R, tiles along C. */

/* ---- matmul family: C[b] = chain(A[b] x B[b]) ----
 * Bindings: A, B, C, then the chain's sources 1..3 (A again where one is absent); matvec_subgroup and matvec_dot have one
 * more, the norm's weight (A again where absent); last come the code books (A again where B has none). With a norm, A's
 * rows are rms_norm of what binding 0 holds: the sums are of elements times the norm's weight, and are scaled by the row's
 * 1 / sqrt(mean of squares + eps) at the end. With a pair, binding 3 is a second B that lies as the first one does, and
 * chain source 1 is A times it. Sums are f32; in exact mode over blocks of 32 along K: each block is summed in order from
 * zero, and the blocks' sums are added in order, the first to zero. But where B is quantised by whole numbers (not by a
 * table, as iq4_nl, iq4_xs and mxfp4 are) and its blocks lie along K (HD_TRANSPOSE_B):
 *
 * The product in 8 bits. Each run of 32 of a row of A becomes whole numbers a and a scale s (exact_int8_rounding). A run of a
 * column lies in one block, and value i of it is d * scale * c - less * min, where c, the code less its offset, and the
 * scale and min of its half of the run are whole numbers: scale is 1 in blocks of 32, tq1_0 and tq2_0, the 6-bit scale in
 * q4_k and q5_k, the 16's in q2_k, q3_k and q6_k, the part's in types with a code book, whose d is then what stands above;
 * min is 1 in q4_1 and q5_1, where less is -m. With I the sum over the run of scale * c * a, below 2^24, and J that of
 * min * a, the run comes to s * (d * I), or to s * (d * I - less * J) for types with a min, each operation rounded. Sums of
 * runs j, j + 16, j + 32, ... in order from zero are strand j, and the 16 strands in order from zero are the result. Runs
 * that are not there would add +0: K may be thought of as longer.
 * Rows that chose a matrix (matmul_experts) are rounded so only along so long a K that errors average out: one choice that
 * is off tells in the whole layer, and a short K gains little. */
#define HDI_MM_LEAST_CHOSEN 256u
#define HDI_MM_RUN     32u
#define HDI_MM_STRANDS 16u
#define HDI_MM_OCTET   256u /* elements of eight runs: a lane's of matvec_dot where runs are dealt out */
#define HDI_MM_A_TYPE  16
#define HDI_MM_B_TYPE  17
#define HDI_MM_TILE_M  18 /* rows of C in a workgroup's tile; matvec: M itself, 1..8 */
#define HDI_MM_TILE_N  19 /* columns of C in a workgroup's tile */
#define HDI_MM_PART_M  20 /* rows and columns of the tile that one invocation computes; matmul_matrix: one subgroup; matvec_dot and
                             matvec_matrix: depth along K that shared memory holds of A, and columns of a lane, or of a pass where
                             runs are dealt out or go to matrix units */
#define HDI_MM_PART_N  21
#define HDI_MM_LAYOUT  22 /* HDI_MM_... bits: how the operands lie in memory */
#define HDI_MM_NORM    23 /* HDI_MM_NORM_...: what A's rows go through on the way */
#define HDI_MM_NORM_EPS 24 /* as float bits */
#define HDI_MM_PAIR    25 /* 1: there is a second B */
#define HDI_MM_NORM_NONE     0
#define HDI_MM_NORM_PLAIN    1 /* rms_norm without a weight */
#define HDI_MM_NORM_WEIGHTED 2 /* with a weight, f32 as A is */
#define HDI_MM_A_ALONG_K 1u /* A is best read along K */
#define HDI_MM_B_ALONG_K 2u /* B is, as GGUF's [N,K] weights are */
#define HDI_MM_A_WIDE    4u /* that way A has no gaps, and each of its lines is a multiple of 16 bytes and begins at one */
#define HDI_MM_B_WIDE    8u /* B likewise; always set for quantised types */
#define HDI_MM_WHOLE     16u /* matmul_matrix, matmul_tensor: K is a multiple of HDI_MM_DEPTH; matvec: whole blocks of 32 go
                                through shared memory, from wide f32, f16 or bf16; matvec_dot: runs are dealt out */
#define HDI_MM_ONE_BATCH 32u /* there is one batch, and nothing to work out of its number */
#define HDI_MM_GROUPED   64u /* each batch is a group of rows that chose one matrix of B, below */
#define HDI_MM_SINGLE    256u /* and a group is one row: the choice of each, a word, in place of the groups */
#define HDI_MM_B_GIVEN   128u /* matvec_dot, matvec_matrix: nothing in the plan writes B, which may be read before what comes
                                 earlier has ended */
#define HDI_MM_A_CODED   512u /* matvec_dot, matvec_matrix: A is in 8 bits already, as HDI_CODES_ROWS has it */
#define HDI_MM_C_CODED  1024u /* matvec_dot: C leaves so */
#define HDI_MM_PARTS   26 /* matmul_matrix, matmul_tiled: parts of K, each with sums of its own: C is [batch, PARTS, M, N] */
#define HDI_MM_AHEAD   27 /* runs of a lane (matvec_dot), or tiles (matmul_matrix), that are read before they are used */
#define HDI_MM_BLOCK   32u
#define HDI_MM_DEPTH   64u /* matmul_matrix, matmul_tensor: of a tile along K */
/* Push words: */
#define HDI_MM_PUSH_M        0
#define HDI_MM_PUSH_N        1
#define HDI_MM_PUSH_K        2
#define HDI_MM_PUSH_A_ROW    3  /* element strides of A along M and K */
#define HDI_MM_PUSH_A_COL    4
#define HDI_MM_PUSH_B_ROW    5  /* element strides of B along K and N */
#define HDI_MM_PUSH_B_COL    6
#define HDI_MM_PUSH_A_FIRST  7  /* first elements */
#define HDI_MM_PUSH_B_FIRST  8
#define HDI_MM_PUSH_BATCH    9  /* lengths of batch axes 1 and 2 (axis 0 is the rest); b = (b0 * [9] + b1) * [10] + b2 */
#define HDI_MM_PUSH_A_BATCH  11 /* A's strides of batch axes 0..2 */
#define HDI_MM_PUSH_B_BATCH  14 /* B's */
#define HDI_MM_PUSH_CHAIN    17 /* for each chain source 1..: first element and strides along batch (the flat b), M and N,
                                   4 words; then the chain's attributes */
/* Rows that chose a matrix of B (matmul_experts), in groups of those that chose the same. Bindings 3 to 5, but of a pair 3,
 * have a group for each batch, in words: its expert, the first of its rows in the list behind all groups, their number, 0
 * for none, and on a processor its first row where A is packed. A number r of the list is row r of C, and of A row
 * r / push[BATCH]; there are push[BATCH + 1] groups, or single rows. The result of an expert that is not there is zeros. */
#define HDI_GROUP_EXPERT 0
#define HDI_GROUP_FIRST  1
#define HDI_GROUP_ROWS   2
#define HDI_GROUP_PACKED 3
#define HDI_GROUP_WORDS  4
#define HDI_MM_PUSH_EXPERTS HDI_MM_PUSH_A_BATCH /* how many there are: A has no batches then */
/* codes: lines along K in 8 bits. Bindings: the lines twice, C: for each run of each line the 32 codes, and behind all of
 * them its facts; the code books. Grid: one-dimensional, an invocation a run.
 *   ROWS             rows of A of all batches, each once where they are groups, for matmul_codes, which is told their number
 *                    by HDI_MM_PARTS. Facts are two words:
 *                    the scale, and the sums of its halves' codes in 16 bits each
 *   ROWS_IN_STRANDS  rows of A for matmul_codes_matrix: in the strands' order, filled up with zeros to a multiple of
 *                    HDI_MM_STEPS runs; facts as planes of floats (strands.glsl)
 *   COLUMNS          columns of quantised B likewise; of groups, those of all experts */
#define HDI_CODES_FORM 23
#define HDI_CODES_ROWS            0
#define HDI_CODES_ROWS_IN_STRANDS 1
#define HDI_CODES_COLUMNS         2
#define HDI_CODES_PUSH_LINES 17
#define HDI_MM_STEPS 4u /* matmul_codes_matrix: runs that go through shared memory together */
/* C is dense: [batch, M, N]. Grid: x tiles along N, y tiles along M, z the batch and inside of it the parts of K. */

/* ---- halves: quantised weights as f16 or bf16, the output's type, ahead of a product. Bindings: the weights twice, the halves, the
 * code books. Its constants are those of the matmul family. ---- */
#define HDI_HALVES_PUSH_COUNT 0 /* elements */
#define HDI_HALVES_PUSH_FIRST 1 /* the first of them */

/* ---- split_floats: lines of f32 as HDI_SPLIT_PARTS parts of bf16, one behind the other, ahead of a product. Bindings: the floats,
 * the parts. All that is counted in elements is a multiple of 8, of floats of 4. ---- */
#define HDI_SPLIT_PARTS 6u
#define HDI_SPLIT_PUSH_COLUMNS   0 /* elements of a line */
#define HDI_SPLIT_PUSH_LINES     1
#define HDI_SPLIT_PUSH_FIRST     2 /* of the floats */
#define HDI_SPLIT_PUSH_FROM_LINE 3 /* elements from one of their lines to the next */
#define HDI_SPLIT_PUSH_TO_LINE   4 /* from a line of the parts to the next one of the same part */
#define HDI_SPLIT_PUSH_TO_PART   5 /* to the next part of the same line */
#define HDI_SPLIT_PUSH_ORDER     6 /* 2 bits a part: which of the element's three it holds */
#define HDI_SPLIT_PUSH_WORDS     7
/* The pairs, smallest products first: added up so, what is lost of each is small beside the sum. */
#define HDI_SPLIT_ORDER_A 0x0124u /* 0, 1, 2, 0, 1, 0 */
#define HDI_SPLIT_ORDER_B 0x0046u /* 2, 1, 0, 1, 0, 0 */

/* ---- reduce: y[o, i] = reduction over j of x[o, j, i] ----
 * Bindings: x, second operand (dot; else x again), y. */
#define HDI_REDUCE_OP      16 /* HDI_REDUCE_... */
#define HDI_REDUCE_TYPE    17 /* of x */
#define HDI_REDUCE_FORM    18 /* 0: row, inner = 1, a workgroup each; 1: column, an invocation each; 2: column of a dot
                               * whose second operand is one row of n factors for each of the outer lines */
#define HDI_REDUCE_STAGE   19 /* rows: 0: all at once; 1: partial results of parts of a row; 2: over partial results.
                               * columns, bits: HDI_REDUCE_GOES_ON from what y has; HDI_REDUCE_IS_PART: more rows follow */
#define HDI_REDUCE_GOES_ON 1u
#define HDI_REDUCE_IS_PART 2u
#define HDI_REDUCE_SUM    0
#define HDI_REDUCE_MEAN   1
#define HDI_REDUCE_MAX    2
#define HDI_REDUCE_MIN    3
#define HDI_REDUCE_ARGMAX 4
#define HDI_REDUCE_DOT    5
#define HDI_REDUCE_PROD   6
#define HDI_REDUCE_PART      65536u /* of a sum: its order is part of the result */
#define HDI_REDUCE_PICK_PART 4096u  /* of what is picked from few rows */
#define HDI_REDUCE_COLUMN    131072u /* rows that a launch over columns takes: a whole number of HDI_MM_BLOCK */
/* Push words: [0] outer, [1] n, [2] inner, [3] parts a row (stages 1, 2), [4] mean: n of the whole row; argmax: elements
 * of the row in front of these, [5] elements of a part (stage 1).
 * Partial results: sums, maxima: one 32-bit word of the computing type (f32 or i32) a part or a column; argmax: the value's
 * word and the index's word. Exact order of a row: lane l of 256 adds elements l, l + 256, ... in order, then the lanes are added
 * as a tree, 128 + l, 64 + l, ... 1 + l. Exact order of a column: as matmul's. A row of more than a part: each part so,
 * then their sums as a row. Products in the same orders. Mean: exact_div(sum, float(n)). i32 wraps. Max and min order
 * -inf .. -0, +0 .. inf, with NaN the largest and the least; for argmax -0 equals +0. */

/* ---- cumsum: running sums along the last axis. Bindings: x, what is before each part (x again where none is), y. Push words:
 * [0] rows, [1] n, [2] parts a row, [3] elements of a part. Exact order: 256 elements at a time, a tile, get the sums s of
 * a scan: by turns, for d of 1, 2, 4, ... 128, lane l >= d adds what lane l - d had before the turn. What was before the
 * tile, from zero, plus s is the result (exclusive: plus the s before; the first is what was before), and plus the last s
 * what is before the next tile. A row of more than a part: what each part comes to by itself, the exclusive running sums
 * of these as a row, and then each part from there. Reverse: of the elements from the last to the first. ---- */
#define HDI_CUMSUM_TYPE  16 /* of x */
#define HDI_CUMSUM_STAGE 17
#define HDI_CUMSUM_FORM  18 /* bits: */
#define HDI_CUMSUM_EXCLUSIVE 1u
#define HDI_CUMSUM_REVERSE   2u
#define HDI_CUMSUM_WHOLE  0 /* rows */
#define HDI_CUMSUM_TOTALS 1 /* what parts come to, a word each */
#define HDI_CUMSUM_BEHIND 2 /* parts, from what is before them */
#define HDI_CUMSUM_PART   4096u

/* ---- top_k. Bindings: x, y. A group takes a row, or a part of a long one; it gives indices, or pairs (key, index) that a
 * later launch merges. A key is an element as an unsigned number of the same order: NaN above all, -0 as +0. Of equal keys
 * the smaller index is first. A part of fewer than k elements is filled up with pairs (0, 2^32 - 1), which are behind all.
 * Push words: [0] rows, [1] n (pairs a row where pairs are read), [2] k, [3] parts a row, [4] elements of a part, [5] bits that
 * a position is shifted by to be one of HDI_TOP_K_DIGITS. ---- */
#define HDI_TOP_K_TYPE  16 /* of x, also where pairs are read */
#define HDI_TOP_K_STAGE 17 /* bit 0: gives pairs; bit 1: reads pairs */
#define HDI_TOP_K_DIGITS 2048u
#define HDI_TOP_K_KEPT 512u /* at most, to be put in order: HD_MAX_TOP_K - 1, and all that share a digit of the position */
#define HDI_TOP_K_PART   4096u
#define HDI_TOP_K_WHOLE  8192u  /* elements of a row that a group takes alone, */
#define HDI_TOP_K_MOST   65536u /* and where there are rows for all compute units */

/* ---- rows: softmax, log_softmax, rms_norm, layer_norm, cross_entropy over the last axis ----
 * softmax module: bindings x, targets (cross entropy; else x again), dy (its gradient; else x again), the losses (its
 * gradient, where HDI_ROW_HAS; else x again), y. norm module: x,
 * weight, bias (x again where absent), y. A workgroup a row; exact sums in the row order of reduce, never in parts. Rows of softmax and
 * log_softmax of more than HDI_ROW_SOFTMAX_WHOLE are made of reductions and element-wise steps instead: s in the order of
 * reduce, exact_div(exp(x - m), s). With m
 * the largest of the row and s the sum of exp(x - m): softmax exp(x - m) * exact_div(1, s), log_softmax (x - m) - log(s),
 * cross entropy log(s) - (x[target] - m); its gradient (softmax, - 1 at the target) * dy. rms_norm: mean 0; layer_norm: mean
 * exact_div(sum of x, float(n)). Then, one rounding each, (x - mean) * exact_rsqrt(exact_div(sum of (x - mean)^2, float(n)) +
 * eps), * weight, + bias. */
#define HDI_ROW_OP   16
#define HDI_ROW_TYPE 17 /* of x */
#define HDI_ROW_HAS  18 /* norm: bit 0 weight, bit 1 bias; their type is HDI_ROW_TYPE; HDI_ROW_HALVES; HDI_ROW_ADDS.
                      * cross_entropy_gradient: 1: the losses are there, of which fast mode takes the sum of powers */
#define HDI_ROW_HALVES 4u /* numbers that f16 does not hold, infinities too, become its largest */
#define HDI_ROW_ADDS   8u /* of norm_gradient: a tensor is added to what it gives */
#define HDI_ROW_FOURS 20 /* norms and their gradients of f32 in fast mode: how many times four elements of its row an invocation
                          * holds, of a workgroup's side by side; 0: rows are read again for each pass */
#define HDI_ROW_SOFTMAX       0
#define HDI_ROW_LOG_SOFTMAX   1
#define HDI_ROW_CROSS_ENTROPY 2
#define HDI_ROW_RMS_NORM      3
#define HDI_ROW_LAYER_NORM    4
#define HDI_ROW_CROSS_ENTROPY_GRADIENT 5
#define HDI_ROW_SOFTMAX_WHOLE 1048576u
/* Push words: [0] rows, [1] n, [2] eps as float bits. */

/* ---- norm_gradient: of x under rms_norm or layer_norm, from x, dy and the weight; but for dy all are f32. A workgroup a row. With n = x
 * normalised as norm does, d = exact_sqrt of what exact_rsqrt is of there and h = dy * weight: exact_div((h - mean of h) -
 * n * (the sum of h * n * float(1 / n)), d), one rounding each, sums in the row order; rms_norm takes no mean off. Bindings: x, dy,
 * weight, what is added (x again where absent), y. Push words: as norm's, [3] 1 / n as float bits. ---- */

/* ---- norm_sums: y[0] = sums over rows of dy * n, y[1] = of dy, in a column's order (reduce). Two stages: the mean and the
 * factor of each row (bindings x, x, x, facts), a workgroup a row; then columns, an invocation for each column of each
 * part of the rows, as [parts,2,n] (x, dy, facts, y), which reduce joins. Exact: one part. ---- */
#define HDI_NORM_STAGE 18
#define HDI_NORM_DY    19 /* type of dy: norm_gradient, norm_sums */
#define HDI_NORM_PUSH_PART  3 /* rows of a part */
#define HDI_NORM_PUSH_PARTS 4

/* ---- gather: y[i] = table[index[i]]; ALL: the whole table in order (cast of a quantised tensor); ALONG: y[r, i] =
 * table[r, index[r, i]]. Bindings: table, indices, code books, y. Push words: [0] rows of the table, [1] n, [2] count of indices, ALONG: in
 * a row. ---- */
#define HDI_GATHER_TYPE 16 /* of the table */
#define HDI_GATHER_FORM 17
#define HDI_GATHER_ROWS  0
#define HDI_GATHER_ALL   1
#define HDI_GATHER_ALONG 2

/* ---- scatter. Bindings: base, indices, updates, y. Push words: [0] rows, [1] n, [2] count of indices. Sums and products in
 * f32 or i32 in the order of the indices, from base on; rounded to the type once. Max and min order as reductions do. Many
 * indices are sorted first, so that not every row looks at all of them: CLEAR and SORT (bindings: indices three times, the
 * list) make `count` numbers of updates by their rows, those of a row in their order, and behind them for each row the
 * first and the end of its own; SORTED has the list in the place of the indices. ---- */
#define HDI_SCATTER_OP   16
#define HDI_SCATTER_TYPE 17
#define HDI_SCATTER_STAGE 18
#define HDI_SCATTER_SEARCH 0
#define HDI_SCATTER_CLEAR  1
#define HDI_SCATTER_SORT   2
#define HDI_SCATTER_SORTED 3
#define HDI_SCATTER_ADD 0
#define HDI_SCATTER_MUL 1
#define HDI_SCATTER_MAX 2
#define HDI_SCATTER_MIN 3

/* ---- pages: rows of a sequence may lie in pages of 2^PAGE rows of a pool. The table of a sequence, as many i32 as its S
 * rows are pages, tells them; there is none where a kernel's PAGE is 0. ---- */

/* ---- write_rows. Bindings: rows, position, pages (rows again where absent), state. Push words: [0] B, [1] T, [2] S,
 * [3] elements a row, [4] pages of the pool. Rows of f32 for a narrower state are rounded to nearest even, for q8_0 and
 * q4_0 to the blocks that hd_quantize gives; rows onto pages outside of the pool are left out. ---- */
#define HDI_WRITE_TYPE      16 /* of the state */
#define HDI_WRITE_ROWS_TYPE 17 /* the same, or f32 */
#define HDI_WRITE_PAGE      18
#define HDI_WRITE_BLOCK     32u /* elements of a block of q8_0 or q4_0, which a row has a whole number of */
#define HDI_WRITE_BLOCKS    32u /* of a GPU's workgroup */

/* ---- rope, with an rms_norm of each head before it and a cast or write_rows behind it where the planner joins them.
 * Bindings: x, positions, frequencies, the norm's weight, the rows' position and pages (x again where absent), y. Frequencies:
 * dims/2 pairs of words (high, low), the turns a position makes as a 64-bit fraction of 2^64. Push words: [0] tokens of
 * all sequences, [1] T, [2] H, [3] D, [4] dims, [5] magnitude's bits, [6] eps' bits, and for rows of a state [7] tokens
 * and [8] rows of a sequence, [9] pages of the pool. With sine and cosine of bits 32..63 of position * frequency
 * (exact_sincos_turns), each times magnitude, a pair (a, b) becomes (a * cosine + b * -sine, b * cosine + a * sine). What
 * the norm gives, and what turns, is rounded to x's type, so that joined operations give the bits of separate ones. ---- */
#define HDI_ROPE_TYPE    16
#define HDI_ROPE_PAIRING 17 /* 0 halves, 1 neighbours */
#define HDI_ROPE_NORM    18 /* 0 none, 1 without and 2 with a weight, of x's type */
#define HDI_ROPE_ROWS    19 /* 1: y is a state, and token t's heads are one of its rows */
#define HDI_ROPE_PAGE    20 /* as write_rows' */
/* Sines and cosines, each times magnitude: made by each head for itself; made for all heads, y[T, dims / 2] being pairs of them;
 * or read so, in place of positions. */
#define HDI_ROPE_TURNS   21
#define HDI_ROPE_TURNS_OWN   0
#define HDI_ROPE_TURNS_MADE  1
#define HDI_ROPE_TURNS_GIVEN 2
#define HDI_ROPE_WIDTH   22 /* of rope_subgroup: D */

/* ---- experts: rows by the experts that they chose, ahead of a product whose batches are groups of them (HDI_MM_GROUPED).
 * Bindings: chosen, groups; a processor's form also y, where rows of nobody become zeros at once. Push words: [0] pairs (t,u),
 * each a row, [1] E, [2] rows of a group at most, [3] groups, [4] on a processor N. A GPU has a workgroup for each expert and one
 * for nobody, whose number is E. Rows of a group stand in their order. ---- */

/* ---- attention. Bindings: q, k, v, past, pages or starts, sinks, mask (q again where absent; only attention itself has a mask), y.
 * Push words: [0] B, [1] T, [2] S, [3] Hq,
 * [4] Hkv, [5] D, [6] scale's bits, [7] pages of the pool; of a page outside of it the nearest one inside is read; [8] window,
 * below S + T, [9] cap's and [10] 1 / cap's bits; of attention itself [11] to [14]: from one sequence, query head, query and key to
 * the next in the mask. A past above S counts as S; a query sees keys from its start on, below 0 from 0 on.
 * Exact order: keys in tiles of HDI_ATTENTION_TILE from key 0; running maximum and sum rescaled once a tile, where the query
 * sees a key of it; scores in matmul's order over D, then times scale, with a cap cap * exact_tanh(score * (1 / cap)), then the
 * mask's element added; the maximum begins as the head's sink and the sum as 1, without one (or with one of -inf) as -inf and 0;
 * values and weights added key by key within a tile from zero, then the tile's sum to the rescaled running sum: sum + running * exp(old
 * maximum - new). Weights are exp(score - maximum), with 0 for a maximum of -inf. Result: running values * exact_div(1,
 * running sum). A query that sees no key and no sink gives NaN. ---- */
#define HDI_ATTENTION_TYPE    16 /* of q and y */
#define HDI_ATTENTION_KV_TYPE 17
#define HDI_ATTENTION_CAUSAL  18
#define HDI_ATTENTION_PAST    19
#define HDI_ATTENTION_ROWS    20 /* query rows of a workgroup, 1.. : neighbours in (token, head of the group) order */
#define HDI_ATTENTION_WIDTH   21 /* D rounded up to HDI_MM_BLOCK; attention_subgroup: to 8 */
#define HDI_ATTENTION_PAGE    22
#define HDI_ATTENTION_FORM    23 /* of the bits below */
#define HDI_ATTENTION_CAPPED   1u
#define HDI_ATTENTION_WINDOWED 2u
#define HDI_ATTENTION_SINKS    4u
#define HDI_ATTENTION_WIDE_K   8u /* attention: keys are f16, whole vectors of 16 bytes that begin at multiples of that */
#define HDI_ATTENTION_MASKED   16u
#define HDI_ATTENTION_STARTS   32u /* in the place of pages */
#define HDI_ATTENTION_AT_ONCE  24 /* of a GPU's attention: tiles of keys that a workgroup works at at once */
#define HDI_ATTENTION_TILE    32u
#define HDI_ATTENTION_MOST_D  1024u
/* attention_subgroup, in fast mode without starts or a mask: the keys are cut into parts, a workgroup each; those behind the
 * last visible key end at once, and the first begins where the unit's first query sees its first key. Bindings: q, k, v,
 * past, pages, sinks, the parts' partial results, a count of arrived parts for each unit (zero before and after), y.
 * Push words, after attention's: [11] parts, [12] keys of a part. A unit is (block of ROWS rows, batch, key
 * head), the last fastest, and a group's number is part * units + unit. */
#define HDI_ATTENTION_SUBGROUP  24 /* invocations of a subgroup */
#define HDI_ATTENTION_KEY_LANES 25 /* of them share a key: a power of two */
#define HDI_ATTENTION_WIDE      26 /* 1: heads are whole vectors of 16 bytes, and begin at multiples of that */
#define HDI_ATTENTION_KEYS      27 /* keys that an invocation reads at once */
#define HDI_ATTENTION_PARTS     64u /* at most */
/* attention_heads, in fast mode for one query a sequence over f32, f16 or bf16: attention_subgroup of heads that it turns, whole
 * ones of 16, 32, 64, ... elements, as rope_subgroup would, where a token's own key and value become a row of the cache. Bindings: q and
 * those up to the counts as attention_subgroup's, sines and cosines (rope), the weight of the queries' norm, the tokens' keys, the
 * weight of their norm, the tokens' values, y; q, keys and values are f32. Push words, after attention_subgroup's: [13] positions,
 * [14] eps' bits. */
#define HDI_ATTENTION_PAIRING   28 /* as HDI_ROPE_PAIRING */
#define HDI_ATTENTION_NORM      29 /* as HDI_ROPE_NORM */
/* attention_matrix, in fast mode over f16 without a mask: attention's bindings and push words, less the mask's; WIDTH is D
 * rounded up to 16. A group is (block of rows from the last, batch, key head), the last fastest. */
#define HDI_ATTENTION_MATRIX_ROWS 64u /* of a workgroup */
/* attention_tensor, in fast mode over f16: as attention_matrix, with ROWS of 64 or 128; heads of up to
 * HDI_ATTENTION_TENSOR_MOST_D. */
#define HDI_ATTENTION_TENSOR_KEYS   64u /* of a tile */
#define HDI_ATTENTION_TENSOR_MOST_D 128u

/* ---- attention_gradient: dq, dk and dv of y = attention(q, k, v), one after the other, all f32. Two launches: attention_gradient_q
 * gives dq, and for each query row what attention_gradient_kv begins with. Bindings: q, k, v, dy, starts (q again where absent),
 * y (only _q), facts, the result. Facts: 4 floats for each row of each (batch, key head): maximum, 1 / sum, sum of dy * y, unused.
 * Push words: [0] B, [1] T, [2] S, [3] Hkv, [4] D, [5] scale's bits. A GPU's group is (block of OWN rows, slice of D, batch and
 * key head), the last fastest; a CPU's likewise, with one slice. Rows are the query rows of a key head, in (token, head) order, or
 * its keys.
 * Exact order: scores and products dY V^T in matmul's order over D, scores then times scale; keys in tiles of
 * HDI_ATTENTION_TILE from key 0. dq: maximum and sum of a row as attention's; a weight is w = exp(score - maximum so far), its
 * gradient w * (product - sum of dy * y), and that of a tile times its keys added key by key from zero, then added to the sum so
 * far * exp(old maximum - new); at last * exact_div(1, sum), * scale. dk and dv: rows in tiles of as many from row 0;
 * w = exp(score - maximum) * exact_div(1, sum), its gradient as before; w * dy, and the gradient * q, added row by row from zero
 * within a tile, then to the sum so far; dk at last * scale. Sums of dy * y in matmul's order over D. What a row does not see
 * has weights of 0, a start below 0 is 0; a row that sees no key has, whatever its y, 0 for 1 / sum and for the sum of dy * y. No
 * sum is -0 before it is scaled, so a tile of such weights, which gives +0, may be left out. Bits are stated for other operands
 * that are finite. ---- */
/* attention_tiled, in fast mode: attention over f32 without past, pages, window, cap, sinks or mask, of heads of up to
 * HDI_ATTENTION_TILED_MOST_D, with the constants and push words of the gradient's passes. Bindings: q, k, v, q again, starts (q
 * again where absent), y. */
#define HDI_ATTENTION_TILED_MOST_D 128u
/* The passes on matrix units, attention_gradient_units_q and _kv, of fast mode where products may be rounded: attention_gradient's
 * bindings with q, k, v and dy in bf16, and its push words. Facts hold maxima that are scaled to powers of 2. Heads are whole
 * vectors of 16 bytes, of up to HDI_ATTENTION_UNITS_MOST_D elements; SLICE is D rounded up to 16. */
#define HDI_ATTENTION_UNITS_ROWS   64u /* of a workgroup, and of a tile that it meets where heads are short */
#define HDI_ATTENTION_UNITS_SHORT  64u /* elements of such a head, at most */
#define HDI_ATTENTION_UNITS_KEYS   32u /* of a tile that queries of longer heads meet */
#define HDI_ATTENTION_UNITS_OTHERS 16u /* query rows of one that keys of longer heads meet; these stay in shared memory */
#define HDI_ATTENTION_UNITS_MOST_D 128u
#define HDI_ATTENTION_TILES_TYPE    16
#define HDI_ATTENTION_TILES_KV_TYPE 17
#define HDI_ATTENTION_TILES_CAUSAL  18
#define HDI_ATTENTION_TILES_HEADS   19 /* query heads of a key head */
#define HDI_ATTENTION_TILES_OWN     20 /* rows of a workgroup: 32 or 64 */
#define HDI_ATTENTION_TILES_OTHER   21 /* rows that it meets at once; HDI_ATTENTION_TILE in exact mode, or 64 */
#define HDI_ATTENTION_TILES_SLICE   22 /* of D, whose sums it has: 64 or 128 */
#define HDI_ATTENTION_TILES_WIDE    23 /* 1: heads are whole vectors of 16 bytes that begin at multiples of that */
#define HDI_ATTENTION_TILES_STARTS  24 /* 1: there are starts */

#endif
