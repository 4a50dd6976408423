"""Every collective, type, operator and protocol on GPUs, by threads and by processes, against the results computed on the host."""
import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from gpu_harness import RONDO, environment, test_program

SUBSET = ["--types", "float,int8", "--ops", "sum,max", "--counts", "0,3,1000,4099"]
HERE = Path(__file__).parent
COLLECTIVES = ("allreduce reduce bcast reduce_scatter_block allgather allgatherv alltoall alltoallv gather scatter barrier scan exscan "
               "alltonext sendrecv").split()


@pytest.mark.gpu("{program}", seconds=90)
@pytest.mark.parametrize("program", sorted(f"gpu_{path.stem}" for path in (*HERE.glob("*.c"), *HERE.glob("*.cu"))))
def test_program_of_this_folder(step, program):
    """The programs of test/gpu; their notes are shown."""
    for line in step.run(test_program(program)).splitlines():
        if line.startswith("NOTE "):
            step.note(line[5:])


@pytest.mark.gpu("matrix, {ranks} threads, small counts", seconds=100)
def test_matrix_small_counts(step):
    step.run(test_program("matrix"), "--ranks", step.machine.ranks, "--counts", "0,1,17,1000", "--restarts", 2)


@pytest.mark.gpu("matrix, {ranks} threads, large counts", seconds=60)
def test_matrix_large_counts(step):
    step.run(test_program("matrix"), "--ranks", step.machine.ranks, "--counts", "4099,70001", "--seed", 2)


@pytest.mark.gpu("matrix, {ranks} threads, LL128", seconds=60)
def test_matrix_ll128(step):
    """LL128 where NVLink joins the GPUs; elsewhere the protocol that takes its place."""
    step.run(test_program("matrix"), "--ranks", step.machine.ranks, RONDO_PROTOCOL="ll128")


@pytest.mark.gpu("matrix, {ranks} threads, {name}", seconds=60)
@pytest.mark.parametrize("name, budget", [("two multiprocessors", 2), ("copy engines where they can", 0)])
def test_matrix_budget(step, name, budget):
    step.run(test_program("matrix"), "--ranks", step.machine.ranks, *SUBSET, RONDO_SM=str(budget))


@pytest.mark.gpu("copy engines, {ranks} processes", seconds=60)
def test_copy_engines_processes(step):
    step.mpirun(step.machine.ranks, test_program("gpu_copies"))


@pytest.mark.gpu("matrix, {ranks} processes", seconds=60)
def test_matrix_processes(step):
    step.mpirun(step.machine.ranks, test_program("matrix"), "--ranks", 0, *SUBSET)


@pytest.mark.gpu("matrix, {ranks} threads, through host memory", seconds=60)
def test_matrix_host_memory(step):
    step.run(test_program("matrix"), "--ranks", step.machine.ranks, "--transports", "shm", *SUBSET)


@pytest.mark.gpu("matrix, {ranks} processes, through host memory", seconds=60)
def test_matrix_host_memory_processes(step):
    step.mpirun(step.machine.ranks, test_program("matrix"), "--ranks", 0, "--transports", "shm", *SUBSET)


@pytest.mark.gpu("matrix, {oversubscribed} threads on {gpus} GPUs", seconds=60)
def test_matrix_oversubscribed(step):
    step.run(test_program("matrix"), "--ranks", step.machine.oversubscribed, "--types", "float,float16", "--ops", "sum", "--counts",
             "3,4099")


@pytest.mark.gpu("mix, {ranks} threads, LL128, small budgets", seconds=40)
def test_mix_ll128(step):
    step.run(test_program("mix"), "--ranks", step.machine.ranks, "--spin", 20, "--iterations", 4, "--max-count", 200000, "--seed", 6,
             RONDO_PROTOCOL="ll128")


@pytest.mark.gpu("mix, {ranks} processes, {name}", seconds=40)
@pytest.mark.parametrize("name, protocol, seed", [("LL128", "ll128", 7), ("TMA", "tma", 8)])
def test_mix_protocol_processes(step, name, protocol, seed):
    step.mpirun(step.machine.ranks, test_program("mix"), "--ranks", 0, "--iterations", 4, "--max-count", 200000, "--seed", seed,
                RONDO_PROTOCOL=protocol)


