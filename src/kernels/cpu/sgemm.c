/* sgemm.c: C = A x B in f32, cut into tasks for a pool. A task packs strips of A and B into its worker's scratch, so
 * that the register tiles of sgemm_kernels.c read memory in order, and sums its part of C over blocks of k. The blocks
 * of k depend on k and the kernel set alone: this is what keeps the bits of C apart from the number of threads. A
 * product with one row or one column is bound by memory and goes its own way, without packing. No allocation, no
 * locks. */
#include "kernels/cpu/sgemm_kernels.h"

#include <string.h>

enum {
    ALIGN_FLOATS = 16,
    N_TASK_MAX = 2048,      /* columns in a task: bounds the scratch */
    FEW_ROWS = 8,           /* of C, for which a matrix of [N][K] runs is read in place, by dot products */
    DIRECT_ROWS = 64,       /* of C, up to which packing B costs more than it gives where B can be read in place */
    TINY = 128,             /* multiply-adds, up to which setting out costs more than the work */
    VECTOR_CHUNK = 1024,    /* of depth or columns, in the products with one row or column */
    PACK_COST = 16,         /* of an element, in multiply-adds of a tile */
    TASK_COST_MIN = 1 << 19 /* multiply-adds below which waking a thread does not pay */
};

/* A matrix seen along the axis that is cut into strips ("lines": rows of A, columns of B) and along k ("depth"). */
typedef struct lines {
    const void      *data;
    hd_dtype         type;
    int64_t          line_stride, depth_stride;
    hdcpu_sgemm_load load; /* instead of data */
    void            *user;
    const hdcpu_sgemm_kernels *kernels;
} lines;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t total, int64_t piece) {
    return total <= piece ? 1 : total / piece + (total % piece != 0);
}
static int64_t round_up(int64_t x, int64_t unit) { return pieces(x, unit) * unit; }

static lines rows_of_a(const hdcpu_sgemm *job) {
    if (job->load_a)
        return (lines){ NULL, HD_F32, 0, 1, job->load_a, job->load_user, job->blocking.kernels };
    return (lines){ job->a.data, job->a.type, job->a.row_stride, job->a.column_stride, NULL, NULL,
                    job->blocking.kernels };
}

static lines columns_of_b(const hdcpu_sgemm *job) {
    if (job->load_b)
        return (lines){ NULL, HD_F32, 0, 1, job->load_b, job->load_user, job->blocking.kernels };
    return (lines){ job->b.data, job->b.type, job->b.column_stride, job->b.row_stride, NULL, NULL,
                    job->blocking.kernels };
}

/* -------------------------------------------------------------------------------------------------------- plan */

/* Few rows, or one column: C is cut along its other axis only. */
static void choose_line(hdcpu_sgemm_blocking *plan, int64_t m, int64_t n, int64_t k, int64_t threads) {
    int     across = n > 1;
    int64_t count = across ? n : m, tasks = 1;
    if (threads > 1 && count > TINY) /* one element is a row of memory to read: dearer than its multiply-adds */
        tasks = max_of(min_of(4 * threads, count / (TASK_COST_MIN / 8 / k + 1)), 1);
    tasks = max_of(tasks, across ? pieces(n, N_TASK_MAX) : 1);
    int64_t task = min_of(count, round_up(pieces(count, tasks), plan->kernels->columns));
    plan->task_count = (uint32_t)pieces(count, task);
    plan->m_task = across ? m : task;
    plan->n_task = across ? task : 1;
    plan->m_tasks = across ? 1 : plan->task_count;
    plan->n_tasks = across ? plan->task_count : 1;
}

/* Tries every grid of up to four tasks a thread and keeps the cheapest; of two about as cheap, the one with more tasks,
 * because a pool evens them out better. */
