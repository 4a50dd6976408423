"""What the documents quote: reads the data files, and makes tables and single figures of them. Needs nothing but Python."""
import csv
import io
import json
import os
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "data"
# What each data file must say of itself.
METADATA = ("title", "machine", "date", "command", "unit", "rival", "runs", "library", "source")
COLLECTIVES = {"allreduce": "all-reduce", "bcast": "broadcast", "allgather": "all-gather", "alltoall": "all-to-all",
               "reduce": "reduce", "reduce_scatter": "reduce-scatter", "reduce_scatter_block": "reduce-scatter",
               "sendrecv": "send/receive"}
GPU_COLLECTIVES = ("allgather", "reduce_scatter_block", "alltoall", "bcast", "reduce", "sendrecv")
TORCH_PARALLEL = ["torch-parallel", "torch-parallel-dropin", "torch-parallel-gloo"]
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


class Data:
    """One data file: its metadata, and rows whose values are the file's own text (of JSON: numbers)."""

    def __init__(self, path):
        self.path, self.name = pathlib.Path(path), pathlib.Path(path).stem
        text = self.path.read_text()
        if self.path.suffix == ".json":
            content = json.loads(text)
            self.meta, self.groups = content.get("metadata", {}), content.get("groups", [])
            self.rows = content["cells"] if "cells" in content else rows_of_runs(content.get("runs", []))
        else:
            lines = text.splitlines()
            head = [line for line in lines if line.startswith("# ")]
            self.meta = dict(line[2:].split(": ", 1) for line in head)
            self.rows = list(csv.DictReader(io.StringIO("\n".join(lines[len(head):]))))

    def missing(self):
        return [key for key in METADATA if not str(self.meta.get(key, "")).strip()]

    def select(self, **wanted):
        return [row for row in self.rows if all(str(row[key]) == str(value) for key, value in wanted.items())]

    def values(self, column):
        """The column's values, each once, in the file's order."""
        return list(dict.fromkeys(row[column] for row in self.rows))


def rows_of_runs(runs):
    """Runs of `rondo bench --json`, made medians: a row for each setting and size."""
    setting = ("collective", "ranks", "launch", "device", "mode", "type", "algorithm", "protocol", "transports", "compress",
               "registered", "in_place", "peer", "peer_version", "table", "part", "variables", "hosts")
    found = {}
    for run in runs:
        for row in run["rows"]:
            key = tuple(str(run[name]) if isinstance(run.get(name), (dict, list)) else run.get(name) for name in setting) + (row.get("bytes"),)
            found.setdefault(key, []).append(row)
    rows = []
    for key, same in found.items():
        row = dict(zip((*setting, "bytes"), key))
        row["runs"] = len(same)
        for name in same[0]:
            numbers = [one[name] for one in same if isinstance(one.get(name), (int, float)) and not isinstance(one.get(name), bool)]
            if name != "bytes" and numbers:
                row[name] = statistics.median(numbers)
        if "peer_time_us" in row:
            ratios = [one["peer_time_us"] / one["time_us"] for one in same]
            row.update(ratio=statistics.median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))
        rows.append(row)
    return rows


def folder_of(name):
    """The folder of a data file: what it is about, which its name begins with."""
    subject = name.split("-")[0]
    return DATA / (subject if subject in ("compression", "gains", "gpu", "host", "network") else "other")


def load(name):
    for suffix in (".json", ".csv"):
        path = folder_of(name) / f"{name}{suffix}"
        if path.exists():
            return Data(path)
    raise KeyError(f"no data file {name}")


def all_data():
    return [Data(path) for path in sorted(DATA.glob("*/*")) if path.suffix in (".csv", ".json")]


# ---- cells ----

def size_text(bytes_):
    bytes_ = int(bytes_)
    return next(f"{bytes_ / unit:.3g} {name}" for unit, name in SIZES if bytes_ >= unit)


def number(value):
    """A number as it is quoted: a file's text as it stands (with commas in thousands), others with three digits."""
    if isinstance(value, float):
        value = f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    text = str(value)
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.lstrip("-").isdigit() and len(whole.lstrip("-")) > 3 else text


