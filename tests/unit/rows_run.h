/* rows_run.h: runs one operation as the planner would: lowers it, and runs its launches on the CPU at each instruction
 * set that is here, which must give the same bits in exact mode. Every storage stands between guard bytes. */
#ifndef ROWS_RUN_H
#define ROWS_RUN_H

#include "kernels/exact.h"
#include "kernels/kernel.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define GUARD 256u
#define STORAGES 512u

typedef struct storage { uint8_t *memory, *data; uint64_t bytes; } storage;
typedef struct run {
    hdi_lowering lowering;
    hdi_caps     caps;
    storage      storages[STORAGES];
    uint32_t     count;
    hd_error     error;
} run;

static uint64_t random_state = 88172645463325252u;
static uint32_t random_word(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}
static float random_float(float size) { return size * ((float)random_word() * 0x1p-31f - 1.0f); }

static uint32_t new_storage(void *user, uint64_t bytes) {
    run *r = user;
    assert_true(r->count < STORAGES);
    storage *s = &r->storages[r->count];
    s->bytes = bytes;
    s->memory = malloc(bytes + 2 * GUARD + 64);
    assert_non_null(s->memory);
    memset(s->memory, 0xA5, bytes + 2 * GUARD + 64);
    s->data = (uint8_t *)(((uintptr_t)s->memory + GUARD + 63) & ~(uintptr_t)63);
    return r->count++;
}
static uint32_t new_constant(void *user, const void *data, uint64_t bytes) {
    const uint32_t at = new_storage(user, bytes);
    memcpy(((run *)user)->storages[at].data, data, bytes);
    return at;
}
static void run_begin(run *r) {
    memset(r, 0, sizeof *r);
    r->lowering = (hdi_lowering){ .allocator = &hdi_default_allocator, .temporary = new_storage, .constant = new_constant, .user = r };
    r->caps = (hdi_caps){ .native_kernels = 1, .max_workgroup = 1024, .max_workgroup_x = 1024, .binding_align = 4, .max_push_bytes = 128,
                          .max_bindings = 16, .max_groups_x = 65535, .max_groups_y = 65535, .max_groups_z = 65535 };
}
static void run_end(run *r) {
    for (uint32_t i = 0; i < r->count; i++) {
        const storage *s = &r->storages[i];
        for (uint32_t k = 1; k <= GUARD / 2; k++) {
            assert_int_equal(s->data[-(ptrdiff_t)k], 0xA5);
            assert_int_equal(s->data[s->bytes + k - 1], 0xA5);
        }
        free(s->memory);
    }
    hdi_free(&hdi_default_allocator, r->lowering.launches, r->lowering.capacity * sizeof *r->lowering.launches);
}

static hdi_tensor new_tensor(run *r, hd_dtype dtype, hd_shape shape) {
    return hdi_tensor_dense(new_storage(r, hd_tensor_bytes(dtype, shape)), dtype, shape);
}
static void set_value(run *r, const hdi_tensor *t, uint64_t i, float value) {
    uint8_t *data = r->storages[t->storage].data;
    if (t->dtype == HD_F32) ((float *)(void *)data)[i] = value;
    else if (t->dtype == HD_F16) ((uint16_t *)(void *)data)[i] = (uint16_t)exact_f32_to_f16(value);
    else if (t->dtype == HD_BF16) ((uint16_t *)(void *)data)[i] = (uint16_t)exact_f32_to_bf16(value);
    else if (t->dtype == HD_I32) ((int32_t *)(void *)data)[i] = (int32_t)value;
    else data[i] = (uint8_t)value;
}
static double get_value(const run *r, const hdi_tensor *t, uint64_t i) {
    const uint8_t *data = r->storages[t->storage].data;
    if (t->dtype == HD_F32) return (double)((const float *)(const void *)data)[i];
    if (t->dtype == HD_F16) return (double)exact_f16_to_f32(((const uint16_t *)(const void *)data)[i]);
    if (t->dtype == HD_BF16) return (double)exact_bf16_to_f32(((const uint16_t *)(const void *)data)[i]);
    if (t->dtype == HD_I32) return (double)((const int32_t *)(const void *)data)[i];
    return (double)data[i];
}
static void fill_random(run *r, const hdi_tensor *t, float size) {
    const uint64_t count = hd_shape_elements(t->shape);
    for (uint64_t i = 0; i < count; i++) set_value(r, t, i, random_float(size));
}

/* Half a unit of the type's last place at `value`: what rounding to it may cost. */
static double rounding(hd_dtype dtype, double value) {
    const double size = fabs(value);
    return dtype == HD_F16 ? fmax(size * 0x1p-11, 0x1p-25) : dtype == HD_BF16 ? fmax(size * 0x1p-8, 0x1p-134) : fmax(size * 0x1p-24, 0x1p-149);
}
/* Equal, both NaN, or no further apart than `bound` and the rounding to the result's type. */
static void check_value(const run *r, const hdi_tensor *t, uint64_t i, double expected, double bound) {
    const double got = get_value(r, t, i);
    if (isnan(expected) && isnan(got)) return;
    if (fabs(expected) > 0x1.fffffep127 && got == (expected < 0 ? -(double)INFINITY : (double)INFINITY)) return;
    if (got == expected || fabs(got - expected) <= bound + rounding(t->dtype, expected) * 1.01) return;
    fail_msg("element %llu is %.9g, not %.9g (off by %.3g, allowed %.3g)", (unsigned long long)i, got, expected, got - expected, bound);
}

