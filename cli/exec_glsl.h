/* exec_glsl.h: a kernel in GLSL becomes SPIR-V by glslc, where that is installed. */
#ifndef CLI_EXEC_GLSL_H
#define CLI_EXEC_GLSL_H

#include "cli/cli.h"

bool exec_is_glsl(const char *path); /* by its ending, .comp or .glsl */
/* The module's bytes, to be given to free(). What glslc says of the source goes to standard error. */
int exec_compile_glsl(const cli_command *command, const char *path, void **out_spirv, size_t *out_bytes);

#endif
