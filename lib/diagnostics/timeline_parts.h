/*
 * The parts of a timeline (lib/diagnostics/timeline.h): records from the blocks' rings (timeline_records.c), progress of
 * streams (timeline_streams.c), the text of events (timeline_text.c), and the file (timeline_file.c). Unless a comment says
 * otherwise, the functions here are the poller's alone, and need no lock.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_TIMELINE_PARTS_H
#define RONDO_LIB_DIAGNOSTICS_TIMELINE_PARTS_H

#include "device/abi/platform.h"
#include "lib/base/futex.h"
#include "lib/context/runtime.h"
#include "device/daemon/trace.h"
#include "lib/diagnostics/timeline.h"

#include <stdbool.h>

/* A record that waits to be written. what: as in trace.h, with the block's index instead of the lap. */
struct rondo_timeline_record {
    uint64_t time; /* of LOST: the number of lost records */
    uint64_t what;
};
#define RONDO_TIMELINE_LOST        0  /* a kind: records were lost */
#define RONDO_TIMELINE_EXECUTED    15 /* a kind: an operation on a stream, by the host's clock */
#define RONDO_TIMELINE_BLOCK(what) ((uint32_t) (what) &0xfff)

/* What the text needs of a call. Compact, as there are many. */
enum rondo_timeline_how { RONDO_TIMELINE_STARTED, RONDO_TIMELINE_ENQUEUED, RONDO_TIMELINE_CAPTURED };
struct rondo_timeline_start {
    uint64_t time, count;
    int32_t root;
    uint32_t number : 18, rate : 8, feedback : 1, how : 2; /* number: its lowest bits, as in a record */
    uint32_t lane : 14, kind : 8, op : 8;                  /* op: rondo_op_code */
    uint32_t type;
};
_Static_assert(RONDO_LANES_MAX <= 1 << 14 && sizeof(struct rondo_timeline_start) == 32, "starts take little memory");
#define RONDO_TIMELINE_STARTS 32768 /* most starts between two calls of rondo_timeline_drain */

/* What waits to be written. Composing text takes longer than all the rest, and would take time from ranks on the same cores. */
struct rondo_timeline_retained {
    struct rondo_timeline_record *records;
    size_t record_count, record_room;
    struct rondo_timeline_start *starts;
    size_t start_count, start_room;
    uint64_t lost; /* both */
};
/* Allocates and touches memory for the first records, so that recording them causes no page faults. False if there is no
 * memory. */
bool rondo_timeline_prepare(struct rondo_timeline_retained *retained);
/* Appends a record, or counts it as lost if there is no memory. */
void rondo_timeline_keep(struct rondo_timeline_retained *retained, struct rondo_timeline_record record);
/* Appends count starts, or counts them as lost if there is no memory. */
void rondo_timeline_keep_starts(struct rondo_timeline_retained *retained, const struct rondo_timeline_start *starts,
                                uint32_t count);

/* The positions up to which the blocks' rings have been read. */
struct rondo_timeline_rings {
    uint64_t *taken; /* [blocks]: records */
    int64_t ahead;   /* upper bound of the host's clock minus the device's, ns, modulo 52 bits */
    int ahead_known;
};
/* Each takes the new records and returns the number of operations completed since its last call. The second one takes the queue
 * lock. */
uint64_t rondo_timeline_read_rings(struct rondo_runtime *runtime);
uint64_t rondo_timeline_read_streams(struct rondo_runtime *runtime);

/* Of a lane with operations in stream order: the number enqueued, and the number known to be executed. */
struct rondo_timeline_ordered {
    uint64_t enqueued, executed;
    int listed;
};
struct rondo_timeline_streams {
    struct rondo_timeline_ordered *ordered; /* [RONDO_LANES_MAX]; queue lock, as the next two */
    uint32_t *waiting;                      /* indices of lanes with operations that are not executed yet */
    uint32_t waiting_count;
};

