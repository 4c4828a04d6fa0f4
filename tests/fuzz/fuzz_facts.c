/* fuzz_facts.c: any bytes as the file of what is known of a device. Every figure stays a finite number that is not negative, and what was taken
 * prints to a text that reads back with nothing refused.
 * options: -max_len=4096 -dict=tests/fuzz/facts.dict */
#include "facts/facts.h"
#include <math.h>
#include <stdlib.h>
#include "lines.h"

static void check(const hdi_figure *f) {
    if (!(f->fixed_ns >= 0) || !(f->ns_per_flop >= 0) || !(f->ns_per_byte >= 0) || !isfinite(hdi_figure_ns(f, 1e12, 1e12)) || !(f->error >= 0)) abort();
    if (f->knots > HDI_CURVE_KNOTS) abort();
    for (uint32_t i = 0; i < f->knots; i++)
        if (!(hdi_figure_factor(f, f->line_ns[i]) > 0) || (i > 0 && !(f->line_ns[i] > f->line_ns[i - 1]))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const hdi_caps caps = { .gflops = 100, .gbytes_s = 10 };
    hdi_facts t = { .machine = "m", .device = "d", .driver = "v", .kernels = 7 }, again;
    hdi_text text = { .allocator = &hdi_default_allocator }, second = { .allocator = &hdi_default_allocator };
    hdi_figures_assume(&caps, true, &t.figures);
    again = t;
    hdi_facts_parse((const char *)data, size, &t);
    check(&t.figures.submit);
    check(&t.figures.upload);
    check(&t.figures.download);
    for (int family = 0; family < HDI_KIND_COUNT; family++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++) {
            check(&t.figures.ops[family][width]);
            check(&t.figures.writes[family][width]);
            check(&t.figures.reads[family][width]);
        }
    hdi_facts_print(&t, &text);
    if (text.count > HDI_FACTS_BYTES || hdi_facts_parse(text.bytes, text.count, &again)) abort();
    hdi_facts_print(&again, &second);
    if (strlen(text.bytes) != strlen(second.bytes)) abort();
    hdi_text_free(&text);
    hdi_text_free(&second);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) { return change_line(data, size, room, seed); }
