/* exec.c: `heddle exec`: one launch of a SPIR-V kernel of the user's own, as a program of one operation. Any binding
 * may be an input, an output, or both; the names in the program are their numbers, and of what an output begins with
 * "N.in". */
#include "cli/exec_check.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_BINDINGS = 16, MAX_PUSH_BYTES = 128, MAX_SPECS = 16 };
#define NO_SET UINT64_MAX

/* A binding that the options speak of: by heddle's number, or by the set and binding of the module. */
typedef struct bound {
    uint64_t    set, number;
    uint32_t    index;     /* by heddle's number, once the kernel is known */
    const char *path;      /* what it holds; NULL: nothing */
    npy_array   array;
    bool        is_output;
    hd_dtype    out_dtype;
    hd_shape    out_shape;
    const char *save_path;
} bound;

typedef struct launch {
    const cli_command *command;
    const char *entry;
    bound       bounds[MAX_BINDINGS];
    uint32_t    bound_count;
    uint32_t    push[MAX_PUSH_BYTES / 4], push_count;
    uint32_t    spec_ids[MAX_SPECS], spec_values[MAX_SPECS], spec_count;
    uint32_t    groups[3];
    hd_image_desc images[MAX_BINDINGS];
    uint32_t    image_count;
} launch;

/* ---- reading the options ---- */

/* "u32:4", "i32:-1", "f32:0.5" or a plain "4", up to `bytes` bytes, as one word. */
static bool read_word(const char *text, size_t bytes, uint32_t *out) {
    char copy[48], *end;
    uint64_t number = 0;
    if (bytes == 0 || bytes >= sizeof copy) return false;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    const char *colon = strchr(copy, ':'), *value = colon ? colon + 1 : copy;
    bool is_float = strncmp(copy, "f32:", 4) == 0, is_signed = strncmp(copy, "i32:", 4) == 0;
    if (colon && !is_float && !is_signed && strncmp(copy, "u32:", 4) != 0) return false;
    if (is_float) {
        float single = strtof(value, &end);
        if (end == value || *end || strchr(" \t\n", *value)) return false;
        memcpy(out, &single, 4);
        return true;
    }
    bool negative = is_signed && *value == '-';
    if (!cli_number(value + negative, negative ? 0x80000000u : is_signed ? INT32_MAX : UINT32_MAX, &number))
        return false;
    *out = negative ? 0u - (uint32_t)number : (uint32_t)number;
    return true;
}

/* The number before "=", and what follows it. */
static bool read_index(const char *text, uint64_t high, uint64_t *out, const char **out_rest) {
    char digits[16];
    size_t length = strcspn(text, "=");
    if (text[length] != '=' || text[length + 1] == 0 || length >= sizeof digits) return false;
    memcpy(digits, text, length);
    digits[length] = 0;
    *out_rest = text + length + 1;
    return cli_number(digits, high, out);
}

/* The place before "=", "2" or "1.0", and what follows. */
static bool read_place(const char *text, uint64_t *out_set, uint64_t *out_number, const char **out_rest) {
    enum { HIGHEST = 1 << 20 };
    char set[16];
    *out_set = NO_SET;
    const size_t dot = strcspn(text, ".=");
    if (text[dot] == '.') {
        if (dot >= sizeof set) return false;
        memcpy(set, text, dot);
        set[dot] = 0;
        if (!cli_number(set, HIGHEST, out_set)) return false;
        text += dot + 1;
    }
    return read_index(text, *out_set == NO_SET ? MAX_BINDINGS - 1 : HIGHEST, out_number, out_rest);
}

/* What the text before "=" names, and what follows; NULL: it names none, or too many were named. */
static bound *read_bound(launch *l, const char *text, const char **out_rest) {
    uint64_t in_set, number;
    if (!read_place(text, &in_set, &number, out_rest)) return NULL;
    for (uint32_t i = 0; i < l->bound_count; i++)
        if (l->bounds[i].set == in_set && l->bounds[i].number == number) return &l->bounds[i];
    if (l->bound_count == MAX_BINDINGS) return NULL;
    l->bounds[l->bound_count] = (bound){ .set = in_set, .number = number };
    return &l->bounds[l->bound_count++];
}

