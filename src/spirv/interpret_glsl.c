/* interpret_glsl.c: instructions of GLSL.std.450, in doubles and rounded once. */
#include "spirv/interpret.h"
#include <math.h>

typedef struct call {
    hdi_interpreter *x;
    uint32_t         number;
    const hdi_spirv_type *type; /* of the result */
    const uint32_t  *words;     /* operands */
    uint32_t         count;
    uint64_t        *out;
} call;

static const hdi_spirv_type *type_of(const call *c, uint32_t i) { return hdi_interpret_type(c->x, c->words[i]); }
static const uint64_t *operand(const call *c, uint32_t i) { return hdi_interpret_id(c->x, c->words[i]); }
static double number(const call *c, uint32_t i, uint32_t k) {
    return hdi_number_float(operand(c, i)[k], type_of(c, i)->width);
}

/* ---- component by component ---- */

static double least(double a, double b) { return isnan(a) ? b : isnan(b) ? a : a < b ? a : b; }
static double most(double a, double b) { return isnan(a) ? b : isnan(b) ? a : a > b ? a : b; }

static double smooth(double low, double high, double a) {
    const double t = least(most((a - low) / (high - low), 0), 1);
    return t * t * (3 - 2 * t);
}

static double of_one(uint32_t number, double a) {
    const double pi = 3.14159265358979323846;
    switch (number) {
    case 1: case 2: return rint(a);
    case 3: return trunc(a);
    case 4: return fabs(a);
    case 6: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case 8: return floor(a);
    case 9: return ceil(a);
    case 10: return a - floor(a);
    case 11: return a * pi / 180;
    case 12: return a * 180 / pi;
    case 13: return sin(a);
    case 14: return cos(a);
    case 15: return tan(a);
    case 16: return asin(a);
    case 17: return acos(a);
    case 18: return atan(a);
    case 19: return sinh(a);
    case 20: return cosh(a);
    case 21: return tanh(a);
    case 22: return asinh(a);
    case 23: return acosh(a);
    case 24: return atanh(a);
    case 27: return exp(a);
    case 28: return log(a);
    case 29: return exp2(a);
    case 30: return log2(a);
    case 31: return sqrt(a);
    default: return 1 / sqrt(a);
    }
}

static double of_more(uint32_t number, double a, double b, double c) {
    switch (number) {
    case 25: return atan2(a, b);
    case 26: return pow(a, b);
    case 37: case 79: return least(a, b);
    case 40: case 80: return most(a, b);
    case 43: case 81: return least(most(a, b), c);
    case 46: return a * (1 - c) + b * c;
    case 48: return b < a ? 0 : 1;
    case 49: return smooth(a, b, c);
    default: return fma(a, b, c);
    }
}

/* A rounding of a * b + c in the width itself, as a double might be rounded twice. */
static uint64_t multiply_add(double a, double b, double c, uint32_t width) {
    return width == 32 ? hdi_number_bits((double)fmaf((float)a, (float)b, (float)c), 32)
                       : hdi_number_bits(fma(a, b, c), width);
}

static bool floats(const call *c) {
    const uint32_t n = c->number, width = c->type->width;
    const bool one = n <= 32 && n != 5 && n != 7 && n != 25 && n != 26;
    const bool more =
        n == 25 || n == 26 || n == 37 || n == 40 || n == 43 || n == 46 || (n >= 48 && n <= 50) || (n >= 79 && n <= 81);
    for (uint32_t k = 0; k < c->type->count && (one || more); k++) {
        const double a = number(c, 0, k), b = c->count > 1 ? number(c, 1, k) : 0,
                     d = c->count > 2 ? number(c, 2, k) : 0;
        c->out[k] =
            n == 50 ? multiply_add(a, b, d, width) : hdi_number_bits(one ? of_one(n, a) : of_more(n, a, b, d), width);
    }
    return one || more;
}

