"""What the tests of this folder share: other users, the control plane's handshake as any program may write it, listening ports."""
import hashlib
import hmac
import os
import socket
import struct
import subprocess
import sys
import textwrap

import pytest

OTHER_USER = 65534
MAGIC, VERSION = b"RONDOctl", 7
CHALLENGE, HELLO, VERDICT = 48, 112, 40
WELCOME, REFUSED = 0, 1


def as_other_user():
    """The words before a command that make it another user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can play another user")
    return ["setpriv", "--reuid", str(OTHER_USER), "--regid", str(OTHER_USER), "--clear-groups"]


def python(code, *arguments, other_user=False):
    """Starts a Python program, whose lines can be read from stdout. It may import this module."""
    command = [*(as_other_user() if other_user else []), sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment)


def prove(secret, label, *said):
    return hmac.new(secret, label + b"\0" + b"".join(said), hashlib.sha256).digest()


def receive(peer, count):
    got = b""
    while len(got) < count:
        more = peer.recv(count - len(got))
        if not more:
            raise ConnectionError(f"{len(got)} of {count} bytes came")
        got += more
    return got


def claim_rank(peer, rank, size, secret=b""):
    """Shakes hands with a root as a rank would. Returns the verdict's code."""
    challenge = receive(peer, CHALLENGE)
    assert challenge.startswith(MAGIC)
    hello = MAGIC + struct.pack("<IIII", VERSION, rank, size, 5000) + os.urandom(16) + os.urandom(32) + struct.pack("<II", 1, 0)
    peer.sendall(hello + prove(secret, b"rondo rank", challenge, hello))
    verdict = receive(peer, VERDICT)
    return struct.unpack_from("<I", verdict)[0]


def play_root(peer, secret=b""):
    """Shakes hands with a rank as a root that welcomes it. Returns whether the rank has proven the secret."""
    challenge = MAGIC + struct.pack("<II", VERSION, 0) + os.urandom(32)
    peer.sendall(challenge)
    hello = receive(peer, HELLO)
    verdict = struct.pack("<II", WELCOME, 0)
    peer.sendall(verdict + prove(secret, b"rondo root", challenge, hello[:80], verdict))
    return hello[80:] == prove(secret, b"rondo rank", challenge, hello[:80])


def listens(port):
    """Whether a process listens on the port, found without a connection."""
    with open("/proc/net/tcp") as table:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in list(table)[1:])


def unix_listeners(pids):
    """Addresses of the Unix sockets on which processes listen, abstract ones included."""
    inodes = set()
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        for descriptor in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{descriptor}")
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    with open("/proc/net/unix") as table:
        for line in list(table)[1:]:
            fields = line.split(None, 7)
            if len(fields) == 8 and fields[6] in inodes and int(fields[3], 16) & 0x10000:
                name = fields[7].rstrip("\n")
                yield "\0" + name[1:] if name.startswith("@") else name


def connect_tcp(port):
    return socket.create_connection(("127.0.0.1", port), timeout=5)
