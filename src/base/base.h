/* base.h: what every room stands on: errors, host memory, arenas, text, hashing, checked arithmetic, numbers.
 * No GPU word in here. Everything is thread-safe unless it works on an object of the caller's. */
#ifndef HDI_BASE_H
#define HDI_BASE_H

#include <heddle.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HDI_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HDI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define HDI_MAX(a, b) ((a) > (b) ? (a) : (b))
#if defined(__MINGW32__)
#  define HDI_PRINTF(format_at, first_at) __attribute__((format(gnu_printf, format_at, first_at)))
#elif defined(__GNUC__)
#  define HDI_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#  define HDI_PRINTF(format_at, first_at)
#endif

/* ---- errors (error.c). Internal calls take the error to fill in as last parameter; NULL is allowed. ---- */

/* Fills in `error`, unless it already holds a failure (the first one explains most), and returns `status`. */
hd_status hdi_fail(hd_error *error, hd_status status, const char *format, ...) HDI_PRINTF(3, 4);
hd_status hdi_fail_v(hd_error *error, hd_status status, const char *format, va_list args);
/* hdi_fail for a driver's own code. */
hd_status hdi_fail_native(hd_error *error, hd_status status, const char *backend, int64_t native_code,
                          const char *format, ...) HDI_PRINTF(5, 6);

/* "no_device in matmul: TEXT (vulkan code -3) on DEVICE; HINT". */
void hdi_error_line(const hd_error *error, char *out, size_t room);

/* ---- host memory (memory.c) ---- */

extern const hd_allocator hdi_default_allocator; /* malloc and free */
/* `bytes` zeroed bytes, or NULL. */
void *hdi_alloc(const hd_allocator *allocator, size_t bytes);
void hdi_free(const hd_allocator *allocator, void *pointer, size_t bytes);
/* Makes room for at least `count` items in the array *items: grows *capacity by doubling; new room is zeroed. False
 * when there is no memory; the array is then unchanged. */
bool hdi_grow(const hd_allocator *allocator, void *items_pointer, uint32_t *capacity, size_t count, size_t item_bytes);

/* An arena: everything inside dies at once. Zeroed except for the allocator, it is valid and empty. */
typedef struct hdi_arena {
    const hd_allocator     *allocator;
    struct hdi_arena_block *blocks;
} hdi_arena;
void *hdi_arena_alloc(hdi_arena *arena, size_t bytes); /* zeroed, 16-byte aligned, or NULL */
char *hdi_arena_text(hdi_arena *arena, const char *text, size_t bytes); /* a copy with an ending zero, or NULL */
void hdi_arena_free(hdi_arena *arena);

/* ---- text being built (text.c): grows by itself; out of memory is remembered in `failed` ---- */
typedef struct hdi_text {
    const hd_allocator *allocator;
    char    *bytes; /* always zero-ended once anything was added */
    size_t   count;
    uint32_t capacity;
    bool     failed;
} hdi_text;
void hdi_text_add(hdi_text *text, const char *format, ...) HDI_PRINTF(2, 3);
void hdi_text_free(hdi_text *text);
/* Copies the text out as the public print calls do (room, needed), LIMIT where it is cut, and frees it. */
hd_status hdi_text_out(hdi_text *text, char *out_text, size_t room, size_t *out_needed);
/* The shortest decimal that reads back as the same float ("0.1", "1e-05", "inf"); `out` has 32 bytes. No locale changes
 * it. */
void hdi_float_text(float value, char *out);
/* Reads all of `bytes` bytes as such a decimal; false where they are none, or none that a float holds. */
bool hdi_float_read(const char *text, size_t bytes, float *out);
/* A line, or a word of it. */
typedef struct hdi_span { const char *at, *end; } hdi_span;
/* Takes the next word, up to a space, off the rest of a line; empty at its end. */
hdi_span hdi_word_next(hdi_span *rest);
bool hdi_word_is(hdi_span word, const char *text);
/* The word as a whole number, decimal and at most `most`. */
bool hdi_whole_read(hdi_span word, uint64_t most, uint64_t *out);

