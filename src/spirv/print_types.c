/* print_types.c: the alphabet of a printed kernel: text, names and declarations of types, literals, parts of values. */
#include "spirv/print.h"

/* ---- text ---- */

static bool stop(hdi_spirv_printer *p) {
    p->stop = true;
    return false;
}

static bool make_room(hdi_spirv_printer *p, size_t count) {
    enum { FIRST_BYTES = 16384 };
    hdi_text *text = p->text;
    if (text->count + count >= HDI_SPIRV_MAX_TEXT) {
        hdi_spirv_beyond(p->m, HDI_SPIRV_NONE, "the kernel's text is longer than %u bytes", HDI_SPIRV_MAX_TEXT);
    } else if (!hdi_grow(text->allocator, &text->bytes, &text->capacity,
                         HDI_MAX(text->count + count + 1, (size_t)FIRST_BYTES), 1)) {
        text->failed = true;
        hdi_spirv_no_memory(p->m);
    } else {
        return true;
    }
    return stop(p);
}

void hdi_spirv_add(hdi_spirv_printer *p, const char *bytes, size_t count) {
    hdi_text *text = p->text;
    if (p->stop || text->failed || (text->count + count >= text->capacity && !make_room(p, count))) return;
    memcpy(text->bytes + text->count, bytes, count);
    text->count += count;
    text->bytes[text->count] = 0;
}

/* Behind a letter, unless that is 0. */
static void add_decimal(hdi_spirv_printer *p, char letter, uint64_t number) {
    char digits[21];
    size_t at = sizeof digits;
    for (; number > UINT32_MAX; number /= 10) digits[--at] = (char)('0' + number % 10);
    uint32_t rest = (uint32_t)number; /* divided faster */
    do digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (letter) digits[--at] = letter;
    hdi_spirv_add(p, digits + at, sizeof digits - at);
}

static void add_hexadecimal(hdi_spirv_printer *p, uint64_t number) {
    char digits[16];
    size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    hdi_spirv_add(p, digits + at, sizeof digits - at);
}

static void put_value(hdi_spirv_printer *p, uint32_t def);
static void put_type(hdi_spirv_printer *p, uint32_t type_def);

void hdi_spirv_put(hdi_spirv_printer *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    for (const char *next; *format; format = next) {
        for (next = format; *next && *next != '%';) next++;
        hdi_spirv_add(p, format, (size_t)(next - format));
        if (!*next) continue;
        char letter;
        switch (next[1]) {
        case 's': { const char *text = va_arg(args, const char *); hdi_spirv_add(p, text, strlen(text)); break; }
        case 'u': add_decimal(p, 0, va_arg(args, uint32_t)); break;
        case 'U': add_decimal(p, 0, va_arg(args, uint64_t)); break;
        case 'x': add_hexadecimal(p, va_arg(args, uint64_t)); break;
        case 'v': put_value(p, va_arg(args, uint32_t)); break;
        case 't': put_type(p, va_arg(args, uint32_t)); break;
        case 'n':
            if (!hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "make_");
            put_type(p, va_arg(args, uint32_t));
            break;
        case 'c': letter = (char)va_arg(args, int); hdi_spirv_add(p, &letter, 1); break;
        default: hdi_spirv_add(p, "%", 1); break;
        }
        next += 2;
    }
    va_end(args);
}

void hdi_spirv_line(hdi_spirv_printer *p) {
    static const char blanks[] = "                                ";
    for (uint32_t left = 2 * p->indent; left && !p->stop;) {
        uint32_t now = HDI_MIN(left, (uint32_t)sizeof blanks - 1);
        hdi_spirv_add(p, blanks, now);
        left -= now;
    }
}

/* ---- names ---- */

void hdi_spirv_put_scalar_name(hdi_spirv_printer *p, const hdi_spirv_type *type, bool as_signed) {
    if (type->kind == 'b') {
        hdi_spirv_put(p, "bool");
        return;
    }
    if (type->kind == 'f' && type->width == 16) hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF);
    if (hdi_spirv_is_wgsl(p)) { /* narrow numbers are words; halves among them */
        if (type->width == 64)
            stop(p),
                hdi_spirv_unsupported(p->m, HDI_SPIRV_NONE, "numbers of 64 bits, which WGSL does not have");
        hdi_spirv_put(p, as_signed ? "i32" : type->kind == 'f' && type->width == 32 ? "f32" : "u32");
        return;
    }
    if (type->width == 64 && type->kind == 'f') hdi_spirv_use_part(p, HDI_SPIRV_PART_DOUBLE);
    add_decimal(p, type->kind == 'f' ? 'f' : as_signed ? 'i' : 'u', type->width);
}

