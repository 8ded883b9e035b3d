#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests everything, as CI does. Needs no GPU.
# Usage: scripts/test.sh [--no-install] [--list] [STEP...]    without STEP: all but those on request, in the order of --list
# Exit: 0 all passed, 1 a step failed, 2 usage, 3 something must be installed and --no-install was given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
JOBS=$(nproc)
LOGS=$ROOT/build/logs
WRAP=() # put in front of what runs our programs

# --- steps: one function each; the comment behind the name is what --list prints

step_layout() { # dependency rule, licence lines, length of files
  scripts/check_layout.sh
}

step_format() { # clang-format 14
  scripts/format.sh --check
}

step_release() { # release build, warnings are errors
  build release
  # What is compiled with a generated file must say so, or a clean build fails now and then. Ninja knows since 1.11.
  if ninja -t list | grep missingdeps >/dev/null; then ninja -C build/release -t missingdeps; fi
}

step_test() { # every test but those of frameworks, on the release build
  want_package chromium-headless-shell "no browser looks at the report page" # Ubuntu has its browsers as snaps
  want_package libtcmalloc-minimal4 "the shim is not tried beside tcmalloc" # Ubuntu 24.04 has it under another name
  run_tests release -LE frameworks
}

step_frameworks() { # frameworks from PyPI on the simulated machine, with the preload library and without
  NO_INSTALL=$NO_INSTALL scripts/frameworks.sh
}

step_exports() { # exported symbols, libraries needed, glibc version of what is preloaded
  scripts/check_exports.sh build/release
}

step_asan() { # on request: tests of shim and sim under the address and undefined-behaviour sanitizers
  build asan
  run_tests asan -L 'unit|sim'
}

step_tsan() { # on request: the same under the thread sanitizer
  # g++ 12's thread sanitizer does not start where the kernel randomises addresses by more than 28 bits.
  if setarch -R true 2>/dev/null; then WRAP=(setarch -R); fi
  build tsan
  run_tests tsan -L 'unit|sim'
}

# --- what they are made of

build() { # build PRESET
  cmake --preset "$1" >"$LOGS/configure-$1.log" 2>&1 || { cat "$LOGS/configure-$1.log"; return 1; }
  "${WRAP[@]}" cmake --build --preset "$1" -j "$JOBS" # runs test programs, to find their tests
}

run_tests() { # run_tests PRESET CTEST_OPTION...
  local preset=$1 result=0
  shift
  "${WRAP[@]}" ctest --preset "$preset" --no-tests=error -j "$JOBS" "$@" 2>&1 | tee "$LOGS/ctest-$preset.log" || result=1
  # The runner's own closing lines are repeated at the end, where a reader looks.
  { echo "$preset:"; sed -n '/tests passed/,$p' "$LOGS/ctest-$preset.log"; } >>"$LOGS/summary"
  return "$result"
}

known_steps() { sed -n 's/^step_\([a-z]*\)().*/\1/p' "$0"; }

# A step whose comment begins with "on request" runs only when it is named.
all_steps() { sed -n '/# on request/d; s/^step_\([a-z]*\)().*/\1/p' "$0"; }

run_step() {
  local started=$SECONDS
  say "== $1"
  # A new shell, because `set -e` is off inside a function whose status somebody looks at.
  if ! NO_INSTALL=$NO_INSTALL ATP_TEST_STEP=$1 "$0"; then
    say "== $1 FAILED after $((SECONDS - started)) s (again: scripts/test.sh $1)"
    [ ! -s "$LOGS/summary" ] || cat "$LOGS/summary"
    exit 1
  fi
  say "== $1 passed in $((SECONDS - started)) s"
}

if [ -n "${ATP_TEST_STEP:-}" ]; then
  step=$ATP_TEST_STEP
  unset ATP_TEST_STEP
  "step_$step"
  exit
fi

steps=()
for argument in "$@"; do
  case $argument in
    --no-install) NO_INSTALL=1 ;;
    --list) sed -n 's/^step_\([a-z]*\)() { # /\1\t/p' "$0" && exit 0 ;;
    -h | --help) sed -n '3,5s/^# //p' "$0" && exit 0 ;;
    *)
      known_steps | grep -x -- "$argument" >/dev/null || { say "unknown step $argument (see --list)"; exit "$EXIT_USAGE"; }
      steps+=("$argument")
      ;;
  esac
done
[ ${#steps[@]} -gt 0 ] || mapfile -t steps < <(all_steps)

need_build_environment
mkdir -p "$LOGS"
rm -f "$LOGS/summary"
for step in "${steps[@]}"; do run_step "$step"; done
[ ! -s "$LOGS/summary" ] || cat "$LOGS/summary"
say "all passed in $SECONDS s: ${steps[*]}"
