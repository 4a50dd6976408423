#!/usr/bin/env python3
"""Programs written for MPI, with the drop-in preloaded and without: do they give the same results, and are they as fast?

usage: programs.py [--ranks N,N] [--rounds N] [--only WORD] [--csv FILE]
  --ranks N,N   sizes of the jobs (2,3)
  --rounds N    of each program (5); in a round it runs without the drop-in, with it, and without again, in an order that rotates
  --only WORD   the programs whose name has the word
  --csv FILE    the table of docs/guide/mpi.md, as docs/results has it

Intel's IMB (package impi-rt of PyPI, put into the build folder by `make mpi-apps`) on Intel MPI; Debian's hpcc, LAMMPS and GROMACS on its Open
MPI. A program's results are the lines that must not differ: energies in full, residuals passed, benchmarks done. The ratio is the
median of the rounds' time with the drop-in / mean time without; the A/A ratio that of the second run without / the first, as a range.
Exit status: 0 all results equal and no program slower than 1.02 beyond the A/A range; 1 otherwise; 77 a program is not installed.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
import provenance  # noqa: E402

BUILD = pathlib.Path(os.environ.get("RONDO_X_BUILD", "build")).resolve()
IMPI = BUILD / "mpi-test" / "impi"
INPUTS = HERE / "programs"
TOLERANCE = 1.02
ARMS = (("plain", "rondo", "again"), ("rondo", "again", "plain"), ("again", "plain", "rondo"))
ROOT_ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def shell(*words, cwd, variables=(), seconds=300):
    done = subprocess.run([str(word) for word in words], cwd=cwd, env={**os.environ, **dict(variables)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


class OpenMpi:
    library, launcher, variables = "openmpi", ("mpirun.openmpi", "--oversubscribe"), ROOT_ALLOWED


class IntelMpi:
    library, launcher = "mpich", (str(IMPI / "bin" / "mpiexec.hydra"),)
    variables = {"LD_LIBRARY_PATH": str(IMPI / "lib"), "I_MPI_FABRICS": "shm"}


class Program:
    """mpi: what runs it. words: its command. results: the lines of its output that must be equal. seconds: what its time is, from the
    output; None: the whole run's."""
    mpi, needs = OpenMpi, ()

    def prepare(self, folder, ranks):
        pass

    def seconds(self, output, folder):
        return None

    def run(self, folder, ranks, preloaded):
        variables = dict(self.mpi.variables)
        report = folder / "report.json"
        within = ["env", f"LD_PRELOAD={BUILD}/mpi/librondo-mpi-{self.mpi.library}.so", f"RONDO_MPI_REPORT={report}"] if preloaded else []
        began = time.monotonic()
        output = shell(*self.mpi.launcher, "-n", ranks, *within, *self.words, cwd=folder, variables=variables.items())
        took = time.monotonic() - began
        seconds = self.seconds(output, folder)
        counts = json.loads(report.read_text()) if preloaded else []
        return self.results(output, folder), took if seconds is None else seconds, counts


class Imb(Program):
    mpi = IntelMpi

    def __init__(self, name, benchmarks):
        self.name = f"IMB-{name}"
        self.needs = (IMPI / "bin" / self.name,)
        self.words = (IMPI / "bin" / self.name, "-npmin", 99, "-msglog", "3:16", "-iter", 300, "-time", 2, *benchmarks)

    def results(self, output, folder):
        return re.findall(r"^# Benchmarking (\w+)", output, re.M) + [str(sum(1 for _ in rows(output)))]

    def seconds(self, output, folder):
        """The geometric mean of all rows' average times."""
        times = list(rows(output))
        return math.exp(statistics.mean(map(math.log, times))) * 1e-6


def rows(output):
    """Average times in microseconds: the column t_avg, or t_ovrl of IMB-NBC; of barriers the last one."""
    column = None
    for line in output.splitlines():
        words = line.split()
        if "#bytes" in words or "#repetitions" in words:
            column = next((i for i, word in enumerate(words) if word.startswith(("t_avg", "t_ovrl"))), None)
        elif column is not None and len(words) > column and re.fullmatch(r"[\d.]+", words[0]):
            yield max(float(words[column]), 0.01)


class Hpcc(Program):
    name, needs, words = "HPC Challenge", ("hpcc",), ("hpcc",)

    def prepare(self, folder, ranks):
        text = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text()
        text = re.sub(r"^\d+( +Ps)$", r"1\1", text, flags=re.M)
        text = re.sub(r"^\d+( +Qs)$", rf"{ranks}\1", text, flags=re.M)
        (folder / "hpccinf.txt").write_text(re.sub(r"^\d+( +Ns)$", r"2000\1", text, flags=re.M))

    def results(self, output, folder):
        text = (folder / "hpccoutf.txt").read_text()
        (folder / "hpccoutf.txt").unlink()
        found = re.findall(r"^Success=.*|^ *\d+ tests? completed and (?:passed|failed) .*|\.\.\. (?:PASSED|FAILED)", text, re.M)
        errors = sum(map(int, re.findall(r"Found (\d+) errors", text)))
        return [line.strip() for line in found] + [f"errors: {errors}"]


