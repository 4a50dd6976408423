"""Garbage, incomplete messages, floods and wrong secrets on the rendezvous port do not affect the job."""
import os
import random
import socket
import time

import pytest
from harness import BOOTSTRAP, SUCCESS, Job, free_port, program

from peers import listens, unix_listeners

SECRET = "open sesame"


def serving(size, port, *, only=None, secret=SECRET, seconds=3, **extra):
    return Job(size, program("faults"), "--scenario", "serve", "--seconds", seconds, only=only, seconds=40,
               root=f"127.0.0.1:{port}", RONDO_SECRET=secret, **extra)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=2)


def send_and_leave(port, data):
    try:
        with connect(port) as peer:
            peer.sendall(data)
    except OSError:
        pass  # the root may close the connection


def garbage(port, held):
    noise = random.Random(1)
    for length in (1, 3, 4, 7, 8, 16, 31, 64, 65, 200, 4096, 1 << 20):
        send_and_leave(port, noise.randbytes(length))
        send_and_leave(port, b"\0" * length)
        send_and_leave(port, b"\xff" * length)
    send_and_leave(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def silence(port, held):
    """Connections that send nothing, or a byte, and stay."""
    for k in range(40):
        held.append(connect(port))
        if k % 2:
            held[-1].sendall(b"\1")


def drip(port, held):
    """A connection that sends a byte at a time."""
    peer = connect(port)
    held.append(peer)
    try:
        for k in range(60):
            peer.sendall(bytes([k]))
            time.sleep(0.02)
    except OSError:
        pass


def flood(port, held):
    """More connections than a root holds, some of which are never read from."""
    for k in range(1200):
        try:
            held.append(connect(port))
            if k % 5 == 0:
                held[-1].setblocking(False)
                held[-1].send(os.urandom(2000))
        except OSError:
            pass
        if k % 3 == 0 and held:
            held.pop(0).close()


def echo(port, held):
    """Sends back the root's first messages, as a replay of a handshake would."""
    for _ in range(20):
        try:
            peer = connect(port)
            held.append(peer)
            peer.settimeout(0.2)
            peer.sendall(peer.recv(4096))
            peer.sendall(peer.recv(4096))
        except OSError:
            pass


ATTACKS = [garbage, silence, drip, flood, echo]


def all_well(job):
    for rank, (code, _, message) in job.results().items():
        assert code == SUCCESS, f"rank {rank}: {code}: {message}\n{job.output()}"
    job.finish()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_attack_while_the_job_runs(attack):
    port, held = free_port(), []
    with serving(3, port) as job:
        job.wait_for("READY")
        attack(port, held)
        all_well(job)
    for peer in held:
        peer.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_attack_while_ranks_meet(attack):
    port, held = free_port(), []
    with serving(3, port, only=[0], seconds=1) as job:
        deadline = time.monotonic() + 10
        while not listens(port) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert listens(port), job.output()
        attack(port, held)
        with serving(3, port, only=[1, 2], seconds=1) as others:
            all_well(others)
            all_well(job)
    for peer in held:
        peer.close()


@pytest.mark.parametrize("secret", ["open barley", "", None])
def test_wrong_secret_while_ranks_meet(secret):
    """A rank with a wrong secret gets an error with the reason; the rank with the right one still joins."""
    port = free_port()
    with serving(3, port, only=[0, 1], seconds=1) as job:
        with serving(3, port, only=[2], secret=secret, RONDO_CONNECT_TIMEOUT=3) as impostor:
            code, _, message = impostor.results()[2]
            assert code == BOOTSTRAP, message
            assert "secret" in message, message
            assert SECRET not in message
        with serving(3, port, only=[2], seconds=1) as rightful:
            all_well(rightful)
            all_well(job)


def test_wrong_secret_while_the_job_runs():
    port = free_port()
    with serving(3, port) as job:
        job.wait_for("READY")
        with serving(3, port, only=[1], secret="open barley", RONDO_CONNECT_TIMEOUT=2) as impostor:
            assert impostor.results()[1][0] == BOOTSTRAP
        all_well(job)


def test_second_claimant_of_a_rank_while_the_job_runs():
    """The second process knows the secret and is refused all the same."""
    port = free_port()
    with serving(3, port) as job:
        job.wait_for("READY")
        with serving(3, port, only=[1], RONDO_CONNECT_TIMEOUT=2) as second:
            assert second.results()[1][0] == BOOTSTRAP
        all_well(job)


def test_garbage_on_the_sockets_of_one_host():
    """Without an address ranks use a Unix socket for their rendezvous: every socket on which the job's processes listen gets
    garbage."""
    with Job(3, program("faults"), "--scenario", "serve", "--seconds", 3, seconds=40) as job:
        job.wait_for("READY")
        tried = 0
        for name in unix_listeners([rank.process.pid for rank in job.ranks.values()]):
            for data in (b"", b"\0", os.urandom(8), os.urandom(5000)):
                with socket.socket(socket.AF_UNIX) as peer:
                    peer.settimeout(2)
                    try:
                        peer.connect(name)
                        tried += 1
                        peer.sendall(data)
                    except OSError:
                        pass
        assert tried > 0, "the job listens on no Unix socket"
        all_well(job)
