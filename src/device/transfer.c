/* transfer.c: bytes between host and device. Memory that the host sees is written and read in place. Everything else
 * goes in pieces through a ring of pinned memory that is mapped once: while one piece travels the next is copied. */
#include "device/device.h"

/* A piece takes 1, 2 or 4 units, so that a transfer has about PIECES: what is in the first one travels late, and what
 * is in the last one is copied late; but each has its own submission. */
enum { UNITS = 16, MOST_UNITS = 4, PIECES = 8 };
#define UNIT_BYTES (UINT64_C(1) << 20)

struct hdi_stage {
    hdi_memory *memory[2];        /* [0] for uploads, [1] for downloads; made on first use */
    char       *pointer[2];
    uint64_t    tickets[2][UNITS]; /* the submission that uses the unit */
    uint32_t    next[2];
};

/* The ring of one direction. Called with the lock held. */
static hd_status open_ring(hd_device *device, int direction, hd_error *error) {
    if (!device->stage) device->stage = hdi_alloc(device->host->allocator, sizeof *device->stage);
    if (!device->stage) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for staging");
    hdi_stage *stage = device->stage;
    if (stage->memory[direction]) return HD_OK;
    hdi_alloc_desc desc = { UNITS * UNIT_BYTES, direction ? HD_BUFFER_READBACK : HD_BUFFER_UPLOAD,
                            direction ? "down" : "up", NULL, HD_MEMORY_STAGING };
    hd_status status = device->backend->alloc(device->handle, &desc, &stage->memory[direction], error);
    if (status) return status;
    stage->pointer[direction] = device->backend->map(device->handle, stage->memory[direction]);
    memset(stage->tickets[direction], 0, sizeof stage->tickets[direction]);
    hdi_holdings *holdings = &device->holdings;
    if (stage->pointer[direction] &&
        hdi_holdings_add(holdings, device->host->allocator, stage->memory[direction], &desc, true))
        return HD_OK;
    device->backend->free(device->handle, stage->memory[direction]);
    stage->memory[direction] = NULL;
    if (stage->pointer[direction]) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for staging");
    return hdi_fail(error, HD_STATUS_MEMORY_TYPE_NOT_FOUND, "the device has no memory that the host sees");
}

void hdi_stage_free(hd_device *device) {
    if (!device->stage) return;
    for (int direction = 0; direction < 2; direction++) {
        if (!device->stage->memory[direction]) continue;
        hdi_holdings_remove(&device->holdings, device->stage->memory[direction]);
        device->backend->free(device->handle, device->stage->memory[direction]);
    }
    hdi_free(device->host->allocator, device->stage, sizeof *device->stage);
    device->stage = NULL;
}

static void end_cmds(void *object) {
    hdi_cmds *cmds = object;
    const hd_allocator *allocator = cmds->arena.allocator;
    hdi_cmds_free(cmds);
    hdi_free(allocator, cmds, sizeof *cmds);
}

typedef struct copy_desc {
    hdi_queue queue;
    hdi_slot  from, to;
    uint64_t  from_offset, to_offset, bytes;
} copy_desc;

static hd_status submit_copy(hd_device *device, const copy_desc *copy, uint64_t *out_ticket, hd_error *error) {
    const hd_allocator *allocator = device->host->allocator;
    hdi_cmds *cmds = hdi_alloc(allocator, sizeof *cmds);
    if (!cmds) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a transfer");
    hdi_cmds_init(cmds, allocator);
    uint32_t source, target;
    hd_status status = hdi_cmds_slot(cmds, copy->from.bytes, &source);
    if (!status) status = hdi_cmds_slot(cmds, copy->to.bytes, &target);
    if (!status)
        status = hdi_cmds_copy(cmds, (hdi_range){ source, copy->from_offset, copy->bytes },
                               (hdi_range){ target, copy->to_offset, copy->bytes });
    if (status) hdi_fail(error, status, "no memory for a transfer");
    hdi_slot slots[2] = { copy->from, copy->to };
    hdi_submission submission = { .cmds = cmds, .slots = slots, .queue = copy->queue };
    if (!status) status = hdi_device_submit(device, &submission, out_ticket, error);
    if (status) end_cmds(cmds);
    else hdi_device_free_later(device, *out_ticket, end_cmds, cmds);
    return status;
}

static uint32_t units_of_pieces(uint64_t bytes) {
    uint32_t units = 1;
    while (units < MOST_UNITS && bytes > units * PIECES * UNIT_BYTES) units *= 2;
    return units;
}

/* Free units: waits for the submissions that still use them. They lie at a multiple of their number, by which UNITS can
 * be divided. */
static hd_status take_units(hd_device *device, int direction, uint32_t units, uint32_t *out_unit, hd_error *error) {
    hdi_mutex_lock(&device->lock);
    const bool made = device->stage && device->stage->memory[direction];
    hd_status status = open_ring(device, direction, error);
    uint64_t ticket = 0;
    device->stats.staging_requests++;
    device->stats.staging_hits += made;
    if (!status) {
        uint32_t *next = &device->stage->next[direction];
        *out_unit = (*next + units - 1) / units * units % UNITS;
        *next = *out_unit + units;
        for (uint32_t i = 0; i < units; i++) ticket = HDI_MAX(ticket, device->stage->tickets[direction][*out_unit + i]);
    }
    hdi_mutex_unlock(&device->lock);
    return status ? status : hdi_device_wait(device, ticket, 0, error);
}

