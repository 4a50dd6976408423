"""Operations that are carried out by who starts them, before a daemon hears of them (device/daemon.h: rondo_carry_out)."""
import pytest
from harness import program, run


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_no_daemon_hears_of_them(blocks):
    run(program("carried"), "--scenario", "alone", "--ranks", 1, RONDO_BLOCKS=blocks)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_stuck(ranks):
    """Submitted without RONDO_SQE_BEGUN, nearly everything is wrong: the daemon begins from the beginning."""
    for seed in range(3):
        run(program("carried"), "--scenario", "late", "--ranks", ranks, "--seed", seed)


def test_many_threads():
    run(program("carried"), "--scenario", "together", "--ranks", 2, "--rounds", 300)


def test_in_the_order_of_their_starts():
    """While the first receive is carried out for long, the second has to wait. Without lane->held in lib/queue.c (fits) it gets the first
    one's message, in three of three runs."""
    run(program("carried"), "--scenario", "order", "--ranks", 2, "--rounds", 100, RONDO_SPIN_INITIAL=50000)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_groups(ranks):
    """Groups whose requests are kept are begun under one lock (rondo_queue_carry_kept), others one by one."""
    for seed in range(3):
        run(program("carried"), "--scenario", "groups", "--ranks", ranks, "--seed", seed, "--rounds", 3000)
