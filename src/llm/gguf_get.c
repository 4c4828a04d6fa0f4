/* gguf_get.c: looks up metadata and gives it out as the type that the caller wants. Relies on a header that gguf_read.c
 * accepted, so places need no checks here; meanings do: a key's type and range are the caller's to state, and an error
 * says which key, at which byte, has what. */
#include "llm/gguf_inside.h"
#include <math.h>

hdl_span hdl_gguf_key_name(const void *owner, uint32_t number) {
    const hdl_gguf_part *part = owner;
    return (hdl_span){ part->header + part->keys[number].name_at, part->keys[number].name_bytes };
}

static hdl_gguf_value part_key(const hdl_gguf_part *part, uint32_t i) {
    if (i >= part->key_count) return (hdl_gguf_value){ .kind = HDL_GGUF_KIND_COUNT };
    const hdl_gguf_entry *entry = &part->keys[i];
    return (hdl_gguf_value){
        .name = hdl_gguf_key_name(part, i), .kind = (hdl_gguf_kind)entry->kind,
            .element = (hdl_gguf_kind)entry->element,
        .count = entry->count, .bytes = { part->header + entry->value_at, entry->value_bytes },
        .offset = entry->value_at,
    };
}

bool hdl_gguf_part_find(const hdl_gguf_part *part, const char *name, hdl_gguf_value *out_value) {
    const int64_t number = hdl_index_find(&part->key_index, hdl_text(name), hdl_gguf_key_name, part);
    if (number < 0) return false;
    *out_value = part_key(part, (uint32_t)number);
    return true;
}

hdl_gguf_value hdl_gguf_key(const hdl_gguf *gguf, uint32_t i) { return part_key(&gguf->parts[0], i); }

bool hdl_gguf_find(const hdl_gguf *gguf, const char *name, hdl_gguf_value *out_value) {
    return hdl_gguf_part_find(&gguf->parts[0], name, out_value);
}

/* ---- elements ---- */

static bool is_integer(hdl_gguf_kind kind) {
    return kind <= HDL_GGUF_I32 || kind == HDL_GGUF_U64 || kind == HDL_GGUF_I64;
}

int64_t hdl_gguf_integer(const hdl_gguf_value *value, uint64_t i) {
    const uint32_t size = hdl_gguf_kind_bytes(value->element);
    if (i >= value->count || (!is_integer(value->element) && value->element != HDL_GGUF_BOOL)) return 0;
    const uint8_t *at = value->bytes.bytes + i * size;
    switch (value->element) {
    case HDL_GGUF_I8: return (int8_t)at[0];
    case HDL_GGUF_U16: return (uint16_t)(at[0] | at[1] << 8);
    case HDL_GGUF_I16: return (int16_t)(uint16_t)(at[0] | at[1] << 8);
    case HDL_GGUF_U32: return hdl_gguf_le32(at);
    case HDL_GGUF_I32: return (int32_t)hdl_gguf_le32(at);
    case HDL_GGUF_U64: return hdl_gguf_le64(at) > INT64_MAX ? INT64_MAX : (int64_t)hdl_gguf_le64(at);
    case HDL_GGUF_I64: return (int64_t)hdl_gguf_le64(at);
    default: return at[0];
    }
}

double hdl_gguf_float(const hdl_gguf_value *value, uint64_t i) {
    if (i >= value->count) return 0;
    if (value->element == HDL_GGUF_F32) {
        const uint32_t bits = hdl_gguf_le32(value->bytes.bytes + i * 4);
        float number;
        memcpy(&number, &bits, sizeof number);
        return (double)number;
    }
    if (value->element == HDL_GGUF_F64) {
        const uint64_t bits = hdl_gguf_le64(value->bytes.bytes + i * 8);
        double number;
        memcpy(&number, &bits, sizeof number);
        return number;
    }
    return 0;
}

