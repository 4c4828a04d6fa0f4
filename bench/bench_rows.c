/* bench_rows.c: one operation whose rows two devices share: what a run takes by its share, inputs written and outputs read in each
 * run but for those that are resident, beside all on either device and what route "auto" chooses. All are measured in turn.
 * Run `heddle tune` first.
 *   bench_rows DEVICE BESIDE [rounds] */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUTES = 10, AUTO = ROUTES - 1, MOST_ROUNDS = 1000, WARM = 3, WARM_AUTO = 160, RESIDENT = 2 };

static const char *const routes[ROUTES] = { "rest=0", "rest=rows:95:5", "rest=rows:90:10", "rest=rows:75:25", "rest=rows:50:50", "rest=rows:25:75",
                                            "rest=rows:10:90", "rest=rows:5:95", "rest=1", "auto" };
static const char *const resident[RESIDENT] = { "w", "x" };

static const struct { const char *name, *text; bool resident[RESIDENT]; } batches[] = {
    { "sum of 16 Mi elements", "heddle 1\nv1 = input f32[16777216] \"x\"\nv2 = input f32[16777216] \"w\"\nv3 = add v1 v2\noutput v3 \"y\"\n", { false, false } },
    { "softmax of 16384 rows, 1024 each", "heddle 1\nv1 = input f32[16384,1024] \"x\"\nv2 = softmax v1 axis=-1\noutput v2 \"y\"\n", { false, false } },
    { "product 4096 x 4096, w resident", "heddle 1\nv1 = input f32[4096,4096] \"x\"\nv2 = input f32[4096,4096] \"w\"\nv3 = matmul v1 v2\noutput v3 \"y\"\n", { true, false } },
    { "product 4096 x 4096, both resident", "heddle 1\nv1 = input f32[4096,4096] \"x\"\nv2 = input f32[4096,4096] \"w\"\nv3 = matmul v1 v2\noutput v3 \"y\"\n", { true, true } },
};

static hd_context *context;
static void check(hd_status status) {
    if (!status) return;
    fprintf(stderr, "bench_rows: %s\n", hd_context_error(context));
    exit(1);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- one program ---- */

typedef struct batch {
    hd_program *program;
    const bool *resident;
    char       *data; /* for all ports */
} batch;

static bool is_resident(const batch *b, const char *name) {
    for (int i = 0; i < RESIDENT; i++)
        if (b->resident[i] && strcmp(resident[i], name) == 0) return true;
    return false;
}

static hd_plan *make(const batch *b, hd_device *devices[2], const char *route) {
    hd_plan *plan;
    const char *names[RESIDENT];
    uint32_t count = 0;
    for (int i = 0; i < RESIDENT; i++)
        if (b->resident[i]) names[count++] = resident[i];
    check(hd_plan_create(devices[0], b->program, &(hd_plan_desc){ .beside = &devices[1], .beside_count = 1, .route = route, .resident = names, .resident_count = count }, &plan));
    for (size_t i = 0; i < hd_program_port_count(b->program); i++) {
        const hd_port port = hd_program_port(b->program, i);
        if (port.kind == HD_PORT_INPUT) check(hd_plan_write(plan, port.name, b->data, hd_tensor_bytes(port.dtype, port.shape)));
    }
    return plan;
}

static double run(const batch *b, hd_plan *plan) {
    const double began = now_s();
    for (size_t i = 0; i < hd_program_port_count(b->program); i++) {
        const hd_port port = hd_program_port(b->program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        if (port.kind == HD_PORT_INPUT && !is_resident(b, port.name)) check(hd_plan_write(plan, port.name, b->data, bytes));
    }
    check(hd_plan_run(plan, NULL));
    const hd_port port = hd_program_port(b->program, hd_program_port_count(b->program) - 1);
    check(hd_plan_read(plan, port.name, b->data, hd_tensor_bytes(port.dtype, port.shape)));
    return now_s() - began;
}

/* Where the route put the operation. */
static void print_choice(const hd_plan *plan) {
    static char text[1 << 16];
    hd_plan_stats stats;
    check(hd_plan_get_stats(plan, &stats));
    check(hd_plan_explain(plan, text, sizeof text, NULL));
    printf("  auto: predicted %.0f us; all on the better device %.0f\n", (double)stats.predicted_ns / 1e3, (double)stats.predicted_alone_ns / 1e3);
    const char *at = strstr(text, "\nsegments\n"), *end = at ? strstr(at, "\n\n") : NULL;
    if (end) printf("%.*s\n", (int)(end - at), at);
}

static void measure(batch *b, const char *name, hd_device *devices[2], int rounds) {
    static double taken[ROUTES][MOST_ROUNDS];
    hd_plan *plans[ROUTES];
    uint64_t most = 0;
    for (size_t i = 0; i < hd_program_port_count(b->program); i++) {
        const hd_port port = hd_program_port(b->program, i);
        const uint64_t bytes = hd_tensor_bytes(port.dtype, port.shape);
        most = bytes > most ? bytes : most;
    }
    b->data = calloc(1, (size_t)most);
    if (!b->data) exit(1);
    for (int r = 0; r < ROUTES; r++) plans[r] = make(b, devices, routes[r]);
    for (int r = 0; r < ROUTES; r++)
        for (int i = 0; i < (r == AUTO ? WARM_AUTO : WARM); i++) run(b, plans[r]);
    for (int i = 0; i < rounds; i++)
        for (int r = 0; r < ROUTES; r++) taken[(r + i) % ROUTES][i] = run(b, plans[(r + i) % ROUTES]);
    printf("%s\n", name);
    for (int r = 0; r < ROUTES; r++) {
        double *of = taken[r];
        qsort(of, (size_t)rounds, sizeof *of, by_size);
        printf("  %-10s %9.0f us, %.0f to %.0f\n", routes[r], 1e6 * of[rounds / 2], 1e6 * of[rounds / 4], 1e6 * of[rounds * 3 / 4]);
    }
    print_choice(plans[AUTO]);
    fflush(stdout);
    for (int r = 0; r < ROUTES; r++) hd_plan_destroy(plans[r]);
    free(b->data);
}

int main(int count, char **arguments) {
    hd_device *devices[2];
    const int wanted = count > 3 ? atoi(arguments[3]) : 11, rounds = wanted < 1 ? 1 : wanted < MOST_ROUNDS ? wanted : MOST_ROUNDS;
    if (count < 3) {
        fprintf(stderr, "usage: bench_rows DEVICE BESIDE [rounds]\n");
        return 2;
    }
    if (hd_context_create(NULL, &context)) return 1;
    for (int d = 0; d < 2; d++) check(hd_device_open(context, &(hd_device_desc){ .id = arguments[1 + d] }, &devices[d]));
    printf("device %s, beside it %s; median of %d and its middle half\n", hd_device_get_info(devices[0])->id, hd_device_get_info(devices[1])->id, rounds);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        batch b = { .resident = batches[i].resident };
        check(hd_program_parse(context, batches[i].text, strlen(batches[i].text), &b.program));
        measure(&b, batches[i].name, devices, rounds);
        hd_program_destroy(b.program);
    }
    hd_context_destroy(context);
    return 0;
}
