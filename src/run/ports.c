/* ports.c: values by name: written and read wherever their pieces lie. */
#include "run/run.h"

static const char *what(uint32_t kinds) {
    return kinds & HDI_PORTS(OUTPUT) ? kinds & HDI_PORTS(INPUT) ? "input, state or output" : "output or state"
                                     : "input or state";
}

hdi_loaded_port *hdi_port_named(const hdi_loaded *loaded, const char *name, uint32_t kinds, hd_error *error) {
    for (uint32_t p = 0; p < loaded->plan->port_count; p++)
        if (kinds >> loaded->ports[p].kind & 1 && strcmp(loaded->ports[p].name, name) == 0) return &loaded->ports[p];
    hdi_fail(error, HD_STATUS_NAME_NOT_FOUND, "no %s is called \"%s\"", what(kinds), name);
    return NULL;
}

hdi_loaded_port *hdi_port_find(const hdi_loaded *loaded, const char *name, uint32_t kinds, uint64_t bytes,
                               hd_error *error) {
    hdi_loaded_port *port = hdi_port_named(loaded, name, kinds, error);
    if (!port || port->bytes == bytes) return port;
    hdi_fail(error, HD_STATUS_SHAPE, "\"%s\" has %llu bytes, not %llu", name, (unsigned long long)port->bytes,
             (unsigned long long)bytes);
    return NULL;
}

/* Where a piece of a port lies, in memory that is made where it was not there yet. */
typedef struct found_piece {
    hdi_core      *core;
    hdi_core_slot *slot;
    hdi_slot       at;
    uint64_t       bytes;
} found_piece;

static hd_status find_piece(const hdi_loaded *loaded, const hdi_port_piece *piece, found_piece *out, hd_error *error) {
    hdi_core *core = loaded->segments[piece->segment];
    const hd_status status = hdi_core_memory(core, piece->slot, error);
    *out = (found_piece){ core, &core->slots[piece->slot], hdi_core_where(core, piece->slot),
                          core->schedule->slots[piece->slot].tensor_bytes };
    return status;
}

hd_status hdi_port_write(hdi_loaded *loaded, const hdi_loaded_port *port, const void *data, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < port->piece_count && !status; i++) {
        const char *from = (const char *)data + port->pieces[i].at;
        found_piece to;
        status = find_piece(loaded, &port->pieces[i], &to, error);
        if (!status)
            status = hdi_device_write(to.core->device, to.at.memory, to.at.offset, from, to.bytes,
                                      &to.core->last_ticket, error);
        if (status) continue;
        to.slot->written = true;
        to.slot->bereft = false;
    }
    return status;
}

hd_status hdi_port_read(hdi_loaded *loaded, const hdi_loaded_port *port, void *out_data, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t i = 0; i < port->piece_count && !status; i++) {
        char *to = (char *)out_data + port->pieces[i].at;
        found_piece from;
        status = find_piece(loaded, &port->pieces[i], &from, error);
        if (!status)
            status = hdi_device_read(from.core->device, from.at.memory, from.at.offset, to, from.bytes,
                                     from.core->last_ticket, error);
    }
    return status;
}

/* The place of a port's bytes on a device, or where they arrive. */
static bool find_place(const hdi_loaded *loaded, const hdi_loaded_port *port, const hd_device *device,
                       uint32_t *out_segment, uint32_t *out_slot) {
    for (uint32_t s = 0; s < loaded->plan->segment_count; s++) {
        const hdi_plan_segment *segment = &loaded->plan->segments[s];
        for (uint32_t i = 0; i < segment->schedule->slot_count && loaded->segments[s]->device == device; i++) {
            const hdi_plan_slot *at = &segment->slots[i];
            if (at->home_segment != s || at->home_slot != i || !(at->port || at->arrives)) continue;
            if (strcmp(segment->schedule->slots[i].name, port->name) != 0) continue;
            *out_segment = s;
            *out_slot = i;
            return true;
        }
    }
    return false;
}

hd_status hdi_port_bind(hdi_loaded *loaded, const hdi_loaded_port *port, hd_buffer *buffer, uint64_t offset,
                        hd_error *error) {
    char name[HDI_BUFFER_TEXT];
    uint32_t s, i;
    if (!find_place(loaded, port, buffer->device, &s, &i))
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "\"%s\": %s is on another device", port->name,
                        hdi_buffer_text(buffer, name));
    hdi_core *core = loaded->segments[s];
    const hdi_schedule_slot *slot = &core->schedule->slots[i];
    if (slot->tensor_bytes != port->bytes)
        return hdi_fail(error, HD_STATUS_UNSUPPORTED, "\"%s\": this device has a piece of it; write it instead",
                        port->name);
    hd_status status = hdi_buffer_check_range(buffer, port->name, offset, slot->bytes, true, error);
    if (!status)
        status =
            hdi_buffer_check_use(buffer, port->name, port->kind != HD_PORT_OUTPUT, port->kind != HD_PORT_INPUT, error);
    if (status) return status;
    hdi_core_bind(core, i, buffer, offset);
    return HD_OK;
}

static bool is_written(const hdi_loaded *loaded, const hdi_loaded_port *port) {
    bool written = port->piece_count > 0;
    for (uint32_t i = 0; i < port->piece_count; i++) {
        const hdi_core_slot *slot = &loaded->segments[port->pieces[i].segment]->slots[port->pieces[i].slot];
        written = written && slot->memory && (port->kind == HD_PORT_STATE || slot->written);
    }
    return written;
}

hd_status hdi_ports_move(hdi_loaded *from, hdi_loaded *to, hd_error *error) {
    hd_status status = HD_OK;
    for (uint32_t p = 0; p < from->plan->port_count && !status; p++) {
        const hdi_loaded_port *port = &from->ports[p];
        if (port->kind == HD_PORT_OUTPUT || !is_written(from, port)) continue;
        if (port->kind == HD_PORT_INPUT && port->version == to->ports[p].version) continue;
        void *between = port->bytes <= SIZE_MAX ? hdi_alloc(from->allocator, (size_t)port->bytes) : NULL;
        if (!between) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to move \"%s\"", port->name);
        status = hdi_port_read(from, port, between, error);
        if (!status) status = hdi_port_write(to, &to->ports[p], between, error);
        if (!status) to->ports[p].version = port->version;
        hdi_free(from->allocator, between, (size_t)port->bytes);
    }
    return status;
}
