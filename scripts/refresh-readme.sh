#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts real output into README.md, between its markers: the report of the demo, the table of settings, and
# the figures of `make bench`. Usage: scripts/refresh-readme.sh [sample] [settings] [bench]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- sample settings bench
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

settings() {
	printf '| variable | default | meaning |\n|---|---|---|\n'
	sed -nE 's/^(TEXT|SWITCH|NUMBER|CHOICE)\(([A-Z_]+), [a-z_]+, ("[^"]*"|[A-Za-z0-9_]+),.* "(.*)"\)$/\1|\2|\3|\4/p' shim/settings.def |
		while IFS='|' read -r kind name value text; do
			case $kind in
			SWITCH) [ "$value" = 1 ] && value=on || value=off ;;
			CHOICE) value=$(tr '[:upper:]' '[:lower:]' <<<"${value##*_}") ;;
			esac
			printf '| `GPUMEMTRACE_%s` | `%s` | %s |\n' "$name" "${value//\"/}" "$text"
		done
}

figures() { # the lines of make bench as a table
	printf '| measure | value |\n|---|---|\n'
	awk '{ printf "| %s | %s %s |\n", $1, $2, $3 }'
}

for part; do
	case $part in
	sample) { echo '$ gpumemtrace report build/demo.gmt'; build/gpumemtrace report build/demo.gmt; } | sed 's/ *$//' | fenced >"$new" ;;
	settings) settings >"$new" ;;
	bench) .venv/bin/python tests/bench/bench.py | figures >"$new" ;;
	*) echo "refresh-readme: no part $part" >&2; exit 2 ;;
	esac
	put "$part"
done
