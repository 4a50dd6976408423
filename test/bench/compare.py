#!/usr/bin/env python3
"""Is one build of the `rondo` command as fast as another? Both are run in turn, and the first also against itself.

usage: compare.py --before PATH --after PATH [options]
  --device host|cuda   host: all-reduce, broadcast, all-to-all and send/receive of 2 and 4 ranks, 8 B to 16 MiB, and gradients;
                       cuda: all-reduce of 2 ranks that share a GPU, on streams and persistent, 8 B to 64 MiB
  --launch HOW         ranks of the host device as processes (the default, under mpirun) or threads
  --only WORD,...      only the groups whose name has one of the words; --list shows the names
  --rounds N           of each comparison (7)
  --seconds S          no round begins that would end later (540); fewer than five rounds decide nothing
  --tolerance SHARE    (0.03)
  --json FILE          all times of all rounds, and the verdicts

In a round, each group of cells (a collective with a number of ranks, all sizes) is run three times: twice by the build before, once by
the one after, in an order that goes through all six, so that neither drift of the machine nor the place in the round favours one.
A cell's ratio is the median over the rounds of after / geometric mean of the two before; its A/A ratio that of the second before / the
first. Which of the two is first is arbitrary, so their spread is the range from 5 to 95% of these ratios and their inverses. A cell is
within if its ratio is within the tolerance or the A/A spread, else slower or faster. A group's ratio is the geometric mean over its
sizes, with a spread of its own: that shows what is too small to be seen in one cell. For the reader alone there is the ratio of the
least times of all rounds, which other programs on the machine disturb least.
Of a hundred cells whose times have not changed, noise alone shows one as slower in every third run. So groups with a slower cell are
measured once more, with as many rounds, for which a quarter of the time is set aside; slower is what is slower both times.
Exit status: 0 nothing is slower; 1 something is slower, or a run failed; 2 there was no time for five rounds.
"""
import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import provenance

LAUNCHER_PREFIXES = ("RONDO_", "OMPI_", "PMI_", "PMIX_", "MPI_", "SLURM_", "HYDI_", "HYDRA_")
ARMS = ("before", "after", "again")
ORDERS = (("before", "after", "again"), ("after", "again", "before"), ("again", "before", "after"),
          ("again", "after", "before"), ("after", "before", "again"), ("before", "again", "after"))
COLLECTIVES = ("allreduce", "bcast", "alltoall", "sendrecv")
LEAST_ROUNDS = 5
SECONDS_A_RUN = 90
UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


class Group:
    """Cells that one command measures, a size each; commands: the words after `rondo bench`, for each range of sizes."""

    def __init__(self, name, ranks, threads, commands):
        self.name, self.ranks, self.threads, self.commands = name, ranks, threads, commands


def ranges(largest):
    """-b 8 -f 4 goes past 16 and 64 MiB, so that the largest size is a range of its own."""
    return [("-b", "8", "-e", largest, "-f", "4"), ("-b", largest, "-e", largest)]


def groups(options):
    threads = options.launch == "threads"
    if options.device == "cuda":
        found = [Group(f"allreduce 2 ranks on one GPU {mode}", 2, True,
                       [("allreduce", "--device", "cuda", "--mode", mode, *sizes) for sizes in ranges("64M")]) for mode in ("stream", "persistent")]
    else:
        found = [Group(f"{name} {ranks} ranks", ranks, threads, [(name, "--device", "host", *sizes) for sizes in ranges("16M")])
                 for name in COLLECTIVES for ranks in (2, 4)]
        found += [Group(f"gradients {ranks} ranks", ranks, threads, [("gradients", "--device", "host")]) for ranks in (2, 4)]
    return [group for group in found if any(word in group.name for word in options.only.split(","))]


