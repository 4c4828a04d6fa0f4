/* places.c: where each operation runs, as a text says it, and corrected to what is possible. */
#include "program/attrs.h"
#include "program/segments.h"

enum { ITEM_LIMIT = 1024, PART_LIMIT = 1000000 };

static hd_status no_memory(hd_error *error) {
    return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place operations");
}
static bool is_source(const hdi_node *node) { return node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE; }

/* ---- placements ---- */

hd_status hdi_placement_new(const hd_program *program, uint32_t device_count, hdi_placement *out, hd_error *error) {
    *out = (hdi_placement){ .allocator = program->allocator,
                            .device_count = device_count,
                            .node_count = program->node_count };
    out->of = hdi_alloc(out->allocator, program->node_count * sizeof *out->of);
    return out->of || program->node_count == 0 ? HD_OK : no_memory(error);
}

void hdi_placement_free(hdi_placement *placement) {
    if (!placement->allocator) return;
    hdi_free(placement->allocator, placement->of, placement->node_count * sizeof *placement->of);
    hdi_free(placement->allocator, placement->shares, placement->share_capacity * sizeof *placement->shares);
    *placement = (hdi_placement){ 0 };
}

hd_status hdi_placement_copy(const hdi_placement *from, hdi_placement *out, hd_error *error) {
    *out = (hdi_placement){ .allocator = from->allocator,
                            .device_count = from->device_count,
                            .node_count = from->node_count };
    out->of = hdi_alloc(out->allocator, from->node_count * sizeof *out->of);
    if (!out->of && from->node_count) return no_memory(error);
    if (from->node_count) memcpy(out->of, from->of, from->node_count * sizeof *out->of);
    for (uint32_t i = 0; i < from->share_count; i++) {
        uint32_t share;
        const hd_status status = hdi_placement_share(out, &from->shares[i], &share, error);
        if (status) return status;
    }
    return HD_OK;
}

hd_status hdi_placement_share(hdi_placement *placement, const hdi_share *share, uint32_t *out_share, hd_error *error) {
    for (uint32_t i = 0; i < placement->share_count; i++)
        if (memcmp(&placement->shares[i], share, sizeof *share) == 0) {
            *out_share = i + 1;
            return HD_OK;
        }
    if (!hdi_grow(placement->allocator, &placement->shares, &placement->share_capacity,
                  (size_t)placement->share_count + 1, sizeof *placement->shares))
        return no_memory(error);
    placement->shares[placement->share_count++] = *share;
    *out_share = placement->share_count;
    return HD_OK;
}

uint64_t hdi_placement_hash(uint64_t hash, const hdi_placement *placement) {
    for (uint32_t i = 0; i < placement->node_count; i++) {
        const hdi_place *of = &placement->of[i];
        const uint32_t place[3] = { of->share ? 0 : of->device, of->share, of->arrives };
        hash = hdi_hash(hash, place, sizeof place);
    }
    return hdi_hash(hash, placement->shares, placement->share_count * sizeof *placement->shares);
}

/* ---- texts ---- */

/* What an item of the text is about: an operation, or values first..last. */
typedef struct subject {
    hdi_op   op; /* HDI_OP_NONE: any */
    hd_value first, last;
    bool     rest, inputs; /* inputs: those among first..last, and nothing else */
} subject;
static const char inputs_word[] = "input:";

typedef struct parsing {
    const hd_program  *program;
    const char        *text;
    const char *const *ids;
    hdi_placement     *out;
    bool              *placed; /* of each node */
    hd_error          *error;
} parsing;

static bool is_word(const char *word, const char *text, size_t bytes) {
    return strlen(word) == bytes && memcmp(word, text, bytes) == 0;
}

/* Digits at the text's beginning; returns how many, 0 where there are none or the number is above `most`. */
static size_t read_number(const char *text, size_t bytes, uint64_t most, uint32_t *out_number) {
    uint64_t number = 0;
    size_t at = 0;
    for (; at < bytes && text[at] >= '0' && text[at] <= '9' && number <= most; at++)
        number = number * 10 + (uint64_t)(text[at] - '0');
    if (number > most) return 0;
    *out_number = (uint32_t)number;
    return at;
}

/* "v12" at the text's beginning; returns its bytes, 0 where there is none. */
static size_t read_value(const char *text, size_t bytes, hd_value *out_value) {
    const size_t digits = bytes > 1 && text[0] == 'v' ? read_number(text + 1, bytes - 1, UINT32_MAX, out_value) : 0;
    return digits ? digits + 1 : 0;
}

/* Values are named as programs print them, or as callers have them, by a hd_value. */
static uint32_t number_of(const hd_program *program, uint32_t value) {
    return value >> HDI_ID_BITS == program->tag ? hdi_value_id(program->tag, value) : value;
}

