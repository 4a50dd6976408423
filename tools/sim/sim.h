/*
 * The deadlock simulator (papers: DFCCL, EuroSys 2025, section 2.4). A round draws, for every GPU, the order in which it starts
 * its groups' collectives and where it synchronizes, and asks whether a runtime that cannot preempt would deadlock.
 *
 * Whether it does is a question of these orders alone, not of time: a wait once there goes away only when what it waits for
 * happens. So a round is decided from the few places where a GPU left the common order (tools/sim/jump.c); going through all
 * events one by one (tools/sim/events.c) gives the same verdict and is kept to check that, and for what does depend on time.
 */
#ifndef RONDO_TOOLS_SIM_SIM_H
#define RONDO_TOOLS_SIM_SIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- what to simulate ---- */

enum sim_model {
    SIM_SINGLE, /* one queue a GPU: a collective executes when all that its GPU started before have succeeded */
    SIM_SYNC,   /* streams without number, but synchronizations suspend a GPU until what it started before has succeeded */
    SIM_RONDO   /* collectives can be preempted: nothing deadlocks, and the questions are time and waste */
};
enum sim_grouping { SIM_THREE_D, SIM_FREE };
/* A GPU's collectives in the common order: in turn one of each of its groups, or all of a group and then all of the next. */
enum sim_order { SIM_INTERLEAVED, SIM_CONCATENATED };
/* CYCLE: a cycle of GPUs that wait for each other, as the paper defines it. INTERSECTION: what the paper's artifact tests in
 * the synchronization model: the GPU just suspended waits for some suspended one, and some suspended one for it. Every cycle
 * is one of these, but not the reverse. */
enum sim_test { SIM_CYCLE, SIM_INTERSECTION };
enum sim_method { SIM_JUMP, SIM_EVENTS };

struct sim_config {
    char *name;
    enum sim_model model;
    enum sim_grouping grouping;
    enum sim_order order;
    enum sim_test test;
    enum sim_method method;
    double disorder, sync; /* probabilities */
    uint64_t rounds, seed;
    int64_t resource_limit; /* collectives that a GPU can execute at once; <= 0: no limit */
    int tp, dp, pp;         /* 3D: group sizes */
    int64_t tp_collectives, dp_collectives;
    int gpus, groups; /* both groupings */
    /* Free grouping: groups of them; members of group g are member[member_first[g]] on. */
    int *member_first, *member;
    int64_t *collectives;
};

void sim_config_free(struct sim_config *config);
/* From the keys of the paper's artifact. Returns 0, or EXIT_USAGE after saying what is wrong with which key. */
int sim_config_read(json_t *root, const char *name, struct sim_config *config);
/* Whether the parts fit each other; of every configuration, also after options changed it. */
int sim_config_check(const struct sim_config *config);

struct sim_preset {
    const char *name, *summary;
    double paper; /* the ratio in the paper's table 1 */
};
size_t sim_presets(const struct sim_preset **presets);
/* Returns 0, or EXIT_USAGE after saying that there is none. */
int sim_preset_load(const char *name, struct sim_config *config);

/* ---- groups and the common order ---- */

/* Collectives are numbered through: group after group. Along each GPU's list the order value rises, so the common order has no
 * cycle whatever the groups. */
struct sim_layout {
    int gpus, groups;
    int *member_first, *member; /* [groups + 1], flat */
    uint32_t *collective_first; /* [groups + 1] */
    uint32_t *group_of, *order; /* [collectives] */
    uint64_t *list_first;       /* [gpus + 1] */
    uint32_t *list;             /* each GPU's collectives in the common order */
    uint32_t *slot_first;       /* [gpus + 1]: a GPU's memberships, by group */
    uint32_t *slot_group;       /* [memberships] */
    uint64_t *slot_position;    /* [memberships + 1]: into position */
    uint32_t *position;         /* [as list]: place in the GPU's list of a group's first, second, ... collective */
    uint64_t *choice_first;     /* [gpus + 1]: places at which a GPU can leave the order: all but its last */
    uint32_t collectives;
    const struct sim_config *config; /* for names */
};

/* Returns 0, or EXIT_USAGE or EXIT_WRONG after saying why. */
int sim_layout_make(const struct sim_config *config, struct sim_layout *layout);
/* All ranks in one group, with so many collectives; without names. Likewise. */
int sim_layout_one_group(int ranks, int64_t collectives, struct sim_layout *layout);
void sim_layout_free(struct sim_layout *layout);
/* "DP group 3 of stage 0, number 17" into text. */
void sim_collective_name(const struct sim_layout *layout, uint32_t collective, char *text, size_t bytes);
/* "d3.17": short, for drawings. */
void sim_collective_tag(const struct sim_layout *layout, uint32_t collective, char *text, size_t bytes);
/* The place of a collective in a GPU's list, or -1 if the GPU is not in its group. */
int64_t sim_position(const struct sim_layout *layout, int gpu, uint32_t collective);

