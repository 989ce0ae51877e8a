#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts real output into documents, between their markers: the report of the demo into README.md; the figures of
# `make bench` into docs/benchmarks.md, with their chart, and three of them into README.md.
# Usage: scripts/refresh-readme.sh [sample] [bench] [figures: the chart and README's three from the table as it is]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- sample bench
new=$(mktemp)
trap 'rm -f "$new" "$new.text"' EXIT

put() { # page marker: replaces what is between <!-- marker --> and <!-- end --> by $new
	awk -v marker="<!-- $2 -->" -v file="$new" '
		$0 == marker { print; while ((getline line < file) > 0) print line; skip = 1 }
		$0 == "<!-- end -->" { skip = 0 }
		!skip && $0 != marker { print }' "$1" >"$new.text"
	cat "$new.text" >"$1"
}

fenced() { echo '```'; cat; echo '```'; }

table() { # the lines of make bench
	printf '| measure | value |\n|---|---|\n'
	awk '{ printf "| %s | %s %s |\n", $1, $2, $3 }'
}

figures() {
	python3 scripts/benchmark_chart.py >docs/benchmarks.svg
	python3 scripts/benchmark_chart.py --figures >"$new"
	put README.md figures
}

for part; do
	case $part in
	sample) { echo '$ gpumemtrace report build/demo.gmt --top 5'; build/gpumemtrace report build/demo.gmt --top 5; } | sed 's/ *$//' | fenced >"$new"; put README.md sample ;;
	bench) .venv/bin/python tests/bench/bench.py | table >"$new"; put docs/benchmarks.md bench; figures ;;
	figures) figures ;;
	*) echo "refresh-readme: no part $part" >&2; exit 2 ;;
	esac
done
