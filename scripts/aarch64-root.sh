#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program for aarch64 needs to run here under qemu: the C library, cmocka and Python of Debian's packages
# for arm64, unpacked into your cache; nothing is installed. Prints the folder. Exit code 3 and a sentence if it
# cannot be had here, or if there is no qemu.
# Usage: scripts/aarch64-root.sh
set -euo pipefail

CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}/aarch64
PACKAGES='libc6 libgcc-s1 libcmocka0 libcmocka-dev libexpat1 zlib1g libpython3.11-minimal libpython3.11-stdlib python3.11-minimal python3.11
	libffi8 libssl3 libstdc++6 libbz2-1.0 liblzma5 libsqlite3-0 libreadline8 libtinfo6 libuuid1'

. "$(dirname "$0")/debian.sh"

arm() {
	local tool=$1
	shift
	apt "$tool" -o APT::Architecture=arm64 -o APT::Architectures=arm64 "$@"
}

unpack() {
	local uri name
	uri=$(mirror)
	rm -rf "$CACHE/root" "$CACHE/deb"
	mkdir -p "$CACHE/deb" "$CACHE/root"
	make_lists "deb [arch=arm64] $uri bookworm main"
	arm apt-get -qq update >/dev/null 2>&1 || none 'the lists of packages could not be fetched'
	(cd "$CACHE/deb" && arm apt-get -qq download $PACKAGES >/dev/null 2>&1) || none 'the packages could not be fetched'
	for name in "$CACHE"/deb/*.deb; do
		dpkg -x "$name" "$CACHE/root"
	done
	rm -rf "$CACHE/deb"
	touch "$CACHE/root/complete"
}

command -v qemu-aarch64-static >/dev/null || none 'no qemu-aarch64-static (Debian: qemu-user-static)'
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
[ -e "$CACHE/root/complete" ] || unpack
echo "$CACHE/root"
