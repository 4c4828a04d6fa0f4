/* npy.c: reads and writes .npy: a magic, a version, the length of a header, the header, the data. The header is the
 * text of a Python dictionary of exactly three keys; it is read by a small parser of that form only, nothing is
 * evaluated. Data is read in steps that double, so that a header which promises terabytes costs no more than the file
 * holds. */
#include "npy.h"
#include "cli/system.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 8, HEADER_LIMIT = 65536, FIRST_STEP = 1 << 20 };
static const char magic[] = "\x93NUMPY";

static bool refuse(char why[NPY_WHY], const char *format, ...) CLI_PRINTF(2, 3);
static bool refuse(char why[NPY_WHY], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, NPY_WHY, format, args);
    va_end(args);
    for (char *at = why; *at; at++) /* what is quoted from the file stays one line of plain text */
        if (*at < ' ' || *at > '~') *at = '?';
    return false;
}

/* ---- the header ---- */

typedef struct header {
    const char *at, *end;
    bool fortran, has_descr, has_order, has_shape;
} header;

static void skip_space(header *h) {
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t' || *h->at == '\r')) h->at++;
}

/* Takes `text` after any space; false, and nothing taken, where something else stands there. */
static bool take(header *h, const char *text) {
    size_t length = strlen(text);
    skip_space(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, text, length) != 0) return false;
    h->at += length;
    return true;
}

/* A quoted string without escapes, of less than `room` bytes. */
static bool take_string(header *h, char *out, size_t room) {
    skip_space(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
    const char quote = *h->at, *begin = h->at + 1;
    const char *close = memchr(begin, quote, (size_t)(h->end - begin));
    if (!close || (size_t)(close - begin) >= room || memchr(begin, '\\', (size_t)(close - begin))) return false;
    memcpy(out, begin, (size_t)(close - begin));
    out[close - begin] = 0;
    h->at = close + 1;
    return true;
}

static bool take_length(header *h, int64_t *out) {
    uint64_t value = 0;
    skip_space(h);
    const char *begin = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (h->at - begin >= 18) return false; /* what has more digits does not fit into any memory */
        value = value * 10 + (uint64_t)(*h->at - '0');
    }
    if (h->at == begin) return false;
    if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2 wrote its long numbers so */
    *out = (int64_t)value;
    return true;
}

static bool take_descr(header *h, npy_array *array, char *why) {
    char text[16];
    skip_space(h);
    if (h->at < h->end && *h->at == '[')
        return refuse(why, "has a structured type; save each field as an array of its own");
    if (!take_string(h, text, sizeof text) || strlen(text) < 3)
        return refuse(why, "has no readable 'descr'; save it anew with numpy.save");
    char *rest;
    unsigned long item = strtoul(text + 2, &rest, 10);
    bool known = strchr("fiub", text[1]) && *rest == 0 && text[2] >= '1' && text[2] <= '9' &&
                 (item == 1 || item == 2 || item == 4 || item == 8);
    if (text[1] == 'f' ? item == 1 : text[1] == 'b' && item > 1) known = false;
    if (!known) return refuse(why, "has type '%s', which is no plain number; convert it with .astype('<f4')", text);
    if (text[0] == '>') return refuse(why, "is big-endian ('%s'); convert it with .astype('<%s')", text, text + 1);
    if (text[0] != '<' && !(text[0] == '|' && item == 1))
        return refuse(why, "does not state its byte order ('%s'); save it anew with numpy.save", text);
    array->kind = text[1];
    array->item_bytes = (uint32_t)item;
    return true;
}

static bool take_shape(header *h, npy_array *array, char *why) {
    bool more = take(h, "(");
    while (more && !take(h, ")")) {
        int64_t length;
        if (!take_length(h, &length)) return refuse(why, "has no readable 'shape'; save it anew with numpy.save");
        if (array->shape.rank == HD_MAX_RANK)
            return refuse(why, "has more than %d axes; join some with .reshape", HD_MAX_RANK);
        if (length == 0) return refuse(why, "has no elements; every axis is at least 1 long");
        array->shape.dims[array->shape.rank++] = length;
        if (!take(h, ",")) {
            more = take(h, ")");
            break;
        }
    }
    return more || refuse(why, "has no readable 'shape'; save it anew with numpy.save");
}

