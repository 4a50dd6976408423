#!/usr/bin/env python3
"""Training on GPU tensors with the backends rondo, gloo, and nccl by Rondo's drop-in, in turn, on GPUs that ranks may share.

    make nccl && python3 examples/pytorch/gpu.py --ranks 2,4 --library build/nccl/libnccl.so.2 --json docs/results/data/other/torch-gpu.json

Processes on one GPU take turns, so there the times are ratios in that setting and no throughput; NCCL itself refuses a shared GPU. Models
have random weights and data, with DistributedDataParallel. Each round starts the ranks anew with every backend, in turn; a time is that of
the slowest rank, in the median over the steps. In the first steps the losses of all backends must be the same but for the order of sums.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from common import as_ranks, backend_of, environment_of, save
from models import MODELS

BACKENDS = ("rondo", "dropin", "gloo")
EARLY_STEPS, TOLERANCE = 3, 1e-2  # whose losses must agree, relative


def largest(value, device):
    tensor = torch.tensor([float(value)], device=device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.item()


def rank_main(options):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if options.backend == "rondo":
        import rondo_torch
    torch.cuda.set_device(rank % torch.cuda.device_count())
    device = torch.device("cuda", torch.cuda.current_device())
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    dist.init_process_group(backend_of(options.backend), init_method=f"file://{options.store}", rank=rank,
                            world_size=size, timeout=datetime.timedelta(seconds=options.limit))
    cells = []
    for name in options.models.split(","):
        torch.manual_seed(0)
        model, batch, loss_of = MODELS[name]()
        model = torch.nn.parallel.DistributedDataParallel(model.to(device), device_ids=[device.index])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        torch.manual_seed(1 + rank)
        times, losses = [], []
        for _ in range(options.steps):
            x, wanted = batch(device)
            torch.cuda.synchronize()
            start = time.perf_counter()
            loss = loss_of(model(x), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.synchronize()
            times.append(largest(time.perf_counter() - start, device))
            mean = loss.detach().reshape(1) / size
            dist.all_reduce(mean)
            losses.append(mean.item())
        cells.append({"model": name, "us": 1e6 * statistics.median(times[2:] or times), "losses": losses})
        del model, optimizer
    if rank == 0:
        of = rondo_torch.statistics() if options.backend == "rondo" else {}
        pathlib.Path(options.result).write_text(json.dumps({"cells": cells, "statistics": of}))
    dist.barrier()
    dist.destroy_process_group()


def once(options, backend, ranks):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "result")
        command = [sys.executable, __file__, "--backend", backend, "--ranks", str(ranks), "--result", str(result), "--store",
                   str(pathlib.Path(folder, "store")), "--models", options.models, "--steps", str(options.steps), "--limit",
                   str(options.limit)]
        subprocess.run(command, check=True, timeout=options.limit, env=environment_of(backend, options.library, threads=2))
        return json.loads(result.read_text())


def compare(options):
    cells = []
    backends = options.backends.split(",")
    for ranks in (int(word) for word in options.ranks.split(",")):
        rounds = {backend: [] for backend in backends}
        for number in range(options.rounds):
            for backend in backends if number % 2 == 0 else backends[::-1]:
                rounds[backend].append(once(options, backend, ranks))
        for number, name in enumerate(options.models.split(",")):
            of = {backend: [one["cells"][number] for one in rounds[backend]] for backend in backends}
            us = {backend: statistics.median(cell["us"] for cell in of[backend]) for backend in backends}
            cell = {"ranks": ranks, "model": name, **{f"{backend}_us": round(us[backend], 1) for backend in backends},
                    **{f"{backend}_rounds": [cell["us"] for cell in of[backend]] for backend in backends},
                    "losses": of[backends[0]][0]["losses"], "statistics": rounds[backends[0]][0]["statistics"]}
            for other in backends[1:]:
                cell[f"{other}_ratio"] = round(us[other] / us[backends[0]], 4)
                pairs = zip(of[backends[0]][0]["losses"][:EARLY_STEPS], of[other][0]["losses"])
                cell[f"{other}_difference"] = max(abs(a - b) / max(abs(a), 0.1) for a, b in pairs)
                if not cell[f"{other}_difference"] <= TOLERANCE:
                    raise SystemExit(f"{name} on {ranks} ranks: losses {of[backends[0]][0]['losses']} with {backends[0]}, and "
                                     f"{of[other][0]['losses']} with {other}")
            cells.append(cell)
            print(f"{ranks} ranks  {name:12}" + "".join(f"  {backend} {us[backend] / 1000:9.1f} ms" for backend in backends),
                  file=sys.stderr, flush=True)
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", default=",".join(BACKENDS), help="ratios are to the first")
    parser.add_argument("--models", default="resnet50,vit-b,gpt2-small")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--library", default="build/nccl/libnccl.so.2", help="the drop-in")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one start of the ranks")
    parser.add_argument("--json", help="the file; without it, standard output")
    for name in ("--backend", "--result", "--store"):  # of a rank
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.models.split(",")) - set(MODELS) | set(options.backends.split(",")) - set(BACKENDS)
    if unknown:
        parser.error(f"no {', '.join(sorted(unknown))}: there are the models {', '.join(MODELS)} and the backends {', '.join(BACKENDS)}")
    if options.backend:
        as_ranks(int(options.ranks), lambda: rank_main(options))
        return
    save(options.json, compare(options), "training on GPU tensors with DistributedDataParallel", "us a step, median",
         f"{options.rounds}, all in this file; tables show medians",
         f"gloo of PyTorch {torch.__version__}, and its nccl backend on Rondo's drop-in")


if __name__ == "__main__":
    main()
