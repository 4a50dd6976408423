"""MPI programs with the drop-in preloaded do what they do without, and the drop-in takes their collectives: a test that passes
while nothing was taken would test MPI."""
import json
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import mpis
import pytest
from harness import FAILURE, PATIENCE, ROOT, SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitizer's library cannot be preloaded behind the drop-in into a plain program")

HERE = ROOT / "test" / "mpi"
FOUND = mpis.found()
NAMES = [mpi.name for mpi in FOUND]
LEAST_TAKEN = 0.95


def read_counts(path):
    """{collective: (taken, left)}"""
    return {row["collective"]: (row["taken"], row["left"]) for row in json.loads(path.read_text())}


def check_taken(counts, *expected):
    taken = sum(t for t, _ in counts.values())
    left = sum(left for _, left in counts.values())
    assert taken >= LEAST_TAKEN * (taken + left), counts
    for name in expected:
        assert counts.get(name, (0, 0))[0] > 0, f"{name} was not taken: {counts}"


def test_drop_ins_are_built():
    if not FOUND:
        pytest.skip("no MPI with a drop-in: `make mpi` builds those of the MPIs that it finds, `make mpi-test` also the wheels'")


@pytest.mark.parametrize("mpi", [m for m in FOUND if m.c], ids=[m.name for m in FOUND if m.c])
def test_c_program(mpi, tmp_path):
    """Mixed requests, datatypes of one signature, a message that only MPI's progress brings while a rank waits for Rondo."""
    program = tmp_path / "mixed"
    subprocess.run([mpi.c, HERE / "mixed.c", "-o", program], check=True)
    for ranks in mpis.RANKS:
        report = tmp_path / "report"
        plain = mpi.run(ranks, program, preloaded=False)
        preloaded = mpi.run(ranks, program, preloaded=True, RONDO_MPI_REPORT=report)
        assert "wrong" not in plain + preloaded and f"{ranks} ranks finished" in preloaded, preloaded
        counts = read_counts(report)
        check_taken(counts, "allreduce", "allgather", "barrier", "bcast", "reduce")
        assert sum(left for _, left in counts.values()) == 0, counts


@pytest.mark.parametrize("language", ["f90", "f08"])
@pytest.mark.parametrize("mpi", [m for m in FOUND if m.fortran], ids=[m.name for m in FOUND if m.fortran])
def test_fortran_program(mpi, language, tmp_path):
    """Fortran's constants and requests, by the module mpi and by mpi_f08."""
    source = (HERE / "mixed.f90").read_text()
    if language == "f08":
        source = (source.replace("use mpi\n", "use mpi_f08\n").replace("integer :: comm, requests(3)",
                                                                    "type(MPI_Comm) :: comm; type(MPI_Request) :: requests(3)")
                  .replace("integer :: statuses(MPI_STATUS_SIZE, 3)", "type(MPI_Status) :: statuses(3)")
                  .replace("statuses(:, 1)", "statuses(1)"))
    text, program = tmp_path / f"mixed_{language}.f90", tmp_path / f"mixed_{language}"
    text.write_text(source)
    subprocess.run([mpi.fortran, "-w", text, "-o", program], check=True)
    report = tmp_path / "report"
    output = mpi.run(3, program, preloaded=True, RONDO_MPI_REPORT=report)
    assert "wrong" not in output and "3 ranks finished" in output, output
    check_taken(read_counts(report), "allreduce", "allgather", "barrier", "bcast", "reduce")


@pytest.mark.parametrize("mpi", [m for m in FOUND if m.c], ids=[m.name for m in FOUND if m.c])
def test_statuses(mpi, tmp_path):
    """MPI-4.1's functions that look at arrays of requests, which the MPI underneath may lack."""
    program = tmp_path / "statuses"
    subprocess.run([mpi.c, HERE / "statuses.c", "-o", program, "-ldl"], check=True)
    output = mpi.run(3, program, preloaded=True)
    assert "wrong" not in output and "3 ranks finished" in output, output


# Functions of mpi.h with a request that the drop-in need not have.
LEFT = {
    "gives a request of MPI's own": r"(I(b|r|s)?send|Irecv|Imrecv|Isendrecv(_replace)?|(B|R|S)?[Ss]end_init|Recv_init|P(send|recv)_init|"
                                    r"R(put|get|accumulate|get_accumulate)|Stream_i(send|recv)|I(send|recv)_enqueue)(_c)?|File_i.*|"
                                    r"Grequest_(start|class_allocate)|Buffer_iflush|(Comm|Session)_iflush_buffer",
    "takes a request of MPIX_Isend_enqueue or MPIX_Irecv_enqueue alone": r"Wait(all)?_enqueue",
    "takes a request of MPI_Grequest_start alone": r"Grequest_complete",
    "takes a partitioned request alone": r"P(arrived|ready|ready_list|ready_range)",
    "gives another name to a handle that MPI's own functions are given": r"Request_(f2c|c2f|toint|fromint)",
}


