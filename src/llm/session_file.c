/* session_file.c: what a sequence holds, as a file: a head, the tokens, then for each layer the keys and the values of
 * these tokens, and a checksum over all of it. The cache has one form on all devices, so a file goes from one to
 * another. */
#include "llm/session.h"

enum { FILE_VERSION = 1, PIECE_BYTES = 1 << 20, SAMPLE_BYTES = 512 };
/* Raised whenever exact mode's keys or values get other bits, so that no answer is made of two definitions. */
enum { BITS_VERSION = 1 };
static const char magic[8] = { 'h', 'e', 'd', 'd', 'l', 'e', 'S', 'Q' };

typedef struct head {
    char     magic[8];
    uint32_t version, bits, math, layers, kv_heads, head_size, tokens;
    uint32_t cache_type;       /* an hd_dtype; 0: f16 */
    uint64_t model;            /* a checksum of what the model is */
} head;
_Static_assert(sizeof(head) == 48, "the head has no gaps");

/* ---- checksums: against mistakes and damage, not against intent ---- */

typedef struct checksum {
    uint64_t state, waiting;
    uint32_t waiting_bytes;
} checksum;

static uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * UINT64_C(0x9fb21c651e98df25);
    return state ^ state >> 29;
}

static void add(checksum *sum, const void *bytes, uint64_t count) {
    const uint8_t *at = bytes;
    for (; count && sum->waiting_bytes; count--, at++) {
        sum->waiting |= (uint64_t)*at << 8 * sum->waiting_bytes;
        if (++sum->waiting_bytes < 8) continue;
        sum->state = mix(sum->state, sum->waiting);
        sum->waiting = sum->waiting_bytes = 0;
    }
    for (uint64_t word; count >= 8; count -= 8, at += 8) {
        memcpy(&word, at, sizeof word);
        sum->state = mix(sum->state, word);
    }
    for (; count; count--, at++) sum->waiting |= (uint64_t)*at << 8 * sum->waiting_bytes++;
}

static uint64_t sum_of(const checksum *sum) { return mix(mix(sum->state, sum->waiting), sum->waiting_bytes); }

/* Of the figures that decide what is computed, and of samples of every weight. */
static hd_status sum_model(const hd_model *model, uint64_t *out) {
    const hdl_figures *f = &model->figures;
    const uint32_t numbers[] = { f->layers,        f->hidden,         f->heads,          f->kv_heads,
                                 f->head_size,     f->feed_forward,   f->vocabulary,     f->experts,
                                 f->experts_used,  f->expert_forward, f->shared_forward, f->window,
                                 f->window_period, f->still_period,   f->parallel,       f->rope_dims,
                                 f->rope_context };
    const float reals[] = { f->epsilon,         f->attention_scale, f->attention_cap,   f->logit_cap,
                            f->embedding_scale, f->residual_scale,  f->logit_scale,     f->rope_theta,
                            f->rope_scale,      f->rope_magnitude,  f->rope_local_theta };
    checksum sum = { 0 };
    hd_error error = { 0 };
    add(&sum, model->arch_name, strlen(model->arch_name));
    add(&sum, numbers, sizeof numbers);
    add(&sum, reals, sizeof reals);
    const float shares[] = { f->share_scale, f->whole_shares, f->sigmoid_shares };
    if (f->latent) add(&sum, shares, sizeof shares);
    for (uint32_t i = 0; i < model->weight_count; i++) {
        const hdl_weight *w = &model->weights[i];
        hdl_span data;
        if (!w->present) continue;
        if (hdl_weight_data(model, w, &data, &error)) return hd_context_put_error(model->context, &error);
        const uint64_t count = data.count < SAMPLE_BYTES ? data.count : SAMPLE_BYTES;
        add(&sum, &w->tensor.type, sizeof w->tensor.type);
        add(&sum, &data.count, sizeof data.count);
        add(&sum, data.bytes, count);
        add(&sum, data.bytes + (data.count - count) / 2, count);
        add(&sum, data.bytes + data.count - count, count);
    }
    *out = sum_of(&sum);
    return HD_OK;
}

/* ---- the cache, in pieces ---- */

static uint64_t row_bytes(const hd_session *session) {
    return hdl_cache_row_bytes(session->model, session->layout.cache_type);
}

