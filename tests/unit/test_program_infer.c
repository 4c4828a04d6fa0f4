/* test_program_infer.c: type and shape of every operation, and every way in which one is refused. The cases are lines of
 * the text form over one prelude of inputs; what a text cannot say is tried through the public calls. */
#include "unit/program_cases.h"
#include <stdio.h>

static const char prelude[] =
    "heddle 1\n"
    "f = input f32[2,3] \"f\"\n"         "h = input f16[2,3] \"h\"\n"       "b = input bf16[2,3] \"b\"\n"
    "i = input i32[2,3] \"i\"\n"         "u = input u8[2,3] \"u\"\n"        "q = input q4_0[8,64] \"q\"\n"
    "f3 = input f32[3] \"f3\"\n" "f21 = input f32[2,1] \"f21\"\n"   "f0 = input f32[] \"f0\"\n"
    "f32 = input f32[3,2] \"f32\"\n"     "h3 = input f16[3] \"h3\"\n"       "u31 = input u8[3,1] \"u31\"\n"
    "f223 = input f32[2,2,3] \"f223\"\n" "f323 = input f32[3,2,3] \"f323\"\n" "f5 = input f32[5] \"f5\"\n"
    "f64 = input f32[4,64] \"f64\"\n"    "i0 = input i32[] \"i0\"\n"        "i1 = input i32[1] \"i1\"\n"
    "i2 = input i32[2] \"i2\"\n"         "i4 = input i32[4] \"i4\"\n"       "r6 = input i32[1,1,1,1,1,2] \"r6\"\n"
    "x6 = input f32[1,1,1,1,1,2] \"x6\"\n" "big = input u8[1048576,1048576] \"big\"\n" "u1 = input u8[1] \"u1\"\n"
    "long = input i32[2147483648] \"long\"\n"
    "s = state f32[8,3] \"s\"\n"         "si = state i32[1] \"si\"\n"       "s0 = state f32[] \"s0\"\n"
    "o = state f32[8,3] \"o\"\n"         "output o \"out\"\n"
    "q4 = input f32[4,6,16] \"q4\"\n"    "k4 = input f16[9,2,16] \"k4\"\n"  "k3 = input f16[3,2,16] \"k3\"\n"
    "k5 = input f16[9,5,16] \"k5\"\n"    "kd = input f16[9,2,8] \"kd\"\n"   "bq = input f32[2,4,6,16] \"bq\"\n"
    "bk = input f32[2,9,2,16] \"bk\"\n"  "bk3 = input f32[3,9,2,16] \"bk3\"\n" "odd = input f32[4,6,15] \"odd\"\n"
    "huge = input u8[1,1,131074] \"huge\"\n" "wide = input f32[1,1,131074] \"wide\"\n"
    "sb = state f16[2,8,3] \"sb\"\n"    "fb = input f32[2,3,3] \"fb\"\n"  "hb = input f16[2,3,3] \"hb\"\n"
    "sp = state f16[5,64,3] \"sp\"\n"   "sq = state f16[5,96,3] \"sq\"\n" "i22 = input i32[2,2] \"i22\"\n"
    "kp = input f16[5,64,2,16] \"kp\"\n" "k32 = input f16[5,32,2,16] \"k32\"\n" "kp5 = input f16[5,64,5,16] \"kp5\"\n"
    "p64 = input i32[16777216] \"p64\"\n" "q65 = input f32[65,6,16] \"q65\"\n"
    "q6 = input f32[6] \"q6\"\n"       "fb2 = input f32[2,2,3] \"fb2\"\n"   "kf = input f32[9,2,16] \"kf\"\n"
    "parts = dispatch f f kernel=0123456789abcdef dtype=u8 shape=[280] push=0000000100000002 groups=[1,1,1] bindings=[1,0,0,0,0,24,0,256,24]\n"
    "f2v = input f32[2] \"f2v\"\n"    "m = input f32[6,4,9] \"m\"\n"      "m9 = input f32[2,1,1,9] \"m9\"\n" "i24 = input i32[2,4] \"i24\"\n"
    "s8 = state q8_0[9,64] \"s8\"\n"    "f8 = input f32[3,64] \"f8\"\n"   "h8 = input f16[3,64] \"h8\"\n"
    "k8 = input q8_0[3,64] \"k8\"\n"    "a8 = input f32[4,6,32] \"a8\"\n" "b8 = input q8_0[9,2,32] \"b8\"\n"
    "bk8 = input q4_k[9,2,256] \"bk8\"\n";

typedef struct infer_case {
    const char *line;
    hd_status   status;
    const char *result; /* "f32[2,3]", or the reason */
} infer_case;

#define GOOD(line, result) { line, HD_OK, result }
#define BAD(status, line, reason) { line, HD_STATUS_##status, reason }
#define SAME(op) GOOD(op " f", "f32[2,3]"), GOOD(op " h", "f16[2,3]"), GOOD(op " b", "bf16[2,3]")
#define FLOATS(op) SAME(op), BAD(TYPE, op " i", "operand 1 is i32, it must be f32, f16 or bf16"), \
                   BAD(TYPE, op " u", "operand 1 is u8, it must be f32, f16 or bf16"), \
                   BAD(TYPE, op " q", "operand 1 is q4_0, it must be f32, f16 or bf16")
#define NUMBERS(op) SAME(op), GOOD(op " i", "i32[2,3]"), BAD(TYPE, op " u", "operand 1 is u8, it must be f32, f16, bf16 or i32"), \
                    BAD(TYPE, op " q", "operand 1 is q4_0, it must be f32, f16, bf16 or i32")
#define NUMBERS_K(op, k) GOOD(op " f " k, "i32[2,3]"), GOOD(op " h " k, "i32[2,3]"), GOOD(op " b " k, "i32[2,3]"), GOOD(op " i " k, "i32[2,3]"), \
                         BAD(TYPE, op " u " k, "operand 1 is u8, it must be f32, f16, bf16 or i32"), \
                         BAD(TYPE, op " q " k, "operand 1 is q4_0, it must be f32, f16, bf16 or i32")
#define BITS(op, types) GOOD(op " i i", "i32[2,3]"), GOOD(op " u u1", "u8[2,3]"), BAD(TYPE, op " f f", "operand 1 is f32, it must be " types)
#define EVERY(op) SAME(op), GOOD(op " i", "i32[2,3]"), GOOD(op " u", "u8[2,3]"), \
                  BAD(TYPE, op " q", "operand 1 is q4_0, it must be f32, f16, bf16, i32, u8, i8, u32 or i64")
#define PAIRS(op, type) GOOD(op " f f3", type "[2,3]"), GOOD(op " f21 f3", type "[2,3]"), GOOD(op " f0 f", type "[2,3]"), \
                  GOOD(op " f0 f0", type "[]"), GOOD(op " f323 f21", type "[3,2,3]"), \
                  BAD(TYPE, op " f h", "operands 1 and 2 are f32 and f16: cast one of them"), \
                  BAD(SHAPE, op " f f32", "shapes do not broadcast: [2,3] and [3,2]"), \
                  BAD(TYPE, op " q q", NULL)
