/* load.c: opens the OpenCL loader at run time, so that neither an SDK nor a driver is needed to build or to start; and
 * what a device is asked for: facts, caps, texts of errors. */
#include "device/opencl/cl.h"
#include <stdio.h>

static const hdi_function functions[] = {
#define HDCL_FUNCTION(need, name, status, results) \
    { "cl" #name, offsetof(hdcl_cl, name), HDCL_LIBRARY, need, HD_STATUS_##status, results },
#define HDCL_EXTENSION(name, type, status, results) \
    { "cl" #name, offsetof(hdcl_cl, name), HDCL_PLATFORM, true, HD_STATUS_##status, results },
#include "device/opencl/functions.inc"
};
static const hdi_result results[] = {
#define RESULT_ROW(code, status, text) { CL_##code, HD_STATUS_##status, text },
    HDCL_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};
const hdi_api hdcl_api = { "opencl", functions, HDI_COUNT(functions), results, HDI_COUNT(results) };
const hdi_function *hdcl_function_get(hdcl_function function) { return &functions[function]; }
cl_int hdcl_result_of(hdcl_result_row row) { return (cl_int)results[row].code; }

static hdcl_fault_fn fault_now;
void hdcl_fault_set(hdcl_fault_fn fault) { fault_now = fault; }
static uint32_t hidden_now;
void hdcl_hide_set(uint32_t parts) { hidden_now = parts; }
cl_int hdcl_fault(hdcl_function function) { return fault_now ? fault_now(function) : CL_SUCCESS; }

const char *hdcl_load(hdcl_cl *cl, const char **out_mend) {
    static const char *const names[] = { "libOpenCL.so.1", "libOpenCL.so", "OpenCL.dll",
                                         "/System/Library/Frameworks/OpenCL.framework/OpenCL", NULL };
    const void *library = hdi_library_open(names);
    *out_mend = "install an OpenCL loader (Debian: ocl-icd-libopencl1) and a driver";
    if (!library) return "there is no OpenCL loader";
    if (hdi_functions_load(&hdcl_api, HDCL_LIBRARY, hdi_library_look_up, library, cl))
        return "the OpenCL loader is older than version 1.2";
    if (hidden_now & HDCL_HIDE_SHARED) cl->SVMAlloc = NULL;
    return NULL;
}

/* ---- failures ---- */

_Thread_local hdcl_outcome hdcl_last;

hd_status hdcl_lost(const hdi_backend_device *device, hd_error *error) {
    return hdi_loss_tell(&device->loss, "opencl", error);
}

hd_status hdcl_no_memory(hd_error *error, const char *what) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_HOST_MEMORY, "opencl", 0, "no host memory for %s", what);
}

hd_status hdcl_fail(hdi_backend_device *device, hd_error *error, const char *format, ...) {
    const hdi_failed_call call = { &hdcl_api, hdcl_last.function, hdcl_last.result, "", &device->loss };
    va_list args;
    va_start(args, format);
    const hd_status status = hdi_call_fail(&call, error, format, args);
    va_end(args);
    return status;
}

/* ---- devices ---- */

/* Questions about one device; one that fails spoils the rest, as a device that is known in part cannot be used. */
typedef struct question {
    const hdcl_cl *cl;
    cl_device_id   id;
    bool           failed;
} question;

static void ask(question *q, cl_device_info what, size_t bytes, void *out) {
    q->failed = q->failed || hdcl_fault(HDCL_FN_GetDeviceInfo) != CL_SUCCESS ||
                q->cl->GetDeviceInfo(q->id, what, bytes, out, NULL) != CL_SUCCESS;
    if (q->failed) memset(out, 0, bytes);
}

static uint64_t number(question *q, cl_device_info what, size_t bytes) {
    uint64_t value = 0; /* little-endian, as all hosts of OpenCL are */
    ask(q, what, bytes, &value);
    return value;
}

