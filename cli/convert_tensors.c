/* convert_tensors.c: a model's tensors by the names that GGUF has for them. A tensor that no row knows is refused by
 * name, so that nothing is lost without a word; shapes are checked by whoever opens the file. */
#include "cli/convert.h"
#include <stdlib.h>
#include <string.h>

/* Names of a layer's parts, behind "model.layers.N." and "blk.N.". */
static const struct { const char *from, *to; } parts[] = {
    { "input_layernorm", "attn_norm" },         { "post_attention_layernorm", "ffn_norm" },
    { "self_attn.q_proj", "attn_q" },
    { "self_attn.k_proj", "attn_k" },           { "self_attn.v_proj", "attn_v" },
    { "self_attn.o_proj", "attn_output" },
    { "self_attn.qkv_proj", "attn_qkv" },       { "self_attn.q_norm", "attn_q_norm" },
    { "self_attn.k_norm", "attn_k_norm" },
    { "mlp.gate_proj", "ffn_gate" },            { "mlp.up_proj", "ffn_up" },
    { "mlp.gate_up_proj", "ffn_up" },
    { "mlp.down_proj", "ffn_down" },
};
static const struct { const char *from, *to; } outside[] = {
    { "model.embed_tokens.weight", "token_embd.weight" }, { "model.norm.weight", "output_norm.weight" },
    { "lm_head.weight", "output.weight" },
};

enum { NAME_ROOM = 80 };

/* GGUF's name; false where there is none. An empty one: the tensor is left out. */
static bool name_of(const cli_conversion *c, const char *from, char out[NAME_ROOM]) {
    unsigned layer;
    int used = 0;
    out[0] = 0;
    if (strstr(from, "rotary_emb.inv_freq")) return true; /* follows from the configuration */
    if (c->tied && strcmp(from, "lm_head.weight") == 0) return true;
    for (size_t i = 0; i < CLI_COUNT(outside); i++)
        if (strcmp(from, outside[i].from) == 0) return snprintf(out, NAME_ROOM, "%s", outside[i].to) > 0;
    if (strlen(from) > 200 || sscanf(from, "model.layers.%4u.%n", &layer, &used) != 1 || used == 0 ||
        layer >= c->layers)
        return false;
    const char *rest = from + used, *dot = strrchr(rest, '.');
    if (!dot || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0)) return false;
    for (size_t i = 0; i < CLI_COUNT(parts); i++)
        if (strlen(parts[i].from) == (size_t)(dot - rest) && memcmp(parts[i].from, rest, (size_t)(dot - rest)) == 0)
            return snprintf(out, NAME_ROOM, "blk.%u.%s%s", layer, parts[i].to, dot) > 0;
    return false;
}

/* Where row `row` of the new tensor lies in the old one: within a head GGUF has the two halves in turn. */
static uint64_t row_of(const cli_converted *t, uint64_t row) {
    if (t->heads == 0) return row;
    const uint64_t head = row / t->head_rows, i = row % t->head_rows;
    return head * t->head_rows + i % 2 * (t->head_rows / 2) + i / 2;
}

/* Elements from .. from + bytes of the new tensor. */
static bool fill(void *user, uint64_t from, uint64_t bytes, void *out) {
    const cli_converted *t = user;
    const uint64_t size = hd_dtype_bytes(t->to, 1), old_size = hd_dtype_bytes(t->from, 1), end = (from + bytes) / size;
    uint8_t *to = out;
    for (uint64_t at = from / size; at < end;) {
        const uint64_t row = at / t->row, column = at % t->row,
                       count = t->row - column < end - at ? t->row - column : end - at;
        const uint8_t *source = (const uint8_t *)t->data + (row_of(t, row) * t->row + column) * old_size;
        if (t->from == t->to) memcpy(to, source, count * size);
        else if (hd_dequantize(t->from, source, count, (float *)(void *)to)) return false; /* to f32 */
        to += count * size;
        at += count;
    }
    return true;
}

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

/* One tensor of a shard. Norms and biases become f32, as the families want them. */
static int put(cli_conversion *c, const hd_safetensor *from) {
    char name[NAME_ROOM];
    if (!name_of(c, from->name, name))
        return cli_fail(c->command, "tensor %.80s: heddle does not know what it is in a %s", from->name,
                        c->family->class_name);
    if (name[0] == 0) return CLI_OK;
    const bool is_float = from->dtype == HD_F32 || from->dtype == HD_F16 || from->dtype == HD_BF16;
    if (!is_float || from->shape.rank < 1 || from->shape.rank > 2)
        return cli_fail(c->command, "tensor %.80s is %.16s of %u axes; F32, F16 or BF16 of one or two are converted",
                        from->name, from->type, (unsigned)from->shape.rank);
    cli_converted *t = &c->tensors[c->tensor_count++];
    const bool queries = strstr(name, ".attn_q."), keys = strstr(name, ".attn_k.");
    const uint64_t rows = (uint64_t)from->shape.dims[0];
    t->data = from->data;
    t->from = from->dtype;
    t->to = from->shape.rank == 1 ? HD_F32 : from->dtype;
    t->row = from->shape.rank == 1 ? 1 : (uint64_t)from->shape.dims[1];
    if (c->family->turns_neighbours && (queries || keys)) {
        t->heads = queries ? c->heads : c->kv_heads;
        t->head_rows = rows / t->heads;
        if (rows % t->heads != 0 || t->head_rows % 2 != 0)
            return cli_fail(c->command, "tensor %.80s: its %llu rows are no %llu heads of an even size", from->name,
                            (unsigned long long)rows, (unsigned long long)t->heads);
    } else if (from->shape.rank == 1) {
        t->row = rows;
    }
    hd_model_writer_tensor(c->writer, name, t->to, from->shape, fill, t);
    return CLI_OK;
}

int cli_convert_tensors(cli_conversion *c) {
    size_t count = 1; /* one that the configuration may make */
    int code = open_shards(c);
    for (size_t i = 0; i < c->shard_count; i++) count += hd_safetensors_count(c->shards[i]);
    c->tensors = code ? NULL : calloc(count, sizeof *c->tensors);
    if (!code && !c->tensors) code = cli_fail(c->command, "no memory is left");
    if (!code) code = cli_convert_rope(c);
    if (!code && c->tensor_count > 0)
        hd_model_writer_tensor(c->writer, "rope_freqs.weight", HD_F32, HD_SHAPE((int64_t)c->tensors[0].row), fill,
                               &c->tensors[0]);
    for (size_t i = 0; i < c->shard_count && !code; i++)
        for (size_t k = 0; k < hd_safetensors_count(c->shards[i]) && !code; k++)
            code = put(c, hd_safetensors_get(c->shards[i], k));
    return code;
}
