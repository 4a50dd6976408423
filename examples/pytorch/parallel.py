#!/usr/bin/env python3
"""Data, tensor and pipeline parallel training in one job, in which every rank starts its collectives in an order of its own.

    make nccl && python3 examples/pytorch/parallel.py --device cuda --steps 200 --backends rondo,dropin,gloo \
        --json docs/results/data/other/torch-parallel.json

A shape is data x tensor x pipeline. The model is a stack of residual blocks of two linear layers: the tensor group splits each layer and
sums the blocks' outputs and their gradients for each microbatch, the pipeline's stages pass activations and gradients on by messages,
and the data group sums the gradients of each parameter. Computations are in one order on all ranks, so sums have the same bits. For each
shape the ranks are started three times: `one` (all start what they start in one order), `mixed` (each shuffles what it could start, with a
key for each sum), and `synchronized` (mixed, with a synchronization of the device at random between starts). The losses must be equal, bit
for bit. A backend without keys (gloo; dropin, which is PyTorch's nccl on Rondo's drop-in) matches sums by their order, and must fail or hang in
mixed orders, or come to other losses: its start is ended after three times what one order took.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from common import as_ranks, backend_of, environment_of, save

WAYS = ("one", "mixed", "synchronized")
WORDS, LENGTH = 512, 32


class Job:
    """The rank's place in the three groups, and how it starts what it starts."""

    def __init__(self, options):
        self.data, self.tensor, self.pipeline = (int(word) for word in options.shapes.split("x"))
        self.way, self.backend, self.device = options.way, options.backend, torch.device(options.device)
        self.rank = dist.get_rank()
        self.stage = self.rank % self.pipeline
        self.part = self.rank // self.pipeline % self.tensor
        self.copy = self.rank // self.pipeline // self.tensor
        place = lambda copy, part, stage: (copy * self.tensor + part) * self.pipeline + stage  # noqa: E731
        self.groups = {}
        # Every rank makes all groups, in one order, as new_group() asks for.
        for name, own, others in (
                ("data", (self.part, self.stage), [((t, p), [place(d, t, p) for d in range(self.data)])
                                                   for t in range(self.tensor) for p in range(self.pipeline)]),
                ("tensor", (self.copy, self.stage), [((d, p), [place(d, t, p) for t in range(self.tensor)])
                                                     for d in range(self.data) for p in range(self.pipeline)])):
            for which, ranks in others:
                group = dist.new_group(ranks)
                if which == own:
                    self.groups[name] = group
        self.next = place(self.copy, self.part, self.stage + 1) if self.stage + 1 < self.pipeline else None
        self.previous = self.rank - 1 if self.stage > 0 else None
        self.shuffle = random.Random(1000 + self.rank)
        self.keys = set()

    def register(self, name, keys):
        if self.backend == "rondo" and dist.get_world_size(self.groups[name]) > 1:
            import rondo_torch
            rondo_torch.register_keys(keys, self.groups[name])

    def key(self, name):
        if self.backend != "rondo":
            return contextlib.nullcontext()
        import rondo_torch
        return rondo_torch.key(name)

    def sums(self, name, tensors):
        """Starts the sums of tensors (by key) over a group, in the rank's order. Returns their works."""
        if dist.get_world_size(self.groups[name]) == 1:
            return []
        keys = list(tensors)
        if self.way != "one":
            self.shuffle.shuffle(keys)
        works = []
        for key in keys:
            with self.key(key):
                works.append(dist.all_reduce(tensors[key], group=self.groups[name], async_op=True))
            self.pause()
        return works

    def pause(self):
        if self.way == "synchronized" and self.device.type == "cuda" and self.shuffle.random() < 0.3:
            torch.cuda.synchronize()

    def exchange(self, tensors, peer, call):
        """Messages of all microbatches to or from a stage, by their tags, in the rank's order."""
        numbers = list(range(len(tensors)))
        if self.way != "one":
            self.shuffle.shuffle(numbers)
        works = [call(tensors[number], peer, tag=number) for number in numbers]
        self.pause()
        return works


def wait(works):
    for work in works:
        work.wait()


