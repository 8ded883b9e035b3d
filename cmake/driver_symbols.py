# SPDX-License-Identifier: Apache-2.0
"""What the CUDA toolkit's headers say of the driver's symbols. Read at build time, by the simulated driver and by the look-up tests.

The toolkit's stub library would list the symbols too, but not every toolkit has it (PyPI's wheels have not).

How versions pair with symbols: cudaTypedefs.h names every (function, version); cuda.h, read with __CUDA_API_VERSION_INTERNAL, declares
every exported symbol. For each function and suffix, versions in rising order pair one to one with f, f_v2, f_v3 ... in rising order.
"""
import collections
import re
import subprocess
import sys
import tempfile

# Declared in cudaProfiler.h; their typedefs are in another header, which gives them this version.
PROFILER = {'cuProfilerInitialize': 4000, 'cuProfilerStart': 4000, 'cuProfilerStop': 4000}


def declarations(compiler, include):
    """Every exported symbol with its parameter list, from the preprocessed headers."""
    with tempfile.NamedTemporaryFile('w', suffix='.c') as source:
        source.write('#include <cuda.h>\n#include <cudaProfiler.h>\n')
        source.flush()
        text = subprocess.run(
            [compiler, '-E', '-P', '-D__CUDA_API_VERSION_INTERNAL', '-I', include, source.name],
            check=True, capture_output=True, text=True).stdout
    text = re.sub(r'\s+', ' ', text)
    return dict(re.findall(r'CUresult (cu[A-Z]\w*)\(([^;]*?)\);', text))


def split_symbol(symbol):
    """(function, number, suffix): cuMemFree_v2_ptsz -> ('cuMemFree', 2, '_ptsz')."""
    match = re.fullmatch(r'(cu\w+?)(?:_v(\d+))?(_pt[sd][sz])?', symbol)
    return match.group(1), int(match.group(2) or 1), match.group(3) or ''


def table(include, symbols):
    """Rows (function, version, per-thread, symbol). Ends the script when versions and symbols do not pair."""
    versions = collections.defaultdict(list)
    with open(include + '/cudaTypedefs.h', encoding='utf-8') as header:
        for name, version, suffix in re.findall(r'PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)\(',
                                                header.read()):
            versions[(name, suffix)].append(int(version))
    for name, version in PROFILER.items():
        versions[(name, '')].append(version)
    exported = collections.defaultdict(list)
    for symbol in symbols:
        name, number, suffix = split_symbol(symbol)
        exported[(name, suffix)].append((number, symbol))
    rows = []
    for key in sorted(set(versions) | set(exported)):
        old_to_new = sorted(set(versions.get(key, [])))
        names = [symbol for _, symbol in sorted(exported.get(key, []))]
        if len(old_to_new) != len(names):
            sys.exit(f'{key}: versions {old_to_new} do not pair with symbols {names}')
        rows += [(key[0], version, key[1] != '', symbol)
                 for version, symbol in zip(old_to_new, names)]
    return rows
