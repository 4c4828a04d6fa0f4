/* takes.c: which take fits, and when one ends. */
#include "device/takes.h"

enum { TAKES_KEPT = 4 };

void hdi_takes_init(hdi_takes *takes) {
    hdi_list_init(&takes->recordings);
    hdi_list_init(&takes->dead);
}

/* ---- ending ---- */

static void end_take(hdi_takes *takes, hdi_take *take) {
    hdi_list_remove(&take->used.link);
    takes->end(takes->device, take);
    hdi_free(takes->host->allocator, take->keys, take->key_capacity * sizeof *take->keys);
    hdi_free(takes->host->allocator, take, takes->take_bytes);
}

void hdi_takes_collect(hdi_takes *takes, uint64_t done) {
    for (hdi_link *at = takes->dead.next, *next; at != &takes->dead; at = next) {
        next = at->next;
        hdi_take *take = HDI_OBJECT(at, hdi_take, used.link);
        if (take->used.last_ticket <= done) end_take(takes, take);
    }
}

void hdi_takes_forget(hdi_takes *takes, hdi_recording *recording) {
    if (!recording) return;
    while (!hdi_list_empty(&recording->takes)) hdi_used_free_later(HDI_OBJECT(recording->takes.next, hdi_used, link), &takes->dead);
    hdi_list_remove(&recording->link);
    hdi_free(takes->host->allocator, recording, sizeof *recording);
}

void hdi_takes_end(hdi_takes *takes) {
    while (!hdi_list_empty(&takes->recordings)) hdi_takes_forget(takes, HDI_OBJECT(takes->recordings.next, hdi_recording, link));
    hdi_takes_collect(takes, HDI_ALL_DONE);
}

/* ---- finding and making ---- */

static hdi_slot_key key_of(const hdi_slot *slot) {
    const hdi_used *memory = (const hdi_used *)(const void *)slot->memory;
    return (hdi_slot_key){ memory ? memory->serial : 0, slot->offset, slot->bytes };
}

static bool fits(const hdi_take *take, const hdi_submission *submission) {
    if (take->key_count != submission->cmds->slot_count) return false;
    for (uint32_t i = 0; i < take->key_count; i++) {
        const hdi_slot_key key = key_of(&submission->slots[i]);
        if (memcmp(&key, &take->keys[i], sizeof key) != 0) return false;
    }
    return true;
}

static hd_status no_memory(const hdi_takes *takes, hd_error *error) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, takes->backend, 0, "no memory for a recording");
}

static hd_status make_take(hdi_takes *takes, const hdi_submission *submission, hdi_recording *recording, hd_error *error) {
    const hd_allocator *allocator = takes->host->allocator;
    const uint32_t count = submission->cmds->slot_count;
    hdi_take *take = hdi_alloc(allocator, takes->take_bytes);
    if (!take) return no_memory(takes, error);
    hdi_list_add(&recording->takes, &take->used.link);
    const bool room = hdi_grow(allocator, &take->keys, &take->key_capacity, count, sizeof *take->keys);
    for (uint32_t i = 0; i < count && room; i++) take->keys[i] = key_of(&submission->slots[i]);
    take->key_count = count;
    hd_status status = room ? takes->make(takes->device, submission, take, error) : no_memory(takes, error);
    if (status) end_take(takes, take);
    else recording->take_count++;
    return status;
}

static hdi_recording *recording_of(hdi_takes *takes, const hdi_submission *submission) {
    if (*submission->recording) return *submission->recording;
    hdi_recording *recording = hdi_alloc(takes->host->allocator, sizeof *recording);
    if (!recording) return NULL;
    hdi_list_init(&recording->takes);
    hdi_list_add(&takes->recordings, &recording->link);
    return *submission->recording = recording;
}

hd_status hdi_takes_get(hdi_takes *takes, const hdi_submission *submission, hdi_take **out_take, bool *out_new, hd_error *error) {
    hdi_recording *recording = recording_of(takes, submission);
    *out_new = false;
    if (!recording) return no_memory(takes, error);
    for (hdi_link *at = recording->takes.next; at != &recording->takes; at = at->next) {
        *out_take = HDI_OBJECT(at, hdi_take, used.link);
        if (fits(*out_take, submission)) return HD_OK;
    }
    hd_status status = make_take(takes, submission, recording, error);
    if (status) {
        *out_take = NULL;
        return status;
    }
    *out_take = HDI_OBJECT(recording->takes.previous, hdi_take, used.link);
    *out_new = true;
    if (recording->take_count > TAKES_KEPT) { /* the oldest goes */
        recording->take_count--;
        hdi_used_free_later(HDI_OBJECT(recording->takes.next, hdi_used, link), &takes->dead);
    }
    return HD_OK;
}
