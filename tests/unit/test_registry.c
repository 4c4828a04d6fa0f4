/* test_registry.c: the order of invented devices, by kind and by what was measured. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/device.h"

/* ---- the order ---- */

typedef struct invented {
    const char    *id;
    hd_device_kind kind;
    const char    *pci;
    uint64_t       measured_ns;
} invented;
enum { MOST = 8 };

/* Ranks the devices, found in their order, and tells whether they then are in the order wanted; `why`: a part of the reason. */
static void assert_order_by(const char *list, const invented *devices, const char *wanted, const char *why) {
    hdi_found found[MOST];
    hdi_registry registry = { .wanted = list };
    const hdi_found *best;
    hd_error error = { 0 };
    char got[256] = "", because[HDI_WHY];
    for (; devices[registry.ranked_count].id; registry.ranked_count++) {
        const invented *from = &devices[registry.ranked_count];
        hdi_found *to = &found[registry.ranked_count];
        *to = (hdi_found){ .info = { .kind = from->kind, .measured_ns = from->measured_ns } };
        snprintf(to->info.id, sizeof to->info.id, "%s", from->id);
        snprintf(to->info.backend, sizeof to->info.backend, "%.*s", (int)strcspn(from->id, "0123456789"), from->id);
        snprintf(to->info.pci, sizeof to->info.pci, "%s", from->pci);
        registry.ranked[registry.ranked_count] = to;
    }
    hdi_registry_rank(&registry);
    for (uint32_t i = 0; i < registry.ranked_count; i++) {
        assert_int_equal(registry.ranked[i]->info.rank, i);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", registry.ranked[i]->info.id);
    }
    assert_string_equal(got, wanted);
    assert_int_equal(hdi_registry_select(&registry, NULL, false, &best, because, sizeof because, &error), HD_OK);
    if (!strstr(because, why)) fail_msg("%s does not say %s", because, why);
    for (uint32_t i = 0; i < registry.ranked_count; i++) { /* of each that was passed over it is told why */
        char passed[64];
        snprintf(passed, sizeof passed, " passed=%s:\"", registry.ranked[i]->info.id);
        assert_true((strstr(because, passed) != NULL) == (registry.ranked[i] != best));
    }
}
static void assert_order(const invented *devices, const char *wanted, const char *why) { assert_order_by(NULL, devices, wanted, why); }

#define GPU    HD_DEVICE_DISCRETE_GPU
#define INSIDE HD_DEVICE_INTEGRATED_GPU

static void test_order(void **state) {
    (void)state;
    const invented not_measured[] = { { "vulkan", GPU, "1", 0 }, { "cuda", GPU, "1", 0 }, { "lavapipe", HD_DEVICE_SOFTWARE, "", 0 },
                                      { "cpu", HD_DEVICE_CPU, "", 0 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(not_measured, "vulkan cuda cpu lavapipe", "\"the best real device\"");
    const invented measured[] = { { "vulkan", GPU, "1", 30 }, { "cuda", GPU, "1", 10 }, { "opencl", GPU, "1", 20 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(measured, "cuda opencl vulkan", "by its fastest route as measured");
    const invented equal[] = { { "vulkan", GPU, "1", 10 }, { "cuda", GPU, "1", 10 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(equal, "vulkan cuda", "as measured");
    /* A route without a time keeps its place; one time alone says nothing. */
    const invented in_part[] = { { "vulkan", GPU, "1", 30 }, { "cuda", GPU, "1", 0 }, { "opencl", GPU, "1", 20 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(in_part, "opencl cuda vulkan", "as measured");
    const invented one[] = { { "vulkan", GPU, "1", 30 }, { "cuda", GPU, "1", 0 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(one, "vulkan cuda", "\"the best real device\"");
    /* All real devices are ranked by their times, and software behind them. */
    const invented two[] = { { "vulkan0", GPU, "1", 30 }, { "vulkan1", GPU, "2", 3 }, { "cuda0", GPU, "1", 10 }, { "cuda1", GPU, "2", 10 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(two, "vulkan1 cuda0 cuda1 vulkan0", "\"the fastest real device, as measured\"");
    const invented behind[] = { { "opencl", HD_DEVICE_SOFTWARE, "", 2 }, { "lavapipe", HD_DEVICE_SOFTWARE, "", 1 }, { "inside", INSIDE, "1", 30 }, { "cpu", HD_DEVICE_CPU, "", 10 },
                                { "null", HD_DEVICE_NULL, "", 0 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(behind, "cpu inside lavapipe opencl null", "passed=inside:\"slower, as measured\"");
    const invented kinds[] = { { "inside", INSIDE, "3", 1 }, { "vulkan", GPU, "1", 30 }, { "opencl", INSIDE, "1", 2 }, { "nowhere", GPU, "", 1 }, { "nowhere2", GPU, "", 0 },
                               { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order(kinds, "nowhere inside nowhere2 opencl vulkan", "\"the fastest real device, as measured\"");
}

/* The order that is asked for goes before kinds and times; software is taken by its name only. */
static void test_order_by_list(void **state) {
    (void)state;
    const invented all[] = { { "vulkan", GPU, "1", 10 }, { "cuda", GPU, "1", 30 }, { "opencl0", GPU, "1", 20 },
                             { "opencl1", HD_DEVICE_SOFTWARE, "", 0 }, { "cpu", HD_DEVICE_CPU, "", 0 },
                             { "null", HD_DEVICE_NULL, "", 0 }, { NULL, HD_DEVICE_NONE, NULL, 0 } };
    assert_order_by(NULL, all, "vulkan opencl0 cuda cpu opencl1 null", "passed=cuda:\"the same GPU by a slower route, as measured\"");
    assert_order_by("vulkan,cuda,opencl,cpu,null", all, "vulkan cuda opencl0 opencl1 cpu null", "selected=vulkan because=\"the first real device");
    assert_order_by("cuda,opencl,vulkan,cpu,null", all, "cuda opencl0 opencl1 vulkan cpu null", "selected=cuda ");
    assert_order_by("opencl,cpu,vulkan,cuda,null", all, "opencl0 opencl1 cpu vulkan cuda null", "passed=opencl1:\"a software driver\"");
    assert_order_by("cpu,vulkan,cuda,opencl,null", all, "cpu vulkan cuda opencl0 opencl1 null", "passed=vulkan:\"later in the order that was asked for\"");
    assert_order_by("null,cuda,cpu,opencl,vulkan", all, "null cuda cpu opencl0 opencl1 vulkan", "selected=cuda ");
    hdi_registry registry;
    hd_error error = { 0 };
    const hdi_host host = { .allocator = &hdi_default_allocator };
    assert_int_equal(hdi_registry_probe(&registry, &host, "null,nosuch", &error), HD_STATUS_NO_DEVICE);
    assert_non_null(strstr(error.text, "no back end is called \"nosuch\""));
    assert_int_equal(hdi_registry_probe(&registry, &host, "null,", NULL), HD_STATUS_NO_DEVICE);
    assert_int_equal(hdi_registry_probe(&registry, &host, "null", NULL), HD_OK);
    assert_int_equal(registry.ranked_count, 1);
    hdi_registry_free(&registry);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_order_by_list) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
