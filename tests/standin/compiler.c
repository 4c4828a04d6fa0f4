/* compiler.c: the run-time compiler's functions by name. A text becomes C++ (rewrite.c), the host's compiler makes a shared
 * object of it, and that with a head (kernel_abi.h) is the device's code. Objects stay in a folder, by the hash of all that
 * they were made of: suites compile the same kernels over and over. */
#define _GNU_SOURCE
#include "kernel_abi.h"
#include "names.h"
#include "rewrite.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DONE = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL = 11 };

typedef struct program {
    char  *text;   /* rewritten */
    char  *log;
    char  *image;  /* once compiled */
    size_t image_bytes;
} program;

/* ---- files ---- */

static char *read_all(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    struct stat facts;
    if (file && fstat(fileno(file), &facts) == 0 && (bytes = calloc(1, (size_t)facts.st_size + 1)))
        *out_bytes = fread(bytes, 1, (size_t)facts.st_size, file);
    if (file) fclose(file);
    return bytes;
}

static bool write_all(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    const bool fine = fputs(text, file) >= 0;
    return fclose(file) == 0 && fine;
}

static uint64_t hash_of(uint64_t hash, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001B3u;
    return hash;
}

/* ---- the host's compiler ---- */

extern char **environ;

/* Contraction is off: exact kernels need each operation rounded by itself, and others may do without. The second line keeps
 * calls where lanes of a warp meet (block.c) single and in the text's order, which gcc does without these. */
static char *const arguments_before[] = {
    STANDIN_CXX, "-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
    "-fno-thread-jumps", "-fno-tree-dominator-opts", "-fno-reorder-blocks", "-fno-crossjumping",
    "-I" STANDIN_DIR, "-include", STANDIN_DIR "/cuda_on_host.h",
};
enum { BEFORE = sizeof arguments_before / sizeof *arguments_before };

/* Runs the compiler with its words in a file. */
static bool run_compiler(char *source, char *object, const char *words) {
    char *arguments[BEFORE + 5];
    memcpy(arguments, arguments_before, sizeof arguments_before);
    char *const after[] = { "-o", object, source, "-lm", NULL };
    memcpy(arguments + BEFORE, after, sizeof after);
    posix_spawn_file_actions_t actions;
    pid_t child;
    int result = 1;
    if (posix_spawn_file_actions_init(&actions)) return false;
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const bool begun = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return begun && waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static uint64_t hash_of_all(const char *text) {
    uint64_t hash = 0xCBF29CE484222325u;
    static const char *const files[] = { STANDIN_DIR "/cuda_on_host.h", STANDIN_DIR "/kernel_abi.h" };
    for (size_t i = 0; i < BEFORE; i++) hash = hash_of(hash, arguments_before[i], strlen(arguments_before[i]) + 1);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = 0;
        char *header = read_all(files[i], &bytes);
        if (header) hash = hash_of(hash, header, bytes);
        free(header);
    }
    return hash_of(hash, text, strlen(text));
}

/* The object for the text, compiled if the folder lacks it. NULL with the reason in the log. */
static char *object_of(program *p, size_t *out_bytes) {
    char kept[512], own[3][540]; /* source, object, words: of this process and call */
    static unsigned calls;
    mkdir(STANDIN_CACHE, 0777);
    const int used = snprintf(kept, sizeof kept, "%s/%016llx.so", STANDIN_CACHE, (unsigned long long)hash_of_all(p->text));
    if (used < 0 || (size_t)used >= sizeof kept) return NULL;
    char *object = read_all(kept, out_bytes);
    if (object) return object;
    static const char *const ends[] = { "cpp", "so", "txt" };
    const unsigned call = __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < 3; i++) snprintf(own[i], sizeof own[i], "%s.%ld.%u.%s", kept, (long)getpid(), call, ends[i]);
    const bool compiled = write_all(own[0], p->text) && run_compiler(own[0], own[1], own[2]);
    if (compiled) rename(own[1], kept); /* of two that compile the same, the last one stays */
    size_t log_bytes = 0;
    char *log = read_all(own[2], &log_bytes);
    if (log) {
        free(p->log);
        p->log = log;
    }
    for (size_t i = 0; i < 3; i++) remove(own[i]);
    return compiled ? read_all(kept, out_bytes) : NULL;
}

