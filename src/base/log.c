/* log.c: lines for the caller's call-back; with no call-back nothing happens at all. */
#include "base/base.h"
#include <stdio.h>

static bool read_level(const char *text, size_t bytes, hd_log_level *out) {
    static const char *const names[] = { "error", "warning", "info", "debug" };
    for (size_t i = 0; i < HDI_COUNT(names); i++)
        if (strlen(names[i]) == bytes && memcmp(names[i], text, bytes) == 0) {
            *out = (hd_log_level)(HD_LOG_ERROR + i);
            return true;
        }
    return false;
}

bool hdi_log_read(hdi_log *log, const char *text) {
    for (const char *at = text;; at += *at == ',') {
        const size_t length = strcspn(at, ","), name = strcspn(at, "=,");
        if (name == length) {
            if (!read_level(at, length, &log->level)) return false;
        } else {
            if (log->part_count == HDI_LOG_PARTS || name == 0 || name >= sizeof log->parts[0].name) return false;
            if (!read_level(at + name + 1, length - name - 1, &log->parts[log->part_count].level)) return false;
            memcpy(log->parts[log->part_count].name, at, name);
            log->parts[log->part_count++].name[name] = 0;
        }
        at += length;
        if (!*at) return true;
    }
}

static hd_log_level level_of(const hdi_log *log, const char *part) {
    for (uint32_t i = 0; i < log->part_count; i++)
        if (strcmp(log->parts[i].name, part) == 0) return log->parts[i].level;
    return log->level;
}

void hdi_log_line(const hdi_log *log, hd_log_level level, const char *part, const char *format, ...) {
    if (!log || !log->write || level > level_of(log, part)) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->write(log->user, level, part, line);
}
