/* cpu.c: the CPU as a device like the others. Submissions go into a queue, and one after the other is run by the
 * queue's thread, or, where it is known to be short and nothing runs before it, by the thread that hands it over or
 * waits for it, since to wake another would take longer than the work. A dispatch is a loop over workgroups, shared
 * with the context's thread pool; a user's kernel has SPIR-V only, and is interpreted. Memory is the process' own, so
 * everything is mapped and nothing is staged. Relies on heddle's kernels to touch only their bindings. */
#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE /* waits for a span */
#include "device/backend.h"
#include "os/os.h"
#include "spirv/spirv.h"
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct hdi_memory {
    hdi_link    link;        /* in the device's list of living or of dead memory */
    uint64_t    bytes;
    void       *pointer;
    bool        borrowed;    /* the caller's: not unmapped */
    uint64_t    last_ticket; /* the last submission that uses it */
};

struct hdi_loaded_kernel {
    hdi_link           link;
    hdi_cpu_kernel     run;     /* or */
    hdi_spirv_machine *machine;
    hdi_kernel         kernel;
};

/* What is kept of submissions of the same commands. */
struct hdi_recording {
    hdi_link link;
    uint64_t last_ticket;
    uint64_t ns; /* that the last one took; UNKNOWN_NS: none has ended yet */
};

/* Work that is known to take no longer runs on the thread that hands it over, which it holds up no more than waking
 * another one would; or on the one that waits for it, which may then not look at its clock. */
#define UNKNOWN_NS UINT64_MAX
enum { SUBMIT_NS = 30000, WAIT_NS = 500000 };
/* What one thread reads or writes in a nanosecond at best. */
enum { BYTES_PER_NS = 40 };

/* A submission in the queue: all that is needed to run it, copied, so that the caller may forget his. */
typedef struct cpu_job {
    struct cpu_job *next;
    uint64_t        ticket;
    uint64_t        expected_ns;
    hdi_recording  *recording;  /* or NULL */
    const hdi_cmds *cmds;
    size_t          bytes;      /* of this allocation */
    bool            timestamps;
    hdi_slot       *slots;
    hdi_loaded_kernel **kernels;
} cpu_job;

/* hdi_cpu_call.kept of a worker, and for which dispatch; in a cache line of its own. */
typedef struct worker_word {
    uint64_t dispatch;
    uint32_t kept, apart[13];
} worker_word;

enum { PROFILES = 4 };
typedef struct cpu_profile {
    uint64_t  ticket, *ns;
    uint32_t  count, capacity;
} cpu_profile;

struct hdi_backend_device {
    const hdi_host *host;
    uint32_t        threads;     /* that run kernels, at most */
    pthread_t       queue;
    pthread_mutex_t mutex;       /* guards everything below */
    pthread_cond_t  queued, ended; /* there is a job for the queue's thread; a job has ended */
    cpu_job        *first, *last;
    uint64_t        submitted, done;
    /* the last submission that did not do all of its work, until somebody was told; 0: none */
    uint64_t        failed;
    hd_error        failure;     /* and why */
    bool            stop, running; /* running: some thread runs a job */
    /* dead, forgotten: given up by the owner while a submission used it */
    hdi_link        memories, dead, kernels, recordings, forgotten;
    cpu_profile     profiles[PROFILES];
    void           *scratch;     /* of all workers; it, like all below, belongs to the thread that runs a job */
    size_t          scratch_bytes; /* of one worker */
    worker_word    *words;       /* of each worker */
    uint64_t        dispatches;  /* so far */
};

static hd_status no_memory(hd_error *error, uint64_t bytes) {
    return hdi_fail_native(error, HD_STATUS_OUT_OF_DEVICE_MEMORY, "cpu", 0, "the system has no %llu bytes left",
                           (unsigned long long)bytes);
}

/* ---- what the machine is ---- */

static uint64_t simd_bytes(void) {
    return hdi_set_permitted(HDI_SET_AVX512) ? 64 : hdi_set_permitted(HDI_SET_AVX2) ? 32 : 16;
}

/* May this process use tile registers for bf16? */
static bool has_tiles(void) { return hdi_set_permitted(HDI_SET_AMX) && hdi_os_take_tiles(); }

