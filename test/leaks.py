"""Finds what a test of Rondo leaves behind, and nothing that another program on the machine makes meanwhile.

Every process that the tests start inherits an environment variable with this run's mark. What a runtime holds (segments, sockets
in the abstract namespace, threads) ends with its process, so a leak of it is a marked process that is still there. What outlives
processes are files in /dev/shm and sockets in /tmp: those with Rondo's name count, and files of UCX, which makes them for Rondo's
ucx transport; no file counts that a process without the mark has open. Tests of this check leave files in a folder of their own
instead of /dev/shm, where another run of the tests on this machine would find them.
"""
import contextlib
import os
import stat
import time
import uuid
from pathlib import Path

VARIABLE = "LEAK_CHECK_RUN"
MARK = f"{VARIABLE}={uuid.uuid4().hex}"
FOLDER_VARIABLE = "LEAK_CHECK_FOLDER"


def mark_processes():
    """Once a run, before the first process is started."""
    os.environ[VARIABLE] = MARK.split("=")[1]


def _read(path):
    try:
        return path.read_bytes()
    except OSError:  # ended meanwhile, or another user's
        return b""


def _processes():
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_marked(process):
    return MARK.encode() in _read(process / "environ").split(b"\0")


def marked_processes():
    """{"process PID (COMMAND)"} of this run, with the start time that tells a number's later user from it."""
    found = set()
    for process in _processes():
        if int(process.name) != os.getpid() and _is_marked(process):
            command = _read(process / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            start = _read(process / "stat").rpartition(b")")[2].split()
            if command and start:  # else it has ended
                found.add(f"process {process.name} since {start[19].decode()} ({command[:200]})")
    return found


def _is_foreign(path):
    """Whether a process that the tests have not started has the file open or mapped."""
    for process in _processes():
        with contextlib.suppress(OSError):
            opened = {os.readlink(entry) for entry in (process / "fd").iterdir()}
            if (path in opened or path in _read(process / "maps").decode(errors="replace")) and not _is_marked(process):
                return True
    return False


def _folder():
    return Path(os.environ.get(FOLDER_VARIABLE, "/dev/shm"))


def files():
    """Files in /dev/shm and sockets in /tmp that Rondo, or UCX for Rondo, can have made."""
    found = {str(path) for path in _folder().iterdir() if path.name.startswith(("rondo", "ucx_")) and not _is_foreign(str(path))}
    for entry in Path("/tmp").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if entry.name.startswith("rondo") and stat.S_ISSOCK(entry.lstat().st_mode):
                found.add(str(entry))
    return found


@contextlib.contextmanager
def nothing_left_behind(seconds=5):
    """Fails if what is inside leaves something that is still there after so many seconds."""
    before = marked_processes() | files()
    yield
    deadline = time.monotonic() + seconds
    while (new := (marked_processes() | files()) - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not new, f"left behind: {sorted(new)}"
