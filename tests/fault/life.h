/* life.h: the whole life of a device, through the seam, in which one fallible driver call fails in one of the ways that its
 * API allows it, or one host allocation. Asked is: the right status and a text, no crash, leak or hang; what failed for
 * once works when tried again on the same device, with right results; what is lost stays lost and ends cleanly. A back end
 * says with a life_driver what its functions may return; its table asks life_inject before every fallible call. A loss
 * first lets the real device come to rest, as after a real one nothing runs any more. */
#ifndef TESTS_FAULT_LIFE_H
#define TESTS_FAULT_LIFE_H

#include "conform/conform.h"
#include "sweep.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a back end's functions may return; functions and results ("rows") go by number. */
typedef struct life_driver {
    const char *(*name)(uint32_t function);
    uint32_t  (*results)(uint32_t function);               /* a bit for each row */
    int32_t   (*code)(uint32_t row);                       /* the driver's own */
    hd_status (*expected)(uint32_t function, uint32_t row);
    bool      (*may_pass)(uint32_t function, uint32_t row); /* everything may simply go on after it */
    bool      (*ends_for_good)(uint32_t function);         /* what fails there again and again makes the back end give up */
    uint64_t  (*under_way)(hdi_backend_device *device);    /* the last ticket where it is not known to be done, or 0 */
    void      (*come_to_rest)(hdi_backend_device *device);
    uint64_t  (*complaints)(void);                         /* of a layer that watches; or NULL */
    uint32_t  row_count, lost_row;                         /* lost_row: the row that says so, or row_count */
    bool      lends;                                       /* memory of the host's is lent to the device too */
} life_driver;

static const life_driver *driver;
static conform subject; /* the back end, its host, and the device under test */

/* ---- the fault that is put in ---- */

enum { ONCE, BURST /* until the call of the seam returns */ };
static struct fault {
    uint32_t at;     /* number of the fallible call, from 1; 0: none */
    uint32_t row, function; /* function: the first that failed */
    int      mode;
    uint32_t calls, previous, equal; /* previous: the last function, equal: how often it was called before in a row */
    bool     hit, lost, in_void; /* in_void: within a call of the seam that returns no status */
    hdi_backend_device *device;
    bool     in[256];   /* functions that failed; in a burst there may be several */
    uint8_t  trace[4096];
} fault;

static bool allows(uint32_t function, uint32_t row) { return row < driver->row_count && driver->results(function) >> row & 1u; }

/* The code that this call is to give in the driver's place; 0: the call is made. */
static int32_t life_inject(uint32_t function) {
    enum { LOOKS = 16 }; /* equal calls in a row beyond these are looks at work under way: how many depends on the machine */
    fault.equal = function == fault.previous ? fault.equal + 1 : 0;
    fault.previous = function;
    if (fault.equal < LOOKS && ++fault.calls < HDI_COUNT(fault.trace)) fault.trace[fault.calls] = (uint8_t)function;
    if (fault.lost && allows(function, driver->lost_row)) return driver->code(driver->lost_row);
    /* Which call is the n-th depends a little on how fast the device is: the first one from there on that may fail so. */
    const bool now = fault.hit ? fault.mode == BURST : fault.at && fault.calls >= fault.at;
    if (!now || !allows(function, fault.row) || (fault.mode == BURST && driver->ends_for_good(function))) return 0;
    if (!fault.hit) fault.function = function;
    fault.hit = true;
    fault.in[function] = true;
    if (fault.row == driver->lost_row) {
        fault.lost = true;
        if (fault.device) driver->come_to_rest(fault.device);
    }
    return driver->code(fault.row);
}

/* ---- an allocator that counts, and fails once ---- */

static struct memory { uint64_t live, calls, fail_at; bool hit; } memory;

