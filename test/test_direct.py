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


@pytest.mark.parametrize("algorithm", ["direct", "allpairs", "local"])
def test_algorithm_of_the_environment(algorithm):
    """RONDO_ALGORITHM is used where it fits; every other call gets the algorithm that it would have got without."""
    few = ["--types", "float", "--ops", "sum", "--counts", "17,70001"]
    run(program("matrix"), "--ranks", 3, *few, RONDO_ALGORITHM=algorithm)
    run(program("direct"), "--ranks", 3, RONDO_ALGORITHM=algorithm)
    with Job(2, program("matrix"), "--ranks", 0, *few, RONDO_ALGORITHM=algorithm) as job:
        job.finish()
