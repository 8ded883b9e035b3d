# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts in this folder (sourced): messages, and what a fresh machine must have before anything can be built.
# Everything said here goes to stderr; stdout belongs to what a script was asked to print.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
NO_INSTALL=${NO_INSTALL:-0}
readonly EXIT_USAGE=2 EXIT_NOT_INSTALLED=3 EXIT_SKIPPED=77

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}
# For what this machine cannot do; ctest knows the code.
skip() {
  say "SKIPPED: $*"
  exit "$EXIT_SKIPPED"
}

# Waits for a command to hold.
until_holds() {
  for _ in $(seq 100); do
    "$@" && return 0
    sleep 0.1
  done
  return 1
}

# Refuses, under --no-install, to go on without what is named.
refuse_install() {
  if [ "$NO_INSTALL" = 1 ]; then
    say "--no-install was given, so nothing was installed."
    exit "$EXIT_NOT_INSTALLED"
  fi
}

# The Debian packages that are named and not installed, in one line.
missing_packages() {
  local package missing=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  echo "${missing[*]}"
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

need_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "note: no Debian package tools here; going on in the hope that these are installed: $*"
    return
  fi
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  say "To be installed with apt-get: $missing"
  refuse_install
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die "not root and no sudo: install these packages first: $missing"
  as_root apt-get update -qq >&2 || die "apt-get update failed"
  # shellcheck disable=SC2086  # one word per package
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 \
    $missing >/dev/null || die "apt-get could not install: $missing"
}

# A package that not every release has: where it cannot be installed something is left out, and that is said.
want_package() {  # want_package PACKAGE WHAT_IS_LEFT_OUT
  local why=
  if ! command -v apt-cache >/dev/null || [ -z "$(missing_packages "$1")" ]; then return; fi
  if [ "$NO_INSTALL" = 1 ]; then
    why="--no-install was given"
  elif [ -z "$(apt-cache show --no-all-versions "$1" 2>/dev/null)" ]; then
    as_root apt-get update -qq >&2 || true
    [ -n "$(apt-cache show --no-all-versions "$1" 2>/dev/null)" ] || why="this release has no such package"
  fi
  if [ -n "$why" ]; then say "note: $1 is not installed ($why): $2"; else need_packages "$1"; fi
}

# Prints the folder of a usable CUDA toolkit (13.x), nothing when there is none. In the order in which cmake/Cuda.cmake finds them.
toolkit_root() {
  local nvcc
  for nvcc in "${CUDAToolkit_ROOT:+$CUDAToolkit_ROOT/bin/nvcc}" "$ROOT/build/cuda-toolkit/bin/nvcc" \
    "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
    if [ -x "$nvcc" ] && "$nvcc" --version 2>/dev/null | grep 'release 13\.' >/dev/null; then
      dirname "$(dirname "$(readlink -f "$nvcc")")"
      return
    fi
    # A toolkit that was named and cannot be used is not replaced by another one.
    if [ -n "${CUDAToolkit_ROOT:-}" ]; then return; fi
  done
}

# Everything a build needs. Prints what it will install, and nothing when all is there. CMake gets the toolkit by CUDAToolkit_ROOT.
need_build_environment() {
  local root
  # shellcheck disable=SC2046  # one word per package
  need_packages $(grep -v '^#' "$ROOT/scripts/packages.txt")
  root=$(toolkit_root)
  # Our own is asked each time, so that it follows the list of wheels.
  if [ -z "$root" ] || [ "$root" = "$ROOT/build/cuda-toolkit" ]; then
    [ -n "$root" ] || [ -z "${CUDAToolkit_ROOT:-}" ] || die "CUDAToolkit_ROOT=$CUDAToolkit_ROOT has no nvcc of CUDA 13: name another folder, or unset it"
    NO_INSTALL=$NO_INSTALL "$ROOT/scripts/cuda_toolkit.sh" || exit
    root=$(toolkit_root)
  fi
  export CUDAToolkit_ROOT=$root
}

# The project's own files with the given endings, relative to the root, one per line: source_files cc h
source_files() {
  local ending names=()
  for ending in "$@"; do names+=(-o -name "*.$ending"); done
  (cd "$ROOT" && find . -path ./build -prune -o -path ./.git -prune -o -type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | sort)
}
