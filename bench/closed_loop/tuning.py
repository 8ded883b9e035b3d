#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the daemon's tuning bring? For points that bin/bench/closed_loop has run (the first line of their logs repeats the run):
a run beside a daemon of its own, the daemon's search, a run for each candidate until none is left, and one after that. Then the last one again at points of
the band of costs, by the choices that were kept and without them. Virtual times, in ms an iteration.

The last line is the verdict: of the points with room (achieved / bound above 1.03 before), how many are faster, and the worst change of any point, at its own costs
or at a point of the band."""

import argparse
import contextlib
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
sys.path.insert(0, str(BUILD / "bin/bench/closed_loop.d"))

from measure import BAND, band_costs  # noqa: E402
from runner import read_costs  # noqa: E402

STEADY = 3  # last iterations of a run
MOST_TRIALS = 10
ROOM = 1.03
FASTER = -0.002  # what a trial asks for
WORSE = 0.005


def run(environment, words, socket):
    done = subprocess.run(words, env={**environment, "ATP_SOCKET": socket}, capture_output=True, text=True, check=True)
    times = [float(ms) for ms in re.findall(r"ms ([0-9.]+)", done.stdout)]
    return times, re.sub(r"ms [0-9.]+", "", done.stdout)


@contextlib.contextmanager
def daemon_at(folder, tune):
    """A daemon with the store in the folder; gives its socket."""
    socket = f"{folder}/atpd.sock"
    daemon = subprocess.Popen([BUILD / "bin/atpd", "--socket", socket, "--store", f"{folder}/atpd.db", "--tune", tune, "--tune-idle", "0", "--tune-cpu", "1"],
                              stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(socket):
            time.sleep(0.05)
        yield socket
    finally:
        daemon.terminate()
        daemon.wait()


def with_costs(environment, band):
    """The same run on a machine whose assumed costs are those of a point of the band."""
    costs = ",".join(band_costs(read_costs(BUILD, environment["ATP_SIM_GPU"]), band))
    return {**environment, "ATP_SIM_SET": f"{environment['ATP_SIM_SET']},{costs}"}


def steady(times):
    return statistics.median(times[-STEADY:])


def searched(socket):
    """The workload, once the daemon has nothing left to search."""
    while True:
        status = subprocess.run([BUILD / "bin/atp", "status", "--json", "--socket", socket], capture_output=True, text=True, check=True)
        daemon = json.loads(status.stdout)["daemon"]
        workloads = daemon["workloads"]
        if workloads and all(workload["decisions"] for workload in workloads) and not daemon["tuning"]["searching"]:
            return workloads[0]
        time.sleep(0.2)


def measure(log, iterations, bands):
    environment, words = command_of(log, iterations)
    with tempfile.TemporaryDirectory() as folder:
        trials = []
        with daemon_at(folder, "on") as socket:
            before, results = run(environment, words, socket)
            workload = searched(socket)
            found = workload["decisions"][-1]
            for _ in range(MOST_TRIALS if found["what"] == "offered" else 0):
                known = len(searched(socket)["decisions"])
                times, same = run(environment, words, socket)
                new = searched(socket)["decisions"][known:]
                if not new:
                    break  # nothing was on offer any more
                trials.append({"what": new[0]["what"], "slowest_ms": max(times[3:]), "identical": same == results})
        with daemon_at(folder, "off") as socket:
            after, also = run(environment, words, socket)
            band = {name: run(with_costs(environment, name), words, socket)[0] for name in bands}
    untuned = {}
    for name in bands:
        with tempfile.TemporaryDirectory() as folder, daemon_at(folder, "off") as socket:
            run(with_costs(environment, name), words, socket)  # both are second runs
            untuned[name] = run(with_costs(environment, name), words, socket)[0]
    over = workload["runs"][0]["achieved_over_bound"]
    return {"point": log.name.removesuffix(".learned.log"), "over_bound": over, "before_ms": steady(before), "after_ms": steady(after), "change": steady(after) / steady(before) - 1,
            "kept": sum(trial["what"] == "kept" for trial in trials), "tried": len(trials),
            "slowest_of_trials_ms": max([trial["slowest_ms"] for trial in trials], default=None), "found": found["what"], "reason": found["reason"],
            "band": {name: steady(band[name]) / steady(untuned[name]) - 1 for name in bands},
            "identical": results == also and all(trial["identical"] for trial in trials)}


def verdict(rows):
    """In words, and whether it is what is asked for: a third of those with room faster, none slower by more than 0.5 %."""
    room = [row for row in rows if (row["over_bound"] or 0) > ROOM]
    faster = [row for row in room if row["change"] < FASTER]
    worst, where = max(((change, f"{row['point']} {name}".strip()) for row in rows for name, change in [("", row["change"]), *row["band"].items()]), default=(0, "none"))
    met = 3 * len(faster) >= len(room) and worst <= WORSE
    return met, f"{len(faster)} of {len(room)} points with room are faster, {len(rows) - len(room)} have none; worst change {100 * worst:+.2f} % ({where}): {'met' if met else 'NOT met'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("point", nargs="*", help="as sweep-a100-40g-1.5-balanced-quick; without: all in the folder")
    parser.add_argument("--out", type=Path, default=BUILD / "closed_loop", help="folder of the logs")
    parser.add_argument("--iterations", type=int, default=14, help="of each run (default 14)")
    parser.add_argument("--band", action="append", choices=[*sorted(BAND), "all"], default=[], help="also at this point of the band of costs (may be repeated)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    options = parser.parse_args()
    bands = sorted(BAND) if "all" in options.band else options.band
    logs = logs_of(options.out, options.point)
    rows = []
    for log in logs:
        row = measure(log, options.iterations, bands)
        rows.append(row)
        if not options.json:
            band = ", ".join(f"{name} {100 * change:+.2f} %" for name, change in row["band"].items())
            print(f"| {row['point']} | {row['over_bound'] or 0:.3f} | {row['before_ms']:.4f} | {row['after_ms']:.4f} | {100 * row['change']:+.2f} % | {row['kept']} of {row['tried']} |"
                  f" {row['slowest_of_trials_ms'] or 0:.4f} | {band} | {'yes' if row['identical'] else 'NO'} | {row['reason']} |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    met, words = verdict(rows)
    print(words, file=sys.stderr)
    return 0 if met and all(row["identical"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
