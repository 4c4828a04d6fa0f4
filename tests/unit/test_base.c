/* test_base.c: the base room: statuses, types, arenas, text, checked arithmetic, a process' share of processors and memory. */
#define _DEFAULT_SOURCE
#include "base/base.h"
#include "os/os.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void statuses_have_texts(void **state) {
    (void)state;
    assert_string_equal(hd_status_name(HD_STATUS_DEVICE_LOST), "device-lost");
    assert_string_equal(hd_status_name((hd_status)12345), "unknown");
    assert_string_equal(hd_status_hint(HD_OK), "");
    hd_error error = { 0 };
    assert_int_equal(hdi_fail(&error, HD_STATUS_LIMIT, "first %d", 1), HD_STATUS_LIMIT);
    hdi_fail(&error, HD_STATUS_IO, "second");
    assert_string_equal(error.text, "first 1");
    assert_int_equal(error.status, HD_STATUS_LIMIT);
}

static void types_have_sizes(void **state) {
    (void)state;
    assert_int_equal(hd_dtype_bytes(HD_Q4_K, 512), 288);
    assert_int_equal(hd_dtype_bytes(HD_Q4_K, 100), 0);
    assert_int_equal(hd_dtype_bytes(HD_F32, UINT64_MAX / 2), 0);
    assert_int_equal(hd_dtype_parse("tq2_0"), HD_TQ2_0);
    assert_int_equal(hd_dtype_parse("f33"), HD_DTYPE_NONE);
    assert_int_equal(hd_tensor_bytes(HD_Q8_0, HD_SHAPE(3, 64)), 3 * 2 * 34);
    assert_int_equal(hd_tensor_bytes(HD_Q8_0, HD_SHAPE(64, 3)), 0);
    assert_int_equal(hd_shape_elements(HD_SHAPE(INT64_MAX, 3)), 0);
    assert_int_equal(hd_shape_elements(HD_SHAPE(4, 0)), 0);
    assert_int_equal(hd_shape_elements((hd_shape){ 0 }), 1);
    char text[HDI_SHAPE_TEXT];
    assert_string_equal(hdi_shape_text(HD_SHAPE(2, 3), text), "[2,3]");
}

static void arenas_grow(void **state) {
    (void)state;
    hdi_arena arena = { &hdi_default_allocator, NULL };
    for (size_t i = 1; i < 3000; i += 7) {
        unsigned char *p = hdi_arena_alloc(&arena, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t k = 0; k < i; k++) assert_int_equal(p[k], 0);
        memset(p, 0xFF, i);
    }
    assert_null(hdi_arena_alloc(&arena, SIZE_MAX - 3));
    hdi_arena_free(&arena);
}

static void floats_read_back(void **state) {
    (void)state;
    char text[32];
    hdi_float_text(0.1f, text);
    assert_string_equal(text, "0.1");
    hdi_float_text(1.0f / 3.0f, text);
    assert_string_equal(text, "0.33333334");
    static const char *const good[] = { "0", "-0", "1", "+2.5", ".5", "5.", "1e-05", "3.4028235e+38", "1e-45", "inf", "-inf" };
    static const char *const bad[] = { "", "-", ".", "1e", "1e+", "1e39", "0x1", "1 ", " 1", "1,5", "infinity", "-nan", "1.2.3" };
    float value;
    for (size_t i = 0; i < HDI_COUNT(good); i++) {
        assert_true(hdi_float_read(good[i], strlen(good[i]), &value));
        assert_true(value == strtof(good[i], NULL));
    }
    for (size_t i = 0; i < HDI_COUNT(bad); i++) assert_false(hdi_float_read(bad[i], strlen(bad[i]), &value));
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        float before;
        memcpy(&before, &random, sizeof before);
        hdi_float_text(before, text);
        assert_true(hdi_float_read(text, strlen(text), &value));
        assert_true(value == before || (value != value && before != before));
    }
}

static char root[] = "/tmp/heddle-groups-XXXXXX";

static void put_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static uint32_t share_of(const char *groups) {
    char path[256];
    put_file("self", groups);
    snprintf(path, sizeof path, "%s/self", root);
    return hdi_quota_processors(path, root);
}

static uint64_t memory_of(const char *groups) {
    char path[256];
    put_file("self", groups);
    snprintf(path, sizeof path, "%s/self", root);
    return hdi_quota_memory(path, root);
}

static void remove_files(void) {
    char remove_it[64];
    snprintf(remove_it, sizeof remove_it, "rm -r %s", root);
    assert_int_equal(system(remove_it), 0);
}

