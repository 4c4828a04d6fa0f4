/* generate.c: a prompt's continuation, token by token, as text. */
#include "llm/likeliest.h"
#include "llm/sample.h"
#include "llm/session.h"
#include "llm/stream.h"

/* An answer on its way. */
typedef struct answer {
    hd_session      *session;
    const hd_generate_desc *desc;
    hd_grammar      *grammar;  /* the wish's, found; NULL: none */
    hdl_sampler     *sampler;  /* NULL: the best token as the device chose it */
    hdl_stream      *stream;   /* bytes of tokens to whole characters before a stop text */
    float           *scores;   /* a row of them that may be changed; NULL: nobody changes them */
    hdl_likeliest   *likeliest; /* NULL: nobody asks for them */
    hd_stop          stop;
    hd_error         error;
} answer;

static hd_status keep(answer *a, hd_status status) {
    return status ? hd_context_put_error(a->session->model->context, &a->error) : HD_OK;
}

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

/* Whether the answer begins within a thought is told by what stands before it. */
static hd_status begin_form(answer *a) {
    const uint32_t sequence = a->desc->sequence, position = hd_session_position(a->session, sequence);
    const uint32_t count = position < HDL_THOUGHT_TOKENS ? position : HDL_THOUGHT_TOKENS;
    int32_t tokens[HDL_THOUGHT_TOKENS];
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = hdl_pages_token(&a->session->pages, sequence, position - count + i);
    return hd_grammar_begin(a->grammar, tokens, count);
}

static hd_status make_stream(answer *a) {
    const hd_generate_desc *desc = a->desc;
    const hd_allocator *allocator = &a->session->model->allocator;
    hdl_span *stops = hdl_alloc(allocator, desc->stop_count * sizeof *stops);
    if (!stops) return hdl_fail(&a->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an answer");
    size_t count = 0;
    for (size_t i = 0; i < desc->stop_count; i++)
        if (desc->stop_texts[i] && desc->stop_texts[i][0]) stops[count++] = hdl_text(desc->stop_texts[i]);
    const hd_status status =
        hdl_stream_create(allocator, &(hdl_stream_desc){ .stops = stops, .stop_count = count }, &a->stream, &a->error);
    hdl_free(allocator, stops, desc->stop_count * sizeof *stops);
    return status;
}

static hd_status check(answer *a) {
    const hd_generate_desc *desc = a->desc;
    const uint32_t vocabulary = a->session->model->figures.vocabulary;
    for (size_t i = 0; i < desc->bias_count; i++)
        if (desc->biases[i].token < 0 || (uint32_t)desc->biases[i].token >= vocabulary ||
            desc->biases[i].bias != desc->biases[i].bias)
            return hdl_fail(&a->error, HD_STATUS_INVALID_ARGUMENT,
                            "bias %zu is for token %d of a vocabulary of %u, or is no number", i, desc->biases[i].token,
                            vocabulary);
    if (desc->likeliest > HD_MAX_LIKELIEST)
        return hdl_fail(&a->error, HD_STATUS_LIMIT, "the %u likeliest tokens; the limit is %u", desc->likeliest,
                        HD_MAX_LIKELIEST);
    if (a->grammar && hdl_grammar_model(a->grammar) != a->session->model)
        return hdl_fail(&a->error, HD_STATUS_INVALID_ARGUMENT, "the grammar was made for another model");
    return HD_OK;
}

static hd_status begin(answer *a) {
    const hd_generate_desc *desc = a->desc;
    const uint32_t vocabulary = a->session->model->figures.vocabulary;
    const hd_allocator *allocator = &a->session->model->allocator;
    hd_status status = check(a);
    if (!status) status = make_stream(a);
    if (!status && (a->grammar || desc->bias_count || desc->on_scores || needs_scores(&desc->sampling)))
        status = hdl_sampler_create(allocator, &desc->sampling, vocabulary, &a->sampler, &a->error);
    if (!status && (desc->bias_count || desc->on_scores))
        a->scores = hdl_alloc(allocator, vocabulary * sizeof *a->scores);
    if (!status && desc->on_token && desc->likeliest) a->likeliest = hdl_alloc(allocator, sizeof *a->likeliest);
    if (!status &&
        (((desc->bias_count || desc->on_scores) && !a->scores) || (desc->on_token && desc->likeliest && !a->likeliest)))
        status = hdl_fail(&a->error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for an answer");
    if (!status && a->sampler) recall(a);
    if (!status && a->grammar) status = begin_form(a);
    return keep(a, status);
}

static void end(answer *a) {
    const hd_allocator *allocator = &a->session->model->allocator;
    hdl_free(allocator, a->scores, a->session->model->figures.vocabulary * sizeof *a->scores);
    hdl_free(allocator, a->likeliest, sizeof *a->likeliest);
    hdl_sampler_destroy(a->sampler);
    hdl_stream_destroy(a->stream);
}

/* ---- the next token ---- */

/* Leaves of the candidates those that the grammar allows, as many as the sampler needs: they come by their scores. */
static hd_status leave_allowed(answer *a, int32_t *ids, float *scores, uint32_t *count) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < *count && !hdl_sampler_needs_only(a->sampler, left); i++) {
        bool allowed = !(a->desc->ignore_end && hdl_model_ends(a->session->model, ids[i]));
        const hd_status status = allowed ? hdl_grammar_allows(a->grammar, ids[i], &allowed) : HD_OK;
        if (status) return status;
        if (!allowed) continue;
        ids[left] = ids[i];
        scores[left++] = scores[i];
    }
    *count = left;
    return HD_OK;
}

