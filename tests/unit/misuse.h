/* misuse.h: every public call that takes an object, as a row: what it takes, and a call of it that is right. */
#ifndef MISUSE_H
#define MISUSE_H

#include <heddle_llm.h>
#include <stdio.h>
#include <string.h>

/* One of each; a row takes what it needs from here. */
typedef struct objects {
    hd_context *context;
    hd_device  *device;
    hd_buffer  *buffer;
    hd_program *program;
    hd_plan    *plan;
    hd_kernel  *kernel;
    hd_ticket  *ticket;
    hd_stream  *stream;
    hd_model   *model;
    hd_session *session;
    hd_value    x, w, i, s; /* [2,4] and [4,4] f32, [2] i32, a state [4,4]: of the program */
} objects;

/* For calls that give something else than a status: what stands for failure. */
static inline hd_status given(bool something) { return something ? HD_OK : HD_STATUS_INTERNAL; }

static char text_room[1 << 16];
static float float_room[64];
static const char tiny_program[] = "heddle 1\nv1 = input f32[4] \"x\"\noutput v1 \"y\"\n";
static size_t count_room, needed_room;
static hd_device_info device_infos[16];
static hd_backend_info backend_infos[16];
static hd_fact facts_room[8];
static inline size_t *room_for(size_t count) {
    count_room = count;
    return &count_room;
}
static inline hd_status cut_is_fine(hd_status status) { return status == HD_STATUS_LIMIT ? HD_OK : status; }

