/* lower_pointers.c: pointers into buffers and shared memory that are values: chosen, carried around a loop, kept in a
 * variable, stepped on from, returned, or given to a function. Each becomes a vector of whole numbers: which *place* it
 * leads to, then the indices that lead there. A place is a variable with a way into it: members by their numbers,
 * elements by an index each that is known at run time. Places count from 1, as 0 is a pointer to nothing. What is done
 * with such a pointer becomes a function with a case for each place that it may lead to, as follows from where its
 * values come from. Pointers that lead to one place stay as they are. */
#include "spirv/lower.h"

enum {
    MOST_PLACES = HDI_LOWER_MAX_CASES, /* bits of a set */
    MOST_INDICES = 16, /* of a place */
    MOST_SLOTS = 3,    /* of them that are known at run time: a vector's components but for the first */
    MOST_ROUNDS = 32,  /* through the functions, until nothing new is found */
    MOST_WORDS = 1024, /* of a function's parameters */
    MOST_STEPS = 24    /* from a pointer that is a value to what is done with it */
};
enum { VALUE = 1, DERIVED = 2 }; /* roles: a vector; what leads on from one */

typedef struct place {
    uint32_t variable, storage, type; /* type: of what it leads to */
    uint32_t count, slots, indices[MOST_INDICES]; /* an index: the id of a constant; 0: a slot */
    uint32_t stride;                  /* of the array that the last one goes through; 0: none */
    bool     stepped;                 /* the last one goes through an array */
} place;

struct hdi_lower_pointers {
    uint8_t  *role;   /* by id */
    uint32_t *vector; /* by id: that of its vector; 0: it has none */
    uint64_t *places; /* by id: where it may lead; of a variable or function: what it holds or returns */
    uint32_t *stride; /* by id of a type */
    place     all[MOST_PLACES];
    uint32_t  count, slots;
    uint32_t  type, number; /* ids: of the vectors, and of their components */
    bool      changed;
};
typedef struct hdi_lower_pointers pointers;

/* ---- what pointers there are ---- */

/* A type of pointers into buffers or shared memory. */
static const uint32_t *pointer_type(const hdi_lowering *l, uint32_t type) {
    const uint32_t *words = hdi_lower_def(l, type, SpvOpTypePointer, 4);
    return words && (words[2] == SpvStorageClassStorageBuffer || words[2] == SpvStorageClassWorkgroup) ? words : NULL;
}

static bool is_step(uint32_t opcode) {
    return opcode == SpvOpPtrAccessChain || opcode == SpvOpInBoundsPtrAccessChain;
}
static const uint32_t *words_of(const hdi_lowering *l, uint32_t id) {
    return id < l->bound && l->at[id] ? l->words + l->at[id] : NULL;
}

/* The type of a result; 0: there is none. */
static uint32_t type_of(const uint32_t *words) {
    const char *form = hdi_lower_operands(words).next;
    return form[0] == 't' && form[1] == 'r' && hdi_lower_length(words) > 2 ? words[1] : 0;
}

/* The pointer's type where the id is one into buffers or shared memory; else NULL. */
static const uint32_t *pointer_of(const hdi_lowering *l, uint32_t id) {
    const uint32_t *words = words_of(l, id);
    return words ? pointer_type(l, type_of(words)) : NULL;
}

/* The variable, parameter or other value that a chain begins at. */
static uint32_t root_of(const hdi_lowering *l, uint32_t id) {
    const uint32_t *words = words_of(l, id);
    for (uint32_t i = 0; words && i < HDI_SPIRV_MAX_TYPE_DEPTH; i++) {
        if (!hdi_spirv_is_chain(hdi_lower_opcode(words)) || hdi_lower_length(words) < 4) break;
        id = words[3];
        words = words_of(l, id);
    }
    return id;
}

/* The function's parameter number `i`; NULL: it has no such one. */
static const uint32_t *parameter_of(const hdi_lowering *l, uint32_t function, uint32_t i) {
    const uint32_t *words = hdi_lower_def(l, function, SpvOpFunction, 5), *const begin = words;
    while (words && words < begin + MOST_WORDS) {
        words += hdi_lower_length(words);
        if (words >= l->words + l->count) return NULL;
        if (hdi_lower_opcode(words) == SpvOpNop) continue;
        if (hdi_lower_opcode(words) != SpvOpFunctionParameter || hdi_lower_length(words) != 3) return NULL;
        if (i-- == 0) return words;
    }
    return NULL;
}

static void set_role(pointers *p, uint32_t id, uint8_t role) {
    if (p->role[id] == role) return;
    p->role[id] = role;
    p->changed = true;
}

/* The pointer has to be there as a vector. */
static void want_vector(hdi_lowering *l, uint32_t id) {
    pointers *p = l->pointers;
    if (id >= l->bound || p->role[id] == VALUE || p->vector[id] || !pointer_of(l, id)) return;
    const uint32_t root = root_of(l, id);
    if (root < l->bound && p->role[id] == 0 && hdi_lower_def(l, root, SpvOpFunctionParameter, 3)) {
        set_role(p, root, VALUE); /* it may lead elsewhere with each call */
        if (root == id) return;
    }
    p->vector[id] = l->next++;
    p->changed = true;
}

