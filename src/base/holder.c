/* holder.c: what a context holds: objects with handles, in lists of objects alike. Who takes an object out ends it. */
#include "base/base.h"

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
