"""Random mixes of collectives and messages, started in different orders on every rank, from several threads."""
import pytest
from harness import program, run


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7, 9])
@pytest.mark.parametrize("synchronize", [0, 1])
def test_orders(ranks, synchronize):
    run(program("mix"), "--ranks", ranks, "--seed", 10 * ranks + synchronize, "--synchronize", synchronize, "--threads", 2,
        "--iterations", 4, "--persistent", 4)


@pytest.mark.parametrize("seed", range(4))
def test_priorities(seed):
    run(program("mix"), "--ranks", 4, "--order", "priority", "--seed", 100 + seed, "--iterations", 6)


@pytest.mark.parametrize("spin", [1, 50])
@pytest.mark.parametrize("order", ["fifo", "priority"])
def test_small_budgets(spin, order):
    """A budget so small that nearly every wait is preempted."""
    run(program("mix"), "--ranks", 4, "--spin", spin, "--order", order, "--iterations", 5, "--seed", 200 + spin)


@pytest.mark.parametrize("policy", ["fixed", "adaptive", "profile"])
def test_policies(policy):
    """Budgets that stay, that progress raises, and that are measured."""
    run(program("mix"), "--ranks", 4, "--persistent", 8, "--iterations", 4, "--seed", 250, RONDO_SPIN=policy,
        RONDO_SPIN_CAP=0 if policy == "profile" else 100000)


def test_many_threads():
    run(program("mix"), "--ranks", 2, "--threads", 6, "--persistent", 4, "--iterations", 4, "--seed", 300)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks(blocks):
    run(program("mix"), "--ranks", 3, "--blocks", blocks, "--iterations", 4, "--max-count", 60000, "--seed", 400 + blocks)


def test_many_persistent():
    run(program("mix"), "--ranks", 3, "--threads", 1, "--persistent", 40, "--iterations", 4, "--seed", 500)


@pytest.mark.parametrize("readiness_check", [0, 1])
@pytest.mark.parametrize("blocks", [1, 3])
def test_readiness_check(blocks, readiness_check):
    """A preempted task is visited in every round, or only when what it waits for seems to have arrived."""
    run(program("mix"), "--ranks", 4, "--blocks", blocks, "--spin", 4, "--persistent", 12, "--iterations", 4, "--seed", 600 + blocks,
        RONDO_READINESS_CHECK=readiness_check)


@pytest.mark.parametrize("spin", [1, 1000])
def test_multicast(spin):
    """Multicast connectors of several lanes at once, with and without preemption at nearly every wait."""
    run(program("mix"), "--ranks", 5, "--threads", 2, "--persistent", 8, "--spin", spin, "--iterations", 4, "--seed", 700 + spin,
        RONDO_ALGORITHM="multicast")