@functools.lru_cache
def unvaried(rondo):
    """The option with which a build measures as those did that could not change the input between iterations."""
    helped = subprocess.run([str(rondo), "bench", "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return ["--no-vary"] if "--no-vary" in helped.stdout else []


def run(rondo, group, command):
    """{cell: us} of one command, or the reason why there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    with tempfile.TemporaryDirectory() as folder:
        where = os.path.join(folder, "rows.json")
        words = [str(rondo), "bench", *command, *unvaried(rondo), "--json", where]
        if group.threads:
            words += ["--ranks", str(group.ranks)]
        else:
            root = ["--allow-run-as-root"] if os.getuid() == 0 else []
            words = ["mpirun", *root, "--oversubscribe", "-n", str(group.ranks), *words]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        try:
            said, _ = process.communicate(timeout=SECONDS_A_RUN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, f"{' '.join(words)}: still running after {SECONDS_A_RUN} s"
        if process.returncode != 0:
            return None, f"{' '.join(words)}: status {process.returncode}: {' | '.join(said.strip().splitlines()[-3:])}"
        with open(where) as file:
            rows = json.load(file)["rows"]
    return {row.get("bytes", 0): row["time_us"] for row in rows}, None


def measure(group, arm_paths, order):
    """{arm: {bytes: us}} of one round, and what failed."""
    times = {arm: {} for arm in ARMS}
    for command in group.commands:
        for arm in order:
            found, why = run(arm_paths[arm], group, command)
            if why is not None:
                return None, why
            times[arm].update(found)
    return times, None


# ---- statistics ----

def percentile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def judge(ratios, own, tolerance):
    """Verdict of paired ratios after / before, and of before / itself; what the verdict is made of."""
    both = [*own, *(1 / ratio for ratio in own)]
    low, high = percentile(both, 0.05), percentile(both, 0.95)
    ratio = statistics.median(ratios)
    verdict = "slower" if ratio > max(1 + tolerance, high) else "faster" if ratio < min(1 - tolerance, low) else "within"
    return {"ratio": ratio, "aa_ratio": statistics.median(own), "aa_low": low, "aa_high": high, "verdict": verdict}


def pair(times, cell):
    """(after / before, before / itself) of one round."""
    before, after, again = (times[arm][cell] for arm in ARMS)
    return after / math.sqrt(before * again), again / before


def mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def verdicts(pairs, again, tolerance):
    """The verdict of the first rounds and, where the group was measured once more, of both; ratios are those of all rounds."""
    first = judge(*zip(*pairs), tolerance)
    if len(pairs) < LEAST_ROUNDS:
        return {**first, "verdict": "undecided"}
    if not again:
        return first
    second = judge(*zip(*again), tolerance)
    found = judge(*zip(*pairs, *again), tolerance)
    found["verdict"] = first["verdict"] if first["verdict"] == second["verdict"] else "within"
    return {**found, "first": first, "second": second}


def cells_of(group, rounds, again, tolerance):
    found = []
    for cell in sorted(rounds[0]["before"]):
        every = rounds + again
        before = [value for times in every for value in (times["before"][cell], times["again"][cell])]
        found.append({"group": group.name, "ranks": group.ranks, "bytes": cell, "before_us": statistics.median(before),
                      "after_us": statistics.median(times["after"][cell] for times in every),
                      "least_ratio": pair({arm: {cell: min(times[arm][cell] for times in every)} for arm in ARMS}, cell)[0],
                      **verdicts([pair(times, cell) for times in rounds], [pair(times, cell) for times in again], tolerance),
                      "times_us": {arm: [times[arm][cell] for times in every] for arm in ARMS}})
    return found


def group_of(group, rounds, again, tolerance):
    """The whole group: geometric means over the sizes, round by round."""
    def means(each):
        pairs = [[pair(times, cell) for cell in times["before"]] for times in each]
        return [(mean(one for one, _ in row), mean(own for _, own in row)) for row in pairs]

    return {"group": group.name, "rounds": len(rounds) + len(again), **verdicts(means(rounds), means(again), tolerance)}


# ---- what is told ----

def size_text(bytes_):
    return next((f"{bytes_ // unit} {name}" for unit, name in UNITS if bytes_ >= unit), "all")


def row_text(name, cell):
    times = f"{cell['before_us']:11.2f} {cell['after_us']:11.2f} {cell['least_ratio']:7.3f}" if "before_us" in cell else f"{'':31}"
    mark = "" if cell["verdict"] == "within" else f"  {cell['verdict'].upper()}"
    return f"{name:>44} {times} {cell['ratio']:7.3f} {cell['aa_ratio']:7.3f} {cell['aa_low']:6.3f}-{cell['aa_high']:.3f}{mark}"


def tell(found, wholes):
    print(f"\n{'':>44} {'before us':>11} {'after us':>11} {'least':>7} {'ratio':>7} {'A/A':>7} {'A/A 5-95%':>12}")
    for whole in wholes:
        for cell in found:
            if cell["group"] == whole["group"]:
                print(row_text(f"{cell['group']}, {size_text(cell['bytes'])}", cell))
        print(row_text(f"{whole['group']}: mean of the sizes", whole))
    for kind, each in (("cells", found), ("groups", wholes)):
        if each:
            count = {verdict: sum(one["verdict"] == verdict for one in each) for verdict in ("within", "faster", "slower", "undecided")}
            worst = max(each, key=lambda one: one["ratio"])
            name = worst["group"] + (f", {size_text(worst['bytes'])}" if "bytes" in worst else "")
            print(f"{len(each)} {kind}, {count['within']} within, {count['faster']} faster, {count['slower']} slower, "
                  f"{count['undecided']} undecided, worst {kind[:-1]} {name}: "
                  f"{worst['ratio']:.3f} (A/A {worst['aa_low']:.3f} to {worst['aa_high']:.3f})")


def measure_all(wanted, paths, count, began, end, failures, rounds=None):
    """{group: [times, ...]}: so many rounds of all groups, as far as there is time; what fails is left out from then on. rounds: those that
    there are already."""
    rounds, longest = rounds or {group.name: [] for group in wanted}, 0.0
    for number, order in itertools.islice(enumerate(itertools.cycle(ORDERS)), max(map(len, rounds.values())), count):
        start = time.monotonic()
        if start + longest > end:
            break
        for group in wanted:
            if group.name in failures:
                continue
            if time.monotonic() > end:
                break
            times, why = measure(group, paths, order)
            if why is not None:
                failures[group.name] = why
                print(f"FAILED: {group.name}: {why}", flush=True)
            else:
                rounds[group.name].append(times)
        longest = max(longest, time.monotonic() - start)
        print(f"# round {number + 1} of {count}, {time.monotonic() - began:.0f} s", flush=True)
    return rounds


def judge_all(judged, rounds, again, tolerance):
    return ([cell for group in judged for cell in cells_of(group, rounds[group.name], again[group.name], tolerance)],
            [group_of(group, rounds[group.name], again[group.name], tolerance) for group in judged])


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]


def main():
    reader = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    reader.add_argument("--before", type=pathlib.Path, required=True)
    reader.add_argument("--after", type=pathlib.Path, required=True)
    reader.add_argument("--device", choices=("host", "cuda"), default="host")
    reader.add_argument("--launch", choices=("processes", "threads"), default="processes")
    reader.add_argument("--only", default="")
    reader.add_argument("--list", action="store_true")
    reader.add_argument("--rounds", type=int, default=7)
    reader.add_argument("--seconds", type=float, default=540)
    reader.add_argument("--tolerance", type=float, default=0.03)
    reader.add_argument("--json", type=pathlib.Path)
    options = reader.parse_args()
    began, wanted = time.monotonic(), groups(options)
    if options.list or not wanted:
        print("\n".join(group.name for group in wanted) or "no group has such a name")
        return 0 if options.list else 2
    if any(not group.threads for group in wanted) and shutil.which("mpirun") is None:
        sys.exit("compare: needs mpirun, or --launch threads")
    paths = {"before": options.before.resolve(), "after": options.after.resolve(), "again": options.before.resolve()}
    failures = {}
    rounds = measure_all(wanted, paths, options.rounds, began, began + 0.75 * options.seconds, failures)
    again = {group.name: [] for group in wanted}

    def judge_now():
        found, wholes = judge_all([group for group in wanted if rounds[group.name]], rounds, again, options.tolerance)
        return found, wholes, {one["group"] for one in found + wholes if one["verdict"] == "slower"}

    found, wholes, suspects = judge_now()
    if not suspects and len(rounds[wanted[-1].name]) < options.rounds:  # nothing to be measured once more, so there is time for the rest
        measure_all(wanted, paths, options.rounds, began, began + options.seconds, failures, rounds)
        found, wholes, suspects = judge_now()
    if suspects:
        print(f"# once more: {', '.join(sorted(suspects))}", flush=True)
        again.update(measure_all([group for group in wanted if group.name in suspects], paths, options.rounds, began, began + options.seconds, failures))
        for name in [name for name in suspects if len(again[name]) < LEAST_ROUNDS]:
            print(f"# {name}: no time was left to measure it once more")
            again[name] = []
        found, wholes, suspects = judge_now()
    few = [group.name for group in wanted if len(rounds[group.name]) < LEAST_ROUNDS and group.name not in failures]
    tell(found, wholes)
    for name in few:
        print(f"UNDECIDED: {name}: {len(rounds[name])} rounds, for want of time")
    if options.json:
        least = min(len(rounds[group.name]) for group in wanted)
        meta = provenance.metadata(f"Two builds of rondo compared, {options.device} device",
                                   f"python3 test/bench/compare.py --before PATH --after PATH --device {options.device} --rounds {options.rounds}",
                                   "us; ratio = after / before", f"medians of {least} rounds at least, all in this file", "the build before",
                                   before=f"sha256 {digest(options.before)}", after=f"sha256 {digest(options.after)}",
                                   launch=options.launch, tolerance=options.tolerance, seconds=round(time.monotonic() - began))
        options.json.write_text(json.dumps({"metadata": meta, "groups": wholes, "cells": found, "failures": failures, "undecided": few}, indent=1) + "\n")
    if failures or any(one["verdict"] == "slower" for one in found + wholes):
        return 1
    return 2 if few else 0


if __name__ == "__main__":
    sys.exit(main())
