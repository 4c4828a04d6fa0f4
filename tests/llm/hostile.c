/* hostile.c: makes hostile GGUF files and judges what the reader does with them. A variant is a valid file with one field
 * changed, so that each check of the reader is met by itself; mutations combine such changes at random from a seed. An
 * accepted file must write back to its own bytes: a reader that misread a field could not do that. */
#include "hostile.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- files in memory ---- */

static bool fails(memory_files *m) { return ++m->calls == m->fail_call; }
static uint64_t size_now(const memory_files *m, hdl_file file) {
    const uint64_t count = m->files[file].count;
    return m->shrink_call && m->calls >= m->shrink_call && m->shrunk_bytes < count ? m->shrunk_bytes : count;
}

static hd_status memory_open(void *user, const char *path, hdl_file *out_file, hd_error *error) {
    memory_files *m = user;
    for (uint32_t i = 0; i < m->file_count; i++)
        if (strcmp(m->files[i].path, path) == 0 && !fails(m)) {
            m->open_files++;
            *out_file = i;
            return HD_OK;
        }
    return hdl_fail(error, HD_STATUS_IO, "%s: cannot be opened", path);
}
static bool memory_size(void *user, hdl_file file, uint64_t *out_bytes) {
    if (fails(user)) return false;
    *out_bytes = size_now(user, file);
    return true;
}
static int64_t memory_read(void *user, hdl_file file, uint64_t offset, void *out, size_t bytes) {
    memory_files *m = user;
    if (fails(m)) return -1;
    const uint64_t count = size_now(m, file);
    if (offset >= count) return 0;
    if (bytes > count - offset) bytes = (size_t)(count - offset);
    if (m->piece_bytes && bytes > m->piece_bytes) bytes = (size_t)m->piece_bytes;
    memcpy(out, m->files[file].bytes + offset, bytes);
    return (int64_t)bytes;
}
static const uint8_t *memory_map(void *user, hdl_file file, uint64_t bytes) {
    memory_files *m = user;
    if (m->no_map || fails(m) || bytes != m->files[file].count) return NULL;
    m->maps++;
    return m->files[file].bytes;
}
static void memory_unmap(void *user, const uint8_t *map, uint64_t bytes) {
    (void)map;
    (void)bytes;
    ((memory_files *)user)->maps--;
}
static void memory_close(void *user, hdl_file file) {
    (void)file;
    ((memory_files *)user)->open_files--;
}
hdl_files memory_table(memory_files *memory) {
    return (hdl_files){ memory, memory_open, memory_size, memory_read, memory_map, memory_unmap, memory_close, NULL };
}

static void *meter_resize(void *user, void *old, size_t old_bytes, size_t new_bytes) {
    meter *m = user;
    if (new_bytes == 0) {
        m->live_bytes -= old_bytes;
        free(old);
        return NULL;
    }
    m->calls++;
    if (m->fail_call && (m->calls == m->fail_call || (m->from_then_on && m->calls > m->fail_call))) return NULL;
    void *new = realloc(old, new_bytes);
    if (!new) return NULL;
    m->live_bytes += new_bytes;
    m->live_bytes -= old_bytes;
    if (m->live_bytes > m->peak_bytes) m->peak_bytes = m->live_bytes;
    return new;
}
hd_allocator meter_allocator(meter *m) { return (hd_allocator){ meter_resize, m }; }

/* ---- putting a file together ---- */

static void add(blob *b, const void *bytes, uint64_t count) {
    while (b->count + count > b->room) b->room = b->room ? b->room * 2 : 4096;
    b->bytes = realloc(b->bytes, b->room);
    if (!b->bytes) abort();
    if (bytes) memcpy(b->bytes + b->count, bytes, count);
    else memset(b->bytes + b->count, 0, count);
    b->count += count;
}

static void mark(blob *b, const char *thing, uint64_t number, const char *field, uint32_t width) {
    if (b->mark_count == sizeof b->marks / sizeof b->marks[0]) return;
    snprintf(b->marks[b->mark_count].name, sizeof b->marks[0].name, "%.6s%u.%.10s", thing, (unsigned)(number & 0xffff), field);
    b->marks[b->mark_count].at = b->count;
    b->marks[b->mark_count++].width = width;
}

