/* sweep.h: which cases a sweep takes: each of them, or every fifth where a sanitizer makes all of them slow. */
#ifndef HEDDLE_TESTS_SWEEP_H
#define HEDDLE_TESTS_SWEEP_H

#if defined(__SANITIZE_ADDRESS__)
enum { SWEEP_STEP = 5 };
#else
enum { SWEEP_STEP = 1 };
#endif

#endif
