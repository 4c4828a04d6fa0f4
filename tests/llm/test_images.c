/* test_images.c: a tiny Gemma 3 that sees, against Hugging Face transformers and Pillow (tools/fixtures/images_fixture.py): an image as a
 * square, what is seen in it on the CPU, Vulkan and OpenCL, with the same bits in exact mode; and files that see and are wrong. */
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include "llm/image.h"
#include "llm/model_reference.h"
#include "validation.h"
#include <heddle_llm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

static hd_context *context;
static const char *const places[] = { "cpu", "vulkan", "opencl" };
enum { PLACES = sizeof places / sizeof *places, MOST_ROWS = 32, MOST_HIDDEN = 64 };

#define CHECK(call) check((call), #call, __LINE__)
static void check(hd_status status, const char *call, int line) {
    if (status) fail_msg("line %d: %s: %s", line, call, hd_context_error(context));
}
#define REFUSED(call, wanted, words) refused((call), HD_STATUS_##wanted, words, __LINE__)
static void refused(hd_status status, hd_status wanted, const char *words, int line) {
    const char *error = hd_context_error(context);
    if (status != wanted || !strstr(error, words)) fail_msg("line %d: status %d: %s", line, status, error);
}

/* ---- what transformers computed ---- */

static struct seen {
    uint32_t width, height, side, rows, hidden, vocabulary, before_count, after_count, answer_count, question_bytes;
    const int32_t *before, *after, *answer;
    const float   *image;      /* [rows][hidden] */
    const float   *logits[2];  /* behind the question, and before the answer's last token */
    const uint8_t *pixels, *resized, *jpeg;
    const char    *question;
    uint8_t        bytes[1 << 16];
} seen;

static void path_of(const char *name, char out[512]) { snprintf(out, 512, "%s/llm/models/gemma3_sees%s", HEDDLE_TESTS_DIR, name); }

static int open_all(void **state) {
    char path[512];
    (void)state;
    path_of(".seen", path);
    FILE *file = fopen(path, "rb");
    if (!file || fread(seen.bytes, 1, sizeof seen.bytes, file) < 40 || fclose(file)) return -1;
    memcpy(&seen, seen.bytes, 40);
    seen.before = (const int32_t *)(const void *)(seen.bytes + 40);
    seen.after = seen.before + seen.before_count;
    seen.answer = seen.after + seen.after_count;
    seen.image = (const float *)(const void *)(seen.answer + seen.answer_count);
    seen.logits[0] = seen.image + seen.rows * seen.hidden;
    seen.logits[1] = seen.logits[0] + seen.vocabulary;
    seen.pixels = (const uint8_t *)(seen.logits[1] + seen.vocabulary);
    seen.resized = seen.pixels + 3 * seen.width * seen.height;
    seen.jpeg = seen.resized + 3 * seen.side * seen.side;
    seen.question = (const char *)seen.jpeg + 3 * seen.width * seen.height;
    return hd_context_create(NULL, &context) ? -1 : 0;
}
static int close_all(void **state) {
    (void)state;
    hd_context_destroy(context);
    return validation_messages() > 0;
}

static hd_image image(void) { return (hd_image){ seen.width, seen.height, seen.pixels }; }

/* ---- the tests ---- */

static void squares_are_those_of_pillow(void **state) {
    (void)state;
    const hd_allocator allocator = hd_context_allocator(context);
    const hd_image whole = image();
    hd_error error = { 0 };
    uint8_t *square = calloc(3, (size_t)seen.side * seen.side);
    assert_int_equal(hdl_image_resize(&allocator, &whole, seen.side, square, &error), HD_OK);
    assert_memory_equal(square, seen.resized, 3 * seen.side * seen.side);
    /* one that has the size already is as it was; one of one pixel is that pixel everywhere */
    uint8_t *again = calloc(3, (size_t)seen.side * seen.side);
    assert_int_equal(hdl_image_resize(&allocator, &(hd_image){ seen.side, seen.side, square }, seen.side, again, &error), HD_OK);
    assert_memory_equal(square, again, 3 * seen.side * seen.side);
    assert_int_equal(hdl_image_resize(&allocator, &(hd_image){ 1, 1, seen.pixels }, seen.side, again, &error), HD_OK);
    for (uint32_t i = 0; i < 3 * seen.side * seen.side; i++) assert_int_equal(again[i], seen.pixels[i % 3]);
    /* long and thin */
    const uint32_t most = HDL_MOST_IMAGE_SIDE;
    uint8_t *line = malloc(3 * (size_t)most);
    memset(line, 200, 3 * (size_t)most);
    assert_int_equal(hdl_image_resize(&allocator, &(hd_image){ most, 1, line }, seen.side, again, &error), HD_OK);
    for (uint32_t i = 0; i < 3 * seen.side * seen.side; i++) assert_int_equal(again[i], 200);
    assert_int_equal(hdl_image_resize(&allocator, &(hd_image){ most + 1, 1, line }, seen.side, again, &error), HD_STATUS_LIMIT);
    assert_non_null(strstr(error.text, "16385 x 1 pixels"));
    error = (hd_error){ 0 };
    assert_int_equal(hdl_image_resize(&allocator, &(hd_image){ 1, 0, line }, seen.side, again, &error), HD_STATUS_ZERO_SIZE);
    free(line);
    free(again);
    free(square);
}

