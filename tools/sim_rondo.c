/* See sim_rondo.h. Event-driven: each GPU has at most one event for its host and one for its daemon. */
#include "sim_rondo.h"

#include <stdlib.h>

enum what { HOST, DAEMON, RESTART };
enum doing { ASLEEP, VISITING, SPINNING, MOVING };

struct task {
    uint64_t mine, before, after; /* into progress: this GPU's part, and its ring neighbours' */
    uint32_t primitives;
    int before_gpu, after_gpu;
};

struct gpu {
    /* Host: */
    uint32_t started;
    size_t synchronization, segment;
    bool synchronizing;
    /* Daemon: */
    bool alive;
    enum doing doing;
    bool progressed; /* in this round of visits */
    uint32_t fetched, tasks, room, at;
    struct task *table;
    double grant, budget; /* of the round's next task; of the current one: polls */
    double spin_since, entered, last_progress, pause, not_before;
    uint64_t finished_at_entry, finished;
    uint32_t daemon_stamp, restart_stamp;
};

struct event {
    double time;
    int gpu;
    enum what what;
    uint32_t stamp;
};

struct world {
    const struct sim_layout *layout;
    const struct sim_round *round;
    const struct sim_machine *machine;
    struct sim_rondo_outcome *out;
    struct gpu *gpus;
    uint16_t *progress;  /* primitives done, by list position of each GPU */
    uint32_t *submitted; /* list positions in the order of their starts, each GPU's from list_first */
    struct event *heap;
    size_t count, room;
    bool failed;
};

/* ---- events ---- */

