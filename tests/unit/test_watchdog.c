/* test_watchdog.c: a device whose driver ends what takes longer than 2 s. Its clock goes by facts that are invented: plans for it
 * are cut so that no single hand-over comes near that, and the same watchdog ends a plan that is not cut. */
#include "plan/schedule.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { WATCHDOG_US = 2000000, DEFAULT_US = 100000, DISPATCH_US = 5 };

static hdi_caps facts_of(uint64_t gflops, uint64_t gbytes_s) {
    hdi_caps caps = { 0 };
    char text[8192];
    FILE *file = fopen(HEDDLE_TESTS_DIR "/golden/caps/big-gpu.txt", "rb");
    assert_non_null(file);
    const size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_int_equal(hdi_caps_parse(text, bytes, &caps, NULL), HD_OK);
    caps.gflops = gflops;
    caps.gbytes_s = gbytes_s;
    return caps;
}

static hdi_schedule *plan_for(const hdi_caps *caps, const char *text, uint32_t slice_us) {
    hd_error error = { 0 };
    hdi_schedule *schedule = NULL;
    hd_program *program = hdi_program_new(&hdi_default_allocator, NULL);
    const hdi_plan_options options = { .slice_us = slice_us };
    if (hdi_program_parse(program, text, strlen(text), NULL, NULL, &error) ||
        hdi_schedule_make(&hdi_default_allocator, program, caps, &options, &schedule, &error))
        fail_msg("%s", error.text);
    hdi_program_free(program);
    return schedule;
}

/* What a command takes by the device's clock: of a dispatch its groups' share of the step. */
static double microseconds(const hdi_schedule *s, const hdi_schedule_step *step, const hdi_cmd *cmd) {
    const double all = (double)step->groups[0] * step->groups[1] * step->groups[2];
    const uint32_t *groups = cmd->as.dispatch.groups;
    const double share = cmd->kind == HDI_CMD_DISPATCH ? (double)groups[0] * groups[1] * groups[2] / all : 1;
    const double flops = (double)step->flops / ((double)s->caps.gflops * 1e3), bytes = (double)step->bytes / ((double)s->caps.gbytes_s * 1e3);
    return DISPATCH_US + share * (flops > bytes ? flops : bytes);
}

typedef struct watched { double longest_us, all_us, group_us; uint32_t hand_overs; } watched; /* group_us: of a workgroup, at most */

/* Runs the commands on the clock: a hand-over lasts from one cut to the next. */
static watched run(const hdi_schedule *s) {
    watched w = { 0 };
    double since = 0;
    uint64_t groups = 0, wanted = 0;
    const hdi_schedule_step *step = s->steps - 1;
    for (uint32_t c = 0; c < s->cmds.cmd_count; c++) {
        const hdi_cmd *cmd = &s->cmds.cmds[c];
        if (cmd->kind == HDI_CMD_MARK) {
            step++;
            if (step->kind == HDI_CMD_DISPATCH) wanted += (uint64_t)step->groups[0] * step->groups[1] * step->groups[2];
        } else if (cmd->kind == HDI_CMD_BARRIER) {
            if (!cmd->as.barrier.cut) continue;
            since = 0;
            w.hand_overs++;
        } else {
            const double us = microseconds(s, step, cmd);
            since += us;
            w.all_us += us;
            if (since > w.longest_us) w.longest_us = since;
            if (cmd->kind == HDI_CMD_DISPATCH) {
                const hdi_cmd one = { .kind = HDI_CMD_DISPATCH, .as.dispatch.groups = { 1, 1, 1 } };
                if (microseconds(s, step, &one) > w.group_us) w.group_us = microseconds(s, step, &one);
                groups += (uint64_t)cmd->as.dispatch.groups[0] * cmd->as.dispatch.groups[1] * cmd->as.dispatch.groups[2];
            }
        }
    }
    assert_int_equal(groups, wanted); /* nothing is left out, and nothing done twice */
    w.hand_overs++;
    return w;
}

static const char *const programs[] = {
    /* one long product */
    "heddle 1\nv1 = input f32[8192,8192] \"a\"\nv2 = input f32[8192,8192] \"b\"\nv3 = matmul v1 v2\noutput v3 \"y\"\n",
    /* one long pass over memory */
    "heddle 1\nv1 = input f32[16384,32768] \"x\"\nv2 = exp v1\noutput v2 \"y\"\n",
    /* many short steps, each of which waits for the one before, and products between them */
    "heddle 1\nv1 = input f32[2048,2048] \"x\"\nv2 = softmax v1 axis=1\nv3 = matmul v2 v1\nv4 = softmax v3 axis=1\nv5 = matmul v4 v1\n"
    "v6 = softmax v5 axis=0\nv7 = matmul v6 v1\nv8 = softmax v7 axis=1\nv9 = matmul v8 v1\nv10 = sum v9 axis=1\noutput v10 \"y\"\n",
    /* products of which none waits for another one */
    "heddle 1\nv1 = input f32[2560,2560] \"x\"\nv2 = input f32[2560,2560] \"a\"\nv3 = input f32[2560,2560] \"b\"\nv4 = input f32[2560,2560] \"c\"\n"
    "v5 = input f32[2560,2560] \"d\"\nv6 = matmul v1 v2\nv7 = matmul v1 v3\nv8 = matmul v1 v4\nv9 = matmul v1 v5\noutput v6 \"p\"\noutput v7 \"q\"\n"
    "output v8 \"r\"\noutput v9 \"s\"\n",
};

