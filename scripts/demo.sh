#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demonstration: records scripts/demo_qwen.py, on the GPU if there is one with room for it, else on
# a simulated 80 GB card, and prints the report.
set -euo pipefail
cd "$(dirname "$0")/.."

room() { # MiB of the largest GPU, 0 without one
	nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | sort -n | tail -1 | grep -x '[0-9]*' || echo 0
}

out=build/demo.gmt
rm -f "$out"
sim=(--sim h100-80g)
[ "$(room)" -lt 52000 ] || sim=()
show() { printf '$ %s\n' "$*"; "$@"; }
# What is printed can be pasted, the report's own proposals too.
echo '$ export PATH=$PWD/build:$PATH'
export PATH=$PWD/build:$PATH
show gpumemtrace run "${sim[@]}" -o "$out" -- .venv/bin/python scripts/demo_qwen.py
echo
show gpumemtrace report "$out"
