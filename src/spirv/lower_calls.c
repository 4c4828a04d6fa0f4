/* lower_calls.c: functions that are given images or samplers. For each set of these that a function is called with,
 * there is a copy of it which knows them, and calls leave them out; then each use of an image leads to its variable.
 * What is said of values, such as that they are rounded one by one, holds for their copies. */
#include "spirv/lower.h"

enum { MOST_COPIES = 256, MOST_GIVEN = 8 /* images and samplers of one call */ };

/* `known`: by which variables a copy's images are known; `given`: what stands for them. */
typedef struct copy_of {
    size_t   function; /* the word where it begins */
    uint32_t id, count, known[MOST_GIVEN], given[MOST_GIVEN];
} copy_of;

typedef struct calls {
    hdi_lowering    *l;
    uint32_t        *as; /* by id: what it is in the copy that is being written; 0: itself */
    hdi_lower_words  types, code, decorations;
    copy_of          copies[MOST_COPIES];
    uint32_t         count;
} calls;

/* An image, a sampler, both, or a pointer to one. */
static bool is_image(const hdi_lowering *l, uint32_t type) {
    const uint32_t *words = type < l->bound && l->at[type] ? l->words + l->at[type] : NULL;
    switch (words ? hdi_lower_opcode(words) : (uint32_t)SpvOpNop) {
    case SpvOpTypeImage: case SpvOpTypeSampler: case SpvOpTypeSampledImage: return true;
    case SpvOpTypePointer: return hdi_lower_length(words) == 4 && words[2] == SpvStorageClassUniformConstant;
    default: return false;
    }
}

static bool has_images(const hdi_lowering *l, const uint32_t *type) {
    for (uint32_t i = 3; i < hdi_lower_length(type); i++)
        if (is_image(l, type[i])) return true;
    return false;
}

/* The type of the function there, where it is given images; else NULL. */
static const uint32_t *type_with_images(const hdi_lowering *l, const uint32_t *function) {
    const uint32_t *type = hdi_lower_length(function) == 5 ? hdi_lower_def(l, function[4], SpvOpTypeFunction, 3) : NULL;
    return type && has_images(l, type) ? type : NULL;
}

static bool any_given(const hdi_lowering *l) {
    for (size_t at = l->functions; at < l->count; at += hdi_lower_length(l->words + at))
        if (hdi_lower_opcode(l->words + at) == SpvOpFunction && type_with_images(l, l->words + at)) return true;
    return false;
}

static uint32_t as(const calls *c, uint32_t id) { return id < c->l->bound && c->as[id] ? c->as[id] : id; }

/* The variable that a loaded image came from; else the id itself. */
static uint32_t known_by(const hdi_lowering *l, uint32_t id) {
    const uint32_t *load = hdi_lower_def(l, id, SpvOpLoad, 4);
    return load && hdi_lower_def(l, load[3], SpvOpVariable, 4) ? load[3] : id;
}

/* The copy for a call; a new one where there is none. NULL: it was refused. */
static const copy_of *copy_for(calls *c, const uint32_t *call, const uint32_t *function, const uint32_t *type) {
    hdi_lowering *l = c->l;
    copy_of wanted = { .function = (size_t)(function - l->words) };
    if (hdi_lower_length(call) - 4 != hdi_lower_length(type) - 3) return NULL; /* the checks say so */
    for (uint32_t i = 3; i < hdi_lower_length(type); i++) {
        if (!is_image(l, type[i])) continue;
        if (wanted.count == MOST_GIVEN)
            return hdi_lower_refuse(l, call, "more than %d images or samplers are given", MOST_GIVEN), NULL;
        wanted.given[wanted.count] = as(c, call[i + 1]);
        const uint32_t own = known_by(l, call[i + 1]);
        wanted.known[wanted.count] = own != call[i + 1] ? own : known_by(l, wanted.given[wanted.count]);
        wanted.count++;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->copies[i].function == wanted.function &&
            memcmp(c->copies[i].known, wanted.known, sizeof wanted.known) == 0)
            return &c->copies[i];
    if (c->count == MOST_COPIES)
        return hdi_lower_refuse(l, call, "functions are called with more than %d sets of images", MOST_COPIES), NULL;
    wanted.id = l->next++;
    c->copies[c->count] = wanted;
    return &c->copies[c->count++];
}