bool hdl_gguf_next_text(const hdl_gguf_value *value, uint64_t *at, hdl_span *out_text) {
    if (value->kind == HDL_GGUF_STRING) {
        if (*at != 0) return false;
        *at = 1; /* there is one, however long */
        *out_text = value->bytes;
        return true;
    }
    if (value->element != HDL_GGUF_STRING || *at >= value->bytes.count) return false;
    const uint64_t length = hdl_gguf_le64(value->bytes.bytes + *at);
    *out_text = (hdl_span){ value->bytes.bytes + *at + 8, length };
    *at += 8 + length;
    return true;
}

/* ---- getters ---- */

static const char *kind_text(const hdl_gguf_value *value, char out[32]) {
    if (value->kind != HDL_GGUF_ARRAY) return hdl_gguf_kind_name(value->kind);
    memcpy(out, "array of ", 10);
    strcat(out, hdl_gguf_kind_name(value->element));
    return out;
}

static hd_status wrong_type(const hdl_gguf_part *part, const hdl_gguf_value *value, const char *wanted,
                            hd_error *error) {
    char name[HDL_QUOTE], kind[32];
    return hdl_fail(error, HD_STATUS_TYPE, "%.80s: key %s has type %s, wanted %s, byte %llu", hdl_gguf_part_name(part),
                    hdl_quote(value->name, name), kind_text(value, kind), wanted, (unsigned long long)value->offset);
}

/* Element `i` of an integer value, which must be within low..high. */
static hd_status ranged(const hdl_gguf_part *part, const hdl_gguf_value *value, uint64_t i, int64_t low, int64_t high,
                        int64_t *out, hd_error *error) {
    char name[HDL_QUOTE];
    const uint64_t offset = value->offset + i * hdl_gguf_kind_bytes(value->element);
    *out = hdl_gguf_integer(value, i);
    if (*out >= low && *out <= high) return HD_OK;
    return hdl_fail(error, HD_STATUS_LIMIT, "%.80s: key %s is %lld, must be %lld to %lld, byte %llu",
                    hdl_gguf_part_name(part), hdl_quote(value->name, name), (long long)*out, (long long)low,
                    (long long)high, (unsigned long long)offset);
}

/* An integer key; where there is none `inout` stays as it is. */
static hd_status integer(const hdl_gguf_part *part, const char *name, const char *wanted, int64_t low, int64_t high,
                         int64_t *inout, hd_error *error) {
    hdl_gguf_value value;
    if (!hdl_gguf_part_find(part, name, &value)) return HD_OK;
    if (!is_integer(value.kind)) return wrong_type(part, &value, wanted, error);
    return ranged(part, &value, 0, low, high, inout, error);
}

hd_status hdl_gguf_part_u32(const hdl_gguf_part *part, const char *name, uint32_t low, uint32_t high, uint32_t fallback,
                            uint32_t *out, hd_error *error) {
    int64_t number = fallback;
    const hd_status status = integer(part, name, "u32", low, high, &number, error);
    *out = status ? fallback : (uint32_t)number;
    return status;
}

hd_status hdl_gguf_need(const hdl_gguf *gguf, const char *name, hd_error *error) {
    hdl_gguf_value value;
    if (hdl_gguf_find(gguf, name, &value)) return HD_OK;
    return hdl_fail(error, HD_STATUS_NAME_NOT_FOUND, "%.80s: key '%.80s' is missing; convert the model anew",
                    hdl_gguf_part_name(&gguf->parts[0]), name);
}

hd_status hdl_gguf_get_u32(const hdl_gguf *gguf, const char *name, uint32_t low, uint32_t high, uint32_t fallback,
                           uint32_t *out, hd_error *error) {
    return hdl_gguf_part_u32(&gguf->parts[0], name, low, high, fallback, out, error);
}

hd_status hdl_gguf_get_i32(const hdl_gguf *gguf, const char *name, int32_t low, int32_t high, int32_t fallback,
                           int32_t *out, hd_error *error) {
    int64_t number = fallback;
    const hd_status status = integer(&gguf->parts[0], name, "i32", low, high, &number, error);
    *out = status ? fallback : (int32_t)number;
    return status;
}

