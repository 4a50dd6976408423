#!/usr/bin/env python3
"""Writes the files of data/ whose figures exist only as tables and sentences of the documents at commit 793e82f, whose raw runs were
not kept. Reads the documents with git; a figure is taken by its place in a table or by a pattern, and never typed here.

usage: transcribe.py [--check]      --check: compares with the files there are, and writes nothing
"""
import csv
import io
import pathlib
import re
import subprocess
import sys

import tables

HERE = pathlib.Path(__file__).resolve().parent
COMMIT = "793e82f"
KIND = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
COLLECTIVES = {"all-reduce": "allreduce", "broadcast": "bcast", "all-gather": "allgather", "all-to-all": "alltoall",
               "reduce": "reduce", "reduce-scatter": "reduce_scatter", "send and receive": "sendrecv", "send/recv": "sendrecv",
               "send/recv ring": "sendrecv", "send/recv, both ways": "sendrecv"}
EPYC2 = "two cores of an AMD EPYC that share a third-level cache, virtual machine"
XEON16 = "16 cores of an Intel Xeon, virtual machine"
H200_2 = "2 NVIDIA H200 joined by NVLink (NVSwitch), driver 580, CUDA 13.0"
H200_4 = "4 NVIDIA H200 joined by NVLink (NVSwitch), driver 580, CUDA 13.0"
NCCL = "NCCL 2.28.3, NVLS off"
OMPI = "Open MPI 4.1.4"


def document(path):
    return subprocess.run(["git", "show", f"{COMMIT}:{path}"], cwd=HERE, capture_output=True, text=True, check=True).stdout


def clean(cell):
    """Without bold, and thousands without commas; pairs in brackets, (32,128), keep theirs."""
    return re.sub(r"(?<!\(\d)(?<!\(\d\d)(?<=\d),(?=\d{3}\b)", "", cell.strip().replace("**", ""))


def table(path, head):
    """The rows of the table whose head begins so, as lists of cells; the head first."""
    lines = document(path).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("| " + head))
    rows = []
    while at < len(lines) and lines[at].startswith("|"):
        if not re.fullmatch(r"[|\s:-]+", lines[at]) or not rows:
            rows.append([clean(cell) for cell in lines[at].strip()[1:-1].split("|")])
        at += 1
    return rows


def prose(path, pattern):
    """The groups of a pattern; a blank in it matches any white space."""
    found = re.search(pattern.replace(" ", r"\s+"), document(path), re.S)
    assert found, (path, pattern)
    return found.groups()


def size(text):
    number, kind = re.fullmatch(r"([\d.]+) (B|KiB|MiB|GiB)", text).groups()
    return int(float(number) * KIND[kind])


def numbers(text):
    return re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)


def by_size(rows, keys, names):
    """Rows of (keys..., a cell a size) made one row a cell that is not empty; names: of the numbers in a cell."""
    for row in rows[1:]:
        for head, cell in zip(rows[0][keys:], row[keys:]):
            if numbers(cell):
                yield [*row[:keys], size(head), *numbers(cell)[:names]]


def mover_of(name, collective):
    """(collective, mover) of a row's name, which names no collective where it is that of the row above."""
    if name == "NCCL":
        return collective, "NCCL"
    if "the engine" in name:
        return collective, "engine"
    return COLLECTIVES[re.match(r"[a-z/-]+", name).group()], "TMA"


# ---- what each file holds: (name, metadata, columns, rows) ----