/* Vector types by number: kind, width, count. */
enum { VECTORS = 3 * 4 * 3 };
static uint32_t vector_number(const hdi_spirv_type *type) {
    uint32_t kind = type->kind == 'f' ? 0 : type->kind == 'i' ? 1 : 2;
    uint32_t width = type->width == 64 ? 3 : type->width == 32 ? 2 : type->width == 16 ? 1 : 0;
    return (kind * 4 + width) * 3 + type->count - 2;
}

static void put_type(hdi_spirv_printer *p, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    if (hdi_spirv_is_vector(type)) {
        p->vectors[vector_number(type)] = 1;
        if (type->kind == 'b') hdi_spirv_put(p, "b1");
        else hdi_spirv_put_scalar_name(p, type, false);
        hdi_spirv_put(p, "x%u", type->count);
    } else if (hdi_spirv_is_plain(type)) {
        hdi_spirv_put_scalar_name(p, type, false);
    } else if (type->kind == 'v') {
        hdi_spirv_put(p, "void");
    } else {
        p->declared[p->m->defs[type->alike].detail] = true;
        hdi_spirv_put(p, "t%u", type->alike);
    }
}

/* ---- literals and values ---- */

/* A finite float without loss, in no locale: 0x1.8p+3f. */
static void put_float(hdi_spirv_printer *p, uint64_t bits, uint32_t width) {
    uint32_t fraction_bits = width == 64 ? 52 : 23;
    uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
    int32_t bias = width == 64 ? 1023 : 127, exponent = (int32_t)(bits >> fraction_bits & (width == 64 ? 0x7FF : 0xFF));
    bool negative = bits >> (width - 1) & 1;
    if (exponent == 2 * bias + 1 || (exponent == 0 && fraction)) {
        if (width == 64) hdi_spirv_put(p, "bits_f64(U64(0x%x))", bits);
        else hdi_spirv_put(p, "bits_f32(0x%xu)", bits);
        return;
    }
    if (negative) hdi_spirv_put(p, "(-");
    if (exponent == 0) {
        hdi_spirv_put(p, width == 64 ? "0.0" : "0.0f");
    } else {
        int32_t power = exponent - bias;
        hdi_spirv_put(p, "0x1.");
        fraction <<= width == 64 ? 0 : 1; /* whole hexadecimal digits */
        uint32_t digits = width == 64 ? 13 : 6;
        for (uint32_t left = digits; left-- > 0 && (fraction || left + 1 == digits);) {
            hdi_spirv_put(p, "%x", fraction >> (4 * left) & 15);
            fraction &= (UINT64_C(1) << (4 * left)) - 1;
        }
        hdi_spirv_put(p, "p%c%u%s", power < 0 ? '-' : '+', (uint32_t)(power < 0 ? -power : power),
                      width == 64 ? "" : "f");
    }
    if (negative) hdi_spirv_put(p, ")");
}

static void put_literal(hdi_spirv_printer *p, const hdi_spirv_type *type, uint64_t bits) {
    if (type->kind == 'b') {
        hdi_spirv_put(p, bits ? "true" : "false");
    } else if (type->kind == 'f' && type->width != 16) {
        if (type->width == 64) hdi_spirv_use_part(p, HDI_SPIRV_PART_DOUBLE);
        put_float(p, bits, type->width);
    } else if (type->width == 32) {
        hdi_spirv_put(p, "%Uu", bits);
    } else if (type->width == 64) {
        if (hdi_spirv_is_wgsl(p)) hdi_spirv_put_scalar_name(p, type, false); /* which refuses it */
        hdi_spirv_put(p, "U64(%U)", bits);
    } else if (hdi_spirv_is_wgsl(p)) {
        hdi_spirv_put(p, "%Uu", bits);
    } else { /* halves are kept as their bits */
        hdi_spirv_put(p, "((");
        hdi_spirv_put_scalar_name(p, type, false);
        hdi_spirv_put(p, ")%Uu)", bits);
    }
}

/* Undef is zero too. */
static bool is_zero(uint32_t opcode) { return opcode == SpvOpUndef || opcode == SpvOpConstantNull; }
static bool is_composite(uint32_t opcode) {
    return opcode == SpvOpConstantComposite || opcode == SpvOpSpecConstantComposite;
}

