#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts atpd by its unit for the machine under a systemd that is the first process of namespaces of its own (pid, mount, network, host
# name, control groups) and knows no other service: start, answer, what the unit forbids, the group, reload, restart after SIGKILL, stop.
# Needs root, systemd with the named hierarchy of control groups, and a release build; changes nothing outside.
# Usage: scripts/system_unit.sh [BUILD]     default: build/release
# Exit: 0 all as it should be, 1 not, 2 usage, 77 skipped: namespaces or systemd cannot be had here.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
readonly MANAGER=/lib/systemd/systemd HIERARCHY=/sys/fs/cgroup/systemd BIN=/run/bin
[ $# -le 1 ] || exit "$EXIT_USAGE"
self=$ROOT/scripts/system_unit.sh
build=$(cd "${1:-$ROOT/build/release}" && pwd)

main_pid() { systemctl show --property MainPID --value atpd; }
is_another() { [ "$(main_pid)" != 0 ] && [ "$(main_pid)" != "$1" ] && systemctl --quiet is-active atpd; }
answers() { "$@" "$BIN/atp" status --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["daemon"] is None)' 2>/dev/null; }
# As the daemon sees files, from its own mount namespace.
in_its_place() { nsenter --target "$(main_pid)" --mount "$@"; }
as() { setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"; }

# What the first process needs, and nothing of the machine's: no other unit, no store, no settings.
prepare() {
  mount -t tmpfs tmpfs /run && mkdir -p /run/units /run/etc/atp "$BIN"
  # The unit sees neither /home nor /tmp, where a build may lie, and another user may not enter there.
  cp "$build/bin/atp" "$build/bin/atpd" "$BIN/"
  mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /var/tmp
  cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/alternatives /run/etc/
  echo 0123456789abcdef0123456789abcdef >/run/etc/machine-id
  echo 'group = nogroup' >/run/etc/atp/atpd.conf
  mount --bind /run/etc /etc
  # The named hierarchy alone, and no room to mount controllers: those are not this test's.
  mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir "$HIERARCHY"
  mount -t cgroup -o none,name=systemd cgroup "$HIERARCHY" || exit "$EXIT_SKIPPED"
  mount -o remount,ro /sys/fs/cgroup
  sed "s|@CMAKE_INSTALL_FULL_BINDIR@|$BIN|" "$ROOT/daemon/systemd/atpd.service.in" >/run/units/atpd.service
  local target
  for target in nothing basic sysinit shutdown umount final exit multi-user; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"/run/units/$target.target"
  done
}

check() {
  until_holds systemctl --quiet is-active nothing.target 2>/dev/null || die "the manager did not start"
  systemctl start atpd || die "start failed"
  until_holds answers || die "started, and does not answer"
  local first
  first=$(main_pid)
  [ "$(stat -c %a /var/lib/atp)" = 700 ] && [ -s /var/lib/atp/atpd.db ] || die "no store of its own in /var/lib/atp"
  answers as nobody nogroup || die "the group may not ask"
  if answers as daemon daemon; then die "another user may ask"; fi
  if in_its_place touch /usr/atp-unit-test 2>/dev/null; then die "it may write everywhere"; fi
  if in_its_place test -e /dev/mem; then die "it sees devices"; fi
  grep -q '^NoNewPrivs:[[:space:]]*1$' "/proc/$first/status" || die "it may gain privileges"
  grep -q '^CapBnd:[[:space:]]*0*1$' "/proc/$first/status" || die "it has more capabilities than CAP_CHOWN"
  grep -q '^Seccomp:[[:space:]]*2$' "/proc/$first/status" || die "no filter for its address families"

  systemctl reload atpd || die "reload failed"
  [ "$(main_pid)" = "$first" ] && answers || die "reload ended it"
  kill -KILL "$first"
  until_holds is_another "$first" || die "not started again after SIGKILL"
  until_holds answers || die "started again, and does not answer"
  systemctl stop atpd || die "stop failed"
  [ "$(main_pid)" = 0 ] || die "stopped, and still there"
  say "atpd's unit for the machine: started, confined, reloaded, started again after SIGKILL, stopped"
}

case "${ATP_INSIDE:-}" in
  first)
    prepare
    SYSTEMD_UNIT_PATH=/run/units container=atp exec "$MANAGER" --system --unit=nothing.target --log-target=null --show-status=no
    ;;
  check)
    check
    exit 0
    ;;
esac
[ "$(id -u)" = 0 ] || skip "not root"
[ -x "$MANAGER" ] || skip "no systemd here"
[ -d "$HIERARCHY" ] || skip "no named hierarchy of control groups"
group=$HIERARCHY/atp-unit-$$
private=(unshare --mount --pid --fork --kill-child --mount-proc --uts --ipc --net --cgroup)
"${private[@]}" true 2>/dev/null || skip "no namespaces here"
mkdir "$group" 2>/dev/null || skip "no control groups to be had"

first=
clean_up() {
  if [ -n "$first" ]; then
    kill -KILL "$first" 2>/dev/null || true
    wait "$first" 2>/dev/null || true
  fi
  for _ in $(seq 50); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
    sleep 0.1
  done
}
trap clean_up EXIT
# In a control group of its own first, which is then the root of its namespace.
ATP_INSIDE=first bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' bash "$group" "${private[@]}" "$self" "$build" &
first=$!
# The child of unshare is the manager, once it has started.
is_there() { manager=$(pgrep -P "$first" -x systemd); }
until_holds is_there || skip "no systemd as a first process here"
ATP_INSIDE=check nsenter --target "$manager" --mount --pid --uts --ipc --net --cgroup "$self" "$build"
