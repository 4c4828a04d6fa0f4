/* test_spirv_trim.c: a module of others becomes one that heddle takes: one entry point, storage buffers in set 0, and nothing
 * that it does not reach; and a kernel run here, instruction by instruction, gives what its source says. */
#include "spirv/module.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "spirv/foreign_kernels.h"
#include "unit/spirv_fixtures.h"

static hdi_user_kernel *kernel_of(const uint32_t *words, size_t bytes, const char *entry, hd_error *error) {
    return hdi_user_kernel_new(&hdi_default_allocator, &(hdi_spirv_input){ .module = words, .bytes = bytes, .entry = entry }, error);
}
#define KERNEL(name, entry, error) kernel_of(fixture_##name, sizeof fixture_##name, entry, error)

static void uniform_blocks_are_buffers(void **state) {
    (void)state;
    hdi_user_kernel *kernel = KERNEL(uniform_buffer, NULL, NULL);
    assert_non_null(kernel);
    assert_int_equal(kernel->info.binding_count, 2);
    assert_true(kernel->info.bindings[0].used && !kernel->info.bindings[0].written && kernel->info.bindings[1].written);
    hdi_spirv_info again; /* what is kept is sound by itself, and shorter */
    hd_error error = { 0 };
    const hdi_spirv_input kept = { .module = kernel->words, .bytes = kernel->word_count * 4 };
    assert_int_equal(hdi_spirv_inspect(&hdi_default_allocator, &kept, &again, &error), HD_OK);
    assert_true(kernel->word_count < HDI_COUNT(fixture_uniform_buffer));
    hdi_user_kernel_release(kernel);
}

static void sets_and_high_bindings_are_numbered(void **state) {
    (void)state;
    hdi_user_kernel *kernel = KERNEL(other_set, NULL, NULL);
    assert_non_null(kernel);
    assert_int_equal(kernel->info.binding_count, 1);
    assert_int_equal(kernel->info.bindings[0].place.set, 2);
    assert_int_equal(kernel->info.bindings[0].place.binding, 1);
    hdi_user_kernel_release(kernel);
    kernel = KERNEL(far_binding, NULL, NULL);
    assert_non_null(kernel);
    assert_int_equal(kernel->info.binding_count, 1);
    assert_int_equal(kernel->info.bindings[0].place.binding, 16);
    hdi_user_kernel_release(kernel);
}

static void one_entry_point_stays(void **state) {
    (void)state;
    hd_error error = { 0 };
    hdi_user_kernel *fill = KERNEL(two_entries, "fill", NULL), *scale = KERNEL(two_entries, "scale", NULL);
    assert_non_null(fill);
    assert_non_null(scale);
    assert_true(fill->hash != scale->hash && fill->word_count < scale->word_count);
    assert_true(!fill->info.bindings[0].used && scale->info.bindings[0].used);
    hdi_user_kernel_release(fill);
    hdi_user_kernel_release(scale);
    assert_null(KERNEL(two_entries, NULL, &error));
    assert_int_equal(error.status, HD_STATUS_KERNEL_NOT_FOUND);
}

static void what_a_type_may_not_do_its_arithmetic_says(void **state) {
    (void)state;
    hdi_user_kernel *kernel = kernel_of(foreign_uncontracted, sizeof foreign_uncontracted, NULL, NULL);
    assert_non_null(kernel);
    uint32_t exact = 0;
    for (size_t at = HDI_SPIRV_HEADER_WORDS; at < kernel->word_count; at += kernel->words[at] >> 16)
        exact += kernel->words[at] == (3u << 16 | SpvOpDecorate) && kernel->words[at + 2] == SpvDecorationNoContraction;
    assert_int_equal(exact, 6); /* four products, a difference and a sum */
    hdi_user_kernel_release(kernel);
}

static void images_are_buffers(void **state) {
    (void)state;
    hdi_user_kernel *kernel = KERNEL(image, NULL, NULL);
    assert_non_null(kernel);
    const hdi_spirv_info *info = &kernel->info;
    assert_int_equal(info->binding_count, 1);
    assert_true(info->bindings[0].written);
    assert_int_equal(info->bindings[0].image.axes, 2);
    assert_int_equal(info->bindings[0].image.dtype, HD_F32);
    assert_int_equal(info->bindings[0].image.channels, 1);
    assert_int_equal(info->bindings[0].image.push_word, 0);
    assert_int_equal(info->own_push_bytes, 0);
    assert_int_equal(info->push_bytes, 8); /* its two lengths */
    hdi_user_kernel_release(kernel);
}