static void push(struct world *w, double time, int gpu, enum what what)
{
    struct gpu *g = &w->gpus[gpu];
    uint32_t stamp = what == DAEMON ? ++g->daemon_stamp : what == RESTART ? ++g->restart_stamp : 0;
    if (w->count == w->room) {
        size_t room = w->room == 0 ? 1024 : 2 * w->room;
        struct event *larger = realloc(w->heap, room * sizeof(*larger));
        if (larger == NULL) {
            w->failed = true;
            return;
        }
        w->heap = larger;
        w->room = room;
    }
    size_t i = w->count++;
    for (; i > 0 && w->heap[(i - 1) / 2].time > time; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = (struct event){time, gpu, what, stamp};
}

static struct event pop(struct world *w)
{
    struct event first = w->heap[0], last = w->heap[--w->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->count; i = child) {
        if (child + 1 < w->count && w->heap[child + 1].time < w->heap[child].time)
            child++;
        if (w->heap[child].time >= last.time)
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return first;
}

/* ---- the daemon ---- */

static uint32_t length_of(const struct world *w, int gpu)
{
    return (uint32_t) (w->layout->list_first[gpu + 1] - w->layout->list_first[gpu]);
}

static void enter(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    g->alive = true;
    g->doing = VISITING;
    g->at = 0;
    g->progressed = true;
    g->grant = w->machine->initial;
    g->entered = g->last_progress = now + w->machine->launch;
    g->finished_at_entry = g->finished;
    push(w, now + w->machine->launch, gpu, DAEMON);
}

static void leave(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    g->alive = false;
    g->doing = ASLEEP;
    g->daemon_stamp++;
    w->out->quits++;
    if (g->synchronizing) {
        g->synchronizing = false;
        push(w, now, gpu, HOST);
    }
    if (g->finished == g->started)
        return; /* the next start launches it */
    if (g->finished > g->finished_at_entry)
        g->pause = w->machine->first_pause;
    push(w, now + g->pause, gpu, RESTART);
    g->pause = 2 * g->pause < w->machine->last_pause ? 2 * g->pause : w->machine->last_pause;
}

static void fetch(struct world *w, int gpu, double now)
{
    const struct sim_layout *l = w->layout;
    struct gpu *g = &w->gpus[gpu];
    for (; g->fetched < g->started; g->fetched++) {
        g->last_progress = now; /* news count as such */
        uint32_t position = w->submitted[l->list_first[gpu] + g->fetched];
        uint32_t collective = l->list[l->list_first[gpu] + position], group = l->group_of[collective];
        int members = l->member_first[group + 1] - l->member_first[group], me = 0;
        const int *member = l->member + l->member_first[group];
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
        while (member[me] != gpu)
            me++;
        int before = member[(me + members - 1) % members], after = member[(me + 1) % members];
        g->table[g->tasks++] = (struct task){.mine = l->list_first[gpu] + position,
                                             .before = l->list_first[before] + (uint64_t) sim_position(l, before, collective),
                                             .after = l->list_first[after] + (uint64_t) sim_position(l, after, collective),
                                             .primitives = members == 1 ? 1 : 2 * ((uint32_t) members - 1),
                                             .before_gpu = before,
                                             .after_gpu = after};
        if (g->tasks > w->out->longest_queue)
            w->out->longest_queue = g->tasks;
    }
}

static bool is_ready(const struct world *w, const struct task *task)
{
    uint32_t done = w->progress[task->mine];
    if (task->mine == task->before)
        return true;
    return (done == 0 || w->progress[task->before] >= done) && done < w->progress[task->after] + w->machine->slots;
}

/* The table's next task gets its turn, or the round of visits is over. */
static void visit(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    if (g->at >= g->tasks) {
        double since = g->tasks == 0 ? m->quit_idle : m->quit_stuck;
        if (now >= g->entered + m->residency || (now >= g->last_progress + since && g->fetched == g->started)) {
            leave(w, gpu, now);
            return;
        }
        /* As in the daemon: what it has comes first, unless nothing moved. */
        if (g->tasks == 0 || !g->progressed)
            fetch(w, gpu, now);
        g->at = 0;
        g->grant = m->initial;
        g->progressed = false;
        if (g->tasks == 0) {
            double end = g->last_progress + m->quit_idle;
            g->doing = ASLEEP; /* a start wakes it */
            push(w, end > now ? end : now, gpu, DAEMON);
            return;
        }
    }
    struct task *task = &g->table[g->at];
    g->budget = g->grant;
    g->grant = g->grant * m->decay / 100 > 1 ? g->grant * m->decay / 100 : 1;
    g->doing = is_ready(w, task) ? MOVING : SPINNING;
    g->spin_since = now;
    push(w, now + (g->doing == MOVING ? m->primitive : g->budget * m->poll), gpu, DAEMON);
}

/* The GPU has published a primitive: whoever spins for it goes on. */
static void wake(struct world *w, int gpu, uint64_t position, double now)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    if (!g->alive || g->doing != SPINNING || g->table[g->at].mine != position || !is_ready(w, &g->table[g->at]))
        return;
    w->out->spinning += now - g->spin_since;
    g->doing = MOVING;
    push(w, now + m->primitive, gpu, DAEMON);
}

static void finish_primitive(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_machine *m = w->machine;
    struct task task = g->table[g->at];
    uint32_t done = ++w->progress[task.mine];
    w->out->working += m->primitive;
    g->progressed = true;
    g->last_progress = now;
    wake(w, task.after_gpu, task.after, now);
    if (task.before_gpu != task.after_gpu)
        wake(w, task.before_gpu, task.before, now);
    if (done == task.primitives) {
        g->finished++;
        w->out->finished++;
        w->out->finish = now;
        g->tasks--;
        for (uint32_t i = g->at; i < g->tasks; i++)
            g->table[i] = g->table[i + 1];
        g->doing = VISITING;
        push(w, now + m->visit, gpu, DAEMON);
        return;
    }
    g->budget = g->budget * m->boost < m->cap ? g->budget * m->boost : m->cap;
    g->doing = is_ready(w, &g->table[g->at]) ? MOVING : SPINNING;
    g->spin_since = now;
    push(w, now + (g->doing == MOVING ? m->primitive : g->budget * m->poll), gpu, DAEMON);
}

static void run_daemon(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    if (g->doing == MOVING) {
        finish_primitive(w, gpu, now);
    } else if (g->doing == SPINNING) {
        w->out->preemptions++;
        w->out->spinning += now - g->spin_since;
        g->at++;
        g->doing = VISITING;
        push(w, now + w->machine->visit, gpu, DAEMON);
    } else {
        visit(w, gpu, now);
    }
}

/* ---- the host ---- */

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

static void run_host(struct world *w, int gpu, double now)
{
    struct gpu *g = &w->gpus[gpu];
    const struct sim_round *round = w->round;
    if (g->started == length_of(w, gpu))
        return;
    if (g->synchronization < round->synchronization_count && round->synchronizations[g->synchronization].gpu == gpu &&
        round->synchronizations[g->synchronization].before == g->started) {
        g->synchronization++;
        g->synchronizing = g->alive;
        if (!g->alive)
            push(w, now + w->machine->start, gpu, HOST);
        return; /* else the daemon's leaving goes on with us */
    }
    w->submitted[w->layout->list_first[gpu] + g->started] = next_position(w, g, gpu);
    g->started++;
    g->pause = w->machine->first_pause;
    if (!g->alive) {
        g->restart_stamp++;
        enter(w, gpu, now);
    } else if (g->doing == ASLEEP) {
        g->doing = VISITING;
        g->last_progress = now;
        push(w, now, gpu, DAEMON);
    }
    push(w, now + w->machine->start, gpu, HOST);
}

int sim_rondo_round(const struct sim_layout *l, const struct sim_round *round, const struct sim_machine *machine,
                    struct sim_rondo_outcome *out)
{
    struct world w = {.layout = l, .round = round, .machine = machine, .out = out};
    uint64_t total = l->list_first[l->gpus], events = 0;
    size_t synchronization = 0, segment = 0;
    *out = (struct sim_rondo_outcome){.collectives = total};
    w.gpus = calloc((size_t) l->gpus, sizeof(*w.gpus));
    w.progress = calloc(total + 1, sizeof(*w.progress));
    w.submitted = calloc(total + 1, sizeof(*w.submitted));
    w.failed = w.gpus == NULL || w.progress == NULL || w.submitted == NULL || round->failed;
    for (int gpu = 0; gpu < l->gpus && !w.failed; gpu++) {
        w.gpus[gpu] = (struct gpu){.synchronization = synchronization, .segment = segment, .pause = machine->first_pause};
        while (synchronization < round->synchronization_count && round->synchronizations[synchronization].gpu == gpu)
            synchronization++;
        while (segment < round->segment_count && round->segments[segment].gpu == gpu)
            segment++;
        push(&w, 0, gpu, HOST);
    }
    while (w.count > 0 && !w.failed && out->finished < total && !out->stuck) {
        struct event e = pop(&w);
        struct gpu *g = &w.gpus[e.gpu];
        out->stuck = ++events > 4096 + 4096 * (total + 1) * 16; /* far beyond what any schedule takes */
        if (e.what == HOST)
            run_host(&w, e.gpu, e.time);
        else if (e.what == DAEMON && e.stamp == g->daemon_stamp)
            run_daemon(&w, e.gpu, e.time);
        else if (e.what == RESTART && e.stamp == g->restart_stamp && !g->alive)
            enter(&w, e.gpu, e.time);
    }
    out->stuck = out->stuck || out->finished < total;
    for (int gpu = 0; w.gpus != NULL && gpu < l->gpus; gpu++)
        free(w.gpus[gpu].table);
    free(w.gpus);
    free(w.progress);
    free(w.submitted);
    free(w.heap);
    return w.failed ? -1 : 0;
}
