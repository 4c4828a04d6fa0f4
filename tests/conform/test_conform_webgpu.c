/* test_conform_webgpu.c: the seam's suite on WebGPU. Then what only it has: copies and fills by a kernel, in pieces and at any
 * byte, and what the implementation says of a text that it refuses. */
#define _GNU_SOURCE
#include "conform/driver.h"
#include "device/webgpu/wg.h"

static const conform_reason never[] = {
    { "replay", "WebGPU's command buffers are used once: commands are encoded for each submission" },
    { NULL, NULL },
};

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
    return conform_run(&subject, "webgpu");
}
