"""Every test leaves the machine as it found it: no shared memory, no sockets, no processes of its own."""
import os
import stat
import time
from pathlib import Path

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long or much memory; deselected for the sanitizers (-m 'not slow')")


def leftovers():
    """What a runtime could leave behind: anything in /dev/shm, and sockets in /tmp."""
    found = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")}
    for entry in Path("/tmp").iterdir():
        try:
            if stat.S_ISSOCK(entry.lstat().st_mode):
                found.add(str(entry))
        except FileNotFoundError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = leftovers()
    yield
    deadline = time.monotonic() + 5
    while (new := leftovers() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not new, f"left behind: {sorted(new)}"
