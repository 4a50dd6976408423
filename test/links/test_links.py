"""Data connections that break while both ranks live: they are made again, and nothing is lost, doubled or out of order. The programs
compare their results element by element; those of `reuse` overwrite their buffers as soon as an operation has ended."""
import ctypes
import random
import time

import pytest
from harness import SANITIZED, SUCCESS, program
from namespaces import Hosts

MIX = ["--threads", 2, "--iterations", 40, "--persistent", 4]
MATRIX = ["--types", "float,int8", "--ops", "sum,max", "--counts", "0,3,1000,20001,70001"]


def ucx_version():
    """Of the library that ranks load; UCX before 1.16 may end a process whose connection breaks while it is being made
    (docs/guide/limits.md)."""
    library = ctypes.CDLL("libucp.so.0")
    library.ucp_get_version_string.restype = ctypes.c_char_p
    return tuple(map(int, library.ucp_get_version_string().decode().split(".")[:2]))


def disturb(places, what, options, seed, least, **extra):
    """Runs the program and cuts all data connections of a random host now and then, until it has ended. Returns how many ends of
    connections were cut. An old UCX gets time to make connections between two cuts."""
    noise = random.Random(seed)
    pause = (lambda: 1.0) if ucx_version() < (1, 16) else (lambda: noise.uniform(0, 0.8))
    cut = 0
    with Hosts(max(places) + 1) as hosts, hosts.job(places, program(what), "--ranks", 0, *options, port=5555, seconds=120, **extra) as job:
        while any(rank.process.poll() is None for rank in job.ranks.values()):
            time.sleep(pause() * (4 if SANITIZED else 1))
            cut += hosts.cut(noise.choice(places), but=5555)
        job.finish()
    assert cut >= least, f"{cut} ends of connections were cut"
    return cut


def disturb_well(*arguments, **extra):
    """Once more if an old UCX has ended a process."""
    try:
        disturb(*arguments, **extra)
    except pytest.fail.Exception as failure:
        if ucx_version() >= (1, 16) or not any(file in str(failure) for file in ("ucp_request.c", "wireup_ep.c", "tcp_cm.c")):
            raise
        disturb(*arguments, **extra)


@pytest.mark.parametrize("places, variables", [([0, 1], {}), ([0, 1, 2], {"RONDO_PROXY_THREADS": 2}), ([0, 0, 1, 1], {"RONDO_ENCRYPT": 1}),
                                               pytest.param([0, 1, 2], {"RONDO_GPUDIRECT": "apart"}, marks=pytest.mark.slow),
                                               pytest.param([0, 1, 2], {"RONDO_TIMEOUT": 60}, marks=pytest.mark.slow)], ids=str)
def test_random_mixes(places, variables):
    """Persistent and nonblocking collectives in random order, beside messages."""
    disturb_well(places, "mix", [*MIX, "--seed", 40 + len(places)], 1, 2, **variables)


@pytest.mark.parametrize("places, variables", [([0, 1], {}), ([0, 1, 2], {}), ([0, 1, 0, 1], {"RONDO_PROXY_THREADS": 2}),
                                               pytest.param([0, 1, 2], {"UCX_RNDV_THRESH": "48k"}, marks=pytest.mark.slow)], ids=str)
def test_buffers_that_are_written_at_once(places, variables):
    """Zero-copy sends: what is sent again must be what was there when the operation had not ended."""
    disturb_well(places, "reuse", ["--rounds", 200 if len(places) == 2 else 60], 2, 1, **variables)


@pytest.mark.parametrize("places", [[0, 1], pytest.param([0, 1, 2, 2], marks=pytest.mark.slow)], ids=str)
def test_every_collective(places):
    disturb_well(places, "matrix", MATRIX, 3, 1)


@pytest.mark.parametrize("places", [[0, 1], pytest.param([0, 1, 1], marks=pytest.mark.slow)], ids=str)
def test_messages(places):
    disturb_well(places, "p2p", [], 4, 0)


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