/* ---- files ---- */

static void write_bytes(const char *path, const uint8_t *bytes, uint64_t count) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Reads an image; false where the library for its kind is not there. */
static bool reads(const char *path, hd_image *out) {
    const hd_status status = hd_image_read(context, path, out);
    const char *error = hd_context_error(context);
    if (status == HD_STATUS_UNSUPPORTED && strstr(error, "which is not there")) {
        print_message("%s\n", error);
        return false;
    }
    if (status) fail_msg("%s", error);
    return true;
}

static uint64_t file_bytes(const char *path, uint8_t *out, uint64_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(out, 1, room, file);
    fclose(file);
    return count;
}

static void files_are_read_as_pillow_does(void **state) {
    (void)state;
    const uint32_t bytes = 3 * seen.width * seen.height;
    char path[512], ppm[] = "/tmp/heddle-images-XXXXXX";
    uint8_t whole[1 << 16];
    hd_image read = { 0 };
    path_of(".png", path);
    if (reads(path, &read)) {
        assert_int_equal(read.width, seen.width);
        assert_int_equal(read.height, seen.height);
        assert_memory_equal(read.pixels, seen.pixels, bytes);
    }
    hd_image_free(context, &read);
    assert_null(read.pixels);
    path_of(".jpg", path);
    if (reads(path, &read)) { /* decoders may differ by little */
        assert_int_equal(read.width * read.height * 3, bytes);
        for (uint32_t i = 0; i < bytes; i++) assert_in_range(read.pixels[i] + 4 - seen.jpeg[i], 0, 8);
    }
    hd_image_free(context, &read);
    const int file = mkstemp(ppm);
    assert_true(file >= 0);
    close(file);
    const int head = snprintf((char *)whole, 64, "P6 # a comment\n# and one more\n%u\t%u\n255\n", seen.width, seen.height);
    memcpy(whole + head, seen.pixels, bytes);
    write_bytes(ppm, whole, (uint64_t)head + bytes);
    assert_true(reads(ppm, &read));
    assert_memory_equal(read.pixels, seen.pixels, bytes);
    hd_image_free(context, &read);
    hd_image_free(context, NULL);
    write_bytes(ppm, whole, (uint64_t)head + bytes - 1);
    REFUSED(hd_image_read(context, ppm, &read), PARSE, "the image is damaged");
    static const struct { const char *text; hd_status status; const char *words; } wrong[] = {
        { "", HD_STATUS_UNSUPPORTED, "this is no PNG, JPEG or PPM (P6) file" },
        { "GIF89a1234567890", HD_STATUS_UNSUPPORTED, "this is no PNG, JPEG or PPM (P6) file" },
        { "P6 1", HD_STATUS_PARSE, "damaged" },
        { "P6 1 1 65535\n123456", HD_STATUS_UNSUPPORTED, "with 8 bits a colour" },
        { "P6 0 1 255\n123", HD_STATUS_PARSE, "damaged" },
        { "P6 999999999 999999999 255\n123", HD_STATUS_LIMIT, "999999999 x 999999999 pixels" },
        { "P6 16384 16384 255\n123", HD_STATUS_LIMIT, "at most 16384 in each direction and 67108864 in all" },
        { "P6 99999999999 1 255\n123", HD_STATUS_PARSE, "damaged" },
        { "P6 -1 1 255\n123", HD_STATUS_PARSE, "damaged" },
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_bytes(ppm, (const uint8_t *)wrong[i].text, strlen(wrong[i].text));
        const hd_status status = hd_image_read(context, ppm, &read);
        const char *error = hd_context_error(context);
        if (status != wrong[i].status || !strstr(error, wrong[i].words)) fail_msg("%s: status %d: %s", wrong[i].text, status, error);
        assert_null(read.pixels);
    }
    REFUSED(hd_image_read(context, "/nowhere/x.png", &read), IO, "/nowhere/x.png");
    REFUSED(hd_image_read(context, "/tmp", &read), IO, "/tmp");
    assert_int_equal(hd_image_read(context, NULL, &read), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_image_read(context, ppm, NULL), HD_STATUS_NULL_POINTER);
    /* cut and changed at random: refused in one line, or an image */
    uint64_t random = 3;
    for (uint32_t i = 0; i < 600; i++) {
        uint8_t changed[1 << 16];
        path_of(i % 2 ? ".png" : ".jpg", path);
        uint64_t count = file_bytes(path, changed, sizeof changed);
        for (uint32_t k = hostile_random(&random) % 4; k > 0; k--)
            changed[hostile_random(&random) % (i % 3 ? 64 : count)] = (uint8_t)hostile_random(&random);
        if (i % 5 == 0) count = hostile_random(&random) % count;
        write_bytes(ppm, changed, count);
        const hd_status status = hd_image_read(context, ppm, &read);
        assert_int_equal(read.pixels == NULL, status != HD_OK);
        for (const char *letter = hd_context_error(context); *letter && status; letter++) assert_in_range(*letter, ' ', '~');
        hd_image_free(context, &read);
    }
    remove(ppm);
}

