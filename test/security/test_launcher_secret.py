"""Across hosts without RONDO_SECRET: Open MPI's key is the secret, else the line in ~/.rondo/secret; without either the job is
refused, and says why."""
import os
import re
import subprocess

import pytest
from harness import BOOTSTRAP, SUCCESS, environment, program, run
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
    script = ("all=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '); case \"$all\" in *\"$OMPI_MCA_orte_precondition_transports\"*) echo 1;; *) echo 0;; esac; "
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
                                 timeout=90, env=environment(60, UCX_TLS="tcp", RONDO_SECRET="", RONDO_CONNECT_TIMEOUT=5, HOME=tmp_path,
                                                             RONDO_ROOT=f"{hosts.address(0)}:5555"))
    assert process.returncode != 0, process.stdout
    assert "RONDO_SECRET" in process.stdout, process.stdout


def homes(tmp_path, *secrets, mode=0o600):
    """A home folder for each rank with the secret in it, as job()'s each."""
    for rank, secret in enumerate(secrets):
        path = tmp_path / f"{rank}" / ".rondo" / "secret"
        path.parent.mkdir(parents=True)
        path.write_text(secret)
        path.chmod(mode)
    return lambda rank: {"HOME": str(tmp_path / f"{rank}")}


def serve(hosts, **extra):
    return hosts.job([0, 1], program("faults"), "--scenario", "serve", "--seconds", 1, RONDO_SECRET="", seconds=30,
                     RONDO_CONNECT_TIMEOUT=8, **extra)


@pytest.mark.parametrize("secret", ["0123456789abcdef0123456789abcdef\n", 256 * "x"])
def test_the_users_file_gives_the_secret(tmp_path, secret):
    with Hosts(2) as hosts, serve(hosts, each=homes(tmp_path, secret, secret)) as job:
        for code, _, message in job.results().values():
            assert code == SUCCESS, message
        job.finish()


def test_users_files_that_differ(tmp_path):
    """The rank that is refused names the file that its secret is from."""
    with Hosts(2) as hosts, serve(hosts, each=homes(tmp_path, 32 * "a", 32 * "b")) as job:
        results = job.results()
        assert results[0][0] == BOOTSTRAP and results[1][0] == BOOTSTRAP, job.output()
        assert "RONDO_SECRET must be the same" in results[1][2] and str(tmp_path / "1/.rondo/secret") in results[1][2]


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604])
def test_a_users_file_that_is_not_the_users_alone(tmp_path, mode):
    with Hosts(2) as hosts, serve(hosts, each=homes(tmp_path, 32 * "a", 32 * "a", mode=mode)) as job:
        for rank, (code, _, message) in job.results().items():
            assert code == BOOTSTRAP and f"{tmp_path}/{rank}/.rondo/secret is not used" in message, message
            assert f"mode {mode:03o}" in message and "chmod 600" in message, message


def test_another_users_file(tmp_path):
    each = homes(tmp_path, 32 * "a", 32 * "a")
    for rank in range(2):
        os.chown(tmp_path / f"{rank}/.rondo/secret", 65534, 65534)
    with Hosts(2) as hosts, serve(hosts, each=each) as job:
        for code, _, message in job.results().values():
            assert code == BOOTSTRAP and "belongs to user 65534" in message, message


@pytest.mark.parametrize("secret", ["", "short\n", 257 * "x", 32 * "a" + "\n" + 32 * "b", "a" * 20 + "\0" + "a" * 20])
def test_a_users_file_that_holds_no_secret(tmp_path, secret):
    with Hosts(2) as hosts, serve(hosts, each=homes(tmp_path, secret, secret)) as job:
        for code, _, message in job.results().values():
            assert code == BOOTSTRAP and "it must be one line of 16 to 256 bytes" in message, message


def launched(home):
    """Ranks that Hydra has started, which gives no key."""
    return lambda rank: {"RONDO_RANK": "", "RONDO_SIZE": "", "PMI_RANK": str(rank), "PMI_SIZE": "2", "HOME": str(home(rank))}


def test_a_launched_job_makes_the_users_file(tmp_path):
    """Both ranks find none at about the same time; one of them is first, and later jobs find what it has made."""
    secrets = []
    for _ in range(2):
        with Hosts(2) as hosts, serve(hosts, each=launched(lambda rank: tmp_path)) as job:
            for code, _, message in job.results().values():
                assert code == SUCCESS, message
            job.finish()
        folder = tmp_path / ".rondo"
        assert [path.name for path in folder.iterdir()] == ["secret"], "a draft was left behind"
        assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "secret").stat().st_mode & 0o777 == 0o600
        secrets.append((folder / "secret").read_text())
    assert secrets[0] == secrets[1] and re.fullmatch(r"[0-9a-f]{32}\n", secrets[0]), secrets


def test_a_launched_job_with_two_homes(tmp_path):
    """Each rank makes a secret of its own, and they do not meet."""
    for rank in range(2):
        (tmp_path / f"{rank}").mkdir()
    with Hosts(2) as hosts, serve(hosts, each=launched(lambda rank: tmp_path / f"{rank}")) as job:
        results = job.results()
        assert results[1][0] == BOOTSTRAP and str(tmp_path / "1/.rondo/secret") in results[1][2], job.output()


def test_a_launched_job_without_a_home(tmp_path):
    with Hosts(2) as hosts, serve(hosts, each=launched(lambda rank: tmp_path / "nowhere")) as job:
        for code, _, message in job.results().values():
            assert code == BOOTSTRAP and "export RONDO_SECRET=" in message, message


def test_without_a_launchers_key(tmp_path):
    with Hosts(2) as hosts, hosts.job([0, 1], program("faults"), "--scenario", "serve", RONDO_SECRET="", seconds=30,
                                      PMI_RANK="0", PMI_SIZE="2", HOME=tmp_path) as job:
        for code, _, message in job.results().values():
            assert code == BOOTSTRAP and "export RONDO_SECRET=" in message and "~/.rondo/secret" in message, message
