"""What make/gpu-test runs and prints, without a GPU: its programs are stubs (test/gpu/stub.py) in a build folder of their
own.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import BUILD, ROOT, environment, program

sys.path.insert(0, str(ROOT / "test" / "gpu"))
import gpu_harness  # noqa: E402

PROGRAMS = "matrix mix request_cache p2p direct hybrid compress faults injection nccl_api nccl_newer nccl_device_api nccl_matrix nccl_graph".split()
COMMANDS = ["mpirun", "compute-sanitizer"]


class Runner:
    """A build folder whose programs are stubs, and make/gpu-test on it."""

    def __init__(self, folder):
        self.folder, self.build, self.bin = folder, folder / "build", folder / "bin"
        self.log, self.files = folder / "commands", folder / "files"
        self.files.mkdir()
        self.output, self.status = "", None
        gpu_programs = [f"gpu_{path.stem}" for path in (ROOT / "test" / "gpu").iterdir() if path.suffix in (".c", ".cu")]
        for path in [self.build / "rondo", *(self.build / "test" / name for name in PROGRAMS + gpu_programs),
                     *(self.bin / name for name in COMMANDS)]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(ROOT / "test" / "gpu" / "stub.py")

    def run(self, *options, gpus=2, fault="", path=None, **extra):
        """Runs make/gpu-test; returns {step: (verdict, reason)} in its order."""
        words = [str(ROOT / "make" / "gpu-test"), "--settle", "0.1", *(str(option) for option in options)]
        extra = {"PATH": f"{self.bin}:{os.environ['PATH']}" if path is None else path, "PYTHON": sys.executable, **extra}
        done = subprocess.run(words, capture_output=True, text=True, timeout=300,
                              env=environment(BUILD=self.build, LEAK_CHECK_FOLDER=self.files, STUB_LOG=self.log, STUB_GPUS=gpus,
                                              STUB_FAULT=fault, **extra))
        self.output, self.status = done.stdout + done.stderr, done.returncode
        found = {}
        for verdict, name, reason in re.findall(r"^(ok  |skip|FAIL) +[\d.]+ s  (.*?)(?:: (.*))?$", self.output, re.MULTILINE):
            assert name not in found, f"{name} has two lines"
            found[name] = (verdict.strip(), reason)
        return found

    def last_line(self):
        return self.output.rstrip("\n").splitlines()[-1]

    def commands(self):
        return [line.split("\t") for line in self.log.read_text().splitlines()]


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def allowed_skip(name, reason, gpus):
    return (gpus == 1 and reason == "needs 2 GPUs") or (gpus == 1 and reason == "3 ranks cannot be put in pairs") or (
        reason == "takes long; --only nccl --limit 1000 runs it" and name.startswith("nccl"))


def check_options(commands):
    """Checks that the programs of this build know every option in the commands."""
    known = {}
    for command in commands:
        name, is_tool = command[0], command[0] == "rondo"
        if name.startswith("gpu_"):
            assert len(command) == 1
        if name.startswith(("gpu_", "nccl_")) and not (BUILD / "test" / name).exists() or name in COMMANDS:
            continue
        key = tuple(command[:2]) if is_tool else name
        if key not in known:  # a test program answers an unknown option with the known ones
            words = [program("rondo"), command[1], "--help"] if is_tool else [program(name), "--none", "1"]
            answer = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "RONDO_DEVICE": "host"})
            known[key] = answer.stdout + answer.stderr
        for word in command[1:]:
            if re.fullmatch(r"-[a-z]|--[a-z][a-z-]*", word):
                assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", known[key]), f"{key}: no option {word}"


SLOW = pytest.mark.slow


@pytest.mark.parametrize("gpus", [1, pytest.param(2, marks=SLOW), 4, pytest.param(8, marks=SLOW)])
def test_every_step(runner, gpus):
    """On any number of GPUs each listed step has one line. If all programs succeed it passes, or says why it is skipped; its
    commands have only options that the programs know; its output is in the log."""
    runner.run("--list", gpus=gpus)
    listed = runner.output.splitlines()
    assert runner.status == 0 and len(listed) == len(set(listed)) >= 79
    found = runner.run(gpus=gpus)
    assert sorted(found) == sorted(listed)
    for name, (verdict, reason) in found.items():
        assert verdict == "ok" or (verdict == "skip" and allowed_skip(name, reason, gpus)), f"{name}: {verdict} {reason}"
        log = runner.build / "gpu-test" / (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") + ".log")
        assert verdict == "skip" or log.read_text().startswith("$ ")
    skipped = sum(verdict == "skip" for verdict, _ in found.values())
    assert runner.output.endswith(f"\n{skipped} skipped\n{len(found) - skipped} passed, 0 failed\n") and runner.status == 0
    assert "       GPU 0: what it notes\nok" in runner.output
    check_options(runner.commands())
    assert len(runner.commands()) > 200


def test_selection(runner):
    """--only and --except match words of the steps' names; other steps have no line and are not counted."""
    chosen = runner.run("--only", "matrix, 2", "--except", "hosts")
    assert chosen and all("matrix, 2" in name and "hosts" not in name for name in chosen)
    assert runner.last_line() == f"{len(chosen)} passed, 0 failed" and runner.status == 0
    assert runner.run("--only", "no such step") == {}
    assert runner.last_line() == "0 passed, 0 failed" and runner.status == 1
    runner.run("--list", "--only", "racecheck")
    assert runner.output.splitlines() == ["racecheck", "racecheck, streams"]