@pytest.mark.gpu("mix, {ranks} threads{name}", seconds=40)
@pytest.mark.parametrize("name, options", [
    ("", ["--synchronize", 0, "--iterations", 6]),
    (", synchronizations", ["--synchronize", 1, "--iterations", 6, "--seed", 2]),
    (", small budgets", ["--spin", 50, "--iterations", 4, "--seed", 3]),
    (", priorities, large counts", ["--order", "priority", "--iterations", 4, "--max-count", 60000, "--seed", 4])])
def test_mix(step, name, options):
    step.run(test_program("mix"), "--ranks", step.machine.ranks, *options)


@pytest.mark.gpu("mix, {ranks} processes", seconds=40)
def test_mix_processes(step):
    step.mpirun(step.machine.ranks, test_program("mix"), "--ranks", 0, "--iterations", 4, "--seed", 5)


@pytest.mark.gpu("GPU movers, {ranks} threads, {name}", seconds=120)
@pytest.mark.parametrize("name, protocol", [("LL128", "ll128"), ("TMA", "tma")])
def test_movers(step, name, protocol):
    """What stream kernels do without the engine: long messages, few slots, uneven ends, averages, in place, and messages that do not
    end with a vector, which TMA leaves to the engine."""
    programs = [("allreduce", "ring", "float", "sum"), ("allgather", "ring", "int8", "sum"), ("allreduce", "twoshot", "float16", "avg"),
                ("reduce_scatter_block", "ring", "bfloat16", "avg"), ("reduce_scatter_block", "allpairs", "float", "avg"),
                ("alltoall", "pairs", "float", "sum"), ("alltoall", "exchange", "float", "sum"), ("bcast", "ring", "double", "sum"), ("sendrecv", "chain", "float", "sum")]
    for number, (collective, algorithm, kind, op) in enumerate(programs):
        for channels, least, most in ((1, "16K", "4M"), (7, "240000", "24M"), (64, "64K", "64M"))[:3 if number < 2 else 2]:
            in_place = channels == 7 and collective not in ("alltoall", "sendrecv")
            step.bench(step.machine.ranks, collective, "--algorithm", algorithm, "--protocol", protocol, "--channels", channels,
                       "--type", kind, "--op", op, "-b", least, "-e", most, "-f", 16, *(["-i"] if in_place else []))
    ragged = [("allreduce", "ring", "float", "sum"), ("allreduce", "allpairs", "bfloat16", "avg"), ("reduce", "ring", "float16", "sum"),
              ("bcast", "ring", "int8", "sum"), ("sendrecv", "chain", "int8", "sum")]
    for collective, algorithm, kind, op in ragged:
        step.bench(step.machine.ranks, collective, "--algorithm", algorithm, "--protocol", protocol, "--channels", 5, "--type", kind,
                   "--op", op, "-b", "400007", "-e", "8M", "-f", 3, *(["-i"] if kind == "bfloat16" else []))


@pytest.mark.gpu("direct writes, {ranks} threads", seconds=60)
def test_direct_writes(step):
    """The sender stores straight into the receiver's buffer; and the same through slots because the receiver refuses. With the
    broadcast the data is passed on from the buffer where it arrived."""
    calls = [("sendrecv", "chain", "float", "600K"), ("alltonext", "chain", "int8", "600007"), ("alltoall", "pairs", "int8", "2400016"),
             ("alltoall", "exchange", "int8", "2400016"), ("allgather", "pairs", "bfloat16", "2M"), ("bcast", "linear", "float", "600K")]
    for setting in ("auto", "refused", "mixed"):
        for collective, algorithm, kind, least in calls:
            step.bench(step.machine.ranks, collective, "--algorithm", algorithm, "--protocol", "simple", "--channels", 7, "--type", kind,
                       "-b", least, "-e", "11M", "-f", 6, RONDO_DIRECT_WRITE=setting)