static void add_u32(blob *b, uint32_t value) { add(b, &value, 4); }
static void add_u64(blob *b, uint64_t value) { add(b, &value, 8); }
static void add_text(blob *b, const char *text) {
    add_u64(b, strlen(text));
    add(b, text, strlen(text));
}

static void head(blob *b, uint64_t tensors, uint64_t keys) {
    mark(b, "head", 0, "magic", 4);
    add(b, "GGUF", 4);
    mark(b, "head", 0, "version", 4);
    add_u32(b, 3);
    mark(b, "head", 0, "tensors", 8);
    add_u64(b, tensors);
    mark(b, "head", 0, "keys", 8);
    add_u64(b, keys);
}

static void key(blob *b, uint64_t number, const char *name, uint32_t kind) {
    mark(b, "key", number, "name", 8);
    add_text(b, name);
    mark(b, "key", number, "kind", 4);
    add_u32(b, kind);
}

static void array(blob *b, uint64_t number, const char *name, uint32_t element, uint64_t count) {
    key(b, number, name, HDL_GGUF_ARRAY);
    mark(b, "key", number, "element", 4);
    add_u32(b, element);
    mark(b, "key", number, "count", 8);
    add_u64(b, count);
    mark(b, "key", number, "value", 8);
}

/* A tensor of one or two axes at *offset, which moves on. */
static void tensor(blob *b, uint64_t number, const char *name, uint32_t type, uint64_t n0, uint64_t n1,
                   uint32_t alignment, uint64_t *offset) {
    const hdl_gguf_type_facts facts = hdl_gguf_type_info(type);
    mark(b, "tensor", number, "name", 8);
    add_text(b, name);
    mark(b, "tensor", number, "rank", 4);
    add_u32(b, n1 ? 2 : 1);
    mark(b, "tensor", number, "axis0", 8);
    add_u64(b, n0);
    if (n1) {
        mark(b, "tensor", number, "axis1", 8);
        add_u64(b, n1);
    }
    mark(b, "tensor", number, "type", 4);
    add_u32(b, type);
    mark(b, "tensor", number, "offset", 8);
    add_u64(b, *offset);
    *offset += n0 * (n1 ? n1 : 1) / facts.block_elements * facts.block_bytes + facts.tail_bytes;
    *offset = (*offset + alignment - 1) / alignment * alignment;
}

static void data(blob *b, uint32_t alignment, uint64_t bytes) {
    add(b, NULL, (alignment - b->count % alignment) % alignment);
    const uint64_t begin = b->count;
    add(b, NULL, bytes);
    for (uint64_t i = 0; i < bytes; i++) b->bytes[begin + i] = (uint8_t)(i * 37 + 11);
}

void blob_free(blob *b) {
    free(b->bytes);
    *b = (blob){ 0 };
}

static void forms_keys(blob *b, uint32_t alignment) {
    const float number = 1.5f;
    const double wide = -0.25;
    const uint8_t bools[3] = { 1, 0, 1 };
    key(b, 0, "general.architecture", HDL_GGUF_STRING);
    mark(b, "key", 0, "value", 8);
    add_text(b, "llama");
    key(b, 1, "general.alignment", HDL_GGUF_U32);
    mark(b, "key", 1, "value", 4);
    add_u32(b, alignment);
    key(b, 2, "test.bool", HDL_GGUF_BOOL);
    mark(b, "key", 2, "value", 1);
    add(b, bools, 1);
    array(b, 3, "test.numbers", HDL_GGUF_I32, 4);
    for (uint32_t i = 0; i < 4; i++) add_u32(b, i - 2);
    array(b, 4, "test.strings", HDL_GGUF_STRING, 3);
    add_text(b, "one");
    add_text(b, "");
    add_text(b, "\xff\x01 three");
    array(b, 5, "test.bools", HDL_GGUF_BOOL, 3);
    add(b, bools, 3);
    key(b, 6, "test.f32", HDL_GGUF_F32);
    mark(b, "key", 6, "value", 4);
    add(b, &number, 4);
    key(b, 7, "test.f64", HDL_GGUF_F64);
    mark(b, "key", 7, "value", 8);
    add(b, &wide, 8);
}