/* ---- one round ---- */

/* A stretch of a GPU's list that it starts in another order; inside, some collective always waits to be caught up with. */
struct sim_segment {
    int gpu;
    uint32_t first, length;
    uint64_t order_first; /* into orders: list positions in the order of their starts */
};

struct sim_synchronization {
    int gpu;
    uint32_t before; /* collectives started before it */
};

/* Both lists are sorted by GPU, then place. Memory grows to what a round needs and is kept for the next. */
struct sim_round {
    struct sim_segment *segments;
    uint32_t *orders;
    struct sim_synchronization *synchronizations;
    size_t segment_count, segment_room, order_count, order_room, synchronization_count, synchronization_room;
    uint32_t *pending; /* while drawing */
    size_t pending_room;
    bool failed; /* out of memory */
};

/* Draws round number number: the same for the same configuration, seed and number, whatever thread draws it. */
void sim_round_draw(const struct sim_layout *layout, const struct sim_config *config, uint64_t number, struct sim_round *round);
void sim_round_free(struct sim_round *round);
/* The segment of the GPU that has place strictly inside (some of it is started and some not), or NULL. */
const struct sim_segment *sim_segment_at(const struct sim_round *round, int gpu, uint32_t place);
/* The segment that a list position belongs to, or NULL. */
const struct sim_segment *sim_segment_with(const struct sim_round *round, int gpu, uint32_t position);

/* A GPU that has started so many collectives of its list. */
struct sim_point {
    int gpu;
    uint32_t before;
    const struct sim_segment *segment; /* that it is inside of */
};
bool sim_point_has(const struct sim_layout *layout, const struct sim_round *round, const struct sim_point *point,
                   uint32_t position);
/* A collective that a has started and b, a member too, has not. Returns false if there is none: a does not wait for b. */
bool sim_point_ahead(const struct sim_layout *layout, const struct sim_round *round, const struct sim_point *a,
                     const struct sim_point *b, uint32_t *collective);

/* ---- verdicts ---- */

/* A cycle: GPU i sits in a collective (single queue) or in a synchronization after so many starts, and waits for GPU i + 1 to
 * start that collective, or one that it started before. */
struct sim_link {
    struct sim_point at; /* single queue: the GPU alone */
    uint32_t waits;      /* the collective that the next GPU has yet to start */
};
struct sim_cycle {
    struct sim_link *links;
    size_t count, room;
};

/* What a thread needs to decide rounds; kept between them. */
struct sim_jump;
struct sim_events;

/* The memory for decisions on rounds of the layout; of each kind one for each thread. -1: out of memory. */
int sim_jump_make(const struct sim_layout *layout, struct sim_jump **jump);
void sim_jump_free(struct sim_jump *jump);
#define SIM_UNDECIDED 2 /* there is so much disorder that jumping does not pay; never if a cycle is asked for */
/* Returns 1 for a deadlock, 0 for none, SIM_UNDECIDED, or -1 without memory. cycle may be NULL. */
int sim_jump_decide(struct sim_jump *jump, const struct sim_config *config, const struct sim_round *round,
                    struct sim_cycle *cycle);

/* The same by going through all events, which always decides. */
int sim_events_make(const struct sim_layout *layout, struct sim_events **events);
void sim_events_free(struct sim_events *events);
int sim_events_decide(struct sim_events *events, const struct sim_config *config, const struct sim_round *round);

/* The synchronization model in time, with the intersection test, without going through all events. */
struct sim_timed;
int sim_timed_make(const struct sim_layout *layout, struct sim_timed **timed);
void sim_timed_free(struct sim_timed *timed);
int sim_timed_decide(struct sim_timed *timed, const struct sim_round *round);

/* Prints the cycle of round number as a table: each GPU, what it waits for and which GPU has yet to start it. */
void sim_show(FILE *out, const struct sim_layout *layout, const struct sim_config *config, const struct sim_cycle *cycle,
              uint64_t number);

/* ---- many rounds ---- */

struct sim_ratio {
    uint64_t count;
    double ratio, low, high; /* 95% interval, exact (Clopper and Pearson) */
};

struct sim_result {
    uint64_t rounds;
    struct sim_ratio deadlocks; /* by the configuration's test */
    struct sim_ratio cycles;    /* of these, those with a cycle */
    double seconds;
    uint64_t first; /* number of the first round that deadlocked; UINT64_MAX: none */
};

/* Runs on threads threads; progress to standard error if it takes long. Returns 0 or EXIT_WRONG. */
int sim_run(const struct sim_config *config, int threads, struct sim_result *result);
void sim_interval(uint64_t count, uint64_t total, double *low, double *high);

#endif
