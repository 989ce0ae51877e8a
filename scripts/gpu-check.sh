#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every check that needs a real GPU, in under ten minutes, on a machine that has build/ (from `make`
# anywhere) and a python with torch; nothing is installed or downloaded. Writes Markdown. A machine without the
# packages of elfutils and libunwind needs their libraries in a folder of LD_LIBRARY_PATH: libdw.so.1, libelf.so.1, libunwind.so.8.
#
# Usage: scripts/gpu-check.sh [OUTPUT.md]                         (default: standard output)
#   PYTHON=...   the python with torch (default: .venv/bin/python, else python3)
# 1. what only a card can tell: memory outside the framework, cuDNN's workspaces, cost, other tools (gpu_figures.py)
# 2. the exactness tests of tests/e2e on the real device (GPUMEMTRACE_TEST_DEVICE=real; needs pytest), and beside them
# 3. the same scripts on the real and on the simulated card: peaks side by side (gpu_peaks.py)
set -uo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
out=${1:-/dev/stdout}
[ -x build/gpumemtrace ] || { echo 'gpu-check: build/gpumemtrace is not there: run make first' >&2; exit 2; }
build/gpumemtrace --version >/dev/null || { echo 'gpu-check: the tool does not start: carry the libraries that it lacks, too' >&2; exit 2; }
ldconfig -p | grep -q libunwind.so.8 || ls ${LD_LIBRARY_PATH//:/ } 2>/dev/null | grep -q libunwind.so.8 ||
	echo 'gpu-check: there is no libunwind.so.8: no native stacks, and the tests of them fail' >&2
"$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
	{ echo "gpu-check: $PYTHON has no torch that sees a GPU; name another: PYTHON=/path $0" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

about() {
	echo "# Checked on a real GPU"
	echo
	echo "- when: $(date -u +%Y-%m-%d), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
	"$PYTHON" - <<-'EOF'
		import platform, torch
		p = torch.cuda.get_device_properties(0)
		print(f"- card: {p.name}, {p.total_memory / 2**30:.1f} GiB, compute capability {p.major}.{p.minor}, {p.multi_processor_count} SMs")
		print(f"- torch {torch.__version__}, Python {platform.python_version()}")
	EOF
	echo "- driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1 || true)"
}

exactness() {
	printf '\n## Exactness tests on the card\n\n'
	if ! "$PYTHON" -c 'import pytest' 2>/dev/null; then
		echo 'Not run: this python has no pytest.'
		return
	fi
	local parallel=()
	"$PYTHON" -c 'import xdist' 2>/dev/null && parallel=(-n 6)
	GPUMEMTRACE_TEST_DEVICE=real timeout 200 "$PYTHON" -m pytest -q -c tests/pytest.ini -p no:cacheprovider "${parallel[@]}" -m real \
		tests/e2e >"$work/pytest.log" 2>&1
	local rc=$?
	[ $rc != 124 ] || echo 'Stopped after 200 s; what follows is what was done until then.'
	echo '```'
	tail -25 "$work/pytest.log"
	echo '```'
}

figures() {
	printf '\n## What only a card can tell\n'
	timeout 330 "$PYTHON" scripts/gpu_figures.py "$work" || echo 'This part was stopped.'
}

peaks() {
	printf '\n## Simulated against real peaks\n\n'
	timeout 240 "$PYTHON" scripts/gpu_peaks.py "$work" || echo 'This part failed; see standard error.'
}

open_questions() {
	cat <<-'EOF'

		## What this run does not tell

		Several cards at once, NCCL traffic, MIG, and cards of other generations than the one above. See
		docs/gpu-results.md for what is still open.
	EOF
}

# Each part is there when it is done: a machine may be taken away before the last one.
: >"$out" || exit 2
about >>"$out"
figures >>"$out"
exactness >"$work/exactness" &
peaks >>"$out"
wait
cat "$work/exactness" >>"$out"
open_questions >>"$out"