static void text(question *q, cl_device_info what, char *out, size_t room) {
    ask(q, what, room, out);
    out[room - 1] = 0;
}

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) return true;
    return false;
}

static uint32_t version_of(const char *text_of_version) { /* "OpenCL 3.0 ..." */
    unsigned major = 0, minor = 0;
    if (sscanf(text_of_version, "OpenCL %u.%u", &major, &minor) != 2) return 0;
    return major * 10 + minor;
}

/* Command buffers of a version whose functions are known here, on any queue. */
static bool offers_recording(question *q, const char *extensions, uint32_t version) {
    cl_name_version list[256] = { { 0 } };
    bool known = false;
    if (version < 30 || !has_word(extensions, "cl_khr_command_buffer")) return false;
    ask(q, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof list, list);
    for (size_t i = 0; i < HDI_COUNT(list); i++)
        known |= strncmp(list[i].name, "cl_khr_command_buffer", sizeof list[i].name) == 0 &&
                 list[i].version < CL_MAKE_VERSION(0, 9, 5);
    return known && number(q, HDCL_DEVICE_COMMAND_BUFFER_CAPABILITIES, 8) & HDCL_CAPABILITY_SIMULTANEOUS &&
           (number(q, HDCL_DEVICE_COMMAND_BUFFER_QUEUE, 8) & ~(uint64_t)CL_QUEUE_PROFILING_ENABLE) == 0;
}

/* The numbers of two extensions, which older headers lack. */
#define PCI_BUS_INFO_KHR  0x410Fu
#define PCI_BUS_ID_NV     0x4008u
#define PCI_SLOT_ID_NV    0x4009u
#define PCI_DOMAIN_ID_NV  0x400Au

/* NVIDIA's compiler takes PTX in its text; what of it a GPU knows is as in CUDA. PoCL names the extension too, but
 * compiles with clang. */
#define COMPUTE_CAPABILITY_MAJOR_NV 0x4000u
#define COMPUTE_CAPABILITY_MINOR_NV 0x4001u
static uint32_t ptx_offers(question *q, const char *extensions, bool is_pocl) {
    enum { LEAST = 70, FIRST_FRAGMENTS = 80 };
    if (is_pocl || (hidden_now & HDCL_HIDE_PTX) || !has_word(extensions, "cl_nv_device_attribute_query")) return 0;
    const uint64_t arch = number(q, COMPUTE_CAPABILITY_MAJOR_NV, sizeof(cl_uint)) * 10 +
                          number(q, COMPUTE_CAPABILITY_MINOR_NV, sizeof(cl_uint));
    if (arch < LEAST) return 0;
    return HDI_SPIRV_OFFERS_PTX |
           (arch >= FIRST_FRAGMENTS ? HDI_SPIRV_OFFERS_MATRIX_UNITS | HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS : 0u);
}

/* Where the device is on the PCI bus, by which the same one is known through other APIs; "" where the driver does not
 * say. */
static void read_pci(question *q, const char *extensions, char *out, size_t room) {
    cl_uint at[4] = { 0 }; /* domain, bus, device, function */
    out[0] = 0;
    if (has_word(extensions, "cl_khr_pci_bus_info")) {
        ask(q, PCI_BUS_INFO_KHR, sizeof at, at);
    } else if (has_word(extensions, "cl_nv_device_attribute_query")) {
        const uint64_t slot = number(q, PCI_SLOT_ID_NV, sizeof(cl_uint));
        at[0] = (cl_uint)number(q, PCI_DOMAIN_ID_NV, sizeof(cl_uint));
        at[1] = (cl_uint)number(q, PCI_BUS_ID_NV, sizeof(cl_uint));
        at[2] = (cl_uint)slot >> 3;
        at[3] = (cl_uint)slot & 7;
    } else return;
    snprintf(out, room, "%04x:%02x:%02x.%x", at[0] & 0xffffu, at[1] & 0xffu, at[2] & 0xffu, at[3] & 0xfu);
}

