/* test_misuse.c: every public call with objects that are NULL, ended, of another kind, never given out or of another context:
 * an error by its name, and never a crash. The rows are in misuse.h; the address sanitizer watches. */
#define MODEL HEDDLE_TESTS_DIR "/../models/demo.gguf"
#include "unit/misuse.h"
#include "unit/spirv_fixtures.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static objects good, dead;
static uint32_t calls;

static void must(hd_status status) {
    if (status) fail_msg("%s: %s", hd_status_name(status), hd_context_error(good.context));
}

/* ---- calls of several lines ---- */

static hd_status parse(objects *o) {
    hd_program *made = NULL;
    const hd_status status = hd_program_parse(o->context, tiny_program, sizeof tiny_program - 1, &made);
    hd_program_destroy(made);
    return status;
}
static hd_status create_program(objects *o) {
    hd_program *made = hd_program_create(o->context);
    hd_program_destroy(made);
    return given(made);
}
static hd_status create_kernel(objects *o) {
    hd_kernel *made = NULL;
    const hd_kernel_desc desc = { .spirv = fixture_add, .spirv_bytes = sizeof fixture_add };
    const hd_status status = hd_kernel_create(o->context, &desc, &made);
    hd_kernel_destroy(made);
    return status;
}
static hd_status open_device(objects *o) {
    hd_device *made = NULL;
    const hd_status status = hd_device_open(o->context, &(hd_device_desc){ .id = "cpu" }, &made);
    hd_device_close(made);
    return status;
}
static hd_status open_model(objects *o) {
    hd_model *made = NULL;
    const hd_status status = hd_model_open(o->context, MODEL, NULL, &made);
    hd_model_close(made);
    return status;
}
static hd_status explain(objects *o) {
    static char caps[1 << 14];
    must(hd_device_caps_text(good.context, "cpu", caps, sizeof caps, NULL));
    return hd_explain(o->context, o->program, caps, NULL, text_room, sizeof text_room, &needed_room);
}
static hd_status create_buffer(objects *o) {
    hd_buffer *made = NULL;
    const hd_status status = hd_buffer_create(o->device, &(hd_buffer_desc){ .bytes = 64 }, &made);
    hd_buffer_destroy(made);
    return status;
}
static hd_status create_plan(objects *o) {
    hd_plan *made = NULL;
    const hd_status status = hd_plan_create(o->device, o->program, NULL, &made);
    hd_plan_destroy(made);
    return status;
}
static hd_status submit(objects *o) {
    hd_ticket *made = NULL;
    hd_status status = hd_plan_submit(o->plan, &made);
    if (!status) status = hd_ticket_wait(made, 0);
    hd_ticket_destroy(made);
    return status;
}
static hd_status load(objects *o) {
    static char saved[1 << 15];
    hd_plan *made = NULL;
    must(hd_plan_save(good.plan, saved, sizeof saved, &needed_room));
    const hd_status status = hd_plan_load(o->device, saved, strlen(saved), NULL, &made);
    hd_plan_destroy(made);
    return status;
}
static hd_status create_stream(objects *o) {
    hd_stream *made = NULL;
    const hd_status status = hd_stream_create(o->plan, NULL, &made);
    hd_stream_destroy(made);
    return status;
}
static hd_status create_session(objects *o) {
    hd_session *made = NULL;
    const hd_status status = hd_session_create(o->model, &(hd_session_desc){ .device = good.device, .context = 32 }, &made);
    hd_session_destroy(made);
    return status;
}

#define CALL(name, takes, call) static hd_status call_##name(objects *o) { return call; }
OBJECT_CALLS(CALL)
#define BUILD(builder, call) \
    static hd_value call_##builder(hd_program *p, hd_value x, hd_value w, hd_value i, hd_value s, const char *name) { \
        (void)x, (void)w, (void)i, (void)s, (void)name; \
        return call; \
    }
BUILDER_CALLS(BUILD)

