#!/usr/bin/env python3
"""Draws the charts from the files in data/, and writes the tables and figures of the documents between their markers.

usage: draw.py [tables|charts] [--check] [--root FOLDER]      both of them where neither is named; `make results` runs it
  --check        changes nothing; says what is not as it should be, and fails if anything is
  --root FOLDER  the repository whose documents are meant (that of this file)

A marker in a document is a line of its own, and what stands until the end's line is replaced:
    <!-- generated: NAME -->
    <!-- end -->
or both stand in one line, with one figure between them. README.md in this folder lists the names. Tables need Python alone;
charts need matplotlib.
"""
import argparse
import pathlib
import re
import sys

import tables

HERE = pathlib.Path(__file__).resolve().parent
BLOCK = re.compile(r"^(<!-- generated: ([^\n>]+?) -->\n)(.*?)^(<!-- end -->)", re.M | re.S)
INLINE = re.compile(r"(?<!`)(<!-- generated: ([^\n>]+?) -->)([^\n]*?)(<!-- end -->)")
OPENING = re.compile(r"(?<!`)<!-- generated: ")


def documents(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def plain(text):
    """The text without what is shown as code, whose markers are examples."""
    return re.sub(r"^(    .*|```.*?^```)$", "", text, flags=re.M | re.S)


def renewed(text, folder):
    """The document's text with everything between markers made anew."""
    def block(found):
        return f"{found.group(1)}{tables.generate(found.group(2).split(), folder)}\n{found.group(4)}"

    def inline(found):
        return f"{found.group(1)}{tables.generate(found.group(2).split(), folder)}{found.group(4)}"

    return INLINE.sub(inline, BLOCK.sub(block, text))


def check_tables(root, check):
    """What is wrong, a line each; where not only checked, what was out of date is written."""
    wrong = []
    for path in documents(root):
        if not path.exists():
            continue
        text = path.read_text()
        name = path.relative_to(root)
        closed = len(BLOCK.findall(text)) + len(INLINE.findall(BLOCK.sub("", text)))
        if len(OPENING.findall(plain(text))) > closed:
            wrong.append(f"{name}: a marker has no end")
            continue
        try:
            fresh = renewed(text, path.parent)
        except KeyError as error:
            wrong.append(f"{name}: {error.args[0]}")
            continue
        if fresh != text:
            if check:
                at = next(i for i, (a, b) in enumerate(zip((text + "\n").splitlines(), (fresh + "\n ").splitlines()), 1) if a != b)
                wrong.append(f"{name}:{at}: not what the data files give; run `make results`")
            else:
                path.write_text(fresh)
                print(f"wrote {name}")
    for data in tables.all_data():
        if data.missing():
            wrong.append(f"{data.path.name}: does not name {', '.join(data.missing())}")
    return wrong


def check_charts(check):
    import plot
    return plot.out_of_date() if check else plot.draw_all()


def main():
    reader = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    reader.add_argument("part", nargs="?", choices=("tables", "charts"))
    reader.add_argument("--check", action="store_true")
    reader.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    options = reader.parse_args()
    wrong = []
    if options.part != "tables":  # first, for tables link to charts
        wrong += check_charts(options.check)
    if options.part != "charts":
        wrong += check_tables(options.root.resolve(), options.check)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