/* X(call, the objects it takes, the call) */
#define OBJECT_CALLS(X) \
    X(hd_context_put_error, (context), hd_context_put_error(o->context, &(hd_error){ 0 })) \
    X(hd_devices, (context), cut_is_fine(hd_devices(o->context, device_infos, room_for(16)))) \
    X(hd_backends, (context), cut_is_fine(hd_backends(o->context, backend_infos, room_for(16)))) \
    X(hd_device_caps_text, (context), hd_device_caps_text(o->context, "cpu", text_room, sizeof text_room, &needed_room)) \
    X(hd_program_parse, (context), parse(o)) \
    X(hd_program_create, (context), create_program(o)) \
    X(hd_kernel_create, (context), create_kernel(o)) \
    X(hd_device_open, (context), open_device(o)) \
    X(hd_model_describe, (context), hd_model_describe(o->context, MODEL, &(hd_model_info){ 0 })) \
    X(hd_model_open, (context), open_model(o)) \
    X(hd_explain, (context, program), explain(o)) \
    X(hd_device_get_info, (device), given(hd_device_get_info(o->device))) \
    X(hd_device_selection, (device), given(hd_device_selection(o->device)[0])) \
    X(hd_device_context, (device), given(hd_device_context(o->device))) \
    X(hd_device_facts, (device), cut_is_fine(hd_device_facts(o->device, facts_room, room_for(8)))) \
    X(hd_device_predict, (device, program), hd_device_predict(o->device, o->program, NULL, NULL)) \
    X(hd_device_get_stats, (device), hd_device_get_stats(o->device, &(hd_device_stats){ 0 })) \
    X(hd_device_memory, (device), cut_is_fine(hd_device_memory(o->device, NULL, room_for(0)))) \
    X(hd_device_heaps, (device), cut_is_fine(hd_device_heaps(o->device, NULL, room_for(0)))) \
    X(hd_context_metrics, (context), hd_context_metrics(o->context, text_room, sizeof text_room, &needed_room)) \
    X(hd_device_wait, (device), hd_device_wait(o->device, 0)) \
    X(hd_device_trace, (device), hd_device_trace(o->device, NULL, NULL)) \
    X(hd_device_calibrate, (device), hd_device_calibrate(o->device, &(hd_calibrate_desc){ .kinds = HD_FACT_VERDICT, .forget = 1 })) \
    X(hd_buffer_create, (device), create_buffer(o)) \
    X(hd_buffer_write, (buffer), hd_buffer_write(o->buffer, 0, float_room, 16)) \
    X(hd_buffer_hash, (buffer), hd_buffer_hash(o->buffer, 0, 4, (unsigned char[32]){ 0 })) \
    X(hd_buffer_read, (buffer), hd_buffer_read(o->buffer, 0, float_room, 16)) \
    X(hd_buffer_bytes, (buffer), given(hd_buffer_bytes(o->buffer))) \
    X(hd_buffer_map, (buffer), hd_buffer_map(o->buffer, &(void *){ NULL })) \
    X(hd_program_check, (program), hd_program_check(o->program)) \
    X(hd_program_print, (program), hd_program_print(o->program, text_room, sizeof text_room, &needed_room)) \
    X(hd_program_hash, (program), given(hd_program_hash(o->program))) \
    X(hd_program_port_count, (program), given(hd_program_port_count(o->program))) \
    X(hd_program_port, (program), given(hd_program_port(o->program, 0).kind)) \
    X(hd_value_describe, (program), hd_value_describe(o->program, o->x, NULL, NULL)) \
    X(hd_kernel_get_info, (kernel), given(hd_kernel_get_info(o->kernel))) \
    X(hd_plan_create, (device, program), create_plan(o)) \
    X(hd_plan_estimate, (device, program), hd_plan_estimate(o->device, o->program, NULL, &(hd_plan_memory){ 0 })) \
    X(hd_plan_estimate_each, (device, program), hd_plan_estimate_each(o->device, o->program, NULL, &(hd_plan_memory){ 0 })) \
    X(hd_plan_get_memory, (plan), hd_plan_get_memory(o->plan, &(hd_plan_memory){ 0 })) \
    X(hd_plan_write, (plan), hd_plan_write(o->plan, "x", float_room, 32)) \
    X(hd_plan_bind, (plan, buffer), hd_plan_bind(o->plan, "w", o->buffer, 0)) \
    X(hd_plan_run, (plan), hd_plan_run(o->plan, NULL)) \
    X(hd_plan_read, (plan), hd_plan_read(o->plan, "y", float_room, 32)) \
    X(hd_plan_submit, (plan), submit(o)) \
    X(hd_plan_explain, (plan), hd_plan_explain(o->plan, text_room, sizeof text_room, &needed_room)) \
    X(hd_plan_save, (plan), hd_plan_save(o->plan, text_room, sizeof text_room, &needed_room)) \
    X(hd_plan_load, (device), load(o)) \
    X(hd_plan_get_stats, (plan), hd_plan_get_stats(o->plan, &(hd_plan_stats){ 0 })) \
    X(hd_plan_device, (plan), given(hd_plan_device(o->plan))) \
    X(hd_plan_timings, (plan), cut_is_fine(hd_plan_timings(o->plan, NULL, room_for(0)))) \
    X(hd_ticket_poll, (ticket), hd_ticket_poll(o->ticket, &(bool){ false })) \
    X(hd_ticket_notify, (ticket), hd_ticket_notify(o->ticket, NULL, NULL)) \
    X(hd_context_poll, (context), hd_context_poll(o->context, &needed_room)) \
    X(hd_ticket_wait, (ticket), hd_ticket_wait(o->ticket, 0)) \
    X(hd_stream_create, (plan), create_stream(o)) \
    X(hd_stream_submit, (stream), hd_stream_submit(o->stream, &(hd_stream_input){ "x", float_room, NULL, 0, 32 }, 1, NULL, 0, NULL)) \
    X(hd_stream_finish, (stream), hd_stream_finish(o->stream, 0)) \
    X(hd_model_get_info, (model), hd_model_get_info(o->model, &(hd_model_info){ 0 })) \
    X(hd_model_tokenize, (model), cut_is_fine(hd_model_tokenize(o->model, "a", 1, 0, NULL, room_for(0)))) \
    X(hd_model_token_text, (model), given(hd_model_token_text(o->model, 40, &needed_room))) \
    X(hd_model_render_chat, (model), \
      cut_is_fine(hd_model_render_chat(o->model, &(hd_chat_form){ .template_name = "chatml" }, &(hd_message){ .role = "user", .content = "a" }, 1, NULL, 0, &needed_room))) \
    X(hd_model_chat_tokens, (model), \
      cut_is_fine(hd_model_chat_tokens(o->model, &(hd_chat_form){ .template_name = "chatml" }, &(hd_message){ .role = "user", .content = "a" }, 1, NULL, room_for(0)))) \
    X(hd_model_fit, (model, device), hd_model_fit(o->model, &(hd_session_desc){ .device = o->device, .context = 32 }, &(hd_fit){ 0 })) \
    X(hd_model_shared_bytes, (model), hd_model_shared_bytes(o->model, o->model, &(uint64_t){ 0 })) \
    X(hd_session_create, (model), create_session(o)) \
    X(hd_session_feed, (session), hd_session_feed(o->session, 0, (int32_t[]){ 40 }, 1)) \
    X(hd_session_step, (session), hd_session_step(o->session, &(hd_step){ 0, 40 }, 1)) \
    X(hd_session_best, (session), hd_session_best(o->session, 0, &(int32_t){ 0 })) \
    X(hd_session_logits, (session), hd_session_logits(o->session, 0, &(const float *){ NULL })) \
    X(hd_session_position, (session), given(hd_session_position(o->session, 0))) \
    X(hd_generate, (session), hd_generate(o->session, &(hd_generate_desc){ .max_tokens = 1 }, NULL, NULL)) \
    X(hd_session_get_stats, (session), hd_session_get_stats(o->session, &(hd_session_stats){ 0 })) \
    X(hd_session_get_fit, (session), hd_session_get_fit(o->session, &(hd_fit){ 0 })) \
    X(hd_session_device, (session), given(hd_session_device(o->session))) \
    X(hd_session_rewind, (session), hd_session_rewind(o->session, 0, 0))

