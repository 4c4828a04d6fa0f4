/* check.c: the module as a whole: the order of its sections, capabilities, extensions and imported sets within the
 * stated subset, the memory model, entry points and their execution modes. Relies on read.c. */
#include "spirv/module.h"

/* ---- capabilities ---- */

/* Every capability that is taken, another one that it brings along, and where it comes from: version 1.`minor` or an
 * extension (minor 9: the extension only). */
#define NOTHING HDI_SPIRV_NONE
static const struct {
    uint32_t number, implies, minor;
    const char *extension;
} capabilities[] = {
    { SpvCapabilityMatrix, NOTHING, 0, NULL },
    { SpvCapabilityShader, SpvCapabilityMatrix, 0, NULL },
    { SpvCapabilityFloat16, NOTHING, 0, NULL },
    { SpvCapabilityFloat64, NOTHING, 0, NULL },
    { SpvCapabilityInt64, NOTHING, 0, NULL },
    { SpvCapabilityInt64Atomics, SpvCapabilityInt64, 0, NULL },
    { SpvCapabilityInt16, NOTHING, 0, NULL },
    { SpvCapabilityInt8, NOTHING, 0, NULL },
    { SpvCapabilityGroupNonUniform, NOTHING, 3, NULL },
    { SpvCapabilityGroupNonUniformVote, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformArithmetic, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformBallot, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformShuffle, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformShuffleRelative, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformClustered, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityGroupNonUniformQuad, SpvCapabilityGroupNonUniform, 3, NULL },
    { SpvCapabilityStorageBuffer16BitAccess, NOTHING, 3, "SPV_KHR_16bit_storage" },
    { SpvCapabilityUniformAndStorageBuffer16BitAccess, SpvCapabilityStorageBuffer16BitAccess, 3,
      "SPV_KHR_16bit_storage" },
    { SpvCapabilityStoragePushConstant16, NOTHING, 3, "SPV_KHR_16bit_storage" },
    { SpvCapabilityStorageBuffer8BitAccess, NOTHING, 5, "SPV_KHR_8bit_storage" },
    { SpvCapabilityUniformAndStorageBuffer8BitAccess, SpvCapabilityStorageBuffer8BitAccess, 5, "SPV_KHR_8bit_storage" },
    { SpvCapabilityStoragePushConstant8, NOTHING, 5, "SPV_KHR_8bit_storage" },
    { SpvCapabilityDenormPreserve, NOTHING, 4, "SPV_KHR_float_controls" },
    { SpvCapabilityDenormFlushToZero, NOTHING, 4, "SPV_KHR_float_controls" },
    { SpvCapabilitySignedZeroInfNanPreserve, NOTHING, 4, "SPV_KHR_float_controls" },
    { SpvCapabilityRoundingModeRTE, NOTHING, 4, "SPV_KHR_float_controls" },
    { SpvCapabilityRoundingModeRTZ, NOTHING, 4, "SPV_KHR_float_controls" },
    { SpvCapabilityVulkanMemoryModel, NOTHING, 5, "SPV_KHR_vulkan_memory_model" },
    { SpvCapabilityVulkanMemoryModelDeviceScope, NOTHING, 5, "SPV_KHR_vulkan_memory_model" },
    { SpvCapabilityDotProductInputAllKHR, NOTHING, 6, "SPV_KHR_integer_dot_product" },
    { SpvCapabilityDotProductInput4x8BitKHR, SpvCapabilityInt8, 6, "SPV_KHR_integer_dot_product" },
    { SpvCapabilityDotProductInput4x8BitPackedKHR, NOTHING, 6, "SPV_KHR_integer_dot_product" },
    { SpvCapabilityDotProductKHR, NOTHING, 6, "SPV_KHR_integer_dot_product" },
    { SpvCapabilityAtomicFloat32AddEXT, NOTHING, 9, "SPV_EXT_shader_atomic_float_add" },
    { HDI_SPIRV_COOPERATIVE_MATRIX, NOTHING, 9, "SPV_KHR_cooperative_matrix" },
    { HDI_SPIRV_BFLOAT16, NOTHING, 9, "SPV_KHR_bfloat16" },
    { HDI_SPIRV_BFLOAT16_MATRIX, HDI_SPIRV_BFLOAT16, 9, "SPV_KHR_bfloat16" },
    { HDI_SPIRV_MATRIX_REDUCTIONS, NOTHING, 9, "SPV_NV_cooperative_matrix2" },
    { HDI_SPIRV_MATRIX_CONVERSIONS, NOTHING, 9, "SPV_NV_cooperative_matrix2" },
};

static size_t capability_row(uint32_t capability) {
    size_t row = 0;
    while (row < HDI_COUNT(capabilities) && capabilities[row].number != capability) row++;
    return row;
}

