/* spirv.h: SPIR-V in (Vulkan flavour, compute). Reads and checks a module and says what it needs. Every module is
 * hostile until checked: nothing here trusts a length, an id or an opcode. Knows no device. */
#ifndef HDI_SPIRV_H
#define HDI_SPIRV_H

#include "base/base.h"

#define HDI_SPIRV_MAX_BINDINGS 16
#define HDI_SPIRV_MAX_SPEC 64

typedef struct hdi_spirv_binding_place {
    uint32_t set, binding, element; /* element: of an array of buffers */
} hdi_spirv_binding_place;
/* An image that became a buffer: texels of `channels` numbers, along 1 to 3 axes. The launch tells their lengths, the
 * innermost first, in words `push_word` on of the push constants. */
typedef struct hdi_spirv_image {
    uint32_t axes; /* 0: it was a buffer all along */
    hd_dtype dtype;
    uint32_t channels, push_word;
} hdi_spirv_image;
typedef struct hdi_spirv_binding {
    bool used, written;
    hdi_spirv_binding_place place; /* of a user's kernel: where its module had it, */
    hdi_spirv_image image;         /* and what */
} hdi_spirv_binding;
typedef struct hdi_spirv_spec {
    uint32_t id, default_value; /* 32-bit constants; a bool is 0 or 1 */
} hdi_spirv_spec;

/* What a module's entry point needs. Plain data. */
typedef struct hdi_spirv_info {
    char     entry[64];
    uint32_t version;           /* 0x00010300 for 1.3 */
    uint32_t workgroup[3];      /* with the default or given specialisation */
    int32_t  workgroup_spec[3]; /* id of the constant that sets it, or -1 */
    uint32_t push_bytes;
    uint32_t own_push_bytes;    /* of a user's kernel: those that its module has, before the lengths of images */
    uint32_t binding_count;     /* highest binding + 1 */
    hdi_spirv_binding bindings[HDI_SPIRV_MAX_BINDINGS];
    uint32_t spec_count;
    hdi_spirv_spec spec[HDI_SPIRV_MAX_SPEC];
    uint32_t shared_bytes;
    uint32_t capability_count;
    uint32_t capabilities[32];
} hdi_spirv_info;

/* A module and its specialisation constants; borrowed for a call. */
typedef struct hdi_spirv_input {
    const void     *module;
    size_t          bytes;
    const char     *entry; /* NULL: "main", or the only entry point */
    const uint32_t *spec_ids, *spec_values;
    uint32_t        spec_count;
    const hd_image_desc *images; /* wishes for images and samplers of a user's module (hdi_spirv_lower) */
    uint32_t        image_count;
    /* hdi_spirv_inspect found it sound with these constants, or it is heddle's own. It is not checked again, which is
     * faster, and blocks that the constants make unreachable are not read. Printed text differs in the numbers of names
     * only. */
    bool            checked;
} hdi_spirv_input;

/* Checks a module as far as needed to hand it to a driver, and fills in what it needs. Checked are: header, word
 * counts, ids (in bounds, defined before use where the rules ask for it), types, one compute entry point of the wanted
 * name. Capabilities and storage classes have to be within the stated subset, all resources storage buffers of set 0.
 * Byte-swapped modules are refused by name. Statuses: MODULE, KERNEL_NOT_FOUND, LIMIT. */
hd_status hdi_spirv_inspect(const hd_allocator *allocator, const hdi_spirv_input *input, hdi_spirv_info *out_info,
                            hd_error *error);
/* Name of an opcode or capability for messages ("OpFAdd"), from the spirv-headers; "unknown" otherwise. */
const char *hdi_spirv_op_name(uint32_t opcode);
const char *hdi_spirv_capability_name(uint32_t capability);

/* ---- a module of others, before it is checked ---- */
/* Leaves out, as OpNop, what the entry point (NULL: as above) does not reach, and turns uniform blocks into storage
 * buffers. What is not understood is left for the checks (trim.c). Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdi_spirv_trim(const hd_allocator *allocator, uint32_t *words, size_t count, const char *entry,
                         hd_error *error);
/* Images and arrays of buffers of a trimmed module, which became buffers (lower.c). */
typedef struct hdi_spirv_lowered_part {
    uint32_t variable, element;
    hdi_spirv_image image;
} hdi_spirv_lowered_part;
typedef struct hdi_spirv_lowered {
    uint32_t *words; /* the new module, the caller's to free; NULL: there was nothing to do */
    size_t    bytes;
    uint32_t  length_words; /* of images, behind the push constants that the module had */
    hdi_spirv_lowered_part parts[4 * HDI_SPIRV_MAX_BINDINGS];
    uint32_t  part_count;
} hdi_spirv_lowered;
/* Statuses: MODULE (an image or array that is not taken, by name), OUT_OF_HOST_MEMORY. */
hd_status hdi_spirv_lower(const hd_allocator *allocator, const hdi_spirv_input *input, hdi_spirv_lowered *out_lowered,
                          hd_error *error);
