/* validation.h: what the Vulkan validation layers have said in this process, where HEDDLE_VALIDATION=1 asks for them. */
#ifndef TESTS_VALIDATION_H
#define TESTS_VALIDATION_H

#include <stdint.h>

#if defined(HEDDLE_VULKAN)
uint64_t hdvk_validation_messages(void); /* device/vulkan */
static inline uint64_t validation_messages(void) { return hdvk_validation_messages(); }
#else
static inline uint64_t validation_messages(void) { return 0; }
#endif

#endif
