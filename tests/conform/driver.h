/* driver.h: what the suites of back ends that have drivers share: messages, opening a device, and the cache of compiled kernels
 * on disk, which must never be trusted. */
#ifndef TESTS_CONFORM_DRIVER_H
#define TESTS_CONFORM_DRIVER_H

#include "conform/conform.h"
#include <dirent.h>
#include <unistd.h>

static inline void print_line(void *user, hd_log_level level, const char *part, const char *line) {
    (void)user;
    if (level <= HD_LOG_WARNING) fprintf(stderr, "[%s] %s\n", part, line);
}

static char    cache_dir[] = "/tmp/heddle-conform-XXXXXX";
static hdi_log test_log = { .write = print_line, .level = HD_LOG_WARNING };
static conform subject; /* the back end under test, and its device */

static inline void open_device(void) {
    hdi_probe probe;
    subject.backend->probe(&subject.host, &probe);
    assert_true(probe.found_count > 0);
    subject.found = probe.found[0];
    assert_int_equal(subject.backend->open(&subject.host, &subject.found, NULL, &subject.device, NULL), HD_OK);
}

/* ---- the cache ---- */

/* The one file of compiled code, opened; or the number of files. */
static inline FILE *cache_file(const char *mode, int *out_count) {
    FILE *file = NULL;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    *out_count = 0;
    for (struct dirent *entry; (entry = readdir(folder)); ) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.200s", cache_dir, entry->d_name);
        ++*out_count;
        if (file) fclose(file);
        if (strcmp(mode, "remove") == 0) remove(path);
        else file = fopen(path, mode);
    }
    closedir(folder);
    return file;
}

static inline hd_status load(uint32_t factor, bool *out_cached, hd_error *error) {
    const hdi_kernel kernel = conform_kernel(factor);
    hdi_loaded_kernel *loaded = NULL;
    *error = (hd_error){ 0 };
    const hd_status status = subject.backend->kernel_load(subject.device, &conform_module, &kernel, &loaded, out_cached, error);
    subject.backend->kernel_free(subject.device, loaded);
    return status;
}

static inline bool load_from_cache(uint32_t factor) {
    hd_error error;
    bool cached = false;
    assert_int_equal(load(factor, &cached, &error), HD_OK);
    return cached;
}

static inline void test_cache(void **state) {
    (void)state;
    int count;
    cache_file("remove", &count);
    subject.host.cache_dir = cache_dir;
    open_device();
    assert_false(load_from_cache(5));
    assert_true(load_from_cache(5));
    cache_file("remove", &count);
    assert_int_equal(count, 1);
    assert_false(load_from_cache(5));
    subject.backend->close(subject.device);
    open_device();
    assert_true(load_from_cache(5));
    assert_false(load_from_cache(6)); /* other constants are another kernel */
    cache_file("remove", &count);
    assert_int_equal(count, 2);
    subject.backend->close(subject.device);
    subject.host.cache_dir = NULL;
}

static inline void test_cache_damage(void **state) {
    (void)state;
    int count;
    subject.host.cache_dir = cache_dir;
    open_device();
    cache_file("remove", &count);
    assert_false(load_from_cache(5));
    FILE *file = cache_file("rb", &count);
    uint8_t bytes[1 << 16];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 64);
    for (size_t at = 0; at < size + 3; at += at < 80 ? 1 : size / 50 + 1) { /* each place flipped, cut there, or grown */
        for (int kind = 0; kind < 2; kind++) {
            file = cache_file("wb", &count);
            bytes[at % size] ^= kind == 0 && at < size;
            assert_int_equal(fwrite(bytes, 1, kind == 1 && at < size ? at : size, file), kind == 1 && at < size ? at : size);
            if (at >= size) fputc(0, file);
            fclose(file);
            bytes[at % size] ^= kind == 0 && at < size;
            assert_false(load_from_cache(5));
            assert_true(load_from_cache(5)); /* mended */
        }
    }
    cache_file("remove", &count);
    assert_int_equal(count, 1); /* no half-written file stays */
    subject.backend->close(subject.device);
    subject.host.cache_dir = NULL;
}

static inline void test_cache_unwritable(void **state) {
    (void)state;
    subject.host.cache_dir = "/proc/heddle-is-not-there";
    open_device();
    assert_false(load_from_cache(5));
    assert_false(load_from_cache(5));
    subject.backend->close(subject.device);
    subject.host.cache_dir = NULL;
}

/* A module that ends in the middle of its header is refused before the driver sees it. */
static inline void test_cut_module(void **state) {
    (void)state;
    open_device();
    uint32_t words[HDI_COUNT(conform_words)];
    memcpy(words, conform_words, sizeof words);
    hdi_blob blob = { words, 4, 1, NULL };
    const hdi_module module = { .name = "bad", .spirv = &blob };
    const hdi_kernel kernel = conform_kernel(2);
    hdi_loaded_kernel *loaded = NULL;
    hd_error error = { 0 };
    bool cached;
    assert_int_equal(subject.backend->kernel_load(subject.device, &module, &kernel, &loaded, &cached, &error), HD_STATUS_MODULE);
    assert_non_null(strstr(error.text, "kernel bad: SPIR-V"));
    subject.backend->close(subject.device);
}

#endif
