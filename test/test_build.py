"""What the build promises: unit tests, the models, exported symbols, the header in C and C++, installation."""
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


def declared():
    """The functions that the public headers declare."""
    header = "".join((ROOT / "include" / name).read_text() for name in ("rondo.h", "rondo_program.h"))
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"^RONDO_API [^;(]*?\b(rondo_[a-z0-9_]+)\(", header, flags=re.MULTILINE))


def test_only_public_symbols_are_exported():
    """librondo.so exports what the public headers declare, in the version's node, and nothing else."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "librondo.so")], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in symbols.stdout.splitlines() if line.split()[1] != "A"}
    if SANITIZED:
        exported = {name for name in exported if name.startswith("rondo_")}
    assert len(declared()) > 100
    assert exported == {f"{name}@@RONDO_0.2" for name in declared()}


def test_version():
    """One version: the headers', the file's and the loader's name (the first two numbers while the first is 0)."""
    header = (ROOT / "include" / "rondo.h").read_text()
    version = re.findall(r"^#define RONDO_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, flags=re.MULTILINE)
    assert version == ["0", "2", "0"]
    assert (BUILD / "librondo.so").resolve().name == "librondo.so." + ".".join(version)
    dynamic = subprocess.run(["readelf", "-d", str(BUILD / "librondo.so")], capture_output=True, text=True, check=True).stdout
    assert "soname: [librondo.so.0.2]" in dynamic


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
    assert {"lib/runtime/runtime.c", "lib/program/verify.c", "device/host/host.c", "tools/bench/bench.c"} <= files


def test_environment_guide():
    """docs/guide/environment.md is what `make docs` writes from the table in the code, each topic once."""
    page = run(sys.executable, ROOT / "make" / "environment-guide", program("rondo"), RONDO_LOG="warn")
    assert page == (ROOT / "docs" / "guide" / "environment.md").read_text(), "run `make docs` and commit the page"
    topics = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    assert len(topics) > 3 and len(topics) == len(set(topics))
    names = subprocess.run(["git", "grep", "-hoE", '"RONDO_[A-Z_]+"', "--", "lib", "transport", "device", "proxy", "tools"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout
    read = {name.strip('"') for name in names.split()}
    assert read <= set(re.findall(r"^\| `(RONDO_[A-Z_]+)`", page, flags=re.MULTILINE))


def without(tmp_path, *headers):
    """An environment in which the compiler finds other headers, but not these."""
    for header in headers:
        shadow = tmp_path / "shadow" / header
        shadow.parent.mkdir(parents=True, exist_ok=True)
        shadow.write_text("#error this header is not there\n")
    return dict(os.environ, CPATH=str(tmp_path / "shadow"))


def make(*words, **options):
    return subprocess.run(["make", *map(str, words)], cwd=ROOT, capture_output=True, text=True, **options)


def detected(said):
    return {line.split()[0]: line.split(None, 2)[1:] for line in said.splitlines() if len(line.split(None, 2)) == 3}


def test_headers_are_looked_for(tmp_path):
    """What a compiler does not find is left out, not tried."""
    missing = without(tmp_path, "infiniband/verbs.h", "ucp/api/ucp.h", "numa.h", "jansson.h")
    found = detected(make("-s", "detect", env=missing, check=True).stdout)
    assert [found[name][0] for name in ("verbs", "UCX", "libnuma", "jansson")] == ["no"] * 4, found


def test_without_jansson(tmp_path):
    """Everything but the command is built, and the first thing said is the package that lacks."""
    missing = without(tmp_path, "jansson.h")
    build = f"BUILD={tmp_path}/build"
    whole, partial = (make("-n", "CUDA=0", build, "all", env=env, check=True).stdout for env in (os.environ, missing))
    assert " tools/" in whole and " tools/" not in partial
    assert f"-o {tmp_path}/build/librondo.so" in partial and f"-o {tmp_path}/build/examples/train" in partial
    said = make("-s", "CUDA=0", build, "detect", env=missing, check=True).stdout
    assert "libjansson-dev" in detected(said)["jansson"][1] and "make deps" in detected(said)["jansson"][1]
    alone = make("CUDA=0", build, "tool", env=missing)
    assert alone.returncode != 0 and "libjansson-dev" in alone.stderr
    assert not (tmp_path / "build").exists()


def few_commands(tmp_path, *more):
    """A folder with the commands that are on every machine with git and make, for PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env", "make", "git", "sed", "awk", "grep", "cat", "uname", "mkdir", "mktemp", "rm", "cmp", "paste",
                 "dirname", "id", "tail", "head", *more):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def test_without_a_compiler(tmp_path):
    folder = few_commands(tmp_path)
    for words in (["all"], ["lib"], ["tests"], ["install", f"PREFIX={tmp_path}/usr"]):
        said = make("-s", f"BUILD={tmp_path}/build", *words, env=dict(os.environ, PATH=str(folder)), timeout=30)
        assert said.returncode != 0 and "'cc' does not compile" in said.stderr and "packages gcc and libc6-dev" in said.stderr
        assert said.stderr.count("\n") <= 6, said.stderr
    make("help", env=dict(os.environ, PATH=str(folder)), check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"bin"}


def test_deps(tmp_path):
    """`make deps` prints the packages that lack, then installs those; with --dry-run it only prints."""
    folder = few_commands(tmp_path, "cc", "as", "python3")
    apt = folder / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/apt\n')
    apt.chmod(0o755)
    (folder / "id").unlink()
    (folder / "id").write_text("#!/bin/sh\necho $USER_ID\n")
    (folder / "id").chmod(0o755)
    env = dict(without(tmp_path, "jansson.h"), PATH=str(folder))
    said = subprocess.run(["make/deps", "--dry-run", "demo"], cwd=ROOT, env=dict(env, USER_ID="0"), capture_output=True,
                          text=True, check=True).stdout
    packages = ["libjansson-dev", "openmpi-bin", "libopenmpi-dev"]
    assert re.findall(r"^  (\S+) +\S", said, flags=re.MULTILINE) == packages, said
    assert not (tmp_path / "apt").exists()
    said = make("-s", "deps", "FOR=demo", env=dict(env, USER_ID="0"), check=True).stdout
    assert said.index("missing for 'demo'") < said.index("installing: " + " ".join(packages)) < said.index("installed\n")
    assert (tmp_path / "apt").read_text() == f"update\ninstall -y --no-install-recommends {' '.join(packages)}\n"
    (tmp_path / "apt").unlink()
    said = make("-s", "deps", env=dict(env, USER_ID="1000"))
    assert said.returncode != 0 and "sudo sh -c 'apt-get update" in said.stdout and "libjansson-dev" in said.stdout
    assert not (tmp_path / "apt").exists()
    said = make("-s", "deps", env=dict(env, USER_ID="1000", CPATH=""), check=True).stdout
    assert "nothing is missing for 'build'" in said


def test_gpu_code():
    """A build with CUDA has code for every architecture that it lists, and PTX for later ones."""
    said = subprocess.run(["make", "-s", "detect"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if not json.loads(run(program("rondo"), "info", "--json", str(BUILD / "info.json")) and
                      (BUILD / "info.json").read_text())["build"]["cuda"]:
        pytest.skip("this build is without CUDA")
    tool = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    if tool is None:
        pytest.skip("no cuobjdump on this machine")

    def listed(what):
        names = subprocess.run([tool, what, str(BUILD / "librondo.so")], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"\.sm_(\d+)\.", names))

    wanted = os.environ.get("CUDA_ARCHITECTURES", "").split() or re.findall(r"sm_(\d+)", said)
    assert listed("--list-elf") == set(wanted)
    assert listed("--list-ptx") == {max(wanted, key=int)}