static bool parse_header(header *h, npy_array *array, char *why) {
    if (!take(h, "{")) return refuse(why, "has a damaged header; save it anew with numpy.save");
    while (!take(h, "}")) {
        char key[24] = "";
        bool repeated = false;
        if (!take_string(h, key, sizeof key) || !take(h, ":"))
            return refuse(why, "has a damaged header; save it anew with numpy.save");
        if (strcmp(key, "descr") == 0) {
            repeated = h->has_descr;
            h->has_descr = true;
            if (!repeated && !take_descr(h, array, why)) return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            repeated = h->has_order;
            h->has_order = true;
            h->fortran = take(h, "True");
            if (!h->fortran && !take(h, "False"))
                return refuse(why, "has no readable 'fortran_order'; save it anew with numpy.save");
        } else if (strcmp(key, "shape") == 0) {
            repeated = h->has_shape;
            h->has_shape = true;
            if (!repeated && !take_shape(h, array, why)) return false;
        } else return refuse(why, "has an unknown key '%s' in its header; save it anew with numpy.save", key);
        if (repeated) return refuse(why, "has '%s' twice in its header; save it anew with numpy.save", key);
        if (!take(h, ",") && !(h->at < h->end && *h->at == '}'))
            return refuse(why, "has a damaged header; save it anew with numpy.save");
    }
    skip_space(h);
    if (h->at != h->end) return refuse(why, "has something after its header's end; save it anew with numpy.save");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return refuse(why, "has a header without descr, fortran_order or shape; save it anew with numpy.save");
    return true;
}

/* Reads magic, version, length and header. */
static bool read_header(FILE *file, npy_array *array, bool *out_fortran, char *why) {
    unsigned char start[MAGIC_BYTES], size[4] = { 0 };
    if (fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, magic, sizeof magic - 1) != 0)
        return refuse(why, "is no .npy file; make it with numpy.save");
    unsigned version = start[6], size_bytes = version == 1 ? 2 : 4;
    if (version < 1 || version > 3 || start[7] != 0)
        return refuse(why, "is of .npy version %u.%u, and 1.0, 2.0 and 3.0 are known; save it anew with numpy.save",
                      version, start[7]);
    if (fread(size, 1, size_bytes, file) != size_bytes)
        return refuse(why, "ends within its header; it is damaged, copy it anew");
    size_t length = (size_t)size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
    if (length > HEADER_LIMIT)
        return refuse(why, "has a header of %zu bytes, and at most %d are read; save it as a plain array", length,
                      HEADER_LIMIT);
    char *text = malloc(length + 1);
    if (!text) return refuse(why, "could not be read: no memory is left");
    bool read = fread(text, 1, length, file) == length;
    header h = { .at = text, .end = text + length };
    bool parsed =
        read ? parse_header(&h, array, why) : refuse(why, "ends within its header; it is damaged, copy it anew");
    *out_fortran = h.fortran;
    free(text);
    return parsed;
}

/* ---- the data ---- */

/* Reads exactly array->bytes and the end of the file. */
static bool read_data(FILE *file, npy_array *array, char *why) {
    if (array->bytes > SIZE_MAX / 2) return refuse(why, "is larger than this machine's memory");
    size_t want = (size_t)array->bytes, have = 0, room = 0;
    unsigned char *data = NULL;
    while (have < want) {
        room = room == 0 ? FIRST_STEP : room * 2;
        if (room > want) room = want;
        unsigned char *grown = realloc(data, room);
        if (!grown) {
            free(data);
            return refuse(why, "could not be read: no memory for %zu bytes; use a smaller array", want);
        }
        data = grown;
        size_t got = fread(data + have, 1, room - have, file);
        have += got;
        if (have < room) {
            free(data);
            return refuse(why, "holds %zu bytes of data where its header says %zu; it is cut, copy it anew", have,
                          want);
        }
    }
    array->data = data;
    if (fgetc(file) != EOF)
        return refuse(why,
                      "goes on after its data; it is damaged, or holds several arrays: save each in a file of its own");
    return true;
}

