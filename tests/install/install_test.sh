#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs to a prefix, runs a program larger than the simulated card under the preloaded library word for word as the README says, and uninstalls.
# Usage: install_test.sh CMAKE SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
cmake=$1 source=$2 build=$3
work=$(mktemp -d)
prefix=$work/prefix
manifest=$build/install_manifest.txt
# The build folder may have an installation of its user: its list of files is put back.
[ ! -f "$manifest" ] || cp -p "$manifest" "$work/manifest"
finish() {
  if [ -f "$work/manifest" ]; then mv "$work/manifest" "$manifest"; else rm -f "$manifest"; fi
  rm -rf "$work"
}
trap finish EXIT
fail() {
  echo "failed: $*"
  exit 1
}

"$cmake" --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; fail "cmake --install"; }
for file in bin/atp bin/atpd lib/libatpshim.so lib/atp/sim/libcuda.so.1 lib/atp/sim/libcudart.so.13 share/doc/atpshim/README.md; do
  [ -f "$prefix/$file" ] || fail "$file is not installed"
done
if readelf -d "$prefix/bin/atp" "$prefix"/lib/*.so "$prefix"/lib/atp/sim/*.so* | grep -E 'R(UN)?PATH.*'"$build"; then
  fail "an installed file points into the build folder"
fi

# The program needs more than this card has: it fails as it is, and succeeds under the shim.
program=("$build/bin/examples/stream_sweep" --layers 20 --width 1024 --passes 3)
export LD_LIBRARY_PATH=$prefix/lib/atp/sim ATP_SIM_GPU=tiny ATP_SIM_MEMORY=48MiB
if "${program[@]}" >"$work/native" 2>&1; then fail "the program fits the card, so this test shows nothing"; fi
grep -q 'out of memory' "$work/native" || { cat "$work/native"; fail "the program did not run out of memory"; }

LD_PRELOAD=$prefix/lib/libatpshim.so "${program[@]}" >"$work/preloaded" || fail "under LD_PRELOAD with the library's path"
LD_LIBRARY_PATH=$prefix/lib:$LD_LIBRARY_PATH LD_PRELOAD=libatpshim.so "${program[@]}" >"$work/by_name" ||
  fail "under LD_PRELOAD with the library's name"
"$prefix/bin/atp" run --sim tiny --sim-memory 48MiB --require -- "${program[@]}" >"$work/run" || fail "under the installed atp run"
ATP_SIM_MEMORY=256MiB "${program[@]}" >"$work/large_card" || fail "on a card that is large enough"
for run in preloaded by_name run; do
  diff <(grep checksum "$work/large_card") <(grep checksum "$work/$run") || fail "$run computes something else than the large card"
done
unset LD_LIBRARY_PATH

"$cmake" "-DMANIFEST=$manifest" -P "$source/cmake/Uninstall.cmake" || fail "uninstall"
left=$(find "$prefix" -mindepth 1)
[ -z "$left" ] || fail "uninstall left: $left"
echo "installed, served, removed"
