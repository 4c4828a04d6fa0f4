/* languages.h: heddle's own kernels as the planner chooses them, printed in every dialect. The kernels come from programs
 * that use every family, planned for a large GPU and for one without subgroups and matrix units, fast and exact. */
#ifndef TESTS_SPIRV_LANGUAGES_H
#define TESTS_SPIRV_LANGUAGES_H

#include "plan/schedule.h"
#include "spirv/spirv.h"

enum { MAX_KERNELS = 512 };
typedef struct chosen_kernels {
    hdi_kernel kernels[MAX_KERNELS];
    uint32_t   count;
} chosen_kernels;
/* Every distinct kernel that those plans launch. */
void choose_kernels(chosen_kernels *out);

/* The languages of the printer, with what their texts may use besides. */
typedef enum language_id { LANGUAGE_OPENCL, LANGUAGE_PTX, LANGUAGE_CUDA, LANGUAGE_CUDA_EARLY, LANGUAGE_HIP, LANGUAGE_WGSL, LANGUAGE_COUNT } language_id;
typedef struct language {
    const char            *name;
    hdi_spirv_print_target target;
} language;
extern const language languages[LANGUAGE_COUNT];

/* Printed text to be freed, or NULL with the reason. */
char *print_kernel(const hdi_kernel *kernel, language_id in, hdi_spirv_printed *out_printed, hd_error *out_error);
/* "matmul_tiled[128,1,...]" */
const char *kernel_label(const hdi_kernel *kernel, char *out, size_t room);
#endif
