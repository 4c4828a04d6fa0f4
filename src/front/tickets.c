/* tickets.c: runs of a plan, streams of them, and the tickets that stand for them (run/plan.c, run/stream.c). */
#include "front/front.h"

hd_status hd_plan_run(hd_plan *plan, const hd_run_desc *desc) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    hd_error error = { 0 };
    return hdi_context_done(plan->context, hdi_plan_run(plan, desc ? desc->timeout_ns : 0, &error), &error);
}

/* ---- tickets ---- */

/* With a handle, but in no list yet: nothing can fail behind the run's start. */
static hd_status new_ticket(hd_context *context, hd_ticket **out_ticket, hd_error *error) {
    hd_ticket *ticket = hdi_alloc(&context->allocator, sizeof *ticket);
    if (!ticket) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a ticket");
    ticket->context = context;
    hdi_list_init(&ticket->run.link);
    const hd_status status = hd_handle_new(context->holder.handle, hdi_kind_ticket, ticket, &ticket->held.handle);
    if (status) hdi_ticket_end(ticket);
    else *out_ticket = ticket;
    return status ? hdi_fail(error, status, "no memory for a ticket") : HD_OK;
}

/* The call that starts a run ends: the caller has the ticket, or nobody. */
static hd_status give_ticket(hd_context *context, hd_ticket *ticket, hd_status status, const hd_error *error,
                             hd_ticket **out_ticket) {
    if (ticket && !status && out_ticket) {
        hdi_held_put(&context->holder, &context->tickets, &ticket->held);
        *out_ticket = ticket->held.handle;
    } else if (ticket) hdi_ticket_end(ticket);
    return hdi_context_done(context, status, error);
}

hd_status hd_plan_submit(hd_plan *plan, hd_ticket **out_ticket) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_ticket) return HD_STATUS_NULL_POINTER;
    *out_ticket = NULL;
    hd_error error = { 0 };
    hd_ticket *ticket = NULL;
    hd_status status = new_ticket(plan->context, &ticket, &error);
    if (!status) status = hdi_plan_start(plan, ticket, &error);
    return give_ticket(plan->context, ticket, status, &error, out_ticket);
}

/* The last use of a ticket by a call: who is told may end it. */
static hd_status tell(hd_ticket *ticket, bool ended, hd_status status, const hd_error *error) {
    hd_context *context = ticket->context;
    hd_ticket *const handle = ticket->held.handle;
    hd_done_fn done = NULL;
    void *user = NULL;
    hdi_context_done(context, status, error);
    hdi_mutex_lock(&context->holder.lock);
    if (ended) {
        done = ticket->done;
        user = ticket->done_user;
        ticket->done = NULL;
    }
    hdi_mutex_unlock(&context->holder.lock);
    if (done) done(user, handle, status);
    return status;
}

hd_status hd_ticket_poll(hd_ticket *ticket, bool *out_done) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    if (!out_done) return HD_STATUS_NULL_POINTER;
    hd_error error = { 0 };
    const hd_status status = hdi_ticket_poll(ticket, out_done, &error);
    return tell(ticket, status ? status != HD_STATUS_TIMEOUT : *out_done, status, &error);
}

hd_status hd_ticket_wait(hd_ticket *ticket, uint64_t timeout_ns) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    hd_error error = { 0 };
    const hd_status status = hdi_ticket_wait(ticket, timeout_ns, &error);
    return tell(ticket, status != HD_STATUS_TIMEOUT, status, &error);
}

hd_status hd_ticket_notify(hd_ticket *ticket, hd_done_fn done, void *user) {
    if (!HDI_FIND(ticket)) return HDI_REFUSE(ticket);
    hdi_mutex_lock(&ticket->context->holder.lock);
    ticket->done = done;
    ticket->done_user = user;
    hdi_mutex_unlock(&ticket->context->holder.lock);
    return HD_OK;
}

/* The tickets that somebody waits for; as many as there is room for. Gives their number. */
static size_t list_awaited(hd_context *context, hd_ticket **out_tickets, size_t room) {
    size_t count = 0;
    hdi_mutex_lock(&context->holder.lock);
    for (const hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next) {
        const hd_ticket *ticket = HDI_OBJECT(at, hd_ticket, held.link);
        if (!ticket->done) continue;
        if (count < room) out_tickets[count] = ticket->held.handle;
        count++;
    }
    hdi_mutex_unlock(&context->holder.lock);
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
    if (HDI_FIND(ticket) && hdi_held_remove(&ticket->context->holder, &ticket->held)) hdi_ticket_end(ticket);
}

