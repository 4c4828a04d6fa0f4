/* tools.c: see tools.h. */
#include "llm/tools.h"

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
        return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT, "the tools are no list of functions, or an empty one");
    for (; tool; tool = json->values[tool].next, count++) {
        if (count == HDL_MAX_TOOLS)
            return hdl_fail(error, HD_STATUS_LIMIT, "more than %u tools; offer fewer at once", HDL_MAX_TOOLS);
        names[count] = hdl_tool_name(json, tool);
        if (!names[count].count || !hdl_is_name(names[count]))
            return hdl_fail(error, HD_STATUS_INVALID_ARGUMENT,
                            "tool %zu is no {\"type\": \"function\", \"function\": {\"name\": ...}} with a name",
                            count + 1);
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

void hdl_tools_free(hdl_tools *tools) { hdl_json_free(&tools->json); }
