/* The daemons of tools/sim/rondo.h: as device/daemon/daemon.h has them, one block each. */
#include "tools/sim/rondo_world.h"

#include <stdlib.h>

static void enter(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    g->alive = true;
    g->called = g->idle = g->glancing = g->progressed = g->yields = false;
    g->doing = VISITING;
    g->at = g->tasks; /* looks for news first */
    g->idle_turns = 0;
    g->entered = g->last_progress = w->cores.now + w->machine->launch;
    g->finished_at_entry = g->finished;
    sim_cores_work(&w->cores, daemon_of(gpu), w->machine->launch);
}

static void leave(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    double now = w->cores.now;
    g->alive = false;
    w->out->quits++;
    sim_cores_sleep(&w->cores, daemon_of(gpu));
    if (g->synchronizing) {
        g->synchronizing = false;
        sim_cores_wake(&w->cores, host_of(gpu), now + (m->cores > 0 ? m->wake : 0));
    }
    if (g->finished == g->started)
        return; /* the next start launches it */
    if (g->finished > g->finished_at_entry)
        g->pause = m->first_pause;
    sim_cores_wake(&w->cores, daemon_of(gpu), now + g->pause + (m->cores > 0 ? m->timer : 0));
    g->pause = 2 * g->pause < m->last_pause ? 2 * g->pause : m->last_pause;
}

static struct task make_task(const struct world *w, int gpu, uint32_t position)
{
    const struct sim_layout *l = w->layout;
    uint32_t collective = l->list[l->list_first[gpu] + position];
    int group = (int) l->group_of[collective], members = l->member_first[group + 1] - l->member_first[group], me = 0;
    const int *member = l->member + l->member_first[group];
    struct task task = {.mine = l->list_first[gpu] + position, .collective = collective, .group = group};
    task.kind = (collective - l->collective_first[group]) % w->load->kinds;
    task.pairs = members <= w->machine->pairs_max;
    task.primitives = members == 1 ? 1 : task.pairs ? 3 : 2 * ((uint32_t) members - 1);
    while (member[me] != gpu)
        me++;
    task.before_gpu = member[(me + members - 1) % members];
    task.after_gpu = member[(me + 1) % members];
    task.before = l->list_first[task.before_gpu] + (uint64_t) sim_position(l, task.before_gpu, collective);
    task.after = l->list_first[task.after_gpu] + (uint64_t) sim_position(l, task.after_gpu, collective);
    return task;
}

static void fetch(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    g->rounds_without_fetch = 0;
    for (; g->fetched < g->started; g->fetched++) {
        g->last_progress = w->cores.now; /* news count as such */
        g->idle_turns = 0;
        if (g->tasks == g->room) {
            uint32_t room = g->room == 0 ? 16 : 2 * g->room;
            struct task *larger = realloc(g->table, room * sizeof(*larger));
            if (larger == NULL) {
                w->failed = true;
                return;
            }
            g->table = larger;
            g->room = room;
        }
        g->table[g->tasks++] = make_task(w, gpu, w->submitted[w->layout->list_first[gpu] + g->fetched]);
        if (g->tasks > w->out->longest_queue)
            w->out->longest_queue = g->tasks;
    }
}

/* Whose progress the task's next primitive needs more of, and how much; false: it can begin. */
static bool misses(const struct world *w, const struct task *task, uint64_t *whose, uint32_t *needed)
{
    const struct sim_layout *l = w->layout;
    uint32_t done = w->progress[task->mine];
    *needed = done;
    if (task->mine == task->before)
        return false;
    if (!task->pairs) {
        *whose = task->before;
        if (done > 0 && w->progress[task->before] < done)
            return true;
        *whose = task->after;
        *needed = done < w->machine->slots ? 0 : done - w->machine->slots + 1;
        return w->progress[task->after] < *needed;
    }
    for (int i = l->member_first[task->group]; done > 0 && i < l->member_first[task->group + 1]; i++) {
        *whose = l->list_first[l->member[i]] + (uint64_t) sim_position(l, l->member[i], task->collective);
        if (w->progress[*whose] < done)
            return true;
    }
    return false;
}

