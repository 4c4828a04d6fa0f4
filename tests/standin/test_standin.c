/* test_standin.c: the stand-in for a GPU's driver and compiler, by kernels written by hand: what it runs is right, what waits
 * is waited for, and mistakes are noticed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the functions that are used here ---- */

#define FUNCTIONS(X) \
    X(cuInit, (unsigned)) X(cuDevicePrimaryCtxRetain, (void **, int)) X(cuDevicePrimaryCtxRelease_v2, (int)) X(cuCtxPushCurrent_v2, (void *)) \
    X(cuCtxPopCurrent_v2, (void **)) X(cuMemAlloc_v2, (uint64_t *, size_t)) X(cuMemFree_v2, (uint64_t)) X(cuMemHostAlloc, (void **, size_t, unsigned)) \
    X(cuMemFreeHost, (void *)) X(cuMemHostRegister_v2, (void *, size_t, unsigned)) X(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned)) \
    X(cuMemHostUnregister, (void *)) X(cuStreamCreate, (void **, unsigned)) X(cuStreamDestroy_v2, (void *)) X(cuStreamQuery, (void *)) \
    X(cuEventCreate, (void **, unsigned)) X(cuEventDestroy_v2, (void *)) X(cuEventRecord, (void *, void *)) X(cuEventQuery, (void *)) \
    X(cuEventElapsedTime, (float *, void *, void *)) X(cuModuleLoadData, (void **, const void *)) X(cuModuleUnload, (void *)) \
    X(cuModuleGetFunction, (void **, void *, const char *)) \
    X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
    X(cuMemcpyAsync, (uint64_t, uint64_t, size_t, void *)) X(cuMemsetD32Async, (uint64_t, unsigned, size_t, void *)) \
    X(cuStreamBeginCapture_v2, (void *, int)) X(cuStreamEndCapture, (void *, void **)) \
    X(cuStreamGetCaptureInfo_v2, (void *, int *, uint64_t *, void **, void *const **, size_t *)) \
    X(cuStreamUpdateCaptureDependencies, (void *, void **, size_t, unsigned)) X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
    X(cuGraphLaunch, (void *, void *)) X(cuGraphExecDestroy, (void *)) X(cuGraphDestroy, (void *))
#define COMPILER_FUNCTIONS(X) \
    X(nvrtcCreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcCompileProgram, (void *, int, const char *const *)) X(nvrtcGetCUBINSize, (void *, size_t *)) X(nvrtcGetCUBIN, (void *, char *)) \
    X(nvrtcGetProgramLogSize, (void *, size_t *)) X(nvrtcGetProgramLog, (void *, char *)) X(nvrtcDestroyProgram, (void **))
static struct {
#define MEMBER(name, parameters) int (*name) parameters;
    FUNCTIONS(MEMBER)
    COMPILER_FUNCTIONS(MEMBER)
} api;

static bool find(void *library, const char *name, void *out_function) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(out_function, &symbol, sizeof symbol);
    if (!symbol) fprintf(stderr, "%s is missing\n", name);
    return symbol;
}

static bool load(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *compiler = dlopen("libnvrtc.so.13", RTLD_NOW);
    bool all = true;
#define FIND_IN_DRIVER(name, parameters) all &= find(driver, #name, &api.name);
#define FIND_IN_COMPILER(name, parameters) all &= find(compiler, #name, &api.name);
    FUNCTIONS(FIND_IN_DRIVER)
    COMPILER_FUNCTIONS(FIND_IN_COMPILER)
    return all;
}

#define OK(call) assert_int_equal(api.call, 0)

/* ---- a device with a stream ---- */

static void *stream;

static int set_up(void **state) {
    void *context = NULL;
    (void)state;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxPushCurrent_v2(context));
    OK(cuStreamCreate(&stream, 1));
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static void finish(void) {
    while (api.cuStreamQuery(stream)) usleep(100);
}

/* The host's memory, which kernels see as well. */
static void *take(size_t bytes) {
    void *memory = NULL;
    OK(cuMemHostAlloc(&memory, bytes, 3));
    memset(memory, 0, bytes);
    return memory;
}

