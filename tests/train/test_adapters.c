/* test_adapters.c: adapters as GGUF files and as PEFT's folders, on models and merged into them: the scores are PEFT's own; broken
 * ones are refused or whole, ten thousand of each file of a folder. And samples: of JSONL files, whose answers alone are learned. */
#define _XOPEN_SOURCE 700
#include "lora.h"
#include <sys/stat.h>

/* What a trainer computes is what its adapter gives beside the model, from a GGUF file and from PEFT's folder, and what the merged model
 * gives. */
static void adapters(void **state) {
    (void)state;
    place at;
    int32_t tokens[LORA_LENGTH];
    char path[160], merged_path[160];
    assert_true(open_place("cpu", 2, &at));
    for (size_t i = 0; i < sizeof lora_runs / sizeof *lora_runs; i++) {
        char name[32];
        const uint32_t vocabulary = (uint32_t)lora_runs[i].vocabulary;
        snprintf(name, sizeof name, "%s_f32", lora_runs[i].name);
        hd_model *base = open_model(&at, name), *adapted = open_model(&at, name), *again = open_model(&at, name), *merged;
        hd_adapter *peft, *gguf, *back;
        for (int t = 0; t < LORA_LENGTH; t++) tokens[t] = (t * t + 3) % (int)vocabulary;
        snprintf(path, sizeof path, "%s/train/fixtures/peft/%s", HEDDLE_TESTS_DIR, lora_runs[i].name);
        check_on(&at, hd_peft_read(at.context, base, path, &peft));
        assert_int_equal(hd_adapter_count(peft), 14);
        check_on(&at, hd_model_adapt(adapted, (const hd_adapter *const[]){ peft }, NULL, 1));
        float *scores = scores_of(&at, adapted, tokens), *last = scores + (LORA_LENGTH - 1) * vocabulary;
        for (int k = 0; k < LORA_LAST; k++)
            if (fabsf(last[k] - lora_runs[i].last[k]) > 2e-4f) fail_msg("%s: PEFT's %d-th score is %.6f, not %.6f", name, k, (double)lora_runs[i].last[k], (double)last[k]);
        assert_true(session_distance(&at, adapted, tokens, last, vocabulary) < 0.05);
        float *pieces = scores_by(&at, adapted, tokens, LORA_LENGTH / 4);
        assert_true(distance(pieces, scores, (size_t)LORA_LENGTH * vocabulary) < 1e-4);
        free(pieces);
        hd_program *p = hd_program_create(at.context);
        hd_value none[LORA_LENGTH];
        const hd_model_graph_desc uneven = { .sequences = 1, .length = LORA_LENGTH, .score_rows = 7 };
        assert_int_equal(hd_model_build(adapted, p, &uneven, NULL, none), HD_STATUS_INVALID_ARGUMENT);
        hd_context_error(at.context);
        hd_program_destroy(p);

        snprintf(path, sizeof path, "%s/%s.gguf", folder, name); /* through GGUF, twice half as strong */
        check_on(&at, hd_adapter_write(peft, path));
        check_on(&at, hd_adapter_read(at.context, path, &gguf));
        check_on(&at, hd_model_adapt(again, (const hd_adapter *const[]){ gguf, peft }, (const float[]){ 0.75f, 0.25f }, 2));
        assert_int_equal(hd_model_adapt(again, (const hd_adapter *const[]){ gguf }, NULL, 1), HD_STATUS_WRONG_STATE);
        hd_context_error(at.context);
        float *others = scores_of(&at, again, tokens);
        assert_true(distance(scores, others, LORA_LENGTH * vocabulary) < 2e-4);
        free(others);

        snprintf(path, sizeof path, "%s/%s-peft", folder, name); /* to PEFT's folder and back: the same bits */
        check_on(&at, hd_peft_write(at.context, base, gguf, path));
        check_on(&at, hd_peft_read(at.context, base, path, &back));
        assert_int_equal(hd_adapter_count(back), hd_adapter_count(peft));
        assert_true(hd_adapter_alpha(back) == hd_adapter_alpha(peft));
        for (size_t k = 0; k < hd_adapter_count(back); k++) {
            const hd_adapter_pair *one = hd_adapter_get(back, k), *other = NULL;
            for (size_t m = 0; m < hd_adapter_count(peft); m++)
                if (strcmp(hd_adapter_get(peft, m)->weight, one->weight) == 0) other = hd_adapter_get(peft, m);
            assert_non_null(other);
            assert_memory_equal(one->a, other->a, sizeof(float) * one->rank * one->columns);
            assert_memory_equal(one->b, other->b, sizeof(float) * one->rank * one->rows);
        }

        snprintf(path, sizeof path, "%s/llm/models/%s.gguf", HEDDLE_TESTS_DIR, name);
        snprintf(merged_path, sizeof merged_path, "%s/%s-merged.gguf", folder, name);
        check_on(&at, hd_model_merge(at.context, path, merged_path, &(hd_merge_desc){ .adapters = (const hd_adapter *const[]){ peft }, .count = 1 }));
        check_on(&at, hd_model_open(at.context, merged_path, NULL, &merged));
        others = scores_of(&at, merged, tokens);
        assert_true(distance(scores, others, LORA_LENGTH * vocabulary) < 2e-4);
        free(others);
        others = scores_of(&at, base, tokens); /* and all of that is not nothing */
        assert_true(distance(scores, others, LORA_LENGTH * vocabulary) > 0.5);
        free(others);
        free(scores);
        hd_adapter_destroy(peft);
        hd_adapter_destroy(gguf);
        hd_adapter_destroy(back);
        hd_model_close(merged);
        hd_model_close(again);
        hd_model_close(adapted);
        hd_model_close(base);
    }
    close_place(&at);
}

