#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dist/: all that a release has: wheels, Debian packages, the viewer, the source archive, the list of what is
# inside (CycloneDX), SHA256SUMS. It is built twice, the second time from the source archive in another folder, and both
# must be the same to the byte. Usage: packaging/release.sh [--once]
set -euo pipefail
cd "$(dirname "$0")/.."

stop() { printf 'release: %s\n' "$1" >&2; exit 2; }
command -v dpkg-deb >/dev/null || stop 'dpkg-deb is not there: apt-get install dpkg'
if [ -z "${RELEASE_COMMIT:-}" ]; then # else the second build, which has no repository
	[ -z "$(git status --porcelain --untracked-files=no)" ] ||
		stop 'there are changes that are not committed: a release is built from a commit'
fi
export RELEASE_COMMIT=${RELEASE_COMMIT:-$(git rev-parse HEAD)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
PYTHON=.venv-wheel/bin/python
VERSION=$($PYTHON packaging/wheel.py version)
tag=$(git describe --exact-match --tags --match 'v*' HEAD 2>/dev/null || true)
[ -z "$tag" ] || [ "$tag" = "v$VERSION" ] || stop "the tag says $tag, format/version.h says $VERSION"
grep -q "^## $VERSION" CHANGELOG.md || stop "CHANGELOG.md has no section \"## $VERSION\""

packaging/wheels.sh
for wheel in dist/*.whl; do
	$PYTHON packaging/deb.py "$wheel"
done
[ -s dist/gpumemtrace.html ] || stop 'the viewer is missing: make viewer'
$PYTHON packaging/sbom.py "$RELEASE_COMMIT"
(cd dist && rm SHA256SUMS && sha256sum * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
[ "${1:-}" != --once ] || exit 0

again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
echo 'release: building all of it again from the source archive'
tar -xf "dist/gpumemtrace-$VERSION.tar.gz" -C "$again" --strip-components=1
for link in .venv-wheel .cuda-headers .venv; do
	ln -s "$(readlink -f "$link")" "$again/$link"
done
(cd "$again" && packaging/release.sh --once) >build/release-again.log 2>&1 ||
	{ tail -20 build/release-again.log >&2; stop 'the source archive does not build: build/release-again.log'; }
grep -v tar.gz dist/SHA256SUMS | diff - "$again/dist/SHA256SUMS" || stop 'the second build is not the same: see the sums above'
echo "release: version $VERSION, twice the same to the byte"
