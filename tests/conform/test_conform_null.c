/* test_conform_null.c: the null device passes what it can, computing nothing. */
#include "conform/conform.h"

static const conform_reason never[] = {
    { "dispatch_counts", "dispatches compute nothing" },
    { "dispatch_first", "dispatches compute nothing" },
    { "slot_offsets", "dispatches compute nothing" },
    { "barriers", "dispatches compute nothing" },
    { "cuts", "dispatches compute nothing" },
    { "thousand_in_flight", "dispatches compute nothing" },
    { "replay", "dispatches compute nothing" },
    { "replay_changed_slots", "dispatches compute nothing" },
    { "tickets", "dispatches compute nothing" },
    { "transfer_and_compute", "dispatches compute nothing" },
    { "queues", "dispatches compute nothing" },
    { "side_by_side", "dispatches compute nothing" },
    { "profile", "it has no clock" },
    { "kernel_without_form", "it takes every kernel" },
    { NULL, NULL },
};

int main(void) {
    conform null = { .backend = &hdi_backend_null, .never = never, .host = { .allocator = &hdi_default_allocator, .wait_ns = UINT64_C(60000000000) } };
    return conform_run(&null, "null");
}
