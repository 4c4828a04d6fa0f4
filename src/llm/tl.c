/* tl.c: unpacks TL1 and TL2, as utils/convert-hf-to-gguf-bitnet.py of bitnet.cpp packs them. A matrix is cut into tiles
 * of rows and columns, which follow each other row of tiles by row of tiles; a tile into stripes of rows; a stripe into
 * small blocks, from left to right. A block has a byte for so many columns of a row that two codes of 4 bits hold, the
 * first ones in the upper half. A code is a number of digits of base 3, each a value + 1.
 *
 * TL1  blocks of 256 / s columns, where s are the rows of a stripe; codes of two values. Bytes of 16 rows lie together.
 * TL2  as many columns as whole tiles have: blocks of 32 rows and 6 columns, codes of three values less 13, without
 *      their sign. The signs follow behind all codes: of four blocks 16 words of 16 bits, from the highest on for each
 *      code one of the word's row and one of the row 16 below. The columns beyond follow behind these: blocks of 32
 *      rows and 4 columns in tiles of 32, codes of two values. Of 32 rows of codes the second and third eight have
 *      changed places. */
#include "llm/ternary.h"

enum { TL1_BLOCK = 256, STRIPE = 32, THREES = 6, TWOS = 4, SIGNED = 4 * THREES, REST_TILE = 32 };

/* Blocks of zeros that values come into. */
typedef struct target { uint8_t *at; uint64_t columns; bool is_tq2_0; } target;

static void clear(const target *to, uint8_t *end) {
    const uint32_t step = to->is_tq2_0 ? HDL_TQ2_0_BYTES : HDL_Q4_0_BYTES, one_at = to->is_tq2_0 ? HDL_TQ2_0_CODES : 0;
    memset(to->at, 0, (size_t)(end - to->at));
    for (uint8_t *at = to->at; at < end; at += step) memcpy(at + one_at, hdl_ternary_one, sizeof hdl_ternary_one);
}

/* Puts a value + 1 into its place, where nothing was put yet. */
static void put(const target *to, uint64_t row, uint64_t column, uint32_t digit) {
    const uint64_t number = row * to->columns + column;
    if (to->is_tq2_0) {
        const uint32_t e = number % 256;
        to->at[number / 256 * HDL_TQ2_0_BYTES + e / 128 * 32 + e % 32] |= (uint8_t)(digit << (e % 128 / 32 * 2));
    } else {
        const uint32_t e = number % 32;
        to->at[number / 32 * HDL_Q4_0_BYTES + 2 + e % 16] |= (uint8_t)((digit + 7) << (e / 16 * 4));
    }
}

static void put_two(const target *to, uint64_t row, uint64_t column, uint32_t code) {
    put(to, row, column, code / 3);
    put(to, row, column + 1, code % 3);
}

/* The first row and column of block `number`, where so many columns are cut into these tiles and blocks. */
typedef struct corner { uint64_t row, column; } corner;
static corner corner_of(uint64_t number, uint64_t columns, hdl_tiles tiles, uint32_t block_columns) {
    const uint64_t across = tiles.columns / block_columns, stripes = tiles.rows / tiles.stripe_rows,
                   in_row = number / across / stripes;
    return (corner){ in_row / (columns / tiles.columns) * tiles.rows + number / across % stripes * tiles.stripe_rows,
                     in_row % (columns / tiles.columns) * tiles.columns + number % across * block_columns };
}

static bool unpack_tl1(const hdl_ternary *from, const target *to) {
    const uint32_t block_columns = TL1_BLOCK / from->tiles.stripe_rows, bytes = TL1_BLOCK / 4;
    const uint64_t blocks = hd_shape_elements(from->shape) / TL1_BLOCK;
    bool good = true;
    for (uint64_t number = 0; number < blocks; number++) {
        const corner at = corner_of(number, to->columns, from->tiles, block_columns);
        for (uint32_t i = 0; i < bytes; i++) {
            const uint32_t byte = from->data.bytes[number * bytes + i], part = i / 16 % (block_columns / 4);
            const uint64_t row = at.row + i / 16 / (block_columns / 4) * 16 + i % 16, column = at.column + 4 * part;
            good = good && byte >> 4 < 9 && (byte & 15u) < 9;
            put_two(to, row, column, byte >> 4);
            put_two(to, row, column + 2, byte & 15u);
        }
    }
    return good;
}

/* The row of a stripe that a byte of a block of TL2 is of. */
static uint32_t tl2_row(uint32_t byte) {
    const uint32_t eight = byte / 8;
    return (eight == 1 ? 2 : eight == 2 ? 1 : eight) * 8 + byte % 8;
}

