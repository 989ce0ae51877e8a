#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The compiler of the packages: clang with the headers of glibc 2.28, for the machine that $WHEEL_ARCH names.
exec "$(dirname "$0")"/../.venv-wheel/lib/python3*/site-packages/ziglang/zig cc -target "${WHEEL_ARCH:?}-linux-gnu.2.28" "$@"
