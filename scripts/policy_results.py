#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/results/baselines.md: our plan against every baseline in the replay model, parts of tensors against whole ones, wrong predictions.

    scripts/policy_results.py [--work FOLDER] [--jobs N] TRACE...

TRACE: kernel traces of the G10 artifact in our exchange form (docs/trace.md). Synthetic traces are generated beside them. Figures that a former run has left in
FOLDER are taken from there, so that a run that was stopped goes on. Needs a release build.
"""
import argparse, concurrent.futures, json, os, pathlib, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ATP = ROOT / "build/release/bin/atp"
SHARES = "10%,20%,40%,60%,80%"
KINDS = "layers residual attention optimizer micro-batches buckets sweep decode moe large random".split()
RECOMPUTE = ("atp", "plan-recompute")
MAPS = ("static-pin",)  # reads over the link what the others move
SAME = 1e-3  # relative: the planner stops searching this near to its bound, and rounding to blocks is of this size
SECTIONS = ROOT / "scripts/policy_results.md"


class Figures:
    """Runs commands of atp, each once, and remembers what they print."""

    def __init__(self, folder, jobs):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)

    def later(self, name, *arguments):
        return self.pool.submit(self.run, name, *arguments)

    def run(self, name, *arguments):
        path = self.folder / f"{name}.json"
        if not path.exists() or not path.read_text().strip():
            done = subprocess.run([str(a) for a in (ATP, *arguments, "--json")], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stderr.strip()}")
            path.write_text(done.stdout)
        rows = json.loads(path.read_text())
        return rows if isinstance(rows, list) else [rows]

    def synthetic(self, kind, *options, name=None):
        path = self.folder / f"{name or kind}.jsonl"
        if not path.exists():
            subprocess.run([str(ATP), "generate", "--kind", kind, *options, "--output", str(path)], check=True)
        return path


def by_memory(rows):
    """{memory: {policy: row}}, of one trace."""
    table = {}
    for row in rows:
        if row["completed"]:
            table.setdefault(row["memory_bytes"], {})[row["policy"]] = row
    return table


def short(seconds):
    return f"{seconds:.4g}" if seconds < 1000 else f"{seconds:.0f}"


def comparison(results):
    """A Markdown table, and what is to be said about it: rows in which a policy that only swaps is faster."""
    policies, lines, slower, count, lost = [], [], [], 0, []
    for rows in results:
        for row in rows:
            if row["policy"] not in policies:
                policies.append(row["policy"])
    lines.append("| trace | memory | of footprint | compute | bound_safe | " + " | ".join(policies) + " |")
    lines.append("|---|" + "---:|" * (4 + len(policies)))
    for rows in results:
        for memory, found in sorted(by_memory(rows).items()):
            plan = found["plan"]
            times = {p: found[p]["period_s"] for p in policies if p in found}
            share = memory / plan["footprint_bytes"]
            cells = [plan["trace"], f"{memory / 2**30:.2f} GiB", f"{share:.0%}", short(plan["compute_s"]), short(plan["bound_safe_s"])]
            cells += [(f"**{short(times[p])}**" if p == "plan" else short(times[p])) if p in times else "-" for p in policies]
            lines.append("| " + " | ".join(cells) + " |")
            count += 1
            for p, t in times.items():
                if p in ("plan", "ideal", *RECOMPUTE, *MAPS) or plan["period_s"] <= t:
                    continue
                slower.append((plan["period_s"] / t - 1, f"{plan['trace']} at {share:.0%}: `{p}` by {plan['period_s'] / t - 1:.2%}"))
            for p in MAPS:
                if p in times and plan["period_s"] > times[p]:
                    lost.append(f"{plan['trace']} at {share:.0%} by {plan['period_s'] / times[p] - 1:.0%}")
            if all(p in times for p in RECOMPUTE) and times["plan-recompute"] > times["atp"] * (1 + SAME):
                slower.append((times["plan-recompute"] / times["atp"] - 1, f"{plan['trace']} at {share:.0%}: `atp` is faster than `plan-recompute`"))
    above = [text for excess, text in sorted(slower, reverse=True) if excess > SAME]
    ties = [text for excess, text in sorted(slower, reverse=True) if excess <= SAME]
    said = f"In {count - len({t.split(':')[0] for t in above})} of {count} rows `plan` is at least as fast as every policy that only swaps (to {SAME:.1%})."
    if above:
        said += " Faster than it: " + "; ".join(above) + "."
    if ties:
        said += f" Within {SAME:.1%}: " + "; ".join(ties) + "."
    if lost:
        said += " `static-pin`, which reads over the link what the others move, is faster on " + "; ".join(lost) + "."
    return "\n".join(lines), said


def parts_against_whole(figures):
    lines = ["| seed | memory | `plan` | better of `g10` and `vtensor-whole` | times as fast |", "|---:|---:|---:|---:|---:|"]
    gains = {}
    for seed in (1, 2, 3):
        trace = figures.synthetic("large", "--intensity", "60", "--layers", "6", "--seed", str(seed), name=f"few-large-{seed}")
        rows = figures.run(f"parts-{seed}", "replay", "--policy", "plan,g10,vtensor-whole", "--memory", "75%,85%,90%", trace)
        for memory, found in sorted(by_memory(rows).items()):
            whole = min(found[p]["period_s"] for p in ("g10", "vtensor-whole"))
            gain = whole / found["plan"]["period_s"]
            share = f"{memory / found['plan']['footprint_bytes']:.0%}"
            gains.setdefault(share, []).append(gain)
            lines.append(f"| {seed} | {share} | {short(found['plan']['period_s'])} s | {short(whole)} s | {gain:.3f} |")
    return "\n".join(lines), gains


def whole_on_traces(results):
    """The same on given traces: gain of the plan over the better of the two policies that move whole tensors."""
    lines = ["| trace | " + " | ".join(SHARES.split(",")) + " |", "|---|" + "---:|" * 5]
    for rows in results:
        gains = {}
        for memory, found in by_memory(rows).items():
            whole = [found[p]["period_s"] for p in ("g10", "vtensor-whole") if p in found]
            if whole:
                gains[f"{memory / found['plan']['footprint_bytes']:.0%}"] = min(whole) / found["plan"]["period_s"]
        lines.append(f"| {rows[0]['trace']} | " + " | ".join(f"{gains[s]:.4f}" if s in gains else "-" for s in SHARES.split(",")) + " |")
    return "\n".join(lines)


def noise(results):
    lines = ["| trace | memory | seeds | median loss | worst loss | worst against stock | could not run |", "|---|---:|---:|---:|---:|---:|---:|"]
    for rows in results:
        for row in rows:
            lines.append(f"| {row['trace']} | {row['memory_bytes'] / 2**30:.2f} GiB | {row['seeds']} | {row['median_loss']:.1%} | {row['worst_loss']:.1%} | "
                         f"{row['worst_over_stock']:.2f} | {row['cannot']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("--work", default=ROOT / "build/policy_results", help="folder for intermediate figures")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    options = parser.parse_args()
    figures = Figures(options.work, options.jobs)
    synthetic = [figures.synthetic(kind) for kind in KINDS]
    replay = lambda path: figures.later(pathlib.Path(path).stem, "replay", "--all", "--memory", SHARES, path)
    noisy = lambda path: figures.later("noise60-" + pathlib.Path(path).stem, "replay", "--noise-seeds", "50", "--memory", "60%", path)
    jobs = [[replay(t) for t in options.traces], [replay(t) for t in synthetic], [noisy(t) for t in [*options.traces, *synthetic]]]
    given, made, disturbed = ([job.result() for job in row] for row in jobs)
    tables = {"given": comparison(given), "synthetic": comparison(made)}
    parts, gains = parts_against_whole(figures)
    fields = {
        "GIVEN": tables["given"][0], "GIVEN_SAID": tables["given"][1], "SYNTHETIC": tables["synthetic"][0], "SYNTHETIC_SAID": tables["synthetic"][1],
        "PARTS": parts, "PARTS_SAID": "; ".join(f"{share}: {min(g):.2f} to {max(g):.2f}" for share, g in sorted(gains.items())),
        "WHOLE": whole_on_traces(given), "NOISE": noise(disturbed),
    }
    text = SECTIONS.read_text()
    for name, value in fields.items():
        text = text.replace("{{" + name + "}}", value)
    (ROOT / "docs/results/baselines.md").write_text(text)


if __name__ == "__main__":
    main()
