/* runs.c: what runs of earlier plans took, for the next plan of the same program: a prediction that was wrong is not
 * believed twice. Kept in memory; the oldest gives way. */
#include "facts/runs.h"

bool hdi_runs_init(hdi_runs *runs) {
    memset(runs, 0, sizeof *runs);
    return hdi_mutex_init(&runs->lock);
}

void hdi_runs_free(hdi_runs *runs) { hdi_mutex_free(&runs->lock); }

/* Where the key is kept, or is to be kept. */
static hdi_run_record *find(hdi_runs *runs, uint64_t key) {
    hdi_run_record *oldest = &runs->records[0];
    for (uint32_t i = 0; i < HDI_RUN_RECORDS; i++) {
        hdi_run_record *record = &runs->records[i];
        if (record->at && record->key == key) return record;
        if (record->at < oldest->at) oldest = record;
    }
    return oldest;
}

void hdi_runs_note(hdi_runs *runs, uint64_t key, double ns) {
    hdi_mutex_lock(&runs->lock);
    *find(runs, key) = (hdi_run_record){ key, ++runs->count, ns };
    hdi_mutex_unlock(&runs->lock);
}

double hdi_runs_known(hdi_runs *runs, uint64_t key) {
    hdi_mutex_lock(&runs->lock);
    const hdi_run_record *record = find(runs, key);
    const double ns = record->at && record->key == key ? record->ns : 0;
    hdi_mutex_unlock(&runs->lock);
    return ns;
}