/* X(builder, the call): each takes the program and its values. */
#define BUILDER_CALLS(X) \
    X(hd_input, hd_input(p, name, HD_F32, HD_SHAPE(2))) X(hd_state, hd_state(p, name, HD_F32, HD_SHAPE(2))) \
    X(hd_add, hd_add(p, x, x)) X(hd_sub, hd_sub(p, x, x)) X(hd_mul, hd_mul(p, x, x)) X(hd_div, hd_div(p, x, x)) \
    X(hd_maximum, hd_maximum(p, x, x)) X(hd_minimum, hd_minimum(p, x, x)) X(hd_less, hd_less(p, x, x)) \
    X(hd_equal, hd_equal(p, x, x)) X(hd_bit_and, hd_bit_and(p, i, i)) X(hd_bit_or, hd_bit_or(p, i, i)) \
    X(hd_bit_xor, hd_bit_xor(p, i, i)) X(hd_shift_left, hd_shift_left(p, i, i)) \
    X(hd_round_random, hd_round_random(p, x, hd_cast(p, x, HD_I32))) \
    X(hd_shift_right_logical, hd_shift_right_logical(p, i, i)) X(hd_shift_right_arithmetic, hd_shift_right_arithmetic(p, i, i)) \
    X(hd_scale, hd_scale(p, x, 2, 0)) X(hd_neg, hd_neg(p, x)) X(hd_abs, hd_abs(p, x)) X(hd_sign, hd_sign(p, x)) \
    X(hd_round, hd_round(p, x)) X(hd_floor, hd_floor(p, x)) X(hd_ceil, hd_ceil(p, x)) X(hd_sqrt, hd_sqrt(p, x)) \
    X(hd_exp, hd_exp(p, x)) X(hd_log, hd_log(p, x)) X(hd_sin, hd_sin(p, x)) X(hd_cos, hd_cos(p, x)) X(hd_relu, hd_relu(p, x)) \
    X(hd_leaky_relu, hd_leaky_relu(p, x, 0.1f)) X(hd_elu, hd_elu(p, x, 1)) X(hd_sigmoid, hd_sigmoid(p, x)) \
    X(hd_tanh, hd_tanh(p, x)) X(hd_silu, hd_silu(p, x)) X(hd_gelu, hd_gelu(p, x)) X(hd_gelu_tanh, hd_gelu_tanh(p, x)) \
    X(hd_erf, hd_erf(p, x)) X(hd_clip, hd_clip(p, x, 0, 1)) X(hd_where, hd_where(p, hd_cast(p, x, HD_U8), x, x)) \
    X(hd_cast, hd_cast(p, x, HD_F16)) X(hd_copy, hd_copy(p, x)) X(hd_permute, hd_permute(p, x, (uint32_t[]){ 1, 0 }, 2)) \
    X(hd_transpose, hd_transpose(p, x)) X(hd_reshape, hd_reshape(p, x, HD_SHAPE(8))) \
    X(hd_concat, hd_concat(p, (hd_value[]){ x, x }, 2, 0)) \
    X(hd_slice, hd_slice(p, x, (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 2 }, 2)) \
    X(hd_pad, hd_pad(p, x, (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 2 }, 2, 0)) X(hd_windows, hd_windows(p, x, 1, 2, 1, 1)) \
    X(hd_windows_sum, hd_windows_sum(p, x, 0, 9, 1, 1)) X(hd_conv, hd_conv(p, hd_reshape(p, x, HD_SHAPE(1, 2, 4)), hd_reshape(p, x, HD_SHAPE(2, 2, 2)), 0, NULL)) \
    X(hd_conv_transpose, hd_conv_transpose(p, hd_reshape(p, x, HD_SHAPE(1, 2, 4)), hd_reshape(p, x, HD_SHAPE(2, 2, 2)), 0, NULL)) \
    X(hd_max_pool, hd_max_pool(p, hd_reshape(p, x, HD_SHAPE(1, 2, 4)), NULL)) X(hd_mean_pool, hd_mean_pool(p, hd_reshape(p, x, HD_SHAPE(1, 2, 4)), NULL)) \
    X(hd_resize, hd_resize(p, x, (const int64_t[]){ 3 }, 1, HD_RESIZE_LINEAR)) X(hd_sum, hd_sum(p, x, 1)) X(hd_prod, hd_prod(p, x, 1)) \
    X(hd_mean, hd_mean(p, x, 1)) X(hd_max, hd_max(p, x, HD_ALL_AXES)) X(hd_min, hd_min(p, x, 1)) X(hd_argmax, hd_argmax(p, x, 1)) \
    X(hd_dot, hd_dot(p, x, x, 1)) X(hd_cumsum, hd_cumsum(p, x, 1, 0)) X(hd_top_k, hd_top_k(p, x, 2)) X(hd_hash, hd_hash(p, x)) \
    X(hd_softmax, hd_softmax(p, x, 1)) X(hd_log_softmax, hd_log_softmax(p, x, 1)) X(hd_rms_norm, hd_rms_norm(p, w, 0, 1e-5f)) \
    X(hd_layer_norm, hd_layer_norm(p, w, 0, 0, 1e-5f)) X(hd_matmul, hd_matmul(p, x, w)) \
    X(hd_matmul_with, hd_matmul_with(p, x, w, HD_MATMUL_PLAIN)) X(hd_gather, hd_gather(p, w, i)) \
    X(hd_take_along, hd_take_along(p, x, hd_reshape(p, i, HD_SHAPE(2, 1)))) X(hd_scatter_add, hd_scatter_add(p, w, i, x)) \
    X(hd_scatter_mul, hd_scatter_mul(p, w, i, x)) X(hd_scatter_max, hd_scatter_max(p, w, i, x)) \
    X(hd_scatter_min, hd_scatter_min(p, w, i, x)) X(hd_rope, hd_rope(p, hd_reshape(p, x, HD_SHAPE(2, 1, 4)), i, NULL)) \
    X(hd_cross_entropy, hd_cross_entropy(p, x, i)) X(hd_assign, hd_assign(p, s, w))
#endif
