/* bench_opencl.c: translated kernels beside twins written by hand in OpenCL C (twins.cl): the same algorithm, buffers, queue
 * and workgroups, in turn; medians of time, and how far the results are apart. A GPU is timed by the driver's events; where
 * the device is this computer's own processor, what counts is the time that the process had of it, whoever else runs.
 *   bench_opencl [rounds] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include "device/opencl/cl.h"
#include "kernels/kernel.h"
#include "plan/schedule.h"
#include <heddle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pair {
    const char *twin, *program;
    uint32_t    buffers[3], buffer_count; /* slots of the plan, in the twin's order; the last one is the output */
    uint32_t    push_bytes;               /* of the kernel's push constants, which the twin takes after its buffers */
} pair;
static const pair pairs[] = {
    { "matmul",
      "a = input f32[256,2048] \"a\"\nb = input f32[512,2048] \"b\"\nc = matmul a b transpose_b\noutput c \"c\"",
      { 0, 1, 2 },
      3,
      17 * 4 },
    { "matvec",
      "a = input f32[1,4096] \"a\"\nb = input f32[4096,4096] \"b\"\nc = matmul a b transpose_b\noutput c \"c\"",
      { 0, 1, 2 },
      3,
      17 * 4 },
    { "softmax", "x = input f32[2048,1024] \"x\"\ny = softmax x axis=1\noutput y \"y\"", { 0, 1 }, 2, 2 * 4 },
};
enum { MAX_ROUNDS = 1000, MAX_SLOTS = 8 };

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "bench_opencl: %s\n", what);
    exit(1);
}

static const hdi_backend *const backend = &hdi_backend_opencl;
static hdi_backend_device *device;
static cl_program twins;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compile_twins(void) {
    static char text[1 << 16];
    FILE *file = fopen(HEDDLE_BENCH_DIR "/twins.cl", "rb");
    must(file != NULL, "twins.cl is missing");
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    const char *source = text;
    const char *options = device->found.info.kind == HD_DEVICE_SOFTWARE ? "-cl-std=CL1.2 -DUNROLL=1" : "-cl-std=CL1.2 -DUNROLL=8";
    cl_int result;
    fclose(file);
    twins = device->cl.CreateProgramWithSource(device->context, 1, &source, &bytes, &result);
    must(twins && device->cl.BuildProgram(twins, 1, &device->facts.id, options, NULL, NULL) == CL_SUCCESS, "the twins do not compile");
}

static double processor_us(void) { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

/* Microseconds of one launch. */
static double launch(cl_kernel kernel, const size_t *groups, size_t workgroup) {
    const size_t global[3] = { groups[0] * workgroup, groups[1], groups[2] }, local[3] = { workgroup, 1, 1 };
    cl_event event;
    cl_ulong begun = 0, ended = 0;
    cl_int state = CL_QUEUED;
    const double before = processor_us();
    must(device->cl.EnqueueNDRangeKernel(device->queue, kernel, 3, NULL, global, local, 0, NULL, &event) == CL_SUCCESS, "a launch failed");
    device->cl.Flush(device->queue);
    while (state > CL_COMPLETE) {
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
        device->cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    }
    const double used = processor_us() - before;
    device->cl.GetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begun, &begun, NULL);
    device->cl.GetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ended, &ended, NULL);
    device->cl.ReleaseEvent(event);
    return device->found.info.kind == HD_DEVICE_SOFTWARE ? used : (double)(ended - begun) / 1e3;
}

/* The plan's one launch, through the back end: afterwards the kernel holds its arguments. */
static hdi_loaded_kernel *load(const hdi_cmds *cmds, const hdi_slot *slots) {
    hdi_loaded_kernel *loaded = NULL;
    hd_error error = { 0 };
    bool cached;
    uint64_t ticket;
    must(cmds->kernel_count == 1, "the plan has several kernels");
    must(backend->kernel_load(device, hdi_module_get(cmds->kernels[0].module), &cmds->kernels[0], &loaded, &cached,
                              &error) == HD_OK,
         error.text);
    hdi_submission submission = { .cmds = cmds, .kernels = &loaded, .slots = slots };
    must(backend->submit(device, &submission, &ticket, &error) == HD_OK &&
             backend->wait(device, ticket, UINT64_C(600000000000), &error) == HD_OK,
         error.text);
    return loaded;
}

