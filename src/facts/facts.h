/* facts.h: what is known of a device, as plain values: what it can do, which kernels are wrong and which options
 * fastest there (caps.h), and what work and transfers take (figures.c), fitted from measurements (fit.c) and kept on
 * disk (store.c). No device is called here. */
#ifndef HDI_FACTS_H
#define HDI_FACTS_H

#include "facts/caps.h"
#include "program/work.h"

/* ---- work: what a kernel has to do, whatever the device ---- */

/* Of one fused step of the planner, or of a node by itself (program/work.h). */
typedef struct hdi_work {
    hdi_op_kind kind;         /* NONE: takes no time */
    hdi_width   width;
    uint32_t    kernels;      /* launches that it takes */
    uint64_t    flops, bytes; /* least; what stays in registers is not counted */
} hdi_work;

/* ---- cost (figures.c): what a device takes for it ---- */

enum { HDI_CURVE_KNOTS = 16 };
/* The line fixed + flops * ns_per_flop + bytes * ns_per_byte, times what it misses: caches, numbers of threads, sizes
 * of tiles. Without samples it is an assumption. */
typedef struct hdi_figure {
    double   fixed_ns, ns_per_flop, ns_per_byte; /* none is negative */
    /* median of |predicted - measured| / measured over its samples, each by the curve of the others */
    double   error;
    uint32_t samples;
    uint32_t knots;   /* of the curve; 0: the line is all */
    double   line_ns[HDI_CURVE_KNOTS]; /* where each knot lies: what the line says, rising */
    double   factor[HDI_CURVE_KNOTS];  /* measured there, as a share of the line */
} hdi_figure;
#define HDI_CURVE_MOST 64.0 /* factors are between this and one part in it */
double hdi_figure_line(const hdi_figure *figure, double flops, double bytes);
/* What of the line is not the same for all sizes; never 0. */
double hdi_figure_beyond(const hdi_figure *figure, double line_ns);
/* Between knots straight in logarithms of that, beyond them as at the last one. */
double hdi_figure_factor(const hdi_figure *figure, double line_ns);
double hdi_figure_ns(const hdi_figure *figure, double flops, double bytes);

/* What work and transfers take on a device. */
typedef struct hdi_figures {
    /* only its fixed_ns: what a submission costs whatever is in it */
    hdi_figure submit;
    hdi_figure upload, download;                             /* host to device and back; no flops */
    hdi_figure ops[HDI_KIND_COUNT][HDI_WIDTH_COUNT];
    hdi_figure writes[HDI_KIND_COUNT][HDI_WIDTH_COUNT];    /* of a value from the host that such work reads, */
    hdi_figure reads[HDI_KIND_COUNT][HDI_WIDTH_COUNT];     /* and to the host, that it made; no flops */
} hdi_figures;
/* Assumptions from what a device can do. `discrete`: what it reads from the host travels over a bus. */
void hdi_figures_assume(const hdi_caps *caps, bool discrete, hdi_figures *out_figures);
/* The figure to take for a kind of work and a type: its own where it was measured, else that of the kind's other types,
 * else of the kind that is most like it, else what is assumed. */
const hdi_figure *hdi_figures_find(const hdi_figures *figures, hdi_op_kind kind, hdi_width width);
/* Time of work on the device, without its submission. */
double hdi_cost_work(const hdi_figures *figures, const hdi_work *work);
double hdi_cost_transfer(const hdi_figure *way, uint64_t bytes); /* 0 for 0 bytes */
/* The host writes a value for such work (NONE: for any), or reads one that it made: as was measured there, else as
 * values travel. */
double hdi_cost_write(const hdi_figures *figures, const hdi_work *reader, uint64_t bytes);
double hdi_cost_read(const hdi_figures *figures, const hdi_work *maker, uint64_t bytes);

/* ---- fit (fit.c): figures from measured runs ---- */

typedef enum hdi_sample_kind { HDI_SAMPLE_RUN = 0, HDI_SAMPLE_UPLOAD, HDI_SAMPLE_DOWNLOAD } hdi_sample_kind;
typedef struct hdi_sample {
    hdi_sample_kind kind;
    hdi_op_kind work;         /* of a transfer: of the work that it is for; NONE: any */
    hdi_width  width;
    double     kernels;      /* in one submission; of transfers: how many there are, as a multiple of the largest one */
    double     flops, bytes; /* of all of them; of a transfer no flops */
    double     ns;           /* with the submission; at least 1 */
} hdi_sample;
#define HDI_FIT_SAMPLES 512 /* that one figure is fitted from; more are left out */
/* The line, none of its parts negative, that makes the sum of squared relative errors least, with less weight to
 * samples that lie far off; where the samples differ in size, time grows with it. `inout_submit_ns`: what of each
 * sample is the submission; negative: find it too (it shows where the number of kernels differs), for transfers it
 * stays 0. False: no sample is usable. */
bool hdi_fit(const hdi_sample *samples, size_t count, double *inout_submit_ns, hdi_figure *out_figure);
/* Adds the curve: what the samples took as a share of the line, which was fitted from them with `submit_ns` each. */
void hdi_fit_curve(const hdi_sample *samples, size_t count, double submit_ns, hdi_figure *inout_figure);
/* Fits a whole device: the submission from the family whose samples show it best, then every family and type by itself,
 * and merges what came out into `inout_figures`. */
