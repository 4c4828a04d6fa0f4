/* test_spirv_hostile.c: damaged modules never crash, hang or leak, whatever is damaged; neither does a host without memory.
 * Damage is drawn from a fixed seed, so a failure can be had again. HEDDLE_MUTANTS_DIR=folder writes mutants there for a
 * comparison with spirv-val (scripts/spirv_val_agreement.py). */
#include "spent.h"
#include "spirv/module.h"
#include <stdio.h>
#include <stdlib.h>
#include "unit/spirv_fixtures.h"

enum { MUTANTS = 20000, MAX_WORDS = 4096 };

/* An allocator that counts what is out and fails from one allocation on. */
typedef struct counted {
    size_t out, calls, fail_at;
} counted;

static void *counted_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    counted *c = user;
    if (new_bytes && ++c->calls == c->fail_at) return NULL;
    void *pointer = hdi_default_allocator.resize(NULL, old, old_bytes, new_bytes);
    c->out = c->out - (old ? old_bytes : 0) + new_bytes;
    return pointer;
}

static uint64_t random_state;
static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 32) % (below ? below : 1);
}

/* First word of the instruction that a drawn word belongs to. */
static uint32_t draw_instruction(const uint32_t *words, uint32_t count) {
    uint32_t word = draw(count), at = 5;
    while (words[at] >> 16 && at + (words[at] >> 16) <= word) at += words[at] >> 16;
    return at;
}

typedef enum damage { FLIP_BIT, SWAP_WORDS, TRUNCATE, EDIT_LENGTH, EDIT_ID, EDIT_WORD, DROP, REPEAT, LENGTH_BOMB, EDIT_HEADER, DAMAGES } damage;

/* Does one damage to the module; keeps its room of MAX_WORDS. */
static void harm(uint32_t *words, uint32_t *count, damage kind) {
    static const uint32_t odd[] = { 0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000, 4194303, 64 };
    uint32_t at = draw(*count), inst = draw_instruction(words, *count), length = words[inst] >> 16, bound = words[3] ? words[3] : 1;
    bool whole = length && length <= *count - inst;
    switch (kind) {
    case FLIP_BIT: words[at] ^= 1u << draw(32); break;
    case SWAP_WORDS: {
        uint32_t other = draw(*count), word = words[at];
        words[at] = words[other];
        words[other] = word;
        break;
    }
    case TRUNCATE: *count = HDI_MAX(at, 6u); break;
    case EDIT_LENGTH: words[inst] = (words[inst] & 0xFFFF) | (length + draw(5) - 2) << 16; break;
    case EDIT_ID: if (whole && length > 1) words[inst + 1 + draw(length - 1)] = draw(bound + 1); break;
    case EDIT_WORD: words[at] = odd[draw(HDI_COUNT(odd))]; break;
    case DROP:
        if (!whole) break;
        memmove(words + inst, words + inst + length, (*count - inst - length) * sizeof *words);
        *count = HDI_MAX(*count - length, 6u);
        break;
    case REPEAT:
        if (!whole || *count + length > MAX_WORDS) break;
        memmove(words + inst + length, words + inst, (*count - inst) * sizeof *words);
        *count += length;
        break;
    case LENGTH_BOMB: words[inst] |= 0xFFFF0000u; break;
    default: words[draw(5)] = odd[draw(HDI_COUNT(odd))]; break;
    }
}

static hd_status inspect(const uint32_t *words, uint32_t count, counted *c) {
    hd_allocator allocator = { counted_resize, c };
    hdi_spirv_info info;
    hd_error error = { 0 };
    const hdi_spirv_input input = { .module = words, .bytes = (size_t)count * 4 };
    hd_status status = hdi_spirv_inspect(&allocator, &input, &info, &error);
    assert_int_equal(error.status, status);
    assert_int_equal(c->out, 0);
    if (status == HD_OK) assert_true(info.binding_count <= HDI_SPIRV_MAX_BINDINGS && info.workgroup[0] && info.push_bytes <= 128);
    return status;
}

