#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes this machine ready: system packages, then Python environments with pinned packages.
#
# Usage: scripts/setup.sh [system] [cu13] [newest] [cu12] [headers] [driver] [tools] [browser] [frameworks] [wheel] [docs]
#        [loggers] [spark] [cuda] [trainers] [engines] [sglang] [cards25] [cards26] [cards212]
#        (no word: system cu13)
#
# Idempotent, and instant when all is there. An environment is several GB, so it lives in the user's
# cache under the hash of what it is made from, and .venv, .venv-newest, .venv-cu12, .venv-tools
# (readers of our exports, 0.5 GB), .venv-browser (drives the system's Chromium), .venv-frameworks (laid
# over .venv, 1 GB), .driver-packages (for `make test-driver`), .venv-spark (1 GB, Spark on lakes, here and in object storage), .venv-wheel (compiler of `make wheel` and `make viewer`),
# .venv-cards25, .venv-cards26 and .venv-cards212 (packages of the time of published figures, for `make test-cards`),
# .venv-docs (builds the site of docs/), .venv-loggers (W&B, MLflow, Ray; 0.5 GB), .venv-trainers (Lightning), .cuda
# (headers of CUDA 13, all that `make` needs of .venv) and .cuda-headers (of CUDA 11 and 12) link to it: a second clone is ready at once.
# An interrupted set-up leaves no `complete` file and is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
CACHE=${GPUMEMTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpumemtrace}
PINS=tests/requirements
PACKAGES='libc6-dev g++ libzstd-dev zlib1g-dev liblzma-dev libdw-dev libelf-dev libcmocka-dev libunwind8'

