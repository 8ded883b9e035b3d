#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats all C++ and CUDA sources with clang-format 14 and .clang-format.
# Usage: scripts/format.sh [--check] [FILE...]   --check changes nothing, shows what it would and ends with 1.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

check=0
if [ "${1:-}" = --check ]; then check=1 && shift; fi
if [ "${1:-}" = --help ]; then sed -n '3,4s/^# //p' "$0" && exit 0; fi
formatter=$(command -v clang-format-14) || die "clang-format-14 is not installed (another version formats differently)"

cd "$ROOT"
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(source_files cc h cu cuh); fi
if [ "$check" = 0 ]; then exec "$formatter" -i "${files[@]}"; fi
wrong=0
for file in "${files[@]}"; do
  "$formatter" "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" - || wrong=$((wrong + 1))
done
[ "$wrong" = 0 ] || die "$wrong files are not formatted: run scripts/format.sh"
