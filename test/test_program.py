"""Programs: the built-in ones on 2 to 9 ranks with a preemption at every wait, users' own, files, the command, the tuning table."""
import importlib.util
import json
import os
import random
import re
import subprocess
import threading
import xml.etree.ElementTree as ElementTree

import pytest
from harness import BUILD, ROOT, SANITIZED, environment, program, run

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


def checked(*arguments):
    """Runs `rondo program check`. Returns its exit code, what it printed, seconds of processor time, and its most memory in KiB."""
    child = subprocess.Popen([str(program("rondo")), "program", "check", *map(str, arguments)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    limit = threading.Timer(900, child.kill)
    limit.start()
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    limit.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    return child.returncode, out, used.ru_utime + used.ru_stime, used.ru_maxrss


# Ten seconds of an idle machine are the aim; beside other programs a processor's caches are slower.
CHECK_SECONDS = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "doubling", "tree", "halving", "allpairs", "twoshot"])
def test_check_of_1024_ranks(name):
    code, out, seconds, memory = checked(name, "--collective", "allreduce", "--ranks", 1024)
    print(f"{name}: {seconds:.1f} s, {memory} KiB")
    assert code == 0 and "accepted" in out, out
    assert seconds < CHECK_SECONDS and memory < 1 << 20


@pytest.mark.slow
def test_refusal_of_1024_ranks(tmp_path):
    path = tmp_path / "wrong.xml"
    run(program("rondo"), "program", "export", "doubling", "--ranks", 1024, "--output", path, seconds=120)
    text = path.read_text()
    at = text.rindex('type="rrc"')
    path.write_text(text[:at] + 'type="r"' + text[at + len('type="rrc"'):])
    code, out, seconds, memory = checked(path)
    print(f"{out}{seconds:.1f} s, {memory} KiB")
    assert code == 1 and "rank " in out, out
    assert seconds < CHECK_SECONDS and memory < 1 << 20


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("blocks", [1, 4])
def test_users_programs(ranks, blocks):
    run(program("program"), "--ranks", ranks, "--seed", ranks, RONDO_BLOCKS=blocks, **IMPATIENT)


def test_low_latency_reduce_of_many_ranks():
    """The root reduces more than its packets' staging area holds at once; the other ranks must cut their slices in the same
    way."""
    run(program("matrix"), "--ranks", 12, "--types", "float", "--ops", "sum", "--counts", "4099", "--collectives", "reduce",
        RONDO_PROTOCOL="ll", RONDO_ALGORITHM="linear")


EXAMPLES = BUILD / "examples" / "programs"


@pytest.mark.skipif(SANITIZED, reason="the examples are not built with sanitizers")
@pytest.mark.parametrize("name", [path.stem for path in sorted((ROOT / "examples" / "programs").glob("*.c"))
                                  if path.stem not in ("main", "rings")])
def test_example(name):
    """Each program of the paper is proved, and every element is right on 2 hosts of 2 ranks and other shapes that it is for."""
    shapes = [(2, 2), (1, 2)] + ([] if name.startswith("recursive") else [(3, 2), (2, 3)])
    for hosts, group in shapes:
        assert ": 0 elements are wrong" in run(EXAMPLES, name, "--hosts", hosts, "--group", group)


@pytest.mark.skipif(SANITIZED, reason="the examples are not built with sanitizers")
def test_examples():
    """There is one for each file. What one cannot serve is refused by the proof. The guide's table is what `make docs` writes."""
    files = {path.stem for path in (ROOT / "examples" / "programs").glob("*.c")} - {"main", "rings"}
    assert set(run(EXAMPLES).split()) == files
    assert "rank 6 is not in" in run(EXAMPLES, "recursive_doubling", "--hosts", 3, "--group", 2, expect=1)
    run(EXAMPLES, "no_such_program", expect=2)
    page = run(ROOT / "examples" / "programs" / "table.py", EXAMPLES)
    assert page == (ROOT / "docs" / "guide" / "program-examples.md").read_text(), "run `make docs` and commit the page"


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
    targets = {path.stem for path in (ROOT / "test" / "fuzz").glob("*.c")} - {"replay", "mutations"}
    assert targets == {path.stem for path in (ROOT / "test" / "fuzz" / "corpus").iterdir()}


