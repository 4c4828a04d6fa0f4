/* run_posix.c: another program, run on Linux and other systems of POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "os/os.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* An error number. */
static int start(const char *const *arguments, FILE *const streams[3], pid_t *out_child) {
    union { const char *const *given; char *const *taken; } words = { arguments }; /* they are only read */
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    for (int i = 0; i < 3 && !error; i++) error = posix_spawn_file_actions_adddup2(&actions, fileno(streams[i]), i);
    if (!error) error = posix_spawnp(out_child, arguments[0], &actions, NULL, words.taken, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int hdi_os_run(const char *const *arguments, FILE *const streams[3], uint32_t timeout_ms, int *out_code) {
    pid_t child = 0, ended = 0;
    int state = 0;
    const int error = start(arguments, streams, &child);
    if (error) return error;
    for (uint32_t ms = 0; ended == 0 && ms < timeout_ms; ms++) {
        ended = waitpid(child, &state, WNOHANG);
        if (ended == 0) nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
        return ETIMEDOUT;
    }
    if (ended < 0) return errno; /* someone else took the child's end */
    *out_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    return 0;
}