say() { printf 'setup: %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 2; }

# The packages of our list that this machine lacks.
missing() {
	local p
	for p in $PACKAGES; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || echo "$p"
	done
	# A Python built by hand brings these itself; Debian's needs two more packages.
	"$PYTHON" - 2>/dev/null <<-'EOF' || printf 'python3-venv\npython3-dev\n'
		import ensurepip, os, sysconfig
		assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
	EOF
}

install_packages() {
	local root='' run
	[ "$(id -u)" = 0 ] || root='sudo -n'
	run="$root env DEBIAN_FRONTEND=noninteractive apt-get -qq"
	if [ -n "$root" ] && ! sudo -n true 2>/dev/null; then
		stop "these packages are missing; please run: sudo apt-get install -y $*"
	fi
	say "installing $*"
	$run -y --no-install-recommends install "$@" >/dev/null 2>&1 ||
		{ $run update && $run -y --no-install-recommends install "$@" >/dev/null; } ||
		stop "apt-get could not install them; please run: apt-get install -y $*"
}

setup_system() {
	local want
	command -v "$PYTHON" >/dev/null || stop "no $PYTHON on the PATH; install python3, or name one: PYTHON=/path make setup"
	command -v dpkg-query >/dev/null || { say 'not a Debian-like system: packages are left to you'; return; }
	want=$(missing)
	[ -z "$want" ] || install_packages $want
}

room() { # GB
	local free
	free=$(df -Pk "$CACHE" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$free" -ge "$1" ] || stop "$CACHE has $free GB free, $1 are needed; set XDG_CACHE_HOME to a larger place"
}

venv() { # folder requirements
	"$PYTHON" -m venv "$1"
	"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$2"
}

make_env() { # folder requirements
	room 8
	say "making $1 (up to 5 GB, once for all clones)"
	venv "$@"
}

make_engines() { # folder requirements
	room 11
	say "making $1 (10 GB, once for all clones)"
	venv "$@"
}

make_small() { # folder requirements
	say "making $1"
	venv "$@"
}

make_compiler() { # folder requirements
	room 1
	say "making $1: the compiler of wheels and viewer, with the headers of an old glibc (0.1 GB to download, once for all clones)"
	venv "$@"
}

# Packages of the main environment are found through a .pth file. DeepSpeed has no wheel: it is built with the
# torch that is there, and without its own CUDA code, so that no compiler for CUDA is needed.
make_frameworks() { # folder requirements those-of-the-main-environment
	local main site
	main=$(readlink -f .venv)
	room 3
	say "making $1 (1 GB, once for all clones)"
	"$PYTHON" -m venv "$1"
	site=$(cd "$1" && echo "$PWD"/lib/python3*/site-packages)
	(cd "$main" && echo "$PWD"/lib/python3*/site-packages) >"$site/main.pth"
	"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$(grep '^setuptools==' "$3")"
	DS_BUILD_OPS=0 "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -r "$2"
}

# Without Chromium or Firefox the tests that need them are skipped.
setup_browsers() {
	command -v chromium >/dev/null || ! command -v dpkg-query >/dev/null ||
		(install_packages chromium fonts-dejavu-core) || say 'no chromium: the tests of the page in a browser are skipped'
	command -v firefox-esr >/dev/null || command -v firefox >/dev/null || ! command -v dpkg-query >/dev/null ||
		(install_packages firefox-esr) || say 'no firefox: the tests of the page in it are skipped'
}

# Without a Java the test that needs Spark is skipped.
setup_java() {
	command -v java >/dev/null || ! command -v dpkg-query >/dev/null ||
		(install_packages default-jre-headless) || say 'no java: the test of lakes with Spark is skipped'
}

# Hadoop's connector to S3 comes through Spark's own download of packages, with the few parts of the AWS SDK that it uses in
# place of all (600 MB); without it the test of lakes in object storage is skipped.
make_spark() { # folder requirements packages
	make_small "$1" "$2"
	"$1/bin/python" - "$1/ivy" "$(grep -v '^#' "$3" | paste -sd,)" >"$1/ivy.log" 2>&1 <<-'EOF' || say "no connector to S3 (see $1/ivy.log): the test of lakes in object storage is skipped"
		import sys
		from pyspark.sql import SparkSession
		settings = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "jars.ivy": sys.argv[1],
		            "jars.packages": sys.argv[2], "jars.excludes": "software.amazon.awssdk:bundle"}
		builder = SparkSession.builder.master("local[1]")
		for key, value in settings.items():
		    builder = builder.config("spark." + key, value)
		builder.getOrCreate().stop()
	EOF
}

# One folder for each version: two of them would write over each other.
make_headers() { # folder requirements...
	local dir=$1 file python=.venv/bin/python
	shift
	[ -x $python ] || python=$PYTHON # no package of theirs is run
	say "making $dir"
	for file; do
		"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$dir/$(basename "$file" .txt)" -r "$file"
	done
}

# A folder in the cache, made once by MAKER under the hash of all that it depends on, and the link to it.
setup_part() { # name link maker requirements...
	local name=$1 link=$2 maker=$3 hash dir
	shift 3
	hash=$({ cat "$@"; "$PYTHON" -c 'import sys; print(sys.version, sys.base_prefix)'; } | sha256sum | cut -c1-12)
	dir=$CACHE/$name-$hash
	if [ ! -e "$dir/complete" ]; then
		mkdir -p "$CACHE"
		(
			flock -n 9 || { say "another set-up is making $dir; waiting for it"; flock 9; }
			[ ! -e "$dir/complete" ] || exit 0
			rm -rf "$dir"
			mkdir "$dir"
			"$maker" "$dir" "$@"
			touch "$dir/complete"
		) 9>"$dir.lock"
	fi
	[ "$(readlink "$link" 2>/dev/null)" != "$dir" ] || return 0
	[ -L "$link" ] || [ ! -e "$link" ] || stop "$link is there and not a link of ours; please move it away"
	ln -sfn "$dir" "$link"
	say "$link is ready"
}

[ $# -gt 0 ] || set -- system cu13
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || [ "$1" = system ] ||
	stop "$PYTHON is missing or older than 3.10; name another: PYTHON=/path make setup"
for part; do
	case $part in
	system) setup_system ;;
	cu13) setup_part venv-cu13 .venv make_env $PINS/cu13.txt ;;
	newest) setup_part venv-newest .venv-newest make_env $PINS/newest.txt ;;
	cu12) setup_part venv-cu12 .venv-cu12 make_env $PINS/cu12.txt ;;
	tools) setup_part venv-tools .venv-tools make_env $PINS/tools.txt ;;
	driver) setup_part driver-packages .driver-packages make_headers $PINS/driver-cu12.txt $PINS/driver-cu13.txt ;;
	headers) setup_part cuda-headers .cuda-headers make_headers $PINS/headers-cu11.txt $PINS/headers-cu12.txt ;;
	cuda) setup_part venv-cuda .cuda make_small $PINS/cuda.txt ;;
	trainers) setup_part venv-trainers .venv-trainers make_small $PINS/trainers.txt ;;
	engines) setup_part venv-engines .venv-engines make_engines $PINS/engines.txt ;;
	sglang) setup_part venv-sglang .venv-sglang make_engines $PINS/sglang.txt ;;
	wheel) setup_part venv-wheel .venv-wheel make_compiler $PINS/wheel.txt ;;
	docs) setup_part venv-docs .venv-docs make_small $PINS/docs.txt ;;
	cards25) setup_part venv-cards25 .venv-cards25 make_env $PINS/cards25.txt ;;
	cards26) setup_part venv-cards26 .venv-cards26 make_env $PINS/cards26.txt ;;
	cards212) setup_part venv-cards212 .venv-cards212 make_env $PINS/cards212.txt ;;
	loggers) setup_part venv-loggers .venv-loggers make_small $PINS/loggers.txt ;;
	spark) setup_java; setup_part venv-spark .venv-spark make_spark $PINS/spark.txt $PINS/spark-jars.txt ;;
	browser) setup_browsers; setup_part venv-browser .venv-browser make_small $PINS/browser.txt ;;
	frameworks)
		setup_part venv-cu13 .venv make_env $PINS/cu13.txt
		setup_part venv-frameworks .venv-frameworks make_frameworks $PINS/frameworks.txt $PINS/cu13.txt
		;;
	*) stop "unknown part $part; there are system, cu13, newest, cu12, headers, driver, tools, browser, frameworks, wheel, docs, loggers, spark, cuda, trainers, engines, sglang, cards25, cards26, cards212" ;;
	esac
done
