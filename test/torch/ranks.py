"""A rank of a test of rondo_torch: ranks.py CASE RANK SIZE STORE-FILE. Prints what went wrong; exit code 0 if nothing did."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

import rondo_torch  # noqa: F401

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


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
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))


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


def dead(rank, size):
    if rank == 2:
        os._exit(0)
    start = time.monotonic()
    try:
        while True:
            dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        assert "rank 2" in str(error), error
    assert time.monotonic() - start < 60


def late(rank, size):
    """A rank that does not come: the others' operation ends at its timeout."""
    if rank == 2:
        time.sleep(40)
        return
    start = time.monotonic()
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        assert "2" in str(error) and time.monotonic() - start < 39, error
    else:
        raise AssertionError("no error")


def main():
    case, rank, size, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    dist.init_process_group("rondo", init_method=f"file://{path}", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=15 if case == "late" else 60))
    globals()[case](rank, size)
    if case not in ("dead", "late"):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
