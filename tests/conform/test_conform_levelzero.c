/* test_conform_levelzero.c: the seam's suite on Level Zero, as the device is. Then what only it has: modules on disk, a driver
 * that refuses them, and lists that are executed again. */
#define _GNU_SOURCE
#include "conform/driver.h"

#if defined(HEDDLE_LEVELZERO)
#include "device/levelzero/ze.h"

/* A cached module that the driver refuses is compiled anew; what it cannot compile says so. */
static uint32_t refusals;
static ze_result_t refuse(hdze_function function) {
    return function == HDZE_FN_ModuleCreate && refusals && refusals-- ? ZE_RESULT_ERROR_MODULE_BUILD_FAILURE : ZE_RESULT_SUCCESS;
}

static void test_refusals(void **state) {
    (void)state;
    hd_error error;
    bool cached;
    int count;
    subject.host.cache_dir = cache_dir;
    open_device();
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_false(cached);
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_true(cached);
    hdze_fault_set(refuse);
    refusals = 1;
    assert_int_equal(load(5, &cached, &error), HD_OK);
    assert_false(cached);
    refusals = 1;
    assert_int_equal(load(6, &cached, &error), HD_STATUS_PIPELINE_CREATION);
    assert_non_null(strstr(error.text, "kernel conform: zeModuleCreate: the compiler refuses the module"));
    hdze_fault_set(NULL);
    assert_int_equal(load(6, &cached, &error), HD_OK);
    subject.backend->close(subject.device);
    open_device();
    assert_int_equal(load(6, &cached, &error), HD_OK);
    assert_true(cached);
    subject.backend->close(subject.device);
    cache_file("remove", &count);
    assert_int_equal(count, 2);
    subject.host.cache_dir = NULL;
}

int main(void) {
    subject.backend = &hdi_backend_levelzero;
    subject.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Level Zero device: %s; %s\n", probe.reason, probe.mend);
        rmdir(cache_dir);
        return probe.reason[0] && probe.mend[0] ? 0 : 1;
    }
    printf("%s, %s, %s\n", probe.found[0].info.id, probe.found[0].info.name, probe.found[0].info.driver);
    int failures = conform_run(&subject, "levelzero");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_cut_module) };
    failures += cmocka_run_group_tests_name("levelzero only", tests, NULL, NULL);
    rmdir(cache_dir);
    return failures;
}
#else
int main(void) {
    printf("skipped: built without Level Zero headers\n");
    return 0;
}
#endif
