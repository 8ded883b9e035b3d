#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the CUDA toolkit's compiler and headers into build/cuda-toolkit, from the PyPI wheels in cuda_toolkit.txt, in the layout of an
# ordinary toolkit, so that CMake and nvcc find everything. No driver, no libraries beside the runtime. About 105 MB to fetch, 280 MB on disk.
# Usage: scripts/cuda_toolkit.sh [--no-install]   Exit: 0 it is there, 1 trouble, 2 usage, 3 refused by --no-install.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

for argument in "$@"; do
  case $argument in
    --no-install) NO_INSTALL=1 ;;
    -h | --help) sed -n '3,6s/^# //p' "$0"; exit 0 ;;
    *) say "unknown option $argument (see --help)"; exit "$EXIT_USAGE" ;;
  esac
done

wheels=$ROOT/scripts/cuda_toolkit.txt
target=$ROOT/build/cuda-toolkit
if [ -f "$target/complete" ] && cmp -s "$wheels" "$target/complete"; then exit 0; fi

say "To be installed into build/cuda-toolkit from PyPI wheels: $(grep -v '^#' "$wheels" | cut -d' ' -f1 | tr '\n' ' ')"
refuse_install
[ "$(uname -m)" = x86_64 ] || die "the wheels are for x86_64, this machine is $(uname -m): install a CUDA 13 toolkit by hand"
python3 -m pip --version >/dev/null 2>&1 || need_packages python3-pip

mkdir -p "$ROOT/build"
work=$(mktemp -d "$ROOT/build/cuda-toolkit.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --no-deps --only-binary :all: --require-hashes --dest "$work" -r "$wheels" >&2 ||
  die "pip could not fetch the wheels in scripts/cuda_toolkit.txt"
for wheel in "$work"/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/unpacked"
done

tree=$work/unpacked/nvidia/cu13
# zipfile drops the mode, and the links that nvcc and FindCUDAToolkit look for are not in the wheels.
chmod +x "$tree"/bin/* "$tree"/nvvm/bin/*
chmod +rx "$tree"/bin/crt
ln -s libcudart.so.13 "$tree/lib/libcudart.so"
ln -s lib "$tree/lib64"
cp "$wheels" "$tree/complete"
rm -rf "$target"
mv "$tree" "$target"
say "CUDA toolkit: $("$target/bin/nvcc" --version | sed -n 's/^Cuda compilation tools, //p') in build/cuda-toolkit"
