"""Ranks that fail, stop, stay away or give up: every other rank gets an error in time and can go on."""
import ctypes
import os
import random
import re
import signal
import socket
import time
import uuid

import pytest
from harness import ABORTED, BOOTSTRAP, PATIENCE, PEER, SANITIZED, SUCCESS, TIMEOUT, Job, free_port, program

LIMIT = 5 * PATIENCE  # seconds from a failure to the error


def where(root):
    return f"127.0.0.1:{free_port()}" if root == "tcp" else None


def faults(size, scenario, *options, **extra):
    if extra.get("root") is not None:
        extra.setdefault("RONDO_SECRET", "open sesame")  # without one even a root on TCP is met on a Unix socket
    extra.setdefault("seconds", 30)
    return Job(size, program("faults"), "--scenario", scenario, *options, **extra)


def kill_and_collect(job, victim, after=0.2):
    job.wait_for("READY")
    time.sleep(after)
    job.ranks[victim].process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    others = [rank for rank in job.ranks if rank != victim]
    for rank, (code, _, message) in job.results(others).items():
        took = time.monotonic() - killed
        assert code == PEER, f"rank {rank}: {code}: {message}\n{job.output()}"
        assert took < LIMIT, f"rank {rank} took {took:.1f} s"
    job.wait_for("FINALIZED", others)
    job.finish(others)


@pytest.mark.parametrize("root", ["unix", "tcp"])
@pytest.mark.parametrize("victim", [0, 1, 3])
@pytest.mark.parametrize("scenario", ["blocking", "nonblocking", "persistent"])
def test_killed_in_the_middle(scenario, victim, root):
    with faults(4, scenario, root=where(root)) as job:
        kill_and_collect(job, victim)


@pytest.mark.parametrize("scenario, readiness_check", [("blocking", 0), ("persistent", 0), ("persistent", 1)])
def test_killed_while_tasks_are_stuck(scenario, readiness_check):
    """A task that waits for a failed peer is visited because of the failure, not because of what it waits for."""
    with faults(4, scenario, RONDO_READINESS_CHECK=readiness_check) as job:
        kill_and_collect(job, 1)


def test_killed_while_others_wait_for_its_report():
    """Rank 0, which collects the report, is killed before it does: the next rank collects it, long before their limit."""
    with faults(3, "report") as job:
        job.wait_for("READY")
        time.sleep(1)
        job.ranks[0].process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        for rank, (code, _, message) in job.results([1, 2]).items():
            assert code == SUCCESS, f"rank {rank}: {code}: {message}\n{job.output()}"
        assert time.monotonic() - killed < 2, job.output()
        job.wait_for("FINALIZED", [1, 2])
        job.finish([1, 2])


@pytest.mark.parametrize("root", ["unix", "tcp"])
@pytest.mark.parametrize("victim", [0, 2])
def test_killed_while_a_child_lives(victim, root):
    """A forked child inherits its parent's connections, and keeps neither them nor the place where ranks meet."""
    address, name = where(root), uuid.uuid4().hex
    with faults(3, "blocking", "--forking", victim, root=address, RONDO_JOB=name) as job:
        child = int(job.wait_for("CHILD ", [victim])[victim].split()[1])
        try:
            kill_and_collect(job, victim)
            with faults(2, "serve", "--seconds", 1, root=address, RONDO_JOB=name) as next_job:
                next_job.finish()
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("count", [1, 3000000])
def test_killed_in_small_and_large_operations(count):
    with faults(3, "blocking", "--count", count) as job:
        kill_and_collect(job, 2)


@pytest.mark.parametrize("scenario", ["receive", "send", "mix", "survivors"])
def test_killed_before_it_did_its_part(scenario):
    with faults(3, scenario, "--absent", 1, "--count", 3000000 if scenario == "send" else 1000) as job:
        kill_and_collect(job, 1)


@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("scenario", ["dup", "split", "create_group", "register", "init"])
def test_killed_between_operations(scenario, victim):
    """A rank is killed somewhere in one of many calls, and where all others wait for it in such a call."""
    with faults(4, scenario) as job:
        kill_and_collect(job, victim)
    with faults(4, scenario, "--absent", victim) as job:
        kill_and_collect(job, victim)


@pytest.mark.parametrize("absent, victim", [(0, 0), (2, 2), (0, 1), (2, 1), (2, 0)])
def test_killed_in_finalize(absent, victim):
    """The other ranks wait for rank absent in rondo_finalize; one of them is killed, or rank absent is."""
    with faults(3, "finalize", "--absent", absent, "--seconds", 2) as job:
        job.wait_for("READY")
        job.results([rank for rank in job.ranks if rank != absent])
        time.sleep(0.2)
        job.ranks[victim].process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        others = [rank for rank in job.ranks if rank != victim]
        job.wait_for("FINALIZED", others)
        assert time.monotonic() - killed < LIMIT, job.output()
        job.finish(others)


