# SPDX-License-Identifier: Apache-2.0
"""The checks behind gpu_check.sh.  gpu_check.py --build FOLDER --output FILE [--quick] [--fault-counters FOLDER]

Each check is a function that returns what it found; a wrong result adds a line to `problems`, and what cannot be measured
here is "unknown", never 0. Later work adds its own functions to CHECKS. --quick is for a test of this script itself, on
the simulated machine.
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# With the driver's module parameter uvm_enable_debug_procfs=1 (uvm_procfs.c, NVIDIA/open-gpu-kernel-modules) each GPU has its counters here.
FAULT_COUNTERS = Path("/proc/driver/nvidia-uvm/gpus")
POLICIES = {"native": None, "managed": "managed", "shim": "learned"}
UNKNOWN = "unknown"
TIMES = r"ms +([0-9.]+)"
NO_TORCH = "skipped: PyTorch with CUDA cannot be imported"
EXIT_OUT_OF_MEMORY = 3  # of examples/train_torch.py
TORCH_SIZE = ("--layers", "8", "--width", "1024", "--batch", "16", "--sequence", "256", "--steps", "12")
# More than any of the programs below takes, with what its framework and its context need.
WANTED_BYTES, WANTED_BYTES_QUICK = 3 << 30, 64 << 20


class Machine:
    def __init__(self, build, quick, fault_counters, output=Path("gpu_check.json")):
        self.build = build
        self.output = output
        self.fault_counters = fault_counters
        self.quick = ["--quick"] if quick else []
        self.wanted_bytes = WANTED_BYTES_QUICK if quick else WANTED_BYTES
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

    def free_bytes(self):
        """Of the first GPU, just now; 0 when it does not tell."""
        done = self.run([sys.executable, __file__, "--print-free"])
        return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else 0

    def faults(self):
        """Page faults of all GPUs so far, or "unknown"."""
        texts = []
        try:
            texts = [path.read_text(encoding="utf-8") for path in self.fault_counters.glob("*/fault_stats")]
        except OSError:
            pass
        counts = [re.search(r"^replayable_faults\s+(\d+)", text, re.MULTILINE) for text in texts]
        return sum(int(count[1]) for count in counts) if counts and all(counts) else UNKNOWN

    def problem(self, text):
        self.problems.append(text)
        print(f"WRONG: {text}", file=sys.stderr, flush=True)


def with_enough_memory(check):
    """A check that allocates: skipped where less is free than it may take."""

    def guarded(machine):
        free = machine.free_bytes()
        if free >= machine.wanted_bytes:
            return check(machine)
        print(f"  skipped: {free} bytes are free, {machine.wanted_bytes} are wanted", file=sys.stderr, flush=True)
        return f"skipped: {free} bytes are free, {machine.wanted_bytes} are wanted"

    return guarded


def print_free():
    """In a child."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    if driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0:
        print(free.value)


def doctor(machine):
    """Driver, devices and their features."""
    done = machine.run([machine.build / "bin/atp", "doctor", "--json"])
    found = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        machine.problem(f"atp doctor: {found.get('reasons', done.stderr)}")
    print(machine.run([machine.build / "bin/atp", "doctor"]).stdout, file=sys.stderr, flush=True)
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
            for what, when in (("launch", "quiet"), ("launch", "while_memory_leaves"), ("mmap_munmap", "while_memory_leaves")):
                print(f"  {name}, {when}: {what} {found[name][when][what]}", file=sys.stderr, flush=True)
    return found


def questions(machine):
    """What the driver does that no document says; what asks for more memory than is free is not tried."""
    done = machine.run([machine.build / "bin/bench/gpu_questions", "--json", *machine.quick])
    if done.returncode != 0:
        machine.problem(f"gpu_questions: {done.stderr.strip()}")
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    parameters = Path("/sys/module/nvidia_uvm/parameters")
    found["uvm_parameters"] = {file.name: file.read_text(encoding="utf-8").strip() for file in sorted(parameters.glob("*")) if os.access(file, os.R_OK)}
    found["uvm_tools_device"] = Path("/dev/nvidia-uvm-tools").exists()
    return found


def calibrate(machine):
    """Link rates, each way and both, and what prefetches and faults cost: a machine file, which planner, daemon and simulated machine take."""
    file = machine.output.with_name("machine.json")
    done = machine.run([machine.build / "bin/atp", "calibrate", "-o", file, "--json"])
    if done.returncode != 0:
        machine.problem(f"atp calibrate: {done.stderr.strip()}")
        return UNKNOWN
    print(f"  machine file: {file}", file=sys.stderr, flush=True)
    return json.loads(done.stdout)


def hook_rows():
    return re.findall(r"^HOOK\((\w+), (\w+), (\w+), (\d+), (\w+),",
                      (ROOT / "shim/hooks.def").read_text(encoding="utf-8"), re.MULTILINE)


