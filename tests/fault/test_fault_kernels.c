/* test_fault_kernels.c: deliberately wrong kernels. A mutant is one kernel with one small change, put in between the library
 * and the back end as it is loaded: on the CPU a changed constant or push word, or workgroups left out; on lavapipe an
 * instruction of the SPIR-V that became another one. Each runs in a process of its own. It counts as wrong where it changes
 * the result of a program (other shapes and values than the known answers have) beyond its bound; then, with known answers
 * on, the same program has to give the right result, or to be refused by the kernel's name. Mutants that change no result
 * are counted apart, and so are those that crash the driver. Of a fast plan only the fast form is changed, so that there
 * is a right one left; of an exact plan both. "test_fault_kernels all" takes more of lavapipe,
 * "test_fault_kernels 13 1" one mutant of it. */
#define _GNU_SOURCE
#include "front/front.h"
#include "kernels/exact.h"
#include "kernels/steps.h"
#include "sweep.h"
#include <pthread.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the programs ---- */

typedef struct work {
    hdi_module_id module; /* that is changed */
    hd_math       math;
    double        share;  /* of the largest element: the error allowed */
    const char   *text;
} work;

#define X(shape) "heddle 1\nv1 = input f32" shape " \"x\"\n"
#define Y "\noutput v9 \"y\"\n"
#define BOTH(module, share, text) { HDI_MODULE_##module, HD_MATH_FAST, share, text }, { HDI_MODULE_##module, HD_MATH_EXACT, 0, text }
static const work works[] = {
    BOTH(ELEMENTWISE, 1e-5, X("[9,130]") "v2 = input f32[130] \"w\"\nv3 = mul v1 v2\nv4 = silu v3\nv9 = add v4 v2" Y),
    BOTH(ELEMENTWISE, 1e-5, X("[7,51]") "v2 = permute v1 axes=[1,0]\nv3 = scale v2 factor=3 bias=0.25\nv9 = gelu v3" Y),
    BOTH(ELEMENTWISE, 1e-5, X("[4096]") "v2 = input f32[4096] \"w\"\nv3 = sub v1 v2\nv4 = exp v3\nv9 = clip v4 low=0.25 high=9" Y),
    BOTH(SOFTMAX, 1e-5, X("[11,190]") "v9 = softmax v1 axis=1" Y),
    BOTH(SOFTMAX, 1e-5, X("[4,700]") "v9 = log_softmax v1 axis=1" Y),
    BOTH(NORM, 1e-5, X("[6,256]") "v2 = input f32[256] \"w\"\nv9 = rms_norm v1 v2 eps=1e-05" Y),
    BOTH(NORM, 1e-5, X("[6,333]") "v2 = input f32[333] \"w\"\nv3 = input f32[333] \"b\"\nv9 = layer_norm v1 v2 v3 eps=1e-05" Y),
    BOTH(REDUCE, 1e-4, X("[5,2000]") "v9 = sum v1 axis=1" Y),
    BOTH(REDUCE, 1e-4, X("[40,77,3]") "v9 = mean v1 axis=1" Y),
    BOTH(REDUCE, 1e-6, X("[12,401]") "v9 = argmax v1 axis=1" Y),
    BOTH(TOP_K, 0, X("[5,9000]") "v9 = top_k v1 k=40" Y),
    BOTH(GATHER, 0, "heddle 1\nv1 = input q4_0[20,64] \"x\"\nv2 = input i32[7] \"i\"\nv9 = gather v1 v2" Y),
    BOTH(CUMSUM, 1e-4, X("[3,9000]") "v9 = cumsum v1 axis=1" Y),
    BOTH(SCATTER, 1e-5, X("[9,70]") "v2 = input i32[20] \"i\"\nv3 = input f32[20,70] \"u\"\nv9 = scatter_add v1 v2 v3" Y),
    BOTH(WRITE_ROWS, 0, "heddle 1\nv1 = state f32[12,40] \"s\"\nv2 = input f32[3,40] \"x\"\nv3 = input i32[1] \"i\"\nv9 = write_rows v1 v2 v3" Y),
    BOTH(RANDOM, 0, "heddle 1\nv1 = input i32[4] \"i\"\nv9 = random v1 stream=1 shape=[9,500]" Y),
    BOTH(HASH, 0, X("[3000]") "v9 = hash v1" Y),
    BOTH(TRANSPOSE, 0, X("[3,70,90]") "v9 = permute v1 axes=[2,0,1]" Y),
    BOTH(ROPE, 1e-4, X("[7,4,64]") "v2 = input i32[7] \"i\"\nv9 = rope v1 v2" Y),
    { HDI_MODULE_MATVEC, HD_MATH_FAST, 1e-2, X("[1,512]") "v2 = input q4_0[70,512] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
    { HDI_MODULE_CODES, HD_MATH_EXACT, 0, X("[9,512]") "v2 = input q4_k[70,512] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
    { HDI_MODULE_MATMUL_CODES, HD_MATH_EXACT, 0, X("[1,512]") "v2 = input q4_0[70,512] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
    BOTH(MATVEC, 1e-4, X("[4,100]") "v2 = input f32[60,100] \"w\"\nv9 = matmul v1 v2 transpose_b" Y),
    BOTH(MATMUL_TILED, 1e-4, X("[50,96]") "v2 = input f32[96,75] \"w\"\nv9 = matmul v1 v2" Y),
    { HDI_MODULE_MATMUL_TILED, HD_MATH_FAST, 1e-2, X("[24,128]") "v2 = input q8_0[56,128] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
    { HDI_MODULE_MATMUL_CODES, HD_MATH_EXACT, 0, X("[24,128]") "v2 = input q8_0[56,128] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
    BOTH(EXPERTS, 1e-4, X("[9,64]") "v2 = input q8_0[6,20,64] \"w\"\nv3 = input i32[9,2] \"i\"\nv9 = matmul_experts v1 v2 v3" Y),
    BOTH(ATTENTION, 1e-4, X("[9,4,32]") "v2 = input f32[50,2,32] \"k\"\nv3 = input f32[50,2,32] \"v\"\nv4 = input i32[1] \"i\"\nv9 = attention v1 v2 v3 v4" Y),
    { HDI_MODULE_MATVEC_SUBGROUP, HD_MATH_FAST, 1e-4, X("[1,256]") "v2 = input f16[40,256] \"w\"\nv9 = matmul v1 v2 transpose_b" Y },
};

static void fill(const hd_port *port, uint8_t *out) {
    const hdi_dtype_facts facts = hdi_dtype(port->dtype);
    uint32_t state = 12345u + (uint32_t)port->name[0];
    for (uint64_t i = 0; i < hd_shape_elements(port->shape) / facts.block_elements; i++) {
        uint8_t *at = out + i * facts.block_bytes;
        for (uint32_t b = 0; b < facts.block_bytes; b++) at[b] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
        const float value = (float)(state >> 8) / 4194304.0f - 2;
        const int32_t whole = (int32_t)(state >> 20) % 9;
        const uint16_t half = (uint16_t)exact_f32_to_f16(facts.block_elements > 1 ? value / 16 : value);
        if (port->dtype == HD_F32) memcpy(at, &value, 4);
        else if (port->dtype == HD_I32) memcpy(at, &whole, 4);
        else memcpy(at, &half, 2); /* an f16, or the scale of a block */
    }
}

/* Runs the work; returns the plan's status, and a result that the caller frees. */
static hd_status run_work(hd_device *device, const work *w, hd_math math, uint8_t **out_result, uint64_t *out_bytes) {
    hd_program *program;
    hd_plan *plan;
    hd_status status = hd_program_parse(device->context, w->text, strlen(w->text), &program);
    if (status) return status;
    status = hd_plan_create(device, program, &(hd_plan_desc){ .math = math }, &plan);
    for (size_t i = 0; i < hd_program_port_count(program) && !status; i++) {
        const hd_port port = hd_program_port(program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        uint8_t *data = malloc(bytes);
        if (!data) abort();
        fill(&port, data);
        if (port.kind == HD_PORT_INPUT) status = hd_plan_write(plan, port.name, data, bytes);
        if (port.kind == HD_PORT_OUTPUT) { *out_result = data; *out_bytes = bytes; }
        else free(data);
    }
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "y", *out_result, *out_bytes);
    hd_program_destroy(program);
    return status;
}

static bool is_right(const work *w, const uint8_t *right, const uint8_t *given, uint64_t bytes) {
    if (w->share == 0 || strstr(w->text, "argmax")) return memcmp(right, given, bytes) == 0;
    double largest = 0;
    float x, y;
    for (uint64_t i = 0; i < bytes; i += 4) {
        memcpy(&x, right + i, 4);
        largest = HDI_MAX(largest, fabs((double)x));
    }
    for (uint64_t i = 0; i < bytes; i += 4) {
        memcpy(&x, right + i, 4);
        memcpy(&y, given + i, 4);
        if (!(fabs((double)x - (double)y) <= w->share * largest)) return false;
    }
    return true;
}

/* ---- mutants ---- */

static struct mutant {
    const hdi_module *target;
    uint32_t          number;
    bool              only_fast;
    bool              flushes; /* takes subnormal results for 0, and is right otherwise */
    hdi_module        module; /* in the target's place */
    hdi_blob          blob;
} mutant;
static hdi_backend between;
static const hdi_backend *honest;

enum { SKIPS = 3, PUSHES = 9, SPECS = 3, CPU_MUTANTS = SKIPS + PUSHES + SPECS };

/* Leaves a workgroup out, or runs the kernel with a changed word. Words become smaller, so that nothing outside is touched. */
static void wrong_on_cpu(const hdi_cpu_call *call, uint32_t x, uint32_t y, uint32_t z) {
    uint32_t push[HDI_MAX_PUSH_WORDS], spec[HDI_MAX_SPEC], n = mutant.number;
    hdi_cpu_call changed = *call;
    if (mutant.only_fast && call->spec[HDI_SPEC_EXACT]) {
        mutant.target->cpu(call, x, y, z);
        return;
    }
    memcpy(push, call->push, sizeof push);
    memcpy(spec, call->spec, sizeof spec);
    changed.push = push;
    changed.spec = spec;
    if (n < SKIPS) {
        if ((x + y + z) % (n + 1) == n) return;
    } else if ((n -= SKIPS) < PUSHES) {
        uint32_t *word = &push[n];
        if (*word > 1 && *word < 1u << 20) --*word;
        else if (*word >= 1u << 23) *word ^= 1u << 22;
    } else if ((n -= PUSHES) == 0) spec[HDI_SPEC_EXACT] ^= 1;
    else if (n == 1 && spec[HDI_SPEC_CHAIN]) {
        uint32_t *step = &spec[HDI_SPEC_STEP + spec[HDI_SPEC_CHAIN] - 1];
        const uint32_t form = *step & 63u;
        *step = (*step & ~63u) | (form == HDI_STEP_ADD ? HDI_STEP_SUB : form == HDI_STEP_GELU ? HDI_STEP_SILU : form == HDI_STEP_CLIP ? HDI_STEP_ABS : form);
    } else if (n == 2 && !spec[HDI_SPEC_CHAIN]) spec[HDI_SPEC_FAMILY] = spec[HDI_SPEC_FAMILY] ? spec[HDI_SPEC_FAMILY] - 1 : 0;
    mutant.target->cpu(&changed, x, y, z);
}

static void flushing_on_cpu(const hdi_cpu_call *call, uint32_t x, uint32_t y, uint32_t z) {
    enum { OUTPUT = 4 }; /* of the element-wise kernel */
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* goes over all of the output: one workgroup at a time */
    pthread_mutex_lock(&one);
    mutant.target->cpu(call, x, y, z);
    uint32_t *words = call->bindings[OUTPUT];
    const bool is_f32 = call->spec[HDI_SPEC_OUT_TYPE] == HDI_TYPE_F32;
    for (uint64_t i = 0; is_f32 && i < call->binding_bytes[OUTPUT] / 4; i++)
        if ((words[i] & 0x7f800000u) == 0) words[i] &= 0x80000000u;
    pthread_mutex_unlock(&one);
}

/* What an instruction becomes; 0: it stays. */
static uint32_t other_op(uint32_t op) {
    switch (op) {
    case 129: return 131; /* FAdd: FSub */
    case 131: return 129;
    case 133: return 129; /* FMul: FAdd */
    case 136: return 133; /* FDiv: FMul */
    case 128: return 130; /* IAdd: ISub */
    case 130: return 128;
    case 132: return 128; /* IMul: IAdd */
    case 184: return 186; /* FOrdLessThan: FOrdGreaterThan */
    case 170: return 171; /* IEqual: INotEqual */
    case 171: return 170;
    case 198: return 197; /* BitwiseXor: BitwiseOr */
    case 197: return 198;
    case 194: return 195; /* ShiftRightLogical: ShiftRightArithmetic */
    case 350: return 349; /* GroupNonUniformFAdd: IAdd of the bits */
    case 169: return 169; /* Select: its operands change places */
    default: return 0;
    }
}

/* The `at`-th instruction that may be changed is; false where there are fewer. */
static bool change_words(uint32_t *words, size_t count, uint32_t at, uint32_t *out_total) {
    uint32_t seen = 0;
    bool done = false, code = false;
    for (size_t i = 5; i < count && words[i] >> 16; i += words[i] >> 16) {
        const uint32_t op = words[i] & 0xffffu;
        code = code || op == 54; /* from the first function on: constants stay */
        const uint32_t other = code ? other_op(op) : 0;
        if (other == 0 || seen++ != at) continue;
        done = true;
        words[i] = (words[i] & 0xffff0000u) | other;
        if (op == 169) { const uint32_t a = words[i + 4]; words[i + 4] = words[i + 5]; words[i + 5] = a; }
    }
    *out_total = seen;
    return done;
}

static hd_status load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel, hdi_loaded_kernel **out, bool *from_cache, hd_error *error) {
    const bool swap = module == mutant.target && !(mutant.only_fast && kernel->spec[HDI_SPEC_EXACT]);
    return honest->kernel_load(device, swap ? &mutant.module : module, kernel, out, from_cache, error);
}

/* Puts the mutant in; false where there is none of this number. */
static bool make_mutant(hdi_module_id id, hd_math math, bool native, uint32_t number) {
    uint32_t total;
    mutant = (struct mutant){ .target = hdi_module_get(id), .number = number, .only_fast = math == HD_MATH_FAST };
    mutant.module = *mutant.target;
    mutant.module.cpu = wrong_on_cpu;
    if (native) return mutant.target->cpu && number < CPU_MUTANTS;
    if (!mutant.target->spirv) return false;
    mutant.blob = *mutant.target->spirv;
    uint32_t *words = malloc(mutant.blob.word_count * sizeof *words); /* as long as the process */
    if (!words) abort();
    memcpy(words, mutant.blob.words, mutant.blob.word_count * sizeof *words);
    mutant.blob.words = words;
    mutant.blob.hash ^= number + 1;
    mutant.module.spirv = &mutant.blob;
    change_words(words, mutant.blob.word_count, UINT32_MAX, &total);
    return total > 0 && change_words(words, mutant.blob.word_count, (uint32_t)((number * 2654435761u + 77u) % total), &total);
}

/* ---- one mutant, in a process of its own ---- */

enum { AVOIDED, REFUSED, NO_CHANGE, NONE, MISSED, CRASHED, OUTCOMES };

static void put_between(hd_device *device) {
    honest = device->backend;
    between = *honest;
    between.kernel_load = load;
    device->backend = &between;
}

static hd_device *open_device(const char *name, int verify) {
    hd_context *context;
    hd_device *device;
    const hd_context_desc desc = { .backend = name, .verify = verify, .cache_dir = "", .cpu_threads = 2, .wait_ns = UINT64_C(20000000000) };
    if (hd_context_create(&desc, &context) || hd_device_open(context, &(hd_device_desc){ .id = name }, &device)) return NULL;
    if (!HDI_FIND(device)) return NULL;
    if (mutant.target) put_between(device);
    return device;
}

/* Is the plan refused by the kernel's name? What `codes` makes is only seen through matmul_codes: then either may be named. */
static bool is_named(const work *w, const char *text) {
    return strstr(text, w->module == HDI_MODULE_MATMUL_CODES ? "codes" : mutant.module.name) || strstr(text, "exact mode");
}

static int outcome(const char *name, const work *w, uint32_t number) {
    uint8_t *right = NULL, *given = NULL;
    uint64_t bytes;
    hd_error error;
    hd_device *device = open_device("cpu", -1);
    if (!device || run_work(device, w, HD_MATH_EXACT, &right, &bytes)) return CRASHED;
    hd_context_destroy(device->context);
    if (!make_mutant(w->module, w->math, strcmp(name, "cpu") == 0, number)) return NONE;
    device = open_device(name, -1);
    if (!device) return NONE;
    const hd_status unwatched = run_work(device, w, w->math, &given, &bytes);
    if (!unwatched && is_right(w, right, given, bytes)) return NO_CHANGE;
    hd_context_destroy(device->context);
    device = open_device(name, 2);
    if (!device) return CRASHED;
    const hd_status status = run_work(device, w, w->math, &given, &bytes);
    hd_context_take_error(device->context, &error);
    if (status) return status == HD_STATUS_UNSUPPORTED && is_named(w, error.text) ? REFUSED : MISSED;
    return is_right(w, right, given, bytes) ? AVOIDED : MISSED;
}

static int try_mutant(const char *name, const work *w, uint32_t number) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (!freopen("/dev/null", "w", stderr)) _exit(CRASHED);
        _exit(outcome(name, w, number));
    }
    int result = 0;
    if (child < 0 || waitpid(child, &result, 0) != child || !WIFEXITED(result) || WEXITSTATUS(result) >= OUTCOMES) return CRASHED;
    return WEXITSTATUS(result);
}

static uint32_t sweep(const char *name, uint32_t per_work, uint32_t every) {
    uint32_t counts[OUTCOMES] = { 0 };
    for (size_t i = 0; i < HDI_COUNT(works); i += every)
        for (uint32_t number = 0; number < per_work; number += SWEEP_STEP) {
            const int result = try_mutant(name, &works[i], number);
            counts[result]++;
            if (result == MISSED) print_error("%s: mutant %u of %s is missed: %s", name, number, works[i].math == HD_MATH_EXACT ? "exact" : "fast", works[i].text);
        }
    const uint32_t found = counts[AVOIDED] + counts[REFUSED];
    print_message("%s: %u wrong kernels: found %u (%u avoided with the right result, %u plans refused by name), missed %u; %u changed no result, %u crashed the driver or the process\n",
                  name, found + counts[MISSED], found, counts[AVOIDED], counts[REFUSED], counts[MISSED], counts[NO_CHANGE], counts[CRASHED]);
    assert_int_equal(counts[MISSED], 0);
    return found + counts[CRASHED];
}

static bool all;

static void wrong_kernels_are_found(void **state) {
    (void)state;
    assert_true(sweep("cpu", CPU_MUTANTS, 1) >= 200 / SWEEP_STEP); /* a sanitizer ends those that read outside of their operands */
}

static void wrong_spirv_is_found(void **state) {
    (void)state;
    sweep("vulkan", all ? 12 : 2, all ? 1 : 7);
}

static void count_wrong(void *user, const hd_fact *fact) { *(uint32_t *)user += fact->verdict.wrong; }

/* A device that does not keep subnormals: exact mode is refused by name, fast mode goes on. */
static void flushed_subnormals(void **state) {
    (void)state;
    uint8_t *result = NULL;
    uint64_t bytes;
    hd_error error;
    uint32_t wrong = 0;
    mutant = (struct mutant){ .target = hdi_module_get(HDI_MODULE_ELEMENTWISE), .module = *hdi_module_get(HDI_MODULE_ELEMENTWISE) };
    mutant.module.cpu = flushing_on_cpu;
    hd_device *device = open_device("cpu", 2);
    assert_non_null(device);
    assert_int_equal(run_work(device, &works[1], HD_MATH_EXACT, &result, &bytes), HD_STATUS_UNSUPPORTED);
    hd_context_take_error(device->context, &error);
    assert_non_null(strstr(error.text, "subnormals"));
    free(result);
    assert_int_equal(run_work(device, &works[0], HD_MATH_FAST, &result, &bytes), HD_OK);
    free(result);
    assert_int_equal(hd_device_calibrate(device, &(hd_calibrate_desc){ .kinds = HD_FACT_VERDICT, .report = count_wrong, .user = &wrong }), HD_OK);
    assert_true(wrong >= 1);
    mutant.target = NULL; /* the same device, mended */
    device->backend = honest;
    hd_context_destroy(device->context);
    device = open_device("cpu", 2);
    assert_int_equal(run_work(device, &works[1], HD_MATH_EXACT, &result, &bytes), HD_OK);
    free(result);
    hd_context_destroy(device->context);
}

/* Verdicts outlive the process, for devices whose driver they name; a damaged line is one that is not there. */
static hd_status softmax_with(const char *folder, int verify) {
    hd_context *context;
    hd_device *device;
    uint8_t *result = NULL;
    uint64_t bytes;
    const work *softmax = &works[6]; /* after three element-wise ones, each twice */
    const hd_context_desc desc = { .backend = "vulkan", .verify = verify, .cache_dir = folder };
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    if (hd_device_open(context, &(hd_device_desc){ .id = "vulkan" }, &device)) {
        hd_context_destroy(context);
        skip();
    }
    assert_true(HDI_FIND(device));
    if (mutant.target) put_between(device);
    const hd_status status = run_work(device, softmax, HD_MATH_FAST, &result, &bytes);
    free(result);
    hd_context_destroy(context);
    return status;
}

static void verdicts_are_kept(void **state) {
    (void)state;
    char folder[] = "/tmp/heddle-verdicts-XXXXXX", command[96];
    assert_non_null(mkdtemp(folder));
    mutant = (struct mutant){ .target = hdi_module_get(HDI_MODULE_SOFTMAX), .module = { .name = "softmax" } }; /* a kernel that does not load */
    assert_int_equal(softmax_with(folder, 2), HD_STATUS_UNSUPPORTED);
    mutant = (struct mutant){ 0 };
    assert_int_equal(softmax_with(folder, 1), HD_STATUS_UNSUPPORTED); /* from the file: nothing is judged at 1 */
    assert_int_equal(softmax_with(folder, -1), HD_STATUS_UNSUPPORTED);
    snprintf(command, sizeof command, "sed -i 's/^verdict/verdikt/' %s/facts-*", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(softmax_with(folder, 1), HD_OK);
    assert_int_equal(softmax_with(folder, 2), HD_OK);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(wrong_kernels_are_found), cmocka_unit_test(wrong_spirv_is_found),
                                        cmocka_unit_test(flushed_subnormals), cmocka_unit_test(verdicts_are_kept) };
    if (argc == 3) { /* one of lavapipe: its program, its number */
        static const char *const names[OUTCOMES] = { "avoided", "refused", "changes nothing", "no such mutant", "missed", "crashed" };
        printf("%s\n", names[try_mutant("vulkan", &works[(size_t)atoi(argv[1]) % HDI_COUNT(works)], (uint32_t)atoi(argv[2]))]);
        return 0;
    }
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    return cmocka_run_group_tests_name("wrong kernels", tests, NULL, NULL);
}
