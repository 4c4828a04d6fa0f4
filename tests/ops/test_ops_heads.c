/* test_ops_heads.c: attention of one query a sequence that turns its heads and writes the cache's rows itself, beside the same program with
 * queries and keys shown as outputs, which keeps the steps apart: in fast mode both give the same bits, and leave the same cache. Where pages
 * are missing, lie outside of the pool or are named twice, and where a token has no row in the cache, too. On the devices that arguments
 * name, or the CPU; --short before them: every third case. */
#include "ops/on_devices.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t seed;

static float unit(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / (float)(1u << 23) - 1;
}

enum { NONE, PLAIN, WEIGHTED }; /* norms of heads */
enum { RUNS = 6, PAGE = 128 };
typedef struct test {
    uint32_t heads, kv_heads, D, S;
    hd_dtype cache;
    int      norm;
    hd_rope_pairing pairing;
    uint32_t sequences, pages; /* pages of the pool; 0: none */
    uint32_t window;
    float    cap;
    bool     sinks;
    int32_t  past[RUNS];       /* the first sequence's; the next one's is 5 more */
} test;

static const test tests[] = {
    { 16, 4, 128, 1024, HD_F16, WEIGHTED, HD_ROPE_HALVES, 1, 10, 0, 0, false, { 0, 1, 511, 700, 1023, 1024 } },
    { 8, 2, 64, 640, HD_F32, WEIGHTED, HD_ROPE_NEIGHBOURS, 1, 0, 0, 0, false, { 0, 2, 639, 640, -1, 300 } },
    { 4, 4, 128, 1024, HD_F16, NONE, HD_ROPE_HALVES, 3, 0, 0, 0, false, { 0, 3, 64, 1000, 1023, 100 } },
    { 32, 2, 128, 768, HD_BF16, PLAIN, HD_ROPE_HALVES, 1, 7, 0, 0, false, { 5, 127, 128, 600, 767, -3 } },
    { 6, 2, 16, 1024, HD_F16, WEIGHTED, HD_ROPE_NEIGHBOURS, 1, 9, 0, 0, true, { 0, 130, 400, 1000, 1001, 1002 } },
    { 2, 1, 256, 640, HD_F16, WEIGHTED, HD_ROPE_HALVES, 2, 0, 0, 3, false, { 0, 1, 2, 630, 634, 639 } },
    { 8, 2, 128, 1024, HD_F16, WEIGHTED, HD_ROPE_HALVES, 1, 9, 200, 0, false, { 0, 100, 199, 201, 777, 1023 } },
    { 16, 2, 32, 896, HD_F32, NONE, HD_ROPE_HALVES, 2, 8, 300, 2, true, { 0, 1, 299, 301, 500, 895 } },
    { 8, 8, 64, 1024, HD_BF16, NONE, HD_ROPE_NEIGHBOURS, 1, 9, 0, 0, false, { 1, 2, 3, 600, 601, 1023 } },
};

typedef struct model {
    hd_program *program;
    hd_plan    *plan;
} model;

static hd_value heads_of(hd_program *p, const test *t, const char *name, uint32_t heads, hd_value positions) {
    char weight[16];
    snprintf(weight, sizeof weight, "%s norm", name);
    hd_value x = hd_input(p, name, HD_F32, HD_SHAPE(t->sequences, heads * t->D));
    x = hd_reshape(p, x, HD_SHAPE(t->sequences, heads, t->D));
    if (t->norm) x = hd_rms_norm(p, x, t->norm == WEIGHTED ? hd_input(p, weight, HD_F32, HD_SHAPE(t->D)) : 0, 1e-6f);
    return hd_rope(p, x, positions, &(hd_rope_desc){ .theta = 1e6f, .pairing = t->pairing });
}
static hd_value by_sequence(hd_program *p, const test *t, hd_value x, uint32_t heads) {
    return t->sequences == 1 ? x : hd_reshape(p, x, HD_SHAPE(t->sequences, 1, heads, t->D));
}
static hd_shape cache_shape(const test *t) {
    if (t->pages) return HD_SHAPE(t->pages, PAGE, t->kv_heads, t->D);
    return t->sequences == 1 ? HD_SHAPE(t->S, t->kv_heads, t->D) : HD_SHAPE(t->sequences, t->S, t->kv_heads, t->D);
}
static hd_value written(hd_program *p, const test *t, const char *name, hd_value x, hd_value past, hd_value pages) {
    const hd_value state = hd_state(p, name, t->cache, cache_shape(t));
    if (name[0] == 'k') hd_output(p, "older keys", hd_reshape(p, state, HD_SHAPE((int64_t)hd_shape_elements(cache_shape(t))))); /* as they were */
    x = by_sequence(p, t, t->cache == HD_F32 ? x : hd_cast(p, x, t->cache), t->kv_heads);
    return pages ? hd_write_pages(p, state, x, past, pages) : hd_write_rows(p, state, x, past);
}