static hd_vision *open_vision(hd_device *device, const char *name, hd_math math) {
    char path[512];
    hd_vision *vision = NULL;
    path_of(name, path);
    CHECK(hd_vision_open(context, path, &(hd_vision_desc){ .device = device, .math = math }, &vision));
    return vision;
}

/* How far rows are from transformers', as a share of these. */
static double off(const float *rows) {
    double sum = 0, size = 0;
    for (uint32_t i = 0; i < seen.rows * seen.hidden; i++) {
        sum += ((double)rows[i] - (double)seen.image[i]) * ((double)rows[i] - (double)seen.image[i]);
        size += (double)seen.image[i] * (double)seen.image[i];
    }
    return sqrt(sum / size);
}

static void rows_are_those_of_transformers(void **state) {
    (void)state;
    static float rows[MOST_ROWS * MOST_HIDDEN], exact[MOST_ROWS * MOST_HIDDEN];
    const hd_image whole = image();
    uint32_t devices = 0;
    for (uint32_t at = 0; at < PLACES; at++) {
        hd_device *device = NULL;
        if (hd_device_open(context, &(hd_device_desc){ .id = places[at] }, &device)) {
            (void)hd_context_error(context);
            continue;
        }
        for (int math = at == 0 ? HD_MATH_FAST : HD_MATH_EXACT; math <= HD_MATH_EXACT; math++) {
            hd_vision *vision = open_vision(device, "_mmproj_f32.gguf", (hd_math)math);
            hd_vision_info info;
            CHECK(hd_vision_get_info(vision, &info));
            assert_int_equal(info.side, seen.side);
            assert_int_equal(info.rows, seen.rows);
            assert_int_equal(info.hidden, seen.hidden);
            assert_true(info.weight_bytes > 10000);
            for (int again = 0; again < 2; again++) CHECK(hd_vision_encode(vision, &whole, rows));
            if (!(off(rows) < 1e-4)) fail_msg("%s, math %d: %.2g off", places[at], math, off(rows));
            hd_vision_close(vision);
        }
        if (at == 0) memcpy(exact, rows, sizeof exact);
        assert_memory_equal(rows, exact, sizeof rows);
        hd_vision *halves = open_vision(device, "_mmproj_f16.gguf", HD_MATH_DEFAULT);
        CHECK(hd_vision_encode(halves, &whole, rows));
        /* beside weights in f16 fast mode may multiply in bf16, whose numbers are 2^-9 off at most */
        if (!(off(rows) < 1e-2)) fail_msg("%s, f16: %.2g off", places[at], off(rows));
        hd_vision_close(halves);
        hd_device_close(device);
        devices++;
    }
    print_message("%u devices\n", devices);
    assert_true(devices > 0);
}

/* ---- answers ---- */

static hd_model *open_model(void) {
    char path[512];
    hd_model *model = NULL;
    path_of("_f32.gguf", path);
    CHECK(hd_model_open(context, path, NULL, &model));
    return model;
}

static void feed_prompt(hd_session *session, uint32_t sequence) {
    CHECK(hd_session_feed(session, sequence, seen.before, seen.before_count));
    CHECK(hd_session_feed_image(session, sequence, seen.image));
    assert_int_equal(hd_session_position(session, sequence), seen.before_count + seen.rows);
    CHECK(hd_session_feed(session, sequence, seen.after, seen.after_count));
}

static void compare_logits(hd_session *session, const float *wanted, const char *where) {
    const float *logits;
    CHECK(hd_session_logits(session, 0, &logits));
    const double cosine = model_cosine(logits, wanted, seen.vocabulary);
    if (!(cosine > 0.9999)) fail_msg("%s: cosine %.7f", where, cosine);
}

