# SPDX-License-Identifier: Apache-2.0
"""One case on one machine: native for the truth, plain managed memory, learned; and what the bounds say."""

import json
import statistics
from dataclasses import dataclass

from cases import REGIMES
from runner import BenchError, Machine

BLOCK = 2 << 20
BIG_CARD = 64 << 30
LARGEST_SCALE = 1e4
CALIBRATION_ITERATIONS = 2


@dataclass(frozen=True)
class Point:
    case: object
    gpu: str
    oversubscription: float
    regime: str
    size: str
    iterations: int

    @property
    def name(self):
        return f"{self.case.name}-{self.gpu}-{self.oversubscription:g}-{self.regime}-{self.size}"


def card_for(footprint, oversubscription):
    return int(footprint / oversubscription) // BLOCK * BLOCK


def scaled_copy(period, scale, launch_us, target):
    """The trace of a step with each kernel's time, less its launch, multiplied: what a machine with slower kernels would show."""
    with open(target, "w") as out:
        for line in open(period):
            row = json.loads(line)
            if "launch" in row and not row["name"].startswith("mem"):
                row["us"] = launch_us + (row["us"] - launch_us) * scale
            out.write(json.dumps(row) + "\n")


def find_scale(runner, point, step, memory):
    """The factor on kernel times at which bound_safe / compute is what the regime asks for."""
    scaled = runner.folder / f"{point.name}.scaled.jsonl"
    launch_us = runner.base_costs(point.gpu)["kernel_launch"]

    def ratio(scale):
        scaled_copy(step, scale, launch_us, scaled)
        bound = runner.bound(scaled, memory)
        return bound["bound_safe_s"] / bound["compute_s"]

    # The ratio falls as kernels get slower. For "compute" the least scale at which the link hides.
    wanted = max(REGIMES[point.regime], 1.002)
    low, high = 1 / LARGEST_SCALE, LARGEST_SCALE
    for _ in range(20):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if ratio(middle) > wanted else (low, middle)
    scaled.unlink()
    return float(f"{high:.3g}")


def native(runner, point, scale, iterations):
    """Results, and the true trace of each step: the launches between the marks that a profiler would see."""
    trace = runner.folder / f"{point.name}.run.jsonl"
    run = runner.run(f"{point.name}.native", point.case.command(point.size, iterations), Machine(point.gpu, BIG_CARD, scale), "off",
                     trace=trace)
    marks = [json.loads(line) for line in open(trace) if line.startswith('{"mark"')]
    begins = [mark["at"] for mark in marks if mark["mark"] == "profiler start"]
    ends = [mark["at"] for mark in marks if mark["mark"] == "profiler stop"]
    if not len(begins) == len(ends) == iterations:
        raise BenchError(f"{point.name}: {len(begins)} steps in the trace, {iterations} were asked for")
    return run, trace, list(zip(begins, ends))


def cut_step(runner, point, trace, launches, name="step"):
    step = runner.folder / f"{point.name}.{name}.jsonl"
    runner.atp("convert", trace, step, "--launches", f"{launches[0]}:{launches[1]}")
    return step


def measure(runner, point):
    case, name = point.case, point.name
    truth, trace, steps = native(runner, point, 1.0, CALIBRATION_ITERATIONS)
    memory = card_for(truth.footprint, point.oversubscription)
    scale = find_scale(runner, point, cut_step(runner, point, trace, steps[-1]), memory)
    truth, trace, steps = native(runner, point, scale, point.iterations)
    step = cut_step(runner, point, trace, steps[-1])
    bound = runner.bound(step, memory)
    machine = Machine(point.gpu, memory, scale)
    command = case.command(point.size, point.iterations)
    managed = runner.run(f"{name}.managed", command, machine, "managed")
    learned = runner.run(f"{name}.learned", command, machine, "learned")
    lock = learned.lock_iteration()
    first = lock or case.learns
    if first >= point.iterations:
        raise BenchError(f"{name}: locked in iteration {first} of {point.iterations}: nothing is left to measure")
    # The machine is deterministic: a shorter run is the beginning of the longer one, and the difference is what came later.
    beginning = case.command(point.size, first)
    early = runner.run(f"{name}.learned-beginning", beginning, machine, "learned")
    early_managed = runner.run(f"{name}.managed-beginning", beginning, machine, "managed")
    if early.iteration_ms != learned.iteration_ms[:first]:
        raise BenchError(f"{name}: two runs of the same program differ")

    policy_ms = statistics.median(learned.iteration_ms[first:])
    managed_ms = statistics.median(managed.iteration_ms[first:])
    return {
        "case": case.name, "gpu": point.gpu, "oversubscription": point.oversubscription, "regime": point.regime,
        "periodic": case.periodic, "policy_ms": policy_ms, "bound_safe_ms": bound["bound_safe_s"] * 1e3,
        "bound_any_ms": bound["bound_any_s"] * 1e3, "managed_ms": managed_ms,
        "over_bound": policy_ms / (bound["bound_safe_s"] * 1e3), "over_managed": policy_ms / managed_ms,
        "lock_iteration": lock, "faults_after_lock": learned.faults() - early.faults(),
        "managed_faults": managed.faults() - early_managed.faults(),
        "identical": truth.outputs == managed.outputs == learned.outputs, "trace": str(step),
        # Beyond what was asked for: what one needs to understand a figure.
        "compute_ms": bound["compute_s"] * 1e3, "native_ms": statistics.median(truth.iteration_ms[first:]),
        "worst_ms": max(learned.iteration_ms[first:]), "iterations": point.iterations, "kernel_scale": scale,
        "card_bytes": memory, "footprint_bytes": truth.footprint, "given_up": learned.given_up,
        "discard_violations": learned.stats["discard_violations"], "size": point.size,
        "iteration_ms": learned.iteration_ms,
    }
