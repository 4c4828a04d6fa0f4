/* cmds.h: EXACTLY what a device does. Five commands over slots and kernel ids: flat arrays that can be printed, saved,
 * replayed and diffed. No op, shape, address or device handle in here. */
#ifndef HDI_CMDS_H
#define HDI_CMDS_H

#include "base/base.h"

#define HDI_MAX_BINDINGS 16
#define HDI_MAX_PUSH_WORDS 32
#define HDI_MAX_SPEC 32
/* The constant that back ends set for all kernels: 1 where the device's own conversion of f16 to f32 is exact, of
 * subnormals too. A number that no kernel of a user's has. */
#define HDI_SPEC_HALVES 1751384065
/* Another: 1 where a dispatch may begin before those in front of it have ended, up to where it waits for them. */
#define HDI_SPEC_EARLY 1751384066
#define HDI_NO_INDEX UINT32_MAX

/* ---- kernels ---- */

/* One launch of a CPU kernel, for one workgroup at a time: the same shape as on a GPU. */
typedef struct hdi_cpu_call {
    const uint32_t *spec;           /* specialisation constants; spec[i] has id i; HDI_MAX_SPEC of them */
    const uint32_t *push;           /* push-constant words */
    void *const    *bindings;
    const uint64_t *binding_bytes;
    void           *scratch;        /* this worker's own, `scratch_bytes` of the kernel, 64-byte aligned */
    /* this worker's own word, 0 when a dispatch begins: the kernel notes in it what scratch holds for the workgroups
       that follow; NULL: nothing is to be kept */
    uint32_t       *kept;
} hdi_cpu_call;
typedef void (*hdi_cpu_kernel)(const hdi_cpu_call *call, uint32_t group_x, uint32_t group_y, uint32_t group_z);

/* SPIR-V with its identity. */
typedef struct hdi_blob {
    const uint32_t *words;
    size_t          word_count;
    uint64_t        hash;  /* names it in caches: built in, the digest of its sources; else hdi_hash of the words */
    const char     *entry; /* NULL: "main" */
} hdi_blob;

/* A kernel's code in the forms that exist. Constant data that outlives everything that names it. */
typedef struct hdi_module {
    const char     *name;
    const hdi_blob *spirv; /* NULL: no GPU form */
    hdi_cpu_kernel  cpu;   /* NULL: no CPU form */
    bool            library; /* no code: a product that the device's own library makes (library.h) */
} hdi_module;

/* A module with its constants: what a device compiles. Ids below HDI_USER_MODULE index the built-in table, the others
 * the plan's own list of the user's kernels. */
#define HDI_USER_MODULE 0x10000u
typedef struct hdi_kernel {
    uint32_t module;
    uint32_t spec[HDI_MAX_SPEC];    /* value of constant id i, for i < spec_count */
    uint32_t spec_count;
    uint32_t binding_count;
    uint32_t push_bytes;
    uint32_t subgroup;              /* demanded subgroup size, 0: any */
    bool     keep_subnormals;       /* f32 must not be flushed: exact kernels */
    uint32_t scratch_bytes;         /* CPU only */
} hdi_kernel;

/* ---- commands ---- */

typedef struct hdi_range {
    uint32_t slot;
    uint64_t offset, bytes;
} hdi_range;

typedef enum hdi_access { HDI_READ = 1, HDI_WRITE = 2 } hdi_access;
typedef struct hdi_binding {
    hdi_range range;
    uint32_t  access; /* HDI_READ | HDI_WRITE */
} hdi_binding;

typedef enum hdi_cmd_kind {
    HDI_CMD_DISPATCH = 1, /* run a kernel's workgroups first..first+groups */
    HDI_CMD_COPY,         /* between ranges of equal size that do not overlap */
    HDI_CMD_FILL,         /* offset, bytes: multiples of 4; the 32-bit pattern `value` */
    HDI_CMD_BARRIER,      /* everything before is done and visible to everything after; `cut`: also a good place to end
                             one hand-over to the queue and begin another */
    HDI_CMD_MARK          /* from here on, up to the next mark, time belongs to `label` */
} hdi_cmd_kind;

typedef struct hdi_cmd {
    hdi_cmd_kind kind;
    union {
        struct {
            uint32_t kernel;
            uint32_t binding_first, binding_count; /* in cmds->bindings */
            uint32_t push_first;                   /* in cmds->push, kernel.push_bytes of it */
            uint32_t first[3], groups[3];
        } dispatch;
        struct { hdi_range from, to; } copy;
        struct { hdi_range to; uint32_t value; } fill;
        struct { bool cut; } barrier;
        struct { uint32_t label; } mark; /* in cmds->labels */
    } as;
} hdi_cmd;

typedef struct hdi_cmds {
    hdi_arena    arena; /* of labels and of everything below */
    hdi_kernel  *kernels;  uint32_t kernel_count,  kernel_capacity;
    hdi_cmd     *cmds;     uint32_t cmd_count,     cmd_capacity;
    hdi_binding *bindings; uint32_t binding_count, binding_capacity;
    uint32_t    *push;     uint32_t push_count,    push_capacity;
    const char **labels;   uint32_t label_count,   label_capacity;
    uint64_t    *slot_bytes; uint32_t slot_count,  slot_capacity; /* least size of what is bound to each slot */
} hdi_cmds;

/* Begins an empty list; hdi_cmds_free ends it. Appending fails only without memory. */
void hdi_cmds_init(hdi_cmds *cmds, const hd_allocator *allocator);
void hdi_cmds_free(hdi_cmds *cmds);
hd_status hdi_cmds_slot(hdi_cmds *cmds, uint64_t bytes, uint32_t *out_slot);
/* A kernel's constants as a back end sets them, HDI_SPEC_HALVES and HDI_SPEC_EARLY behind its own; their number. */
enum { HDI_MAX_CONSTANTS = HDI_MAX_SPEC + 2 };
uint32_t hdi_kernel_constants(const hdi_kernel *kernel, bool exact_halves, bool early, uint32_t ids[HDI_MAX_CONSTANTS],
                              uint32_t values[HDI_MAX_CONSTANTS]);
bool hdi_kernels_equal(const hdi_kernel *a, const hdi_kernel *b);
/* Finds an equal kernel or adds it. */
hd_status hdi_cmds_kernel(hdi_cmds *cmds, const hdi_kernel *kernel, uint32_t *out_kernel);
hd_status hdi_cmds_dispatch(hdi_cmds *cmds, uint32_t kernel, const hdi_binding *bindings, uint32_t binding_count,
                            const uint32_t *push, const uint32_t first[3], const uint32_t groups[3]);
hd_status hdi_cmds_copy(hdi_cmds *cmds, hdi_range from, hdi_range to);
hd_status hdi_cmds_fill(hdi_cmds *cmds, hdi_range to, uint32_t value);
hd_status hdi_cmds_barrier(hdi_cmds *cmds, bool cut);
hd_status hdi_cmds_mark(hdi_cmds *cmds, const char *label);
/* Is every index and range inside, every count above zero, and between two barriers no range written by one command and
 * touched by another (check.c)? */
hd_status hdi_cmds_check(const hdi_cmds *cmds, hd_error *error);
/* `module_name` gives a module's name for its id; NULL prints the number. */
void hdi_cmds_print(const hdi_cmds *cmds, const char *(*module_name)(void *user, uint32_t module), void *user,
                    hdi_text *out_text);
#endif
