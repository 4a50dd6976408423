"""Runs the programs of the build with time limits, and shows their whole output when they fail.

RONDO_X_BUILD names the build directory (default: build); a sanitizer's build gets more time.
"""
import os
import queue
import signal
import socket
import subprocess
import threading
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("RONDO_X_BUILD", "build")).resolve()
SANITIZED = any(word in BUILD.name for word in ("asan", "tsan", "ubsan", "delays"))
PATIENCE = 6 if SANITIZED else 1

# Codes of rondo_result_t that the tests look for.
SUCCESS, ARGUMENT, BOOTSTRAP, TRANSPORT, PEER, TIMEOUT, ABORTED = 0, 1, 6, 7, 8, 9, 11

LAUNCHER_PREFIXES = ("RONDO_", "OMPI_", "PMI_", "PMIX_", "MPI_", "SLURM_", "HYDI_", "HYDRA_")


def program(name):
    """The path of build/test/NAME, or of build/NAME for the command."""
    path = BUILD / name if name == "rondo" else BUILD / "test" / name
    if not path.exists():
        pytest.fail(f"{path} has not been built")
    return str(path)


def environment(seconds=60, **extra):
    """This process's environment without the variables of a launcher or of a user of Rondo."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
    clean["RANKS_WATCHDOG"] = str(int(seconds * PATIENCE))
    clean.update({k: str(v) for k, v in extra.items() if v is not None})
    return clean


def built_with(what):
    """Whether the library was compiled with what its definition RONDO_WITH_WHAT says."""
    return f"-DRONDO_WITH_{what}=1" in (BUILD / "detected").read_text().split()


FAILURE = "not 0"


def seconds_for(ranks):
    """After which so many ranks on two cores are taken to hang: nine of them need from 10 s to a minute for what two do in one."""
    return max(60, 20 * ranks)


def shown(output):
    """The end of an output, and before it what was asserted earlier."""
    start = max(output.rfind("\n", 0, max(len(output) - 6000, 0)), 0)
    return "\n".join([*(line for line in output[:start].splitlines() if "Assertion" in line), output[start:]])


def run(*command, seconds=60, expect=0, **extra):
    """Runs a program to its end and returns its output (both streams). The test fails at any other exit status than expect, which
    is a number, or FAILURE for any but 0."""
    command = [str(word) for word in command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, env=environment(seconds, **extra), start_new_session=True, cwd=ROOT)
    try:
        output, _ = process.communicate(timeout=seconds * PATIENCE + 10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"{' '.join(command)}: still running after {seconds * PATIENCE + 10} s\n{shown(output)}")
    if process.returncode == 0 if expect == FAILURE else process.returncode != expect:
        pytest.fail(f"{' '.join(command)}: status {process.returncode}, not {expect}\n{shown(output)}")
    return output


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rank:
    """One process of a job, whose lines can be waited for."""

    def __init__(self, rank, command, variables):
        self.rank = rank
        self.lines = []
        self.unread = queue.Queue()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                        stdin=subprocess.DEVNULL, env=variables, start_new_session=True, cwd=ROOT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.unread.put(line.rstrip("\n"))
        self.unread.put(None)

    def wait_for(self, word, deadline):
        """The next line that starts with word, or None if the process ends or time runs out before."""
        while True:
            try:
                line = self.unread.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return None
            if line is None:
                self.unread.put(None)
                return None
            if line.startswith(word):
                return line


class Job:
    """A job of processes whose rank and size are in RONDO_RANK and RONDO_SIZE. A context manager: no process is left after it.

    only: the ranks to start. each: from a rank to variables of its own; None unsets one. prefix: from a rank to the words
    before its command, which must become that command (as `ip netns exec` does), so that a signal reaches it.
    """

    def __init__(self, size, *command, seconds=None, only=None, root=None, each=None, prefix=None, **extra):
        seconds = seconds_for(size) if seconds is None else seconds
        self.seconds = seconds * PATIENCE
        self.deadline = time.monotonic() + self.seconds
        self.ranks = {}
        extra.setdefault("RONDO_JOB", uuid.uuid4().hex)
        for rank in range(size) if only is None else only:
            variables = environment(seconds, RONDO_RANK=rank, RONDO_SIZE=size, RONDO_ROOT=root, **extra)
            if each is not None:
                variables.update(each(rank))
            variables = {name: text for name, text in variables.items() if text is not None}
            words = [*(prefix(rank) if prefix is not None else []), *command]
            self.ranks[rank] = Rank(rank, [str(word) for word in words], variables)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks.values():
            if rank.process.poll() is None:
                rank.process.send_signal(signal.SIGCONT)
                rank.process.kill()
            rank.process.wait()
            rank.reader.join(5)
            rank.process.stdout.close()

    def output(self):
        return "\n".join(f"[{rank.rank}] {line}" for rank in self.ranks.values() for line in list(rank.lines))

    def fail(self, message):
        pytest.fail(f"{message}\n{shown(self.output())}")

    def wait_for(self, word, ranks=None):
        """{rank: line}; fails the test if one of the ranks does not print it in time."""
        found = {}
        for rank in self.ranks if ranks is None else ranks:
            found[rank] = self.ranks[rank].wait_for(word, self.deadline)
            if found[rank] is None:
                self.fail(f"rank {rank} did not print {word}")
        return found

    def results(self, ranks=None):
        """{rank: (code, seconds since the job was formed, message)} of the programs that print RESULT."""
        lines = self.wait_for("RESULT ", ranks)
        return {rank: (int(line.split()[1]), float(line.split()[2]), line.split(" ", 3)[3]) for rank, line in lines.items()}

    def finish(self, ranks=None, expect=0):
        """Waits for processes to end by themselves, with this status."""
        for rank in self.ranks if ranks is None else ranks:
            try:
                status = self.ranks[rank].process.wait(timeout=max(0.1, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {rank} does not end")
            self.ranks[rank].reader.join(5)
            if status != expect:
                self.fail(f"rank {rank} ended with status {status}, not {expect}")
