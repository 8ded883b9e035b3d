#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of a driver for look-up tests, from the CUDA toolkit alone: exported names from its stub library, versions from cudaTypedefs.h.
For each name and suffix (_ptsz, _ptds) the versions, sorted, pair with the exported name, name_v2, name_v3..., sorted.

usage: make_table.py --include DIR --stub libcuda.so --output FILE [--newest VERSION]
Lines: EXPORT(symbol) and ROW(name, version, flags, symbol), flags 2 = per-thread default stream. --newest leaves out what came later.
"""
import argparse
import re
import subprocess


def split(symbol):
    suffix = re.search(r"_pt[sd][sz]$", symbol)
    suffix = suffix.group(0) if suffix else ""
    base = symbol[: len(symbol) - len(suffix)]
    version = re.search(r"_v(\d+)$", base)
    if version:
        return base[: version.start()], suffix, int(version.group(1))
    return base, suffix, 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True)
    parser.add_argument("--stub", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--newest", type=int, default=10**9)
    options = parser.parse_args()

    listing = subprocess.run(["nm", "-D", "--defined-only", options.stub], check=True, capture_output=True, text=True).stdout
    exports = {}
    for symbol in re.findall(r" T (cu[A-Z]\w*)", listing):
        base, suffix, number = split(symbol)
        exports.setdefault((base, suffix), []).append((number, symbol))
    versions = {}
    text = open(options.include + "/cudaTypedefs.h").read()
    for base, version, suffix in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)", text):
        versions.setdefault((base, suffix), set()).add(int(version))

    with open(options.output, "w") as output:
        for key, symbols in sorted(exports.items()):
            numbers = sorted(versions.get(key, []))
            rows = list(zip(numbers, [symbol for _, symbol in sorted(symbols)]))
            if numbers and len(rows) != len(symbols):
                raise SystemExit(f"{key}: {numbers} does not pair with {symbols}")
            for version, symbol in rows or [(4000, symbols[0][1])]:  # the profiler's functions have no typedef
                if version <= options.newest:
                    output.write(f"EXPORT({symbol})\n")
                    output.write(f"ROW({key[0]}, {version}, {2 if key[1] else 0}, {symbol})\n")


if __name__ == "__main__":
    main()