static bool is_comparison(uint32_t opcode) {
    return opcode == SpvOpPtrEqual || opcode == SpvOpPtrNotEqual || opcode == SpvOpPtrDiff;
}

/* Which words of the instruction are pointers that it goes through, and not values. */
static bool goes_through(uint32_t opcode, uint32_t at) {
    if (opcode == SpvOpStore || opcode == SpvOpAtomicStore) return at == 1;
    if (opcode == SpvOpCopyMemory) return true;
    return at == 3 && (opcode == SpvOpLoad || opcode == SpvOpArrayLength || hdi_spirv_is_chain(opcode) ||
                       hdi_spirv_is_atomic(opcode));
}

/* Does operand `at` of a call go to a parameter that is a vector? */
static bool is_given_as_value(const hdi_lowering *l, const uint32_t *words, uint32_t at) {
    const uint32_t *parameter = at > 3 ? parameter_of(l, words[3], at - 4) : NULL;
    return parameter && parameter[2] < l->bound && l->pointers->role[parameter[2]] == VALUE;
}

/* Has the operand to be a vector, as far as is known? */
static bool is_value_use(const hdi_lowering *l, const uint32_t *words, uint32_t at) {
    const uint32_t opcode = hdi_lower_opcode(words);
    if (goes_through(opcode, at) || opcode == SpvOpExtInst) return false;
    if (opcode == SpvOpFunctionCall) return is_given_as_value(l, words, at);
    if (is_step(opcode) && at == 3) return words[3] < l->bound && l->pointers->role[words[3]] == 0;
    return true;
}

/* A call with a pointer into a variable, or with one that is a value, makes the parameter a value. */
static void look_at_call(hdi_lowering *l, const uint32_t *words) {
    pointers *p = l->pointers;
    for (uint32_t i = 4; i < hdi_lower_length(words); i++) {
        const uint32_t *argument = pointer_of(l, words[i]) ? words_of(l, words[i]) : NULL;
        const uint32_t *parameter = argument ? parameter_of(l, words[3], i - 4) : NULL;
        if (!parameter || parameter[2] >= l->bound) continue;
        const bool whole = hdi_lower_opcode(argument) == SpvOpVariable ||
                           (hdi_lower_opcode(argument) == SpvOpFunctionParameter && p->role[words[i]] == 0);
        if (!whole) set_role(p, parameter[2], VALUE);
    }
}

static void find_roles(hdi_lowering *l, const uint32_t *words) {
    pointers *p = l->pointers;
    const uint32_t opcode = hdi_lower_opcode(words), type = type_of(words);
    const bool pointer = type && pointer_type(l, type) && words[2] < l->bound;
    if (opcode == SpvOpFunctionCall && hdi_lower_length(words) > 4) look_at_call(l, words);
    if (pointer && is_step(opcode)) set_role(p, words[2], DERIVED);
    else if (pointer && hdi_spirv_is_chain(opcode)) {
        const bool on = hdi_lower_length(words) > 3 && words[3] < l->bound && p->role[words[3]];
        if (on) set_role(p, words[2], DERIVED);
    } else if (pointer && opcode != SpvOpVariable && opcode != SpvOpFunctionParameter) {
        set_role(p, words[2], VALUE);
    }
    for (hdi_spirv_operands o = hdi_lower_operands(words); hdi_spirv_next(&o);)
        if ((o.letter == 'i' || o.letter == 'v') && o.at >= (type ? 3u : 1u) && is_value_use(l, words, o.at))
            want_vector(l, o.word);
}

bool hdi_lower_any_pointers(const hdi_lowering *l) {
    for (size_t at = l->functions; at < l->count; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at, opcode = hdi_lower_opcode(words), type = type_of(words);
        if (is_comparison(opcode) && hdi_lower_length(words) == 5 && pointer_of(l, words[3])) return true;
        if (opcode == SpvOpFunctionCall)
            for (uint32_t i = 4; i < hdi_lower_length(words); i++) {
                const uint32_t *argument = pointer_of(l, words[i]) ? words_of(l, words[i]) : NULL;
                if (argument && hdi_spirv_is_chain(hdi_lower_opcode(argument))) return true;
            }
        if (type && pointer_type(l, type) && opcode != SpvOpVariable && opcode != SpvOpFunctionParameter &&
            !hdi_spirv_is_chain(opcode))
            return true;
    }
    return false;
}

/* ---- where they may lead ---- */

