/* safetensors.h: reading a safetensors file from memory, for the file itself and for those who try it with hostile
 * bytes. */
#ifndef HDT_SAFETENSORS_H
#define HDT_SAFETENSORS_H

#include "train/support.h"
#include <jansson.h>

struct hd_safetensors {
    hd_context    *context;
    void          *handle; /* that the caller has */
    hdt_map        map;
    json_t        *header;
    hd_safetensor *tensors; /* by their bytes */
    size_t         count;
};

/* Reads what begins at file->map; names and texts are the header's. */
hd_status hdt_safetensors_read(hd_safetensors *file, const char *path);
/* The header of such tensors, 8 bytes of length and all, to be freed by free(). NULL after a failure, which goes to the
 * context. */
char *hdt_safetensors_header(hd_context *context, const hd_safetensor *tensors, size_t count,
                             const char *const *metadata, uint64_t *out_bytes);

#endif
