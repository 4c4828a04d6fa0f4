/* conform.h: the seam's tests, written once against `const hdi_backend *` and run for each back end by its own
 * test_conform_<name>.c. A back end may list what it never does, or does not do yet, with the reason; such a test must
 * then fail, so that a list cannot outlive its reason. A test that fails leaves its objects to `close`, which ends all. */
#ifndef TESTS_CONFORM_H
#define TESTS_CONFORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device/backend.h"

/* ---- the test kernel ---- */

static const uint32_t conform_words[] = {
#include "conform/conform_spirv.inc"
};
static const hdi_blob conform_blob = { conform_words, HDI_COUNT(conform_words), UINT64_C(0x636f6e666f726d31), NULL };

static void conform_cpu(const hdi_cpu_call *call, uint32_t group_x, uint32_t group_y, uint32_t group_z) {
    (void)group_y;
    (void)group_z;
    const uint32_t width = call->spec[0], factor = call->spec[1], count = call->push[0], add = call->push[1];
    const uint32_t *from = call->bindings[0];
    uint32_t *to = call->bindings[1];
    for (uint32_t lane = 0; lane < width; lane++) {
        const uint32_t i = group_x * width + lane;
        if (i < count) to[i] = from[i] * factor + add;
    }
}
static const hdi_module conform_module = { .name = "conform", .spirv = &conform_blob, .cpu = conform_cpu };
enum { CONFORM_WIDTH = 64 };

static hdi_kernel conform_kernel(uint32_t factor) {
    return (hdi_kernel){ .module = HDI_USER_MODULE, .spec = { CONFORM_WIDTH, factor }, .spec_count = 2, .binding_count = 2, .push_bytes = 8 };
}

/* ---- one run ---- */

typedef struct conform_reason { const char *test, *reason; } conform_reason;
typedef struct conform {
    const hdi_backend    *backend;
    hdi_host              host;
    const conform_reason *never, *not_yet; /* ended by { NULL, NULL }; NULL: nothing */
    hdi_backend_device   *device;          /* opened for each test */
    hdi_found             found;
    hd_error              error;
    char                  why[512];        /* what the test that runs now did not get */
} conform;

#define CONFORM_CHECK(c, condition) \
    do { \
        if (!(condition)) { \
            snprintf((c)->why, sizeof (c)->why, "line %d: %s [%s]", __LINE__, #condition, (c)->error.text); \
            return false; \
        } \
    } while (0)
#define CONFORM_OK(c, call) \
    do { \
        (c)->error = (hd_error){ 0 }; \
        CONFORM_CHECK(c, (call) == HD_OK); \
    } while (0)

/* ---- small lists of commands ---- */

enum { CONFORM_CMDS = 256, CONFORM_BINDINGS = 256, CONFORM_PUSH = 256, CONFORM_SLOTS = 8 };
typedef struct conform_list {
    hdi_cmds    cmds;
    hdi_cmd     cmd[CONFORM_CMDS];
    hdi_binding binding[CONFORM_BINDINGS];
    uint32_t    push[CONFORM_PUSH];
    const char *label[CONFORM_CMDS];
    uint64_t    slot_bytes[CONFORM_SLOTS];
    hdi_kernel  kernel[1];
    hdi_slot    slots[CONFORM_SLOTS];
    hdi_loaded_kernel *loaded[1];
} conform_list;

static void list_begin(conform_list *list) {
    memset(list, 0, sizeof *list);
    list->cmds.kernels = list->kernel;
    list->cmds.cmds = list->cmd;
    list->cmds.bindings = list->binding;
    list->cmds.push = list->push;
    list->cmds.labels = list->label;
    list->cmds.slot_bytes = list->slot_bytes;
}

static uint32_t list_slot(conform_list *list, hdi_memory *memory, uint64_t offset, uint64_t bytes) {
    const uint32_t slot = list->cmds.slot_count++;
    list->slots[slot] = (hdi_slot){ memory, offset, bytes };
    list->slot_bytes[slot] = bytes;
    return slot;
}

static void list_kernel(conform_list *list, hdi_loaded_kernel *loaded, uint32_t factor) {
    list->kernel[0] = conform_kernel(factor);
    list->loaded[0] = loaded;
    list->cmds.kernel_count = 1;
}

static void list_dispatch(conform_list *list, uint32_t from, uint32_t to, uint32_t count, uint32_t add, uint32_t first, uint32_t groups) {
    hdi_cmds *cmds = &list->cmds;
    hdi_cmd *cmd = &list->cmd[cmds->cmd_count++];
    *cmd = (hdi_cmd){ .kind = HDI_CMD_DISPATCH };
    cmd->as.dispatch.binding_first = cmds->binding_count;
    cmd->as.dispatch.binding_count = 2;
    cmd->as.dispatch.push_first = cmds->push_count;
    cmd->as.dispatch.first[0] = first;
    cmd->as.dispatch.groups[0] = groups;
    cmd->as.dispatch.groups[1] = cmd->as.dispatch.groups[2] = 1;
    list->binding[cmds->binding_count++] = (hdi_binding){ { from, 0, (uint64_t)count * 4 }, HDI_READ };
    list->binding[cmds->binding_count++] = (hdi_binding){ { to, 0, (uint64_t)count * 4 }, HDI_WRITE };
    list->push[cmds->push_count++] = count;
    list->push[cmds->push_count++] = add;
}

static void list_copy(conform_list *list, uint32_t from, uint64_t from_at, uint32_t to, uint64_t to_at, uint64_t bytes) {
    hdi_cmd *cmd = &list->cmd[list->cmds.cmd_count++];
    *cmd = (hdi_cmd){ .kind = HDI_CMD_COPY };
    cmd->as.copy.from = (hdi_range){ from, from_at, bytes };
    cmd->as.copy.to = (hdi_range){ to, to_at, bytes };
}

static void list_fill(conform_list *list, uint32_t to, uint64_t at, uint64_t bytes, uint32_t value) {
    hdi_cmd *cmd = &list->cmd[list->cmds.cmd_count++];
    *cmd = (hdi_cmd){ .kind = HDI_CMD_FILL };
    cmd->as.fill.to = (hdi_range){ to, at, bytes };
    cmd->as.fill.value = value;
}

static void list_barrier(conform_list *list, bool cut) {
    hdi_cmd *cmd = &list->cmd[list->cmds.cmd_count++];
    *cmd = (hdi_cmd){ .kind = HDI_CMD_BARRIER };
    cmd->as.barrier.cut = cut;
}

static void list_mark(conform_list *list, const char *label) {
    hdi_cmd *cmd = &list->cmd[list->cmds.cmd_count++];
    *cmd = (hdi_cmd){ .kind = HDI_CMD_MARK };
    cmd->as.mark.label = list->cmds.label_count;
    list->label[list->cmds.label_count++] = label;
}

static hdi_submission list_submission(const conform_list *list) {
    return (hdi_submission){ .cmds = &list->cmds, .kernels = list->loaded, .slots = list->slots };
}

/* ---- what the tests do again and again ---- */

static hd_status submit(conform *c, const conform_list *list, hdi_recording **recording, uint64_t *out_ticket, hdi_submission *out_submission) {
    hdi_submission submission = list_submission(list);
    submission.recording = recording;
    const hd_status status = c->backend->submit(c->device, &submission, out_ticket, &c->error);
    if (out_submission) *out_submission = submission;
    return status;
}

static hd_status run(conform *c, const conform_list *list) {
    uint64_t ticket;
    const hd_status status = submit(c, list, NULL, &ticket, NULL);
    return status == HD_OK ? c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error) : status;
}

