"""Three process groups, whose collectives each rank starts in an order of its own."""
import argparse
import os

import torch
import torch.distributed as dist

from common import as_ranks


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--elements", type=int, default=1 << 22)
    return parser.parse_args()


def main(options):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group() for _ in range(options.groups)]
    tensors = [torch.empty(options.elements >> k, device=device) for k in range(options.groups)]
    for step in range(options.rounds):
        for tensor in tensors:
            tensor.fill_(rank + 1)
        order = [(k + rank + step) % options.groups for k in range(options.groups)]
        pending = [dist.all_reduce(tensors[k], group=groups[k], async_op=True) for k in order]
        for work in pending:
            work.wait()
        if step % 10 == 9:
            for tensor in tensors:
                assert bool((tensor == size * (size + 1) / 2).all()), f"rank {rank}, round {step}: wrong"
    torch.cuda.synchronize()
    dist.barrier()
    if rank == 0:
        print(f"FINISHED {options.rounds} rounds of {options.groups} groups", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    given = parse()
    as_ranks(given.gpus, lambda: main(given))
