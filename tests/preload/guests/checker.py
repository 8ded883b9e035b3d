#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The libraries that compute-sanitizer preloads into its target, before us and behind us.

usage: checker.py --wheels checker.txt --cache FOLDER --guest FILE --driver FOLDER --shim FILE

The checker itself needs NVIDIA's driver; what it preloads does not, and stands in front of the same functions as we do
(exec, dlopen). The guest, on the driver that does nothing, must print and answer the same in either order as without us.
Exit: 0 as it should be, 1 not, 77 skipped: PyPI cannot be reached.
"""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import wheels  # noqa: E402  (found by the line above)

SKIPPED = 77
PRELOADED = r"lib(TreeLauncherTargetInjection|TreeLauncherTargetUpdatePreloadInjection|InterceptorInjectionTarget)\.so"


def run(options, way, preloaded):
    folders = [options.driver, *(os.path.dirname(library) for library in preloaded)]  # they need each other
    environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": ":".join(folders), "LD_PRELOAD": ":".join(preloaded)}
    done = subprocess.run([options.guest, way], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("wheels", "cache", "guest", "driver", "shim"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    folders = wheels.fetch(options.wheels, options.cache)
    if folders is None:
        print("SKIPPED: compute-sanitizer cannot be fetched from PyPI")
        return SKIPPED
    libraries = [path for folder in folders.values() for path in wheels.files(folder, PRELOADED)]
    wrong = 0 if len(libraries) == 3 else 1
    for library in libraries:
        for way in ("use", "exec", "threads", "fork-before", "dlclose"):
            native = run(options, way, [library])
            for order in ([library, options.shim], [options.shim, library]):
                with_shim = run(options, way, order)
                if with_shim != native or native[0] != 0:
                    print(f"WRONG {os.path.basename(library)}, {way}: {native} became {with_shim} with {order}")
                    wrong += 1
    print(f"{len(libraries)} libraries, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
