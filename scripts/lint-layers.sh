#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Folders know each other one way only; and of format/, the writer and the reader are siblings.
# An edge that is not in this table is an error. Tests and scripts may use anything.
allowed='
shim format
viewer format
cupti format
cupti shim/capture.h
'
rc=0
while IFS=: read -r file line text; do
	from=${file%%/*}
	path=$(realpath -m --relative-to=. "$(dirname "$file")/$(sed 's/.*"\(.*\)".*/\1/' <<<"$text")")
	to=${path%%/*}
	[ "$from" = "$to" ] || grep -qx -e "$from $to" -e "$from $path" <<<"$allowed" ||
		{ echo "$file:$line: $from/ must not include $path"; rc=1; }
	case $file:$path in
	format/writer*:format/reader*|format/reader*:format/writer*|format/codec*:format/reader*|format/codec*:format/writer*)
		echo "$file:$line: the writer and the reader are siblings over the codec"; rc=1 ;;
	esac
done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' {format,shim,cupti,viewer,simgpu}/*.[ch] {format,shim,cupti,viewer,simgpu}/*.def 2>/dev/null)
exit $rc
