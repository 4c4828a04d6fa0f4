/* glsl.c: a kernel's GLSL becomes SPIR-V by glslc, a program of the system's that is looked for when it is wanted. */
#include "os/os.h"
#include "spirv/module.h"
#include <errno.h>
#include <stdio.h>

enum { MOST_TEXT = 16 << 20, MOST_BYTES = 16 << 20, TIMEOUT_MS = 60000, WORDS = 300 };

bool hdi_glsl_is(const hd_kernel_desc *desc) {
    const char *dot = desc->spirv || desc->glsl || !desc->path ? NULL : strrchr(desc->path, '.');
    return (!desc->spirv && desc->glsl) || (dot && (strcmp(dot, ".comp") == 0 || strcmp(dot, ".glsl") == 0));
}

/* The first error that glslc tells, "line 7: 'x' : undeclared identifier". It writes "<stdin>:7: error: ...", or, where
 * it is of no line, "glslc: error: ...". */
static void read_error(FILE *said, const char *name, char out[WORDS]) {
    char line[WORDS];
    out[0] = 0;
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        const size_t length = strlen(name);
        const bool here = strncmp(line, name, length) == 0 && line[length] == ':';
        const char *rest = here ? line + length + 1 : line, *error = strstr(rest, "error: ");
        if (!error && out[0]) continue;
        line[strcspn(line, "\r\n")] = 0;
        if (here && error && rest[0] >= '0' && rest[0] <= '9')
            snprintf(out, WORDS, "line %.*s: %.250s", (int)strspn(rest, "0123456789"), rest, error + 7);
        else snprintf(out, WORDS, "%.280s", error ? error + 7 : rest);
        if (error) break;
    }
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
}

static hd_status read_module(const hd_allocator *allocator, FILE *from, hdi_file *out, hd_error *error) {
    const long count = fseek(from, 0, SEEK_END) ? -1 : ftell(from);
    rewind(from);
    out->count = count > 0 && (unsigned long)count <= MOST_BYTES ? (size_t)count : 0;
    out->capacity = (uint32_t)out->count;
    out->data = out->count ? hdi_alloc(allocator, out->count) : NULL;
    if (out->count && !out->data) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a kernel");
    if (out->data && fread(out->data, 1, out->count, from) == out->count) return HD_OK;
    return hdi_fail(error, HD_STATUS_MODULE, "glslc gives no module, or one larger than %d bytes", MOST_BYTES);
}

/* streams: the text, the module, what is said. */
static hd_status compile(const hd_allocator *allocator, const hd_kernel_desc *desc, FILE *const streams[3],
                         hdi_file *out, hd_error *error) {
    const char *const from = desc->glsl ? "-" : desc->path, *const name = desc->glsl ? "<stdin>" : desc->path;
    const char *const of = desc->glsl ? "the kernel's text" : desc->path;
    const char *const arguments[] = { "glslc", "-O", "--target-env=vulkan1.1", "-fshader-stage=compute", "-o", "-",
                                      from, NULL };
    int code = 0;
    const size_t bytes = desc->glsl ? strlen(desc->glsl) : 0;
    if (bytes > MOST_TEXT)
        return hdi_fail(error, HD_STATUS_LIMIT, "a kernel's text of %zu bytes; at most %d are taken", bytes, MOST_TEXT);
    if (fwrite(desc->glsl ? desc->glsl : "", 1, bytes, streams[0]) != bytes || fflush(streams[0]))
        return hdi_fail(error, HD_STATUS_IO, "no temporary file holds the kernel's text: %s", strerror(errno));
    rewind(streams[0]);
    switch (hdi_os_run(arguments, streams, TIMEOUT_MS, &code)) {
    case 0: break;
    case ENOENT:
        return hdi_fail(error, HD_STATUS_RUNTIME_NOT_FOUND,
                        "%.200s is GLSL, and glslc is not there to compile it; install it (package glslc), or give "
                        "SPIR-V", of);
    case ETIMEDOUT:
        return hdi_fail(error, HD_STATUS_TIMEOUT, "glslc takes longer than a minute for %.200s; give SPIR-V", of);
    default: return hdi_fail(error, HD_STATUS_IO, "glslc cannot be started, or its end is not told, for %.200s", of);
    }
    if (code == 0) return read_module(allocator, streams[1], out, error);
    char words[WORDS];
    read_error(streams[2], name, words);
    return hdi_fail(error, HD_STATUS_MODULE, "glslc does not compile %.150s: %.200s", of, words);
}

hd_status hdi_glsl_compile(const hd_allocator *allocator, const hd_kernel_desc *desc, hdi_file *out, hd_error *error) {
    FILE *streams[3];
    bool all = true;
    for (int i = 0; i < 3; i++) all &= (streams[i] = tmpfile()) != NULL;
    const hd_status status = all ? compile(allocator, desc, streams, out, error)
                                 : hdi_fail(error, HD_STATUS_IO, "no temporary file for glslc: %s", strerror(errno));
    for (int i = 0; i < 3; i++)
        if (streams[i]) fclose(streams[i]);
    return status;
}
