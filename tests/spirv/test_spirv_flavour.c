/* test_spirv_flavour.c: kernels as SPIR-V of OpenCL's flavour. Every kernel that the planner can choose, and those of users, are
 * valid by spirv-val, and a translator takes them (llvm-spirv) where one is installed; what cannot be said is refused by name;
 * equal input gives equal words, and every allocation may fail. */
#define _GNU_SOURCE
#include "languages.h"
#include "../unit/spirv_fixtures.h"
#include "foreign_kernels.h"
#include "user_kernels.h"
#include <fcntl.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERYTHING = HDI_SPIRV_OFFERS_FP64 | HDI_SPIRV_OFFERS_FP16 | HDI_SPIRV_OFFERS_INT64_ATOMICS | HDI_SPIRV_OFFERS_SUBGROUPS | HDI_SPIRV_OFFERS_INTEGER_DOT };
static const hdi_spirv_print_target everything = { .offers = EVERYTHING };
static chosen_kernels chosen;
static int failures;
static char folder[] = "/tmp/heddle-flavour-XXXXXX";

static void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "failed: %s\n", what);
    failures++;
}

/* ---- programs of others ---- */

/* Runs a program with up to four arguments; what it says goes where ours does. 127: it is not installed. */
static int run(const char *program, bool quiet, const char *a, const char *b, const char *c, const char *d) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (quiet) dup2(open("/dev/null", O_WRONLY), 1), dup2(1, 2);
        execlp(program, program, a, b, c, d, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *installed(const char *const *names) {
    for (; *names; names++)
        if (run(*names, true, "--version", NULL, NULL, NULL) != 127) return *names;
    return NULL;
}

typedef struct tools { const char *validator, *translator; char module[64], bitcode[64]; uint32_t valid, translated, refused; } tools;

static bool has(const uint32_t *words, size_t count, uint32_t capability) {
    for (size_t i = 5; i < count && (words[i] & 0xFFFF) == SpvOpCapability; i += 2)
        if (words[i + 1] == capability) return true;
    return false;
}

/* Does a function that the entry point, which comes first, calls name a variable of the workgroup itself? */
static bool callee_names_shared(const hdi_text *module) {
    static bool shared[1 << 16]; /* by id */
    const uint32_t *words = (const uint32_t *)(const void *)module->bytes;
    int functions = 0;
    memset(shared, 0, sizeof shared);
    for (size_t at = 5; at < module->count / 4; at += words[at] >> 16) {
        const uint32_t opcode = words[at] & 0xFFFF, length = words[at] >> 16;
        functions += opcode == SpvOpFunction;
        if (opcode == SpvOpVariable && words[at + 3] == SpvStorageClassWorkgroup && words[at + 2] < HDI_COUNT(shared))
            shared[words[at + 2]] = true;
        const bool takes_pointers = opcode == SpvOpLoad || opcode == SpvOpStore || opcode == SpvOpInBoundsAccessChain ||
                                    opcode == SpvOpAccessChain || opcode == SpvOpFunctionCall || opcode == SpvOpBitcast;
        for (uint32_t i = opcode == SpvOpStore ? 1 : 3; i < length && takes_pointers && functions > 1; i++)
            if (words[at + i] < HDI_COUNT(shared) && shared[words[at + i]]) return true;
    }
    return false;
}

/* One module through both. The translator of LLVM 15 has no integer dot products. */
static void examine(tools *t, const hdi_text *module, const char *label) {
    check(!callee_names_shared(module), "shared memory reaches called functions as parameters");
    const uint32_t *words = (const uint32_t *)(const void *)module->bytes;
    FILE *file = fopen(t->module, "wb");
    const bool written = file && fwrite(module->bytes, 1, module->count, file) == module->count;
    check(file && fclose(file) == 0 && written, "writing a module");
    /* OpenCL 2.2's core has neither halves nor version 1.3, which kernels with subgroups are of. */
    const char *environment = words[1] > 0x00010200 ? "spv1.3" : has(words, module->count / 4, SpvCapabilityFloat16) ? "spv1.2" : "opencl2.2";
    if (t->validator && run(t->validator, false, "--target-env", environment, t->module, NULL) == 0) t->valid++;
    else if (t->validator) check(false, label);
    if (!t->translator || has(words, module->count / 4, SpvCapabilityDotProductKHR)) return;
    if (run(t->translator, false, "-r", "-o", t->bitcode, t->module) == 0) t->translated++;
    else check(false, label);
}

/* ---- every kernel ---- */

static hd_status make(const hdi_kernel *kernel, hdi_text *out, hdi_spirv_printed *out_printed, hd_error *error) {
    const hdi_blob *blob = hdi_module_get(kernel->module)->spirv;
    uint32_t ids[HDI_MAX_SPEC];
    for (uint32_t i = 0; i < HDI_MAX_SPEC; i++) ids[i] = i;
    *out = (hdi_text){ .allocator = &hdi_default_allocator };
    const hdi_spirv_input input = { .module = blob->words, .bytes = blob->word_count * 4, .entry = blob->entry, .spec_ids = ids,
                                    .spec_values = kernel->spec, .spec_count = kernel->spec_count, .checked = true };
    const hdi_spirv_print_target target = { .offers = EVERYTHING, .subgroup = kernel->subgroup };
    return hdi_spirv_kernel_module(&hdi_default_allocator, &input, &target, out, out_printed, error);
}

static void test_own(tools *t) {
    size_t most = 0;
    double ms = 0; /* of this process: what else the machine does is left out */
    for (uint32_t i = 0; i < chosen.count; i++) {
        char label[256];
        hdi_text module, again;
        hdi_spirv_printed printed, printed_again;
        hd_error error = { 0 };
        kernel_label(&chosen.kernels[i], label, sizeof label);
        const clock_t begun = clock();
        const hd_status status = make(&chosen.kernels[i], &module, &printed, &error);
        ms += (double)(clock() - begun) * 1e3 / (double)CLOCKS_PER_SEC;
        if (status) {
            if (strstr(error.text, "cooperative matrices")) t->refused++;
            else fprintf(stderr, "%s: %s\n", label, error.text), failures++;
            hdi_text_free(&module);
            continue;
        }
        check(make(&chosen.kernels[i], &again, &printed_again, &error) == HD_OK && again.count == module.count &&
              memcmp(again.bytes, module.bytes, module.count) == 0, "equal input, equal words");
        examine(t, &module, label);
        most = HDI_MAX(most, module.count);
        hdi_text_free(&module);
        hdi_text_free(&again);
    }
    printf("%u kernels, %u with cooperative matrices refused; %.2f ms a kernel, at most %zu bytes\n", chosen.count, t->refused, ms / chosen.count, most);
}

/* Does the module shuffle vectors of unequal lengths? */
static bool shuffles_unequal(const hdi_text *module) {
    static uint32_t count_of[4096]; /* by id: of a vector type; of a loaded or made vector */
    const uint32_t *words = (const uint32_t *)(const void *)module->bytes;
    memset(count_of, 0, sizeof count_of);
    for (size_t at = 5; at < module->count / 4 && words[3] < 4096; at += words[at] >> 16) {
        const uint32_t opcode = words[at] & 0xFFFF, length = words[at] >> 16;
        if (opcode == SpvOpTypeVector)
            count_of[words[at + 1]] = words[at + 3];
        else if (length > 3 && words[at + 1] < 4096 && words[at + 2] < 4096 && count_of[words[at + 1]])
            count_of[words[at + 2]] = count_of[words[at + 1]];
        if (opcode == SpvOpVectorShuffle && count_of[words[at + 3]] != count_of[words[at + 4]]) return true;
    }
    return false;
}

static void test_user(tools *t, const char *name, const uint32_t *words, size_t bytes) {
    hdi_text module = { .allocator = &hdi_default_allocator };
    hdi_spirv_printed printed;
    hd_error error = { 0 };
    hdi_user_kernel *kernel = hdi_user_kernel_new(&hdi_default_allocator, &(hdi_spirv_input){ .module = words, .bytes = bytes }, &error);
    const hdi_spirv_input input = { .module = kernel ? kernel->words : words, .bytes = kernel ? kernel->word_count * 4 : 0 };
    if (hdi_spirv_kernel_module(&hdi_default_allocator, &input, &everything, &module, &printed, &error))
        fprintf(stderr, "%s: %s\n", name, error.text), failures++;
    else
        examine(t, &module, name);
    if (strncmp(name, "shuffles", 8) == 0 && module.count)
        check(!shuffles_unequal(&module), "no reader is given a shuffle of unequal vectors");
    hdi_text_free(&module);
    hdi_user_kernel_release(kernel);
}

static void test_users(tools *t) {
    for (size_t i = 0; i < HDI_COUNT(user_kernels); i++)
        test_user(t, user_kernels[i].name, user_kernels[i].words, user_kernels[i].bytes);
    for (size_t i = 0; i < HDI_COUNT(foreign_kernels); i++)
        test_user(t, foreign_kernels[i].name, foreign_kernels[i].words, foreign_kernels[i].bytes);
}

/* ---- refusals and memory ---- */

static void refused(const void *words, size_t bytes, uint32_t offers, hd_status status, const char *why) {
    hdi_text module = { .allocator = &hdi_default_allocator };
    hdi_spirv_printed printed;
    hd_error error = { 0 };
    const hdi_spirv_input input = { .module = words, .bytes = bytes };
    const hdi_spirv_print_target target = { .offers = offers };
    check(hdi_spirv_kernel_module(&hdi_default_allocator, &input, &target, &module, &printed, &error) == status && strstr(error.text, why), why);
    check(module.count == 0, "nothing is written where it is refused");
    hdi_text_free(&module);
}

static void test_refusals(void) {
    refused(fixture_matrix, sizeof fixture_matrix, EVERYTHING, HD_STATUS_UNSUPPORTED, "OpenCL has no cooperative matrices here");
    refused(fixture_subgroup, sizeof fixture_subgroup, 0, HD_STATUS_UNSUPPORTED, "the device has no subgroups");
    refused(fixture_add, 100, EVERYTHING, HD_STATUS_MODULE, "SPIR-V");
    refused(fixture_uniform_buffer, sizeof fixture_uniform_buffer, EVERYTHING, HD_STATUS_MODULE, "uniform buffer");
    for (size_t i = 0; i < HDI_COUNT(user_kernels); i++)
        if (strcmp(user_kernels[i].name, "types, -O") == 0) refused(user_kernels[i].words, user_kernels[i].bytes, 0, HD_STATUS_UNSUPPORTED, "f16, which the device does not have");
}

typedef struct counter { uint32_t left; int64_t bytes; } counter;
static void *failing(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    counter *c = user;
    if (new_bytes && c->left-- == 0) return c->left = 0, NULL;
    void *now = hdi_default_allocator.resize(NULL, old, old_bytes, new_bytes);
    c->bytes += (int64_t)new_bytes - (int64_t)old_bytes;
    return now;
}

static void test_memory(void) {
    for (uint32_t n = 0; n < 10000; n++) {
        counter c = { n, 0 };
        const hd_allocator allocator = { failing, &c };
        hdi_text out = { .allocator = &allocator };
        hdi_spirv_printed printed;
        hd_error error = { 0 };
        const hdi_spirv_input input = { .module = kernel_ways_plain, .bytes = sizeof kernel_ways_plain };
        const hd_status status = hdi_spirv_kernel_module(&allocator, &input, &everything, &out, &printed, &error);
        hdi_text_free(&out);
        check(c.bytes == 0, "all memory is given back");
        if (status == HD_OK) return;
        check(status == HD_STATUS_OUT_OF_HOST_MEMORY, "out of memory is said");
    }
    check(false, "it ends");
}

int main(void) {
    static const char *const validators[] = { "spirv-val", NULL }, *const translators[] = { "llvm-spirv-15", "llvm-spirv-14", "llvm-spirv", NULL };
    if (!mkdtemp(folder)) return 1;
    tools t = { installed(validators), installed(translators), "", "", 0, 0, 0 };
    snprintf(t.module, sizeof t.module, "%s/k.spv", folder);
    snprintf(t.bitcode, sizeof t.bitcode, "%s/k.bc", folder);
    choose_kernels(&chosen);
    check(chosen.count >= 60, "the planner chooses many kernels");
    test_own(&t);
    test_users(&t);
    test_refusals();
    test_memory();
    if (t.validator) printf("%u modules valid by %s\n", t.valid, t.validator);
    else printf("skipped, no spirv-val: modules are not validated\n");
    if (t.translator) printf("%u modules taken by %s\n", t.translated, t.translator);
    else printf("skipped, no llvm-spirv: modules are not translated\n");
    remove(t.module);
    remove(t.bitcode);
    rmdir(folder);
    return failures != 0;
}
