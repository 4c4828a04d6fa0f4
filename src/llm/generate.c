/* generate.c: a prompt's continuation, token by token, as text. */
#include "llm/sample.h"
#include "llm/session.h"
#include "llm/stream.h"

/* An answer on its way. */
typedef struct answer {
    hd_session      *session;
    const hd_generate_desc *desc;
    hdl_sampler     *sampler;  /* NULL: the best token as the device chose it */
    hdl_stream      *stream;   /* bytes of tokens to whole characters before a stop text */
    hd_stop          stop;
    hd_error         error;
} answer;

static hd_status keep(answer *a, hd_status status) { return status ? hd_context_put_error(a->session->model->context, &a->error) : HD_OK; }

static bool needs_scores(const hd_sampling *s) {
    return s->temperature != 0 || (s->repeat_penalty != 0 && s->repeat_penalty != 1) || s->frequency_penalty != 0 ||
           s->presence_penalty != 0;
}

/* What was said lately is known from the sequence, whoever fed it: earlier turns, and the prompt behind them. */
static void recall(answer *a) {
    const uint32_t sequence = a->desc->sequence, position = hd_session_position(a->session, sequence),
                   window = hdl_sampler_window(a->sampler);
    for (uint32_t i = position > window ? position - window : 0; i < position; i++)
        hdl_sampler_accept(a->sampler, hdl_pages_token(&a->session->pages, sequence, i));
}

static hd_status begin(answer *a) {
    const hd_generate_desc *desc = a->desc;
    const hd_model *model = a->session->model;
    const hd_allocator *allocator = &model->allocator;
    hdl_span *stops = hdl_alloc(allocator, desc->stop_count * sizeof *stops);
    if (!stops) return keep(a, hdl_fail(&a->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an answer"));
    size_t count = 0;
    for (size_t i = 0; i < desc->stop_count; i++)
        if (desc->stop_texts[i] && desc->stop_texts[i][0]) stops[count++] = hdl_text(desc->stop_texts[i]);
    hd_status status = hdl_stream_create(allocator, &(hdl_stream_desc){ .stops = stops, .stop_count = count }, &a->stream, &a->error);
    hdl_free(allocator, stops, desc->stop_count * sizeof *stops);
    if (!status && needs_scores(&desc->sampling))
        status = hdl_sampler_create(allocator, &desc->sampling, model->figures.vocabulary, &a->sampler, &a->error);
    if (!status && a->sampler) recall(a);
    return keep(a, status);
}

static void end(answer *a) {
    hdl_sampler_destroy(a->sampler);
    hdl_stream_destroy(a->stream);
}

static hd_status choose(answer *a, int32_t *out_token) {
    if (!a->sampler) return hd_session_best(a->session, a->desc->sequence, out_token);
    const uint32_t sequence = a->desc->sequence;
    int32_t ids[HDL_CANDIDATES];
    float scores[HDL_CANDIDATES];
    uint32_t count = 0;
    hd_status status = HD_OK;
    if (hdl_sampler_needs_only(a->sampler, a->session->last_candidates))
        status = hdl_session_candidates(a->session, sequence, ids, scores, &count);
    if (status) return status;
    if (count) {
        status = keep(a, hdl_sampler_draw_from(a->sampler, ids, scores, count, out_token, &a->error));
    } else {
        const float *logits;
        if ((status = hd_session_logits(a->session, sequence, &logits))) return status;
        status = keep(a, hdl_sampler_draw(a->sampler, logits, out_token, &a->error));
    }
    if (!status) hdl_sampler_accept(a->sampler, *out_token);
    return status;
}

/* Feeds the token; the device picks candidates where the next one can be drawn from them. */
static hd_status feed(answer *a, int32_t token) {
    const uint32_t candidates = hdl_candidates(a->session->model);
    a->session->candidates = a->sampler && hdl_sampler_needs_only(a->sampler, candidates) ? candidates : 0;
    const hd_status status = hd_session_feed(a->session, a->desc->sequence, &token, 1);
    a->session->candidates = 0;
    return status;
}

static void show(answer *a, hdl_span text) {
    if (text.count && a->desc->on_text &&
        !a->desc->on_text(a->desc->user, (const char *)text.bytes, (size_t)text.count))
        a->stop = HD_STOP_CALLER;
}

/* The token's text, where it has any that is meant for a reader, goes there as far as it can be shown now. */
static hd_status tell(answer *a, int32_t token) {
    const hdl_tokenizer *tokenizer = a->session->model->tokenizer;
    hdl_span shown;
    if (!tokenizer) return HD_OK;
    const hdl_token_type type = hdl_token_type_of(tokenizer, token);
    if (type == HDL_TOKEN_CONTROL || type == HDL_TOKEN_UNKNOWN) return HD_OK;
    const hd_status status = hdl_stream_push(a->stream, hdl_token_text(tokenizer, token), &shown, &a->error);
    if (status) return keep(a, status);
    show(a, shown);
    if (hdl_stream_stopped(a->stream) && !a->stop) a->stop = HD_STOP_TEXT;
    return HD_OK;
}

/* What waited for more comes out. */
static hd_status tell_last(answer *a) {
    hdl_span shown;
    if (a->stop == HD_STOP_TEXT || a->stop == HD_STOP_CALLER) return HD_OK;
    const hd_status status = hdl_stream_end(a->stream, &shown, &a->error);
    if (!status) show(a, shown);
    return keep(a, status);
}

static hd_status run(answer *a, int32_t *out_tokens, hd_generated *result) {
    hd_session *session = a->session;
    const hd_generate_desc *desc = a->desc;
    while (!a->stop) {
        int32_t token;
        hd_status status = choose(a, &token);
        if (status) return status;
        if (!desc->ignore_end && hd_model_token_ends(session->model, token)) {
            a->stop = HD_STOP_END;
            break;
        }
        if (out_tokens && desc->max_tokens) out_tokens[result->token_count] = token;
        result->token_count++;
        if ((status = tell(a, token))) return status;
        if (!a->stop && result->token_count == desc->max_tokens) a->stop = HD_STOP_LENGTH;
        if (!hdl_session_has_room(session, desc->sequence)) a->stop = a->stop ? a->stop : HD_STOP_CONTEXT;
        else if ((status = feed(a, token))) return status;
    }
    return tell_last(a);
}

hd_status hd_generate(hd_session *session, const hd_generate_desc *desc, int32_t *out_tokens, hd_generated *out_result) {
    hd_status status = hdl_session_find(&session);
    if (status) return status;
    if (!desc || (desc->token_count && !desc->tokens) || (desc->stop_count && !desc->stop_texts)) return HD_STATUS_NULL_POINTER;
    answer a = { .session = session, .desc = desc };
    hd_generated result = { 0 };
    const uint64_t began = hdl_now_ns();
    status = desc->token_count ? hd_session_feed(session, desc->sequence, desc->tokens, desc->token_count) : HD_OK;
    const uint64_t fed = hdl_now_ns();
    result.prompt_ns = fed - began;
    if (!status && desc->token_count == 0) { /* to go on with nothing new, something must have been fed */
        int32_t token;
        status = hd_session_best(session, desc->sequence, &token);
    }
    if (!status) status = begin(&a);
    if (!status) status = run(&a, out_tokens, &result);
    result.answer_ns = hdl_now_ns() - fed;
    result.stop = a.stop;
    end(&a);
    if (out_result) *out_result = result;
    return status;
}
