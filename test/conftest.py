"""Every test leaves the machine as it found it: no shared memory, no sockets, no processes of its own."""
import os
import stat
import time
from pathlib import Path

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long or much memory; deselected for the sanitizers (-m 'not slow')")


def leftovers():
    """What a runtime could leave behind: anything in /dev/shm, sockets in /tmp, and Rondo's files there."""
    found = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")}
    for entry in Path("/tmp").iterdir():
        try:
            is_socket = stat.S_ISSOCK(entry.lstat().st_mode)
        except FileNotFoundError:
            continue
        if is_socket or entry.name.startswith((".rondo", "rondo-", "rondo_", "rondo.")) and not entry.name.endswith(".md"):
            found.add(str(entry))
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = leftovers()
    yield
    deadline = time.monotonic() + 5
    while (new := leftovers() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not new, f"left behind: {sorted(new)}"
