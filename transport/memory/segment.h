/*
 * Memory segments that other runtimes of this host can map: anonymous files (memfd) handed over as descriptors on a Unix
 * socket, so that nothing has a name in /dev/shm and nothing is left behind whatever kills a process.
 */
#ifndef RONDO_TRANSPORT_MEMORY_SEGMENT_H
#define RONDO_TRANSPORT_MEMORY_SEGMENT_H

#include "lib/bootstrap/control.h"

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
/* Before the control is closed. Unmaps what is imported and drops what was made; what others have imported stays theirs, in
 * this process and in others. */
void rondo_segments_destroy(struct rondo_segments *segments);

rondo_result_t rondo_segment_allocate(struct rondo_segments *segments, size_t bytes, struct rondo_segment **segment);
/* The handle is good until the segment's maker releases it, or is destroyed: whoever imports it must do so before. */
void rondo_segment_export(const struct rondo_segment *segment, struct rondo_segment_handle *handle);
/* Asks the maker's control thread (same user only, with the handle's key); bounded by 10 seconds. In the process that made the
 * segment the answer is the very same struct, its references counted, so that thread sanitizers see the sharing; else it is the
 * descriptor, which is mapped. Imports of one segment by one runtime are counted and share one mapping. RONDO_ERR_TRANSPORT if
 * the maker is gone or has released it. Must not be called on a control thread. */
rondo_result_t rondo_segment_import(struct rondo_segments *segments, const struct rondo_segment_handle *handle,
                                    struct rondo_segment **segment);
/* Undoes one allocate or import. After that of the allocate nobody can import the segment any more. */
void rondo_segment_release(struct rondo_segments *segments, struct rondo_segment *segment);

/* Descriptors of other things than segments, handed over in the same way. */
struct rondo_descriptor_offer {
    unsigned char bytes[48]; /* travels in control messages; plain data */
};

/* Takes fd, and closes it when it is withdrawn. bytes: whatever size it has, not 0. */
rondo_result_t rondo_descriptor_offer_make(struct rondo_segments *segments, int fd, uint64_t bytes,
                                           struct rondo_descriptor_offer *offer);
/* Those who have it keep it. Nothing happens if the loan is not one of these segments' offers. */
void rondo_descriptor_offer_withdraw(struct rondo_segments *segments, const struct rondo_descriptor_offer *offer);
/* *fd becomes the caller's own. Bounded and restricted as an import; RONDO_ERR_TRANSPORT if the offer is gone. */
rondo_result_t rondo_descriptor_offer_take(const struct rondo_descriptor_offer *offer, int *fd);

#endif
