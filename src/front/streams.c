/* streams.c: streams as the caller sees them (run/stream.c makes them run). A stream belongs to its plan. */
#include "front/front.h"

static void end(hd_stream *stream) {
    hd_context *context = stream->plan->context;
    if (!hdi_context_remove(context, &stream->held)) return;
    hdi_mutex_lock(&context->lock);
    for (hdi_link *at = context->tickets.next; at != &context->tickets; at = at->next) {
        hd_ticket *ticket = HDI_OBJECT(at, hd_ticket, held.link);
        if (ticket->stream != stream) continue;
        if (hdi_stream_owes(stream->stream, ticket->number)) ticket->run.failed = HD_STATUS_WRONG_STATE;
        ticket->stream = NULL;
    }
    hdi_mutex_unlock(&context->lock);
    hdi_stream_end(stream->stream);
    hdi_free(&context->allocator, stream, sizeof *stream);
}

void hdi_streams_end(hd_plan *plan) {
    while (!hdi_list_empty(&plan->streams)) end(HDI_OBJECT(plan->streams.next, hd_stream, held.link));
}

void hd_stream_destroy(hd_stream *stream) {
    if (HDI_FIND(stream)) end(stream);
}

hd_status hd_stream_create(hd_plan *plan, const hd_stream_desc *desc, hd_stream **out_stream) {
    const hd_stream_desc defaults = { 0 };
    if (!HDI_FIND(plan)) return HDI_REFUSE(plan);
    if (!out_stream) return HD_STATUS_NULL_POINTER;
    *out_stream = NULL;
    if (!desc) desc = &defaults;
    hd_context *context = plan->context;
    if (desc->depth > HDI_STREAM_MOST_DEPTH)
        return hdi_context_fail(context, HD_STATUS_LIMIT, "a stream of depth %u; it is 1 to %d", desc->depth,
                                HDI_STREAM_MOST_DEPTH);
    if (plan->loaded->plan->segment_count > 1 || plan->alternative_count > 1 || plan->desc.failover)
        return hdi_context_fail(context, HD_STATUS_UNSUPPORTED,
                                "streams take plans on one device, without fail-over and alternatives");
    hd_error error = { 0 };
    hd_stream *stream = hdi_alloc(&context->allocator, sizeof *stream);
    if (!stream) return hdi_context_fail(context, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a stream");
    hd_status status =
        hdi_stream_make(plan->loaded, desc->depth ? desc->depth : HDI_STREAM_DEPTH, &stream->stream, &error);
    if (!status && (status = HDI_ADD(context, &plan->streams, stream, &error))) hdi_stream_end(stream->stream);
    if (status) {
        hdi_free(&context->allocator, stream, sizeof *stream);
        return hdi_context_keep(context, &error);
    }
    stream->plan = plan;
    *out_stream = stream->held.handle;
    return HD_OK;
}

static hdi_stream_item item_of_input(const hd_stream_input *in) {
    union { const void *read; void *any; } data = { .read = in->data };
    return (hdi_stream_item){ in->name, data.any, in->buffer, in->offset, in->bytes, true };
}

static hdi_stream_item item_of_output(const hd_stream_output *out) {
    return (hdi_stream_item){ out->name, out->data, out->buffer, out->offset, out->bytes, false };
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
    hd_status status = count && !items ? hdi_fail(&error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a run") : HD_OK;
    for (size_t i = 0; i < count && items && !status; i++) {
        items[i] = i < input_count ? item_of_input(&inputs[i]) : item_of_output(&outputs[i - input_count]);
        if (items[i].buffer && !HDI_FIND(items[i].buffer))
            status =
                hdi_fail(&error, HD_STATUS_STALE_HANDLE, "\"%s\": the buffer was destroyed, or is none", items[i].name);
    }
    if (!status) status = hdi_ticket_new(context, &ticket, &error);
    if (!status) status = hdi_stream_submit(stream->stream, items, count, &ticket->run, &ticket->number, &error);
    hdi_free(&context->allocator, items, count * sizeof *items);
    if (status || !out_ticket) {
        if (ticket) hdi_ticket_end(ticket);
        return status ? hdi_context_keep(context, &error) : HD_OK;
    }
    ticket->plan = stream->plan;
    ticket->stream = stream;
    hdi_context_put(context, &context->tickets, &ticket->held);
    *out_ticket = ticket->held.handle;
    return HD_OK;
}

hd_status hd_stream_finish(hd_stream *stream, uint64_t timeout_ns) {
    if (!HDI_FIND(stream)) return HDI_REFUSE(stream);
    hd_error error = { 0 };
    const hd_status status = hdi_stream_finish(stream->stream, timeout_ns, &error);
    return status ? hdi_context_keep(stream->plan->context, &error) : HD_OK;
}
