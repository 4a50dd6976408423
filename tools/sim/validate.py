#!/usr/bin/env python3
"""Compares `rondo sim --model rondo` with real runs on this machine: for each number of ranks and collectives, with and without
synchronizations, `rondo bench` for the model's parameters and `rondo stress` for what really happens, in turn, then
`rondo sim --stress --bench` of each. Prints medians and their spread as a Markdown table. Runs beside which the machine was
busy with something else are repeated."""
import argparse
import itertools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def busy_seconds():
    """Of all processors, but for idling: with what the hypervisor gave to others."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    times = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[:8]]
    return sum(times) - times[3] - times[4]


def own_seconds():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def run(where, *arguments, tries=4):
    """The JSON of a run that had the machine to itself, or else of the last one."""
    for _ in range(tries):
        before, mine = busy_seconds(), own_seconds()
        done = subprocess.run([ROOT / "build" / "rondo", *map(str, arguments), "--json", str(where)], capture_output=True, text=True,
                              timeout=120)
        if done.returncode != 0:
            sys.exit(f"rondo {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        mine = own_seconds() - mine
        if busy_seconds() - before - mine < 0.1 + 0.2 * mine:
            break
    else:
        print("the machine is not quiet", file=sys.stderr)
    return json.loads(where.read_text())


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--collectives", type=int, nargs="+", default=[8])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="host")
    parser.add_argument("--cores", type=int, help="what the ranks share; 0: each has its own (default: this machine's)")
    chosen = parser.parse_args()
    cores = [] if chosen.cores is None else ["--cores", chosen.cores]
    print("| ranks | all-reduces | synchronizations | iteration, ms | model | preemptions | model | quits | model |\n"
          "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for ranks, collectives in itertools.product(chosen.ranks, chosen.collectives):
            found = {False: [], True: []}
            for seed in range(chosen.repeats):
                run(folder / "bench.json", "bench", "allreduce", "--device", chosen.device, "--ranks", ranks, "-b", 256, "-e", "16M",
                    "-f", 4, "--mode", "persistent")
                for sync in found:
                    run(folder / "stress.json", "stress", "--device", chosen.device, "--ranks", ranks, "--collectives", collectives,
                        "--iterations", chosen.iterations, "--seed", seed, *["--sync"] * sync)
                    found[sync].append(run(folder / "sim.json", "sim", "--stress", folder / "stress.json", "--bench",
                                           folder / "bench.json", *cores, tries=1))
            for sync, runs in found.items():
                cells = [spread([one[side][key] * scale for one in runs], digits)
                         for key, scale, digits in (("iteration_us", 1e-3, 1), ("preemptions_per_collective", 1, 0), ("quits", 1, 1))
                         for side in ("measured", "model")]
                print(f"| {ranks} | {collectives} | {'yes' if sync else 'no'} | " + " | ".join(cells) + " |", flush=True)


main()
