/* test_spirv_reflect.c: what the reader says of sound modules, and how it refuses others: by name, with what to do. */
#include "spirv/module.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "unit/spirv_fixtures.h"

static hd_status inspect(const uint32_t *words, size_t bytes, const char *entry, hdi_spirv_info *info, hd_error *error) {
    return hdi_spirv_inspect(&hdi_default_allocator, &(hdi_spirv_input){ .module = words, .bytes = bytes, .entry = entry }, info, error);
}
#define INSPECT(name, entry, info, error) \
    inspect(fixture_##name, sizeof fixture_##name, entry, info, error)

static hdi_spirv_info sound(const uint32_t *words, size_t bytes) {
    hdi_spirv_info info;
    hd_error error = { 0 };
    hd_status status = inspect(words, bytes, NULL, &info, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, HD_OK);
    return info;
}
#define SOUND(name) sound(fixture_##name, sizeof fixture_##name)

static void refused(hd_status wanted, const uint32_t *words, size_t bytes, const char *part) {
    hdi_spirv_info info;
    hd_error error = { 0 };
    hd_status status = inspect(words, bytes, NULL, &info, &error);
    assert_int_equal(status, wanted);
    assert_int_equal(error.status, wanted);
    if (!strstr(error.text, part)) assert_string_equal(error.text, part);
    assert_int_equal(info.binding_count, 0);
}

static void assert_workgroup(const hdi_spirv_info *info, uint32_t x, uint32_t y, uint32_t z, int32_t sx, int32_t sy, int32_t sz) {
    const uint32_t size[3] = { x, y, z };
    const int32_t spec[3] = { sx, sy, sz };
    assert_memory_equal(info->workgroup, size, sizeof size);
    assert_memory_equal(info->workgroup_spec, spec, sizeof spec);
}

/* "r" read, "w" written, "-" not used, binding by binding. */
static void assert_bindings(const hdi_spirv_info *info, const char *wanted) {
    char found[HDI_SPIRV_MAX_BINDINGS + 1] = { 0 };
    for (uint32_t i = 0; i < info->binding_count; i++) found[i] = info->bindings[i].written ? 'w' : info->bindings[i].used ? 'r' : '-';
    assert_string_equal(found, wanted);
}

static uint32_t spec_default(const hdi_spirv_info *info, uint32_t id) {
    for (uint32_t i = 0; i < info->spec_count; i++)
        if (info->spec[i].id == id) return info->spec[i].default_value;
    fail_msg("no specialisation constant %u", id);
    return 0;
}

static void vector_add(void **state) {
    (void)state;
    hdi_spirv_info info = SOUND(add);
    assert_string_equal(info.entry, "main");
    assert_int_equal(info.version, 0x10300);
    assert_workgroup(&info, 1, 1, 1, 0, -1, -1);
    assert_int_equal(info.push_bytes, 8);
    assert_bindings(&info, "rrw");
    assert_int_equal(info.spec_count, 2);
    assert_int_equal(spec_default(&info, 3), 0x3FC00000); /* 1.5f */
    assert_int_equal(info.capability_count, 1);
    assert_int_equal(info.capabilities[0], SpvCapabilityShader);
    const uint32_t ids[] = { 0, 99 }, values[] = { 128, 5 };
    const hdi_spirv_input input = { .module = fixture_add, .bytes = sizeof fixture_add, .entry = "main", .spec_ids = ids, .spec_values = values,
                                    .spec_count = 2 };
    assert_int_equal(hdi_spirv_inspect(&hdi_default_allocator, &input, &info, NULL), HD_OK);
    assert_workgroup(&info, 128, 1, 1, 0, -1, -1);
}

static void shared_memory_follows_constants(void **state) {
    (void)state;
    hdi_spirv_info info = SOUND(shared_memory);
    assert_workgroup(&info, 1, 1, 1, 0, 1, -1);
    assert_int_equal(info.shared_bytes, 16 + 16 * 16 * 16); /* `total` first, then vec3s of 16 bytes each */
    assert_bindings(&info, "rw");
    assert_int_equal(spec_default(&info, 4), 0);
    const uint32_t ids[] = { 2, 1 }, values[] = { 8, 4 };
    hdi_spirv_input input = { .module = fixture_shared_memory, .bytes = sizeof fixture_shared_memory, .spec_ids = ids, .spec_values = values,
                              .spec_count = 2 };
    assert_int_equal(hdi_spirv_inspect(&hdi_default_allocator, &input, &info, NULL), HD_OK);
    assert_int_equal(info.shared_bytes, 16 + 8 * 8 * 16);
    assert_workgroup(&info, 1, 4, 1, 0, 1, -1);
    const uint32_t zero[] = { 0, 0 }, huge[] = { 1u << 20, 4 };
    hd_error error = { 0 };
    input.spec_values = zero;
    assert_int_equal(hdi_spirv_inspect(&hdi_default_allocator, &input, &info, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "specialisation"));
    input.spec_values = huge;
    assert_int_equal(hdi_spirv_inspect(&hdi_default_allocator, &input, &info, NULL), HD_STATUS_MODULE);
}

static void narrow_and_subgroup(void **state) {
    (void)state;
    hdi_spirv_info info = SOUND(narrow);
    assert_bindings(&info, "rw");
    bool has8 = false, has16 = false;
    for (uint32_t i = 0; i < info.capability_count; i++) {
        has8 |= info.capabilities[i] == SpvCapabilityStorageBuffer8BitAccess;
        has16 |= info.capabilities[i] == SpvCapabilityStorageBuffer16BitAccess;
    }
    assert_true(has8 && has16);
    info = SOUND(subgroup);
    assert_workgroup(&info, 64, 2, 1, -1, -1, -1);
    assert_bindings(&info, "rw");
    info = SOUND(matrix);
    assert_bindings(&info, "rrw");
}

static void calls_and_gaps(void **state) {
    (void)state;
    hdi_spirv_info info = SOUND(calls);
    assert_workgroup(&info, 4, 2, 3, -1, -1, -1);
    assert_bindings(&info, "r--w"); /* binding 5 is declared, but not used */
    info = SOUND(buffer_block);
    assert_int_equal(info.version, 0x10000);
    assert_bindings(&info, "rw");
    info = SOUND(size_by_id);
    assert_workgroup(&info, 1, 2, 1, 7, -1, -1);
}

static void push_constants_by_offset(void **state) {
    (void)state;
    /* 8: first; 16: inner[2] of 24 bytes each; 64: two rows, 16 bytes apart; 96: two columns, 16 bytes apart */
    hdi_spirv_info info = SOUND(push_layout);
    assert_int_equal(info.push_bytes, 128);
}

static void entries_are_apart(void **state) {
    (void)state;
    hdi_spirv_info info;
    hd_error error = { 0 };
    assert_int_equal(INSPECT(two_entries, "fill", &info, &error), HD_OK);
    assert_workgroup(&info, 8, 1, 1, -1, -1, -1);
    assert_bindings(&info, "-w");
    assert_int_equal(INSPECT(two_entries, "scale", &info, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "uniform buffer \"params\" at set 0, binding 0"));
    error = (hd_error){ 0 };
    assert_int_equal(INSPECT(two_entries, NULL, &info, &error), HD_STATUS_KERNEL_NOT_FOUND);
    assert_non_null(strstr(error.text, "\"main\"; it has 2, the first is \"fill\""));
    assert_int_equal(INSPECT(two_entries, "fil", &info, NULL), HD_STATUS_KERNEL_NOT_FOUND);
    assert_int_equal(INSPECT(add, "", &info, NULL), HD_STATUS_KERNEL_NOT_FOUND);
}

static void others_are_refused_by_name(void **state) {
    (void)state;
    refused(HD_STATUS_MODULE, fixture_uniform_buffer, sizeof fixture_uniform_buffer, "push constants or a readonly storage buffer");
    refused(HD_STATUS_MODULE, fixture_image, sizeof fixture_image, "OpTypeImage: opcode 25: images and samplers are not taken");
    refused(HD_STATUS_MODULE, fixture_other_set, sizeof fixture_other_set, "set 2, binding 1");
    refused(HD_STATUS_LIMIT, fixture_far_binding, sizeof fixture_far_binding, "binding 16; they go up to 15");
    uint32_t swapped[HDI_COUNT(fixture_add)];
    for (size_t i = 0; i < HDI_COUNT(swapped); i++) swapped[i] = __builtin_bswap32(fixture_add[i]);
    refused(HD_STATUS_MODULE, swapped, sizeof swapped, "byte-swapped");
    refused(HD_STATUS_MODULE, fixture_add, 0, "0 bytes");
    refused(HD_STATUS_MODULE, fixture_add, 18, "18 bytes");
    refused(HD_STATUS_MODULE, fixture_add, 20, "empty");
    refused(HD_STATUS_LIMIT, fixture_add, (16u << 20) + 4, "16777220 bytes");
    uint32_t module[HDI_COUNT(fixture_add)];
    memcpy(module, fixture_add, sizeof module);
    module[3] = (4u << 20) + 1;
    refused(HD_STATUS_LIMIT, module, sizeof module, "bound");
    memcpy(module, fixture_add, sizeof module);
    module[6] = SpvCapabilityKernel; /* the header's five words, then OpCapability Shader */
    refused(HD_STATUS_MODULE, module, sizeof module, "Kernel: this is OpenCL's flavour");
}

/* By what they are for, and why they stay out; newer ones by their name. */
static void what_stays_out_is_named(void **state) {
    (void)state;
    enum { TENSOR = 4163, ACCELERATION_STRUCTURE = 5341, HEADER = 5 };
    uint32_t module[HEADER + 2] = { SpvMagicNumber, 0x10300, 0, 2, 0, 2u << 16 | ACCELERATION_STRUCTURE, 1 };
    refused(HD_STATUS_MODULE, module, (HEADER + 2) * 4, "OpTypeAccelerationStructureKHR: opcode 5341: ray tracing, which is never taken");
    module[HEADER] = 2u << 16 | TENSOR;
    refused(HD_STATUS_MODULE, module, (HEADER + 2) * 4, "OpTypeTensorARM: opcode 4163");
    module[HEADER] = 1u << 16 | SpvOpKill;
    refused(HD_STATUS_MODULE, module, (HEADER + 1) * 4, "leaving a pixel out, which is never taken");
}

static void names_are_known(void **state) {
    (void)state;
    assert_string_equal(hdi_spirv_op_name(SpvOpFAdd), "OpFAdd");
    assert_string_equal(hdi_spirv_op_name(4457), "OpCooperativeMatrixLoadKHR");
    assert_string_equal(hdi_spirv_op_name(65535), "unknown");
    assert_string_equal(hdi_spirv_capability_name(SpvCapabilityInt64), "Int64");
    assert_string_equal(hdi_spirv_capability_name(6022), "CooperativeMatrixKHR");
#define OP(value, opcode, section, operands, types, capability, minor) \
    assert_string_equal(hdi_spirv_op_name(value) + 2, #opcode); \
    assert_int_equal(hdi_spirv_op_row(value)->number, value);
#include "spirv/op_table.inc"
#undef OP
}

static void subnormals_are_kept(void **state) {
    (void)state;
    uint32_t changed[HDI_COUNT(fixture_add) + HDI_SPIRV_SUBNORMAL_WORDS];
    hdi_spirv_info info;
    hd_error error = { 0 };
    size_t count = hdi_spirv_keep_subnormals(fixture_add, HDI_COUNT(fixture_add), changed);
    assert_int_equal(count, HDI_COUNT(changed));
    assert_int_equal(inspect(changed, sizeof changed, NULL, &info, &error), HD_OK);
    bool declared = false;
    for (uint32_t i = 0; i < info.capability_count; i++) declared |= info.capabilities[i] == 4464; /* DenormPreserve */
    assert_true(declared);
}

static void user_kernels_are_counted(void **state) {
    (void)state;
    hd_error error = { 0 };
    const uint32_t ids[] = { 0 }, values[] = { 32 };
    const hd_allocator *host = &hdi_default_allocator;
    const hdi_spirv_input set = { .module = fixture_add, .bytes = sizeof fixture_add, .spec_ids = ids, .spec_values = values, .spec_count = 1 };
    const hdi_spirv_input plain = { .module = fixture_add, .bytes = sizeof fixture_add, .entry = "main" };
    const hdi_spirv_input half = { .module = fixture_add, .bytes = sizeof fixture_add / 8 * 4 };
    hdi_user_kernel *a = hdi_user_kernel_new(host, &set, &error), *b = hdi_user_kernel_new(host, &plain, &error);
    assert_true(a && b);
    assert_int_equal(a->info.workgroup[0], 32);
    assert_int_equal(a->word_count, b->word_count); /* without what only debuggers read */
    assert_true(a->word_count <= HDI_COUNT(fixture_add));
    unsigned differ = 0; /* the one constant is set for good */
    for (size_t i = 0; i < a->word_count; i++) {
        if (a->words[i] == b->words[i]) continue;
        assert_int_equal(a->words[i], 32);
        differ++;
    }
    assert_int_equal(differ, 1);
    assert_true(a->hash != b->hash);
    hdi_user_kernel_hold(a);
    hdi_user_kernel_release(a);
    assert_int_equal(a->holders, 1);
    hdi_user_kernel_release(a);
    hdi_user_kernel_release(b);
    hdi_user_kernel_release(NULL);
    assert_null(hdi_user_kernel_new(host, &half, &error));
    assert_int_equal(error.status, HD_STATUS_MODULE);
}

/* What a printer stands on: types, decorations, structure. */
static void module_is_indexed(void **state) {
    (void)state;
    hdi_spirv_module m;
    const hdi_spirv_input input = { .module = fixture_calls, .bytes = sizeof fixture_calls };
    assert_int_equal(hdi_spirv_module_read(&hdi_default_allocator, &input, &m, NULL), HD_OK);
    assert_int_equal(m.function_count, 2);
    uint32_t loops = 0, switches = 0, deepest = 0;
    for (uint32_t b = 0; b < m.block_count; b++) {
        const hdi_spirv_block *block = &m.blocks[b];
        loops += block->continue_to != HDI_SPIRV_NONE;
        switches += hdi_spirv_opcode(&m, block->inst_end) == SpvOpSwitch;
        deepest = HDI_MAX(deepest, block->nest);
        if (block->merge != HDI_SPIRV_NONE) assert_true(hdi_spirv_dominates(&m.structure, b, block->merge));
        assert_true(hdi_spirv_dominates(&m.structure, m.functions[block->function].block_first, b));
    }
    assert_int_equal(loops, 2);
    assert_int_equal(switches, 1);
    assert_int_equal(deepest, 3); /* an if in a loop in a loop */
    uint32_t buffers = 0;
    for (uint32_t def = 1; def < m.def_count; def++) {
        assert_int_equal(hdi_spirv_find(&m, m.defs[def].id), def);
        if (hdi_spirv_def_opcode(&m, def) != SpvOpVariable || hdi_spirv_decor_of(&m, def)->set != 0) continue;
        const hdi_spirv_type *block = hdi_spirv_type_at(&m, hdi_spirv_type_of(&m, def)->element);
        assert_true(block->kind == 's' && block->has_run_time_array && block->laid_out);
        buffers++;
    }
    assert_int_equal(buffers, 3);
    hdi_spirv_module_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_add),
        cmocka_unit_test(shared_memory_follows_constants),
        cmocka_unit_test(narrow_and_subgroup),
        cmocka_unit_test(calls_and_gaps),
        cmocka_unit_test(push_constants_by_offset),
        cmocka_unit_test(entries_are_apart),
        cmocka_unit_test(others_are_refused_by_name),
        cmocka_unit_test(what_stays_out_is_named), cmocka_unit_test(names_are_known),
        cmocka_unit_test(subnormals_are_kept), cmocka_unit_test(user_kernels_are_counted),
        cmocka_unit_test(module_is_indexed),
    };
    return cmocka_run_group_tests_name("spirv_reflect", tests, NULL, NULL);
}