static void choose_grid(hdcpu_sgemm_blocking *plan, int64_t m, int64_t n, int64_t k, int64_t threads) {
    int64_t rows = plan->kernels->rows, columns = plan->kernels->columns;
    int64_t n_least = pieces(n, N_TASK_MAX);
    double  work = (double)m * (double)n * (double)k;
    if (n_least == 1 && (threads == 1 || work < 2.0 * (double)TASK_COST_MIN)) {
        plan->m_task = m;
        plan->n_task = n;
        plan->m_tasks = plan->n_tasks = plan->task_count = 1;
        return;
    }
    int64_t most =
        work >= 4.0 * (double)threads * (double)TASK_COST_MIN ? 4 * threads : (int64_t)(work / (double)TASK_COST_MIN);
    double  best = 0.0;
    plan->m_tasks = plan->n_tasks = 0;
    for (int64_t across = n_least; across == n_least || across <= most; across++)
        for (int64_t down = 1; down == 1 || down * across <= most; down++) {
            int64_t m_task = min_of(m, round_up(pieces(m, down), rows));
            int64_t n_task = min_of(n, round_up(pieces(n, across), columns));
            int64_t m_tasks = pieces(m, m_task), n_tasks = pieces(n, n_task);
            double  cost = (double)m_task * (double)n_task + (double)PACK_COST * ((double)m_task + (double)n_task);
            cost *= (double)pieces(m_tasks * n_tasks, threads);
            if (plan->m_tasks != 0 && cost > best * (m_tasks * n_tasks > plan->task_count ? 1.005 : 1.0))
                continue;
            best = cost;
            plan->m_task = m_task;
            plan->n_task = n_task;
            plan->m_tasks = (uint32_t)m_tasks;
            plan->n_tasks = (uint32_t)n_tasks;
            plan->task_count = plan->m_tasks * plan->n_tasks;
        }
}

hdcpu_sgemm_blocking hdcpu_sgemm_plan(const hdcpu_sgemm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                                      uint32_t threads) {
    if (!kernels)
        kernels = hdcpu_sgemm_kernels_at(0);
    hdcpu_sgemm_blocking plan = { .kernels = kernels, .k_block = min_of(k, kernels->k_block) };
    int vector = m <= FEW_ROWS || n == 1;
    (vector ? choose_line : choose_grid)(&plan, m, n, k, threads > 1 ? threads : 1);
    plan.m_block = round_up(pieces(plan.m_task, pieces(plan.m_task, kernels->m_block)), kernels->rows);
    int64_t a_floats = round_up(plan.m_block * plan.k_block, ALIGN_FLOATS);
    int64_t b_floats = round_up(plan.n_task, kernels->columns) * plan.k_block;
    if (vector) /* the vectors as f32, some lines of the matrix, and a piece of the result */
        b_floats = max_of(b_floats, round_up(k, ALIGN_FLOATS) * min_of(m, FEW_ROWS) +
                                        (LINES_AT_ONCE + 1) * VECTOR_CHUNK);
    plan.scratch_bytes = (uint64_t)(a_floats + b_floats) * sizeof(float);
    return plan;
}

/* -------------------------------------------------------------------------------------------------------- packing */

static float value_at(const lines *from, int64_t at) {
    float value;
    if (from->type == HD_F32)
        return ((const float *)from->data)[at];
    (from->type == HD_F16 ? from->kernels->from_f16 : from->kernels->from_bf16)((const uint16_t *)from->data + at, 1,
                                                                                &value);
    return value;
}

/* `count` values in a row of memory, as f32. */
static void convert(const lines *from, int64_t at, int64_t count, float *out) {
    if (from->type == HD_F32)
        memcpy(out, (const float *)from->data + at, (size_t)count * sizeof(float));
    else
        (from->type == HD_F16 ? from->kernels->from_f16 : from->kernels->from_bf16)((const uint16_t *)from->data + at,
                                                                                    count, out);
}

/* Whether a line is best read along its depth. Lines that lie side by side in memory are not. */
static int in_runs(const lines *from, int64_t k) {
    return from->load || from->line_stride != 1 || (from->depth_stride == 1 && k > 1);
}

