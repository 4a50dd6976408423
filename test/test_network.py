"""Ranks on several hosts: namespaces joined by a switch, and ranks of one host that count as several (RONDO_HOSTID)."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from harness import ARGUMENT, BOOTSTRAP, BUILD, PATIENCE, PEER, ROOT, SANITIZED, SUCCESS, TIMEOUT, TRANSPORT, Job, built_with, program, run
from namespaces import Hosts

SMALL = ["--types", "float,int8", "--ops", "sum,max", "--counts", "0,3,1000,4099"]
FEW = ["--types", "float", "--ops", "sum", "--counts", "0,1000,20001"] # for nine processes and more on two cores
TOGETHER = ["--threads", 2, "--iterations", 3, "--persistent", 4]
LIMIT = 10 * PATIENCE  # seconds from a fault to its error


def pretend(places):
    return lambda rank: {"RONDO_HOSTID": f"host{places[rank]}"}


def on_one_host(places, name, *options, **extra):
    extra.setdefault("UCX_TLS", "tcp")
    with Job(len(places), program(name), "--ranks", 0, *options, each=pretend(places), **extra) as job:
        job.finish()
        return job.output()


# ---- everything the shared-memory transport does, over a network ----

def shapes(what, *several, slow=()):
    """Parameters of tests with `what` and `places`: each program on each shape; the matrix on those of slow only in `make test-all`."""
    return pytest.mark.parametrize("what, places", [
        pytest.param(name, places, id=f"{name}-{''.join(map(str, places))}", marks=[pytest.mark.slow] if name == "matrix" and places in slow else [])
        for name in what for places in several])


@shapes(["matrix", "mix", "p2p"], [0, 1], [0, 1, 2], [0, 0, 1, 1], [0, 1, 0, 1, 0], [0, 1, 2, 3, 4, 5, 6, 7, 8], slow=[[0, 1, 2, 3, 4, 5, 6, 7, 8]])
def test_pretended_hosts(what, places):
    options = {"matrix": SMALL if len(places) < 9 else FEW, "mix": [*TOGETHER, "--seed", len(places)], "p2p": []}[what]
    output = on_one_host(places, what, *options)
    assert "0 failures" in output


@pytest.mark.parametrize("which, compressed", [("world", "world"), ("hosts", "world copy"), ("all", "world copy host")])
def test_compressed_communicators(which, compressed):
    """The world, a copy of it, and the communicator of the two ranks of the first host."""
    output = on_one_host([0, 0, 1], "compress", "--environment", 1, RONDO_COMPRESS=6, RONDO_COMPRESS_MIN=0, RONDO_COMPRESS_COMMUNICATORS=which)
    assert f"[0] compressed: {compressed}\n" in output


@pytest.mark.parametrize("what", ["matrix", "mix", "p2p"])
def test_a_network_within_a_host(what):
    """If ucx is the only transport, it also serves ranks of one host."""
    options = {"matrix": SMALL, "mix": [*TOGETHER, "--seed", 3], "p2p": []}[what]
    on_one_host([0, 0, 0], what, *options, RONDO_TRANSPORTS="ucx")


def test_without_preemption():
    """Without preemption a thread that waits in an operation moves no data meanwhile."""
    on_one_host([0, 1, 1], "matrix", "--collectives", "allreduce,bcast", *SMALL, RONDO_PREEMPT=0)


@pytest.mark.slow
@pytest.mark.parametrize("collective", ["allreduce", "reduce_scatter_block", "alltoallv", "exscan", "allgatherv", "gatherv", "scatterv", "reduce_scatter",
                                        "alltoallw"])
def test_whole_matrix_over_a_network(collective):
    on_one_host([0, 1, 1], "matrix", "--collectives", collective)


def test_large_counts_over_a_network():
    on_one_host([0, 1, 0], "matrix", "--counts", "70001", "--types", "float,int64", "--ops", "sum")


@pytest.mark.parametrize("places", [[0, 0, 1, 1], pytest.param([0, 1, 0, 1, 0, 1], marks=pytest.mark.slow), [0, 0, 1, 1, 2, 2], [h // 2 for h in range(12)]],
                         ids=lambda places: "".join(map(str, places)))
def test_hierarchical_programs(places):
    """The hierarchical programs work between more hosts than a connector has slots, too."""
    some = FEW if len(places) > 6 else ["--types", "int8,float", "--ops", "sum,avg", "--counts", "0,1,17,4099,20001"]
    output = on_one_host(places, "matrix", "--collectives", "allreduce,reduce_scatter_block,allgather,bcast,alltoall", *some,
                         RONDO_ALGORITHM="hierarchical", RONDO_LOG="debug", seconds=120)
    for collective in ("allreduce", "reduce_scatter_block", "allgather", "bcast", "alltoall"):
        assert re.search(f"{collective}, .*algorithm hierarchical", output), collective


def test_hierarchical_programs_need_such_hosts():
    """Where hosts have different numbers of ranks, the selector chooses another algorithm."""
    output = on_one_host([0, 0, 1], "matrix", "--collectives", "allreduce", *SMALL, RONDO_ALGORITHM="hierarchical",
                         RONDO_LOG="debug")
    assert "algorithm hierarchical" not in output


def test_tiny_slots_and_budgets():
    """Every slot needs its credit, and nearly every wait is preempted."""
    on_one_host([0, 1, 2], "mix", *TOGETHER, "--seed", 11, "--spin", 1, RONDO_SLOT_BYTES=256)


@shapes(["matrix", "mix", "p2p"], [0, 1], [0, 1, 1], slow=[[0, 1]])
def test_slots_apart(what, places):
    """Slots apart from their counters, as with slots in a GPU's memory: the proxy shows the device what has arrived."""
    options = {"matrix": SMALL, "mix": [*TOGETHER, "--seed", 5], "p2p": []}[what]
    on_one_host(places, what, *options, RONDO_GPUDIRECT="apart")


