/* See tools/sim/cores.h. Event-driven; an event that its thread has outlived carries an old stamp. */
#include "tools/sim/cores.h"

#include <stdlib.h>

enum state { SLEEPING, READY, RUNNING };

struct sim_thread {
    enum state state;
    double left;    /* of its work, when it runs again */
    double wakes;   /* sleeping: when, so far; -1: not yet known */
    int core, next; /* where it is or was; behind it in that queue, or -1 */
    uint32_t stamp;
};

struct sim_core {
    bool busy;
    int first, last, queued; /* threads that are ready; -1: none */
};

struct sim_core_event {
    double time;
    int thread;
    uint32_t stamp;
};

int sim_cores_make(struct sim_cores *c, int threads, int count, const struct sim_core_costs *costs)
{
    *c = (struct sim_cores){.costs = *costs, .threads = threads, .cores = count};
    c->thread = calloc((size_t) threads, sizeof(*c->thread));
    c->core = calloc((size_t) count + 1, sizeof(*c->core));
    if (c->thread == NULL || c->core == NULL)
        return -1;
    for (int i = 0; i < threads; i++) {
        c->thread[i].wakes = -1;
        c->thread[i].core = count > 0 ? i % count : 0;
    }
    for (int i = 0; i < count; i++)
        c->core[i].first = c->core[i].last = -1;
    return 0;
}

void sim_cores_free(struct sim_cores *c)
{
    free(c->thread);
    free(c->core);
    free(c->heap);
    *c = (struct sim_cores){0};
}

/* ---- events ---- */

static void push(struct sim_cores *c, double time, int thread)
{
    if (c->count == c->room) {
        size_t room = c->room == 0 ? 1024 : 2 * c->room;
        struct sim_core_event *larger = realloc(c->heap, room * sizeof(*larger));
        if (larger == NULL) {
            c->failed = true;
            return;
        }
        c->heap = larger;
        c->room = room;
    }
    size_t i = c->count++;
    for (; i > 0 && c->heap[(i - 1) / 2].time > time; i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = (struct sim_core_event){time, thread, ++c->thread[thread].stamp};
}

static struct sim_core_event pop(struct sim_cores *c)
{
    struct sim_core_event first = c->heap[0], last = c->heap[--c->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < c->count; i = child) {
        if (child + 1 < c->count && c->heap[child + 1].time < c->heap[child].time)
            child++;
        if (c->heap[child].time >= last.time)
            break;
        c->heap[i] = c->heap[child];
    }
    c->heap[i] = last;
    return first;
}

/* ---- processors ---- */

static void put(struct sim_cores *c, int thread)
{
    struct sim_thread *t = &c->thread[thread];
    struct sim_core *core = &c->core[t->core];
    t->state = READY;
    t->next = -1;
    *(core->last >= 0 ? &c->thread[core->last].next : &core->first) = thread;
    core->last = thread;
    core->queued++;
}

static int take(struct sim_cores *c, struct sim_core *core)
{
    int thread = core->first;
    core->first = c->thread[thread].next;
    if (core->first < 0)
        core->last = -1;
    core->queued--;
    return thread;
}

static void run(struct sim_cores *c, int thread, double delay)
{
    struct sim_thread *t = &c->thread[thread];
    double work = c->cores > 0 && t->left > c->costs.slice ? c->costs.slice : t->left;
    t->state = RUNNING;
    t->left -= work;
    push(c, c->now + delay + work, thread);
}

static struct sim_core *longest(struct sim_cores *c)
{
    struct sim_core *found = &c->core[0];
    for (int i = 1; i < c->cores; i++)
        found = c->core[i].queued > found->queued ? &c->core[i] : found;
    return found;
}

/* The processor is free for its queue. */
static void dispatch(struct sim_cores *c, int index)
{
    struct sim_core *core = &c->core[index];
    core->busy = core->queued > 0;
    if (!core->busy)
        return;
    run(c, take(c, core), c->costs.change);
}

static void arrive(struct sim_cores *c, int thread)
{
    struct sim_thread *t = &c->thread[thread];
    for (int i = 0; i < c->cores && c->core[t->core].busy; i++)
        if (!c->core[i].busy)
            t->core = i;
    put(c, thread);
    if (!c->core[t->core].busy)
        dispatch(c, t->core);
}

/* Idle processors take what waits elsewhere. */
static void balance(struct sim_cores *c)
{
    c->balanced = c->now;
    for (int i = 0; i < c->cores; i++) {
        struct sim_core *from = longest(c);
        if (c->core[i].busy || from->queued == 0)
            continue;
        int thread = take(c, from);
        c->thread[thread].core = i;
        put(c, thread);
        dispatch(c, i);
    }
}

bool sim_cores_next(struct sim_cores *c, int *thread)
{
    while (c->count > 0 && !c->failed) {
        struct sim_core_event event = pop(c);
        struct sim_thread *t = &c->thread[event.thread];
        if (event.stamp != t->stamp)
            continue;
        c->now = event.time;
        if (c->cores > 0 && c->now >= c->balanced + c->costs.balance)
            balance(c);
        if (t->state == SLEEPING && c->cores > 0) {
            arrive(c, event.thread);
        } else if (t->state == SLEEPING || t->left <= 0) {
            t->state = RUNNING;
            *thread = event.thread;
            return true;
        } else if (c->core[t->core].queued == 0) {
            run(c, event.thread, 0);
        } else {
            put(c, event.thread);
            dispatch(c, t->core);
        }
    }
    return false;
}

void sim_cores_work(struct sim_cores *c, int thread, double work)
{
    c->thread[thread].left = work;
    run(c, thread, 0);
}

void sim_cores_yield(struct sim_cores *c, int thread)
{
    struct sim_thread *t = &c->thread[thread];
    t->left = c->costs.yield;
    if (c->cores == 0 || c->core[t->core].queued == 0) {
        run(c, thread, 0);
        return;
    }
    put(c, thread); /* the call is paid on its return */
    dispatch(c, t->core);
}

void sim_cores_sleep(struct sim_cores *c, int thread)
{
    struct sim_thread *t = &c->thread[thread];
    t->state = SLEEPING;
    t->left = 0;
    t->stamp++;
    t->wakes = -1;
    if (c->cores > 0)
        dispatch(c, t->core);
}

void sim_cores_wake(struct sim_cores *c, int thread, double at)
{
    struct sim_thread *t = &c->thread[thread];
    if (t->state != SLEEPING || (t->wakes >= 0 && t->wakes <= at))
        return;
    t->wakes = at;
    push(c, at > c->now ? at : c->now, thread);
}

bool sim_cores_sleeps(const struct sim_cores *c, int thread)
{
    return c->thread[thread].state == SLEEPING;
}

void sim_cores_interrupt(struct sim_cores *c, int thread)
{
    if (c->thread[thread].state == RUNNING)
        push(c, c->now, thread); /* the end of its work is outlived */
}
