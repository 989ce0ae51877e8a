#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first step of action.yml: gpumemtrace into an environment of its own, and nothing but its command onto the PATH of the steps
# that follow ($GITHUB_PATH), so that their python stays theirs. WHEEL is a wheel's file or address; if it is empty the source that
# lies here is built, with gcc and the system packages of scripts/setup.sh.
set -euo pipefail

HERE=$(cd "$(dirname "$0")/.." && pwd)
PLACE=${RUNNER_TEMP:-$(mktemp -d)}/gpumemtrace
[ -n "${WHEEL:-}" ] || "$HERE/scripts/setup.sh" system
mkdir -p "$PLACE/bin"
python3 -m venv "$PLACE/venv"
"$PLACE/venv/bin/python" -m pip install --quiet --disable-pip-version-check "${WHEEL:-$HERE}"
ln -sf "$PLACE"/venv/lib/python3*/site-packages/gpumemtrace/bin/gpumemtrace "$PLACE/bin/"
echo "$PLACE/bin" >>"${GITHUB_PATH:-/dev/null}"
"$PLACE/bin/gpumemtrace" --version
