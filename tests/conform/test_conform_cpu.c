/* test_conform_cpu.c: the CPU device passes the seam's suite, by itself and with a crew of four. */
#include "conform/conform.h"

int main(void) {
    conform cpu = { .backend = &hdi_backend_cpu,
                    .host = { .allocator = &hdi_default_allocator, .cpu_threads = 1, .wait_ns = UINT64_C(60000000000) } };
    int failures = conform_run(&cpu, "cpu, 1 thread");
    cpu.host.crew = hdi_crew_new(&hdi_default_allocator, 4);
    failures += !cpu.host.crew + conform_run(&cpu, "cpu, 4 threads");
    hdi_crew_free(cpu.host.crew);
    return failures;
}
