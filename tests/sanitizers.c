/* What sanitizers are told in every program of a build that has them; weak, since a test of the command has the command's too. */

#define ASKED __attribute__((weak, visibility("default"), no_sanitize_address, no_sanitize_thread))
ASKED const char *__asan_default_options(void);
ASKED const char *__tsan_default_options(void);

/* A size that no machine has is an allocation that fails, as it is without the sanitizer. */
#define ALLOCATIONS "allocator_may_return_null=1"
/* They take words before a driver's thread-local memory for the header that glibc 2.19 had there, when that memory lies 16 bytes
   behind a page's begin; the leak check then reads from where these words point, and crashes. */
#define THREAD_LOCAL "intercept_tls_get_addr=0"
/* Drivers were not built for the thread sanitizer: it sees heddle's own accesses. */
#define DRIVERS "ignore_noninstrumented_modules=1"

const char *__asan_default_options(void) { return ALLOCATIONS ":" THREAD_LOCAL; }

const char *__tsan_default_options(void) { return DRIVERS ":" THREAD_LOCAL; }
