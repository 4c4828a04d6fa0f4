/* tickets.c: runs of a plan and the tickets that stand for them. */
#include "front/front.h"

/* ---- runs ---- */

/* A plan that follows the load goes on where the rule says. Inputs and states go along before the next run; outputs
 * stay. */
static void follow(hd_plan *plan, uint64_t took_ns) {
    hd_error error = { 0 };
    hdi_loaded *next = plan->alternatives[hdi_follow_next(&plan->follow, took_ns, hdi_now_ns())];
    if (next == plan->loaded) return;
    if (hdi_ports_move(plan->loaded, next, &error)) {
        plan->follow.count = 1; /* it stays where it is, for good */
        plan->alternatives[0] = plan->loaded;
        return;
    }
    plan->outputs = plan->loaded;
    plan->loaded = next;
    plan->stats.switches++;
}

static hd_status run(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    const bool timed = plan->run_keys[0] != 0;
    const uint64_t began_ns = timed ? hdi_now_ns() : 0;
    hd_status status = hdi_drive_start(plan->loaded, error);
    if (!status) status = hdi_drive_wait(plan->loaded, timeout_ns, error);
    plan->outputs = NULL;
    if (!status && timed) follow(plan, hdi_now_ns() - began_ns);
    return !status && plan->shadows ? hdi_shadows_keep_states(plan->shadows, plan->loaded, error) : status;
}

hd_status hdi_plan_run_once(hd_plan *plan, uint64_t timeout_ns, hd_error *error) {
    for (;;) {
        hd_error attempt = { 0 };
        hd_status status = run(plan, timeout_ns, &attempt);
        if (!status && plan->watched) status = hdi_watch_look(plan, &attempt);
        if (!hdi_plan_may_move(plan, status)) {
            if (status && error->status == HD_OK) *error = attempt;
            return status;
        }
        if ((status = hdi_plan_move(plan, error))) return status;
    }
}

hd_status hd_plan_run(hd_plan *plan, const hd_run_desc *desc) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    hd_error error = { 0 };
    hd_status status = hdi_plan_run_once(plan, desc ? desc->timeout_ns : 0, &error);
    return hdi_context_done(plan->context, status, &error);
}

/* ---- tickets ---- */

hd_status hdi_ticket_new(hd_context *context, hd_ticket **out_ticket, hd_error *error) {
    hd_ticket *ticket = hdi_alloc(&context->allocator, sizeof *ticket);
    if (!ticket) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a ticket");
    ticket->context = context;
    hdi_list_init(&ticket->run.link);
    const hd_status status = hd_handle_new(context->handle, hdi_kind_ticket, ticket, &ticket->held.handle);
    if (status) hdi_ticket_end(ticket);
    else *out_ticket = ticket;
    return status ? hdi_fail(error, status, "no memory for a ticket") : HD_OK;
}

hd_status hd_plan_submit(hd_plan *plan, hd_ticket **out_ticket) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_ticket) return HD_STATUS_NULL_POINTER;
    *out_ticket = NULL;
    hd_error error = { 0 };
    hd_ticket *ticket = NULL;
    hd_status status = hdi_ticket_new(plan->context, &ticket, &error);
    if (status) return hdi_context_keep(plan->context, &error);
    status = hdi_drive_start(plan->loaded, &error);
    if (hdi_plan_may_move(plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(plan, &error);
        if (!status) status = hdi_drive_start(plan->loaded, &error);
    }
    if (status) {
        hdi_ticket_end(ticket);
        return hdi_context_keep(plan->context, &error);
    }
    plan->outputs = NULL;
    ticket->plan = plan;
    hdi_run_open(plan->loaded, &ticket->run);
    hdi_context_put(plan->context, &plan->context->tickets, &ticket->held);
    *out_ticket = ticket->held.handle;
    return HD_OK;
}

/* Carries an open ticket's run on; fails where it never will be done. */
static hd_status carry_on(hd_ticket *ticket, bool wait, uint64_t timeout_ns, hd_error *error) {
    hd_status status = ticket->run.open ? hdi_drive(ticket->plan->loaded, wait, timeout_ns, error) : HD_OK;
    if (!status && ticket->run.failed)
        status = hdi_fail(
            error, ticket->run.failed,
            "the run ended before its last segment or its outputs: it failed, or its plan or stream was ended");
    return status;
}

