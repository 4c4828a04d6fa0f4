/* read.c: the words of a module become instructions and result ids. When this step is through, every instruction fits
 * its row of op_table.inc, every id is in bounds and defined exactly once, before its use where the rules ask for that.
 * Relies on nothing: the bytes are hostile. Takes time and memory in proportion to the bytes, and to the id bound. */
#include "spirv/module.h"
#include <stdio.h>

/* ---- refusing ---- */

bool hdi_spirv_refuse(hdi_spirv_module *m, hd_status status, uint32_t inst, const char *format, ...) {
    char detail[256];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    m->status = status;
    if (inst == HDI_SPIRV_NONE)
        hdi_fail(m->error, status, "SPIR-V: %s", detail);
    else
        hdi_fail(m->error, status, "SPIR-V word %u, %s: %s", m->insts[inst],
                 hdi_spirv_op_name(hdi_spirv_opcode(m, inst)), detail);
    return false;
}

bool hdi_spirv_no_memory(hdi_spirv_module *m) {
    m->status = HD_STATUS_OUT_OF_HOST_MEMORY;
    hdi_fail(m->error, m->status, "no host memory to read a SPIR-V module of %u words", m->word_count);
    return false;
}

bool hdi_spirv_begins(const uint32_t *words, const char *text, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((char)(words[i / 4] >> (i % 4 * 8) & 0xFF) != text[i]) return false;
    return true;
}

const char *hdi_spirv_quote(const uint32_t *text, char *out, size_t room) {
    size_t i = 0;
    for (; i + 1 < room; i++) {
        uint32_t letter = text[i / 4] >> (i % 4 * 8) & 0xFF;
        if (letter == 0) break;
        out[i] = letter >= 0x20 && letter < 0x7F ? (char)letter : '?';
    }
    out[i] = 0;
    return out;
}

/* ---- operands ---- */

/* Operand letters of a decoration or execution mode; NULL: outside of the subset. */
static const char *decoration_operands(uint32_t decoration) {
    switch (decoration) {
    case SpvDecorationSpecId: case SpvDecorationArrayStride: case SpvDecorationMatrixStride: case SpvDecorationBuiltIn:
    case SpvDecorationBinding:
    case SpvDecorationDescriptorSet: case SpvDecorationOffset: case SpvDecorationFPRoundingMode:
        return "n";
    default: return hdi_spirv_flag_of(decoration) ? "" : NULL;
    }
}

static const char *mode_operands(uint32_t mode) {
    switch (mode) {
    case SpvExecutionModeLocalSize: return "nnn";
    case SpvExecutionModeLocalSizeId: return "aaa";
    case SpvExecutionModeDenormPreserve: case SpvExecutionModeDenormFlushToZero:
    case SpvExecutionModeSignedZeroInfNanPreserve: case SpvExecutionModeRoundingModeRTE:
    case SpvExecutionModeRoundingModeRTZ: return "n";
    default: return NULL;
    }
}

hdi_spirv_operands hdi_spirv_operands_of(const hdi_spirv_module *m, uint32_t inst) {
    const hdi_spirv_op *row = hdi_spirv_op_row(hdi_spirv_opcode(m, inst));
    return (hdi_spirv_operands){ .words = hdi_spirv_words(m, inst), .then = 1, .end = hdi_spirv_length(m, inst),
                                 .next = row ? row->operands : "", .bad = row == NULL };
}

/* Words that a text takes, its ending zero included; 0 where it does not end. */
static uint32_t text_words(const uint32_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if ((words[i] - 0x01010101u) & ~words[i] & 0x80808080u) return i + 1;
    return 0;
}

/* Some operands are followed by more, which depend on their value. */
static void expect_more(hdi_spirv_operands *o) {
    static const char *const memory[8] = { "", "n", "c", "nc", "c", "nc", "cc", "ncc" };
    const char letter = o->letter, *more = NULL;
    const uint32_t word = o->word;
    if (letter == 'm') {
        uint32_t aligned = word >> 1 & 1, available = word >> 3 & 1, visible = word >> 4 & 1;
        more = word < 64 ? memory[aligned | available << 1 | visible << 2] : NULL;
    } else if (letter == 'd') {
        more = decoration_operands(word);
    } else if (letter == 'x') {
        more = mode_operands(word);
    } else if (letter == 'o') {
        const hdi_spirv_op *row = hdi_spirv_op_row(word);
        more = row && row->operands[0] == 't' && row->operands[1] == 'r' && word != SpvOpSpecConstantOp
                   ? row->operands + 2
                   : NULL;
    } else if (letter == 'k') {
        more = "?n";
    } else {
        return;
    }
    o->bad |= more == NULL;
    o->next = more ? more : "";
}

