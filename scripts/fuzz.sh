#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Damaged traces to every reader of traces, for a while, with the address and undefined-behaviour sanitizers:  scripts/fuzz.sh [SECONDS [SEED]]
# The normal test run does a thousand of each form.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
seconds=${1:-600} seed=${2:-$(date +%s)}
cmake --preset asan -B build/fuzz -DATP_PARTS="protocol;policy;cli;tests/policy" >/dev/null
cmake --build build/fuzz --target trace_fuzz >/dev/null
say "trace_fuzz, $seconds s, seed $seed"
build/fuzz/bin/trace_fuzz --seconds "$seconds" --seed "$seed"