/* What an index of a value of the type leads to, and whether it is one that is known at run time; 0: nothing. */
static uint32_t part_of(const hdi_lowering *l, uint32_t type, uint32_t index, bool *out_slot) {
    const uint32_t *words = words_of(l, type), *number = hdi_lower_def(l, index, SpvOpConstant, 4);
    const uint32_t opcode = words ? hdi_lower_opcode(words) : 0, length = words ? hdi_lower_length(words) : 0;
    *out_slot = opcode != SpvOpTypeStruct;
    if (opcode == SpvOpTypeStruct) return number && number[3] < length - 2 ? words[2 + number[3]] : 0;
    const bool parted = opcode == SpvOpTypeArray || opcode == SpvOpTypeRuntimeArray || opcode == SpvOpTypeVector ||
                        opcode == SpvOpTypeMatrix;
    return parted && length > 2 ? words[2] : 0;
}

/* Goes on along an index; false: it leads nowhere, or too far. */
static bool lead_on(const hdi_lowering *l, place *to, uint32_t index) {
    bool slot;
    const uint32_t from = to->type, part = part_of(l, from, index, &slot);
    if (!part || to->count == MOST_INDICES) return false;
    const uint32_t opcode = hdi_lower_opcode(words_of(l, from));
    to->stepped = opcode == SpvOpTypeArray || opcode == SpvOpTypeRuntimeArray;
    to->stride = to->stepped ? l->pointers->stride[from] : 0;
    to->indices[to->count++] = slot ? 0 : index;
    to->slots += slot;
    to->type = part;
    return true;
}

/* The number of the place; a new one where there is none like it. MOST_PLACES: there are too many. */
static uint32_t number_of(hdi_lowering *l, const place *wanted) {
    pointers *p = l->pointers;
    for (uint32_t i = 0; i < p->count; i++) {
        const place *known = &p->all[i];
        bool same = known->variable == wanted->variable && known->count == wanted->count;
        for (uint32_t k = 0; k < known->count && same; k++) {
            const uint32_t *a = words_of(l, known->indices[k]), *b = words_of(l, wanted->indices[k]);
            same = !a == !b && (!a || a[3] == b[3]);
        }
        if (same) return i;
    }
    if (p->count == MOST_PLACES) return MOST_PLACES;
    p->all[p->count] = *wanted;
    p->slots = HDI_MAX(p->slots, wanted->slots);
    return p->count++;
}

/* From a value to a pointer: the instructions between them, the first one first. */
typedef struct way { uint32_t base, count; const uint32_t *steps[MOST_STEPS]; } way;

static bool find_way(const hdi_lowering *l, uint32_t id, way *out) {
    *out = (way){ .base = id };
    while (id < l->bound && l->pointers->role[id] == DERIVED) {
        const uint32_t *words = words_of(l, id);
        if (out->count == MOST_STEPS || hdi_lower_length(words) < 4) return false;
        out->steps[out->count++] = words;
        id = words[3];
    }
    for (uint32_t i = 0; i < out->count / 2; i++) {
        const uint32_t *other = out->steps[out->count - 1 - i];
        out->steps[out->count - 1 - i] = out->steps[i];
        out->steps[i] = other;
    }
    out->base = id;
    return id < l->bound;
}

/* Where a pointer leads, as its variable and indices tell, and these indices; false: it cannot be said. */
static bool place_of(const hdi_lowering *l, const uint32_t *words, place *out, uint32_t indices[MOST_INDICES]) {
    const uint32_t *chain[MOST_STEPS];
    uint32_t count = 0;
    while (words && hdi_spirv_is_chain(hdi_lower_opcode(words)) && hdi_lower_length(words) > 3) {
        if (count == MOST_STEPS) return false;
        chain[count++] = words;
        words = words_of(l, words[3]);
    }
    const bool variable = words && hdi_lower_opcode(words) == SpvOpVariable && hdi_lower_length(words) > 3;
    const uint32_t *type = variable ? pointer_type(l, words[1]) : NULL;
    if (!type || words[2] >= l->bound || l->gone[words[2]]) return false; /* an array of buffers */
    *out = (place){ .variable = words[2], .storage = type[2], .type = type[3] };
    while (count-- > 0)
        for (uint32_t i = 4; i < hdi_lower_length(chain[count]); i++) {
            if (!lead_on(l, out, chain[count][i])) return false;
            indices[out->count - 1] = chain[count][i];
        }
    return true;
}

/* Does the place fit a pointer of the type? What does not never comes there. */
static bool fits(const place *at, const uint32_t *type) { return at->storage == type[2] && at->type == type[3]; }

/* The place behind another one, along the way; false: it is none. */
static bool follow(hdi_lowering *l, const way *along, place *to) {
    for (uint32_t s = 0; s < along->count; s++) {
        const uint32_t *words = along->steps[s];
        const bool steps = is_step(hdi_lower_opcode(words));
        const bool strides = to->storage != SpvStorageClassWorkgroup; /* which lies as it likes */
        if (steps && (hdi_lower_length(words) < 5 || !to->stepped ||
                      (strides && to->stride != l->pointers->stride[words[1]]))) {
            /* an element in front of which and behind which nothing is known to lie */
            const uint32_t *zero = hdi_lower_length(words) > 4 ? hdi_lower_def(l, words[4], SpvOpConstant, 4) : NULL;
            if (!zero || zero[3] != 0)
                return hdi_lower_refuse(l, words, "it steps on from what is no element of an array with its stride"),
                       false;
        }
        for (uint32_t i = steps ? 5 : 4; i < hdi_lower_length(words); i++)
            if (!lead_on(l, to, words[i])) return hdi_lower_refuse(l, words, "its indices lead nowhere"), false;
    }
    return true;
}

