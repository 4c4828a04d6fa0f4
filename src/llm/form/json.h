/* json.h: JSON as the core library reads it, which needs no other library for it: schemas, tools and their calls.
 * Values are numbers of a list, so that new ones can be made of old ones. */
#ifndef HDL_JSON_H
#define HDL_JSON_H

#include "llm/support.h"

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_JSON_BYTES (1u << 20)
#define HDL_MAX_JSON_VALUES (1u << 18)
#define HDL_MAX_JSON_DEPTH 128u

typedef enum hdl_json_kind {
    HDL_JSON_NULL,
    HDL_JSON_FALSE,
    HDL_JSON_TRUE,
    HDL_JSON_NUMBER,
    HDL_JSON_STRING,
    HDL_JSON_ARRAY,
    HDL_JSON_OBJECT
} hdl_json_kind;
enum { HDL_NO_VALUE = 0 };

typedef struct hdl_json_value {
    hdl_json_kind kind;
    uint32_t first, last, next; /* the values inside, in order, and the one beside it */
    uint32_t origin;            /* what it is a copy of; HDL_NO_VALUE: of none */
    hdl_span name;              /* in an object */
    hdl_span text;              /* of a string, without escapes; of a number as it stands */
} hdl_json_value;

typedef struct hdl_json {
    hd_allocator    allocator;
    hdl_json_value *values;     /* [0] is none */
    uint32_t        count;
    size_t          room;
    uint8_t        *bytes;      /* of strings and numbers */
    uint64_t        byte_count, byte_room;
} hdl_json;

/* Reads one value: *out_value. hdl_json_free in any case. Statuses: PARSE (with line and column), LIMIT,
 * OUT_OF_HOST_MEMORY. */
hd_status hdl_json_read(const hd_allocator *allocator, hdl_span text, hdl_json *out_json, uint32_t *out_value,
                        hd_error *error);
void hdl_json_free(hdl_json *json);

/* What an object has under a name, the last where there are several; HDL_NO_VALUE: nothing, or no object. */
uint32_t hdl_json_get(const hdl_json *json, uint32_t object, const char *name);
uint32_t hdl_json_find(const hdl_json *json, uint32_t object, hdl_span name);
/* Whether two values are equal, whatever the order of names. Numbers are compared as they stand. */
bool hdl_json_same(const hdl_json *json, uint32_t a, uint32_t b);
/* A new value; HDL_NO_VALUE: there is no memory, or the limit is reached. */
uint32_t hdl_json_new(hdl_json *json, hdl_json_kind kind, hdl_span text);
/* Puts a copy of a value, which shares what is inside, into an object or array. False as hdl_json_new. */
bool hdl_json_put(hdl_json *json, uint32_t into, hdl_span name, uint32_t value);
/* A value as a text of one line with an ending zero, as Python's json.dumps has it without escapes for what is not
 * ASCII. Numbers stand as they were written. Free strlen + 1 bytes with hdl_free. NULL: there is no memory. */
char *hdl_json_write(const hdl_json *json, uint32_t value, const hd_allocator *allocator);
/* The escape of a character in a string, "" where it stands as it is. `ascii`: all else has one. */
void hdl_json_escape(uint32_t code, bool ascii, char out[16]);

#endif
