#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The compiler of the packages: clang with the headers of glibc 2.28, for the machine that $WHEEL_ARCH names; for
# wasm32 with those of WASI.
[ "${WHEEL_ARCH:?}" = wasm32 ] && target=wasm32-wasi || target=$WHEEL_ARCH-linux-gnu.2.28
exec "$(dirname "$0")"/../.venv-wheel/lib/python3*/site-packages/ziglang/zig cc -target $target "$@"