/* Have kernels of this process products of 8-bit integers that are faster than those of f32? */
static bool has_integer_dot(void) { return hdi_set_permitted(HDI_SET_AVX2) || hdi_set_permitted(HDI_SET_DOTPROD); }

static void probe(const hdi_host *host, hdi_probe *out_probe) {
    hdi_found *found = &out_probe->found[0];
    memset(out_probe, 0, sizeof *out_probe);
    out_probe->found_count = 1;
    const uint64_t told = hdi_os_memory_bytes(), memory = told ? told : UINT64_C(1) << 32;
    snprintf(found->info.id, sizeof found->info.id, "cpu");
    snprintf(found->info.backend, sizeof found->info.backend, "cpu");
    hdi_os_processor_name(found->info.name, sizeof found->info.name);
    snprintf(found->info.driver, sizeof found->info.driver, "heddle %s, %u-bit vectors", hd_version(),
             (unsigned)simd_bytes() * 8);
    found->info.kind = HD_DEVICE_CPU;
    found->info.memory_bytes = memory;
    const uint64_t threads = HDI_MAX(host->cpu_threads, 1u);
    found->caps = (hdi_caps){
        .native_kernels = 1, .memory_bytes = memory, .host_bytes = memory, .max_allocation_bytes = memory,
        .max_binding_bytes = memory, .binding_align = 64, .max_bindings = HDI_MAX_BINDINGS,
        .max_push_bytes = HDI_MAX_PUSH_WORDS * 4, .max_workgroup = UINT32_MAX, .max_workgroup_x = UINT32_MAX,
        .max_groups_x = UINT32_MAX, .max_groups_y = UINT32_MAX, .max_groups_z = UINT32_MAX, .f16_storage = 1,
        .u8_storage = 1, .integer_dot = has_integer_dot(), .matrix_bf16 = has_tiles(), .unified_memory = 1,
        .host_visible = 1, .timestamps = 1,
        .dispatch_base = 1, .compute_units = threads,
        .threads = threads, .simd_bytes = simd_bytes(), .gflops = 20 * threads, .gbytes_s = 10 };
    snprintf(found->caps.name, sizeof found->caps.name, "%s", found->info.name);
}

/* ---- running commands ---- */

/* The floating-point state of a thread that runs kernels: to nearest, subnormals kept, nothing trapped, whatever the
 * thread was set to, so that results are the same on all of them. `end` gives back what was. */
typedef struct floats {
#if defined(__x86_64__)
    uint32_t was; /* MXCSR; fesetenv would take longer than a small kernel */
#else
    fenv_t was;
#endif
} floats;

static floats floats_begin(void) {
    floats own;
#if defined(__x86_64__)
    enum { TO_NEAREST_WITHOUT_TRAPS = 0x1F80 };
    own.was = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(TO_NEAREST_WITHOUT_TRAPS);
#else
    fegetenv(&own.was);
    fesetenv(FE_DFL_ENV);
#endif
    return own;
}

static void floats_end(floats own) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(own.was);
#else
    fesetenv(&own.was);
#endif
}

typedef struct cpu_loop {
    const hdi_cmd        *cmd;
    const hdi_cpu_call   *call;
    hdi_cpu_kernel        run;
    char                 *scratch;
    size_t                scratch_bytes;
    worker_word          *words;
    uint64_t              dispatch;
} cpu_loop;

static void run_groups(void *user, uint32_t worker, uint64_t first, uint64_t count) {
    const cpu_loop *loop = user;
    hdi_cpu_call call = *loop->call;
    worker_word *word = &loop->words[worker];
    if (word->dispatch != loop->dispatch) *word = (worker_word){ .dispatch = loop->dispatch };
    call.kept = &word->kept;
    call.scratch = loop->scratch ? loop->scratch + worker * loop->scratch_bytes : NULL;
    const uint32_t *base = loop->cmd->as.dispatch.first, *groups = loop->cmd->as.dispatch.groups;
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t plane = i / groups[0];
        loop->run(&call, base[0] + (uint32_t)(i % groups[0]), base[1] + (uint32_t)(plane % groups[1]),
                  base[2] + (uint32_t)(plane / groups[1]));
    }
}

