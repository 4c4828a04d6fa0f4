/* test_line_edit.c: lines from a pipe, and from a terminal of our own with keys, characters of several bytes and a history.
 * The source is included, not linked: it belongs to the CLI. */
#define _GNU_SOURCE
#include "../../cli/line_edit.c"
#include "../../cli/system_posix.c"
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

/* The child's part: reads lines and says each on descriptor `out`, then ends. */
static void say_lines(int out, const char *history_path) {
    line_edit *editor = line_edit_open(history_path);
    char *line;
    dprintf(out, "%s\n", line_edit_edits(editor) ? "edits" : "plain");
    while ((line = line_edit_read(editor, "> ")) != NULL) {
        dprintf(out, "[%zu:%.20s]\n", strlen(line), line);
        free(line);
    }
    line_edit_close(editor);
    _exit(0);
}

/* Whether single keys reach whoever reads the terminal. */
static bool takes_keys(int master) {
    struct termios now;
    return tcgetattr(master, &now) != 0 || !(now.c_lflag & (tcflag_t)ICANON);
}

/* What the child says, given these bytes as its input: through a pipe, or as keys on a terminal. */
static void said(bool terminal, const char *input, size_t bytes, const char *history_path, char *out, size_t out_bytes) {
    int from[2], to[2] = { -1, -1 }, master = -1;
    assert_int_equal(pipe(from), 0);
    if (terminal) {
        master = posix_openpt(O_RDWR | O_NOCTTY);
        assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
        to[1] = master;
    } else {
        assert_int_equal(pipe(to), 0);
    }
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (terminal) {
            setsid();
            to[0] = open(ptsname(master), O_RDWR);
            dup2(to[0], STDOUT_FILENO);
        }
        dup2(to[0], STDIN_FILENO);
        close(to[1]);
        close(from[0]);
        say_lines(from[1], history_path);
    }
    close(from[1]);
    if (!terminal) close(to[0]);
    size_t count = 0, sent = 0;
    /* On a terminal a line's keys go out when the child asks for it: it has said what it got so far and shows a prompt.
     * What is typed earlier would be read by the terminal's own rules. */
    bool asked = !terminal, spoke = false;
    for (bool open = true; open && count + 1 < out_bytes;) {
        if (!terminal && sent == bytes && to[1] >= 0) {
            close(to[1]);
            to[1] = -1;
        }
        struct pollfd fds[] = { { .fd = from[0], .events = POLLIN }, { .fd = to[1], .events = (short)((terminal ? POLLIN : 0) | (asked && sent < bytes ? POLLOUT : 0)) } };
        if (poll(fds, to[1] >= 0 ? 2 : 1, 20000) <= 0) break;
        poll(fds, 1, 0); /* a prompt comes after what was said: look at that first */
        if (fds[0].revents & (POLLIN | POLLHUP)) {
            const ssize_t got = read(from[0], out + count, out_bytes - count - 1);
            if (got > 0) count += (size_t)got;
            else open = false;
            spoke = true;
        }
        char echo[4097];
        if (to[1] >= 0 && fds[1].revents & POLLIN) {
            const ssize_t got = read(to[1], echo, sizeof echo - 1);
            echo[got > 0 ? got : 0] = 0;
            if (got <= 0) to[1] = -1;
            if (spoke && memchr(echo, '>', strlen(echo))) asked = true;
        } else if (to[1] >= 0 && fds[1].revents & POLLOUT && asked && terminal && !takes_keys(master)) {
            poll(NULL, 0, 1); /* the prompt is there, but the terminal's rules still hold */
        } else if (to[1] >= 0 && fds[1].revents & POLLOUT && asked) {
            const char *end = terminal ? memchr(input + sent, '\n', bytes - sent) : NULL;
            size_t some = end ? (size_t)(end - input) + 1 - sent : bytes - sent;
            const ssize_t got = write(to[1], input + sent, some > 512 ? 512 : some);
            if (got > 0) sent += (size_t)got;
            if (terminal) asked = spoke = false;
        }
    }
    out[count] = 0;
    close(from[0]);
    if (master >= 0) close(master);
    else if (to[1] >= 0) close(to[1]);
    kill(child, SIGKILL); /* it has ended, unless something is wrong */
    waitpid(child, NULL, 0);
}

