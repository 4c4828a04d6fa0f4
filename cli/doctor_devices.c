/* doctor_devices.c: heddle's own view: back ends and the libraries that they opened, devices with known answers, the
 * cache. */
#include "cli/doctor.h"
#include "cli/machine.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- back ends ---- */

/* How the name of its loader's library begins, on Linux and on Windows. */
static const struct loader { const char *backend, *libraries[2]; } loaders[] = {
    { "vulkan", { "libvulkan.so", "vulkan-1.dll" } }, { "cuda", { "libcuda.so", "nvcuda.dll" } },
    { "hip", { "libamdhip64.so", "amdhip64" } },      { "opencl", { "libOpenCL.so", "OpenCL.dll" } },
    { "levelzero", { "libze_loader.so", "ze_loader.dll" } }, { "webgpu", { "libwgpu_native", "wgpu_native" } },
};

/* Where the library that a back end opened lies; "": it opened none. */
static const char *library_of(const char *backend, char *out, size_t room) {
    bool found = false;
    out[0] = 0;
    for (size_t i = 0; i < CLI_COUNT(loaders); i++)
        for (size_t k = 0; k < 2 && !found && strcmp(loaders[i].backend, backend) == 0; k++)
            found = system_find_library(loaders[i].libraries[k], out, room);
    return out;
}

/* Does the wish, "vulkan" or "vulkan:0", name the back end? */
static bool names_backend(const char *wish, const char *backend) {
    const size_t length = strlen(backend);
    return wish && strncmp(wish, backend, length) == 0 && (!wish[length] || wish[length] == ':');
}

static void tell_backend(doctor_findings *to, const hd_backend_info *backend, bool asked) {
    char path[300];
    const char *library = library_of(backend->name, path, sizeof path);
    if (backend->available) {
        doctor_add(to, DOCTOR_OK, "back end", backend->name, "%u device%s%s%s", (unsigned)backend->device_count,
                   backend->device_count == 1 ? "" : "s", library[0] ? ", by " : "", library);
        return;
    }
    doctor_add(to, asked ? DOCTOR_PROBLEM : DOCTOR_NOTE, "back end", backend->name, "%s%s%s", backend->reason,
               library[0] ? "; its loader is " : "", library);
    doctor_mend(to, "%s", backend->mend[0] ? backend->mend : "unset HEDDLE_BACKEND to look at all");
}

void doctor_backends(doctor_findings *to, hd_context *context, const char *device) {
    hd_backend_info all[16];
    size_t count = CLI_COUNT(all);
    const char *wish = getenv("HEDDLE_BACKEND"), *own = getenv("HEDDLE_DEVICE");
    if (hd_backends(context, all, &count)) {
        doctor_add(to, DOCTOR_PROBLEM, "back end", wish ? wish : "all", "%s", hd_context_error(context));
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, "null") != 0)
            tell_backend(to, &all[i],
                         names_backend(wish, all[i].name) || names_backend(device ? device : own, all[i].name));
}

/* ---- known answers ---- */

/* A small program of what models consist of. In exact mode its result has the same bits on every device: their hash is
 * known. */
#define PROGRAM \
    "heddle 1\n" \
    "v1 = input f32[4,64] \"x\"\n" \
    "v2 = input f32[64,48] \"w\"\n" \
    "v3 = input f32[64] \"g\"\n" \
    "v4 = rms_norm v1 v3 eps=1e-05\n" \
    "v5 = matmul v4 v2\n" \
    "v6 = gelu v5\n" \
    "v7 = softmax v6 axis=-1\n" \
    "output v7 \"y\"\n"
enum { X = 4 * 64, W = 64 * 48, G = 64, Y = 4 * 48 };
#define KNOWN UINT64_C(0x515529585966297d)

static void fill(float *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = (float)(int)(i * 37 % 101) / 64 - 0.75f; /* exact in f32 */
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const float *values, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int k = 0; k < 4; k++) hash = (hash ^ (bits >> 8 * k & 255)) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static hd_status compute(hd_device *device, const hd_program *program, float out_y[Y]) {
    float x[X], w[W], g[G];
    hd_plan *plan = NULL;
    fill(x, X), fill(w, W), fill(g, G);
    hd_status status = hd_plan_create(device, program, &(hd_plan_desc){ .math = HD_MATH_EXACT, .alone = 1 }, &plan);
    if (!status) status = hd_plan_write(plan, "x", x, sizeof x);
    if (!status) status = hd_plan_write(plan, "w", w, sizeof w);
    if (!status) status = hd_plan_write(plan, "g", g, sizeof g);
    if (!status) status = hd_plan_run(plan, NULL);
    if (!status) status = hd_plan_read(plan, "y", out_y, Y * sizeof *out_y);
    hd_plan_destroy(plan);
    return status;
}

/* Kernels that are known to be wrong there. */
static size_t count_wrong(hd_device *device) {
    size_t count = 0, wrong = 0;
    hd_device_facts(device, NULL, &count);
    hd_fact *facts = calloc(count + 1, sizeof *facts);
    if (!facts || hd_device_facts(device, facts, &count)) count = 0;
    for (size_t i = 0; i < count; i++) wrong += facts[i].kind == HD_FACT_VERDICT && facts[i].verdict.wrong;
    free(facts);
    return wrong;
}

