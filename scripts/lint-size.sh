#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file tells one idea: at most 500 lines. A function reads in one look: over 60 lines is a warning.
rc=0
files=$(ls {format,shim,cupti,browser,{shim,viewer,simgpu}/*,tests/unit,tests/programs}/*.[ch] 2>/dev/null)
for f in $files; do
	n=$(wc -l <"$f")
	[ "$n" -le 500 ] || { echo "$f: $n lines, at most 500"; rc=1; }
done

# Lines are a cost: whoever adds to a folder removes as much there, or lowers another's number and says why.
while read -r most folder; do
	n=$(find "$folder" -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.js' 2>/dev/null | xargs cat | wc -l)
	[ "$n" -le "$most" ] || { echo "$folder: $n lines, at most $most"; rc=1; }
done <<-end
	66622 viewer
	1043 browser
	26591 simgpu
	15965 shim
	4500 format
	537 cupti
	8740 python
end

awk '
	FNR == 1 { start = 0 }
	/^{/ { start = FNR; head = prev }
	/^}/ && start { if (FNR - start > 60) printf "warning: %s:%d: %d lines: %s\n", FILENAME, start, FNR - start, head; start = 0 }
	{ prev = $0 }' $files
exit $rc