/* Draws from the tokens that the device picked, where these decide; else the token is none. */
static hd_status choose_from_few(answer *a, int32_t *out_token) {
    int32_t ids[HDL_CANDIDATES];
    float scores[HDL_CANDIDATES];
    uint32_t count = 0;
    *out_token = HDL_NO_TOKEN;
    if (a->scores || !hdl_sampler_needs_only(a->sampler, a->session->last_candidates)) return HD_OK;
    hd_status status = hdl_session_candidates(a->session, a->desc->sequence, ids, scores, &count);
    if (!status && count && a->grammar) status = leave_allowed(a, ids, scores, &count);
    if (status || !count || !hdl_sampler_needs_only(a->sampler, count)) return status;
    return keep(a, hdl_sampler_draw_from(a->sampler, ids, scores, count, out_token, &a->error));
}

/* Draws from all scores; no token where the grammar has come to its end. */
static hd_status choose_from_all(answer *a, int32_t *out_token) {
    const hd_generate_desc *desc = a->desc;
    const uint32_t vocabulary = a->session->model->figures.vocabulary;
    const float *logits;
    const uint32_t *allowed = NULL;
    bool more = true;
    hd_status status = hd_session_logits(a->session, desc->sequence, &logits);
    if (!status && a->grammar) status = hdl_grammar_mask(a->grammar, desc->ignore_end, &allowed, &more);
    *out_token = HDL_NO_TOKEN;
    if (status || !more) return status;
    if (a->scores) {
        memcpy(a->scores, logits, vocabulary * sizeof *logits);
        for (size_t i = 0; i < desc->bias_count; i++) a->scores[desc->biases[i].token] += desc->biases[i].bias;
        if (desc->on_scores) desc->on_scores(desc->user, a->scores, vocabulary);
        logits = a->scores;
    }
    if (allowed) return keep(a, hdl_sampler_draw_among(a->sampler, logits, allowed, out_token, &a->error));
    return keep(a, hdl_sampler_draw(a->sampler, logits, out_token, &a->error));
}

/* The next token, or none where the answer can have no more. */
static hd_status choose(answer *a, int32_t *out_token) {
    if (!a->sampler) return hd_session_best(a->session, a->desc->sequence, out_token);
    hd_status status = choose_from_few(a, out_token);
    if (!status && *out_token == HDL_NO_TOKEN) status = choose_from_all(a, out_token);
    if (!status && *out_token != HDL_NO_TOKEN) hdl_sampler_accept(a->sampler, *out_token);
    return status;
}

