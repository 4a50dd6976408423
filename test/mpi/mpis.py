"""The MPIs of this machine for which there is a drop-in: how each is started, and a Python with mpi4py for it.

`make mpi-test` puts the wheels of Open MPI and MPICH, each with mpi4py, into virtual environments below build/mpi-test.
"""
import os
import shutil
import subprocess
from pathlib import Path

import harness

WHEELS = harness.BUILD / "mpi-test"
ROOT_ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
                "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Mpi:
    """mpirun: the launcher's path. python: one that has mpi4py, or None. compilers: of C and Fortran, or None."""

    def __init__(self, name, abi, mpirun, options=(), python=None, compilers=(None, None)):
        self.name, self.abi, self.mpirun, self.options, self.python = name, abi, mpirun, options, python
        self.c, self.fortran = compilers

    def drop_in(self):
        return harness.BUILD / "mpi" / f"librondo-mpi-{self.abi}.so"

    def run(self, ranks, *command, preloaded, seconds=100, expect=0, **variables):
        """The output of the command on so many ranks, with or without the drop-in."""
        settings = {**ROOT_ALLOWED, **variables}
        if preloaded:
            settings["LD_PRELOAD"] = str(self.drop_in())
        words = ["env", *(f"{k}={v}" for k, v in settings.items()), *map(str, command)]
        return harness.run(self.mpirun, *self.options, "-n", ranks, *words, seconds=seconds, expect=expect, **ROOT_ALLOWED)


def with_headers(compiler):
    """The wrapper, if there is one and it finds mpi.h: Debian's package of MPICH alone has none."""
    if compiler is None:
        return None
    done = subprocess.run([compiler, "-E", "-x", "c", "-include", "mpi.h", "/dev/null"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return compiler if done.returncode == 0 else None


def found():
    """Those whose drop-in has been built."""
    mpis = []

    def add(name, abi, mpirun, *arguments, **more):
        mpi = Mpi(name, abi, mpirun, *arguments, **more) if mpirun else None
        if mpi and Path(mpi.mpirun).exists() and mpi.drop_in().exists():
            mpis.append(mpi)

    for name, abi, options in (("openmpi", "openmpi", ("--oversubscribe",)), ("mpich", "mpich", ())):
        c = with_headers(shutil.which(f"mpicc.{name}"))
        add(f"{name} of the system", abi, shutil.which(f"mpirun.{name}"), options, compilers=(c, c and shutil.which(f"mpif90.{name}")))
        folder = WHEELS / name
        add(f"{name} of PyPI", abi, str(folder / "bin/mpirun"), options, python=folder / "bin/python",
            compilers=(folder / "bin/mpicc", None))
    folder = WHEELS / "mpich"
    add("mpich of PyPI, MPI-5's ABI", "abi", str(folder / "bin/mpirun"), compilers=(folder / "bin/mpicc_abi", None))
    return mpis


STEPS = int(os.environ.get("RONDO_X_MPI_STEPS", "40"))
RANKS = [int(n) for n in os.environ.get("RONDO_X_MPI_RANKS", "2,3").split(",")]