def test_mutations(tmp_path):
    """The first mutants of `make fuzz-mutations`: some are accepted, and those are right. Some of these run on the engine."""
    conditions = tmp_path / "conditions"
    conditions.write_text("\n".join(msccl_form.condition_lines()) + "\n")
    files = sorted((ROOT / "test" / "programs").glob("[gm]*/*.xml"))
    folder = tmp_path / "accepted"
    folder.mkdir()
    out = run(program("mutations"), "-k", folder, conditions, 0, 400, *files, seconds=120)
    mutants, custom, accepted, unchanged = map(int, re.findall(r"\d+", out.splitlines()[-1]))
    assert mutants == 400 and custom > 50 and accepted > unchanged + 10
    names = {path: path.stem.split("-", 1)[1] for path in sorted(folder.iterdir(), key=lambda path: int(path.stem.split("-")[0]))}
    whole = [path for path, name in names.items() if name not in msccl_form.CUSTOM][:8]
    next_ = [path for path, name in names.items() if name == "alltonext-forward-2x2"][:2]
    assert len(whole) == 8 and next_
    for path in whole + next_:
        ran = subprocess.run([program("rondo"), "program", "run", path, "--bytes", "4,1020",
                              *(["--postcondition", "alltonext"] if path in next_ else [])],
                             env=environment(), capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0 and "WRONG" not in ran.stdout, (path.read_text(), ran.stdout, ran.stderr)


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


def conditions(path, entries):
    """Writes a pre- or postcondition; a name stays what it is."""
    if isinstance(entries, str):
        return entries
    path.write_text(json.dumps([{"rank": rank, "chunk": chunk, "holds": holds} for rank, chunk, holds in entries]))
    return path


@pytest.mark.parametrize("name", sorted(msccl_form.CUSTOM))
def test_custom_files(name, tmp_path):
    """A custom file is proved against conditions that are given beside it, runs, and is refused without them or with others."""
    path = ROOT / "test" / "programs" / "msccl" / f"{name}.xml"
    make, after, before = msccl_form.CUSTOM[name]
    assert path.read_text() == make().xml()
    after, before = conditions(tmp_path / "after.json", after), conditions(tmp_path / "before.json", before)
    rondo = program("rondo")
    assert "accepted" in run(rondo, "program", "check", path, "--precondition", before, "--postcondition", after)
    assert "without a postcondition" in run(rondo, "program", "check", path, expect=1)
    for blocks in (1, 3):
        out = run(rondo, "program", "run", path, "--precondition", before, "--postcondition", after, "--bytes", "4,1020,60K",
                  RONDO_BLOCKS=blocks, **IMPATIENT)
        assert out.count("right") == 3 and "WRONG" not in out
    run(rondo, "program", "export", path, "--output", tmp_path / "again.xml")
    assert "accepted" in run(rondo, "program", "check", tmp_path / "again.xml", "--precondition", before, "--postcondition", after)
    if not isinstance(after, str):  # one chunk more than it computes
        entries = json.loads(after.read_text())
        entries[0]["holds"].append([1, 0])
        after.write_text(json.dumps(entries))
        assert "must be that of" in run(rondo, "program", "check", path, "--precondition", before, "--postcondition", after, expect=1)


@pytest.mark.parametrize("option,text,reason", [
    ("--postcondition", "[", "line 1"),
    ("--postcondition", "{}", "the file is no array"),
    ("--postcondition", '[{"rank": 1, "chunk": 0}]', "entry 0: not an object"),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": [], "more": 1}]', "entry 0: not an object"),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": [[0, 0]]}, {"rank": 3, "chunk": 0, "holds": [[0, 0]]}]', 'entry 1: "rank"'),
    ("--postcondition", '[{"rank": 1, "chunk": 1, "holds": [[0, 0]]}]', '"chunk" is none'),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": [[0, 1]]}]', '"holds" has something else'),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": [[0, 0.5]]}]', '"holds" has something else'),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": [[0, 0]]}, {"rank": 1, "chunk": 0, "holds": [[1, 0]]}]', "for the second time"),
    ("--postcondition", '[{"rank": 1, "chunk": 0, "holds": []}]', "require: rank 1, output chunk 0, 0 terms"),
    ("--precondition", '[{"rank": 0, "chunk": 0, "holds": []}]', "uninitialized"),
])
def test_bad_conditions(option, text, reason, tmp_path):
    path = tmp_path / "conditions.json"
    path.write_text(text)
    more = ["--postcondition", conditions(tmp_path / "after.json", msccl_form.spread(3))] if option == "--precondition" else []
    said = run(program("rondo"), "program", "check", ROOT / "test" / "programs" / "msccl" / "custom-spread-3.xml", option, path, *more, expect=1)
    assert reason in said
    said = run(program("rondo"), "program", "check", "ring", option, path, expect=1)
    assert "is for allreduce, which says itself what it requires" in said


