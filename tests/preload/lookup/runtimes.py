#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Start-up look-ups of NVIDIA's own runtime libraries, one by one, with and without the shim.

usage: runtimes.py --driver FOLDER --shim FILE --hooks hooks.def --wheels runtimes.txt --cache FOLDER --compiler CC
       runtimes.py --driver FOLDER --shim FILE --hooks hooks.def --program FILE... --libraries FOLDER

Each runtime is loaded, or is in a program that is run (the toolkit's own, shared and static; and where a wheel brings a
static one, a program is linked with it here), and asked for the number of devices, on a driver that only answers look-ups.
It asks for its some 400 functions, finds that the driver does nothing, and gives up: that is expected, and must be the same
with the shim. What the driver was asked must be the same too; and for each of these look-ups the answer with the shim must
have the same status, and be the shim's function of the very symbol where that is hooked, else the driver's own.

Wheels come from PyPI once, into the cache. Exit: 0 as it should be, 1 not, 77 skipped: PyPI cannot be reached.
"""
import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import wheels  # noqa: E402  (found by the line above)

SKIPPED = 77
PROGRAM = r"""
#include <stdio.h>
int cudaGetDeviceCount(int*);
int main(void) {
  int count = -1;
  printf("error %d\n", cudaGetDeviceCount(&count));
  return 0;
}
"""


class DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def start_runtime(path):
    """In a child: prints what the runtime says of the devices."""
    runtime = ctypes.CDLL(path)
    count = ctypes.c_int(-1)
    print(runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value)


def answer_lookups(log):
    """In a child: prints for each look-up in the log its result, status, and the symbol and object of the answer."""
    driver = ctypes.CDLL("libcuda.so.1")
    dladdr = ctypes.CDLL(None).dladdr
    for line in open(log, encoding="ascii"):
        name, version, flags = line.rstrip("\n").split("\t")
        function, status, info = ctypes.c_void_p(), ctypes.c_int(-1), DlInfo()
        result = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(function), int(version),
                                            ctypes.c_uint64(int(flags)), ctypes.byref(status))
        symbol = where = ""
        if function.value and dladdr(function, ctypes.byref(info)):
            symbol, where = info.symbol.decode(), os.path.basename(info.file.decode())
        print(name, version, flags, result, status.value, symbol, where, sep="\t")


def run(command, options, shim, more=()):
    environment = {"PATH": os.environ.get("PATH", ""), **dict(more),
                   "LD_LIBRARY_PATH": f"{options.driver}:{options.libraries}"}
    if shim:
        environment["LD_PRELOAD"] = options.shim
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def in_child(mode, argument):
    return [sys.executable, os.path.abspath(__file__), mode, argument]


def compare(version, command, options, hooked, work):
    """Problems of one runtime, which the command starts."""
    problems, logs, said = [], {}, {}
    for shim in (False, True):
        log = os.path.join(work, f"{version}.{shim}")
        said[shim] = run(command, options, shim, {"TABLE_LOG": log}.items())
        logs[shim] = open(log, encoding="ascii").read()
    if said[True] != said[False]:
        problems.append(f"says {said[True]!r}, without the shim {said[False]!r}")
    # Before the first of them the shim asks for its own rows, once.
    if not logs[True].endswith(logs[False]) or logs[True].count("\n") - logs[False].count("\n") != len(hooked):
        problems.append("asks the driver for something else than without the shim")
    native, with_shim = (run(in_child("--answer", os.path.join(work, f"{version}.False")), options, shim).splitlines()
                         for shim in (False, True))
    count = hooks = 0
    for before, after in zip(native, with_shim, strict=True):
        *question, symbol, where = before.split("\t")
        expected = "\t".join([*question, symbol, os.path.basename(options.shim) if symbol in hooked else where])
        count += 1
        hooks += symbol in hooked
        if after != expected:
            problems.append(f"{before!r} became {after!r}")
    print(f"runtime {version}: {count} look-ups, {hooks} of them hooked, says {said[False].strip()}")
    if count < 100 or hooks < 50:
        problems.append("did not look up what a runtime looks up")
    return problems


def link_static(compiler, archive, program):
    """A program that has the runtime linked in."""
    subprocess.run([compiler, "-x", "c", "-", "-x", "none", archive, "-o", program, "-lpthread", "-ldl", "-lrt"],
                   input=PROGRAM, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("driver", "shim", "hooks"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--wheels")
    parser.add_argument("--cache")
    parser.add_argument("--compiler", default="cc", help="C compiler")
    parser.add_argument("--program", action="append", default=[], help="has a runtime of its own")
    parser.add_argument("--libraries", default="", help="where the programs' shared runtime is")
    options = parser.parse_args()
    folders = wheels.fetch(options.wheels, options.cache) if options.wheels else {}
    if folders is None:
        print("SKIPPED: NVIDIA's runtime libraries of older toolkits cannot be fetched from PyPI")
        return SKIPPED
    commands = {os.path.basename(program): [program] for program in options.program}
    for version, folder in folders.items():
        commands.update((version, in_child("--start", path)) for path in wheels.files(folder, r"libcudart\.so\.[\d.]+"))
    with open(options.hooks, encoding="utf-8") as file:
        hooked = set(re.findall(r"^HOOK\((\w+),", file.read(), re.MULTILINE))
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        for version, folder in folders.items():
            for archive in wheels.files(folder, r"libcudart_static\.a"):
                program = os.path.join(work, f"static-{version}")
                link_static(options.compiler, archive, program)
                commands[f"{version} static"] = [program]
        for version, command in sorted(commands.items()):
            for problem in compare(version, command, options, hooked, work):
                print(f"WRONG runtime {version}: {problem}")
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--start"]:
        start_runtime(sys.argv[2])
    elif sys.argv[1:2] == ["--answer"]:
        answer_lookups(sys.argv[2])
    else:
        sys.exit(main())
