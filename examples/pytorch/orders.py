#!/usr/bin/env python3
"""Ranks use three process groups in different orders: with NCCL they hang, which a time limit ends; with Rondo they finish. Prints
one JSON object.

    make nccl && python3 examples/pytorch/orders.py --library build/nccl/libnccl.so.2 --gpus 2
"""
import argparse
import json
import sys
import time

from common import is_rondo, launch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="build/nccl/libnccl.so.2")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--limit", type=float, default=20, help="seconds after which a run counts as hung")
    options = parser.parse_args()
    result = {}
    for name, library in (("rondo", options.library), ("nccl", None)):
        began = time.monotonic()
        ended, output = launch("groups.py", options.gpus, library, options.limit, "--groups", options.groups, "--rounds",
                               options.rounds)
        finished = ended and "FINISHED" in output
        if is_rondo(output) != (library is not None):
            sys.stderr.write(output[-3000:])
            raise SystemExit(f"another library than {library or 'NCCL'} answered, or none")
        result[name] = {"finished": finished, "seconds": round(time.monotonic() - began, 1)}
        print(f"{name}: {'finished' if finished else 'did not finish'} in {result[name]['seconds']} s", file=sys.stderr, flush=True)
        if not finished:
            sys.stderr.write("".join(f"  | {line}\n" for line in output.splitlines()[-15:]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