blob blob_valid(uint32_t form) {
    blob b = { 0 };
    uint64_t offset = 0;
    if (form == 0) {
        head(&b, 3, 8);
        forms_keys(&b, 32);
        tensor(&b, 0, "a.weight", HDL_GGUF_TYPE_F32, 8, 2, 32, &offset);
        tensor(&b, 1, "b.weight", HDL_GGUF_TYPE_Q8_0, 32, 3, 32, &offset);
        tensor(&b, 2, "c.weight", HDL_GGUF_TYPE_Q4_K, 256, 0, 32, &offset);
        data(&b, 32, offset);
    } else if (form == 1) {
        head(&b, 0, 1);
        key(&b, 0, "x", HDL_GGUF_U8);
        add(&b, "\x07", 1);
    } else {
        head(&b, 4, 8);
        forms_keys(&b, 8);
        tensor(&b, 0, "f16", HDL_GGUF_TYPE_F16, 3, 0, 8, &offset);
        tensor(&b, 1, "i2_s", HDL_GGUF_TYPE_I2_S, 16, 2, 8, &offset);
        tensor(&b, 2, "iq4_nl", HDL_GGUF_TYPE_IQ4_NL, 32, 1, 8, &offset);
        tensor(&b, 3, "i8", HDL_GGUF_TYPE_I8, 5, 5, 8, &offset);
        data(&b, 8, offset);
    }
    return b;
}

/* ---- variants ---- */