static void *compile(const char *text, const char *name, void **out_module) {
    const char *const options[] = { "--gpu-architecture=sm_90", "--std=c++17" };
    void *program = NULL, *function = NULL;
    size_t bytes = 0;
    OK(nvrtcCreateProgram(&program, text, "kernel", 0, NULL, NULL));
    if (api.nvrtcCompileProgram(program, 2, options)) {
        char words[2000] = "";
        OK(nvrtcGetProgramLogSize(program, &bytes));
        if (bytes <= sizeof words) OK(nvrtcGetProgramLog(program, words));
        fail_msg("%s", words);
    }
    OK(nvrtcGetCUBINSize(program, &bytes));
    char *code = malloc(bytes);
    OK(nvrtcGetCUBIN(program, code));
    OK(nvrtcDestroyProgram(&program));
    OK(cuModuleLoadData(out_module, code));
    free(code);
    OK(cuModuleGetFunction(&function, *out_module, name));
    return function;
}

static int launch(void *function, unsigned groups, unsigned threads, void **arguments) {
    return api.cuLaunchKernel(function, groups, 1, 1, threads, 1, 1, 0, stream, arguments, NULL);
}

/* ---- kernels ---- */

static const char add_text[] =
    "extern \"C\" __global__ void __launch_bounds__(64) add(const float *a, float *b, int count) {\n"
    "  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
    "  if (i < count) b[i] = __fadd_rn(a[i], b[i]);\n"
    "}\n";

static void test_add(void **state) {
    enum { COUNT = 1000 };
    (void)state;
    void *module = NULL, *function = compile(add_text, "add", &module);
    float *a = take(COUNT * sizeof *a), *b = take(COUNT * sizeof *b);
    int count = COUNT;
    for (int i = 0; i < COUNT; i++) a[i] = (float)i, b[i] = 0.5f;
    assert_int_equal(launch(function, 16, 64, (void *[]){ &a, &b, &count }), 0);
    finish();
    for (int i = 0; i < COUNT; i++) assert_float_equal(b[i], (float)i + 0.5f, 0);
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(a));
    OK(cuMemFreeHost(b));
}

/* A tree of barriers, then one warp by shuffles; more blocks than cores. */
static const char sum_text[] =
    "extern \"C\" __global__ void sum(const int *x, int *sums) {\n"
    "  __shared__ int part[256];\n"
    "  unsigned t = threadIdx.x;\n"
    "  part[t] = x[blockIdx.x * 256u + t];\n"
    "  __syncthreads();\n"
    "  for (unsigned o = 128u; o >= 32u; o /= 2u) {\n"
    "    if (t < o) part[t] += part[t + o];\n"
    "    __syncthreads();\n"
    "  }\n"
    "  if (t < 32u) {\n"
    "    int s = part[t];\n"
    "    for (int o = 16; o; o /= 2) s += __shfl_down_sync(0xFFFFFFFFu, s, o);\n"
    "    if (t == 0u) sums[blockIdx.x] = s;\n"
    "  }\n"
    "}\n";

static void test_sum(void **state) {
    enum { BLOCKS = 40, COUNT = BLOCKS * 256 };
    (void)state;
    void *module = NULL, *function = compile(sum_text, "sum", &module);
    int *x = take(COUNT * sizeof *x), *sums = take(BLOCKS * sizeof *sums);
    for (int i = 0; i < COUNT; i++) x[i] = i % 1000;
    assert_int_equal(launch(function, BLOCKS, 256, (void *[]){ &x, &sums }), 0);
    finish();
    for (int b = 0; b < BLOCKS; b++) {
        int sum = 0;
        for (int i = 0; i < 256; i++) sum += x[b * 256 + i];
        assert_int_equal(sums[b], sum);
    }
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(x));
    OK(cuMemFreeHost(sums));
}

static const char histogram_text[] =
    "extern \"C\" __global__ void histogram(const unsigned *x, unsigned *counts) {\n"
    "  __shared__ unsigned own[16];\n"
    "  if (threadIdx.x < 16u) own[threadIdx.x] = 0u;\n"
    "  __syncthreads();\n"
    "  atomicAdd(&own[x[blockIdx.x * blockDim.x + threadIdx.x] % 16u], 1u);\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x < 16u) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);\n"
    "}\n";

static void test_histogram(void **state) {
    enum { COUNT = 100 * 96 };
    (void)state;
    void *module = NULL, *function = compile(histogram_text, "histogram", &module);
    unsigned *x = take(COUNT * sizeof *x), *counts = take(16 * sizeof *counts), wanted[16] = { 0 };
    for (unsigned i = 0; i < COUNT; i++) wanted[(x[i] = i * 2654435761u >> 7) % 16]++;
    assert_int_equal(launch(function, 100, 96, (void *[]){ &x, &counts }), 0);
    finish();
    assert_memory_equal(counts, wanted, sizeof wanted);
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(x));
    OK(cuMemFreeHost(counts));
}

