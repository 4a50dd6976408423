"""`rondo bench` on the host device: every collective checked, the gradients of a network, the search for the best algorithms."""
import json
import shutil

import pytest
from harness import BUILD, SANITIZED, program, run

COLLECTIVES = ["allreduce", "reduce", "bcast", "reduce_scatter_block", "allgather", "allgatherv", "alltoall", "alltoallv",
               "gather", "scatter", "barrier", "scan", "exscan", "alltonext", "sendrecv", "reduce_scatter", "alltoallw", "gatherv", "scatterv"]


def bench(tmp_path, *options, expect=0, **extra):
    where = tmp_path / "bench.json"
    run(program("rondo"), "bench", *options, "--device", "host", "--json", where, expect=expect, **extra)
    return json.loads(where.read_text())


@pytest.mark.parametrize("mode", ["blocking", "nonblocking", "persistent", "callback"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_element(tmp_path, collective, mode):
    found = bench(tmp_path, collective, "--ranks", 3, "-c", "-b", 12, "-e", "6M", "-f", 512, "-n", 4, "--mode", mode)
    assert [row["wrong"] for row in found["rows"]] == [0] * len(found["rows"])
    assert found["collective"] == collective and found["mode"] == mode and found["device"] == "host"


def test_beginning_of_a_name(tmp_path):
    """A name's beginning will do where no other begins so; a whole name is never taken for a beginning."""
    for name, meant in (("reduce_scatter", "reduce_scatter"), ("reduce_scatter_", "reduce_scatter_block"), ("reduce", "reduce"), ("broadcast", "bcast"), ("sc", None),
                        ("all", None), ("reduce_scatters", None)):
        options = (name, "--ranks", 2, "-b", 8, "-e", 8, "-n", 1)
        if meant is not None:
            assert bench(tmp_path, *options)["collective"] == meant
        else:
            said = run(program("rondo"), "bench", *options, "--device", "host", expect=2)
            assert f"'{name}' is not a collective" in said and "reduce_scatter_block" in said


def test_registered_buffers(tmp_path):
    found = bench(tmp_path, "allreduce", "--ranks", 3, "-c", "-b", 8, "-e", "1M", "-f", 64, "-n", 4, "--register")
    assert all(row["wrong"] == 0 for row in found["rows"])


@pytest.mark.parametrize("order", ["random", "same"])
def test_gradients(tmp_path, order):
    found = bench(tmp_path, "gradients", "--ranks", 2, "-c", "-n", 2, "--order", order)
    assert found["collective"] == "gradients"
    (row,) = found["rows"]
    assert row["count"] == 25557032  # the parameters of a ResNet-50
    assert row["wrong"] == 0


def test_switches(tmp_path):
    found = bench(tmp_path, "switches", "--ranks", 2)
    assert found["collective"] == "switches"
    assert [row["operations"] for row in found["rows"]] == [1, 2, 4, 8, 16, 32]
    for row in found["rows"]:  # at least 0.1 s of visits
        assert row["visits"] > 1000
        assert 0.09e6 < row["visits"] * row["time_us"] < 2e6


def beside_large_ones(tmp_path, order, mode):
    (row,) = bench(tmp_path, "priority", "--ranks", 2, "--mode", mode, RONDO_ORDER=order)["rows"]
    return row["beside_us"] / row["all_us"]


@pytest.mark.parametrize("mode", ["persistent", "nonblocking", "blocking"])
def test_priority(tmp_path, mode):
    """An urgent operation finishes before the large ones that began earlier: by the order of starts it is the last. A persistent one
    has its own priority, the others that of their communicator."""
    assert beside_large_ones(tmp_path, "fifo", mode) > 0.75
    shares = []
    while len(shares) < 3 and min(shares, default=1) > 0.5:  # other programs take the processors away for a while
        shares.append(beside_large_ones(tmp_path, "priority", mode))
    assert min(shares) < 0.5, shares


def test_switches_need_a_waiter():
    said = run(program("rondo"), "bench", "switches", "--ranks", 1, "--device", "host", expect=2)
    assert "2 ranks or more, not 1" in said


@pytest.mark.parametrize("mode", ["blocking", "persistent"])
@pytest.mark.parametrize("algorithm", ["ring", "recursive-doubling", None])
def test_compression(tmp_path, mode, algorithm):
    named = ["--algorithm", algorithm] if algorithm else []
    found = bench(tmp_path, "allreduce", "--ranks", 4, "-b", "1K", "-e", "1M", "-n", 3, "--compress", 12, "--mode", mode, *named)
    for row in found["rows"]:
        assert row["identical"] is True
        assert 0 < row["error_norm"] < 0.02
        assert row["plain_time_us"] > 0


@pytest.mark.parametrize("collective", ["bcast", "allgather", "reduce_scatter_block", "alltoall"])
def test_compression_of(tmp_path, collective):
    for kind, norm in (("float", 0.02), ("double", 0.02), ("bfloat16", 0.02), ("float16", 0.02)):
        found = bench(tmp_path, collective, "--ranks", 3, "-b", "12K", "-e", "12K", "-n", 3, "--compress", 12, "-d", kind)
        (row,) = found["rows"]
        assert 0 < row["error_norm"] < norm
        assert row["identical"] is (True if collective in ("bcast", "allgather") else None)


def test_compression_is_refused(tmp_path):
    run(program("rondo"), "bench", "allreduce", "--ranks", 2, "--device", "host", "-c", "--compress", 8, expect=2)
    bench(tmp_path, "allreduce", "--ranks", 2, "-e", "1K", "--compress", 8, "-d", "int32", "--mode", "persistent", expect=1)


def tune(table, *options):
    """The rows of the table, whose first entry says what it was measured on."""
    run(program("rondo"), "bench", *options, "--device", "host", "--tune", table)
    machine, *rows = json.loads(table.read_text())
    assert set(machine) == {"machine"} and machine["machine"].startswith("host device")
    return rows


def test_tuning(tmp_path):
    """Rows are sorted, cover all sizes, and leave other entries of the file unchanged."""
    table = tmp_path / "table.json"
    small = ["-b", 64, "-e", "64K", "-f", 32, "-n", 5]
    rows = tune(table, "allreduce", "--ranks", 3, *small)
    assert {row["collective"] for row in rows} == {"allreduce"}
    rows = tune(table, "allgather", "--ranks", 2, *small)
    rows = tune(table, "allreduce", "--ranks", 2, *small)
    kinds = [("allgather", 2), ("allreduce", 2), ("allreduce", 3)]
    keys = [(row["collective"], row["ranks"], row["max_bytes"]) for row in rows]
    assert keys == sorted(set(keys))
    assert sorted({key[:2] for key in keys}) == kinds
    for kind in kinds:
        assert max(key[2] for key in keys if key[:2] == kind) == 2 ** 63 - 1
    assert all({"algorithm", "protocol", "channels"} <= set(row) for row in rows)


def test_a_file_that_is_no_table(tmp_path):
    table = tmp_path / "table.json"
    table.write_text("{}")
    run(program("rondo"), "bench", "allreduce", "--ranks", 2, "--device", "host", "-b", 64, "-e", 64, "-n", 1, "--tune", table,
        expect=1)
    assert table.read_text() == "{}"


@pytest.mark.skipif(SANITIZED, reason="the sanitizers report what MPI itself leaks and races on")
@pytest.mark.skipif(shutil.which("mpirun") is None or not (BUILD / "rondo-peer-mpi.so").exists(), reason="no MPI was found when the command was built")
def test_beside_several_peers(tmp_path):
    """A job under each peer's launcher for each round; the ratio is that to the fastest, and every run is in the file."""
    found = bench(tmp_path, "allreduce", "--processes", 2, "--peer", "mpi,mpi", "--rounds", 3, "--aa", "-c", "-b", 8, "-e", "64K", "-f", 128, "-n", 50)
    assert (found["ranks"], found["rounds"], len(found["runs"])) == (2, 3, 6)
    assert all(row["wrong"] == 0 for run in found["runs"] for row in run["rows"])
    assert [row["bytes"] for row in found["rows"]] == [8, 1024]
    for at, row in enumerate(found["rows"]):
        ratios = [[run["rows"][at]["ratio"] for run in found["runs"][start::2]] for start in (0, 1)]
        assert len(row["peers"]) == 2 and all(one["aa_ratio"] > 0 for one in row["peers"])
        assert row["ratio"] == min(one["ratio"] for one in row["peers"])
        assert {one["ratio"] for one in row["peers"]} <= {ratio for some in ratios for ratio in some}


def test_varied_input(tmp_path):
    """Changing the input before each iteration leaves the last one's results exact, whatever the number of iterations."""
    for iterations in (7, 8):
        for options in (("bcast",), ("allreduce", "-d", "float8e4m3"), ("alltoall", "--mode", "persistent")):
            found = bench(tmp_path, *options, "--ranks", 3, "-c", "-b", 64, "-e", "64K", "-f", 32, "-n", iterations, "--vary")
            assert found["vary"] and all(row["wrong"] == 0 for row in found["rows"])
    assert not bench(tmp_path, "bcast", "--ranks", 2, "-b", 64, "-e", 64, "-n", 2, "--no-vary")["vary"]


@pytest.mark.parametrize("options", [
    ("allfoo",), (), ("allreduce", "--mode", "sideways"), ("allreduce", "--mode", "stream", "--device", "host"),
    ("allreduce", "--peer", "nccl", "--device", "host"), ("gradients", "--mode", "blocking"), ("switches", "-c"), ("allreduce", "--order", "no"),
    ("allreduce", "--tune", "x"), ("allreduce", "--ranks", "2", "--tune", "x", "--algorithm", "ring"),
    ("allreduce", "--peer", "mpi:no-such-mpi"), ("allreduce", "--processes", "2"), ("allreduce", "--processes", "2", "--peer", "mpi:no-such-mpi"),
    ("allreduce", "--processes", "2", "--peer", "nccl"), ("gradients", "--processes", "2", "--peer", "mpi"), ("allreduce", "--aa"),
    ("allreduce", "--channels", "0"), ("sendrecv", "--mode", "persistent-stream", "--device", "cuda"),
])
def test_bad_usage(options):
    run(program("rondo"), "bench", *options, expect=2)


def test_policy(tmp_path):
    """Every program under every policy, in the order of the rounds, with exact results; and what is in force is the device's own."""
    found = bench(tmp_path, "policy", "--ranks", 2, "--rounds", 1, "-n", 1)
    rows = {}
    for row in found["rows"]:
        rows.setdefault(row["program"], []).append(row)
    assert len(rows) == 8 and all([row["policy"] for row in some[:3]] == ["default", "raised", "profile"] and len(some) == 15
                                  for some in rows.values())
    for some in rows.values():
        assert all(row["time_us"] > 0 and row["iterations"] == 1 and len(row["rounds_us"]) == 1 for row in some)
        assert [row["initial_ns"] for row in some[3:]] == sorted(row["initial_ns"] for row in some[3:])
    assert sum(row["preemptions"] for some in rows.values() for row in some) > 0
    assert sum(row["spin_us"] for some in rows.values() for row in some) > 0
    run(program("rondo"), "info", "--device", "host", "--json", tmp_path / "info.json")
    told = json.loads((tmp_path / "info.json").read_text())["runtime"]["spin"]
    assert told["initial_from"] == told["cap_from"] == "the device's" and told["alone_ns"] > told["initial_ns"] > 0, told


@pytest.mark.parametrize("given, initial, alone, cap", [
    ({"RONDO_SPIN_INITIAL": 3000}, 3000, 3000, 3000), ({"RONDO_SPIN_INITIAL": 700, "RONDO_SPIN_CAP": 90000}, 700, 700, 90000),
    ({"RONDO_SPIN_CAP": 300}, 300, 300, 300), ({"RONDO_SPIN_INITIAL": 5000, "RONDO_SPIN_CAP": 10}, 5000, 5000, 5000)])
def test_budgets_that_are_given(given, initial, alone, cap, tmp_path):
    run(program("rondo"), "info", "--device", "host", "--json", tmp_path / "info.json", **given)
    told = json.loads((tmp_path / "info.json").read_text())["runtime"]["spin"]
    assert (told["initial_ns"], told["alone_ns"], told["cap_ns"]) == (initial, alone, cap), told
    for name in given:
        assert told[{"RONDO_SPIN_INITIAL": "initial_from", "RONDO_SPIN_CAP": "cap_from"}[name]] == name


@pytest.mark.parametrize("options, word", [(["--mode", "blocking"], "no --mode"), (["-i"], "-i"), (["-d", "double"], "floats"),
                                           (["--compress", "8"], "--compress"), (["--rounds", "16"], "--rounds 16 is more than 15")])
def test_policy_refuses(options, word):
    assert word in run(program("rondo"), "bench", "policy", "--ranks", 2, "--device", "host", *options, expect=2)
