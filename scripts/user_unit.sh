#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts atpd by its unit for users under a systemd of its own, in private namespaces: start, answer, reload, restart after SIGKILL, stop.
# Needs root, systemd and a release build; changes nothing outside but control groups, which it takes away again.
# Usage: scripts/user_unit.sh [BUILD]     default: build/release
# Exit: 0 all as it should be, 1 not, 2 usage, 77 skipped: namespaces or systemd cannot be had here.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
readonly MANAGER=/lib/systemd/systemd
[ $# -le 1 ] || exit "$EXIT_USAGE"
build=$(cd "${1:-$ROOT/build/release}" && pwd)

main_pid() { systemctl --user show --property MainPID --value atpd; }
is_another() { [ "$(main_pid)" != 0 ] && [ "$(main_pid)" != "$1" ] && systemctl --user --quiet is-active atpd; }
answers() { "$build/bin/atp" status --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["daemon"] is None)'; }

inside() {
  mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 /run/home/.config/systemd/user
  mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd || exit "$EXIT_SKIPPED"
  export XDG_RUNTIME_DIR=/run/user/0 HOME=/run/home
  # Of root it would look in the machine's places.
  export ATP_SOCKET=/run/user/0/atpd.sock
  local options="--foreground --socket $ATP_SOCKET --store /run/home/atpd.db"
  sed "s|@CMAKE_INSTALL_FULL_BINDIR@|$build/bin|; s|--foreground|$options|" "$ROOT/daemon/systemd/atpd-user.service.in" \
    >"$HOME/.config/systemd/user/atpd.service"
  "$MANAGER" --user --log-target=null &
  until_holds systemctl --user --quiet is-active default.target 2>/dev/null || die "the manager did not start"

  systemctl --user start atpd || die "start failed"
  until_holds answers || die "started, and does not answer"
  local first
  first=$(main_pid)
  systemctl --user reload atpd || die "reload failed"
  [ "$(main_pid)" = "$first" ] && answers || die "reload ended it"
  kill -KILL "$first"
  until_holds is_another "$first" || die "not started again after SIGKILL"
  until_holds answers || die "started again, and does not answer"
  systemctl --user stop atpd || die "stop failed"
  [ "$(main_pid)" = 0 ] || die "stopped, and still there"
  say "atpd's unit for users: started, reloaded, started again after SIGKILL, stopped"
  kill %1 && wait
}

if [ "${ATP_INSIDE:-}" = 1 ]; then
  inside
  exit 0
fi
[ "$(id -u)" = 0 ] || skip "not root"
[ -x "$MANAGER" ] || skip "no systemd here"
before=$(find /sys/fs/cgroup/systemd -mindepth 1 -type d 2>/dev/null || true)
private=(unshare --mount --pid --fork --kill-child --mount-proc)
"${private[@]}" true 2>/dev/null || skip "no namespaces here"
code=0
ATP_INSIDE=1 "${private[@]}" "$0" "$build" || code=$?
for group in $(find /sys/fs/cgroup/systemd -mindepth 1 -depth -type d 2>/dev/null); do
  case $'\n'$before$'\n' in *$'\n'"$group"$'\n'*) ;; *) rmdir "$group" || true ;; esac
done
exit "$code"