def test_tiny_slots_apart():
    on_one_host([0, 1, 2], "mix", *TOGETHER, "--seed", 12, "--spin", 1, RONDO_SLOT_BYTES=256, RONDO_GPUDIRECT="apart")


@pytest.mark.parametrize("what", ["matrix", "mix", "p2p"])
def test_several_proxies(what):
    """Ranks with one, two and three proxy threads; each side of a connector belongs to one thread of its rank."""
    def each(rank):
        return {**pretend([0, 1, 2])(rank), "RONDO_PROXY_THREADS": str(1 + rank)}

    options = {"matrix": SMALL, "mix": [*TOGETHER, "--seed", 6], "p2p": []}[what]
    with Job(3, program(what), "--ranks", 0, *options, each=each, UCX_TLS="tcp", RONDO_LOG="debug") as job:
        job.finish()
        dealt = re.findall(r"rank (\d) .*\bproxy (\d) works a connector", job.output())
    assert set(dealt) == {(str(rank), str(proxy)) for rank in range(3) for proxy in range(1 + rank)}


@pytest.mark.parametrize("variables", [{}, {"RONDO_PROXY_THREADS": 3}, {"RONDO_GPUDIRECT": "apart"}, {"RONDO_PREEMPT": 0}],
                         ids=lambda variables: "-".join(variables) or "plain")
def test_idle(variables):
    """While nothing moves no core is used, and arriving data wakes a rank whose threads all sleep."""
    output = on_one_host([0, 1, 2], "idle", **variables)
    assert "woken in" in output


def test_ucx_alone():
    """The measurement that docs/guide/networks.md compares with runs."""
    output = run(BUILD / "ucx-exchange", "--workers", 2, "--seconds", 0.1, UCX_TLS="tcp")
    assert len(re.findall(r"2 workers .* [0-9.]+ GB/s", output)) == 2, output


