#!/usr/bin/env python3
"""The training of train.py on NCCL and on Rondo, in turn, so that both meet the same machine: are the losses the same but for the
order of floating-point sums, and how do the speeds compare? Prints one JSON object.

    make nccl && python3 examples/pytorch/compare.py --library build/nccl/libnccl.so.2 --gpus 2 --mode ddp
"""
import argparse
import json
import statistics
import sys

from common import is_rondo, launch


def once(options, library):
    finished, output = launch("train.py", options.gpus, library, options.limit, "--mode", options.mode, "--steps", options.steps)
    lines = [line for line in output.splitlines() if "RESULT {" in line]
    if not finished or not lines:
        sys.stderr.write(output[-6000:] + "\n")
        raise SystemExit(f"training on {library or 'NCCL'} failed")
    said = json.loads(lines[-1][lines[-1].index("{"):])
    print(f"{'Rondo' if library else 'NCCL '}: {said['step_ms']:8.2f} ms a step, loss {said['losses'][0]:.4f} to "
          f"{said['losses'][-1]:.4f}", file=sys.stderr, flush=True)
    if is_rondo(output) != (library is not None):
        raise SystemExit("NCCL was to answer, and Rondo did" if library is None else
                         "Rondo was to answer, and NCCL did: is it linked into PyTorch?")
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="build/nccl/libnccl.so.2")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--mode", choices=("ddp", "fsdp2"), default="ddp")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--tolerance", type=float, default=0.01, help="of a loss, relative; or three times what two runs of NCCL differ by")
    parser.add_argument("--limit", type=float, default=180, help="seconds for a run")
    options = parser.parse_args()
    runs = {"nccl": [], "rondo": []}
    for _ in range(options.repeats):
        runs["nccl"].append(once(options, None))
        runs["rondo"].append(once(options, options.library))
    def difference(one, other):
        return max(abs(a - b) / max(abs(a), 0.1) for a, b in zip(one["losses"], other["losses"]))

    largest = max(difference(one, other) for one in runs["nccl"] for other in runs["rondo"])
    own = max(difference(runs["nccl"][0], other) for other in runs["nccl"])
    step = {name: statistics.median(run["step_ms"] for run in of) for name, of in runs.items()}
    print(json.dumps({"mode": options.mode, "gpus": options.gpus, "nccl_step_ms": step["nccl"], "rondo_step_ms": step["rondo"],
                      "ratio": step["nccl"] / step["rondo"], "largest_difference": largest, "nccl_with_itself": own,
                      "same_losses": largest <= max(options.tolerance, 3 * own), "first_loss": runs["rondo"][0]["losses"][0],
                      "last_loss": runs["rondo"][0]["losses"][-1]}))


if __name__ == "__main__":
    main()
