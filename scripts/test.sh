#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stages of `make test`, each timed; a failed stage does not keep the others from running, but for
# the build. With cu12 (`make test-matrix`) also that environment, and the tests marked `more`.
# Usage: scripts/test.sh [cu12]        (after scripts/setup.sh system cu13 newest)
set -uo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL
unset PYTHONDONTWRITEBYTECODE # the tests' own files are compiled once, and not by each worker of each stage

JOBS=$(nproc)
LOGS=build/test-logs
failed=''
table=''

stage() { # name command...
	local name=$1 start=$SECONDS verdict=ok
	shift
	printf '\n== %s\n' "$name"
	"$@" 2>&1 | tee "$LOGS/$name.log" || { verdict=FAILED; failed="$failed $name"; }
	table="$table$(printf '%-14s %-7s %4d s' "$name" "$verdict" $((SECONDS - start)))"$'\n'
	[ "$verdict" = ok ]
}

# A stage beside those that follow: its last minute leaves cores idle. What it printed comes with `await`.
beside() { # name command...
	local name=$1
	shift
	{ begin=$SECONDS; "$@" >"$LOGS/$name.log" 2>&1; echo $? $((SECONDS - begin)) >"$LOGS/$name.end"; } &
}

await() { # name
	local name=$1 verdict=ok code seconds
	wait
	read -r code seconds <"$LOGS/$name.end"
	printf '\n== %s\n' "$name"
	cat "$LOGS/$name.log"
	[ "$code" = 0 ] || { verdict=FAILED; failed="$failed $name"; }
	table="$table$(printf '%-14s %-7s %4d s' "$name" "$verdict" "$seconds")"$'\n'
}

# End to end with one environment; what is about the Python package is run from a wheel, installed. Many tests wait, so there are two workers more than cores.
pytests() { # environment pytest-arguments...
	local env=$1
	shift
	"$env/bin/python" -m pytest -q -c tests/pytest.ini -n $((JOBS + 2)) --dist worksteal "$@"
}

# Each worker reads all files that it is given, so these are the ones with such tests.
matrix() { # environment
	pytests "$1" -m "matrix$NOT_MORE" $(grep -l 'mark\.matrix' tests/e2e/test_*.py)
}

mkdir -p "$LOGS"
NOT_MORE=$([ $# -gt 0 ] || echo ' and not more')
stage build make -j"$JOBS" all programs || { echo 'the build failed'; exit 1; }
beside lint make lint
stage viewer make -j"$JOBS" viewer # 30 s on two cores, and a minute the first time
await lint
stage unit make -j"$JOBS" -k unit
# What waits in the end-to-end tests leaves room for these.
beside unit-tsan make -j"$JOBS" -k tsan
beside unit-sanitized make -j"$JOBS" -k SAN=address,undefined build/san-address-undefined/gpumemtrace unit
stage e2e pytests .venv -m "not installed$NOT_MORE" tests/e2e
await unit-tsan
await unit-sanitized
beside e2e-installed scripts/test-installed.sh -m "installed$NOT_MORE"
stage e2e-newest matrix .venv-newest
await e2e-installed
for env; do
	stage "e2e-$env" matrix ".venv-$env"
done

# A log that is cut in its middle still says which tests failed, and how.
grep -h '^\(FAILED\|ERROR\) ' "$LOGS"/e2e*.log
for test in $(sed -n 's/^  FAILED *//p' "$LOGS"/unit*.log | sort -u); do
	printf '\n== failed: %s\n' "$test"
	tail -n 100 "$test.log"
done
printf '\n%s' "$table"
[ -z "$failed" ] || printf 'failed:%s (logs in %s)\n' "$failed" "$LOGS"
# The sum of what the test runners said, in the form that any reader of logs knows.
cat "$LOGS"/unit*.log "$LOGS"/e2e*.log | awk '
	/test\(s\) run/ { p += $(NF - 2) }
	/^ +FAILED / { f++ }
	/^(=+ )?[0-9]+ (passed|failed|error|skipped|deselected).* in [0-9.]+s/ {
		for (i = 2; i <= NF; i++) {
			if ($i ~ /^passed/) p += $(i - 1)
			if ($i ~ /^(failed|error)/) f += $(i - 1)
			if ($i ~ /^skipped/) s += $(i - 1)
		}
	}
	END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
[ -z "$failed" ]