def ratio(value):
    """Two digits, or as the file has it; bold where Rondo is slower."""
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"**{text}**" if float(value) < 1 else text


def span(low, high):
    return number(low) if low == high or high == "" else f"{number(low)} to {number(high)}"


def render(head, rows, left=1):
    """A table in Markdown; its first columns are aligned to the left, the others to the right."""
    rule = ["---" if i < left else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in (head, rule, *rows))


def pivot(rows, keys, heads, cell, column="bytes", column_text=size_text, missing=""):
    """A line for each value of keys, a column for each value of column."""
    across = sorted({row[column] for row in rows}, key=float) if column == "bytes" else list(dict.fromkeys(row[column] for row in rows))
    lines = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))
    cells = {(tuple(row[key] for key in keys), row[column]): cell(row) for row in rows}
    body = [[*(COLLECTIVES.get(value, value) if key == "collective" else value for key, value in zip(keys, line)), *(cells.get((line, at), missing) for at in across)] for line in lines]
    return render([*heads, *(column_text(at) for at in across)], body, len(heads))


# ---- the tables, by the names that documents use ----

def host_allreduce():
    return pivot(faster_rival([row for row in load("host-16-cores").rows if row["collective"] == "allreduce"]), ["ranks"], ["ranks"],
                 lambda row: ratio(row["ratio"]), missing="not run")


def host_collectives():
    return pivot(faster_rival([row for row in load("host-16-cores").rows if row["collective"] != "allreduce"]), ["collective", "ranks"],
                 ["collective", "ranks"], lambda row: ratio(row["ratio"]), missing="not run")


def faster_rival(rows):
    """For each size, the row of the rival that leaves Rondo the lowest ratio."""
    best = {}
    for row in rows:
        key = row["collective"], row["ranks"], row["bytes"]
        if key not in best or float(row["ratio"]) < float(best[key]["ratio"]):
            best[key] = row
    return list(best.values())


def host_rivals():
    """Both rivals, each in its own cell."""
    rows = load("host-16-cores").rows
    return pivot(rows, ["collective", "ranks", "rival"], ["collective", "ranks", "rival"], lambda row: ratio(row["ratio"]), missing="not run")


def host_small():
    rows = [row for row in load("host-16-cores-small").rows if row["bytes"] > 0]
    rows.sort(key=lambda row: (COLLECTIVES.get(row["collective"], row["collective"]), row["ranks"], row["bytes"]))
    return pivot(rows, ["collective", "ranks"], ["collective", "ranks"], lambda row: f"{number(row['time_us'])} ({ratio(row['ratio'])})")


def host_multicast():
    """With multicast connectors, and in brackets without."""
    without = {(row["collective"], row["bytes"]): row for row in load("host-16-cores-no-multicast").rows}
    rows = [row for row in load("host-16-cores-multicast").rows if row["bytes"] > 0]
    return pivot(rows, ["collective"], ["collective"], lambda row: f"{ratio(row['ratio'])} ({without[row['collective'], row['bytes']]['ratio']:.2f})")


def host_two_cores():
    return pivot([row for row in load("host-2-cores").rows if row["bytes"] > 0], ["collective"], ["collective"], lambda row: ratio(row["ratio"]))


def host_openmpi_4():
    return pivot(load("host-16-cores-openmpi-4-allreduce").rows, ["ranks"], ["ranks"],
                 lambda row: f"{number(row['time_us'])} ({ratio(row['ratio'])})")


def host_openmpi_4_collectives():
    return pivot(load("host-16-cores-openmpi-4-collectives").rows, ["collective", "ranks"], ["collective", "ranks"], lambda row: ratio(row["ratio"]))


def host_openmpi_4_two_cores():
    return times_beside_peer("host-2-cores-openmpi-4", "Open MPI, us")


def milliseconds(text):
    return number(f"{float(text):.0f}") if float(text) >= 1000 else text