/* ---- files (files.c) ---- */
typedef struct hdi_file {
    char    *data; /* of `capacity` */
    size_t   count;
    uint32_t capacity;
} hdi_file;
/* All of a file of at most so many bytes. Statuses: IO, LIMIT, OUT_OF_HOST_MEMORY. */
hd_status hdi_file_read(const hd_allocator *allocator, const char *path, size_t most_bytes, hdi_file *out_file,
                        hd_error *error);
void hdi_file_free(const hd_allocator *allocator, hdi_file *file);

/* ---- hashing (hash.c): FNV-1a, 64 bits ---- */
#define HDI_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hdi_hash(uint64_t hash, const void *bytes, size_t count);

/* ---- names and what they stand for (names.c): a hash set whose seed differs from set to set, so that no text can be
 * made to collide. A name is any bytes, which are borrowed ---- */
typedef struct hdi_names {
    const hd_allocator *allocator;
    struct hdi_name    *slots;
    uint32_t capacity, count;
    uint64_t seed;
} hdi_names;
/* What `name` stands for, or 0. */
uint32_t hdi_names_find(const hdi_names *names, const char *name, size_t bytes);
/* Adds a name that is not in there, for `number` > 0. False without memory. */
bool hdi_names_add(hdi_names *names, const char *name, size_t bytes, uint32_t number);
void hdi_names_free(hdi_names *names);

/* ---- checked arithmetic: false where the result would not fit, `*out` is then not set ---- */
static inline bool hdi_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool hdi_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
/* `value` rounded up to a multiple of `unit` (a power of two); false on overflow. */
static inline bool hdi_pad_u64(uint64_t value, uint64_t unit, uint64_t *out) {
    if (!hdi_add_u64(value, unit - 1, out)) return false;
    *out &= ~(unit - 1);
    return true;
}
static inline uint64_t hdi_divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* ---- data types (dtype.c) ---- */
typedef struct hdi_dtype_facts {
    const char *name;
    uint32_t    block_elements, block_bytes;
} hdi_dtype_facts;
/* Facts of a type; block_elements 0 for an unknown one. */
hdi_dtype_facts hdi_dtype(hd_dtype dtype);
static inline bool hdi_dtype_is_quantised(hd_dtype dtype) { return hdi_dtype(dtype).block_elements > 1; }
/* Are its codes whole numbers, as products of integers take them? The others name a number of a table. */
static inline bool hdi_dtype_has_whole_codes(hd_dtype dtype) {
    return hdi_dtype_is_quantised(dtype) && dtype != HD_IQ4_NL && dtype != HD_IQ4_XS && dtype != HD_MXFP4;
}
/* Quantised types to which devices round floats: those that a state, and so a cache of keys and values, may have. */
static inline bool hdi_dtype_is_rounded_to(hd_dtype dtype) { return dtype == HD_Q8_0 || dtype == HD_Q4_0; }
static inline bool hdi_dtype_is_float(hd_dtype dtype) { return dtype == HD_F32 || dtype == HD_F16 || dtype == HD_BF16; }
bool hdi_shape_equal(hd_shape a, hd_shape b);
/* "[2,3]" into `out` (at least HDI_SHAPE_TEXT bytes); returns `out`. */
#define HDI_SHAPE_TEXT (HD_MAX_RANK * 21 + 3)
char *hdi_shape_text(hd_shape shape, char *out);

/* ---- lists: a link inside each object; a list is a link of its own, empty when it points to itself ---- */
typedef struct hdi_link {
    struct hdi_link *previous, *next;
} hdi_link;
static inline void hdi_list_init(hdi_link *list) { list->previous = list->next = list; }
static inline bool hdi_list_empty(const hdi_link *list) { return list->next == list; }
static inline void hdi_list_add(hdi_link *list, hdi_link *link) {
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}
static inline void hdi_list_remove(hdi_link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
    hdi_list_init(link);
}
static inline uint32_t hdi_list_count(const hdi_link *list) {
    uint32_t count = 0;
    for (const hdi_link *at = list->next; at != list; at = at->next) count++;
    return count;
}
/* The object that holds `link` as its member. */
#define HDI_OBJECT(link_pointer, type, member) ((type *)(void *)((char *)(link_pointer) - offsetof(type, member)))

/* ---- handles (handles.c): what the caller holds of an object. Rooms call public functions with the object itself,
 * which is found as it is: an address is even, a handle odd. ---- */
