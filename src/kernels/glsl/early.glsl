// early.glsl: dispatches that may begin before those in front of them have ended, where a device lets them.
#ifndef EARLY_GLSL
#define EARLY_GLSL
#extension GL_KHR_memory_scope_semantics : require
#include "../abi.h"
layout(constant_id = HDI_SPEC_EARLY) const uint EARLY = 0;
// Waits for what is in front: all that the plan writes is read behind it.
void wait_for_earlier() {
    if (EARLY != 0u) memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire);
}
#endif