static hdi_memory *memory_new(conform *c, uint64_t bytes, hd_buffer_use use) {
    hdi_memory *memory = NULL;
    const hdi_alloc_desc desc = { bytes, use, "conform", NULL, 0 };
    c->error = (hd_error){ 0 };
    return c->backend->alloc(c->device, &desc, &memory, &c->error) == HD_OK ? memory : NULL;
}

static hdi_loaded_kernel *kernel_new(conform *c, uint32_t factor) {
    hdi_loaded_kernel *loaded = NULL;
    bool cached;
    const hdi_kernel kernel = conform_kernel(factor);
    c->error = (hd_error){ 0 };
    return c->backend->kernel_load(c->device, &conform_module, &kernel, &loaded, &cached, &c->error) == HD_OK ? loaded : NULL;
}

/* Moves bytes into or out of memory that the host may not see. */
static bool move(conform *c, hdi_memory *memory, uint64_t offset, void *data, uint64_t bytes, bool in) {
    hdi_memory *staging = memory_new(c, bytes, in ? HD_BUFFER_UPLOAD : HD_BUFFER_READBACK);
    void *mapped = staging ? c->backend->map(c->device, staging) : NULL;
    if (!mapped) return false;
    conform_list list;
    list_begin(&list);
    const uint32_t outer = list_slot(&list, staging, 0, bytes), inner = list_slot(&list, memory, 0, offset + bytes);
    if (in) {
        memcpy(mapped, data, (size_t)bytes);
        list_copy(&list, outer, 0, inner, offset, bytes);
    } else {
        list_copy(&list, inner, offset, outer, 0, bytes);
    }
    const bool good = run(c, &list) == HD_OK;
    if (good && !in) memcpy(data, mapped, (size_t)bytes);
    c->backend->free(c->device, staging);
    return good;
}
#define put(c, memory, offset, data, bytes) move(c, memory, offset, data, bytes, true)
#define get(c, memory, offset, data, bytes) move(c, memory, offset, data, bytes, false)

static uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* ---- the tests: true, or false with c->why ---- */

static bool test_probe(conform *c) {
    hdi_probe first, second;
    c->backend->probe(&c->host, &first);
    c->backend->probe(&c->host, &second);
    CONFORM_CHECK(c, c->backend->version == HDI_BACKEND_VERSION && c->backend->size == sizeof(hdi_backend));
    CONFORM_CHECK(c, first.found_count > 0 && first.found_count == second.found_count);
    for (uint32_t i = 0; i < first.found_count; i++) {
        const hdi_found *found = &first.found[i];
        const hdi_caps *caps = &found->caps;
        CONFORM_CHECK(c, strncmp(found->info.id, c->backend->name, strlen(c->backend->name)) == 0);
        CONFORM_CHECK(c, strcmp(found->info.id, second.found[i].info.id) == 0);
        CONFORM_CHECK(c, strcmp(found->info.backend, c->backend->name) == 0 && found->info.name[0] && found->info.driver[0]);
        CONFORM_CHECK(c, found->info.kind != HD_DEVICE_NONE && found->info.memory_bytes > 0);
        CONFORM_CHECK(c, caps->binding_align >= 1 && caps->binding_align <= 256 && (caps->binding_align & (caps->binding_align - 1)) == 0);
        CONFORM_CHECK(c, caps->max_bindings >= 4 && caps->max_bindings <= HDI_MAX_BINDINGS && caps->max_push_bytes >= 128);
        CONFORM_CHECK(c, caps->max_workgroup >= 128 && caps->max_groups_x >= 65535 && caps->max_allocation_bytes >= (1u << 27));
        CONFORM_CHECK(c, !caps->unified_memory || caps->host_visible);
        CONFORM_CHECK(c, memcmp(caps, &second.found[i].caps, sizeof *caps) == 0);
    }
    return true;
}

static bool test_open_close(conform *c) {
    for (int i = 0; i < 3; i++) {
        hdi_backend_device *another = NULL;
        CONFORM_OK(c, c->backend->open(&c->host, &c->found, NULL, &another, &c->error));
        CONFORM_CHECK(c, another != NULL && another != c->device);
        c->backend->close(another);
    }
    return true;
}

static bool test_alloc_zeroed(conform *c) {
    static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 7, 16, 255, 256, 257, 4097, 65537, (1u << 20) - 1, (1u << 20) + 1, 64u << 20 };
    for (int round = 0; round < 2; round++) /* the second round gets what the first has soiled */
        for (size_t i = 0; i < HDI_COUNT(sizes); i++)
            for (int use = HD_BUFFER_STORAGE; use <= HD_BUFFER_READBACK; use++) {
                hdi_memory *memory = memory_new(c, sizes[i], (hd_buffer_use)use);
                CONFORM_CHECK(c, memory != NULL);
                uint8_t ends[2] = { 1, 1 };
                CONFORM_CHECK(c, get(c, memory, 0, &ends[0], 1) && get(c, memory, sizes[i] - 1, &ends[1], 1));
                CONFORM_CHECK(c, ends[0] == 0 && ends[1] == 0);
                ends[0] = ends[1] = 0xA5;
                CONFORM_CHECK(c, put(c, memory, 0, &ends[0], 1) && put(c, memory, sizes[i] - 1, &ends[1], 1));
                c->backend->free(c->device, memory);
            }
    return true;
}

