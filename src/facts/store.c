/* store.c: what is known of a device, as text in the cache's folder and, for an opened device, in memory behind one
 * lock. A file for
 * each device, driver and machine. Anybody may have written it: a line that is not well formed is refused by itself.
 *
 *   heddle facts 1
 *   machine NAME
 *   device ID
 *   driver NAME
 *   probe 123456
 *   lines of verdicts.c, figures_text.c and choices.c */
#include "facts/facts.h"
#include "os/os.h"
#include <inttypes.h>
#include <stdatomic.h>

#define HEADING      "heddle facts 1"
#define MOST_RANK_NS UINT64_C(1000000000000000)
enum { HEAD_LINES = 4 };

/* ---- what is assumed ---- */

/* Bytes that would break a line become '?'. */
static void set_name(const char *text, char out[HDI_FACTS_NAME]) {
    size_t at = 0;
    for (; text[at] && at + 1 < HDI_FACTS_NAME; at++) out[at] = (unsigned char)text[at] < ' ' ? '?' : text[at];
    out[at] = 0;
}

void hdi_facts_assume(const hd_device_info *info, const hdi_caps *caps, uint32_t threads, uint64_t kernels,
    hdi_facts *out) {
    char processor[100], machine[HDI_FACTS_NAME];
    memset(out, 0, sizeof *out);
    hdi_os_processor_name(processor, sizeof processor);
    /* what ran on another one says nothing */
    snprintf(machine, sizeof machine, "%s, %u threads", processor, (unsigned)threads);
    set_name(machine, out->machine);
    set_name(info->id, out->device);
    set_name(info->driver, out->driver);
    out->discrete = info->kind == HD_DEVICE_DISCRETE_GPU;
    out->caps = *caps;
    out->kernels = kernels;
    hdi_figures_assume(caps, out->discrete, &out->figures);
}

void hdi_facts_forget(hdi_facts *f, uint32_t kinds) {
    if (kinds & HD_FACT_RANK) f->rank_ns = 0;
    if (kinds & HD_FACT_VERDICT) {
        memset(f->caps.wrong, 0, sizeof f->caps.wrong);
        memset(f->judged, 0, sizeof f->judged);
        f->arithmetic = false;
        f->caps.inexact = 0;
    }
    if (kinds & HD_FACT_FIGURE) hdi_figures_assume(&f->caps, f->discrete, &f->figures);
    if (kinds & HD_FACT_CHOICE) f->caps.choices.count = 0;
}

static void take(const hdi_facts *from, uint32_t kinds, hdi_facts *to) {
    if (kinds & HD_FACT_RANK) to->rank_ns = from->rank_ns;
    if (kinds & HD_FACT_VERDICT) {
        memcpy(to->caps.wrong, from->caps.wrong, sizeof to->caps.wrong);
        memcpy(to->judged, from->judged, sizeof to->judged);
        to->arithmetic = from->arithmetic;
        to->caps.inexact = from->caps.inexact;
    }
    if (kinds & HD_FACT_FIGURE) to->figures = from->figures;
    if (kinds & HD_FACT_CHOICE) to->caps.choices = from->caps.choices;
}

/* ---- text ---- */

void hdi_facts_print(const hdi_facts *f, hdi_text *out) {
    hdi_text_add(out, HEADING "\nmachine %s\ndevice %s\ndriver %s\n", f->machine, f->device, f->driver);
    if (f->rank_ns) hdi_text_add(out, "probe %" PRIu64 "\n", f->rank_ns);
    hdi_verdicts_print(f, out);
    hdi_figures_print(&f->figures, out);
    hdi_choices_print(&f->caps.choices, out);
}