/* Numbers all buffers within set 0 (trim.c). `out_bindings[i]` says where binding i was, and what. Statuses: LIMIT. */
hd_status hdi_spirv_number(uint32_t *words, size_t count, const hdi_spirv_lowered *lowered,
                           hdi_spirv_binding out_bindings[HDI_SPIRV_MAX_BINDINGS], hd_error *error);
/* Whole instructions up to the end, of a module in this byte order? */
bool hdi_spirv_is_readable(const uint32_t *words, size_t count);
/* Where the value stands that an id of a readable module is decorated with; 0: nowhere. */
size_t hdi_spirv_decoration_at(const uint32_t *words, size_t count, uint32_t id, uint32_t decoration);
/* Takes out each OpNop; the words that are left. */
size_t hdi_spirv_compact(uint32_t *words, size_t count);

/* ---- changes to a module that was checked, or that is heddle's own (patch.c) ---- */
/* Sets every 32-bit or bool constant of these SpecIds for good; of an id that is there twice the last value counts.
 * False: no memory. */
bool hdi_spirv_set_specs(const hd_allocator *allocator, uint32_t *words, size_t count, const uint32_t *ids,
                         const uint32_t *values, uint32_t spec_count);
/* Copies the module and declares DenormPreserve for f32, in at most HDI_SPIRV_SUBNORMAL_WORDS more words
 * (SPV_KHR_float_controls). Returns the words written, 0 where the module has no entry point. */
#define HDI_SPIRV_SUBNORMAL_WORDS 13
size_t hdi_spirv_keep_subnormals(const uint32_t *words, size_t count, uint32_t *out_words);

/* ---- printing a kernel in another language (print.c) ---- */

typedef enum hdi_spirv_dialect { HDI_SPIRV_OPENCL_C, HDI_SPIRV_CUDA, HDI_SPIRV_HIP, HDI_SPIRV_WGSL } hdi_spirv_dialect;
/* What the text may use besides the core of the language. */
enum hdi_spirv_offer {
    HDI_SPIRV_OFFERS_FP64 = 1,          /* OpenCL: cl_khr_fp64 */
    HDI_SPIRV_OFFERS_FP16 = 2,          /* OpenCL: cl_khr_fp16; without it halves are converted by integer code */
    HDI_SPIRV_OFFERS_INT64_ATOMICS = 4, /* OpenCL: cl_khr_int64_base_atomics and _extended_atomics */
    HDI_SPIRV_OFFERS_SUBGROUPS = 8,     /* OpenCL: cl_khr_subgroups; without them they go through shared memory */
    HDI_SPIRV_OFFERS_MATRIX_UNITS = 16, /* CUDA, or OpenCL with PTX: sm_70 or newer */
    HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS = 64, /* likewise: those of 8 bits, too; sm_80 or newer */
    HDI_SPIRV_OFFERS_INTEGER_DOT = 32,  /* OpenCL's SPIR-V: SPV_KHR_integer_dot_product */
    /* OpenCL: NVIDIA's compiler, for sm_70 or newer: subgroups of 32 and the rest as in CUDA, by inline PTX */
    HDI_SPIRV_OFFERS_PTX = 128,
    /* CUDA, sm_90 or newer: a kernel with the constant HDI_SPEC_EARLY may begin before those in front of it have ended;
     * its barrier of memory that only acquires is where it waits for them */
    HDI_SPIRV_OFFERS_EARLY_START = 256
};
typedef struct hdi_spirv_print_target {
    hdi_spirv_dialect dialect;
    uint32_t          offers;
    /* lanes of a subgroup: of the device, or, where it has none, wanted; 0: as the printer likes */
    uint32_t          subgroup;
    bool              offsets;  /* buffers are given as wholes, and where in them a binding begins as words */
    /* one more barrier behind each loop that holds one: PoCL 3.1 moves reads over its end */
    bool              closes_loops;
} hdi_spirv_print_target;

/* Arguments of the printed function, in order: `buffer_count` pointers, the buffers at bindings buffers[i]; then one
 * struct by value of `argument_words` 32-bit words: first the three indices of the first workgroup, then push_words
 * words of push constants; where the target has offsets, those of all buffers in bytes, two words each, low word first;
 * last, for each of the `length_count` bindings lengths[i], its bytes, likewise. Bindings begin at multiples of 16
 * bytes. The entry is HDI_SPIRV_PRINTED_ENTRY. WGSL has no arguments: of group 0, binding n is the storage buffer of
 * binding n, read_write and in words; HDI_SPIRV_WGSL_LAUNCH is a uniform buffer with the words, without lengths, and
 * with a 0 behind the three indices; up to a multiple of 16 bytes. */
