/* shadow.c: host copies of a loaded plan's inputs and states, with which another plan of the same program goes on. */
#include "run/run.h"

hdi_shadows *hdi_shadows_new(const hdi_loaded *loaded, hd_error *error) {
    hdi_shadows *shadows =
        hdi_alloc(loaded->allocator, sizeof *shadows + loaded->plan->port_count * sizeof *shadows->of);
    if (!shadows) hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for fail-over");
    else {
        shadows->allocator = loaded->allocator;
        shadows->count = loaded->plan->port_count;
    }
    return shadows;
}

void hdi_shadows_free(hdi_shadows *shadows) {
    for (uint32_t p = 0; shadows && p < shadows->count; p++)
        hdi_free(shadows->allocator, shadows->of[p].copy, (size_t)shadows->of[p].bytes);
    if (shadows) hdi_free(shadows->allocator, shadows, sizeof *shadows + shadows->count * sizeof *shadows->of);
}

hd_status hdi_shadow_keep(hdi_shadows *shadows, hdi_loaded *loaded, const hdi_loaded_port *port, const void *data,
                          hd_error *error) {
    hdi_shadow *shadow = &shadows->of[port - loaded->ports];
    if (!shadow->copy && port->bytes <= SIZE_MAX) shadow->copy = hdi_alloc(shadows->allocator, (size_t)port->bytes);
    if (!shadow->copy)
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a host copy of \"%s\"", port->name);
    shadow->bytes = port->bytes;
    if (data) hdi_thread_pool_copy(loaded->devices[0]->host->thread_pool, shadow->copy, data, port->bytes);
    const hd_status status = data ? HD_OK : hdi_port_read(loaded, port, shadow->copy, error);
    if (!status) shadow->written = true;
    return status;
}

hd_status hdi_shadows_keep_states(hdi_shadows *shadows, hdi_loaded *loaded, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < loaded->plan->port_count && !status; p++)
        if (loaded->ports[p].kind == HD_PORT_STATE)
            status = hdi_shadow_keep(shadows, loaded, &loaded->ports[p], NULL, error);
    return status;
}

hd_status hdi_shadows_bring(const hdi_shadows *shadows, hdi_loaded *loaded, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < loaded->plan->port_count && !status; p++)
        if (shadows->of[p].written) status = hdi_port_write(loaded, &loaded->ports[p], shadows->of[p].copy, error);
    return status;
}
