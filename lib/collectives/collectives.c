/* The public collectives: each is its arguments made into a call, in four forms. */
#include "lib/submission/request.h"

/* The four forms of X. The call is a parenthesized list of struct rondo_call's fields; the rest are X's parameters. */
#define FORMS(X, fields, ...)                                                                                                  \
    rondo_result_t rondo_##X(__VA_ARGS__)                                                                                      \
    {                                                                                                                          \
        const struct rondo_call call = CALL fields;                                                                            \
        return rondo_call_blocking(comm, &call);                                                                               \
    }                                                                                                                          \
    rondo_result_t rondo_i##X(__VA_ARGS__, rondo_request_t *request)                                                           \
    {                                                                                                                          \
        const struct rondo_call call = CALL fields;                                                                            \
        return rondo_call_nonblocking(comm, &call, request);                                                                   \
    }                                                                                                                          \
    rondo_result_t rondo_##X##_init(__VA_ARGS__, const rondo_attr_t *attr, rondo_request_t *request)                           \
    {                                                                                                                          \
        const struct rondo_call call = CALL fields;                                                                            \
        return rondo_call_persistent(comm, &call, attr, request);                                                              \
    }                                                                                                                          \
    rondo_result_t rondo_##X##_on_stream(__VA_ARGS__, void *stream)                                                            \
    {                                                                                                                          \
        const struct rondo_call call = CALL fields;                                                                            \
        return rondo_call_on_stream(comm, &call, stream);                                                                      \
    }
#define CALL(kind_, ...)                                                                                                       \
    {                                                                                                                          \
        .kind = RONDO_KIND_##kind_, __VA_ARGS__                                                                                \
    }

/* clang-format off */
FORMS(allreduce, (ALLREDUCE, .send = send, .recv = recv, .count = count, .type = type, .op = op),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm)

FORMS(reduce, (REDUCE, .send = send, .recv = recv, .count = count, .type = type, .op = op, .root = root),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op, int root, rondo_comm_t comm)

FORMS(bcast, (BCAST, .recv = buf, .count = count, .type = type, .root = root),
      void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm)

FORMS(reduce_scatter_block, (REDUCE_SCATTER_BLOCK, .send = send, .recv = recv, .count = recvcount, .type = type, .op = op),
      const void *send, void *recv, size_t recvcount, rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm)

FORMS(reduce_scatter, (REDUCE_SCATTER, .send = send, .recv = recv, .receive_counts = recvcounts, .type = type, .op = op),
      const void *send, void *recv, const size_t *recvcounts, rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm)

FORMS(allgather, (ALLGATHER, .send = send, .recv = recv, .count = sendcount, .type = type),
      const void *send, void *recv, size_t sendcount, rondo_datatype_t type, rondo_comm_t comm)

FORMS(allgatherv, (ALLGATHERV, .send = send, .recv = recv, .count = sendcount, .receive_counts = counts,
                   .receive_displacements = displs, .type = type),
      const void *send, size_t sendcount, void *recv, const size_t *counts, const size_t *displs, rondo_datatype_t type,
      rondo_comm_t comm)

FORMS(alltoall, (ALLTOALL, .send = send, .recv = recv, .count = count_per_rank, .type = type),
      const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, rondo_comm_t comm)

FORMS(alltoallv, (ALLTOALLV, .send = send, .recv = recv, .send_counts = scounts, .send_displacements = sdispls,
                  .receive_counts = rcounts, .receive_displacements = rdispls, .type = type),
      const void *send, const size_t *scounts, const size_t *sdispls, void *recv, const size_t *rcounts, const size_t *rdispls,
      rondo_datatype_t type, rondo_comm_t comm)

FORMS(alltoallw, (ALLTOALLW, .send = send, .recv = recv, .send_counts = scounts, .send_displacements = sdispls,
                  .send_types = stypes, .receive_counts = rcounts, .receive_displacements = rdispls, .receive_types = rtypes,
                  .type = RONDO_UINT8),
      const void *send, const size_t *scounts, const size_t *sdispls, const rondo_datatype_t *stypes, void *recv,
      const size_t *rcounts, const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm)

FORMS(gather, (GATHER, .send = send, .recv = recv, .count = count_per_rank, .type = type, .root = root),
      const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root, rondo_comm_t comm)

FORMS(scatter, (SCATTER, .send = send, .recv = recv, .count = count_per_rank, .type = type, .root = root),
      const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root, rondo_comm_t comm)

FORMS(gatherv, (GATHERV, .send = send, .recv = recv, .count = sendcount, .receive_counts = recvcounts,
                .receive_displacements = displs, .type = type, .root = root),
      const void *send, size_t sendcount, void *recv, const size_t *recvcounts, const size_t *displs, rondo_datatype_t type,
      int root, rondo_comm_t comm)

FORMS(scatterv, (SCATTERV, .send = send, .recv = recv, .count = recvcount, .send_counts = sendcounts,
                 .send_displacements = displs, .type = type, .root = root),
      const void *send, const size_t *sendcounts, const size_t *displs, void *recv, size_t recvcount, rondo_datatype_t type,
      int root, rondo_comm_t comm)

FORMS(barrier, (BARRIER, .count = 1, .type = RONDO_UINT8), rondo_comm_t comm)

FORMS(scan, (SCAN, .send = send, .recv = recv, .count = count, .type = type, .op = op),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm)

FORMS(exscan, (EXSCAN, .send = send, .recv = recv, .count = count, .type = type, .op = op),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm)

FORMS(alltonext, (ALLTONEXT, .send = send, .recv = recv, .count = count, .type = type),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm)

FORMS(neighbor_allgather, (NEIGHBOR_ALLGATHER, .send = send, .recv = recv, .count = count, .type = type),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm)

FORMS(neighbor_allgatherv, (NEIGHBOR_ALLGATHERV, .send = send, .recv = recv, .count = sendcount, .receive_counts = recvcounts,
                            .receive_displacements = displs, .type = type),
      const void *send, size_t sendcount, void *recv, const size_t *recvcounts, const size_t *displs, rondo_datatype_t type,
      rondo_comm_t comm)

FORMS(neighbor_alltoall, (NEIGHBOR_ALLTOALL, .send = send, .recv = recv, .count = count, .type = type),
      const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm)

FORMS(neighbor_alltoallv, (NEIGHBOR_ALLTOALLV, .send = send, .recv = recv, .send_counts = scounts,
                           .send_displacements = sdispls, .receive_counts = rcounts, .receive_displacements = rdispls,
                           .type = type),
      const void *send, const size_t *scounts, const size_t *sdispls, void *recv, const size_t *rcounts, const size_t *rdispls,
      rondo_datatype_t type, rondo_comm_t comm)

FORMS(neighbor_alltoallw, (NEIGHBOR_ALLTOALLW, .send = send, .recv = recv, .send_counts = scounts,
                           .send_displacements = sdispls, .send_types = stypes, .receive_counts = rcounts,
                           .receive_displacements = rdispls, .receive_types = rtypes, .type = RONDO_UINT8),
      const void *send, const size_t *scounts, const size_t *sdispls, const rondo_datatype_t *stypes, void *recv,
      const size_t *rcounts, const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm)

FORMS(send, (SEND_TO, .send = buf, .count = count, .type = type, .root = dest),
      const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm)

FORMS(recv, (RECEIVE_FROM, .recv = buf, .count = count, .type = type, .root = source),
      void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm)
/* clang-format on */
