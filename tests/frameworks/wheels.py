# SPDX-License-Identifier: Apache-2.0
"""Compares what frameworks of NVIDIA's runtime do with and without the preload library.  wheels.py BUILD_FOLDER WHEELS_FOLDER NAME...

Each framework is imported (wheel_probe.py) on three machines: this one as it is; the simulated machine, on which NVIDIA's runtime does not start;
and a driver that answers look-ups and nothing else, and writes them down. On each without and with the library. Exit code, output and messages
must be the same, and so must the look-ups and calls of the driver, but for the library's own look-up of each function that it hooks. The environment
must be the same but for the variables of the framework's profile, and how the framework will then ask for memory must be what the profile is for.
`atp doctor` must name the framework. Python's own warnings are left out: it does not print them the same way each time. Exit: 0 as it should be, 1 not.
"""

import collections
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("wheel_probe.py")
TIMEOUT_S = 900
# What the profiles set, and how the framework then asks for memory: without the library, and with it.
PROFILES = {
    "torch": ({}, ["native", "native"]),
    "jax": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, ["default default", "cuda_async False"]),
    "tensorflow": ({"TF_GPU_ALLOCATOR": "cuda_malloc_async", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}, ["", ""]),
    "cupy": ({}, ["", ""]),
}
NAMES = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "cupy": "CuPy"}


@dataclass
class Outcome:
    lines: list
    memory: str = ""
    environment: dict = field(default_factory=dict)
    asked: collections.Counter = field(default_factory=collections.Counter)  # look-ups of the driver: name, version and flags
    calls: dict = field(default_factory=dict)  # of the simulated driver
    answered: dict = field(default_factory=dict)  # look-ups that the library answered with a hook, by way


def normalised(text):
    """Without what differs from run to run: process ids, addresses, times and durations."""
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", "TIME", text)
    text = re.sub(r"\b[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+", "TIME", text)
    return re.sub(r"\b\d{10}\.\d+ +\d+", "TIME", text).splitlines()


def counted(reports):
    total = collections.Counter()
    for report in reports:
        try:
            total.update(json.loads(report.read_text())["lookups"])
        except (ValueError, KeyError):
            pass  # of a process that was ended while it wrote
    return {way: count for way, count in total.items() if count}


