/* What RDMA NICs there are, and where the slots that they transmit would lie: for `rondo info`. */
#ifndef RONDO_TRANSPORT_RDMA_SURVEY_H
#define RONDO_TRANSPORT_RDMA_SURVEY_H

#include "rondo.h"

#define RONDO_SURVEY_TEXT 256

struct rondo_rdma_report {
    const char *nic;
    unsigned port;
    int node;                                     /* NUMA; -1: unknown */
    const char *slots;                            /* as RONDO_GPUDIRECT names it; NULL: what it says cannot be */
    const char *trouble;                          /* why */
    const char *flush;                            /* what makes arrivals visible; NULL where slots are with their counters */
    const char *why_not_dmabuf, *why_not_peermem; /* "": it can be, or something better can, or it was not asked for */
};

/* Calls tell with argument for each port that a rank on that GPU (-1: on the host device) would use; the report and its texts
 * last until tell returns. Opens the NICs for the time of the call. RONDO_ERR_TRANSPORT if there is none. */
rondo_result_t rondo_rdma_survey(int gpu, void (*tell)(void *argument, const struct rondo_rdma_report *report), void *argument);

#endif
