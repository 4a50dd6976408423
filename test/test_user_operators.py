"""Operators and types of the user (rondo_op_create, rondo_type_create), commutative and not."""
import pytest
from harness import Job, program, run


@pytest.mark.parametrize("ranks", range(1, 10))
def test_every_collective(ranks):
    run(program("user_operators"), "--ranks", ranks, "--seed", ranks)


@pytest.mark.parametrize("algorithm", ["twoshot", "direct", "recursive-doubling", "ring", "multicast-twoshot", "doubling", "chain"])
def test_by_name(algorithm):
    """A named algorithm runs what it keeps the order of, and others run the rest."""
    run(program("user_operators"), "--ranks", 4, "--rounds", 24, RONDO_ALGORITHM=algorithm)


@pytest.mark.parametrize("variables", [{"RONDO_SLOT_BYTES": "16384"}, {"RONDO_PROTOCOL": "ll"}, {"RONDO_CHECK": "1"},
                                       {"RONDO_SPIN": "fixed", "RONDO_SPIN_INITIAL": "1", "RONDO_BLOCKS": "3"}], ids=str)
def test_settings(variables):
    """Slots of one element, of flags; compared calls; preempted at each wait."""
    run(program("user_operators"), "--ranks", 3, "--seed", 5, **variables)


@pytest.mark.parametrize("places", ["000", "011", "01234"])
def test_processes(places):
    """Ranks as processes of one host and of several, whose slots come over a network, aligned to nothing."""
    with Job(len(places), program("user_operators"), "--ranks", 0, "--rounds", 20, "--seed", len(places), UCX_TLS="tcp",
             each=lambda rank: {"RONDO_HOSTID": f"host{places[rank]}"}) as job:
        job.finish()
        assert "0 failures" in job.output()
