/* verify.c: which kernel variants are right on a device. A variant is judged by its known answers before the first plan that
 * holds it runs, or when the caller asks for all of them; what is wrong becomes a fact of the device (hdi_caps.wrong), so
 * that planning stays pure. Verdicts are kept on disk for the device, its driver and the kernels of this build; of the CPU,
 * whose kernels have no digest, only in memory. */
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
static hdi_caps caps_now(const hd_device *device) {
    hdi_caps caps = device->found.caps;
    memcpy(caps.wrong, device->verdicts->file.wrong, sizeof caps.wrong);
    caps.inexact = device->verdicts->file.inexact;
    return caps;
}

void hdi_verdicts_caps(hd_device *device, hdi_caps *out_caps) {
    hdi_mutex_lock(&device->verdicts->lock);
    *out_caps = caps_now(device);
    hdi_mutex_unlock(&device->verdicts->lock);
}

/* ---- judging; called with the lock held ---- */

static hd_status judge(hd_device *device, hdi_variant variant, hdi_judgement *out, hd_error *error) {
    verdict_file *file = &device->verdicts->file;
    const uint64_t began = hdi_now_ns();
    const hdi_caps caps = caps_now(device);
    const hd_status status = hdi_known_answers(device, &caps, variant, out, error);
    if (status) return status;
    char text[HDI_VARIANT_TEXT];
    hdi_log_line(device->host->log, HD_LOG_DEBUG, "verify", "%s: %u answers, error %g of the bound, %.1f ms", hdi_variant_text(variant, text), out->answers, out->worst,
                 (double)(hdi_now_ns() - began) * 1e-6);
    file->judged[variant.module][variant.exact] |= variant.forms;
    file->wrong[variant.module][variant.exact] &= ~variant.forms;
    if (!(out->worst > 1)) return HD_OK;
    file->wrong[variant.module][variant.exact] |= variant.forms;
    hdi_log_line(device->host->log, HD_LOG_WARNING, "verify", "%s: kernel %s gives wrong results (driver %s) and is not used", device->found.info.id,
                 hdi_variant_text(variant, text), device->found.info.driver);
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

/* Judges what the plan holds and nobody has judged. `*out_wrong`: it holds what is wrong. */
static hd_status judge_plan(hd_device *device, const hdi_plan *plan, bool *out_wrong, hd_error *error) {
    verdict_file *file = &device->verdicts->file;
    hd_status status = HD_OK;
    bool judged = false;
    *out_wrong = false;
    if (plan->options.math == HD_MATH_EXACT && !file->arithmetic_judged) {
        hdi_judgement judgement;
        status = judge_arithmetic(device, &judgement, error);
        judged = true;
        *out_wrong = file->inexact != 0;
    }
    for (uint32_t i = 0; i < plan->cmds.kernel_count && !status; i++) {
        const hdi_kernel *kernel = &plan->cmds.kernels[i];
        if (kernel->module >= HDI_USER_MODULE) continue;
        hdi_variant variant = hdi_variant_of(kernel);
        const uint64_t forms = variant.forms;
        for (uint32_t form = 0; form < 64 && !status; form++) {
            variant.forms = forms & UINT64_C(1) << form & ~file->judged[variant.module][variant.exact];
            if (!variant.forms) continue;
            hdi_judgement judgement;
            status = judge(device, variant, &judgement, error);
            judged = true;
        }
        *out_wrong = *out_wrong || (file->wrong[variant.module][variant.exact] & forms);
    }
    if (judged) save(device);
    return status;
}

hd_status hdi_verdicts_plan(hd_device *device, const hd_program *program, const hdi_plan_options *options, hdi_plan **out_plan, hd_error *error) {
    for (;;) { /* each round but the last finds a variant that is wrong */
        hdi_caps caps;
        bool wrong = false;
        hdi_verdicts_caps(device, &caps);
        hd_status status = hdi_plan_make(device->host->allocator, program, &caps, options, out_plan, error);
        if (!status && device->verdicts->at_once) {
            hdi_mutex_lock(&device->verdicts->lock);
            status = judge_plan(device, *out_plan, &wrong, error);
            hdi_mutex_unlock(&device->verdicts->lock);
        }
        if (!status && !wrong) return HD_OK;
        hdi_plan_free(*out_plan);
        *out_plan = NULL;
        if (status) return status;
        hdi_core_drop_idle(device->context, device);
    }
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

hd_status hd_device_verify(hd_device *device, hd_verdict_fn report, void *user, uint32_t *out_wrong) {
    if (!device) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hdi_judgement judgement;
    uint32_t wrong = 0;
    hdi_mutex_lock(&device->verdicts->lock);
    hd_status status = judge_arithmetic(device, &judgement, &error);
    if (!status && judgement.answers) tell((hdi_variant){ HDI_MODULE_COUNT, true, 0 }, &judgement, report, user);
    if (!status) wrong += judgement.worst > 1;
    for (uint32_t i = 0; i < HDI_MODULE_COUNT * 128u && !status; i++) {
        const hdi_variant variant = { i / 128, i / 64 % 2 != 0, UINT64_C(1) << i % 64 };
        status = judge(device, variant, &judgement, &error);
        if (status || judgement.answers == 0) continue;
        wrong += judgement.worst > 1;
        tell(variant, &judgement, report, user);
    }
    save(device);
    hdi_mutex_unlock(&device->verdicts->lock);
    hdi_core_drop_idle(device->context, device); /* they may hold what is wrong */
    if (out_wrong) *out_wrong = wrong;
    return status ? hdi_context_keep(device->context, &error) : HD_OK;
}