/* A run of depth of one line. */
static void load_run(const lines *from, int64_t line, int64_t d, int64_t count, float *out) {
    if (from->load)
        from->load(from->user, line, d, count, out);
    else if (from->depth_stride == 1)
        convert(from, line * from->line_stride + d, count, out);
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = value_at(from, line * from->line_stride + (d + i) * from->depth_stride);
}

/* out[i * width + j] = line (first + j) at depth (d + i), for j < count. Values from `count` to `width` are undefined:
 * they are multiplied too, but their sums reach no element of C. */
static void pack_strip(const lines *from, int64_t first, int64_t count, int64_t d, int64_t depth, int64_t width,
                       float *out) {
    const hdcpu_sgemm_kernels *kernels = from->kernels;
    if (!from->load && from->line_stride == 1 && from->type == HD_F32) {
        kernels->copy((const float *)from->data + first + d * from->depth_stride, from->depth_stride, count, depth,
                      width, out);
    } else if (!from->load && from->line_stride == 1) {
        for (int64_t i = 0; i < depth; i++)
            convert(from, first + (d + i) * from->depth_stride, count, out + i * width);
    } else if (!from->load && from->depth_stride == 1 && from->type == HD_F32) {
        kernels->transpose((const float *)from->data + first * from->line_stride + d, from->line_stride, count, depth,
                           width, out);
    } else {
        float   runs[TILE_COLUMNS_MAX * HDCPU_SGEMM_RUN];
        int64_t step = from->load ? HDCPU_SGEMM_RUN : RUN_DEPTH;
        for (int64_t done = 0; done < depth; done += step) {
            int64_t part = min_of(step, depth - done);
            for (int64_t j = 0; j < count; j++)
                load_run(from, first + j, d + done, part, runs + j * step);
            kernels->transpose(runs, step, count, part, width, out + done * width);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- tasks */

/* The part of C that a task computes. */
typedef struct part {
    int64_t m0, m_count, n0, n_count;
} part;

/* A packed block of A times one strip of B. */
typedef struct strip {
    const float *a, *b;
    float       *c;
    int64_t      b_stride, c_stride;
    int64_t      rows, columns, depth;
    int          accumulate; /* adds to C */
} strip;

/* One tile of C, of any size up to the largest. A tile narrower than its vectors is made aside. */
static void run_tile(const hdcpu_sgemm_kernels *kernels, const strip *s, int64_t row) {
    const int64_t rows = min_of(kernels->rows, s->rows - row), columns = s->columns, depth = s->depth;
    const float *a = s->a + row * depth, *b = s->b;
    const int64_t b_stride = s->b_stride, c_stride = s->c_stride;
    float *c = s->c + row * c_stride;
    const int accumulate = s->accumulate;
    hdcpu_tile tile = (columns > kernels->columns / 2 ? kernels->wide : kernels->narrow)[rows];
    if (columns == kernels->columns || columns == kernels->columns / 2) {
        tile(depth, a, b, b_stride, c, c_stride, accumulate);
        return;
    }
    float aside[TILE_ROWS_MAX * TILE_COLUMNS_MAX];
    tile(depth, a, b, b_stride, aside, kernels->columns, 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = aside[i * kernels->columns + j];
            c[i * c_stride + j] = accumulate ? c[i * c_stride + j] + sum : sum;
        }
}

static void finish_rows(const hdcpu_sgemm *job, int64_t m0, int64_t m_count, int64_t n0, int64_t n_count) {
    for (int64_t i = 0; job->finish && i < m_count; i++)
        job->finish(job->finish_user, job->c + (m0 + i) * job->c_row_stride + n0, m0 + i, n0, n_count);
}

/* Strips of B are packed just before their first use, and stay in scratch for the blocks of A that follow. */
static void block_task(const hdcpu_sgemm *job, part p, float *scratch) {
    const hdcpu_sgemm_blocking *plan = &job->blocking;
    const hdcpu_sgemm_kernels  *kernels = plan->kernels;
    const lines a = rows_of_a(job), b = columns_of_b(job);
    int64_t     columns = kernels->columns;
    int         direct = !b.load && b.type == HD_F32 && b.line_stride == 1 && p.m_count <= DIRECT_ROWS;
    float      *a_block = scratch, *b_block = scratch + round_up(plan->m_block * plan->k_block, ALIGN_FLOATS);

    for (int64_t d = 0; d < job->k; d += plan->k_block) {
        int64_t depth = min_of(plan->k_block, job->k - d);
        for (int64_t i = 0; i < p.m_count; i += plan->m_block) {
            int64_t m_count = min_of(plan->m_block, p.m_count - i);
            for (int64_t r = 0; r < m_count; r += kernels->rows) {
                int64_t rows = min_of(kernels->rows, m_count - r);
                pack_strip(&a, p.m0 + i + r, rows, d, depth, rows, a_block + r * depth);
            }
            for (int64_t j = 0; j < p.n_count; j += columns) {
                int64_t count = min_of(columns, p.n_count - j);
                strip s = { .a = a_block, .b = b_block + j * depth, .b_stride = columns,
                            .c = job->c + (p.m0 + i) * job->c_row_stride + p.n0 + j, .c_stride = job->c_row_stride,
                            .rows = m_count, .columns = count, .depth = depth, .accumulate = d > 0 };
                if (direct && count % (columns / 2) == 0) {
                    s.b = (const float *)b.data + p.n0 + j + d * b.depth_stride;
                    s.b_stride = b.depth_stride;
                } else if (i == 0) {
                    pack_strip(&b, p.n0 + j, count, d, depth, columns, b_block + j * depth);
                }
                for (int64_t row = 0; row < m_count; row += kernels->rows)
                    run_tile(kernels, &s, row);
            }
            if (d + depth == job->k)
                finish_rows(job, p.m0 + i, m_count, p.n0, p.n_count);
        }
    }
}

/* y[j] = line (first + j) times x, for lines that lie side by side in memory: depth outermost. */
static void sum_lines(const hdcpu_sgemm *job, const lines *from, int64_t first, int64_t count, const float *x,
                      float *room, float *y) {
    const hdcpu_sgemm_kernels *kernels = job->blocking.kernels;
    memset(y, 0, (size_t)count * sizeof(float));
    for (int64_t d = 0; d < job->k; d += LINES_AT_ONCE) {
        int64_t      depth = min_of(LINES_AT_ONCE, job->k - d), stride = from->depth_stride;
        const float *values = room;
        if (from->type == HD_F32) {
            values = (const float *)from->data + first + d * stride;
        } else {
            for (int64_t i = 0; i < depth; i++)
                convert(from, first + (d + i) * stride, count, room + i * VECTOR_CHUNK);
            stride = VECTOR_CHUNK;
        }
        if (depth == LINES_AT_ONCE)
            kernels->add_lines(values, stride, x + d, count, y);
        else
            for (int64_t i = 0; i < depth; i++)
                kernels->add_line(values + i * stride, x[d + i], count, y);
    }
}

/* Vectors of k floats. */
typedef struct vectors {
    const float *data;
    int64_t      stride, count;
} vectors;

/* y[i * C's row stride + j] = line (first + j) times vector i, one run of depth after another. A run of lines that has
 * to be converted or unpacked is so once for all vectors. */
static void dot_lines(const hdcpu_sgemm *job, const lines *from, int64_t first, int64_t count, const vectors *x,
                      float *room, float *y) {
    const hdcpu_sgemm_kernels *kernels = job->blocking.kernels;
    int in_place = !from->load && from->depth_stride == 1 && from->type == HD_F32;
    for (int64_t j = 0, at_once; j < count; j += at_once) {
        float sums[FEW_ROWS][DOTS_AT_ONCE] = { { 0 } };
        at_once = count - j >= DOTS_AT_ONCE ? DOTS_AT_ONCE : 1;
        for (int64_t d = 0; d < job->k; d += VECTOR_CHUNK) {
            int64_t      depth = min_of(VECTOR_CHUNK, job->k - d), stride = VECTOR_CHUNK;
            const float *values = room;
            if (in_place) {
                stride = from->line_stride;
                values = (const float *)from->data + (first + j) * stride + d;
            } else {
                for (int64_t i = 0; i < at_once; i++)
                    load_run(from, first + j + i, d, depth, room + i * VECTOR_CHUNK);
            }
            for (int64_t i = 0; i < x->count; i++) {
                if (at_once == DOTS_AT_ONCE)
                    kernels->dots(values, stride, x->data + i * x->stride + d, depth, sums[i]);
                else
                    kernels->dot(values, x->data + i * x->stride + d, depth, sums[i]);
            }
        }
        for (int64_t i = 0; i < x->count; i++)
            memcpy(y + i * job->c_row_stride + j, sums[i], (size_t)at_once * sizeof(float));
    }
}

/* Where C has few rows the lines are columns of B and the vectors rows of A; where C is one column it is the other way
 * round. */
static void vector_task(const hdcpu_sgemm *job, part p, float *scratch) {
    int         rows = job->m <= FEW_ROWS && job->n > 1;
    const lines matrix = rows ? columns_of_b(job) : rows_of_a(job), vector = rows ? rows_of_a(job) : columns_of_b(job);
    vectors     x = { scratch, round_up(job->k, ALIGN_FLOATS), rows ? job->m : 1 };
    int64_t     first = rows ? p.n0 : p.m0, count = rows ? p.n_count : p.m_count;
    float      *room = scratch + x.stride * x.count, *piece = room + LINES_AT_ONCE * VECTOR_CHUNK;
    if (!vector.load && vector.type == HD_F32 && vector.depth_stride == 1) {
        x.data = vector.data;
        x.stride = vector.line_stride;
    } else {
        for (int64_t i = 0; i < x.count; i++)
            load_run(&vector, i, 0, job->k, scratch + i * x.stride);
    }

    for (int64_t j = 0; j < count; j += VECTOR_CHUNK) {
        int64_t some = min_of(VECTOR_CHUNK, count - j);
        float  *y = rows ? job->c + first + j : piece;
        if (in_runs(&matrix, job->k))
            dot_lines(job, &matrix, first + j, some, &x, room, y);
        else
            sum_lines(job, &matrix, first + j, some, x.data, room, y);
        for (int64_t i = 0; !rows && i < some; i++)
            job->c[(first + j + i) * job->c_row_stride] = piece[i];
    }
    finish_rows(job, p.m0, p.m_count, p.n0, p.n_count);
}

static int is_tiny(const hdcpu_sgemm *job) {
    return job->m <= TINY && job->n <= TINY && job->k <= TINY && job->m * job->n * job->k <= TINY && !job->load_a &&
           !job->load_b && job->a.type == HD_F32 && job->b.type == HD_F32;
}

static void tiny_task(const hdcpu_sgemm *job) {
    for (int64_t i = 0; i < job->m; i++) {
        const float *a = (const float *)job->a.data + i * job->a.row_stride;
        for (int64_t j = 0; j < job->n; j++) {
            const float *b = (const float *)job->b.data + j * job->b.column_stride;
            float        sum = 0.0f;
            for (int64_t d = 0; d < job->k; d++)
                sum += a[d * job->a.column_stride] * b[d * job->b.row_stride];
            job->c[i * job->c_row_stride + j] = sum;
        }
    }
    finish_rows(job, 0, job->m, 0, job->n);
}

void hdcpu_sgemm_task(const hdcpu_sgemm *job, uint32_t task, void *scratch) {
    const hdcpu_sgemm_blocking *plan = &job->blocking;
    if (is_tiny(job)) {
        tiny_task(job);
        return;
    }
    const lines b = columns_of_b(job);
    part p = { .m0 = task / plan->n_tasks * plan->m_task, .n0 = task % plan->n_tasks * plan->n_task };
    p.m_count = min_of(plan->m_task, job->m - p.m0);
    p.n_count = min_of(plan->n_task, job->n - p.n0);
    int few = job->m == 1 || job->n == 1 || (job->m <= FEW_ROWS && in_runs(&b, job->k));
    if (few)
        vector_task(job, p, scratch);
    else
        block_task(job, p, scratch);
}