/* Where a layer's keys (part 0) or values (1) of a token of the sequence lie, and how many tokens are there one after
 * the other. */
static hdl_place place_of(const hd_session *session, uint32_t layer, uint32_t part, uint32_t sequence, uint32_t token,
                          uint32_t *out_run) {
    const hdl_stage *stage = &session->stage;
    const hdl_store *store = layer < stage->here.first_layer ? &stage->there : &stage->here;
    hdl_place place = store->caches[hdl_cache_parts(session->model) * (layer - store->first_layer) + part];
    const int32_t page = session->pages.table[(uint64_t)sequence * session->pages.width + token / HDL_PAGE_TOKENS];
    *out_run = HDL_PAGE_TOKENS - token % HDL_PAGE_TOKENS;
    place.offset += ((uint64_t)page * HDL_PAGE_TOKENS + token % HDL_PAGE_TOKENS) * row_bytes(session);
    return place;
}

/* Called with each piece of the cache in the order of the file. */
typedef hd_status (*piece_fn)(void *user, hd_buffer *buffer, uint64_t offset, uint64_t bytes);

static hd_status each_piece(const hd_session *session, uint32_t sequence, uint32_t tokens, piece_fn with, void *user) {
    const uint64_t row = row_bytes(session);
    const uint32_t most = row < PIECE_BYTES ? (uint32_t)(PIECE_BYTES / row) : 1;
    hd_status status = HD_OK;
    const uint32_t parts = hdl_cache_parts(session->model);
    for (uint32_t i = 0; i < parts * session->model->figures.layers; i++)
        for (uint32_t token = 0, run; token < tokens && !status; token += run) {
            const hdl_place place = place_of(session, i / parts, i % parts, sequence, token, &run);
            if (run > tokens - token) run = tokens - token;
            if (run > most) run = most;
            status = with(user, place.buffer, place.offset, run * row);
        }
    return status;
}

static uint64_t piece_room(const hd_session *session) {
    return row_bytes(session) > PIECE_BYTES ? row_bytes(session) : PIECE_BYTES;
}

/* ---- writing ---- */

typedef struct saving {
    const hd_session *session;
    uint32_t  sequence;
    head      head;
    hdl_sink  sink;
    void     *to;
    checksum  sum;
    uint8_t  *piece;
} saving;

static bool put(saving *s, const void *bytes, uint64_t count) {
    add(&s->sum, bytes, count);
    return s->sink(s->to, bytes, count);
}

static hd_status put_piece(void *user, hd_buffer *buffer, uint64_t offset, uint64_t bytes) {
    saving *s = user;
    const hd_status status = hd_buffer_read(buffer, offset, s->piece, bytes);
    return status ? status : put(s, s->piece, bytes) ? HD_OK : HD_STATUS_IO;
}

static hd_status put_all(void *user, hdl_sink sink, void *to, hd_error *error) {
    saving *s = user;
    s->sink = sink;
    s->to = to;
    bool ok = put(s, &s->head, sizeof s->head);
    for (uint32_t i = 0; i < s->head.tokens && ok; i++) {
        const int32_t token = hdl_pages_token(&s->session->pages, s->sequence, i);
        ok = put(s, &token, sizeof token);
    }
    const hd_status status = ok ? each_piece(s->session, s->sequence, s->head.tokens, put_piece, s) : HD_STATUS_IO;
    if (status && status != HD_STATUS_IO) return hd_context_take_error(s->session->model->context, error), status;
    const uint64_t sum = sum_of(&s->sum);
    return !status && sink(to, &sum, sizeof sum) ? HD_OK : HD_STATUS_IO;
}

static hd_status make_head(const hd_session *session, uint32_t tokens, head *out) {
    const hdl_figures *f = &session->model->figures;
    *out = (head){ .version = FILE_VERSION,
                   .bits = BITS_VERSION,
                   .math = session->layout.math == HD_MATH_EXACT,
                   .layers = f->layers,
                   .kv_heads = f->kv_heads,
                   .head_size = f->head_size,
                   .tokens = tokens,
                   .cache_type = session->layout.cache_type == HD_F16 ? 0 : (uint32_t)session->layout.cache_type };
    memcpy(out->magic, magic, sizeof magic);
    return sum_model(session->model, &out->model);
}

