/* held.c: what lies on the session's devices, by label and kind, and the context's counters as a file. */
#include "cli/cli.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

/* Allocations of one label and kind that the host reaches in one way. */
typedef struct held {
    const hd_device *device;
    hd_memory_info   info; /* bytes: of all */
    size_t           count;
} held;

typedef struct holdings {
    held  *of;
    size_t count;
} holdings;

static held *find(const holdings *all, const hd_device *device, const hd_memory_info *info) {
    for (size_t i = 0; i < all->count; i++) {
        held *at = &all->of[i];
        const bool alike = at->info.kind == info->kind && at->info.in_place == info->in_place;
        if (at->device == device && alike && strcmp(at->info.label, info->label) == 0) return at;
    }
    return NULL;
}

static bool add_device(holdings *all, hd_device *device) {
    size_t count = 0;
    hd_device_memory(device, NULL, &count);
    count += 64; /* another thread may add some */
    hd_memory_info *infos = malloc(count * sizeof *infos);
    held *more = realloc(all->of, (all->count + count) * sizeof *more);
    if (more) all->of = more;
    const hd_status status = infos && more ? hd_device_memory(device, infos, &count) : HD_STATUS_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count && !status; i++) {
        held *same = find(all, device, &infos[i]);
        if (!same) *(same = &all->of[all->count++]) = (held){ device, infos[i], 1 };
        else {
            same->info.bytes += infos[i].bytes;
            same->count++;
        }
    }
    free(infos);
    return status == HD_OK;
}

static int larger_first(const void *a, const void *b) {
    const uint64_t x = ((const held *)a)->info.bytes, y = ((const held *)b)->info.bytes;
    return (x < y) - (x > y);
}

/* Of all devices of the session; false, and none, without memory. */
static bool collect(const cli_session *session, holdings *out) {
    *out = (holdings){ 0 };
    bool good = add_device(out, session->device);
    for (size_t i = 0; i < CLI_MOST_BESIDE && good && session->beside[i]; i++)
        good = add_device(out, session->beside[i]);
    if (good && out->count) qsort(out->of, out->count, sizeof *out->of, larger_first);
    if (good) return true;
    free(out->of);
    *out = (holdings){ 0 };
    return false;
}

int cli_held_print(const cli_session *session) {
    static const char *const heads[] = { "HELD", "KIND", "DEVICE", "REACHED", "ALLOCATIONS", "BYTES" };
    holdings all;
    cli_cell *cells = collect(session, &all) ? calloc((all.count + 1) * CLI_COUNT(heads), sizeof *cells) : NULL;
    if (!cells) {
        free(all.of);
        return cli_fail(session->command, "no memory is left");
    }
    cli_heads(cells, heads, CLI_COUNT(heads));
    for (size_t i = 0; i < all.count; i++) {
        const held *h = &all.of[i];
        cli_cell *row = &cells[(i + 1) * CLI_COUNT(heads)];
        snprintf(row[0], CLI_CELL, "%s", h->info.label[0] ? h->info.label : "-");
        snprintf(row[1], CLI_CELL, "%s", hd_memory_kind_name(h->info.kind));
        snprintf(row[2], CLI_CELL, "%s", hd_device_get_info(h->device)->id);
        snprintf(row[3], CLI_CELL, "%s", h->info.in_place ? "in place" : "by copies");
        snprintf(row[4], CLI_CELL, "%zu", h->count);
        cli_bytes(h->info.bytes, row[5]);
    }
    cli_print("\n");
    cli_table(cells, all.count + 1, CLI_COUNT(heads), 1u << 4 | 1u << 5);
    free(cells);
    free(all.of);
    return CLI_OK;
}

json_t *cli_held_json(const cli_session *session, bool *ok) {
    holdings all;
    json_t *list = json_array();
    if (!collect(session, &all)) *ok = false;
    for (size_t i = 0; i < all.count && *ok; i++) {
        json_t *row = json_object();
        cli_put(row, "label", cli_json_text(all.of[i].info.label), ok);
        cli_put(row, "kind", json_string(hd_memory_kind_name(all.of[i].info.kind)), ok);
        cli_put(row, "device", cli_json_text(hd_device_get_info(all.of[i].device)->id), ok);
        cli_put(row, "in_place", json_boolean(all.of[i].info.in_place), ok);
        cli_put(row, "allocations", json_integer((json_int_t)all.of[i].count), ok);
        cli_put(row, "bytes", json_integer((json_int_t)all.of[i].info.bytes), ok);
        if (json_array_append_new(list, row) != 0) *ok = false;
    }
    free(all.of);
    return list;
}

int cli_metrics_save(const cli_session *session, const char *path) {
    size_t needed = 0;
    text page = { 0 };
    hd_context_metrics(session->context, NULL, 0, &needed);
    needed += 4096; /* counters grow meanwhile */
    char *room = malloc(needed);
    if (!room) return cli_fail(session->command, "no memory is left");
    const hd_status status = hd_context_metrics(session->context, room, needed, NULL);
    if (!status) text_add(&page, "%s", room);
    free(room);
    const int code = status ? cli_fail(session->command, "--metrics: %s", hd_status_text(status))
                            : cli_save(session->command, path, &page);
    text_free(&page);
    return code;
}