def changed(tmp_path, name, *changes):
    """A copy of a file with texts replaced, each where it comes first."""
    text = (ROOT / "test" / "programs" / "msccl" / f"{name}.xml").read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    path = tmp_path / "changed.xml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name,before,after,reason", [
    ("allreduce-ring-3", 'proto="Simple"', 'proto="Direct"', 'proto="Direct": none of Simple, LL and LL128'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" redop="mean"', 'redop="mean": no operator of the collective'),
    ("alltoall-twostep-2x2", 'inplace="0"', 'inplace="0" redop="sum"', 'redop="sum": no operator of the collective'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="2"', 'inplace="2" is not in [0, 1]'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" outofplace="2"', 'outofplace="2" is not in [0, 1]'),
    ("alltoall-twostep-2x2", 'inplace="0"', 'inplace="0" outofplace="0"', 'outofplace="0": with inplace="0" no call can use it'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" minBytes="-1"', 'minBytes="-1" is not in'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" minBytes="9" maxBytes="8"', 'minBytes="9" is above maxBytes="8"'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" maxBytes="1e9"', "not a whole number: maxBytes"),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" instances="2"', 'instances="2" is not in [1, 1]'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" root="3"', 'root="3" is not in [0, 2]'),
    ("allreduce-ring-3", 'nchannels="1"', 'nchannels="0"', 'nchannels="0" is not in [1, 1024]'),
    ("allreduce-ring-4-channels-2", 'nchannels="2"', 'nchannels="1"', 'chan="1" is not below nchannels="1"'),
    ("allreduce-ring-3", 'inplace="1"', 'inplace="1" nthreads="512"', 'nthreads="512": an unknown attribute of algo'),
    ("allreduce-ring-3", 's_chunks="0"', 's_chunks="0" device="1"', 'device="1": an unknown attribute of gpu'),
    ("allreduce-ring-3", 'chan="0"', 'chan="0" rid="1"', 'rid="1": an unknown attribute of tb'),
    ("allreduce-ring-3", 'cnt="1"', 'cnt="1" flush="1"', 'flush="1": an unknown attribute of step'),
    ("allreduce-ring-3", 'dstbuf="i"', 'dstbuf="x"', 'dstbuf="x": none of i, o and s'),
    ("allreduce-ring-3", 'dstoff="', 'dstoff="-2', 'dstoff="-20" is not in [0, 16777216]'),
    ("alltoall-twostep-2x2", 'hasdep="1"', 'hasdep="0"', 'which has hasdep="0"'),
    ("allreduce-ring-3", 'hasdep="0"', 'hasdep="2"', 'hasdep="2" is not in [0, 1]'),
])
def test_refused_attributes(name, before, after, reason, tmp_path):
    """No attribute is ignored: what cannot be honoured is refused with its name and value."""
    assert reason in run(program("rondo"), "program", "check", changed(tmp_path, name, (before, after)), expect=1)


def run_changed(tmp_path, name, *changes, **extra):
    return run(program("rondo"), "program", "run", changed(tmp_path, name, *changes), "--bytes", "12,6000", RONDO_LOG="debug", **extra)


def test_proto(tmp_path):
    """proto is the protocol of the connectors, unless RONDO_PROTOCOL says otherwise."""
    out = run_changed(tmp_path, "allreduce-ring-3", ('proto="Simple"', 'proto="LL"'))
    assert "protocol LL" in out and "protocol simple" not in out and out.count("right") == 4
    out = run_changed(tmp_path, "allreduce-ring-3", ('proto="Simple"', 'proto="LL"'), RONDO_PROTOCOL="simple")
    assert "protocol LL" not in out and "protocol simple" in out
    assert "protocol LL" not in run_changed(tmp_path, "allreduce-ring-3")


def test_redop(tmp_path):
    """redop is the one operator that a program is for: `rondo program run` takes it, and other calls are refused."""
    out = run_changed(tmp_path, "allreduce-ring-3", ('inplace="1"', 'inplace="1" redop="max"'))
    assert out.count("right") == 4 and "not run" not in out
    path = changed(tmp_path, "custom-sum-4", ('inplace="0"', 'inplace="0" redop="max"'))
    after = conditions(tmp_path / "after.json", msccl_form.CUSTOM["custom-sum-4"][1])
    assert "it is for another operator" in run(program("rondo"), "program", "run", path, "--postcondition", after, expect=1)


def test_outofplace(tmp_path):
    out = run_changed(tmp_path, "allreduce-ring-3", ('inplace="1"', 'inplace="1" outofplace="0"'))
    assert out.count("it is for calls in place") == 2 and out.count("right") == 2


def test_attributes_are_exported(tmp_path):
    path = changed(tmp_path, "allreduce-ring-3", ('proto="Simple"', 'proto="LL128"'),
                   ('inplace="1"', 'inplace="1" outofplace="0" redop="min" minBytes="16" maxBytes="4096"'))
    run(program("rondo"), "program", "export", path, "--output", tmp_path / "again.xml")
    algo = ElementTree.parse(tmp_path / "again.xml").getroot()
    wanted = {"proto": "LL128", "outofplace": "0", "redop": "min", "minBytes": "16", "maxBytes": "4096"}
    assert {name: algo.get(name) for name in wanted} == wanted


