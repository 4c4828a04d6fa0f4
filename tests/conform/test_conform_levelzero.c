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

/* Every function that may fail does so once while a device is opened, used and closed: said as its list says, nothing lost,
 * and the next attempt succeeds. */
static hdze_function failing;
static ze_result_t failing_with;
static uint32_t failing_at;
static bool was_asked;
static ze_result_t fail_once(hdze_function function) {
    if (function != failing || failing_at == 0 || --failing_at > 0) return ZE_RESULT_SUCCESS;
    was_asked = true;
    return failing_with;
}

static hd_status life(hd_error *error) {
    hdi_probe probe;
    hdi_memory *memory = NULL;
    bool cached;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) return HD_STATUS_NO_DEVICE;
    hd_status status = subject.backend->open(&subject.host, &probe.found[0], NULL, &subject.device, error);
    if (status) return status;
    status = load(7, &cached, error);
    if (!status) status = subject.backend->alloc(subject.device, &(hdi_alloc_desc){ .bytes = 4096 }, &memory, error);
    for (int timed = 0; timed < 2 && !status; timed++) {
        static conform_list list;
        uint64_t ticket = 0, ns[8];
        uint32_t count = 0;
        hdi_recording *recording = NULL;
        list_begin(&list);
        list_slot(&list, memory, 0, 4096);
        list.cmd[list.cmds.cmd_count++] = (hdi_cmd){ .kind = HDI_CMD_MARK };
        list_fill(&list, 0, 0, 2048, 3);
        list_copy(&list, 0, 0, 0, 2048, 1024);
        hdi_submission submission = { .cmds = &list.cmds, .kernels = list.loaded, .slots = list.slots, .timestamps = timed, .recording = timed ? NULL : &recording };
        status = subject.backend->submit(subject.device, &submission, &ticket, error);
        if (!status) status = subject.backend->wait(subject.device, ticket, subject.host.wait_ns, error);
        if (!status && timed) status = subject.backend->profile(subject.device, ticket, ns, 8, &count, error);
        subject.backend->forget(subject.device, recording);
    }
    subject.backend->free(subject.device, memory);
    subject.backend->close(subject.device);
    return status;
}

static void test_failures(void **state) {
    (void)state;
    uint32_t failed = 0;
    int count;
    hd_error error = { 0 };
    subject.host.cache_dir = cache_dir;
    assert_int_equal(life(&error), HD_OK); /* from now on kernels come from the disk */
    hdze_fault_set(fail_once);
    for (hdze_function f = 0; f < HDZE_FN_COUNT; f++)
        for (hdze_result_row row = 0; row < HDZE_ROW_COUNT; row++) {
            if (!(hdze_function_get(f)->results >> row & 1)) continue;
            failing = f;
            failing_with = hdze_result_of(row);
            failing_at = 1;
            was_asked = false;
            error = (hd_error){ 0 };
            const hd_status status = life(&error);
            failing_at = 0;
            failed += was_asked;
            if (was_asked && status && status != HD_STATUS_NO_DEVICE && !strstr(error.text, hdze_function_get(f)->name))
                fail_msg("%s failed, and it is said: %s", hdze_function_get(f)->name, error.text);
            assert_int_equal(life(&error), HD_OK);
        }
    hdze_fault_set(NULL);
    print_message("%u failures\n", failed);
    assert_true(failed > 60);
    cache_file("remove", &count);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_cut_module), cmocka_unit_test(test_failures) };
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
