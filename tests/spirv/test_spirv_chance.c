/* test_spirv_chance.c: modules drawn by chance from a fixed seed, whole numbers and floats that no order rounds, with branches, loops,
 * switches and shared memory, give the same bits on every device as on the interpreter. Ids of devices as arguments: these, and they
 * are there. */
#include <heddle.h>
#include <spirv/unified1/spirv.h>
#include <spirv/unified1/GLSL.std.450.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 96, GROUP = 32, MOST_WORDS = 1 << 15, MOST_VALUES = 256 };
typedef struct writer {
    uint32_t words[MOST_WORDS], count, next_id;
    uint32_t values[MOST_VALUES], value_count; /* numbers that are in sight */
    uint32_t block;                            /* the label that we are behind */
} writer;
static writer w;
static uint64_t state;

static uint32_t chance(uint32_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}
static uint32_t id(void) { return w.next_id++; }
static void put(uint32_t word) {
    if (w.count == MOST_WORDS) exit(2);
    w.words[w.count++] = word;
}
#define LIST(...) (uint32_t[]){ __VA_ARGS__ }, sizeof(uint32_t[]){ __VA_ARGS__ } / sizeof(uint32_t)
static void emit_words(SpvOp op, const uint32_t *operands, size_t count) {
    put((uint32_t)(count + 1) << SpvWordCountShift | op);
    for (size_t i = 0; i < count; i++) put(operands[i]);
}
#define EMIT(op, ...) emit_words(op, LIST(__VA_ARGS__))
#define MAKE(out, op, type, ...) (out = id(), emit_words(op, LIST(type, out, __VA_ARGS__)))

/* Ids that every module has. */
enum {
    MAIN = 1, GLSL, VOID, FUNCTION, U32, BOOL, F32, U32X3, ARRAY, BLOCK, TO_BLOCK, TO_U32, IN_U32X3, SHARED_ARRAY, TO_SHARED, TO_SHARED_U32, FIRST, SECOND,
    OUT, GROUP_ID, LOCAL_ID, SHARED, ZERO, LENGTH, NUMBERS /* 0 to 63 */, SCOPE_MEMORY = NUMBERS + 64, KEPT
};

static uint32_t any(void) { return w.values[chance(w.value_count)]; }
static void keep(uint32_t value) {
    if (w.value_count == MOST_VALUES) w.value_count--;
    w.values[w.value_count++] = value;
}
static uint32_t number(uint32_t n) { return NUMBERS + n; }
static uint32_t binary(SpvOp op, uint32_t a, uint32_t b) {
    uint32_t out;
    MAKE(out, op, U32, a, b);
    return out;
}

/* a * b + c - d of floats of 1 to 1,023: whole, and below 2^24; and of no zeros, whose signs a driver may take as it likes. */
static uint32_t floats(void) {
    uint32_t f[4], product, sum, rest, out;
    for (int i = 0; i < 4; i++) MAKE(f[i], SpvOpConvertUToF, F32, binary(SpvOpBitwiseOr, binary(SpvOpShiftRightLogical, any(), number(22)), number(1)));
    MAKE(product, SpvOpFMul, F32, f[0], f[1]);
    MAKE(sum, SpvOpFAdd, F32, product, f[2]);
    MAKE(rest, SpvOpFSub, F32, sum, f[3]);
    MAKE(out, SpvOpBitcast, U32, rest);
    return out;
}

static uint32_t comparison(void) {
    static const SpvOp ops[] = { SpvOpIEqual, SpvOpINotEqual, SpvOpULessThan, SpvOpSLessThan, SpvOpUGreaterThanEqual, SpvOpSGreaterThan };
    uint32_t out;
    MAKE(out, ops[chance(6)], BOOL, any(), any());
    return out;
}

static void instruction(void) {
    static const SpvOp plain[] = { SpvOpIAdd, SpvOpISub, SpvOpIMul, SpvOpBitwiseAnd, SpvOpBitwiseOr, SpvOpBitwiseXor };
    static const SpvOp shifts[] = { SpvOpShiftLeftLogical, SpvOpShiftRightLogical, SpvOpShiftRightArithmetic };
    static const SpvOp single[] = { SpvOpNot, SpvOpBitReverse, SpvOpBitCount, SpvOpSNegate };
    static const uint32_t extended[] = { GLSLstd450UMin, GLSLstd450UMax, GLSLstd450SMin, GLSLstd450SMax };
    uint32_t out;
    switch (chance(9)) {
    case 0: out = binary(shifts[chance(3)], any(), binary(SpvOpBitwiseAnd, any(), number(31))); break;
    case 1: MAKE(out, single[chance(4)], U32, any()); break;
    case 2: MAKE(out, SpvOpSelect, U32, comparison(), any(), any()); break;
    case 3: out = binary(chance(2) ? SpvOpUDiv : SpvOpUMod, any(), binary(SpvOpBitwiseOr, any(), number(1))); break;
    case 4: MAKE(out, SpvOpExtInst, U32, GLSL, extended[chance(4)], any(), any()); break;
    case 5: MAKE(out, SpvOpBitFieldUExtract, U32, any(), number(chance(20)), number(chance(12))); break;
    case 6: out = floats(); break;
    default: out = binary(plain[chance(6)], any(), chance(4) ? any() : number(chance(64)));
    }
    keep(out);
}