#define HDI_SPIRV_WGSL_LAUNCH HDI_SPIRV_MAX_BINDINGS
#define HDI_SPIRV_PRINTED_ENTRY "heddle_kernel"
typedef struct hdi_spirv_printed {
    hdi_spirv_info info; /* with the constants as given */
    uint32_t buffers[HDI_SPIRV_MAX_BINDINGS], buffer_count;
    uint32_t lengths[HDI_SPIRV_MAX_BINDINGS], length_count;
    uint32_t push_words, argument_words;
    uint32_t shared_bytes; /* of the kernel as printed */
    bool     shared_at_launch; /* CUDA: a launch has to ask for them, since they are more than a kernel may declare */
    uint32_t subgroup;     /* lanes of a subgroup that the text counts on; 0: any, or none at all */
    bool     waits;        /* it may begin before kernels in front of it have ended, and waits for them itself */
} hdi_spirv_printed;

/* Checks the module and prints one entry point in the target's dialect. Specialisation constants are folded into the
 * text, and what they make unreachable is left out. Pure: equal input, equal text. Beside hdi_spirv_inspect's statuses:
 * UNSUPPORTED with the name of the instruction that the dialect or the target lacks. */
hd_status hdi_spirv_print(const hd_allocator *allocator, const hdi_spirv_input *input,
                          const hdi_spirv_print_target *target, hdi_text *out_text, hdi_spirv_printed *out_printed,
                          hd_error *error);

/* The same as a module of OpenCL's flavour (flavour.c), whose words go to `out_module`: physical addresses of 64 bits,
 * arguments without offsets, an entry point of the same name. Version 1.2, or 1.3 where the kernel has subgroups. Of
 * the target, `offers` and `subgroup` count. f16 and f64 are refused where they are not offered. */
hd_status hdi_spirv_kernel_module(const hd_allocator *allocator, const hdi_spirv_input *input,
                                  const hdi_spirv_print_target *target, hdi_text *out_module,
                                  hdi_spirv_printed *out_printed, hd_error *error);

/* ---- running a kernel here, instruction by instruction (interpret.c): slow, and right ---- */

typedef struct hdi_spirv_machine hdi_spirv_machine; /* a kernel made ready; any number of threads may run it */
/* Checks the module and makes it ready, with subgroups of up to `lanes` lanes, as many as divide the workgroup, a power
 * of two up to 64. Statuses: those of hdi_spirv_inspect, UNSUPPORTED (a cooperative matrix), OUT_OF_HOST_MEMORY. */
hd_status hdi_spirv_machine_new(const hd_allocator *allocator, const hdi_spirv_input *input, uint32_t lanes,
                                hdi_spirv_machine **out_machine, hd_error *error);
void hdi_spirv_machine_free(const hd_allocator *allocator, hdi_spirv_machine *machine); /* NULL is fine */

/* What a kernel is run on; borrowed. */
typedef struct hdi_spirv_launch {
    void *const    *bindings;
    const uint64_t *binding_bytes;
    uint32_t        binding_count;
    const uint32_t *push;
    uint64_t        push_words;
    uint32_t        groups[3];   /* of the whole launch, as the kernel is told */
    uint64_t        deadline_ns; /* of hdi_now_ns; 0: none */
} hdi_spirv_launch;
/* Runs one workgroup. Reads outside of what they are of give zeros, and writes there do nothing. Statuses: TIMEOUT,
 * OUT_OF_HOST_MEMORY. */
hd_status hdi_spirv_interpret(const hd_allocator *allocator, const hdi_spirv_machine *machine,
                              const hdi_spirv_launch *launch, const uint32_t group[3], hd_error *error);

/* ---- GLSL (glsl.c) ---- */
bool hdi_glsl_is(const hd_kernel_desc *desc); /* is the kernel given as GLSL? */
/* Its SPIR-V, by glslc; hdi_file_free, after a failure too. Statuses: RUNTIME_NOT_FOUND, MODULE, LIMIT, TIMEOUT, IO,
 * OUT_OF_HOST_MEMORY. */
hd_status hdi_glsl_compile(const hd_allocator *allocator, const hd_kernel_desc *desc, hdi_file *out_spirv,
                           hd_error *error);

/* ---- a user's kernel (user.c): an owned, counted copy of a module with its facts; carried by programs and plans
 * ---- */
typedef struct hdi_user_kernel {
    const hd_allocator *allocator;
    uint32_t       holders;      /* atomically counted */
    uint32_t      *words;        /* trimmed, with the constants set */
    size_t         word_count;
    size_t         bytes;        /* of their allocation */
    uint64_t       hash;         /* of the words and the entry */
    hdi_spirv_info info;
} hdi_user_kernel;
/* One holder, or NULL with the reason. */
hdi_user_kernel *hdi_user_kernel_new(const hd_allocator *allocator, const hdi_spirv_input *input, hd_error *error);
/* The same of the caller's bytes, text or file. */
hdi_user_kernel *hdi_user_kernel_read(const hd_allocator *allocator, const hd_kernel_desc *desc, hd_error *error);
hd_kernel_info hdi_user_kernel_describe(const hdi_user_kernel *kernel);
void hdi_user_kernel_hold(hdi_user_kernel *kernel);
void hdi_user_kernel_release(hdi_user_kernel *kernel); /* the last holder frees it; NULL is fine */
#endif
