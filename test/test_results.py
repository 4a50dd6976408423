"""The figures in the documents are those of docs/results/data; the files there say where they come from."""
import csv
import datetime
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
DATA = sorted((FOLDER / "data").glob("*.*"))
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


def test_a_changed_digit_in_a_document_is_found(copy):
    page = copy / "docs" / "page.md"
    page.write_text("# Page\n\n<!-- generated: host-allreduce -->\n<!-- end -->\n\n"
                    "Takes <!-- generated: value gpu-2-allreduce-stream time_us bytes=8 --><!-- end --> us.\n")
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
    path = copy / "docs" / "results" / "data" / "host-16-cores.csv"
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
    path = copy / "docs" / "results" / "data" / "host-16-cores.csv"
    path.write_text(re.sub(r"^# machine: .*\n", "", path.read_text(), flags=re.M))
    done = draw(copy, "tables", "--check")
    assert done.returncode != 0 and "does not name machine" in done.stdout, done.stdout


def test_transcribed_files_are_what_the_documents_said():
    known = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", "793e82f^{commit}"], stderr=subprocess.DEVNULL)
    if known.returncode != 0:
        pytest.skip("no commit 793e82f in this clone")
    done = subprocess.run([sys.executable, FOLDER / "transcribe.py", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
