#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two training jobs on one simulated card: what the daemon's budgets are worth.

Each is train_transformer of 54 MiB; the card has 68 MiB, so that each alone takes 0.8 of it. Rows:
plain managed memory without anybody who divides the card, the shim without a daemon, the shim with
atpd, and the same with a priority for the second job. Times are virtual, the CUDA events of the
programs themselves.

With --neighbour instead: one such job on a card of 44 MiB, to which a program without the shim
comes after 60 ms of virtual time, takes 13 MiB of plain memory and leaves after 100 ms more.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CARD = "68MiB"


def environment(**more):
    values = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": f"{BUILD}/lib/sim", "ATP_SIM_GPU": "tiny",
              "ATP_SIM_MEMORY": CARD, "LD_PRELOAD": f"{BUILD}/lib/libatpshim.so",
              "ATP_SOCKET": "off", "ATP_RECORD": "off", "ATP_LOG": "error"}
    values.update(more)
    return values


def listening(command):
    """Starts a server and returns when it says that it listens."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "listens at" in line:
            return process
    raise SystemExit(f"sharing: {command[0]} does not start")


def iterations_of(process):
    out, _ = process.communicate()
    if process.returncode != 0:
        raise SystemExit("sharing: a program has failed")
    times = [float(ms) for ms in re.findall(r"ms ([0-9.]+)", out)]
    return times, re.search(r"checksum (\w+)", out).group(1)


def train(count):
    return [f"{BUILD}/bin/examples/train_transformer", "--layers", "1", "--width", "512",
            "--sequence", "16", "--iterations", str(count)]


def together(folder, count, common, own=({}, {})):
    card = listening([f"{BUILD}/lib/sim/simcard", "--socket", f"{folder}/card", "--members", "2"])
    jobs = [subprocess.Popen(train(count), text=True, stdout=subprocess.PIPE,
                             env=environment(ATP_SIM_CARD=f"{folder}/card,{i}", **common, **own[i]))
            for i in (0, 1)]
    results = [iterations_of(job) for job in jobs]
    card.wait()
    return results


def beside_a_neighbour(folder, count, **more):
    card = listening([f"{BUILD}/lib/sim/simcard", "--socket", f"{folder}/card", "--members", "2"])
    common = {"ATP_SIM_MEMORY": "44MiB"}
    job = subprocess.Popen(train(count), text=True, stdout=subprocess.PIPE,
                           env=environment(ATP_SIM_CARD=f"{folder}/card,0", **common, **more))
    neighbour = subprocess.Popen([f"{BUILD}/tests/preload/programs/bin/neighbour", "13", "100"],
                                 stdout=subprocess.DEVNULL,
                                 env=environment(ATP_SIM_CARD=f"{folder}/card,1", LD_PRELOAD="",
                                                 ATP_SIM_START="60", **common))
    result = iterations_of(job)
    if neighbour.wait() != 0:
        raise SystemExit("sharing: the neighbour has failed")
    card.wait()
    return result


def show_neighbour(count, as_json):
    with tempfile.TemporaryDirectory() as folder:
        rows = {"seen": beside_a_neighbour(folder, count),
                "not seen": beside_a_neighbour(folder, count, ATP_DISABLE="neighbours")}
    if len({checksum for _, checksum in rows.values()}) != 1:
        raise SystemExit("sharing: results differ")
    if as_json:
        print(json.dumps({name: times for name, (times, _) in rows.items()}, indent=1))
        return 0
    print("| neighbour | " + " | ".join(str(i + 1) for i in range(count)) + " |")
    print("|---" * (count + 1) + "|")
    for name, (times, _) in rows.items():
        print(f"| {name} | " + " | ".join(f"{ms:.1f}" for ms in times) + " |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=16, help="of each job (default 16)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--neighbour", action="store_true",
                        help="one job, and a neighbour without the shim that comes and goes")
    options = parser.parse_args()
    if options.neighbour:
        return show_neighbour(max(options.iterations, 24), options.json)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        def run(name, common, own=({}, {}), daemon=False):
            server = None
            if daemon:
                place = f"{folder}/atpd.sock"
                server = listening([f"{BUILD}/bin/atpd", "--socket", place, "--store",
                                    tempfile.mktemp(dir=folder)])
                common = dict(common, ATP_SOCKET=place)
            results = together(folder, options.iterations, common, own)
            if server:
                server.terminate()
                server.wait()
            # Their second halves: what learning costs is over by then.
            late = [times[len(times) // 2:] for times, _ in results]
            rows.append({"row": name, "iteration_ms": [sum(t) / len(t) for t in late],
                         "total_ms": [sum(times) for times, _ in results],
                         "iterations_per_s": sum(1e3 * len(times) / sum(times)
                                                 for times, _ in results),
                         "checksums": [checksum for _, checksum in results]})

        run("plain managed memory", {"ATP_POLICY": "managed"})
        run("shim, no daemon", {})
        run("shim and atpd", {}, daemon=True)
        run("the same, second job of priority 1", {}, own=({}, {"ATP_PRIORITY": "1"}), daemon=True)
    for row in rows:
        row["over_plain"] = row["iterations_per_s"] / rows[0]["iterations_per_s"]
    if len({checksum for row in rows for checksum in row["checksums"]}) != 1:
        raise SystemExit("sharing: results differ")
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    print("| two jobs of 0.8 of the card | late iteration, first job | second job | iterations/s, all"
          " of the run, both | over plain |\n|---|---|---|---|---|")
    for row in rows:
        first, second = row["iteration_ms"]
        print(f"| {row['row']} | {first:.2f} ms | {second:.2f} ms | {row['iterations_per_s']:.0f} |"
              f" {row['over_plain']:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
