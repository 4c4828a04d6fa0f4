/* loss.h: the loss of a device, for every back end. It is for good; the first thread that sees it says where, and any
 * thread may ask. */
#ifndef HDI_LOSS_H
#define HDI_LOSS_H

#include "base/base.h"
#include <stdatomic.h>

typedef struct hdi_loss {
    atomic_int state;     /* 0: none, 1: being written down, 2: known */
    int64_t    code;      /* the driver's */
    char       text[256]; /* where it was seen */
} hdi_loss;

static inline bool hdi_loss_known(const hdi_loss *loss) { return atomic_load(&loss->state) == 2; }
/* Writes it down; false where it was before. */
bool hdi_loss_note(hdi_loss *loss, int64_t code, const char *format, ...) HDI_PRINTF(3, 4);
/* DEVICE_LOST, with what was written down. */
hd_status hdi_loss_tell(const hdi_loss *loss, const char *backend, hd_error *error);
#endif
