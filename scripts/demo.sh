#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains a small transformer that needs 1.5 times the memory of a simulated GPU: as it is, under plain managed memory, and under the shim.
# Builds what it needs first. Prints a table; needs no GPU.
# Usage: scripts/demo.sh [--json] [--no-install]
# Exit: 0 done, 1 trouble, 2 usage, 3 something must be installed and --no-install was given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

options=()
for argument in "$@"; do
  case $argument in
    --json) options+=(--json) ;;
    --no-install) NO_INSTALL=1 ;;
    -h | --help) sed -n '3,6s/^# //p' "$0" && exit 0 ;;
    *) say "unknown option $argument (see --help)" && exit "$EXIT_USAGE" ;;
  esac
done

need_build_environment
say "building (progress in build/logs/demo-build.log) ..."
mkdir -p build/logs
{ cmake --preset release && cmake --build --preset release -j "$(nproc)" --target demo_programs; } \
  >build/logs/demo-build.log 2>&1 || { tail -30 build/logs/demo-build.log >&2; die "the build failed"; }
exec python3 scripts/demo.py "${options[@]}" build/release
