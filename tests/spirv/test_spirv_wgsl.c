/* test_spirv_wgsl.c: the WGSL text of every kernel that the planner can choose, and of users' kernels. Each is printed, or refused by
 * name for what WGSL has not; where wgpu-native is installed, each that was printed becomes a pipeline without a word of its
 * validation. */
#define _GNU_SOURCE
#include "languages.h"
#include "device/backend.h"
#include <stdio.h>
#include <stdlib.h>
#include "../unit/spirv_fixtures.h"
#include "user_kernels.h"

static hdi_backend_device *device; /* NULL: no library */
static int failures;

static void print_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    (void)level;
    fprintf(stderr, "[%s] %s\n", part, line);
}
static const hdi_log  log_all = { .write = print_line, .level = HD_LOG_WARNING };
static const hdi_host host = { .allocator = &hdi_default_allocator, .log = &log_all, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };

static void fail(const char *label, const char *why) {
    printf("FAILED %s: %.400s\n", label, why);
    failures++;
}

/* What WGSL has not; anything else that is refused is a failure. */
static bool is_known_refusal(const char *text) {
    static const char *const known[] = { "WGSL has no subgroups here", "WGSL has no barrier of a subgroup", "WGSL has no cooperative matrices here",
                                         "WGSL has no memory barrier of its own", "64 bits, which WGSL does not have" };
    for (size_t i = 0; i < HDI_COUNT(known); i++)
        if (strstr(text, known[i])) return true;
    return false;
}

/* ---- heddle's own ---- */

static void check_own(void) {
    static chosen_kernels chosen;
    uint32_t printed_count = 0, refused = 0, built = 0;
    choose_kernels(&chosen);
    for (uint32_t i = 0; i < chosen.count; i++) {
        char label[256];
        hdi_spirv_printed printed;
        hd_error error;
        kernel_label(&chosen.kernels[i], label, sizeof label);
        char *text = print_kernel(&chosen.kernels[i], LANGUAGE_WGSL, &printed, &error);
        if (!text) {
            if (is_known_refusal(error.text)) refused++;
            else fail(label, error.text);
            continue;
        }
        printed_count++;
        hdi_loaded_kernel *loaded = NULL;
        bool cached;
        if (device && hdi_backend_webgpu.kernel_load(device, hdi_module_get(chosen.kernels[i].module), &chosen.kernels[i], &loaded, &cached, &error)) fail(label, error.text);
        else built += device != NULL;
        if (device) hdi_backend_webgpu.kernel_free(device, loaded);
        free(text);
    }
    printf("heddle's kernels: %u printed, %u refused for what WGSL has not, %u built\n", printed_count, refused, built);
    if (printed_count < 130) fail("heddle's kernels", "too few were printed");
}

/* ---- users' ---- */

static void check_users(void) {
    uint32_t printed_count = 0, refused = 0, built = 0;
    for (size_t i = 0; i < HDI_COUNT(user_kernels); i++) {
        const hdi_blob blob = { user_kernels[i].words, user_kernels[i].bytes / 4, 1 + i, NULL };
        const hdi_module module = { .name = user_kernels[i].name, .spirv = &blob };
        const hdi_kernel kernel = { .module = HDI_USER_MODULE, .binding_count = HDI_MAX_BINDINGS, .push_bytes = 128 };
        const hdi_spirv_print_target target = { .dialect = HDI_SPIRV_WGSL };
        hdi_text text = { .allocator = &hdi_default_allocator };
        hdi_spirv_printed printed;
        hd_error error = { 0 };
        const hdi_spirv_input input = { .module = blob.words, .bytes = blob.word_count * 4 };
        if (hdi_spirv_print(&hdi_default_allocator, &input, &target, &text, &printed, &error)) {
            refused++;
            if (!strstr(error.text, "WGSL")) fail(module.name, error.text);
        } else {
            printed_count++;
            hdi_loaded_kernel *loaded = NULL;
            bool cached;
            if (device && hdi_backend_webgpu.kernel_load(device, &module, &kernel, &loaded, &cached, &error)) {
                fail(module.name, error.text);
            } else {
                built += device != NULL;
            }
            if (device) hdi_backend_webgpu.kernel_free(device, loaded);
        }
        hdi_text_free(&text);
    }
    printf("users' kernels: %u printed, %u refused, %u built\n", printed_count, refused, built);
}

int main(void) {
    hdi_probe probe;
    hdi_backend_webgpu.probe(&host, &probe);
    if (!probe.found_count) printf("printed only: %s; %s\n", probe.reason, probe.mend);
    else if (hdi_backend_webgpu.open(&host, &probe.found[0], NULL, &device, NULL)) fail(probe.found[0].info.id, "it cannot be opened");
    check_own();
    check_users();
    if (device) hdi_backend_webgpu.close(device);
    return failures != 0;
}