void hdi_spirv_put_zero(hdi_spirv_printer *p, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    if (hdi_spirv_is_vector(type)) {
        hdi_spirv_put(p, "%n(", type_def);
        for (uint32_t i = 0; i < type->count; i++) {
            if (i) hdi_spirv_put(p, ", ");
            put_literal(p, hdi_spirv_type_at(p->m, type->element), 0);
        }
        hdi_spirv_put(p, ")");
    } else if (hdi_spirv_is_plain(type)) {
        put_literal(p, type, 0);
    } else {
        hdi_spirv_put(p, hdi_spirv_is_wgsl(p) ? "%t()" : "ZERO(%t)", type_def);
    }
}

void hdi_spirv_put_component(hdi_spirv_printer *p, uint32_t def, uint32_t i) {
    def = p->same[def];
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    uint32_t opcode = hdi_spirv_def_opcode(p->m, def);
    if (!hdi_spirv_is_vector(type)) put_value(p, def);
    else if (is_zero(opcode)) hdi_spirv_put_zero(p, type->element);
    else if (is_composite(opcode)) put_value(p, hdi_spirv_find(p->m, hdi_spirv_def_words(p->m, def)[3 + i]));
    else hdi_spirv_put(p, "v%u.%c", def, "xyzw"[i]);
}

static void put_value(hdi_spirv_printer *p, uint32_t def) {
    def = p->same[def];
    const hdi_spirv_type *type = hdi_spirv_type_of(p->m, def);
    uint32_t opcode = hdi_spirv_def_opcode(p->m, def);
    bool scalar = hdi_spirv_is_plain(type) && type->count == 1;
    if (p->facts[def] & HDI_SPIRV_KNOWN) {
        put_literal(p, type, p->bits[def]);
    } else if (is_zero(opcode) && (scalar || hdi_spirv_is_vector(type))) {
        hdi_spirv_put_zero(p, p->m->defs[def].type);
    } else if (is_composite(opcode) && hdi_spirv_is_vector(type)) {
        hdi_spirv_put(p, "%n(", p->m->defs[def].type);
        for (uint32_t i = 0; i < type->count; i++) {
            if (i) hdi_spirv_put(p, ", ");
            hdi_spirv_put_component(p, def, i);
        }
        hdi_spirv_put(p, ")");
    } else {
        add_decimal(p, 'v', def);
    }
}

/* ---- parts ---- */

uint32_t hdi_spirv_part_type(const hdi_spirv_module *m, uint32_t type_def, uint64_t index) {
    const hdi_spirv_type *type = hdi_spirv_type_at(m, type_def);
    return type->kind == 's' ? hdi_spirv_find(m, hdi_spirv_def_words(m, type_def)[2 + index]) : type->element;
}

void hdi_spirv_put_part(hdi_spirv_printer *p, uint32_t type_def, uint32_t index) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    if (type->kind == 's') hdi_spirv_put(p, ".m%u", index);
    else if (type->kind == 'm') hdi_spirv_put(p, ".c[%u]", index);
    else if (hdi_spirv_is_vector(type)) hdi_spirv_put(p, ".%c", "xyzw"[index & 3]);
    else hdi_spirv_put(p, ".e[%u]", index);
}

void hdi_spirv_open_value(hdi_spirv_printer *p, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    const bool array = type->kind == 'a' || type->kind == 'm';
    if (hdi_spirv_is_vector(type)) hdi_spirv_put(p, "%n(", type_def);
    else if (!hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, array ? "(NEW(%t){{" : "(NEW(%t){", type_def);
    else if (array) hdi_spirv_put(p, "%t(array<%t, %u>(", type_def, type->element, type->count);
    else hdi_spirv_put(p, "%t(", type_def);
}

void hdi_spirv_close_value(hdi_spirv_printer *p, uint32_t type_def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, type_def);
    const bool array = type->kind == 'a' || type->kind == 'm', wgsl = hdi_spirv_is_wgsl(p);
    hdi_spirv_put(p, hdi_spirv_is_vector(type) ? ")" : array ? wgsl ? "))" : "}})" : wgsl ? ")" : "})");
}

/* ---- declarations ---- */

void hdi_spirv_put_declared(hdi_spirv_printer *p, uint32_t type_def, char letter, uint32_t number) {
    if (hdi_spirv_is_wgsl(p)) hdi_spirv_put(p, "var %c%u: %t", letter, number, type_def);
    else hdi_spirv_put(p, "%t %c%u", type_def, letter, number);
}

