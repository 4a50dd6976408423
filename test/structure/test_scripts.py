"""Every script that reads options explains them. (To argparse a percent sign in an explanation is a directive.)"""
import subprocess
import sys

import pytest
from harness import ROOT

NEEDS_MORE = ("examples/pytorch/", "test/mpi/random_calls.py")  # PyTorch and NumPy, which the tests do not install


def scripts():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.py", "make"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if "argparse.Argument" "Parser(" in (ROOT / name).read_text(errors="replace")]


def test_there_are_such_scripts():
    assert len(scripts()) >= 10


@pytest.mark.parametrize("name", scripts())
def test_a_script_explains_its_options(name):
    if name.startswith(NEEDS_MORE):
        pytest.skip("needs a package that the tests do not install")
    done = subprocess.run([sys.executable, ROOT / name, "--help"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0 and done.stdout.strip() != "", done.stderr
