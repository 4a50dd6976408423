"""Freed objects return all their resources: communicators, requests, runtimes, connector memory. Communicators
that members make by themselves."""
import pytest
from harness import Job, program, run

SCENARIOS = ["communicators", "many_communicators", "requests", "budget", "callbacks", "left_alive"]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_threads(scenario, ranks):
    if scenario == "budget" and ranks == 1:
        ranks = 2  # one rank needs no connectors
    run(program("lifecycle"), "--ranks", ranks, "--scenario", scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_processes(scenario):
    with Job(3, program("lifecycle"), "--ranks", 0, "--scenario", scenario) as job:
        job.finish()


@pytest.mark.parametrize("blocks", [2, 4])
def test_success_is_of_all_blocks(blocks):
    """An operation of which a failure has cut off one block does not succeed because another one ended well, and last."""
    run(program("lifecycle"), "--ranks", 3, "--scenario", "failures", RONDO_BLOCKS=blocks)


@pytest.mark.parametrize("poor", [0, 2])
def test_budget_of_one_rank(poor):
    """The other ranks could create the operations that this one cannot."""
    budgets = lambda rank: {"RONDO_MEMORY": "2M" if rank == poor else "64M"}
    with Job(4, program("lifecycle"), "--ranks", 0, "--scenario", "budget", "--budget", -1, each=budgets) as job:
        job.finish()


def test_runtimes():
    run(program("lifecycle"), "--scenario", "runtimes")


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 9])
def test_members_alone(ranks):
    run(program("members_alone"), "--ranks", ranks)


@pytest.mark.parametrize("algorithm", ["ring", "allpairs", "pairs", "direct"])
def test_reduce_scatter_by(algorithm):
    """The in-place reduce-scatter works with any algorithm."""
    run(program("members_alone"), "--ranks", 4, RONDO_ALGORITHM=algorithm, RONDO_BLOCKS=4)


def test_attempts():
    """Members that come to a rondo_comm_create_group that has failed do not take its messages for those of their own."""
    run(program("members_alone"), "--late", 1, RONDO_TIMEOUT=2)


def test_members_alone_processes():
    with Job(3, program("members_alone"), "--ranks", 0) as job:
        job.finish()
