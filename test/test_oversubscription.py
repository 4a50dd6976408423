"""Thousands of operations at once, each in a lane of its own, started in opposite orders."""
import pytest
from harness import program, run


@pytest.mark.parametrize("ranks", [2, 3])
def test_opposite_orders(ranks):
    run(program("oversubscription"), "--ranks", ranks, "--operations", 9000)
