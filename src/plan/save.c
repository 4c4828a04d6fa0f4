/* save.c: a plan as a file, one "name value" a line:
 *
 *   heddle plan 2
 *   math exact
 *   budget_bytes 0
 *   fusion 1
 *   in_order 0
 *   slice_us 0
 *   device cpu             of each device; its facts follow (facts/caps.h)
 *   ...
 *   route v3-v9=1,rest=0   where operations run (program/segments.h)
 *   digest 1234567890      of all segments as text
 *   program                its text follows
 *   ... */
#include "plan/plan.h"
#include <inttypes.h>
#include <stdio.h>

static const char first_line[] = "heddle plan 2";

/* ---- writing ---- */

/* Of all that was planned, whatever the devices are called. False: no memory. */
static bool digest_of(const hdi_plan *plan, uint64_t *out_digest) {
    hdi_text text = { .allocator = plan->arena.allocator };
    hdi_plan_print_segments(plan, &text);
    *out_digest = hdi_hash(HDI_HASH_START, text.bytes, text.count);
    const bool made = !text.failed;
    hdi_text_free(&text);
    return made;
}

void hdi_plan_save(const hdi_plan *plan, const char *const *ids, const hdi_text *program, hdi_text *out) {
    uint64_t digest;
    hdi_text_add(out, "%s\nmath %s\nbudget_bytes %" PRIu64 "\nfusion %d\nin_order %d\nslice_us %u\n", first_line,
                 plan->options.math == HD_MATH_EXACT ? "exact" : "fast", plan->options.budget_bytes,
                 !plan->options.no_fusion, plan->options.in_order, plan->options.slice_us);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hdi_text_add(out, "device %s\n", ids[d]);
        hdi_caps_print(&plan->caps[d], out);
    }
    hdi_text_add(out, "route %s\n", plan->route);
    if (!digest_of(plan, &digest)) out->failed = true;
    else hdi_text_add(out, "digest %" PRIu64 "\nprogram\n%s", digest, program->bytes);
}

/* ---- reading ---- */

typedef struct reader {
    hdi_span rest;
    unsigned line; /* that `rest` begins with */
    hd_error *error;
} reader;

/* The next line without its end; does not take it. */
static hdi_span look(const reader *r) {
    const char *end = memchr(r->rest.at, '\n', (size_t)(r->rest.end - r->rest.at));
    return (hdi_span){ r->rest.at, end ? end : r->rest.end };
}

static void take(reader *r) {
    const hdi_span line = look(r);
    r->rest.at = line.end < r->rest.end ? line.end + 1 : r->rest.end;
    r->line++;
}

static bool begins(const reader *r, const char *name) {
    hdi_span line = look(r);
    return hdi_word_is(hdi_word_next(&line), name);
}

/* Takes a line "name value". */
static hd_status read_value(reader *r, const char *name, hdi_span *out_value) {
    *out_value = look(r);
    if (!hdi_word_is(hdi_word_next(out_value), name))
        return hdi_fail(r->error, HD_STATUS_PARSE, "saved plan, line %u: here stands \"%s\"", r->line, name);
    if (out_value->at < out_value->end) out_value->at++; /* the space */
    take(r);
    return HD_OK;
}

static hd_status read_number(reader *r, const char *name, uint64_t most, uint64_t *out) {
    hdi_span value;
    hd_status status = read_value(r, name, &value);
    if (status || hdi_whole_read(hdi_word_next(&value), most, out)) return status;
    return hdi_fail(r->error, HD_STATUS_PARSE, "saved plan, line %u: %s is a whole number up to %" PRIu64, r->line - 1,
                    name, most);
}

static hd_status read_options(reader *r, hdi_plan_options *out) {
    hdi_span math;
    uint64_t fusion = 0, in_order = 0, slice_us = 0;
    hd_status status = read_value(r, "math", &math);
    if (!status && !hdi_word_is(math, "exact") && !hdi_word_is(math, "fast"))
        status = hdi_fail(r->error, HD_STATUS_PARSE, "saved plan, line %u: math is exact or fast", r->line - 1);
    if (!status) status = read_number(r, "budget_bytes", UINT64_MAX, &out->budget_bytes);
    if (!status) status = read_number(r, "fusion", 1, &fusion);
    if (!status) status = read_number(r, "in_order", 1, &in_order);
    if (!status) status = read_number(r, "slice_us", UINT32_MAX, &slice_us);
    if (status) return status;
    out->math = hdi_word_is(math, "exact") ? HD_MATH_EXACT : HD_MATH_FAST;
    out->no_fusion = fusion == 0;
    out->in_order = in_order != 0;
    out->slice_us = (uint32_t)slice_us;
    return HD_OK;
}