class Block(torch.nn.Module):
    """The part of a block that a rank of the tensor group has: some of the hidden units."""

    def __init__(self, width, hidden, part, parts):
        super().__init__()
        first, second = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)
        share = slice(part * hidden // parts, (part + 1) * hidden // parts)
        self.first, self.bias = torch.nn.Parameter(first.weight[share]), torch.nn.Parameter(first.bias[share])
        self.second = torch.nn.Parameter(second.weight[:, share])

    def forward(self, x):
        return torch.nn.functional.gelu(x @ self.first.t() + self.bias) @ self.second.t()


def text_of(word):
    """Texts that can be learned: each word follows from the one before."""
    words = [word]
    while len(words) <= LENGTH:
        words.append((5 * words[-1] + 7) % WORDS)
    return torch.cat(words, dim=1)


def microbatch_key(number):
    return f"microbatch {number}"


class Stage:
    """The blocks of a stage, and a step of training of all of its microbatches."""

    def __init__(self, job, options):
        self.job, self.width, self.count = job, options.width, options.microbatches
        torch.manual_seed(7)
        blocks = [Block(options.width, 4 * options.width, job.part, job.tensor) for _ in range(options.layers)]
        first = job.stage * options.layers // job.pipeline
        last = (job.stage + 1) * options.layers // job.pipeline
        words, head = torch.nn.Embedding(WORDS, options.width), torch.nn.Linear(options.width, WORDS, bias=False)
        self.blocks = torch.nn.ModuleList(blocks[first:last]).to(job.device)
        self.words = words.to(job.device) if job.stage == 0 else None
        self.head = head.to(job.device) if job.stage + 1 == job.pipeline else None
        modules = [module for module in (self.words, self.blocks, self.head) if module is not None]
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        self.optimizer = torch.optim.SGD(self.parameters, lr=0.1)
        job.register("data", [f"parameter {number}" for number in range(len(self.parameters))] + ["loss"])
        job.register("tensor", [microbatch_key(number) for number in range(self.count)])
        self.shape = (options.batch, LENGTH, options.width)

    def empty(self):
        return [torch.empty(self.shape, device=self.job.device) for _ in range(self.count)]

    def start_data(self, parameters):
        """The sums of gradients that are ready."""
        known = {id(parameter): number for number, parameter in enumerate(self.parameters)}
        return self.job.sums("data", {f"parameter {known[id(parameter)]}": parameter.grad for parameter in parameters})

    def step(self, texts):
        job, count = self.job, self.count
        self.optimizer.zero_grad(set_to_none=False)
        if job.previous is None:
            entered = [self.words(text[:, :-1]) for text in texts]
            x = [value.detach() for value in entered]
        else:
            x = self.empty()
            wait(job.exchange(x, job.previous, dist.irecv))
        passed = []
        for block in self.blocks:
            inputs = [value.detach().requires_grad_() for value in x]
            partial = [block(value) for value in inputs]
            total = {microbatch_key(number): value.detach().clone() for number, value in enumerate(partial)}
            wait(job.sums("tensor", total))
            x = [value + total[microbatch_key(number)] for number, value in enumerate(x)]
            passed.append((inputs, partial))
        works, loss = [], None
        if job.next is None:
            gradients, losses = [], []
            for value, text in zip(x, texts):
                value = value.detach().requires_grad_()
                said = self.head(value)
                one = torch.nn.functional.cross_entropy(said.flatten(0, 1), text[:, 1:].flatten()) / count
                one.backward()
                gradients.append(value.grad)
                losses.append(one.detach())
            works += self.start_data(self.head.parameters())
            loss = torch.stack(losses).sum()
        else:
            sends = job.exchange(x, job.next, dist.isend)
            gradients = self.empty()
            wait(job.exchange(gradients, job.next, dist.irecv))
            wait(sends)
        for block, (inputs, partial) in zip(reversed(self.blocks), reversed(passed)):
            for value, gradient in zip(partial, gradients):
                value.backward(gradient)
            works += self.start_data(block.parameters())
            total = {microbatch_key(number): value.grad for number, value in enumerate(inputs)}
            wait(job.sums("tensor", total))
            gradients = [gradient + total[microbatch_key(number)] for number, gradient in enumerate(gradients)]
        if job.previous is None:
            for value, gradient in zip(entered, gradients):
                value.backward(gradient)
            works += self.start_data(self.words.parameters())
        else:
            wait(job.exchange(gradients, job.previous, dist.isend))
        if loss is not None:
            works += job.sums("data", {"loss": loss})
        wait(works)
        for parameter in self.parameters:
            parameter.grad /= job.data
        self.optimizer.step()
        return None if loss is None else loss.item() / job.data


def rank_main(options):
    if options.backend == "rondo":
        import rondo_torch  # noqa: F401
    torch.set_num_threads(1)
    if options.device == "cuda":  # ranks may share a GPU
        torch.cuda.set_device(int(os.environ["RANK"]) % torch.cuda.device_count())
        options.device = f"cuda:{torch.cuda.current_device()}"
        torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group(backend_of(options.backend), init_method=f"file://{options.store}",
                            rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]), timeout=datetime.timedelta(seconds=options.limit))
    job = Job(options)
    stage = Stage(job, options)
    source = torch.Generator().manual_seed(100 + job.copy)  # the tensor group's ranks have the same data
    losses, times = [], []
    for _ in range(options.steps):
        texts = [text_of(torch.randint(WORDS, (options.batch, 1), generator=source)).to(job.device)
                 for _ in range(options.microbatches)]
        start = time.perf_counter()
        loss = stage.step(texts)
        if job.device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if loss is not None:
            losses.append(loss)
    if job.rank == dist.get_world_size() - 1:  # of the last stage
        result = {"losses": losses, "us": 1e6 * statistics.median(times[1:] or times), "steps": options.steps}
        if options.backend == "rondo":
            import rondo_torch
            result["statistics"] = {name: rondo_torch.statistics(group) for name, group in job.groups.items()}
        pathlib.Path(options.result).write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


