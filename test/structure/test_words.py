#!/usr/bin/env python3
"""Words: names without retired parts, comments and docs without persons for subjects, docs whose links and files exist.

`python3 test/structure/test_words.py [FOLDER]` prints every offender of a tree as file:line and exits 1 if there is one; pytest runs the
same checks, and tests of the checks that plant an offender in a copy. docs/glossary.md has the words that are used instead.
"""
import ast
import fnmatch
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Parts of names that docs/glossary.md has other words for. A part lies between underscores, other punctuation, digits or capitals.
RETIRED = """errand lend lending loan landing kept seat seats glance pace card cards roster meeting news handover piece team walk
straight brief nap bury carry carried stranger crowd""".split()
# ... and their plurals, which are the same words.
RETIRED = frozenset(RETIRED) | {part + "s" for part in RETIRED}
PERSONS = re.compile(r"\b(he|him|his|somebody|nobody|everybody|whoever)\b", re.IGNORECASE)
# Names that others have given: of Python's library, and of NCCL's device interface, which the drop-in exports.
FOREIGN = re.compile(r"\b(os|ast|Path|root|path)\.walk\b|\bp?ncclTeam\w*|\bnLsaTeams\b|\bteamRequirementsList\b")
# The history names what was renamed.
HISTORY = {"CHANGELOG.md"}

C_LIKE = {".c", ".h", ".cu", ".cuh", ".cc", ".pml"}
MAKE_LIKE = {".mk"}
NOT_TEXT = {".svg", ".png", ".xml", ".json", ".csv", ".txt", ".supp", ".in", ".map"}
# This file holds the lists of words.
SELF = "test/structure/test_words.py"


def tracked(root):
    """The files of the tree as paths relative to it: git's, or, in a copy without a repository, all."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True,
                                check=True).stdout.decode().split("\0")
        return sorted(name for name in listed if name and (root / name).is_file())
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def language(root, name):
    """c, python, shell, make, markdown, or None for what is neither code nor documentation."""
    path = Path(name)
    if path.suffix in C_LIKE:
        return "c"
    if path.suffix == ".py":
        return "python"
    if path.suffix in MAKE_LIKE or path.name == "Makefile":
        return "make"
    if path.suffix == ".md":
        return "markdown"
    if path.suffix == ".sh":
        return "shell"
    if path.suffix == "" or name == ".ci/run":
        first = (root / name).open("rb").readline()
        if first.startswith(b"#!"):
            return "python" if b"python" in first else "shell"
    return None


def blank(text):
    """The text's place kept, its characters gone."""
    return re.sub(r"[^\n]", " ", text)


@functools.lru_cache(maxsize=None)
def split_c(text):
    """(code, comments): in each the rest is blank, so that both have the text's lines. String literals are in neither. Each check
    splits the whole tree: a file is split once."""
    token = re.compile(r'(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)
    # An #include's file name is a name like any other: it stays in the code.
    included = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)
    includes = {match.start(1) - 1 for match in included.finditer(text)}
    code, comments, last = [], [], 0
    for match in token.finditer(text):
        between, found = text[last:match.start()], match.group()
        code.append(between)
        comments.append(blank(between))
        code.append(found if match.start() in includes else blank(found))
        comments.append(found if match.group("comment") else blank(found))
        last = match.end()
    code.append(text[last:])
    comments.append(blank(text[last:]))
    return "".join(code), "".join(comments)


# Kinds of tokens that are no code. From Python 3.12 on a formatted string is several tokens: its text, and what it evaluates.
NO_CODE = {"STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END", "INDENT", "DEDENT", "NEWLINE", "NL", "ENDMARKER"}