static hd_status read_subject(const parsing *p, size_t at, size_t bytes, subject *out) {
    const hd_program *program = p->program;
    const char *text = p->text + at;
    *out = (subject){ HDI_OP_NONE, 1, program->node_count, is_word("rest", text, bytes), false };
    if (out->rest) return HD_OK;
    const size_t word = sizeof inputs_word - 1;
    out->inputs = bytes > word && memcmp(text, inputs_word, word) == 0;
    if (out->inputs) text += word, at += word, bytes -= word;
    const size_t read = read_value(text, bytes, &out->first);
    if (read == 0) {
        out->op = hdi_op_find(text, bytes);
        if (out->inputs || out->op == HDI_OP_NONE || out->op == HDI_OP_INPUT || out->op == HDI_OP_STATE)
            return hdi_fail(p->error, HD_STATUS_PARSE,
                            "route: byte %zu: here stands an operation's name, a value such as v12, "
                            "a range such as v3-v9, or \"rest\"",
                            at + 1);
        return HD_OK;
    }
    out->first = number_of(program, out->first);
    out->last = out->first;
    const bool range = read < bytes;
    if (range && (text[read] != '-' || read_value(text + read + 1, bytes - read - 1, &out->last) != bytes - read - 1 ||
                  bytes == read + 1))
        return hdi_fail(p->error, HD_STATUS_PARSE, "route: byte %zu: a value is v12, and a range v3-v9", at + 1);
    out->last = number_of(program, out->last);
    if (out->first == 0 || out->first > out->last || out->last > program->node_count)
        return hdi_fail(p->error, HD_STATUS_PARSE,
                        "route: byte %zu: the program's values are v1 to v%u, the lower one first", at + 1,
                        program->node_count);
    if (!range && !out->inputs && is_source(&program->nodes[out->first - 1]))
        return hdi_fail(p->error, HD_STATUS_PARSE,
                        "route: byte %zu: v%u is an input or a state: it lies where it is read; "
                        "an input that is to lie elsewhere is input:v%u",
                        at + 1, out->first, out->first);
    return HD_OK;
}

static const char *axis_name(hdi_share_axis axis) {
    static const char *const names[HDI_SHARE_AXES] = { "rows", "columns", "terms" };
    return names[axis];
}

/* "rows:60:40": a part for each device, not all of them 0. False: the text is something else. */
static bool read_share(const parsing *p, const char *text, size_t bytes, hdi_share *out) {
    memset(out, 0, sizeof *out);
    const char *colon = memchr(text, ':', bytes);
    uint64_t sum = 0;
    int axis = 0;
    while (axis < HDI_SHARE_AXES &&
           (!colon || !is_word(axis_name((hdi_share_axis)axis), text, (size_t)(colon - text))))
        axis++;
    if (axis == HDI_SHARE_AXES) return false;
    out->axis = (hdi_share_axis)axis;
    size_t at = (size_t)(colon - text);
    for (uint32_t d = 0; d < p->out->device_count; d++) {
        const size_t read =
            at < bytes && text[at] == ':' ? read_number(text + at + 1, bytes - at - 1, PART_LIMIT, &out->parts[d]) : 0;
        if (read == 0) return false;
        at += 1 + read;
        sum += out->parts[d];
    }
    return at == bytes && sum > 0;
}

/* A device's number or name. A back end's name alone is that of its only device. */
static bool read_device(const parsing *p, const char *text, size_t bytes, uint32_t *out_device) {
    uint32_t found = 0;
    if (bytes && read_number(text, bytes, HDI_MOST_DEVICES, out_device) == bytes)
        return *out_device < p->out->device_count;
    for (uint32_t pass = 0; pass < 2 && found == 0; pass++) /* the whole name first */
        for (uint32_t d = p->out->device_count; d-- > 0;) {
            const char *id = p->ids ? p->ids[d] : "";
            const size_t length = pass ? strcspn(id, ":") : strlen(id);
            if (length != bytes || memcmp(id, text, bytes) != 0) continue;
            *out_device = d;
            found++;
        }
    return found == 1;
}

static hd_status read_place(const parsing *p, size_t at, size_t bytes, hdi_place *out) {
    hdi_share share;
    *out = (hdi_place){ 0 };
    if (read_device(p, p->text + at, bytes, &out->device)) return HD_OK;
    if (read_share(p, p->text + at, bytes, &share)) return hdi_placement_share(p->out, &share, &out->share, p->error);
    return hdi_fail(p->error, HD_STATUS_PARSE,
                    "route: byte %zu: here stands a device, 0 to %u or its name, or a share with a part for "
                    "each of them, such as rows:60:40",
                    at + 1, p->out->device_count - 1);
}

