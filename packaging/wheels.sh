#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dist/: a wheel for each machine, the source archive and their SHA-256 sums. What is built from one commit is
# the same to the byte each time. Usage: packaging/wheels.sh [ARCH...], default x86_64 aarch64
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- x86_64 aarch64
PYTHON=.venv-wheel/bin/python
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# Of make's lines, from time to time how many files are compiled; all of them are in the log.
count_files() { # what log
	local line n=0 next=10
	SECONDS=0
	: >"$2"
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$2"
		[[ $line != *' CC '* && $line != *' WASM '* ]] || n=$((n + 1))
		[ $SECONDS -lt $next ] || { printf 'wheels: %s: %d files compiled\n' "$1" $n; next=$((SECONDS + 10)); }
	done
}

# Nothing of an earlier build is used, so that each wheel is the same to the byte: it takes minutes each time.
build() { # arch libraries
	printf 'wheels: building for %s, from the beginning\n' "$1"
	rm -rf "build/wheel-$1"
	mkdir -p build
	WHEEL_ARCH=$1 make -j"$(nproc)" B="build/wheel-$1" CC=packaging/cc.sh \
		CFLAGS="-O2 -g0 -I$2/include -ffile-prefix-map=$PWD=. -ffile-prefix-map=$2=libraries" \
		LDFLAGS="-s -Wl,-z,defs -L$2/lib" DWARF="-ldw $2/lib/no_disassembler.o -lelf -leu -lz -llzma" 2>&1 | count_files "$1" "build/wheel-$1.log" ||
		{ tail -20 "build/wheel-$1.log" >&2; echo "wheels: the build for $1 failed: build/wheel-$1.log" >&2; exit 2; }
}

mkdir -p build
printf 'wheels: the viewer, then a build for each machine: %s. The first time takes some minutes more, for the compiler and its libraries.\n' "$*"

# The viewer without installation is the same for every machine.
printf 'wheels: building the viewer\n'
make -j"$(nproc)" viewer | count_files viewer build/viewer.log

# Completions and manual pages are the same everywhere; they come from a tool that runs here.
printf 'wheels: building the tool of this machine, for completions and manual pages\n'
make CC="${CC:-gcc}" all manual | count_files tool build/tool.log
mkdir -p dist
rm -f dist/*
for arch; do
	libraries=$(packaging/libraries.sh "$arch")
	build "$arch" "$libraries"
	$PYTHON packaging/wheel.py "$arch" "build/wheel-$arch" "$libraries"
	$PYTHON -m auditwheel show dist/*"$arch".whl >"build/auditwheel-$arch.log" 2>&1 ||
		{ cat "build/auditwheel-$arch.log" >&2; echo "wheels: auditwheel refuses the wheel for $arch" >&2; exit 2; }
done
cp build/gpumemtrace.html dist/
[ ! -e .git ] || $PYTHON packaging/backend.py dist # else this is the source archive itself
(cd dist && sha256sum * >SHA256SUMS)
ls -l dist
