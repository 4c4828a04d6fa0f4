/* holder.c: what a context holds: objects with handles, in lists of objects alike, and its first failure. Who takes an
 * object out ends it. */
#include "base/base.h"

/* ---- failures ---- */

hd_status hdi_holder_keep(hdi_holder *holder, const hd_error *error) {
    if (error->status == HD_OK) return HD_OK;
    hdi_mutex_lock(&holder->lock);
    holder->failures++;
    if (holder->error.status == HD_OK) holder->error = *error;
    hdi_mutex_unlock(&holder->lock);
    hdi_log_line(holder->log, HD_LOG_ERROR, error->backend[0] ? error->backend : "heddle", "%s: %s",
                 hd_status_name(error->status), error->text);
    return error->status;
}

hd_status hd_handle_refuse(const void *handle, const char *kind) {
    hd_error error = { 0 };
    hd_context *context;
    const hd_status status = hdi_handle_why(handle, kind, &context, &error);
    hdi_holder *holder = hd_handle_find(context, hdi_kind_context);
    if (holder) hdi_holder_keep(holder, &error);
    return status;
}

/* ---- objects ---- */

void hdi_held_put(hdi_holder *holder, hdi_link *list, hdi_held *held) {
    hdi_mutex_lock(&holder->lock);
    hdi_list_add(list, &held->link);
    holder->count++;
    hdi_mutex_unlock(&holder->lock);
}

hd_status hdi_held_add(hdi_holder *holder, hdi_link *list, hdi_held *held, const char *kind, void *object,
                       hd_error *error) {
    const hd_status status = hd_handle_new(holder->handle, kind, object, &held->handle);
    if (status) return hdi_fail(error, status, "no memory for the handle of a %s", kind);
    hdi_held_put(holder, list, held);
    return HD_OK;
}

/* Called with the lock held. */
static bool take_out(hdi_holder *holder, hdi_held *held) {
    if (!hd_handle_end(held->handle)) return false;
    hdi_list_remove(&held->link);
    holder->count--;
    return true;
}

bool hdi_held_remove(hdi_holder *holder, hdi_held *held) {
    hdi_mutex_lock(&holder->lock);
    const bool removed = take_out(holder, held);
    hdi_mutex_unlock(&holder->lock);
    return removed;
}

hdi_held *hdi_held_claim(hdi_holder *holder, hdi_link *list, bool (*matches)(const hdi_link *link, const void *user),
                         const void *user) {
    hdi_held *found = NULL;
    hdi_mutex_lock(&holder->lock);
    for (hdi_link *at = list->next; at != list && !found; at = at->next)
        if (matches(at, user)) found = HDI_OBJECT(at, hdi_held, link);
    if (found && !take_out(holder, found)) found = NULL;
    hdi_mutex_unlock(&holder->lock);
    return found;
}
