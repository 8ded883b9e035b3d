#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a Debian package and a wheel, each into a place of its own, and has each serve a program that needs more memory than a simulated card has.
# Packages without the simulated machine serve processes on a driver that does nothing; CUDA_INCLUDE says where cuda.h is, to compile them.
# Usage: [CUDA_INCLUDE=FOLDER] package_test.sh FOLDER_WITH_PACKAGES
set -euo pipefail
packages=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "failed: $*"
  exit 1
}

${CC:-gcc} -o "$work/program" "$here/package_program.c" -ldl || fail "the program does not compile"

serves_processes() {  # serves_processes PREFIX
  local prefix=$1 way
  if [ ! -x "$work/guest" ]; then
    mkdir -p "$work/noop"
    ${CXX:-g++} -std=c++20 -shared -fPIC -O1 -isystem "$CUDA_INCLUDE" -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o "$work/noop/libcuda.so.1" \
      "$here/../../bench/shim/noop_driver.cc" -ldl -pthread || fail "the driver that does nothing does not compile"
    ${CXX:-g++} -std=c++20 -O1 -isystem "$CUDA_INCLUDE" -o "$work/guest" "$here/../preload/guests/guest.cc" -ldl -pthread ||
      fail "the guest does not compile"
  fi
  export LD_LIBRARY_PATH=$work/noop
  for way in use threads fork-before fork-after exec static-destructor dlclose; do
    "$work/guest" $way >"$work/native" 2>&1 || true
    LD_PRELOAD=$prefix/lib/libatpshim.so "$work/guest" $way >"$work/served" 2>&1 || true
    diff "$work/native" "$work/served" || fail "the process '$way' is not as without the shim"
  done
  LD_PRELOAD=$prefix/lib/libatpshim.so /bin/true 2>"$work/true" && [ ! -s "$work/true" ] || { cat "$work/true"; fail "it does not load"; }
  "$prefix/bin/atp" doctor -- "$work/guest" use >"$work/doctor" 2>&1 || { cat "$work/doctor"; fail "atp doctor"; }
  grep -q 'cuMemAlloc_v2: 3 calls' "$work/doctor" || { cat "$work/doctor"; fail "the calls did not come to the shim"; }
  unset LD_LIBRARY_PATH
}

serves() {  # serves PREFIX
  local prefix=$1
  [ -x "$prefix/bin/atp" ] || fail "no bin/atp in $prefix"
  [ -d "$prefix/lib/atp/sim" ] || { serves_processes "$prefix"; return; }
  if LD_LIBRARY_PATH=$prefix/lib/atp/sim ATP_SIM_GPU=tiny ATP_SIM_MEMORY=32MiB "$work/program" >"$work/native"; then
    fail "the program fits the card, so this test shows nothing"
  fi
  grep -q 'out of memory' "$work/native" || { cat "$work/native"; fail "the program did not run out of memory"; }
  "$prefix/bin/atp" run --sim tiny --sim-memory 32MiB --require -- "$work/program" >"$work/served" || {
    cat "$work/served"
    fail "the program was not served by $prefix"
  }
  grep -q '^right$' "$work/served" || fail "wrong result under $prefix"
  "$prefix/bin/atp" doctor --sim tiny -- "$work/program" >"$work/doctor" 2>&1 || { cat "$work/doctor"; fail "atp doctor"; }
}

deb=("$packages"/atpshim_*_amd64.deb)
[ -f "${deb[0]}" ] || fail "no Debian package in $packages"
dpkg-deb --info "${deb[0]}" | grep 'Depends: libc6' >/dev/null || fail "the package does not say which glibc it needs"
dpkg-deb -x "${deb[0]}" "$work/deb"
serves "$work/deb/usr"

daemon=("$packages"/atpd_*_amd64.deb)
if [ -f "${daemon[0]}" ]; then
  depends=$(dpkg-deb --field "${daemon[0]}" Depends)
  for package in libsqlite3-0 libmicrohttpd libnlopt0; do
    [[ $depends == *$package* ]] || fail "the daemon's package does not say that it needs $package: $depends"
  done
  dpkg-deb -x "${daemon[0]}" "$work/daemon"
  "$work/daemon/usr/bin/atpd" --version >/dev/null || fail "the packed daemon does not start"
  for unit in system user; do
    grep -q '^ExecStart=/usr/bin/atpd ' "$work/daemon/usr/lib/systemd/$unit/atpd.service" || fail "the $unit unit starts another file"
    # What the unit starts must be there.
    sed "s|/usr/bin/atpd|$work/daemon/usr/bin/atpd|" "$work/daemon/usr/lib/systemd/$unit/atpd.service" >"$work/atpd.service"
    if command -v systemd-analyze >/dev/null; then
      XDG_RUNTIME_DIR=$work systemd-analyze $([ $unit = user ] && echo --user) verify --man=no "$work/atpd.service" >"$work/verify" 2>&1 || { cat "$work/verify"; fail "the $unit unit"; }
    else
      echo "SKIPPED: there is no systemd-analyze, the units were not verified"
    fi
  done
fi

wheel=("$packages"/atpshim-*.whl)
[ -f "${wheel[0]}" ] || fail "no wheel in $packages"
python3 -m venv "$work/venv" || fail "no virtual environment"
"$work/venv/bin/python" -m pip install -q --no-index --disable-pip-version-check "${wheel[0]}" || fail "pip does not install the wheel"
serves "$work/venv"
[ "$("$work/venv/bin/python" -m atpshim)" = "$(readlink -f "$work/venv")/lib/libatpshim.so" ] || fail "python -m atpshim names another file"
"$work/venv/bin/python" -m pip uninstall -q -y --disable-pip-version-check atpshim
[ ! -e "$work/venv/lib/libatpshim.so" ] && [ ! -e "$work/venv/bin/atp" ] || fail "pip uninstall left something"
echo "the packages serve a program"
