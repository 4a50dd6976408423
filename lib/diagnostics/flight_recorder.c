/* Making the flight recorder, and reading it (lib/diagnostics/flight_recorder.h has the writing). Relies on what the kernel
 * says of the cycle counter: if its own clock runs by it, so may the recorder. */
#include "lib/diagnostics/flight_recorder.h"

#include "lib/base/error.h"
#include "lib/base/file.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

_Static_assert(sizeof(struct rondo_flight_call) == RONDO_FLIGHT_LINE, "what a request prepares is one cache line");
_Static_assert(sizeof(struct rondo_flight_record) == 2 * RONDO_FLIGHT_LINE, "a record is two cache lines");

/* Whether the counter of cycles has the same constant rate and value on all cores. */
static int counts_cycles(void)
{
#if defined(__x86_64__)
    char source[16];
    return rondo_file_read(CLOCK_SOURCE, source, sizeof(source)) >= 4 && memcmp(source, "tsc\n", 4) == 0;
#elif defined(__aarch64__)
    return 1; /* the architecture says so */
#else
    return 0;
#endif
}

static struct rondo_flight_time now(const struct rondo_flight_recorder *recorder)
{
    const uint64_t ticks = rondo_flight_ticks(recorder);
    return (struct rondo_flight_time){.ticks = ticks, .ns = rondo_clock_ns()};
}

rondo_result_t rondo_flight_create(struct rondo_flight_recorder **result)
{
    struct rondo_flight_recorder *recorder = *result = aligned_alloc(RONDO_FLIGHT_LINE, sizeof(*recorder));
    if (recorder == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the flight recorder");
    memset(recorder, 0, sizeof(*recorder));
    recorder->counts_cycles = counts_cycles();
    recorder->origin = now(recorder);
    return RONDO_SUCCESS;
}

void rondo_flight_destroy(struct rondo_flight_recorder *recorder)
{
    free(recorder);
}

/* The elements in this rank's input or output. */
static uint64_t count_elements(const struct rondo_call *call, const struct rondo_blocks *blocks, int output)
{
    const size_t *counts = output ? call->receive_counts : call->send_counts;
    if (counts == NULL)
        return call->count * rondo_kind_blocks(call->kind, output ? RONDO_OUTPUT : RONDO_INPUT, (uint32_t) blocks->size);
    uint64_t sum = 0;
    for (int block = 0; block < (output ? blocks->received : blocks->sent); block++)
        sum += counts[block];
    return sum;
}

void rondo_flight_describe(struct rondo_flight_recorder *recorder, struct rondo_flight_template *recorded,
                           const struct rondo_call *call, const struct rondo_blocks *blocks, uint64_t comm, uint64_t lane)
{
    const uint64_t input = count_elements(call, blocks, 0), output = count_elements(call, blocks, 1);
    recorded->id = __atomic_add_fetch(&recorder->ids, 1, __ATOMIC_RELAXED);
    recorded->call = (struct rondo_flight_call){.comm = comm,
                                                .lane = lane,
                                                .count = call->count,
                                                .input = input,
                                                .output = output,
                                                .bytes = (input > output ? input : output) * rondo_type_bytes(call->type),
                                                .kind = (uint32_t) call->kind,
                                                .root = call->root,
                                                .type = (uint32_t) call->type,
                                                .op = (uint32_t) call->op};
}

/* The ticks as nanoseconds of rondo_clock_ns. The rate is that between the recorder's origin and until. */
static uint64_t to_ns(const struct rondo_flight_recorder *recorder, const struct rondo_flight_time *until, uint64_t ticks)
{
    const struct rondo_flight_time *origin = &recorder->origin;
    if (!recorder->counts_cycles || until->ticks <= origin->ticks)
        return ticks;
    const double rate = (double) (until->ns - origin->ns) / (double) (until->ticks - origin->ticks);
    /* From the nearer end, where a double is exact enough for times after months, too. */
    const double back = (double) (int64_t) (until->ticks - ticks) * rate;
    return until->ns - (uint64_t) (int64_t) back;
}

/* Copies a record if it is that of the position, and whole. Acquire, of the stamp: the words are read after its first reading;
 * of each word: before its second. A writer that has changed one of them has set the stamp to 0 before (rondo_flight_set), so
 * an equal stamp at the second reading proves that no word that was read is newer, and the first that none is older: no two
 * writes leave the same stamp. test/models/flight_recorder.pml has the argument. */
static int read_record(const struct rondo_flight_record *record, uint64_t position, struct rondo_flight_record *copy)
{
    const uint64_t stamp = __atomic_load_n(&record->stamp, __ATOMIC_ACQUIRE);
    if (stamp == 0 || RONDO_FLIGHT_POSITION(stamp) != position)
        return 0;
    for (int i = 0; i < RONDO_FLIGHT_CALL_WORDS; i++)
        copy->words[i] = __atomic_load_n(&record->words[i], __ATOMIC_ACQUIRE);
    copy->number = __atomic_load_n(&record->number, __ATOMIC_ACQUIRE);
    copy->started = __atomic_load_n(&record->started, __ATOMIC_ACQUIRE);
    copy->completed = __atomic_load_n(&record->completed, __ATOMIC_ACQUIRE);
    copy->outcome = __atomic_load_n(&record->outcome, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&record->stamp, __ATOMIC_RELAXED) == stamp;
}

size_t rondo_flight_read(const struct rondo_flight_recorder *recorder, struct rondo_flight_entry *entries)
{
    const uint64_t next = __atomic_load_n(&recorder->next, __ATOMIC_ACQUIRE);
    const struct rondo_flight_time until = now(recorder);
    size_t count = 0;
    for (uint64_t position = next > RONDO_FLIGHT_RECORDS ? next - RONDO_FLIGHT_RECORDS : 0; position < next; position++) {
        struct rondo_flight_record copy;
        if (!read_record(&recorder->ring[position % RONDO_FLIGHT_RECORDS], position, &copy))
            continue;
        struct rondo_flight_entry *entry = &entries[count++];
        memcpy(&entry->call, copy.words, sizeof(entry->call));
        entry->position = position;
        entry->number = copy.number;
        entry->started_ns = to_ns(recorder, &until, copy.started);
        entry->completed_ns = copy.completed != 0 ? to_ns(recorder, &until, copy.completed) : 0;
        entry->family = (enum rondo_flight_family)(copy.outcome & UINT32_MAX);
        entry->result = (rondo_result_t) (copy.outcome >> 32);
    }
    return count;
}
