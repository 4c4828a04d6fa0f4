/* runs.h: what runs of earlier plans took. */
#ifndef HDI_FACTS_RUNS_H
#define HDI_FACTS_RUNS_H

#include "base/base.h"

enum { HDI_RUN_RECORDS = 256 };
typedef struct hdi_run_record {
    uint64_t key; /* of program, wishes, devices and placement */
    uint64_t at;  /* when: a count; 0: nothing is here */
    double   ns;
} hdi_run_record;
/* Safe from many threads. */
typedef struct hdi_runs {
    hdi_mutex      lock;
    uint64_t       count;
    hdi_run_record records[HDI_RUN_RECORDS];
} hdi_runs;
bool hdi_runs_init(hdi_runs *runs);
void hdi_runs_free(hdi_runs *runs);
void hdi_runs_note(hdi_runs *runs, uint64_t key, double ns);
double hdi_runs_known(hdi_runs *runs, uint64_t key); /* 0: nothing */
#endif
