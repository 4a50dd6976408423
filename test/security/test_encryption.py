"""RONDO_ENCRYPT=1 between hosts: what a third party sees of the control plane and of the data, and what it can change."""
import subprocess
import sys
import time

import pytest
from harness import ARGUMENT, BOOTSTRAP, BUILD, PEER, SUCCESS, TRANSPORT, Job, free_port, program
from namespaces import Hosts

TEXT = "in the clear for all who listen, "
HOST_NAMES = ["a-host-that-none-shall-know", "another-host-to-be-kept-quiet"]

SNIFF = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
tap.bind(("net0", 0))
print("listens", flush=True)
with open(sys.argv[1], "wb") as file:
    while True:
        file.write(tap.recv(1 << 17))
        file.flush()
"""

# Replaces calls of the C library in a rank. HARM=data: some bits of the fifth large message to a network flip on their way.
# HARM=library: there is no libsodium.
HARM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int wanted(const char *what) { const char *harm = getenv("HARM"); return harm != NULL && strcmp(harm, what) == 0; }

static int is_network(int fd)
{
    int domain = 0;
    socklen_t bytes = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && (domain == AF_INET || domain == AF_INET6);
}

enum { PLACE = 1024 }; /* of the byte in its message: behind what UCX puts before the data */
static int large;

static char *victim(int fd, void *data, size_t bytes)
{
    return bytes >= 8192 && wanted("data") && is_network(fd) && __atomic_add_fetch(&large, 1, __ATOMIC_RELAXED) == 5 ? (char *) data + PLACE : NULL;
}

#define FLIPPED(type, call, victims)                                                                                           \\
    char *at = victims;                                                                                                        \\
    if (at != NULL)                                                                                                            \\
        *at ^= 4;                                                                                                              \\
    type result = call;                                                                                                        \\
    if (at != NULL) {                                                                                                          \\
        *at ^= 4;                                                                                                              \\
        if (result < 2 * PLACE) /* the rest, which may have the byte, is sent again: the next one then */                      \\
            __atomic_store_n(&large, 4, __ATOMIC_RELAXED);                                                                     \\
    }                                                                                                                          \\
    return result;

static char *victim_of(int fd, const struct iovec *parts, size_t count)
{
    size_t most = 0;
    for (size_t i = 1; i < count; i++)
        if (parts[i].iov_len > parts[most].iov_len)
            most = i;
    return count > 0 ? victim(fd, parts[most].iov_base, parts[most].iov_len) : NULL;
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    if (real == NULL)
        real = (ssize_t (*)(int, const void *, size_t, int)) dlsym(RTLD_NEXT, "send");
    FLIPPED(ssize_t, real(fd, data, bytes, flags), victim(fd, (void *) data, bytes))
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (real == NULL)
        real = (ssize_t (*)(int, const struct msghdr *, int)) dlsym(RTLD_NEXT, "sendmsg");
    FLIPPED(ssize_t, real(fd, message, flags), victim_of(fd, message->msg_iov, message->msg_iovlen))
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);
    if (real == NULL)
        real = (ssize_t (*)(int, const struct iovec *, int)) dlsym(RTLD_NEXT, "writev");
    FLIPPED(ssize_t, real(fd, parts, count), victim_of(fd, parts, (size_t) count))
}

void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    if (real == NULL)
        real = (void *(*)(const char *, int)) dlsym(RTLD_NEXT, "dlopen");
    return real(name != NULL && wanted("library") && strncmp(name, "libsodium", 9) == 0 ? "no-such-library.so" : name, flags);
}
"""


