/* twins.cl: what bench_opencl.c measures translated kernels against: the algorithms of matmul_tiled.comp, matvec.comp and
 * softmax.comp for f32, written by hand in OpenCL C. Like those they take matrices of any strides in batches of any shape,
 * given as their push constants are, and in softmax a NaN is above every number. A planned kernel knows where there is one
 * batch only; PoCL works out the batch once for a workgroup of the twin (and is slower, at matvec, where it need not).
 * UNROLL: 8 for GPUs, which keep in registers what short loops go through; 1 for processors, which take half the time then. */

typedef struct product {
    uint M, N, K, a_row, a_col, b_row, b_col, a_at, b_at, middle, inner, a_0, a_1, a_2, b_0, b_1, b_2;
} product;

/* Where the matrix of a batch begins: batches have three axes, along any of which an operand may repeat. */
static inline uint first_of(uint batch, uint middle, uint inner, uint at, uint stride_0, uint stride_1, uint stride_2) {
    const uint rest = batch / inner;
    return at + batch % inner * stride_2 + rest % middle * stride_1 + rest / middle * stride_0;
}

/* A tile of 128 x 128 of C for 256 work-items, 8 x 8 of it for each; tiles of A and B go through local memory 16 deep. */
enum { TILE = 128, DEPTH = 16, LINE = TILE + 4, PART = 8, READS = TILE * DEPTH / 256 };

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void matmul(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, const product p) {
    const uint M = p.M, N = p.N, K = p.K, a_row = p.a_row, a_col = p.a_col, b_row = p.b_row, b_col = p.b_col, batch = get_group_id(2);
    a += first_of(batch, p.middle, p.inner, p.a_at, p.a_0, p.a_1, p.a_2);
    b += first_of(batch, p.middle, p.inner, p.b_at, p.b_0, p.b_1, p.b_2);
    c += batch * M * N;
    __local float a_tile[DEPTH * LINE], b_tile[DEPTH * LINE];
    const uint lane = get_local_id(0), lane_m = lane / 16, lane_n = lane % 16;
    const uint m0 = get_group_id(1) * TILE, n0 = get_group_id(0) * TILE;
    float a_next[READS], b_next[READS], sums[PART * PART];
    for (uint i = 0; i < PART * PART; i++) sums[i] = 0;
    for (uint k0 = 0; k0 < K + DEPTH; k0 += DEPTH) {
        if (k0 > 0) {
            barrier(CLK_LOCAL_MEM_FENCE);
            #pragma unroll UNROLL
            for (uint i = 0; i < READS; i++) {
                const uint e = lane + i * 256;
                a_tile[e % DEPTH * LINE + e / DEPTH] = a_next[i];
                b_tile[e % DEPTH * LINE + e / DEPTH] = b_next[i];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (k0 < K) {
            #pragma unroll UNROLL
            for (uint i = 0; i < READS; i++) {
                const uint e = lane + i * 256, k = k0 + e % DEPTH, m = m0 + e / DEPTH, n = n0 + e / DEPTH;
                a_next[i] = m < M && k < K ? a[m * a_row + k * a_col] : 0;
                b_next[i] = n < N && k < K ? b[k * b_row + n * b_col] : 0;
            }
        }
        if (k0 == 0) continue;
        for (uint k = 0; k < DEPTH; k++) {
            float column[PART], row[PART];
            #pragma unroll UNROLL
            for (uint i = 0; i < PART; i++) {
                column[i] = a_tile[k * LINE + i / 4 * 64 + lane_m * 4 + i % 4];
                row[i] = b_tile[k * LINE + i / 4 * 64 + lane_n * 4 + i % 4];
            }
            #pragma unroll UNROLL
            for (uint i = 0; i < PART; i++) {
                #pragma unroll UNROLL
                for (uint j = 0; j < PART; j++) sums[i * PART + j] = fma(column[i], row[j], sums[i * PART + j]);
            }
        }
    }
    #pragma unroll UNROLL
    for (uint i = 0; i < PART; i++) {
        const uint m = m0 + i / 4 * 64 + lane_m * 4 + i % 4;
        #pragma unroll UNROLL
        for (uint j = 0; j < PART; j++) {
            const uint n = n0 + j / 4 * 64 + lane_n * 4 + j % 4;
            if (m < M && n < N) c[m * N + n] = sums[i * PART + j];
        }
    }
}

/* Four columns for 64 work-items: 16 for each, which take blocks of 32 along K in turn. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void matvec(__global const float *restrict a, __global const float *restrict b, __global float *restrict c, const product p) {
    const uint M = p.M, N = p.N, K = p.K, a_row = p.a_row, a_col = p.a_col, b_row = p.b_row, b_col = p.b_col, batch = get_group_id(2);
    a += first_of(batch, p.middle, p.inner, p.a_at, p.a_0, p.a_1, p.a_2);
    b += first_of(batch, p.middle, p.inner, p.b_at, p.b_0, p.b_1, p.b_2);
    c += batch * M * N;
    __local float block_sums[64], totals[4];
    const uint lane = get_local_id(0), column = lane / 16, slot = lane % 16, n = get_group_id(0) * 4 + column;
    if (lane < 4) totals[lane] = 0;
    for (uint first = 0; first < K; first += 16 * 32) {
        float sum = 0;
        const uint from = first + slot * 32, to = min(from + 32, K);
        for (uint k = from; n < N && k < to; k++) sum = fma(a[k * a_col], b[k * b_row + n * b_col], sum);
        block_sums[slot * 4 + column] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < 4)
            for (uint s = 0; s < 16; s++) totals[lane] += block_sums[s * 4 + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint last = get_group_id(0) * 4 + lane;
    if (lane < 4 && last < N) c[last] = totals[lane];
}

/* Floats ordered as integers. */
static inline int key_of(float x) {
    const int bits = as_int(x), key = bits ^ (bits >> 31 & 0x7FFFFFFF);
    return isnan(x) ? 0x7FFFFFFF : key;
}

typedef struct row_sizes { uint rows, n; } row_sizes;

/* A row for 256 work-items, read three times; sums and maxima by trees in local memory. */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void softmax(__global const float *restrict x, __global float *restrict y, const row_sizes sizes) {
    __local float lanes[256];
    __local int keys[256];
    const uint lane = get_local_id(0), row = get_group_id(1) * 32768 + get_group_id(0), n = sizes.n, first = row * n;
    if (row >= sizes.rows) return;
    int key = INT_MIN;
    for (uint i = lane; i < n; i += 256) key = max(key, key_of(x[first + i]));
    keys[lane] = key;
    for (uint half_count = 128; half_count; half_count /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_count) keys[lane] = max(keys[lane], keys[lane + half_count]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    key = keys[0];
    const float largest = key == 0x7FFFFFFF ? NAN : as_float(key ^ (key >> 31 & 0x7FFFFFFF));
    float sum = 0;
    for (uint i = lane; i < n; i += 256) sum += exp(x[first + i] - largest);
    lanes[lane] = sum;
    for (uint half_count = 128; half_count; half_count /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_count) lanes[lane] += lanes[lane + half_count];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float scale = 1 / lanes[0];
    for (uint i = lane; i < n; i += 256) y[first + i] = exp(x[first + i] - largest) * scale;
}
