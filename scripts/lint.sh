#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every lint-*.sh beside it. Each is silent when its promise holds; else it prints what, where, and
# fails. One that prints and succeeds only warns. After a build.
cd "$(dirname "$0")/.." || exit 1
rc=0
for check in scripts/lint-*.sh; do
	name=${check#scripts/lint-}
	if out=$(bash "$check" 2>&1); then verdict=ok; else verdict=FAILED; rc=1; fi
	printf '  %-7s %s\n' LINT "${name%.sh}: $verdict"
	[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/          /'
done
exit $rc