/* All that is taken needs capabilities of the list only. Some others change what it means, and so may those of the
 * future. */
bool hdi_spirv_may_drop_capability(uint32_t capability) {
    enum { EXPLICIT_LAYOUT = 4428, EXPLICIT_LAYOUT_8 = 4429, EXPLICIT_LAYOUT_16 = 4430 }; /* of shared memory */
    switch (capability) {
    case SpvCapabilityKernel: case SpvCapabilityAddresses: case SpvCapabilityPhysicalStorageBufferAddresses:
    case EXPLICIT_LAYOUT: case EXPLICIT_LAYOUT_8: case EXPLICIT_LAYOUT_16: return false;
    default:
        return capability_row(capability) == HDI_COUNT(capabilities) &&
               strcmp(hdi_spirv_capability_name(capability), "unknown") != 0;
    }
}

static const char *capability_advice(uint32_t capability) {
    switch (capability) {
    case SpvCapabilityKernel: case SpvCapabilityAddresses: case SpvCapabilityLinkage:
        return "this is OpenCL's flavour; compile for Vulkan";
    case SpvCapabilityPhysicalStorageBufferAddresses:
        return "pass the buffer as a binding, or its address in push constants";
    case SpvCapabilityVariablePointers: case SpvCapabilityVariablePointersStorageBuffer:
        return "index one buffer instead of choosing between pointers";
    default: return "it is outside of the supported subset";
    }
}

static bool check_capability(hdi_spirv_module *m, uint32_t inst) {
    uint32_t capability = hdi_spirv_words(m, inst)[1];
    size_t row = capability_row(capability);
    if (row == HDI_COUNT(capabilities))
        return hdi_spirv_bad(m, inst, "capability %u, %s: %s", capability, hdi_spirv_capability_name(capability),
                             capability_advice(capability));
    /* What it brings along may bring something itself. */
    for (uint32_t next = capability; next < 8 * sizeof m->capabilities;) {
        m->capabilities[next / 8] = (uint8_t)(m->capabilities[next / 8] | 1u << next % 8);
        for (row = 0; capabilities[row].number != next;) row++;
        next = capabilities[row].implies;
    }
    return true;
}

/* ---- extensions and imports ---- */

static const char *const extensions[] = {
    "SPV_KHR_storage_buffer_storage_class", "SPV_KHR_16bit_storage", "SPV_KHR_8bit_storage", "SPV_KHR_float_controls",
    "SPV_KHR_vulkan_memory_model", "SPV_KHR_integer_dot_product", "SPV_KHR_cooperative_matrix",
    "SPV_NV_cooperative_matrix2", "SPV_KHR_bfloat16",
    "SPV_KHR_no_integer_wrap_decoration", "SPV_KHR_non_semantic_info", "SPV_KHR_relaxed_extended_instruction",
    "SPV_EXT_shader_atomic_float_add", "SPV_GOOGLE_decorate_string", "SPV_GOOGLE_hlsl_functionality1",
    "SPV_GOOGLE_user_type"
};

bool hdi_spirv_takes_extension(const uint32_t *text, uint32_t words) {
    for (size_t i = 0; i < HDI_COUNT(extensions); i++)
        if (strlen(extensions[i]) / 4 < words && hdi_spirv_text_is(text, extensions[i])) return true;
    return false;
}

static bool check_extension(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *text = hdi_spirv_words(m, inst) + 1;
    for (size_t i = 0; i < HDI_COUNT(extensions); i++)
        if (hdi_spirv_text_is(text, extensions[i])) {
            m->extensions |= 1u << i;
            return true;
        }
    char name[64];
    return hdi_spirv_bad(m, inst, "extension \"%s\" is outside of the supported subset",
                         hdi_spirv_quote(text, name, sizeof name));
}

static bool has_extension(const hdi_spirv_module *m, const char *name) {
    for (size_t i = 0; i < HDI_COUNT(extensions); i++)
        if (strcmp(extensions[i], name) == 0) return m->extensions >> i & 1;
    return false;
}

/* Capabilities and storage classes of a later version are there through their extensions. */
static bool check_extensions_suffice(hdi_spirv_module *m) {
    uint32_t minor = m->version >> 8 & 0xFF;
    for (uint32_t i = 0; i < m->front_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const char *wanted = NULL;
        for (size_t k = 0; opcode == SpvOpCapability && k < HDI_COUNT(capabilities); k++)
            if (capabilities[k].number == hdi_spirv_words(m, i)[1] && capabilities[k].minor > minor)
                wanted = capabilities[k].extension ? capabilities[k].extension : "of a later version";
        bool storage_buffer = opcode == SpvOpTypePointer && hdi_spirv_words(m, i)[2] == SpvStorageClassStorageBuffer;
        if (storage_buffer && minor < 3) wanted = extensions[0];
        if ((opcode == SpvOpDecorateString || opcode == SpvOpMemberDecorateString) && minor < 4)
            wanted = "SPV_GOOGLE_decorate_string";
        if (wanted && !has_extension(m, wanted))
            return hdi_spirv_bad(m, i, "the module does not declare its extension, %s", wanted);
    }
    return true;
}