/* One field of blob_valid(0) with another value. `at`: bytes after the mark; `width`: bytes written. */
static const struct patch { const char *name, *field; uint32_t at, width; uint64_t value; const char *expected; } patches[] = {
    { "magic wrong", "head0.magic", 0, 4, 0x46554746, "not GGUF" },
    { "magic swapped", "head0.magic", 0, 4, 0x47475546, "not GGUF" },
    { "version 0", "head0.version", 0, 4, 0, "the version is 0" },
    { "version 1", "head0.version", 0, 4, 1, "the version is 1, too old" },
    { "version 4", "head0.version", 0, 4, 4, "the version is 4" },
    { "version swapped", "head0.version", 0, 4, 0x03000000, "big-endian" },
    { "version -1", "head0.version", 0, 4, UINT32_MAX, "the version is" },
    { "tensors 2^64-1", "head0.tensors", 0, 8, UINT64_MAX, "the number of tensors" },
    { "tensors 2^63", "head0.tensors", 0, 8, UINT64_C(1) << 63, "the number of tensors" },
    { "tensors wrap", "head0.tensors", 0, 8, UINT64_C(0x0400000000000000), "the number of tensors" },
    { "tensors 1e9", "head0.tensors", 0, 8, 1000000000, "the number of tensors" },
    { "tensors one more", "head0.tensors", 0, 8, 4, "tensor 3: the name" },
    { "keys 2^64-1", "head0.keys", 0, 8, UINT64_MAX, "the number of keys" },
    { "keys 2^63", "head0.keys", 0, 8, UINT64_C(1) << 63, "the number of keys" },
    { "keys wrap", "head0.keys", 0, 8, UINT64_C(0x0ccccccccccccccd), "the number of keys" },
    { "keys 1e9", "head0.keys", 0, 8, 1000000000, "the number of keys" },
    { "keys one more", "head0.keys", 0, 8, 9, "tensor 0: the name's length" },
    { "keys one less", "head0.keys", 0, 8, 7, "tensor 0" },
    { "string 2^64-1", "key0.value", 0, 8, UINT64_MAX, "the string needs" },
    { "string 2^63", "key0.value", 0, 8, UINT64_C(1) << 63, "the string needs" },
    { "string 1 GiB", "key0.value", 0, 8, 1 << 30, "the string needs" },
    { "key name 2^64-1", "key0.name", 0, 8, UINT64_MAX, "the name's length" },
    { "key name 2^63", "key3.name", 0, 8, UINT64_C(1) << 63, "the name's length" },
    { "key name 1 GiB", "key0.name", 0, 8, 1 << 30, "the name's length" },
    { "key name empty", "key0.name", 0, 8, 0, "the name is empty" },
    { "key name with NUL", "key0.name", 9, 1, 0, "control characters" },
    { "key name with newline", "key0.name", 9, 1, '\n', "control characters" },
    { "key name bad UTF-8", "key0.name", 9, 1, 0xff, "not UTF-8" },
    { "key name overlong UTF-8", "key0.name", 9, 2, 0x80c0, "not UTF-8" },
    { "key name surrogate", "key0.name", 9, 3, 0x80a0ed, "not UTF-8" },
    { "kind 13", "key0.kind", 0, 4, 13, "the value's type is 13" },
    { "kind -1", "key0.kind", 0, 4, UINT32_MAX, "the value's type" },
    { "bool 2", "key2.value", 0, 1, 2, "a bool is 2" },
    { "bool in array 255", "key5.value", 1, 1, 255, "a bool is 255" },
    { "array type 13", "key3.element", 0, 4, 13, "the array's type is 13" },
    { "array type -1", "key3.element", 0, 4, UINT32_MAX, "the array's type" },
    { "array of arrays", "key3.element", 0, 4, HDL_GGUF_ARRAY, "arrays of arrays" },
    { "array 2^64-1", "key3.count", 0, 8, UINT64_MAX, "the array's length" },
    { "array wraps", "key3.count", 0, 8, UINT64_C(1) << 62, "the array's length" },
    { "array one more than the file", "key3.count", 0, 8, 100000, "the array's length" },
    { "strings 2^61", "key4.count", 0, 8, UINT64_C(1) << 61, "the array's length" },
    { "strings one more", "key4.count", 0, 8, 4, "key 5: the name's length" },
    { "string in array 2^64-1", "key4.value", 0, 8, UINT64_MAX, "a string of the array needs" },
    { "string in array 2^63", "key4.value", 0, 8, UINT64_C(1) << 63, "a string of the array needs" },
    { "alignment 0", "key1.value", 0, 4, 0, "general.alignment' is 0" },
    { "alignment 3", "key1.value", 0, 4, 3, "general.alignment' is 3" },
    { "alignment 1", "key1.value", 0, 4, 1, "general.alignment' is 1" },
    { "alignment 2^31", "key1.value", 0, 4, UINT32_C(1) << 31, "general.alignment' is 2147483648" },
    { "alignment as i32", "key1.kind", 0, 4, HDL_GGUF_I32, "has type i32, wanted u32" },
    { "alignment as f32", "key1.kind", 0, 4, HDL_GGUF_F32, "has type f32, wanted u32" },
    { "tensor name empty", "tensor0.name", 0, 8, 0, "the name is empty" },
    { "tensor name 2^64-1", "tensor0.name", 0, 8, UINT64_MAX, "the name's length" },
    { "tensor name 65", "tensor0.name", 0, 8, 65, "at most 64" },
    { "tensor name with NUL", "tensor0.name", 9, 1, 0, "control characters" },
    { "tensor twice", "tensor1.name", 8, 1, 'a', "the tensor is there twice" },
    { "rank 0", "tensor0.rank", 0, 4, 0, "the number of axes is 0" },
    { "rank 5", "tensor0.rank", 0, 4, 5, "the number of axes is 5" },
    { "rank 9", "tensor0.rank", 0, 4, 9, "the number of axes is 9" },
    { "rank 2^32-1", "tensor0.rank", 0, 4, UINT32_MAX, "the number of axes" },
    { "axis 0", "tensor0.axis0", 0, 8, 0, "the length of axis 0" },
    { "axis -1", "tensor0.axis1", 0, 8, UINT64_MAX, "the length of axis 1" },
    { "axis INT64_MIN", "tensor0.axis0", 0, 8, UINT64_C(1) << 63, "the length of axis 0" },
    { "product negative", "tensor0.axis0", 0, 8, UINT64_C(1) << 62, "63 bits" },
    { "product wraps to 0", "tensor1.axis0", 0, 8, UINT64_C(1) << 62, "63 bits" },
    { "product wraps small", "tensor1.axis0", 0, 8, UINT64_C(0x5555555555555560), "63 bits" },
    { "bytes wrap", "tensor0.axis0", 0, 8, (UINT64_C(1) << 61) + 1, "does not fit" },
    { "bytes beyond the file", "tensor0.axis0", 0, 8, UINT64_C(1) << 40, "the data has" },
    { "total wraps", "tensor2.axis0", 0, 8, UINT64_C(0x3fffffffffffff00), "the data has" },
    { "axis no block multiple", "tensor1.axis0", 0, 8, 33, "blocks of 32" },
    { "axis less than a block", "tensor2.axis0", 0, 8, 32, "blocks of 256" },
    { "type 42", "tensor0.type", 0, 4, 42, "the tensor's type is 42" },
    { "type removed", "tensor0.type", 0, 4, 4, "the tensor's type is 4" },
    { "type removed 31", "tensor0.type", 0, 4, 31, "the tensor's type is 31" },
    { "type -1", "tensor0.type", 0, 4, UINT32_MAX, "the tensor's type" },
    { "type 256+0", "tensor0.type", 0, 4, 256, "the tensor's type is 256" },
    { "heddle's own number of tl2", "tensor0.type", 0, 4, HDL_GGUF_TYPE_TL2, "the tensor's type is 63, which is not known" },
    { "type of other size", "tensor0.type", 0, 4, HDL_GGUF_TYPE_F16, "tensor 1 'b.weight': the data's offset" },
    { "offset unaligned", "tensor1.offset", 0, 8, 65, "not a multiple" },
    { "offset overlapping", "tensor1.offset", 0, 8, 32, "the tensor before it" },
    { "offset decreasing", "tensor2.offset", 0, 8, 0, "the tensor before it" },
    { "offset past the end", "tensor2.offset", 0, 8, 1 << 20, "the tensor before it" },
    { "offset wraps", "tensor2.offset", 0, 8, UINT64_MAX - 31, "the tensor before it" },
    { "offset into the header", "tensor0.offset", 0, 8, UINT64_MAX - 63, "the tensor before it" },
    { "first offset not 0", "tensor0.offset", 0, 8, 32, "the tensor before it" },
};
enum { PATCHES = sizeof patches / sizeof patches[0] };