/* ---- what is refused ---- */

static uint32_t chance = 1;
static uint32_t draw(uint32_t below) {
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(chance >> 4) * below) >> 28);
}

static uint8_t *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*out_bytes + 1);
    assert_int_equal(fread(bytes, 1, *out_bytes, file), *out_bytes);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* A few bytes of the first `most` changed, and now and then the end cut off. */
static void write_changed(const char *path, const uint8_t *bytes, size_t count, size_t most, const char *letters) {
    uint8_t *changed = malloc(count);
    memcpy(changed, bytes, count);
    for (uint32_t k = 0; k <= draw(3); k++) changed[draw((uint32_t)most)] = letters ? (uint8_t)letters[draw((uint32_t)strlen(letters))] : (uint8_t)draw(256);
    write_file(path, changed, draw(8) ? count : draw((uint32_t)count));
    free(changed);
}

/* What is read is whole, and every failure says why. */
static void check_read(const place *at, hd_model *base, hd_status status, hd_adapter *adapter) {
    if (status) {
        assert_true(hd_context_error(at->context)[0] && !adapter);
        return;
    }
    for (size_t i = 0; i < hd_adapter_count(adapter); i++) {
        const hd_adapter_pair *pair = hd_adapter_get(adapter, i);
        float sum = 0;
        for (uint64_t k = 0; k < (uint64_t)pair->rank * pair->columns; k++) sum += pair->a[k];
        for (uint64_t k = 0; k < (uint64_t)pair->rank * pair->rows; k++) sum += pair->b[k];
        assert_true(sum == sum);
    }
    (void)base;
    hd_adapter_destroy(adapter);
}

static void hostile_adapters(void **state) {
    (void)state;
    place at;
    char from[192], folder_path[160], path[256], config_path[256];
    size_t count, config_count, gguf_count;
    int taken = 0;
    hd_adapter *adapter;
    assert_true(open_place("cpu", 1, &at));
    hd_model *base = open_model(&at, "llama_f32");
    snprintf(from, sizeof from, "%s/train/fixtures/peft/llama", HEDDLE_TESTS_DIR);
    check_on(&at, hd_peft_read(at.context, base, from, &adapter));
    snprintf(path, sizeof path, "%s/hostile.gguf", folder);
    check_on(&at, hd_adapter_write(adapter, path));
    hd_adapter_destroy(adapter);
    uint8_t *gguf = read_file(path, &gguf_count);
    for (int i = 0; i < 2000; i++) {
        write_changed(path, gguf, gguf_count, i % 2 ? 1200 : 300, NULL);
        hd_adapter *read = NULL;
        const hd_status status = hd_adapter_read(at.context, path, &read);
        taken += status == HD_OK;
        if (!status && i % 4 == 0) { /* one that was read fits the model, or is refused there */
            hd_model *model = open_model(&at, "llama_f32");
            if (hd_model_adapt(model, (const hd_adapter *const[]){ read }, NULL, 1)) assert_true(hd_context_error(at.context)[0]);
            hd_model_close(model);
        }
        check_read(&at, base, status, read);
    }
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", from);
    uint8_t *tensors = read_file(path, &count);
    snprintf(path, sizeof path, "%s/adapter_config.json", from);
    uint8_t *config = read_file(path, &config_count);
    snprintf(folder_path, sizeof folder_path, "%s/hostile", folder);
    assert_int_equal(mkdir(folder_path, 0777), 0);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder_path);
    snprintf(config_path, sizeof config_path, "%s/adapter_config.json", folder_path);
    for (int i = 0; i < 20000; i++) { /* 10,000 of each file */
        if (i % 2) write_changed(path, tensors, count, 3000, "0123456789ABF[]{},:\"._lora");
        else write_file(path, tensors, count);
        if (i % 2) write_file(config_path, config, config_count);
        else write_changed(config_path, config, config_count, config_count, "0123456789truefalsn[]{},:\"");
        hd_adapter *read = NULL;
        const hd_status status = hd_peft_read(at.context, base, folder_path, &read);
        taken += status == HD_OK;
        check_read(&at, base, status, read);
    }
    print_message("%d of 22000 were taken\n", taken);
    free(gguf);
    free(tensors);
    free(config);
    hd_model_close(base);
    close_place(&at);
}

