/* fuzz_reader.c: any bytes as a model's answer with calls of tools. The first one picks the form, or none; the others are the
 * answer, and tell where it is cut. Pieces say what the whole says; where nothing was called all of it comes out as it
 * went in; what is called has a name and an object.
 * options: -max_len=3000 -dict=tests/fuzz/calls.dict */
#include "llm/form/json.h"
#include "llm/reader.h"
#include <stdlib.h>

typedef struct heard {
    uint8_t *bytes, *kinds; /* all texts, and the kind of each byte, wherever texts are cut */
    size_t   count, calls;
    uint64_t hash;          /* of calls and where they stand */
} heard;

static void mix(heard *h, const char *text) {
    for (size_t i = 0, count = strlen(text) + 1; i < count; i++) h->hash = (h->hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
}

static void listen(void *user, const hd_part *part) {
    heard *h = user;
    memcpy(h->bytes + h->count, part->text, part->bytes);
    memset(h->kinds + h->count, (int)part->kind, part->bytes);
    h->count += part->bytes;
    if (part->kind != HD_PART_CALL) return;
    hdl_json json;
    uint32_t value;
    h->calls++;
    h->hash = (h->hash ^ h->count) * UINT64_C(0x100000001b3);
    mix(h, part->call->name);
    mix(h, part->call->arguments);
    if (!part->call->name[0] || strchr(part->call->arguments, '\n')) abort();
    if (hdl_json_read(&hdl_default_allocator, hdl_text(part->call->arguments), &json, &value, NULL)) abort();
    if (json.values[value].kind != HDL_JSON_OBJECT) abort();
    hdl_json_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const signs[] = { "<tool_call>", "[TOOL_CALLS]", "<|tool_call|>", "<|channel|>functions.", "<｜tool▁calls▁begin｜>",
                                         "Action:```json", "ipython\"parameters\": ", "<tool_call><function=", "<tool_call><arg_key>",
                                         "nothing" };
    enum { FORMS = sizeof signs / sizeof *signs };
    const uint8_t first = size ? data[0] : 0;
    const hdl_span text = { data + (size ? 1 : 0), size ? size - 1 : 0 };
    heard heard[2] = { { .hash = 1 }, { .hash = 1 } };
    hdl_reader r;
    hdl_reader_init(&r, &hdl_default_allocator, hdl_call_form_of(hdl_text(signs[first % FORMS])));
    r.on_part = listen;
    for (int pieces = 0; pieces < 2; pieces++) {
        heard[pieces].bytes = malloc(size + 1);
        heard[pieces].kinds = malloc(size + 1);
        r.user = &heard[pieces];
        hdl_reader_begin(&r, first / FORMS % 2);
        for (uint64_t at = 0, count; at < text.count; at += count) {
            count = pieces ? 1 + text.bytes[at] % 7 : text.count;
            if (count > text.count - at) count = text.count - at;
            if (hdl_reader_push(&r, (hdl_span){ text.bytes + at, count })) abort();
        }
        if (hdl_reader_end(&r)) abort();
        const hd_message m = hdl_reader_message(&r);
        if (m.call_count != heard[pieces].calls) abort();
        if (!m.call_count && (heard[pieces].count != text.count || memcmp(heard[pieces].bytes, text.bytes, text.count) != 0)) abort();
    }
    if (heard[0].hash != heard[1].hash || heard[0].count != heard[1].count) abort();
    if (memcmp(heard[0].bytes, heard[1].bytes, heard[0].count) != 0) abort();
    if (memcmp(heard[0].kinds, heard[1].kinds, heard[0].count) != 0) abort();
    for (int pieces = 0; pieces < 2; pieces++) {
        free(heard[pieces].bytes);
        free(heard[pieces].kinds);
    }
    hdl_reader_free(&r);
    return 0;
}
