/* trim.c: a module of others becomes one of the kind that heddle runs. Only what the chosen entry point reaches stays:
 * not the other entry points and their stages, nor the types, variables and capabilities of theirs, nor what is said
 * for debuggers. All buffers become storage buffers of set 0: a uniform block is one that is not written, with the
 * offsets that it states, and other sets and high bindings are numbered anew. What goes becomes OpNop, so that words
 * keep their places for messages; hdi_spirv_compact takes those out. Trusts nothing: what does not fit is left for the
 * checks, which see the module afterwards. Takes time and memory in proportion to the bytes, and to the id bound. */
#define SPV_ENABLE_UTILITY_CODE
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define inline static inline /* the header's function would need a definition elsewhere */
#include <spirv/unified1/spirv.h>
#undef inline
#include "spirv/lower.h"
#include <stdlib.h>

typedef struct trimmer {
    uint32_t *words;
    size_t    count;
    uint32_t  bound;
    size_t    entry, functions; /* words where the OpEntryPoint stands, and the first function */
    /* by id: the word where it is defined in front of the functions, or its OpFunction; 0: elsewhere */
    uint32_t *at;
    bool      logical; /* its pointers are no addresses */
    bool      quads; /* some instruction is about quads of invocations */
    uint32_t *same;  /* by id: an input that is the same built-in; 0: none */
    uint8_t  *kept;  /* by id: KEPT or LISTED */
    uint32_t *stack, stack_count; /* ids that were kept and not looked at */
} trimmer;
enum { KEPT = 1, LISTED = 2 /* and by the entry point */ };
enum { EXT_INST_WITH_FORWARD_REFS = 4433 }; /* of sets that compute nothing */

static uint32_t opcode_at(const trimmer *t, size_t at) { return t->words[at] & SpvOpCodeMask; }
static uint32_t length_at(const trimmer *t, size_t at) { return t->words[at] >> SpvWordCountShift; }

static void blank(trimmer *t, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) t->words[i] = 1u << SpvWordCountShift | SpvOpNop;
}

/* ---- finding what there is ---- */

bool hdi_spirv_is_readable(const uint32_t *words, size_t count) {
    if (count < HDI_SPIRV_HEADER_WORDS || words[0] != SpvMagicNumber || words[3] == 0 || words[3] > HDI_SPIRV_MAX_BOUND)
        return false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS, length; at < count; at += length) {
        length = words[at] >> SpvWordCountShift;
        if (length == 0 || length > count - at) return false;
    }
    return true;
}

/* The id that the instruction defines; 0: none, or out of bounds. */
static uint32_t result_at(const trimmer *t, size_t at) {
    bool result = false, type = false;
    const char *form = hdi_lower_operands(t->words + at).next;
    SpvHasResultAndType((SpvOp)opcode_at(t, at), &result, &type); /* older headers lack some that heddle takes */
    if (*form) result = strchr(form, 'r') != NULL, type = result && form[0] == 't';
    const uint32_t word = type ? 2 : 1;
    if (!result || length_at(t, at) <= word || t->words[at + word] >= t->bound) return 0;
    return t->words[at + word];
}

/* Fills in `at`, `functions` and the entry point called `name`; false: there is none to choose, or two, which the
 * checks refuse. */
static bool find(trimmer *t, const char *name) {
    uint32_t computes = 0, called = 0;
    size_t named = 0, only = 0;
    bool inside = false;
    t->functions = t->count;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->count; at += length_at(t, at)) {
        const uint32_t opcode = opcode_at(t, at), id = result_at(t, at);
        if (opcode == SpvOpFunction && t->functions == t->count) t->functions = at;
        inside |= opcode == SpvOpFunction;
        if (opcode == SpvOpMemoryModel && length_at(t, at) == 3)
            t->logical = t->words[at + 1] == SpvAddressingModelLogical;
        if (id && (!inside || opcode == SpvOpFunction)) t->at[id] = (uint32_t)at;
        if (opcode != SpvOpEntryPoint || length_at(t, at) < 4 || t->words[at + 1] != SpvExecutionModelGLCompute)
            continue;
        computes++;
        only = at;
        const char *wanted = name ? name : "main";
        if (strlen(wanted) / 4 >= length_at(t, at) - 3 || !hdi_spirv_text_is(t->words + at + 3, wanted)) continue;
        called++;
        named = at;
    }
    t->entry = called > 1 ? 0 : named ? named : !name && computes == 1 ? only : 0;
    return t->entry != 0;
}