static bool read_line(hdi_span line, bool *ours, hdi_facts *f) {
    hdi_span rest = line;
    const hdi_span word = hdi_word_next(&rest);
    if (hdi_word_is(word, "choice") || hdi_word_is(word, "options"))
        return hdi_choices_read(line.at, (size_t)(line.end - line.at), &f->caps.choices);
    if (hdi_word_is(word, "kernels") || hdi_word_is(word, "arithmetic") || hdi_word_is(word, "verdict"))
        return hdi_verdicts_read(line, ours, f);
    if (!hdi_word_is(word, "probe")) return hdi_figures_read(line, &f->figures);
    uint64_t ns;
    if (!hdi_whole_read(hdi_word_next(&rest), MOST_RANK_NS, &ns) || ns == 0) return false;
    const hdi_span behind = hdi_word_next(&rest);
    if (behind.at < behind.end) return false;
    f->rank_ns = ns;
    return true;
}

/* "machine NAME", with the very name. */
static bool names(hdi_span text, const char *what, const char *name) {
    const size_t length = strlen(what);
    if ((size_t)(text.end - text.at) < length + 1 || memcmp(text.at, what, length) != 0 || text.at[length] != ' ')
        return false;
    text.at += length + 1;
    return hdi_word_is(text, name);
}

static bool is_head(hdi_span line, uint32_t number, const hdi_facts *f) {
    switch (number) {
    case 0: return hdi_word_is(line, HEADING);
    case 1: return names(line, "machine", f->machine);
    case 2: return names(line, "device", f->device);
    default: return names(line, "driver", f->driver);
    }
}

uint32_t hdi_facts_parse(const char *text, size_t bytes, hdi_facts *f) {
    const char *const end = text + bytes;
    uint32_t refused = 0, number = 0;
    bool is_device = true, is_build = false;
    const uint32_t table = f->caps.choices.table;
    f->caps.choices.table = 0;
    for (const char *at = text; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        hdi_span line = { at, stop ? stop : end };
        at = stop ? stop + 1 : end;
        if (line.end > line.at && line.end[-1] == '\r') line.end--;
        if (number < HEAD_LINES) is_device = is_device && is_head(line, number, f);
        refused += !is_device || (number >= HEAD_LINES && line.at < line.end && !read_line(line, &is_build, f));
    }
    if (f->caps.choices.table != table) { /* ids of another table: they mean something else here */
        refused += f->caps.choices.count;
        f->caps.choices.table = table;
        f->caps.choices.count = 0;
    }
    return refused;
}

/* ---- the file ---- */

bool hdi_facts_path(const char *folder, const hdi_facts *f, char *out, size_t room) {
    const char *const names_of[] = { f->machine, f->device, f->driver };
    uint64_t hash = HDI_HASH_START;
    for (size_t i = 0; i < HDI_COUNT(names_of); i++) hash = hdi_hash(hash, names_of[i], strlen(names_of[i]) + 1);
    const int used = folder ? snprintf(out, room, "%s/facts-%016llx.txt", folder, (unsigned long long)hash) : -1;
    return used > 0 && (size_t)used < room;
}

bool hdi_facts_load(const hd_allocator *allocator, const char *folder, hdi_facts *f, uint32_t *out_refused) {
    char path[1024];
    *out_refused = 0;
    if (!hdi_facts_path(folder, f, path, sizeof path)) return false;
    FILE *file = hdi_file_open(path);
    char *text = file ? hdi_alloc(allocator, HDI_FACTS_BYTES) : NULL;
    const size_t bytes = text ? fread(text, 1, HDI_FACTS_BYTES, file) : 0;
    const bool whole = text && !ferror(file) && (bytes < HDI_FACTS_BYTES || fgetc(file) == EOF);
    if (file) fclose(file);
    if (whole) *out_refused = hdi_facts_parse(text, bytes, f);
    hdi_free(allocator, text, HDI_FACTS_BYTES);
    return whole;
}

bool hdi_facts_save(const hd_allocator *allocator, const char *folder, const hdi_facts *f) {
    char path[1024];
    hdi_text text = { .allocator = allocator };
    if (!hdi_facts_path(folder, f, path, sizeof path)) return false;
    hdi_facts_print(f, &text);
    const bool good = !text.failed && hdi_file_replace(path, &(hdi_piece){ text.bytes, text.count }, 1);
    hdi_text_free(&text);
    return good;
}

