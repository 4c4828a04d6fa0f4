/* block.c: the threads of a launch. Where threads wait for each other, each thread of a block is a fiber with a stack of its
 * own, and a worker runs one until it waits, then the next; else they are a plain loop. Workers, one for each core, take
 * the blocks in turn. */
#define _GNU_SOURCE
#include "standin.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* A place to go on at: the compiler's own kind is a few instructions, while the C library's looks at every step whether
 * the stack is the right one. Not every compiler has it for every machine. */
#if defined(__x86_64__)
typedef void *jump[5];
#define leave_from(place) __builtin_setjmp(place)
_Noreturn __attribute__((noinline)) static void go_on_at(void **place) { __builtin_longjmp(place, 1); }
#else
#include <setjmp.h>
typedef jmp_buf jump;
#define leave_from(place) _setjmp(place)
#define go_on_at(place) _longjmp(place, 1)
#endif
/* Other fibers run before such a function returns: no register that it does not use may be counted on. */
#if defined(__clang__)
#define SWITCHES __attribute__((noinline))
#else
#define SWITCHES __attribute__((noipa))
#endif

enum { STACK_BYTES = 1 << 17, GUARD_BYTES = 1 << 14 };

typedef enum state { READY, AT_BARRIER, IN_WARP, DONE } state;
typedef struct fiber {
    jump               at;
    bool               begun;
    state              state;
    standin_dim3       thread;
    unsigned long long value; /* brought to a meeting */
    const void        *site;  /* of the meeting */
} fiber;
typedef struct worker {
    standin_place         place;
    const standin_launch *launch;
    jump                  back;
    fiber                *current;
    char                 *stacks;
    fiber                 fibers[STANDIN_MAX_THREADS];
    standin_meeting       meetings[STANDIN_MAX_THREADS / STANDIN_WARP];
} worker;

static _Thread_local worker *self __attribute__((tls_model("initial-exec")));
static pthread_key_t         worker_key;

/* ---- fibers ---- */

SWITCHES static void leave(void) {
    if (!leave_from(self->current->at)) go_on_at(self->back);
}

static void fiber_main(void) {
    for (;;) {
        self->launch->function->kernel->run(self->launch->arguments);
        self->current->state = DONE;
        leave();
    }
}