/* Inputs of one built-in and one type are one. */
static void join_builtins(trimmer *t) {
    enum { BUILTINS = 64 };
    uint32_t first[BUILTINS] = { 0 };
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at)) {
        const uint32_t *words = t->words + at;
        if (opcode_at(t, at) != SpvOpDecorate || length_at(t, at) != 4 || words[2] != SpvDecorationBuiltIn) continue;
        if (words[1] >= t->bound || words[3] >= BUILTINS || !t->at[words[1]]) continue;
        const uint32_t *variable = t->words + t->at[words[1]];
        if ((variable[0] & SpvOpCodeMask) != SpvOpVariable || variable[0] >> SpvWordCountShift != 4 ||
            variable[3] != SpvStorageClassInput)
            continue;
        uint32_t *other = &first[words[3]];
        if (*other == 0) *other = words[1];
        else if (*other != words[1] && t->words[t->at[*other] + 1] == variable[1]) t->same[words[1]] = *other;
    }
}

/* ---- what is reached ---- */

static void keep(trimmer *t, uint32_t id) {
    if (id == 0 || id >= t->bound || t->kept[id]) return;
    t->kept[id] = KEPT;
    if (t->at[id]) t->stack[t->stack_count++] = id;
}

/* Keeps what the instruction names, and what it defines. */
static void keep_operands(trimmer *t, size_t at) {
    for (hdi_spirv_operands o = hdi_lower_operands(t->words + at); hdi_spirv_next(&o);) {
        if (!strchr("rtigcevfa", o.letter)) continue; /* labels may be halves of a switch's numbers of 64 bits */
        if (o.word < t->bound && t->same[o.word]) t->words[at + o.at] = t->same[o.word];
        keep(t, t->words[at + o.at]);
    }
}

/* Is it an instruction of a set whose name begins so? */
static bool is_of_set(const trimmer *t, size_t at, const char *name) {
    const uint32_t set = opcode_at(t, at) == SpvOpExtInst && length_at(t, at) > 4 ? t->words[at + 3] : t->bound;
    if (set >= t->bound || !t->at[set] || opcode_at(t, t->at[set]) != SpvOpExtInstImport) return false;
    return strlen(name) / 4 < length_at(t, t->at[set]) - 2u &&
           hdi_spirv_begins(t->words + t->at[set] + 2, name, strlen(name));
}

static bool is_for_debuggers(const trimmer *t, size_t at) {
    return is_of_set(t, at, "NonSemantic.") || is_of_set(t, at, "OpenCL.DebugInfo.");
}

/* PackDouble2x32 and UnpackDouble2x32 only see the same bits another way. */
static void make_bitcast(trimmer *t, size_t at) {
    enum { PACK = 59, UNPACK = 65, WORDS = 6 };
    uint32_t *words = t->words + at;
    if (!is_of_set(t, at, "GLSL.std.450") || length_at(t, at) != WORDS || (words[4] != PACK && words[4] != UNPACK))
        return;
    words[0] = 4u << SpvWordCountShift | SpvOpBitcast;
    words[3] = words[5];
    blank(t, at + 4, 2);
}

/* What a compiler may take for granted is nothing that is computed. */
static void forget_hints(trimmer *t, size_t at) {
    enum { ASSUME_TRUE = 5630, EXPECT = 5631 };
    uint32_t *words = t->words + at;
    if (words[0] == (2u << SpvWordCountShift | ASSUME_TRUE)) blank(t, at, 2);
    if (words[0] != (5u << SpvWordCountShift | EXPECT)) return;
    words[0] = 4u << SpvWordCountShift | SpvOpCopyObject;
    blank(t, at + 4, 1);
}

static bool is_line(uint32_t opcode) { return opcode == SpvOpLine || opcode == SpvOpNoLine; }

