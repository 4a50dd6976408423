"""A rank of a test of rondo_torch: ranks.py CASE RANK SIZE STORE-FILE [VICTIM]. Prints what went wrong; exit code 0 if nothing did.

VICTIM: the rank that dies or stops in the cases for which test_torch.py names one. RONDO_X_TORCH_DEVICE: where tensors are.
"""
import datetime
import faulthandler
import gc
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

import rondo_torch  # noqa: F401

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def on_gpu():
    return torch.get_default_device().type == "cuda"


def expect(got, wanted, what):
    assert torch.equal(got, wanted), f"{what}: {got} and not {wanted}"


def collectives(rank, size):
    ranks = range(size)
    for kind in TYPES + [torch.complex64, torch.complex128]:
        for wait in (False, True):
            def call(function, *arguments, **named):
                work = function(*arguments, async_op=wait, **named)
                if wait:
                    work.wait()
                    assert work.is_completed()

            x = torch.full((5,), rank + 1, dtype=kind)
            call(dist.all_reduce, x)
            expect(x, torch.full((5,), sum(r + 1 for r in ranks), dtype=kind), "all_reduce")
            x = torch.full((5,), rank, dtype=kind)
            call(dist.broadcast, x, 1)
            expect(x, torch.full((5,), 1, dtype=kind), "broadcast")
            out = [torch.zeros(2, dtype=kind) for _ in ranks]
            call(dist.all_gather, out, torch.full((2,), rank, dtype=kind))
            expect(torch.stack(out), torch.tensor([[r, r] for r in ranks], dtype=kind), "all_gather")
            flat = torch.zeros(2 * size, dtype=kind)
            call(dist.all_gather_into_tensor, flat, torch.full((2,), rank, dtype=kind))
            expect(flat, torch.stack(out).flatten(), "all_gather_into_tensor")
            call(dist.all_to_all_single, flat, torch.tensor([10 * rank + r for r in ranks for _ in range(2)], dtype=kind))
            expect(flat, torch.tensor([10 * r + rank for r in ranks for _ in range(2)], dtype=kind), "all_to_all_single")
            out = [torch.zeros(r + 1, dtype=kind) for r in ranks]
            call(dist.all_to_all, out, [torch.full((rank + 1,), rank, dtype=kind) for _ in ranks])
            expect(torch.cat(out), torch.cat([torch.full((r + 1,), r, dtype=kind) for r in ranks]), "all_to_all")
            out = [torch.zeros(2, dtype=kind) for _ in ranks] if rank == 0 else None
            call(dist.gather, torch.full((2,), rank, dtype=kind), out, 0)
            if rank == 0:
                expect(torch.stack(out), torch.tensor([[r, r] for r in ranks], dtype=kind), "gather")
            x = torch.zeros(2, dtype=kind)
            call(dist.scatter, x, [torch.full((2,), r, dtype=kind) for r in ranks] if rank == 1 else None, 1)
            expect(x, torch.full((2,), rank, dtype=kind), "scatter")
            x = torch.zeros(2, dtype=kind)
            call(dist.reduce_scatter_tensor, x, torch.arange(2 * size).to(kind))
            expect(x, (torch.arange(2 * size) * size).to(kind)[2 * rank:2 * rank + 2], "reduce_scatter_tensor")
            call(dist.reduce_scatter, x, [torch.full((2,), r + 1, dtype=kind) for r in ranks])
            expect(x, torch.full((2,), (rank + 1) * size, dtype=kind), "reduce_scatter")
            x = torch.full((3,), rank + 1, dtype=kind)
            call(dist.reduce, x, 1)
            if rank == 1:
                expect(x, torch.full((3,), sum(r + 1 for r in ranks), dtype=kind), "reduce")
    x = torch.tensor([rank == 0, True, False])
    dist.all_reduce(x)
    expect(x, torch.tensor([True, True, False]), "all_reduce of bool")
    x = torch.full((4,), float(rank))
    dist.all_reduce(x, dist.ReduceOp.AVG)
    expect(x, torch.full((4,), sum(ranks) / size), "average")
    x = torch.full((4,), 2.0)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    expect(x, torch.full((4,), float(size)), "PREMUL_SUM")
    x = torch.full((2, 3), float(rank)).t()  # not contiguous
    dist.all_reduce(x, async_op=True).get_future().wait()
    expect(x, torch.full((3, 2), float(sum(ranks))), "a tensor with strides")
    out = [torch.zeros(r + 1) for r in ranks]
    dist.all_gather(out, torch.full((rank + 1,), float(rank)))
    expect(torch.cat(out), torch.cat([torch.full((r + 1,), float(r)) for r in ranks]), "all_gather of different sizes")
    dist.barrier()
    try:
        dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND)
    except RuntimeError as error:
        assert "BAND" in str(error), error
    else:
        raise AssertionError("BAND of floats")


