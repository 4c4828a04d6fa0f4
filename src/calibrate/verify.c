/* verify.c: which kernels are right on a device. A variant is judged by its known answers before the first plan that
 * holds it runs, or when the caller asks for all of them; what is wrong becomes a fact of the device (hdi_caps.wrong), so
 * that planning stays pure. Verdicts are kept on disk for the device, its driver and the kernels of this build; of the CPU,
 * whose kernels have no digest, only in memory. Products that the device's library refuses become such a fact too, in memory. */
#include "cmds/library.h"
#include "device/cache.h"
#include "front/front.h"
#include <math.h>
#include <stdio.h>

/* What goes to disk. */
typedef struct verdict_file {
    uint64_t judged[HDI_CAPS_MODULES][2], wrong[HDI_CAPS_MODULES][2]; /* bits as in hdi_caps.wrong */
    uint64_t arithmetic_judged, inexact;
} verdict_file;

struct hdi_verdicts {
    hdi_mutex    lock;    /* one judge at a time; taken before the device's own */
    bool         at_once; /* judge what a plan uses first */
    verdict_file file;
    uint64_t     refused[HDI_CAPS_REFUSED]; /* as hdi_caps.refused */
    bool         no_library; /* it is not there after all, or refuses too much to be asked */
};

/* ---- keeping ---- */

static hdi_cache cache_of(const hd_device *device) { return hdi_cache_of_device(device->host, "verdicts", &device->found.info); }

/* Names the kernels and the answers of this build. */
static uint64_t cache_key(void) {
    uint64_t key = hdi_known_answers_hash();
    for (uint32_t i = 0; i < HDI_MODULE_COUNT; i++) {
        const hdi_module *module = hdi_module_get(i);
        if (module->spirv) key = hdi_hash(key, &module->spirv->hash, sizeof module->spirv->hash);
    }
    return key;
}

static void load(hd_device *device) {
    const hdi_cache cache = cache_of(device);
    size_t bytes = 0;
    void *kept = device->found.caps.native_kernels ? NULL : hdi_cache_read(&cache, cache_key(), &bytes);
    if (kept && bytes == sizeof(verdict_file)) memcpy(&device->verdicts->file, kept, bytes);
    hdi_free(device->host->allocator, kept, bytes);
}

static void save(hd_device *device) {
    const hdi_cache cache = cache_of(device);
    if (!device->found.caps.native_kernels) hdi_cache_write(&cache, cache_key(), &device->verdicts->file, sizeof(verdict_file));
}

hd_status hdi_verdicts_open(hd_device *device, hd_error *error) {
    const hd_device_kind kind = device->found.info.kind;
    const uint32_t wanted = kind == HD_DEVICE_NULL ? 3 : kind == HD_DEVICE_SOFTWARE || device->found.caps.native_kernels ? 2 : 1;
    hdi_verdicts *verdicts = hdi_alloc(device->host->allocator, sizeof *verdicts);
    if (!verdicts || !hdi_mutex_init(&verdicts->lock)) {
        hdi_free(device->host->allocator, verdicts, sizeof *verdicts);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a device");
    }
    verdicts->at_once = device->context->verify >= wanted || device->found.caps.unproven;
    device->verdicts = verdicts;
    load(device);
    return HD_OK;
}

void hdi_verdicts_close(hd_device *device) {
    hdi_mutex_free(&device->verdicts->lock);
    hdi_free(device->host->allocator, device->verdicts, sizeof *device->verdicts);
    device->verdicts = NULL;
}

/* Called with the lock held. */
static hdi_caps caps_now(hd_device *device) {
    hdi_caps caps = device->found.caps;
    memcpy(caps.wrong, device->verdicts->file.wrong, sizeof caps.wrong);
    memcpy(caps.refused, device->verdicts->refused, sizeof caps.refused);
    caps.inexact = device->verdicts->file.inexact;
    hdi_tuned_choices(device, &caps.choices);
    if (device->verdicts->no_library) caps.product_library = 0;
    return caps;
}

