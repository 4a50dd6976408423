"""How ranks are started: launchers, plain processes, threads, and several of these together."""
import os
import re
import sys

import pytest
from harness import BUILD, FAILURE, SANITIZED, Job, built_with, free_port, program, run, seconds_for

SUBSET = ["--types", "float,int8", "--ops", "sum,max", "--counts", "0,3,1000,4099"]
TALLY = re.compile(r"^matrix: (\d+) checks, 0 failures", re.MULTILINE)


def all_passed(output, ranks):
    tallies = TALLY.findall(output)
    assert len(tallies) == ranks, output[-4000:]
    assert f"cases on {ranks} ranks" in output, output[-4000:]


@pytest.mark.parametrize("ranks", [1, 2, 4, 9])
def test_open_mpi(ranks):
    output = run("mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", ranks, program("matrix"), "--ranks", 0,
                 *SUBSET, seconds=seconds_for(ranks))
    all_passed(output, ranks)


BY_KEY_STORE = "the root's address is that of the launcher's key store"


def across_hosts(ranks, script, *command, **extra):
    """Open MPI's ranks, each of which takes itself for the only one of its host, after a shell script of its own."""
    if not built_with("PMIX"):
        pytest.skip("built without pmix.h")
    return run("mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", ranks, "sh", "-c",
               f'export OMPI_COMM_WORLD_LOCAL_SIZE=1; {script}; exec "$@"', "sh", *command, RONDO_LOG="debug", **extra)