/* ---- streams ---- */

void hd_stream_destroy(hd_stream *stream) {
    if (!HDI_FIND(stream)) return;
    hd_context *context = stream->plan->context;
    if (!hdi_held_remove(&context->holder, &stream->held)) return;
    hdi_mutex_lock(&context->holder.lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next) {
        hd_ticket *ticket = HDI_OBJECT(at, hd_ticket, held.link);
        if (ticket->stream != stream) continue;
        if (hdi_stream_owes(stream, ticket->number)) ticket->run.failed = HD_STATUS_WRONG_STATE;
        ticket->stream = NULL;
    }
    hdi_mutex_unlock(&context->holder.lock);
    hdi_stream_end(stream);
}

hd_status hd_stream_create(hd_plan *plan, const hd_stream_desc *desc, hd_stream **out_stream) {
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_stream) return HD_STATUS_NULL_POINTER;
    *out_stream = NULL;
    hd_error error = { 0 };
    hd_stream *stream = NULL;
    hd_status status = hdi_stream_make(plan, desc ? desc->depth : 0, &stream, &error);
    if (!status && (status = HDI_ADD(plan->context, &plan->streams, stream, &error))) hdi_stream_end(stream);
    if (!status) *out_stream = stream->held.handle;
    return hdi_context_done(plan->context, status, &error);
}

/* A run's items, with the buffers themselves in place of their handles. */
static hd_status find_items(const hd_stream_input *inputs, size_t input_count, const hd_stream_output *outputs,
                            size_t output_count, hdi_stream_item *items, hd_error *error) {
    for (size_t i = 0; i < input_count; i++) {
        const hd_stream_input *in = &inputs[i];
        items[i] = (hdi_stream_item){ in->name, (void *)(uintptr_t)in->data, in->buffer, in->offset, in->bytes, true };
    }
    for (size_t i = 0; i < output_count; i++) {
        const hd_stream_output *out = &outputs[i];
        items[input_count + i] =
            (hdi_stream_item){ out->name, out->data, out->buffer, out->offset, out->bytes, false };
    }
    for (size_t i = 0; i < input_count + output_count; i++)
        if (items[i].buffer && !HDI_FIND(items[i].buffer))
            return hdi_fail(error, HD_STATUS_STALE_HANDLE, "\"%s\": the buffer was destroyed, or is none",
                            items[i].name);
    return HD_OK;
}

hd_status hd_stream_submit(hd_stream *stream, const hd_stream_input *inputs, size_t input_count,
                           const hd_stream_output *outputs, size_t output_count, hd_ticket **out_ticket) {
    if (out_ticket) *out_ticket = NULL;
    if (!HDI_FIND(stream)) return HDI_REFUSE(stream);
    if ((!inputs && input_count) || (!outputs && output_count)) return HD_STATUS_NULL_POINTER;
    hd_context *context = stream->plan->context;
    hd_error error = { 0 };
    const size_t ports = stream->plan->loaded->plan->port_count, count = input_count + output_count;
    if (input_count > ports || output_count > ports)
        return hdi_context_fail(context, HD_STATUS_NAME_TAKEN, "a run with more inputs or outputs than its plan has");
    hdi_stream_item *items = hdi_alloc(&context->allocator, count * sizeof *items);
    hd_ticket *ticket = NULL;
    hd_status status = count && !items ? hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a run")
                                       : find_items(inputs, input_count, outputs, output_count, items, &error);
    if (!status) status = new_ticket(context, &ticket, &error);
    if (!status) status = hdi_stream_submit(stream, items, count, ticket, &error);
    hdi_free(&context->allocator, items, count * sizeof *items);
    return give_ticket(context, ticket, status, &error, out_ticket);
}

hd_status hd_stream_finish(hd_stream *stream, uint64_t timeout_ns) {
    if (!HDI_FIND(stream)) return HDI_REFUSE(stream);
    hd_error error = { 0 };
    return hdi_context_done(stream->plan->context, hdi_stream_finish(stream, timeout_ns, &error), &error);
}