static bool check_import(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    char name[64];
    if (hdi_spirv_text_is(words + 2, "GLSL.std.450")) {
        m->glsl_set = hdi_spirv_find(m, words[1]);
        return true;
    }
    if (hdi_spirv_begins(words + 2, "NonSemantic.", strlen("NonSemantic."))) return true;
    return hdi_spirv_bad(m, inst, "instruction set \"%s\" is outside of the supported subset",
                         hdi_spirv_quote(words + 2, name, sizeof name));
}

static bool check_memory_model(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    if (words[1] != SpvAddressingModelLogical)
        return hdi_spirv_bad(m, inst, "addressing model %u; only logical addressing is taken", words[1]);
    bool vulkan = hdi_spirv_has(m, SpvCapabilityVulkanMemoryModel);
    if (words[2] != (vulkan ? (uint32_t)SpvMemoryModelVulkan : (uint32_t)SpvMemoryModelGLSL450))
        return hdi_spirv_bad(m, inst, "memory model %u does not fit the capabilities", words[2]);
    return true;
}

/* ---- entry points ---- */

static const char *stage_name(uint32_t model) {
    static const char *const names[] = {
        "vertex", "tessellation control", "tessellation evaluation", "geometry", "fragment", "compute", "OpenCL"
    };
    enum { TASK_NV = 5267, MESH_NV = 5268, FIRST_RAY = 5313, LAST_RAY = 5318, TASK = 5364, MESH = 5365 };
    if (model < HDI_COUNT(names)) return names[model];
    if (model >= FIRST_RAY && model <= LAST_RAY) return "ray tracing";
    return model == TASK || model == TASK_NV ? "task" : model == MESH || model == MESH_NV ? "mesh" : "unknown";
}

static bool check_entry(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    char name[64];
    if (m->input->checked) {
        m->entries[m->entry_count++] = inst;
        return true;
    }
    hdi_spirv_quote(words + 3, name, sizeof name);
    if (words[1] != SpvExecutionModelGLCompute)
        return hdi_spirv_bad(m, inst, "entry point \"%s\" is a %s shader; only compute shaders are taken", name,
                             stage_name(words[1]));
    if (m->entry_count == HDI_SPIRV_MAX_ENTRIES)
        return hdi_spirv_beyond(m, inst, "more than %u entry points", HDI_SPIRV_MAX_ENTRIES);
    uint32_t function = hdi_spirv_find(m, words[2]);
    if (hdi_spirv_def_opcode(m, function) != SpvOpFunction)
        return hdi_spirv_bad(m, inst, "entry point \"%s\" is not a function", name);
    uint32_t type = hdi_spirv_find(m, hdi_spirv_def_words(m, function)[4]);
    bool plain = hdi_spirv_def_opcode(m, type) == SpvOpTypeFunction && hdi_spirv_length(m, m->defs[type].inst) == 3;
    uint32_t result = plain ? hdi_spirv_find(m, hdi_spirv_def_words(m, type)[2]) : 0;
    if (hdi_spirv_def_opcode(m, result) != SpvOpTypeVoid)
        return hdi_spirv_bad(m, inst, "entry point \"%s\" is not a function void(void)", name);
    for (hdi_spirv_operands o = hdi_spirv_operands_of(m, inst); hdi_spirv_next(&o);) {
        if (o.letter == 's') {
            for (uint32_t i = 0; i < m->entry_count; i++)
                if (hdi_spirv_length(m, m->entries[i]) >= o.then &&
                    memcmp(hdi_spirv_words(m, m->entries[i]) + o.at, words + o.at, (o.then - o.at) * sizeof *words) ==
                        0)
                    return hdi_spirv_bad(m, inst, "there are two entry points \"%s\"", name);
        } else if (o.letter == 'a' && o.at > 2) {
            uint32_t variable = hdi_spirv_find(m, o.word);
            bool fits = hdi_spirv_def_opcode(m, variable) == SpvOpVariable;
            uint32_t storage = fits ? hdi_spirv_def_words(m, variable)[3] : (uint32_t)SpvStorageClassFunction;
            if (storage == SpvStorageClassFunction || (m->version < 0x10400 && storage != SpvStorageClassInput))
                return hdi_spirv_bad(m, inst, "interface id %u is no variable that belongs there", o.word);
        }
    }
    m->entries[m->entry_count++] = inst;
    return true;
}