void hdi_verdicts_caps(hd_device *device, hdi_caps *out_caps) {
    hdi_mutex_lock(&device->verdicts->lock);
    *out_caps = caps_now(device);
    hdi_mutex_unlock(&device->verdicts->lock);
}

/* ---- judging; called with the lock held ---- */

static hd_status ask(hd_device *device, hdi_variant variant, hdi_judgement out[64], hd_error *error) {
    const hdi_caps caps = caps_now(device);
    return hdi_known_answers(device, &caps, variant, out, error);
}

/* Of several forms that look wrong one may have spoiled the others' answers, since a kernel can have many: each is judged
 * again with the rest out of its way. What has no answer then stays wrong. */
static hd_status judge_apart(hd_device *device, hdi_variant variant, uint64_t suspects, hdi_judgement out[64], hd_error *error) {
    uint64_t *wrong = &device->verdicts->file.wrong[variant.module][variant.exact];
    hd_status status = HD_OK;
    for (uint32_t form = 0; form < 64 && !status; form++) {
        hdi_judgement alone[64];
        variant.forms = suspects & UINT64_C(1) << form;
        if (!variant.forms) continue;
        status = ask(device, variant, alone, error);
        if (status || alone[form].answers == 0) continue;
        out[form] = alone[form];
        if (!(out[form].worst > 1)) *wrong &= ~variant.forms;
    }
    return status;
}

/* Judges the variant's forms, each of which gets its place in `out`. */
static hd_status judge(hd_device *device, hdi_variant variant, hdi_judgement out[64], hd_error *error) {
    uint64_t *wrong = &device->verdicts->file.wrong[variant.module][variant.exact], suspects = 0;
    hd_status status = ask(device, variant, out, error);
    if (status) return status;
    for (uint32_t form = 0; form < 64; form++)
        if (out[form].worst > 1) suspects |= UINT64_C(1) << form;
    *wrong = (*wrong & ~variant.forms) | suspects;
    if (suspects & (suspects - 1)) status = judge_apart(device, variant, suspects, out, error);
    if (status) return status;
    device->verdicts->file.judged[variant.module][variant.exact] |= variant.forms;
    for (uint32_t form = 0; form < 64; form++) {
        char text[HDI_VARIANT_TEXT];
        hdi_variant_text((hdi_variant){ variant.module, variant.exact, UINT64_C(1) << form }, text);
        if (out[form].answers) hdi_log_line(device->host->log, HD_LOG_DEBUG, "verify", "%s: %u answers, error %g of the bound", text, out[form].answers, out[form].worst);
        if (out[form].worst > 1)
            hdi_log_line(device->host->log, HD_LOG_WARNING, "verify", "%s: kernel %s gives wrong results (driver %s) and is not used", device->found.info.id, text,
                         device->found.info.driver);
    }
    return HD_OK;
}

static hd_status judge_arithmetic(hd_device *device, hdi_judgement *out, hd_error *error) {
    const hdi_caps caps = caps_now(device);
    const hd_status status = hdi_known_arithmetic(device, &caps, out, error);
    if (status) return status;
    device->verdicts->file.arithmetic_judged = 1;
    device->verdicts->file.inexact = out->worst > 1;
    if (out->worst > 1)
        hdi_log_line(device->host->log, HD_LOG_WARNING, "verify", "%s: f32 is not rounded, or subnormals not kept, as exact mode needs (driver %s)", device->found.info.id,
                     device->found.info.driver);
    return HD_OK;
}

/* What the plan holds and nobody has judged; at most `room`, which is twice the number of modules. */
static uint32_t unjudged(const hd_device *device, const hdi_plan *plan, hdi_variant *out, uint32_t room) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->cmds.kernel_count; i++) {
        if (plan->cmds.kernels[i].module >= HDI_USER_MODULE) continue;
        hdi_variant variant = hdi_variant_of(&plan->cmds.kernels[i]);
        uint32_t at = 0;
        variant.forms &= ~device->verdicts->file.judged[variant.module][variant.exact];
        while (at < count && (out[at].module != variant.module || out[at].exact != variant.exact)) at++;
        if (!variant.forms || at == room) continue;
        if (at < count) out[at].forms |= variant.forms;
        else out[count++] = variant;
    }
    return count;
}

