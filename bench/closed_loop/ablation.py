#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is each mechanism of the shim worth? Points that bin/bench/closed_loop has run (the first line of their logs repeats the run) are
run again as they are and with one mechanism off in turn (ATP_DISABLE). Virtual times: the median of the last iterations."""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "closed_loop.d"))
from runner import command_of, logs_of  # noqa: E402

BUILD = Path(__file__).resolve().parents[2]
MECHANISMS = ("prefetch", "evict", "touch", "readmostly", "reach", "sight", "moremovers", "demand", "graphs", "pools", "slabs", "heap", "populate")
STEADY = 5  # last iterations of a run


def run(log, iterations, disabled=""):
    """(milliseconds of a steady iteration, results)"""
    environment, words = command_of(log, iterations)
    if disabled == "everything":
        environment["ATP_POLICY"] = "managed"
    elif disabled:
        environment["ATP_DISABLE"] = disabled
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    modelled = "ATP_SIM_MODEL" in environment  # then every result is wrong, and the program says so
    if done.returncode not in ((0, 1) if modelled else (0,)):
        sys.exit(f"{log.name} without {disabled or 'nothing'}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    times = [float(ms) for ms in re.findall(r" ms +([0-9.]+)", done.stdout)]
    return statistics.median(times[-STEADY:]), re.sub(r" ms +[0-9.]+", "", done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("point", nargs="*", help="as sweep-a100-40g-1.5-balanced-quick; without: all in the folder")
    parser.add_argument("--without", action="append", choices=(*MECHANISMS, "everything"), help="only this mechanism (may be repeated)")
    parser.add_argument("--out", type=Path, default=BUILD / "closed_loop", help="folder of the logs")
    parser.add_argument("--iterations", type=int, default=12, help="of each run (default 12)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    options = parser.parse_args()
    mechanisms = options.without or (*MECHANISMS, "everything")
    rows = []
    if not options.json:
        print("| point | all, ms | " + " | ".join(mechanisms) + " |\n|---|" + "---:|" * (1 + len(mechanisms)), flush=True)
    for log in logs_of(options.out, options.point):
        all_ms, results = run(log, options.iterations)
        row = {"point": log.name.removesuffix(".learned.log"), "all_ms": all_ms, "without": {}, "identical": True}
        for mechanism in mechanisms:
            ms, other = run(log, options.iterations, mechanism)
            row["without"][mechanism] = ms / all_ms
            row["identical"] &= other == results
        rows.append(row)
        if not options.json:
            print(f"| {row['point']} | {all_ms:.3f} | " + " | ".join(f"{row['without'][m]:.3f}" for m in mechanisms) + " |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["identical"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