static uint64_t one_integer(const call *c, uint32_t k) {
    const uint32_t width = c->type->width;
    const uint64_t a = operand(c, 0)[k], b = c->count > 1 ? operand(c, 1)[k] : 0,
                   high = c->count > 2 ? operand(c, 2)[k] : 0;
    const int64_t x = hdi_number_signed(a, width), y = hdi_number_signed(b, width), z = hdi_number_signed(high, width);
    switch (c->number) {
    case 5: return x < 0 ? (0 - a) & hdi_number_mask(width) : a;
    case 7: return x > 0 ? 1 : x < 0 ? hdi_number_mask(width) : 0;
    case 38: return a < b ? a : b;
    case 39: return x < y ? a : b;
    case 41: return a > b ? a : b;
    case 42: return x > y ? a : b;
    case 44: return a < b ? b : a > high ? high : a;
    case 45: return x < y ? b : x > z ? high : a;
    case 73: return (uint32_t)a ? (uint32_t)__builtin_ctz((uint32_t)a) : UINT32_MAX;
    default: { /* the highest bit that is not the sign */
        const uint32_t bits = c->number == 74 && x < 0 ? ~(uint32_t)a : (uint32_t)a;
        return bits ? 31u - (uint32_t)__builtin_clz(bits) : UINT32_MAX;
    }
    }
}

/* ---- packing ---- */

typedef struct packing { uint32_t number, undoing, count, bits; double largest; bool is_signed; } packing;
static const packing packings[] = { { 54, 63, 4, 8, 127, true },     { 55, 64, 4, 8, 255, false },
                                    { 56, 60, 2, 16, 32767, true },  { 57, 61, 2, 16, 65535, false },
                                    { 58, 62, 2, 16, 0, false },     { 59, 65, 2, 32, 0, false } };

static bool pack(const call *c) {
    for (size_t i = 0; i < HDI_COUNT(packings); i++) {
        const packing *p = &packings[i];
        if (c->number != p->number && c->number != p->undoing) continue;
        const uint64_t mask = hdi_number_mask(p->bits);
        uint64_t word = 0;
        for (uint32_t k = 0; k < p->count && c->number == p->number; k++) {
            uint64_t part = operand(c, 0)[k];
            if (p->largest != 0)
                part = (uint64_t)(int64_t)rint(least(most(number(c, 0, k), p->is_signed ? -1 : 0), 1) * p->largest);
            else if (p->bits == 16) part = hdi_number_bits(number(c, 0, k), 16);
            word |= (part & mask) << k * p->bits;
        }
        if (c->number == p->number) *c->out = word;
        for (uint32_t k = 0; k < p->count && c->number == p->undoing; k++) {
            const uint64_t part = operand(c, 0)[0] >> k * p->bits & mask;
            const double value = p->is_signed ? (double)hdi_number_signed(part, p->bits) : (double)part;
            if (p->bits == 32) c->out[k] = part;
            else if (p->largest == 0) c->out[k] = hdi_number_bits(hdi_number_float(part, 16), 32);
            else c->out[k] = hdi_number_bits(most(value / p->largest, -1), 32);
        }
        return true;
    }
    return false;
}

/* ---- whole vectors and matrices ---- */

static double dot(const call *c, uint32_t i, uint32_t k) {
    double sum = 0;
    for (uint32_t n = 0; n < type_of(c, i)->count; n++) sum += number(c, i, n) * number(c, k, n);
    return sum;
}

static void put(const call *c, uint32_t k, double value) { c->out[k] = hdi_number_bits(value, c->type->width); }

static void cross(const call *c) {
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t i = (k + 1) % 3, j = (k + 2) % 3;
        put(c, k, number(c, 0, i) * number(c, 1, j) - number(c, 0, j) * number(c, 1, i));
    }
}

static void refract(const call *c) {
    const double along = dot(c, 1, 0), ratio = number(c, 2, 0), k = 1 - ratio * ratio * (1 - along * along);
    for (uint32_t n = 0; n < c->type->count; n++)
        put(c, n, k < 0 ? 0 : ratio * number(c, 0, n) - (ratio * along + sqrt(k)) * number(c, 1, n));
}

static void distance(const call *c) {
    double sum = 0;
    for (uint32_t k = 0; k < type_of(c, 0)->count; k++) {
        const double d = number(c, 0, k) - (c->count > 1 ? number(c, 1, k) : 0);
        sum += d * d;
    }
    put(c, 0, sqrt(sum));
}

