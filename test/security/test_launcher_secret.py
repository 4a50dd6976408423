"""Across hosts without RONDO_SECRET: Open MPI's key is the secret; without such a key the job is refused, and says why."""
import re
import subprocess

import pytest
from harness import BOOTSTRAP, environment, program, run
from namespaces import Hosts

BENCH = ["bench", "allreduce", "-b", "8", "-e", "1M", "-f", "16", "-c", "-n", "5", "-w", "1", "--device", "host"]


def test_open_mpi_gives_the_secret(tmp_path):
    with Hosts(2) as hosts:
        output = run(*hosts.mpirun(tmp_path, 2), program("rondo"), *BENCH, UCX_TLS="tcp", RONDO_SECRET="",
                     RONDO_ROOT=f"{hosts.address(0)}:5555", seconds=90)
        rows = [line.split() for line in output.splitlines() if re.match(r" +\d", line)]
        assert len(rows) >= 5 and all(row[8] == "0" for row in rows), output


def test_the_key_is_not_public(tmp_path):
    """No command line, which any user may read, has Open MPI's key; only the ranks' environments do, which others cannot."""
    script = ("all=$(cat /proc/[0-9]*/cmdline | tr '\\0' ' '); case \"$all\" in *\"$OMPI_MCA_orte_precondition_transports\"*) echo 1;; *) echo 0;; esac; "
              "stat -c %a /proc/self/environ; echo \"key $OMPI_MCA_orte_precondition_transports\"")
    with Hosts(2) as hosts:
        output = run(*hosts.mpirun(tmp_path, 1), "sh", "-c", script, RONDO_SECRET="")
    keys = re.findall(r"^key (\w{16}-\w{16})$", output, re.MULTILINE)
    assert len(keys) == 2 and keys[0] == keys[1], output
    assert re.findall(r"^(\d)$", output, re.MULTILINE) == ["0", "0"], output
    assert output.count("400") >= 2, output


@pytest.mark.parametrize("key", ["0123456789abcdef-0123456789abcdef", "1234", ""])
def test_another_key_is_refused(key, tmp_path):
    """A rank that does not have the job's key is no rank of it; what can be guessed is no key."""
    wrapper = f'test "$OMPI_COMM_WORLD_RANK" = 0 || export OMPI_MCA_orte_precondition_transports={key}; exec "$@"'
    with Hosts(2) as hosts:
        command = [*hosts.mpirun(tmp_path, 1), "sh", "-c", wrapper, "sh", program("rondo"), *BENCH]
        process = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 timeout=90, env=environment(60, UCX_TLS="tcp", RONDO_SECRET="", RONDO_CONNECT_TIMEOUT=5,
                                                             RONDO_ROOT=f"{hosts.address(0)}:5555"))
    assert process.returncode != 0, process.stdout
    assert "RONDO_SECRET" in process.stdout, process.stdout


def test_without_a_launchers_key():
    with Hosts(2) as hosts, hosts.job([0, 1], program("faults"), "--scenario", "serve", RONDO_SECRET="", seconds=30,
                                      PMI_RANK="0", PMI_SIZE="2") as job:
        for code, _, message in job.results().values():
            assert code == BOOTSTRAP and "export RONDO_SECRET=" in message, message
