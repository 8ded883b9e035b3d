#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of the driver that names device memory, or launches work, is hooked or left alone by decision.

usage: decided.py --compiler CC --include FOLDER --hooks hooks.def --left left_alone.txt --unseen unseen.cc

Reads the toolkit's headers: a newer one with a function that nobody has thought about fails here. What atp doctor tells as
not intercepted (unseen.cc) must be left alone. Exit: 0 all decided, 1 not.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cmake'))
sys.dont_write_bytecode = True
import driver_symbols  # noqa: E402  (found by the line above)

MEMORY = re.compile(r'CUdeviceptr|CUDA_MEMCPY|CUDA_MEMSET|CUmemGenericAllocationHandle|CUmemoryPool|CUmemDecompressParams|'
                    r'CUstreamBatchMemOpParams|CUDA_LAUNCH_PARAMS|CUDA_RESOURCE_DESC')


def touches(symbol, parameters):
    return bool(MEMORY.search(parameters)) or symbol.startswith('cuLaunch') or symbol.startswith('cuGraphLaunch')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ('compiler', 'include', 'hooks', 'left', 'unseen'):
        parser.add_argument(f'--{name}', required=True)
    options = parser.parse_args()
    declared = driver_symbols.declarations(options.compiler, options.include)
    with open(options.hooks, encoding='utf-8') as file:
        hooked = set(re.findall(r'^HOOK\((\w+),', file.read(), re.MULTILINE))
    left = set()
    with open(options.left, encoding='utf-8') as file:
        for line in file:
            left.update(line.split('#')[0].split())
    wrong = [f'{symbol}({parameters})' for symbol, parameters in sorted(declared.items())
             if touches(symbol, parameters) and symbol not in hooked | left]
    with open(options.unseen, encoding='utf-8') as file:
        unseen = set(re.findall(r'"(cu[A-Z]\w*)"', file.read()))
    stale = sorted(name for name in left | unseen if name not in declared or name in hooked or name not in left)
    for line in wrong:
        print(f'neither hooked nor left alone by decision: {line}')
    for name in stale:
        print(f'left alone or unseen, but hooked, not in the headers, or not in the list: {name}')
    print(f'{len(hooked)} hooked, {len(left)} left alone, {len(wrong) + len(stale)} wrong')
    return 1 if wrong or stale else 0


if __name__ == '__main__':
    sys.exit(main())