static void *counted_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user;
    if (new_bytes && ++memory.calls == memory.fail_at) {
        memory.hit = true;
        return NULL;
    }
    void *grown = hdi_default_allocator.resize(NULL, old, old_bytes, new_bytes);
    if (new_bytes == 0 || grown) memory.live = memory.live - (old ? old_bytes : 0) + new_bytes;
    return grown;
}
static const hd_allocator counted = { counted_resize, NULL };

/* ---- what a fault must come to ---- */

static char figures[64]; /* names the set-up */
#define HOLDS(condition) \
    do { \
        if (!(condition)) \
            fail_msg("%s gives row %d at call %u, %s: line %d: %s [%s]", driver->name(fault.function), (int)fault.row, fault.at, \
                     figures, __LINE__, #condition, subject.error.text); \
    } while (0)

/* Does the error tell of a function that failed, with the status that this comes to? */
static bool tells(hd_status status) {
    for (uint32_t function = 0; function < HDI_COUNT(fault.in); function++) {
        if (!fault.in[function] || status != driver->expected(function, fault.row)) continue;
        if (status == HD_STATUS_NO_DEVICE || status == HD_STATUS_TIMEOUT) return true;
        if (subject.error.native_code == driver->code(fault.row) && strstr(subject.error.text, driver->name(function))) return true;
    }
    return false;
}

/* Judges a failure of a call of the seam. True: it was lost, for good. */
static bool judge(hd_status status) {
    HOLDS(fault.hit || memory.hit);
    HOLDS(subject.error.status == status && subject.error.text[0] && strcmp(subject.error.backend, subject.backend->name) == 0);
    HOLDS(memory.hit ? status == HD_STATUS_OUT_OF_HOST_MEMORY : tells(status));
    return fault.lost && fault.device;
}

/* Runs a call of the seam; a failure is judged and the call made once more, which must do. False: lost. */
#define STEP(call) \
    do { \
        subject.error = (hd_error){ 0 }; \
        const hd_status status_ = (call); \
        if (status_ != HD_OK) { \
            failed = true; \
            if (judge(status_)) return lost_for_good(); \
            fault.at = 0; \
            fault.mode = ONCE; \
            fault.lost = false; \
            subject.error = (hd_error){ 0 }; \
            HOLDS((call) == HD_OK); \
        } \
        if (fault.hit) fault.mode = ONCE; \
    } while (0)
#define VOID(call) \
    do { \
        const bool before = fault.hit; \
        (void)(call); \
        if (fault.hit && !before) fault.in_void = true; \
        if (fault.hit) fault.mode = ONCE; \
    } while (0)
static bool failed; /* a call of the seam reported the fault */

/* Everything on a lost device says so; what was made on it ends with it. */
static bool lost_for_good(void) {
    const hdi_backend *b = subject.backend;
    const hdi_alloc_desc desc = { 100, HD_BUFFER_STORAGE, NULL, NULL, 0 };
    const hdi_kernel kernel = conform_kernel(9);
    hdi_memory *none = NULL;
    hdi_loaded_kernel *loaded = NULL;
    hdi_recording *recording = NULL;
    bool cached, done;
    uint64_t ticket;
    conform_list list;
    list_begin(&list);
    HOLDS(b->alloc(fault.device, &desc, &none, NULL) == HD_STATUS_DEVICE_LOST);
    HOLDS(b->kernel_load(fault.device, &conform_module, &kernel, &loaded, &cached, NULL) == HD_STATUS_DEVICE_LOST);
    hdi_submission submission = list_submission(&list);
    submission.recording = &recording;
    HOLDS(b->submit(fault.device, &submission, &ticket, NULL) == HD_STATUS_DEVICE_LOST);
    ticket = driver->under_way(fault.device);
    if (ticket) {
        subject.error = (hd_error){ 0 };
        HOLDS(b->wait(fault.device, ticket, 1000, &subject.error) == HD_STATUS_DEVICE_LOST);
        HOLDS(strstr(subject.error.text, driver->name(fault.function))); /* still says where it happened */
        HOLDS(b->poll(fault.device, ticket, &done, NULL) == HD_STATUS_DEVICE_LOST && !done);
    }
    b->trim(fault.device);
    return false;
}

/* ---- a whole life ---- */

enum { WORDS = 500, BYTES = WORDS * 4, LARGE = 2 << 20 };

static bool scenario_open(void) {
    hdi_probe probe;
    VOID((subject.backend->probe(&subject.host, &probe), 0));
    HOLDS(probe.found_count || (probe.reason[0] && probe.mend[0]));
    if (!probe.found_count) subject.backend->probe(&subject.host, &probe);
    if (!probe.found_count && fault.lost) {
        fault.lost = false;
        subject.backend->probe(&subject.host, &probe);
    }
    HOLDS(probe.found_count);
    subject.found = probe.found[0];
    fault.device = NULL;
    STEP(subject.backend->open(&subject.host, &subject.found, NULL, &subject.device, &subject.error));
    fault.device = subject.device;
    return true;
}

/* in -> a -> b -> out, and b -> lent, with two kernels; every stage reads one buffer and writes another, so doing it twice is harmless. */
typedef struct life {
    hdi_memory *in, *large, *a, *b, *out, *lent;
    hdi_loaded_kernel *twice, *thrice;
    hdi_recording *recording;
    conform_list plan;
    conform_list again; /* b -> out once more, on another queue */
} life;

static hd_status new_memory(uint64_t bytes, hd_buffer_use use, hdi_memory **out_memory) {
    const hdi_alloc_desc desc = { bytes, use, "fault", NULL, 0 };
    return subject.backend->alloc(subject.device, &desc, out_memory, &subject.error);
}

static uint32_t *lent_words; /* in a page of their own, which a device that is given up keeps */
static hd_status lend(hdi_memory **out_memory) {
    enum { PAGE = 4096 };
    if (!lent_words) lent_words = aligned_alloc(PAGE, PAGE);
    assert_non_null(lent_words);
    const hdi_alloc_desc desc = { BYTES, HD_BUFFER_STORAGE, "lent", lent_words, 0 };
    return subject.backend->alloc(subject.device, &desc, out_memory, &subject.error);
}

static hd_status new_kernel(uint32_t factor, hdi_loaded_kernel **out_kernel) {
    const hdi_kernel kernel = conform_kernel(factor);
    bool cached;
    return subject.backend->kernel_load(subject.device, &conform_module, &kernel, out_kernel, &cached, &subject.error);
}

static bool scenario_make(life *l) {
    STEP(new_memory(BYTES, HD_BUFFER_UPLOAD, &l->in));
    STEP(new_memory(LARGE, HD_BUFFER_STORAGE, &l->large));
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &l->a));
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &l->b));
    STEP(new_memory(BYTES, HD_BUFFER_READBACK, &l->out));
    if (driver->lends) STEP(lend(&l->lent));
    STEP(new_kernel(2, &l->twice));
    VOID((subject.backend->kernel_free(subject.device, l->twice), 0));
    STEP(new_kernel(2, &l->twice)); /* now from the cache */
    STEP(new_kernel(3, &l->thrice));
    conform_list *p = &l->plan;
    list_begin(p);
    list_kernel(p, l->twice, 2);
    const uint32_t in = list_slot(p, l->in, 0, BYTES), a = list_slot(p, l->a, 0, BYTES), b = list_slot(p, l->b, 0, BYTES);
    const uint32_t out = list_slot(p, l->out, 0, BYTES), large = list_slot(p, l->large, 0, LARGE);
    list_mark(p, "up");
    list_copy(p, in, 0, a, 0, BYTES);
    list_fill(p, large, 4, LARGE - 4, 7);
    list_barrier(p, true);
    list_mark(p, "compute");
    list_dispatch(p, a, b, WORDS, 1, 0, 8);
    list_barrier(p, true);
    list_copy(p, b, 0, out, 0, BYTES);
    if (l->lent) list_copy(p, b, 0, list_slot(p, l->lent, 0, BYTES), 0, BYTES);
    list_begin(&l->again);
    list_slot(&l->again, l->b, 0, BYTES);
    list_slot(&l->again, l->out, 0, BYTES);
    list_copy(&l->again, 0, 0, 1, 0, BYTES);
    return true;
}

