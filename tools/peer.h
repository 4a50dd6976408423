/*
 * Another library that does the same collectives, measured beside Rondo (bench --peer). Each lives in a shared object of its
 * own, rondo-peer-NAME.so in the directory of the command, so that the command itself needs none of them. Types, operators and
 * collectives are named as the command names them; the object does not link with Rondo.
 */
#ifndef RONDO_TOOLS_PEER_H
#define RONDO_TOOLS_PEER_H

#include "collectives.h"
#include <stdbool.h>
#include <stddef.h>

struct peer_state; /* the peer's own */

struct peer {
    const char *name;
    bool needs_device_memory; /* a GPU's peer: refused with the host device */
    bool needs_processes;     /* ranks as threads of one process are refused */

    /* The four below return 0, or not 0 with a reason in message. All are called by the same thread of a rank. */

    /* Joins the peer's job, which must turn out to have this rank and size. */
    int (*open)(struct peer_state **state, int rank, int size, char *message, size_t bytes);
    /* Makes call (its buffers, counts, type, operator and root) the operation that run performs; call outlives it. */
    int (*prepare)(struct peer_state *state, const struct call *call, char *message, size_t bytes);
    int (*run)(struct peer_state *state, char *message, size_t bytes);
    int (*barrier)(struct peer_state *state, char *message, size_t bytes);
    void (*close)(struct peer_state *state);
};

/* The one symbol that a peer's shared object exports. */
#define PEER_SYMBOL "rondo_peer"
typedef const struct peer *(*peer_entry_t)(void);

/* NULL with a reason in message if there is no such object or it does not load. */
const struct peer *peer_load(const char *name, char *message, size_t bytes);

#endif
