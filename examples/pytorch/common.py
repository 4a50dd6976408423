"""What the scripts here share: a script's ranks, and running a script on NCCL or on Rondo with a time limit that holds."""
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def as_ranks(gpus, main):
    """Runs main() in a process a GPU, as torchrun would, but forked from this one, so that PyTorch is imported once; under torchrun
    itself just main(). Nothing of CUDA may have been used before."""
    if "RANK" in os.environ:
        main()
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sys.stdout.flush()
    children = []
    for rank in range(gpus):
        child = os.fork()
        if child == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(gpus), LOCAL_WORLD_SIZE=str(gpus),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            main()
            sys.stdout.flush()
            sys.exit(0)
        children.append(child)
    status = 0
    while children:
        child, ended = os.wait()
        children.remove(child)
        if ended != 0 and status == 0:
            status = 1
            for other in children: # they would wait for it
                os.kill(other, signal.SIGKILL)
    sys.exit(status)


def launch(script, gpus, library, limit, *options):
    """Runs script on so many GPUs; library: the drop-in, None for the NCCL that PyTorch brings. Returns (finished, output) after
    limit seconds at the latest."""
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LD_PRELOAD")
    environment = {name: value for name, value in os.environ.items() if name not in launchers}
    # PyTorch's wheels name the folder of their own NCCL in its libraries, which goes before LD_LIBRARY_PATH: preloading does not care.
    if library is not None:
        environment["LD_PRELOAD"] = os.path.abspath(library)
    environment.setdefault("OMP_NUM_THREADS", "4")
    environment["NCCL_DEBUG"] = "VERSION"  # says who it is: see is_rondo
    command = [sys.executable, os.path.join(HERE, script), "--gpus", str(gpus), *[str(option) for option in options]]
    # Into a file: a pipe would stay open for as long as any child of a killed process.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
                                   start_new_session=True)
        try:
            finished = process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            finished = False
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the ranks are in its group
        except ProcessLookupError:
            pass
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        output.seek(0)
        return finished, output.read()


def backend_of(name):
    """PyTorch's name of a backend: `dropin` is its nccl, on Rondo's drop-in."""
    return {"dropin": "nccl"}.get(name, name)


def environment_of(name, library, threads):
    """The environment in which a script starts ranks with a backend: threads is that of each rank's computations, library the drop-in."""
    environment = {variable: value for variable, value in os.environ.items() if variable not in ("RANK", "WORLD_SIZE", "LD_PRELOAD")}
    environment["OMP_NUM_THREADS"] = str(threads)
    if name == "dropin":
        environment["LD_PRELOAD"] = os.path.abspath(library)
    return environment


def save(path, cells, title, unit, repeats, rival, **more):
    """Writes a script's cells to the path, or to standard output without one, with what is to be known of where they come from
    (test/bench/provenance.py)."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "test", "bench"))
    import provenance
    command = shlex.join(["python3", f"examples/pytorch/{os.path.basename(sys.argv[0])}", *sys.argv[1:]])
    text = json.dumps({"metadata": provenance.metadata(title, command, unit, repeats, rival, **more), "cells": cells}, indent=1) + "\n"
    if path:
        with open(path, "w") as file:
            file.write(text)
    else:
        print(text, end="")


def is_rondo(output):
    """Whether it was Rondo that answered to NCCL's names."""
    return "offered by Rondo" in output