static const char grid_text[] =
    "struct numbers { unsigned w[3]; };\n"
    "extern \"C\" __global__ void grid(unsigned *out, const numbers n) {\n"
    "  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;\n"
    "  out[(z * n.w[1] + y) * n.w[0] + x] = x + 100u * y + 10000u * z + n.w[2];\n"
    "}\n";

static void test_grid(void **state) {
    enum { X = 12, Y = 15, Z = 4 };
    (void)state;
    void *module = NULL, *function = compile(grid_text, "grid", &module);
    unsigned *out = take((size_t)X * Y * Z * sizeof *out), n[3] = { X, Y, 7 };
    assert_int_equal(api.cuLaunchKernel(function, 3, 5, 2, 4, 3, 2, 0, stream, (void *[]){ &out, n }, NULL), 0);
    finish();
    for (unsigned i = 0; i < X * Y * Z; i++) assert_int_equal(out[i], i % X + 100 * (i / X % Y) + 10000 * (i / X / Y) + 7);
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(out));
}

/* Lanes that go different ways meet those of their own way. */
static const char ways_text[] =
    "extern \"C\" __global__ void ways(unsigned *out) {\n"
    "  unsigned t = threadIdx.x, r = 0u;\n"
    "  if (t % 32u == 31u) return;\n"
    "  if (t % 3u == 0u) r = __ballot_sync(__activemask(), t % 2u == 0u);\n"
    "  else r = ~__ballot_sync(__activemask(), t % 2u == 0u);\n"
    "  for (unsigned i = 0u; i < t % 32u; i++) r += __activemask();\n"
    "  out[t] = r + __shfl_xor_sync(__activemask(), t, 1);\n"
    "}\n";

static void test_ways(void **state) {
    enum { COUNT = 64 };
    (void)state;
    void *module = NULL, *function = compile(ways_text, "ways", &module);
    unsigned *out = take(COUNT * sizeof *out);
    assert_int_equal(launch(function, 1, COUNT, (void *[]){ &out }), 0);
    finish();
    for (unsigned t = 0; t < COUNT; t++) {
        const unsigned first = t / 32 * 32, lane = t % 32;
        unsigned r = 0;
        for (unsigned i = 0; i < 31; i++) r |= (unsigned)(((first + i) % 3 == 0) == (t % 3 == 0) && (first + i) % 2 == 0) << i;
        if (t % 3) r = ~r;
        for (unsigned i = 0; i < lane; i++) r += 0x7FFFFFFFu & ~((2u << i) - 1u);
        assert_int_equal(out[t], lane == 31 ? 0 : lane == 30 ? r + 0xDEADBEEFu : r + (t ^ 1));
    }
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(out));
}

/* ---- time and order ---- */

static void test_events(void **state) {
    (void)state;
    void *from = NULL, *to = NULL;
    uint64_t memory = 0;
    float ms = -1;
    OK(cuEventCreate(&from, 0));
    OK(cuEventCreate(&to, 0));
    OK(cuMemAlloc_v2(&memory, 1 << 20));
    OK(cuEventRecord(from, stream));
    OK(cuMemsetD32Async(memory, 7, 1 << 18, stream));
    OK(cuEventRecord(to, stream));
    assert_int_equal(api.cuEventQuery(to), 600);
    while (api.cuEventQuery(to)) usleep(100);
    OK(cuEventElapsedTime(&ms, from, to));
    assert_true(ms >= 0);
    OK(cuMemFree_v2(memory));
    OK(cuEventDestroy_v2(from));
    OK(cuEventDestroy_v2(to));
}