static void long_name(blob *b, uint64_t bytes, bool of_tensor) {
    head(b, of_tensor, !of_tensor);
    add_u64(b, bytes);
    add(b, NULL, bytes);
    memset(b->bytes + b->count - bytes, 'k', bytes);
    add_u32(b, 1);
    add(b, NULL, 64);
}

/* Files that no single field makes. */
static bool built_variant(uint32_t i, blob *b, const char **name, const char **expected) {
    uint64_t offset = 0;
    blob whole = { 0 };
    switch (i) {
    case 0: *name = "no byte"; *expected = "the magic needs 4 bytes"; return true;
    case 1: *name = "three bytes"; *expected = "the magic needs 4 bytes"; add(b, "GGU", 3); return true;
    case 2: *name = "magic only"; *expected = "the version needs 4 bytes"; add(b, "GGUF", 4); return true;
    case 3: *name = "37 bytes with an empty key"; *expected = "the name is empty";
        head(b, 0, 1); add_u64(b, 0); add_u32(b, HDL_GGUF_U8); add(b, "\1", 1); return true;
    case 4: *name = "key of 64 KiB"; *expected = "at most 65535"; long_name(b, 65536, false); return true;
    case 5: *name = "tensor name of 65 bytes"; *expected = "at most 64"; long_name(b, 65, true); return true;
    case 6: *name = "key twice"; *expected = "the key is there twice";
        head(b, 0, 2);
        for (int k = 0; k < 2; k++) { key(b, 0, "same", HDL_GGUF_U8); add(b, "\1", 1); }
        return true;
    case 7: *name = "more tensors than allowed, all there"; *expected = "at most 262144";
        head(b, HDL_GGUF_MAX_TENSORS + 1, 0); add(b, NULL, (HDL_GGUF_MAX_TENSORS + 1) * UINT64_C(33)); return true;
    case 8: *name = "more keys than allowed, all there"; *expected = "at most 1048576";
        head(b, 0, HDL_GGUF_MAX_KEYS + 1); add(b, NULL, (HDL_GGUF_MAX_KEYS + 1) * UINT64_C(14)); return true;
    case 9: *name = "alignment as a string"; *expected = "has type string, wanted u32";
        head(b, 0, 1); key(b, 0, "general.alignment", HDL_GGUF_STRING); add_text(b, "32"); return true;
    case 10: *name = "alignment as an array"; *expected = "has type array, wanted u32";
        head(b, 0, 1); array(b, 0, "general.alignment", HDL_GGUF_U32, 1); add_u32(b, 32); return true;
    case 11: *name = "two tensors whose sum wraps"; *expected = "the data has";
        head(b, 2, 0);
        tensor(b, 0, "a", HDL_GGUF_TYPE_I8, UINT64_C(0x7fffffffffffffe0), 0, 32, &offset);
        tensor(b, 1, "b", HDL_GGUF_TYPE_I8, UINT64_C(0x7fffffffffffffe0), 0, 32, &offset);
        data(b, 32, 64);
        return true;
    case 12: *name = "data cut off whole"; *expected = "the data";
        *b = whole = blob_valid(0); b->count -= 350; return true;
    case 13: *name = "padding and the last byte of the data missing"; *expected = "tensor 2 'c.weight': the data has 144 bytes";
        *b = whole = blob_valid(0); b->count -= 17; return true;
    case 14: *name = "a terminal's escape in a name"; *expected = "control characters";
        head(b, 0, 1); key(b, 0, "\x1b[31m", HDL_GGUF_U8); add(b, "\1", 1); return true;
    case 15: *name = "half a character at a name's end"; *expected = "not UTF-8";
        head(b, 0, 1); key(b, 0, "key\xe2\x82", HDL_GGUF_U8); add(b, "\1", 1); return true;
    case 16: *name = "split part that is not the first"; *expected = "open the first part";
        head(b, 0, 2);
        key(b, 0, "split.no", HDL_GGUF_U16); add(b, "\3\0", 2);
        key(b, 1, "split.count", HDL_GGUF_U16); add(b, "\5\0", 2);
        return true;
    case 17: *name = "split of 65535 parts"; *expected = "at most 512 parts";
        head(b, 0, 1); key(b, 0, "split.count", HDL_GGUF_U16); add(b, "\xff\xff", 2); return true;
    case 18: *name = "split of a file that is not named so"; *expected = "the name must end in -00001-of-00003.gguf";
        head(b, 0, 1); key(b, 0, "split.count", HDL_GGUF_U16); add(b, "\3\0", 2); return true;
    case 19: *name = "split count as text"; *expected = "has type string, wanted u32";
        head(b, 0, 1); key(b, 0, "split.count", HDL_GGUF_STRING); add_text(b, "3"); return true;
    case 20: *name = "split count negative"; *expected = "split.count' is -1";
        head(b, 0, 1); key(b, 0, "split.count", HDL_GGUF_I16); add(b, "\xff\xff", 2); return true;
    case 21: *name = "split number without parts"; *expected = "open the first part";
        head(b, 0, 1); key(b, 0, "split.no", HDL_GGUF_U16); add(b, "\1\0", 2); return true;
    default: return false;
    }
}

