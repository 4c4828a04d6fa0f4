/* caps.h: facts about a device, as one plain value. A back end's probe fills it in, or a test invents it; the planner
 * reads nothing else about a device. Zero means "not there". Printed and parsed by caps.c, one "name value" a line. */
#ifndef HDI_CAPS_H
#define HDI_CAPS_H

#include "facts/choices.h"

/* X(name, what it is). All are uint64_t. */
#define HDI_CAPS_LIST(X)                                                                                               \
    X(native_kernels, "1: kernels are C functions of this process; 0: SPIR-V")                                         \
    X(memory_bytes, "size of the largest heap")                                                                        \
    X(host_bytes, "size of the host-visible heap kernels can use")                                                     \
    X(max_allocation_bytes, "largest single allocation")                                                               \
    X(max_binding_bytes, "largest range that one binding sees")                                                        \
    X(binding_align, "alignment of a binding's offset, a power of two")                                                \
    X(max_bindings, "storage buffers that one kernel may have")                                                        \
    X(max_push_bytes, "push constants in bytes")                                                                       \
    X(max_workgroup, "invocations in a workgroup")                                                                     \
    X(max_workgroup_x, "invocations along x")                                                                          \
    X(max_groups_x, "workgroups along x")                                                                              \
    X(max_groups_y, "workgroups along y")                                                                              \
    X(max_groups_z, "workgroups along z")                                                                              \
    X(shared_bytes, "shared memory of a workgroup")                                                                    \
    X(subgroup, "invocations of a subgroup; 0: unknown")                                                               \
    X(subgroup_arithmetic, "1: sums over a subgroup")                                                                  \
    X(subgroup_shuffle, "1: values of other invocations of a subgroup")                                                \
    X(subgroup_control, "1: the subgroup size can be demanded")                                                        \
    X(f16_storage, "1: 16-bit storage buffers")                                                                        \
    X(u8_storage, "1: 8-bit storage buffers")                                                                          \
    X(f16_arithmetic, "1: f16 in registers")                                                                           \
    X(i8_arithmetic, "1: 8-bit integers in registers")                                                                 \
    X(integer_dot, "1: 4 x 8-bit dot products in hardware")                                                            \
    X(matrix_f16, "1: cooperative matrix f16 x f16 + f32, 16x16x16, subgroup scope")                                   \
    X(matrix_s8, "1: cooperative matrix s8 x s8 + s32, 16x16x32, subgroup scope")                                      \
    X(matrix_s8_narrow, "1: cooperative matrix s8 x s8 + s32, 16x8x32, subgroup scope")                                \
    X(matrix_workgroup,                                                                                                \
      "1: the same of a whole workgroup of 256 invocations, in steps of 64 at most, through tensor layouts")           \
    X(matrix_reduces, "1: matrix units reduce rows of sums, and make factors of f16 of them")                          \
    X(matrix_bf16, "1: matrix units multiply bf16 to f32 (of a processor: AMX)")                                       \
    X(product_library, "1: the device's API has a library of matrix products (cmds/library.h)")                        \
    X(memory_model, "1: the Vulkan memory model")                                                                      \
    X(unified_memory, "1: host and device share all memory")                                                           \
    X(host_visible, "1: the host writes memory of the device in place, and not only a sliver of it")                   \
    X(timestamps, "1: time stamps in command streams")                                                                 \
    X(copy_kernel_bytes,                                                                                               \
      "copies of so many bytes and more are faster by a kernel than by the API's command; 0: none are")                \
    X(early_start, "1: a kernel that waits itself may begin before what it waits for has ended")                       \
    X(dispatch_base, "1: a dispatch may begin at any group")                                                           \
    X(compute_units, "multiprocessors or cores")                                                                       \
    X(threads, "worker threads of a CPU device")                                                                       \
    X(simd_bytes, "width of the CPU's vectors")                                                                        \
    X(gflops, "estimated f32 rate, for cutting long work and, of a GPU, for routes without tuning")                    \
    X(gbytes_s, "estimated memory rate, likewise")                                                                     \
    X(software, "1: a GPU driver that computes on the CPU")                                                            \
    X(inexact, "1: a known answer showed that f32 is not rounded, or subnormals not kept, as exact mode needs")        \
    X(unproven, "1: a back end that was never run on hardware: known answers come before a kernel's first use")

/* Kernel variants that a known answer showed to be wrong: for each module of the kernels room, in fast [0] and exact
 * [1]
 * arithmetic, a bit for each of its forms. They are never chosen. */
#define HDI_CAPS_MODULES 64
/* Shapes that the library of matrix products refused (hdi_product_shape); 0: none. They are made by other kernels. */
#define HDI_CAPS_REFUSED 16

typedef struct hdi_caps {
    char name[128];
#define HDI_CAPS_FIELD(field, text) uint64_t field;
    HDI_CAPS_LIST(HDI_CAPS_FIELD)
#undef HDI_CAPS_FIELD
    uint64_t wrong[HDI_CAPS_MODULES][2];
    hdi_choices choices; /* of kernels' options, as measured; in fast mode only */
    uint64_t refused[HDI_CAPS_REFUSED];
} hdi_caps;

void hdi_caps_print(const hdi_caps *caps, hdi_text *out_text);
/* Unknown names and values that are no numbers are refused with their line; absent names keep zero. */
hd_status hdi_caps_parse(const char *text, size_t bytes, hdi_caps *out_caps, hd_error *error);
/* The first fact, but for what was judged and chosen, in which two devices differ; NULL: none. */
const char *hdi_caps_difference(const hdi_caps *a, const hdi_caps *b);
#endif
