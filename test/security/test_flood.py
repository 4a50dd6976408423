"""Hundreds of strangers on the rendezvous port: a joining job is not kept from joining."""
import os
import resource
import selectors
import socket
import threading
import time

import pytest
from harness import PATIENCE, SUCCESS, Job, free_port, program

from peers import listens

KINDS = ("idle", "slow", "garbage")


class Flood:
    """count connections of each kind to the port, each made anew when the root drops it: idle ones send nothing, slow ones a
    byte every 20 ms, garbage ones random bytes as fast as they are taken."""

    def __init__(self, port, count):
        self.port = port
        self.wanted = [kind for kind in KINDS for _ in range(count)]
        self.made = dict.fromkeys(KINDS, 0)
        self.full = threading.Event()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(20)

    def _connect(self, selector, kind):
        peer = socket.socket()
        peer.setblocking(False)
        try:
            peer.connect(("127.0.0.1", self.port))
        except BlockingIOError:
            pass
        except OSError:
            peer.close()
            return False
        self.made[kind] += 1
        selector.register(peer, selectors.EVENT_READ | (selectors.EVENT_WRITE if kind == "garbage" else 0), kind)
        return True

    def _run(self):
        garbage, missing, slow_at = os.urandom(1500), list(self.wanted), 0.0
        with selectors.DefaultSelector() as selector:
            while not self.stop.is_set():
                while missing and self._connect(selector, missing[-1]):
                    missing.pop()
                if not missing:
                    self.full.set()
                slow_now = time.monotonic() > slow_at
                slow_at = time.monotonic() + 0.02 if slow_now else slow_at
                ready = {key.fileobj: events for key, events in selector.select(0.01)}
                for key in list(selector.get_map().values()):
                    events = ready.get(key.fileobj, 0)
                    try:
                        if events & selectors.EVENT_READ and not key.fileobj.recv(4096):
                            raise ConnectionResetError
                        if events & selectors.EVENT_WRITE:
                            key.fileobj.send(garbage)
                        elif slow_now and key.data == "slow":
                            key.fileobj.send(b"R")
                    except BlockingIOError:
                        pass
                    except OSError:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        missing.append(key.data)
            for key in list(selector.get_map().values()):
                key.fileobj.close()


def serving(size, port, secret, only=None):
    return Job(size, program("faults"), "--scenario", "serve", "--seconds", 1, only=only, seconds=60, root=f"127.0.0.1:{port}",
               RONDO_SECRET=secret)


def join(port, size, secret, only):
    """Starts the ranks and returns the seconds until they have joined, and the job."""
    began = time.monotonic()
    job = serving(size, port, secret, only)
    job.wait_for("READY")
    return time.monotonic() - began, job


def await_root(port):
    deadline = time.monotonic() + 20
    while not listens(port) and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize("secret", ["open sesame", None])
def test_a_job_joins_beside_a_flood(secret, capsys):
    size, soft = 3, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(500, (soft - 100) // len(KINDS))
    assert count >= 100, f"{soft} descriptors are too few (ulimit -n)"

    port = free_port()
    with serving(size, port, secret, only=[0]) as root:
        await_root(port)
        alone, job = join(port, size, secret, [1, 2])
        with job:
            job.finish()
            root.finish()

    port = free_port()
    with serving(size, port, secret, only=[0]) as root:
        await_root(port)
        with Flood(port, count) as flood:
            assert flood.full.wait(30), flood.made
            took, job = join(port, size, secret, [1, 2])
            with job:
                for rank, (code, _, message) in {**job.results(), **root.results()}.items():
                    assert code == SUCCESS, f"rank {rank}: {code}: {message}"
                job.finish()
                root.finish()
    with capsys.disabled():
        print(f"\n[{count} idle, {count} slow, {count} garbage connections, made {sum(flood.made.values())} times: "
              f"joined in {took:.2f} s, alone in {alone:.2f} s]")
    # The figure that counts is the one on an idle machine; beside other work both numbers grow.
    assert took < 3 * PATIENCE + 4 * alone, f"{took:.2f} s, alone {alone:.2f} s"