/* "f32[4,256]". */
bool cli_read_tensor(const char *text, hd_dtype *out_dtype, hd_shape *out_shape) {
    char name[16];
    size_t length = strcspn(text, "[");
    if (text[length] != '[' || length >= sizeof name) return false;
    memcpy(name, text, length);
    name[length] = 0;
    *out_dtype = hd_dtype_parse(name);
    *out_shape = (hd_shape){ 0 };
    const char *at = text + length + 1;
    while (*at != ']') {
        char digits[20];
        uint64_t number;
        size_t digit_count = strspn(at, "0123456789");
        if (digit_count == 0 || digit_count >= sizeof digits || out_shape->rank == HD_MAX_RANK) return false;
        memcpy(digits, at, digit_count);
        digits[digit_count] = 0;
        if (!cli_number(digits, INT64_MAX, &number) || number == 0) return false;
        out_shape->dims[out_shape->rank++] = (int64_t)number;
        at += digit_count;
        if (*at == ',' && at[1] != ']') at++;
        else if (*at != ']') return false;
    }
    return at[1] == 0 && hd_tensor_bytes(*out_dtype, *out_shape) > 0;
}

static int read_binds(const cli_args *args, launch *l) {
    const char *text, *rest;
    for (size_t at = 0; (text = cli_next(args, "--bind", &at));) {
        bound *to = read_bound(l, text, &rest);
        if (!to) return cli_usage(l->command, "--bind is INDEX=FILE.npy or SET.BINDING=FILE.npy, not \"%s\"", text);
        if (to->path) return cli_usage(l->command, "--bind gives binding %.*s twice", (int)strcspn(text, "="), text);
        to->path = rest;
    }
    return CLI_OK;
}

/* "linear", "clamp", "less" and their like, or the type of a texel, "u8x4". */
static bool read_image_word(const char *word, hd_image_desc *image) {
    static const char *const filters[] = { "nearest", "linear" }, *const wraps[] = { "repeat", "clamp" };
    static const char *const compares[] = { "less_equal", "less", "greater_equal", "greater", "equal", "not_equal" };
    for (int i = 0; i < 2; i++) {
        if (strcmp(word, filters[i]) == 0) return image->filter = (hd_filter)i, true;
        if (strcmp(word, wraps[i]) == 0) return image->wrap = (hd_wrap)i, true;
    }
    for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
        if (strcmp(word, compares[i]) == 0) return image->compare = (hd_compare)i, true;
    char name[8];
    const size_t length = strcspn(word, "x");
    uint64_t channels = 1;
    if (length >= sizeof name || (word[length] && !cli_number(word + length + 1, 4, &channels))) return false;
    memcpy(name, word, length);
    name[length] = 0;
    image->dtype = hd_dtype_parse(name);
    image->channels = (uint32_t)channels;
    return image->dtype != HD_DTYPE_NONE && channels > 0;
}

static int read_images(const cli_args *args, launch *l) {
    const char *text, *rest;
    for (size_t at = 0; (text = cli_next(args, "--image", &at));) {
        uint64_t set, number;
        bool fits = l->image_count < MAX_BINDINGS && read_place(text, &set, &number, &rest);
        hd_image_desc image = { 0 };
        if (fits) image.set = set == NO_SET ? 0 : (uint32_t)set, image.binding = (uint32_t)number;
        while (fits && *rest) {
            char word[16];
            const size_t length = strcspn(rest, ",");
            fits = length < sizeof word;
            if (!fits) break;
            memcpy(word, rest, length);
            word[length] = 0;
            fits = read_image_word(word, &image);
            rest += length + (rest[length] == ',');
        }
        if (!fits)
            return cli_usage(l->command, "--image is INDEX=TYPExCHANNELS,nearest|linear,repeat|clamp,less|... such as "
                                         "0=u8x4,linear, not \"%s\"", text);
        l->images[l->image_count++] = image;
    }
    return CLI_OK;
}

