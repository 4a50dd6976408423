"""What the scripts here share: launching ranks under torch.distributed.run on NCCL or on Rondo, with a time limit."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def launch(script, gpus, library, limit, *options):
    """Runs script on so many GPUs; library: the drop-in, None for the NCCL that PyTorch brings. Returns (finished, output)."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    # PyTorch's wheels name the folder of their own NCCL in its libraries, which goes before LD_LIBRARY_PATH: preloading does not care.
    if library is not None:
        environment["LD_PRELOAD"] = os.path.abspath(library)
    environment.setdefault("OMP_NUM_THREADS", "4")
    environment["NCCL_DEBUG"] = "VERSION"  # says who it is: see is_rondo
    environment["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}",
               os.path.join(HERE, script), *[str(option) for option in options]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode == 0, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        time.sleep(1)
        return False, output


def is_rondo(output):
    """Whether it was Rondo that answered to NCCL's names."""
    return "offered by Rondo" in output
