#!/usr/bin/env python3
"""What a trace costs: `rondo bench allreduce --trace-cost` again and again, each with batches of operations with and without the
trace in turn; the median of the ratios, with its 95% interval. And whether the traces are complete: every operation that was started on a rank, or enqueued on a stream, has its end,
all ranks have as many, and no record was lost. On a GPU: --device cuda, and --mode stream for operations in stream order. Exit 1
if a trace is not complete, or if the interval lies above --most percent."""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

RONDO = pathlib.Path(__file__).resolve().parent.parent / "build" / "rondo"


def rondo(*arguments, **environment):
    done = subprocess.run([RONDO, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    if done.returncode != 0:
        sys.exit(f"rondo {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def complete(trace, folder):
    """What is missing in a trace, in words."""
    rondo("trace", "summary", trace, "--json", folder / "summary.json")
    found = json.loads((folder / "summary.json").read_text())
    ranks = found["ranks"]
    missing = [f"rank {one['rank']}: {one['unfinished']} of {one['operations']} operations have no end" for one in ranks if one["unfinished"]]
    if found["lost"]:
        missing.append(f"{found['lost']} records were lost")
    if len({one["operations"] for one in ranks}) != 1 or not ranks[0]["operations"]:
        missing.append(f"operations by rank: {[one['operations'] for one in ranks]}")
    return missing, sum(one["operations"] for one in ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="host")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mode", default="persistent")
    parser.add_argument("--size", default="1M")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--most", type=float, default=2)
    chosen = parser.parse_args()
    blocks = "1" if chosen.device == "host" else os.environ.get("RONDO_BLOCKS", "0")  # as --trace-cost needs it there
    bench = ["bench", "allreduce", "--device", chosen.device, "--ranks", chosen.ranks, "--mode", chosen.mode, "-b", chosen.size, "-e",
             chosen.size, "-n", chosen.iterations, "--trace-cost"]
    rows, missing, operations = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for _ in range(chosen.runs):
            rondo(*bench, "--json", folder / "bench.json", RONDO_TRACE=str(folder / "trace.json"), RONDO_BLOCKS=blocks)
            rows.append(json.loads((folder / "bench.json").read_text())["rows"][0])
            lacks, operations = complete(folder / "trace.json", folder)
            missing += lacks
    ratios = [row["time_us"] / row["plain_time_us"] for row in rows]
    resampled = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    cost, low, high = (100 * (one - 1) for one in (statistics.median(ratios), resampled[50], resampled[1950]))
    plain = statistics.median(row["plain_time_us"] for row in rows)
    print(f"{chosen.size} on {chosen.ranks} ranks, {chosen.device} device, {chosen.mode}: {plain:.2f} us, with a trace {cost:+.2f}% "
          f"({low:+.2f} to {high:+.2f}), {len(rows)} runs")
    print("\n".join(missing) if missing else f"the traces are complete: {operations} operations in the last, each with its end")
    sys.exit(1 if missing or low > chosen.most else 0)


main()