/* What the prompt and the answer so far are followed by. */
static void compare_answer(const hd_session_desc *desc, const char *where, float out_logits[512]) {
    hd_model *model = open_model();
    hd_session *session = NULL;
    const float *logits;
    CHECK(hd_session_create(model, desc, &session));
    feed_prompt(session, 0);
    compare_logits(session, seen.logits[0], where);
    for (uint32_t i = 0; i < seen.answer_count; i++) {
        int32_t token;
        CHECK(hd_session_best(session, 0, &token));
        if (token != seen.answer[i]) fail_msg("%s: token %u is %d, not %d", where, i, token, seen.answer[i]);
        if (i + 1 < seen.answer_count) CHECK(hd_session_feed(session, 0, &token, 1));
    }
    compare_logits(session, seen.logits[1], where);
    CHECK(hd_session_logits(session, 0, &logits));
    memcpy(out_logits, logits, seen.vocabulary * sizeof *logits);
    hd_session_destroy(session);
    hd_model_close(model);
}

static void answers_are_those_of_transformers(void **state) {
    (void)state;
    float exact[512], logits[512];
    for (uint32_t at = 0; at < PLACES; at++) {
        hd_device *device = NULL;
        if (hd_device_open(context, &(hd_device_desc){ .id = places[at] }, &device)) {
            (void)hd_context_error(context);
            continue;
        }
        hd_session_desc desc = { .device = device, .context = 100, .image_rows = seen.rows, .math = HD_MATH_EXACT, .cache_type = HD_F32 };
        compare_answer(&desc, places[at], at ? logits : exact);
        if (at) assert_memory_equal(logits, exact, seen.vocabulary * sizeof *logits);
        desc.chunk = 8; /* fewer rows than an image has */
        desc.device_layers = at ? 3 : 0;
        compare_answer(&desc, "3 layers", logits);
        assert_memory_equal(logits, exact, seen.vocabulary * sizeof *logits);
        desc.math = HD_MATH_FAST;
        desc.stream = at == 1;
        compare_answer(&desc, "fast", logits);
        hd_device_close(device);
    }
}

/* A question with an image in front of it, as the model was trained with. What people write begins no image. */
static void conversations_have_places_for_images(void **state) {
    (void)state;
    hd_model *model = open_model();
    char question[64], text[1024];
    int32_t tokens[256];
    size_t count = 256, needed;
    snprintf(question, sizeof question, "%.*s", (int)seen.question_bytes, seen.question);
    hd_message message = { .role = "user", .content = question, .images = 1 };
    CHECK(hd_model_chat_tokens(model, NULL, &message, 1, tokens, &count));
    assert_int_equal(count, seen.before_count + 1 + seen.after_count);
    assert_memory_equal(tokens, seen.before, seen.before_count * sizeof *tokens);
    assert_int_equal(tokens[seen.before_count], -1);
    assert_memory_equal(tokens + seen.before_count + 1, seen.after, seen.after_count * sizeof *tokens);
    CHECK(hd_model_render_chat(model, NULL, &message, 1, text, sizeof text, &needed));
    assert_non_null(strstr(text, "<start_of_turn>user\n\n\n<start_of_image><end_of_image>\n\nwhat is upon"));
    /* two, and a text that spells one */
    message = (hd_message){ .role = "user", .content = "a <start_of_image> b", .images = 2 };
    count = 256;
    CHECK(hd_model_chat_tokens(model, NULL, &message, 1, tokens, &count));
    size_t images = 0, begins = 0;
    for (size_t i = 0; i < count; i++) {
        images += tokens[i] == -1;
        begins += tokens[i] == seen.before[seen.before_count - 1];
    }
    assert_int_equal(images, 2);
    assert_int_equal(begins, 2);
    message.images = 65;
    count = 256;
    REFUSED(hd_model_chat_tokens(model, NULL, &message, 1, tokens, &count), LIMIT, "a message has 65 images; the limit is 64");
    message.images = 1;
    message.content = "x";
    hd_message both[] = { message, { .role = "assistant", .content = "<start_of_image>" }, message };
    REFUSED(hd_model_chat_tokens(model, NULL, both, 3, tokens, &count), UNSUPPORTED, "has 3 places for 2 images");
    hd_model_close(model);
    model_reference blind;
    assert_int_equal(model_reference_read("llama_q4_0", &blind), 0);
    CHECK(hd_model_open(context, blind.path, NULL, &model));
    REFUSED(hd_model_chat_tokens(model, &(hd_chat_form){ .template_name = "chatml" }, &message, 1, tokens, &count), UNSUPPORTED, "this llama does not see");
    free(blind.bytes);
    hd_model_close(model);
}

