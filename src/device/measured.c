/* measured.c: how long a device took for the fixed piece of work of hd_device_measure, kept as a line of text for the device and
 * its driver. What else stands there counts as nothing kept. */
#include "device/cache.h"
#include "device/device.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY     UINT64_C(1) /* of this piece of work: another one's figure is another */
#define MOST_NS UINT64_C(1000000000000)

uint64_t hdi_measured_read(const hdi_host *host, const hd_device_info *info) {
    const hdi_cache cache = hdi_cache_of_device(host, "measured", info);
    char line[32] = "";
    size_t bytes = 0;
    char *kept = hdi_cache_read(&cache, KEY, &bytes);
    if (kept && bytes < sizeof line) memcpy(line, kept, bytes);
    hdi_free(host->allocator, kept, bytes);
    const size_t digits = strspn(line, "0123456789");
    const bool good = digits > 0 && digits < 16 && strcmp(line + digits, " ns\n") == 0 && strlen(line) == bytes;
    const uint64_t ns = good ? strtoull(line, NULL, 10) : 0;
    return ns <= MOST_NS ? ns : 0;
}

void hdi_measured_keep(const hdi_host *host, const hd_device_info *info, uint64_t ns) {
    const hdi_cache cache = hdi_cache_of_device(host, "measured", info);
    char line[32];
    const int bytes = snprintf(line, sizeof line, "%" PRIu64 " ns\n", ns);
    hdi_cache_write(&cache, KEY, line, (size_t)bytes);
}