static void put_vector(hdi_spirv_printer *p, uint32_t number) {
    static const char *const scalars[3][4] = { { "", "f16", "f32", "f64" },
                                               { "u8", "u16", "u32", "u64" },
                                               { "b1", "", "", "" } };
    static const char *const names[] = { "a, b", "a, b, c", "a, b, c, d" }, *const members[] = { "x, y", "x, y, z",
                                                                                                 "x, y, z, w" };
    uint32_t count = number % 3 + 2, width = number / 3 % 4, kind = number / 12;
    const char *scalar = scalars[kind][width];
    const char *own =
        kind == 2 || count == 3 ? NULL : p->spelling->scalar[kind == 0 ? width == 1 ? 1 : width + 2 : width];
    if (own) {
        hdi_spirv_put(p, "typedef %s%u %sx%u, %sx%u_any MAY_ALIAS;\n#define make_%sx%u(%s) ((%s%u)(%s))\n", own, count,
                      scalar, count, scalar,
                      count, scalar, count, names[count - 2], own, count, names[count - 2]);
        return;
    }
    hdi_spirv_put(p, "typedef struct MAY_ALIAS ");
    if (kind != 2 && count != 3) hdi_spirv_put(p, p->spelling->aligned, (1u << width) * count);
    hdi_spirv_put(p, "{ %s %s; } %sx%u, %sx%u_any;\n#define make_%sx%u(%s) (NEW(%sx%u){%s})\n",
                  kind == 2 ? "bool" : scalar, members[count - 2], scalar, count, scalar, count, scalar, count,
                  names[count - 2], scalar, count, names[count - 2]);
}

static void put_definition(hdi_spirv_printer *p, uint32_t def) {
    const hdi_spirv_type *type = hdi_spirv_type_at(p->m, def);
    if (type->kind == 'c') {
        hdi_spirv_put_matrix_type(p, def);
        return;
    }
    const bool wgsl = hdi_spirv_is_wgsl(p);
    if (wgsl) hdi_spirv_put(p, "struct t%u { ", def);
    else hdi_spirv_put(p, "typedef struct { ");
    if (wgsl && strchr("am", type->kind))
        hdi_spirv_put(p, "%c: array<%t, %u>", type->kind == 'a' ? 'e' : 'c', type->element, type->count);
    for (uint32_t i = 0; wgsl && type->kind == 's' && i < type->count; i++)
        hdi_spirv_put(p, "m%u: %t, ", i, hdi_spirv_part_type(p->m, def, i));
    if (wgsl) {
        hdi_spirv_put(p, type->kind == 's' && type->count == 0 ? "nothing: u32 }\n" : " }\n");
        return;
    }
    if (type->kind == 'a') hdi_spirv_put(p, "%t e[%u]; ", type->element, type->count);
    else if (type->kind == 'm') hdi_spirv_put(p, "%t c[%u]; ", type->element, type->count);
    for (uint32_t i = 0; type->kind == 's' && i < type->count; i++)
        hdi_spirv_put(p, "%t m%u; ", hdi_spirv_part_type(p->m, def, i), i);
    if (type->kind == 's' && type->count == 0) hdi_spirv_put(p, "u32 nothing; ");
    hdi_spirv_put(p, "} t%u;\n", def);
}

void hdi_spirv_find_types(hdi_spirv_printer *p) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t def = m->def_count; def-- > 1;) {
        const hdi_spirv_type *type = hdi_spirv_type_at(m, def);
        if (!type->kind || type->alike != def || !p->declared[m->defs[def].detail]) continue;
        uint32_t parts = type->kind == 's' ? type->count : 1;
        for (uint32_t i = 0; i < parts; i++) {
            uint32_t part = hdi_spirv_part_type(m, def, i);
            const hdi_spirv_type *part_type = hdi_spirv_type_at(m, part);
            if (!part_type->kind) continue;
            if (hdi_spirv_is_vector(part_type)) p->vectors[vector_number(part_type)] = 1;
            else if (strchr("masc", part_type->kind)) p->declared[m->defs[part_type->alike].detail] = true;
            if (part_type->kind == 'f' && part_type->width == 64) hdi_spirv_use_part(p, HDI_SPIRV_PART_DOUBLE);
            if (part_type->kind == 'f' && part_type->width == 16) hdi_spirv_use_part(p, HDI_SPIRV_PART_HALF);
        }
    }
}

void hdi_spirv_put_types(hdi_spirv_printer *p) {
    const hdi_spirv_module *m = p->m;
    for (uint32_t i = 0; i < VECTORS && !hdi_spirv_is_wgsl(p); i++)
        if (p->vectors[i]) put_vector(p, i);
    for (uint32_t def = 1; def < m->def_count; def++) {
        const hdi_spirv_type *type = hdi_spirv_type_at(m, def);
        if (type->kind && type->alike == def && p->declared[m->defs[def].detail]) put_definition(p, def);
    }
}