extern const char hdi_kind_context[], hdi_kind_device[], hdi_kind_buffer[], hdi_kind_program[], hdi_kind_plan[],
    hdi_kind_kernel[], hdi_kind_ticket[], hdi_kind_stream[];
#define HDI_KIND_OF(pointer) _Generic((pointer), \
    hd_context *: hdi_kind_context, const hd_context *: hdi_kind_context, hd_device *: hdi_kind_device, \
    const hd_device *: hdi_kind_device, hd_buffer *: hdi_kind_buffer, const hd_buffer *: hdi_kind_buffer, \
    hd_program *: hdi_kind_program, const hd_program *: hdi_kind_program, hd_plan *: hdi_kind_plan, \
    const hd_plan *: hdi_kind_plan, hd_kernel *: hdi_kind_kernel, const hd_kernel *: hdi_kind_kernel, \
    hd_ticket *: hdi_kind_ticket, hd_stream *: hdi_kind_stream)
/* Puts the object in the place of its handle; false, and nothing changed, where there is none: HDI_REFUSE then says
 * why. */
#define HDI_FIND(pointer) hdi_handle_replace(&(pointer), HDI_KIND_OF(pointer))
#define HDI_REFUSE(pointer) hd_handle_refuse((pointer), HDI_KIND_OF(pointer))
static inline bool hdi_handle_replace(void *pointer_at, const char *kind) {
    void *pointer;
    memcpy(&pointer, pointer_at, sizeof pointer);
    pointer = hd_handle_find(pointer, kind);
    if (pointer) memcpy(pointer_at, &pointer, sizeof pointer);
    return pointer != NULL;
}
/* What is wrong with a handle, and the context (a handle) that its object was of, or NULL. */
hd_status hdi_handle_why(const void *handle, const char *kind, hd_context **out_context, hd_error *error);

/* ---- threads and clock (threads.c) ---- */
typedef struct hdi_mutex { void *opaque[8]; } hdi_mutex;
bool hdi_mutex_init(hdi_mutex *mutex);
void hdi_mutex_free(hdi_mutex *mutex);
void hdi_mutex_lock(hdi_mutex *mutex);
void hdi_mutex_unlock(hdi_mutex *mutex);
uint64_t hdi_now_ns(void); /* monotonic */
/* Runs task(user, 0..count-1), begun in this order, on the caller's thread and at most `threads` - 1 others, which end
 * before it returns. Once a task gave false no further one is begun: all before it were. Fewer threads where the system
 * has none. */
#define HDI_MOST_THREADS 16
typedef bool (*hdi_job_fn)(void *user, uint32_t index);
void hdi_side_by_side(uint32_t threads, hdi_job_fn task, void *user, uint32_t count);

/* ---- what a context holds (holder.c): lists of objects, each with its handle, and its first failure. From any thread
 * ---- */
/* hd_context begins with it. */
typedef struct hdi_holder {
    void     *handle;   /* of the context */
    const struct hdi_log *log;
    hdi_mutex lock;     /* guards the lists and everything below */
    uint64_t  count;    /* of objects in all lists */
    uint64_t  failures; /* calls that failed */
    hd_error  error;    /* the first failure since it was taken */
} hdi_holder;
/* Counts, logs and keeps a failure; returns its status. HD_OK: nothing happens. */
hd_status hdi_holder_keep(hdi_holder *holder, const hd_error *error);
typedef struct hdi_held {
    hdi_link link;   /* in a list of objects alike */
    void    *handle; /* that the caller has */
} hdi_held;
/* Puts an object that has a handle into a list. */
void hdi_held_put(hdi_holder *holder, hdi_link *list, hdi_held *held);
/* The same, and makes its handle. OUT_OF_HOST_MEMORY: it is the caller's to end. */
hd_status hdi_held_add(hdi_holder *holder, hdi_link *list, hdi_held *held, const char *kind, void *object,
                       hd_error *error);
/* Takes an object out of its list, and its handle back; false: somebody else did, and ends it. */
bool hdi_held_remove(hdi_holder *holder, hdi_held *held);
/* Takes the first object out of a list for which `matches` is true; NULL: there is none. It is the caller's to end:
 * another thread may end others meanwhile. */