/* ---- users' kernels ---- */

enum { LANES = 32 }; /* of their subgroups */

typedef struct cpu_interpretation {
    const hd_allocator      *allocator;
    const hdi_spirv_machine *machine;
    hdi_spirv_launch         launch;
    const uint32_t          *first;
    atomic_int               failed; /* 1: by somebody who then writes `error` */
    hd_error                 error;
} cpu_interpretation;

static void interpret_groups(void *user, uint32_t worker, uint64_t first, uint64_t count) {
    (void)worker;
    cpu_interpretation *of = user;
    const uint32_t *groups = of->launch.groups;
    for (uint64_t i = first; i < first + count && !atomic_load(&of->failed); i++) {
        const uint64_t plane = i / groups[0];
        const uint32_t group[3] = { of->first[0] + (uint32_t)(i % groups[0]),
                                    of->first[1] + (uint32_t)(plane % groups[1]),
                                    of->first[2] + (uint32_t)(plane / groups[1]) };
        hd_error error = { 0 };
        const bool fails = hdi_spirv_interpret(of->allocator, of->machine, &of->launch, group, &error) != HD_OK;
        if (fails && !atomic_exchange(&of->failed, 1)) of->error = error;
    }
}

/* What the submission was to write is not there, and whoever waits for it is told. */
static void note_failure(hdi_backend_device *device, uint64_t ticket, const hd_error *error) {
    pthread_mutex_lock(&device->mutex);
    device->failed = ticket;
    device->failure = *error;
    pthread_mutex_unlock(&device->mutex);
}

static void run_interpreted(hdi_backend_device *device, const cpu_job *job, const hdi_cmd *cmd,
                            const hdi_cpu_call *call) {
    const hdi_loaded_kernel *kernel = job->kernels[cmd->as.dispatch.kernel];
    const uint32_t *groups = cmd->as.dispatch.groups;
    cpu_interpretation of = {
        .allocator = device->host->allocator, .machine = kernel->machine, .first = cmd->as.dispatch.first,
        .launch = { .bindings = call->bindings, .binding_bytes = call->binding_bytes,
                    .binding_count = cmd->as.dispatch.binding_count,
                    .push = call->push, .push_words = kernel->kernel.push_bytes / 4,
                    .groups = { groups[0], groups[1], groups[2] },
                    .deadline_ns = hdi_now_ns() + device->host->wait_ns } };
    const uint64_t slow_ns = 1000000; /* for a group, at least */
    hdi_thread_pool_run(device->host->thread_pool, interpret_groups, &of, (uint64_t)groups[0] * groups[1] * groups[2],
                        slow_ns);
    if (atomic_load(&of.failed)) note_failure(device, job->ticket, &of.error);
}

/* ---- commands ---- */

static void *slot_pointer(const cpu_job *job, hdi_range range) {
    const hdi_slot *slot = &job->slots[range.slot];
    return (char *)slot->memory->pointer + slot->offset + range.offset;
}

static void run_dispatch(hdi_backend_device *device, const cpu_job *job, const hdi_cmd *cmd) {
    const hdi_loaded_kernel *kernel = job->kernels[cmd->as.dispatch.kernel];
    const hdi_binding *bindings = &job->cmds->bindings[cmd->as.dispatch.binding_first];
    void *pointers[HDI_MAX_BINDINGS];
    uint64_t bytes[HDI_MAX_BINDINGS], all_bytes = 0;
    for (uint32_t i = 0; i < cmd->as.dispatch.binding_count; i++) {
        pointers[i] = slot_pointer(job, bindings[i].range);
        bytes[i] = bindings[i].range.bytes;
        all_bytes += bytes[i];
    }
    hdi_cpu_call call = {
        kernel->kernel.spec, job->cmds->push + cmd->as.dispatch.push_first, pointers, bytes, NULL, NULL
    };
    if (kernel->machine) {
        run_interpreted(device, job, cmd, &call);
        return;
    }
    cpu_loop loop = {
        cmd, &call, kernel->run, device->scratch, device->scratch_bytes, device->words, ++device->dispatches
    };
    const uint32_t *groups = cmd->as.dispatch.groups;
    hdi_thread_pool_run(device->host->thread_pool, run_groups, &loop, (uint64_t)groups[0] * groups[1] * groups[2],
                        all_bytes / BYTES_PER_NS);
}