typedef struct object_row {
    const char *name, *takes;
    hd_status (*call)(objects *o);
} object_row;
#define ROW(name, takes, call) { #name, #takes, call_##name },
static const object_row object_rows[] = { OBJECT_CALLS(ROW) };
/* Calls that prepare something with `good` first. */
static bool stands_on_good(const object_row *row) {
    return row->call == call_hd_explain || row->call == call_hd_plan_load || row->call == call_hd_session_create;
}
typedef struct builder_row {
    const char *name;
    hd_value (*call)(hd_program *p, hd_value x, hd_value w, hd_value i, hd_value s, const char *name);
} builder_row;
#define BUILDER_ROW(builder, call) { #builder, call_##builder },
static const builder_row builder_rows[] = { BUILDER_CALLS(BUILDER_ROW) };

/* ---- one of each, and one of each that was ended ---- */

static void make(objects *o, hd_context *context) {
    const hd_kernel_desc kernel = { .spirv = fixture_add, .spirv_bytes = sizeof fixture_add };
    o->context = context;
    must(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &o->device));
    must(hd_buffer_create(o->device, &(hd_buffer_desc){ .bytes = 64, .label = "mine" }, &o->buffer));
    must(hd_kernel_create(context, &kernel, &o->kernel));
    o->program = hd_program_create(context);
    o->x = hd_input(o->program, "x", HD_F32, HD_SHAPE(2, 4));
    o->w = hd_input(o->program, "w", HD_F32, HD_SHAPE(4, 4));
    o->i = hd_input(o->program, "i", HD_I32, HD_SHAPE(2));
    o->s = hd_state(o->program, "s", HD_F32, HD_SHAPE(4, 4));
    hd_output(o->program, "y", hd_matmul(o->program, o->x, o->w));
    must(hd_plan_create(o->device, o->program, &(hd_plan_desc){ .timestamps = 1 }, &o->plan));
    must(hd_plan_write(o->plan, "x", float_room, 32));
    must(hd_plan_write(o->plan, "w", float_room, 64));
    must(hd_plan_write(o->plan, "i", float_room, 8));
    must(hd_plan_run(o->plan, NULL));
    must(hd_plan_submit(o->plan, &o->ticket));
    must(hd_ticket_wait(o->ticket, 0));
    must(hd_stream_create(o->plan, NULL, &o->stream));
    must(hd_model_open(context, MODEL, NULL, &o->model));
    must(hd_session_create(o->model, &(hd_session_desc){ .device = o->device, .context = 32 }, &o->session));
    must(hd_session_feed(o->session, 0, (int32_t[]){ 40 }, 1));
}

static void end(objects *o) {
    hd_session_destroy(o->session);
    hd_model_close(o->model);
    hd_stream_destroy(o->stream);
    hd_ticket_destroy(o->ticket);
    hd_plan_destroy(o->plan);
    hd_program_destroy(o->program);
    hd_kernel_destroy(o->kernel);
    hd_buffer_destroy(o->buffer);
    hd_device_close(o->device);
}

static int make_all(void **state) {
    const hd_context_desc desc = { .backend = "cpu", .cache_dir = "", .cpu_threads = 1, .verify = -1 };
    hd_context *other;
    (void)state;
    if (hd_context_create(&desc, &good.context) || hd_context_create(&desc, &other)) return -1;
    make(&good, good.context);
    make(&dead, other);
    end(&dead);
    hd_context_destroy(other);
    return 0;
}

static int end_all(void **state) {
    (void)state;
    end(&good);
    const uint64_t live = hd_context_live_objects(good.context);
    hd_context_destroy(good.context);
    print_message("%u calls\n", calls);
    return live == 0 && calls >= 400 ? 0 : -1;
}

/* ---- the table ---- */

