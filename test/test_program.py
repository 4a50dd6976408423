"""Programs: the built-in ones on 2 to 9 ranks with a preemption at every wait, users' own, files, the command, the tuning table."""
import importlib.util
import json
import random
import xml.etree.ElementTree as ElementTree

import pytest
from harness import ROOT, SANITIZED, program, run

PROGRAMS = {}
for line in run(program("rondo"), "program", "list").splitlines():
    name, collective = line.split()
    PROGRAMS.setdefault(name, []).append(collective)

# Every wait gives up at its first poll.
IMPATIENT = {"RONDO_SPIN": "fixed", "RONDO_SPIN_INITIAL": 1, "RONDO_SPIN_CAP": 1, "RONDO_SPIN_DECAY": 100}


@pytest.mark.parametrize("ranks", range(2, 10))
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_builtin(name, ranks):
    blocks = 1 + ranks % 3
    counts = random.Random(f"{name}{ranks}").sample([1, 2, 3, 17, 1000, 4099], 3)
    run(program("matrix"), "--ranks", ranks, "--collectives", ",".join(PROGRAMS[name]), "--types", "int8,float16,float",
        "--ops", "sum,avg,lor", "--counts", ",".join(map(str, counts)), RONDO_ALGORITHM=name, RONDO_BLOCKS=blocks, **IMPATIENT)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_builtin_large(name):
    for protocol in ("simple", "ll"):
        run(program("matrix"), "--ranks", 4, "--collectives", ",".join(PROGRAMS[name]), "--types", "float", "--ops", "sum",
            "--counts", "70001", RONDO_ALGORITHM=name, RONDO_PROTOCOL=protocol, RONDO_BLOCKS=2, seconds=120)


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("blocks", [1, 4])
def test_users_programs(ranks, blocks):
    run(program("program"), "--ranks", ranks, "--seed", ranks, RONDO_BLOCKS=blocks, **IMPATIENT)


def test_low_latency_reduce_of_many_ranks():
    """The root reduces more than its packets' staging area holds at once; the other ranks must cut their slices in the same
    way."""
    run(program("matrix"), "--ranks", 12, "--types", "float", "--ops", "sum", "--counts", "4099", "--collectives", "reduce",
        RONDO_PROTOCOL="ll", RONDO_ALGORITHM="linear")


def test_command(tmp_path):
    rondo = program("rondo")
    assert "accepted" in run(rondo, "program", "check", "compiled-hierarchical", "--ranks", 6)
    assert "recv_reduce_copy" in run(rondo, "program", "show", "allpairs", "--ranks", 3)
    assert run(rondo, "program", "show", "tree", "--format", "dot").startswith("digraph")
    path = tmp_path / "ring.xml"
    run(rondo, "program", "export", "ring", "--ranks", 3, "--channels", 2, "--output", path)
    assert "accepted" in run(rondo, "program", "check", path)
    out = run(rondo, "program", "run", path, "--bytes", "12,600,60K", "--json", tmp_path / "out.json")
    assert "WRONG" not in out
    assert json.loads((tmp_path / "out.json").read_text())["wrong"] == 0
    path.write_text(path.read_text().replace('type="rrs"', 'type="rcs"', 1))
    assert "program" in run(rondo, "program", "check", path, expect=1)
    path.write_text("<algo>")
    assert "line 1" in run(rondo, "program", "check", path, expect=1)
    run(rondo, "program", "check", tmp_path / "none.xml", expect=1)
    run(rondo, "program", "fly", "ring", expect=2)
    run(rondo, "program", "check", "no-such-algorithm", expect=1)


@pytest.mark.parametrize("path", sorted((ROOT / "test" / "programs" / "bad").glob("*.xml")), ids=lambda path: path.stem)
def test_bad_programs(path):
    """Each is rejected, for the reason that its first line tells."""
    reason = path.read_text().splitlines()[0].removeprefix("<!-- ").removesuffix(" -->")
    assert reason in run(program("rondo"), "program", "check", path, expect=1)


