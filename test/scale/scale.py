#!/usr/bin/env python3
"""Jobs of many ranks, each a process of this machine: every collective, checked, and what a rank costs.

usage: scale.py [--ranks N,...] [--count N] [--seconds S] [--json FILE]
  --ranks N,...  sizes of the jobs (2 to 1024, doubling)
  --count N      elements of 8 bytes a block (16)
  --seconds S    that a job may take (600)
  --json FILE    what was measured, as docs/results has it

scale.c is a rank. Memory, messages and processor time are a rank's own, whatever shares its cores. Elapsed times measure the
scheduler where there are more ranks than cores.
Exit status: 0 every rank of every job was right; 1 otherwise.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "bench")]
import harness  # noqa: E402
import provenance  # noqa: E402

COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "reduce_scatter_block", "allgather", "alltoall", "gather", "scatter", "scan"]
COSTS = ["primitives", "bytes sent", "reserved KiB", "private KiB", "peak KiB", "processor seconds"]


def run(ranks, count, seconds):
    """Runs a job and returns what its ranks print, in their order. Raises RuntimeError with the first ranks that failed. Ranks write into
    files: with harness.Job's pipe and thread for each, a thousand took longer."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [open(pathlib.Path(folder) / str(rank), "w+") for rank in range(ranks)]
        common = harness.environment(seconds, RONDO_SIZE=ranks, RONDO_JOB=f"scale-{os.getpid()}-{ranks}", RONDO_DEVICE="host",
                                     RONDO_CONNECT_TIMEOUT=seconds)
        processes = []
        deadline = time.monotonic() + seconds * harness.PATIENCE
        try:
            for rank, output in enumerate(outputs):
                processes.append(subprocess.Popen([str(harness.program("scale")), "--count", str(count)], stdin=subprocess.DEVNULL,
                                                  stdout=output, stderr=subprocess.STDOUT, env={**common, "RONDO_RANK": str(rank)}))
            for process in processes:
                try:
                    process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    break
        finally:
            for process in processes:
                process.kill()
                process.wait()
        texts = []
        for output in outputs:
            output.seek(0)
            texts.append(output.read())
            output.close()
    failed = [rank for rank, process in enumerate(processes) if process.returncode != 0]
    if failed:
        says = "".join(f"rank {rank}, status {processes[rank].returncode}: {texts[rank][-600:]}\n" for rank in failed[:3])
        raise RuntimeError(f"{len(failed)} of {ranks} ranks failed within {seconds} s:\n{says}")
    return [json.loads(next(line for line in text.splitlines() if line.startswith("{"))) for text in texts]


def summary(ranks, seconds, rows):
    """Of a job: the mean of a rank's costs and the most that one has, and the time of the slowest rank."""
    cell = {"ranks": ranks, "seconds": round(seconds, 3), "init_s": max(row["init"] for row in rows),
            "sockets": rows[ranks // 2]["sockets"], "sockets_most": max(row["sockets"] for row in rows)}
    for cost in COSTS:
        name = cost.replace(" ", "_").lower()
        cell[name] = round(statistics.fmean(row[cost] for row in rows), 3)
        cell[f"{name}_most"] = max(row[cost] for row in rows)
    for collective in COLLECTIVES:
        cell[f"{collective}_first_s"] = max(row[collective] for row in rows)
        cell[f"{collective}_s"] = max(row[f"{collective} again"] for row in rows)
    return cell


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--ranks", default=",".join(str(2 ** n) for n in range(1, 11)))
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--json")
    options = parser.parse_args()
    cells = []
    print(f"{'ranks':>6} {'elapsed':>9} {'sockets':>8} {'KiB reserved':>13} {'private':>8} {'peak':>8} {'processor':>10} {'sent':>10}")
    for ranks in map(int, options.ranks.split(",")):
        began = time.monotonic()
        try:
            rows = run(ranks, options.count, options.seconds)
        except RuntimeError as error:
            print(f"{ranks:6} {error}")
            return 1
        cell = summary(ranks, time.monotonic() - began, rows)
        cells.append(cell)
        print(f"{ranks:6} {cell['seconds']:7.1f} s {cell['sockets']:8} {cell['reserved_kib']:13.0f} {cell['private_kib']:8.0f} {cell['peak_kib']:8.0f} "
              f"{cell['processor_seconds']:8.3f} s {cell['bytes_sent']:8.0f} B", flush=True)
    if options.json:
        command = shlex.join(["python3", "test/scale/scale.py", *sys.argv[1:]])
        meta = provenance.metadata("Jobs of many ranks on one machine", command, "KiB, bytes and seconds a rank: mean", "1 a size, all in this file")
        pathlib.Path(options.json).write_text(json.dumps({"metadata": meta, "cells": cells}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