def test_killed_one_of_two():
    with faults(2, "blocking") as job:
        kill_and_collect(job, 1)


def test_all_but_one_killed():
    with faults(5, "blocking") as job:
        job.wait_for("READY")
        for victim in (1, 3, 4, 0):
            job.ranks[victim].process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        code, _, message = job.results([2])[2]
        assert code == PEER, message
        assert time.monotonic() - killed < LIMIT
        job.finish([2])


def test_exit_without_finalize():
    with faults(3, "exits_early") as job:
        job.wait_for("READY", [0, 2])
        for rank, (code, _, message) in job.results([0, 2]).items():
            assert code == PEER, f"rank {rank}: {code}: {message}"
        job.finish([0, 2])


def test_stopped_and_continued():
    """A rank that the system does not run for a while is late, but not failed."""
    with faults(3, "serve", "--seconds", 4) as job:
        job.wait_for("READY")
        job.ranks[1].process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        job.ranks[1].process.send_signal(signal.SIGCONT)
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {code}: {message}"
        job.finish()


def test_stopped_beyond_the_timeout():
    with faults(3, "blocking", RONDO_TIMEOUT=1) as job:
        job.wait_for("READY")
        job.ranks[2].process.send_signal(signal.SIGSTOP)
        for rank, (code, _, message) in job.results([0, 1]).items():
            assert code == TIMEOUT, f"rank {rank}: {code}: {message}"
        job.ranks[2].process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("absent", [0, 2])
@pytest.mark.parametrize("count", [1, 100000])
def test_a_rank_that_never_starts_its_operation(absent, count):
    with faults(4, "absence", "--absent", absent, "--seconds", 3, "--count", count, RONDO_TIMEOUT=1) as job:
        for rank, (code, seconds, message) in job.results().items():
            assert code == TIMEOUT, f"rank {rank}: {code}: {message}\n{job.output()}"
            if rank != absent:
                assert 0.7 < seconds < 1 + LIMIT, f"rank {rank} took {seconds} s"
        job.finish()
        reports = [line for line in job.output().splitlines() if "allreduce" in line and "RESULT" not in line]
        assert any(f"rank {absent}" in line or f"ranks {absent}" in line for line in reports), job.output()


@pytest.mark.slow
@pytest.mark.parametrize("root", ["unix", "tcp"])
def test_a_stopped_rank_that_is_connected_to(root):
    """Within a host a rank that does not answer lives, also when another one turns to it for the first time."""
    with faults(8, "first_contact", "--absent", 3, root=where(root), seconds=60) as job:
        job.wait_for("READY")
        time.sleep(20)
        assert "RESULT" not in job.output(), job.output()
        job.ranks[3].process.send_signal(signal.SIGCONT)
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {code}: {message}"
        job.finish()


def test_many_operations_that_one_rank_never_starts():
    with faults(3, "mix", "--absent", 2, RONDO_TIMEOUT=2) as job:
        for rank, (code, seconds, message) in job.results([0, 1]).items():
            assert code == TIMEOUT, f"rank {rank}: {code}: {message}"
            assert seconds < 2 + LIMIT
        job.ranks[2].process.kill()
        job.finish([0, 1])
        report = job.output()
        assert "allgather" in report and "barrier" in report and "allreduce" in report, report


@pytest.mark.parametrize("count", [1, 1000000])
def test_abort(count):
    with faults(3, "abort", "--count", count) as job:
        for rank, (code, _, message) in job.results().items():
            assert code == ABORTED, f"rank {rank}: {code}: {message}"
        job.finish()


@pytest.mark.parametrize("root", ["unix", "tcp"])
@pytest.mark.parametrize("missing", [0, 2])
def test_missing_at_the_start(missing, root):
    present = [rank for rank in range(3) if rank != missing]
    with faults(3, "blocking", only=present, root=where(root), RONDO_CONNECT_TIMEOUT=2) as job:
        for rank, (code, seconds, message) in job.results().items():
            assert code == BOOTSTRAP, f"rank {rank}: {code}: {message}"
            assert 1.5 < seconds < 2 + LIMIT, f"rank {rank} took {seconds} s"
            assert f"rank {missing}" in message or f"ranks {missing}" in message, message
        job.finish()