static void run_fill(void *pointer, uint64_t bytes, uint32_t value) {
    uint32_t *words = pointer;
    for (uint64_t i = 0; i < bytes / 4; i++) words[i] = value;
}

/* Where the times of a submission's marks go: the oldest of a few. Called under the mutex. */
static cpu_profile *profile_for(hdi_backend_device *device, const cpu_job *job) {
    cpu_profile *profile = &device->profiles[job->ticket % PROFILES];
    profile->ticket = 0;
    profile->count = 0;
    return hdi_grow(device->host->allocator, &profile->ns, &profile->capacity, job->cmds->cmd_count,
                    sizeof *profile->ns) ? profile : NULL;
}

static void run_job(hdi_backend_device *device, const cpu_job *job, cpu_profile *profile) {
    uint64_t mark_began = 0;
    for (uint32_t i = 0; i < job->cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &job->cmds->cmds[i];
        switch (cmd->kind) {
        case HDI_CMD_DISPATCH: run_dispatch(device, job, cmd); break;
        case HDI_CMD_COPY:
            hdi_thread_pool_copy(device->host->thread_pool, slot_pointer(job, cmd->as.copy.to),
                                 slot_pointer(job, cmd->as.copy.from), cmd->as.copy.to.bytes);
            break;
        case HDI_CMD_FILL:
            run_fill(slot_pointer(job, cmd->as.fill.to), cmd->as.fill.to.bytes, cmd->as.fill.value);
            break;
        case HDI_CMD_BARRIER: break;
        case HDI_CMD_MARK:
            if (!profile) break;
            if (profile->count > 0) profile->ns[profile->count - 1] = hdi_now_ns() - mark_began;
            mark_began = hdi_now_ns();
            profile->ns[profile->count++] = 0;
            break;
        }
    }
    if (profile && profile->count > 0) profile->ns[profile->count - 1] = hdi_now_ns() - mark_began;
    if (profile) profile->ticket = job->ticket;
}

/* ---- memory ---- */

static void release(hdi_backend_device *device, hdi_memory *memory) {
    hdi_list_remove(&memory->link);
    if (!memory->borrowed) hdi_os_free_pages(memory->pointer, memory->bytes);
    hdi_free(device->host->allocator, memory, sizeof *memory);
}

static void end_recording(hdi_backend_device *device, hdi_recording *recording) {
    hdi_list_remove(&recording->link);
    hdi_free(device->host->allocator, recording, sizeof *recording);
}

/* Gives back what was freed while submissions still used it. Called under the mutex. */
static void free_later(hdi_backend_device *device) {
    for (hdi_link *at = device->dead.next, *next; at != &device->dead; at = next) {
        next = at->next;
        hdi_memory *memory = HDI_OBJECT(at, hdi_memory, link);
        if (memory->last_ticket <= device->done) release(device, memory);
    }
    for (hdi_link *at = device->forgotten.next, *next; at != &device->forgotten; at = next) {
        next = at->next;
        hdi_recording *recording = HDI_OBJECT(at, hdi_recording, link);
        if (recording->last_ticket <= device->done) end_recording(device, recording);
    }
}

static hd_status device_alloc(hdi_backend_device *device, const hdi_alloc_desc *desc, hdi_memory **out_memory,
                              hd_error *error) {
    hdi_memory *memory = hdi_alloc(device->host->allocator, sizeof *memory);
    if (!memory) return no_memory(error, desc->bytes);
    memory->bytes = desc->bytes;
    memory->borrowed = desc->host != NULL;
    memory->pointer = desc->host;
    if (!memory->borrowed) memory->pointer = hdi_os_pages(desc->bytes);
    if (!memory->pointer) {
        hdi_free(device->host->allocator, memory, sizeof *memory);
        return no_memory(error, desc->bytes);
    }
    pthread_mutex_lock(&device->mutex);
    hdi_list_add(&device->memories, &memory->link);
    pthread_mutex_unlock(&device->mutex);
    *out_memory = memory;
    return HD_OK;
}