static void keep_function(trimmer *t, size_t at) {
    enum { QUAD_ALL = 5110, QUAD_ANY = 5111 };
    for (size_t length; at < t->count; at += length) {
        forget_hints(t, at);
        const uint32_t opcode = opcode_at(t, at);
        length = length_at(t, at);
        make_bitcast(t, at);
        t->quads |= (opcode >= SpvOpDPdx && opcode <= SpvOpFwidthCoarse) || opcode == SpvOpGroupNonUniformQuadSwap ||
                    opcode == SpvOpGroupNonUniformQuadBroadcast || opcode == QUAD_ALL || opcode == QUAD_ANY;
        if (is_line(opcode) || opcode == EXT_INST_WITH_FORWARD_REFS || is_for_debuggers(t, at)) blank(t, at, length);
        else keep_operands(t, at);
        if (opcode == SpvOpFunctionEnd) return;
    }
}

/* Constants that are asked for by name, and the workgroup size, count for every entry point. */
static bool is_root(const uint32_t *words) {
    return words[0] == (4u << SpvWordCountShift | SpvOpDecorate) &&
           (words[2] == SpvDecorationSpecId ||
            (words[2] == SpvDecorationBuiltIn && words[3] == SpvBuiltInWorkgroupSize));
}

static void keep_reached(trimmer *t) {
    const uint32_t function = t->words[t->entry + 2];
    keep(t, function);
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at)) {
        const bool mode =
            opcode_at(t, at) == SpvOpExecutionModeId && length_at(t, at) > 2 && t->words[at + 1] == function;
        const bool group = opcode_at(t, at) == SpvOpDecorationGroup && length_at(t, at) == 2;
        if (group || is_root(t->words + at)) keep(t, t->words[at + 1]);
        if (mode) keep_operands(t, at);
    }
    while (t->stack_count) {
        const size_t at = t->at[t->stack[--t->stack_count]];
        if (opcode_at(t, at) == SpvOpFunction) keep_function(t, at);
        else keep_operands(t, at);
    }
}

/* ---- leaving the rest out ---- */

/* Before version 1.4 only inputs and outputs are listed; some list all. */
static bool is_listed(const trimmer *t, uint32_t id) {
    const bool variable = t->at[id] && opcode_at(t, t->at[id]) == SpvOpVariable && length_at(t, t->at[id]) > 3;
    const uint32_t storage = variable ? t->words[t->at[id] + 3] : (uint32_t)SpvStorageClassInput;
    return t->words[1] >= 0x00010400u || storage == SpvStorageClassInput || storage == SpvStorageClassOutput;
}

/* The entry point lists the variables that are used, each once. */
static void list_interface(trimmer *t) {
    const uint32_t length = length_at(t, t->entry);
    uint32_t from = 3, to;
    while (from < length &&
           (((t->words[t->entry + from] - 0x01010101u) & ~t->words[t->entry + from]) & 0x80808080u) == 0)
        from++;
    for (to = ++from; from < length; from++) {
        const uint32_t id = t->words[t->entry + from], own = id < t->bound && t->same[id] ? t->same[id] : id;
        if (own < t->bound && (t->kept[own] != KEPT || !is_listed(t, own))) continue;
        if (own < t->bound) t->kept[own] = LISTED;
        t->words[t->entry + to++] = own;
    }
    if (to >= length) return;
    t->words[t->entry] = to << SpvWordCountShift | SpvOpEntryPoint;
    blank(t, t->entry + to, length - to);
}

/* Is it a mode of the chosen entry point, and one that asks for something? That lanes meet again where their ways do
 * is what subgroups do here anyway, buffers of which an index needs 64 bits there are none, and which invocations are
 * quads nobody asks where nothing is about them. */
static bool is_of_entry(const trimmer *t, const uint32_t *words, uint32_t length) {
    enum { UNIFORM_CONTROL_FLOW = 4421, INDEXING_64_BITS = 5427, MAXIMALLY_RECONVERGES = 6023, QUADS = 5289,
           QUADS_IN_A_ROW = 5290 };
    const bool about_quads = length == 3 && (words[2] == QUADS || words[2] == QUADS_IN_A_ROW);
    const bool asks = length != 3 || (words[2] != UNIFORM_CONTROL_FLOW && words[2] != INDEXING_64_BITS &&
                                      words[2] != MAXIMALLY_RECONVERGES && (!about_quads || t->quads));
    return asks && words[1] == t->words[t->entry + 2];
}

static bool is_kept(const trimmer *t, uint32_t id) { return id >= t->bound || t->kept[id]; }

