/* samples.c: conversations and texts of a JSONL file as tokens, with what is to be learned of them, and the batches of
 * a run. */
#include "train/support.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_LENGTH = 512, LINE_MOST = 1 << 20, MESSAGES_MOST = 512, LENGTH_MOST = 1 << 24 };

struct hd_samples {
    hd_context *context;
    void       *handle;
    uint32_t    length;
    bool        packed;
    int32_t    *tokens;    /* of all samples; of what is not to be learned -1 - the token */
    uint64_t   *ends;      /* of each row in there */
    uint64_t   *begins;    /* of each sample in there */
    uint64_t    token_room, row_room, sample_room;
    hd_samples_info info;
};
static const char kind[] = "samples";

/* A file under way. */
typedef struct reading {
    hd_samples     *samples;
    const hd_model *model;
    const char     *path;
    hd_chat_form    form;
    uint64_t        line;
} reading;

static hd_status wrong(const reading *r, const char *what) {
    return hdt_fail(r->samples->context, HD_STATUS_PARSE, "%s, line %llu: %s", r->path, (unsigned long long)r->line,
                    what);
}

/* ---- keeping ---- */

/* Room for `wanted` items; what is there stays. */
static bool grow(hd_context *context, void *items_at, uint64_t *room, uint64_t wanted, uint64_t item_bytes) {
    void *items, *larger;
    if (wanted <= *room) return true;
    const uint64_t now = wanted > 2 * *room ? wanted : 2 * *room;
    memcpy(&items, items_at, sizeof items);
    larger = hdt_alloc(context, now, item_bytes);
    if (!larger) return false;
    if (items) memcpy(larger, items, (size_t)(*room * item_bytes));
    hdt_free(context, items, *room, item_bytes);
    memcpy(items_at, &larger, sizeof larger);
    *room = now;
    return true;
}

/* Keeps a sample: as many of its tokens as a sequence takes in, and the target behind them; in the last row where it is
 * packed and fits. @param said NULL: all is
 * learned */
static hd_status keep(hd_samples *s, const int32_t *tokens, const uint8_t *said, size_t count) {
    const size_t kept = count > (size_t)s->length + 1 ? (size_t)s->length + 1 : count;
    const uint64_t rows = s->info.rows, first = rows ? s->ends[rows - 1] : 0, begin = rows > 1 ? s->ends[rows - 2] : 0;
    const bool joins = s->packed && rows > 0 && first - begin + kept <= (uint64_t)s->length + 1;
    uint64_t targets = 0;
    for (size_t i = 1; i < kept; i++) targets += !said || said[i];
    if (targets == 0) {
        s->info.empty++;
        return HD_OK;
    }
    if (!grow(s->context, &s->tokens, &s->token_room, first + kept, sizeof *s->tokens) ||
        !grow(s->context, &s->begins, &s->sample_room, s->info.samples + 1, sizeof *s->begins) ||
        !grow(s->context, &s->ends, &s->row_room, rows + 1, sizeof *s->ends))
        return hdt_no_memory(s->context);
    for (size_t i = 0; i < kept; i++) {
        const bool learned = (!said || said[i]) && !(joins && i == 0); /* nothing tells which sample follows */
        s->tokens[first + i] = learned ? tokens[i] : -1 - tokens[i];
        s->info.hash = (s->info.hash ^ (uint32_t)s->tokens[first + i]) * UINT64_C(0x100000001b3);
    }
    s->info.hash = (s->info.hash ^ kept) * UINT64_C(0x100000001b3);
    s->begins[s->info.samples++] = first;
    s->info.rows += !joins;
    s->ends[s->info.rows - 1] = first + kept;
    s->info.tokens += kept;
    s->info.targets += targets;
    s->info.cut += kept < count;
    return HD_OK;
}

/* ---- lines ---- */

static hd_status take_conversation(const reading *r, const hd_message *messages, size_t count) {
    hd_samples *s = r->samples;
    size_t needed = 0;
    hd_status status = hd_model_chat_said(r->model, &r->form, messages, count, NULL, NULL, &needed);
    if (status) return status;
    int32_t *tokens = hdt_alloc(s->context, needed, sizeof *tokens);
    uint8_t *said = hdt_alloc(s->context, needed, 1);
    size_t got = needed;
    status = tokens && said ? HD_OK : hdt_no_memory(s->context);
    if (!status) status = hd_model_chat_said(r->model, &r->form, messages, count, tokens, said, &got);
    if (!status) status = keep(s, tokens, said, got);
    hdt_free(s->context, tokens, needed, sizeof *tokens);
    hdt_free(s->context, said, needed, 1);
    return status;
}

