/* registry.c: which back ends there are, what they found, and which device to take: real GPU before integrated before
 * the CPU before software drivers, and by their times once these were measured; the choice can always say why. */
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>

/* In the order in which they are tried; a back end that is not part of the build has no table. */
static const hdi_registered all[] = {
#if defined(HEDDLE_VULKAN)
    { &hdi_backend_vulkan, "vulkan", NULL },
#else
    { NULL, "vulkan", NULL },
#endif
#if defined(HEDDLE_CUDA)
    { &hdi_backend_cuda, "cuda", NULL },
#else
    { NULL, "cuda", NULL },
#endif
#if defined(HEDDLE_HIP)
    { &hdi_backend_hip, "hip", NULL },
#else
    { NULL, "hip", NULL },
#endif
#if defined(HEDDLE_OPENCL)
    { &hdi_backend_opencl, "opencl", NULL },
#else
    { NULL, "opencl", NULL },
#endif
#if defined(HEDDLE_LEVELZERO)
    { &hdi_backend_levelzero, "levelzero", NULL },
#else
    { NULL, "levelzero", NULL },
#endif
#if defined(HEDDLE_WEBGPU)
    { &hdi_backend_webgpu, "webgpu", NULL },
#else
    { NULL, "webgpu", NULL },
#endif
    { &hdi_backend_cpu, "cpu", NULL },
    { &hdi_backend_null, "null", NULL },
};

static int kind_rank(hd_device_kind kind) {
    switch (kind) {
    case HD_DEVICE_DISCRETE_GPU: return 0;
    case HD_DEVICE_INTEGRATED_GPU: return 1;
    case HD_DEVICE_OTHER: return 2;
    case HD_DEVICE_CPU: return 3;
    case HD_DEVICE_SOFTWARE: return 4;
    case HD_DEVICE_NULL:
    case HD_DEVICE_NONE: break;
    }
    return 5;
}

static void swap(hdi_registry *registry, uint32_t a, uint32_t b) {
    hdi_found *found = registry->ranked[a];
    registry->ranked[a] = registry->ranked[b];
    registry->ranked[b] = found;
}

static bool is_real(const hdi_found *found) { return kind_rank(found->info.kind) < kind_rank(HD_DEVICE_SOFTWARE); }

/* Have both times to compare? Software comes behind what is real, whatever it takes. */
static bool comparable(const hdi_found *a, const hdi_found *b) {
    return a->info.measured_ns && b->info.measured_ns && is_real(a) == is_real(b);
}

/* Are both routes to one GPU? */
static bool is_same_gpu(const hdi_found *a, const hdi_found *b) {
    return a->info.pci[0] && strcmp(a->info.pci, b->info.pci) == 0 && a->info.kind == b->info.kind;
}

/* How many names of a list such as "cuda,vulkan" stand before this one; -1: it is not in there. */
static int place_in(const char *list, const char *name) {
    const size_t length = strlen(name);
    int place = 0;
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length])) return place;
        place++;
    }
    return -1;
}

/* By the order that was asked for, then by kind. */
static int order_of(const hdi_registry *registry, const hdi_found *found) {
    return (registry->wanted ? place_in(registry->wanted, found->info.backend) * 8 : 0) + kind_rank(found->info.kind);
}

void hdi_registry_rank(hdi_registry *registry) {
    hdi_found *const *ranked = registry->ranked;
    const uint32_t count = registry->ranked_count;
    for (uint32_t i = 1; i < count; i++) /* stable: of equal devices the one found first stays first */
        for (uint32_t k = i; k > 0 && order_of(registry, ranked[k]) < order_of(registry, ranked[k - 1]); k--)
            swap(registry, k, k - 1);
    if (registry->wanted && strchr(registry->wanted, ',')) { /* no measured time changes it */
        for (uint32_t i = 0; i < count; i++) ranked[i]->info.rank = i;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++)
            if (comparable(ranked[i], ranked[k]) && ranked[k]->info.measured_ns < ranked[i]->info.measured_ns)
                swap(registry, i, k);
    for (uint32_t i = 0; i < count; i++) ranked[i]->info.rank = i;
}

/* Are all names of the list back ends? */
static hd_status check_wanted(const char *wanted, hd_error *error) {
    for (const char *at = wanted; at; at = strchr(at, ',')) {
        at += *at == ',';
        const size_t length = strcspn(at, ",");
        bool known = false;
        for (size_t i = 0; i < HDI_COUNT(all); i++)
            known |= strlen(all[i].name) == length && strncmp(all[i].name, at, length) == 0;
        if (!known)
            return hdi_fail(
                error, HD_STATUS_NO_DEVICE,
                "no back end is called \"%.*s\": there are vulkan, cuda, hip, opencl, levelzero, webgpu, cpu and null",
                (int)length, at);
    }
    return HD_OK;
}