/* An image beside other sequences; rewound, shared and saved; what cannot be read anew. */
static void sequences_hold_images(void **state) {
    (void)state;
    char path[] = "/tmp/heddle-images-XXXXXX";
    const int file = mkstemp(path);
    hd_model *model = open_model();
    hd_device *device = NULL;
    hd_session *session = NULL;
    int32_t token, held[128];
    size_t count = 128;
    const uint32_t begin = seen.before_count, end = begin + seen.rows;
    assert_true(file >= 0);
    close(file);
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    hd_session_desc desc = { .device = device, .context = 600, .sequences = 3, .image_rows = seen.rows, .math = HD_MATH_EXACT };
    CHECK(hd_session_create(model, &desc, &session));
    feed_prompt(session, 1);
    feed_prompt(session, 0);
    for (uint32_t s = 0; s < 2; s++) {
        CHECK(hd_session_best(session, s, &token));
        assert_int_equal(token, seen.answer[0]);
    }
    CHECK(hd_session_tokens(session, 0, held, &count));
    assert_int_equal(count, end + seen.after_count);
    assert_memory_equal(held, seen.before, begin * sizeof *held);
    for (uint32_t i = begin; i < end; i++) assert_int_equal(held[i], -1);
    assert_memory_equal(held + end, seen.after, seen.after_count * sizeof *held);
    /* back to behind the image, not into it */
    REFUSED(hd_session_rewind(session, 0, end - 1), UNSUPPORTED, "is within an image, which is kept whole");
    assert_int_equal(hd_session_position(session, 0), end + seen.after_count);
    CHECK(hd_session_rewind(session, 0, end));
    REFUSED(hd_session_save(session, 0, path), WRONG_STATE, "sequence 0 ends with an image");
    CHECK(hd_session_feed(session, 0, seen.after, seen.after_count));
    CHECK(hd_session_best(session, 0, &token));
    assert_int_equal(token, seen.answer[0]);
    REFUSED(hd_session_share(session, 0, end + 1, 2), UNSUPPORTED, "a row of an image, which cannot be read anew");
    REFUSED(hd_session_share(session, 0, begin + 3, 2), UNSUPPORTED, "is within an image");
    assert_int_equal(hd_session_position(session, 2), 0);
    CHECK(hd_session_share(session, 0, begin, 2));
    REFUSED(hd_session_shift(session, 0, 1, 2), UNSUPPORTED, "a row of an image");
    REFUSED(hd_session_shift(session, 0, end - 1, 2), UNSUPPORTED, "is within an image");
    assert_int_equal(hd_session_position(session, 0), end + seen.after_count);
    CHECK(hd_session_save(session, 0, path));
    CHECK(hd_session_load(session, 2, path));
    CHECK(hd_session_best(session, 2, &token));
    assert_int_equal(token, seen.answer[0]);
    hd_session_destroy(session);
    /* the room that there is, and guesses of what comes behind an image */
    hd_fit without, with;
    desc = (hd_session_desc){ .device = device, .context = seen.rows + 4, .math = HD_MATH_EXACT, .draft = HD_DRAFT_LOOKUP };
    CHECK(hd_model_fit(model, &desc, &without));
    CHECK(hd_session_create(model, &desc, &session));
    REFUSED(hd_session_feed_image(session, 0, seen.image), WRONG_STATE, "without image_rows");
    hd_session_destroy(session);
    desc.image_rows = seen.rows;
    CHECK(hd_model_fit(model, &desc, &with));
    assert_true(with.cpu_bytes > without.cpu_bytes);
    CHECK(hd_session_create(model, &desc, &session));
    assert_int_equal(hd_session_feed_image(session, 0, NULL), HD_STATUS_NULL_POINTER);
    REFUSED(hd_session_feed_image(session, 1, seen.image), INVALID_ARGUMENT, "sequence 1 of 1");
    CHECK(hd_session_feed(session, 0, seen.after, 2));
    CHECK(hd_session_feed_image(session, 0, seen.image));
    REFUSED(hd_session_feed_image(session, 0, seen.image), LIMIT, "sequence 0 holds 18 of 20 tokens, 16 more do not fit");
    hd_generated made;
    CHECK(hd_generate(session, &(hd_generate_desc){ .tokens = seen.after, .token_count = 1, .ignore_end = 1 }, NULL, &made));
    hd_session_destroy(session);
    desc.image_rows = seen.rows + 5;
    REFUSED(hd_session_create(model, &desc, &session), LIMIT, "an image of 21 rows does not fit into a context of 20");
    hd_model_close(model);
    model_reference blind;
    assert_int_equal(model_reference_read("llama_q4_0", &blind), 0);
    CHECK(hd_model_open(context, blind.path, NULL, &model));
    REFUSED(hd_session_create(model, &desc, &session), UNSUPPORTED, "this llama does not see; take a gemma3");
    free(blind.bytes);
    hd_model_close(model);
    hd_device_close(device);
    remove(path);
}

