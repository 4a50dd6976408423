"""Data connections that break while both ranks live: they are made again, and nothing is lost, doubled or out of order. The programs
compare their results element by element; those of `reuse` overwrite their buffers as soon as an operation has ended."""
import pathlib
import random
import re
import subprocess
import sys
import time

import pytest
from harness import SANITIZED, SUCCESS, program
from namespaces import Hosts, ucx_version

HERE = pathlib.Path(__file__).parent
MIX = ["--threads", 2, "--persistent", 4]
ITERATIONS = {2: 400, 3: 60, 4: 40}  # some seconds
MATRIX = ["--types", "float,int8", "--ops", "sum,max", "--counts", "0,3,1000,20001,70001"]


# UCX before 1.16 may end a process, by an assertion in one of these files, whose connection breaks (docs/guide/limits.md).
OLD_UCX = ucx_version() < (1, 16)
ASSERTS = re.compile(r"(ucp_request|wireup_ep|tcp_cm)\.c:\d+ +Assertion")


def disturb(places, what, options, seed, least, **extra):
    """Runs the program and cuts the data connections of a random host now and then, until it has ended: all of them, or with an old
    UCX those that are older than half a second, as it can bear least where they are being made. Where an old UCX ends a process all the
    same, the job starts again, at most thrice."""
    for left in range(3 if OLD_UCX else 0, -1, -1):
        if disturbed(places, what, options, seed + left, least, left > 0, extra):
            return


def disturbed(places, what, options, seed, least, may_fail, extra):
    noise = random.Random(seed)
    cut = 0
    with Hosts(max(places) + 1) as hosts, hosts.job(places, program(what), "--ranks", 0, *options, port=5555, seconds=120, **extra) as job:
        while any(rank.process.poll() is None for rank in job.ranks.values()):
            host, pause = noise.choice(places), (1 if OLD_UCX else noise.uniform(0, 0.8)) * (4 if SANITIZED else 1)
            time.sleep(pause / 2)
            there = hosts.connections(host, but=5555) if OLD_UCX else None
            time.sleep(pause / 2)
            cut += hosts.cut(host, but=5555, among=there)
        try:
            job.finish()
        except pytest.fail.Exception:
            if may_fail and ASSERTS.search(job.output()):
                return False
            raise
    assert cut >= least, f"{cut} ends of connections were cut"
    return True


@pytest.mark.parametrize("places, variables", [([0, 1], {}), ([0, 1, 2], {"RONDO_PROXY_THREADS": 2}), ([0, 0, 1, 1], {"RONDO_ENCRYPT": 1}),
                                               pytest.param([0, 1, 2], {"RONDO_GPUDIRECT": "apart"}, marks=pytest.mark.slow),
                                               pytest.param([0, 1, 2], {"RONDO_TIMEOUT": 60}, marks=pytest.mark.slow)], ids=str)
def test_random_mixes(places, variables):
    """Persistent and nonblocking collectives in random order, beside messages."""
    disturb(places, "mix", [*MIX, "--iterations", ITERATIONS[len(places)], "--seed", 40 + len(places)], 1, 2, **variables)


@pytest.mark.parametrize("places, variables", [([0, 1], {}), ([0, 1, 2], {}), ([0, 1, 0, 1], {"RONDO_PROXY_THREADS": 2}),
                                               pytest.param([0, 1, 2], {"UCX_RNDV_THRESH": "48k"}, marks=pytest.mark.slow)], ids=str)
def test_buffers_that_are_written_at_once(places, variables):
    """Zero-copy sends: what is sent again must be what was there when the operation had not ended."""
    disturb(places, "reuse", ["--rounds", {2: 600, 3: 240, 4: 80}[len(places)]], 2, 1, **variables)


def test_small_buffers_that_are_written_at_once():
    """The proxy copies them once they are on their way, and sends the copy again."""
    disturb([0, 1], "reuse", ["--count", 2000, "--rounds", 6000 if SANITIZED else 60000], 5, 2)