/* The last use of a ticket by a call: who is told may end it. */
static hd_status tell(hd_ticket *ticket, bool ended, hd_status status, const hd_error *error) {
    hd_context *context = ticket->context;
    hd_ticket *const handle = ticket->held.handle;
    hd_done_fn done = NULL;
    void *user = NULL;
    hdi_context_done(context, status, error);
    hdi_mutex_lock(&context->lock);
    if (ended) {
        done = ticket->done;
        user = ticket->done_user;
        ticket->done = NULL;
    }
    hdi_mutex_unlock(&context->lock);
    if (done) done(user, handle, status);
    return status;
}

hd_status hd_ticket_poll(hd_ticket *ticket, bool *out_done) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    if (!out_done) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    hd_status status = carry_on(ticket, false, 0, &error);
    *out_done = !ticket->run.open;
    for (uint32_t d = 0; d < ticket->run.count && !status && *out_done; d++)
        status = hdi_device_poll(ticket->run.last[d].device, ticket->run.last[d].ticket, out_done, &error);
    if (!status && *out_done && ticket->stream) hdi_stream_deliver(ticket->stream->stream, ticket->number);
    if (!status && *out_done && ticket->plan && ticket->plan->watched) status = hdi_watch_look(ticket->plan, &error);
    return tell(ticket, status ? status != HD_STATUS_TIMEOUT : *out_done, status, &error);
}

hd_status hd_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    hd_error error = { 0 };
    hd_status status = carry_on(ticket, true, timeout_ns, &error);
    for (uint32_t d = 0; d < ticket->run.count && !status; d++)
        status = hdi_device_wait(ticket->run.last[d].device, ticket->run.last[d].ticket, timeout_ns, &error);
    if (ticket->plan && hdi_plan_may_move(ticket->plan, status)) {
        memset(&error, 0, sizeof error);
        status = hdi_plan_move(ticket->plan, &error);
        if (!status) status = hdi_plan_run_once(ticket->plan, timeout_ns, &error);
        hdi_mutex_lock(&ticket->context->lock); /* those who close devices look at the run's */
        if (!status) hdi_run_open(ticket->plan->loaded, &ticket->run);
        hdi_mutex_unlock(&ticket->context->lock);
    }
    if (!status && ticket->stream) hdi_stream_deliver(ticket->stream->stream, ticket->number);
    if (!status && ticket->plan && ticket->plan->watched) status = hdi_watch_look(ticket->plan, &error);
    return tell(ticket, status != HD_STATUS_TIMEOUT, status, &error);
}

hd_status hd_ticket_notify(hd_ticket *ticket, hd_done_fn done, void *user) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    hdi_mutex_lock(&ticket->context->lock);
    ticket->done = done;
    ticket->done_user = user;
    hdi_mutex_unlock(&ticket->context->lock);
    return HD_OK;
}

/* The tickets that somebody waits for; as many as there is room for. Gives their number. */
static size_t list_awaited(hd_context *context, hd_ticket **out_tickets, size_t room) {
    size_t count = 0;
    hdi_mutex_lock(&context->lock);
    for (const hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next) {
        const hd_ticket *ticket = HDI_OBJECT(at, hd_ticket, held.link);
        if (!ticket->done) continue;
        if (count < room) out_tickets[count] = ticket->held.handle;
        count++;
    }
    hdi_mutex_unlock(&context->lock);
    return count;
}

hd_status hd_context_poll(hd_context *context, size_t *out_left) {
    if (!HDI_FIND(context)) return HDI_REFUSE(context);
    const size_t count = list_awaited(context, NULL, 0);
    hd_ticket **tickets = hdi_alloc(&context->allocator, count * sizeof(hd_ticket *));
    if (count && !tickets)
        return hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory to look at %zu runs", count);
    const size_t all = list_awaited(context, tickets, count);
    for (size_t i = 0; i < HDI_MIN(all, count); i++) {
        bool done;
        /* else one that was told ended it */
        if (hd_handle_find(tickets[i], hdi_kind_ticket)) hd_ticket_poll(tickets[i], &done);
    }
    hdi_free(&context->allocator, tickets, count * sizeof(hd_ticket *));
    if (out_left) *out_left = list_awaited(context, NULL, 0);
    return HD_OK;
}

void hdi_ticket_end(hd_ticket *ticket) {
    hdi_list_remove(&ticket->run.link);
    hd_handle_end(ticket->held.handle); /* of one that was in no list yet */
    hdi_free(&ticket->context->allocator, ticket, sizeof *ticket);
}

void hd_ticket_destroy(hd_ticket *ticket) {
    if (HDI_FIND(ticket) && hdi_context_remove(ticket->context, &ticket->held)) hdi_ticket_end(ticket);
}