def files():
    host, gpu, net, comp = (f"docs/{name}.md" for name in ("host-performance", "gpu-performance", "network", "compression"))
    bench = "mpirun -n {ranks} build/rondo bench {collective} -b 8 -e 32M -f 4 --device host --peer mpi"

    def of(title, machine, date, command, unit, rival, runs, source, **more):
        return {"title": title, "machine": machine, "date": date, "command": command, "unit": unit, "rival": rival, "runs": runs,
                "library": "development version of that date; the commit was not recorded",
                "source": f"table of {source} at {COMMIT}; raw run not kept", **more}

    # -- host --
    printed = re.findall(r"^ +(\d+) +\d+ +float +sum +-1 +([\d.]+) +[\d.]+ +[\d.]+ +- +([\d.]+) +([\d.]+)$", document("README.md"), re.M)
    yield ("host-2-cores-openmpi-4",
           of("All-reduce, 2 ranks on two cores, beside Open MPI 4.1.4", EPYC2, "2026-11-23",
              "mpirun -n 2 build/rondo bench allreduce -b 8 -e 64M -f 4 --device host --peer mpi", "us; ratio = peer's time / Rondo's",
              OMPI, "the first of three runs", "README.md"),
           ["collective", "ranks", "bytes", "time_us", "peer_time_us", "ratio"], [["allreduce", 2, *row] for row in printed])
    rows = table(host, "all-reduce | 2 ranks")
    yield ("host-16-cores-openmpi-4-allreduce",
           of("All-reduce on 16 cores beside Open MPI 4.1.4", XEON16, "2026-11-23", bench.replace("{collective}", "allreduce"),
              "us; ratio = peer's time / Rondo's", OMPI, "medians of three runs", host),
           ["collective", "ranks", "bytes", "time_us", "ratio"],
           [["allreduce", numbers(head)[0], size(row[0]), *numbers(cell)] for row in rows[1:] for head, cell in zip(rows[0][1:], row[1:])])
    rows = table(host, "| ranks | 8 B")
    for i, row in enumerate(rows[1:], 1):
        row[0] = row[0] or rows[i - 1][0]
    yield ("host-16-cores-openmpi-4-collectives",
           of("Collectives on 16 cores beside Open MPI 4.1.4", XEON16, "2026-11-23", bench.replace("-f 4", "-f 16"),
              "ratio = peer's time / Rondo's", OMPI, "one run", host),
           ["collective", "ranks", "bytes", "ratio"], [[COLLECTIVES[row[0]], *row[1:]] for row in by_size(rows, 2, 1)])
    yield from host_gains(host, of)

    # -- GPUs --
    stream = "build/rondo bench {collective} --device cuda --ranks {ranks} --mode stream -b {low} -e {high} -f 4 --peer nccl"
    text = document("README.md")
    text = text[text.index("| on another machine, NCCL at"):].splitlines()[:2]
    head = [size(cell) for cell in table("README.md", "| 8 B | 512 B | 8 KiB")[0][1:]]
    times, ratios = ([clean(cell) for cell in line.strip()[1:-1].split("|")[1:]] for line in text)
    yield ("gpu-2-allreduce-stream-second-machine",
           of("All-reduce in stream mode on 2 GPUs beside NCCL, another machine", H200_2 + " (another machine; NCCL's small all-reduces take 7.1 us)",
              "2026-11-22", "make gpu-bench", "us; ratio = NCCL's time / Rondo's", NCCL, "medians of two runs", "README.md"),
           ["collective", "ranks", "bytes", "time_us", "ratio"], [["allreduce", 2, *row] for row in zip(head, times, ratios)])
    two = prose(gpu, r"take ([\d.]+) to ([\d.]+) ms in one order \(NCCL ([\d.]+): ([\d.]+) to ([\d.]+) times as fast\) and ([\d.]+) to ([\d.]+) ms in another "
                     r"random order on each GPU, where NCCL would hang \(([\d.]+) to ([\d.]+) times")
    four = prose(gpu, r"The gradients of a ResNet-50 ([\d.]+) and ([\d.]+) ms in two runs \(NCCL ([\d.]+)\)")
    yield ("gpu-gradients",
           of("The 161 gradients of a ResNet-50 as persistent all-reduces beside NCCL", "2 and 4 NVIDIA H200 joined by NVLink (NVSwitch), driver 580",
              "2026-11-22", "build/rondo bench gradients --device cuda --ranks {ranks} --peer nccl", "ms a step; the peer's in one order for all ranks",
              NCCL, "2 GPUs: the range of three runs' medians; 4 GPUs: two runs", gpu),
           ["ranks", "order", "time_low_ms", "time_high_ms", "peer_time_ms"],
           [[2, "same", two[0], two[1], two[2]], [2, "random", two[5], two[6], two[2]],
            [4, "random", *four]])
    rows = table(gpu, "| 16 MiB | 64 MiB | 256 MiB | 1 GiB |")
    yield ("gpu-2-direct-write",
           of("Large messages stored straight into the receiver's buffer, 2 GPUs beside NCCL", H200_2, "2026-11-22",
              stream.format(collective="{collective}", ranks=2, low="16M", high="1G"), "us; ratio = NCCL's time / Rondo's, through slots and by direct write",
              NCCL, "medians of three runs; the ratio through slots was measured on another machine of the kind", gpu),
           ["collective", "ranks", "bytes", "time_us", "ratio_slots", "ratio"],
           [[COLLECTIVES[row[0]], 2, *row[1:]] for row in by_size(rows, 1, 3)])
    found, collective = [], ""
    for row in table(gpu, "| blocks | 64 MiB")[1:]:
        collective, mover = mover_of(row[0], collective) if row[0] else (collective, "TMA")
        found += [[collective, mover, row[1].replace(" ", ""), size(head), cell] for head, cell in zip(("64 MiB", "256 MiB", "1 GiB"), row[2:])]
    yield ("gpu-4-move-tma",
           of("The TMA mover on 4 GPUs", H200_4, "2026-11-22",
              "RONDO_PROTOCOL=bulk build/rondo bench {collective} --device cuda --ranks 4 --mode stream -b 64M -e 1G -f 4 --peer nccl", "GB/s each way",
              NCCL, "the engine's and NCCL's from other runs on machines of the same kind", gpu),
           ["collective", "mover", "blocks", "bytes", "busbw_gbs"], found)
    text = document(gpu)
    text = text[text.index("On two GPUs, us; the engine is what is chosen:"):]
    found, collective, mover = [], "", ""
    for line in [line for line in text.splitlines()[4:20] if line.startswith("| ")]:
        name, *cells = (clean(cell) for cell in line.strip()[1:-1].split("|"))
        blocks = re.search(r"(?:^|, )(\d[\d+ ]*?)(?: blocks)?$", name)
        name = name[:blocks.start()] if blocks else name
        collective, mover = mover_of(name, collective) if name else (collective, mover)
        found += [[collective, mover, blocks.group(1).replace(" ", "") if blocks else "", size(head), cell]
                  for head, cell in zip(("16 MiB", "64 MiB", "256 MiB", "1 GiB"), cells) if cell]
    yield ("gpu-2-move-tma",
           of("The TMA mover on 2 GPUs", H200_2, "2026-11-22",
              "RONDO_PROTOCOL=bulk build/rondo bench {collective} --device cuda --ranks 2 --mode stream -b 16M -e 1G -f 4 --peer nccl", "us", NCCL,
              "one run", gpu), ["collective", "mover", "blocks", "bytes", "time_us"], found)
    yield from gpu_gains(gpu, of)

    # -- network --
    veth = "make bench-network PARTS={part} OPTIONS=\"--runs 7\""
    tcp = "two cores of an AMD EPYC for all hosts, network namespaces, UCX 1.13 over TCP (cubic)"
    rows = table(net, "bytes | Rondo, us")
    yield ("network-veth",
           of("All-reduce between two hosts on a veth pair beside Open MPI over TCP", tcp, "2026-11-22", veth.format(part="veth"),
              "us; ratio = peer's time / Rondo's", OMPI, "the middle one of 7 runs; low and high without the two most extreme", net),
           ["collective", "ranks", "bytes", "time_us", "peer_time_us", "ratio", "ratio_low", "ratio_high"],
           [["allreduce", 2, size(row[0]), row[1], row[2], numbers(row[3])[0], *numbers(row[4])] for row in rows[1:]])
    rows = table(net, "bytes | Mbit/s")
    yield ("network-gigabit",
           of("All-reduce of two hosts on 1 Gbit/s beside iperf3", tcp, "2026-11-22", veth.format(part="gigabit").replace("7", "3"),
              "Mbit/s each way, both ways used at once", "iperf3", "median of 3 runs", net),
           ["bytes", "rate_mbits", "iperf3_mbits", "share_percent"], [[size(row[0]), *row[1:]] for row in rows[1:]])
    rows = table(net, "bytes | hierarchical")
    yield ("network-hierarchical",
           of("All-reduce of 2 hosts x 2 ranks on 1 Gbit/s, hierarchical and flat ring", tcp, "2026-11-22",
              veth.format(part="hierarchical").replace("7", "3"), "ms; ratio = ring / hierarchical", "none", "median of 3 runs", net),
           ["bytes", "hierarchical_ms", "ring_ms", "ratio"], [[size(row[0]), *row[1:]] for row in rows[1:]])
    rows = table(net, "bytes | one step to all")
    yield ("network-algorithms",
           of("All-reduce of 4 hosts by algorithm", tcp, "2026-11-22", "build/rondo bench allreduce --algorithm {algorithm} between network namespaces",
              "us", "none", "not recorded", net),
           ["link", "bytes", "one_step_us", "doubling_us", "ring_us"],
           [["veth", size(row[0]), *row[1:4]] for row in rows[1:]] + [["1 Gbit/s", size(row[0]), *row[4:7]] for row in rows[1:]])
    rows = table(net, "threads a rank | UCX and the staging")
    found, machine = [], "32 cores"
    for row in rows[1:]:
        if row[0].startswith("on another machine"):
            machine = "another machine"
        for head, cell in zip(("16 MiB", "64 MiB"), row[2:]):
            found.append([machine, numbers(row[0])[0], size(head), *numbers(row[1]), *numbers(cell)])
    yield ("network-gpu",
           of("GPUs of one host as if on two, UCX over TCP, beside UCX and the staging copies alone", H200_2 + ", 32 cores", "2026-11-22",
              "make gpu-network", "GB/s each way; ratio = Rondo's / the best of UCX and the copies", "UCX 1.13 over TCP, loopback", "medians of five rounds", net),
           ["machine", "threads", "bytes", "ucx_4_slots", "ucx_8_slots", "ucx_16_slots", "rondo", "ratio"], found)

    # -- compression --
    rows = table(comp, "rate | ring | recursive doubling | ring, hop by hop")
    yield ("compression-error",
           of("Norm of the errors of compressed all-reduces by the norm of the exact result, 4 ranks", EPYC2 + " (the text names no machine)", "2026-11-21",
              "build/rondo bench allreduce --ranks 4 --device host -b 1K -e 16M --compress {rate} --algorithm {algorithm} --json -", "relative norm", "none",
              "deterministic", comp, dated_by="the commit that brought the table; the text has no date"),
           ["rate", "ring", "recursive_doubling", "ring_hop"], rows[1:])
    rows = table(comp, "rate | ring | ring, feedback")
    yield ("compression-accuracy",
           of("Test accuracy of examples/train, 4 ranks, 30 epochs, 360 test digits", EPYC2 + " (the text names no machine)", "2026-11-21", "make/accuracy 8", "percent", "none",
              "mean of 8 seeds", comp, dated_by="the commit that brought the table; the text has no date"),
           ["rate", "ring", "ring_feedback", "recursive_doubling", "recursive_doubling_feedback"], rows[1:])
    rows = table(comp, "rate | encode: libzfp")
    yield ("compression-codec",
           of("The ZFP code alone on one core", "one core of an AMD EPYC with AVX-512", "2026-11-21", "build/test/test_zfp --speed",
              "GB/s of uncompressed floats", "libzfp 1.0", "not recorded", comp, dated_by="the commit that brought the table; the text has no date"),
           ["direction", "rate", "libzfp", "baseline", "avx2", "avx512"],
           [["encode", row[0], *row[1:5]] for row in rows[1:]] + [["decode", row[0], *row[5:9]] for row in rows[1:]])
    found = prose(comp, r"rate 4, encode (\d+) \(([\d.]+)\), decode (\d+) \(([\d.]+)\); rate 8, (\d+) \(([\d.]+)\) and (\d+) \(([\d.]+)\); rate 16, (\d+) "
                        r"\(([\d.]+)\) and (\d+) \(([\d.]+)\); rate 32, (\d+) \(([\d.]+)\) and (\d+) \(([\d.]+)\)")
    yield ("compression-codec-gpu",
           of("The ZFP code alone on an H200", "NVIDIA H200, 528 blocks of 512 threads, and one block alone", "2026-11-22", "build/test/gpu_zfp --speed",
              "GB/s of uncompressed floats", "none", "not recorded", comp, dated_by="the commit that brought the table; the text has no date"),
           ["rate", "encode", "encode_one_block", "decode", "decode_one_block"], [[rate, *found[4 * i:4 * i + 4]] for i, rate in enumerate((4, 8, 16, 32))])
    rows = table(comp, "algorithm | rate | without")
    yield ("compression-slow-link",
           of("Compressed all-reduce of 64 MiB of floats between 4 hosts on 100 Mbit/s", tcp, "2026-11-22", "make bench-network PARTS=compress", "ms", "none",
              "one run", comp, dated_by="the commit that brought the table; the text has no date"),
           ["algorithm", "rate", "without_ms", "with_ms", "less_percent", "target_percent"], rows[1:])
    rows = table(comp, "link | without | rate 16")
    yield ("compression-break-even",
           of("Where compression stops paying: 16 MiB by the ring, 4 hosts", tcp, "2026-11-21", "make bench-network PARTS=break-even", "ms", "none", "one run", comp, dated_by="the commit that brought the table; the text has no date"),
           ["link", "rate", "without_ms", "with_ms", "less_percent"],
           [[row[0], rate, row[1], row[at], row[at + 1]] for row in rows[1:] for rate, at in ((16, 2), (8, 4))])
    rows = table(comp, "GPUs | bytes | rate")
    yield ("compression-gpu",
           of("Compressed all-reduce of GPUs through host memory, ring", "2 and 4 NVIDIA H200, driver 580", "2026-11-22",
              "RONDO_BLOCKS=120 build/rondo bench allreduce --device cuda --ranks {ranks} --transports shm --algorithm ring -b 16M -e 256M -f 4 --mode stream --compress {rate}",
              "us", "none", "2 GPUs: two runs; 4 GPUs: measured before two blocks shared a multiprocessor", comp),
           ["ranks", "bytes", "rate", "without_us", "with_us", "less_percent"],
           [[numbers(row[0])[0], size(row[1]), row[2], numbers(row[3])[0], numbers(row[4])[0], row[5]] for row in rows[1:]])
    rows = table(comp, "link | bytes | rate | runs")
    yield ("compression-hop-by-hop",
           of("Compressed ring beside encoding anew at every hop, 4 hosts", tcp, "2026-11-22",
              "make bench-network PARTS=hop-by-hop OPTIONS=\"--runs {runs} --iterations 20 --links {link}\"", "ms; s of processors", "none", "medians", comp, dated_by="the commit that brought the table; the text has no date"),
           ["link", "bytes", "rate", "runs", "ring_ms", "ring_hop_ms", "less_percent", "ring_s", "ring_hop_s"],
           [[row[0], size(row[1]), *row[2:]] for row in rows[1:]])

    # -- programs written for NCCL --
    two = prose("docs/nccl.md", r"all_reduce (\d+), reduce_scatter (\d+), all_gather (\d+), broadcast (\d+), reduce (\d+), sendrecv (\d+), hypercube (\d+);"
                                r".*?gather (\d+), alltoall (\d+), scatter (\d+)\.")
    four = prose("docs/nccl.md", r"all_reduce (\d+) GB/s, reduce_scatter (\d+), all_gather (\d+), reduce (\d+) at 1 GiB")
    names = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "sendrecv", "hypercube", "gather", "alltoall", "scatter")
    yield ("nccl-tests",
           of("NVIDIA's nccl-tests on the drop-in at 1 GiB", "2 and 4 NVIDIA H200 joined by NVLink (NVSwitch), driver 580", "2026-11-22",
              "{test}_perf -b 8 -e 1G -f 2 -c 1 -t {ranks}", "GB/s, bus bandwidth", "none", "one run; 33 runs of all kinds with 0 wrong", "docs/nccl.md",
              versions="nccl-tests v2.14"),
           ["test", "ranks", "busbw_gbs"],
           [[name, 2, value] for name, value in zip(names, two)]
           + [[name, 4, value] for name, value in zip(("all_reduce", "reduce_scatter", "all_gather", "reduce"), four)])
    two = prose("README.md", r"a step takes ([\d.]+) ms under DistributedDataParallel \(NCCL ([\d.]+): ([\d.]+) times its speed\) and ([\d.]+) ms under FSDP2 "
                             r"with a second communicator \(([\d.]+): ([\d.]+)\)")
    four = prose("README.md", r"([\d.]+) and ([\d.]+) ms under DistributedDataParallel \(NCCL ([\d.]+): ([\d.]+) times its speed\), ([\d.]+) and ([\d.]+) under "
                              r"FSDP2 \(NCCL ([\d.]+): ([\d.]+)\)")
    again = prose("README.md", r"on another machine ([\d.]+) and ([\d.]+) \(([\d.]+): ([\d.]+)\), ([\d.]+) and ([\d.]+) \(([\d.]+): ([\d.]+)\)")
    yield ("pytorch",
           of("A step of a small transformer in PyTorch 2.11 on the drop-in beside NCCL", "2 and 4 NVIDIA H200 joined by NVLink (NVSwitch), driver 580",
              "2026-11-22", "python3 examples/pytorch/compare.py --library build/nccl/libnccl.so.2 --gpus {ranks} --repeats 3",
              "ms a step; ratio = NCCL's time / Rondo's", "NCCL of PyTorch 2.11's wheel",
              "2 GPUs: medians of three; 4 GPUs: Rondo, NCCL, Rondo in turn", "README.md"),
           ["ranks", "machine", "wrapper", "rondo_ms", "rondo_again_ms", "nccl_ms", "ratio"],
           [[2, "first", "DistributedDataParallel", two[0], "", two[1], two[2]], [2, "first", "FSDP2", two[3], "", two[4], two[5]],
            [4, "first", "DistributedDataParallel", *four[:4]], [4, "first", "FSDP2", *four[4:]],
            [4, "second", "DistributedDataParallel", *again[:4]], [4, "second", "FSDP2", *again[4:]]])

    # -- simulator --
    rows = table("docs/simulator.md", "row | paper")
    yield ("sim-paper",
           of("Share of rounds that deadlock: the paper's, and rondo sim's", "two busy cores of an AMD EPYC", "2026-11-21", "build/rondo sim --table --json", "percent of rounds, 95% interval",
              "the paper's table", "32,000 rounds a row", "docs/simulator.md", dated_by="the commit that brought the table; the text has no date"),
           ["row", "paper", "intersection", "intersection_low", "intersection_high", "cycle", "cycle_low", "cycle_high"],
           [[row[0], row[1], *(numbers(row[2]) or ["", "", ""]), *(numbers(row[3]) + ["", ""])[:3]] for row in rows[1:]])
    rows = table("docs/simulator.md", "ranks | all-reduces")
    yield ("sim-model",
           of("rondo stress beside rondo sim's model of it", "two quiet cores of an AMD EPYC that all ranks share, Linux 6.18", "2026-11-22", "python3 tools/sim_validate.py", "ms, and a rank and iteration; median (range)",
              "none", "medians and extremes of three runs, of two in the last four rows", "docs/simulator.md", dated_by="the commit that brought the table; the text has no date"),
           ["ranks", "allreduces", "synchronizations", *(f"{what}_{side}{part}" for what in ("iteration_ms", "preemptions", "quits")
                                                       for side in ("measured", "model") for part in ("", "_low", "_high"))],
           [[*row[:3], *(number for cell in row[3:] for number in numbers(cell))] for row in rows[1:]])


