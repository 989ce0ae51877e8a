# SPDX-License-Identifier: Apache-2.0
"""Times alloc+free pairs of one small tensor, at two depths of Python frames.

Prints one line a variant and depth: "VARIANT DEPTH NANOSECONDS" (the best of many short bursts, as other
work on the machine only ever adds time).
Arguments: the variants: `nothing`, `recorder-python`, `recorder-all` (PyTorch's own recorder).
"""
import sys
import time

import torch

PAIRS = 500
BURSTS = 60
ROUNDS = 6
DEPTHS = (5, 25)


def burst():
    start = time.perf_counter_ns()
    for _ in range(PAIRS):
        torch.empty(1024, device="cuda")
    return (time.perf_counter_ns() - start) / PAIRS


def loop():
    return min(burst() for _ in range(BURSTS))


def at_depth(depth):
    return loop() if depth <= 2 else at_depth(depth - 1)


def record(variant):
    if variant == "nothing":
        torch.cuda.memory._record_memory_history(enabled=None)
    else:
        torch.cuda.memory._record_memory_history(stacks=variant.removeprefix("recorder-"), max_entries=100000)


def main():
    torch.empty(1024, device="cuda")
    best = {}
    for _ in range(ROUNDS):
        for variant in sys.argv[1:]:
            record(variant)
            for depth in DEPTHS:
                key = variant, depth
                best[key] = min(best.get(key, 1e12), at_depth(depth))
    for (variant, depth), ns in best.items():
        print(variant, depth, f"{ns:.0f}")


main()
