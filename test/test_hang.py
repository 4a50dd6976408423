"""Hang reports name exactly the ranks at fault, appear on every rank, and can be requested at any time without ending an
operation.
"""
import re
import signal
import time

import pytest
from harness import PEER, SUCCESS, TIMEOUT, Job, program, run


def mask(ranks):
    return sum(1 << rank for rank in ranks)


def numbers(text):
    return [int(word) for word in re.findall(r"\d+", text)]


def hang(size, scenario, culprits, **extra):
    return Job(size, program("hang"), "--scenario", scenario, "--culprits", mask(culprits), seconds=40, **extra)


def code_of(rank, job):
    line = rank.wait_for("RESULT", job.deadline)
    assert line is not None, job.output()
    return int(line.split()[1])


@pytest.mark.parametrize("size, culprits", [(3, [2]), (5, [1]), (6, [0, 4])])
def test_the_ranks_that_started_in_another_order(size, culprits):
    """Without preemption the ranks deadlock; every rank's report names the circle, and exactly these ranks as different."""
    with hang(size, "order", culprits, RONDO_PREEMPT=0, RONDO_TIMEOUT=2) as job:
        # The last rank to get the error may still complete with the help of ranks that have given up already.
        codes = [code_of(rank, job) for rank in job.ranks.values()]
        assert set(codes) <= {TIMEOUT, SUCCESS} and TIMEOUT in codes, job.output()
        job.finish()
        for rank in job.ranks.values():
            text = "\n".join(rank.lines)
            assert text.count("hang report") >= 1 and "circular wait" in text, text
            named = re.search(r"in another order than most; namely ranks? (.*)", text)
            assert named and numbers(named.group(1)) == culprits, text
            # There may be one more report when some ranks have given up already: each of them has a circle of its own.
            for report in [part for part in text.split("hang report") if "circular wait" in part]:
                circle = re.findall(r"rank (\d+) sits in .* and waits for rank (\d+)", report)
                assert len(circle) >= 2 and any(int(a) in culprits for a, _ in circle), text
                assert [a for a, _ in circle[1:]] + [circle[0][0]] == [b for _, b in circle], text


def test_the_same_with_preemption_finishes():
    with hang(4, "order", [2], RONDO_TIMEOUT=5) as job:
        for rank in job.ranks.values():
            assert code_of(rank, job) == SUCCESS, job.output()
        job.finish()
        assert "report" not in job.output()


@pytest.mark.parametrize("size, culprits", [(4, [0]), (5, [1, 3]), (3, [2])])
def test_the_ranks_that_did_not_start(size, culprits):
    with hang(size, "absence", culprits, RONDO_TIMEOUT=1) as job:
        for rank in job.ranks.values():
            assert code_of(rank, job) == TIMEOUT, job.output()
        job.finish()
        others = [rank for rank in range(size) if rank not in culprits]
        for rank in job.ranks.values():
            text = "\n".join(rank.lines)
            line = next(line for line in rank.lines if "allreduce" in line)
            started, missing = re.search(r"; started by ranks? ([\d, ]+); not started by ranks? ([\d, ]+)", line).groups()
            assert numbers(started) == others and numbers(missing) == culprits, text
            assert "circular" not in text, text


def test_asked_for_by_the_program():
    with hang(4, "ask", [3]) as job:
        for rank in job.ranks.values():
            assert code_of(rank, job) == SUCCESS, job.output()
        job.finish()
        text = "\n".join(job.ranks[0].lines)
        assert re.search(r"allreduce.*; started by ranks 0, 1, 2; not started by rank 3", text), text
        assert "report" not in "\n".join(job.ranks[1].lines)


@pytest.mark.parametrize("name", ["USR1", "SIGUSR2", "10"])
def test_asked_for_by_a_signal(name):
    number = signal.SIGUSR2 if name == "SIGUSR2" else signal.SIGUSR1
    with hang(3, "absence", [1], RONDO_REPORT_SIGNAL=name) as job:
        job.wait_for("READY")
        time.sleep(0.7)
        job.ranks[2].process.send_signal(number)
        for rank in job.ranks.values():
            assert code_of(rank, job) == SUCCESS, job.output()
        job.finish()
        text = "\n".join(job.ranks[2].lines)
        assert re.search(r"allreduce.*; started by ranks 0, 2; not started by rank 1", text), text
        assert "report" not in "\n".join(job.ranks[0].lines)


def reports_without_rank_0(text, last, loggers):
    """The report that rank 1 asked for, and one in the log of each other rank, because of the timeout."""
    missing = rf"allreduce.*; started by ranks? [\d, ]+; not started by rank {last}"
    assert re.search(rf"^REPORT$.*{missing}.*^END$", text, re.MULTILINE | re.DOTALL), text
    assert len(re.findall(missing, text.split("\nEND\n")[1])) >= loggers, text
    assert "sends no hang report" not in text, text


@pytest.mark.parametrize("size", [3, 5])
def test_after_rank_0_has_left(size):
    """The lowest rank that is not gone collects."""
    text = run(program("hang"), "--ranks", size, "--scenario", "left", RONDO_TIMEOUT=2)
    assert text.count(f"RESULT {TIMEOUT}") == size - 1, text
    reports_without_rank_0(text, size - 1, size - 1)


def test_after_rank_0_has_died():
    with Job(3, program("hang"), "--scenario", "died", seconds=40, RONDO_TIMEOUT=2) as job:
        codes = [code_of(job.ranks[rank], job) for rank in (1, 2)]
        assert job.ranks[0].process.wait(timeout=20) == -signal.SIGKILL
        job.finish([1, 2])
        assert codes == [TIMEOUT, TIMEOUT], job.output()
        reports_without_rank_0("\n".join(job.ranks[1].lines), 2, 1)


def test_no_such_signal():
    output = run(program("rondo"), "stress", "--ranks", 2, "--device", "host", "--iterations", 1, expect=1,
                 RONDO_REPORT_SIGNAL="KILLALL")
    assert "RONDO_REPORT_SIGNAL" in output and "KILLALL" in output
