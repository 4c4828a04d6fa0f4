/* test_conform_vulkan.c: the seam's suite on Vulkan, three times: as the device is, without timeline semaphores
 * (fences), and as if host and device shared no memory. The validation layer, with its synchronization checks, watches
 * and must have nothing to say. Then what only Vulkan has: the cache on disk and a device of the caller's own. */
#define _GNU_SOURCE
#include "conform/conform.h"
#include "conform/driver_leaks.h"
#include "device/vulkan/vk.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static void print_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) fprintf(stderr, "[%s] %s\n", part, line);
}

static char    cache_dir[] = "/tmp/heddle-conform-XXXXXX";
static hdi_log test_log = { print_line, NULL, HD_LOG_WARNING };
static conform vulkan = { .backend = &hdi_backend_vulkan };

static void no_messages(void **state) {
    (void)state;
    assert_int_equal(hdvk_validation_messages(), 0);
}

static void open_device(void) {
    hdi_probe probe;
    hdi_backend_vulkan.probe(&vulkan.host, &probe);
    assert_true(probe.found_count > 0);
    vulkan.found = probe.found[0];
    assert_int_equal(hdi_backend_vulkan.open(&vulkan.host, &vulkan.found, NULL, &vulkan.device, NULL), HD_OK);
}

/* ---- the cache ---- */

/* The one file of compiled code, opened; or the number of files. */
static FILE *cache_file(const char *mode, int *out_count) {
    FILE *file = NULL;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    *out_count = 0;
    for (struct dirent *entry; (entry = readdir(folder)); ) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        ++*out_count;
        if (file) fclose(file);
        if (strcmp(mode, "remove") == 0) remove(path);
        else file = fopen(path, mode);
    }
    closedir(folder);
    return file;
}

static bool load_from_cache(uint32_t factor) {
    const hdi_kernel kernel = conform_kernel(factor);
    hdi_loaded_kernel *loaded = NULL;
    bool cached = false;
    assert_int_equal(hdi_backend_vulkan.kernel_load(vulkan.device, &conform_module, &kernel, &loaded, &cached, NULL), HD_OK);
    hdi_backend_vulkan.kernel_free(vulkan.device, loaded);
    return cached;
}

static void test_cache(void **state) {
    (void)state;
    int count;
    cache_file("remove", &count);
    vulkan.host.cache_dir = cache_dir;
    open_device();
    assert_false(load_from_cache(5));
    assert_true(load_from_cache(5));
    cache_file("remove", &count);
    assert_int_equal(count, 1);
    assert_false(load_from_cache(5));
    hdi_backend_vulkan.close(vulkan.device);
    open_device();
    assert_true(load_from_cache(5));
    assert_false(load_from_cache(6)); /* other constants are another kernel */
    cache_file("remove", &count);
    assert_int_equal(count, 2);
    hdi_backend_vulkan.close(vulkan.device);
    vulkan.host.cache_dir = NULL;
}

static void test_cache_damage(void **state) {
    (void)state;
    int count;
    vulkan.host.cache_dir = cache_dir;
    open_device();
    cache_file("remove", &count);
    assert_false(load_from_cache(5));
    FILE *file = cache_file("rb", &count);
    uint8_t bytes[1 << 16];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 64);
    for (size_t at = 0; at < size + 3; at += at < 80 ? 1 : size / 50 + 1) { /* each place flipped, cut there, or grown */
        for (int kind = 0; kind < 2; kind++) {
            file = cache_file("wb", &count);
            bytes[at % size] ^= kind == 0 && at < size;
            assert_int_equal(fwrite(bytes, 1, kind == 1 && at < size ? at : size, file), kind == 1 && at < size ? at : size);
            if (at >= size) fputc(0, file);
            fclose(file);
            bytes[at % size] ^= kind == 0 && at < size;
            assert_false(load_from_cache(5));
            assert_true(load_from_cache(5)); /* mended */
        }
    }
    cache_file("remove", &count);
    assert_int_equal(count, 1); /* no half-written file stays */
    hdi_backend_vulkan.close(vulkan.device);
    vulkan.host.cache_dir = NULL;
}

static void test_cache_unwritable(void **state) {
    (void)state;
    vulkan.host.cache_dir = "/proc/heddle-is-not-there";
    open_device();
    assert_false(load_from_cache(5));
    assert_false(load_from_cache(5));
    hdi_backend_vulkan.close(vulkan.device);
    vulkan.host.cache_dir = NULL;
}

/* Several processes write and read the same file at once. */
static void share_cache(void) {
    pid_t children[3];
    for (size_t i = 0; i < HDI_COUNT(children); i++) {
        children[i] = fork();
        if (children[i]) continue;
        hdi_probe probe;
        hdi_backend_vulkan.probe(&vulkan.host, &probe);
        if (!probe.found_count) _exit(0); /* the parent says so */
        vulkan.host.cache_dir = cache_dir;
        open_device();
        for (int round = 0; round < 60; round++) {
            int count;
            load_from_cache(7);
            if (round % 3 == 0) cache_file("remove", &count); /* also what another one is just writing */
        }
        hdi_backend_vulkan.close(vulkan.device);
        _exit(hdvk_validation_messages() == 0 ? 0 : 1);
    }
    for (size_t i = 0; i < HDI_COUNT(children); i++) {
        int result = 1;
        if (waitpid(children[i], &result, 0) != children[i] || result != 0) exit(1);
    }
}

/* ---- the caller's own device ---- */

