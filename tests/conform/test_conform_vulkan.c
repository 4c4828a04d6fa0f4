/* test_conform_vulkan.c: the seam's suite on Vulkan, four times: as the device is, without timeline semaphores
 * (fences), as if host and device shared no memory, and as if it had queues beside each other too. The validation layer, with its synchronization checks, watches
 * and must have nothing to say. Then what only Vulkan has: the cache on disk and a device of the caller's own. */
#define _GNU_SOURCE
#include "conform/driver.h"
#include "conform/driver_leaks.h"
#include "device/vulkan/vk.h"
#include <sys/wait.h>

static void no_messages(void **state) {
    (void)state;
    assert_int_equal(hdvk_validation_messages(), 0);
}

/* Several processes write and read the same file at once. */
static void share_cache(void) {
    pid_t children[3];
    for (size_t i = 0; i < HDI_COUNT(children); i++) {
        children[i] = fork();
        if (children[i]) continue;
        hdi_probe probe;
        subject.backend->probe(&subject.host, &probe);
        if (!probe.found_count) _exit(0); /* the parent says so */
        subject.host.cache_dir = cache_dir;
        open_device();
        for (int round = 0; round < 60; round++) {
            int count;
            load_from_cache(7);
            if (round % 3 == 0) cache_file("remove", &count); /* also what another one is just writing */
        }
        subject.backend->close(subject.device);
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
    hdi_backend_device *owner = subject.device;
    hdi_foreign foreign = { .instance = owner->vk.instance, .physical_device = owner->vk.physical, .device = owner->vk.device,
                            .queue_family = owner->queues[0].family, .queue_index = 0 };
    memcpy(&foreign.get_instance_proc_addr, &owner->vk.GetInstanceProcAddr, sizeof foreign.get_instance_proc_addr);
    assert_int_equal(subject.backend->open(&subject.host, &subject.found, &foreign, &subject.device, NULL), HD_OK);
    assert_ptr_equal(subject.backend->native(subject.device), subject.backend->native(owner));
    /* Nothing is used that the owner might not have switched on. */
    const hdi_found *found = subject.backend->found(subject.device);
    const hdi_caps *caps = &found->caps;
    assert_string_equal(found->info.id, subject.found.info.id);
    assert_int_equal(found->info.queues, 1);
    assert_true(caps->shared_bytes > 0 && caps->memory_bytes == subject.found.caps.memory_bytes);
    assert_int_equal(caps->f16_storage + caps->u8_storage + caps->f16_arithmetic + caps->i8_arithmetic + caps->integer_dot + caps->memory_model, 0);
    assert_int_equal(caps->subgroup_control + caps->matrix_f16 + caps->matrix_bf16 + caps->matrix_s8 + caps->matrix_workgroup + caps->matrix_reduces, 0);
    hdi_backend_device *none = NULL;
    hd_error error = { 0 };
    foreign.queue_index = 1000;
    assert_int_equal(subject.backend->open(&subject.host, &subject.found, &foreign, &none, &error), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "queue 1000 of family"));
    assert_true(test_barriers(&subject));
    assert_true(test_replay(&subject));
    assert_true(test_tickets(&subject));
    subject.backend->close(subject.device);
    subject.device = owner; /* which is none the worse for it */
    assert_true(test_barriers(&subject));
    subject.backend->close(owner);
}

static void test_device_gone(void **state) {
    (void)state;
    hdi_probe probe;
    hdi_backend_device *device = NULL;
    hd_error error = { 0 };
    subject.backend->probe(&subject.host, &probe);
    probe.found[0].info.id[10] ^= 1;
    assert_int_equal(subject.backend->open(&subject.host, &probe.found[0], NULL, &device, &error), HD_STATUS_NO_DEVICE);
    probe.found[0].index = 15;
    assert_int_equal(subject.backend->open(&subject.host, &probe.found[0], NULL, &device, NULL), HD_STATUS_NO_DEVICE);
    assert_non_null(strstr(error.text, "no longer there"));
    assert_null(device);
}

static void test_bad_modules(void **state) {
    (void)state;
    open_device();
    uint32_t words[HDI_COUNT(conform_words)];
    memcpy(words, conform_words, sizeof words);
    hdi_blob blob = { words, 4, 1, NULL };
    const hdi_module module = { .name = "bad", .spirv = &blob };
    hdi_kernel kernel = conform_kernel(2);
    hdi_loaded_kernel *loaded = NULL;
    bool cached;
    assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_MODULE);
    blob.word_count = HDI_COUNT(words);
    words[1] = 0x10700;
    assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_UNSUPPORTED);
    words[1] = conform_words[1];
    kernel.subgroup = 5;
    assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, NULL), HD_STATUS_UNSUPPORTED);
    kernel.subgroup = (uint32_t)subject.found.caps.subgroup;
    assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, NULL), HD_OK);
    subject.backend->close(subject.device);
}

static int compare_ns(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Host time to hand over a plan of 100 dispatches that was recorded before; printed, and bounded generously. */
static void test_replay_time(void **state) {
    (void)state;
    enum { ROUNDS = 200 };
    subject.host.validation = false;
    open_device();
    chain_work chain;
    hdi_recording *recording = NULL;
    uint64_t ticket, took[ROUNDS];
    assert_true(chain_begin(&subject, &chain, 100, 0));
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begun = hdi_now_ns();
        assert_int_equal(submit(&subject, &chain.list, &recording, &ticket, NULL), HD_OK);
        took[i] = hdi_now_ns() - begun;
        assert_int_equal(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, NULL), HD_OK);
    }
    qsort(took + 1, ROUNDS - 1, sizeof *took, compare_ns);
    print_message("submit of 100 dispatches: first %.1f us, replayed %.2f us (median), %.2f us (best)\n", (double)took[0] / 1e3,
                  (double)took[ROUNDS / 2] / 1e3, (double)took[1] / 1e3);
    assert_true(took[ROUNDS / 2] < 5000000);
    subject.backend->close(subject.device);
}