def test_killed_while_others_are_still_missing():
    with faults(3, "blocking", only=[0, 1], RONDO_CONNECT_TIMEOUT=3) as job:
        time.sleep(0.5)
        job.ranks[1].process.kill()
        code, seconds, message = job.results([0])[0]
        assert code in (BOOTSTRAP, PEER), f"{code}: {message}"
        assert seconds < 3 + LIMIT
        job.finish([0])


def test_one_rank_given_twice():
    port = free_port()
    with faults(2, "blocking", only=[0], root=f"127.0.0.1:{port}", RONDO_CONNECT_TIMEOUT=3) as job:
        with faults(2, "blocking", only=[0], root=f"127.0.0.1:{port}", RONDO_CONNECT_TIMEOUT=3) as twin:
            results = [job.results()[0], twin.results()[0]]
    assert all(code == BOOTSTRAP for code, _, _ in results), results


def test_sizes_that_differ():
    root = f"127.0.0.1:{free_port()}"
    with faults(3, "blocking", only=[0], root=root, RONDO_CONNECT_TIMEOUT=3) as job:
        with faults(2, "blocking", only=[1], root=root, RONDO_CONNECT_TIMEOUT=3) as other:
            code, _, message = other.results()[1]
            assert code == BOOTSTRAP, message
            assert job.results()[0][0] == BOOTSTRAP


def life(size, *options, **extra):
    return Job(size, program("lifetime"), *options, seconds=40, **extra)


def after_a_local_failure(job, failing):
    """Rank `failing` alone could not do its part: every rank has an error by the next call, with that rank and a reason."""
    results = job.results()
    again = {rank: line.split(" ", 3) for rank, line in job.wait_for("AGAIN ").items()}
    for rank, (code, _, message) in results.items():
        assert code != SUCCESS or rank != failing, job.output()
        assert int(again[rank][1]) != SUCCESS, job.output()
        assert f"rank {failing}" in again[rank][3], job.output()
        assert code == SUCCESS or rank == failing or f"rank {failing}" in message, job.output()
    job.wait_for("FINALIZED")
    job.finish()
    return results


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space of their own")
@pytest.mark.parametrize("failing", [0, 2])
@pytest.mark.parametrize("call", ["blocking", "nonblocking", "persistent", "message", "split", "register"])
def test_out_of_memory_on_one_rank(call, failing):
    with life(3, "--call", call, "--starved", failing) as job:
        after_a_local_failure(job, failing)


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space of their own")
def test_little_address_space_on_rank_0():
    """Wherever memory ends, in rondo_init or later, both ranks get an error, or the call succeeds on both."""
    failed = 0
    for limit in range(100, 400, 20):
        with life(2, "--call", "blocking", "--starved", 0, "--limit", limit, RONDO_CONNECT_TIMEOUT=3) as job:
            results = job.results()
            again = {rank: int(line.split()[1]) for rank, line in job.wait_for("AGAIN ").items()}
            assert (again[0] == SUCCESS) == (again[1] == SUCCESS), f"{limit} MiB\n{job.output()}"
            failed += again[0] != SUCCESS
            assert again[0] == SUCCESS or "rank 0" in results[1][2], f"{limit} MiB\n{job.output()}"
            job.wait_for("FINALIZED")
            job.finish()
    assert failed > 0, "no limit was too little"


def test_init_that_fails_on_one_rank():
    """Rank 1 fails after the ranks have met; the others learn why, long before the connect timeout."""
    unwritable = "/nonexistent/trace.json"
    with faults(3, "blocking", each=lambda rank: {"RONDO_TRACE": unwritable} if rank == 1 else {}) as job:
        for rank, (code, seconds, message) in job.results().items():
            assert code != SUCCESS and unwritable in message, f"rank {rank}: {code}: {message}"
            assert rank == 1 or "rank 1" in message, f"rank {rank}: {message}"
            assert seconds < 2 * LIMIT, f"rank {rank} took {seconds} s"
        job.finish()


