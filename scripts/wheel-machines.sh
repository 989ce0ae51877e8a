#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The wheel and the Debian package on bare machines: for each suite a chroot with python3 and nothing of ours;
# the wheel goes into a virtual environment of a user who is not root, a program is recorded on the simulated
# device while the file system is read-only, and the report has the peak that the program knows. Then the same
# with the .deb, as root. Needs dist/ (make release), root, debootstrap, 1 GB for a suite at a time.
# Usage: scripts/wheel-machines.sh [SUITE...]    default: bullseye bookworm trixie, with UBUNTU_MIRROR (its address) jammy noble
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- bullseye bookworm trixie ${UBUNTU_MIRROR:+jammy noble}
case $1 in -*) sed -n 's/^# //p' "$0" | sed -n '2,6p'; exit 2 ;; esac
[ "$(id -u)" = 0 ] || { echo 'wheel-machines: must be root' >&2; exit 2; }
command -v debootstrap >/dev/null || { echo 'wheel-machines: please run: apt-get install -y debootstrap' >&2; exit 2; }
wheel=$(ls dist/*"$(uname -m)".whl) deb=$(ls dist/*_"$(dpkg --print-architecture)".deb)

# Mounts live in a namespace of our own and are gone with it, however we end.
if [ -z "${MACHINES_DIR:-}" ]; then
	MACHINES_DIR=$(mktemp -d /var/tmp/wheel-machines.XXXXXX)
	export MACHINES_DIR
	rc=0
	unshare --mount --propagation private "$0" "$@" || rc=$?
	rm -rf --one-file-system "$MACHINES_DIR"
	exit $rc
fi

debian() { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sed -nE 's/^(URIs: |deb (\[[^]]*\] )?)([a-z]+:[^ ]*debian\/?)( .*|$)/\3/p' | head -1; }
scripts=/usr/share/debootstrap/scripts

# A suite that debootstrap is too old to know is made as the one before it.
base() { # suite root
	case $1 in
	jammy | noble)
		debootstrap --no-check-gpg --variant=minbase --include=python3,python3-venv --components=main,universe \
			"$1" "$2" "$UBUNTU_MIRROR" "$scripts/jammy"
		;;
	*) debootstrap --variant=minbase --include=python3,python3-venv "$1" "$2" "$(debian)" "$scripts/bookworm" ;;
	esac
}

inside() { # user command
	chroot "$root" setpriv --reuid "$1" --regid "$1" --clear-groups \
		env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -ec "cd /tmp && $2" </dev/null
}

record='gpumemtrace run --sim h100-80g -o x.gmt -- python3 /test/program.py
gpumemtrace report --json x.gmt >x.json
python3 -c "import json; d = json.load(open(\"x.json\"))[\"devices\"][0]; assert d[\"peak_bytes\"] == 48 << 20, d"
gpumemtrace verify x.gmt >/dev/null; gpumemtrace html x.gmt -o x.html; test -s x.html; rm x.*'

check() { # suite; in a subshell
	root=$MACHINES_DIR/$1
	base "$1" "$root" >"$root.log" 2>&1 || { tail -3 "$root.log"; return 1; }
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mkdir "$root/test" "$root/home/user"
	chown 4711:4711 "$root/home/user"
	cp "$wheel" "$deb" tests/wheel/program.py "$root/test/"
	inside 4711 'python3 -m venv /home/user/venv && /home/user/venv/bin/pip install -q --no-index /test/*.whl && /home/user/venv/bin/pip check' >/dev/null
	mount -o remount,ro,bind "$root"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	inside 4711 "PATH=/home/user/venv/bin:\$PATH; $record"
	mount -o remount,rw,bind "$root"
	inside 0 'dpkg -i /test/*.deb' >/dev/null
	inside 4711 "$record"
	inside 0 'dpkg --purge gpumemtrace' >/dev/null
	[ ! -e "$root/usr/lib/gpumemtrace" ]
}

rc=0
for suite; do
	start=$SECONDS
	set +e # "if" would switch off -e inside
	(set -e; check "$suite")
	[ $? = 0 ] && result=ok || result=FAILED rc=1
	set -e
	libc=$(chroot "$MACHINES_DIR/$suite" ldd --version 2>/dev/null | sed -n '1s/.* //p')
	printf '%-10s glibc %-5s %-7s %3d s\n' "$suite" "$libc" "$result" $((SECONDS - start))
	umount -R "$MACHINES_DIR/$suite" 2>/dev/null || true
	rm -rf --one-file-system "${MACHINES_DIR:?}/$suite"
done
exit $rc