static bool read_facts(const hdcl_cl *cl, hdcl_facts *facts) {
    question q = { cl, facts->id, false };
    char version[128], name[128], driver[64], extensions[16384];
    text(&q, CL_DEVICE_VERSION, version, sizeof version);
    text(&q, CL_DEVICE_NAME, name, sizeof name);
    text(&q, CL_DRIVER_VERSION, driver, sizeof driver);
    text(&q, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    bool usable = version_of(version) >= 12 && number(&q, CL_DEVICE_AVAILABLE, sizeof(cl_bool)) &&
                  number(&q, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool)) &&
                  number(&q, CL_DEVICE_ENDIAN_LITTLE, sizeof(cl_bool));
    if (!usable) return false;
    uint64_t rounding = number(&q, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(cl_device_fp_config));
    uint64_t svm =
        version_of(version) >= 20 ? number(&q, CL_DEVICE_SVM_CAPABILITIES, sizeof(cl_device_svm_capabilities)) : 0;
    facts->is_pocl = strstr(version, "PoCL") != NULL || strstr(version, "pocl") != NULL;
    facts->keeps_subnormals = rounding & CL_FP_DENORM;
    facts->rounds_division = rounding & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    facts->shares = cl->SVMAlloc && cl->SVMFree && svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    facts->offers =
        (has_word(extensions, "cl_khr_fp64") ? HDI_SPIRV_OFFERS_FP64 : 0) |
        (has_word(extensions, "cl_khr_fp16") ? HDI_SPIRV_OFFERS_FP16 : 0) |
        (has_word(extensions, "cl_khr_int64_base_atomics") && has_word(extensions, "cl_khr_int64_extended_atomics")
             ? HDI_SPIRV_OFFERS_INT64_ATOMICS
             : 0) |
        ptx_offers(&q, extensions, facts->is_pocl);
    facts->records = !(hidden_now & HDCL_HIDE_RECORDING) && offers_recording(&q, extensions, version_of(version));
    read_pci(&q, extensions, facts->pci, sizeof facts->pci);
    snprintf(facts->identity, sizeof facts->identity, "%.100s, %.60s, %.60s", name, version, driver);
    return !q.failed;
}

/* What PTX gives kernels: the same as CUDA (device/cuda/cuda.c), but for the matrix units of before sm_80: their text
 * was not compiled after a minute (seen with 580.159). */
static void add_ptx(uint32_t offers, hdi_caps *caps) {
    if (!(offers & HDI_SPIRV_OFFERS_PTX)) return;
    caps->subgroup = 32;
    caps->subgroup_arithmetic = caps->subgroup_shuffle = caps->subgroup_control = 1;
    caps->f16_arithmetic = caps->integer_dot = caps->memory_model = 1;
    caps->matrix_f16 = caps->matrix_s8 = caps->matrix_s8_narrow = caps->matrix_reduces =
        (offers & HDI_SPIRV_OFFERS_MATRIX_UNITS) != 0;
}