hd_status hd_session_save(hd_session *session, uint32_t sequence, const char *path) {
    hd_status status = hdl_session_find(&session);
    if (status || !path) return status ? status : HD_STATUS_NULL_POINTER;
    status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    const hd_model *model = session->model;
    const hd_allocator *allocator = &model->allocator;
    saving s = { .session = session, .sequence = sequence };
    hd_error error = { 0 };
    const uint32_t tokens = session->sequences[sequence].position;
    if (!tokens) return hdl_model_fail(model, HD_STATUS_ZERO_SIZE, "sequence %u holds nothing to be saved", sequence);
    if (hdl_pages_token(&session->pages, sequence, tokens - 1) == HDL_NO_TOKEN)
        return hdl_model_fail(model, HD_STATUS_WRONG_STATE, "sequence %u ends with an image; feed what comes behind it",
                              sequence);
    if ((status = make_head(session, tokens, &s.head))) return status;
    s.piece = hdl_alloc(allocator, piece_room(session));
    if (!s.piece) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to save a sequence");
    status = hdl_write_file(allocator, path, put_all, &s, &error);
    hdl_free(allocator, s.piece, piece_room(session));
    return status ? hd_context_put_error(model->context, &error) : HD_OK;
}

/* ---- reading ---- */

typedef struct loading {
    const hdl_files *files;
    const char *path;
    hdl_file    file;
    uint64_t    at;
    uint8_t    *piece;
    uint64_t    room;
    hd_error   *error;
} loading;

static hd_status fail_read(loading *l) { return hdl_fail(l->error, HD_STATUS_IO, "%.160s: cannot be read", l->path); }

/* What the file must be: its length, with so many bytes for a token in a layer, and the sum at its end. */
static hd_status check_file(loading *l, const head *h, uint64_t token) {
    uint64_t bytes, wanted, cache;
    if (!l->files->size(l->files->user, l->file, &bytes)) return fail_read(l);
    if (!hdl_mul(token * h->layers, h->tokens, &cache) ||
        !hdl_add(cache, sizeof *h + UINT64_C(4) * h->tokens + 8, &wanted) || wanted != bytes)
        return hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: it is not whole: %llu bytes; save it anew", l->path,
                        (unsigned long long)bytes);
    checksum sum = { 0 };
    uint64_t stored;
    for (uint64_t at = 0, piece; at < bytes - 8; at += piece) {
        piece = bytes - 8 - at < l->room ? bytes - 8 - at : l->room;
        if (!hdl_files_read_all(l->files, l->file, at, l->piece, piece)) return fail_read(l);
        add(&sum, l->piece, piece);
    }
    if (!hdl_files_read_all(l->files, l->file, bytes - 8, &stored, sizeof stored)) return fail_read(l);
    return stored == sum_of(&sum) ? HD_OK
                                  : hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: it is damaged; save it anew", l->path);
}

static hd_status check_head(loading *l, const hd_session *session, const head *h) {
    head own;
    const hd_status status = make_head(session, h->tokens, &own);
    if (status) return hd_context_take_error(session->model->context, l->error), status;
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: this is no saved sequence", l->path);
    if (h->version != FILE_VERSION)
        return hdl_fail(l->error, HD_STATUS_UNSUPPORTED_VERSION, "%.160s: a saved sequence of version %u; %u is known",
                        l->path, h->version, FILE_VERSION);
    if (h->model != own.model || h->layers != own.layers || h->kv_heads != own.kv_heads ||
        h->head_size != own.head_size)
        return hdl_fail(l->error, HD_STATUS_UNSUPPORTED, "%.160s: it was saved with another model", l->path);
    if (h->math != own.math)
        return hdl_fail(l->error, HD_STATUS_UNSUPPORTED,
                        "%.160s: it was saved %s exact mode, and this session is %s it", l->path,
                        h->math ? "in" : "without", own.math ? "in" : "without");
    if (h->bits != own.bits)
        return hdl_fail(l->error, HD_STATUS_UNSUPPORTED,
                        "%.160s: it was saved by a heddle whose bits are defined otherwise", l->path);
    if (h->cache_type != own.cache_type)
        return hdl_fail(l->error, HD_STATUS_UNSUPPORTED,
                        "%.160s: its cache is of another type than this session's, which is %s", l->path,
                        hd_dtype_name(session->layout.cache_type));
    if (h->tokens == 0)
        return hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: it is damaged; save it anew", l->path);
    return HD_OK;
}

