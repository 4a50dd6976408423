#!/usr/bin/env python3
"""Collectives and training on the processor with the backends rondo and gloo, in turn, so that both meet the same machine.

    python3 examples/pytorch/cpu.py --ranks 2,4 --rounds 3 --json docs/results/data/other/torch-cpu.json

Each round starts the ranks anew with one backend and then with the other; every second round begins with the other. A time is that of
the slowest rank, and the file has those of all rounds. Training is on random data: a ResNet-18 and a small GPT with
DistributedDataParallel, and the GPT with FSDP2. The losses of both backends must be the same but for the order of sums, in the first
steps: batch normalization over a few images makes of it another training within ten. So with DistributedDataParallel the gradients
after the last step must be those that a sum in float64 gives.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from common import as_ranks, save
from models import MODELS

COLLECTIVES = ("all_reduce", "all_gather", "all_to_all")
TRAINING = ("ddp-resnet18", "ddp-gpt", "fsdp2-gpt")
SIZES = [4 << (10 + 2 * step) for step in range(8)]  # 4 KiB to 64 MiB: the larger of the two buffers
BACKENDS = ("gloo", "rondo")
EARLY_STEPS, TOLERANCE = 4, 1e-3  # whose losses must agree, relative
GRADIENT_TOLERANCE = 1e-6  # of a sum of gradients, relative to the sum of their amounts


def call_of(operation, size, ranks):
    """A function without arguments that makes the call once."""
    count = size // 4
    large = torch.ones(count)
    if operation == "all_reduce":
        return lambda: dist.all_reduce(large, op=dist.ReduceOp.MAX)  # the values stay what they are
    if operation == "all_gather":
        small = torch.ones(count // ranks)
        return lambda: dist.all_gather_into_tensor(large, small)
    other = torch.ones(count)
    return lambda: dist.all_to_all_single(large, other)


def agreed(value, op=dist.ReduceOp.MAX):
    """The largest of the ranks' values."""
    tensor = torch.tensor([float(value)], dtype=torch.float64)
    dist.all_reduce(tensor, op=op)
    return tensor.item()


def time_collective(operation, size, ranks, seconds):
    """Microseconds for a call of the slowest rank: the smallest of five parts of the time."""
    call = call_of(operation, size, ranks)
    call()
    dist.barrier()
    start = time.perf_counter()
    call()
    call()
    each = agreed(time.perf_counter() - start) / 2
    calls = max(2, min(2000, int(seconds / 5 / each)))
    parts = []
    for _ in range(5):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        parts.append(agreed((time.perf_counter() - start) / calls))
    return 1e6 * min(parts)


