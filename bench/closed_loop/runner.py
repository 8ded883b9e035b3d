# SPDX-License-Identifier: Apache-2.0
"""Runs one example program on the simulated machine, and reads what the program, the shim's log and the machine say.

All times are virtual: they come from the program's own CUDA events and depend neither on this computer nor on its load.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

MIB = 1 << 20
PLAN = re.compile(r"device \d+: plan \d+: period of (\d+) launches")
GIVEN_UP = re.compile(r"(?:no hints from now on|no plan for a phase of \d+ launches): (.*)")
PLANNING = re.compile(r"device \d+: .* plans in (\S+) ms of the processor")
STEP = re.compile(r"^(?:iter|pass|step|token) +\d+ ")
MILLISECONDS = re.compile(r" ms +(\S+)")


class BenchError(Exception):
    pass


@dataclass(frozen=True)
class Machine:
    """A simulated card: whose costs, how much memory, and how many times as long kernels take as on that card.

    Programs get all of the memory (the cost `reserved` is 0), so that it is the memory of the bounds."""

    gpu: str
    memory: int
    kernel_scale: float = 1.0
    costs: tuple = ()       # further "name=value" for ATP_SIM_SET

    def environment(self, base_costs):
        settings = ["reserved=0", *self.costs]
        if self.kernel_scale != 1:
            # Everything that bounds the time of a kernel besides its launch (sim/machine/roofline.h).
            settings += [f"{name}={base_costs[name] / self.kernel_scale:.9g}" for name in ("issue_efficiency", "l2", "dram")]
            settings.append(f"row_open={base_costs['row_open'] * self.kernel_scale:.9g}")
        return {"ATP_SIM_GPU": self.gpu, "ATP_SIM_MEMORY": str(self.memory), "ATP_SIM_SET": ",".join(settings)}


@dataclass
class Run:
    iteration_ms: list = field(default_factory=list)
    outputs: list = field(default_factory=list)  # every line of results, without times
    plans: list = field(default_factory=list)    # (iteration in which it was adopted, launches of its period)
    planning_ms: float = 0                       # of the processor, for all plans
    given_up: str = ""                           # why the shim stopped giving hints
    footprint: int = 0
    stats: dict = field(default_factory=dict)

    kernel_faults: list = field(default_factory=list)  # page faults of each kernel, in order

    def lock_iteration(self):
        """The iteration in which the period that the program ended with was first planned; None without one."""
        if self.given_up or not self.plans:
            return None
        final = self.plans[-1][1]
        return next(iteration for iteration, length in self.plans if length == final)


def parse(text):
    """`text` is stdout and stderr through one pipe, so a line of the shim stands in the iteration that it belongs to."""
    run = Run()
    for line in text.splitlines():
        if found := PLAN.search(line):
            run.plans.append((len(run.iteration_ms) + 1, int(found[1])))
            run.given_up = ""  # that was another phase
        elif found := PLANNING.search(line):
            run.planning_ms += float(found[1])
        elif found := GIVEN_UP.search(line):
            run.given_up = found[1]
        elif line.startswith(("atpshim[", "libcuda (simulated)")):
            continue
        elif STEP.match(line):
            run.iteration_ms.append(float(MILLISECONDS.search(line)[1]))
            run.outputs.append(MILLISECONDS.sub("", line))
        elif found := re.match(r"footprint (\d+) bytes", line):
            run.footprint = int(found[1])
        else:
            run.outputs.append(line)
    return run


class Runner:
    def __init__(self, build, folder, threads=1):
        self.build, self.folder, self.threads = build, folder, threads
        self.costs, self.hooks = {}, None
        folder.mkdir(parents=True, exist_ok=True)

    def base_costs(self, gpu):
        if gpu not in self.costs:
            self.costs[gpu] = read_costs(self.build, gpu)
        return self.costs[gpu]

    def hook_ms(self, launches, fits):
        """What the hooks of so many launches take of the processor, as measured here and now."""
        if self.hooks is None:
            done = subprocess.run([str(self.build / "bin/bench/hook_overhead"), "--json", "--quick"], capture_output=True, text=True, check=True)
            self.hooks = json.loads(done.stdout)["launch_ns"]
        return launches * (self.hooks["fits" if fits else "oversubscribed"] - self.hooks["none"]) * 1e-6

    def run(self, name, command, machine, policy, trace=None, modelled=False, ranks=1, further=()):
        """One process, or the first of `ranks`. `further`: settings. Leaves NAME.log, NAME.stats.json and, under a policy, NAME.timeline.json in the folder.

        `modelled`: launches that repeat an earlier one take their time and compute nothing, so results mean nothing (docs/sim.md)."""
        stats, timeline = self.folder / f"{name}.stats.json", self.folder / f"{name}.timeline.json"
        stats.unlink(missing_ok=True)
        settings = {
            **machine.environment(self.base_costs(machine.gpu)), "ATP_SIM_STATS": str(stats), "ATP_POLICY": policy,
            "ATP_SOCKET": "off", "ATP_EXPORTERS": "off", "ATP_LOG": "info",
            "ATP_SIM_THREADS": str(self.threads), "LD_LIBRARY_PATH": str(self.build / "lib/sim"),
        }
        if modelled:
            settings["ATP_SIM_MODEL"] = "repeats"
        if policy != "off":
            settings.update(LD_PRELOAD=str(self.build / "lib/libatpshim.so"), ATP_SIM_TIMELINE=str(timeline))
        if ranks > 1:
            settings["ATP_SIM_DEVICES"] = str(ranks)
        settings.update(further)
        own = {"ATP_SIM_STATS", "ATP_SIM_TIMELINE"}  # of the process that is measured
        others = {**clean_environment(), **{key: value for key, value in settings.items() if key not in own}}
        if trace:
            settings["ATP_SIM_TRACE"] = str(trace)
        words = [str(self.build / "bin/examples" / command[0]), *command[1:]]
        log = self.folder / f"{name}.log"
        logs = [log, *(self.folder / f"{name}.rank{rank}.log" for rank in range(1, ranks))]
        with tempfile.TemporaryDirectory() as folder:
            calls = [([*words, *of_rank(rank, ranks, folder)],
                      {**others, **cards_of(rank, ranks)} if rank > 0 else {**clean_environment(), **settings}) for rank in range(ranks)]
            codes = run_together([(call, environment, path) for (call, environment), path in zip(calls, logs)])
        said = log.read_text()
        shown = " ".join(f"{key}={value}" for key, value in settings.items())
        log.write_text(f"$ {shown} {' '.join(calls[0][0])}\n{said}exit code {codes[0]}\n")
        # 1 is a wrong result, as every result is where launches are modelled.
        if any(code != 0 and not (code == 1 and modelled) for code in codes):
            raise BenchError(f"{name}: exit codes {codes}: {said.strip().splitlines()[-1:]} ({log})")
        run = parse(said)
        run.stats = json.loads(stats.read_text())
        if policy != "off":
            run.kernel_faults = read_kernel_faults(timeline)
        return run

    def atp(self, *arguments):
        done = subprocess.run([str(self.build / "bin/atp"), *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"atp {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def bound(self, trace, memory):
        return json.loads(self.atp("bound", trace, "--memory", memory, "--json"))


def run_together(processes):
    """Exit codes of (words, environment, file for all output) run at the same time. When one fails, others may wait for it: they are ended."""
    started = []
    for words, environment, path in processes:
        with open(path, "w") as out:
            started.append(subprocess.Popen(words, env=environment, stdout=out, stderr=subprocess.STDOUT))
    if len(started) > 1:
        while any(process.poll() is None for process in started):
            if any(process.poll() not in (None, 0, 1) for process in started):
                for process in started:
                    process.terminate()
                break
            time.sleep(0.02)
    return [process.wait() for process in started]


def of_rank(rank, ranks, folder):
    """The first half of the ranks takes every other card; to the second half the rest is shown in reverse (cards_of)."""
    half = (ranks + 1) // 2
    device = 2 * rank if rank < half else rank - half
    return [] if ranks == 1 else ["--ranks", str(ranks), "--rank", str(rank), "--device", str(device), "--meet", f"{folder}/meet"]


def cards_of(rank, ranks):
    odd = range(1, ranks, 2)
    return {} if rank < (ranks + 1) // 2 else {"CUDA_VISIBLE_DEVICES": ",".join(str(card) for card in reversed(odd))}


def read_kernel_faults(timeline):
    return [json.loads(line.rstrip(",\n"))["args"]["faults"] for line in open(timeline) if '"tid":"kernels"' in line]


def command_of(log, iterations):
    """(environment, words) of the run that a log is of, as often as asked for."""
    words = log.read_text(encoding="utf-8", errors="replace").splitlines()[0].removeprefix("$ ").split()
    environment = dict(os.environ)
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        if name not in ("ATP_SIM_STATS", "ATP_SIM_TIMELINE"):
            environment[name] = value
    for i, word in enumerate(words):
        if word in ("--iterations", "--passes", "--tokens"):
            words[i + 1] = str(iterations)
    return environment, words


def logs_of(folder, points):
    """Logs of the learned runs of these points, or of all in the folder."""
    logs = {log.name.removesuffix(".learned.log"): log for log in sorted(folder.glob("*.learned.log"))}
    if missing := [point for point in points if point not in logs] or ([] if logs else ["any point"]):
        sys.exit(f"no logs of {', '.join(missing)} in {folder}: run bin/bench/closed_loop first")
    return [logs[point] for point in points or logs]


def clean_environment():
    """The caller's environment without settings that would change a run."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ATP_") and key != "LD_PRELOAD"}


def read_costs(build, gpu):
    """The costs that scaling changes, from the table that the simulated machine itself is made of."""
    columns, costs = [], {}
    for line in (build / "bin/bench/closed_loop.d/costs.def").read_text().splitlines():
        if found := re.match(r"//   COST\(name, unit, description, source, (.*)\)", line):
            columns = [name.strip() for name in found[1].split(",")]
        elif line.startswith("COST("):
            name = line[5:line.index(",")]
            values = line[line.rindex('"') + 2:line.rindex(")")].split(",")
            costs[name] = float(values[columns.index(gpu)])
    if not costs:
        raise BenchError("no costs found: the table of the simulated machine has another form")
    return costs