hdi_held *hdi_held_claim(hdi_holder *holder, hdi_link *list, bool (*matches)(const hdi_link *link, const void *user),
                         const void *user);

/* ---- a thread pool (thread_pool.c): its threads share in short loops and large copies. NULL: a pool without threads
 * ---- */
typedef struct hdi_thread_pool hdi_thread_pool;
/* Runs indices first..first+count on worker `worker`: 0 is the caller's thread, the others are below
 * hdi_thread_pool_most. Workers have the default floating-point environment. */
typedef void (*hdi_loop_fn)(void *user, uint32_t worker, uint64_t first, uint64_t count);
/* A thread pool of at most `most` workers (1 or more), the caller's thread included. It starts no thread. NULL: no
 * memory. */
hdi_thread_pool *hdi_thread_pool_new(const hd_allocator *allocator, uint32_t most);
void hdi_thread_pool_free(hdi_thread_pool *thread_pool);
uint32_t hdi_thread_pool_most(const hdi_thread_pool *thread_pool);
/* Starts threads up to `workers` workers, within the pool's limit and the system's. */
void hdi_thread_pool_call(hdi_thread_pool *thread_pool, uint32_t workers);
/* Runs the loop over 0..count, and returns when all of it is done. Any thread may call, several at once. `least_ns`: a
 * lower bound of the loop's time on one thread. It decides, with the time that the first indices took, whether the loop
 * is shared and how many threads are woken. */
void hdi_thread_pool_run(hdi_thread_pool *thread_pool, hdi_loop_fn run, void *user, uint64_t count, uint64_t least_ns);
/* memcpy. Large copies are shared by the thread pool, which starts threads for them. */
void hdi_thread_pool_copy(hdi_thread_pool *thread_pool, void *to, const void *from, uint64_t bytes);
/* The same into memory that a device reads next: the copy bypasses the caches. */
void hdi_thread_pool_stage(hdi_thread_pool *thread_pool, void *to, const void *from, uint64_t bytes);

/* ---- options (options.c): the one place that reads the environment ---- */
/* X(FIELD, "HEDDLE_NAME", "default", "help", least, most, "values"): of a number; a text has 0, 0 */
#define HDI_OPTION_LIST(X)                                                                                             \
    X(BACKEND, "HEDDLE_BACKEND", "all",                                                                                \
      "back ends to look at, the best first: of vulkan, cuda, hip, opencl, levelzero, webgpu, cpu and null", 0, 0, "") \
    X(DEVICE, "HEDDLE_DEVICE", "best", "device id or index, as `heddle devices` prints them", 0, 0, "")                \
    X(STRICT, "HEDDLE_STRICT", "0", "1: no fall-back, no software device, no null device", 0, 1, "0 or 1")             \
    X(LOG, "HEDDLE_LOG", "warning", "error, warning, info or debug; also by part: warning,vulkan=debug", 0, 0,         \
      "error, warning, info or debug, or such with parts: warning,vulkan=debug")                                       \
    X(VALIDATION, "HEDDLE_VALIDATION", "0", \
      "1: the driver's validation layers, reported in the log, and contracts of plans and submissions", 0, 1, \
      "0 or 1")                                                                                                        \
    X(THREADS, "HEDDLE_THREADS", "all", "number of CPU threads, also of those that compile kernels or copy", 1, 1024,  \
      "1 to 1024")                                                                                                     \
    X(CPU, "HEDDLE_CPU", "all", "the last instruction set that CPU kernels may use, to compare them", 0, 0,            \
      "portable, dotprod, avx2, avxvnni, avx512, avx512vnni, avx512bf16, amx or all")                                  \
    X(QUEUES, "HEDDLE_QUEUES", "all", "1: uploads, runs and downloads go through one queue of a device", 1, 3,         \
      "1 or 3")                                                                                                        \
    X(CACHE, "HEDDLE_CACHE", "user", "folder for compiled kernels; none: keep nothing", 0, 0, "")                      \
    X(WAIT_MS, "HEDDLE_WAIT_MS", "60000", "longest wait for a device, in milliseconds", 1, 1000000000,                 \
      "1 to 1000000000")                                                                                               \
    X(VERIFY, "HEDDLE_VERIFY", "1", "known answers before a kernel's first use: 0 none, 1 on GPUs, 2 everywhere", 0,   \
      2, "0, 1 or 2") \
    X(FIND_NAN, "HEDDLE_FIND_NAN", "0", \
      "1: runs fail where an operation makes a NaN, and name it; 2: infinities, too", 0, 2, \
      "0, 1 or 2")                                                                                                     \
    X(FAULT, "HEDDLE_FAULT", "", "calls of a device that fail on purpose, such as submit:2:device-lost", 0, 0,         \
      "a list of CALL:N:STATUS or CALL:N+:STATUS, CALL one of alloc, kernel, submit and wait")
