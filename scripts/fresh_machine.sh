#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the two commands of the README as a newcomer would: in a bare userland of its own, on a clone of the last commit.
# The userland is made anew by debootstrap in build/fresh-SUITE (4 GB, network). Needs root. Not part of the usual tests: takes as long as they do,
# and the set-up. What the machine itself has (compilers, CUDA toolkit, caches) is not seen inside.
# Usage: scripts/fresh_machine.sh [SUITE]      bookworm (Debian 12, default), jammy or noble (Ubuntu 22.04, 24.04)
# Exit: 0 both commands passed, 1 one failed, 2 usage, 77 skipped: not root, no debootstrap, or the servers cannot be reached.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

suite=${1:-bookworm}
case $suite in
  bookworm) mirror=http://deb.debian.org/debian components=main ;;
  jammy | noble) mirror=http://archive.ubuntu.com/ubuntu components=main,universe ;;
  -h | --help) sed -n '3,7s/^# //p' "$0" && exit 0 ;;
  *) say "unknown suite $suite (see --help)" && exit "$EXIT_USAGE" ;;
esac
[ "$(id -u)" = 0 ] || skip "a userland of its own needs root"
command -v debootstrap >/dev/null || skip "there is no debootstrap (Debian package debootstrap)"

userland=$ROOT/build/fresh-$suite
certificates=/etc/ssl/certs/ca-certificates.crt
inside() {
  chroot "$userland" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}
say "making the userland build/fresh-$suite ..."
rm -rf --one-file-system "$userland"
debootstrap --variant=minbase --components="$components" --include=ca-certificates,git "$suite" "$userland" "$mirror" >&2 ||
  skip "$suite could not be fetched"
cp "$certificates" "$userland$certificates" # a network with a certificate of its own

finish() { umount "$userland/dev" "$userland/proc" || true; }
trap finish EXIT
mount --bind /proc "$userland/proc"
mount --bind /dev "$userland/dev"
git clone -q "$ROOT" "$userland/root/atp-shim"

for command in scripts/demo.sh scripts/test.sh; do
  say "== in $suite: $command"
  inside sh -c "cd /root/atp-shim && exec $command" || die "$command failed in $suite"
done
say "both commands passed in $suite in $SECONDS s"
