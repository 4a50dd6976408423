"""Bad input is refused with the right code and a message, and ranks that disagree get an error."""
import os
import re

import pytest
from harness import ROOT, Job, program, run

SCENARIOS = ["pointers", "misaligned", "enumerators", "counts", "roots", "aliasing", "requests", "groups", "attributes",
              "streams", "memory", "alone", "graphs"]
MISMATCHES = ["count", "type", "op", "rate", "collective", "root", "reduce_root", "barrier", "bcast_count", "scan_alltonext",
              "commutative", "user_op", "element", "gatherv_root", "scatterv_type", "reduce_scatter"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_bad_arguments(scenario, ranks):
    run(program("arguments"), "--ranks", ranks, "--scenario", scenario, seconds=30)


@pytest.mark.parametrize("scenario", ["foreign", "kinds", "freed", "programs", "many", "forks"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_handles(scenario, ranks):
    run(program("handles"), "--ranks", ranks, "--scenario", scenario)


def test_handles_of_an_ended_runtime():
    run(program("handles"), "--scenario", "ended")


@pytest.mark.parametrize("transports", [None, "ucx"])
def test_forked_processes(transports):
    """Ranks that are processes, on one host and as if on three."""
    hosts = {"RONDO_TRANSPORTS": transports} if transports else {}
    each = (lambda rank: {"RONDO_HOSTID": f"host{rank}"}) if transports else None
    with Job(3, program("handles"), "--ranks", 0, "--scenario", "forks", each=each, **hosts) as job:
        job.finish()


# What neither takes a handle nor makes or frees anything but a number.
EVERYWHERE = {"rondo_strerror", "rondo_last_error", "rondo_datatype_size", "rondo_type_create", "rondo_type_free", "rondo_environment_describe",
              "rondo_collective_describe", "rondo_program_text_free", "rondo_program_builtin_name"}


def test_every_function_is_tried():
    """The functions that the headers declare are those that test/multirank/handles.c calls with wrong handles and in a forked process."""
    text = "".join((ROOT / "include" / name).read_text() for name in ("rondo.h", "rondo_program.h"))
    declared = re.findall(r"^RONDO_API [^;(]*?\b(rondo_\w+)\(", text, re.MULTILINE)
    tried = run(program("handles"), "--scenario", "list").split()
    assert len(declared) > 150
    assert sorted([*tried, *EVERYWHERE]) == sorted(declared)


def test_the_limit_of_file_sizes_is_an_error():
    """The kernel would end the process by SIGXFSZ where memory that ranks share exceeds the limit of file sizes."""
    output = run("bash", "-c", 'ulimit -f 1; exec "$@"', "-", program("rondo"), "stress", "--ranks", 2, "--device", "host",
                 "--iterations", 1, expect=1)
    assert "RLIMIT_FSIZE" in output and "1024 bytes" in output


def test_a_tuning_file_that_is_none(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, reason in ((tmp_path / "fifo", "it is not a regular file"), (tmp_path, "Is a directory")):
        output = run(program("rondo"), "stress", "--ranks", 1, "--device", "host", "--iterations", 1, expect=1, RONDO_TUNING=path)
        assert f'RONDO_TUNING="{path}" cannot be read: {reason}' in output


def test_an_algorithm_that_is_none():
    output = run(program("rondo"), "stress", "--ranks", 2, "--device", "host", "--iterations", 1, expect=1, RONDO_ALGORITHM="abc")
    for rank in range(2):
        assert f'rank {rank}: invalid argument: RONDO_ALGORITHM="abc" is not allowed' in output and " ring," in output, output


def test_messages_to_a_closed_pipe():
    """The library's own messages end no process."""
    output = run("bash", "-c", '{ "$@" 2>&1 >&3 | true; } 3>&1; echo "status ${PIPESTATUS[0]}"', "-", program("handles"),
                 "--scenario", "kinds", RONDO_LOG="debug")
    assert "0 failures" in output


def test_bad_configurations():
    run(program("configurations"), seconds=30, RONDO_CONNECT_TIMEOUT=3)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
@pytest.mark.parametrize("scenario", MISMATCHES)
def test_mismatch(scenario, form, ranks):
    run(program("mismatch"), "--ranks", ranks, "--scenario", scenario, "--form", form, seconds=30)


@pytest.mark.parametrize("scenario", ["message_count", "message_type"])
def test_mismatched_message(scenario):
    run(program("mismatch"), "--ranks", 3, "--scenario", scenario, seconds=30)
