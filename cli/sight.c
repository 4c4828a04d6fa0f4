/* sight.c: images on their way into a session. */
#include "cli/sight.h"
#include <stdlib.h>
#include <string.h>

static int no_memory(const cli_llm *llm) { return cli_fail(llm->cli.command, "no memory is left"); }

/* ---- seeing ---- */

static int load(cli_llm *llm, const cli_sight *s, hd_vision **out_vision) {
    const hd_vision_desc desc = { .device = llm->desc.device, .math = llm->desc.math };
    return hd_vision_open(llm->cli.context, s->mmproj, &desc, out_vision) ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}

int cli_sight_open(cli_llm *llm, const char *mmproj, cli_sight *out) {
    hd_vision *vision = NULL;
    *out = (cli_sight){ .mmproj = mmproj };
    int code = load(llm, out, &vision);
    if (!code && hd_vision_get_info(vision, &out->info)) code = cli_session_fail(&llm->cli, NULL);
    hd_vision_close(vision);
    if (!code && out->info.hidden != llm->info.hidden)
        return cli_fail(llm->cli.command, "%s makes rows of %u numbers, and the model takes %u: it is another model's",
                        mmproj, (unsigned)out->info.hidden, (unsigned)llm->info.hidden);
    llm->desc.image_rows = out->info.rows;
    return code;
}

static int see(cli_llm *llm, cli_sight *s, hd_vision *vision, const char *path) {
    hd_context *context = llm->cli.context;
    hd_image image = { 0 };
    float **images = realloc(s->images, (s->count + 1) * sizeof *images),
          *rows = calloc((size_t)s->info.rows * s->info.hidden, sizeof *rows);
    if (images) s->images = images;
    int code = images && rows ? CLI_OK : no_memory(llm);
    if (!code && hd_image_read(context, path, &image)) code = cli_session_fail(&llm->cli, NULL);
    if (!code && hd_vision_encode(vision, &image, rows)) code = cli_session_fail(&llm->cli, path);
    hd_image_free(context, &image);
    if (code) free(rows);
    else s->images[s->count++] = rows;
    return code;
}

int cli_sight_see(cli_llm *llm, cli_sight *s, const char *const *paths, size_t count) {
    const size_t before = s->count;
    const uint64_t began = cli_now_ns();
    hd_vision *vision = NULL;
    int code = load(llm, s, &vision);
    for (size_t i = 0; i < count && !code; i++) code = see(llm, s, vision, paths[i]);
    hd_vision_close(vision);
    if (code) cli_sight_cut(s, before);
    s->seen_ns = cli_now_ns() - began;
    return code;
}

void cli_sight_cut(cli_sight *s, size_t count) {
    while (s->count > count) free(s->images[--s->count]);
    if (s->count) return;
    free(s->images);
    s->images = NULL;
}

/* ---- tokens ---- */

size_t cli_sight_length(const cli_sight *s, size_t tokens, size_t images) {
    return tokens + images * (s->info.rows > 1 ? s->info.rows - 1 : 0);
}

void cli_sight_spread(const cli_sight *s, const int32_t *tokens, size_t count, int32_t *out_tokens) {
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < (tokens[i] < 0 ? s->info.rows : 1); k++) *out_tokens++ = tokens[i];
}

int cli_sight_feed(cli_llm *llm, const cli_sight *s, size_t first, const int32_t *tokens, size_t count,
                   size_t *inout_held) {
    size_t end = count, at = *inout_held, rows = 0;
    while (end > at && tokens[end - 1] >= 0) end--;
    if (end == at) return CLI_OK;
    for (size_t i = 0; i < at; i++) rows += tokens[i] < 0;
    hd_status status = hd_session_rewind(llm->session, 0, (uint32_t)at);
    while (at < end && !status) {
        size_t next = at;
        while (tokens[next] >= 0) next++;
        if (next > at) status = hd_session_feed(llm->session, 0, tokens + at, next - at);
        if (!status) status = hd_session_feed_image(llm->session, 0, s->images[first + rows / s->info.rows]);
        rows += s->info.rows;
        at = next + s->info.rows;
    }
    *inout_held = at;
    return status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}
