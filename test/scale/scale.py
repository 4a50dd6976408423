#!/usr/bin/env python3
"""Jobs of many ranks, each a process of this machine: every collective, checked, and what a rank costs. And a simulation of how
larger jobs start, whose counts are those of the real ones.

usage: scale.py [--ranks N,...] [--simulated N,...] [--count N] [--seconds S] [--json FILE] [--again FILE]
  --ranks N,...  sizes of the jobs (2 to 1024, doubling)
  --simulated N,...  sizes of jobs whose start is only simulated (10000,100000)
  --count N      elements of 8 bytes a block (16)
  --seconds S    that a job may take (600)
  --json FILE    what was measured, as docs/results has it
  --again FILE   measures nothing: simulates once more, by the costs that FILE has, and stores that there

scale.c is a rank. Memory, messages and processor time are a rank's own, whatever shares its cores. Elapsed times measure the
scheduler where there are more ranks than cores.
startup.c is the simulation: each rank on a host of its own. Its counts are those of a second job of each size, whose ranks meet
over TCP, as those of several hosts do, and end. What a message costs is measured there, too. A rank's is from the largest of these
jobs with at most 16 ranks, because with many more on a core most of the time is that of switching between them: the processor
time of rondo_init, without that of a rank alone, by the messages. The root's is from the largest job: what rank 0 spends more than
the others. A byte's is measured by itself. The latency and the rate of the network are given.
Exit status: 0 every rank of every job was right, and the simulation has counted the same; 1 otherwise.
"""
import argparse
import json
import os
import pathlib
import re
import secrets
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
COUNTS = ["made", "accepted", "messages", "bytes"]  # of the control plane, once rondo_init has returned
ROOT_MESSAGES = 9  # that the root gets from a rank and sends it
NETWORK = {"latency_us": 20, "gbit": 10}  # of the simulation
MEASURED = ["message_us", "root_us", "byte_ns", "setup_ms"]  # its other costs
RANKS_OF_ROOT = 4096  # of a root where their number is chosen (lib/bootstrap/rendezvous.c)
COSTS = ["primitives", "bytes sent", "reserved KiB", "private KiB", "peak KiB", "processor seconds"]


