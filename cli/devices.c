/* devices.c: `heddle devices`: every back end with the reason why it is or is not there, and every device, best
 * first. */
#include "cli/cli.h"
#include "cli/modes.h"
#include <stdlib.h>
#include <string.h>

typedef struct inventory {
    hd_backend_info *backends;
    hd_device_info  *devices;
    size_t           backend_count, device_count;
} inventory;

static int take_inventory(cli_session *session, inventory *out) {
    *out = (inventory){ 0 };
    if (hd_backends(session->context, NULL, &out->backend_count) ||
        hd_devices(session->context, NULL, &out->device_count))
        return cli_session_fail(session, NULL);
    out->backends = calloc(out->backend_count + 1, sizeof *out->backends);
    out->devices = calloc(out->device_count + 1, sizeof *out->devices);
    if (!out->backends || !out->devices) return cli_fail(session->command, "no memory is left");
    if (hd_backends(session->context, out->backends, &out->backend_count) ||
        hd_devices(session->context, out->devices, &out->device_count))
        return cli_session_fail(session, NULL);
    return CLI_OK;
}

/* The device's facts, free() them; NULL after a message. */
static char *caps_of(cli_session *session, const char *id) {
    size_t needed = 0;
    char none[1], *text = NULL;
    hd_status status = hd_device_caps_text(session->context, id, none, sizeof none, &needed);
    if (!status || status == HD_STATUS_LIMIT) {
        cli_session_forget(session);
        text = malloc(needed + 1);
        status =
            text ? hd_device_caps_text(session->context, id, text, needed + 1, &needed) : HD_STATUS_OUT_OF_HOST_MEMORY;
    }
    if (!status) return text;
    cli_session_fail(session, id);
    free(text);
    return NULL;
}

static bool is_software(const hd_device_info *device) { return device->kind == HD_DEVICE_SOFTWARE; }

/* ---- text ---- */

/* A back end that is not there has its reason behind it and its mend in a row below. */
static int print_backends(const cli_command *command, const inventory *all) {
    static const char *const heads[] = { "BACK END", "BUILT IN", "DEVICES", "WHY NOT, AND WHAT TO DO" };
    enum { COLUMNS = CLI_COUNT(heads) };
    cli_cell *cells = calloc((2 * all->backend_count + 1) * COLUMNS, sizeof *cells);
    size_t rows = 1;
    if (!cells) return cli_fail(command, "no memory is left");
    cli_heads(cells, heads, COLUMNS);
    for (size_t i = 0; i < all->backend_count; i++) {
        const hd_backend_info *backend = &all->backends[i];
        cli_cell *row = &cells[COLUMNS * rows++];
        snprintf(row[0], CLI_CELL, "%s", backend->name);
        snprintf(row[1], CLI_CELL, "%s", backend->compiled ? "yes" : "no");
        snprintf(row[2], CLI_CELL, "%u", (unsigned)backend->device_count);
        if (backend->available) continue;
        snprintf(row[3], CLI_CELL, "%s", backend->reason);
        if (backend->mend[0]) snprintf(cells[COLUMNS * rows++ + 3], CLI_CELL, "%s", backend->mend);
    }
    cli_table(cells, rows, COLUMNS, 1u << 2);
    free(cells);
    return CLI_OK;
}

/* What several APIs reach is one GPU: its address on the PCI bus tells. Best first, with their times where they were
 * measured. */
static void print_routes(const inventory *all) {
    for (size_t i = 0; i < all->device_count; i++) {
        const char *pci = all->devices[i].pci;
        size_t routes = 0, measured = 0;
        cli_cell time;
        bool told = false;
        for (size_t k = 0; k < all->device_count && pci[0]; k++) {
            const bool same = strcmp(all->devices[k].pci, pci) == 0;
            told = told || (same && k < i);
            routes += same;
            measured += same && all->devices[k].measured_ns > 0;
        }
        if (told || routes < 2) continue;
        cli_print("One GPU, at %s:", pci);
        for (size_t k = i; k < all->device_count; k++) {
            const hd_device_info *device = &all->devices[k];
            if (strcmp(device->pci, pci) != 0) continue;
            cli_print("%s %s", k > i ? "," : "", device->id);
            if (device->measured_ns) cli_print(" (%s)", cli_time(device->measured_ns, time));
        }
        cli_print("; %s\n", measured > 1
                                ? "in the order measured"
                                : "in the order of the back ends, `heddle "
                                  "devices --probe` measures them");
    }
}

