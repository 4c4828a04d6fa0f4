/* test_conform_webgpu.c: the seam's suite on WebGPU. Then what only it has: copies and fills by a kernel, in pieces and at any
 * byte. */
#define _GNU_SOURCE
#include "conform/driver.h"
#include "device/webgpu/wg.h"

static const conform_reason never[] = {
    { "replay", "WebGPU's command buffers are used once: commands are encoded for each submission" },
    { NULL, NULL },
};

/* More than one piece: filled, and moved by other than whole words, beside bytes that stay. */
static void test_pieces(void **state) {
    (void)state;
    enum { BEFORE = 3, MORE = 1001 };
    const uint64_t filled = HDWG_PIECE_BYTES + 4 * MORE, copied = HDWG_PIECE_BYTES + MORE;
    static conform_list list;
    hdi_memory *from = NULL, *to = NULL;
    uint64_t ticket;
    hd_error error = { 0 };
    open_device();
    assert_int_equal(subject.backend->alloc(subject.device, &(hdi_alloc_desc){ .bytes = filled }, &from, &error), HD_OK);
    assert_int_equal(subject.backend->alloc(subject.device, &(hdi_alloc_desc){ .bytes = filled, .use = HD_BUFFER_READBACK }, &to, &error), HD_OK);
    list_begin(&list);
    list_slot(&list, from, 0, filled);
    list_slot(&list, to, 0, filled);
    list_fill(&list, 0, 0, filled, 0x04030201);
    list_barrier(&list, false);
    list_copy(&list, 0, 1, 1, BEFORE, copied);
    hdi_submission submission = list_submission(&list);
    assert_int_equal(subject.backend->submit(subject.device, &submission, &ticket, &error), HD_OK);
    assert_int_equal(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, &error), HD_OK);
    const uint8_t *bytes = subject.backend->map(subject.device, to);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < filled; i++) wrong += bytes[i] != (i < BEFORE || i >= BEFORE + copied ? 0 : (i - BEFORE + 1) % 4 + 1);
    assert_int_equal(wrong, 0);
    subject.backend->close(subject.device);
}

int main(void) {
    subject.backend = &hdi_backend_webgpu;
    subject.host = (hdi_host){ .allocator = &hdi_default_allocator, .log = &test_log, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) };
    subject.never = never;
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count) {
        printf("skipped, no WebGPU device: %s; %s\n", probe.reason, probe.mend);
        return probe.reason[0] && probe.mend[0] ? 0 : 1;
    }
    printf("%s, %s, %s\n", probe.found[0].info.id, probe.found[0].info.name, probe.found[0].info.driver);
    const int failures = conform_run(&subject, "webgpu");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces), cmocka_unit_test(test_cut_module) };
    return failures + cmocka_run_group_tests_name("webgpu only", tests, NULL, NULL);
}
