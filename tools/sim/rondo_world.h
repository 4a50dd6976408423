/* A round in time while it is simulated (tools/sim/rondo.h): what its hosts (tools/sim/rondo.c) and daemons
 * (tools/sim/rondo_daemon.c) know. Each GPU has two threads. */
#ifndef RONDO_TOOLS_SIM_RONDO_WORLD_H
#define RONDO_TOOLS_SIM_RONDO_WORLD_H

#include "tools/sim/rondo.h"

enum doing { VISITING, SPINNING, MOVING };
enum stage { FILLING, STARTING, WAITING };

struct task {
    uint64_t mine, before, after; /* into progress: this GPU's part, and its ring neighbours' */
    uint32_t collective, primitives, kind;
    int group, before_gpu, after_gpu;
    bool pairs, preempted;
    uint64_t awaited; /* when it was preempted last: whose progress it needed, and so much of it */
    uint32_t needed;
};

struct gpu {
    /* Host: */
    enum stage stage;
    uint32_t started, waited;
    size_t synchronization, segment;
    bool synchronizing, awaits; /* the daemon's leaving; the list position waited */
    /* Daemon: */
    bool alive, called;  /* called: a start has asked for it */
    bool idle, glancing; /* it sleeps until a start: its table is empty, or nothing in it is worth a visit as yet */
    enum doing doing;
    bool progressed, yields; /* in this round of visits; before it goes on */
    uint32_t fetched, tasks, room, at, idle_turns, rounds_without_fetch;
    struct task *table;
    double grant, budget, used; /* of the round's next task; of the current one, and of this wait: polls */
    double spin_since;          /* or glances at what it has */
    double entered, last_progress, pause;
    uint64_t finished_at_entry, finished;
};

struct world {
    const struct sim_layout *layout;
    const struct sim_round *round;
    const struct sim_machine *machine;
    const struct sim_load *load;
    struct sim_rondo_outcome *out;
    struct gpu *gpus;
    uint16_t *progress;  /* primitives done, by list position of each GPU */
    uint8_t *finished;   /* likewise: all are */
    uint32_t *submitted; /* list positions in the order of their starts, each GPU's from list_first */
    struct sim_cores cores;
    bool failed;
};

static inline int host_of(int gpu)
{
    return 2 * gpu;
}

static inline int daemon_of(int gpu)
{
    return 2 * gpu + 1;
}

/* The daemon's turn. */
void sim_daemon_run(struct world *w, int gpu);

#endif
