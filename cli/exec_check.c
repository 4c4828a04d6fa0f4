/* exec_check.c: see exec_check.h. */
#include "cli/exec_check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random inputs ---- */

bool exec_random(const char *text, uint64_t seed, npy_array *out_array) {
    hd_dtype dtype;
    hd_shape shape;
    if (!cli_read_tensor(text, &dtype, &shape) || (dtype != HD_F32 && dtype != HD_I32 && dtype != HD_U8)) return false;
    const uint64_t bytes = hd_tensor_bytes(dtype, shape), step = dtype == HD_U8 ? 1 : 4;
    *out_array = (npy_array){ .kind = dtype == HD_F32 ? 'f' : dtype == HD_I32 ? 'i' : 'u', .item_bytes = (uint32_t)step,
                              .shape = shape, .bytes = bytes, .data = malloc((size_t)bytes) };
    if (!out_array->data) return false;
    seed = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (uint64_t at = 0; at < bytes; at += step) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const float real = (float)(seed >> 40) / 8388608.0f - 1.0f;
        const uint32_t whole = (uint32_t)(seed >> 40) & 255;
        memcpy((char *)out_array->data + at, dtype == HD_F32 ? (const void *)&real : (const void *)&whole,
               (size_t)step);
    }
    return true;
}

/* ---- on the CPU ---- */

static hd_status run_plan(const cli_job *job, hd_plan *plan, exec_check *check) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < job->port_count && !status; i++)
        if (job->ports[i].array.data)
            status = hd_plan_write(plan, job->ports[i].port.name, job->ports[i].array.data, job->ports[i].array.bytes);
    if (!status) status = hd_plan_run(plan, NULL);
    for (size_t i = 0; i < job->port_count && i < CLI_COUNT(check->wanted) && !status; i++) {
        const hd_port *port = &job->ports[i].port;
        const uint64_t bytes = hd_tensor_bytes(port->dtype, port->shape);
        if (port->kind != HD_PORT_OUTPUT) continue;
        check->wanted[i] = malloc((size_t)bytes);
        status =
            check->wanted[i] ? hd_plan_read(plan, port->name, check->wanted[i], bytes) : HD_STATUS_OUT_OF_HOST_MEMORY;
    }
    return status;
}

int exec_check_run(const cli_job *job, exec_check *out_check) {
    cli_session *session = job->session;
    hd_device *cpu = NULL;
    hd_plan *plan = NULL;
    hd_status status = hd_device_open(session->context, &(hd_device_desc){ .id = "cpu" }, &cpu);
    if (!status) status = hd_plan_create(cpu, job->program, NULL, &plan);
    if (!status) status = run_plan(job, plan, out_check);
    const int code = status ? cli_session_fail(session, "--check") : CLI_OK;
    hd_plan_destroy(plan);
    hd_device_close(cpu);
    return code;
}

/* ---- comparing ---- */

static double number_at(hd_dtype dtype, const void *data, uint64_t i) {
    float single;
    uint16_t half;
    if (dtype == HD_F32) {
        memcpy(&single, (const char *)data + 4 * i, 4);
        return (double)single;
    }
    memcpy(&half, (const char *)data + 2 * i, 2);
    const double size =
        (half >> 10 & 31) ? ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25) : ldexp(half & 1023, -24);
    if ((half >> 10 & 31) == 31) return half & 1023 ? (double)NAN : half >> 15 ? -(double)INFINITY : (double)INFINITY;
    return half >> 15 ? -size : size;
}

/* Equal, or floats that are near. */
static bool agree(hd_dtype dtype, const void *a, const void *b, uint64_t i, uint64_t bytes) {
    const double tolerance = 0x1p-10;
    if (memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, (size_t)bytes) == 0) return true;
    if (dtype != HD_F32 && dtype != HD_F16) return false;
    const double x = number_at(dtype, a, i), y = number_at(dtype, b, i);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * fmax(1, fabs(y));
}

int exec_check_compare(const cli_job *job, const exec_check *check) {
    int code = CLI_OK;
    for (size_t i = 0; i < job->port_count && i < CLI_COUNT(check->wanted); i++) {
        const cli_port *port = &job->ports[i];
        if (!check->wanted[i]) continue;
        const uint64_t bytes = hd_tensor_bytes(port->port.dtype, (hd_shape){ .rank = 1, .dims = { 1 } });
        const uint64_t count = bytes ? port->array.bytes / bytes : 0;
        uint64_t wrong = 0, first = 0;
        for (uint64_t k = count; k-- > 0;)
            if (!agree(port->port.dtype, port->array.data, check->wanted[i], k, bytes)) wrong++, first = k;
        if (wrong == 0) {
            cli_note("heddle exec: binding %s: all %llu are those of the interpreter\n", port->port.name,
                     (unsigned long long)count);
            continue;
        }
        code =
            cli_fail(job->session->command,
                     "binding %s: %llu of %llu are not those of the interpreter, the first is number %llu",
                     port->port.name, (unsigned long long)wrong, (unsigned long long)count, (unsigned long long)first);
    }
    return code;
}

void exec_check_end(exec_check *check) {
    for (size_t i = 0; i < CLI_COUNT(check->wanted); i++) free(check->wanted[i]);
}
