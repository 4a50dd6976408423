"""Sends and receives, one behaviour for each test."""
import pytest
from harness import program, run

SCENARIOS = ["ordered", "group_ring", "group_all", "group_nonblocking", "group_with_collective", "self", "early", "large",
             "empty", "persistent", "many", "communicators"]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_scenario(scenario, ranks):
    if scenario == "many" and ranks == 1:
        ranks = 3  # one rank only sends to itself, which persistent and self have covered
    run(program("p2p"), "--ranks", ranks, "--scenario", scenario)


@pytest.mark.parametrize("scenario", ["group_ring", "early", "large"])
@pytest.mark.parametrize("direct_write", ["off", "refused", "mixed"])
def test_large_messages_by_slots(scenario, direct_write):
    """Between ranks of one process large messages are direct writes, unless a receiver refuses."""
    run(program("p2p"), "--ranks", 3, "--scenario", scenario, RONDO_DIRECT_WRITE=direct_write)


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_reaches_a_buffer_that_was_given_back(seed):
    """A receive is aborted while its sender stores into its buffer. Without rondo_withdraw_direct_write 10 to 20 of 150 rounds
    fail."""
    run(program("single_copy"), "--ranks", 2, "--scenario", "abandon", "--aborter", 0, "--words", 524288, "--rounds", 150, "--seed", seed)


def test_all_in_one_job():
    run(program("p2p"), "--ranks", 3, "--seed", 2)