bool hostile_variant(uint32_t i, blob *out_blob, const char **out_name, const char **out_expected) {
    *out_blob = (blob){ 0 };
    if (i >= PATCHES) return built_variant(i - PATCHES, out_blob, out_name, out_expected);
    const struct patch *p = &patches[i];
    *out_blob = blob_valid(0);
    *out_name = p->name;
    *out_expected = p->expected;
    for (uint32_t m = 0; m < out_blob->mark_count; m++)
        if (strcmp(out_blob->marks[m].name, p->field) == 0) {
            memcpy(out_blob->bytes + out_blob->marks[m].at + p->at, &p->value, p->width);
            return true;
        }
    *out_expected = "no such mark";
    return true;
}

/* ---- mutations ---- */

uint64_t hostile_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void mutate_field(blob *b, uint64_t *random) {
    const uint32_t m = (uint32_t)(hostile_random(random) % b->mark_count), width = b->marks[m].width;
    const uint64_t at = b->marks[m].at;
    if (at + width > b->count) return;
    uint64_t old = 0;
    memcpy(&old, b->bytes + at, width);
    const uint64_t left = b->count - at;
    const uint64_t values[] = {
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        10,
        12,
        16,
        24,
        32,
        36,
        64,
        65,
        255,
        256,
        65535,
        1 << 20,
        INT32_MAX,
        UINT64_C(1) << 31,
        UINT32_MAX,
        UINT64_C(1) << 32,
        UINT64_C(1) << 60,
        UINT64_C(1) << 61,
        UINT64_C(1) << 62,
        INT64_MAX,
        UINT64_C(1) << 63,
        UINT64_MAX,
        UINT64_MAX - 7,
        left,
        left + 1,
        left - 1,
        left / 4,
        left / 8,
        left / 33,
        old + 1,
        old - 1,
        old * 2,
        old / 2,
        ~old,
        old ^ UINT64_C(1) << hostile_random(random) % 64,
    };
    const uint64_t value = values[hostile_random(random) % (sizeof values / sizeof values[0])];
    memcpy(b->bytes + at, &value, width);
}

