/* workload.c: the operations that `heddle bench` knows, and running them. */
#include "cli/workload.h"
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

/* ---- operations ---- */

enum { ROW = 512, HEADS = 8, HEAD = 64, TABLE_ROWS = 256 };

#define BIT(type) (1u << (type))
#define FLOATS    (BIT(HD_F32) | BIT(HD_F16) | BIT(HD_BF16))
#define QUANTISED (BIT(HD_DTYPE_COUNT) - 1u - FLOATS - BIT(HD_I32) - BIT(HD_U8) - BIT(HD_I8) - BIT(HD_U32) - \
                   BIT(HD_I64) - BIT(HD_DTYPE_NONE))

static bool is_quantised(hd_dtype type) { return (QUANTISED >> type & 1u) != 0; }

static hd_value flat(hd_program *p, const char *name, hd_dtype type, int64_t n) {
    return hd_input(p, name, type, HD_SHAPE(n));
}
static hd_value rows(hd_program *p, hd_dtype type, int64_t n) { return hd_input(p, "x", type, HD_SHAPE(n / ROW, ROW)); }
static hd_value square(hd_program *p, const char *name, hd_dtype type, int64_t n) {
    return hd_input(p, name, type, HD_SHAPE(n, n));
}

static hd_value build_copy(hd_program *p, hd_dtype type, int64_t n) { return hd_copy(p, flat(p, "x", type, n)); }
static hd_value build_vecadd(hd_program *p, hd_dtype type, int64_t n) {
    return hd_add(p, flat(p, "a", type, n), flat(p, "b", type, n));
}
static hd_value build_gelu(hd_program *p, hd_dtype type, int64_t n) { return hd_gelu(p, flat(p, "x", type, n)); }
static hd_value build_sum(hd_program *p, hd_dtype type, int64_t n) { return hd_sum(p, rows(p, type, n), -1); }
static hd_value build_softmax(hd_program *p, hd_dtype type, int64_t n) { return hd_softmax(p, rows(p, type, n), -1); }
static hd_value build_rms_norm(hd_program *p, hd_dtype type, int64_t n) {
    const hd_value x = rows(p, type, n);
    return hd_rms_norm(p, x, flat(p, "weight", type, ROW), 1e-5f);
}
static hd_value build_transpose(hd_program *p, hd_dtype type, int64_t n) {
    return hd_transpose(p, square(p, "x", type, n));
}

/* Weights lie as in model files, [N,K]; activations beside quantised ones are f32. */
static hd_value times_weights(hd_program *p, hd_dtype type, int64_t row_count, int64_t n) {
    const hd_value a = hd_input(p, "a", is_quantised(type) ? HD_F32 : type, HD_SHAPE(row_count, n));
    return hd_matmul_with(p, a, square(p, "b", type, n), HD_TRANSPOSE_B);
}
static hd_value build_matvec(hd_program *p, hd_dtype type, int64_t n) { return times_weights(p, type, 1, n); }
static hd_value build_matmul(hd_program *p, hd_dtype type, int64_t n) {
    if (is_quantised(type)) return times_weights(p, type, n, n);
    const hd_value a = square(p, "a", type, n);
    return hd_matmul(p, a, square(p, "b", type, n));
}
static hd_value build_attention(hd_program *p, hd_dtype type, int64_t n) {
    const hd_shape shape = HD_SHAPE(n, HEADS, HEAD);
    const hd_value q = hd_input(p, "q", type, shape), k = hd_input(p, "k", type, shape);
    return hd_attention(p, q, k, hd_input(p, "v", type, shape), 0, &(hd_attention_desc){ .not_causal = 1 });
}

static hd_value build_gather(hd_program *p, hd_dtype type, int64_t n) {
    const hd_value all_rows = hd_input(p, "table", type, HD_SHAPE(TABLE_ROWS, ROW));
    return hd_gather(p, all_rows, flat(p, "rows", HD_I32, n / ROW));
}
static hd_value build_rope(hd_program *p, hd_dtype type, int64_t n) {
    const int64_t tokens = n / (HEADS * HEAD);
    const hd_value x = hd_input(p, "x", type, HD_SHAPE(tokens, HEADS, HEAD));
    return hd_rope(p, x, flat(p, "positions", HD_I32, tokens), NULL);
}

static double none(double n) { return 0 * n; }
static double once(double n) { return n; }
static double four_times(double n) { return 4 * n; }
static double six_times(double n) { return 6 * n; }
static double five_times(double n) { return 5 * n; } /* largest, difference, e^x, sum, quotient */
static double of_matvec(double n) { return 2 * n * n; }
static double of_matmul(double n) { return 2 * n * n * n; }
static double of_attention(double n) { return 4 * n * n * HEADS * HEAD; }