static bool test_map(conform *c) {
    for (int use = HD_BUFFER_UPLOAD; use <= HD_BUFFER_READBACK; use++) {
        hdi_memory *a = memory_new(c, 1001, (hd_buffer_use)use), *b = memory_new(c, 1001, (hd_buffer_use)use);
        CONFORM_CHECK(c, a && b);
        uint8_t *at = c->backend->map(c->device, a), *bt = c->backend->map(c->device, b);
        CONFORM_CHECK(c, at && bt && (uintptr_t)at % 16 == 0 && (uintptr_t)bt % 16 == 0);
        CONFORM_CHECK(c, at == c->backend->map(c->device, a));
        memset(at, 1, 1001);
        memset(bt, 2, 1001);
        for (int i = 0; i < 1001; i++) CONFORM_CHECK(c, at[i] == 1 && bt[i] == 2);
        c->backend->free(c->device, a);
        c->backend->free(c->device, b);
    }
    return true;
}

static bool test_copy_offsets(conform *c) {
    uint8_t data[4096], back[4096], expected[4096];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)next_random(&seed);
    hdi_memory *a = memory_new(c, sizeof data, HD_BUFFER_STORAGE), *b = memory_new(c, sizeof data, HD_BUFFER_STORAGE);
    CONFORM_CHECK(c, a && b && put(c, a, 0, data, sizeof data));
    memset(expected, 0, sizeof expected);
    conform_list list;
    list_begin(&list);
    const uint32_t from = list_slot(&list, a, 0, sizeof data), to = list_slot(&list, b, 0, sizeof data);
    static const uint32_t copies[][3] = { { 4, 0, 4 }, { 12, 20, 36 }, { 100, 60, 1004 }, { 1, 2003, 7 }, { 3003, 3001, 1093 } };
    for (size_t i = 0; i < HDI_COUNT(copies); i++) {
        list_copy(&list, from, copies[i][0], to, copies[i][1], copies[i][2]);
        memcpy(expected + copies[i][1], data + copies[i][0], copies[i][2]);
    }
    CONFORM_OK(c, run(c, &list));
    CONFORM_CHECK(c, get(c, b, 0, back, sizeof back));
    CONFORM_CHECK(c, memcmp(back, expected, sizeof back) == 0);
    return true;
}

static bool test_fill_offsets(conform *c) {
    uint32_t back[1024], expected[1024] = { 0 };
    hdi_memory *a = memory_new(c, sizeof back, HD_BUFFER_STORAGE);
    CONFORM_CHECK(c, a);
    conform_list list;
    list_begin(&list);
    const uint32_t to = list_slot(&list, a, 0, sizeof back);
    static const uint32_t fills[][2] = { { 1, 1 }, { 3, 5 }, { 9, 100 }, { 1023, 1 } };
    for (uint32_t i = 0; i < HDI_COUNT(fills); i++) {
        list_fill(&list, to, fills[i][0] * 4, fills[i][1] * 4, 0xC0DE0000u + i);
        for (uint32_t j = 0; j < fills[i][1]; j++) expected[fills[i][0] + j] = 0xC0DE0000u + i;
    }
    CONFORM_OK(c, run(c, &list));
    CONFORM_CHECK(c, get(c, a, 0, back, sizeof back));
    CONFORM_CHECK(c, memcmp(back, expected, sizeof back) == 0);
    return true;
}

static bool test_dispatch_counts(conform *c) {
    static const uint32_t counts[] = { 1, 63, 64, 65, 1000, 70001 };
    hdi_loaded_kernel *kernel = kernel_new(c, 3);
    CONFORM_CHECK(c, kernel);
    for (size_t i = 0; i < HDI_COUNT(counts); i++) {
        const uint32_t count = counts[i];
        const uint64_t bytes = (uint64_t)(count + 8) * 4; /* 8 guard words behind */
        uint32_t *data = malloc((size_t)bytes);
        if (!data) return false;
        for (uint32_t j = 0; j < count + 8; j++) data[j] = j * 2654435761u;
        hdi_memory *a = memory_new(c, bytes, HD_BUFFER_STORAGE), *b = memory_new(c, bytes, HD_BUFFER_STORAGE);
        bool good = a && b && put(c, a, 0, data, bytes);
        conform_list list;
        list_begin(&list);
        list_kernel(&list, kernel, 3);
        const uint32_t from = list_slot(&list, a, 0, bytes), to = list_slot(&list, b, 0, bytes);
        list_fill(&list, to, 0, bytes, 0xEEEEEEEEu);
        list_barrier(&list, false);
        list_dispatch(&list, from, to, count, 11, 0, (count + CONFORM_WIDTH - 1) / CONFORM_WIDTH);
        good = good && run(c, &list) == HD_OK && get(c, b, 0, data, bytes);
        for (uint32_t j = 0; j < count + 8 && good; j++)
            good = data[j] == (j < count ? j * 2654435761u * 3 + 11 : 0xEEEEEEEEu);
        free(data);
        CONFORM_CHECK(c, good);
        c->backend->free(c->device, a);
        c->backend->free(c->device, b);
    }
    c->backend->kernel_free(c->device, kernel);
    return true;
}

static bool test_dispatch_first(conform *c) {
    enum { COUNT = 1000, GROUPS = 16 };
    uint32_t data[COUNT];
    hdi_loaded_kernel *kernel = kernel_new(c, 1);
    hdi_memory *a = memory_new(c, sizeof data, HD_BUFFER_STORAGE), *b = memory_new(c, sizeof data, HD_BUFFER_STORAGE);
    for (uint32_t i = 0; i < COUNT; i++) data[i] = i;
    CONFORM_CHECK(c, kernel && a && b && put(c, a, 0, data, sizeof data));
    conform_list list;
    list_begin(&list);
    list_kernel(&list, kernel, 1);
    const uint32_t from = list_slot(&list, a, 0, sizeof data), to = list_slot(&list, b, 0, sizeof data);
    list_dispatch(&list, from, to, COUNT, 5, 3, 2);
    CONFORM_OK(c, run(c, &list));
    CONFORM_CHECK(c, get(c, b, 0, data, sizeof data));
    for (uint32_t i = 0; i < COUNT; i++) CONFORM_CHECK(c, data[i] == (i / CONFORM_WIDTH >= 3 && i / CONFORM_WIDTH < 5 ? i + 5 : 0));
    list_dispatch(&list, from, to, COUNT, 5, 0, 3); /* in pieces: the same as whole */
    list_dispatch(&list, from, to, COUNT, 5, 5, GROUPS - 5);
    CONFORM_OK(c, run(c, &list));
    CONFORM_CHECK(c, get(c, b, 0, data, sizeof data));
    for (uint32_t i = 0; i < COUNT; i++) CONFORM_CHECK(c, data[i] == i + 5);
    return true;
}