hd_status hdi_registry_probe(hdi_registry *registry, const hdi_host *host, const char *wanted, hd_error *error) {
    memset(registry, 0, sizeof *registry);
    registry->host = host;
    registry->wanted = wanted;
    const hd_status status = check_wanted(wanted, error);
    if (status) return status;
    for (size_t i = 0; i < HDI_COUNT(all); i++) {
        hdi_registered *row = &registry->rows[registry->count++];
        *row = all[i];
        if ((wanted && place_in(wanted, row->name) < 0) || !row->backend) continue;
        row->probe = hdi_alloc(host->allocator, sizeof *row->probe);
        if (!row->probe) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to look for devices");
        row->backend->probe(host, row->probe);
        for (uint32_t d = 0; d < row->probe->found_count; d++) {
            hdi_found *found = registry->ranked[registry->ranked_count++] = &row->probe->found[d];
            if (found->info.queues == 0 || host->one_queue) found->info.queues = 1;
        }
    }
    hdi_registry_rank(registry);
    return HD_OK;
}

void hdi_registry_free(hdi_registry *registry) {
    for (uint32_t i = 0; i < registry->count; i++)
        hdi_free(registry->host->allocator, registry->rows[i].probe, sizeof(hdi_probe));
    memset(registry, 0, sizeof *registry);
}

const hdi_backend *hdi_registry_backend(const hdi_registry *registry, const hdi_found *found) {
    for (uint32_t i = 0; i < registry->count; i++)
        if (strcmp(registry->rows[i].name, found->info.backend) == 0) return registry->rows[i].backend;
    return NULL;
}

hd_backend_info hdi_registry_tell(const hdi_registered *row) {
    hd_backend_info info = { .compiled = row->backend != NULL };
    snprintf(info.name, sizeof info.name, "%s", row->name);
    if (!row->backend) {
        snprintf(info.reason, sizeof info.reason, "not part of this build");
        snprintf(info.mend, sizeof info.mend, "build heddle where its headers are installed, without HEDDLE_WITHOUT=%s",
                 row->name);
    } else if (!row->probe)
        snprintf(info.reason, sizeof info.reason, "not looked at: another back end was asked for");
    else {
        info.device_count = row->probe->found_count;
        info.available = info.device_count > 0;
        snprintf(info.reason, sizeof info.reason, "%s", row->probe->reason);
        snprintf(info.mend, sizeof info.mend, "%s", row->probe->mend);
    }
    return info;
}

/* "ID", "backend", "backend:index", or an index into the ranked list. */
static const hdi_found *find(const hdi_registry *registry, const char *request) {
    for (uint32_t i = 0; i < registry->ranked_count; i++)
        if (strcmp(registry->ranked[i]->info.id, request) == 0) return registry->ranked[i];
    size_t digits = strspn(request, "0123456789");
    if (digits > 0 && digits < 6 && request[digits] == 0) {
        unsigned long index = strtoul(request, NULL, 10);
        return index < registry->ranked_count ? registry->ranked[index] : NULL;
    }
    size_t name = strcspn(request, ":");
    const char *index_text = request[name] == ':' ? request + name + 1 : "0";
    if (strlen(index_text) == 0 || strlen(index_text) > 5 || strspn(index_text, "0123456789") != strlen(index_text))
        return NULL;
    unsigned long index = strtoul(index_text, NULL, 10);
    for (uint32_t i = 0; i < registry->ranked_count; i++) {
        const hd_device_info *info = &registry->ranked[i]->info;
        if (strlen(info->backend) == name && strncmp(info->backend, request, name) == 0 && index-- == 0)
            return registry->ranked[i];
    }
    return NULL;
}

/* Why the best device is the best. */
static const char *why_best(const hdi_registry *registry, const hdi_found *best) {
    if (registry->wanted && strchr(registry->wanted, ','))
        return "the first real device in the order that was asked for";
    const char *why = best->info.kind == HD_DEVICE_CPU ? "no GPU is there" : "the best real device";
    for (uint32_t i = 1; i < registry->ranked_count; i++) {
        if (!comparable(best, registry->ranked[i])) continue;
        if (!is_same_gpu(best, registry->ranked[i])) return "the fastest real device, as measured";
        why = "the best real device, by its fastest route as measured";
    }
    return why;
}

