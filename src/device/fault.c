/* fault.c: calls of a device that fail on purpose, as HEDDLE_FAULT asks for them. They fail here, in front of the back
 * end: the driver never sees the call, and what is under way ends as it would. */
#include "device/device.h"

static const char *const calls[HDI_FAULT_CALLS] = { "alloc", "kernel", "submit", "wait" };

/* The part of a word up to `mark`, which is taken off; the rest of it without one. */
static hdi_span part_next(hdi_span *word, char mark) {
    const char *end = memchr(word->at, mark, (size_t)(word->end - word->at));
    const hdi_span part = { word->at, end ? end : word->end };
    word->at = end ? end + 1 : word->end;
    return part;
}

static hd_status status_called(hdi_span name) {
#define STATUS(code, number, text, ...) \
    if (number && hdi_word_is(name, text)) return HD_STATUS_##code;
    HD_STATUS_LIST(STATUS)
#undef STATUS
    return HD_OK;
}

static bool read_one(hdi_faults *faults, hdi_span word) {
    const hdi_span call = part_next(&word, ':');
    hdi_span number = part_next(&word, ':');
    const hd_status status = status_called(word);
    const bool on = number.end > number.at && number.end[-1] == '+';
    uint64_t first;
    number.end -= on;
    if (faults->count == HDI_MOST_FAULTS || !status || !hdi_whole_read(number, UINT32_MAX, &first) || first == 0)
        return false;
    for (uint32_t i = 0; i < HDI_FAULT_CALLS; i++) {
        if (!hdi_word_is(call, calls[i])) continue;
        faults->of[faults->count].call = (hdi_fault_call)i;
        faults->of[faults->count].first = first;
        faults->of[faults->count].last = on ? UINT64_MAX : first;
        faults->of[faults->count++].status = status;
        return true;
    }
    return false;
}

bool hdi_faults_read(hdi_faults *faults, const char *text) {
    hdi_span rest = { text, text + strlen(text) };
    bool right = true;
    while (right && rest.at < rest.end) right = read_one(faults, part_next(&rest, ','));
    return right;
}

hd_status hdi_fault(hd_device *device, hdi_fault_call call, hd_error *error) {
    const hdi_faults *faults = device->host->faults;
    if (!faults) return HD_OK;
    const uint64_t number = atomic_fetch_add(&device->calls[call], 1) + 1;
    for (uint32_t i = 0; i < faults->count; i++)
        if (faults->of[i].call == call && number >= faults->of[i].first && number <= faults->of[i].last)
            return hdi_fail_native(error, faults->of[i].status, device->backend->name, 0,
                                   "%s number %llu fails, as HEDDLE_FAULT asks", calls[call],
                                   (unsigned long long)number);
    return HD_OK;
}
