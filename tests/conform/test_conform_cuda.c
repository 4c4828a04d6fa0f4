/* test_conform_cuda.c: the seam's suite on CUDA and on HIP, which share their code, as the devices are: `test_conform_cuda hip`
 * takes one of them. Then what only they have: kernels from the disk where no compiler is, and compilers that say why. */
#define _GNU_SOURCE
#include "conform/driver.h"
#include "device/cuda/cu.h"

static void test_without_compiler(void **state) {
    (void)state;
    hd_error error;
    bool cached;
    int count;
    subject.host.cache_dir = cache_dir;
    open_device();
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_false(cached);
    subject.backend->close(subject.device);
    open_device();
    subject.device->api.compiles = false;
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_true(cached);
    assert_int_equal(load(6, &cached, &error), HD_STATUS_RUNTIME_NOT_FOUND);
    assert_non_null(strstr(error.text, "kernel conform is not in the cache and there is no "));
    assert_non_null(strstr(error.text, subject.device->api.flavour->compiler_mend));
    subject.backend->close(subject.device);
    cache_file("remove", &count);
    assert_int_equal(count, 1);
    subject.host.cache_dir = NULL;
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
    int count;
    subject.host.cache_dir = cache_dir;
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
    subject.backend->close(subject.device);
    cache_file("remove", &count);
    assert_int_equal(count, 2);
    subject.host.cache_dir = NULL;
}

static int run_one(const hdi_backend *backend) {
    hdi_probe probe;
    subject = (conform){ .backend = backend };
    subject.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, %s: %s; %s\n", backend->name, probe.reason, probe.mend);
        return probe.reason[0] && probe.mend[0] ? 0 : 1;
    }
    printf("%s, %s, %s\n", probe.found[0].info.id, probe.found[0].info.name, probe.found[0].info.driver);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_compiler), cmocka_unit_test(test_refusals), cmocka_unit_test(test_cut_module) };
    return conform_run(&subject, backend->name) + cmocka_run_group_tests_name("compilers", tests, NULL, NULL);
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