hd_status hdl_gguf_get_f32(const hdl_gguf *gguf, const char *name, float low, float high, float fallback, float *out,
                           hd_error *error) {
    const hdl_gguf_part *part = &gguf->parts[0];
    hdl_gguf_value value;
    char quoted[HDL_QUOTE];
    *out = fallback;
    if (!hdl_gguf_find(gguf, name, &value)) return HD_OK;
    if (value.kind != HDL_GGUF_F32 && value.kind != HDL_GGUF_F64) return wrong_type(part, &value, "f32", error);
    const double number = hdl_gguf_float(&value, 0);
    if (!isfinite(number) || number < (double)low || number > (double)high)
        return hdl_fail(error, HD_STATUS_LIMIT, "%.80s: key %s is %g, must be %g to %g, byte %llu",
                        hdl_gguf_part_name(part), hdl_quote(value.name, quoted), number, (double)low, (double)high,
                        (unsigned long long)value.offset);
    *out = (float)number;
    return HD_OK;
}

hd_status hdl_gguf_get_bool(const hdl_gguf *gguf, const char *name, bool fallback, bool *out, hd_error *error) {
    hdl_gguf_value value;
    *out = fallback;
    if (!hdl_gguf_find(gguf, name, &value)) return HD_OK;
    if (value.kind != HDL_GGUF_BOOL) return wrong_type(&gguf->parts[0], &value, "bool", error);
    *out = value.bytes.bytes[0] != 0;
    return HD_OK;
}

hd_status hdl_gguf_get_text(const hdl_gguf *gguf, const char *name, hdl_span fallback, hdl_span *out, hd_error *error) {
    hdl_gguf_value value;
    *out = fallback;
    if (!hdl_gguf_find(gguf, name, &value)) return HD_OK;
    if (value.kind != HDL_GGUF_STRING) return wrong_type(&gguf->parts[0], &value, "string", error);
    *out = value.bytes;
    return HD_OK;
}

hd_status hdl_gguf_get_array(const hdl_gguf *gguf, const char *name, hdl_gguf_kind element, uint64_t low, uint64_t high,
                             hdl_gguf_value *out, hd_error *error) {
    const hdl_gguf_part *part = &gguf->parts[0];
    char quoted[HDL_QUOTE], wanted[32] = "array of ";
    *out = (hdl_gguf_value){ .name = hdl_text(name), .kind = HDL_GGUF_ARRAY, .element = element };
    if (!hdl_gguf_find(gguf, name, out)) return HD_OK;
    if (out->kind != HDL_GGUF_ARRAY || out->element != element)
        return wrong_type(part, out, strcat(wanted, hdl_gguf_kind_name(element)), error);
    if (out->count >= low && out->count <= high) return HD_OK;
    return hdl_fail(error, HD_STATUS_LIMIT, "%.80s: key %s has %llu elements, must be %llu to %llu, byte %llu",
                    hdl_gguf_part_name(part), hdl_quote(out->name, quoted), (unsigned long long)out->count,
                    (unsigned long long)low, (unsigned long long)high, (unsigned long long)out->offset);
}

hd_status hdl_gguf_get_u32s(const hdl_gguf *gguf, const char *name, uint32_t low, uint32_t high, uint32_t count,
                            uint32_t *inout, hd_error *error) {
    const hdl_gguf_part *part = &gguf->parts[0];
    hdl_gguf_value value;
    char quoted[HDL_QUOTE];
    if (!hdl_gguf_find(gguf, name, &value)) return HD_OK;
    if (!is_integer(value.element)) return wrong_type(part, &value, "u32 or an array of it", error);
    if (value.kind == HDL_GGUF_ARRAY && value.count != count)
        return hdl_fail(error, HD_STATUS_SHAPE,
                        "%.80s: key %s has %llu elements, wanted %u, one for each layer, byte %llu",
                        hdl_gguf_part_name(part), hdl_quote(value.name, quoted), (unsigned long long)value.count, count,
                        (unsigned long long)value.offset);
    for (uint32_t i = 0; i < count; i++) {
        int64_t number;
        const hd_status status = ranged(part, &value, value.kind == HDL_GGUF_ARRAY ? i : 0, low, high, &number, error);
        if (status) return status;
        inout[i] = (uint32_t)number;
    }
    return HD_OK;
}
