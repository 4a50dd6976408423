"""make/check-layers: the tree's includes go down its layers, and the check finds what is planted in a copy of the tree."""
import shutil
import subprocess

import pytest

from harness import ROOT

SOURCES = (".c", ".h", ".cu", ".cuh")


def check(root):
    """Runs the check on a tree; returns its exit status and its lines."""
    done = subprocess.run([str(ROOT / "make" / "check-layers"), str(root)], capture_output=True, text=True, timeout=60)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def rooms(root):
    """The rooms of the table, from the bottom up."""
    lines = [line.split("#")[0].split(":")[0].strip() for line in (root / "make" / "layers.txt").read_text().splitlines()]
    return [line for line in lines if line]


@pytest.fixture
def copy(tmp_path):
    """A copy of the tree's sources and table."""
    root = tmp_path / "tree"
    for name in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                               check=True).stdout.splitlines():
        if (name.endswith(SOURCES) and not name.startswith("test/") or name == "make/layers.txt") and (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    return root


def headers(root, room):
    return sorted(path.relative_to(root).as_posix() for path in (root / room).glob("*.h"))


def plant(root, name, line):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + line + "\n")


def new_problems(root, before):
    """The lines that the check prints for the tree now and did not print before. The check must fail."""
    status, lines = check(root)
    assert status == 1, lines
    return [line for line in lines if line not in before]


def test_the_tree():
    status, lines = check(ROOT)
    assert status == 0, "\n".join(lines)


def test_upward_include(copy):
    """A file of every room but the uppermost includes a header of a room above it: each such line is reported, by file and header."""
    _, before = check(copy)
    order = rooms(copy)
    public = {path.name for path in (copy / "include").glob("*.h")}
    planted = []
    for at, room in enumerate(order):
        above = [header for other in order[at + 1:] for header in headers(copy, other) if header.split("/")[-1] not in public]
        if above:
            planted.append((f"{room}/planted.c", above[-1]))
            plant(copy, *planted[-1][:1], f'#include "{above[-1]}"')
    assert len(planted) > 20
    found = new_problems(copy, before)
    for file, header in planted:
        assert any(file in line and header in line for line in found), f"{file} includes {header}: {found}"


def test_downward_include(copy):
    """A header of a room below may be included."""
    status, before = check(copy)
    order = rooms(copy)
    bottom = next(header for room in order[1:] for header in headers(copy, room))
    plant(copy, "lib/runtime/planted.c", f'#include "{bottom}"')
    assert check(copy)[0] == status
    assert [line for line in check(copy)[1] if "planted" in line] == [line for line in before if "planted" in line] == []


def test_circle(copy):
    """Two rooms that include each other are a circle, and so are three that do so in turn; both are reported for each room."""
    with open(copy / "make" / "layers.txt", "a") as table:
        table.write("planted/one\nplanted/two\nplanted/three\n")
    for room in ("one", "two", "three"):
        plant(copy, f"planted/{room}/{room}.h", f"extern int {room};")
    _, before = check(copy)
    plant(copy, "planted/two/two.c", '#include "planted/one/one.h"')
    plant(copy, "planted/one/one.c", '#include "planted/two/two.h"')
    found = [line for line in new_problems(copy, before) if "circle" in line]
    assert [sum(f"planted/{room}" in line for line in found) for room in ("one", "two", "three")] == [1, 1, 0], found
    (copy / "planted/two/two.c").unlink()
    plant(copy, "planted/two/two.c", '#include "planted/three/three.h"')
    plant(copy, "planted/three/three.c", '#include "planted/one/one.h"')
    found = [line for line in new_problems(copy, before) if "circle" in line]
    assert [sum(f"planted/{room}" in line for line in found) for room in ("one", "two", "three")] == [1, 1, 1], found


def test_unknown_folder(copy):
    """A folder of sources that the table lacks, and a room of the table that the tree lacks."""
    _, before = check(copy)
    plant(copy, "lib/planted/planted.c", "int planted;")
    found = new_problems(copy, before)
    assert any("lib/planted" in line for line in found), found
    shutil.rmtree(copy / "lib" / "planted")
    with open(copy / "make" / "layers.txt", "a") as table:
        table.write("lib/missing\n")
    found = new_problems(copy, before)
    assert any("lib/missing" in line for line in found), found


def test_include_without_its_folder(copy):
    """An include that does not spell its folder from the root, though a compiler might find it beside the file."""
    _, before = check(copy)
    room = next(room for room in rooms(copy)[1:] if headers(copy, room))
    header = headers(copy, room)[0]
    plant(copy, f"{room}/planted.c", f'#include "{header.split("/")[-1]}"')
    found = new_problems(copy, before)
    assert any(f"{room}/planted.c" in line for line in found), found


def test_any_folder_with_many_files(copy):
    """Of a checkout, a folder of 31 files that are no sources counts too, but not by files that git ignores."""
    subprocess.run(["git", "init", "-q", copy], check=True)
    (copy / ".gitignore").write_text("*.o\n")
    _, before = check(copy)
    for number in range(30):
        plant(copy, f"docs/pages/{number}.md", "text")
        plant(copy, f"docs/pages/{number}.o", "text")
    assert check(copy)[1] == before
    plant(copy, "docs/pages/more.zip", "text")
    assert "docs/pages: 31 files, more than 30" in new_problems(copy, before)


def test_folder_with_many_files(copy):
    """A folder of more than 30 files."""
    _, before = check(copy)
    room = next(room for room in rooms(copy) if room.startswith("lib/"))
    for number in range(31):
        plant(copy, f"{room}/planted{number}.c", "")
    found = new_problems(copy, before)
    assert any(line.startswith(room) and "30" in line for line in found), found


def test_restricted_room(copy):
    """The tools and drop-ins stand on the public interface: another include is reported, though the room lies below."""
    _, before = check(copy)
    plant(copy, "tools/sim/planted.c", '#include "lib/base/error.h"')
    assert any("tools/sim/planted.c" in line and "does not allow" in line for line in new_problems(copy, before))
