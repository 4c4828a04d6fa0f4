/* languages.c: chooses and prints kernels (languages.h). */
#include "languages.h"
#include <stdio.h>
#include <stdlib.h>

enum { UNITS = HDI_SPIRV_OFFERS_MATRIX_UNITS | HDI_SPIRV_OFFERS_WHOLE_MATRIX_UNITS };

static const char *const programs[] = {
    /* element-wise: every type, a chain with a costly step, broadcasting, odd lengths */
    "x = input f32[37,64] \"x\"\nb = input f32[64] \"b\"\na = add x b\ng = gelu a\nm = mul g b\noutput a \"a\"\noutput "
    "m \"m\"",
    "x = input f16[5,33] \"x\"\ny = input bf16[5,33] \"y\"\nh = cast y dtype=f16\ns = silu x\nz = mul s h\noutput z "
    "\"z\"",
    "x = input i32[7,9] \"x\"\ny = input i32[7,9] \"y\"\nd = div x y\nl = less x y\nw = where l x d\noutput w \"w\"",
    "x = input f32[1000,33] \"x\"\nt = tanh x\np = permute t axes=[1,0]\nq = copy p\nc = cos x\nl = log x\nv = sqrt "
    "x\ne = exp x\noutput q \"q\"\noutput c \"c\"\noutput l \"l\"\noutput v \"v\"\noutput e \"e\"",
    /* sums and the like, along the last axis and along others */
    "x = input f32[6,300,5] \"x\"\ns = sum x axis=1\nm = max x axis=2\ni = argmax x axis=2\nn = mean x axis=0\noutput "
    "s \"s\"\noutput m \"m\"\noutput i \"i\"\noutput n \"n\"",
    "x = input bf16[4,1000] \"x\"\ns = sum x axis=1\nk = min x axis=1\noutput s \"s\"\noutput k \"k\"",
    "x = input f32[3,20000] \"x\"\nk = top_k x k=128\ns = take_along x k\noutput k \"k\"\noutput s \"s\"",
    "x = input bf16[3,200] \"x\"\nk = top_k x k=5\ns = take_along x k\noutput k \"k\"\noutput s \"s\"",
    /* rows */
    "x = input f32[9,777] \"x\"\nw = input f32[777] \"w\"\nb = input f32[777] \"b\"\ns = softmax x axis=1\nl = "
    "log_softmax x axis=1\nr = rms_norm x w eps=1e-5\nn = layer_norm x w b eps=1e-5\noutput s \"s\"\noutput l "
    "\"l\"\noutput r \"r\"\noutput n \"n\"",
    "x = input f16[9,64] \"x\"\nw = input f16[64] \"w\"\nr = rms_norm x w eps=1e-6\ns = softmax x axis=1\noutput r "
    "\"r\"\noutput s \"s\"",
    "x = input f32[9,50] \"x\"\nt = input i32[9] \"t\"\nc = cross_entropy x t\noutput c \"c\"",
    "x = input f32[9,50] \"x\"\nt = input i32[9] \"t\"\nd = input f32[9] \"d\"\nc = cross_entropy_gradient x t d\nb = cast c dtype=bf16\noutput b \"b\"",
    "x = input f32[300,50] \"x\"\nd = input f32[300,50] \"d\"\nw = input f32[50] \"w\"\ng = norm_gradient x d w eps=1e-5 centred\na = add g d\n"
    "r = norm_gradient x d eps=1e-5\ns = norm_sums x d eps=1e-5 centred\nh = gelu_tanh_gradient x d\noutput a \"a\"\noutput r \"r\"\noutput s \"s\"\noutput h \"h\"",
    /* tables */
    "t = input q4_k[20,512] \"t\"\nf = input f32[20,16] \"f\"\ni = input i32[7] \"i\"\nu = input f32[7,16] \"u\"\ng = "
    "gather t i\ns = scatter_add f i u\noutput g \"g\"\noutput s \"s\"",
    "s = state f16[32,4,16] \"s\"\nr = input f16[3,4,16] \"r\"\np = input i32[1] \"p\"\nw = write_rows s r p\noutput w "
    "\"w\"",
    "x = input f32[5,64] \"x\"\nw = input q4_0[6,40,64] \"w\"\nc = input i32[5,2] \"c\"\ny = matmul_experts x w c\noutput y \"y\"",
    /* a few rows over octets of runs */
    "x = input f32[6,1024] \"x\"\nn = rms_norm x eps=1e-6\nw = input q4_0[90,1024] \"w\"\nv = input q4_0[90,1024] \"v\"\na = matmul n w "
    "transpose_b\nb = matmul n v transpose_b\ng = silu a\ny = mul g b\noutput y \"y\"",
    "x = input f32[6,1024] \"x\"\nw = input q4_k[90,1024] \"w\"\ny = matmul x w transpose_b\noutput y \"y\"",
    /* positions, attention */
    "x = input f32[2,6,4,32] \"x\"\np = input i32[6] \"p\"\nr = rope x p\noutput r \"r\"",
    "q = input f32[1,5,8,64] \"q\"\nk = input f16[1,40,2,64] \"k\"\nv = input f16[1,40,2,64] \"v\"\na = attention q k "
    "v\noutput a \"a\"",
    "q = input f32[1,8,64] \"q\"\nk = input f16[4,64,2,64] \"k\"\nn = input i32[1] \"n\"\np = input i32[3] \"p\"\na = "
    "attention q k k n p\noutput a \"a\"",
    "q = input f32[5,4,64] \"q\"\nk = input f16[90,2,64] \"k\"\ns = input f32[4] \"s\"\na = attention q k k - - s cap=30 "
    "window=20\noutput a \"a\"",
    "q = input f32[8,512,16,64] \"q\"\na = attention q q q\noutput a \"a\"",
    "q = input f32[8,512,16,64] \"q\"\nk = input f32[8,512,16,64] \"k\"\na = attention_gradient q k k q q\noutput a \"a\"",
    "q = input f32[5,4,40] \"q\"\nk = input f32[9,2,40] \"k\"\na = attention_gradient q k k q q not_causal\noutput a \"a\"",
    "q = input f32[5,4,40] \"q\"\nk = input f32[9,2,40] \"k\"\ns = input i32[5] \"s\"\na = attention_gradient q k k q q s\noutput a \"a\"",
    "q = input f32[2,512,32,64] \"q\"\ns = input i32[2,512] \"s\"\na = attention_gradient q q q q q s bf16\noutput a \"a\"",
    "q = input f32[2,512,32,128] \"q\"\nk = input f32[2,512,32,128] \"k\"\na = attention_gradient q k k q q\noutput a \"a\"",
    "q = input f32[1,200,8,64] \"q\"\nk = input f16[1,200,2,64] \"k\"\nv = input f16[1,200,2,64] \"v\"\na = attention "
    "q k v\noutput a \"a\"",
};