/* Judges what the plan holds and nobody has judged. `*out_wrong`: it holds what is wrong. */
static hd_status judge_plan(hd_device *device, const hdi_plan *plan, bool *out_wrong, hd_error *error) {
    verdict_file *file = &device->verdicts->file;
    hdi_judgement judgement, forms[64];
    hdi_variant variants[HDI_MODULE_COUNT * 2];
    const uint32_t count = unjudged(device, plan, variants, HDI_COUNT(variants));
    const bool asks_arithmetic = plan->options.math == HD_MATH_EXACT && !file->arithmetic_judged;
    hd_status status = HD_OK;
    if (asks_arithmetic) status = judge_arithmetic(device, &judgement, error);
    *out_wrong = asks_arithmetic && file->inexact != 0;
    if (!status && count) {
        const hdi_caps caps = caps_now(device);
        status = hdi_known_kernels(device, &caps, variants, count, error);
    }
    for (uint32_t i = 0; i < count && !status; i++) status = judge(device, variants[i], forms, error);
    for (uint32_t i = 0; i < plan->cmds.kernel_count && !status; i++)
        if (plan->cmds.kernels[i].module < HDI_USER_MODULE) {
            const hdi_variant variant = hdi_variant_of(&plan->cmds.kernels[i]);
            *out_wrong = *out_wrong || (file->wrong[variant.module][variant.exact] & variant.forms);
        }
    if (count || asks_arithmetic) save(device);
    return status;
}

/* ---- products that the device's library refuses; called with the lock held ---- */

/* Notes a refusal; false: it was known, and planned for all the same. */
static bool refuse(hd_device *device, const hdi_kernel *kernel, hd_status status, const char *why) {
    hdi_verdicts *verdicts = device->verdicts;
    const uint64_t shape = hdi_product_shape(kernel);
    uint32_t at = 0;
    while (at < HDI_CAPS_REFUSED && verdicts->refused[at] && verdicts->refused[at] != shape) at++;
    if (at < HDI_CAPS_REFUSED && verdicts->refused[at] == shape) return false;
    if (at < HDI_CAPS_REFUSED) verdicts->refused[at] = shape;
    verdicts->no_library = verdicts->no_library || at == HDI_CAPS_REFUSED || status == HD_STATUS_RUNTIME_NOT_FOUND;
    hdi_log_line(device->host->log, HD_LOG_INFO, "plan", "%s: the library of matrix products does not make %u x %u x %u, and the next best kernel does: %s", device->found.info.id,
                 kernel->spec[HDI_PRODUCT_M], kernel->spec[HDI_PRODUCT_N], kernel->spec[HDI_PRODUCT_K], why);
    return true;
}

/* Loads what the plan leaves to the device's library. `*out_refused`: there are products that it refuses. */
static hd_status load_products(hd_device *device, const hdi_plan *plan, bool *out_refused, hd_error *error) {
    const hdi_cmds *cmds = &plan->cmds;
    uint32_t count = 0;
    if (!device->found.caps.product_library || device->verdicts->no_library) return HD_OK;
    hdi_wanted_kernel *wanted = hdi_alloc(device->host->allocator, cmds->kernel_count * sizeof *wanted);
    if (!wanted) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernels");
    for (uint32_t i = 0; i < cmds->kernel_count; i++) {
        const hdi_module *module = hdi_module_get(cmds->kernels[i].module);
        if (module && module->library) wanted[count++] = (hdi_wanted_kernel){ .module = module, .kernel = &cmds->kernels[i] };
    }
    hd_error inside = { 0 };
    hd_status status = count ? hdi_device_kernels(device, wanted, count, &inside) : HD_OK;
    const bool of_device = status == HD_STATUS_OUT_OF_HOST_MEMORY || status == HD_STATUS_OUT_OF_DEVICE_MEMORY || status == HD_STATUS_DEVICE_LOST;
    for (uint32_t i = 0; i < count && status && !of_device; i++)
        if (wanted[i].failed && refuse(device, wanted[i].kernel, status, inside.text)) *out_refused = true;
    if (*out_refused) status = HD_OK;
    if (status && error) *error = inside;
    hdi_free(device->host->allocator, wanted, cmds->kernel_count * sizeof *wanted);
    return status;
}