/* ---- an opened device ---- */

struct hdi_store {
    hdi_mutex           lock;
    const hd_allocator *allocator;
    const hdi_log      *log;
    const char         *folder;
    _Atomic uint64_t    version;
    hdi_facts           facts;
};

hd_status hdi_store_open(const hd_allocator *allocator, const hdi_log *log, const char *folder,
    const hdi_facts *assumed, hdi_store **out,
                         hd_error *error) {
    uint32_t refused;
    hdi_store *store = hdi_alloc(allocator, sizeof *store);
    if (!store || !hdi_mutex_init(&store->lock)) {
        hdi_free(allocator, store, sizeof *store);
        return hdi_fail(error, HD_STATUS_OUT_OF_HOST_MEMORY, "no memory for what is known of a device");
    }
    store->allocator = allocator;
    store->log = log;
    store->folder = folder;
    store->facts = *assumed;
    if (hdi_facts_load(allocator, folder, &store->facts, &refused) && refused > 0)
        hdi_log_line(log, HD_LOG_WARNING, "facts",
                     "%s: %u lines of the file of what is known of it are not well formed, or choose among options of "
                     "another version, and were left out; run `heddle tune`",
                     assumed->device, refused);
    *out = store;
    return HD_OK;
}

void hdi_store_close(hdi_store *store) {
    if (!store) return;
    hdi_mutex_free(&store->lock);
    hdi_free(store->allocator, store, sizeof *store);
}

hdi_facts *hdi_store_lock(hdi_store *store) {
    hdi_mutex_lock(&store->lock);
    return &store->facts;
}

void hdi_store_unlock(hdi_store *store) { hdi_mutex_unlock(&store->lock); }

void hdi_store_changed(hdi_store *store) { atomic_fetch_add(&store->version, 1); }

uint64_t hdi_store_version(hdi_store *store) { return atomic_load(&store->version); }

hd_status hdi_store_keep(hdi_store *store, uint32_t kinds, hd_error *error) {
    uint32_t refused;
    hdi_store_changed(store);
    if (!store->folder) return HD_OK;
    hdi_facts *both = hdi_alloc(store->allocator, sizeof *both);
    if (both) {
        *both = store->facts;
        hdi_facts_forget(both, HDI_FACTS_ALL);
        hdi_facts_load(store->allocator, store->folder, both, &refused);
        take(&store->facts, kinds, both);
    }
    const bool kept = both && hdi_facts_save(store->allocator, store->folder, both);
    hdi_free(store->allocator, both, sizeof *both);
    if (kept) return HD_OK;
    if (!error) /* a caller that takes no error goes on without */
        hdi_log_line(store->log, HD_LOG_WARNING, "facts", "%s: what is known of it could not be written in %s",
                     store->facts.device, store->folder);
    return hdi_fail(error, HD_STATUS_IO, "what is known of %s could not be written in %s", store->facts.device,
        store->folder);
}

void hdi_store_caps(hdi_store *store, hdi_caps *out) {
    *out = hdi_store_lock(store)->caps;
    hdi_store_unlock(store);
}

void hdi_store_figures(hdi_store *store, hdi_figures *out) {
    *out = hdi_store_lock(store)->figures;
    hdi_store_unlock(store);
}

hd_status hdi_store_choose(hdi_store *store, hdi_class of, const hdi_choice *choice, hd_error *error) {
    hdi_choices *choices = &hdi_store_lock(store)->caps.choices;
    hd_status status = HD_OK;
    if (!choice) hdi_choices_remove(choices, of);
    else if (!hdi_choices_put(choices, choice))
        status = hdi_fail(error, HD_STATUS_LIMIT, "more than %d choices of kernels", HDI_CHOICES);
    if (!status) status = hdi_store_keep(store, HD_FACT_CHOICE, error);
    hdi_store_unlock(store);
    return status;
}
