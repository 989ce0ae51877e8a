#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's driver libraries (libcuda) of every version that Debian's suites offer in non-free, unpacked into
# your cache; nothing is installed. They need no card to say which functions they have. Prints a line
# "VERSION FOLDER" for each. Exit code 3 and a sentence if there is none to be had here.
#
# The mirror is the one that this machine's own package sources name. Usage: scripts/driver-libraries.sh
set -euo pipefail

CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}/driver-libraries
SUITES='bullseye bookworm bookworm-backports trixie trixie-backports forky sid'
PACKAGES='libcuda1 libnvidia-ptxjitcompiler1'

none() { printf 'driver-libraries: %s\n' "$*" >&2; exit 3; }

# apt with lists and archives of its own.
apt() {
	local tool=$1
	shift
	"$tool" -o Dir::Etc::main=/dev/null -o Dir::Etc::parts=/dev/null -o Dir::Etc::sourcelist="$CACHE/apt/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State="$CACHE/apt/state" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$CACHE/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

mirror() { # of this machine's own suite
	local own
	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Component: main' 2>/dev/null |
		awk -v own="$own" '$2 == own { print $1; exit }'
}

make_lists() {
	local uri suite
	uri=$(mirror)
	[ -n "$uri" ] || none 'the package sources of this machine name no mirror of Debian'
	mkdir -p "$CACHE/apt/state/lists/partial" "$CACHE/apt/cache/archives/partial"
	for suite in $SUITES; do
		echo "deb [arch=amd64] $uri $suite non-free"
	done >"$CACHE/apt/sources.list"
	apt apt-get -qq update >/dev/null 2>&1 || true # a suite that is no more is no trouble
}

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

command -v apt-get >/dev/null && command -v dpkg >/dev/null || none 'this is not a Debian system'
[ "$(dpkg --print-architecture)" = amd64 ] || none 'Debian has these packages for amd64 only'
make_lists
found=''
for version in $(apt apt-cache madison libcuda1 | awk -F' *[|] *' '!seen[substr($2, 1, index($2, "-"))]++ { print $2 }' | sort -V); do
	unpack "$version" || continue
	echo "${version%%-*} $CACHE/$version/lib"
	found=1
done
[ -n "$found" ] || none 'libcuda1 could not be downloaded from the mirror of this machine'
