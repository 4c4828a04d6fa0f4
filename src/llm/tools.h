/* tools.h: what a model may call, as OpenAI's API lists it: names, and JSON Schemas of what they are called with. */
#ifndef HDL_TOOLS_H
#define HDL_TOOLS_H

#include "llm/form/json.h"

/* Limits, each refused with HD_STATUS_LIMIT. */
#define HDL_MAX_TOOLS 1024u
#define HDL_MAX_TOOL_NAME 256u

/* A name that a tool takes something under. */
typedef struct hdl_tool_key {
    uint32_t tool, types; /* types: HDL_TYPE_... of its values */
    hdl_span name;
} hdl_tool_key;

typedef struct hdl_tools {
    hdl_json json;
    uint32_t list;       /* the value that holds them */
    hdl_tool_key *keys;  /* of those whose types were found */
    size_t   key_count, key_room;
} hdl_tools;

/* Looks at a list of tools that was read. Statuses: INVALID_ARGUMENT (no such list, or a name twice), LIMIT. */
hd_status hdl_tools_check(const hdl_json *json, uint32_t list, hd_error *error);
/* Reads one, and looks at it. hdl_tools_free in any case. Statuses: PARSE, too, and OUT_OF_HOST_MEMORY. */
hd_status hdl_tools_read(const hd_allocator *allocator, const char *text, hdl_tools *out_tools, hd_error *error);
void hdl_tools_free(hdl_tools *tools);

/* The first tool, and the one behind a tool; HDL_NO_VALUE: none. */
uint32_t hdl_tools_first(const hdl_tools *tools);
uint32_t hdl_tools_next(const hdl_tools *tools, uint32_t tool);
hdl_span hdl_tool_name(const hdl_json *json, uint32_t tool);
/* Finds the types of what the tools take, for forms in which these tell how a value is written. The JSON grows by what
 * is made of schemas; those that are not understood are left out. Statuses: OUT_OF_HOST_MEMORY. */
hd_status hdl_tools_find_types(hdl_tools *tools, hd_error *error);
/* The names that a tool takes something under, of those that are known; *out_count of them. NULL tools: none. */
const hdl_tool_key *hdl_tools_keys(const hdl_tools *tools, hdl_span name, size_t *out_count);
/* The schema of what it is called with; HDL_NO_VALUE: it is called with nothing. */
uint32_t hdl_tool_parameters(const hdl_json *json, uint32_t tool);

#endif