void hostile_mutate(blob *b, uint64_t *random) {
    for (uint64_t n = 1 + hostile_random(random) % 3; n > 0 && b->count > 0; n--) {
        const uint64_t at = hostile_random(random) % b->count, some = 1 + hostile_random(random) % 16;
        switch (hostile_random(random) % 8) {
        case 0: case 1: case 2: mutate_field(b, random); break;
        case 3: b->bytes[at] ^= (uint8_t)(1u << hostile_random(random) % 8); break;
        case 4: b->bytes[at] = (uint8_t)hostile_random(random); break;
        case 5: if (hostile_random(random) % 4 == 0) b->count = at; break;
        case 6: /* bytes taken out */
            if (at + some < b->count) {
                memmove(b->bytes + at, b->bytes + at + some, b->count - at - some);
                b->count -= some;
            }
            break;
        default: /* bytes put in */
            add(b, NULL, some);
            memmove(b->bytes + at + some, b->bytes + at, b->count - at - some);
            memset(b->bytes + at, (int)(hostile_random(random) & 1 ? 0xff : 0), some);
        }
    }
}

/* ---- the judge ---- */

typedef struct comparing {
    const uint8_t *file;
    uint64_t       at, count;
    uint32_t       alignment;
    bool           same;
} comparing;

/* Bytes that the writer sends stand in the file at the same place; only padding may hold something else. */
static bool compare(void *user, const void *bytes, uint64_t count) {
    comparing *c = user;
    const uint8_t *sent = bytes;
    uint64_t begin = c->at == 0 ? 8 : 0; /* magic and version */
    const bool data_of_file = sent >= c->file && sent < c->file + c->count;
    if (data_of_file) c->same &= sent == c->file + c->at && c->at + count <= c->count;
    const bool inside = c->at + count <= c->count;
    if (!data_of_file && !(inside && memcmp(sent + begin, c->file + c->at + begin, count - begin) == 0)) {
        bool zero = c->at > 0 && count < c->alignment;
        for (uint64_t i = 0; i < count && zero; i++) zero = sent[i] == 0;
        if (!zero) c->same = false;
    }
    c->at += count;
    return true;
}

static bool same_name(hdl_span name, char *out, size_t room) {
    if (name.count >= room) return false;
    memcpy(out, name.bytes, name.count);
    out[name.count] = 0;
    return true;
}

static const char *check_key(const hdl_gguf *gguf, uint32_t i, const uint8_t *file, uint64_t count) {
    static char name[HDL_GGUF_MAX_KEY_BYTES + 1];
    const hdl_gguf_value value = hdl_gguf_key(gguf, i);
    hdl_gguf_value found;
    if (value.offset > count || value.bytes.count > count - value.offset) return "a value reaches out of the file";
    if (memcmp(value.bytes.bytes, file + value.offset, value.bytes.count) != 0) return "a value is not the file's";
    if (!same_name(value.name, name, sizeof name) || !hdl_gguf_find(gguf, name, &found) || found.offset != value.offset)
        return "a key is not found by its name";
    if (value.element == HDL_GGUF_STRING) {
        uint64_t at = 0, texts = 0;
        for (hdl_span text; hdl_gguf_next_text(&value, &at, &text); texts++)
            if (text.count && (text.bytes < value.bytes.bytes || text.count > value.bytes.count))
                return "a string reaches out of its value";
        if (texts != value.count) return "an array has another number of strings";
    } else if (value.count) {
        (void)hdl_gguf_integer(&value, value.count - 1);
        (void)hdl_gguf_float(&value, value.count - 1);
    }
    return NULL;
}