def mpi_programs():
    return render(["program", "ranks", "calls taken", "left", "without, ms", "with, ms", "with / without", "without / without", "results"],
                  [[row["program"], row["ranks"], number(row["taken"]), number(row["left"]), milliseconds(row["plain_ms"]), milliseconds(row["rondo_ms"]), row["ratio"],
                    span(row["noise_low"], row["noise_high"]), row["results"]] for row in load("mpi-programs").rows])


def mpi_ratio():
    """MPI's time / the drop-in's. In brackets where the difference is within that of MPI's two times in the same rounds."""
    def cell(row):
        text = ratio(row["ratio"])
        return f"({text})" if row["aa_low"] <= row["ratio"] <= row["aa_high"] else text
    return pivot([row for row in load("mpi-ratio").rows if row["collective"] != "barrier"], ["mpi", "collective", "ranks"], ["MPI", "collective", "ranks"], cell)


def mpi_latency():
    """The smallest message through the drop-in beside rondo.h's own call and MPI's."""
    return render(["MPI", "collective", "ranks", "MPI, us", "drop-in, us", "rondo.h, us", "drop-in - rondo.h, ns"],
                  [[row["mpi"], COLLECTIVES.get(row["collective"], row["collective"]), row["ranks"], number(row["mpi_time_us"]), number(row["time_us"]),
                    number(row["rondo_time_us"]), f"{row['over_rondo_ns']:.0f}"] for row in load("mpi-ratio").rows if row["bytes"] == 8], 2)


def times_beside_peer(name, peer, extra=()):
    rows = load(name).rows
    return render(["size", "Rondo, us", peer, "ratio", *(head for head, _ in extra)],
                  [[size_text(row["bytes"]), number(row["time_us"]), number(row["peer_time_us"]), ratio(row["ratio"]), *(cell(row) for _, cell in extra)]
                   for row in rows], 0)


def gpu_rows(name, ranks):
    """What one table of `make gpu-bench` holds."""
    rows = load("gpu-bench").select(table=f"{name}, {ranks} GPUs")
    if not rows:
        raise KeyError(f"gpu-bench has no table {name}, {ranks} GPUs")
    return [{**row, "ranks": ranks} for row in rows]


def gpu_allreduce():
    """One table for the README: times and ratios on 2 and 4 GPUs, at some of the sizes."""
    lines, across = [], [str(size) for size in (8, 8 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20)]
    for ranks in (2, 4):
        rows = {str(row["bytes"]): row for row in gpu_rows("all-reduce, stream", ranks)}
        lines += [[f"{ranks} GPUs, us", *(number(rows[size]["time_us"]) for size in across)],
                  ["ratio to NCCL", *(ratio(rows[size]["ratio"]) for size in across)]]
    return render(["", *(size_text(size) for size in across)], lines)


def gpu_allreduce_of(ranks):
    return render(["size", "Rondo, us", "NCCL, us", "ratio", "blocks"],
                  [[size_text(row["bytes"]), number(row["time_us"]), number(row["peer_time_us"]), ratio(row["ratio"]), f"{row['stream_blocks']:.0f}"]
                   for row in gpu_rows("all-reduce, stream", ranks)], 0)


def gpu_second_machine():
    return render(["size", "Rondo, us", "ratio"], [[size_text(row["bytes"]), number(row["time_us"]), ratio(row["ratio"])]
                                                   for row in load("gpu-2-allreduce-stream-second-machine").rows], 0)


def gpu_collectives_of(ranks):
    return pivot([row for name in GPU_COLLECTIVES for row in gpu_rows(f"{name}, stream", ranks)], ["collective"], ["collective"],
                 lambda row: ratio(row["ratio"]))


def time_and_ratio(row):
    return f"{number(row['time_us'])} us, {ratio(row['ratio'])}"


def gpu_exchange():
    """All-to-alls on 4 GPUs."""
    return render(["size", "Rondo, us", "NCCL, us", "ratio"],
                  [[size_text(row["bytes"]), number(row["time_us"]), number(row["peer_time_us"]), ratio(row["ratio"])]
                   for row in load("gpu-exchange").select(table="alltoall, stream, 4 GPUs")])


