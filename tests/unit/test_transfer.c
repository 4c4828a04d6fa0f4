/* test_transfer.c: bytes to and from memory that the host does not see: they go through the ring of staging memory; and which
 * inputs of a plan lie in it. The CPU back end stands in for a device, with a map that hides the device's own memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "device/device.h"

#define PIECE (UINT64_C(4) << 20) /* of a large transfer, as in transfer.c */

static hdi_memory *hidden[8];
static size_t hidden_count;

static hd_status alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory, hd_error *error) {
    const hd_status status = hdi_backend_cpu.alloc(device, desc, out_memory, error);
    if (!status && desc->use == HD_BUFFER_STORAGE) hidden[hidden_count++] = *out_memory;
    return status;
}

static uint32_t maps; /* that gave the back end's memory to the host */
static void *map(hdi_backend_device *device, hdi_memory *memory) {
    for (size_t i = 0; i < hidden_count; i++)
        if (hidden[i] == memory) return NULL;
    maps++;
    return hdi_backend_cpu.map(device, memory);
}

static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) return free(old), NULL;
    return realloc(old, new_bytes);
}

static const hd_allocator allocator = { .resize = resize };
static const hdi_log no_log;

/* A device of the back end, and in `out_host` its host, which has a thread pool of threads until close_device. */
static hd_device *open_device(const hdi_backend *backend, hdi_host *out_host) {
    hdi_probe probe = { 0 };
    hd_error error = { 0 };
    hd_device *device;
    *out_host = (hdi_host){ .allocator = &allocator, .log = &no_log, .cpu_threads = 1, .wait_ns = UINT64_C(10000000000), .thread_pool = hdi_thread_pool_new(&allocator, 3) };
    backend->probe(out_host, &probe);
    assert_int_equal(hdi_device_open(out_host, backend, &probe.found[0], NULL, &device, &error), HD_OK);
    return device;
}

static void close_device(hd_device *device, const hdi_host *host) {
    hdi_device_close(device);
    hdi_thread_pool_free(host->thread_pool);
}

static void through_the_ring(void **state) {
    (void)state;
    hdi_backend backend = hdi_backend_cpu;
    hdi_host host;
    hd_error error = { 0 };
    hdi_memory *memory;
    backend.alloc = alloc;
    backend.map = map;
    hd_device *device = open_device(&backend, &host);
    const uint64_t room = 5 * PIECE + 1000;
    const hdi_alloc_desc desc = { .bytes = room, .use = HD_BUFFER_STORAGE };
    assert_int_equal(hdi_device_alloc(device, &desc, &memory, &error), HD_OK);
    unsigned char *data = malloc(room), *back = malloc(room);
    assert_true(data && back);
    for (uint64_t i = 0; i < room; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);
    /* All of it: more pieces than the ring holds; then some bytes at an odd place, of which only they change. */
    uint64_t ticket = 0;
    assert_int_equal(hdi_device_write(device, memory, 0, data, room, &ticket, &error), HD_OK);
    assert_int_equal(hdi_device_read(device, memory, 0, back, room, ticket, &error), HD_OK);
    assert_memory_equal(data, back, room);
    assert_true(device->stats.staging_requests == 12 && device->stats.staging_hits == 10); /* each way makes its ring once */
    memset(data + PIECE - 3, 7, 9);
    assert_int_equal(hdi_device_write(device, memory, PIECE - 3, data + PIECE - 3, 9, &ticket, &error), HD_OK);
    assert_int_equal(hdi_device_read(device, memory, 0, back, room, ticket, &error), HD_OK);
    assert_memory_equal(data, back, room);
    assert_true(device->stats.staging_requests == 19 && device->stats.staging_hits == 17);
    assert_true(device->stats.direct_bytes == 0 && device->stats.upload_bytes == room + 9 && device->stats.download_bytes == 2 * room);
    /* Pieces of every size follow each other round the ring. */
    static const uint64_t sizes[] = { 3, 3 * PIECE, 5, PIECE / 4 + 1, 4 * PIECE + 7, 1 };
    for (uint32_t i = 0; i < 12; i++) {
        const uint64_t bytes = sizes[i % 6], at = room - bytes - i;
        for (uint64_t k = 0; k < bytes; k += 997) data[at + k] = (unsigned char)(data[at + k] + i + 1);
        assert_int_equal(hdi_device_write(device, memory, at, data + at, bytes, &ticket, &error), HD_OK);
        assert_int_equal(hdi_device_read(device, memory, at, back, bytes, ticket, &error), HD_OK);
        assert_memory_equal(data + at, back, bytes);
    }
    assert_true(maps > 0);
    maps = 0; /* and what was mapped stays so: small transfers map nothing more */
    for (uint32_t i = 0; i < 10000; i++) {
        memcpy(data + i * 64, &i, sizeof i);
        assert_int_equal(hdi_device_write(device, memory, i * 64, data + i * 64, 64, &ticket, &error), HD_OK);
    }
    assert_int_equal(maps, 0);
    assert_int_equal(hdi_device_read(device, memory, 0, back, room, ticket, &error), HD_OK);
    assert_memory_equal(data, back, room);
    free(data);
    free(back);
    hdi_device_free(device, memory, room);
    close_device(device, &host);
}

