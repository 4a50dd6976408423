/* Windows: memory of one rank that the others of a communicator have mapped, for direct access. */
#ifndef RONDO_LIB_CONNECTION_WINDOW_H
#define RONDO_LIB_CONNECTION_WINDOW_H

#include "lib/connection/comm_connections.h"
#include "lib/context/runtime.h"

struct rondo_registration {
    struct rondo_registration *next;
    char *base;
    size_t bytes;
    int usable;  /* by all ranks */
    int by_user; /* rondo_comm_register, else a persistent operation's */
    uint32_t window;
    struct rondo_segment **imported;      /* a member each; NULL for this rank */
    struct rondo_cuda_export *exported;   /* on a GPU: this rank's buffer, if others reach it */
    struct rondo_cuda_mapping **mappings; /* on a GPU, in place of imported; NULL also where no mapping was needed */
};

/* Device memory of rondo_alloc. */
struct rondo_allocation {
    struct rondo_allocation *next;
    char *base;
    size_t bytes;                  /* asked for */
    size_t reserved;               /* taken */
    struct rondo_segment *segment; /* NULL: memory of the GPU */
};

/* Collective. Opens [base, +bytes) of every member to all others if that is possible for all of them; registration->usable
 * says so. base may be NULL. */
rondo_result_t rondo_window_open(struct rondo_comm *comm, char *base, size_t bytes, struct rondo_registration **registration);
void rondo_window_close(struct rondo_comm *comm, struct rondo_registration *registration);

/* 1 and {window, offset} if a usable registration of the user's holds the range. Not those of persistent operations: the other
 * ranks' buffers of some other call need not lie in theirs, and all ranks must choose alike. */
int rondo_window_find(const struct rondo_comm *comm, const char *base, size_t bytes, uint64_t window[2]);
/* On a GPU, at a start: whether the buffer is still the allocation that was opened; RONDO_ERR_BUFFER if it was freed since. The
 * first for a persistent operation's own (NULL: RONDO_SUCCESS), the second for whichever registration of the user's holds the
 * range. One driver call each; nothing on the host device. */
rondo_result_t rondo_window_still(const struct rondo_registration *registration);
rondo_result_t rondo_windows_still(const struct rondo_comm *comm, const char *base, size_t bytes);
/* Whether [base, +bytes) lies in host memory of rondo_alloc. */
int rondo_is_allocated(struct rondo_runtime *runtime, const char *base, size_t bytes, struct rondo_segment_handle *handle,
                       uint64_t *offset);

#endif
