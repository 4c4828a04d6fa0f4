/* What sanitizers are told in every program of a build that has them; weak, since a test of the command has the command's too. */

#define ASKED __attribute__((weak, visibility("default"), no_sanitize_address, no_sanitize_thread))
ASKED const char *__asan_default_options(void);
ASKED const char *__lsan_default_options(void);
ASKED const char *__lsan_default_suppressions(void);
ASKED const char *__tsan_default_options(void);

/* They take words before a driver's thread-local memory for the header that glibc 2.19 had there, when that memory lies 16 bytes
   behind a page's begin; the leak check then reads from where these words point, and crashes. */
#define OPTIONS "intercept_tls_get_addr=0"

const char *__asan_default_options(void) { return OPTIONS; }

const char *__tsan_default_options(void) { return OPTIONS; }

/* What C++ allocates is a driver's, since heddle is C: PoCL's compiler loses some of each kernel that it compiles, and which ones an
   earlier process has left compiled is chance. */
const char *__lsan_default_suppressions(void) { return "leak:operator new\n"; }

const char *__lsan_default_options(void) { return "print_suppressions=0"; }
