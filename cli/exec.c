/* exec.c: `heddle exec`: one launch of a SPIR-V kernel of the user's own, as a program of one operation. Bindings are the
 * inputs 0 .. n-1 and then the output n, as hd_dispatch has them; their names in the program are their numbers. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 15, MAX_PUSH_BYTES = 128, MAX_SPECS = 16 };

typedef struct launch {
    const cli_command *command;
    const char *paths[MAX_INPUTS];  /* by binding */
    npy_array   arrays[MAX_INPUTS];
    uint32_t    input_count;
    hd_dtype    out_dtype;
    hd_shape    out_shape;
    const char *save_path;
    uint32_t    push[MAX_PUSH_BYTES / 4], push_count;
    uint32_t    spec_ids[MAX_SPECS], spec_values[MAX_SPECS], spec_count;
    uint32_t    groups[3];
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
    if (!cli_number(value + negative, negative ? 0x80000000u : is_signed ? INT32_MAX : UINT32_MAX, &number)) return false;
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

/* "f32[4,256]". */
static bool read_tensor(const char *text, hd_dtype *out_dtype, hd_shape *out_shape) {
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
    uint64_t index;
    for (size_t at = 0; (text = cli_next(args, "--bind", &at));) {
        if (!read_index(text, MAX_INPUTS - 1, &index, &rest)) return cli_usage(l->command, "--bind is INDEX=FILE.npy, not \"%s\"", text);
        if (l->paths[index]) return cli_usage(l->command, "--bind gives binding %llu twice", (unsigned long long)index);
        l->paths[index] = rest;
        if (index + 1 > l->input_count) l->input_count = (uint32_t)index + 1;
    }
    for (uint32_t i = 0; i < l->input_count; i++)
        if (!l->paths[i]) return cli_usage(l->command, "binding %u has no file; add --bind %u=FILE.npy", (unsigned)i, (unsigned)i);
    return CLI_OK;
}

static int read_output(const cli_args *args, launch *l) {
    const char *out = NULL, *save = NULL, *rest = "";
    uint64_t index = 0;
    size_t at = 0;
    out = cli_next(args, "--out", &at);
    if (!out) return cli_usage(l->command, "the output is missing; add --out %u=f32[N]", (unsigned)l->input_count);
    if (cli_next(args, "--out", &at)) return cli_usage(l->command, "a launch has one output; join what the kernel writes in one buffer");
    if (!read_index(out, MAX_INPUTS, &index, &rest) || !read_tensor(rest, &l->out_dtype, &l->out_shape))
        return cli_usage(l->command, "--out is INDEX=TYPE[LENGTH,...] such as 1=f32[256], not \"%s\"", out);
    if (index != l->input_count)
        return cli_usage(l->command, "the output is the last binding: --out %u=%s", (unsigned)l->input_count, rest);
    at = 0;
    save = cli_next(args, "--save", &at);
    if (!save) return CLI_OK;
    if (!read_index(save, MAX_INPUTS, &index, &l->save_path) || index != l->input_count || cli_next(args, "--save", &at))
        return cli_usage(l->command, "--save is %u=FILE.npy, once, not \"%s\"", (unsigned)l->input_count, save);
    return CLI_OK;
}

