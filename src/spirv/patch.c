/* patch.c: small changes to a module that was checked, or that is heddle's own: setting specialisation constants for
 * good, and declaring that f32 keeps its subnormals, for devices that flush them otherwise. Walks instructions only; a
 * length that does not fit ends the walk. */
#include "spirv/spirv.h"
#include <spirv/unified1/spirv.h>

enum { HEADER_WORDS = 5 };

/* The instruction at `at`: its words, or 0 at the end. */
static uint32_t instruction(const uint32_t *words, size_t count, size_t at, uint32_t *out_op) {
    if (at >= count) return 0;
    uint32_t length = words[at] >> SpvWordCountShift;
    *out_op = words[at] & SpvOpCodeMask;
    return length <= count - at ? length : 0;
}

bool hdi_spirv_set_specs(const hd_allocator *allocator, uint32_t *words, size_t count, const uint32_t *ids,
                         const uint32_t *values, uint32_t spec_count) {
    const uint32_t bound = spec_count && count >= HEADER_WORDS ? words[3] : 0;
    enum { SIGNED = 128 };
    /* by result id: one more than its place in `ids`; of a type of numbers: its bytes, and whether it has a sign */
    uint8_t *set_by = bound ? hdi_alloc(allocator, 2 * (size_t)bound) : NULL, *forms = set_by ? set_by + bound : NULL;
    uint32_t op, length;
    if (bound && !set_by) return false;
    for (size_t at = HEADER_WORDS; bound && (length = instruction(words, count, at, &op)) != 0; at += length) {
        if ((op == SpvOpTypeInt || op == SpvOpTypeFloat) && length > 2 && words[at + 1] < bound)
            forms[words[at + 1]] =
                (uint8_t)((words[at + 2] / 8 & 15) | (length == 4 && words[at + 3] == 1 ? SIGNED : 0));
        const uint32_t target = length > 2 ? words[at + (op == SpvOpDecorate ? 1 : 2)] : bound;
        if (target >= bound) continue;
        for (uint32_t i = 0;
             op == SpvOpDecorate && length == 4 && words[at + 2] == SpvDecorationSpecId && i < spec_count; i++)
            if (words[at + 3] == ids[i]) set_by[target] = (uint8_t)(i + 1);
        if (!set_by[target]) continue;
        const uint32_t value = values[set_by[target] - 1];
        if (op == SpvOpSpecConstant && (length == 4 || length == 5)) {
            const uint8_t form = words[at + 1] < bound ? forms[words[at + 1]] : 0;
            const int32_t number = (int32_t)value, sign = number < 0 ? -1 : 0;
            words[at + 3] = form == SIGNED + 1   ? (uint32_t)(int8_t)number
                            : form == SIGNED + 2 ? (uint32_t)(int16_t)number
                            : form == 1          ? value & UINT8_MAX
                            : form == 2          ? value & UINT16_MAX
                                                 : value;
            if (length == 5) words[at + 4] = form == SIGNED + 8 ? (uint32_t)sign : 0; /* the checks refuse doubles */
        } else if (op == SpvOpSpecConstantTrue || op == SpvOpSpecConstantFalse)
            words[at] =
                length << SpvWordCountShift | (uint32_t)(value ? SpvOpSpecConstantTrue : SpvOpSpecConstantFalse);
    }
    hdi_free(allocator, set_by, 2 * (size_t)bound);
    return true;
}

/* Where the declarations go: behind the last capability, extension and execution mode; and the entry point's id. */
typedef struct places {
    size_t   capability, extension, mode;
    uint32_t entry;
} places;

static places find_places(const uint32_t *words, size_t count) {
    places p = { HEADER_WORDS, 0, 0, 0 };
    uint32_t op, length;
    for (size_t at = HEADER_WORDS; (length = instruction(words, count, at, &op)) != 0; at += length) {
        if (op == SpvOpCapability) p.capability = p.extension = at + length;
        else if (op == SpvOpExtension) p.extension = at + length;
        else if (op == SpvOpEntryPoint && length > 2 && p.entry == 0) p.entry = words[at + 2];
        if (op == SpvOpEntryPoint || op == SpvOpExecutionMode || op == SpvOpExecutionModeId) p.mode = at + length;
        if (op == SpvOpFunction) break;
    }
    return p;
}

size_t hdi_spirv_keep_subnormals(const uint32_t *words, size_t count, uint32_t *out_words) {
    const uint32_t capability[] = { 2u << SpvWordCountShift | SpvOpCapability, SpvCapabilityDenormPreserve };
    static const char name[] = "SPV_KHR_float_controls"; /* 22 characters and the ending zero: 6 words */
    uint32_t extension[7] = { 7u << SpvWordCountShift | SpvOpExtension };
    memcpy(extension + 1, name, sizeof name);
    places p = find_places(words, count);
    if (p.entry == 0 || p.mode == 0 || p.extension == 0) return 0;
    const uint32_t mode[] = { 4u << SpvWordCountShift | SpvOpExecutionMode, p.entry, SpvExecutionModeDenormPreserve,
                              32 };
    size_t at = 0;
#define ADD(from, added) (memcpy(out_words + at, from, (added) * sizeof *words), at += (added))
    ADD(words, p.capability);
    ADD(capability, HDI_COUNT(capability));
    ADD(words + p.capability, p.extension - p.capability);
    ADD(extension, HDI_COUNT(extension));
    ADD(words + p.extension, p.mode - p.extension);
    ADD(mode, HDI_COUNT(mode));
    ADD(words + p.mode, count - p.mode);
#undef ADD
    return at;
}
