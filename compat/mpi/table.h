/*
 * MPI's collectives: COLLECTIVE(Name, name, KIND, (parameters), (arguments), fields of struct rondo_mpi_call). To be included
 * with that macro defined; where the parameters are used, COUNT and DISPLACEMENT are the types of counts and displacements, and
 * WIDE is 1 for the functions with large counts.
 */
#ifndef COLLECTIVE
#define COLLECTIVE(...) /* read by itself it lists nothing */
#endif
/* clang-format off */
#if !WIDE
COLLECTIVE(Barrier, barrier, BARRIER,
           (MPI_Comm comm),
           (comm),
           .comm = comm)
#endif
COLLECTIVE(Bcast, bcast, BCAST,
           (void *buffer, COUNT count, MPI_Datatype datatype, int root, MPI_Comm comm),
           (buffer, count, datatype, root, comm),
           .recv = buffer, .recvcount = count, .recvtype = datatype, .root = root, .comm = comm)
COLLECTIVE(Gather, gather, GATHER,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .root = root, .comm = comm)
COLLECTIVE(Gatherv, gatherv, GATHERV,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = displs, .recvtype = recvtype, .root = root, .comm = comm)
COLLECTIVE(Scatter, scatter, SCATTER,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .root = root, .comm = comm)
COLLECTIVE(Scatterv, scatterv, SCATTERV,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT displs[], MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
           (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
           .send = sendbuf, .sendcounts = sendcounts, .senddispls = displs, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .root = root, .comm = comm)
COLLECTIVE(Allgather, allgather, ALLGATHER,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Allgatherv, allgatherv, ALLGATHERV,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = displs, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Alltoall, alltoall, ALLTOALL,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Alltoallv, alltoallv, ALLTOALLV,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
           .send = sendbuf, .sendcounts = sendcounts, .senddispls = sdispls, .sendtype = sendtype, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = rdispls, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Alltoallw, alltoallw, ALLTOALLW,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
           .send = sendbuf, .sendcounts = sendcounts, .senddispls = sdispls, .sendtypes = sendtypes, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = rdispls, .recvtypes = recvtypes, .comm = comm)
COLLECTIVE(Allreduce, allreduce, ALLREDUCE,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           .send = sendbuf, .recv = recvbuf, .sendcount = count, .sendtype = datatype, .op = op, .comm = comm)
COLLECTIVE(Reduce, reduce, REDUCE,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, root, comm),
           .send = sendbuf, .recv = recvbuf, .sendcount = count, .sendtype = datatype, .op = op, .root = root, .comm = comm)
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,
           (const void *sendbuf, void *recvbuf, COUNT recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, recvcount, datatype, op, comm),
           .send = sendbuf, .recv = recvbuf, .sendcount = recvcount, .sendtype = datatype, .op = op, .comm = comm)
COLLECTIVE(Reduce_scatter, reduce_scatter, REDUCE_SCATTER,
           (const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, recvcounts, datatype, op, comm),
           .send = sendbuf, .recv = recvbuf, .recvcounts = recvcounts, .sendtype = datatype, .op = op, .comm = comm)
COLLECTIVE(Scan, scan, SCAN,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           .send = sendbuf, .recv = recvbuf, .sendcount = count, .sendtype = datatype, .op = op, .comm = comm)
COLLECTIVE(Exscan, exscan, EXSCAN,
           (const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, datatype, op, comm),
           .send = sendbuf, .recv = recvbuf, .sendcount = count, .sendtype = datatype, .op = op, .comm = comm)
COLLECTIVE(Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = displs, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL,
           (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
           .send = sendbuf, .sendcount = sendcount, .sendtype = sendtype, .recv = recvbuf, .recvcount = recvcount, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV,
           (const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
           .send = sendbuf, .sendcounts = sendcounts, .senddispls = sdispls, .sendtype = sendtype, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = rdispls, .recvtype = recvtype, .comm = comm)
COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw, NEIGHBOR_ALLTOALLW,
           (const void *sendbuf, const COUNT sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, const COUNT recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
           .send = sendbuf, .sendcounts = sendcounts, .senddispls = sdispls, .sendtypes = sendtypes, .recv = recvbuf, .recvcounts = recvcounts, .recvdispls = rdispls, .recvtypes = recvtypes, .addressed = 1, .comm = comm)
/* clang-format on */