static void from_a_pipe(void **state) {
    (void)state;
    char out[2000];
    const char input[] = "one\n\ntw\xC3\xB6\nlast without an end";
    said(false, input, sizeof input - 1, NULL, out, sizeof out);
    assert_string_equal(out, "plain\n[3:one]\n[0:]\n[4:tw\xC3\xB6]\n[19:last without an end]\n");
    said(false, "", 0, NULL, out, sizeof out);
    assert_string_equal(out, "plain\n");
    const size_t long_bytes = 1000000;
    char *text = malloc(3 * long_bytes);
    memset(text, 'x', 3 * long_bytes);
    text[long_bytes - 1] = '\n';
    said(false, text, long_bytes + 5, NULL, out, sizeof out);
    assert_string_equal(out, "plain\n[999999:xxxxxxxxxxxxxxxxxxxx]\n[5:xxxxx]\n");
    free(text);
}

static void from_a_terminal(void **state) {
    (void)state;
    char out[2000], path[] = "/tmp/heddle-history-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    /* A character of two bytes is taken back with one key; the line before comes again with another. */
    const char keys[] = "ab\xC3\xB6\x7f\x7f" "c\n\x10" "d\n\x04";
    said(true, keys, sizeof keys - 1, path, out, sizeof out);
    if (strncmp(out, "plain", 5) == 0) {
        unlink(path);
        skip(); /* there is no libedit */
    }
    assert_string_equal(out, "edits\n[2:ac]\n[3:acd]\n");
    struct stat history;
    assert_true(stat(path, &history) == 0 && history.st_size > 0 && (history.st_mode & 077) == 0);
    const char again[] = "\x10\x10\n\x04"; /* two lines back in the history of the process before */
    said(true, again, sizeof again - 1, path, out, sizeof out);
    assert_string_equal(out, "edits\n[2:ac]\n");
    unlink(path);
}

/* Ctrl-D that is typed before a line is asked for ends the input, too. */
static void an_end_typed_early(void **state) {
    (void)state;
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && write(master, "\x04", 1) == 1);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(terminal, STDIN_FILENO);
        dup2(terminal, STDOUT_FILENO);
        line_edit *editor = line_edit_open(NULL);
        const bool ended = line_edit_read(editor, "> ") == NULL;
        line_edit_close(editor);
        _exit(ended ? 7 : 1);
    }
    int code = 0;
    for (int ms = 0; ms < 10000 && waitpid(child, &code, WNOHANG) == 0; ms++) poll(NULL, 0, 1);
    kill(child, SIGKILL);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 7);
    close(terminal);
    close(master);
}

static void history_paths(void **state) {
    (void)state;
    char folder[] = "/tmp/heddle-state-XXXXXX", out[200], wanted[200];
    assert_non_null(mkdtemp(folder));
    setenv("XDG_STATE_HOME", folder, 1);
    assert_true(line_edit_history_path("chat", out, sizeof out));
    snprintf(wanted, sizeof wanted, "%s/heddle/chat", folder);
    assert_string_equal(out, wanted);
    *strrchr(wanted, '/') = 0;
    assert_int_equal(rmdir(wanted), 0); /* it was made */
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", folder, 1);
    assert_true(line_edit_history_path("chat", out, sizeof out));
    assert_non_null(strstr(out, "/.local/state/heddle/chat"));
    for (const char *part[] = { "/.local/state/heddle", "/.local/state", "/.local", "" }, **p = part; p < part + 4; p++) {
        snprintf(wanted, sizeof wanted, "%s%s", folder, *p);
        assert_int_equal(rmdir(wanted), 0);
    }
    assert_false(line_edit_history_path("chat", out, 10));
    setenv("HOME", "nowhere", 1);
    assert_false(line_edit_history_path("chat", out, sizeof out));
    assert_string_equal(out, "");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(from_a_pipe), cmocka_unit_test(from_a_terminal),
                                      cmocka_unit_test(an_end_typed_early), cmocka_unit_test(history_paths) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
