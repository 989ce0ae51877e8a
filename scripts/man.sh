#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A page of the manual in roff: man.sh [--markdown] docs/man/PAGE.1.md. The prose is the file's. Names, the
# synopsis and the options come from the built tool, settings and columns from their .def, and what each
# ```example prints from a run on tests/data/example; one that ends with a code above 1 is an error. A row of OPTIONS by hand replaces the table's words.
set -euo pipefail
[ "$1" = --markdown ] && { markdown=1; shift; }
page=$(realpath "$1")
cd "$(dirname "$0")/.."
tool=$PWD/build/gpumemtrace
name=$(basename "$page" .1.md)
command=${name#gpumemtrace}; command=${command#-}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

summaries() { "$tool" --help | sed -n 's/^  \([a-z][a-z]*\)  *\(.*\)/\1\t\2/p'; }

synopsis() { # the line "usage:" with its words in fonts
	"$tool" "$command" --help | sed -n '1s/^usage: //p' |
		sed -E 's/[A-Z]+/*&*/g; s/\*OPTION\*\.\.\./*OPTION*.../; s/^gpumemtrace [a-z]+/`&`/; s/--/`--`/'
}

head_of_page() {
	printf '# %s(1)\n\n' "${name^^}"
	[ -n "$command" ] || return 0
	printf '## NAME\n\n%s - %s\n\n' "$name" "$(summaries | awk -F'\t' -v c="$command" '$1 == c { print $2 }')"
	printf '## SYNOPSIS\n\n%s\n\n## DESCRIPTION\n' "$(synopsis)"
}

rows() { # name, what stands before its colon, its words
	"$tool" "$command" --help | sed -nE 's/^  (-.)?,? +--([a-z-]+)( [^ ]+)?  +(.*)/\2\t\1\t\3\t\4/p' |
		awk -F'\t' '$1 !~ /^(json|help|no-pager)$/ {
			print $1 "\t" ($2 ? "`" $2 "`, " : "") "`--" $1 "`" ($3 ? " *" substr($3, 2) "*" : "") "\t" $4 }'
}

settings() {
	sed -nE 's/^(TEXT|SWITCH|NUMBER|CHOICE|SIZE)\(([A-Z_]+), [a-z_]+, ("[^"]*"|[A-Za-z0-9_]+),.* "(.*)"\)$/\1|\2|\3|\4/p' format/settings.def |
		while IFS='|' read -r kind name value text; do
			case $kind in
			SWITCH) [ "$value" = 1 ] && value=on || value=off ;;
			CHOICE) value=$(tr '[:upper:]' '[:lower:]' <<<"${value##*_}") ;;
			esac
			printf -- '- `GPUMEMTRACE_%s`: %s. Default *%s*.\n' "$name" "$text" "${value//\"/}"
		done
}

with_options() { # rows by hand in place of the table's words; a row of no option is an error
	awk -F'\t' -v rows="$place/rows" '
	function flush(i) {
		for (i = 1; i <= n; i++)
			print "- " front[i] ": " (key[i] in by_hand ? by_hand[key[i]] : words[i] ".")
		print "- `--json`, `--help`, `--no-pager`: as for every command, see gpumemtrace(1)."
		print ""
		options = 0
	}
	BEGIN { while ((getline < rows) > 0) { key[++n] = $1; known[$1] = 1; front[n] = $2; words[n] = $3 } }
	options && /^## / { flush() }
	!options { print }
	/^## OPTIONS/ { options = 1; print ""; next }
	options && /^- `--/ {
		split($0, part, "`"); row = substr(part[2], 3)
		if (!known[row]) { print FILENAME ": no option --" row > "/dev/stderr"; exit 1 }
		by_hand[row] = substr($0, index($0, ": ") + 2); next
	}
	options && /^  / { by_hand[row] = by_hand[row] "\n" $0 }
	END { if (options) flush() }' "$1"
}

