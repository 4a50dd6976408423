/*
 * Windows: memory of one rank that the other members of a communicator have mapped, for direct access; and the memory of
 * rondo_alloc. Relies on transport/memory.
 */
#ifndef RONDO_LIB_CONNECTION_WINDOW_H
#define RONDO_LIB_CONNECTION_WINDOW_H

#include "lib/connection/comm_connections.h"
#include "lib/context/runtime.h"

/* Memory of a member, as this rank reaches it. */
struct rondo_span {
    char *base; /* NULL: there is none */
    size_t bytes;
};

struct rondo_registration {
    struct rondo_registration *next;
    char *base;
    size_t bytes;
    int usable;  /* all members can access all members' buffers */
    int by_user; /* 1: of rondo_comm_register; 0: of a persistent operation */
    uint32_t window;
    struct rondo_span *spans;             /* [member]; once it is usable, and not where all are of one process's host device */
    struct rondo_segment **imported;      /* [member]; NULL for this rank */
    struct rondo_cuda_export *exported;   /* on a GPU: this rank's buffer, if peers map it */
    struct rondo_cuda_mapping **mappings; /* on a GPU, instead of imported: [member]; NULL where no mapping is needed */
};

/* Device memory of rondo_alloc. */
struct rondo_allocation {
    struct rondo_allocation *next;
    char *base;
    size_t bytes;                  /* requested */
    size_t reserved;               /* allocated */
    struct rondo_segment *segment; /* NULL: GPU memory */
};

/* Frees all device memory of rondo_alloc. No other thread uses the runtime. */
void rondo_allocations_free(struct rondo_runtime *runtime);
/* Opens [base, +bytes) of every member to all other members. If that is impossible for one, registration->usable is 0 on all.
 * base may be NULL. Collective over the communicator; contains a rondo_exchange, whose errors it returns, as well as those of
 * mapping a peer's memory and RONDO_ERR_MEMORY. Without locks. */
rondo_result_t rondo_window_open(struct rondo_comm *comm, char *base, size_t bytes, struct rondo_registration **registration);
/* Removes the registration, unmaps the peers' buffers and frees it. Not collective. No operation that uses the window may be
 * active. Takes the runtime lock. */
void rondo_window_close(struct rondo_comm *comm, struct rondo_registration *registration);

/* Returns 1 and sets window to {window, offset} if a usable registration of rondo_comm_register contains [base, +bytes); else
 * 0. Takes the runtime lock. Registrations of persistent operations do not count: the peers' buffers of a different call need
 * not lie in theirs, and all ranks must choose alike. */
int rondo_window_find(const struct rondo_comm *comm, const char *base, size_t bytes, uint64_t window[2]);
/* Returns 1 if a usable registration of rondo_comm_register contains [base, +bytes), and sets *spans to all members' memory of
 * it and *offset to where base lies in this rank's; else 0. Takes the runtime lock. The spans are valid until the registration
 * is closed. */
int rondo_window_spans(const struct rondo_comm *comm, const char *base, size_t bytes, const struct rondo_span **spans,
                       size_t *offset);
/* Both check, when an operation starts on a GPU, that a buffer is still the allocation that was opened. RONDO_ERR_BUFFER if it
 * has been freed since. The first checks a persistent operation's own registration (NULL: RONDO_SUCCESS). The second checks the
 * registration of rondo_comm_register that contains the range, and takes the runtime lock. Each makes one driver call, and none
 * on the host device. */
rondo_result_t rondo_window_still(const struct rondo_registration *registration);
rondo_result_t rondo_windows_still(const struct rondo_comm *comm, const char *base, size_t bytes);
/* Whether [base, +bytes) lies in host memory of rondo_alloc. If so, sets *handle to its segment and *offset to the offset of
 * base in it, in bytes. Takes the runtime lock. */
int rondo_is_allocated(struct rondo_runtime *runtime, const char *base, size_t bytes, struct rondo_segment_handle *handle,
                       uint64_t *offset);

#endif
