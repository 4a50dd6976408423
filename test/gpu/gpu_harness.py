"""What the steps of test/gpu share: the machine, the environment of the programs under test, and a step that runs them within its
time limit and keeps their output in $BUILD/gpu-test/. Relies on test/harness.py.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import BUILD, LAUNCHER_PREFIXES, ROOT

LOGS = BUILD / "gpu-test"
RONDO = str(BUILD / "rondo")


def test_program(name):
    return str(BUILD / "test" / name)


test_program.__test__ = False


def environment(seconds, **extra):
    """This process's environment without what a launcher or a user of Rondo has set. Open MPI's own parameters pass: they say how
    mpirun works on this machine. The watchdog of the test programs ends 5 s before the limit, because its report takes seconds."""
    clean = {k: v for k, v in os.environ.items() if k.startswith("OMPI_MCA_") or not k.startswith(LAUNCHER_PREFIXES)}
    clean["RONDO_DEVICE"] = "cuda"
    clean["RANKS_WATCHDOG"] = str(max(1, int(seconds) - 5))
    clean.update(extra)
    return clean


def info():
    """What `rondo info` says, as its JSON; None if the command does not run."""
    try:
        done = subprocess.run([RONDO, "info", "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                              env=environment(60))
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def count_gpus():
    """The GPUs that CUDA offers to a process of this environment."""
    found = info()
    if found is not None and "gpus" in found:
        return len(found["gpus"])
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, text=True, timeout=60)
        return len(re.findall(r"^GPU \d+", listed.stdout, re.MULTILINE))
    except (OSError, subprocess.TimeoutExpired):
        return 0


class Machine:
    """How many ranks the steps use. The fields may stand in the names of steps.

    ranks: one for each GPU; on a single GPU three share it. oversubscribed: more ranks than GPUs. streams: a GPU has 32 connections,
    and each rank uses two streams of its own besides those of a step.
    """

    def __init__(self, gpus):
        self.gpus = gpus
        self.ranks = gpus if gpus > 1 else 3
        self.half = self.ranks // 2
        self.pair = max(self.ranks, 2)
        self.oversubscribed = 2 * gpus + 1 if gpus <= 4 else gpus + 1
        self.streams = 16 if self.ranks <= gpus else 8


class Step:
    """One test of a GPU machine: runs programs until its deadline, and logs what they print."""

    def __init__(self, name, seconds, machine):
        self.name, self.seconds, self.machine = name, seconds, machine
        self.deadline = 0.0  # of time.monotonic(); set when the step begins
        self.notes = []
        self.log = LOGS / (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") + ".log")

    def begin(self, end):
        """Starts the clock of the step: it has its own seconds, but no more than are left until end."""
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.deadline = min(time.monotonic() + self.seconds, end)

    def left(self):
        return max(1.0, self.deadline - time.monotonic())

    def note(self, text):
        """A line that is shown with the verdict."""
        self.notes.append(text)

    def run(self, *command, expect=0, **extra):
        """Runs a command to its end and returns its output, which is also in the log. extra: environment variables."""
        command = [str(word) for word in command]
        if not os.path.exists(command[0]) and shutil.which(command[0]) is None:
            pytest.fail(f"{command[0]} is not there", pytrace=False)
        left = self.left()
        with open(self.log, "a") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            start = log.tell()
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env=environment(left, **extra), start_new_session=True, cwd=ROOT)
            try:
                status = process.wait(left)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        with open(self.log, errors="replace") as log:
            log.seek(start)
            output = log.read()
        if status is None:
            pytest.fail(f"still running after {left:.0f} s: {' '.join(command)}", pytrace=False)
        if status != expect:
            pytest.fail(f"status {status}, not {expect}: {' '.join(command)}", pytrace=False)
        return output

    def mpirun(self, size, *command, hosts=False, **extra):
        """The same with size processes. hosts: each counts as a host of its own."""
        if shutil.which("mpirun") is None:
            pytest.skip("no mpirun")
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        # Open MPI passes its own variables and those that it is told to pass.
        passed = [word for name in ("RONDO_DEVICE", "RANKS_WATCHDOG", *extra) for word in ("-x", name)]
        if hosts:
            command = ("sh", "-c", 'RONDO_HOSTID=$OMPI_COMM_WORLD_RANK exec "$@"', "sh", *command)
        return self.run("mpirun", *root, "--oversubscribe", *passed, "-n", size, *command, **extra)

    def stress(self, ranks, *options, mpirun=False, **extra):
        """rondo stress; returns its JSON. Fails unless every collective ended with the right result."""
        path = f"{self.log}.json"
        words = [RONDO, "stress", "--device", "cuda", "--json", path, *options]
        if mpirun:
            self.mpirun(ranks, *words, **extra)
        else:
            self.run(*words, "--ranks", ranks, **extra)
        with open(path) as file:
            found = json.load(file)
        if found["finished"] != found["expected"] or found["wrong"] != 0:
            pytest.fail(f"{found['finished']} of {found['expected']} finished, {found['wrong']} wrong", pytrace=False)
        return found

    def bench(self, ranks, collective, *options, **extra):
        """rondo bench of a few operations on streams of each size, which checks their results."""
        return self.run(RONDO, "bench", collective, "--device", "cuda", "--ranks", ranks, "-c", "--mode", "stream", "-n", 5, "-w", 1,
                        *options, **extra)

    def tail(self, count=12):
        try:
            with open(self.log, errors="replace") as file:
                return [line.rstrip("\n")[:300] for line in file.readlines()[-count:]]
        except OSError:
            return []


def check_races(report):
    """racecheck counts accesses by ld.relaxed and st.relaxed (platform.h) among the plain ones, though they are atomic and meant to
    meet: the warps of an interpreter and their leader tell each other so how far they are. Any other pair of accesses is a race and
    fails the test, and so does a report that is cut short."""
    if "RACECHECK SUMMARY" not in report:
        pytest.fail("racecheck has not come to its end", pytrace=False)
    for line in report.splitlines():
        found = re.search(r"(?:Race reported between|and) (?:Read|Write) access at .* in (\S+):\d+", line)
        if "access at" in line and (found is None or found.group(1) != "platform.h"):
            pytest.fail(line, pytrace=False)
