/* fuzz_route.c: a line of any bytes as a route text for the program that the rest of them is, if it is one. What is taken places every
 * node on one of three devices or by a share that it can have, and its segments hold together; every failure is said.
 * options: -dict=tests/fuzz/program.dict */
#include "program/segments.h"
#include <stdlib.h>
#include "lines.h"

static const char fallback[] = "heddle 1\nx = input f32[4,4] \"x\"\ns = softmax x axis=1\nm = matmul s x\noutput m \"y\"\n";

enum { DEVICES = 3 };

static bool is_place(const hd_program *p, hd_value value, const hdi_placement *placement) {
    const hdi_place *place = &placement->of[value - 1];
    if (place->device >= DEVICES || place->share > placement->share_count) return false;
    return place->share == 0 || !hdi_share_why_not(p, value, placement->shares[place->share - 1].axis);
}

static void check_places(const hd_program *p, const hdi_placement *placement) {
    for (uint32_t i = 0; i < p->node_count; i++)
        if (!is_place(p, i + 1, placement)) abort();
}

/* The segments of a settled placement. */
static void cut(const hd_program *p, const hdi_placement *placement, hd_error *error) {
    hdi_split split;
    hdi_segments segments;
    hd_status status = hdi_split_make(p, placement, &split, error);
    for (uint32_t i = 0; split.program && i < split.program->node_count && !status; i++)
        if (split.placement.of[i].share || split.placement.of[i].device >= DEVICES) abort();
    if (!status && !hdi_segments_cut(split.program ? split.program : p, split.program ? &split.placement : placement, &segments, error)) {
        for (uint32_t s = 0; s < segments.count; s++)
            if (segments.items[s].device >= DEVICES || hdi_program_check(segments.items[s].program, NULL)) abort();
        hdi_segments_free(&segments);
    }
    hdi_split_free(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char route[256];
    const uint8_t *end = memchr(data, '\n', size);
    const size_t length = end ? (size_t)(end - data) : size, kept = HDI_MIN(length, sizeof route - 1);
    if (kept > 0) memcpy(route, data, kept);
    route[kept] = 0;
    const char *text = end ? (const char *)end + 1 : "";
    hd_error error = { 0 };
    hd_program *p = hdi_program_new(&hdi_default_allocator, NULL);
    if (!p) return 0;
    if (hdi_program_parse(p, text, size - HDI_MIN(size, length + 1), NULL, NULL, NULL) || hdi_program_check(p, NULL)) {
        hdi_program_free(p);
        p = hdi_program_new(&hdi_default_allocator, NULL);
        if (!p || hdi_program_parse(p, fallback, sizeof fallback - 1, NULL, NULL, &error) || hdi_program_check(p, &error)) abort();
    }
    static const char *const ids[DEVICES] = { "cpu", "gpu", "third" };
    hdi_placement placement = { 0 };
    hd_status status = hdi_placement_parse(p, route, ids, DEVICES, &placement, &error);
    if (status != error.status) abort();
    if (!status) check_places(p, &placement);
    if (!status) keep_text(data, size);
    if (!status) status = hdi_placement_settle(p, (const bool[DEVICES]){ true, true, true }, &placement, &error);
    if (!status) check_places(p, &placement);
    if (!status) cut(p, &placement, &error);
    hdi_placement_free(&placement);
    hdi_program_free(p);
    return 0;
}

/* Every other change is of the route. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    if (!end || size > room || seed % 2) return change_line(data, size, room, seed / 2);
    return change_part(data, size, room, 0, (size_t)(end - data));
}
