#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the shim shows to the program that it is loaded into, and what it needs from the system:
#   exported symbols equal tests/shim/exports.golden; libraries needed are glibc's own; no symbol version above glibc_floor.txt.
# The simulated driver and runtime export nothing but the CUDA interface (and what host_symbols.h names).
# Usage: scripts/check_exports.sh [BUILD_FOLDER] [--update]   --update rewrites the golden file.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

build=$ROOT/build/release
update=0
for argument in "$@"; do
  case $argument in
    --update) update=1 ;;
    -h | --help) sed -n '3,6s/^# //p' "$0"; exit 0 ;;
    *) build=$argument ;;
  esac
done
shim=$build/lib/libatpshim.so
golden=$ROOT/tests/shim/exports.golden
broken=0
wrong() {
  say "$*"
  broken=1
}

exports() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | LC_ALL=C sort -u; }

[ -f "$shim" ] || die "$shim is not there: build it first"
if [ "$update" = 1 ]; then exports "$shim" >"$golden"; fi
diff -u --label exports.golden --label "exported now" "$golden" <(exports "$shim") >&2 ||
  wrong "the exported symbols changed; if on purpose: scripts/check_exports.sh --update"

needed=$(readelf -d "$shim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
  case $library in
    libc.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) wrong "libatpshim.so needs $library, which may displace or miss the program's own" ;;
  esac
done

floor=$(sed -n 's/^here //p' "$ROOT/scripts/glibc_floor.txt")
newest=$(objdump -T "$shim" | sed -n 's/.*(\?GLIBC_\([0-9.]*\))\?.*/\1/p' | sort -Vu | tail -1)
if [ "$(printf '%s\n' "$newest" "$floor" | sort -V | tail -1)" != "$floor" ]; then
  wrong "libatpshim.so needs glibc $newest, the floor is $floor:"
  objdump -T "$shim" | grep -F "GLIBC_$newest" >&2
fi

check_names() {  # check_names FILE PATTERN
  local extra
  [ -f "$1" ] || die "$1 is not there: build it first"
  extra=$(exports "$1" | grep -vE "$2" || true)
  [ -z "$extra" ] || wrong "$(basename "$1") exports more than it should: $(echo $extra)"
}
check_names "$build/lib/sim/libcuda.so.1" '^(cu[A-Z]|atpSim)'
check_names "$build/lib/sim/libcudart.so.13" '^(cuda[A-Z]|__cuda)'

[ "$broken" = 0 ] || die "exports or needs are not as agreed"
say "exports: $(exports "$shim" | wc -l) symbols as agreed; needs $(echo $needed); glibc $newest, floor $floor"
