/* The files of the cache's folder: what others may have put there is never waited for, files are replaced as a whole, folders that
 * somebody else can write to are not used, and what dead writers left goes. */
#define _DEFAULT_SOURCE
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64], path[128], why[128];

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, time_t age_s) {
    const struct timespec times[2] = { { .tv_sec = time(NULL) - age_s }, { .tv_sec = time(NULL) - age_s } };
    assert_true(hdi_file_replace(in_folder(name), &(hdi_piece){ "x", 1 }, 1));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int begin(void **state) {
    (void)state;
    strcpy(folder, "/tmp/heddle-files-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    return chmod(folder, 0700) || rmdir(folder); /* nothing is left */
}

static void only_ordinary_files_are_opened(void **state) {
    (void)state;
    char got[8] = "";
    assert_null(hdi_file_open(in_folder("none")));
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    alarm(5); /* a plain open waits for a writer */
    assert_null(hdi_file_open(path));
    alarm(0);
    assert_int_equal(remove(path), 0);
    assert_null(hdi_file_open("/dev/zero"));
    assert_int_equal(symlink("/dev/zero", in_folder("link")), 0);
    assert_null(hdi_file_open(path));
    assert_int_equal(remove(path), 0);
    assert_null(hdi_file_open(folder));
    assert_true(hdi_file_replace(in_folder("file"), (const hdi_piece[]){ { "ab", 2 }, { "", 0 }, { "c", 1 } }, 3));
    FILE *file = hdi_file_open(path);
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), 3);
    assert_string_equal(got, "abc");
    fclose(file);
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkdir(in_folder("folder"), 0700), 0); /* not to be replaced: and nothing stays beside it */
    assert_false(hdi_file_replace(path, &(hdi_piece){ "x", 1 }, 1));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(rmdir(path), 0);
}

static void a_folder_of_others_is_not_used(void **state) {
    (void)state;
    static const struct { mode_t mode; bool used; } modes[] = { { 0700, true }, { 0755, true }, { 0775, false }, { 0757, false }, { 01777, false } };
    for (size_t i = 0; i < HDI_COUNT(modes); i++) {
        assert_int_equal(chmod(folder, modes[i].mode), 0);
        assert_int_equal(hdi_folder_open(folder, why, sizeof why), modes[i].used);
        if (modes[i].used) assert_string_equal(why, "");
        else assert_non_null(strstr(why, "others can put files there; run chmod go-w"));
    }
    assert_int_equal(chmod(folder, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 12345, 0), 0);
        assert_false(hdi_folder_open(folder, why, sizeof why));
        assert_non_null(strstr(why, "belongs to another user"));
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    assert_true(hdi_folder_open((char *)in_folder("a"), why, sizeof why)); /* made */
    assert_int_equal(rmdir(path), 0);
    put("file", 0);
    assert_false(hdi_folder_open(path, why, sizeof why));
    assert_non_null(strstr(why, "there can be no folder ("));
    assert_int_equal(remove(path), 0);
}

static void what_dead_writers_left_goes(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    char dead[64], young[64], alive[64];
    snprintf(dead, sizeof dead, "cpu-1.bin.%ld-0x7ffe", (long)child);
    snprintf(young, sizeof young, "cpu-2.bin.%ld-0x7ffe", (long)child);
    snprintf(alive, sizeof alive, "cpu-3.bin.%ld-0x7ffe", (long)getpid());
    const char *const names[] = { dead, young, alive, "cpu-4.bin", "facts-1.txt", "1234", "a.99999999999999999999-0x1", "b.-5-0x1" };
    for (size_t i = 0; i < HDI_COUNT(names); i++) put(names[i], i == 1 ? 0 : 600);
    assert_true(hdi_folder_open(folder, why, sizeof why));
    for (size_t i = 0; i < HDI_COUNT(names); i++) {
        if ((access(in_folder(names[i]), F_OK) != 0) != (i == 0)) fail_msg("%s", names[i]);
        if (i > 0) assert_int_equal(remove(path), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_ordinary_files_are_opened, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_of_others_is_not_used, begin, end),
        cmocka_unit_test_setup_teardown(what_dead_writers_left_goes, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