def every_lookup(machine):
    """Every exported name by dlsym on a handle, and every row of cudaTypedefs.h by every resolver: what is hooked must be ours, all else the same."""
    folder = machine.build / "tests/preload/lookup/programs"
    command = [folder / "probe_main", folder / "libprobe_new.so", "local", "libcuda.so.1"]
    if not command[0].exists():
        return "skipped: the probe is not built (target probe_main)"
    hooked = {row[0] for row in hook_rows()}
    native, shim = (machine.run(command, policy).stdout.splitlines() for policy in (None, "learned"))
    asked = wrong = 0
    for before, after in zip(native, shim):
        way, answer = before.split("\t", 1)[0], before.rsplit(":", 1)[-1]
        if way != "handle" and not way.startswith("resolver"):
            continue  # by RTLD_DEFAULT: what is found depends on the caller's scope (docs/hooks.md)
        asked += 1
        expected = before.rsplit("\t", 1)[0] + f"\tlibatpshim.so:{answer}" if answer in hooked else before
        if after != expected:
            wrong += 1
            if wrong <= 20:
                machine.problem(f"look-up: {before!r} became {after!r}")
    if asked == 0 or len(native) != len(shim):
        machine.problem(f"look-ups: {len(native)} answers without the shim, {len(shim)} with it")
    return {"look_ups": asked, "wrong": wrong}


def lookups(machine):
    """Every look-up of a hooked function: the same status, and the shim's function where the driver has one."""
    hooks = hook_rows()
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


