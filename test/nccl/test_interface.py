"""NCCL's interface beside the drop-in's: every function that a header declares, and every symbol that NVIDIA's library exports, is in
the library and in the table of docs/guide/nccl.md, and what the table calls refused answers so.

The headers are the toolkit's and, once `make nccl-header` has brought it, the pinned one (build/nccl-pinned/).
"""
import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import BUILD, ROOT

PINNED = BUILD / "nccl-pinned"
LIBRARIES = [path for path in (BUILD / "nccl" / "libnccl.so.2", PINNED / "libnccl.so.2") if path.exists()]
HEADERS = [folder for folder in (Path("/usr/local/cuda/include"), Path("/usr/local/include"), Path("/usr/include"), PINNED / "include")
           if (folder / "nccl.h").exists()]
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="no drop-in in this build: it needs CUDA's and NCCL's headers")

STATES = ("whole", "in part", "refused")
# Exported by the library without being declared anywhere, or of the drop-in alone.
UNDECLARED = {"ncclResetDebugInitInternal", "rondo_nccl_synchronize"}
FOR_HOST = re.compile(r"\bNCCL_EXTERN_C\s+(?:__host__\s+)?(?:ncclResult_t|ncclTeam_t|int|void)\s+(nccl\w+)\s*\(")
IN_NCCL_H = re.compile(r"\b(?:ncclResult_t|const\s+char\s*\*|void)\s*(p?nccl\w+)\s*\(")


def read_declared(folder):
    """The functions that nccl.h and nccl_device.h declare for programs on the host."""
    found = set()
    for path in [folder / "nccl.h", *sorted(folder.glob("nccl_device/*.h"))]:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(errors="replace"), flags=re.S)
        found |= set((IN_NCCL_H if path.name == "nccl.h" else FOR_HOST).findall(text))
    return found


def read_exported(library):
    said = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in said.stdout.splitlines()}


def read_table(text):
    """{symbol: (since, state, why)}."""
    table = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        names = re.findall(r"`(nccl\w+)`", cells[0])
        if line.startswith("| `nccl") and len(cells) == 4:
            for name in names:
                assert name not in table, f"{name} has two rows"
                table[name] = tuple(cells[1:])
    return table


def find_missing(declared, exported, table):
    """What a header's functions lack."""
    plain = {name[1:] if name.startswith("pnccl") else name for name in declared}
    return sorted([f"{name}: not in the table" for name in plain - set(table)] +
                  [f"{name}: not exported" for name in declared - exported])


TABLE = read_table((ROOT / "docs" / "guide" / "nccl.md").read_text())


def test_table():
    assert len(TABLE) > 50
    for name, (since, state, why) in TABLE.items():
        assert re.fullmatch(r"2\.\d+( or before)?", since), f"{name}: since {since}"
        assert state in STATES and (state == "whole" or why), f"{name}: {state}"


@pytest.mark.parametrize("folder", HEADERS, ids=str)
@pytest.mark.parametrize("library", LIBRARIES, ids=[path.parent.name for path in LIBRARIES])
def test_header(folder, library):
    declared = read_declared(folder)
    assert len(declared) > 80
    assert find_missing(declared, read_exported(library), TABLE) == []


@pytest.mark.parametrize("library", LIBRARIES, ids=[path.parent.name for path in LIBRARIES])
def test_library(library):
    exported = read_exported(library)
    assert {name for name in exported if not name.startswith("pnccl")} - UNDECLARED == set(TABLE)
    assert {"p" + name for name in TABLE} <= exported


def test_nvidias_library():
    nvidia = PINNED / "nvidia" / "libnccl.so.2"
    if not nvidia.exists():
        pytest.skip("make nccl-header brings NVIDIA's library, whose symbols this compares")
    for library in LIBRARIES:
        wanted = {name for name in read_exported(nvidia) if re.match(r"p?nccl[A-Z]", name)}
        assert wanted - read_exported(library) == set()


def test_device_header(tmp_path):
    """A kernel's source compiles with the drop-in's nccl_device.h, and GIN is an error that says what is not offered."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        pytest.skip("no nvcc")
    source = tmp_path / "gin.cu"
    source.write_text("#include <nccl_device.h>\n__global__ void f(ncclDevComm comm) { ncclGin gin(comm, 0); }\n")
    said = subprocess.run([nvcc, "-std=c++17", f"-I{ROOT}/compat/nccl/device", f"-I{HEADERS[0]}", "-ptx", "-o", str(tmp_path / "gin.ptx"),
                           str(source)], capture_output=True, text=True, timeout=300)
    assert said.returncode != 0 and "GIN is not offered by Rondo" in said.stdout + said.stderr, said.stderr[-2000:]


def test_a_symbol_that_lacks(tmp_path):
    """The comparison finds a function that the table lacks, and one that the library lacks."""
    (tmp_path / "nccl.h").write_text("ncclResult_t  ncclGroupStart();\nncclResult_t pncclFly(int height);\n/* ncclResult_t ncclOld(); */\n")
    (tmp_path / "nccl_device").mkdir()
    (tmp_path / "nccl_device" / "host.h").write_text("NCCL_EXTERN_C ncclTeam_t ncclTeamSky(\n  ncclComm_t comm);\n")
    declared = read_declared(tmp_path)
    assert declared == {"ncclGroupStart", "pncclFly", "ncclTeamSky"}
    assert find_missing(declared, read_exported(LIBRARIES[0]), TABLE) == [
        "ncclFly: not in the table", "ncclTeamSky: not exported", "ncclTeamSky: not in the table", "pncclFly: not exported"]
    without = {name: row for name, row in TABLE.items() if name != "ncclGroupStart"}
    assert "ncclGroupStart: not in the table" in find_missing(declared, read_exported(LIBRARIES[0]), without)


@pytest.mark.parametrize("name", sorted(name for name, row in TABLE.items() if row[1] == "refused"))
def test_refused(name):
    """It resolves, and the last error names it and says why."""
    for path in LIBRARIES:
        library = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL)
        library.ncclGetLastError.restype = ctypes.c_char_p
        value = getattr(library, name)(None, None, None, None)
        said = library.ncclGetLastError(None).decode()
        assert said.startswith(f"{name} is not offered: "), said
        assert value == (0 if name in ("ncclLLA2ACalcSlots", "ncclTeamCft", "ncclTeamCftMultimem") else 5)