static bool test_slot_offsets(conform *c) {
    enum { COUNT = 100 };
    uint32_t data[COUNT];
    const uint64_t align = c->found.caps.binding_align, offset = align * 3;
    hdi_loaded_kernel *kernel = kernel_new(c, 2);
    hdi_memory *a = memory_new(c, offset + sizeof data, HD_BUFFER_STORAGE), *b = memory_new(c, offset + align + sizeof data, HD_BUFFER_STORAGE);
    for (uint32_t i = 0; i < COUNT; i++) data[i] = i + 1;
    CONFORM_CHECK(c, kernel && a && b && put(c, a, offset, data, sizeof data));
    conform_list list;
    list_begin(&list);
    list_kernel(&list, kernel, 2);
    const uint32_t from = list_slot(&list, a, offset, sizeof data), to = list_slot(&list, b, align, offset + sizeof data);
    list_dispatch(&list, from, to, COUNT, 0, 0, 2);
    list.binding[1].range.offset = offset - align * 2; /* a range's own offset adds to the slot's */
    CONFORM_OK(c, run(c, &list));
    CONFORM_CHECK(c, get(c, b, offset - align, data, sizeof data));
    for (uint32_t i = 0; i < COUNT; i++) CONFORM_CHECK(c, data[i] == (i + 1) * 2);
    return true;
}

/* x -> y -> x -> ... `steps` times, each step 2 v + 1. */
static void list_chain(conform_list *list, uint32_t x, uint32_t y, uint32_t count, uint32_t steps, uint32_t cut_every) {
    for (uint32_t i = 0; i < steps; i++) {
        list_dispatch(list, i % 2 ? y : x, i % 2 ? x : y, count, 1, 0, (count + CONFORM_WIDTH - 1) / CONFORM_WIDTH);
        list_barrier(list, cut_every && i % cut_every == cut_every - 1);
    }
}

static uint32_t chain_value(uint32_t value, uint32_t steps) {
    for (uint32_t i = 0; i < steps; i++) value = value * 2 + 1;
    return value;
}

typedef struct chain_work {
    hdi_loaded_kernel *kernel;
    hdi_memory  *x, *y;
    conform_list list;
} chain_work;
enum { CHAIN_COUNT = 1000 };

static bool chain_begin(conform *c, chain_work *chain, uint32_t steps, uint32_t cut_every) {
    uint32_t data[CHAIN_COUNT];
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) data[i] = i;
    chain->kernel = kernel_new(c, 2);
    chain->x = memory_new(c, sizeof data, HD_BUFFER_STORAGE);
    chain->y = memory_new(c, sizeof data, HD_BUFFER_STORAGE);
    if (!chain->kernel || !chain->x || !chain->y || !put(c, chain->x, 0, data, sizeof data)) return false;
    list_begin(&chain->list);
    list_kernel(&chain->list, chain->kernel, 2);
    const uint32_t x = list_slot(&chain->list, chain->x, 0, sizeof data), y = list_slot(&chain->list, chain->y, 0, sizeof data);
    list_chain(&chain->list, x, y, CHAIN_COUNT, steps, cut_every);
    return true;
}

static bool chain_holds(conform *c, hdi_memory *memory, uint32_t steps) {
    uint32_t data[CHAIN_COUNT];
    if (!get(c, memory, 0, data, sizeof data)) return false;
    for (uint32_t i = 0; i < CHAIN_COUNT; i++)
        if (data[i] != chain_value(i, steps)) return false;
    return true;
}

static bool test_barriers(conform *c) {
    chain_work chain;
    CONFORM_CHECK(c, chain_begin(c, &chain, 50, 0));
    CONFORM_OK(c, run(c, &chain.list));
    CONFORM_CHECK(c, chain_holds(c, chain.x, 50));
    return true;
}

/* Many commands between two barriers, which may run at once, each on its own part; then each part from another's. */
static bool test_side_by_side(conform *c) {
    enum { PARTS = 20, STAGES = 4, COUNT = PARTS * CONFORM_WIDTH };
    uint32_t expected[COUNT], data[COUNT];
    hdi_loaded_kernel *kernel = kernel_new(c, 2);
    hdi_memory *x = memory_new(c, sizeof data, HD_BUFFER_STORAGE), *y = memory_new(c, sizeof data, HD_BUFFER_STORAGE);
    hdi_recording *recording = NULL;
    uint64_t ticket;
    for (uint32_t i = 0; i < COUNT; i++) expected[i] = data[i] = i * 2654435761u;
    CONFORM_CHECK(c, kernel && x && y && put(c, x, 0, data, sizeof data));
    conform_list list;
    list_begin(&list);
    list_kernel(&list, kernel, 2);
    list_slot(&list, x, 0, sizeof data);
    list_slot(&list, y, 0, sizeof data);
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        const uint32_t from = stage % 2;
        for (uint32_t part = 0; part < PARTS; part++) {
            hdi_binding *bindings = &list.binding[list.cmds.binding_count];
            list_dispatch(&list, from, 1 - from, CONFORM_WIDTH, stage, 0, 1);
            bindings[0].range.offset = (uint64_t)(PARTS - 1 - part) * CONFORM_WIDTH * 4;
            bindings[1].range.offset = (uint64_t)part * CONFORM_WIDTH * 4;
        }
        list_barrier(&list, false);
    }
    for (int round = 0; round < 3; round++) {
        for (uint32_t stage = 0; stage < STAGES; stage++) {
            for (uint32_t i = 0; i < COUNT; i++) data[(PARTS - 1 - i / CONFORM_WIDTH) * CONFORM_WIDTH + i % CONFORM_WIDTH] = expected[i] * 2 + stage;
            memcpy(expected, data, sizeof data);
        }
        CONFORM_OK(c, submit(c, &list, &recording, &ticket, NULL));
    }
    CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
    CONFORM_CHECK(c, get(c, x, 0, data, sizeof data) && memcmp(data, expected, sizeof data) == 0);
    c->backend->forget(c->device, recording);
    return true;
}

static bool test_cuts(conform *c) {
    chain_work chain;
    uint64_t ticket;
    hdi_submission submission;
    CONFORM_CHECK(c, chain_begin(c, &chain, 20, 5));
    for (int round = 1; round <= 2; round++) {
        CONFORM_OK(c, submit(c, &chain.list, NULL, &ticket, &submission));
        CONFORM_CHECK(c, submission.pieces_out >= 1 && submission.pieces_out <= 4); /* a last cut ends nothing */
        CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
        CONFORM_CHECK(c, chain_holds(c, chain.x, 20 * (uint32_t)round));
    }
    return true;
}

