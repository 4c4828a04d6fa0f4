/* chat_lex.c: a template's text to words. Between tags all is one word of data; white space around tags goes as "-",
 * "+", trim_blocks (a line's end after a block or comment) and lstrip_blocks (blanks before one, from the line's start)
 * say. Newlines are single by now (chat_parse.c). */
#include "llm/chat_inside.h"

hdl_lexer hdl_lex_begin(hdl_chat_run *run, hdl_span source) {
    return (hdl_lexer){ .run = run, .source = source, .line_starting = true };
}

static uint8_t byte_at(const hdl_lexer *l, size_t at) { return at < l->source.count ? l->source.bytes[at] : 0; }
static hdl_span rest(const hdl_lexer *l) { return hdl_cut(l->source, l->at, l->source.count); }
static hdl_word word(hdl_word_kind kind, size_t at, hdl_span text) {
    return (hdl_word){ .kind = kind, .at = (uint32_t)at, .text = text };
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool begins_name(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void skip_space(hdl_lexer *l) {
    l->at = l->source.count - hdl_strip(l->run, rest(l), (hdl_span){ 0 }, true, false).count;
}

/* Moves past a tag's end of `bytes` bytes, whose sign is the byte before it, and the white space that goes with it. */
static void pass_end(hdl_lexer *l, size_t bytes, uint8_t sign, bool trims) {
    l->at += bytes;
    const size_t end = l->at;
    if (sign == '-') skip_space(l);
    else if (sign != '+' && trims && byte_at(l, l->at) == '\n') l->at++;
    l->line_starting = l->at > end && l->source.bytes[l->at - 1] == '\n';
}

/* Skips a comment; l->at stands on its "{#". */
static void skip_comment(hdl_lexer *l) {
    const size_t begin = l->at + 2 + (byte_at(l, l->at + 2) == '-' || byte_at(l, l->at + 2) == '+');
    size_t end = begin;
    while (end < l->source.count && !(byte_at(l, end) == '#' && byte_at(l, end + 1) == '}')) end++;
    if (end >= l->source.count) {
        hdl_chat_fail(l->run, HD_STATUS_PARSE, (uint32_t)l->at, "a comment without an end");
        return;
    }
    const uint8_t sign = end > begin ? byte_at(l, end - 1) : 0;
    l->at = end;
    pass_end(l, 2, sign, true);
}

/* The data in front of a tag, cut as the tag's sign says; `lstrips`: the tag is no {{. */
static hdl_span cut_data(hdl_lexer *l, hdl_span data, uint8_t sign, bool lstrips) {
    if (sign == '-') return hdl_strip(l->run, data, (hdl_span){ 0 }, false, true);
    if (sign == '+' || !lstrips) return data;
    uint64_t line = data.count;
    while (line > 0 && data.bytes[line - 1] != '\n') line--;
    const hdl_span words = hdl_strip(l->run, hdl_cut(data, line, data.count), (hdl_span){ 0 }, true, false);
    if (words.count == 0 && (line > 0 || l->line_starting)) data.count = line;
    return data;
}

/* The data up to the next tag; moves to the tag. */
static hdl_span take_data(hdl_lexer *l) {
    const size_t from = l->at;
    while (l->at < l->source.count &&
           !(byte_at(l, l->at) == '{' &&
             (byte_at(l, l->at + 1) == '{' || byte_at(l, l->at + 1) == '%' || byte_at(l, l->at + 1) == '#')))
        l->at++;
    const hdl_span data = hdl_cut(l->source, from, l->at);
    return l->at < l->source.count ? cut_data(l, data, byte_at(l, l->at + 2), byte_at(l, l->at + 1) != '{') : data;
}

/* The bytes of the block "{% name %}" if it begins here, or 0; its closing sign, or 0, in *out_sign. */
static size_t find_block(const hdl_lexer *l, size_t begin, const char *name, uint8_t *out_sign) {
    size_t at = begin + 2 + (byte_at(l, begin + 2) == '-' || byte_at(l, begin + 2) == '+');
    if (byte_at(l, begin) != '{' || byte_at(l, begin + 1) != '%') return 0;
    while (byte_at(l, at) && strchr(" \t\n\v\f", byte_at(l, at))) at++;
    while (*name && byte_at(l, at) == (uint8_t)*name) at++, name++;
    if (*name) return 0;
    while (byte_at(l, at) && strchr(" \t\n\v\f", byte_at(l, at))) at++;
    *out_sign = byte_at(l, at) == '-' || byte_at(l, at) == '+' ? byte_at(l, at) : 0;
    at += *out_sign != 0;
    return byte_at(l, at) == '%' && byte_at(l, at + 1) == '}' ? at + 2 - begin : 0;
}

/* The data between {% raw %}, which is at the lexer's place and of so many bytes, and {% endraw %}; moves behind it. */
static hdl_span take_raw(hdl_lexer *l, size_t bytes, uint8_t sign) {
    const size_t raw = l->at;
    pass_end(l, bytes, sign, false);
    const size_t from = l->at;
    while (l->at < l->source.count && !(bytes = find_block(l, l->at, "endraw", &sign))) l->at++;
    if (l->at >= l->source.count) {
        hdl_chat_fail(l->run, HD_STATUS_PARSE, (uint32_t)raw, "a raw block without an end");
        return hdl_text("");
    }
    const hdl_span data = cut_data(l, hdl_cut(l->source, from, l->at), byte_at(l, l->at + 2), true);
    pass_end(l, bytes, sign, true);
    return data;
}

static hdl_word lex_outside(hdl_lexer *l) {
    while (!hdl_chat_stopped(l->run)) {
        const size_t at = l->at;
        const hdl_span data = take_data(l);
        const bool comment = byte_at(l, l->at) == '{' && byte_at(l, l->at + 1) == '#';
        uint8_t sign;
        if (comment) skip_comment(l);
        if (data.count) return word(HDL_WORD_DATA, at, data);
        if (comment) continue;
        const size_t raw = find_block(l, l->at, "raw", &sign);
        if (!raw || sign == '+') break;
        const hdl_span text = take_raw(l, raw, sign);
        if (text.count) return word(HDL_WORD_DATA, at, text);
    }
    l->mode = HDL_LEX_BEGIN;
    return word(HDL_WORD_END, l->at, hdl_text(""));
}

/* ---- inside of tags ---- */

static void put_code(hdl_chat_run *run, hdl_sink *sink, uint32_t code) {
    uint8_t out[4];
    size_t count = 0;
    if (code < 0x80) out[count++] = (uint8_t)code;
    else if (code < 0x800) out[count++] = (uint8_t)(0xc0 | code >> 6);
    else if (code < 0x10000) {
        out[count++] = (uint8_t)(0xe0 | code >> 12);
        out[count++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    } else {
        out[count++] = (uint8_t)(0xf0 | code >> 18);
        out[count++] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
        out[count++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80) out[count++] = (uint8_t)(0x80 | (code & 0x3f));
    hdl_put(run, sink, (hdl_span){ out, count });
}

/* Reads up to `most` digits; how many there were. */
static size_t read_digits(hdl_span text, uint64_t at, size_t most, uint32_t base, uint32_t *out_code) {
    size_t count = 0;
    for (*out_code = 0; count < most && at + count < text.count; count++) {
        const uint8_t c = text.bytes[at + count], low = c | 0x20;
        const uint32_t digit = is_digit(c) ? (uint32_t)(c - '0') : low >= 'a' && low <= 'f' ? low - 'a' + 10u : 99;
        if (digit >= base) break;
        *out_code = *out_code * base + digit;
    }
    return count;
}

/* A text's escapes, as in Python; what is none stays. */
static hdl_span unescaped(hdl_lexer *l, hdl_span text, size_t position) {
    static const char plain[] = "n\nt\tr\rb\bf\fa\av\v\\\\''\"\"";
    hdl_sink sink = { .limit = HDL_MAX_CHAT_BYTES };
    if (!memchr(text.bytes, '\\', text.count)) return text;
    for (uint64_t i = 0; i < text.count && !hdl_chat_stopped(l->run);) {
        uint64_t run = i;
        while (run < text.count && text.bytes[run] != '\\') run++;
        hdl_put(l->run, &sink, hdl_cut(text, i, run));
        i = run;
        if (i + 1 >= text.count) break;
        const uint8_t c = text.bytes[i + 1];
        const char *found = NULL;
        for (const char *p = plain; *p; p += 2)
            if ((uint8_t)*p == c) found = p + 1;
        uint32_t code;
        const size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        const size_t octal = wanted ? 0 : read_digits(text, i + 1, 3, 8, &code);
        if (c == 'N') hdl_chat_unsupported(l->run, (uint32_t)(position + i), "the escape", hdl_cut(text, i, i + 2));
        if (wanted && (read_digits(text, i + 2, wanted, 16, &code) < wanted || code > 0x10ffff ||
                       (code >= 0xd800 && code < 0xe000))) {
            hdl_chat_fail(l->run, HD_STATUS_PARSE, (uint32_t)(position + i), "a text's escape that is no character");
        } else if (wanted || octal) {
            put_code(l->run, &sink, code);
        } else if (found) {
            hdl_put(l->run, &sink, (hdl_span){ (const uint8_t *)found, 1 });
        } else if (c != '\n') {
            hdl_put(l->run, &sink, hdl_cut(text, i, i + 2));
        }
        i += 2 + wanted + (octal ? octal - 1 : 0);
    }
    return hdl_sunk(&sink);
}

static hdl_word lex_text(hdl_lexer *l, uint8_t quote) {
    const size_t from = l->at;
    size_t at = from + 1;
    while (at < l->source.count && byte_at(l, at) != quote) at += byte_at(l, at) == '\\' ? 2 : 1;
    if (at >= l->source.count) {
        hdl_chat_fail(l->run, HD_STATUS_PARSE, (uint32_t)from, "a text without an end");
        return word(HDL_WORD_END, from, hdl_text(""));
    }
    l->at = at + 1;
    return word(HDL_WORD_TEXT, from, unescaped(l, hdl_cut(l->source, from + 1, at), from + 1));
}

static hdl_word lex_number(hdl_lexer *l) {
    hdl_word w = word(HDL_WORD_NUMBER, l->at, rest(l));
    for (; is_digit(byte_at(l, l->at)) || (byte_at(l, l->at) == '_' && is_digit(byte_at(l, l->at + 1))); l->at++) {
        if (byte_at(l, l->at) == '_') continue;
        if (__builtin_mul_overflow(w.number, 10, &w.number) ||
            __builtin_add_overflow(w.number, byte_at(l, l->at) - '0', &w.number))
            hdl_chat_fail(l->run, HD_STATUS_LIMIT, w.at, "a number above 2^63");
    }
    w.text.count = l->at - w.at;
    const uint8_t next = byte_at(l, l->at);
    if (begins_name(next) || (next == '.' && is_digit(byte_at(l, l->at + 1))))
        hdl_chat_unsupported(l->run, w.at, "the form of the number", w.text);
    return w;
}

static hdl_word lex_sign(hdl_lexer *l) {
    static const char *const two[] = { "==", "!=", "<=", ">=", "//", "**" };
    hdl_word w = word(HDL_WORD_SIGN, l->at, hdl_cut(l->source, l->at, l->at + 1));
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (byte_at(l, l->at) == two[i][0] && byte_at(l, l->at + 1) == two[i][1]) w.text.count = 2;
    const uint8_t c = w.text.bytes[0];
    if (c == '(' || c == '[' || c == '{') l->open++;
    if ((c == ')' || c == ']' || c == '}') && l->open > 0) l->open--;
    if (w.text.count == 1 && (c == 0 || !strchr("+-*/%~<>=()[]{}.,:|", c))) {
        char shown[HDL_QUOTE];
        hdl_chat_fail(l->run, HD_STATUS_PARSE, w.at, "unexpected %s", hdl_quote(w.text, shown));
    }
    l->at += w.text.count;
    return w;
}

/* Whether the tag ends here: "}}", "-}}" or, of a block, also "+%}". Moves past it. */
static bool lex_end(hdl_lexer *l) {
    const bool block = l->mode == HDL_LEX_BLOCK;
    const uint8_t first = byte_at(l, l->at);
    const bool sign = first == '-' || (block && first == '+');
    const size_t at = l->at + sign;
    if (l->open || byte_at(l, at) != (block ? '%' : '}') || byte_at(l, at + 1) != '}') return false;
    pass_end(l, sign + 2u, sign ? first : 0, block);
    l->mode = HDL_LEX_DATA;
    return true;
}

hdl_word hdl_lex(hdl_lexer *l) {
    if (l->mode == HDL_LEX_DATA) {
        const hdl_word data = lex_outside(l);
        if (data.kind == HDL_WORD_DATA || l->at >= l->source.count || hdl_chat_stopped(l->run)) return data;
    }
    const size_t at = l->at;
    if (l->mode == HDL_LEX_BEGIN || l->mode == HDL_LEX_DATA) {
        if (at >= l->source.count) return word(HDL_WORD_END, at, hdl_text(""));
        const bool block = byte_at(l, at + 1) == '%';
        const uint8_t sign = byte_at(l, at + 2);
        l->mode = block ? HDL_LEX_BLOCK : HDL_LEX_PRINT;
        l->at += sign == '-' || sign == '+' ? 3 : 2;
        l->open = 0;
        return word(block ? HDL_WORD_BLOCK_BEGIN : HDL_WORD_PRINT_BEGIN, at, hdl_cut(l->source, at, at + 2));
    }
    const bool block = l->mode == HDL_LEX_BLOCK;
    skip_space(l);
    const size_t begin = l->at;
    if (begin >= l->source.count) {
        hdl_chat_fail(l->run, HD_STATUS_PARSE, (uint32_t)begin, "the template ends inside of a tag,");
        return word(HDL_WORD_END, begin, hdl_text(""));
    }
    if (lex_end(l)) return word(block ? HDL_WORD_BLOCK_END : HDL_WORD_PRINT_END, begin, hdl_text(block ? "%}" : "}}"));
    const uint8_t c = byte_at(l, begin);
    if (c == '"' || c == '\'') return lex_text(l, c);
    if (is_digit(c)) return lex_number(l);
    if (!begins_name(c)) return lex_sign(l);
    while (begins_name(byte_at(l, l->at)) || is_digit(byte_at(l, l->at))) l->at++;
    return word(HDL_WORD_NAME, begin, hdl_cut(l->source, begin, l->at));
}
