# SPDX-License-Identifier: Apache-2.0
"""Compares what frameworks of NVIDIA's runtime say with and without the preload library.  wheels.py BUILD_FOLDER WHEELS_FOLDER NAME...

Each framework is imported four times (wheel_probe.py): on this machine as it is and on the simulated machine, where NVIDIA's runtime does not
start, each without and with the library. Python's own warnings are left out: it does not print them the same way each time. Exit: 0 the same each time, 1 not.
"""

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__).with_name("wheel_probe.py")
TIMEOUT_S = 600


def normalised(text):
    """Without what differs from run to run: process ids, addresses, times and durations."""
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", "TIME", text)
    text = re.sub(r"\b[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+", "TIME", text)
    return re.sub(r"\b[EWI]0000 \d{2}:\d\d:\d\d\.\d+ +\d+|\b\d{10}\.\d+ +\d+", "TIME", text).splitlines()


def imported(build, wheels, name, simulated, with_shim):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ATP_", "LD_"))}
    if simulated:
        environment.update(LD_LIBRARY_PATH=str(build / "lib/sim"), ATP_SIM_GPU="a100-40g")
    if with_shim:
        environment["LD_PRELOAD"] = str(build / "lib/libatpshim.so")
    done = subprocess.run([wheels / name / "bin/python", "-W", "ignore", PROBE, name], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return [f"exit code {done.returncode}", *normalised(done.stdout), *normalised(done.stderr)]


def main():
    build, wheels = Path(sys.argv[1]), Path(sys.argv[2])
    different = 0
    for name in sys.argv[3:]:
        for simulated in (False, True):
            without, with_shim = (imported(build, wheels, name, simulated, shim) for shim in (False, True))
            where = "simulated machine" if simulated else "this machine"
            same = without == with_shim
            different += not same
            print(f"{name}, {where}: {'same' if same else 'DIFFERENT'}, {len(without)} lines")
            for line in without[:4] if same else difflib.unified_diff(without, with_shim, "without", "with", lineterm=""):
                print(f"    {line}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
