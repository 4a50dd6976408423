"""Repeated calls, whose requests are cached from one to the next (lib/submission/request_cache.h)."""
import pytest
from harness import program, run


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_again_and_changed(ranks):
    """Each of these fails the test if it is removed from the comparison in lib/submission/request_cache.c: count, kind, type,
    operator, root, programs, buffers, the resources of a request, the mark. (The comparisons of in-place calls, direct access
    and reduce-scatters are precautions, which no run needs.)"""
    for seed in range(3):
        run(program("request_cache"), "--ranks", ranks, "--seed", 10 * ranks + seed)


@pytest.mark.parametrize("algorithm", ["ring", "allpairs"])
def test_insisted(algorithm):
    run(program("request_cache"), "--ranks", 3, "--rounds", 200, RONDO_ALGORITHM=algorithm)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_in_turn(ranks):
    """Four calls that are made in turn, and then three with counts, are bound once each."""
    said = run(program("request_cache"), "--ranks", ranks, "--in-turn", 300, RONDO_DEVICE="host", RONDO_LOG="debug")
    assert said.count(": algorithm ") == 7 * ranks


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_small_calls_wake_no_thread(blocks):
    """The calling thread runs block 0, and the threads of the other blocks stay asleep (device/host/host.c)."""
    run(program("idle"), "--ranks", 1, "--small", 50000, RONDO_BLOCKS=blocks)


@pytest.mark.parametrize("ranks, count", [(1, 4096), (2, 1), (2, 4096)])
def test_small_starts_wake_hardly_any_thread(ranks, count):
    """A thread that starts an operation and waits for it carries it out itself."""
    run(program("idle"), "--ranks", ranks, "--small", 20000, "--started", 1, "--count", count)


@pytest.mark.parametrize("check", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_zero_count(ranks, check):
    """Calls that move nothing need no request of a lane. Without RONDO_CHECK no rank waits for another; with it they are compared. Either
    way, all other calls match."""
    run(program("zero_count"), "--ranks", ranks, "--seed", ranks, RONDO_CHECK=check)


@pytest.mark.parametrize("kind", ["bcast", "allreduce", "alltoall"])
def test_buffers_that_threads_reach_by_address(kind):
    """A call of ranks of one process whose peers read its buffers where they lie is bound once."""
    said = run(program("rondo"), "bench", kind, "--ranks", 2, "-b", "64K", "-e", "64K", "-n", 50, "--check", "--device", "host", RONDO_LOG="debug")
    assert said.count(": algorithm direct") == 2