static void fill_in(life *l, uint32_t seed) {
    uint32_t *words = subject.backend->map(subject.device, l->in);
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 3 + seed;
}

static bool holds_out(life *l, uint32_t seed) {
    const uint32_t *words = subject.backend->map(subject.device, l->out);
    for (uint32_t i = 0; i < WORDS; i++)
        if (words[i] != (i * 3 + seed) * 2 + 1 || (l->lent && lent_words[i] != words[i])) return false;
    return true;
}

static bool scenario_run(life *l, uint32_t round) {
    uint64_t ticket = 0, ns[4];
    uint32_t count;
    bool done;
    hdi_submission once = list_submission(&l->plan), timed = once, kept = once, moved = list_submission(&l->again);
    moved.queue = HDI_QUEUE_DOWNLOAD;
    moved.timed = true;
    timed.timestamps = true;
    kept.recording = &l->recording;
    timed.recording = round ? &l->recording : NULL;
    fill_in(l, round);
    STEP(subject.backend->submit(subject.device, &once, &ticket, &subject.error));
    STEP(subject.backend->submit(subject.device, &kept, &ticket, &subject.error));
    STEP(subject.backend->submit(subject.device, &moved, &ticket, &subject.error));
    const uint64_t clocked = ticket;
    STEP(subject.backend->poll(subject.device, ticket, &done, &subject.error));
    STEP(subject.backend->submit(subject.device, &kept, &ticket, &subject.error)); /* a replay, with the first under way */
    STEP(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, &subject.error));
    if (subject.backend->span) {
        STEP(subject.backend->span(subject.device, clocked, ns, &subject.error));
        HOLDS(ns[1] >= ns[0]);
    }
    HOLDS(holds_out(l, round));
    fill_in(l, round + 100);
    STEP(subject.backend->submit(subject.device, &timed, &ticket, &subject.error));
    STEP(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, &subject.error));
    STEP(subject.backend->profile(subject.device, ticket, ns, 4, &count, &subject.error));
    HOLDS(count == 2 && holds_out(l, round + 100));
    hdi_memory *other; /* other slots: encoded again, and the old ones freed under way */
    STEP(new_memory(BYTES, HD_BUFFER_STORAGE, &other));
    hdi_memory *old = l->a;
    l->a = l->plan.slots[1].memory = other;
    STEP(subject.backend->submit(subject.device, &kept, &ticket, &subject.error));
    VOID((subject.backend->free(subject.device, old), 0));
    STEP(subject.backend->wait(subject.device, ticket, subject.host.wait_ns, &subject.error));
    HOLDS(holds_out(l, round + 100));
    return true;
}