static void compare(const pair *p, hd_context *context, int rounds) {
    static double translated[MAX_ROUNDS], by_hand[MAX_ROUNDS], ratios[MAX_ROUNDS];
    char text[512];
    hd_program *program = NULL;
    hdi_schedule *plan = NULL;
    hd_error error = { 0 };
    const hdi_plan_options options = { .math = HD_MATH_FAST };
    hdi_slot slots[MAX_SLOTS];
    snprintf(text, sizeof text, "heddle 1\n%s\n", p->program);
    must(hd_program_parse(context, text, strlen(text), &program) == HD_OK && HDI_FIND(program) &&
             hdi_schedule_make(&hdi_default_allocator, program, &device->found.caps, &options, &plan, &error) == HD_OK,
         "no plan");
    const hdi_cmds *cmds = &plan->cmds;
    for (uint32_t i = 0; i < cmds->slot_count; i++) {
        const hdi_alloc_desc desc = { cmds->slot_bytes[i], HD_BUFFER_UPLOAD, NULL, NULL, HD_MEMORY_SCRATCH };
        slots[i] = (hdi_slot){ .bytes = cmds->slot_bytes[i] };
        must(backend->alloc(device, &desc, &slots[i].memory, &error) == HD_OK, error.text);
        float *values = backend->map(device, slots[i].memory);
        for (uint64_t k = 0; k < cmds->slot_bytes[i] / 4; k++) values[k] = (float)((k * 2654435761u >> 8) & 0xFFFF) / 32768.0f - 1.0f;
    }
    hdi_loaded_kernel *loaded = load(cmds, slots);
    const hdi_cmd *cmd = cmds->cmds;
    while (cmd->kind != HDI_CMD_DISPATCH) cmd++;
    const size_t groups[3] = { cmd->as.dispatch.groups[0], cmd->as.dispatch.groups[1], cmd->as.dispatch.groups[2] };
    cl_int result;
    cl_kernel twin = device->cl.CreateKernel(twins, p->twin, &result);
    must(twin != NULL, "the twin is missing");
    for (uint32_t i = 0; i < p->buffer_count; i++) device->cl.SetKernelArg(twin, i, sizeof(cl_mem), &slots[p->buffers[i]].memory->buffer);
    device->cl.SetKernelArg(twin, p->buffer_count, p->push_bytes, cmds->push + cmd->as.dispatch.push_first);
    const hdi_slot *out = &slots[p->buffers[p->buffer_count - 1]];
    const float *values = backend->map(device, out->memory);
    float *ours = malloc(out->bytes);
    double apart = 0, largest = 0;
    memcpy(ours, values, out->bytes);
    launch(twin, groups, loaded->printed.info.workgroup[0]);
    for (uint64_t k = 0; k < out->bytes / 4; k++) {
        apart = fmax(apart, fabs((double)ours[k] - (double)values[k]));
        largest = fmax(largest, fabs((double)values[k]));
    }
    for (int i = 0; i < rounds; i++)
        for (int turn = 0; turn < 2; turn++)
            if ((i + turn) % 2) by_hand[i] = launch(twin, groups, loaded->printed.info.workgroup[0]);
            else translated[i] = launch(loaded->kernel, groups, loaded->printed.info.workgroup[0]);
    for (int i = 0; i < rounds; i++) ratios[i] = by_hand[i] / translated[i];
    qsort(translated, (size_t)rounds, sizeof *translated, by_value);
    qsort(by_hand, (size_t)rounds, sizeof *by_hand, by_value);
    qsort(ratios, (size_t)rounds, sizeof *ratios, by_value);
    printf("%-8s %12.1f %12.1f %10.3f %10.3f %10.3f   %.1e\n", p->twin, translated[rounds / 2], by_hand[rounds / 2],
           by_hand[rounds / 2] / translated[rounds / 2], by_hand[0] / translated[0], ratios[rounds / 2],
           apart / largest);
    free(ours);
    device->cl.ReleaseKernel(twin);
    backend->kernel_free(device, loaded);
    for (uint32_t i = 0; i < cmds->slot_count; i++) backend->free(device, slots[i].memory);
    hdi_schedule_free(plan);
    hd_program_destroy(program);
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 51;
    static const hdi_log quiet;
    const hdi_host host = { .allocator = &hdi_default_allocator, .log = &quiet, .cpu_threads = 1, .wait_ns = UINT64_C(600000000000) };
    hd_context *context = NULL;
    hdi_probe probe;
    hd_error error = { 0 };
    must(rounds > 0 && rounds <= MAX_ROUNDS, "1 to 1000 rounds");
    backend->probe(&host, &probe);
    must(probe.found_count > 0, probe.reason);
    must(backend->open(&host, &probe.found[0], NULL, &device, &error) == HD_OK, error.text);
    must(hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context) == HD_OK, "no context");
    printf("%s, %s, %d rounds in turn\n", probe.found[0].info.name, probe.found[0].info.driver, rounds);
    printf("%-8s %12s %12s %10s %10s %10s   %s\n", "", "translated us", "by hand us", "medians", "best", "pairs", "apart");
    compile_twins();
    for (size_t i = 0; i < HDI_COUNT(pairs); i++) compare(&pairs[i], context, rounds);
    device->cl.ReleaseProgram(twins);
    hd_context_destroy(context);
    backend->close(device);
    return 0;
}