@pytest.mark.gpu("programs, {ranks} threads", seconds=120)
def test_programs(step):
    """Every algorithm that is written in the language, for each of its collectives, at a few sizes and by all protocols."""
    names = {}
    listed = subprocess.run([RONDO, "program", "list"], stdout=subprocess.PIPE, text=True, timeout=60, check=True,
                            env=environment(60)).stdout
    for line in listed.splitlines():
        if len(line.split()) == 2:
            names.setdefault(line.split()[0], []).append(line.split()[1])
    assert len(names) >= 10, "too few algorithms are written in the language"
    for name, collectives in names.items():
        for protocol in ("simple", "ll", "ll128"):
            step.run(test_program("matrix"), "--ranks", step.machine.ranks, "--collectives", ",".join(collectives), "--types",
                     "float,int8", "--ops", "sum,avg", "--counts", "3,4099", RONDO_ALGORITHM=name, RONDO_PROTOCOL=protocol)


@pytest.mark.gpu("compression, {ranks} threads", seconds=60)
def test_compression(step):
    step.run(test_program("compress"), "--ranks", step.machine.ranks)


@pytest.mark.gpu("compression, {ranks} threads, 240 blocks", seconds=60, gpus=2)
def test_compression_240_blocks(step):
    """Codes that take more blocks than there are multiprocessors: two blocks run on each. All ranks end with the same bits, near
    the exact result."""
    for transports in ("shm", "p2p"):
        with tempfile.TemporaryDirectory() as folder:
            step.run(RONDO, "bench", "allreduce", "--device", "cuda", "--ranks", step.machine.ranks, "--transports", transports,
                     "--algorithm", "ring", "--mode", "stream", "--compress", 8, "-b", "4M", "-e", "64M", "-f", 4, "-n", 5, "-w", 1,
                     "--json", f"{folder}/rows", RONDO_BLOCKS="120")
            with open(f"{folder}/rows") as file:
                rows = json.load(file)["rows"]
        assert len(rows) == 3
        assert all(row["identical"] and 0 < row["error_norm"] < 0.2 for row in rows), f"other bits on other ranks, or errors: {rows}"


@pytest.mark.gpu("request cache, {ranks} threads", seconds=40)
def test_request_cache(step):
    step.run(test_program("request_cache"), "--ranks", step.machine.ranks, "--seed", 3)


@pytest.mark.gpu("request cache, {ranks} processes", seconds=40)
def test_request_cache_processes(step):
    step.mpirun(step.machine.ranks, test_program("request_cache"), "--ranks", 0, "--seed", 4)


@pytest.mark.gpu("{program}, {ranks} threads", seconds=40)
@pytest.mark.parametrize("program", ["p2p", "direct"])
def test_threads(step, program):
    step.run(test_program(program), "--ranks", step.machine.ranks)


@pytest.mark.gpu("{program}, {ranks} processes", seconds=40)
@pytest.mark.parametrize("program", ["p2p", "direct"])
def test_processes(step, program):
    step.mpirun(step.machine.ranks, test_program(program), "--ranks", 0)


@pytest.mark.gpu("hybrid, two jobs in one process", seconds=30)
def test_two_jobs_in_one_process(step):
    step.run(test_program("hybrid"), "--worlds", 2, "--threads", min(step.machine.ranks, 4))


@pytest.mark.gpu("every collective, {mode}", seconds=90)
@pytest.mark.parametrize("mode", ["blocking", "stream"])
def test_every_collective(step, mode):
    for collective in COLLECTIVES:
        step.run(RONDO, "bench", collective, "--device", "cuda", "--ranks", step.machine.ranks, "-c", "-b", 4, "-e", "4M", "-f", 32,
                 "-n", 20, "-w", 2, "--mode", mode)


@pytest.mark.gpu("all-reduce, registered buffers, all modes", seconds=60)
def test_registered_buffers(step):
    for mode in ("blocking", "nonblocking", "persistent", "callback", "stream", "persistent-stream"):
        step.run(RONDO, "bench", "allreduce", "--device", "cuda", "--ranks", step.machine.ranks, "-c", "-b", 8, "-e", "64M", "-f", 64,
                 "-n", 20, "--register", "--mode", mode)


@pytest.mark.gpu("gradients of a network", seconds=60)
def test_gradients(step):
    step.run(RONDO, "bench", "gradients", "--device", "cuda", "--ranks", step.machine.ranks, "-c", "-n", 20)
