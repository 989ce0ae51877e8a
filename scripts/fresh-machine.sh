#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a fresh machine needs git, make, gcc and python3 and nothing else: a Debian 12 or Ubuntu 24.04 chroot with
# just these, a clone of HEAD in it, and README's line that installs, its two commands and what `make demo` prints run as written, timed.
#
# Usage (root): scripts/fresh-machine.sh [--suite SUITE] [--dir DIR] [--pip-cache DIR] [--keep] [--quick] [--run COMMAND]
#   --suite      bookworm (default), or with UBUNTU_MIRROR (its address) jammy or noble
#   --dir        where to build it (20 GB; default: below /var/tmp)
#   --pip-cache  a pip cache to mount, so that wheels are not downloaded again
#   --run        this command in place of README's
#   --quick      without `make test`
#   --keep       leave the chroot there
# Packages come from where this machine's own apt and pip settings say.
set -euo pipefail
cd "$(dirname "$0")/.."

dir='' cache='' keep='' run='' suite=bookworm quick=''
while [ $# -gt 0 ]; do
	case $1 in
	--suite) suite=$2; shift ;;
	--dir) dir=$2; shift ;;
	--pip-cache) cache=$2; shift ;;
	--run) run=$2; shift ;;
	--keep) keep=1 ;;
	--quick) quick=1 ;;
	*) sed -n 's/^# //p' "$0" | sed -n '4,12p' >&2; exit 2 ;;
	esac
	shift
done
[ "$(id -u)" = 0 ] || { echo 'fresh-machine: must be root' >&2; exit 2; }
command -v debootstrap >/dev/null || { echo 'fresh-machine: please run: apt-get install -y debootstrap' >&2; exit 2; }

# Mounts live in a namespace of our own and are gone with it, however we end.
if [ -z "${FRESH_NAMESPACE:-}" ]; then
	export FRESH_DIR=${dir:-$(mktemp -d /var/tmp/fresh-machine.XXXXXX)}
	rc=0
	FRESH_NAMESPACE=1 unshare --mount --propagation private "$0" --suite "$suite" ${quick:+--quick} ${cache:+--pip-cache "$cache"} ${run:+--run "$run"} || rc=$?
	[ -n "$keep" ] || rm -rf --one-file-system "$FRESH_DIR" "$FRESH_DIR".{log,times,demo,failed}
	exit $rc
fi

root=$FRESH_DIR
rm -f "$root".{times,failed}
timed() { # name command...
	local name=$1 start=$SECONDS rc=0
	shift
	printf '\n== %s\n' "$name"
	"$@" || rc=$?
	printf '%-28.28s %4d s   exit %d\n' "$name" $((SECONDS - start)) $rc >>"$root.times"
	return $rc
}

mirror() { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sed -nE 's/^(URIs: |deb (\[[^]]*\] )?)([a-z]+:[^ ]*debian\/?)( .*|$)/\3/p' | head -1; }

# debootstrap of Debian 12 does not know the newest Ubuntu: it is made as the one before.
base() {
	local of=("$suite" "$root" "$(mirror)")
	case $suite in
	jammy | noble) of=(--no-check-gpg --components=main,universe "$suite" "$root" "${UBUNTU_MIRROR:?the address of a mirror of Ubuntu}" /usr/share/debootstrap/scripts/jammy) ;;
	esac
	debootstrap --variant=minbase --include=git,make,gcc,python3,ca-certificates "${of[@]}" >"$root.log" 2>&1 || { tail -5 "$root.log"; return 1; }
}

# What belongs to this machine's network and not to the project: certificates, apt and pip settings.
settings() {
	local f
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	rm -f "$root/etc/apt/sources.list"
	local sources=(/etc/apt/sources.list /etc/apt/sources.list.d)
	[ "$suite" = bookworm ] || sources=()
	for f in "${sources[@]}" /etc/apt/apt.conf.d /etc/pip.conf /etc/ssl/certs /usr/local/share/ca-certificates /usr/share/keyrings; do
		[ ! -e "$f" ] || { mkdir -p "$root$(dirname "$f")" && cp -aT "$f" "$root$f"; }
	done
	[ "$suite" = bookworm ] || echo "deb [trusted=yes] $UBUNTU_MIRROR $suite main universe" >"$root/etc/apt/sources.list"
	mount -t proc proc "$root/proc"
	mount --bind /dev "$root/dev"
	mount --bind /dev/pts "$root/dev/pts"
	mount -t tmpfs tmpfs "$root/dev/shm"
	[ -z "$cache" ] || { mkdir -p "$root/root/.cache/pip" && mount --bind "$cache" "$root/root/.cache/pip"; }
	git clone -q . "$root/root/gpumemtrace"
}

inside() {
	local pass
	mapfile -t pass < <(env | grep -E '^(PIP_|SSL_CERT|[a-z]+_proxy=|[A-Z]+_PROXY=)' || true)
	chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${pass[@]}" \
		bash -c "cd /root/gpumemtrace && $1" </dev/null
}

timed debootstrap base
timed settings settings
block() { sed -n "/^<!-- $1 -->/,/^<!-- end -->/p" README.md | grep -v '^[<\`]' | sed 's/ *#.*//'; }
# On the PATH, with the simulated device.
installed='cd /tmp && gpumemtrace run --sim h100-80g -o x.gmt -- python3 /root/gpumemtrace/tests/wheel/program.py && gpumemtrace report x.gmt && man=/usr/local/share/man/man1/gpumemtrace.1 && test -s $man'
commands() {
	block install
	echo "$installed"
	block 'two commands' | { [ -n "$quick" ] && grep -v '^make test' || cat; }
}
# What it prints, as pasted into a shell: the commands of "Where next", whose address is of this recording, then those behind a $.
pasted() {
	{
		echo 'set -ex'
		sed -nE 's/^\$ (export .*)/\1/p' "$root.demo"
		sed -nE 's/^(Where next:|           ) (gpumemtrace .*)/\2/p' "$root.demo"
		sed -nE 's/^\$ (gpumemtrace .*)/\1/p' "$root.demo"
	} >"$root/root/pasted"
	inside 'bash /root/pasted'
}
rc=0
while read -r command; do
	{ timed "$command" inside "$command" || touch "$root.failed"; } 2>&1 | tee "$root.demo"
	[ "$command" != 'make demo' ] || timed 'what it printed' pasted || rc=1
done < <([ -n "$run" ] && echo "$run" || commands)
echo
cat "$root.times"
[ ! -e "$root.failed" ] || rc=1
exit $rc
