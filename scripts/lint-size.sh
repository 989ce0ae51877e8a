#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file tells one idea: at most 500 lines. A function reads in one look: over 60 lines is a warning.
rc=0
files=$(ls {format,shim,cupti,{shim,viewer,simgpu}/*,tests/unit,tests/programs,python/native}/*.[ch] 2>/dev/null)
for f in $files; do
	n=$(wc -l <"$f")
	[ "$n" -le 500 ] || { echo "$f: $n lines, at most 500"; rc=1; }
done
awk '
	FNR == 1 { start = 0 }
	/^{/ { start = FNR; head = prev }
	/^}/ && start { if (FNR - start > 60) printf "warning: %s:%d: %d lines: %s\n", FILENAME, start, FNR - start, head; start = 0 }
	{ prev = $0 }' $files
exit $rc