/* ---- options ---- */

/* "sm_89" or "compute_89" is 89, "gfx1100" is 110: its last digit is the stepping. */
static unsigned architecture_of(const char *name) {
    const char *digits = name + strcspn(name, "0123456789");
    return (unsigned)strtoul(digits, NULL, 10) / STANDIN_PICK(1, 10);
}

static bool is_known(const char *option) {
    static const char *const known[] = { "--std=", "-std=", "--fmad=", "--ftz=", "--prec-div=", "--prec-sqrt=", "--use_fast_math", "-default-device",
                                         "-O", "-ffp-contract=", "-ffast-math", "-fgpu-flush-denormals-to-zero", "-mllvm" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(option, known[i], strlen(known[i])) == 0) return true;
    return false;
}

/* ---- the interface ---- */

STANDIN_ENTRY(nvrtcVersion, hiprtcVersion)(int *major, int *minor) {
    *major = STANDIN_PICK(13, 7);
    *minor = 0;
    return DONE;
}

STANDIN_ENTRY(nvrtcCreateProgram, hiprtcCreateProgram)(program **out, const char *text, const char *name, int header_count,
                                                       const char *const *headers, const char *const *header_names) {
    (void)name, (void)headers, (void)header_names;
    if (!text || header_count) return INVALID_INPUT;
    program *p = calloc(1, sizeof *p);
    if (!p) return OUT_OF_MEMORY;
    p->text = standin_rewrite(text);
    p->log = calloc(1, 1);
    *out = p;
    return p->text && p->log ? DONE : OUT_OF_MEMORY;
}

STANDIN_ENTRY(nvrtcDestroyProgram, hiprtcDestroyProgram)(program **p) {
    if (!p || !*p) return INVALID_PROGRAM;
    free((*p)->text);
    free((*p)->log);
    free((*p)->image);
    free(*p);
    *p = NULL;
    return DONE;
}

STANDIN_ENTRY(nvrtcCompileProgram, hiprtcCompileProgram)(program *p, int count, const char *const *options) {
    static const char arch_option[] = STANDIN_PICK("--gpu-architecture=", "--offload-arch=");
    standin_image head = { .magic = STANDIN_IMAGE_MAGIC };
    for (int i = 0; i < count; i++) {
        const bool arch = strncmp(options[i], arch_option, strlen(arch_option)) == 0;
        if (arch) head.architecture = architecture_of(options[i] + strlen(arch_option));
        else if (!is_known(options[i])) return fprintf(stderr, "stand-in: an option that is not known: %s\n", options[i]), INVALID_OPTION;
    }
    if (!head.architecture) return INVALID_OPTION;
    size_t bytes = 0;
    char *object = object_of(p, &bytes);
    if (!object) return COMPILATION;
    head.bytes = (unsigned)bytes;
    free(p->image);
    p->image_bytes = sizeof head + bytes;
    p->image = malloc(p->image_bytes);
    if (p->image) {
        memcpy(p->image, &head, sizeof head);
        memcpy(p->image + sizeof head, object, bytes);
    }
    free(object);
    return p->image ? DONE : OUT_OF_MEMORY;
}

STANDIN_ENTRY(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(program *p, size_t *bytes) {
    *bytes = strlen(p->log) + 1;
    return DONE;
}
STANDIN_ENTRY(nvrtcGetProgramLog, hiprtcGetProgramLog)(program *p, char *text) {
    memcpy(text, p->log, strlen(p->log) + 1);
    return DONE;
}
STANDIN_ENTRY(nvrtcGetCUBINSize, hiprtcGetCodeSize)(program *p, size_t *bytes) {
    *bytes = p->image_bytes;
    return p->image ? DONE : INVALID_PROGRAM;
}
STANDIN_ENTRY(nvrtcGetCUBIN, hiprtcGetCode)(program *p, char *code) {
    if (!p->image) return INVALID_PROGRAM;
    memcpy(code, p->image, p->image_bytes);
    return DONE;
}