static void join(pointers *p, uint32_t id, uint64_t places) {
    if ((p->places[id] | places) == p->places[id]) return;
    p->places[id] |= places;
    p->changed = true;
}

static uint64_t places_at(const hdi_lowering *l, uint32_t id) { return id < l->bound ? l->pointers->places[id] : 0; }

/* Places of a pointer that becomes a vector: of its own, or behind those of the value that it leads on from. */
static void place_vector(hdi_lowering *l, const uint32_t *words) {
    pointers *p = l->pointers;
    const uint32_t id = words[2];
    place at;
    uint32_t number = 0, indices[MOST_INDICES];
    if (p->role[id] == 0) {
        if (!place_of(l, words, &at, indices))
            hdi_lower_refuse(l, words, "a chosen pointer that leads into no single buffer");
        else if ((number = number_of(l, &at)) < MOST_PLACES) join(p, id, UINT64_C(1) << number);
    } else {
        way along;
        if (!find_way(l, id, &along)) {
            hdi_lower_refuse(l, words, "too many steps from one pointer to another");
            return;
        }
        const uint32_t *type = pointer_of(l, along.base);
        for (uint32_t i = 0; i < p->count && number < MOST_PLACES && !l->status; i++) {
            if (!(places_at(l, along.base) >> i & 1) || !type || !fits(&p->all[i], type)) continue;
            at = p->all[i];
            if (follow(l, &along, &at) && (number = number_of(l, &at)) < MOST_PLACES)
                join(p, id, UINT64_C(1) << number);
        }
    }
    if (number == MOST_PLACES) hdi_lower_refuse(l, words, "pointers that lead to more than %d places", MOST_PLACES);
}

static void place_call(hdi_lowering *l, const uint32_t *words) {
    pointers *p = l->pointers;
    for (uint32_t i = 4; i < hdi_lower_length(words); i++) {
        const uint32_t *parameter = parameter_of(l, words[3], i - 4);
        const uint32_t root = root_of(l, words[i]);
        if (!parameter || parameter[2] >= l->bound || root >= l->bound) continue;
        if (is_given_as_value(l, words, i)) join(p, parameter[2], places_at(l, words[i]));
        else if (!pointer_of(l, words[i])) { /* what it holds; the function may put in more */
            join(p, parameter[2], places_at(l, root));
            if (pointer_of(l, root) == NULL && words_of(l, root)) join(p, root, places_at(l, parameter[2]));
        }
    }
    if (words[3] < l->bound && words[2] < l->bound) join(p, words[2], places_at(l, words[3]));
}

static void find_places(hdi_lowering *l, const uint32_t *words, uint32_t function) {
    pointers *p = l->pointers;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words), type = type_of(words);
    const uint32_t result = type && words[2] < l->bound ? words[2] : 0;
    if (result && p->role[result] != VALUE && pointer_type(l, type)) {
        if (p->vector[result] && opcode != SpvOpVariable) place_vector(l, words);
        return;
    }
    if (opcode == SpvOpReturnValue && length > 1 && function < l->bound) join(p, function, places_at(l, words[1]));
    else if (opcode == SpvOpStore && length > 2) {
        const uint32_t root = root_of(l, words[1]);
        if (root < l->bound && !pointer_of(l, root)) join(p, root, places_at(l, words[2]));
    } else if (opcode == SpvOpFunctionCall && length > 3) {
        place_call(l, words);
    } else if (opcode == SpvOpLoad && result && length > 3) {
        if (!pointer_of(l, words[3])) join(p, result, places_at(l, root_of(l, words[3])));
    } else if (result && opcode != SpvOpFunctionParameter && opcode != SpvOpVariable) {
        for (hdi_spirv_operands o = hdi_lower_operands(words); hdi_spirv_next(&o);)
            if ((o.letter == 'i' || o.letter == 'v') && o.at > 2) join(p, result, places_at(l, o.word));
    }
}

/* ---- all of that, until nothing new is found ---- */

/* Variables that are chosen as a whole. */
static void place_variables(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) == SpvOpVariable && hdi_lower_length(words) > 3 && words[2] < l->bound &&
            l->pointers->vector[words[2]])
            place_vector(l, words);
        else if (hdi_lower_opcode(words) == SpvOpConstantNull || hdi_lower_opcode(words) == SpvOpUndef)
            if (hdi_lower_length(words) == 3 && words[2] < l->bound && pointer_type(l, words[1]))
                l->pointers->role[words[2]] = VALUE; /* which leads nowhere */
    }
}

