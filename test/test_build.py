"""What the build promises: unit tests, the models, exported symbols, the header in C and C++, installation."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness import BUILD, ROOT, SANITIZED, environment, program, run

UNIT_TESTS = sorted(path.stem for folder in ("unit", "observing", "membership", "rdma") for path in (ROOT / "test" / folder).rglob("test_*.c"))


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_unit(name):
    output = run(program(name), seconds=120)
    assert re.search(r"\[  PASSED  \] \d+ test", output), output


def test_no_unit_test_is_forgotten():
    """What is built as a unit test is run: above, or by a test that names it."""
    texts = "".join(path.read_text() for path in (ROOT / "test").rglob("*.py"))
    for path in (ROOT / "test").rglob("test_*.c"):
        assert path.stem in UNIT_TESTS or path.stem in texts, path


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


def test_headers_are_checked_alone(tmp_path):
    """make/check-headers finds a header that needs what another includes, and leaves CUDA's to nvcc."""
    (tmp_path / "good.h").write_text("#include <stddef.h>\nsize_t rondo_good(void);\n")
    (tmp_path / "bad.h").write_text("size_t rondo_bad(void);\n")
    mark = '#if !defined(__CUDACC__)\n#error "__device__ code: nvcc alone compiles it"\n#endif\n'
    (tmp_path / "cuda.h").write_text(mark + "static __device__ int rondo_there(void);\n")
    (tmp_path / "uses_cuda.h").write_text('#include "cuda.h"\n')
    (tmp_path / "verbs.h").write_text("#include <infiniband/verbs.h>\n")
    env = {**without(tmp_path, "infiniband/verbs.h"), "CPPFLAGS": "-I.", "NVCC": ""}

    def check(*headers):
        return subprocess.run([ROOT / "make" / "check-headers", *headers], cwd=tmp_path, env=env, capture_output=True, text=True)

    said = check("good.h", "cuda.h", "uses_cuda.h", "verbs.h")
    assert said.returncode == 0 and "headers: ok (1)" in said.stdout, said.stdout + said.stderr
    assert said.stdout.splitlines()[0].endswith(": cuda.h(nvcc) uses_cuda.h(nvcc) verbs.h(infiniband/verbs.h)")
    said = check("good.h", "bad.h")
    assert said.returncode == 1 and "bad.h" in said.stdout and "headers: 1 do not" in said.stdout


def contracts():
    """{function: (its declaration, its comment)}, where the forms between @{ and @} share a comment."""
    found = {}
    for name in ("rondo.h", "rondo_program.h"):
        header = (ROOT / "include" / name).read_text()
        comment = r"/\*\*\n((?: \*.*\n)*?) \*/\n"
        for match in re.finditer(comment + r"(?:/\*\*@\{\*/\n((?s:.*?))/\*\*@\}\*/|(RONDO_API [^;]*;))", header):
            for declaration in re.findall(r"RONDO_API [^;]*;", match[2] or match[3]):
                found[re.search(r"\b(rondo_[a-z0-9_]+)\(", declaration)[1]] = (declaration, match[1])
    return found


def test_every_function_has_a_contract():
    """Arguments, errors, other ranks, threads, and where the meaning comes from."""
    found = contracts()
    assert set(found) == declared()
    forms = re.search(r"@page forms.*?\*/", (ROOT / "include" / "rondo.h").read_text(), flags=re.DOTALL)[0]
    of_forms = set(re.findall(r"^ \* - ([a-z]+): ", forms, flags=re.MULTILINE))
    assert of_forms == {"attr", "request", "stream"} and "Errors of every operation" in forms and "Threads of" in forms
    for name, (declaration, comment) in found.items():
        arguments = re.search(r"\((.*)\)", " ".join(declaration.split()))[1]
        arguments = re.sub(r"void \(\*fn\)\([^)]*\)", "void *fn", arguments)
        named = {re.search(r"(\w+)$", argument)[1] for argument in arguments.split(",") if argument != "void"}
        documented = set(re.findall(r"^ \* @param (\w+) ", comment, flags=re.MULTILINE))
        has_forms = " * @forms\n" in comment
        assert documented <= named and named - documented <= (of_forms if has_forms else set()), name
        assert "@ranks " in comment and "@source " in comment, name
        assert has_forms or "@threads " in comment and ("@return " in comment or "@retval " in comment), name


