/* sight.h: what a model sees with, for the commands that show it images: `heddle see` and `heddle chat`. */
#ifndef CLI_SIGHT_H
#define CLI_SIGHT_H

#include "cli/llm.h"

typedef struct cli_sight {
    const char    *mmproj;
    hd_vision_info info;
    float        **images;  /* the rows of each, in the order in which they were shown */
    size_t         count;
    uint64_t       seen_ns; /* what seeing them took */
} cli_sight;

/* Whether the file's rows are the model's; the session, which is not there yet, is to have room for images. */
int cli_sight_open(cli_llm *llm, const char *mmproj, cli_sight *out);
/* Adds what is seen in these files: in all, or none. What it is seen with is loaded for that, and given back. */
int cli_sight_see(cli_llm *llm, cli_sight *s, const char *const *paths, size_t count);
/* Forgets all but the first images; all of them at the end. */
void cli_sight_cut(cli_sight *s, size_t count);
/* How many tokens a conversation has whose images have one for each row; and these, -1, of those that
 * hd_model_chat_tokens gave. */
size_t cli_sight_length(const cli_sight *s, size_t tokens, size_t images);
void cli_sight_spread(const cli_sight *s, const int32_t *tokens, size_t count, int32_t *out_tokens);
/* Feeds such tokens from *inout_held on, which the session holds, up to the end of the last image; *inout_held is then
 * there. @param first the number of the first image among the tokens */
int cli_sight_feed(cli_llm *llm, const cli_sight *s, size_t first, const int32_t *tokens, size_t count,
                   size_t *inout_held);

#endif
