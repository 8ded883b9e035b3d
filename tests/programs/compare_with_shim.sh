#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on the simulated machine without and with the preload library and compares what it prints.
# Usage: compare_with_shim.sh SHIM SHARE PROGRAM [ARGUMENT...]
#   SHARE  the card's memory in percent of the program's footprint (50: twice oversubscribed); "any" leaves the card as it is
# LD_LIBRARY_PATH names the simulated machine; SANITIZER_PRELOAD, if set, is loaded before the shim.
set -euo pipefail
shim=$1 share=$2
shift 2

native=$(LD_PRELOAD=${SANITIZER_PRELOAD:-} "$@")
card=
if [ "$share" != any ]; then
  footprint=$(sed -n 's/^footprint //p' <<<"$native")
  card=$((footprint * share / 100))
  export ATP_SIM_MEMORY=$card
fi
if ! shimmed=$(LD_PRELOAD=${SANITIZER_PRELOAD:+$SANITIZER_PRELOAD:}$shim "$@"); then
  printf 'FAIL with the shim, card %s:\n%s\n' "$card" "$shimmed"
  exit 1
fi
if [ "$native" != "$shimmed" ]; then
  printf 'FAIL outputs differ\n--- without\n%s\n--- with the shim, card %s\n%s\n' "$native" "$card" "$shimmed"
  exit 1
fi
printf '%s\n' "$shimmed"