#define AXIS(op) BAD(SHAPE, op " f0 axis=0", "operand 1 has no axis, its shape is []"), \
                 BAD(INVALID_ARGUMENT, op " f axis=2", "axis 2 is outside of [2,3]"), \
                 BAD(INVALID_ARGUMENT, op " f axis=-3", "axis -3 is outside of [2,3]"), \
                 BAD(INVALID_ARGUMENT, op " f axis=-9223372036854775808", NULL)
#define REDUCE(op, type) GOOD(op " f axis=0", type "[1,3]"), GOOD(op " f axis=-1", type "[2,1]"), AXIS(op)

/* Operations of one operand and no attribute: by the table's types of operand 1. */
#define UNARY_own(name, takes)
#define UNARY_binary(name, takes)
#define UNARY_ternary(name, takes)
#define UNARY_along(name, takes)
#define UNARY_reduce(name, takes)
#define UNARY_unary(name, takes) takes(name),

static const infer_case cases[] = {
#define HDI_OP(code, name, least, most, lack, kind, rows, work, rule, takes, builder, ...) UNARY_##builder(#name, takes)
#include "program/op_table.inc"
#undef HDI_OP
    PAIRS("add", "f32"), PAIRS("sub", "f32"), PAIRS("mul", "f32"), PAIRS("div", "f32"), PAIRS("less", "u8"),
    PAIRS("equal", "u8"), GOOD("add i i", "i32[2,3]"),
    PAIRS("maximum", "f32"), PAIRS("minimum", "f32"), GOOD("maximum i i", "i32[2,3]"),
    BITS("bit_and", "i32, u8, i8, u32 or i64"), BITS("bit_or", "i32, u8, i8, u32 or i64"), BITS("bit_xor", "i32, u8, i8, u32 or i64"),
    BITS("shift_left", "i32, u8, i8 or u32"), BITS("shift_right_logical", "i32, u8, i8 or u32"), BITS("shift_right_arithmetic", "i32, u8 or i8"),
    BAD(TYPE, "bit_or i u", "operands 1 and 2 are i32 and u8: cast one of them"),
    BAD(TYPE, "add u u", "operand 1 is u8, it must be f32, f16, bf16, i32, i8, u32 or i64"),
    BAD(SHAPE, "less u u31", "shapes do not broadcast: [2,3] and [3,1]"), GOOD("less u u", "u8[2,3]"),
    GOOD("equal i i", "u8[2,3]"), FLOATS("scale"), FLOATS("leaky_relu slope=1"), FLOATS("elu alpha=1"),
    NUMBERS("clip low=1 high=1"),
    BAD(INVALID_ARGUMENT, "clip f low=2 high=1.5", "low 2 is not at or below high 1.5"),
    BAD(INVALID_ARGUMENT, "clip f low=nan high=1", "low nan is not at or below high 1"), GOOD("where u f f3", "f32[2,3]"),
    GOOD("where u31 f0 f3", "f32[3,3]"), GOOD("where u1 u u", "u8[2,3]"),
    BAD(SHAPE, "where u31 f323 f0", "shapes do not broadcast: [3,1], [3,2,3] and []"),
    BAD(TYPE, "where f f f", "operand 1 is f32, it must be u8"),
    BAD(TYPE, "where u f h", "operands 2 and 3 are f32 and f16: cast one of them"),
    BAD(TYPE, "where u q q", "operand 2 is q4_0, it must be f32, f16, bf16, i32, u8, i8, u32 or i64"),
    BAD(SHAPE, "where u f f32", "shapes do not broadcast: [2,3], [2,3] and [3,2]"), GOOD("cast u dtype=bf16", "bf16[2,3]"),
    GOOD("cast q dtype=f32", "f32[8,64]"), GOOD("cast f dtype=f32", "f32[2,3]"),
    BAD(TYPE, "cast q dtype=f16", "q4_0 can be cast to f32 only, not to f16"),
    BAD(TYPE, "cast f dtype=q8_0", "a result cannot be q8_0, only an input can"),
    GOOD("round_random f i", "bf16[2,3]"), GOOD("round_random f3 i", "bf16[2,3]"),
    BAD(TYPE, "round_random h i", "operand 1 is f16, it must be f32"), BAD(TYPE, "round_random f u", "operand 2 is u8, it must be i32"),
    BAD(SHAPE, "round_random f32 i", "shapes do not broadcast: [3,2] and [2,3]"),
    GOOD("permute f223 axes=[2,0,1]", "f32[3,2,2]"), GOOD("permute f0 axes=[]", "f32[]"),
    BAD(TYPE, "permute q axes=[1,0]", "operand 1 is q4_0, it must be f32, f16, bf16, i32, u8, i8, u32 or i64"),
    BAD(INVALID_ARGUMENT, "permute f axes=[0]", "1 axes given for [2,3], which has 2 axes"),
    BAD(INVALID_ARGUMENT, "permute f axes=[0,2]", "axis 2 is outside of [2,3]"),
    BAD(INVALID_ARGUMENT, "permute f axes=[-1,0]", "axis -1 is outside of [2,3]"),
    BAD(INVALID_ARGUMENT, "permute f axes=[1,1]", "axis 1 is named twice for [2,3]"),
    GOOD("reshape f shape=[3,1,2]", "f32[3,1,2]"), GOOD("reshape f0 shape=[1]", "f32[1]"),
    GOOD("reshape u1 shape=[]", "u8[]"), BAD(SHAPE, "reshape f shape=[4,2]", "[2,3] has 6 elements, [4,2] has 8"),
    BAD(ZERO_SIZE, "reshape f shape=[6,0]", "the length of axis 1 is below 1: [6,0]"),
    BAD(SHAPE, "reshape f shape=[-2,-3]", "the length of axis 0 is below 1: [-2,-3]"),
    BAD(TYPE, "reshape q shape=[512]", NULL), GOOD("concat f axis=0", "f32[2,3]"),
    GOOD("concat f f f21 axis=-1", "f32[2,7]"),
    BAD(SHAPE, "concat f f32 axis=1", "operand 2 is [3,2], which differs from [2,3] not only along axis 1"),
    BAD(SHAPE, "concat f f3 axis=0", "operand 2 is [3], which differs from [2,3] not only along axis 0"),
    BAD(TYPE, "concat f f h axis=0", "operands 1 and 3 are f32 and f16: cast one of them"),
    BAD(TYPE, "concat q q axis=0", NULL), BAD(INVALID_ARGUMENT, "concat axis=0", "0 operands, at least 1"), AXIS("concat"),
    BAD(LIMIT, "concat big big axis=0", "a tensor [2097152,1048576] of u8 has more than 2^40 bytes"),
    GOOD("slice f begin=[0,-2] end=[-1,3]", "f32[1,2]"), GOOD("slice f0 begin=[] end=[]", "f32[]"),
    BAD(INVALID_ARGUMENT, "slice f begin=[0] end=[1]", "1 bounds given for [2,3], which has 2 axes"),
    BAD(INVALID_ARGUMENT, "slice f begin=[0,0] end=[2,4]", "0 to 4 along axis 1 is outside of [2,3]"),
    BAD(INVALID_ARGUMENT, "slice f begin=[-3,0] end=[2,3]", "-3 to 2 along axis 0 is outside of [2,3]"),
    BAD(INVALID_ARGUMENT, "slice f begin=[1,0] end=[0,3]", "1 to 0 along axis 0 is outside of [2,3]"),
    BAD(INVALID_ARGUMENT, "slice f begin=[-9223372036854775808,0] end=[9223372036854775807,3]", NULL),
    BAD(ZERO_SIZE, "slice f begin=[1,0] end=[1,3]", "1 to 1 along axis 0 of [2,3] is empty"),
    BAD(TYPE, "slice q begin=[0,0] end=[1,1]", NULL), 
    GOOD("windows f223 axis=2 size=2", "f32[2,2,2,2]"), GOOD("windows f axis=-1 size=2 stride=0 dilation=2", "f32[2,1,2]"), GOOD("windows i axis=0 size=1 stride=9 dilation=9223372036854775807", "i32[1,3,1]"),
    BAD(SHAPE, "windows f0 axis=0 size=1", "operand 1 has no axis, its shape is []"), BAD(INVALID_ARGUMENT, "windows f axis=2 size=1", "axis 2 is outside of [2,3]"), BAD(TYPE, "windows q axis=0 size=1", NULL), BAD(INVALID_ARGUMENT, "windows f axis=0 size=0", "size 0, stride 1 and dilation 1 must be above 0"),
    BAD(INVALID_ARGUMENT, "windows f axis=0 size=1 stride=-1", NULL), BAD(INVALID_ARGUMENT, "windows f axis=0 size=2 dilation=-9223372036854775808", NULL),
    BAD(SHAPE, "windows f axis=1 size=3 dilation=2", "a window of 3 elements, 2 apart, is longer than axis 1 of [2,3]"),
    BAD(SHAPE, "windows f axis=1 size=9223372036854775807 dilation=9223372036854775807", NULL), GOOD("pad f before=[1,0] after=[0,2] value=-inf", "f32[3,5]"),
    GOOD("pad f0 before=[] after=[]", "f32[]"),
    BAD(INVALID_ARGUMENT, "pad f before=[0,-1] after=[0,0]",
        "-1 before and 0 after along axis 1 of [2,3]: use slice to cut"),
    BAD(INVALID_ARGUMENT, "pad f before=[1] after=[1]", "1 amounts given for [2,3], which has 2 axes"),
    BAD(LIMIT, "pad f before=[0,0] after=[0,9223372036854775807]",
        "0 before and 9223372036854775807 after along axis 1 are more than a tensor can have"),
    BAD(LIMIT, "pad f before=[0,1099511627776] after=[0,0]", "a tensor [2,1099511627779] of f32 has more than 2^40 bytes"),
    BAD(TYPE, "pad q before=[0,0] after=[0,0]", NULL), REDUCE("sum", "f32"), REDUCE("prod", "f32"), REDUCE("mean", "f32"), REDUCE("max", "f32"),
    REDUCE("min", "f32"), REDUCE("argmax", "i32"), GOOD("sum i axis=1", "i32[2,1]"), GOOD("max i axis=1", "i32[2,1]"),
    GOOD("argmax i axis=1", "i32[2,1]"), BAD(TYPE, "mean i axis=0", "operand 1 is i32, it must be f32, f16 or bf16"),
    BAD(TYPE, "sum u axis=0", NULL), GOOD("prod i axis=0", "i32[1,3]"),
    AXIS("cumsum"), GOOD("cumsum f axis=-1 exclusive", "f32[2,3]"), GOOD("cumsum i axis=0 reverse exclusive", "i32[2,3]"),
    BAD(TYPE, "cumsum u axis=0", "operand 1 is u8, it must be f32, f16, bf16 or i32"), BAD(TYPE, "min q axis=0", NULL),
    BAD(LIMIT, "argmax long axis=0", "an axis of 2147483648 elements has indices that i32 does not hold"),
    GOOD("hash f", "i32[8]"), GOOD("hash i", "i32[8]"), GOOD("hash u", "i32[8]"), GOOD("hash q", "i32[8]"), GOOD("hash f0", "i32[8]"), BAD(LIMIT, "hash big", "operand 1 is of 4 GiB or more: take a digest of each part"),
    NUMBERS_K("top_k", "k=3"), GOOD("top_k f223 k=1", "i32[2,2,1]"), GOOD("top_k f3 k=2", "i32[2]"),
    BAD(SHAPE, "top_k f0 k=1", "operand 1 is [], it needs at least 1 axes"), BAD(INVALID_ARGUMENT, "top_k f64 k=0", "k is 0, it must be 1 to 256"),
    BAD(INVALID_ARGUMENT, "top_k f64 k=257", "k is 257, it must be 1 to 256"), BAD(INVALID_ARGUMENT, "top_k f64 k=-9223372036854775808", NULL),
    BAD(INVALID_ARGUMENT, "top_k f64 k=65", "k is 65, but the last axis of [4,64] has fewer elements"),
    BAD(LIMIT, "top_k long k=1", "an axis of 2147483648 elements has indices that i32 does not hold"),
    GOOD("matmul_experts f f223 i22", "f32[2,2,2]"), GOOD("matmul_experts fb2 f223 i22", "f32[2,2,2]"), BAD(TYPE, "matmul_experts f f223 f", "operand 3 is f32, it must be i32"),
    BAD(SHAPE, "matmul_experts f f i22", "operand 2 is [2,3], the number of its axes must be 3"), BAD(SHAPE, "matmul_experts f32 f223 i22", "rows [3,2] and the experts they chose, [2,2], do not go together"),
    BAD(SHAPE, "matmul_experts fb f223 i22", "rows [2,3,3] and the experts they chose, [2,2], do not go together"), BAD(SHAPE, "matmul_experts f21 f223 i22", "inner lengths differ: [2,1] and [2,2,3]"),
    GOOD("take_along f i", "f32[2,3]"), GOOD("take_along h i", "f16[2,3]"), GOOD("take_along u i", "u8[2,3]"), GOOD("take_along f5 i4", "f32[4]"),
    BAD(TYPE, "take_along q i", "operand 1 is q4_0, it must be f32, f16, bf16, i32, u8, i8, u32 or i64"), BAD(TYPE, "take_along f f", "operand 2 is f32, it must be i32, u32 or i64"),
    BAD(SHAPE, "take_along f i2", "operand 2 is [2], the number of its axes must be 2"), BAD(SHAPE, "take_along f0 i0", "operand 1 is [], it needs at least 1 axes"),
    BAD(SHAPE, "take_along f32 i", "indices is [2,3], it must be [3,3] to go with [3,2]"),
    GOOD("dot f f axis=1", "f32[2,1]"), BAD(TYPE, "dot f h axis=0", "operands 1 and 2 are f32 and f16: cast one of them"),
    GOOD("dot f f21 axis=0", "f32[1,3]"), BAD(SHAPE, "dot f f21 axis=1", "operand 2 is [2,1], it must be [2,3] to go with [2,3]"),
    BAD(TYPE, "dot i i axis=0", NULL), BAD(INVALID_ARGUMENT, "dot f f axis=2", "axis 2 is outside of [2,3]"),
    GOOD("softmax h axis=0", "f16[2,3]"), GOOD("log_softmax f axis=-2", "f32[2,3]"), AXIS("softmax"), AXIS("log_softmax"),
    BAD(TYPE, "softmax i axis=0", NULL), GOOD("rms_norm f eps=0", "f32[2,3]"), GOOD("rms_norm f f3 eps=1e-6", "f32[2,3]"),
    GOOD("rms_norm h - eps=1", "f16[2,3]"), GOOD("layer_norm f f3 f3 eps=1", "f32[2,3]"),
    GOOD("layer_norm f - f3 eps=1", "f32[2,3]"), GOOD("layer_norm f - - eps=1", "f32[2,3]"),
    BAD(SHAPE, "rms_norm f f5 eps=1", "weight is [5], it must be [3] to go with [2,3]"),
    BAD(SHAPE, "layer_norm f f3 f21 eps=1", "bias is [2,1], it must be [3] to go with [2,3]"),
    BAD(TYPE, "layer_norm f f3 h3 eps=1", "operands 1 and 3 are f32 and f16: cast one of them"),
    BAD(SHAPE, "rms_norm f0 eps=1", "operand 1 is [], it needs at least 1 axes"), BAD(TYPE, "rms_norm i eps=1", NULL),
    BAD(INVALID_ARGUMENT, "rms_norm f eps=-1", "eps -1 is not zero or above"),
    BAD(INVALID_ARGUMENT, "rms_norm f eps=nan", "eps nan is not zero or above"),
    BAD(INVALID_ARGUMENT, "layer_norm f eps=inf", "eps inf is not zero or above"),
    BAD(UNKNOWN_VALUE, "rms_norm - f3 eps=1", NULL), GOOD("matmul f f32", "f32[2,2]"), GOOD("matmul h f32", "f16[2,2]"), GOOD("matmul h f32 result_f32", "f32[2,2]"), GOOD("matmul b b transpose_a result_f32", "f32[3,3]"),
    GOOD("matmul f f transpose_b", "f32[2,2]"), GOOD("matmul f f transpose_a", "f32[3,3]"),
    GOOD("matmul f f32 transpose_a transpose_b", "f32[3,3]"), GOOD("matmul f323 f32", "f32[3,2,2]"),
    GOOD("matmul f f323 transpose_b", "f32[3,2,2]"), GOOD("matmul f64 q transpose_b", "f32[4,8]"),
    BAD(SHAPE, "matmul f f", "inner lengths differ: [2,3] x [2,3]"),
    BAD(SHAPE, "matmul f f32 transpose_b", "inner lengths differ: [2,3] x [3,2] transposed"),
    BAD(SHAPE, "matmul f3 f", "operand 1 is [3], it needs at least 2 axes"),
    BAD(SHAPE, "matmul f f3", "operand 2 is [3], it needs at least 2 axes"),
    BAD(SHAPE, "matmul f223 f323 transpose_b", "leading axes do not broadcast: [2,2,3] x [3,2,3]"),
    BAD(TYPE, "matmul i f", "operand 1 is i32, it must be f32, f16 or bf16"),
    BAD(TYPE, "matmul f i", "operand 2 is i32, it must be f32, f16, bf16 or a quantised type"),
    BAD(TYPE, "matmul q q", "operand 1 is q4_0, it must be f32, f16 or bf16"), GOOD("gather h i", "f16[2,3,3]"),
    GOOD("gather q i0", "f32[64]"), GOOD("gather u i2", "u8[2,3]"), GOOD("gather i i2", "i32[2,3]"),
    BAD(TYPE, "gather f f", "operand 2 is f32, it must be i32, u32 or i64"),
    BAD(SHAPE, "gather f3 i", "operand 1 is [3], the number of its axes must be 2"),
    BAD(LIMIT, "gather f r6", "indices [1,1,1,1,1,2] leave no axis for the rows: at most 5 axes"),
    GOOD("scatter_add f i2 f", "f32[2,3]"), GOOD("scatter_add i i2 i", "i32[2,3]"), BAD(TYPE, "scatter_add u i2 u", NULL),
    GOOD("scatter_mul i i2 i", "i32[2,3]"), GOOD("scatter_max f i2 f", "f32[2,3]"), GOOD("scatter_min h i2 h", "f16[2,3]"),
    BAD(TYPE, "scatter_mul u i2 u", "operand 1 is u8, it must be f32, f16, bf16 or i32"),
    BAD(SHAPE, "scatter_max f i4 f", "updates is [2,3], it must be [4,3] to go with [2,3]"), BAD(TYPE, "scatter_min f f3 f", NULL),
    BAD(TYPE, "scatter_add f f3 f", "operand 2 is f32, it must be i32, u32 or i64"),
    BAD(TYPE, "scatter_add f i2 h", "operands 1 and 3 are f32 and f16: cast one of them"),
    BAD(SHAPE, "scatter_add f3 i2 f", "operand 1 is [3], the number of its axes must be 2"),
    BAD(SHAPE, "scatter_add f i f", "operand 2 is [2,3], the number of its axes must be 1"),
    BAD(SHAPE, "scatter_add f i4 f", "updates is [2,3], it must be [4,3] to go with [2,3]"),
    GOOD("write_rows s f i1", "f32[8,3]"), GOOD("write_rows s o i1", "f32[8,3]"),
    BAD(TYPE, "write_rows s h i1", "operands 1 and 2 are f32 and f16: cast one of them"),
    GOOD("write_rows s8 f8 i1", "q8_0[9,64]"), BAD(TYPE, "write_rows s8 h8 i1", "rows of f16 for a state of q8_0: they must be f32"),
    BAD(TYPE, "write_rows s8 k8 i1", "rows of q8_0 for a state of q8_0: they must be f32"),
    BAD(TYPE, "assign s8 s8", "operand 1 is q8_0, it must be f32, f16, bf16, i32 or u8"),
    BAD(TYPE, "write_rows s f f3", "operand 3 is f32, it must be i32"),
    BAD(INVALID_ARGUMENT, "write_rows f f i1", "operand 1 is the result of input, it must be a state"),
    GOOD("assign s o", "f32[8,3]"), GOOD("assign s0 f0", "f32[]"),
    BAD(TYPE, "assign s h", "operands 1 and 2 are f32 and f16: cast one of them"),
    BAD(SHAPE, "assign s f", "the value is [2,3], it must be [8,3] to go with [8,3]"),
    BAD(INVALID_ARGUMENT, "assign f f", "operand 1 is the result of input, it must be a state"),
    BAD(INVALID_ARGUMENT, "assign s s", "value 26 would be read while it is overwritten: copy it first"),
    GOOD("random i4 stream=4294967295 shape=[2,3]", "i32[2,3]"), GOOD("random i4 stream=0 shape=[]", "i32[]"),
    BAD(INVALID_ARGUMENT, "random i4 stream=-1 shape=[2]", "stream -1 is outside of 0..2^32 - 1"),
    BAD(INVALID_ARGUMENT, "random i4 stream=4294967296 shape=[2]", NULL), BAD(TYPE, "random f stream=0 shape=[2]", "operand 1 is f32, it must be i32"),
    BAD(SHAPE, "random i2 stream=0 shape=[2]", "key is [2], it must be [4] to go with [2]"),
    BAD(ZERO_SIZE, "random i4 stream=0 shape=[2,0]", "the length of axis 1 is below 1: [2,0]"),
    BAD(WRONG_STATE, "assign o f", "value 29 is an output and may not be overwritten: copy it first"),
    BAD(WRONG_STATE, "write_rows o f i1", "value 29 is an output and may not be overwritten: copy it first"),
    BAD(INVALID_ARGUMENT, "write_rows s s i1", "value 26 would be read while it is overwritten: copy it first"),
    BAD(INVALID_ARGUMENT, "write_rows si i1 si", "value 27 would be read while it is overwritten: copy it first"),
    BAD(SHAPE, "write_rows s0 f0 i1", "operand 1 is [], it needs at least 1 axes"),
    BAD(SHAPE, "write_rows s f32 i1", "rows is [3,2], it must be [3,3] to go with [8,3]"),
    BAD(SHAPE, "write_rows s f0 i1", "rows is [], it must be [8,3] to go with [8,3]"),
    BAD(SHAPE, "write_rows s f i2", "position is [2], it must be [1] to go with [8,3]"),
    GOOD("write_rows sb fb i2", "f16[2,8,3]"), GOOD("write_rows sb hb i2", "f16[2,8,3]"),
    GOOD("write_rows sp f i1 i2", "f16[5,64,3]"), GOOD("write_rows sp hb i2 i22", "f16[5,64,3]"), GOOD("write_rows sp h i1 i1", "f16[5,64,3]"),
    BAD(SHAPE, "write_rows sp hb i1 i22", "position is [1], it must be [2] to go with [5,64,3]"),
    BAD(SHAPE, "write_rows sp hb i2 i2", "rows is [2,3,3], it must be [2,3] to go with [5,64,3]"),
    BAD(SHAPE, "write_rows sp f i1 i", "rows is [2,3], it must be [2,3,3] to go with [5,64,3]"),
    BAD(SHAPE, "write_rows sp f i1 i0", "pages is [], it must be [P]"), BAD(TYPE, "write_rows sp f i1 f3", "operand 4 is f32, it must be i32"),
    BAD(SHAPE, "write_rows sq f i1 i2", "pages of 96 rows in [5,96,3]: a page has a power of two of rows, at least 64"),
    BAD(SHAPE, "write_rows s f i1 i2", "pages of 3 rows in [8,3]: a page has a power of two of rows, at least 64"),
    BAD(SHAPE, "write_rows si i1 i1 i1", "operand 1 is [1], it needs at least 2 axes"),
    BAD(INVALID_ARGUMENT, "write_rows si i1 i1 si", "value 27 would be read while it is overwritten: copy it first"),
    BAD(LIMIT, "write_rows sp f i1 p64", "16777216 pages of 64 rows are more than a sequence can have"),
    BAD(SHAPE, "write_rows sb fb i1", "position is [1], it must be [2] to go with [2,8,3]"), GOOD("rope q4 i4", "f32[4,6,16]"),
    GOOD("rope bq i4 dims=8 pairing=neighbours factors=[1,2,3,4]", "f32[2,4,6,16]"),
    GOOD("rope odd i4 dims=14", "f32[4,6,15]"),
    BAD(SHAPE, "rope odd i4", "15 dims cannot turn in pairs: they must be even and at most D, [4,6,15]"),
    BAD(SHAPE, "rope q4 i4 dims=18", NULL), BAD(SHAPE, "rope q4 i4 dims=-2", NULL),
    BAD(LIMIT, "rope wide i1", "131074 dims are more than 65536"),
    BAD(SHAPE, "rope f i2", "operand 1 is [2,3], it needs at least 3 axes"),
    BAD(SHAPE, "rope q4 i2", "positions is [2], it must be [4] to go with [4,6,16]"),
    BAD(TYPE, "rope q4 f3", "operand 2 is f32, it must be i32"), BAD(TYPE, "rope huge i1", NULL),
    BAD(INVALID_ARGUMENT, "rope q4 i4 theta=-1",
        "theta -1, frequency_scale 1 and magnitude 1 must be numbers, theta above 0"),
    BAD(INVALID_ARGUMENT, "rope q4 i4 theta=inf", NULL), BAD(INVALID_ARGUMENT, "rope q4 i4 frequency_scale=nan", NULL),
    BAD(INVALID_ARGUMENT, "rope q4 i4 magnitude=inf", NULL),
    BAD(SHAPE, "rope q4 i4 factors=[1,2]", "2 factors given for 16 dims, which need half as many"),
    BAD(INVALID_ARGUMENT, "rope q4 i4 dims=4 factors=[1,0]", "factor 1 is 0 and cannot be divided by"),
    BAD(INVALID_ARGUMENT, "rope q4 i4 dims=2 factors=[nan]", NULL), GOOD("attention q4 k4 k4 i1", "f32[4,6,16]"),
    GOOD("attention q4 k4 k4", "f32[4,6,16]"), GOOD("attention q4 k4 k4 - not_causal scale=2", "f32[4,6,16]"),
    GOOD("attention bq bk bk i2", "f32[2,4,6,16]"),
    BAD(SHAPE, "attention bq bk bk i1", "past is [1], it must be [2] to go with [2,4,6,16]"),
    BAD(SHAPE, "attention q4 k4 k4 i2", "past is [2], it must be [1] to go with [4,6,16]"),
    BAD(TYPE, "attention q4 k4 k4 f3", "operand 4 is f32, it must be i32"),
    BAD(TYPE, "attention q4 i i", "operand 2 is i32, it must be f32, f16 or bf16"),
    GOOD("attention a8 b8 b8", "f32[4,6,32]"), BAD(TYPE, "attention a8 bk8 bk8", "operand 2 is q4_k; of the quantised types it can be q8_0 or q4_0"),
    BAD(TYPE, "attention a8 b8 a8", "operands 2 and 3 are q8_0 and f32: cast one of them"),
    BAD(TYPE, "attention q4 q4 k4", "operands 2 and 3 are f32 and f16: cast one of them"),
    BAD(SHAPE, "attention f f f", "operand 1 is [2,3], it needs 3 to 4 axes"),
    BAD(SHAPE, "attention x6 x6 x6", "operand 1 is [1,1,1,1,1,2], it needs 3 to 4 axes"),
    BAD(SHAPE, "attention q4 k4 k3", "k and v differ: [9,2,16] and [3,2,16]"),
    BAD(SHAPE, "attention q4 bk bk", "q [T,Hq,D] and k [S,Hkv,D] do not go together: [4,6,16] and [2,9,2,16]"),
    BAD(SHAPE, "attention bq bk3 bk3", NULL), BAD(SHAPE, "attention q4 kd kd", NULL),
    BAD(SHAPE, "attention q4 f0 f0", NULL),
    BAD(SHAPE, "attention q4 k5 k5", "6 query heads are no multiple of 5 key heads: [4,6,16] and [9,5,16]"),
    BAD(SHAPE, "attention q4 k3 k3", "4 queries have only 3 keys to see: [4,6,16] and [3,2,16]"),
    BAD(INVALID_ARGUMENT, "attention q4 k4 k4 scale=inf", "scale inf is no number"),
    BAD(INVALID_ARGUMENT, "attention q4 k4", "2 operands, at least 3"),
    BAD(LIMIT, "attention q4 k4 k4 i1 i1 i1 i1 i1 i1", "9 operands, at most 8"),
    GOOD("attention q4 k4 k4 - - - m", "f32[4,6,16]"), GOOD("attention q4 k4 k4 i1 - q6 f0 i4 not_causal", "f32[4,6,16]"), GOOD("attention bq bk bk - - - m9 i24", "f32[2,4,6,16]"),
    BAD(SHAPE, "attention q4 k4 k4 - - - m9", "the mask is [2,1,1,9], it must broadcast to the scores [1,6,4,9]"), BAD(SHAPE, "attention q4 k4 k4 - - - x6", NULL),
    BAD(TYPE, "attention q4 k4 k4 - - - i1", "operand 7 is i32, it must be f32"), BAD(TYPE, "attention q4 k4 k4 - - - - f3", "operand 8 is f32, it must be i32"),
    BAD(SHAPE, "attention q4 k4 k4 - - - - i1", "starts is [1], it must be [4] to go with [4,6,16]"), BAD(SHAPE, "attention bq bk bk - - - - i4", NULL),
    BAD(INVALID_ARGUMENT, "attention q4 kp kp i1 i2 - - i4", "starts do not go with pages"),
    GOOD("attention q4 k4 k4 - - q6 cap=50 window=3", "f32[4,6,16]"), BAD(SHAPE, "attention q4 k4 k4 i1 - f3", "sinks is [3], it must be [6] to go with [4,6,16]"),
    BAD(TYPE, "attention q4 k4 k4 i1 - i1", "operand 6 is i32, it must be f32"), BAD(INVALID_ARGUMENT, "attention q4 k4 k4 cap=-1", "cap -1 is neither 0, for none, nor a number from 0.001 on"),
    BAD(INVALID_ARGUMENT, "attention q4 k4 k4 cap=nan", NULL), BAD(INVALID_ARGUMENT, "attention q4 k4 k4 window=-1", "a window of -1 keys; 0 is none"),
    BAD(INVALID_ARGUMENT, "attention q4 k4 k4 window=4294967296", NULL),
    GOOD("attention_gradient q4 kf kf q4 q4", "f32[960]"), GOOD("attention_gradient q4 kf kf q4 q4 not_causal scale=2", "f32[960]"),
    GOOD("attention_gradient q4 q4 q4 q4 q4", "f32[1152]"), BAD(SHAPE, "attention_gradient q4 kf q4 q4 q4", "k and v differ: [9,2,16] and [4,6,16]"),
    BAD(TYPE, "attention_gradient q4 k4 k4 q4 q4", "operands 1 and 2 are f32 and f16: cast one of them"), BAD(TYPE, "attention_gradient q4 kf kf q4 i", "operands 1 and 5 are f32 and i32: cast one of them"),
    BAD(SHAPE, "attention_gradient q4 kf kf kf q4", "y is [9,2,16], it must be [4,6,16] to go with [4,6,16]"),
    BAD(SHAPE, "attention_gradient q4 kf kf q4 kf", "dy is [9,2,16], it must be [4,6,16] to go with [4,6,16]"),
    BAD(SHAPE, "attention_gradient f f f f f", "operand 1 is [2,3], it needs 3 to 4 axes"),
    GOOD("attention_gradient q4 kf kf q4 q4 i4", "f32[960]"), BAD(TYPE, "attention_gradient q4 kf kf q4 q4 f3", "operand 6 is f32, it must be i32"),
    BAD(SHAPE, "attention_gradient q4 kf kf q4 q4 i1", "starts is [1], it must be [4] to go with [4,6,16]"), BAD(LIMIT, "attention_gradient q4 kf kf q4 q4 i4 i4", "7 operands, at most 6"),
    BAD(INVALID_ARGUMENT, "attention_gradient q4 kf kf q4", "4 operands, at least 5"), BAD(INVALID_ARGUMENT, "attention_gradient q4 kf kf q4 q4 scale=inf", "scale inf is no number"),
    BAD(PARSE, "attention_gradient q4 kf kf q4 q4 cap=2", NULL),
    GOOD("attention q4 kp kp i1 i2", "f32[4,6,16]"), GOOD("attention q4 kp kp - i1", "f32[4,6,16]"), GOOD("attention bq kp kp i2 i22", "f32[2,4,6,16]"),
    BAD(SHAPE, "attention q4 k4 k4 i1 i1", "operand 2 is [9,2,16], the number of its axes must be 4"),
    BAD(SHAPE, "attention q4 kp kp i1 i22", "pages is [2,2], it must be [P]"), BAD(SHAPE, "attention bq kp kp i2 i2", "pages is [2], it must be [2,P]"),
    BAD(SHAPE, "attention q4 k32 k32 i1 i1", "pages of 32 rows in [5,32,2,16]: a page has a power of two of rows, at least 64"),
    BAD(SHAPE, "attention q4 kp5 kp5 i1 i1", NULL), BAD(TYPE, "attention q4 kp kp i1 f3", "operand 5 is f32, it must be i32"),
    BAD(SHAPE, "attention q65 kp kp i1 i1", "65 queries have only 64 keys to see: [65,6,16] and [5,64,2,16]"), GOOD("attention q65 kp kp i1 i2", "f32[65,6,16]"), GOOD("cross_entropy h i2", "f32[2]"),
    GOOD("cross_entropy f3 i0", "f32[]"), BAD(TYPE, "cross_entropy i i2", NULL),
    GOOD("gelu_tanh_gradient f f3", "f32[2,3]"), BAD(TYPE, "gelu_tanh_gradient i i", NULL),
    GOOD("norm_gradient f f eps=1", "f32[2,3]"), GOOD("norm_gradient f f f3 eps=0 centred", "f32[2,3]"), GOOD("norm_sums f f eps=1 centred", "f32[2,3]"),
    BAD(SHAPE, "norm_gradient f f3 eps=1", "dy is [3], it must be [2,3] to go with [2,3]"), BAD(TYPE, "norm_gradient h h eps=1", "operand 1 is f16, it must be f32"),
    BAD(SHAPE, "norm_gradient f f f5 eps=1", "weight is [5], it must be [3] to go with [2,3]"), BAD(INVALID_ARGUMENT, "norm_gradient f f eps=nan", "eps nan is not zero or above"),
    BAD(SHAPE, "norm_sums f f3 eps=1", "dy is [3], it must be [2,3] to go with [2,3]"), BAD(SHAPE, "norm_sums f0 f0 eps=1", "operand 1 is [], it needs at least 1 axes"),
    GOOD("cross_entropy_gradient h i2 f2v", "f32[2,3]"), BAD(SHAPE, "cross_entropy_gradient f i2 f3", "dy is [3], it must be [2] to go with [2,3]"),
    BAD(TYPE, "cross_entropy_gradient f i2 h3", "operand 3 is f16, it must be f32"),
    BAD(TYPE, "cross_entropy f f", "operand 2 is f32, it must be i32"),
    BAD(SHAPE, "cross_entropy f i4", "targets is [4], it must be [2] to go with [2,3]"),
    BAD(SHAPE, "cross_entropy f0 i0", "operand 1 is [], it needs at least 1 axes"),
    GOOD("dispatch f q kernel=0123456789abcdef dtype=u8 shape=[7] push=0000000100000002 groups=[1,2,3]", "u8[7]"),
    BAD(ARGUMENT_COUNT, "dispatch f kernel=0123456789abcdef dtype=f32 shape=[7] push=0000000100000002 groups=[1,2,3]",
        "1 inputs and 1 output given, the kernel has 3 bindings"),
    BAD(ARGUMENT_COUNT, "dispatch f f kernel=0123456789abcdef dtype=f32 shape=[7] push=00000001 groups=[1,2,3]",
        "4 bytes of push constants given, the kernel has 8"),
    BAD(ARGUMENT_COUNT, "dispatch f f kernel=0123456789abcdef dtype=f32 shape=[7] groups=[1,2,3]",
        "0 bytes of push constants given, the kernel has 8"),
    BAD(ZERO_SIZE, "dispatch f f kernel=0123456789abcdef dtype=f32 shape=[7] push=0000000100000002 groups=[1,0,3]",
        "groups are [1,0,3]: each is at least 1"),
    BAD(TYPE, "dispatch f f kernel=0123456789abcdef dtype=q6_k shape=[256] push=0000000100000002 groups=[1,1,1]",
        "a result cannot be q6_k, only an input can"),
    BAD(ZERO_SIZE, "dispatch f f kernel=0123456789abcdef dtype=f32 shape=[0] push=0000000100000002 groups=[1,1,1]",
        "the length of axis 0 is below 1: [0]"),
    GOOD("part parts offset=256 dtype=f32 shape=[2,3]", "f32[2,3]"), GOOD("part parts offset=0 dtype=u8 shape=[280]", "u8[280]"),
    BAD(SHAPE, "part parts offset=256 dtype=f32 shape=[7]", "28 bytes at 256 are no part of 280"),
    BAD(SHAPE, "part parts offset=4 dtype=f32 shape=[1]", "4 bytes at 4 are no part of 280"),
    BAD(SHAPE, "part parts offset=-256 dtype=f32 shape=[1]", NULL), BAD(SHAPE, "part parts offset=512 dtype=f32 shape=[1]", NULL),
    BAD(TYPE, "part f offset=0 dtype=f32 shape=[1]", "it is a part of what a dispatch gave, and not of blocks"),
    BAD(TYPE, "part parts offset=0 dtype=q4_0 shape=[32]", NULL),
    BAD(ARGUMENT_COUNT, "dispatch f f kernel=0123456789abcdef dtype=u8 shape=[280] push=0000000100000002 groups=[1,1,1] bindings=[1,0,0]",
        "1 bindings given, the kernel has 3"),
    GOOD("input q4_k[2,512] \"n\"", "q4_k[2,512]"), GOOD("state f16[2] \"n\"", "f16[2]"),
    GOOD("state q4_0[32] \"n\"", "q4_0[32]"), GOOD("state q8_0[2,64] \"n\"", "q8_0[2,64]"),
    BAD(TYPE, "state q4_k[256] \"n\"", "a state cannot be q4_k; of the quantised types it can be q8_0 or q4_0"),
    BAD(SHAPE, "state q8_0[64,2] \"n\"", "the last axis of [64,2] is no multiple of 32, the block of q8_0"),
    BAD(SHAPE, "input q4_k[512,2] \"n\"", "the last axis of [512,2] is no multiple of 256, the block of q4_k"),
    BAD(SHAPE, "input q4_0[] \"n\"", "the last axis of [] is no multiple of 32, the block of q4_0"),
    BAD(ZERO_SIZE, "input f32[2,0] \"n\"", "the length of axis 1 is below 1: [2,0]"),
    BAD(SHAPE, "input f32[-1] \"n\"", "the length of axis 0 is below 1: [-1]"),
    BAD(LIMIT, "input f32[1048576,1048576] \"n\"", "a tensor [1048576,1048576] of f32 has more than 2^40 bytes"),
    BAD(LIMIT, "input f32[9223372036854775807,9223372036854775807] \"n\"", NULL),
};