/* As Linux writes them, in containers and outside; every group around the process' own may allow less. */
static void shares_are_read(void **state) {
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(hdi_quota_processors("/nowhere", root), UINT32_MAX);
    assert_int_equal(share_of("0::/\n"), UINT32_MAX);
    put_file("a/cpu.max", "150000 100000\n");
    put_file("a/b/cpu.max", "max 100000\n");
    assert_int_equal(share_of("0::/a/b\n"), 2);
    assert_int_equal(share_of("0::/a/b/gone\n"), 2);
    assert_int_equal(share_of("0::/other\n"), UINT32_MAX);
    put_file("cpu.max", "50000 100000\n"); /* what a container sees as its root */
    assert_int_equal(share_of("0::/\n"), 1);
    put_file("cpu.max", "no numbers");
    put_file("cpu/docker/cpu.cfs_quota_us", "300000\n");
    put_file("cpu/docker/cpu.cfs_period_us", "100000\n");
    put_file("cpu/cpu.cfs_quota_us", "-1\n");
    put_file("cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(share_of("7:pids:/a\n4:cpu,cpuacct:/docker\n3:cpuset:/\n0::/\n"), 3);
    assert_int_equal(share_of("4:cpu:/\n"), UINT32_MAX);
    put_file("a/cpu.max", "99999999999999999999999 0");
    assert_int_equal(share_of("0::/a\n"), UINT32_MAX);
    assert_int_equal(share_of("nothing\n:\n::\n0:cpu\n"), UINT32_MAX);
    remove_files();
    assert_true(hdi_os_processor_count() >= 1);
}

/* What a group has left: its limit less what it uses, of which files that were read go first. */
static void memory_left_is_read(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/heddle-groups-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_true(hdi_quota_memory("/nowhere", root) == UINT64_MAX);
    put_file("a/memory.max", "1000000\n");
    assert_true(memory_of("0::/a\n") == UINT64_MAX); /* what it uses is not told */
    put_file("a/memory.current", "700000\n");
    assert_int_equal(memory_of("0::/a\n"), 300000);
    put_file("a/memory.stat", "anon 500000\ninactive_file 150000\nactive_file 50000\n");
    assert_int_equal(memory_of("0::/a\n"), 450000);
    put_file("a/b/memory.max", "max\n");
    put_file("a/b/memory.current", "5\n");
    assert_int_equal(memory_of("0::/a/b\n"), 450000); /* the group around it */
    put_file("a/memory.current", "1200000\n"); /* more than its limit, which was lowered */
    assert_int_equal(memory_of("0::/a\n"), 0);
    put_file("memory/docker/memory.limit_in_bytes", "4096\n");
    put_file("memory/docker/memory.usage_in_bytes", "1024\n");
    put_file("memory/docker/memory.stat", "inactive_file 8\ntotal_inactive_file 24\n");
    assert_int_equal(memory_of("3:cpu:/a\n4:memory:/docker\n"), 4096 - 1000);
    put_file("memory/docker/memory.limit_in_bytes", "9223372036854771712\n"); /* how version 1 says none */
    assert_true(memory_of("4:memory:/docker\n") > UINT64_MAX / 4);
    remove_files();
}

/* ---- logging ---- */

static char heard[64];
static void hear(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    snprintf(heard, sizeof heard, "%d %s %s", (int)level, part, line);
}
static bool hears(const hdi_log *log, hd_log_level level, const char *part) {
    heard[0] = 0;
    hdi_log_line(log, level, part, "%s", "line");
    return heard[0] != 0;
}

static void parts_have_levels_of_their_own(void **state) {
    (void)state;
    hdi_log log = { .write = hear, .level = HD_LOG_WARNING };
    assert_true(hdi_log_read(&log, "info,vulkan=debug,cache=error"));
    assert_true(hears(&log, HD_LOG_INFO, "plan") && !hears(&log, HD_LOG_DEBUG, "plan"));
    assert_true(hears(&log, HD_LOG_DEBUG, "vulkan"));
    assert_string_equal(heard, "4 vulkan line");
    assert_true(hears(&log, HD_LOG_ERROR, "cache") && !hears(&log, HD_LOG_WARNING, "cache"));
    log = (hdi_log){ .write = hear, .level = HD_LOG_WARNING };
    assert_true(hdi_log_read(&log, "plan=info"));
    assert_true(hears(&log, HD_LOG_INFO, "plan") && !hears(&log, HD_LOG_INFO, "device"));
    static const char *const bad[] = { "", "loud", "warning,", ",warning", "=debug", "vulkan=", "vulkan=loud", "vulkan=debug=info", "error;info",
                                       "a_part_with_a_long_name=debug", "a=info,b=info,c=info,d=info,e=info,f=info,g=info,h=info,i=info" };
    for (size_t i = 0; i < HDI_COUNT(bad); i++) {
        log = (hdi_log){ .level = HD_LOG_WARNING };
        if (hdi_log_read(&log, bad[i])) fail_msg("\"%s\" was taken", bad[i]);
    }
}

/* Of three pages of a file, the middle one is turned into what it is told to be; a path longer than a line stands there too. */
static bool is_shared(int may, int flags) {
    enum { PAGE = 65536 };
    char path[700] = "/tmp/heddle-base-XXXXXX";
    assert_non_null(mkdtemp(path));
    const size_t folder = strlen(path);
    for (int i = 0; i < 3; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%0200d", i);
        if (i < 2) assert_int_equal(mkdir(path, 0700), 0);
    }
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(file >= 0 && ftruncate(file, 3 * PAGE) == 0);
    char *map = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    assert_true(map != MAP_FAILED && mmap(map + PAGE, PAGE, may, flags | MAP_FIXED, file, PAGE) != MAP_FAILED);
    const bool all = hdi_os_is_shared_file(map + 100, 3 * PAGE - 100);
    assert_true(hdi_os_is_shared_file(map + 100, PAGE - 100) && hdi_os_is_shared_file(map + 2 * PAGE, PAGE));
    munmap(map + 2 * PAGE, PAGE);
    assert_false(hdi_os_is_shared_file(map + 100, 3 * PAGE - 100));
    munmap(map, 2 * PAGE);
    close(file);
    unlink(path);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = 0;
        assert_true(strlen(path) < folder || rmdir(path) == 0);
    }
    return all;
}

static void shared_files_are_told(void **state) {
    (void)state;
    assert_true(is_shared(PROT_READ, MAP_SHARED));
    assert_false(is_shared(PROT_READ, MAP_PRIVATE));
    assert_false(is_shared(PROT_READ | PROT_WRITE, MAP_SHARED));
    assert_false(hdi_os_is_shared_file(&(int){ 0 }, sizeof(int)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_levels_of_their_own), cmocka_unit_test(statuses_have_texts),
        cmocka_unit_test(types_have_sizes),
        cmocka_unit_test(arenas_grow),
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(shares_are_read),
        cmocka_unit_test(memory_left_is_read),
        cmocka_unit_test(shared_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
