"""SECURITY.md: each promise names a test, and each test that it names exists."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `file`: test_one, test_two
NAMED = re.compile(r"`((?:test|proxy|transport)/[\w./]+)`((?:: *test_\w+(?:, test_\w+)*)?)")


def promises(text):
    """The rows of the tables with a column of tests."""
    rows, shown = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            shown = False
        elif line.rstrip("| ").endswith("shown by"):
            shown = True
        elif shown and not line.startswith("| ---"):
            rows.append(line)
    return rows


def lacking(text):
    """What is wrong, as lines."""
    wrong = [f"no test: {row}" for row in promises(text) if not NAMED.search(row)]
    for path, names in NAMED.findall(text):
        if not (ROOT / path).exists():
            wrong.append(f"no file: {path}")
            continue
        content = (ROOT / path).read_text()
        wrong += [f"no test in {path}: {name}" for name in re.findall(r"test_\w+", names) if not re.search(rf"\b{name}\(", content)]
    wrong += [f"of no file: {name}" for name in re.findall(r"\btest_\w+\b", NAMED.sub("", text))]
    return wrong


def test_each_promise_is_shown():
    text = (ROOT / "SECURITY.md").read_text()
    assert len(promises(text)) > 25
    assert not lacking(text), "\n".join(lacking(text))


def test_the_check_finds_them():
    head = "| promise | shown by |\n| --- | --- |\n"
    assert lacking(head + "| a | nothing |") == ["no test: | a | nothing |"]
    assert lacking(head + "| a | `test/none.py` |") == ["no file: test/none.py"]
    assert lacking(head + "| a | `test/test_trace.py`: test_plots, test_none |") == ["no test in test/test_trace.py: test_none"]
    assert lacking("Shown by test_plots.") == ["of no file: test_plots"]