class Lammps(Program):
    needs = ("lmp",)

    def __init__(self, name, file):
        self.name, self.words = f"LAMMPS, {name}", ("lmp", "-log", "none", "-in", INPUTS / file)

    def results(self, output, folder):
        return re.search(r"^ *Step .*?(?=^Loop time)", output, re.M | re.S).group().splitlines()

    def seconds(self, output, folder):
        return float(re.search(r"^Loop time of ([\d.]+)", output, re.M).group(1))


class Gromacs(Program):
    name, needs = "GROMACS, water", ("gmx", "gmx_mpi")
    words = ("gmx_mpi", "mdrun", "-s", "run.tpr", "-ntomp", 1, "-npme", 0, "-reprod", "-pin", "off", "-g", "md.log")

    def prepare(self, folder, ranks):
        for file in ("water.mdp", "water.top"):
            shutil.copy(INPUTS / file, folder)
        shell("gmx", "solvate", "-cs", "spc216.gro", "-box", 3, 3, 3, "-o", "box.gro", "-p", "water.top", cwd=folder)
        shell("gmx", "grompp", "-f", "water.mdp", "-c", "box.gro", "-p", "water.top", "-o", "run.tpr", cwd=folder)

    def results(self, output, folder):
        return re.findall(r"^   Energies .*\n(?:.+\n)+", (folder / "md.log").read_text(), re.M)

    def seconds(self, output, folder):
        return float(re.search(r"^ +Time: +[\d.]+ +([\d.]+)", (folder / "md.log").read_text(), re.M).group(1))


COLLECTIVES = ("Allreduce", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter",
               "Scatterv", "Alltoall", "Alltoallv", "Bcast", "Barrier")
NONBLOCKING = tuple(f"I{name.lower()}" for name in COLLECTIVES)
PROGRAMS = (Imb("MPI1", COLLECTIVES), Imb("NBC", NONBLOCKING), Hpcc(), Lammps("melt", "melt.in"), Lammps("ions with PPPM", "ions.in"), Gromacs())


def missing(program):
    return [str(need) for need in program.needs if shutil.which(str(need)) is None]


def measure(program, ranks, rounds):
    """A row of the table, and why it is not as it should be ("": it is)."""
    times = {arm: [] for arm in ARMS[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program.prepare(folder, ranks)
        expected, counts, differs = None, [], ""
        for number in range(rounds):
            for arm in ARMS[number % len(ARMS)]:
                results, seconds, found = program.run(folder, ranks, arm == "rondo")
                times[arm].append(seconds)
                counts = found or counts
                expected = results if expected is None else expected
                if not results or results != expected:
                    differs = f"{arm}: {[line for line in results if line not in expected][:3]}, not {[line for line in expected if line not in results][:3]}"
    taken, left = (sum(row[what] for row in counts) for what in ("taken", "left"))
    ratio = statistics.median(2 * b / (a + c) for a, b, c in zip(times["plain"], times["rondo"], times["again"]))
    noise = sorted(c / a for a, c in zip(times["plain"], times["again"]))
    widest = max(noise[-1], 1 / noise[0])
    why = differs or ("nothing was taken" if taken == 0 else "slower" if ratio > TOLERANCE * widest else "")
    row = {"program": program.name, "ranks": ranks, "taken": taken, "left": left, "plain_ms": f"{1e3 * statistics.median(times['plain']):.4g}",
           "rondo_ms": f"{1e3 * statistics.median(times['rondo']):.4g}", "ratio": f"{ratio:.3f}", "noise_low": f"{noise[0]:.3f}",
           "noise_high": f"{noise[-1]:.3f}", "results": "differ" if differs else "equal"}
    return row, why


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--ranks", default="2,3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return 0
    table, status = [], 0
    for program in (p for p in PROGRAMS if options.only in p.name):
        if missing(program):
            print(f"skip {program.name}: {', '.join(missing(program))} is not installed")
            status = max(status, 77)
            continue
        for ranks in map(int, options.ranks.split(",")):
            row, why = measure(program, ranks, options.rounds)
            table.append(row)
            print(f"{'FAIL' if why else 'ok  '} " + ", ".join(f"{key} {value}" for key, value in row.items()) + (f": {why}" if why else ""), flush=True)
            status = 1 if why or status == 1 else status
    if options.csv and table:
        about = provenance.metadata("Programs written for MPI, with the drop-in and without", "make mpi-apps", "ms; ratio: with / without",
                                    f"medians of {options.rounds}, without, with, and without again in turn", rival="the MPI of each program")
        with options.csv.open("w") as file:
            file.write("".join(f"# {key}: {value}\n" for key, value in about.items()))
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
    return status


if __name__ == "__main__":
    sys.exit(main())