static bool settle(hdi_lowering *l, bool places) {
    uint32_t round = 0;
    do {
        uint32_t function = 0;
        l->pointers->changed = false;
        place_variables(l);
        for (size_t at = l->functions; at < l->count && !l->status; at += hdi_lower_length(l->words + at)) {
            const uint32_t *words = l->words + at;
            if (hdi_lower_opcode(words) == SpvOpFunction && hdi_lower_length(words) == 5) function = words[2];
            if (places) find_places(l, words, function);
            else find_roles(l, words);
            if (l->pointers->changed && round == MOST_ROUNDS)
                return hdi_lower_refuse(l, words, "pointers that go too many ways"), false;
        }
    } while (l->pointers->changed && round++ < MOST_ROUNDS && !l->status);
    return !l->status;
}

/* A type that stands in front of all others, as structs and pointers hold it. */
static uint32_t front_type(hdi_lowering *l, uint32_t opcode, uint32_t a, uint32_t b) {
    const uint32_t operands[] = { a, b }, id = l->next;
    const uint32_t known = hdi_spirv_state(&l->arena, &l->stated, opcode, 0, operands, 2, id);
    if (known == id) l->next++;
    else if (known && known < l->bound) l->gone[known] = 2;
    return known;
}

bool hdi_lower_find_pointers(hdi_lowering *l) {
    if (!hdi_lower_any_pointers(l)) return true;
    pointers *p = l->pointers = hdi_arena_alloc(&l->arena, sizeof *p);
    if (p) {
        *p = (pointers){ .role = hdi_arena_alloc(&l->arena, l->bound),
                         .vector = hdi_arena_alloc(&l->arena, l->bound * sizeof *p->vector),
                         .places = hdi_arena_alloc(&l->arena, l->bound * sizeof *p->places),
                         .stride = hdi_arena_alloc(&l->arena, l->bound * sizeof *p->stride) };
    }
    if (!p || !p->role || !p->vector || !p->places || !p->stride) return false;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (words[0] == (4u << SpvWordCountShift | SpvOpDecorate) && words[2] == SpvDecorationArrayStride &&
            words[1] < l->bound)
            p->stride[words[1]] = words[3];
        /* no function returns them any more */
        if (hdi_lower_opcode(words) == SpvOpTypeFunction && hdi_lower_length(words) > 2 && words[1] < l->bound &&
            pointer_type(l, words[2]))
            l->gone[words[1]] = 1;
    }
    if (!settle(l, false) || !settle(l, true)) return true;
    if (p->slots > MOST_SLOTS) {
        hdi_lower_refuse(l, l->words + l->functions, "a chosen pointer with %u indices that are known at run time",
                         p->slots);
        return true;
    }
    p->number = front_type(l, SpvOpTypeInt, 32, 0);
    p->type = front_type(l, SpvOpTypeVector, p->number, 1 + HDI_MAX(p->slots, 1u));
    return p->number && p->type;
}

void hdi_lower_put_pointer_types(hdi_lowering *l, hdi_lower_words *to) {
    const pointers *p = l->pointers;
    if (!p) return;
    HDI_LOWER_ADD(l, to, SpvOpTypeInt, p->number, 32, 0);
    HDI_LOWER_ADD(l, to, SpvOpTypeVector, p->type, p->number, 1 + HDI_MAX(p->slots, 1u));
}

/* What holds such pointers holds vectors; false: the instruction stays as it is, or goes by other rules. */
bool hdi_lower_pointer_front(hdi_lowering *l, hdi_lower_words *to, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    if (!p) return false;
    if (opcode == SpvOpDecorate) /* strides of pointers */
        return length > 2 && words[2] == SpvDecorationArrayStride && pointer_type(l, words[1]);
    const bool null = (opcode == SpvOpConstantNull || opcode == SpvOpUndef) && length == 3;
    const uint32_t from = null ? 1 : opcode == SpvOpTypePointer ? 3 : opcode == SpvOpTypeStruct ||
                                                                      opcode == SpvOpTypeArray ? 2 : length;
    const uint32_t end = opcode == SpvOpTypeStruct ? length : HDI_MIN(from + 1, length);
    bool any = false;
    for (uint32_t i = from; i < end; i++) any |= pointer_type(l, words[i]) != NULL;
    if (!any) return false;
    uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all);
    if (!all) return hdi_lower_refuse(l, words, "no host memory");
    memcpy(all, words, length * sizeof *all);
    for (uint32_t i = from; i < end; i++)
        if (pointer_type(l, words[i])) all[i] = p->type;
    hdi_lower_add(l, to, opcode, all + 1, length - 1);
    return true;
}

/* ---- vectors, and what is done with them ---- */

static uint32_t number(hdi_lowering *l, uint32_t value) { return hdi_lower_number(l, l->pointers->number, value); }

/* An index as an unsigned number of 32 bits; 0: it is no integer. */
static uint32_t plain_index(hdi_lowering *l, hdi_lower_words *to, uint32_t index, uint32_t id) {
    const uint32_t *words = words_of(l, index);
    const uint32_t type = words ? type_of(words) : 0, *integer = hdi_lower_def(l, type, SpvOpTypeInt, 4);
    if (!integer) return 0;
    if (type == l->pointers->number) return id;
    HDI_LOWER_ADD(l, to, integer[2] == 32 ? SpvOpBitcast : SpvOpSConvert, l->pointers->number, l->next, id);
    return l->next++;
}