bool hdi_spirv_next_of_any(hdi_spirv_operands *o) {
    for (; *o->next < 'a'; o->next++) { /* no letter */
        if (*o->next == '*') {
            o->loop = o->next + 1;
        } else if (*o->next == 0 && o->loop && o->then < o->end) {
            o->next = o->loop - 1;
            continue;
        } else if (*o->next != '?') {
            break;
        }
        if (o->then >= o->end) return false;
    }
    if (*o->next == 0 || o->then >= o->end || o->bad) {
        o->bad |= *o->next != 0 || o->then != o->end;
        return false;
    }
    o->letter = *o->next++;
    o->at = o->then;
    o->word = o->words[o->at];
    const uint32_t length = o->letter == 's' ? text_words(o->words + o->at, o->end - o->at) : 1;
    o->bad |= length == 0;
    o->then += length;
    expect_more(o);
    return !o->bad;
}

/* ---- the steps ---- */

bool hdi_spirv_header(hdi_spirv_module *m) {
    const size_t byte_count = m->input->bytes;
    const bool checked = m->input->checked;
    if (byte_count > HDI_SPIRV_MAX_BYTES)
        return hdi_spirv_beyond(m, HDI_SPIRV_NONE, "%zu bytes; at most %u are taken", byte_count, HDI_SPIRV_MAX_BYTES);
    if (byte_count < HDI_SPIRV_HEADER_WORDS * 4 || byte_count % 4)
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "%zu bytes are no module: it has a header of 20 and whole words of 4",
                             byte_count);
    m->word_count = (uint32_t)(byte_count / 4);
    uint32_t *copy = checked ? NULL : hdi_arena_alloc(&m->arena, byte_count);
    if (!checked && !copy) return hdi_spirv_no_memory(m);
    m->words = checked ? m->input->module : memcpy(copy, m->input->module, byte_count);
    if (m->words[0] == 0x03022307u)
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "the module is byte-swapped: it was made for the other byte order");
    if (m->words[0] != SpvMagicNumber)
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "it begins with 0x%08x instead of 0x07230203", m->words[0]);
    m->version = m->words[1];
    if ((m->version & 0xFF0000FFu) || m->version < 0x10000 || m->version > 0x10600)
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "version 0x%08x; 1.0 to 1.6 are taken", m->version);
    m->bound = m->words[3];
    if (m->bound > HDI_SPIRV_MAX_BOUND)
        return hdi_spirv_beyond(m, HDI_SPIRV_NONE, "id bound %u; at most %u is taken", m->bound, HDI_SPIRV_MAX_BOUND);
    if (m->bound == 0 || m->words[4] != 0)
        return hdi_spirv_bad(m, HDI_SPIRV_NONE, "the header's bound is %u and its schema %u", m->bound, m->words[4]);
    return true;
}

/* Why an opcode is refused for good; NULL: it is not. */
static const char *never(uint32_t opcode) {
    static const struct { const char *part, *why; } rows[] = {
#define NEVER(part, what, why) { part, what ", which is never taken: " why },
#include "spirv/never.inc"
#undef NEVER
    };
    for (size_t i = 0; i < HDI_COUNT(rows); i++)
        if (strstr(hdi_spirv_op_name(opcode), rows[i].part)) return rows[i].why;
    return NULL;
}

/* What to do about an opcode that is refused. */
static const char *advice(uint32_t opcode) {
    const char *why = never(opcode);
    if (why) return why;
    switch (opcode) {
    case SpvOpTypeImage: case SpvOpTypeSampler: case SpvOpTypeSampledImage:
        return "images and samplers are not taken in this place; use storage buffers";
    case SpvOpTypeForwardPointer: case SpvOpConvertUToPtr: case SpvOpConvertPtrToU:
        return "buffer addresses are taken from push constants only; pass the buffer as a binding";
    case SpvOpPtrAccessChain: case SpvOpInBoundsPtrAccessChain: case SpvOpPtrEqual: case SpvOpPtrDiff:
        return "variable pointers are not taken; index the buffer instead";
    case SpvOpDPdx: case SpvOpDPdy: return "only compute shaders are taken";
    default: return "it is outside of the supported subset";
    }
}

