"""One rank of a small transformer's training, under torch.distributed.run: DistributedDataParallel, or FSDP2 (fully_shard) with a
second communicator for what is logged. Rank 0 prints a line "RESULT {...}" with the losses and the time of a step.

    python -m torch.distributed.run --standalone --nproc-per-node=2 examples/pytorch/train.py --mode ddp
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attention_in(self.before_attention(x)).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(self.before_feed_forward(x))


class Transformer(nn.Module):
    def __init__(self, words, width, layers, heads, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("ddp", "fsdp2"), default="ddp")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=15, help="steps that are not timed")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    return parser.parse_args()


def main():
    options = parse()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    rank, size = dist.get_rank(), dist.get_world_size()
    log_group = dist.new_group()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(False)
    words = 8192
    model = Transformer(words, options.width, options.layers, 16, options.length).to(device)
    if options.mode == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=[local])
    else:
        from torch.distributed.fsdp import fully_shard
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    random = torch.Generator(device=device)
    random.manual_seed(100 + rank)
    losses, began = [], 0.0
    for step in range(options.steps):
        if step == options.warm_up:
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
        # Something that can be learned: each word follows from the one before.
        start = torch.randint(words, (options.batch, 1), generator=random, device=device)
        tokens = (start + 37 * torch.arange(options.length + 1, device=device)) % words
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        shown = loss.detach().clone()
        dist.all_reduce(shown, op=dist.ReduceOp.AVG, group=log_group, async_op=True)
        losses.append(shown)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    if rank == 0:
        print("RESULT " + json.dumps({"mode": options.mode, "ranks": size, "losses": [value.item() for value in losses],
                                      "step_ms": 1e3 * seconds / (options.steps - options.warm_up),
                                      "parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
