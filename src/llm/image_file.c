/* image_file.c: images out of files: PPM as it is, PNG and JPEG by libpng and libturbojpeg, which are opened when one
 * comes. Both keep their failures to themselves and are called through functions alone, so their headers are not
 * needed. */
#include "llm/files.h"
#include "llm/image.h"
#include "os/os.h"
#include <stdio.h>

enum { MOST_BYTES = 64 << 20, MOST_PIXELS = 1 << 26 };

typedef struct reading {
    const hd_allocator *allocator;
    const char *path;
    uint8_t    *bytes;       /* of the file */
    uint64_t    count;
    uint8_t    *pixels;      /* of `depth` bytes each */
    uint32_t    width, height, depth;
    hd_error   *error;
} reading;

static hd_status fail(const reading *r, hd_status status, const char *what) {
    return hdl_fail(r->error, status, "%.160s: %s", r->path, what);
}
static hd_status damaged(const reading *r) { return fail(r, HD_STATUS_PARSE, "the image is damaged"); }

static uint64_t room_of(const reading *r) { return (uint64_t)r->width * r->height * r->depth; }

/* Room for the pixels, where a file says how many there are. */
static hd_status take_size(reading *r, uint64_t width, uint64_t height, uint32_t depth) {
    if (width == 0 || height == 0) return damaged(r);
    if (width > HDL_MOST_IMAGE_SIDE || height > HDL_MOST_IMAGE_SIDE || width * height > MOST_PIXELS)
        return hdl_fail(r->error, HD_STATUS_LIMIT,
                        "%.160s: the image has %llu x %llu pixels; at most %d in each direction and %d in all are "
                        "taken", r->path, (unsigned long long)width, (unsigned long long)height, HDL_MOST_IMAGE_SIDE,
                        MOST_PIXELS);
    r->width = (uint32_t)width;
    r->height = (uint32_t)height;
    r->depth = depth;
    r->pixels = hdl_alloc(r->allocator, room_of(r));
    return r->pixels ? HD_OK : fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the image");
}

/* ---- libraries ---- */

/* Opens the first library of a list and finds its functions. */
static hd_status open_library(const reading *r, const char *const *names, const char *const *symbols,
                              hdi_os_function *out, uint32_t count, const char *missing) {
    void *library = NULL;
    for (; *names && !library; names++) library = hdi_os_library(*names);
    for (uint32_t i = 0; i < count && library; i++)
        if (!(out[i] = hdi_os_symbol(library, symbols[i]))) library = NULL;
    return library ? HD_OK : fail(r, HD_STATUS_UNSUPPORTED, missing);
}

/* ---- PNG: libpng's simplified interface ---- */

typedef struct png_image { /* of version 1, which libpng promises to keep */
    void    *inside;
    uint32_t version, width, height, format, flags, colours, failed;
    char     message[64];
} png_image;
enum { PNG_VERSION = 1, PNG_RGBA = 3, PNG_16_BITS_ARE_SRGB = 4 };

static hd_status read_png(reading *r) {
    static const char *const names[] = { "libpng16.so.16", "libpng16.16.dylib", "libpng16-16.dll", NULL };
    static const char *const symbols[] = { "png_image_begin_read_from_memory", "png_image_finish_read",
                                           "png_image_free" };
    hdi_os_function found[3];
    int (*begin)(png_image *, const void *, size_t);
    int (*finish)(png_image *, const void *, void *, int32_t, void *);
    void (*end)(png_image *);
    png_image png = { .version = PNG_VERSION };
    hd_status status = open_library(r, names, symbols, found, 3, "PNG is read by libpng16, which is not there; "
                                                                 "install libpng16-16, or give a PPM file");
    if (status) return status;
    memcpy(&begin, &found[0], sizeof begin);
    memcpy(&finish, &found[1], sizeof finish);
    memcpy(&end, &found[2], sizeof end);
    if (!begin(&png, r->bytes, (size_t)r->count)) status = damaged(r);
    if (!status) status = take_size(r, png.width, png.height, 4);
    png.format = PNG_RGBA;
    png.flags |= PNG_16_BITS_ARE_SRGB;
    if (!status && (!finish(&png, NULL, r->pixels, 0, NULL) || png.failed & 2)) status = damaged(r);
    end(&png);
    return status;
}

/* ---- JPEG: libturbojpeg ---- */

enum { JPEG_RGB = 0, JPEG_LIMITS_SCANS = 32768 };

static hd_status read_jpeg(reading *r) {
    static const char *const names[] = { "libturbojpeg.so.0", "libturbojpeg.0.dylib", "libturbojpeg.dll", NULL };
    static const char *const symbols[] = { "tjInitDecompress", "tjDecompressHeader3", "tjDecompress2", "tjDestroy" };
    hdi_os_function found[4];
    void *(*begin)(void);
    int (*look)(void *, const uint8_t *, unsigned long, int *, int *, int *, int *);
    int (*unpack)(void *, const uint8_t *, unsigned long, uint8_t *, int, int, int, int, int);
    int (*end)(void *);
    int width = 0, height = 0, sampling, colours;
    hd_status status = open_library(r, names, symbols, found, 4, "JPEG is read by libturbojpeg, which is not there; "
                                                                 "install libturbojpeg0, or give a PNG or PPM file");
    if (status) return status;
    memcpy(&begin, &found[0], sizeof begin);
    memcpy(&look, &found[1], sizeof look);
    memcpy(&unpack, &found[2], sizeof unpack);
    memcpy(&end, &found[3], sizeof end);
    void *jpeg = begin();
    if (!jpeg) return fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the image");
    const unsigned long count = (unsigned long)r->count;
    if (look(jpeg, r->bytes, count, &width, &height, &sampling, &colours) || width < 1 || height < 1)
        status = damaged(r);
    if (!status) status = take_size(r, (uint64_t)width, (uint64_t)height, 3);
    if (!status && unpack(jpeg, r->bytes, count, r->pixels, width, 0, height, JPEG_RGB, JPEG_LIMITS_SCANS))
        status = damaged(r);
    (void)end(jpeg);
    return status;
}

