"""Jobs of many processes: every collective is exact, and a rank costs hardly more than one of a small job."""
import pytest
import scale


def test_more_ranks_than_are_composed():
    """Beyond 64 a rank builds its own part of a ring alone."""
    rows = scale.run(96, 5, 120)
    assert [row["rank"] for row in rows] == list(range(96))


@pytest.mark.parametrize("ranks", [2, 3, 12, 33])
def test_simulation_counts_what_ranks_say(ranks):
    """Connections, messages and bytes of each rank until rondo_init has returned; around powers of two, where neighbours coincide."""
    rows = scale.start(ranks, 60)
    assert scale.differences(rows) == ""
    rows[1]["messages"] += 1
    assert scale.differences(rows).startswith(f"rank 1: {rows[1]['made']} made"), "a message more is not noticed"


@pytest.mark.slow
def test_a_hundred_thousand_simulated_ranks():
    """By stated costs, so that it is the protocol that is judged and not the machine; scale.py measures them."""
    job = scale.simulate(100000, message_us=15, root_us=15, byte_ns=5, setup_ms=2)
    assert job["init_s"] < 30 and job["most"]["made"] + job["most"]["accepted"] < 60, job


@pytest.mark.slow
def test_a_thousand_ranks():
    small, large = scale.run(128, 5, 120), scale.run(1024, 5, 900)
    most = [max(row["peak KiB"] for row in rows) for rows in (small, large)]
    assert most[1] < 8 * most[0], most
