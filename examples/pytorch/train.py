"""A small transformer's training: DistributedDataParallel, or FSDP2 (fully_shard), with a second communicator for what is logged.
Rank 0 prints a line "RESULT {...}" with the losses and the time of a step for each of the modes.

    python3 examples/pytorch/train.py --gpus 2 --mode ddp,fsdp2      (or under torchrun)
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from common import as_ranks

WORDS = 8192


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
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--mode", default="ddp", help="ddp, fsdp2, or both with a comma between")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=20, help="steps that are not timed")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    return parser.parse_args()


def make_model(options, mode, device):
    torch.manual_seed(1)
    model = Transformer(WORDS, options.width, options.layers, 16, options.length).to(device)
    if mode == "ddp":
        return nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    from torch.distributed.fsdp import fully_shard
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def train(options, mode, device, log_group):
    """Returns the losses, each the mean over the ranks, and the time of a step in milliseconds."""
    model = make_model(options, mode, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    random = torch.Generator(device=device)
    random.manual_seed(100 + dist.get_rank())
    losses, began = [], 0.0
    for step in range(options.steps):
        if step == options.warm_up:
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
        # Something that can be learned: each word follows from the one before.
        start = torch.randint(WORDS, (options.batch, 1), generator=random, device=device)
        tokens = (start + 37 * torch.arange(options.length + 1, device=device)) % WORDS
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        shown = loss.detach().clone()
        losses.append((shown, dist.all_reduce(shown, op=dist.ReduceOp.AVG, group=log_group, async_op=True)))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    for _, work in losses:
        work.wait()
    return [shown.item() for shown, _ in losses], 1e3 * seconds / (options.steps - options.warm_up)


def main(options):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    log_group = dist.new_group()
    for mode in options.mode.split(","):
        losses, step_ms = train(options, mode, device, log_group)
        torch.cuda.empty_cache()
        if dist.get_rank() == 0:
            print("RESULT " + json.dumps({"mode": mode, "ranks": dist.get_world_size(), "losses": losses, "step_ms": step_ms}),
                  flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    given = parse()
    as_ranks(given.gpus, lambda: main(given))
