/* 05_llm.c: a language model continues a text, word by word, on the best device there is. Arguments: a GGUF file and a text. */
#include <heddle_llm.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROMPT = 512 };

static bool show(void *user, const char *text, size_t bytes) {
    (void)user;
    fwrite(text, 1, bytes, stdout);
    return fflush(stdout) == 0; /* false would end the answer */
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "models/demo.gguf";
    const char *prompt = argc > 2 ? argv[2] : "And the king said";
    int32_t tokens[MOST_PROMPT];
    size_t count = MOST_PROMPT;
    hd_model *model = NULL;
    hd_session *session = NULL;
    hd_generated made = { 0 };

    hd_context *ctx;
    if (hd_context_create(NULL, &ctx)) return 1;
    hd_status s = hd_model_open(ctx, path, NULL, &model);
    if (!s) s = hd_session_create(model, NULL, &session); /* the weights go to the best device */
    if (!s) s = hd_model_tokenize(model, prompt, strlen(prompt), HD_TOKENIZE_ADD_SPECIAL, tokens, &count);
    const hd_generate_desc desc = {
        .tokens = tokens, .token_count = count, .max_tokens = 48, .on_text = show,
        .sampling = { .seed = 1, .temperature = 0.8f, .top_k = 40, .top_p = 0.95f },
    };
    if (!s) printf("on %s\n%s", hd_device_get_info(hd_session_device(session))->name, prompt);
    if (!s) s = hd_generate(session, &desc, NULL, &made);
    if (!s) printf("\n%u tokens, %.1f a second\n", (unsigned)made.token_count, 1e9 * made.token_count / (double)(made.answer_ns + 1));
    if (s) fprintf(stderr, "05_llm: %s\n", hd_context_error(ctx));
    hd_session_destroy(session);
    hd_model_close(model);
    hd_context_destroy(ctx);
    return s || made.token_count == 0 ? 1 : 0;
}
