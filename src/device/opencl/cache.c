/* cache.c: compiled programs on disk, one file each, named by their key: a hash of the text, the options, the device and its
 * driver, so that a changed kernel or printer is never taken for an old one. A file is written beside its place and then
 * moved there. Nothing here can make a load fail. */
#define _GNU_SOURCE
#include "device/opencl/cl.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CACHE_MAGIC      0x4C434448u /* "HDCL" */
#define CACHE_VERSION    1u
#define CACHE_MOST_BYTES (UINT64_C(64) << 20)

typedef struct cache_head {
    uint32_t magic, version;
    uint64_t key, identity, bytes, checksum;
} cache_head;

static uint64_t identity_of(const hdi_backend_device *device) {
    return hdi_hash(HDI_HASH_START, device->facts.identity, strlen(device->facts.identity));
}

uint64_t hdcl_cache_key(const hdi_backend_device *device, const hdi_text *source, const char *options) {
    return hdi_hash(hdi_hash(identity_of(device), source->bytes, source->count), options, strlen(options));
}

static bool path_of(const hdi_backend_device *device, uint64_t key, const char *ending, char *out_path, size_t room) {
    const int used = snprintf(out_path, room, "%s/opencl-%016llx%s", device->host->cache_dir, (unsigned long long)key, ending);
    return used > 0 && (size_t)used < room;
}

static cache_head head_of(const hdi_backend_device *device, uint64_t key, const void *bytes, size_t count) {
    return (cache_head){ CACHE_MAGIC, CACHE_VERSION, key, identity_of(device), count, hdi_hash(HDI_HASH_START, bytes, count) };
}

void *hdcl_cache_read(const hdi_backend_device *device, uint64_t key, size_t *out_bytes) {
    char path[1024];
    cache_head head;
    *out_bytes = 0;
    if (!device->host->cache_dir || !path_of(device, key, ".bin", path, sizeof path)) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    const bool headed = fread(&head, sizeof head, 1, file) == 1 && head.bytes > 0 && head.bytes <= CACHE_MOST_BYTES;
    void *data = headed ? hdi_alloc(device->host->allocator, (size_t)head.bytes) : NULL;
    bool good = data && fread(data, (size_t)head.bytes, 1, file) == 1 && fgetc(file) == EOF;
    fclose(file);
    if (good) {
        const cache_head wanted = head_of(device, key, data, (size_t)head.bytes);
        good = memcmp(&wanted, &head, sizeof head) == 0;
    }
    if (good) {
        *out_bytes = (size_t)head.bytes;
        return data;
    }
    if (headed) hdi_free(device->host->allocator, data, (size_t)head.bytes);
    hdi_log_line(device->host->log, HD_LOG_INFO, "opencl", "%s is damaged and is made anew", path);
    return NULL;
}

void hdcl_cache_write(const hdi_backend_device *device, uint64_t key, const void *bytes, size_t count) {
    char path[1024], beside[1024], ending[64];
    snprintf(ending, sizeof ending, ".%ld-%p", (long)getpid(), (const void *)device); /* no two writers share a file */
    if (!path_of(device, key, ".bin", path, sizeof path) || !path_of(device, key, ending, beside, sizeof beside)) return;
    const cache_head head = head_of(device, key, bytes, count);
    FILE *file = fopen(beside, "wb");
    bool good = file && fwrite(&head, sizeof head, 1, file) == 1 && fwrite(bytes, count, 1, file) == 1;
    if (file && fclose(file) != 0) good = false;
    if (good && rename(beside, path) == 0) return;
    hdi_log_line(device->host->log, HD_LOG_INFO, "opencl", "%s could not be written (%d)", path, errno);
    if (file) remove(beside);
}
