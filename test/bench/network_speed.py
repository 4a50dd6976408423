#!/usr/bin/env python3
"""The network's figures (docs/performance.md), measured between network namespaces; needs root.

network_speed.py [PART ...]: veth, gigabit, hierarchical, compress, hop-by-hop, break-even; all of them if none is named. Each
prints a table, with its target where there is one. On a quiet machine: a few cores carry all the hosts. --json FILE keeps the tables,
and all that `rondo bench` said, with machine, day and commit (see docs/results).
"""
import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import provenance  # noqa: E402
from harness import BUILD, environment  # noqa: E402
from namespaces import Hosts  # noqa: E402

CUBIC = "cubic"  # Linux's default; a machine's own setting would change the figures
MIB = 1 << 20
TABLES, RUNS, PART = [], [], [""]  # the contents of --json; the part that is being measured


def size(bytes_):
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if bytes_ >= unit:
            return f"{bytes_ // unit} {name}"
    return f"{bytes_} B"


def finish(processes, seconds):
    """Waits for the processes and returns their outputs. No process is left in any case."""
    try:
        texts = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    for process, text in zip(processes, texts):
        if process.returncode != 0:
            sys.exit(f"{' '.join(process.args)}: status {process.returncode}\n{text}")
    return texts


def start(words, **extra):
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, env=environment(**extra))


def rows_of(path, what):
    run = json.loads(Path(path).read_text())
    rows = {row["bytes"]: row for row in run["rows"]}
    assert rows, path
    what["variables"] = {name: str(value) for name, value in what["variables"].items() if name not in ("RONDO_SECRET", "RONDO_ROOT", "RONDO_SIZE")}
    RUNS.append({**run, **what, "part": PART[0]})
    return rows


def bench(hosts, places, *options, seconds=170, **extra):
    """{bytes: row} of one `rondo bench`, rank r on host places[r]."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/rows.json"
        command = [BUILD / "rondo", "bench", *options, "--device", "host", "--json", out]
        extra = {"RONDO_SECRET": "open sesame", "UCX_TLS": "tcp", "RONDO_SIZE": len(places),
                 "RONDO_ROOT": f"{hosts.address(places[0])}:5555", **extra}
        finish([start([*hosts.enter(place), *command], RONDO_RANK=rank, **extra) for rank, place in enumerate(places)], seconds)
        return rows_of(out, {"hosts": places, "variables": extra, "options": [str(option) for option in options]})


def bench_mpi(hosts, slots, *options, seconds=170, **extra):
    """The same under mpirun, beside Open MPI over TCP."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/rows.json"
        words = hosts.mpirun(Path(folder), slots, "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                             "tcp,vader,self", "--mca", "btl_tcp_if_include", f"{hosts.net}.0/24")
        extra = {"RONDO_SECRET": "open sesame", "UCX_TLS": "tcp", "RONDO_ROOT": f"{hosts.address(0)}:5555", **extra}
        for name in extra:
            if name not in ("RONDO_SECRET", "RONDO_ROOT", "UCX_TLS"):
                words += ["-x", name]
        finish([start([*words, BUILD / "rondo", "bench", *options, "--device", "host", "--peer", "mpi", "--json", out], **extra)],
               seconds)
        return rows_of(out, {"slots": slots, "variables": extra, "options": [str(option) for option in options]})


def iperf(hosts, seconds=5, both=True):
    """Mbit/s of payload from host 0 to host 1, while (both) as much goes the other way."""
    server = start([*hosts.enter(1), "iperf3", "-s", "-1"])
    try:
        words = [*hosts.enter(0), "iperf3", "-c", hosts.address(1), "-t", seconds, "-O", 1, "-J", "--connect-timeout", 3000]
        for _ in range(50):
            text = subprocess.run([str(word) for word in [*words, *(["--bidir"] if both else [])]], stdout=subprocess.PIPE,
                                  text=True).stdout
            end = json.loads(text)["end"]
            if "sum_received" in end:
                found = [end["sum_received"]["bits_per_second"]]
                if both:
                    found.append(end["sum_received_bidir_reverse"]["bits_per_second"])
                return min(found) / 1e6
        sys.exit(f"iperf3: {text}")
    finally:
        server.kill()
        server.wait()




def table(title, head, rows):
    TABLES.append({"title": title, "head": head, "rows": rows})
    print(f"\n{title}\n")
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)), flush=True)


