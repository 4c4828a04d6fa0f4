/* test_conform_cpu.c: the CPU device passes the seam's suite, by itself and with a thread pool of four. */
#include "conform/conform.h"

int main(void) {
    conform cpu = { .backend = &hdi_backend_cpu,
                    .host = { .allocator = &hdi_default_allocator, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) } };
    int failures = conform_run(&cpu, "cpu, 1 thread");
    cpu.host.thread_pool = hdi_thread_pool_new(&hdi_default_allocator, 4);
    failures += !cpu.host.thread_pool + conform_run(&cpu, "cpu, 4 threads");
    hdi_thread_pool_free(cpu.host.thread_pool);
    return failures;
}