struct rondo_timeline_file {
    char *path;
    int rank, descriptor;
    int broken;            /* the file cannot be written: that was logged once, and all that follows is dropped */
    int full;              /* this rank's share has been used: all but rondo_timeline_file_end is dropped */
    uint64_t most;         /* this rank's share: bytes; 0: no limit */
    uint64_t added;        /* bytes of its events so far */
    uint64_t dropped;      /* starts and records that will never be in the file */
    char *buffer;          /* events that are not in the file yet */
    size_t used, buffered; /* bytes and events of it */
};
/* Initializes the structure for the path and rank. most: bytes that this rank may add; 0: no limit. RONDO_ERR_MEMORY if there
 * is no memory. */
rondo_result_t rondo_timeline_file_create(struct rondo_timeline_file *file, const char *path, int rank, uint64_t most);
/* Creates or empties the file, and opens it. Called by the first rank of each host. RONDO_ERR_ARGUMENT if no file can be
 * created at the path, or may be; any other obstacle breaks the file. Waits for no other process. */
rondo_result_t rondo_timeline_file_empty(struct rondo_timeline_file *file);
/* Opens the file for appending, after the first rank has emptied it. As rondo_timeline_file_empty. */
rondo_result_t rondo_timeline_file_open(struct rondo_timeline_file *file);
/* Whether the events of one more start or record may be added. If not, counts it as dropped. */
int rondo_timeline_file_admits(struct rondo_timeline_file *file);
/* Formats one event (one line of JSON) into the buffer, and flushes a full one. Does nothing with a broken file. */
void rondo_timeline_file_event(struct rondo_timeline_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Empties the buffer into the file, under a lock on the file, for which it waits a second at most. What cannot be written
 * breaks the file. */
void rondo_timeline_file_flush(struct rondo_timeline_file *file);
/* Flushes the last time, and says in the file and the log how many events were dropped. */
void rondo_timeline_file_end(struct rondo_timeline_file *file);
/* Closes the file and frees the buffer. Does not flush. */
void rondo_timeline_file_destroy(struct rondo_timeline_file *file);

/* State that earlier records leave for the text of later ones. */
struct rondo_timeline_text {
    uint8_t *kinds;    /* [RONDO_LANES_MAX]: enum rondo_kind of the lane's operations, + 1 */
    uint64_t *visited; /* [blocks]: start of the block's current visit, + 1; 0: unknown or none */
    double last_us;    /* time of the record written last */
};
/* Writes the names of the tracks: once, at the beginning. */
void rondo_timeline_write_tracks(struct rondo_runtime *runtime);
/* Writes all retained starts and records as events, and empties the lists. */
void rondo_timeline_write_retained(struct rondo_runtime *runtime);

struct rondo_timeline {
    uint32_t paused;         /* atomic */
    int begun;               /* rondo_timeline_begin has succeeded */
    struct rondo_lock *lock; /* the queue lock: protects starts */
    struct rondo_timeline_file file;
    struct rondo_timeline_streams streams;
    /* Starts are recorded under the queue lock in one of two lists, while the poller reads the other. They have a cache line of
     * their own, because the poller often reads the fields that follow. */
    struct rondo_timeline_start *starts __attribute__((aligned(RONDO_CACHE_LINE))); /* [RONDO_TIMELINE_STARTS] */
    uint32_t start_count;
    uint64_t starts_lost;
    /* The fields below are the poller's. */
    uint64_t next_look __attribute__((aligned(RONDO_CACHE_LINE))); /* host clock */
    uint64_t pause;                                                /* ns until the next call is due */
    uint64_t quiet_since;                                          /* host clock: the last call that saw a completion */
    struct rondo_timeline_start *other_starts;
    struct rondo_timeline_retained retained;
    struct rondo_timeline_rings rings;
    struct rondo_timeline_text text;
};

/* Records a start. Submitting threads call it; trace->lock held. A start beyond RONDO_TIMELINE_STARTS is counted as lost. */
void rondo_timeline_note_start(struct rondo_timeline *trace, const struct rondo_timeline_operation *operation,
                               enum rondo_timeline_how how);

#endif
