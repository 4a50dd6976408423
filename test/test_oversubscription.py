"""More than there is room for: thousands of operations at once, each in a lane of its own, started in opposite orders; and ranks that
share processors, so that each one's daemon often quits because another's does not run."""
import re

import pytest
from harness import Job, program, run


@pytest.mark.parametrize("ranks", [2, 3])
def test_opposite_orders(ranks):
    run(program("oversubscription"), "--ranks", ranks, "--operations", 9000)


def milliseconds(ranks, **variables):
    with Job(ranks, program("idle"), "--ranks", 0, "--bytes", 32_000_000, "--rounds", 9, RONDO_TRANSPORT="shm", **variables) as job:
        job.finish()
        return float(re.search(r"bytes in ([0-9.]+) ms while", job.output())[1])


@pytest.mark.parametrize("ranks", [2, 4])
def test_daemons_that_quit(ranks):
    """A daemon that moved something before it quit is restarted at once: it takes some 50 times as long if the pause between two
    daemons goes on to double (lib/submission/queue.c). What else runs on the machine may make one of the two a few times slower."""
    staying = milliseconds(ranks, RONDO_BLOCKS=1, RONDO_QUIT_STUCK=1_000_000)
    quitting = milliseconds(ranks, RONDO_BLOCKS=1, RONDO_QUIT_STUCK=5)
    assert quitting < 20 + 10 * staying
