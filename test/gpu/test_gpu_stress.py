"""Many collectives in random orders on GPUs, beside synchronizations and other calls of CUDA: all of them end, with the right
results. Without preemption, and on NCCL, the same orders are a deadlock.
"""
import json
import pathlib

import pytest

from gpu_harness import RONDO


@pytest.mark.gpu("stress, {ranks} threads{name}", seconds=60)
@pytest.mark.parametrize("name, options", [
    ("", ["--collectives", 8, "--iterations", 200]),
    (", synchronizations", ["--collectives", 8, "--iterations", 200, "--order", "random", "--sync"]),
    (", through host memory", ["--collectives", 8, "--iterations", 100, "--sync", "--transports", "shm"]),
    (", interfering calls", ["--collectives", 8, "--iterations", 400, "--interfere"]),
    (", streams", ["--streams", 3, "--collectives", 9, "--iterations", 100])])
def test_threads(step, name, options):
    step.stress(step.machine.ranks, *options)


@pytest.mark.gpu("stress, {ranks} processes, {name}", seconds=60)
@pytest.mark.parametrize("name, options", [
    ("synchronizations", ["--collectives", 8, "--iterations", 100, "--sync"]),
    ("streams", ["--streams", 3, "--collectives", 9, "--iterations", 50])])
def test_processes(step, name, options):
    step.stress(step.machine.ranks, *options, mpirun=True)


@pytest.mark.gpu("stress, 8 threads, {policy} budgets", seconds=60)
@pytest.mark.parametrize("policy", ["fixed", "adaptive", "profile"])
def test_policies(step, policy):
    """The iterations of DFCCL's programs that are to deadlock (its section 6.2), with calls of CUDA beside them."""
    step.stress(8, "--collectives", 8, "--iterations", 200, "--sync", "--interfere", RONDO_SPIN=policy, CUDA_DEVICE_MAX_CONNECTIONS="32")


@pytest.mark.gpu("an urgent operation beside large ones", seconds=30)
def test_priority(step):
    """By the order of starts it would be the last. It takes a fifth of their time at the most."""
    path = f"{step.log}.json"
    step.run(RONDO, "bench", "priority", "--device", "cuda", "--ranks", 2, "--json", path, CUDA_DEVICE_MAX_CONNECTIONS="32")
    (row,) = json.loads(pathlib.Path(path).read_text())["rows"]
    step.note(f"{row['alone_us']:.0f} us alone, {row['beside_us']:.0f} us beside, {row['worst_us']:.0f} at worst")
    assert row["beside_us"] < 0.2 * row["all_us"]


@pytest.mark.gpu("stress, {oversubscribed} threads on {gpus} GPUs", seconds=60)
def test_oversubscribed(step):
    step.stress(step.machine.oversubscribed, "--collectives", 8, "--iterations", 50, "--sync")


@pytest.mark.gpu("stress, {ranks} threads, {streams} streams", seconds=60)
def test_many_streams(step):
    many = step.machine.streams
    step.stress(step.machine.ranks, "--streams", many, "--collectives", 2 * many, "--iterations", 20)


@pytest.mark.gpu("stress, {ranks} threads, streams and interfering calls", seconds=60, gpus=2)
def test_streams_and_interfering_calls(step):
    """In one order. A pending cudaFree waits for the streams' kernels and keeps new ones from starting: with different orders on
    different GPUs that closes a circle which no library can open. A single GPU closes it too, because there the cudaFree waits for
    the kernels of other ranks."""
    step.stress(step.machine.ranks, "--streams", 2, "--collectives", 8, "--iterations", 100, "--interfere", "--order", "same")


@pytest.mark.gpu("stress without preemption is a deadlock, {pair} threads", seconds=40)
def test_no_preemption_is_a_deadlock(step):
    step.run(RONDO, "stress", "--device", "cuda", "--ranks", step.machine.pair, "--collectives", 8, "--iterations", 200, "--sync",
             "--no-preempt", "--timeout", 3, expect=3)


@pytest.mark.gpu("NCCL hangs on these orders", seconds=90, gpus=2)
def test_nccl_hangs(step):
    peer = step.stress(step.machine.gpus, "--collectives", 8, "--iterations", 50, "--order", "random", "--sync", "--peer", "nccl",
                       "--timeout", 8)["peer"]
    if not peer["ran"]:
        pytest.skip(f"NCCL was not run: {peer['message']}")
    assert peer["hung"], "NCCL did not hang"
