/* places.c: which of two devices each operation goes to: as a text says it, and corrected to what is possible. */
#include "program/attrs.h"
#include "program/segments.h"
#include <stdlib.h>

enum { ITEM_LIMIT = 1024, NOT_PLACED = 0xFF };

static bool is_source(const hdi_node *node) { return node->op == HDI_OP_INPUT || node->op == HDI_OP_STATE; }

/* ---- texts ---- */

/* What an item of the text is about: an operation, or values first..last. */
typedef struct subject {
    hdi_op   op; /* HDI_OP_NONE: any */
    hd_value first, last;
    bool     rest;
} subject;

static bool is_word(const char *word, const char *text, size_t bytes) { return strlen(word) == bytes && memcmp(word, text, bytes) == 0; }

/* "v12" at the text's beginning; returns its bytes, 0 where there is none. */
static size_t read_value(const char *text, size_t bytes, hd_value *out_value) {
    uint64_t value = 0;
    size_t at = 1;
    if (bytes < 2 || text[0] != 'v') return 0;
    for (; at < bytes && text[at] >= '0' && text[at] <= '9' && value < UINT32_MAX; at++) value = value * 10 + (uint64_t)(text[at] - '0');
    if (at == 1 || value > UINT32_MAX) return 0;
    *out_value = (hd_value)value;
    return at;
}

static hd_status read_subject(const hd_program *program, const char *text, size_t at, size_t bytes, subject *out, hd_error *error) {
    *out = (subject){ HDI_OP_NONE, 1, program->node_count, is_word("rest", text + at, bytes) };
    if (out->rest) return HD_OK;
    size_t read = read_value(text + at, bytes, &out->first);
    if (read == 0) {
        out->op = hdi_op_find(text + at, bytes);
        if (out->op == HDI_OP_NONE || out->op == HDI_OP_INPUT || out->op == HDI_OP_STATE)
            return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: here stands an operation's name, a value such as v12, a range such as v3-v9, or \"rest\"", at + 1);
        return HD_OK;
    }
    out->last = out->first;
    const bool range = read < bytes;
    if (range && (text[at + read] != '-' || bytes == read + 1 || read_value(text + at + read + 1, bytes - read - 1, &out->last) != bytes - read - 1))
        return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: a value is v12, and a range v3-v9", at + 1);
    if (out->first == 0 || out->first > out->last || out->last > program->node_count)
        return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: the program's values are v1 to v%u, the lower one first", at + 1, program->node_count);
    if (!range && is_source(&program->nodes[out->first - 1]))
        return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: v%u is an input or a state: it lies where it is read", at + 1, out->first);
    return HD_OK;
}

/* "device", "beside" or "60%". */
static bool read_place(const char *text, size_t bytes, uint8_t *out_place) {
    unsigned percent = 0;
    *out_place = is_word("beside", text, bytes);
    if (*out_place || is_word("device", text, bytes)) return true;
    if (bytes < 2 || bytes > 3 || text[bytes - 1] != '%') return false;
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        percent = percent * 10 + (unsigned)(text[i] - '0');
    }
    *out_place = HDI_PLACE_SHARE(percent);
    return percent > 0;
}

/* Gives the place to all that the item is about and no earlier one was. */
static hd_status put(const hd_program *program, const subject *about, uint8_t place, uint8_t *places, hd_error *error) {
    const bool shared = place & HDI_PLACE_SHARED;
    for (hd_value v = about->first; v <= about->last; v++) {
        if (places[v - 1] != NOT_PLACED || (about->op != HDI_OP_NONE && program->nodes[v - 1].op != about->op)) continue;
        const char *why_not = shared ? hdi_rows_why_not(program, v) : NULL;
        if (why_not && about->op == HDI_OP_NONE && !about->rest && about->first == about->last)
            return hdi_fail(error, HD_STATUS_UNSUPPORTED, "route: v%u %s cannot be shared by rows: %s", v, hdi_op_get(program->nodes[v - 1].op).name, why_not);
        if (shared) places[v - 1] = why_not ? 0 : place;
        else places[v - 1] = (uint8_t)(place | (about->rest ? 0 : HDI_PLACE_NAMED));
    }
    return HD_OK;
}