def median_run(runs, bytes_, key):
    """The row of that size in the median run."""
    return sorted((run[bytes_] for run in runs), key=lambda row: row[key])[len(runs) // 2]


# ---- the parts ----

def veth(options):
    """2 ranks, a veth pair, against Open MPI over TCP, interleaved."""
    with Hosts(2, congestion=CUBIC, paired=True) as hosts:
        runs = [bench_mpi(hosts, 1, "allreduce", "-b", options.min or "4K", "-e", options.max or "16M", "-f", 2, **options.set)
                for _ in range(options.runs)]
    rows = []
    for bytes_ in sorted(runs[0]):
        row = median_run(runs, bytes_, "ratio")
        rows.append([size(bytes_), f"{row['time_us']:.1f}", f"{row['peer_time_us']:.1f}", f"{row['ratio']:.2f}",
                     " ".join(f"{run[bytes_]['ratio']:.2f}" for run in runs)])
    table("all-reduce of 2 ranks on 2 hosts joined by veth, UCX over TCP, beside Open MPI over TCP (target: 1.0 from 64 KiB)",
          ["bytes", "us", "Open MPI", "ratio", "of each run"], rows)


def gigabit(options):
    """2 ranks on a link of 1 Gbit/s: what an all-reduce moves each way, by what iperf3 moves when both ways are used."""
    rows = []
    with Hosts(2, rate="1gbit", congestion=CUBIC, paired=True) as hosts:
        found = []
        for _ in range(options.runs):
            link = iperf(hosts, 3)
            run = bench(hosts, [0, 1], "allreduce", "-b", options.min or "4M", "-e", options.max or "64M", "-f", 2, "-n", 5,
                        **options.set)
            found.append((link, run))
    for bytes_ in sorted(found[0][1]):
        moved = [bytes_ * 8 / run[bytes_]["time_us"] for _, run in found]  # Mbit/s: of 2 ranks, each sends the size once
        shares = [100 * mbit / link for mbit, (link, _) in zip(moved, found)]
        rows.append([size(bytes_), f"{statistics.median(moved):.0f}", f"{statistics.median(link for link, _ in found):.0f}",
                     f"{statistics.median(shares):.1f}", " ".join(f"{share:.1f}" for share in shares)])
    table("all-reduce of 2 ranks on a link of 1 Gbit/s (target: 95% of iperf3 from 4 MiB)",
          ["bytes", "Mbit/s", "iperf3", "%", "of each run"], rows)


def hierarchical(options):
    """2 hosts of 2 ranks on a link of 1 Gbit/s: the hierarchical program beside a flat ring whose order goes back and forth."""
    rows = []
    with Hosts(2, rate="1gbit", congestion=CUBIC, paired=True) as hosts:
        runs = []
        for _ in range(options.runs):
            runs.append([bench(hosts, [0, 0, 1, 1], "allreduce", "-b", options.min or "1M", "-e", options.max or "16M", "-f", 2,
                               "-n", 5, "--mode", "persistent", "--algorithm", name, **options.set)
                         for name in ("hierarchical", "ring")])
    for bytes_ in sorted(runs[0][0]):
        ratios = [ring[bytes_]["time_us"] / hier[bytes_]["time_us"] for hier, ring in runs]
        times = [statistics.median(pair[i][bytes_]["time_us"] for pair in runs) / 1e3 for i in range(2)]
        rows.append([size(bytes_), f"{times[0]:.1f}", f"{times[1]:.1f}", f"{statistics.median(ratios):.2f}",
                     " ".join(f"{ratio:.2f}" for ratio in ratios)])
    table("all-reduce of 2 hosts x 2 ranks on a link of 1 Gbit/s, ms (target: ring / hierarchical above 1)",
          ["bytes", "hierarchical", "ring", "ratio", "of each run"], rows)


TARGETS = {("ring", 16): 42, ("ring", 8): 70, ("recursive-doubling", 16): 40, ("recursive-doubling", 8): 62}


def compressed(hosts, algorithm, rate, bytes_, options):
    ranks = list(range(hosts.count))
    rows = bench(hosts, ranks, "allreduce", "-b", bytes_, "-e", bytes_, "-n", options.iterations, "-w", 1, "--mode", "persistent",
                 "--algorithm", algorithm, "--compress", rate, RONDO_TIMEOUT=120, **options.set)
    return next(iter(rows.values()))


def compress(options):
    """4 hosts on links of 100 Mbit/s: by how much less an all-reduce takes when it compresses."""
    rows = []
    with Hosts(4, rate="100mbit", congestion=CUBIC) as hosts:
        for (algorithm, rate), target in TARGETS.items():
            row = compressed(hosts, algorithm, rate, options.max or "64M", options)
            rows.append([algorithm, rate, f"{row['plain_time_us'] / 1e3:.0f}", f"{row['time_us'] / 1e3:.0f}",
                         f"{row['less_percent']:.1f}", target])
    table(f"all-reduce of {options.max or '64M'} floats' bytes, 4 hosts on 100 Mbit/s, ms without and with compression",
          ["algorithm", "rate", "without", "with", "less, %", "target"], rows)


def spent():
    """Seconds of processors that processes which have ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hop_by_hop(options):
    """The same beside the variant that encodes anew at every hop, from 4 MiB up, in turn, each run the other way round."""
    rows = []
    names = ["ring", "recursive-doubling", "ring-hop"]
    for link in options.links or ("100mbit", "2500mbit"):
        with Hosts(4, rate=link, congestion=CUBIC) as hosts:
            for bytes_ in ("4M", "16M"):
                for rate in (16, 8):
                    times, seconds = {name: [] for name in names}, {name: [] for name in names}
                    for run in range(options.runs):
                        for name in names if run % 2 == 0 else names[::-1]:
                            before = spent()
                            found = bench(hosts, list(range(4)), "allreduce", "-b", bytes_, "-e", bytes_, "-n", options.iterations, "-w", 1,
                                          "--mode", "persistent", "--algorithm", name, RONDO_COMPRESS=rate, RONDO_COMPRESS_MIN=0,
                                          RONDO_TIMEOUT=120, **options.set)
                            times[name].append(next(iter(found.values()))["time_us"] / 1e3)
                            seconds[name].append(spent() - before)
                    rows.append([link, bytes_, rate, *(f"{statistics.median(times[name]):.2f}" for name in names),
                                 *(f"{statistics.median(seconds[name]):.2f}" for name in names)])
    table("all-reduce, 4 hosts, compressed, ms (target: ring below ring-hop), and seconds of processors a run, waiting included",
          ["link", "bytes", "rate", *names, *(f"{name}, s" for name in names)], rows)


def break_even(options):
    """The rate of the links above which compression does not pay; 2 cores compress for all 4 hosts."""
    rows = []
    for link in options.links or ("100mbit", "300mbit", "1gbit", "2500mbit", "5gbit", "10gbit"):
        with Hosts(4, rate=link, congestion=CUBIC) as hosts:
            for rate in (16, 8):
                row = compressed(hosts, "ring", rate, options.max or "16M", options)
                rows.append([link, rate, f"{row['plain_time_us'] / 1e3:.1f}", f"{row['time_us'] / 1e3:.1f}",
                             f"{row['less_percent']:.1f}"])
    table(f"ring all-reduce of {options.max or '16M'}, 4 hosts, ms without and with compression",
          ["link", "rate", "without", "with", "less, %"], rows)


PARTS = {part.__name__.replace("_", "-"): part for part in (veth, gigabit, hierarchical, compress, hop_by_hop,
                                                                break_even)}


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("parts", nargs="*", help=" ".join(PARTS))
    reader.add_argument("--runs", type=int, default=3, help="of each figure; the median counts")
    reader.add_argument("--iterations", type=int, default=3, help="of a run, where all-reduces take long")
    reader.add_argument("--min", help="smallest size, of the parts that go through sizes")
    reader.add_argument("--max", help="largest size, or the size")
    reader.add_argument("--links", nargs="+", metavar="RATE", help="of the links, where a part goes through several")
    reader.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the ranks")
    reader.add_argument("--json", metavar="FILE", help="the tables and all runs, with machine, day and commit")
    options = reader.parse_args()
    options.set = dict(one.split("=", 1) for one in options.set)
    for name in options.parts or PARTS:
        if name not in PARTS:
            sys.exit(f"no part {name}: there are {' '.join(PARTS)}")
        PART[0] = name
        PARTS[name](options)
    if options.json:
        rivals = sorted({run["peer_version"] or "MPI of unknown version" for run in RUNS if run.get("peer")})
        meta = provenance.metadata("Speed between network namespaces, UCX over TCP", " ".join(["test/bench/network_speed.py", *sys.argv[1:]]),
                                   "us; ratio = peer's time / Rondo's; each table names its own", f"{options.runs}, all in this file",
                                   ", ".join(rivals) or "none", congestion=CUBIC)
        Path(options.json).write_text(json.dumps({"metadata": meta, "tables": TABLES, "runs": RUNS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
