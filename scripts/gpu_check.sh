#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a real GPU can tell, in one command, without a network: driver and devices, what a prefetch does to other threads,
# look-ups, cost of hooks, examples and (where PyTorch can be imported) a training script natively, under managed memory and under the shim.
# Never asks for more managed memory than is free. Writes one JSON file of results.
# Usage: scripts/gpu_check.sh [--output FILE] [--build FOLDER]     default: build/gpu_check.json, build/release
# Exit: 0 all as it should be, 1 not, 2 usage, 77 skipped: there is no NVIDIA GPU with a driver here.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

output=$ROOT/build/gpu_check.json build=$ROOT/build/release
while [ $# -gt 0 ]; do
  case $1 in
    --output) output=${2:?--output needs a file} && shift 2 ;;
    --build) build=${2:?--build needs a folder} && shift 2 ;;
    -h | --help) sed -n '3,8s/^# //p' "$0" && exit 0 ;;
    *) say "unknown option $1 (see --help)" && exit "$EXIT_USAGE" ;;
  esac
done

no_gpu() { skip "$*, so nothing was checked on a GPU"; }
compgen -G '/dev/nvidia[0-9]*' >/dev/null || no_gpu "there is no NVIDIA device (/dev/nvidia0) here"
python3 - <<'PYTHON' || no_gpu "NVIDIA's driver (libcuda.so.1) is not installed, or finds no device"
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
raise SystemExit(driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0)
PYTHON

targets=(atp atpshim gpu_latency gpu_questions hook_overhead examples probe_main probe_new)
needed=(bin/atp lib/libatpshim.so bin/bench/gpu_latency bin/bench/gpu_questions bin/bench/hook_overhead bin/examples/stream_sweep bin/examples/bfs
  tests/preload/lookup/programs/probe_main tests/preload/lookup/programs/libprobe_new.so)
missing=0
for file in "${needed[@]}"; do [ -x "$build/$file" ] || missing=1; done
if [ "$missing" = 1 ]; then
  say "building what is missing in $build ..."
  root=$(toolkit_root)
  [ -n "$root" ] || die "there is no CUDA 13 toolkit to build with, and no network is used here: build on another machine, or install one"
  CUDAToolkit_ROOT=$root cmake --preset release >&2 || die "cmake could not configure: see above"
  cmake --build "$build" -j "$(nproc)" --target "${targets[@]}" >&2 || die "the build failed"
fi
exec python3 scripts/gpu_check.py --build "$build" --output "$output"
