/* parse.c: a program from its text form. The text is a span of bytes from anywhere: nothing is read past its end,
 * nothing recurses, every list and name has its limit, and each line takes time in proportion to its length. What
 * operations take comes from the op table; whether it makes sense is said by the same rules as for the public calls.
 *   line      = [statement] ["#" comment]
 *   statement = "heddle" 1 | value "=" op {operand | attribute} | "output" value "name"
 *   operand   = value | "-" (absent)       attribute = name "=" (number | [list] | word) | flag
 *   an input or state is written  value "=" op dtype[shape] "name" */
#include "program/attrs.h"
#include <stdio.h>

#define MAX_WORD_BYTES 255
#define MAX_FACTORS 32768

typedef struct span {
    const char *text;
    size_t      bytes;
} span;
#define SHOW(word) (int)HDI_MIN((word).bytes, (size_t)64), (word).text /* for %.*s */

typedef struct parser {
    const char *at, *end, *line_start;
    unsigned long line;
    hd_program *program;
    hdi_names   values; /* the text's names of values */
    hdi_find_kernel find_kernel;
    void       *user;
    float      *factors;
    uint32_t    factor_capacity;
    hd_error   *error;
} parser;

/* One line's operation while it is read. */
typedef struct statement {
    hdi_op     op;
    uint32_t   operand_count, list_lengths[2], attr_count, seen; /* seen: bit i for attrs[i] */
    hd_value   operands[HDI_MAX_OPERANDS];
    const hdi_attr *attrs[HDI_MAX_ATTRS];
    hdi_attrs  values;
    hdi_custom custom;
    hd_dtype   dtype;
    hd_shape   shape;
} statement;