/* ---- files that are wrong ---- */

#define U32(key, value) { .kind = EDIT_U32, .name = (key), .number = (value) }
#define BOOL(key, value) { .kind = EDIT_BOOL, .name = (key), .number = (value) }
#define TEXT(key, value) { .kind = EDIT_TEXT, .name = (key), .text = (value) }
#define DROP(key) { .kind = EDIT_DROP_KEY, .name = (key) }
#define F32S(key, count_, value) { .kind = EDIT_F32S, .name = (key), .count = (count_), .number = (value) }
static const struct variant {
    edit        edit;
    hd_status   status;
    const char *words;
} variants[] = {
    { { .kind = EDIT_NONE }, HD_OK, "" },
    { DROP("general.architecture"), HD_STATUS_NAME_NOT_FOUND, "general.architecture" },
    { TEXT("general.architecture", "llama"), HD_STATUS_UNSUPPORTED, "general.architecture is 'llama', and a file that sees has clip" },
    { DROP("clip.projector_type"), HD_STATUS_UNSUPPORTED, "clip.projector_type is ''; heddle sees with that of gemma3 only" },
    { TEXT("clip.projector_type", "mlp\x1b[2J"), HD_STATUS_UNSUPPORTED, "clip.projector_type is 'mlp" },
    { TEXT("clip.vision.projector_type", "gemma3"), HD_STATUS_UNSUPPORTED, "key 'clip.vision.projector_type' may change the answers" },
    { U32("clip.projector_type", 1), HD_STATUS_TYPE, "clip.projector_type" },
    { BOOL("clip.use_gelu", 0), HD_STATUS_UNSUPPORTED, "clip.use_gelu is false" },
    { DROP("clip.use_gelu"), HD_STATUS_UNSUPPORTED, "clip.use_gelu is false" },
    { BOOL("clip.use_silu", 1), HD_STATUS_UNSUPPORTED, "clip.use_silu is true" },
    { BOOL("clip.has_audio_encoder", 1), HD_STATUS_UNSUPPORTED, "clip.has_audio_encoder is true" },
    { BOOL("clip.has_audio_encoder", 0), HD_OK, "" },
    { BOOL("clip.has_vision_encoder", 0), HD_STATUS_UNSUPPORTED, "clip.has_vision_encoder is false" },
    { U32("clip.vision.feature_layer", 1), HD_STATUS_UNSUPPORTED, "key 'clip.vision.feature_layer' may change the answers" },
    { U32("clip.vision.image_size", 0), HD_STATUS_LIMIT, "clip.vision.image_size" },
    { U32("clip.vision.image_size", 4294967295.0), HD_STATUS_LIMIT, "clip.vision.image_size" },
    { U32("clip.vision.image_size", 33), HD_STATUS_SHAPE, "images of 33 pixels are not cut into squares of 4" },
    { U32("clip.vision.image_size", 2049), HD_STATUS_LIMIT, "clip.vision.image_size" },
    { U32("clip.vision.image_size", 2048), HD_STATUS_SHAPE, "images of 2048 pixels" },
    { U32("clip.vision.image_size", 40), HD_STATUS_SHAPE, "v.position_embd.weight" },
    { U32("clip.vision.patch_size", 0), HD_STATUS_LIMIT, "clip.vision.patch_size" },
    { U32("clip.vision.patch_size", 8), HD_STATUS_SHAPE, "v.patch_embd.weight" },
    { U32("clip.vision.projector.scale_factor", 0), HD_STATUS_LIMIT, "clip.vision.projector.scale_factor" },
    { U32("clip.vision.projector.scale_factor", 3), HD_STATUS_SHAPE, "of which 3 in both directions" },
    { U32("clip.vision.projection_dim", 31), HD_STATUS_SHAPE, "mm.input_projection.weight" },
    { DROP("clip.vision.projection_dim"), HD_STATUS_NAME_NOT_FOUND, "clip.vision.projection_dim" },
    { U32("clip.vision.block_count", 3), HD_STATUS_NAME_NOT_FOUND, "v.blk.2.ln1.weight" },
    { U32("clip.vision.block_count", 1), HD_STATUS_UNSUPPORTED, "tensor 'v.blk.1." },
    { U32("clip.vision.block_count", 4294967295.0), HD_STATUS_LIMIT, "clip.vision.block_count" },
    { U32("clip.vision.embedding_length", 48), HD_STATUS_SHAPE, "v.blk.0.ln1.weight" },
    { U32("clip.vision.feed_forward_length", 48), HD_STATUS_SHAPE, "v.blk.0.ffn_up.weight" },
    { U32("clip.vision.attention.head_count", 5), HD_STATUS_SHAPE, "24 elements are not divided among 5 heads" },
    { U32("clip.vision.attention.head_count", 0), HD_STATUS_LIMIT, "clip.vision.attention.head_count" },
    { DROP("clip.vision.attention.layer_norm_epsilon"), HD_STATUS_NAME_NOT_FOUND, "layer_norm_epsilon" },
    { F32S("clip.vision.image_mean", 2, 0.5), HD_STATUS_LIMIT, "clip.vision.image_mean' has 2 elements" },
    { F32S("clip.vision.image_mean", 3, NAN), HD_STATUS_LIMIT, "clip.vision.image_mean holds" },
    { F32S("clip.vision.image_std", 3, 0), HD_STATUS_LIMIT, "clip.vision.image_std holds 0" },
    { DROP("clip.vision.image_std"), HD_STATUS_NAME_NOT_FOUND, "clip.vision.image_std" },
    { { .kind = EDIT_DROP_TENSOR, .name = "mm.soft_emb_norm.weight" }, HD_STATUS_NAME_NOT_FOUND, "mm.soft_emb_norm.weight" },
    { { .kind = EDIT_DROP_TENSOR, .name = "v.blk.1.attn_out.bias" }, HD_STATUS_NAME_NOT_FOUND, "v.blk.1.attn_out.bias" },
    { { .kind = EDIT_TENSOR, .name = "v.blk.0.attn_q_norm.weight", .type = HDL_GGUF_TYPE_F32, .shape = { 1, { 12 } } },
      HD_STATUS_UNSUPPORTED, "tensor 'v.blk.0.attn_q_norm.weight' may change the answers" },
    { { .kind = EDIT_TENSOR, .name = "v.position_embd.weight", .type = HDL_GGUF_TYPE_I32, .shape = { 2, { 64, 24 } } },
      HD_STATUS_UNSUPPORTED, "v.position_embd.weight is of type i32" },
    { { .kind = EDIT_TENSOR, .name = "mm.input_projection.scale", .type = HDL_GGUF_TYPE_F32, .number = 2, .shape = { 1, { 1 } } }, HD_OK, "twice" },
};

