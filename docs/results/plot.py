"""The charts: what each shows, and how they are drawn; matplotlib is imported only to draw. Every chart is two SVG files, for light and
for dark pages. Each notes which data it was drawn from, so that one that is out of date is found without drawing it."""
import contextlib
import hashlib
import io
import re
import sys

from tables import COLLECTIVES, GPU_COLLECTIVES, HERE, faster_rival, gpu_rows, load, size_text

PLOTS = HERE / "plots"
THEMES = {
    "": {"page": "#ffffff", "text": "#1f2328", "quiet": "#59636e", "grid": "#dfe4ea", "shade": "#cf222e",
         "lines": ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#59636e")},
    "-dark": {"page": "#0d1117", "text": "#f0f6fc", "quiet": "#9198a1", "grid": "#2a313c", "shade": "#f85149",
              "lines": ("#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#ff80bf", "#9198a1")},
}
SIZE_TICKS = [8 * 16 ** i for i in range(8)]


class Chart:
    """title: what it shows; note: the line below it; names: its data files; panels: [(head, [(label, [(x, y), ...]), ...]), ...]."""

    def __init__(self, title, note, names, panels, x="size", limits=None, bands=None, unit="ratio"):
        self.title, self.note, self.names, self.panels = title, note, names, panels
        self.x, self.limits, self.bands, self.unit = x, limits, bands or (lambda: []), unit

    def digest(self):
        found = hashlib.sha256()
        for name in self.names:
            found.update(repr(load(name).rows).encode())
        return found.hexdigest()


def points(rows, y="ratio"):
    return sorted((int(row["bytes"]), float(row[y])) for row in rows)


def host_allreduce():
    rows = faster_rival([row for row in load("host-16-cores").rows if row["collective"] == "allreduce"])
    return [("", [(f"{ranks} ranks", points([row for row in rows if row["ranks"] == ranks])) for ranks in ("2", "8", "16")])]


def host_collectives():
    rows = faster_rival(load("host-16-cores").rows)
    return [(f"{ranks} ranks", [(COLLECTIVES[name], points([row for row in rows if row["ranks"] == ranks and row["collective"] == name]))
                                for name in ("bcast", "allgather", "alltoall", "reduce")]) for ranks in ("2", "16")]


def gpu_allreduce():
    return [("", [(f"{ranks} GPUs", points(gpu_rows("all-reduce, stream", ranks))) for ranks in (2, 4)])]


def gpu_collectives():
    return [(f"{ranks} GPUs", [(COLLECTIVES[name], points(gpu_rows(f"{name}, stream", ranks))) for name in GPU_COLLECTIVES]) for ranks in (2, 4)]


def network_veth():
    return [("", [("2 hosts", points(load("network-veth").rows))])]


def veth_band():
    return [[(int(row["bytes"]), float(row["ratio_low"]), float(row["ratio_high"])) for row in load("network-veth").rows]]


LINKS = {"100 Mbit/s": 100, "300 Mbit/s": 300, "1 Gbit/s": 1000, "2.5 Gbit/s": 2500, "5 Gbit/s": 5000, "10 Gbit/s": 10000}


def break_even():
    rows = load("compression-break-even").rows
    return [("", [(f"{rate}-bit values", [(LINKS[row["link"]], float(row["without_ms"]) / float(row["with_ms"])) for row in rows if row["rate"] == rate])
                  for rate in ("8", "16")])]


CHARTS = {
    "host-allreduce": Chart("All-reduce on 16 cores: Rondo's speed against the faster of Open MPI 5 and MPICH 5",
                            "Time of the faster rival / Rondo's time, processes of one host; above 1 Rondo is faster", ["host-16-cores"], host_allreduce,
                            limits=(0.45, 5.2)),
    "host-collectives": Chart("Other collectives on 16 cores: Rondo's speed against the faster of Open MPI 5 and MPICH 5",
                              "Time of the faster rival / Rondo's time, processes of one host; above 1 Rondo is faster", ["host-16-cores"],
                              host_collectives, limits=(0.17, 6)),
    "gpu-allreduce": Chart("All-reduce on H200 GPUs: Rondo's speed against NCCL 2.28.3",
                           "NCCL's time / Rondo's time, stream mode, NVLink, NVLS off; above 1 Rondo is faster",
                           ["gpu-bench"], gpu_allreduce, limits=(0.86, 2.1)),
    "gpu-collectives": Chart("Other collectives on H200 GPUs: Rondo's speed against NCCL 2.28.3",
                             "NCCL's time / Rondo's time, stream mode, NVLink, NVLS off; above 1 Rondo is faster",
                             ["gpu-bench"], gpu_collectives, limits=(0.83, 2.1)),
    "network-veth": Chart("All-reduce between two hosts over TCP: Rondo's speed against Open MPI 4.1.4",
                          "Open MPI's time / Rondo's time, UCX over TCP on a veth pair; band: the runs but the two most extreme", ["network-veth"],
                          network_veth, limits=(0.7, 2.7), bands=veth_band),
    "compression-break-even": Chart("Compressed all-reduce of 16 MiB between 4 hosts: where it stops paying",
                                    "Time without compression / time with it, by the link's speed; two cores carry all four hosts", ["compression-break-even"],
                                    break_even, x="link", limits=(0.5, 5)),
}


def spread(heights, gap):
    """Heights of labels, moved apart until no two are closer than gap; their order stays."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for _ in range(200):
        moved = False
        for low, high in zip(order, order[1:]):
            short = gap - (placed[high] - placed[low])
            if short > 1e-9:
                placed[low] -= short / 2
                placed[high] += short / 2
                moved = True
        if not moved:
            break
    return placed


def draw_panel(axes, chart, head, lines, theme, gap):
    import math
    axes.set_xscale("log", base=2 if chart.x == "size" else 10)
    axes.set_yscale("log", base=2)
    axes.set_ylim(*chart.limits)
    xs = sorted({x for _, line in lines for x, _ in line})
    axes.set_xlim(xs[0] / 1.4, xs[-1] * 1.15)
    if chart.x == "size":
        ticks = [tick for tick in SIZE_TICKS if xs[0] <= tick <= xs[-1]] or xs
        if xs[0] > 8:
            ticks = [xs[0] * 16 ** i for i in range(8) if xs[0] * 16 ** i <= xs[-1]]
        axes.set_xticks(ticks, [size_text(tick) for tick in ticks])
    else:
        axes.set_xticks(xs, [next(name for name, value in LINKS.items() if value == x) for x in xs])
    ticks = [tick for tick in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 8) if chart.limits[0] <= tick <= chart.limits[1]]
    if chart.limits[1] / chart.limits[0] > 4:
        ticks = [tick for tick in ticks if tick in (0.25, 0.5, 1, 2, 4, 8)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", color=theme["grid"], linewidth=0.8)
    axes.axhspan(chart.limits[0], 1, color=theme["shade"], alpha=0.06, linewidth=0)
    axes.axhline(1, color=theme["text"], linewidth=1.1)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme["grid"])
    axes.tick_params(colors=theme["quiet"], length=0, labelsize=9)
    for band in chart.bands():
        axes.fill_between([x for x, _, _ in band], [low for _, low, _ in band], [high for _, _, high in band], color=theme["lines"][0], alpha=0.18, linewidth=0)
    right = max(line[-1][0] for _, line in lines)
    heights = spread([math.log2(line[-1][1]) for _, line in lines if line[-1][0] == right], gap)
    for (label, line), colour in zip(lines, theme["lines"]):
        axes.plot([x for x, _ in line], [y for _, y in line], color=colour, linewidth=2, marker="o", markersize=3.6, clip_on=False)
        x, y = line[-1]
        if x == right:
            y, where = 2 ** heights.pop(0), {"xytext": (9, 0), "va": "center"}
        else:  # ends before the others do, so its label is where its line ends
            above = all(y >= other[-1][1] for _, other in lines)
            where = {"xytext": (0, 9 if above else -9), "va": "bottom" if above else "top", "ha": "center"}
        axes.annotate(label, (x, y), textcoords="offset points", color=colour, fontsize=9.5 if not head else 9, fontweight="bold", annotation_clip=False, **where)
    if head:
        axes.set_title(head, loc="left", fontsize=10, color=theme["text"], fontweight="bold", pad=8)


def svg(name, theme_name):
    """The chart as SVG; the same bytes each time."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    chart, theme = CHARTS[name], THEMES[theme_name]
    settings = {"svg.hashsalt": name, "svg.fonttype": "path", "font.family": "DejaVu Sans", "axes.facecolor": theme["page"],
                "figure.facecolor": theme["page"], "savefig.facecolor": theme["page"], "text.color": theme["text"]}
    with matplotlib.rc_context(), contextlib.closing(io.StringIO()) as out:
        matplotlib.rcdefaults()  # not what this machine has been set to
        matplotlib.rcParams.update(settings)
        panels = chart.panels()
        wide, high = (8.2, 3.6) if len(panels) == 1 else (9.6, 4.0)
        figure, all_axes = pyplot.subplots(1, len(panels), figsize=(wide, high), sharey=True, squeeze=False)
        figure.subplots_adjust(left=0.052, right=0.87 if not panels[0][0] else 0.872, top=0.79 if not panels[0][0] else 0.75,
                               bottom=0.09, wspace=0.46)
        span = sum_log(chart.limits)
        for axes, (head, lines) in zip(all_axes[0], panels):
            draw_panel(axes, chart, head, lines, theme, span * 0.062)
            axes.tick_params(labelleft=True)
        figure.text(0.018, 0.945, chart.title, fontsize=11.5, fontweight="bold", va="center")
        figure.text(0.018, 0.875, chart.note, fontsize=9.3, color=theme["quiet"], va="center")
        figure.savefig(out, format="svg", metadata={"Date": None, "Title": chart.title, "Description": f"data {chart.digest()}",
                                                    "Creator": f"docs/results/draw.py, matplotlib {matplotlib.__version__}"})
        pyplot.close(figure)
        return out.getvalue()


def sum_log(limits):
    import math
    return math.log2(limits[1] / limits[0])


def paths():
    return [(name, theme, PLOTS / f"{name}{theme}.svg") for name in CHARTS for theme in THEMES]


def version():
    try:
        import matplotlib
        return matplotlib.__version__
    except ImportError:
        return None


def draw_all():
    if version() is None:
        return ["charts: matplotlib is not installed (python3-matplotlib)"]
    PLOTS.mkdir(exist_ok=True)
    for name, theme, path in paths():
        text = svg(name, theme)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"drew {path.name}")
    return []


def out_of_date():
    """Names of charts that were not drawn from the data as they are; drawn anew where the same matplotlib is there to do so."""
    wrong = []
    redrawn = 0
    for name, theme, path in paths():
        text = path.read_text() if path.exists() else ""
        if f"data {CHARTS[name].digest()}" not in text:
            wrong.append(f"{path.name}: not drawn from the data files as they are; run `make results`")
        elif version() is not None and re.search(r"matplotlib ([\d.]+)", text).group(1) == version():
            redrawn += 1
            if svg(name, theme) != text:
                wrong.append(f"{path.name}: drawn again, it is another one; run `make results`")
    if redrawn < len(paths()) - len(wrong):
        print(f"charts: {redrawn} of {len(paths())} drawn again; the others were drawn by another matplotlib than {version() or 'none'}", file=sys.stderr)
    return wrong
