#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every script parses, and can be run.
rc=0
for f in $(git ls-files '*.sh' .ci/run); do
	bash -n "$f" || rc=1
	case $f in scripts/lint-*) ;; *) [ -x "$f" ] || { echo "$f: not executable"; rc=1; } ;; esac
done
for f in $(git ls-files '*.py'); do
	python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$f" || rc=1
done
exit $rc
