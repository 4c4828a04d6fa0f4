/* memory.c: allocations that notice what is written beside them. Behind each lies a page that cannot be touched, so that
 * running over the end (a multiple of 256 bytes) stops at the very instruction; what lies between is filled with a pattern
 * that is looked at when the memory ends. */
#define _GNU_SOURCE
#include "standin.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 256, PAGE = 65536, GUARD = 0xC5, FRESH = 0xA5 };

typedef struct allocation {
    char  *memory;
    size_t bytes, mapped_bytes;
    bool   on_host;
    void  *registered; /* as it was given: the host's own, and `memory` the pages around it; NULL: an allocation */
    struct allocation *next;
} allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static allocation     *all;
static uint64_t        used;

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static char *mapping_of(const allocation *a) { return a->memory + round_up(a->bytes, ALIGN) + PAGE - a->mapped_bytes; }

uint64_t standin_memory_bytes(void) { return standin_environment("HEDDLE_STANDIN_MEMORY", UINT64_C(4) << 30); }
uint64_t standin_memory_used(void) {
    pthread_mutex_lock(&lock);
    const uint64_t result = used;
    pthread_mutex_unlock(&lock);
    return result;
}

standin_status standin_alloc(size_t bytes, bool on_host, void **out) {
    if (!bytes) return STANDIN_INVALID_VALUE;
    if (bytes > standin_memory_bytes() || (!on_host && bytes > standin_memory_bytes() - standin_memory_used())) return STANDIN_OUT_OF_MEMORY;
    const size_t data_bytes = round_up(bytes, ALIGN), filled = round_up(data_bytes, PAGE), mapped = filled + (size_t)2 * PAGE;
    char *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    allocation *a = malloc(sizeof *a);
    if (mapping == MAP_FAILED || !a) {
        if (mapping != MAP_FAILED) munmap(mapping, mapped);
        free(a);
        return STANDIN_OUT_OF_MEMORY;
    }
    mprotect(mapping, PAGE, PROT_NONE);
    mprotect(mapping + PAGE + filled, PAGE, PROT_NONE);
    *a = (allocation){ mapping + PAGE + filled - data_bytes, bytes, mapped, on_host, NULL, NULL };
    memset(mapping + PAGE, GUARD, filled - data_bytes);
    /* Rubbish in what is small; writing all of a large one would only cost time. */
    memset(a->memory, FRESH, bytes < (1u << 24) ? bytes : 1u << 24);
    memset(a->memory + bytes, GUARD, data_bytes - bytes);
    pthread_mutex_lock(&lock);
    a->next = all;
    all = a;
    used += on_host ? 0 : data_bytes;
    pthread_mutex_unlock(&lock);
    *out = a->memory;
    return STANDIN_OK;
}

static void check(const allocation *a) {
    const char *begin = mapping_of(a) + PAGE, *end = mapping_of(a) + a->mapped_bytes - PAGE;
    for (const char *at = begin; at < end; at++) {
        if (at == a->memory) at += a->bytes;
        if (at < end && (unsigned char)*at != GUARD)
            standin_abort("byte %lld of an allocation of %zu bytes was written", (long long)(at - a->memory), a->bytes);
    }
}

standin_status standin_free(void *memory, bool on_host) {
    if (!memory) return STANDIN_OK;
    standin_wait_all();
    pthread_mutex_lock(&lock);
    allocation **link = &all;
    while (*link && ((*link)->memory != memory || (*link)->on_host != on_host || (*link)->registered)) link = &(*link)->next;
    allocation *a = *link;
    if (a) *link = a->next;
    if (a && !on_host) used -= round_up(a->bytes, ALIGN);
    pthread_mutex_unlock(&lock);
    if (!a) return standin_refuse(STANDIN_INVALID_VALUE, "%p is no allocation that could be freed", memory);
    check(a);
    munmap(mapping_of(a), a->mapped_bytes);
    free(a);
    return STANDIN_OK;
}

/* ---- the host's own memory ---- */

static bool is_private(const void *page) {
    char line[512], may[5] = "";
    bool result = true;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, may) == 3 && from <= (uintptr_t)page && (uintptr_t)page < to) result = may[3] == 'p';
    }
    if (maps) fclose(maps);
    return result;
}

static allocation **find_registered(const char *from, const char *to) {
    allocation **link = &all;
    while (*link && (!(*link)->registered || to <= (*link)->memory || (*link)->memory + (*link)->bytes <= from)) link = &(*link)->next;
    return link;
}

standin_status standin_register(void *host, size_t bytes, bool read_only) {
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* of Linux 5.14: pages as if they were read, or written */
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), within = (uintptr_t)host % page;
    char *pages = (char *)host - within;
    const size_t page_bytes = round_up(within + bytes, page);
    if (read_only && is_private(pages)) standin_abort("private pages at %p are registered to read alone: a driver may hang", host);
    if (madvise(pages, page_bytes, read_only ? POPULATE_READ : POPULATE_WRITE))
        return standin_refuse(STANDIN_INVALID_VALUE, "the pages at %p cannot be %s", host, read_only ? "read" : "written");
    allocation *a = malloc(sizeof *a);
    if (!a) return STANDIN_OUT_OF_MEMORY;
    *a = (allocation){ .memory = pages, .bytes = page_bytes, .on_host = true, .registered = host };
    pthread_mutex_lock(&lock);
    const bool taken = *find_registered(pages, pages + page_bytes);
    if (!taken) {
        a->next = all;
        all = a;
    }
    pthread_mutex_unlock(&lock);
    if (taken) free(a);
    return taken ? standin_refuse(STANDIN_REGISTERED, "pages at %p are registered already", host) : STANDIN_OK;
}

standin_status standin_unregister(void *host) {
    unsigned char there;
    standin_wait_all();
    pthread_mutex_lock(&lock);
    allocation **link = find_registered(host, (char *)host + 1), *a = *link;
    if (a && a->registered == host) *link = a->next;
    else a = NULL;
    pthread_mutex_unlock(&lock);
    if (!a) return standin_refuse(STANDIN_NOT_REGISTERED, "%p is not registered", host);
    for (size_t at = 0; at < a->bytes; at += (size_t)sysconf(_SC_PAGESIZE))
        if (mincore(a->memory + at, 1, &there)) standin_abort("pages at %p went while they were registered", host);
    free(a);
    return STANDIN_OK;
}

void standin_registered_none(void) {
    pthread_mutex_lock(&lock);
    for (const allocation *a = all; a; a = a->next)
        if (a->registered) standin_abort("%zu bytes at %p are still registered as the device ends", a->bytes, a->registered);
    pthread_mutex_unlock(&lock);
}

static bool holds(const void *memory, size_t bytes, bool on_host_only) {
    const uintptr_t from = (uintptr_t)memory;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const allocation *a = all; a && !found; a = a->next) {
        const uintptr_t begin = (uintptr_t)a->memory;
        found = from >= begin && from - begin < a->bytes && bytes <= a->bytes - (from - begin) && (a->on_host || !on_host_only);
    }
    pthread_mutex_unlock(&lock);
    return found;
}
bool standin_holds(const void *memory, size_t bytes) { return holds(memory, bytes, false); }
bool standin_holds_on_host(const void *memory, size_t bytes) { return holds(memory, bytes, true); }