static int read_outputs(const cli_args *args, launch *l) {
    const char *text, *rest;
    bool any = false;
    for (size_t at = 0; (text = cli_next(args, "--out", &at)); any = true) {
        bound *to = read_bound(l, text, &rest);
        if (!to || !cli_read_tensor(rest, &to->out_dtype, &to->out_shape))
            return cli_usage(l->command, "--out is INDEX=TYPE[LENGTH,...] such as 1=f32[256], not \"%s\"", text);
        if (to->is_output)
            return cli_usage(l->command, "--out gives binding %.*s twice", (int)strcspn(text, "="), text);
        to->is_output = true;
    }
    if (!any) return cli_usage(l->command, "the output is missing; add --out %u=f32[N]", (unsigned)l->bound_count);
    for (size_t at = 0; (text = cli_next(args, "--save", &at));) {
        bound *to = read_bound(l, text, &rest);
        if (!to || !to->is_output || to->save_path)
            return cli_usage(l->command, "--save is INDEX=FILE.npy of an output, once for each, not \"%s\"", text);
        to->save_path = rest;
    }
    return CLI_OK;
}

static int read_words(const cli_args *args, launch *l) {
    const char *push = cli_get(args, "--push"), *text, *rest;
    while (push) {
        size_t length = strcspn(push, ",");
        if (l->push_count == CLI_COUNT(l->push))
            return cli_usage(l->command, "--push takes at most %d bytes of constants", MAX_PUSH_BYTES);
        if (!read_word(push, length, &l->push[l->push_count++]))
            return cli_usage(l->command, "--push is u32:4,i32:-1,f32:0.5 and so on, not \"%.*s\"", (int)length, push);
        push = push[length] ? push + length + 1 : NULL;
    }
    for (size_t at = 0; (text = cli_next(args, "--spec", &at)); l->spec_count++) {
        uint64_t id;
        if (l->spec_count == MAX_SPECS) return cli_usage(l->command, "--spec may stand at most %d times", MAX_SPECS);
        if (!read_index(text, UINT32_MAX, &id, &rest) || !read_word(rest, strlen(rest), &l->spec_values[l->spec_count]))
            return cli_usage(l->command, "--spec is ID=VALUE such as 0=64 or 1=f32:0.5, not \"%s\"", text);
        l->spec_ids[l->spec_count] = (uint32_t)id;
    }
    return CLI_OK;
}

static int read_groups(const cli_args *args, launch *l) {
    const char *text = cli_get(args, "--groups");
    if (!text) return cli_usage(l->command, "the number of workgroups is missing; add --groups X,Y,Z");
    const char *at = text;
    for (size_t axis = 0; axis < 3; axis++) {
        size_t length = strcspn(at, ",");
        l->groups[axis] = 1;
        if (length == 0 && *at == 0 && axis > 0) continue; /* Y and Z may be left out */
        if (!read_word(at, length, &l->groups[axis]) || l->groups[axis] == 0)
            return cli_usage(l->command, "--groups is X, X,Y or X,Y,Z, each at least 1, not \"%s\"", text);
        at += length + (at[length] == ',' && axis < 2);
    }
    return *at ? cli_usage(l->command, "--groups is X, X,Y or X,Y,Z, each at least 1, not \"%s\"", text) : CLI_OK;
}

/* ---- the program of one launch ---- */

static hd_dtype dtype_of(const npy_array *array) {
    if (array->kind == 'f') return array->item_bytes == 4 ? HD_F32 : array->item_bytes == 2 ? HD_F16 : HD_DTYPE_NONE;
    if (array->kind == 'i' && array->item_bytes == 8) return HD_I64;
    if (array->kind == 'i') return array->item_bytes == 4 ? HD_I32 : array->item_bytes == 1 ? HD_I8 : HD_DTYPE_NONE;
    return array->item_bytes == 1 ? HD_U8 : array->item_bytes == 4 ? HD_U32 : HD_DTYPE_NONE;
}

