/* exec_glsl.c: see exec_glsl.h. */
#define _GNU_SOURCE
#include "cli/exec_glsl.h"
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { MOST_BYTES = 16 << 20, PIECE = 1 << 16 };

bool exec_is_glsl(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".comp") == 0 || strcmp(dot, ".glsl") == 0);
}

/* All that comes, up to the end; false: more than a module may have, or no memory. */
static bool read_all(int from, char **out, size_t *out_bytes) {
    size_t room = 0;
    for (;;) {
        if (room - *out_bytes < PIECE) {
            char *more = room < MOST_BYTES ? realloc(*out, room += 4 * PIECE) : NULL;
            if (!more) return false;
            *out = more;
        }
        const ssize_t count = read(from, *out + *out_bytes, PIECE);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0;
        *out_bytes += (size_t)count;
    }
}

/* Starts glslc with its output in the pipe; an error number. */
static int start(const char *path, const int ends[2], pid_t *out_child) {
    char *const arguments[] = { (char[]){ "glslc" }, (char[]){ "-O" }, (char[]){ "--target-env=vulkan1.1" },
                                (char[]){ "-fshader-stage=compute" }, (char[]){ "-o" }, (char[]){ "-" },
                                (char *)(uintptr_t)path, NULL };
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (!error) error = posix_spawn_file_actions_addclose(&actions, ends[1]);
    if (!error) error = posix_spawnp(out_child, "glslc", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int exec_compile_glsl(const cli_command *command, const char *path, void **out_spirv, size_t *out_bytes) {
    int ends[2], state = 0;
    pid_t child = 0;
    char *bytes = NULL;
    *out_bytes = 0;
    if (pipe(ends)) return cli_fail(command, "no pipe to glslc: %s", strerror(errno));
    const int error = start(path, ends, &child);
    close(ends[1]);
    const bool whole = !error && read_all(ends[0], &bytes, out_bytes);
    close(ends[0]);
    while (!error && waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    if (error == ENOENT)
        return cli_fail(command,
                        "%s is GLSL, and glslc is not there to compile it; install it (package glslc), or give SPIR-V",
                        path);
    if (error) return cli_fail(command, "glslc cannot be started: %s", strerror(error));
    if (whole && WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        *out_spirv = bytes;
        return CLI_OK;
    }
    free(bytes);
    return cli_fail(command, "%s: glslc does not compile it; what it says is above", path);
}