static void print_flat(char *out, size_t room, unsigned long long n) { snprintf(out, room, "n=%llu", n); }
static void print_rows(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "rows=%llu n=%d", n / ROW, ROW);
}
static void print_tokens(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "t=%llu h=%d d=%d", n / (HEADS * HEAD), HEADS, HEAD);
}
static void print_square(char *out, size_t room, unsigned long long n) { snprintf(out, room, "m=%llu n=%llu", n, n); }
static void print_matvec(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "m=1 n=%llu k=%llu", n, n);
}
static void print_matmul(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "m=%llu n=%llu k=%llu", n, n, n);
}
static void print_attention(char *out, size_t room, unsigned long long n) {
    snprintf(out, room, "t=%llu s=%llu h=%d d=%d", n, n, HEADS, HEAD);
}

#define FLAT 1024, 4u << 20, 16u << 20
const workload_op workload_ops[] = {
    { "vecadd", "elements", FLAT, 1, FLOATS | BIT(HD_I32), build_vecadd, once, print_flat },
    { "matmul", "rows and columns", 16, 1024, 1024, 1, FLOATS | QUANTISED, build_matmul, of_matmul, print_matmul },
    { "matvec", "rows and columns of the weights", 64, 4096, 4096, 1, FLOATS | QUANTISED, build_matvec, of_matvec,
      print_matvec },
    { "softmax", "elements, in rows of 512", FLAT, ROW, FLOATS, build_softmax, five_times, print_rows },
    { "attention", "tokens, in 8 heads of 64", 16, 1024, 1024, 1, FLOATS, build_attention, of_attention,
      print_attention },
    { "rms_norm", "elements, in rows of 512", FLAT, ROW, FLOATS, build_rms_norm, four_times, print_rows },
    { "sum", "elements, in rows of 512", FLAT, ROW, FLOATS | BIT(HD_I32), build_sum, once, print_rows },
    { "gelu", "elements", FLAT, 1, FLOATS, build_gelu, once, print_flat },
    { "transpose", "rows and columns", 32, 2048, 4096, 1, FLOATS | BIT(HD_I32), build_transpose, none, print_square },
    { "copy", "elements", FLAT, 1, FLOATS | BIT(HD_I32), build_copy, none, print_flat },
    { "gather", "elements, in rows of 512", FLAT, ROW, FLOATS, build_gather, none, print_rows },
    { "rope", "elements, in 8 heads of 64", FLAT, HEADS *HEAD, FLOATS, build_rope, six_times, print_tokens },
};
const size_t workload_op_count = sizeof workload_ops / sizeof workload_ops[0];

const workload_op *workload_find(const char *name) {
    for (size_t i = 0; i < workload_op_count; i++)
        if (strcmp(workload_ops[i].name, name) == 0) return &workload_ops[i];
    return NULL;
}

bool workload_takes(const workload_op *op, hd_dtype type) {
    return type > HD_DTYPE_NONE && type < HD_DTYPE_COUNT && (op->types >> type & 1u);
}

size_t workload_sizes(const workload_op *op, hd_dtype type, uint64_t least, uint64_t most, bool between,
                      uint64_t *out_sizes, size_t room) {
    size_t count = 0;
    for (uint64_t power = 1; power <= most && power < UINT64_C(1) << 40; power *= 2)
        for (uint64_t n = power; n < 2 * power; n += between && power > 1 ? power / 2 : power)
            if (n >= least && n <= most && n % op->unit == 0 && hd_dtype_bytes(type, n) > 0 && count < room)
                out_sizes[count++] = n;
    return count;
}

hd_program *workload_program(hd_context *context, const workload_op *op, hd_dtype type, uint64_t n,
                             char out_size_text[64], table_row *row) {
    hd_program *program = hd_program_create(context);
    hd_dtype dtype;
    hd_shape shape = { 0 };
    if (!program) return NULL;
    const hd_value result = op->build(program, type, (int64_t)n);
    hd_output(program, "y", result);
    if (hd_program_check(program) || hd_value_describe(program, result, &dtype, &shape)) {
        hd_program_destroy(program);
        return NULL;
    }
    op->print(out_size_text, 64, n);
    row->op = op->name;
    row->type = hd_dtype_name(type);
    row->size = out_size_text;
    row->elements = (double)hd_shape_elements(shape);
    row->flops = op->flops((double)n);
    row->bytes = 0;
    for (size_t i = 0; i < hd_program_port_count(program); i++) {
        const hd_port port = hd_program_port(program, i);
        row->bytes += (double)hd_tensor_bytes(port.dtype, port.shape);
    }
    return program;
}

