"""Every collective x type x operator x in place x odd counts x roots, in all three forms, on 1 to 9 ranks as threads."""
import pytest
from harness import program, run

COLLECTIVES = ["allreduce", "reduce", "reduce_scatter_block", "scan", "exscan", "bcast", "allgather", "allgatherv", "alltoall",
               "alltoallv", "alltoallw", "gather", "gatherv", "scatter", "scatterv", "reduce_scatter", "alltonext", "barrier",
               "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_full(collective, ranks):
    run(program("matrix"), "--ranks", ranks, "--collectives", collective)


@pytest.mark.parametrize("ranks", [1, 2, 4, 5, 6, 7, 9])
def test_all_collectives(ranks):
    run(program("matrix"), "--ranks", ranks, "--types", "int8,uint64,float16,float,float8e4m3", "--ops", "sum,min,avg,bxor",
        "--counts", "0,1,3,17,4099", "--seed", ranks)


@pytest.mark.parametrize("ranks", [3, 4])
def test_large_counts(ranks):
    run(program("matrix"), "--ranks", ranks, "--counts", "70001", "--seed", ranks + 10)


@pytest.mark.parametrize("ranks", [4, 8])
def test_recursive_doubling(ranks):
    """The algorithm of hosts with a core for each rank for small all-reduces."""
    run(program("matrix"), "--ranks", ranks, "--collectives", "allreduce", "--counts", "0,1,17,1000,4099",
        RONDO_ALGORITHM="recursive-doubling")


BY_DISTANCE = {"bruck": "alltoall,barrier", "binomial": "gather,scatter"}


@pytest.mark.parametrize("direct_write", ["auto", "refused", "mixed"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_exchange(ranks, direct_write):
    """Blocks that send to each other and receive from each other: large messages into each other's buffers, through slots because
    the receivers refuse, or some this way and some that; small ones through slots."""
    run(program("rondo"), "bench", "alltoall", "--ranks", ranks, "--algorithm", "exchange", "--channels", 3, "--type", "int8", "-b", "40K",
        "-e", "11M", "-f", 16, "-n", 5, "--check", RONDO_BLOCKS=12, RONDO_DIRECT_WRITE=direct_write)


@pytest.mark.parametrize("algorithm", BY_DISTANCE)
@pytest.mark.parametrize("ranks", [2, 5])
def test_by_distance(algorithm, ranks):
    """The algorithms of many ranks, on few: all types, counts, roots and forms."""
    run(program("matrix"), "--ranks", ranks, "--collectives", BY_DISTANCE[algorithm], "--counts", "0,1,3,17,4099,70001", "--types",
        "int8,float,double", RONDO_ALGORITHM=algorithm, RONDO_BLOCKS=4)


def many_ranks(ranks, collective, counts, seconds, **variables):
    one_type = [] if collective == "barrier" else ["--types", "int32", "--ops", "sum", "--counts", counts]
    run(program("matrix"), "--ranks", ranks, "--collectives", collective, "--large", 0, "--restarts", 2, *one_type, seconds=seconds,
        **variables)


@pytest.mark.parametrize("collective", ["barrier", "alltoall", "gather", "scatter", "gatherv", "scatterv",
                                        "bcast", "reduce", "allreduce", "reduce_scatter_block", "allgather", "allgatherv"])
def test_many_ranks(collective):
    """More ranks than a block has connectors to in both directions, and than a ring is composed for."""
    many_ranks(130, collective, "1", 120)


def test_a_ring_of_many_ranks():
    many_ranks(70, "allreduce", "1,4099", 120, RONDO_ALGORITHM="ring")


@pytest.mark.slow
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [129, 200])
def test_many_ranks_all(collective, ranks):
    many_ranks(ranks, collective, "1,17", 600)


MULTICAST = "bcast,allreduce,reduce_scatter_block,allgather,allgatherv,alltoall,scatter,barrier"


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_multicast(ranks):
    """The algorithm for small data, also beyond the sizes for which it is chosen."""
    run(program("matrix"), "--ranks", ranks, "--collectives", MULTICAST, "--types", "int8,float16,float,double", "--ops",
        "sum,max,avg", "--counts", "0,1,3,17,1000,4099,70001", "--seed", 20 + ranks, RONDO_ALGORITHM="multicast")


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_multicast_two_shot(ranks):
    """1000 elements are the same number for each rank; where ranks' parts differ, another algorithm is taken."""
    run(program("matrix"), "--ranks", ranks, "--collectives", "allreduce", "--counts", "0,1,17,1000", "--seed", 25 + ranks,
        RONDO_ALGORITHM="multicast-twoshot")


@pytest.mark.parametrize("collective", ["allreduce", "alltoall", "reduce_scatter_block", "scatter"])
def test_multicast_parts(collective):
    """Slots with a part for each rank, and many of them one after the other."""
    run(program("rondo"), "bench", collective, "--ranks", 4, "--device", "host", "-b", 64, "-e", "1M", "-f", 64, "-n", 5, "-c",
        RONDO_ALGORITHM="multicast-twoshot" if collective == "allreduce" else "multicast")


def test_without_multicast():
    """The algorithms for small data where ranks do not share memory, and where they are more than multicast is for."""
    run(program("matrix"), "--ranks", 4, "--collectives", MULTICAST, "--types", "int8,float", "--ops", "sum,avg", "--counts",
        "0,1,17,1000,4099", "--seed", 30, RONDO_MULTICAST="off")
