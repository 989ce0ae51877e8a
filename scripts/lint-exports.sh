#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library exports its hooks (shim/hooks.def) and nothing else, and needs nothing but libc: no
# libunwind (it would replace the host's), no zstd, no CUDA.
lib=build/libgpumemtrace.so
[ -e $lib ] || { echo "$lib is not built"; exit 1; }
rc=0
listed=$(sed -n 's/^  \([A-Za-z_0-9]*\);$/\1/p' build/exports.map | sort -u)
found=$(nm -D --defined-only $lib | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
extra=$(comm -13 <(echo "$listed") <(echo "$found"))
lacking=$(comm -23 <(echo "$listed") <(echo "$found"))
[ -z "$extra" ] || { echo "exported, not in shim/hooks.def:" $extra; rc=1; }
[ -z "$lacking" ] || { echo "in shim/hooks.def, not exported:" $lacking; rc=1; }
needed=$(readelf -d $lib | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -vxE 'libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|libm\.so\.6|ld-linux-x86-64\.so\.2')
[ -z "$needed" ] || { echo "$lib needs" $needed; rc=1; }
exit $rc
