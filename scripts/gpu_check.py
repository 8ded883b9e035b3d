# SPDX-License-Identifier: Apache-2.0
"""The checks behind gpu_check.sh.  gpu_check.py --build FOLDER --output FILE [--quick]

Each check is a function that returns what it found; a wrong result adds a line to `problems`, and what cannot be measured
here is "unknown", never 0. Later work adds its own functions to CHECKS. --quick is for a test of this script itself, on
the simulated machine.
"""
import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

POLICIES = {"native": None, "managed": "managed", "shim": "learned"}
UNKNOWN = "unknown"


class Machine:
    def __init__(self, build, quick):
        self.build = build
        self.quick = ["--quick"] if quick else []
        self.sizes = ("1", "256", "3") if quick else ("2", "512", "8")
        self.shim = build / "lib/libatpshim.so"
        self.problems = []

    def run(self, command, policy=None, more=None, timeout=600):
        """Output of a command; `policy` None runs it without the shim."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ATP_") or k.startswith("ATP_SIM_")}
        if policy:
            environment.update(LD_PRELOAD=str(self.shim), ATP_POLICY=policy)
        environment.update(more or {})
        return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True,
                              timeout=timeout, check=False)

    def problem(self, text):
        self.problems.append(text)
        print(f"WRONG: {text}", file=sys.stderr, flush=True)


def doctor(machine):
    """Driver, devices and their features."""
    done = machine.run([machine.build / "bin/atp", "doctor", "--json"])
    found = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        machine.problem(f"atp doctor: {found.get('reasons', done.stderr)}")
    return found


def latency(machine):
    """First question: launch latency, and mmap in another thread, while 256 MiB are prefetched to the host."""
    found = {}
    for name, policy in POLICIES.items():
        done = machine.run([machine.build / "bin/bench/gpu_latency", "--json", *machine.quick], policy)
        if done.returncode != 0:
            machine.problem(f"gpu_latency, {name}: {done.stderr.strip()}")
            found[name] = UNKNOWN
        else:
            found[name] = json.loads(done.stdout)
    return found


def lookups(machine):
    """Every look-up of a hooked function: the same status, and the shim's function where the driver has one."""
    hooks = re.findall(r"^HOOK\((\w+), (\w+), (\w+), (\d+), (\w+),",
                       (Path(__file__).parent.parent / "shim/hooks.def").read_text(encoding="utf-8"), re.MULTILINE)
    child = [sys.executable, __file__, "--answer-lookups", json.dumps(hooks)]
    answers = {name: machine.run(child, policy).stdout.splitlines() for name, policy in
               (("native", None), ("shim", "learned"))}
    wrong = 0
    for before, after in zip(answers["native"], answers["shim"]):
        question, found, _ = before.rsplit("\t", 2)
        expected = f"{question}\t{found}\t" + ("libatpshim.so" if found == "1" else "-")
        if after != expected:
            wrong += 1
            machine.problem(f"look-up: {before!r} became {after!r}")
    if len(answers["native"]) != len(hooks) or len(answers["shim"]) != len(hooks):
        machine.problem("look-ups: a process ended early")
    return {"look_ups": len(answers["native"]), "wrong": wrong}


def answer_lookups(hooks):
    """In a child: name, version, flags, result, status, found, object of the answer."""

    class DlInfo(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                    ("address", ctypes.c_void_p)]

    driver = ctypes.CDLL("libcuda.so.1")
    dladdr = ctypes.CDLL(None).dladdr
    driver.cuInit(0)
    for _, _, name, version, twin in hooks:
        function, status, info = ctypes.c_void_p(), ctypes.c_int(-1), DlInfo()
        flags = ctypes.c_uint64(0 if twin == "kLegacy" else 2)
        result = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(function), int(version), flags,
                                            ctypes.byref(status))
        found = bool(function.value and dladdr(function, ctypes.byref(info)))
        where = os.path.basename(info.file.decode()) if found else "-"
        print(name, version, twin, result, status.value, int(found), where, sep="\t")


def compare(machine, name, command, times, more=None):
    """Runs a program in all ways; its output without times must be the same."""
    results, found = {}, {}
    for way, policy in POLICIES.items():
        done = machine.run(command, policy, more if policy else None, timeout=1800)
        if done.returncode != 0:
            machine.problem(f"{name}, {way}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
            found[way] = UNKNOWN
            continue
        ms = [float(value) for value in re.findall(times, done.stdout)]
        results[way] = re.sub(times, "", done.stdout)
        found[way] = {"ms": ms, "best_ms": min(ms) if ms else UNKNOWN, "faults": UNKNOWN}
    for way, text in results.items():
        if text != results.get("native"):
            machine.problem(f"{name}, {way}: results differ from the native ones")
    found["identical"] = len(results) == len(POLICIES) and len(set(results.values())) == 1
    return found


def examples(machine):
    """The repository's own programs; small, and with a budget below what they use, so that memory is moved on purpose."""
    layers, width, iterations = machine.sizes
    budget = {"ATP_BUDGET": "8MiB" if machine.quick else "64MiB", "ATP_LOG": "error"}
    folder = machine.build / "bin/examples"
    return {
        "train_transformer": compare(machine, "train_transformer",
                                     [folder / "train_transformer", "--layers", layers, "--width", width,
                                      "--iterations", iterations],
                                     r"ms +([0-9.]+)", budget),
        "stream_sweep": compare(machine, "stream_sweep", [folder / "stream_sweep", "--layers", "8" if machine.quick else "24", "--passes",
                                                  iterations],
                                r"ms +([0-9.]+)", budget),
    }


def pytorch(machine):
    """A real training script, where PyTorch is installed."""
    if machine.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode != 0:
        return "skipped: PyTorch with CUDA cannot be imported"
    script = Path(__file__).parent.parent / "examples/train_torch.py"
    return {"fits": compare(machine, "train_torch", [sys.executable, script], r"ms ([0-9.]+)"),
            "moved": compare(machine, "train_torch with a small budget", [sys.executable, script], r"ms ([0-9.]+)",
                             {"ATP_BUDGET": "256MiB", "ATP_LOG": "error"})}


def hooks(machine):
    """What the hooks cost on this driver. No figure is judged: the driver's own calls take longer, and vary."""
    done = machine.run([machine.build / "bin/bench/hook_overhead", "--real", *machine.quick])
    if done.returncode != 0:
        machine.problem(f"hook_overhead: {done.stderr.strip()}")
        return UNKNOWN
    return json.loads(done.stdout)


CHECKS = {"doctor": doctor, "latency": latency, "lookups": lookups, "hooks": hooks, "examples": examples, "pytorch": pytorch}


def main():
    if sys.argv[1:2] == ["--answer-lookups"]:
        answer_lookups(json.loads(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    machine = Machine(options.build.resolve(), options.quick)
    results = {}
    for name, check in CHECKS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            results[name] = check(machine)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            machine.problem(f"{name}: {error}")
            results[name] = UNKNOWN
    results["problems"] = machine.problems
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"{len(machine.problems)} problems; results in {options.output}", file=sys.stderr)
    return 1 if machine.problems else 0


if __name__ == "__main__":
    sys.exit(main())
