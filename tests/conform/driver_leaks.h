/* driver_leaks.h: what the loader, the layers and Mesa of Debian 12 keep to themselves, so that a leak that the sanitizer
 * does report is one of ours: every Vulkan object left over is told by the validation layer, all host memory is counted. */
#ifndef TESTS_CONFORM_DRIVER_LEAKS_H
#define TESTS_CONFORM_DRIVER_LEAKS_H

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libvulkan_lvp\nleak:libLLVM\nleak:libVkLayer\nleak:libvulkan.so\n"; }
#endif
#endif