static void write_mutant(const char *folder, uint32_t number, const char *from, const uint32_t *words, uint32_t count, hd_status status) {
    char path[512];
    snprintf(path, sizeof path, "%s/%05u_%s_%s.spv", folder, number, hd_status_name(status), from);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(words, 4, count, file), count);
    fclose(file);
}

static void mutants_do_no_harm(void **state) {
    (void)state;
    const char *folder = getenv("HEDDLE_MUTANTS_DIR");
    static uint32_t words[MAX_WORDS];
    uint32_t accepted = 0;
    double slowest = 0;
    random_state = 20261120;
    for (uint32_t i = 0; i < MUTANTS; i++) {
        size_t chosen = i % HDI_COUNT(fixtures);
        uint32_t count = (uint32_t)(fixtures[chosen].bytes / 4);
        memcpy(words, fixtures[chosen].words, fixtures[chosen].bytes);
        for (uint32_t harms = 1 + draw(8) / 6 * draw(4); harms; harms--) harm(words, &count, (damage)draw(DAMAGES));
        counted c = { 0 };
        const double began = spent_seconds();
        hd_status status = inspect(words, count, &c);
        slowest = HDI_MAX(slowest, spent_seconds() - began);
        assert_true(status == HD_OK || status == HD_STATUS_MODULE || status == HD_STATUS_LIMIT || status == HD_STATUS_KERNEL_NOT_FOUND);
        accepted += status == HD_OK;
        if (folder) write_mutant(folder, i, fixtures[chosen].name, words, count, status);
    }
    printf("%d mutants, %u accepted, the slowest took %.0f us\n", MUTANTS, accepted, slowest * 1e6);
    assert_true(accepted > MUTANTS / 50 && accepted < MUTANTS / 2); /* both ways are taken often */
    assert_true(slowest < 1);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    for (size_t f = 0; f < HDI_COUNT(fixtures); f++)
        for (uint32_t count = 0; count < fixtures[f].bytes / 4; count++) {
            counted c = { 0 };
            /* A copy of exactly that size, so that an address sanitizer sees a read behind its end. */
            uint32_t *words = malloc((size_t)count * 4 + 1);
            memcpy(words, fixtures[f].words, (size_t)count * 4);
            assert_int_not_equal(inspect(words, count, &c), HD_OK);
            free(words);
        }
}

/* Each word of each module in turn becomes each of some bad values. */
static void every_word_may_be_wrong(void **state) {
    (void)state;
    static uint32_t words[MAX_WORDS];
    const uint32_t odd[] = { 0, 0xFFFFFFFF, 0x10000 };
    for (size_t f = 0; f < HDI_COUNT(fixtures); f++)
        for (uint32_t at = 0; at < fixtures[f].bytes / 4; at++)
            for (size_t k = 0; k < HDI_COUNT(odd); k++) {
                counted c = { 0 };
                memcpy(words, fixtures[f].words, fixtures[f].bytes);
                words[at] = odd[k];
                inspect(words, (uint32_t)(fixtures[f].bytes / 4), &c);
            }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (size_t f = 0; f < HDI_COUNT(fixtures); f++) {
        counted whole = { 0 };
        hd_allocator allocator = { counted_resize, &whole };
        hd_error first = { 0 };
        const hdi_spirv_input input = { .module = fixtures[f].words, .bytes = fixtures[f].bytes };
        hdi_user_kernel *kernel = hdi_user_kernel_new(&allocator, &input, &first);
        hdi_user_kernel_release(kernel);
        assert_int_equal(whole.out, 0);
        for (size_t n = 1; n <= whole.calls; n++) {
            counted c = { .fail_at = n };
            hd_error error = { 0 };
            allocator.user = &c;
            assert_null(hdi_user_kernel_new(&allocator, &input, &error));
            assert_int_equal(error.status, HD_STATUS_OUT_OF_HOST_MEMORY);
            assert_int_equal(c.out, 0);
        }
    }
}

