/* test_spirv_compile.c: the CUDA and HIP text of every kernel that the planner can choose compiles, without a GPU: with NVRTC
 * for the oldest and the newest common architecture, with hipRTC for those of AMD's that it knows; so does that of users' kernels
 * with images and arrays of buffers. Where a compiler is missing, so is its
 * part. Also: how long printing takes, and what is refused. `test_spirv_compile all` takes every kernel, else two dozen
 * are compiled. */
#define _GNU_SOURCE
#include "languages.h"
#include "image_kernels.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static chosen_kernels chosen;
static int failures;
static bool all;

/* ---- a run-time compiler: NVRTC's interface, which hipRTC shares but for the names ---- */

typedef struct compiler {
    int (*create)(void **program, const char *text, const char *name, int headers, const char *const *sources, const char *const *names);
    int (*compile)(void *program, int count, const char *const *options);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *text);
    int (*destroy)(void **program);
    int (*version)(int *major, int *minor);
} compiler;

static void *find(void *library, const char *prefix, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return dlsym(library, full);
}

static bool open_compiler(const char *const *names, const char *prefix, compiler *out) {
    void *library = NULL;
    for (; *names && !library; names++) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    static const char *const functions[] = { "CreateProgram", "CompileProgram", "GetProgramLogSize", "GetProgramLog", "DestroyProgram", "Version" };
    void **places[] = { (void **)(void *)&out->create, (void **)(void *)&out->compile, (void **)(void *)&out->log_size,
                        (void **)(void *)&out->log, (void **)(void *)&out->destroy, (void **)(void *)&out->version };
    for (size_t i = 0; i < HDI_COUNT(functions); i++)
        if (!(*places[i] = find(library, prefix, functions[i]))) return false;
    return true;
}

static bool compile(const compiler *c, const char *text, const char *option, char *log, size_t room) {
    void *program = NULL;
    const char *const options[] = { option };
    size_t size = 0;
    log[0] = 0;
    if (c->create(&program, text, "kernel", 0, NULL, NULL)) return false;
    const bool fine = c->compile(program, 1, options) == 0;
    if (!fine && c->log_size(program, &size) == 0 && size < 1 << 20) {
        char *words = calloc(1, size + 1);
        if (c->log(program, words) == 0) snprintf(log, room, "%s", words);
        free(words);
    }
    c->destroy(&program);
    return fine;
}

/* Does the compiler know the architecture? Some crash where they do not. */
static bool knows(const compiler *c, const char *option) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        char log[8];
        fclose(stderr);
        _exit(compile(c, "extern \"C\" __global__ void k(float *p) { p[0] = 1.0f; }", option, log, sizeof log) ? 0 : 1);
    }
    int result = 1;
    return child > 0 && waitpid(child, &result, 0) == child && result == 0;
}

/* ---- users' kernels with images and arrays of buffers ---- */

/* How many do not compile. */
static uint32_t compile_images(const compiler *c, hdi_spirv_dialect dialect, const char *option) {
    static char log[2000];
    uint32_t bad = 0;
    for (size_t i = 0; i < HDI_COUNT(image_kernels); i++) {
        hd_error error = { 0 };
        const hdi_spirv_input given = { .module = image_kernels[i].words, .bytes = image_kernels[i].bytes };
        hdi_user_kernel *kernel = hdi_user_kernel_new(&hdi_default_allocator, &given, &error);
        hdi_text text = { .allocator = &hdi_default_allocator };
        hdi_spirv_printed printed;
        const hdi_spirv_print_target target = { .dialect = dialect, .subgroup = 32 };
        const hdi_spirv_input input = { .module = kernel ? kernel->words : NULL, .bytes = kernel ? kernel->word_count * 4 : 0 };
        const bool fine = kernel && hdi_spirv_print(&hdi_default_allocator, &input, &target, &text, &printed, &error) == HD_OK &&
                          compile(c, text.bytes, option, log, sizeof log);
        if (!fine) fprintf(stderr, "%s %s %s: %s%s\n", option, image_kernels[i].name, image_kernels[i].option, error.text, error.status ? "" : log);
        bad += !fine;
        hdi_text_free(&text);
        hdi_user_kernel_release(kernel);
    }
    printf("%s: %u of %zu kernels with images and arrays of buffers do not compile\n", option, bad, HDI_COUNT(image_kernels));
    return bad;
}

/* ---- all kernels through one compiler ---- */

