/* prompts.c: `heddle fit --prompts`: what prompts take by the sizes of the pieces that they run in. */
#include "cli/llm.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_LENGTH = 1 << 24, COLUMNS = 7 };

/* ---- lengths ---- */

/* The number in the line, which the text goes on behind. */
static bool read_line(const char **text, uint32_t *out) {
    cli_cell line;
    uint64_t length = 0;
    const size_t bytes = strcspn(*text, "\r\n");
    snprintf(line, sizeof line, "%.*s", (int)(bytes < sizeof line ? bytes : sizeof line - 1), *text);
    *text += bytes;
    *text += **text == '\r';
    *text += **text == '\n';
    *out = cli_number(line, MOST_LENGTH, &length) ? (uint32_t)length : 0;
    return *out > 0;
}

int cli_prompts_read(const cli_command *command, const char *path, cli_prompts *out) {
    size_t bytes, count = 0;
    char *text = cli_read_text(command, path, MOST_BYTES, &bytes);
    *out = (cli_prompts){ 0 };
    if (!text) return CLI_FAILED;
    out->lengths = calloc(bytes / 2 + 1, sizeof *out->lengths); /* a line has a digit and an end */
    int code = out->lengths ? CLI_OK : cli_fail(command, "no memory is left");
    for (const char *at = text; at < text + bytes && !code; count++)
        if (!read_line(&at, &out->lengths[count]))
            code = cli_fail(command, "%s: line %zu has no length of a prompt, a number of 1 to %d", path, count + 1,
                            MOST_LENGTH);
    free(text);
    if (!code && count == 0) code = cli_fail(command, "%s has no lengths of prompts, one a line", path);
    out->count = count;
    return code;
}

/* ---- what they take ---- */

/* By the sizes that the session has, by the best that need no more plans, and by the best of all. */
typedef struct use {
    hd_piece_usage usage;
    uint64_t       scratch_bytes;
} use;
enum { WISHED, FOUND, BEST, USES };

static uint32_t count_sizes(const uint32_t sizes[HD_MAX_PIECES]) {
    uint32_t count = 0;
    while (count < HD_MAX_PIECES && sizes[count]) count++;
    return count;
}

static hd_status find_uses(const cli_llm *llm, const cli_prompts *prompts, uint32_t chunk, use uses[USES]) {
    hd_session_desc desc = llm->desc;
    const uint32_t run_rows = hd_piece_run_rows(desc.device);
    if (!desc.pieces[0]) desc.chunk = chunk;
    hd_status status = hd_piece_use(&desc, prompts->lengths, prompts->count, run_rows, &uses[WISHED].usage);
    for (uint32_t most = 1; most <= HD_MAX_PIECES && !status; most++) {
        hd_piece_usage *best = &uses[BEST].usage;
        status = hd_piece_sizes(&desc, prompts->lengths, prompts->count, run_rows, most, desc.pieces);
        if (!status) status = hd_piece_use(&desc, prompts->lengths, prompts->count, run_rows, best);
        if (best->plans <= uses[WISHED].usage.plans) uses[FOUND].usage = *best;
    }
    for (int i = 0; i < USES && !status; i++) {
        hd_fit fit = { 0 };
        memcpy(desc.pieces, uses[i].usage.sizes, sizeof desc.pieces);
        status = hd_model_fit(llm->model, &desc, &fit);
        uses[i].scratch_bytes = fit.device_scratch_bytes + fit.cpu_scratch_bytes;
    }
    return status;
}

static void print_uses(const cli_llm *llm, const use uses[USES], size_t count) {
    static const char *const heads[COLUMNS] = { "", "PIECES", "PADDED", "RUNS", "PLANS", "HITS", "SCRATCH" };
    cli_cell cells[USES + 1][COLUMNS];
    size_t rows = 1;
    cli_heads(cells[0], heads, COLUMNS);
    for (int i = 0; i < USES; i++) {
        const hd_piece_usage *u = &uses[i].usage;
        if (i == BEST && memcmp(u->sizes, uses[FOUND].usage.sizes, sizeof u->sizes) == 0) break;
        cli_cell *row = cells[rows++];
        const char *wished = llm->desc.pieces[0] ? "--pieces" : "by default";
        snprintf(row[0], CLI_CELL, "%s", i == FOUND ? "found" : i == BEST ? "more plans" : wished);
        row[1][0] = 0;
        for (uint32_t at = 0; at < count_sizes(u->sizes); at++)
            snprintf(row[1] + strlen(row[1]), CLI_CELL - strlen(row[1]), "%s%u", at ? "," : "", (unsigned)u->sizes[at]);
        snprintf(row[2], CLI_CELL, "%.1f %%", 100 * (double)(u->rows - u->tokens) / (double)u->rows);
        snprintf(row[3], CLI_CELL, "%llu", (unsigned long long)u->runs);
        snprintf(row[4], CLI_CELL, "%llu", (unsigned long long)u->plans);
        snprintf(row[5], CLI_CELL, "%.2f %%", 100 * (double)(u->runs - u->plans) / (double)u->runs);
        cli_bytes(uses[i].scratch_bytes, row[6]);
    }
    cli_print("\n%zu prompts of %llu tokens; HITS: runs that found their plan\n", count,
              (unsigned long long)uses[WISHED].usage.tokens);
    cli_table(cells[0], rows, COLUMNS, 0x7C);
}

static void put_uses(const use uses[USES], size_t count, json_t *root, bool *ok) {
    static const char *const names[USES] = { "wished", "found", "best" };
    json_t *prompts = json_object();
    cli_put(prompts, "count", json_integer((json_int_t)count), ok);
    cli_put(prompts, "tokens", json_integer((json_int_t)uses[WISHED].usage.tokens), ok);
    for (int i = 0; i < USES; i++) {
        const hd_piece_usage *u = &uses[i].usage;
        json_t *one = json_object(), *sizes = json_array();
        for (uint32_t at = 0; at < count_sizes(u->sizes); at++)
            if (json_array_append_new(sizes, json_integer(u->sizes[at]))) *ok = false;
        cli_put(one, "pieces", sizes, ok);
        cli_put(one, "rows", json_integer((json_int_t)u->rows), ok);
        cli_put(one, "runs", json_integer((json_int_t)u->runs), ok);
        cli_put(one, "plans", json_integer((json_int_t)u->plans), ok);
        cli_put(one, "scratch_bytes", json_integer((json_int_t)uses[i].scratch_bytes), ok);
        cli_put(prompts, names[i], one, ok);
    }
    cli_put(root, "prompts", prompts, ok);
}

int cli_prompts_tell(cli_llm *llm, const cli_prompts *prompts, uint32_t chunk, json_t *root, bool *ok) {
    use uses[USES] = { 0 };
    if (find_uses(llm, prompts, chunk, uses)) return cli_session_fail(&llm->cli, NULL);
    if (root) put_uses(uses, prompts->count, root, ok);
    else print_uses(llm, uses, prompts->count);
    return CLI_OK;
}
