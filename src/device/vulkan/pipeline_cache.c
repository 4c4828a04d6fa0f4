/* pipeline_cache.c: compiled kernels on disk, one file each, named by their key. A file is written beside its place and
 * then moved there, so that a reader in another process sees the old one, the new one or none. A file that is cut,
 * damaged or of another device or driver is taken for absent and written anew. Nothing here can make a load fail. */
#define _GNU_SOURCE
#include "device/vulkan/vk.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CACHE_MAGIC      0x4B564448u /* "HDVK" */
#define CACHE_VERSION    1u
#define CACHE_MOST_BYTES (UINT64_C(64) << 20)

typedef struct cache_head {
    uint32_t magic, version;
    uint32_t vendor, device, driver, reserved;
    uint8_t  uuid[VK_UUID_SIZE];
    uint64_t key, bytes, checksum;
} cache_head;
_Static_assert(sizeof(cache_head) == 64, "no padding goes to disk");

uint64_t hdvk_cache_key(const hdi_backend_device *device, const hdi_blob *blob, const hdi_kernel *kernel) {
    const VkPhysicalDeviceProperties *properties = &device->facts.properties;
    const char *entry = blob->entry ? blob->entry : "main";
    uint64_t key = hdi_hash(HDI_HASH_START, &blob->hash, sizeof blob->hash);
    key = hdi_hash(key, blob->words, blob->word_count * 4); /* the digest names the sources; the words are what counts */
    key = hdi_hash(key, entry, strlen(entry));
    key = hdi_hash(key, kernel->spec, HDI_MIN(kernel->spec_count, (uint32_t)HDI_MAX_SPEC) * sizeof *kernel->spec);
    key = hdi_hash(key, &kernel->spec_count, sizeof kernel->spec_count);
    key = hdi_hash(key, &kernel->subgroup, sizeof kernel->subgroup);
    key = hdi_hash(key, &kernel->keep_subnormals, sizeof kernel->keep_subnormals);
    key = hdi_hash(key, &kernel->binding_count, sizeof kernel->binding_count);
    key = hdi_hash(key, &kernel->push_bytes, sizeof kernel->push_bytes);
    key = hdi_hash(key, properties->pipelineCacheUUID, VK_UUID_SIZE);
    return hdi_hash(key, &properties->driverVersion, sizeof properties->driverVersion);
}

static bool path_of(const hdi_backend_device *device, uint64_t key, const char *ending, char *out_path, size_t room) {
    const int used = snprintf(out_path, room, "%s/vulkan-%016llx%s", device->host->cache_dir, (unsigned long long)key, ending);
    return used > 0 && (size_t)used < room;
}

static cache_head head_of(const hdi_backend_device *device, uint64_t key, const void *bytes, size_t count) {
    const VkPhysicalDeviceProperties *properties = &device->facts.properties;
    cache_head head = {
        .magic = CACHE_MAGIC, .version = CACHE_VERSION, .vendor = properties->vendorID, .device = properties->deviceID,
        .driver = properties->driverVersion, .key = key, .bytes = count, .checksum = hdi_hash(HDI_HASH_START, bytes, count),
    };
    memcpy(head.uuid, properties->pipelineCacheUUID, VK_UUID_SIZE);
    return head;
}

void *hdvk_cache_read(const hdi_backend_device *device, uint64_t key, size_t *out_bytes) {
    char path[1024];
    cache_head head;
    *out_bytes = 0;
    if (!path_of(device, key, ".bin", path, sizeof path)) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    void *data = NULL;
    const bool headed = fread(&head, sizeof head, 1, file) == 1 && head.bytes > 0 && head.bytes <= CACHE_MOST_BYTES;
    if (headed) data = hdi_alloc(device->host->allocator, (size_t)head.bytes);
    bool good = false;
    if (data && fread(data, (size_t)head.bytes, 1, file) == 1 && fgetc(file) == EOF) {
        const cache_head wanted = head_of(device, key, data, (size_t)head.bytes);
        good = memcmp(&wanted, &head, sizeof head) == 0;
    }
    fclose(file);
    if (good) {
        *out_bytes = (size_t)head.bytes;
        return data;
    }
    if (headed) hdi_free(device->host->allocator, data, (size_t)head.bytes);
    hdi_log_line(device->host->log, HD_LOG_INFO, "vulkan", "%s is damaged and is made anew", path);
    return NULL;
}

void hdvk_cache_write(const hdi_backend_device *device, uint64_t key, const void *bytes, size_t count) {
    char path[1024], beside[1024], ending[64];
    snprintf(ending, sizeof ending, ".%ld-%p", (long)getpid(), (const void *)device); /* no two writers share a file */
    if (!path_of(device, key, ".bin", path, sizeof path) || !path_of(device, key, ending, beside, sizeof beside)) return;
    const cache_head head = head_of(device, key, bytes, count);
    FILE *file = fopen(beside, "wb");
    bool good = file && fwrite(&head, sizeof head, 1, file) == 1 && fwrite(bytes, count, 1, file) == 1;
    if (file && fclose(file) != 0) good = false;
    if (good && rename(beside, path) == 0) return;
    hdi_log_line(device->host->log, HD_LOG_INFO, "vulkan", "%s could not be written (%d)", path, errno);
    if (file) remove(beside);
}