static const struct { const char *kind; size_t at; } kinds[] = {
    { "context", offsetof(objects, context) }, { "device", offsetof(objects, device) }, { "buffer", offsetof(objects, buffer) },
    { "program", offsetof(objects, program) }, { "plan", offsetof(objects, plan) },     { "kernel", offsetof(objects, kernel) },
    { "ticket", offsetof(objects, ticket) },   { "stream", offsetof(objects, stream) }, { "model", offsetof(objects, model) },
    { "session", offsetof(objects, session) },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
typedef enum wrong { NOTHING, ENDED, ANOTHER_KIND, NEVER_GIVEN, WRONGS } wrong;
static const char *const wrongs[] = { "NULL", "ended", "of another kind", "never given out" };

static void put(objects *o, size_t kind, wrong how) {
    void *object = NULL;
    if (how == ENDED) memcpy(&object, (char *)&dead + kinds[kind].at, sizeof object);
    if (how == ANOTHER_KIND) memcpy(&object, (char *)&good + kinds[(kind + 1) % KINDS].at, sizeof object);
    if (how == NEVER_GIVEN) object = (void *)(uintptr_t)0x7ffff3;
    memcpy((char *)o + kinds[kind].at, &object, sizeof object);
}

static void all_is_well_with_good_objects(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof object_rows / sizeof *object_rows; r++) {
        objects o = good;
        const hd_status status = object_rows[r].call(&o);
        if (status) fail_msg("%s: %s", object_rows[r].name, hd_context_error(good.context));
    }
    hd_program *p = hd_program_create(good.context);
    const hd_value x = hd_input(p, "x", HD_F32, HD_SHAPE(2, 4)), w = hd_input(p, "w", HD_F32, HD_SHAPE(4, 4));
    const hd_value i = hd_input(p, "i", HD_I32, HD_SHAPE(2)), s = hd_state(p, "s", HD_F32, HD_SHAPE(4, 4));
    for (size_t r = 0; r < sizeof builder_rows / sizeof *builder_rows; r++)
        hd_output(p, builder_rows[r].name, builder_rows[r].call(p, x, w, i, s, builder_rows[r].name + 3));
    must(hd_program_check(p));
    hd_program_destroy(p);
}

static void bad_objects_are_errors_by_name(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof object_rows / sizeof *object_rows; r++)
        for (size_t kind = 0; kind < KINDS; kind++)
            for (wrong how = NOTHING; how < WRONGS && strstr(object_rows[r].takes, kinds[kind].kind); how++, calls++) {
                objects o = good;
                put(&o, kind, how);
                const hd_status status = object_rows[r].call(&o), wanted = how == NOTHING ? HD_STATUS_NULL_POINTER : HD_STATUS_STALE_HANDLE;
                const char *text = hd_context_error(good.context);
                const bool session_device = strcmp(object_rows[r].name, "hd_model_fit") == 0 && kinds[kind].at == offsetof(objects, device);
                if (session_device ? how != NOTHING && status != HD_STATUS_INVALID_ARGUMENT : status != HD_STATUS_INTERNAL && status != wanted)
                    fail_msg("%s, its %s %s: %s", object_rows[r].name, kinds[kind].kind, wrongs[how], hd_status_name(status));
                if (how == ANOTHER_KIND && !session_device && status != HD_STATUS_INTERNAL && !strstr(text, "is given where")) /* told where it belongs */
                    fail_msg("%s, its %s %s: \"%s\"", object_rows[r].name, kinds[kind].kind, wrongs[how], text);
            }
}

static void bad_programs_and_values_are_refused(void **state) {
    (void)state;
    hd_program *other = hd_program_create(good.context);
    const hd_value foreign = hd_input(other, "x", HD_F32, HD_SHAPE(2, 4));
    for (size_t r = 0; r < sizeof builder_rows / sizeof *builder_rows; r++) {
        for (wrong how = NOTHING; how < WRONGS; how++, calls++) {
            objects o = good;
            put(&o, 3, how);
            assert_int_equal(builder_rows[r].call(o.program, o.x, o.w, o.i, o.s, "other"), 0);
        }
        if (r < 2) continue; /* inputs and states take no values */
        hd_program *p = hd_program_create(good.context);
        assert_int_equal(builder_rows[r].call(p, foreign, foreign, foreign, foreign, "other"), 0);
        (void)hd_context_error(good.context);
        assert_int_equal(hd_program_check(p), HD_STATUS_UNKNOWN_VALUE);
        assert_non_null(strstr(hd_context_error(good.context), "of another program"));
        hd_program_destroy(p);
        calls++;
    }
    assert_int_equal(hd_value_describe(good.program, foreign, NULL, NULL), HD_STATUS_UNKNOWN_VALUE);
    hd_program_destroy(other);
}

