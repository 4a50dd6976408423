"""RONDO_TRACE: complete JSON in Chrome's format whatever happens to the job, consistent with the daemon's own counts; and the
output of `rondo trace summary`.
"""
import collections
import json
import os
import signal
import time
import xml.etree.ElementTree as ElementTree

import pytest
from harness import SUCCESS, Job, program, run


def stress(tmp_path, *options, **extra):
    trace, where = tmp_path / "trace.json", tmp_path / "stress.json"
    run(program("rondo"), "stress", "--device", "host", *options, "--json", where, RONDO_TRACE=trace, **extra)
    return trace, json.loads(where.read_text())


def summary(trace, *options, expect=0):
    where = trace.parent / "summary.json"
    output = run(program("rondo"), "trace", "summary", trace, *options, "--json", where, expect=expect)
    return output, json.loads(where.read_text()) if expect == 0 else None


def check_form(events, ranks):
    """The requirements of Perfetto: names of the tracks, times, phases; slices of a track do not overlap."""
    names = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"}
    assert names == {(rank, f"rank {rank}") for rank in range(ranks)}
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "M":
            continue
        assert event["ph"] in "XiC" and event["ts"] > 0, event
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in threads and event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    for track in slices.values():
        track.sort()
        for (start, length), (following, _) in zip(track, track[1:]):
            assert start + length <= following + 0.01, (start, length, following)


@pytest.mark.parametrize("options", [("--order", "random"), ("--order", "random", "--sync"), ("--order", "same")])
def test_it_agrees_with_the_daemon_s_counts(tmp_path, options):
    trace, counted = stress(tmp_path, "--ranks", 4, "--collectives", 8, "--iterations", 10, *options)
    events = json.loads(trace.read_text())
    check_form(events, 4)
    output, found = summary(trace)
    kinds = collections.Counter(e["name"] for e in events)
    assert found["lost"] == kinds["lost records"] == 0
    assert found["context_switches"] == counted["preemptions"]
    assert kinds["start"] == kinds["fetch"] == kinds["complete"] == counted["expected"] == len(found["operations"])
    assert all(o["visits"] > o["context_switches"] >= 0 and o["queue"] >= 1 and o["time_us"] > 0 for o in found["operations"])
    assert [rank["operations"] for rank in found["ranks"]] == [80] * 4
    assert sum(rank["context_switches"] for rank in found["ranks"]) == counted["preemptions"]
    assert "allreduce(count" in output and "queue length over time" in output
    enters = {(e["pid"], e["tid"]) for e in events if e["name"] == "daemon enters"}
    assert {pid for pid, _ in enters} == set(range(4))


