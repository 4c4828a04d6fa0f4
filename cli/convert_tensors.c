/* convert_tensors.c: a model's tensors by the names that GGUF has for them. A tensor that no row knows is refused by
 * name, so that nothing is lost without a word; shapes are checked where the written file is opened. */
#include "cli/convert.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beginnings of names, which come in two forms, or of wrappers, and what they are here. */
static const struct { const char *from, *to; } beginnings[] = {
    { "model.language_model.", "model." },      { "language_model.model.", "model." },
    { "language_model.lm_head.", "lm_head." },  { "transformer.", "" },
    { "gpt_neox.", "" },                        { "bert.", "" },
};
/* Outside of the layers, without ".weight" and ".bias". */
static const cli_part outside[] = {
    { "model.embed_tokens", "token_embd", 0 },   { "model.norm", "output_norm", 0 },
    { "lm_head", "output", 0 },                  { "wte", "token_embd", 0 },
    { "wpe", "position_embd", CLI_AS_F32 },      { "ln_f", "output_norm", 0 },
    { "embed_in", "token_embd", 0 },             { "final_layer_norm", "output_norm", 0 },
    { "embed_out", "output", 0 },                { "word_embeddings", "token_embd", 0 },
    { "embeddings.word_embeddings", "token_embd", 0 },
    { "embeddings.position_embeddings", "position_embd", CLI_AS_F32 },
    { "embeddings.token_type_embeddings", "token_types", CLI_AS_F32 },
    { "embeddings.LayerNorm", "token_embd_norm", 0 }, { "emb_ln", "token_embd_norm", 0 },
};

/* One tensor of a shard on its way. */
typedef struct source {
    const hd_safetensor *tensor;
    char                 name[256];       /* as the lists above have it */
    char                 rest[256];       /* of a layer's: behind the layer's number */
    const char          *kind;            /* ".weight", ".bias", or "" */
    unsigned             layer, expert;
    bool                 further;         /* of a layer behind all others, that guesses further tokens */
} source;

static int bad(const cli_conversion *c, const source *s, const char *what) {
    return cli_fail(c->command, "tensor %.80s %s", s->tensor->name, what);
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }
static bool ends(const char *text, const char *with) {
    const size_t length = strlen(text), end = strlen(with);
    return length > end && strcmp(text + length - end, with) == 0;
}

/* The tensor whose name ends in `end` where this one's has its last `less` letters; NULL: there is none. */
static const hd_safetensor *beside(const cli_conversion *c, const source *s, size_t less, const char *end) {
    const hd_safetensor *found = NULL;
    char name[256];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(s->tensor->name) - less), s->tensor->name, end);
    for (size_t i = 0; i < c->shard_count && !found; i++) found = hd_safetensors_find(c->shards[i], name);
    return found;
}

/* Whether its numbers have 8 bits, and a factor for so many. */
static bool is_eights(const cli_conversion *c, const hd_safetensor *tensor) {
    return c->eights && strcmp(tensor->type, c->eights) == 0;
}

/* Whether the tensor belongs to none of what a GGUF file of the family holds. */
static bool is_left_out(const cli_conversion *c, const source *s) {
    const hd_safetensor *of = c->eights && ends(s->name, c->factors) ? beside(c, s, strlen(c->factors), "") : NULL;
    if (of && is_eights(c, of)) return true; /* it is read with its matrix */
    if (c->eights && ends(s->name, ".input_scale")) return true; /* for those who round what comes in, too */
    if (s->further) return true;
    for (size_t i = 0; i < CLI_COUNT(c->family->left_out) && c->family->left_out[i]; i++)
        if (begins(s->name, c->family->left_out[i])) return true;
    return strstr(s->name, "rotary_emb.inv_freq"); /* follows from the configuration */
}

