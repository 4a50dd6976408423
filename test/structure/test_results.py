"""The figures in the documents are those of docs/results/data; the files there say where they come from."""
import csv
import datetime
import importlib.util
import io
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import SANITIZED, program

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results"
DATA = sorted((FOLDER / "data").glob("*/*.*"))
MARKER = re.compile(r"^<!-- generated: (?!chart )[^\n>]+ -->\n(.*?)^<!-- end -->", re.M | re.S)


def draw(root, *options):
    return subprocess.run([sys.executable, root / "docs" / "results" / "draw.py", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)


@pytest.fixture
def copy(tmp_path):
    """The documents and the results, to be changed."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_documents_have_the_figures_of_the_files():
    done = draw(ROOT, "tables", "--check")
    assert done.returncode == 0, done.stdout


def test_charts_were_drawn_from_the_files():
    done = draw(ROOT, "charts", "--check")
    assert done.returncode == 0, done.stdout
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("no matplotlib here: charts were compared with their data by digest, and not drawn again")


def documents(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def typed_by_hand(text):
    """Lines of tables outside markers that are rows of figures: two cells or more that are numbers."""
    text = re.sub(r"^<!-- generated: .*?^<!-- end -->", lambda found: "\n" * found.group().count("\n"), text, flags=re.M | re.S)
    return [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("|")
            and sum(re.fullmatch(r"\**[\d.,]+( \w+)?( \([^)]*\))?\**", cell.strip()) is not None for cell in line.split("|")) > 1]


WRITTEN_WHOLE = {"docs/guide/program-examples.md"}  # by `make docs`; test_program.py compares it


def test_no_table_of_figures_is_typed_by_hand():
    assert typed_by_hand("| 8 B | 1.02 |\n\n| `a` | 5 |\n<!-- generated: x -->\n| 8 B | 1 |\n<!-- end -->\n| 1 (2) | **1.5** |\n") == [1, 7]
    found = [f"{page.relative_to(ROOT)}:{line}" for page in documents(ROOT) if page.relative_to(ROOT).as_posix() not in WRITTEN_WHOLE
             for line in typed_by_hand(page.read_text())]
    assert not found, found


def test_a_changed_digit_in_a_document_is_found(copy):
    page = copy / "docs" / "page.md"
    page.write_text("# Page\n\n<!-- generated: host-allreduce -->\n<!-- end -->\n\n"
                    "Takes <!-- generated: value gpu-2-allreduce-stream-second-machine time_us bytes=8 --><!-- end --> us.\n")
    assert draw(copy, "tables").returncode == 0
    text = page.read_text()
    assert MARKER.search(text).group(1).count("|") > 10 and re.search(r"--> *\d[\d.]* *<!-- end --> us", text), text
    assert draw(copy, "tables", "--check").returncode == 0
    spots = [found.start() for found in re.finditer(r"\d", text)]
    generated = [spot for spot in spots if "| 2 |" in text[text.rfind("\n", 0, spot) + 1:text.find("\n", spot)]]
    for spot in (generated[1], generated[-1], text.rindex("<!-- end -->") - 1):
        page.write_text(text[:spot] + str((int(text[spot]) + 1) % 10) + text[spot + 1:])
        done = draw(copy, "tables", "--check")
        assert done.returncode != 0 and "docs/page.md" in done.stdout, (spot, done.stdout)


def test_every_generated_table_of_the_documents_is_looked_at(copy):
    """A digit planted into each document that has a table fails the check."""
    for page in documents(copy):
        text = page.read_text()
        found = MARKER.search(text)
        if found is None:
            continue
        spot = found.start(1) + re.search(r"\d", found.group(1)).start()
        page.write_text(text[:spot] + str((int(text[spot]) + 1) % 10) + text[spot + 1:])
        done = draw(copy, "tables", "--check")
        assert done.returncode != 0 and str(page.relative_to(copy)) in done.stdout, done.stdout
        page.write_text(text)


def test_a_changed_digit_in_a_file_is_found(copy):
    path = copy / "docs" / "results" / "data" / "host" / "host-16-cores.csv"
    text = path.read_text()
    path.write_text(text[:-2] + str((int(text[-2]) + 1) % 10) + "\n")
    done = draw(copy, "charts", "--check")
    assert done.returncode != 0 and "host-allreduce.svg" in done.stdout, done.stdout


def test_an_unknown_table_and_an_open_marker_are_errors(copy):
    page = copy / "docs" / "page.md"
    for text, word in (("<!-- generated: no-such-table -->\n<!-- end -->\n", "no-such-table"),
                       ("<!-- generated: host-allreduce -->\n| 1 |\n", "no end"),
                       ("<!-- generated: value host-16-cores ratio bytes=8 --><!-- end -->\n", "rows instead of one")):
        page.write_text(text)
        done = draw(copy, "tables", "--check")
        assert done.returncode != 0 and word in done.stdout, done.stdout


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_a_file_says_where_its_figures_come_from(path):
    text = path.read_text()
    if path.suffix == ".json":
        content = json.loads(text)
        meta = content["metadata"]
        assert content.get("runs") or content.get("cells")
    else:
        assert path.suffix == ".csv"
        head = [line for line in text.splitlines() if line.startswith("# ")]
        meta = dict(line[2:].split(": ", 1) for line in head)
        rows = list(csv.reader(io.StringIO("\n".join(text.splitlines()[len(head):]))))
        assert len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows)
    for key in ("title", "machine", "date", "command", "unit", "rival", "runs", "library", "source"):
        assert str(meta.get(key, "")).strip(), f"does not name its {key}"
    datetime.date.fromisoformat(meta["date"])


def test_a_file_without_its_machine_is_found(copy):
    path = copy / "docs" / "results" / "data" / "host" / "host-16-cores.csv"
    path.write_text(re.sub(r"^# machine: .*\n", "", path.read_text(), flags=re.M))
    done = draw(copy, "tables", "--check")
    assert done.returncode != 0 and "does not name machine" in done.stdout, done.stdout


def test_transcribed_files_are_what_the_documents_said():
    known = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", "793e82f^{commit}"], stderr=subprocess.DEVNULL)
    if known.returncode != 0:
        pytest.skip("no commit 793e82f in this clone")
    done = subprocess.run([sys.executable, FOLDER / "transcribe.py", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


# ---- test/bench: what makes such files ----

BENCH = ROOT / "test" / "bench"


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """compare.py on builds that measure nothing: times with 1% of noise, after by a factor longer for sizes from least up, and the same each
    time that the test runs. Returns the status and what was said."""
    monkeypatch.syspath_prepend(BENCH)
    import compare as module
    paths = {name: tmp_path / name for name in ("before", "after")}
    for name, path in paths.items():
        path.write_text(name)

    def of(*options, factor=1.0, least=0):
        noise = random.Random(1)

        def run(rondo, group, command):
            first, last = (int(word.replace("M", "")) << (20 if word.endswith("M") else 0) for word in (command[command.index("-b") + 1], command[command.index("-e") + 1]))
            sizes = [first * 4 ** i for i in range(32) if first * 4 ** i <= last]
            return {size: (1 + size / 1000) * (factor if rondo == paths["after"] and size >= least else 1) * noise.lognormvariate(0, 0.01) for size in sizes}, None

        monkeypatch.setattr(module, "run", run)
        monkeypatch.setattr(sys, "argv", ["compare.py", "--before", str(paths["before"]), "--after", str(paths["after"]), "--launch", "threads", "--only",
                                          "allreduce 2", *map(str, options)])
        return module.main(), capsys.readouterr().out

    return of


def test_a_build_as_fast_as_another_is_within(compare, tmp_path):
    status, said = compare("--json", tmp_path / "found.json")
    assert status == 0 and "12 cells, 12 within, 0 faster, 0 slower" in said and "1 groups, 1 within" in said, said
    found = json.loads((tmp_path / "found.json").read_text())
    assert [cell["bytes"] for cell in found["cells"]] == [8 * 4 ** i for i in range(11)] + [1 << 24]
    assert all(len(times) >= 7 for cell in found["cells"] for times in cell["times_us"].values())
    assert found["metadata"]["machine"] and found["metadata"]["before"] != found["metadata"]["after"]


def test_a_comparison_can_be_quoted(copy, compare):
    status, said = compare("--rounds", 5, "--json", copy / "docs" / "results" / "data" / "other" / "found.json")
    assert status == 0, said
    (copy / "docs" / "page.md").write_text("<!-- generated: compare found -->\n<!-- end -->\n")
    assert draw(copy, "tables").returncode == 0
    assert "| allreduce 2 ranks | 12 of 12 | " in (copy / "docs" / "page.md").read_text()


def test_a_slower_build_is_found(compare):
    status, said = compare(factor=1.2, least=1 << 20)
    slower = [line for line in said.splitlines() if line.endswith("SLOWER")]
    assert status == 1 and sum("MiB" in line for line in slower) == 3 and not any("KiB" in line or " B " in line for line in slower), said
    # little, but more than the noise of the mean of all sizes
    status, said = compare(factor=1.045)
    assert status == 1 and "mean of the sizes" in [line for line in said.splitlines() if line.endswith("SLOWER")][-1], said


def test_too_little_time_decides_nothing(compare):
    status, said = compare("--seconds", 0)
    assert status == 2 and "UNDECIDED: allreduce 2 ranks" in said, said


def test_a_build_that_fails_is_told(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no device; exit 3\n")
    broken.chmod(0o755)
    done = subprocess.run([sys.executable, BENCH / "compare.py", "--before", broken, "--after", broken, "--launch", "threads", "--only", "allreduce 2"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 1 and "FAILED: allreduce 2 ranks" in done.stdout and "status 3: no device" in done.stdout, done.stdout


def test_scripts_name_collectives_that_there_are():
    known = subprocess.run([program("rondo"), "bench", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20).stdout
    known = set(re.search(r"COLLECTIVE \[OPTIONS\]\n(.*?)\n +-b", known, re.S).group(1).translate(str.maketrans(",;:", "   ")).split())
    for script in ("make/gpu-bench", "test/bench/compare.py", "test/bench/network_speed.py"):
        named = set(re.findall(r'"((?:all|reduce|bcast|sendrecv|gradients)[a-z_]*)"', (ROOT / script).read_text()))
        assert named and named <= known, (script, named - known)


def test_a_run_is_recorded_with_its_origin(tmp_path):
    where = tmp_path / "found.json"
    subprocess.run([sys.executable, BENCH / "record.py", where, "--title", "All-reduce", "--runs", "2", "--", program("rondo"), "bench",
                    "allreduce", "-b", "8", "-e", "32", "-n", "20", "--device", "host", "--ranks", "2"], check=True, stdout=subprocess.DEVNULL, timeout=120)
    found = json.loads(where.read_text())
    assert len(found["runs"]) == 2 and "bench allreduce" in found["metadata"]["command"] and found["metadata"]["title"] == "All-reduce"
    assert found["metadata"]["rival"] == "none" and found["metadata"]["date"].startswith("20")
    shutil.copytree(FOLDER, tmp_path / "docs" / "results", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(where, tmp_path / "docs" / "results" / "data" / "other" / "found.json")
    (tmp_path / "README.md").write_text("<!-- generated: value found runs bytes=32 --><!-- end -->\n")
    assert draw(tmp_path, "tables").returncode == 0
    assert "-->2<!--" in (tmp_path / "README.md").read_text()


def test_a_recorded_run_names_the_rival_and_its_version(tmp_path):
    if SANITIZED:
        pytest.skip("the sanitizers report what MPI itself leaks and races on")
    where = tmp_path / "found.json"
    subprocess.run([sys.executable, BENCH / "record.py", where, "--runs", "1", "--", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
                    program("rondo"), "bench", "allreduce", "-b", "8", "-e", "8", "-n", "20", "--device", "host", "--peer", "mpi"], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    meta = json.loads(where.read_text())["metadata"]
    assert re.search(r"(Open MPI|MPICH).*\d\.\d", meta["rival"]) and "bench allreduce" in meta["command"], meta