@pytest.mark.parametrize("target", sorted(path.stem for path in (ROOT / "test" / "fuzz" / "corpus").iterdir()))
def test_fuzz_corpus(target, tmp_path):
    """The fuzzers' corpus, in all the ways in which they use it."""
    archive = ROOT / "test" / "fuzz" / "corpus" / f"{target}.zip"
    run(ROOT / "make" / "fuzz-corpus", "unpack", archive, tmp_path / target)
    files = sorted((tmp_path / target).iterdir())
    assert files and f"{len(files)} files" in run(program(f"replay_{target}"), *files, seconds=120)
    # Packing what was unpacked gives the same bytes, so that a change of the archive is a change of the corpus.
    run(ROOT / "make" / "fuzz-corpus", "pack", tmp_path / target, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_every_fuzz_target_has_a_corpus():
    targets = {path.stem for path in (ROOT / "test" / "fuzz").glob("*.c")} - {"replay"}
    assert targets == {path.stem for path in (ROOT / "test" / "fuzz" / "corpus").iterdir()}


def test_unknown_algorithm():
    """RONDO_ALGORITHM may name a program that is registered later, so the first call on a communicator without it fails."""
    for ranks in (1, 2):
        said = run(program("rondo"), "bench", "allreduce", "--ranks", ranks, "--device", "host", "-e", 8, expect=1, RONDO_ALGORITHM="rnig")
        assert 'RONDO_ALGORITHM="rnig" is not allowed' in said and "local, ring, " in said
    run(program("program"), "--ranks", 3, "--rounds", 4, RONDO_ALGORITHM="mine", **IMPATIENT)


def test_huge_file(tmp_path):
    """Ten million steps are refused before they take memory."""
    path = tmp_path / "huge.xml"
    step = '<step s="{}" type="nop" depid="-1" deps="-1"/>\n'
    with path.open("w") as file:
        file.write('<algo name="x" ngpus="1" coll="allreduce" nchunksperloop="1"><gpu id="0" i_chunks="1" o_chunks="1">'
                   '<tb id="0" send="-1" recv="-1" chan="0">\n')
        for s in range(2_000_000):
            file.write(step.format(s))
    assert "too many steps" in run(program("rondo"), "program", "check", path, expect=1, seconds=30)


spec = importlib.util.spec_from_file_location("msccl_form", ROOT / "test" / "programs" / "msccl_form.py")
msccl_form = importlib.util.module_from_spec(spec)
spec.loader.exec_module(msccl_form)


@pytest.mark.parametrize("name", sorted(msccl_form.PROGRAMS))
def test_msccl_file(name, tmp_path):
    """Files as msccl-tools writes them run unchanged, on any number of blocks, and survive an export."""
    path = ROOT / "test" / "programs" / "msccl" / f"{name}.xml"
    assert path.read_text() == msccl_form.PROGRAMS[name]().xml()
    assert "accepted" in run(program("rondo"), "program", "check", path)
    for blocks in (1, 3):
        out = run(program("rondo"), "program", "run", path, "--bytes", "4,1020,60K", RONDO_BLOCKS=blocks, **IMPATIENT)
        assert "right" in out and "WRONG" not in out
    run(program("rondo"), "program", "export", path, "--output", tmp_path / "again.xml")
    assert "accepted" in run(program("rondo"), "program", "check", tmp_path / "again.xml")


@pytest.mark.parametrize("make", [lambda: msccl_form.allreduce_ring(16, 4), lambda: msccl_form.alltoall_two_step(4, 4),
                                  lambda: msccl_form.allreduce_hierarchical(4, 8), lambda: msccl_form.allreduce_allpairs(8)])
def test_large_msccl_file(make, tmp_path):
    (tmp_path / "large.xml").write_text(make().xml())
    assert "accepted" in run(program("rondo"), "program", "check", tmp_path / "large.xml")


@pytest.mark.parametrize("name,ranks", [("ring", 4), ("tree", 6), ("allpairs", 3), ("pairs", 4), ("compiled-hierarchical", 8), ("twostep", 9)])
def test_export_is_msccl(name, ranks, tmp_path):
    """The requirements of MSCCL's own reader: every attribute, one thread block for each peer and channel, announced waits."""
    path = tmp_path / "out.xml"
    for collective in PROGRAMS[name]:
        if collective in ("allgatherv", "barrier", "reduce_scatter"):
            continue
        run(program("rondo"), "program", "export", name, "--collective", collective, "--ranks", ranks, "--channels", 2, "--output", path)
        algo = ElementTree.parse(path).getroot()
        assert algo.get("coll") in ("allreduce", "reduce", "broadcast", "reduce_scatter", "allgather", "alltoall")
        for attribute in ("name", "proto", "nchannels", "nchunksperloop", "ngpus", "inplace", "outofplace", "minBytes", "maxBytes"):
            assert algo.get(attribute) is not None
        for gpu in algo:
            assert all(gpu.get(a) is not None for a in ("id", "i_chunks", "o_chunks", "s_chunks"))
            blocks = list(gpu)
            for side in ("send", "recv"):
                used = [(b.get(side), b.get("chan")) for b in blocks if b.get(side) != "-1"]
                assert len(used) == len(set(used))
            for block in blocks:
                chained = False
                for number, step in enumerate(block):
                    assert step.get("s") == str(number) and int(step.get("cnt")) < 72
                    assert {"srcbuf", "srcoff", "dstbuf", "dstoff", "depid", "deps", "hasdep", "type"} <= set(step.keys())
                    if step.get("depid") != "-1":
                        assert blocks[int(step.get("depid"))][int(step.get("deps"))].get("hasdep") == "1"
                    else:
                        assert not chained, "a chain of waits must end in the step that waits"
                    chained = step.get("type") == "nop"


def test_good_program():
    out = run(program("rondo"), "program", "run", ROOT / "test" / "programs" / "good" / "two-ranks.xml")
    assert "right" in out and "WRONG" not in out


def tuned(path, rows):
    path.write_text(json.dumps(rows))
    return run(program("matrix"), "--ranks", 2, "--collectives", "allreduce", "--types", "float", "--ops", "sum", "--counts",
               "17,4099", RONDO_TUNING=path, RONDO_LOG="debug", RONDO_CHECK=0)


def test_tuning(tmp_path):
    path = tmp_path / "table.json"
    rows = [{"collective": "allreduce", "ranks": 2, "max_bytes": 1000, "algorithm": "doubling", "protocol": "ll", "channels": 0},
            {"collective": "allreduce", "ranks": 2, "max_bytes": 1 << 40, "algorithm": "halving", "protocol": "simple",
             "channels": 1}]
    said = tuned(path, rows)
    assert "algorithm doubling (tuned), protocol LL" in said and "algorithm halving (tuned), protocol simple" in said
    rows[0]["algorithm"] = "of-another-version"
    said = tuned(path, rows)
    assert "of-another-version" not in said and "(by size)" in said
    rows[0]["ranks"] = rows[1]["ranks"] = 3
    assert "(tuned)" not in tuned(path, rows)


@pytest.mark.parametrize("text", ["", "{}", "[{}]", "[1]", '[{"collective": "allreduce"}]', "[" * 100000, '[{"ranks": -1}]'])
def test_bad_tuning(tmp_path, text):
    path = tmp_path / "table.json"
    path.write_text(text)
    said = run(program("rondo"), "bench", "allreduce", "--ranks", 2, "-e", 8, RONDO_TUNING=path, expect=1)
    assert "table.json, line 1" in said


def test_table_of_another_machine(tmp_path):
    path = tmp_path / "table.json"
    rows = [{"machine": "host device, 4096 x Abacus"},
            {"collective": "allreduce", "ranks": 2, "max_bytes": 1 << 40, "algorithm": "halving", "protocol": "simple", "channels": 1}]
    path.write_text(json.dumps(rows))
    said = run(program("rondo"), "bench", "allreduce", "--ranks", 2, "-e", 8, "--device", "host", RONDO_TUNING=path, expect=1)
    assert "table.json, line 1: the table was measured on 'host device, 4096 x Abacus', and this is 'host device" in said
    path.write_text(json.dumps(rows[::-1]))
    said = run(program("rondo"), "bench", "allreduce", "--ranks", 2, "-e", 8, RONDO_TUNING=path, expect=1)
    assert "not the first of the table" in said


def test_bad_line_is_named(tmp_path):
    """The message names the line where the file stops making sense."""
    path = tmp_path / "table.json"
    path.write_text('[{"collective": "allreduce", "ranks": 2, "max_bytes": 8,\n "algorithm": "ring",\n "protocol": "morse", "channels": 0}]')
    said = run(program("rondo"), "bench", "allreduce", "--ranks", 2, "-e", 8, RONDO_TUNING=path, expect=1)
    assert "table.json, line 3: a protocol that is none of simple, ll, ll128 and tma" in said


def tune_and_read(path, collective, *sizes):
    """Measures, saves, and uses what was saved: each size gets what the table says."""
    run(program("rondo"), "bench", collective, "--ranks", 2, "--device", "host", "-b", sizes[0], "-e", sizes[-1], "-f", 64, "-n", 5, "-w", 1, "--tune",
        path, seconds=240)
    machine, *rows = json.loads(path.read_text())
    assert machine["machine"].startswith("host device")
    mine = [row for row in rows if row["collective"] == collective]
    assert mine and mine == sorted(mine, key=lambda row: row["max_bytes"])
    for size in sizes:
        said = run(program("rondo"), "bench", collective, "--ranks", 2, "--device", "host", "-b", size, "-e", size, "-n", 1, RONDO_TUNING=path, RONDO_LOG="debug")
        row = next(row for row in mine if size <= row["max_bytes"])
        assert f"algorithm {row['algorithm']} (tuned)" in said


def test_tune_is_read(tmp_path):
    path = tmp_path / "table.json"
    tune_and_read(path, "allreduce", 64, 4096)
    tune_and_read(path, "alltoall", 64, 4096)
    assert {row.get("collective") for row in json.loads(path.read_text())} == {None, "allreduce", "alltoall"}
