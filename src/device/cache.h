/* cache.h: what is kept on disk for a device: compiled kernels, verdicts on them, its time. A file for each, named by its key. */
#ifndef HDI_CACHE_H
#define HDI_CACHE_H

#include "device/backend.h"

/* One back end's part of the folder host->cache_dir, or another's. Nothing is kept where that is NULL. */
typedef struct hdi_cache {
    const hdi_host *host;
    const char     *backend;  /* begins the file's name, and log lines */
    uint64_t        identity; /* a hash of the device and its driver: what others compiled is never taken */
} hdi_cache;

/* The part called `part` for a device and its driver. */
hdi_cache hdi_cache_of_device(const hdi_host *host, const char *part, const hd_device_info *info);
/* What was written under `key`, or NULL: absent, cut, damaged, or of another device or driver.
 * @param out_bytes its length, as hdi_free of the host's allocator needs it. */
void *hdi_cache_read(const hdi_cache *cache, uint64_t key, size_t *out_bytes);
/* Keeps bytes under `key` in place of what was there. A failure is only logged: the next start compiles once more. */
void hdi_cache_write(const hdi_cache *cache, uint64_t key, const void *bytes, size_t count);
#endif