static void every_rule(void **state) {
    (void)state;
    char text[sizeof prelude + 300], result[HDI_SHAPE_TEXT + 16], shape[HDI_SHAPE_TEXT];
    bool good[HDI_OP_COUNT] = { false }, bad[HDI_OP_COUNT] = { false };
    int line = 1; /* of the case */
    for (const char *at = prelude; *at; at++) line += *at == '\n';
    for (size_t i = 0; i < HDI_COUNT(cases); i++) {
        const infer_case *c = &cases[i];
        hd_error error = { 0 };
        hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
        int bytes = snprintf(text, sizeof text, "%sv = %s\n", prelude, c->line);
        hd_status status = hdi_program_parse(p, text, (size_t)bytes, test_find_kernel, NULL, &error);
        size_t op_bytes = strcspn(c->line, " ");
        if (status != c->status) fail_msg("%s: %s, %s", c->line, hd_status_name(status), error.text);
        for (int op = 1; op < HDI_OP_COUNT; op++)
            if (strncmp(hdi_op_get((hdi_op)op).name, c->line, op_bytes) == 0 && hdi_op_get((hdi_op)op).name[op_bytes] == 0)
                *(status ? &bad[op] : &good[op]) = true;
        if (status == HD_OK && c->result) {
            const hdi_node *node = hdi_program_node(p, p->node_count);
            snprintf(result, sizeof result, "%s%s", hd_dtype_name(node->dtype), hdi_shape_text(node->shape, shape));
            if (strcmp(result, c->result)) fail_msg("%s gives %s, not %s", c->line, result, c->result);
        } else if (c->result) {
            char reason[400];
            snprintf(reason, sizeof reason, "line %d, column 5: %.*s: %s", line, (int)op_bytes, c->line, c->result);
            assert_string_equal(error.text, reason);
            assert_memory_equal(error.op, c->line, op_bytes);
        }
        hdi_program_free(p);
    }
    for (int op = 1; op < HDI_OP_COUNT; op++)
        if (!good[op] || !bad[op]) fail_msg("%s is not tried both ways", hdi_op_get((hdi_op)op).name);
}

