#!/usr/bin/env python3
"""Verifies the Promela models here with spin, and checks that each variant (a part removed by a macro) is caught.

run.py [-v] [MODEL...] one line for each case: 'ok MODEL VARIANT' or 'not ok MODEL VARIANT: why'; -v adds sizes and times. Exit
status: 0 as expected, 1 otherwise, 77 if spin or gcc is not installed (the usual mark of a skipped test). Everything is built
in a temporary directory.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# The ways a search can end in an error, as pan names them.
ASSERTION = "assertion violated"
STUCK = "invalid end state"  # no process can move, and one has not finished
LIVELOCK = "non-progress cycle"

# "holds" names the models that must verify, by the macros they are built with: two searches each, one for assertions and end
# states, one for cycles without progress (under weak fairness where the model says that it needs it). The plain model is
# searched without partial order reduction, which is one thing less to trust. "large" names those of which the second search is
# left out, because a smaller one shows that there are no cycles.
# "caught" names the variants that must fail, and how, so that a broken build or an unrelated error does not count.
MODELS = {
    "quit": {
        "fair": False,
        "holds": ["", "NO_NOTICE POLLER", "OVERSTAY POLLER"],
        "caught": {
            "NO_SUBMIT_FENCE": STUCK,
            "NO_QUIT_FENCE": STUCK,
            "NO_FINAL_LOOK": STUCK,
            "NO_WITHDRAW": STUCK,
            "LATE_WITHDRAW": ASSERTION,
            "NO_NOTICE": STUCK,
            "NO_LOCK": ASSERTION,
            "NO_LEAVING_WAIT": STUCK,
            "LEAVING_IS_LEFT": ASSERTION,
            "NO_LAUNCH": ASSERTION,
            "NO_EPOCH": STUCK,
            "OVERSTAY": STUCK,
        },
    },
    "gather": {
        "fair": True,
        "holds": [""],
        "caught": {
            "CALL_FIRST": STUCK,
            "LOOK_FIRST": STUCK,
            "ALIVE_LAST": STUCK,
            "ANY_LAUNCH": STUCK,
            "ALONE_ANYWAY": STUCK,
            "NO_RESUME": STUCK,
            "SUBMITTER_SAYS": STUCK,
        },
    },
    "connector": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_RELEASE": ASSERTION,
            "NO_ACQUIRE": ASSERTION,
            "NO_CREDIT": ASSERTION,
            "ADVANCE_BEFORE_COPY": ASSERTION,
            "NO_SAVE": ASSERTION,
        },
    },
    "multicast": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_RELEASE": ASSERTION,
            "NO_ACQUIRE": ASSERTION,
            "NO_CREDIT": ASSERTION,
            "ONE_OVERLOOKED": ASSERTION,
            "SHARED_HEAD": ASSERTION,
            "ADVANCE_BEFORE_COPY": ASSERTION,
            "NO_SAVE": ASSERTION,
            "WITHHOLD": LIVELOCK,
        },
    },
    "direct_write": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_RELEASE": ASSERTION,
            "NO_OFFER_RELEASE": ASSERTION,
            "LATE_RESET": STUCK,
            "NO_EXCHANGE": ASSERTION,
            "NO_WAIT": ASSERTION,
        },
    },
    "exchange": {
        "fair": True,
        "holds": [""],
        "caught": {
            "STORES_ALL_THE_SAME": ASSERTION,
            "TAKES_NOTHING": ASSERTION,
            "WAITS_FIRST": STUCK,
        },
    },
    "single_copy": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_WITHDRAW": ASSERTION,
            "NO_WITHDRAW_FENCE": ASSERTION,
            "NO_LOOK": ASSERTION,
            "NO_LOOK_FENCE": ASSERTION,
            "HEAD_FIRST": ASSERTION,
            "NO_FILL_RELEASE": ASSERTION,
            "FILL_LATE": STUCK,
            "NO_TOKEN": ASSERTION,
        },
    },
    "flight_recorder": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_OPEN": ASSERTION,
            "NO_WORD_RELEASE": ASSERTION,
            "NO_RELEASE": ASSERTION,
            "NO_ACQUIRE": ASSERTION,
            "NO_SECOND_LOOK": ASSERTION,
            "NO_WORD_ACQUIRE": ASSERTION,
            "SAME_STAMP": ASSERTION,
        },
    },
    "resend": {
        "fair": True,
        "holds": [""],
        "caught": {
            "TAKE_TWICE": ASSERTION,
            "SETTLE_SENT": ASSERTION,
            "SETTLE_SENDING": ASSERTION,
            "AGAIN_FROM_SOURCE": ASSERTION,
            "NO_AGAIN": STUCK,
            "NO_GENERATION": STUCK,
            "NO_LOOK": STUCK,
            "AWAIT_ANSWER": STUCK,
        },
    },
    "arrival": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_FLUSH": ASSERTION,
            "SHOW_FIRST": ASSERTION,
            "SHOW_LATEST": ASSERTION,
            "FLUSH_EARLY": ASSERTION,
        },
    },
    "agreement": {
        "fair": False,
        "holds": ["", "DEATHS=3", "MEMBERS=5"],
        "large": ["MEMBERS=5"],
        "caught": {
            "ONE_PHASE UNCHECKED": ASSERTION,
            "ANY_ACCEPTS UNCHECKED": ASSERTION,
            "ACCEPT_ALONE": ASSERTION,
            "ACCEPT_ALONE UNCHECKED DEATHS=3": ASSERTION,
            "REPORT_ALONE": ASSERTION,
            "NO_ADOPT": ASSERTION,
            "NO_REPORT": STUCK,
            "NO_ACCEPT_AGAIN": STUCK,
            "NO_ANSWER": STUCK,
            "NO_LATE_DECISION": STUCK,
            "FORGET": STUCK,
            "NO_LOOK": STUCK,
        },
    },
    "renewal": {
        "fair": False,
        "holds": ["", "FRAMES=1"],
        "large": [""],
        "caught": {
            "COUNT_READ": STUCK,
            "KEEP_NONE": STUCK,
            "PUT_ALL": ASSERTION,
            "KEEP_BUFFER": ASSERTION,
            "PUT_BEFORE": ASSERTION,
        },
    },
    "requeue": {
        "fair": False,
        "holds": ["", "MESSAGES=2"],
        "large": [""],
        "caught": {
            "KEEP_OLD": ASSERTION,
            "KEEP_OLD_SENDER": ASSERTION,
            "NO_TOLD": ASSERTION,
            "NO_RESTART": ASSERTION,
            "NO_CREDIT": STUCK,
            "NO_ASK": STUCK,
        },
    },
    "lane": {
        "fair": True,
        "holds": [""],
        "caught": {
            "NO_PREEMPT": LIVELOCK,
            "NO_QUIT": LIVELOCK,
            "NO_RESTART": STUCK,
            "NO_PAUSE": LIVELOCK,
            "NO_PERSISTENCE": LIVELOCK,
            "SHARED_SLOT": LIVELOCK,
        },
    },
}

DEPTH = 500000
MEMORY_MIB = 900
SECONDS = 120


class Failure(Exception):
    pass


def command(arguments, directory):
    try:
        done = subprocess.run(arguments, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure("%s took more than %d s" % (arguments[0], SECONDS))
    return done.returncode, done.stdout


def build(arguments, directory):
    status, output = command(arguments, directory)
    if status != 0:
        raise Failure("%s failed:\n%s" % (arguments[0], output))


def search(model, macros, cycles, options, directory):
    """Runs one search, to its end or the first error. Returns (error kind or None, one line of statistics)."""
    if cycles:
        options = ["-l", "-f"] if MODELS[model]["fair"] else ["-l"]
    build(["spin", "-a"] + ["-D" + macro for macro in macros.split()] + [os.path.join(HERE, model + ".pml")], directory)
    # pan.c comes from spin; its warnings do not matter here.
    build(["gcc", "-w", "-O1", "-DMEMLIM=%d" % MEMORY_MIB] + (["-DNP", "-DNFAIR=4"] if cycles else ["-DSAFETY"]) +
          ([] if macros else ["-DNOREDUCE"]) + ["-o", "pan", "pan.c"], directory)
    _, output = command(["./pan", "-m%d" % DEPTH] + options, directory)

    counted = re.search(r"depth reached (\d+).*errors: (\d+)", output)
    states = re.search(r"(\d+) states, stored", output)
    elapsed = re.search(r"elapsed time ([\d.]+)", output)
    if not counted or not states or not elapsed:
        raise Failure("no result from pan:\n" + output)
    statistics = "%s states, depth %s, %s s" % (states.group(1), counted.group(1), elapsed.group(1))
    found = re.search(r"^pan:\d+: (.*?) \(at depth", output, re.MULTILINE)
    if found:
        for kind in (ASSERTION, STUCK, LIVELOCK):
            if found.group(1).startswith(kind):
                return kind, statistics
        raise Failure("unexpected error: " + found.group(1))
    if int(counted.group(2)) != 0:
        raise Failure("an error that pan does not name:\n" + output)
    # "max search depth too small", "reached -DMEMLIM bound", "Search not completed": the search was cut short.
    if re.search(r"search depth too small|MEMLIM bound|out of memory|not completed", output, re.IGNORECASE):
        raise Failure("the search is incomplete:\n" + output)
    return None, statistics


def verify(model, macros, directory):
    """Returns a line of statistics, or raises Failure."""
    statistics = []
    for cycles in (False,) if macros in MODELS[model].get("large", []) else (False, True):
        kind, line = search(model, macros, cycles, [], directory)
        if kind:
            raise Failure(kind)
        statistics.append(line)
    return "; cycles: ".join(statistics)


def catch(model, macros, directory):
    """Returns a line of statistics, or raises Failure."""
    expected = MODELS[model]["caught"][macros]
    # A variant may fail in several ways, in an order that depends on chance: search for the stated one only.
    ignore = {ASSERTION: ["-E"], STUCK: ["-A"], LIVELOCK: []}[expected]
    kind, line = search(model, macros, expected == LIVELOCK, ignore, directory)
    if kind is None:
        raise Failure("not caught, expected: " + expected)
    if kind != expected:
        raise Failure("caught by another error (%s), expected: %s" % (kind, expected))
    return "%s; %s" % (kind, line)


def main(arguments):
    verbose = "-v" in arguments
    models = [a for a in arguments if a != "-v"] or list(MODELS)
    unknown = [m for m in models if m not in MODELS]
    if unknown:
        sys.exit("unknown model: %s (there are %s)" % (" ".join(unknown), " ".join(MODELS)))
    missing = [tool for tool in ("spin", "gcc") if not shutil.which(tool)]
    if missing:
        print("skipped: not installed: " + " ".join(missing))
        return 77
    failed = False
    for model in models:
        cases = [(verify, macros) for macros in MODELS[model]["holds"]]
        cases += [(catch, macros) for macros in MODELS[model]["caught"]]
        for test, macros in cases:
            name = "%s %s" % (model, macros.replace(" ", "+") or "-")
            with tempfile.TemporaryDirectory(prefix="rondo-models-") as directory:
                try:
                    statistics = test(model, macros, directory)
                    print("ok " + name + (" (%s)" % statistics if verbose else ""), flush=True)
                except Failure as failure:
                    failed = True
                    print("not ok %s: %s" % (name, failure), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
