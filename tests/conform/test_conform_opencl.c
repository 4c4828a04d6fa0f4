/* test_conform_opencl.c: the seam's suite on OpenCL, as the device is and as if it were of OpenCL 1.2: no memory shared by
 * host and device, no command buffers. Then what only OpenCL has: programs on disk. */
#define _GNU_SOURCE
#include "conform/conform.h"
#include <dirent.h>
#include <unistd.h>

#if defined(HEDDLE_OPENCL)
#include "device/opencl/cl.h"

static void print_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) fprintf(stderr, "[%s] %s\n", part, line);
}

static char    cache_dir[] = "/tmp/heddle-conform-XXXXXX";
static hdi_log test_log = { print_line, NULL, HD_LOG_WARNING };
static const conform_reason never[] = {
    { "replay", "commands are handed over anew each time without cl_khr_command_buffer" },
    { NULL, NULL },
};
static conform opencl = { .backend = &hdi_backend_opencl };

static void open_device(void) {
    hdi_probe probe;
    hdi_backend_opencl.probe(&opencl.host, &probe);
    assert_true(probe.found_count > 0);
    opencl.found = probe.found[0];
    assert_int_equal(hdi_backend_opencl.open(&opencl.host, &opencl.found, NULL, &opencl.device, NULL), HD_OK);
}

/* Counts the cache's files; removes them, or flips a byte of each. */
static int visit_cache(bool damage, bool cut) {
    int count = 0;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        count++;
        if (!damage && !cut) remove(path);
        if (cut) assert_int_equal(truncate(path, 100), 0);
        if (!damage) continue;
        FILE *file = fopen(path, "r+b");
        fseek(file, -20, SEEK_END);
        const int byte = fgetc(file);
        fseek(file, -1, SEEK_CUR);
        fputc(byte ^ 1, file);
        fclose(file);
    }
    closedir(folder);
    return count;
}

static bool load_from_cache(uint32_t factor) {
    const hdi_kernel kernel = conform_kernel(factor);
    hdi_loaded_kernel *loaded = NULL;
    bool cached = false;
    assert_int_equal(hdi_backend_opencl.kernel_load(opencl.device, &conform_module, &kernel, &loaded, &cached, NULL), HD_OK);
    hdi_backend_opencl.kernel_free(opencl.device, loaded);
    return cached;
}

static void test_cache(void **state) {
    (void)state;
    opencl.host.cache_dir = cache_dir;
    open_device();
    assert_false(load_from_cache(5));
    assert_true(load_from_cache(5));
    assert_false(load_from_cache(6)); /* other constants are another kernel */
    assert_int_equal(visit_cache(true, false), 2);
    assert_false(load_from_cache(5));
    assert_true(load_from_cache(5));
    assert_int_equal(visit_cache(false, true), 2);
    assert_false(load_from_cache(6));
    assert_true(load_from_cache(6));
    hdi_backend_opencl.close(opencl.device);
    open_device();
    assert_true(load_from_cache(6));
    hdi_backend_opencl.close(opencl.device);
    assert_int_equal(visit_cache(false, false), 2); /* no half-written file stays */
    opencl.host.cache_dir = "/proc/heddle-is-not-there";
    open_device();
    assert_false(load_from_cache(5));
    hdi_backend_opencl.close(opencl.device);
    opencl.host.cache_dir = NULL;
}

static void test_bad_modules(void **state) {
    (void)state;
    open_device();
    uint32_t words[HDI_COUNT(conform_words)];
    memcpy(words, conform_words, sizeof words);
    hdi_blob blob = { words, 4, 1, NULL };
    const hdi_module module = { "bad", &blob, NULL };
    const hdi_kernel kernel = conform_kernel(2);
    hdi_loaded_kernel *loaded = NULL;
    hd_error error = { 0 };
    bool cached;
    assert_int_equal(hdi_backend_opencl.kernel_load(opencl.device, &module, &kernel, &loaded, &cached, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "kernel bad: SPIR-V"));
    hdi_backend_opencl.close(opencl.device);
}

int main(void) {
    opencl.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    hdi_probe probe;
    hdi_backend_opencl.probe(&opencl.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no OpenCL device: %s\n", probe.reason);
        return 0;
    }
    printf("%s, %s\n", probe.found[0].info.name, probe.found[0].info.driver);
    hdcl_facts facts[HDI_MAX_FOUND];
    hdcl_cl cl;
    const char *mend;
    const bool records = !hdcl_load(&cl, &mend) && hdcl_list(&cl, facts, probe.found, HDI_COUNT(facts)) && facts[0].records;
    opencl.never = records ? NULL : never;
    int failures = conform_run(&opencl, records ? "opencl, recording" : "opencl");
    hdcl_hide_set(HDCL_HIDE_SHARED | HDCL_HIDE_RECORDING);
    opencl.never = never;
    failures += conform_run(&opencl, "opencl 1.2");
    hdcl_hide_set(0);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cache), cmocka_unit_test(test_bad_modules) };
    failures += cmocka_run_group_tests_name("opencl only", tests, NULL, NULL);
    rmdir(cache_dir);
    return failures;
}
#else
int main(void) {
    printf("skipped: built without OpenCL headers\n");
    return 0;
}
#endif
