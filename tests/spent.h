/* spent.h: what a piece of work takes of the process' own time, and whether that grows with its size, or with its square. */
#ifndef HEDDLE_TESTS_SPENT_H
#define HEDDLE_TESTS_SPENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

/* Seconds of a processor that the process had so far: what else the machine does is not its fault. */
static inline double spent_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Fails the test if four times the size takes more than nine times as long: the fastest of three tries of each, in turn, since what
 * else the machine does only ever adds. `seconds_of` says what work of a size takes. */
static inline void assert_grows_with_size(double (*seconds_of)(int size), int size) {
    double few = 1e9, many = 1e9;
    for (int i = 0; i < 3; i++) {
        const double of_few = seconds_of(size), of_many = seconds_of(4 * size);
        few = of_few < few ? of_few : few;
        many = of_many < many ? of_many : many;
    }
    if (many > 9 * few) fail_msg("four times the size took %.1f times as long: %.3f s, not %.3f", many / few, many, few);
}

#endif
