/* test_philox.c: the generator of hd_random gives the words that Random123 publishes for philox4x32-10 (kat_vectors). */
#include "base/base.h"
#include "kernels/exact.h"
#include "kernels/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct { random_words counter; uint32_t key[2]; random_words drawn; } published[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 }, { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void as_published(void **state) {
    (void)state;
    for (size_t i = 0; i < HDI_COUNT(published); i++) {
        const random_words drawn = random_draw(published[i].counter, published[i].key[0], published[i].key[1]);
        assert_memory_equal(&drawn, &published[i].drawn, sizeof drawn);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_published) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