@functools.lru_cache(maxsize=None)
def split_python(text):
    """As split_c; docstrings are comments. What a formatted string evaluates is code."""
    code = [list(blank(line)) for line in text.split("\n")]
    comments = [list(blank(line)) for line in text.split("\n")]
    lines = text.split("\n")
    docstrings = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.add((node.value.lineno, len(lines[node.value.lineno - 1].encode()[:node.value.col_offset].decode())))

    def copy(to, start, end):
        for row in range(start[0], end[0] + 1):
            first = start[1] if row == start[0] else 0
            last = end[1] if row == end[0] else len(lines[row - 1])
            to[row - 1][first:last] = lines[row - 1][first:last]

    for item in tokenize.generate_tokens(io.StringIO(text).readline):
        if item.type == tokenize.COMMENT or (item.type == tokenize.STRING and item.start in docstrings):
            copy(comments, item.start, item.end)
        elif item.type == tokenize.STRING and re.match(r"[rRbB]?[fF]", item.string):
            for braces in re.finditer(r"\{([^{}\n]*)\}", item.string):
                if "\n" not in item.string:
                    copy(code, (item.start[0], item.start[1] + braces.start(1)), (item.start[0], item.start[1] + braces.end(1)))
        elif tokenize.tok_name[item.type] not in NO_CODE:
            copy(code, item.start, item.end)
    return "\n".join(map("".join, code)), "\n".join(map("".join, comments))


@functools.lru_cache(maxsize=None)
def split_shell(text):
    """As split_c, for shell and make. Of a string in double quotes the names of variables stay in the code."""
    code, comments = [], []
    token = re.compile(r"""(?P<comment>(?:(?<=\s)|(?<![\s\S]))\#[^\n]*)|(?P<string>'[^'\n]*'|"(?:\\.|[^"\\\n])*")|\\.""")
    last = 0
    for match in token.finditer(text):
        between, found = text[last:match.start()], match.group()
        code.append(between)
        comments.append(blank(between))
        last = match.end()
        if match.group("comment"):
            code.append(blank(found))
            comments.append(found)
        else:
            comments.append(blank(found))
            names = list(blank(found))
            if found.startswith('"'):
                for name in re.finditer(r"\$[({]?(\w+)", found):
                    names[name.start(1):name.end(1)] = name.group(1)
            elif not found.startswith("'"):
                names = list(found)
            code.append("".join(names))
    code.append(text[last:])
    comments.append(blank(text[last:]))
    return "".join(code), "".join(comments)


SPLIT = {"c": split_c, "python": split_python, "shell": split_shell, "make": split_shell}


def read(root, name):
    return (root / name).read_text(encoding="utf-8", errors="replace")


