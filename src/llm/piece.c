/* piece.c: the sizes of the pieces that prompts run in: by default, as a session wishes, and by the lengths of prompts
 * that came. */
#include "llm/session.h"

enum { MOST_ROWS = HDL_MOST_PIECE, USUAL_ROWS = 512, LEAST_ROWS = 8, CLASSES = MOST_ROWS / LEAST_ROWS,
       MOST_LENGTH = 1 << 24, MOST_RUN_ROWS = 1 << 16 };

/* ---- the sizes of a session ---- */

/* `chunk`, a half of it, a quarter, ..., and the least. */
static void default_sizes(uint32_t chunk, uint32_t most, uint32_t out[HD_MAX_PIECES]) {
    uint32_t rows = MOST_ROWS, count = 0;
    while (rows > LEAST_ROWS && (rows > most || rows > chunk)) rows /= 2;
    memset(out, 0, HD_MAX_PIECES * sizeof *out);
    for (; rows > LEAST_ROWS && count < HD_MAX_PIECES - 1; rows /= 2) out[count++] = rows;
    out[count] = LEAST_ROWS;
}

const char *hdl_pieces_of(const hd_session_desc *desc, uint32_t context, uint32_t out[HD_MAX_PIECES],
                          uint32_t *out_at) {
    const uint32_t pages = context / HDL_PAGE_TOKENS + (context % HDL_PAGE_TOKENS != 0);
    uint32_t most = context && pages < MOST_ROWS / HDL_PAGE_TOKENS ? pages * HDL_PAGE_TOKENS : MOST_ROWS;
    bool any = false;
    for (uint32_t at = 0; at < HD_MAX_PIECES; at++) any = any || desc->pieces[at];
    if (!any) {
        default_sizes(desc->chunk ? desc->chunk : USUAL_ROWS, most, out);
        return NULL;
    }
    if (desc->chunk && desc->chunk < most) most = desc->chunk;
    for (uint32_t at = 0; at < HD_MAX_PIECES; at++) {
        const uint32_t rows = out[at] = desc->pieces[at], before = at > 0 ? out[at - 1] : rows;
        *out_at = at;
        if (rows % LEAST_ROWS) return "is no multiple of 8";
        if (rows > most) return "is above 2048, the chunk or the context";
        if (at > 0 && rows && rows >= before) return "is not below the size before it; give the largest first";
        if (at == 0 && rows == 0) return "comes before sizes; give these without a gap";
    }
    return NULL;
}

/* What prompts take in rows, and run_rows for each run, by how many eights they need, and the first piece of each: the
 * smallest size that holds it, or the one below where that and what is left behind it take less. */
typedef struct pieces {
    uint64_t taken[CLASSES + 1];
    uint32_t first[CLASSES + 1]; /* in eights */
} pieces;

/* Those that need more than `from` and at most `to`, sizes beside each other; from 0: `to` is the smallest. */
static void take_between(uint32_t run_rows, uint32_t from, uint32_t to, pieces *inout) {
    for (uint32_t need = from + 1; need <= to; need++) {
        const uint64_t one = to * LEAST_ROWS + run_rows,
                       more = from == 0 ? UINT64_MAX : from * LEAST_ROWS + run_rows + inout->taken[need - from];
        inout->taken[need] = one <= more ? one : more;
        inout->first[need] = one <= more ? to : from;
    }
}

static void take_all(const uint32_t sizes[HD_MAX_PIECES], uint32_t run_rows, pieces *out) {
    uint32_t from = 0;
    for (uint32_t at = HD_MAX_PIECES; at-- > 0;) {
        if (sizes[at] == 0) continue;
        take_between(run_rows, from, sizes[at] / LEAST_ROWS, out);
        from = sizes[at] / LEAST_ROWS;
    }
}

static uint32_t eights(uint32_t rows) { return (rows + LEAST_ROWS - 1) / LEAST_ROWS; }

/* One token runs as a decode step does. */
static uint32_t rows_of(const pieces *p, uint32_t left) { return left == 1 ? 1 : p->first[eights(left)] * LEAST_ROWS; }

uint32_t hdl_piece_next(const uint32_t sizes[HD_MAX_PIECES], uint32_t run_rows, uint64_t left) {
    pieces p;
    if (left == 1 || left >= sizes[0]) return left == 1 ? 1 : sizes[0];
    take_all(sizes, run_rows, &p);
    return rows_of(&p, (uint32_t)left);
}

uint32_t hd_piece_run_rows(const hd_device *device) {
    enum { CPU = 16, GPU = 128 };
    const hd_device_info *info = hd_device_get_info(device);
    return !info ? 0 : info->kind == HD_DEVICE_CPU ? CPU : GPU;
}

/* ---- by the lengths of prompts ---- */

static hd_status sizes_of(const hd_session_desc *desc, uint32_t out[HD_MAX_PIECES]) {
    uint32_t at;
    return hdl_pieces_of(desc, desc->context, out, &at) ? HD_STATUS_INVALID_ARGUMENT : HD_OK;
}

static hd_status check_lengths(const uint32_t *lengths, size_t count) {
    if (!lengths) return HD_STATUS_NULL_POINTER;
    for (size_t i = 0; i < count; i++)
        if (lengths[i] == 0 || lengths[i] > MOST_LENGTH) return HD_STATUS_INVALID_ARGUMENT;
    return count > 0 ? HD_OK : HD_STATUS_ZERO_SIZE;
}