static void test_foreign(void **state) {
    (void)state;
    open_device();
    hdi_backend_device *owner = vulkan.device;
    hdi_foreign foreign = { .instance = owner->vk.instance, .physical_device = owner->vk.physical, .device = owner->vk.device,
                            .queue_family = owner->queues[0].family, .queue_index = 0 };
    memcpy(&foreign.get_instance_proc_addr, &owner->vk.GetInstanceProcAddr, sizeof foreign.get_instance_proc_addr);
    assert_int_equal(hdi_backend_vulkan.open(&vulkan.host, &vulkan.found, &foreign, &vulkan.device, NULL), HD_OK);
    assert_ptr_equal(hdi_backend_vulkan.native(vulkan.device), hdi_backend_vulkan.native(owner));
    assert_true(test_barriers(&vulkan));
    assert_true(test_replay(&vulkan));
    assert_true(test_tickets(&vulkan));
    hdi_backend_vulkan.close(vulkan.device);
    vulkan.device = owner; /* which is none the worse for it */
    assert_true(test_barriers(&vulkan));
    hdi_backend_vulkan.close(owner);
}

static void test_device_gone(void **state) {
    (void)state;
    hdi_probe probe;
    hdi_backend_device *device = NULL;
    hd_error error = { 0 };
    hdi_backend_vulkan.probe(&vulkan.host, &probe);
    probe.found[0].info.id[10] ^= 1;
    assert_int_equal(hdi_backend_vulkan.open(&vulkan.host, &probe.found[0], NULL, &device, &error), HD_STATUS_NO_DEVICE);
    probe.found[0].index = 15;
    assert_int_equal(hdi_backend_vulkan.open(&vulkan.host, &probe.found[0], NULL, &device, NULL), HD_STATUS_NO_DEVICE);
    assert_non_null(strstr(error.text, "no longer there"));
    assert_null(device);
}

static void test_bad_modules(void **state) {
    (void)state;
    open_device();
    uint32_t words[HDI_COUNT(conform_words)];
    memcpy(words, conform_words, sizeof words);
    hdi_blob blob = { words, 4, 1, NULL };
    const hdi_module module = { "bad", &blob, NULL };
    hdi_kernel kernel = conform_kernel(2);
    hdi_loaded_kernel *loaded = NULL;
    bool cached;
    assert_int_equal(hdi_backend_vulkan.kernel_load(vulkan.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_MODULE);
    blob.word_count = HDI_COUNT(words);
    words[1] = 0x10700;
    assert_int_equal(hdi_backend_vulkan.kernel_load(vulkan.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_UNSUPPORTED);
    words[1] = conform_words[1];
    kernel.subgroup = 5;
    assert_int_equal(hdi_backend_vulkan.kernel_load(vulkan.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_UNSUPPORTED);
    kernel.subgroup = (uint32_t)vulkan.found.caps.subgroup;
    assert_int_equal(hdi_backend_vulkan.kernel_load(vulkan.device, &module, &kernel, &loaded, &cached, NULL), HD_OK);
    hdi_backend_vulkan.close(vulkan.device);
}

static int compare_ns(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Host time to hand over a plan of 100 dispatches that was recorded before; printed, and bounded generously. */
static void test_replay_time(void **state) {
    (void)state;
    enum { ROUNDS = 200 };
    vulkan.host.validation = false;
    open_device();
    chain_work chain;
    hdi_recording *recording = NULL;
    uint64_t ticket, took[ROUNDS];
    assert_true(chain_begin(&vulkan, &chain, 100, 0));
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begun = hdi_now_ns();
        assert_int_equal(submit(&vulkan, &chain.list, &recording, &ticket, NULL), HD_OK);
        took[i] = hdi_now_ns() - begun;
        assert_int_equal(hdi_backend_vulkan.wait(vulkan.device, ticket, vulkan.host.wait_ns, NULL), HD_OK);
    }
    qsort(took + 1, ROUNDS - 1, sizeof *took, compare_ns);
    print_message("submit of 100 dispatches: first %.1f us, replayed %.2f us (median), %.2f us (best)\n", (double)took[0] / 1e3,
                  (double)took[ROUNDS / 2] / 1e3, (double)took[1] / 1e3);
    assert_true(took[ROUNDS / 2] < 5000000);
    hdi_backend_vulkan.close(vulkan.device);
}

int main(void) {
    vulkan.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .validation = true,
                              .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    share_cache(); /* first: a process with Vulkan inside should not fork */
    hdi_probe probe;
    hdi_backend_vulkan.probe(&vulkan.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Vulkan device: %s\n", probe.reason);
        return 0;
    }
    printf("%s, %s\n", probe.found[0].info.name, probe.found[0].info.driver);
    int failures = conform_run(&vulkan, "vulkan");
    hdvk_hide_set(1u << HDVK_HAS_INDEX_TIMELINE);
    failures += conform_run(&vulkan, "vulkan, fences");
    hdvk_hide_set(HDVK_HIDE_UNIFIED);
    failures += conform_run(&vulkan, "vulkan, memory apart");
    hdvk_hide_set(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache), cmocka_unit_test(test_cache_damage), cmocka_unit_test(test_cache_unwritable),
        cmocka_unit_test(test_foreign), cmocka_unit_test(test_device_gone), cmocka_unit_test(test_bad_modules),
        cmocka_unit_test(no_messages), cmocka_unit_test(test_replay_time),
    };
    failures += cmocka_run_group_tests_name("vulkan only", tests, NULL, NULL);
    int count;
    cache_file("remove", &count);
    rmdir(cache_dir);
    printf("validation messages: %llu\n", (unsigned long long)hdvk_validation_messages());
    return failures;
}