/* Whether config.json says that the linear parts that begin so have no biases: some folders keep such, of no use. */
static int check_bias(const cli_conversion *c, const source *s) {
    static const struct { const char *key, *part; } rules[] = {
        { "attention_bias", "self_attn." }, { "attention_bias", "attention." }, { "use_qkv_bias", "self_attn." },
        { "qkv_bias", "self_attn." },       { "mlp_bias", "mlp." },             { "use_bias", "self_attn." },
        { "use_bias", "mlp." },             { "bias", "self_attention." },      { "bias", "mlp." },
    };
    for (size_t i = 0; i < CLI_COUNT(rules) && strcmp(s->kind, ".bias") == 0; i++)
        if (begins(s->rest, rules[i].part) && json_is_false(json_object_get(c->config.root, rules[i].key)))
            return cli_fail(c->command, "tensor %.80s is there, and config.json says by %s that it is not",
                            s->tensor->name, rules[i].key);
    return CLI_OK;
}

static bool read_name(const cli_conversion *c, const hd_safetensor *tensor, source *out) {
    const char *name = tensor->name, *to = "";
    int used = 0;
    *out = (source){ .tensor = tensor, .kind = "" };
    if (strlen(name) > 200) return false;
    for (size_t i = 0; i < CLI_COUNT(beginnings); i++)
        if (begins(name, beginnings[i].from)) {
            name += strlen(beginnings[i].from);
            to = beginnings[i].to;
            break;
        }
    snprintf(out->name, sizeof out->name, "%s%s", to, name);
    const char *dot = strrchr(out->name, '.');
    if (dot && (strcmp(dot, ".weight") == 0 || strcmp(dot, ".bias") == 0)) out->kind = dot;
    const char *number = out->name + strlen(c->family->layers);
    if (!begins(out->name, c->family->layers) || sscanf(number, "%4u.%n", &out->layer, &used) != 1 || used == 0)
        return true;
    if (out->layer < c->layers) snprintf(out->rest, sizeof out->rest, "%s", number + used);
    else out->further = json_integer_value(json_object_get(c->config.root, "num_nextn_predict_layers")) > 0;
    return true;
}

/* Whether the name, up to `end`, is the part's; a '*' is a number. */
static bool matches(const char *part, const char *name, const char *end, unsigned *out_expert) {
    for (; *part; part++) {
        int used = 0;
        if (*part != '*') {
            if (name == end || *name++ != *part) return false;
        } else if (*name < '0' || *name > '9' || sscanf(name, "%4u%n", out_expert, &used) != 1) return false;
        name += used;
    }
    return name == end;
}

static bool is_part(const cli_part *part, source *s) {
    const bool whole = !part->to || strchr(part->to, '.');
    const char *end = s->rest + strlen(s->rest);
    if (!whole && !*s->kind) return false;
    return matches(part->from, s->rest, whole ? end : end - strlen(s->kind), &s->expert);
}

/* ---- shapes ---- */

static bool is_float(hd_dtype type) { return type == HD_F32 || type == HD_F16 || type == HD_BF16; }

/* A matrix of numbers in 8 bits becomes bf16, as transformers makes it; its factors lie beside it. */
static int find_factors(const cli_conversion *c, const source *s, cli_converted *t) {
    const hd_safetensor *factors = beside(c, s, 0, c->factors);
    if (!factors)
        return cli_fail(c->command, "tensor %.80s has no weight%s beside it", s->tensor->name, c->factors);
    const uint64_t down = (t->old_rows + c->block_rows - 1) / c->block_rows,
                   across = (t->columns + c->block_columns - 1) / c->block_columns;
    const hd_shape *has = &factors->shape;
    const bool each = has->rank == 2 && (uint64_t)has->dims[0] == down && (uint64_t)has->dims[1] == across,
               one = down * across == 1 && (has->rank == 0 || (has->rank == 1 && has->dims[0] == 1));
    if (t->axes != 2 || t->experts || t->transposed || !is_float(factors->dtype) || (!each && !one))
        return bad(c, s, "is no matrix in 8 bits with the factors that quantization_config tells of");
    t->from = HD_U8;
    t->e5m2 = strcmp(c->eights, "F8_E5M2") == 0;
    t->to = t->to == HD_F32 ? HD_F32 : HD_BF16;
    t->factors = factors;
    t->block_rows = c->block_rows;
    t->block_columns = c->block_columns;
    return CLI_OK;
}