@pytest.mark.parametrize("secret", ["", "open sesame"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_key_store(ranks, secret):
    """Ranks on several hosts, for which nothing is set, find the root in the launcher's key store."""
    output = across_hosts(ranks, ":", program("matrix"), "--ranks", 0, *SUBSET, RONDO_SECRET=secret, seconds=seconds_for(ranks))
    all_passed(output, ranks)
    assert output.count(BY_KEY_STORE) == ranks, output[-4000:]


@pytest.mark.parametrize("roots", [1, 2, 3, 5, 9])
def test_roots_by_key_store(roots):
    """Each root takes in a share of the ranks; of 5 ranks five at most."""
    output = across_hosts(5, ":", program("matrix"), "--ranks", 0, *SUBSET, RONDO_ROOTS=roots, seconds=seconds_for(5))
    all_passed(output, 5)
    assert output.count("root: the root of rank ") == min(roots, 5) - 1, output[-4000:]
    assert len(re.findall(r"root: rank \d of 5 has joined", output)) == 5, output[-4000:]


def test_key_store_with_two_numbers_of_roots():
    output = across_hosts(4, "export RONDO_ROOTS=$((1 + PMIX_RANK / 3))", program("matrix"), "--ranks", 0, *SUBSET, expect=FAILURE,
                          RONDO_CONNECT_TIMEOUT=3)
    assert "ranks could not meet" in output, output


def test_root_before_key_store():
    output = across_hosts(2, ":", program("matrix"), "--ranks", 0, *SUBSET, RONDO_ROOT=f"127.0.0.1:{free_port()}")
    all_passed(output, 2)
    assert BY_KEY_STORE not in output


SEQUENCE = """
import ctypes, os, sys
library, runtime = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
library.rondo_last_error.restype = ctypes.c_char_p
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL) if "mpi" in sys.argv else None
for step in sys.argv[2:]:
    if step == "mpi":
        assert mpi.MPI_Init(None, None) == 0
    else:
        code = library.rondo_init(ctypes.byref(runtime), None)
        assert code == 0, library.rondo_last_error()
        assert library.rondo_finalize(runtime) == 0, library.rondo_last_error()
if mpi is not None:
    assert mpi.MPI_Finalize() == 0
os.write(1, f"went {' '.join(sys.argv[2:])}\\n".encode())
"""


@pytest.mark.skipif(SANITIZED, reason="a Python without a sanitizer loads the library")
@pytest.mark.parametrize("steps", [["rondo", "rondo", "rondo"], ["mpi", "rondo", "rondo"], ["rondo", "mpi", "rondo"]])
def test_key_store_beside_mpi(steps):
    """A process's MPI library uses the same client of PMIx: before, after and between rendezvous, each of which has a key of its own."""
    output = across_hosts(3, ":", sys.executable, "-c", SEQUENCE, BUILD / "librondo.so", *steps)
    assert output.count("went " + " ".join(steps)) == 3, output
    assert output.count(BY_KEY_STORE) == 3 * steps.count("rondo"), output


def test_key_store_without_rank_0():
    """Open MPI's launcher never answers what is asked about a rank that has ended without an answer."""
    output = across_hosts(3, "test $PMIX_RANK != 0 || exec sleep 4", program("matrix"), "--ranks", 0, *SUBSET, expect=FAILURE,
                          RONDO_CONNECT_TIMEOUT=2)
    assert "rank 0 has not stored its address in the launcher's key store (PMIx) in time" in output, output


def test_key_store_without_rank_2():
    output = across_hosts(3, "test $PMIX_RANK != 2 || exec sleep 6", program("matrix"), "--ranks", 0, *SUBSET, expect=FAILURE,
                          RONDO_CONNECT_TIMEOUT=2)
    assert re.search(r"rank 2 of 3 did not come within [\d.]+ s", output), output


def test_key_store_with_two_secrets():
    output = across_hosts(2, "export RONDO_SECRET=$PMIX_RANK", program("matrix"), "--ranks", 0, *SUBSET, expect=FAILURE,
                          RONDO_CONNECT_TIMEOUT=5)
    assert "refused the secret of rank 1: RONDO_SECRET must be the same on all ranks" in output, output


def test_key_store_that_does_not_answer():
    gone = "; ".join(f"export PMIX_SERVER_URI{version}='1.0;tcp4://127.0.0.1:{free_port()}'" for version in (2, 21, 3, 4, 41))
    output = across_hosts(2, gone, program("matrix"), "--ranks", 0, *SUBSET, expect=FAILURE, RONDO_CONNECT_TIMEOUT=5)
    assert "the launcher's key store (PMIx) does not answer: " in output, output


def test_key_store_of_another_job():
    """A process that the rank has started is another rank, of another job, to which the store does not belong."""
    output = across_hosts(1, "export OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", program("matrix"), "--ranks", 0, *SUBSET,
                          expect=FAILURE, RONDO_CONNECT_TIMEOUT=1)
    assert "rank 1 found no rank 0 of job" in output, output


def test_key_store_of_slurm():
    """Slurm says how many hosts there are, not how many ranks this one has."""
    script = ("export SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_NTASKS=2 SLURM_JOB_ID=4711 SLURM_NNODES=2; "
              "unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE")
    output = across_hosts(2, script, program("matrix"), "--ranks", 0, *SUBSET)
    all_passed(output, 2)
    assert output.count(BY_KEY_STORE) == 2, output


@pytest.mark.parametrize("ranks", [1, 2, 4, 9])
def test_mpich(ranks):
    output = run("mpirun.mpich", "-n", ranks, program("matrix"), "--ranks", 0, *SUBSET, seconds=seconds_for(ranks))
    all_passed(output, ranks)


def processes(size, *options, **extra):
    with Job(size, program("matrix"), "--ranks", 0, *SUBSET, *options, **extra) as job:
        job.finish()
        all_passed("\n".join(line for rank in job.ranks.values() for line in rank.lines), size)


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=[pytest.mark.slow] if n in (4, 6, 7, 8) else []) for n in range(1, 10)])
def test_processes_on_one_host(ranks):
    processes(ranks)


@pytest.mark.parametrize("secret", [None, "open sesame"])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_processes_with_a_root(ranks, secret):
    processes(ranks, root=f"127.0.0.1:{free_port()}", RONDO_SECRET=secret)


def test_processes_with_a_root_by_name_and_a_secret():
    processes(3, root=f"localhost:{free_port()}", RONDO_SECRET="open sesame")


def test_processes_without_a_job_name():
    """Ranks with a common parent find each other by that parent."""
    processes(3, RONDO_JOB=None)


def test_two_jobs_side_by_side():
    command = [program("matrix"), "--ranks", "0", *SUBSET]
    with Job(3, *command) as one, Job(3, *command) as other:
        one.finish()
        other.finish()


@pytest.mark.parametrize("size_variable", ["SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"])
def test_slurm(size_variable):
    step = str(free_port())  # any number that no other test uses

    def slurm(rank):
        return {"SLURM_PROCID": str(rank), size_variable: "3", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": step,
                "SLURM_LOCALID": str(rank), "RONDO_RANK": None, "RONDO_SIZE": None, "RONDO_JOB": None}

    with Job(3, program("matrix"), "--ranks", "0", *SUBSET, each=slurm) as job:
        job.finish()
        all_passed("\n".join(line for rank in job.ranks.values() for line in rank.lines), 3)


