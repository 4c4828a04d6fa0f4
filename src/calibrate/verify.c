/* verify.c: which kernels are right on a device. A variant is judged by its known answers before the first plan that
 * holds it runs, or when the caller asks for all of them; what is wrong becomes a fact of the device (hdi_caps.wrong),
 * so that planning stays pure. Verdicts are kept on disk for the kernels of this build; of the CPU, whose kernels have
 * no digest, only in memory. Products that the device's library refuses become such a fact too, in memory. */
#include "calibrate/calibrate.h"
#include "cmds/library.h"
#include <stdio.h>

uint64_t hdi_verdicts_key(const hdi_caps *caps) {
    if (caps->native_kernels) return 0; /* kernels of the CPU have no digest */
    uint64_t key = hdi_known_answers_hash();
    for (uint32_t i = 0; i < HDI_MODULE_COUNT; i++) {
        const hdi_module *module = hdi_module_get(i);
        if (module->spirv) key = hdi_hash(key, &module->spirv->hash, sizeof module->spirv->hash);
    }
    return HDI_MAX(key, 1);
}

static bool judges_at_once(const hd_device *device) {
    const hd_device_kind kind = device->found.info.kind;
    const hdi_caps *caps = &device->found.caps;
    const uint32_t wanted = kind == HD_DEVICE_NULL ? 3 : kind == HD_DEVICE_SOFTWARE || caps->native_kernels ? 2 : 1;
    return device->host->verify >= wanted || caps->unproven;
}

/* What does not get to disk is judged again another time. */
static void keep(hd_device *device) {
    hdi_store_lock(device->facts);
    (void)hdi_store_keep(device->facts, HD_FACT_VERDICT, NULL);
    hdi_store_unlock(device->facts);
}

/* ---- judging; one thread at a time ---- */

/* Of several forms that look wrong one may have spoiled the others' answers, since a kernel can have many: each is
 * judged again with the rest out of its way. What has no answer then stays wrong. */
static hd_status judge_apart(hd_device *device, hdi_caps *caps, hdi_variant variant, hdi_judgement out[64],
    hd_error *error) {
    uint64_t *wrong = &caps->wrong[variant.module][variant.exact];
    const uint64_t suspects = *wrong & variant.forms;
    hd_status status = HD_OK;
    for (uint32_t form = 0; form < 64 && !status; form++) {
        hdi_judgement alone[64];
        variant.forms = suspects & UINT64_C(1) << form;
        if (!variant.forms) continue;
        status = hdi_known_answers(device, caps, variant, alone, error);
        if (status || alone[form].answers == 0) continue;
        out[form] = alone[form];
        if (!(out[form].worst > 1)) *wrong &= ~variant.forms;
    }
    return status;
}

/* Judges the variant's forms, each of which gets its place in `out`. */
static hd_status judge(hd_device *device, hdi_variant variant, hdi_judgement out[64], hd_error *error) {
    hdi_caps caps;
    uint64_t *wrong = &caps.wrong[variant.module][variant.exact], suspects = 0;
    hdi_store_caps(device->facts, &caps);
    hd_status status = hdi_known_answers(device, &caps, variant, out, error);
    if (status) return status;
    for (uint32_t form = 0; form < 64; form++)
        if (out[form].worst > 1) suspects |= UINT64_C(1) << form;
    *wrong = (*wrong & ~variant.forms) | suspects;
    if (suspects & (suspects - 1)) status = judge_apart(device, &caps, variant, out, error);
    if (status) return status;
    hdi_facts *facts = hdi_store_lock(device->facts);
    facts->caps.wrong[variant.module][variant.exact] = *wrong;
    facts->judged[variant.module][variant.exact] |= variant.forms;
    hdi_store_unlock(device->facts);
    for (uint32_t form = 0; form < 64; form++) {
        char text[HDI_VARIANT_TEXT];
        hdi_variant_text((hdi_variant){ variant.module, variant.exact, UINT64_C(1) << form }, text);
        if (out[form].answers)
            hdi_log_line(device->host->log, HD_LOG_DEBUG, "verify", "%s: %u answers, error %g of the bound", text,
                out[form].answers, out[form].worst);
        if (out[form].worst > 1)
            hdi_log_line(device->host->log, HD_LOG_WARNING, "verify",
                "%s: kernel %s gives wrong results (driver %s) and is not used", device->found.info.id, text,
                         device->found.info.driver);
    }
    return HD_OK;
}