def directory(tmp_path, *files):
    """A directory of files, each (name in it, name of the file, attributes of algo)."""
    path = tmp_path / "programs"
    path.mkdir(exist_ok=True)
    for name, source, attributes in files:
        text = (ROOT / "test" / "programs" / "msccl" / f"{source}.xml").read_text()
        text = text.replace('name="', f'name="{name}-', 1).replace(' inplace=', f' {attributes} inplace=', 1)
        (path / f"{name}.xml").write_text(text)
    return path


def bench(path, *arguments, expect=0, **extra):
    return run(program("rondo"), "bench", "allreduce", "--ranks", 3, "--device", "host", "-n", 2, "-w", 1, "-c", *arguments,
               expect=expect, RONDO_PROGRAMS=path, **extra)


def test_directory(tmp_path):
    """Files are chosen by size, nothing else changes outside of their ranges, and `rondo info` lists them."""
    path = directory(tmp_path, ("small", "allreduce-pairs-3", 'minBytes="16" maxBytes="1024" redop="sum"'),
                     ("large", "allreduce-ring-3", 'minBytes="1025" maxBytes="65536" redop="sum"'),
                     ("others", "allgather-ring-4", 'minBytes="0"'), ("product", "allreduce-ring-3", 'redop="prod"'))
    (path / "notes.txt").write_text("not a program")
    for size, algorithm in ((8, None), (16, "small-allreduce_pairs"), (1024, "small-allreduce_pairs"), (1028, "large-allreduce_ring"),
                            (65536, "large-allreduce_ring"), (65540, None)):
        said = bench(path, "-b", size, "-e", size, RONDO_LOG="debug")
        lines = [line for line in said.splitlines() if f"allreduce, {size} bytes" in line]
        wanted = f"algorithm {algorithm} (registered for the size)" if algorithm else "(by size)"
        assert lines and all(wanted in line for line in lines), said
    said = bench(path, "-b", 8, "-e", 8, "-o", "prod", RONDO_LOG="debug")
    assert "algorithm product-allreduce_ring (registered for the size)" in said
    listed = json.loads(run(program("rondo"), "info", "--json", tmp_path / "info.json", RONDO_PROGRAMS=path, RONDO_DEVICE="host") and
                        (tmp_path / "info.json").read_text())["programs"]
    assert [(p["file"], p["ranks"], p["min_bytes"], p["max_bytes"]) for p in listed] == \
        [("large.xml", 3, 1025, 65536), ("others.xml", 4, 0, 0), ("product.xml", 3, 0, 0), ("small.xml", 3, 16, 1024)]


def test_directory_overlaps(tmp_path):
    path = directory(tmp_path, ("a", "allreduce-ring-3", 'maxBytes="1024"'), ("b", "allreduce-pairs-3", 'minBytes="1024"'))
    for said in (bench(path, expect=1), run(program("rondo"), "info", expect=1, RONDO_PROGRAMS=path, RONDO_DEVICE="host")):
        assert f"{path}/b.xml: for allreduce of 1024 bytes and more, which overlaps a.xml, for 0 to 1024 bytes" in said


@pytest.mark.parametrize("change,reason", [
    (lambda text: "<algo", "a.xml: line 1"),
    (lambda text: text.replace('type="rrs"', 'type="rcs"'), "a.xml: program 'a-allreduce_ring'"),
    (lambda text: text.replace('proto="Simple"', 'proto="Loud"'), 'proto="Loud"'),
    (lambda text: text.replace('coll="allreduce"', 'coll="custom"'), 'a.xml: coll="custom"'),
    (None, "cannot be read"),
])
def test_directory_of_a_bad_file(change, reason, tmp_path):
    path = directory(tmp_path, ("a", "allreduce-ring-3", ""))
    file = path / "a.xml"
    if change is None:
        path = tmp_path / "none"
    else:
        changed_text = change(file.read_text())
        assert changed_text != file.read_text()
        file.write_text(changed_text)
    assert reason in bench(path, expect=1)


def test_directories_differ(tmp_path):
    """Ranks that have different files all fail."""
    ranks = []
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
        path = directory(tmp_path / str(rank), ("a", "allreduce-ring-3", f'maxBytes="{1024 if rank < 2 else 2048}"'))
        variables = environment(RONDO_RANK=rank, RONDO_SIZE=3, RONDO_JOB=f"differ-{tmp_path.name}-{os.getpid()}", RONDO_DEVICE="host",
                                RONDO_PROGRAMS=path)
        ranks.append(subprocess.Popen([program("rondo"), "bench", "allreduce", "-e", "8", "-n", "1"], env=variables, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    for rank, said in zip(ranks, outputs):
        assert rank.returncode == 1 and "RONDO_PROGRAMS: ranks 0 and 2 have different files" in said, outputs


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
