/* no_context.c: a wrong handle's status, where no context keeps its words (src/front, which the targets are built without). */
#include "base/base.h"

hd_status hd_handle_refuse(const void *handle, const char *kind) {
    hd_context *context;
    return hdi_handle_why(handle, kind, &context, NULL);
}