/* The vector of a pointer whose place is known, behind its definition; of a variable, a constant. */
static void put_vector(hdi_lowering *l, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t id = words[2], components = 1 + HDI_MAX(p->slots, 1u);
    const bool variable = hdi_lower_opcode(words) == SpvOpVariable;
    uint32_t place_number = 0, all[2 + 1 + MOST_SLOTS] = { p->type, p->vector[id] }, at = 3, indices[MOST_INDICES];
    while (place_number < p->count && !(p->places[id] >> place_number & 1)) place_number++;
    all[2] = number(l, 1 + place_number);
    place to;
    if (!place_of(l, words, &to, indices)) to.count = 0;
    for (uint32_t i = 0; i < to.count; i++) {
        if (to.indices[i]) continue;
        const uint32_t plain = plain_index(l, &l->code, indices[i], indices[i]);
        if (!plain) hdi_lower_refuse(l, words, "index %u is no integer", indices[i]);
        if (at < HDI_COUNT(all)) all[at++] = plain;
    }
    while (at < 2 + components) all[at++] = number(l, 0);
    hdi_lower_add(l, variable ? &l->globals : &l->code,
                  variable ? SpvOpConstantComposite : SpvOpCompositeConstruct, all, 2 + components);
}

/* The indices that lead to the place behind one, in a function that is made. False: they are refused. */
static bool put_indices(hdi_lowering *l, const place *from, const way *along, const hdi_lower_given *g,
                        const uint32_t *slots, place *to, uint32_t *indices) {
    uint32_t slot = 0;
    *to = *from;
    if (!follow(l, along, to)) return false;
    for (uint32_t i = 0; i < from->count; i++) indices[i] = from->indices[i] ? from->indices[i] : slots[slot++];
    uint32_t count = from->count;
    for (uint32_t s = 0; s < along->count; s++) {
        const uint32_t *words = along->steps[s];
        const bool steps = is_step(hdi_lower_opcode(words));
        const uint32_t *element = steps ? hdi_lower_def(l, words[4], SpvOpConstant, 4) : NULL;
        if (steps && !(element && element[3] == 0)) {
            const uint32_t by = plain_index(l, &l->made, words[4], hdi_lower_given_as(g, words[4]));
            if (!by) return hdi_lower_refuse(l, words, "it steps by no integer"), false;
            indices[count - 1] = HDI_LOWER_MAKE(l, SpvOpIAdd, l->pointers->number, indices[count - 1], by);
        }
        for (uint32_t i = steps ? 5 : 4; i < hdi_lower_length(words); i++, count++) {
            indices[count] = words[i];
            if (to->indices[count]) continue;
            indices[count] = plain_index(l, &l->made, words[i], hdi_lower_given_as(g, words[i]));
            if (!indices[count]) return hdi_lower_refuse(l, words, "index %u is no integer", words[i]), false;
        }
    }
    return true;
}

/* One case: what the instruction does with that place, or (`at` 0) the vector that leads there. */
static void put_case(hdi_lowering *l, const uint32_t *words, uint32_t at, const place *from, const way *along,
                     const hdi_lower_given *g, const uint32_t *slots) {
    uint32_t indices[1 + MOST_INDICES];
    place to;
    if (!put_indices(l, from, along, g, slots, &to, indices + 1)) return;
    indices[0] = from->variable;
    if (at) {
        const uint32_t type = type_of(words_of(l, words[at]));
        const uint32_t made =
            to.count == 0 ? from->variable : hdi_lower_make(l, SpvOpAccessChain, type, indices, 1 + to.count);
        hdi_lower_put_use(l, words, at, made, g);
        return;
    }
    const uint32_t components = 1 + HDI_MAX(l->pointers->slots, 1u);
    uint32_t parts[1 + MOST_SLOTS] = { number(l, 1 + number_of(l, &to)) }, count = 1;
    if (to.slots > l->pointers->slots) return; /* an id that is defined twice */
    for (uint32_t i = 0; i < to.count; i++)
        if (!to.indices[i]) parts[count++] = indices[1 + i];
    while (count < components) parts[count++] = number(l, 0);
    const uint32_t vector = hdi_lower_make(l, SpvOpCompositeConstruct, l->pointers->type, parts, components);
    HDI_LOWER_ADD(l, &l->made, SpvOpReturnValue, vector);
}