static void compile_all(const compiler *c, hdi_spirv_dialect dialect, const char *const *options) {
    static char log[2000];
    for (; *options; options++) {
        uint32_t compiled = 0, refused = 0, bad = 0;
        if (!knows(c, *options)) {
            printf("skipped, not known to the compiler: %s\n", *options);
            continue;
        }
        const uint64_t begun = hdi_now_ns();
        for (uint32_t i = 0; i < chosen.count; i += all ? 1 : HDI_MAX(chosen.count / 24, 1u)) {
            char label[256];
            hdi_spirv_printed printed;
            hd_error error;
            char *text = print_kernel(&chosen.kernels[i], dialect, &printed, &error);
            if (!text) {
                refused++;
                continue;
            }
            if (compile(c, text, *options, log, sizeof log)) {
                compiled++;
            } else {
                fprintf(stderr, "%s %s:\n%s\n", *options, kernel_label(&chosen.kernels[i], label, sizeof label), log);
                bad++;
            }
            free(text);
        }
        printf("%s: %u kernels compiled, %u not, %u refused by name; %.0f ms a kernel\n", *options, compiled, bad, refused,
               (double)(hdi_now_ns() - begun) / 1e6 / HDI_MAX(compiled + bad, 1u));
        failures += bad != 0 || compiled == 0 || compile_images(c, dialect, *options) != 0;
    }
}

static void with_nvrtc(void) {
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so", NULL };
    compiler c;
    int major = 0, minor = 0;
    if (!open_compiler(names, "nvrtc", &c) || c.version(&major, &minor)) {
        printf("skipped, no NVRTC: CUDA text is not compiled\n");
        return;
    }
    /* Version 13 no longer knows sm_70. */
    const char *const options[] = { major < 13 ? "--gpu-architecture=compute_70" : "--gpu-architecture=compute_75", "--gpu-architecture=compute_90", NULL };
    printf("NVRTC %d.%d\n", major, minor);
    compile_all(&c, HDI_SPIRV_CUDA, options);
}

static void with_hiprtc(void) {
    static const char *const names[] = { "libhiprtc.so", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5", NULL };
    static const char *const options[] = { "--offload-arch=gfx1100", "--offload-arch=gfx1030", "--offload-arch=gfx90a", NULL };
    compiler c;
    int major = 0, minor = 0;
    if (!open_compiler(names, "hiprtc", &c) || c.version(&major, &minor)) {
        printf("skipped, no hipRTC: HIP text is not compiled\n");
        return;
    }
    printf("hipRTC %d.%d\n", major, minor);
    compile_all(&c, HDI_SPIRV_HIP, options);
}

/* ---- printing itself ---- */

static int compare_times(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Everything but cooperative matrices prints in every dialect. */
static void print_all(void) {
    static const char *const names[] = { "OpenCL C", "CUDA C++", "HIP C++" };
    static double times[MAX_KERNELS];
    for (int dialect = HDI_SPIRV_OPENCL_C; dialect <= HDI_SPIRV_HIP; dialect++) {
        uint32_t count = 0, refused = 0;
        size_t bytes = 0, most = 0;
        for (uint32_t i = 0; i < chosen.count; i++) {
            char label[256];
            hdi_spirv_printed printed;
            hd_error error;
            const clock_t begun = clock(); /* of this process: what else the machine does is left out */
            char *text = print_kernel(&chosen.kernels[i], (hdi_spirv_dialect)dialect, &printed, &error);
            times[count] = (double)(clock() - begun) * 1e3 / (double)CLOCKS_PER_SEC;
            if (text) {
                count++;
                bytes += strlen(text);
                most = HDI_MAX(most, strlen(text));
            } else if (dialect != HDI_SPIRV_CUDA && (strstr(error.text, "cooperative matrices") || strstr(error.text, "the device has no subgroups"))) {
                refused++;
            } else {
                fprintf(stderr, "%s %s: %s\n", names[dialect], kernel_label(&chosen.kernels[i], label, sizeof label), error.text);
                failures++;
            }
            free(text);
        }
        qsort(times, count, sizeof *times, compare_times);
        printf("%s: %u kernels printed, %u with cooperative matrices or subgroups refused; median %.2f ms, worst %.2f ms; %zu bytes on average, %zu at most\n",
               names[dialect], count, refused, times[count / 2], times[count ? count - 1 : 0], bytes / HDI_MAX(count, 1u), most);
    }
}

int main(int argc, char **argv) {
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    choose_kernels(&chosen);
    printf("%u kernels chosen\n", chosen.count);
    failures += chosen.count < 60;
    print_all();
    with_nvrtc();
    with_hiprtc();
    return failures != 0;
}