@pytest.mark.parametrize("places", [[0, 1], pytest.param([0, 1, 2, 2], marks=pytest.mark.slow)], ids=str)
def test_every_collective(places):
    disturb(places, "matrix", MATRIX, 3, 1)


@pytest.mark.parametrize("places", [[0, 1], pytest.param([0, 1, 1], marks=pytest.mark.slow)], ids=str)
def test_messages(places):
    disturb(places, "p2p", ["--rounds", 8], 4, 1)


def serve(hosts, places, **extra):
    return hosts.job(places, program("faults"), "--scenario", "serve", "--seconds", 8, "--count", 300000, seconds=60, **extra)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_nic_that_is_down_for_3_seconds(victim):
    with Hosts(2) as hosts, serve(hosts, [0, 1, 1]) as job:
        job.wait_for("READY")
        hosts.down(victim)
        time.sleep(3)
        hosts.up(victim)
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {message}"
        job.finish()


@pytest.mark.parametrize("order", ["cut first", "cut last"])
def test_a_nic_that_is_down_while_a_connection_breaks(order):
    """The connections are cut at one end alone, as the other one cannot hear of it, and are made again once there is a way."""
    with Hosts(2) as hosts, serve(hosts, [0, 1], RONDO_LOG="info") as job:
        job.wait_for("READY")
        if order == "cut first":
            hosts.cut(1, but=5555)
        hosts.pull(1)
        if order == "cut last":
            hosts.cut(1, but=5555)
        time.sleep(2)
        hosts.plug(1)
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {message}"
        job.finish()
        assert "carries again" in job.output()


class Relay(Hosts):
    """Two hosts between which relay.py is the cable. passed, dropped: how many packets, once it has ended."""

    def __init__(self, drop=0.0, delay=0.0, seed=1):
        super().__init__(2, paired=True)
        if not pathlib.Path("/dev/net/tun").exists():
            pytest.skip("no /dev/net/tun here")
        self.options = ["--drop", str(drop), "--delay", str(delay), "--seed", str(seed)]
        self.program = None
        self.passed = self.dropped = 0

    def _pair(self):
        for host in range(2):
            subprocess.run(["ip", "netns", "add", self.name(host)], check=True)
        self.program = subprocess.Popen([sys.executable, HERE / "relay.py", self.name(0), self.name(1), *self.options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.program.stdout.readline() != "READY\n":
            pytest.fail("the relay does not start")
        for host in range(2):
            self._set_up(host)

    def say(self, word):
        self.program.stdin.write(word + "\n")
        self.program.stdin.flush()

    def __exit__(self, *_):
        if self.program is not None:
            said, _ = self.program.communicate()
            self.passed, self.dropped = map(int, said.split() or (0, 0))
        super().__exit__()


@pytest.mark.parametrize("what, options", [("mix", ["--iterations", 4, "--max-count", 20000, "--seed", 51]),
                                           ("reuse", ["--count", 20000, "--rounds", 20])], ids=str)
def test_a_relay_that_drops_and_delays(what, options):
    """The network makes up for it below the connections, which stay whole or are made again."""
    with Relay(drop=0.01, delay=0.001) as hosts, hosts.job([0, 1], program(what), "--ranks", 0, *options, seconds=120) as job:
        job.finish()
    assert hosts.passed > 100 and hosts.dropped > 0, f"{hosts.passed} packets passed on, {hosts.dropped} dropped"


def test_a_relay_that_is_cut():
    """Twice, each time for less than a host may be silent, and with a pause in which TCP tries again."""
    with Relay(delay=0.0005) as hosts, serve(hosts, [0, 0, 1, 1], RONDO_LOG="info") as job:
        job.wait_for("READY")
        for _ in range(2):
            hosts.say("cut")
            time.sleep(1.5)
            hosts.say("join")
            time.sleep(2.5)
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {message}\n{job.output()}"
        job.finish()
    assert hosts.dropped > 0