static void label(uint32_t block) {
    EMIT(SpvOpLabel, block);
    w.block = block;
}
static void statements(uint32_t depth, uint32_t count);

/* What is made in a block that others pass by goes out of sight behind it, but for one number. */
static uint32_t inside(uint32_t block, uint32_t depth, uint32_t target, uint32_t *out_end) {
    const uint32_t seen = w.value_count;
    label(block);
    statements(depth + 1, 1 + chance(4));
    const uint32_t last = w.values[w.value_count - 1];
    w.value_count = seen < MOST_VALUES ? seen : MOST_VALUES - 1;
    EMIT(SpvOpBranch, target);
    *out_end = w.block;
    return last;
}

static void branch(uint32_t depth) {
    const uint32_t yes = id(), no = id(), merge = id(), condition = comparison();
    uint32_t ends[2], made[2], out;
    EMIT(SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    EMIT(SpvOpBranchConditional, condition, yes, no);
    made[0] = inside(yes, depth, merge, &ends[0]);
    made[1] = inside(no, depth, merge, &ends[1]);
    label(merge);
    MAKE(out, SpvOpPhi, U32, made[0], ends[0], made[1], ends[1]);
    keep(out);
}

static void choice(uint32_t depth) {
    const uint32_t cases[] = { id(), id(), id() }, merge = id(), by = binary(SpvOpBitwiseAnd, any(), number(3));
    uint32_t ends[3], made[3], out;
    EMIT(SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    EMIT(SpvOpSwitch, by, cases[0], 1, cases[1], 3, cases[2]);
    for (int i = 0; i < 3; i++) made[i] = inside(cases[i], depth, merge, &ends[i]);
    label(merge);
    MAKE(out, SpvOpPhi, U32, made[0], ends[0], made[1], ends[1], made[2], ends[2]);
    keep(out);
}

/* Up to seven rounds over one number. */
static void loop(uint32_t depth) {
    const uint32_t rounds = binary(SpvOpBitwiseAnd, any(), number(7)), before = w.block, begins = any();
    const uint32_t header = id(), body = id(), onward = id(), merge = id(), counter = id(), sum = id(), next = id();
    uint32_t more, end;
    EMIT(SpvOpBranch, header);
    label(header);
    const uint32_t counter_at = w.count;
    EMIT(SpvOpPhi, U32, counter, ZERO, before, next, onward);
    EMIT(SpvOpPhi, U32, sum, begins, before, 0, onward); /* 0: what a round makes, known below */
    const uint32_t made_at = counter_at + 7 + 5;
    MAKE(more, SpvOpULessThan, BOOL, counter, rounds);
    EMIT(SpvOpLoopMerge, merge, onward, SpvLoopControlMaskNone);
    EMIT(SpvOpBranchConditional, more, body, merge);
    const uint32_t seen = w.value_count;
    keep(counter), keep(sum);
    const uint32_t made = inside(body, depth, onward, &end);
    w.value_count = seen;
    w.words[made_at] = made;
    label(onward);
    EMIT(SpvOpIAdd, U32, next, counter, number(1));
    EMIT(SpvOpBranch, header);
    label(merge);
    keep(sum);
}

/* What another invocation of the workgroup has; all come along. */
static void exchange(void) {
    const uint32_t value = any();
    uint32_t mine, other, out, local, at;
    MAKE(local, SpvOpLoad, U32X3, LOCAL_ID);
    MAKE(at, SpvOpCompositeExtract, U32, local, 0);
    MAKE(mine, SpvOpAccessChain, TO_SHARED_U32, SHARED, at);
    EMIT(SpvOpStore, mine, value);
    EMIT(SpvOpControlBarrier, number(2), number(2), SCOPE_MEMORY);
    MAKE(other, SpvOpAccessChain, TO_SHARED_U32, SHARED, binary(SpvOpBitwiseXor, at, number(1 + chance(GROUP - 1))));
    MAKE(out, SpvOpLoad, U32, other);
    EMIT(SpvOpControlBarrier, number(2), number(2), SCOPE_MEMORY);
    keep(out);
}

static void statements(uint32_t depth, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        switch (depth < 3 ? chance(12) : 11) {
        case 0: branch(depth); break;
        case 1: loop(depth); break;
        case 2: choice(depth); break;
        case 3:
            if (depth == 0) exchange();
            else instruction();
            break;
        default: instruction();
        }
    instruction(); /* so that a block makes something */
}

static void begin(void) {
    static const uint32_t name[] = { 0x6E69616D, 0 }, glsl[] = { 0x4C534C47, 0x6474732E, 0x3035342E, 0 }; /* "main", "GLSL.std.450" */
    w = (writer){ .next_id = KEPT };
    const uint32_t header[] = { SpvMagicNumber, 0x10300, 0, 0, 0 };
    for (int i = 0; i < 5; i++) put(header[i]);
    EMIT(SpvOpCapability, SpvCapabilityShader);
    EMIT(SpvOpExtInstImport, GLSL, glsl[0], glsl[1], glsl[2], glsl[3]);
    EMIT(SpvOpMemoryModel, SpvAddressingModelLogical, SpvMemoryModelGLSL450);
    EMIT(SpvOpEntryPoint, SpvExecutionModelGLCompute, MAIN, name[0], name[1], GROUP_ID, LOCAL_ID);
    EMIT(SpvOpExecutionMode, MAIN, SpvExecutionModeLocalSize, GROUP, 1, 1);
    EMIT(SpvOpDecorate, GROUP_ID, SpvDecorationBuiltIn, SpvBuiltInGlobalInvocationId);
    EMIT(SpvOpDecorate, LOCAL_ID, SpvDecorationBuiltIn, SpvBuiltInLocalInvocationId);
    EMIT(SpvOpDecorate, ARRAY, SpvDecorationArrayStride, 4);
    EMIT(SpvOpDecorate, BLOCK, SpvDecorationBlock);
    EMIT(SpvOpMemberDecorate, BLOCK, 0, SpvDecorationOffset, 0);
    for (uint32_t i = 0; i < 3; i++) {
        EMIT(SpvOpDecorate, FIRST + i, SpvDecorationDescriptorSet, 0);
        EMIT(SpvOpDecorate, FIRST + i, SpvDecorationBinding, i);
    }
    EMIT(SpvOpTypeVoid, VOID);
    EMIT(SpvOpTypeFunction, FUNCTION, VOID);
    EMIT(SpvOpTypeInt, U32, 32, 0);
    EMIT(SpvOpTypeBool, BOOL);
    EMIT(SpvOpTypeFloat, F32, 32);
    EMIT(SpvOpTypeVector, U32X3, U32, 3);
    EMIT(SpvOpTypeRuntimeArray, ARRAY, U32);
    EMIT(SpvOpTypeStruct, BLOCK, ARRAY);
    EMIT(SpvOpTypePointer, TO_BLOCK, SpvStorageClassStorageBuffer, BLOCK);
    EMIT(SpvOpTypePointer, TO_U32, SpvStorageClassStorageBuffer, U32);
    EMIT(SpvOpTypePointer, IN_U32X3, SpvStorageClassInput, U32X3);
    EMIT(SpvOpConstant, U32, ZERO, 0);
    EMIT(SpvOpConstant, U32, LENGTH, GROUP);
    for (uint32_t i = 0; i < 64; i++) EMIT(SpvOpConstant, U32, number(i), i);
    EMIT(SpvOpConstant, U32, SCOPE_MEMORY, SpvMemorySemanticsAcquireReleaseMask | SpvMemorySemanticsWorkgroupMemoryMask);
    EMIT(SpvOpTypeArray, SHARED_ARRAY, U32, LENGTH);
    EMIT(SpvOpTypePointer, TO_SHARED, SpvStorageClassWorkgroup, SHARED_ARRAY);
    EMIT(SpvOpTypePointer, TO_SHARED_U32, SpvStorageClassWorkgroup, U32);
    for (uint32_t i = 0; i < 3; i++) EMIT(SpvOpVariable, TO_BLOCK, FIRST + i, SpvStorageClassStorageBuffer);
    EMIT(SpvOpVariable, IN_U32X3, GROUP_ID, SpvStorageClassInput);
    EMIT(SpvOpVariable, IN_U32X3, LOCAL_ID, SpvStorageClassInput);
    EMIT(SpvOpVariable, TO_SHARED, SHARED, SpvStorageClassWorkgroup);
}

static void make_module(uint32_t seed) {
    uint32_t global, at, from, to;
    state = seed;
    begin();
    EMIT(SpvOpFunction, VOID, MAIN, SpvFunctionControlMaskNone, FUNCTION);
    label(id());
    MAKE(global, SpvOpLoad, U32X3, GROUP_ID);
    MAKE(at, SpvOpCompositeExtract, U32, global, 0);
    keep(at);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t value;
        MAKE(from, SpvOpAccessChain, TO_U32, FIRST + i, ZERO, at);
        MAKE(value, SpvOpLoad, U32, from);
        keep(value);
    }
    statements(0, 8 + chance(24));
    MAKE(to, SpvOpAccessChain, TO_U32, OUT, ZERO, at);
    uint32_t all = w.values[0];
    for (uint32_t i = 1; i < w.value_count; i++) all = binary(SpvOpBitwiseXor, all, w.values[i]);
    EMIT(SpvOpStore, to, all);
    put(1u << SpvWordCountShift | SpvOpReturn);
    put(1u << SpvWordCountShift | SpvOpFunctionEnd);
    w.words[3] = w.next_id;
}

/* ---- on devices ---- */

static uint32_t inputs[2][COUNT];

static bool run_on(hd_context *context, hd_device *device, uint32_t out[COUNT]) {
    hd_kernel *kernel = NULL;
    hd_plan *plan = NULL;
    hd_program *p = hd_program_create(context);
    bool done = !hd_kernel_create(context, &(hd_kernel_desc){ .spirv = w.words, .spirv_bytes = w.count * sizeof *w.words }, &kernel);
    if (done) {
        const hd_value from[] = { hd_input(p, "a", HD_I32, HD_SHAPE(COUNT)), hd_input(p, "b", HD_I32, HD_SHAPE(COUNT)) };
        hd_output(p, "y", hd_dispatch(p, kernel, &(hd_dispatch_desc){ .inputs = from, .input_count = 2, .out_dtype = HD_I32, .out_shape = HD_SHAPE(COUNT),
                                                                      .groups = { COUNT / GROUP, 1, 1 } }));
        done = !hd_plan_create(device, p, NULL, &plan) && !hd_plan_write(plan, "a", inputs[0], sizeof inputs[0]) &&
               !hd_plan_write(plan, "b", inputs[1], sizeof inputs[1]) && !hd_plan_run(plan, NULL) && !hd_plan_read(plan, "y", out, sizeof inputs[0]);
    }
    if (!done) printf("%s\n", hd_context_error(context));
    hd_plan_destroy(plan);
    hd_kernel_destroy(kernel);
    hd_program_destroy(p);
    return done;
}

static int compare(const char *name, bool has_to_be_there, uint32_t modules) {
    uint32_t wanted[COUNT], got[COUNT], words = 0, differ = 0;
    hd_context *context;
    hd_device *cpu, *device;
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "", .verify = -1 }, &context) || hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &cpu)) return 1;
    if (hd_device_open(context, &(hd_device_desc){ .id = name }, &device)) {
        printf("%s\n", hd_context_error(context));
        hd_context_destroy(context);
        return has_to_be_there;
    }
    for (uint32_t m = 0; m < modules; m++) {
        make_module(m);
        words += w.count;
        memset(wanted, 0, sizeof wanted);
        memset(got, 1, sizeof got);
        if (run_on(context, cpu, wanted) && run_on(context, device, got) && memcmp(wanted, got, sizeof got) == 0) continue;
        uint32_t at = 0;
        while (at + 1 < COUNT && wanted[at] == got[at]) at++;
        printf("FAILED: %s, module %u: number %u is %08x, not %08x\n", name, m, at, got[at], wanted[at]);
        differ++;
    }
    printf("%s: %u modules of %u words, %u differ\n", name, modules, words / modules, differ);
    hd_context_destroy(context);
    return differ > 0;
}

int main(int count, char **arguments) {
    int failed = 0;
    state = 7;
    for (int i = 0; i < 2 * COUNT; i++) inputs[i / COUNT][i % COUNT] = chance(3) ? chance(UINT32_MAX) << 1 ^ chance(UINT32_MAX) : chance(40);
    for (int i = 1; i < count; i++) failed |= compare(arguments[i], true, 40);
    if (count == 1) failed = compare("vulkan", false, 300) | compare("opencl", false, 40);
    return failed;
}
