/* opencl_12.c: every function that the OpenCL back end cannot do without is one of OpenCL 1.2: compiled against that version's
 * part of the headers, or not at all. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define NEEDED_0(name)
#define NEEDED_1(name) typedef __typeof__(cl##name) *needed_##name;
#define HDCL_FUNCTION(need, name, status, results) NEEDED_##need(name)
#include "device/opencl/functions.inc"

extern const int opencl_12_is_enough;
const int opencl_12_is_enough = 1;