static int load_inputs(launch *l) {
    char why[NPY_WHY];
    for (uint32_t i = 0; i < l->bound_count; i++) {
        bound *from = &l->bounds[i];
        if (!from->path) continue;
        const bool random = strncmp(from->path, "random:", 7) == 0;
        if (random && !exec_random(from->path + 7, i, &from->array))
            return cli_usage(l->command, "random data is random:TYPE[LENGTH,...] of f32, i32 or u8, not \"%s\"",
                             from->path);
        if (!random && !npy_load(from->path, &from->array, why))
            return cli_fail(l->command, "binding %u: %s %s", (unsigned)from->number, from->path, why);
        if (dtype_of(&from->array) == HD_DTYPE_NONE)
            return cli_fail(l->command,
                            "binding %u: %s holds %c%u, and f4, f2, i8, i4, i1, u4 and u1 are taken; convert it, or "
                            "give its bytes with .view('u1')", (unsigned)from->number, from->path,
                            from->array.kind, (unsigned)from->array.item_bytes);
    }
    return CLI_OK;
}

/* The module says how many buffers it has, and where. */
static int find_bindings(launch *l, const hd_kernel_info *info) {
    bool taken[MAX_BINDINGS] = { false };
    if (info->push_bytes != l->push_count * 4)
        return cli_fail(l->command, "the kernel takes %u bytes of push constants, and --push gives %u",
                        (unsigned)info->push_bytes, (unsigned)l->push_count * 4);
    for (uint32_t i = 0; i < l->bound_count; i++) {
        bound *b = &l->bounds[i];
        b->index = (uint32_t)b->number;
        if (b->set != NO_SET)
            for (b->index = 0; b->index < info->binding_count; b->index++)
                if (info->binding_set[b->index] == b->set && info->binding_number[b->index] == b->number) break;
        if (b->index >= info->binding_count && b->set != NO_SET)
            return cli_fail(l->command, "the kernel has no buffer in set %u at binding %u", (unsigned)b->set,
                            (unsigned)b->number);
        if (b->index >= info->binding_count)
            return cli_fail(l->command,
                            info->binding_count ? "the kernel has %u binding%s, 0 on, and no binding %u"
                                                : "the kernel has no bindings",
                            (unsigned)info->binding_count, info->binding_count == 1 ? "" : "s", (unsigned)b->number);
        if (taken[b->index])
            return cli_fail(l->command, "binding %u is given twice, by its number and by its set", (unsigned)b->index);
        taken[b->index] = true;
    }
    return CLI_OK;
}

/* A program of inputs, one launch and outputs. */
static int build(cli_session *session, const launch *l, hd_kernel *kernel, hd_program **out_program) {
    hd_dispatch_binding bindings[MAX_BINDINGS] = { { 0 } };
    hd_value values[MAX_BINDINGS];
    char name[16];
    hd_program *program = *out_program = hd_program_create(session->context);
    if (!program) return cli_session_fail(session, NULL);
    for (uint32_t i = 0; i < l->bound_count; i++) {
        const bound *b = &l->bounds[i];
        hd_dispatch_binding *to = &bindings[b->index];
        snprintf(name, sizeof name, b->is_output ? "%u.in" : "%u", (unsigned)b->index);
        if (b->path) to->value = hd_input(program, name, dtype_of(&b->array), b->array.shape);
        if (b->is_output) to->dtype = b->out_dtype, to->shape = b->out_shape;
    }
    const hd_dispatch_desc desc = { .bindings = bindings, .binding_count = hd_kernel_get_info(kernel)->binding_count,
                                    .push = l->push,
                                    .push_bytes = l->push_count * 4,
                                    .groups = { l->groups[0], l->groups[1], l->groups[2] } };
    hd_dispatch_all(program, kernel, &desc, values);
    for (uint32_t i = 0; i < l->bound_count; i++) {
        snprintf(name, sizeof name, "%u", (unsigned)l->bounds[i].index);
        if (l->bounds[i].is_output) hd_output(program, name, values[l->bounds[i].index]);
    }
    return hd_program_check(program) ? cli_session_fail(session, NULL) : CLI_OK;
}

/* The job's ports are the inputs in their order, and then the outputs. */
static void fill_ports(launch *l, cli_job *job) {
    cli_port *port = job->ports;
    for (uint32_t i = 0; i < l->bound_count; i++) {
        if (!l->bounds[i].path) continue;
        port++->array = l->bounds[i].array;
        l->bounds[i].array = (npy_array){ 0 };
    }
    for (uint32_t i = 0; i < l->bound_count; i++)
        if (l->bounds[i].is_output) port++->save_path = l->bounds[i].save_path;
}

