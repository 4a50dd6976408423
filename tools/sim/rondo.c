/* The hosts of the model in tools/sim/rondo.h, and a round of all hosts and daemons. */
#include "tools/sim/rondo_world.h"

#include <stdlib.h>

static uint32_t next_position(const struct world *w, struct gpu *g, int gpu)
{
    while (g->segment < w->round->segment_count) {
        const struct sim_segment *s = &w->round->segments[g->segment];
        if (s->gpu != gpu || g->started < s->first)
            break;
        if (g->started < s->first + s->length)
            return w->round->orders[s->order_first + (g->started - s->first)];
        g->segment++;
    }
    return g->started;
}

static bool synchronizes(const struct world *w, const struct gpu *g, int gpu)
{
    const struct sim_synchronization *next = &w->round->synchronizations[g->synchronization];
    return g->synchronization < w->round->synchronization_count && next->gpu == gpu && next->before == g->started;
}

static void synchronize(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    g->synchronization++;
    g->synchronizing = g->alive || g->called;
    if (g->synchronizing)
        sim_cores_sleep(&w->cores, host_of(gpu)); /* the daemon's leaving goes on with us */
    else
        sim_cores_work(&w->cores, host_of(gpu), w->machine->start);
}

static void start(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    w->submitted[w->layout->list_first[gpu] + g->started] = next_position(w, g, gpu);
    g->started++;
    g->pause = m->first_pause;
    if (!g->alive) {
        g->called = true;
        sim_cores_wake(&w->cores, daemon_of(gpu), w->cores.now + (m->cores > 0 ? m->wake : 0));
    } else if (g->idle || g->glancing) {
        g->last_progress = w->cores.now;
        sim_cores_wake(&w->cores, daemon_of(gpu), w->cores.now);
    }
    sim_cores_work(&w->cores, host_of(gpu), m->start);
}

/* Waits for the next result, running the daemon meanwhile if it has to share processors with it, or takes it. */
static void take(struct world *w, int gpu, uint32_t end)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_load *load = w->load;
    uint64_t first = w->layout->list_first[gpu], length = w->layout->list_first[gpu + 1] - first;
    if (load->window == 0 || g->waited == length) {
        sim_cores_sleep(&w->cores, host_of(gpu));
        return;
    }
    if (!w->finished[first + g->waited]) {
        g->awaits = true;
        sim_cores_sleep(&w->cores, host_of(gpu));
        if (w->machine->cores > 0 && (g->alive || g->called))
            sim_cores_wake(&w->cores, daemon_of(gpu), w->cores.now);
        return;
    }
    double check = load->check[g->waited % load->kinds];
    if (++g->waited == end && end < length)
        g->stage = FILLING;
    sim_cores_work(&w->cores, host_of(gpu), check);
}

static void run_host(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_load *load = w->load;
    uint32_t length = (uint32_t) (w->layout->list_first[gpu + 1] - w->layout->list_first[gpu]);
    uint32_t end = load->window > 0 ? g->waited - g->waited % load->window + load->window : length;
    end = end < length ? end : length;
    if (g->stage == FILLING) {
        g->stage = STARTING;
        sim_cores_work(&w->cores, host_of(gpu), load->fill);
    } else if (g->stage == STARTING && g->started <= end && synchronizes(w, g, gpu)) {
        synchronize(w, gpu);
    } else if (g->stage == STARTING && g->started < end) {
        start(w, gpu);
    } else {
        g->stage = WAITING;
        take(w, gpu, end);
    }
}

int sim_rondo_round(const struct sim_layout *l, const struct sim_round *round, const struct sim_machine *machine,
                    const struct sim_load *load, struct sim_rondo_outcome *out)
{
    struct world w = {.layout = l, .round = round, .machine = machine, .load = load, .out = out};
    uint64_t total = l->list_first[l->gpus], turns = 0;
    size_t synchronization = 0, segment = 0;
    *out = (struct sim_rondo_outcome){.collectives = total};
    w.gpus = calloc((size_t) l->gpus, sizeof(*w.gpus));
    w.progress = calloc(total + 1, sizeof(*w.progress));
    w.finished = calloc(total + 1, sizeof(*w.finished));
    w.submitted = calloc(total + 1, sizeof(*w.submitted));
    w.failed = sim_cores_make(&w.cores, 2 * l->gpus, machine->cores, &machine->costs) != 0 || w.gpus == NULL ||
               w.progress == NULL || w.finished == NULL || w.submitted == NULL || round->failed;
    for (int gpu = 0; gpu < l->gpus && !w.failed; gpu++) {
        w.gpus[gpu] = (struct gpu){.synchronization = synchronization, .segment = segment, .pause = machine->first_pause};
        while (synchronization < round->synchronization_count && round->synchronizations[synchronization].gpu == gpu)
            synchronization++;
        while (segment < round->segment_count && round->segments[segment].gpu == gpu)
            segment++;
        sim_cores_wake(&w.cores, host_of(gpu), 0);
    }
    int thread;
    while (!w.failed && out->finished < total && !out->stuck && sim_cores_next(&w.cores, &thread)) {
        out->stuck = ++turns > 65536 + 65536 * (total + 1) * 16; /* far beyond what any schedule takes */
        if (thread % 2 == 0)
            run_host(&w, thread / 2);
        else
            sim_daemon_run(&w, thread / 2);
    }
    w.failed = w.failed || w.cores.failed;
    out->stuck = out->stuck || out->finished < total;
    for (int gpu = 0; w.gpus != NULL && gpu < l->gpus; gpu++)
        free(w.gpus[gpu].table);
    free(w.gpus);
    free(w.progress);
    free(w.finished);
    free(w.submitted);
    sim_cores_free(&w.cores);
    return w.failed ? -1 : 0;
}
