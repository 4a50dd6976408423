"""Builds librondo into the package rondo, and where PyTorch is importable (pip's --no-build-isolation) the backend rondo_torch.

The library is that of the tree, built by make with BUILD (RONDO_X_BUILD, default build) and without CUDA unless it is there.
"""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

PYTHON = pathlib.Path(__file__).resolve().parent
TREE = PYTHON.parent
BUILD = os.environ.get("RONDO_X_BUILD", "build")
HEADER = (TREE / "include/rondo.h").read_text()
VERSION = [re.search(rf"define RONDO_VERSION_{part} (\d+)", HEADER).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
SONAME = "librondo.so." + (".".join(VERSION[:2]) if VERSION[0] == "0" else VERSION[0])
os.chdir(PYTHON)
(TREE / "build").mkdir(exist_ok=True)


def build_library():
    subprocess.run(["make", "-s", "-C", str(TREE), f"BUILD={BUILD}", f"-j{os.cpu_count()}", "lib"], check=True)
    return TREE / BUILD / ("librondo.so." + ".".join(VERSION))


class BuildPackages(build_py):
    """The library lies in the package, under the name that the loader looks for."""

    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copy(build_library(), pathlib.Path(self.build_lib, "rondo", SONAME))


def backend():
    """The arguments of setup() for rondo_torch; none without PyTorch."""
    try:
        from torch.utils.cpp_extension import BuildExtension, CppExtension
    except ImportError:
        print("rondo: PyTorch cannot be imported here (pip needs --no-build-isolation for it): without rondo_torch")
        return {"packages": ["rondo"], "cmdclass": {"build_py": BuildPackages}}
    library = build_library()
    # All sources are compiled at once: most of the time goes into PyTorch's headers, which are so read once.
    sources = sorted(PYTHON.glob("rondo_torch/src/*.cpp"))
    whole = TREE / "build" / "rondo_torch.cpp"
    text = "".join(f'#include "{source}"\n' for source in sources)
    if not whole.exists() or whole.read_text() != text:
        whole.write_text(text)
    extension = CppExtension(
        "rondo_torch._C", [os.path.relpath(whole, PYTHON)], include_dirs=[str(TREE / "include")], extra_objects=[str(library)],
        depends=[str(file) for file in sources + sorted(PYTHON.glob("rondo_torch/src/*.hpp"))],
        extra_compile_args=["-O2", "-g0", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fvisibility=hidden"],
        extra_link_args=["-Wl,-rpath,$ORIGIN/../rondo"])
    return {"packages": ["rondo", "rondo_torch"], "ext_modules": [extension],
            "cmdclass": {"build_py": BuildPackages, "build_ext": BuildExtension}}


setup(version=".".join(VERSION), include_package_data=False, **backend())