static hd_status fail(parser *p, hd_status status, const char *where, const char *format, ...) HDI_PRINTF(4, 5);
static hd_status fail(parser *p, hd_status status, const char *where, const char *format, ...) {
    char text[sizeof p->error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hdi_fail(p->error, status, "line %lu, column %lu: %s", p->line, (unsigned long)(where - p->line_start) + 1,
                    text);
}

/* Passes on the reason why the program refused what stands at `where`. */
static hd_status refuse(parser *p, const char *where, const hd_error *reason) {
    memcpy(p->error->op, reason->op, sizeof reason->op);
    return fail(p, reason->status, where, "%s", reason->text);
}

/* ---- characters and words ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_blanks(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool at_line_end(const parser *p) { return p->at == p->end || *p->at == '\n' || *p->at == '#'; }

/* Takes the character where it comes next. */
static bool take(parser *p, char c) {
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static hd_status expect(parser *p, char c) {
    return take(p, c) ? HD_OK : fail(p, HD_STATUS_PARSE, p->at, "expected %c", c);
}

static hd_status read_word(parser *p, const char *what, span *out) {
    skip_blanks(p);
    *out = (span){ p->at, 0 };
    while (p->at < p->end && is_word(*p->at)) p->at++;
    out->bytes = (size_t)(p->at - out->text);
    if (out->bytes == 0) return fail(p, HD_STATUS_PARSE, out->text, "expected %s", what);
    if (out->bytes > MAX_WORD_BYTES)
        return fail(p, HD_STATUS_LIMIT, out->text, "a word has more than %d bytes", MAX_WORD_BYTES);
    return HD_OK;
}

static bool equals(span word, const char *text) {
    return strlen(text) == word.bytes && memcmp(word.text, text, word.bytes) == 0;
}

/* A name in quotes, copied to `out` with an ending zero. What it may hold is checked as it is added. */
static hd_status read_name(parser *p, char out[MAX_WORD_BYTES + 1]) {
    hd_status status = expect(p, '"');
    if (status) return status;
    const char *text = p->at;
    while (p->at < p->end && *p->at != '"' && *p->at != '\n' && *p->at != 0) p->at++;
    if (p->at == p->end || *p->at != '"') return fail(p, HD_STATUS_PARSE, p->at, "the name has no closing quote");
    size_t bytes = (size_t)(p->at++ - text);
    if (bytes > MAX_WORD_BYTES)
        return fail(p, HD_STATUS_LIMIT, text, "the name has more than %d bytes", MAX_WORD_BYTES);
    memcpy(out, text, bytes);
    out[bytes] = 0;
    return HD_OK;
}

/* ---- numbers and lists ---- */

static span read_number(parser *p) {
    skip_blanks(p);
    span number = { p->at, 0 };
    while (p->at < p->end && (is_word(*p->at) || *p->at == '+' || *p->at == '-' || *p->at == '.')) p->at++;
    number.bytes = (size_t)(p->at - number.text);
    return number;
}

static hd_status read_int(parser *p, int64_t *out) {
    span number = read_number(p);
    bool negative = number.bytes > 0 && number.text[0] == '-';
    int64_t value = 0;
    bool good = number.bytes > negative;
    for (size_t i = negative; good && i < number.bytes; i++) {
        int digit = number.text[i] - '0';
        good = digit >= 0 && digit <= 9 && !__builtin_mul_overflow(value, (int64_t)10, &value) &&
               !__builtin_sub_overflow(value, (int64_t)digit, &value); /* downwards, which has room for the least one */
    }
    if (!good || (!negative && value == INT64_MIN))
        return fail(p, HD_STATUS_PARSE, number.text, "expected a whole number");
    *out = negative ? value : -value;
    return HD_OK;
}

static hd_status read_float(parser *p, float *out) {
    span number = read_number(p);
    if (hdi_float_read(number.text, number.bytes, out)) return HD_OK;
    return fail(p, HD_STATUS_PARSE, number.text, "expected a number");
}

/* Steps to item `index` of a list; *out_more false: the list has ended. */
static hd_status step_list(parser *p, uint32_t index, bool *out_more) {
    hd_status status = index == 0 ? expect(p, '[') : HD_OK;
    if (status) return status;
    *out_more = index == 0 ? !take(p, ']') : take(p, ',');
    return *out_more || index == 0 ? HD_OK : expect(p, ']');
}

static hd_status read_ints(parser *p, uint32_t most, int64_t *out, uint32_t *out_count) {
    const char *where = p->at;
    bool more;
    for (*out_count = 0;; ++*out_count) {
        hd_status status = step_list(p, *out_count, &more);
        if (status || !more) return status;
        if (*out_count == most) return fail(p, HD_STATUS_LIMIT, where, "the list has more than %u numbers", most);
        status = read_int(p, &out[*out_count]);
        if (status) return status;
    }
}

static hd_status read_factors(parser *p, hdi_attrs *attrs) {
    const char *where = p->at;
    bool more;
    for (uint32_t i = 0;; i++) {
        hd_status status = step_list(p, i, &more);
        attrs->factors = p->factors;
        attrs->factor_count = i;
        if (status || !more) return status;
        if (i == MAX_FACTORS) return fail(p, HD_STATUS_LIMIT, where, "the list has more than %d numbers", MAX_FACTORS);
        if (!hdi_grow(p->program->allocator, &p->factors, &p->factor_capacity, i + 1, sizeof *p->factors))
            return fail(p, HD_STATUS_OUT_OF_HOST_MEMORY, where, "no memory for the list");
        status = read_float(p, &p->factors[i]);
        if (status) return status;
    }
}

/* ---- attributes ---- */

static bool read_hex(span word, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < word.bytes; i++) {
        char c = word.text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return true;
}

static hd_status read_dtype(parser *p, hd_dtype *out) {
    char name[16] = { 0 };
    span word;
    hd_status status = read_word(p, "a data type", &word);
    if (status) return status;
    if (word.bytes < sizeof name) memcpy(name, word.text, word.bytes);
    *out = hd_dtype_parse(name);
    if (*out == HD_DTYPE_NONE) return fail(p, HD_STATUS_PARSE, word.text, "no data type is called %.*s", SHOW(word));
    return HD_OK;
}

static hd_status read_kernel(parser *p, hdi_custom *custom) {
    span word;
    hd_status status = read_word(p, "a kernel's hash", &word);
    if (status) return status;
    if (word.bytes != 16 || !read_hex(word, &custom->kernel_hash))
        return fail(p, HD_STATUS_PARSE, word.text, "expected a kernel's hash, 16 digits of 0-9 and a-f");
    if (!p->find_kernel || !p->find_kernel(p->user, custom->kernel_hash, custom))
        return fail(p, HD_STATUS_KERNEL_NOT_FOUND, word.text, "no kernel has the hash %.*s", SHOW(word));
    return HD_OK;
}

static hd_status read_push(parser *p, hdi_custom *custom) {
    span word;
    hd_status status = read_word(p, "push constants", &word);
    if (status) return status;
    if (word.bytes > 2 * sizeof custom->push_words)
        return fail(p, HD_STATUS_LIMIT, word.text, "more than %zu bytes of push constants", sizeof custom->push_words);
    bool good = word.bytes % 8 == 0;
    for (size_t i = 0; good && i < word.bytes / 8; i++) {
        uint64_t value;
        good = read_hex((span){ word.text + 8 * i, 8 }, &value);
        custom->push_words[i] = (uint32_t)value;
    }
    if (!good) return fail(p, HD_STATUS_PARSE, word.text, "expected words of 8 digits of 0-9 and a-f");
    custom->push_bytes = (uint32_t)word.bytes / 2;
    return HD_OK;
}

/* Three numbers for each binding, as print.c writes them. */
static hd_status read_bindings(parser *p, hdi_custom *custom) {
    const char *where = p->at;
    int64_t numbers[3 * HDI_COUNT(custom->bindings)];
    uint32_t count;
    hd_status status = read_ints(p, HDI_COUNT(numbers), numbers, &count);
    if (status) return status;
    custom->binding_count = 0;
    for (uint32_t i = 0; i + 2 < count; i += 3) {
        const int64_t *n = numbers + i;
        if (n[0] < 0 || n[0] > UINT32_MAX || n[1] < 0 || n[2] < 0)
            return fail(p, HD_STATUS_LIMIT, where, "a binding's number is out of range");
        custom->bindings[custom->binding_count++] =
            (hdi_custom_binding){ (uint32_t)n[0], (uint64_t)n[1], (uint64_t)n[2] };
    }
    return count && count % 3 == 0 ? HD_OK
           : fail(p, HD_STATUS_PARSE, where, "expected operand, offset and bytes of each binding");
}

static hd_status read_groups(parser *p, hdi_custom *custom) {
    const char *where = p->at;
    int64_t groups[3];
    uint32_t count;
    hd_status status = read_ints(p, 3, groups, &count);
    if (status) return status;
    for (uint32_t i = 0; i < count; i++) {
        if (groups[i] < 0 || groups[i] > UINT32_MAX)
            return fail(p, HD_STATUS_LIMIT, where, "a group count is not of 32 bits");
        custom->groups[i] = (uint32_t)groups[i];
    }
    return count == 3 ? HD_OK : fail(p, HD_STATUS_PARSE, where, "expected 3 group counts");
}

static hd_status read_pairing(parser *p, int64_t *out) {
    span word;
    hd_status status = read_word(p, "halves or neighbours", &word);
    if (status) return status;
    *out = equals(word, "neighbours") ? HD_ROPE_NEIGHBOURS : HD_ROPE_HALVES;
    if (*out || equals(word, "halves")) return HD_OK;
    return fail(p, HD_STATUS_PARSE, word.text, "expected halves or neighbours");
}

static hd_status read_attr(parser *p, statement *s, const hdi_attr *attr) {
    hdi_attrs *values = &s->values;
    switch (attr->kind) {
    case HDI_ATTR_FLOAT: return read_float(p, &values->floats[attr->at]);
    case HDI_ATTR_INT: return read_int(p, &values->ints[attr->at]);
    case HDI_ATTR_LIST: return read_ints(p, HD_MAX_RANK, values->ints + attr->at, &s->list_lengths[attr->at != 0]);
    case HDI_ATTR_PAIRING: return read_pairing(p, &values->ints[attr->at]);
    case HDI_ATTR_FACTORS: return read_factors(p, values);
    case HDI_ATTR_DTYPE: return read_dtype(p, &s->dtype);
    case HDI_ATTR_SHAPE: return read_ints(p, HD_MAX_RANK, s->shape.dims, &s->shape.rank);
    case HDI_ATTR_KERNEL: return read_kernel(p, &s->custom);
    case HDI_ATTR_PUSH: return read_push(p, &s->custom);
    case HDI_ATTR_GROUPS: return read_groups(p, &s->custom);
    case HDI_ATTR_BINDINGS: return read_bindings(p, &s->custom);
    case HDI_ATTR_FLAG: case HDI_ATTR_NAME: break; /* read where they stand */
    }
    return HD_OK;
}

/* The attribute called `word`, marked as seen; NULL where the operation has none of this name. */
static hd_status find_attr(parser *p, statement *s, span word, const hdi_attr **out_attr) {
    *out_attr = NULL;
    for (uint32_t i = 0; i < s->attr_count; i++) {
        if (!equals(word, s->attrs[i]->name)) continue;
        if (s->seen >> i & 1) return fail(p, HD_STATUS_PARSE, word.text, "%s is given twice", s->attrs[i]->name);
        s->seen |= 1u << i;
        *out_attr = s->attrs[i];
    }
    return HD_OK;
}

/* ---- statements ---- */

static hd_status add_operand(parser *p, statement *s, const char *where, hd_value value) {
    if (s->operand_count == HDI_MAX_OPERANDS)
        return fail(p, HD_STATUS_LIMIT, where, "more than %d operands", HDI_MAX_OPERANDS);
    s->operands[s->operand_count++] = value;
    return HD_OK;
}

static hd_status find_value(parser *p, span word, hd_value *out) {
    *out = hdi_names_find(&p->values, word.text, word.bytes);
    return *out ? HD_OK : fail(p, HD_STATUS_PARSE, word.text, "no value is called %.*s", SHOW(word));
}

/* One operand, flag or attribute with its value. */
static hd_status read_part(parser *p, statement *s) {
    const char *where = p->at;
    const hdi_attr *attr;
    hd_value value;
    span word;
    if (take(p, '-')) return add_operand(p, s, where, 0);
    hd_status status = read_word(p, "an operand or attribute", &word);
    if (status) return status;
    bool has_value = take(p, '=');
    status = find_attr(p, s, word, &attr);
    if (status) return status;
    if (!attr && !has_value) {
        status = find_value(p, word, &value);
        return status ? status : add_operand(p, s, where, value);
    }
    if (!attr) {
        const hdi_op_facts op = hdi_op_get(s->op);
        return fail(p, HD_STATUS_PARSE, where, "%s has no attribute %.*s; it has %s", op.name, SHOW(word),
                    op.attributes[0] ? op.attributes : "none");
    }
    if (has_value == (attr->kind == HDI_ATTR_FLAG))
        return fail(p, HD_STATUS_PARSE, where, "%s is written %s", attr->name,
                    has_value ? "without =" : "with = and a value");
    if (has_value) return read_attr(p, s, attr);
    s->values.ints[attr->at / 64] |= (int64_t)1 << attr->at % 64;
    return HD_OK;
}

static hd_status read_parts(parser *p, statement *s, const char *where) {
    for (uint32_t i = 0; i < s->attr_count; i++)
        if (s->attrs[i]->kind == HDI_ATTR_FLOAT) s->values.floats[s->attrs[i]->at] = s->attrs[i]->unset;
    for (skip_blanks(p); !at_line_end(p); skip_blanks(p)) {
        hd_status status = read_part(p, s);
        if (status) return status;
    }
    bool two_lists = false;
    for (uint32_t i = 0; i < s->attr_count; i++) {
        if (!s->attrs[i]->optional && !(s->seen >> i & 1))
            return fail(p, HD_STATUS_PARSE, where, "%s needs %s=", hdi_op_get(s->op).name, s->attrs[i]->name);
        two_lists = two_lists || (s->attrs[i]->kind == HDI_ATTR_LIST && s->attrs[i]->at != 0);
    }
    if (two_lists && s->list_lengths[0] != s->list_lengths[1])
        return fail(p, HD_STATUS_PARSE, where, "the lists have %u and %u numbers", s->list_lengths[0],
                    s->list_lengths[1]);
    s->values.list_count = s->list_lengths[0];
    if (s->op == HDI_OP_DISPATCH) s->values.custom = &s->custom;
    return HD_OK;
}

static hd_status read_operation(parser *p, span id) {
    statement s = { 0 };
    char name[MAX_WORD_BYTES + 1];
    span word;
    if (hdi_names_find(&p->values, id.text, id.bytes))
        return fail(p, HD_STATUS_PARSE, id.text, "there is a value %.*s already", SHOW(id));
    hd_status status = read_word(p, "an operation", &word);
    if (status) return status;
    s.op = hdi_op_find(word.text, word.bytes);
    if (s.op == HDI_OP_NONE) return fail(p, HD_STATUS_PARSE, word.text, "no operation is called %.*s", SHOW(word));
    s.attr_count = hdi_op_attrs(s.op, s.attrs);
    bool named = hdi_op_is_source(s.op);
    if (named) {
        status = read_dtype(p, &s.dtype);
        if (!status) status = read_ints(p, HD_MAX_RANK, s.shape.dims, &s.shape.rank);
        if (!status) status = read_name(p, name);
    } else {
        status = read_parts(p, &s, word.text);
    }
    if (status) return status;
    hd_error reason = { 0 };
    hdi_node node = { .op = s.op, .dtype = s.dtype, .shape = s.shape, .attrs = s.values, .operands = s.operands,
                      .operand_count = s.operand_count, .name = named ? name : NULL };
    hd_value value = hdi_program_try(p->program, &node, &reason);
    if (value == 0) return refuse(p, word.text, &reason);
    if (!hdi_names_add(&p->values, id.text, id.bytes, value))
        return fail(p, HD_STATUS_OUT_OF_HOST_MEMORY, id.text, "no memory for another name");
    return HD_OK;
}

static hd_status read_output(parser *p, const char *where) {
    char name[MAX_WORD_BYTES + 1];
    hd_error reason = { 0 };
    hd_value value = 0;
    span word;
    hd_status status = read_word(p, "a value", &word);
    if (!status) status = find_value(p, word, &value);
    if (!status) status = read_name(p, name);
    if (status) return status;
    return hdi_program_try_output(p->program, name, value, &reason) ? refuse(p, where, &reason) : HD_OK;
}

static hd_status read_head(parser *p, span word) {
    const char *where = p->at;
    int64_t version;
    if (!equals(word, "heddle")) return fail(p, HD_STATUS_PARSE, word.text, "the first line must be: heddle 1");
    hd_status status = read_int(p, &version);
    if (status || version == 1) return status;
    return fail(p, HD_STATUS_UNSUPPORTED_VERSION, where, "version %lld of the text form is not known, only 1",
                (long long)version);
}

static hd_status read_line(parser *p, bool *has_head) {
    hd_status status = HD_OK;
    skip_blanks(p);
    if (!at_line_end(p)) {
        span word;
        status = read_word(p, *has_head ? "a value's name or output" : "heddle 1", &word);
        if (status) return status;
        if (!*has_head) status = read_head(p, word);
        else if (take(p, '=')) status = read_operation(p, word);
        else if (equals(word, "output")) status = read_output(p, word.text);
        else status = fail(p, HD_STATUS_PARSE, p->at, "expected = after %.*s", SHOW(word));
        *has_head = true;
    }
    skip_blanks(p);
    if (status) return status;
    if (!at_line_end(p)) return fail(p, HD_STATUS_PARSE, p->at, "expected the end of the line");
    while (p->at < p->end && *p->at != '\n') p->at++; /* a comment */
    return HD_OK;
}

hd_status hdi_program_parse(hd_program *program, const char *text, size_t bytes, hdi_find_kernel find_kernel,
                            void *user, hd_error *error) {
    hd_error reason = { 0 };
    bool has_head = false;
    if (!text) bytes = 0, text = "";
    parser p = { .at = text, .end = text + bytes, .line_start = text, .line = 1, .program = program,
                 .values = { .allocator = program->allocator }, .find_kernel = find_kernel, .user = user,
                 .error = &reason };
    hd_status status = read_line(&p, &has_head);
    while (!status && p.at < p.end) { /* at the end of a line */
        p.line_start = ++p.at;
        p.line++;
        status = read_line(&p, &has_head);
    }
    if (!status && !has_head) status = fail(&p, HD_STATUS_PARSE, p.at, "the text is empty: it begins with heddle 1");
    hdi_names_free(&p.values);
    hdi_free(program->allocator, p.factors, p.factor_capacity * sizeof *p.factors);
    if (status) program->error = reason;
    if (status && error && error->status == HD_OK) *error = reason;
    return status;
}
