# SPDX-License-Identifier: Apache-2.0
"""One case on one machine: native for the truth, plain managed memory, learned; and what the bounds say."""

import json
import random
import statistics
import threading
from dataclasses import dataclass, replace

from cases import REGIMES
from pinning import hidden_step_ms, pinned_step_ms
from runner import BenchError, Machine

BLOCK = 2 << 20
BIG_CARD = 64 << 30
LARGEST_SCALE = 1e4
MANAGED_AFTER = 2  # iterations of plain managed memory that are measured, at figures' size; they are all alike


@dataclass(frozen=True)
class Point:
    case: object
    gpu: str
    oversubscription: float
    regime: str
    size: str
    iterations: int
    band: str = ""          # a point of the band of costs (BAND); "" = the profile's own

    @property
    def name(self):
        band = f"-{self.band}" if self.band else ""
        return f"{self.case.name}-{self.gpu}-{self.oversubscription:g}-{self.regime}-{self.size}{band}"

    @property
    def command(self):
        return self.case.command(self.size, self.iterations, self.oversubscription)

    @property
    def modelled(self):
        return self.size == "full" and self.case.modelled

    @property
    def fits(self):
        return self.oversubscription <= 1


# What nobody has published is assumed in the costs: conclusions must hold for half and twice of it. Factors on costs; a value in a list is
# the cost itself.
FAULT = ("fault_batch", "fault", "block_service", "replay")
LINK = ("h2d", "d2h", "h2d_duplex", "d2h_duplex")
BAND = {
    "faults-half": dict.fromkeys(FAULT, 0.5), "faults-twice": dict.fromkeys(FAULT, 2),
    "evict-half": {"evict": 0.5}, "evict-thrice": {"evict": 3},
    "host-map-half": {"host_map": 0.5}, "host-map-twice": {"host_map": 2},
    "link-0.8": dict.fromkeys(LINK, 0.8), "duplex-0.9": {"h2d_duplex": "0.9 h2d", "d2h_duplex": "0.9 d2h"},
    "host-fragmented": {"f2m": [0]}, "touch-elided": {"touch_elided": [1]},
}


def band_costs(base, band):
    """Settings of a band point, as the simulated machine takes them."""
    def value(name, change):
        if isinstance(change, list):
            return change[0]
        if isinstance(change, str):
            factor, other = change.split()
            return float(factor) * base[other]
        return change * base[name]
    return tuple(f"{name}={value(name, change):.9g}" for name, change in BAND.get(band, {}).items())


def card_for(footprint, oversubscription):
    return int(footprint / oversubscription) // BLOCK * BLOCK


class Truths:
    """Native runs on a card that is large enough: results, and the true trace of each step. One for all points of a case and GPU."""

    def __init__(self, runner):
        self.runner, self.known, self.lock = runner, {}, threading.Lock()

    def of(self, point):
        key = (point.gpu, point.band, *point.command)
        with self.lock:
            mine = self.known.setdefault(key, {"lock": threading.Lock()})
        with mine["lock"]:
            if "truth" not in mine:
                mine["truth"] = native(self.runner, point, 1.0)
        return mine["truth"]


def native(runner, point, scale):
    """The run, its trace, and the launches of each step: those between the marks that a profiler would see."""
    grown = f"-{point.oversubscription:g}" if point.case.grown(point.size, point.oversubscription) else ""
    name = f"{point.case.name}-{point.gpu}-{point.size}{grown}" + (f"-x{scale:g}" if scale != 1 else "") + (f"-{point.band}" if point.band else "")
    machine = Machine(point.gpu, BIG_CARD, scale, band_costs(runner.base_costs(point.gpu), point.band))
    trace = runner.folder / f"{name}.run.jsonl"
    run = runner.run(f"{name}.native", point.command, machine, "off", trace=trace, modelled=point.modelled, ranks=point.case.ranks)
    marks = [json.loads(line) for line in open(trace) if line.startswith('{"mark"')]
    begins = [mark["at"] for mark in marks if mark["mark"] == "profiler start"]
    ends = [mark["at"] for mark in marks if mark["mark"] == "profiler stop"]
    if not len(begins) == len(ends) == point.iterations:
        raise BenchError(f"{name}: {len(begins)} steps in the trace, {point.iterations} were asked for")
    return run, trace, list(zip(begins, ends))