/* A device's facts, up to what comes behind them. */
static hd_status read_device(reader *r, hdi_saved_plan *saved) {
    if (saved->device_count == HDI_MOST_DEVICES)
        return hdi_fail(r->error, HD_STATUS_PARSE, "saved plan, line %u: more than %d devices", r->line,
                        HDI_MOST_DEVICES);
    take(r);
    hdi_span *caps = &saved->caps[saved->device_count++];
    caps->at = r->rest.at;
    while (r->rest.at < r->rest.end && !begins(r, "device") && !begins(r, "route")) take(r);
    caps->end = r->rest.at;
    return HD_OK;
}

hd_status hdi_saved_plan_read(const char *text, size_t bytes, hdi_saved_plan *out, hd_error *error) {
    reader r = { { text, text + bytes }, 1, error };
    const hdi_span first = look(&r);
    hdi_span program;
    *out = (hdi_saved_plan){ 0 };
    if ((size_t)(first.end - first.at) != sizeof first_line - 1 ||
        memcmp(first.at, first_line, sizeof first_line - 1) != 0)
        return hdi_fail(error, HD_STATUS_PARSE, "not a saved plan of this version: the first line is \"%s\"",
                        first_line);
    take(&r);
    hd_status status = read_options(&r, &out->options);
    while (!status && begins(&r, "device")) status = read_device(&r, out);
    if (!status && out->device_count == 0)
        status = hdi_fail(error, HD_STATUS_PARSE, "saved plan, line %u: no device", r.line);
    if (!status) status = read_value(&r, "route", &out->route);
    if (!status) status = read_number(&r, "digest", UINT64_MAX, &out->digest);
    if (!status) status = read_value(&r, "program", &program);
    out->program = r.rest;
    return status;
}

/* ---- making it again ---- */

/* All but the devices is in the text. */
hd_status hdi_saved_plan_check(const hdi_saved_plan *saved, const hd_plan_desc *desc, hd_error *error) {
    if (desc->math || desc->budget_bytes || desc->no_fusion || desc->in_order || desc->slice_us || desc->route ||
        desc->failover || desc->follow || desc->resident_count)
        return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "a saved plan's wishes are in its text: only `beside` and "
                                                           "`timestamps` are taken from hd_plan_desc");
    if (saved->device_count == 1 + desc->beside_count) return HD_OK;
    return hdi_fail(error, HD_STATUS_INVALID_ARGUMENT, "the plan was saved for %u devices, not for %u",
                    saved->device_count, 1 + desc->beside_count);
}

/* The facts of the file, where the device now can do the same. */
static hd_status read_caps(const hdi_saved_plan *saved, uint32_t device, const hdi_caps *now, const char *id,
                           hdi_caps *out, hd_error *error) {
    const hdi_span text = saved->caps[device];
    const hd_status status = hdi_caps_parse(text.at, (size_t)(text.end - text.at), out, error);
    const char *other = status ? NULL : hdi_caps_difference(out, now);
    if (!other) return status;
    return hdi_fail(error, HD_STATUS_UNSUPPORTED,
                    "the plan was saved for %s, and %s is another one or has another driver (%s differs); plan anew",
                    out->name[0] ? out->name : "a device", id, other);
}

static hd_status read_route(const hdi_saved_plan *saved, const hd_program *program, hdi_placement *out,
                            hd_error *error) {
    const size_t bytes = (size_t)(saved->route.end - saved->route.at);
    char *route = hdi_alloc(program->allocator, bytes + 1);
    if (!route) return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a route");
    memcpy(route, saved->route.at, bytes);
    const hd_status status = hdi_placement_parse(program, route, NULL, saved->device_count, out, error);
    hdi_free(program->allocator, route, bytes + 1);
    return status;
}

hd_status hdi_saved_plan_make(const hdi_saved_plan *saved, const hd_program *program, const hdi_caps *now,
                              const char *const *ids, hdi_plan **out_plan, hd_error *error) {
    const hd_allocator *allocator = program->allocator;
    hdi_placement placement = { 0 };
    uint64_t digest = 0;
    hdi_caps *caps = hdi_alloc(allocator, saved->device_count * sizeof *caps);
    hd_status status = caps ? HD_OK : hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a saved plan");
    *out_plan = NULL;
    for (uint32_t d = 0; d < saved->device_count && !status; d++)
        status = read_caps(saved, d, &now[d], ids[d], &caps[d], error);
    if (!status) status = read_route(saved, program, &placement, error);
    const hdi_plan_wish wish = { program, &placement, caps, ids, saved->options };
    if (!status) status = hdi_plan_make(allocator, &wish, out_plan, error);
    if (!status && !digest_of(*out_plan, &digest))
        status = hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for a saved plan");
    if (!status && digest != saved->digest)
        status = hdi_fail(error, HD_STATUS_UNSUPPORTED,
                          "the saved plan is not what comes out: its text was changed, or another version of heddle "
                          "saved it; plan anew");
    if (status) {
        hdi_plan_free(*out_plan);
        *out_plan = NULL;
    }
    hdi_placement_free(&placement);
    hdi_free(allocator, caps, saved->device_count * sizeof *caps);
    return status;
}
