/* metrics.c: what is counted, in the text format of Prometheus:
 * https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "device/device.h"
#include <stdio.h>

/* The counters of a device. */
static const struct metric { size_t at; const char *name, *type, *help; } metrics[] = {
#define METRIC(member, name, type, help) { offsetof(hd_device_stats, member), name, type, help }
    METRIC(submissions, "runs_total", "counter", "runs of plans that were handed over"),
    METRIC(pieces, "queue_submissions_total", "counter", "submissions to the device's queue for them"),
    METRIC(transfer_submissions, "transfer_submissions_total", "counter", "submissions that only move data"),
    METRIC(commands_recorded, "commands_recorded_total", "counter",
           "commands of plans that were encoded; 0 for a replay"),
    METRIC(kernels_compiled, "kernels_compiled_total", "counter", "kernels that the driver compiled"),
    METRIC(kernels_from_cache, "kernels_from_cache_total", "counter", "kernels from the cache on disk"),
    METRIC(upload_bytes, "upload_bytes_total", "counter", "bytes from the host to the device"),
    METRIC(download_bytes, "download_bytes_total", "counter", "bytes from the device to the host"),
    METRIC(direct_bytes, "direct_bytes_total", "counter", "bytes of both that needed no staging"),
    METRIC(plan_requests, "plans_total", "counter", "plans that were asked for"),
    METRIC(plan_hits, "plans_reused_total", "counter", "plans that were there already"),
    METRIC(contracts, "contracts_total", "counter", "contracts of plans and submissions that were checked"),
    METRIC(contracts_broken, "contracts_broken_total", "counter", "contracts that did not hold"),
    METRIC(device_bytes, "memory_bytes", "gauge", "memory held on the device"),
    METRIC(device_bytes_peak, "memory_peak_bytes", "gauge", "the most that was held"),
    METRIC(allocations, "allocations", "gauge", "allocations alive"),
#undef METRIC
};

/* What drivers tell of each heap. */
static const struct heap_metric { size_t at; const char *name, *help; } heap_metrics[] = {
    { offsetof(hd_heap, size_bytes), "heap_bytes", "memory of a heap" },
    { offsetof(hd_heap, used_bytes), "heap_used_bytes",
      "memory of a heap that is taken now: by this process (CPU, Vulkan) or by all (CUDA, HIP)" },
    { offsetof(hd_heap, budget_bytes), "heap_budget_bytes", "how far heap_used_bytes may grow now" },
};

static const char *const kind_names[] = { "buffer", "input", "state", "output", "scratch", "constant", "staging" };
_Static_assert(HDI_COUNT(kind_names) == HD_MEMORY_KINDS, "a name for each kind");

const char *hd_memory_kind_name(hd_memory_kind kind) {
    return (unsigned)kind < HD_MEMORY_KINDS ? kind_names[kind] : "unknown";
}

/* What was seen of a device at one moment. */
typedef struct seen {
    const hd_device_info *info;
    hd_device_stats stats;
    uint64_t kinds[HD_MEMORY_KINDS];
    hd_heap  heaps[HD_MAX_HEAPS];
    uint32_t heap_count;
    bool     lost;
} seen;

static void look(hd_device *device, seen *out) {
    *out = (seen){ .info = &device->found.info };
    out->heap_count = hdi_device_heaps(device, out->heaps);
    hdi_mutex_lock(&device->lock);
    out->stats = device->stats;
    out->lost = device->lost != HD_OK;
    for (uint32_t i = 0; i < device->holdings.capacity; i++)
        if (device->holdings.of[i].memory)
            out->kinds[device->holdings.of[i].info.kind] += device->holdings.of[i].info.bytes;
    hdi_mutex_unlock(&device->lock);
}

static void begin(hdi_text *text, const char *name, const char *type, const char *help) {
    hdi_text_add(text, "# HELP heddle_%s %s\n# TYPE heddle_%s %s\n", name, help, name, type);
}

void hdi_metrics_version(hdi_text *text) {
    begin(text, "info", "gauge", "the library");
    hdi_text_add(text, "heddle_info{version=\"%s\"} 1\n", hd_version());
}

void hdi_metrics_one(hdi_text *text, const char *name, const char *type, const char *help, uint64_t value) {
    begin(text, name, type, help);
    hdi_text_add(text, "heddle_%s %llu\n", name, (unsigned long long)value);
}

/* Ids come from drivers: what would end the label is left out. */
static void value_of(hdi_text *text, const char *name, const seen *device, const char *more, uint64_t value) {
    hdi_text_add(text, "heddle_device_%s{device=\"", name);
    for (const char *at = device->info->id; *at; at++)
        if (*at > ' ' && *at < 127 && *at != '"' && *at != '\\') hdi_text_add(text, "%c", *at);
    hdi_text_add(text, "\"%s} %llu\n", more, (unsigned long long)value);
}

static void print(hdi_text *text, const seen *devices, uint32_t count) {
    char more[48];
    for (size_t m = 0; m < HDI_COUNT(metrics); m++) {
        char name[64];
        snprintf(name, sizeof name, "device_%s", metrics[m].name);
        begin(text, name, metrics[m].type, metrics[m].help);
        for (uint32_t d = 0; d < count; d++) {
            uint64_t value;
            memcpy(&value, (const char *)&devices[d].stats + metrics[m].at, sizeof value);
            value_of(text, metrics[m].name, &devices[d], "", value);
        }
    }
    begin(text, "device_held_bytes", "gauge", "memory on the device by what it holds");
    for (uint32_t d = 0; d < count; d++)
        for (uint32_t kind = 0; kind < HD_MEMORY_KINDS; kind++) {
            snprintf(more, sizeof more, ",kind=\"%s\"", kind_names[kind]);
            value_of(text, "held_bytes", &devices[d], more, devices[d].kinds[kind]);
        }
    for (size_t m = 0; m < HDI_COUNT(heap_metrics); m++) {
        char name[64];
        snprintf(name, sizeof name, "device_%s", heap_metrics[m].name);
        begin(text, name, "gauge", heap_metrics[m].help);
        for (uint32_t d = 0; d < count; d++)
            for (uint32_t heap = 0; heap < devices[d].heap_count; heap++) {
                uint64_t value;
                memcpy(&value, (const char *)&devices[d].heaps[heap] + heap_metrics[m].at, sizeof value);
                snprintf(more, sizeof more, ",heap=\"%u\"", heap);
                value_of(text, heap_metrics[m].name, &devices[d], more, value);
            }
    }
    begin(text, "device_lost", "gauge", "1: the device was lost");
    for (uint32_t d = 0; d < count; d++) value_of(text, "lost", &devices[d], "", devices[d].lost);
}

void hdi_metrics_devices(hdi_text *text, const hdi_link *devices) {
    const uint32_t count = hdi_list_count(devices);
    seen *all = hdi_alloc(text->allocator, count * sizeof *all);
    uint32_t at = 0;
    if (count && !all) text->failed = true;
    for (hdi_link *link = devices->next; all && link != devices; link = link->next)
        look(HDI_OBJECT(link, hd_device, held.link), &all[at++]);
    print(text, all, at);
    hdi_free(text->allocator, all, count * sizeof *all);
}