static void refuse_config(const place *at, hd_model *base, const char *folder_path, const char *key_and_value, const char *says) {
    char path[256], text[400];
    hd_adapter *read;
    snprintf(path, sizeof path, "%s/adapter_config.json", folder_path);
    snprintf(text, sizeof text, "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 6, %s}", key_and_value);
    write_file(path, text, strlen(text));
    assert_int_equal(hd_peft_read(at->context, base, folder_path, &read), HD_STATUS_UNSUPPORTED);
    const char *error = hd_context_error(at->context);
    if (!strstr(error, says)) fail_msg("'%s' does not say '%s'", error, says);
}

static void refused(void **state) {
    (void)state;
    place at;
    char from[192], folder_path[160], path[256], to[256];
    size_t count;
    hd_adapter *adapter, *other;
    assert_true(open_place("cpu", 1, &at));
    hd_model *base = open_model(&at, "llama_f32"), *qwen = open_model(&at, "qwen2_f32"), *wide = open_model(&at, "llama3_f32");
    snprintf(from, sizeof from, "%s/train/fixtures/peft/llama", HEDDLE_TESTS_DIR);
    check_on(&at, hd_peft_read(at.context, base, from, &adapter));
    assert_int_equal(hd_model_adapt(qwen, (const hd_adapter *const[]){ adapter }, NULL, 1), HD_STATUS_UNSUPPORTED);
    assert_non_null(strstr(hd_context_error(at.context), "the adapter is for llama, and the model is a qwen2"));
    assert_int_equal(hd_model_adapt(wide, (const hd_adapter *const[]){ adapter }, NULL, 1), HD_STATUS_SHAPE);
    assert_non_null(strstr(hd_context_error(at.context), "it belongs to another one"));
    assert_int_equal(hd_model_adapt(base, (const hd_adapter *const[]){ adapter }, (const float[]){ NAN }, 1), HD_STATUS_INVALID_ARGUMENT);
    hd_context_error(at.context);
    const float one[4] = { 1, 2, 3, 4 };
    const hd_adapter_pair pairs[] = { { "output.weight", 1, 320, 32, one, one }, { "output.weight", 1, 320, 32, one, one } };
    assert_int_equal(hd_adapter_create(at.context, "llama", 1, pairs, 0, &other), HD_STATUS_ZERO_SIZE);
    assert_int_equal(hd_adapter_create(at.context, "llama", NAN, pairs, 1, &other), HD_STATUS_INVALID_ARGUMENT);
    hd_context_error(at.context);
    snprintf(folder_path, sizeof folder_path, "%s/refused", folder);
    assert_int_equal(mkdir(folder_path, 0777), 0);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", from);
    snprintf(to, sizeof to, "%s/adapter_model.safetensors", folder_path);
    uint8_t *tensors = read_file(path, &count);
    write_file(to, tensors, count);
    refuse_config(&at, base, folder_path, "\"use_dora\": true", "use_dora is set");
    refuse_config(&at, base, folder_path, "\"rank_pattern\": {\"q_proj\": 2}", "rank_pattern is set");
    refuse_config(&at, base, folder_path, "\"modules_to_save\": [\"lm_head\"]", "modules_to_save is set");
    refuse_config(&at, base, folder_path, "\"bias\": \"all\"", "bias is not none");
    refuse_config(&at, base, folder_path, "\"init_lora_weights\": \"pissa\"", "changed the base model");
    hd_trainer_desc desc = recipe(base);
    hd_trainer *trainer = NULL;
    strcpy(desc.lora.targets, "attn_q,attn_w");
    assert_int_equal(hd_trainer_create(at.context, at.device, &desc, &trainer), HD_STATUS_NAME_NOT_FOUND);
    assert_non_null(strstr(hd_context_error(at.context), "'attn_w'"));
    strcpy(desc.lora.targets, "attn_q,attn_v");
    trainer = make(&at, &desc);
    assert_int_equal(hd_trainer_parameters(trainer), 2 * LORA_RANK * (32 + 160 + 32 + 80));
    assert_int_equal(hd_trainer_export(trainer, to, NULL), HD_STATUS_WRONG_STATE);
    hd_context_error(at.context);
    hd_trainer_destroy(trainer);
    free(tensors);
    hd_adapter_destroy(adapter);
    hd_model_close(wide);
    hd_model_close(qwen);
    hd_model_close(base);
    close_place(&at);
}

