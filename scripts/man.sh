#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual page in roff from the little Markdown of viewer/gpumemtrace.1.md: man.sh IN > OUT.
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
/^# /    { print ".TH GPUMEMTRACE 1"; next }
/^## /   { print ".SH " substr($0, 4); head = 1; next }
/^### /  { print ".SS " substr($0, 5); head = 1; next }
/^```/   { code = !code; print code ? ".PP\n.nf\n.RS" : ".RE\n.fi"; next }
code     { gsub(/\\/, "\\e"); gsub(/-/, "\\-"); print; next }
/^- /    { colon = index($0, ": "); print ".TP"; print fonts(substr($0, 3, colon - 3)); print fonts(substr($0, colon + 2)); next }
/^$/     { blank = 1; next }
         { if (blank && !head && !/^  /) print ".PP"; blank = head = 0; sub(/^  /, ""); print fonts($0) }
' "$1"