static bool test_thousand_in_flight(conform *c) {
    enum { SUBMISSIONS = 1000 };
    chain_work chain;
    uint64_t ticket = 0, first = 0;
    CONFORM_CHECK(c, chain_begin(c, &chain, 1, 0));
    list_copy(&chain.list, 1, 0, 0, 0, CHAIN_COUNT * 4);
    uint32_t expected[CHAIN_COUNT], data[CHAIN_COUNT];
    static uint32_t push[SUBMISSIONS][CONFORM_PUSH]; /* commands stay as they are until they are done */
    static hdi_cmds cmds[SUBMISSIONS];
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) expected[i] = i;
    for (uint32_t s = 0; s < SUBMISSIONS; s++) { /* any change of order changes the sum */
        uint64_t got;
        memcpy(push[s], chain.list.push, sizeof push[s]);
        push[s][1] = s;
        cmds[s] = chain.list.cmds;
        cmds[s].push = push[s];
        hdi_submission submission = { .cmds = &cmds[s], .kernels = chain.list.loaded, .slots = chain.list.slots };
        CONFORM_OK(c, c->backend->submit(c->device, &submission, &got, &c->error));
        CONFORM_CHECK(c, s == 0 || got == ticket + 1);
        if (s == 0) first = got;
        ticket = got;
        for (uint32_t i = 0; i < CHAIN_COUNT; i++) expected[i] = expected[i] * 2 + s;
    }
    CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
    bool done = false;
    CONFORM_OK(c, c->backend->poll(c->device, first, &done, &c->error));
    CONFORM_CHECK(c, done && get(c, chain.x, 0, data, sizeof data));
    CONFORM_CHECK(c, memcmp(data, expected, sizeof data) == 0);
    return true;
}

static bool test_replay(conform *c) {
    chain_work chain;
    hdi_recording *recording = NULL;
    hdi_submission submission;
    uint64_t ticket = 0;
    CONFORM_CHECK(c, chain_begin(c, &chain, 2, 0));
    for (uint32_t i = 0; i < 100; i++) { /* back to back: the earlier ones are still under way */
        CONFORM_OK(c, submit(c, &chain.list, &recording, &ticket, &submission));
        CONFORM_CHECK(c, i == 0 || submission.recorded_out == 0);
    }
    CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
    CONFORM_CHECK(c, chain_holds(c, chain.x, 200));
    c->backend->forget(c->device, recording);
    return true;
}

static bool test_replay_changed_slots(conform *c) {
    chain_work chain;
    hdi_recording *recording = NULL;
    hdi_submission submission;
    uint64_t ticket;
    uint32_t start[CHAIN_COUNT], data[CHAIN_COUNT];
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) start[i] = i;
    CONFORM_CHECK(c, chain_begin(c, &chain, 2, 0));
    hdi_memory *other = memory_new(c, sizeof start, HD_BUFFER_STORAGE);
    CONFORM_CHECK(c, other && put(c, other, 0, start, sizeof start));
    uint32_t steps[2] = { 0, 0 };
    for (uint32_t i = 0; i < 20; i++) { /* two sets of slots in turn */
        chain.list.slots[0].memory = i % 2 ? other : chain.x;
        steps[i % 2] += 2;
        CONFORM_OK(c, submit(c, &chain.list, &recording, &ticket, &submission));
    }
    CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
    CONFORM_CHECK(c, chain_holds(c, chain.x, steps[0]) && chain_holds(c, other, steps[1]));
    for (uint32_t i = 0; i < 50; i++) { /* fresh memory, often at an old address: never the old commands */
        c->backend->free(c->device, other);
        hdi_memory *apart = memory_new(c, 64 + i * 300, HD_BUFFER_STORAGE);
        other = memory_new(c, sizeof start, HD_BUFFER_STORAGE);
        CONFORM_CHECK(c, apart && other && put(c, other, 0, start, sizeof start));
        chain.list.slots[0].memory = other;
        CONFORM_OK(c, submit(c, &chain.list, &recording, &ticket, &submission));
        CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
        CONFORM_CHECK(c, get(c, other, 0, data, sizeof data));
        for (uint32_t j = 0; j < CHAIN_COUNT; j++) CONFORM_CHECK(c, data[j] == chain_value(j, 2));
        c->backend->free(c->device, apart);
    }
    c->backend->forget(c->device, recording);
    return true;
}

static bool test_tickets(conform *c) {
    chain_work chain;
    uint64_t ticket;
    bool done = false;
    CONFORM_CHECK(c, chain_begin(c, &chain, 100, 0));
    CONFORM_OK(c, submit(c, &chain.list, NULL, &ticket, NULL));
    c->error = (hd_error){ 0 };
    const hd_status status = c->backend->wait(c->device, ticket, 1, &c->error); /* a nanosecond: done or not, never a failure */
    CONFORM_CHECK(c, status == HD_OK || status == HD_STATUS_TIMEOUT);
    CONFORM_CHECK(c, status == HD_OK || c->error.status == HD_STATUS_TIMEOUT);
    for (uint64_t from = hdi_now_ns(); !done && hdi_now_ns() - from < c->host.wait_ns; )
        CONFORM_OK(c, c->backend->poll(c->device, ticket, &done, &c->error));
    CONFORM_CHECK(c, done);
    CONFORM_OK(c, c->backend->wait(c->device, ticket, 0, &c->error)); /* done stays done, with no time at all */
    CONFORM_OK(c, c->backend->poll(c->device, ticket, &done, &c->error));
    CONFORM_CHECK(c, done && chain_holds(c, chain.x, 100));
    return true;
}

static bool test_profile(conform *c) {
    enum { MARKS = 70 };
    chain_work chain;
    hdi_recording *recording = NULL;
    uint64_t ns[MARKS + 1], sum = 0;
    CONFORM_CHECK(c, chain_begin(c, &chain, 0, 0));
    for (uint32_t i = 0; i < MARKS; i++) {
        list_mark(&chain.list, i ? "step" : "first step");
        list_chain(&chain.list, i % 2, 1 - i % 2, CHAIN_COUNT, 1, i == 10);
    }
    for (int round = 0; round < 3; round++) {
        uint64_t ticket, begun = hdi_now_ns();
        uint32_t count = 0;
        hdi_submission submission = list_submission(&chain.list);
        submission.timestamps = true;
        submission.recording = &recording;
        CONFORM_OK(c, c->backend->submit(c->device, &submission, &ticket, &c->error));
        CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
        begun = hdi_now_ns() - begun;
        CONFORM_OK(c, c->backend->profile(c->device, ticket, ns, MARKS + 1, &count, &c->error));
        CONFORM_CHECK(c, count == MARKS);
        sum = 0;
        for (uint32_t i = 0; i < MARKS; i++) sum += ns[i];
        CONFORM_CHECK(c, sum > 0 && sum <= begun + 1000000);
        CONFORM_OK(c, c->backend->profile(c->device, ticket, ns, 5, &count, &c->error));
        CONFORM_CHECK(c, count == 5);
    }
    CONFORM_CHECK(c, chain_holds(c, chain.x, 3 * MARKS));
    c->backend->forget(c->device, recording);
    return true;
}