/* The old tensor's axes beside that of the experts, and what the form makes of them. Norms and biases become f32, as
 * the families want them. */
static int shape(const cli_conversion *c, const source *s, unsigned form, cli_converted *t) {
    const hd_shape *old = &s->tensor->shape;
    const uint32_t each = (form & CLI_EACH) != 0, lone = (form & CLI_ONE_ROW) != 0 && old->rank == 2;
    const bool eights = is_eights(c, s->tensor);
    if ((!is_float(s->tensor->dtype) && !eights) || old->rank < 1 + each || old->rank > 2 + each)
        return cli_fail(c->command, "tensor %.80s is %.16s of %u axes, which is not what a %s has there",
                        s->tensor->name, s->tensor->type, (unsigned)old->rank, c->family->class_name);
    if (lone && old->dims[0] != 1) return bad(c, s, "has more than one row");
    const int64_t *dims = old->dims + each + lone;
    t->axes = old->rank - each - lone;
    t->transposed = (form & CLI_TRANSPOSED) && t->axes == 2;
    t->data = s->tensor->data;
    t->from = s->tensor->dtype;
    t->to = t->axes == 1 || (form & CLI_AS_F32) ? HD_F32 : t->from;
    t->experts = each ? (uint64_t)old->dims[0] : 0;
    t->old_rows = (uint64_t)dims[t->transposed ? 1 : 0];
    t->columns = t->axes == 1 ? 1 : (uint64_t)dims[t->transposed ? 0 : 1];
    return eights ? find_factors(c, s, t) : CLI_OK;
}

/* Blocks [experts, rows, columns / 32, 16] of bytes, and scales [experts, rows, columns / 32]. */
static int blocks(const cli_conversion *c, const source *s, cli_converted *t) {
    const hd_shape *old = &s->tensor->shape;
    const hd_safetensor *scales = beside(c, s, strlen("_blocks"), "_scales");
    if (!scales) return bad(c, s, "has no scales beside it");
    if (s->tensor->dtype != HD_U8 || old->rank != 4 || old->dims[3] != 16 || scales->dtype != HD_U8 ||
        scales->shape.rank != 3 || memcmp(scales->shape.dims, old->dims, 3 * sizeof *old->dims) != 0)
        return bad(c, s, "is no MXFP4 of blocks of 16 bytes with a scale for each");
    t->axes = 2;
    t->data = s->tensor->data;
    t->scales = scales->data;
    t->from = t->to = HD_MXFP4;
    t->experts = (uint64_t)old->dims[0];
    t->old_rows = (uint64_t)old->dims[1];
    t->columns = (uint64_t)old->dims[2] * 32;
    return CLI_OK;
}

/* Bytes [rows / 4, columns], and a factor beside them. */
static int packed(const cli_conversion *c, const source *s, cli_converted *t) {
    const hd_shape *old = &s->tensor->shape;
    const hd_safetensor *scale = beside(c, s, 0, "_scale");
    if (!scale) return bad(c, s, "has no weight_scale beside it");
    if (s->tensor->dtype != HD_U8 || old->rank != 2) return bad(c, s, "is no ternary matrix in bytes");
    t->axes = 2;
    t->data = s->tensor->data;
    t->from = HD_U8;
    t->to = HD_F16;
    t->packed = true;
    t->old_rows = (uint64_t)old->dims[0];
    t->columns = (uint64_t)old->dims[1];
    return CLI_OK;
}

/* The part of all heads' keys, or of their values, in the matrix that makes both of a short vector:
 * [heads,vector,keys], or [heads,values,vector]. */
static int of_heads(const cli_conversion *c, const source *s, bool keys, cli_converted *t) {
    const uint64_t each = t->old_rows / c->heads, length = t->columns;
    if (t->axes != 2 || t->from == HD_U8 || t->old_rows % c->heads || each <= c->latent_keys)
        return bad(c, s, "is no matrix of floats for the keys and values of all heads");
    t->experts = c->heads;
    t->apart = each * length;
    t->transposed = keys;
    t->step = 1;
    t->first = keys ? 0 : c->latent_keys;
    t->rows = keys ? length : each - c->latent_keys;
    t->columns = keys ? c->latent_keys : length;
    t->old_rows = keys ? length : each;
    return CLI_OK;
}