static void try_device(doctor_findings *to, hd_context *context, const machine *here, const hd_program *program,
                       const hd_device_info *info) {
    hd_device *device = NULL;
    float y[Y] = { 0 };
    cli_cell bytes, left, time;
    const uint64_t began = cli_now_ns();
    hd_status status = hd_device_open(context, &(hd_device_desc){ .id = info->id }, &device);
    if (!status) status = compute(device, program, y);
    const uint64_t ns = cli_now_ns() - began;
    const double free_bytes = machine_free_device_bytes(here, info);
    if (isnan(free_bytes)) snprintf(left, sizeof left, "unknown");
    else cli_bytes((uint64_t)free_bytes, left);
    if (status) {
        doctor_add(to, DOCTOR_PROBLEM, "device", info->id, "%.100s: %.280s", info->name, hd_context_error(context));
        doctor_mend(to, "update the driver (%s); until then leave the device out by HEDDLE_DEVICE or --device",
                    info->driver);
    } else if (hash_of(y, Y) != KNOWN) {
        doctor_add(to, DOCTOR_PROBLEM, "device", info->id, "%.100s, %.100s: a known answer is wrong there (%016llx)",
                   info->name, info->driver, (unsigned long long)hash_of(y, Y));
        doctor_mend(to, "update the driver; `heddle verify --device %s` finds the kernels that are wrong", info->id);
    } else {
        const bool software = info->kind == HD_DEVICE_SOFTWARE;
        doctor_add(to, software ? DOCTOR_NOTE : DOCTOR_OK, "device", info->id,
                   "%.100s, %s, driver %.80s; memory %s, free %s; known answers right in %s", info->name,
                   cli_kind_name(info->kind), info->driver[0] ? info->driver : "none",
                   cli_bytes(info->memory_bytes, bytes), left, cli_time(ns, time));
        if (software)
            doctor_mend(to, "it computes on the CPU, slower than the device cpu: taken only where it is named");
    }
    const size_t wrong = device ? count_wrong(device) : 0;
    if (wrong) {
        doctor_add(to, DOCTOR_NOTE, "device", info->id,
                   "%zu of its kernels are wrong there, and others take their places", wrong);
        doctor_mend(to, "update the driver; `heddle verify --device %s` tells which", info->id);
    }
    hd_device_close(device);
}

/* ---- devices ---- */

/* The one that is taken; whether what was asked for is there. */
static void tell_selection(doctor_findings *to, hd_context *context, const char *id) {
    hd_device *device = NULL;
    const char *wish = getenv("HEDDLE_DEVICE"), *about = id ? id : wish && wish[0] ? wish : "best";
    if (hd_device_open(context, &(hd_device_desc){ .id = id }, &device)) {
        doctor_add(to, DOCTOR_PROBLEM, "selection", about, "%s", hd_context_error(context));
        doctor_mend(to, "name a device that is below, or mend what is said of its back end");
    } else doctor_add(to, DOCTOR_OK, "selection", about, "%s", hd_device_selection(device));
    hd_device_close(device);
}

void doctor_devices(doctor_findings *to, hd_context *context, const char *device) {
    enum { MOST = 128 };
    hd_device_info *all = calloc(MOST, sizeof *all);
    hd_program *program = NULL;
    size_t count = MOST;
    machine here;
    to->failed |= !all;
    if (!all) return;
    tell_selection(to, context, device);
    machine_open(&here, NULL);
    if (hd_devices(context, all, &count) || hd_program_parse(context, PROGRAM, sizeof PROGRAM - 1, &program))
        doctor_add(to, DOCTOR_PROBLEM, "device", "all", "%s", hd_context_error(context));
    for (size_t i = 0; i < count && program; i++)
        if (all[i].kind != HD_DEVICE_NULL) try_device(to, context, &here, program, &all[i]);
    machine_close(&here);
    hd_program_destroy(program);
    free(all);
}

/* ---- the cache ---- */

void doctor_cache(doctor_findings *to, hd_context *context) {
    const char *folder = hd_context_cache_dir(context), *wish = getenv("HEDDLE_CACHE");
    if (!folder[0]) {
        const bool unwanted = wish && strcmp(wish, "none") == 0;
        doctor_add(to, unwanted ? DOCTOR_NOTE : DOCTOR_PROBLEM, "cache", wish && wish[0] ? wish : "none",
                   "compiled kernels and what is measured are not kept: every start compiles anew");
        doctor_mend(to, unwanted ? "unset HEDDLE_CACHE" : "name a folder of your own by HEDDLE_CACHE, or set HOME");
        return;
    }
    const system_folder found = system_look_at_folder(folder);
    const bool full = found.free_bytes < (1u << 20);
    cli_cell taken, left;
    cli_bytes(found.bytes, taken), cli_bytes(found.free_bytes, left);
    doctor_add(to, found.writable && !full ? DOCTOR_OK : DOCTOR_PROBLEM, "cache", folder,
               "%llu files, %s; %s free on its disk%s", (unsigned long long)found.count, taken,
               found.free_bytes == UINT64_MAX ? "unknown" : left,
               found.writable ? "" : "; nothing can be written there");
    if (!found.writable) doctor_mend(to, "chown it to this user, or name another folder by HEDDLE_CACHE");
    else if (full) doctor_mend(to, "free disk space, or name another folder by HEDDLE_CACHE");
}
