#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every source opens with its licence line; every file name is told apart by itself.
rc=0
for f in $(git ls-files '*.c' '*.h' '*.def' '*.py' '*.sh' Makefile); do
	[ -s "$f" ] || continue
	head -3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || { echo "$f: no SPDX line"; rc=1; }
done
twice=$(git ls-files '*.c' '*.h' '*.def' | sed 's,.*/,,' | sort | uniq -d)
[ -z "$twice" ] || { echo "two files of one name:" $twice; rc=1; }
exit $rc