hd_status hdi_fit_device(const hd_allocator *allocator, const hdi_sample *samples, size_t count,
    hdi_figures *inout_figures, hd_error *error);
/* New measurements join old ones: their mean by number of samples, of which the old ones have at most as many as the
 * new. */
hdi_figure hdi_figure_merge(const hdi_figure *old, const hdi_figure *measured);

/* ---- figures as text (figures_text.c): a line each, and one for its curve ---- */

/* Those that were measured. */
void hdi_figures_print(const hdi_figures *figures, hdi_text *out_text);
/* Takes a line over. False: it is not well formed; nothing is changed. */
bool hdi_figures_read(hdi_span line, hdi_figures *inout_figures);

/* ---- all that is known of a device ---- */

#define HDI_FACTS_NAME 128
typedef struct hdi_facts {
    char machine[HDI_FACTS_NAME], device[HDI_FACTS_NAME], driver[HDI_FACTS_NAME]; /* printable, in one line each */
    bool        discrete;   /* it lies behind a bus */
    /* what plans read: what the device can do, which kernels are wrong there, which options were chosen */
    hdi_caps    caps;
    uint64_t    kernels;    /* names the kernels and answers that verdicts are of; 0: verdicts are not kept on disk */
    uint64_t    judged[HDI_CAPS_MODULES][2]; /* bits as in caps.wrong: these were judged, */
    bool        arithmetic; /* and so was caps.inexact */
    hdi_figures figures;
    uint64_t    rank_ns;    /* for the work by which routes to one GPU are ranked; 0: not measured */
} hdi_facts;
enum { HDI_FACTS_ALL = HD_FACT_RANK | HD_FACT_VERDICT | HD_FACT_FIGURE | HD_FACT_CHOICE };
/* What is known before anything was found out. `threads`: of the host, that are used. */
void hdi_facts_assume(const hd_device_info *info, const hdi_caps *caps, uint32_t threads, uint64_t kernels,
    hdi_facts *out_facts);
/* `kinds` are sums of hd_fact_kind. What was found out of these kinds becomes what is assumed again. */
void hdi_facts_forget(hdi_facts *facts, uint32_t kinds);

/* ---- verdicts as text (verdicts.c) ---- */
void hdi_verdicts_print(const hdi_facts *facts, hdi_text *out_text);
/* Reads a line "kernels ...", "arithmetic ..." or "verdict ...". `inout_ours`: it is of the kernels of this build; else
 * nothing is taken over. False: it is not well formed. */
bool hdi_verdicts_read(hdi_span line, bool *inout_ours, hdi_facts *inout_facts);

/* ---- the file, and who owns it (store.c) ---- */

/* Bytes that print takes at most. */
#define HDI_FACTS_BYTES 163840
void hdi_facts_print(const hdi_facts *facts, hdi_text *out_text);
/* Takes over every line that is well formed into `inout_facts`, which holds assumptions and the names of the device;
 * returns the number of lines that were refused. A file of another device, driver or machine gives nothing: all of its
 * lines are refused. */
uint32_t hdi_facts_parse(const char *text, size_t bytes, hdi_facts *inout_facts);
/* The file of this device in the cache's folder. False: there is none, or it cannot be read. */
bool hdi_facts_load(const hd_allocator *allocator, const char *folder, hdi_facts *inout_facts, uint32_t *out_refused);
bool hdi_facts_save(const hd_allocator *allocator, const char *folder, const hdi_facts *facts);
/* Where it lies. False: the path is too long. */
bool hdi_facts_path(const char *folder, const hdi_facts *facts, char *out_path, size_t room);

/* What is known of an opened device, with one lock: any thread may read and change it. */
typedef struct hdi_store hdi_store;
/* Reads the file in `folder` (NULL: nothing is kept) over what is assumed. What is given is borrowed, but for the
 * facts. */
hd_status hdi_store_open(const hd_allocator *allocator, const hdi_log *log, const char *folder,
    const hdi_facts *assumed, hdi_store **out_store, hd_error *error);
void hdi_store_close(hdi_store *store);
/* For reading and changing, until it is unlocked: for a moment only. */
hdi_facts *hdi_store_lock(hdi_store *store);
void hdi_store_unlock(hdi_store *store);
/* Another version whenever what is known has changed: plans of before may hold what is wrong or slow. */
void hdi_store_changed(hdi_store *store);
uint64_t hdi_store_version(hdi_store *store);
/* With it locked: puts what is known of these kinds on disk; what another process wrote of others stays. Status: IO. */
hd_status hdi_store_keep(hdi_store *store, uint32_t kinds, hd_error *error);
/* Parts of it as values. */
void hdi_store_caps(hdi_store *store, hdi_caps *out_caps);
void hdi_store_figures(hdi_store *store, hdi_figures *out_figures);
/* A choice for a class, kept from now on (NULL: none). Statuses: LIMIT, IO. */
hd_status hdi_store_choose(hdi_store *store, hdi_class of, const hdi_choice *choice, hd_error *error);
#endif
