"""The file of the flight recorder: what each rank's last operations were when a communicator failed or a report was asked for, with
the fields that PyTorch's analyser reads.
"""
import json
import signal
import time

from harness import SUCCESS, TIMEOUT, Job, program, run

FIELDS = {"frames", "record_id", "pg_id", "process_group", "collective_seq_id", "p2p_seq_id", "op_id", "profiling_name",
          "time_created_ns", "input_sizes", "output_sizes", "input_dtypes", "output_dtypes", "state", "time_discovered_started_ns",
          "time_discovered_completed_ns", "retired", "timeout_ms", "is_p2p"}


def read(prefix, rank):
    return json.loads((prefix.parent / f"{prefix.name}{rank}").read_text())


def hang(size, prefix, **extra):
    """Rank 1 comes to the second operation, an all-reduce, late."""
    return Job(size, program("hang"), "--scenario", "absence", "--culprits", 2, seconds=40, RONDO_FLIGHT_RECORDER=prefix, **extra)


def code_of(rank, job):
    line = rank.wait_for("RESULT", job.deadline)
    assert line is not None, job.output()
    return int(line.split()[1])


def check(dump, rank, size, now):
    """What every file has, whatever its job did."""
    assert dump["version"] == "2.10" and dump["rank"] == rank and dump["size"] == size
    for entry in dump["entries"] + dump["other_entries"]:
        assert FIELDS <= set(entry), entry
        assert abs(entry["time_created_ns"] / 1e9 - now) < 60, entry
        assert entry["retired"] == (entry["state"] == "completed") == (entry["time_discovered_completed_ns"] is not None), entry
    for entry in dump["entries"]:
        group = dump["pg_config"][entry["process_group"][0]]
        assert json.loads(group["ranks"]) == list(range(size)), group
        assert entry["profiling_name"].startswith("nccl:"), entry
    assert [entry["record_id"] for entry in dump["entries"]] == sorted(entry["record_id"] for entry in dump["entries"])


def test_a_timeout_writes_the_file(tmp_path):
    prefix = tmp_path / "flight_"
    with hang(3, prefix, RONDO_TIMEOUT=1) as job:
        assert [code_of(rank, job) for rank in job.ranks.values()] == [TIMEOUT] * 3, job.output()
        job.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flight_0", "flight_1", "flight_2"]
    for rank in range(3):
        dump = read(prefix, rank)
        check(dump, rank, 3, time.time())
        barrier = dump["entries"][0]
        assert barrier["profiling_name"] == "nccl:all_reduce_barrier" and barrier["state"] == "completed", barrier
        reduces = [entry for entry in dump["entries"] if entry["profiling_name"] == "nccl:all_reduce"]
        if rank == 1:
            assert reduces == []
            continue
        entry, = reduces
        assert entry["state"] == "started" and entry["collective_seq_id"] == 2 and entry["family"] == "nonblocking", entry
        assert entry["input_sizes"] == [[1000]] and entry["input_dtypes"] == ["Float"] and entry["bytes"] == 4000, entry
        assert entry["timeout_ms"] == 1000 and entry["operator"] == "sum", entry
        status = dump["pg_status"]["0"]
        assert status["last_started_collective"] == 2 and status["last_completed_collective"] == 1, status
        active, = dump["active"]
        assert active["operation"].startswith("allreduce(") and active["number"] == 2, active


def test_a_signal_writes_the_files_of_all_ranks(tmp_path):
    prefix = tmp_path / "flight_"
    with hang(3, prefix, RONDO_REPORT_SIGNAL="USR1") as job:
        job.wait_for("READY")
        time.sleep(0.7)
        assert list(tmp_path.iterdir()) == []
        job.ranks[2].process.send_signal(signal.SIGUSR1)
        assert [code_of(rank, job) for rank in job.ranks.values()] == [SUCCESS] * 3, job.output()
        job.finish()
    states = []
    for rank in range(3):
        dump = read(prefix, rank)
        check(dump, rank, 3, time.time())
        states.append([entry["state"] for entry in dump["entries"]])
    assert states == [["completed", "started"], ["completed"], ["completed", "started"]]


def test_without_the_variable_there_is_no_file(tmp_path):
    with hang(2, None, RONDO_TIMEOUT=1) as job:
        assert [code_of(rank, job) for rank in job.ranks.values()] == [TIMEOUT] * 2, job.output()
        job.finish()
        assert "FLIGHT" not in job.output()


def test_a_bad_path_is_a_warning(tmp_path):
    with hang(2, tmp_path / "missing" / "flight_", RONDO_TIMEOUT=1) as job:
        assert [code_of(rank, job) for rank in job.ranks.values()] == [TIMEOUT] * 2, job.output()
        job.finish()
        assert "RONDO_FLIGHT_RECORDER: cannot write" in job.output(), job.output()
    (tmp_path / "flight_0").mkdir()
    with hang(2, tmp_path / "flight_", RONDO_TIMEOUT=1) as job:
        assert [code_of(rank, job) for rank in job.ranks.values()] == [TIMEOUT] * 2, job.output()
        job.finish()
        assert "RONDO_FLIGHT_RECORDER: cannot write" in job.output(), job.output()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flight_0", "flight_1"]
    output = run(program("rondo"), "stress", "--ranks", 1, "--iterations", 1, expect=1, RONDO_FLIGHT_RECORDER="a\nb")
    assert "RONDO_FLIGHT_RECORDER" in output
