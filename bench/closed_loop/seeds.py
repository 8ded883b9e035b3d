#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headlines of the three papers that this project began with, beside ours on the nearest case. Runs bin/bench/closed_loop for the cases, or
takes its rows from a file, and replays the true trace of each under the papers' rules as they are modelled here (policy/baselines)."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2]
GPU = "a100-40g"
# (case, oversubscription, regime)
POINTS = (("transformer", 1.5, "balanced"), ("transformer", 2, "balanced"), ("transformer", 4, "balanced"), ("transformer", 9.2, "balanced"),
          ("vgg19", 1.25, "balanced"), ("vgg19", 1.5, "balanced"), ("vgg19", 1.5, "link"))
REPLAYED = ("plan", "vtensor-whole", "g10", "atp", "plan-recompute")
HEAD = """# The papers that this project began with, and where we stand

Made by `bin/bench/seeds` ({size}). **Ours are virtual times of unmodified programs under the shim, on the simulated machine with the costs of {gpu}. Published
figures are from other programs, machines and years: they are printed beside ours, and cannot be divided by them.** "Replayed" are policies in one replay model on the true trace of
the same program ([baselines](baselines.md)); of all but the plan only the rule is known, not the code that the authors measured.

| paper | its headline | nearest case here |
|---|---|---|
| ATP (ACM TACO 22(1), 2024, doi 10.1145/3701996) | 1.14 to 1.49 times the throughput of earlier systems; up to 9.2 times the GPU's memory | `train_transformer`, at 1.5 to 9.2 times the card |
| AutoVM (IEEE, document 9651175) | up to 2.5 times as fast as default unified memory on VGG-19 | `train_vgg`: 16 convolutions, 3 fully connected layers |
| vTensor (JCST 40(6), 2025, doi 10.1007/s11390-025-4788-2) | 15.60 % more throughput than existing work | the same programs, parts of tensors against whole tensors |
"""
TAIL = """
What is not comparable, and why:

- **ATP** trains recurrent networks, GPT and ResNets on a V100 of 32 GB by its own framework, chooses the batch size (which a shim cannot), and recomputes. Which systems it is 1.14 to
  1.49 times as fast as is not said in what is public. Here: "of what the link allows" is `bound_safe` / time, "of memory without limit" is compute / time. `atp` (replayed) is
  ATP's rule, swap or recompute by bytes per second with its genetic search.
- **AutoVM**: only the abstract could be found; its GPU, batch and pictures are not known. What default unified memory costs decides the ratio, and on the simulated machine
  that is a model ([sim](../sim.md)). Where `bound_safe` is more than 0.40 of plain managed memory's time nobody can be 2.5 times as fast without recomputing.
- **vTensor**: GPU, models and batch sizes are not in the abstract. Its gain is over whole tensors; ours over whole tensors is replayed, `plan` against the better of `vtensor-whole` and
  `g10`, and hangs on how large tensors are against what is lacking ([baselines](baselines.md), "Parts of tensors against whole tensors").
"""


def rows_of(options):
    if options.rows:
        return json.loads(options.rows.read_text())
    rows = []
    for case, over, regime in POINTS:
        print(f"running {case} at {over:g} times the card, {regime}", file=sys.stderr, flush=True)
        done = subprocess.run([str(BUILD / "bin/bench/closed_loop"), "--case", case, "--gpu", GPU, "--oversubscription", str(over), "--regime", regime,
                               "--size", options.size, "--json", "--jobs", "1", "--out", str(options.out)], stdout=subprocess.PIPE, text=True)
        rows += json.loads(done.stdout or "[]")
        if done.returncode != 0:
            print(f"{case} at {over:g}: failed, see above", file=sys.stderr)
    return rows


def replayed(row):
    """Seconds of a period by policy. A policy that cannot run the trace is left out."""
    words = [str(BUILD / "bin/atp"), "replay", row["trace"], "--memory", str(row["card_bytes"]), "--readmostly", "--no-map", "--json"]
    for policy in REPLAYED:
        words += ["--policy", policy]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"atp replay {row['trace']}: {done.stderr.strip()}")
    return {result["policy"]: result["period_s"] for result in json.loads(done.stdout) if result["completed"]}


def table(rows):
    print("\n## Run\n\n| case | over | regime | ms | of memory without limit | of what the link allows | times as fast as plain managed memory | the most that is possible |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print(f"| {row['case']} | {row['oversubscription']:g} | {row['regime']} | {row['policy_ms']:.3f} | {row['compute_ms'] / row['policy_ms']:.3f} "
              f"| {1 / row['over_bound']:.3f} | {1 / row['over_managed']:.2f} | {row['managed_ms'] / row['bound_safe_ms']:.2f} |")
    print("\n## Replayed, seconds of a period\n\n| case | over | regime | " + " | ".join(f"`{policy}`" for policy in REPLAYED) + " | parts against whole | plan against `atp` |")
    print("|---|---:|---|" + "---:|" * (len(REPLAYED) + 2))
    for row in rows:
        times = replayed(row)
        shown = " | ".join(f"{times[policy]:.4f}" if policy in times else "-" for policy in REPLAYED)
        whole = min((times[policy] for policy in ("vtensor-whole", "g10") if policy in times), default=None)
        against = [f"{other / times['plan']:.3f}" if other else "-" for other in (whole, times.get("atp"))]
        print(f"| {row['case']} | {row['oversubscription']:g} | {row['regime']} | {shown} | {against[0]} | {against[1]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=Path, help="JSON of bin/bench/closed_loop; without: the cases are run")
    parser.add_argument("--size", choices=("quick", "full"), default="full", help="of the cases that are run")
    parser.add_argument("--out", type=Path, default=BUILD / "closed_loop", help="folder of traces and logs")
    options = parser.parse_args()
    rows = rows_of(options)
    if not rows:
        sys.exit("no case could be run")
    size = "small size" if rows[0]["size"] == "quick" else "figures' size"
    print(HEAD.format(size=size, gpu=rows[0]["gpu"]), end="")
    table(rows)
    print(TAIL, end="")


if __name__ == "__main__":
    main()
