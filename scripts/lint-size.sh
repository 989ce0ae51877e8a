#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file tells one idea: at most 500 lines. A function reads in one look: over 60 lines is a warning.
rc=0
files=$(ls {format,shim,cupti,browser,{shim,viewer,simgpu}/*,tests/unit,tests/programs}/*.[ch] 2>/dev/null)
for f in $files; do
	n=$(wc -l <"$f")
	[ "$n" -le 500 ] || { echo "$f: $n lines, at most 500"; rc=1; }
done

# Lines are a cost. Each folder has some room (5 % over its size in November 2026); a higher number is one line of reason in the commit.
while read -r most folder; do
	n=$(find "$folder" -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.js' 2>/dev/null | xargs cat | wc -l)
	[ "$n" -le "$most" ] || { echo "$folder: $n lines, at most $most"; rc=1; }
done <<-end
	72565 viewer
	1095 browser
	30200 simgpu
	19675 shim
	5110 format
	564 cupti
	12735 python
end

awk '
	FNR == 1 { start = 0 }
	/^{/ { start = FNR; head = prev }
	/^}/ && start { if (FNR - start > 60) printf "warning: %s:%d: %d lines: %s\n", FILENAME, start, FNR - start, head; start = 0 }
	{ prev = $0 }' $files
exit $rc