hd_status hd_piece_use(const hd_session_desc *desc, const uint32_t *lengths, size_t count, uint32_t run_rows,
                       hd_piece_usage *out_usage) {
    const hd_session_desc defaults = { 0 };
    bool used[CLASSES + 1] = { false };
    hd_piece_usage usage = { 0 };
    const uint32_t *sizes = usage.sizes;
    pieces p;
    hd_status status = check_lengths(lengths, count);
    if (!status && !out_usage) status = HD_STATUS_NULL_POINTER;
    if (!status && run_rows > MOST_RUN_ROWS) status = HD_STATUS_INVALID_ARGUMENT;
    if (!status) status = sizes_of(desc ? desc : &defaults, usage.sizes);
    if (!status) take_all(sizes, run_rows, &p);
    for (size_t i = 0; i < count && !status; i++) {
        const uint32_t whole = lengths[i] / sizes[0];
        usage.tokens += lengths[i];
        usage.runs += whole;
        usage.rows += (uint64_t)whole * sizes[0];
        if (whole) used[sizes[0] / LEAST_ROWS] = true;
        for (uint32_t left = lengths[i] % sizes[0], rows; left; left -= rows < left ? rows : left) {
            rows = rows_of(&p, left);
            usage.runs++;
            usage.rows += rows;
            if (rows > 1) used[rows / LEAST_ROWS] = true;
        }
    }
    for (uint32_t c = 0; c <= CLASSES; c++) usage.plans += used[c];
    if (!status) *out_usage = usage;
    return status;
}

/* ---- the best sizes ---- */

/* All sizes are tried, from the smallest up, but for those that can only become worse than the best ones so far. Sums
 * are of rows, and of run_rows for each run. */
enum { MOST_STEPS = 1 << 24 }; /* up to 3 s; no log takes hours */
typedef struct search {
    uint32_t top, run_rows;         /* the first size, in eights as all sizes here; the cost of a run */
    uint64_t count[CLASSES + 1];    /* prompts, by how many eights they need behind pieces of the first size */
    pieces   pieces;                /* with the sizes so far */
    uint64_t least[HD_MAX_PIECES + 1][CLASSES + 1]; /* [n][from]: by what needs more than `from`, with n more sizes */
    uint32_t sizes[HD_MAX_PIECES], best_sizes[HD_MAX_PIECES]; /* the smallest first */
    uint32_t best_count, steps;
    uint64_t best;
} search;

/* What needs more than `from` and at most `to` takes at least, where these are sizes beside each other. */
static uint64_t least_between(const search *s, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    for (uint32_t need = from + 1; need <= to; need++) {
        const uint64_t one = to * LEAST_ROWS + s->run_rows,
                       more = from == 0 ? UINT64_MAX : need * LEAST_ROWS + (need + from - 1) / from * s->run_rows;
        sum += s->count[need] * (one <= more ? one : more);
    }
    return sum;
}

static void find_least(search *s) {
    memset(s->least, 0xFF, sizeof s->least);
    for (uint32_t n = 0; n <= HD_MAX_PIECES; n++) s->least[n][s->top] = 0;
    for (uint32_t from = s->top; from-- > 0;)
        for (uint32_t to = from + 1; to <= s->top; to++) {
            const uint64_t between = least_between(s, from, to);
            for (uint32_t n = 1; n <= HD_MAX_PIECES; n++) {
                const uint64_t above = s->least[n - 1][to];
                if (above != UINT64_MAX && between + above < s->least[n][from]) s->least[n][from] = between + above;
            }
        }
}

/* What all of them take. */
static uint64_t sum_between(search *s, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    take_between(s->run_rows, from, to, &s->pieces);
    for (uint32_t need = from + 1; need <= to; need++) sum += s->count[need] * s->pieces.taken[need];
    return sum;
}

/* `at` sizes are there, the last one `from`, by which so much is taken; `more` may come, the top the last of them. */
static void search_above(search *s, uint32_t at, uint32_t from, uint32_t more, uint64_t taken) {
    const uint64_t all = taken + sum_between(s, from, s->top);
    s->sizes[at] = s->top;
    if (all < s->best) {
        s->best = all;
        s->best_count = at + 1;
        memcpy(s->best_sizes, s->sizes, sizeof s->sizes);
    }
    for (uint32_t to = from + 1; more > 1 && to < s->top && s->steps < MOST_STEPS; to++) {
        const uint64_t now = taken + sum_between(s, from, to);
        s->steps++;
        if (now >= s->best || s->least[more - 1][to] >= s->best - now) continue;
        s->sizes[at] = to;
        search_above(s, at + 1, to, more - 1, now);
    }
}

hd_status hd_piece_sizes(const hd_session_desc *desc, const uint32_t *lengths, size_t count, uint32_t run_rows,
                         uint32_t most, uint32_t out_sizes[HD_MAX_PIECES]) {
    const hd_session_desc chunk = { .context = desc ? desc->context : 0, .chunk = desc ? desc->chunk : 0 };
    uint32_t sizes[HD_MAX_PIECES];
    search s = { .run_rows = run_rows, .best = UINT64_MAX };
    hd_status status = check_lengths(lengths, count);
    if (!status && !out_sizes) status = HD_STATUS_NULL_POINTER;
    if (!status && (most == 0 || most > HD_MAX_PIECES || run_rows > MOST_RUN_ROWS)) status = HD_STATUS_INVALID_ARGUMENT;
    if (!status) status = sizes_of(&chunk, sizes);
    if (status) return status;
    s.top = sizes[0] / LEAST_ROWS;
    for (size_t i = 0; i < count; i++) {
        const uint32_t left = lengths[i] % sizes[0];
        if (left > 1) s.count[eights(left)]++;
    }
    find_least(&s);
    for (uint32_t n = 1; n <= most; n++) search_above(&s, 0, 0, n, 0); /* another size comes only where it helps */
    for (uint32_t at = 0; at < HD_MAX_PIECES; at++)
        out_sizes[at] = at < s.best_count ? s.best_sizes[s.best_count - 1 - at] * LEAST_ROWS : 0;
    return HD_OK;
}
