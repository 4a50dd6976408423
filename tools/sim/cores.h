/*
 * Threads in simulated time: each on a processor of its own, or all on a few, which they share as an operating system lets
 * them. Each processor has a queue: first come, first served, one slice at a time, and a thread that yields goes to its end. A
 * thread that wakes goes to a processor that is free, or else where it was. A processor that has nothing to do takes what waits
 * elsewhere only now and then: meanwhile ranks may wait for each other on one processor and leave the other idle, as they do on
 * Linux.
 *
 * A thread has its turn when sim_cores_next names it, and must then say what it does until its next one: work, yield or sleep.
 */
#ifndef RONDO_TOOLS_SIM_CORES_H
#define RONDO_TOOLS_SIM_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds. */
struct sim_core_costs {
    double slice;   /* of a processor, while others wait for it */
    double yield;   /* the call */
    double change;  /* from one thread to another */
    double balance; /* between looks of idle processors at the others' queues */
};

struct sim_thread;
struct sim_core;
struct sim_core_event;

struct sim_cores {
    struct sim_core_costs costs;
    int threads, cores; /* cores 0: one each */
    struct sim_thread *thread;
    struct sim_core *core; /* [cores] */
    double balanced;       /* when */
    struct sim_core_event *heap;
    size_t count, room;
    double now;
    bool failed; /* out of memory */
};

/* All threads sleep. Returns 0, or -1 without memory; free it in either case. */
int sim_cores_make(struct sim_cores *cores, int threads, int count, const struct sim_core_costs *costs);
void sim_cores_free(struct sim_cores *cores);

/* Whose turn is next; cores->now is then its time. false: all sleep, or out of memory. */
bool sim_cores_next(struct sim_cores *cores, int *thread);
/* Of the thread that has its turn: until its next one it works for so long; */
void sim_cores_work(struct sim_cores *cores, int thread, double work);
/* lets the others go first, if they are ready; */
void sim_cores_yield(struct sim_cores *cores, int thread);
/* waits to be woken. */
void sim_cores_sleep(struct sim_cores *cores, int thread);
/* A sleeping thread will be ready at that time, unless it is woken sooner. A thread that does not sleep is left as it is. */
void sim_cores_wake(struct sim_cores *cores, int thread, double at);
bool sim_cores_sleeps(const struct sim_cores *cores, int thread);
/* With a processor each: a thread that works has its turn now. */
void sim_cores_interrupt(struct sim_cores *cores, int thread);

#endif
