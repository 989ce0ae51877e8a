#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program for aarch64 needs to run here under qemu: the C library, cmocka and Python of Debian's packages
# for arm64, unpacked into your cache; nothing is installed. Prints the folder. Exit code 3 and a sentence if it
# cannot be had here, or if there is no qemu.
#
# The mirror is the one that this machine's own package sources name. Usage: scripts/aarch64-root.sh
set -euo pipefail

CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}/aarch64
PACKAGES='libc6 libgcc-s1 libcmocka0 libcmocka-dev libexpat1 zlib1g libpython3.11-minimal libpython3.11-stdlib python3.11-minimal python3.11
	libffi8 libssl3 libstdc++6 libbz2-1.0 liblzma5 libsqlite3-0 libreadline8 libtinfo6 libuuid1'

none() { printf 'aarch64-root: %s\n' "$*" >&2; exit 3; }

apt() {
	local tool=$1
	shift
	"$tool" -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc::main=/dev/null -o Dir::Etc::parts=/dev/null \
		-o Dir::Etc::sourcelist="$CACHE/apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$CACHE/apt/state" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$CACHE/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

mirror() {
	local own
	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Component: main' 2>/dev/null |
		awk -v own="$own" '$2 == own { print $1; exit }'
}

unpack() {
	local uri name
	uri=$(mirror)
	[ -n "$uri" ] || none 'the package sources of this machine name no mirror of Debian'
	rm -rf "$CACHE/root" "$CACHE/deb"
	mkdir -p "$CACHE/apt/state/lists/partial" "$CACHE/apt/cache/archives/partial" "$CACHE/deb" "$CACHE/root"
	echo "deb [arch=arm64] $uri bookworm main" >"$CACHE/apt/sources.list"
	apt apt-get -qq update >/dev/null 2>&1 || none 'the lists of packages could not be fetched'
	(cd "$CACHE/deb" && apt apt-get -qq download $PACKAGES >/dev/null 2>&1) || none 'the packages could not be fetched'
	for name in "$CACHE"/deb/*.deb; do
		dpkg -x "$name" "$CACHE/root"
	done
	rm -rf "$CACHE/deb"
	touch "$CACHE/root/complete"
}

command -v qemu-aarch64-static >/dev/null || none 'no qemu-aarch64-static (Debian: qemu-user-static)'
command -v apt-get >/dev/null && command -v dpkg >/dev/null || none 'this is not a Debian system'
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
[ -e "$CACHE/root/complete" ] || unpack
echo "$CACHE/root"