/* Gives the place to all that the item is about and no earlier one was. */
static hd_status put(const parsing *p, const subject *about, hdi_place place) {
    const hd_program *program = p->program;
    for (hd_value v = about->first; v <= about->last; v++) {
        const hdi_node *node = &program->nodes[v - 1];
        if (p->placed[v - 1] || (about->op != HDI_OP_NONE && node->op != about->op)) continue;
        if ((node->op == HDI_OP_INPUT) != about->inputs) continue;
        const hdi_share_axis axis = place.share ? p->out->shares[place.share - 1].axis : HDI_SHARE_ROWS;
        const char *why_not = place.share ? hdi_share_why_not(program, v, axis) : NULL;
        if (why_not && about->op == HDI_OP_NONE && !about->rest && about->first == about->last)
            return hdi_fail(p->error, HD_STATUS_UNSUPPORTED, "route: v%u %s cannot be shared by %s: %s", v,
                            hdi_op_get(node->op).name, axis_name(axis), why_not);
        p->placed[v - 1] = true;
        if (why_not) continue;
        p->out->of[v - 1] = place;
        p->out->of[v - 1].named = !about->rest && !place.share;
    }
    return HD_OK;
}

static hd_status parse_items(const parsing *p) {
    const size_t length = strlen(p->text);
    bool arrivals = false;
    size_t at = 0;
    for (uint32_t items = 0; at <= length; items++) {
        const size_t item = strcspn(p->text + at, ","), what = strcspn(p->text + at, "=,");
        subject about;
        hdi_place place;
        if (items == ITEM_LIMIT) return hdi_fail(p->error, HD_STATUS_LIMIT, "route: more than %d items", ITEM_LIMIT);
        if (what == item)
            return hdi_fail(p->error, HD_STATUS_PARSE, "route: byte %zu: an item is WHAT=DEVICE or WHAT=rows:60:40",
                            at + what + 1);
        hd_status status = read_place(p, at + what + 1, item - what - 1, &place);
        if (!status) status = read_subject(p, at, what, &about);
        if (status) return status;
        if (about.inputs && place.share)
            return hdi_fail(p->error, HD_STATUS_PARSE, "route: byte %zu: an input lies on one device", at + 1);
        place.arrives = about.inputs ? items + 1 : 0;
        arrivals = arrivals || about.inputs;
        status = put(p, &about, place);
        if (status) return status;
        at += item + 1;
    }
    if (arrivals && p->out->share_count)
        return hdi_fail(p->error, HD_STATUS_UNSUPPORTED,
                        "route: devices share no operation where inputs lie elsewhere");
    return HD_OK;
}

hd_status hdi_placement_parse(const hd_program *program, const char *text, const char *const *ids,
                              uint32_t device_count, hdi_placement *out, hd_error *error) {
    hd_status status = hdi_placement_new(program, device_count, out, error);
    const parsing p = { program, text, ids, out, hdi_alloc(program->allocator, program->node_count), error };
    if (!status && !p.placed) status = no_memory(error);
    if (!status) status = parse_items(&p);
    hdi_free(program->allocator, p.placed, program->node_count);
    return status;
}

static void print_place(const hdi_placement *placement, const hdi_place *place, hdi_text *out) {
    if (!place->share) {
        hdi_text_add(out, "=%u,", place->device);
        return;
    }
    const hdi_share *share = &placement->shares[place->share - 1];
    hdi_text_add(out, "=%s", axis_name(share->axis));
    for (uint32_t d = 0; d < placement->device_count; d++) hdi_text_add(out, ":%u", share->parts[d]);
    hdi_text_add(out, ",");
}

/* Inputs that arrive together: an item of the text, whose number is theirs. */
static void print_arrivals(const hd_program *program, const hdi_placement *placement, hdi_text *out) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < program->node_count; i++) most = HDI_MAX(most, placement->of[i].arrives);
    for (uint32_t number = 1; number <= most; number++) {
        hd_value first = 0, last = 0;
        for (hd_value v = 1; v <= program->node_count; v++)
            if (placement->of[v - 1].arrives == number) first = first ? first : v, last = v;
        if (first == 0) continue;
        hdi_text_add(out, "%sv%u-v%u", inputs_word, first, last);
        print_place(placement, &placement->of[first - 1], out);
    }
}