def test_ucx_with_staging_copies():
    """Without a GPU or without CUDA it says so; the staging copies cannot be left out."""
    tool, hidden = BUILD / "ucx-exchange", {**os.environ, "UCX_TLS": "tcp", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([tool, "--staging", "--seconds", "0.1"], capture_output=True, text=True, timeout=60, env=hidden)
    assert done.returncode == 1 and ("pinned memory: " in done.stderr or "without CUDA" in done.stderr), done
    done = subprocess.run([tool, "--staging", "--leave"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "[--leave | --staging]" in done.stderr, done


@pytest.mark.parametrize("threads", ["-1", "9", "many"])
def test_impossible_numbers_of_proxies(threads):
    with Job(2, program("faults"), "--scenario", "blocking", seconds=20, each=pretend([0, 1]), UCX_TLS="tcp",
             RONDO_PROXY_THREADS=threads) as job:
        for rank, (code, _, message) in job.results().items():
            assert code in (ARGUMENT, PEER), f"rank {rank}: {code}: {message}"
        assert "RONDO_PROXY_THREADS" in job.output() and threads in job.output()
        job.finish()


@pytest.mark.parametrize("order, proxies", [("fifo", 1), ("priority", 1), ("fifo", 2)])
def test_stress_in_random_order(order, proxies):
    """The papers' deadlock program, with device synchronizations, between hosts."""
    with Job(4, program("rondo"), "stress", "--device", "host", "--collectives", 6, "--iterations", 20, "--order", "random",
             "--sync", each=pretend([0, 0, 1, 2]), UCX_TLS="tcp", RONDO_ORDER=order,
             RONDO_PROXY_THREADS=proxies) as job:
        job.finish()


@shapes(["matrix", "mix", "p2p"], [0, 1], [0, 0, 1, 1], [0, 1, 2, 3], slow=[[0, 0, 1, 1]])
def test_namespaces(what, places):
    options = {"matrix": SMALL, "mix": [*TOGETHER, "--seed", len(places)], "p2p": []}[what]
    with Hosts(max(places) + 1) as hosts, hosts.job(places, program(what), "--ranks", 0, *options) as job:
        job.finish()


@pytest.mark.parametrize("places", [[0, 1], [0, 1, 2], [0, 0, 1, 1]], ids=lambda places: "".join(map(str, places)))
def test_buffers_are_free_again(places):
    """With zero-copy sends over a slow link, the data has left before its operation ends."""
    with Hosts(max(places) + 1, rate="400mbit") as hosts, hosts.job(places, program("reuse"), "--ranks", 0) as job:
        job.finish()


@pytest.mark.parametrize("options", [["-d", "float16", "-o", "avg"], ["-d", "double", "-o", "min", "--in-place"],
                                     ["--mode", "nonblocking"], ["--algorithm", "allpairs"], ["--algorithm", "ring"]],
                         ids=lambda options: "-".join(options).replace("--", ""))
def test_two_hosts_exchange_much(options):
    """Slots that are reduced where they arrive, at any alignment, in one step or two, with several tiles."""
    with Hosts(2) as hosts, hosts.job([0, 1], program("rondo"), "bench", "allreduce", "--device", "host", "-b", "200K", "-e", "6M",
                                      "-f", 3, "-c", "-n", 3, "-w", 1, *options) as job:
        job.finish()
        rows = [line.split() for line in job.output().splitlines() if re.search(r" float| double", line)]
        assert len(rows) >= 4 and all("0" in row for row in rows), rows


@pytest.mark.parametrize("setting", ["true", "export UCX_RNDV_THRESH=48k", "export UCX_TCP_RX_SEG_SIZE=64k",
                                     '[ "$RONDO_RANK" = 1 ] || export UCX_RNDV_THRESH=48k'],
                         ids=["eager", "fetched", "pieces", "one-way"])
@pytest.mark.parametrize("least", [32760, 32768])
def test_leads(least, setting):
    """Data with and without a lead before it, in one message, in several, and fetched by UCX, which stores it at the given
    address."""
    with Hosts(2) as hosts, hosts.job([0, 1], "sh", "-c", f'{setting}; exec "$@"', "sh", program("rondo"), "bench", "allreduce",
                                      "--device", "host", "-b", least, "-e", "2200K", "-f", 4, "-c", "-n", 3, "-w", 1) as job:
        job.finish()
        rows = [line.split() for line in job.output().splitlines() if " float" in line]
        assert len(rows) == 4 and all(row[-1] == "0" for row in rows), rows


# ---- what is chosen, and what is refused ----

def test_shared_memory_where_it_reaches():
    """Between ranks of a host no byte goes over the network, as the log shows."""
    output = on_one_host([0, 0, 1], "matrix", "--collectives", "allreduce", *SMALL, RONDO_LOG="debug")
    over = set(re.findall(r"rank (\d) \S* *connector with rank (\d) over (\w+)", output))
    assert ("0", "1", "shm") in over and ("1", "2", "ucx") in over, over
    assert not {("0", "1", "ucx"), ("1", "0", "ucx")} & over, over


def test_no_network_is_loaded_on_one_host():
    output = on_one_host([0, 0], "matrix", "--collectives", "barrier", RONDO_LOG="debug", LD_DEBUG="files")
    assert "libucp" not in output


def test_transports_that_do_not_reach():
    with Job(2, program("faults"), "--scenario", "blocking", seconds=20, each=pretend([0, 1]), RONDO_TRANSPORTS="shm") as job:
        for rank, (code, _, message) in job.results().items():
            assert code == TRANSPORT, f"rank {rank}: {code}: {message}"
            assert "transport" in message and re.search(r"rank \d", message), message
        job.finish()


def test_transports_that_differ():
    def each(rank):
        return {**pretend([0, 1])(rank), "RONDO_TRANSPORTS": ["shm", "shm,ucx"][rank]}

    with Job(2, program("faults"), "--scenario", "blocking", seconds=20, each=each, UCX_TLS="tcp") as job:
        for rank, (code, _, message) in job.results().items():
            assert code == TRANSPORT, f"rank {rank}: {code}: {message}"
        job.finish()


def test_a_device_that_ucx_does_not_have():
    with Job(2, program("faults"), "--scenario", "blocking", seconds=20, each=pretend([0, 1]), UCX_NET_DEVICES="nothing0",
             UCX_TLS="tcp") as job:
        for rank, (code, _, message) in job.results().items():
            assert code in (TRANSPORT, PEER), f"rank {rank}: {code}: {message}"
        assert "UCX_NET_DEVICES" in job.output()
        job.finish()


@pytest.mark.parametrize("choice, why", [("dmabuf", "RONDO_GPUDIRECT=dmabuf is for the memory of GPUs"),
                                         ("peermem", "RONDO_GPUDIRECT=peermem is for the memory of GPUs"),
                                         ("dma-buf", 'RONDO_GPUDIRECT="dma-buf" is not allowed: it must be auto, ')])
def test_slots_where_they_cannot_be(choice, why):
    with Job(2, program("faults"), "--scenario", "blocking", seconds=20, each=pretend([0, 1]), UCX_TLS="tcp",
             RONDO_GPUDIRECT=choice) as job:
        for rank, (code, _, message) in job.results().items():
            assert code in (TRANSPORT, PEER, ARGUMENT), f"rank {rank}: {code}: {message}"
        assert why in job.output()
        job.finish()


# ---- faults ----

def expect_errors(job, ranks, codes=(PEER,), since=None):
    since = time.monotonic() if since is None else since
    for rank, (code, _, message) in job.results(ranks).items():
        assert code in codes, f"rank {rank}: {code}: {message}"
    assert time.monotonic() - since < LIMIT, job.output()


def faults(hosts, places, scenario, *options, **extra):
    return hosts.job(places, program("faults"), "--scenario", scenario, *options, seconds=60, **extra)


@pytest.mark.parametrize("scenario, count", [pytest.param("blocking", 1000, marks=pytest.mark.slow), ("blocking", 1000000), ("persistent", 1000)])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_cable_is_pulled(scenario, count, victim):
    """No message reports it: every rank must detect it, the one behind the cable too."""
    with Hosts(3) as hosts, faults(hosts, [0, 1, 2], scenario, "--count", count) as job:
        job.wait_for("READY")
        time.sleep(0.3)
        hosts.pull(victim)
        expect_errors(job, [0, 1, 2])
        job.finish()


def test_a_nic_goes_down():
    with Hosts(2) as hosts, faults(hosts, [0, 0, 1], "blocking", "--count", 100000) as job:
        job.wait_for("READY")
        time.sleep(0.3)
        hosts.down(1)
        expect_errors(job, [0, 1, 2])
        job.finish()


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's library must be the first that is loaded")
@pytest.mark.parametrize("victim", [0, 1])
def test_a_peer_that_closes_a_connection_at_once(victim, tmp_path):
    """A rank that leaves may close its socket between another's connect() and the first send: UCX must not end that process."""
    library = tmp_path / "closing_peer.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", library, "test/closing_peer.c"],
                   check=True, cwd=ROOT)

    def each(rank):
        return {**pretend([0, 1])(rank), "LD_PRELOAD": str(library) if rank == victim else None}

    with Job(2, program("faults"), "--scenario", "blocking", each=each, UCX_TLS="tcp") as job:
        expect_errors(job, [0, 1])
        job.finish()


@pytest.mark.parametrize("victim", [0, 1])
def test_a_frozen_host(victim):
    with Hosts(3) as hosts, faults(hosts, [0, 1, 2], "blocking") as job:
        job.wait_for("READY")
        time.sleep(0.3)
        job.ranks[victim].process.send_signal(signal.SIGSTOP)
        expect_errors(job, [rank for rank in range(3) if rank != victim])
        job.finish([rank for rank in range(3) if rank != victim])


def test_a_short_freeze_is_no_death():
    with Hosts(2) as hosts, faults(hosts, [0, 1, 1], "serve", "--seconds", 5) as job:
        job.wait_for("READY")
        job.ranks[1].process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        job.ranks[1].process.send_signal(signal.SIGCONT)
        expect_errors(job, [0, 1, 2], (SUCCESS,))
        job.finish()


def test_a_freeze_while_bytes_are_on_their_way():
    """A rank closes a connector whose last bytes the other side does not take for longer than it would take a dead one."""
    with Job(2, program("faults"), "--scenario", "leave", "--count", 16, each=pretend([0, 1]), seconds=30, UCX_TLS="tcp", UCX_RNDV_THRESH=1) as job:
        job.wait_for("READY", [1])
        job.wait_for("SENT", [0])
        time.sleep(5)
        assert "FREED" not in job.output(), job.output()
        job.ranks[1].process.send_signal(signal.SIGCONT)
        expect_errors(job, [0, 1], (SUCCESS,))
        job.finish()


def test_bytes_that_are_never_taken():
    """With RONDO_TIMEOUT a rank waits no longer than that for them, and has lost the other one."""
    with Job(2, program("faults"), "--scenario", "leave", "--count", 16, each=pretend([0, 1]), UCX_TLS="tcp", UCX_RNDV_THRESH=1,
             RONDO_TIMEOUT=3) as job:
        job.wait_for("SENT", [0])
        since = time.monotonic()
        job.wait_for("FREED", [0])
        assert time.monotonic() - since < LIMIT, job.output()
        expect_errors(job, [0])


def test_a_frozen_host_with_a_timeout():
    with Hosts(3) as hosts, faults(hosts, [0, 1, 2], "blocking", RONDO_TIMEOUT=1) as job:
        job.wait_for("READY")
        job.ranks[2].process.send_signal(signal.SIGSTOP)
        expect_errors(job, [0, 1], (TIMEOUT,))
        job.ranks[2].process.kill()
        job.finish([0, 1])


@pytest.mark.parametrize("scenario", ["blocking", "nonblocking", "persistent"])
def test_a_killed_rank(scenario):
    with Hosts(3) as hosts, faults(hosts, [0, 1, 1, 2], scenario, "--count", 100000) as job:
        job.wait_for("READY")
        time.sleep(0.3)
        job.ranks[1].process.send_signal(signal.SIGKILL)
        expect_errors(job, [0, 2, 3])
        job.finish([0, 2, 3])


def tcp_ports(hosts, host, pid):
    """The ports on which the process listens, and its established connections as (local port, peer address, peer port)."""
    text = subprocess.run([*hosts.enter(host), "ss", "-Htanp"], stdout=subprocess.PIPE, text=True, check=True).stdout
    listening, connected = [], []
    for line in text.splitlines():
        if f"pid={pid}," not in line:
            continue
        state, _, _, local, peer = line.split()[:5]
        if state == "LISTEN":
            listening.append(int(local.rsplit(":", 1)[1]))
        elif state == "ESTAB":
            connected.append((int(local.rsplit(":", 1)[1]), peer.rsplit(":", 1)[0], int(peer.rsplit(":", 1)[1])))
    return listening, connected


@pytest.mark.parametrize("side", [1, 2])
@pytest.mark.parametrize("proxies", [1, 2])
def test_a_data_connection_is_cut(proxies, side):
    """It is made again, and the results are right: test/links has more of that."""
    with Hosts(3) as hosts, faults(hosts, [0, 1, 2], "serve", "--seconds", 4, "--count", 300000, RONDO_PROXY_THREADS=proxies,
                                   RONDO_LOG="info") as job:
        job.wait_for("READY")
        time.sleep(0.3)
        other = hosts.address(3 - side)
        _, connected = tcp_ports(hosts, side, job.ranks[side].process.pid)
        cut = [(local, address, port) for local, address, port in connected if address == other]
        assert cut, connected
        for local, address, port in cut:
            subprocess.run([*hosts.enter(side), "ss", "-K", "dst", address, "dport", "=", str(port)], check=True,
                           stdout=subprocess.DEVNULL)
        expect_errors(job, [0, 1, 2], (SUCCESS,), time.monotonic() + 10)
        job.finish()
        assert re.search(r"connection with rank \d carries again", job.output()), job.output()


@pytest.mark.parametrize("what", ["matrix", "mix"])
def test_control_connections_are_cut(what):
    """All of them, again and again, between ranks of one host that meet by TCP and move their data through shared memory: they are
    made again, and nothing is lost. The connections to the root are left, as long as the job forms."""
    options = {"matrix": SMALL, "mix": ["--threads", 2, "--iterations", 20, "--persistent", 4, "--seed", 7]}[what]
    with Hosts(1) as hosts, hosts.job([0, 0, 0], program(what), "--ranks", 0, *options, port=5555) as job:
        cut = 0
        while any(rank.process.poll() is None for rank in job.ranks.values()):
            cut += hosts.cut(0, but=5555)
            time.sleep(0.1)
        job.finish()
        assert cut >= 10, f"{cut} ends of connections were cut"


def test_a_cable_that_is_pulled_for_a_while():
    """For 3 s: no rank dies, and all operations end right."""
    with Hosts(2) as hosts, faults(hosts, [0, 1, 1], "serve", "--seconds", 6, "--count", 100000) as job:
        job.wait_for("READY")
        hosts.pull(1)
        time.sleep(3)
        hosts.plug(1)
        expect_errors(job, [0, 1, 2], (SUCCESS,), time.monotonic() + 10)
        job.finish()


def test_unauthenticated_peers_on_a_data_port():
    """Garbage, silence and half messages on the ports where UCX listens."""
    script = """
import random, socket, sys, time
noise = random.Random(2).randbytes(4096)
held = []
for port in map(int, sys.argv[2:]):
    for data in (b"", b"x", noise[:8], noise[:64], noise, bytes(4096), bytes([255] * 64), b"GET / HTTP/1.1" + noise):
        try:
            peer = socket.create_connection((sys.argv[1], port), timeout=2)
            held.append(peer)
            peer.sendall(data)
            if len(data) > 8:
                peer.close()
        except OSError:
            pass  # UCX also listens on the loopback device, which another host cannot reach
time.sleep(1)
assert held
"""
    with Hosts(3) as hosts, faults(hosts, [0, 1], "serve", "--seconds", 4) as job:
        job.wait_for("READY")
        ports, _ = tcp_ports(hosts, 1, job.ranks[1].process.pid)
        assert ports
        subprocess.run([*hosts.enter(2), sys.executable, "-c", script, hosts.address(1), *map(str, ports)], check=True)
        expect_errors(job, [0, 1], (SUCCESS,))
        job.finish()


@pytest.mark.parametrize("root", ["10.66.99.99:5555", "unreachable.invalid:5555"])
def test_a_root_that_is_not_there(root):
    with Hosts(1) as hosts:
        started = time.monotonic()
        with hosts.job([0, 0], program("faults"), "--scenario", "blocking", only=[1], root=root, seconds=30,
                       RONDO_CONNECT_TIMEOUT=2) as job:
            (code, _, message), = job.results([1]).values()
            assert code == BOOTSTRAP, message
            assert root.split(":")[0] in message, message
            assert time.monotonic() - started < LIMIT
            job.finish([1])


@pytest.mark.parametrize("what, places", [("matrix", [0, 0, 1, 1]), ("mix", [0, 1, 2]), ("p2p", [0, 1, 1, 0, 1])])
def test_roots_of_a_list(what, places):
    """RONDO_ROOT lists an address of each share's first rank's host."""
    options = {"matrix": SMALL, "mix": [*TOGETHER, "--seed", len(places)], "p2p": []}[what]
    with Hosts(max(places) + 1) as hosts:
        roots = ",".join(f"{hosts.address(places[share * len(places) // 2])}:{5555 + share}" for share in range(2))
        with hosts.job(places, program(what), "--ranks", 0, *options, root=roots, RONDO_LOG="debug") as job:
            job.finish()
            said = job.output()
    assert said.count("root: the root of rank ") == 1, said[-4000:]


@pytest.mark.parametrize("left_out", [0, 2])
def test_a_root_of_a_list_that_is_not_there(left_out):
    """Neither the rank that would hold it nor, for the others of its share, the address that the list has for it."""
    with Hosts(2) as hosts:
        places, coming = [0, 0, 1, 1], [rank for rank in range(4) if rank != left_out]
        roots = f"{hosts.address(0)}:5555,{hosts.address(1)}:5556"
        started = time.monotonic()
        with hosts.job(places, program("faults"), "--scenario", "blocking", only=coming, root=roots, seconds=30,
                       RONDO_CONNECT_TIMEOUT=2) as job:
            for code, _, message in job.results(coming).values():
                assert code == BOOTSTRAP, message
                assert re.search(r"could not join the root|did not come", message), message
            assert time.monotonic() - started < LIMIT
            job.finish(coming)


def test_no_answer_at_the_root():
    """The root's address leads to an existing host where no process listens."""
    with Hosts(2) as hosts, hosts.job([0, 1], program("faults"), "--scenario", "blocking", only=[1], seconds=30,
                                      RONDO_CONNECT_TIMEOUT=2) as job:
        (code, _, message), = job.results([1]).values()
        assert code == BOOTSTRAP, message
        job.finish([1])


# ---- launchers ----

def test_open_mpi_across_namespaces(tmp_path):
    with Hosts(2) as hosts:
        output = run(*hosts.mpirun(tmp_path, 2), program("rondo"), "bench", "allreduce", "-b", "8", "-e", "1M", "-f", "16", "-c",
                     "-n", "5", "-w", "1", "--device", "host", UCX_TLS="tcp", RONDO_SECRET="open sesame",
                     RONDO_ROOT=f"{hosts.address(0)}:5555", seconds=90)
        rows = [line.split() for line in output.splitlines() if re.match(r" +\d", line)]
        assert len(rows) >= 5 and all(row[8] == "0" for row in rows), output


def test_open_mpi_across_namespaces_with_nothing_set(tmp_path):
    """The ranks meet by the launcher's key store."""
    if not built_with("PMIX"):
        pytest.skip("built without pmix.h")
    with Hosts(2) as hosts:
        output = run(*hosts.mpirun(tmp_path, 2), "-x", "RONDO_LOG", program("rondo"), "bench", "allreduce", "-b", "8", "-e", "1M", "-f", "16", "-c",
                     "-n", "5", "-w", "1", "--device", "host", UCX_TLS="tcp", RONDO_SECRET="", RONDO_ROOT="", RONDO_LOG="debug", HOME=tmp_path, seconds=90)
        rows = [line.split() for line in output.splitlines() if re.match(r" +\d", line)]
        assert len(rows) >= 5 and all(row[8] == "0" for row in rows), output
        assert output.count("the root's address is that of the launcher's key store") == 4, output
        assert not (tmp_path / ".rondo").exists()
