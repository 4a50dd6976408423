"""What a part of the library costs: the same collectives by the command and by a build of it without that part, in turn, so that whatever
else happens on the machine meets both.

usage: build_cost.py BUILD VARIANT OPTIONS...: BUILD/rondo and BUILD/rondo-VARIANT, and the options of `rondo bench` that both get.
RANKS="2 4", ROUNDS=9 and JSON=FILE (what was measured, as docs/results has it) in the environment. Of each build the least time of all rounds (the least disturbed one) and the median; the cost
is the ratio and the difference of the least ones, and the median of the rounds' ratios and differences.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

import provenance

ROUNDS = int(os.environ.get("ROUNDS", "9"))
build, variant, options = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
COMMANDS = ("rondo", f"rondo-{variant}")


def measure(command, ranks):
    words = [build / command, "bench", *options, "--device", "host", "--json", "-"]
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    out = subprocess.run(launcher + words, capture_output=True, text=True, check=True, timeout=60,
                         env={**os.environ, "RONDO_CHECK": "0"}).stdout
    return {row["bytes"]: row["time_us"] for row in json.loads(out)["rows"]}


for command in COMMANDS:  # both must be right before they may be fast
    subprocess.run([build / command, "bench", *options, "--device", "host", "--ranks", "2", "-b", "8", "-e", "64K", "-n", "20", "-c"], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
cells = []
for ranks in map(int, os.environ.get("RANKS", "2").split()):
    times = {command: {} for command in COMMANDS}
    for round in range(ROUNDS):
        for command in sorted(times, reverse=round % 2 == 1):
            for size, time in measure(command, ranks).items():
                times[command].setdefault(size, []).append(time)
    print(f"{' '.join(options)}, {ranks} ranks as processes, host device, blocking, {ROUNDS} rounds; us")
    print(f"{'bytes':>10} {'rondo':>22} {COMMANDS[1]:>22} {'cost %':>16} {'cost ns':>16}")
    print(f"{'':>10}" + f" {'least':>11}{'median':>11}" * 2 + f" {'of least':>8}{'median':>8}" * 2)
    for size, mine in times["rondo"].items():
        other = times[COMMANDS[1]][size]
        ratios = [100 * (min(mine) / min(other) - 1), 100 * (statistics.median(a / b for a, b in zip(mine, other)) - 1)]
        more = [1000 * (min(mine) - min(other)), 1000 * statistics.median(a - b for a, b in zip(mine, other))]
        print(f"{size:>10} {min(mine):>11.3f}{statistics.median(mine):>11.3f} {min(other):>11.3f}{statistics.median(other):>11.3f} "
              f"{ratios[0]:>8.1f}{ratios[1]:>8.1f} {more[0]:>8.1f}{more[1]:>8.1f}")
        cells.append({"ranks": ranks, "bytes": size, "us": statistics.median(mine), "us_without": statistics.median(other),
                      "cost_ns": more[1], "cost_percent": ratios[1], "rounds_us": mine, "rounds_us_without": other})
if os.environ.get("JSON"):
    meta = provenance.metadata(f"The library and a build of it that is {variant}", f"python3 {' '.join(sys.argv)}", "us a call",
                               f"{ROUNDS} of each in turn; medians, of the costs too", variant=variant)
    pathlib.Path(os.environ["JSON"]).write_text(json.dumps({"metadata": meta, "cells": cells}, indent=1) + "\n")
