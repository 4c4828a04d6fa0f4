/* cache.h: compiled kernels, kept on disk for a device. A file for each, named by its key. */
#ifndef HDI_CACHE_H
#define HDI_CACHE_H

#include "device/backend.h"

/* One back end's part of the folder host->cache_dir. Nothing is kept where that is NULL. */
typedef struct hdi_cache {
    const hdi_host *host;
    const char     *backend;  /* begins the file's name, and log lines */
    uint64_t        identity; /* a hash of the device and its driver: what others compiled is never taken */
} hdi_cache;

/* What was written under `key`, or NULL: absent, cut, damaged, or of another device or driver.
 * @param out_bytes its length, as hdi_free of the host's allocator needs it. */
void *hdi_cache_read(const hdi_cache *cache, uint64_t key, size_t *out_bytes);
/* Keeps bytes under `key` in place of what was there. A failure is only logged: the next start compiles once more. */
void hdi_cache_write(const hdi_cache *cache, uint64_t key, const void *bytes, size_t count);
#endif
