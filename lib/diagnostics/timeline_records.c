/* Reads the blocks' rings and retains the records until they are written: the reader's half of device/daemon/trace.h. */
#include "lib/diagnostics/timeline_parts.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_RECORDS 65536
#define FIRST_STARTS  16384
#define READ_AHEAD    64 /* records */

static bool grow(void *array, size_t *room, size_t wanted, size_t size)
{
    void **place = array;
    size_t larger = *room == 0 ? 4096 : *room;
    if (wanted <= *room)
        return true;
    while (larger < wanted)
        larger *= 2;
    void *memory = realloc(*place, larger * size);
    if (memory == NULL)
        return false;
    *place = memory;
    *room = larger;
    return true;
}

bool rondo_timeline_prepare(struct rondo_timeline_retained *retained)
{
    if (!grow(&retained->records, &retained->record_room, FIRST_RECORDS, sizeof(*retained->records)) ||
        !grow(&retained->starts, &retained->start_room, FIRST_STARTS, sizeof(*retained->starts)))
        return false;
    memset(retained->records, 0xff, retained->record_room * sizeof(*retained->records));
    memset(retained->starts, 0xff, retained->start_room * sizeof(*retained->starts));
    return true;
}

void rondo_timeline_keep(struct rondo_timeline_retained *retained, struct rondo_timeline_record record)
{
    if (grow(&retained->records, &retained->record_room, retained->record_count + 1, sizeof(record)))
        retained->records[retained->record_count++] = record;
    else
        retained->lost++;
}

void rondo_timeline_keep_starts(struct rondo_timeline_retained *retained, const struct rondo_timeline_start *starts,
                                uint32_t count)
{
    if (grow(&retained->starts, &retained->start_room, retained->start_count + count, sizeof(*starts))) {
        memcpy(retained->starts + retained->start_count, starts, count * sizeof(*starts));
        retained->start_count += count;
    } else {
        retained->lost += count;
    }
}

/* Estimates the offset of a device's own clock. A record cannot be from the future, so the smallest difference seen is the best
 * estimate. time: that of the last record of a ring, just read; earlier records were delayed on the device. */
static void compare_clocks(struct rondo_timeline_rings *rings, uint64_t time)
{
    uint64_t now = rondo_clock_ns() & RONDO_TRACE_TIME_MASK;
    int64_t ahead = (int64_t) ((now - time) & RONDO_TRACE_TIME_MASK);
    if (!rings->ahead_known || ahead < rings->ahead)
        rings->ahead = ahead;
    rings->ahead_known = 1;
}

/* Reads the ring of block b. A word of the expected lap is the next record. A word of an earlier lap means that the record has
 * not been written yet. A word of a later lap means that the block has overwritten it; then the reader skips at least half a
 * ring, so that the writer does not overtake it at once again. Returns the number of completed operations. */
static uint64_t read_ring(struct rondo_runtime *runtime, uint32_t b)
{
    struct rondo_timeline *trace = runtime->trace;
    const struct rondo_trace_records *ring = &runtime->device->trace[b];
    uint64_t completed = 0, last = UINT64_MAX;
    for (uint64_t most = 2 * RONDO_TRACE_DEPTH; most > 0; most--) {
        uint64_t index = trace->rings.taken[b];
        const uint64_t *words = ring->words[index % RONDO_TRACE_DEPTH];
        uint64_t time = rondo_load_relaxed(&words[0]), what = rondo_load_relaxed(&words[1]);
        __builtin_prefetch(ring->words[(index + READ_AHEAD) % RONDO_TRACE_DEPTH]); /* the word is in the writer's cache */
        uint32_t expected = RONDO_TRACE_INDEX_LAP(index);
        uint32_t first = (RONDO_TRACE_LAP(time) - expected) & 0xfff, second = (RONDO_TRACE_LAP(what) - expected) & 0xfff;
        if (first == 0 && second == 0) {
            rondo_timeline_keep(&trace->retained,
                                (struct rondo_timeline_record){RONDO_TRACE_TIME(time), (what & ~0xfffull) | b});
            completed += RONDO_TRACE_KIND(what) == RONDO_TRACE_COMPLETE;
            last = RONDO_TRACE_TIME(time);
            trace->rings.taken[b]++;
            continue;
        }
        uint32_t laps = first < 0x800 && first > 0 ? first : second < 0x800 ? second : 0;
        if (laps == 0)
            break;
        uint64_t skipped = (uint64_t) laps * RONDO_TRACE_DEPTH - RONDO_TRACE_DEPTH / 2;
        trace->rings.taken[b] += skipped;
        trace->retained.lost += skipped;
        rondo_timeline_keep(&trace->retained,
                            (struct rondo_timeline_record){skipped, (uint64_t) RONDO_TIMELINE_LOST << 60 | b});
    }
    if (last != UINT64_MAX && runtime->device->kind->poll_ns != 0)
        compare_clocks(&trace->rings, last);
    return completed;
}

uint64_t rondo_timeline_read_rings(struct rondo_runtime *runtime)
{
    uint32_t blocks = runtime->device->daemon->block_count;
    uint64_t completed = 0;
    for (uint32_t b = 0; b < blocks; b++)
        completed += read_ring(runtime, b);
    return completed;
}
