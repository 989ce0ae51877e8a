#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packages of Debian by lists and archives of our own, below $CACHE; nothing is installed. To be sourced: the
# caller sets CACHE. The mirror is the one that this machine's own package sources name.

none() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; exit 3; }

apt() { # command, arguments
	local tool=$1
	shift
	"$tool" -o Dir::Etc::main=/dev/null -o Dir::Etc::parts=/dev/null -o Dir::Etc::sourcelist="$CACHE/apt/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State="$CACHE/apt/state" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$CACHE/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

mirror() { # of this machine's own suite
	local own uri
	own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Component: main' 2>/dev/null |
		awk -v own="$own" '$2 == own { print $1; exit }')
	[ -n "$uri" ] || none 'the package sources of this machine name no mirror of Debian'
	echo "$uri"
}

make_lists() { # lines of a sources.list
	mkdir -p "$CACHE/apt/state/lists/partial" "$CACHE/apt/cache/archives/partial"
	printf '%s\n' "$@" >"$CACHE/apt/sources.list"
}

command -v apt-get >/dev/null && command -v dpkg >/dev/null || none 'this is not a Debian system'