static void the_rest_is_refused_by_name(void **state) {
    (void)state;
    hd_error error = { 0 };
    uint32_t words[HDI_COUNT(fixture_image)], at = 5;
    memcpy(words, fixture_image, sizeof words);
    while ((words[at] & 0xFFFF) != SpvOpTypeImage) at += words[at] >> 16;
    words[at + 3] = SpvDimRect;
    assert_null(kernel_of(words, sizeof words, NULL, &error));
    assert_non_null(strstr(error.text, "OpTypeImage: an image of dimension 4"));
    assert_null(kernel_of(fixture_add, 18, NULL, &error));
    assert_null(kernel_of(fixture_add, 0, NULL, &error));
    assert_int_equal(error.status, HD_STATUS_MODULE);
}

/* ---- run here ---- */

static hd_status interpret(const uint32_t *words, size_t bytes, void *const *buffers, const uint64_t *buffer_bytes, uint32_t count,
                           uint64_t deadline_ns, hd_error *error) {
    hdi_spirv_machine *machine;
    hdi_user_kernel *kernel = kernel_of(words, bytes, NULL, error);
    if (!kernel) return error->status;
    const hdi_spirv_input input = { .module = kernel->words, .bytes = kernel->word_count * 4, .entry = kernel->info.entry };
    hd_status status = hdi_spirv_machine_new(&hdi_default_allocator, &input, 32, &machine, error);
    const hdi_spirv_launch launch = { .bindings = buffers, .binding_bytes = buffer_bytes, .binding_count = count, .groups = { 1, 1, 1 },
                                      .deadline_ns = deadline_ns };
    if (!status) status = hdi_spirv_interpret(&hdi_default_allocator, machine, &launch, (const uint32_t[]){ 0, 0, 0 }, error);
    hdi_spirv_machine_free(&hdi_default_allocator, machine);
    hdi_user_kernel_release(kernel);
    return status;
}

static void accesses_stay_inside(void **state) {
    (void)state;
    float scale = 3, x[70]; /* 64 invocations; the buffer ends in the middle of them */
    for (int i = 0; i < 70; i++) x[i] = (float)i;
    void *const buffers[] = { &scale, x };
    hd_error error = { 0 };
    assert_int_equal(interpret(fixture_uniform_buffer, sizeof fixture_uniform_buffer, buffers, (const uint64_t[]){ 4, 40 * 4 }, 2, 0, &error), HD_OK);
    for (int i = 0; i < 70; i++) assert_true(x[i] == (float)i * (i < 40 ? 3 : 1));
    assert_int_equal(interpret(fixture_uniform_buffer, sizeof fixture_uniform_buffer, buffers, (const uint64_t[]){ 2, 40 * 4 }, 2, 0, &error), HD_OK);
    for (int i = 0; i < 40; i++) assert_true(x[i] == 0); /* a block that is too short reads as zeros */
}

static void time_can_be_up(void **state) {
    (void)state;
    float scale = 3, x[64] = { 0 };
    void *const buffers[] = { &scale, x };
    hd_error error = { 0 };
    assert_int_equal(interpret(fixture_uniform_buffer, sizeof fixture_uniform_buffer, buffers, (const uint64_t[]){ 4, 256 }, 2, 1, &error), HD_STATUS_TIMEOUT);
    assert_non_null(strstr(error.text, "workgroup (0,0,0)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_blocks_are_buffers), cmocka_unit_test(sets_and_high_bindings_are_numbered),
        cmocka_unit_test(one_entry_point_stays), cmocka_unit_test(what_a_type_may_not_do_its_arithmetic_says),
        cmocka_unit_test(images_are_buffers), cmocka_unit_test(the_rest_is_refused_by_name),
        cmocka_unit_test(accesses_stay_inside), cmocka_unit_test(time_can_be_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
