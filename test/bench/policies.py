"""Ways to choose how long waits are, on the programs of `rondo bench policy`: the tables that it prints, and with --json the file
that docs/results/data has.

usage: policies.py RONDO [--device host|cuda] [--ranks N,...] [--rounds N] [--json FILE]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import provenance

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("rondo")
parser.add_argument("--device", default="host", choices=["host", "cuda"])
parser.add_argument("--ranks", default="2", help="numbers of ranks, as threads (2)")
parser.add_argument("--rounds", type=int, default=5, help="of which figures are medians (5)")
parser.add_argument("--json", help="the file")
options = parser.parse_args()
cells = []
for ranks in map(int, options.ranks.split(",")):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "bench.json")
        subprocess.run([options.rondo, "bench", "policy", "--device", options.device, "--ranks", str(ranks), "--rounds", str(options.rounds),
                        "--json", str(file)], check=True, timeout=900)
        cells += [{"ranks": ranks, **row} for row in json.loads(file.read_text())["rows"]]
if options.json:
    command = f"python3 test/bench/policies.py RONDO {' '.join(sys.argv[2:])}"
    meta = provenance.metadata(f"Policies of waiting, {options.device} device", command, "us an iteration",
                               f"{options.rounds}, all in this file; tables show medians")
    pathlib.Path(options.json).write_text(json.dumps({"metadata": meta, "cells": cells}, indent=1) + "\n")
