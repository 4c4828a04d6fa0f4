/* shared.c: what lies on devices for those who only read it: one list for the process, behind one lock, which is held
 * for steps along the list and never while bytes are read or memory is given. */
#include "llm/shared.h"
#include <pthread.h>

enum { PIECE_BYTES = 16 << 20, FIRST_BYTES = 64 << 10 }; /* read at once to compare, and at first */

struct hdl_slab {
    hd_allocator allocator;
    hd_buffer   *buffer;
    uint64_t     contents; /* guarded by the lock */
};

struct hdl_content {
    hdl_content *next;
    hdl_slab    *slab;
    uint64_t     offset, bytes, key;
    hd_device   *device;
    hdl_origin   origins[2]; /* the first, and the last that was found to be equal */
    uint64_t     users;
    bool         whole;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and all that is in it but bytes and place */
static hdl_content *list;

/* ---- making and ending ---- */

hd_status hdl_slab_create(const hd_allocator *allocator, hd_device *device, const hd_buffer_desc *desc,
                          hdl_slab **out_slab) {
    hdl_slab *slab = hdl_alloc(allocator, sizeof *slab);
    if (!slab) return HD_STATUS_OUT_OF_HOST_MEMORY;
    slab->allocator = *allocator;
    const hd_status status = hd_buffer_create(device, desc, &slab->buffer);
    if (status) hdl_free(allocator, slab, sizeof *slab);
    else *out_slab = slab;
    return status;
}

static void end_slab(hdl_slab *slab) {
    const hd_allocator allocator = slab->allocator;
    hd_buffer_destroy(slab->buffer);
    hdl_free(&allocator, slab, sizeof *slab);
}

hdl_content *hdl_content_create(hdl_slab *slab, uint64_t offset, const hdl_sought *as) {
    hdl_content *content = hdl_alloc(&slab->allocator, sizeof *content);
    pthread_mutex_lock(&lock);
    if (content) {
        *content = (hdl_content){ list, slab, offset, as->bytes, as->key, as->device, { as->origin, as->origin }, 1,
                                  false };
        list = content;
        slab->contents++;
    }
    const bool empty = slab->contents == 0;
    pthread_mutex_unlock(&lock);
    if (empty) end_slab(slab);
    return content;
}

void hdl_content_whole(hdl_content *content) {
    pthread_mutex_lock(&lock);
    content->whole = true;
    pthread_mutex_unlock(&lock);
}

void hdl_content_release(hdl_content *content) {
    hdl_slab *slab = content->slab;
    const hd_allocator allocator = slab->allocator;
    pthread_mutex_lock(&lock);
    const bool last = --content->users == 0, empty = last && --slab->contents == 0;
    hdl_content **at = &list;
    while (last && *at != content) at = &(*at)->next;
    if (last) *at = content->next;
    pthread_mutex_unlock(&lock);
    if (last) hdl_free(&allocator, content, sizeof *content);
    if (empty) end_slab(slab);
}

hd_buffer *hdl_content_buffer(const hdl_content *content, uint64_t *out_offset) {
    *out_offset = content->offset;
    return content->slab->buffer;
}

/* ---- finding ---- */

static bool is_same(hdl_origin a, hdl_origin b) { return a.owner == b.owner && a.at == b.at; }

/* The same thing; or else the next one behind `from` that may be equal. It has one more user. */
static hdl_content *next_of(const hdl_sought *s, hdl_content *from, bool same) {
    pthread_mutex_lock(&lock);
    hdl_content *at = from ? from->next : list;
    for (; at; at = at->next) {
        if (!at->whole || at->device != s->device) continue;
        if (same ? is_same(at->origins[0], s->origin) || is_same(at->origins[1], s->origin)
                 : s->data && at->bytes == s->bytes && at->key == s->key) break;
    }
    if (at) at->users++;
    pthread_mutex_unlock(&lock);
    return at;
}

/* Are the bytes those that are sought? */
static hd_status compare(const hd_allocator *allocator, const hdl_sought *s, const hdl_content *content,
                         bool *out_equal) {
    const uint64_t most = s->bytes < PIECE_BYTES ? s->bytes : PIECE_BYTES;
    uint8_t *bytes = hdl_alloc(allocator, most);
    hd_status status = bytes ? HD_OK : HD_STATUS_OUT_OF_HOST_MEMORY;
    bool equal = true;
    for (uint64_t at = 0, piece = FIRST_BYTES; at < s->bytes && equal && !status; at += piece, piece = most) {
        if (piece > s->bytes - at) piece = s->bytes - at;
        status = hd_buffer_read(content->slab->buffer, content->offset + at, bytes, piece);
        equal = !status && memcmp(bytes, (const uint8_t *)s->data + at, piece) == 0;
    }
    hdl_free(allocator, bytes, most);
    *out_equal = equal;
    return status;
}

hd_status hdl_shared_find(const hd_allocator *allocator, const hdl_sought *sought, hdl_content **out_content) {
    hdl_content *at = next_of(sought, NULL, true);
    hd_status status = HD_OK;
    bool equal = at != NULL;
    for (int looks = 0; looks < HDL_MOST_LOOKS && !equal && !status; looks++) {
        hdl_content *from = at;
        at = next_of(sought, from, false);
        if (from) hdl_content_release(from);
        if (!at) break;
        status = compare(allocator, sought, at, &equal);
    }
    if (at && !equal) hdl_content_release(at);
    *out_content = equal ? at : NULL;
    if (!equal) return status;
    pthread_mutex_lock(&lock);
    if (!is_same(at->origins[0], sought->origin)) at->origins[1] = sought->origin;
    pthread_mutex_unlock(&lock);
    return HD_OK;
}