/* The function of a use, with a case for each place that the value at the way's beginning may lead to. */
static void put_cases(hdi_lowering *l, const uint32_t *words, uint32_t at, const way *along, hdi_lower_given *g) {
    const pointers *p = l->pointers;
    const uint32_t *pointer = pointer_of(l, along->base);
    uint32_t numbers[MOST_PLACES], from_one[MOST_PLACES], labels[MOST_PLACES], slots[MOST_SLOTS], count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if ((places_at(l, along->base) >> i & 1) && pointer && fits(&p->all[i], pointer)) numbers[count++] = i;
    if (count == 0) {
        hdi_lower_refuse(l, words, "its pointer leads nowhere");
        return;
    }
    const uint32_t vector = g->ids[0];
    for (uint32_t i = 0; i < p->slots; i++)
        slots[i] = HDI_LOWER_MAKE(l, SpvOpCompositeExtract, p->number, vector, 1 + i);
    if (count == 1) {
        put_case(l, words, at, &p->all[numbers[0]], along, g, slots);
        return;
    }
    const uint32_t which = HDI_LOWER_MAKE(l, SpvOpCompositeExtract, p->number, vector, 0), merge = l->next++;
    for (uint32_t i = 0; i < count; i++) from_one[i] = 1 + numbers[i];
    hdi_lower_begin_switch(l, merge, which, from_one, count, labels);
    for (uint32_t i = 0; i < count; i++) {
        HDI_LOWER_ADD(l, &l->made, SpvOpLabel, labels[i]);
        put_case(l, words, at, &p->all[numbers[i]], along, g, slots);
    }
    hdi_lower_end_switch(l, merge);
}

/* A call of the function in the instruction's place. `at` 0: of its pointer's vector. */
static bool use(hdi_lowering *l, const uint32_t *words, uint32_t at) {
    const pointers *p = l->pointers;
    const uint32_t pointer = at ? words[at] : words[2];
    const uint32_t results = at && type_of(words) ? words[1] : at ? 0 : p->type;
    hdi_lower_given g = { 0 };
    way along;
    if (!find_way(l, pointer, &along)) return hdi_lower_refuse(l, words, "too many steps from one pointer to another");
    if (l->made_count == HDI_LOWER_MAX_FUNCTIONS)
        return hdi_lower_refuse(l, words, "more than %d uses of chosen pointers", HDI_LOWER_MAX_FUNCTIONS);
    l->functions_made[l->made_count++] = (hdi_lower_made){ 0 };
    g.values[g.count] = p->role[along.base] == VALUE ? along.base : p->vector[along.base];
    g.types[g.count++] = p->type;
    bool room = true;
    for (uint32_t s = 0; s < along.count; s++)
        for (uint32_t i = 4; i < hdi_lower_length(along.steps[s]); i++)
            room &= hdi_lower_give(l, along.steps[s][i], &g);
    room &= !at || hdi_lower_give_operands(l, words, at, &g);
    if (!room) return hdi_lower_refuse(l, words, "too many values that its pointer needs");
    const uint32_t nothing = hdi_lower_once(l, SpvOpTypeVoid, 0, NULL, 0), result = results ? results : nothing;
    const uint32_t function = hdi_lower_begin(l, result, g.types, g.count, g.ids);
    put_cases(l, words, at, &along, &g);
    hdi_lower_add(l, &l->made, SpvOpFunctionEnd, NULL, 0);
    hdi_lower_call(l, result, !at ? p->vector[pointer] : results ? words[2] : l->next++, function, &g);
    return true;
}

/* ---- instructions ---- */

/* A function whose parameters or result are vectors. */
static bool put_function(hdi_lowering *l, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t *type = hdi_lower_def(l, words[4], SpvOpTypeFunction, 3);
    uint32_t all[HDI_LOWER_MAX_OPERANDS] = { pointer_type(l, words[1]) ? p->type : words[1] }, count = 1;
    bool any = all[0] != words[1];
    for (uint32_t i = 3; type && i < hdi_lower_length(type); i++) {
        const uint32_t *parameter = parameter_of(l, words[2], i - 3);
        const bool value = parameter && parameter[2] < l->bound && p->role[parameter[2]] == VALUE;
        if (count == HDI_LOWER_MAX_OPERANDS) return any && hdi_lower_refuse(l, words, "too many parameters");
        all[count++] = value ? p->type : type[i];
        any |= value;
    }
    if (!any) return false;
    const uint32_t made = hdi_lower_once(l, SpvOpTypeFunction, 0, all, count);
    HDI_LOWER_ADD(l, &l->code, SpvOpFunction, all[0], words[2], words[3], made);
    return true;
}