static hd_status take_text(const reading *r, const char *text) {
    hd_samples *s = r->samples;
    size_t needed = 0;
    hd_status status = hd_model_tokenize(r->model, text, strlen(text), HD_TOKENIZE_ADD_SPECIAL, NULL, &needed);
    if (status) return status;
    int32_t *tokens = hdt_alloc(s->context, needed, sizeof *tokens);
    size_t got = needed;
    status = tokens ? hd_model_tokenize(r->model, text, strlen(text), HD_TOKENIZE_ADD_SPECIAL, tokens, &got)
                    : hdt_no_memory(s->context);
    if (!status) status = keep(s, tokens, NULL, got);
    hdt_free(s->context, tokens, needed, sizeof *tokens);
    return status;
}

static hd_status take_messages(const reading *r, const json_t *list) {
    const size_t count = json_array_size(list);
    hd_context *context = r->samples->context;
    if (count == 0 || count > MESSAGES_MOST) return wrong(r, "messages is no list of 1 to 512 messages");
    hd_message *messages = hdt_alloc(context, count, sizeof *messages);
    hd_status status = messages ? HD_OK : hdt_no_memory(context);
    for (size_t i = 0; i < count && !status; i++) {
        const json_t *message = json_array_get(list, i);
        messages[i].role = json_string_value(json_object_get(message, "role"));
        messages[i].content = json_string_value(json_object_get(message, "content"));
        if (!messages[i].role || !messages[i].content)
            status = wrong(r, "a message has no role or no content that is a text");
    }
    if (!status) status = take_conversation(r, messages, count);
    hdt_free(context, messages, count, sizeof *messages);
    return status;
}

static hd_status take_line(const reading *r, const char *line, size_t bytes) {
    json_error_t why;
    if (bytes > LINE_MOST)
        return hdt_fail(r->samples->context, HD_STATUS_LIMIT, "%s, line %llu: more than 1 MiB", r->path,
                        (unsigned long long)r->line);
    json_t *root = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!root) return wrong(r, why.text);
    const json_t *messages = json_object_get(root, "messages");
    const char *text = json_string_value(json_object_get(root, "text")),
               *prompt = json_string_value(json_object_get(root, "prompt")),
               *completion = json_string_value(json_object_get(root, "completion"));
    hd_status status;
    if (messages) status = take_messages(r, messages);
    else if (prompt && completion)
        status = take_conversation(r, (const hd_message[]){ { .role = "user", .content = prompt },
                                                           { .role = "assistant", .content = completion } }, 2);
    else if (text) status = take_text(r, text);
    else status = wrong(r, "no object with messages, with prompt and completion, or with a text");
    json_decref(root);
    return status;
}

static hd_status take_lines(reading *r, const hdt_map *map) {
    const char *at = (const char *)map->bytes, *end = at + map->count;
    hd_status status = HD_OK;
    while (at && at < end && !status) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        r->line++;
        size_t blank = 0;
        while (at + blank < stop && (at[blank] == ' ' || at[blank] == '\t' || at[blank] == '\r')) blank++;
        if (at + blank < stop) status = take_line(r, at, (size_t)(stop - at));
        at = stop + 1;
    }
    return status;
}

/* ---- the samples ---- */

hd_status hd_samples_read(hd_context *context, const hd_model *model, const char *path, const hd_samples_desc *desc,
                          hd_samples **out_samples) {
    if (out_samples) *out_samples = NULL;
    if (!context || !model || !path || !out_samples)
        return hdt_fail(context, HD_STATUS_NULL_POINTER, "hd_samples_read was given NULL");
    const uint32_t length = desc && desc->length ? desc->length : USUAL_LENGTH;
    if (length > LENGTH_MOST) return hdt_fail(context, HD_STATUS_LIMIT, "samples of %u tokens", length);
    hd_samples *samples = hdt_alloc(context, 1, sizeof *samples);
    if (!samples) return hdt_no_memory(context);
    *samples = (hd_samples){ .context = context, .length = length, .packed = desc && desc->packed,
                             .info.hash = UINT64_C(0xcbf29ce484222325) };
    reading r = {
        .samples = samples, .model = model, .path = path, .form = { .template_name = desc ? desc->template_name : NULL }
    };
    hdt_map map;
    hd_status status = hdt_map_open(context, path, &map);
    if (!status) status = take_lines(&r, &map);
    if (!status && samples->info.samples == 0)
        status =
            hdt_fail(context, HD_STATUS_ZERO_SIZE, "%s: none of its %llu lines has something to learn within %u tokens",
                     path, (unsigned long long)r.line, length);
    hdt_map_close(&map);
    if (samples->info.hash == 0) samples->info.hash = 1;
    if (!status) status = hd_handle_new(context, kind, samples, &samples->handle);
    if (status) hd_samples_destroy(samples);
    else *out_samples = samples->handle;
    return status;
}