def run(ranks, count, seconds, **extra):
    """Runs a job and returns what its ranks print, in their order. Raises RuntimeError with ranks that failed, one a reason. Ranks write into
    files: with harness.Job's pipe and thread for each, a thousand took longer."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [open(pathlib.Path(folder) / str(rank), "w+") for rank in range(ranks)]
        gate = pathlib.Path(folder) / "gate"
        gate.write_bytes(bytes(4))
        common = harness.environment(seconds, RONDO_SIZE=ranks, RONDO_JOB=f"scale-{os.getpid()}-{ranks}", RONDO_DEVICE="host",
                                     RONDO_CONNECT_TIMEOUT=seconds, **extra)
        processes = []
        deadline = time.monotonic() + seconds * harness.PATIENCE
        try:
            for rank, output in enumerate(outputs):
                processes.append(subprocess.Popen([str(harness.program("scale")), "--count", str(count), "--gate", str(gate)], stdin=subprocess.DEVNULL,
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
        different = {re.sub(r"[0-9]+", "", texts[rank].partition("FAILED")[2] or texts[rank][-600:]): rank for rank in reversed(failed)}
        says = "".join(f"rank {rank}, status {processes[rank].returncode}: {texts[rank][-600:]}\n" for rank in sorted(different.values())[:6])
        raise RuntimeError(f"{len(failed)} of {ranks} ranks failed within {seconds} s:\n{says}")
    return [json.loads(next(line for line in text.splitlines() if line.startswith("{"))) for text in texts]


def start(ranks, seconds):
    """Runs a job whose ranks meet over TCP, and end."""
    return run(ranks, 0, seconds, RONDO_ROOT=f"127.0.0.1:{harness.free_port()}", RONDO_SECRET=secrets.token_hex(16))


def simulate(ranks, *flags, **costs):
    """Simulates the start of a job, and returns what it has cost; with "--each", what each rank has. costs: options of startup.c."""
    options = [word for name, value in {**NETWORK, **costs}.items() for word in ("--" + name.replace("_", "-"), str(value))]
    output = harness.run(harness.program("startup"), "--ranks", ranks, *options, *flags, seconds=300)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return rows[:-1] if "--each" in flags else rows[-1]


def differences(rows):
    """Ranks of a job that has started whose counts are not those of the simulation, in a text; empty: none."""
    simulated = simulate(len(rows), "--one-host", "--each")
    return "".join(f"rank {rank}: " + ", ".join(f"{row[count]} {count}, simulated {other[count]}" for count in COUNTS) + "\n"
                   for rank, (row, other) in enumerate(zip(rows, simulated)) if any(row[count] != other[count] for count in COUNTS))


def measured_costs(few, many, alone):
    """What a message costs a rank and the root, and what a rank does by itself, by jobs of few ranks, of many, and of one."""
    byte_ns = float(re.search(r"([0-9.]+) ns a byte", harness.run(harness.program("startup"), "--ranks", 2)).group(1))
    job, of_root, spent = simulate(len(few), "--one-host"), ROOT_MESSAGES * len(few), [row["init processor"] for row in few[1:]]
    ends, bytes_ = (2 * job["messages"] - of_root) / len(few), 2 * job["bytes"] / len(few)
    message = (statistics.fmean(spent) - alone["init processor"] - 1e-9 * byte_ns * bytes_) / ends
    more = many[0]["bytes"] - statistics.fmean(row["bytes"] for row in many[1:])
    root = many[0]["init processor"] - statistics.fmean(row["init processor"] for row in many[1:]) - 1e-9 * byte_ns * more
    return {"message_us": round(max(message, 0) * 1e6, 2), "root_us": round(max(root, 0) / (ROOT_MESSAGES * len(many)) * 1e6, 2), "byte_ns": byte_ns,
            "setup_ms": round(1e3 * alone["init"], 3)}


def summary(ranks, seconds, rows, started):
    """Of a job, and of the one that has only started: the mean of a rank's costs and the most that one has, and the time of the slowest rank."""
    cell = {"ranks": ranks, "seconds": round(seconds, 3), "init_s": max(row["init"] for row in rows),
            "sockets": rows[ranks // 2]["sockets"], "sockets_most": max(row["sockets"] for row in rows)}
    for cost in COSTS:
        name = cost.replace(" ", "_").lower()
        cell[name] = round(statistics.fmean(row[cost] for row in rows), 3)
        cell[f"{name}_most"] = max(row[cost] for row in rows)
    for count in COUNTS:
        cell[f"control_{count}"] = round(statistics.fmean(row[count] for row in started), 3)
        cell[f"control_{count}_most"] = max(row[count] for row in started)
    for collective in COLLECTIVES:
        cell[f"{collective}_first_s"] = max(row[collective] for row in rows)
        cell[f"{collective}_s"] = max(row[f"{collective} again"] for row in rows)
    return cell


def simulate_all(counts, costs):
    """Simulates jobs of one root, and those that are large enough also with a root for each RANKS_OF_ROOT ranks, as by the launcher's key store."""
    print(f"\nSimulated, each rank on a host of its own: {costs['message_us']} us a message, {costs['root_us']} us at the root, and {costs['byte_ns']} ns a byte at either end, "
          f"{costs['setup_ms']} ms of a rank's own; a network of {NETWORK['latency_us']} us and {NETWORK['gbit']} Gbit/s")
    print(f"{'ranks':>7} {'roots':>5} {'formed':>9} {'started':>9} {'connections':>12} {'messages':>9} {'MiB':>8}   (of the rank that has most)")
    simulated = []
    for ranks, roots in [(ranks, 1) for ranks in counts] + [(ranks, -(-ranks // RANKS_OF_ROOT)) for ranks in counts if ranks > RANKS_OF_ROOT]:
        began = time.monotonic()
        job = simulate(ranks, roots=roots, **costs)
        simulated.append({**job, "seconds_to_simulate": round(time.monotonic() - began, 3)})
        most = job["most"]
        print(f"{ranks:7} {roots:5} {job['formed_s']:7.3f} s {job['init_s']:7.3f} s {most['made'] + most['accepted']:12} {most['messages']:9} {most['bytes'] / 2 ** 20:8.1f}")
    return {"costs": {**costs, **NETWORK}, "jobs": simulated}


def simulate_again(path):
    """Replaces the simulated jobs of a file by those of today's protocol, by the costs that the file has."""
    data = json.loads(path.read_text())
    before = data["simulated"]
    after = simulate_all(list(dict.fromkeys(job["ranks"] for job in before["jobs"])), {name: before["costs"][name] for name in MEASURED})
    meta = provenance.metadata("", shlex.join(["python3", "test/scale/scale.py", *sys.argv[1:]]), "", "")
    after.update({name: meta[name] for name in ("command", "date", "library")})
    path.write_text(json.dumps({**data, "simulated": after}, indent=1) + "\n")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--ranks", default=",".join(str(2 ** n) for n in range(1, 11)))
    parser.add_argument("--simulated", default="10000,100000")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--json")
    parser.add_argument("--again", type=pathlib.Path)
    options = parser.parse_args()
    if options.again is not None:
        return simulate_again(options.again)
    cells, few = [], None
    print(f"{'ranks':>6} {'elapsed':>9} {'sockets':>8} {'KiB reserved':>13} {'private':>8} {'peak':>8} {'processor':>10} {'sent':>10}")
    for ranks in map(int, options.ranks.split(",")):
        began = time.monotonic()
        try:
            rows = run(ranks, options.count, options.seconds)
            seconds = time.monotonic() - began
            started = start(ranks, options.seconds)
        except RuntimeError as error:
            print(f"{ranks:6} {error}")
            return 1
        few = started if few is None or ranks <= 16 else few
        differ = differences(started)
        if differ:
            print(f"{ranks:6} the simulation counts otherwise:\n{differ}")
            return 1
        cell = summary(ranks, seconds, rows, started)
        cells.append(cell)
        print(f"{ranks:6} {cell['seconds']:7.1f} s {cell['sockets']:8} {cell['reserved_kib']:13.0f} {cell['private_kib']:8.0f} {cell['peak_kib']:8.0f} "
              f"{cell['processor_seconds']:8.3f} s {cell['bytes_sent']:8.0f} B", flush=True)
    costs = measured_costs(few, started, run(1, 0, options.seconds)[0])
    simulated = simulate_all([cell["ranks"] for cell in cells] + list(map(int, options.simulated.split(","))), costs)
    if options.json:
        command = shlex.join(["python3", "test/scale/scale.py", *sys.argv[1:]])
        meta = provenance.metadata("Jobs of many ranks on one machine", command, "KiB, bytes and seconds a rank: mean", "1 a size, all in this file")
        pathlib.Path(options.json).write_text(json.dumps({"metadata": meta, "cells": cells, "simulated": simulated}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
