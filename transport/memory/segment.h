/*
 * Memory segments that other runtimes of this host can map: anonymous files (memfd) passed as descriptors on a Unix socket
 * (transport/memory/descriptor_passing.h), so that nothing has a name in /dev/shm and nothing is left behind whatever kills a
 * process. Any thread may call any function unless its comment says otherwise.
 */
#ifndef RONDO_TRANSPORT_MEMORY_SEGMENT_H
#define RONDO_TRANSPORT_MEMORY_SEGMENT_H

#include "lib/control/control.h"

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

/* Begins to serve this runtime's segments on the control thread. RONDO_ERR_SYSTEM, RONDO_ERR_MEMORY. */
rondo_result_t rondo_segments_create(struct rondo_segments **segments, struct rondo_control *control);
/* Before the control is closed. Unmaps what is imported and drops what was made; imports by others stay valid, in this process
 * and in others. NULL: nothing. */
void rondo_segments_destroy(struct rondo_segments *segments);

/* *segment: at least bytes, zeroed, mapped in this process. RONDO_ERR_MEMORY. */
rondo_result_t rondo_segment_allocate(struct rondo_segments *segments, size_t bytes, struct rondo_segment **segment);
/* *handle: with it other ranks can import the segment, until its maker releases it or is destroyed. */
void rondo_segment_export(const struct rondo_segment *segment, struct rondo_segment_handle *handle);
/* Asks the maker's control thread (same user only, with the handle's key); bounded by 10 seconds. In the process that made the
 * segment the answer is the very same struct, its references counted, so that thread sanitizers see the sharing; else it is the
 * descriptor, which is mapped. Imports of one segment by one runtime are counted and share one mapping. RONDO_ERR_TRANSPORT if
 * the maker is gone or has released it. Must not be called on a control thread. */
rondo_result_t rondo_segment_import(struct rondo_segments *segments, const struct rondo_segment_handle *handle,
                                    struct rondo_segment **segment);
/* Undoes one allocate or import. Once the allocate is undone the segment cannot be imported any more. NULL: nothing. */
void rondo_segment_release(struct rondo_segments *segments, struct rondo_segment *segment);

/* Descriptors of other things than segments, passed in the same way. */
struct rondo_descriptor_offer {
    unsigned char bytes[48]; /* travels in control messages; plain data */
};

/* *offer: with it other processes can take a descriptor like fd, which belongs to the segments from here on, also on failure,
 * and is closed when the offer is withdrawn. bytes: its size, not 0. RONDO_ERR_MEMORY. */
rondo_result_t rondo_descriptor_offer_make(struct rondo_segments *segments, int fd, uint64_t bytes,
                                           struct rondo_descriptor_offer *offer);
/* Descriptors that have been taken stay valid. Nothing happens if the offer is not one of these segments'. */
void rondo_descriptor_offer_withdraw(struct rondo_segments *segments, const struct rondo_descriptor_offer *offer);
/* *fd: a descriptor that the caller closes. Bounded and restricted as an import; RONDO_ERR_TRANSPORT if the offer is gone. */
rondo_result_t rondo_descriptor_offer_take(const struct rondo_descriptor_offer *offer, int *fd);

#endif
