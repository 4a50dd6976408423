"""Without a secret only the same user of the same host takes part: another user's rank is refused, and another user's root."""
import socket
import time

import pytest
from harness import BOOTSTRAP, SUCCESS, Job, free_port, program

from peers import REFUSED, as_other_user, claim_rank, connect_tcp, listens, python, unix_listeners


def serving(size, port, *, only=None, seconds=1, **extra):
    return Job(size, program("faults"), "--scenario", "serve", "--seconds", seconds, only=only, seconds=40,
               root=f"127.0.0.1:{port}", **extra)


def all_well(job):
    for rank, (code, _, message) in job.results().items():
        assert code == SUCCESS, f"rank {rank}: {code}: {message}\n{job.output()}"
    job.finish()


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_another_users_rank_is_refused():
    """It learns how to set a secret, at once, and the rightful rank still joins."""
    port = free_port()
    with serving(2, port, only=[0]) as job:
        wait_until(lambda: listens(port))
        with serving(2, port, only=[1], prefix=lambda rank: as_other_user()) as other:
            code, _, message = other.results()[1]
            assert code == BOOTSTRAP, message
            assert "export RONDO_SECRET=" in message and "another user" in message, message
        with serving(2, port, only=[1]) as rightful:
            all_well(rightful)
            all_well(job)


PROVE_NOTHING = """
    import socket, sys
    from peers import claim_rank, connect_tcp
    port, names = int(sys.argv[1]), sys.argv[2:]
    print(claim_rank(connect_tcp(port), 1, 2), flush=True)
    for name in names:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect("\\0" + name)
            try:
                print(claim_rank(peer, 1, 2), flush=True)
            except OSError:
                print("closed", flush=True)
"""


def test_another_user_proves_the_empty_secret():
    """What an attacker writes by itself: the handshake with an empty secret, on TCP and on the root's Unix socket."""
    port = free_port()
    with serving(2, port, only=[0]) as job:
        wait_until(lambda: listens(port))
        names = [name[1:] for name in unix_listeners([job.ranks[0].process.pid])]
        assert names
        with python(PROVE_NOTHING, port, *names, other_user=True) as attacker:
            lines = attacker.stdout.read().split()
        assert attacker.returncode == 0
        assert lines == [str(REFUSED)] + ["closed"] * len(names)
        with serving(2, port, only=[1]) as rightful:
            all_well(rightful)
            all_well(job)


def test_ranks_of_a_job_admit_no_other_user():
    """The sockets by which ranks that have formed a job reach each other."""
    port = free_port()
    with serving(2, port, seconds=5) as job:
        job.wait_for("READY")
        names = [name[1:] for name in unix_listeners([rank.process.pid for rank in job.ranks.values()]) if "rondo-link" in name]
        assert len(names) == 2
        with python(PROVE_NOTHING, port, *names, other_user=True) as attacker:
            lines = attacker.stdout.read().split()
        assert attacker.returncode == 0
        assert lines == [str(REFUSED)] + ["closed"] * len(names)
        all_well(job)


def test_tcp_proves_nothing_to_the_same_user_either():
    """A process that reaches the port from elsewhere (a forwarded port) looks like a local one: TCP takes part in nothing."""
    port = free_port()
    with serving(2, port, only=[0]) as job:
        wait_until(lambda: listens(port))
        with connect_tcp(port) as peer:
            assert claim_rank(peer, 1, 2) == REFUSED
        with serving(2, port, only=[1]) as rightful:
            all_well(rightful)
            all_well(job)


ASK = """
    import socket, struct, sys
    for name in sys.argv[1:]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(5)
            try:
                peer.connect("\\0" + name)
            except OSError:
                continue  # another kind of socket
            try:
                peer.send(struct.pack("<Q16x", 1))
                print("answer" if peer.recv(64) else "closed", flush=True)
            except ConnectionError:
                print("closed", flush=True)
"""


