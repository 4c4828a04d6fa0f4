/* kernel_abi.h: what a compiled kernel and the stand-in's driver say to each other. Read by C and by C++. */
#ifndef STANDIN_KERNEL_ABI_H
#define STANDIN_KERNEL_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

enum { STANDIN_WARP = 32 };

typedef struct standin_dim3 { unsigned x, y, z; } standin_dim3;

/* What the lanes of a warp brought to the same place. */
typedef struct standin_meeting {
    unsigned           active; /* lanes that came */
    unsigned long long values[STANDIN_WARP];
} standin_meeting;

/* Where a worker of the driver is: set before a thread runs on, read by the kernel. */
typedef struct standin_place {
    standin_dim3 thread, block, block_size, grid_size;
    unsigned     lane;
    void (*barrier)(void); /* returns once every thread of the block that still runs has called it */
    /* Returns once the warp's other lanes have called it from the same `site`, or cannot come. */
    const standin_meeting *(*meet)(unsigned long long value, const void *site);
    void (*fault)(const char *what); /* reports an error of the kernel and ends the process */
    const char  *shared, *shared_end; /* the block's shared memory */
    unsigned     waits;        /* of the block's threads for the kernels before their own */
} standin_place;

/* A __global__ function; the object has one named standin_kernel_NAME for each. */
typedef struct standin_kernel {
    void (*run)(void *const *arguments); /* one thread, where the worker is */
    /* Gives the calling worker its place, and tells where the worker's shared memory lies. */
    void *(*enter)(standin_place *place);
    const unsigned      *argument_bytes;
    const unsigned char *argument_is_pointer;
    unsigned             argument_count;
    unsigned             max_threads; /* of __launch_bounds__; 0: not told */
} standin_kernel;

/* The bytes that stand for a cubin: this head, then a shared object. */
#define STANDIN_IMAGE_MAGIC "stand-2" /* another number where this header changes: images are kept */
typedef struct standin_image {
    char               magic[8];
    unsigned           architecture; /* 90 */
    unsigned           bytes;        /* of the object */
} standin_image;

#ifdef __cplusplus
}
#endif
#endif