static hd_status judge_arithmetic(hd_device *device, hdi_judgement *out, hd_error *error) {
    hdi_caps caps;
    hdi_store_caps(device->facts, &caps);
    const hd_status status = hdi_known_arithmetic(device, &caps, out, error);
    if (status) return status;
    hdi_facts *facts = hdi_store_lock(device->facts);
    facts->arithmetic = true;
    facts->caps.inexact = out->worst > 1;
    hdi_store_unlock(device->facts);
    if (out->worst > 1)
        hdi_log_line(device->host->log, HD_LOG_WARNING, "verify",
            "%s: f32 is not rounded, or subnormals not kept, as exact mode needs (driver %s)", device->found.info.id,
                     device->found.info.driver);
    return HD_OK;
}

/* What the plan holds and nobody has judged; at most `room`, which is twice the number of modules. */
static uint32_t unjudged(const hdi_facts *facts, const hdi_schedule *schedule, hdi_variant *out, uint32_t room) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->cmds.kernel_count; i++) {
        if (schedule->cmds.kernels[i].module >= HDI_USER_MODULE) continue;
        hdi_variant variant = hdi_variant_of(&schedule->cmds.kernels[i]);
        uint32_t at = 0;
        variant.forms &= ~facts->judged[variant.module][variant.exact];
        while (at < count && (out[at].module != variant.module || out[at].exact != variant.exact)) at++;
        if (!variant.forms || at == room) continue;
        if (at < count) out[at].forms |= variant.forms;
        else out[count++] = variant;
    }
    return count;
}

/* Does the plan hold what is wrong? */
static bool holds_wrong(const hdi_facts *facts, const hdi_schedule *schedule) {
    for (uint32_t i = 0; i < schedule->cmds.kernel_count; i++) {
        if (schedule->cmds.kernels[i].module >= HDI_USER_MODULE) continue;
        const hdi_variant variant = hdi_variant_of(&schedule->cmds.kernels[i]);
        if (facts->caps.wrong[variant.module][variant.exact] & variant.forms) return true;
    }
    return false;
}

/* Judges what the plan holds and nobody has judged. `*out_wrong`: it holds what is wrong. */
static hd_status judge_schedule(hd_device *device, const hdi_schedule *schedule, bool *out_wrong, hd_error *error) {
    hdi_judgement judgement = { 0 }, forms[64];
    hdi_variant variants[HDI_MODULE_COUNT * 2];
    const hdi_facts *facts = hdi_store_lock(device->facts);
    const uint32_t count = unjudged(facts, schedule, variants, HDI_COUNT(variants));
    const bool asks_arithmetic = schedule->options.math == HD_MATH_EXACT && !facts->arithmetic;
    hdi_store_unlock(device->facts);
    hd_status status = asks_arithmetic ? judge_arithmetic(device, &judgement, error) : HD_OK;
    if (!status && count) {
        hdi_caps caps;
        hdi_store_caps(device->facts, &caps);
        status = hdi_known_kernels(device, &caps, variants, count, error);
    }
    for (uint32_t i = 0; i < count && !status; i++) status = judge(device, variants[i], forms, error);
    *out_wrong = judgement.worst > 1 || holds_wrong(hdi_store_lock(device->facts), schedule);
    hdi_store_unlock(device->facts);
    if (count || asks_arithmetic) keep(device);
    return status;
}

/* ---- products that the device's library refuses; one thread at a time ---- */

