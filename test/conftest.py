"""Every test leaves the machine as it found it: no processes of its own, no shared memory, no sockets (leaks.py)."""
import leaks
import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long or much memory; deselected for the sanitizers (-m 'not slow')")
    leaks.mark_processes()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    with leaks.nothing_left_behind():
        yield
