/* test_conform_cpu.c: the CPU device passes the seam's suite, with one worker and with four. */
#include "conform/conform.h"

int main(void) {
    conform cpu = { .backend = &hdi_backend_cpu,
                    .host = { .allocator = &hdi_default_allocator, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) } };
    int failures = conform_run(&cpu, "cpu, 1 thread");
    cpu.host.cpu_threads = 4;
    return failures + conform_run(&cpu, "cpu, 4 threads");
}