/* ---- modules made to be slow ---- */

typedef struct writer {
    uint32_t *words, count;
} writer;
static void put(writer *w, uint32_t opcode, uint32_t length, const uint32_t *operands) {
    w->words[w->count++] = length << 16 | opcode;
    for (uint32_t i = 1; i < length; i++) w->words[w->count++] = operands[i - 1];
}
#define PUT(w, opcode, ...) \
    put(w, opcode, 1 + sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4, (const uint32_t[]){ __VA_ARGS__ })

/* void main() that is still open after its first label; ids 1 to 9 are taken (3 void, 4 its function type, 5 u32, 6 bool,
 * 7 constant 0, 8 true). */
static writer begin_module(size_t words) {
    writer w = { malloc(words * 4), 0 };
    const uint32_t header[] = { SpvMagicNumber, 0x10300, 0, 4u << 20, 0 };
    memcpy(w.words, header, sizeof header);
    w.count = 5;
    PUT(&w, SpvOpCapability, SpvCapabilityShader);
    PUT(&w, SpvOpMemoryModel, 0, 1);
    PUT(&w, SpvOpEntryPoint, SpvExecutionModelGLCompute, 1, 0x6E69616D, 0);
    PUT(&w, SpvOpExecutionMode, 1, SpvExecutionModeLocalSize, 1, 1, 1);
    PUT(&w, SpvOpTypeVoid, 3);
    PUT(&w, SpvOpTypeFunction, 4, 3);
    PUT(&w, SpvOpTypeInt, 5, 32, 0);
    PUT(&w, SpvOpTypeBool, 6);
    PUT(&w, SpvOpConstant, 5, 7, 0);
    PUT(&w, SpvOpConstantTrue, 6, 8);
    PUT(&w, SpvOpFunction, 3, 1, 0, 4);
    PUT(&w, SpvOpLabel, 2);
    return w;
}

static void finish(writer *w, hd_status wanted, const char *what) {
    counted c = { 0 };
    const double began = spent_seconds();
    hd_status status = inspect(w->words, w->count, &c);
    const double took = spent_seconds() - began;
    printf("%-28s %8u words %8.0f us\n", what, w->count, took * 1e6);
    assert_int_equal(status, wanted);
    assert_true(took < 5); /* far below a second as built for use; sanitizers are slow */
    free(w->words);
}

/* Ifs in a row, n of them, and then ifs in each other. */
static void long_and_deep_control_flow(void **state) {
    (void)state;
    for (int deep = 0; deep < 2; deep++) {
        const uint32_t n = deep ? 5000 : 200000;
        writer w = begin_module(100 + (size_t)n * 14);
        for (uint32_t i = 0; i < n; i++) { /* 10 + 2i is inside, 11 + 2i behind */
            PUT(&w, SpvOpSelectionMerge, 11 + 2 * i, 0);
            PUT(&w, SpvOpBranchConditional, 8, 10 + 2 * i, 11 + 2 * i);
            PUT(&w, SpvOpLabel, 10 + 2 * i);
            if (deep) continue;
            PUT(&w, SpvOpBranch, 11 + 2 * i);
            PUT(&w, SpvOpLabel, 11 + 2 * i);
        }
        for (uint32_t i = n; deep && i-- > 0;) {
            PUT(&w, SpvOpBranch, 11 + 2 * i);
            PUT(&w, SpvOpLabel, 11 + 2 * i);
        }
        put(&w, SpvOpReturn, 1, NULL);
        put(&w, SpvOpFunctionEnd, 1, NULL);
        finish(&w, deep ? HD_STATUS_LIMIT : HD_OK, deep ? "ifs in each other" : "ifs in a row");
    }
}

