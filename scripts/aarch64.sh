#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library, the tool and the unit tests for aarch64, built by the compiler of the wheels; the unit tests run here
# under qemu. Says why, and succeeds, where that cannot be. Usage: scripts/aarch64.sh [TEST...], default all
set -euo pipefail
cd "$(dirname "$0")/.."

# test_frames and test_frames_objects call functions written for x86-64; test_following starts programs of this
# machine; test_sim_* reserve more address space than the emulator gives.
LEFT_OUT='test_frames test_frames_objects test_following test_sim_contents test_sim_memory test_sim_ranks test_sim_streams'

ROOT=$(scripts/aarch64-root.sh) || { [ $? = 3 ] && echo 'test-aarch64: skipped'; exit 0; }
LIBRARIES=$(packaging/libraries.sh aarch64)
export WHEEL_ARCH=aarch64

emulated() {
	make "$@" B=build/aarch64 CC=packaging/cc.sh CFLAGS="-O2 -g -w -I$LIBRARIES/include -idirafter $ROOT/usr/include" \
		LDFLAGS="-L$LIBRARIES/lib -L$ROOT/usr/lib/aarch64-linux-gnu" DWARF="-ldw $LIBRARIES/lib/no_disassembler.o -lelf -leu -lz -llzma" \
		RUN="qemu-aarch64-static -L $ROOT -E LD_LIBRARY_PATH=$LIBRARIES/lib"
}

tests=()
for file in tests/unit/test_*.c; do
	name=$(basename "$file" .c)
	case " $LEFT_OUT " in *" $name "*) ;; *) tests+=("run-$name") ;; esac
done
[ $# -eq 0 ] || tests=("${@/#/run-}")
emulated -s -j"$(nproc)" all
emulated -s -k "${tests[@]}"
printf 'not run under the emulator: %s\n' "$LEFT_OUT"
