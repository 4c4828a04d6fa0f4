/* test_conform_opencl.c: the seam's suite on OpenCL, as the device is and as if it were of OpenCL 1.2: no memory shared by
 * host and device, no command buffers. Then what only OpenCL has: programs on disk. */
#define _GNU_SOURCE
#if defined(HEDDLE_OPENCL)
#include "conform/driver.h"
#include "device/opencl/cl.h"

static const conform_reason never[] = {
    { "replay", "commands are handed over anew each time without cl_khr_command_buffer" },
    { NULL, NULL },
};

int main(void) {
    subject.backend = &hdi_backend_opencl;
    subject.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no OpenCL device: %s\n", probe.reason);
        return 0;
    }
    printf("%s, %s\n", probe.found[0].info.name, probe.found[0].info.driver);
    hdcl_facts facts[HDI_MAX_FOUND];
    hdcl_cl cl;
    const char *mend;
    const bool records = !hdcl_load(&cl, &mend) && hdcl_list(&cl, facts, probe.found, HDI_COUNT(facts)) && facts[0].records;
    subject.never = records ? NULL : never;
    int failures = conform_run(&subject, records ? "opencl, recording" : "opencl");
    hdcl_hide_set(HDCL_HIDE_SHARED | HDCL_HIDE_RECORDING | HDCL_HIDE_PTX);
    subject.never = never;
    failures += conform_run(&subject, "opencl 1.2");
    hdcl_hide_set(0);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cache), cmocka_unit_test(test_cache_damage), cmocka_unit_test(test_cache_unwritable),
                                        cmocka_unit_test(test_cut_module) };
    failures += cmocka_run_group_tests_name("opencl only", tests, NULL, NULL);
    rmdir(cache_dir);
    return failures;
}
#else
#include <stdio.h>

int main(void) {
    printf("skipped: built without OpenCL headers\n");
    return 0;
}
#endif