def test_crash(runner):
    """A program that exits with another status fails its step, whose line has the command, with the end of its log below."""
    found = runner.run("--only", "compression, 2 threads", fault="crash:compress")
    assert found["compression, 2 threads"] == ("FAIL", f"status 1, not 0: {runner.build}/test/compress --ranks 2")
    assert found["compression, 2 threads, 240 blocks"][0] == "ok"
    assert "\n         | said before the end\n" in runner.output
    assert runner.last_line() == "1 passed, 1 failed" and runner.status == 1


def test_hang(runner):
    """A program that does not end is killed with its children, and steps that are left at the limit do not begin."""
    found = runner.run("--only", "memcheck", "--limit", "1.5", fault="hang:rondo")
    command = f"{runner.bin}/compute-sanitizer --tool memcheck --error-exitcode 9 {runner.build}/rondo stress --device cuda"
    assert found["memcheck"][0] == "FAIL" and found["memcheck"][1].startswith(f"still running after 1 s: {command}")
    assert found["memcheck, streams"] == ("FAIL", "no time is left for it")
    assert runner.last_line() == "0 passed, 2 failed" and runner.status == 1
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                assert str(runner.build).encode() not in (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                pass


@pytest.mark.parametrize("step, wrong, message", [
    ("stress, 2 threads", "rondo", "5 of 5 finished, 1 wrong"),
    ("NCCL hangs on these orders", "rondo", "NCCL did not hang"),
    ("compression, 2 threads, 240 blocks", "rondo", "other bits on other ranks"),
    ("faults, one of 2 killed, blocking", "faults", "blocking: rank 0: RESULT 0 0.1"),
    ("faults, one of 2 killed, on streams, tma", "rondo", "rank 0 ends with status 1, but not for want of a peer"),
    ("racecheck, streams", "compute-sanitizer", "========= Error: Race reported between Read access at f+0x10 in other.h:1")])
def test_wrong_result(runner, step, wrong, message):
    """A program that exits with 0 but reports a wrong result fails its step."""
    only = ["--only", step, "--except", f"{step},"]
    assert runner.run(*only) == {step: ("ok", "")}
    (verdict, reason), = runner.run(*only, fault=f"wrong:{wrong}").values()
    assert verdict == "FAIL" and message in reason
    assert runner.last_line() == "0 passed, 1 failed" and runner.status == 1


def test_leak(runner):
    """A step after which a file of Rondo is left has failed, once, and the next one is not blamed for it."""
    found = runner.run("--only", "compression", fault="leak:compress")
    verdict, reason = found["compression, 2 threads"]
    assert verdict == "FAIL" and f"left behind: ['{runner.files}/rondo-stub-left-behind']" in reason
    assert found["compression, 2 threads, 240 blocks"] == ("ok", "")
    assert runner.last_line() == "1 passed, 1 failed" and runner.status == 1


def test_missing_program(runner):
    """A program that was not built is a failure, not a skip."""
    (runner.build / "test" / "gpu_move").unlink()
    (runner.build / "test" / "mix").unlink()
    found = runner.run("--only", "gpu_m")
    assert found == {"gpu_move": ("FAIL", f"{runner.build}/test/gpu_move is not there"), "gpu_memory": ("ok", "")}
    found = runner.run("--only", "mix, 2 threads", "--except", "threads,")
    assert found == {"mix, 2 threads": ("FAIL", f"{runner.build}/test/mix is not there")}


def test_skips_say_why(runner):
    """Each skip has its reason: a UCX without CUDA, no UCX, no mpirun, no drop-in for NCCL, no sanitizer, too few GPUs."""
    found = runner.run("--only", "matrix, 4 hosts", fault="refuse:matrix")
    assert found["matrix, 4 hosts, ucx"] == ("ok", "")
    assert found["matrix, 4 hosts, ucx, slots in GPU memory"] == ("skip", "rondo: this UCX was built without CUDA")
    assert runner.output.endswith("\n2 skipped\n1 passed, 0 failed\n") and runner.status == 0

    found = runner.run("--only", "mix, 2 hosts", fault="refuse:rondo")
    assert set(found.values()) == {("skip", "no ucx: no device")}
    assert runner.last_line() == "0 passed, 0 failed" and runner.status == 1, "nothing has passed"

    for name in COMMANDS:
        (runner.bin / name).unlink()
    for name in ("env", "sh", "dirname", "realpath"):
        (runner.bin / name).symlink_to(shutil.which(name))
    (runner.bin / "python3").symlink_to(sys.executable)
    assert runner.run("--only", "p2p, 2 processes", path=str(runner.bin)) == {"p2p, 2 processes": ("skip", "no mpirun")}
    if not os.path.exists("/usr/local/cuda/bin/compute-sanitizer"):
        assert runner.run("--only", "memcheck", path=str(runner.bin))["memcheck"] == ("skip", "no compute-sanitizer")
    (runner.build / "test" / "nccl_matrix").unlink()
    found = runner.run("--only", "nccl graphs")
    assert found == {"nccl graphs, 2 threads": ("skip", "this build has no drop-in for NCCL: nccl.h was not there")}
    assert runner.run("--only", "NCCL hangs", gpus=1) == {"NCCL hangs on these orders": ("skip", "needs 2 GPUs")}


def test_no_gpu(runner):
    """Without a GPU, or without pytest, the run fails with one line that says so."""
    assert runner.run(gpus=0) == {}
    assert runner.output == "gpu-test: there is no GPU that CUDA can use (rondo info says why)\n0 passed, 1 failed\n"
    assert runner.status == 1
    runner.run(PYTHON="/nonexistent/python3")
    assert runner.output.startswith("gpu-test: /nonexistent/python3 has no pytest: apt-get install python3-pytest, or ")
    assert runner.output.endswith("\n0 passed, 1 failed\n") and runner.output.count("\n") == 2 and runner.status == 1


def test_other_runs_deselect_the_steps():
    """A run of pytest that does not ask for the marker gpu runs none of them, and says so."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test/gpu"], capture_output=True, text=True,
                          cwd=ROOT, env=environment())
    assert re.search(r"^(\d+) steps need GPUs: make gpu-test runs them\n\1 deselected", done.stdout, re.MULTILINE), done.stdout


def test_races_that_are_none():
    """The runner accepts racecheck's pairs of atomic accesses, which racecheck does not know as such, and no other pair."""
    report = """========= Error: Race reported between Read access at rondo_cuda_reduce_some_lines(unsigned int)+0x5180 in platform.h:62
=========     and Write access at rondo_interpret(struct rondo_block *)+0xf480 in platform.h:62 [88 hazards]
=========     and Write access at rondo_interpret(struct rondo_block *)+0xfa80 in platform.h:61 [48 hazards]
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)"""
    gpu_harness.check_races(report)
    for other in (report.replace("platform.h:61", "interpreter.h:88"), report.replace(" in platform.h:62 [", " ["),
                  report.replace("between Read access at rondo_cuda_reduce_some_lines(unsigned int)+0x5180 in platform.h:62",
                                 "between Read access at rondo_interpret(struct rondo_block *)+0x10 in block.h:9"),
                  report.replace("RACECHECK SUMMARY", "")):
        with pytest.raises(pytest.fail.Exception):
            gpu_harness.check_races(other)