static void device_free(hdi_backend_device *device, hdi_memory *memory) {
    pthread_mutex_lock(&device->mutex);
    hdi_list_remove(&memory->link);
    hdi_list_add(&device->dead, &memory->link);
    free_later(device);
    pthread_mutex_unlock(&device->mutex);
}

static void *device_map(hdi_backend_device *device, hdi_memory *memory) {
    (void)device;
    return memory->pointer;
}

/* ---- queue ---- */

/* Scratch for the largest kernel of the job, for every worker. */
static bool ensure_scratch(hdi_backend_device *device, const cpu_job *job) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < job->cmds->kernel_count; i++)
        bytes = HDI_MAX(bytes, (size_t)job->cmds->kernels[i].scratch_bytes);
    bytes = (bytes + 4095) & ~(size_t)4095;
    if (bytes <= device->scratch_bytes) return true;
    void *scratch = hdi_os_pages(bytes * device->threads);
    if (!scratch) return false;
    if (device->scratch) hdi_os_free_pages(device->scratch, device->scratch_bytes * device->threads);
    device->scratch = scratch;
    device->scratch_bytes = bytes;
    return true;
}

/* Runs the first job of the queue, while no other one runs. Called under the mutex, which is given up meanwhile. */
static void run_first(hdi_backend_device *device) {
    cpu_job *job = device->first;
    device->first = job->next;
    if (!device->first) device->last = NULL;
    device->running = true;
    cpu_profile *profile = job->timestamps ? profile_for(device, job) : NULL;
    pthread_mutex_unlock(&device->mutex);
    const floats of_caller = floats_begin();
    const uint64_t began_ns = hdi_now_ns();
    run_job(device, job, profile);
    const uint64_t ns = hdi_now_ns() - began_ns;
    floats_end(of_caller);
    pthread_mutex_lock(&device->mutex);
    if (job->recording) job->recording->ns = ns;
    device->running = false;
    device->done = job->ticket;
    free_later(device);
    hdi_free(device->host->allocator, job, job->bytes);
    if (device->first) pthread_cond_signal(&device->queued);
    pthread_cond_broadcast(&device->ended);
}

static void *queue_main(void *argument) {
    hdi_backend_device *device = argument;
    pthread_mutex_lock(&device->mutex);
    for (;;) {
        while (device->running || (!device->first && !device->stop)) pthread_cond_wait(&device->queued, &device->mutex);
        if (!device->first) break;
        run_first(device);
    }
    pthread_mutex_unlock(&device->mutex);
    return NULL;
}

static void wait_idle(hdi_backend_device *device) {
    pthread_mutex_lock(&device->mutex);
    while (device->done < device->submitted) pthread_cond_wait(&device->ended, &device->mutex);
    pthread_mutex_unlock(&device->mutex);
}

/* What a submission will take: what it took the last time, else copies and fills by their bytes. */
static uint64_t expected_ns(const hdi_submission *submission) {
    const hdi_recording *recording = submission->recording ? *submission->recording : NULL;
    if (recording && recording->ns != UNKNOWN_NS) return recording->ns;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < submission->cmds->cmd_count; i++) {
        const hdi_cmd *cmd = &submission->cmds->cmds[i];
        if (cmd->kind == HDI_CMD_DISPATCH) return UNKNOWN_NS;
        if (cmd->kind == HDI_CMD_COPY) bytes += cmd->as.copy.to.bytes;
        if (cmd->kind == HDI_CMD_FILL) bytes += cmd->as.fill.to.bytes;
    }
    return bytes / 4; /* memory that was never touched is zeroed page by page */
}

/* Without memory for it, nothing is kept. */
static void ensure_recording(hdi_backend_device *device, const hdi_submission *submission) {
    if (!submission->recording || *submission->recording) return;
    hdi_recording *recording = hdi_alloc(device->host->allocator, sizeof *recording);
    if (!recording) return;
    recording->ns = UNKNOWN_NS;
    pthread_mutex_lock(&device->mutex);
    hdi_list_add(&device->recordings, &recording->link);
    pthread_mutex_unlock(&device->mutex);
    *submission->recording = recording;
}

