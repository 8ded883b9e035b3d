#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the daemon's tuning bring? For points that bin/bench/closed_loop has run (the first line of their logs repeats the run):
a run beside a daemon of its own, the daemon's search, a run that tries what was found, and one after it. Virtual times, in ms an iteration."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "closed_loop.d"))
from runner import command_of, logs_of  # noqa: E402

BUILD = Path(__file__).resolve().parents[2]
STEADY = 3  # last iterations of a run


def run(environment, words, socket):
    done = subprocess.run(words, env={**environment, "ATP_SOCKET": socket}, capture_output=True, text=True, check=True)
    times = [float(ms) for ms in re.findall(r"ms ([0-9.]+)", done.stdout)]
    return times, re.sub(r"ms [0-9.]+", "", done.stdout)


def await_search(socket):
    """The last decision, once the daemon has nothing left to search."""
    while True:
        status = subprocess.run([BUILD / "bin/atp", "status", "--json", "--socket", socket], capture_output=True, text=True, check=True)
        daemon = json.loads(status.stdout)["daemon"]
        decisions = [workload["decisions"] for workload in daemon["workloads"]]
        if decisions and all(decisions) and not daemon["tuning"]["searching"]:
            return decisions[0][-1]
        time.sleep(0.2)


def measure(log, iterations):
    environment, words = command_of(log, iterations)
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/atpd.sock"
        daemon = subprocess.Popen([BUILD / "bin/atpd", "--socket", socket, "--store", f"{folder}/atpd.db", "--tune-idle", "0", "--tune-cpu", "1"],
                                  stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(socket):
                time.sleep(0.05)
            before, results = run(environment, words, socket)
            found = await_search(socket)
            trial, same = run(environment, words, socket)
            decided = await_search(socket)
            after, also = run(environment, words, socket)
        finally:
            daemon.terminate()
            daemon.wait()
    steady = [statistics.median(times[-STEADY:]) for times in (before, after)]
    return {"point": log.name.removesuffix(".learned.log"), "before_ms": steady[0], "after_ms": steady[1], "change": steady[1] / steady[0] - 1,
            "slowest_of_trial_ms": max(trial[3:]), "found": found["what"], "decided": decided["what"], "reason": found["reason"],
            "identical": results == same == also}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("point", nargs="*", help="as sweep-a100-40g-1.5-balanced-quick; without: all in the folder")
    parser.add_argument("--out", type=Path, default=BUILD / "closed_loop", help="folder of the logs")
    parser.add_argument("--iterations", type=int, default=14, help="of each run (default 14)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    options = parser.parse_args()
    logs = logs_of(options.out, options.point)
    rows = []
    for log in logs:
        row = measure(log, options.iterations)
        rows.append(row)
        if not options.json:
            print(f"| {row['point']} | {row['before_ms']:.4f} | {row['after_ms']:.4f} | {100 * row['change']:+.2f} % | {row['decided']} |"
                  f" {row['slowest_of_trial_ms']:.4f} | {'yes' if row['identical'] else 'NO'} | {row['reason']} |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0 if all(row["identical"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