hd_status hdi_places_parse(const hd_program *program, const char *text, uint8_t *out_places, hd_error *error) {
    size_t length = strlen(text), at = 0;
    memset(out_places, NOT_PLACED, program->node_count);
    for (uint32_t items = 0;; items++) {
        size_t item = strcspn(text + at, ","), what = strcspn(text + at, "=,");
        const char *where = text + at + what + 1;
        subject about;
        if (items == ITEM_LIMIT) return hdi_fail(error, HD_STATUS_LIMIT, "route: more than %d items", ITEM_LIMIT);
        if (what == item) return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: an item is WHAT=device, WHAT=beside or WHAT=60%%", at + what + 1);
        uint8_t place;
        if (!read_place(where, item - what - 1, &place))
            return hdi_fail(error, HD_STATUS_PARSE, "route: byte %zu: here stands \"device\", \"beside\", or the device's share of the rows, 1%% to 99%%", at + what + 2);
        hd_status status = read_subject(program, text, at, what, &about, error);
        if (!status) status = put(program, &about, place, out_places, error);
        if (status) return status;
        at += item + 1;
        if (at > length) break;
    }
    for (uint32_t i = 0; i < program->node_count; i++)
        if (out_places[i] == NOT_PLACED) out_places[i] = 0;
    return HD_OK;
}

/* ---- what is possible ---- */

/* States that one operation touches lie together: sets of them, each with what was asked for. All but `state` and `leader`
 * are those of the set's leader. */
typedef struct state_set {
    hd_value state;      /* of each value: the state that it is, or 0 */
    hd_value leader;     /* of each state: another one of its set, or itself */
    hd_value named[2];   /* an operation that was asked for on the device, or 0 */
    uint32_t touched[2]; /* operations there */
} state_set;

static hd_value leader_of(state_set *sets, hd_value state) {
    while (sets[state].leader != state) state = sets[state].leader = sets[sets[state].leader].leader;
    return state;
}

/* The leader of all states that a node touches; 0: none. `joining`: makes one set of them first. */
static hd_value set_of(const hdi_node *node, state_set *sets, bool joining) {
    hd_value leader = 0;
    for (uint32_t k = 0; k < node->operand_count; k++) {
        hd_value state = sets[node->operands[k]].state, other = state ? leader_of(sets, state) : 0;
        if (leader == 0) leader = other;
        if (joining && other) sets[other].leader = leader;
    }
    return leader;
}

static hd_status place_user_kernel(hd_value value, const bool runs_user_kernels[2], uint8_t *place, hd_error *error) {
    const unsigned device = *place & 1;
    if (runs_user_kernels[device] || !runs_user_kernels[!device]) return HD_OK; /* or no plan takes it, and says why */
    if (*place & HDI_PLACE_NAMED)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "route: v%u is a kernel of your own, and the %s does not run SPIR-V; place it on the other one", value,
                        device ? "second device" : "device");
    *place = (uint8_t)((1 - device) | HDI_PLACE_NAMED);
    return HD_OK;
}

static hd_status settle_states(const hd_program *program, state_set *sets, uint8_t *places, hd_error *error) {
    for (hd_value v = 1; v <= program->node_count; v++) {
        const hdi_node *node = &program->nodes[v - 1];
        if (node->op == HDI_OP_STATE) sets[v].state = sets[v].leader = v;
        if (hdi_op_writes_state(node->op)) sets[v].state = sets[node->operands[0]].state;
        set_of(node, sets, true);
    }
    for (hd_value v = 1; v <= program->node_count; v++) {
        hd_value leader = set_of(&program->nodes[v - 1], sets, false);
        const unsigned device = places[v - 1] & 1;
        if (leader == 0) continue;
        sets[leader].touched[device]++;
        if (places[v - 1] & HDI_PLACE_NAMED) sets[leader].named[device] = v;
        if (sets[leader].named[0] && sets[leader].named[1])
            return hdi_fail(error, HD_STATUS_UNSUPPORTED, "route: state \"%s\": v%u is placed on the device and v%u beside it; all that touches a state is on one device",
                            program->nodes[leader - 1].name, sets[leader].named[0], sets[leader].named[1]);
    }
    for (hd_value v = 1; v <= program->node_count; v++) {
        hd_value leader = set_of(&program->nodes[v - 1], sets, false);
        if (sets[v].state == v) leader = leader_of(sets, v);
        if (leader == 0) continue;
        const state_set *set = &sets[leader];
        places[v - 1] = set->named[0] || set->named[1] ? set->named[1] != 0 : set->touched[1] > set->touched[0];
    }
    return HD_OK;
}

hd_status hdi_places_settle(const hd_program *program, const bool runs_user_kernels[2], uint8_t *inout_places, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < program->node_count && !status; i++)
        if (program->nodes[i].op == HDI_OP_DISPATCH) status = place_user_kernel(i + 1, runs_user_kernels, &inout_places[i], error);
    if (status) return status;
    state_set *sets = hdi_alloc(program->allocator, ((size_t)program->node_count + 1) * sizeof *sets);
    if (!sets) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to place %u operations", program->node_count);
    status = settle_states(program, sets, inout_places, error);
    for (uint32_t i = 0; i < program->node_count; i++)
        if (!(inout_places[i] & HDI_PLACE_SHARED)) inout_places[i] &= 1; /* a shared one touches no state */
    hdi_free(program->allocator, sets, ((size_t)program->node_count + 1) * sizeof *sets);
    return status;
}