/* Notes a refusal; false: it was known, and planned for all the same. */
static bool refuse(hd_device *device, const hdi_kernel *kernel, hd_status status, const char *why) {
    const uint64_t shape = hdi_product_shape(kernel);
    uint32_t at = 0;
    hdi_caps *caps = &hdi_store_lock(device->facts)->caps;
    while (at < HDI_CAPS_REFUSED && caps->refused[at] && caps->refused[at] != shape) at++;
    const bool known = at < HDI_CAPS_REFUSED && caps->refused[at] == shape;
    if (at < HDI_CAPS_REFUSED) caps->refused[at] = shape;
    /* It is not there after all, or refuses too much to be asked. */
    if (at == HDI_CAPS_REFUSED || (!known && status == HD_STATUS_RUNTIME_NOT_FOUND)) caps->product_library = 0;
    hdi_store_unlock(device->facts);
    if (known) return false;
    hdi_log_line(device->host->log, HD_LOG_INFO, "plan",
        "%s: the library of matrix products does not make %u x %u x %u, and the next best kernel does: %s",
            device->found.info.id,
                 kernel->spec[HDI_PRODUCT_M], kernel->spec[HDI_PRODUCT_N], kernel->spec[HDI_PRODUCT_K], why);
    return true;
}

/* Loads what the plan leaves to the device's library. `*out_refused`: there are products that it refuses. */
static hd_status load_products(hd_device *device, const hdi_schedule *schedule, bool *out_refused, hd_error *error) {
    const hdi_cmds *cmds = &schedule->cmds;
    uint32_t count = 0;
    const bool has_library = hdi_store_lock(device->facts)->caps.product_library != 0;
    hdi_store_unlock(device->facts);
    if (!has_library) return HD_OK;
    hdi_wanted_kernel *wanted = hdi_alloc(device->host->allocator, cmds->kernel_count * sizeof *wanted);
    if (!wanted) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernels");
    for (uint32_t i = 0; i < cmds->kernel_count; i++) {
        const hdi_module *module = hdi_module_get(cmds->kernels[i].module);
        if (module && module->library)
            wanted[count++] = (hdi_wanted_kernel){ .module = module, .kernel = &cmds->kernels[i] };
    }
    hd_error inside = { 0 };
    hd_status status = count ? hdi_device_kernels(device, wanted, count, &inside) : HD_OK;
    const bool of_device = status == HD_STATUS_OUT_OF_HOST_MEMORY || status == HD_STATUS_OUT_OF_DEVICE_MEMORY ||
        status == HD_STATUS_DEVICE_LOST;
    for (uint32_t i = 0; i < count && status && !of_device; i++)
        if (wanted[i].failed && refuse(device, wanted[i].kernel, status, inside.text)) *out_refused = true;
    if (*out_refused) status = HD_OK;
    if (status && error) *error = inside;
    hdi_free(device->host->allocator, wanted, cmds->kernel_count * sizeof *wanted);
    return status;
}

/* Judges the variants of a schedule that were never judged. `*out_again`: it holds one that is wrong, or a product that
 * the device's library refuses; that is a fact now, and another schedule will be made. */
static hd_status judge_new(hd_device *device, const hdi_schedule *schedule, bool *out_again, hd_error *error) {
    bool wrong = false, refused = false;
    hdi_mutex_lock(&device->calibrating);
    hd_status status = load_products(device, schedule, &refused, error);
    if (!status && !refused && judges_at_once(device)) status = judge_schedule(device, schedule, &wrong, error);
    hdi_mutex_unlock(&device->calibrating);
    *out_again = wrong || refused;
    if (*out_again) hdi_store_changed(device->facts);
    return status;
}

hd_status hdi_calibrate_schedule(hd_device *device, const hd_program *program, const hdi_plan_options *options,
                             hdi_schedule **out_schedule, hd_error *error) {
    for (;;) { /* each round but the last finds a kernel that is wrong, or a product that is refused */
        hdi_caps caps;
        bool again = false;
        hdi_store_caps(device->facts, &caps);
        hd_status status = hdi_schedule_make(device->host->allocator, program, &caps, options, out_schedule, error);
        if (!status) status = judge_new(device, *out_schedule, &again, error);
        if (!status && !again) return HD_OK;
        hdi_schedule_free(*out_schedule);
        *out_schedule = NULL;
        if (status) return status;
    }
}

