/* quota.c: the number of processors that this process' control group allows. A container that is given two of 64
 * processors sees all 64. Threads beyond its quota only take turns, and all stop when the quota of a period is used
 * up. */
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 1024 };

/* The file's words, up to two numbers; "max" and "-1" are no number. */
static int read_numbers(const char *path, const char *name, uint64_t out_numbers[2]) {
    char file[MOST_PATH + 64], text[64];
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *stream = fopen(file, "re");
    if (!stream) return 0;
    const char *at = fgets(text, sizeof text, stream) ? text : "";
    fclose(stream);
    int count = 0;
    for (char *end; count < 2 && *at >= '0' && *at <= '9'; count++) {
        out_numbers[count] = strtoull(at, &end, 10);
        at = end + strspn(end, " ");
    }
    return count;
}

/* Processors that one group allows, rounded up. */
static uint32_t allowed(uint64_t quota, uint64_t period) {
    return quota == 0 || period == 0 ? UINT32_MAX
                                     : (uint32_t)HDI_MIN(quota / period + (quota % period != 0), (uint64_t)UINT32_MAX);
}

static uint32_t allowed_by(const char *group) {
    uint64_t time[2], period[2];
    if (read_numbers(group, "cpu.max", time) == 2) return allowed(time[0], time[1]); /* version 2 */
    if (read_numbers(group, "cpu.cfs_quota_us", time) && read_numbers(group, "cpu.cfs_period_us", period))
        return allowed(time[0], period[0]);
    return UINT32_MAX;
}

/* The group and all around it, each of which may allow less. */
static uint32_t allowed_up_to(const char *root, const char *group) {
    char path[MOST_PATH];
    const size_t root_length = strlen(root);
    uint32_t least = allowed_by(root);
    const int length = snprintf(path, sizeof path, "%s%s", root, group);
    if (length < 0 || (size_t)length >= sizeof path) return least;
    for (char *slash = path + length; slash > path + root_length; slash = strrchr(path, '/')) {
        *slash = 0;
        const uint32_t here = allowed_by(path);
        least = HDI_MIN(least, here);
    }
    return least;
}

uint32_t hdi_quota_processors(const char *groups, const char *root) {
    char line[MOST_PATH], tree[MOST_PATH];
    FILE *stream = fopen(groups, "re");
    if (!stream) return UINT32_MAX;
    uint32_t least = UINT32_MAX;
    while (fgets(line, sizeof line, stream)) { /* "0::/a/b" (version 2), "4:cpu,cpuacct:/a/b" */
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        const bool of_all = names[1] == 0,
                   of_cpu = strncmp(names, ":cpu", 4) == 0 && (names[4] == 0 || names[4] == ',');
        if (!of_all && !of_cpu) continue;
        /* the tree of several controllers has the name of each as well */
        snprintf(tree, sizeof tree, "%s%s", root, of_cpu ? "/cpu" : "");
        const uint32_t here = allowed_up_to(tree, group);
        least = HDI_MIN(least, here);
    }
    fclose(stream);
    return least;
}