static uint32_t pools;
static VkResult count_pools(hdvk_function function) {
    pools += function == HDVK_FN_CreateDescriptorPool;
    return VK_SUCCESS;
}

/* A hundred thousand dispatches, encoded anew each time and up to eight hand-overs under way: sets come from pools that are used again. */
static void test_few_pools(void **state) {
    (void)state;
    enum { ROUNDS = 1000, UNDER_WAY = 8 };
    open_device();
    chain_work chain;
    uint64_t ticket = 0;
    pools = 0;
    assert_true(chain_begin(&subject, &chain, 100, 0));
    hdvk_fault_set(count_pools);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(submit(&subject, &chain.list, NULL, &ticket, NULL), HD_OK);
        if (i % UNDER_WAY == UNDER_WAY - 1) assert_int_equal(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, NULL), HD_OK);
    }
    hdvk_fault_set(NULL);
    print_message("%d dispatches: %u descriptor pools\n", 100 * ROUNDS, (unsigned)pools);
    assert_in_range(pools, 1, 2 * UNDER_WAY);
    subject.backend->close(subject.device);
}

/* A million steps by chance: nobody's bytes are another's, and blocks never hold much more than what is live. */
static void test_million_steps(void **state) {
    (void)state;
    enum { LIVE = 16384, STEPS = 1000000, MOST_BYTES = 16384 };
    static hdi_memory *live[LIVE];
    static uint64_t sizes[LIVE];
    static uint32_t tags[LIVE];
    uint64_t seed = 11, live_bytes = 0, most_live = 0, most_held = 0;
    open_device();
    for (uint32_t i = 0; i < STEPS; i++) {
        const uint32_t at = next_random(&seed) % LIVE;
        uint32_t head, tail;
        if (live[at]) {
            const uint8_t *bytes = subject.backend->map(subject.device, live[at]);
            memcpy(&head, bytes, 4);
            memcpy(&tail, bytes + sizes[at] - 4, 4);
            assert_true(head == tags[at] && tail == tags[at]);
            subject.backend->free(subject.device, live[at]);
            live_bytes -= sizes[at];
            live[at] = NULL;
            continue;
        }
        sizes[at] = 4 * (2 + next_random(&seed) % (MOST_BYTES / 4));
        tags[at] = i;
        live[at] = memory_new(&subject, sizes[at], HD_BUFFER_UPLOAD);
        assert_non_null(live[at]);
        uint8_t *bytes = subject.backend->map(subject.device, live[at]);
        memcpy(bytes, &i, 4);
        memcpy(bytes + sizes[at] - 4, &i, 4);
        live_bytes += sizes[at];
        most_live = HDI_MAX(most_live, live_bytes);
        if (i % 64) continue;
        uint64_t held = 0;
        for (const hdvk_block *block = subject.device->blocks; block; block = block->next) held += block->bytes;
        most_held = HDI_MAX(most_held, held);
    }
    for (uint32_t i = 0; i < LIVE; i++) subject.backend->free(subject.device, live[i]);
    print_message("%d steps: %.1f MB live at most, in blocks of %.1f MB\n", STEPS, (double)most_live * 1e-6, (double)most_held * 1e-6);
    assert_true((double)most_held <= 1.25 * (double)most_live);
    subject.backend->close(subject.device);
}

int main(void) {
    subject.backend = &hdi_backend_vulkan;
    subject.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .validation = true,
                              .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    if (!mkdtemp(cache_dir)) return 1;
    share_cache(); /* first: a process with Vulkan inside should not fork */
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no Vulkan device: %s\n", probe.reason);
        return 0;
    }
    printf("%s, %s\n", probe.found[0].info.name, probe.found[0].info.driver);
    int failures = conform_run(&subject, "vulkan");
    hdvk_hide_set(1u << HDVK_HAS_INDEX_TIMELINE);
    failures += conform_run(&subject, "vulkan, fences");
    hdvk_hide_set(HDVK_HIDE_UNIFIED);
    failures += conform_run(&subject, "vulkan, memory apart");
    hdvk_hide_set(HDVK_HIDE_UNIFIED | HDVK_FEIGN_QUEUES);
    failures += conform_run(&subject, "vulkan, queues of one");
    hdvk_hide_set(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache), cmocka_unit_test(test_cache_damage), cmocka_unit_test(test_cache_unwritable),
        cmocka_unit_test(test_foreign), cmocka_unit_test(test_device_gone), cmocka_unit_test(test_bad_modules),
        cmocka_unit_test(no_messages), cmocka_unit_test(test_replay_time), cmocka_unit_test(test_few_pools), /* not watched */
        cmocka_unit_test(test_million_steps),
    };
    failures += cmocka_run_group_tests_name("vulkan only", tests, NULL, NULL);
    int count;
    cache_file("remove", &count);
    rmdir(cache_dir);
    printf("validation messages: %llu\n", (unsigned long long)hdvk_validation_messages());
    return failures;
}
