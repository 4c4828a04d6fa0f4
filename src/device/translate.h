/* translate.h: a kernel of the table in the language that a device's driver compiles (spirv.h), and what its launches
 * give it. */
#ifndef HDI_TRANSLATE_H
#define HDI_TRANSLATE_H

#include "device/backend.h"
#include "spirv/spirv.h"

/* What is translated, and for what. */
typedef struct hdi_translation {
    const hdi_host   *host;
    const char       *backend; /* errors are its */
    const hdi_module *module;
    const hdi_kernel *kernel;
    const hdi_spirv_print_target *target;
} hdi_translation;
/* Prints the kernel as text of the target's. Errors name the kernel. */
hd_status hdi_translate_to_text(const hdi_translation *translation, hdi_text *out_text, hdi_spirv_printed *out_printed,
                                hd_error *error);
/* Turns it into SPIR-V of OpenCL's flavour, for what the target offers and its subgroups. */
hd_status hdi_translate_to_module(const hdi_translation *translation, hdi_text *out_module,
                                  hdi_spirv_printed *out_printed, hd_error *error);

/* The words that a launch gives such a kernel behind its buffers, as spirv.h describes them; returns their number.
 * `offsets`: where each buffer's binding begins in it; NULL: buffers are addresses. */
enum { HDI_MOST_LAUNCH_WORDS = 3 + HDI_MAX_PUSH_WORDS + 4 * HDI_SPIRV_MAX_BINDINGS };
uint32_t hdi_launch_words(const hdi_cmds *cmds, const hdi_cmd *cmd, const hdi_spirv_printed *printed,
                          const uint64_t *offsets, uint32_t out_words[HDI_MOST_LAUNCH_WORDS]);
#endif
