"""The package python/rondo: every collective of it in every form on ranks that are threads, and its errors."""
import array
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from harness import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitizer's library cannot be loaded by a plain interpreter")

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILD = TREE / os.environ.get("RONDO_X_BUILD", "build")
LIBRARY = BUILD / "librondo.so"

PROGRAM = r'''
import array, sys, threading
import rondo

SIZE = 3
def run(ranks_work):
    ident, errors = rondo.unique_id(), []
    def rank(number):
        try:
            with rondo.Runtime(number, SIZE, ident, timeout=60) as runtime:
                ranks_work(runtime.world, number)
        except BaseException as error:
            errors.append(f"rank {number}: {error!r}")
    threads = [threading.Thread(target=rank, args=(n,)) for n in range(SIZE)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors, errors

def ints(*values): return array.array("i", values)

def all_forms(world, name, arguments, expect, buffer):
    """Blocking, nonblocking, persistent twice; buffer is zeroed before each."""
    call = getattr(world, name)
    def once(how):
        for i in range(len(buffer)): buffer[i] = 0
        how()
        assert list(buffer) == list(expect), (name, world.rank, list(buffer), expect)
    once(lambda: call(*arguments))
    once(lambda: getattr(world, "i" + name)(*arguments).wait())
    persistent = getattr(world, name + "_init")(*arguments)
    for _ in range(2):
        once(lambda: persistent.start().wait())
    persistent.free()

def collectives(world, r):
    n = world.size
    out = ints(0, 0)
    all_forms(world, "allreduce", (ints(r, 1), out), [3, 3], out)
    all_forms(world, "allreduce", (ints(r, 1), out, "max"), [2, 1], out)
    all_forms(world, "reduce", (ints(r, 1), out, "sum", 1), [3, 3] if r == 1 else [0, 0], out)
    all_forms(world, "scan", (ints(r, 1), out), [r * (r + 1) // 2, r + 1], out)
    all_forms(world, "reduce_scatter_block", (ints(*range(2 * n)), out), [3 * 2 * r, 3 * (2 * r + 1)], out)
    mine = ints(*[0] * (r + 1))
    all_forms(world, "reduce_scatter", (ints(*range(6)), mine, [1, 2, 3]), [3 * x for x in range(6)][r*(r+1)//2:][:r+1], mine)
    wide = ints(*[0] * n)
    all_forms(world, "allgather", (ints(r + 5), wide), [5, 6, 7], wide)
    all_forms(world, "alltoall", (ints(*[10 * r + d for d in range(n)]), wide), [10 * s + r for s in range(n)], wide)
    all_forms(world, "gather", (ints(r), wide if r == 2 else None, 2), [0, 1, 2] if r == 2 else [0, 0, 0], wide)
    one = ints(0)
    all_forms(world, "scatter", (ints(7, 8, 9) if r == 0 else None, one, 0), [7 + r], one)
    v = ints(*[0] * 6)
    all_forms(world, "allgatherv", (ints(*[r] * (r + 1)), v, [1, 2, 3]), [0, 1, 1, 2, 2, 2], v)
    all_forms(world, "alltoallv", (ints(*[r] * n), [1] * n, wide, [1] * n), [0, 1, 2], wide)
    world.barrier()
    b = ints(r, r)
    world.bcast(b, 1)
    assert list(b) == [1, 1]
    next, previous = (r + 1) % n, (r - 1) % n
    got = ints(0)
    requests = [world.isend(ints(r), next), world.irecv(got, previous)]
    [q.wait() for q in requests]
    assert got[0] == previous
    half = world.split(r % 2, r)
    assert half.size == (2 if r % 2 == 0 else 1)
    half.free()
    d = array.array("d", [r])
    world.allreduce(rondo.IN_PLACE, d, "avg")
    assert d[0] == 1.0
    try:
        import numpy
    except ImportError:
        numpy = None
    if numpy is not None:
        for kind in ("bool", "int16", "uint8", "int64", "float16", "float32", "float64", "complex64"):
            x = numpy.ones((2, 3), kind)
            world.allreduce(rondo.IN_PLACE, x, "lor" if kind == "bool" else "sum")
            assert (x == (True if kind == "bool" else 3)).all(), kind

def growing(world, r):
    """Rank 1 takes in a fourth one, a thread of its own."""
    ident = rondo.unique_id() if r == 1 else None
    def use(runtime, rank):
        with runtime:
            total = ints(0)
            runtime.world.allreduce(ints(rank), total)
            assert (runtime.world.rank, runtime.world.size, total[0]) == (rank, SIZE + 1, 6), (rank, total)
    newcomer = threading.Thread(target=lambda: use(rondo.Runtime(SIZE, SIZE + 1, ident), SIZE))
    if r == 1:
        newcomer.start()
    use(world.grow(SIZE + 1, ident), r)
    if r == 1:
        newcomer.join()
    world.barrier()

def errors(world, r):
    for bad, kind in [(lambda: world.bcast(b"constant"), ValueError), (lambda: world.allgather(ints(1, 2), ints(0, 0, 0)), ValueError),
                      (lambda: world.allreduce(ints(1), array.array("d", [0])), TypeError), (lambda: world.bcast(ints(1), 9), rondo.Error)]:
        try:
            bad()
        except kind as error:
            if kind is rondo.Error:
                assert error.code == 1 and "9" in str(error), error
        else:
            raise AssertionError(f"no {kind}")
    world.barrier()
    if r == 1:
        world.abort(77)
    try:
        while True:
            world.allreduce(rondo.IN_PLACE, ints(1))
    except rondo.Error as error:
        assert error.code == 11 and "77" in str(error), error

run(collectives)
run(growing)
run(errors)
print("ok")
'''


def run_python(program):
    """What the program prints, with the package and the library of this tree."""
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built")
    environment = dict(os.environ, PYTHONPATH=str(TREE / "python"), RONDO_X_LIBRARY=str(LIBRARY))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_all_collectives_and_errors():
    assert run_python(PROGRAM) == "ok"


def test_operators_are_those_of_the_header():
    """All but those of pairs, for which the package has no type."""
    rows = re.search(r"typedef enum \{([^}]*)RONDO_OP_COUNT", (TREE / "include/rondo.h").read_text()).group(1)
    numbers = {name.lower(): int(number) for name, number in re.findall(r"RONDO_(\w+)\s*=\s*(\d+),", rows)}
    assert len(numbers) >= 13 and {numbers.pop("minloc"), numbers.pop("maxloc")} == {11, 12}
    assert json.loads(run_python("import json, rondo; print(json.dumps(rondo._OPS))")) == numbers