static bool test_many_alloc_free(conform *c) {
    enum { LIVE = 500, ROUNDS = 100000 };
    static hdi_memory *live[LIVE];
    static uint64_t sizes[LIVE];
    static uint32_t tags[LIVE];
    uint64_t seed = 99;
    memset(live, 0, sizeof live);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint32_t at = next_random(&seed) % LIVE;
        if (live[at]) {
            const uint8_t *bytes = c->backend->map(c->device, live[at]);
            uint32_t head, tail;
            memcpy(&head, bytes, 4);
            memcpy(&tail, bytes + sizes[at] - 4, 4);
            CONFORM_CHECK(c, head == tags[at] && tail == tags[at]); /* nobody else wrote here */
            c->backend->free(c->device, live[at]);
        }
        sizes[at] = 8 + next_random(&seed) % (i % 100 == 0 ? 100000 : 2000);
        tags[at] = i;
        live[at] = memory_new(c, sizes[at], HD_BUFFER_UPLOAD);
        CONFORM_CHECK(c, live[at] != NULL);
        uint8_t *bytes = c->backend->map(c->device, live[at]);
        CONFORM_CHECK(c, bytes && bytes[0] == 0 && bytes[sizes[at] - 1] == 0);
        memcpy(bytes, &i, 4);
        memcpy(bytes + sizes[at] - 4, &i, 4);
    }
    for (uint32_t i = 0; i < LIVE; i++) c->backend->free(c->device, live[i]);
    c->backend->trim(c->device);
    return true;
}

/* What was freed serves again only for the same use: a host that wants to read gets memory that it sees, whatever of that
 * size lies there, and the bytes of others are gone. */
static bool test_use_is_matched(conform *c) {
    static const hd_buffer_use uses[] = { HD_BUFFER_UPLOAD, HD_BUFFER_READBACK, HD_BUFFER_STORAGE };
    enum { BYTES = 4096 };
    bool seen[HDI_COUNT(uses)];
    for (uint32_t i = 0; i < HDI_COUNT(uses); i++) {
        hdi_memory *memory = memory_new(c, BYTES, uses[i]);
        CONFORM_CHECK(c, memory);
        seen[i] = c->backend->map(c->device, memory) != NULL;
        c->backend->free(c->device, memory);
    }
    for (uint32_t before = 0; before < HDI_COUNT(uses); before++)
        for (uint32_t now = 0; now < HDI_COUNT(uses); now++) {
            hdi_memory *memory = memory_new(c, BYTES, uses[before]);
            uint8_t *bytes = memory ? c->backend->map(c->device, memory) : NULL;
            if (bytes) memset(bytes, 0x5A, BYTES);
            c->backend->free(c->device, memory);
            memory = memory_new(c, BYTES, uses[now]);
            CONFORM_CHECK(c, memory);
            bytes = c->backend->map(c->device, memory);
            CONFORM_CHECK(c, (bytes != NULL) == seen[now]);
            for (uint32_t i = 0; bytes && i < BYTES; i++) CONFORM_CHECK(c, bytes[i] == 0);
            c->backend->free(c->device, memory);
        }
    return true;
}

static uint64_t hash_words(uint64_t hash, const uint64_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
    return hash;
}

static bool test_half_gigabyte(conform *c) {
    enum { PIECE = 64 << 20, PIECES = 8 };
    hdi_memory *far = memory_new(c, (uint64_t)PIECE * PIECES, HD_BUFFER_STORAGE);
    hdi_memory *up = memory_new(c, PIECE, HD_BUFFER_UPLOAD), *down = memory_new(c, PIECE, HD_BUFFER_READBACK);
    CONFORM_CHECK(c, far && up && down);
    uint64_t *from = c->backend->map(c->device, up), *to = c->backend->map(c->device, down);
    uint64_t sent = 1, received = 1, state = 5;
    CONFORM_CHECK(c, from && to);
    for (int round = 0; round < 2; round++)
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            for (size_t i = 0; i < PIECE / 8 && round == 0; i++) from[i] = state = state * UINT64_C(6364136223846793005) + 1;
            if (round == 0) sent = hash_words(sent, from, PIECE / 8);
            conform_list list;
            list_begin(&list);
            const uint32_t near = list_slot(&list, round == 0 ? up : down, 0, PIECE);
            const uint32_t whole = list_slot(&list, far, 0, (uint64_t)PIECE * PIECES);
            if (round == 0) list_copy(&list, near, 0, whole, piece * PIECE, PIECE);
            else list_copy(&list, whole, piece * PIECE, near, 0, PIECE);
            uint64_t ticket;
            hdi_submission submission = list_submission(&list);
            submission.queue = HDI_QUEUE_UPLOAD;
            CONFORM_OK(c, c->backend->submit(c->device, &submission, &ticket, &c->error));
            CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
            if (round == 1) received = hash_words(received, to, PIECE / 8);
        }
    CONFORM_CHECK(c, sent == received);
    return true;
}

static bool test_transfer_and_compute(conform *c) {
    enum { ROUNDS = 200 };
    chain_work chain;
    uint32_t expected[CHAIN_COUNT], data[CHAIN_COUNT];
    uint64_t ticket = 0, before = 0;
    CONFORM_CHECK(c, chain_begin(c, &chain, 1, 0));
    conform_list back;
    list_begin(&back);
    list_slot(&back, chain.y, 0, sizeof data);
    list_slot(&back, chain.x, 0, sizeof data);
    list_copy(&back, 0, 0, 1, 0, sizeof data);
    hdi_submission moves = list_submission(&back);
    moves.queue = HDI_QUEUE_DOWNLOAD; /* perhaps on another queue; the order is the same */
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) expected[i] = chain_value(i, ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CONFORM_OK(c, submit(c, &chain.list, NULL, &before, NULL));
        CONFORM_OK(c, c->backend->submit(c->device, &moves, &ticket, &c->error));
        CONFORM_CHECK(c, ticket == before + 1);
    }
    CONFORM_OK(c, c->backend->wait(c->device, ticket, c->host.wait_ns, &c->error));
    bool done = false;
    CONFORM_OK(c, c->backend->poll(c->device, before, &done, &c->error));
    CONFORM_CHECK(c, done && get(c, chain.x, 0, data, sizeof data) && memcmp(data, expected, sizeof data) == 0);
    return true;
}

/* ---- queues ---- */