static void ended_objects_are_ended_once(void **state) {
    (void)state;
    const uint64_t live = hd_context_live_objects(good.context);
    end(&dead);
    for (size_t kind = 0; kind < KINDS; kind++)
        for (wrong how = NOTHING; how < WRONGS; how++, calls += KINDS) {
            objects o;
            for (size_t k = 0; k < KINDS; k++) put(&o, k, how);
            end(&o);
            hd_context_destroy(o.context);
        }
    assert_int_equal(hd_context_live_objects(good.context), live);
    assert_string_equal(hd_context_error(dead.context), "");
    hd_error error = { HD_STATUS_INTERNAL, 0, "", "", "", "" };
    hd_context_take_error(dead.context, &error);
    assert_int_equal(error.status, HD_OK);
    hd_context_take_error(good.context, NULL);
}

/* ---- objects that do not belong together ---- */

static void contexts_do_not_mix(void **state) {
    (void)state;
    hd_context *context;
    objects other;
    hd_plan *plan = NULL;
    hd_session *session = NULL;
    must(hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "", .cpu_threads = 1 }, &context));
    make(&other, context);
    assert_int_equal(hd_plan_create(good.device, other.program, NULL, &plan), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "of another context"));
    assert_int_equal(hd_plan_create(good.device, good.program, &(hd_plan_desc){ .beside = &other.device, .beside_count = 1 }, &plan),
                     HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "of another context"));
    assert_int_equal(hd_plan_create(good.device, good.program, &(hd_plan_desc){ .beside = &dead.device, .beside_count = 1 }, &plan),
                     HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "was closed"));
    assert_int_equal(hd_plan_bind(good.plan, "w", other.buffer, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "buffer \"mine\""));
    hd_program *p = hd_program_create(good.context);
    assert_int_equal(hd_dispatch(p, other.kernel, &(hd_dispatch_desc){ 0 }), 0);
    assert_int_equal(hd_program_check(p), HD_STATUS_INVALID_ARGUMENT);
    hd_program_destroy(p);
    p = hd_program_create(good.context);
    assert_int_equal(hd_dispatch(p, dead.kernel, &(hd_dispatch_desc){ 0 }), 0);
    assert_int_equal(hd_program_check(p), HD_STATUS_STALE_HANDLE);
    hd_program_destroy(p);
    (void)hd_context_error(good.context);
    assert_int_equal(hd_session_create(good.model, &(hd_session_desc){ .device = other.device }, &session), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "of another context"));
    const hd_stream_input from[] = { { "x", NULL, other.buffer, 0, 32 }, { "x", NULL, dead.buffer, 0, 32 } };
    assert_int_equal(hd_stream_submit(good.stream, &from[0], 1, NULL, 0, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_stream_submit(good.stream, &from[1], 1, NULL, 0, NULL), HD_STATUS_STALE_HANDLE);
    hd_context_destroy(context); /* before its model and session: these are known to be dead, and can be ended */
    assert_int_equal(hd_session_feed(other.session, 0, (int32_t[]){ 40 }, 1), HD_STATUS_STALE_HANDLE);
    assert_int_equal(hd_model_get_info(other.model, &(hd_model_info){ 0 }), HD_STATUS_STALE_HANDLE);
    end(&other);
    (void)hd_context_error(good.context);
    calls += 11;
}