def gpu_from_host():
    return pivot([row for ranks in (2, 4) for row in gpu_rows("all-reduce, persistent", ranks)], ["ranks"], ["GPUs"], time_and_ratio)


def gpu_collectives_from_host():
    return pivot([row for name in GPU_COLLECTIVES for ranks in (2, 4) for row in gpu_rows(f"{name}, persistent", ranks)], ["collective", "ranks"],
                 ["collective", "GPUs"], time_and_ratio)


def gpu_blocks():
    """What few multiprocessors carry: GB/s each way, and in brackets the ratio to NCCL on all it takes."""
    rows = [{**row, "blocks": blocks} for ranks in (2, 4) for blocks in (2, 4, 8, 16, 32)
            for row in gpu_rows(f"all-reduce, stream, registered, {blocks} blocks", ranks)]
    return pivot(rows, ["ranks", "blocks"], ["GPUs", "blocks"], lambda row: f"{number(row['busbw_gbs'])} GB/s ({ratio(row['ratio'])})")


def gpu_copy_engines():
    return pivot([row for name in ("allgather", "alltoall", "bcast") for ranks in (2, 4) for row in gpu_rows(f"{name}, copy engines", ranks)],
                 ["collective", "ranks"], ["collective", "GPUs"], time_and_ratio)


def gpu_gradients():
    return render(["GPUs", "order", "Rondo, ms", "NCCL in one order, ms", "ratio"],
                  [[row["ranks"], {"same": "the same on all ranks", "random": "random, another on each rank"}[row["order"]], span(row["time_low_ms"], row["time_high_ms"]), row["peer_time_ms"],
                    span(f"{float(row['peer_time_ms']) / float(row['time_high_ms']):.2f}", f"{float(row['peer_time_ms']) / float(row['time_low_ms']):.2f}")]
                   for row in load("gpu-gradients").rows], 2)


def gpu_direct_write():
    return pivot(load("gpu-2-direct-write").rows, ["collective"], ["collective"],
                 lambda row: f"{number(row['time_us'])} us, {ratio(row['ratio'])} (slots {ratio(row['ratio_slots'])})")


def gpu_move_tma(ranks, column):
    return pivot(load(f"gpu-{ranks}-move-tma").rows, ["collective", "mover", "blocks"], ["collective", "mover", "blocks"], lambda row: number(row[column]))


def gpu_host_memory():
    return pivot([row for ranks in (2, 4) for row in gpu_rows("all-reduce, stream, through host memory", ranks)], ["ranks"], ["GPUs"], time_and_ratio)


def gpu_coded_host_memory():
    """Compressed, beside the same uncompressed in turn."""
    rows = [{**row, "rate": rate} for rate in (16, 8) for row in gpu_rows(f"all-reduce, stream, through host memory, {rate} bits a value", 4)]
    return pivot(rows, ["rate"], ["bits a value"], lambda row: f"{number(row['time_us'])} us, {ratio(row['plain_time_us'] / row['time_us'])}")


def network_veth():
    return times_beside_peer("network-veth", "Open MPI, us", [("of the runs", lambda row: span(row["ratio_low"], row["ratio_high"]))])


def network_gigabit():
    return render(["size", "Rondo, Mbit/s", "iperf3, Mbit/s", "share, %"],
                  [[size_text(row["bytes"]), row["rate_mbits"], row["iperf3_mbits"], row["share_percent"]] for row in load("network-gigabit").rows], 0)


def network_hierarchical():
    return render(["size", "hierarchical, ms", "flat ring, ms", "ratio"],
                  [[size_text(row["bytes"]), row["hierarchical_ms"], row["ring_ms"], ratio(row["ratio"])] for row in load("network-hierarchical").rows], 0)


def network_algorithms():
    return render(["link", "size", "one step to all, us", "recursive doubling, us", "ring, us"],
                  [[row["link"], size_text(row["bytes"]), *(number(row[f"{name}_us"]) for name in ("one_step", "doubling", "ring"))]
                   for row in load("network-algorithms").rows])


