/* chat_fixture.h: reads the cases that tools/fixtures/chat_fixture.py wrote. */
#ifndef CHAT_FIXTURE_H
#define CHAT_FIXTURE_H

#include "llm/chat.h"
#include "tokenizer_fixture.h"

typedef struct chat_cases {
    uint8_t  *file;
    reader    at;
    hdl_span *texts;
    hdl_chat_message *messages[16];
    size_t    message_counts[16], count;
} chat_cases;

typedef struct chat_case {
    hdl_chat_desc desc;
    size_t        outcome; /* 0: text, 1: refused, 2: an error */
    hdl_span      text;
} chat_case;

static inline chat_cases chat_open(uint8_t *file) {
    chat_cases c = { .file = file, .at = { file } };
    const size_t texts = read_number(&c.at);
    c.texts = calloc(texts, sizeof *c.texts);
    for (size_t i = 0; i < texts; i++) c.texts[i] = read_bytes(&c.at);
    const size_t lists = read_number(&c.at);
    for (size_t i = 0; i < lists; i++) {
        c.message_counts[i] = read_number(&c.at);
        c.messages[i] = calloc(c.message_counts[i] + 1, sizeof *c.messages[i]);
        for (size_t k = 0; k < c.message_counts[i]; k++) {
            c.messages[i][k].role = c.texts[read_number(&c.at)];
            c.messages[i][k].content = c.texts[read_number(&c.at)];
        }
    }
    c.count = read_number(&c.at);
    return c;
}

static inline chat_case chat_next(chat_cases *c) {
    chat_case next = { .desc.source = c->texts[read_number(&c->at)] };
    const size_t list = read_number(&c->at), flags = read_number(&c->at);
    next.desc.messages = c->messages[list];
    next.desc.message_count = c->message_counts[list];
    next.desc.add_generation_prompt = flags & 1;
    next.desc.thinking = flags & 2 ? HD_THINKING_ON : flags & 4 ? HD_THINKING_OFF : HD_THINKING_DEFAULT;
    if (flags & 8) next.desc.now = 1760003661;
    if (!(flags & 16)) {
        next.desc.bos = hdl_text("<s>");
        next.desc.eos = hdl_text("</s>");
    }
    next.outcome = read_number(&c->at);
    next.text = c->texts[read_number(&c->at)];
    return next;
}

static inline void chat_close(chat_cases *c) {
    for (size_t i = 0; i < 16; i++) free(c->messages[i]);
    free(c->texts);
    free(c->file);
}

#endif