/* What a session stands on ends before it. */
static void sessions_outlive_nothing(void **state) {
    (void)state;
    hd_device *device;
    hd_model *model;
    hd_session *session;
    for (int model_first = 0; model_first < 2; model_first++) {
        must(hd_device_open(good.context, &(hd_device_desc){ .id = "cpu" }, &device));
        must(hd_model_open(good.context, MODEL, NULL, &model));
        must(hd_session_create(model, &(hd_session_desc){ .device = device, .context = 32 }, &session));
        if (model_first) hd_model_close(model);
        else hd_device_close(device);
        assert_int_equal(hd_session_feed(session, 0, (int32_t[]){ 40 }, 1), HD_STATUS_STALE_HANDLE);
        assert_non_null(strstr(hd_context_error(good.context), model_first ? "a model is used that was ended" : "whose device was closed"));
        hd_session_destroy(session);
        hd_model_close(model);
        hd_device_close(device);
    }
}

static void buffers_end_before_plans(void **state) {
    (void)state;
    hd_plan *plan;
    hd_buffer *w, *y;
    must(hd_plan_create(good.device, good.program, NULL, &plan));
    must(hd_plan_write(plan, "x", float_room, 32));
    must(hd_plan_write(plan, "i", float_room, 8));
    must(hd_plan_write(plan, "w", float_room, 64));
    must(hd_buffer_create(good.device, &(hd_buffer_desc){ .bytes = 64 }, &w));
    must(hd_buffer_create(good.device, &(hd_buffer_desc){ .bytes = 32, .use = HD_BUFFER_READBACK }, &y));
    must(hd_plan_bind(plan, "w", w, 0));
    must(hd_plan_bind(plan, "y", y, 0));
    must(hd_plan_run(plan, NULL));
    hd_buffer_destroy(w);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    assert_non_null(strstr(hd_context_error(good.context), "\"w\" was bound to a buffer that was destroyed"));
    must(hd_plan_write(plan, "w", float_room, 64));
    must(hd_plan_run(plan, NULL));
    hd_buffer_destroy(y);
    assert_int_equal(hd_plan_run(plan, NULL), HD_STATUS_WRONG_STATE);
    (void)hd_context_error(good.context);
    must(hd_buffer_create(good.device, &(hd_buffer_desc){ .bytes = 32 }, &y));
    must(hd_plan_bind(plan, "y", y, 0));
    must(hd_plan_run(plan, NULL));
    hd_plan_destroy(plan);
    hd_buffer_destroy(y);
}

