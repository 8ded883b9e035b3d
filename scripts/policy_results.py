#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/results/baselines.md: our plan against every baseline in the replay model, parts of tensors against whole ones, wrong predictions.

    scripts/policy_results.py [--work FOLDER] [--jobs N] [--atp FILE] [--finished] [--only SECTION,...] TRACE...

TRACE: kernel traces of the G10 artifact in our exchange form (docs/trace.md). Synthetic traces are generated beside them. Figures that a former run has left in
FOLDER are taken from there, so that a run that was stopped goes on; remove FOLDER after a change of the program. Needs a release build; an hour of one processor.
--only makes some sections (given, again, synthetic, parts, noise) and leaves the others of the page as they are: for a change that touches no other.
"""
import argparse, concurrent.futures, json, os, pathlib, subprocess, sys, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARES = "10%,20%,40%,60%,80%"
KINDS = "layers residual attention optimizer micro-batches buckets sweep decode moe large random".split()
SWAP = "plan,stock,stock-no-prefetch,deepum,belady,g10,vtensor,vtensor-whole,static-pin,protect,ideal"
RECOMPUTE = ("atp", "atp-rule", "plan-recompute", "plan-elementwise")
GOAL = 0.92  # of bound_safe, with element-wise launches, where the link binds: more than LINK_BOUND times the launches
LINK_BOUND = 1.001
PARTS, INTENSITIES, SEEDS, CLAIM = "40%,60%,75%,80%,85%,90%,95%", (60, 100, 150), (1, 2, 3), 1.156  # of parts against whole tensors
NOISY, NOISY_GIVEN = "40%,60%,80%", "60%"  # memory sizes; given traces take minutes each
SAME = 1e-3  # relative: the planner stops searching this near to its bound, and rounding to blocks is of this size
ROUNDING = 1e-5  # of the clocks
SECTIONS, RESULTS = ROOT / "scripts/policy_results.md", ROOT / "docs/results/baselines.md"
SECTION_NAMES = ("given", "again", "synthetic", "parts", "noise")


class Page:
    """The page by its sections; those of which nothing was filled in stay as they were."""

    def __init__(self, template):
        self.sections = template.split("\n## ")

    def fill(self, name, table, said=""):
        for i, section in enumerate(self.sections):
            self.sections[i] = section.replace("{{" + name + "}}", table).replace("{{" + name + "_SAID}}", said)

    def text(self, before):
        old = {section.split("\n")[0]: section for section in before.split("\n## ")}
        return "\n## ".join(old.get(s.split("\n")[0], s) if "{{" in s else s for s in self.sections)


class Figures:
    """Runs commands of atp, each once, and remembers what they print."""

    def __init__(self, folder, jobs, atp, finished):
        self.folder, self.atp, self.finished = pathlib.Path(folder), atp, finished
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.lock, self.asked, self.done = threading.Lock(), 0, 0

    def later(self, name, *arguments):
        self.asked += 1
        return self.pool.submit(self.run, name, *arguments)

    def progress(self, name, seconds):
        with self.lock:
            self.done += 1
            print(f"[{self.done}/{self.asked}] {name}: {seconds:.0f} s", file=sys.stderr, flush=True)

    def run(self, name, *arguments):
        path = self.folder / f"{name}.json"
        if not path.exists() or not path.read_text().strip():
            if self.finished:
                return []
            began = time.monotonic()
            done = subprocess.run([str(a) for a in (self.atp, *arguments, "--json")], capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{name}: {done.stderr.strip()}")
            whole = path.with_suffix(".new")  # a run that is stopped leaves no half of a file
            whole.write_text(done.stdout)
            whole.replace(path)
            self.progress(name, time.monotonic() - began)
        rows = json.loads(path.read_text())
        return rows if isinstance(rows, list) else [rows]

    def synthetic(self, kind, *options, name=None):
        path = self.folder / f"{name or kind}.jsonl"
        if not path.exists():
            subprocess.run([str(self.atp), "generate", "--kind", kind, *options, "--output", str(path)], check=True)
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
    """A Markdown table, and what is to be said about it: rows in which a policy that does not recompute is faster."""
    policies, lines, slower, count, mapped = [], [], [], 0, []
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
            rivals = {p: t for p, t in times.items() if p not in ("plan", "ideal")}
            best = min(rivals, key=rivals.get)
            excess = plan["period_s"] / rivals[best] - 1
            if excess > ROUNDING:
                slower.append((excess, f"{plan['trace']} at {share:.0%}: `{best}` by {excess:.2%}"))
            if plan["remote_h2d_bytes"] + plan["remote_d2h_bytes"] > 0:
                mapped.append(f"{plan['trace']} at {share:.0%}")
    above = [text for excess, text in sorted(slower, reverse=True) if excess > SAME]
    ties = [text for excess, text in sorted(slower, reverse=True) if excess <= SAME]
    said = f"In {count - len(above)} of {count} rows `plan` is at least as fast as every policy that does not recompute (to {SAME:.1%})."
    if above:
        said += " Faster than it: " + "; ".join(above) + "."
    if ties:
        said += f" Within {SAME:.1%}: " + "; ".join(ties) + "."
    if mapped:
        said += " On " + "; ".join(mapped) + " the plan moves nothing and leaves data in host memory, as `static-pin` does (planned and modelled, not executed by the shim)."
    return "\n".join(lines), said


def recomputation(results, bounds):
    """Times over bound_safe. `bounds`: of `atp bound --recompute elementwise`, by trace and share, where the goal is missed."""
    lines = ["| trace | of footprint | compute | bound_safe | `atp` | `atp-rule` | `plan-recompute` | `plan-elementwise` | `bound_recompute`, element-wise |", "|---|" + "---:|" * 8]
    slower, linked, met, out_of_reach, open_ = [], 0, 0, [], []
    for rows in results:
        for memory, found in sorted(by_memory(rows).items()):
            if not all(p in found for p in RECOMPUTE):
                continue
            share = f"{memory / rows[0]['footprint_bytes']:.0%}"
            name = f"{rows[0]['trace']} at {share}"
            safe, compute = found["atp"]["bound_safe_s"], found["atp"]["compute_s"]
            times = {p: found[p]["period_s"] for p in RECOMPUTE}
            bound = bounds.get((rows[0]["trace"], share))
            cells = [rows[0]["trace"], share, short(compute), short(safe)] + [f"{short(times[p])} ({times[p] / safe:.3f})" for p in RECOMPUTE]
            lines.append("| " + " | ".join(cells + [f"{short(bound)} ({bound / safe:.3f})" if bound else "-"]) + " |")
            if times["plan-recompute"] > min(times["atp"], times["atp-rule"]) * (1 + SAME):
                slower.append(name)
            if safe > LINK_BOUND * compute and rows[0]["trace"].startswith(("BERT", "ViT")):
                linked += 1
                met += times["plan-elementwise"] <= GOAL * safe
                if times["plan-elementwise"] > GOAL * safe:
                    (out_of_reach if bound and bound > GOAL * safe else open_).append(name)
    said = "`atp` is faster on " + "; ".join(slower) + "." if slower else "`plan-recompute` is at least as fast as both of ATP's in every row."
    said += f" Of the {linked} rows of BERT and ViT that the link binds, `plan-elementwise` takes at most {GOAL} of bound_safe in {met}."
    if out_of_reach:
        said += " No plan that runs element-wise launches again can on " + "; ".join(out_of_reach) + ", as `bound_recompute` shows."
    if open_:
        said += " It does not on " + "; ".join(open_) + "."
    return "\n".join(lines), said


def recompute_bounds(figures, results):
    """Of the rows that miss the goal: a linear program each."""
    jobs = {}
    for rows in results:
        for memory, found in by_memory(rows).items():
            row = found.get("plan-elementwise")
            if row and row["bound_safe_s"] > LINK_BOUND * row["compute_s"] and row["period_s"] > GOAL * row["bound_safe_s"]:
                share = f"{memory / row['footprint_bytes']:.0%}"
                jobs[row["trace"], share] = figures.later(f"bound-again-{row['trace']}-{share}", "bound", "--recompute", "elementwise", "--memory", str(memory), figures.path_of[row["trace"]])
    return {key: found[0]["bound_recompute_s"] for key, job in jobs.items() if (found := job.result())}


def ranges(gains):
    return f"{min(gains):.2f}" if f"{min(gains):.2f}" == f"{max(gains):.2f}" else f"{min(gains):.2f} to {max(gains):.2f}"


def parts_against_whole(figures):
    """Per intensity and memory, over seeds: how many times as fast parts are as the better policy with whole tensors, and could be at most: no policy
    that brings to the device what launches touch is faster than the bound."""
    asked = {(i, seed): figures.later(f"parts6-{i}-{seed}", "replay", "--no-map", "--policy", "plan,g10,vtensor-whole", "--memory", PARTS,
                                      figures.synthetic("large", "--intensity", str(i), "--layers", "6", "--seed", str(seed), name=f"few-large-{i}-{seed}"))
             for i in INTENSITIES for seed in SEEDS}
    gains, most = {}, {}
    for (intensity, seed), job in asked.items():
        for memory, found in sorted(by_memory(job.result()).items()):
            if all(p in found for p in ("plan", "g10", "vtensor-whole")):
                whole = min(found[p]["period_s"] for p in ("g10", "vtensor-whole"))
                cell = intensity, f"{memory / found['plan']['footprint_bytes']:.0%}"
                gains.setdefault(cell, []).append(whole / found["plan"]["period_s"])
                most.setdefault(cell, []).append(whole / found["plan"]["bound_windows_s"])
    shares = PARTS.split(",")
    lines = ["| intensity | | " + " | ".join(shares) + " |", "|---:|---|" + "---:|" * len(shares)]
    for i in INTENSITIES:
        for what, of in (("`plan` gains", gains), ("any policy could gain", most)):
            lines.append(f"| {i} | {what} | " + " | ".join(ranges(of[i, s]) if (i, s) in of else "-" for s in shares) + " |")
    pairs = [(cell, gain, could) for cell in sorted(gains) for gain, could in zip(gains[cell], most[cell])]
    named = lambda cell: f"{cell[0]} at {cell[1]}"
    held = [named(cell) for cell, g in sorted(gains.items()) if min(g) >= CLAIM]
    possible = sum(could >= CLAIM for _, _, could in pairs)
    reached = sum(gain >= CLAIM for _, gain, _ in pairs)
    missed = [f"{named(cell)} ({gain:.3f} of {could:.3f})" for cell, gain, could in pairs if gain < CLAIM <= could]
    said = f"At least {CLAIM} with every seed in {len(held)} of {len(gains)} cells (intensity at memory): " + ", ".join(held) + "."
    said += f" Of the {len(pairs)} programs (cells and seeds) {possible} allow a gain of {CLAIM} at all, and it is reached in {reached} of them"
    said += (": not in " + ", ".join(missed) if missed else "") + f". In the other {len(pairs) - possible} the better whole-tensor policy is within {CLAIM} of the bound, so that no policy by parts could gain as much."
    return "\n".join(lines), said


def whole_on_traces(results):
    """The same on given traces: gain of the plan over the better of the two policies that move whole tensors."""
    lines = ["| trace | " + " | ".join(SHARES.split(",")) + " |", "|---|" + "---:|" * 5]
    for rows in results:
        gains = {}
        for memory, found in by_memory(rows).items():
            whole = [found[p]["period_s"] for p in ("g10", "vtensor-whole") if p in found]
            if whole:
                gains[f"{memory / found['plan']['footprint_bytes']:.0%}"] = min(whole) / found["plan"]["period_s"]
        if rows:
            lines.append(f"| {rows[0]['trace']} | " + " | ".join(f"{gains[s]:.4f}" if s in gains else "-" for s in SHARES.split(",")) + " |")
    return "\n".join(lines)


def noise(results):
    lines = ["| trace | memory | seeds | median loss | worst loss | if known | worst against stock | could not run |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for rows in results:
        for row in rows:
            lines.append(f"| {row['trace']} | {row['memory_bytes'] / 2**30:.2f} GiB | {row['seeds']} | {row['median_loss']:.1%} | {row['worst_loss']:.1%} | {row['median_loss_if_known']:.1%} | "
                         f"{row['worst_over_stock']:.2f} | {row['cannot']} |")
    every = [row for rows in results for row in rows]
    above = [f"{row['trace']} with {row['memory_bytes'] / 2**30:.2f} GiB ({row['median_loss']:.1%})" for row in every if row["median_loss"] > 0.05]
    said = f"The median loss is at most 5 % in {len(every) - len(above)} of {len(every)} rows" + (", and more on " + ", ".join(above) if above else "") + ". "
    worst = max((row["worst_over_stock"] for row in every), default=0)
    return "\n".join(lines), said + f"No seed takes more than {worst:.2f} of stock unified memory's time."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    parser.add_argument("--work", default=ROOT / "build/policy_results", help="folder for intermediate figures")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--atp", default=ROOT / "build/release/bin/atp", help="the program")
    parser.add_argument("--finished", action="store_true", help="run nothing: leave out what FOLDER has no figures of")
    parser.add_argument("--only", help="sections to make, with commas between")
    options = parser.parse_args()
    only = set((options.only or ",".join(SECTION_NAMES)).split(","))
    if not only <= set(SECTION_NAMES):
        parser.error("--only: " + ", ".join(SECTION_NAMES))
    figures = Figures(options.work, options.jobs, options.atp, options.finished)
    page = Page(SECTIONS.read_text())
    synthetic = [figures.synthetic(kind) for kind in KINDS]

    def all_of(what, traces, *arguments):
        jobs = [figures.later(f"{what}-{pathlib.Path(t).stem}", "replay", *arguments, t) for t in traces]
        return [job.result() for job in jobs]

    swap = ("--policy", SWAP, "--memory", SHARES)
    if "given" in only:
        given = all_of("swap", options.traces, *swap)
        page.fill("GIVEN", *comparison(given))
        page.fill("WHOLE", whole_on_traces(given))
    if "again" in only:
        again = all_of("again2", options.traces, "--policy", ",".join(RECOMPUTE), "--memory", SHARES)
        figures.path_of = {rows[0]["trace"]: path for rows, path in zip(again, options.traces) if rows}
        page.fill("AGAIN", *recomputation(again, recompute_bounds(figures, again)))
    if "synthetic" in only:
        page.fill("SYNTHETIC", *comparison(all_of("swap", synthetic, *swap)))
    if "parts" in only:
        page.fill("PARTS", *parts_against_whole(figures))
    if "noise" in only:
        noisy = all_of("noise", options.traces, "--noise-seeds", "50", "--memory", NOISY_GIVEN)
        page.fill("NOISE", *noise(noisy + all_of("noise", synthetic, "--noise-seeds", "50", "--memory", NOISY)))
    RESULTS.write_text(page.text(RESULTS.read_text() if RESULTS.exists() else ""))


if __name__ == "__main__":
    main()
