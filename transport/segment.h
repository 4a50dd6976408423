/*
 * Memory segments that other runtimes of this host can map: anonymous files (memfd) handed over as descriptors on a Unix
 * socket, so that nothing has a name in /dev/shm and nothing is left behind whatever kills a process.
 */
#ifndef RONDO_TRANSPORT_SEGMENT_H
#define RONDO_TRANSPORT_SEGMENT_H

#include "control.h"

struct rondo_segments; /* one runtime's: those it made and those it imported */

struct rondo_segment {
    char *base;   /* page-aligned; zero at first */
    size_t bytes; /* a multiple of the page size; pages cost memory only once touched */
    uint64_t id;  /* unique within the runtime that made it */
};

/* Travels in control messages; plain data. */
struct rondo_segment_handle {
    unsigned char bytes[96];
};

rondo_result_t rondo_segments_create(struct rondo_segments **segments, struct rondo_control *control);
/* Unmaps what is imported and drops what was made; runtimes of the same process that imported a segment keep it alive. */
void rondo_segments_destroy(struct rondo_segments *segments);

rondo_result_t rondo_segment_allocate(struct rondo_segments *segments, size_t bytes, struct rondo_segment **segment);
void rondo_segment_export(const struct rondo_segment *segment, struct rondo_segment_handle *handle);
/* In the process that made it: the very same mapping (so that thread sanitizers see the sharing). Else asks the maker's control
 * thread for the descriptor (same user only, with the handle's key) and maps it; bounded by 10 seconds. Imports of one segment
 * are counted and share one mapping. Must not be called on a control thread. */
rondo_result_t rondo_segment_import(struct rondo_segments *segments, const struct rondo_segment_handle *handle,
                                    struct rondo_segment **segment);
/* Undoes one allocate or import. */
void rondo_segment_release(struct rondo_segments *segments, struct rondo_segment *segment);

/* Text that is equal exactly for processes that can share segments: same boot, same network and PID namespace; or
 * RONDO_HOSTID / config->host_id where given. Writes at most bytes, always terminated. */
void rondo_segment_host_id(const char *override, char *text, size_t bytes);

#endif
