"""Looking into a running job from outside: `rondo top`, `rondo report`, and the counts for Prometheus."""
import json
import re
import signal
import socket
import subprocess
import time
import urllib.request

import pytest
from harness import PATIENCE, SUCCESS, Job, environment, free_port, program, run


def absence(size, name, **extra):
    """A job whose last rank but one comes to an all-reduce late, for which the others wait: rank 1 of three, 0 of fewer."""
    extra.setdefault("seconds", 90)
    return Job(size, program("hang"), "--scenario", "absence", "--culprits", 2 if size == 3 else 1, "--seconds", 60, RONDO_JOB=name, **extra)


def look(*arguments):
    """The state of a job as JSON."""
    return json.loads(subprocess.run([program("rondo"), *map(str, arguments)], env=environment(), stdout=subprocess.PIPE,
                                     timeout=30 * PATIENCE, check=True).stdout)


def inspect_until(condition, *arguments):
    """Looks again until the state is so: a rank that has printed a line is not yet in the next call."""
    deadline = time.monotonic() + 20
    state = look(*arguments)
    while not condition(state) and time.monotonic() < deadline:
        time.sleep(0.1)
        state = look(*arguments)
    assert condition(state), state
    return state


def sockets_of(pid):
    """Names of the sockets at which the process answers."""
    with open("/proc/net/unix") as table:
        return [line.split("@")[1].strip() for line in table if f"@rondo-inspection.{pid}." in line and line.split()[3] == "00010000"]


def ask(pid, request, seconds=15):
    name, = sockets_of(pid)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(seconds * PATIENCE)
        peer.connect("\0" + name)
        peer.sendall(request)
        answer = b""
        try:
            while got := peer.recv(65536):
                answer += got
        except ConnectionResetError:
            pass
        return answer.decode()


def goes_on(job):
    assert [rank.process.poll() for rank in job.ranks.values()] == [None] * len(job.ranks), job.output()


def all_well(job):
    assert [int(line.split()[1]) for line in job.wait_for("RESULT").values()] == [SUCCESS] * len(job.ranks), job.output()
    job.finish()


def test_top_and_report_of_a_job():
    """By its name and by a process, and of the whole job whichever rank is asked."""
    with absence(3, "inspected") as job:
        job.wait_for("READY")
        waiting = lambda state: [len(rank["active"]) for rank in state["ranks"]] == [1, 0, 1]
        state = inspect_until(waiting, "top", "inspected", "--rounds", 1, "--json", "-")
        assert state["job"] == "inspected" and state["size"] == 3 and state["silent"] == [], state
        for number, rank in enumerate(state["ranks"]):
            assert rank["rank"] == number and rank["pid"] == job.ranks[number].process.pid and rank["gone"] == [], rank
            assert rank["device"] == "host" and abs(rank["time_ns"] / 1e9 - time.time()) < 60, rank
            assert rank["counts"]["connector_memory_budget_bytes"] > 0, rank
            assert rank["counts"]["control_connections_made"] >= 2 and rank["counts"]["control_bytes"] > 80, rank
            assert rank["recent"][0]["operation"] == "barrier" and rank["recent"][0]["completed_ns"] is not None, rank
            for entry in rank["active"]:
                assert entry["operation"].startswith("allreduce(count 1000, float, sum)") and entry["number"] == 2, entry
                assert rank["recent"][-1]["operation"] == "allreduce" and rank["recent"][-1]["completed_ns"] is None, rank
        assert 1 in [entry["waits_for_rank"] for rank in state["ranks"] for entry in rank["active"]], state
        table = run(program("rondo"), "top", job.ranks[1].process.pid, "--rounds", 2, "--interval", 0.1)
        assert len(re.findall(r"^ +[012] ", table, re.M)) == 6 and "rank 1 in allreduce(" in table, table
        report = run(program("rondo"), "report", job.ranks[2].process.pid)
        assert "job inspected, 3 ranks" in report, report
        assert "allreduce(count 1000, float, sum) on communicator 0" in report and "not started by rank 1" in report, report
        goes_on(job)
        assert "report" not in job.output()
    assert "no rank of job or process 'inspected'" in run(program("rondo"), "top", "inspected", expect=2)


def test_a_job_has_to_be_named_where_there_are_several():
    with absence(1, "one of two") as one, absence(1, "two of two") as other:
        one.wait_for("READY")
        other.wait_for("READY")
        refused = run(program("rondo"), "report", expect=2)
        assert "name one of them" in refused and "one of two  1 ranks" in refused and "two of two  1 ranks" in refused, refused
        assert look("top", "two of two", "--rounds", 1, "--json", "-")["job"] == "two of two"
    assert "one job, not 2" in run(program("rondo"), "report", "a", "b", expect=2)
    assert "--interval" in run(program("rondo"), "top", "--interval", "0", expect=2)


@pytest.mark.parametrize("culprit", [0, 2])
def test_the_rank_that_the_others_wait_for(culprit):
    with Job(3, program("hang"), "--scenario", "late", "--culprits", 1 << culprit, "--seconds", 60, RONDO_JOB="late", seconds=90) as job:
        job.wait_for("READY")
        time.sleep(0.3)
        state = look("top", "late", "--rounds", 3, "--interval", 0.3, "--json", "-")
        assert state["latest_rank"] == culprit, state["ranks"]
        late = [rank["late_ms"] for rank in state["ranks"]]
        assert late[culprit] > 10, late
        goes_on(job)


