/* tools.c: see tools.h. */
#include "llm/tools.h"
#include "llm/form/schema.h"

hdl_span hdl_tool_name(const hdl_json *json, uint32_t tool) {
    const uint32_t name = hdl_json_get(json, hdl_json_get(json, tool, "function"), "name");
    return name && json->values[name].kind == HDL_JSON_STRING ? json->values[name].text : hdl_text("");
}

uint32_t hdl_tool_parameters(const hdl_json *json, uint32_t tool) {
    const uint32_t schema = hdl_json_get(json, hdl_json_get(json, tool, "function"), "parameters");
    return schema && json->values[schema].kind != HDL_JSON_NULL ? schema : HDL_NO_VALUE;
}

uint32_t hdl_tools_first(const hdl_tools *tools) { return tools->json.values[tools->list].first; }
uint32_t hdl_tools_next(const hdl_tools *tools, uint32_t tool) { return tools->json.values[tool].next; }

hd_status hdl_tools_check(const hdl_json *json, uint32_t list, hd_error *error) {
    hdl_span names[HDL_MAX_TOOLS];
    size_t count = 0;
    char quoted[HDL_QUOTE];
    uint32_t tool = json->values[list].kind == HDL_JSON_ARRAY ? json->values[list].first : HDL_NO_VALUE;
    if (!tool)
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                        "the tools are no list of functions, or an empty one; docs/tools.md shows one");
    for (; tool; tool = json->values[tool].next, count++) {
        if (count == HDL_MAX_TOOLS)
            return hdl_fail(error, HD_STATUS_LIMIT, "more than %u tools; offer fewer at once", HDL_MAX_TOOLS);
        names[count] = hdl_tool_name(json, tool);
        if (!names[count].count || !hdl_is_name(names[count]))
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                            "tool %zu is no {\"type\": \"function\", \"function\": {\"name\": ...}} with a name",
                            count + 1);
        if (names[count].count > HDL_MAX_TOOL_NAME)
            return hdl_fail(error, HD_STATUS_LIMIT, "the name of tool %zu is longer than %u bytes; shorten it",
                            count + 1, HDL_MAX_TOOL_NAME);
        for (size_t i = 0; i < count; i++)
            if (hdl_same(names[i], names[count]))
                return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                                "tools %zu and %zu are both called %s; rename one of them", i + 1, count + 1,
                                hdl_quote(names[count], quoted));
    }
    return HD_OK;
}

hd_status hdl_tools_read(const hd_allocator *allocator, const char *text, hdl_tools *tools, hd_error *error) {
    hd_error own = { 0 };
    const hd_status status = hdl_json_read(allocator, hdl_text(text), &tools->json, &tools->list, &own);
    if (status) return hdl_fail(error, status, "the tools: %s", own.text);
    return hdl_tools_check(&tools->json, tools->list, error);
}

void hdl_tools_free(hdl_tools *tools) {
    if (!tools->json.allocator.resize) return;
    hdl_free(&tools->json.allocator, tools->keys, tools->key_room * sizeof *tools->keys);
    hdl_json_free(&tools->json);
}

/* ---- types ---- */

/* Of one tool, as far as its schema is understood. False: there is no memory. */
static bool add_keys(hdl_tools *tools, hdl_schema_work *w, uint32_t tool, hdl_property *list) {
    const uint32_t schema = hdl_tool_parameters(&w->json, tool);
    uint32_t count = 0;
    w->root = schema;
    const uint32_t objects = schema ? hdl_schema_of_objects(w, schema) : HDL_NO_VALUE;
    if (objects && !hdl_schema_properties(w, objects, list, &count)) count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t types;
        if (!hdl_schema_kinds(w, list[i].schema, 0, &types)) types = HDL_TYPE_ANY;
        if (!hdl_grow(&w->allocator, &tools->keys, &tools->key_room, tools->key_count + 1, sizeof *tools->keys))
            return hdl_schema_no_memory(w);
        tools->keys[tools->key_count++] = (hdl_tool_key){ tool, types, list[i].name };
    }
    return w->error->status != HD_STATUS_OUT_OF_HOST_MEMORY;
}

hd_status hdl_tools_find_types(hdl_tools *tools, hd_error *error) {
    const hd_allocator allocator = tools->json.allocator;
    hd_error own = { 0 };
    hdl_schema_work w = { .allocator = allocator, .json = tools->json, .error = &own };
    hdl_property *list = hdl_alloc(&allocator, HDL_MAX_PROPERTIES * sizeof *list);
    bool ok = list && hdl_schema_begin(&w);
    for (uint32_t tool = ok ? w.json.values[tools->list].first : 0; tool && ok; tool = w.json.values[tool].next) {
        own = (hd_error){ 0 };
        w.merge_count = 0;
        ok = add_keys(tools, &w, tool, list);
    }
    tools->json = w.json;
    hdl_free(&allocator, list, HDL_MAX_PROPERTIES * sizeof *list);
    return ok ? HD_OK : hdl_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for tools");
}

const hdl_tool_key *hdl_tools_keys(const hdl_tools *tools, hdl_span name, size_t *out_count) {
    *out_count = 0;
    if (!tools || !tools->key_count) return NULL;
    uint32_t tool = hdl_tools_first(tools);
    while (tool && !hdl_same(hdl_tool_name(&tools->json, tool), name)) tool = hdl_tools_next(tools, tool);
    size_t first = 0;
    while (first < tools->key_count && tools->keys[first].tool != tool) first++;
    while (first + *out_count < tools->key_count && tools->keys[first + *out_count].tool == tool) ++*out_count;
    return tools->keys + first;
}
