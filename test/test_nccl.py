"""The drop-in for NCCL on the host device (RONDO_DEVICE=host): the whole of its logic without a GPU. make/gpu-test has the same
programs on GPUs.
"""
import os
import shutil
import subprocess

import pytest
from harness import BUILD, environment, program, run

LIBRARY = BUILD / "nccl" / "libnccl.so.2"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="no drop-in in this build: it needs CUDA's and NCCL's headers")


def on_host(*command, **extra):
    return run(*command, RONDO_DEVICE="host", **extra)


NVIDIA = [path for path in ("/usr/local/cuda/lib64/libnccl.so.2", "/usr/local/cuda/lib/libnccl.so.2",
                            "/usr/lib/x86_64-linux-gnu/libnccl.so.2") if os.path.exists(path)]


def exported(library):
    said = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in said.stdout.splitlines()}


def test_symbols():
    """Every symbol that NCCL exports resolves here, and no symbol of Rondo can collide with the program's."""
    ours = exported(LIBRARY)
    header = {name for name in ours if name.startswith("nccl")}
    assert {"p" + name for name in header if name != "ncclResetDebugInitInternal"} <= ours
    assert ours - {"rondo_nccl_synchronize"} == {name for name in ours if name.startswith(("nccl", "pnccl"))}
    if not NVIDIA:
        pytest.skip("NVIDIA's library, whose list this is compared with, is not on this machine")
    assert exported(NVIDIA[0]) - ours == set()


def test_soname():
    said = subprocess.run(["readelf", "-d", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    assert "[libnccl.so.2]" in said


@pytest.mark.skipif(not NVIDIA, reason="NVIDIA's library, to be kept out, is not on this machine")
def test_preload():
    """With LD_PRELOAD the drop-in takes the place of an NCCL that the program would find otherwise."""
    said = on_host(program("nccl_matrix"), "--threads", 2, "--types", "float", LD_PRELOAD=LIBRARY, NCCL_DEBUG="VERSION",
                   LD_LIBRARY_PATH=os.path.dirname(NVIDIA[0]))
    assert "offered by Rondo" in said


@pytest.mark.parametrize("level, wanted", [("VERSION", True), ("INFO", True), (None, False)])
def test_identity(level, wanted):
    said = on_host(program("nccl_api"), "--ranks", 1, "--scenario", "split", NCCL_DEBUG=level)
    assert ("NCCL version 2." in said and "Rondo" in said) == wanted


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("check", [0, 1])
def test_calls(ranks, check):
    on_host(program("nccl_api"), "--ranks", ranks, RONDO_CHECK=check)


def test_several_ids():
    """Of 1, 2 and 3 ids each root but the first comes to the first."""
    said = on_host(program("nccl_api"), "--ranks", 4, "--scenario", "scalable", RONDO_LOG="debug")
    assert said.count("root: the root of rank ") == 3, said[-4000:]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_newer_calls(ranks):
    on_host(program("nccl_newer"), "--ranks", ranks)


def test_device_communicators():
    """What is refused of them; kernels run on GPUs alone (test/gpu/test_gpu_nccl.py)."""
    on_host(program("nccl_device_api"), "--ranks", 2)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3), (2, 2)])
def test_matrix(shape):
    threads, gpus = shape
    on_host(program("nccl_matrix"), "--threads", threads, "--gpus", gpus, "--max", "16K", "--factor", 16)


def test_large():
    on_host(program("nccl_matrix"), "--threads", 2, "--types", "float", "--ops", "sum,premul", "--min", "1M", "--max", "16M")


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
@pytest.mark.parametrize("gpus", [1, 2])
def test_processes(tmp_path, gpus):
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    on_host("mpirun", *root, "--oversubscribe", "-x", "RONDO_DEVICE", "-n", 2, program("nccl_matrix"), "--gpus", gpus, "--id",
            tmp_path / "id", "--max", "16K", "--factor", 16, "--types", "float,int8,bfloat16")


def test_a_killed_process(tmp_path):
    """The operations of the other ranks end with an error, and so does the program."""
    identity, job = tmp_path / "id", []
    try:
        for rank in range(2):
            variables = environment(60, RONDO_DEVICE="host", OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=2)
            command = [program("nccl_matrix"), "--id", str(identity), "--iterations", "100000", "--types", "float", "--ops", "sum",
                       "--collectives", "allreduce", "--max", "64K"]
            job.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        with pytest.raises(subprocess.TimeoutExpired):
            job[1].wait(1)
        job[1].kill()
        output, _ = job[0].communicate(timeout=20)
        assert job[0].returncode == 1 and "rank 1 has died" in output, output[-3000:]
    finally:
        for process in job:
            process.kill()
            process.wait()
            process.stdout.close()
