"""The check for leaks itself: it finds what Rondo leaves behind, and is not disturbed by other programs on the machine."""
import os
import signal
import socket
import subprocess
import time
import sys
import uuid

import pytest

import leaks
from harness import environment, program

# Makes a file and maps it, as MPICH's ranks do; with "hold" it stays, else it ends and leaves the file.
MAKER = """
import mmap, os, sys, time
with open(sys.argv[1], "w+b") as file:
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
print("made", flush=True)
if sys.argv[2] == "hold":
    time.sleep(60)
"""


def foreign():
    """The environment of a program that the tests have nothing to do with."""
    return {name: text for name, text in os.environ.items() if name != leaks.VARIABLE}


def make_file(path, env, how):
    maker = subprocess.Popen([sys.executable, "-c", MAKER, path, how], env=env, stdout=subprocess.PIPE, text=True)
    assert maker.stdout.readline() == "made\n"
    return maker


def end(process):
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """In place of /dev/shm, where another run of the tests would find the files, too."""
    monkeypatch.setenv(leaks.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name, how", [("mpich_shm_", "hold"), ("mpich_shm_", "leave"), ("ucx_shm_posix_", "hold"),
                                       ("psm2_shm.", "leave")])
def test_other_programs_do_not_count(folder, name, how):
    """Another MPI job's files appear during the check, whether its processes still run or have ended."""
    path = f"{folder}/{name}{uuid.uuid4().hex}"
    try:
        with leaks.nothing_left_behind(0.3):
            maker = make_file(path, foreign(), how)
        assert os.path.exists(path)
    finally:
        end(maker)
        os.unlink(path)


@pytest.mark.parametrize("name, how", [("rondo-", "leave"), ("rondo-", "hold"), ("ucx_shm_posix_", "leave")])
def test_files_of_rondo_are_found(folder, name, how):
    path = f"{folder}/{name}{uuid.uuid4().hex}"
    try:
        with pytest.raises(AssertionError, match=path):
            with leaks.nothing_left_behind(0.3):
                maker = make_file(path, None, how)
    finally:
        end(maker)
        os.unlink(path)


def test_a_socket_of_rondo_is_found():
    path = f"/tmp/rondo-{uuid.uuid4().hex}"
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            with pytest.raises(AssertionError, match=path):
                with leaks.nothing_left_behind(0.3):
                    listener.bind(path)
    finally:
        os.unlink(path)


def await_process(command):
    """Waits for a process whose command line ends so: a shell's child has the shell's line until it is the command itself, and
    between the two no environment that could be read, which takes long on a busy machine."""
    deadline = time.monotonic() + 10
    while not any(process.endswith(f"{command})") for process in leaks.marked_processes()):
        assert time.monotonic() < deadline, f"{command} does not run"
        time.sleep(0.01)


def test_a_rank_that_stays_is_found():
    """One rank of two, which waits for the other: its process holds whatever it has made."""
    variables = environment(RONDO_RANK=0, RONDO_SIZE=2, RONDO_JOB=uuid.uuid4().hex, RONDO_DEVICE="host")
    try:
        with pytest.raises(AssertionError, match=r"process \d+ since \d+ \(\S*rondo stress"):
            with leaks.nothing_left_behind(0.3):
                rank = subprocess.Popen([program("rondo"), "stress"], env=variables, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
                await_process("rondo stress")
    finally:
        end(rank)


def test_a_process_that_left_its_parent_is_found():
    """A daemon that a rank would leave is no child of the tests any more, but has their mark."""
    with pytest.raises(AssertionError, match=r"\(sleep 61\)") as caught:
        with leaks.nothing_left_behind(0.3):
            subprocess.run(["sh", "-c", "sleep 61 >/dev/null 2>&1 &"], check=True, start_new_session=True)
            await_process("(sleep 61")
    os.kill(int(str(caught.value).split("process ")[1].split()[0]), signal.SIGKILL)
