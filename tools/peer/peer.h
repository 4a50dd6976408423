/*
 * Another library that does the same collectives, measured beside Rondo (bench --peer). The command itself needs none of them:
 * a peer is a shared object of its own, rondo-peer-mpi-NAME.so in the directory of the command, that does not link with Rondo;
 * or, where all that it needs of the other library is found at run time, part of the command (NCCL). Types, operators and
 * collectives are named as the command names them.
 */
#ifndef RONDO_TOOLS_PEER_PEER_H
#define RONDO_TOOLS_PEER_PEER_H

#include "tools/common/collectives.h"
#include <stdbool.h>
#include <stddef.h>

struct peer_state; /* the peer's own */

/* Where a rank of the peer is. */
struct peer_place {
    int rank, size;
    int gpu;      /* -1: none */
    void *stream; /* on which the peer enqueues its work; NULL without a GPU */
    /* What every rank gives, in the order of ranks. Collective; for the peer's own meeting. Returns 0 if it worked. */
    int (*gather)(void *argument, const void *mine, size_t bytes, void *all);
    void *argument;
};

struct peer {
    const char *name;
    const char *version;      /* NULL: not known */
    const char *launcher;     /* the program that starts the peer's ranks as processes, as mpirun does; NULL: any does */
    bool needs_device_memory; /* a GPU's peer: refused with the host device */
    bool needs_processes;     /* ranks as threads of one process are refused */

    /* Those that return an int return 0, or not 0 with a reason in message. All are called by the same thread of a rank. */

    /* Joins the peer's job, which must turn out to have this rank and size. */
    int (*open)(struct peer_state **state, const struct peer_place *place, char *message, size_t bytes);
    /* Tells the peer of a buffer that calls will use, as --register does Rondo. May be NULL: the peer has no such thing. */
    int (*enlist)(struct peer_state *state, void *memory, size_t memory_bytes, char *message, size_t bytes);
    /* Makes call (its buffers, counts, type, operator and root) the operation that run performs; call outlives it. */
    int (*prepare)(struct peer_state *state, const struct call *call, char *message, size_t bytes);
    int (*run)(struct peer_state *state, char *message, size_t bytes);
    /* Waits for what runs have enqueued. NULL: run itself waits. */
    int (*finish)(struct peer_state *state, char *message, size_t bytes);
    int (*barrier)(struct peer_state *state, char *message, size_t bytes);
    void (*close)(struct peer_state *state);
};

/* The one symbol that a peer's shared object exports. */
#define PEER_SYMBOL "rondo_peer"
typedef const struct peer *(*peer_entry_t)(void);

/* Whether it has the form of a peer's name: nccl; mpi, the MPI that was found first when the command was built; or mpi:NAME,
 * the newest of those whose name begins so, as mpi:openmpi or mpi:mpich5. */
bool peer_is_name(const char *name);
/* NULL with a reason in message if there is no such peer or what it needs does not load. name: a peer's name. A process loads
 * one MPI at most. */
const struct peer *peer_load(const char *name, char *message, size_t bytes);

/* In builds with CUDA: NCCL, loaded when this is first called; from the main thread. */
const struct peer *peer_nccl(char *message, size_t bytes);

#endif
