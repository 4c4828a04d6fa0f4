/* driver_leaks.h: what the validation layer of Debian 12 keeps to itself, so that a leak that the sanitizer does report
 * is one of ours; Mesa and the loader keep nothing. */
#ifndef TESTS_CONFORM_DRIVER_LEAKS_H
#define TESTS_CONFORM_DRIVER_LEAKS_H

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libVkLayer_khronos_validation\n"; }
#endif
#endif
