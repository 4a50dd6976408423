"""Counts beyond 2^31 bytes and elements."""
import pytest
from harness import program, run

NEEDED = 12 << 30


def available():
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    raise RuntimeError("no MemAvailable in /proc/meminfo")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["float_allreduce", "byte_allreduce", "byte_bcast", "double_allgather", "byte_message"])
def test_beyond_31_bits(scenario):
    if available() < NEEDED:
        pytest.skip(f"needs {NEEDED >> 30} GiB of available memory, there are {available() >> 30}")
    run(program("large"), "--scenario", scenario, seconds=60)
