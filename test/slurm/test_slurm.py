"""Ranks that Slurm starts: a cluster of our own, whose nodes are network namespaces, with Slurm's daemons and its PMIx server."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import pytest
from harness import PEER, built_with, program, run
from namespaces import Hosts

NODES = 2
DAEMONS = ("munged", "slurmctld", "slurmd", "srun")
pytestmark = pytest.mark.skipif(any(shutil.which(name) is None for name in DAEMONS),
                                reason="Slurm is not installed: make deps FOR=slurm")


def configuration(folder, hosts):
    """Of daemons that run as root in one folder, without control groups, with as many processors a node as a test has ranks."""
    nodes = "\n".join(f"NodeName=n{host} NodeHostname=n{host} NodeAddr={hosts.address(host)} Port=6818 CPUs=8"
                      for host in range(NODES))
    return f"""ClusterName=rondo
SlurmctldHost=n0({hosts.address(0)})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=n[0-{NODES - 1}] Default=YES
"""


def version():
    return tuple(map(int, subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout.split()[1].split(".")[:2]))


class Cluster:
    """hosts: its nodes. As a context, it runs."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rondo-slurm-"))
        self.variables = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = []

    def start(self, host, name, *command):
        inside = [*self.hosts.enter(host), "unshare", "--uts", "sh", "-c", f'hostname n{host}; exec "$@"', "sh", *command]
        log = open(self.folder / f"{name}.log", "w")
        self.daemons.append(subprocess.Popen([str(word) for word in inside], stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, env=self.variables))

    def __enter__(self):
        try:
            for name in ("state", *(f"n{host}" for host in range(NODES))):
                (self.folder / name).mkdir()
            self.folder.chmod(0o755)
            key = self.folder / "key"
            key.write_bytes(os.urandom(1024))
            key.chmod(0o400)
            (self.folder / "slurm.conf").write_text(configuration(self.folder, self.hosts))
            (self.folder / "cgroup.conf").write_text(f"CgroupPlugin={'disabled' if version() >= (23, 11) else 'cgroup/v1'}\n")
            self.start(0, "munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge", f"--key-file={key}",
                       f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/seed")
            deadline = time.monotonic() + 60
            self.await_file("munge", deadline)
            self.start(0, "controller", "slurmctld", "-D")
            for host in range(NODES):
                self.start(host, f"node{host}", "slurmd", "-D", "-N", f"n{host}")
            self.await_nodes(deadline)
        except BaseException:
            self.__exit__()
            raise
        return self

    def await_file(self, name, deadline):
        while not (self.folder / name).exists():
            if time.monotonic() > deadline:
                pytest.fail(f"{name} does not come\n{self.logs()}")
            time.sleep(0.05)

    def await_nodes(self, deadline):
        while True:
            answer = subprocess.run([*self.hosts.enter(0), "sinfo", "-h", "-o", "%D %t"], capture_output=True, text=True,
                                    env=self.variables)
            if answer.stdout.split() == [str(NODES), "idle"]:
                return
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self.daemons):
                pytest.fail(f"the nodes do not come up: {answer.stdout}{answer.stderr}\n{self.logs()}")
            time.sleep(0.2)

    def logs(self):
        return "\n".join(f"{path.name}: {path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words, **extra):
        return run(*self.hosts.enter(0), "srun", "--label", *words, seconds=90, SLURM_CONF=self.folder / "slurm.conf",
                   UCX_TLS="tcp", **extra)


@pytest.fixture(scope="module")
def cluster():
    with Hosts(NODES) as hosts, Cluster(hosts) as made:
        yield made


BENCH = ["bench", "allreduce", "-b", "8", "-e", "1M", "-f", "16", "-c", "-n", "5", "-w", "1", "--device", "host"]


def check(output):
    rows = [line.split() for line in output.splitlines() if re.match(r"\d: +\d", line)]
    assert len(rows) >= 5 and all(row[9] == "0" for row in rows), output


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_nothing_is_set(cluster, tmp_path, distribution):
    """The ranks meet by the key store of Slurm's PMIx server, and read no secret of the user's."""
    if not built_with("PMIX"):
        pytest.skip("built without pmix.h")
    if "pmix" not in cluster.run("--mpi=list").split():
        pytest.skip("this Slurm was built without PMIx")
    output = cluster.run("--mpi=pmix", "-N", NODES, "--ntasks-per-node=2", "-m", distribution, program("rondo"), *BENCH, RONDO_LOG="debug", HOME=tmp_path)
    check(output)
    assert output.count("the root's address is that of the launcher's key store") == 4, output
    assert not (tmp_path / ".rondo").exists()


@pytest.mark.parametrize("roots", [1, 2])
def test_roots_are_named(cluster, tmp_path, roots):
    """Slurm tells ranks and their number; the environment of srun tells the rest."""
    named = ",".join(f"{cluster.hosts.address(host)}:5555" for host in range(roots))
    check(cluster.run("--mpi=none", "-N", NODES, "--ntasks-per-node=2", "-m", "block", program("rondo"), *BENCH, RONDO_ROOT=named,
                      RONDO_SECRET="open sesame", HOME=tmp_path))


def test_a_rank_is_killed(cluster, tmp_path):
    """The others learn of it at once, and end by themselves: Slurm is asked not to kill them."""
    script = 'if [ $SLURM_PROCID = 3 ]; then exec timeout -s KILL 3 "$@"; else exec "$@"; fi'
    output = cluster.run("--kill-on-bad-exit=0", "--mpi=pmix", "-N", NODES, "--ntasks-per-node=2", "sh", "-c", script, "sh",
                         program("faults"), "--scenario", "serve", "--seconds", 60, "--count", 100000, expect=137, HOME=tmp_path)
    told = re.findall(rf"^[012]: RESULT {PEER} ([0-9.]+) .*rank 3 has died", output, re.MULTILINE)
    assert len(told) == 3 and max(map(float, told)) < 15, output