output() { # of an example; that a check fails (exit code 1) may be shown
	local code=0
	(cd "$place" && LC_ALL=C PATH=$(dirname "$tool"):$PATH bash -c "$1") >"$place/.output" 2>&1 || code=$?
	sed 's/ *$//' "$place/.output"
	[ "$code" -le 1 ] || { echo "$page: \`$1\` ended with code $code" >&2; exit 1; }
}

generated() { # what stands in other tables
	local line
	while IFS= read -r line; do
		case $line in
		'<!-- commands -->') "$tool" --help | sed -nE '1,/^usage:/d; /^More:/q; s/^([A-Z].*):$/### \1\n/p; s/^  ([a-z]+) +(.*)/- `\1`: \2; gpumemtrace-\1(1)/p; /^$/p' ;;
		'<!-- settings -->') settings ;;
		'<!-- columns -->') sed -nE 's/^COLUMN\((\w+), \w+, "(.*)", "(.*)"\)/- *\1* (\2): \3./p' viewer/export/export_columns.def | sed 's/ ()//' ;;
		'<!-- event columns -->') sed -nE 's/^EVENT_COLUMN\((\w+), \w+, \w+, \w+, "(.*)", "(.*)"\)/- *\1* (\2): \3./p' viewer/export/export_event_columns.def | sed 's/ ()//' ;;
		'```example') echo '```'; run=1 ;;
		'$ '*) echo "$line"; [ -z "${run:-}" ] || output "${line#??}" ;;
		*) [ "$line" != '```' ] || run=; printf '%s\n' "$line" ;;
		esac
	done
}

whole() {
	head_of_page
	if [ -n "$command" ]; then rows >"$place/rows"; with_options "$page"; else cat "$page"; fi | sed 1d | generated
}

roff() {
	awk '
	function fonts(s) {
		gsub(/\\/, "\\e", s)
		gsub(/-/, "\\-", s)
		while (match(s, /\*\*[^*]+\*\*/))
			s = substr(s, 1, RSTART - 1) "\\fB" substr(s, RSTART + 2, RLENGTH - 4) "\\fR" substr(s, RSTART + RLENGTH)
		while (match(s, /\*[^*]+\*/))
			s = substr(s, 1, RSTART - 1) "\\fI" substr(s, RSTART + 1, RLENGTH - 2) "\\fR" substr(s, RSTART + RLENGTH)
		while (match(s, /`[^`]+`/))
			s = substr(s, 1, RSTART - 1) "\\fB" substr(s, RSTART + 1, RLENGTH - 2) "\\fR" substr(s, RSTART + RLENGTH)
		sub(/^[.'"'"']/, "\\\\\\&&", s)
		return s
	}
	# A list of terms: nothing but code, emphasis and what stands in brackets before the colon. Else an item has a bullet.
	function item(s,  colon) {
		if (!match(s, /^(`[^`]*`|\*[^*]+\*|\([^)]*\)|\[[^]]*\]|[ ,=])+: /)) { print ".IP \\(bu 2"; print fonts(s); return }
		colon = RLENGTH - 1
		print ".TP"; print fonts(substr(s, 1, colon - 1)); print fonts(substr(s, colon + 2))
	}
	/^# /    { print ".TH " substr($2, 1, length($2) - 3) " 1"; next }
	/^```/   { code = !code; print code ? ".PP\n.nf\n.RS" : ".RE\n.fi"; next }
	code     { gsub(/\\/, "\\e"); gsub(/-/, "\\-"); sub(/^[.'"'"']/, "\\\\\\&&"); print; next }
	/^## /   { print ".SH " substr($0, 4); head = 1; next }
	/^### /  { print ".SS " substr($0, 5); head = 1; next }
	/^- /    { item(substr($0, 3)); blank = head = 0; next }
	/^$/     { blank = 1; next }
		 { if (blank && !head && !/^  /) print ".PP"; blank = head = 0; sub(/^  /, ""); print fonts($0) }'
}

cp tests/data/example/* "$place"
if [ -n "${markdown:-}" ]; then whole; else whole | roff; fi
