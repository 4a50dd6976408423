#!/usr/bin/env python3
"""The training of train.py on NCCL and on Rondo, in turn, so that both meet the same machine: are the losses the same but for the
order of floating-point sums, and how do the speeds compare? Prints one JSON object.

    make nccl && python3 examples/pytorch/compare.py --library build/nccl/libnccl.so.2 --gpus 2 --repeats 3
"""
import argparse
import json
import statistics
import sys

from common import is_rondo, launch


def once(options, library):
    """{mode: what rank 0 says}."""
    name = "Rondo" if library is not None else "NCCL"
    finished, output = launch("train.py", options.gpus, library, options.limit, "--mode", options.mode, "--steps", options.steps)
    said = [json.loads(line[line.index("{"):]) for line in output.splitlines() if "RESULT {" in line]
    if not finished or len(said) != len(options.mode.split(",")):
        sys.stderr.write(output[-6000:] + "\n")
        raise SystemExit(f"training on {name} {'failed' if finished else f'failed, or took more than {options.limit:g} s'}")
    if is_rondo(output) != (library is not None):
        raise SystemExit(f"{name} was to answer, and did not: is NCCL linked into PyTorch?")
    for one in said:
        print(f"{name:5} {one['mode']:5}: {one['step_ms']:8.2f} ms a step, loss {one['losses'][0]:.4f} to {one['losses'][-1]:.4f}",
              file=sys.stderr, flush=True)
    return {one["mode"]: one for one in said}


def difference(one, other):
    return max(abs(a - b) / max(abs(a), 0.1) for a, b in zip(one["losses"], other["losses"]))


def compare(options, nccl, rondo):
    """nccl, rondo: the runs of one mode."""
    largest = max(difference(one, other) for one in nccl for other in rondo)
    own = max(difference(nccl[0], other) for other in nccl)
    steps = [statistics.median(run["step_ms"] for run in runs) for runs in (nccl, rondo)]
    return {"nccl_step_ms": round(steps[0], 3), "rondo_step_ms": round(steps[1], 3), "ratio": round(steps[0] / steps[1], 4),
            "largest_difference": largest, "nccl_with_itself": own if len(nccl) > 1 else None,
            "same_losses": largest <= max(options.tolerance, 3 * own), "first_loss": rondo[0]["losses"][0],
            "last_loss": rondo[0]["losses"][-1]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="build/nccl/libnccl.so.2")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--mode", default="ddp,fsdp2", help="ddp, fsdp2, or both, then in the same processes")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--tolerance", type=float, default=0.01,
                        help="of a loss, relative; or three times what two runs of NCCL differ by")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a run")
    options = parser.parse_args()
    runs = {"nccl": [], "rondo": []}
    for _ in range(options.repeats):
        runs["rondo"].append(once(options, options.library))
        runs["nccl"].append(once(options, None))
    result = {mode: compare(options, *([run[mode] for run in runs[name]] for name in ("nccl", "rondo")))
              for mode in options.mode.split(",")}
    print(json.dumps({"gpus": options.gpus, "repeats": options.repeats, "steps": options.steps, "modes": result}))


if __name__ == "__main__":
    main()
