#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Thread-local storage of the library is small: with an audit library (LD_AUDIT) the loader has some
# 1600 bytes for all preloaded libraries together, and starts no program for which it is too little.
# What needs more lies in struct thread_room (shim/rings/thread_room.h).
most=448
lib=build/libgpumemtrace.so
[ -e $lib ] || { echo "$lib is not built"; exit 1; }
bytes=$(($(readelf -lW $lib | awk '$1 == "TLS" { print $6 }')))
[ "$bytes" -le $most ] && exit 0
echo "$lib has $bytes bytes of thread-local storage, more than $most:"
readelf -sW $lib | awk '$4 == "TLS" { print "  " $3, $8 }' | sort -k1nr
exit 1
