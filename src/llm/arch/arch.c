/* arch.c: finds a family by the name that a file gives as general.architecture. */
#include "llm/arch/arch.h"
#include <stdio.h>

#define FAMILY(name, arch) { name, &hdl_arch_##arch },
static const struct { const char *name; const hdl_arch *arch; } families[] = { HDL_ARCH_LIST(FAMILY) };
enum { FAMILIES = sizeof families / sizeof *families };

const hdl_arch *hdl_arch_find(hdl_span name, const char **out_name) {
    for (size_t i = 0; i < FAMILIES; i++) {
        *out_name = families[i].name;
        if (hdl_same(name, hdl_text(*out_name))) return families[i].arch;
    }
    return NULL;
}

void hdl_arch_names(char *out, size_t room) {
    for (size_t i = 0, used = 0; i < FAMILIES && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? ", " : "", families[i].name);
}
