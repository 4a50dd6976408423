"""The build's own promises: unit tests, the models, exported symbols, the header in C and C++, installation."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness import BUILD, ROOT, SANITIZED, program, run

UNIT_TESTS = sorted(path.stem for path in (ROOT / "test" / "unit").glob("test_*.c"))


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_unit(name):
    output = run(program(name), seconds=120)
    assert re.search(r"\[  PASSED  \] \d+ test", output), output


@pytest.mark.slow
def test_models():
    run(sys.executable, "test/models/run.py", seconds=240)


def test_only_public_symbols_are_exported():
    header = "".join((ROOT / "include" / name).read_text() for name in ("rondo.h", "rondo_program.h"))
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    public = set(re.findall(r"\b(rondo_[a-z_0-9]+)\(", header))
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "librondo.so")], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in symbols.stdout.splitlines() if " T " in line}
    if SANITIZED:
        exported = {name for name in exported if name.startswith("rondo_")}
    assert exported - public == set()
    assert {name for name in public if not name.endswith("_t")} - exported == set()


@pytest.mark.parametrize("compiler, language", [("cc", "-std=c99"), ("c++", "-std=c++11"), ("c++", "-std=c++20")])
def test_header(tmp_path, compiler, language):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    source = tmp_path / ("header.c" if compiler == "cc" else "header.cc")
    source.write_text('#include "rondo_program.h"\nint main(void) { rondo_config_t c = RONDO_CONFIG_DEFAULT; rondo_attr_t a = '
                      "RONDO_ATTR_DEFAULT; return c.rank + 1 + a.priority; }\n")
    subprocess.run([compiler, language, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{ROOT}/include", "-fsyntax-only",
                    str(source)], check=True)


@pytest.mark.slow
def test_installation(tmp_path):
    make = ["make", "-s", f"BUILD={BUILD}", f"PREFIX={tmp_path}/usr", "install"]
    subprocess.run(make, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    source = tmp_path / "user.c"
    source.write_text('#include <rondo.h>\n#include <stdio.h>\nint main(void) { puts(rondo_strerror(0)); return 0; }\n')
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{tmp_path}/usr/lib/pkgconfig")
    if shutil.which("pkg-config"):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "rondo"], env=environment, capture_output=True, text=True,
                               check=True).stdout.split()
    else:
        flags = [f"-I{tmp_path}/usr/include", f"-L{tmp_path}/usr/lib", "-lrondo"]
    subprocess.run(["cc", str(source), "-o", str(tmp_path / "user"), *flags], check=True)
    said = subprocess.run([str(tmp_path / "user")], env=dict(os.environ, LD_LIBRARY_PATH=f"{tmp_path}/usr/lib"),
                          capture_output=True, text=True, check=True)
    assert said.stdout == "success\n"


def test_compile_commands(tmp_path):
    commands = subprocess.run("make --no-print-directory -nB all tests | python3 make/compile-commands", shell=True, cwd=ROOT,
                              capture_output=True, text=True, check=True)
    files = {entry["file"] for entry in json.loads(commands.stdout)}
    assert {"lib/runtime.c", "lib/program/check.c", "device/host.c", "tools/bench.c"} <= files

