/*
 * NCCL as far as the command uses it, found at run time: neither its header nor its library is needed to build. The values are
 * those of NCCL 2's application binary interface.
 */
#ifndef RONDO_TOOLS_PEER_NCCL_H
#define RONDO_TOOLS_PEER_NCCL_H

#include "rondo.h"
#include <stdbool.h>
#include <stddef.h>

enum { NCCL_SUCCESS = 0, NCCL_SUM = 0 };
enum { NCCL_UINT8 = 1, NCCL_FLOAT = 7, NCCL_DOUBLE = 8 }; /* of its data types, those named by themselves */
struct nccl_id {
    char bytes[128];
};
typedef struct ncclComm *nccl_comm_t;

struct nccl {
    int (*version)(int *version);
    int (*make_id)(struct nccl_id *id);
    int (*init)(nccl_comm_t *comm, int ranks, struct nccl_id id, int rank);
    int (*destroy)(nccl_comm_t comm);
    const char *(*error)(int code);
    const char *(*last_error)(nccl_comm_t comm);
    int (*allreduce)(const void *send, void *receive, size_t count, int type, int op, nccl_comm_t comm, void *stream);
    int (*reduce)(const void *send, void *receive, size_t count, int type, int op, int root, nccl_comm_t comm, void *stream);
    int (*broadcast)(const void *send, void *receive, size_t count, int type, int root, nccl_comm_t comm, void *stream);
    int (*reduce_scatter)(const void *send, void *receive, size_t count, int type, int op, nccl_comm_t comm, void *stream);
    int (*allgather)(const void *send, void *receive, size_t count, int type, nccl_comm_t comm, void *stream);
    int (*send)(const void *buffer, size_t count, int type, int peer, nccl_comm_t comm, void *stream);
    int (*receive)(void *buffer, size_t count, int type, int peer, nccl_comm_t comm, void *stream);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*enlist)(nccl_comm_t comm, void *buffer, size_t bytes, void **handle);
    int (*delist)(nccl_comm_t comm, void *handle);
};

/* Loads libnccl.so.2, with multicast (NVLS) off. Call it before any thread that may read the environment. NULL with a reason in
 * message. */
const struct nccl *nccl_load(char *message, size_t bytes);

/* NCCL's name for a type or operator; -1 if it has none. */
int nccl_type(rondo_datatype_t type);
int nccl_operator(rondo_op_t op);

#endif