/* Copies, fills and dispatches between a few memories, each on any queue that may do it, hundreds of them under way: what comes of it
 * is what one after the other makes. Now and then a memory is freed under the work, and another takes its place. */
enum { MAZE_MEMORIES = 6, MAZE_COUNT = 16384, MAZE_STEPS = 500, MAZE_LISTS = 48 };
typedef struct maze {
    conform_list       lists[MAZE_LISTS];
    uint64_t           tickets[MAZE_LISTS];
    hdi_recording     *recordings[MAZE_LISTS];
    hdi_memory        *memories[MAZE_MEMORIES];
    uint32_t           expected[MAZE_MEMORIES][MAZE_COUNT];
    hdi_loaded_kernel *kernel;
    uint32_t           random, steps;
} maze;

static uint32_t maze_random(maze *m, uint32_t below) {
    m->random = m->random * 1664525u + 1013904223u;
    return (m->random >> 8) % below;
}

static bool maze_step(conform *c, maze *m, uint32_t step) {
    const uint32_t at = step % MAZE_LISTS, from = maze_random(m, MAZE_MEMORIES), to = (from + 1 + maze_random(m, MAZE_MEMORIES - 1)) % MAZE_MEMORIES;
    const uint32_t kind = maze_random(m, 5), add = maze_random(m, 1000);
    const bool keeps = maze_random(m, 2) != 0;
    conform_list *list = &m->lists[at];
    CONFORM_OK(c, c->backend->wait(c->device, m->tickets[at], c->host.wait_ns, &c->error));
    c->backend->forget(c->device, m->recordings[at]);
    m->recordings[at] = NULL;
    list_begin(list);
    list_slot(list, m->memories[from], 0, sizeof m->expected[0]);
    list_slot(list, m->memories[to], 0, sizeof m->expected[0]);
    if (kind == 0) list_fill(list, 1, 0, sizeof m->expected[0], add);
    else if (kind < 3) list_copy(list, 0, 0, 1, 0, sizeof m->expected[0]);
    else {
        list_kernel(list, m->kernel, 3);
        list_dispatch(list, 0, 1, MAZE_COUNT, add, 0, MAZE_COUNT / CONFORM_WIDTH);
    }
    for (uint32_t i = 0; i < MAZE_COUNT; i++)
        m->expected[to][i] = kind == 0 ? add : kind < 3 ? m->expected[from][i] : m->expected[from][i] * 3 + add;
    hdi_submission submission = list_submission(list);
    if (kind < 3) submission.queue = (hdi_queue)maze_random(m, HDI_QUEUE_COUNT);
    if (keeps) submission.recording = &m->recordings[at];
    CONFORM_OK(c, c->backend->submit(c->device, &submission, &m->tickets[at], &c->error));
    if (maze_random(m, 20) == 0) {
        c->backend->free(c->device, m->memories[to]);
        memset(m->expected[to], 0, sizeof m->expected[to]);
        CONFORM_CHECK(c, (m->memories[to] = memory_new(c, sizeof m->expected[0], HD_BUFFER_STORAGE)) != NULL);
    }
    if (maze_random(m, 10) == 0) {
        bool done = false;
        CONFORM_OK(c, c->backend->poll(c->device, m->tickets[at], &done, &c->error));
    }
    return true;
}

static bool maze_run(conform *c, maze *m) {
    static uint32_t data[MAZE_COUNT];
    for (uint32_t i = 0; i < MAZE_MEMORIES; i++) CONFORM_CHECK(c, (m->memories[i] = memory_new(c, sizeof data, HD_BUFFER_STORAGE)) != NULL);
    for (uint32_t step = 0; step < m->steps; step++)
        if (!maze_step(c, m, step)) return false;
    for (uint32_t i = 0; i < MAZE_MEMORIES; i++)
        CONFORM_CHECK(c, get(c, m->memories[i], 0, data, sizeof data) && memcmp(data, m->expected[i], sizeof data) == 0);
    for (uint32_t i = 0; i < MAZE_MEMORIES; i++) c->backend->free(c->device, m->memories[i]);
    return true;
}

/* Long work that reads x and writes y at its very end; behind it the upload of another x and the download of y. */
static bool queues_follow(conform *c) {
    enum { ROUNDS = 100 };
    static uint32_t data[MAZE_COUNT];
    static conform_list lists[3];
    hdi_memory *memories[4]; /* x, y, scratch, the other x */
    uint64_t tickets[3];
    hdi_memory *down = memory_new(c, sizeof data, HD_BUFFER_READBACK);
    hdi_loaded_kernel *kernel = kernel_new(c, 3);
    CONFORM_CHECK(c, kernel && down);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < MAZE_COUNT; k++) data[k] = k + 1000 * i;
        CONFORM_CHECK(c, (memories[i] = memory_new(c, sizeof data, HD_BUFFER_STORAGE)) != NULL && put(c, memories[i], 0, data, sizeof data));
    }
    for (uint32_t i = 0; i < 3; i++) {
        hdi_memory *const used[3][3] = { { memories[0], memories[1], memories[2] }, { memories[3], memories[0] }, { memories[1], down } };
        list_begin(&lists[i]);
        for (uint32_t k = 0; k < (i ? 2u : 3u); k++) list_slot(&lists[i], used[i][k], 0, sizeof data);
        for (uint32_t k = 0; k < ROUNDS && i == 0; k++) {
            list_kernel(&lists[i], kernel, 3);
            list_dispatch(&lists[i], k + 1 < ROUNDS ? 1 : 0, k + 1 < ROUNDS ? 2 : 1, MAZE_COUNT, 7, 0, MAZE_COUNT / CONFORM_WIDTH);
            list_barrier(&lists[i], false);
        }
        if (i) list_copy(&lists[i], 0, 0, 1, 0, sizeof data);
        hdi_submission submission = list_submission(&lists[i]);
        submission.queue = (hdi_queue)i;
        CONFORM_OK(c, c->backend->submit(c->device, &submission, &tickets[i], &c->error));
    }
    CONFORM_OK(c, c->backend->wait(c->device, tickets[2], c->host.wait_ns, &c->error));
    const uint32_t *read = c->backend->map(c->device, down);
    for (uint32_t k = 0; k < MAZE_COUNT; k++) CONFORM_CHECK(c, read[k] == k * 3 + 7);
    CONFORM_CHECK(c, get(c, memories[0], 0, data, sizeof data) && data[5] == 3005);
    return true;
}