static bool index_instructions(hdi_spirv_module *m) {
    uint32_t count = 0;
    for (uint32_t at = HDI_SPIRV_HEADER_WORDS; at < m->word_count; count++) {
        uint32_t length = m->words[at] >> 16;
        if (length == 0 || length > m->word_count - at)
            return hdi_spirv_bad(m, HDI_SPIRV_NONE,
                                 "word %u, %s: its length of %u words does not fit the %u that are left", at,
                                 hdi_spirv_op_name(m->words[at] & 0xFFFF), length, m->word_count - at);
        at += length;
    }
    m->insts = hdi_arena_alloc(&m->arena, ((size_t)count + 1) * sizeof *m->insts);
    if (!m->insts) return hdi_spirv_no_memory(m);
    for (uint32_t at = HDI_SPIRV_HEADER_WORDS; at < m->word_count; at += m->words[at] >> 16)
        m->insts[m->inst_count++] = at;
    if (count == 0) return hdi_spirv_bad(m, HDI_SPIRV_NONE, "the module is empty");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t opcode = hdi_spirv_opcode(m, i);
        const hdi_spirv_op *row = hdi_spirv_op_row(opcode);
        if (m->front_count == i && opcode != SpvOpFunction) m->front_count++;
        if (!row) return hdi_spirv_bad(m, i, "opcode %u: %s", opcode, advice(opcode));
        if (row->minor > (m->version >> 8 & 0xFF))
            return hdi_spirv_bad(m, i, "it needs version 1.%u, the module is of 1.%u", row->minor,
                                 m->version >> 8 & 0xFF);
    }
    return true;
}

/* The word of its result; 0: it has none. */
static uint32_t result_word(const hdi_spirv_module *m, uint32_t inst) {
    const char *operands = hdi_spirv_op_row(hdi_spirv_opcode(m, inst))->operands;
    return operands[0] == 'r' ? 1 : operands[0] == 't' && operands[1] == 'r' ? 2 : 0;
}

bool hdi_spirv_define(hdi_spirv_module *m, uint32_t inst_first, uint32_t inst_end) {
    uint32_t results = 0, before = HDI_MAX(m->def_count, 1u);
    for (uint32_t i = inst_first; i < inst_end; i++) results += result_word(m, i) != 0;
    hdi_spirv_def *defs = hdi_arena_alloc(&m->arena, ((size_t)before + results) * sizeof *defs);
    if (!m->def_of_id) m->def_of_id = hdi_arena_alloc(&m->arena, (size_t)m->bound * sizeof *m->def_of_id);
    if (!defs || !m->def_of_id) return hdi_spirv_no_memory(m);
    if (m->def_count) memcpy(defs, m->defs, m->def_count * sizeof *defs);
    m->defs = defs;
    m->def_count = before;
    for (uint32_t i = inst_first; i < inst_end; i++) {
        uint32_t at = result_word(m, i);
        if (at == 0) continue;
        if (hdi_spirv_length(m, i) <= at) return hdi_spirv_bad(m, i, "too short to hold its result");
        uint32_t id = hdi_spirv_words(m, i)[at];
        if (id == 0 || id >= m->bound)
            return hdi_spirv_bad(m, i, "result id %u is not within the bound %u", id, m->bound);
        if (m->def_of_id[id]) return hdi_spirv_bad(m, i, "id %u is defined twice", id);
        m->def_of_id[id] = m->def_count;
        m->defs[m->def_count++] = (hdi_spirv_def){ .id = id, .inst = i, .block = HDI_SPIRV_NONE };
    }
    return true;
}

/* Is the letter one of the set? Letters are small ones. */
static bool is_among(char letter, uint32_t set) { return set >> (letter - 'a') & 1; }
#define LETTER(letter) (1u << ((letter) - 'a'))
enum {
    IDS_BEFORE = LETTER('t') | LETTER('i') | LETTER('c') | LETTER('g') | LETTER('e'), /* defined before their use */
    IDS = IDS_BEFORE | LETTER('v') | LETTER('l') | LETTER('f') | LETTER('a')
};