/* The device as the seam describes it; false where a question failed. */
static bool describe(const hdcl_cl *cl, const hdcl_facts *facts, hdi_found *out_found) {
    question q = { cl, facts->id, false };
    hd_device_info *info = &out_found->info;
    uint64_t type = number(&q, CL_DEVICE_TYPE, sizeof(cl_device_type)),
             memory = number(&q, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    uint64_t units = number(&q, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint)),
             mhz = number(&q, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint));
    bool software = type & CL_DEVICE_TYPE_CPU, unified = number(&q, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(cl_bool));
    size_t sizes[3];
    ask(&q, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes);
    text(&q, CL_DEVICE_NAME, info->name, sizeof info->name);
    text(&q, CL_DEVICE_VERSION, info->driver, sizeof info->driver);
    snprintf(info->backend, sizeof info->backend, "opencl");
    snprintf(info->pci, sizeof info->pci, "%s", facts->pci);
    info->kind = software                    ? HD_DEVICE_SOFTWARE
                 : type & CL_DEVICE_TYPE_GPU ? unified ? HD_DEVICE_INTEGRATED_GPU : HD_DEVICE_DISCRETE_GPU
                                             : HD_DEVICE_OTHER;
    info->memory_bytes = memory;
    out_found->caps = (hdi_caps){
        .memory_bytes = memory, .host_bytes = facts->shares ? memory : 0,
        .max_allocation_bytes = number(&q, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8),
        .binding_align = 64, .max_bindings = HDI_MAX_BINDINGS, .max_push_bytes = HDI_MAX_PUSH_WORDS * 4,
        .max_workgroup = number(&q, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)), .max_workgroup_x = sizes[0],
        .max_groups_x = INT32_MAX, .max_groups_y = UINT16_MAX, .max_groups_z = UINT16_MAX,
        .shared_bytes = number(&q, CL_DEVICE_LOCAL_MEM_SIZE, 8), .f16_storage = 1, .u8_storage = 1, .i8_arithmetic = 1,
        .unified_memory = facts->shares, .host_visible = facts->shares, .timestamps = 1, .dispatch_base = 1,
        .compute_units = units, .gflops = software ? 8 * units : HDI_MAX(units * mhz * 128 / 1000, UINT64_C(100)),
        .gbytes_s = software ? 10 : 100, .software = software };
    out_found->caps.max_binding_bytes = out_found->caps.max_allocation_bytes;
    add_ptx(facts->offers, &out_found->caps);
    snprintf(out_found->caps.name, sizeof out_found->caps.name, "%s", info->name);
    return !q.failed;
}

uint32_t hdcl_list(const hdcl_cl *cl, hdcl_facts *out_facts, hdi_found *out_found, uint32_t room) {
    cl_platform_id platforms[16];
    cl_uint platform_count = 0, device_count = 0;
    uint32_t count = 0;
    if (hdcl_fault(HDCL_FN_GetPlatformIDs) != CL_SUCCESS ||
        cl->GetPlatformIDs(HDI_COUNT(platforms), platforms, &platform_count) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < platform_count && i < HDI_COUNT(platforms); i++) {
        cl_device_id devices[16];
        if (hdcl_fault(HDCL_FN_GetDeviceIDs) != CL_SUCCESS ||
            cl->GetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, HDI_COUNT(devices), devices, &device_count) !=
                CL_SUCCESS)
            continue;
        for (cl_uint k = 0; k < device_count && k < HDI_COUNT(devices) && count < room; k++) {
            hdcl_facts facts = { .platform = platforms[i], .id = devices[k] };
            hdi_found *found = &out_found[count];
            memset(found, 0, sizeof *found);
            if (!read_facts(cl, &facts) || !describe(cl, &facts, found)) continue;
            found->index = count;
            snprintf(found->info.id, sizeof found->info.id, "opencl:%08x",
                     (unsigned)(hdi_hash(HDI_HASH_START, facts.identity, strlen(facts.identity)) + count));
            out_facts[count++] = facts;
        }
    }
    return count;
}

void hdcl_probe(const hdi_host *host, hdi_probe *out_probe) {
    (void)host;
    hdcl_cl cl;
    hdcl_facts facts[HDI_MAX_FOUND];
    const char *mend;
    memset(out_probe, 0, sizeof *out_probe);
    const char *reason = hdcl_load(&cl, &mend);
    if (!reason) out_probe->found_count = hdcl_list(&cl, facts, out_probe->found, HDI_COUNT(facts));
    if (out_probe->found_count) return;
    snprintf(out_probe->reason, sizeof out_probe->reason, "%s",
             reason ? reason : "no OpenCL device of version 1.2 or newer");
    snprintf(out_probe->mend, sizeof out_probe->mend, "%s", mend);
}
