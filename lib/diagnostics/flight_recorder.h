/*
 * The flight recorder: a ring of the last operations of this rank, always on. A record is two cache lines: what was called,
 * which a request prepares once, and what has become of it. Operations are recorded under the queue lock, so there is one
 * writer at a time; any thread reads, without a lock, and takes only records that nothing was written to meanwhile. Relies on
 * the counter of cycles where there is one that runs at a constant rate, because a clock costs more than the rest of a record.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_FLIGHT_RECORDER_H
#define RONDO_LIB_DIAGNOSTICS_FLIGHT_RECORDER_H

#include "device/abi/platform.h"
#include "lib/call/call.h"

#include <stddef.h>
#include <stdint.h>

#define RONDO_FLIGHT_RECORDS 1024 /* of a ring; a power of two */
#define RONDO_FLIGHT_LINE    64

/* How an operation was started. */
enum rondo_flight_family {
    RONDO_FLIGHT_BLOCKING,
    RONDO_FLIGHT_NONBLOCKING,
    RONDO_FLIGHT_PERSISTENT,
    RONDO_FLIGHT_STREAM,
    RONDO_FLIGHT_FAMILIES
};

/* What is the same at every start of a request. One cache line. */
struct rondo_flight_call {
    uint64_t comm, lane;    /* ids */
    uint64_t count;         /* as of the call */
    uint64_t input, output; /* elements in this rank's buffers */
    uint64_t bytes;         /* the larger of the two buffers */
    uint32_t kind;          /* enum rondo_kind */
    int32_t root;           /* or the peer */
    uint32_t type;          /* rondo_datatype_t */
    uint32_t op;            /* rondo_op_t */
};

/* A call as a request keeps it. id: different for all that a recorder has described, never 0. */
struct rondo_flight_template {
    struct rondo_flight_call call;
    uint64_t id;
};

enum { RONDO_FLIGHT_CALL_WORDS = sizeof(struct rondo_flight_call) / sizeof(uint64_t) };

/* The stamp of the operation that starts at a position, never 0 and even; and the position, also of an ended one. */
#define RONDO_FLIGHT_STAMP(position) (2 * ((position) + 1))
#define RONDO_FLIGHT_POSITION(stamp) ((stamp) / 2 - 1)

/* A place of the ring. Every word is accessed atomically. */
struct rondo_flight_record {
    uint64_t words[RONDO_FLIGHT_CALL_WORDS]; /* struct rondo_flight_call */
    uint64_t stamp;  /* RONDO_FLIGHT_STAMP of the operation, plus 1 once it has ended; 0: being written, or nothing is here */
    uint64_t number; /* in the lane */
    uint64_t started, completed; /* ticks; completed 0: under way */
    uint64_t outcome;            /* the family, and the result in the upper half */
    uint64_t id;                 /* of the template in words; only writers read it */
    uint64_t unused[2];
} __attribute__((aligned(RONDO_FLIGHT_LINE)));

/* Two readings at one time, by which ticks are converted: on the line between this and a later one. */
struct rondo_flight_time {
    uint64_t ticks, ns; /* ns: rondo_clock_ns */
};

struct rondo_flight_recorder {
    struct rondo_flight_record ring[RONDO_FLIGHT_RECORDS];
    uint64_t next;    /* position of the next operation; written under the queue lock, atomic */
    uint64_t dropped; /* completions whose record had been overwritten; the same */
    uint64_t ids;     /* templates described; atomic */
    int counts_cycles;
    struct rondo_flight_time origin;
};

/* A record as a reader gets it. Times are of rondo_clock_ns; completed_ns 0: under way, or, of an operation in stream order,
 * not known. */
struct rondo_flight_entry {
    struct rondo_flight_call call;
    uint64_t position; /* operations recorded before it */
    uint64_t number, started_ns, completed_ns;
    enum rondo_flight_family family;
    rondo_result_t result; /* once it is completed */
};