/* Three long mazes and two hundred and fifty short ones; the suites of a back end make a thousand of it. */
static bool test_queues(conform *c) {
    enum { LONG = 3, SHORT = 250, SHORT_STEPS = 12 };
    bool good = queues_follow(c);
    hdi_loaded_kernel *kernel = kernel_new(c, 3);
    maze *m = malloc(sizeof *m);
    CONFORM_CHECK(c, kernel && m);
    for (uint32_t seed = 1; seed <= LONG + SHORT && good; seed++) {
        memset(m, 0, sizeof *m);
        m->random = seed;
        m->kernel = kernel;
        m->steps = seed <= LONG ? MAZE_STEPS : SHORT_STEPS;
        good = maze_run(c, m);
        for (uint32_t i = 0; i < MAZE_LISTS; i++) {
            c->backend->wait(c->device, m->tickets[i], c->host.wait_ns, NULL);
            c->backend->forget(c->device, m->recordings[i]);
        }
    }
    free(m);
    return good;
}

static bool test_free_in_flight(conform *c) {
    for (int round = 0; round < 20; round++) {
        chain_work chain;
        uint64_t ticket;
        hdi_recording *recording = NULL;
        CONFORM_CHECK(c, chain_begin(c, &chain, 60, 0));
        CONFORM_OK(c, submit(c, &chain.list, round % 2 ? &recording : NULL, &ticket, NULL));
        c->backend->free(c->device, chain.x);
        c->backend->kernel_free(c->device, chain.kernel);
        c->backend->forget(c->device, recording);
        c->backend->free(c->device, chain.y);
        c->backend->trim(c->device);
    }
    return true;
}

static bool test_close_in_flight(conform *c) {
    hdi_backend_device *kept = c->device;
    bool good = true;
    for (int round = 0; round < 3 && good; round++) {
        chain_work chain;
        uint64_t ticket;
        hdi_recording *recording = NULL;
        c->error = (hd_error){ 0 };
        good = c->backend->open(&c->host, &c->found, NULL, &c->device, &c->error) == HD_OK;
        if (!good) break;
        good = chain_begin(c, &chain, 100, 0);
        for (int i = 0; i < 5 && good; i++) good = submit(c, &chain.list, round ? &recording : NULL, &ticket, NULL) == HD_OK;
        c->backend->close(c->device); /* memory, kernel and recording go with it */
    }
    c->device = kept;
    CONFORM_CHECK(c, good);
    return true;
}

static bool test_kernel_without_form(conform *c) {
    static const hdi_module empty = { .name = "empty" };
    const hdi_kernel kernel = conform_kernel(2);
    hdi_loaded_kernel *loaded = NULL;
    bool cached;
    c->error = (hd_error){ 0 };
    const hd_status status = c->backend->kernel_load(c->device, &empty, &kernel, &loaded, &cached, &c->error);
    CONFORM_CHECK(c, status == HD_STATUS_KERNEL_NOT_FOUND && c->error.status == status && loaded == NULL);
    return true;
}

static bool test_too_large(conform *c) {
    hdi_memory *memory = NULL;
    const hdi_alloc_desc desc = { UINT64_MAX / 2, HD_BUFFER_STORAGE, NULL, NULL, 0 };
    c->error = (hd_error){ 0 };
    const hd_status status = c->backend->alloc(c->device, &desc, &memory, &c->error);
    CONFORM_CHECK(c, memory == NULL && c->error.status == status && c->error.text[0]);
    CONFORM_CHECK(c, status == HD_STATUS_LIMIT || status == HD_STATUS_OUT_OF_DEVICE_MEMORY || status == HD_STATUS_OUT_OF_HOST_MEMORY);
    return true;
}

/* ---- the runner ---- */

typedef struct conform_test {
    const char *name;
    bool (*run)(conform *c);
} conform_test;
static const conform_test conform_tests[] = {
    { "probe", test_probe }, { "open_close", test_open_close }, { "alloc_zeroed", test_alloc_zeroed }, { "map", test_map },
    { "copy_offsets", test_copy_offsets }, { "fill_offsets", test_fill_offsets }, { "dispatch_counts", test_dispatch_counts },
    { "dispatch_first", test_dispatch_first }, { "slot_offsets", test_slot_offsets }, { "barriers", test_barriers }, { "side_by_side", test_side_by_side }, { "cuts", test_cuts },
    { "thousand_in_flight", test_thousand_in_flight }, { "replay", test_replay }, { "replay_changed_slots", test_replay_changed_slots },
    { "tickets", test_tickets }, { "profile", test_profile }, { "many_alloc_free", test_many_alloc_free }, { "use_is_matched", test_use_is_matched },
    { "half_gigabyte", test_half_gigabyte }, { "transfer_and_compute", test_transfer_and_compute }, { "queues", test_queues }, { "free_in_flight", test_free_in_flight },
    { "close_in_flight", test_close_in_flight }, { "kernel_without_form", test_kernel_without_form }, { "too_large", test_too_large },
};

static const char *conform_listed(const conform_reason *list, const char *test) {
    for (; list && list->test; list++)
        if (strcmp(list->test, test) == 0) return list->reason;
    return NULL;
}

typedef struct conform_case {
    conform            *c;
    const conform_test *test;
} conform_case;

static void conform_run_case(void **state) {
    const conform_case *one = *state;
    conform *c = one->c;
    hdi_probe probe;
    c->backend->probe(&c->host, &probe);
    if (!probe.found_count) fail_msg("no device: %s (%s)", probe.reason, probe.mend);
    c->found = probe.found[0];
    c->error = (hd_error){ 0 };
    if (c->backend->open(&c->host, &c->found, NULL, &c->device, &c->error) != HD_OK) fail_msg("open: %s", c->error.text);
    const bool good = one->test->run(c);
    c->backend->close(c->device);
    const char *never = conform_listed(c->never, one->test->name), *not_yet = conform_listed(c->not_yet, one->test->name);
    const char *reason = never ? never : not_yet;
    if (reason && good) fail_msg("%s passes and is listed as %s (%s)", one->test->name, never ? "never" : "not yet", reason);
    if (!reason && !good) fail_msg("%s: %s", one->test->name, c->why);
    if (reason) print_message("%s: %s: %s\n", one->test->name, never ? "never" : "not yet", reason);
}

/* Runs every test for one back end; `group` names the run. Returns the number of failures. */
static inline int conform_run(conform *c, const char *group) {
    static conform_case cases[HDI_COUNT(conform_tests)];
    struct CMUnitTest tests[HDI_COUNT(conform_tests)];
    for (size_t i = 0; i < HDI_COUNT(conform_tests); i++) {
        cases[i] = (conform_case){ c, &conform_tests[i] };
        tests[i] = (struct CMUnitTest){ .name = conform_tests[i].name, .test_func = conform_run_case, .initial_state = &cases[i] };
    }
    return _cmocka_run_group_tests(group, tests, HDI_COUNT(tests), NULL, NULL);
}

#endif
