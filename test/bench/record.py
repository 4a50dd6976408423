#!/usr/bin/env python3
"""Runs a `rondo bench` command several times and keeps what it measured, raw, with machine, day, library and command.

usage: record.py FILE.json [--title TEXT] [--runs N] [--unit TEXT] -- COMMAND ...      COMMAND: as typed, without --json
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import provenance

def main():
    reader = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    reader.add_argument("file", type=pathlib.Path)
    reader.add_argument("--title")
    reader.add_argument("--runs", type=int, default=3)
    reader.add_argument("--unit", default="us; ratio = peer's time / Rondo's")
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[:words.index("--")], words[words.index("--") + 1:]
    options = reader.parse_args(words)
    if not command:
        reader.error("no command after --")
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.runs):
            where = os.path.join(folder, "rows.json")
            subprocess.run([*command, "--json", where], check=True)
            with open(where) as file:
                runs.append(json.load(file))
            os.unlink(where)
    peer = runs[0].get("peer")
    version = runs[0].get("peer_version") or "of unknown version"
    rival = "none" if peer is None else version if peer == "mpi" else f"{peer.upper()} {version}"
    shown = shlex.join(command)
    meta = provenance.metadata(options.title or shown, shown, options.unit, f"{options.runs}, all in this file; tables show medians", rival)
    options.file.write_text(json.dumps({"metadata": meta, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
