"""What a results file says of itself: machine, day, library and command. See docs/results/README.md."""
import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def said(*words):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def gpus():
    lines = [line for line in said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines() if line]
    if not lines:
        return ""
    name, driver = lines[0].split(", ")[:2]
    return f"; {len(lines)} x {name}, driver {driver}"


def machine():
    virtual = ", virtual machine" if " hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else ""
    return f"{len(os.sched_getaffinity(0))} cores of {processor()}{virtual}, Linux {platform.release()}{gpus()}"


def library():
    """The commit; LIBRARY_COMMIT says it where the tree is a copy without its repository."""
    commit = os.environ.get("LIBRARY_COMMIT") or said("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12")
    return commit or "unknown (not in a repository)"


def metadata(title, command, unit, runs, rival="none", **more):
    return {"title": title, "machine": machine(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "command": command, "unit": unit,
            "rival": rival, "runs": runs, "library": library(), "source": "raw output", **more}