def scaled_copy(trace, scale, launch_us, target):
    """A trace with the time of each kernel, less its launch, and of each set multiplied: what a slower device on the same link shows."""
    with open(target, "w") as out:
        for line in open(trace):
            row = json.loads(line)
            if row.get("name") in ("memset", "memcpy_d2d"):  # at the rate of device memory
                row["us"] *= scale
            elif "launch" in row and not row["name"].startswith("mem"):
                row["us"] = launch_us + (row["us"] - launch_us) * scale
            out.write(json.dumps(row, separators=(",", ":")) + "\n")
    return target


def cut_step(runner, trace, launches, step):
    runner.atp("convert", trace, step, "--launches", f"{launches[0]}:{launches[1]}")
    return step


def find_scale(runner, point, step, memory):
    """The factor on kernel times at which bound_safe / compute is what the regime asks for."""
    scaled = runner.folder / f"{point.name}.scaled.jsonl"
    launch_us = runner.base_costs(point.gpu)["kernel_launch"]

    def ratio(scale):
        bound = runner.bound(scaled_copy(step, scale, launch_us, scaled), memory)
        return bound["bound_safe_s"] / bound["compute_s"]

    # The ratio falls as kernels get slower. For "compute" the least scale at which the link hides.
    wanted = max(REGIMES[point.regime], 1.002)
    low, high = 1 / LARGEST_SCALE, LARGEST_SCALE
    if ratio(low) <= wanted:
        return 1.0  # whatever the kernels take, nothing waits for the link
    for _ in range(20):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if ratio(middle) > wanted else (low, middle)
    scaled.unlink()
    return float(f"{high:.3g}")


def bounds(runner, point, trace, steps, memory):
    """Bounds of a step: of the last one where all are alike, else the mean over all. Also the trace that they are from."""
    step = runner.folder / f"{point.name}.step.jsonl"
    if point.case.periodic and not point.case.growing:
        return runner.bound(cut_step(runner, trace, steps[-1], step), memory), step
    each = [runner.bound(cut_step(runner, trace, launches, step), memory) for launches in steps]
    step.unlink()
    return {key: statistics.mean(bound[key] for bound in each) for key in ("compute_s", "bound_any_s", "bound_safe_s")}, trace


def kernels_of(trace):
    """For each launch of a trace, how many kernels come before it; and how many there are in all."""
    before, count = [], 0
    for line in open(trace):
        if line.startswith('{"launch"'):
            before.append(count)
            count += '"name":"mem' not in line
    return before, count


def faults_after(run, before, steps, first, total):
    """Page faults of all kernels from the step behind the first `first` ones on. `steps` may be more than the run had."""
    begin = before[steps[first][0]]
    if len(run.kernel_faults) != total:
        raise BenchError(f"{len(run.kernel_faults)} kernels in the timeline, {total} in the true trace")
    return sum(run.kernel_faults[begin:])


def check_scaling(runner, point, trace, scale):
    """The scaled trace against that of a run on the machine with scaled costs, launch by launch."""
    _, real, _ = native(runner, point, scale)
    for expected, found in zip(open(trace), open(real)):
        if expected.startswith('{"launch"'):
            expected, found = json.loads(expected), json.loads(found)
            if abs(expected["us"] - found["us"]) > 2e-3 * found["us"]:
                raise BenchError(f"{point.name}: {found['name']} takes {found['us']} us on the scaled machine, not {expected['us']} us")