/* Does an instruction in front of the functions stay? Unknown ones that define nothing do: the checks refuse them by
 * name. */
static bool stays(const trimmer *t, size_t at) {
    const uint32_t opcode = opcode_at(t, at), length = length_at(t, at), *words = t->words + at;
    if (length < 2) return true;
    switch (opcode) {
    case SpvOpCapability:
        return !hdi_spirv_may_drop_capability(words[1]) &&
               (words[1] != SpvCapabilityPhysicalStorageBufferAddresses || !t->logical);
    case SpvOpExtension: return hdi_spirv_takes_extension(words + 1, length - 1);
    case SpvOpMemoryModel: return true;
    case SpvOpEntryPoint: return at == t->entry;
    case SpvOpExecutionMode: case SpvOpExecutionModeId: return is_of_entry(t, words, length);
    case SpvOpSource: case SpvOpSourceContinued: case SpvOpSourceExtension: case SpvOpString: case SpvOpModuleProcessed:
    case SpvOpLine: case SpvOpNoLine: case SpvOpDecorateString: case SpvOpMemberDecorateString: return false;
    case SpvOpName: case SpvOpMemberName: case SpvOpMemberDecorate: return is_kept(t, words[1]);
    case SpvOpDecorate: case SpvOpDecorateId: /* which promise that a value is the same for many, or not */
        return is_kept(t, words[1]) && length > 2 && words[2] != SpvDecorationUniform &&
               words[2] != SpvDecorationUniformId && words[2] != SpvDecorationNonUniform &&
               words[2] != SpvDecorationCounterBuffer; /* which only says what another buffer is for */
    case SpvOpExtInst: case EXT_INST_WITH_FORWARD_REFS: return false; /* out here they compute nothing */
    case SpvOpTypeForwardPointer: return is_kept(t, words[1]);
    default: return result_at(t, at) == 0 || t->kept[result_at(t, at)];
    }
}

static bool has_type(const trimmer *t, uint32_t opcode, uint32_t width) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at))
        if (opcode_at(t, at) == opcode && length_at(t, at) > 2 && t->words[at + 2] == width &&
            is_kept(t, t->words[at + 1]))
            return true;
    return false;
}

/* Where no two blocks of shared memory lie over each other, nobody sees how one is laid out: it is shared memory like
 * any other. Then narrow numbers in it need no more than to be there. */
static void forget_layout(trimmer *t) {
    enum { EXPLICIT_LAYOUT = 4428, LAYOUT_8_BITS = 4429, LAYOUT_16_BITS = 4430 };
    size_t free[3], blocks = 0, count = 0, filled = 0;
    bool narrower[2] = { false };
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at)) {
        const uint32_t *words = t->words + at, opcode = opcode_at(t, at), length = length_at(t, at);
        if (opcode == SpvOpVariable && length > 3)
            blocks += words[3] == SpvStorageClassWorkgroup && is_kept(t, words[2]);
        if (opcode != SpvOpCapability || length != 2 || words[1] < EXPLICIT_LAYOUT || words[1] > LAYOUT_16_BITS ||
            count == HDI_COUNT(free))
            continue;
        if (words[1] >= LAYOUT_8_BITS) narrower[words[1] - LAYOUT_8_BITS] = true;
        free[count++] = at;
    }
    if (blocks > 1) return;
    static const struct { uint32_t opcode, width, capability; } narrow[] = {
        { SpvOpTypeInt, 8, SpvCapabilityInt8 }, { SpvOpTypeInt, 16, SpvCapabilityInt16 },
        { SpvOpTypeFloat, 16, SpvCapabilityFloat16 }
    };
    for (size_t i = 0; i < HDI_COUNT(narrow) && filled < count; i++)
        if (narrower[narrow[i].width / 16] && has_type(t, narrow[i].opcode, narrow[i].width))
            t->words[free[filled++] + 1] = narrow[i].capability;
    while (filled < count) blank(t, free[filled++], 2);
}

/* A compute shader has that capability, though its module may only name one that brings it along. */
static void say_shader(trimmer *t) {
    size_t free = 0;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at)) {
        if (opcode_at(t, at) != SpvOpCapability || length_at(t, at) != 2) continue;
        const uint32_t capability = t->words[at + 1];
        if (capability == SpvCapabilityShader || capability == SpvCapabilityKernel) return;
        if (hdi_spirv_may_drop_capability(capability)) free = at;
    }
    if (free) t->words[free + 1] = SpvCapabilityShader;
}

