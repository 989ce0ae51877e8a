#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two ranks, a recording each, then one report. Where there is no GPU: SIM="--sim h100-80g,2" ./run.sh
set -eu
cd "$(dirname "$0")"
OUT=${OUT:-run}

mkdir -p "$OUT"
# shellcheck disable=SC2086 # SIM is two words or none
gpumemtrace run ${SIM:-} -o "$OUT/%r.gmt" -- torchrun --standalone --nproc-per-node 2 ../train.py
gpumemtrace report "$OUT"