static bool is_ready(const struct world *w, const struct task *task)
{
    uint64_t whose;
    uint32_t needed;
    return !misses(w, task, &whose, &needed);
}

/* What a glance says of a task among others. */
static bool is_worth(const struct world *w, const struct task *task)
{
    return w->machine->readiness_check <= 0 || !task->preempted || w->progress[task->awaited] >= task->needed;
}

static void move(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    g->doing = MOVING;
    sim_cores_work(&w->cores, daemon_of(gpu), w->load->primitive[g->table[g->at].kind]);
}

/* What the wait for a primitive does next. */
static void spin(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    const double spun = w->cores.now - g->spin_since, left = g->budget - spun;
    const double most = m->cores > 0 ? m->yield_every * m->poll : left, time = left < most ? left : most;
    if (is_ready(w, &g->table[g->at])) {
        w->out->spinning += spun;
        move(w, gpu);
    } else if (left <= 0) {
        struct task *task = &g->table[g->at++];
        w->out->preemptions++;
        w->out->spinning += w->cores.now - g->spin_since;
        task->preempted = misses(w, task, &task->awaited, &task->needed);
        g->doing = VISITING;
        sim_cores_work(&w->cores, daemon_of(gpu), m->visit);
    } else if (g->yields) {
        g->yields = false;
        sim_cores_yield(&w->cores, daemon_of(gpu));
    } else {
        g->yields = m->cores > 0 && time >= most;
        sim_cores_work(&w->cores, daemon_of(gpu), time > m->poll ? time : m->poll);
    }
}

/* The current task's next primitive, or a wait for it. */
static void go_on(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    if (is_ready(w, &g->table[g->at])) {
        move(w, gpu);
        return;
    }
    g->doing = SPINNING;
    g->spin_since = w->cores.now;
    g->yields = false;
    spin(w, gpu);
}

/* Of a round in which nothing moved, or without tasks: whether the processor is given away before the next one. */
static bool relax(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    if (w->machine->cores == 0 || g->progressed || ++g->idle_turns % w->machine->yield_every != 0)
        return false;
    sim_cores_yield(&w->cores, daemon_of(gpu));
    return true;
}

/* Nothing to do: with a processor to itself the daemon may as well sleep in the simulation. */
static void idle(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    if (m->cores > 0) {
        sim_cores_work(&w->cores, daemon_of(gpu), m->yield_every * (m->poll + m->visit / 2));
        g->idle_turns += m->yield_every - 1 - g->idle_turns % m->yield_every; /* the next one yields */
        return;
    }
    g->idle = true;
    sim_cores_sleep(&w->cores, daemon_of(gpu));
    sim_cores_wake(&w->cores, daemon_of(gpu), g->last_progress + m->quit_idle);
}

/* A round found nothing worth a visit. As when idle, the daemon may sleep if it has a processor to itself. */
static void look_again(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    double stuck = g->last_progress + m->quit_stuck, resided = g->entered + m->residency;
    if (m->cores > 0) {
        double cost = m->visit + g->tasks * m->readiness_check;
        w->out->spinning += cost;
        sim_cores_work(&w->cores, daemon_of(gpu), cost);
        return;
    }
    g->glancing = true;
    g->spin_since = w->cores.now;
    sim_cores_sleep(&w->cores, daemon_of(gpu));
    sim_cores_wake(&w->cores, daemon_of(gpu), stuck < resided ? stuck : resided);
}

/* Goes on to the next task that is worth a visit. false: there is none, and what comes next has been seen to. */
static bool readiness_check(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    uint32_t from = g->at;
    while (g->tasks > 1 && g->at < g->tasks && !is_worth(w, &g->table[g->at]))
        g->at++;
    if (g->at < g->tasks)
        return true;
    if (from == 0)
        look_again(w, gpu);
    else
        sim_cores_work(&w->cores, daemon_of(gpu), (g->at - from) * w->machine->readiness_check);
    return false;
}