/* NULL without memory. */
static cpu_job *new_job(hdi_backend_device *device, const hdi_submission *submission) {
    const hdi_cmds *cmds = submission->cmds;
    size_t bytes =
        sizeof(cpu_job) + cmds->slot_count * sizeof(hdi_slot) + cmds->kernel_count * sizeof(hdi_loaded_kernel *);
    cpu_job *job = hdi_alloc(device->host->allocator, bytes);
    if (!job) return NULL;
    job->cmds = cmds;
    job->bytes = bytes;
    job->recording = submission->recording ? *submission->recording : NULL;
    job->timestamps = submission->timestamps;
    job->slots = (hdi_slot *)(void *)(job + 1);
    job->kernels = (hdi_loaded_kernel **)(void *)(job->slots + cmds->slot_count);
    if (cmds->slot_count > 0) memcpy(job->slots, submission->slots, cmds->slot_count * sizeof(hdi_slot));
    if (cmds->kernel_count > 0)
        memcpy(job->kernels, submission->kernels, cmds->kernel_count * sizeof(hdi_loaded_kernel *));
    return job;
}

static hd_status device_submit(hdi_backend_device *device, hdi_submission *submission, uint64_t *out_ticket,
                               hd_error *error) {
    const hdi_cmds *cmds = submission->cmds;
    ensure_recording(device, submission);
    cpu_job *job = new_job(device, submission);
    if (!job) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a submission");
    /* Scratch may move only while no kernel runs. */
    bool larger = false;
    for (uint32_t i = 0; i < cmds->kernel_count; i++) larger |= cmds->kernels[i].scratch_bytes > device->scratch_bytes;
    if (larger) {
        wait_idle(device);
        if (!ensure_scratch(device, job)) {
            hdi_free(device->host->allocator, job, job->bytes);
            return no_memory(error, 0);
        }
    }
    pthread_mutex_lock(&device->mutex);
    *out_ticket = job->ticket = ++device->submitted; /* read before the queue may end the job */
    job->expected_ns = expected_ns(submission);
    if (job->recording) job->recording->last_ticket = job->ticket;
    for (uint32_t i = 0; i < cmds->slot_count; i++) job->slots[i].memory->last_ticket = job->ticket;
    if (device->last) device->last->next = job;
    else device->first = job;
    device->last = job;
    if (device->first == job && !device->running && job->expected_ns <= SUBMIT_NS) run_first(device);
    else pthread_cond_signal(&device->queued);
    pthread_mutex_unlock(&device->mutex);
    submission->recorded_out = 0; /* commands are run as they are: nothing is ever encoded */
    submission->pieces_out = 1;
    return HD_OK;
}

/* Tells once of a submission that failed. Called under the mutex. */
static hd_status take_failure(hdi_backend_device *device, uint64_t ticket, hd_error *error) {
    if (!device->failed || device->failed > ticket || device->done < device->failed) return HD_OK;
    device->failed = 0;
    return hdi_fail_native(error, device->failure.status, "cpu", 0, "%s", device->failure.text);
}

