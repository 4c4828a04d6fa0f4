/* handles.c: what the caller holds of an object. A handle is a number in a pointer's clothes, odd, so that it is no
 * address: a slot of this table, and how often the slot was given out. So it can be looked up whatever became of its
 * object, and no later object has the same one. Tables grow and are never freed; slots are reused in the order in which
 * they became free, as late as can be. A lookup takes no lock. */
#include "base/base.h"
#include "os/os.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    INDEX_BITS = UINTPTR_MAX > UINT32_MAX ? 24 : 14,
    FIRST_SLOTS = 1024, /* of table 0; each next one has twice as many */
    MOST_TABLES = INDEX_BITS - 9
};
#define MOST_SLOTS (UINT32_C(1) << INDEX_BITS)
#define MOST_TIMES (UINTPTR_MAX >> (INDEX_BITS + 1))

typedef struct slot {
    _Atomic uintptr_t handle;       /* the last that was given out here */
    _Atomic(const char *) kind;
    _Atomic(void *)   object;       /* NULL: it was ended */
    _Atomic(hd_context *) context;  /* a handle too: the object's */
    uint32_t          next;         /* in the list of free slots, + 1 */
} slot;

static slot first_table[FIRST_SLOTS];
static _Atomic(slot *) tables[MOST_TABLES] = { first_table };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists and what is given out */
static uint32_t used, first_free, last_free;             /* slots ever given out; index + 1, 0: none */
static atomic_bool watching, forked;

const char hdi_kind_context[] = "context", hdi_kind_device[] = "device", hdi_kind_buffer[] = "buffer",
           hdi_kind_program[] = "program", hdi_kind_plan[] = "plan", hdi_kind_kernel[] = "kernel",
           hdi_kind_ticket[] = "ticket", hdi_kind_stream[] = "stream";

/* In which table an index is, and where. */
static uint32_t table_of(uint32_t index, uint32_t *out_at) {
    const uint32_t part = index / FIRST_SLOTS + 1;
    const uint32_t table = 31 - (uint32_t)__builtin_clz(part);
    *out_at = index - FIRST_SLOTS * ((UINT32_C(1) << table) - 1);
    return table;
}

/* The slot that a handle names; NULL where it is none that was given out. */
static slot *slot_of(const void *handle) {
    const uintptr_t number = (uintptr_t)handle;
    uint32_t at;
    const uint32_t table = table_of((uint32_t)(number >> 1) & (MOST_SLOTS - 1), &at);
    slot *slots = table < MOST_TABLES ? atomic_load_explicit(&tables[table], memory_order_acquire) : NULL;
    if (!(number & 1) || !slots) return NULL;
    return atomic_load_explicit(&slots[at].handle, memory_order_acquire) == number ? &slots[at] : NULL;
}

static void note_fork(void) { atomic_store(&forked, true); }

/* A slot that was never given out; NULL: there is none, or no memory for more. */
static slot *take_new(uint32_t *out_index) {
    uint32_t at;
    const uint32_t table = table_of(used, &at);
    if (used == MOST_SLOTS) return NULL;
    if (!tables[table]) {
        if (first_free) return NULL; /* reuse comes first */
        atomic_store(&tables[table], hdi_alloc(&hdi_default_allocator, ((size_t)FIRST_SLOTS << table) * sizeof(slot)));
        if (!tables[table]) return NULL;
    }
    *out_index = used++;
    return &tables[table][at];
}

/* A slot, and its index; NULL without memory. Called with the lock held. */
static slot *take(uint32_t *out_index) {
    slot *found = take_new(out_index);
    uint32_t at;
    if (found || !first_free) return found;
    *out_index = first_free - 1;
    found = &tables[table_of(*out_index, &at)][at];
    first_free = found->next;
    if (!first_free) last_free = 0;
    return found;
}

hd_status hd_handle_new(hd_context *context, const char *kind, void *object, void **out_handle) {
    if (!kind || !object || !out_handle) return HD_STATUS_NULL_POINTER;
    *out_handle = NULL;
    if (atomic_load(&forked)) return HD_STATUS_FORKED;
    uint32_t index = 0;
    pthread_mutex_lock(&lock);
    const bool watched = atomic_load(&watching) || hdi_os_at_fork(note_fork);
    atomic_store(&watching, watched);
    slot *s = watched ? take(&index) : NULL;
    if (s) {
        uintptr_t times = (s->handle >> (INDEX_BITS + 1)) + 1;
        if (times > MOST_TIMES) times = 1;
        const uintptr_t handle = times << (INDEX_BITS + 1) | (uintptr_t)index << 1 | 1;
        atomic_store_explicit(&s->kind, kind, memory_order_relaxed);
        atomic_store_explicit(&s->object, object, memory_order_relaxed);
        atomic_store_explicit(&s->context, context, memory_order_relaxed);
        atomic_store_explicit(&s->handle, handle, memory_order_release);
        *out_handle = (void *)handle;
    }
    pthread_mutex_unlock(&lock);
    return s ? HD_OK : HD_STATUS_OUT_OF_HOST_MEMORY;
}

void *hd_handle_find(const void *handle, const char *kind) {
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return NULL;
    /* The library's own rooms call public functions too, with the objects themselves. */
    if (((uintptr_t)handle & 1) == 0) return (void *)(uintptr_t)handle;
    slot *s = slot_of(handle);
    if (!s || atomic_load_explicit(&s->kind, memory_order_relaxed) != kind) return NULL;
    return atomic_load_explicit(&s->object, memory_order_relaxed);
}

bool hd_handle_end(void *handle) {
    if (atomic_load(&forked)) return false;
    pthread_mutex_lock(&lock);
    slot *s = slot_of(handle);
    const bool ended = s && s->object;
    if (ended) {
        uint32_t at;
        const uint32_t index = (uint32_t)((uintptr_t)handle >> 1) & (MOST_SLOTS - 1);
        atomic_store(&s->object, NULL);
        s->next = 0;
        if (last_free) tables[table_of(last_free - 1, &at)][at].next = index + 1;
        else first_free = index + 1;
        last_free = index + 1;
    }
    pthread_mutex_unlock(&lock);
    return ended;
}

hd_status hdi_handle_why(const void *handle, const char *kind, hd_context **out_context, hd_error *error) {
    *out_context = NULL;
    if (atomic_load(&forked))
        return hdi_fail(error, HD_STATUS_FORKED,
                        "heddle was used before this process was forked off; start it by exec, or fork first");
    if (!handle) return HD_STATUS_NULL_POINTER;
    const slot *s = slot_of(handle);
    const char *is = s ? s->kind : NULL;
    if (s) *out_context = is == hdi_kind_context ? (hd_context *)(uintptr_t)handle : s->context;
    if (s && is != kind) return hdi_fail(error, HD_STATUS_STALE_HANDLE, "a %s is given where a %s is wanted", is, kind);
    if (s) return hdi_fail(error, HD_STATUS_STALE_HANDLE, "a %s is used that was ended", kind);
    return hdi_fail(error, HD_STATUS_STALE_HANDLE, "no %s has this handle: it was ended, or is none", kind);
}