/* Those that were measured, each with its time, in their order. */
static void print_measured(const inventory *all) {
    size_t measured = 0;
    cli_cell time;
    for (size_t i = 0; i < all->device_count; i++) {
        if (!all->devices[i].measured_ns) continue;
        cli_print("%s %s (%s)", measured++ ? "," : "As measured, the fastest first:", all->devices[i].id,
                  cli_time(all->devices[i].measured_ns, time));
    }
    if (measured) cli_print("; real ones before software\n");
}

static int print_devices(const cli_command *command, const inventory *all) {
    static const char *const heads[] = { "RANK", "ID", "NAME", "KIND", "MEMORY", "DRIVER" };
    cli_cell *cells = calloc((all->device_count + 1) * CLI_COUNT(heads), sizeof *cells);
    bool software = false;
    if (!cells) return cli_fail(command, "no memory is left");
    cli_heads(cells, heads, CLI_COUNT(heads));
    for (size_t i = 0; i < all->device_count; i++) {
        const hd_device_info *device = &all->devices[i];
        cli_cell *row = &cells[(i + 1) * CLI_COUNT(heads)];
        snprintf(row[0], CLI_CELL, "%u", (unsigned)device->rank);
        snprintf(row[1], CLI_CELL, "%s", device->id);
        snprintf(row[2], CLI_CELL, "%s", device->name);
        snprintf(row[3], CLI_CELL, "%s%s", cli_kind_name(device->kind), is_software(device) ? " *" : "");
        if (device->memory_bytes > 0) cli_bytes(device->memory_bytes, row[4]);
        snprintf(row[5], CLI_CELL, "%s", device->driver);
        software = software || is_software(device);
    }
    cli_print("\n");
    cli_table(cells, all->device_count + 1, CLI_COUNT(heads), 1u << 0 | 1u << 4);
    if (software) cli_print_folded("* a GPU driver that computes on the CPU: taken only when it is named", 2);
    print_routes(all);
    print_measured(all);
    if (all->device_count == 0) cli_print("none: see above for each back end's reason\n");
    free(cells);
    return CLI_OK;
}

/* Its heaps as they are now, and their number; 0 where the driver does not tell. */
static size_t heaps_of(const char *id, hd_heap out[HD_MAX_HEAPS]) {
    size_t count = HD_MAX_HEAPS;
    hd_context *context = NULL;
    hd_device *device = NULL;
    hd_status status = hd_context_create(&(hd_context_desc){ .log_level = HD_LOG_ERROR }, &context);
    if (!status) status = hd_device_open(context, &(hd_device_desc){ .id = id }, &device);
    if (!status) status = hd_device_heaps(device, out, &count);
    hd_context_destroy(context);
    return status ? 0 : count;
}

static void print_heaps(const char *id) {
    hd_heap heaps[HD_MAX_HEAPS];
    const size_t count = heaps_of(id, heaps);
    if (!count) cli_print("  %-32s not told by the driver\n", "memory taken now");
    for (size_t i = 0; i < count; i++) {
        const hd_heap *heap = &heaps[i];
        cli_cell name, size, used, budget;
        snprintf(name, sizeof name, "memory taken now, heap %zu", i);
        cli_print("  %-32s %s of %s %s, by %s; %s may be\n", name, cli_bytes(heap->used_bytes, used),
                  cli_bytes(heap->size_bytes, size), heap->local ? "of its own" : "of the host's",
                  heap->own ? "this process" : "all programs", cli_bytes(heap->budget_bytes, budget));
    }
}