def parts(name):
    """The words of a name: rondo_landingOffer2 -> rondo, landing, offer."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def retired_in(name):
    return [part for part in parts(name) if part in RETIRED]


def check_names(root):
    """[(file, line, message)] of names with retired parts: of files, of what code declares or uses, of environment variables."""
    found = []
    for name in tracked(root):
        if name == SELF:
            continue
        for part in retired_in(re.sub(r"\.\w+$", "", name)):
            found.append((name, 0, f"the file's name has '{part}'"))
        kind = language(root, name)
        if kind is None:
            continue
        text = read(root, name)
        where = SPLIT[kind](text)[0] if kind in SPLIT else blank(text)
        for number, (code, whole) in enumerate(zip(where.split("\n"), text.split("\n")), 1):
            names = set(re.findall(r"[A-Za-z_]\w*", FOREIGN.sub("", code)))
            if name not in HISTORY:
                names |= set(re.findall(r"\bRONDO_[A-Z0-9_]+", whole))  # environment variables stand in strings and texts
            for identifier in sorted(names):
                for part in retired_in(identifier):
                    found.append((name, number, f"{identifier} has '{part}'"))
    return found


def check_persons(root):
    """[(file, line, message)] of persons in comments and docs, where a thing with a name is the subject."""
    found = []
    for name in tracked(root):
        kind = language(root, name)
        if kind is None or name == SELF:
            continue
        text = read(root, name)
        comments = text if kind == "markdown" else SPLIT[kind](text)[1]
        for number, line in enumerate(comments.split("\n"), 1):
            for match in PERSONS.finditer(line):
                found.append((name, number, f"'{match.group()}' in: {line.strip()}"))
    return found


# ---- links ----

SOURCE = re.compile(r"^[\w.*{},/-]+\.(c|h|cu|py|pml|md|mk|sh|map|svg|csv)$")
# What belongs to others, what is generated, and names that stand for the reader's own files.
NOT_OURS = re.compile(r"(^|/)(nccl|mpi|zfp|jni|cuda|cuda_runtime)\.h$|^(build|usr|opt|etc|proc|sys|dev|my|share)/|^(my|your)[\w-]*\.|"
                      r"NAME|^docs/page\.md$|^(train|compare|program)\.py$|^program\.c$|^user\.c$|^tracks?\.svg$|^plots\.svg$|^tree\.svg$")
# A path from the root, in a comment or anywhere in a document.
PATH = re.compile(r"(?<![\w/.{}*<-])((?:include|tools|compat|lib|proxy|transport|device|test|examples|make)/[\w/.-]+\.(?:c|h|cu|py|pml|mk|md))\b(?![*{])")
# A tracked or a generated one of these is a folder of the repository.
FOLDERS = {"include", "tools", "compat", "lib", "proxy", "transport", "device", "test", "docs", "examples", "make", "python", ".ci"}


def slug(heading):
    """As GitHub makes a heading's anchor."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "")
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(text):
    seen, result = {}, set()
    for heading in re.findall(r"^#{1,6} (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        base = slug(heading)
        count = seen.get(base, 0)
        seen[base] = count + 1
        result.add(base if count == 0 else f"{base}-{count}")
    return result | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def alternatives(pattern):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    return [one for choice in match.group(1).split(",")
            for one in alternatives(pattern[:match.start()] + choice + pattern[match.end():])]


def exists(files, folders, name, pattern):
    """Whether the tree has what a document calls `pattern`: from the root, beside the document, or by the end of its path."""
    pattern = pattern.rstrip("/")
    beside = os.path.normpath(os.path.join(os.path.dirname(name), pattern))
    for candidate in (pattern, beside):
        if candidate in files or candidate in folders:
            return True
    if "*" in pattern:
        return any(fnmatch.fnmatch(file, pattern) or fnmatch.fnmatch(file, "*/" + pattern) for file in files)
    return any(file.endswith("/" + pattern) for file in files)


# Rondo's names in a span of code: functions, types, macros, environment variables. Not rondo_X (any collective) and RONDO_SPIN_*.
IDENTIFIER = re.compile(r"(?<![\w/.<-])((?:rondo|RONDO)_[A-Za-z0-9_]*[a-z0-9A-Z])(?![\w*<])")
PLACEHOLDER = re.compile(r"_(X|NAME)(_|$)|^rondo_(torch|<)")


def identifiers(root, files):
    """All of Rondo's names in code and in its strings, in small letters; a name that only a comment has is none."""
    known = set()
    for name in files:
        kind = language(root, name)
        if kind in SPLIT and name != SELF:
            text = read(root, name)
            comments = SPLIT[kind](text)[1]
            last, rest = 0, []
            for match in re.finditer(r"\S+", comments):
                rest += [text[last:match.start()], " "]
                last = match.end()
            rest.append(text[last:])
            known |= {match.lower() for match in re.findall(r"\b(?:rondo|RONDO)_\w+", "".join(rest))}
    return known


def check_links(root):
    """[(file, line, message)] of links, files and names in docs, and of docs in comments, that do not exist."""
    found = []
    files = set(tracked(root))
    folders = {str(parent) for file in files for parent in Path(file).parents}
    texts = {}
    known = identifiers(root, files)
    for name in sorted(files):
        kind = language(root, name)
        if name == SELF or kind is None or name.endswith("/transcribe.py"):  # that one reads the documents of an earlier commit
            continue
        text = read(root, name)
        if kind != "markdown":
            for number, line in enumerate(text.split("\n"), 1):
                for document in re.findall(r"(?<![\w/.-])(?:docs/[\w/.-]+\.md|[A-Z]+\.md)\b", line):
                    if document not in files and not NOT_OURS.search(document):
                        found.append((name, number, f"{document} does not exist"))
            text = SPLIT[kind](text)[1]
        for number, line in enumerate(text.split("\n"), 1):
            for path in PATH.findall(line) if name not in HISTORY else ():
                if not path.startswith("docs/") and path not in files and not NOT_OURS.search(path):
                    found.append((name, number, f"{path} does not exist"))
        if kind != "markdown":
            continue
        fence = False
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("```"):
                fence = not fence
            if fence or line.startswith("    "):
                continue
            spans = re.findall(r"`([^`]+)`", line)
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "``", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if there not in files and there not in folders:
                    found.append((name, number, f"the link's {target} does not exist"))
                elif anchor and there.endswith(".md"):
                    if there not in texts:
                        texts[there] = anchors(read(root, there))
                    if anchor not in texts[there]:
                        found.append((name, number, f"{there} has no heading #{anchor}"))
            for span in spans:
                for identifier in IDENTIFIER.findall(span) if name not in HISTORY else ():
                    if identifier.lower() not in known and not PLACEHOLDER.search(identifier):
                        found.append((name, number, f"`{identifier}` is no name of the code"))
                for pattern in alternatives(span):
                    looks = SOURCE.match(pattern) or re.match(r"^[\w.*-]+(/[\w.*-]+)*/?$", pattern) and "/" in pattern and \
                        pattern.split("/")[0] in FOLDERS
                    if looks and not NOT_OURS.search(pattern) and not exists(files, folders, name, pattern):
                        found.append((name, number, f"`{pattern}` does not exist"))
    return found


CHECKS = {"names": check_names, "persons": check_persons, "links": check_links}


def show(found):
    return "\n".join(f"{name}:{line}: {message}" if line else f"{name}: {message}" for name, line, message in found)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_repository(check):
    found = check(ROOT)
    assert not found, f"{len(found)} offenders\n{show(found)}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


# ---- tests of the checks: each plants an offender in a copy ----

@pytest.fixture
def copy(tmp_path):
    """Some files of this tree of each kind, in which the checks find nothing yet."""
    header = "/* A ring of slots. */\n#define RONDO_SLOTS 4\nstruct rondo_ring {\n    int head, tail;\n};\n"
    (tmp_path / "lib").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "test").mkdir()
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (tmp_path / "lib" / "ring.h").write_text(header)
    (tmp_path / "lib" / "ring.c").write_text('#include "lib/ring.h"\n\n/* See docs/ring.md. */\nint rondo_ring_head;\n')
    (tmp_path / "test" / "test_ring.py").write_text('"""A ring."""\n\n\ndef test_ring():\n    assert True  # it holds\n')
    (tmp_path / "test" / "run").write_text('#!/bin/bash\n# Runs all.\nlevel=1\necho "$level"\n')
    (tmp_path / "Makefile").write_text("# All.\nSLOTS := 4\nall:\n\t@echo $(SLOTS)\n")
    (tmp_path / "docs" / "ring.md").write_text("# Ring\n\n[the other](other.md#words), `lib/ring.h`, `ring.c` and `lib/`.\n")
    (tmp_path / "docs" / "other.md").write_text("# Words\n\nA ring has slots.\n")
    for check in CHECKS.values():
        assert check(tmp_path) == []
    return tmp_path