def messages(rank, size):
    for count in (3, 100000):
        if rank == 0:
            dist.send(torch.full((count,), 5.0), 1, tag=5)
            dist.send(torch.full((count,), 6.0), 1, tag=6)
            seen = set()
            for _ in range(size - 1):
                x = torch.zeros(count)
                source = dist.recv(x, tag=7)
                expect(x, torch.full((count,), float(source)), "recv from any source")
                seen.add(source)
            assert seen == set(range(1, size)), seen
        else:
            if rank == 1:  # in the other order
                for tag in (6, 5):
                    x = torch.zeros(count)
                    dist.recv(x, 0, tag=tag)
                    expect(x, torch.full((count,), float(tag)), "tags")
            dist.send(torch.full((count,), float(rank)), 0, tag=7)
        out = torch.zeros(count)
        requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((count,), float(rank)), (rank + 1) % size),
                                           dist.P2POp(dist.irecv, out, (rank - 1) % size)])
        for request in requests:
            request.wait()
        expect(out, torch.full((count,), float((rank - 1) % size)), "batch_isend_irecv")
        # A send ends while its receiver does something else.
        if rank == 0:
            dist.isend(out, 1).wait()
        elif rank == 1:
            request = dist.irecv(out, 0)
        dist.barrier()
        if rank == 1:
            request.wait()
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    except ValueError as error:  # a version of PyTorch that lets gloo alone have it
        assert "GLOO" in str(error), error


def groups(rank, size):
    """Groups whose collectives the ranks start in different orders."""
    made = [dist.new_group(list(range(size))) for _ in range(4)]
    order = made[rank % 4:] + made[:rank % 4]
    tensors = {group: torch.full((1000,), float(rank)) for group in order}
    works = [dist.all_reduce(tensors[group], group=group, async_op=True) for group in order]
    for work in works:
        work.wait()
    for tensor in tensors.values():
        expect(tensor, torch.full((1000,), float(sum(range(size)))), "groups in different orders")
    pair = dist.new_group([0, 1])
    if rank < 2:
        x = torch.ones(3)
        dist.all_reduce(x, group=pair)
        expect(x, torch.full((3,), 2.0), "a group of two")
        dist.destroy_process_group(pair)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 1))
    model(torch.full((4, 10), float(rank))).sum().backward()
    expect(model.module.weight.grad, torch.full((1, 10), 4.0 * sum(range(size)) / size), "DDP")