def measure(runner, truths, point):
    case, name = point.case, point.name
    truth, trace, steps = truths.of(point)
    memory = card_for(truth.footprint, point.oversubscription)
    scale = find_scale(runner, point, cut_step(runner, trace, steps[-1], runner.folder / f"{name}.step.jsonl"), memory)
    trace = scaled_copy(trace, scale, runner.base_costs(point.gpu)["kernel_launch"], runner.folder / f"{name}.run.jsonl")
    if point.size == "quick":
        check_scaling(runner, point, trace, scale)
    machine = Machine(point.gpu, memory, scale, band_costs(runner.base_costs(point.gpu), point.band))
    learned = runner.run(f"{name}.learned", point.command, machine, "learned", modelled=point.modelled, ranks=case.ranks)
    lock = learned.lock_iteration() if case.periodic else None
    first = lock or case.learns
    if first >= point.iterations:
        raise BenchError(f"{name}: locked in iteration {first} of {point.iterations}: nothing is left to measure")
    # Compared to the bit only where everything is computed; long enough to be past the first touches otherwise.
    managed_iterations = min(point.iterations, first + MANAGED_AFTER) if point.modelled else point.iterations
    managed = runner.run(f"{name}.managed", replace(point, iterations=managed_iterations).command, machine, "managed", modelled=point.modelled,
                         ranks=case.ranks)
    bound, kept = bounds(runner, point, trace, steps[first:], memory)

    before, kernels = kernels_of(trace)
    kernels_managed = before[steps[managed_iterations][0]] if managed_iterations < len(steps) else kernels
    faults = faults_after(learned, before, steps, first, kernels)
    managed_faults = faults_after(managed, before, steps, first, kernels_managed)
    managed_faults = round(managed_faults * (point.iterations - first) / (managed_iterations - first))
    middle = statistics.median if case.periodic else statistics.mean
    policy_ms, managed_ms = middle(learned.iteration_ms[first:]), middle(managed.iteration_ms[first:])
    hooks_ms = runner.hook_ms(steps[-1][1] - steps[-1][0], point.fits)
    if point.fits:  # there nothing else could cost anything
        policy_ms += hooks_ms
    row = {
        "case": case.name, "gpu": point.gpu, "oversubscription": point.oversubscription, "regime": point.regime,
        "periodic": case.periodic, "policy_ms": policy_ms, "bound_safe_ms": bound["bound_safe_s"] * 1e3,
        "bound_any_ms": bound["bound_any_s"] * 1e3, "managed_ms": managed_ms,
        "over_bound": policy_ms / (bound["bound_safe_s"] * 1e3), "over_managed": policy_ms / managed_ms,
        "lock_iteration": lock, "faults_after_lock": faults, "managed_faults": managed_faults,
        "identical": identical_when_small(runner, truths, point) if point.modelled else truth.outputs == managed.outputs == learned.outputs,
        "trace": str(kept),
        # Beyond what was asked for: what one needs to understand a figure.
        "compute_ms": bound["compute_s"] * 1e3, "worst_ms": max(learned.iteration_ms[first:]), "iterations": point.iterations,
        "first_measured": first + 1, "kernel_scale": scale, "card_bytes": memory, "footprint_bytes": truth.footprint,
        "hooks_ms": hooks_ms, "planning_ms": learned.planning_ms, "given_up": learned.given_up, "discard_violations": learned.stats["discard_violations"], "size": point.size,
        "modelled": point.modelled, "iteration_ms": learned.iteration_ms, "managed_iteration_ms": managed.iteration_ms,
    }
    if point.band:
        row["band"] = point.band
    if case.by_hand:
        row["by_hand_ms"] = by_hand_ms(runner, point, machine)
        row["by_hand_order_ms"] = in_order_of_hand_ms(runner, point, machine, first)
        row["over_by_hand"] = row["by_hand_ms"] and row["by_hand_order_ms"] / row["by_hand_ms"]
    judge(runner, point, row, trace, steps[first:])
    return row


def identical_when_small(runner, truths, point):
    """Are results those of the native run? Of the same program at small size, on a card that is as much too small: at figures' size launches are modelled."""
    small = replace(point, size="quick")
    truth, _, _ = truths.of(small)
    machine = Machine(point.gpu, card_for(truth.footprint, point.oversubscription), costs=band_costs(runner.base_costs(point.gpu), point.band))
    runs = [runner.run(f"{small.name}.{policy}", small.command, machine, policy, ranks=point.case.ranks)
            for policy in ("managed", "learned")]
    return all(run.outputs == truth.outputs and run.stats["discard_violations"] == 0 for run in runs)


