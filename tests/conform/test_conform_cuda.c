/* test_conform_cuda.c: the seam's suite on CUDA and on HIP, which share their code, as the devices are: `test_conform_cuda hip`
 * takes one of them. Then what only they have: kernels from the disk where no compiler is, and compilers that say why. */
#define _GNU_SOURCE
#include "conform/conform.h"
#include "device/cuda/cu.h"
#include <dirent.h>
#include <unistd.h>

static char log_lines[4096];
static void keep_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) snprintf(log_lines, sizeof log_lines, "[%s] %.4000s", part, line);
}

static char    cache_dir[] = "/tmp/heddle-conform-XXXXXX";
static hdi_log test_log = { keep_line, NULL, HD_LOG_WARNING };
static conform one;

static void open_device(void) {
    hdi_probe probe;
    one.backend->probe(&one.host, &probe);
    assert_true(probe.found_count > 0);
    one.found = probe.found[0];
    assert_int_equal(one.backend->open(&one.host, &one.found, NULL, &one.device, NULL), HD_OK);
}

static int empty_cache(void) {
    int count = 0;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)); count += entry->d_name[0] != '.') {
        char path[512];
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        if (entry->d_name[0] != '.') remove(path);
    }
    closedir(folder);
    return count;
}

static hd_status load(uint32_t factor, bool *out_cached, hd_error *error) {
    const hdi_kernel kernel = conform_kernel(factor);
    hdi_loaded_kernel *loaded = NULL;
    *error = (hd_error){ 0 };
    const hd_status status = one.backend->kernel_load(one.device, &conform_module, &kernel, &loaded, out_cached, error);
    one.backend->kernel_free(one.device, loaded);
    return status;
}

static void test_without_compiler(void **state) {
    (void)state;
    hd_error error;
    bool cached;
    one.host.cache_dir = cache_dir;
    open_device();
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_false(cached);
    one.backend->close(one.device);
    open_device();
    one.device->api.compiles = false;
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_true(cached);
    assert_int_equal(load(6, &cached, &error), HD_STATUS_RUNTIME_NOT_FOUND);
    assert_non_null(strstr(error.text, "kernel conform is not in the cache and there is no "));
    assert_non_null(strstr(error.text, one.device->api.flavour->compiler_mend));
    one.backend->close(one.device);
    assert_int_equal(empty_cache(), 1);
    one.host.cache_dir = NULL;
}

/* A cached kernel that the driver refuses is compiled anew; what cannot be compiled says so, in the compiler's words. */
static hdcu_function refused;
static uint32_t refusals;
static int refuse(hdcu_function function) {
    return function == refused && refusals && refusals-- ? 209 : 0;
}

static void test_refusals(void **state) {
    (void)state;
    hd_error error;
    bool cached;
    one.host.cache_dir = cache_dir;
    open_device();
    assert_int_equal(load(5, &cached, &error), HD_OK);
    hdcu_fault_set(refuse);
    refused = HDCU_FN_ModuleLoadData;
    refusals = 1;
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_false(cached);
    refused = HDCU_FN_CompileProgram;
    refusals = 1;
    assert_int_equal(load(7, &cached, &error), HD_STATUS_PIPELINE_CREATION);
    assert_non_null(strstr(error.text, "compiling kernel conform"));
    assert_int_equal(error.native_code, 209);
    hdcu_fault_set(NULL);
    assert_int_equal(load(7, &cached, &error), HD_OK);
    one.backend->close(one.device);
    assert_int_equal(empty_cache(), 2);
    one.host.cache_dir = NULL;
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
    assert_int_equal(one.backend->kernel_load(one.device, &module, &kernel, &loaded, &cached, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "kernel bad: SPIR-V"));
    one.backend->close(one.device);
}

static int run_one(const hdi_backend *backend) {
    hdi_probe probe;
    one = (conform){ .backend = backend };
    one.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    backend->probe(&one.host, &probe);
    if (!probe.found_count) {
        printf("skipped, %s: %s; %s\n", backend->name, probe.reason, probe.mend);
        return probe.reason[0] && probe.mend[0] ? 0 : 1;
    }
    printf("%s, %s, %s\n", probe.found[0].info.id, probe.found[0].info.name, probe.found[0].info.driver);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_compiler), cmocka_unit_test(test_refusals), cmocka_unit_test(test_bad_modules) };
    return conform_run(&one, backend->name) + cmocka_run_group_tests_name("compilers", tests, NULL, NULL);
}

int main(int argc, char **argv) {
    static const hdi_backend *const backends[] = { &hdi_backend_cuda, &hdi_backend_hip };
    int failures = 0;
    if (!mkdtemp(cache_dir)) return 1;
    for (size_t i = 0; i < HDI_COUNT(backends); i++)
        if (argc < 2 || strcmp(argv[1], backends[i]->name) == 0) failures += run_one(backends[i]);
    rmdir(cache_dir);
    return failures;
}
