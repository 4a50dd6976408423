/*
 * The parts of a trace (lib/diagnostics/timeline.h): what is taken from the blocks' rings (lib/diagnostics/timeline_records.c)
 * and from streams (lib/diagnostics/timeline_streams.c), the text that is made of it (lib/diagnostics/timeline_text.c), and the
 * file (lib/diagnostics/timeline_file.c).
 */
#ifndef RONDO_LIB_DIAGNOSTICS_TIMELINE_PARTS_H
#define RONDO_LIB_DIAGNOSTICS_TIMELINE_PARTS_H

#include "device/abi/platform.h"
#include "lib/context/runtime.h"
#include "device/daemon/trace.h"
#include "lib/diagnostics/timeline.h"

#include <stdbool.h>

/* A record as it waits to be written. what: as in trace.h, with the block in the place of its lap. */
struct rondo_timeline_record {
    uint64_t time; /* of LOST: how many */
    uint64_t what;
};
#define RONDO_TIMELINE_LOST        0  /* as a kind */
#define RONDO_TIMELINE_EXECUTED    15 /* likewise: an operation on a stream, by the host's clock */
#define RONDO_TIMELINE_BLOCK(what) ((uint32_t) (what) &0xfff)

/* A call, as far as its description needs it: there are many. */
enum rondo_timeline_how { RONDO_TIMELINE_STARTED, RONDO_TIMELINE_ENQUEUED, RONDO_TIMELINE_CAPTURED };
struct rondo_timeline_start {
    uint64_t time, count;
    int32_t root;
    uint32_t lane;
    uint32_t number : 18, rate : 8, feedback : 1, how : 2; /* number: its lowest bits, as in a record */
    uint8_t kind, type, op;
};
#define RONDO_TIMELINE_STARTS 32768 /* between two looks of the poller */

/* What waits: making text costs more than all the rest, and would take the time from the ranks whose cores it shares. */
struct rondo_timeline_retained {
    struct rondo_timeline_record *records;
    size_t record_count, record_room;
    struct rondo_timeline_start *starts;
    size_t start_count, start_room;
    uint64_t lost; /* both */
};
/* Room for the first ones, touched: they are not to pay for it. */
bool rondo_timeline_prepare(struct rondo_timeline_retained *retained);
void rondo_timeline_keep(struct rondo_timeline_retained *retained, struct rondo_timeline_record record);
void rondo_timeline_keep_starts(struct rondo_timeline_retained *retained, const struct rondo_timeline_start *starts,
                                uint32_t count);

/* How far the blocks' rings have been read. */
struct rondo_timeline_rings {
    uint64_t *taken; /* [blocks]: records */
    int64_t ahead;   /* nanoseconds that the device's clock is before the host's, modulo its 52 bits; at most */
    int ahead_known;
};
/* Both return how many operations were completed since the last look. */
uint64_t rondo_timeline_read_rings(struct rondo_runtime *runtime);
uint64_t rondo_timeline_read_streams(struct rondo_runtime *runtime);

/* Of a lane whose operations are executed in the order of streams: how many have been enqueued, and are known to be executed.
 */
struct rondo_timeline_ordered {
    uint64_t enqueued, executed;
    int listed;
};
struct rondo_timeline_streams {
    struct rondo_timeline_ordered *ordered; /* [RONDO_LANES_MAX]; queue lock, as the next two */
    uint32_t *waiting;                      /* of them, those with operations that have not been executed */
    uint32_t waiting_count;
};

struct rondo_timeline_file {
    char *path;
    int rank, descriptor;
    int broken; /* writing has failed: told once, no more is recorded */
    char *buffer;
    size_t used;
};
rondo_result_t rondo_timeline_file_create(struct rondo_timeline_file *file, const char *path, int rank);
/* Of the first rank on each host: begins the file anew. */
rondo_result_t rondo_timeline_file_empty(const struct rondo_timeline_file *file);
rondo_result_t rondo_timeline_file_open(struct rondo_timeline_file *file);
/* Appends one event, which is written later. */
void rondo_timeline_file_event(struct rondo_timeline_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rondo_timeline_file_flush(struct rondo_timeline_file *file);
void rondo_timeline_file_destroy(struct rondo_timeline_file *file);

/* What the text of a record depends on of those before it. */
struct rondo_timeline_text {
    uint8_t *kinds;    /* [RONDO_LANES_MAX]: enum rondo_kind of the lane's operations, + 1 */
    uint64_t *visited; /* [blocks]: since when the block is on a visit, + 1; 0: on none whose beginning is known */
    double last_us;    /* of the record written last */
};
/* The names of the tracks. */
void rondo_timeline_write_tracks(struct rondo_runtime *runtime);
/* All that is kept. */
void rondo_timeline_write_retained(struct rondo_runtime *runtime);

struct rondo_timeline {
    uint32_t paused;       /* atomic */
    pthread_mutex_t *lock; /* of what is noted: the queue's */
    struct rondo_timeline_file file;
    struct rondo_timeline_streams streams;
    /* Starts are written down under the queue's lock in one of two lists, while the poller takes the other one's. On a line of
     * their own: the poller wakes up often, and looks at what follows. */
    struct rondo_timeline_start *starts __attribute__((aligned(RONDO_CACHE_LINE))); /* [RONDO_TIMELINE_STARTS] */
    uint32_t start_count;
    uint64_t starts_lost;
    /* The poller's. */
    uint64_t next_look __attribute__((aligned(RONDO_CACHE_LINE))); /* host clock */
    uint64_t pause;                                                /* to the next look, nanoseconds */
    uint64_t quiet_since;                                          /* host clock: the last look that saw a completion */
    struct rondo_timeline_start *other_starts;
    struct rondo_timeline_retained retained;
    struct rondo_timeline_rings rings;
    struct rondo_timeline_text text;
};

/* The lock is held. */
void rondo_timeline_note_start(struct rondo_timeline *trace, const struct rondo_timeline_operation *operation,
                               enum rondo_timeline_how how);

#endif