/* Each module's CPU forms. */
#define CPU_0(file)
#define CPU_1(file) extern void hdcpu_##file##_l0(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l1(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l2(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t); \
    extern void hdcpu_##file##_l3(const hdi_cpu_call *, uint32_t, uint32_t, uint32_t);
#define HDI_MODULE(code, file, gpu, cpu) CPU_##cpu(file)
#include "kernels/module_table.inc"
#undef HDI_MODULE
#undef CPU_0
#undef CPU_1
#define CPU_0(file) { NULL, NULL, NULL, NULL }
#define CPU_1(file) { hdcpu_##file##_l0, hdcpu_##file##_l1, hdcpu_##file##_l2, hdcpu_##file##_l3 }
static const hdi_cpu_kernel cpu_forms[][4] = {
#define HDI_MODULE(code, file, gpu, cpu) CPU_##cpu(file),
#include "kernels/module_table.inc"
#undef HDI_MODULE
};

static void run_launch(run *r, const hdi_launch *launch, uint32_t level) {
    void *bindings[HDI_MAX_BINDINGS];
    uint64_t bytes[HDI_MAX_BINDINGS];
    uint32_t spec[HDI_MAX_SPEC] = { 0 };
    memcpy(spec, launch->kernel.spec, launch->kernel.spec_count * sizeof *spec);
    for (uint32_t i = 0; i < launch->kernel.binding_count; i++) {
        const hdi_use *use = &launch->uses[i];
        assert_true(use->offset + use->bytes <= ((r->storages[use->storage].bytes + 3) & ~UINT64_C(3)));
        bindings[i] = r->storages[use->storage].data + use->offset;
        bytes[i] = use->bytes;
    }
    void *scratch = aligned_alloc(64, (launch->kernel.scratch_bytes + 127u) & ~63u);
    assert_non_null(scratch);
    memset(scratch, 0xFF, (launch->kernel.scratch_bytes + 127u) & ~63u);
    const hdi_cpu_call call = { spec, launch->push, bindings, bytes, scratch, NULL };
    for (uint32_t y = 0; y < launch->groups[1]; y++)
        for (uint32_t x = 0; x < launch->groups[0]; x++) cpu_forms[launch->kernel.module][level](&call, x, y, 0);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(((uint8_t *)scratch)[launch->kernel.scratch_bytes + i], 0xFF);
    free(scratch);
}

/* In exact mode the plain reference must give the same bits. Operations that move elements are compared by their tests. */
static void check_reference(const run *r, const hdi_request *request) {
    hdi_reference_tensor operands[4] = { { 0 } }, out = { request->out.dtype, request->out.shape, NULL };
    const bool moves = request->op == HDI_OP_GATHER || request->op == HDI_OP_CAST || request->op == HDI_OP_WRITE_ROWS;
    if (request->math != HD_MATH_EXACT || moves) return;
    hd_value present[4] = { 0 };
    for (uint32_t i = 0; i < request->input_count; i++) {
        const hdi_tensor *input = &request->inputs[i];
        if (input->dtype == HD_DTYPE_NONE) continue;
        present[i] = i + 1;
        operands[i] = (hdi_reference_tensor){ input->dtype, input->shape, r->storages[input->storage].data };
    }
    const hdi_node node = { .op = request->op, .dtype = out.dtype, .shape = out.shape, .operand_count = request->input_count,
                            .operands = present, .attrs = *request->attrs };
    const uint64_t bytes = hd_tensor_bytes(out.dtype, out.shape);
    out.data = calloc(1, bytes);
    assert_non_null(out.data);
    hd_error error = { 0 };
    if (hdi_reference(&node, operands, &out, &error) != HD_OK) fail_msg("reference: %s", error.text);
    assert_memory_equal(out.data, r->storages[request->out.storage].data, bytes);
    free(out.data);
}

/* Lowers and runs the request at every level; the last level's result stays. */
static void run_request(run *r, const hdi_request *wanted) {
    hdi_request request = *wanted;
    request.caps = &r->caps;
    const hd_status status = hdi_kernels_lower(&request, &r->lowering, &r->error);
    if (status != HD_OK) fail_msg("lowering: %s", r->error.text);
    storage before[STORAGES] = { 0 }, first[STORAGES] = { 0 };
    for (uint32_t i = 0; i < r->count; i++) {
        before[i].data = malloc(r->storages[i].bytes);
        first[i].data = malloc(r->storages[i].bytes);
        assert_non_null(before[i].data);
        assert_non_null(first[i].data);
        memcpy(before[i].data, r->storages[i].data, r->storages[i].bytes);
    }
    for (uint32_t level = 0; level <= hdcpu_level(); level++) {
        for (uint32_t i = 0; i < r->count; i++) memcpy(r->storages[i].data, before[i].data, r->storages[i].bytes);
        for (uint32_t i = 0; i < r->lowering.count; i++) run_launch(r, &r->lowering.launches[i], level);
        for (uint32_t i = 0; i < r->count; i++) {
            if (level == 0) memcpy(first[i].data, r->storages[i].data, r->storages[i].bytes);
            else if (request.math == HD_MATH_EXACT) assert_memory_equal(first[i].data, r->storages[i].data, r->storages[i].bytes);
        }
    }
    check_reference(r, &request);
    for (uint32_t i = 0; i < r->count; i++) {
        free(before[i].data);
        free(first[i].data);
    }
}
#endif
