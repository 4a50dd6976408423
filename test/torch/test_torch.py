"""The backend rondo_torch: each case of ranks.py on ranks that are processes. `make torch-test` runs them."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap

import pytest

if not os.environ.get("RONDO_X_TORCH"):
    pytest.skip("`make torch-test` runs these, with PyTorch", allow_module_level=True)
torch = pytest.importorskip("torch", reason="PyTorch is missing")
HAS_HOOKS = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 15)  # the flight recorder takes other backends
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

RANKS = pathlib.Path(__file__).with_name("ranks.py")


def run(case, size, tmp_path, victim=None, seconds=300, **variables):
    """The ranks' texts. The victim's exit is not looked at; it may be stopped, and is killed at the end."""
    # PyTorch 2.15 dumps its recorder when a group fails, with C++ stacks that take it longer than it waits where the machine is busy; a
    # process that ends then dies of it.
    environment = dict(os.environ, OMP_NUM_THREADS="1", TORCH_INCLUDE_STACK_TRACE="0", **variables)
    ranks = [subprocess.Popen([sys.executable, str(RANKS), case, str(rank), str(size), str(tmp_path / "store")] +
                              ([] if victim is None else [str(victim)]), env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=tmp_path) for rank in range(size)]
    try:
        texts = [rank.communicate(timeout=seconds)[0] for number, rank in enumerate(ranks) if number != victim]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for number, rank in enumerate(ranks) if number != victim] == [0] * len(texts), "\n".join(texts)
    return texts


@pytest.mark.parametrize("case", ["collectives", "messages", "groups", "orders", "coalesced", "keys", "split", "abort", "shutdown"])
def test_ranks(case, tmp_path):
    run(case, 3, tmp_path)


def run_on_gpus(case, tmp_path, victim=None):
    """Three ranks, which may share a GPU: CUDA lets streams wait for each other there unless it is told not to."""
    run(case, 3, tmp_path, victim, RONDO_X_TORCH_DEVICE="cuda", CUDA_DEVICE_MAX_CONNECTIONS="32")


@needs_gpu
@pytest.mark.parametrize("case", ["collectives", "messages", "groups", "orders", "streams", "coalesced", "keys", "split", "shutdown"])
def test_ranks_on_gpus(case, tmp_path):
    run_on_gpus(case, tmp_path)


@needs_gpu
@pytest.mark.parametrize("case, victim", [("dead", 0), ("dead", 2), ("frozen", 2), ("left", 2), ("late", 2)])
def test_failures_on_gpus(case, victim, tmp_path):
    run_on_gpus(case, tmp_path, victim)


@pytest.mark.skipif(not HAS_HOOKS, reason="before PyTorch 2.15 the flight recorder has no calls of other backends")
def test_recorder(tmp_path):
    run("recorder", 3, tmp_path)


def test_pytorchs_analyser(tmp_path):
    """It reads the files of Rondo's own recorder, and says which rank has not come to which collective."""
    pytest.importorskip("torch.distributed.flight_recorder.fr_trace", reason="this PyTorch has no analyser")
    run("late", 3, tmp_path, 2, RONDO_FLIGHT_RECORDER=str(tmp_path / "flight_"))
    folder = tmp_path / "pickled"
    folder.mkdir()
    for rank in range(3):
        (folder / f"flight_{rank}").write_bytes(pickle.dumps(json.loads((tmp_path / f"flight_{rank}").read_text())))
    said = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "--prefix", "flight_"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=300).stdout
    assert "collective: nccl:all_reduce\n" in said and "missing ranks: {2}" in said and "expected ranks: {0, 1, 2}" in said, said


def test_detail(tmp_path):
    run("detail", 3, tmp_path, TORCH_DISTRIBUTED_DEBUG="DETAIL", TORCH_CPP_LOG_LEVEL="ERROR")


@pytest.mark.parametrize("case, victim", [("dead", 0), ("dead", 2), ("frozen", 0), ("frozen", 2), ("silent", 2), ("left", 2), ("late", 2)])
def test_failures(case, victim, tmp_path):
    """Each other rank raises an exception that names the victim, and writes PyTorch's flight recorder."""
    run(case, 3, tmp_path, victim, TORCH_FR_DUMP_TEMP_FILE=str(tmp_path / "trace-"))
    if HAS_HOOKS:
        assert all((tmp_path / f"trace-{rank}").exists() for rank in range(3) if rank != victim), os.listdir(tmp_path)


def test_the_example_of_the_guide(tmp_path):
    guide = (RANKS.parents[2] / "docs/guide/pytorch.md").read_text()
    example = guide.split("## Ten lines", 1)[1].split("Start it", 1)[0]
    (tmp_path / "program.py").write_text(textwrap.dedent(example))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "program.py"], cwd=tmp_path,
                          env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count("tensor([24., 24., 24., 24.])") == 4, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_data_tensor_and_pipeline_parallel(device, tmp_path):
    """Orders of each rank's own give the losses of one order, bit for bit."""
    file = tmp_path / "cells.json"
    subprocess.run([sys.executable, str(RANKS.parents[2] / "examples/pytorch/parallel.py"), "--steps", "5", "--device", device, "--shapes",
                    "2x2x2" if device == "cpu" else "2x1x2", "--json", str(file)], check=True, timeout=400)
    cells = json.loads(file.read_text())["cells"]
    assert [cell["way"] for cell in cells if cell["equal"]] == ["one", "mixed", "synchronized"]
    assert cells[0]["losses"][-1] < cells[0]["losses"][0]


def test_thousand_groups(tmp_path):
    """What is left in /dev/shm, and processes, are for test/leaks.py to find."""
    for text in run("many", 2, tmp_path, seconds=1500):
        print(text)