hd_status hdi_verdicts_judge(hd_device *device, const hdi_plan *plan, bool *out_again, hd_error *error) {
    bool wrong = false, refused = false;
    hdi_mutex_lock(&device->verdicts->lock);
    hd_status status = load_products(device, plan, &refused, error);
    if (!status && !refused && device->verdicts->at_once) status = judge_plan(device, plan, &wrong, error);
    hdi_mutex_unlock(&device->verdicts->lock);
    *out_again = wrong || refused;
    if (*out_again) atomic_fetch_add(&device->facts_version, 1);
    return status;
}

hd_status hdi_verdicts_plan(hd_device *device, const hd_program *program, const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error) {
    for (bool again = true; again;) { /* each round but the last finds a kernel that is wrong, or a product that is refused */
        hdi_caps caps;
        hdi_verdicts_caps(device, &caps);
        hd_status status = hdi_plan_make(device->host->allocator, program, &caps, options, out_plan, error);
        if (!status) status = hdi_verdicts_judge(device, *out_plan, &again, error);
        if (!status && !again) return HD_OK;
        hdi_plan_free(*out_plan);
        *out_plan = NULL;
        if (status) return status;
    }
    return HD_OK;
}

/* ---- all of them ---- */

static void tell(hdi_variant variant, const hdi_judgement *judgement, hd_verdict_fn report, void *user) {
    hd_verdict verdict = { .kernel = "arithmetic", .form = "f32", .exact = variant.exact, .wrong = judgement->worst > 1, .answers = judgement->answers, .worst = judgement->worst };
    if (variant.module < HDI_MODULE_COUNT) {
        char text[HDI_VARIANT_TEXT];
        verdict.kernel = hdi_module_get(variant.module)->name;
        const char *form = hdi_variant_text(variant, text) + strlen(verdict.kernel) + 1;
        snprintf(verdict.form, sizeof verdict.form, "%.*s", (int)strcspn(form, ","), form);
    }
    if (report) report(user, &verdict);
}

/* Judges every form of a module in fast or exact arithmetic. */
static hd_status verify_module(hd_device *device, hdi_variant variant, hd_verdict_fn report, void *user, uint32_t *wrong, hd_error *error) {
    hdi_judgement forms[64];
    const hd_status status = judge(device, variant, forms, error);
    for (uint32_t form = 0; form < 64 && !status; form++) {
        variant.forms = UINT64_C(1) << form;
        if (forms[form].answers == 0) continue;
        *wrong += forms[form].worst > 1;
        tell(variant, &forms[form], report, user);
    }
    return status;
}

hd_status hd_device_verify(hd_device *device, hd_verdict_fn report, void *user, uint32_t *out_wrong) {
    if (!device) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_judgement judgement;
    uint32_t wrong = 0;
    hdi_variant variants[HDI_MODULE_COUNT * 2];
    for (uint32_t i = 0; i < HDI_COUNT(variants); i++) variants[i] = (hdi_variant){ i / 2, i % 2 != 0, UINT64_MAX };
    hdi_mutex_lock(&device->verdicts->lock);
    const hdi_caps caps = caps_now(device);
    hd_status status = hdi_known_kernels(device, &caps, variants, HDI_COUNT(variants), &error);
    if (!status) status = judge_arithmetic(device, &judgement, &error);
    if (!status && judgement.answers) tell((hdi_variant){ HDI_MODULE_COUNT, true, 0 }, &judgement, report, user);
    if (!status) wrong += judgement.worst > 1;
    for (uint32_t i = 0; i < HDI_COUNT(variants) && !status; i++) status = verify_module(device, variants[i], report, user, &wrong, &error);
    save(device);
    hdi_mutex_unlock(&device->verdicts->lock);
    atomic_fetch_add(&device->facts_version, 1); /* plans of before may hold what is wrong */
    if (out_wrong) *out_wrong = wrong;
    return status ? hdi_context_keep(device->context, &error) : HD_OK;
}
