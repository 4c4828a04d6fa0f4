/* fuzz_plan.c: any bytes as a saved plan, for devices that can do what it says. What is taken is planned, with whatever facts
 * of devices; every failure is said.
 * options: -dict=tests/fuzz/program.dict -max_len=16384
 * sources: tests/fuzz/no_kernels.c */
#include "plan/plan.h"
#include <stdlib.h>
#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const ids[HDI_MOST_DEVICES] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p" };
    static hdi_caps caps[HDI_MOST_DEVICES];
    hdi_saved_plan saved;
    hd_error error = { 0 };
    hdi_plan *plan = NULL;
    hd_status status = hdi_saved_plan_read((const char *)data, size, &saved, &error);
    if (status != error.status) abort();
    if (status) return 0;
    if (saved.device_count == 0 || saved.device_count > HDI_MOST_DEVICES) abort();
    for (uint32_t d = 0; d < saved.device_count; d++) {
        if (hdi_caps_parse(saved.caps[d].at, (size_t)(saved.caps[d].end - saved.caps[d].at), &caps[d], NULL)) return 0;
        /* of no device: plans of up to HDI_MOST_LAUNCHES steps take seconds under sanitizers */
        if (caps[d].max_binding_bytes > 0 && caps[d].max_binding_bytes < 1 << 20) return 0;
    }
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    const size_t bytes = (size_t)(saved.program.end - saved.program.at);
    if (program && !hdi_program_parse(program, saved.program.at, bytes, NULL, NULL, NULL) && !hdi_program_check(program, NULL)) {
        status = hdi_saved_plan_make(&saved, program, caps, ids, &plan, &error);
        if (status != error.status || (status && plan)) abort();
        if (!status) keep_text(data, size);
        hdi_plan_free(plan);
    }
    hdi_program_free(program);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) { return change_line(data, size, room, seed); }