/* The instruction with vectors in place of pointers; false: there are none. */
static bool put_values(hdi_lowering *l, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t length = hdi_lower_length(words), type = type_of(words), opcode = hdi_lower_opcode(words);
    const bool value = type && words[2] < l->bound && p->role[words[2]] == VALUE;
    bool any = value;
    uint32_t *all = hdi_arena_alloc(&l->arena, length * sizeof *all);
    if (!all) return hdi_lower_refuse(l, words, "no host memory");
    memcpy(all, words, length * sizeof *all);
    if (value) all[1] = p->type;
    for (hdi_spirv_operands o = hdi_lower_operands(words); hdi_spirv_next(&o);) {
        if ((o.letter != 'i' && o.letter != 'v') || o.at < (type ? 3u : 1u) || o.word >= l->bound) continue;
        if (is_value_use(l, words, o.at)) {
            if (p->vector[o.word]) all[o.at] = p->vector[o.word], any = true;
        } else if (p->role[o.word] && pointer_of(l, o.word)) {
            return hdi_lower_refuse(l, words, "a chosen pointer is read and written through, and nothing else");
        }
    }
    if (!any) return false;
    if (value && opcode == SpvOpSelect && length == 6) { /* component by component */
        const uint32_t components = 1 + HDI_MAX(p->slots, 1u), one = hdi_lower_once(l, SpvOpTypeBool, 0, NULL, 0);
        const uint32_t several = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, one, components);
        uint32_t parts[2 + 1 + MOST_SLOTS] = { several, l->next++ };
        for (uint32_t i = 0; i < components; i++) parts[2 + i] = words[3];
        hdi_lower_add(l, &l->code, SpvOpCompositeConstruct, parts, 2 + components);
        all[3] = parts[1];
    }
    hdi_lower_add(l, &l->code, opcode, all + 1, length - 1);
    return true;
}

/* The vector of an operand that is a pointer; 0: it is none. */
static uint32_t vector_of(const hdi_lowering *l, uint32_t id) {
    const pointers *p = l->pointers;
    if (id >= l->bound || !pointer_of(l, id)) return 0;
    return p->role[id] == VALUE ? id : p->vector[id];
}

/* Pointers are equal where they lead to one place by the same indices. Elements of one array differ in its index only,
 * so that the sum of all differences is how far they are from each other. */
static bool compare(hdi_lowering *l, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t opcode = hdi_lower_opcode(words), components = 1 + HDI_MAX(p->slots, 1u);
    const uint32_t a = vector_of(l, words[3]), b = vector_of(l, words[4]), id = l->next++;
    if (!a || !b) return hdi_lower_refuse(l, words, "what it compares are no pointers into buffers or shared memory");
    if (opcode != SpvOpPtrDiff) {
        const bool equal = opcode == SpvOpPtrEqual;
        const uint32_t one = hdi_lower_once(l, SpvOpTypeBool, 0, NULL, 0);
        const uint32_t several = HDI_LOWER_ONCE(l, SpvOpTypeVector, 0, one, components);
        HDI_LOWER_ADD(l, &l->code, equal ? SpvOpIEqual : SpvOpINotEqual, several, id, a, b);
        HDI_LOWER_ADD(l, &l->code, equal ? SpvOpAll : SpvOpAny, words[1], words[2], id);
        return true;
    }
    const uint32_t *integer = hdi_lower_def(l, words[1], SpvOpTypeInt, 4);
    if (!integer) return hdi_lower_refuse(l, words, "its result is no integer");
    uint32_t sum = 0;
    HDI_LOWER_ADD(l, &l->code, SpvOpISub, p->type, id, a, b);
    for (uint32_t i = 1; i < components; i++) {
        const uint32_t part = l->next++;
        HDI_LOWER_ADD(l, &l->code, SpvOpCompositeExtract, p->number, part, id, i);
        if (sum) HDI_LOWER_ADD(l, &l->code, SpvOpIAdd, p->number, l->next++, sum, part);
        sum = sum ? l->next - 1 : part;
    }
    const uint32_t as = words[1] == p->number ? SpvOpCopyObject : integer[2] == 32 ? SpvOpBitcast : SpvOpSConvert;
    HDI_LOWER_ADD(l, &l->code, as, words[1], words[2], sum);
    return true;
}

bool hdi_lower_pointer_use(hdi_lowering *l, const uint32_t *words) {
    const pointers *p = l->pointers;
    const uint32_t opcode = hdi_lower_opcode(words), length = hdi_lower_length(words);
    if (!p) return false;
    if (opcode == SpvOpFunction) return length == 5 && put_function(l, words);
    const uint32_t type = type_of(words), result = type && words[2] < l->bound ? words[2] : 0;
    if (result && p->role[result] == DERIVED) {
        l->gone[result] = 1; /* with what is said of it */
        if (p->vector[result]) use(l, words, 0);
        return true;
    }
    if (result && hdi_spirv_is_chain(opcode) && p->vector[result]) {
        hdi_lower_add(l, &l->code, opcode, words + 1, length - 1);
        put_vector(l, words);
        return true;
    }
    if (is_comparison(opcode) && length == 5) return compare(l, words);
    const uint32_t at = hdi_lower_used_pointer(words);
    if (at && words[at] < l->bound && p->role[words[at]] && pointer_of(l, words[at]))
        return use(l, words, at);
    return put_values(l, words);
}

void hdi_lower_put_variables(hdi_lowering *l) {
    for (size_t at = HDI_SPIRV_HEADER_WORDS; l->pointers && at < l->functions; at += hdi_lower_length(l->words + at)) {
        const uint32_t *words = l->words + at;
        if (hdi_lower_opcode(words) == SpvOpVariable && hdi_lower_length(words) > 3 && words[2] < l->bound &&
            l->pointers->vector[words[2]])
            put_vector(l, words);
    }
}