static model make(hd_device *device, const test *t, bool apart) {
    hd_program *p = hd_program_create(context);
    model m = { .program = p };
    const hd_value past = hd_input(p, "past", HD_I32, HD_SHAPE(t->sequences));
    const hd_value positions = hd_input(p, "positions", HD_I32, HD_SHAPE(t->sequences)), table_pages = t->S / PAGE;
    const hd_shape table = t->sequences == 1 ? HD_SHAPE(table_pages) : HD_SHAPE(t->sequences, table_pages);
    const hd_value pages = t->pages ? hd_input(p, "pages", HD_I32, table) : 0;
    const hd_value q = heads_of(p, t, "q", t->heads, positions), k = heads_of(p, t, "k", t->kv_heads, positions);
    const hd_value v = hd_reshape(p, hd_input(p, "v", HD_F32, HD_SHAPE(t->sequences, t->kv_heads * t->D)), HD_SHAPE(t->sequences, t->kv_heads, t->D));
    const hd_attention_desc desc = { .pages = pages, .window = t->window, .cap = t->cap,
                                     .sinks = t->sinks ? hd_input(p, "sinks", HD_F32, HD_SHAPE(t->heads)) : 0 };
    hd_output(p, "y", hd_attention(p, by_sequence(p, t, q, t->heads), written(p, t, "keys", k, past, pages),
                                   written(p, t, "values", v, past, pages), past, &desc));
    if (apart) hd_output(p, "turned q", q);
    if (apart) hd_output(p, "turned k", k);
    CHECK(hd_plan_create(device, p, NULL, &m.plan));
    return m;
}

static void destroy(model *m) {
    hd_plan_destroy(m->plan);
    hd_program_destroy(m->program);
}

static bool takes(const model *m, const char *kernel) {
    static char text[1 << 18];
    CHECK(hd_plan_explain(m->plan, text, sizeof text, NULL));
    return strstr(text, kernel) != NULL;
}

/* Writes all inputs, other ones for each run: the same to both. */
static void write_inputs(const test *t, uint32_t run, const model *both) {
    for (size_t i = 0; i < hd_program_port_count(both[0].program); i++) {
        const hd_port port = hd_program_port(both[0].program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind != HD_PORT_INPUT) continue;
        int32_t *words = malloc(bytes);
        float *floats = (float *)(void *)words;
        assert_non_null(words);
        for (uint64_t e = 0; e < bytes / 4; e++) {
            if (port.dtype == HD_F32) floats[e] = unit() * 2;
            else if (strcmp(port.name, "pages") != 0) words[e] = t->past[run] + 5 * (int32_t)e;
            else words[e] = run == 2 ? (int32_t)(e / 2) : (int32_t)((e * 5 + run / 3) % (t->pages + 2)) - (run == 4); /* twice, or outside */
        }
        for (int m = 0; m < 2; m++) CHECK(hd_plan_write(both[m].plan, port.name, words, bytes));
        free(words);
    }
}

static uint64_t differing(const model *both, const char *name, uint64_t bytes) {
    uint8_t *read[2] = { malloc(bytes), malloc(bytes) };
    uint64_t differ = 0;
    assert_true(read[0] && read[1]);
    for (int m = 0; m < 2; m++) CHECK(hd_plan_read(both[m].plan, name, read[m], bytes));
    for (uint64_t i = 0; i < bytes; i++) differ += read[0][i] != read[1][i];
    free(read[0]);
    free(read[1]);
    return differ;
}

static unsigned compare(hd_device *device, const char *where, const test *t, uint32_t *inout_turning) {
    const model both[2] = { make(device, t, false), make(device, t, true) };
    const bool in_parts = takes(&both[1], "attention_subgroup"), shared = t->sequences > 1 && t->pages;
    unsigned wrong = 0;
    assert_false(takes(&both[1], "attention_heads"));
    assert_int_equal(takes(&both[0], "attention_heads"), in_parts && !shared);
    *inout_turning += in_parts && !shared;
    for (uint32_t run = 0; run < RUNS; run++) {
        write_inputs(t, run, both);
        for (int m = 0; m < 2; m++) CHECK(hd_plan_run(both[m].plan, NULL));
        const uint64_t cache = hd_tensor_bytes(t->cache, cache_shape(t)), y = 4ull * t->sequences * t->heads * t->D;
        const uint64_t differ[] = { differing(both, "y", y), differing(both, "keys", cache) + differing(both, "older keys", cache), differing(both, "values", cache) };
        if (!(differ[0] | differ[1] | differ[2])) continue;
        wrong++;
        print_error("%s, case %d, past %d: bytes that differ: %llu of the result, %llu of keys, %llu of values\n", where, (int)(t - tests),
                    t->past[run], (unsigned long long)differ[0], (unsigned long long)differ[1], (unsigned long long)differ[2]);
    }
    for (int m = 0; m < 2; m++) destroy((model *)&both[m]);
    return wrong;
}

static unsigned compare_all(hd_device *device, const char *where) {
    uint32_t turning = 0;
    unsigned wrong = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t += is_short ? 3 : 1) wrong += compare(device, where, &tests[t], &turning);
    print_message("%s: %u programs in one kernel\n", where, turning);
    return wrong;
}

static void the_same_bits_in_one_kernel(void **state) {
    (void)state;
    assert_right_on_devices(compare_all);
}

int main(int argc, char **argv) { return run_on_devices(argc, argv, &(struct CMUnitTest)cmocka_unit_test(the_same_bits_in_one_kernel)); }
