"""Direct access to the peers' buffers, and the budget of connector memory, between threads and between processes."""
import pytest
from harness import Job, program, run


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_threads(ranks):
    run(program("direct"), "--ranks", ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes(ranks):
    with Job(ranks, program("direct"), "--ranks", 0) as job:
        job.finish()