/* The determinant of the square matrix, by elimination with the largest pivot; its inverse is left in `inverse`. */
static double invert(uint32_t size, double a[4][4], double inverse[4][4]) {
    double determinant = 1;
    for (uint32_t i = 0; i < size; i++)
        for (uint32_t k = 0; k < size; k++) inverse[i][k] = i == k;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t pivot = i;
        for (uint32_t r = i; r < size; r++) pivot = fabs(a[r][i]) > fabs(a[pivot][i]) ? r : pivot;
        if (pivot != i) determinant = -determinant;
        const double by = a[pivot][i];
        determinant *= by;
        for (uint32_t k = 0; k < size; k++) {
            const double swapped = a[i][k], other = inverse[i][k];
            a[i][k] = a[pivot][k] / by;
            inverse[i][k] = inverse[pivot][k] / by;
            if (pivot != i) a[pivot][k] = swapped, inverse[pivot][k] = other;
        }
        for (uint32_t r = 0; r < size; r++) {
            const double times = a[r][i];
            for (uint32_t k = 0; k < size && r != i; k++)
                a[r][k] -= times * a[i][k], inverse[r][k] -= times * inverse[i][k];
        }
    }
    return determinant;
}

static void square(const call *c) {
    const hdi_spirv_type *column = hdi_spirv_type_at(c->x->m, type_of(c, 0)->element);
    double a[4][4], inverse[4][4];
    const uint32_t size = column->count;
    for (uint32_t k = 0; k < size * size; k++)
        a[k / size][k % size] = hdi_number_float(operand(c, 0)[k], column->width);
    const double determinant = invert(size, a, inverse);
    if (c->number == 33) put(c, 0, determinant);
    for (uint32_t k = 0; k < size * size && c->number == 34; k++)
        c->out[k] = hdi_number_bits(inverse[k / size][k % size], column->width);
}

/* Two results: in a struct, or the second through a pointer. */
static void two_parts(const call *c) {
    const bool exponent = c->number == 51 || c->number == 52, pointer = c->number == 35 || c->number == 51;
    const hdi_spirv_type *type = type_of(c, 0);
    uint64_t second[4] = { 0 }, *to = pointer ? second : c->out + type->count;
    for (uint32_t k = 0; k < type->count; k++) {
        int power = 0;
        double whole = 0, fraction = number(c, 0, k);
        if (exponent) fraction = frexp(fraction, &power);
        else fraction = modf(fraction, &whole);
        c->out[k] = hdi_number_bits(fraction, type->width);
        to[k] = exponent ? (uint32_t)power : hdi_number_bits(whole, type->width);
    }
    if (pointer) hdi_interpret_store(c->x, operand(c, 1), type_of(c, 1)->element, second);
}

void hdi_interpret_glsl(hdi_interpreter *x, uint32_t type_def, const uint32_t *words, uint32_t count, uint64_t *out) {
    const call c = { x, words[0], hdi_spirv_type_at(x->m, type_def), words + 1, count - 1, out };
    const uint32_t n = c.number;
    if (n == 33 || n == 34) { /* before the others, whose results are numbers */
        square(&c);
        return;
    }
    if ((n == 35 || n == 36 || n == 51 || n == 52)) {
        two_parts(&c);
        return;
    }
    if (pack(&c) || floats(&c)) return;
    const double length = n == 69 ? sqrt(dot(&c, 0, 0)) : 0, along = n == 71 ? dot(&c, 1, 0) : 0;
    switch (n) {
    case 66: case 67: distance(&c); break;
    case 68: cross(&c); break;
    case 72: refract(&c); break;
    default:
        for (uint32_t k = 0; k < c.type->count; k++) {
            if (n == 53)
                put(&c, k, ldexp(number(&c, 0, k), (int)hdi_number_signed(operand(&c, 1)[k], type_of(&c, 1)->width)));
            else if (n == 69) put(&c, k, number(&c, 0, k) / length);
            else if (n == 70) put(&c, k, dot(&c, 2, 1) < 0 ? number(&c, 0, k) : -number(&c, 0, k));
            else if (n == 71) put(&c, k, number(&c, 0, k) - 2 * along * number(&c, 1, k));
            else out[k] = one_integer(&c, k);
        }
        break;
    }
}