static bool scenario_end(life *l) {
    uint64_t ticket;
    hdi_submission last = list_submission(&l->plan);
    STEP(subject.backend->submit(subject.device, &last, &ticket, &subject.error));
    VOID((subject.backend->forget(subject.device, l->recording), 0));
    VOID((subject.backend->free(subject.device, l->large), 0));
    VOID((subject.backend->kernel_free(subject.device, l->thrice), 0));
    VOID((subject.backend->trim(subject.device), 0));
    l->recording = NULL;
    STEP(new_memory(LARGE, HD_BUFFER_STORAGE, &l->large));
    last = list_submission(&l->plan);
    l->plan.slots[4].memory = l->large;
    STEP(subject.backend->submit(subject.device, &last, &ticket, &subject.error)); /* close finds it under way */
    if (l->lent) VOID((subject.backend->free(subject.device, l->lent), 0));
    return true;
}

static char cache_dir[] = "/tmp/heddle-fault-XXXXXX";

static void empty_cache(void) {
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)); ) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        remove(path);
    }
    closedir(folder);
}

/* Opens a device and hands over a piece of work. */
static inline uint64_t begin_work(life *l) {
    uint64_t ticket = 0;
    *l = (life){ 0 };
    fault = (struct fault){ 0 };
    empty_cache();
    assert_true(scenario_open() && scenario_make(l));
    hdi_submission submission = list_submission(&l->plan);
    assert_int_equal(subject.backend->submit(subject.device, &submission, &ticket, NULL), HD_OK);
    return ticket;
}

