/* find.c: what is known of a device, found out, forgotten and told. */
#include "calibrate/calibrate.h"
#include "kernels/kernel.h"
#include <math.h>

static const uint32_t alone = HD_FACT_RANK | HD_FACT_VERDICT; /* kinds that need nothing of the caller */

void hdi_calibrate_assume(const hdi_host *host, const hdi_found *found, hdi_facts *out) {
    hdi_facts_assume(&found->info, &found->caps, host->cpu_threads, hdi_verdicts_key(&found->caps), out);
    out->caps.choices.table = hdi_kernel_options_digest();
}

hd_status hdi_calibrate_open(hd_device *device, hd_error *error) {
    const hdi_host *host = device->host;
    hdi_facts *assumed = hdi_alloc(host->allocator, sizeof *assumed);
    if (!assumed || !hdi_mutex_init(&device->calibrating)) {
        hdi_free(host->allocator, assumed, sizeof *assumed);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a device");
    }
    hdi_calibrate_assume(host, &device->found, assumed);
    const hd_status status =
        hdi_store_open(host->allocator, host->log, host->cache_dir, assumed, &device->facts, error);
    hdi_free(host->allocator, assumed, sizeof *assumed);
    if (status) hdi_mutex_free(&device->calibrating);
    return status;
}

void hdi_calibrate_close(hd_device *device) {
    hdi_store_close(device->facts);
    hdi_mutex_free(&device->calibrating);
}

/* ---- rows ---- */

/* Where rows go: to a function, or into an array as far as there is room. */
typedef struct rows {
    hd_fact_fn report;
    void      *user;
    hd_fact   *out;
    size_t     room, count;
} rows;

static void tell(rows *to, const hd_fact *fact) {
    if (to->report) to->report(to->user, fact);
    else if (to->out && to->count < to->room) to->out[to->count] = *fact;
    to->count++;
}

static hd_device_figure figure_of(const char *work, const char *type, const hdi_figure *f) {
    return (hd_device_figure){ work, type, f->fixed_ns, f->ns_per_flop > 0 ? 1e9 / f->ns_per_flop : 0,
        f->ns_per_byte > 0 ? 1e9 / f->ns_per_byte : 0, f->error, f->samples };
}

static void tell_figure(rows *to, const char *work, const char *type, const hdi_figure *f) {
    tell(to, &(hd_fact){ .kind = HD_FACT_FIGURE, .figure = figure_of(work, type, f) });
}

static void tell_figures(rows *to, const hdi_figures *f) {
    tell_figure(to, "submit", "", &f->submit);
    tell_figure(to, "upload", "", &f->upload);
    tell_figure(to, "download", "", &f->download);
    for (int kind = HDI_KIND_NONE + 1; kind < HDI_KIND_COUNT; kind++)
        for (int width = 0; width < HDI_WIDTH_COUNT; width++)
            tell_figure(to, hdi_op_kind_name((hdi_op_kind)kind), hdi_width_name((hdi_width)width),
                &f->ops[kind][width]);
}

/* Those that are wrong. */
static void tell_verdicts(rows *to, const hdi_facts *f) {
    if (f->caps.inexact)
        tell(to, &(hd_fact){ .kind = HD_FACT_VERDICT,
            .verdict = { .kernel = "arithmetic", .form = "f32", .exact = true, .wrong = true } });
    for (uint32_t i = 0; i < HDI_MODULE_COUNT * 2; i++)
        for (uint32_t form = 0; form < 64; form++) {
            const hdi_variant variant = { i / 2, i % 2 != 0, f->caps.wrong[i / 2][i % 2] & UINT64_C(1) << form };
            hd_fact fact = { .kind = HD_FACT_VERDICT };
            if (variant.forms == 0) continue;
            fact.verdict = hdi_verdict_of(variant, &(hdi_judgement){ .worst = HUGE_VAL });
            tell(to, &fact);
        }
}

static void tell_choices(rows *to, const hdi_choices *choices) {
    for (uint32_t i = 0; i < choices->count; i++) {
        const hdi_choice *choice = &choices->items[i];
        hd_fact fact = { .kind = HD_FACT_CHOICE, .choice = { .gain = (double)choice->gain } };
        hdi_class_text(choice->of, fact.choice.work);
        const hdi_kernel_option *option = hdi_kernel_option_get(choice->option);
        if (option) hdi_kernel_option_text(option, fact.choice.chosen);
        tell(to, &fact);
    }
}

size_t hdi_calibrate_known(hd_device *device, hd_fact *out_facts, size_t room) {
    rows to = { .out = out_facts, .room = room };
    const hdi_facts *facts = hdi_store_lock(device->facts);
    if (facts->rank_ns) tell(&to, &(hd_fact){ .kind = HD_FACT_RANK, .rank_ns = facts->rank_ns });
    tell_verdicts(&to, facts);
    tell_figures(&to, &facts->figures);
    tell_choices(&to, &facts->caps.choices);
    hdi_store_unlock(device->facts);
    return to.count;
}

/* ---- finding out ---- */

static hd_status forget(hd_device *device, uint32_t kinds, hd_error *error) {
    hdi_facts_forget(hdi_store_lock(device->facts), kinds);
    const hd_status status = hdi_store_keep(device->facts, kinds, error);
    hdi_store_unlock(device->facts);
    hdi_store_changed(device->facts);
    return status;
}

static hd_status find_rank(hd_device *device, rows *to, hd_error *error) {
    hd_fact fact = { .kind = HD_FACT_RANK };
    const hd_status status = hdi_calibrate_rank(device, &fact.rank_ns, error);
    if (!status) tell(to, &fact);
    return status;
}

static hd_status find_figures(hd_device *device, const hd_calibrate_desc *desc, rows *to, hd_error *error) {
    hdi_figures figures;
    const hd_status status = hdi_calibrate_figures(device, desc->samples, desc->sample_count, error);
    hdi_store_figures(device->facts, &figures);
    if (!status) tell_figures(to, &figures);
    return status;
}

static hd_status find_choice(hd_device *device, const hd_calibrate_desc *desc, rows *to, hd_error *error) {
    hd_fact fact = { .kind = HD_FACT_CHOICE };
    const hd_status status = hdi_calibrate_choices(device, desc, &fact.choice, error);
    if (!status) tell(to, &fact);
    return status;
}

static void say_nothing(void *user, const hd_fact *fact) { (void)user, (void)fact; }

hd_status hdi_calibrate(hd_device *device, const hd_calibrate_desc *desc, hd_error *error) {
    if (desc->kinds & ~(uint32_t)HDI_FACTS_ALL)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "kinds 0x%x do not exist", desc->kinds);
    const uint32_t kinds = desc->kinds ? desc->kinds : desc->forget ? (uint32_t)HDI_FACTS_ALL : alone;
    rows to = { .report = desc->report ? desc->report : say_nothing, .user = desc->user };
    hd_status status = HD_OK;
    if (desc->forget) return forget(device, kinds, error);
    if (kinds & HD_FACT_RANK) status = find_rank(device, &to, error);
    if (!status && (kinds & HD_FACT_VERDICT)) status = hdi_calibrate_verdicts(device, to.report, to.user, error);
    if (!status && (kinds & HD_FACT_FIGURE)) status = find_figures(device, desc, &to, error);
    if (!status && (kinds & HD_FACT_CHOICE)) status = find_choice(device, desc, &to, error);
    return status;
}
