/* session.c: making and ending sessions, and running tokens through the model. */
#include "llm/session.h"
#include <math.h>

#define FAIL(session, ...) hdl_model_fail((session)->model, __VA_ARGS__)

static const char kind[] = "session";

hd_status hdl_session_find(void *session_at) {
    void *handle;
    memcpy(&handle, session_at, sizeof handle);
    const hd_session *session = hd_handle_find(handle, kind);
    if (!session) return hd_handle_refuse(handle, kind);
    const hd_model *model = session->model_handle;
    const hd_status status = hdl_model_find(&model);
    if (status) return status;
    memcpy(session_at, &session, sizeof session);
    const hdl_layout *l = &session->layout;
    if (hd_device_context(l->device) && (!l->cpu || hd_device_context(l->cpu))) return HD_OK;
    return FAIL(session, HD_STATUS_STALE_HANDLE, "a session is used whose device was closed");
}

/* ---- making and ending ---- */

/* The layout on desc->device, or on the best device; the CPU is opened beside it where layers go there. */
static hd_status lay_out(hd_model *model, const hd_session_desc *desc, hdl_layout *out, hd_device **out_device,
                         hd_device **out_cpu) {
    hd_device *device = desc->device;
    if (hdl_need_speech(model)) return HD_STATUS_UNSUPPORTED;
    if (device && hd_device_context(device) != model->context)
        return hdl_model_fail(model, HD_STATUS_INVALID_ARGUMENT,
                              "the session's device was closed, or is of another context than the model");
    hd_status status = device ? HD_OK : hd_device_open(model->context, NULL, out_device);
    if (!device) device = *out_device;
    if (!status) status = hdl_twins_find(model, device);
    if (!status) status = hdl_layout_make(model, desc, device, NULL, out);
    if (status != HD_STATUS_NO_DEVICE || !device) return status;
    status = hd_device_open(model->context, &(hd_device_desc){ .id = "cpu" }, out_cpu);
    return status ? status : hdl_layout_make(model, desc, device, *out_cpu, out);
}

hd_status hd_model_fit(hd_model *model, const hd_session_desc *desc, hd_fit *out_fit) {
    hd_status status = hdl_model_find(&model);
    if (status || !out_fit) return status ? status : HD_STATUS_NULL_POINTER;
    const hd_session_desc defaults = { 0 };
    hd_device *device = NULL, *cpu = NULL;
    hdl_layout layout = { 0 };
    status = lay_out(model, desc ? desc : &defaults, &layout, &device, &cpu);
    if (!status && layout.fit.device_bytes)
        status = hdl_part_shared_bytes(model, hdl_part_on_device(model, layout.split), layout.device,
                                       layout.half_rows != 0, &layout.fit.device_shared_bytes);
    *out_fit = layout.fit;
    hd_device_close(cpu);
    hd_device_close(device);
    return status;
}

