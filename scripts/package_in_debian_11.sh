#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages of scripts/package.sh in a Debian 11 userland (glibc 2.31), so that they load in old containers, and tries them there.
# They are without the simulated machine, which Debian 11's compiler cannot build.
# The userland is made by debootstrap in build/debian-11 (0.9 GB, some minutes, network) and kept. Needs root. Not part of the usual tests.
# Usage: scripts/package_in_debian_11.sh [--output FOLDER]      default: build/packages
# Exit: 0 done, 1 trouble, 2 usage, 77 skipped: not root, no debootstrap, or Debian's servers cannot be reached.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
CMAKE_WHEEL=cmake==3.25.2
MIRRORS=(http://deb.debian.org/debian http://archive.debian.org/debian)

output=$ROOT/build/packages
while [ $# -gt 0 ]; do
  case $1 in
    --output) output=${2:?--output needs a folder} && shift 2 ;;
    -h | --help) sed -n '3,7s/^# //p' "$0" && exit 0 ;;
    *) say "unknown option $1 (see --help)" && exit "$EXIT_USAGE" ;;
  esac
done
[ "$(id -u)" = 0 ] || skip "a userland of its own needs root"
command -v debootstrap >/dev/null || skip "there is no debootstrap (Debian package debootstrap)"
toolkit=$(toolkit_root)
[ -n "$toolkit" ] || die "the CUDA toolkit's headers are needed: scripts/cuda_toolkit.sh"

userland=$ROOT/build/debian-11
inside() { chroot "$userland" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C "$@"; }

make_userland() {
  local mirror
  for mirror in "${MIRRORS[@]}"; do
    rm -rf "$userland"
    if debootstrap --variant=minbase --include=ca-certificates bullseye "$userland" "$mirror" >&2; then break; fi
  done
  [ -x "$userland/usr/bin/apt-get" ] || skip "Debian 11 could not be fetched"
  inside apt-get update -qq >&2
  inside apt-get install -y -qq --no-install-recommends g++ ninja-build python3-pip python3-venv nlohmann-json3-dev \
    libflatbuffers-dev flatbuffers-compiler libc6-dev binutils >&2
  # Debian 11's CMake is too old. The wheel is fetched out here, where pip knows how.
  python3 -m pip download -q --no-deps --only-binary :all: --dest "$userland/root/wheels" "$CMAKE_WHEEL" >&2
  inside sh -c 'python3 -m pip install -q --no-index /root/wheels/cmake-*.whl' >&2
  # Debian 11 has no CLI11: headers only, taken from this machine's package.
  dpkg -L libcli11-dev | while IFS= read -r file; do
    [ ! -f "$file" ] || cp --parents "$file" "$userland"
  done
  touch "$userland/complete"
}
[ -f "$userland/complete" ] || make_userland

mounted=()
mount_in() {  # mount_in FOLDER PLACE
  mkdir -p "$userland/$2"
  mount --bind "$1" "$userland/$2"
  mounted+=("$userland/$2")
}
finish() {
  local place
  for place in "${mounted[@]}"; do umount "$place" || true; done
}
trap finish EXIT
mount_in "$toolkit" opt/cuda
mount_in /proc proc
mount_in /dev dev
rm -rf "$userland/source"
mkdir -p "$userland/source"
git ls-files -z | xargs -0 cp -a --parents -t "$userland/source"

inside sh -c 'cd /source && CUDAToolkit_ROOT=/opt/cuda scripts/package.sh --no-install --without-sim --output /source/packages' >&2 ||
  die "the packages could not be made"
inside sh -c 'cd /source && CUDA_INCLUDE=/opt/cuda/include tests/install/package_test.sh /source/packages' >&2 || die "the packages do not work in Debian 11"
floor=$(sed -n 's/^debian-11 //p' scripts/glibc_floor.txt)
newest=$(cd "$userland/source/packages" && ls ./*.whl | sed 's/.*manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/')
[ "$(printf '%s\n%s\n' "$newest" "$floor" | sort -V | tail -1)" = "$floor" ] || die "the packages need glibc $newest, scripts/glibc_floor.txt says $floor"
mkdir -p "$output"
cp "$userland"/source/packages/* "$output"
ls "$output"
