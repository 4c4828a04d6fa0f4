/* piece.c: the sizes of the pieces that prompts run in: by default, as a session wishes, and by the lengths of prompts
 * that came. */
#include "llm/session.h"

enum { MOST_ROWS = 2048, USUAL_ROWS = 512, LEAST_ROWS = 8, CLASSES = MOST_ROWS / LEAST_ROWS, MOST_LENGTH = 1 << 24,
       MOST_RUN_ROWS = 1 << 16 };

/* ---- the sizes of a session ---- */

/* `chunk`, a quarter of it, a sixteenth, ..., so that few plans are made. */
static void default_sizes(uint32_t chunk, uint32_t most, uint32_t out[HD_MAX_PIECES]) {
    uint32_t rows = MOST_ROWS, count = 0;
    while (rows > LEAST_ROWS && (rows > most || rows > chunk)) rows /= 2;
    memset(out, 0, HD_MAX_PIECES * sizeof *out);
    for (out[count++] = rows; rows > LEAST_ROWS; out[count++] = rows)
        rows = rows < 4 * LEAST_ROWS ? LEAST_ROWS : rows / 4;
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

uint32_t hdl_piece_next(const uint32_t sizes[HD_MAX_PIECES], uint64_t left) {
    const uint64_t needed = (left + LEAST_ROWS - 1) / LEAST_ROWS * LEAST_ROWS;
    uint32_t at = 0;
    if (left == 1) return 1;
    while (at + 1 < HD_MAX_PIECES && sizes[at + 1] && (needed <= sizes[at + 1] || needed <= sizes[at] / 2)) at++;
    return sizes[at];
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

hd_status hd_piece_use(const hd_session_desc *desc, const uint32_t *lengths, size_t count, hd_piece_usage *out_usage) {
    const hd_session_desc defaults = { 0 };
    bool used[CLASSES + 1] = { false };
    hd_piece_usage usage = { 0 };
    const uint32_t *sizes = usage.sizes;
    hd_status status = check_lengths(lengths, count);
    if (!status && !out_usage) status = HD_STATUS_NULL_POINTER;
    if (!status) status = sizes_of(desc ? desc : &defaults, usage.sizes);
    for (size_t i = 0; i < count && !status; i++) {
        const uint32_t whole = lengths[i] / sizes[0];
        usage.tokens += lengths[i];
        usage.runs += whole;
        usage.rows += (uint64_t)whole * sizes[0];
        if (whole) used[sizes[0] / LEAST_ROWS] = true;
        for (uint32_t left = lengths[i] % sizes[0], rows; left; left -= rows < left ? rows : left) {
            rows = hdl_piece_next(sizes, left);
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

/* All sizes are tried, from the smallest up, but for those that can only become worse than the best ones so far: 20,000
 * logs drawn by chance took at most 192,963 steps. Sums are of rows, and of run_rows for each run. */
enum { MOST_STEPS = 1 << 24 }; /* half a second; a log that was made for it must not keep the search for hours */
typedef struct search {
    uint32_t top, run_rows;         /* the first size, in eights as all sizes here; the cost of a run */
    uint64_t count[CLASSES + 1];    /* prompts, by how many eights they need behind pieces of the first size */
    uint64_t taken[CLASSES + 1];    /* by what needs so many eights, with the sizes so far */
    uint64_t least[HD_MAX_PIECES + 1][CLASSES + 1]; /* [n][from]: by what needs more than `from`, with n more sizes */
    uint32_t sizes[HD_MAX_PIECES], best_sizes[HD_MAX_PIECES]; /* the smallest first */
    uint32_t best_count, steps;
    uint64_t best;
} search;

/* What needs more than `from` and at most `to` takes at least, where these are sizes beside each other. */
static uint64_t least_between(const search *s, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    for (uint32_t need = from + 1; need <= to; need++) {
        const bool is_one = from == 0 || 2 * need > to;
        const uint64_t rows = is_one ? to : need, runs = is_one ? 1 : (need + from - 1) / from;
        sum += s->count[need] * (rows * LEAST_ROWS + runs * s->run_rows);
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

/* What needs more than `from` and at most `to` takes, by the rule of hdl_piece_next. */
static uint64_t take_between(search *s, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    for (uint32_t need = from + 1; need <= to; need++) {
        const bool is_one = from == 0 || 2 * need > to;
        s->taken[need] = (is_one ? to : from) * LEAST_ROWS + s->run_rows + (is_one ? 0 : s->taken[need - from]);
        sum += s->count[need] * s->taken[need];
    }
    return sum;
}

/* `at` sizes are there, the last one `from`, by which so much is taken; `more` may come, the top the last of them. */
static void search_above(search *s, uint32_t at, uint32_t from, uint32_t more, uint64_t taken) {
    const uint64_t all = taken + take_between(s, from, s->top);
    s->sizes[at] = s->top;
    if (all < s->best) {
        s->best = all;
        s->best_count = at + 1;
        memcpy(s->best_sizes, s->sizes, sizeof s->sizes);
    }
    for (uint32_t to = from + 1; more > 1 && to < s->top && s->steps < MOST_STEPS; to++) {
        const uint64_t now = taken + take_between(s, from, to);
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
        if (left > 1) s.count[(left + LEAST_ROWS - 1) / LEAST_ROWS]++; /* one token alone runs as a decode step does */
    }
    find_least(&s);
    for (uint32_t n = 1; n <= most; n++) search_above(&s, 0, 0, n, 0); /* another size comes only where it helps */
    for (uint32_t at = 0; at < HD_MAX_PIECES; at++)
        out_sizes[at] = at < s.best_count ? s.best_sizes[s.best_count - 1 - at] * LEAST_ROWS : 0;
    return HD_OK;
}
