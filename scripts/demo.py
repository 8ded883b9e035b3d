# SPDX-License-Identifier: Apache-2.0
"""The demo behind demo.sh: runs bin/examples/train_transformer on simulated cards and compares.  demo.py [--json] BUILD_FOLDER

All times are virtual: they come from the program's own CUDA events, on a machine with a clock of its own, and do not depend on this computer.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

GPU = "tiny"
CARD = 256 << 20       # two thirds of what the program needs
BIG_CARD = 1 << 30     # large enough: where the identical results and the true trace come from
ITERATIONS = 10
WARM_UP = 6            # iterations in which the shim still learns; left out of the median
PROGRAM = ["--layers", "2", "--width", "1024", "--heads", "8", "--batch", "1", "--iterations", str(ITERATIONS)]
MIB = 1 << 20


@dataclass
class Run:
    status: str
    message: str = ""
    iteration_ms: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    checksum: str = ""
    stats: dict = field(default_factory=dict)

    def ms_per_iteration(self):
        return statistics.median(self.iteration_ms[WARM_UP:])

    def outputs(self):
        return self.losses, self.checksum


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run_program(build, folder, name, policy, card, trace=None):
    """One training run under `atp run`; its figures are those that the program and the simulated machine report."""
    say(f"{name}: training on a card of {card // MIB} MiB ...")
    stats = folder / f"{name}.json"
    environment = dict(os.environ, ATP_SIM_STATS=str(stats), ATP_SOCKET="off")  # every run is a first one
    if trace:
        environment["ATP_SIM_TRACE"] = str(trace)
    command = [build / "bin/atp", "run", "--sim", GPU, "--sim-memory", str(card), "--policy", policy,
               "--", build / "bin/examples/train_transformer", *PROGRAM]
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    run = parse_output(done)
    if stats.exists():
        run.stats = json.loads(stats.read_text())
    say(f"{name}: {run.status}" + (f", {run.message}" if run.message else ""))
    return run


def parse_output(done):
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip().splitlines()[-1:]
        out_of_memory = any("out of memory" in line for line in message)
        return Run("out_of_memory" if out_of_memory else f"exit code {done.returncode}", *message)
    run = Run("ok")
    for line in done.stdout.splitlines():
        if found := re.match(r"iter +\d+ +loss +(\S+) +ms +(\S+)", line):
            run.losses.append(found[1])
            run.iteration_ms.append(float(found[2]))
        elif found := re.match(r"checksum +(\S+)", line):
            run.checksum = found[1]
    return run


def bounds(build, trace):
    """The two lower bounds on one period of the program, from what its launches really touched."""
    say("bounds: from the trace of what each launch touched ...")
    done = subprocess.run([str(build / "bin/atp"), "bound", str(trace), "--memory", str(CARD), "--json"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {done.stderr.strip()}")
    return json.loads(done.stdout)


def moved(run, direction):
    """Managed and copied bytes over the link in MiB, over the whole run."""
    return sum(run.stats["bytes"][direction].values()) / MIB


def print_table(native, learned_and_managed, big, safe_ms, any_ms, identical):
    head = f"{'':26}{'status':>15}{'ms/iteration':>14}{'in MiB':>9}{'out MiB':>9}{'faults':>9}{'last loss':>12}  {'checksum':18}{'/ bound_safe':>12}"
    print(head)
    print(f"{'native':26}{native.status:>15}    {native.message}")
    for name, run in [*learned_and_managed, ("native, big enough card", big)]:
        ms = run.ms_per_iteration()
        over = f"{ms / safe_ms:12.3f}" if run is not big else ""
        print(f"{name:26}{run.status:>15}{ms:14.3f}{moved(run, 'h2d'):9.0f}{moved(run, 'd2h'):9.0f}"
              f"{run.stats['faults']['gpu']:9}{run.losses[-1]:>12}  {run.checksum:18}{over}")
    print(f"{'bound_safe':41}{safe_ms:14.3f}   no policy that keeps to safe moves is faster")
    print(f"{'bound_any':41}{any_ms:14.3f}   no policy without recomputation is faster")
    print(f"losses and weights identical to the bit: {'yes' if identical else 'NO'}")


def figures(run):
    return {"ms_per_iteration": run.ms_per_iteration(), "faults": run.stats["faults"]["gpu"], "checksum": run.checksum}


def main():
    arguments = [word for word in sys.argv[1:] if word != "--json"]
    build = Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        trace = folder / "trace.jsonl"
        # The longest first. Each run is a process of its own with a clock of its own, so they may share the computer.
        started = {
            "managed": pool.submit(run_program, build, folder, "managed", "managed", CARD),
            "learned": pool.submit(run_program, build, folder, "learned", "learned", CARD),
            "big": pool.submit(run_program, build, folder, "big card", "off", BIG_CARD, trace),
            "native": pool.submit(run_program, build, folder, "native", "off", CARD),
        }
        runs = {key: future.result() for key, future in started.items()}
        for key in ("managed", "learned", "big"):
            if runs[key].status != "ok":
                sys.exit(f"error: the {key} run ended with {runs[key].status}: {runs[key].message}")
        bound = bounds(build, trace)
    native, managed, learned, big = (runs[key] for key in ("native", "managed", "learned", "big"))
    identical = managed.outputs() == learned.outputs() == big.outputs()
    if "--json" in sys.argv:
        print(json.dumps({"native": {"status": native.status}, "managed": figures(managed), "learned": figures(learned),
                          "bound_safe": {"ms_per_iteration": bound["bound_safe_s"] * 1e3},
                          "bound_any": {"ms_per_iteration": bound["bound_any_s"] * 1e3}, "outputs_identical": identical}))
    else:
        print_table(native, [("managed memory", managed), ("LD_PRELOAD=libatpshim.so", learned)], big,
                    bound["bound_safe_s"] * 1e3, bound["bound_any_s"] * 1e3, identical)


if __name__ == "__main__":
    main()