/* ---- samples ---- */

static hd_status read_samples(const place *at, const hd_model *model, const char *text, uint32_t length, hd_samples **out) {
    char path[128];
    snprintf(path, sizeof path, "%s/samples.jsonl", folder);
    write_file(path, text, strlen(text));
    return hd_samples_read(at->context, model, path, &(hd_samples_desc){ .template_name = "chatml", .length = length }, out);
}

/* The assistant's words alone are targets, the end of each turn with them; all samples come once before one comes again. */
static void samples(void **state) {
    (void)state;
    enum { ROOM = 64, COUNT = 7 };
    place at;
    hd_samples *read;
    int32_t tokens[ROOM * COUNT], targets[ROOM * COUNT];
    char said[512] = "", all[512] = "", lines[2048] = "";
    assert_true(open_place("cpu", 1, &at));
    hd_model *model = open_model(&at, "qwen3_f32");
    check_on(&at, read_samples(&at, model, "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}, {\"role\": \"assistant\", \"content\": \"cd\"},"
                               " {\"role\": \"user\", \"content\": \"<|im_end|>\"}, {\"role\": \"assistant\", \"content\": \"gh\"}]}\n\n", ROOM * COUNT, &read));
    hd_samples_info info = hd_samples_get_info(read);
    assert_true(info.samples == 1 && info.cut == 0 && info.empty == 0);
    hd_samples_draw(read, 1, 0, 1, tokens, targets);
    for (size_t t = 0; t < info.tokens; t++) {
        size_t bytes;
        const char *text = hd_model_token_text(model, tokens[t], &bytes);
        strncat(all, text, bytes);
        if (targets[t] < 0) continue;
        assert_int_equal(targets[t], tokens[t + 1]);
        text = hd_model_token_text(model, targets[t], &bytes);
        strncat(said, text, bytes);
    }
    assert_string_equal(all, "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\ncd<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\ngh<|im_end|>\n");
    assert_string_equal(said, "cd<|im_end|>\ngh<|im_end|>\n");
    hd_samples_destroy(read);

    for (int i = 0; i < COUNT; i++) snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "{\"text\": \"%c%c\"}\r\n", 'a' + i, 'a' + i);
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "{\"prompt\": \"a long question of more tokens than the room\", \"completion\": \"b\"}\n");
    check_on(&at, read_samples(&at, model, lines, 8, &read));
    info = hd_samples_get_info(read);
    assert_true(info.samples == COUNT && info.empty == 1);
    uint64_t orders[3] = { 0 };
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        int seen[256] = { 0 };
        for (uint64_t k = 0; k < COUNT; k++) {
            hd_samples_draw(read, 5, epoch * COUNT + k, 1, tokens, targets);
            size_t bytes;
            seen[(uint8_t)hd_model_token_text(model, tokens[0], &bytes)[0]]++;
            orders[epoch] = orders[epoch] * 1000 + (uint64_t)tokens[0];
        }
        for (int i = 0; i < COUNT; i++) assert_int_equal(seen['a' + i], 1);
    }
    assert_true(orders[0] != orders[1] && orders[1] != orders[2]);
    hd_samples_draw(read, 5, 0, COUNT, tokens, targets); /* one step of all is the same as many of one */
    uint64_t order = 0;
    for (int k = 0; k < COUNT; k++) order = order * 1000 + (uint64_t)tokens[8 * k];
    assert_true(order == orders[0]);
    hd_samples_destroy(read);

    static const struct { const char *line, *says; } wrong[] = {
        { "{\"text\": 1}", "line 1: no object with" }, { "\n{\"text\": \"a\"", "line 2" }, { "[]", "line 1" }, { "\"text\"", "line 1" },
        { "{\"messages\": []}", "1 to 512" }, { "{\"messages\": [{\"role\": \"user\"}]}", "no content" },
        { "{\"messages\": [{\"role\": \"user\", \"content\": [\"a\"]}]}", "no content" }, { "{\"text\": \"a\", \"text\": \"b\"}", "line 1" },
        { "", "something to learn" }, { "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "something to learn" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(read_samples(&at, model, wrong[i].line, 8, &read) != HD_OK);
        const char *error = hd_context_error(at.context);
        if (!strstr(error, wrong[i].says)) fail_msg("'%s' does not say '%s'", error, wrong[i].says);
    }
    hd_model_close(model);
    close_place(&at);
}