/* ---- data ---- */

/* Pairs of bytes that are ordinary as f16, so that the scales of quantised blocks are too, and as bf16 and f32. Values
 * differ: some devices draw less power, and run faster, on values that are all the same. */
static void fill(void *data, uint64_t bytes, hd_dtype type) {
    unsigned char *at = data;
    int32_t *index = data;
    const bool wide = type == HD_F32 || type == HD_BF16;
    uint32_t state = 1;
    if (type == HD_I32) /* rows of the smallest table, and positions */
        for (uint64_t i = 0; i < bytes / 4; i++) index[i] = (int32_t)(i * 37 % TABLE_ROWS);
    for (uint64_t i = 0; i + 1 < bytes && type != HD_I32; i += 2) {
        state = state * 1664525u + 1013904223u;
        at[i] = (unsigned char)(state >> 24);
        at[i + 1] = (unsigned char)((wide ? 0x3E : 0x2C) | (state >> 16 & (wide ? 0x80 : 0x83)));
    }
}

bool workload_data_hold(workload_data *data, const hd_program *program) {
    const size_t count = hd_program_port_count(program);
    if (count > WORKLOAD_PORTS) return false;
    for (size_t i = 0; i < count; i++) {
        const hd_port port = hd_program_port(program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (bytes <= data->bytes[i]) continue;
        void *larger = system_aligned((size_t)bytes);
        if (!larger) return false;
        system_aligned_free(data->ports[i]);
        data->ports[i] = larger;
        data->bytes[i] = bytes;
        fill(larger, bytes, port.dtype);
    }
    return true;
}

void workload_data_free(workload_data *data) {
    for (size_t i = 0; i < WORKLOAD_PORTS; i++) system_aligned_free(data->ports[i]);
    *data = (workload_data){ 0 };
}

/* ---- jobs ---- */

static hd_status move(workload_job *job, hd_port_kind kind) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < hd_program_port_count(job->program) && !status; i++) {
        const hd_port port = hd_program_port(job->program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind != kind) continue;
        if (kind == HD_PORT_INPUT) status = hd_plan_write(job->plan, port.name, job->data->ports[i], bytes);
        else status = hd_plan_read(job->plan, port.name, job->data->ports[i], bytes);
    }
    return status;
}

static hd_status bind(workload_job *job) {
    hd_status status = HD_OK;
    for (size_t i = 0; i < hd_program_port_count(job->program) && !status; i++) {
        const hd_port port = hd_program_port(job->program, i);
        const hd_buffer_desc desc = { .bytes = hd_tensor_bytes(port.dtype, port.shape),
                                      .label = port.name, .memory = job->data->ports[i] };
        status = hd_buffer_create(job->device, &desc, &job->buffers[i]);
        if (!status) status = hd_plan_bind(job->plan, port.name, job->buffers[i], 0);
    }
    return status;
}

hd_status workload_job_begin(workload_job *job) {
    job->desc.alone = 1; /* this device is what is measured */
    const hd_status status = hd_plan_create(job->device, job->program, &job->desc, &job->plan);
    if (status) return status;
    if (!job->in_place) return workload_run_with_transfers(job);
    const hd_status bound = bind(job);
    return bound ? bound : workload_run(job);
}

hd_status workload_run(void *user) { return hd_plan_run(((workload_job *)user)->plan, NULL); }

hd_status workload_run_with_transfers(void *user) {
    workload_job *job = user;
    const uint64_t began = cli_now_ns();
    hd_status status = move(job, HD_PORT_INPUT);
    const uint64_t written = cli_now_ns();
    if (!status) status = workload_run(job);
    const uint64_t ran = cli_now_ns();
    if (!status) status = move(job, HD_PORT_OUTPUT);
    job->write_ns = written - began;
    job->run_ns = ran - written;
    job->handed_ns = ran - began;
    job->read_ns = cli_now_ns() - ran;
    return status;
}

void workload_job_end(workload_job *job) {
    hd_plan_destroy(job->plan);
    for (size_t i = 0; i < WORKLOAD_PORTS; i++) hd_buffer_destroy(job->buffers[i]);
    hd_program_destroy(job->program);
    *job = (workload_job){ 0 };
}