static void a_buffer_is_for_what_it_is_for(void **state) {
    (void)state;
    hd_buffer *up, *back;
    must(hd_buffer_create(good.device, &(hd_buffer_desc){ .bytes = 64, .use = HD_BUFFER_UPLOAD, .label = "in" }, &up));
    must(hd_buffer_create(good.device, &(hd_buffer_desc){ .bytes = 64, .use = HD_BUFFER_READBACK, .label = "out" }, &back));
    assert_int_equal(hd_plan_bind(good.plan, "y", up, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "buffer \"in\" is for uploads"));
    assert_int_equal(hd_plan_bind(good.plan, "w", back, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(hd_context_error(good.context), "buffer \"out\" is for reading back"));
    assert_int_equal(hd_plan_bind(good.plan, "s", back, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_plan_bind(good.plan, "s", up, 0), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_stream_submit(good.stream, &(hd_stream_input){ "x", NULL, back, 0, 32 }, 1, NULL, 0, NULL), HD_STATUS_INVALID_ARGUMENT);
    assert_int_equal(hd_stream_submit(good.stream, NULL, 0, &(hd_stream_output){ "y", NULL, up, 0, 32 }, 1, NULL), HD_STATUS_INVALID_ARGUMENT);
    (void)hd_context_error(good.context);
    assert_int_equal(hd_buffer_read(up, 60, float_room, 8), HD_STATUS_LIMIT);
    assert_non_null(strstr(hd_context_error(good.context), "bytes 60+8 of buffer \"in\", which has 64"));
    assert_int_equal(hd_plan_bind(good.plan, "w", up, 256), HD_STATUS_LIMIT);
    assert_non_null(strstr(hd_context_error(good.context), "\"w\" needs bytes 256+64 of buffer \"in\""));
    hd_buffer_destroy(up);
    hd_buffer_destroy(back);
    calls += 8;
}

/* Handles are not given out again, however many objects come and go. */
static void handles_are_given_out_once(void **state) {
    (void)state;
    hd_program *first = hd_program_create(good.context);
    hd_program_destroy(first);
    for (int i = 0; i < 5000; i++) {
        hd_program *p = hd_program_create(good.context);
        assert_non_null(p);
        assert_ptr_not_equal(p, first);
        assert_int_equal(hd_program_check(first), HD_STATUS_STALE_HANDLE);
        hd_program_destroy(p);
    }
    enum { MANY = 3000 }; /* more at once than the first table of handles holds */
    hd_program **many = calloc(MANY, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < MANY; i++) assert_non_null(many[i] = hd_program_create(good.context));
    for (int i = 0; i < MANY; i++) assert_int_equal(hd_program_port_count(many[i]), 0);
    for (int i = 0; i < MANY; i++) hd_program_destroy(many[i]);
    for (int i = 0; i < MANY; i++) assert_int_equal(hd_program_check(many[i]), HD_STATUS_STALE_HANDLE);
    free(many);
    (void)hd_context_error(good.context);
}

/* In a child of this process every call fails at once. */
static void forked_children_are_told(void **state) {
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hd_context *context;
        int wrong_calls = hd_context_create(NULL, &context) != HD_STATUS_FORKED;
        for (size_t r = 0; r < sizeof object_rows / sizeof *object_rows; r++) {
            objects o = good;
            if (stands_on_good(&object_rows[r])) continue;
            const hd_status status = object_rows[r].call(&o);
            wrong_calls += status != HD_STATUS_FORKED && status != HD_STATUS_INTERNAL && status != HD_STATUS_INVALID_ARGUMENT;
        }
        end(&good);
        hd_context_destroy(good.context);
        _exit(wrong_calls);
    }
    int how = 0;
    assert_true(waitpid(child, &how, 0) == child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* What heddle.h states. Sanitizers need more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 1 << 20 };
#else
enum { STACK = 96 << 10 };
#endif

static void *use_all(void *user) {
    hd_status *status = user;
    hd_context *context;
    objects o = { 0 };
    *status = hd_context_create(&(hd_context_desc){ .backend = "cpu", .cache_dir = "", .cpu_threads = 2, .verify = 2 }, &context);
    if (*status) return NULL;
    make(&o, context);
    for (size_t r = 0; r < sizeof object_rows / sizeof *object_rows && !*status; r++)
        if (!stands_on_good(&object_rows[r])) *status = object_rows[r].call(&o);
    end(&o);
    hd_context_destroy(context);
    return NULL;
}

static void a_small_stack_is_enough(void **state) {
    (void)state;
    pthread_attr_t small;
    pthread_t thread;
    hd_status status = HD_STATUS_INTERNAL;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, STACK), 0);
    assert_int_equal(pthread_create(&thread, &small, use_all, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&small), 0);
    assert_int_equal(status, HD_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well_with_good_objects), cmocka_unit_test(bad_objects_are_errors_by_name),
        cmocka_unit_test(bad_programs_and_values_are_refused), cmocka_unit_test(ended_objects_are_ended_once),
        cmocka_unit_test(contexts_do_not_mix), cmocka_unit_test(sessions_outlive_nothing),
        cmocka_unit_test(buffers_end_before_plans), cmocka_unit_test(a_buffer_is_for_what_it_is_for),
        cmocka_unit_test(handles_are_given_out_once), cmocka_unit_test(a_small_stack_is_enough), cmocka_unit_test(forked_children_are_told),
    };
    return cmocka_run_group_tests(tests, make_all, end_all);
}