/* C = A x B for every weight type, one row and many, with an epilogue. */
static int matmul_program(hd_dtype a, hd_dtype b, int rows, char *out, size_t room) {
    return snprintf(out, room,
                    "a = input %s[%d,512] \"a\"\nw = input %s[256,512] \"w\"\nc = matmul a w transpose_b\nr = relu "
                    "c\noutput r \"r\"",
                    hd_dtype_name(a), rows, hd_dtype_name(b));
}

static hdi_caps caps_of(bool large) {
    hdi_caps caps = { .memory_bytes = UINT64_C(1) << 36,
                      .host_bytes = UINT64_C(1) << 36,
                      .max_allocation_bytes = UINT64_C(1) << 32,
                      .max_binding_bytes = UINT64_C(1) << 32,
                      .binding_align = 64,
                      .max_bindings = 16,
                      .max_push_bytes = 128,
                      .max_workgroup = 1024,
                      .max_workgroup_x = 1024,
                      .max_groups_x = INT32_MAX,
                      .max_groups_y = 65535,
                      .max_groups_z = 65535,
                      .shared_bytes = 49152,
                      .f16_storage = 1,
                      .u8_storage = 1,
                      .timestamps = 1,
                      .dispatch_base = 1,
                      .compute_units = 100,
                      .gflops = 50000,
                      .gbytes_s = 3000 };
    if (large) {
        caps.subgroup = 32;
        caps.early_start = caps.subgroup_arithmetic = caps.subgroup_shuffle = caps.subgroup_control = caps.f16_arithmetic =
            caps.i8_arithmetic = caps.integer_dot = 1;
        caps.matrix_f16 = caps.matrix_s8 = caps.matrix_s8_narrow = caps.memory_model = 1;
    }
    return caps;
}

static void add_kernel(chosen_kernels *chosen, const hdi_kernel *kernel) {
    for (uint32_t i = 0; i < chosen->count; i++)
        if (chosen->kernels[i].module == kernel->module && memcmp(chosen->kernels[i].spec, kernel->spec, sizeof kernel->spec) == 0) return;
    if (chosen->count < MAX_KERNELS) chosen->kernels[chosen->count++] = *kernel;
}