/* Makes an empty recorder, which rondo_flight_destroy frees. RONDO_ERR_MEMORY. */
rondo_result_t rondo_flight_create(struct rondo_flight_recorder **recorder);
void rondo_flight_destroy(struct rondo_flight_recorder *recorder);
/* Prepares what records tell of a call with resolved arrays. comm and lane are ids. Any thread. */
void rondo_flight_describe(struct rondo_flight_recorder *recorder, struct rondo_flight_template *recorded,
                           const struct rondo_call *call, const struct rondo_blocks *blocks, uint64_t comm, uint64_t lane);
/* Copies the records that are whole, oldest first, to entries (room for RONDO_FLIGHT_RECORDS). Returns how many. Any thread,
 * without a lock; does not wait. A record that is written meanwhile is left out. */
size_t rondo_flight_read(const struct rondo_flight_recorder *recorder, struct rondo_flight_entry *entries);

/* The time by which operations are recorded. */
static inline uint64_t rondo_flight_ticks(const struct rondo_flight_recorder *recorder)
{
    if (__builtin_expect(recorder->counts_cycles, 1)) {
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
        uint64_t count;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
        return count;
#endif
    }
    return rondo_clock_ns();
}

/* Bars the record from readers until it is closed. */
static inline void rondo_flight_open(struct rondo_flight_record *record)
{
    __atomic_store_n(&record->stamp, 0, __ATOMIC_RELAXED);
}

/* Gives the record to readers. Release: a reader that acquires the stamp sees every store before it. */
static inline void rondo_flight_close(struct rondo_flight_record *record, uint64_t stamp)
{
    __atomic_store_n(&record->stamp, stamp, __ATOMIC_RELEASE);
}

/* Release: the stamp of rondo_flight_open comes before the word, so a reader that acquires the word sees that stamp, or a later
 * one, when it reads the stamp again. */
static inline void rondo_flight_set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Records an operation that starts, and returns its stamp, never 0, by which rondo_flight_end finds it. completed: 0, or the
 * ticks of an operation that has succeeded already. Queue lock held. */
static inline uint64_t rondo_flight_begin(struct rondo_flight_recorder *recorder, const struct rondo_flight_template *what,
                                          uint64_t number, enum rondo_flight_family family, uint64_t started,
                                          uint64_t completed)
{
    const uint64_t position = recorder->next;
    struct rondo_flight_record *record = &recorder->ring[position % RONDO_FLIGHT_RECORDS];
    rondo_flight_open(record);
    if (record->id != what->id) { /* a loop finds its call here when the ring has come round */
        uint64_t words[RONDO_FLIGHT_CALL_WORDS];
        __builtin_memcpy(words, &what->call, sizeof(words));
        for (int i = 0; i < RONDO_FLIGHT_CALL_WORDS; i++)
            rondo_flight_set(&record->words[i], words[i]);
        record->id = what->id;
    }
    rondo_flight_set(&record->number, number);
    rondo_flight_set(&record->started, started);
    rondo_flight_set(&record->completed, completed);
    rondo_flight_set(&record->outcome, (uint64_t) family);
    rondo_flight_close(record, RONDO_FLIGHT_STAMP(position));
    rondo_flight_set(&recorder->next, position + 1);
    __builtin_prefetch(&recorder->ring[(position + 1) % RONDO_FLIGHT_RECORDS].stamp, 1);
    return RONDO_FLIGHT_STAMP(position);
}

/* Records that the operation of the stamp has completed. Does nothing if the ring has come round meanwhile. Queue lock held. */
static inline void rondo_flight_end(struct rondo_flight_recorder *recorder, uint64_t stamp, rondo_result_t result,
                                    uint64_t completed)
{
    struct rondo_flight_record *record = &recorder->ring[RONDO_FLIGHT_POSITION(stamp) % RONDO_FLIGHT_RECORDS];
    if (record->stamp != stamp) {
        rondo_flight_set(&recorder->dropped, recorder->dropped + 1);
        return;
    }
    const uint64_t outcome = (record->outcome & UINT32_MAX) | (uint64_t) result << 32;
    rondo_flight_open(record);
    rondo_flight_set(&record->completed, completed);
    rondo_flight_set(&record->outcome, outcome);
    rondo_flight_close(record, stamp + 1); /* with the same stamp a reader could get half of the end */
}

#endif