/* The table's next task gets its turn, or the round of visits is over. */
static void visit(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    double now = w->cores.now;
    if (g->glancing)
        w->out->spinning += now - g->spin_since;
    g->idle = g->glancing = false;
    if (g->at >= g->tasks) {
        double since = g->tasks == 0 ? m->quit_idle : m->quit_stuck;
        if (now >= g->entered + m->residency || (now >= g->last_progress + since && g->fetched == g->started)) {
            leave(w, gpu);
            return;
        }
        /* As in the daemon: what it has comes first, unless nothing moved. */
        if (g->tasks == 0 || !g->progressed || ++g->rounds_without_fetch >= 16)
            fetch(w, gpu);
        g->at = 0;
        g->grant = m->initial;
        if (relax(w, gpu)) {
            g->at = g->tasks;
            g->idle_turns++; /* once */
            return;
        }
        g->progressed = false;
        if (g->tasks == 0) {
            idle(w, gpu);
            return;
        }
    }
    if (!readiness_check(w, gpu))
        return;
    g->budget = g->grant;
    g->grant = g->grant * m->decay / 100 > 1 ? g->grant * m->decay / 100 : 1;
    go_on(w, gpu);
}

/* With processors to themselves: the GPU has published a primitive, and who waits for it goes on. */
static void tell(struct world *w, const struct task *task, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    if (g->alive && g->doing == SPINNING && g->table[g->at].collective == task->collective && is_ready(w, &g->table[g->at]))
        sim_cores_interrupt(&w->cores, daemon_of(gpu));
    for (uint32_t i = 0; g->glancing && i < g->tasks; i++)
        if (g->table[i].collective == task->collective && is_worth(w, &g->table[i]))
            sim_cores_wake(&w->cores, daemon_of(gpu), w->cores.now + w->machine->visit);
}

static void tell_all(struct world *w, int gpu, const struct task *task)
{
    const struct sim_layout *l = w->layout;
    if (w->machine->cores > 0)
        return;
    for (int i = l->member_first[task->group]; task->pairs && i < l->member_first[task->group + 1]; i++)
        if (l->member[i] != gpu)
            tell(w, task, l->member[i]);
    if (!task->pairs)
        tell(w, task, task->after_gpu);
    if (!task->pairs && task->before_gpu != task->after_gpu)
        tell(w, task, task->before_gpu);
}

/* The host that waited for it has run the daemon meanwhile, and now goes its way: the daemon's own thread is called, or, if
 * nothing is left to do, none. */
static void hand_back(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    g->awaits = false;
    sim_cores_wake(&w->cores, host_of(gpu), w->cores.now);
    if (w->machine->cores == 0) {
        sim_cores_work(&w->cores, daemon_of(gpu), w->machine->visit);
    } else if (g->finished == g->started) {
        leave(w, gpu);
    } else {
        sim_cores_sleep(&w->cores, daemon_of(gpu));
        sim_cores_wake(&w->cores, daemon_of(gpu), w->cores.now + w->machine->wake);
    }
}

static void finish_primitive(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    struct task task = g->table[g->at];
    w->out->working += w->load->primitive[task.kind];
    g->progressed = true;
    g->idle_turns = 0;
    g->last_progress = w->cores.now;
    if (++w->progress[task.mine] < task.primitives) {
        tell_all(w, gpu, &task);
        g->budget = g->budget * m->boost < m->cap ? g->budget * m->boost : m->cap;
        go_on(w, gpu);
        return;
    }
    tell_all(w, gpu, &task);
    g->finished++;
    w->finished[task.mine] = 1;
    w->out->finished++;
    w->out->finish = w->cores.now;
    g->tasks--;
    for (uint32_t i = g->at; i < g->tasks; i++)
        g->table[i] = g->table[i + 1];
    g->doing = VISITING;
    if (g->awaits && w->finished[w->layout->list_first[gpu] + g->waited])
        hand_back(w, gpu);
    else
        sim_cores_work(&w->cores, daemon_of(gpu), m->visit);
}

void sim_daemon_run(struct world *w, int gpu)
{
    struct gpu *g = &w->gpus[gpu];
    if (!g->alive)
        enter(w, gpu);
    else if (g->doing == MOVING)
        finish_primitive(w, gpu);
    else if (g->doing == SPINNING)
        spin(w, gpu);
    else
        visit(w, gpu);
}