void hd_samples_destroy(hd_samples *samples) {
    samples = hd_handle_find(samples, kind);
    if (!samples || (samples->handle && !hd_handle_end(samples->handle))) return;
    hdt_free(samples->context, samples->tokens, samples->token_room, sizeof *samples->tokens);
    hdt_free(samples->context, samples->begins, samples->sample_room, sizeof *samples->begins);
    hdt_free(samples->context, samples->ends, samples->row_room, sizeof *samples->ends);
    hdt_free(samples->context, samples, 1, sizeof *samples);
}

hd_samples_info hd_samples_get_info(const hd_samples *samples) {
    samples = hd_handle_find(samples, kind);
    return samples ? samples->info : (hd_samples_info){ 0 };
}

/* ---- batches ---- */

/* Where row `at` stands in the order of an epoch: Feistel's network of four rounds over as many bits as the count
 * has, made even, and again while it leads outside (Black and Rogaway, 2002). */
static uint64_t shuffled(uint64_t at, uint64_t count, uint64_t seed, uint64_t epoch) {
    enum { STREAM = 2, ROUNDS = 4 }; /* data.c has 1 */
    uint32_t half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < count) half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = at >> half, right = at & mask;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint32_t words[4];
            hdt_random((const uint32_t[]){ (uint32_t)right, STREAM + 16 * round, (uint32_t)epoch,
                                           ~(uint32_t)(epoch >> 32) },
                       seed, words);
            const uint64_t mixed = left ^ (words[0] & mask);
            left = right;
            right = mixed;
        }
        at = left << half | right;
    } while (at >= count);
    return at;
}

/* Row `at` of a run: which tokens it has. */
typedef struct row { uint64_t first, count; } row;
static row row_at(const hd_samples *s, uint64_t seed, uint64_t at) {
    const uint64_t rows = s->info.rows, one = shuffled(at % rows, rows, seed, at / rows);
    const uint64_t first = one ? s->ends[one - 1] : 0;
    return (row){ first, s->ends[one] - first };
}

/* How many samples begin at or before the token. */
static uint64_t begun(const hd_samples *s, uint64_t token) {
    uint64_t low = 0, high = s->info.samples;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (s->begins[middle] <= token) low = middle + 1;
        else high = middle;
    }
    return low;
}

void hd_samples_starts(const hd_samples *samples, uint64_t seed, uint64_t step, uint32_t batch, int32_t *out_starts) {
    const hd_samples *s = hd_handle_find(samples, kind);
    if (!s || !out_starts) return;
    for (uint32_t i = 0; i < batch; i++, out_starts += s->length) {
        const row r = row_at(s, seed, step * batch + i);
        uint64_t next = begun(s, r.first); /* the sample behind the one that a token belongs to */
        for (uint32_t t = 0; t < s->length; t++) {
            while (next < s->info.samples && s->begins[next] <= r.first + t) next++;
            out_starts[t] = t < r.count ? (int32_t)(s->begins[next - 1] - r.first) : (int32_t)t;
        }
    }
}

void hd_samples_draw(const hd_samples *samples, uint64_t seed, uint64_t step, uint32_t batch, int32_t *out_tokens,
                     int32_t *out_targets) {
    const hd_samples *s = hd_handle_find(samples, kind);
    if (!s || !out_tokens || !out_targets) return;
    for (uint32_t i = 0; i < batch; i++, out_tokens += s->length, out_targets += s->length) {
        const row r = row_at(s, seed, step * batch + i);
        const int32_t *tokens = s->tokens + r.first;
        for (uint32_t t = 0; t < s->length; t++) {
            const int32_t token = t < r.count ? tokens[t] : 0;
            out_tokens[t] = token < 0 ? -1 - token : token;
            out_targets[t] = t + 1 < r.count && tokens[t + 1] >= 0 ? tokens[t + 1] : -1;
        }
    }
}