def network_gpu():
    return render(["machine", "threads a rank", "size", "UCX and the copies, 4 / 8 / 16 slots a thread, GB/s", "Rondo, GB/s", "ratio"],
                  [[row["machine"], row["threads"], size_text(row["bytes"]), f"{row['ucx_4_slots']} / {row['ucx_8_slots']} / {row['ucx_16_slots']}",
                    row["rondo"], ratio(row["ratio"])] for row in load("network-gpu").rows])


def columns(name, heads, left=1):
    """All columns of a file as they are, under other heads."""
    data = load(name)
    return render(heads, [[size_text(value) if key == "bytes" else number(value) for key, value in row.items()] for row in data.rows], left)


def gains(name):
    return render(["change", "measured", "before", "after", "unit"],
                  [[row["change"], row["measured"], thousands(row["before"]), thousands(row["after"]), row["unit"]] for row in load(name).rows], 2)


def comparison(name):
    """Two builds compared by test/bench/compare.py: a line for each group of cells."""
    data, lines = load(name), []
    for group in data.groups:
        cells = data.select(group=group["group"])
        worst = max(cells, key=lambda cell: cell["ratio"])
        lines.append([group["group"], f"{sum(cell['verdict'] != 'slower' for cell in cells)} of {len(cells)}", f"{group['ratio']:.3f}",
                      f"{group['aa_low']:.3f} to {group['aa_high']:.3f}", f"{worst['ratio']:.3f} ({worst['aa_low']:.3f} to {worst['aa_high']:.3f}) at {size_text(worst['bytes'])}"])
    return render(["", "sizes not slower", "after / before, mean of the sizes", "before / itself", "slowest size"], lines)


def thousands(text):
    """Every number of a text like "17 to 56"."""
    return " ".join(number(word) for word in text.split())


def compression_codec():
    return columns("compression-codec", ["direction", "rate", "libzfp", "baseline", "AVX2", "AVX-512"])


def nccl_tests():
    return pivot(load("nccl-tests").rows, ["test"], ["test"], lambda row: row["busbw_gbs"], column="ranks", column_text=lambda ranks: f"{ranks} GPUs, GB/s",
                 missing="not run")


def pytorch():
    return render(["GPUs", "machine", "wrapper", "Rondo, ms", "NCCL, ms", "ratio"],
                  [[row["ranks"], row["machine"], row["wrapper"], row["rondo_ms"] + (f" and {row['rondo_again_ms']}" if row["rondo_again_ms"] else ""),
                    row["nccl_ms"], ratio(row["ratio"])] for row in load("pytorch").rows], 3)


def torch_suite():
    return render(["result", "why", "gloo", "rondo"], [[row["result"], row["why"], row["gloo"], row["rondo"]] for row in load("torch-suite").rows], 2)


def torch_cpu():
    rows = load("torch-cpu").rows
    return pivot([row for row in rows if row["bytes"]], ["operation", "ranks"], ["operation", "ranks"], lambda row: ratio(row["ratio"]))


def torch_cpu_training():
    rows = [row for row in load("torch-cpu").rows if not row["bytes"]]
    return render(["training", "ranks", "gloo, ms a step", "rondo, ms a step", "ratio"],
                  [[row["operation"], str(row["ranks"]), number(row["gloo_us"] / 1000), number(row["rondo_us"] / 1000), ratio(row["ratio"])]
                   for row in rows])


def torch_gpu():
    """Each backend's time, and for each other one its time by Rondo's and how far the first losses differ."""
    others = ("dropin", "gloo")
    return render(["ranks", "model", "rondo, ms a step", *(f"{other}, ms" for other in others), *(f"{other} / rondo" for other in others),
                   "losses differ by"],
                  [[str(row["ranks"]), row["model"], *(number(row[f"{backend}_us"] / 1000) for backend in ("rondo", *others)),
                    *(ratio(row[f"{other}_ratio"]) for other in others), f"{max(row[f'{other}_difference'] for other in others):.1g}"]
                   for row in load("torch-gpu").rows], 2)