def test_manual_pages(tmp_path):
    """Every public function has a page that reads without a formatter's complaint, under each awk that this machine has."""
    version = "1.2.3"
    pages = None
    for awk in ("awk", "mawk", "gawk", "original-awk", "busybox awk"):
        if shutil.which(awk.split()[0]) is None:
            continue
        subprocess.run(["make/man-pages", str(tmp_path), version], cwd=ROOT, check=True, env=dict(os.environ, AWK=awk))
        made = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.*")}
        assert pages is None or made == pages, awk
        pages = made
    named = {path[5:-2]: text for path, text in pages.items() if path.startswith("man3/")}
    assert set(named) == declared()
    assert set(pages) - {f"man3/{name}.3" for name in named} == {"man1/rondo.1", "man7/rondo.h.7", "man7/rondo_program.h.7",
                                                                 "man7/rondo-environment.7"}
    for name, text in named.items():
        if text.startswith(".so man3/"):
            text = named[text.split("/")[1].rsplit(".", 1)[0]]
        headings = re.findall(r"^\.SH (.*)$", text, flags=re.MULTILINE)
        wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "OTHER RANKS", "THREADS", "STANDARDS", "SEE ALSO"]
        assert [heading for heading in headings if heading in wanted] == wanted, name
        assert re.search(rf"^(?:.*, )?{name}(?:,.*)? \\- \S", text.split(".SH NAME\n")[1].split("\n")[0]), name
        assert f"{name}(" in text.split(".SH SYNOPSIS")[1].split(".SH DESCRIPTION")[0], name
    for text in pages.values():
        for linked in re.findall(r"(rondo_[a-z0-9_]+)\\fR\(3\)", text):
            assert linked in named, linked
    if shutil.which("man") is None:
        pytest.skip("no man on this machine to format the pages")
    shown = subprocess.run(["man", "-M", str(tmp_path), "rondo_ibcast"], env=dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8"),
                           capture_output=True, text=True, check=True).stdout
    assert "rondo_result_t rondo_bcast(void *buf, size_t count," in shown and "section 6.4, Broadcast" in shown
    written = [str(path) for path in tmp_path.rglob("*.*") if not path.read_text().startswith(".so ")]
    said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *written], capture_output=True, text=True, check=True)
    assert said.stderr == ""