def orders(rank, size):
    """200 steps of groups and keys in an order of each rank's own, with synchronizations of the device in between; each step
    begins with what the one before gave."""
    random.seed(rank)
    made = [dist.new_group(list(range(size))) for _ in range(3)]
    names = ["first", "second"]
    rondo_torch.register_keys(names)
    calls = [(group, "") for group in made] + [(None, name) for name in names]
    tensors = {call: torch.ones(1 << (8 + 2 * number)) for number, call in enumerate(calls)}
    for step in range(200):
        random.shuffle(calls)
        works = {}
        for call in calls:
            tensors[call] /= size
            with rondo_torch.key(call[1]):
                works[call] = dist.all_reduce(tensors[call], group=call[0], async_op=True)
            if on_gpu() and random.random() < 0.5:
                torch.cuda.synchronize()
        for call in sorted(calls, key=lambda call: random.random()):
            works[call].wait()
            tensors[call] += float(call[1] == names[0])
            tensors[call] -= float(call[1] == names[0])
    for call, tensor in tensors.items():
        expect(tensor, torch.ones_like(tensor), f"{call} after 200 steps")


def streams(rank, size):
    """A stream that waits for a work has the result, and its input is read when the stream of the call has come so far."""
    if not on_gpu():
        return
    slow = torch.cuda.Stream()
    for step in range(20):
        a, x = torch.randn(2048, 2048), torch.zeros(1 << 20)
        slow.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(slow):
            for _ in range(10):
                a = a @ a / 50
            x += rank + step + a[0, 0] * 0  # not before the products
            work = dist.all_reduce(x, async_op=True)
        work.wait()  # of the current stream, not of the slow one
        y = x + 1
        expect(y, torch.full_like(y, float(sum(range(size)) + size * step + 1)), "all_reduce behind a slow stream")
        parts = [torch.zeros(1000) for _ in range(size)]
        work = dist.all_gather(parts, y[:1000] + rank, async_op=True)
        with torch.cuda.stream(slow):
            work.wait()
            total = torch.stack(parts).sum()
        slow.synchronize()
        expect(total, torch.stack([y[:1000] + other for other in range(size)]).sum(), "all_gather that another stream waits for")


def coalesced(rank, size):
    total = float(sum(range(size)))
    tensors = [torch.full((n,), float(rank)) for n in (1, 5, 1000)]
    dist.all_reduce_coalesced(tensors, async_op=True).wait()
    for tensor in tensors:
        expect(tensor, torch.full_like(tensor, total), "all_reduce_coalesced")
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        expect(tensor, torch.full_like(tensor, total * size), "all_reduce in a coalescing manager")
    inputs = [torch.full((n,), float(rank)) for n in (2, 7)]
    outputs = [torch.zeros(n * size) for n in (2, 7)]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, inputs):
            dist.all_gather_into_tensor(output, tensor)
    for output, tensor in zip(outputs, inputs):
        expect(output, torch.arange(size).repeat_interleave(len(tensor)).float(), "all_gather_into_tensor in a coalescing manager")
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, inputs):
            dist.reduce_scatter_tensor(tensor, output)
    for tensor in inputs:
        expect(tensor, torch.full_like(tensor, float(rank * size)), "reduce_scatter_tensor in a coalescing manager")


def keys(rank, size):
    """Collectives of one group in an order of its own on each rank."""
    names = [f"bucket {number}" for number in range(6)]
    rondo_torch.register_keys(names)
    tensors = {name: torch.zeros(1000 * (number + 1)) for number, name in enumerate(names)}
    order = random.Random(rank)
    for step in range(20):
        order.shuffle(names)
        works = []
        for name in names:
            tensors[name].fill_(rank + step)
            with rondo_torch.key(name):
                works.append(dist.all_reduce(tensors[name], async_op=True))
        plain = torch.full((3,), float(rank))
        dist.all_reduce(plain)  # without a key: in the group's own order
        expect(plain, torch.full((3,), float(sum(range(size)))), "all_reduce beside keys")
        for work in reversed(works):
            work.wait()
        for tensor in tensors.values():
            expect(tensor, torch.full_like(tensor, float(sum(range(size)) + size * step)), "all_reduce with a key")
    for call in (lambda: rondo_torch.register_keys(names[:1]), lambda: rondo_torch.register_keys([""])):
        refused(call, "key")
    with rondo_torch.key("no such key"):
        refused(lambda: dist.all_reduce(plain), "no such key")
    group = dist.new_group(list(range(size)))
    rondo_torch.register_keys(["bucket 0"], group)
    with rondo_torch.key("bucket 0"):
        dist.all_reduce(plain, group=group)
    expect(plain, torch.full((3,), float(size * sum(range(size)))), "a key of another group")