static void wrong_files_are_refused_by_name(void **state) {
    (void)state;
    char path[] = "/tmp/heddle-images-XXXXXX";
    const hd_image whole = image();
    hd_device *device = NULL;
    float rows[MOST_ROWS * MOST_HIDDEN], right[MOST_ROWS * MOST_HIDDEN];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    const hd_vision_desc desc = { .device = device, .math = HD_MATH_EXACT };
    for (uint32_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        hd_vision *vision = NULL;
        fixture f = fixture_edited("gemma3_sees_mmproj_f32", &variants[i].edit, 1);
        write_bytes(path, f.bytes, f.count);
        fixture_free(&f);
        const hd_status status = hd_vision_open(context, path, &desc, &vision);
        const char *error = hd_context_error(context);
        if (status != variants[i].status || (status && !strstr(error, variants[i].words)))
            fail_msg("variant %u, %s: status %d: %s", i, variants[i].words, status, error);
        for (const char *letter = error; *letter && status; letter++) assert_in_range(*letter, ' ', '~');
        assert_int_equal(vision == NULL, status != HD_OK);
        if (vision) CHECK(hd_vision_encode(vision, &whole, rows));
        if (i == 0) memcpy(right, rows, sizeof right);
        for (uint32_t k = 0; vision && k < seen.rows * seen.hidden; k++)
            if (rows[k] != right[k] * (variants[i].words[0] ? 2 : 1)) fail_msg("variant %u: other rows", i);
        hd_vision_close(vision);
    }
    /* cut, and with bytes changed at random: refused, or it sees something */
    const fixture good = fixture_read("gemma3_sees_mmproj_f32");
    uint64_t random = 7;
    for (uint32_t i = 0; i < 400; i++) {
        hd_vision *vision = NULL;
        blob b = { .bytes = malloc(good.count), .count = good.count, .room = good.count };
        memcpy(b.bytes, good.bytes, good.count);
        if (i % 4 == 0) b.count = hostile_random(&random) % good.count;
        for (int k = 0; k < 3; k++) b.bytes[hostile_random(&random) % (i % 2 ? 4096 : good.count)] ^= (uint8_t)(1u << hostile_random(&random) % 8);
        write_bytes(path, b.bytes, b.count);
        if (!hd_vision_open(context, path, &desc, &vision) && hd_vision_encode(vision, &whole, rows))
            assert_non_null(strstr(hd_context_error(context), "not a number"));
        (void)hd_context_error(context);
        hd_vision_close(vision);
        free(b.bytes);
    }
    fixture f = good;
    fixture_free(&f);
    hd_device_close(device);
    remove(path);
}