static void leave_out(trimmer *t) {
    bool stay = true;
    for (size_t at = HDI_SPIRV_HEADER_WORDS, length; at < t->count; at += length) {
        length = length_at(t, at);
        if (at < t->functions) stay = stays(t, at);
        else if (opcode_at(t, at) == SpvOpFunction) stay = result_at(t, at) == 0 || t->kept[result_at(t, at)];
        if (!stay) blank(t, at, length);
    }
}

/* ---- buffers ---- */

/* Uniform blocks and the buffers of old modules become storage buffers, which version 1.3 knows. */
static void join_storage(trimmer *t) {
    bool any = false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at)) {
        uint32_t *words = t->words + at, opcode = opcode_at(t, at), length = length_at(t, at);
        uint32_t *storage = opcode == SpvOpTypePointer && length == 4 ? &words[2]
                          : opcode == SpvOpVariable && length >= 4    ? &words[3] : NULL;
        if (storage && *storage == SpvStorageClassUniform) *storage = SpvStorageClassStorageBuffer, any = true;
    }
    if (!any) return;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at))
        if (opcode_at(t, at) == SpvOpDecorate && length_at(t, at) == 3 && t->words[at + 2] == SpvDecorationBufferBlock)
            t->words[at + 2] = SpvDecorationBlock;
    if (t->words[1] < 0x00010300u) t->words[1] = 0x00010300u;
}

/* Vulkan's memory model is GLSL's by its first name. */
static void name_memory_model(trimmer *t) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < t->functions; at += length_at(t, at))
        if (t->words[at] == (3u << SpvWordCountShift | SpvOpMemoryModel) && t->words[at + 2] == SpvMemoryModelSimple)
            t->words[at + 2] = SpvMemoryModelGLSL450;
}

/* ---- numbers ---- */

size_t hdi_spirv_decoration_at(const uint32_t *words, size_t count, uint32_t id, uint32_t decoration) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < count; at += words[at] >> SpvWordCountShift) {
        if ((words[at] & SpvOpCodeMask) == SpvOpFunction) break;
        if (words[at] == (4u << SpvWordCountShift | SpvOpDecorate) && words[at + 1] == id &&
            words[at + 2] == decoration)
            return at + 3;
    }
    return 0;
}

static int by_place(const void *a, const void *b) {
    const hdi_spirv_binding_place *x = &((const hdi_spirv_binding *)a)->place,
                                  *y = &((const hdi_spirv_binding *)b)->place;
    if (x->set != y->set) return (x->set > y->set) - (x->set < y->set);
    if (x->binding != y->binding) return (x->binding > y->binding) - (x->binding < y->binding);
    return (x->element > y->element) - (x->element < y->element);
}

static bool same_place(const hdi_spirv_binding *binding, const uint32_t *set, const uint32_t *number,
                       uint32_t element) {
    return binding->place.set == *set && binding->place.binding == *number && binding->place.element == element;
}

/* Bindings 0 to 15 of set 0 keep their numbers where all are of those and none is an array's; else all are numbered by
 * set, binding and element. */
