"""Algorithms against each other between hosts that are network namespaces (root): what the papers claim of programs, here.

    python3 test/bench/programs.py [NAME ...]      alltoall alltoall-many alltonext alltonext-links allreduce

Each pair is measured in turn for some rounds; the figures are medians.
"""
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
os.environ.setdefault("RONDO_X_BUILD", "build")
from harness import program  # noqa: E402
from namespaces import Hosts  # noqa: E402

RATE, ROUNDS = os.environ.get("RATE", "1gbit"), int(os.environ.get("ROUNDS", "3"))
# collective, hosts, ranks a host, algorithms, smallest and largest size; -links: every rank of a host has an interface of its own
CLAIMS = {
    "alltoall": ("alltoall", 2, 3, ("linear", "twostep", "hierarchical"), "768", "768K"),
    "alltoall-many": ("alltoall", 2, 8, ("linear", "twostep"), "2K", "512K"),
    "alltonext": ("alltonext", 2, 2, ("chain", "spread"), "1K", "1M"),
    "alltonext-links": ("alltonext", 2, 2, ("chain", "spread"), "256K", "16M"),
    "allreduce": ("allreduce", 2, 2, ("ring", "compiled-hierarchical", "hierarchical"), "1K", "1M"),
}


def measure(hosts, places, prefix, collective, algorithm, least, most):
    command = [program("rondo"), "bench", collective, "--algorithm", algorithm, "-b", least, "-e", most, "-f", 4, "-n", 20, "-w", 3]
    with hosts.job(places, *command, RONDO_CHECK=0, seconds=60, **({"prefix": prefix} if prefix else {})) as job:
        job.finish()
        lines = job.ranks[0].lines
    return {int(line.split()[0]): float(line.split()[5]) for line in lines if line.split() and line.split()[0].isdigit()}


for name in sys.argv[1:] or CLAIMS:
    collective, count, ranks, algorithms, least, most = CLAIMS[name]
    times, links, prefix = {}, name.endswith("-links"), None
    with Hosts(count, RATE, paired=links, interfaces=ranks if links else 1) as hosts:
        places = [host for host in range(count) for _ in range(ranks)]
        if links:
            time.sleep(2)  # until the interfaces are seen to be up

            def prefix(rank):
                return [*hosts.enter(places[rank]), "env", f"UCX_NET_DEVICES=net{rank % ranks}"]
        for _ in range(ROUNDS):
            for algorithm in algorithms:
                for size, taken in measure(hosts, places, prefix, collective, algorithm, least, most).items():
                    times.setdefault(size, {}).setdefault(algorithm, []).append(taken)
    print(f"{collective}, {count} hosts of {ranks} ranks, {f'an interface of {RATE} each' if links else f'interfaces of {RATE}'}: us, median of {ROUNDS}")
    print(f"{'bytes':>10}" + "".join(f"{a:>24}" for a in algorithms))
    for size, row in sorted(times.items()):
        print(f"{size:>10}" + "".join(f"{statistics.median(row[a]):>24.1f}" for a in algorithms))