/* Fortran order to C order: element by element, the last axis of the result fastest. */
static bool to_c_order(npy_array *array, char *why) {
    unsigned char *from = array->data, *to = malloc((size_t)array->bytes);
    if (!to)
        return refuse(why, "could not be turned into C order: no memory is left; save it with numpy.ascontiguousarray");
    uint64_t strides[HD_MAX_RANK], stride = array->item_bytes;
    int64_t index[HD_MAX_RANK] = { 0 };
    for (uint32_t axis = 0; axis < array->shape.rank; axis++) {
        strides[axis] = stride;
        stride *= (uint64_t)array->shape.dims[axis];
    }
    uint64_t source = 0;
    for (uint64_t at = 0; at < array->bytes; at += array->item_bytes) {
        memcpy(to + at, from + source, array->item_bytes);
        for (uint32_t axis = array->shape.rank; axis-- > 0;) {
            source += strides[axis];
            if (++index[axis] < array->shape.dims[axis]) break;
            source -= strides[axis] * (uint64_t)array->shape.dims[axis];
            index[axis] = 0;
        }
    }
    free(from);
    array->data = to;
    return true;
}

bool npy_read(FILE *file, npy_array *out_array, char why[NPY_WHY]) {
    bool fortran = false;
    *out_array = (npy_array){ 0 };
    bool read = read_header(file, out_array, &fortran, why);
    if (read) {
        out_array->bytes = out_array->item_bytes;
        for (uint32_t axis = 0; axis < out_array->shape.rank && read; axis++)
            read = !__builtin_mul_overflow(out_array->bytes, (uint64_t)out_array->shape.dims[axis], &out_array->bytes);
        if (!read) refuse(why, "claims a size that no memory has; it is damaged");
    }
    if (read) read = read_data(file, out_array, why);
    if (read && fortran && out_array->shape.rank > 1) read = to_c_order(out_array, why);
    if (!read) npy_free(out_array);
    return read;
}

bool npy_load(const char *path, npy_array *out_array, char why[NPY_WHY]) {
    *out_array = (npy_array){ 0 };
    FILE *file = system_open(path, "rb");
    if (!file) return refuse(why, "cannot be opened: %s", strerror(errno));
    bool read = npy_read(file, out_array, why);
    if (!read && ferror(file)) refuse(why, "cannot be read: %s", strerror(errno));
    fclose(file);
    return read;
}

bool npy_save(const char *path, const npy_array *array, char why[NPY_WHY]) {
    char text[256];
    int length = snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                          array->item_bytes == 1 ? '|' : '<', array->kind,
                          (unsigned)array->item_bytes);
    for (uint32_t axis = 0; axis < array->shape.rank; axis++) {
        const char *after = axis + 1 < array->shape.rank ? ", " : array->shape.rank == 1 ? "," : "";
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%lld%s", (long long)array->shape.dims[axis], after);
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    /* Spaces up to a multiple of 64, so that the data lies well when the file is mapped. */
    size_t total = (MAGIC_BYTES + 2 + (size_t)length + 1 + 63) / 64 * 64, header_bytes = total - MAGIC_BYTES - 2;
    unsigned char start[MAGIC_BYTES + 2] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(header_bytes & 0xFF),
                                             (unsigned char)(header_bytes >> 8) };

    FILE *file = system_open(path, "wb");
    if (!file) return refuse(why, "cannot be made: %s", strerror(errno));
    bool written = fwrite(start, 1, sizeof start, file) == sizeof start &&
                   fprintf(file, "%-*s\n", (int)header_bytes - 1, text) == (int)header_bytes &&
                   fwrite(array->data, 1, (size_t)array->bytes, file) == (size_t)array->bytes;
    int error = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        error = errno;
    }
    return written || refuse(why, "cannot be written: %s", strerror(error));
}

void npy_free(npy_array *array) {
    free(array->data);
    *array = (npy_array){ 0 };
}