static int print_all_caps(cli_session *session, const inventory *all) {
    for (size_t i = 0; i < all->device_count; i++) {
        char *text = caps_of(session, all->devices[i].id);
        if (!text) return CLI_FAILED;
        cli_print("\n%s\n", all->devices[i].id);
        for (const char *line = text; *line;) {
            size_t length = strcspn(line, "\n"), name = strcspn(line, " ");
            if (name < length)
                cli_print("  %-32.*s %.*s\n", (int)name, line, (int)(length - name - 1), line + name + 1);
            line += length + (line[length] == '\n');
        }
        free(text);
        if (all->devices[i].kind == HD_DEVICE_NULL) continue;
        print_heaps(all->devices[i].id);
        modes_print(all->devices[i].id);
    }
    return CLI_OK;
}

/* ---- JSON ---- */

/* "name value" lines as an object; whole numbers as numbers. */
static json_t *json_caps(char *text, bool *ok) {
    json_t *object = json_object();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        uint64_t number;
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        bool is_number = cli_number(value, INT64_MAX, &number);
        cli_put(object, line, is_number ? json_integer((json_int_t)number) : cli_json_text(value), ok);
    }
    return object;
}

static json_t *json_backend(const hd_backend_info *backend, bool *ok) {
    json_t *object = json_object();
    cli_put(object, "name", cli_json_text(backend->name), ok);
    cli_put(object, "compiled", json_boolean(backend->compiled), ok);
    cli_put(object, "available", json_boolean(backend->available), ok);
    cli_put(object, "device_count", json_integer(backend->device_count), ok);
    cli_put(object, "reason", cli_json_text(backend->reason), ok);
    cli_put(object, "mend", cli_json_text(backend->mend), ok);
    return object;
}

static json_t *json_device(const hd_device_info *device, bool *ok) {
    json_t *object = json_object();
    cli_put(object, "rank", json_integer(device->rank), ok);
    cli_put(object, "id", cli_json_text(device->id), ok);
    cli_put(object, "name", cli_json_text(device->name), ok);
    cli_put(object, "backend", cli_json_text(device->backend), ok);
    cli_put(object, "kind", cli_json_text(cli_kind_name(device->kind)), ok);
    cli_put(object, "software", json_boolean(is_software(device)), ok);
    cli_put(object, "memory_bytes", json_integer((json_int_t)device->memory_bytes), ok);
    cli_put(object, "driver", cli_json_text(device->driver), ok);
    cli_put(object, "pci", cli_json_text(device->pci), ok);
    cli_put(object, "measured_ns", device->measured_ns ? json_integer((json_int_t)device->measured_ns) : json_null(),
            ok);
    return object;
}

static json_t *json_heaps(const char *id, bool *ok) {
    hd_heap heaps[HD_MAX_HEAPS];
    const size_t count = heaps_of(id, heaps);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        cli_put(object, "size_bytes", json_integer((json_int_t)heaps[i].size_bytes), ok);
        cli_put(object, "used_bytes", json_integer((json_int_t)heaps[i].used_bytes), ok);
        cli_put(object, "budget_bytes", json_integer((json_int_t)heaps[i].budget_bytes), ok);
        cli_put(object, "used_by", json_string(heaps[i].own ? "this process" : "all programs"), ok);
        cli_put(object, "local", json_boolean(heaps[i].local), ok);
        if (json_array_append_new(array, object) != 0) *ok = false;
    }
    return array;
}

static int print_json(cli_session *session, const inventory *all, bool verbose) {
    bool ok = true;
    json_t *root = json_object(), *backends = json_array(), *devices = json_array();
    for (size_t i = 0; i < all->backend_count; i++)
        if (json_array_append_new(backends, json_backend(&all->backends[i], &ok)) != 0) ok = false;
    for (size_t i = 0; i < all->device_count; i++) {
        json_t *device = json_device(&all->devices[i], &ok);
        char *caps = verbose ? caps_of(session, all->devices[i].id) : NULL;
        if (caps) cli_put(device, "caps", json_caps(caps, &ok), &ok);
        if (verbose) cli_put(device, "heaps", json_heaps(all->devices[i].id, &ok), &ok);
        free(caps);
        if (json_array_append_new(devices, device) != 0) ok = false;
    }
    cli_put(root, "heddle", cli_json_text(hd_version()), &ok);
    cli_put(root, "backends", backends, &ok);
    cli_put(root, "devices", devices, &ok);
    return cli_print_json(session->command, root, ok);
}

