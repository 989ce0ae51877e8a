#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes tests/requirements/*.txt (full pins for CPython 3.10 and later) from the *.in beside them.
# A line `# as of DATE` in a file takes the newest packages of that day.
# For maintainers, by hand; needs `uv` on the PATH. Usage: scripts/pin.sh [NAME...]
set -eu
cd "$(dirname "$0")/../tests/requirements"
[ $# -gt 0 ] || set -- cu13 newest cu12 tools browser frameworks wheel docs loggers spark engines sglang cards25 cards26 cards212
for name; do
	before=$(sed -n "s/^# as of /--exclude-newer /p" "$name.in")
	how='--universal --python-version 3.10'
	case $name in # macOS has no engine with CUDA
	engines | sglang) how='--python-platform x86_64-manylinux_2_34 --python-version 3.11' ;;
	esac
	uv pip compile --quiet $before $how --no-header --no-annotate \
		-o "$name.new" "$name.in" >/dev/null
	{
		echo "# From $name.in by scripts/pin.sh: change that one."
		grep -v -e "== 'win32'" -e "== 'emscripten'" "$name.new" |
			sed -e "s/ and sys_platform [!=]= '[a-z0-9]*'//g" \
			    -e "s/ ; sys_platform [!=]= '[a-z0-9]*'//" -e "s/ ; platform_machine == .*//"
	} >"$name.txt"
	rm "$name.new"
	[ "$name" != frameworks ] || { # laid over the main environment
		grep -vxFf cu13.txt "$name.txt" >"$name.new"
		mv "$name.new" "$name.txt"
	}
done