def refused(call, word, kind=RuntimeError):
    """The error's text."""
    try:
        call()
    except kind as error:
        assert word in str(error), error
        return str(error)
    raise AssertionError(f"no error, where one with {word!r} was to come")


def split(rank, size):
    half = [[0, 1], list(range(2, size))]
    group = dist.split_group(split_ranks=half, timeout=datetime.timedelta(seconds=60))
    mine = half[0] if rank < 2 else half[1]
    assert dist.get_world_size(group) == len(mine) and dist.get_group_rank(group, rank) == mine.index(rank)
    x = torch.full((4,), float(rank))
    dist.all_reduce(x, group=group)
    expect(x, torch.full((4,), float(sum(mine))), "all_reduce of a split group")
    dist.all_reduce(x)
    dist.destroy_process_group(group)
    dist.barrier()


def recorder(rank, size):
    """PyTorch's flight recorder has the calls of the backend: which have ended, and which not."""
    dump = torch._C._distributed_c10d._dump_fr_trace_json
    for _ in range(3):
        dist.all_reduce(torch.ones(7))
    work = dist.irecv(torch.ones(5), (rank + 1) % size)
    entries = json.loads(dump(backend="rondo"))["entries"]
    reduced = [entry for entry in entries if "all_reduce" in entry["profiling_name"] or "allreduce" in entry["profiling_name"].lower()]
    assert len(reduced) == 3 and all(entry["state"] == "completed" and entry["input_sizes"] == [[7]] for entry in reduced), entries
    assert entries[-1]["state"] != "completed", entries
    dist.send(torch.ones(5), (rank - 1) % size)
    work.wait()


def detail(rank, size):
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: what differs among ranks is an error that says so."""
    x = torch.ones(4)
    dist.all_reduce(x)
    expect(x, torch.full((4,), float(size)), "all_reduce")
    dist.all_gather([torch.zeros(2) for _ in range(size)], torch.ones(2))
    dist.barrier()
    refused(lambda: dist.all_reduce(torch.ones(4 + (rank == 1))), "mismatch")
    refused(lambda: dist.all_reduce(x) if rank == 1 else dist.broadcast(x, 0), "mismatch")
    dist.all_reduce(x)
    expect(x, torch.full((4,), float(size * size)), "all_reduce after what was refused")


def abort(rank, size):
    """One rank's abort ends what the others wait for."""
    dist.all_reduce(torch.ones(1))
    if rank == 1:
        time.sleep(1)
        dist.distributed_c10d._abort_process_group()
        return
    start = time.monotonic()
    error = refused(lambda: dist.all_reduce(torch.ones(1)), "abort", dist.DistBackendError)
    assert "rank 1" in error and time.monotonic() - start < 150, error
    refused(lambda: dist.all_reduce(torch.ones(1)), "abort", dist.DistBackendError)


def shutdown(rank, size):
    """After it the group's calls are errors; what was started before is complete."""
    group = dist.new_group(list(range(size)))
    x = torch.ones(1 << 16)
    dist.all_reduce(x, group=group, async_op=True)  # nothing holds its work
    group.shutdown()
    refused(lambda: dist.all_reduce(torch.ones(1), group=group), "shut down", dist.DistBackendError)
    refused(lambda: dist.send(torch.ones(1), (rank + 1) % size, group=group), "shut down", dist.DistBackendError)
    dist.barrier()
    wanted = torch.full_like(x, float(size))
    for _ in range(6000):
        if torch.equal(x, wanted):
            break
        time.sleep(0.01)
    expect(x, wanted, "what was started before the shutdown")