def declared(mpi):
    """The functions with a request among their parameters that the compiler sees in mpi.h."""
    text = subprocess.run([mpi.c, "-E", "-x", "c", "-include", "mpi.h", "/dev/null"], check=True, capture_output=True, text=True).stdout
    functions = re.findall(r"\bMPIX?_(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", text))
    return {name for name, parameters in functions if re.search(r"\b(MPI_Request|ompi_request_t)\b", parameters)}


@pytest.mark.parametrize("mpi", [m for m in FOUND if m.c], ids=[m.name for m in FOUND if m.c])
def test_requests_go_nowhere_else(mpi):
    """Each function of mpi.h with a request is the drop-in's, or is left for a reason."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", mpi.drop_in()], check=True, capture_output=True, text=True).stdout
    own = set(re.findall(r"\bMPIX?_(\w+)$", symbols, re.M))
    names = declared(mpi)
    assert {"Wait", "Waitall", "Startall", "Isend", "Iallreduce"} <= names, names
    missing = {name for name in names - own if not any(re.fullmatch(pattern, name) for pattern in LEFT.values())}
    assert not missing, f"neither taken over nor listed in LEFT: {sorted(missing)}"


@pytest.mark.parametrize("handler", ["return", "fatal"])
@pytest.mark.parametrize("mpi", [m for m in FOUND if m.c], ids=[m.name for m in FOUND if m.c])
def test_frozen_rank(mpi, handler, tmp_path):
    """A rank that is stopped is MPI's error on the others, by the communicator's handler, within five seconds."""
    program = tmp_path / "frozen"
    subprocess.run([mpi.c, HERE / "frozen.c", "-o", program], check=True)
    began = time.monotonic()
    output = mpi.run(3, program, handler, preloaded=True, expect=FAILURE)
    assert "rank 2 has died" in output and "no error" not in output, output
    if handler == "return":
        waited = re.findall(r"rank [01]: error of class \d+ after ([\d.]+) s", output)
        assert len(waited) == 2 and max(map(float, waited)) < 5 * PATIENCE, output
    else:
        assert time.monotonic() - began < 15 * PATIENCE, output  # with the launcher's beginning and end


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """What random calls give without the drop-in, blocking, on an MPI that does all of them: MPICH of PyPI where it is there. Open MPI
    5.0.11 hangs in neighbourhood collectives on some graphs."""
    known = {}

    def run(mpi, ranks):
        chosen = next((m for m in FOUND if m.name == "mpich of PyPI"), mpi)
        if (chosen, ranks) not in known:
            known[chosen, ranks] = tmp_path_factory.mktemp("plain")
            random_calls(chosen, ranks, known[chosen, ranks] / "rank", "--plain", preloaded=False)
        return known[chosen, ranks] / "rank"
    return run


def random_calls(mpi, ranks, output, *options, **more):
    mpi.run(ranks, mpi.python, HERE / "random_calls.py", "--seed", 100 + ranks, "--rounds", mpis.STEPS, "--output", output, *options,
            seconds=100 + 5 * mpis.STEPS, **more)


@pytest.mark.parametrize("ranks", mpis.RANKS)
@pytest.mark.parametrize("mpi", [m for m in FOUND if m.python], ids=[m.name for m in FOUND if m.python])
def test_random_calls(mpi, ranks, plain, tmp_path):
    """Every collective, class of datatype, communicator and form of request gives the same elements as plain MPI, also where ranks lay
    them out differently."""
    report, output, expected = tmp_path / "report", tmp_path / "rank", plain(mpi, ranks)
    random_calls(mpi, ranks, output, "--mixed", preloaded=True, RONDO_MPI_REPORT=report)
    calls = Counter()
    for rank in range(ranks):
        wanted, got = (Path(f"{name}.{rank}").read_text().splitlines() for name in (expected, output))
        differing = [f"plain {a}, preloaded {b}" for a, b in zip(wanted, got) if a != b]
        assert wanted and len(wanted) == len(got) and not differing, differing[:5]
        for line in Path(f"{output}.{rank}.calls").read_text().splitlines():
            calls[line.split()[0]] += int(line.split()[1])
    counts = read_counts(report)
    unseen = {name: (n, counts.get(name)) for name, n in calls.items() if sum(counts.get(name, (0, 0))) < n}
    assert not unseen, f"calls that went past the drop-in (made, counted): {unseen}"
    check_taken(counts)


@pytest.mark.parametrize("mpi", FOUND, ids=NAMES)
def test_other_commands_run(mpi):
    """The drop-in is loaded into every process of a job, also into those without MPI."""
    assert "fine" in mpi.run(1, "sh", "-c", "echo fine", preloaded=True)
