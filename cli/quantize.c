/* quantize.c: `heddle quantize`: a model file with its weights in another type. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

/* What is told about the tensors, as they are done. */
typedef struct report {
    bool     json, started;
    const char *importance;
    uint64_t from_bytes, to_bytes, changed, kept, weighted;
    double   worst;
    char     worst_name[68];
} report;

static void print_tensor(const report *r, const hd_quantized_tensor *t) {
    if (r->json)
        cli_print("%s{\"tensor\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"elements\": %llu, \"bytes\": %llu, "
                  "\"error\": %.9g, \"weighted\": %s}",
                  r->started ? ",\n  " : "[\n  ", t->name, t->from, t->to, (unsigned long long)t->elements,
                  (unsigned long long)t->to_bytes, t->error, t->weighted ? "true" : "false");
    else if (strcmp(t->from, t->to) == 0) cli_print("%-40s %7s\n", t->name, t->from);
    else cli_print("%-40s %7s -> %-7s error %.6f\n", t->name, t->from, t->to, t->error);
}

static void take(void *user, const hd_quantized_tensor *t) {
    report *r = user;
    print_tensor(r, t);
    r->started = true;
    r->from_bytes += t->from_bytes;
    r->to_bytes += t->to_bytes;
    *(strcmp(t->from, t->to) == 0 ? &r->kept : &r->changed) += 1;
    r->weighted += t->weighted != 0;
    if (t->error <= r->worst) return;
    r->worst = t->error;
    snprintf(r->worst_name, sizeof r->worst_name, "%s", t->name);
}

static void summary(const report *r) {
    cli_cell from, to;
    cli_print("%llu tensors quantised, %llu kept: %s to %s of weights", (unsigned long long)r->changed,
              (unsigned long long)r->kept, cli_bytes(r->from_bytes, from), cli_bytes(r->to_bytes, to));
    if (r->worst > 0) cli_print("; the largest error is %.6f, of %s", r->worst, r->worst_name);
    else if (r->changed > 0) cli_print("; no element is off");
    if (r->importance)
        cli_print("; %llu of the quantised are not in %s and were written without weights",
                  (unsigned long long)(r->changed - r->weighted), r->importance);
    cli_print("\n");
}

/* Types of so few bits lose most where all columns count alike. */
static void warn(const char *type) {
    if (strncmp(type, "iq1", 3) == 0 || strncmp(type, "iq2", 3) == 0)
        cli_tell("heddle: %s without --importance loses much; `heddle importance` makes such a file\n", type);
}

/* KEY=TEXT of each --set. False after a message. */
static bool read_sayings(const cli_args *args, char **keys, hd_model_saying *out, size_t *out_count) {
    size_t at = 0;
    for (const char *set; (set = cli_next(args, "--set", &at)) != NULL; ++*out_count) {
        const char *equals = strchr(set, '=');
        if (!equals) return cli_usage(args->command, "--set takes KEY=TEXT, not \"%s\"", set), false;
        char *key = malloc((size_t)(equals - set) + 1);
        if (!key) return cli_fail(args->command, "no memory is left"), false;
        memcpy(key, set, (size_t)(equals - set));
        key[equals - set] = 0;
        keys[*out_count] = key;
        out[*out_count] = (hd_model_saying){ key, equals + 1 };
    }
    return true;
}

static int quantize(const cli_args *args, const hd_quantize_desc *desc, report *r) {
    cli_session session;
    int code = cli_session_open(args->command, &session);
    if (!code && hd_model_quantize(session.context, args->operands[0], args->operands[1], desc))
        code = cli_session_fail(&session, NULL);
    if (r->json && r->started) cli_print("\n]\n");
    if (!code && !r->json) summary(r);
    cli_session_close(&session);
    return code;
}

static int run(const cli_args *args) {
    report r = { .json = cli_get(args, "--json") != NULL, .importance = cli_get(args, "--importance") };
    size_t at = 0, count = 0, said = 0;
    const char **keep = calloc(args->given_count + 1, sizeof *keep);
    char **keys = calloc(args->given_count + 1, sizeof *keys);
    hd_model_saying *sayings = calloc(args->given_count + 1, sizeof *sayings);
    int code = keep && keys && sayings ? CLI_OK : cli_fail(args->command, "no memory is left");
    for (const char *part; !code && (part = cli_next(args, "--keep", &at)) != NULL;) keep[count++] = part;
    if (!code && !read_sayings(args, keys, sayings, &said)) code = CLI_USAGE;
    const hd_quantize_desc desc = {
        .type = args->operands[2], .keep = keep, .keep_count = count, .report = take, .report_user = &r,
        .importance = r.importance, .sayings = sayings, .saying_count = said
    };
    if (!code && !r.importance) warn(desc.type);
    if (!code) code = quantize(args, &desc, &r);
    for (size_t i = 0; i < said; i++) free(keys[i]);
    free(sayings);
    free(keys);
    free(keep);
    return code;
}

static const cli_option options[] = {
    { "--importance", "FILE.gguf", "which columns matter: what heddle importance or llama.cpp's llama-imatrix wrote" },
    { "--keep", "PART", "tensors whose name has PART in it keep their type; may be given several times" },
    { "--set", "KEY=TEXT",
      "what the file says of itself, such as general.name=Mine or general.languages=en,de" },
    CLI_OPTION_JSON,
};

const cli_command cli_quantize = {
    "quantize", "writes a model with its weights in another type", "quantize IN.gguf OUT.gguf TYPE [options]",
    "IN.gguf OUT.gguf TYPE", options, CLI_COUNT(options),
    "TYPE is f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q6_k, iq4_nl, iq4_xs, tq1_0, tq2_0, mxfp4_moe, or a mix, "
    "which\n"
    "gives some tensors more bits: q2_k, q3_k_s, q3_k_m, q3_k_l, q4_k_s, q4_k_m, q5_k_s, q5_k_m, iq3_s, iq3_xxs, "
    "iq2_m,\n"
    "iq2_s, iq2_xs, iq2_xxs, iq1_m, iq1_s, the last ones best with --importance. The weights of IN.gguf are f32, f16, "
    "bf16\n"
    "or q8_0, or bitnet.cpp's i2_s, tl1 or tl2; those of other types become f32, f16 or bf16. The error is the root\n"
    "mean square of what elements are off, over that of the elements.\n",
    "  heddle quantize model-f16.gguf model.gguf q4_k_m\n", run,
};
