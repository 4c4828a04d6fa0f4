/* environment.c: the variables that heddle reads, in the words of its help. */
#include "cli/cli.h"

const cli_variable cli_environment[] = {
    { "HEDDLE_BACKEND", "back ends to look at, the best first: \"cuda,vulkan,cpu\", or one" },
    { "HEDDLE_DEVICE", "the device to take where none is named" },
    { "HEDDLE_STRICT", "1: no fall-back, no software device, no null device" },
    { "HEDDLE_LOG", "error, warning (default), info or debug, on stderr; of parts: warning,vulkan=debug" },
    { "HEDDLE_VALIDATION", "1: the driver's validation layers, in the log, and contracts of plans and submissions" },
    { "HEDDLE_THREADS", "number of CPU threads, also of those that compile kernels or copy" },
    { "HEDDLE_CPU", "the last instruction set that CPU kernels may use: portable, avx2, avx512, ...; all (default)" },
    { "HEDDLE_CACHE", "folder for compiled kernels; none: keep nothing" },
    { "HEDDLE_QUEUES", "1: uploads, runs and downloads go through one queue of a device" },
    { "HEDDLE_WAIT_MS", "longest wait for a device" },
    { "HEDDLE_VERIFY", "known answers before a kernel's first use: 0 none, 1 on GPUs, 2 everywhere" },
    { "HEDDLE_FIND_NAN", "1: runs fail where an operation makes a NaN, and name it; 2: infinities, too" },
    { "HEDDLE_FAULT", "calls of a device that fail on purpose: submit:2:device-lost,alloc:5+:out-of-device-memory" },
};
const size_t cli_environment_count = CLI_COUNT(cli_environment);
