#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's driver libraries (libcuda) of every version that Debian's suites offer in non-free, unpacked into
# your cache; nothing is installed. They need no card to say which functions they have. Prints a line
# "VERSION FOLDER" for each. Exit code 3 and a sentence if there is none to be had here.
# Usage: scripts/driver-libraries.sh
set -euo pipefail

CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}/driver-libraries
SUITES='bullseye bookworm bookworm-backports trixie trixie-backports forky sid'
PACKAGES='libcuda1 libnvidia-ptxjitcompiler1'

. "$(dirname "$0")/debian.sh"

unpack() { # version
	local dir=$CACHE/$1 name
	[ ! -e "$dir/complete" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir/deb"
	for name in $PACKAGES; do
		(cd "$dir/deb" && apt apt-get -qq download "$name=$1" >/dev/null 2>&1) || return 1
	done
	for name in "$dir"/deb/*.deb; do
		dpkg -x "$name" "$dir/root"
	done
	mkdir "$dir/lib"
	find "$dir/root" \( -name 'libcuda.so.*' -o -name 'libnvidia-ptxjitcompiler.so.*' \) -exec cp -a {} "$dir/lib/" \;
	rm -rf "$dir/deb" "$dir/root"
	[ -e "$dir/lib/libcuda.so.1" ] && touch "$dir/complete"
}

[ "$(dpkg --print-architecture)" = amd64 ] || none 'Debian has these packages for amd64 only'
uri=$(mirror)
lists=()
for suite in $SUITES; do
	lists+=("deb [arch=amd64] $uri $suite non-free")
done
make_lists "${lists[@]}"
apt apt-get -qq update >/dev/null 2>&1 || true # a suite that is no more is no trouble
found=''
for version in $(apt apt-cache madison libcuda1 | awk -F' *[|] *' '!seen[substr($2, 1, index($2, "-"))]++ { print $2 }' | sort -V); do
	unpack "$version" || continue
	echo "${version%%-*} $CACHE/$version/lib"
	found=1
done
[ -n "$found" ] || none 'libcuda1 could not be downloaded from the mirror of this machine'