static void no_hand_over_wakes_it(void **state) {
    (void)state;
    static const uint64_t speeds[][2] = { { 10, 1 }, { 100, 2 }, { 1000, 20 }, { 50000, 4000 } };
    static const uint32_t slices[] = { 0, 20000, 500000 };
    for (uint32_t p = 0; p < HDI_COUNT(programs); p++)
        for (uint32_t v = 0; v < HDI_COUNT(speeds); v++)
            for (uint32_t k = 0; k < HDI_COUNT(slices); k++) {
                const hdi_caps caps = facts_of(speeds[v][0], speeds[v][1]);
                hdi_schedule *s = plan_for(&caps, programs[p], slices[k]);
                const watched w = run(s);
                const double most = slices[k] ? slices[k] : DEFAULT_US;
                print_message("program %u, %llu GFLOP/s: %.3f s in %u hand-overs, the longest %.1f ms\n", p + 1,
                              (unsigned long long)speeds[v][0], w.all_us * 1e-6, w.hand_overs, w.longest_us * 1e-3);
                assert_true(w.longest_us < WATCHDOG_US);
                /* no workgroup is cut, and a piece is a dispatch of its own */
                if (w.longest_us > most + DISPATCH_US && w.longest_us > w.group_us) fail_msg("%.0f us of at most %.0f", w.longest_us, most);
                hdi_schedule_free(s);
            }
}

/* A dispatch of 10 s beside a watchdog of 200 ms: pieces of at most 50 ms, for less than a twentieth of the time. */
static void ten_seconds_leave_the_desktop_alive(void **state) {
    (void)state;
    static const uint64_t speeds[][2] = { { 110, 10 }, { 1000, 1 } };
    for (uint32_t p = 0; p < HDI_COUNT(programs); p++)
        for (uint32_t v = 0; v < HDI_COUNT(speeds); v++) {
            const hdi_caps caps = facts_of(speeds[v][0], speeds[v][1]);
            hdi_schedule *cut = plan_for(&caps, programs[p], 50000), *uncut = plan_for(&caps, programs[p], UINT32_MAX);
            const watched w = run(cut), whole = run(uncut);
            print_message("program %u: %.2f s, longest %.1f of %.1f ms, %.3f %% more time\n", p + 1, whole.all_us * 1e-6, w.longest_us * 1e-3,
                          whole.longest_us * 1e-3, (w.all_us / whole.all_us - 1) * 100);
            assert_true(w.longest_us <= 50000 + DISPATCH_US && w.all_us < 1.05 * whole.all_us);
            hdi_schedule_free(cut);
            hdi_schedule_free(uncut);
        }
}

/* What this file watches for is seen where nothing cuts. */
static void it_ends_what_is_not_cut(void **state) {
    (void)state;
    hdi_caps caps = facts_of(10, 1);
    for (uint32_t p = 0; p < HDI_COUNT(programs); p++) {
        hdi_schedule *s = plan_for(&caps, programs[p], UINT32_MAX);
        assert_true(run(s).longest_us > WATCHDOG_US);
        hdi_schedule_free(s);
    }
}

/* A product cut along both axes of its grid, workgroup by workgroup, and whole: the same bits. */
static void pieces_are_the_whole(void **state) {
    (void)state;
    enum { M = 150, K = 40, COLUMNS = 190 };
    static const char *const devices[] = { "cpu", "vulkan", "opencl" };
    static float a[M * K], b[K * COLUMNS], y[2][M * COLUMNS];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i * 7 % 23 - 11) / 8;
    for (int i = 0; i < K * COLUMNS; i++) b[i] = (float)(i * 5 % 19 - 9) / 16;
    for (uint32_t d = 0; d < HDI_COUNT(devices); d++) {
        hd_context *context;
        hd_device *device;
        hd_plan_stats stats[2] = { 0 };
        assert_int_equal(hd_context_create(&(hd_context_desc){ .backend = devices[d], .cache_dir = "" }, &context), HD_OK);
        for (int i = 0; i < 2 && !hd_device_open(context, &(hd_device_desc){ .id = devices[d] }, &device); i++) {
            hd_plan *plan;
            hd_program *p = hd_program_create(context);
            const hd_value left = hd_input(p, "a", HD_F32, HD_SHAPE(M, K)), right = hd_input(p, "b", HD_F32, HD_SHAPE(K, COLUMNS));
            hd_output(p, "y", hd_matmul(p, left, right));
            if (hd_plan_create(device, p, &(hd_plan_desc){ .slice_us = i ? 1 : UINT32_MAX }, &plan) ||
                hd_plan_write(plan, "a", a, sizeof a) || hd_plan_write(plan, "b", b, sizeof b) || hd_plan_run(plan, NULL) ||
                hd_plan_read(plan, "y", y[i], sizeof y[i])) fail_msg("%s: %s", devices[d], hd_context_error(context));
            assert_int_equal(hd_plan_get_stats(plan, &stats[i]), HD_OK);
            if (i == 0) continue;
            print_message("%s: %u and %u dispatches\n", devices[d], stats[0].dispatches, stats[1].dispatches);
            assert_memory_equal(y[0], y[1], sizeof *y);
            assert_true(stats[1].dispatches > stats[0].dispatches);
        }
        hd_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_hand_over_wakes_it), cmocka_unit_test(ten_seconds_leave_the_desktop_alive), cmocka_unit_test(it_ends_what_is_not_cut),
                                        cmocka_unit_test(pieces_are_the_whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
