"""Bad input is refused with the right code and a message, and ranks that disagree get an error."""
import pytest
from harness import program, run

SCENARIOS = ["pointers", "misaligned", "enumerators", "counts", "roots", "aliasing", "requests", "groups", "attributes",
             "streams", "memory", "alone"]
MISMATCHES = ["count", "type", "op", "rate", "collective", "root", "reduce_root", "barrier", "bcast_count", "scan_alltonext"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_bad_arguments(scenario, ranks):
    run(program("arguments"), "--ranks", ranks, "--scenario", scenario, seconds=30)


def test_bad_configurations():
    run(program("configurations"), seconds=30, RONDO_CONNECT_TIMEOUT=3)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
@pytest.mark.parametrize("scenario", MISMATCHES)
def test_mismatch(scenario, form, ranks):
    run(program("mismatch"), "--ranks", ranks, "--scenario", scenario, "--form", form, seconds=30)


@pytest.mark.parametrize("scenario", ["message_count", "message_type"])
def test_mismatched_message(scenario):
    run(program("mismatch"), "--ranks", 3, "--scenario", scenario, seconds=30)
