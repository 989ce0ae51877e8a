#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The source archives of sources.txt, into a folder of your cache, each checked against its SHA-256. They come
# from $GPUMEMTRACE_SOURCES (a folder with these files) or, on Debian and Ubuntu, from the source packages of
# Debian trixie on the mirror that this machine's own package sources name. Prints the folder.
set -euo pipefail
cd "$(dirname "$0")"

CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}
DIR=$CACHE/sources
SUITE=trixie

stop() { printf 'sources: %s\n' "$*" >&2; exit 2; }
is_right() { [ -e "$1" ] && echo "$2  $1" | sha256sum --status -c -; }

# apt with lists of its own: nothing of the system's is changed.
apt() {
	apt-get -qq -o Dir::Etc::main=/dev/null -o Dir::Etc::parts=/dev/null -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::sourcelist="$DIR/apt/sources.list" -o Dir::State="$DIR/apt/state" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$DIR/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

make_lists() {
	local own uri
	[ ! -e "$DIR/apt/ready" ] || return 0
	command -v apt-get >/dev/null || stop "not a Debian system: put the files of packaging/sources.txt into a folder and set GPUMEMTRACE_SOURCES"
	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Component: main' 2>/dev/null |
		awk -v own="$own" '$2 == own { print $1; exit }')
	[ -n "$uri" ] || stop 'the package sources of this machine name no mirror'
	mkdir -p "$DIR/apt/state/lists/partial" "$DIR/apt/cache/archives/partial"
	echo "deb-src $uri $SUITE main" >"$DIR/apt/sources.list"
	apt update >/dev/null || stop "the list of source packages of $SUITE could not be read"
	touch "$DIR/apt/ready"
}

from_debian() { # file package
	local uri
	make_lists
	uri=$(apt source --print-uris --download-only "$2" 2>/dev/null | awk -v file="$1" '$2 == file { gsub("\x27", "", $1); print $1 }')
	[ -n "$uri" ] || stop "$1 is no part of $2 in Debian $SUITE any more: set GPUMEMTRACE_SOURCES to a folder that has it"
	/usr/lib/apt/apt-helper -o APT::Sandbox::User="$(id -un)" download-file "$uri" "$DIR/$1.new" >/dev/null 2>&1 || stop "$1 could not be fetched"
	mv "$DIR/$1.new" "$DIR/$1"
}

mkdir -p "$DIR"
while read -r name version file sum package licence; do
	case $name in '' | '#'*) continue ;; esac
	is_right "$DIR/$file" "$sum" && continue
	if [ -n "${GPUMEMTRACE_SOURCES:-}" ]; then
		cp "$GPUMEMTRACE_SOURCES/$file" "$DIR/$file" || stop "$GPUMEMTRACE_SOURCES has no $file"
	else
		from_debian "$file" "$package"
	fi
	is_right "$DIR/$file" "$sum" || stop "$DIR/$file is not the file of packaging/sources.txt (SHA-256 differs)"
done <sources.txt
echo "$DIR"