GAINS = ["change", "measured", "before", "after", "unit"]


def gains(path, *entries):
    """Rows of (change, measured, before, after, unit): an entry is (change, unit, pattern, what its pairs of figures were measured on)."""
    for change, unit, pattern, *measured in entries:
        figures = [figure.replace(",", "") for figure in prose(path, pattern)]
        assert len(figures) == 2 * len(measured), (pattern, figures)
        for what, before, after in zip(measured, figures[::2], figures[1::2]):
            yield [change, what, before, after, unit]


def host_gains(host, of):
    n, r = r"([\d.,]*\d)", r"([\d.]+ to [\d.]+|[\d.]+)"
    ratio = "times Open MPI 4.1.4's speed"
    entries = (
        ("Slots are written by bulk copies", "us", f"An all-reduce of 4 MiB in 128 KiB slots: {n} us with stores to both destinations, {n} us folding",
         "all-reduce of 4 MiB, 2 ranks"),
        ("No LL between ranks of a host", "us", f"8 bytes in {n} us with LL, {n} us without", "all-reduce of 8 B, 2 ranks"),
        ("Short spins", "s", f"took {n} s with 10,000 polls for the first task, [\\d.]+ s with 300, {n} s with 100",
         "gradients in shuffled order, 2 ranks on two cores, 10,000 polls and 100"),
        ("A start does not call the block's thread that came too late", "us", f"1 MiB {n} \\(47\\) us before, {n} \\(36\\) now; 1 KiB {n} \\(1.4\\) before, {n} \\(0.9\\) now",
         "persistent all-reduce of 1 MiB, 2 ranks as threads", "persistent all-reduce of 1 KiB, 2 ranks as threads"),
        ("Direct write within a process", "us", f"2 ranks {n} and {n} at 1 MiB, {n} and {n} at 4 MiB, {n} and {n} at 16 MiB, {n} and {n} at 64;",
         *(f"send/receive of {size} MiB, 2 ranks as threads" for size in (1, 4, 16, 64))),
        ("A daemon begins with block 0 alone", "us", f"of 8 bytes took {r} us on 4 ranks \\(4 blocks each\\) and {r} on 8 .*? block 0's alone: {n} and {n} us",
         "PAIR-CROSSED"),
        ("Block 0 stays with the waiting thread", "us", f"all-reduce of 256 KiB \\({n} us became {n}\\)", "all-reduce of 256 KiB, 16 cores"),
        ("A quarter of the cores stays free of blocks", "ms", f"on 16 cores took {r} ms at 512 KiB, with one each {n}", "all-reduce of 512 KiB, 8 ranks on 16 cores"),
        ("Request cache", "us", f"2 ranks as threads: {n} us before, {n} now; send and receive {n} and {n}\\. \\(The 0.48", "all-reduce of 8 B, 2 ranks as threads",
         "send/receive of 8 B, 2 ranks as threads"),
        ("Inline execution", "us", f"Two ranks as threads, medians in turn: {n} us before, {n} now; send and receive {n} and {n}\\.",
         "all-reduce of 8 B, 2 ranks as threads", "send/receive of 8 B, 2 ranks as threads"),
        ("Store policy: slots past the caches where cores share none", "us", f"send and receive of 64 KiB {n} and {n}, 1 MiB {n} and {n}; all-to-all of 1 MiB {n} and {n}; "
         f"broadcast of 1 MiB {n} and {n}; all-reduce of 512 KiB {n} and {n},", "send/receive of 64 KiB", "send/receive of 1 MiB", "all-to-all of 1 MiB",
         "broadcast of 1 MiB", "all-reduce of 512 KiB"),
        ("Tiny slots", "us", f"broadcast of 8 B {n} and {n} \\(.*?\\), 64 B {n} and {n} \\(.*?\\); reduce of 8 B {n} and {n} \\(.*?\\), 64 B {n} and {n} ",
         "broadcast of 8 B, 4 ranks on two cores", "broadcast of 64 B, 4 ranks on two cores", "reduce of 8 B, 4 ranks on two cores", "reduce of 64 B, 4 ranks on two cores"),
        ("Small calls under the queue lock", ratio, f"at 8 B: all-reduce {n} and {n}, {n} and {n}; broadcast {n} and {n}, {n} and {n}; reduce {n} and {n}, {n} and {n}; "
         f"all-to-all {n} and {n}, {n} and {n}; all-gather {n} and {n}, {n} and {n}; reduce-scatter {n} and {n}, {n} and {n};",
         *(f"{name} of 8 B, {ranks} ranks on two cores" for name in ("all-reduce", "broadcast", "reduce", "all-to-all", "all-gather", "reduce-scatter") for ranks in (2, 4))),
        ("A group's messages under one lock", ratio, f"two ranks {n} before and {n} now \\(512 B {n} and {n}\\), four on two cores {n} and {n};",
         "send/receive of 8 B, 2 ranks", "send/receive of 512 B, 2 ranks", "send/receive of 8 B, 4 ranks on two cores"),
        ("Eight calls in the request cache", "us a call", f"one of them {n} before and {n} now, two {n} and {n}, all four {n} and {n}\\.", "one call again and again, 2 ranks",
         "two calls in turn, 2 ranks", "four calls in turn, 2 ranks"),
        ("Starts call no thread", "us", f"nonblocking 8 B {r} and {r} \\(.*?\\), 2 KiB {r} and {r} \\(.*?\\), 32 KiB {r} and {r} \\(3.4\\), 512 KiB {r} and {r} \\(2.2\\); "
         f"persistent 8 B {r} and {r} \\(", *(f"{mode} all-reduce of {size}, 2 ranks" for mode, size in (("nonblocking", "8 B"), ("nonblocking", "2 KiB"),
                                                                                                      ("nonblocking", "32 KiB"), ("nonblocking", "512 KiB"), ("persistent", "8 B")))),
    )
    rows = []
    for entry in entries:
        if entry[3] == "PAIR-CROSSED":  # before of both, then after of both
            four, eight, now_four, now_eight = prose(host, entry[2])
            rows += [[entry[0], "all-reduce of 8 B, 4 ranks on 16 cores", four, now_four, entry[1]], [entry[0], "all-reduce of 8 B, 8 ranks on 16 cores", eight, now_eight, entry[1]]]
        else:
            rows += gains(host, entry)
    yield ("gains-host", of("What single changes gained on the host device", "two cores of an AMD EPYC, or 16 cores of an Intel Xeon where the row says so", "2026-11-23",
                            "build/rondo bench {collective} --device host", "as the row says", OMPI, "mostly medians of 5 to 15 runs in turn", host,
                            dated_by="the last day of the text; the changes are of 2026-11-21 to 2026-11-23"), GAINS, rows)


