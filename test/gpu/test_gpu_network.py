"""GPUs over a network: every rank counts as a host of its own and reaches the others by UCX. The slots are in the host's memory, or
handled as if they were in the GPU's ("slots apart"), or in the GPU's memory, which needs a UCX built with CUDA in LD_LIBRARY_PATH
before the distribution's.
"""
import pytest

from gpu_harness import info, test_program
from test_gpu_collectives import SUBSET


def run_hosts(step, count, *command, **extra):
    found = info() or {"transports": []}
    reasons = [row["why_not"] for row in found["transports"] if row["transport"] == "ucx"]
    if reasons != [None]:
        pytest.skip("no ucx: " + (reasons[0] if reasons else "it is not built"))
    try:
        return step.mpirun(count, *command, hosts=True, RONDO_TRANSPORTS="shm,ucx", **extra)
    except pytest.fail.Exception:
        refusals = [line for line in step.tail(60) if "this UCX was built without CUDA" in line]
        if refusals and "RONDO_GPUDIRECT" in extra:
            pytest.skip(refusals[0])
        raise


@pytest.mark.gpu("matrix, {host_count} hosts, ucx{name}", seconds=60)
@pytest.mark.parametrize("name, setting", [("", None), (", slots apart", "apart"), (", slots in GPU memory", "dmabuf")])
def test_matrix(step, host_count, name, setting):
    run_hosts(step, host_count, test_program("matrix"), "--ranks", 0, *SUBSET, **({"RONDO_GPUDIRECT": setting} if setting else {}))


@pytest.mark.gpu("mix, {host_count} hosts, ucx, slots apart", seconds=40)
def test_mix_slots_apart(step, host_count):
    run_hosts(step, host_count, test_program("mix"), "--ranks", 0, "--iterations", 4, "--seed", 6, RONDO_GPUDIRECT="apart")


@pytest.mark.gpu("mix, {host_count} hosts, ucx, three proxies", seconds=40)
def test_mix_three_proxies(step, host_count):
    run_hosts(step, host_count, test_program("mix"), "--ranks", 0, "--iterations", 4, "--seed", 7, RONDO_PROXY_THREADS="3")
