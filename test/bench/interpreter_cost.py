"""What interpreting costs: the same all-reduces by both builds in turn, so that whatever else happens on the machine meets both.

Of each build the least time of all rounds (the least disturbed one) and the median; the cost is the ratio of the least ones, and the
median of the rounds' ratios.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROUNDS = int(os.environ.get("ROUNDS", "9"))
build = pathlib.Path(sys.argv[1])


def measure(command, ranks):
    words = [build / command, "bench", "allreduce", "--device", "host", "--algorithm", "ring", "--channels", "1", "-b", "64", "-e",
             "4M", "-f", "16", "--json", "-"]
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    out = subprocess.run(launcher + words, capture_output=True, text=True, check=True, timeout=60,
                         env={**os.environ, "RONDO_CHECK": "0"}).stdout
    return {row["bytes"]: row["time_us"] for row in json.loads(out)["rows"]}


for ranks in map(int, os.environ.get("RANKS", "2").split()):
    times = {"rondo": {}, "rondo-unrolled": {}}
    for round in range(ROUNDS):
        for command in sorted(times, reverse=round % 2 == 1):
            for size, time in measure(command, ranks).items():
                times[command].setdefault(size, []).append(time)
    print(f"ring all-reduce, {ranks} ranks as processes, host device, blocking, {ROUNDS} rounds; us")
    print(f"{'bytes':>10} {'interpreted':>22} {'unrolled by hand':>22} {'cost %':>16}")
    print(f"{'':>10} {'least':>11}{'median':>11} {'least':>11}{'median':>11} {'of least':>8}{'median':>8}")
    for size, mine in times["rondo"].items():
        other = times["rondo-unrolled"][size]
        cost = [100 * (min(mine) / min(other) - 1), 100 * (statistics.median(a / b for a, b in zip(mine, other)) - 1)]
        print(f"{size:>10} {min(mine):>11.2f}{statistics.median(mine):>11.2f} {min(other):>11.2f}{statistics.median(other):>11.2f} "
              f"{cost[0]:>8.1f}{cost[1]:>8.1f}")