def once(options, backend, shape, way, limit):
    """What the last rank tells of one start of the ranks; None if they did not end within limit seconds, or failed."""
    ranks = 1
    for word in shape.split("x"):
        ranks *= int(word)
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "result")
        command = [sys.executable, __file__, "--backend", backend, "--shapes", shape, "--way", way, "--ranks", str(ranks), "--result",
                   str(result), "--store", str(pathlib.Path(folder, "store"))]
        for name in ("device", "steps", "width", "layers", "batch", "microbatches", "limit"):
            command += [f"--{name}", str(getattr(options, name))]
        process = subprocess.Popen(command, env=environment_of(backend, options.library, threads=1), start_new_session=True)
        try:
            ended = process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            ended = False
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()
        return json.loads(result.read_text()) if ended else None


def compare(options):
    """The cells, of which the file has those that there are so far: a start that hangs costs minutes."""
    cells = []
    for backend in options.backends.split(","):
        for shape in options.shapes.split(","):
            wanted, limit = None, options.limit
            for way in WAYS:
                start = time.monotonic()
                got = once(options, backend, shape, way, limit)
                if backend != "rondo" and way == WAYS[0]:
                    limit = min(limit, 3 * (time.monotonic() - start))
                wanted = got if way == WAYS[0] else wanted
                equal = got is not None and wanted is not None and got["losses"] == wanted["losses"]
                cell = {"backend": backend, "shape": shape, "way": way, "ended": got is not None, "equal": equal, **(got or {})}
                if got is not None and wanted is not None:
                    cell["slower"] = round(got["us"] / wanted["us"], 4)
                cells.append(cell)
                if options.json:
                    store(options, cells)
                told = f"{got['us'] / 1000:8.1f} ms a step, loss {got['losses'][0]:.4f} to {got['losses'][-1]:.4f}" if got else "did not end"
                print(f"{backend:6} {shape:6} {way:13} {told}{'' if equal else ', NOT that of one order'}", file=sys.stderr, flush=True)
    return cells


def store(options, cells):
    save(options.json, cells, f"data, tensor and pipeline parallel training on {options.device}", "us a step, median",
         "one start a cell", f"PyTorch {torch.__version__}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="2x1x2,2x2x1", help="data x tensor x pipeline, some")
    parser.add_argument("--backends", default="rondo", help="some of rondo, dropin, gloo")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4, help="of a microbatch")
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--library", default="build/nccl/libnccl.so.2", help="the drop-in")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one start of the ranks")
    parser.add_argument("--json", help="the file; without it, standard output")
    for name in ("--backend", "--way", "--ranks", "--result", "--store"):  # of a rank
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.backend:
        as_ranks(int(options.ranks), lambda: rank_main(options))
        return
    cells = compare(options)
    store(options, cells)
    wrong = [f"{cell['shape']} {cell['way']}" for cell in cells if cell["backend"] == "rondo" and not cell["equal"]]
    if wrong:
        raise SystemExit(f"rondo has not the losses of one order: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