static void note_ticket(hdi_stage *stage, int direction, uint32_t unit, uint32_t units, uint64_t ticket) {
    for (uint32_t i = 0; i < units; i++) stage->tickets[direction][unit + i] = ticket;
}

static hd_status write_staged(hd_device *device, hdi_memory *memory, uint64_t offset, const char *data, uint64_t bytes,
                              uint64_t *inout_ticket, hd_error *error) {
    const uint32_t units = units_of_pieces(bytes);
    hd_status status = HD_OK;
    hdi_mutex_lock(&device->transfer_lock);
    for (uint64_t done = 0; done < bytes && !status;) {
        uint64_t piece = HDI_MIN(bytes - done, units * UNIT_BYTES);
        uint32_t unit;
        if ((status = take_units(device, 0, units, &unit, error))) break;
        hdi_stage *stage = device->stage;
        hdi_thread_pool_stage(device->host->thread_pool, stage->pointer[0] + unit * UNIT_BYTES, data + done, piece);
        hdi_slot from = { stage->memory[0], 0, UNITS * UNIT_BYTES }, to = { memory, 0, offset + bytes };
        status =
            submit_copy(device, &(copy_desc){ HDI_QUEUE_UPLOAD, from, to, unit * UNIT_BYTES, offset + done, piece },
                        inout_ticket, error);
        note_ticket(stage, 0, unit, units, *inout_ticket);
        done += piece;
    }
    hdi_mutex_unlock(&device->transfer_lock);
    return status;
}

hd_status hdi_device_write(hd_device *device, hdi_memory *memory, uint64_t offset, const void *data, uint64_t bytes,
                           uint64_t *inout_ticket, hd_error *error) {
    char *pointer = hdi_device_map(device, memory);
    hd_status status = HD_OK;
    if (pointer) {
        status = hdi_device_wait(device, *inout_ticket, 0, error);
        if (!status) hdi_thread_pool_copy(device->host->thread_pool, pointer + offset, data, bytes);
    }
    if (!pointer) status = write_staged(device, memory, offset, data, bytes, inout_ticket, error);
    hdi_mutex_lock(&device->lock);
    if (!status) {
        device->stats.uploads++;
        device->stats.upload_bytes += bytes;
        if (pointer) device->stats.direct_bytes += bytes;
    }
    hdi_mutex_unlock(&device->lock);
    return status;
}

/* Reads through the ring: as many copies as it holds are under way while the oldest is taken out. */
static hd_status read_staged(hd_device *device, hdi_memory *memory, uint64_t offset, char *out_data, uint64_t bytes,
                             hd_error *error) {
    const uint32_t units = units_of_pieces(bytes), most = UNITS / units;
    uint32_t unit_of[UNITS];
    uint64_t asked = 0, taken = 0, asked_count = 0, taken_count = 0;
    while (taken < bytes) {
        while (asked < bytes && asked_count - taken_count < most) {
            uint32_t *unit = &unit_of[asked_count++ % most];
            hd_status status = take_units(device, 1, units, unit, error);
            if (status) return status;
            uint64_t piece = HDI_MIN(bytes - asked, units * UNIT_BYTES), ticket = 0;
            hdi_slot from = { memory, 0, offset + bytes }, to = { device->stage->memory[1], 0, UNITS * UNIT_BYTES };
            status =
                submit_copy(device,
                            &(copy_desc){ HDI_QUEUE_DOWNLOAD, from, to, offset + asked, *unit * UNIT_BYTES, piece },
                            &ticket, error);
            if (status) return status;
            note_ticket(device->stage, 1, *unit, units, ticket);
            asked += piece;
        }
        uint32_t unit = unit_of[taken_count++ % most];
        hd_status status = hdi_device_wait(device, device->stage->tickets[1][unit], 0, error);
        if (status) return status;
        uint64_t piece = HDI_MIN(bytes - taken, units * UNIT_BYTES);
        hdi_thread_pool_copy(device->host->thread_pool, out_data + taken, device->stage->pointer[1] + unit * UNIT_BYTES,
                             piece);
        taken += piece;
    }
    return HD_OK;
}

/* Where the host reads the memory in place; NULL: it does not see it, or would take longer than a copy by the
 * device. */
static const char *readable(hd_device *device, hdi_memory *memory) {
    return device->backend->reads_slowly &&
           device->backend->reads_slowly(device->handle, memory) ? NULL : hdi_device_map(device, memory);
}

hd_status hdi_device_read(hd_device *device, hdi_memory *memory, uint64_t offset, void *out_data, uint64_t bytes,
                          uint64_t after, hd_error *error) {
    const char *pointer = readable(device, memory);
    hd_status status;
    if (pointer) {
        status = hdi_device_wait(device, after, 0, error);
        if (!status) hdi_thread_pool_copy(device->host->thread_pool, out_data, pointer + offset, bytes);
    } else {
        hdi_mutex_lock(&device->transfer_lock);
        status = read_staged(device, memory, offset, out_data, bytes, error);
        hdi_mutex_unlock(&device->transfer_lock);
    }
    hdi_mutex_lock(&device->lock);
    if (!status) {
        device->stats.downloads++;
        device->stats.download_bytes += bytes;
        if (pointer) device->stats.direct_bytes += bytes;
    }
    hdi_mutex_unlock(&device->lock);
    return status;
}