def options(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*(?![\w-])", text))


def test_manual_of_the_command():
    """rondo(1) has the verbs, options and exit codes that the command's own usage has, verb by verb."""
    page = (ROOT / "docs" / "man" / "rondo.1").read_text().replace("\\-", "-")
    page = re.sub(r"\\f[BIR]", "", page)
    sections = dict(re.findall(r"^\.SS rondo (\w+)\n(.*?)(?=^\.S[SH] )", page, flags=re.MULTILINE | re.DOTALL))
    usage = run(program("rondo"), "--help")
    verbs = re.findall(r"^  (\w+)  +\S", usage, flags=re.MULTILINE)
    assert len(verbs) >= 6 and list(sections) == [verb for verb in sections if verb in verbs] and set(sections) == set(verbs)
    for verb in verbs:
        said = run(program("rondo"), verb, "--help")
        tagged = "\n".join(re.findall(r"^\.TP\n(.*)$", sections[verb], flags=re.MULTILINE))
        assert options(tagged) == options(said) - {"--help"}, verb
        for code in re.findall(r"\b([1-9]): ", " ".join(re.findall(r"Exit [^.]*", said))):
            assert re.search(rf"^{code}\n.*{verb}", page.split(".SH EXIT STATUS")[1], flags=re.MULTILINE), (verb, code)
    said = run(program("rondo"), "bench", "--help")
    for collective in said.split("\n  -b")[0].split("[OPTIONS]")[1].split(";")[0].split(",")[0].split():
        assert re.search(rf"\b{collective}\b", sections["bench"]), collective
    run(program("rondo"), "bench", "--none", expect=2)


def test_api_reference(tmp_path):
    if shutil.which("doxygen") is None:
        pytest.skip("no doxygen on this machine")
    make("-s", f"BUILD={tmp_path}", "CUDA=0", "api-docs", check=True)
    page = (tmp_path / "api" / "html" / "rondo_8h.html").read_text()
    assert "Other ranks" in page.split("rondo_iallreduce()")[-1]


# What a build without its own jansson or CUDA was made with is not made anew.
def build_options():
    run(program("rondo"), "info", "--json", BUILD / "info.json")
    build = json.loads((BUILD / "info.json").read_text())["build"]
    return [f"BUILD={BUILD}", *([] if build["cuda"] else ["CUDA=0"])]


def everything(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's library cannot be linked to the plain examples")
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config on this machine")
@pytest.mark.parametrize("destdir", ["", "stage"])
def test_installation(tmp_path, destdir):
    """What is installed is enough to compile, link and run the examples and to read about them; uninstalling leaves nothing."""
    other = tmp_path / "other"
    (other / "lib").mkdir(parents=True)
    (other / "lib" / "mine").write_text("")
    prefix = other if destdir else tmp_path / "made" / "usr"
    staged = f"{tmp_path}/{destdir}" if destdir else ""
    words = ["-s", *build_options(), f"PREFIX={prefix}", f"DESTDIR={staged}"]
    before = everything(tmp_path)
    for _ in range(2):  # again over itself
        make(*words, "install", check=True)
    there = os.path.join(staged, str(prefix).lstrip("/")) if staged else str(prefix)
    assert os.readlink(f"{there}/lib/librondo.so.0.2") == "librondo.so.0.2.0"
    assert subprocess.run([f"{there}/bin/rondo", "info"], env=environment(), capture_output=True).returncode == 0
    if not destdir:
        compile_examples(tmp_path / "examples", prefix)
        before |= {"examples"} | {f"examples/{path}" for path in everything(tmp_path / "examples")}
        if shutil.which("man"):
            shown = subprocess.run(["man", "rondo_allreduce"], env=dict(os.environ, MANPATH=f"{prefix}/share/man"),
                                   capture_output=True, text=True, check=True).stdout
            assert "rondo_iallreduce" in shown
    make(*words, "uninstall", check=True)
    assert everything(tmp_path) == before
    again = make(*words, "uninstall")
    assert again.returncode != 0 and "nothing is installed" in again.stderr


EXAMPLES = {"allreduce": ["allreduce"], "program": ["program"], "heat": ["heat"], "train": ["train", "training", "digits", "network"],
            "elastic": ["elastic", "training", "digits", "network"],
            "programs": sorted(f"programs/{path.stem}" for path in (ROOT / "examples" / "programs").glob("*.c"))}


def compile_examples(folder, prefix):
    folder.mkdir()
    env = dict(os.environ, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")

    def pkg_config(*words):
        return subprocess.run(["pkg-config", *words, "rondo"], env=env, capture_output=True, text=True, check=True).stdout.split()

    assert pkg_config("--modversion") == ["0.2.0"]
    for name, parts in EXAMPLES.items():
        objects = [folder / f"{part.replace('/', '-')}.o" for part in parts]
        shared, static = folder / name, folder / f"{name}-static"
        for part, made in zip(parts, objects):
            if not made.exists():
                subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-c", *pkg_config("--cflags"), f"{ROOT}/examples/{part}.c", "-o",
                                made], check=True)
        subprocess.run(["cc", "-o", shared, *objects, *pkg_config("--libs"), "-lm", "-lpthread"], check=True)
        # Both libraries are there: the archive is asked for by its name.
        flags = ["-l:librondo.a" if flag == "-lrondo" else flag for flag in pkg_config("--static", "--libs")]
        subprocess.run(["cc", "-o", static, *objects, *flags], check=True)
        needed = {path: subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
                  for path in (shared, static)}
        assert "[librondo.so.0.2]" in needed[shared] and "librondo" not in needed[static]
    for name in EXAMPLES:
        for path in (folder / name, folder / f"{name}-static"):
            run(path, *(["--ranks", "2", "--epochs", "1"] if name in ("train", "elastic") else []), seconds=120, LD_LIBRARY_PATH=f"{prefix}/lib", RONDO_DEVICE="host")


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
    names = subprocess.run(["git", "grep", "-hoE", '"RONDO_[A-Z_]*[A-Z]"', "--", "lib", "transport", "device", "proxy", "tools"],
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
    missing = without(tmp_path, "infiniband/verbs.h", "ucp/api/ucp.h", "numa.h", "sodium.h", "jansson.h")
    found = detected(make("-s", "detect", env=missing, check=True).stdout)
    assert [found[name][0] for name in ("verbs", "UCX", "libnuma", "libsodium", "jansson")] == ["no"] * 5, found


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
        assert said.stderr.startswith("rondo: 'cc' does not compile") and said.stderr.count("\n") == 4, said.stderr
    make("help", env=dict(os.environ, PATH=str(folder)), check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"bin"}


def test_help():
    """`make help` lists every target that is meant to be called, and no other."""
    files = [ROOT / "Makefile", *ROOT.glob("*/*.mk")]
    targets = {name for path in files for line in re.findall(r"^\.PHONY: (.*)$", path.read_text(), flags=re.MULTILINE)
               for name in line.split()}
    inner = {"FORCE", "all", "compiler", "need-jansson", "compile-commands", "help", "torch-install"}
    said = make("-s", "help", check=True).stdout
    listed = set(re.findall(r"\bmake ([a-z][a-z_.-]*)", said))
    assert listed - {"compile_commands.json"} == targets - inner
    assert "PREFIX=/usr/local" in said


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