def by_hand_ms(runner, point, machine):
    """The program that moves memory itself, natively on the same card: the best of some numbers of buffers."""
    best = None
    for slots in ("1", "2", "4"):
        for spared in (0, 4, 8, 16, 32, 64):  # chunks of 2 MiB, which the program does not reckon with
            command = [*replace(point, iterations=5).command, "--offload", str(machine.memory - spared * BLOCK), "--slots", slots]
            try:
                run = runner.run(f"{point.name}.by_hand", command, machine, "off", modelled=point.modelled)
            except BenchError:
                continue
            ms = statistics.median(run.iteration_ms[2:])
            best = ms if best is None else min(best, ms)
            break
    return best  # None: its buffers do not fit


def in_order_of_hand_ms(runner, point, machine, first):
    """The program with the launches in the order that it has by hand, and nothing moved by itself, under the shim."""
    run = runner.run(f"{point.name}.order_of_hand", [*point.command, "--update-in-backward"], machine, "learned", modelled=point.modelled)
    return statistics.median(run.iteration_ms[first:])


DELAYED = 10  # runs with delays for each run that is timed


def on_threads(runner, truths, point, runs, seed=1):
    """The movers on real threads: times against the deterministic executor, and whether results are the same; that also in runs with delays at random calls."""
    truth, _, _ = truths.of(point)
    machine = Machine(point.gpu, card_for(truth.footprint, point.oversubscription))
    chance = random.Random(seed)
    first = point.case.learns + 2
    wrong = []

    def once(name, further):
        run = runner.run(f"{point.name}.{name}", point.command, machine, "learned", further=further)
        if run.outputs != truth.outputs or run.stats["discard_violations"]:
            wrong.append(further)
        return statistics.median(run.iteration_ms[first:])

    def delays():
        return ",".join(f"{call}:{chance.randrange(1, 400)}=delay:{chance.randrange(10, 3000)}us"
                        for call in ("cuMemPrefetchAsync_v2", "cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel") for _ in range(3))

    threads = {"ATP_EXECUTOR": "threads"}
    alone = once("lanes", {})
    times = [once("threads", threads) for _ in range(runs)]
    for _ in range(DELAYED * runs):
        once("delayed", {**threads, "ATP_SIM_FAULT": delays()})
    return {"case": point.case.name, "gpu": point.gpu, "oversubscription": point.oversubscription, "runs": runs, "delayed_runs": DELAYED * runs, "lanes_ms": alone,
            "threads_ms": statistics.median(times), "ratio": statistics.median(times) / alone, "identical": not wrong, "wrong": wrong}


def judge(runner, point, row, trace, steps):
    """Adds what the time is held against, and whether all that is asked of the case is met."""
    judged, allowed = point.case.target(point.oversubscription)
    if judged == "pinned":
        row["pinned_ms"] = pinned_step_ms(runner, point.name, trace, steps, row["card_bytes"])
        row["pinned_hidden_ms"] = hidden_step_ms(trace, steps, row["card_bytes"], runner.base_costs(point.gpu)["h2d"] * 1e9)
    against = {"bound": row["bound_safe_ms"], "managed": row["managed_ms"], "pinned": row.get("pinned_ms")}[judged]
    row.update(target=f"{allowed:g} x {judged}", over_target=row["policy_ms"] / against / allowed)
    learns = point.fits or (row["lock_iteration"] is not None and row["lock_iteration"] <= point.case.learns)
    calm = point.fits or row["faults_after_lock"] <= 0.005 * row["managed_faults"]
    row["met"] = (row["over_target"] <= 1 and row["discard_violations"] == 0 and row["identical"] is not False
                  and (point.fits or not point.case.of_managed or row["over_managed"] <= point.case.of_managed)
                  and (not point.case.periodic or (learns and calm)))
