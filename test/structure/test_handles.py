"""Handles are not objects: with handle types of their own tags the library, the tools and the tests compile, so that no code passes one
for the other. (The public types share their tags with the objects, which hides such a mistake from the compiler.)
"""
import re
import subprocess

from harness import ROOT

FOLDERS = ("lib/", "proxy/", "transport/", "device/", "tools/", "compat/", "test/unit/", "test/multirank/", "test/fuzz/", "test/requests/",
           "test/operators/", "test/injection/", "test/membership/")
TYPES = {"runtime": ("rondo_t", "rondo.h"), "comm": ("rondo_comm_t", "rondo.h"), "request": ("rondo_request_t", "rondo.h"),
         "program_builder": ("rondo_program_t", "rondo_program.h")}


def test_no_handle_is_taken_for_an_object(tmp_path):
    headers = {name: (ROOT / "include" / name).read_text() for name in ("rondo.h", "rondo_program.h")}
    for tag, (name, where) in TYPES.items():
        headers[where], count = re.subn(rf"typedef struct rondo_{tag} \*{name};",
                                        f"struct rondo_{tag}; typedef struct rondo_handle_of_{tag} *{name};", headers[where])
        assert count == 1, name
    for name, text in headers.items():
        (tmp_path / name).write_text(text)
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.c"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    files = [name for name in files if name.startswith(FOLDERS) and (ROOT / name).exists() and "rondo" in (ROOT / name).read_text()]
    assert len(files) > 150
    done = subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wincompatible-pointer-types", f"-I{tmp_path}", "-I.",
                           "-DRONDO_WITH_CUDA=0", "-DRONDO_WITH_VERBS=0", "-DRONDO_WITH_UCX=0", "-DRONDO_WITH_NUMA=0",
                           "-DRONDO_WITH_MPI=0", *files], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    wrong = [line for line in done.stderr.splitlines() if "incompatible-pointer-types" in line or "conflicting types" in line]
    assert not wrong, "\n".join(wrong)