def compare(machine, name, command, times, more=None, ways=("native", "managed", "shim")):
    """Runs a program in these ways; its output without times must be the same."""
    results, found = {}, {}
    for way in ways:
        policy = POLICIES[way]
        faults = machine.faults()
        done = machine.run(command, policy, more if policy else None, timeout=1800)
        if done.returncode != 0:
            machine.problem(f"{name}, {way}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
            found[way] = UNKNOWN
            continue
        ms = [float(value) for value in re.findall(times, done.stdout)]
        results[way] = re.sub(times, "", done.stdout)
        found[way] = {"ms": ms, "best_ms": min(ms) if ms else UNKNOWN,
                      "faults": UNKNOWN if faults == UNKNOWN else machine.faults() - faults}
    for way, text in results.items():
        if text != results.get("native"):
            machine.problem(f"{name}, {way}: results differ from the native ones")
    found["identical"] = len(results) == len(ways) and len(set(results.values())) == 1
    return found


# Options: for a GPU, and for a test of this script; and budgets below what the program then uses, so that memory is moved on purpose.
# All of them are small.
EXAMPLES = {
    "train_transformer": ("--layers 2 --width 512 --iterations 8", "64MiB", "--layers 1 --width 256 --iterations 3", "8MiB"),
    "train_vgg": ("--batch 4 --iterations 6", "256MiB", "--channels 4 --hidden 64 --classes 10 --batch 1 --iterations 3", "8MiB"),
    "train_lstm": ("--hidden 1024 --iterations 8", "64MiB", "--hidden 64 --batch 2 --sequence 4 --iterations 3", "8MiB"),
    "decode": ("--width 1024 --tokens 16", "64MiB", "--layers 1 --width 64 --tokens 4", "8MiB"),
    "kmeans": ("--iterations 10", "24MiB", "--chunks 4 --points 1024 --iterations 3", "8MiB"),
    "stencil": ("--iterations 10", "12MiB", "--slabs 4 --edge 32 --iterations 3", "8MiB"),
    "bfs": ("--iterations 10", "24MiB", "--parts 4 --vertices 1024 --degree 8 --iterations 3", "8MiB"),
    "stream_sweep": ("--layers 24 --passes 8", "64MiB", "--layers 8 --passes 3", "8MiB"),
}


@with_enough_memory
def examples(machine):
    """The repository's own programs."""
    found = {}
    for name, (full, budget, quick, quick_budget) in EXAMPLES.items():
        command = [machine.build / "bin/examples" / name, *(quick if machine.quick else full).split()]
        more = {"ATP_BUDGET": quick_budget if machine.quick else budget, "ATP_LOG": "error"}
        found[name] = compare(machine, name, command, TIMES, more)
    return found


SHARES = (0.67, 0.5, 0.25)  # of a program's footprint
# Half a GiB to two, so that a block of 2 MiB weighs little; options for a test of this script behind them.
BUDGETED = {
    "train_transformer": ("--layers 8 --width 1024 --heads 8 --sequence 32 --iterations 16", "--layers 1 --width 256 --iterations 6"),
    "train_vgg": ("--channels 64 --image 224 --hidden 4096 --classes 1000 --batch 2 --iterations 16", EXAMPLES["train_vgg"][2]),
    "train_lstm": ("--layers 4 --hidden 2048 --batch 4 --sequence 8 --iterations 16", EXAMPLES["train_lstm"][2]),
    "decode": ("--layers 11 --width 2048 --heads 16 --batch 1 --context 1024 --prompt 512 --tokens 24", EXAMPLES["decode"][2]),
    "stream_sweep": ("--layers 100 --width 2048 --passes 16", EXAMPLES["stream_sweep"][2]),
}
NOT_COMPARABLE = "not comparable: plain managed memory has the whole card, no budget holds it"


@with_enough_memory
def budgets(machine):
    """The repository's own programs with budgets below what they use: identical results, and the time against the native one."""
    found = {}
    for name, (full, quick) in BUDGETED.items():
        command = [machine.build / "bin/examples" / name, *(quick if machine.quick else full).split()]
        footprint = re.search(r"^footprint (\d+)", machine.run(command, timeout=1800).stdout, re.MULTILINE)
        if not footprint:
            machine.problem(f"{name}: does not tell its footprint")
            continue
        found[name] = {"footprint_bytes": int(footprint[1]), "managed": NOT_COMPARABLE}
        for share in SHARES:
            budget = max(int(share * int(footprint[1])) >> 20, 4)
            row = compare(machine, f"{name} at {share:g}", command, TIMES, {"ATP_BUDGET": f"{budget}MiB", "ATP_LOG": "error"}, ("native", "shim"))
            found[name][f"{share:g}"] = {**row, "budget_mib": budget, "over_native": ratio(row["shim"], row["native"])}
    return found


def ratio(run, other):
    """Of the middle iterations' times."""
    if UNKNOWN in (run, other) or not run["ms"] or not other["ms"]:
        return UNKNOWN
    return statistics.median(run["ms"][len(run["ms"]) // 2:]) / statistics.median(other["ms"][len(other["ms"]) // 2:])


def has_torch(machine):
    return machine.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode == 0


@with_enough_memory
def pytorch_capped(machine):
    """The training script with less memory than it uses: under the shim, and by what PyTorch itself offers at the same cap."""
    if not has_torch(machine):
        return NO_TORCH
    command = [sys.executable, ROOT / "examples/train_torch.py", *TORCH_SIZE]
    native = compare(machine, "train_torch", command, TIMES, ways=("native",))
    peak = re.search(r"^peak (\d+)", machine.run(command, timeout=1800).stderr, re.MULTILINE)
    if not peak:
        machine.problem("train_torch: does not tell its peak")
        return UNKNOWN
    found = {"native": native["native"], "peak_bytes": int(peak[1]), "managed": NOT_COMPARABLE}
    for share in SHARES:
        cap = int(share * int(peak[1]))
        row = compare(machine, f"train_torch at {share:g}", command, TIMES, {"ATP_BUDGET": f"{cap >> 20}MiB", "ATP_LOG": "error"}, ("native", "shim"))
        row["over_native"] = ratio(row["shim"], row["native"])
        for way in ("save-on-cpu", "checkpoint", "cpu-optimizer"):
            row[way] = capped(machine, [*command, "--spare-memory", way, "--cap", str(cap)], native["native"])
        found[f"{share:g}"] = row
    return found


def capped(machine, command, native):
    """One of PyTorch's own ways; "out of memory" where it does not fit under the cap."""
    done = machine.run(command, timeout=1800)
    if done.returncode != 0:
        return "out of memory" if done.returncode == EXIT_OUT_OF_MEMORY else f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    run = {"ms": [float(value) for value in re.findall(TIMES, done.stdout)]}
    return {**run, "over_native": ratio(run, native)}


@with_enough_memory
def pytorch(machine):
    """A real training script, where PyTorch is installed."""
    if not has_torch(machine):
        return NO_TORCH
    script = ROOT / "examples/train_torch.py"
    return {"fits": compare(machine, "train_torch", [sys.executable, script], TIMES),
            "moved": compare(machine, "train_torch with a small budget", [sys.executable, script], TIMES,
                             {"ATP_BUDGET": "256MiB", "ATP_LOG": "error"})}


@with_enough_memory
def hooks(machine):
    """What the hooks cost on this driver. No figure is judged: the driver's own calls take longer, and vary."""
    done = machine.run([machine.build / "bin/bench/hook_overhead", "--real", *machine.quick])
    if done.returncode != 0:
        machine.problem(f"hook_overhead: {done.stderr.strip()}")
        return UNKNOWN
    return json.loads(done.stdout)


CHECKS = {"doctor": doctor, "latency": latency, "questions": questions, "calibrate": calibrate, "lookups": lookups, "every_lookup": every_lookup, "hooks": hooks,
          "examples": examples, "budgets": budgets, "pytorch": pytorch, "pytorch_capped": pytorch_capped}


def main():
    if sys.argv[1:2] == ["--answer-lookups"]:
        answer_lookups(json.loads(sys.argv[2]))
        return 0
    if sys.argv[1:2] == ["--print-free"]:
        print_free()
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fault-counters", type=Path, default=FAULT_COUNTERS)
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    machine = Machine(options.build.resolve(), options.quick, options.fault_counters, options.output.resolve())
    results = {}
    for name, check in CHECKS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            results[name] = check(machine)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            machine.problem(f"{name}: {error}")
            results[name] = UNKNOWN
    results["problems"] = machine.problems
    options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"{len(machine.problems)} problems; results in {options.output}", file=sys.stderr)
    return 1 if machine.problems else 0


if __name__ == "__main__":
    sys.exit(main())
