#!/usr/bin/env python3
"""Collectives through the drop-in beside the MPI underneath and beside rondo.h's own calls, on the MPIs of this machine.

usage: ratio.py [options]
  --mpis WORD,...   only the MPIs whose name has one of the words (all that have a compiler and a drop-in)
  --ranks N,...     numbers of ranks (2, 4, 8 and 16, as far as there are cores)
  --only NAME,...   only these collectives
  --largest BYTES   of the messages, in powers of four from 8 bytes (2097152)
  --rounds N        of each cell (9)
  --milliseconds N  of one arm in one round, about (10)
  --json FILE       what was measured, raw, as docs/results has it

A cell is a collective with a number of ranks and a size. test/mpi/ratio.c measures it in one run: the drop-in, the MPI underneath, rondo.h
and the MPI underneath once more, in turn, in an order that rotates. The ratio is the median over the rounds of MPI's time / the
drop-in's; the A/A ratio that of MPI's two times, as a range from 5 to 95%. The goals: a ratio of at least 1.0, or within the A/A range, in
each cell; at 8 B at most 60 ns more than rondo.h's own call, or than the same share of its time as MPI's two times differ by.
Exit status: 0 the goals are met; 1 they are not, or a run failed; 77 there is no MPI with a drop-in and a compiler.
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

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "bench")]
import harness  # noqa: E402
import mpis  # noqa: E402
import provenance  # noqa: E402
import pytest  # noqa: E402

GOAL, GOAL_OVER_NS, SMALL = 1.0, 60.0, 8
SECONDS_A_RUN = 3600


def build(mpi, folder):
    program = pathlib.Path(folder) / mpi.name.replace(" ", "-").replace(",", "").replace("'", "")
    subprocess.run([mpi.c, "-O2", f"-I{harness.ROOT}/include", HERE / "ratio.c", harness.BUILD / "librondo.so", f"-Wl,-rpath,{harness.BUILD}", "-ldl",
                    "-o", program], check=True)
    return program


def share(values, part):
    values = sorted(values)
    return values[round(part * (len(values) - 1))]


def cell_of(mpi, row):
    """What the rounds of one cell come to."""
    ratios = [plain / taken for taken, plain in zip(row["drop_in"], row["mpi"])]
    own = [again / plain for again, plain in zip(row["again"], row["mpi"])]
    own += [1 / one for one in own]
    over = [1e3 * (taken - called) for taken, called in zip(row["drop_in"], row["rondo"])]
    low, high = share(own, 0.05), share(own, 0.95)
    native = statistics.median(row["rondo"])
    ratio, over = statistics.median(ratios), statistics.median(over)
    return {"mpi": mpi.name, "collective": row["collective"], "ranks": row["ranks"], "bytes": row["bytes"], "calls": row["calls"],
            "time_us": statistics.median(row["drop_in"]), "mpi_time_us": statistics.median(row["mpi"]), "rondo_time_us": native, "ratio": ratio,
            "aa_low": low, "aa_high": high, "over_rondo_ns": over, "slower": ratio < min(GOAL, low),
            "late": row["bytes"] == SMALL and over > max(GOAL_OVER_NS, 1e3 * native * (high - 1)),
            "rounds": {arm: row[arm] for arm in ("drop_in", "mpi", "rondo", "again")}}


def measure(mpi, program, ranks, options):
    """The cells of one run, and whether it failed."""
    words = [program, options.only, options.largest, options.rounds, options.milliseconds]
    try:
        said = mpi.run(ranks, *words, preloaded=True, seconds=SECONDS_A_RUN)
    except pytest.fail.Exception as problem:
        print(f"FAILED: {mpi.name}, {ranks} ranks: {problem}", flush=True)
        return [], True
    return [cell_of(mpi, json.loads(line)) for line in said.splitlines() if line.startswith("{")], False


def tell(cells):
    for cell in cells:
        print(f"{cell['collective']:>21} {cell['ranks']:3} ranks {cell['bytes']:8} B  drop-in {cell['time_us']:10.2f} us  ratio {cell['ratio']:6.3f}"
              f"  A/A {cell['aa_low']:.2f}-{cell['aa_high']:.2f}  over rondo.h {cell['over_rondo_ns']:+8.0f} ns"
              f"{'  SLOWER' if cell['slower'] else ''}{'  LATE' if cell['late'] else ''}", flush=True)


def judge(cells):
    """Prints how far the goals are met. Returns whether they are."""
    for name in dict.fromkeys(cell["mpi"] for cell in cells):
        some = [cell for cell in cells if cell["mpi"] == name]
        small = [cell["over_rondo_ns"] for cell in some if cell["bytes"] == SMALL]
        print(f"{name}: {len(some)} cells, {sum(cell['ratio'] >= GOAL for cell in some)} at least {GOAL}, {sum(cell['slower'] for cell in some)} slower "
              f"beyond the A/A range, geometric mean {math.exp(statistics.fmean(math.log(cell['ratio']) for cell in some)):.3f}, lowest "
              f"{min(cell['ratio'] for cell in some):.3f}; over rondo.h at {SMALL} B: median {statistics.median(small):.0f} ns, most {max(small):.0f} ns")
    return bool(cells) and not any(cell["slower"] or cell["late"] for cell in cells)


def main():
    cores = len(os.sched_getaffinity(0))
    reader = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    reader.add_argument("--mpis", default="")
    reader.add_argument("--ranks", default=",".join(str(n) for n in (2, 4, 8, 16) if n <= cores))
    reader.add_argument("--only", default="all")
    reader.add_argument("--largest", type=int, default=2 << 20)
    reader.add_argument("--rounds", type=int, default=9)
    reader.add_argument("--milliseconds", type=float, default=10)
    reader.add_argument("--json", type=pathlib.Path)
    options = reader.parse_args()
    chosen = [mpi for mpi in mpis.found() if mpi.c and any(word in mpi.name for word in options.mpis.split(","))]
    if not chosen:
        print("there is no MPI with a drop-in and a compiler: `make mpi` builds the drop-ins of the MPIs that it finds")
        return 77
    cells, failed, began = [], False, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        programs = [(mpi, build(mpi, folder)) for mpi in chosen]
        for mpi, program in programs:
            print(f"\n{mpi.name}:", flush=True)
            for ranks in map(int, options.ranks.split(",")):
                found, broken = measure(mpi, program, ranks, options)
                tell(found)
                cells += found
                failed |= broken
    met = judge(cells)
    if options.json and cells:
        names = " and ".join(mpi.name for mpi in chosen)
        meta = provenance.metadata(f"Collectives of MPI programs with the drop-in, on {cores} cores, beside {names}", "make mpi-ratio",
                                   "us; ratio = MPI's time / the drop-in's", f"medians of {options.rounds}, interleaved; all rounds in this file", names,
                                   seconds=round(time.monotonic() - began))
        options.json.write_text(json.dumps({"metadata": meta, "cells": cells}) + "\n")
    return 0 if met and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
