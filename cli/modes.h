/* modes.h: which modes of floating point are in force on a device, found out by a few sums and products on it. */
#ifndef CLI_MODES_H
#define CLI_MODES_H

#include "cli/cli.h"

/* Two lines, of fast and of exact mode; or one that says why the device computes nothing. */
void modes_print(const char *id);

#endif