static int read_words(const cli_args *args, launch *l) {
    const char *push = cli_get(args, "--push"), *text, *rest;
    while (push) {
        size_t length = strcspn(push, ",");
        if (l->push_count == CLI_COUNT(l->push)) return cli_usage(l->command, "--push takes at most %d bytes of constants", MAX_PUSH_BYTES);
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
    if (array->kind == 'i') return array->item_bytes == 4 ? HD_I32 : HD_DTYPE_NONE;
    return array->item_bytes == 1 ? HD_U8 : HD_DTYPE_NONE;
}

static int load_inputs(launch *l) {
    char why[NPY_WHY];
    for (uint32_t i = 0; i < l->input_count; i++) {
        if (!npy_load(l->paths[i], &l->arrays[i], why)) return cli_fail(l->command, "binding %u: %s %s", (unsigned)i, l->paths[i], why);
        if (dtype_of(&l->arrays[i]) == HD_DTYPE_NONE)
            return cli_fail(l->command,
                            "binding %u: %s holds %c%u, and f4, f2, i4 and u1 are taken; convert it, or give its "
                            "bytes with .view('u1')", (unsigned)i, l->paths[i],
                            l->arrays[i].kind, (unsigned)l->arrays[i].item_bytes);
    }
    return CLI_OK;
}

/* The module says how many buffers it has and which ones it writes. */
static int check_kernel(const launch *l, const hd_kernel *kernel) {
    const hd_kernel_info *info = hd_kernel_get_info(kernel);
    if (info->binding_count != l->input_count + 1)
        return cli_fail(l->command,
                        "the kernel has %u binding%s, and %u --bind with one --out make %u; give every binding, the "
                        "output last", (unsigned)info->binding_count,
                        info->binding_count == 1 ? "" : "s", (unsigned)l->input_count, (unsigned)l->input_count + 1);
    if (info->push_bytes != l->push_count * 4)
        return cli_fail(l->command, "the kernel takes %u bytes of push constants, and --push gives %u",
                        (unsigned)info->push_bytes, (unsigned)l->push_count * 4);
    for (uint32_t i = 0; i < l->input_count; i++)
        if (info->binding_written[i])
            return cli_fail(l->command,
                            "the kernel writes binding %u, and only the last one may be written; order its bindings so",
                            (unsigned)i);
    return CLI_OK;
}

static int build(cli_session *session, const launch *l, hd_kernel *kernel, hd_program **out_program) {
    hd_value inputs[MAX_INPUTS] = { 0 };
    char name[16];
    hd_program *program = *out_program = hd_program_create(session->context);
    if (!program) return cli_session_fail(session, NULL);
    for (uint32_t i = 0; i < l->input_count; i++) {
        snprintf(name, sizeof name, "%u", (unsigned)i);
        inputs[i] = hd_input(program, name, dtype_of(&l->arrays[i]), l->arrays[i].shape);
    }
    const hd_dispatch_desc desc = { .inputs = inputs, .input_count = l->input_count, .out_dtype = l->out_dtype,
                                    .out_shape = l->out_shape, .push = l->push,
                                    .push_bytes = l->push_count * 4, .groups = { l->groups[0], l->groups[1], l->groups[2] } };
    snprintf(name, sizeof name, "%u", (unsigned)l->input_count);
    hd_output(program, name, hd_dispatch(program, kernel, &desc));
    return hd_program_check(program) ? cli_session_fail(session, NULL) : CLI_OK;
}

static int run_kernel(cli_session *session, const cli_args *args, launch *l) {
    hd_kernel *kernel = NULL;
    hd_program *program = NULL;
    cli_job job = { 0 };
    const hd_kernel_desc desc = { .path = args->operand, .spec_ids = l->spec_ids, .spec_values = l->spec_values,
                                  .spec_count = l->spec_count };
    if (hd_kernel_create(session->context, &desc, &kernel)) return cli_session_fail(session, args->operand);
    int code = check_kernel(l, kernel);
    if (!code) code = build(session, l, kernel, &program);
    if (!code) code = cli_job_begin(session, args, program, &job);
    else hd_program_destroy(program);
    for (uint32_t i = 0; !code && i < l->input_count; i++) { /* the job's ports are the inputs in order, then the output */
        job.ports[i].array = l->arrays[i];
        l->arrays[i] = (npy_array){ 0 };
    }
    if (!code) {
        job.ports[l->input_count].save_path = l->save_path;
        code = cli_job_run(&job, args, HD_MATH_DEFAULT);
    }
    cli_job_end(&job);
    hd_kernel_destroy(kernel);
    return code;
}

static int execute(const cli_args *args) {
    cli_session session = { 0 };
    launch l = { .command = args->command };
    uint64_t repeat;
    int code = read_binds(args, &l);
    if (!code) code = read_output(args, &l);
    if (!code) code = read_words(args, &l);
    if (!code) code = read_groups(args, &l);
    if (!code && !cli_get_number(args, "--repeat", 1, 1000000, 1, &repeat)) code = CLI_USAGE;
    if (!code) code = load_inputs(&l);
    if (!code) code = cli_session_open(args->command, &session);
    if (!code) code = run_kernel(&session, args, &l);
    cli_session_close(&session);
    for (uint32_t i = 0; i < MAX_INPUTS; i++) npy_free(&l.arrays[i]);
    return code;
}

static const cli_option options[] = {
    { "--bind", "INDEX=FILE.npy", "an input buffer; bindings 0, 1, ... without a gap" },
    { "--out", "INDEX=TYPE[LENGTH,...]", "the output buffer, which is the last binding" },
    { "--save", "INDEX=FILE.npy", "save the output; its first values are printed anyhow" },
    { "--push", "u32:4,f32:0.5,...", "push constants in order: u32, i32 or f32" },
    { "--spec", "ID=VALUE", "a specialization constant; VALUE as for --push" },
    { "--groups", "X,Y,Z", "the number of workgroups" },
    CLI_JOB_OPTIONS,
};

const cli_command cli_exec = {
    "exec", "launches a SPIR-V kernel of your own once",
    "exec KERNEL.spv --bind 0=FILE.npy --out 1=f32[N] --groups X,Y,Z [options]", "KERNEL.spv", options,
    CLI_COUNT(options),
    "SPIR-V is for Vulkan, as glslc makes it; workgroup size, bindings and the size of the push\n"
    "constants are read from it. Files hold f4, f2, i4 or u1.\n",
    "  glslc -O scale.comp -o scale.spv\n  heddle exec scale.spv --bind 0=x.npy --out 1=f32[1024] --push f32:0.5 --groups 16\n", execute
};