def torch_parallel():
    """A line for each start of the ranks; the counters are those of the last rank's groups, on the GPU."""
    def counter(row, name):
        groups = row.get("statistics", {}).values()
        return number(sum(group["cuda"][name] for group in groups if "cuda" in group) / row["steps"]) if groups else ""

    def cells(row):
        if not row["ended"]:
            return ["did not end", "", ""]
        return [number(row["us"] / 1000), number(row["slower"]), "equal" if row["equal"] else "**differ**"]

    rows = [row for name in TORCH_PARALLEL for row in load(name).rows]
    return render(["backend", "shape", "order", "steps", "ms a step", "by one order's", "losses", "preemptions a step", "switches a step"],
                  [[row["backend"], row["shape"], row["way"], str(row.get("steps", "")), *cells(row), counter(row, "preemptions"),
                    counter(row, "context_saves")] for row in rows], 3)


def scale():
    """What a rank costs, the mean of a job's ranks."""
    return render(["ranks", "sockets", "connectors, KiB", "memory of its own, KiB", "sent, KiB", "primitives", "processor, s", "elapsed, s"],
                  [[str(row["ranks"]), str(row["sockets"]), number(row["reserved_kib"]), number(row["private_kib"]), number(row["bytes_sent"] / 1024),
                    number(row["primitives"]), number(row["processor_seconds"]), number(row["seconds"])] for row in load("scale").rows])


def startup():
    """How a simulated job starts: what the rank that has most says to others, and when all are there."""
    jobs = json.loads(load("scale").path.read_text())["simulated"]["jobs"]
    return render(["ranks", "roots", "connections", "messages", "sent, KiB", "job formed, s", "all started, s"],
                  [[number(job["ranks"]), str(job["roots"]), str(job["most"]["made"] + job["most"]["accepted"]), number(job["most"]["messages"]),
                    number(job["most"]["bytes"] / 1024), number(job["formed_s"]), number(job["init_s"])] for job in jobs])


def recorder():
    """What the flight recorder adds to a call."""
    return render(["bytes", "with it, us", "without, us", "cost, ns", "cost, %"],
                  [[str(row["bytes"]), number(row["us"]), number(row["us_without"]), f"{row['cost_ns']:.1f}", f"{row['cost_percent']:.1f}"]
                   for row in load("recorder").rows])


def policies(name):
    """Programs under ways to choose how long waits are: the default's time, and the others' by that."""
    data = load(name)
    several = len(data.values("ranks")) > 1
    others = [policy for policy in data.values("policy") if policy != "default"]
    rows = []
    for ranks in data.values("ranks"):
        for program in data.values("program"):
            of = {row["policy"]: row["time_us"] for row in data.select(ranks=ranks, program=program)}
            rows.append(([str(ranks)] if several else []) + [program, number(of["default"])] +
                        [f"{of[policy] / of['default']:.2f}" for policy in others])
    return render((["ranks"] if several else []) + ["program", "default, us"] + [policy.removeprefix("fixed ") for policy in others], rows)


def interval(row, name):
    if row[name] == "":
        return ""
    return f"{row[name]} ({row[name + '_low']} to {row[name + '_high']})"


def sim_paper():
    return render(["row", "paper", "paper's test", "cycle"],
                  [[row["row"], row["paper"], interval(row, "intersection"), interval(row, "cycle")] for row in load("sim-paper").rows])


def sim_model():
    heads, cells = ["ranks", "all-reduces", "synchronizations"], []
    for what, text in (("iteration_ms", "iteration, ms"), ("preemptions", "preemptions"), ("quits", "quits")):
        heads += [text, "model"]
        cells += [f"{what}_measured", f"{what}_model"]
    return render(heads, [[row["ranks"], row["allreduces"], row["synchronizations"], *(interval(row, cell) for cell in cells)]
                          for row in load("sim-model").rows], 0)


