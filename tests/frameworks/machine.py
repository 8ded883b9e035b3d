# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs on the simulated machine, with the preload library and without. For the tests of this folder.

The environment names what was built: ATP_BUILD, the build folder; the interpreter is the one that runs the test. A program gets no variable of
the caller's that could change what is measured (CUDA_*, ATP_*, LD_*), and a cache of its own below the build folder.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["ATP_BUILD"])
EXAMPLES = ROOT / "examples"
GPU = "tiny"
BIG_CARD = 1 << 30
SCRATCH = tempfile.TemporaryDirectory(prefix="frameworks-", dir=BUILD)  # goes with the process
TIMEOUT_S = 900  # a program that hangs ends the test; nothing depends on it otherwise


@dataclass
class Run:
    code: int
    out: str
    err: str
    stats: dict = field(default_factory=dict)
    trace: Path = None

    def must_succeed(self):
        if self.code != 0:
            raise AssertionError(f"exit code {self.code}\n{self.out}\n{self.err}")
        return self


def clean_environment():
    foreign = ("CUDA", "ATP_", "LD_", "NUMBA", "DEV", "JIT")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    kept["XDG_CACHE_HOME"] = str(BUILD / "frameworks-cache")
    return kept


def run(*command, card=BIG_CARD, policy=None, trace=False, **environment):
    """One run; `policy` is the shim's, None runs the program without the shim."""
    folder = Path(tempfile.mkdtemp(dir=SCRATCH.name))
    stats, trace_file = folder / "stats.json", folder / "trace.jsonl"
    environment = {**clean_environment(), **environment, "ATP_SIM_STATS": str(stats)}
    if trace:
        environment["ATP_SIM_TRACE"] = str(trace_file)
    command = [sys.executable, *command]
    if policy:
        command = [BUILD / "bin/atp", "run", "--sim", GPU, "--sim-memory", card, "--policy", policy, "--", *command]
    else:
        environment.update(LD_LIBRARY_PATH=str(BUILD / "lib/sim"), ATP_SIM_GPU=GPU, ATP_SIM_MEMORY=str(card))
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    result = Run(done.returncode, done.stdout, done.stderr, trace=trace_file)
    if stats.exists():
        result.stats = json.loads(stats.read_text())
    return result


def side_by_side(runs):
    """Runs {name: function} at once, as many as there are cores: each is a process with a clock of its own."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {name: pool.submit(function) for name, function in runs.items()}
        return {name: future.result() for name, future in started.items()}


def footprint(trace):
    """The most bytes of device memory that the program held at once."""
    sizes, live, most = {}, 0, 0
    with trace.open() as lines:
        for line in lines:
            row = json.loads(line)
            if "alloc" in row:
                sizes[row["alloc"]] = row["bytes"]
                live += row["bytes"]
                most = max(most, live)
            elif "free" in row:
                live -= sizes.pop(row["free"])
    return most


def bound_safe_ms(trace, card):
    done = subprocess.run([str(BUILD / "bin/atp"), "bound", str(trace), "--memory", str(card), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"atp bound: {done.stderr}")
    return json.loads(done.stdout)["bound_safe_s"] * 1e3
