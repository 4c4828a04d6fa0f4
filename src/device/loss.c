/* loss.c: the first words on a loss stay. */
#include "device/loss.h"
#include <stdio.h>

bool hdi_loss_note(hdi_loss *loss, int64_t code, const char *format, ...) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&loss->state, &none, 1)) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(loss->text, sizeof loss->text, format, args);
    va_end(args);
    loss->code = code;
    atomic_store(&loss->state, 2);
    return true;
}

hd_status hdi_loss_tell(const hdi_loss *loss, const char *backend, hd_error *error) {
    const bool known = hdi_loss_known(loss); /* another thread may be writing */
    return hdi_fail_native(error, HD_STATUS_DEVICE_LOST, backend, known ? loss->code : 0, "the device was lost %s",
                           known ? loss->text : "");
}