class Comparison:
    def __init__(self, build, wheels, name):
        self.shim, self.atp = build / "lib/libatpshim.so", build / "bin/atp"
        self.machines = {
            "this machine": {},
            "simulated machine": {"LD_LIBRARY_PATH": str(build / "lib/sim"), "ATP_SIM_GPU": "a100-40g"},
            "driver of look-ups": {"LD_LIBRARY_PATH": str(build / "tests/preload/lookup/programs/driver")},
        }
        self.python = wheels / name / "bin/python"
        self.name, self.framework = name, name.split("-", maxsplit=1)[0]
        self.variables, self.memory = PROFILES[self.framework]
        hooks = (ROOT / "shim/hooks.def").read_text(encoding="utf-8")
        rows = re.findall(r"^HOOK\((.*)", hooks, re.M)
        self.hooked, self.own_look_ups = {row.split(",")[2].strip() for row in rows}, len(rows)
        self.problems = []

    def expect(self, true, problem):
        if not true:
            self.problems.append(problem)

    def run(self, machine, with_shim, **more):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("ATP_", "LD_", "XLA_", "JAX_", "TF_", "PYTORCH_", "CUPY_"))}
        environment.update(self.machines[machine], **more)
        with tempfile.TemporaryDirectory() as work:
            environment.update(TABLE_LOG=os.path.join(work, "asked"), ATP_SIM_STATS=os.path.join(work, "stats"))
            environment["HOME"] = work  # what a first start writes there is not there at any start
            if with_shim:
                environment.update(LD_PRELOAD=str(self.shim), ATP_REPORT=os.path.join(work, "%p.json"))
            done = subprocess.run([self.python, "-W", "ignore", PROBE, self.name], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            asked = Path(work, "asked")
            rows = asked.read_text(encoding="ascii").splitlines() if asked.exists() else []
            stats = Path(work, "stats")
            calls = json.loads(stats.read_text(encoding="ascii"))["calls"] if stats.exists() else {}
            answered = counted(Path(work).glob("*.json"))
        out = done.stdout.splitlines()
        seen = json.loads(out.pop()) if out and out[-1].startswith("{") else {}
        for variable in ("LD_PRELOAD", "ATP_REPORT", "TABLE_LOG", "HOME", "ATP_SIM_STATS"):
            seen.pop(variable, None)
        memory = " ".join(line[len("memory "):] for line in out if line.startswith("memory "))
        out = [line for line in out if not line.startswith("memory ")]
        lines = [f"exit code {done.returncode}", *normalised("\n".join(out)), *(line.replace(work, "HOME") for line in normalised(done.stderr))]
        return Outcome(lines, memory, seen, collections.Counter(rows), calls, answered)

    def compare(self, machine):
        without, shimmed = self.run(machine, False), self.run(machine, True)
        same = without.lines == shimmed.lines
        self.expect(same, f"{machine}: other outcome")
        changed = set(without.environment.items()) ^ set(shimmed.environment.items())
        self.expect(changed == set(self.variables.items()), f"{machine}: the environment differs by {changed}")
        self.expect([without.memory, shimmed.memory] == self.memory, f"{machine}: memory {without.memory!r}, with the library {shimmed.memory!r}")
        more = shimmed.asked - without.asked
        self.expect(not without.asked - shimmed.asked, f"{machine}: the driver was asked for less")
        self.expect({row.split("\t")[0] for row in more} <= self.hooked, f"{machine}: the driver was asked for more: {more}")
        expected = dict(without.calls)
        if shimmed.calls:
            expected["cuGetProcAddress_v2"] = without.calls.get("cuGetProcAddress_v2", 0) + self.own_look_ups
        self.expect(shimmed.calls == expected, f"{machine}: calls of the driver {shimmed.calls}, without the library {without.calls}")
        look_ups = without.asked.total() or without.calls.get("cuGetProcAddress_v2", 0)
        calls = sum(without.calls.values()) - without.calls.get("cuGetProcAddress_v2", 0)
        print(f"{self.name}, {machine}: {'same' if same else 'DIFFERENT'}, {len(without.lines)} lines, {look_ups} look-ups through the driver, {calls} other calls of it; "
              f"hooks answered: {shimmed.answered or 'none'}")
        for line in without.lines[:6] if same else difflib.unified_diff(without.lines, shimmed.lines, "without", "with", lineterm=""):
            print(f"    {line[:200]}")

    def ask_doctor(self):
        done = subprocess.run([self.atp, "doctor", "--json", "--sim", "tiny", "--", self.python, "-c", f"import {self.framework}"],
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        found = {row["name"]: row for row in json.loads(done.stdout)["program"]["frameworks"]}
        named = NAMES[self.framework]
        self.expect(found.get(named, {}).get("recognised_by") == "command", f"atp doctor recognises {list(found)}")
        self.expect(found.get(named, {}).get("sets") == self.variables, "atp doctor tells of other variables")

    def choose_asynchronous_backend(self):
        native, chosen = self.run("this machine", False), self.run("this machine", True, ATP_FRAMEWORK="torch-async")
        self.expect(chosen.memory == "cudaMallocAsync", f"torch-async gives {chosen.memory!r}")
        self.expect(chosen.lines == native.lines, f"torch-async has another outcome: {chosen.lines}")

    def all(self):
        for machine in self.machines:
            self.compare(machine)
        self.ask_doctor()
        if self.framework == "torch":
            self.choose_asynchronous_backend()
        for problem in self.problems:
            print(f"WRONG {self.name}: {problem}")
        return not self.problems


def main():
    build, wheels = (Path(argument).resolve() for argument in sys.argv[1:3])
    return 0 if all([Comparison(build, wheels, name).all() for name in sys.argv[3:]]) else 1


if __name__ == "__main__":
    sys.exit(main())