static void add_program(chosen_kernels *chosen, hd_context *context, const char *body) {
    char text[1024];
    hd_program *program = NULL;
    hd_error error = { 0 };
    snprintf(text, sizeof text, "heddle 1\n%s\n", body);
    if (hd_program_parse(context, text, strlen(text), &program)) {
        fprintf(stderr, "%s\n%s\n", text, hd_context_error(context));
        abort();
    }
    if (!HDI_FIND(program)) abort();
    for (int large = 0; large < 2; large++)
        for (int math = HD_MATH_FAST; math <= HD_MATH_EXACT; math++) {
            const hdi_caps caps = caps_of(large);
            const hdi_plan_options options = { .math = (hd_math)math };
            hdi_schedule *schedule = NULL;
            if (hdi_schedule_make(&hdi_default_allocator, program, &caps, &options, &schedule, &error)) {
                fprintf(stderr, "%s\n%s\n", text, error.text);
                abort();
            }
            for (uint32_t i = 0; i < schedule->cmds.kernel_count; i++) add_kernel(chosen, &schedule->cmds.kernels[i]);
            hdi_schedule_free(schedule);
        }
    hd_program_destroy(program);
}

void choose_kernels(chosen_kernels *out) {
    static const hd_dtype inputs[] = { HD_F32, HD_F16, HD_BF16 };
    hd_context *context = NULL;
    char text[512];
    out->count = 0;
    if (hd_context_create(&(hd_context_desc){ .cache_dir = "" }, &context)) abort();
    for (size_t i = 0; i < HDI_COUNT(programs); i++) add_program(out, context, programs[i]);
    for (hd_dtype weight = HD_F32; weight < HD_I8; weight++)
        for (int rows = 1; rows <= 200; rows += 199)
            for (size_t i = 0; i < HDI_COUNT(inputs); i++) {
                if (weight == HD_I32 || weight == HD_U8 || (i > 0 && weight != inputs[i])) continue;
                matmul_program(inputs[i], weight, rows, text, sizeof text);
                add_program(out, context, text);
            }
    hd_context_destroy(context);
}

const language languages[LANGUAGE_COUNT] = {
    [LANGUAGE_OPENCL] = { "OpenCL C", { .dialect = HDI_SPIRV_OPENCL_C, .offsets = true } },
    [LANGUAGE_PTX] = { "OpenCL C with PTX", { .dialect = HDI_SPIRV_OPENCL_C, .offers = HDI_SPIRV_OFFERS_PTX | UNITS, .offsets = true } },
    [LANGUAGE_CUDA] = { "CUDA C++", { .dialect = HDI_SPIRV_CUDA, .offers = UNITS } },
    [LANGUAGE_CUDA_EARLY] = { "CUDA C++, begun early", { .dialect = HDI_SPIRV_CUDA, .offers = UNITS | HDI_SPIRV_OFFERS_EARLY_START } },
    [LANGUAGE_HIP] = { "HIP C++", { .dialect = HDI_SPIRV_HIP } },
    [LANGUAGE_WGSL] = { "WGSL", { .dialect = HDI_SPIRV_WGSL } },
};

char *print_kernel(const hdi_kernel *kernel, language_id in, hdi_spirv_printed *out_printed, hd_error *out_error) {
    const hdi_blob *blob = hdi_module_get(kernel->module)->spirv;
    hdi_text text = { .allocator = &hdi_default_allocator };
    uint32_t ids[HDI_MAX_CONSTANTS], values[HDI_MAX_CONSTANTS];
    const bool early = languages[in].target.offers & HDI_SPIRV_OFFERS_EARLY_START;
    const uint32_t count = hdi_kernel_constants(kernel, false, early, ids, values);
    const hdi_spirv_input input = { .module = blob->words, .bytes = blob->word_count * 4, .entry = blob->entry, .spec_ids = ids,
                                    .spec_values = values, .spec_count = count, .checked = true };
    *out_error = (hd_error){ 0 };
    const hd_status status = hdi_spirv_print(&hdi_default_allocator, &input, &languages[in].target, &text, out_printed, out_error);
    if (!status) return text.bytes;
    hdi_text_free(&text);
    return NULL;
}

const char *kernel_label(const hdi_kernel *kernel, char *out, size_t room) {
    size_t at = (size_t)snprintf(out, room, "%s[", hdi_module_get(kernel->module)->name);
    for (uint32_t i = 0; i < kernel->spec_count && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, i ? ",%u" : "%u", kernel->spec[i]);
    if (at < room) snprintf(out + at, room - at, "]");
    return out;
}
