"""Jobs of many processes: every collective is exact, and a rank costs hardly more than one of a small job."""
import json

import pytest
import scale
from scale import harness


def test_more_ranks_than_are_composed():
    """Beyond 64 a rank builds its own part of a ring alone."""
    rows = scale.run(96, 5, 120)
    assert [row["rank"] for row in rows] == list(range(96))


@pytest.mark.parametrize("ranks", [2, 3, 12, 33])
def test_simulation_counts_what_ranks_say(ranks):
    """Connections, messages and bytes of each rank until rondo_init has returned; around powers of two, where neighbours coincide."""
    rows = scale.start(ranks, 60)
    assert scale.differences(rows) == ""
    rows[1]["messages"] += 1
    assert scale.differences(rows).startswith(f"rank 1: {rows[1]['made']} made"), "a message more is not noticed"


@pytest.mark.parametrize("ranks, roots", [(2, 2), (6, 3), (12, 5)])
def test_simulation_of_several_roots(ranks, roots, tmp_path):
    """The same of jobs whose ranks meet by the launcher's key store, each as on a host of its own."""
    if not harness.built_with("PMIX"):
        pytest.skip("built without pmix.h")
    gate = tmp_path / "gate"
    gate.write_bytes(bytes(4))
    output = harness.run("mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", ranks, "sh", "-c",
                         'export OMPI_COMM_WORLD_LOCAL_SIZE=1 RONDO_HOSTID=$PMIX_RANK; exec "$@" >"$RONDO_X_OUTPUT.$PMIX_RANK"', "sh",
                         harness.program("scale"), "--count", 0, "--gate", gate, RONDO_ROOTS=roots, RONDO_DEVICE="host", UCX_TLS="tcp",
                         RONDO_X_OUTPUT=tmp_path / "rank", RONDO_LOG="debug", seconds=120)
    assert output.count("root: the root of rank ") == roots - 1, output[-4000:]
    rows = [json.loads((tmp_path / f"rank.{rank}").read_text().splitlines()[0]) for rank in range(ranks)]
    for rank, simulated in enumerate(scale.simulate(ranks, "--each", roots=roots)):
        assert {count: rows[rank][count] for count in scale.COUNTS} == {count: simulated[count] for count in scale.COUNTS}, rank


@pytest.mark.parametrize("ranks", [2, 7, 64, 1000])
def test_roots_change_nothing_between_ranks(ranks):
    alone = scale.simulate(ranks, "--each")
    for roots in (2, 3, 64, 4096):
        assert scale.simulate(ranks, "--each", roots=roots) == alone, roots


@pytest.mark.slow
def test_a_hundred_thousand_simulated_ranks():
    """By stated costs, so that it is the protocol that is judged and not the machine; scale.py measures them."""
    job = scale.simulate(100000, message_us=15, root_us=15, byte_ns=5, setup_ms=2)
    assert job["init_s"] < 30 and job["most"]["made"] + job["most"]["accepted"] < 60, job
    shared = scale.simulate(100000, message_us=15, root_us=15, byte_ns=5, setup_ms=2, roots=25)
    assert shared["formed_s"] < job["formed_s"] / 10 and shared["most"] == job["most"], shared


@pytest.mark.slow
def test_a_thousand_ranks():
    small, large = scale.run(128, 5, 120), scale.run(1024, 5, 900)
    most = [max(row["peak KiB"] for row in rows) for rows in (small, large)]
    assert most[1] < 8 * most[0], most