SWITCHES static void begin(worker *w, fiber *f) {
    ucontext_t context;
    f->begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = w->stacks + (size_t)(f - w->fibers) * STACK_BYTES + GUARD_BYTES;
    context.uc_stack.ss_size = STACK_BYTES - GUARD_BYTES;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

SWITCHES static void resume(worker *w, fiber *f) {
    w->current = f;
    w->place.thread = f->thread;
    w->place.lane = (unsigned)(f - w->fibers) % STANDIN_WARP;
    if (leave_from(w->back)) return;
    if (!f->begun) begin(w, f);
    go_on_at(f->at);
}

static void wait_at_barrier(void) {
    self->current->state = AT_BARRIER;
    leave();
}

static const standin_meeting *wait_in_warp(unsigned long long value, const void *site) {
    fiber *f = self->current;
    f->value = value;
    f->site = site;
    f->state = IN_WARP;
    leave();
    return &self->meetings[(size_t)(f - self->fibers) / STANDIN_WARP];
}

static void report_fault(const char *what) { standin_abort("a kernel's mistake: %s", what); }

/* ---- a block ---- */

/* The lanes that wait at the first place in the code go on; those further on may still be joined by others. */
static bool meet(fiber *lanes, unsigned count, standin_meeting *out) {
    const void *site = NULL;
    for (unsigned i = 0; i < count; i++)
        if (lanes[i].state == IN_WARP && (!site || lanes[i].site < site)) site = lanes[i].site;
    out->active = 0;
    for (unsigned i = 0; i < count && site; i++) {
        if (lanes[i].state != IN_WARP || lanes[i].site != site) continue;
        lanes[i].state = READY;
        out->active |= 1u << i;
        out->values[i] = lanes[i].value;
    }
    return site;
}

static bool run_warp(worker *w, unsigned first, unsigned count) {
    bool at_barrier = false;
    do {
        for (unsigned i = first; i < first + count; i++)
            if (w->fibers[i].state == READY) resume(w, &w->fibers[i]);
    } while (meet(w->fibers + first, count, &w->meetings[first / STANDIN_WARP]));
    for (unsigned i = first; i < first + count; i++) at_barrier |= w->fibers[i].state == AT_BARRIER;
    return at_barrier;
}

static void run_fibers(worker *w) {
    const standin_dim3 size = w->launch->block;
    const unsigned count = size.x * size.y * size.z;
    for (unsigned i = 0; i < count; i++) w->fibers[i].state = READY;
    for (bool at_barrier = true; at_barrier;) {
        at_barrier = false;
        for (unsigned first = 0; first < count; first += STANDIN_WARP)
            at_barrier |= run_warp(w, first, count - first < STANDIN_WARP ? count - first : STANDIN_WARP);
        for (unsigned i = 0; i < count; i++)
            if (w->fibers[i].state == AT_BARRIER) w->fibers[i].state = READY;
    }
}

static void run_loop(worker *w) {
    const standin_launch *launch = w->launch;
    standin_dim3 *t = &w->place.thread;
    for (t->z = 0; t->z < launch->block.z; t->z++)
        for (t->y = 0; t->y < launch->block.y; t->y++)
            for (t->x = 0; t->x < launch->block.x; t->x++) launch->function->kernel->run(launch->arguments);
}

/* Shared memory holds no numbers when a block begins. */
static void spoil_shared(worker *w) {
    const standin_function *function = w->launch->function;
    char *place = function->kernel->enter(&w->place);
    w->place.shared = place - function->place_offset;
    w->place.shared_end = w->place.shared + function->shared_bytes;
    if (function->shared_bytes <= sizeof(void *)) return;
    memset(place - function->place_offset, 0xFF, function->shared_bytes);
    function->kernel->enter(&w->place);
}

static void run_block(worker *w, uint64_t index) {
    const standin_dim3 grid = w->launch->grid;
    w->place.block = (standin_dim3){ (unsigned)(index % grid.x), (unsigned)(index / grid.x % grid.y), (unsigned)(index / grid.x / grid.y) };
    w->place.waits = 0;
    spoil_shared(w);
    if (w->launch->function->waits) run_fibers(w);
    else run_loop(w);
    const standin_dim3 block = w->launch->block;
    if (w->launch->early && w->place.waits < block.x * block.y * block.z)
        w->place.fault("a thread of a kernel that began early did not wait");
}

/* ---- workers ---- */

static void worker_end(void *data) {
    worker *w = data;
    if (w->stacks) munmap(w->stacks, (size_t)STANDIN_MAX_THREADS * STACK_BYTES);
    free(w);
}

static void worker_key_make(void) { pthread_key_create(&worker_key, worker_end); }

static worker *worker_of_thread(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (self) return self;
    pthread_once(&once, worker_key_make);
    self = calloc(1, sizeof *self);
    if (!self) standin_abort("no memory for a worker");
    self->place = (standin_place){ .barrier = wait_at_barrier, .meet = wait_in_warp, .fault = report_fault };
    const size_t bytes = (size_t)STANDIN_MAX_THREADS * STACK_BYTES;
    void *stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) standin_abort("no memory for stacks");
    self->stacks = stacks;
    for (size_t i = 0; i < STANDIN_MAX_THREADS; i++) mprotect(self->stacks + i * STACK_BYTES, GUARD_BYTES, PROT_NONE);
    pthread_setspecific(worker_key, self);
    return self;
}

/* A launch that several workers share. */
typedef struct job {
    const standin_launch *launch;
    uint64_t              blocks;
    atomic_ullong         next;
} job;

static void work(job *j) {
    worker *w = worker_of_thread();
    const standin_dim3 size = j->launch->block;
    w->launch = j->launch;
    w->place.block_size = size;
    w->place.grid_size = j->launch->grid;
    for (unsigned i = 0; i < size.x * size.y * size.z; i++)
        w->fibers[i].thread = (standin_dim3){ i % size.x, i / size.x % size.y, i / size.x / size.y };
    for (uint64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->blocks;) run_block(w, i);
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            begun;
    job            *job;     /* that helpers may join */
    unsigned        helping; /* helpers that have joined */
    unsigned long   serial;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *help(void *none) {
    unsigned long seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.job || pool.serial == seen) pthread_cond_wait(&pool.changed, &pool.lock);
        job *j = pool.job;
        seen = pool.serial;
        pool.helping++;
        pthread_mutex_unlock(&pool.lock);
        work(j);
        pthread_mutex_lock(&pool.lock);
        pool.helping--;
        pthread_cond_broadcast(&pool.changed);
    }
    return none;
}

static void begin_helpers(void) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pool.begun = true;
    for (long i = 1; i < cores && i < 16; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, NULL) == 0) pthread_detach(thread);
    }
}

void standin_run(const standin_launch *launch) {
    job j = { .launch = launch, .blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z };
    bool shared = false;
    pthread_mutex_lock(&pool.lock);
    if (j.blocks > 1 && !pool.job) {
        if (!pool.begun) begin_helpers();
        shared = true;
        pool.job = &j;
        pool.serial++;
        pthread_cond_broadcast(&pool.changed);
    }
    pthread_mutex_unlock(&pool.lock);
    work(&j);
    if (!shared) return;
    pthread_mutex_lock(&pool.lock);
    pool.job = NULL;
    while (pool.helping) pthread_cond_wait(&pool.changed, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}
