#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of each hook by callgrind and compares them with a table.

usage: instructions.py --program FILE --shim FILE --driver FOLDER --table FILE --compiler NAME [--update]

The table (instructions.json) is for one compiler; with another one, or without valgrind, the test is skipped (exit 77).
More instructions than the table allows fail, and so do far fewer, so that a gain is written down: --update writes what
was counted. Exit: 0 as in the table, 1 not, 77 skipped.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
MORE, FEWER = 1.10, 0.75  # of the table's count
# name: (case, calls, environment). A watched launch is one that the shim looks at. With more memory than fits, the loop learns from each.
WATCHED = {"ATP_TRACE": "/dev/null"}
TOO_MUCH = {"ATP_BUDGET": "24MiB"}
CASES = {
    "launch, working set fits": ("launch", 2000, {}),
    "launch, looked at": ("launch", 2000, WATCHED),
    "launch, working set does not fit": ("launch_no_order", 2000, TOO_MUCH),
    "launch, 4 KiB of arguments, looked at": ("launch_4k", 500, WATCHED),
    "allocation and free, 2 MiB": ("alloc_free_2m", 500, {}),
    "allocation and free, 2 MiB, beside NCCL or its like": ("alloc_free_beside_exporter", 500, {}),
    "allocation and free, 2 MiB, the same through the CUDA runtime": ("alloc_free_by_runtime", 500, {}),
    "allocation and free, 64 KiB": ("alloc_free_64k", 500, {}),
    "look-up": ("lookup", 1000, {}),
}
START = "start of a process without CUDA"


def count(command, environment):
    clean = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **environment}
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"instructions.py: {' '.join(command)} failed:\n{run.stderr}")
    return int(found.group(1))


def measure(options):
    preload = {"LD_PRELOAD": options.shim}
    counted = {START: count(["/bin/true"], preload) - count(["/bin/true"], {})}
    for name, (case, calls, more) in CASES.items():
        # A thread that looks for neighbours once would be counted in one of the two runs and not in the other, now and then.
        environment = {**preload, "LD_LIBRARY_PATH": options.driver, "ATP_LOG": "off", "ATP_DISABLE": "neighbours", **more}
        few, many = (count([options.program, case, str(n)], environment) for n in (calls, 2 * calls))
        counted[name] = round((many - few) / calls)
    return counted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("program", "shim", "driver", "table", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("SKIPPED: there is no valgrind here")
        return SKIPPED
    table = {}
    if os.path.exists(options.table):
        with open(options.table, encoding="utf-8") as file:
            table = json.load(file)
    if not options.update and table.get("compiler") != options.compiler:
        print(f"SKIPPED: the table is for {table.get('compiler')}, this build is by {options.compiler}")
        return SKIPPED
    counted = measure(options)
    if options.update:
        with open(options.table, "w", encoding="utf-8") as file:
            json.dump({"compiler": options.compiler, "instructions": counted}, file, indent=2)
            file.write("\n")
    agreed = table.get("instructions", {}) if not options.update else counted
    wrong = 0
    for name, now in counted.items():
        then = agreed.get(name)
        ok = then is not None and then * FEWER <= now <= then * MORE
        wrong += not ok
        print(f"{'ok  ' if ok else 'WRONG'} {name}: {now} instructions, the table says {then}")
    if wrong:
        print("if on purpose: the same command with --update")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
