#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts real output into documents, between their markers: the report of the demo into README.md; the figures of
# `make bench` into docs/benchmarks.md, with their chart, and three of them into README.md; pictures of pages by Chromium.
# Usage: scripts/refresh-readme.sh [sample] [bench] [figures: the chart and README's three from the table as it is] [pictures]
# After `make demo`; pictures need `scripts/setup.sh browser`.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- sample bench
new=$(mktemp)
place=$(mktemp -d)
trap 'rm -rf "$new" "$new.text" "$place"' EXIT

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

picture() { # page theme width height file
	printf '{"high": %s}\n{"settle": true}\n{"picture": "%s"}\n' "$4" "$5" |
		.venv-browser/bin/python tests/e2e/browser.py "$1" "$2" "$3" >/dev/null
}

pictures() {
	local tool=build/gpumemtrace
	$tool html build/demo.gmt -o "$place/page.html" >/dev/null
	picture "$place/page.html" light 1180 1200 docs/page-light.png
	$tool diff tests/data/example/old.gmt tests/data/example/new.gmt -o "$place/diff.html" >/dev/null
	picture "$place/diff.html" light 1180 1300 docs/diff-light.png
	mkdir "$place/ranks"
	PATH=$PWD/.venv/bin:$PATH $tool run -q --sim a100-40g,4 -o "$place/ranks/%r.gmt" -- \
		torchrun --standalone --nproc-per-node 4 --no-python python docs/questions/train.py
	$tool html "$place/ranks" -o "$place/ranks.html" >/dev/null
	picture "$place/ranks.html" dark 1280 480 docs/page-ranks.png
}

for part; do
	case $part in
	sample) { echo '$ gpumemtrace report build/demo.gmt --top 5'; build/gpumemtrace report build/demo.gmt --top 5; } | sed 's/ *$//' | fenced >"$new"; put README.md sample ;;
	bench) .venv/bin/python tests/bench/bench.py | table >"$new"; put docs/benchmarks.md bench; figures ;;
	figures) figures ;;
	pictures) pictures ;;
	*) echo "refresh-readme: no part $part" >&2; exit 2 ;;
	esac
done