/* Any allocation may fail: it is told, and nothing is lost. */
static void memory_may_end_anywhere(void **state) {
    (void)state;
    static meter counted;
    char path[512], png[512];
    float rows[MOST_ROWS * MOST_HIDDEN];
    const hd_context_desc desc = { .allocator = meter_allocator(&counted), .backend = "cpu", .cpu_threads = 1, .cache_dir = "" };
    hd_context *own = NULL;
    hd_device *device = NULL;
    uint32_t failures = 0;
    path_of("_mmproj_f32.gguf", path);
    path_of(".png", png);
    assert_int_equal(hd_context_create(&desc, &own), HD_OK);
    assert_int_equal(hd_device_open(own, &(hd_device_desc){ .id = "cpu" }, &device), HD_OK);
    hd_status status = HD_STATUS_OUT_OF_HOST_MEMORY;
    for (uint64_t fail = 1; status; fail += 1 + fail / 20) {
        hd_vision *vision = NULL;
        hd_image read = image();
        const uint64_t before = counted.live_bytes;
        counted.calls = 0;
        counted.fail_call = fail;
        status = hd_image_read(own, png, &read);
        if (status == HD_STATUS_UNSUPPORTED) status = HD_OK, read = image(); /* there is no libpng */
        if (!status) status = hd_vision_open(own, path, &(hd_vision_desc){ .device = device }, &vision);
        if (!status) status = hd_vision_encode(vision, &read, rows);
        counted.fail_call = 0;
        if (status && status != HD_STATUS_OUT_OF_HOST_MEMORY) fail_msg("call %llu: status %d: %s", (unsigned long long)fail, status, hd_context_error(own));
        failures += status != HD_OK;
        (void)hd_context_error(own);
        hd_vision_close(vision);
        if (read.pixels != seen.pixels) hd_image_free(own, &read);
        if (status && counted.live_bytes > before + 4096) fail_msg("call %llu: %llu bytes are lost", (unsigned long long)fail, (unsigned long long)(counted.live_bytes - before));
    }
    assert_true(failures > 10);
    hd_context_destroy(own);
    assert_int_equal(counted.live_bytes, 0);
}

static void misuse_is_told(void **state) {
    (void)state;
    char path[512];
    hd_device *device = NULL;
    hd_vision_info info;
    float rows[MOST_ROWS * MOST_HIDDEN];
    const hd_image whole = image();
    hd_vision *vision = NULL;
    hd_model *model = NULL;
    CHECK(hd_device_open(context, &(hd_device_desc){ .id = "cpu" }, &device));
    path_of("_mmproj_f32.gguf", path);
    assert_int_equal(hd_vision_open(context, NULL, NULL, &vision), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_vision_open(context, path, NULL, NULL), HD_STATUS_NULL_POINTER);
    REFUSED(hd_vision_open(context, "/nowhere/mmproj.gguf", NULL, &vision), IO, "/nowhere/mmproj.gguf");
    REFUSED(hd_model_open(context, path, NULL, &model), UNSUPPORTED, "general.type is 'mmproj'");
    vision = open_vision(device, "_mmproj_f32.gguf", HD_MATH_DEFAULT);
    assert_int_equal(hd_vision_get_info(vision, NULL), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_vision_get_info(NULL, &info), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_vision_encode(vision, NULL, rows), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_vision_encode(vision, &(hd_image){ 2, 2, NULL }, rows), HD_STATUS_NULL_POINTER);
    assert_int_equal(hd_vision_encode(vision, &whole, NULL), HD_STATUS_NULL_POINTER);
    REFUSED(hd_vision_encode(vision, &(hd_image){ 0, 2, seen.pixels }, rows), ZERO_SIZE, "the image has no pixels");
    hd_device_close(device);
    assert_int_equal(hd_vision_encode(vision, &whole, rows), HD_STATUS_STALE_HANDLE);
    hd_vision_close(vision);
    assert_int_equal(hd_vision_encode(vision, &whole, rows), HD_STATUS_STALE_HANDLE);
    hd_vision_close(NULL);
    (void)hd_context_error(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_are_those_of_pillow),
        cmocka_unit_test(files_are_read_as_pillow_does),
        cmocka_unit_test(rows_are_those_of_transformers),
        cmocka_unit_test(answers_are_those_of_transformers),
        cmocka_unit_test(conversations_have_places_for_images),
        cmocka_unit_test(sequences_hold_images),
        cmocka_unit_test(wrong_files_are_refused_by_name),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(misuse_is_told),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
