/* cuda.c: CUDA's side of what CUDA and HIP do not share. */
#include "device/cuda/cu.h"
#include <stdio.h>

/* Kernels on an NVIDIA GPU: 8-bit dot products since 6.1, matrix units of f16 since 7.0,
 * from which on cuBLASLt is used too, and of 8 bits and a depth of 32 since 8.0. */
/* Does the compiler know how a kernel waits for others? What is in the cache was made by one that did. */
static bool knows_early(hdcu_api *api) {
    enum { FIRST = 1108 };
    int major = 0, minor = 0;
    return !api->compiles || (HDCU_CALL(api, CompilerVersion, &major, &minor) && 100 * major + minor >= FIRST);
}

static bool refine(hdcu_api *api, hdcu_facts *facts, hdi_caps *caps) {
    enum { OLDEST = 50, FIRST_DOT = 61, FIRST_MATRIX = 70, FIRST_WHOLE = 80, FIRST_EARLY = 90 };
    snprintf(facts->code, sizeof facts->code, "sm_%d", facts->arch);
    caps->subgroup_control = 1; /* there is one size, and it may be demanded */
    caps->integer_dot = facts->arch >= FIRST_DOT;
    caps->matrix_f16 = facts->arch >= FIRST_MATRIX;
    caps->matrix_s8 = caps->matrix_s8_narrow = caps->matrix_bf16 = caps->matrix_reduces = facts->arch >= FIRST_WHOLE;
    caps->product_library = facts->arch >= FIRST_MATRIX && api->multiplies;
    if (api->FuncSetAttribute)
        caps->shared_bytes = HDI_MAX(caps->shared_bytes, (uint64_t)facts->values[HDCU_SHARED_AT_LAUNCH]);
    caps->early_start = facts->arch >= FIRST_EARLY && api->StreamUpdateCaptureEdges && knows_early(api);
    return facts->arch >= OLDEST && caps->subgroup == 32;
}

static const char *const drivers[] = { "libcuda.so.1", "libcuda.so", "nvcuda.dll", NULL };
static const char *const compilers[] = { "libnvrtc.so.13",    "libnvrtc.so.12",    "libnvrtc.so.11.2", "libnvrtc.so",
                                         "nvrtc64_130_0.dll", "nvrtc64_120_0.dll", NULL };
static const char *const products[] = { "libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll",
                                        "cublasLt64_12.dll", NULL };
/* Divisions and roots are rounded right and subnormal numbers kept unless told otherwise. */
static const char *const exact_options[] = { "--std=c++17",     "--fmad=false",     "--ftz=false",
                                             "--prec-div=true", "--prec-sqrt=true", NULL };
static const char *const fast_options[] = { "--std=c++17", "--ftz=true", "--prec-div=false", "--prec-sqrt=false",
                                            NULL };

const hdcu_flavour hdcu_cuda = {
    .backend = "cuda", .compiler_name = "NVRTC", .is_hip = false, .dialect = HDI_SPIRV_CUDA, .drivers = drivers,
    .compilers = compilers, .products = products,
    .no_driver = "there is no CUDA driver (libcuda.so.1)",
    .driver_mend = "install NVIDIA's driver (Debian: nvidia-driver, libcuda1)",
    .device_mend = "see whether nvidia-smi names the GPU",
    .compiler_mend = "install NVRTC (Debian: libnvrtc12) where the loader finds it",
    .arch_option = "--gpu-architecture=",
    .exact_options = exact_options, .fast_options = fast_options, .refine = refine,
};
