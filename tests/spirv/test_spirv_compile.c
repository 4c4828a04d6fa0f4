/* test_spirv_compile.c: the CUDA and HIP text of every kernel that the planner can choose compiles, without a GPU: with NVRTC
 * for the oldest and the newest common architecture, with hipRTC for those of AMD's that it knows; so does that of users' kernels
 * with images and arrays of buffers. OpenCL C with PTX compiles with clang in the place of NVIDIA's compiler, and what that makes of
 * it with ptxas. Where a compiler is missing, so is its
 * part. Also: how long printing takes, and what is refused. `test_spirv_compile all` takes every kernel, else two dozen
 * are compiled. */
#define _GNU_SOURCE
#include "languages.h"
#include "image_kernels.h"
#include <dlfcn.h>
#include <fcntl.h>
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

static void compile_all(const compiler *c, language_id in, const char *const *options) {
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
            char *text = print_kernel(&chosen.kernels[i], in, &printed, &error);
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
        failures += bad != 0 || compiled == 0 || compile_images(c, languages[in].target.dialect, *options) != 0;
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
    compile_all(&c, LANGUAGE_CUDA, options);
    compile_all(&c, LANGUAGE_CUDA_EARLY, options + 1);
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
    compile_all(&c, LANGUAGE_HIP, options);
}

/* ---- OpenCL C with PTX: through clang, then ptxas ---- */

typedef struct tools {
    const char *clang;
    bool        has_ptxas;
    char        folder[64], source[96], ptx[96];
} tools;

/* Runs a program found on the path; what it says only where `heard`. */
static bool run(bool heard, const char *const *words) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, 1);
        if (!heard) dup2(nowhere, 2);
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    int result = 1;
    return child > 0 && waitpid(child, &result, 0) == child && result == 0;
}

/* clang knows "asm" in OpenCL only with GNU's words, NVIDIA's compiler as it is. */
static bool run_clang(const tools *t, bool heard) {
    const char *const words[] = { t->clang, "-x", "cl", "-cl-std=CL1.2", "-target", "nvptx64-nvidia-cuda", "-Xclang", "-fgnu-keywords",
                                  "-Xclang", "-target-cpu", "-Xclang", "sm_80", "-Xclang", "-target-feature", "-Xclang", "+ptx70",
                                  "-Xclang", "-finclude-default-header", "-w", "-Werror=implicit-function-declaration", "-O1", "-S",
                                  "-o", t->ptx, t->source, NULL };
    return run(heard, words);
}

static bool put_source(const tools *t, const char *text) {
    FILE *file = fopen(t->source, "w");
    const bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written;
}

static bool open_tools(tools *t) {
    static const char *const names[] = { "clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14" };
    snprintf(t->folder, sizeof t->folder, "/tmp/heddle_ptx_XXXXXX");
    if (!mkdtemp(t->folder)) return false;
    snprintf(t->source, sizeof t->source, "%s/kernel.cl", t->folder);
    snprintf(t->ptx, sizeof t->ptx, "%s/kernel.ptx", t->folder);
    t->has_ptxas = run(false, (const char *const[]){ "ptxas", "--version", NULL });
    if (!put_source(t, "__kernel void k(__global float *p) { asm(\"mov.f32 %0, 0f3F800000;\" : \"=f\"(p[0])); }\n")) return false;
    for (size_t i = 0; i < HDI_COUNT(names); i++) {
        t->clang = names[i];
        if (run_clang(t, false)) return true;
    }
    return false;
}

static void with_clang(void) {
    tools t;
    uint32_t compiled = 0, bad = 0;
    if (!open_tools(&t)) {
        printf("skipped, no clang that makes PTX of OpenCL C: OpenCL C with PTX is not compiled\n");
    } else {
        for (uint32_t i = 0; i < chosen.count; i += all ? 1 : HDI_MAX(chosen.count / 24, 1u)) {
            char label[256];
            hdi_spirv_printed printed;
            hd_error error;
            char *text = print_kernel(&chosen.kernels[i], LANGUAGE_PTX, &printed, &error);
            /* What OpenCL C has functions for is not defined in what clang makes: -c. */
            const bool fine = text && put_source(&t, text) && run_clang(&t, true) &&
                              (!t.has_ptxas || run(true, (const char *const[]){ "ptxas", "-c", "-arch=sm_80", "-o", "/dev/null", t.ptx, NULL }));
            compiled += fine;
            bad += !fine;
            if (!fine) fprintf(stderr, "%s\n", kernel_label(&chosen.kernels[i], label, sizeof label));
            free(text);
        }
        printf("%s%s: %u kernels compiled, %u not\n", t.clang, t.has_ptxas ? " and ptxas" : "", compiled, bad);
        failures += bad != 0 || compiled == 0;
    }
    unlink(t.source);
    unlink(t.ptx);
    rmdir(t.folder);
}

/* ---- printing itself ---- */

static int compare_times(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Everything but cooperative matrices prints in every dialect. */
static void print_all(void) {
    static double times[MAX_KERNELS];
    for (int in = LANGUAGE_OPENCL; in <= LANGUAGE_HIP; in++) {
        const bool has_units = languages[in].target.offers != 0;
        uint32_t count = 0, refused = 0;
        size_t bytes = 0, most = 0;
        for (uint32_t i = 0; i < chosen.count; i++) {
            char label[256];
            hdi_spirv_printed printed;
            hd_error error;
            const clock_t begun = clock(); /* of this process: what else the machine does is left out */
            char *text = print_kernel(&chosen.kernels[i], (language_id)in, &printed, &error);
            times[count] = (double)(clock() - begun) * 1e3 / (double)CLOCKS_PER_SEC;
            if (text) {
                count++;
                bytes += strlen(text);
                most = HDI_MAX(most, strlen(text));
            } else if (!has_units && (strstr(error.text, "cooperative matrices") || strstr(error.text, "the device has no subgroups"))) {
                refused++;
            } else {
                fprintf(stderr, "%s %s: %s\n", languages[in].name, kernel_label(&chosen.kernels[i], label, sizeof label), error.text);
                failures++;
            }
            free(text);
        }
        qsort(times, count, sizeof *times, compare_times);
        printf("%s: %u kernels printed, %u with cooperative matrices or subgroups refused; median %.2f ms, worst %.2f ms; %zu bytes on average, %zu at most\n",
               languages[in].name, count, refused, times[count / 2], times[count ? count - 1 : 0], bytes / HDI_MAX(count, 1u), most);
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
    with_clang();
    return failures != 0;
}