static void put_call(calls *c, const uint32_t *words) {
    hdi_lowering *l = c->l;
    const uint32_t length = hdi_lower_length(words);
    const uint32_t *function = length > 3 ? hdi_lower_def(l, words[3], SpvOpFunction, 5) : NULL;
    const uint32_t *type = function ? type_with_images(l, function) : NULL;
    const copy_of *copy = type ? copy_for(c, words, function, type) : NULL;
    uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all), count = 0;
    if (!all) {
        hdi_lower_refuse(l, words, "no host memory");
        return;
    }
    for (uint32_t i = 1; i < length; i++)
        if (i < 4 || !copy || !is_image(l, type[i - 1])) all[count++] = i == 3 && copy ? copy->id : as(c, words[i]);
    hdi_lower_add(l, &c->code, SpvOpFunctionCall, all, count);
}

/* The function's own type without images. */
static void put_head(calls *c, const uint32_t *words, const copy_of *copy) {
    hdi_lowering *l = c->l;
    const uint32_t *type = type_with_images(l, words);
    uint32_t all[HDI_LOWER_MAX_OPERANDS] = { l->next++, type[2] }, count = 2;
    for (uint32_t i = 3; i < hdi_lower_length(type); i++) {
        if (is_image(l, type[i])) continue;
        if (count == HDI_LOWER_MAX_OPERANDS) {
            hdi_lower_refuse(l, words, "too many parameters");
            return;
        }
        all[count++] = type[i];
    }
    /* one that is stated already is taken: no two types are the same */
    for (size_t at = 0; at < c->types.count; at += hdi_lower_length(c->types.items + at)) {
        const uint32_t *known = c->types.items + at;
        if (hdi_lower_length(known) == count + 1 && memcmp(known + 2, all + 1, (count - 1) * sizeof *all) == 0)
            all[0] = known[1];
    }
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *known = l->words + at;
        if (hdi_lower_opcode(known) == SpvOpTypeFunction && hdi_lower_length(known) == count + 1 &&
            memcmp(known + 2, all + 1, (count - 1) * sizeof *all) == 0)
            all[0] = known[1];
    }
    if (all[0] == l->next - 1) hdi_lower_add(l, &c->types, SpvOpTypeFunction, all, count);
    HDI_LOWER_ADD(l, &c->code, SpvOpFunction, words[1], copy->id, words[3], all[0]);
}

/* Names all that the function defines anew; its images are those that the copy knows. */
static void rename_all(calls *c, const copy_of *copy) {
    hdi_lowering *l = c->l;
    uint32_t given = 0;
    memset(c->as, 0, l->bound * sizeof *c->as);
    for (size_t at = copy->function; at < l->count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words);
        if (opcode == SpvOpFunctionEnd) break;
        if (opcode == SpvOpFunction) continue;
        const bool image = opcode == SpvOpFunctionParameter && hdi_lower_length(words) == 3 && is_image(l, words[1]);
        for (hdi_spirv_operands o = hdi_lower_operands(words); hdi_spirv_next(&o);)
            if (o.letter == 'r' && o.word < l->bound)
                c->as[o.word] = !image ? l->next++ : given < copy->count ? copy->given[given++] : o.word;
    }
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, length = hdi_lower_length(words);
        if (hdi_lower_opcode(words) != SpvOpDecorate || length < 3 || length > 4) continue;
        const uint32_t said[] = { as(c, words[1]), words[2], length > 3 ? words[3] : 0 };
        if (said[0] >= l->bound) hdi_lower_add(l, &c->decorations, SpvOpDecorate, said, length - 1);
    }
}

