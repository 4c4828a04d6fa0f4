/* talk.h: the messages of a conversation, with calls of tools and what came of them, and as JSON. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include "cli/cli.h"
#include <heddle_llm.h>

typedef struct talk {
    hd_message *messages; /* its own, as are their texts */
    size_t      count, room;
} talk;

/* Adds a copy. False: no memory is left, and nothing was added. */
bool talk_add(talk *c, const hd_message *message);
/* Another content for a message. False: no memory is left. */
bool message_say(hd_message *message, const char *content);
/* Takes the last one out of the conversation, and puts it back; message_free ends it. */
hd_message talk_take_last(talk *c);
void talk_put_back(talk *c, hd_message message);
void message_free(hd_message *message);
/* Leaves the first `count`. */
void talk_cut(talk *c, size_t count);
void talk_free(talk *c);

/* {"messages": [{"role": ..., "content": ...}, ...]}, as the field has it, from message `first` on. */
json_t *talk_json(const talk *c, size_t first, bool *ok);
/* Adds the messages of such a value. False: it is none, or no memory is left. */
bool talk_read(talk *c, const json_t *root);

#endif
