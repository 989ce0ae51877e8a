# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks of every kind, nested, overlapping, ended on another thread."""
import sys
import threading

import torch
from torch.cuda import nvtx


def main():
    if "cuda" in sys.argv:
        torch.ones(1, device="cuda")
    nvtx.range_push("outer")
    with torch.profiler.record_function("named"):
        nvtx.range_push("inner")
        nvtx.mark("here")
        nvtx.range_pop()
    nvtx.range_pop()
    first = nvtx.range_start("first")
    second = nvtx.range_start("second")
    nvtx.range_end(first)
    other = threading.Thread(target=nvtx.range_end, args=(second,))
    other.start()
    other.join()
    nvtx.range_pop()  # one too many
    for i in range(80):
        nvtx.range_push(f"deep{i}")
    for i in range(80):
        nvtx.range_pop()
    with torch.profiler.record_function("a" * 3000):
        pass
    with torch.profiler.record_function("café \U0001f642"):
        pass


if __name__ == "__main__":
    main()
