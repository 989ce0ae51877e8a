#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package as people get it: the wheel, installed into a clean virtual environment, is what the tests marked
# `installed` use: plugin (under three versions of pytest), callbacks, notebooks, action, pod, examples of documents.
# Usage: scripts/test-installed.sh [WHEEL] [PYTEST-ARGUMENTS...]; without a wheel one is built here, by `pip wheel .`
set -euo pipefail
cd "$(dirname "$0")/.."

PLACE=$PWD/build/installed
PIP='.venv/bin/python -m pip --disable-pip-version-check'
PYTESTS='7.4.4 8.3.5 9.2.0'

rm -rf "$PLACE"
mkdir -p "$PLACE/build"
case ${1:-} in
*.whl)
	wheel=$(realpath "$1")
	shift
	;;
*)
	$PIP wheel --quiet --no-deps --wheel-dir "$PLACE" .
	wheel=$(echo "$PLACE"/*.whl)
	;;
esac

# Nothing in it but the wheel.
.venv/bin/python -m venv --without-pip "$PLACE/venv"
$PIP --python "$PLACE/venv/bin/python" install --quiet --no-index --no-deps "$wheel"
package=$(echo "$PLACE"/venv/lib/python3*/site-packages)

# The wheel and a version of pytest, beside the packages of .venv (torch).
for version in $PYTESTS; do
	.venv/bin/python -m venv --without-pip "$PLACE/pytest-$version"
	(cd .venv && echo "$PWD"/lib/python3*/site-packages) >"$(echo "$PLACE/pytest-$version"/lib/python3*/site-packages)/venv.pth"
	$PIP --python "$PLACE/pytest-$version/bin/python" install --quiet --no-deps "$wheel" "pytest==$version"
done

# What a build folder has, by the names that the tests know.
ln -s "$PLACE/venv/bin/gpumemtrace" "$PLACE/build/gpumemtrace"
ln -s "$package"/gpumemtrace/lib/* "$PLACE/build/"

export GPUMEMTRACE_TEST_BUILD=$PLACE/build GPUMEMTRACE_TEST_PACKAGE=$package GPUMEMTRACE_TEST_WHEEL=$wheel
exec .venv/bin/python -m pytest -q -c tests/pytest.ini -m installed -n $(($(nproc) + 1)) --dist worksteal "$@" $(grep -l 'mark\.installed' tests/e2e/test_*.py)