@pytest.mark.parametrize("other_user, reaction", [(False, "answer"), (True, "closed")])
def test_another_user_asks_for_descriptors(other_user, reaction):
    """The sockets by which ranks pass shared memory answer this user's question (there is no such number), and no other's."""
    port = free_port()
    with serving(2, port, seconds=3) as job:
        job.wait_for("READY")
        names = [name[1:] for name in unix_listeners([rank.process.pid for rank in job.ranks.values()])]
        with python(ASK, *names, other_user=other_user) as attacker:
            lines = attacker.stdout.read().split()
        assert lines and set(lines) == {reaction}, lines
        all_well(job)


FALSE_ROOT = """
    import socket, sys
    from peers import play_root
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print("listens", flush=True)
    while True:
        peer, _ = listener.accept()
        try:
            print("proven" if play_root(peer) else "unproven", flush=True)
        except OSError:
            pass
"""


@pytest.mark.parametrize("other_user", [False, True])
def test_an_impostor_root_is_refused(other_user):
    """What holds the port first welcomes a rank by the empty secret: the rank neither proves anything to it nor joins it."""
    port = free_port()
    with python(FALSE_ROOT, port, other_user=other_user) as impostor:
        try:
            assert impostor.stdout.readline() == "listens\n"
            with serving(2, port, only=[1], RONDO_CONNECT_TIMEOUT=5) as job:
                code, _, message = job.results()[1]
                assert code == BOOTSTRAP, message
                assert "RONDO_SECRET" in message, message
            assert impostor.stdout.readline() == "unproven\n"
        finally:
            impostor.kill()


def test_another_users_whole_job_is_not_joined():
    port = free_port()
    with serving(2, port, only=[0], prefix=lambda rank: as_other_user()) as other:
        wait_until(lambda: listens(port))
        with serving(2, port, only=[1]) as job:
            code, seconds, message = job.results()[1]
            assert code == BOOTSTRAP and "export RONDO_SECRET=" in message, message
            assert seconds < 20, "it must not wait for the whole connect timeout"
        with serving(2, port, only=[1], prefix=lambda rank: as_other_user()) as rightful:
            all_well(rightful)
            all_well(other)


HOLD_NAMES = """
    import socket, sys, time
    held = []
    for name in sys.argv[1:]:
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].bind("\\0" + name)
        held[-1].listen()
    print("listens", flush=True)
    time.sleep(60)
"""


def test_another_user_holds_the_unix_sockets_name():
    """Rank 0 takes the next name, and the others find it."""
    port = free_port()
    with serving(2, port, only=[0]) as probe:
        wait_until(lambda: listens(port))
        names = [name[1:] for name in unix_listeners([probe.ranks[0].process.pid]) if name.endswith("-0")]
    assert len(names) == 1
    with python(HOLD_NAMES, *names, names[0][:-1] + "1", other_user=True) as squatter:
        try:
            assert squatter.stdout.readline() == "listens\n"
            with serving(3, port) as job:
                all_well(job)
        finally:
            squatter.kill()


def test_one_port_by_several_names():
    port = free_port()
    roots = ["127.0.0.1", "localhost", "[::1]"] if socket.has_ipv6 else ["127.0.0.1", "localhost"]
    with serving(len(roots), port, each=lambda rank: {"RONDO_ROOT": f"{roots[rank]}:{port}"}) as job:
        all_well(job)


LOOK = """
    import socket, sys
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        peer.connect("\\0" + sys.argv[1])
        try:
            peer.sendall(b"job\\n")
            print("told", repr(peer.recv(1000)), flush=True)
        except OSError:
            print("closed", flush=True)
"""


@pytest.mark.parametrize("other", [False, True])
def test_another_user_learns_nothing(other):
    """Of what a rank does, by the socket at which `rondo top` asks."""
    with serving(1, free_port(), seconds=3) as job:
        names = []
        wait_until(lambda: names.extend(name for name in unix_listeners([job.ranks[0].process.pid]) if "inspection" in name) or names)
        asking = python(LOOK, names[0].lstrip("\0"), other_user=other)
        said, _ = asking.communicate(timeout=60)
        assert ("closed" in said or "told b''" in said) if other else '"size": 1' in said, said
        all_well(job)