def gpu_gains(gpu, of):
    n, r = r"([\d.,]*\d)", r"([\d.]+ to [\d.]+|[\d.]+)"
    comp = "docs/compression.md"
    rows = [
        *gains(gpu,
               ("Fewer waits and loads of the leader", "us", f"showed this for 8 bytes \\(4 ranks, from {n} us to {n}\\)", "all-reduce of 8 B, 4 GPUs, stream"),
               ("One loop for packets of up to 5 a thread", "us", f"512 KiB went from {n} to {n} us", "all-reduce of 512 KiB, stream"),
               ("An operation of one slice is the workers' alone", "us", f"{n} us became {r}, and {n} at 512 KiB became {n}\\.", "all-reduce of 8 B, 2 GPUs, stream",
                "all-reduce of 512 KiB, 2 GPUs, stream"),
               ("A block for each direction", "us", f"a block for each direction for that reason \\({n} us became {n}\\)", "all-gather and all-to-all by pairs, small"),
               ("Warps interpret instructions by themselves", "us", f"What took two shots and rings of lines from {n} us to {n} at 2 MiB", "all-reduce of 2 MiB, 4 GPUs, stream"),
               ("Counts that end within a vector of 16 bytes", "us", f"128 KiB \\+ 4 B {n} and {n}, 384 KiB {n} and {n}, 1.1 MiB {n} and {n}, 3.4 MiB {n} and {n}, 10 MiB {n} and {n}, "
                f"30 MiB {n} and {n},", *(f"all-reduce of {size}, 2 GPUs, stream" for size in ("128 KiB + 4 B", "384 KiB", "1.1 MiB", "3.4 MiB", "10 MiB", "30 MiB"))),
               ("Direct write", "us", f"slots and landing: send/recv of 1 GiB {n} and {n} us, all-to-all {n} and {n}\\.", "send/receive of 1 GiB, 2 GPUs", "all-to-all of 1 GiB, 2 GPUs"),
               ("Slots of all connectors within 4 MiB of the processor's cache", "us", f"all-gather {n} to {n}, reduce-scatter {n} to {n}, all-to-all {n} to {n}, broadcast {n} to {n}, "
                f"send/recv ring {n} to {n};", *(f"{name} of 64 MiB through host memory, 4 GPUs" for name in ("all-gather", "reduce-scatter", "all-to-all", "broadcast",
                                                                                                            "send/receive")))),
        *gains(comp,
               ("The next 128 values are loaded while these are coded", "us", f"\\(rate 16 at 64 MiB: {n} us became {n}\\)", "compressed all-reduce of 64 MiB, 4 GPUs, rate 16"),
               ("Chunks below 12 Ki values are one slice", "us", f"rate 8 {n} us became {n}, rate 16 {n} became {n}\\)", "compressed all-reduce of 4 MiB, 2 GPUs, rate 8",
                "compressed all-reduce of 4 MiB, 2 GPUs, rate 16")),
    ]
    yield ("gains-gpu", of("What single changes gained on GPUs", "2 or 4 NVIDIA H200, driver 580", "2026-11-22", "build/rondo bench {collective} --device cuda",
                           "as the row says", "none", "mostly medians of three runs", gpu), GAINS, rows)
    found = [[row[0], head, cell] for row in table(gpu, "what | 1 MiB")[1:] for head, cell in zip(("1 MiB", "4 MiB", "8 MiB"), row[1:]) if cell]
    steps = ["simple protocol"] * 2 + ["LL128, slice by slice"] * 3 + ["each warp goes its own way"] * 3 + ["two sources asked for at once, a kernel of its own"] * 3 \
        + ["64 blocks instead of 32"] * 3
    yield ("gains-gpu-ll128", of("How LL128 became fast: all-reduce on 2 GPUs", H200_2, "2026-11-22", "build/rondo bench allreduce --device cuda --ranks 2 --mode stream", "us",
                                 "none", "not recorded", gpu), ["step", "bytes", "time_us"], [[step, size(row[1]), row[2]] for step, row in zip(steps, found, strict=True)])
    rows = table(gpu, "what it showed | what was done | ms")[1:]
    names = ["operations begin at different blocks, visits of at most 8 polls", "readiness check", "48 tasks in shared memory", "one channel for each 320 KiB"]
    found = [[name, row[2]] for name, row in zip(names, [row for row in rows if row[2]], strict=True)]
    first, = prose(gpu, r"started in another random order on each GPU, took (\d+) ms")
    yield ("gains-gpu-gradients", of("How the gradients of a ResNet-50 in random orders became fast", H200_2, "2026-11-22",
                                     "build/rondo bench gradients --device cuda --ranks 2 --peer nccl", "ms a step, after each change", NCCL, "not recorded", gpu),
           ["step", "time_ms"], [["at first", first], *found])


def text_of(meta, columns, rows):
    out = io.StringIO()
    for key, value in meta.items():
        out.write(f"# {key}: {value}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        assert len(row) == len(columns), (meta["title"], columns, row)
        writer.writerow(row)
    return out.getvalue()


def main():
    check, wrong = sys.argv[1:] == ["--check"], []
    for name, meta, columns, rows in files():
        text, path = text_of(meta, columns, rows), tables.folder_of(name) / f"{name}.csv"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(path.name)
    if wrong:
        sys.exit(f"not what the documents at {COMMIT} say: {' '.join(wrong)}")


if __name__ == "__main__":
    main()
