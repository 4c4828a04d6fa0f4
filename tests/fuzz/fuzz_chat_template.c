/* fuzz_chat_template.c: any bytes as a template and messages: first flags, then the roles and contents of a few messages
 * with their lengths, some with a call, the rest is the template. A rendering ends in text or in a failure with a line of words; the same
 * again gives the same.
 * options: -max_len=2000 -dict=tests/fuzz/chat_template.dict */
#include "llm/chat.h"
#include <stdlib.h>

typedef struct input { const uint8_t *at, *end; } input;
static uint8_t take(input *in) { return in->at < in->end ? *in->at++ : 0; }
static hdl_span take_text(input *in) {
    size_t count = take(in) % 32, left = (size_t)(in->end - in->at);
    if (count > left) count = left;
    const hdl_span text = { in->at, count };
    in->at += count;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const roles[] = { "user", "assistant", "system", "tool" };
    static const char tools[] = "[{\"function\": {\"name\": \"f\", \"parameters\": {\"a\": [1, -2.5e-9, 1e400, null, true, {}]}}}]";
    static hdl_json json; /* read once, and kept */
    static uint32_t tools_value;
    if (!json.values && hdl_json_read(&hdl_default_allocator, hdl_text(tools), &json, &tools_value, NULL)) abort();
    const hdl_chat_call call = { hdl_text("call00001"), hdl_text("f"), &json, json.values[json.values[tools_value].first].first };
    hdl_chat_message messages[4] = { 0 };
    input in = { data, data + size };
    const uint8_t flags = take(&in);
    const unsigned more = take(&in);
    hdl_chat_desc desc = { .messages = messages, .message_count = flags % 5 % 4, .add_generation_prompt = flags & 16 };
    for (size_t i = 0; i < desc.message_count; i++) {
        messages[i].role = flags & 8 ? take_text(&in) : hdl_text(roles[take(&in) % 4]);
        messages[i].content = take_text(&in);
        if (more & 2 << i) messages[i].calls = messages[i].call = &call;
        if (more & 32 << i) messages[i].call_count = messages[i].calls ? 1 : 0;
    }
    if (flags & 32) desc.bos = desc.eos = hdl_text("<s>");
    if (flags & 64) desc.thinking = HD_THINKING_OFF;
    if (flags & 128) desc.now = 1760003661;
    if (more & 1) desc.tools = &json;
    desc.tools_value = tools_value;
    desc.text_arguments = more & 16;
    desc.source = (hdl_span){ in.at, (uint64_t)(in.end - in.at) };

    char *text, *again;
    size_t bytes, again_bytes;
    hd_error error = { 0 };
    const hd_status status = hdl_chat_render(NULL, &desc, &text, &bytes, &error);
    if (status != error.status || !text != (status != HD_OK) || (status && !error.text[0])) abort();
    if (bytes > HDL_MAX_CHAT_BYTES || (text && text[bytes])) abort();
    if (hdl_chat_render(NULL, &desc, &again, &again_bytes, NULL) != status || again_bytes != bytes) abort();
    if (text && memcmp(text, again, bytes) != 0) abort();
    hdl_chat_free(NULL, text, bytes);
    hdl_chat_free(NULL, again, again_bytes);
    return 0;
}
