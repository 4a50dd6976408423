"""The backend rondo_torch: each case of ranks.py on three ranks, which are processes. `make torch-test` runs them."""
import os
import pathlib
import subprocess
import sys

import pytest

if not os.environ.get("RONDO_X_TORCH"):
    pytest.skip("`make torch-test` runs these, with PyTorch", allow_module_level=True)
pytest.importorskip("torch", reason="PyTorch is missing")

RANKS = pathlib.Path(__file__).with_name("ranks.py")


@pytest.mark.parametrize("case", ["collectives", "messages", "groups", "dead", "late"])
def test_ranks(case, tmp_path):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([sys.executable, str(RANKS), case, str(rank), "3", str(tmp_path / "store")], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path) for rank in range(3)]
    try:
        texts = [rank.communicate(timeout=150)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0, 0], "\n".join(texts)