static hd_status device_poll(hdi_backend_device *device, uint64_t ticket, bool *out_done, hd_error *error) {
    pthread_mutex_lock(&device->mutex);
    *out_done = device->done >= ticket;
    const hd_status status = take_failure(device, ticket, error);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

/* `ended` is on the clock of hdi_now_ns; macOS waits on that one for a span only. */
static void ended_init(pthread_cond_t *ended) {
#ifdef __APPLE__
    pthread_cond_init(ended, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(ended, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

static struct timespec time_of(uint64_t ns) {
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

static int wait_for_end(hdi_backend_device *device, uint64_t until_ns) {
#ifdef __APPLE__
    const uint64_t now = hdi_now_ns();
    const struct timespec span = time_of(until_ns > now ? until_ns - now : 0);
    return pthread_cond_timedwait_relative_np(&device->ended, &device->mutex, &span);
#else
    const struct timespec until = time_of(until_ns);
    return pthread_cond_timedwait(&device->ended, &device->mutex, &until);
#endif
}

static hd_status device_wait(hdi_backend_device *device, uint64_t ticket, uint64_t timeout_ns, hd_error *error) {
    const uint64_t now = hdi_now_ns(), until_ns = now + HDI_MIN(timeout_ns, UINT64_C(1) << 62);
    int result = 0;
    pthread_mutex_lock(&device->mutex);
    while (device->done < ticket && result == 0) {
        const bool takes =
            device->first && !device->running && device->first->expected_ns <= WAIT_NS && hdi_now_ns() < until_ns;
        if (takes) run_first(device);
        else result = wait_for_end(device, until_ns);
    }
    bool done = device->done >= ticket;
    const hd_status status = take_failure(device, ticket, error);
    pthread_mutex_unlock(&device->mutex);
    return done ? status
                : hdi_fail_native(error, HD_STATUS_TIMEOUT, "cpu", result, "submission %llu is not done after %llu ms",
                                  (unsigned long long)ticket, (unsigned long long)(timeout_ns / 1000000));
}

static hd_status device_profile(hdi_backend_device *device, uint64_t ticket, uint64_t *out_ns, uint32_t room,
                                uint32_t *out_count, hd_error *error) {
    hd_status status = HD_OK;
    pthread_mutex_lock(&device->mutex);
    const cpu_profile *profile = &device->profiles[ticket % PROFILES];
    if (profile->ticket != ticket)
        status = hdi_fail_native(error, HD_STATUS_WRONG_STATE, "cpu", 0, "the times of submission %llu are gone",
                                 (unsigned long long)ticket);
    else {
        *out_count = HDI_MIN(room, profile->count);
        memcpy(out_ns, profile->ns, *out_count * sizeof *out_ns);
    }
    pthread_mutex_unlock(&device->mutex);
    return status;
}

/* ---- open and close, kernels ---- */

static void end_kernel(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    pthread_mutex_lock(&device->mutex);
    hdi_list_remove(&kernel->link);
    pthread_mutex_unlock(&device->mutex);
    hdi_spirv_machine_free(device->host->allocator, kernel->machine);
    hdi_free(device->host->allocator, kernel, sizeof *kernel);
}

static void device_close(hdi_backend_device *device) {
    pthread_mutex_lock(&device->mutex);
    device->stop = true;
    pthread_cond_signal(&device->queued);
    pthread_mutex_unlock(&device->mutex);
    pthread_join(device->queue, NULL);
    while (!hdi_list_empty(&device->dead)) release(device, HDI_OBJECT(device->dead.next, hdi_memory, link));
    while (!hdi_list_empty(&device->memories)) release(device, HDI_OBJECT(device->memories.next, hdi_memory, link));
    while (!hdi_list_empty(&device->kernels))
        end_kernel(device, HDI_OBJECT(device->kernels.next, hdi_loaded_kernel, link));
    hdi_free(device->host->allocator, device->words, device->threads * sizeof *device->words);
    if (device->scratch) hdi_os_free_pages(device->scratch, device->scratch_bytes * device->threads);
    for (int i = 0; i < PROFILES; i++)
        hdi_free(device->host->allocator, device->profiles[i].ns, device->profiles[i].capacity * sizeof(uint64_t));
    while (!hdi_list_empty(&device->recordings))
        end_recording(device, HDI_OBJECT(device->recordings.next, hdi_recording, link));
    while (!hdi_list_empty(&device->forgotten))
        end_recording(device, HDI_OBJECT(device->forgotten.next, hdi_recording, link));
    pthread_cond_destroy(&device->queued);
    pthread_cond_destroy(&device->ended);
    pthread_mutex_destroy(&device->mutex);
    hdi_free(device->host->allocator, device, sizeof *device);
}

static hd_status device_open(const hdi_host *host, const hdi_found *found, const hdi_foreign *foreign,
                             hdi_backend_device **out_device, hd_error *error) {
    (void)found;
    (void)foreign;
    hdi_backend_device *device = hdi_alloc(host->allocator, sizeof *device);
    if (!device) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the CPU device");
    device->host = host;
    device->threads = hdi_thread_pool_most(host->thread_pool);
    hdi_list_init(&device->memories);
    hdi_list_init(&device->dead);
    hdi_list_init(&device->kernels);
    hdi_list_init(&device->recordings);
    hdi_list_init(&device->forgotten);
    hdi_thread_pool_call(host->thread_pool, device->threads);
    device->words = hdi_alloc(host->allocator, device->threads * sizeof *device->words);
    pthread_mutex_init(&device->mutex, NULL);
    pthread_cond_init(&device->queued, NULL);
    ended_init(&device->ended);
    if (!device->words || pthread_create(&device->queue, NULL, queue_main, device) != 0) {
        hdi_free(host->allocator, device->words, device->threads * sizeof *device->words);
        pthread_cond_destroy(&device->queued);
        pthread_cond_destroy(&device->ended);
        pthread_mutex_destroy(&device->mutex);
        hdi_free(host->allocator, device, sizeof *device);
        return hdi_fail_native(error, HD_STATUS_DEVICE_CREATION, "cpu", 0,
                               "the CPU device could not start its threads");
    }
    *out_device = device;
    return HD_OK;
}

static hd_status kernel_load(hdi_backend_device *device, const hdi_module *module, const hdi_kernel *kernel,
                             hdi_loaded_kernel **out_kernel, bool *out_from_cache, hd_error *error) {
    const bool interpreted = !module->cpu && module->spirv && kernel->module >= HDI_USER_MODULE;
    if (!module->cpu && !interpreted)
        return hdi_fail_native(error, HD_STATUS_KERNEL_NOT_FOUND, "cpu", 0, "kernel %s has no CPU form", module->name);
    hdi_loaded_kernel *loaded = hdi_alloc(device->host->allocator, sizeof *loaded);
    if (!loaded) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for kernel %s", module->name);
    loaded->run = module->cpu;
    loaded->kernel = *kernel;
    if (interpreted) {
        const hdi_blob *blob = module->spirv;
        const hdi_spirv_input input = { .module = blob->words, .bytes = blob->word_count * 4, .entry = blob->entry };
        const hd_status status = hdi_spirv_machine_new(device->host->allocator, &input, LANES, &loaded->machine, error);
        if (status) {
            hdi_free(device->host->allocator, loaded, sizeof *loaded);
            return status;
        }
    }
    pthread_mutex_lock(&device->mutex);
    hdi_list_add(&device->kernels, &loaded->link);
    pthread_mutex_unlock(&device->mutex);
    *out_from_cache = true; /* compiled with heddle itself */
    *out_kernel = loaded;
    return HD_OK;
}

static void kernel_free(hdi_backend_device *device, hdi_loaded_kernel *kernel) {
    wait_idle(device); /* a queued job may still name it */
    end_kernel(device, kernel);
}

static void forget(hdi_backend_device *device, hdi_recording *recording) {
    if (!recording) return;
    pthread_mutex_lock(&device->mutex);
    hdi_list_remove(&recording->link);
    hdi_list_add(&device->forgotten, &recording->link); /* a queued job may still note its time */
    free_later(device);
    pthread_mutex_unlock(&device->mutex);
}

static void *native(hdi_backend_device *device) {
    (void)device;
    return NULL;
}

static void trim(hdi_backend_device *device) { (void)device; }

static uint32_t heaps(hdi_backend_device *device, hd_heap out_heaps[HD_MAX_HEAPS]) {
    uint64_t used, left;
    (void)device;
    if (!hdi_os_memory_taken(&used) || !hdi_os_memory_available(&left)) return 0;
    out_heaps[0] = (hd_heap){ .size_bytes = hdi_os_memory_bytes(), .used_bytes = used, .budget_bytes = used + left,
                              .own = true, .local = true };
    return 1;
}

const hdi_backend hdi_backend_cpu = {
    .version = HDI_BACKEND_VERSION, .size = sizeof(hdi_backend), .name = "cpu", .probe = probe, .open = device_open,
    .close = device_close, .alloc = device_alloc, .free = device_free, .map = device_map, .kernel_load = kernel_load,
    .kernel_free = kernel_free, .submit = device_submit, .forget = forget, .poll = device_poll, .wait = device_wait,
    .profile = device_profile, .native = native, .trim = trim, .heaps = heaps, .settle = wait_idle,
    .borrows = true,
};
