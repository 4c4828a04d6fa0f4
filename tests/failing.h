/* failing.h: what a test makes fail: host allocations, once or from one on, and fallible calls of Vulkan's driver, in every way that
 * the API allows. */
#ifndef HEDDLE_TESTS_FAILING_H
#define HEDDLE_TESTS_FAILING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef HEDDLE_VULKAN
#include "device/vulkan/vk.h"
#endif

static struct failing {
    atomic_llong left;  /* allocations that still succeed */
    atomic_llong alive;
    bool         forever;
    atomic_bool  hit;   /* one failed */
} memory;
static const long long NEVER = 1LL << 60;

static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        if (old) atomic_fetch_sub(&memory.alive, 1);
        free(old);
        return NULL;
    }
    const long long left = atomic_fetch_sub(&memory.left, 1);
    if (memory.forever ? left <= 0 : left == 0) {
        atomic_store(&memory.hit, true);
        return NULL;
    }
    void *pointer = realloc(old, new_bytes);
    if (pointer && !old) atomic_fetch_add(&memory.alive, 1);
    return pointer;
}

static void calm_memory(void) { atomic_store(&memory.left, NEVER); }

#ifdef HEDDLE_VULKAN
static struct fault {
    uint32_t        at, calls;
    hdvk_result_row row;
    bool            hit, lost;
    hdvk_function   function, previous;
    uint32_t        equal; /* how often the previous one was called before in a row */
    uint8_t         trace[8192];
} fault;

static bool allows(hdvk_function function, hdvk_result_row row) { return (hdvk_function_get(function)->results >> row & 1u) != 0; }

static VkResult inject(hdvk_function function) {
    enum { LOOKS = 4 }; /* equal calls in a row beyond these look at work under way: how many depends on the machine */
    fault.equal = function == fault.previous ? fault.equal + 1 : 0;
    fault.previous = function;
    if (fault.equal < LOOKS && ++fault.calls < sizeof fault.trace) fault.trace[fault.calls] = (uint8_t)function;
    if (fault.lost && allows(function, HDVK_ROW_ERROR_DEVICE_LOST)) return VK_ERROR_DEVICE_LOST;
    if (!fault.at || fault.hit || fault.calls < fault.at || !allows(function, fault.row)) return VK_SUCCESS;
    fault.hit = true;
    fault.function = function;
    fault.lost = fault.row == HDVK_ROW_ERROR_DEVICE_LOST;
    return hdvk_result_of(fault.row);
}
static void calm_driver(void) { fault.at = 0; }
#endif

#endif
