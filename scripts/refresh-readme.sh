#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts real output into README.md, between its markers: the report of the demo, and the
# figures of `make bench`. Usage: scripts/refresh-readme.sh [sample] [bench]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- sample bench
new=$(mktemp)
trap 'rm -f "$new" "$new.text"' EXIT

put() { # marker: replaces what is between <!-- marker --> and <!-- end --> by $new
	awk -v marker="<!-- $1 -->" -v file="$new" '
		$0 == marker { print; while ((getline line < file) > 0) print line; skip = 1 }
		$0 == "<!-- end -->" { skip = 0 }
		!skip && $0 != marker { print }' README.md >"$new.text"
	cat "$new.text" >README.md
}

fenced() { echo '```'; cat; echo '```'; }

figures() { # the lines of make bench as a table
	printf '| measure | value |\n|---|---|\n'
	awk '{ printf "| %s | %s %s |\n", $1, $2, $3 }'
}

for part; do
	case $part in
	sample) { echo '$ gpumemtrace report build/demo.gmt'; build/gpumemtrace report build/demo.gmt; } | sed 's/ *$//' | fenced >"$new" ;;
	bench) .venv/bin/python tests/bench/bench.py | figures >"$new" ;;
	*) echo "refresh-readme: no part $part" >&2; exit 2 ;;
	esac
	put "$part"
done