def plant(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    path.write_text(before + text)
    return before.count("\n") + 1


@pytest.mark.parametrize("name, text, part", [
    ("lib/ring.h", "struct rondo_errand;\n", "errand"),
    ("lib/ring.h", "struct rondo_x { int block_seats; };\n", "seats"),
    ("lib/ring.h", "#define RONDO_TEAM_REST 1\n", "team"),
    ("lib/ring.h", "int rondoLandingOffer(void);\n", "landing"),
    ("lib/ring.h", "enum { FIRST, NAP2 };\n", "nap"),
    ("lib/ring.h", "void f(int pieces);\n", "pieces"),
    ("lib/ring.c", '#include "lib/roster.h"\n', "roster"),
    ("lib/ring.c", 'static const char *name = "RONDO_GLANCE";\n', "glance"),
    ("lib/ring.cu", "__global__ void walk_parts() {}\n", "walk"),
    ("test/models/ring.pml", "byte lending;\n", "lending"),
    ("test/test_ring.py", "news = 1\n", "news"),
    ("test/test_ring.py", "print(f'{carried}')\n", "carried"),
    ("test/run", "crowd=1\n", "crowd"),
    ("test/run", 'echo "${stranger}"\n', "stranger"),
    ("Makefile", "CARDS := 1\n", "cards"),
    ("docs/ring.md", "Set `RONDO_PACE`.\n", "pace"),
])
def test_finds_a_retired_part(copy, name, text, part):
    line = plant(copy, name, text)
    assert [(file, number) for file, number, message in check_names(copy) if f"'{part}'" in message] == [(name, line)]


@pytest.mark.parametrize("name", ["lib/kept.c", "test/handover.py", "device/cuda-straight.h", "lib/meeting/x.h"])
def test_finds_a_retired_part_in_a_file_name(copy, name):
    plant(copy, name, "\n")
    assert [(file, line) for file, line, _ in check_names(copy)] == [(name, 0)]


@pytest.mark.parametrize("name, text", [
    ("lib/ring.c", '/* A brief walk: the news is kept. */\nconst char *text = "a brief walk";\n'),
    ("lib/ring.c", "int rondo_discard, spaces, keptness, renewsX; // pieces\n"),
    ("test/test_ring.py", "# kept\nname = 'a team'\nfor _ in os.walk('.'):\n    pass\n"),
    ("test/run", "echo 'a piece' \"of news\" # kept\n"),
    ("docs/ring.md", "In brief: the card.\n"),
])
def test_lets_english_words_be(copy, name, text):
    plant(copy, name, text)
    assert check_names(copy) == []


@pytest.mark.parametrize("word", "he him his somebody nobody everybody whoever He NOBODY".split())
@pytest.mark.parametrize("name, text", [
    ("lib/ring.h", "/* If {} waits. */\n"),
    ("lib/ring.c", "int x; // {} waits\n"),
    ("lib/ring.cu", "/* one\n * two {} */\n"),
    ("test/models/ring.pml", "/* {} */\n"),
    ("test/test_ring.py", "# {} waits\n"),
    ("test/test_ring.py", 'def f():\n    """For {}."""\n'),
    ("test/run", "echo # {} waits\n"),
    ("Makefile", "# {} waits\n"),
    ("docs/ring.md", "Then {} waits.\n"),
])
def test_finds_a_person(copy, name, text, word):
    plant(copy, name, text.format(word))
    assert [(file, message[1:1 + len(word)]) for file, _, message in check_persons(copy)] == [(name, word)]


@pytest.mark.parametrize("name, text", [
    ("lib/ring.c", '/* The other one; this, hear, hist. */\nconst char *who = "nobody";\nint his;\n'),
    ("test/test_ring.py", "user = 'nobody'\n"),
    ("docs/ring.md", "There this histogram is.\n"),
])
def test_takes_no_other_word_for_a_person(copy, name, text):
    plant(copy, name, text)
    assert check_persons(copy) == []


@pytest.mark.parametrize("name, text", [
    ("docs/ring.md", "[gone](gone.md)\n"),
    ("docs/ring.md", "[no such heading](other.md#sentences)\n"),
    ("docs/ring.md", "[no such heading here](#words)\n"),
    ("docs/ring.md", "`lib/gone.c`\n"),
    ("docs/ring.md", "`gone.h`\n"),
    ("docs/ring.md", "`lib/gone/`\n"),
    ("docs/ring.md", "`lib/{ring,gone}.c`\n"),
    ("docs/ring.md", "`lib/gone*.c`\n"),
    ("docs/ring.md", "`rondo_gone(1)`\n"),
    ("docs/ring.md", "`RONDO_GONE=1`\n"),
    ("docs/ring.md", "    python3 test/gone.py\n"),
    ("lib/ring.c", "/* See docs/gone.md. */\n"),
    ("lib/ring.c", "/* See lib/gone.h. */\n"),
    ("test/test_ring.py", "# See lib/gone.h.\n"),
    ("test/test_ring.py", "# docs/gone.md has the figures.\n"),
])
def test_finds_a_dead_link(copy, name, text):
    line = plant(copy, name, text)
    assert {(file, number) for file, number, _ in check_links(copy)} == {(name, line)}


def main():
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    count = 0
    for check in CHECKS.values():
        found = check(root)
        count += len(found)
        if found:
            print(show(found))
    print(f"{count} offenders", file=sys.stderr)
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
