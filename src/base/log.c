/* log.c: lines for the caller's call-back; with no call-back nothing happens at all. */
#include "base/base.h"
#include <stdio.h>

void hdi_log_line(const hdi_log *log, hd_log_level level, const char *part, const char *format, ...) {
    if (!log || !log->write || level > log->level) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->write(log->user, level, part, line);
}
