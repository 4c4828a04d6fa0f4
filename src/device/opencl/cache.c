/* cache.c: compiled programs on disk, one file each, named by their key, with what is known of the kernel's arguments. A
 * file is written beside its place and then moved there. Nothing here can make a load fail. */
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
    uint64_t printed_bytes; /* the struct is as this build has it */
    uint64_t key, identity, bytes, checksum;
} cache_head;

uint64_t hdcl_cache_key(const hdi_backend_device *device, const hdi_blob *blob, const hdi_kernel *kernel, const char *options) {
    const char *entry = blob->entry ? blob->entry : "main", *version = hd_version();
    uint64_t key = hdi_hash(HDI_HASH_START, blob->words, blob->word_count * 4);
    key = hdi_hash(key, entry, strlen(entry));
    key = hdi_hash(key, kernel->spec, HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC) * sizeof *kernel->spec);
    key = hdi_hash(key, &kernel->spec_count, sizeof kernel->spec_count);
    key = hdi_hash(key, &kernel->subgroup, sizeof kernel->subgroup);
    key = hdi_hash(key, &device->facts.offers, sizeof device->facts.offers);
    key = hdi_hash(key, device->facts.identity, strlen(device->facts.identity));
    key = hdi_hash(key, version, strlen(version)); /* whose printer it was */
    return hdi_hash(key, options, strlen(options));
}

static bool path_of(const hdi_backend_device *device, uint64_t key, const char *ending, char *out_path, size_t room) {
    const int used = snprintf(out_path, room, "%s/opencl-%016llx%s", device->host->cache_dir, (unsigned long long)key, ending);
    return used > 0 && (size_t)used < room;
}

static cache_head head_of(const hdi_backend_device *device, uint64_t key, const hdcl_cached *cached) {
    const uint64_t checksum = hdi_hash(hdi_hash(HDI_HASH_START, &cached->printed, sizeof cached->printed), cached->binary, cached->bytes);
    return (cache_head){ CACHE_MAGIC, CACHE_VERSION, sizeof cached->printed, key,
                         hdi_hash(HDI_HASH_START, device->facts.identity, strlen(device->facts.identity)), cached->bytes, checksum };
}

bool hdcl_cache_read(const hdi_backend_device *device, uint64_t key, hdcl_cached *out_cached) {
    char path[1024];
    cache_head head;
    memset(out_cached, 0, sizeof *out_cached);
    if (!device->host->cache_dir || !path_of(device, key, ".bin", path, sizeof path)) return false;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool good = fread(&head, sizeof head, 1, file) == 1 && head.printed_bytes == sizeof out_cached->printed && head.bytes > 0 && head.bytes <= CACHE_MOST_BYTES;
    good = good && fread(&out_cached->printed, sizeof out_cached->printed, 1, file) == 1;
    if (good) out_cached->binary = hdi_alloc(device->host->allocator, (size_t)head.bytes);
    if (out_cached->binary) out_cached->bytes = (size_t)head.bytes;
    good = good && out_cached->binary && fread(out_cached->binary, out_cached->bytes, 1, file) == 1 && fgetc(file) == EOF;
    fclose(file);
    if (good) {
        const cache_head wanted = head_of(device, key, out_cached);
        good = memcmp(&wanted, &head, sizeof head) == 0;
    }
    if (good) return true;
    hdi_free(device->host->allocator, out_cached->binary, out_cached->bytes);
    memset(out_cached, 0, sizeof *out_cached);
    hdi_log_line(device->host->log, HD_LOG_INFO, "opencl", "%s is damaged and is made anew", path);
    return false;
}

void hdcl_cache_write(const hdi_backend_device *device, uint64_t key, const hdcl_cached *cached) {
    char path[1024], beside[1024], ending[64];
    snprintf(ending, sizeof ending, ".%ld-%p", (long)getpid(), (const void *)device); /* no two writers share a file */
    if (!path_of(device, key, ".bin", path, sizeof path) || !path_of(device, key, ending, beside, sizeof beside)) return;
    const cache_head head = head_of(device, key, cached);
    FILE *file = fopen(beside, "wb");
    bool good = file && fwrite(&head, sizeof head, 1, file) == 1 && fwrite(&cached->printed, sizeof cached->printed, 1, file) == 1 &&
                fwrite(cached->binary, cached->bytes, 1, file) == 1;
    if (file && fclose(file) != 0) good = false;
    if (good && rename(beside, path) == 0) return;
    hdi_log_line(device->host->log, HD_LOG_INFO, "opencl", "%s could not be written (%d)", path, errno);
    if (file) remove(beside);
}