/* Packed ones stand in the order of the file, whole, and none is the target of the one before it. */
static void packed_samples(void **state) {
    (void)state;
    enum { COUNT = 9, LENGTH = 9, ROWS = 4 }; /* of texts of 2 to 5 letters; LENGTH + 1 tokens have room, with the last target */
    place at;
    char lines[1024] = "", path[128], text[64];
    int32_t tokens[LENGTH * COUNT], targets[LENGTH * COUNT];
    uint64_t targets_alone = 0;
    assert_true(open_place("cpu", 1, &at));
    hd_model *model = open_model(&at, "qwen3_f32");
    for (int i = 0; i < COUNT; i++) {
        memset(text, 'a' + i, sizeof text);
        text[2 + i % 4] = 0;
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "{\"text\": \"%s\"}\n", text);
    }
    snprintf(path, sizeof path, "%s/samples.jsonl", folder);
    write_file(path, lines, strlen(lines));
    for (int packed = 0; packed < 2; packed++) {
        hd_samples *read;
        check_on(&at, hd_samples_read(at.context, model, path, &(hd_samples_desc){ .template_name = "chatml", .length = LENGTH, .packed = packed }, &read));
        const hd_samples_info info = hd_samples_get_info(read);
        assert_true(info.samples == COUNT && info.rows == (packed ? ROWS : COUNT) && info.cut == 0 && info.empty == 0);
        if (!packed) targets_alone = info.targets;
        assert_true(info.targets == targets_alone);
        uint64_t learned = 0;
        int seen[COUNT] = { 0 };
        hd_samples_draw(read, 5, 0, (uint32_t)info.rows, tokens, targets);
        for (uint64_t t = 0; t < LENGTH * info.rows; t++) {
            if (targets[t] < 0) continue;
            size_t bytes, target_bytes;
            const char *one = hd_model_token_text(model, tokens[t], &bytes), *next = hd_model_token_text(model, targets[t], &target_bytes);
            assert_true(*one == *next && *one >= 'a' && *one < 'a' + COUNT);
            seen[*one - 'a']++;
            learned++;
        }
        for (int i = 0; i < COUNT; i++) assert_true(seen[i] > 0);
        assert_true(learned == info.targets);
        hd_samples_destroy(read);
    }
    hd_model_close(model);
    close_place(&at);
}

