# SPDX-License-Identifier: Apache-2.0
"""Pairs of an allocation and its free in C, ten Python frames deep. Arguments: the library (c_calls.c), `heap` or
`device`, and for each run how many threads. Prints "THREADS NANOSECONDS" of a pair, a line each."""
import ctypes
import sys


def at_depth(depth, function, *arguments):
    return at_depth(depth - 1, function, *arguments) if depth else function(*arguments)


def main():
    path, where, *threads = sys.argv[1:]
    calls = ctypes.CDLL(path).calls
    calls.restype = ctypes.c_double
    for count in threads:
        print(count, f"{at_depth(10, calls, int(where == 'device'), int(count)):.0f}", flush=True)


main()