static hd_status make_room(hd_session *session) {
    const hdl_layout *l = &session->layout;
    const hd_allocator *allocator = &session->model->allocator;
    const uint64_t rows = hdl_layout_room(l);
    const uint32_t results = l->draft && l->sequences < HDL_DRAFT_ROWS ? HDL_DRAFT_ROWS : l->sequences;
    session->logits_bytes = (uint64_t)results * session->model->figures.vocabulary * sizeof(float);
    session->sequences = hdl_alloc(allocator, l->sequences * sizeof *session->sequences);
    session->tokens = hdl_alloc(allocator, rows * sizeof *session->tokens);
    session->positions = hdl_alloc(allocator, rows * sizeof *session->positions);
    session->rows = hdl_alloc(allocator, rows * sizeof *session->rows);
    session->logits = hdl_alloc(allocator, session->logits_bytes);
    if (!session->sequences || !session->tokens || !session->positions || !session->rows || !session->logits)
        return FAIL(session, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a session");
    if (l->draft && !(session->drafter = hdl_drafter_create(allocator, l->context)))
        return FAIL(session, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for what guesses go by");
    session->pages = (hdl_pages){ .sequences = l->sequences, .width = l->rows / HDL_PAGE_TOKENS, .count = l->pages,
                                  .rows = hdl_layout_step_rows(l) };
    if (!hdl_pages_make(allocator, &session->pages))
        return FAIL(session, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the tables of pages");
    for (uint32_t i = 0; i < l->sequences; i++) session->sequences[i].best = HDL_NO_TOKEN;
    return HD_OK;
}

/* The plan of a decode step, so that a device that cannot run the model says so now. */
static hd_status prepare(hd_session *session) {
    const hdl_layout *l = &session->layout;
    const hdl_size size = l->sequences > 1 ? hdl_layout_step(l, l->sequences)
                                           : hdl_layout_one(l, 1, hdl_layout_bucket(l, 0), 0);
    hd_plan *plan;
    hd_plan_stats stats;
    hd_status status = hdl_stage_plan(&session->stage, size, &plan);
    if (!status) status = hd_plan_get_stats(plan, &stats);
    if (status) return status;
    session->stats.decode_levels = stats.levels;
    session->stats.decode_dispatches = stats.dispatches;
    return HD_OK;
}

hd_status hd_session_create(hd_model *model, const hd_session_desc *desc, hd_session **out_session) {
    hd_model *const model_handle = model;
    hd_status status = hdl_model_find(&model);
    if (status || !out_session) return status ? status : HD_STATUS_NULL_POINTER;
    *out_session = NULL;
    const hd_session_desc defaults = { 0 };
    const uint64_t began = hdl_now_ns();
    hd_session *session = hdl_alloc(&model->allocator, sizeof *session);
    if (!session) return hdl_model_fail(model, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a session");
    session->model = hdl_model_hold(model);
    session->model_handle = model_handle;
    if (!desc) desc = &defaults;
    status = lay_out(model, desc, &session->layout, &session->own_device, &session->own_cpu);
    const hd_fit *fit = &session->layout.fit;
    char needed[HDL_AMOUNT], most[HDL_AMOUNT];
    if (!status && !fit->fits)
        status = FAIL(session, HD_STATUS_OVER_BUDGET,
                      "%s are needed on the device, and %s may be taken there; allow more memory, shorten the context "
                      "or name fewer layers",
                      hdl_amount(fit->device_bytes ? fit->device_bytes : fit->cpu_bytes, needed),
                      hdl_amount(fit->device_memory_bytes, most));
    if (!status) status = make_room(session);
    const hdl_layout *l = &session->layout;
    session->stage = (hdl_stage){ .model = model, .device = l->device, .cpu = l->cpu, .split = l->split,
                                  .math = l->math, .cache_type = l->cache_type,
                                  .halves = l->half_rows != 0, .pages = &session->pages };
    if (!status) status = hdl_stage_load(&session->stage, desc->progress, desc->progress_user);
    if (!status && !session->stage.here.halves) hdl_layout_leave_halves(&session->layout);
    if (!status && fit->device_bytes) session->layout.fit.device_shared_bytes = session->stage.here.shared_bytes;
    if (!status) status = prepare(session);
    session->stats.load_ns = hdl_now_ns() - began;
    if (!status) status = hd_handle_new(model->context, kind, session, &session->handle);
    if (status) hd_session_destroy(session);
    else *out_session = session->handle;
    return status;
}

void hd_session_destroy(hd_session *session) {
    session = hd_handle_find(session, kind);
    if (!session || (session->handle && !hd_handle_end(session->handle))) return;
    const hd_allocator allocator = session->model->allocator;
    hdl_stage_end(&session->stage);
    const uint64_t rows = hdl_layout_room(&session->layout);
    hdl_free(&allocator, session->sequences, session->layout.sequences * sizeof *session->sequences);
    hdl_free(&allocator, session->tokens, rows * sizeof *session->tokens);
    hdl_free(&allocator, session->positions, rows * sizeof *session->positions);
    hdl_free(&allocator, session->rows, rows * sizeof *session->rows);
    hdl_free(&allocator, session->logits, session->logits_bytes);
    hdl_drafter_destroy(session->drafter);
    hdl_pages_end(&allocator, &session->pages);
    hd_device_close(session->own_device);
    hd_device_close(session->own_cpu);
    hdl_model_release(session->model);
    hdl_free(&allocator, session, sizeof *session);
}

/* ---- running ---- */

hd_status hdl_session_run(hd_session *session, hdl_size size, const uint32_t *sequences, const int32_t *past,
                          const int32_t *last) {
    const hdl_run run = { size, session->tokens, session->positions, past, last, session->image };
    hd_plan *plan = NULL;
    hdl_pages_show(&session->pages, sequences, size.sequences);
    session->run++;
    session->last_plan = NULL;
    const hd_status status = hdl_stage_run(&session->stage, &run, &session->stats, &plan);
    if (status) return status;
    session->last_plan = plan;
    session->last_results = size.results;
    session->last_candidates = size.candidates;
    return HD_OK;
}

hd_status hdl_session_read_best(hd_session *session, int32_t *out, uint32_t count) {
    float peaks[HDL_MOST_SEQUENCES];
    hd_status status = hd_plan_read(session->last_plan, "best", out, count * sizeof *out);
    if (!status) status = hd_plan_read(session->last_plan, "peak", peaks, count * sizeof *peaks);
    for (uint32_t i = 0; i < count && !status; i++)
        if (isnan(peaks[i])) out[i] = HDL_NAN_TOKEN;
    return status;
}

hd_status hdl_session_check_sequence(const hd_session *session, uint32_t sequence) {
    if (sequence < session->layout.sequences) return HD_OK;
    return FAIL(session, HD_STATUS_INVALID_ARGUMENT, "sequence %u of %u", sequence, session->layout.sequences);
}
static hd_status check_token(const hd_session *session, int32_t token) {
    if (token >= 0 && (uint32_t)token < session->model->figures.vocabulary) return HD_OK;
    return FAIL(session, HD_STATUS_INVALID_ARGUMENT, "token %d of a vocabulary of %u", token,
                session->model->figures.vocabulary);
}
static hd_status check_room(const hd_session *session, uint32_t sequence, size_t count) {
    const uint32_t position = session->sequences[sequence].position;
    if (count <= session->layout.context - position) return HD_OK;
    return FAIL(session, HD_STATUS_LIMIT, "sequence %u holds %u of %u tokens, %zu more do not fit", sequence, position,
                session->layout.context, count);
}

/* Are so many pages free? */
static hd_status check_pages(const hd_session *session, uint64_t needed) {
    const hdl_pages *pages = &session->pages;
    if (needed <= pages->free_count) return HD_OK;
    return FAIL(
        session, HD_STATUS_LIMIT,
        "the cache is full: %llu more pages of %d tokens are needed, and %u of %u are free; rewind a sequence, or "
        "give the session more (cache_tokens)",
        (unsigned long long)needed, HDL_PAGE_TOKENS, pages->free_count, pages->count);
}

bool hdl_session_has_room(const hd_session *session, uint32_t sequence) {
    const uint32_t position = session->sequences[sequence].position;
    return position < session->layout.context && hdl_pages_needed(position, 1) <= session->pages.free_count;
}

/* Runs what stands in tokens, or an image, for one sequence, whose `count` first rows it holds then. */
static hd_status run_piece(hd_session *session, uint32_t sequence, hdl_size size, uint32_t count) {
    hdl_sequence *s = &session->sequences[sequence];
    const int32_t past = (int32_t)s->position, last = (int32_t)count - 1;
    for (uint32_t i = 0; i < size.tokens; i++) session->positions[i] = past + (int32_t)i;
    hd_status status = hdl_session_run(session, size, &sequence, &past, &last);
    if (!status) status = hdl_session_read_best(session, &s->best, 1);
    if (status) return status;
    s->position += count;
    s->run = session->run;
    s->row = 0;
    return HD_OK;
}

/* Feeds `count` tokens, at most the size's, to one sequence. Its pages are taken already; padding that would stand
 * behind them is written nowhere. */
static hd_status feed_piece(hd_session *session, uint32_t sequence, const int32_t *tokens, uint32_t count,
                            uint32_t padded) {
    const uint32_t position = session->sequences[sequence].position;
    /* Padding stands behind all that is seen; what it leaves in the cache is overwritten. */
    for (uint32_t i = 0; i < padded; i++) session->tokens[i] = i < count ? tokens[i] : 0;
    const uint32_t bucket = padded == 1 ? hdl_layout_bucket(&session->layout, position) : session->layout.rows;
    const uint32_t candidates = padded == 1 ? session->candidates : 0; /* prompts have no second plan for them */
    return run_piece(session, sequence, hdl_layout_one(&session->layout, padded, bucket, candidates), count);
}

hd_status hd_session_feed(hd_session *session, uint32_t sequence, const int32_t *tokens, size_t count) {
    hd_status status = hdl_session_find(&session);
    if (status || !tokens) return status ? status : HD_STATUS_NULL_POINTER;
    status = hdl_session_check_sequence(session, sequence);
    if (!status && count == 0) status = FAIL(session, HD_STATUS_ZERO_SIZE, "no tokens to feed");
    if (!status) status = check_room(session, sequence, count);
    for (size_t i = 0; i < count && !status; i++) status = check_token(session, tokens[i]);
    if (!status)
        status = check_pages(session, hdl_pages_needed(session->sequences[sequence].position, (uint32_t)count));
    if (status) return status;
    const uint64_t began = hdl_now_ns();
    const hdl_sequence before = session->sequences[sequence];
    hdl_pages_take(&session->pages, sequence, before.position, (uint32_t)count);
    hdl_pages_note(&session->pages, sequence, before.position, tokens, (uint32_t)count);
    for (size_t at = 0; at < count && !status;) {
        const uint32_t padded = hdl_piece_next(session->layout.pieces, session->layout.run_rows, count - at);
        const uint32_t piece = padded < count - at ? padded : (uint32_t)(count - at);
        status = feed_piece(session, sequence, tokens + at, piece, padded);
        at += piece;
    }
    if (status) { /* all or nothing: what stands in the cache behind the position is written anew next time */
        hdl_pages_give(&session->pages, sequence, before.position + (uint32_t)count, before.position);
        session->sequences[sequence] = before;
        return status;
    }
    *(count > 1 ? &session->stats.prompt_tokens : &session->stats.decode_tokens) += count;
    *(count > 1 ? &session->stats.prompt_ns : &session->stats.decode_ns) += hdl_now_ns() - began;
    return HD_OK;
}

hd_status hd_session_feed_image(hd_session *session, uint32_t sequence, const float *rows) {
    hd_status status = hdl_session_find(&session);
    if (status || !rows) return status ? status : HD_STATUS_NULL_POINTER;
    const uint32_t count = session->layout.image_rows;
    status = hdl_session_check_sequence(session, sequence);
    if (!status && count == 0)
        status = FAIL(session, HD_STATUS_WRONG_STATE, "the session was made without image_rows, and takes no image");
    if (!status) status = check_room(session, sequence, count);
    if (!status) status = check_pages(session, hdl_pages_needed(session->sequences[sequence].position, count));
    if (status) return status;
    const uint64_t began = hdl_now_ns();
    const hdl_sequence before = session->sequences[sequence];
    for (uint32_t i = 0; i < count; i++) session->tokens[i] = HDL_NO_TOKEN;
    hdl_pages_take(&session->pages, sequence, before.position, count);
    hdl_pages_note(&session->pages, sequence, before.position, session->tokens, count);
    session->image = rows;
    status = run_piece(session, sequence, hdl_layout_image(&session->layout), count);
    session->image = NULL;
    if (status) {
        hdl_pages_give(&session->pages, sequence, before.position + count, before.position);
        session->sequences[sequence] = before;
        return status;
    }
    session->stats.prompt_tokens += count;
    session->stats.prompt_ns += hdl_now_ns() - began;
    return HD_OK;
}

/* How many tokens each sequence gets, where all of them have room. */
static hd_status check_steps(const hd_session *session, const hd_step *steps, size_t count,
                             uint32_t more[HDL_MOST_SEQUENCES]) {
    const uint32_t most = hdl_layout_most(&session->layout), limit = most < HDL_STEP_ROWS ? most : HDL_STEP_ROWS;
    hd_status status = count ? HD_OK : FAIL(session, HD_STATUS_ZERO_SIZE, "no tokens to feed");
    if (count > limit)
        status = FAIL(session, HD_STATUS_LIMIT, "a step of %zu tokens; this session's have at most %u", count, limit);
    for (size_t i = 0; i < count && !status; i++) {
        status = hdl_session_check_sequence(session, steps[i].sequence);
        if (!status) status = check_token(session, steps[i].token);
        if (!status) more[steps[i].sequence]++;
    }
    uint64_t needed = 0;
    for (uint32_t s = 0; s < session->layout.sequences && !status; s++) {
        status = check_room(session, s, more[s]);
        if (!status) needed += hdl_pages_needed(session->sequences[s].position, more[s]);
    }
    return status ? status : check_pages(session, needed);
}

/* Fills in the rows of a step, one for each token; the rest are nobody's, write nothing and see nothing of use. Finds
 * which result is each sequence's, and the rows of those results. */
static void fill_rows(hd_session *session, const hd_step *steps, size_t count, hdl_size size, uint32_t *out_result,
                      int32_t *out_last) {
    uint32_t next[HDL_MOST_SEQUENCES], found = 0;
    for (uint32_t s = 0; s < session->layout.sequences; s++) {
        next[s] = session->sequences[s].position;
        out_result[s] = HDL_NO_SEQUENCE;
    }
    for (uint32_t i = 0; i < size.sequences; i++) {
        session->tokens[i] = session->positions[i] = 0;
        session->rows[i] = HDL_NO_SEQUENCE;
        if (i >= count) continue;
        const uint32_t s = steps[i].sequence;
        session->rows[i] = s;
        session->tokens[i] = steps[i].token;
        session->positions[i] = (int32_t)next[s];
        hdl_pages_note(&session->pages, s, next[s]++, &steps[i].token, 1);
        if (size.results == size.sequences) { /* every row has a result */
            out_result[s] = i;
        } else {
            if (out_result[s] == HDL_NO_SEQUENCE) out_result[s] = found++;
            out_last[out_result[s]] = (int32_t)i;
        }
    }
}

/* Runs tokens of several sequences at once; they have room. */
static hd_status step_rows(hd_session *session, const hd_step *steps, size_t count, const uint32_t *more) {
    const hdl_size size = hdl_layout_step(&session->layout, (uint32_t)count);
    const uint32_t sequences = session->layout.sequences;
    uint32_t result[HDL_MOST_SEQUENCES];
    int32_t last[HDL_MOST_SEQUENCES] = { 0 }, best[HDL_MOST_SEQUENCES];
    for (uint32_t s = 0; s < sequences; s++)
        hdl_pages_take(&session->pages, s, session->sequences[s].position, more[s]);
    fill_rows(session, steps, count, size, result, last);
    hd_status status = hdl_session_run(session, size, session->rows, session->positions, last);
    if (!status) status = hdl_session_read_best(session, best, size.results);
    for (uint32_t i = 0; i < sequences; i++) {
        hdl_sequence *s = &session->sequences[i];
        if (status) hdl_pages_give(&session->pages, i, s->position + more[i], s->position);
        else if (more[i]) *s = (hdl_sequence){ s->position + more[i], best[result[i]], result[i], session->run };
    }
    return status;
}

hd_status hd_session_step(hd_session *session, const hd_step *steps, size_t count) {
    hd_status status = hdl_session_find(&session);
    if (status || !steps) return status ? status : HD_STATUS_NULL_POINTER;
    uint32_t more[HDL_MOST_SEQUENCES] = { 0 };
    status = check_steps(session, steps, count, more);
    if (status) return status;
    if (more[steps[0].sequence] == count) { /* a prompt, or the next token, of one sequence */
        int32_t tokens[HDL_STEP_ROWS];
        for (size_t i = 0; i < count; i++) tokens[i] = steps[i].token;
        return hd_session_feed(session, steps[0].sequence, tokens, count);
    }
    const uint64_t began = hdl_now_ns();
    status = step_rows(session, steps, count, more);
    if (status) return status;
    session->stats.decode_tokens += count;
    session->stats.decode_ns += hdl_now_ns() - began;
    return HD_OK;
}

/* ---- what came of it ---- */

static hd_status check_result(const hd_session *session, uint32_t sequence) {
    hd_status status = hdl_session_check_sequence(session, sequence);
    if (!status && session->sequences[sequence].best == HDL_NO_TOKEN)
        status = FAIL(session, HD_STATUS_WRONG_STATE, "nothing was fed to sequence %u since it began or was rewound",
                      sequence);
    return status;
}

hd_status hd_session_best(hd_session *session, uint32_t sequence, int32_t *out_token) {
    hd_status status = hdl_session_find(&session);
    if (status || !out_token) return status ? status : HD_STATUS_NULL_POINTER;
    status = check_result(session, sequence);
    if (status) return status;
    if (session->sequences[sequence].best == HDL_NAN_TOKEN)
        return FAIL(
            session, HD_STATUS_INVALID_ARGUMENT,
            "the scores hold one that is not a number: look at the model's weights (hd_model_desc.check_weights)");
    *out_token = session->sequences[sequence].best;
    return HD_OK;
}

hd_status hd_session_logits(hd_session *session, uint32_t sequence, const float **out_logits) {
    hd_status status = hdl_session_find(&session);
    if (status || !out_logits) return status ? status : HD_STATUS_NULL_POINTER;
    status = check_result(session, sequence);
    if (status) return status;
    const hdl_sequence *s = &session->sequences[sequence];
    const uint64_t vocabulary = session->model->figures.vocabulary;
    if (s->run != session->run || !session->last_plan)
        return FAIL(session, HD_STATUS_WRONG_STATE,
                    "the last run was not of sequence %u; take its scores before others run", sequence);
    if (session->logits_run != session->run)
        status = hd_plan_read(session->last_plan, "logits", session->logits,
                              session->last_results * vocabulary * sizeof *session->logits);
    if (status) return status;
    session->logits_run = session->run;
    *out_logits = session->logits + s->row * vocabulary;
    return HD_OK;
}

hd_status hdl_session_candidates(hd_session *session, uint32_t sequence, int32_t ids[HDL_CANDIDATES],
                                 float scores[HDL_CANDIDATES], uint32_t *out_count) {
    const hdl_sequence *s = &session->sequences[sequence];
    const uint32_t count = s->run == session->run && session->last_plan ? session->last_candidates : 0;
    const size_t words = (size_t)session->last_results * count, before = (size_t)s->row * count;
    hd_status status = HD_OK;
    *out_count = 0;
    if (!count) return HD_OK;
    if (session->candidates_run != session->run) {
        status = hd_plan_read(session->last_plan, "candidates", session->candidate_ids, words * sizeof *ids);
        if (!status)
            status = hd_plan_read(session->last_plan, "scores", session->candidate_scores, words * sizeof *scores);
    }
    if (status) return status;
    session->candidates_run = session->run;
    memcpy(ids, session->candidate_ids + before, count * sizeof *ids);
    memcpy(scores, session->candidate_scores + before, count * sizeof *scores);
    *out_count = count;
    return HD_OK;
}

uint32_t hd_session_position(const hd_session *session, uint32_t sequence) {
    return !hdl_session_find(&session) && sequence < session->layout.sequences ? session->sequences[sequence].position
                                                                               : 0;
}

static bool is_row(const hd_session *session, uint32_t sequence, uint32_t position) {
    return hdl_pages_token(&session->pages, sequence, position) == HDL_NO_TOKEN;
}

/* Does an image end before `position`, where a sequence is cut? Rows of it have seen the ones behind them. */
static hd_status check_cut(const hd_session *session, uint32_t sequence, uint32_t position) {
    if (position == 0 || position >= session->sequences[sequence].position) return HD_OK;
    if (!is_row(session, sequence, position - 1) || !is_row(session, sequence, position)) return HD_OK;
    return FAIL(session, HD_STATUS_UNSUPPORTED, "token %u of sequence %u is within an image, which is kept whole",
                position, sequence);
}

/* Can tokens first .. end-1 of a sequence be read anew? An image's rows were the caller's. */
static hd_status check_read_anew(const hd_session *session, uint32_t sequence, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++)
        if (is_row(session, sequence, i))
            return FAIL(session, HD_STATUS_UNSUPPORTED,
                        "token %u of sequence %u is a row of an image, which cannot be read anew; begin the sequence "
                        "anew", i, sequence);
    return HD_OK;
}

hd_status hd_session_rewind(hd_session *session, uint32_t sequence, uint32_t position) {
    hd_status status = hdl_session_find(&session);
    if (status) return status;
    status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    hdl_sequence *s = &session->sequences[sequence];
    if (position > s->position)
        return FAIL(session, HD_STATUS_INVALID_ARGUMENT, "sequence %u holds %u tokens, not %u", sequence, s->position,
                    position);
    const uint32_t rest = position % HDL_PAGE_TOKENS, first = position - rest;
    int32_t tokens[HDL_PAGE_TOKENS];
    /* A page that others hold too is not written: its tokens that stay are read into one of the sequence's own. */
    const bool leaves = rest && position < s->position && hdl_pages_are_shared(&session->pages, sequence, position);
    status = check_cut(session, sequence, position);
    if (!status && leaves) status = check_read_anew(session, sequence, first, position);
    if (status) return status;
    for (uint32_t i = 0; i < rest && leaves; i++) tokens[i] = hdl_pages_token(&session->pages, sequence, first + i);
    hdl_pages_give(&session->pages, sequence, s->position, leaves ? first : position);
    s->position = leaves ? first : position;
    if (leaves) status = hd_session_feed(session, sequence, tokens, rest);
    s->best = HDL_NO_TOKEN;
    return status;
}

hd_status hd_session_share(hd_session *session, uint32_t from, uint32_t count, uint32_t sequence) {
    hd_status status = hdl_session_find(&session);
    if (status) return status;
    status = hdl_session_check_sequence(session, from);
    if (!status) status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    hdl_sequence *s = &session->sequences[sequence];
    const uint32_t held = session->sequences[from].position, rest = count % HDL_PAGE_TOKENS, first = count - rest;
    if (s->position > 0 || count > held)
        return FAIL(session, HD_STATUS_INVALID_ARGUMENT,
                    "sequence %u holds %u tokens, and is to begin with %u of the %u that sequence %u holds", sequence,
                    s->position, count, held, from);
    int32_t tokens[HDL_PAGE_TOKENS];
    status = check_cut(session, from, count);
    if (!status) status = check_read_anew(session, from, first, count);
    if (status) return status;
    for (uint32_t i = 0; i < rest; i++) tokens[i] = hdl_pages_token(&session->pages, from, first + i);
    hdl_pages_share(&session->pages, from, first / HDL_PAGE_TOKENS, sequence);
    s->position = first;
    if (rest) status = hd_session_feed(session, sequence, tokens, rest);
    if (!status) return HD_OK;
    hdl_pages_give(&session->pages, sequence, first, 0);
    s->position = 0;
    return status;
}

hd_status hd_session_shift(hd_session *session, uint32_t sequence, uint32_t keep, uint32_t drop) {
    hd_status status = hdl_session_find(&session);
    if (status) return status;
    status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    const uint32_t held = session->sequences[sequence].position;
    if (keep >= held || drop >= held - keep)
        return FAIL(session, HD_STATUS_INVALID_ARGUMENT,
                    "sequence %u holds %u tokens: none behind %u kept and %u dropped", sequence, held, keep, drop);
    status = check_cut(session, sequence, keep);
    if (!status) status = check_read_anew(session, sequence, keep + drop, held);
    if (status) return status;
    const size_t count = held - keep - drop;
    int32_t *tokens = hdl_alloc(&session->model->allocator, count * sizeof *tokens);
    if (!tokens) return FAIL(session, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for %zu tokens", count);
    for (size_t i = 0; i < count; i++)
        tokens[i] = hdl_pages_token(&session->pages, sequence, keep + drop + (uint32_t)i);
    status = hd_session_rewind(session, sequence, keep);
    if (!status) status = hd_session_feed(session, sequence, tokens, count);
    hdl_free(&session->model->allocator, tokens, count * sizeof *tokens);
    return status;
}

hd_status hd_session_tokens(const hd_session *session, uint32_t sequence, int32_t *out_tokens, size_t *count) {
    hd_status status = hdl_session_find(&session);
    if (status || !count) return status ? status : HD_STATUS_NULL_POINTER;
    status = hdl_session_check_sequence(session, sequence);
    if (status) return status;
    const size_t held = session->sequences[sequence].position, room = *count;
    *count = held;
    if (out_tokens) hdl_pages_tokens(&session->pages, sequence, (uint32_t)(held < room ? held : room), out_tokens);
    if (!out_tokens || held <= room) return HD_OK;
    return FAIL(session, HD_STATUS_LIMIT, "sequence %u holds %zu tokens, and there is room for %zu", sequence, held,
                room);
}

hd_status hd_session_get_stats(const hd_session *session, hd_session_stats *out_stats) {
    const hd_status status = hdl_session_find(&session);
    if (status || !out_stats) return status ? status : HD_STATUS_NULL_POINTER;
    *out_stats = session->stats;
    out_stats->plans = session->stage.plan_count;
    return HD_OK;
}

hd_status hd_session_get_fit(const hd_session *session, hd_fit *out_fit) {
    const hd_status status = hdl_session_find(&session);
    if (status || !out_fit) return status ? status : HD_STATUS_NULL_POINTER;
    *out_fit = session->layout.fit;
    return HD_OK;
}

hd_device *hd_session_device(const hd_session *session) {
    return hdl_session_find(&session) ? NULL : session->layout.device;
}
