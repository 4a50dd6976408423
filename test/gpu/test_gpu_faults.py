"""One of the processes of a job on GPUs is killed: the operations of the others end with RONDO_ERR_PEER within seconds, and the
others finalize and end well.
"""
import re
import subprocess
import threading
import time
import uuid

import pytest

from gpu_harness import RONDO, environment, test_program
from harness import PEER

ENDLESS = ["bench", "allreduce", "--device", "cuda", "--mode", "stream", "--algorithm", "ring", "-b", "16M", "-e", "16M", "-n",
           "10000000", "--protocol"]


def start(step, rank, size, job, command, output):
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                            env=environment(step.left(), RONDO_RANK=str(rank), RONDO_SIZE=str(size), RONDO_JOB=job))


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.gpu("faults, one of {pair} killed, {scenario}", seconds=40)
@pytest.mark.parametrize("scenario", ["blocking", "persistent"])
def test_killed(step, scenario):
    size, job = step.machine.pair, uuid.uuid4().hex
    processes, lines, readers = [], [[] for _ in range(size)], []

    def read(rank):
        for line in processes[rank].stdout:
            lines[rank].append((time.monotonic(), line.rstrip("\n")))

    def wait_for(word, members):
        """{rank: (time, line)} of the first line of each member that starts with word."""
        while time.monotonic() < step.deadline:
            found = {rank: next((entry for entry in list(lines[rank]) if entry[1].startswith(word)), None) for rank in members}
            if all(found.values()):
                return found
            time.sleep(0.02)
        pytest.fail(f"{scenario}: no {word} from all of ranks {members}", pytrace=False)

    try:
        for rank in range(size):
            processes.append(start(step, rank, size, job, [test_program("faults"), "--scenario", scenario, "--count", "300000"],
                                   subprocess.PIPE))
            readers.append(threading.Thread(target=read, args=(rank,), daemon=True))
            readers[-1].start()
        wait_for("READY", range(size))
        time.sleep(0.2)
        killed_at = time.monotonic()
        processes[-1].kill()
        others = range(size - 1)
        for rank, (when, line) in wait_for("RESULT", others).items():
            if int(line.split()[1]) != PEER:
                pytest.fail(f"{scenario}: rank {rank}: {line}", pytrace=False)
            if when - killed_at > 5:
                pytest.fail(f"{scenario}: rank {rank} learned of it after {when - killed_at:.1f} s", pytrace=False)
        wait_for("FINALIZED", others)
        for rank in others:
            if processes[rank].wait(10) != 0:
                pytest.fail(f"{scenario}: rank {rank} ends with status {processes[rank].returncode}", pytrace=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        end(processes)
        for reader in readers:
            reader.join(2)
        with open(step.log, "a") as log:
            log.write(f"$ faults --scenario {scenario}, the last of {size} ranks killed\n")
            for rank, printed in enumerate(lines):
                log.writelines(f"[{rank}] {line}\n" for _, line in printed)


@pytest.mark.gpu("faults, one of {pair} killed, on streams, {protocol}", seconds=40)
@pytest.mark.parametrize("protocol", ["ll128", "tma"])
def test_killed_on_stream(step, protocol, pytestconfig):
    """An endless row of all-reduces is on a stream, in kernels whose warps wait by themselves."""
    size, job, processes = step.machine.pair, uuid.uuid4().hex, []
    logs = [f"{step.log}.{rank}" for rank in range(size)]
    try:
        for rank in range(size):
            with open(logs[rank], "w") as log:
                processes.append(start(step, rank, size, job, [RONDO, *ENDLESS, protocol], log))
        time.sleep(pytestconfig.getoption("settle", 8.0))
        if any(process.poll() is not None for process in processes):
            pytest.fail(f"ended by themselves: {[process.poll() for process in processes]}", pytrace=False)
        killed_at = time.monotonic()
        processes[-1].kill()
        for rank, process in enumerate(processes[:-1]):
            if process.wait(max(0.1, killed_at + 12 - time.monotonic())) == 0:
                pytest.fail(f"rank {rank} did not notice", pytrace=False)
            with open(logs[rank], errors="replace") as log:
                if "a peer died or left" not in log.read():
                    pytest.fail(f"rank {rank} ends with status {process.returncode}, but not for want of a peer", pytrace=False)
    except subprocess.TimeoutExpired as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        end(processes)
        with open(step.log, "a") as log:
            log.write(f"$ rondo {' '.join(ENDLESS)} {protocol}, the last of {size} ranks killed\n")
            for rank, path in enumerate(logs[:len(processes)]):
                log.write(f"[{rank}] ends with status {processes[rank].returncode}; its output is in {path}\n")


@pytest.mark.gpu("faults, calls of CUDA that fail", seconds=75)
def test_failing_calls(step):
    """A sample of `make failure-injection OPTIONS="--part gpu-*"`: one call of CUDA fails on one of three ranks."""
    output = step.run(test_program("injection"), "--part", "gpu-life,gpu-blocking,gpu-stream,gpu-memory", "--sample", 60,
                      "--seconds", 30, "--jobs", 4)
    points = int(re.search(r"injection: (\d+) points", output).group(1))
    step.note(f"{points} calls")
    assert points >= 8, "too few calls were made to fail"