/* The function that begins there, or a copy of it. */
static void put_function(calls *c, size_t at, const copy_of *copy) {
    hdi_lowering *l = c->l;
    if (copy) rename_all(c, copy);
    for (; at < l->count && !l->status; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
        const bool image = opcode == SpvOpFunctionParameter && length == 3 && is_image(l, words[1]);
        if (copy && at == copy->function) put_head(c, words, copy);
        else if (opcode == SpvOpFunctionCall) put_call(c, words);
        else if (!(copy && image)) {
            uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all);
            if (!all) {
                hdi_lower_refuse(l, words, "no host memory");
                return;
            }
            memcpy(all, words, length * sizeof *all);
            for (hdi_spirv_operands o = hdi_lower_operands(words); copy && hdi_spirv_next(&o);)
                if (strchr("rtigcevlfa", o.letter)) all[o.at] = as(c, o.word);
            hdi_lower_add(l, &c->code, opcode, all + 1, length - 1);
        }
        if (opcode == SpvOpFunctionEnd) return;
        if (c->code.count > HDI_SPIRV_MAX_BYTES / 4)
            hdi_lower_refuse(l, words, "copies of functions that are too long");
    }
}

/* Marks what stands in functions that are there as copies only. */
static void mark_gone(calls *c) {
    const hdi_lowering *l = c->l;
    bool gone = false;
    memset(c->as, 0, l->bound * sizeof *c->as);
    for (size_t at = l->functions; at < l->count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) == SpvOpFunction) gone = type_with_images(l, words) != NULL;
        for (hdi_spirv_operands o = hdi_lower_operands(words); gone && hdi_spirv_next(&o);)
            if (o.letter == 'r' && o.word < l->bound) c->as[o.word] = o.word;
    }
}

static void put_globals(calls *c, hdi_lower_words *to) {
    hdi_lowering *l = c->l;
    bool decorated = false;
    mark_gone(c);
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words);
        if (!decorated && (hdi_spirv_is_type(opcode) || hdi_spirv_is_constant(opcode) || opcode == SpvOpVariable)) {
            for (size_t i = 0; i < c->decorations.count; i += hdi_lower_length(c->decorations.items + i))
                hdi_lower_add(l, to, SpvOpDecorate, c->decorations.items + i + 1,
                              hdi_lower_length(c->decorations.items + i) - 1);
            decorated = true;
        }
        const bool about = (opcode == SpvOpName || opcode == SpvOpDecorate) && hdi_lower_length(words) > 1;
        if (about && words[1] < l->bound && c->as[words[1]]) continue;
        if (opcode == SpvOpTypeFunction && has_images(l, words)) continue;
        hdi_lower_add(l, to, opcode, words + 1, hdi_lower_length(words) - 1);
    }
    for (size_t i = 0; i < c->types.count; i += hdi_lower_length(c->types.items + i))
        hdi_lower_add(l, to, SpvOpTypeFunction, c->types.items + i + 1, hdi_lower_length(c->types.items + i) - 1);
}

bool hdi_lower_copy_functions(hdi_lowering *l) {
    if (!any_given(l)) return true;
    calls *c = hdi_arena_alloc(&l->arena, sizeof *c);
    if (c) *c = (calls){ .l = l, .as = hdi_arena_alloc(&l->arena, l->bound * sizeof *c->as) };
    if (!c || !c->as) return false;
    for (size_t at = l->functions; at < l->count && !l->status; at += hdi_lower_length(l->words + at))
        if (hdi_lower_opcode(l->words + at) == SpvOpFunction && !type_with_images(l, l->words + at))
            put_function(c, at, NULL);
    for (uint32_t i = 0; i < c->count && !l->status; i++) { /* which call others */
        const copy_of copy = c->copies[i];
        put_function(c, copy.function, &copy);
    }
    hdi_lower_words to = { 0 };
    to.capacity = l->count + c->decorations.count + c->types.count + c->code.count + 512;
    to.items = l->status ? NULL : hdi_arena_alloc(&l->arena, to.capacity * sizeof *to.items);
    if (!to.items) return l->status != HD_OK;
    memcpy(to.items, l->words, HDI_SPIRV_HEADER_WORDS * sizeof *to.items);
    to.count = HDI_SPIRV_HEADER_WORDS;
    put_globals(c, &to);
    if (c->code.count) memcpy(to.items + to.count, c->code.items, c->code.count * sizeof *to.items);
    to.items[3] = l->next;
    l->words = to.items;
    l->count = to.count + c->code.count;
    l->bound = l->next;
    return true;
}
