#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How close does an unmodified program under the shim come to the bound? Real programs and the real shim, on the simulated machine.

For each case, GPU, oversubscription and regime: a native run on a card that is large enough gives results and the true trace, from which
`atp bound` computes the bounds; the same program then runs on the small card on plain managed memory and under the learned policy.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "closed_loop.d"))
from cases import CASES, GPUS, REGIMES, TIGHT  # noqa: E402
from measure import BAND, Point, Truths, measure, on_threads  # noqa: E402
from runner import BenchError, Runner  # noqa: E402

BUILD = Path(__file__).resolve().parents[2]

COLUMNS = (("case", "case", "<12"), ("gpu", "gpu", "<9"), ("over", "oversubscription", ">5"), ("regime", "regime", "<8"),
           ("compute ms", "compute_ms", ">11.3f"), ("bound_any", "bound_any_ms", ">10.3f"), ("bound_safe", "bound_safe_ms", ">10.3f"),
           ("policy ms", "policy_ms", ">10.3f"), ("managed ms", "managed_ms", ">10.3f"), ("/bound", "over_bound", ">7.3f"),
           ("/managed", "over_managed", ">8.3f"), ("lock", "lock_iteration", ">4"), ("faults", "faults_after_lock", ">8"),
           ("of managed", "managed_faults", ">10"), ("identical", "identical", ">9"), ("target", "target", ">14"), ("met", "met", ">3"))


ITERATIONS = 12


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--quick", action="store_true", help="the reduced set: small sizes, one GPU, 1.5 times the card, one regime")
    parser.add_argument("--all", action="store_true", help="the whole set: all GPUs, oversubscriptions and regimes; days on two cores")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="only this case (may be repeated)")
    parser.add_argument("--gpu", action="append", choices=GPUS, help="only the costs of this GPU (may be repeated)")
    parser.add_argument("--oversubscription", action="append", type=float, help="footprint / card, one of " + str(TIGHT))
    parser.add_argument("--regime", action="append", choices=tuple(REGIMES), help="only this regime (may be repeated)")
    parser.add_argument("--size", choices=("quick", "full"), help="size of the programs")
    parser.add_argument("--iterations", type=int, help=f"iterations of each run (default {ITERATIONS}, and what a case needs)")
    parser.add_argument("--band", action="append", choices=(*BAND, "all"), help="with this change of assumed costs (may be repeated)")
    parser.add_argument("--threads", type=int, metavar="RUNS", help="instead: movers on real threads, so many times, and ten times as often with delays at random calls")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases run at the same time")
    parser.add_argument("--out", type=Path, help="folder for traces, logs and statistics (default: BUILD/closed_loop)")
    return parser.parse_args()


def points(options):
    bands = tuple(BAND) if options.band and "all" in options.band else options.band or ("",)
    size = options.size or ("quick" if options.quick else "full")
    for case in [CASES[name] for name in options.case or CASES]:
        if options.quick and not options.case and not case.smoke:
            continue
        for gpu in options.gpu or (GPUS if options.all else GPUS[:1]):
            for oversubscription in options.oversubscription or (case.oversubscriptions if options.all else (1.5,) if options.quick else case.usual):
                regimes = REGIMES if options.all and case.periodic and oversubscription > 1 else ("balanced",)
                for regime in options.regime or regimes:
                    for band in bands:
                        yield Point(case, gpu, oversubscription, regime, size, options.iterations or case.iterations or ITERATIONS, band)


def text(row, key, form):
    value = row[key]
    if value is None:
        value = "-"
    elif isinstance(value, bool):
        value = "yes" if value else "NO"
    if isinstance(value, str) and form.endswith("f"):
        form = form.split(".")[0]
    return f"{value:{form}}"


def print_head(markdown):
    if markdown:
        print("| " + " | ".join(head for head, _, _ in COLUMNS) + " |\n|" + "|".join("---:" if ">" in form else "---" for _, _, form in COLUMNS) + "|")
    else:
        print("  ".join(f"{head:{form.split('.')[0].rstrip('f')}}" for head, _, form in COLUMNS), flush=True)


def print_row(row, markdown):
    if markdown:
        print("| " + " | ".join(text(row, key, form).strip() for _, key, form in COLUMNS) + " |", flush=True)
        return
    print("  ".join(text(row, key, form) for _, key, form in COLUMNS) + note(row), flush=True)


def note(row):
    notes = [f"  {row['band']}"] if "band" in row else []
    if row.get("by_hand_ms"):
        notes.append(f"  by hand {row['by_hand_ms']:.3f} ms")
    if row["given_up"]:
        notes.append(f"  gave up: {row['given_up']}")
    return "".join(notes)


def print_threads(runner, truths, options):
    rows = [on_threads(runner, truths, point, options.threads) for point in points(options)]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['case']:<12} {row['runs']} runs  median {row['threads_ms']:.3f} ms, on lanes {row['lanes_ms']:.3f} ms, ratio {row['ratio']:.3f}; "
                  f"results of all and of {row['delayed_runs']} with delays {'identical' if row['identical'] else 'DIFFER'}")
    return 0 if all(row["identical"] for row in rows) else 1


def main():
    options = arguments()
    runner = Runner(BUILD, options.out or BUILD / "closed_loop")
    truths = Truths(runner)
    rows, failures = [], []
    if not options.json:
        print_head(options.markdown)

    def one(point):
        try:
            return measure(runner, truths, point)
        except BenchError as error:
            return str(error)

    if options.threads:
        return print_threads(runner, truths, options)

    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(one, points(options)):
            if isinstance(result, str):
                failures.append(result)
                print(f"error: {result}", file=sys.stderr, flush=True)
                continue
            rows.append(result)
            if result["periodic"] and result["oversubscription"] > 1 and result["lock_iteration"] is None:
                failures.append(f"{result['case']}: never locked")
            if result["identical"] is False:
                failures.append(f"{result['case']}: results differ")
            if not options.json:
                print_row(result, options.markdown)
    if options.json:
        print(json.dumps(rows, indent=1))
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