static const char *check_tensor(hdl_gguf *gguf, uint32_t i, const uint8_t *file, uint64_t count) {
    char name[HDL_GGUF_MAX_NAME_BYTES + 1];
    const hdl_gguf_tensor it = hdl_gguf_tensor_at(gguf, i);
    hdl_gguf_tensor found;
    hdl_span span;
    if (it.offset > count || it.bytes > count - it.offset || it.bytes == 0) return "a tensor reaches out of the file";
    if (it.bytes != hdl_gguf_tensor_bytes(it.type, it.shape)) return "a tensor has another number of bytes than its shape";
    if (!same_name(it.name, name, sizeof name) || !hdl_gguf_find_tensor(gguf, name, &found) || found.number != i)
        return "a tensor is not found by its name";
    hd_status status = hdl_gguf_data(gguf, &it, &span, NULL);
    if (status != (hdl_gguf_type_info(it.type).usable ? HD_OK : HD_STATUS_UNSUPPORTED))
        return "a tensor's data is refused, or given though it is not usable";
    if (!status && (span.bytes != file + it.offset || span.count != it.bytes)) return "a tensor's data lies elsewhere";
    if (!status) {
        hdl_gguf_rows rows;
        hdl_gguf_check_rows(it.type, (uint64_t)it.shape.dims[it.shape.rank - 1], span.bytes, span.count, &rows);
    }
    return NULL;
}

static const char *check_accepted(hdl_gguf *gguf, const uint8_t *file, uint64_t count) {
    const hdl_gguf_info info = hdl_gguf_get_info(gguf);
    const char *wrong = NULL;
    comparing c = { .file = file, .count = count, .alignment = info.alignment, .same = true };
    hdl_gguf_writer *writer = hdl_gguf_writer_create(NULL, 0);
    for (uint32_t i = 0; i < info.key_count && !wrong; i++) {
        const hdl_gguf_value value = hdl_gguf_key(gguf, i);
        wrong = check_key(gguf, i, file, count);
        hdl_gguf_put_value(writer, &value);
    }
    for (uint32_t i = 0; i < info.tensor_count && !wrong; i++) {
        const hdl_gguf_tensor it = hdl_gguf_tensor_at(gguf, i);
        wrong = check_tensor(gguf, i, file, count);
        hdl_gguf_put_tensor(writer, it.name, it.type, it.shape, file + it.offset);
    }
    if (!wrong && hdl_gguf_write(writer, compare, &c, NULL)) wrong = "what was read cannot be written";
    if (!wrong && !c.same) wrong = "what was read does not write back to the same bytes";
    hdl_gguf_writer_destroy(writer);
    return wrong;
}

const char *hostile_check(const uint8_t *bytes, uint64_t count, hd_error *out_error) {
    memory_files memory = { .files = { { "m.gguf", bytes, count } }, .file_count = 1 };
    const hdl_files files = memory_table(&memory);
    meter counted = { 0 };
    const hd_allocator allocator = meter_allocator(&counted);
    const hdl_gguf_desc desc = { .allocator = &allocator, .files = &files };
    hdl_gguf *gguf = NULL;
    const char *wrong = NULL;
    *out_error = (hd_error){ 0 };
    hd_status status = hdl_gguf_open("m.gguf", &desc, &gguf, out_error);
    if (status != out_error->status || !gguf != (status != HD_OK)) wrong = "status, error and model do not agree";
    else if (status) {
        if (!strstr(out_error->text, "m.gguf: ")) wrong = "the error does not name the file";
        else if (!strstr(out_error->text, ", byte ") && !strstr(out_error->text, "split.")) wrong = "the error names no place";
    } else wrong = check_accepted(gguf, bytes, count);
    hdl_gguf_close(gguf);
    if (!wrong && counted.live_bytes) wrong = "memory is left behind";
    if (!wrong && counted.peak_bytes > count + (64 << 20)) wrong = "more memory than the file and 64 MiB";
    if (!wrong && (memory.open_files || memory.maps)) wrong = "a file or a map is left behind";
    return wrong;
}
