#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# zlib, zstd, liblzma, libelf, libdw as static libraries and libunwind as one of its own, built for glibc 2.28 with
# packaging/cc.sh, in a folder of your cache: made once for each set of pins. Prints the folder. For wasm32: zlib, zstd,
# liblzma and the compiler's own demangler of C++ names.
# Usage: packaging/libraries.sh x86_64|aarch64|wasm32
set -euo pipefail
cd "$(dirname "$0")"

export WHEEL_ARCH=${1:?which machine: x86_64, aarch64 or wasm32}
CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}
HOST=$WHEEL_ARCH-linux-gnu
export CC=$PWD/cc.sh ZERO_AR_DATE=1
ZIG=$(echo ../.venv-wheel/lib/python3*/site-packages/ziglang/zig)
export AR="$(readlink -f "$ZIG") ar" RANLIB="$(readlink -f "$ZIG") ranlib"
OUT=$CACHE/libraries-$WHEEL_ARCH-$({ cat sources.txt libraries.sh cc.sh no_disassembler.c; grep '^ziglang' ../tests/requirements/wheel.txt; } | sha256sum | cut -c1-12)
JOBS=$(nproc)

stop() { tail -20 "$2" >&2; printf 'libraries: %s was not built; all of its output: %s\n' "$1" "$2" >&2; exit 2; }

exec 9>"$CACHE/libraries-$WHEEL_ARCH.lock"
flock 9
[ ! -e "$OUT/complete" ] || { echo "$OUT"; exit 0; }
parts=5 part=0
[ "$WHEEL_ARCH" != wasm32 ] || parts=4
printf 'libraries: %s libraries are built for %s with this compiler, as those of this machine need a newer glibc; some minutes, once: they stay in %s\n' \
	$parts "$WHEEL_ARCH" "$OUT" >&2
SOURCES=$(./sources.sh)
rm -rf "$OUT"
mkdir -p "$OUT/lib" "$OUT/include" "$OUT/licences" "$OUT/src"
FLAGS="-O2 -g0 -fPIC -ffile-prefix-map=$OUT=."

# Several of the build systems below look at CC with options that it does not have; what they print is kept.
build() { # name function: in the unpacked source
	local archive rc
	archive=$(awk -v name="$1" '$1 == name { print $3 }' sources.txt)
	part=$((part + 1))
	printf 'libraries: %d of %d for %s: %s\n' $part $parts "$WHEEL_ARCH" "$1" >&2
	tar -xf "$SOURCES/$archive" -C "$OUT/src"
	set +e # a function behind || would go on after a failed command
	(set -e; cd "$OUT/src/$1"-*; "$2") >"$OUT/$1.log" 2>&1 </dev/null
	rc=$?
	set -e
	[ $rc = 0 ] || stop "$1" "$OUT/$1.log"
	rm -f "$OUT/$1.log"
}

build_zlib() {
	CHOST=$HOST CFLAGS=$FLAGS ./configure --static --prefix="$OUT"
	make -j"$JOBS" libz.a
	cp libz.a "$OUT/lib/"
	cp zlib.h zconf.h "$OUT/include/"
	cp LICENSE "$OUT/licences/zlib.txt"
}

build_zstd() {
	make -C lib -j"$JOBS" libzstd.a ZSTD_LEGACY_SUPPORT=0 CFLAGS="$FLAGS"
	cp lib/libzstd.a "$OUT/lib/"
	cp lib/zstd.h lib/zstd_errors.h lib/zdict.h "$OUT/include/"
	cp LICENSE "$OUT/licences/zstd.txt"
}

# Only what reads .xz files, without threads and without assembly.
build_xz() {
	./configure --host="${HOST/wasm32-linux-gnu/wasm32-wasi}" --disable-shared --disable-encoders --disable-threads --disable-assembler \
		--disable-microlzma --disable-lzip-decoder --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo \
		--disable-scripts --disable-doc --disable-nls --enable-sandbox=no CFLAGS="$FLAGS"
	make -C src/liblzma -j"$JOBS" liblzma.la
	cp src/liblzma/.libs/liblzma.a "$OUT/lib/"
	cp -r src/liblzma/api/lzma.h src/liblzma/api/lzma "$OUT/include/"
	cp COPYING.0BSD "$OUT/licences/xz.txt"
}