def time_training(which, steps):
    """A cell: microseconds for a step of the slowest rank, median over the steps, the losses of all ranks' mean, and the gradients'
    error."""
    torch.manual_seed(0)
    wrapper, name = which.split("-")
    model, batch, loss_of = MODELS[name]()
    if wrapper == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    times, losses = [], []
    for _ in range(steps):
        x, wanted = batch()
        dist.barrier()
        start = time.perf_counter()
        loss = loss_of(model(x), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(agreed(time.perf_counter() - start))
        losses.append(agreed(loss.item(), dist.ReduceOp.SUM) / dist.get_world_size())
    cell = {"operation": which, "bytes": 0, "us": 1e6 * statistics.median(times[1:]), "losses": losses}
    if wrapper == "ddp":
        cell["gradient_error"] = gradient_error(model, *batch(), loss_of)
    return cell


def gradient_error(model, x, wanted, loss_of):
    """The largest error of the averaged gradients, relative to the average of their amounts: against sums in float64 of what the ranks
    have by themselves."""
    with model.no_sync():
        loss_of(model(x), wanted).backward()
    own = [parameter.grad.double() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = None
    loss_of(model(x), wanted).backward()
    worst = 0.0
    for parameter, exact in zip(model.parameters(), own):
        amount = exact.abs()
        dist.all_reduce(exact)
        dist.all_reduce(amount)
        error = (dist.get_world_size() * parameter.grad.double() - exact).abs() / amount.clamp(min=1e-30)
        worst = max(worst, error.max().item())
    return agreed(worst)


def rank_main(options):
    if options.backend == "rondo":
        import rondo_torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group(options.backend, init_method=f"file://{options.store}", rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))
    ranks, cells = dist.get_world_size(), []
    for operation in options.operations.split(","):
        if operation in TRAINING:
            cells.append(time_training(operation, options.steps))
            continue
        for size in SIZES:
            if options.smallest <= size <= options.largest:
                cells.append({"operation": operation, "bytes": size, "us": time_collective(operation, size, ranks, options.seconds)})
    if dist.get_rank() == 0:
        pathlib.Path(options.result).write_text(json.dumps(cells))
    dist.barrier()
    dist.destroy_process_group()


def once(options, backend, ranks):
    """{(operation, bytes): cell} of one start of the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "result")
        command = [sys.executable, __file__, "--backend", backend, "--ranks", str(ranks), "--result", str(result), "--store",
                   str(pathlib.Path(folder, "store")), "--operations", options.operations, "--smallest", str(options.smallest),
                   "--largest", str(options.largest), "--seconds", str(options.seconds), "--steps", str(options.steps)]
        environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        subprocess.run(command, check=True, timeout=options.limit, env=dict(environment, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""))
        return {(cell["operation"], cell["bytes"]): cell for cell in json.loads(result.read_text())}


def compare(options):
    cells = []
    for ranks in (int(word) for word in options.ranks.split(",")):
        rounds = {backend: [] for backend in BACKENDS}
        for number in range(options.rounds):
            for backend in BACKENDS if number % 2 == 0 else BACKENDS[::-1]:
                rounds[backend].append(once(options, backend, ranks))
        for operation, size in rounds["gloo"][0]:
            times = {backend: [one[operation, size]["us"] for one in rounds[backend]] for backend in BACKENDS}
            gloo, rondo = (statistics.median(times[backend]) for backend in BACKENDS)
            cell = {"ranks": ranks, "operation": operation, "bytes": size, "gloo_us": round(gloo, 2), "rondo_us": round(rondo, 2),
                    "ratio": round(gloo / rondo, 4), "gloo_rounds": times["gloo"], "rondo_rounds": times["rondo"]}
            losses = [rounds[backend][0][operation, size].get("losses") for backend in BACKENDS]
            if losses[0] is not None:
                cell["early_difference"] = max(abs(a - b) / max(abs(a), 0.1) for a, b in zip(*(one[:EARLY_STEPS] for one in losses)))
                cell["first_loss"], cell["last_loss"] = losses[1][0], losses[1][-1]
                if cell["early_difference"] > TOLERANCE:
                    raise SystemExit(f"{operation} on {ranks} ranks: losses {losses[0]} with gloo, and {losses[1]} with rondo")
            if "gradient_error" in rounds["rondo"][0][operation, size]:
                for backend in BACKENDS:
                    error = max(one[operation, size]["gradient_error"] for one in rounds[backend])
                    cell[f"{backend}_gradient_error"] = error
                    if not error <= GRADIENT_TOLERANCE:
                        raise SystemExit(f"{operation} on {ranks} ranks: with {backend} a gradient differs by {error:g} of its terms")
            cells.append(cell)
            print(f"{ranks} ranks  {operation:12} {size:9} B  gloo {gloo:10.1f} us  rondo {rondo:10.1f} us  {gloo / rondo:6.2f}",
                  file=sys.stderr, flush=True)
    return cells


def summary(cells):
    """Of the collectives alone: geometric mean and smallest of the ratios."""
    ratios = [cell["ratio"] for cell in cells if cell["bytes"] > 0]
    if not ratios:
        return {}
    return {"geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 4), "smallest": min(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--operations", default=",".join(COLLECTIVES + TRAINING))
    parser.add_argument("--smallest", type=int, default=SIZES[0], help="bytes")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each size of a collective")
    parser.add_argument("--steps", type=int, default=12, help="of training")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one start of the ranks")
    parser.add_argument("--json", help="the file; without it, standard output")
    for name in ("--backend", "--result", "--store"):  # of a rank
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.operations.split(",")) - set(COLLECTIVES + TRAINING)
    if unknown:
        parser.error(f"no operation {', '.join(sorted(unknown))}: there are {', '.join(COLLECTIVES + TRAINING)}")
    if options.backend:
        as_ranks(int(options.ranks), lambda: rank_main(options))
        return
    cells = compare(options)
    save(options.json, cells, "torch.distributed on the processor: the backends rondo and gloo", "us; ratio = gloo's time / Rondo's",
         f"{options.rounds}, all in this file; tables show medians", f"gloo of PyTorch {torch.__version__}", **summary(cells))


if __name__ == "__main__":
    main()
