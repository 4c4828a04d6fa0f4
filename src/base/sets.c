/* sets.c: which instruction sets CPU kernels may use: what the processor has, as far as HEDDLE_CPU permits. */
#include "base/base.h"
#include <stdatomic.h>
#if defined(__x86_64__)
#  include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#  include <sys/auxv.h>
#endif

hdi_set hdi_set_last(void) {
    static const char *const names[] = {
#define SET_NAME(set, name) name,
        HDI_SET_LIST(SET_NAME)
#undef SET_NAME
    };
    const char *text = hdi_option_get(HDI_OPTION_CPU);
    uint32_t set = 0;
    if (!text || strcmp(text, "all") == 0) return HDI_SET_COUNT - 1;
    while (set < HDI_SET_COUNT && strcmp(text, names[set]) != 0) set++;
    return (hdi_set)set;
}

#if defined(__x86_64__)
static uint32_t sets_there(void) {
    uint32_t a = 0, b = 0, c = 0, d = 0, seven = 0, one = 0, tiles = 0, sets = 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) one = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) tiles = d; /* gcc and clang of 2022 do not know all of them by name */
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) seven = a;
    __builtin_cpu_init(); /* looks at what the system keeps of registers too */
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && (one & bit_F16C);
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni"),
               bf16 = vnni && __builtin_cpu_supports("avx512bf16");
    if (avx2) sets |= 1u << HDI_SET_AVX2;
    if (avx2 && (seven >> 4 & 1)) sets |= 1u << HDI_SET_AVXVNNI;
    if (avx512) sets |= 1u << HDI_SET_AVX512;
    if (vnni) sets |= 1u << HDI_SET_AVX512VNNI;
    if (bf16) sets |= 1u << HDI_SET_AVX512BF16;
    if (bf16 && (tiles >> 24 & 1) && (tiles >> 22 & 1)) sets |= 1u << HDI_SET_AMX;
    return sets;
}
#elif defined(__aarch64__) && defined(__linux__)
static uint32_t sets_there(void) { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? 1u << HDI_SET_DOTPROD : 0; }
#else
static uint32_t sets_there(void) { return 0; }
#endif

/* cpuid takes microseconds under a hypervisor, so the answer is kept; threads that ask at once find the same. */
bool hdi_set_permitted(hdi_set set) {
    enum { KNOWN = 1 << HDI_SET_COUNT };
    static atomic_uint kept;
    uint32_t sets = atomic_load_explicit(&kept, memory_order_relaxed);
    if (!sets) {
        const uint32_t last = HDI_MIN((uint32_t)hdi_set_last(), HDI_SET_COUNT - 1u);
        sets = KNOWN | ((sets_there() | 1u << HDI_SET_PORTABLE) & ((2u << last) - 1));
        atomic_store_explicit(&kept, sets, memory_order_relaxed);
    }
    return sets >> set & 1;
}
