/* names.h: one source for two drivers: each function has CUDA's name or, built with STANDIN_HIP, HIP's. Handles are
 * pointers, addresses on the device 64 bits, in both. */
#ifndef STANDIN_NAMES_H
#define STANDIN_NAMES_H

#if defined(STANDIN_HIP)
#define STANDIN_PICK(cuda, hip) hip
#else
#define STANDIN_PICK(cuda, hip) cuda
#endif
#define STANDIN_ENTRY(cuda, hip) \
    __attribute__((visibility("default"))) int STANDIN_PICK(cuda, hip)
#endif
