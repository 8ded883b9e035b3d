#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of a driver for look-up tests, from the CUDA toolkit's headers alone.

Lines: EXPORT(symbol) and ROW(name, version, flags, symbol), flags 2 = per-thread default stream.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'cmake'))
sys.dont_write_bytecode = True
import driver_symbols  # noqa: E402  (found by the line above)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--compiler', required=True, help='C compiler, for its preprocessor')
    parser.add_argument('--include', required=True, help='folder of cuda.h and cudaTypedefs.h')
    parser.add_argument('--output', required=True)
    parser.add_argument('--newest', type=int, default=10**9, help='leaves out what came in a later version')
    options = parser.parse_args()
    declared = driver_symbols.declarations(options.compiler, options.include)
    with open(options.output, 'w', encoding='utf-8') as output:
        for name, version, per_thread, symbol in driver_symbols.table(options.include, declared):
            if version <= options.newest:
                output.write(f'EXPORT({symbol})\nROW({name}, {version}, {2 if per_thread else 0}, {symbol})\n')


if __name__ == '__main__':
    main()