def test_a_frozen_rank_is_silent():
    """The others answer for it, within seconds."""
    with absence(3, "frozen") as job:
        job.wait_for("READY")
        job.ranks[1].process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        state = look("top", job.ranks[0].process.pid, "--rounds", 1, "--json", "-")
        assert state["silent"] == [1] and len(state["ranks"]) == 2, state
        assert time.monotonic() - began < 10 * PATIENCE
        job.ranks[1].process.send_signal(signal.SIGCONT)
        goes_on(job)


def test_top_ends_with_the_job():
    with absence(2, "mortal") as job:
        job.wait_for("READY")
        top = subprocess.Popen([program("rondo"), "top", "mortal", "--interval", "0.2"], env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        for rank in job.ranks.values():
            time.sleep(0.5)
            rank.process.kill()
        said, _ = top.communicate(timeout=30 * PATIENCE)
        assert top.returncode == 0 and "job mortal: 2 ranks" in said, said


def test_rude_callers():
    """Idle, slow, greedy and rude callers are cut off, and others are answered."""
    with absence(2, "crowded") as job:
        job.wait_for("READY")
        pid = job.ranks[0].process.pid
        name, = sockets_of(pid)
        assert ask(pid, b"nonsense\n") == "not a request: job, state or report\n"
        assert ask(pid, b"x" * 5000) == ""
        callers = [socket.socket(socket.AF_UNIX) for _ in range(6)]
        for caller in callers:
            caller.connect("\0" + name)
            caller.sendall(b"sta")
        for _ in range(3):
            assert json.loads(ask(pid, b"job\n")) == {"job": "crowded", "rank": 0, "size": 2, "pid": pid}
        idle = [socket.socket(socket.AF_UNIX) for _ in range(30)]
        for caller in idle:
            caller.connect("\0" + name)
        for caller in callers + idle:
            caller.close()
        assert json.loads(ask(pid, b"job\n"))["job"] == "crowded"
        goes_on(job)


def test_bytes_on_networks():
    """What goes over a network is counted by its name. Small payloads are padded in their slots, but not on every network."""
    port = free_port()
    with Job(2, program("hang"), "--scenario", "late", "--culprits", 2, "--seconds", 60, RONDO_JOB="on a network", RONDO_TRANSPORTS="ucx",
             RONDO_METRICS=f"127.0.0.1:{port}", seconds=90) as job:
        job.wait_for("READY")
        sent = lambda rank: (rank["counts"]["sent_bytes"], sum(rank["sent_on_networks"].values()))
        state = inspect_until(lambda state: all(total >= networks > 100 for total, networks in map(sent, state["ranks"])),
                              "top", "on a network", "--rounds", 1, "--json", "-")
        assert [list(rank["sent_on_networks"]) for rank in state["ranks"]] == [["ucx"], ["ucx"]], state
        assert get(port)["rondo_network_sent_bytes_total"] >= sent(state["ranks"][0])[1]
        table = run(program("rondo"), "top", "on a network", "--rounds", 2, "--interval", 1)
        assert "network" in table, table
        goes_on(job)


def samples(text):
    """{name: value} of a page of Prometheus, of which each name has its help and its type."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = re.fullmatch(r'(rondo_\w+)\{job="[^"]*",rank="\d+"(?:,network="\w+")?\} (\d+)', line).groups()
            assert f"# HELP {name} " in text and f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n" in text
            found[name] = int(value)
    return found


def get(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20 * PATIENCE) as page:
        assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return samples(page.read().decode())


def test_metrics_by_http():
    """Each rank of a host has a port of its own, from that of the variable on."""
    port = free_port()
    with Job(2, program("hang"), "--scenario", "late", "--culprits", 2, "--seconds", 60, RONDO_METRICS=f"127.0.0.1:{port}",
             seconds=90) as job:
        job.wait_for("READY")
        first = [get(port + rank) for rank in range(2)]
        for _ in range(3):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                get(port, "/other")
        with socket.create_connection(("127.0.0.1", port)) as rude:
            rude.sendall(b"\0" * 4000)
        time.sleep(0.5)
        later = [get(port + rank, "/") for rank in range(2)]
        for before, after in zip(first, later):
            assert set(before) == set(after) and before["rondo_ranks_gone"] == 0, before
            assert all(after[name] >= before[name] for name in before if name.endswith("_total")), (before, after)
        assert later[0]["rondo_operations_submitted_total"] + later[1]["rondo_operations_submitted_total"] > 0, later
        goes_on(job)


def test_metrics_in_files(tmp_path):
    with Job(2, program("hang"), "--scenario", "late", "--culprits", 2, "--seconds", 1, RONDO_METRICS=f"{tmp_path}/node_",
             seconds=40) as job:
        all_well(job)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node_0.prom", "node_1.prom"]
    for path in tmp_path.iterdir():
        assert samples(path.read_text())["rondo_connector_memory_budget_bytes"] > 0


def test_metrics_that_cannot_be_given(tmp_path):
    """A wrong value is an error; a port in use, or a folder that is not there, is a warning, and the job goes on."""
    output = run(program("rondo"), "stress", "--ranks", 1, "--iterations", 1, expect=1, RONDO_METRICS="nonsense")
    assert 'RONDO_METRICS="nonsense" must be host:port' in output, output
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        for value, said in ((place, f"cannot listen at {place}"), (f"{tmp_path}/missing/node_", "cannot write"),
                            ("127.0.0.1:65535", "no port is left")):
            output = run(program("rondo"), "stress", "--ranks", 2, "--iterations", 1, RONDO_METRICS=value, RONDO_LOG="warn")
            assert "RONDO_METRICS" in output and said in output, output
