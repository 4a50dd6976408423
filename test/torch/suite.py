"""PyTorch's own tests of process groups (torch.testing._internal.distributed.distributed_test) with backend "rondo" or another.

usage: suite.py [--ranks N] [--json FILE] [--seconds S] BACKEND [NAME ...]
       suite.py --compare GLOO.json RONDO.json [FILE.csv]    the counts; the file is what the table of docs/guide/pytorch.md is made of

Each test runs in a process of its own, for at most S seconds. The tests that PyTorch keeps for gloo or MPI by name run for rondo too:
their conditions are rewritten as the file is read. Prints a line for each test: passed, skipped or failed, and the reason.
"""
import argparse
import csv
import importlib.util
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import traceback
import unittest

MODULE = "torch.testing._internal.distributed.distributed_test"


def load(backend, ranks):
    """The suite's test class for the backend."""
    os.environ.update(BACKEND=backend, WORLD_SIZE=str(ranks), CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    import torch.distributed  # noqa: F401  before what registers a backend
    if backend == "rondo":
        import rondo_torch  # noqa: F401
        import torch.testing._internal.common_distributed as common
        for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
            common.DistTestCases.backend_feature[feature].add("rondo")
    spec = importlib.util.find_spec(MODULE)
    with open(spec.origin) as file:
        text = file.read()
    if backend == "rondo":
        text = text.replace('BACKEND != "gloo"', 'BACKEND not in ("gloo", "rondo")')
        text = text.replace('require_backend_is_available({"gloo"})', 'require_backend_is_available({"gloo", "rondo"})')
        text = text.replace('BACKEND != "mpi"', 'BACKEND not in ("mpi", "rondo")')
        text = text.replace('BACKEND == "gloo"', 'BACKEND in ("gloo", "rondo")')
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    exec(compile(text, spec.origin, "exec"), module.__dict__)
    module.PROFILING_SUPPORTED_BACKENDS.append(backend)
    module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)
    module.__dict__["Suite"] = type("Suite", (module.TestDistBackend, module.DistributedTest._DistTestBase),
                                    {"__module__": MODULE, "_spawn_processes": fork_ranks})
    return module.Suite


def fork_ranks(test):
    """The ranks are forked from this process, which has read the suite already."""
    import torch.multiprocessing
    test._start_processes(torch.multiprocessing.get_context("fork").Process)


def run_one(suite, name, folder):
    """Runs the test in this process; returns its exit code and prints what went wrong."""
    for inner in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(folder, inner), exist_ok=True)
    os.environ["TEMP_DIR"] = folder
    result = unittest.TextTestRunner(verbosity=0, stream=sys.stderr).run(unittest.TestSuite([suite(name)]))
    if result.skipped:
        print("SKIPPED", result.skipped[0][1].splitlines()[0], flush=True)
    return 0 if result.wasSuccessful() else 1


def run(suite, name, seconds):
    """Runs the test in a process group of its own: {"result", "reason"}."""
    skip = getattr(getattr(suite, name), "__unittest_skip_why__", None)
    if skip:
        return {"result": "skipped", "reason": skip}
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        child = os.fork()
        if child == 0:
            os.setsid()
            target = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(target, 1)
            os.dup2(target, 2)
            code = 1
            try:
                code = run_one(suite, name, folder)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        until, status = time.monotonic() + seconds, None
        while status is None and time.monotonic() < until:
            pid, code = os.waitpid(child, os.WNOHANG)
            status = code if pid else None
            time.sleep(0.02)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if status is None:
            os.waitpid(child, 0)
        with open(log, errors="replace") as file:
            text = file.read()
    if status == 0:
        skipped = [line for line in text.splitlines() if line.startswith("SKIPPED")]
        return {"result": "skipped", "reason": skipped[0][8:]} if skipped else {"result": "passed", "reason": ""}
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if "Error" in line and not line.startswith(("raise ", "File", "Traceback"))]
    reason = (errors or lines or ["no output"])[0][:300]
    if status is None:
        reason = f"not done after {seconds:g} s: {reason}"
    return {"result": "failed", "reason": reason, "log": text[-4000:]}


def compare(gloo, rondo, path=None):
    """Counts, and what the first passes and the second does not; 1 if that is more than 5 %."""
    with open(gloo) as first, open(rondo) as second:
        theirs, ours = json.load(first), json.load(second)
    passed = [name for name, outcome in theirs["tests"].items() if outcome["result"] == "passed"]
    lacking = [name for name in passed if ours["tests"].get(name, {"result": "absent"})["result"] != "passed"]
    print(f"gloo passes {len(passed)}; of these rondo passes {len(passed) - len(lacking)}")
    for name in lacking:
        outcome = ours["tests"].get(name, {"result": "absent", "reason": "not run"})
        print(f"  {name}: {outcome['result']}: {outcome['reason']}")
    if path is not None:
        write_counts(path, theirs, ours)
    return 1 if not passed or 20 * len(lacking) > len(passed) else 0


def write_counts(path, theirs, ours):
    """A file of docs/results/data: how many tests of each result and reason, with either backend. Failed tests have a row each."""
    rows = {}
    for backend, results in (("gloo", theirs), ("rondo", ours)):
        for name, outcome in results["tests"].items():
            why = outcome["reason"].replace(f"backend {backend} ", "backend ")
            if outcome["result"] == "failed":
                why = f"{name}: {why}"
            elif "https://" in why:
                why = "disabled by an issue of PyTorch"
            key = (outcome["result"], why.replace("|", "/"))
            rows.setdefault(key, {"gloo": 0, "rondo": 0})[backend] += 1
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
    import provenance
    meta = provenance.metadata("PyTorch's own tests of process groups", f"make torch-suite RANKS={ours['ranks']}", "tests", "one",
                               f"gloo of PyTorch {ours['torch']}, {ours['ranks']} ranks")
    order = ["passed", "failed", "skipped"]
    with open(path, "w", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in meta.items())
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["result", "why", "gloo", "rondo"])
        for result, why in sorted(rows, key=lambda key: (order.index(key[0]), -rows[key]["gloo"], key[1])):
            writer.writerow([result, why, rows[result, why]["gloo"], rows[result, why]["rondo"]])


def main():
    if sys.argv[1:2] == ["--compare"]:
        return compare(*sys.argv[2:5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    suite = load(options.backend, options.ranks)
    results = {}
    for name in options.names or unittest.TestLoader().getTestCaseNames(suite):
        results[name] = run(suite, name, options.seconds)
        if results[name]["result"] != "skipped" or options.names:
            print(f"{results[name]['result']:8}{name}  {results[name]['reason']}", flush=True)
    counts = {kind: sum(r["result"] == kind for r in results.values()) for kind in ("passed", "failed", "skipped")}
    print(f"{options.backend}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if options.json:
        import torch
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "ranks": options.ranks, "tests": results}, file, indent=1)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
