#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Damaged bytes to every reader of what others write, for a while, with the address and undefined-behaviour sanitizers:  scripts/fuzz.sh [SECONDS [SEED]]
# Half of the time for traces, half for messages, stores, records, machine files, settings and PTX. The normal test run does some hundred of each form.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
seconds=${1:-600} seed=${2:-$(date +%s)}
cmake --preset asan -B build/fuzz -DATP_PARTS="protocol;policy;cli;daemon;tests/policy;tests/fuzz" >/dev/null
for fuzzer in trace_fuzz foreign_fuzz; do
  cmake --build build/fuzz --target "$fuzzer" >/dev/null
  say "$fuzzer, $((seconds / 2)) s, seed $seed"
  "build/fuzz/bin/$fuzzer" --seconds "$((seconds / 2))" --seed "$seed"
done
