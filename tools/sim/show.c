/* A deadlock in words, and drawn as in the paper's figure 2. See tools/sim/sim.h. */
#include "tools/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define LINKS_SHOWN 16

static void say(FILE *out, const struct sim_layout *l, const struct sim_config *config, const struct sim_cycle *cycle)
{
    for (size_t i = 0; i < cycle->count && i < LINKS_SHOWN; i++) {
        const struct sim_link *link = &cycle->links[i], *next = &cycle->links[(i + 1) % cycle->count];
        char waited[80], nexts[80];
        sim_collective_name(l, link->waits, waited, sizeof(waited));
        sim_collective_name(l, next->waits, nexts, sizeof(nexts));
        if (config->model == SIM_SINGLE)
            fprintf(out, "  GPU %d executes %s and waits for GPU %d, which has %s before it\n", link->at.gpu, waited,
                    next->at.gpu, nexts);
        else
            fprintf(
                out,
                "  GPU %d, suspended by its synchronization after %u collectives, waits for %s, which GPU %d has not started: "
                "it is suspended too\n",
                link->at.gpu, link->at.before, waited, next->at.gpu);
    }
    if (cycle->count > LINKS_SHOWN)
        fprintf(out, "  and %zu more, back to GPU %d\n", cycle->count - LINKS_SHOWN, cycle->links[0].at.gpu);
}

/* One line a GPU: what it executes, its synchronization, what it has not started. Only what is in the cycle is drawn. */
static void draw(FILE *out, const struct sim_layout *l, const struct sim_config *config, const struct sim_cycle *cycle)
{
    fprintf(out, "\n             %-24s%s  %s\n", "executing", config->model == SIM_SINGLE ? "     " : "suspended",
            "not started");
    for (size_t i = 0; i < cycle->count && i < LINKS_SHOWN; i++) {
        const struct sim_link *link = &cycle->links[i], *before = &cycle->links[(i + cycle->count - 1) % cycle->count];
        char executes[32], lacks[32], executed[36], lacked[36];
        sim_collective_tag(l, link->waits, executes, sizeof(executes));
        sim_collective_tag(l, before->waits, lacks, sizeof(lacks));
        snprintf(executed, sizeof(executed), "[%s]", executes);
        snprintf(lacked, sizeof(lacked), "(%s)", lacks);
        if (config->model == SIM_SINGLE)
            fprintf(out, "  GPU %-5d  %-24s <--  %s\n", link->at.gpu, executed, lacked);
        else
            fprintf(out, "  GPU %-5d  %-24s | sync | <--  %s\n", link->at.gpu, executed, lacked);
        fprintf(out, "             |\n");
    }
    fprintf(out, "             +--> GPU %d\n", cycle->links[0].at.gpu);
}

void sim_show(FILE *out, const struct sim_layout *l, const struct sim_config *config, const struct sim_cycle *cycle,
              uint64_t number)
{
    fprintf(out, "\nround %llu: %zu GPUs wait in a circle\n", (unsigned long long) number, cycle->count);
    say(out, l, config, cycle);
    draw(out, l, config, cycle);
}
