#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every script parses, and can be run.
rc=0
for f in $(git ls-files '*.sh' .ci/run); do
	bash -n "$f" || rc=1
	case $f in scripts/lint-*) ;; *) [ -x "$f" ] || { echo "$f: not executable"; rc=1; } ;; esac
done
git ls-files -z '*.py' | python3 -c '
import ast, sys
for path in sys.stdin.read().split("\0")[:-1]:
    with open(path, encoding="utf-8") as file:
        ast.parse(file.read(), path)' || rc=1
exit $rc