static void broken_samples(void **state) {
    (void)state;
    enum { ROOM = 40, COUNT = 2 };
    place at;
    hd_samples *read;
    int32_t tokens[ROOM * COUNT], targets[ROOM * COUNT];
    assert_true(open_place("cpu", 1, &at));
    hd_model *model = open_model(&at, "qwen3_f32");
    static const char good[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}, {\"role\": \"assistant\", \"content\": \"cd\"}]}\n{\"text\": \"xyz\"}\n";
    char changed[sizeof good];
    for (int i = 0; i < 10000; i++) { /* refused, or tokens that the model has, and targets that follow them */
        memcpy(changed, good, sizeof good);
        for (uint32_t k = 0; k <= draw(3); k++) changed[draw(sizeof good - 1)] = (char)(1 + draw(255));
        const uint32_t length = 8 + draw(32);
        if (read_samples(&at, model, changed, length, &read)) {
            assert_true(hd_context_error(at.context)[0]);
            continue;
        }
        const hd_samples_info info = hd_samples_get_info(read);
        assert_true(info.samples >= 1 && info.samples <= COUNT && info.targets >= info.samples && info.tokens > info.targets);
        hd_samples_draw(read, 5, 0, (uint32_t)info.samples, tokens, targets);
        uint64_t learned = 0;
        for (uint32_t t = 0; t < length * info.samples; t++) {
            assert_true(tokens[t] >= 0 && tokens[t] < 300 && (targets[t] < 0 || t % length == length - 1 || targets[t] == tokens[t + 1]));
            learned += targets[t] >= 0;
        }
        assert_true(learned == info.targets);
        hd_samples_destroy(read);
    }
    hd_model_close(model);
    close_place(&at);
}

/* ---- without memory ---- */

static uint64_t calls, fails_at; /* 0: none fails */
static void *resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    (void)user, (void)old_bytes;
    if (new_bytes > 0) return fails_at && ++calls == fails_at ? NULL : realloc(old, new_bytes);
    free(old);
    return NULL;
}

/* Reads, puts onto a model, writes: whichever allocation fails, nothing is left of it. */
static hd_status all_of_it(hd_context *context) {
    char from[192], path[160];
    hd_model *model = NULL;
    hd_adapter *peft = NULL, *gguf = NULL;
    hd_samples *read = NULL;
    snprintf(path, sizeof path, "%s/llm/models/llama_f32.gguf", HEDDLE_TESTS_DIR);
    hd_status status = hd_model_open(context, path, NULL, &model);
    snprintf(from, sizeof from, "%s/train/fixtures/peft/llama", HEDDLE_TESTS_DIR);
    if (!status) status = hd_peft_read(context, model, from, &peft);
    snprintf(path, sizeof path, "%s/memory.gguf", folder);
    if (!status) status = hd_adapter_write(peft, path);
    if (!status) status = hd_adapter_read(context, path, &gguf);
    if (!status) status = hd_model_adapt(model, (const hd_adapter *const[]){ peft, gguf }, NULL, 2);
    snprintf(path, sizeof path, "%s/memory", folder);
    if (!status) status = hd_peft_write(context, model, gguf, path);
    snprintf(path, sizeof path, "%s/samples.jsonl", folder);
    if (!status) status = hd_samples_read(context, model, path, &(hd_samples_desc){ .template_name = "chatml" }, &read);
    hd_samples_destroy(read);
    hd_adapter_destroy(gguf);
    hd_adapter_destroy(peft);
    hd_model_close(model);
    return status;
}

static void without_memory(void **state) {
    (void)state;
    static const char lines[] = "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"text\": \"cd\"}\n";
    char path[160];
    hd_context *context;
    snprintf(path, sizeof path, "%s/samples.jsonl", folder);
    write_file(path, lines, sizeof lines - 1);
    assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = "cpu", .cpu_threads = 1, .allocator = { resize, NULL } }, &context), HD_OK);
    if (all_of_it(context)) fail_msg("%s", hd_context_error(context));
    const uint64_t alive = hd_context_live_objects(context);
    bool reached = true;
    int failed = 0;
    for (uint64_t n = 1; reached; n += 1 + n / 50) {
        calls = 0;
        fails_at = n;
        const hd_status status = all_of_it(context);
        reached = calls >= n;
        fails_at = 0;
        if (status && status != HD_STATUS_OUT_OF_HOST_MEMORY) fail_msg("allocation %u: %s: %s", (unsigned)n, hd_status_name(status), hd_context_error(context));
        failed += status != HD_OK;
        hd_context_error(context);
        assert_int_equal(hd_context_live_objects(context), alive);
    }
    print_message("%d of the failures were seen\n", failed);
    assert_true(failed > 50);
    hd_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(adapters), cmocka_unit_test(hostile_adapters), cmocka_unit_test(refused), cmocka_unit_test(samples),
                                        cmocka_unit_test(packed_samples), cmocka_unit_test(broken_samples), cmocka_unit_test(without_memory) };
    return cmocka_run_group_tests(tests, begin, end);
}