/* One switch with many cases that all lead to one block with many phis. */
static void wide_switch_with_phis(void **state) {
    (void)state;
    const uint32_t cases = 30000, phis = 30; /* an instruction has at most 65535 words */
    writer w = begin_module(200 + (size_t)cases * 6 + (size_t)phis * (cases * 2 + 3));
    PUT(&w, SpvOpSelectionMerge, 9, 0);
    w.words[w.count++] = (3 + 2 * cases) << 16 | SpvOpSwitch;
    w.words[w.count++] = 7;
    w.words[w.count++] = 10;
    for (uint32_t i = 0; i < cases; i++) {
        w.words[w.count++] = i;
        w.words[w.count++] = 10 + i;
    }
    for (uint32_t i = 0; i < cases; i++) {
        PUT(&w, SpvOpLabel, 10 + i);
        PUT(&w, SpvOpBranch, 9);
    }
    PUT(&w, SpvOpLabel, 9);
    for (uint32_t p = 0; p < phis; p++) {
        w.words[w.count++] = (3 + 2 * cases) << 16 | SpvOpPhi;
        w.words[w.count++] = 5;
        w.words[w.count++] = 10 + cases + p;
        for (uint32_t i = 0; i < cases; i++) {
            w.words[w.count++] = 7;
            w.words[w.count++] = 10 + i;
        }
    }
    put(&w, SpvOpReturn, 1, NULL);
    put(&w, SpvOpFunctionEnd, 1, NULL);
    finish(&w, HD_OK, "a wide switch with phis");
}

/* Functions that each call the next one twice: small, but vast once inlined. */
static void calls_that_double(void **state) {
    (void)state;
    writer w = begin_module(4000);
    const uint32_t n = 40;
    PUT(&w, SpvOpFunctionCall, 3, 9, 10);
    put(&w, SpvOpReturn, 1, NULL);
    put(&w, SpvOpFunctionEnd, 1, NULL);
    for (uint32_t i = 0; i < n; i++) {
        PUT(&w, SpvOpFunction, 3, 10 + i * 10, 0, 4);
        PUT(&w, SpvOpLabel, 11 + i * 10);
        for (uint32_t k = 0; k < 2 && i + 1 < n; k++) PUT(&w, SpvOpFunctionCall, 3, 12 + i * 10 + k, 20 + i * 10);
        put(&w, SpvOpReturn, 1, NULL);
        put(&w, SpvOpFunctionEnd, 1, NULL);
    }
    finish(&w, HD_STATUS_LIMIT, "calls that double");
    w = begin_module(4000);
    PUT(&w, SpvOpFunctionCall, 3, 9, 10);
    put(&w, SpvOpReturn, 1, NULL);
    put(&w, SpvOpFunctionEnd, 1, NULL);
    PUT(&w, SpvOpFunction, 3, 10, 0, 4);
    PUT(&w, SpvOpLabel, 11);
    PUT(&w, SpvOpFunctionCall, 3, 12, 10);
    put(&w, SpvOpReturn, 1, NULL);
    put(&w, SpvOpFunctionEnd, 1, NULL);
    finish(&w, HD_STATUS_MODULE, "a function that calls itself");
}

/* The largest module that is taken, made of what costs most for its size. */
static void many_small_instructions(void **state) {
    (void)state;
    writer w = begin_module(HDI_SPIRV_MAX_BYTES / 4);
    for (uint32_t id = 10; w.count + 8 < HDI_SPIRV_MAX_BYTES / 4; id++) PUT(&w, SpvOpIAdd, 5, id, 7, id > 10 ? id - 1 : 7);
    put(&w, SpvOpReturn, 1, NULL);
    put(&w, SpvOpFunctionEnd, 1, NULL);
    finish(&w, HD_OK, "16 MiB of additions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutants_do_no_harm),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_word_may_be_wrong),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(long_and_deep_control_flow),
        cmocka_unit_test(wide_switch_with_phis),
        cmocka_unit_test(calls_that_double),
        cmocka_unit_test(many_small_instructions),
    };
    return cmocka_run_group_tests_name("spirv_hostile", tests, NULL, NULL);
}
