/* rewrite.h: CUDA C++ as the host's C++ compiler can take it. */
#ifndef STANDIN_REWRITE_H
#define STANDIN_REWRITE_H

/* The text with its asm statements written as calls of standin_ptx and with room for shared memory that a launch gives, followed by a STANDIN_KERNEL for every __global__
 * function. To be freed; NULL without memory. */
char *standin_rewrite(const char *text);
#endif