static int create_kernel(cli_session *session, const char *path, const launch *l, hd_kernel **out_kernel) {
    const hd_kernel_desc desc = { .path = path, .entry = l->entry, .spec_ids = l->spec_ids,
                                  .spec_values = l->spec_values,
                                  .spec_count = l->spec_count, .images = l->images, .image_count = l->image_count };
    return hd_kernel_create(session->context, &desc, out_kernel) ? cli_session_fail(session, path) : CLI_OK;
}

static int run_kernel(cli_session *session, const cli_args *args, launch *l) {
    hd_kernel *kernel = NULL;
    hd_program *program = NULL;
    cli_job job = { 0 };
    int code = create_kernel(session, args->operand, l, &kernel);
    if (!code) code = find_bindings(l, hd_kernel_get_info(kernel));
    if (!code) code = build(session, l, kernel, &program);
    if (!code) code = cli_job_begin(session, args, program, &job);
    else hd_program_destroy(program);
    exec_check check = { 0 };
    const bool checks = cli_get(args, "--check") != NULL;
    if (!code) fill_ports(l, &job);
    if (!code && checks) code = exec_check_run(&job, &check);
    if (!code) code = cli_job_run(&job, args, HD_MATH_DEFAULT);
    if (!code && checks) code = exec_check_compare(&job, &check);
    exec_check_end(&check);
    cli_job_end(&job);
    hd_kernel_destroy(kernel);
    return code;
}

static int execute(const cli_args *args) {
    cli_session session = { 0 };
    launch l = { .command = args->command, .entry = cli_get(args, "--entry") };
    uint64_t repeat;
    int code = read_binds(args, &l);
    if (!code) code = read_outputs(args, &l);
    if (!code) code = read_images(args, &l);
    if (!code) code = read_words(args, &l);
    if (!code) code = read_groups(args, &l);
    if (!code && !cli_get_number(args, "--repeat", 1, 1000000, 1, &repeat)) code = CLI_USAGE;
    if (!code) code = load_inputs(&l);
    if (!code) code = cli_session_open(args->command, &session);
    if (!code) code = run_kernel(&session, args, &l);
    cli_session_close(&session);
    for (uint32_t i = 0; i < l.bound_count; i++) npy_free(&l.bounds[i].array);
    return code;
}

static const cli_option options[] = {
    { "--bind", "INDEX=FILE.npy", "what a buffer holds, by its binding, or by SET.BINDING" },
    { "--out", "INDEX=TYPE[LENGTH,...]", "a buffer that is written; with --bind too it begins as the file" },
    { "--save", "INDEX=FILE.npy", "save an output; its first values are printed anyhow" },
    { "--image", "INDEX=TYPExCHANNELS,...", "what the module leaves open of images and samplers: f32x4,linear,less" },
    { "--check", NULL, "interpret the kernel on the CPU too, and compare" },
    { "--entry", "NAME", "the entry point; \"main\" or the only one where it is not given" },
    { "--push", "u32:4,f32:0.5,...", "push constants in order: u32, i32 or f32" },
    { "--spec", "ID=VALUE", "a specialization constant; VALUE as for --push" },
    { "--groups", "X,Y,Z", "the number of workgroups" },
    CLI_JOB_OPTIONS,
};

const cli_command cli_exec = {
    "exec", "launches a SPIR-V kernel of your own once",
    "exec KERNEL.spv --bind 0=FILE.npy --out 1=f32[N] --groups X,Y,Z [options]", "KERNEL.spv", options,
    CLI_COUNT(options),
    "SPIR-V is for Vulkan, as glslc makes it; a .comp or .glsl file is given to glslc. Workgroup size,\n"
    "bindings and the size of the push constants are read from it. Files hold f4, f2, i4 or u1;\n"
    "random:f32[N] in place of a file is N numbers, the same each time.\n",
    "  glslc -O scale.comp -o scale.spv\n  heddle exec scale.spv --bind 0=x.npy --out 1=f32[1024] --push f32:0.5 "
    "--groups 16\n", execute
};
