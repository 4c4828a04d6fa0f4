/* quota.c: the processors and the memory that this process' control group allows. A container that is given two of 64
 * processors and 8 of 256 GiB sees all of them. Threads beyond its quota only take turns, and all stop when the quota
 * of a period is used up; memory beyond it ends the process. */
#include "os/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 1024 };

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

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
static uint64_t whole(uint64_t quota, uint64_t period) {
    return quota == 0 || period == 0 ? UINT64_MAX : quota / period + (quota % period != 0);
}

static uint64_t processors_of(const char *group) {
    uint64_t time[2], period[2];
    if (read_numbers(group, "cpu.max", time) == 2) return whole(time[0], time[1]); /* version 2 */
    if (read_numbers(group, "cpu.cfs_quota_us", time) && read_numbers(group, "cpu.cfs_period_us", period))
        return whole(time[0], period[0]);
    return UINT64_MAX;
}

/* Bytes of files that the group has read and that the system gives up first when memory is asked for. */
static uint64_t given_up_first(const char *group) {
    char file[MOST_PATH + 64], line[128];
    unsigned long long bytes = 0;
    snprintf(file, sizeof file, "%s/memory.stat", group);
    FILE *stream = fopen(file, "re");
    while (stream && fgets(line, sizeof line, stream)) /* version 1 has a group's figure and one with its children's */
        if (sscanf(line, "inactive_file %llu", &bytes) != 1) sscanf(line, "total_inactive_file %llu", &bytes);
    if (stream) fclose(stream);
    return bytes;
}

static uint64_t memory_of(const char *group) {
    uint64_t most[2], used[2];
    if (!(read_numbers(group, "memory.max", most) && read_numbers(group, "memory.current", used)) &&
        !(read_numbers(group, "memory.limit_in_bytes", most) && read_numbers(group, "memory.usage_in_bytes", used)))
        return UINT64_MAX;
    const uint64_t files = given_up_first(group), held = used[0] - least(used[0], files);
    return most[0] - least(most[0], held);
}

/* The least that the group and all around it allow. */
static uint64_t least_up_to(const char *root, const char *group, uint64_t (*allowed_by)(const char *group)) {
    char path[MOST_PATH];
    const size_t root_length = strlen(root);
    uint64_t most = allowed_by(root);
    const int length = snprintf(path, sizeof path, "%s%s", root, group);
    if (length < 0 || (size_t)length >= sizeof path) return most;
    for (char *slash = path + length; slash > path + root_length; slash = strrchr(path, '/')) {
        *slash = 0;
        const uint64_t here = allowed_by(path);
        most = least(most, here);
    }
    return most;
}

/* The least over all lines of `groups`: "0::/a/b" (version 2), "4:cpu,cpuacct:/a/b" (version 1: one tree each). */
static uint64_t least_of(const char *groups, const char *root, const char *controller,
                         uint64_t (*allowed_by)(const char *group)) {
    char line[MOST_PATH], tree[MOST_PATH];
    FILE *stream = fopen(groups, "re");
    if (!stream) return UINT64_MAX;
    uint64_t most = UINT64_MAX;
    const size_t length = strlen(controller);
    while (fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        names++;
        const bool of_all = *names == 0,
                   of_it = strncmp(names, controller, length) == 0 && (names[length] == 0 || names[length] == ',');
        if (!of_all && !of_it) continue;
        /* the tree of several controllers has the name of each as well */
        snprintf(tree, sizeof tree, "%s%s%s", root, of_it ? "/" : "", of_it ? controller : "");
        const uint64_t here = least_up_to(tree, group, allowed_by);
        most = least(most, here);
    }
    fclose(stream);
    return most;
}

uint32_t hdi_quota_processors(const char *groups, const char *root) {
    const uint64_t count = least_of(groups, root, "cpu", processors_of);
    return (uint32_t)least(count, UINT32_MAX);
}

uint64_t hdi_quota_memory(const char *groups, const char *root) { return least_of(groups, root, "memory", memory_of); }