/* Which rows of the old tensor the new one has, and in which order. */
static int order(const cli_conversion *c, const source *s, unsigned form, cli_converted *t) {
    if (form & (CLI_HEAD_KEYS | CLI_HEAD_VALUES)) return of_heads(c, s, form & CLI_HEAD_KEYS, t);
    const bool halves = form & (CLI_FIRST_HALF | CLI_SECOND_HALF), others = form & (CLI_EVEN | CLI_ODD);
    const bool turns = (c->family->traits & CLI_NEIGHBOURS) && (form & (CLI_QUERIES | CLI_KEYS));
    const uint64_t heads = form & CLI_QUERIES ? c->heads : c->kv_heads;
    t->rows = t->old_rows;
    t->step = 1;
    if (halves || others) {
        if (t->rows % 2) return bad(c, s, "has rows of an odd number, and is made of two");
        t->rows /= 2;
        t->step = others ? 2 : 1;
        t->first = form & CLI_SECOND_HALF ? t->rows : form & CLI_ODD ? 1 : 0;
    } else if (turns) {
        t->order = CLI_BY_TURNS;
        t->size = t->rows / heads;
        if (t->rows % heads || t->size % 2)
            return cli_fail(c->command, "tensor %.80s: its %llu rows are no %llu heads of an even size",
                            s->tensor->name, (unsigned long long)t->rows, (unsigned long long)heads);
    } else if (form & CLI_GROUPED) {
        t->order = CLI_BY_GROUPS;
        t->groups = c->kv_heads;
        t->queries = c->heads / c->kv_heads;
        t->size = c->head_size;
        if (t->rows != t->groups * (t->queries + 2) * t->size)
            return bad(c, s, "has not the rows of all queries, keys and values");
    }
    return CLI_OK;
}

/* What a model of bitnet rounds its weights in units of: the mean of their sizes. */
static float mean_of(const cli_converted *t) {
    const uint64_t count = t->old_rows * t->columns, size = hd_dtype_bytes(t->from, 1);
    float values[256];
    double sum = 0;
    for (uint64_t i = 0; i < count; i += CLI_COUNT(values)) {
        const uint64_t some = count - i < CLI_COUNT(values) ? count - i : CLI_COUNT(values);
        if (hd_dequantize(t->from, (const uint8_t *)t->data + i * size, some, values)) return 0;
        for (uint64_t k = 0; k < some; k++) sum += fabs((double)values[k]);
    }
    return (float)fmax(sum / (double)count, 1e-5);
}

/* ---- tensors ---- */

/* The place of a new one; NULL: there is no more room. */
static cli_converted *next(cli_conversion *c) {
    return c->tensor_count < c->tensor_room ? &c->tensors[c->tensor_count++] : NULL;
}

/* An expert's matrix goes to those of its layer: the first one makes the tensor. */
static int stack(cli_conversion *c, const source *s, const cli_converted *made) {
    cli_converted *t = NULL;
    if (s->expert >= c->experts) return bad(c, s, "is of an expert that config.json does not know");
    for (size_t i = c->tensor_count; i-- > 0 && !t;)
        if (strcmp(c->tensors[i].name, made->name) == 0) t = &c->tensors[i];
    if (!t) {
        if (c->stack_count + c->experts > c->stack_room || !(t = next(c)))
            return bad(c, s, "is of a layer that has not all experts");
        *t = *made;
        t->data = NULL;
        t->each = c->stacks + c->stack_count;
        t->each_factors = (const hd_safetensor **)(c->stacks + c->stack_room) + c->stack_count;
        t->experts = c->experts;
        c->stack_count += c->experts;
    }
    if (!t->each || t->from != made->from || t->old_rows != made->old_rows || t->columns != made->columns ||
        made->axes != 2)
        return bad(c, s, "has another type or shape than that of another expert");
    if (t->each[s->expert]) return bad(c, s, "is there twice");
    t->each[s->expert] = made->data;
    t->each_factors[s->expert] = made->factors;
    return CLI_OK;
}