/* Is the id that operand `letter` names of the right kind, and defined before where it has to be? */
static bool check_id(hdi_spirv_module *m, uint32_t inst, char letter, uint32_t id) {
    uint32_t def = hdi_spirv_find(m, id);
    if (!def) return hdi_spirv_bad(m, inst, "id %u is not defined anywhere", id);
    uint32_t opcode = hdi_spirv_def_opcode(m, def);
    if (is_among(letter, IDS_BEFORE) && m->defs[def].inst >= inst)
        return hdi_spirv_bad(m, inst, "id %u is used before it is defined", id);
    switch (letter) {
    case 't': return hdi_spirv_is_type(opcode) || hdi_spirv_bad(m, inst, "id %u is not a type", id);
    case 'i': case 'v': return hdi_spirv_is_value(opcode) || hdi_spirv_bad(m, inst, "id %u is not a value", id);
    case 'c': return hdi_spirv_is_constant(opcode) || hdi_spirv_bad(m, inst, "id %u is not a constant", id);
    case 'g': return opcode == SpvOpString || hdi_spirv_bad(m, inst, "id %u is not a string", id);
    case 'e': return opcode == SpvOpExtInstImport || hdi_spirv_bad(m, inst, "id %u is not an instruction set", id);
    case 'l': return opcode == SpvOpLabel || hdi_spirv_bad(m, inst, "id %u is not a label", id);
    case 'f': return opcode == SpvOpFunction || hdi_spirv_bad(m, inst, "id %u is not a function", id);
    default: return true;
    }
}

/* Why the operands of `inst` do not fit. */
static bool refuse_form(hdi_spirv_module *m, uint32_t inst) {
    uint32_t opcode = hdi_spirv_opcode(m, inst), length = hdi_spirv_length(m, inst);
    const uint32_t *words = hdi_spirv_words(m, inst);
    uint32_t decoration_at = opcode == SpvOpDecorate ? 2 : opcode == SpvOpMemberDecorate ? 3 : length;
    if (decoration_at < length && !decoration_operands(words[decoration_at]))
        return hdi_spirv_bad(m, inst, "decoration %u is outside of the supported subset", words[decoration_at]);
    bool mode = opcode == SpvOpExecutionMode || opcode == SpvOpExecutionModeId;
    if (mode && length > 2 && !mode_operands(words[2]))
        return hdi_spirv_bad(m, inst, "execution mode %u is outside of the supported subset", words[2]);
    return hdi_spirv_bad(m, inst, "its %u words do not fit its form", length);
}

static bool check_operands(hdi_spirv_module *m) {
    for (uint32_t i = 0; i < m->inst_count; i++) {
        hdi_spirv_operands o = hdi_spirv_operands_of(m, i);
        uint32_t type = 0;
        while (hdi_spirv_next(&o)) {
            if (o.letter == 'r') {
                uint32_t def = hdi_spirv_find(m, o.word);
                m->defs[def].type = hdi_spirv_is_type(hdi_spirv_opcode(m, i)) ? def : type;
            } else if (is_among(o.letter, IDS)) {
                if (!check_id(m, i, o.letter, o.word)) return false;
                if (o.letter == 't') type = hdi_spirv_find(m, o.word);
            }
        }
        if (o.bad) return refuse_form(m, i);
    }
    return true;
}

hd_status hdi_spirv_module_read(const hd_allocator *allocator, const hdi_spirv_input *input,
                                hdi_spirv_module *out_module, hd_error *error) {
    hdi_spirv_module *m = out_module;
    *m = (hdi_spirv_module){ .arena = { .allocator = allocator }, .error = error, .input = input };
    const bool sound = input->checked ? hdi_spirv_read_checked(m)
                     : hdi_spirv_header(m) && index_instructions(m) && hdi_spirv_define(m, 0, m->inst_count) &&
                       check_operands(m) && hdi_spirv_check(m) && hdi_spirv_declare(m) && hdi_spirv_blocks(m) &&
                       hdi_spirv_flow(m) && hdi_spirv_typing(m);
    return sound ? HD_OK : m->status;
}

void hdi_spirv_module_free(hdi_spirv_module *module) { hdi_arena_free(&module->arena); }