/* Two fills and an addition; without the dependencies the addition runs too early. */
static int sum_by_graph(bool dependencies) {
    void *module = NULL, *function = compile(add_text, "add", &module), *graph = NULL, *exec = NULL, *first = NULL;
    float *a = take(64 * sizeof *a), *b = take(64 * sizeof *b);
    const float one = 1.0f, two = 2.0f;
    void *const *after = NULL;
    size_t after_count = 0;
    int active = 0, count = 64;
    unsigned bits[2];
    memcpy(bits, &one, sizeof one);
    memcpy(bits + 1, &two, sizeof two);
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(cuMemsetD32Async((uint64_t)(uintptr_t)a, bits[0], 64, stream));
    OK(cuStreamGetCaptureInfo_v2(stream, &active, NULL, NULL, &after, &after_count));
    assert_int_equal(active, 1);
    assert_int_equal(after_count, 1);
    first = after[0];
    OK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, 1)); /* the second comes after nothing */
    OK(cuMemsetD32Async((uint64_t)(uintptr_t)b, bits[1], 64, stream));
    if (dependencies) OK(cuStreamUpdateCaptureDependencies(stream, &first, 1, 0));
    else OK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, 1));
    assert_int_equal(launch(function, 1, 64, (void *[]){ &a, &b, &count }), 0);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    assert_float_equal(a[0], 0, 0); /* nothing has run */
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec)); /* what was launched still runs */
    finish();
    const int sum = (int)b[63];
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(a));
    OK(cuMemFreeHost(b));
    return sum;
}

static void test_graph(void **state) {
    (void)state;
    assert_int_equal(sum_by_graph(true), 3);
    assert_int_equal(sum_by_graph(false), 2); /* only the later fill is seen */
}

/* ---- mistakes ---- */

static void test_refusals(void **state) {
    (void)state;
    void *module = NULL, *function = compile(add_text, "add", &module), *program = NULL, *popped = NULL;
    float *a = take(64 * sizeof *a);
    int count = 64;
    void *arguments[] = { &a, &a, &count };
    const char *const options[] = { "--gpu-architecture=sm_90", "--no-such-option" };
    uint64_t memory = 0;
    size_t bytes = 0;
    char words[2000] = "";
    assert_int_equal(launch(function, 1, 65, arguments), 1); /* above the kernel's bounds */
    assert_int_equal(launch(function, 0, 64, arguments), 1);
    assert_int_equal(launch(function, 1, 64, (void *[]){ &a, &a, NULL }), 1);
    assert_int_equal(api.cuLaunchKernel(function, 1, 65536, 1, 64, 1, 1, 0, stream, arguments, NULL), 1);
    assert_int_equal(api.cuMemsetD32Async((uint64_t)(uintptr_t)a, 0, 65, stream), 1); /* beyond the end */
    assert_int_equal(api.cuMemAlloc_v2(&memory, (size_t)1 << 40), 2);
    assert_int_equal(api.cuMemFree_v2(12345), 1);
    assert_int_equal(api.cuModuleGetFunction(&function, module, "subtract"), 500);
    assert_int_equal(api.cuModuleLoadData(&module, "these are not the bytes that a compiler made"), 200);
    OK(nvrtcCreateProgram(&program, "extern \"C\" __global__ void k(float *p) { p[0] = wrong; }", "k", 0, NULL, NULL));
    assert_int_equal(api.nvrtcCompileProgram(program, 2, options), 5);
    assert_int_equal(api.nvrtcCompileProgram(program, 1, options), 6);
    OK(nvrtcGetProgramLogSize(program, &bytes));
    assert_in_range(bytes, 10, sizeof words);
    OK(nvrtcGetProgramLog(program, words));
    assert_non_null(strstr(words, "wrong"));
    OK(nvrtcDestroyProgram(&program));
    OK(cuCtxPopCurrent_v2(&popped));
    assert_int_equal(api.cuMemAlloc_v2(&memory, 16), 201);
    OK(cuCtxPushCurrent_v2(popped));
    OK(cuModuleUnload(module));
    OK(cuMemFreeHost(a));
}

/* In a process of its own: does it end by a signal? */
static bool ends_badly(void (*mistake)(void)) {
    int result = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* which cmocka would take for its own */
        signal(SIGABRT, SIG_DFL);
        set_up(NULL);
        mistake();
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &result, 0) == child);
    return WIFSIGNALED(result);
}

static void add_to(size_t bytes, int count) {
    void *module = NULL, *function = compile(add_text, "add", &module);
    float *a = take(4096), *b = take(bytes);
    for (int i = 0; i < count; i++) a[i] = 1.0f;
    assert_int_equal(launch(function, 4, 64, (void *[]){ &a, &b, &count }), 0);
    finish();
    OK(cuMemFreeHost(b));
}
static void write_into_gap(void) { add_to(4 * 60, 61); }
static void write_far_behind(void) { add_to(4 * 64, 100); }
static void write_right(void) { add_to(4 * 100, 100); }