@pytest.fixture(scope="module")
def harmful(tmp_path_factory):
    """A library to preload. Not into a sanitizer's build, whose own must come first."""
    if "asan" in BUILD.name or "tsan" in BUILD.name:
        pytest.skip("the sanitizer must be the first library")
    folder = tmp_path_factory.mktemp("harm")
    (folder / "harm.c").write_text(HARM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", folder / "harm.c", "-o", folder / "harm.so", "-ldl"], check=True)
    return folder / "harm.so"


def secrecy(hosts, encrypt, *options, places=(0, 1), each=None, **extra):
    named = lambda rank: {"RONDO_HOSTID": HOST_NAMES[places[rank]], **(each(rank) if each is not None else {})}
    return hosts.job(list(places), program("secrecy"), "--text", TEXT, *options, seconds=60, each=named, RONDO_ENCRYPT=encrypt,
                     RONDO_TIMEOUT=20, **extra)


def capture(hosts, encrypt, folder, **extra):
    """What passes the first host's interface while a job of three ranks runs, whose results must be right."""
    path = folder / "packets"
    with subprocess.Popen([*hosts.enter(0), sys.executable, "-c", SNIFF, path], stdout=subprocess.PIPE, text=True) as sniffer:
        try:
            assert sniffer.stdout.readline() == "listens\n"
            with secrecy(hosts, encrypt, places=(0, 1, 1), **extra) as job:
                for rank, (code, _, message) in job.results().items():
                    assert code == SUCCESS, f"rank {rank}: {message}"
                job.finish()
            time.sleep(0.3)
        finally:
            sniffer.kill()
    return path.read_bytes()


# eager: a slot is one message. fetched: UCX fetches it from the sender's memory. small: what is copied.
WAYS = {"eager": {}, "fetched": {"UCX_RNDV_THRESH": "1k"}, "small slots": {"RONDO_SLOT_BYTES": "8K"},
        "two proxies": {"RONDO_PROXY_THREADS": "2"}}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_listener_reads(way, tmp_path):
    """Without encryption both the data and the control plane's messages are there to read; with it neither."""
    with Hosts(2) as hosts:
        plain = capture(hosts, 0, tmp_path, **WAYS[way])
        secret = capture(hosts, 1, tmp_path, **WAYS[way])
    assert len(secret) > 1 << 20, "too little was captured"
    for word in (TEXT, HOST_NAMES[1]):
        assert word.encode() in plain, f"'{word}' is not found where it must be"
        assert word.encode() not in secret, f"'{word}' is to be read"


@pytest.mark.parametrize("way", WAYS)
def test_a_flipped_bit_ends_the_connection(way, harmful):
    """Without encryption the data arrive wrong and nothing is noticed; with it the operation fails on all ranks."""
    each = lambda rank: {"LD_PRELOAD": str(harmful), "HARM": "data"} if rank == 0 else {}
    with Hosts(2) as hosts:
        with secrecy(hosts, 0, "--rounds", 20, each=each, **WAYS[way]) as job:
            job.results()
            for rank in job.ranks.values():
                rank.process.wait(20)
            assert "wrong data" in job.output(), "no bit has been flipped\n" + job.output()
        with secrecy(hosts, 1, "--rounds", 20, each=each, **WAYS[way]) as job:
            results = job.results()
            assert "wrong data" not in job.output()
    assert all(code == PEER for code, _, _ in results.values()), results
    assert any("altered" in message for _, _, message in results.values()), results


def test_ranks_that_do_not_agree():
    each = lambda rank: {"RONDO_ENCRYPT": str(rank)}
    with Job(2, program("secrecy"), root=f"127.0.0.1:{free_port()}", each=each, RONDO_SECRET="open sesame",
             RONDO_CONNECT_TIMEOUT=2, seconds=30) as job:
        for rank, (code, _, message) in job.results().items():
            assert code == BOOTSTRAP, message
            assert rank == 0 or "RONDO_ENCRYPT" in message, message


def test_without_the_library(harmful):
    with Job(1, program("secrecy"), each=lambda rank: {"LD_PRELOAD": str(harmful), "HARM": "library"}, RONDO_ENCRYPT=1,
             seconds=30) as job:
        (code, _, message), = job.results().values()
        assert code == ARGUMENT and "RONDO_ENCRYPT" in message, message


def test_networks_that_do_not_encrypt_are_refused():
    with Job(1, program("secrecy"), RONDO_ENCRYPT=1, RONDO_TRANSPORTS="shm,rdma", seconds=30) as job:
        (code, _, message), = job.results().values()
        if "none of that name" in message:
            pytest.skip("the rdma transport is not in this build")
        assert code == TRANSPORT and "RONDO_ENCRYPT" in message, message


@pytest.mark.parametrize("root", ["unix", "tcp", "tcp with a secret"])
def test_on_one_host(root):
    where = None if root == "unix" else f"127.0.0.1:{free_port()}"
    with Job(3, program("secrecy"), "--text", TEXT, root=where, RONDO_ENCRYPT=1, seconds=60,
             RONDO_SECRET="open sesame" if "secret" in root else None) as job:
        for rank, (code, _, message) in job.results().items():
            assert code == SUCCESS, f"rank {rank}: {message}"
        job.finish()
