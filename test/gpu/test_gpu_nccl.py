"""The drop-in for NCCL on GPUs: its own test programs, and PyTorch on it beside PyTorch on NCCL."""
import json
import os
import subprocess
import sys
import uuid

import pytest

from gpu_harness import BUILD, test_program

MATRIX = test_program("nccl_matrix")
FEW = ["--min", 8, "--max", "64K", "--factor", 16]
LARGE = ["--types", "float,int8,bfloat16", "--ops", "sum,premul", "--factor", 8, "--min", "512K", "--max", "32M"]


def need_drop_in():
    if not os.path.exists(MATRIX):
        pytest.skip("this build has no drop-in for NCCL: nccl.h was not there")


def run_processes(step, size, *options):
    need_drop_in()
    identity = f"/tmp/rondo-nccl-{uuid.uuid4().hex}"
    try:
        step.mpirun(size, MATRIX, *options, "--id", identity)
    finally:
        if os.path.exists(identity):
            os.remove(identity)


def need_even_ranks(step):
    if step.machine.ranks % 2 != 0:
        pytest.skip(f"{step.machine.ranks} ranks cannot be put in pairs")


@pytest.mark.gpu("nccl calls, {ranks} threads{name}", seconds=90)
@pytest.mark.parametrize("name, check", [("", {}), (", compared across ranks", {"RONDO_CHECK": "1"})])
def test_calls(step, name, check):
    need_drop_in()
    step.run(test_program("nccl_api"), "--ranks", step.machine.ranks, **check)


@pytest.mark.gpu("nccl newer calls, {ranks} threads", seconds=60)
def test_newer_calls(step):
    need_drop_in()
    step.run(test_program("nccl_newer"), "--ranks", step.machine.ranks)


@pytest.mark.gpu("nccl kernels of a program, {ranks} threads", seconds=60)
def test_device_api(step):
    need_drop_in()
    step.run(test_program("nccl_device_api"), "--ranks", step.machine.ranks)


@pytest.mark.gpu("nccl kernels of a program, {oversubscribed} threads that share GPUs", seconds=60)
def test_device_api_oversubscribed(step):
    need_drop_in()
    step.run(test_program("nccl_device_api"), "--ranks", step.machine.oversubscribed)


@pytest.mark.gpu("nccl matrix, {ranks} threads", seconds=60)
def test_matrix_threads(step):
    need_drop_in()
    step.run(MATRIX, "--threads", step.machine.ranks, *FEW)


@pytest.mark.gpu("nccl matrix, {ranks} GPUs by one thread", seconds=60)
def test_matrix_one_thread(step):
    need_drop_in()
    step.run(MATRIX, "--gpus", step.machine.ranks, *FEW)


@pytest.mark.gpu("nccl matrix, {ranks} processes", seconds=60)
def test_matrix_processes(step):
    run_processes(step, step.machine.ranks, *FEW)


@pytest.mark.gpu("nccl matrix, {half} threads of 2 GPUs", seconds=60)
def test_matrix_threads_of_two(step):
    need_even_ranks(step)
    need_drop_in()
    step.run(MATRIX, "--threads", step.machine.half, "--gpus", 2, *FEW)


@pytest.mark.gpu("nccl matrix, {half} processes of 2 GPUs", seconds=60)
def test_matrix_processes_of_two(step):
    need_even_ranks(step)
    run_processes(step, step.machine.half, "--gpus", 2, *FEW)


@pytest.mark.gpu("nccl matrix, {ranks} threads, 512 KiB to 32 MiB", seconds=90)
def test_matrix_large(step):
    need_drop_in()
    step.run(MATRIX, "--threads", step.machine.ranks, *LARGE)


@pytest.mark.gpu("nccl matrix, {ranks} threads, 1 GiB", seconds=150, on_request=True)
def test_matrix_1_gib(step):
    need_drop_in()
    step.run(MATRIX, "--threads", step.machine.ranks, "--types", "float", "--ops", "sum", "--min", "1G", "--max", "1G")


@pytest.mark.gpu("nccl graphs, {ranks} threads", seconds=60)
def test_graphs(step):
    need_drop_in()
    step.run(test_program("nccl_graph"), "--ranks", step.machine.ranks)


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=120).returncode == 0


def run_torch(step, script, *options):
    """A script of examples/pytorch, once on Rondo's drop-in and once on NCCL; returns its JSON."""
    library = BUILD / "nccl" / "libnccl.so.2"
    if not library.exists():
        pytest.skip("this build has no drop-in for NCCL: nccl.h was not there")
    if not has_torch():
        pytest.skip("no PyTorch with CUDA")
    output = step.run(sys.executable, os.path.join("examples", "pytorch", script), "--library", library, "--gpus", step.machine.gpus,
                      *options)
    return json.loads(output[output.rindex("\n{") + 1 if "\n{" in output else output.index("{"):])


@pytest.mark.gpu("nccl PyTorch, process groups in different orders", seconds=60, gpus=2, on_request=True)
def test_torch_orders(step):
    found = run_torch(step, "orders.py", "--limit", 20)
    assert found["rondo"]["finished"], "it does not finish on Rondo"
    assert not found["nccl"]["finished"], "it finishes on NCCL, which proves nothing"


@pytest.mark.gpu("nccl PyTorch, DDP and FSDP2 beside NCCL", seconds=125, gpus=2, on_request=True)
def test_torch_compare(step):
    for mode, figures in run_torch(step, "compare.py", "--limit", 55)["modes"].items():
        step.note(f"{mode}: {figures['ratio']} of NCCL's speed, losses differ by {figures['largest_difference']:.2g} at most")
        assert figures["same_losses"], f"{mode}: the losses differ by {figures['largest_difference']:.3g}"
        assert figures["ratio"] >= 0.97, f"{mode}: {figures['ratio']:.3f} of NCCL's speed; 0.97 is wanted"