/* One life with the fault that is set. */
static void live(uint32_t at, uint32_t row, int mode, uint64_t fail_at) {
    life l = { 0 };
    fault = (struct fault){ .at = at, .row = row, .mode = mode };
    memory.calls = 0;
    memory.hit = false;
    memory.fail_at = fail_at;
    failed = false;
    subject.device = NULL;
    subject.error = (hd_error){ 0 };
    empty_cache();
    bool alive = scenario_open();
    alive = alive && scenario_make(&l);
    for (uint32_t round = 0; round < 2 && alive; round++) alive = scenario_run(&l, round);
    alive = alive && scenario_end(&l);
    if (subject.device) VOID((subject.backend->close(subject.device), 0));
    free(lent_words);
    lent_words = NULL;
    HOLDS(memory.live == 0);
    HOLDS(!driver->complaints || driver->complaints() == 0);
    if (fault.hit) HOLDS(failed || fault.in_void || driver->may_pass(fault.function, fault.row));
}

/* Runs what leaves driver objects behind in a process of its own; before all else, as a process with a driver inside should
 * not fork. Gives 0 where `body` came to its end. */
static inline int life_in_child(void (*body)(void)) {
    int result = 1;
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    return waitpid(child, &result, 0) == child ? result : 1;
}

/* What a child came to that gave up a device whose work never ends. */
static int given_up_result;

static void test_given_up(void **state) {
    (void)state;
    assert_int_equal(given_up_result, 0);
}

/* ---- the sweeps ---- */

/* Makes calls fail in every way for once and, with `all`, where that may help, until the call of the seam returns. Without, of
 * the calls every third. Gives the faults. */
static uint32_t sweep_calls(const char *name, bool all) {
    static uint8_t trace[HDI_COUNT(fault.trace)];
    uint32_t faults = 0;
    snprintf(figures, sizeof figures, "%s", name);
    live(0, 0, ONCE, 0);
    const uint32_t calls = fault.calls;
    assert_in_range(calls, 50, HDI_COUNT(trace) - 1);
    memcpy(trace, fault.trace, sizeof trace);
    const uint64_t begun = hdi_now_ns();
    for (uint32_t at = 1; at <= calls; at += all ? SWEEP_STEP : 3 * SWEEP_STEP)
        for (uint32_t row = 0; row < driver->row_count; row++) {
            if (!allows(trace[at], row)) continue;
            live(at, row, ONCE, 0);
            faults += fault.hit;
            if (!all || row == driver->lost_row || driver->ends_for_good(trace[at])) continue;
            live(at, row, BURST, 0);
            faults += fault.hit;
        }
    const double ms = (double)(hdi_now_ns() - begun) / 1e6;
    live(0, 0, ONCE, 0); /* and afterwards all is well */
    print_message("%s: %u fallible calls, %u faults, %.1f ms each\n", name, calls, faults, ms / faults);
    return faults;
}

/* Makes every allocation fail. Gives the faults. */
static uint32_t sweep_memory(const char *name) {
    uint32_t faults = 0;
    snprintf(figures, sizeof figures, "%s", name);
    live(0, 0, ONCE, 0);
    const uint64_t calls = memory.calls;
    for (uint64_t at = 1; at <= calls; at += SWEEP_STEP) {
        live(0, 0, ONCE, at);
        faults += memory.hit;
    }
    live(0, 0, ONCE, 0);
    return faults;
}

#endif
