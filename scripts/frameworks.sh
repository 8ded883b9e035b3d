#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the frameworks in frameworks.txt into build/frameworks, a virtual environment of Python, and runs the tests that need them
# (label `frameworks`: unmodified frameworks on the simulated machine, with the preload library and without). About 100 MB to fetch.
# Usage: scripts/frameworks.sh [--no-install] [--environment] [--wheels [NAME...]]
#   --environment  only makes the virtual environment
#   --wheels       instead: imports PyTorch, JAX, TensorFlow and CuPy with and without the preload library (framework_wheels.txt). Gigabytes.
# Exit: 0 all passed, or skipped because PyPI cannot be reached; 1 trouble, 2 usage, 3 refused by --no-install.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

only_environment=0
wheel_names=()
want_wheels=0
for argument in "$@"; do
  case $argument in
    --wheels) want_wheels=1 ;;
    --no-install) NO_INSTALL=1 ;;
    --environment) only_environment=1 ;;
    -h | --help) sed -n '3,8s/^# //p' "$0" && exit 0 ;;
    *)
      if [ "$want_wheels" = 0 ] || ! grep -q "^$argument " scripts/framework_wheels.txt; then
        say "unknown option $argument (see --help)"
        exit "$EXIT_USAGE"
      fi
      wheel_names+=("$argument")
      ;;
  esac
done

environment=$ROOT/build/frameworks
wheels=$ROOT/scripts/frameworks.txt

# scripts/frameworks.txt has wheels for these. Ubuntu 22.04 has Python 3.10, which tinygrad does not run on, and python3.11 beside it.
can_run_frameworks() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }

choose_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11; do
    if can_run_frameworks "$name"; then
      "$name" -c 'import ensurepip' 2>/dev/null || need_packages "$name-venv"
      python=$name
      return
    fi
  done
  need_packages python3.11 python3.11-venv
  can_run_frameworks python3.11 || die "the frameworks need Python 3.11 to 3.13; here is $(python3 --version), and no other was found"
  python=python3.11
}

make_environment() {
  local python log=$ROOT/build/logs/frameworks-pip.log
  if [ -f "$environment/complete" ] && cmp -s "$wheels" "$environment/complete"; then return; fi
  say "To be installed into build/frameworks from PyPI: $(sed -n 's/^\([a-z].*==[^ ]*\).*/\1/p' "$wheels" | tr '\n' ' ')"
  refuse_install
  choose_python
  mkdir -p "$ROOT/build/logs"
  rm -rf "$environment"
  "$python" -m venv "$environment" >&2
  if ! "$environment/bin/python" -m pip install --disable-pip-version-check --only-binary :all: --require-hashes -r "$wheels" >"$log" 2>&1; then
    rm -rf "$environment"
    # pip says this each time a connection fails, and of no other trouble.
    if grep -q 'Retrying (Retry(' "$log"; then
      say "SKIPPED: PyPI cannot be reached, so no framework was tested (build/logs/frameworks-pip.log)"
      exit 0
    fi
    cat "$log" >&2
    die "pip could not install what scripts/frameworks.txt names"
  fi
  cp "$wheels" "$environment/complete"
}

# Numba looks for the toolkit's compiler library where toolkits from a package have it; those from wheels have it beside the other libraries.
show_toolkit_to_numba() {
  local toolkit view=$environment/cuda library
  toolkit=$(toolkit_root)
  [ -n "$toolkit" ] || die "no CUDA toolkit (scripts/cuda_toolkit.sh installs one)"
  rm -rf "$view"
  mkdir -p "$view/nvvm/lib64"
  for library in "$toolkit"/nvvm/lib64/libnvvm.so.* "$toolkit"/lib64/libnvvm.so.*; do
    [ ! -f "$library" ] || ln -sf "$library" "$view/nvvm/lib64/"
  done
  ln -s "$toolkit/nvvm/libdevice" "$view/nvvm/libdevice"
  ln -s "$toolkit/lib64" "$view/lib64"
}

# One environment a framework: they need different versions of the same libraries.
compare_wheels() {
  local python name packages target
  choose_python
  [ ${#wheel_names[@]} -gt 0 ] || mapfile -t wheel_names < <(sed -n 's/^\([a-z][^ ]*\) .*/\1/p' scripts/framework_wheels.txt)
  for name in "${wheel_names[@]}"; do
    target=$ROOT/build/wheels/$name
    [ ! -f "$target/complete" ] || continue
    packages=$(sed -n "s/^$name  *//p" scripts/framework_wheels.txt)
    say "To be installed into build/wheels/$name from PyPI: $packages"
    refuse_install
    rm -rf "$target"
    "$python" -m venv "$target" >&2
    # shellcheck disable=SC2086  # one word per package
    "$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: $packages >&2 || die "pip could not install $packages"
    touch "$target/complete"
  done
  python3 tests/frameworks/wheels.py "$ROOT/build/release" "$ROOT/build/wheels" "${wheel_names[@]}"
}

if [ "$want_wheels" = 1 ]; then
  compare_wheels
  exit
fi
make_environment
show_toolkit_to_numba
[ "$only_environment" = 0 ] || exit 0
# tinygrad's backend for the processor, which its results are held against, calls it.
command -v clang >/dev/null || need_packages clang
ctest --preset release --no-tests=error -j "$(nproc)" -L frameworks