def test_ranks_of_several_processes_share_the_file(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text("left from an earlier run")
    with Job(3, program("rondo"), "stress", "--device", "host", "--collectives", 4, "--iterations", 5, RONDO_TRACE=trace) as job:
        job.finish()
    check_form(json.loads(trace.read_text()), 3)
    _, found = summary(trace)
    assert [rank["operations"] for rank in found["ranks"]] == [20 + found["ranks"][0]["operations"] - 20] * 3
    assert found["ranks"][0]["operations"] >= 20 and found["ranks"][0]["unfinished"] == 0


@pytest.mark.parametrize("preempt", [0, 1])
def test_a_killed_job_leaves_a_trace(tmp_path, preempt):
    """A hanging job has written its timeline before it is killed, even if a block holds on to the operation that it is stuck
    in."""
    trace = tmp_path / "trace.json"
    with Job(2, program("hang"), "--scenario", "absence", "--culprits", 2, "--seconds", 30, RONDO_TRACE=trace, RONDO_PREEMPT=preempt) as job:
        job.wait_for("READY")
        time.sleep(1.5)
        for rank in job.ranks.values():
            rank.process.send_signal(signal.SIGKILL)
        for rank in job.ranks.values():
            rank.process.wait()
        lines = trace.read_text().splitlines()
        if lines[-1] != "]":  # killed during a write
            lines[-1:] = ["{}]"]
        events = [event for event in json.loads("\n".join(lines)) if event]
        check_form(events, 2)
        assert sum(e["name"] == "complete" for e in events) >= 2  # the barrier
        assert any("allreduce" in e["args"]["operation"] for e in events if e["name"] == "start")
        assert not preempt or any(e["args"]["end"] == "preempted" for e in events if e["ph"] == "X")
        fetched, completed = ({(e["pid"], e["args"]["lane"], e["args"]["number"]) for e in events if e["name"] == name}
                              for name in ("fetch", "complete"))
        assert [rank for rank, _, _ in fetched - completed] == [0]  # the operation that it hangs in


def test_plots(tmp_path):
    trace, _ = stress(tmp_path, "--ranks", 3, "--collectives", 6, "--iterations", 4)
    summary(trace, "--svg", tmp_path / "plot.svg", "--timeline", tmp_path / "line.svg", "--all")
    tree = ElementTree.parse(tmp_path / "plot.svg")
    visits = ElementTree.parse(tmp_path / "line.svg").findall(".//{http://www.w3.org/2000/svg}rect")
    assert len(visits) == 1 + sum(e["ph"] == "X" for e in json.loads(trace.read_text()))
    lines = tree.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2 * 3 and all(len(line.get("points").split()) == 24 for line in lines)


def test_truncated(tmp_path):
    trace, _ = stress(tmp_path, "--ranks", 2, "--collectives", 2, "--iterations", 2)
    whole = trace.read_bytes()
    for length in (len(whole) // 2, len(whole) - 3, 1, 0):
        trace.write_bytes(whole[:length])
        output, _ = summary(trace, expect=2)
        assert "trace.json" in output and "truncated" in output


@pytest.mark.parametrize("text", ["{}", "[]", "[1, 2]", '{"traceEvents": [{"name": "x", "ph": "i"}]}', '"text"', "[[[["])
def test_not_a_trace(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    assert "other.json" in summary(tmp_path / "other.json", expect=2)[0]


@pytest.mark.parametrize("arguments", [(), ("summary",), ("picture", "x"), ("summary", "a", "b"), ("summary", "a", "--svg")])
def test_bad_usage(arguments):
    run(program("rondo"), "trace", *arguments, expect=2)


def test_a_file_that_cannot_be_written(tmp_path):
    output = run(program("rondo"), "stress", "--ranks", 2, "--device", "host", "--iterations", 1, expect=1,
                 RONDO_TRACE=tmp_path / "none" / "trace.json")
    assert "RONDO_TRACE" in output and "No such file" in output


OBSTACLES = ["fifo", "fifo_with_reader", "folder", "/dev/full", "/dev/null"]


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_is_no_file_ends_the_trace_and_not_the_job(tmp_path, obstacle, processes):
    """One warning a rank, with the reason; the program does its work and ends."""
    trace, reader = tmp_path / "trace", None
    if obstacle.startswith("fifo"):
        os.mkfifo(trace)
        reader = os.open(trace, os.O_RDONLY | os.O_NONBLOCK) if obstacle == "fifo_with_reader" else None
    elif obstacle == "folder":
        trace.mkdir()
    else:
        trace = obstacle
    command = (program("rondo"), "stress", "--device", "host", "--iterations", 2)
    if processes:
        with Job(2, *command, RONDO_TRACE=trace) as job:
            job.finish()
            output = job.output()
    else:
        output = run(*command, "--ranks", 2, RONDO_TRACE=trace)
    if reader is not None:
        os.close(reader)
    reason = "Is a directory" if obstacle == "folder" else "it is not a regular file"
    assert output.count(f"cannot write to {trace}: {reason}") == 2 and output.count("events were dropped") == 2


@pytest.mark.parametrize("change", ["truncate", "remove"])
def test_a_file_that_others_change(tmp_path, change):
    """While the job runs. Everything that follows is dropped, and every rank goes on to its end."""
    trace = tmp_path / "trace.json"
    with Job(2, program("rondo"), "stress", "--device", "host", "--collectives", 8, "--iterations", 1000, seconds=200,
             RONDO_TRACE=trace) as job:
        while not trace.exists() or trace.stat().st_size < 20000:
            time.sleep(0.02)
        os.truncate(trace, 0) if change == "truncate" else trace.unlink()
        job.finish()
        output = job.output()
    reason = "another program has truncated or changed the file" if change == "truncate" else "the file has been removed"
    assert output.count(reason) == 2 and "events were dropped" in output


def test_its_size_is_limited(tmp_path):
    trace, _ = stress(tmp_path, "--ranks", 2, "--collectives", 8, "--iterations", 200, RONDO_TRACE_BYTES="200K")
    assert 100 << 10 < trace.stat().st_size <= (200 << 10) + 64
    events = json.loads(trace.read_text())
    dropped = {e["pid"]: e["args"]["count"] for e in events if e["name"] == "dropped events"}
    assert set(dropped) == {0, 1} and min(dropped.values()) > 0
    output, found = summary(trace)
    assert found["dropped"] == sum(dropped.values()) and found["full"] == 2
    assert f"incomplete: 2 ranks had used up their share of RONDO_TRACE_BYTES; {found['dropped']} events dropped" in output


def test_a_wrong_limit():
    for value in ("1", "65535", "-1", "many"):
        output = run(program("rondo"), "stress", "--ranks", 1, "--device", "host", "--iterations", 1, expect=1, RONDO_TRACE="/dev/null",
                     RONDO_TRACE_BYTES=value)
        assert "RONDO_TRACE_BYTES" in output and value in output


def test_without_one_nothing_is_written(tmp_path):
    run(program("rondo"), "stress", "--ranks", 2, "--device", "host", "--iterations", 1)
    assert not list(tmp_path.iterdir())
    with Job(1, program("rondo"), "stress", "--device", "host", "--iterations", 1, RONDO_TRACE=tmp_path / "one.json") as job:
        job.finish()
    assert summary(tmp_path / "one.json")[1]["ranks"][0]["unfinished"] == 0
