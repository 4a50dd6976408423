#!/usr/bin/env python3
"""Every collective on this host beside the MPIs that the command was built for, and whether the goals are met.

usage: host.py RONDO --peers mpi:NAME,... [options]
  --ranks N,...       numbers of ranks (2, 4, 8 and 16, as far as there are cores; and 4 on two cores)
  --only NAME,...     only these collectives
  --largest SIZE      of the sizes in powers of four (2M)
  --beyond SIZE       one more size (16M); 0: none
  --rounds N          (5)
  --seconds S         no cell begins that would end later (none)
  --json FILE         what was measured, raw

Each cell is one `rondo bench COLLECTIVE --processes N --peer ... --aa`: Rondo and each MPI in turn, each MPI also beside itself. The ratio
is the fastest MPI's time / Rondo's. The goals: at least 1.0 in 95% of the cells and 0.95 in all; in the geometric mean 1.15 for each
collective and 1.5 for all. With more ranks than cores the goal is 1.0 in the geometric mean of each collective.
Exit status: 0 the goals are met; 1 they are not, or a run failed.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import provenance

COLLECTIVES = ("allreduce", "bcast", "reduce", "reduce_scatter_block", "allgather", "alltoall", "gather", "scatter", "barrier")
GOAL_CELLS, GOAL_LEAST, GOAL_EACH, GOAL_ALL = 0.95, 0.95, 1.15, 1.5


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def run(options, collective, ranks, sizes):
    """What one command has written, or None."""
    with tempfile.TemporaryDirectory() as folder:
        where = os.path.join(folder, "rows.json")
        words = [options.rondo, "bench", collective, "--device", "host", "--processes", str(ranks), "--peer", options.peers, "--aa",
                 "--rounds", str(options.rounds), "-f", "4", *sizes, "--json", where]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            print(f"FAILED: {' '.join(words)}: {' | '.join(done.stderr.strip().splitlines()[-3:])}", flush=True)
            return None
        return json.loads(pathlib.Path(where).read_text())


def cells_of(found):
    """A cell a size: the ratio, and the range of the MPIs' ratios to themselves over all rounds."""
    aa = {}
    for one in found["runs"]:
        for row in one["rows"]:
            aa.setdefault(row["bytes"], []).append(row["aa_ratio"])
    return [{"collective": found["collective"], "ranks": found["ranks"], "bytes": row["bytes"], "time_us": row["time_us"], "peer": row["peer"],
             "ratio": row["ratio"], "aa_low": min(aa[row["bytes"]]), "aa_high": max(aa[row["bytes"]]), "peers": row["peers"]}
            for row in found["rows"]]


def tell(cells):
    for cell in cells:
        others = ", ".join(f"{one['peer']} {one['peer_time_us']:.2f} ({one['ratio']:.2f})" for one in cell["peers"])
        print(f"{cell['collective']:>21} {cell['ranks']:3} ranks {cell['bytes']:10} B {cell['time_us']:11.2f} us  ratio {cell['ratio']:6.3f}"
              f"  A/A {cell['aa_low']:.2f}-{cell['aa_high']:.2f}  {others}{'' if cell['ratio'] >= 1 else '  SLOWER'}", flush=True)


def judge(cells, cores):
    """Prints how far the goals are met. Returns whether they are."""
    met = True
    if not cells:
        return False
    for crowded in (False, True):
        some = [cell for cell in cells if (cell["ranks"] > cores) == crowded]
        if not some:
            continue
        print("\nmore ranks than cores:" if crowded else "\na core a rank:")
        means = {name: mean([cell["ratio"] for cell in some if cell["collective"] == name]) for name in COLLECTIVES
                 if any(cell["collective"] == name for cell in some)}
        for name, value in means.items():
            goal = 1.0 if crowded else GOAL_EACH
            print(f"{name:>21} geometric mean {value:6.3f} (goal {goal}){'' if value >= goal else '  MISSED'}")
            met = met and value >= goal
        if not crowded:
            share, least, whole = (statistics.fmean(cell["ratio"] >= 1 for cell in some), min(cell["ratio"] for cell in some),
                                   mean([cell["ratio"] for cell in some]))
            print(f"{len(some)} cells: {share:.1%} at least 1.0 (goal {GOAL_CELLS:.0%}), lowest {least:.3f} (goal {GOAL_LEAST}), "
                  f"geometric mean {whole:.3f} (goal {GOAL_ALL})")
            met = met and share >= GOAL_CELLS and least >= GOAL_LEAST and whole >= GOAL_ALL
    return met


def main():
    cores = len(os.sched_getaffinity(0))
    reader = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    reader.add_argument("rondo")
    reader.add_argument("--peers", required=True)
    reader.add_argument("--ranks", default=",".join(str(n) for n in (2, 4, 8, 16) if n <= cores or n == 2 * cores == 4))
    reader.add_argument("--only", default=",".join(COLLECTIVES))
    reader.add_argument("--largest", default="2M")
    reader.add_argument("--beyond", default="16M")
    reader.add_argument("--rounds", type=int, default=5)
    reader.add_argument("--seconds", type=float, default=math.inf)
    reader.add_argument("--json", type=pathlib.Path)
    options = reader.parse_args()
    began, longest, cells, runs, failed = time.monotonic(), 0.0, [], [], 0
    for ranks in map(int, options.ranks.split(",")):
        for collective in options.only.split(","):
            start = time.monotonic()
            if start - began + longest > options.seconds:
                print(f"no time is left for {collective} of {ranks} ranks", flush=True)
                failed += 1
                continue
            parts = [("-b", "8", "-e", "8" if collective == "barrier" else options.largest)]
            if options.beyond != "0" and collective != "barrier":
                parts.append(("-b", options.beyond, "-e", options.beyond))
            for sizes in parts:
                found = run(options, collective, ranks, sizes)
                failed += found is None
                if found is not None:
                    runs.append(found)
                    cells += cells_of(found)
                    tell(cells_of(found))
            longest = max(longest, time.monotonic() - start)
    met = judge(cells, cores)
    if options.json and runs:
        versions = runs[0]["peer_versions"]
        meta = provenance.metadata(f"Collectives on {cores} cores beside {' and '.join(versions.values())}", "make bench-host",
                                   "us; ratio = the fastest rival's time / Rondo's", f"medians of {options.rounds}, interleaved; all runs in this file",
                                   " and ".join(versions.values()), seconds=round(time.monotonic() - began))
        options.json.write_text(json.dumps({"metadata": meta, "cells": cells, "runs": runs}) + "\n")
    return 0 if met and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
