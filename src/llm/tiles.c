/* tiles.c: into which tiles a matrix of tl1 or tl2 is cut. The file does not say it: bitnet.cpp makes its kernels and
 * converts a model by the same kernel_config.ini, and its setup_env.py writes that anew for each public model. */
#include "llm/ternary.h"

static const char ini[] = "kernel_config.ini";

/* As setup_env.py of bitnet.cpp calls codegen_tl1.py and codegen_tl2.py: bitnet_b1_58-large, bitnet_b1_58-3B and
 * Llama3-8B-1.58-100B-tokens. For tl1 of the last its folder preset_kernels has others, and nothing in a file tells
 * which it was made with: none are taken for known. */
static const struct { uint32_t rows, columns; hdl_tiles tl1, tl2; } known[] = {
    { 1536, 4096, { 256, 128, 32 }, { 256, 96, 32 } },  { 1536, 1536, { 128, 64, 64 }, { 128, 192, 32 } },
    { 4096, 1536, { 256, 128, 32 }, { 256, 96, 32 } },  { 3200, 8640, { 160, 64, 32 }, { 160, 96, 32 } },
    { 3200, 3200, { 320, 128, 64 }, { 320, 96, 32 } },  { 8640, 3200, { 320, 64, 32 }, { 320, 96, 32 } },
    { 14336, 4096, { 0 }, { 256, 96, 32 } }, { 4096, 14336, { 0 }, { 128, 96, 32 } },
    { 1024, 4096, { 0 }, { 256, 96, 32 } },  { 4096, 4096, { 0 }, { 128, 96, 32 } },
};

/* ---- kernel_config.ini ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* "bm = 256": a name in small letters and a number. False where the line is none. */
static bool take_pair(const char *at, const char *end, char name[8], uint32_t *out_number) {
    uint32_t count = 0, number = 0;
    while (at < end && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')) && count < 7)
        name[count++] = (char)(*at++ | 0x20);
    name[count] = 0;
    while (at < end && is_space(*at)) at++;
    if (at == end || (*at != '=' && *at != ':')) return false;
    for (at++; at < end && is_space(*at);) at++;
    if (at == end) return false;
    for (; at < end && *at >= '0' && *at <= '9' && number < 1u << 24; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    *out_number = number;
    return at == end;
}

/* Puts a line's number into the last item. */
static bool take_line(const char *at, const char *end, hdl_tile_list *list) {
    char name[8];
    uint32_t number;
    if (list->count == 0 || !take_pair(at, end, name, &number)) return false;
    hdl_tiles *tiles = &list->items[list->count - 1].tiles;
    uint32_t *const places[] = { &list->items[list->count - 1].rows, &list->items[list->count - 1].columns,
                                 &tiles->rows, &tiles->columns, &tiles->stripe_rows };
    static const char *const names[] = { "m", "k", "bm", "bk", "bmm" };
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *places[i] = number;
        return true;
    }
    return false;
}

static hd_status read_list(const hdl_gguf *gguf, hdl_tile_list *list, hd_error *error) {
    enum { MOST = sizeof list->items / sizeof *list->items };
    char text[8192];
    uint64_t count;
    const hd_status status = hdl_gguf_beside(gguf, ini, text, sizeof text, &count, error);
    const char *at = text, *const end = text + (status ? 0 : count);
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *last = stop ? stop : end, *const next = stop ? stop + 1 : end;
        while (at < last && is_space(*at)) at++;
        while (last > at && is_space(last[-1])) last--;
        if (at < last && *at == '[') {
            if (list->count == MOST)
                return hdl_fail(error, HD_STATUS_LIMIT, "%s: it has more than %d kernels", ini, MOST);
            list->count++;
        } else if (at < last && *at != '#' && *at != ';' && !take_line(at, last, list))
            return hdl_fail(error, HD_STATUS_PARSE,
                            "%s: line %u is none that bitnet.cpp writes (m, k, bm, bk or bmm = a number, behind a "
                            "[name]); copy the file anew", ini, line);
        at = next;
    }
    list->is_read = !status;
    return status;
}

/* ---- finding them ---- */

static bool find(const hdl_gguf_tensor *tensor, const hdl_tile_list *list, hdl_tiles *out) {
    const int64_t rows = tensor->shape.dims[0], columns = tensor->shape.dims[1];
    for (uint32_t i = 0; i < list->count; i++) {
        *out = list->items[i].tiles;
        if (list->items[i].rows == rows && list->items[i].columns == columns) return true;
    }
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
        *out = tensor->type == HDL_GGUF_TYPE_TL1 ? known[i].tl1 : known[i].tl2;
        if (known[i].rows == rows && known[i].columns == columns && out->rows > 0) return true;
    }
    return false;
}

hd_status hdl_tiles_find(const hdl_gguf *gguf, const hdl_gguf_tensor *tensor, hdl_tile_list *list, hdl_tiles *out_tiles,
                         hd_error *error) {
    char quoted[HDL_QUOTE];
    const char *type = hdl_gguf_type_info(tensor->type).name;
    *out_tiles = (hdl_tiles){ 0 };
    if (tensor->type == HDL_GGUF_TYPE_I2_S) return HD_OK;
    const hd_status status = list->is_read ? HD_OK : read_list(gguf, list, error);
    if (status) return status;
    if (tensor->shape.rank != 2 || !find(tensor, list, out_tiles))
        return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                        "tensor %s is of type %s, cut into tiles that the file does not tell; put the %s of bitnet.cpp "
                        "beside it, with which it was made, or make an i2_s file", hdl_quote(tensor->name, quoted),
                        type, ini);
    if (hdl_tl_fits(tensor->type, tensor->shape, *out_tiles)) return HD_OK;
    return hdl_fail(error, HD_STATUS_UNSUPPORTED,
                    "tensor %s of type %s cannot be cut into tiles of %u x %u with stripes of %u; put the %s beside it "
                    "with which it was made", hdl_quote(tensor->name, quoted), type, out_tiles->rows,
                    out_tiles->columns, out_tiles->stripe_rows, ini);
}