/* ---- measuring ---- */

static void take_rank(void *user, const hd_fact *fact) { *(uint64_t *)user = fact->rank_ns; }

/* In a context that is silent about a software device: nobody takes it for more here. */
static int measure_one(cli_session *session, const char *id) {
    hd_context *context = NULL;
    hd_device *device = NULL;
    uint64_t ns = 0;
    cli_cell time, spent;
    const hd_calibrate_desc desc = { .kinds = HD_FACT_RANK, .report = take_rank, .user = &ns };
    const uint64_t begun = cli_now_ns();
    int code = CLI_OK;
    hd_status status = hd_context_create(&(hd_context_desc){ .log_level = HD_LOG_ERROR }, &context);
    if (!status) status = hd_device_open(context, &(hd_device_desc){ .id = id }, &device);
    if (!status) status = hd_device_calibrate(device, &desc);
    if (status)
        code = cli_fail(session->command, "%s: %s", id, context ? hd_context_error(context) : hd_status_name(status));
    else
        cli_note("heddle: %s: %s for 1,024 small steps, 64 MiB and, by smaller ones, a product of 4,096; found in %s\n",
                 id, cli_time(ns, time), cli_time(cli_now_ns() - begun, spent));
    hd_context_destroy(context);
    return code;
}

/* Each device, and so each route to each GPU; where one fails the others are measured still. */
static int measure(cli_session *session) {
    inventory all;
    int code = take_inventory(session, &all);
    if (code) all.device_count = 0;
    for (size_t i = 0; i < all.device_count; i++)
        if (all.devices[i].kind != HD_DEVICE_NULL && measure_one(session, all.devices[i].id)) code = CLI_FAILED;
    free(all.backends);
    free(all.devices);
    return code;
}

/* ---- the command ---- */

static int list(cli_session *session, const cli_args *args) {
    inventory all;
    bool verbose = cli_get(args, "-v") != NULL;
    int code = take_inventory(session, &all);
    if (!code && cli_get(args, "--json")) code = print_json(session, &all, verbose);
    else if (!code) {
        code = print_backends(session->command, &all);
        if (!code) code = print_devices(session->command, &all);
        if (!code && verbose) code = print_all_caps(session, &all);
    }
    free(all.backends);
    free(all.devices);
    return code;
}

static int devices(const cli_args *args) {
    cli_session session;
    const char *id = cli_get(args, "--caps");
    int code = cli_session_open(args->command, &session), measured = CLI_OK;
    if (!code && cli_get(args, "--probe")) {
        measured = measure(&session);
        cli_session_close(&session);
        code = cli_session_open(args->command, &session); /* which finds the new times */
    }
    if (!code && id) {
        char *text = caps_of(&session, id);
        if (text) cli_print("%s", text);
        else code = CLI_FAILED;
        free(text);
    } else if (!code) code = list(&session, args);
    cli_session_close(&session);
    return code ? code : measured;
}

static const cli_option options[] = {
    { "-v", NULL, "the facts of each device, too, what is taken of its memory, and how it rounds: that is tried out" },
    { "--caps", "ID", "the facts of this device only, as `heddle explain --caps` reads them" },
    { "--probe", NULL, "first measures each device by a small piece of work, and keeps the times, which rank them" },
    CLI_OPTION_JSON,
};

const cli_command cli_devices = {
    "devices", "lists the back ends and the devices there are", "devices [-v] [--probe] [--json]", NULL, options,
    CLI_COUNT(options),
    "The device of rank 0 is taken where none is named; a software device only when it is named.\n"
    "Of real devices, and of several APIs that reach one GPU, the one measured fastest is taken.\n",
    "  heddle devices -v\n", devices
};