static bool reads_slowly(const hdi_backend_device *device, const hdi_memory *memory) { return device && memory; }

/* Memory that the host sees and reads slowly is written in place and read by a copy of the device's. */
static void slow_memory_is_read_by_a_copy(void **state) {
    (void)state;
    enum { BYTES = 100000 };
    hdi_backend backend = hdi_backend_cpu;
    backend.reads_slowly = reads_slowly;
    hdi_host host;
    hdi_memory *memory;
    hd_error error = { 0 };
    hd_device *device = open_device(&backend, &host);
    assert_int_equal(hdi_device_alloc(device, &(hdi_alloc_desc){ .bytes = BYTES, .use = HD_BUFFER_UPLOAD }, &memory, &error), HD_OK);
    unsigned char data[BYTES], back[BYTES];
    for (uint32_t i = 0; i < BYTES; i++) data[i] = (unsigned char)(i * 31 >> 3);
    uint64_t ticket = 0;
    assert_int_equal(hdi_device_write(device, memory, 0, data, BYTES, &ticket, &error), HD_OK);
    assert_int_equal(hdi_device_read(device, memory, 0, back, BYTES, ticket, &error), HD_OK);
    assert_memory_equal(data, back, BYTES);
    assert_true(device->stats.direct_bytes == BYTES && device->stats.staging_requests == 1);
    hdi_device_free(device, memory, BYTES);
    close_device(device, &host);
}

/* What of an input of so many bytes is written without a staging copy, on a device that the host writes in place or not. */
static uint64_t direct_bytes(bool host_visible, int64_t bytes) {
    const hd_context_desc desc = { .backend = "cpu", .cache_dir = "" };
    hd_context *context;
    hd_device *device;
    hd_plan *plan;
    hd_device_stats stats;
    assert_int_equal(hd_context_create(&desc, &context), HD_OK);
    assert_int_equal(hd_device_open(context, NULL, &device), HD_OK);
    if (!HDI_FIND(device)) fail();
    hdi_backend backend = *device->backend;
    backend.alloc = alloc;
    backend.map = map;
    device->backend = &backend;
    device->found.caps.host_visible = host_visible;
    hidden_count = 0;
    hd_program *program = hd_program_create(context);
    hd_output(program, "y", hd_relu(program, hd_input(program, "x", HD_F32, HD_SHAPE(bytes / 4))));
    assert_int_equal(hd_plan_create(device, program, NULL, &plan), HD_OK);
    char *x = calloc(1, (size_t)bytes);
    assert_int_equal(hd_plan_write(plan, "x", x, (uint64_t)bytes), HD_OK);
    free(x);
    assert_int_equal(hd_device_get_stats(device, &stats), HD_OK);
    assert_int_equal(stats.upload_bytes, bytes);
    hd_context_destroy(context);
    return stats.direct_bytes;
}

/* A device whose memory the host cannot write would read a small input across the bus: few bytes only lie there. */
static void small_inputs_are_written_in_place(void **state) {
    (void)state;
    enum { ACROSS = 64 << 10, SMALL = 1 << 20 }; /* as in core.c */
    assert_int_equal(direct_bytes(true, SMALL), SMALL);
    assert_int_equal(direct_bytes(true, SMALL + 4), 0);
    assert_int_equal(direct_bytes(false, ACROSS), ACROSS);
    assert_int_equal(direct_bytes(false, ACROSS + 4), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_the_ring),
        cmocka_unit_test(slow_memory_is_read_by_a_copy),
        cmocka_unit_test(small_inputs_are_written_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
