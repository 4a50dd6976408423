/* The choice of where the slots of the rdma transport lie: the best that all of the rank's rails can register, or what
 * RONDO_GPUDIRECT says. And what `rondo info` prints of it, port by port. */
#include "transport/rdma/survey.h"

#include "transport/rdma/rdma.h"

#include "lib/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In order of merit; what comes last always can be. */
static const enum rondo_slot_memory merits[RONDO_RDMA_MERITS] = {RONDO_SLOTS_DMABUF, RONDO_SLOTS_PEERMEM};

static const char *const flushes[] = {"the GPU sees them in order", "the driver flushes them", "a read flushes them"};

/* A NIC that is not next to the GPU reaches it through the processors, where its reads and writes are slower than those of the
 * host's memory. */
static const struct rondo_rdma_rail *far_rail(const struct rondo_rdma *rdma, int first, int rails)
{
    for (int i = first; i < first + rails; i++)
        if (rdma->node >= 0 && rdma->rails[i].node >= 0 && rdma->rails[i].node != rdma->node)
            return &rdma->rails[i];
    return NULL;
}

enum rondo_slot_memory rondo_rdma_best_slots(struct rondo_rdma *rdma, int first_rail, int rails,
                                             char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT])
{
    const struct rondo_rdma_rail *far = far_rail(rdma, first_rail, rails);
    for (int i = 0; i < RONDO_RDMA_MERITS; i++)
        whys[i][0] = '\0';
    for (int i = 0; i < RONDO_RDMA_MERITS && rdma->gpu >= 0; i++) {
        if (far != NULL) {
            snprintf(whys[i], RONDO_SURVEY_TEXT, "%s is on memory node %d, GPU %d on node %d", far->name, far->node, rdma->gpu,
                     rdma->node);
            continue;
        }
        if (rondo_rdma_try_slots(rdma, merits[i], first_rail, rails) == RONDO_SUCCESS)
            return merits[i];
        snprintf(whys[i], RONDO_SURVEY_TEXT, "%s", rondo_last_error());
    }
    return RONDO_SLOTS_WITH_COUNTERS;
}

/* As the environment says, for these rails. */
static rondo_result_t choose(struct rondo_rdma *rdma, int first_rail, int rails, enum rondo_slot_memory *kind,
                             char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT])
{
    char why[RONDO_SURVEY_TEXT];
    int automatic;
    rondo_result_t result = rondo_slot_memory_wanted(&automatic, kind);
    for (int i = 0; i < RONDO_RDMA_MERITS; i++)
        whys[i][0] = '\0';
    if (result != RONDO_SUCCESS)
        return result;
    if (automatic)
        *kind = rondo_rdma_best_slots(rdma, first_rail, rails, whys);
    else if (*kind == RONDO_SLOTS_DMABUF || *kind == RONDO_SLOTS_PEERMEM)
        result = rondo_rdma_try_slots(rdma, *kind, first_rail, rails);
    if (result == RONDO_SUCCESS)
        return RONDO_SUCCESS;
    snprintf(why, sizeof(why), "%s", rondo_last_error());
    return rondo_fail(result, "RONDO_GPUDIRECT=%s: %s", rondo_slot_memory_names[*kind], why);
}

static enum rondo_cuda_flush flush_of(const struct rondo_rdma *rdma, enum rondo_slot_memory kind)
{
    return rondo_slot_memory_is_host(kind, rdma->gpu) ? RONDO_CUDA_FLUSH_READ : rondo_cuda_flush_of(rdma->gpu);
}

rondo_result_t rondo_rdma_choose_slots(struct rondo_rdma *rdma)
{
    char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT];
    rondo_result_t result = choose(rdma, 0, rdma->rail_count, &rdma->slots, whys);
    if (result != RONDO_SUCCESS)
        return result;
    rdma->flush = flush_of(rdma, rdma->slots);
    for (int i = 0; i < RONDO_RDMA_MERITS; i++)
        if (whys[i][0] != '\0')
            rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: slots not by %s: %s", rondo_slot_memory_names[merits[i]], whys[i]);
    if (rdma->slots != RONDO_SLOTS_WITH_COUNTERS)
        rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: slots apart from their counters (%s); of what arrives, %s",
                  rondo_slot_memory_names[rdma->slots], flushes[rdma->flush]);
    return RONDO_SUCCESS;
}

/* ---- rondo info ---- */

static void report(struct rondo_rdma *rdma, int rail, void (*tell)(void *, const struct rondo_rdma_report *), void *argument)
{
    char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT];
    enum rondo_slot_memory kind;
    struct rondo_rdma_report report = {
        .nic = rdma->rails[rail].name, .port = rdma->rails[rail].port, .node = rdma->rails[rail].node};
    if (choose(rdma, rail, 1, &kind, whys) != RONDO_SUCCESS)
        report.trouble = rondo_last_error();
    else
        report.slots = rondo_slot_memory_names[kind];
    report.why_not_dmabuf = whys[0];
    report.why_not_peermem = whys[1];
    if (report.slots != NULL && kind != RONDO_SLOTS_WITH_COUNTERS)
        report.flush = flushes[flush_of(rdma, kind)];
    tell(argument, &report);
}

rondo_result_t rondo_rdma_survey(int gpu, void (*tell)(void *argument, const struct rondo_rdma_report *report), void *argument)
{
    const char *why;
    struct rondo_rdma *rdma = calloc(1, sizeof(*rdma));
    if (rdma == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for rdma");
    rdma->gpu = gpu;
    rdma->local_rank = gpu >= 0 ? gpu : 0;
    rdma->rank = -1;
    rdma->descriptor = -1;
    rdma->library = rondo_rdma_library(&why);
    if (rdma->library == NULL) {
        free(rdma);
        return rondo_fail(RONDO_ERR_TRANSPORT, "rdma: %s", why);
    }
    rondo_result_t result = rondo_rdma_open_rails(rdma);
    for (int i = 0; i < rdma->rail_count && result == RONDO_SUCCESS; i++)
        report(rdma, i, tell, argument);
    rondo_rdma_close_rails(rdma);
    free(rdma);
    return result;
}
