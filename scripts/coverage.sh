#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lines of the reader that the fuzzers' corpora reach, by gcov: one line a file, and the sum. Fails below 95 %.
# What is left is out of memory and a file that shrinks between two reads. Usage: scripts/coverage.sh
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=$PWD/build/coverage
rm -rf "$OUT"
mkdir -p "$OUT"
for file in $(ls format/*.c | grep -v reader_alone) tests/fuzz/corpus.c tests/fuzz/fuzz_reader.c tests/fuzz/fuzz_salvage.c tests/fuzz/fuzz_codec.c; do
	gcc -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE -O0 -g --coverage -c -o "$OUT/$(basename "$file" .c).o" "$file"
done
for target in reader salvage codec; do
	gcc --coverage -o "$OUT/run_$target" "$OUT/fuzz_$target.o" $(for f in $(ls format/*.c | grep -v reader_alone); do echo "$OUT/$(basename "$f" .c).o"; done) "$OUT/corpus.o" -l:libzstd.a
	"$OUT/run_$target" "tests/fuzz/corpus/$target" >/dev/null
done
cd "$OUT"
gcov -n reader*.gcda group.gcda ring.gcda codec*.gcda block.gcda 2>/dev/null | awk '
	/^File/ { file = $2; gsub(/\x27/, "", file) }
	/^Lines executed/ && file ~ /format\/(reader|codec|ring|block)[a-z_]*\.c$/ {
		split($2, part, /[:%]/); sub(/.*of /, ""); lines = $0 + 0
		printf "%-24s %6.2f %% of %d lines\n", file, part[2], lines
		if (file ~ /reader/) { done += part[2] / 100 * lines; all += lines }
	}
	END { printf "the reader               %6.2f %% of %d lines\n", 100 * done / all, all; exit 100 * done / all < 95 }'
