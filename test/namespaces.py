"""Hosts on one machine: network namespaces, each with one interface on a common switch (a bridge in a namespace of its own)."""
import ctypes
import itertools
import os
import subprocess

import pytest
from harness import Job

_numbers = itertools.count()


def _ip(*words, check=True):
    return subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=check)


def ucx_version():
    """Of the library that ranks load."""
    library = ctypes.CDLL("libucp.so.0")
    library.ucp_get_version_string.restype = ctypes.c_char_p
    return tuple(map(int, library.ucp_get_version_string().decode().split(".")[:2]))


def require():
    """Skips the test, with the reason, where namespaces cannot be created."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    name = f"rondo-try-{os.getpid()}"
    made = _ip("netns", "add", name, check=False)
    if made.returncode != 0:
        pytest.skip(f"no network namespaces here: {made.stdout.strip()}")
    bridge = _ip("-n", name, "link", "add", "switch", "type", "bridge", check=False)
    _ip("netns", "del", name)
    if bridge.returncode != 0:
        pytest.skip(f"no bridges here: {bridge.stdout.strip()}")


class Hosts:
    """count hosts, 10.66.N.1, 10.66.N.2 and so on; a context manager that removes them at its end.

    rate: of each interface, as tc writes it (1gbit); None: unlimited. congestion: TCP's algorithm, where it must be the same on
    all machines. paired: two hosts whose interfaces are the two ends of one cable, without a switch. interfaces: how many each
    of the paired hosts has, net0, net1 and so on, each on a cable and a network of its own.
    """

    def __init__(self, count, rate=None, congestion=None, paired=False, interfaces=1):
        require()
        self.count = count
        self.rate = rate
        self.congestion = congestion
        self.paired = paired
        self.interfaces = interfaces
        self.mark = f"rondo{os.getpid()}n{next(_numbers)}"
        self.nets = [f"10.66.{next(_numbers) % 250}" for _ in range(interfaces)]
        self.net = self.nets[0]
        self.switch = f"{self.mark}-switch"

    def name(self, host):
        return f"{self.mark}-{host}"

    def address(self, host):
        return f"{self.net}.{host + 1}"

    def __enter__(self):
        try:
            if self.paired:
                self._pair()
            else:
                self._switch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _pair(self):
        first, second = self.name(0), self.name(1)
        for name in (first, second):
            _ip("netns", "add", name)
        for interface in range(self.interfaces):
            name = f"net{interface}"
            _ip("link", "add", name, "netns", first, "type", "veth", "peer", "name", name, "netns", second)
        for host in range(self.count):
            self._set_up(host)

    def _switch(self):
        _ip("netns", "add", self.switch)
        _ip("-n", self.switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "switch", "up")
        for host in range(self.count):
            name = self.name(host)
            _ip("netns", "add", name)
            _ip("link", "add", "net0", "netns", name, "type", "veth", "peer", "name", f"port{host}", "netns", self.switch)
            _ip("-n", self.switch, "link", "set", f"port{host}", "master", "switch", "up")
            self._set_up(host)

    def _set_up(self, host):
        name = self.name(host)
        _ip("-n", name, "link", "set", "lo", "up")
        for interface, net in enumerate(self.nets):
            _ip("-n", name, "addr", "add", f"{net}.{host + 1}/24", "dev", f"net{interface}")
            _ip("-n", name, "link", "set", f"net{interface}", "up")
            if self.rate is not None:
                self._limit(name, f"net{interface}")
        if self.congestion is not None:
            _ip("-n", name, "route", "change", f"{self.net}.0/24", "dev", "net0", "src", self.address(host), "congctl",
                self.congestion)
            # The losses of one connection must not slow down those of later jobs.
            subprocess.run([*self.enter(host), "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"], check=True)
        if self.rate is not None and not self.paired:
            self._limit(self.switch, f"port{host}")

    def _limit(self, space, interface):
        subprocess.run(["tc", "-n", space, "qdisc", "add", "dev", interface, "root", "tbf", "rate", self.rate, "burst", "256kb",
                        "latency", "50ms"], check=True)

    def __exit__(self, *_):
        for host in range(self.count):
            _ip("netns", "del", self.name(host), check=False)
        if not self.paired:
            _ip("netns", "del", self.switch, check=False)

    def pull(self, host):
        """Takes down the host's cable at the switch: neither end is told."""
        _ip("-n", self.switch, "link", "set", f"port{host}", "down")

    def plug(self, host):
        """Puts the cable in again."""
        _ip("-n", self.switch, "link", "set", f"port{host}", "up")

    def _sockets(self, host, flags, words):
        """The lines of ss about the open TCP connections on the host to which the words apply."""
        return subprocess.run([*self.enter(host), "ss", flags, "state", "established", f"( {words} )"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout.splitlines()

    def connections(self, host, but):
        """The ends of TCP connections that are open on the host, but those of that port: pairs of addresses with their ports."""
        return {tuple(line.split()[2:4]) for line in self._sockets(host, "-Htn", f"sport != :{but} and dport != :{but}")}

    def cut(self, host, but, among=None):
        """Ends all TCP connections that are open on the host, but those of that port, by a reset at both ends; with `among`, only the
        ends that it has, as `connections` tells them. Returns how many ends."""
        if among is None:
            filters = [f"sport != :{but} and dport != :{but}"]
        else:
            filters = [f"src {local} and dst {peer}" for local, peer in among]
        return sum(len(self._sockets(host, "-HtK", words)) for words in filters)

    def down(self, host):
        """Takes down the host's own interface."""
        _ip("-n", self.name(host), "link", "set", "net0", "down")

    def up(self, host):
        """Takes it up again."""
        _ip("-n", self.name(host), "link", "set", "net0", "up")

    def enter(self, host):
        return ["ip", "netns", "exec", self.name(host)]

    def mpirun(self, folder, slots, *options):
        """The words before a command that Open MPI is to run with so many ranks on each host. It starts them through an agent
        that runs a command on a host, as ssh does; the agent is written to folder."""
        agent = folder / "agent"
        places = " ".join(f"{self.address(host)}) host={self.name(host)} ;;" for host in range(self.count))
        agent.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {places} esac
shift
exec ip netns exec $host unshare --uts sh -c "hostname $host; $*"
""")
        agent.chmod(0o755)
        hosts = ",".join(f"{self.address(host)}:{slots}" for host in range(self.count))
        return [*self.enter(0), "unshare", "--uts", "sh", "-c", f'hostname {self.name(0)}; exec "$@"', "sh", "mpirun.openmpi",
                "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", f"{self.net}.0/24",
                "-n", self.count * slots, "--host", hosts, "-x", "RONDO_ROOT", "-x", "RONDO_SECRET", "-x", "UCX_TLS", *options]

    def job(self, places, *command, port=5555, **extra):
        """A Job whose rank r is on host places[r]; rank 0's host has the rendezvous."""
        extra.setdefault("RONDO_SECRET", "open sesame")
        extra.setdefault("UCX_TLS", "tcp")
        extra.setdefault("root", f"{self.address(places[0])}:{port}")
        extra.setdefault("prefix", lambda rank: self.enter(places[rank]))
        return Job(len(places), *command, **extra)