/* Why a device was not taken in place of the best one. */
static const char *why_passed(const hdi_registry *registry, const hdi_found *best, const hdi_found *found) {
    if (found->info.kind == HD_DEVICE_NULL) return "computes nothing";
    if (found->info.kind == HD_DEVICE_SOFTWARE) return "a software driver";
    if (registry->wanted && strchr(registry->wanted, ',')) return "later in the order that was asked for";
    if (comparable(best, found))
        return is_same_gpu(best, found) ? "the same GPU by a slower route, as measured" : "slower, as measured";
    if (best->info.pci[0] && strcmp(best->info.pci, found->info.pci) == 0) return "the same GPU by another route";
    if (kind_rank(found->info.kind) == kind_rank(best->info.kind)) return "found later";
    return found->info.kind == HD_DEVICE_CPU ? "a GPU is there" : "a faster kind of GPU is there";
}

/* Of a back end that was asked for and has no device: why, and what to do. `request` NULL: the only one that was looked
 * at. */
static bool tell_why_none(const hdi_registry *registry, const char *request, hd_status *out_status, hd_error *error) {
    for (uint32_t i = 0; i < registry->count; i++) {
        const hdi_registered *row = &registry->rows[i];
        const size_t length = strlen(row->name);
        const bool meant =
            request ? strncmp(request, row->name, length) == 0 &&
                          (!request[length] || request[length] == ':')
                    : row->probe != NULL || (registry->wanted && place_in(registry->wanted, row->name) >= 0);
        if (!meant || (row->probe && row->probe->found_count > 0)) continue;
        if (row->probe)
          *out_status =
              hdi_fail(error, HD_STATUS_NO_DEVICE, "%s has no device: %s; %s",
                       row->name, row->probe->reason, row->probe->mend);
        else
          *out_status = hdi_fail(
              error, HD_STATUS_NO_DEVICE, "%s has no device: %s", row->name,
              row->backend ? "HEDDLE_BACKEND names another back end; unset it"
                           : "it is not built in; build heddle with it");
        return true;
    }
    return false;
}

hd_status hdi_registry_select(const hdi_registry *registry, const char *request, bool strict,
                              const hdi_found **out_found, char *out_why, size_t why_room, hd_error *error) {
    char detected[256];
    size_t at = 0;
    detected[0] = 0;
    for (uint32_t i = 0; i < registry->ranked_count && at < sizeof detected; i++)
        at +=
            (size_t)snprintf(detected + at, sizeof detected - at, "%s%s", i ? ", " : "", registry->ranked[i]->info.id);
    const hdi_found *found = NULL;
    const char *why = "named";
    if (request) found = find(registry, request);
    for (uint32_t i = 0; i < registry->ranked_count && !request && !found; i++)
        if (is_real(registry->ranked[i])) found = registry->ranked[i];
    if (!request && found) why = why_best(registry, found);
    else if (!request && registry->ranked_count > 0 && registry->ranked_count == 1 && !strict) {
        found = registry->ranked[0]; /* the one back end that was asked for has nothing better */
        why = "the only one there is";
    }
    hd_status status;
    if (!found && (request || registry->ranked_count == 0) && tell_why_none(registry, request, &status, error))
        return status;
    if (!found && request)
        return hdi_fail(error, HD_STATUS_NO_DEVICE, "no device is called \"%s\"; there are: %s", request,
                        detected[0] ? detected : "none");
    if (!found)
        return hdi_fail(error, HD_STATUS_NO_DEVICE, "no real device; there are: %s; name one to take it",
                        detected[0] ? detected : "none");
    if (strict && !is_real(found))
        return hdi_fail(error, HD_STATUS_STRICT, "strict mode takes no software or null device, and \"%s\" is one",
                        found->info.id);
    const char *warning =
        found->info.kind == HD_DEVICE_SOFTWARE ? " warning=\"a software driver: this computes on the CPU\"" : "";
    at = (size_t)snprintf(out_why, why_room, "requested=%s detected=[%s] selected=%s because=\"%s\"%s",
                          request ? request : "best", detected, found->info.id, why, warning);
    for (uint32_t i = 0; i < registry->ranked_count && !request && at < why_room; i++)
        if (registry->ranked[i] != found)
            at += (size_t)snprintf(out_why + at, why_room - at, " passed=%s:\"%s\"", registry->ranked[i]->info.id,
                                   why_passed(registry, found, registry->ranked[i]));
    *out_found = found;
    return HD_OK;
}
