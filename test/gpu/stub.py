#!/usr/bin/env -S python3 -SE
"""Stands for a program of a build with CUDA, so that test_gpu_runner.py sees what make/gpu-test does where no GPU is. It notes its
command line in $STUB_LOG, prints what the runner reads of the real program's output, and exits with the real program's status.

$STUB_GPUS: how many GPUs `rondo info` lists. $STUB_FAULT: KIND:PROGRAM, of which PROGRAM is this one's name: it crashes,
hangs, gives wrong results, leaks a file, or refuses what it is asked for.
"""
import os
import sys
import time

NAME, WORDS = os.path.basename(sys.argv[0]), sys.argv[1:]
SUMMARY = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
RACE = "========= Error: Race reported between Read access at f+0x10 in other.h:1"


def fault():
    kind, _, name = os.environ.get("STUB_FAULT", "").partition(":")
    return kind if name == NAME else ""


def write(path, found):
    import json  # here, because most calls go without it and there are hundreds
    if path == "-":
        print(json.dumps(found))
    else:
        with open(path, "w") as file:
            json.dump(found, file)


def after(word):
    return WORDS[WORDS.index(word) + 1]


def siblings():
    """[(start time, process, state)] of the children of this process's parent, those that have ended included."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[1]) == os.getppid():
            found.append((int(fields[19]), int(name), fields[0]))
    return sorted(found)


def until_last_rank_is_killed():
    """In every rank but the last one: returns when the last rank has ended. The runner starts it after all others, kills it, and
    waits for it only at the end."""
    rank, size = int(os.environ["RONDO_RANK"]), int(os.environ["RONDO_SIZE"])
    if rank == size - 1:
        time.sleep(60)
    while siblings()[-1][2] != "Z":
        time.sleep(0.02)


def rondo():
    if WORDS[0] == "info":
        refused = "no device" if fault() == "refuse" else None
        write(after("--json"), {"gpus": [{}] * int(os.environ["STUB_GPUS"]), "transports": [{"transport": "ucx", "why_not": refused}]})
    elif WORDS[:2] == ["program", "list"]:
        print("\n".join(f"algorithm{number} allreduce" for number in range(10)))
    elif WORDS[0] == "stress" and "--no-preempt" in WORDS:
        return 3
    elif WORDS[0] == "stress" and "--json" in WORDS:
        peer = {"ran": True, "hung": fault() != "wrong"}
        write(after("--json"), {"finished": 5, "expected": 5, "wrong": int(fault() == "wrong" and "--peer" not in WORDS), "peer": peer})
    elif WORDS[:2] == ["bench", "priority"]:
        write(after("--json"), {"rows": [{"alone_us": 1, "beside_us": 90 if fault() == "wrong" else 2, "worst_us": 95, "all_us": 100}]})
    elif WORDS[0] == "bench" and "--json" in WORDS:
        write(after("--json"), {"rows": [{"identical": fault() != "wrong", "error_norm": 0.1}] * 3})
    elif WORDS[0] == "bench" and "10000000" in WORDS:
        until_last_rank_is_killed()
        print("an error of its own" if fault() == "wrong" else "a peer died or left")
        return 1
    return 0


def faults():
    print("READY", flush=True)
    until_last_rank_is_killed()
    print("RESULT 0 0.1" if fault() == "wrong" else "RESULT 8 0.1")
    print("FINALIZED")
    return 0


def injection():
    print("injection: %d points" % (1 if fault() == "wrong" else 40))
    return 0


def execute(command):
    return os.spawnvp(os.P_WAIT, command[0], command)


def under_compute_sanitizer():
    if after("--tool") == "racecheck":
        print(SUMMARY if fault() != "wrong" else f"{RACE}\n{SUMMARY}")
    return execute(WORDS[4 if "--error-exitcode" in WORDS else 2:])


def mpirun():
    os.environ["OMPI_COMM_WORLD_RANK"] = "0"
    return execute(WORDS[WORDS.index("-n") + 2:])


def main():
    with open(os.environ["STUB_LOG"], "a") as log:
        log.write("\t".join([NAME, *WORDS]) + "\n")
    if fault() == "crash":
        print("said before the end")
        return 1
    if fault() == "hang" and WORDS[:1] != ["info"]:
        time.sleep(60)
    if fault() == "refuse" and os.environ.get("RONDO_GPUDIRECT") is not None:
        print("rondo: this UCX was built without CUDA")
        return 1
    if fault() == "leak":
        open(os.path.join(os.environ["LEAK_CHECK_FOLDER"], "rondo-stub-left-behind"), "w").close()
    if NAME == "gpu_direct":
        print("NOTE GPU 0: what it notes")
    known = {"rondo": rondo, "faults": faults, "injection": injection, "mpirun": mpirun, "compute-sanitizer": under_compute_sanitizer}
    return known.get(NAME, lambda: 0)()


sys.exit(main())
