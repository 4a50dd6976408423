/* The choice of where the slots of the rdma transport lie: the best that all of the rank's rails can register, or what
 * RONDO_GPUDIRECT says. And what `rondo info` tells of it, card by card. */
#include "rdma_survey.h"

#include "rdma.h"

#include "error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In order of merit; what comes last always can be. */
static const enum rondo_slot_memory merits[] = {RONDO_SLOTS_DMABUF, RONDO_SLOTS_PEERMEM};
#define MERITS ((int) (sizeof(merits) / sizeof(merits[0])))

static const char *const flushes[] = {"the GPU sees them in order", "the driver flushes them", "a read flushes them"};

/* whys: what is wrong with each merit; "" for those that were not tried. */
static enum rondo_slot_memory choose(struct rondo_rdma *rdma, int first_rail, int rails, char whys[MERITS][RONDO_SURVEY_TEXT])
{
    for (int i = 0; i < MERITS; i++)
        whys[i][0] = '\0';
    for (int i = 0; i < MERITS && rdma->gpu >= 0; i++) {
        if (rondo_rdma_try_slots(rdma, merits[i], first_rail, rails) == RONDO_SUCCESS)
            return merits[i];
        snprintf(whys[i], RONDO_SURVEY_TEXT, "%s", rondo_last_error());
    }
    return RONDO_SLOTS_WITH_COUNTERS;
}

rondo_result_t rondo_rdma_choose_slots(struct rondo_rdma *rdma)
{
    char whys[MERITS][RONDO_SURVEY_TEXT], tried[2 * RONDO_SURVEY_TEXT + 32] = "";
    int automatic;
    rondo_result_t result = rondo_slot_memory_wanted(&automatic, &rdma->slots);
    if (result == RONDO_SUCCESS && automatic)
        rdma->slots = choose(rdma, 0, rdma->rail_count, whys);
    else if (result == RONDO_SUCCESS && rdma->slots != RONDO_SLOTS_WITH_COUNTERS)
        result = rondo_rdma_try_slots(rdma, rdma->slots, 0, rdma->rail_count);
    if (result != RONDO_SUCCESS) {
        char why[RONDO_SURVEY_TEXT];
        snprintf(why, sizeof(why), "%s", rondo_last_error());
        return automatic || result == RONDO_ERR_ARGUMENT
                   ? result
                   : rondo_fail(result, "RONDO_GPUDIRECT=%s: %s", rondo_slot_memory_names[rdma->slots], why);
    }
    int of_gpu = !rondo_slot_memory_is_host(rdma->slots, rdma->gpu);
    rdma->flush = of_gpu ? rondo_cuda_flush_of(rdma->gpu) : RONDO_CUDA_FLUSH_READ;
    for (int i = 0; automatic && i < MERITS && whys[i][0] != '\0'; i++)
        snprintf(tried + strlen(tried), sizeof(tried) - strlen(tried), "; not %s: %s", rondo_slot_memory_names[merits[i]],
                 whys[i]);
    if (rdma->slots != RONDO_SLOTS_WITH_COUNTERS)
        rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: slots lie in %s (%s), apart from their counters; of what arrives, %s%s",
                  of_gpu ? "the GPU's memory" : "the host's memory", rondo_slot_memory_names[rdma->slots], flushes[rdma->flush],
                  tried);
    else if (rdma->gpu >= 0)
        rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: slots lie in the host's memory%s", tried);
    return RONDO_SUCCESS;
}

/* ---- rondo info ---- */

static void report(struct rondo_rdma *rdma, int rail, void (*tell)(void *, const struct rondo_rdma_report *), void *argument)
{
    char whys[MERITS][RONDO_SURVEY_TEXT];
    enum rondo_slot_memory kind = choose(rdma, rail, 1, whys);
    struct rondo_rdma_report report = {.card = rdma->rails[rail].name,
                                       .port = rdma->rails[rail].port,
                                       .node = rdma->rails[rail].node,
                                       .slots = rondo_slot_memory_names[kind],
                                       .why_not_dmabuf = whys[0],
                                       .why_not_peermem = whys[1]};
    if (kind != RONDO_SLOTS_WITH_COUNTERS)
        report.flush = flushes[rondo_cuda_flush_of(rdma->gpu)];
    tell(argument, &report);
}

rondo_result_t rondo_rdma_survey(int gpu, void (*tell)(void *argument, const struct rondo_rdma_report *report), void *argument)
{
    const char *why;
    struct rondo_rdma *rdma = calloc(1, sizeof(*rdma));
    if (rdma == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for rdma");
    rdma->gpu = gpu;
    rdma->turn = gpu >= 0 ? gpu : 0;
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
