/* exec_glsl.c: see exec_glsl.h. */
#include "cli/exec_glsl.h"
#include "cli/system.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

bool exec_is_glsl(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".comp") == 0 || strcmp(dot, ".glsl") == 0);
}

int exec_compile_glsl(const cli_command *command, const char *path, void **out_spirv, size_t *out_bytes) {
    const char *const arguments[] = { "glslc", "-O", "--target-env=vulkan1.1", "-fshader-stage=compute", "-o", "-",
                                      path, NULL };
    char *bytes;
    int code = 0;
    const int error = system_run(arguments, MOST_BYTES, &bytes, out_bytes, &code);
    if (error == ENOENT)
        return cli_fail(command,
                        "%s is GLSL, and glslc is not there to compile it; install it (package glslc), or give SPIR-V",
                        path);
    if (error) return cli_fail(command, "glslc cannot be started: %s", strerror(error));
    if (code == 0) {
        *out_spirv = bytes;
        return CLI_OK;
    }
    free(bytes);
    return cli_fail(command, "%s: glslc does not compile it; what it says is above", path);
}