# name: (what makes it, the data files it is made of)
TABLES = {
    "host-allreduce": (host_allreduce, ["host-16-cores"]),
    "host-collectives": (host_collectives, ["host-16-cores"]),
    "host-small": (host_small, ["host-16-cores-small"]),
    "host-multicast": (host_multicast, ["host-16-cores-multicast", "host-16-cores-no-multicast"]),
    "host-rivals": (host_rivals, ["host-16-cores"]),
    "host-2-cores": (host_two_cores, ["host-2-cores"]),
    "host-openmpi-4-allreduce": (host_openmpi_4, ["host-16-cores-openmpi-4-allreduce"]),
    "host-openmpi-4-collectives": (host_openmpi_4_collectives, ["host-16-cores-openmpi-4-collectives"]),
    "host-openmpi-4-2-cores": (host_openmpi_4_two_cores, ["host-2-cores-openmpi-4"]),
    "gpu-allreduce": (gpu_allreduce, ["gpu-bench"]),
    "gpu-2-allreduce": (lambda: gpu_allreduce_of(2), ["gpu-bench"]),
    "gpu-4-allreduce": (lambda: gpu_allreduce_of(4), ["gpu-bench"]),
    "gpu-2-allreduce-second-machine": (gpu_second_machine, ["gpu-2-allreduce-stream-second-machine"]),
    "gpu-2-collectives": (lambda: gpu_collectives_of(2), ["gpu-bench"]),
    "gpu-4-collectives": (lambda: gpu_collectives_of(4), ["gpu-bench"]),
    "gpu-from-host": (gpu_from_host, ["gpu-bench"]),
    "gpu-collectives-from-host": (gpu_collectives_from_host, ["gpu-bench"]),
    "gpu-blocks": (gpu_blocks, ["gpu-bench"]),
    "gpu-copy-engines": (gpu_copy_engines, ["gpu-bench"]),
    "gpu-coded-host-memory": (gpu_coded_host_memory, ["gpu-bench"]),
    "gpu-gradients": (gpu_gradients, ["gpu-gradients"]),
    "gpu-exchange": (gpu_exchange, ["gpu-exchange"]),
    "gpu-direct-write": (gpu_direct_write, ["gpu-2-direct-write"]),
    "gpu-2-move-tma": (lambda: gpu_move_tma(2, "time_us"), ["gpu-2-move-tma"]),
    "gpu-4-move-tma": (lambda: gpu_move_tma(4, "busbw_gbs"), ["gpu-4-move-tma"]),
    "gpu-host-memory": (gpu_host_memory, ["gpu-bench"]),
    "network-veth": (network_veth, ["network-veth"]),
    "network-gigabit": (network_gigabit, ["network-gigabit"]),
    "network-hierarchical": (network_hierarchical, ["network-hierarchical"]),
    "network-algorithms": (network_algorithms, ["network-algorithms"]),
    "network-gpu": (network_gpu, ["network-gpu"]),
    "compression-error": (lambda: columns("compression-error", ["rate", "ring", "recursive doubling", "ring, hop by hop"], 0), ["compression-error"]),
    "compression-accuracy": (lambda: columns("compression-accuracy", ["rate", "ring", "ring, feedback", "recursive doubling",
                                                                      "recursive doubling, feedback"], 0), ["compression-accuracy"]),
    "compression-codec": (compression_codec, ["compression-codec"]),
    "compression-codec-gpu": (lambda: columns("compression-codec-gpu", ["rate", "encode", "one block", "decode", "one block"], 0), ["compression-codec-gpu"]),
    "compression-slow-link": (lambda: columns("compression-slow-link", ["algorithm", "rate", "without, ms", "with, ms", "less, %", "goal, %"]),
                              ["compression-slow-link"]),
    "compression-break-even": (lambda: columns("compression-break-even", ["link", "rate", "without, ms", "with, ms", "less, %"]), ["compression-break-even"]),
    "compression-gpu": (lambda: columns("compression-gpu", ["GPUs", "size", "rate", "without, us", "with, us", "less, %"], 0), ["compression-gpu"]),
    "compression-hop-by-hop": (lambda: columns("compression-hop-by-hop", ["link", "size", "rate", "runs", "ring, ms", "ring-hop, ms", "less, %",
                                                                         "ring, s of processors", "ring-hop, s of processors"]), ["compression-hop-by-hop"]),
    "gains-host": (lambda: gains("gains-host"), ["gains-host"]),
    "gains-gpu": (lambda: gains("gains-gpu"), ["gains-gpu"]),
    "gains-gpu-ll128": (lambda: pivot(load("gains-gpu-ll128").rows, ["step"], ["step"], lambda row: number(row["time_us"])), ["gains-gpu-ll128"]),
    "gains-gpu-gradients": (lambda: columns("gains-gpu-gradients", ["change", "ms"]), ["gains-gpu-gradients"]),
    "mpi-programs": (mpi_programs, ["mpi-programs"]),
    "mpi-ratio": (mpi_ratio, ["mpi-ratio"]),
    "mpi-latency": (mpi_latency, ["mpi-ratio"]),
    "nccl-tests": (nccl_tests, ["nccl-tests"]),
    "pytorch": (pytorch, ["pytorch"]),
    "torch-suite": (torch_suite, ["torch-suite"]),
    "torch-cpu": (torch_cpu, ["torch-cpu"]),
    "torch-cpu-training": (torch_cpu_training, ["torch-cpu"]),
    "torch-gpu": (torch_gpu, ["torch-gpu"]),
    "torch-parallel": (torch_parallel, TORCH_PARALLEL),
    "scale": (scale, ["scale"]),
    "startup": (startup, ["scale"]),
    "recorder": (recorder, ["recorder"]),
    "host-policies": (lambda: policies("host-policies"), ["host-policies"]),
    "gpu-policies": (lambda: policies("gpu-policies"), ["gpu-policies"]),
    "sim-paper": (sim_paper, ["sim-paper"]),
    "sim-model": (sim_model, ["sim-model"]),
}