def failing(victim, seconds=150):
    """Collectives until the victim is missed: an error that names it."""
    start = time.monotonic()
    text = ""
    try:
        while True:
            dist.all_reduce(torch.ones(100000))
    except dist.DistBackendError as error:
        text = str(error)
    assert f"rank {victim}" in text or f"ranks {victim}" in text or f"rank(s) {victim}" in text, text
    assert time.monotonic() - start < seconds, f"{time.monotonic() - start} s: {text}"
    refused(lambda: dist.all_reduce(torch.ones(1)), "rank", dist.DistBackendError)


def dead(rank, size, victim):
    """Killed within a collective."""
    dist.all_reduce(torch.ones(1))
    if rank == victim:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        while True:
            dist.all_reduce(torch.ones(100000))
    failing(victim)


def frozen(rank, size, victim):
    dist.all_reduce(torch.ones(1))
    if rank == victim:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGSTOP)).start()
        while True:
            dist.all_reduce(torch.ones(100000))
    failing(victim)


def silent(rank, size, victim):
    """Stopped while the others wait for its message."""
    dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGSTOP)
    error = refused(lambda: dist.recv(torch.ones(5), victim), f"rank {victim}", dist.DistBackendError)
    assert "Timed out" in error, error


def left(rank, size, victim):
    """A rank that ends without a word."""
    if rank == victim:
        os._exit(0)
    failing(victim)


def late(rank, size, victim):
    """A rank that does not come: the others' operation ends at its timeout."""
    if rank == victim:
        time.sleep(40)
        return
    start = time.monotonic()
    error = refused(lambda: dist.all_reduce(torch.ones(1)), str(victim), dist.DistBackendError)
    assert time.monotonic() - start < 39, error


def usage():
    """What may leak: memory in KiB, descriptors, threads, shared memory, children."""
    gc.collect()
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    maps = pathlib.Path("/proc/self/maps").read_text().count("rondo") + pathlib.Path("/proc/self/maps").read_text().count("memfd")
    return {"memory": int(status["VmRSS"].split()[0]), "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": int(status["Threads"]), "maps": maps, "children": len(children)}


def many(rank, size):
    """1,000 groups made, used and destroyed leave nothing."""
    def one():
        group = dist.new_group(list(range(size)))
        x = torch.full((1000,), float(rank))
        dist.all_reduce(x, group=group)
        expect(x, torch.full((1000,), float(sum(range(size)))), "all_reduce")
        dist.destroy_process_group(group)

    def settled(limit):
        """Groups end in the background."""
        for _ in range(600):
            now = usage()
            if all(now[name] <= limit[name] for name in limit):
                break
            time.sleep(0.1)
        return now

    for _ in range(50):
        one()
    dist.barrier()
    time.sleep(3)
    before = usage()
    for _ in range(1000):
        one()
    dist.barrier()
    limit = dict(before, memory=before["memory"] + 32 * 1024)
    after = settled(limit)
    print(f"rank {rank}: before {before}, after {after}", flush=True)
    assert all(after[name] <= limit[name] for name in limit), (before, after)


def main():
    case, rank, size, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    victim = [int(word) for word in sys.argv[5:6]]
    failure = bool(victim) or case == "abort"
    device = os.environ.get("RONDO_X_TORCH_DEVICE", "cpu")
    if device == "cuda":  # ranks may share a GPU
        torch.cuda.set_device(rank % torch.cuda.device_count())
        device = f"cuda:{torch.cuda.current_device()}"
    torch.set_default_device(device)
    faulthandler.enable()  # where it crashes
    if case != "many":
        faulthandler.dump_traceback_later(200)  # where it hangs
    bound = {"device_id": torch.device(device)} if case == "split" and device != "cpu" else {}  # split_group needs it
    dist.init_process_group("rondo", **bound, init_method=f"file://{path}", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=15 if case in ("late", "frozen", "silent") else 60))
    globals()[case](rank, size, *victim)
    if not failure:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