static void test_guards(void **state) {
    (void)state;
    assert_false(ends_badly(write_right));
    assert_true(ends_badly(write_into_gap));
    assert_true(ends_badly(write_far_behind));
}

static void use_freed_memory(void) {
    void *module = NULL, *function = compile(add_text, "add", &module);
    float *a = take(64 * sizeof *a);
    int count = 64;
    OK(cuMemFreeHost(a));
    assert_int_equal(launch(function, 1, 64, (void *[]){ &a, &a, &count }), 700);
    assert_int_equal(api.cuStreamQuery(stream), 700); /* lost for good */
    abort(); /* all as expected */
}
static void test_lost(void **state) {
    (void)state;
    assert_true(ends_badly(use_freed_memory));
}

/* The host's own pages, of a mapping or of a file: taken once, to be written unless said otherwise, and given back in time. */
enum { PAGE = 4096, MAPPED = 2, READ_ONLY = 8 };
static char *pages(int may, int flags) {
    FILE *file = tmpfile();
    assert_true(file && ftruncate(fileno(file), 4 * PAGE) == 0);
    char *map = mmap(NULL, 4 * PAGE, may, flags, fileno(file), 0);
    fclose(file);
    assert_true(map != MAP_FAILED);
    return map;
}
static void test_registered(void **state) {
    (void)state;
    char *map = pages(PROT_READ | PROT_WRITE, MAP_PRIVATE), *file = pages(PROT_READ, MAP_SHARED);
    uint64_t address = 0;
    OK(cuMemHostRegister_v2(map + 64, PAGE, MAPPED)); /* of two pages */
    OK(cuMemHostGetDevicePointer_v2(&address, map + 64, 0));
    OK(cuMemsetD32Async(address, 7, PAGE / 4, stream));
    finish();
    assert_int_equal(map[64 + PAGE - 4], 7);
    assert_int_equal(api.cuMemHostRegister_v2(map + PAGE, PAGE, MAPPED), 712);
    OK(cuMemHostRegister_v2(map + 2 * PAGE, PAGE, MAPPED));
    assert_int_equal(api.cuMemHostUnregister(map), 713); /* not as it was given */
    assert_int_equal(api.cuMemFreeHost(map), 1);
    OK(cuMemHostUnregister(map + 64));
    OK(cuMemHostUnregister(map + 2 * PAGE));
    assert_int_equal(api.cuMemsetD32Async(address, 7, 1, stream), 1);
    assert_int_equal(api.cuMemHostRegister_v2(file, PAGE, MAPPED), 1);
    OK(cuMemHostRegister_v2(file, PAGE, MAPPED | READ_ONLY));
    OK(cuMemHostUnregister(file));
    munmap(map, 4 * PAGE);
    munmap(file, 4 * PAGE);
}
static void unmap_registered(void) {
    char *map = pages(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    OK(cuMemHostRegister_v2(map, PAGE, MAPPED));
    munmap(map, 4 * PAGE);
    api.cuMemHostUnregister(map);
}
static void forget_registered(void) {
    OK(cuMemHostRegister_v2(pages(PROT_READ | PROT_WRITE, MAP_PRIVATE), PAGE, MAPPED));
    tear_down(NULL);
}
static void read_private(void) { api.cuMemHostRegister_v2(pages(PROT_READ, MAP_PRIVATE), PAGE, MAPPED | READ_ONLY); }
static void test_registered_badly(void **state) {
    (void)state;
    assert_true(ends_badly(unmap_registered));
    assert_true(ends_badly(forget_registered));
    assert_true(ends_badly(read_private));
}

int main(void) {
    if (!load()) return 1;
    /* Those that fork come first: a process with threads has no second one. */
    const struct CMUnitTest of_mistakes[] = { cmocka_unit_test(test_guards), cmocka_unit_test(test_lost),
                                             cmocka_unit_test(test_registered_badly) };
    const struct CMUnitTest on_a_stream[] = {
        cmocka_unit_test(test_add), cmocka_unit_test(test_sum), cmocka_unit_test(test_histogram), cmocka_unit_test(test_grid),
        cmocka_unit_test(test_ways), cmocka_unit_test(test_events), cmocka_unit_test(test_graph), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_registered),
    };
    return cmocka_run_group_tests(of_mistakes, NULL, NULL) + cmocka_run_group_tests(on_a_stream, set_up, tear_down);
}