def joined(values):
    """Different values as one text: "2 and 4 NVIDIA H200", where only the first word differs."""
    values = list(dict.fromkeys(values))
    rests = {value.partition(" ")[2] for value in values}
    if len(values) > 1 and len(rests) == 1:
        return " and ".join(value.partition(" ")[0] for value in values) + " " + rests.pop()
    return " and ".join(values)


def provenance(names, folder):
    """The line under a table or chart: where, when, beside what, with links to the files from the document's folder."""
    found = [load(name) for name in names]
    said = []
    for key in ("machine", "date", "rival", "runs", "unit"):
        text = joined(str(data.meta[key]) for data in found if data.meta[key] not in ("none", "not recorded"))
        said += [text] if text else []
    links = ", ".join(f"[{data.path.name}]({os.path.relpath(data.path, folder)})" for data in found)
    text = "; ".join(said)
    return f"*{text[0].upper()}{text[1:]}. Data: {links}*"


def generate(words, folder):
    """The text that belongs between a marker of these words and its end, in a document of that folder; without line ends around."""
    kind, *rest = words
    if kind == "value":  # value FILE COLUMN [KEY=VALUE ...]: one figure
        name, column, *conditions = rest
        rows = load(name).select(**dict(one.split("=", 1) for one in conditions))
        if len(rows) != 1:
            raise KeyError(f"{' '.join(words)}: {len(rows)} rows instead of one")
        return number(rows[0][column])
    if kind == "meta":  # meta FILE KEY
        return str(load(rest[0]).meta[rest[1]])
    if kind == "compare":  # compare FILE
        return f"{comparison(rest[0])}\n\n{provenance(rest, folder)}"
    if kind == "chart":  # chart NAME
        link = os.path.relpath(HERE / "plots" / rest[0], folder)
        if not (HERE / "plots" / f"{rest[0]}.svg").exists():
            raise KeyError(f"no chart {rest[0]}")
        title = chart_title(rest[0])
        return (f'<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="{link}-dark.svg">\n'
                f'  <img alt="{title}" src="{link}.svg">\n</picture>')
    if kind not in TABLES or rest:
        raise KeyError(f"no table {' '.join(words)}: there are {', '.join(sorted(TABLES))}")
    make, names = TABLES[kind]
    return f"{make()}\n\n{provenance(names, folder)}"


def chart_title(name):
    from plot import CHARTS  # matplotlib is imported where it draws, not there
    return CHARTS[name].title
