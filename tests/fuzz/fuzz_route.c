/* fuzz_route.c: a line of any bytes as a route text for the program that the rest of them is, if it is one. What is taken places every
 * node on one of the two devices or by its rows on both, and its segments hold together; every failure is said.
 * options: -dict=tests/fuzz/program.dict */
#include "program/segments.h"
#include <stdlib.h>

static const char fallback[] = "heddle 1\nx = input f32[4,4] \"x\"\ns = softmax x axis=1\nm = matmul s x\noutput m \"y\"\n";

static bool is_share(const hd_program *p, hd_value value, uint8_t place) {
    const unsigned percent = place & ~HDI_PLACE_SHARED;
    return place & HDI_PLACE_SHARED && percent > 0 && percent < 100 && !hdi_rows_why_not(p, value);
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
    uint8_t *places = hdi_alloc(&hdi_default_allocator, p->node_count);
    const bool both[2] = { true, true };
    hd_status status = places ? hdi_places_parse(p, route, places, &error) : HD_STATUS_OUT_OF_HOST_MEMORY;
    if (status != error.status && places) abort();
    for (uint32_t i = 0; i < p->node_count && !status; i++)
        if ((places[i] & ~HDI_PLACE_NAMED) > 1 && !is_share(p, i + 1, places[i])) abort();
    if (!status) status = hdi_places_settle(p, both, places, &error);
    for (uint32_t i = 0; i < p->node_count && !status; i++)
        if (places[i] > 1 && !is_share(p, i + 1, places[i])) abort();
    hdi_split split = { 0 };
    hdi_segments segments;
    if (!status) status = hdi_split_make(p, places, &split, &error);
    for (uint32_t i = 0; split.program && i < split.program->node_count && !status; i++)
        if (split.places[i] > 1) abort();
    if (!status && !hdi_segments_cut(split.program ? split.program : p, split.program ? split.places : places, &segments, &error)) {
        for (uint32_t s = 0; s < segments.count; s++)
            if (segments.items[s].device > 1 || hdi_program_check(segments.items[s].program, NULL)) abort();
        hdi_segments_free(&segments);
    }
    hdi_split_free(&split);
    hdi_free(&hdi_default_allocator, places, p->node_count);
    hdi_program_free(p);
    return 0;
}