typedef enum hdi_option {
#define HDI_OPTION_ENUM(field, ...) HDI_OPTION_##field,
    HDI_OPTION_LIST(HDI_OPTION_ENUM)
#undef HDI_OPTION_ENUM
    HDI_OPTION_COUNT
} hdi_option;
/* The environment's text for the option, or NULL where it is unset or empty. */
const char *hdi_option_get(hdi_option option);
/* Fails with the option's name and values. */
hd_status hdi_option_refuse(hdi_option option, hd_error *error);
/* The option as a number: its default where it is unset, or `all` where that is no number. INVALID_ARGUMENT: it is none
 * within the table's limits. */
hd_status hdi_option_number(hdi_option option, uint64_t all, uint64_t *out, hd_error *error);
/* The path of the folder for compiled kernels: HEDDLE_CACHE, else in the user's cache folder. False: none is wanted or
 * known. */
bool hdi_option_cache_dir(const char *wanted, char *out, size_t room);

/* ---- instruction sets of the CPU's kernels (sets.c) ---- */
/* X(SET, "name"). HEDDLE_CPU names the last one that this process may use. */
#define HDI_SET_LIST(X) \
    X(PORTABLE, "portable") \
    X(DOTPROD, "dotprod") \
    X(AVX2, "avx2") \
    X(AVXVNNI, "avxvnni") \
    X(AVX512, "avx512") \
    X(AVX512VNNI, "avx512vnni") \
    X(AVX512BF16, "avx512bf16") \
    X(AMX, "amx")
typedef enum hdi_set {
#define HDI_SET_ENUM(set, name) HDI_SET_##set,
    HDI_SET_LIST(HDI_SET_ENUM)
#undef HDI_SET_ENUM
    HDI_SET_COUNT
} hdi_set;
/* Has the processor the set, and may this process use it? Of AMX: bf16 tiles, once the system gave leave (cpu.c). */
bool hdi_set_permitted(hdi_set set);
/* The last set that HEDDLE_CPU permits; HDI_SET_COUNT: it names none. */
hdi_set hdi_set_last(void);

/* ---- files of the cache's folder (files.c): other processes use it too, and anything may lie there ---- */
/* Makes the folder if it is missing, and removes what dead processes left half written. False: it cannot be used, since
 * it is none, or somebody else can put files there. `why` then says so; it also says where the folder is there but
 * nothing can be written. */
bool hdi_folder_open(char *path, char *why, size_t room);
/* Opens an ordinary file to read; NULL, at once, for anything else. */
FILE *hdi_file_open(const char *path);
/* Puts the pieces, one behind the other, under the path in place of what was there: all or nothing. False: errno says
 * why. */
typedef struct hdi_piece {
    const void *bytes;
    size_t      count;
} hdi_piece;
bool hdi_file_replace(const char *path, const hdi_piece *pieces, size_t count);

/* ---- logging (log.c) ---- */
enum { HDI_LOG_PARTS = 8 };
typedef struct hdi_log {
    hd_log_fn    write;
    void        *user;
    hd_log_level level;      /* of parts that are not named: */
    struct { char name[16]; hd_log_level level; } parts[HDI_LOG_PARTS];
    uint32_t     part_count;
} hdi_log;
/* Reads "warning,vulkan=debug,cache=error" into the levels. False: it is no such text. */
bool hdi_log_read(hdi_log *log, const char *text);
void hdi_log_line(const hdi_log *log, hd_log_level level, const char *part, const char *format, ...) HDI_PRINTF(4, 5);

#endif