/* Feeds the token, with guesses of the `left` that may follow it, unless it was one itself; the device picks candidates
 * where the next one can be drawn from them. */
static hd_status feed(answer *a, int32_t token, uint32_t left) {
    if (hdl_session_accept(a->session, a->desc->sequence, token)) return HD_OK;
    const uint32_t candidates = hdl_candidates(a->session->model);
    a->session->candidates =
        a->sampler && !a->scores && hdl_sampler_needs_only(a->sampler, candidates) ? candidates : 0;
    const hd_status status = hdl_session_feed_drafted(a->session, a->desc->sequence, token, left);
    a->session->candidates = 0;
    return status;
}

/* Makes room for one more token, or ends the answer. */
static hd_status make_room(answer *a) {
    const hd_generate_desc *desc = a->desc;
    const uint32_t held = hd_session_position(a->session, desc->sequence);
    const uint32_t drop = desc->keep < held ? (held - desc->keep) / 2 : 0;
    if (!desc->shift || a->stop || drop == 0) {
        a->stop = a->stop ? a->stop : HD_STOP_CONTEXT;
        return HD_OK;
    }
    return hd_session_shift(a->session, desc->sequence, desc->keep, drop);
}

/* ---- telling ---- */

/* The token with its chances. */
static hd_status tell_token(answer *a, int32_t token) {
    const hd_generate_desc *desc = a->desc;
    hd_said_token said = { .token = token };
    if (!desc->on_token) return HD_OK;
    if (a->likeliest) {
        const float *logits;
        const hd_status status = hd_session_logits(a->session, desc->sequence, &logits);
        if (status) return status;
        hdl_likeliest_find(a->likeliest, logits, a->session->model->figures.vocabulary, desc->likeliest, token);
        said.log_probability = a->likeliest->log_probability;
        said.likeliest = a->likeliest->count;
        said.likeliest_tokens = a->likeliest->tokens;
        said.likeliest_log_probabilities = a->likeliest->log_probabilities;
    }
    if (!desc->on_token(desc->user, &said)) a->stop = HD_STOP_CALLER;
    return HD_OK;
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
    if (!tokenizer || !hdl_model_shows(a->session->model, token)) return HD_OK;
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
        if (token == HDL_NO_TOKEN || (!desc->ignore_end && hdl_model_ends(session->model, token))) {
            a->stop = HD_STOP_END;
            break;
        }
        if (a->grammar && (status = hd_grammar_accept(a->grammar, token))) return status;
        if ((status = tell_token(a, token))) return status;
        if (out_tokens && desc->max_tokens) out_tokens[result->token_count] = token;
        result->token_count++;
        if (!a->stop && (status = tell(a, token))) return status;
        if (!a->stop && result->token_count == desc->max_tokens) a->stop = HD_STOP_LENGTH;
        const bool full = !hdl_session_has_room(session, desc->sequence);
        if (full && (status = make_room(a))) return status;
        const uint32_t left = a->stop ? 0 : desc->max_tokens - result->token_count; /* without a limit: very many */
        if ((!full || !a->stop) && (status = feed(a, token, left))) return status;
    }
    return tell_last(a);
}

hd_status hd_generate(hd_session *session, const hd_generate_desc *desc, int32_t *out_tokens,
                      hd_generated *out_result) {
    hd_status status = hdl_session_find(&session);
    if (status) return status;
    if (!desc || (desc->token_count && !desc->tokens) || (desc->stop_count && !desc->stop_texts) ||
        (desc->bias_count && !desc->biases))
        return HD_STATUS_NULL_POINTER;
    answer a = { .session = session, .desc = desc, .grammar = desc->grammar };
    if (a.grammar && (status = hdl_grammar_find(&a.grammar))) return status;
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
