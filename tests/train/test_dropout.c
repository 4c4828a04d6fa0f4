/* test_dropout.c: where a model that learns whole loses values. A step of one token has each gradient as one product of what comes from behind
 * and what went in, so its zeros are what dropout took: of the embedding, of the inner values, of what attention and the feed-forward
 * layer add, each as often as the rate says, in places of their own, and none without dropout. */
#define _XOPEN_SOURCE 700
#include "devices.h"
#include <unistd.h>

enum { LAYERS = 2, WIDTH = 128, FORWARD = 256, VOCABULARY = 16, TOKEN = 3, MOST = 4 * WIDTH };
static char folder[] = "/tmp/heddle-dropout-XXXXXX";

/* A gradient [rows,columns], of which whole rows or whole columns are 0 where values were dropped. */
typedef struct trace {
    const char *name;
    bool        of_rows;
} trace;
enum { TRACES = 7 };
/* Of the embedding; of each layer what attention adds, the inner values, what the feed-forward layer adds. */
static const trace of_gpt2[TRACES] = {
    { "transformer.wpe.weight", false },
    { "transformer.h.0.attn.c_proj.weight", false }, { "transformer.h.0.mlp.c_proj.weight", true }, { "transformer.h.0.mlp.c_proj.weight", false },
    { "transformer.h.1.attn.c_proj.weight", false }, { "transformer.h.1.mlp.c_proj.weight", true }, { "transformer.h.1.mlp.c_proj.weight", false },
};
static const trace of_decoder[TRACES] = {
    { "model.embed_tokens.weight", false },
    { "model.layers.0.self_attn.o_proj.weight", true }, { "model.layers.0.mlp.down_proj.weight", false }, { "model.layers.0.mlp.down_proj.weight", true },
    { "model.layers.1.self_attn.o_proj.weight", true }, { "model.layers.1.mlp.down_proj.weight", false }, { "model.layers.1.mlp.down_proj.weight", true },
};

/* Which rows or columns are 0 of the first moments, a tenth of the gradients. Returns how many there are. */
static int64_t lost(const hd_safetensors *file, const trace *of, bool out_lost[MOST]) {
    char name[96];
    snprintf(name, sizeof name, "%s.exp_avg", of->name);
    const hd_safetensor *found = hd_safetensors_find(file, name);
    assert_non_null(found);
    const float *values = found->data;
    const int64_t rows = found->shape.dims[0], columns = found->shape.dims[1], count = of->of_rows ? rows : columns;
    assert_true(count <= MOST);
    for (int64_t i = 0; i < count; i++) {
        out_lost[i] = true;
        for (int64_t k = 0; k < (of->of_rows ? columns : rows); k++)
            out_lost[i] = out_lost[i] && values[of->of_rows ? i * columns + k : k * columns + i] == 0;
    }
    return count;
}

static void check_lost(const hd_safetensors *file, const trace *traces, const char *family, float rate) {
    bool is_lost[TRACES][MOST] = { { false } };
    for (int t = 0; t < TRACES; t++) {
        const int64_t count = lost(file, &traces[t], is_lost[t]);
        int zeros = 0;
        for (int64_t i = 0; i < count; i++) zeros += is_lost[t][i];
        const float share = (float)zeros / (float)count, most = rate > 0 ? 0.15f : 0; /* more than three deviations of 128 values */
        if (share < rate - most || share > rate + most)
            fail_msg("%s, %s: of %d %s are %d zeros, at a rate of %g", family, traces[t].name, (int)count, traces[t].of_rows ? "rows" : "columns",
                     zeros, (double)rate);
        for (int other = 0; other < t && rate > 0; other++) assert_memory_not_equal(is_lost[t], is_lost[other], WIDTH);
    }
}

static void every_place(void **state) {
    (void)state;
    static const char *const names[] = { "gpt2", "llama", "qwen3" };
    place at;
    assert_true(open_place("cpu", 2, &at));
    for (int family = HD_FAMILY_GPT2; family <= HD_FAMILY_QWEN3; family++)
        for (int drops = 0; drops < 2; drops++) {
            const hd_trainer_desc desc = { .model = { .layers = LAYERS, .width = WIDTH, .heads = 2, .context = 2, .vocabulary = VOCABULARY,
                                                      .family = (hd_family)family, .feed_forward = FORWARD },
                                           .batch = 1, .length = 1, .seed = 5, .schedule = { .rate = 1e-3 }, .dropout = drops ? 0.4f : 0 };
            char path[64], optimizer[96];
            hd_trainer *trainer;
            hd_train_report report;
            hd_safetensors *file;
            bool told;
            check_on(&at, hd_trainer_create(at.context, at.device, &desc, &trainer));
            check_on(&at, hd_trainer_step(trainer, &(int32_t){ TOKEN }, &(int32_t){ TOKEN + 1 }, &report, &told));
            snprintf(path, sizeof path, "%s/%s-%d", folder, names[family], drops);
            snprintf(optimizer, sizeof optimizer, "%s/optimizer.safetensors", path);
            check_on(&at, hd_trainer_save(trainer, path));
            check_on(&at, hd_safetensors_open(at.context, optimizer, &file));
            check_lost(file, family == HD_FAMILY_GPT2 ? of_gpt2 : of_decoder, names[family], desc.dropout);
            hd_safetensors_close(file);
            hd_trainer_destroy(trainer);
        }
    close_place(&at);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place) };
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : failed;
}
