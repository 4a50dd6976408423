#!/usr/bin/env python3
"""Prints docs/guide/program-examples.md: the examples of GC3's programs, with their lines and instructions beside the paper's.

usage: examples/programs/table.py PROGRAMS   (PROGRAMS: the path of build/examples/programs)
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOSTS, GROUP = 2, 4

# Lines of code as the paper has them: its listings, without comments and empty lines, or what its text says. Figure 3b's helpers
# are in figures of their own there as here. None: the paper prints no listing and gives no number.
RINGS = "figure 3b"
PAPER = {
    "ring_reduce_scatter": (8, RINGS), "ring_all_gather": (7, RINGS), "hierarchical": (11, "figure 3a"),
    "two_step_all_to_all": (15, "section 7.3"), "ring": (None, "section 7.1.1"), "ring_channels": (None, "section 7.1.1"),
    "all_pairs": (None, "section 7.1.2"), "hierarchical_parallel": (None, "section 5.1"), "all_to_next": (None, "section 7.4"),
    "one_step_all_to_all": (None, "section 7.3"),
}
# Where a file's name is not the example's.
FUNCTIONS = {"ring_reduce_scatter": ("rings", "reduce_scatter"), "ring_all_gather": ("rings", "all_gather")}
# Instructions that a step of MSCCL's XML would be if receives and sends were apart.
PARTS = {"s": 1, "r": 1, "cpy": 1, "re": 1, "rrc": 1, "rcs": 2, "rrs": 2, "rrcs": 2, "nop": 0}

HEAD = """# The paper's programs

`examples/programs/` has the programs of GC3 (Cowan et al., 2022) in the C API, a file each. They are proved by
`rondo_program_check`, and run:

    build/examples/programs                                    their names
    build/examples/programs hierarchical --hosts 2 --group 4   proves and runs one; every element is compared
    build/examples/programs hierarchical --xml                 what is executed, as MSCCL's XML

Lines are those of code: no comment, no empty line, no line that has a bracket alone; of the two rings they are the helper's in
`rings.c`, which the other programs share, as in the paper. The paper says of all its programs that each has less than 30, and of the
two-step all-to-all that a kernel written by hand has about 70; it gives no numbers of instructions. Instructions are those of all
ranks, on {hosts} hosts of {group} ranks, in MSCCL's XML; and what they would be if no receive were fused with the send that follows it
(section 4.2 of the paper). `make docs` writes this page.

| program | file | lines | paper's lines | instructions | without fused sends |
| --- | --- | ---: | ---: | ---: | ---: |
"""


def body(text, function):
    """The lines of a function, from its head to its end."""
    found = re.search(rf"^(?:static )?void {function}\(.*?^}}", text, re.M | re.S)
    return found[0] if found else None


def lines(name):
    stem, function = FUNCTIONS.get(name, (name, None))
    text = (ROOT / "examples" / "programs" / f"{stem}.c").read_text()
    text = body(text, function) if function else text
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return sum(1 for line in text.splitlines() if re.search(r"[^\s{}]", line) and not line.startswith("#"))


def main():
    print(HEAD.format(hosts=HOSTS, group=GROUP), end="")
    names = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        xml = subprocess.run([sys.argv[1], name, "--hosts", str(HOSTS), "--group", str(GROUP), "--xml"], capture_output=True,
                             text=True, check=True).stdout
        steps = [step for step in re.findall(r'<step [^>]*type="(\w+)"', xml) if PARTS[step]]
        count, where = PAPER.get(name, (None, ""))
        paper = (str(count) if count else "none") + f" ({where})" if where else "not in it"
        path = f"examples/programs/{FUNCTIONS.get(name, (name,))[0]}.c"
        print(f"| `{name}` | [{path.split('/')[-1]}](../../{path}) | {lines(name)} | {paper} | "
              f"{len(steps)} | {sum(PARTS[step] for step in steps)} |")


main()