static void refused(hd_program *p, hd_status status, const char *text) {
    assert_int_equal(p->error.status, status);
    if (text) assert_string_equal(p->error.text, text);
    hdi_program_free(p);
}

static void what_no_text_says(void **state) {
    (void)state;
#define WITH_X hd_program *p = hdi_program_new(&hdi_default_allocator, NULL); hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(2, 3))
    { WITH_X; hd_cast(p, x, (hd_dtype)99); refused(p, HD_STATUS_TYPE, "operation 2: cast: 99 is no data type"); }
    { WITH_X; (void)x; hd_input(p, "n", HD_DTYPE_NONE, HD_SHAPE(1)); refused(p, HD_STATUS_TYPE, "operation 2: input: 0 is no data type"); }
    { WITH_X; hd_reshape(p, x, (hd_shape){ 7, { 0 } }); refused(p, HD_STATUS_LIMIT, "operation 2: reshape: 7 axes are more than 6"); }
    { WITH_X; (void)x; hd_input(p, "n", HD_F32, (hd_shape){ UINT32_MAX, { 0 } }); refused(p, HD_STATUS_LIMIT, NULL); }
    { WITH_X; hd_matmul_with(p, x, x, 8); refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 2: matmul: flags 8 are not of hd_matmul_flags"); }
    { WITH_X; hd_permute(p, x, NULL, 2); refused(p, HD_STATUS_NULL_POINTER, "operation 2: permute: axes is NULL"); }
    { WITH_X; hd_permute(p, x, (const uint32_t[100]){ 1 }, 100); refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 2: permute: 100 axes given for [2,3], which has 2 axes"); }
    { WITH_X; hd_slice(p, x, NULL, NULL, 2); refused(p, HD_STATUS_NULL_POINTER, "operation 2: slice: a list is NULL"); }
    { WITH_X; hd_pad(p, x, NULL, NULL, 2, 0); refused(p, HD_STATUS_NULL_POINTER, "operation 2: pad: a list is NULL"); }
    { WITH_X; (void)x; hd_concat(p, NULL, 2, 0); refused(p, HD_STATUS_NULL_POINTER, "operation 2: concat: the operands are NULL"); }
    { WITH_X; (void)x; hd_concat(p, NULL, 0, 0); refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 2: concat: 0 operands, at least 1"); }
    { WITH_X; hd_transpose(p, hd_reshape(p, x, HD_SHAPE(6))); refused(p, HD_STATUS_SHAPE, "operation 3: transpose: the operand has 1 axis only"); }
    { WITH_X; (void)x; hd_transpose(p, 5); refused(p, HD_STATUS_UNKNOWN_VALUE, NULL); }
    { WITH_X; hd_softmax(p, x, HD_ALL_AXES); refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 2: softmax: axis 127 is outside of [2,3]"); }
    { WITH_X; hd_rope(p, hd_reshape(p, x, HD_SHAPE(1, 1, 6)), hd_input(p, "i", HD_I32, HD_SHAPE(1)), &(hd_rope_desc){ .pairing = (hd_rope_pairing)7 });
      refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 4: rope: pairing 7 is not of hd_rope_pairing"); }
    { WITH_X; x = hd_reshape(p, x, HD_SHAPE(1, 1, 6)); hdi_program_add(p, &(hdi_node){ .op = HDI_OP_ATTENTION, .operands = (hd_value[]){ x, x, x }, .operand_count = 3, .attrs.ints = { 2 } });
      refused(p, HD_STATUS_INVALID_ARGUMENT, "operation 3: attention: not_causal is 2, it must be 0 or 1"); }
    { WITH_X; hdi_program_add(p, &(hdi_node){ .op = HDI_OP_DISPATCH, .operands = &x, .operand_count = 1, .dtype = HD_F32, .shape = HD_SHAPE(1) }); refused(p, HD_STATUS_NULL_POINTER, "operation 2: dispatch: there is no kernel"); }
    const struct { hdi_custom_binding bindings[3]; const char *why; } wrong[] = {
        { { { 1, 0, 0 }, { 2, 0, 0 }, { 0, 0, 0 } }, "no binding is an output" },
        { { { 3, 0, 0 }, { 0, 0, 4 }, { 0, 0, 0 } }, "there is no operand 3" },
        { { { 0, 0, 4 }, { 0, 2, 4 }, { 0, 0, 0 } }, "no part of the result" },
        { { { 0, 0, 4 }, { 0, 256, 500 }, { 0, 0, 0 } }, "no part of the result" },
        { { { 0, 256, 4 }, { 0, 0, 4 }, { 0, 0, 0 } }, "no part of the result" },
        { { { 1, 0, 8 }, { 0, 0, 0 }, { 0, 0, 0 } }, "and begins with" },
    };
    for (size_t i = 0; i < HDI_COUNT(wrong); i++) {
        WITH_X;
        hdi_custom custom = { .push_bytes = 8, .groups = { 1, 1, 1 }, .binding_count = 3 };
        test_find_kernel(NULL, TEST_KERNEL_HASH, &custom);
        memcpy(custom.bindings, wrong[i].bindings, sizeof wrong[i].bindings);
        hdi_program_add(p, &(hdi_node){ .op = HDI_OP_DISPATCH, .operands = (hd_value[]){ x, x }, .operand_count = 2, .attrs.custom = &custom, .dtype = HD_U8, .shape = HD_SHAPE(512) });
        assert_non_null(strstr(p->error.text, wrong[i].why));
        hdi_program_free(p);
    }
    for (uint32_t bytes = 6; bytes <= 132; bytes += 126) {
        WITH_X;
        hdi_custom custom = { .push_bytes = bytes, .groups = { 1, 1, 1 } };
        test_find_kernel(NULL, TEST_KERNEL_HASH, &custom);
        hdi_program_add(p, &(hdi_node){ .op = HDI_OP_DISPATCH, .operands = (hd_value[]){ x, x }, .operand_count = 2, .attrs.custom = &custom, .dtype = HD_F32, .shape = HD_SHAPE(1) });
        refused(p, HD_STATUS_LIMIT, NULL);
    }
    { WITH_X; (void)x; hdi_program_add(p, &(hdi_node){ .op = HDI_OP_COUNT, .dtype = HD_F32, .shape = HD_SHAPE(1) }); refused(p, HD_STATUS_INVALID_ARGUMENT, NULL); }
    { WITH_X; (void)x; hdi_node node = { .op = (hdi_op)-1 }; assert_int_equal(hdi_program_infer(p, &node, NULL), HD_STATUS_INVALID_ARGUMENT); hdi_program_free(p); }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_rule), cmocka_unit_test(what_no_text_says) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