/* Room for the tokens, where what the sequence holds now is given back. */
static hd_status check_room(loading *l, const hd_session *session, uint32_t sequence, uint32_t tokens) {
    if (tokens <= session->layout.context &&
        hdl_pages_needed(0, tokens) <= hdl_pages_free_without(&session->pages, sequence))
        return HD_OK;
    return hdl_fail(l->error, HD_STATUS_LIMIT, "%.160s: it holds %u tokens, more than there is room for", l->path,
                    tokens);
}

static hd_status take_piece(void *user, hd_buffer *buffer, uint64_t offset, uint64_t bytes) {
    loading *l = user;
    if (!hdl_files_read_all(l->files, l->file, l->at, l->piece, bytes)) return fail_read(l);
    l->at += bytes;
    return hd_buffer_write(buffer, offset, l->piece, bytes);
}

/* All but what comes next, which the last token tells. */
static hd_status take_cache(loading *l, hd_session *session, uint32_t sequence, const int32_t *tokens, uint32_t count) {
    hd_status status = hd_session_rewind(session, sequence, 0);
    if (status) return status;
    hdl_pages_take(&session->pages, sequence, 0, count);
    hdl_pages_note(&session->pages, sequence, 0, tokens, count);
    l->at = sizeof(head) + UINT64_C(4) * count;
    status = each_piece(session, sequence, count, take_piece, l);
    hdl_pages_give(&session->pages, sequence, count, status ? 0 : count - 1);
    session->sequences[sequence].position = status ? 0 : count - 1;
    return status ? status : hd_session_feed(session, sequence, tokens + count - 1, 1);
}

static hd_status load(loading *l, hd_session *session, uint32_t sequence) {
    const hd_model *model = session->model;
    head h;
    if (!hdl_files_read_all(l->files, l->file, 0, &h, sizeof h))
        return hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: this is no saved sequence", l->path);
    hd_status status = check_head(l, session, &h);
    if (!status) status = check_file(l, &h, hdl_cache_parts(session->model) * row_bytes(session));
    if (!status) status = check_room(l, session, sequence, h.tokens);
    if (status) return status;
    int32_t *tokens = hdl_alloc(&model->allocator, h.tokens * sizeof *tokens);
    if (!tokens) return hdl_fail(l->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %u tokens", h.tokens);
    if (!hdl_files_read_all(l->files, l->file, sizeof h, tokens, h.tokens * sizeof *tokens)) status = fail_read(l);
    for (uint32_t i = 0; i < h.tokens && !status; i++)
        if ((tokens[i] < 0 || (uint32_t)tokens[i] >= model->figures.vocabulary) &&
            (tokens[i] != HDL_NO_TOKEN || !model->figures.sees || i + 1 == h.tokens))
            status = hdl_fail(l->error, HD_STATUS_PARSE, "%.160s: it is damaged; save it anew", l->path);
    if (!status) status = take_cache(l, session, sequence, tokens, h.tokens);
    hdl_free(&model->allocator, tokens, h.tokens * sizeof *tokens);
    return status;
}

hd_status hd_session_load(hd_session *session, uint32_t sequence, const char *path) {
    hd_status status = hdl_session_find(&session);
    if (status || !path) return status ? status : HD_STATUS_NULL_POINTER;
    status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    const hd_model *model = session->model;
    hd_error error = { 0 };
    loading l = { .files = &hdl_system_files, .path = path, .room = piece_room(session), .error = &error };
    l.piece = hdl_alloc(&model->allocator, l.room);
    if (!l.piece) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to load a sequence");
    status = l.files->open(l.files->user, path, &l.file, &error);
    if (!status) {
        status = load(&l, session, sequence);
        l.files->close(l.files->user, l.file);
    }
    hdl_free(&model->allocator, l.piece, l.room);
    return error.status ? hd_context_put_error(model->context, &error) : status;
}