hd_status hdi_calibrate_judge(hd_device *const *devices, const hdi_plan *plan, bool *out_wrong, hd_error *error) {
    hd_status status = HD_OK;
    *out_wrong = false;
    for (uint32_t s = 0; !status && s < plan->segment_count && !*out_wrong; s++)
        status = judge_new(devices[plan->segments[s].device], plan->segments[s].schedule, out_wrong, error);
    return status;
}

hd_status hdi_calibrate_plan(hd_device *const *devices, uint32_t count, const hdi_plan_wish *wish, hdi_caps *caps,
                             hdi_plan **out_plan, hd_error *error) {
    for (;;) {
        bool again = false;
        for (uint32_t d = 0; d < count; d++) hdi_store_caps(devices[d]->facts, &caps[d]);
        hd_status status = hdi_plan_make(devices[0]->host->allocator, wish, out_plan, error);
        if (!status) status = hdi_calibrate_judge(devices, *out_plan, &again, error);
        if (!status && !again) return HD_OK;
        hdi_plan_free(*out_plan);
        *out_plan = NULL;
        if (status) return status;
    }
}

/* ---- all of them ---- */

hd_verdict hdi_verdict_of(hdi_variant variant, const hdi_judgement *judgement) {
    hd_verdict verdict = { .kernel = "arithmetic", .form = "f32", .exact = variant.exact, .wrong = judgement->worst > 1,
                           .answers = judgement->answers, .worst = judgement->worst };
    if (variant.module < HDI_MODULE_COUNT) {
        char text[HDI_VARIANT_TEXT];
        verdict.kernel = hdi_module_get(variant.module)->name;
        const char *form = hdi_variant_text(variant, text) + strlen(verdict.kernel) + 1;
        snprintf(verdict.form, sizeof verdict.form, "%.*s", (int)strcspn(form, ","), form);
    }
    return verdict;
}

static void tell(hdi_variant variant, const hdi_judgement *judgement, hd_fact_fn report, void *user) {
    report(user, &(hd_fact){ .kind = HD_FACT_VERDICT, .verdict = hdi_verdict_of(variant, judgement) });
}

/* Judges every form of a module in fast or exact arithmetic. */
static hd_status verify_module(hd_device *device, hdi_variant variant, hd_fact_fn report, void *user, hd_error *error) {
    hdi_judgement forms[64];
    const hd_status status = judge(device, variant, forms, error);
    for (uint32_t form = 0; form < 64 && !status; form++) {
        variant.forms = UINT64_C(1) << form;
        if (forms[form].answers == 0) continue;
        tell(variant, &forms[form], report, user);
    }
    return status;
}

hd_status hdi_calibrate_verdicts(hd_device *device, hd_fact_fn report, void *user, hd_error *error) {
    hdi_judgement judgement;
    hdi_caps caps;
    hdi_variant variants[HDI_MODULE_COUNT * 2];
    for (uint32_t i = 0; i < HDI_COUNT(variants); i++) variants[i] = (hdi_variant){ i / 2, i % 2 != 0, UINT64_MAX };
    hdi_mutex_lock(&device->calibrating);
    hdi_store_caps(device->facts, &caps);
    hd_status status = hdi_known_kernels(device, &caps, variants, HDI_COUNT(variants), error);
    if (!status) status = judge_arithmetic(device, &judgement, error);
    if (!status && judgement.answers) tell((hdi_variant){ HDI_MODULE_COUNT, true, 0 }, &judgement, report, user);
    for (uint32_t i = 0; i < HDI_COUNT(variants) && !status; i++)
        status = verify_module(device, variants[i], report, user, error);
    keep(device);
    hdi_mutex_unlock(&device->calibrating);
    hdi_store_changed(device->facts); /* plans of before may hold what is wrong */
    return status;
}
