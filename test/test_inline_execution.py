"""Inline execution: operations that run on the calling thread before a daemon knows of them (device/daemon/daemon.h:
rondo_run_inline).
"""
import pytest
from harness import program, run


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_no_daemon_is_started(blocks):
    run(program("inline_execution"), "--scenario", "alone", "--ranks", 1, RONDO_BLOCKS=blocks)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_stuck(ranks):
    """An operation that gets stuck is submitted with RONDO_SQE_BEGUN. Without it the daemon starts again from the beginning,
    and nearly every result is wrong."""
    for seed in range(3):
        run(program("inline_execution"), "--scenario", "late", "--ranks", ranks, "--seed", seed)


@pytest.mark.parametrize("algorithm", [None, "multicast", "linear"])
def test_late_receiver(algorithm):
    """A root with more to send than there are slots waits for the slowest receiver. Without that (rondo_slowest_head) the late
    receiver reads what came a ring later, or waits for ever."""
    run(program("inline_execution"), "--scenario", "receiver", "--ranks", 3, "--rounds", 12, RONDO_ALGORITHM=algorithm)


def test_many_threads():
    run(program("inline_execution"), "--scenario", "together", "--ranks", 2, "--rounds", 300)


def test_in_the_order_of_their_starts():
    """While the first receive runs inline for long, the second one has to wait. Without lane->held in lib/submission/queue.c
    (fits) it gets the first one's message."""
    run(program("inline_execution"), "--scenario", "order", "--ranks", 2, "--rounds", 100, RONDO_SPIN_INITIAL=1400000)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_groups(ranks):
    """Groups of cached requests begin under one lock (rondo_queue_run_cached_inline), other groups one request at a time."""
    for seed in range(3):
        run(program("inline_execution"), "--scenario", "groups", "--ranks", ranks, "--seed", seed, "--rounds", 3000)
