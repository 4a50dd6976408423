"""Ranks that go and come: revoke, agree and shrink while processes die at random moments, and jobs that grow again."""
import re
import signal

import pytest
from harness import BUILD, Job, program, run
from namespaces import Hosts, ucx_version


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 33])
def test_recovery(ranks):
    """On ranks that live: arguments, agreements, operations that hang when the communicator is revoked, and ranks that join."""
    run(program("recovery"), "--ranks", ranks)


def test_recovery_processes():
    with Job(3, program("recovery"), "--ranks", 0) as job:
        job.finish()


def die(ranks, deaths, rounds, seed):
    """Returns how many died. All that printed the outcome of an agreement printed the same, also those that died later."""
    command = [program("recovery"), "--ranks", 0, "--scenario", "dying", "--deaths", deaths, "--rounds", rounds, "--seed", seed]
    with Job(ranks, *command, seconds=120) as job:
        died = [rank.rank for rank in job.ranks.values() if rank.process.wait(timeout=120) == -signal.SIGKILL]
        job.finish([rank for rank in job.ranks if rank not in died])
        outcomes = {}
        for rank in job.ranks.values():
            rank.reader.join(5)
            for line in rank.lines:
                words = line.split()
                if words and words[0] in ("AGREED", "SHRUNK") and len(words) == (4 if words[0] == "AGREED" else 3):
                    outcomes.setdefault((words[0], words[1]), set()).add(tuple(words[2:]))
        if len(outcomes) != 6 * rounds:
            job.fail(f"{len(outcomes)} outcomes, not {6 * rounds}")
        for call, outcome in outcomes.items():
            if len(outcome) != 1:
                job.fail(f"{call}: ranks disagree: {outcome}")
        return len(died)


@pytest.mark.parametrize("seed", [1, 2])
def test_recovery_dying(seed):
    assert die(5, 3, 6, seed) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_recovery_dying_often(seed):
    """Jobs of eight, of which at most two remain."""
    assert die(8, 6, 12, seed) >= 3


def train(*options, seconds=120, hosts=None):
    """Runs the elastic example, with its ranks on the hosts in turn. Returns deaths, joins and the test's accuracy."""
    command, extra = [BUILD / "examples" / "elastic", *options], {}
    if hosts is not None:
        command = [*hosts.enter(0), *command, "--hosts", hosts.count, "--through", f"ip netns exec {hosts.mark}-%d"]
        extra["UCX_TLS"] = "tcp"
    output = run(*command, seconds=seconds, **extra)
    print(output)
    found = re.search(r": (\d+) deaths, (\d+) joins\n(?:.*\n)?test accuracy ([\d.]+) %, .*, the same bits on \d+ ranks", output)
    assert found, output
    return int(found[1]), int(found[2]), float(found[3])


@pytest.mark.parametrize("ranks", [2, 4])
def test_training_survives(ranks):
    """It reaches what it reaches undisturbed: each step counts for all ranks or for none."""
    undisturbed = train("--ranks", ranks, "--deaths", 0)
    deaths, joins, accuracy = train("--ranks", ranks, "--deaths", 6, "--pause", 40, "--epochs", 40)
    assert undisturbed[:2] == (0, 0) and undisturbed[2] >= 95
    assert deaths >= 2 and joins >= 1 and abs(accuracy - undisturbed[2]) <= 3


def test_training_survives_between_hosts():
    """Once more if UCX before 1.16 has ended a process whose peer died while the two connected (docs/guide/limits.md)."""
    def attempt():
        with Hosts(2) as hosts:
            return train("--ranks", 4, "--deaths", 3, "--pause", 200, "--epochs", 60, hosts=hosts)

    try:
        deaths, joins, accuracy = attempt()
    except pytest.fail.Exception as failure:
        if ucx_version() >= (1, 16) or "ucp_request.c" not in str(failure):
            raise
        deaths, joins, accuracy = attempt()
    assert deaths >= 2 and joins >= 1 and accuracy >= 95


@pytest.mark.slow
def test_training_survives_often():
    """500 deaths, at any moment of training, shrinking, growing and beginning, in jobs of eight."""
    deaths, joins, accuracy = train("--ranks", 8, "--deaths", 500, "--pause", 60, "--epochs", 2000, seconds=1200)
    assert deaths == 500 and joins >= 450 and accuracy >= 95


@pytest.mark.slow
def test_training_survives_often_between_hosts():
    """250 on four hosts, where it takes longer until a rank that has died is missed. LD_LIBRARY_PATH may name a newer UCX."""
    if ucx_version() < (1, 16):
        pytest.skip(f"UCX {ucx_version()} ends processes at deaths (docs/guide/limits.md)")
    with Hosts(4) as hosts:
        deaths, joins, accuracy = train("--ranks", 8, "--deaths", 250, "--pause", 1000, "--epochs", 2000, seconds=2400, hosts=hosts)
    assert deaths == 250 and joins >= 200 and accuracy >= 95