/* ---- PPM ---- */

static bool is_digit(const reading *r, uint64_t at) {
    return at < r->count && r->bytes[at] >= '0' && r->bytes[at] <= '9';
}

/* The next number of the head, behind blanks and comments, of 9 digits at most; false: there is none. */
static bool next_number(const reading *r, uint64_t *at, uint64_t *out) {
    bool comment = false;
    for (; *at < r->count; ++*at) {
        const uint8_t c = r->bytes[*at];
        comment = c == '#' || (comment && c != '\n');
        if (!comment && c != ' ' && c != '\t' && c != '\r' && c != '\n') break;
    }
    const uint64_t first = *at;
    for (*out = 0; is_digit(r, *at) && *at - first < 9; ++*at) *out = 10 * *out + (uint64_t)(r->bytes[*at] - '0');
    return *at > first && !is_digit(r, *at);
}

static hd_status read_ppm(reading *r) {
    uint64_t at = 2, width, height, most;
    if (!next_number(r, &at, &width) || !next_number(r, &at, &height) || !next_number(r, &at, &most)) return damaged(r);
    if (most != 255) return fail(r, HD_STATUS_UNSUPPORTED, "PPM files are taken with 8 bits a colour, up to 255");
    const hd_status status = take_size(r, width, height, 3);
    if (status) return status;
    if (r->count - at < 1 + room_of(r)) return damaged(r); /* one blank, then the pixels */
    memcpy(r->pixels, r->bytes + at + 1, room_of(r));
    return HD_OK;
}

/* ---- any of them ---- */

static hd_status read_file(reading *r) {
    const hdl_files *files = &hdl_system_files;
    hdl_file file;
    hd_status status = files->open(files->user, r->path, &file, r->error);
    if (status) return status;
    if (!files->size(files->user, file, &r->count)) status = fail(r, HD_STATUS_IO, "it cannot be read");
    else if (r->count > MOST_BYTES) status = fail(r, HD_STATUS_LIMIT, "an image has at most 64 MiB");
    if (status) r->count = 0;
    if (!status && !(r->bytes = hdl_alloc(r->allocator, r->count)))
        status = fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the image");
    if (!status && !hdl_files_read_all(files, file, 0, r->bytes, r->count))
        status = fail(r, HD_STATUS_IO, "it cannot be read");
    files->close(files->user, file);
    return status;
}

static bool begins(const reading *r, const char *with, size_t count) {
    return r->count > count && memcmp(r->bytes, with, count) == 0;
}

static hd_status read_image(reading *r) {
    if (begins(r, "\x89PNG\r\n\x1a\n", 8)) return read_png(r);
    if (begins(r, "\xff\xd8\xff", 3)) return read_jpeg(r);
    if (begins(r, "P6", 2)) return read_ppm(r);
    return fail(r, HD_STATUS_UNSUPPORTED, "this is no PNG, JPEG or PPM (P6) file");
}

/* Gives the pixels away, in three bytes each: how opaque they are is left out. */
static hd_status give(reading *r, hd_image *out) {
    const uint64_t count = (uint64_t)r->width * r->height;
    uint8_t *pixels = hdl_alloc(r->allocator, 3 * count);
    if (!pixels) return fail(r, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for the image");
    for (uint64_t i = 0; i < count; i++) memcpy(pixels + 3 * i, r->pixels + r->depth * i, 3);
    *out = (hd_image){ r->width, r->height, pixels };
    return HD_OK;
}

hd_status hd_image_read(hd_context *context, const char *path, hd_image *out_image) {
    hd_status status = hdl_context_lives(context);
    if (status || !path || !out_image) return status ? status : HD_STATUS_NULL_POINTER;
    const hd_allocator allocator = hd_context_allocator(context);
    hd_error error = { 0 };
    reading r = { .allocator = &allocator, .path = path, .error = &error };
    *out_image = (hd_image){ 0 };
    status = read_file(&r);
    if (!status) status = read_image(&r);
    if (!status) status = give(&r, out_image);
    hdl_free(&allocator, r.bytes, r.count);
    hdl_free(&allocator, r.pixels, room_of(&r));
    return status ? hd_context_put_error(context, &error) : HD_OK;
}

void hd_image_free(hd_context *context, hd_image *image) {
    if (!image || hdl_context_lives(context)) return;
    const hd_allocator allocator = hd_context_allocator(context);
    hdl_free(&allocator, (void *)(uintptr_t)image->pixels, UINT64_C(3) * image->width * image->height);
    *image = (hd_image){ 0 };
}
