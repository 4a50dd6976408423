"""`rondo stress` finishes with preemption, and reports a deadlock without."""
import json
import re

import pytest
from harness import program, run


def stress(tmp_path, *options, expect=0, seconds=60, **extra):
    where = tmp_path / "stress.json"
    output = run(program("rondo"), "stress", "--device", "host", *options, "--json", where, expect=expect, seconds=seconds,
                 **extra)
    return output, json.loads(where.read_text())


@pytest.mark.parametrize("options", [("--order", "random"), ("--order", "random", "--sync"), ("--order", "same")])
@pytest.mark.parametrize("ranks,collectives", [(2, 4), (5, 8), (8, 8)])
def test_finishes(tmp_path, ranks, collectives, options):
    _, found = stress(tmp_path, "--ranks", ranks, "--collectives", collectives, "--iterations", 20, "--seed", ranks, *options)
    assert found["finished"] == found["expected"] == ranks * collectives * 20
    assert found["wrong"] == 0
    assert found["deadlock"] is False


@pytest.mark.parametrize("sync", [(), ("--sync",)])
def test_multicast_finishes(tmp_path, sync):
    """Persistent operations over multicast connectors, in an order of each rank's own."""
    _, found = stress(tmp_path, "--ranks", 6, "--collectives", 8, "--iterations", 20, "--order", "random", "--seed", 3, *sync,
                      RONDO_ALGORITHM="multicast")
    assert found["finished"] == found["expected"] == 6 * 8 * 20
    assert found["wrong"] == 0


@pytest.mark.slow
def test_many_collectives_on_many_ranks(tmp_path):
    _, found = stress(tmp_path, "--ranks", 16, "--collectives", 64, "--iterations", 2, "--order", "random", "--sync",
                      seconds=120)
    assert found["finished"] == found["expected"]
    assert found["preemptions"] > 0


def test_synchronization_makes_the_daemon_quit(tmp_path):
    _, found = stress(tmp_path, "--ranks", 4, "--collectives", 8, "--iterations", 20, "--sync")
    assert found["daemon_quits"] > 0
    assert found["preemptions"] > 0


@pytest.mark.parametrize("sync", [(), ("--sync",)])
def test_deadlock_is_reported(tmp_path, sync):
    """Without preemption the ranks hold different collectives; the report names the ranks and what they wait for."""
    output, found = stress(tmp_path, "--ranks", 4, "--collectives", 8, "--iterations", 200, "--order", "random",
                           "--no-preempt", "--timeout", 3, *sync, expect=3)
    assert found["deadlock"] is True
    assert found["finished"] < found["expected"]
    assert found["wrong"] == 0
    assert "allreduce" in output
    named = {int(rank) for rank in re.findall(r"\branks? (\d+)", output)}
    assert len(named & set(range(4))) >= 2, output


def test_same_order_needs_no_preemption(tmp_path):
    _, found = stress(tmp_path, "--ranks", 4, "--collectives", 4, "--iterations", 20, "--order", "same", "--no-preempt")
    assert found["finished"] == found["expected"]


@pytest.mark.parametrize("options", [("--ranks", "none"), ("--order", "backwards"), ("--collectives", "-1"), ("--frobnicate",)])
def test_bad_usage(options):
    run(program("rondo"), "stress", *options, expect=2)
