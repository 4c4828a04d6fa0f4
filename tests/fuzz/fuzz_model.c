/* fuzz_model.c: any bytes as a model file: figures, weights and vocabulary are read and checked, the facts are told, a text goes
 * to ids and back, messages through the file's own template. What is refused is refused with a line of printing ASCII; ids are
 * those of the vocabulary. Files are memory; the seeds are the smallest of tests/llm/models.
 * options: -max_len=66000 -len_control=0 -dict=tests/fuzz/model.dict
 * No weight is loaded and nothing runs: what would reach a device is left out, and a call of it would be a finding.
 * sources: tests/llm/hostile.c -Wl,--unresolved-symbols=ignore-all -no-pie */
#include "hostile.h"
#include "base/base.h"
#include "llm/model.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- a context in place of the library's: memory, and the last failure ---- */

struct hd_context { hdi_holder holder; bool strict; };

hd_allocator hd_context_allocator(const hd_context *context) {
    (void)context;
    return hdl_default_allocator;
}
bool hd_context_strict(const hd_context *context) { return context->strict; }
void hd_context_log(hd_context *context, hd_log_level level, const char *part, const char *line) {
    (void)context;
    (void)level;
    if (!part[0] || !line[0]) abort();
}
hd_status hd_context_put_error(hd_context *context, const hd_error *error) {
    context->holder.error = *error;
    return error->status;
}

/* ---- one input ---- */

static void check_refusal(const hd_context *context, hd_status status) {
    if (context->holder.error.status != status || !context->holder.error.text[0]) abort();
    for (const char *at = context->holder.error.text; *at; at++)
        if (*at < ' ' || *at > '~') abort();
}

static void use_text(const hd_model *model, hd_context *context) {
    static const char text[] = "The 3 quick\tfoxes\n\n  said: \xe4\xb8\xad \xf0\x9f\x98\x80 <|endoftext|> \xff don't!";
    static const hd_message messages[] = { { .role = "system", .content = "be brief" },
                                           { .role = "user", .content = "hello" } };
    int32_t ids[256];
    char chat[4096];
    size_t count = 256, needed;
    const hd_status status = hd_model_tokenize(model, text, sizeof text - 1, HD_TOKENIZE_ADD_SPECIAL | HD_TOKENIZE_PARSE_SPECIAL, ids, &count);
    if (status) check_refusal(context, status);
    for (size_t i = 0; i < count && !status; i++) {
        size_t bytes;
        if (ids[i] < 0 || (uint32_t)ids[i] >= model->figures.vocabulary || !hd_model_token_text(model, ids[i], &bytes)) abort();
        (void)hd_model_token_ends(model, ids[i]);
    }
    const hd_status rendered = hd_model_render_chat(model, NULL, messages, 2, chat, sizeof chat, &needed);
    if (rendered && rendered != HD_STATUS_LIMIT) check_refusal(context, rendered);
}

static void check_divisors(const float *divisors, uint32_t count) {
    for (uint32_t i = 0; divisors && i < count; i++)
        if (!(divisors[i] != 0) || divisors[i] * 0 != 0) abort();
}

/* Figures that went through are within what the rest of the library counts on. */
static void check_figures(const hd_model *model) {
    const hdl_figures *f = &model->figures;
    if (f->layers == 0 || f->heads == 0 || f->kv_heads == 0 || f->heads % f->kv_heads || f->head_size % 2 || f->rope_dims % 2 || f->rope_dims > f->head_size) abort();
    if (!(f->epsilon >= 0) || !(f->rope_theta > 1) || !(f->rope_scale > 0) || f->vocabulary == 0 || f->context == 0) abort();
    check_divisors(f->rope_factors, f->rope_dims / 2);
    check_divisors(f->rope_far_factors, f->rope_dims / 2);
    if (f->rope_magnitude * 0 != 0 || !f->activation || (f->window && f->context > f->window)) abort();
    for (uint32_t i = 0; i < model->weight_count; i++)
        if (model->weights[i].present && (hdl_weight_bytes(&model->weights[i]) == 0 || model->weights[i].scale * 0 != 0)) abort();
    for (uint32_t i = 0; i < model->end_count; i++)
        if (model->ends[i] < 0 || (uint32_t)model->ends[i] >= f->vocabulary) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hd_context context = { .strict = size % 4 == 3 };
    memory_files memory = { .files = { { "m.gguf", data, size } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    hd_model *model;
    hd_model_info info;
    const hd_status status = hdl_model_open(&context, "m.gguf", &(hd_model_desc){ .check_weights = size % 2 }, &files, &model);
    if (status) check_refusal(&context, status);
    if (status) return 0;
    check_figures(model);
    if (hd_model_get_info(model, &info)) abort();
    use_text(model, &context);
    hd_model_close(model);
    if (memory.open_files || memory.maps) abort();
    return 0;
}

/* ---- changes ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* Most changes are to the values of keys and the fields of tensors: letters of the vocabulary and weights are many and say little. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t random = seed;
    hdl_gguf *g = NULL;
    memory_files memory = { .files = { { "m.gguf", data, size } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    if (hostile_random(&random) % 8 == 0 || hdl_gguf_open("m.gguf", &(hdl_gguf_desc){ .files = &files }, &g, NULL)) return LLVMFuzzerMutate(data, size, room);
    const hdl_gguf_info info = hdl_gguf_get_info(g);
    uint64_t at = 0, count = 0;
    if (info.key_count && hostile_random(&random) % 3) {
        const hdl_gguf_value value = hdl_gguf_key(g, (uint32_t)(hostile_random(&random) % info.key_count));
        at = value.offset;
        count = value.bytes.count < 16 ? value.bytes.count : 1 + hostile_random(&random) % 16;
        if (value.bytes.count > count) at += hostile_random(&random) % (value.bytes.count - count);
    } else if (info.tensor_count) { /* a name's end, rank, axes, type */
        const hdl_gguf_tensor tensor = hdl_gguf_tensor_at(g, (uint32_t)(hostile_random(&random) % info.tensor_count));
        at = tensor.offset; /* or weights, where its field is not found */
        count = 4;
        for (uint64_t i = 0; i + tensor.name.count + 24 < size && tensor.name.count; i++)
            if (memcmp(data + i, tensor.name.bytes, tensor.name.count) == 0) {
                at = i + tensor.name.count;
                count = 24;
                break;
            }
    }
    hdl_gguf_close(g);
    if (count == 0 || at + count > size) return LLVMFuzzerMutate(data, size, room);
    LLVMFuzzerMutate(data + at, (size_t)count, (size_t)count);
    return size;
}