# The libraries only. The disassemblers are made by programs that would have to run here, so they stay out.
build_elfutils() {
	local part
	./configure --host="$HOST" --disable-libdebuginfod --disable-debuginfod --disable-nls --disable-demangler \
		--disable-symbol-versioning --without-bzlib --without-lzma --without-zstd --enable-deterministic-archives \
		CFLAGS="$FLAGS -Wno-error" CPPFLAGS="-I$OUT/include" LDFLAGS="-L$OUT/lib"
	touch libcpu/empty.c
	(cd libcpu && "$CC" -c empty.c -o empty.o && $AR rcs libcpu.a empty.o && $AR rcs libcpu_pic.a empty.o)
	for part in config lib libelf backends libebl libdwelf libdwfl; do
		make -C "$part" -j"$JOBS"
	done
	make -C libdw -j"$JOBS" libdw.a
	cp libelf/libelf.a libdw/libdw.a lib/libeu.a "$OUT/lib/"
	"$CC" $FLAGS -c -o "$OUT/lib/no_disassembler.o" "$HERE/no_disassembler.c"
	mkdir -p "$OUT/include/elfutils"
	cp libelf/libelf.h libelf/gelf.h libdw/dwarf.h "$OUT/include/"
	cp libdw/libdw.h libdwelf/libdwelf.h libelf/elf-knowledge.h version.h "$OUT/include/elfutils/"
	cp COPYING-LGPLV3 "$OUT/licences/elfutils.txt"
}

# Of libunwind only the walk is used. Its way back into a frame is assembly that clang cannot compile for
# aarch64: there it ends the program instead.
build_libunwind() {
	python3 - src/aarch64/Gos-linux.c <<-'EOF'
		import re, sys
		text = open(sys.argv[1]).read()
		text, n = re.subn(r"__asm__ __volatile__ \(\n\s*\"ldr x0,  %\[x0\].*?\n\s*\);", "__builtin_trap ();", text, flags=re.S)
		assert n, "libunwind's source is another one than this script knows"
		open(sys.argv[1], "w").write(text)
	EOF
	./configure --host="$HOST" --disable-static --enable-shared --disable-tests --disable-documentation \
		--disable-minidebuginfo --disable-zlibdebuginfo --disable-cxx-exceptions --disable-ptrace --disable-coredump \
		--disable-setjmp CFLAGS="$FLAGS" LDFLAGS=-s
	make -C src -j"$JOBS" libunwind.la
	cp "$(find src/.libs -name 'libunwind.so.8.*' -type f)" "$OUT/lib/libunwind.so.8"
	cp COPYING "$OUT/licences/libunwind.txt"
}

# It has no part that asks for exceptions or run-time types.
build_demangler() {
	local zig abi
	zig=$(readlink -f $ZIG)
	abi=${zig%/*}/lib/libcxxabi
	"$zig" c++ -target wasm32-wasi -std=c++20 -O2 -g0 -w -fno-exceptions -fno-rtti -D_LIBCPP_BUILDING_LIBRARY -D_LIBCXXABI_HAS_NO_THREADS \
		-I "$abi/include" -c -o "$OUT/lib/demangler.o" "$abi/src/cxa_demangle.cpp"
}

HERE=$PWD
build zlib build_zlib
build zstd build_zstd
build xz build_xz
if [ "$WHEEL_ARCH" = wasm32 ]; then
	printf 'libraries: 4 of 4 for wasm32: demangler of C++ names\n' >&2
	build_demangler >&2
else
	build elfutils build_elfutils
	build libunwind build_libunwind
fi
rm -rf "$OUT/src"
touch "$OUT/complete"
echo "$OUT"