/* A matrix of floats that become ternary, and their factor. */
static int put_rounded(cli_conversion *c, const source *s, const cli_converted *made) {
    cli_converted *t = next(c), *factor = next(c);
    if (!t || !factor) return bad(c, s, "is one too many");
    *t = *made;
    t->to = HD_F16;
    t->mean = mean_of(t);
    if (!isfinite(t->mean) || t->mean <= 0) return bad(c, s, "has what is no number");
    *factor = (cli_converted){ .data = &t->mean, .from = HD_F32, .to = HD_F32, .axes = 1, .rows = 1, .columns = 1,
                               .old_rows = 1, .step = 1 };
    const size_t stem = strlen(made->name) - strlen(s->kind);
    snprintf(factor->name, sizeof factor->name, "%.*s.scale", (int)stem, made->name);
    return CLI_OK;
}

static int put(cli_conversion *c, const source *s, const cli_part *part) {
    cli_converted made = { 0 }, *t;
    const bool whole = strchr(part->to, '.');
    if (*s->rest) snprintf(made.name, sizeof made.name, "blk.%u.%s%s", s->layer, part->to, whole ? "" : s->kind);
    else snprintf(made.name, sizeof made.name, "%s%s", part->to, s->kind);
    const bool in_bytes = (part->form & CLI_TERNARY) && s->tensor->dtype == HD_U8;
    int code = part->form & CLI_BLOCKS ? blocks(c, s, &made)
               : in_bytes              ? packed(c, s, &made)
                                       : shape(c, s, part->form, &made);
    if (!code) code = order(c, s, part->form, &made);
    if (code) return code;
    if (in_bytes) made.rows *= 4;
    if ((part->form & CLI_TERNARY) && made.axes == 2 && c->rounds && !in_bytes) return put_rounded(c, s, &made);
    if ((c->family->traits & CLI_NORMS_PLUS_1) && made.axes == 1 && strcmp(s->kind, ".weight") == 0) made.plus = 1;
    if (strchr(part->from, '*')) return stack(c, s, &made);
    if (!(t = next(c))) return bad(c, s, "is one too many");
    *t = made;
    return CLI_OK;
}

/* One tensor of a shard: as many of the new file as rows tell of it. */
static int take(cli_conversion *c, const hd_safetensor *tensor) {
    source s;
    bool known = read_name(c, tensor, &s);
    if (known && is_left_out(c, &s)) return CLI_OK;
    const size_t stem = strlen(s.name) - strlen(s.kind);
    for (size_t i = 0; i < CLI_COUNT(outside) && known && !*s.rest && *s.kind; i++)
        if (strlen(outside[i].from) == stem && memcmp(outside[i].from, s.name, stem) == 0)
            return put(c, &s, &outside[i]);
    int code = CLI_OK;
    known = false;
    for (const cli_part *part = c->family->parts; part->from && !code && *s.rest; part++) {
        if (!is_part(part, &s)) continue;
        known = true;
        if (part->to) code = put(c, &s, part);
    }
    if (!code) code = check_bias(c, &s);
    if (!known) return cli_fail(c->command, "tensor %.80s: heddle does not know what it is in a %s", tensor->name,
                                c->family->class_name);
    return code;
}

static cli_converted *named(const cli_conversion *c, const char *name) {
    for (size_t i = 0; i < c->tensor_count; i++)
        if (strcmp(c->tensors[i].name, name) == 0) return &c->tensors[i];
    return NULL;
}

/* Where the output is the table of tokens, a second copy of it is left out; where it is not, it has to be there. */
static int check_output(cli_conversion *c) {
    cli_converted *output = named(c, "output.weight"), *table = named(c, "token_embd.weight");
    if (!output && !c->tied && !(c->family->traits & CLI_ENCODES))
        return cli_fail(c->command, "%.200s: the output's weight is missing, and tie_word_embeddings of config.json "
                                    "does not say that it is the embedding", c->folder);
    if (!output || !c->tied) return CLI_OK;
    if (!table || table->from != output->from || table->rows != output->rows || table->columns != output->columns ||
        memcmp(table->data, output->data, (size_t)(hd_dtype_bytes(table->from, 1) * table->rows * table->columns)) != 0)
        return cli_fail(c->command, "%.200s: the output's weight is not the embedding, and tie_word_embeddings of "
                                    "config.json says that it is", c->folder);
    *output = c->tensors[--c->tensor_count];
    return CLI_OK;
}