void hdi_placement_print(const hd_program *program, const hdi_placement *placement, hdi_text *out) {
    print_arrivals(program, placement, out);
    for (hd_value v = 1; v <= program->node_count; v++) {
        const hdi_place *place = &placement->of[v - 1];
        hd_value last = v;
        if (is_source(&program->nodes[v - 1]) || (place->device == 0 && !place->share)) continue;
        for (hd_value next = v + 1; next <= program->node_count; next++) {
            const hdi_place *other = &placement->of[next - 1];
            if (is_source(&program->nodes[next - 1])) continue;
            if (other->share != place->share || (!place->share && other->device != place->device)) break;
            last = next;
        }
        hdi_text_add(out, "v%u-v%u", v, last);
        print_place(placement, place, out);
        v = last;
    }
    hdi_text_add(out, "rest=0");
}

/* ---- what is possible ---- */

/* States that one operation touches lie together: sets of them, each with what was asked for. All but `state` and
 * `leader` are those of the set's leader. */
typedef struct state_set {
    hd_value state;   /* of each value: the state that it is, or 0 */
    hd_value leader;  /* of each state: another one of its set, or itself */
    hd_value named;   /* an operation of the set that was asked for by name, or 0 */
    uint32_t touched[HDI_MOST_DEVICES]; /* operations there */
} state_set;

static hd_value leader_of(state_set *sets, hd_value state) {
    while (sets[state].leader != state) state = sets[state].leader = sets[sets[state].leader].leader;
    return state;
}

/* The leader of all states that a node touches; 0: none. `joining`: makes one set of them first. */
static hd_value set_of(const hdi_node *node, state_set *sets, bool joining) {
    hd_value leader = 0;
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const hd_value state = sets[node->operands[k]].state, other = state ? leader_of(sets, state) : 0;
        if (leader == 0) leader = other;
        if (joining && other) sets[other].leader = leader;
    }
    return leader;
}

/* The CPU runs a user's kernel slowly: it goes elsewhere, unless it was placed there by name. */
static void place_user_kernel(const bool *runs_fast, uint32_t device_count, hdi_place *place) {
    uint32_t device = 0;
    while (device < device_count && !runs_fast[device]) device++;
    if (!runs_fast[place->device] && device < device_count && !place->named)
        *place = (hdi_place){ .device = device, .named = true };
}

static void find_states(const hd_program *program, state_set *sets) {
    for (hd_value v = 1; v <= program->node_count; v++) {
        const hdi_node *node = &program->nodes[v - 1];
        if (node->op == HDI_OP_STATE) sets[v].state = sets[v].leader = v;
        if (hdi_op_writes_state(node->op)) sets[v].state = sets[node->operands[0]].state;
        set_of(node, sets, true);
    }
}

static uint32_t home_of(const state_set *set, const hdi_placement *placement) {
    uint32_t most = 0;
    if (set->named) return placement->of[set->named - 1].device;
    for (uint32_t d = 1; d < placement->device_count; d++)
        if (set->touched[d] > set->touched[most]) most = d;
    return most;
}

static hd_status settle_states(const hd_program *program, state_set *sets, hdi_placement *placement, hd_error *error) {
    find_states(program, sets);
    for (hd_value v = 1; v <= program->node_count; v++) {
        const hd_value leader = set_of(&program->nodes[v - 1], sets, false);
        const hdi_place *place = &placement->of[v - 1];
        if (leader == 0) continue;
        state_set *set = &sets[leader];
        set->touched[place->device]++;
        if (!place->named) continue;
        if (set->named && placement->of[set->named - 1].device != place->device)
            return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                            "route: state \"%s\": v%u is placed on device %u and v%u on device %u; "
                            "all that touches a state is on one device",
                            program->nodes[leader - 1].name, set->named, placement->of[set->named - 1].device, v,
                            place->device);
        set->named = v;
    }
    for (hd_value v = 1; v <= program->node_count; v++) {
        const hd_value leader = sets[v].state == v ? leader_of(sets, v) : set_of(&program->nodes[v - 1], sets, false);
        if (leader && sets[v].state == v)
            placement->of[v - 1] = (hdi_place){ .device = home_of(&sets[leader], placement) };
        else if (leader)
            placement->of[v - 1] =
                (hdi_place){ .device = home_of(&sets[leader], placement), .named = placement->of[v - 1].named };
    }
    return HD_OK;
}

hd_status hdi_placement_settle(const hd_program *program, const bool *fast_with_user_kernels, hdi_placement *inout,
                               hd_error *error) {
    const size_t bytes = ((size_t)program->node_count + 1) * sizeof(state_set);
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH)
            place_user_kernel(fast_with_user_kernels, inout->device_count, &inout->of[i]);
    state_set *sets = hdi_alloc(program->allocator, bytes);
    const hd_status status = sets ? settle_states(program, sets, inout, error) : no_memory(error);
    for (uint32_t i = 0; i < program->node_count; i++) inout->of[i].named = false;
    hdi_free(program->allocator, sets, bytes);
    return status;
}
