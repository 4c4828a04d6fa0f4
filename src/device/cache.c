/* cache.c: compiled kernels in files of the cache's folder (base/files.c). Nothing here can make a load fail. */
#include "device/cache.h"
#include <errno.h>
#include <stdatomic.h>

#define CACHE_MAGIC      0x43444548u /* "HEDC" */
#define CACHE_VERSION    1u
#define CACHE_MOST_BYTES (UINT64_C(64) << 20)

typedef struct cache_head {
    uint32_t magic, version;
    uint64_t key, identity, bytes, checksum;
} cache_head;
_Static_assert(sizeof(cache_head) == 40, "no padding goes to disk");

static bool path_of(const hdi_cache *cache, uint64_t key, char *out_path, size_t room) {
    /* devices do not push out each other's */
    const uint64_t name = hdi_hash(key, &cache->identity, sizeof cache->identity);
    const int used =
        snprintf(out_path, room, "%s/%s-%016llx.bin", cache->host->cache_dir, cache->backend, (unsigned long long)name);
    return used > 0 && (size_t)used < room;
}

static cache_head head_of(const hdi_cache *cache, uint64_t key, const void *bytes, size_t count) {
    const uint64_t hash = hdi_hash(HDI_HASH_START, bytes, count);
    return (cache_head){ CACHE_MAGIC, CACHE_VERSION, key, cache->identity, count, hash };
}

void *hdi_cache_read(const hdi_cache *cache, uint64_t key, size_t *out_bytes) {
    const hd_allocator *allocator = cache->host->allocator;
    char path[1024];
    cache_head head;
    *out_bytes = 0;
    if (!cache->host->cache_dir || !path_of(cache, key, path, sizeof path)) return NULL;
    FILE *file = hdi_file_open(path);
    if (!file) return NULL;
    const bool headed = fread(&head, sizeof head, 1, file) == 1 && head.bytes > 0 && head.bytes <= CACHE_MOST_BYTES;
    void *data = headed ? hdi_alloc(allocator, (size_t)head.bytes) : NULL;
    bool good = data && fread(data, (size_t)head.bytes, 1, file) == 1 && fgetc(file) == EOF;
    fclose(file);
    if (good) {
        const cache_head wanted = head_of(cache, key, data, (size_t)head.bytes);
        good = memcmp(&wanted, &head, sizeof head) == 0;
    }
    if (good) {
        *out_bytes = (size_t)head.bytes;
        return data;
    }
    if (headed) hdi_free(allocator, data, (size_t)head.bytes);
    hdi_log_line(cache->host->log, HD_LOG_INFO, cache->backend, "%s is damaged and is made anew", path);
    return NULL;
}

void hdi_cache_write(const hdi_cache *cache, uint64_t key, const void *bytes, size_t count) {
    static atomic_flag told = ATOMIC_FLAG_INIT; /* a full disk is told once, and not for every kernel */
    char path[1024];
    if (!cache->host->cache_dir || !path_of(cache, key, path, sizeof path)) return;
    const cache_head head = head_of(cache, key, bytes, count);
    if (hdi_file_replace(path, (const hdi_piece[]){ { &head, sizeof head }, { bytes, count } }, 2)) return;
    const int why = errno;
    hdi_log_line(cache->host->log, atomic_flag_test_and_set(&told) ? HD_LOG_INFO : HD_LOG_WARNING, cache->backend,
                 "%s could not be written (%s): compiled kernels are not kept", path, strerror(why));
}