static int hand_over(cli_conversion *c) {
    for (size_t i = 0; i < c->tensor_count; i++) {
        cli_converted *t = &c->tensors[i];
        const int64_t experts = (int64_t)t->experts, rows = (int64_t)t->rows, columns = (int64_t)t->columns;
        for (uint64_t k = 0; k < t->experts && t->each; k++)
            if (!t->each[k])
                return cli_fail(c->command, "%.200s: expert %llu of %s is missing", c->folder, (unsigned long long)k,
                                t->name);
        const hd_shape of_experts = t->axes == 1 ? HD_SHAPE(experts, rows) : HD_SHAPE(experts, rows, columns),
                       of_one = t->axes == 1 ? HD_SHAPE(rows) : HD_SHAPE(rows, columns);
        hd_model_writer_tensor(c->writer, t->name, t->to, t->experts ? of_experts : of_one, cli_convert_fill, t);
    }
    return CLI_OK;
}

/* ---- shards ---- */

static int open_shard(cli_conversion *c, const char *name) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", c->folder, name) >= (int)sizeof path)
        return cli_fail(c->command, "%.200s: the path is too long", c->folder);
    if (c->shard_count == CLI_CONVERT_SHARDS) return cli_fail(c->command, "more than %d shards", CLI_CONVERT_SHARDS);
    if (hd_safetensors_open(c->session->context, path, &c->shards[c->shard_count]))
        return cli_session_fail(c->session, NULL);
    c->shard_count++;
    return CLI_OK;
}

/* The files that the index names, each once; a name that leads out of the folder is refused. */
static int open_shards(cli_conversion *c) {
    int code = CLI_OK;
    json_t *index = cli_convert_json(c, "model.safetensors.index.json", false, &code), *seen = json_object(), *file;
    const char *tensor;
    if (!code && !seen) code = cli_fail(c->command, "no memory is left");
    if (!code && !index) code = open_shard(c, "model.safetensors");
    if (!code && index && json_object_size(json_object_get(index, "weight_map")) == 0)
        code = cli_fail(c->command, "%.200s/model.safetensors.index.json: weight_map is missing", c->folder);
    json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
        const char *name = json_string_value(file);
        if (code || (name && json_object_get(seen, name))) continue;
        if (!name || strpbrk(name, "/\\:") || name[0] == '.' || strlen(name) != json_string_length(file) ||
            json_object_set_new(seen, name, json_true()))
            code = cli_fail(c->command, "%.200s/model.safetensors.index.json: the file of %.60s is none of the folder",
                            c->folder, tensor);
        else code = open_shard(c, name);
    }
    json_decref(seen);
    json_decref(index);
    return code;
}

int cli_convert_tensors(cli_conversion *c) {
    size_t count = 0;
    int code = open_shards(c);
    for (size_t i = 0; i < c->shard_count; i++) count += hd_safetensors_count(c->shards[i]);
    c->tensor_room = 2 * count + 2; /* a tensor may be made of two; and divisors of angles */
    c->stack_room = count + c->experts; /* of layers that have all their experts */
    c->tensors = code ? NULL : calloc(c->tensor_room, sizeof *c->tensors);
    c->stacks = code ? NULL : calloc(2 * c->stack_room, sizeof *c->stacks);
    if (!code && (!c->tensors || !c->stacks)) code = cli_fail(c->command, "no memory is left");
    if (!code) code = cli_convert_rope(c);
    for (size_t i = 0; i < c->shard_count && !code; i++)
        for (size_t k = 0; k < hd_safetensors_count(c->shards[i]) && !code; k++)
            code = take(c, hd_safetensors_get(c->shards[i], k));
    if (!code) code = check_output(c);
    return code ? code : hand_over(c);
}
