"""Jobs of many processes: every collective is exact, and a rank costs hardly more than one of a small job."""
import pytest
import scale


def test_more_ranks_than_are_composed():
    """Beyond 64 a rank builds its own part of a ring alone."""
    rows = scale.run(96, 5, 120)
    assert [row["rank"] for row in rows] == list(range(96))


@pytest.mark.slow
def test_a_thousand_ranks():
    small, large = scale.run(128, 5, 120), scale.run(1024, 5, 900)
    most = [max(row["peak KiB"] for row in rows) for rows in (small, large)]
    assert most[1] < 8 * most[0], most