def test_same_host_id_everywhere():
    processes(3, RONDO_HOSTID="somewhere")


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (3, 1), (4, 5)])
def test_processes_of_several_ranks(shape):
    """The command line passes the unique id from one process to the other."""
    here, there = shape
    size = here + there
    with Job(1, program("hybrid"), "--size", size, "--first", 0, "--threads", here) as maker:
        unique_id = maker.wait_for("ID ")[0].split()[1]
        with Job(1, program("hybrid"), "--size", size, "--first", here, "--threads", there, "--id", unique_id) as user:
            user.finish()
            maker.finish()


def test_several_jobs_in_one_process():
    run(program("hybrid"), "--worlds", 4, "--threads", 3)


@pytest.mark.parametrize("ranks", [2, 4])
def test_mix_of_processes(ranks):
    with Job(ranks, program("mix"), "--ranks", 0, "--threads", 2, "--iterations", 3, "--persistent", 4, "--seed", ranks) as job:
        job.finish()


def test_messages_between_processes():
    with Job(3, program("p2p"), "--ranks", 0) as job:
        job.finish()


@pytest.mark.parametrize("soft, hard, says", [(200, 200, "a job of 300 ranks takes as many descriptors in the process of its root, which may have 200"),
                                              (200, 1000, "ranks 1, 2, 3")])
def test_descriptors_of_the_root(soft, hard, says):
    """The root needs one for each rank: it raises a limit that can be raised, and says so where it cannot."""
    limited = f"ulimit -Sn {soft}; ulimit -Hn {hard}; exec {program('matrix')} --ranks 0"
    output = run("bash", "-c", limited, expect=1, RONDO_RANK=0, RONDO_SIZE=300, RONDO_JOB="descriptors", RONDO_CONNECT_TIMEOUT=1)
    assert says in output, output


def test_unknown_variables():
    """Rank 0 alone warns of names that Rondo lacks, once, and not of reserved ones."""
    with Job(3, program("matrix"), "--ranks", 0, *SUBSET, RONDO_TIMOUT=5, RONDO_NONESUCH=1, RONDO_X_OF_A_TEST=1) as job:
        job.finish()
        said = {rank: [line for line in process.lines if "is not a variable" in line] for rank, process in job.ranks.items()}
    assert sorted(said[0]) == ["rondo rank 0 WARN: RONDO_NONESUCH is not a variable of Rondo; rondo info lists them",
                               "rondo rank 0 WARN: RONDO_TIMOUT is not a variable of Rondo; did you mean RONDO_TIMEOUT?"]
    assert said[1] == said[2] == []


def test_garbage_from_a_launcher():
    """Each rank refuses a rank or size that is no number, and names the launcher's variable."""
    for wrong, variables in (("OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_RANK": "zero", "OMPI_COMM_WORLD_SIZE": 1}),
                             ("PMI_SIZE", {"PMI_RANK": 0, "PMI_SIZE": "1 "}),
                             ("SLURM_PROCID", {"SLURM_PROCID": "-1", "SLURM_NTASKS": 1}),
                             ("RONDO_RANK", {"RONDO_RANK": 1, "RONDO_SIZE": 1})):
        output = run(program("matrix"), "--ranks", 0, *SUBSET, expect=1, **variables)
        assert f"{wrong}=" in output, output


def test_fifo_as_tuning_table(tmp_path):
    """A pipe without a writer is refused, not waited for."""
    os.mkfifo(tmp_path / "pipe")
    said = run(program("matrix"), "--ranks", 2, *SUBSET, expect=1, RONDO_TUNING=tmp_path / "pipe")
    assert "RONDO_TUNING=" in said and "not a regular file" in said


@pytest.mark.skipif(SANITIZED, reason="the demo ends with speeds, beside an MPI that has no sanitizer")
def test_demo():
    """What `make demo` runs when all is built: without a GPU it takes the processor, and it ends well."""
    output = run("make/demo", seconds=300, BUILD=BUILD)
    gpus = len(re.findall(r'"multiprocessors": \d', run(program("rondo"), "info", "--json", "-")))
    assert (f"on {gpus} GPU(s)" if gpus > 0 else "on the processor") in output, output
    assert "exit code 3: deadlock, as expected" in output and "test accuracy 97" in output, output
