#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What action.yml does: COMMAND at the head and at BASE (PREPARE before it), each recorded on CARD; the comparison as Markdown,
# pages and recordings in $RUNNER_TEMP/gpumemtrace; then BOUNDS and FAIL_ABOVE decide. Runs anywhere that git and gpumemtrace are.
set -euo pipefail

PLACE=${RUNNER_TEMP:-$(mktemp -d)}/gpumemtrace
KEPT=$PLACE/kept
SUMMARY=${GITHUB_STEP_SUMMARY:-/dev/null}
OUTPUT=${GITHUB_OUTPUT:-/dev/null}
mkdir -p "$KEPT"

stop() { printf '::error title=gpumemtrace::%s\n' "$*"; exit 2; }

record() { # name folder: without a recording the run failed, whatever the program's code
	local rc=0
	printf '::group::%s: %s\n' "$1" "$COMMAND"
	rm -f "$KEPT/$1".*
	(cd "$2" && { [ -z "${PREPARE:-}" ] || bash -ec "$PREPARE"; } &&
		gpumemtrace run ${CARD:+--sim "$CARD"} -o "$KEPT/$1.gmt" -- bash -c "$COMMAND") || rc=$?
	printf '::endgroup::\n'
	[ -e "$KEPT/$1.gmt" ] || { echo "$1: nothing was recorded, the program ended with code $rc"; return 1; }
	[ $rc = 0 ] || echo "::warning title=gpumemtrace::$1: the program ended with code $rc"
}

peak() { gpumemtrace peak --json "$KEPT/$1.gmt" | sed 's/.*"bytes":\([0-9]*\),"time_ns".*/\1/'; }

# The checkout of an action has one commit only.
base_tree() {
	git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE" || return 1
	rm -rf "$PLACE/base"
	git worktree prune
	git worktree add --quiet --force --detach "$PLACE/base" "$BASE"
}

compare() {
	gpumemtrace diff --markdown -o "$KEPT/diff.html" "$KEPT/base.gmt" "$KEPT/head.gmt" >"$PLACE/comment.md"
	cat "$PLACE/comment.md" >>"$SUMMARY"
	echo "peak-base=$(peak base)" >>"$OUTPUT"
}

[ -n "${COMMAND:-}" ] || stop 'the input "command" is empty: name the program to run'
record head . || stop 'the head has no recording; the log says why'
gpumemtrace html "$KEPT/head.gmt" -o "$KEPT/head.html" >/dev/null
echo "peak=$(peak head)" >>"$OUTPUT"
limit=()
if [ -n "${BASE:-}" ] && [ "$BASE" != none ]; then
	if base_tree && record base "$PLACE/base"; then
		compare
		[ -z "${FAIL_ABOVE:-}" ] || limit=(--baseline "$KEPT/base.gmt" --fail-above "$FAIL_ABOVE")
	elif [ -n "${FAIL_ABOVE:-}" ]; then
		stop "the base $BASE could not be recorded, so that nothing can be compared; the log says why"
	else
		echo "::warning title=gpumemtrace::the base $BASE could not be recorded; there is no comparison"
	fi
	git worktree remove --force "$PLACE/base" 2>/dev/null || true
fi
[ -s "$PLACE/comment.md" ] || { echo '```'; gpumemtrace report --no-pager "$KEPT/head.gmt"; echo '```'; } >>"$SUMMARY"
read -ra bounds <<<"${BOUNDS:-}"
bounds+=("${limit[@]}")
[ ${#bounds[@]} = 0 ] || gpumemtrace check "$KEPT/head.gmt" "${bounds[@]}" --annotations --junit "$KEPT/check.xml"
