"""The kernels under compute-sanitizer."""
import os
import shutil

import pytest

from gpu_harness import RONDO, check_races


def sanitizer():
    for candidate in (shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"):
        if candidate is not None and os.path.exists(candidate):
            return candidate
    pytest.skip("no compute-sanitizer")


def run_sanitized(step, tool, *options):
    step.run(sanitizer(), "--tool", tool, "--error-exitcode", 9, RONDO, *options)


@pytest.mark.gpu("{tool}", seconds=60)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_daemon(step, tool):
    run_sanitized(step, tool, "stress", "--device", "cuda", "--ranks", 2, "--collectives", 4, "--iterations", 3, "--timeout", 100)


@pytest.mark.gpu("{tool}, streams", seconds=100, gpus=2)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_streams(step, tool):
    """On a GPU for each rank: the sanitizer runs the kernels of one GPU one after the other, and these wait for each other."""
    plain = ["bench", "allreduce", "--device", "cuda", "--ranks", 2, "-c", "-b", 64, "-e", "256K", "-f", 64, "-n", 2, "-w", 1, "--mode",
             "stream"]
    interpreted = plain + ["--algorithm", "ring", "--protocol", "ll128", "--channels", 4]
    run_sanitized(step, tool, *plain)
    if tool == "racecheck":
        check_races(step.run(sanitizer(), "--tool", tool, RONDO, *interpreted))
    else:
        run_sanitized(step, tool, *interpreted)
