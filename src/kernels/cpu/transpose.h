/* transpose.h: what the CPU form of transpose needs of scratch. */
#ifndef HDCPU_TRANSPOSE_H
#define HDCPU_TRANSPOSE_H

/* A tile as the input has it; its lines are a vector longer, so that those side by side fall into different sets of the
 * cache. */
#define HDCPU_TRANSPOSE_PITCH(tile, bytes) ((tile) * (bytes) + 16u)
#define HDCPU_TRANSPOSE_SCRATCH_BYTES(tile, bytes) ((tile) * HDCPU_TRANSPOSE_PITCH(tile, bytes))
#endif
