"""What a profiler for NVTX sees of a rank: each operation from its start to its completion."""
import collections
import shlex
import subprocess
from pathlib import Path

import pytest
from harness import BUILD, SANITIZED, program, run

DETECTED = shlex.split((BUILD / "detected").read_text())


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    """A profiler that writes down what it is told."""
    if "-DRONDO_WITH_NVTX=1" not in DETECTED:
        pytest.skip("built without nvtx3's header")
    library = tmp_path_factory.mktemp("profiler") / "tool.so"
    at = DETECTED.index("-isystem") if "-isystem" in DETECTED else len(DETECTED)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", *DETECTED[at:at + 2], "-o", library,
                    Path(__file__).parent / "profiler/tool.c"], check=True)
    return library


def lines_of(path):
    return [line.split() for line in path.read_text().splitlines()]


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' libraries would have to come before the tool")
@pytest.mark.parametrize("blocks, count", [(1, 4), (2, 1 << 16)])
def test_every_operation_is_a_range(tool, tmp_path, blocks, count):
    """Executed at once by the calling thread, and by a daemon of several blocks."""
    output = tmp_path / "said"
    run(program("rondo"), "bench", "allreduce", "--ranks", 2, "--min", 4 * count, "--max", 4 * count, "--iterations", 20, "--warmup", 2,
        NVTX_INJECTION64_PATH=tool, PROFILER_OUTPUT=output, RONDO_BLOCKS=blocks)
    said = lines_of(output)
    assert {" ".join(line[1:]) for line in said if line[0] == "domain"} == {"rondo rank 0", "rondo rank 1"}, said[:9]
    begun = {line[3]: line for line in said if line[0] == "begin"}
    ended = collections.Counter(line[1] for line in said if line[0] == "end")
    assert set(ended) == set(begun) and set(ended.values()) == {1}, (set(begun) ^ set(ended), said[-20:])
    reduces = [line for line in begun.values() if line[1] == "allreduce" and line[2] == str(4 * count)]
    assert len(reduces) >= 40, collections.Counter(line[1] for line in begun.values())


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' libraries would have to come before the tool")
def test_failed_operations_end_their_ranges(tool, tmp_path):
    output = tmp_path / "said"
    run(program("lifecycle"), "--ranks", 3, "--scenario", "failures", NVTX_INJECTION64_PATH=tool, PROFILER_OUTPUT=output, RONDO_BLOCKS=2)
    said = lines_of(output)
    assert sorted(line[3] for line in said if line[0] == "begin") == sorted(line[1] for line in said if line[0] == "end")
    assert len(said) > 3 * 400 * 4
