/* figures.c: what a device takes for work: by its figures where it was measured, else by what its facts make likely. */
#include "facts/facts.h"
#include <math.h>

double hdi_figure_line(const hdi_figure *figure, double flops, double bytes) {
    return figure->fixed_ns + flops * figure->ns_per_flop + bytes * figure->ns_per_byte;
}

double hdi_figure_beyond(const hdi_figure *f, double line_ns) {
    return HDI_MAX(line_ns - f->fixed_ns, HDI_MAX(1e-4 * f->fixed_ns, 1));
}

double hdi_figure_factor(const hdi_figure *f, double line_ns) {
    uint32_t above = 0;
    while (above < f->knots && f->line_ns[above] < line_ns) above++;
    if (f->knots == 0) return 1;
    if (above == 0) return f->factor[0];
    if (above == f->knots) return f->factor[f->knots - 1];
    const double from = hdi_figure_beyond(f, f->line_ns[above - 1]), to = hdi_figure_beyond(f, f->line_ns[above]);
    if (!(to > from)) return f->factor[above];
    const double share = log(hdi_figure_beyond(f, line_ns) / from) / log(to / from);
    return exp(log(f->factor[above - 1]) * (1 - share) + log(f->factor[above]) * share);
}

double hdi_figure_ns(const hdi_figure *figure, double flops, double bytes) {
    const double line_ns = hdi_figure_line(figure, flops, bytes);
    return line_ns * hdi_figure_factor(figure, line_ns);
}

/* Arithmetic that a kind reaches, as a share of the device's rate: products use it best, the rest waits for memory
 * anyhow. */
static double share_of_rate(hdi_op_kind kind) {
    switch (kind) {
    case HDI_KIND_MATMUL: return 0.4;
    case HDI_KIND_ATTENTION: return 0.1;
    default: return 0.2;
    }
}

/* The CPU's kernels: two multiplications with their additions for each lane of a vector at 2.5 GHz; each thread moves
 * 10 GB/s, as long as there are few. */
static void rates_of(const hdi_caps *caps, double *out_flops_per_ns, double *out_bytes_per_ns) {
    const uint64_t lanes = caps->simd_bytes / 4;
    *out_flops_per_ns = (double)HDI_MAX(caps->native_kernels ? caps->threads * lanes * 10 : caps->gflops, 1);
    *out_bytes_per_ns = (double)HDI_MAX(caps->native_kernels ? HDI_MIN(caps->threads, 8) * 10 : caps->gbytes_s, 1);
}

void hdi_figures_assume(const hdi_caps *caps, bool discrete, hdi_figures *figures) {
    double flops_per_ns, bytes_per_ns;
    rates_of(caps, &flops_per_ns, &bytes_per_ns);
    const double fixed_ns = caps->native_kernels ? 1000 : caps->software ? 80000 : 5000;
    memset(figures, 0, sizeof *figures);
    for (int kind = HDI_KIND_NONE + 1; kind < HDI_KIND_COUNT; kind++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            figures->ops[kind][width] = (hdi_figure){ .fixed_ns = fixed_ns, .ns_per_byte = 1 / bytes_per_ns,
                .ns_per_flop = 1 / (flops_per_ns * share_of_rate((hdi_op_kind)kind)) };
    figures->submit = (hdi_figure){ .fixed_ns = caps->native_kernels ? 500 : caps->software ? 50000 : 10000 };
    /* A device of the host's memory copies at the memory's rate, a bus is of the kind that a GPU has; a run waits for
     * all copies, not each of them. */
    figures->upload.fixed_ns = caps->native_kernels ? 300 : 1000;
    figures->upload.ns_per_byte = discrete ? 1.0 / 16 : 1 / bytes_per_ns;
    figures->download = figures->upload;
}

/* The figure of a kind that was measured, of this type or another one; NULL: there is none. */
static const hdi_figure *measured(const hdi_figures *figures, hdi_op_kind kind, hdi_width width) {
    const hdi_figure *of = figures->ops[kind];
    if (of[width].samples > 0) return &of[width];
    for (int other = 0; other < HDI_WIDTH_COUNT; other++)
        if (of[other].samples > 0) return &of[other];
    return NULL;
}

const hdi_figure *hdi_figures_find(const hdi_figures *figures, hdi_op_kind kind, hdi_width width) {
    static const hdi_op_kind kin[HDI_KIND_COUNT] = { /* what it is most like; NONE: nothing */
        [HDI_KIND_TABLE] = HDI_KIND_COPY, [HDI_KIND_ROPE] = HDI_KIND_NORM,
        [HDI_KIND_NORM] = HDI_KIND_SOFTMAX,
        [HDI_KIND_FUNCTION] = HDI_KIND_ELEMENTWISE, [HDI_KIND_USER] = HDI_KIND_ELEMENTWISE,
        [HDI_KIND_COPY] = HDI_KIND_ELEMENTWISE,
    };
    for (hdi_op_kind of = kind; of != HDI_KIND_NONE; of = kin[of]) {
        const hdi_figure *figure = measured(figures, of, width);
        if (figure) return figure;
    }
    return &figures->ops[kind][width];
}

double hdi_cost_work(const hdi_figures *figures, const hdi_work *work) {
    if (work->kind == HDI_KIND_NONE) return 0;
    const hdi_figure *figure = hdi_figures_find(figures, work->kind, work->width);
    const double line_ns = hdi_figure_line(figure, (double)work->flops, (double)work->bytes);
    return (line_ns + figure->fixed_ns * ((double)work->kernels - 1)) * hdi_figure_factor(figure, line_ns);
}

double hdi_cost_transfer(const hdi_figure *way, uint64_t bytes) {
    return bytes == 0 ? 0 : hdi_figure_ns(way, 0, (double)bytes);
}

double hdi_cost_write(const hdi_figures *figures, const hdi_work *reader, uint64_t bytes) {
    const hdi_figure *own = reader->kind ? &figures->writes[reader->kind][reader->width] : NULL;
    return hdi_cost_transfer(own && own->samples > 0 ? own : &figures->upload, bytes);
}

double hdi_cost_read(const hdi_figures *figures, const hdi_work *maker, uint64_t bytes) {
    const hdi_figure *own = &figures->reads[maker->kind][maker->width];
    return hdi_cost_transfer(own->samples > 0 ? own : &figures->download, bytes);
}
