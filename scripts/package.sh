#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package and a Python wheel of one file each: the shim, the command atp and the simulated machine. What is packed needs nothing
# but glibc, of the version of the system on which this runs (for old ones: scripts/package_in_debian_11.sh). The daemon is a Debian package of
# its own, because it needs libraries of this very system.
# Usage: scripts/package.sh [--output FOLDER] [--build FOLDER] [--without-sim]
#   --output       where the packages go (build/packages)
#   --build        pack this finished build as it is, instead of making one of our own in build/package
#   --without-sim  leave the simulated machine and the daemon out: they need g++ 11 and newer libraries, the rest g++ 10
# Exit: 0 done, 1 trouble, 2 usage, 3 something must be installed and --no-install was given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

output=$ROOT/build/packages build= parts='protocol;policy;sim;shim;cli;daemon'
while [ $# -gt 0 ]; do
  case $1 in
    --output) output=${2:?--output needs a folder} && shift 2 ;;
    --build) build=${2:?--build needs a folder} && shift 2 ;;
    --without-sim) parts='protocol;policy;shim;cli' && shift ;;
    --no-install) NO_INSTALL=1 && shift ;;
    -h | --help) sed -n '3,10s/^# //p' "$0" && exit 0 ;;
    *) say "unknown option $1 (see --help)" && exit "$EXIT_USAGE" ;;
  esac
done

# Everything that is linked in is linked statically, but for glibc; --lp needs libraries that cannot be.
make_build() {
  build=$ROOT/build/package
  local static='-static-libstdc++ -static-libgcc'
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DATP_LP=OFF -DCMAKE_INSTALL_LIBDIR=lib \
    "-DATP_PARTS=$parts" "-DCMAKE_EXE_LINKER_FLAGS=$static" "-DCMAKE_SHARED_LINKER_FLAGS=$static" >&2
  cmake --build "$build" -j "$(nproc)" >&2
}

# The newest glibc version that any of the files asks for.
newest_glibc() { objdump -T "$@" 2>/dev/null | sed -n 's/.*(\?GLIBC_\([0-9.]*\))\?.*/\1/p' | sort -Vu | tail -1; }

make_deb() {  # make_deb STAGE FILE
  local root=$work/deb installed
  mkdir -p "$root/DEBIAN"
  cp -a "$1" "$root/usr"
  installed=$(du -sk "$root/usr" | cut -f1)
  cat >"$root/DEBIAN/control" <<CONTROL
Package: atpshim
Version: $version
Architecture: amd64
Maintainer: ATP Shim developers <atpshim@localhost>
Installed-Size: $installed
Depends: libc6 (>= $glibc)
Section: science
Priority: optional
Description: runs CUDA programs that need more GPU memory than the card has
 A preloaded library turns a program's device allocations into managed memory
 and moves it before it is needed. Contains the library, the command atp and a
 simulated GPU for trying and testing.
CONTROL
  dpkg-deb -Zxz -z3 --root-owner-group --build "$root" "$2" >&2
}

# Packages of the libraries that a file needs.
packages_of() {
  local name path
  objdump -p "$1" | sed -n 's/^ *NEEDED *//p' | while read -r name; do
    path=$(ldconfig -p | sed -n "s|^\s*$name (libc6,x86-64.*) => ||p" | head -n 1)
    [ -n "$path" ] || die "$name, which $1 needs, is not installed"
    path=$(readlink -f "$path")
    { dpkg -S "$path" "${path#/usr}" 2>/dev/null || true; } | cut -d: -f1 | head -n 1 # its folder is a link since Debian 12
  done | sort -u
}

make_daemon_deb() {  # make_daemon_deb STAGE FILE
  local root=$work/daemon-deb depends
  mkdir -p "$root/DEBIAN"
  cp -a "$1" "$root/usr"
  # The units were made for the prefix of the build.
  sed -i 's|^ExecStart=[^ ]*/atpd|ExecStart=/usr/bin/atpd|' "$root"/usr/lib/systemd/*/atpd.service
  depends=$(packages_of "$root/usr/bin/atpd" | grep -v '^libc6$' | paste -sd,)
  cat >"$root/DEBIAN/control" <<CONTROL
Package: atpd
Version: $version
Architecture: amd64
Maintainer: ATP Shim developers <atpshim@localhost>
Depends: libc6 (>= $(newest_glibc "$root/usr/bin/atpd")), $depends
Recommends: atpshim
Section: science
Priority: optional
Description: remembers what the ATP shim has learned of each program
 The next run of a program begins with what the last one has learned, and idle
 time is used to find better plans. Contains the daemon and its systemd units,
 for the machine and for a user; neither is enabled.
CONTROL
  dpkg-deb -Zxz -z3 --root-owner-group --build "$root" "$2" >&2
}

[ -n "$build" ] || make_build
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
[ -n "$version" ] || die "$build is not a configured build folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/stage" >"$work/log" || { cat "$work/log" >&2; die "cmake --install"; }
rm -f "$build/install_manifest.txt"  # this was not the user's installation
if [ -f "$work/stage/bin/atpd" ]; then
  mkdir -p "$work/daemon/bin" "$work/daemon/lib"
  mv "$work/stage/bin/atpd" "$work/daemon/bin/"
  mv "$work/stage/lib/systemd" "$work/daemon/lib/"
  strip --strip-unneeded "$work/daemon/bin/atpd"
fi
mapfile -t files < <(find "$work/stage/bin" "$work/stage/lib" -type f)
strip --strip-unneeded "${files[@]}"
glibc=$(newest_glibc "${files[@]}")
mkdir -p "$output"
make_deb "$work/stage" "$output/atpshim_${version}_amd64.deb"
python3 scripts/make_wheel.py --stage "$work/stage" --version "$version" --glibc "$glibc" --output "$output" >&2
if [ -d "$work/daemon" ]; then make_daemon_deb "$work/daemon" "$output/atpd_${version}_amd64.deb"; fi
say "packages for glibc $glibc and newer:"
ls "$output"/atp*_"$version"_amd64.deb "$output"/atpshim-"$version"-*.whl