/* An execution mode belongs to an entry point, and its ids are constants. */
static bool check_mode(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t entry = 0;
    while (entry < m->entry_count && hdi_spirv_words(m, m->entries[entry])[2] != words[1]) entry++;
    if (entry == m->entry_count) return hdi_spirv_bad(m, inst, "id %u is not an entry point", words[1]);
    bool by_id = words[2] == SpvExecutionModeLocalSizeId;
    if (by_id != (hdi_spirv_opcode(m, inst) == SpvOpExecutionModeId))
        return hdi_spirv_bad(m, inst, "mode %u belongs to the other kind of instruction", words[2]);
    for (uint32_t i = 3; by_id && i < 6; i++)
        if (!hdi_spirv_is_constant(hdi_spirv_def_opcode(m, hdi_spirv_find(m, words[i]))))
            return hdi_spirv_bad(m, inst, "id %u is not a constant", words[i]);
    uint64_t size = 0;
    bool sized = words[2] == SpvExecutionModeLocalSize;
    if (sized && (!hdi_mul_u64((uint64_t)words[3] * words[4], words[5], &size) || size == 0 || size > UINT32_MAX))
        return hdi_spirv_bad(m, inst, "a workgroup of %u x %u x %u", words[3], words[4], words[5]);
    static const struct { uint32_t mode, capability; } needs[] = {
        { SpvExecutionModeDenormPreserve, SpvCapabilityDenormPreserve },
        { SpvExecutionModeDenormFlushToZero, SpvCapabilityDenormFlushToZero },
        { SpvExecutionModeSignedZeroInfNanPreserve, SpvCapabilitySignedZeroInfNanPreserve },
        { SpvExecutionModeRoundingModeRTE, SpvCapabilityRoundingModeRTE },
        { SpvExecutionModeRoundingModeRTZ, SpvCapabilityRoundingModeRTZ },
    };
    for (size_t i = 0; i < HDI_COUNT(needs); i++)
        if (needs[i].mode == words[2] &&
            (!hdi_spirv_has(m, needs[i].capability) || (words[3] != 16 && words[3] != 32 && words[3] != 64)))
            return hdi_spirv_bad(m, inst, "mode %u for %u bits needs another capability or width", words[2], words[3]);
    return true;
}

/* ---- the order of sections ---- */

static bool check_member_name(hdi_spirv_module *m, uint32_t inst) {
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t target = hdi_spirv_find(m, words[1]);
    bool fits =
        hdi_spirv_def_opcode(m, target) == SpvOpTypeStruct && words[2] < hdi_spirv_length(m, m->defs[target].inst) - 2;
    return fits || hdi_spirv_bad(m, inst, "id %u is no struct with a member %u", words[1], words[2]);
}

/* The place in the order after an instruction of `section` was met at `place`; 0 where it may not stand there. */
static uint32_t next_place(uint32_t place, char section) {
    enum { TYPES = 11, FUNCTIONS = 12 };
    if (section == '*') return place;
    if (section == '+') return place >= TYPES ? place : place >= 4 ? (uint32_t)TYPES : 0;
    if (section == '>') return place >= TYPES ? place : (uint32_t)TYPES;
    uint32_t wanted = section >= 'A' ? (uint32_t)(section - 'A') + 10 : (uint32_t)(section - '0');
    return wanted >= place ? wanted : 0;
}

bool hdi_spirv_check(hdi_spirv_module *m) {
    uint32_t place = 1, models = 0;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
        place = next_place(place, row->section);
        if (place == 0) return hdi_spirv_bad(m, i, "it stands in the wrong place of the module");
        if (row->capability && !hdi_spirv_has(m, row->capability))
            return hdi_spirv_bad(m, i, "it needs capability %s, which the module does not declare",
                                 hdi_spirv_capability_name(row->capability));
        models += opcode == SpvOpMemoryModel;
        bool fine = true;
        switch (opcode) {
        case SpvOpCapability: fine = check_capability(m, i); break;
        case SpvOpExtension: fine = check_extension(m, i); break;
        case SpvOpExtInstImport: fine = check_import(m, i); break;
        case SpvOpMemberName: case SpvOpMemberDecorateString: fine = check_member_name(m, i); break;
        case SpvOpMemoryModel: fine = check_memory_model(m, i); break;
        case SpvOpEntryPoint: fine = check_entry(m, i); break;
        case SpvOpExecutionMode: case SpvOpExecutionModeId: fine = check_mode(m, i); break;
        default: break;
        }
        if (!fine) return false;
    }
    if (models != 1) return hdi_spirv_bad(m, HDI_SPIRV_NONE, "%u memory models instead of one", models);
    if (!hdi_spirv_has(m, SpvCapabilityShader))
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "capability Shader is missing: only Vulkan's flavour is taken");
    if (m->entry_count == 0) return hdi_spirv_bad(m, HDI_SPIRV_NONE, "it has no entry point");
    return check_extensions_suffice(m);
}