static void put_three(const target *to, uint64_t row, uint64_t column, uint32_t code, bool is_negative) {
    const uint32_t digits = is_negative ? 13 - code : 13 + code;
    put(to, row, column, digits / 9);
    put(to, row, column + 1, digits / 3 % 3);
    put(to, row, column + 2, digits % 3);
}

/* `columns` are in whole tiles. */
static bool unpack_threes(const hdl_ternary *from, uint64_t columns, const target *to) {
    const uint64_t blocks = (uint64_t)from->shape.dims[0] * columns / (STRIPE * THREES);
    const uint8_t *signs = from->data.bytes + blocks * STRIPE;
    bool good = true;
    for (uint64_t number = 0; number < blocks; number++) {
        const corner at = corner_of(number, columns, from->tiles, THREES);
        for (uint32_t i = 0; i < STRIPE; i++) {
            const uint32_t byte = from->data.bytes[number * STRIPE + i], row = tl2_row(i),
                           first = 15 - (uint32_t)(number % 4) * 4 - row / (STRIPE / 2);
            const uint8_t *word = signs + number / 4 * STRIPE + row % (STRIPE / 2) * 2;
            const uint32_t bits = (uint32_t)word[0] | (uint32_t)word[1] << 8;
            good = good && byte >> 4 < 14 && (byte & 15u) < 14;
            put_three(to, at.row + row, at.column, byte >> 4, bits >> first & 1u);
            put_three(to, at.row + row, at.column + 3, byte & 15u, bits >> (first - 2) & 1u);
        }
    }
    return good;
}

/* What is behind the `first` columns. */
static bool unpack_rest(const hdl_ternary *from, uint64_t first, const target *to) {
    const uint64_t rows = (uint64_t)from->shape.dims[0], columns = to->columns - first;
    const uint64_t blocks = rows * columns / (STRIPE * TWOS);
    const uint8_t *codes = from->data.bytes + rows * first / 24 * 5;
    const hdl_tiles tiles = { from->tiles.rows, REST_TILE, STRIPE };
    bool good = true;
    for (uint64_t number = 0; number < blocks; number++) {
        const corner at = corner_of(number, columns, tiles, TWOS);
        for (uint32_t i = 0; i < STRIPE; i++) {
            const uint32_t byte = codes[number * STRIPE + i];
            const uint64_t row = at.row + tl2_row(i), column = first + at.column;
            good = good && byte >> 4 < 9 && (byte & 15u) < 9;
            put_two(to, row, column, byte >> 4);
            put_two(to, row, column + 2, byte & 15u);
        }
    }
    return good;
}

bool hdl_tl_fits(uint32_t type, hd_shape shape, hdl_tiles tiles) {
    const uint32_t stripe = tiles.stripe_rows;
    if (shape.rank != 2 || shape.dims[0] < 1 || shape.dims[1] < 1) return false;
    if (tiles.rows == 0 || tiles.columns == 0) return false;
    if (stripe != STRIPE && (stripe != 2 * STRIPE || type != HDL_GGUF_TYPE_TL1)) return false;
    if (shape.dims[0] % tiles.rows || tiles.rows % stripe) return false;
    if (type == HDL_GGUF_TYPE_TL1)
        return shape.dims[1] % tiles.columns == 0 && tiles.columns % (TL1_BLOCK / stripe) == 0;
    const uint64_t rows = (uint64_t)shape.dims[0], rest = (uint64_t)shape.dims[1] % tiles.columns,
                   room = hdl_gguf_tensor_bytes(type, shape), tail = hdl_gguf_type_info(type).tail_bytes;
    if (room == 0 || tiles.columns % SIGNED || rest % REST_TILE) return false;
    return rows * ((uint64_t)shape.dims[1] - rest) / 24 * 5 + rows * rest / 4 <= room - tail;
}

bool hdl_tl_unpack(const hdl_ternary *from, uint8_t *out_blocks) {
    const hd_dtype dtype = hdl_ternary_dtype(from->shape);
    const uint64_t columns = (uint64_t)from->shape.dims[1];
    const target to = { out_blocks, columns, dtype == HD_TQ2_0 };
    clear(&to, out_blocks + hd_tensor_bytes(dtype, from->shape));
    if (from->type == HDL_GGUF_TYPE_TL1) return unpack_tl1(from, &to);
    const uint64_t threes = columns - columns % from->tiles.columns;
    const bool good = unpack_threes(from, threes, &to);
    return unpack_rest(from, threes, &to) && good;
}