hd_status hdi_spirv_number(uint32_t *words, size_t count, const hdi_spirv_lowered *lowered,
                           hdi_spirv_binding out[HDI_SPIRV_MAX_BINDINGS], hd_error *error) {
    enum { MOST_VARIABLES = 4 * HDI_SPIRV_MAX_BINDINGS };
    uint32_t *sets[MOST_VARIABLES], *numbers[MOST_VARIABLES], elements[MOST_VARIABLES], variables = 0, found = 0;
    bool plain = true;
    memset(out, 0, HDI_SPIRV_MAX_BINDINGS * sizeof *out);
    for (uint32_t i = 0; i < HDI_SPIRV_MAX_BINDINGS; i++) out[i].place.binding = i;
    if (!hdi_spirv_is_readable(words, count)) return HD_OK;
    hdi_spirv_binding met[HDI_SPIRV_MAX_BINDINGS] = { 0 };
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < count; at += words[at] >> SpvWordCountShift) {
        const uint32_t length = words[at] >> SpvWordCountShift, opcode = words[at] & SpvOpCodeMask;
        if (opcode == SpvOpFunction) break;
        if (opcode != SpvOpVariable || length < 4 || words[at + 3] != SpvStorageClassStorageBuffer) continue;
        const size_t set_at = hdi_spirv_decoration_at(words, count, words[at + 2], SpvDecorationDescriptorSet),
                     number_at = hdi_spirv_decoration_at(words, count, words[at + 2], SpvDecorationBinding);
        if (!set_at || !number_at) return HD_OK; /* the checks say so */
        uint32_t *set = &words[set_at], *number = &words[number_at];
        uint32_t part = 0, i = 0;
        while (part < lowered->part_count && lowered->parts[part].variable != words[at + 2]) part++;
        const uint32_t element = part < lowered->part_count ? lowered->parts[part].element : 0;
        while (i < found && !same_place(&met[i], set, number, element)) i++;
        if (i == HDI_SPIRV_MAX_BINDINGS || variables == MOST_VARIABLES)
            return hdi_fail(error, HD_STATUS_LIMIT,
                            "SPIR-V: more than %d buffers, which is what a kernel of heddle takes",
                            HDI_SPIRV_MAX_BINDINGS);
        if (i == found) met[found++].place = (hdi_spirv_binding_place){ *set, *number, element };
        if (part < lowered->part_count && lowered->parts[part].image.axes) {
            if (met[i].image.axes && memcmp(&met[i].image, &lowered->parts[part].image, sizeof met[i].image) != 0)
                return hdi_fail(error, HD_STATUS_MODULE, "SPIR-V: two images that differ at set %u, binding %u",
                                *set, *number);
            met[i].image = lowered->parts[part].image;
        }
        plain &= *set == 0 && *number < HDI_SPIRV_MAX_BINDINGS && element == 0;
        sets[variables] = set;
        numbers[variables] = number;
        elements[variables++] = element;
    }
    if (plain) {
        for (uint32_t i = 0; i < found; i++) out[met[i].place.binding] = met[i];
        return HD_OK;
    }
    qsort(met, found, sizeof *met, by_place);
    for (uint32_t v = 0; v < variables; v++) {
        uint32_t i = 0;
        while (i < found && !same_place(&met[i], sets[v], numbers[v], elements[v])) i++;
        if (i == found) continue; /* an id that is defined twice, which was numbered; the checks say so */
        *sets[v] = 0;
        *numbers[v] = i;
    }
    memcpy(out, met, found * sizeof *out);
    return HD_OK;
}

/* ---- all of it ---- */

hd_status hdi_spirv_trim(const hd_allocator *allocator, uint32_t *words, size_t count, const char *entry,
                         hd_error *error) {
    if (!hdi_spirv_is_readable(words, count)) return HD_OK;
    hdi_arena arena = { .allocator = allocator };
    trimmer t = { .words = words, .count = count, .bound = words[3] };
    t.at = hdi_arena_alloc(&arena, t.bound * sizeof *t.at);
    t.same = hdi_arena_alloc(&arena, t.bound * sizeof *t.same);
    t.stack = hdi_arena_alloc(&arena, t.bound * sizeof *t.stack);
    t.kept = hdi_arena_alloc(&arena, t.bound);
    hd_status status = HD_OK;
    if (!t.at || !t.same || !t.stack || !t.kept) {
        status =
            hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no host memory to read a SPIR-V module of %zu words", count);
    } else if (find(&t, entry)) {
        join_builtins(&t);
        keep_reached(&t);
        list_interface(&t);
        say_shader(&t);
        forget_layout(&t);
        leave_out(&t);
        join_storage(&t);
        name_memory_model(&t);
    }
    hdi_arena_free(&arena);
    return status;
}

size_t hdi_spirv_compact(uint32_t *words, size_t count) {
    size_t to = HDI_MIN((size_t)HDI_SPIRV_HEADER_WORDS, count);
    for (size_t at = to, length; at < count; at += length) {
        length = words[at] >> SpvWordCountShift;
        if (length == 0 || length > count - at) return count;
        if ((words[at] & SpvOpCodeMask) == SpvOpNop) continue;
        memmove(words + to, words + at, length * sizeof *words);
        to += length;
    }
    return to;
}
