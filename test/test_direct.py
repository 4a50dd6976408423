"""Direct access to the peers' buffers, single copies, and the budget of connector memory, between threads and between processes."""
import random
import signal

import pytest
from harness import PEER, SANITIZED, Job, program, run


# Sanitizers make the reference slow: there a trial runs twice instead of five times.
SHORT = ["--forms", "blocking,persistent", "--restarts", 1] if SANITIZED else []


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_threads(ranks):
    run(program("direct"), "--ranks", ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes(ranks):
    with Job(ranks, program("direct"), "--ranks", 0) as job:
        job.finish()


@pytest.mark.parametrize("algorithm", ["direct", "push", "push-chain", "allpairs", "local"])
def test_algorithm_of_the_environment(algorithm):
    """RONDO_ALGORITHM is used where it fits; every other call gets the algorithm that it would have got without."""
    few = ["--types", "float", "--ops", "sum", "--counts", "17,70001", *SHORT]
    run(program("matrix"), "--ranks", 3, *few, RONDO_ALGORITHM=algorithm)
    run(program("direct"), "--ranks", 3, RONDO_ALGORITHM=algorithm)
    with Job(2, program("matrix"), "--ranks", 0, *few, RONDO_ALGORITHM=algorithm) as job:
        job.finish()


# ---- single copies between processes ----

# cma: every message, of any size. refused: the same, but no receiver can read its sender, so all go through slots after all.
SINGLE_COPIES = ["cma", "refused", "auto"]


def copies(ranks, scenario, *options, **extra):
    return Job(ranks, program("single_copy"), "--scenario", scenario, *options, **{"RONDO_SINGLE_COPY": "cma", **extra})


@pytest.mark.parametrize("how", SINGLE_COPIES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_single_copies(ranks, how):
    """Messages of three slots, with a rest."""
    with copies(ranks, "data", RONDO_SINGLE_COPY=how) as job:
        job.finish()


@pytest.mark.parametrize("how", SINGLE_COPIES)
@pytest.mark.parametrize("name, options", [
    ("matrix", ["--types", "int8,float", "--ops", "sum", "--counts", "0,1,17,4099,70001", *SHORT]),
    ("p2p", []),
    ("direct", []),
])
def test_programs_with_single_copies(name, options, how):
    with Job(3, program(name), "--ranks", 0, *options, RONDO_SINGLE_COPY=how) as job:
        job.finish()


@pytest.mark.parametrize("how", SINGLE_COPIES)
@pytest.mark.parametrize("options", [
    ["--spin", 1, "--max-count", 60000, "--persistent", 8],  # nearly every wait is preempted, between the slots of a message too
    ["--blocks", 3, "--max-count", 60000, "--threads", 2],
    ["--order", "priority", "--synchronize", 1],
])
def test_preemption_between_single_copies(options, how):
    with Job(3, program("mix"), "--ranks", 0, "--iterations", 4, "--seed", 7, *options, RONDO_SINGLE_COPY=how) as job:
        job.finish()


@pytest.mark.parametrize("preempt, readiness_check", [(0, 1), (1, 0)])
@pytest.mark.parametrize("collective", ["alltoall", "allgather"])
def test_refusals_at_every_kind_of_wait(collective, preempt, readiness_check):
    """A sender fills refused slots whatever it waits for: all wait for each other."""
    with Job(3, program("matrix"), "--ranks", 0, "--collectives", collective, "--types", "float", "--counts", "70001,300001",
             RONDO_SINGLE_COPY="refused", RONDO_PREEMPT=preempt, RONDO_READINESS_CHECK=readiness_check) as job:
        job.finish()


@pytest.mark.parametrize("how, status", [("cma", -signal.SIGSYS), ("off", 0)])
def test_single_copies_are_made(how, status):
    """The kernel ends a process that reads another one after init."""
    with copies(2, "trapped", RONDO_SINGLE_COPY=how) as job:
        codes = [rank.process.wait(timeout=60) for rank in job.ranks.values()]
        assert status in codes, job.output()


def test_reading_is_forbidden():
    """The probe at init fails, the log says why, and slots are used."""
    with copies(3, "forbidden", RONDO_LOG="warn") as job:
        job.finish()
        assert "cannot be read: Operation not permitted" in job.output(), job.output()


def test_reading_is_forbidden_on_one_rank():
    with Job(3, program("single_copy"), only=[0, 1], RONDO_JOB="one-forbidden", RONDO_SINGLE_COPY="cma") as job:
        with Job(3, program("single_copy"), "--scenario", "forbidden", only=[2], RONDO_JOB="one-forbidden",
                 RONDO_SINGLE_COPY="cma") as other:
            job.finish()
            other.finish()


def test_reading_is_forbidden_later():
    """Slots that are referenced and cannot be read are filled after all."""
    with copies(3, "revoked") as job:
        job.finish()


@pytest.mark.parametrize("seed", [1, 2])
def test_buffers_are_given_back_after_an_abort(seed):
    """Without rondo_withdraw_references a receive may succeed with what the sender's application has written after it."""
    with copies(2, "abandon", "--rounds", 400, "--words", 500000, "--seed", seed) as job:
        job.finish()


def kill_in_the_middle(seed):
    chance = random.Random(seed)
    ranks = chance.choice([2, 3, 4])
    victim = chance.randrange(ranks)
    options = ["--victim", victim, "--microseconds", chance.randrange(40000), "--words", chance.choice([5000, 40000, 300000])]
    with copies(ranks, "killed", *options) as job:
        others = [rank for rank in range(ranks) if rank != victim]
        for rank, (code, _, message) in job.results(others).items():
            assert code == PEER, f"rank {rank}: {code}: {message}\n{job.output()}"
        job.finish(others)  # not 0 if a collective that succeeded has brought wrong data


@pytest.mark.parametrize("seed", range(6))
def test_killed_in_the_middle_of_single_copies(seed):
    kill_in_the_middle(seed)


@pytest.mark.slow
def test_killed_200_times():
    for seed in range(100, 300):
        kill_in_the_middle(seed)