def own_address():
    """An address of this machine that is not loopback's, on which heartbeats are sent; None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return None if probe.getsockname()[0].startswith("127.") else probe.getsockname()[0]
        except OSError:
            return None


@pytest.mark.parametrize("found_by", ["timeout", "heartbeat", "freeze"])
@pytest.mark.parametrize("frozen", [0, 2])
def test_finalize_beside_a_frozen_rank(frozen, found_by):
    """The others leave the frozen rank behind, and say so."""
    address = own_address()
    if found_by == "timeout":
        extra = {"RONDO_TIMEOUT": 3}
    elif found_by == "freeze":
        extra = {"RONDO_FREEZE": 2}
    elif address is not None:
        extra = {"RONDO_HEARTBEAT": 2, "root": f"{address}:{free_port()}", "RONDO_SECRET": "of this test"}
    else:
        pytest.skip("this machine has no address but loopback's, where no heartbeats are sent")
    with faults(3, "finalize", "--absent", frozen, "--seconds", 1000, **extra) as job:
        job.wait_for("READY")
        job.ranks[frozen].process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        others = [rank for rank in job.ranks if rank != frozen]
        job.wait_for("FINALIZED", others)
        job.finish(others)
        assert time.monotonic() - stopped < 5 + LIMIT, job.output()
        if found_by == "timeout":
            assert f"rank {frozen} has not answered the goodbye of rank 1" in job.output(), job.output()


@pytest.mark.parametrize("root", ["unix", "tcp"])
@pytest.mark.parametrize("frozen", [0, 2])
def test_frozen_in_the_middle(frozen, root):
    """A rank that is stopped is an error on the others, and one of its own once it goes on."""
    with faults(3, "blocking", root=where(root), RONDO_FREEZE=2) as job:
        job.wait_for("READY")
        job.ranks[frozen].process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        others = [rank for rank in job.ranks if rank != frozen]
        for rank, (code, _, message) in job.results(others).items():
            assert code == PEER and (frozen == 0 or f"rank {frozen}" in message), f"rank {rank}: {code}: {message}"
        assert time.monotonic() - stopped < LIMIT, job.output()
        job.ranks[frozen].process.send_signal(signal.SIGCONT)
        assert job.results([frozen])[frozen][0] == PEER, job.output()
        job.wait_for("FINALIZED")
        job.finish()


class Traced:
    """All threads of a process are stopped as a debugger stops them."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, process):
        self.process = process

    def request(self, number, thread):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        return libc.ptrace(number, thread, None, None)

    def __enter__(self):
        self.threads = [int(name) for name in os.listdir(f"/proc/{self.process}/task")]
        for thread in self.threads:
            if self.request(self.SEIZE, thread) != 0:
                pytest.skip("this machine allows no tracing of other processes")
            self.request(self.INTERRUPT, thread)
        for thread in self.threads:
            os.waitpid(thread, 0x40000000)  # __WALL: of any thread

    def __exit__(self, *_):
        for thread in self.threads:
            self.request(self.DETACH, thread)


def test_debugged_in_the_middle():
    """A rank that a debugger has stopped is waited for, however long that takes."""
    with faults(3, "blocking", RONDO_FREEZE=1) as job:
        job.wait_for("READY")
        with Traced(job.ranks[1].process.pid):
            time.sleep(4)
        job.ranks[2].process.kill()
        for rank, (code, _, message) in job.results([0, 1]).items():
            assert code == PEER and "rank 2" in message, f"rank {rank}: {code}: {message}"
        job.wait_for("FINALIZED", [0, 1])
        job.finish([0, 1])


def came_late(results):
    """Whether this machine was too slow for the job to meet: ranks that others missed found, once they ran, that rank 0 had given up."""
    codes = {code for code, _, _ in results.values()}
    missed = {int(rank) for _, _, message in results.values()
              for ranks in re.findall(r"^ranks? ([\d, ]+) of \d+ did not come", message) for rank in re.findall(r"\d+", ranks)}
    return codes == {BOOTSTRAP} and bool(missed) and all(rank in results and "found no rank 0" in results[rank][2] for rank in missed)


@pytest.mark.parametrize("lives", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_any_time(lives):
    """Any rank, from rondo_init to rondo_finalize: every survivor ends in time, with the number of the dead rank."""
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    number = late = 0
    while number < lives + late:
        number += 1
        size, moment = draw.randint(3, 5), draw.uniform(0, 0.8)
        victim = draw.randrange(size)
        where_killed = f"life {number} of seed {seed}: rank {victim} of {size} after {moment:.3f} s"
        with life(size, RONDO_CONNECT_TIMEOUT=2) as job:
            time.sleep(moment)
            job.ranks[victim].process.kill()
            killed = time.monotonic()
            others = [rank for rank in job.ranks if rank != victim]
            results = job.results(others)
            if came_late(results):  # it tells nothing of the victim
                late += 1
                assert late < lives, f"{late} jobs have not met\n{job.output()}"
                continue
            for rank, (code, _, message) in results.items():
                assert code == SUCCESS or f"rank {victim}" in message, f"{where_killed}\n{job.output()}"
                assert code in (SUCCESS, PEER, BOOTSTRAP), f"{where_killed}\n{job.output()}"
            job.wait_for("FINALIZED", others)
            job.finish(others)
            assert time.monotonic() - killed < LIMIT, f"{where_killed}\n{job.output()}"
