/* test_conform_levelzero.c: the seam's suite on Level Zero, as the device is. Then what only it has: modules on disk, a driver
 * that refuses them, and lists that are executed again. */
#define _GNU_SOURCE
#include "conform/conform.h"

#if defined(HEDDLE_LEVELZERO)
#include "device/levelzero/ze.h"
#include <dirent.h>
#include <unistd.h>

static char log_lines[4096];
static void keep_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) snprintf(log_lines, sizeof log_lines, "[%s] %.4000s", part, line);
}

static char    cache_dir[] = "/tmp/heddle-conform-XXXXXX";
static hdi_log test_log = { keep_line, NULL, HD_LOG_WARNING };
static conform one = { .backend = &hdi_backend_levelzero };

static void open_device(void) {
    hdi_probe probe;
    hdi_backend_levelzero.probe(&one.host, &probe);
    assert_true(probe.found_count > 0);
    one.found = probe.found[0];
    assert_int_equal(hdi_backend_levelzero.open(&one.host, &one.found, NULL, &one.device, NULL), HD_OK);
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
    const hd_status status = hdi_backend_levelzero.kernel_load(one.device, &conform_module, &kernel, &loaded, out_cached, error);
    hdi_backend_levelzero.kernel_free(one.device, loaded);
    return status;
}

/* A cached module that the driver refuses is compiled anew; what it cannot compile says so. */
static uint32_t refusals;
static ze_result_t refuse(hdze_function function) {
    return function == HDZE_FN_ModuleCreate && refusals && refusals-- ? ZE_RESULT_ERROR_MODULE_BUILD_FAILURE : ZE_RESULT_SUCCESS;
}

static void test_cache(void **state) {
    (void)state;
    hd_error error;
    bool cached;
    one.host.cache_dir = cache_dir;
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
    hdi_backend_levelzero.close(one.device);
    open_device();
    assert_int_equal(load(6, &cached, &error), HD_OK);
    assert_true(cached);
    hdi_backend_levelzero.close(one.device);
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
    assert_int_equal(hdi_backend_levelzero.kernel_load(one.device, &module, &kernel, &loaded, &cached, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "kernel bad: SPIR-V"));
    hdi_backend_levelzero.close(one.device);
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
    hdi_backend_levelzero.probe(&one.host, &probe);
    if (!probe.found_count) return HD_STATUS_NO_DEVICE;
    hd_status status = hdi_backend_levelzero.open(&one.host, &probe.found[0], NULL, &one.device, error);
    if (status) return status;
    status = load(7, &cached, error);
    if (!status) status = hdi_backend_levelzero.alloc(one.device, &(hdi_alloc_desc){ .bytes = 4096 }, &memory, error);
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
        status = hdi_backend_levelzero.submit(one.device, &submission, &ticket, error);
        if (!status) status = hdi_backend_levelzero.wait(one.device, ticket, one.host.wait_ns, error);
        if (!status && timed) status = hdi_backend_levelzero.profile(one.device, ticket, ns, 8, &count, error);
        hdi_backend_levelzero.forget(one.device, recording);
    }
    hdi_backend_levelzero.free(one.device, memory);
    hdi_backend_levelzero.close(one.device);
    return status;
}

static void test_failures(void **state) {
    (void)state;
    uint32_t failed = 0;
    hd_error error = { 0 };
    one.host.cache_dir = cache_dir;
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
    empty_cache();
    one.host.cache_dir = NULL;
}

int main(void) {
    one.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    hdi_probe probe;
    hdi_backend_levelzero.probe(&one.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Level Zero device: %s; %s\n", probe.reason, probe.mend);
        rmdir(cache_dir);
        return probe.reason[0] && probe.mend[0] ? 0 : 1;
    }
    printf("%s, %s, %s\n", probe.found[0].info.id, probe.found[0].info.name, probe.found[0].info.driver);
    int failures = conform_run(&one, "levelzero");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cache), cmocka_unit_test(test_bad_modules), cmocka_unit_test(test_failures) };
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
