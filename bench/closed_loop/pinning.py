# SPDX-License-Identifier: Apache-2.0
"""Static pinning found offline: what stays on the card for good, with the whole run known in advance. For programs whose next launch depends on data.

Two figures. Pinning as it can be done: the policies `static-pin` (the rest is read over the link) and `protect` (the rest comes by faults) of the
replay model, whichever is faster. And what is not pinned hidden: it comes in each time a launch needs it, behind compute as far as the link
allows, as if everybody knew beforehand; a limit for whoever decides before the run, not something that could be run.
"""

import json

from runner import BenchError


def read_launches(trace, begin, end):
    """(seconds, {(allocation, offset): bytes}) of each launch from `begin` to `end`."""
    launches = []
    for line in open(trace):
        if not line.startswith('{"launch"'):
            continue
        row = json.loads(line)
        if begin <= row["launch"] < end:
            launches.append((row["us"] * 1e-6, {(a, offset): size for a, offset, size, _ in row["touches"]}))
    return launches


def pinned_step_ms(runner, name, trace, steps, memory):
    """Mean time of the steps under the better of both policies, in milliseconds."""
    run = runner.folder / f"{name}.pinned.jsonl"
    runner.atp("convert", trace, run, "--launches", f"{steps[0][0]}:{steps[-1][1]}")
    said = json.loads(runner.atp("replay", run, "--memory", memory, "--policy", "static-pin", "--policy", "protect", "--json"))
    run.unlink()
    times = [result["period_s"] for result in said if result["completed"]]
    if not times:
        raise BenchError(f"{name}: no pinning can be replayed on a card of {memory} bytes")
    return min(times) / len(steps) * 1e3


def hidden_step_ms(trace, steps, memory, bytes_per_s):
    """Mean time of the steps where all moves hide, in milliseconds."""
    launches = [read_launches(trace, begin, end) for begin, end in steps]
    uses, sizes, largest = {}, {}, 0
    for step in launches:
        for _, touches in step:
            largest = max(largest, sum(touches.values()))
            for place, size in touches.items():
                uses[place] = uses.get(place, 0) + 1
                sizes[place] = max(size, sizes.get(place, 0))
    room = memory - 2 * largest  # the rest passes through two buffers
    pinned = set()
    for place in sorted(uses, key=lambda place: (-uses[place], place)):
        if sizes[place] <= room:
            pinned.add(place)
            room -= sizes[place]
    total = 0.0
    for step in launches:
        compute = sum(seconds for seconds, _ in step)
        moved = sum(size for _, touches in step for place, size in touches.items() if place not in pinned)
        total += max(compute, moved / bytes_per_s)
    return total / len(steps) * 1e3
